#define _GNU_SOURCE
#include "resume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defs/structs.h"

/* Compares all keys that affect the simulation. Shallow copies are enough: only plain members are made equal. */
static int same_simulation(const selkie_scene *a, const selkie_scene *b, sk_path *where)
{
    selkie_scene left = *a;
    left.title = b->title;
    left.time.end = b->time.end;
    left.output = b->output;
    left.render = b->render;
    memset(where, 0, sizeof *where);
    return sk_scene_equal(&left, b, where);
}

/* SCENE as a run records it: names of meshes are absolute in scene.json, so it is written and read again. */
static int load_as_recorded(const run_folder *folder, const char *scene_path, const scene_changes *changes,
                            selkie_scene **scene)
{
    selkie_scene *named = NULL;
    *scene = NULL;
    int code = load_scene(scene_path, changes, &named);
    if (code)
        return code;
    char *path = run_folder_path(folder, "scene.json.compare");
    selkie_error error = {0};
    if (!path)
        code = complain("out of memory");
    else if (selkie_scene_save(named, path, &error))
        code = complain_error(&error);
    else
        code = load_scene(path, NULL, scene);
    if (path)
        unlink(path);
    free(path);
    selkie_scene_free(named);
    return code;
}

/* SCENE as it is now against the scene of the run. */
static int compare_with_argument(const run_folder *folder, const char *scene_path, const scene_changes *changes,
                                 int quiet, const selkie_scene *recorded)
{
    selkie_scene *named = NULL;
    int code = load_as_recorded(folder, scene_path, changes, &named);
    if (code)
        return code;
    sk_path where;
    if (!same_simulation(named, recorded, &where))
        code = complain("%s: %s differs from %s/scene.json, which the run was started with; leave SCENE out (selkie "
                        "run --resume --out %s) to continue it, or start again with --force",
                        scene_path, where.text, folder->path, folder->path);
    else if (named->time.end != recorded->time.end && !quiet)
        printf("note: %s ends at %g s, the run in %s at %g s, which is used; --end changes it\n", scene_path,
               named->time.end, folder->path, recorded->time.end);
    selkie_scene_free(named);
    return code;
}

int load_resumed_scene(const run_folder *folder, const char *scene_path, const scene_changes *changes, int quiet,
                       selkie_scene **scene)
{
    *scene = NULL;

    /* A folder without a recorded scene has nothing to resume. */
    char *path = run_folder_path(folder, "scene.json");
    if (!path)
        return complain("out of memory");
    if (access(path, F_OK) && errno == ENOENT) {
        free(path);
        return EXIT_GOOD;
    }

    /* Options may change only the keys that leave the simulation as it is. */
    selkie_scene *recorded = NULL, *changed = NULL;
    int code = load_scene(path, NULL, &recorded);
    if (!code)
        code = load_scene(path, changes, &changed);
    sk_path where;
    if (!code && !same_simulation(changed, recorded, &where))
        code = complain("%s changes %s, and %s was started with another value; a resumed run may change time.end, "
                        "output and render only",
                        changes->backend->given && !strcmp(where.text, "backend") ? "--backend" : "--set", where.text,
                        path);

    /* Compare with the scene that the command names. */
    if (!code && scene_path)
        code = compare_with_argument(folder, scene_path, changes, quiet, changed);

    free(path);
    if (recorded)
        selkie_scene_free(recorded);
    if (code && changed)
        selkie_scene_free(changed);
    else
        *scene = changed;
    return code;
}

/* Renamed, not removed: later checkpoints take its name. */
static void set_aside(const char *path)
{
    char *aside = NULL;
    if (asprintf(&aside, "%s.damaged", path) < 0)
        return;
    rename(path, aside);
    free(aside);
}

int resume_from_checkpoint(const run_folder *folder, const selkie_scene *scene, const selkie_world_options *options,
                           selkie_world **world, int64_t *step)
{
    *world = NULL;
    *step = -1;
    sk_file_list list;
    int code = run_folder_checkpoints(folder, &list);

    /* Try the checkpoints, newest first, until one loads. */
    for (size_t i = list.count; i-- > 0 && !code && !*world;) {
        selkie_error error = {0};
        const char *path = list.files[i].path;
        /* A new world for each try: a checkpoint that was read in part leaves an invalid state. */
        if (selkie_world_create(scene, options, world, &error)) {
            *world = NULL;
            code = complain_error(&error);
            break;
        }
        selkie_code loaded = selkie_world_load(*world, path, &error);
        if (loaded == SELKIE_OK) {
            *step = list.files[i].number;
            continue;
        }

        /* Set aside a damaged checkpoint and go on; another error ends the search. */
        selkie_world_destroy(*world);
        *world = NULL;
        if (loaded == SELKIE_ERROR_FORMAT || loaded == SELKIE_ERROR_FILE) {
            complain("%s; it is set aside and %s", error.message,
                     i > 0 ? "the checkpoint before it is used" : "there is none before it");
            set_aside(path);
        } else {
            code = complain_error(&error);
        }
    }

    sk_file_list_free(&list);
    return code;
}

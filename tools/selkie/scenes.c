/* Finding, loading and planning scenes; `selkie list`. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "geom/shape.h"
#include "selkie_config.h"
#include "tool.h"

/* --- Scenes that come with the program --- */

int has_ending(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length > ending_length && !strcmp(text + length - ending_length, ending);
}

static int compare_scenes(const void *a, const void *b)
{
    return strcmp(((const known_scene *)a)->name, ((const known_scene *)b)->name);
}

static void add_scene(known_scenes *scenes, const char *path, const char *relative)
{
    known_scene scene = {.path = strdup(path), .name = strdup(relative)};
    if (scene.name)
        scene.name[strlen(relative) - strlen(".json")] = 0;
    for (size_t i = 0; scene.name && i < scenes->count; i++)
        if (!strcmp(scenes->items[i].name, scene.name)) {
            free(scene.path);
            free(scene.name);
            return;
        }
    known_scene *grown = realloc(scenes->items, sizeof *grown * (scenes->count + 1));
    if (grown)
        scenes->items = grown;
    if (!grown || !scene.path || !scene.name) {
        free(scene.path);
        free(scene.name);
        return;
    }
    const char *slash = strrchr(scene.name, '/');
    scene.short_name = slash ? slash + 1 : scene.name;
    scenes->items[scenes->count++] = scene;
}

/* Scene files at `root`/`relative` and below; `depth` bounds a folder that links to itself. */
static void collect_scenes(known_scenes *scenes, const char *root, const char *relative, int depth)
{
    char *folder = NULL;
    if (asprintf(&folder, "%s/%s", root, relative) < 0)
        return;
    DIR *entries = opendir(folder);
    free(folder);
    if (!entries)
        return;

    /* Add scene files and visit folders; hidden entries are skipped. */
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        char *inside = NULL, *path = NULL;
        if (asprintf(&inside, "%s%s%s", relative, *relative ? "/" : "", entry->d_name) < 0)
            break;
        if (asprintf(&path, "%s/%s", root, inside) < 0) {
            free(inside);
            break;
        }
        struct stat status;
        if (!stat(path, &status)) {
            if (S_ISDIR(status.st_mode) && depth < 4)
                collect_scenes(scenes, root, inside, depth + 1);
            else if (S_ISREG(status.st_mode) && has_ending(entry->d_name, ".json") &&
                     !has_ending(entry->d_name, ".schema.json"))
                add_scene(scenes, path, inside);
        }
        free(inside);
        free(path);
    }

    closedir(entries);
}

void find_known_scenes(known_scenes *scenes)
{
    memset(scenes, 0, sizeof *scenes);
    const char *places = getenv("SELKIE_SCENES");
    char *copy = places ? strdup(places) : NULL;
    for (char *rest = copy, *place; copy && (place = strsep(&rest, ":"));)
        if (*place)
            collect_scenes(scenes, place, "", 0);
    free(copy);
    collect_scenes(scenes, SELKIE_SOURCE_SCENES, "", 0);
    collect_scenes(scenes, SELKIE_INSTALLED_SCENES, "", 0);
    if (scenes->count)
        qsort(scenes->items, scenes->count, sizeof *scenes->items, compare_scenes);
}

void free_known_scenes(known_scenes *scenes)
{
    for (size_t i = 0; i < scenes->count; i++) {
        free(scenes->items[i].path);
        free(scenes->items[i].name);
    }
    free(scenes->items);
    memset(scenes, 0, sizeof *scenes);
}

static void complain_unknown_scene(const known_scenes *scenes, const char *wanted)
{
    const char **names = calloc(scenes->count + 1, sizeof *names);
    const char *meant = NULL;
    if (names) {
        int whole = strchr(wanted, '/') != NULL;
        for (size_t i = 0; i < scenes->count; i++)
            names[i] = whole ? scenes->items[i].name : scenes->items[i].short_name;
        meant = nearest_word(wanted, names, (int)scenes->count);
    }
    if (meant)
        complain("%s: no such file, and no scene of that name; did you mean '%s'?", wanted, meant);
    else
        complain("%s: no such file, and no scene of that name; 'selkie list' shows those that come with the program",
                 wanted);
    free(names);
}

char *find_scene(const char *wanted)
{
    struct stat status;
    if (!*wanted) {
        complain("SCENE is empty; it is a JSON file or a name that 'selkie list' shows");
        return NULL;
    }
    if (!stat(wanted, &status) && !S_ISDIR(status.st_mode))
        return strdup(wanted);
    known_scenes scenes;
    find_known_scenes(&scenes);
    char *found = NULL;
    for (int by_short_name = 0; by_short_name < 2 && !found; by_short_name++)
        for (size_t i = 0; i < scenes.count && !found; i++)
            if (!strcmp(by_short_name ? scenes.items[i].short_name : scenes.items[i].name, wanted))
                found = strdup(scenes.items[i].path);
    if (!found) {
        if (!stat(wanted, &status) && S_ISDIR(status.st_mode))
            complain("%s: is a folder; a scene is a JSON file or a name that 'selkie list' shows", wanted);
        else
            complain_unknown_scene(&scenes, wanted);
    }
    free_known_scenes(&scenes);
    return found;
}

char *scene_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path);
    char *dot = name ? strrchr(name, '.') : NULL;
    if (dot && dot != name)
        *dot = 0;
    return name;
}

/* --- Loading, meshes, plan --- */

const char *const backend_names[] = {[SELKIE_BACKEND_TUNED] = "tuned",
                                     [SELKIE_BACKEND_PLAIN] = "plain",
                                     [SELKIE_BACKEND_CUDA] = "cuda",
                                     [SELKIE_BACKEND_AUTO] = "auto",
                                     [SELKIE_BACKEND_AUTO + 1] = NULL};

static int is_given(const option_value *value)
{
    return value && value->given;
}

/* Whether --set gives this key. */
static int is_set(const option_value *set, const char *key)
{
    size_t length = strlen(key);
    for (int i = 0; set && i < set->given; i++)
        if (!strncmp(set->list[i], key, length) && set->list[i][length] == '=')
            return 1;
    return 0;
}

/* Two options for one value contradict each other. */
static int refuse_doubles(const scene_changes *changes)
{
    if (is_given(changes->end) && is_given(changes->frames))
        return complain("--end and --frames both set the end; give one of them");
    if ((is_given(changes->end) || is_given(changes->frames)) && is_set(changes->set, "time.end"))
        return complain("%s and --set time.end both set the end; give one of them",
                        is_given(changes->end) ? "--end" : "--frames");
    if (is_given(changes->backend) && is_set(changes->set, "backend"))
        return complain("--backend and --set backend both set the backend; give one of them");
    return EXIT_GOOD;
}

int load_scene(const char *path, const scene_changes *changes, selkie_scene **scene)
{
    static const scene_changes none;
    selkie_error error = {0};
    changes = changes ? changes : &none;
    const option_value *set = changes->set;
    int code = refuse_doubles(changes);
    if (code)
        return code;
    complain_of_scene(path);
    if (selkie_scene_load(path, set ? set->given : 0, set ? set->list : NULL, scene, &error))
        return complain_error(&error);
    if (is_given(changes->end))
        (*scene)->time.end = changes->end->number;
    if (is_given(changes->frames))
        (*scene)->time.end = (double)changes->frames->integer / (*scene)->time.fps;
    if (is_given(changes->backend))
        (*scene)->backend = (selkie_backend)changes->backend->integer;
    if (selkie_scene_check(*scene, &error)) {
        selkie_scene_free(*scene);
        *scene = NULL;
        return complain_error(&error);
    }
    return EXIT_GOOD;
}

typedef struct mesh_visit {
    int (*visit)(const char *what, const selkie_shape *mesh, void *context);
    void *context;
} mesh_visit;

static int visit_shape(const char *what, const selkie_shape *shape, const mesh_visit *visit)
{
    if (shape->kind == SELKIE_SHAPE_MESH)
        return visit->visit(what, shape, visit->context);
    int result = 0;
    for (int i = 0; shape->kind == SELKIE_SHAPE_UNION && i < shape->child_count && !result; i++) {
        char inside[256];
        snprintf(inside, sizeof inside, "%.200s.children[%d]", what, i);
        result = visit_shape(inside, &shape->children[i], visit);
    }
    return result;
}

/* The shape that a change brings. */
static int visit_change(int number, const selkie_change_def *change, const mesh_visit *all)
{
    const struct {
        selkie_change_kind kind;
        const char *key;
        const selkie_shape *shape;
    } parts[] = {
        {SELKIE_CHANGE_OBSTACLE, "obstacle.shape", &change->obstacle.shape},
        {SELKIE_CHANGE_SOURCE, "source.shape", &change->source.shape},
        {SELKIE_CHANGE_DRAIN, "drain.shape", &change->drain.shape},
        {SELKIE_CHANGE_LIQUID, "liquid.shape", &change->liquid.shape},
        {SELKIE_CHANGE_CLEAR, "shape", &change->shape},
        {SELKIE_CHANGE_BODY, "body.shape", &change->body.shape},
    };
    char what[64];
    int result = 0;
    for (size_t p = 0; p < sizeof parts / sizeof *parts && !result; p++)
        if (parts[p].kind == change->kind) {
            snprintf(what, sizeof what, "changes[%d].%s", number, parts[p].key);
            result = visit_shape(what, parts[p].shape, all);
        }
    return result;
}

int visit_meshes(const selkie_scene *scene, int (*visit)(const char *what, const selkie_shape *mesh, void *context),
                 void *context)
{
    mesh_visit all = {visit, context};
    char what[64];
    int result = 0;
    for (int i = 0; i < scene->liquid_count && !result; i++) {
        snprintf(what, sizeof what, "liquids[%d].shape", i);
        result = visit_shape(what, &scene->liquids[i].shape, &all);
    }
    for (int i = 0; i < scene->source_count && !result; i++) {
        snprintf(what, sizeof what, "sources[%d].shape", i);
        result = visit_shape(what, &scene->sources[i].shape, &all);
    }
    for (int i = 0; i < scene->drain_count && !result; i++) {
        snprintf(what, sizeof what, "drains[%d].shape", i);
        result = visit_shape(what, &scene->drains[i].shape, &all);
    }
    for (int i = 0; i < scene->obstacle_count && !result; i++) {
        snprintf(what, sizeof what, "obstacles[%d].shape", i);
        result = visit_shape(what, &scene->obstacles[i].shape, &all);
    }
    for (int i = 0; i < scene->body_count && !result; i++) {
        snprintf(what, sizeof what, "bodies[%d].shape", i);
        result = visit_shape(what, &scene->bodies[i].shape, &all);
    }
    for (int i = 0; i < scene->object_count && !result; i++) {
        snprintf(what, sizeof what, "objects[%d].shape", i);
        result = visit_shape(what, &scene->objects[i].shape, &all);
        for (int r = 0; r < scene->objects[i].region_count && !result; r++) {
            snprintf(what, sizeof what, "objects[%d].regions[%d]", i, r);
            result = visit_shape(what, &scene->objects[i].regions[r], &all);
        }
    }
    for (int i = 0; i < scene->change_count && !result; i++)
        result = visit_change(i, &scene->changes[i], &all);
    return result;
}

selkie_code inspect_mesh(const selkie_scene *scene, const char *what, const selkie_shape *mesh, char warning[256],
                         selkie_error *error)
{
    double up[3];
    selkie_scene_up(scene, up);
    sk_shape *shape = NULL;
    warning[0] = 0;
    const sk_shape_options options = {
        .dimension = scene->domain.dimension, .up = up, .folder = scene->folder, .what = what, .warning = warning};
    selkie_code code = sk_shape_create(mesh, &options, &shape, error);
    if (code == SELKIE_OK)
        sk_shape_destroy(shape);
    return code;
}

int plan_scene(const selkie_scene *scene, int threads, selkie_plan *plan, size_t *available)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_error error = {0};
    if (selkie_scene_plan(scene, &options, plan, &error))
        return complain_error(&error);
    *available = sk_memory_available();
    return EXIT_GOOD;
}

/* --- selkie list --- */

enum { list_paths };
static const option_spec list_options[] = {
    [list_paths] = {.name = "paths", .kind = OPTION_FLAG, .help = "print the path of each file as well"},
};

static int run_list(const tool_arguments *arguments)
{
    known_scenes scenes;
    find_known_scenes(&scenes);
    if (!scenes.count) {
        free_known_scenes(&scenes);
        return complain("no scenes found in %s or %s; set SELKIE_SCENES to the folder that holds them",
                        SELKIE_SOURCE_SCENES, SELKIE_INSTALLED_SCENES);
    }
    int width = 0;
    for (size_t i = 0; i < scenes.count; i++)
        if ((int)strlen(scenes.items[i].name) > width)
            width = (int)strlen(scenes.items[i].name);
    for (size_t i = 0; i < scenes.count; i++) {
        selkie_scene *scene = NULL;
        selkie_error error = {0};
        selkie_code code = selkie_scene_load(scenes.items[i].path, 0, NULL, &scene, &error);
        printf("%-*s  %s\n", width, scenes.items[i].name,
               code ? "(cannot be read: see 'selkie check')" : (scene->title ? scene->title : ""));
        if (arguments->values[list_paths].given)
            printf("%*s  %s\n", width, "", scenes.items[i].path);
        selkie_scene_free(scene);
    }
    free_known_scenes(&scenes);
    return EXIT_GOOD;
}

const tool_command list_command = {
    .name = "list",
    .synopsis = "",
    .summary = "show the scenes that come with the program",
    .description = "Prints the name and the title of each scene that comes with the program, one a line. A name works "
                   "wherever a scene file does, with or without its folder.\n"
                   "\nThe folders of the environment variable SELKIE_SCENES (separated by ':') are searched first.",
    .options = list_options,
    .option_count = sizeof list_options / sizeof *list_options,
    .examples = "  selkie list\n",
    .run = run_list,
};

#define _GNU_SOURCE
#include "studio_run.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON && SELKIE_HAVE_WEBSOCKETS

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "defs/motion_file.h"
#include "world/scene_changes.h"

enum { most_runs = 500 };

/* --- The list --- */

static void add_run(known_scenes *runs, const char *folder, const char *name)
{
    char *path = NULL, *frames = NULL;
    sk_file_list list = {0};
    if (asprintf(&path, "%s/%s/scene.json", folder, name) < 0)
        return;
    if (asprintf(&frames, "%s/%s/" SK_FRAMES_FOLDER, folder, name) < 0) {
        free(path);
        return;
    }
    const int good = sk_file_exists(path) && sk_folder_list_frames(frames, &list, NULL) == SELKIE_OK && list.count > 0;
    known_scene *longer = good ? realloc(runs->items, (runs->count + 1) * sizeof *longer) : NULL;
    char *own = longer ? strdup(name) : NULL;
    if (longer)
        runs->items = longer;
    sk_file_list_free(&list);
    free(frames);
    if (own)
        runs->items[runs->count++] = (known_scene){path, own, own};
    else
        free(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const known_scene *)a)->name, ((const known_scene *)b)->name);
}

void find_runs(const char *folder, known_scenes *runs)
{
    memset(runs, 0, sizeof *runs);
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && runs->count < most_runs && (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            add_run(runs, folder, entry->d_name);
    if (directory)
        closedir(directory);
    if (runs->count)
        qsort(runs->items, runs->count, sizeof *runs->items, by_name);
}

/* --- Frames --- */

/* The scene as it starts. */
static selkie_code read_scene(studio_run *run, selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(selkie_scene_load(run->path, 0, NULL, &scene, error));
    const selkie_code code = sk_scene_load_motions(scene, error);
    if (code != SELKIE_OK) {
        selkie_scene_free(scene);
        return code;
    }
    selkie_scene_free(run->scene);
    run->scene = scene;
    run->scene_step = 0;
    return SELKIE_OK;
}

/* A table of the run's folder, where it is there. */
static selkie_code read_table(const studio_run *run, const char *name, sk_table **table, selkie_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%.*s%s", (int)(strlen(run->path) - strlen("scene.json")), run->path, name) < 0)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    const selkie_code code = sk_file_exists(path) ? sk_table_read(path, table, error) : SELKIE_OK;
    free(path);
    return code;
}

selkie_code studio_run_open(studio_run *run, const char *scene_path, selkie_error *error)
{
    char *frames = NULL;
    memset(run, 0, sizeof *run);
    run->path = strdup(scene_path);
    if (!run->path ||
        asprintf(&frames, "%.*s" SK_FRAMES_FOLDER, (int)(strlen(scene_path) - strlen("scene.json")), scene_path) < 0) {
        studio_run_close(run);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    }
    selkie_code code = sk_folder_list_frames(frames, &run->frames, error);
    if (code == SELKIE_OK && !run->frames.count)
        code = sk_fail(error, SELKIE_ERROR_INPUT, "the run has no frames that can be read");
    if (code == SELKIE_OK)
        code = read_scene(run, error);
    if (code == SELKIE_OK)
        code = read_table(run, "bodies.csv", &run->bodies, error);
    if (code == SELKIE_OK && run->scene->change_count)
        code = read_table(run, "stats.csv", &run->steps, error);
    free(frames);
    if (code != SELKIE_OK)
        studio_run_close(run);
    return code;
}

void studio_run_close(studio_run *run)
{
    sk_file_list_free(&run->frames);
    sk_table_free(run->bodies);
    sk_table_free(run->steps);
    sk_particles_data_free(run->data);
    selkie_scene_free(run->scene);
    free(run->path);
    memset(run, 0, sizeof *run);
}

/* The pose of a body in a frame, from the table. */
static void body_of_run(void *context, int body, studio_body_pose *pose)
{
    static const char *const names[] = {"frame", "body", "x", "y", "z", "qw", "qx", "qy", "qz"};
    const studio_run *run = context;
    const double *columns[9];
    for (int c = 0; c < 9; c++)
        if (!run->bodies || !(columns[c] = sk_table_column(run->bodies, names[c])))
            return;
    for (int64_t row = 0; row < run->bodies->row_count; row++)
        if ((int64_t)columns[0][row] == run->frames.files[run->at].number && (int)columns[1][row] == body) {
            for (int i = 0; i < 3; i++)
                pose->position[i] = columns[2 + i][row];
            for (int i = 0; i < 4; i++)
                pose->quaternion[i] = columns[5 + i][row];
        }
}

static double fastest(const sk_particles_data *data)
{
    double square = 0;
    for (int64_t p = 0; data->velocity && p < data->count; p++) {
        const float *v = &data->velocity[3 * p];
        square = fmax(square, (double)v[0] * (double)v[0] + (double)v[1] * (double)v[1] + (double)v[2] * (double)v[2]);
    }
    return sqrt(square);
}

/* Bodies and obstacles that came, moved or went before the frame. A frame before the last one starts anew. */
static selkie_code change_solids(studio_run *run, int *changed, selkie_error *error)
{
    int comes_back = 0;
    sk_step_times times = {0};
    *changed = 0;
    if (!run->steps)
        return SELKIE_OK;
    times = (sk_step_times){run->steps->row_count, sk_table_column(run->steps, "step"),
                            sk_table_column(run->steps, "time")};
    const int64_t step = sk_step_at(&times, run->time);
    if (step < run->scene_step) {
        SK_TRY(read_scene(run, error));
        comes_back = 1;
    }
    SK_TRY(sk_scene_change_solids(run->scene, step, &times, changed, error));
    run->scene_step = step;
    *changed |= comes_back;
    return SELKIE_OK;
}

selkie_code studio_run_read(studio_run *run, int *changed, selkie_error *error)
{
    const sk_numbered_file *file = &run->frames.files[run->at];
    sk_particles_data_free(run->data);
    run->data = NULL;
    *changed = 0;
    SK_TRY(sk_particles_read(file->path, &run->data, error));
    sk_particles_turn_back(run->data);
    sk_particles_rebase(run->data, run->scene->domain.origin);
    run->time = isfinite(run->data->time) ? run->data->time : (double)file->number / run->scene->time.fps;
    return change_solids(run, changed, error);
}

studio_blob *studio_run_blob(studio_run *run, const studio_solids *solids, studio_frame_numbers numbers)
{
    const sk_particles_data *data = run->data;
    if (!data)
        return NULL;
    const studio_view view = {.scene = run->scene,
                              .time = run->time,
                              .step = (double)run->frames.files[run->at].number,
                              .count = data->count,
                              .position = data->position,
                              .velocity = data->velocity,
                              .stride = 3 * sizeof(float),
                              .material = data->material,
                              .max_speed = fastest(data),
                              .body = body_of_run,
                              .context = run};
    studio_blob *blob = studio_view_blob(&view, solids, numbers);
    sk_particles_data_free(run->data);
    run->data = NULL;
    return blob;
}

#endif

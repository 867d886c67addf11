#define _GNU_SOURCE
#include "studio_run.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON && SELKIE_HAVE_WEBSOCKETS

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/particles_file.h"

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

selkie_code studio_run_open(studio_run *run, const char *scene_path, selkie_error *error)
{
    const size_t length = strlen(scene_path) - strlen("scene.json");
    char *frames = NULL, *bodies = NULL;
    memset(run, 0, sizeof *run);
    if (asprintf(&frames, "%.*s" SK_FRAMES_FOLDER, (int)length, scene_path) < 0)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
    selkie_code code = sk_folder_list_frames(frames, &run->frames, error);
    if (code == SELKIE_OK && !run->frames.count)
        code = sk_fail(error, SELKIE_ERROR_INPUT, "the run has no frames that can be read");
    if (code == SELKIE_OK && asprintf(&bodies, "%.*sbodies.csv", (int)length, scene_path) > 0 && sk_file_exists(bodies))
        code = sk_table_read(bodies, &run->bodies, error);
    free(frames);
    free(bodies);
    if (code != SELKIE_OK)
        studio_run_close(run);
    return code;
}

void studio_run_close(studio_run *run)
{
    sk_file_list_free(&run->frames);
    sk_table_free(run->bodies);
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

selkie_code studio_run_blob(const studio_run *run, const selkie_scene *scene, const studio_solids *solids,
                            studio_frame_numbers numbers, studio_blob **blob, double *time, selkie_error *error)
{
    sk_particles_data *data;
    const sk_numbered_file *file = &run->frames.files[run->at];
    *blob = NULL;
    SK_TRY(sk_particles_read(file->path, &data, error));
    sk_particles_turn_back(data);
    sk_particles_rebase(data, scene->domain.origin);
    *time = isfinite(data->time) ? data->time : (double)file->number / scene->time.fps;
    const studio_view view = {.scene = scene,
                              .time = *time,
                              .step = (double)file->number,
                              .count = data->count,
                              .position = data->position,
                              .velocity = data->velocity,
                              .stride = 3 * sizeof(float),
                              .material = data->material,
                              .max_speed = fastest(data),
                              .body = body_of_run,
                              .context = (void *)(uintptr_t)run};
    *blob = studio_view_blob(&view, solids, numbers);
    sk_particles_data_free(data);
    return *blob ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "no memory");
}

#endif

/* `selkie whitewater`: spray, foam and bubbles of a run, made from its frames. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/particles_file.h"
#include "progress.h"
#include "run_folder.h"
#include "tool.h"
#include "whitewater/whitewater.h"

enum { whitewater_threads, whitewater_force, whitewater_quiet, whitewater_option_count };

static const option_spec whitewater_options[] = {
    [whitewater_threads] = {.name = "threads",
                            .letter = 'j',
                            .kind = OPTION_INTEGER,
                            .value = "N",
                            .least = 1,
                            .most = 1024,
                            .help = "threads to use; default all cores. Results do not depend on it"},
    [whitewater_force] = {.name = "force", .kind = OPTION_FLAG, .help = "make it again where it is complete"},
    [whitewater_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

/* A run that is being given its whitewater. */
typedef struct job {
    selkie_scene *scene;
    sk_file_list frames;
    char *folder; /* of the frames */
    sk_whitewater water;
    double last_time; /* s, of the frame before; NaN = none */
} job;

static int frame_path(const job *j, int64_t number, char path[4096])
{
    if (snprintf(path, 4096, "%s/" SK_WHITEWATER_PREFIX "%04lld.ply", j->folder, (long long)number) >= 4096)
        return complain("%s: the name is too long", j->folder);
    return EXIT_GOOD;
}

static int write_whitewater(const job *j, int64_t number, double time)
{
    const sk_whitewater *w = &j->water;
    sk_whitewater_particle nothing = {.age = 0};
    sk_whitewater_particle *first = w->count ? w->particles : &nothing;
    const size_t stride = sizeof *first;
    const selkie_attribute_view extras[] = {{"role", SELKIE_UINT32, 1, stride, &first->kind, {0}},
                                            {"age", SELKIE_FLOAT32, 1, stride, &first->age, {0}}};
    int cells[3];
    sk_frame frame = {.dimension = 3,
                      .time = time,
                      .count = (int64_t)w->count,
                      .position = first->position,
                      .position_stride = stride,
                      .velocity = first->velocity,
                      .velocity_stride = stride,
                      .cell_size = selkie_scene_cells(j->scene, cells),
                      .names = j->scene->output.names,
                      .up = j->scene->output.up,
                      .extra_count = 2,
                      .extra = extras};
    frame.particle_radius = 0.1 * frame.cell_size;
    memcpy(frame.origin, j->scene->domain.origin, sizeof frame.origin);
    selkie_scene_up(j->scene, frame.scene_up);
    char path[4096];
    selkie_error error = {0};
    int code = frame_path(j, number, path);
    if (!code && sk_particles_write(&frame, path, &error))
        code = complain_error(&error);
    return code;
}

static int step_frame(job *j, const sk_numbered_file *file)
{
    sk_particles_data *data = NULL;
    selkie_error error = {0};
    if (sk_particles_read(file->path, &data, &error))
        return complain_error(&error);
    int code = EXIT_GOOD;
    if (!data->velocity)
        code = complain("%s: no velocities in it, which whitewater needs", file->path);
    sk_particles_turn_back(data);
    sk_particles_rebase(data, j->scene->domain.origin);
    const double time = isfinite(data->time) ? data->time : (double)file->number / j->scene->time.fps;
    if (!code && isfinite(j->last_time) && time > j->last_time) {
        const sk_surface_particles liquid = {(size_t)data->count, data->position, 12, data->velocity, 12};
        if (sk_whitewater_step(&j->water, &liquid, file->number, time, time - j->last_time, &error))
            code = complain_error(&error);
    }
    if (!code)
        code = write_whitewater(j, file->number, time);
    j->last_time = time;
    sk_particles_data_free(data);
    return code;
}

static int open_job(job *j, const char *path, int threads)
{
    run_folder folder = {.lock = -1};
    selkie_error error = {0};
    int code = run_folder_name(&folder, path);
    if (code)
        return code;
    char *scene = run_folder_path(&folder, "scene.json");
    j->folder = run_folder_path(&folder, SK_FRAMES_FOLDER);
    if (!scene || !j->folder)
        code = complain("out of memory");
    else if (selkie_scene_load(scene, 0, NULL, &j->scene, &error) ||
             sk_whitewater_init(&j->water, j->scene, threads, &error) ||
             sk_folder_list_frames(j->folder, &j->frames, &error))
        code = complain_error(&error);
    else if (!j->frames.count)
        code = complain("%s: no particle files to make whitewater of (.ply or .skp)", j->folder);
    free(scene);
    run_folder_close(&folder);
    return code;
}

/* Whether every frame has its whitewater. Whitewater goes on from frame to frame: a part of it cannot be made alone. */
static int is_complete(const job *j)
{
    for (size_t i = 0; i < j->frames.count; i++) {
        char path[4096];
        if (frame_path(j, j->frames.files[i].number, path) || !sk_file_exists(path))
            return 0;
    }
    return 1;
}

int make_whitewater(const char *folder, int threads, int force, int quiet)
{
    job j = {.last_time = NAN};
    int code = open_job(&j, folder, threads);
    const int skip = !code && !force && is_complete(&j);
    progress_line progress;
    progress_start(&progress, quiet, 0, 0, 0);
    progress.total_frames = (int64_t)j.frames.count;
    for (size_t i = 0; i < j.frames.count && !code && !skip; i++) {
        code = step_frame(&j, &j.frames.files[i]);
        progress_count(&progress, "whitewater", (int64_t)i + 1);
    }
    progress_break(&progress);
    char count[32];
    if (!code && !quiet && skip)
        printf("whitewater is there for all %zu frames\n", j.frames.count);
    else if (!code && !quiet)
        printf("whitewater of %zu frames, %s particles in the last: %s/" SK_WHITEWATER_PREFIX "NNNN.ply\n",
               j.frames.count, format_count((int64_t)j.water.count, count), j.folder);
    sk_file_list_free(&j.frames);
    sk_whitewater_free(&j.water);
    selkie_scene_free(j.scene);
    free(j.folder);
    return code;
}

static int run_whitewater(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    return make_whitewater(arguments->operands[0], (int)values[whitewater_threads].integer,
                           values[whitewater_force].given, values[whitewater_quiet].given);
}

const tool_command whitewater_command = {
    .name = "whitewater",
    .synopsis = "DIR",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "make spray, foam and bubbles of a run",
    .description =
        "Makes whitewater of the frames that the 3D run in DIR has written so far, into DIR/frames. `selkie render` "
        "draws it. The scene's whitewater keys say how much; the same frames and seed give the same whitewater.",
    .options = whitewater_options,
    .option_count = whitewater_option_count,
    .examples = "  selkie whitewater out/dam && selkie render out/dam\n",
    .run = run_whitewater,
};

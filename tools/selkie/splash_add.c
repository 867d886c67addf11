/* `selkie splash add`: droplets of a run that is there, made from its frames (Um et al. 2018, section 4.2).
 *
 * The frames give velocity and fill as a coarse run of the same cells would have them. Particles near the surface make
 * droplets at the rates of the model; these fly by themselves and end where they meet liquid, an obstacle or the end of
 * the domain.
 * The run itself is left as it is.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "defs/materials.h"
#include "io/made_with.h"
#include "io/particles_file.h"
#include "learn/network_kernels.h"
#include "learn/splash_model.h"
#include "progress.h"
#include "run_folder.h"
#include "splash.h"
#include "splash_samples.h"

enum { SUBSTEPS = 4 };

typedef struct droplet {
    float position[3], velocity[3], age; /* m, m/s, s */
    uint32_t id;                         /* of the particle that made it */
} droplet;

/* A run that is being given droplets. */
typedef struct job {
    const splash_add_options *options;
    selkie_scene *scene;
    sk_splash_model model;
    splash_sampler *sampler;
    sk_file_list frames;
    char *folder; /* of the frames */
    char model_path[4096];
    droplet *droplets;
    size_t count, capacity;
    double *busy; /* [cells] s, until when a cell makes no other droplet */
    double last_time;
    int64_t made;
} job;

static int droplets_path(const job *j, int64_t number, char path[4096])
{
    selkie_error error = {0};
    return sk_numbered_path(path, 4096, j->folder, SK_DROPLETS_PREFIX, number, ".ply", &error) ? complain_error(&error)
                                                                                               : EXIT_GOOD;
}

static int write_droplets(const job *j, int64_t number, double time)
{
    droplet nothing = {.age = 0.0f}, *first = j->count ? j->droplets : &nothing;
    const size_t stride = sizeof *first;
    const selkie_attribute_view extras[] = {{"splash", SELKIE_FLOAT32, 1, stride, &first->age, {0}}};
    int cells[3];
    sk_frame frame = {.dimension = j->scene->domain.dimension,
                      .time = time,
                      .count = (int64_t)j->count,
                      .position = first->position,
                      .position_stride = stride,
                      .velocity = first->velocity,
                      .velocity_stride = stride,
                      .id = &first->id,
                      .id_stride = stride,
                      .cell_size = selkie_scene_cells(j->scene, cells),
                      .names = j->scene->output.names,
                      .up = j->scene->output.up,
                      .extra_count = 1,
                      .extra = extras};
    char path[4096];
    selkie_error error = {0};
    /* The samples of a splash share the liquid of its particle. */
    const int usual = frame.dimension == 2 ? 9 : 8, own = j->scene->particles.per_cell;
    frame.particle_radius =
        0.5 * frame.cell_size * pow((double)(own ? own : usual) * j->options->samples, -1.0 / frame.dimension);
    memcpy(frame.origin, j->scene->domain.origin, sizeof frame.origin);
    selkie_scene_up(j->scene, frame.scene_up);
    int code = droplets_path(j, number, path);
    if (!code && sk_particles_write(&frame, path, &error))
        code = complain_error(&error);
    return code;
}

/* --- Flight --- */

/* Moves the droplets to the time of a frame whose fields the sampler has; drops those that have met liquid or an
 * obstacle. */
static void fly(job *j, double dt)
{
    const float part = (float)(dt / SUBSTEPS), drag = (float)j->scene->splash.air_drag;
    size_t kept = 0;
    for (size_t n = 0; n < j->count; n++) {
        droplet d = j->droplets[n];
        int ends = 0;
        for (int k = 0; k < SUBSTEPS && !ends; k++) {
            float square = 0.0f;
            for (int a = 0; a < 3; a++) {
                d.position[a] += part * (d.velocity[a] + 0.5f * part * (float)j->scene->gravity[a]);
                d.velocity[a] += part * (float)j->scene->gravity[a];
                square += d.velocity[a] * d.velocity[a];
            }
            for (int a = 0; a < 3; a++)
                d.velocity[a] /= 1.0f + drag * sqrtf(square) * part;
            splash_sampler_wrap(j->sampler, d.position);
            ends = splash_sampler_in_solid(j->sampler, d.position);
        }
        d.age += (float)dt;
        const float fill = splash_sampler_fill(j->sampler, d.position);
        if (!ends && fill >= 0.0f && fill < 0.5f)
            j->droplets[kept++] = d;
    }
    j->count = kept;
}

/* --- New droplets --- */

static int reserve(job *j, size_t more)
{
    if (j->count + more <= j->capacity)
        return 1;
    const size_t capacity = 2 * j->capacity + more + 256;
    droplet *grown = realloc(j->droplets, capacity * sizeof *grown);
    j->droplets = grown ? grown : j->droplets;
    j->capacity = grown ? capacity : j->capacity;
    return grown != NULL;
}

/* Droplets of one candidate, each with its own change of velocity. */
static int make_droplets(job *j, const splash_candidate *c, const float *features, const float *velocity, int64_t frame)
{
    const int dimension = j->model.dimension;
    float outputs[6];
    if (!reserve(j, (size_t)j->options->samples))
        return 0;
    sk_network_evaluate(j->model.modifier, features, 1, outputs, 1);
    for (int n = 0; n < j->options->samples; n++) {
        droplet *d = &j->droplets[j->count++];
        float random[3], change[3];
        for (int k = 0; k < 3; k++)
            random[k] = j->scene->splash.mean_velocity ? 0.5f
                                                       : sk_random_float(j->options->seed + (uint64_t)frame, c->id,
                                                                         10u + 3u * (uint64_t)n + (uint64_t)k);
        sk_splash_change(&j->model, outputs, random, change);
        *d = (droplet){.id = c->id};
        memcpy(d->position, c->position, sizeof d->position);
        memcpy(d->velocity, velocity, sizeof d->velocity);
        for (int k = 0; k < dimension; k++)
            d->velocity[c->frame.axis[k]] += c->frame.sign[k] * change[k] * (float)splash_sampler_speed(j->sampler);
    }
    j->made += j->options->samples;
    return 1;
}

/* Does a candidate make a splash within dt? The hazard of the model, drawn anew in each frame. */
static int splashes(const job *j, const splash_candidate *c, float logit, double dt, int64_t frame)
{
    if (sk_learn_sigmoid(logit) < (float)j->options->threshold)
        return 0;
    const double p = fmin(sk_splash_probability(&j->model, logit), 0.999);
    const double hazard = -log1p(-p) * j->options->rate * dt / j->model.duration;
    return sk_random_float(j->options->seed + (uint64_t)frame, c->id, 3) < 1.0 - exp(-hazard);
}

static int add_new(job *j, const splash_particles *particles, double time, double dt, int64_t frame)
{
    enum { ROWS = 1024 };
    const splash_candidate *candidates;
    const float *features;
    float logits[ROWS];
    int64_t count;
    int width;
    if (!splash_sampler_search(j->sampler, particles, &count, &candidates, &features, &width))
        return complain("out of memory");
    fly(j, dt);
    for (int64_t first = 0; first < count; first += ROWS) {
        const int rows = count - first < ROWS ? (int)(count - first) : ROWS;
        sk_network_evaluate(j->model.classifier, features + first * width, rows, logits, j->options->threads);
        for (int r = 0; r < rows; r++) {
            const splash_candidate *c = &candidates[first + r];
            if (j->busy[c->cell] > time + 1e-9 || !splashes(j, c, logits[r], dt, frame))
                continue;
            j->busy[c->cell] = time + j->model.duration;
            if (!make_droplets(j, c, features + (first + r) * width, particles->velocity + 3 * c->particle, frame))
                return complain("out of memory");
        }
    }
    return EXIT_GOOD;
}

static int step_frame(job *j, const sk_numbered_file *file)
{
    sk_particles_data *data = NULL;
    selkie_error error = {0};
    if (sk_particles_read(file->path, &data, &error))
        return complain_error(&error);
    int code = EXIT_GOOD;
    if (!data->velocity)
        code = complain("%s: no velocities in it, which splashes need", file->path);
    sk_particles_turn_back(data);
    sk_particles_rebase(data, j->scene->domain.origin);
    const double time = isfinite(data->time) ? data->time : (double)file->number / j->scene->time.fps;
    const double dt = isfinite(j->last_time) && time > j->last_time ? time - j->last_time : 1.0 / j->scene->time.fps;
    const splash_particles particles = {data->count, data->position, data->velocity, data->id, time};
    if (!code)
        code = add_new(j, &particles, time, dt, file->number);
    if (!code)
        code = write_droplets(j, file->number, time);
    j->last_time = time;
    sk_particles_data_free(data);
    return code;
}

/* --- The command --- */

static int open_model(job *j)
{
    char *path = j->model_path;
    selkie_error error = {0};
    const selkie_scene *scene = j->scene;
    const int own = scene->splashes && scene->splashes[0];
    const char *name = j->options->model ? j->options->model : own ? scene->splashes : "default";
    sk_splash_model_find(name, j->options->model ? NULL : scene->folder, scene->domain.dimension, path,
                         sizeof j->model_path);
    if (sk_splash_model_read(path, &j->model, &error))
        return complain_error(&error);
    if (j->model.dimension != scene->domain.dimension)
        return complain("%s: was trained in %dD, but the run is in %dD", path, j->model.dimension,
                        scene->domain.dimension);
    int cells[3];
    const double h = selkie_scene_cells(scene, cells);
    if (!j->options->quiet && (h < 0.7 * j->model.cell_low || h > 1.4 * j->model.cell_high))
        fprintf(stderr, "selkie: cells of %.3g m are outside those that the model was trained for, %.3g to %.3g m\n", h,
                j->model.cell_low, j->model.cell_high);
    selkie_scene coarse = *scene;
    if (!(sk_scene_surface_tension(scene) > 0.0))
        coarse.surface_tension = j->model.tension;
    j->sampler = splash_sampler_open(&coarse, 1, 1.0, 1);
    if (j->sampler)
        splash_sampler_use(j->sampler, j->model.reach, j->model.velocity_reach);
    j->busy = j->sampler ? calloc(splash_sampler_cells(j->sampler), sizeof *j->busy) : NULL;
    return j->busy ? EXIT_GOOD : complain("out of memory");
}

static int open_job(job *j)
{
    run_folder folder = {.lock = -1};
    selkie_error error = {0};
    int code = run_folder_name(&folder, j->options->folder);
    if (code)
        return code;
    char *scene = run_folder_path(&folder, "scene.json");
    j->folder = run_folder_path(&folder, SK_FRAMES_FOLDER);
    if (!scene || !j->folder)
        code = complain("out of memory");
    else if (selkie_scene_load(scene, 0, NULL, &j->scene, &error) ||
             sk_folder_list_frames(j->folder, &j->frames, &error))
        code = complain_error(&error);
    else if (!j->frames.count)
        code = complain("%s: no particle files to make splashes of (.ply or .skp)", j->folder);
    else if (j->scene->splashes && j->scene->splashes[0] && j->scene->splash.pairs)
        code = complain("%s: its frames have the droplets of splash.pairs; run the scene without that key",
                        j->options->folder);
    else
        code = open_model(j);
    free(scene);
    run_folder_close(&folder);
    return code;
}

/* Marks droplets that were made with other options. */
static int compare_options(const job *j)
{
    const splash_add_options *o = j->options;
    char line[4352];
    selkie_error error = {0};
    snprintf(line, sizeof line, "%s, samples %d, rate %.9g, threshold %.9g, seed %llu, mean_velocity %d, air_drag %.9g",
             j->model_path, o->samples, o->rate, o->threshold, (unsigned long long)o->seed,
             j->scene->splash.mean_velocity, j->scene->splash.air_drag);
    const sk_made_with made = {
        .record = "made_with_splash.txt", .prefix = SK_DROPLETS_PREFIX, .ending = ".ply", .line = line};
    return sk_made_with_update(j->folder, &made, &error) ? complain_error(&error) : EXIT_GOOD;
}

/* Whether every frame has its droplets. They go on from frame to frame: a part of them cannot be made alone. */
static int is_complete(const job *j)
{
    for (size_t i = 0; i < j->frames.count; i++) {
        char path[4096];
        if (droplets_path(j, j->frames.files[i].number, path) || !sk_file_exists(path) || sk_made_with_stale(path))
            return 0;
    }
    return 1;
}

int splash_add(const splash_add_options *options)
{
    job j = {.options = options, .last_time = NAN};
    int code = open_job(&j);
    if (!code)
        code = compare_options(&j);
    const int skip = !code && !options->force && is_complete(&j);
    progress_line progress;
    progress_start(&progress, options->quiet, 0, 0, 0);
    progress.total_frames = (int64_t)j.frames.count;
    for (size_t i = 0; i < j.frames.count && !code && !skip; i++) {
        code = step_frame(&j, &j.frames.files[i]);
        progress_count(&progress, "splashes", (int64_t)i + 1);
    }
    progress_break(&progress);
    char made[32], last[32];
    if (!code && !options->quiet && skip)
        printf("droplets are there for all %zu frames; --force makes them again\n", j.frames.count);
    else if (!code && !options->quiet)
        printf("%s droplets made in %zu frames, %s in the last: %s/" SK_DROPLETS_PREFIX "NNNN.ply\n",
               format_count(j.made, made), j.frames.count, format_count((int64_t)j.count, last), j.folder);
    if (options->made)
        *options->made = j.made;
    sk_file_list_free(&j.frames);
    splash_sampler_close(j.sampler);
    sk_splash_model_free(&j.model);
    selkie_scene_free(j.scene);
    free(j.busy);
    free(j.droplets);
    free(j.folder);
    return code;
}

/* Cost of splashes: networks for 100,000 candidates, and a scene with splashes beside the same without them.
 *
 * Usage: bench_splash [SCENE.json] [--from S] [--to S] [--threads N] [--phases]
 *
 * Without a scene: the networks, then splash/dam_small. Times count from --from on, when the dam has broken. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <omp.h>
#include <selkie/selkie.h>
#include "base/random.h"
#include "base/timer.h"
#include "learn/splash_model.h"

enum { CANDIDATES = 100000 };

/* Processor time (ms): on a busy machine it says more than the clock. */
static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Wall time and processor time (ms) of the features and logits of CANDIDATES particles, `per_cell` in a cell, in a
 * random flow. */
static void time_candidates(const sk_splash_model *model, int per_cell, int threads, double times[2])
{
    enum { N = 12 };
    const int d = model->dimension, own_count = model->feature_count - model->cell_count;
    static float fill[N * N * N], velocity[3][N * N * N];
    for (int n = 0; n < N * N * N; n++) {
        fill[n] = sk_random_float(1, (uint64_t)n, 0);
        for (int k = 0; k < 3; k++)
            velocity[k][n] = sk_random_float(1, (uint64_t)n, 1 + (uint64_t)k);
    }
    const sk_splash_cells cells = {{velocity[0], velocity[1], velocity[2]}, fill, {1, N, d == 3 ? N * N : 0}, d};
    const sk_splash_options options = {model->reach, model->velocity_reach, 1, 1.0f, 1.0f, 0.9f};
    const int batches = CANDIDATES / (SK_SPLASH_BATCH * per_cell);
    float sum = 0.0f;
    const double start = sk_wall_ms(), cpu_start = cpu_ms();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
    for (int b = 0; b < batches; b++) {
        float features[SK_SPLASH_BATCH * SK_SPLASH_FEATURES], products[SK_SPLASH_BATCH * SK_SPLASH_WIDEST];
        float own[SK_SPLASH_BATCH * SK_SPLASH_OWN], logits[SK_SPLASH_BATCH], at[3];
        sk_splash_frame frames[SK_SPLASH_BATCH];
        int places[SK_SPLASH_BATCH], cell[SK_SPLASH_BATCH];
        for (int c = 0; c < SK_SPLASH_BATCH; c++) {
            places[c] = 3 + (b + c) % 6 + N * (3 + b % 6 + (d == 3 ? N * (3 + c % 6) : 0));
            sk_splash_cell_features(&cells, &options, places[c], &frames[c], features + c * model->cell_count);
        }
        sk_splash_begin_cells(model, features, SK_SPLASH_BATCH, products);
        for (int n = 0; n < per_cell; n++) {
            for (int r = 0; r < SK_SPLASH_BATCH; r++) {
                const float fraction[3] = {0.05f * (float)r, 0.1f * (float)n, 0.3f};
                cell[r] = (n * SK_SPLASH_BATCH + r) / per_cell;
                sk_splash_own_features(&cells, &options, places[cell[r]], places[cell[r]], fraction, &frames[cell[r]],
                                       at, own + r * own_count);
            }
            sk_splash_logits(model, products, cell, own, SK_SPLASH_BATCH, logits);
            for (int r = 0; r < SK_SPLASH_BATCH; r++)
                sum += sk_splash_probability(model, logits[r]);
        }
    }
    const double factor = CANDIDATES / (double)(batches * SK_SPLASH_BATCH * per_cell);
    times[0] = (sk_wall_ms() - start) * factor;
    times[1] = (cpu_ms() - cpu_start) * factor;
    if (sum < 0.0f)
        printf("impossible\n");
}

static int bench_networks(int threads)
{
    for (int d = 2; d <= 3; d++) {
        char path[4096];
        sk_splash_model model;
        selkie_error error = {0};
        snprintf(path, sizeof path, SELKIE_SCENES "/splash/weights/splash_%dd.safetensors", d);
        if (sk_splash_model_read(path, &model, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        double best[2] = {1e30, 1e30}, times[2];
        for (int n = 0; n < 15; n++) {
            time_candidates(&model, d == 2 ? 4 : 8, threads, times);
            for (int k = 0; k < 2; k++)
                best[k] = times[k] < best[k] ? times[k] : best[k];
        }
        printf("%dD  features and networks of %d candidates: %.1f ms on %d threads, %.1f ms of the processor\n", d,
               CANDIDATES, best[0], threads, best[1]);
        sk_splash_model_free(&model);
    }
    return 0;
}

/* --- A step with splashes and without --- */

enum { MOST_PHASES = 64, MOST_FRAMES = 1024 };

/* One of the two forms of a scene: sums over its steps. */
typedef struct form {
    selkie_scene *scene;
    selkie_world *world;
    double cpu, wall; /* ms */
    double phases[MOST_PHASES];
    int steps, frames;
    double frame_cpu[MOST_FRAMES]; /* ms of a step, mean over a frame */
} form;

static int open_form(form *f, const char *path, int with, int threads)
{
    static const char *const without[] = {"splashes="};
    selkie_world_options options;
    selkie_error error = {0};
    selkie_world_options_defaults(&options);
    options.threads = threads;
    if (selkie_scene_load(path, with ? 0 : 1, without, &f->scene, &error) ||
        selkie_world_create(f->scene, &options, &f->world, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}

/* Simulates up to a time; times count from `from` on. */
static int step_form(form *f, double until, double from)
{
    selkie_error error = {0};
    const double cpu_before = f->cpu;
    const int steps_before = f->steps;
    while (selkie_world_time(f->world) < until * (1 - 1e-9)) {
        const double wall = sk_wall_ms(), cpu = cpu_ms();
        if (selkie_world_step(f->world, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        if (until <= from * (1 + 1e-9))
            continue;
        f->wall += sk_wall_ms() - wall;
        f->cpu += cpu_ms() - cpu;
        f->steps++;
        for (int n = 0; n < selkie_world_phase_count(f->world) && n < MOST_PHASES; n++)
            f->phases[n] += selkie_world_statistics(f->world)->phase_ms[n];
    }
    if (f->steps > steps_before && f->frames < MOST_FRAMES)
        f->frame_cpu[f->frames++] = (f->cpu - cpu_before) / (f->steps - steps_before);
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over the frames of a step's time with splashes over that without: other work disturbs it less than the mean.
 */
static double median_ratio(const form *with, const form *without)
{
    double ratios[MOST_FRAMES];
    const int count = with->frames < without->frames ? with->frames : without->frames;
    for (int n = 0; n < count; n++)
        ratios[n] = with->frame_cpu[n] / without->frame_cpu[n];
    qsort(ratios, (size_t)count, sizeof *ratios, compare_doubles);
    return count ? ratios[count / 2] : 0.0;
}

/* Wall time of a phase in a step; 0 if the form has none of this name. */
static double phase_of(const form *f, const char *name)
{
    for (int n = 0; n < selkie_world_phase_count(f->world) && n < MOST_PHASES; n++)
        if (!strcmp(selkie_world_phase_name(f->world, n), name))
            return f->phases[n] / f->steps;
    return 0.0;
}

static void print_forms(const char *path, const form *with, const form *without, int phases)
{
    printf("%s: %lld particles, %lld splashes made to %.3f s, %lld in flight\n", path,
           (long long)selkie_world_particle_count(with->world),
           (long long)selkie_world_statistics(with->world)->splashes_made, selkie_world_time(with->world),
           (long long)selkie_world_statistics(with->world)->splashes);
    printf("steps %d with splashes, %d without; a step %.2f and %.2f ms, of the processor %.2f and %.2f ms\n",
           with->steps, without->steps, with->wall / with->steps, without->wall / without->steps,
           with->cpu / with->steps, without->cpu / without->steps);
    for (int n = 0; phases && n < selkie_world_phase_count(with->world); n++) {
        const char *name = selkie_world_phase_name(with->world, n);
        printf("  %-24s %8.3f %8.3f ms\n", name, phase_of(with, name), phase_of(without, name));
    }
    printf("splashes add %.1f %% to a step: processor time, median over %d frames (mean %.1f %%); at most 15 %% is "
           "asked\n",
           100.0 * (median_ratio(with, without) - 1.0), with->frames,
           100.0 * (with->cpu / with->steps / (without->cpu / without->steps) - 1.0));
}

/* Both forms in turn, a frame each, so that other work on the machine meets both. */
static int bench_scene(const char *path, double from, double to, int threads, int phases)
{
    static form with, without;
    int code = open_form(&with, path, 1, threads) || open_form(&without, path, 0, threads);
    for (int frame = 1; !code; frame++) {
        const double until = fmin(frame / with.scene->time.fps, to);
        code = step_form(&with, until, from) || step_form(&without, until, from);
        if (until >= to)
            break;
    }
    if (!code)
        print_forms(path, &with, &without, phases);
    selkie_world_destroy(with.world);
    selkie_world_destroy(without.world);
    selkie_scene_free(with.scene);
    selkie_scene_free(without.scene);
    return code;
}

int main(int argc, char **argv)
{
    const char *scene = NULL;
    double from = 0.2, to = 0.8;
    int threads = omp_get_max_threads(), phases = 0;
    for (int n = 1; n < argc; n++)
        if (!strcmp(argv[n], "--from") && n + 1 < argc)
            from = atof(argv[++n]);
        else if (!strcmp(argv[n], "--to") && n + 1 < argc)
            to = atof(argv[++n]);
        else if (!strcmp(argv[n], "--threads") && n + 1 < argc)
            threads = atoi(argv[++n]);
        else if (!strcmp(argv[n], "--phases"))
            phases = 1;
        else
            scene = argv[n];
    const int code = scene ? 0 : bench_networks(threads);
    return code || bench_scene(scene ? scene : SELKIE_SCENES "/splash/dam_small.json", from, to, threads, phases);
}

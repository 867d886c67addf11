/* Cost of splashes: networks for 100,000 candidates, and the share of a step of a dam break that the phases take.
 *
 * Usage: bench_splash [SCENE.json] [--steps N] [--threads N]
 */
#define _GNU_SOURCE
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

/* Time (ms) of the phases of splashes in the last step. */
static double splash_time(const selkie_world *world)
{
    double sum = 0.0;
    for (int n = 0; n < selkie_world_phase_count(world); n++) {
        const char *name = selkie_world_phase_name(world, n);
        if (!strcmp(name, "splashes") || !strcmp(name, "droplets") || !strcmp(name, "droplets_apart"))
            sum += selkie_world_statistics(world)->phase_ms[n];
    }
    return sum;
}

static int bench_scene(const char *path, int steps, int threads)
{
    selkie_scene *scene = NULL;
    selkie_world *world = NULL;
    selkie_world_options options;
    selkie_error error = {0};
    selkie_world_options_defaults(&options);
    options.threads = threads;
    if (selkie_scene_load(path, 0, NULL, &scene, &error) || selkie_world_create(scene, &options, &world, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    double all = 0.0, own = 0.0;
    for (int n = 0; n < steps && !selkie_world_step(world, &error); n++) {
        all += selkie_world_statistics(world)->step_ms;
        own += splash_time(world);
    }
    const selkie_statistics *s = selkie_world_statistics(world);
    printf("%s: %lld particles, %lld splashes made to %.3f s; a step %.1f ms, of it splashes %.1f ms: %.1f %% of the "
           "rest\n",
           path, (long long)selkie_world_particle_count(world), (long long)s->splashes_made, selkie_world_time(world),
           all / steps, own / steps, 100.0 * own / (all - own));
    selkie_world_destroy(world);
    selkie_scene_free(scene);
    return 0;
}

int main(int argc, char **argv)
{
    const char *scene = NULL;
    int steps = 60, threads = omp_get_max_threads();
    for (int n = 1; n < argc; n++)
        if (!strcmp(argv[n], "--steps") && n + 1 < argc)
            steps = atoi(argv[++n]);
        else if (!strcmp(argv[n], "--threads") && n + 1 < argc)
            threads = atoi(argv[++n]);
        else
            scene = argv[n];
    const int code = bench_networks(threads);
    return code || !scene ? code : bench_scene(scene, steps, threads);
}

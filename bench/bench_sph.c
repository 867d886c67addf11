/* Speed and memory of an SPH step: a collapsing column of 100k, 500k and 2M particles.
 *
 *   ns a particle and iteration  the pressure phase over particles and applications of its operator, set-up included
 *   lists                        the phase "neighbours": lists, gradients, density and diagonal, ns a particle
 *   search                       the share of sorting and lists in a step
 *   floor                        bytes that the step must move / triad bandwidth: an application reads all pairs twice
 *
 * The compression is the real one: the mean of max(density / rest density - 1, 0) that a step left behind, as the next
 * one finds it. Each case runs with sph.divergence_error as it is by default, which keeps deep water calm, and with
 * TENTH, at which the compression is about 0.1 %.
 *
 * Usage: bench_sph [100k|500k|2M|all] [--threads N] [--steps N] [--warm N] [--error E] [--divergence E] [--solver NAME]
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/timer.h"
#include "methods/sph/sph.h"
#include "triad.h"
#include "world/world_internal.h"

typedef struct bench_case {
    const char *name;
    int column[3]; /* cells of liquid */
    int steps;
} bench_case;

static const bench_case cases[] = {
    {"100k", {16, 28, 28}, 40},
    {"500k", {28, 47, 48}, 20},
    {"2M", {45, 74, 76}, 8},
};

#define TENTH 0.1 /* sph.divergence_error */

typedef struct bench_options {
    int threads, steps, warm_up;
    double density_error, divergence_error, bandwidth;
    selkie_sph_solver solver;
} bench_options;

static int run(const bench_case *bench, const bench_options *asked)
{
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    selkie_scene_set_method(&scene, SELKIE_METHOD_SPH);
    scene.domain.cell_size = 1.0 / bench->column[1]; /* one metre of water, whatever its resolution */

    /* Scene: a column of water in a room. */
    selkie_liquid_def liquid;
    selkie_liquid_defaults(&liquid);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_BOX);
    static const double room[3] = {3.0, 1.5, 1.0};
    for (int d = 0; d < 3; d++) {
        liquid.shape.max[d] = bench->column[d] * scene.domain.cell_size;
        scene.domain.size[d] = bench->column[d] * room[d] * scene.domain.cell_size;
    }
    scene.liquids = &liquid;
    scene.liquid_count = 1;
    scene.time.end = 1000.0;
    scene.sph.density_error = asked->density_error;
    if (asked->divergence_error > 0.0)
        scene.sph.divergence_error = asked->divergence_error;
    scene.sph.solver = asked->solver;
    scene.sph.max_iterations = 1000;

    /* World. */
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = asked->threads;
    selkie_world *world;
    selkie_error error;
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK) {
        fprintf(stderr, "bench_sph: %s\n", error.message);
        return 1;
    }

    /* Steps, measured after the warm-up. */
    int phases = selkie_world_phase_count(world), steps = asked->steps ? asked->steps : bench->steps;
    double total = 0.0, phase_total[SELKIE_MAX_PHASES] = {0}, floor_ms = 0.0, compression = 0.0, predicted = 0.0,
           applications = 0.0;
    const sk_sph_report *report = &world->step.sph->report;
    double n = (double)selkie_world_particle_count(world);
    for (int s = 0; s < asked->warm_up + steps; s++) {
        if (selkie_world_step(world, &error) != SELKIE_OK) {
            fprintf(stderr, "bench_sph: %s\n", error.message);
            selkie_world_destroy(world);
            return 1;
        }
        if (s < asked->warm_up)
            continue;
        const selkie_statistics *statistics = selkie_world_statistics(world);
        double pair_bytes = (double)report->list_bytes, here = report->iterations + 1;
        total += statistics->step_ms;
        compression += report->compression;
        predicted += report->predicted_error;
        applications += here;
        /* sort 100 B; lists write the pairs and 60 B; an application reads them twice and moves 120 B; the rest 200 B
         */
        floor_ms += (n * (100 + 60 + 200 + here * 120) + pair_bytes * (1 + 1 + 2 * here)) / asked->bandwidth * 1e3;
        for (int p = 0; p < phases; p++)
            phase_total[p] += statistics->phase_ms[p];
    }

    /* Phases and report. */
    double pressure_ms = 0.0, lists_ms = 0.0, sort_ms = 0.0;
    for (int p = 0; p < phases; p++) {
        const char *name = selkie_world_phase_name(world, p);
        pressure_ms += strcmp(name, "pressure") == 0 ? phase_total[p] : 0.0;
        lists_ms += strcmp(name, "neighbours") == 0 ? phase_total[p] : 0.0;
        sort_ms += strcmp(name, "sort") == 0 ? phase_total[p] : 0.0;
    }
    printf("%-5s divergence_error %g  threads %d  particles %.0f  neighbours %.1f  step %.1f ms  iterations %.1f  "
           "compression %.4f %% (predicted error %.4f %%)  "
           "%.1f ns a particle and iteration  lists %.0f ns  search %.0f %%  %.0f B a particle  floor %.1f ms  ratio "
           "%.2f\n",
           bench->name, scene.sph.divergence_error, asked->threads, n, (double)report->pairs / n, total / steps,
           applications / steps - 1.0, 100.0 * compression / steps, 100.0 * predicted / steps,
           pressure_ms * 1e6 / (applications * n), lists_ms * 1e6 / (steps * n), 100.0 * (sort_ms + lists_ms) / total,
           (double)selkie_world_memory_peak(world) / n, floor_ms / steps, total / floor_ms);
    printf("   ");
    for (int p = 0; p < phases; p++)
        printf(" %s %.2f", selkie_world_phase_name(world, p), phase_total[p] / steps);
    printf(" ms  eigenvalue %.2f\n", report->largest_eigenvalue);
    fflush(stdout);
    selkie_world_destroy(world);
    return 0;
}

int main(int argc, char **argv)
{
    const char *which = "all";
    bench_options options = {.warm_up = 60, .density_error = 0.001, .solver = SELKIE_SPH_ACCELERATED};
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--threads") == 0 && a + 1 < argc)
            options.threads = atoi(argv[++a]);
        else if (strcmp(argv[a], "--steps") == 0 && a + 1 < argc)
            options.steps = atoi(argv[++a]);
        else if (strcmp(argv[a], "--warm") == 0 && a + 1 < argc)
            options.warm_up = atoi(argv[++a]);
        else if (strcmp(argv[a], "--error") == 0 && a + 1 < argc)
            options.density_error = atof(argv[++a]);
        else if (strcmp(argv[a], "--divergence") == 0 && a + 1 < argc)
            options.divergence_error = atof(argv[++a]);
        else if (strcmp(argv[a], "--solver") == 0 && a + 1 < argc)
            options.solver = strcmp(argv[++a], "iisph") == 0 ? SELKIE_SPH_IISPH : SELKIE_SPH_ACCELERATED;
        else
            which = argv[a];
    }

    /* Check the name of the case. */
    int known = strcmp(which, "all") == 0, failed = 0;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        known |= strcmp(cases[c].name, which) == 0;
    if (!known) {
        fprintf(stderr, "bench_sph: there is no case '%s'; the cases are 100k, 500k, 2M and all\n", which);
        return 2;
    }

    /* Bandwidth, then the cases. */
    options.threads = options.threads ? options.threads : omp_get_num_procs();
    options.bandwidth = triad(options.threads);
    printf("triad %.1f GB/s on %d threads\n", options.bandwidth * 1e-9, options.threads);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (strcmp(which, "all") == 0 || strcmp(cases[c].name, which) == 0)
            for (int pass = 0; pass < (options.divergence_error > 0.0 ? 1 : 2); pass++) {
                bench_options here = options;
                here.divergence_error = pass ? TENTH : options.divergence_error;
                failed |= run(&cases[c], &here);
            }
    return failed;
}

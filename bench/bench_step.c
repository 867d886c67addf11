/* Speed and memory of a whole FLIP step, against the floor of the bytes that it must move.
 *
 *   floor = (250 B x particles + 2400 B x liquid cells x solves) / triad bandwidth
 *
 * All figures of a line are taken in one run, triad included, because timings of different runs cannot be compared.
 * Usage: bench_step [small|medium|large|idp|idp_1m|idp_2ms|plain_2ms|all] [--threads N] [--steps N] [--backend NAME]
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/timer.h"
#include "triad.h"

typedef struct bench_case {
    const char *name;
    int cells[3];
    int columns[2][2][3]; /* two boxes of liquid, in cells: lower and upper corner */
    double cell_size;     /* m */
    double dt;            /* s */
    int warm_up, steps;
    selkie_volume volume;
    double tolerance;
} bench_case;

static const bench_case cases[] = {
    {"small: double dam 64x128x64",
     {64, 128, 64},
     {{{0, 0, 0}, {20, 43, 20}}, {{44, 0, 44}, {64, 43, 64}}},
     1.0 / 64,
     0.005,
     30,
     60,
     SELKIE_VOLUME_NONE,
     1e-4},
    {"medium: dam 128x128x128",
     {128, 128, 128},
     {{{0, 0, 0}, {32, 64, 64}}, {{0, 0, 0}, {0, 0, 0}}},
     1.0 / 64,
     0.005,
     20,
     20,
     SELKIE_VOLUME_NONE,
     1e-4},
    {"large: dam 512x256x256",
     {512, 256, 256},
     {{{0, 0, 0}, {128, 200, 128}}, {{0, 0, 0}, {0, 0, 0}}},
     1.0 / 64,
     0.005,
     2,
     3,
     SELKIE_VOLUME_NONE,
     1e-4},
    /* 10 s at a fixed 20 ms: faster than real time means less than 20 ms a step. The twin without projection gives the
     * cost of the density projection. */
    {"idp: double dam 64x128x64, 20 ms",
     {64, 128, 64},
     {{{0, 0, 0}, {20, 43, 20}}, {{44, 0, 44}, {64, 43, 64}}},
     1.0 / 64,
     0.02,
     0,
     500,
     SELKIE_VOLUME_IDP,
     1e-3},
    {"idp_1m: double dam 100x200x100, 12.5 ms",
     {100, 200, 100},
     {{{0, 0, 0}, {31, 68, 31}}, {{69, 0, 69}, {100, 68, 100}}},
     1.0 / 100,
     0.0125,
     20,
     100,
     SELKIE_VOLUME_IDP,
     1e-3},
    {"idp_2ms: double dam, 2 ms",
     {64, 128, 64},
     {{{0, 0, 0}, {20, 43, 20}}, {{44, 0, 44}, {64, 43, 64}}},
     1.0 / 64,
     0.002,
     100,
     100,
     SELKIE_VOLUME_IDP,
     1e-4},
    {"plain_2ms: double dam, 2 ms",
     {64, 128, 64},
     {{{0, 0, 0}, {20, 43, 20}}, {{44, 0, 44}, {64, 43, 64}}},
     1.0 / 64,
     0.002,
     100,
     100,
     SELKIE_VOLUME_NONE,
     1e-4},
};

static selkie_backend chosen_backend = SELKIE_BACKEND_TUNED;

static int run(const bench_case *bench, int threads, int steps_asked, double bandwidth)
{
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    scene.domain.cell_size = bench->cell_size;
    selkie_liquid_def liquids[2];
    scene.liquid_count = 0;
    for (int l = 0; l < 2; l++) {
        if (bench->columns[l][1][0] == 0)
            continue;
        selkie_liquid_def *liquid = &liquids[scene.liquid_count++];
        selkie_liquid_defaults(liquid);
        selkie_shape_defaults(&liquid->shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < 3; d++) {
            liquid->shape.min[d] = bench->columns[l][0][d] * bench->cell_size;
            liquid->shape.max[d] = bench->columns[l][1][d] * bench->cell_size;
        }
    }
    for (int d = 0; d < 3; d++)
        scene.domain.size[d] = bench->cells[d] * bench->cell_size;
    scene.liquids = liquids;
    scene.time.step = bench->dt;
    scene.time.end = 1000.0;
    scene.volume = bench->volume;
    scene.pressure.tolerance = bench->tolerance;
    scene.time.fps = 1.0 / bench->dt;

    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = 1;
    options.backend = chosen_backend;
    selkie_world *world;
    selkie_error error;
    double begin = sk_wall_ms();
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK) {
        fprintf(stderr, "bench_step: %s\n", error.message);
        return 1;
    }
    double start_ms = sk_wall_ms() - begin;
    int phases = selkie_world_phase_count(world), steps = steps_asked ? steps_asked : bench->steps;
    double total = 0.0, phase_total[SELKIE_MAX_PHASES] = {0}, floor_ms = 0.0, solves = 0.0;
    int64_t iterations = 0, particles = 0;
    for (int s = 0; s < bench->warm_up + steps; s++) {
        if (selkie_world_step(world, &error) != SELKIE_OK) {
            fprintf(stderr, "bench_step: %s\n", error.message);
            selkie_world_destroy(world);
            return 1;
        }
        const selkie_statistics *statistics = selkie_world_statistics(world);
        if (s < bench->warm_up)
            continue;
        total += statistics->step_ms;
        iterations += statistics->pressure_iterations;
        particles = statistics->particles;
        solves += (double)statistics->liquid_cells;
        double solves_here = bench->volume == SELKIE_VOLUME_IDP ? 2.0 : 1.0;
        floor_ms += (250.0 * (double)statistics->particles + 2400.0 * solves_here * (double)statistics->liquid_cells) /
                    bandwidth * 1e3;
        for (int p = 0; p < phases; p++)
            phase_total[p] += statistics->phase_ms[p];
    }
    double pressure_ms = 0.0;
    for (int p = 0; p < phases; p++)
        if (strcmp(selkie_world_phase_name(world, p), "pressure") == 0)
            pressure_ms = phase_total[p];
    printf(
        "%-30s threads %d  particles %lld  start %.0f ms  step %.2f ms  %.1f M particle-steps/s  %.1f M cell-solves/s  "
        "iterations %.1f  memory %.0f MiB at most  floor %.2f ms  ratio %.2f\n",
        bench->name, threads, (long long)particles, start_ms, total / steps, (double)particles * steps / total * 1e-3,
        solves / pressure_ms * 1e-3, (double)iterations / steps, (double)selkie_world_memory_peak(world) / 1048576.0,
        floor_ms / steps, total / floor_ms);
    printf("   ");
    for (int p = 0; p < phases; p++)
        printf(" %s %.2f", selkie_world_phase_name(world, p), phase_total[p] / steps);
    printf(" ms\n");
    fflush(stdout);
    selkie_world_destroy(world);
    return 0;
}

int main(int argc, char **argv)
{
    const char *which = "all";
    int threads = 0, steps = 0;
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--threads") == 0 && a + 1 < argc)
            threads = atoi(argv[++a]);
        else if (strcmp(argv[a], "--steps") == 0 && a + 1 < argc)
            steps = atoi(argv[++a]);
        else if (strcmp(argv[a], "--backend") == 0 && a + 1 < argc)
            chosen_backend = strcmp(argv[++a], "cuda") == 0  ? SELKIE_BACKEND_CUDA
                             : strcmp(argv[a], "plain") == 0 ? SELKIE_BACKEND_PLAIN
                                                             : SELKIE_BACKEND_TUNED;
        else
            which = argv[a];
    }

    /* Check the name of the case. */
    int known = strcmp(which, "all") == 0;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        known |= strncmp(cases[c].name, which, strlen(which)) == 0 && cases[c].name[strlen(which)] == ':';
    if (!known) {
        fprintf(stderr, "bench_step: there is no case '%s'; the cases are", which);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            fprintf(stderr, " %.*s", (int)strcspn(cases[c].name, ":"), cases[c].name);
        fprintf(stderr, " and all\n");
        return 2;
    }

    /* Bandwidth, then the cases. */
    int most = threads ? threads : omp_get_num_procs();
    double bandwidth = triad(most);
    printf("triad %.1f GB/s on %d threads\n", bandwidth * 1e-9, most);
    int failed = 0;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (strcmp(which, "all") == 0 ||
            (strncmp(cases[c].name, which, strlen(which)) == 0 && cases[c].name[strlen(which)] == ':')) {
            /* With all threads, one thread first: the ratio is the speedup. */
            if (!threads && chosen_backend != SELKIE_BACKEND_CUDA && c != 2 && most > 1 && cases[c].steps < 500)
                failed |= run(&cases[c], 1, steps, bandwidth);
            failed |= run(&cases[c], most, steps, bandwidth);
        }
    return failed;
}

/* The plain backend against the tuned one: milliseconds of a step and the ratio of both, phase by phase.
 *
 * Both worlds step in turn, so that a busy machine slows both. The double dam of 275,200 particles is the yardstick;
 * the other methods run smaller. Usage: bench_backends [flip|idp|unilateral|sph|all] [--threads N] [--steps N]
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>

typedef struct bench_case {
    const char *name;
    int cells; /* along x; 64 gives 275,200 particles */
    selkie_volume volume;
    selkie_incompressibility incompressibility;
    int sph;
} bench_case;

static const bench_case cases[] = {
    {"flip", 64, SELKIE_VOLUME_NONE, SELKIE_INCOMPRESSIBILITY_BILATERAL, 0},
    {"idp", 64, SELKIE_VOLUME_IDP, SELKIE_INCOMPRESSIBILITY_BILATERAL, 0},
    {"unilateral", 32, SELKIE_VOLUME_NONE, SELKIE_INCOMPRESSIBILITY_UNILATERAL, 0},
    {"sph", 32, SELKIE_VOLUME_NONE, SELKIE_INCOMPRESSIBILITY_BILATERAL, 1},
};
enum { CASES = sizeof cases / sizeof *cases, WARM_UP = 2 };

/* Two columns of water in opposite corners of a box of 1 x 2 x 1 m. */
static void double_dam(const bench_case *bench, selkie_scene *scene, selkie_liquid_def liquids[2])
{
    selkie_scene_defaults(scene);
    const double size[3] = {1.0, 2.0, 1.0}, width = 20.0 / 64, height = 43.0 / 64;
    memcpy(scene->domain.size, size, sizeof size);
    scene->domain.cell_size = 1.0 / bench->cells;
    for (int l = 0; l < 2; l++) {
        selkie_liquid_defaults(&liquids[l]);
        selkie_shape_defaults(&liquids[l].shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < 3; d += 2) {
            liquids[l].shape.min[d] = l ? 1.0 - width : 0.0;
            liquids[l].shape.max[d] = l ? 1.0 : width;
        }
        liquids[l].shape.max[1] = height;
    }
    scene->liquid_count = 2;
    scene->liquids = liquids;
    scene->volume = bench->volume;
    scene->incompressibility = bench->incompressibility;
    if (bench->sph)
        scene->discretization = SELKIE_DISCRETIZATION_SPH;
    scene->time.step = bench->sph ? 0.001 : 0.005;
    scene->time.fps = 1.0 / scene->time.step;
    scene->time.end = 1000.0;
}

static void print_phases(selkie_world *const world[2], double phase_ms[2][SELKIE_MAX_PHASES], int steps)
{
    printf("   ");
    for (int p = 0; p < selkie_world_phase_count(world[0]); p++)
        printf(" %s %.2f/%.2f", selkie_world_phase_name(world[0], p), phase_ms[1][p] / steps, phase_ms[0][p] / steps);
    printf(" ms\n");
    fflush(stdout);
}

static int run(const bench_case *bench, int threads, int steps)
{
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    double_dam(bench, &scene, liquids);
    selkie_world *world[2] = {NULL, NULL};
    selkie_error error = {0};
    double total[2] = {0, 0}, phase_ms[2][SELKIE_MAX_PHASES] = {{0}};
    int failed = 0;
    for (int b = 0; b < 2 && !failed; b++) {
        selkie_world_options options;
        selkie_world_options_defaults(&options);
        options.threads = threads;
        options.with_backend = 1;
        options.backend = b ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_TUNED;
        failed = selkie_world_create(&scene, &options, &world[b], &error) != SELKIE_OK;
    }
    for (int s = 0; s < WARM_UP + steps && !failed; s++)
        for (int b = 0; b < 2 && !failed; b++) {
            failed = selkie_world_step(world[b], &error) != SELKIE_OK;
            const selkie_statistics *statistics = selkie_world_statistics(world[b]);
            for (int p = 0; s >= WARM_UP && p < selkie_world_phase_count(world[b]); p++)
                phase_ms[b][p] += statistics->phase_ms[p];
            total[b] += s < WARM_UP ? 0.0 : statistics->step_ms;
        }
    if (failed) {
        fprintf(stderr, "bench_backends: %s: %s\n", bench->name, error.message);
    } else {
        printf("%-10s threads %d  particles %lld  tuned %.2f ms  plain %.2f ms a step  plain over tuned %.1f\n",
               bench->name, threads, (long long)selkie_world_particle_count(world[0]), total[0] / steps,
               total[1] / steps, total[1] / total[0]);
        print_phases(world, phase_ms, steps);
    }
    selkie_world_destroy(world[0]);
    selkie_world_destroy(world[1]);
    return failed;
}

int main(int argc, char **argv)
{
    const char *which = "all";
    int threads = omp_get_num_procs(), steps = 10, known = 0, failed = 0;
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--threads") == 0 && a + 1 < argc)
            threads = atoi(argv[++a]);
        else if (strcmp(argv[a], "--steps") == 0 && a + 1 < argc)
            steps = atoi(argv[++a]);
        else
            which = argv[a];
    }
    for (int c = 0; c < CASES; c++)
        if (strcmp(which, "all") == 0 || strcmp(which, cases[c].name) == 0) {
            known = 1;
            failed |= run(&cases[c], threads, steps);
        }
    if (!known)
        fprintf(stderr, "bench_backends: there is no case '%s'; the cases are flip, idp, unilateral, sph and all\n",
                which);
    return known ? failed : 2;
}

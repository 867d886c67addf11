/* Elastoplastic points: ns a point and step of a cube that falls, by material, and the phases of a step. The least of a
 * few steps, and the processor time of all threads together, which other programs disturb less. The floor is the memory
 * that a step must move at the triad bandwidth of the same run. mpm: records and attributes (128 B in 3D) read and
 * written by `to_grid` (half of them) and by `to_points`. rest_shape: records and attributes (56 B) read once and read
 * and written once, positions to the sites and read twice, what bonds need (40 B) written and read, accelerations.
 * Usage: bench_mpm [points] [threads] [part of a name] */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <selkie/selkie.h>

#include "triad.h"

enum { STEPS = 12 };

typedef struct bench_case {
    const char *name;
    selkie_discretization form;
    selkie_elastic_law law;
    selkie_plasticity plasticity;
} bench_case;

static const bench_case cases[] = {
    {"rubber", SELKIE_DISCRETIZATION_MPM, SELKIE_ELASTIC_COROTATED, SELKIE_PLASTICITY_NONE},
    {"hyperelastic", SELKIE_DISCRETIZATION_MPM, SELKIE_ELASTIC_SQUARED, SELKIE_PLASTICITY_NONE},
    {"clay", SELKIE_DISCRETIZATION_MPM, SELKIE_ELASTIC_COROTATED, SELKIE_PLASTICITY_VON_MISES},
    {"sand", SELKIE_DISCRETIZATION_MPM, SELKIE_ELASTIC_HENCKY, SELKIE_PLASTICITY_DRUCKER_PRAGER},
    {"rest shape, rubber", SELKIE_DISCRETIZATION_REST_SHAPE, SELKIE_ELASTIC_COROTATED, SELKIE_PLASTICITY_NONE},
    {"rest shape, clay", SELKIE_DISCRETIZATION_REST_SHAPE, SELKIE_ELASTIC_COROTATED, SELKIE_PLASTICITY_VON_MISES},
};

/* A cube of `side` cells, 8 points each, that is turning and squeezed. */
static selkie_world *make(const bench_case *c, int side, int threads)
{
    selkie_scene scene;
    selkie_material_def material;
    selkie_liquid_def liquid;
    selkie_scene_defaults(&scene);
    selkie_material_defaults(&material);
    selkie_liquid_defaults(&liquid);
    scene.discretization = c->form;
    scene.domain.cell_size = 1.0 / side;
    for (int d = 0; d < 3; d++) {
        scene.domain.size[d] = 1.5;
        liquid.shape.min[d] = 0.25;
        liquid.shape.max[d] = 1.25;
        liquid.center[d] = 0.75;
        liquid.velocity_gradient[4 * d] = d == 1 ? -2.0 : 1.0;
    }
    liquid.angular_velocity[2] = 1.0;
    material.name = c->name;
    material.kind = SELKIE_MATERIAL_ELASTOPLASTIC;
    material.elastoplastic.law = c->law;
    material.elastoplastic.plasticity = c->plasticity;
    material.elastoplastic.yield = 100.0;
    scene.materials = &material;
    scene.liquids = &liquid;
    scene.material_count = scene.liquid_count = 1;

    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return world;
}

static void run(const bench_case *c, int side, int threads, double bandwidth)
{
    selkie_world *world = make(c, side, threads);
    selkie_error error = {0};
    double least[SELKIE_MAX_PHASES], total = 1e30, processor = 1e30;
    const double count = (double)selkie_world_particle_count(world);
    for (int p = 0; p < SELKIE_MAX_PHASES; p++)
        least[p] = 1e30;
    for (int n = 0; n < STEPS; n++) {
        const clock_t before = clock();
        if (selkie_world_step(world, &error) != SELKIE_OK) {
            fprintf(stderr, "%s\n", error.message);
            exit(1);
        }
        const selkie_statistics *statistics = selkie_world_statistics(world);
        total = fmin(total, statistics->step_ms);
        processor = fmin(processor, (double)(clock() - before) * (1e9 / CLOCKS_PER_SEC));
        for (int p = 0; p < selkie_world_phase_count(world); p++)
            least[p] = fmin(least[p], statistics->phase_ms[p]);
    }
    const double bytes = c->form == SELKIE_DISCRETIZATION_MPM ? 1.5 * 128 + 128 : 3 * 56 + 3 * 12 + 2 * 40 + 2 * 12;
    const double floor_ms = bytes * count / bandwidth * 1e3;
    printf("%-18s %9.0f points %8.1f ms a step %6.1f ns a point (processor time %.1f), %4.1f x the floor:", c->name,
           count, total, total * 1e6 / count, processor / count, total / floor_ms);
    for (int p = 0; p < selkie_world_phase_count(world); p++)
        printf(" %s %.1f", selkie_world_phase_name(world, p), least[p] * 1e6 / count);
    printf("\n");
    selkie_world_destroy(world);
}

int main(int argc, char **argv)
{
    const double points = argc > 1 ? atof(argv[1]) : 1e6;
    const int threads = argc > 2 ? atoi(argv[2]) : omp_get_num_procs();
    const int side = (int)lround(cbrt(points / 8.0));
    const double bandwidth = triad(threads);
    printf("triad %.1f GB/s on %d threads; phases in ns a point\n", bandwidth * 1e-9, threads);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (argc < 4 || strstr(cases[c].name, argv[3]))
            run(&cases[c], side, threads, bandwidth);
    return 0;
}

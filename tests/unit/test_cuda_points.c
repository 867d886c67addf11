/* The GPU backend against the plain one: elastoplastic points and periodic sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "cuda_cases.h"

/* --- points --- */

/* Three elastoplastic materials fall onto a ball. Laws take logarithms of the device, so that paths differ by rounding.
 */
static void points(int dimension, int steps)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[3];
    selkie_material_def materials[3];
    selkie_obstacle_def obstacle;
    static const char *const names[3] = {"rubber", "clay", "sand"};
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.discretization = SELKIE_DISCRETIZATION_MPM;
    scene.domain.liquid_friction[2] = 0.3;
    for (int m = 0; m < 3; m++) {
        selkie_material_defaults(&materials[m]);
        selkie_liquid_defaults(&liquids[m]);
        selkie_shape_defaults(&liquids[m].shape, SELKIE_SHAPE_BOX);
        materials[m].name = liquids[m].material = names[m];
        materials[m].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
        materials[m].density = 1000.0 + 300.0 * m;
        materials[m].elastoplastic.plasticity = (selkie_plasticity)m;
        for (int d = 0; d < dimension; d++) {
            liquids[m].shape.min[d] = d == 0 ? 0.05 + 0.3 * m : d == 1 ? 0.02 : 0.1;
            liquids[m].shape.max[d] = d == 0 ? 0.3 + 0.3 * m : 0.4;
        }
        liquids[m].velocity[1] = -2.0;
    }
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.radius = 0.1;
    obstacle.liquid_friction = 0.4;
    for (int d = 0; d < dimension; d++)
        obstacle.shape.center[d] = d == 0 ? 0.5 : d == 1 ? -0.04 : 0.25;
    scene.materials = materials, scene.material_count = 3;
    scene.liquids = liquids, scene.liquid_count = 3;
    scene.obstacles = &obstacle, scene.obstacle_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    take_steps(plain, steps);
    take_steps(cuda, steps);
    assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    const selkie_statistics *p = &plain->statistics, *c = &cuda->statistics;
    assert_true(p->elastic_energy > 0.0 && p->plastic_work > 0.0);
    assert_float_equal(c->elastic_energy, p->elastic_energy, 1e-3 * p->elastic_energy);
    assert_float_equal(c->plastic_work, p->plastic_work, 1e-3 * p->plastic_work);
    assert_float_equal(c->kinetic_energy, p->kinetic_energy, 1e-4 * p->kinetic_energy);
    assert_float_equal(c->volume_ratio, p->volume_ratio, 1e-4);
    assert_float_equal(c->time, p->time, 1e-5 * p->time);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_points_2d(void **state)
{
    (void)state;
    points(2, 8);
}

static void test_points_3d(void **state)
{
    (void)state;
    points(3, 20);
}

/* Clay that a jet throws and a box keeps filled, among a drain and a ball. */
static void streams_of_points(int dimension, int steps)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_material_def material;
    selkie_obstacle_def obstacle;
    selkie_source_def sources[2];
    selkie_drain_def drain;
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.discretization = SELKIE_DISCRETIZATION_MPM;
    scene.domain.cell_size = dimension == 3 ? 1.0 / 12 : 1.0 / 24;
    selkie_material_defaults(&material);
    material.name = "clay";
    material.kind = SELKIE_MATERIAL_ELASTOPLASTIC;
    material.elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
    for (int l = 0; l < 2; l++)
        liquids[l].material = "clay";
    liquids[0].velocity[0] = 1.0;
    for (int s = 0; s < 2; s++) {
        selkie_source_defaults(&sources[s]);
        selkie_shape_defaults(&sources[s].shape, SELKIE_SHAPE_BOX);
        sources[s].material = "clay";
        for (int d = 0; d < dimension; d++) {
            sources[s].shape.min[d] = d == 1 ? 1.0 : s ? 0.6 : 0.2;
            sources[s].shape.max[d] = sources[s].shape.min[d] + (d == 2 ? 0.15 : 0.2);
        }
    }
    sources[0].velocity[1] = -3.0;
    selkie_drain_defaults(&drain);
    selkie_shape_defaults(&drain.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++)
        drain.shape.max[d] = 0.2;
    drain.flow_rate = dimension == 3 ? 0.05 : 0.3;
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.center[0] = 0.3, obstacle.shape.center[1] = 0.75;
    obstacle.shape.center[2] = dimension == 3 ? 0.3 : 0.0;
    obstacle.shape.radius = 0.15;
    scene.sources = sources, scene.source_count = 2;
    scene.drains = &drain, scene.drain_count = 1;
    scene.obstacles = &obstacle, scene.obstacle_count = 1;
    scene.materials = &material, scene.material_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    const int64_t before = plain->step.particles.count;
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda);
        print_message("step %d: %lld and %lld new points, %lld and %lld gone, %g m apart\n", n + 1,
                      (long long)p->emitted, (long long)q->emitted, (long long)p->drained, (long long)q->drained,
                      apart);
        assert_int_equal(p->emitted, q->emitted);
        assert_int_equal(p->drained, q->drained);
        assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    assert_true(plain->step.particles.count > before + 32); /* the device had room for so many: it took more */
    const selkie_statistics *p = &plain->statistics, *c = &cuda->statistics;
    assert_float_equal(c->elastic_energy, p->elastic_energy, 1e-3 * p->elastic_energy);
    assert_float_equal(c->kinetic_energy, p->kinetic_energy, 1e-4 * p->kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_streams_2d(void **state)
{
    (void)state;
    streams_of_points(2, 12);
}

static void test_streams_3d(void **state)
{
    (void)state;
    streams_of_points(3, 4);
}

/* --- periodic sides --- */

/* Liquid that runs through joined sides: x, and in 3D also z, which has one block. */
static void set_periodic(selkie_scene *scene, selkie_liquid_def liquids[2], int dimension, selkie_volume volume)
{
    set_scene(scene, liquids, dimension, volume);
    scene->domain.cell_size = dimension == 2 ? 1.0 / 32 : 1.0 / 16;
    scene->domain.size[2] = dimension == 3 ? 0.5 : 0.0;
    scene->domain.periodic = dimension == 3 ? SELKIE_AXES_XZ : SELKIE_AXES_X;
    for (int l = 0; l < 2; l++) {
        liquids[l].shape.max[2] = dimension == 3 ? 0.3 + 0.2 * l : 0.0;
        liquids[l].shape.min[2] = 0.0;
        liquids[l].velocity[0] = l ? 1.5 : 4.0;
        liquids[l].velocity[2] = dimension == 3 ? 1.0 - 3.0 * l : 0.0;
    }
}

/* In flight the whole step has the same bits. */
static void test_periodic_flight(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_periodic(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.pressure.start = 10.0;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 12; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(difference(plain, cuda) == 0.0);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void periodic(int dimension, int steps)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_periodic(&scene, liquids, dimension, SELKIE_VOLUME_IDP);
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        print_message("step %d: pressure %d and %d iterations, density %d and %d\n", n + 1, p->pressure.iterations,
                      q->pressure.iterations, p->density_report.iterations, q->density_report.iterations);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        assert_true(abs(p->density_report.iterations - q->density_report.iterations) <= 1);
        if (n == 0)
            assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    }
    assert_float_equal(plain->statistics.volume_ratio, cuda->statistics.volume_ratio, 0.002);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_periodic_2d(void **state)
{
    (void)state;
    periodic(2, 12);
}

static void test_periodic_3d(void **state)
{
    (void)state;
    periodic(3, 8);
}

/* Largest difference of positions (m) of equal numbers: particles at the border of a cell may be sorted apart. Along
 * joined sides the nearest images count. */
static double difference_by_number(const selkie_world *a, const selkie_world *b)
{
    const sk_particles *p = &a->step.particles, *q = &b->step.particles;
    double most = 0.0;
    uint32_t largest = 0;
    assert_int_equal(sk_world_fetch(a, 1, NULL), SELKIE_OK);
    assert_int_equal(sk_world_fetch(b, 1, NULL), SELKIE_OK);
    assert_int_equal(p->count, q->count);
    for (int64_t n = 0; n < p->count; n++)
        largest = p->records[n].id > largest ? p->records[n].id : largest;
    int64_t *place = calloc((size_t)largest + 1, sizeof *place);
    assert_non_null(place);
    for (int64_t n = 0; n < p->count; n++)
        place[p->records[n].id] = n + 1;
    for (int64_t n = 0; n < q->count; n++) {
        assert_true(q->records[n].id <= largest && place[q->records[n].id]);
        const sk_particle *other = &p->records[place[q->records[n].id] - 1];
        for (int d = 0; d < a->step.dimension; d++) {
            double apart = fabs((double)other->position[d] - (double)q->records[n].position[d]);
            if (a->step.grid.periodic >> d & 1)
                apart = fmin(apart, fabs((double)a->step.grid.period[d] - apart));
            most = fmax(most, apart);
        }
    }
    free(place);
    return most;
}

/* Obstacles that lie across joined sides and move through them. With streams, also a source and a drain. */
enum { STREAMS = 1, UNILATERAL = 2, FLIES = 4, PROJECTS = 8 };
static void periodic_obstacles(int dimension, int with, int steps)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacles[2];
    selkie_source_def source;
    selkie_drain_def drain;
    const int flies = with & FLIES; /* without pressure the whole step has a fixed order */
    set_periodic(&scene, liquids, dimension, with & PROJECTS ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE);
    scene.domain.size[1] = dimension == 3 ? 1.0 : 1.5;
    if (with & UNILATERAL)
        scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    if (flies)
        scene.pressure.start = 10.0;
    for (int o = 0; o < 2; o++) {
        selkie_obstacle_defaults(&obstacles[o]);
        selkie_shape_defaults(&obstacles[o].shape, o ? SELKIE_SHAPE_BOX : SELKIE_SHAPE_SPHERE);
    }
    obstacles[0].shape.center[0] = 0.95; /* reaches through the side */
    obstacles[0].shape.center[1] = 0.3;
    obstacles[0].shape.center[2] = dimension == 3 ? 0.1 : 0.0;
    obstacles[0].shape.radius = 0.16;
    obstacles[0].velocity[0] = 1.0; /* and moves on through it */
    for (int d = 0; d < dimension; d++) {
        obstacles[1].shape.min[d] = d == 1 ? 0.0 : 0.4;
        obstacles[1].shape.max[d] = d == 1 ? 0.15 : 0.5;
    }
    obstacles[1].surface = SELKIE_WALL_NO_SLIP;
    selkie_source_defaults(&source);
    selkie_drain_defaults(&drain);
    selkie_shape_defaults(&source.shape, SELKIE_SHAPE_BOX);
    selkie_shape_defaults(&drain.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++) {
        source.shape.min[d] = d == 1 ? 0.75 : 0.0;
        source.shape.max[d] = d == 1 ? 0.9 : 0.2;
        drain.shape.max[d] = 0.12;
    }
    source.velocity[1] = -2.0;
    scene.obstacles = obstacles, scene.obstacle_count = 2;
    scene.sources = &source, scene.source_count = with & STREAMS ? 1 : 0;
    scene.drains = &drain, scene.drain_count = with & STREAMS ? 1 : 0;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(plain->step.solids.obstacle_count > 2); /* with images */
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference_by_number(plain, cuda);
        print_message("step %d: %g m apart; pressure %d and %d iterations; %lld and %lld emitted\n", n + 1, apart,
                      p->pressure.iterations, q->pressure.iterations, (long long)p->emitted, (long long)q->emitted);
        assert_int_equal(p->emitted, q->emitted);
        assert_int_equal(p->drained, q->drained);
        if (flies)
            assert_true(apart < PATHS_APART);
        else
            assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        if (n == 0)
            assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* A floor from one joined side to the other has no images: a path that has left the domain meets it where it comes in
 * again. Liquid is thrown at it, so fast that it passes the side and meets the floor in one step. */
static void test_periodic_floor(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def floor;
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.domain.cell_size = 1.0 / 32;
    scene.domain.periodic = SELKIE_AXES_X;
    scene.pressure.start = 10.0;
    scene.liquid_count = 1;
    liquids[0].shape.min[0] = 0.6, liquids[0].shape.max[0] = 1.0;
    liquids[0].shape.min[1] = 0.35, liquids[0].shape.max[1] = 0.6;
    liquids[0].velocity[0] = 12.0, liquids[0].velocity[1] = -8.0;
    selkie_obstacle_defaults(&floor);
    selkie_shape_defaults(&floor.shape, SELKIE_SHAPE_BOX);
    floor.shape.max[0] = 1.0;
    floor.shape.max[1] = 0.3;
    scene.obstacles = &floor;
    scene.obstacle_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        int inside = 0;
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(difference_by_number(plain, cuda) < PATHS_APART);
        for (int64_t p = 0; p < cuda->step.particles.count; p++)
            inside += cuda->step.particles.records[p].position[1] < 0.3f - 1e-4f;
        assert_int_equal(inside, 0);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_periodic_obstacles_2d(void **state)
{
    (void)state;
    periodic_obstacles(2, STREAMS | FLIES, 12);
    periodic_obstacles(2, STREAMS, 6);
    periodic_obstacles(2, PROJECTS, 12);
    periodic_obstacles(2, UNILATERAL, 6);
}

static void test_periodic_obstacles_3d(void **state)
{
    (void)state;
    periodic_obstacles(3, STREAMS | FLIES, 6);
    periodic_obstacles(3, PROJECTS, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_2d),
        cmocka_unit_test(test_points_3d),
        cmocka_unit_test(test_periodic_flight),
        cmocka_unit_test(test_periodic_2d),
        cmocka_unit_test(test_periodic_3d),
        cmocka_unit_test(test_periodic_floor),
        cmocka_unit_test(test_periodic_obstacles_2d),
        cmocka_unit_test(test_periodic_obstacles_3d),
        cmocka_unit_test(test_streams_2d),
        cmocka_unit_test(test_streams_3d),
    };
    if (getenv("SELKIE_TEST_FILTER"))
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

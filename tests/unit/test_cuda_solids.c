/* Walls thinner than the grid resolves, and meshes, on the GPU against the plain backend: paths have the same bits, and
 * no particle passes. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"
#include "scratch_folder.h"
#include "selkie_config.h"

#define CELL (1.0 / 24)

/* A shelf of half a cell that turns, and a hook with a thin shaft: in 2D polygons are meshes. */
static void set_thin(selkie_scene *scene, selkie_obstacle_def obstacles[2])
{
    static const selkie_point hook[] = {{{0.5, 0.05}}, {{0.8, 0.05}},  {{0.8, 0.4}},
                                        {{0.79, 0.4}}, {{0.79, 0.06}}, {{0.5, 0.06}}};
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&obstacles[o]);
    selkie_shape_defaults(&obstacles[0].shape, SELKIE_SHAPE_BOX);
    selkie_shape_defaults(&obstacles[1].shape, SELKIE_SHAPE_POLYGON);
    obstacles[0].shape.min[0] = 0.1;
    obstacles[0].shape.max[0] = 0.6;
    obstacles[0].shape.min[1] = 0.31;
    obstacles[0].shape.max[1] = 0.31 + 0.5 * CELL;
    obstacles[0].center[0] = obstacles[0].center[1] = 0.35;
    obstacles[0].angular_velocity[2] = 0.8;
    obstacles[1].shape.points = hook;
    obstacles[1].shape.point_count = sizeof hook / sizeof *hook;
    obstacles[1].velocity[0] = -0.3;
    scene->obstacles = obstacles;
    scene->obstacle_count = 2;
}

static void compare_paths(const selkie_scene *scene, int steps, double tolerance)
{
    selkie_world *plain = make_world(scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda);
        if (!(apart <= tolerance))
            fail_msg("after step %d: %g m apart", n + 1, apart);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Without pressure the paths have the bits of the plain form. */
static void test_thin_paths(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def two[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    set_thin(&scene, two);
    scene.pressure.start = 10.0;
    liquids[0].velocity[0] = 2.0;
    liquids[1].velocity[0] = -1.5;
    compare_paths(&scene, 8, 0.0);
}

/* Steps with pressure: as many iterations as the plain form. */
static void thin_walls(selkie_volume volume, int unilateral)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def two[2];
    set_scene(&scene, liquids, 2, volume);
    set_thin(&scene, two);
    if (unilateral)
        scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 8; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda);
        print_message("step %d: %g m apart; pressure %d and %d iterations; density %d and %d\n", n + 1, apart,
                      p->pressure.iterations, q->pressure.iterations, p->density_report.iterations,
                      q->density_report.iterations);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        assert_true(abs(p->density_report.iterations - q->density_report.iterations) <= 1);
        if (n == 0) /* later steps sort particles apart */
            assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    assert_float_equal(plain->statistics.volume_ratio, cuda->statistics.volume_ratio, 0.002);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_thin_idp(void **state)
{
    (void)state;
    thin_walls(SELKIE_VOLUME_IDP, 0);
}

static void test_thin_unilateral(void **state)
{
    (void)state;
    thin_walls(SELKIE_VOLUME_NONE, 1);
}

/* A pool on a shelf of half a cell from wall to wall: not one particle passes. */
static void shelf(int dimension, selkie_volume volume)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def plate;
    const double height = 0.44, thickness = 0.5 * CELL;
    set_scene(&scene, liquids, dimension, volume);
    scene.liquid_count = 1;
    selkie_obstacle_defaults(&plate);
    selkie_shape_defaults(&plate.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++) {
        plate.shape.min[d] = d == 1 ? height - thickness : -0.5;
        plate.shape.max[d] = d == 1 ? height : 2.0;
        liquids[0].shape.min[d] = d == 1 ? height : 0.0;
        liquids[0].shape.max[d] = d == 1 ? height + 0.3 : scene.domain.size[d];
    }
    liquids[0].shape.max[0] = 0.5;
    scene.obstacles = &plate;
    scene.obstacle_count = 1;
    selkie_world *world = make_world(&scene, SELKIE_BACKEND_CUDA);
    const int64_t before = world->step.particles.count;
    int64_t through = 0;
    take_steps(world, dimension == 2 ? 40 : 100);
    assert_int_equal(sk_world_fetch(world, 1, NULL), SELKIE_OK);
    assert_int_equal(world->step.particles.count, before);
    for (int64_t p = 0; p < before; p++)
        through += !((double)world->step.particles.records[p].position[1] > height);
    assert_int_equal(through, 0);
    selkie_world_destroy(world);
}

static void test_shelf_2d(void **state)
{
    (void)state;
    shelf(2, SELKIE_VOLUME_IDP);
}

static void test_shelf_3d(void **state)
{
    (void)state;
    shelf(3, SELKIE_VOLUME_IDP);
}

/* A cup with 12 sides about the vertical through (0.5, 0.375): 0.3 m across its inside, walls of half a cell. */
enum { SIDES = 12 };
#define CUP_RADIUS 0.3
#define CUP_LOW 0.3

static void write_cup(const char *path)
{
    const double wall = 0.5 * CELL, pi = 3.14159265358979;
    const double ring[4][2] = {
        {CUP_RADIUS + wall, CUP_LOW - wall}, {CUP_RADIUS + wall, 0.8}, {CUP_RADIUS, 0.8}, {CUP_RADIUS, CUP_LOW}};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int r = 0; r < 4; r++)
        for (int n = 0; n < SIDES; n++)
            fprintf(file, "v %.9g %.9g %.9g\n", 0.5 + ring[r][0] * cos(2.0 * pi * n / SIDES), ring[r][1],
                    0.375 + ring[r][0] * sin(2.0 * pi * n / SIDES));
    fprintf(file, "v 0.5 %.9g 0.375\nv 0.5 %.9g 0.375\n", CUP_LOW - wall, CUP_LOW);
    for (int n = 0; n < SIDES; n++) {
        const int next = (n + 1) % SIDES;
        for (int r = 0; r < 3; r++) {
            const int a = r * SIDES + n + 1, b = r * SIDES + next + 1;
            fprintf(file, "f %d %d %d\nf %d %d %d\n", a, a + SIDES, b, b, a + SIDES, b + SIDES);
        }
        fprintf(file, "f %d %d %d\n", n + 1, next + 1, 4 * SIDES + 1);
        fprintf(file, "f %d %d %d\n", 3 * SIDES + next + 1, 3 * SIDES + n + 1, 4 * SIDES + 2);
    }
    assert_int_equal(fclose(file), 0);
}

/* A cup of a mesh, and a block of liquid in it. */
static void set_cup(selkie_scene *scene, selkie_liquid_def liquids[2], selkie_obstacle_def *cup, const char *path)
{
    set_scene(scene, liquids, 3, SELKIE_VOLUME_IDP);
    scene->liquid_count = 1;
    const double low[3] = {0.35, CUP_LOW, 0.225}, high[3] = {0.65, 0.5, 0.525};
    for (int d = 0; d < 3; d++) {
        liquids[0].shape.min[d] = low[d];
        liquids[0].shape.max[d] = high[d];
    }
    selkie_obstacle_defaults(cup);
    selkie_shape_defaults(&cup->shape, SELKIE_SHAPE_MESH);
    cup->shape.file = path;
    write_cup(path);
    scene->obstacles = cup;
    scene->obstacle_count = 1;
}

/* Paths in a cup that moves and turns have the bits of the plain form. */
static void test_mesh_paths(void **state)
{
    (void)state;
    if (!SELKIE_HAVE_ASSIMP || !device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def cup;
    const char *path = in_root("paths.obj");
    set_cup(&scene, liquids, &cup, path);
    scene.volume = SELKIE_VOLUME_NONE;
    scene.pressure.start = 10.0;
    liquids[0].velocity[0] = 3.0;
    liquids[0].velocity[1] = -2.0;
    cup.center[0] = 0.5, cup.center[1] = 0.5, cup.center[2] = 0.375;
    cup.angular_velocity[2] = 0.5;
    cup.velocity[0] = -0.4;
    compare_paths(&scene, 4, 0.0);
}

/* A cup holds the liquid: not one particle passes through its walls. */
static void test_mesh_cup(void **state)
{
    (void)state;
    if (!SELKIE_HAVE_ASSIMP || !device_is_fast(3))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def cup;
    const char *path = in_root("cup.obj");
    set_cup(&scene, liquids, &cup, path);
    selkie_world *world = make_world(&scene, SELKIE_BACKEND_CUDA);
    const int64_t before = world->step.particles.count;
    int64_t through = 0;
    take_steps(world, 35); /* 0.35 s: the liquid is 0.75 m high at the walls; from 0.38 s on some flies over the rim */
    assert_int_equal(sk_world_fetch(world, 1, NULL), SELKIE_OK);
    assert_int_equal(world->step.particles.count, before);
    for (int64_t p = 0; p < before; p++) {
        const float *x = world->step.particles.records[p].position;
        through += !((double)x[1] > CUP_LOW) || hypot((double)x[0] - 0.5, (double)x[2] - 0.375) > CUP_RADIUS;
    }
    assert_int_equal(through, 0);
    selkie_world_destroy(world);
}

/* A table of heights from 0.02 to 0.3 m, 9 by 7 points over a floor of 1.2 by 0.9 m. */
static void write_ground(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "ncols 9\nnrows 7\nxllcenter -0.1\nyllcenter -0.8\ncellsize 0.15\n");
    for (int row = 0; row < 7; row++)
        for (int column = 0; column < 9; column++)
            fprintf(file, "%.3f%c", 0.02 + 0.04 * ((5 * row + 3 * column * column) % 8), column < 8 ? ' ' : '\n');
    assert_int_equal(fclose(file), 0);
}

/* Liquid that is thrown at ground which moves, or at the wall of a wave with a ball in it: a union. The device's cosine
 * has other last bits: positions beside waves take their rounding (1e-7 of a metre a step) with them. */
static void ground(int dimension, selkie_shape_kind kind)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacle;
    selkie_shape members[2];
    const char *path = in_root("ground.asc");
    write_ground(path);
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.pressure.start = 10.0;
    for (int l = 0; l < 2; l++) {
        liquids[l].shape.min[1] += 0.35;
        liquids[l].shape.max[1] += 0.35;
        liquids[l].velocity[0] = l ? -1.5 : 2.0;
        liquids[l].velocity[1] = -4.0;
    }
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&members[0], kind);
    selkie_shape_defaults(&members[1], SELKIE_SHAPE_SPHERE);
    members[0].file = path;
    members[0].level = 0.15;
    members[0].amplitude = 0.1;
    members[0].wave_number[0] = 9.0;
    members[0].phase = 30.0;
    members[1].center[0] = 0.5;
    members[1].center[1] = 0.3;
    members[1].center[2] = dimension == 3 ? 0.4 : 0.0;
    members[1].radius = 0.1;
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_UNION);
    obstacle.shape.children = members;
    obstacle.shape.child_count = 2;
    obstacle.velocity[1] = kind == SELKIE_SHAPE_WAVE ? 0.0 : 0.5;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    compare_paths(&scene, dimension == 2 ? 12 : 6, kind == SELKIE_SHAPE_WAVE ? 12e-7 : PATHS_APART);
}

static void test_ground_2d(void **state)
{
    (void)state;
    ground(2, SELKIE_SHAPE_HEIGHTFIELD);
}

static void test_ground_3d(void **state)
{
    (void)state;
    ground(3, SELKIE_SHAPE_HEIGHTFIELD);
}

static void test_wave_2d(void **state)
{
    (void)state;
    ground(2, SELKIE_SHAPE_WAVE);
}

static void test_wave_3d(void **state)
{
    (void)state;
    ground(3, SELKIE_SHAPE_WAVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thin_paths), cmocka_unit_test(test_thin_idp),  cmocka_unit_test(test_thin_unilateral),
        cmocka_unit_test(test_shelf_2d),   cmocka_unit_test(test_shelf_3d),  cmocka_unit_test(test_mesh_paths),
        cmocka_unit_test(test_mesh_cup),   cmocka_unit_test(test_ground_2d), cmocka_unit_test(test_ground_3d),
        cmocka_unit_test(test_wave_2d),    cmocka_unit_test(test_wave_3d),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

/* The fields that samples and droplets of `selkie splash` are made from: joined sides, open sides and obstacles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "selkie/splash_samples.h"

enum { CELLS = 32, ROWS = 8, SIDE = 2 }; /* water of 8 rows of cells, 2 x 2 particles in each */

static float positions[CELLS * ROWS * SIDE * SIDE][3], velocities[CELLS * ROWS * SIDE * SIDE][3];

/* A tank of 32 x 32 cells of 1 cm. */
static void tank(selkie_scene *scene)
{
    selkie_scene_defaults(scene);
    scene->domain.dimension = 2;
    scene->domain.size[0] = scene->domain.size[1] = 0.32;
    scene->domain.cell_size = 0.01;
    scene->particles.per_cell = SIDE * SIDE;
    scene->surface_tension = 0.073;
}

/* Looks for candidates in still water of 8 rows, without the particles inside a box between two columns. */
static int64_t search(splash_sampler *sampler, int from, int to, double time)
{
    int64_t count = 0, candidates;
    for (int j = 0; j < ROWS * SIDE; j++)
        for (int i = 0; i < CELLS * SIDE; i++) {
            if (i >= from * SIDE && i < to * SIDE)
                continue;
            positions[count][0] = 0.01f * ((float)i + 0.5f) / SIDE;
            positions[count++][1] = 0.01f * ((float)j + 0.5f) / SIDE;
        }
    const splash_particles particles = {count, positions[0], velocities[0], NULL, time};
    const splash_candidate *found;
    const float *features;
    int width;
    assert_int_equal(splash_sampler_search(sampler, &particles, &candidates, &found, &features, &width), 1);
    return candidates;
}

static float fill_at(const splash_sampler *sampler, double x, double y)
{
    const float position[3] = {(float)x, (float)y, 0.0f};
    return splash_sampler_fill(sampler, position);
}

/* Water that reaches both joined sides is full there, and positions wrap. */
static void joined_sides(void **state)
{
    (void)state;
    selkie_scene scene;
    tank(&scene);
    scene.domain.periodic = SELKIE_AXES_X;
    splash_sampler *sampler = splash_sampler_open(&scene, 1, 1.0, 1);
    search(sampler, 0, 0, 0.0);
    for (int n = 0; n <= 32; n++)
        assert_float_equal(fill_at(sampler, 0.32 * n / 32.0, 0.035), 1.0f, 1e-5f);
    float position[3] = {0.33f, 0.1f, 0.0f};
    splash_sampler_wrap(sampler, position);
    assert_float_equal(position[0], 0.01f, 1e-6f);
    splash_sampler_close(sampler);
}

/* An obstacle that stands in the water: full up to its sides, so that its neighbours are no surface. The dry cells of a
 * gap of the same width are one. A moving obstacle is where it is at the time of the frame. */
static void obstacles(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_obstacle_def obstacle;
    tank(&scene);
    splash_sampler *sampler = splash_sampler_open(&scene, 1, 1.0, 1);
    const int64_t flat = search(sampler, 0, 0, 0.0), gap = search(sampler, 12, 16, 0.0);
    splash_sampler_close(sampler);

    memset(&obstacle, 0, sizeof obstacle);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_BOX);
    obstacle.shape.min[0] = 0.12;
    obstacle.shape.max[0] = 0.16;
    obstacle.shape.min[1] = 0.0;
    obstacle.shape.max[1] = 0.2;
    obstacle.velocity[0] = 0.1;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    sampler = splash_sampler_open(&scene, 1, 1.0, 1);
    const int64_t beside = search(sampler, 12, 16, 0.0);
    const float inside[3] = {0.14f, 0.1f, 0.0f}, later[3] = {0.18f, 0.1f, 0.0f};
    assert_true(beside < flat && flat < gap);
    assert_float_equal(fill_at(sampler, 0.115, 0.035), 1.0f, 1e-5f);
    assert_true(splash_sampler_in_solid(sampler, inside) && !splash_sampler_in_solid(sampler, later));
    search(sampler, 17, 21, 0.5);
    assert_true(!splash_sampler_in_solid(sampler, inside) && splash_sampler_in_solid(sampler, later));
    splash_sampler_close(sampler);
}

/* Air behind an open side: the cells beside it are a surface. */
static void open_sides(void **state)
{
    (void)state;
    selkie_scene scene;
    tank(&scene);
    splash_sampler *closed = splash_sampler_open(&scene, 1, 1.0, 1);
    scene.domain.walls[1] = SELKIE_WALL_OPEN;
    splash_sampler *open = splash_sampler_open(&scene, 1, 1.0, 1);
    assert_true(search(open, 0, 0, 0.0) > search(closed, 0, 0, 0.0));
    splash_sampler_close(closed);
    splash_sampler_close(open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined_sides), cmocka_unit_test(obstacles),
                                       cmocka_unit_test(open_sides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

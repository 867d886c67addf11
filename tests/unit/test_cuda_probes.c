/* Probes of heights, levels and fronts of a world on the GPU, whose sums the device makes, against the same probes
 * measured by the host from the particles of that world. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"

enum { PROBES = 8, MOST_COLUMNS = 3 * PROBES };

/* Two heights beside each other, one at a wall, two levels, fronts along two axes. */
static void set_probes(selkie_scene *scene, selkie_probe_def probes[PROBES], int up)
{
    static const char *const names[PROBES] = {"a", "b", "c", "all", "part", "ahead", "behind", "speed"};
    const int across = up == 0 ? 1 : 0;
    memset(probes, 0, PROBES * sizeof *probes);
    for (int p = 0; p < PROBES; p++) {
        probes[p].name = names[p];
        probes[p].kind = p < 3 ? SELKIE_PROBE_HEIGHT : p < 5 ? SELKIE_PROBE_LEVEL : SELKIE_PROBE_FRONT;
        for (int d = 0; d < scene->domain.dimension; d++)
            probes[p].at[d] = d == up ? (scene->gravity[up] > 0.0 ? scene->domain.size[d] : 0.0)
                                      : scene->domain.size[d] * (p == 0   ? 0.3
                                                                 : p == 1 ? 0.33
                                                                          : 1.0);
    }
    for (int d = 0; d < scene->domain.dimension; d++) { /* an area of its own */
        probes[4].min[d] = 0.1 * scene->domain.size[d];
        probes[4].max[d] = 0.55 * scene->domain.size[d];
    }
    probes[5].axis = (selkie_axis)across;
    probes[5].direction = 1;
    probes[6].axis = (selkie_axis)up;
    probes[6].direction = -1;
    scene->probes = probes;
    scene->probe_count = PROBES - 1; /* without that of the velocity */
}

/* Steps; the values of each against those that the host finds. Sums are parts of 1/65536 of a particle, which the host
 * may round differently where it fuses multiplications and additions. */
static void compare(const selkie_scene *scene, int steps)
{
    selkie_world *world = make_world(scene, SELKIE_BACKEND_CUDA);
    selkie_error error = {0};
    double there[MOST_COLUMNS];
    const int columns = selkie_world_probe_column_count(world);
    assert_in_range(columns, 1, MOST_COLUMNS);
    for (int n = 0; n < steps; n++) {
        take_steps(world, 1);
        for (int c = 0; c < columns; c++)
            there[c] = selkie_world_probe_value(world, c);
        if (sk_world_fetch(world, 1, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        sk_probes_measure(&world->probes, &world->step, sk_step_kick(&world->step));
        for (int c = 0; c < columns; c++) {
            const double here = selkie_world_probe_value(world, c);
            if (!(fabs(there[c] - here) <= 1e-4 * scene->domain.cell_size) && !(isnan(there[c]) && isnan(here)))
                fail_msg("step %d, %s: %.9g on the device, %.9g here", n + 1, selkie_world_probe_column_name(world, c),
                         there[c], here);
        }
    }
    assert_true(there[0] > 0.0 && there[3] > 0.0);
    selkie_world_destroy(world);
}

static void still(int dimension, int up, double sign)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_probe_def probes[PROBES];
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.gravity[up] = -9.81 * sign;
    if (sign < 0.0) { /* the liquid lies at the upper side */
        liquids[0].shape.min[up] = scene.domain.size[up] * 0.6;
        liquids[0].shape.max[up] = scene.domain.size[up];
    }
    set_probes(&scene, probes, up);
    compare(&scene, 4);
}

static void test_up_2d(void **state)
{
    (void)state;
    still(2, 1, 1.0);
}

static void test_down_2d(void **state)
{
    (void)state;
    still(2, 1, -1.0);
}

static void test_up_3d(void **state)
{
    (void)state;
    still(3, 1, 1.0);
}

static void test_sideways_3d(void **state)
{
    (void)state;
    still(3, 2, 1.0);
}

/* Particles that have left do not count, and columns beside an obstacle follow the shares of solids. */
static void test_obstacle_and_open_side(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_probe_def probes[PROBES];
    selkie_obstacle_def obstacle;
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.domain.walls[1] = SELKIE_WALL_OPEN;
    liquids[1].velocity[0] = 3.0;
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_BOX);
    obstacle.shape.min[0] = 0.26, obstacle.shape.max[0] = 0.36;
    obstacle.shape.min[1] = -0.1, obstacle.shape.max[1] = 0.2;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    set_probes(&scene, probes, 1);
    compare(&scene, 6);
}

/* A probe of the velocity needs the grid: the others are still right beside it. */
static void test_velocity_beside_heights(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_probe_def probes[PROBES];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_IDP);
    set_probes(&scene, probes, 1);
    scene.probe_count = PROBES;
    probes[PROBES - 1].kind = SELKIE_PROBE_VELOCITY;
    probes[PROBES - 1].at[0] = 0.2, probes[PROBES - 1].at[1] = 0.2;
    compare(&scene, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up_2d),
        cmocka_unit_test(test_down_2d),
        cmocka_unit_test(test_up_3d),
        cmocka_unit_test(test_sideways_3d),
        cmocka_unit_test(test_obstacle_and_open_side),
        cmocka_unit_test(test_velocity_beside_heights),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

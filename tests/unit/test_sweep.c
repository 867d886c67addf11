/* Paths against surfaces: the first hit of a segment against a march along it, poses between two poses, and sweeps of
 * particles that a surface must stop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/random.h"
#include "geom/shape.h"
#include "grid/sweep.h"

static sk_shape *make(const selkie_shape *def, int dimension)
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    const sk_shape_options options = {.dimension = dimension, .sheets = 1, .what = "shape"};
    if (sk_shape_create(def, &options, &shape, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return shape;
}

static double number(uint64_t n, int which)
{
    return (double)sk_random_float(5, n, (uint64_t)which);
}

/* A march in 4000 steps finds the first place inside to 1/4000 of the segment. */
static void compare_with_march(const selkie_shape *def, int dimension)
{
    enum { STEPS = 4000 };
    sk_shape *shape = make(def, dimension);
    int hits = 0;
    for (uint64_t n = 0; n < 400; n++) {
        double a[3] = {0, 0, 0}, b[3] = {0, 0, 0}, found = 2.0;
        for (int d = 0; d < dimension; d++) {
            a[d] = 3.0 * number(n, d) - 1.5;
            b[d] = 3.0 * number(n, d + 3) - 1.5;
        }
        sk_surface_hit hit = {.at = 2.0};
        const int starts_inside = sk_shape_distance(shape, a) < 0.0, hits_it = sk_shape_first_hit(shape, a, b, &hit);
        for (int i = 0; i <= STEPS && found > 1.0; i++) {
            const double x[3] = {a[0] + i * (b[0] - a[0]) / STEPS, a[1] + i * (b[1] - a[1]) / STEPS,
                                 a[2] + i * (b[2] - a[2]) / STEPS};
            if (sk_shape_distance(shape, x) < 0.0)
                found = (double)i / STEPS;
        }
        if (starts_inside)
            continue;
        if (found <= 1.0)
            assert_true(hits_it); /* a hit that the march misses grazes the shape */
        if (!hits_it)
            continue;
        hits++;
        const double on[3] = {a[0] + hit.at * (b[0] - a[0]), a[1] + hit.at * (b[1] - a[1]),
                              a[2] + hit.at * (b[2] - a[2])};
        assert_true(fabs(sk_shape_distance(shape, on)) < 1e-6);
        assert_true(hit.at <= found + 1e-6);
        assert_true(hit.normal[0] * (b[0] - a[0]) + hit.normal[1] * (b[1] - a[1]) + hit.normal[2] * (b[2] - a[2]) <
                    1e-12);
    }
    assert_true(hits > 40);
    sk_shape_destroy(shape);
}

static void first_hits(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        selkie_shape shape;
        selkie_shape_defaults(&shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < 3; d++) {
            shape.min[d] = -0.6 + 0.1 * d;
            shape.max[d] = 0.7 - 0.2 * d;
        }
        compare_with_march(&shape, dimension);
        selkie_shape_defaults(&shape, SELKIE_SHAPE_SPHERE);
        shape.center[0] = 0.2;
        shape.radius = 0.7;
        compare_with_march(&shape, dimension);
        selkie_shape_defaults(&shape, SELKIE_SHAPE_CYLINDER);
        shape.from[0] = shape.from[1] = -0.5;
        shape.to[0] = 0.6;
        shape.to[1] = 0.3;
        shape.radius = 0.4;
        compare_with_march(&shape, dimension);
        selkie_shape_defaults(&shape, SELKIE_SHAPE_HALF_SPACE);
        shape.normal[0] = 1.0;
        shape.normal[1] = 2.0;
        compare_with_march(&shape, dimension);
        selkie_shape_defaults(&shape, SELKIE_SHAPE_WAVE);
        shape.amplitude = 0.3;
        shape.wave_number[0] = 4.0;
        compare_with_march(&shape, dimension);
    }
}

/* A sheet stops paths from both sides, also along the border of its two triangles. */
static void sheets(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "sweep_%d.obj", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "v -1 0 -1\nv 1 0 -1\nv -1 0 1\nv 1 0 1\nf 1 2 4\nf 1 4 3\n");
    assert_int_equal(fclose(file), 0);
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_MESH);
    def.file = path;
    sk_shape *shape = make(&def, 3);
    remove(path);
    assert_true(sk_shape_is_sheet(shape));
    assert_true(sk_shape_thickness(shape) == 0.0);
    for (uint64_t n = 0; n < 1000; n++) {
        const double along = n % 2 ? 1.8 * number(n, 0) - 0.9 : 0.0, across = n % 2 ? along : 1.8 * number(n, 1) - 0.9;
        const double sign = n % 4 < 2 ? 1.0 : -1.0;
        const double a[3] = {along, 0.5 * sign, across}, b[3] = {along, -0.5 * sign, across};
        sk_surface_hit hit;
        assert_true(sk_shape_first_hit(shape, a, b, &hit));
        assert_true(fabs(hit.at - 0.5) < 1e-12 && hit.normal[1] * sign > 0.999);
        assert_true(sk_shape_distance(shape, a) > 0.0 && sk_shape_distance(shape, b) > 0.0);
    }
    sk_shape_destroy(shape);
}

/* The pose between two: the ends are exact, and halves of a turn make up the whole. */
static void poses(void **state)
{
    (void)state;
    selkie_obstacle_def obstacle;
    selkie_obstacle_defaults(&obstacle);
    for (int d = 0; d < 3; d++) {
        obstacle.velocity[d] = 1.0 + d;
        obstacle.angular_velocity[d] = 2.0 - d;
        obstacle.center[d] = 0.3 * d;
    }
    sk_pose start, end, middle, between;
    double turn[3];
    sk_pose_at(&obstacle, 0.2, &start);
    sk_pose_at(&obstacle, 0.8, &end);
    sk_pose_at(&obstacle, 0.5, &middle);
    sk_pose_turn(&start, &end, turn);
    for (int d = 0; d < 3; d++)
        assert_true(fabs(turn[d] - 0.6 * obstacle.angular_velocity[d]) < 1e-12);
    sk_pose_between(&start, &end, turn, 0.5, &between);
    for (int i = 0; i < 9; i++)
        assert_true(fabs(between.rotation[i] - middle.rotation[i]) < 1e-12);
    for (int d = 0; d < 3; d++)
        assert_true(fabs(between.translation[d] - middle.translation[d]) < 1e-12);
    sk_pose_between(&start, &end, turn, 1.0, &between);
    assert_memory_equal(&between, &end, sizeof end);
}

/* Particles around a plate of 0.01 cells that moves by 5 cells in the step and turns: none changes sides. */
static void fast_plate(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        selkie_obstacle_def def;
        selkie_obstacle_defaults(&def);
        selkie_shape_defaults(&def.shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < 3; d++) {
            def.shape.min[d] = d == 1 ? -0.005 : -100.0;
            def.shape.max[d] = d == 1 ? 0.005 : 100.0;
        }
        def.velocity[1] = 5.0;
        def.angular_velocity[2] = 0.3;
        sk_obstacle obstacle = {.def = &def, .shape = make(&def.shape, dimension), .moves = 1};
        uint64_t bins[3 * SK_SOLID_BINS] = {0};
        sk_solids solids = {.dimension = dimension,
                            .cell_size = 1.0,
                            .low = {-20, -20, -20},
                            .high = {20, 20, 20},
                            .obstacle_count = 1,
                            .obstacles = &obstacle,
                            .bins = bins,
                            .bin_words = 1};
        obstacle.placed = &obstacle.pose;
        sk_shape_bounds(obstacle.shape, obstacle.local_low, obstacle.local_high);
        sk_solids_move(&solids, 0.0);
        sk_solids_step(&solids, 0.0, 1.0);
        int touched = 0;
        for (uint64_t n = 0; n < 2000; n++) {
            sk_swept_path path = {.end = 1.0, .deepest = INFINITY};
            sk_touch touch;
            for (int d = 0; d < 3; d++) {
                path.from[d] = d < dimension ? (float)(8.0 * number(n, d) - 4.0) : 0.0f;
                path.to[d] = d < dimension ? path.from[d] + (float)(6.0 * number(n, d + 3) - 3.0) : 0.0f;
                path.low[d] = -1e3f;
                path.high[d] = 1e3f;
            }
            if (fabsf(path.from[1]) < 0.01f)
                continue;
            touched += sk_sweep(&solids, &path, &touch);
            const double end[3] = {path.to[0], path.to[1], path.to[2]};
            double local[3];
            sk_pose_to_local(&obstacle.end, end, local);
            assert_true(local[1] * path.from[1] > 0.0 && fabs(local[1]) > 0.005);
        }
        assert_true(touched > 100);
        sk_shape_destroy(obstacle.shape);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_hits), cmocka_unit_test(sheets), cmocka_unit_test(poses),
                                       cmocka_unit_test(fast_plate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

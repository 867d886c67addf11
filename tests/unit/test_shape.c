/* Shapes: distances against values worked out by hand, gradients against finite differences, poses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shape_cases.h"

static selkie_shape box_def(void)
{
    selkie_shape def = {.kind = SELKIE_SHAPE_BOX, .min = {-1.0, -0.5, -0.25}, .max = {1.0, 0.5, 0.25}};
    return def;
}

static void box_exact(void **state)
{
    (void)state;
    selkie_shape def = box_def();
    sk_shape *box = make(&def, 3);
    expect_near(distance(box, 0, 0, 0), -0.25, 0);
    expect_near(distance(box, 0.9, 0, 0), -0.1, 1e-15);
    expect_near(distance(box, 2, 0, 0), 1.0, 0);
    expect_near(distance(box, 4, 4.5, 0), 5.0, 1e-15);
    expect_near(distance(box, 2, 1.5, 1.25), sqrt(3.0), 1e-15);
    expect_near(distance(box, 1, 0.5, 0.25), 0.0, 0);
    expect_normal(box, 0, 0, 0, 0, 0, 1);
    expect_normal(box, -3, 0, 0, -1, 0, 0);
    expect_normal(box, 1, 0, 0, 1, 0, 0);
    expect_normal(box, 4, 4.5, 0, 0.6, 0.8, 0);
    assert_true(expect_gradient(box, 3, 2.0, 1e-6, 1e-6) > 1500);
    size_t count;
    expect_near(enclosed(box, 3, box_low, box_high, &count), 1.0, 1e-6);
    assert_int_equal(count, 12);
    double low[3], high[3];
    sk_shape_bounds(box, low, high);
    expect_near(low[1], -0.5, 0);
    expect_near(high[2], 0.25, 0);
    sk_shape_destroy(box);

    box = make(&def, 2);
    expect_near(distance(box, 0, 0, 77), -0.5, 0);
    expect_near(distance(box, 4, 4.5, -3), 5.0, 1e-15);
    expect_normal(box, 0, 0, 9, 0, 1, 0);
    assert_true(expect_gradient(box, 2, 2.0, 1e-6, 1e-6) > 1500);
    expect_near(enclosed(box, 2, box_low, box_high, &count), 2.0, 1e-6);
    assert_int_equal(count, 4);
    sk_shape_destroy(box);

    memcpy(def.max, def.min, sizeof def.max); /* a point */
    box = make(&def, 3);
    expect_near(distance(box, -1, -0.5, 0.75), 1.0, 0);
    expect_near(distance(box, -1, -0.5, -0.25), 0.0, 0);
    expect_normal(box, -1, -0.5, -0.25, 1, 0, 0);
    sk_shape_destroy(box);
}

static void sphere_exact(void **state)
{
    (void)state;
    selkie_shape def = {.kind = SELKIE_SHAPE_SPHERE, .center = {1.0, 0.0, 0.5}, .radius = 0.5};
    sk_shape *sphere = make(&def, 3);
    expect_near(distance(sphere, 1, 0, 0.5), -0.5, 0);
    expect_near(distance(sphere, 4, 4, 0.5), 4.5, 1e-15);
    expect_normal(sphere, 1, 0, 0.5, 0, 1, 0);
    expect_normal(sphere, 4, 4, 0.5, 0.6, 0.8, 0);
    expect_normal(sphere, 1, 1e-200, 0.5, 0, 1, 0); /* its square is 0 */
    assert_true(expect_gradient(sphere, 3, 2.0, 1e-6, 1e-6) > 1500);
    size_t count;
    expect_near(enclosed(sphere, 3, box_low, box_high, &count) / (4.0 / 3.0 * M_PI * 0.125), 1.0, 0.01);
    sk_shape_destroy(sphere);
    sphere = make(&def, 2);
    expect_near(distance(sphere, 1, 0, 8), -0.5, 0);
    expect_near(distance(sphere, 4, 4, 8), 4.5, 1e-15);
    assert_true(expect_gradient(sphere, 2, 2.0, 1e-6, 1e-6) > 1500);
    expect_near(enclosed(sphere, 2, box_low, box_high, &count) / (M_PI * 0.25), 1.0, 0.01);
    sk_shape_destroy(sphere);
}

static void cylinder_exact(void **state)
{
    (void)state;
    selkie_shape def = {.kind = SELKIE_SHAPE_CYLINDER, .from = {0, -1, 0}, .to = {0, 1, 0}, .radius = 0.5};
    sk_shape *cylinder = make(&def, 3);
    expect_near(distance(cylinder, 0, 0, 0), -0.5, 0);
    expect_near(distance(cylinder, 0, 0.9, 0), -0.1, 1e-15);
    expect_near(distance(cylinder, 0.6, 0, 0.8), 0.5, 1e-15);
    expect_near(distance(cylinder, 3.5, 5, 0), 5.0, 1e-15);
    expect_near(distance(cylinder, 0, 3, 0), 2.0, 0);
    expect_normal(cylinder, 0, 3, 0, 0, 1, 0);
    expect_normal(cylinder, 0, -3, 0, 0, -1, 0);
    expect_normal(cylinder, 3.5, 5, 0, 0.6, 0.8, 0);
    double normal[3], middle[3] = {0, 0, 0};
    sk_shape_distance_normal(cylinder, middle, normal);
    expect_near(normal[0] * normal[0] + normal[2] * normal[2], 1.0, 1e-14);
    sk_shape_destroy(cylinder);

    def.from[0] = -1.0, def.from[2] = 0.3, def.to[2] = -0.4;
    cylinder = make(&def, 3);
    assert_true(expect_gradient(cylinder, 3, 2.0, 1e-6, 1e-6) > 1500);
    double length = sqrt(1.0 + 4.0 + 0.49);
    size_t count;
    expect_near(enclosed(cylinder, 3, box_low, box_high, &count) / (M_PI * 0.25 * length), 1.0, 0.01);
    /* The bounds hold every point of the tessellation, and not much more. */
    double low[3], high[3], seen_low[3] = {9, 9, 9}, seen_high[3] = {-9, -9, -9};
    sk_shape_bounds(cylinder, low, high);
    float *points;
    assert_int_equal(sk_shape_triangles(cylinder, box_low, box_high, &count, &points, NULL), SELKIE_OK);
    for (size_t i = 0; i < 9 * count; i++) {
        seen_low[i % 3] = fmin(seen_low[i % 3], (double)points[i]);
        seen_high[i % 3] = fmax(seen_high[i % 3], (double)points[i]);
    }
    free(points);
    for (int i = 0; i < 3; i++) {
        expect_near(seen_low[i], low[i], 2e-3);
        expect_near(seen_high[i], high[i], 2e-3);
    }
    sk_shape_destroy(cylinder);

    /* A bar in 2D: from (0,0) to (3,4), half as wide as its radius says on each side. */
    selkie_shape bar_def = {.kind = SELKIE_SHAPE_CYLINDER, .from = {0, 0, 5}, .to = {3, 4, -7}, .radius = 1.0};
    sk_shape *bar = make(&bar_def, 2);
    expect_near(distance(bar, 1.5, 2, 0), -1.0, 1e-15);
    expect_near(distance(bar, 1.5 - 1.6, 2 + 1.2, 0), 1.0, 1e-14); /* 2 across */
    expect_near(distance(bar, 6, 8, 0), 5.0, 1e-14);
    expect_normal(bar, 6, 8, 0, 0.6, 0.8, 0);
    assert_true(expect_gradient(bar, 2, 6.0, 1e-6, 1e-6) > 1500);
    expect_near(enclosed(bar, 2, box_low, box_high, &count), 10.0, 1e-5);
    sk_shape_destroy(bar);
}

static void half_space_exact(void **state)
{
    (void)state;
    selkie_shape def = {.kind = SELKIE_SHAPE_HALF_SPACE, .point = {0, 1, 0}, .normal = {0, 5, 0}};
    sk_shape *half = make(&def, 3);
    expect_near(distance(half, 100, 3, -7), 2.0, 0);
    expect_near(distance(half, 100, -3, -7), -4.0, 0);
    expect_normal(half, 1, 2, 3, 0, 1, 0);
    double low[3], high[3];
    sk_shape_bounds(half, low, high);
    assert_true(isinf(low[0]) && isinf(low[1]) && isinf(high[2]) && high[1] == 1.0);
    float *points;
    size_t count;
    assert_int_equal(sk_shape_triangles(half, box_low, box_high, &count, &points, NULL), SELKIE_OK);
    double area = 0.0; /* as seen from above */
    for (size_t i = 0; i < count; i++) {
        const float *p = points + 9 * i;
        area += 0.5 * ((double)(p[5] - p[2]) * (p[6] - p[0]) - (double)(p[3] - p[0]) * (p[8] - p[2]));
    }
    free(points);
    expect_near(area, 16.0, 1e-4);
    sk_shape_destroy(half);

    selkie_shape slanted = {
        .kind = SELKIE_SHAPE_HALF_SPACE, .point = {0.1, 0.2, 0.3}, .normal = {1e-200, 2e-200, -2e-200}};
    half = make(&slanted, 3);
    expect_near(distance(half, 1.1, 2.2, -1.7), 3.0, 1e-14);
    assert_true(expect_gradient(half, 3, 2.0, 1e-6, 1e-6) == 2000);
    sk_shape_destroy(half);

    half = make(&def, 2);
    assert_int_equal(sk_shape_triangles(half, box_low, box_high, &count, &points, NULL), SELKIE_OK);
    assert_int_equal(count, 1);
    expect_near(points[0], 2.0, 1e-6); /* the inside, below, on the left: from right to left */
    expect_near(points[3], -2.0, 1e-6);
    expect_near(points[1], 1.0, 1e-6);
    free(points);
    const double elsewhere_low[3] = {-1, 2, 0}, elsewhere_high[3] = {1, 3, 0};
    assert_int_equal(sk_shape_triangles(half, elsewhere_low, elsewhere_high, &count, &points, NULL), SELKIE_OK);
    assert_int_equal(count, 0);
    assert_null(points);
    sk_shape_destroy(half);
}

static void wave_near_exact(void **state)
{
    (void)state;
    selkie_shape def = {
        .kind = SELKIE_SHAPE_WAVE, .level = 0.25, .amplitude = 0.2, .wave_number = {3.0, 0.7, 0.0}, .phase = 40.0};
    for (int dimension = 2; dimension <= 3; dimension++) {
        def.wave_number[2] = dimension == 3 ? -2.0 : 0.0;
        sk_shape *wave = make(&def, dimension);
        assert_true(expect_gradient(wave, dimension, 1.0, 1e-6, 1e-5) > 1500);
        /* Against a search over the curve. */
        double k = hypot(3.0, def.wave_number[2]);
        for (uint64_t n = 0; n < 100; n++) {
            double x[3];
            random_point(n, dimension, 1.0, x);
            double along = (3.0 * x[0] + def.wave_number[2] * x[2]) / k, best = INFINITY;
            for (int i = -4000; i <= 4000; i++) {
                double t = along + 1.5 * i / 4000.0;
                double rise = x[1] - 0.25 - 0.2 * cos(k * t + 40.0 * M_PI / 180.0);
                best = fmin(best, (t - along) * (t - along) + rise * rise);
            }
            int below = x[1] < 0.25 + 0.2 * cos(k * along + 40.0 * M_PI / 180.0);
            expect_near(sk_shape_distance(wave, x), below ? -sqrt(best) : sqrt(best), 3e-4);
        }
        size_t count;
        float *points;
        assert_int_equal(sk_shape_triangles(wave, box_low, box_high, &count, &points, NULL), SELKIE_OK);
        assert_true(count > 50);
        for (size_t i = 0; i < count * (size_t)dimension; i++) {
            double point[3] = {points[3 * i], points[3 * i + 1], points[3 * i + 2]};
            expect_near(sk_shape_distance(wave, point), 0.0, 2e-3);
        }
        free(points);
        sk_shape_destroy(wave);
    }
    /* Steep, negative and flat ones. */
    def.amplitude = -3.0;
    sk_shape *steep = make(&def, 2);
    expect_gradient(steep, 2, 5.0, 1e-6, 1e-3);
    sk_shape_destroy(steep);
    selkie_shape flat = {.kind = SELKIE_SHAPE_WAVE, .level = 0.5, .amplitude = 0.25};
    sk_shape *still = make(&flat, 3);
    expect_near(distance(still, 1, 2, 3), 1.25, 1e-15);
    expect_normal(still, 1, 2, 3, 0, 1, 0);
    sk_shape_destroy(still);
}

static void union_is_the_least(void **state)
{
    (void)state;
    selkie_shape parts[2] = {box_def(), {.kind = SELKIE_SHAPE_SPHERE, .center = {1.0, 0.0, 0.0}, .radius = 0.75}};
    selkie_shape both = {.kind = SELKIE_SHAPE_UNION, .child_count = 2, .children = parts};
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_shape *shape = make(&both, dimension), *box = make(&parts[0], dimension),
                 *sphere = make(&parts[1], dimension);
        for (uint64_t n = 0; n < 500; n++) {
            double x[3];
            random_point(n, dimension, 2.0, x);
            expect_near(sk_shape_distance(shape, x), fmin(sk_shape_distance(box, x), sk_shape_distance(sphere, x)),
                        0.0);
        }
        expect_gradient(shape, dimension, 2.0, 1e-6, 1e-6);
        double low[3], high[3];
        sk_shape_bounds(shape, low, high);
        expect_near(low[0], -1.0, 0);
        expect_near(high[0], 1.75, 0);
        expect_near(high[1], 0.75, 0);
        sk_shape_destroy(shape);
        sk_shape_destroy(box);
        sk_shape_destroy(sphere);
    }
}

static void bad_primitives_are_refused(void **state)
{
    (void)state;
    selkie_shape def = box_def();
    def.max[1] = -1.0;
    expect_failure(&def, 3, "liquids[0].shape.max: -1 along y is below min -0.5");
    def.max[1] = NAN;
    expect_failure(&def, 3, "liquids[0].shape.max");
    selkie_shape sphere = {.kind = SELKIE_SHAPE_SPHERE, .radius = -2.0};
    expect_failure(&sphere, 3, "radius: -2");
    sphere.radius = INFINITY;
    expect_failure(&sphere, 2, "radius: inf");
    selkie_shape cylinder = {.kind = SELKIE_SHAPE_CYLINDER, .radius = 1.0, .to = {0, 0, 1}};
    expect_failure(&cylinder, 2, "same point as from"); /* apart only along z */
    selkie_shape half = {.kind = SELKIE_SHAPE_HALF_SPACE, .normal = {0, 0, 1}};
    expect_failure(&half, 2, "no direction in the x-y plane");
    selkie_shape wave = {.kind = SELKIE_SHAPE_WAVE, .amplitude = NAN};
    expect_failure(&wave, 2, "amplitude: nan");
    selkie_shape empty = {.kind = SELKIE_SHAPE_UNION};
    expect_failure(&empty, 3, "at least one shape");
    selkie_shape bad_part[2] = {box_def(), sphere},
                 bad_union = {.kind = SELKIE_SHAPE_UNION, .child_count = 2, .children = bad_part};
    expect_failure(&bad_union, 3, "liquids[0].shape.shapes[1].radius");
    selkie_shape nothing = {.kind = (selkie_shape_kind)42};
    expect_failure(&nothing, 3, "42 is no kind of shape");
    selkie_shape nested[100];
    for (int i = 0; i < 99; i++)
        nested[i] = (selkie_shape){.kind = SELKIE_SHAPE_UNION, .child_count = 1, .children = &nested[i + 1]};
    nested[99] = box_def();
    expect_failure(nested, 3, "nested more than");
    expect_failure(&half, 4, "dimension 4");
}

/* --- Poses --- */

static void expect_rigid(const sk_pose *pose)
{
    const double *r = pose->rotation;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            expect_near(r[3 * i] * r[3 * j] + r[3 * i + 1] * r[3 * j + 1] + r[3 * i + 2] * r[3 * j + 2], i == j, 1e-14);
    expect_near(r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
                    r[2] * (r[3] * r[7] - r[4] * r[6]),
                1.0, 1e-14);
    double x[3] = {0.3, -1.2, 2.5}, world[3], back[3];
    sk_pose_to_world(pose, x, world);
    sk_pose_to_local(pose, world, back);
    for (int i = 0; i < 3; i++)
        expect_near(back[i], x[i], 1e-14);
}

/* The velocity of a material point is the derivative of where it is. */
static void expect_velocity(const selkie_obstacle_def *obstacle, double time)
{
    const double local[3] = {0.7, -0.4, 1.1}, step = 1e-5;
    sk_pose pose, before, after;
    sk_pose_at(obstacle, time, &pose);
    sk_pose_at(obstacle, time - step, &before);
    sk_pose_at(obstacle, time + step, &after);
    expect_rigid(&pose);
    double now[3], a[3], b[3], velocity[3];
    sk_pose_to_world(&pose, local, now);
    sk_pose_to_world(&before, local, a);
    sk_pose_to_world(&after, local, b);
    sk_pose_velocity(&pose, now, velocity);
    for (int i = 0; i < 3; i++)
        expect_near(velocity[i], (b[i] - a[i]) / (2.0 * step), 1e-8);
}

static void pose_of_constant_motion(void **state)
{
    (void)state;
    selkie_obstacle_def still = {.center = {1, 2, 3}};
    assert_false(sk_obstacle_moves(&still));
    selkie_obstacle_def obstacle = {
        .velocity = {1, 0, -0.5}, .angular_velocity = {0.5, -1.0, 2.0}, .center = {0.2, 0.1, -0.3}};
    assert_true(sk_obstacle_moves(&obstacle));
    for (int i = 0; i < 20; i++)
        expect_velocity(&obstacle, 0.37 * i);
    /* A quarter turn about z through (1, 0, 0), which moves along: (2, 0, 0) comes to (1, 1, 0) + path. */
    selkie_obstacle_def turning = {.velocity = {3, 0, 0}, .angular_velocity = {0, 0, M_PI / 2}, .center = {1, 0, 0}};
    sk_pose pose;
    sk_pose_at(&turning, 1.0, &pose);
    const double local[3] = {2, 0, 0};
    double world[3], velocity[3];
    sk_pose_to_world(&pose, local, world);
    expect_near(world[0], 4.0, 1e-15);
    expect_near(world[1], 1.0, 1e-15);
    sk_pose_velocity(&pose, world, velocity);
    expect_near(velocity[0], 3.0 - M_PI / 2, 1e-14);
    expect_near(velocity[1], 0.0, 1e-14);
    sk_pose_at(&turning, 0.0, &pose);
    for (int i = 0; i < 9; i++)
        expect_near(pose.rotation[i], i % 4 == 0, 0.0);
}

static void pose_of_keyframes(void **state)
{
    (void)state;
    selkie_keyframe keys[4] = {{1.0, {0, 0, 0}, {0, 0, 0}},
                               {2.0, {1, 2, 0}, {0, 0, 90}},
                               {4.0, {1, 2, 3}, {30, -40, 200}},
                               {4.5, {0, 0, 0}, {30, -40, 200}}};
    selkie_obstacle_def obstacle = {
        .center = {0.5, 0, 0}, .keyframe_count = 4, .keyframes = keys, .velocity = {9, 9, 9}};
    assert_true(sk_obstacle_moves(&obstacle));
    const double times[] = {-3.0, 0.9, 1.2, 1.5, 1.9, 2.1, 3.0, 3.99, 4.2, 4.6, 100.0};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        expect_velocity(&obstacle, times[i]);
    sk_pose pose;
    sk_pose_at(&obstacle, 1.5, &pose);
    expect_near(pose.translation[1], 1.0, 1e-15);
    expect_near(pose.rotation[0], sqrt(0.5), 1e-14);
    expect_near(pose.rotation[3], sqrt(0.5), 1e-14);
    expect_near(pose.angular_velocity[2], M_PI / 2, 1e-14);
    for (int k = 0; k < 4; k++) { /* the keys themselves are reached from both sides */
        sk_pose at, before;
        sk_pose_at(&obstacle, keys[k].time, &at);
        sk_pose_at(&obstacle, keys[k].time - 1e-9, &before);
        double degrees[9];
        sk_rotation_from_degrees(keys[k].rotate, degrees);
        for (int i = 0; i < 9; i++) {
            expect_near(at.rotation[i], degrees[i], 1e-14);
            expect_near(before.rotation[i], degrees[i], 1e-7);
        }
        expect_near(at.translation[2], keys[k].translate[2], 1e-15);
    }
    sk_pose_at(&obstacle, 4.5, &pose);
    assert_true(pose.velocity[0] == 0.0 && pose.angular_velocity[2] == 0.0);
    /* One key, or equal ones: placed but not moving. */
    keys[0].rotate[0] = 90.0;
    obstacle.keyframe_count = 1;
    assert_false(sk_obstacle_moves(&obstacle));
    sk_pose_at(&obstacle, 7.0, &pose);
    expect_near(pose.rotation[7], 1.0, 1e-15);
    /* Two keys at one time: a jump, no division by zero. */
    selkie_keyframe jump[2] = {{1.0, {0, 0, 0}, {0, 0, 0}}, {1.0, {5, 0, 0}, {0, 0, 0}}};
    obstacle.keyframes = jump;
    obstacle.keyframe_count = 2;
    sk_pose_at(&obstacle, 1.0, &pose);
    expect_near(pose.translation[0], 5.0, 0.0);
    sk_pose_at(&obstacle, 0.5, &pose);
    expect_near(pose.translation[0], 0.0, 0.0);
}

static void obstacle_distance_follows_the_pose(void **state)
{
    (void)state;
    selkie_shape def = box_def();
    sk_shape *box = make(&def, 3);
    selkie_obstacle_def obstacle = {.velocity = {1, 0, 0}, .angular_velocity = {0, 0, M_PI / 2}};
    sk_pose pose;
    sk_pose_at(&obstacle, 1.0, &pose); /* standing on end, one metre along */
    double points[6] = {1, 3, 0, 1, 0.9, 0}, distances[2], normal[3];
    sk_shape_distances(box, &pose, 2, points, distances);
    expect_near(distances[0], 2.0, 1e-14);
    expect_near(distances[1], -0.1, 1e-14);
    expect_near(sk_obstacle_distance(box, &pose, points, normal), 2.0, 1e-14);
    expect_near(normal[1], 1.0, 1e-14);
    sk_shape_distances(box, NULL, 2, points, distances);
    expect_near(distances[0], 2.5, 1e-14);
    assert_true(sk_obstacle_distance(box, NULL, points, NULL) == distances[0]);
    sk_shape_destroy(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(box_exact),
        cmocka_unit_test(sphere_exact),
        cmocka_unit_test(cylinder_exact),
        cmocka_unit_test(half_space_exact),
        cmocka_unit_test(wave_near_exact),
        cmocka_unit_test(union_is_the_least),
        cmocka_unit_test(bad_primitives_are_refused),
        cmocka_unit_test(pose_of_constant_motion),
        cmocka_unit_test(pose_of_keyframes),
        cmocka_unit_test(obstacle_distance_follows_the_pose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

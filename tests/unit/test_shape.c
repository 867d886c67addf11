/* Shapes: distances against values worked out by hand, gradients against finite differences, poses, outlines. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmocka.h>

#include "base/random.h"
#include "geom/mesh_distance.h"
#include "geom/mesh_import.h"
#include "geom/shape.h"
#include "selkie_config.h"

static const double up_y[3] = {0.0, 1.0, 0.0};

static sk_shape *make(const selkie_shape *def, int dimension)
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    char warning[256];
    const sk_shape_options options = {.dimension = dimension, .up = up_y, .what = "shape", .warning = warning};
    selkie_code code = sk_shape_create(def, &options, &shape, &error);
    if (code != SELKIE_OK)
        fail_msg("%s", error.message);
    return shape;
}

static void expect_failure(const selkie_shape *def, int dimension, const char *part_of_message)
{
    sk_shape *shape = (sk_shape *)def;
    selkie_error error = {0};
    char warning[256];
    sk_memory memory = {0};
    const sk_shape_options options = {
        .dimension = dimension, .up = up_y, .what = "liquids[0].shape", .memory = &memory, .warning = warning};
    selkie_code code = sk_shape_create(def, &options, &shape, &error);
    assert_int_not_equal(code, SELKIE_OK);
    assert_null(shape);
    assert_int_equal(memory.used, 0);
    if (!strstr(error.message, part_of_message))
        fail_msg("\"%s\" does not say \"%s\"", error.message, part_of_message);
    assert_null(strchr(error.message, '\n'));
}

static double distance(const sk_shape *shape, double x, double y, double z)
{
    double point[3] = {x, y, z};
    return sk_shape_distance(shape, point);
}

static void expect_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
}

static void random_point(uint64_t index, int dimension, double extent, double point[3])
{
    for (int i = 0; i < 3; i++)
        point[i] = i < dimension ? extent * (2.0 * (double)sk_random_float(7, index, (uint64_t)i) - 1.0) : 0.0;
}

/* Unit normals everywhere; where the distance is smooth (the two-sided and one-sided differences agree) the gradient is
 * the normal. Returns how many points were smooth. */
static int expect_gradient(const sk_shape *shape, int dimension, double extent, double step, double tolerance)
{
    int smooth_points = 0;
    for (uint64_t n = 0; n < 2000; n++) {
        double x[3], normal[3], gradient[3] = {0};
        random_point(n, dimension, extent, x);
        double d = sk_shape_distance_normal(shape, x, normal);
        assert_true(d == sk_shape_distance(shape, x));
        expect_near(sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]), 1.0, 1e-12);
        int smooth = 1;
        for (int i = 0; i < dimension; i++) {
            double a[3] = {x[0], x[1], x[2]}, b[3] = {x[0], x[1], x[2]};
            a[i] -= step;
            b[i] += step;
            double below = sk_shape_distance(shape, a), above = sk_shape_distance(shape, b);
            gradient[i] = (above - below) / (2.0 * step);
            smooth = smooth && fabs(above - 2.0 * d + below) < 1e-2 * step;
        }
        if (!smooth)
            continue;
        smooth_points++;
        expect_near(sqrt(gradient[0] * gradient[0] + gradient[1] * gradient[1] + gradient[2] * gradient[2]), 1.0,
                    tolerance);
        for (int i = 0; i < dimension; i++)
            expect_near(normal[i], gradient[i], tolerance);
    }
    return smooth_points;
}

static void expect_normal(const sk_shape *shape, double x, double y, double z, double nx, double ny, double nz)
{
    double point[3] = {x, y, z}, normal[3];
    sk_shape_distance_normal(shape, point, normal);
    expect_near(normal[0], nx, 1e-14);
    expect_near(normal[1], ny, 1e-14);
    expect_near(normal[2], nz, 1e-14);
}

/* The volume (3D) or area (2D) that the triangles or segments surround, by the divergence theorem. */
static double enclosed(const sk_shape *shape, int dimension, const double low[3], const double high[3], size_t *count)
{
    float *points = NULL;
    selkie_error error = {0};
    assert_int_equal(sk_shape_triangles(shape, low, high, count, &points, &error), SELKIE_OK);
    double sum = 0.0;
    for (size_t i = 0; i < *count; i++) {
        const float *p = points + 3 * dimension * i, *q = p + 3, *r = p + 6;
        if (dimension == 2)
            sum += 0.5 * ((double)p[0] * q[1] - (double)p[1] * q[0]);
        else
            sum += ((double)p[0] * ((double)q[1] * r[2] - (double)q[2] * r[1]) +
                    (double)p[1] * ((double)q[2] * r[0] - (double)q[0] * r[2]) +
                    (double)p[2] * ((double)q[0] * r[1] - (double)q[1] * r[0])) /
                   6.0;
    }
    /* Every point lies on the shape. */
    for (size_t i = 0; i < *count * (size_t)dimension; i++) {
        double point[3] = {points[3 * i], points[3 * i + 1], points[3 * i + 2]};
        expect_near(sk_shape_distance(shape, point), 0.0, 1e-5);
    }
    free(points);
    return sum;
}

static const double box_low[3] = {-2.0, -2.0, -2.0}, box_high[3] = {2.0, 2.0, 2.0};

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
    expect_failure(&bad_union, 3, "liquids[0].shape.children[1].radius");
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

/* --- Meshes --- */

#if SELKIE_HAVE_ASSIMP

static char folder[] = "test_shape_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf ./%s", folder);
    return system(command);
}

/* A soup of triangles, three points each. */
typedef struct soup {
    size_t count, capacity;
    double (*points)[3];
} soup;

static void add(soup *s, const double a[3], const double b[3], const double c[3])
{
    if (3 * s->count + 3 > s->capacity) {
        s->capacity = 2 * s->capacity + 3000;
        s->points = realloc(s->points, s->capacity * sizeof *s->points);
        assert_non_null(s->points);
    }
    memcpy(s->points[3 * s->count], a, sizeof(double[3]));
    memcpy(s->points[3 * s->count + 1], b, sizeof(double[3]));
    memcpy(s->points[3 * s->count + 2], c, sizeof(double[3]));
    s->count++;
}

static void midpoint(const double a[3], const double b[3], double m[3])
{
    double length = 0.0;
    for (int i = 0; i < 3; i++) {
        m[i] = a[i] + b[i];
        length += m[i] * m[i];
    }
    for (int i = 0; i < 3; i++)
        m[i] = (double)(float)(m[i] / sqrt(length)); /* as a file in single precision has it */
}

static void refine(soup *s, const double a[3], const double b[3], const double c[3], int level)
{
    if (level == 0) {
        add(s, a, b, c);
        return;
    }
    double ab[3], bc[3], ca[3];
    midpoint(a, b, ab);
    midpoint(b, c, bc);
    midpoint(c, a, ca);
    refine(s, a, ab, ca, level - 1);
    refine(s, ab, b, bc, level - 1);
    refine(s, ca, bc, c, level - 1);
    refine(s, ab, bc, ca, level - 1);
}

/* An octahedron made round: outward, radius 1, with points in all three coordinate planes. */
static soup ball(int level)
{
    soup s = {0};
    for (int octant = 0; octant < 8; octant++) {
        double x[3] = {octant & 1 ? -1 : 1, 0, 0}, y[3] = {0, octant & 2 ? -1 : 1, 0},
               z[3] = {0, 0, octant & 4 ? -1 : 1};
        int mirrored = (octant & 1) ^ (octant >> 1 & 1) ^ (octant >> 2);
        refine(&s, x, mirrored ? z : y, mirrored ? y : z, level);
    }
    return s;
}

static void invert(soup *s)
{
    for (size_t t = 0; t < s->count; t++)
        for (int i = 0; i < 3; i++) {
            double kept = s->points[3 * t][i];
            s->points[3 * t][i] = s->points[3 * t + 1][i];
            s->points[3 * t + 1][i] = kept;
        }
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static void write_obj(const char *name, const soup *s)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    fprintf(file, "mtllib not_there.mtl\no part\n");
    for (size_t i = 0; i < 3 * s->count; i++)
        fprintf(file, "v %.9g %.9g %.9g\n", s->points[i][0], s->points[i][1], s->points[i][2]);
    for (size_t t = 0; t < s->count; t++)
        fprintf(file, "f %zu %zu %zu\n", 3 * t + 1, 3 * t + 2, 3 * t + 3);
    assert_int_equal(fclose(file), 0);
}

static void write_stl(const char *name, const soup *s, int binary)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    if (!binary)
        fprintf(file, "solid ball\n");
    else {
        char head[80] = "made by a test";
        uint32_t count = (uint32_t)s->count;
        fwrite(head, 1, sizeof head, file);
        fwrite(&count, sizeof count, 1, file);
    }
    for (size_t t = 0; t < s->count; t++) {
        if (binary) {
            float values[12] = {0};
            for (int i = 0; i < 9; i++)
                values[3 + i] = (float)s->points[3 * t + (size_t)i / 3][i % 3];
            fwrite(values, sizeof values, 1, file);
            fwrite("\0", 1, 2, file);
        } else {
            fprintf(file, "facet normal 0 0 0\nouter loop\n");
            for (int c = 0; c < 3; c++)
                fprintf(file, "vertex %.9g %.9g %.9g\n", s->points[3 * t + (size_t)c][0],
                        s->points[3 * t + (size_t)c][1], s->points[3 * t + (size_t)c][2]);
            fprintf(file, "endloop\nendfacet\n");
        }
    }
    if (!binary)
        fprintf(file, "endsolid ball\n");
    assert_int_equal(fclose(file), 0);
}

static void write_ply(const char *name, const soup *s, int binary)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    fprintf(
        file,
        "ply\nformat %s 1.0\nelement vertex %zu\nproperty float x\nproperty float y\nproperty float z\nelement face "
        "%zu\nproperty list uchar int vertex_indices\nend_header\n",
        binary ? "binary_little_endian" : "ascii", 3 * s->count, s->count);
    for (size_t i = 0; i < 3 * s->count; i++) {
        float p[3] = {(float)s->points[i][0], (float)s->points[i][1], (float)s->points[i][2]};
        if (binary)
            fwrite(p, sizeof p, 1, file);
        else
            fprintf(file, "%.9g %.9g %.9g\n", (double)p[0], (double)p[1], (double)p[2]);
    }
    for (size_t t = 0; t < s->count; t++) {
        int32_t corners[3] = {(int32_t)(3 * t), (int32_t)(3 * t) + 1, (int32_t)(3 * t) + 2};
        if (binary) {
            fputc(3, file);
            fwrite(corners, sizeof corners, 1, file);
        } else
            fprintf(file, "3 %d %d %d\n", corners[0], corners[1], corners[2]);
    }
    assert_int_equal(fclose(file), 0);
}

/* glTF with its buffer in a file beside it, and the ball in two nodes: one half of each, the second below a node that
 * mirrors it twice over, so that transforms and merging both matter. */
static void write_gltf(const char *name, const char *buffer_name, const soup *s)
{
    size_t half = s->count / 2;
    FILE *file = fopen(path_of(buffer_name), "wb");
    assert_non_null(file);
    for (size_t i = 0; i < 3 * s->count; i++) {
        /* the second half is stored scaled by 1/2 and moved, mirrored in x */
        double move = i < 3 * half ? 0.0 : 3.0, scale = i < 3 * half ? 1.0 : 0.5;
        float p[3] = {(float)((i < 3 * half ? scale : -scale) * s->points[i][0]),
                      (float)(scale * s->points[i][1] - move), (float)(scale * s->points[i][2])};
        fwrite(p, sizeof p, 1, file);
    }
    assert_int_equal(fclose(file), 0);
    file = fopen(path_of(name), "w");
    assert_non_null(file);
    fprintf(file,
            "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0,1]}],\"nodes\":[{\"mesh\":0},"
            "{\"scale\":[-2,2,2],\"children\":[2]},{\"mesh\":1,\"translation\":[0,3,0]}],\"meshes\":[{\"primitives\":[{"
            "\"attributes\":{\"POSITION\":0}}]},{\"primitives\":[{\"attributes\":{\"POSITION\":1}}]}],\"accessors\":[");
    for (int part = 0; part < 2; part++)
        fprintf(
            file,
            "%s{\"bufferView\":%d,\"componentType\":5126,\"count\":%zu,\"type\":\"VEC3\",\"min\":[-9,-9,-9],\"max\":[9,"
            "9,9]}",
            part ? "," : "", part, 3 * half);
    fprintf(file,
            "],\"bufferViews\":[{\"buffer\":0,\"byteOffset\":0,\"byteLength\":%zu},{\"buffer\":0,\"byteOffset\":%zu,"
            "\"byteLength\":%zu}],\"buffers\":[{\"byteLength\":%zu,\"uri\":\"%s\"}]}",
            36 * half, 36 * half, 36 * half, 72 * half, buffer_name);
    assert_int_equal(fclose(file), 0);
}

static selkie_shape mesh_def(const char *name)
{
    selkie_shape def = {.kind = SELKIE_SHAPE_MESH, .file = name, .scale = {1, 1, 1}};
    return def;
}

static sk_shape_options mesh_options(int dimension, double sample_size, sk_memory *memory)
{
    return (sk_shape_options){.dimension = dimension,
                              .up = up_y,
                              .folder = folder,
                              .sample_size = sample_size,
                              .what = "obstacles[0].shape",
                              .memory = memory};
}

static sk_shape *make_mesh(const selkie_shape *def, int dimension, double sample_size, sk_memory *memory,
                           char warning[256])
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    char own_warning[256];
    sk_shape_options options = mesh_options(dimension, sample_size, memory);
    options.warning = warning ? warning : own_warning;
    if (sk_shape_create(def, &options, &shape, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    if (!warning)
        assert_string_equal(own_warning, "");
    return shape;
}

static void expect_mesh_failure(const selkie_shape *def, int dimension, selkie_code expected, const char *part)
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    sk_memory memory = {0};
    const sk_shape_options options = mesh_options(dimension, 0.0, &memory);
    selkie_code code = sk_shape_create(def, &options, &shape, &error);
    if (code != expected)
        fail_msg("code %s: %s", selkie_code_name(code), error.message);
    assert_null(shape);
    assert_int_equal(memory.used, 0);
    if (!strstr(error.message, part) || !strstr(error.message, def->file) || strchr(error.message, '\n'))
        fail_msg("\"%s\" does not say \"%s\"", error.message, part);
}

/* A ball of level 4 is at most 2.5e-3 inside the sphere. */
static void expect_ball(const sk_shape *shape, const double center[3], double radius, double tolerance)
{
    for (uint64_t n = 0; n < 400; n++) {
        double x[3], arm[3], squared = 0.0;
        random_point(n, 3, 1.6 * radius, x);
        for (int i = 0; i < 3; i++) {
            arm[i] = x[i];
            squared += arm[i] * arm[i];
            x[i] += center[i];
        }
        expect_near(sk_shape_distance(shape, x), sqrt(squared) - radius, tolerance * radius);
    }
}

static void mesh_ball_in_every_format(void **state)
{
    (void)state;
    soup s = ball(4);
    write_obj("ball.obj", &s);
    write_stl("ball_text.stl", &s, 0);
    write_stl("ball_binary.STL", &s, 1);
    write_ply("ball_text.ply", &s, 0);
    write_ply("ball_binary.ply", &s, 1);
    write_gltf("ball.gltf", "ball.bin", &s);
    invert(&s);
    write_stl("inverted.stl", &s, 1);
    static const char *const names[] = {"ball.obj",        "ball_text.stl", "ball_binary.STL", "ball_text.ply",
                                        "ball_binary.ply", "ball.gltf",     "inverted.stl"};
    const double origin[3] = {0, 0, 0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        selkie_shape def = mesh_def(names[i]);
        sk_memory memory = {0};
        sk_shape *shape = make_mesh(&def, 3, 0.0, &memory, NULL); /* no warning: welded and closed */
        expect_ball(shape, origin, 1.0, 4e-3);
        size_t count;
        expect_near(enclosed(shape, 3, box_low, box_high, &count), 4.0 / 3.0 * M_PI,
                    0.04); /* outward, also the inverted */
        assert_int_equal(count, s.count);
        sk_shape_destroy(shape);
        assert_int_equal(memory.used, 0);
    }
    free(s.points);
}

static void mesh_gradient_and_placement(void **state)
{
    (void)state;
    soup s = ball(4);
    write_obj("small.obj", &s);
    selkie_shape def = mesh_def("small.obj");
    sk_shape *shape = make_mesh(&def, 3, 0.0, NULL, NULL);
    assert_true(expect_gradient(shape, 3, 1.5, 1e-6, 1e-5) > 1000);
    double on[3] = {1, 0, 0}, normal[3];
    expect_near(sk_shape_distance_normal(shape, on, normal), 0.0, 1e-12);
    assert_true(normal[0] > 0.9);
    sk_shape_destroy(shape);

    /* Mirrored along one axis, turned and moved. */
    def.scale[0] = -0.5, def.scale[1] = def.scale[2] = 0.5;
    def.rotate[0] = 90.0, def.translate[1] = 7.0;
    const double center[3] = {0, 7, 0};
    shape = make_mesh(&def, 3, 0.0, NULL, NULL);
    expect_ball(shape, center, 0.5, 4e-3);
    sk_shape_destroy(shape);

    /* scale, then rotate (x, y, z), then translate: a spike at (1,0,0) goes to (2,0,0), about z to (0,2,0), to (0,2,5).
     */
    soup spike = {0};
    const double a[3] = {1, 0, 0}, b[3] = {0, 0.1, 0}, c[3] = {0, 0, 0.1}, o[3] = {0, 0, 0};
    add(&spike, a, b, c), add(&spike, o, b, a), add(&spike, o, c, b), add(&spike, o, a, c);
    write_obj("spike.obj", &spike);
    selkie_shape placed = mesh_def("spike.obj");
    placed.scale[0] = 2.0, placed.rotate[2] = 90.0, placed.translate[2] = 5.0;
    shape = make_mesh(&placed, 3, 0.0, NULL, NULL);
    double low[3], high[3];
    sk_shape_bounds(shape, low, high);
    expect_near(high[1], 2.0, 1e-12);
    expect_near(low[0], -0.1, 1e-7);
    expect_near(high[2], 5.1, 1e-7);
    sk_shape_destroy(shape);
    free(spike.points);
    free(s.points);
}

static void mesh_with_a_hole(void **state)
{
    (void)state;
    soup s = ball(4);
    s.count -= 12; /* leaves a gap */
    write_stl("open.stl", &s, 1);
    selkie_shape def = mesh_def("open.stl");
    char warning[256];
    sk_shape *shape = make_mesh(&def, 3, 0.0, NULL, warning);
    unsigned edges = 0;
    assert_int_equal(
        sscanf(warning, "open.stl: %u open edges, not closed: inside is decided by winding number", &edges), 1);
    assert_in_range(edges, 6, 36);
    assert_null(strchr(warning, '\n'));
    int wrong = 0;
    for (uint64_t n = 0; n < 2000; n++) {
        double x[3];
        random_point(n, 3, 1.5, x);
        double r = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
        if (fabs(r - 1.0) > 0.15)
            wrong += (sk_shape_distance(shape, x) < 0.0) != (r < 1.0);
    }
    assert_int_equal(wrong, 0);
    sk_shape_destroy(shape);

    /* Sampled: the same sides. */
    shape = make_mesh(&def, 3, 0.1, NULL, warning);
    for (uint64_t n = 0; n < 2000; n++) {
        double x[3];
        random_point(n, 3, 1.5, x);
        double r = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
        if (fabs(r - 1.0) > 0.15)
            wrong += (sk_shape_distance(shape, x) < 0.0) != (r < 1.0);
    }
    assert_int_equal(wrong, 0);
    sk_shape_destroy(shape);

    /* Some faces turned over: put right, closed. */
    s.count += 12;
    for (size_t t = 0; t < s.count; t += 7)
        for (int i = 0; i < 3; i++) {
            double kept = s.points[3 * t][i];
            s.points[3 * t][i] = s.points[3 * t + 1][i];
            s.points[3 * t + 1][i] = kept;
        }
    write_stl("mixed.stl", &s, 1);
    def.file = "mixed.stl";
    shape = make_mesh(&def, 3, 0.0, NULL, NULL);
    const double origin[3] = {0, 0, 0};
    expect_ball(shape, origin, 1.0, 4e-3);
    sk_shape_destroy(shape);
    free(s.points);
}

/* Two shells: the inner one turned over is a cavity; a separate part turned over is solid all the same. */
static void mesh_of_parts(void **state)
{
    (void)state;
    soup s = ball(3), inner = ball(3), apart = ball(3);
    invert(&inner);
    invert(&apart);
    for (size_t i = 0; i < 3 * inner.count; i++) {
        for (int a = 0; a < 3; a++)
            inner.points[i][a] *= 0.5;
        apart.points[i][0] += 5.0;
    }
    for (size_t t = 0; t < inner.count; t++) {
        add(&s, inner.points[3 * t], inner.points[3 * t + 1], inner.points[3 * t + 2]);
        add(&s, apart.points[3 * t], apart.points[3 * t + 1], apart.points[3 * t + 2]);
    }
    write_ply("parts.ply", &s, 1);
    selkie_shape def = mesh_def("parts.ply");
    for (int sampled = 0; sampled < 2; sampled++) {
        sk_shape *shape = make_mesh(&def, 3, sampled ? 0.1 : 0.0, NULL, NULL);
        assert_true(distance(shape, 0.0, 0.02, 0.01) > 0.1);
        assert_true(distance(shape, 0.75, 0, 0) < -0.1);
        assert_true(distance(shape, 5, 0.1, 0) < -0.1);
        assert_true(distance(shape, 2.5, 0, 0) > 0.1);
        sk_shape_destroy(shape);
    }
    free(s.points);
    free(inner.points);
    free(apart.points);
}

static void mesh_winding_is_close_to_exact(void **state)
{
    (void)state;
    soup s = ball(4);
    sk_solid_mesh solid;
    assert_int_equal(sk_solid_mesh_from_corners(s.count, (const double(*)[3])s.points, "ball", NULL, &solid, NULL),
                     SELKIE_OK);
    assert_int_equal(solid.open_edges, 0);
    assert_int_equal(solid.triangle_count, s.count);
    assert_int_equal(solid.vertex_count, s.count / 2 + 2); /* Euler */
    expect_near(sk_solid_mesh_volume(&solid), 4.0 / 3.0 * M_PI, 0.05);
    sk_solid_mesh_release(&solid);
    sk_mesh_distance *mesh;
    /* An open half, for which the exact value is not whole: the sum over single triangles. */
    size_t half = s.count / 2;
    const sk_mesh_pieces pieces = {
        .dimension = 3, .count = half, .corners = (const double(*)[3])s.points, .name = "half"};
    assert_int_equal(sk_mesh_distance_create(&pieces, NULL, &mesh, NULL), SELKIE_OK);
    double worst = 0.0;
    for (uint64_t n = 0; n < 200; n++) {
        double x[3], exact = 0.0;
        random_point(n, 3, 1.5, x);
        for (size_t t = 0; t < half; t++) {
            double v[3][3], length[3];
            for (int c = 0; c < 3; c++) {
                for (int i = 0; i < 3; i++)
                    v[c][i] = s.points[3 * t + (size_t)c][i] - x[i];
                length[c] = sqrt(v[c][0] * v[c][0] + v[c][1] * v[c][1] + v[c][2] * v[c][2]);
            }
            double det = v[0][0] * (v[1][1] * v[2][2] - v[1][2] * v[2][1]) -
                         v[0][1] * (v[1][0] * v[2][2] - v[1][2] * v[2][0]) +
                         v[0][2] * (v[1][0] * v[2][1] - v[1][1] * v[2][0]);
            double below = length[0] * length[1] * length[2];
            for (int c = 0; c < 3; c++) {
                const double *p = v[c], *q = v[(c + 1) % 3];
                below += (p[0] * q[0] + p[1] * q[1] + p[2] * q[2]) * length[(c + 2) % 3];
            }
            exact += 2.0 * atan2(det, below) / (4.0 * M_PI);
        }
        worst = fmax(worst, fabs(sk_mesh_distance_winding(mesh, x) - exact));
    }
    assert_true(worst < 0.03);
    sk_mesh_distance_destroy(mesh);
    free(s.points);
}

static void mesh_in_two_dimensions(void **state)
{
    (void)state;
    soup s = ball(5);
    write_obj("round.obj", &s);
    selkie_shape def = mesh_def("round.obj");
    for (int off_center = 0; off_center < 2; off_center++) {
        /* Through vertices (the ball has some at z = 0) and between them. */
        def.translate[2] = off_center ? 0.4 : 0.0;
        double radius = off_center ? sqrt(1.0 - 0.16) : 1.0;
        sk_shape *shape = make_mesh(&def, 2, 0.1, NULL, NULL);
        for (uint64_t n = 0; n < 1000; n++) {
            double x[3];
            random_point(n, 2, 1.5, x);
            x[2] = 17.0;
            expect_near(sk_shape_distance(shape, x), hypot(x[0], x[1]) - radius, 2e-3);
        }
        assert_true(expect_gradient(shape, 2, 1.5, 1e-6, 1e-5) > 1000);
        size_t count;
        expect_near(enclosed(shape, 2, box_low, box_high, &count), M_PI * radius * radius,
                    0.01); /* inside on the left */
        double low[3], high[3];
        sk_shape_bounds(shape, low, high);
        expect_near(high[0], radius, 2e-3);
        expect_near(high[2], 0.0, 0.0);
        sk_shape_destroy(shape);
    }
    def.translate[2] = 3.0;
    expect_mesh_failure(&def, 2, SELKIE_ERROR_INPUT, "does not cross the plane z = 0, its z runs from 2 to 4");
    free(s.points);

    /* A flat L at z = 5, its faces down. */
    write_text("flat.obj", "v 0 0 5\nv 2 0 5\nv 2 1 5\nv 1 1 5\nv 1 3 5\nv 0 3 5\nf 6 5 4 1\nf 4 3 2 1\n");
    selkie_shape flat = mesh_def("flat.obj");
    sk_shape *shape = make_mesh(&flat, 2, 0.0, NULL, NULL);
    expect_near(distance(shape, 0.5, 0.5, 0), -0.5, 1e-12);
    expect_near(distance(shape, 1.5, 1.5, 0), 0.5, 1e-12);
    expect_near(distance(shape, 3, 0.5, 0), 1.0, 1e-12);
    size_t count;
    expect_near(enclosed(shape, 2, box_low, box_high, &count), 4.0, 1e-9);
    sk_shape_destroy(shape);
}

static void mesh_sampled(void **state)
{
    (void)state;
    soup s = ball(4);
    write_stl("ball.stl", &s, 1);
    free(s.points);
    selkie_shape def = mesh_def("ball.stl");
    const double h = 1.0 / 16.0;
    sk_memory memory = {0};
    sk_shape *exact = make_mesh(&def, 3, 0.0, NULL, NULL), *sampled = make_mesh(&def, 3, h, &memory, NULL);
    assert_in_range(memory.used, 1 << 18, 64 << 20);
    int near = 0, far = 0;
    for (uint64_t n = 0; n < 8000; n++) {
        double x[3], normal[3], true_normal[3];
        random_point(n, 3, 2.0, x);
        double d = sk_shape_distance_normal(sampled, x, normal),
               truth = sk_shape_distance_normal(exact, x, true_normal);
        expect_near(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2], 1.0, 1e-9);
        if (fabs(truth) < 3.0 * h) {
            near++;
            expect_near(d, truth, 0.05 * h);
            assert_true(normal[0] * true_normal[0] + normal[1] * true_normal[1] + normal[2] * true_normal[2] > 0.99);
        } else {
            far++;
            assert_true((d < 0.0) == (truth < 0.0));
            assert_true(fabs(d) <= fabs(truth) + 0.1 * h && fabs(d) >= 2.9 * h);
        }
    }
    assert_true(near > 500 && far > 1000);
    expect_near(distance(sampled, 0, 0, 0), -1.0, 0.5);
    expect_near(distance(sampled, 100, 0, 0), 98.75, 0.25); /* a lower bound */
    expect_near(distance(sampled, 60, 80, 0), 99.0, 1.0);
    sk_shape_destroy(exact);
    sk_shape_destroy(sampled);
    assert_int_equal(memory.used, 0);

    /* Too fine for the memory allowed: says how much it needs, keeps none. */
    sk_memory small = {0, 0, 32 << 20};
    selkie_error error = {0};
    sk_shape *shape = NULL;
    sk_shape_options options = mesh_options(3, 1e-3, &small);
    assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_MEMORY);
    assert_non_null(strstr(error.message, "MiB"));
    assert_int_equal(small.used, 0);
    options.sample_size = 1e-9;
    assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_MEMORY);
    assert_int_equal(small.used, 0);
}

static void same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
#ifdef _OPENMP
    soup s = ball(3);
    for (size_t i = 0; i < 3 * s.count; i++) /* something less even */
        s.points[i][1] *= 1.0 + 0.3 * sin(7.0 * s.points[i][0]);
    write_ply("uneven.ply", &s, 1);
    free(s.points);
    selkie_shape def = mesh_def("uneven.ply");
    int before = omp_get_max_threads();
    uint64_t hashes[3] = {0};
    for (int run = 0; run < 3; run++) {
        omp_set_num_threads(1 + run);
        sk_shape *shape = make_mesh(&def, 3, 0.07, NULL, NULL);
        for (uint64_t n = 0; n < 5000; n++) {
            double x[3], normal[3];
            random_point(n, 3, 1.5, x);
            double values[2] = {sk_shape_distance_normal(shape, x, normal), normal[0]};
            uint64_t bits[2];
            memcpy(bits, values, sizeof bits);
            hashes[run] = sk_hash64(sk_hash64(hashes[run] ^ bits[0]) ^ bits[1]);
        }
        sk_shape_destroy(shape);
    }
    omp_set_num_threads(before);
    assert_true(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
#endif
}

static void broken_meshes_are_refused(void **state)
{
    (void)state;
    selkie_shape def = mesh_def("absent.obj");
    expect_mesh_failure(&def, 3, SELKIE_ERROR_FILE, "No such file");
    assert_int_equal(mkdir(path_of("folder.obj"), 0700), 0);
    def.file = "folder.obj";
    expect_mesh_failure(&def, 3, SELKIE_ERROR_FILE, "no regular file");
    write_text("mesh.blend", "x");
    def.file = "mesh.blend";
    expect_mesh_failure(&def, 3, SELKIE_ERROR_INPUT, ".obj, .stl, .ply, .gltf or .glb");
    static const struct {
        const char *name, *content;
        selkie_code code;
        const char *message;
    } broken[] = {
        {"empty.obj", "", SELKIE_ERROR_FORMAT, "is empty"},
        {"words.obj", "this is no mesh\nat all\n", SELKIE_ERROR_FORMAT, "cannot be read as a mesh"},
        {"points.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n", SELKIE_ERROR_FORMAT, "points.obj"},
        {"index.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99\n", SELKIE_ERROR_FORMAT, "index.obj"},
        {"nan.obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n", SELKIE_ERROR_FORMAT, "nan"},
        {"huge.obj", "v 0 0 0\nv 1 1e37 0\nv 0 1 0\nf 1 2 3\n", SELKIE_ERROR_FORMAT, "beyond 1e30 m"},
        {"line.obj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\nf 1 1 2\n", SELKIE_ERROR_INPUT, "no triangle with an area"},
        {"words.stl", "this is no mesh\n", SELKIE_ERROR_FORMAT, "no whole STL"},
        {"words.ply", "this is no mesh\n", SELKIE_ERROR_FORMAT, "does not start with \"ply\""},
        {"cut.ply", "ply\nformat ascii 1.0\nelement vertex 3\n", SELKIE_ERROR_FORMAT, "no end_header"},
        {"property.ply",
         "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty flot y\nproperty float z\nelement face "
         "1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
         SELKIE_ERROR_INPUT, "property.ply"},
        {"words.gltf", "this is no mesh\n", SELKIE_ERROR_FORMAT, "does not start with {"},
        {"empty.gltf", "{}", SELKIE_ERROR_FORMAT, "cannot be read as a mesh"},
        {"cut.gltf", "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,", SELKIE_ERROR_FORMAT, "cannot be read as a mesh"},
        {"elsewhere.gltf",
         "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0}],"
         "\"meshes\":[{"
         "\"primitives\":[{\"attributes\":{\"POSITION\":0}}]}],\"accessors\":[{\"bufferView\":0,\"componentType\":5126,"
         "\"count\":3,\"type\":\"VEC3\"}],\"bufferViews\":[{\"buffer\":0,\"byteLength\":36}],\"buffers\":[{"
         "\"byteLength\":36,"
         "\"uri\":\"../../../../etc/passwd\"}]}",
         SELKIE_ERROR_FORMAT, "elsewhere.gltf"},
        {"words.glb", "this is no mesh\n", SELKIE_ERROR_FORMAT, "no whole binary glTF"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_text(broken[i].name, broken[i].content);
        def.file = broken[i].name;
        expect_mesh_failure(&def, 3, broken[i].code, broken[i].message);
    }
    /* A binary STL with fewer triangles than it says. */
    soup s = ball(1);
    write_stl("cut.stl", &s, 1);
    assert_int_equal(truncate(path_of("cut.stl"), 200), 0);
    def.file = "cut.stl";
    expect_mesh_failure(&def, 3, SELKIE_ERROR_FORMAT, "no whole STL");
    write_stl("whole.stl", &s, 1);
    free(s.points);
    def.file = "whole.stl";
    def.scale[1] = 0.0;
    selkie_error error = {0};
    sk_shape *shape = NULL;
    sk_shape_options options = mesh_options(3, 0.0, NULL);
    assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "obstacles[0].shape.scale: 0 along y"));
    def.file = NULL;
    assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_INPUT);
    /* Not enough memory, at every stage of it. */
    def = mesh_def("whole.stl");
    int made = 0;
    for (size_t limit = 64; limit < (1 << 22); limit *= 2) {
        sk_memory memory = {0, 0, limit};
        options = mesh_options(3, 0.2, &memory);
        selkie_code code = sk_shape_create(&def, &options, &shape, &error);
        assert_true(code == SELKIE_OK || (code == SELKIE_ERROR_MEMORY && !made));
        made = code == SELKIE_OK;
        sk_shape_destroy(shape);
        assert_int_equal(memory.used, 0);
    }
    assert_true(made);
}

#endif

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
#if SELKIE_HAVE_ASSIMP
        cmocka_unit_test(mesh_ball_in_every_format),
        cmocka_unit_test(mesh_gradient_and_placement),
        cmocka_unit_test(mesh_with_a_hole),
        cmocka_unit_test(mesh_of_parts),
        cmocka_unit_test(mesh_winding_is_close_to_exact),
        cmocka_unit_test(mesh_in_two_dimensions),
        cmocka_unit_test(mesh_sampled),
        cmocka_unit_test(same_bits_on_any_number_of_threads),
        cmocka_unit_test(broken_meshes_are_refused),
#endif
    };
#if SELKIE_HAVE_ASSIMP
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}

/* Shapes made and measured: distances, gradients, normals and volumes. */
#ifndef SELKIE_TESTS_SHAPE_CASES_H
#define SELKIE_TESTS_SHAPE_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "geom/shape.h"

static const double up_y[3] = {0.0, 1.0, 0.0};

static inline sk_shape *make(const selkie_shape *def, int dimension)
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

static inline void expect_failure(const selkie_shape *def, int dimension, const char *part_of_message)
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

static inline double distance(const sk_shape *shape, double x, double y, double z)
{
    double point[3] = {x, y, z};
    return sk_shape_distance(shape, point);
}

static inline void expect_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
}

static inline void random_point(uint64_t index, int dimension, double extent, double point[3])
{
    for (int i = 0; i < 3; i++)
        point[i] = i < dimension ? extent * (2.0 * (double)sk_random_float(7, index, (uint64_t)i) - 1.0) : 0.0;
}

/* Unit normals everywhere; where the distance is smooth (the two-sided and one-sided differences agree) the gradient is
 * the normal. Returns how many points were smooth. */
static inline int expect_gradient(const sk_shape *shape, int dimension, double extent, double step, double tolerance)
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

static inline void expect_normal(const sk_shape *shape, double x, double y, double z, double nx, double ny, double nz)
{
    double point[3] = {x, y, z}, normal[3];
    sk_shape_distance_normal(shape, point, normal);
    expect_near(normal[0], nx, 1e-14);
    expect_near(normal[1], ny, 1e-14);
    expect_near(normal[2], nz, 1e-14);
}

/* The volume (3D) or area (2D) that the triangles or segments surround, by the divergence theorem. */
static inline double enclosed(const sk_shape *shape, int dimension, const double low[3], const double high[3],
                              size_t *count)
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

#endif

/* Points on surfaces: how even they are, how many, whether they lie where they should, and whether a gap is left. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "geom/surface_points.h"
#include "selkie_config.h"

static const double up_y[3] = {0.0, 1.0, 0.0};

typedef struct expectation {
    double spacing, depth;
    double area;         /* m2, of the surface at its depth; in 2D the length, m; 0: not known */
    double fewest, most; /* points in a square of the spacing */
    double least;        /* distance of neighbours, spacings */
    double gap;          /* distance of a place of the surface to the nearest point, spacings */
    double off;          /* of the depth, spacings */
} expectation;

static sk_shape *make(const selkie_shape *def, int dimension, const char *folder)
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    const sk_shape_options options = {.dimension = dimension, .up = up_y, .folder = folder, .what = "shape"};
    if (sk_shape_create(def, &options, &shape, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return shape;
}

static double distance2(const double a[3], const double b[3])
{
    double dx = a[0] - b[0], dy = a[1] - b[1], dz = a[2] - b[2];
    return dx * dx + dy * dy + dz * dz;
}

static double nearest(const sk_surface_points *points, const double x[3], size_t but)
{
    double best = INFINITY;
    for (size_t p = 0; p < points->count; p++)
        if (p != but)
            best = fmin(best, distance2(points->points[p], x));
    return sqrt(best);
}

/* Places of the surface at its depth, from the pictures' pieces. */
static void random_place(const sk_shape *shape, int dimension, const float *pieces, size_t count, double depth,
                         uint64_t n, double x[3])
{
    size_t piece = (size_t)(sk_random_float(3, n, 0) * (float)count) % count;
    double u = sk_random_float(3, n, 1), v = dimension == 3 ? sk_random_float(3, n, 2) : 0.0;
    if (u + v > 1.0) {
        u = 1.0 - u;
        v = 1.0 - v;
    }
    const float *corner = pieces + 3 * (size_t)dimension * piece;
    for (int i = 0; i < 3; i++)
        x[i] = corner[i] + u * (corner[3 + i] - corner[i]) + (dimension == 3 ? v * (corner[6 + i] - corner[i]) : 0.0);
    for (int k = 0; k < 8; k++) {
        double normal[3], d = sk_shape_distance_normal(shape, x, normal);
        for (int i = 0; i < 3; i++)
            x[i] -= (d + depth) * normal[i];
    }
}

static void expect_even(const char *name, const selkie_shape *def, int dimension, const double low[3],
                        const double high[3], const char *folder, expectation e)
{
    sk_shape *shape = make(def, dimension, folder);
    sk_memory memory = {0};
    sk_surface_points points = {.memory = &memory}, again = {.memory = &memory};
    sk_surface_points_def how = {.spacing = e.spacing, .depth = e.depth, .seed = 5};
    memcpy(how.low, low, sizeof how.low);
    memcpy(how.high, high, sizeof how.high);
    selkie_error error = {0};
    if (sk_shape_surface_points(shape, &how, &points, &error) != SELKIE_OK)
        fail_msg("%s: %s", name, error.message);
    assert_int_equal(sk_shape_surface_points(shape, &how, &again, &error), SELKIE_OK);
    assert_int_equal(points.count, again.count);
    assert_memory_equal(points.points, again.points, points.count * sizeof *points.points);

    double least = INFINITY, off = 0.0, gap = 0.0;
    for (size_t p = 0; p < points.count; p++) {
        least = fmin(least, nearest(&points, points.points[p], p));
        off = fmax(off, fabs(sk_shape_distance(shape, points.points[p]) + e.depth));
        for (int i = 0; i < dimension; i++)
            assert_true(points.points[p][i] >= low[i] && points.points[p][i] <= high[i]);
    }
    size_t piece_count;
    float *pieces;
    assert_int_equal(sk_shape_triangles(shape, low, high, &piece_count, &pieces, &error), SELKIE_OK);
    for (uint64_t n = 0; n < 3000; n++) {
        double x[3];
        random_place(shape, dimension, pieces, piece_count, e.depth, n, x);
        int inside = fabs(sk_shape_distance(shape, x) + e.depth) < 1e-3 * e.spacing;
        for (int i = 0; i < dimension; i++)
            inside &= x[i] > low[i] + e.spacing && x[i] < high[i] - e.spacing;
        if (inside)
            gap = fmax(gap, nearest(&points, x, SIZE_MAX));
    }
    double share = e.area > 0.0 ? (double)points.count * pow(e.spacing, dimension - 1) / e.area : 1.0;
    print_message("%-22s %6zu points, %.3f a square, least %.3f, gap %.3f, off %.1e\n", name, points.count, share,
                  least / e.spacing, gap / e.spacing, off / e.spacing);
    assert_true(share >= e.fewest && share <= e.most);
    assert_true(least >= e.least * e.spacing);
    assert_true(gap <= e.gap * e.spacing);
    assert_true(off <= e.off * e.spacing);
    free(pieces);
    sk_surface_points_free(&points);
    sk_surface_points_free(&again);
    assert_int_equal(memory.used, 0);
    sk_shape_destroy(shape);
}

static const double far_low[3] = {-10, -10, -10}, far_high[3] = {10, 10, 10};

/* A lattice leaves at most half a diagonal, sqrt(1/2), open, and has the spacing or a little less between neighbours.
 */
static void test_primitives(void **state)
{
    (void)state;
    selkie_shape box, sphere, bar;
    selkie_shape_defaults(&box, SELKIE_SHAPE_BOX);
    memcpy(box.max, (double[3]){1.0, 0.7, 0.43}, sizeof box.max);
    double area = 2 * (1.0 * 0.7 + 0.7 * 0.43 + 0.43 * 1.0);
    expect_even("box 3D", &box, 3, far_low, far_high, NULL,
                (expectation){0.05, 0.0, area, 0.98, 1.10, 0.90, 0.72, 1e-9});
    expect_even("box 2D", &box, 2, far_low, far_high, NULL,
                (expectation){0.03, 0.0, 3.4, 0.99, 1.03, 0.95, 0.51, 1e-9});
    double inner = 2 * (0.94 * 0.64 + 0.64 * 0.37 + 0.37 * 0.94);
    expect_even("box 3D, sunk", &box, 3, far_low, far_high, NULL,
                (expectation){0.05, 0.03, inner, 0.98, 1.12, 0.90, 0.72, 1e-9});

    selkie_shape_defaults(&sphere, SELKIE_SHAPE_SPHERE);
    sphere.radius = 0.5;
    expect_even("sphere 3D", &sphere, 3, far_low, far_high, NULL,
                (expectation){0.05, 0.0, 3.14159265, 0.95, 1.10, 0.6, 0.80, 1e-9});
    expect_even("sphere 3D, sunk", &sphere, 3, far_low, far_high, NULL,
                (expectation){0.05, 0.03, 4 * 3.14159265 * 0.47 * 0.47, 0.95, 1.10, 0.6, 0.80, 1e-9});
    expect_even("disc 2D", &sphere, 2, far_low, far_high, NULL,
                (expectation){0.03, 0.0, 3.14159265, 0.99, 1.02, 0.98, 0.51, 1e-9});

    selkie_shape_defaults(&bar, SELKIE_SHAPE_CYLINDER);
    memcpy(bar.from, (double[3]){0.1, -0.2, 0.3}, sizeof bar.from);
    memcpy(bar.to, (double[3]){0.5, 0.6, 0.1}, sizeof bar.to);
    bar.radius = 0.25;
    double length = sqrt(0.16 + 0.64 + 0.04), plane = sqrt(0.16 + 0.64);
    expect_even("cylinder 3D", &bar, 3, far_low, far_high, NULL,
                (expectation){0.05, 0.0, 2 * 3.14159265 * 0.25 * (0.25 + length), 0.95, 1.15, 0.6, 0.80, 1e-9});
    expect_even("bar 2D", &bar, 2, far_low, far_high, NULL,
                (expectation){0.03, 0.0, 2 * (plane + 0.5), 0.99, 1.05, 0.95, 0.51, 1e-9});
}

static void test_infinite(void **state)
{
    (void)state;
    const double low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
    selkie_shape plane, wave;
    selkie_shape_defaults(&plane, SELKIE_SHAPE_HALF_SPACE);
    memcpy(plane.point, (double[3]){0.3, 0.5, 0.2}, sizeof plane.point);
    memcpy(plane.normal, (double[3]){0, 2, 0}, sizeof plane.normal);
    expect_even("half space 3D", &plane, 3, low, high, NULL,
                (expectation){0.05, 0.0, 1.0, 0.85, 1.15, 0.99, 0.72, 1e-9});
    memcpy(plane.normal, (double[3]){1, 2, 0.5}, sizeof plane.normal);
    expect_even("half space 3D, askew", &plane, 3, low, high, NULL,
                (expectation){0.05, 0.03, 0.0, 1, 1, 0.99, 0.72, 1e-9});
    expect_even("half space 2D", &plane, 2, low, high, NULL,
                (expectation){0.02, 0.0, sqrt(1.25), 0.9, 1.05, 0.99, 0.51, 1e-9});

    selkie_shape_defaults(&wave, SELKIE_SHAPE_WAVE);
    wave.level = 0.5;
    wave.amplitude = 0.15;
    wave.wave_number[0] = 6.0;
    expect_even("wave 3D", &wave, 3, low, high, NULL, (expectation){0.05, 0.0, 0.0, 1, 1, 0.75, 1.03, 1e-3});
    expect_even("wave 3D, sunk", &wave, 3, low, high, NULL, (expectation){0.05, 0.03, 0.0, 1, 1, 0.5, 1.10, 2e-3});
    expect_even("wave 2D", &wave, 2, low, high, NULL, (expectation){0.02, 0.0, 0.0, 1, 1, 0.8, 0.85, 1e-3});
}

/* Points in the other member are gone; the seam has neither a gap nor a crowd. */
static void test_union(void **state)
{
    (void)state;
    selkie_shape both, members[2];
    selkie_shape_defaults(&members[0], SELKIE_SHAPE_BOX);
    memcpy(members[0].max, (double[3]){1.0, 0.4, 1.0}, sizeof members[0].max);
    selkie_shape_defaults(&members[1], SELKIE_SHAPE_SPHERE);
    memcpy(members[1].center, (double[3]){0.5, 0.5, 0.5}, sizeof members[1].center);
    members[1].radius = 0.3;
    selkie_shape_defaults(&both, SELKIE_SHAPE_UNION);
    both.child_count = 2;
    both.children = members;
    expect_even("union 3D", &both, 3, far_low, far_high, NULL, (expectation){0.05, 0.0, 0.0, 1, 1, 0.499, 1.0, 1e-3});
    expect_even("union 2D", &both, 2, far_low, far_high, NULL, (expectation){0.02, 0.0, 0.0, 1, 1, 0.499, 1.0, 1e-3});
}

static void test_meshes(void **state)
{
    (void)state;
#if SELKIE_HAVE_ASSIMP && SELKIE_HAVE_EMBREE
    selkie_shape mesh;
    selkie_shape_defaults(&mesh, SELKIE_SHAPE_MESH);
    mesh.file = "examples/ring.obj";
    expect_even("mesh 3D", &mesh, 3, far_low, far_high, SELKIE_SCENES,
                (expectation){0.07, 0.0, 0.0, 1, 1, 0.75, 1.03, 1e-3});
    expect_even("mesh 3D, sunk", &mesh, 3, far_low, far_high, SELKIE_SCENES,
                (expectation){0.07, 0.042, 0.0, 1, 1, 0.49, 1.15, 0.05});
#else
    skip();
#endif
}

static void test_heightfield(void **state)
{
    (void)state;
    char path[] = "/tmp/selkie_points_XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    fprintf(file, "ncols 3\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 0.5\n0.2 0.3 0.2\n0.3 0.5 0.4\n0.2 0.3 0.2\n");
    fclose(file);
    const double low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
    selkie_shape ground;
    selkie_shape_defaults(&ground, SELKIE_SHAPE_HEIGHTFIELD);
    ground.file = path;
    expect_even("height field 3D", &ground, 3, low, high, NULL, (expectation){0.05, 0.0, 0.0, 1, 1, 0.75, 1.03, 1e-3});
    expect_even("height field 2D", &ground, 2, low, high, NULL, (expectation){0.02, 0.0, 0.0, 1, 1, 0.8, 0.85, 1e-3});
    unlink(path);
}

/* A plate thinner than twice the depth has one layer of points, in its middle; a box of any size ends. */
static void test_thin_and_huge(void **state)
{
    (void)state;
    selkie_shape plate;
    selkie_shape_defaults(&plate, SELKIE_SHAPE_BOX);
    memcpy(plate.max, (double[3]){1.0, 0.02, 1.0}, sizeof plate.max);
    sk_shape *shape = make(&plate, 3, NULL);
    sk_surface_points points = {0};
    sk_surface_points_def how = {.spacing = 0.05, .depth = 0.03, .low = {-1, -1, -1}, .high = {2, 2, 2}};
    selkie_error error = {0};
    assert_int_equal(sk_shape_surface_points(shape, &how, &points, &error), SELKIE_OK);
    assert_true(points.count > 380 && points.count < 420);
    for (size_t p = 0; p < points.count; p++)
        assert_true(fabs(points.points[p][1] - 0.01) < 1e-12);
    sk_surface_points_free(&points);
    sk_shape_destroy(shape);

    for (int i = 0; i < 3; i++) {
        plate.min[i] = -1e6;
        plate.max[i] = i == 1 ? 0.5 : 1e6;
    }
    shape = make(&plate, 3, NULL);
    assert_int_equal(sk_shape_surface_points(shape, &how, &points, &error), SELKIE_OK);
    assert_true(points.count > 3500 && points.count < 3900);
    how.spacing = 0.0;
    assert_int_equal(sk_shape_surface_points(shape, &how, &points, &error), SELKIE_ERROR_INPUT);
    sk_surface_points_free(&points);
    sk_shape_destroy(shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_primitives), cmocka_unit_test(test_infinite),    cmocka_unit_test(test_union),
        cmocka_unit_test(test_meshes),     cmocka_unit_test(test_heightfield), cmocka_unit_test(test_thin_and_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

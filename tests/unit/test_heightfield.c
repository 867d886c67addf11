/* Height fields: reading, what is inside, how far, and the triangles. */
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
#include "geom/shape.h"

enum { columns = 13, rows = 9 };
static const double cell = 0.5;
static double table[rows][columns]; /* the southernmost row first */

static void file_name(char name[64])
{
    snprintf(name, 64, "heightfield_%d.asc", (int)getpid());
}

static void write_text(const char *text)
{
    char name[64];
    file_name(name);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_table(const char *origin)
{
    static char text[columns * rows * 32 + 256];
    char *at = text + sprintf(text, "NCOLS %d\r\nnrows %d\r\n%s\r\ncellsize %g\r\nNODATA_value -9999\r\n", columns,
                              rows, origin, cell);
    for (int j = rows - 1; j >= 0; j--) {
        for (int i = 0; i < columns; i++)
            at += sprintf(at, "%.6f ", table[j][i]);
        at += sprintf(at, "\r\n");
    }
    write_text(text);
}

static void fill_table(double steepness)
{
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < columns; i++)
            table[j][i] = steepness * sk_random_float(3, (uint64_t)(i + columns * j), 0) + 0.1 * i;
}

static sk_shape *make(int dimension, const double up[3], double sample_size, const double scale[3],
                      const double translate[3])
{
    char name[64];
    file_name(name);
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_HEIGHTFIELD);
    def.file = name;
    if (scale)
        memcpy(def.scale, scale, sizeof def.scale);
    if (translate)
        memcpy(def.translate, translate, sizeof def.translate);
    sk_shape *shape = NULL;
    selkie_error error = {0};
    const sk_shape_options options = {.dimension = dimension, .up = up, .sample_size = sample_size, .what = "ground"};
    selkie_code code = sk_shape_create(&def, &options, &shape, &error);
    if (code)
        print_error("%s\n", error.message);
    assert_int_equal(code, SELKIE_OK);
    unlink(name);
    return shape;
}

/* --- Places --- */

static void heights_stand_where_the_file_says(void **state)
{
    (void)state;
    const double y_up[3] = {0, 1, 0}, z_up[3] = {0, 0, 1}, scale[3] = {2, 3, 2}, move[3] = {1, -0.5, 4};
    fill_table(1.0);
    write_table("xllcenter 10\nyllcenter 20");
    sk_shape *shape = make(3, z_up, 0, NULL, NULL);
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < columns; i++) {
            double x[3] = {10 + i * cell, 20 + j * cell, table[j][i] + 1e-4};
            assert_true(sk_shape_distance(shape, x) > 0);
            x[2] -= 2e-4;
            assert_true(sk_shape_distance(shape, x) < 0);
        }
    sk_shape_destroy(shape);
    /* With y up north is -z; a corner is half a square before the centre. */
    write_table("xllcorner 10\nyllcorner 20");
    shape = make(3, y_up, 0, scale, move);
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < columns; i++) {
            double x[3] = {2 * (10.25 + i * cell) + 1, 3 * table[j][i] - 0.5 + 1e-4, -2 * (20.25 + j * cell) + 4};
            assert_true(sk_shape_distance(shape, x) > 0);
            x[1] -= 2e-4;
            assert_true(sk_shape_distance(shape, x) < 0);
        }
    double low[3], high[3], highest = -1e9;
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < columns; i++)
            highest = fmax(highest, 3 * table[j][i] - 0.5);
    sk_shape_bounds(shape, low, high);
    assert_true(isinf(low[0]) && isinf(low[1]) && isinf(high[2]));
    assert_float_equal(high[1], highest, 1e-5);
    sk_shape_destroy(shape);
}

static void holes_are_filled_with_the_lowest(void **state)
{
    (void)state;
    write_text("ncols 3\nnrows 1\nxllcenter 0\nyllcenter 0\ncellsize 1\nnodata_value -1\n2 -1 3\n");
    const double up[3] = {0, 1, 0};
    sk_shape *shape = make(2, up, 0, NULL, NULL);
    assert_float_equal(sk_shape_distance(shape, (double[]){1, 2.5, 0}), 0.5 * sqrt(0.5), 0.36);
    assert_true(sk_shape_distance(shape, (double[]){1, 1.99, 0}) < 0 &&
                sk_shape_distance(shape, (double[]){1, 2.01, 0}) > 0);
    /* Level beyond the edge. */
    assert_float_equal(sk_shape_distance(shape, (double[]){-50, 2.25, 0}), 0.25, 1e-6);
    assert_float_equal(sk_shape_distance(shape, (double[]){50, 2.25, 0}), -0.75, 1e-6);
    sk_shape_destroy(shape);
}

/* --- Distances --- */

static double height_at(double u, double v)
{
    u = fmin(fmax(u, 0), columns - 1);
    v = fmin(fmax(v, 0), rows - 1);
    int i = u >= columns - 1 ? columns - 2 : (int)u, j = v >= rows - 1 ? rows - 2 : (int)v;
    double fu = u - i, fv = v - j;
    if (fu > fv)
        return table[j][i] + fu * (table[j][i + 1] - table[j][i]) + fv * (table[j + 1][i + 1] - table[j][i + 1]);
    return table[j][i] + fv * (table[j + 1][i] - table[j][i]) + fu * (table[j + 1][i + 1] - table[j + 1][i]);
}

/* The least distance to a fine cloud of points of the surface: at most `grain` too long. */
static double sampled_distance(const double x[3])
{
    double best = INFINITY, fine = 0.06;
    for (double v = -4; v <= rows + 3; v += fine)
        for (double u = -4; u <= columns + 3; u += fine) {
            double d[3] = {u * cell - x[0], v * cell - x[1], height_at(u, v) - x[2]};
            best = fmin(best, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        }
    return sqrt(best);
}

static void distances_are_exact_nearby_and_safe_farther(void **state)
{
    (void)state;
    const double up[3] = {0, 0, 1};
    static const double steepness[] = {0.2, 1.5, 6};
    for (int s = 0; s < 3; s++) {
        fill_table(steepness[s]);
        write_table("xllcenter 0\nyllcenter 0");
        const double reach = 0.5; /* 5 sample sizes */
        sk_shape *shape = make(3, up, 0.1, NULL, NULL);
        int exact = 0;
        for (int n = 0; n < 250; n++) {
            double x[3], normal[3];
            for (int d = 0; d < 3; d++)
                x[d] = sk_random_float(5, (uint64_t)n, (uint64_t)d) * (d == 0 ? 7.5 : d == 1 ? 5.5 : 5.0) - 0.75;
            double answer = sk_shape_distance_normal(shape, x, normal), truth = sampled_distance(x);
            double above = x[2] - height_at(x[0] / cell, x[1] / cell);
            assert_true((answer > 0) == (above > 0));
            assert_float_equal(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2], 1, 1e-9);
            /* The cloud of points may miss the nearest by a little. */
            if (fabs(answer) > truth + 1e-6)
                print_error("steepness %g at %g %g %g: %g, not at most %g\n", steepness[s], x[0], x[1], x[2], answer,
                            truth);
            assert_true(fabs(answer) < truth + 1e-6);
            if (truth < 0.9 * reach) {
                exact++;
                double slack =
                    sqrt(truth * truth + 0.03 * 0.03 * (1 + 2 * steepness[s])) - truth + 0.01 * (1 + steepness[s]);
                if (fabs(answer) < truth - slack)
                    print_error("steepness %g: %g, not %g\n", steepness[s], answer, truth);
                assert_true(fabs(answer) > truth - slack);
                /* Along the normal lies the surface. */
                double y[3];
                for (int d = 0; d < 3; d++)
                    y[d] = x[d] - answer * normal[d];
                assert_true(fabs(sk_shape_distance(shape, y)) < 1e-4 || truth < 1e-4);
            }
        }
        assert_true(exact > 20);
        /* The slope is below one: a distance changes no faster than the place does, from far away as well. */
        assert_true(sk_shape_distance(shape, (double[]){3, 2, 1000}) > 100);
        assert_true(sk_shape_distance(shape, (double[]){3, 2, -1000}) < -100);
        sk_shape_destroy(shape);
    }
}

static void distances_in_2d(void **state)
{
    (void)state;
    /* A roof of 45 degrees. */
    write_text("ncols 3\nnrows 1\nxllcenter -1\nyllcenter 0\ncellsize 1\n0 1 0\n");
    const double up[3] = {0, 1, 0};
    sk_shape *shape = make(2, up, 0.2, NULL, NULL);
    double normal[3];
    assert_float_equal(sk_shape_distance_normal(shape, (double[]){0.5, 0.8, 0}, normal), 0.3 * sqrt(0.5), 1e-6);
    assert_float_equal(normal[0], sqrt(0.5), 1e-6);
    assert_float_equal(normal[1], sqrt(0.5), 1e-6);
    assert_float_equal(normal[2], 0, 0);
    assert_float_equal(sk_shape_distance_normal(shape, (double[]){0, 1.5, 0}, normal), 0.5, 1e-6);
    assert_float_equal(sk_shape_distance_normal(shape, (double[]){0.02, 0.7, 0}, normal), -0.28 * sqrt(0.5), 1e-6);
    size_t count;
    float *points;
    assert_int_equal(sk_shape_triangles(shape, (double[]){-3, -1, 0}, (double[]){3, 2, 0}, &count, &points, NULL),
                     SELKIE_OK);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) /* the inside, below, is on the left: it goes west */
        assert_true(points[6 * i] > points[6 * i + 3]);
    free(points);
    sk_shape_destroy(shape);
}

/* --- Triangles --- */

static void triangles_enclose_the_ground(void **state)
{
    (void)state;
    static const double ups[4][3] = {{0, 0, 1}, {0, 1, 0}, {0, -1, 0}, {1, 0, 0}};
    for (int u = 0; u < 4; u++) {
        write_text("ncols 3\nnrows 3\nxllcenter -1\nyllcenter -1\ncellsize 1\n0 0 0\n0 1 0\n0 0 0\n");
        sk_shape *shape = make(3, ups[u], 0, NULL, NULL);
        size_t count;
        float *points;
        double low[3] = {-1, -1, -1}, high[3] = {1, 1, 1}, volume = 0, bottom = 0;
        assert_int_equal(sk_shape_triangles(shape, low, high, &count, &points, NULL), SELKIE_OK);
        /* The sum of a . (b x c) / 6 is the volume for outward triangles. The bottom, which is not drawn, lies at
         * distance 1 below 0 and has an area of 4. */
        for (size_t i = 0; i < count; i++) {
            const float *a = points + 9 * i, *b = a + 3, *c = a + 6;
            volume += (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
                       a[2] * (b[0] * c[1] - b[1] * c[0])) /
                      6.0;
        }
        bottom = 4.0 / 3.0;
        /* Six of the eight triangles around the top hold a third of their square half, two stand between: 1 in all. */
        assert_float_equal(volume + bottom, 4.0 + 1.0, 0.01);
        free(points);
        sk_shape_destroy(shape);
    }
}

/* --- Messages --- */

static void broken_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "ncols"},
        {"ncols 2\nnrows 2\n1 2\n3 4\n", "cellsize"},
        {"ncols 2\nnrows 2\ncellsize 0\n1 2\n3 4\n", "cellsize 0 must be above 0"},
        {"ncols 2.5\nnrows 2\ncellsize 1\n1 2\n3 4\n", "whole number"},
        {"ncols -2\nnrows 2\ncellsize 1\n1 2\n3 4\n", "ncols -2"},
        {"ncols 1000000\nnrows 1000000\ncellsize 1\n1 2\n", "at most"},
        {"ncols 20000\nnrows 10000\ncellsize 1\n1 2\n", "ends before"},
        {"ncols 2\nnrows 2\ncellsize 1\n1 2\n3\n", "row 2, column 2"},
        {"ncols 2\nnrows 2\ncellsize 1\n1 2\n3 x4\n", "line 5: \"x4\""},
        {"ncols 2\nnrows 2\ncellsize 1\n1 2\n3 inf\n", "line 5: \"inf\""},
        {"ncols 2\nnrows 2\ncellsize 1\n1 2\n3 1e30\n", "1e\\+30|1e30"},
        {"ncols 2\nnrows 2\ncellsize 1\n1 2\n3 4 5\n", "goes on"},
        {"ncols 2\nnrows 2\ncellsize 1\ncolour 7\n1 2\n3 4\n", "\"colour\""},
        {"ncols 2\nnrows 1\ncellsize 1\nnodata_value 1\n1 1\n", "NODATA"},
    };
    char name[64];
    file_name(name);
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_HEIGHTFIELD);
    def.file = name;
    const sk_shape_options options = {.dimension = 3, .what = "ground"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].text);
        sk_shape *shape = NULL;
        selkie_error error = {0};
        assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_INPUT);
        assert_null(shape);
        int alternative = strchr(cases[i].message, '|') != NULL;
        if (!alternative && !strstr(error.message, cases[i].message))
            fail_msg("\"%s\" has no \"%s\"", error.message, cases[i].message);
        assert_non_null(strstr(error.message, name));
        assert_null(strchr(error.message, '\n'));
    }
    unlink(name);
    sk_shape *shape = NULL;
    selkie_error error = {0};
    assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "cannot be opened"));
    def.file = ".";
    assert_int_equal(sk_shape_create(&def, &options, &shape, &error), SELKIE_ERROR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heights_stand_where_the_file_says),
        cmocka_unit_test(holes_are_filled_with_the_lowest),
        cmocka_unit_test(distances_are_exact_nearby_and_safe_farther),
        cmocka_unit_test(distances_in_2d),
        cmocka_unit_test(triangles_enclose_the_ground),
        cmocka_unit_test(broken_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

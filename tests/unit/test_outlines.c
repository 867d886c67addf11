/* Shapes that are given by their outline: polygons and pictures, their masses, distances and panels, bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geom/mass.h"
#include "geom/outline.h"
#include "geom/shape.h"

#include "scratch_folder.h"

#define PI 3.14159265358979323846

static sk_shape *create(const selkie_shape *def)
{
    sk_shape *shape = NULL;
    selkie_error error;
    if (sk_shape_create(def, &(sk_shape_options){.dimension = 2, .what = "shape"}, &shape, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return shape;
}

static void refuse(const selkie_shape *def, const char *words)
{
    sk_shape *shape = NULL;
    selkie_error error;
    assert_int_not_equal(sk_shape_create(def, &(sk_shape_options){.dimension = 2, .what = "shape"}, &shape, &error),
                         SELKIE_OK);
    if (!strstr(error.message, words))
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
}

/* A triangle, given either way around: area, centre, distances, pieces of its outline. */
static void polygon(void **state)
{
    (void)state;
    selkie_point points[3] = {{{0.0, 0.0}}, {{0.3, 0.0}}, {{0.0, 0.6}}};
    for (int turned = 0; turned < 2; turned++) {
        const selkie_point swap = points[1];
        selkie_shape def;
        selkie_shape_defaults(&def, SELKIE_SHAPE_POLYGON);
        def.points = points;
        def.point_count = 3;
        if (turned) {
            points[1] = points[2];
            points[2] = swap;
        }
        sk_shape *shape = create(&def);
        sk_mass_properties mass;
        sk_outline outline;
        selkie_error error;
        assert_int_equal(sk_shape_mass(shape, "shape", &mass, &error), SELKIE_OK);
        assert_true(fabs(mass.volume - 0.09) < 1e-12);
        assert_true(fabs(mass.center[0] - 0.1) < 1e-12 && fabs(mass.center[1] - 0.2) < 1e-12);
        assert_true(sk_shape_inside(shape, (const double[3]){0.05, 0.1}));
        assert_true(!sk_shape_inside(shape, (const double[3]){0.2, 0.3}));
        assert_true(fabs(sk_shape_distance(shape, (const double[3]){-0.25, 0.3}) - 0.25) < 1e-12);
        assert_int_equal(sk_outline_create(shape, 0.05, "shape", NULL, &outline, &error), SELKIE_OK);
        double area = 0.0;
        for (int n = 0; n < outline.count; n++) {
            const double *a = outline.corners[n], *b = outline.corners[(n + 1) % outline.count];
            area += 0.5 * (a[0] * b[1] - a[1] * b[0]);
        }
        assert_true(fabs(area - 0.09) < 1e-12); /* counter-clockwise */
        sk_outline_free(&outline);
        sk_shape_destroy(shape);
    }
}

/* A disc of 40 pixels radius with a bright hole or without, in the middle of a picture. */
static const char *write_disc(const char *name, double hole)
{
    enum { WIDTH = 128, HEIGHT = 100 };
    const char *path = in_root(name);
    FILE *file = fopen(path, "wb");
    fprintf(file, "P5\n%d %d\n255\n", WIDTH, HEIGHT);
    for (int row = 0; row < HEIGHT; row++)
        for (int column = 0; column < WIDTH; column++) {
            const double r = hypot(column + 0.5 - 64.0, row + 0.5 - 50.0);
            const double dark = fmin(fmax(40.5 - r, 0.0), 1.0) * (1.0 - fmin(fmax(hole + 0.5 - r, 0.0), 1.0));
            fputc((int)lround(255.0 * (1.0 - dark)), file);
        }
    fclose(file);
    return path;
}

static void picture(void **state)
{
    (void)state;
    selkie_shape def;
    sk_mass_properties mass;
    sk_outline outline;
    selkie_error error;
    selkie_shape_defaults(&def, SELKIE_SHAPE_PICTURE);
    def.file = write_disc("disc.pgm", 0.0);
    def.min[0] = 1.0;
    def.max[0] = 1.0 + 1.28;
    def.min[1] = 2.0;
    def.max[1] = 3.0;
    sk_shape *shape = create(&def);
    assert_int_equal(sk_shape_mass(shape, "shape", &mass, &error), SELKIE_OK);
    print_message("area %.4f of the disc's, centre %.4f %.4f\n", mass.volume / (PI * 0.16), mass.center[0],
                  mass.center[1]);
    assert_true(fabs(mass.volume / (PI * 0.16) - 1.0) < 0.02);
    assert_true(fabs(mass.center[0] - 1.64) < 0.002 && fabs(mass.center[1] - 2.5) < 0.002);
    assert_true(fabs(sk_shape_distance(shape, (const double[3]){1.64, 2.95}) - 0.05) < 0.005);

    /* Panels are longer than the steps of the outline. */
    assert_int_equal(sk_outline_create(shape, 0.1, "shape", NULL, &outline, &error), SELKIE_OK);
    assert_true(abs(outline.count - 25) <= 2);
    for (int n = 0; n < outline.count; n++) {
        const double *a = outline.corners[n], *b = outline.corners[(n + 1) % outline.count];
        assert_true(fabs(hypot(b[0] - a[0], b[1] - a[1]) - 0.1) < 0.02);
    }
    sk_outline_free(&outline);
    sk_shape_destroy(shape);

    /* A ring has two loops: no outline for panels, but an obstacle as good as any. */
    def.file = write_disc("ring.pgm", 20.0);
    shape = create(&def);
    assert_true(!sk_shape_inside(shape, (const double[3]){1.64, 2.5}));
    assert_true(sk_shape_inside(shape, (const double[3]){1.64, 2.8}));
    assert_int_not_equal(sk_outline_create(shape, 0.1, "bodies[0].shape", NULL, &outline, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "bodies[0].shape: the outline has several loops"));
    sk_shape_destroy(shape);
}

static void bad_outlines(void **state)
{
    (void)state;
    selkie_shape def;
    selkie_point points[4] = {{{0, 0}}, {{1, 1}}, {{1, 0}}, {{0, 1}}};
    selkie_shape_defaults(&def, SELKIE_SHAPE_POLYGON);
    def.points = points;
    def.point_count = 4;
    refuse(&def, "shape.points: the sides from points 0 and 2 cross");
    def.point_count = 2;
    refuse(&def, "must have at least 3");
    def.point_count = 4;
    points[1] = points[0];
    refuse(&def, "shape.points[0]: is the same point as the next one");

    selkie_shape_defaults(&def, SELKIE_SHAPE_PICTURE);
    def.file = in_root("missing.png");
    refuse(&def, "shape.file: cannot open");
    const char *path = in_root("white.pgm");
    FILE *file = fopen(path, "wb");
    fprintf(file, "P5 2 2 255\n%c%c%c%c", 255, 255, 255, 255);
    fclose(file);
    def.file = path;
    refuse(&def, "nothing in the picture is darker than the threshold");
    file = fopen(path, "wb");
    fprintf(file, "P5 20 20 255\nshort");
    fclose(file);
    refuse(&def, "is cut off");
    file = fopen(path, "wb");
    fprintf(file, "GIF89a");
    fclose(file);
    refuse(&def, "is no PNG, PGM or PPM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polygon),
        cmocka_unit_test(picture),
        cmocka_unit_test(bad_outlines),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

/* Shapes on a grid: volumes and counts, closed shells, votes over broken meshes. */
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

#include "geom/voxels.h"
#include "selkie_config.h"

static const double up_y[3] = {0.0, 1.0, 0.0};
static const double far_low[3] = {-10, -10, -10}, far_high[3] = {10, 10, 10};

static sk_shape *make_shape(const selkie_shape *def, int dimension)
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    const sk_shape_options options = {.dimension = dimension, .up = up_y, .what = "shape"};
    if (sk_shape_create(def, &options, &shape, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return shape;
}

static void make(const selkie_shape *def, int dimension, double cell, int layers, sk_voxels *voxels)
{
    sk_shape *shape = make_shape(def, dimension);
    selkie_error error = {0};
    const sk_voxels_options options = {
        .cell = cell, .layers = layers, .low = far_low, .high = far_high, .threads = 2, .what = "objects[0].shape"};
    if (sk_voxels_create(shape, &options, voxels, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    sk_shape_destroy(shape);
    /* Every centre is in a cell of its own, and inside the grid. */
    for (size_t n = 0; n < voxels->count; n++) {
        double x[3] = {voxels->centers[n][0], voxels->centers[n][1], voxels->centers[n][2]};
        assert_int_equal(sk_voxels_at(voxels, x), n);
    }
}

static selkie_shape sphere(double radius)
{
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_SPHERE);
    def.radius = radius;
    def.center[0] = 0.31;
    def.center[1] = -0.12;
    return def;
}

static void a_box_of_whole_cells(void **state)
{
    (void)state;
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_BOX);
    const double high[3] = {1.0, 0.6, 0.4};
    memcpy(def.max, high, sizeof high);
    sk_voxels v;
    make(&def, 3, 0.1, 0, &v);
    assert_int_equal(v.count, 10 * 6 * 4);
    assert_true(fabs(v.centers[0][0] - 0.05f) < 1e-6f && fabs(v.centers[0][2] - 0.05f) < 1e-6f);
    sk_voxels_free(&v);
    make(&def, 3, 0.1, 1, &v); /* all but the inner 8 x 4 x 2 */
    assert_int_equal(v.count, 10 * 6 * 4 - 8 * 4 * 2);
    assert_int_equal(v.solid_count, 10 * 6 * 4);
    sk_voxels_free(&v);
    make(&def, 3, 0.1, 2, &v);
    assert_int_equal(v.count, 10 * 6 * 4 - 0);
    sk_voxels_free(&v);
    make(&def, 2, 0.1, 1, &v);
    assert_int_equal(v.count, 10 * 6 - 8 * 4);
    sk_voxels_free(&v);
}

/* Counting centres of a lattice in a ball of R cells has an error of the order of R out of R^3: 1 % is ample at R = 20.
 */
static void a_sphere_keeps_its_volume(void **state)
{
    (void)state;
    selkie_shape def = sphere(0.2);
    sk_voxels v;
    make(&def, 3, 0.01, 0, &v);
    double volume = (double)v.count * 1e-6, exact = 4.0 / 3.0 * M_PI * 0.008;
    assert_true(fabs(volume / exact - 1.0) < 0.01);
    sk_voxels_free(&v);
    make(&def, 2, 0.01, 0, &v);
    assert_true(fabs((double)v.count * 1e-4 / (M_PI * 0.04) - 1.0) < 0.02);
    sk_voxels_free(&v);
}

/* Whether steps to the 26 (8) cells around lead from the corner of the grid to the point without a cell of the shell.
 */
static int leaks(const sk_voxels *v, const double goal[3])
{
    size_t total = (size_t)v->cells[0] * (size_t)v->cells[1] * (size_t)v->cells[2], count = 0;
    uint8_t *seen = calloc(total, 1);
    size_t *queue = malloc(total * sizeof *queue);
    assert_true(v->places[0] < 0);
    seen[0] = 1;
    queue[count++] = 0;
    for (size_t q = 0; q < count; q++) {
        int x = (int)(queue[q] % (size_t)v->cells[0]), y = (int)(queue[q] / (size_t)v->cells[0] % (size_t)v->cells[1]);
        int z = (int)(queue[q] / (size_t)v->cells[0] / (size_t)v->cells[1]);
        for (int n = 0; n < 27; n++) {
            int i = x + n % 3 - 1, j = y + n / 3 % 3 - 1, k = z + n / 9 - 1;
            if (i < 0 || j < 0 || k < 0 || i >= v->cells[0] || j >= v->cells[1] || k >= v->cells[2])
                continue;
            size_t c = (size_t)i + (size_t)v->cells[0] * ((size_t)j + (size_t)v->cells[1] * (size_t)k);
            if (!seen[c] && v->places[c] < 0) {
                seen[c] = 1;
                queue[count++] = c;
            }
        }
    }
    size_t index = 0, stride = 1;
    for (int d = 0; d < v->dimension; d++) {
        index += stride * (size_t)floor((goal[d] - v->low[d]) / v->cell);
        stride *= (size_t)v->cells[d];
    }
    int reached = seen[index];
    free(seen);
    free(queue);
    return reached;
}

static void shells_are_closed(void **state)
{
    (void)state;
    selkie_shape def = sphere(0.2);
    sk_voxels v;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int layers = 1; layers <= 3; layers++) {
            make(&def, dimension, 0.013, layers, &v);
            assert_false(leaks(&v, def.center));
            assert_true(v.count < v.solid_count);
            /* a shell of n layers is about n cells thick */
            double surface = dimension == 3 ? 4 * M_PI * 0.04 / (0.013 * 0.013) : 2 * M_PI * 0.2 / 0.013;
            assert_true((double)v.count > 0.8 * layers * surface && (double)v.count < 1.7 * layers * surface);
            sk_voxels_free(&v);
        }
}

#if SELKIE_HAVE_ASSIMP && SELKIE_HAVE_EMBREE

/* A sphere of latitude and longitude triangles; `from` .. `until` of them are left out. `turn`: inside out. A second
 * one, smaller and inside out, makes it hollow. */
static void add_sphere(FILE *file, int *vertices, double radius, int turn, int from, int until)
{
    enum { LONG = 32, LAT = 16 };
    int first = *vertices + 1, number = 0;
    for (int j = 0; j <= LAT; j++)
        for (int i = 0; i < LONG; i++) {
            double a = M_PI * j / LAT, b = 2 * M_PI * i / LONG;
            fprintf(file, "v %.9g %.9g %.9g\n", radius * sin(a) * cos(b), radius * cos(a), radius * sin(a) * sin(b));
            ++*vertices;
        }
    for (int j = 0; j < LAT; j++)
        for (int i = 0; i < LONG; i++) {
            int a = first + j * LONG + i, b = first + j * LONG + (i + 1) % LONG, c = a + LONG, d = b + LONG;
            int t[2][3] = {{a, b, d}, {a, d, c}};
            for (int k = 0; k < 2; k++) {
                if (j == (k == 0 ? 0 : LAT - 1)) /* at the poles one of the two has no area */
                    continue;
                if (number < from || number >= until)
                    fprintf(file, "f %d %d %d\n", t[k][0], t[k][turn ? 2 : 1], t[k][turn ? 1 : 2]);
                number++;
            }
        }
}

static char mesh_path[1024];

static selkie_shape sphere_mesh(double inner_radius, int from, int until)
{
    snprintf(mesh_path, sizeof mesh_path, "voxels_%ld.obj", (long)getpid());
    FILE *file = fopen(mesh_path, "w");
    assert_non_null(file);
    int vertices = 0;
    add_sphere(file, &vertices, 0.2, 0, from, until);
    if (inner_radius > 0.0)
        add_sphere(file, &vertices, inner_radius, 1, 0, 0);
    fclose(file);
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_MESH);
    def.file = mesh_path;
    return def;
}

static void meshes_keep_their_volume(void **state)
{
    (void)state;
    sk_voxels whole, broken;
    selkie_shape def = sphere_mesh(0.0, 0, 0);
    make(&def, 3, 0.0125, 0, &whole);
    double exact = 4.0 / 3.0 * M_PI * 0.008;
    /* the mesh has 32 sides and 1.5 % less volume than the sphere */
    assert_true(fabs((double)whole.count * 1.953125e-6 / exact - 0.985) < 0.01);
    /* The mesh's own section in 2D. */
    sk_voxels plane;
    make(&def, 2, 0.01, 0, &plane);
    assert_true(fabs((double)plane.count * 1e-4 / (M_PI * 0.04) - 1.0) < 0.03);
    sk_voxels_free(&plane);
    /* Holes: some triangles in a row are missing. Lines through the holes are wrong, the majority is not. */
    def = sphere_mesh(0.0, 300, 312);
    make(&def, 3, 0.0125, 0, &broken);
    assert_int_equal(whole.cells[0], broken.cells[0]);
    size_t wrong = 0, total = (size_t)whole.cells[0] * (size_t)whole.cells[1] * (size_t)whole.cells[2];
    for (size_t c = 0; c < total; c++)
        wrong += (whole.places[c] >= 0) != (broken.places[c] >= 0);
    assert_true((double)wrong < 0.005 * (double)whole.count);
    sk_voxels_free(&whole);
    sk_voxels_free(&broken);
    remove(mesh_path);
}

/* A hollow sphere whose wall is thinner than a cell: no centres may lie in it, and it holds water all the same. */
static void thin_walls_are_closed(void **state)
{
    (void)state;
    static const double inner[] = {0.198, 0.18};
    for (int n = 0; n < 2; n++)
        for (int dimension = 2; dimension <= 3; dimension++) {
            selkie_shape def = sphere_mesh(inner[n], 0, 0);
            sk_voxels v;
            make(&def, dimension, 0.03, 0, &v);
            const double middle[3] = {0, 0, 0};
            assert_int_equal(sk_voxels_at(&v, middle), -1);
            assert_false(leaks(&v, middle));
            sk_voxels_free(&v);
        }
    remove(mesh_path);
}

static void unions_may_overlap(void **state)
{
    (void)state;
    selkie_shape members[2] = {sphere_mesh(0.0, 0, 0), sphere_mesh(0.0, 0, 0)}, def;
    members[1].translate[0] = 0.1;
    selkie_shape_defaults(&def, SELKIE_SHAPE_UNION);
    def.child_count = 2;
    def.children = members;
    sk_voxels v;
    make(&def, 3, 0.02, 0, &v);
    /* two balls of radius R whose centres are 2 a R apart, a = 1/4: both, less the lens that they share */
    double a = 0.25, exact = 4.0 / 3.0 * M_PI * 0.008 * (1.0 + 1.5 * a - 0.5 * a * a * a);
    assert_true(fabs((double)v.count * 8e-6 / exact - 0.985) < 0.02);
    const double middle[3] = {0.05, 0, 0};
    assert_true(sk_voxels_at(&v, middle) >= 0);
    sk_voxels_free(&v);
    make(&def, 3, 0.02, 1, &v); /* no walls inside */
    assert_int_equal(sk_voxels_at(&v, middle), -1);
    sk_voxels_free(&v);
    remove(mesh_path);
}
#endif

static void infinite_shapes_are_cut(void **state)
{
    (void)state;
    selkie_shape def;
    selkie_shape_defaults(&def, SELKIE_SHAPE_HALF_SPACE);
    sk_shape *shape = make_shape(&def, 3);
    const double low[3] = {0, -0.2, 0}, high[3] = {1, 1, 1};
    sk_voxels v;
    sk_voxels_options options = {.cell = 0.1, .low = low, .high = high, .threads = 1, .what = "objects[0].shape"};
    assert_int_equal(sk_voxels_create(shape, &options, &v, NULL), SELKIE_OK);
    assert_true(v.count >= 10 * 2 * 10);
    sk_voxels_free(&v);
    selkie_error error = {0};
    options.cell = 1e-5;
    assert_int_equal(sk_voxels_create(shape, &options, &v, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "objects[0].shape"));
    sk_shape_destroy(shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_of_whole_cells),
        cmocka_unit_test(a_sphere_keeps_its_volume),
        cmocka_unit_test(shells_are_closed),
        cmocka_unit_test(infinite_shapes_are_cut),
#if SELKIE_HAVE_ASSIMP && SELKIE_HAVE_EMBREE
        cmocka_unit_test(meshes_keep_their_volume),
        cmocka_unit_test(thin_walls_are_closed),
        cmocka_unit_test(unions_may_overlap),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

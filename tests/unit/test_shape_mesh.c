/* Shapes of meshes: every format, placement, holes, parts, outlines in 2D, samples, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "shape_cases.h"
#include "geom/mesh_distance.h"
#include "geom/mesh_import.h"
#include "selkie_config.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mesh_ball_in_every_format),
        cmocka_unit_test(mesh_gradient_and_placement),
        cmocka_unit_test(mesh_with_a_hole),
        cmocka_unit_test(mesh_of_parts),
        cmocka_unit_test(mesh_winding_is_close_to_exact),
        cmocka_unit_test(mesh_in_two_dimensions),
        cmocka_unit_test(mesh_sampled),
        cmocka_unit_test(same_bits_on_any_number_of_threads),
        cmocka_unit_test(broken_meshes_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* The surface of a cloud of particles: closed, in the right place, flat where the liquid is, the same on any number of
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/random.h"
#include "base/timer.h"
#include "geom/mesh_decimate.h"
#include "geom/surface.h"

typedef struct cloud {
    size_t count;
    float *position, *velocity;
} cloud;

typedef int (*inside_function)(const double x[3]);

static int in_pool(const double x[3])
{
    return x[1] < 0.4;
}

static int in_ball(const double x[3])
{
    double d[3] = {x[0] - 0.5, x[1] - 0.5, x[2] - 0.5};
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < 0.35 * 0.35;
}

static int in_box(const double x[3])
{
    return x[0] > 0.2 && x[0] < 0.8 && x[1] > 0.2 && x[1] < 0.8 && x[2] > 0.2 && x[2] < 0.8;
}

static int in_sheet(const double x[3])
{
    return fabs(x[1] - 32.5 / 64) < 0.5 / 64 && x[0] > 0.2 && x[0] < 0.8 && x[2] > 0.2 && x[2] < 0.8;
}

/* One particle in each sub-cell of the unit cube that lies inside, displaced by up to `jitter` sub-cells. */
static cloud fill(int n, double jitter, inside_function inside)
{
    cloud c = {0, malloc(sizeof(float) * 3 * (size_t)n * (size_t)n * (size_t)n),
               malloc(sizeof(float) * 3 * (size_t)n * (size_t)n * (size_t)n)};
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) {
                int cell[3] = {i, j, k};
                double x[3];
                for (int a = 0; a < 3; ++a) {
                    double shift = sk_random_float(7, (uint64_t)(i + n * (j + n * k)), (uint64_t)a) - 0.5;
                    x[a] = (cell[a] + 0.5 + jitter * shift) / n;
                }
                if (!inside(x))
                    continue;
                for (int a = 0; a < 3; ++a) {
                    c.position[3 * c.count + (size_t)a] = (float)x[a];
                    c.velocity[3 * c.count + (size_t)a] = (float)(a == 0 ? 2.0 : a == 1 ? x[0] : -x[1]);
                }
                ++c.count;
            }
    return c;
}

static void cloud_free(cloud *c)
{
    free(c->position);
    free(c->velocity);
}

static sk_surface_options unit_options(int n)
{
    sk_surface_options o = {
        .particle_spacing = 1.0 / n, .voxel_size = 1.0 / n, .high = {1, 1, 1}, .smoothing = 1.0, .threads = 2};
    return o;
}

static sk_mesh extract(const cloud *c, const sk_surface_options *options)
{
    sk_mesh mesh;
    selkie_error error = {0};
    const sk_surface_particles particles = {.count = c->count,
                                            .position = c->position,
                                            .position_stride = 12,
                                            .velocity = c->velocity,
                                            .velocity_stride = 12};
    selkie_code code = sk_surface_extract(&particles, options, &mesh, &error);
    if (code)
        fail_msg("%s", error.message);
    assert_int_equal(sk_mesh_open_edges(&mesh), 0);
    for (size_t v = 0; v < mesh.vertex_count; ++v) {
        const float *n = mesh.normals + 3 * v;
        assert_true(fabsf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2] - 1.0f) < 1e-3f);
        for (int a = 0; a < 3; ++a)
            assert_true(mesh.positions[3 * v + (size_t)a] >= (float)options->low[a] &&
                        mesh.positions[3 * v + (size_t)a] <= (float)options->high[a]);
    }
    return mesh;
}

/* Against the liquid that the particles stand for, and so against the shape they fill. */
static void check_volume(inside_function inside, double tolerance)
{
    for (int kind = 0; kind < 2; ++kind) {
        int n = 48;
        cloud c = fill(n, kind & 1, inside);
        sk_surface_options options = unit_options(n);
        sk_mesh mesh = extract(&c, &options);
        double ratio = sk_mesh_volume(&mesh) * n * n * n / (double)c.count;
        print_message("volume ratio %.4f (resolution %d, jitter %d)\n", ratio, n, kind & 1);
        if (fabs(ratio - 1) > tolerance)
            fail_msg("volume ratio is %g (resolution %d, jitter %d), must be within %g of 1", ratio, n, kind & 1,
                     tolerance);
        sk_mesh_free(&mesh);
        cloud_free(&c);
    }
}

static void test_volume(void **state)
{
    (void)state;
    check_volume(in_ball, 0.01);
    check_volume(in_box, 0.015);
    check_volume(in_pool, 0.005);
}

/* The top of a pool of jittered particles: bumps and slopes that light would show. */
static void test_pool_is_flat(void **state)
{
    (void)state;
    int n = 64;
    cloud c = fill(n, 1.0, in_pool);
    sk_surface_options options = unit_options(n);
    sk_mesh mesh = extract(&c, &options);
    double sum = 0, square = 0, slope = 0;
    size_t count = 0, walls = 0;
    for (size_t v = 0; v < mesh.vertex_count; ++v) {
        const float *p = mesh.positions + 3 * v, *normal = mesh.normals + 3 * v;
        /* Away from the top every vertex lies exactly on a wall. */
        if (p[1] < 0.36f) {
            int on_wall = 0;
            for (int a = 0; a < 3; ++a)
                on_wall |= fabsf(p[a]) < 1e-6f || fabsf(p[a] - 1.0f) < 1e-6f;
            assert_true(on_wall);
            ++walls;
            continue;
        }
        if (fabsf(normal[1]) < 0.5f)
            continue;
        ++count;
        sum += p[1];
        square += (double)p[1] * p[1];
        slope += (double)(normal[0] * normal[0] + normal[2] * normal[2]);
    }
    assert_true(count > 3000 && walls > 9000);
    double mean = sum / (double)count, deviation = sqrt(square / (double)count - mean * mean);
    slope = sqrt(slope / (double)count);
    print_message("pool: mean height %.4f, deviation %.3f spacings, slope %.3f\n", mean, deviation * n, slope);
    assert_true(fabs(mean - 0.4) * n < 0.25);
    assert_true(deviation * n < 0.12);
    assert_true(slope < 0.08);
    sk_mesh_free(&mesh);
    cloud_free(&c);
}

/* A pool of the given depth (m) that has come to rest, as the simulation leaves it. */
static const double pool_size[3] = {0.4, 0.2, 0.4}, pool_cell = 0.02;

static selkie_world *rest_pool(double depth)
{
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_error error = {0};
    selkie_scene_defaults(&scene);
    selkie_liquid_defaults(&liquid);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_BOX);
    memcpy(scene.domain.size, pool_size, sizeof pool_size);
    memcpy(liquid.shape.max, pool_size, sizeof pool_size);
    liquid.shape.max[1] = depth;
    scene.domain.cell_size = pool_cell;
    scene.time.end = 1.0;
    scene.liquids = &liquid;
    scene.liquid_count = 1;
    selkie_world *world;
    if (selkie_world_create(&scene, NULL, &world, &error))
        fail_msg("%s", error.message);
    while (selkie_world_time(world) < 0.5)
        if (selkie_world_step(world, &error))
            fail_msg("%s", error.message);
    return world;
}

static sk_mesh extract_pool(const selkie_world *world, size_t *count)
{
    selkie_error error = {0};
    selkie_attribute_view position;
    assert_int_equal(selkie_world_find_attribute(world, "position", &position, &error), SELKIE_OK);
    sk_surface_options options = {
        .particle_spacing = 0.5 * pool_cell, .voxel_size = 0.5 * pool_cell, .smoothing = 1.0, .threads = 2};
    memcpy(options.high, pool_size, sizeof pool_size);
    const sk_surface_particles particles = {.count = (size_t)selkie_world_particle_count(world),
                                            .position = position.data,
                                            .position_stride = position.stride};
    sk_mesh mesh;
    if (sk_surface_extract(&particles, &options, &mesh, &error))
        fail_msg("%s", error.message);
    *count = particles.count;
    return mesh;
}

/* Degrees (RMS) between the vertical and the normals of the upper side. */
static double normal_error(const sk_mesh *mesh, double depth)
{
    double square = 0, count = 0;
    for (size_t v = 0; v < mesh->vertex_count; ++v) {
        const float *normal = mesh->normals + 3 * v;
        if (mesh->positions[3 * v + 1] < 0.5f * (float)depth || normal[1] < 0.7f)
            continue;
        double angle = atan2(hypot((double)normal[0], (double)normal[2]), (double)normal[1]);
        square += angle * angle;
        count += 1;
    }
    assert_true(count > 1500);
    return sqrt(square / count) * 180 / 3.14159265358979;
}

/* Normals of water at rest are within 1 degree (RMS) of the vertical, and its volume is that of its particles, wherever
 * the level lies between layers of cells and particles. Two voxels a cell, as is the default. */
static void test_pool_at_rest(void **state)
{
    (void)state;
    for (int eighths = 0; eighths < 8; ++eighths) {
        const double depth = 0.1 + pool_cell * eighths / 8;
        selkie_world *world = rest_pool(depth);
        size_t count;
        sk_mesh mesh = extract_pool(world, &count);
        const double degrees = normal_error(&mesh, depth);
        const double volume = sk_mesh_volume(&mesh) / ((double)count * pow(0.5 * pool_cell, 3));
        print_message("pool at rest, %d/8 cells: normals off by %.2f degrees, volume ratio %.4f\n", eighths, degrees,
                      volume);
        assert_true(degrees < 1.0);
        assert_true(fabs(volume - 1) < 0.01);
        sk_mesh_free(&mesh);
        selkie_world_destroy(world);
    }
}

/* Distance (RMS) from the vertices of a mesh, moved by `shift`, to the surface of another: to the plane of the nearest
 * vertex. Vertices below `low` do not count. */
static double apart(const sk_mesh *from, const double shift[3], const sk_mesh *to, double low)
{
    double square = 0, count = 0;
    for (size_t v = 0; v < from->vertex_count; ++v) {
        double x[3], best = 1e30, distance = 0;
        for (int a = 0; a < 3; ++a)
            x[a] = (double)from->positions[3 * v + (size_t)a] + shift[a];
        if (x[1] < low)
            continue;
        for (size_t w = 0; w < to->vertex_count; ++w) {
            double d[3], size = 0, along = 0;
            for (int a = 0; a < 3; ++a) {
                d[a] = x[a] - (double)to->positions[3 * w + (size_t)a];
                size += d[a] * d[a];
                along += d[a] * (double)to->normals[3 * w + (size_t)a];
            }
            if (size < best) {
                best = size;
                distance = along;
            }
        }
        square += distance * distance;
        count += 1;
    }
    assert_true(count > 300);
    return sqrt(square / count);
}

/* No flicker. A pool at rest: from frame to frame (1/30 s) its surface moves by less than 2 % of a spacing. A drop that
 * crosses the grid by a fraction of a voxel a frame: its surface moves with it, within 5 % of a spacing. */
static void test_flicker(void **state)
{
    (void)state;
    const double still[3] = {0, 0, 0}, depth = 0.1 + 0.75 * pool_cell;
    selkie_world *world = rest_pool(depth);
    size_t count;
    selkie_error error = {0};
    sk_mesh before = extract_pool(world, &count);
    for (int frame = 1; frame <= 3; ++frame) {
        const double next = 0.5 + frame / 30.0;
        while (selkie_world_time(world) < next)
            assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
        sk_mesh mesh = extract_pool(world, &count);
        const double moved = apart(&before, still, &mesh, 0.5 * depth) / (0.5 * pool_cell);
        print_message("pool at rest: the surface moves by %.4f spacings in a frame\n", moved);
        assert_true(moved < 0.02);
        sk_mesh_free(&before);
        before = mesh;
    }
    sk_mesh_free(&before);
    selkie_world_destroy(world);

    const int n = 32;
    cloud c = fill(n, 1.0, in_ball);
    sk_surface_options options = unit_options(n);
    before = extract(&c, &options);
    const double shift[3] = {0.31 / n, 0.17 / n, 0.11 / n};
    for (int frame = 1; frame <= 4; ++frame) {
        for (size_t i = 0; i < 3 * c.count; ++i)
            c.position[i] += (float)shift[i % 3];
        sk_mesh mesh = extract(&c, &options);
        const double moved = apart(&before, shift, &mesh, -1.0) * n;
        print_message("moving drop: the surface is off by %.4f spacings in a frame\n", moved);
        assert_true(moved < 0.05);
        sk_mesh_free(&before);
        before = mesh;
    }
    sk_mesh_free(&before);
    cloud_free(&c);
}

/* A sheet one particle thick has no hole and about the right volume; one particle is one drop of its volume. */
static void test_thin_things(void **state)
{
    (void)state;
    int n = 64;
    cloud c = fill(n, 0.6, in_sheet);
    sk_surface_options options = unit_options(n);
    sk_mesh mesh = extract(&c, &options);
    double expected = (double)c.count / n / n / n;
    assert_in_range((int)(1000 * sk_mesh_volume(&mesh) / expected), 700, 1700);
    /* Without a hole or a handle the sheet is a sphere to Euler: V - E + F = 2. */
    assert_int_equal((long)mesh.vertex_count - (long)(mesh.triangle_count / 2), 2);
    sk_mesh_free(&mesh);
    cloud_free(&c);

    for (int place = 0; place < 12; ++place) {
        float one[3], velocity[3] = {1, 2, 3};
        for (int a = 0; a < 3; ++a)
            one[a] = 0.5f + sk_random_float(11, (uint64_t)place, (uint64_t)a) / 16.0f;
        cloud single = {1, one, velocity};
        mesh = extract(&single, &options);
        double ratio = sk_mesh_volume(&mesh) * n * n * n;
        if (!(ratio > 0.1 && ratio < 4))
            fail_msg("the drop of one particle holds %g of its volume", ratio);
        for (size_t v = 0; v < mesh.vertex_count; ++v)
            assert_float_equal(mesh.velocities[3 * v + 2], 3.0f, 1e-5f);
        sk_mesh_free(&mesh);
    }
}

static int in_everything(const double x[3])
{
    /* Tangled enough to meet every case of a cell. */
    return sin(40 * x[0]) * sin(37 * x[1]) + sin(35 * x[1]) * sin(41 * x[2]) + sin(38 * x[2]) * sin(36 * x[0]) > 0.3;
}

static void test_tangle_is_closed(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; ++kind) {
        int n = 32;
        cloud c = fill(n, 1.0, in_everything);
        sk_surface_options options = unit_options(n);
        options.smoothing = kind & 1 ? 0.0 : 0.7;
        options.voxel_size *= kind & 2 ? 0.7 : 1.4;
        /* Spray: leave only some of the particles, in no order. */
        if (kind == 3) {
            size_t kept = 0;
            for (size_t i = 0; i < c.count; ++i)
                if (sk_random_float(3, i, 0) < 0.15f)
                    memcpy(c.position + 3 * kept++, c.position + 3 * i, 12);
            c.count = kept;
        }
        sk_mesh mesh = extract(&c, &options);
        assert_true(mesh.triangle_count > 500);
        assert_true(sk_mesh_volume(&mesh) > 0);
        sk_mesh_free(&mesh);
        cloud_free(&c);
    }
}

static void test_velocity(void **state)
{
    (void)state;
    int n = 48;
    cloud c = fill(n, 1.0, in_ball);
    sk_surface_options options = unit_options(n);
    sk_mesh mesh = extract(&c, &options);
    for (size_t v = 0; v < mesh.vertex_count; ++v) {
        const float *p = mesh.positions + 3 * v, *u = mesh.velocities + 3 * v;
        assert_float_equal(u[0], 2.0f, 1e-4f);
        assert_float_equal(u[1], p[0], 1.5f / (float)n);
        assert_float_equal(u[2], -p[1], 1.5f / (float)n);
    }
    sk_mesh_free(&mesh);
    cloud_free(&c);
}

/* Numbers of the particles and the curl of their velocity (2, x, -y). Beside the surface the kernel's mean sees one
 * side only, which takes up to half of a slope along the normal. */
static void test_values(void **state)
{
    (void)state;
    const int n = 40;
    cloud c = fill(n, 1.0, in_ball);
    sk_surface_options options = unit_options(n);
    sk_mesh mesh = extract(&c, &options);
    uint32_t *material = malloc(sizeof *material * c.count);
    for (size_t p = 0; p < c.count; ++p)
        material[p] = c.position[3 * p + 2] > 0.5f ? 3 : 1;
    const sk_surface_particles particles = {c.count, c.position, 12, c.velocity, 12};
    const sk_surface_value values[2] = {{"height", c.position + 1, 12, 0}, {"material", material, 4, 1}};
    selkie_error error = {0};
    assert_int_equal(sk_surface_add_values(&particles, &options, 2, values, &mesh, &error), SELKIE_OK);
    assert_int_equal(mesh.value_count, 5);
    assert_string_equal(mesh.values[4].name, "vorticity_z");

    double spin[3] = {0, 0, 0};
    for (size_t v = 0; v < mesh.vertex_count; ++v) {
        const float *p = mesh.positions + 3 * v;
        assert_float_equal(mesh.values[0].data[v], p[1], 1.5f / (float)n);
        if (fabsf(p[2] - 0.5f) > 0.1f)
            assert_float_equal(mesh.values[1].data[v], p[2] > 0.5f ? 3.0f : 1.0f, 0.0f);
        for (int k = 0; k < 3; ++k)
            spin[k] += (double)mesh.values[2 + k].data[v] / (double)mesh.vertex_count;
    }
    const double curl[3] = {-1.0, 0.0, 1.0};
    for (int k = 0; k < 3; ++k)
        assert_true(fabs(spin[k] - curl[k]) < 0.35);
    free(material);
    sk_mesh_free(&mesh);
    cloud_free(&c);
}

/* The level set of a file holds the ball's volume: nodes inside, counted. */
static void test_level_set(void **state)
{
    (void)state;
    const int n = 40;
    cloud c = fill(n, 1.0, in_ball);
    sk_surface_options options = unit_options(n);
    const sk_surface_particles particles = {c.count, c.position, 12, c.velocity, 12};
    sk_volume volume;
    selkie_error error = {0};
    assert_int_equal(sk_surface_volume(&particles, &options, 0, NULL, &volume, &error), SELKIE_OK);
    double inside = 0.0;
    for (size_t i = 0; i < 512 * volume.block_count; ++i) {
        assert_true(fabsf(volume.surface[i]) <= 1.0001f * volume.background);
        inside += volume.surface[i] < 0.0f;
        if (volume.surface[i] < -0.5f * volume.background)
            assert_float_equal(volume.velocity[3 * i], 2.0f, 1e-4f);
    }
    inside *= volume.voxel[0] * volume.voxel[1] * volume.voxel[2];
    assert_true(fabs(inside / (4.0 / 3.0 * 3.14159265 * 0.35 * 0.35 * 0.35) - 1.0) < 0.02);
    sk_volume_free(&volume);
    cloud_free(&c);

    /* A pool ends at the walls: no node outside of the container is inside the liquid. */
    c = fill(n, 1.0, in_pool);
    const sk_surface_particles pool = {c.count, c.position, 12, NULL, 0};
    assert_int_equal(sk_surface_volume(&pool, &options, 0, NULL, &volume, &error), SELKIE_OK);
    for (size_t i = 0; i < 512 * volume.block_count; ++i)
        for (int a = 0; a < 3; ++a) {
            const int node = 8 * volume.coordinates[i / 512][a] + (int)(i % 512 >> 3 * a & 7);
            const double x = volume.origin[a] + node * volume.voxel[a];
            if (x < 0.0 || x > 1.0)
                assert_true(volume.surface[i] > 0.0f);
        }
    sk_volume_free(&volume);
    cloud_free(&c);
}

static void test_threads(void **state)
{
    (void)state;
    int n = 32;
    cloud c = fill(n, 1.0, in_everything);
    sk_surface_options options = unit_options(n);
    options.threads = 1;
    sk_mesh one = extract(&c, &options);
    for (int threads = 2; threads <= 5; threads += 3) {
        options.threads = threads;
        sk_mesh many = extract(&c, &options);
        assert_int_equal(one.vertex_count, many.vertex_count);
        assert_int_equal(one.triangle_count, many.triangle_count);
        assert_memory_equal(one.positions, many.positions, one.vertex_count * 12);
        assert_memory_equal(one.normals, many.normals, one.vertex_count * 12);
        assert_memory_equal(one.velocities, many.velocities, one.vertex_count * 12);
        assert_memory_equal(one.triangles, many.triangles, one.triangle_count * 12);
        sk_mesh_free(&many);
    }
    sk_mesh_free(&one);
    cloud_free(&c);
}

/* Memory follows the liquid: a few drops in a container of 10^15 voxels. */
static void test_sparse_and_strange(void **state)
{
    (void)state;
    float position[6][4] = {{1, 1, 1, 0},   {1.01f, 1, 1, 0},    {90000, 90000, 90000, 0},
                            {NAN, 1, 1, 0}, {1, INFINITY, 1, 0}, {-50, 4, 4, 0}};
    sk_surface_options options = {
        .particle_spacing = 0.01, .voxel_size = 0.02, .high = {1e5, 1e5, 1e5}, .smoothing = 1, .threads = 2};
    const sk_surface_particles six = {.count = 6, .position = position[0], .position_stride = 16};
    const sk_surface_particles none = {.count = 0, .position_stride = 16};
    sk_mesh mesh;
    selkie_error error;
    assert_int_equal(sk_surface_extract(&six, &options, &mesh, &error), SELKIE_OK);
    assert_null(mesh.velocities);
    assert_int_equal(sk_mesh_open_edges(&mesh), 0);
    sk_mesh_free(&mesh);
    assert_int_equal(sk_surface_extract(&none, &options, &mesh, &error), SELKIE_OK);
    assert_int_equal(mesh.triangle_count, 0);
    assert_true(sk_mesh_volume(&mesh) == 0);
    sk_mesh_free(&mesh);

    options.voxel_size = 0;
    assert_int_equal(sk_surface_extract(&six, &options, &mesh, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "voxel_size"));
    options.voxel_size = 1;
    assert_int_equal(sk_surface_extract(&six, &options, &mesh, &error), SELKIE_ERROR_INPUT);
    options.voxel_size = 0.01;
    options.high[1] = NAN;
    assert_int_equal(sk_surface_extract(&six, &options, &mesh, &error), SELKIE_ERROR_INPUT);
    options.high[1] = 1;
    options.smoothing = 3;
    assert_int_equal(sk_surface_extract(&six, &options, &mesh, NULL), SELKIE_ERROR_INPUT);
}

/* Decimation keeps the mesh closed, its volume and its place, and leaves few triangles where water is flat. */
static void test_decimation(void **state)
{
    (void)state;
    const inside_function shapes[] = {in_ball, in_box};
    for (int shape = 0; shape < 2; ++shape) {
        cloud c = fill(32, 1, shapes[shape]);
        sk_surface_options options = unit_options(32);
        sk_mesh mesh = extract(&c, &options);
        const size_t before = mesh.triangle_count;
        const double volume = sk_mesh_volume(&mesh);
        selkie_error error = {0};
        assert_int_equal(sk_mesh_decimate(&mesh, 0.1 / 32, &error), SELKIE_OK);
        print_message("%zu of %zu triangles, volume ratio %.4f\n", mesh.triangle_count, before,
                      sk_mesh_volume(&mesh) / volume);
        assert_int_equal(sk_mesh_open_edges(&mesh), 0);
        assert_true(fabs(sk_mesh_volume(&mesh) / volume - 1) < 0.01);
        assert_true(mesh.triangle_count < before * 3 / 5); /* particles with jitter: nothing is quite flat */
        /* Velocities belong to their places: the field of fill(). */
        for (size_t v = 0; v < mesh.vertex_count; ++v)
            assert_true(fabsf(mesh.velocities[3 * v] - 2.0f) < 1e-3f);
        sk_mesh_free(&mesh);
        cloud_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimation),       cmocka_unit_test(test_volume),
        cmocka_unit_test(test_pool_is_flat),     cmocka_unit_test(test_pool_at_rest),
        cmocka_unit_test(test_flicker),          cmocka_unit_test(test_thin_things),
        cmocka_unit_test(test_tangle_is_closed), cmocka_unit_test(test_velocity),
        cmocka_unit_test(test_values),           cmocka_unit_test(test_level_set),
        cmocka_unit_test(test_threads),          cmocka_unit_test(test_sparse_and_strange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

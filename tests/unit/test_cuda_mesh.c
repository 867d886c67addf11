/* Surfaces of particles on the device: the bits of those that the CPU makes. Skipped with a word where there is no
 * device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "base/random.h"
#include "cuda/surface.h"
#include "cuda_cases.h"
#include "geom/surface.h"
#include "io/output.h"
#include "io/writer.h"

/* Particles as a world has them. */
typedef struct cloud {
    size_t count;
    sk_particle *records;
} cloud;

typedef int (*inside_function)(const double x[3]);

static int in_pool(const double x[3])
{
    return x[1] < 0.4;
}

static int in_ball(const double x[3])
{
    const double d[3] = {x[0] - 0.5, x[1] - 0.5, x[2] - 0.5};
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < 0.35 * 0.35;
}

/* Scattered particles, some of them alone, others beside the walls. */
static int in_spray(const double x[3])
{
    const uint64_t cell = (uint64_t)(x[0] * 1e4) + 10007 * (uint64_t)(x[1] * 1e4) + 1000003 * (uint64_t)(x[2] * 1e4);
    return sk_random_float(11, cell, 3) < 0.02;
}

static int everywhere(const double x[3])
{
    (void)x;
    return 1;
}

/* One particle in each of n^3 sub-cells that lies inside, displaced at random. */
static cloud fill(int n, inside_function inside)
{
    cloud c = {0, calloc((size_t)n * (size_t)n * (size_t)n + 1, sizeof(sk_particle))};
    assert_non_null(c.records);
    for (int cell = 0; cell < n * n * n; cell++) {
        const int at[3] = {cell % n, cell / n % n, cell / (n * n)};
        double x[3];
        for (int a = 0; a < 3; a++)
            x[a] = (at[a] + sk_random_float(7, (uint64_t)cell, (uint64_t)a)) / n;
        if (!inside(x))
            continue;
        sk_particle *p = &c.records[c.count++];
        for (int a = 0; a < 3; a++) {
            p->position[a] = (float)x[a];
            p->velocity[a] = (float)(a == 0 ? 2.0 : a == 1 ? x[0] : -x[1]);
        }
    }
    return c;
}

static sk_surface_options unit_options(int n, double voxels)
{
    return (sk_surface_options){
        .particle_spacing = 1.0 / n, .voxel_size = 1.0 / n / voxels, .high = {1, 1, 1}, .smoothing = 1.0, .threads = 2};
}

static sk_surface_particles view(const cloud *c)
{
    return (sk_surface_particles){.count = c->count,
                                  .position = c->records->position,
                                  .position_stride = sizeof *c->records,
                                  .velocity = c->records->velocity,
                                  .velocity_stride = sizeof *c->records};
}

/* The same numbers in every bit, and a closed mesh. */
static void assert_equal_meshes(const sk_mesh *a, const sk_mesh *b)
{
    assert_int_equal(a->vertex_count, b->vertex_count);
    assert_int_equal(a->triangle_count, b->triangle_count);
    assert_memory_equal(a->triangles, b->triangles, a->triangle_count * 12);
    assert_memory_equal(a->positions, b->positions, a->vertex_count * 12);
    assert_memory_equal(a->normals, b->normals, a->vertex_count * 12);
    assert_int_equal(a->velocities != NULL, b->velocities != NULL);
    if (a->velocities)
        assert_memory_equal(a->velocities, b->velocities, a->vertex_count * 12);
    assert_int_equal(sk_mesh_open_edges(b), 0);
}

/* Values of the particles at the vertices of a mesh, and the vorticity. */
static void compare_values(sk_cuda_mesher *mesher, const sk_surface_particles *particles,
                           const sk_surface_options *options, sk_mesh *host, sk_mesh *device)
{
    selkie_error error = {0};
    uint32_t *material = calloc(particles->count + 1, sizeof *material);
    assert_non_null(material);
    for (size_t p = 0; p < particles->count; p++)
        material[p] = (uint32_t)(p / 7 % 3);
    const sk_surface_value values[4] = {{"height", particles->position + 1, particles->position_stride, 0},
                                        {"material", material, sizeof *material, 1},
                                        {"depth", particles->position + 2, particles->position_stride, 0},
                                        {"width", particles->position, particles->position_stride, 0}};
    if (sk_surface_add_values(particles, options, 4, values, host, &error) ||
        sk_cuda_surface_add_values(mesher, particles, options, 4, values, device, &error))
        fail_msg("%s", error.message);
    assert_int_equal(host->value_count, particles->velocity ? 7 : 4);
    assert_int_equal(host->value_count, device->value_count);
    for (int v = 0; v < host->value_count; v++) {
        assert_string_equal(host->values[v].name, device->values[v].name);
        assert_memory_equal(host->values[v].data, device->values[v].data, host->vertex_count * sizeof(float));
    }

    sk_volume volumes[2];
    if (sk_surface_volume(particles, options, 4, values, &volumes[0], &error) ||
        sk_cuda_surface_volume(mesher, particles, options, 4, values, &volumes[1], &error))
        fail_msg("%s", error.message);
    const size_t blocks = volumes[0].block_count, nodes = blocks * 512 * sizeof(float);
    assert_int_equal(blocks, volumes[1].block_count);
    assert_true(volumes[0].background == volumes[1].background);
    assert_memory_equal(volumes[0].origin, volumes[1].origin, sizeof volumes[0].origin);
    assert_memory_equal(volumes[0].voxel, volumes[1].voxel, sizeof volumes[0].voxel);
    assert_memory_equal(volumes[0].coordinates, volumes[1].coordinates, blocks * sizeof *volumes[0].coordinates);
    assert_memory_equal(volumes[0].surface, volumes[1].surface, nodes);
    if (particles->velocity)
        assert_memory_equal(volumes[0].velocity, volumes[1].velocity, 3 * nodes);
    assert_int_equal(volumes[0].value_count, 4);
    assert_int_equal(volumes[1].value_count, 4);
    for (int v = 0; v < 4; v++)
        assert_memory_equal(volumes[0].values[v].data, volumes[1].values[v].data, nodes);
    sk_volume_free(&volumes[0]);
    sk_volume_free(&volumes[1]);
    free(material);
}

/* Both meshes of a cloud; the device's twice. Returns the number of triangles. */
static size_t compare(sk_cuda_mesher *mesher, const sk_surface_particles *particles, const sk_surface_options *options)
{
    selkie_error error = {0};
    sk_mesh host, device;
    if (sk_surface_extract(particles, options, &host, &error))
        fail_msg("%s", error.message);
    for (int time = 0; time < 2; time++) {
        if (sk_cuda_surface_extract(mesher, particles, options, &device, &error))
            fail_msg("%s", error.message);
        assert_equal_meshes(&host, &device);
        if (time == 0)
            compare_values(mesher, particles, options, &host, &device);
        sk_mesh_free(&device);
    }
    const size_t triangles = host.triangle_count;
    sk_mesh_free(&host);
    return triangles;
}

static sk_cuda_mesher *make_mesher(void)
{
    sk_cuda_mesher *mesher;
    selkie_error error = {0};
    if (sk_cuda_mesher_create(&mesher, &error))
        fail_msg("%s", error.message);
    return mesher;
}

/* Shapes, voxels a spacing (each width of the filter) and strengths of the smoothing. One mesher makes all of them, so
 * that its memory grows and is used again. */
static void test_shapes(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    static const inside_function shapes[] = {in_ball, in_pool, in_spray, everywhere};
    static const double voxels[] = {1.0, 0.5, 1.4, 2.0}, smoothing[] = {1.0, 0.0, 2.0, 0.5};
    sk_cuda_mesher *mesher = make_mesher();
    for (int shape = 0; shape < 4; shape++)
        for (int v = 0; v < 4; v++) {
            const int n = 14;
            cloud c = fill(n, shapes[shape]);
            sk_surface_options options = unit_options(n, voxels[v]);
            options.smoothing = smoothing[(v + shape) % 4];
            options.particle_radius = v == 1 ? 0.8 : 0.0;
            const sk_surface_particles particles = view(&c);
            const size_t triangles = compare(mesher, &particles, &options);
            print_message("shape %d, %g voxels a spacing, smoothing %g: %zu particles, %zu triangles, same bits\n",
                          shape, voxels[v], options.smoothing, c.count, triangles);
            assert_true(triangles > 50);
            free(c.records);
        }
    sk_cuda_mesher_destroy(mesher);
}

/* Containers of few voxels, whose walls see each other, and of unequal sides. */
static void test_narrow(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    sk_cuda_mesher *mesher = make_mesher();
    cloud c = fill(12, in_pool);
    for (int n = 0; n < 6; n++) {
        sk_surface_options options = unit_options(12, n & 1 ? 2.0 : 1.0);
        options.low[n % 3] = 0.31;
        options.high[n % 3] = 0.31 + (n < 3 ? 0.11 : 0.3);
        const sk_surface_particles particles = view(&c);
        assert_true(compare(mesher, &particles, &options) > 20);
    }
    free(c.records);
    sk_cuda_mesher_destroy(mesher);
}

/* Positions and velocities apart, without velocities, values that are not numbers, particles outside, and none. */
static void test_strange(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    sk_cuda_mesher *mesher = make_mesher();
    const int n = 12;
    cloud c = fill(n, in_ball);
    float(*position)[3] = calloc(c.count, sizeof *position), (*velocity)[4] = calloc(c.count, sizeof *velocity);
    assert_true(position && velocity);
    for (size_t p = 0; p < c.count; p++) {
        memcpy(position[p], c.records[p].position, sizeof *position);
        memcpy(velocity[p], c.records[p].velocity, 3 * sizeof(float));
    }
    position[5][1] = NAN;
    position[6][0] = INFINITY;
    position[7][2] = -50.0f;
    position[8][2] = 1.01f;
    velocity[9][0] = NAN;
    velocity[c.count - 1][2] = -INFINITY;
    const sk_surface_options options = unit_options(n, 1.0);
    sk_surface_particles particles = {c.count, position[0], sizeof *position, velocity[0], sizeof *velocity};
    assert_true(compare(mesher, &particles, &options) > 50);
    particles.velocity = NULL;
    assert_true(compare(mesher, &particles, &options) > 50);
    particles.count = 0;
    assert_int_equal(compare(mesher, &particles, &options), 0);

    sk_mesh mesh;
    selkie_error error = {0};
    sk_surface_options bad = options;
    bad.voxel_size = 0.0;
    assert_int_equal(sk_cuda_surface_extract(mesher, &particles, &bad, &mesh, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "voxel_size"));
    bad = options;
    bad.high[0] = bad.high[1] = bad.high[2] = 1e5;
    assert_int_equal(sk_cuda_surface_extract(mesher, &particles, &bad, &mesh, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "cannot number"));
    free(position);
    free(velocity);
    free(c.records);
    sk_cuda_mesher_destroy(mesher);
}

/* The particles of a world where they are on the device, those that have left through an open side among them. */
static void test_world(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_error error = {0};
    set_scene(&scene, liquids, 3, SELKIE_VOLUME_NONE);
    scene.domain.cell_size = 1.0 / 12;
    scene.pressure.start = 10.0;
    scene.domain.walls[1] = SELKIE_WALL_OPEN;
    liquids[0].velocity[0] = 3.0;
    liquids[1].velocity[0] = 4.0;
    selkie_world *world = make_world(&scene, SELKIE_BACKEND_CUDA);
    sk_cuda_mesher *mesher = make_mesher();
    take_steps(world, 4);
    sk_surface_options options;
    sk_surface_options_init(&options, selkie_world_scene(world));
    sk_mesh host, device;
    assert_true(sk_cuda_has_particles(&world->step));
    if (sk_cuda_surface_extract_here(mesher, &world->step, &options, &device, &error))
        fail_msg("%s", error.message);
    assert_int_equal(sk_world_fetch(world, 0, NULL), SELKIE_OK);
    const cloud c = {(size_t)world->step.particles.count, world->step.particles.records};
    const sk_surface_particles particles = view(&c);
    assert_int_equal(sk_surface_extract(&particles, &options, &host, &error), SELKIE_OK);
    assert_true(host.triangle_count > 100);
    assert_equal_meshes(&host, &device);
    sk_mesh_free(&host);
    sk_mesh_free(&device);
    sk_cuda_mesher_destroy(mesher);
    selkie_world_destroy(world);
}

/* The bytes of a file, which is removed; free() them. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    char *text = malloc(1 << 24);
    assert_non_null(text);
    *bytes = fread(text, 1, 1 << 24, file);
    fclose(file);
    remove(path);
    return text;
}

enum { BY_WRITER, BY_WORLD, BY_CPU, WAYS };

/* Mesh files of a world on the device: of the thread that writes frames, of the world itself, and of the CPU. */
static void test_files(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_error error = {0};
    sk_writer *writer;
    char paths[WAYS][96];
    set_scene(&scene, liquids, 3, SELKIE_VOLUME_NONE);
    scene.domain.cell_size = 1.0 / 12;
    scene.domain.origin[0] = 100.0;
    for (int l = 0; l < 2; l++) {
        liquids[l].shape.min[0] += 100.0;
        liquids[l].shape.max[0] += 100.0;
    }
    scene.pressure.start = 10.0;
    scene.mesh.decimation = 0.05;
    selkie_world *world = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_int_equal(sk_writer_create(&writer, &error), SELKIE_OK);
    for (int frame = 0; frame < 2; frame++) {
        for (int way = 0; way < WAYS; way++)
            snprintf(paths[way], sizeof paths[way], "cuda_mesh_%d_%d.ply", (int)getpid(), way);
        take_steps(world, 2);
        const sk_writer_file file = {SK_WRITER_SURFACE, paths[BY_WRITER]};
        assert_int_equal(sk_writer_add(writer, world, 1, &file, &error), SELKIE_OK);
        assert_int_equal(sk_writer_wait(writer, &error), SELKIE_OK);
        if (selkie_write_surface(world, paths[BY_WORLD], &error))
            fail_msg("%s", error.message);
        sk_frame all;
        selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES];
        assert_int_equal(sk_world_frame(world, &all, extras, &error), SELKIE_OK);
        assert_null(all.mesher);
        assert_int_equal(sk_frame_write_surface(&all, selkie_world_scene(world), 1, paths[BY_CPU], &error), SELKIE_OK);
        size_t bytes[WAYS];
        char *text[WAYS];
        for (int way = 0; way < WAYS; way++)
            text[way] = read_file(paths[way], &bytes[way]);
        for (int way = 0; way < BY_CPU; way++) {
            assert_int_equal(bytes[way], bytes[BY_CPU]);
            assert_memory_equal(text[way], text[BY_CPU], bytes[BY_CPU]);
        }
        assert_true(bytes[BY_CPU] > 10000);
        for (int way = 0; way < WAYS; way++)
            free(text[way]);
    }
    sk_writer_destroy(writer);
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_narrow), cmocka_unit_test(test_strange),
        cmocka_unit_test(test_world),  cmocka_unit_test(test_files),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

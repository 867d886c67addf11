/* A world works in coordinates relative to domain.origin: a scene that is moved gives the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "defs/relative.h"
#include "io/particles_file.h"

static void decimal_differences(void **state)
{
    (void)state;
    assert_true(sk_relative(0.3, 0.0) == 0.3);
    assert_true(sk_relative(1000000.3, 1000000.0) == 0.3);
    assert_true(sk_relative(-99999999.7, -100000000.0) == 0.3);
    assert_true(sk_relative(100000000.05, 100000000.0) == 0.05);
    assert_true(sk_relative(7.35, 7.1) == 0.25);
    assert_true(sk_relative(0.0, 2.5) == -2.5 && sk_relative(2.5, 2.5) == 0.0 && sk_relative(1.5, 2.5) == -1.0);
    assert_true(fabs(sk_relative(1.0 / 3, 0.25) - (1.0 / 3 - 0.25)) < 1e-15);
    assert_true(sk_relative(1e-30, 1e9) == -1e9 && sk_relative(1e9, 1e-30) == 1e9);
    assert_true(isinf(sk_relative(INFINITY, 3.0)));
}

/* A scene with every kind of position. Values are decimal numbers plus the origin's. */
typedef struct moved_case {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacles[2];
    selkie_source_def source;
    selkie_drain_def drain;
    selkie_force_def force;
    selkie_probe_def probes[3];
    const double *origin;
} moved_case;

/* The double next to the sum of two decimal numbers, as a scene file has it. */
static double sum_of(double origin, double x)
{
    char text[64];
    snprintf(text, sizeof text, "%.9f", origin + x);
    double value;
    assert_int_equal(sscanf(text, "%lf", &value), 1);
    return value;
}

static void put(const moved_case *c, double to[3], double x, double y, double z)
{
    const double at[3] = {x, y, z};
    for (int d = 0; d < 3; d++)
        to[d] = d < c->scene.domain.dimension ? sum_of(c->origin[d], at[d]) : 0.0;
}

static void make_scene(moved_case *c, int dimension, const double origin[3])
{
    memset(c, 0, sizeof *c);
    selkie_scene *scene = &c->scene;
    selkie_scene_defaults(scene);
    scene->volume = SELKIE_VOLUME_NONE;
    c->origin = origin;
    scene->domain.dimension = dimension;
    put(c, scene->domain.origin, 0, 0, 0);
    scene->domain.size[0] = scene->domain.size[1] = 1.0;
    scene->domain.size[2] = 0.5;
    scene->domain.cell_size = 0.05;
    scene->time.fps = 30;
    for (int l = 0; l < 2; l++)
        selkie_liquid_defaults(&c->liquids[l]);
    selkie_shape_defaults(&c->liquids[0].shape, SELKIE_SHAPE_WAVE);
    c->liquids[0].shape.level = sum_of(origin[1], 0.25);
    c->liquids[0].shape.amplitude = 0.06;
    c->liquids[0].shape.wave_number[0] = 6.283185307179586477 / 0.5; /* whole waves from any origin here */
    selkie_shape_defaults(&c->liquids[1].shape, SELKIE_SHAPE_SPHERE);
    put(c, c->liquids[1].shape.center, 0.7, 0.7, 0.25);
    c->liquids[1].shape.radius = 0.13;
    c->liquids[1].angular_velocity[2] = 3.0;
    put(c, c->liquids[1].center, 0.65, 0.71, 0.2);
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&c->obstacles[o]);
    selkie_shape_defaults(&c->obstacles[0].shape, SELKIE_SHAPE_CYLINDER);
    put(c, c->obstacles[0].shape.from, 0.3, 0.05, 0.25);
    put(c, c->obstacles[0].shape.to, 0.3, 0.2, 0.25);
    c->obstacles[0].shape.radius = 0.07;
    selkie_shape_defaults(&c->obstacles[1].shape, SELKIE_SHAPE_BOX);
    put(c, c->obstacles[1].shape.min, 0.6, 0.1, 0.1);
    put(c, c->obstacles[1].shape.max, 0.8, 0.2, 0.3);
    put(c, c->obstacles[1].center, 0.7, 0.15, 0.2);
    c->obstacles[1].angular_velocity[2] = 2.0;
    selkie_source_defaults(&c->source);
    selkie_shape_defaults(&c->source.shape, SELKIE_SHAPE_BOX);
    put(c, c->source.shape.min, 0.1, 0.8, 0.1);
    put(c, c->source.shape.max, 0.3, 0.9, 0.3);
    c->source.velocity[1] = -1.0;
    selkie_drain_defaults(&c->drain);
    selkie_shape_defaults(&c->drain.shape, SELKIE_SHAPE_HALF_SPACE);
    put(c, c->drain.shape.point, 0.5, 0.02, 0.2);
    selkie_force_defaults(&c->force, SELKIE_FORCE_VORTEX);
    put(c, c->force.point, 0.5, 0.5, 0.25);
    c->force.axis[1] = 0.0;
    c->force.axis[2] = 1.0;
    c->force.radius = 0.4;
    c->force.spin = 20.0;
    static const selkie_probe_kind kinds[3] = {SELKIE_PROBE_PRESSURE, SELKIE_PROBE_FRONT, SELKIE_PROBE_LEVEL};
    static const char *const names[3] = {"pressure", "front", "level"};
    for (int p = 0; p < 3; p++) {
        selkie_probe_defaults(&c->probes[p]);
        c->probes[p].kind = kinds[p];
        c->probes[p].name = names[p];
        put(c, c->probes[p].at, 0.2, 0.1, 0.2);
    }
    scene->liquids = c->liquids, scene->liquid_count = 2;
    scene->obstacles = c->obstacles, scene->obstacle_count = 2;
    scene->sources = &c->source, scene->source_count = 1;
    scene->drains = &c->drain, scene->drain_count = 1;
    scene->forces = &c->force, scene->force_count = 1;
    scene->probes = c->probes, scene->probe_count = 3;
}

static selkie_world *run_case(moved_case *c, selkie_discretization discretization, const double origin[3])
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = 1;
    selkie_world *world;
    selkie_error error = {0};
    make_scene(c, 2, origin);
    c->scene.discretization = discretization;
    c->scene.volume = SELKIE_VOLUME_NONE;
    if (selkie_world_create(&c->scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    for (int s = 0; s < 6; s++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
    return world;
}

static const double origins[][3] = {
    {0, 0, 0}, {3, -2.05, 0}, {1000000, -1000000, 0}, {100000000, 100000000, 0}}; /* multiples of a cell */

static void the_same_bits_at_any_origin(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        const selkie_discretization kind = d ? SELKIE_DISCRETIZATION_SPH : SELKIE_DISCRETIZATION_GRID;
        moved_case c, moved;
        selkie_world *world = run_case(&c, kind, origins[0]);
        selkie_attribute_view a, b;
        assert_int_equal(selkie_world_find_attribute(world, "position", &a, NULL), SELKIE_OK);
        for (size_t o = 1; o < sizeof origins / sizeof *origins; o++) {
            selkie_world *other = run_case(&moved, kind, origins[o]);
            assert_int_equal(selkie_world_find_attribute(other, "position", &b, NULL), SELKIE_OK);
            const int64_t count = selkie_world_particle_count(world);
            assert_int_equal(selkie_world_particle_count(other), count);
            assert_memory_equal(a.data, b.data, (size_t)count * a.stride);
            for (int axis = 0; axis < 2; axis++)
                assert_true(b.origin[axis] == origins[o][axis] && a.origin[axis] == 0.0);
            assert_true(selkie_world_probe_value(world, 0) == selkie_world_probe_value(other, 0));
            assert_true(fabs(selkie_world_probe_value(other, 1) - origins[o][0] - selkie_world_probe_value(world, 1)) <
                        1e-7);
            assert_true(selkie_world_probe_value(world, 2) == selkie_world_probe_value(other, 2));
            selkie_world_destroy(other);
        }
        selkie_world_destroy(world);
    }
}

/* Files have scene coordinates; far from 0 they are doubles, and the reader gives the world's own positions. */
static void files_keep_positions(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/selkie_origin_%d.ply", (int)getpid());
    for (size_t o = 0; o < sizeof origins / sizeof *origins; o++) {
        moved_case c;
        selkie_error error = {0};
        selkie_attribute_view position;
        selkie_world *world = run_case(&c, SELKIE_DISCRETIZATION_GRID, origins[o]);
        assert_int_equal(selkie_write_particles(world, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_find_attribute(world, "position", &position, NULL), SELKIE_OK);
        sk_particles_data *data;
        assert_int_equal(sk_particles_read_ply(path, &data, &error), SELKIE_OK);
        assert_int_equal(data->count, selkie_world_particle_count(world));
        sk_particles_rebase(data, origins[o]);
        /* A double at 1e8 m is 1.5e-8 m wide; a float near 3 m 2.4e-7 m. */
        for (int64_t p = 0; p < data->count; p++)
            for (int d = 0; d < 2; d++) {
                const float *x = (const float *)((const char *)position.data + (size_t)p * position.stride);
                assert_true(fabsf(data->position[3 * p + d] - x[d]) < 2.5e-7f);
            }
        sk_particles_data_free(data);
        selkie_world_destroy(world);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decimal_differences),
                                       cmocka_unit_test(the_same_bits_at_any_origin),
                                       cmocka_unit_test(files_keep_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

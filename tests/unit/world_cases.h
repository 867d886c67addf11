/* Worlds of small dam breaks, made, run and compared; a folder for their files. */
#ifndef SELKIE_TESTS_WORLD_CASES_H
#define SELKIE_TESTS_WORLD_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "world/world_internal.h"

static char folder[] = "/tmp/selkie-test-world-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* every test takes its files away */
}

static inline const char *file_in(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

typedef struct case_parts {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_source_def source;
    selkie_drain_def drain;
    selkie_obstacle_def obstacle;
    selkie_probe_def probes[4];
} case_parts;

static inline void set3(double to[3], double x, double y, double z)
{
    to[0] = x, to[1] = y, to[2] = z;
}

/* A dam that breaks past a turning bar, with a source, a drain and all probes. */
static inline void dam(case_parts *c, int dimension, selkie_method method)
{
    memset(c, 0, sizeof *c);
    selkie_scene_defaults(&c->scene);
    c->scene.volume = SELKIE_VOLUME_NONE;
    selkie_scene *scene = &c->scene;
    scene->domain.dimension = dimension;
    set3(scene->domain.size, 1.0, 0.75, dimension == 3 ? 0.5 : 1.0);
    scene->domain.cell_size = 1.0 / 24;
    selkie_scene_set_method(scene, method);
    scene->time.end = 1.0;
    scene->time.fps = 50.0;
    selkie_liquid_defaults(&c->liquid);
    selkie_shape_defaults(&c->liquid.shape, SELKIE_SHAPE_BOX);
    set3(c->liquid.shape.min, 0, 0, 0);
    set3(c->liquid.shape.max, 0.4, 0.5, 0.5);
    scene->liquids = &c->liquid;
    scene->liquid_count = 1;
    selkie_obstacle_defaults(&c->obstacle);
    selkie_shape_defaults(&c->obstacle.shape, SELKIE_SHAPE_BOX);
    set3(c->obstacle.shape.min, 0.55, 0.1, 0.1);
    set3(c->obstacle.shape.max, 0.75, 0.2, 0.4);
    set3(c->obstacle.center, 0.65, 0.15, 0.25);
    c->obstacle.angular_velocity[2] = 2.0;
    scene->obstacles = &c->obstacle;
    scene->obstacle_count = 1;
    selkie_source_defaults(&c->source);
    selkie_shape_defaults(&c->source.shape, SELKIE_SHAPE_SPHERE);
    set3(c->source.shape.center, 0.8, 0.6, dimension == 3 ? 0.25 : 0.0);
    c->source.shape.radius = 0.08;
    set3(c->source.velocity, -0.5, -0.5, 0);
    scene->sources = &c->source;
    scene->source_count = 1;
    selkie_drain_defaults(&c->drain);
    selkie_shape_defaults(&c->drain.shape, SELKIE_SHAPE_BOX);
    set3(c->drain.shape.min, 0.9, 0.0, 0.0);
    set3(c->drain.shape.max, 1.0, 0.1, 0.5);
    scene->drains = &c->drain;
    scene->drain_count = 1;
    static const selkie_probe_kind kinds[] = {SELKIE_PROBE_HEIGHT, SELKIE_PROBE_PRESSURE, SELKIE_PROBE_VELOCITY,
                                              SELKIE_PROBE_FRONT};
    static const char *const names[] = {"height", "pressure", "velocity", "front"};
    for (int p = 0; p < 4; p++) {
        selkie_probe_defaults(&c->probes[p]);
        c->probes[p].kind = kinds[p];
        c->probes[p].name = names[p];
        set3(c->probes[p].at, 0.2, 0.05, dimension == 3 ? 0.25 : 0.0);
    }
    scene->probes = c->probes;
    scene->probe_count = 4;
}

static inline selkie_world *create(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    assert_true(options.threads == 0 && options.memory_limit == 0);
    options.threads = threads;
    selkie_world *world;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static inline void run(selkie_world *world, int steps)
{
    selkie_error error = {0};
    for (int s = 0; s < steps; s++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

/* All that can be seen of the state, bit by bit. */
static inline int same_state(const selkie_world *a, const selkie_world *b)
{
    int64_t count = selkie_world_particle_count(a);
    int same = count == selkie_world_particle_count(b) && selkie_world_time(a) == selkie_world_time(b) &&
               selkie_world_step_count(a) == selkie_world_step_count(b) &&
               selkie_world_frame(a) == selkie_world_frame(b) && selkie_world_at_frame(a) == selkie_world_at_frame(b) &&
               selkie_world_attribute_count(a) == selkie_world_attribute_count(b);
    for (int n = 0; same && n < selkie_world_attribute_count(a); n++) {
        selkie_attribute_view x, y;
        assert_int_equal(selkie_world_attribute(a, n, &x), SELKIE_OK);
        assert_int_equal(selkie_world_attribute(b, n, &y), SELKIE_OK);
        for (int64_t p = 0; same && p < count; p++)
            same = !memcmp((const char *)x.data + (size_t)p * x.stride, (const char *)y.data + (size_t)p * y.stride,
                           (size_t)x.components * 4);
    }
    return same;
}

static inline int same_statistics(const selkie_world *a, const selkie_world *b)
{
    const selkie_statistics *x = selkie_world_statistics(a), *y = selkie_world_statistics(b);
    return x->step == y->step && x->time == y->time && x->dt == y->dt && x->particles == y->particles &&
           x->volume_ratio == y->volume_ratio && x->volume_eq19 == y->volume_eq19 &&
           x->occupied_ratio == y->occupied_ratio && x->kinetic_energy == y->kinetic_energy &&
           x->potential_energy == y->potential_energy && x->max_speed == y->max_speed &&
           x->pressure_iterations == y->pressure_iterations && x->pressure_residual == y->pressure_residual &&
           x->liquid_cells == y->liquid_cells && x->blocks == y->blocks && x->emitted == y->emitted &&
           x->drained == y->drained;
}

static inline int same_probes(const selkie_world *a, const selkie_world *b)
{
    for (int c = 0; c < selkie_world_probe_column_count(a); c++) {
        double x = selkie_world_probe_value(a, c), y = selkie_world_probe_value(b, c);
        if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
            return 0;
    }
    return 1;
}

#endif

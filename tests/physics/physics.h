/* What the physics tests share: a scene in a few lines, a world that must work, sums over particles, and one way to
 * print and judge a figure, so that docs/manual/validation.md can be read off a run. */
#ifndef SELKIE_TESTS_PHYSICS_H
#define SELKIE_TESTS_PHYSICS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <selkie/selkie.h>

#define GRAVITY 9.81 /* m/s2 */

#define UNUSED_IS_FINE __attribute__((unused)) static inline

/* --- figures --- */

/* Prints "case | measure | value | bound" and fails if the value is not at most the bound (NaN fails too). */
UNUSED_IS_FINE void at_most(const char *what, const char *measure, double value, double bound)
{
    print_message("%-42s %-46s %12.4g   <= %g\n", what, measure, value, bound);
    if (!(value <= bound))
        fail_msg("%s: %s is %g, more than %g", what, measure, value, bound);
}

UNUSED_IS_FINE void between(const char *what, const char *measure, double value, double low, double high)
{
    print_message("%-42s %-46s %12.6g   in %g .. %g\n", what, measure, value, low, high);
    if (!(value >= low && value <= high))
        fail_msg("%s: %s is %g, not in %g .. %g", what, measure, value, low, high);
}

/* A figure that is worth knowing and has no bound. */
UNUSED_IS_FINE void note(const char *what, const char *measure, double value)
{
    print_message("%-42s %-46s %12.4g\n", what, measure, value);
}

/* --- scenes --- */

/* A scene with room for the arrays that it points to. Not to be moved after add_*(). */
typedef struct test_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[4];
    selkie_obstacle_def obstacles[4];
    selkie_source_def sources[2];
    selkie_drain_def drains[2];
    selkie_probe_def probes[40];
} test_scene;

/* A closed tank of the given size (m) and cell size (m), gravity downwards along y, FLIP, steps by the CFL number. */
UNUSED_IS_FINE void tank(test_scene *t, int dimension, double x, double y, double z, double cell_size)
{
    memset(t, 0, sizeof *t);
    selkie_scene *scene = &t->scene;
    selkie_scene_defaults(scene);
    scene->volume = SELKIE_VOLUME_NONE;
    scene->domain.dimension = dimension;
    scene->domain.size[0] = x;
    scene->domain.size[1] = y;
    scene->domain.size[2] = z;
    scene->domain.cell_size = cell_size;
    scene->gravity[0] = scene->gravity[2] = 0.0;
    scene->gravity[1] = -GRAVITY;
    scene->time.end = 1000.0;
    scene->time.fps = 100.0;
    scene->time.cfl = 1.0;
    selkie_scene_set_method(scene, SELKIE_METHOD_FLIP);
    scene->liquids = t->liquids;
    scene->obstacles = t->obstacles;
    scene->sources = t->sources;
    scene->drains = t->drains;
    scene->probes = t->probes;
}

UNUSED_IS_FINE void set_walls(test_scene *t, selkie_wall wall)
{
    for (int side = 0; side < 6; side++)
        t->scene.domain.walls[side] = wall;
}

UNUSED_IS_FINE void set3(double v[3], double x, double y, double z)
{
    v[0] = x;
    v[1] = y;
    v[2] = z;
}

UNUSED_IS_FINE selkie_shape box_shape(double x0, double y0, double z0, double x1, double y1, double z1)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_BOX);
    set3(shape.min, x0, y0, z0);
    set3(shape.max, x1, y1, z1);
    return shape;
}

UNUSED_IS_FINE selkie_shape sphere_shape(double x, double y, double z, double radius)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_SPHERE);
    set3(shape.center, x, y, z);
    shape.radius = radius;
    return shape;
}

UNUSED_IS_FINE selkie_liquid_def *add_liquid(test_scene *t, selkie_shape shape)
{
    selkie_liquid_def *liquid = &t->liquids[t->scene.liquid_count++];
    selkie_liquid_defaults(liquid);
    liquid->shape = shape;
    return liquid;
}

UNUSED_IS_FINE selkie_obstacle_def *add_obstacle(test_scene *t, selkie_shape shape)
{
    selkie_obstacle_def *obstacle = &t->obstacles[t->scene.obstacle_count++];
    selkie_obstacle_defaults(obstacle);
    obstacle->shape = shape;
    return obstacle;
}

UNUSED_IS_FINE selkie_source_def *add_source(test_scene *t, selkie_shape shape)
{
    selkie_source_def *source = &t->sources[t->scene.source_count++];
    selkie_source_defaults(source);
    source->shape = shape;
    return source;
}

UNUSED_IS_FINE selkie_drain_def *add_drain(test_scene *t, selkie_shape shape)
{
    selkie_drain_def *drain = &t->drains[t->scene.drain_count++];
    selkie_drain_defaults(drain);
    drain->shape = shape;
    return drain;
}

UNUSED_IS_FINE selkie_probe_def *add_probe(test_scene *t, const char *name, selkie_probe_kind kind, double x, double y,
                                           double z)
{
    selkie_probe_def *probe = &t->probes[t->scene.probe_count++];
    selkie_probe_defaults(probe);
    probe->name = name;
    probe->kind = kind;
    set3(probe->at, x, y, z);
    return probe;
}

UNUSED_IS_FINE const char *method_name(selkie_method method)
{
    return method == SELKIE_METHOD_PIC    ? "PIC"
           : method == SELKIE_METHOD_FLIP ? "FLIP"
           : method == SELKIE_METHOD_SPH  ? "SPH"
                                          : "APIC";
}

/* What a case is called behind the name of its method. */
UNUSED_IS_FINE const char *volume_name(selkie_volume volume)
{
    return volume == SELKIE_VOLUME_IDP ? " idp" : "";
}

/* --- worlds --- */

/* The backend that SELKIE_TEST_BACKEND names, for one list of tests on every backend. */
UNUSED_IS_FINE int asks_for_backend(selkie_backend *backend)
{
    const char *name = getenv("SELKIE_TEST_BACKEND");
    if (!name)
        return 0;
    *backend = strcmp(name, "cuda") == 0    ? SELKIE_BACKEND_CUDA
               : strcmp(name, "plain") == 0 ? SELKIE_BACKEND_PLAIN
                                            : SELKIE_BACKEND_TUNED;
    return 1;
}

/* A test of a scene that the backend refuses is skipped. */
UNUSED_IS_FINE selkie_world *make_world_threads(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = asks_for_backend(&options.backend);
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error) == SELKIE_OK)
        return world;
    if (options.with_backend && strstr(error.message, "use \"tuned\"")) {
        print_message("[  skip    ] %s\n", error.message);
        skip();
    }
    fail_msg("selkie_world_create: %s", error.message);
    return NULL;
}

UNUSED_IS_FINE selkie_world *make_world(const test_scene *t)
{
    return make_world_threads(&t->scene, 2);
}

UNUSED_IS_FINE void step_world(selkie_world *world)
{
    selkie_error error = {0};
    if (selkie_world_step(world, &error) != SELKIE_OK)
        fail_msg("selkie_world_step: %s", error.message);
}

UNUSED_IS_FINE void run_until(selkie_world *world, double time)
{
    while (selkie_world_time(world) < time * (1 - 1e-9))
        step_world(world);
}

UNUSED_IS_FINE selkie_attribute_view attribute_of(const selkie_world *world, const char *name)
{
    selkie_attribute_view view;
    selkie_error error = {0};
    if (selkie_world_find_attribute(world, name, &view, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return view;
}

UNUSED_IS_FINE float *particle_of(const selkie_attribute_view *view, int64_t p)
{
    return (float *)((char *)view->data + (size_t)p * view->stride);
}

UNUSED_IS_FINE selkie_field_view field_of(const selkie_world *world, const char *name)
{
    selkie_field_view view;
    selkie_error error = {0};
    if (selkie_world_field(world, name, &view, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return view;
}

/* Domain cell of value n of block b. */
UNUSED_IS_FINE void cell_of(const selkie_field_view *view, int b, int n, int cell[3])
{
    int local[3] = {n % view->extent[0], n / view->extent[0] % view->extent[1], n / view->extent[0] / view->extent[1]};
    for (int d = 0; d < 3; d++)
        cell[d] = view->block_coordinates[b][d] * view->extent[d] - view->padding[d] + local[d];
}

/* Sums over particles, each of mass one. */
typedef struct particle_sums {
    int64_t count;
    double position[3], momentum[3]; /* m, m/s: means */
    double kinetic;                  /* (m/s)^2: mean of v^2 / 2 */
    double angular[3];               /* m^2/s: mean of (x - center) x v, with no affine part */
    double max_speed;                /* m/s */
} particle_sums;

UNUSED_IS_FINE particle_sums sum_particles(const selkie_world *world, const double center[3])
{
    particle_sums s = {.count = selkie_world_particle_count(world)};
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < s.count; p++) {
        const float *x = particle_of(&position, p), *v = particle_of(&velocity, p);
        double speed2 = 0.0, r[3];
        for (int d = 0; d < 3; d++) {
            s.position[d] += x[d] + position.origin[d];
            s.momentum[d] += v[d];
            speed2 += (double)v[d] * v[d];
            r[d] = x[d] + position.origin[d] - (center ? center[d] : 0.0);
        }
        s.kinetic += 0.5 * speed2;
        s.max_speed = fmax(s.max_speed, sqrt(speed2));
        for (int d = 0; d < 3; d++)
            s.angular[d] += r[(d + 1) % 3] * v[(d + 2) % 3] - r[(d + 2) % 3] * v[(d + 1) % 3];
    }
    for (int d = 0; d < 3 && s.count; d++) {
        s.position[d] /= (double)s.count;
        s.momentum[d] /= (double)s.count;
        s.angular[d] /= (double)s.count;
    }
    s.kinetic /= s.count ? (double)s.count : 1.0;
    return s;
}

/* Largest number of particles in one cell of the domain. */
UNUSED_IS_FINE int most_in_a_cell(const selkie_world *world)
{
    const selkie_scene *scene = selkie_world_scene(world);
    int cells[3], most = 0;
    double h = selkie_scene_cells(scene, cells);
    uint16_t *counts = calloc((size_t)cells[0] * (size_t)cells[1] * (size_t)cells[2], sizeof *counts);
    selkie_attribute_view position = attribute_of(world, "position");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        size_t index = 0, stride = 1;
        for (int d = 0; d < scene->domain.dimension; d++) {
            int i = (int)((x[d] + position.origin[d] - scene->domain.origin[d]) / h);
            index += (size_t)(i < 0 ? 0 : i >= cells[d] ? cells[d] - 1 : i) * stride;
            stride *= (size_t)cells[d];
        }
        counts[index]++;
        most = counts[index] > most ? counts[index] : most;
    }
    free(counts);
    return most;
}

#endif

/* Scenes, worlds and sums for the checks. */
#include "checks.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* --- Measures --- */

void run_measure(check_run *run, const char *measure, double value, double bound)
{
    if (run->failed)
        return;
    /* A NaN is worse than any number. A bound of 0 counts things that must not be there at all. */
    double now = bound > 0.0 ? value / bound : value > 0.0 ? INFINITY : 0.0;
    double before = run->bound > 0.0 ? run->value / run->bound : run->value > 0.0 ? INFINITY : 0.0;
    if (run->measure[0] && !isnan(value) && !(now > before))
        return;
    run->value = value;
    run->bound = bound;
    snprintf(run->measure, sizeof run->measure, "%s", measure);
}

void run_fail(check_run *run, const char *format, ...)
{
    if (run->failed)
        return;
    run->failed = 1;
    run->value = NAN;
    run->bound = 0.0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->measure, sizeof run->measure, format, arguments);
    va_end(arguments);
}

/* --- Scenes --- */

void set3(double v[3], double x, double y, double z)
{
    v[0] = x;
    v[1] = y;
    v[2] = z;
}

void scene_tank(check_scene *t, const check_run *run, int x, int y, int z)
{
    memset(t, 0, sizeof *t);
    selkie_scene *scene = &t->scene;
    selkie_scene_defaults(scene);
    scene->domain.dimension = run->dimension;
    set3(scene->domain.size, x * CELL, y * CELL, z * CELL);
    scene->domain.cell_size = CELL;
    set3(scene->gravity, 0.0, -GRAVITY, 0.0);
    scene->time.end = 1000.0;
    scene->time.step = run->step;
    if (run->step > 0.0)
        scene->time.fps = 10.0; /* frames that no fixed step must be cut for */
    scene->liquids = t->liquids;
    scene->obstacles = t->obstacles;
    scene->sources = t->sources;
    scene->drains = t->drains;
    scene->objects = t->objects;
    for (int d = 0; d < 3; d++)
        t->axis[d] = d;
}

void scene_no_gravity(check_scene *t)
{
    set3(t->scene.gravity, 0.0, 0.0, 0.0);
}

selkie_shape shape_box(double x0, double y0, double z0, double x1, double y1, double z1)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_BOX);
    set3(shape.min, x0 * CELL, y0 * CELL, z0 * CELL);
    set3(shape.max, x1 * CELL, y1 * CELL, z1 * CELL);
    return shape;
}

selkie_shape shape_ball(double x, double y, double z, double radius)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_SPHERE);
    set3(shape.center, x * CELL, y * CELL, z * CELL);
    shape.radius = radius * CELL;
    return shape;
}

selkie_shape shape_below(double x, double y, double nx, double ny)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_HALF_SPACE);
    set3(shape.point, x * CELL, y * CELL, 0.0);
    set3(shape.normal, nx, ny, 0.0);
    return shape;
}

selkie_liquid_def *scene_liquid(check_scene *t, selkie_shape shape)
{
    selkie_liquid_def *liquid = &t->liquids[t->scene.liquid_count++];
    selkie_liquid_defaults(liquid);
    liquid->shape = shape;
    return liquid;
}

selkie_obstacle_def *scene_obstacle(check_scene *t, selkie_shape shape)
{
    selkie_obstacle_def *obstacle = &t->obstacles[t->scene.obstacle_count++];
    selkie_obstacle_defaults(obstacle);
    obstacle->shape = shape;
    return obstacle;
}

selkie_source_def *scene_source(check_scene *t, selkie_shape shape)
{
    selkie_source_def *source = &t->sources[t->scene.source_count++];
    selkie_source_defaults(source);
    source->shape = shape;
    return source;
}

selkie_drain_def *scene_drain(check_scene *t, selkie_shape shape)
{
    selkie_drain_def *drain = &t->drains[t->scene.drain_count++];
    selkie_drain_defaults(drain);
    drain->shape = shape;
    return drain;
}

/* --- The frame --- */

static void turn_vector(const check_scene *t, double v[3])
{
    const double old[3] = {v[0], v[1], v[2]};
    for (int d = 0; d < 3; d++)
        v[t->axis[d]] = old[d];
}

static void turn_point(const check_scene *t, double x[3])
{
    turn_vector(t, x);
    for (int d = 0; d < t->scene.domain.dimension; d++)
        x[d] += t->origin[d];
}

/* Pseudovectors keep their sign under even permutations; the only odd one is the swap of x and y in 2D. */
static void turn_spin(const check_scene *t, double w[3])
{
    turn_vector(t, w);
    if (t->axis[1] != (t->axis[0] + 1) % 3)
        for (int d = 0; d < 3; d++)
            w[d] = -w[d];
}

static void turn_shape(const check_scene *t, selkie_shape *shape)
{
    turn_point(t, shape->min);
    turn_point(t, shape->max);
    turn_point(t, shape->center);
    turn_point(t, shape->from);
    turn_point(t, shape->to);
    turn_point(t, shape->point);
    turn_vector(t, shape->normal);
}

static void turn_scene(check_scene *t)
{
    selkie_scene *scene = &t->scene;
    turn_vector(t, scene->domain.size);
    turn_vector(t, scene->gravity);
    memcpy(scene->domain.origin, t->origin, sizeof t->origin);
    for (int n = 0; n < scene->liquid_count; n++) {
        turn_shape(t, &t->liquids[n].shape);
        turn_vector(t, t->liquids[n].velocity);
        turn_spin(t, t->liquids[n].angular_velocity);
        turn_point(t, t->liquids[n].center);
    }
    for (int n = 0; n < scene->obstacle_count; n++) {
        turn_shape(t, &t->obstacles[n].shape);
        turn_vector(t, t->obstacles[n].velocity);
        turn_spin(t, t->obstacles[n].angular_velocity);
        turn_point(t, t->obstacles[n].center);
    }
    for (int n = 0; n < scene->source_count; n++) {
        turn_shape(t, &t->sources[n].shape);
        turn_vector(t, t->sources[n].velocity);
    }
    for (int n = 0; n < scene->drain_count; n++)
        turn_shape(t, &t->drains[n].shape);
}

/* --- Worlds --- */

selkie_world *world_make(check_run *run, check_scene *t, int threads)
{
    turn_scene(t);
    run->method->set(t);
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(&t->scene, &options, &world, &error) != SELKIE_OK)
        run_fail(run, "no world: %s", error.message);
    return world;
}

int world_step(check_run *run, selkie_world *world)
{
    selkie_error error = {0};
    if (selkie_world_step(world, &error) == SELKIE_OK)
        return 1;
    run_fail(run, "the step failed at %.3f s: %s", selkie_world_time(world), error.message);
    return 0;
}

int world_run_until(check_run *run, selkie_world *world, double time)
{
    while (selkie_world_time(world) < time * (1 - 1e-9))
        if (!world_step(run, world))
            return 0;
    return 1;
}

static const char *at(const selkie_attribute_view *view, int64_t p)
{
    return (const char *)view->data + (size_t)p * view->stride;
}

particle_reader reader_make(const selkie_world *world, const check_scene *t)
{
    particle_reader reader = {.count = selkie_world_particle_count(world), .scene = t};
    selkie_world_find_attribute(world, "position", &reader.position, NULL);
    selkie_world_find_attribute(world, "velocity", &reader.velocity, NULL);
    reader.has_role = selkie_world_find_attribute(world, "role", &reader.role, NULL) == SELKIE_OK;
    return reader;
}

int reader_get(const particle_reader *reader, int64_t p, double x[3], double v[3])
{
    uint32_t role = 0;
    if (reader->has_role)
        memcpy(&role, at(&reader->role, p), sizeof role);
    if (role != 0)
        return 0;
    const float *position = (const float *)at(&reader->position, p),
                *velocity = (const float *)at(&reader->velocity, p);
    for (int d = 0; d < 3; d++) {
        int axis = reader->scene->axis[d];
        x[d] = position[axis] + reader->position.origin[axis] - reader->scene->origin[axis];
        v[d] = velocity[axis];
    }
    return 1;
}

particle_sums world_sums(const selkie_world *world, const check_scene *t, const double center[3])
{
    particle_sums s = {0};
    particle_reader reader = reader_make(world, t);
    double x[3], v[3];
    for (int64_t p = 0; p < reader.count; p++) {
        if (!reader_get(&reader, p, x, v))
            continue;
        s.count++;
        for (int d = 0; d < 3; d++) {
            const int e = (d + 1) % 3, f = (d + 2) % 3;
            s.not_finite += !isfinite(x[d]) || !isfinite(v[d]);
            s.position[d] += x[d];
            s.velocity[d] += v[d];
            s.kinetic += 0.5 * v[d] * v[d];
            if (center)
                s.angular[d] += (x[e] - center[e]) * v[f] - (x[f] - center[f]) * v[e];
        }
    }
    const double share = s.count ? 1.0 / (double)s.count : 0.0;
    s.kinetic *= share;
    for (int d = 0; d < 3; d++) {
        s.position[d] *= share;
        s.velocity[d] *= share;
        s.angular[d] *= share;
    }

    for (int64_t p = 0; p < reader.count; p++)
        if (reader_get(&reader, p, x, v))
            s.spread = fmax(s.spread, sqrt(pow(v[0] - s.velocity[0], 2) + pow(v[1] - s.velocity[1], 2) +
                                           pow(v[2] - s.velocity[2], 2)));
    return s;
}

double world_energy(const selkie_world *world)
{
    const selkie_statistics *s = selkie_world_statistics(world);
    return s->kinetic_energy + s->potential_energy;
}

double world_mass(const selkie_world *world)
{
    return selkie_world_particle_mass(world) * (double)selkie_world_particle_count(world);
}

uint64_t world_hash(const selkie_world *world)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (int a = 0; a < selkie_world_attribute_count(world); a++) {
        selkie_attribute_view view;
        if (selkie_world_attribute(world, a, &view) != SELKIE_OK)
            return 0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const unsigned char *bytes = (const unsigned char *)at(&view, p);
            for (int b = 0; b < 4 * view.components; b++)
                hash = (hash ^ bytes[b]) * 1099511628211u;
        }
    }
    return hash;
}

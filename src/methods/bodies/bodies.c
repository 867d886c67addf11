#include <math.h>
#include <stdio.h>
#include <string.h>

#include "defs/soft.h"
#include "geom/shape.h"
#include "methods/bodies/bodies.h"
#include "rigid/rigid.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->body_count > sk_scene_particle_bodies(scene);
}

/* Does a shape lie within another one? Looks at a lattice in its bounds. */
static int lies_within(const sk_step *step, const sk_shape *shape, const sk_shape *other)
{
    enum { POINTS = 13 };
    double low[3], high[3], low_other[3], high_other[3];
    int found = 0;
    sk_shape_bounds(shape, low, high);
    sk_shape_bounds(other, low_other, high_other);
    for (int d = 0; d < step->dimension; d++)
        if (high[d] < low_other[d] || low[d] > high_other[d])
            return 0;
    for (int n = 0; n < POINTS * POINTS * (step->dimension == 3 ? POINTS : 1); n++) {
        const int at[3] = {n % POINTS, n / POINTS % POINTS, n / (POINTS * POINTS)};
        double x[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < step->dimension; d++)
            x[d] = low[d] + (at[d] + 0.5) / POINTS * (high[d] - low[d]);
        if (!sk_shape_inside(shape, x))
            continue;
        if (!sk_shape_inside(other, x))
            return 0;
        found = 1;
    }
    return found;
}

/* Makes the shapes of all bodies, and refuses one that lies within another: no contact could part them. */
static selkie_code check_places(const sk_step *step, sk_shape **shapes, selkie_error *error)
{
    double up[3];
    selkie_scene_up(step->scene, up);
    for (int b = 0; b < step->scene->body_count; b++) {
        char what[64];
        snprintf(what, sizeof what, "bodies[%d].shape", b);
        const sk_shape_options options = {.dimension = step->dimension,
                                          .up = up,
                                          .folder = step->scene->folder,
                                          .what = what,
                                          .memory = step->memory};
        SK_TRY(sk_shape_create(&step->scene->bodies[b].shape, &options, &shapes[b], error));
        for (int other = 0; other < b; other++) {
            const int inside = lies_within(step, shapes[b], shapes[other]);
            if (inside || lies_within(step, shapes[other], shapes[b]))
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "%s: %s bodies[%d]: bodies must have places of their own at the start", what,
                               inside ? "lies within" : "contains", other);
        }
    }
    return SELKIE_OK;
}

static selkie_code check(const sk_step *step, selkie_error *error)
{
    const int count = step->scene->body_count;
    if (count < 2 || step->scene->discretization == SELKIE_DISCRETIZATION_REDUCED) /* it allows no overlap at all */
        return SELKIE_OK;
    sk_shape **shapes = sk_allocate_zeroed(step->memory, ((size_t)count + 1) * sizeof *shapes);
    if (!shapes)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", count);
    const selkie_code code = check_places(step, shapes, error);
    for (int b = 0; b < count; b++)
        sk_shape_destroy(shapes[b]);
    sk_release(step->memory, shapes);
    return code;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    SK_TRY(check(step, error));
    step->rigid = sk_allocate_zeroed(step->memory, sizeof *step->rigid);
    if (!step->rigid)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory");
    return sk_rigid_init(step->rigid, step->scene, &step->solids, step->memory, error);
}

static void destroy(sk_step *step)
{
    if (!step->rigid)
        return;
    sk_rigid_free(step->rigid);
    sk_release(step->memory, step->rigid);
    step->rigid = NULL;
}

static sk_chunk_view state(const sk_step *step)
{
    return (sk_chunk_view){"bodies", step->rigid->states,
                           (uint64_t)step->rigid->body_count * sizeof *step->rigid->states};
}

static selkie_code restore(sk_step *step, const sk_chunk_view *chunk, const char *file, selkie_error *error)
{
    if (chunk->bytes != (uint64_t)step->rigid->body_count * sizeof *step->rigid->states)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: the %d bodies are missing or of another number", file,
                       step->rigid->body_count);
    return sk_rigid_restore(step->rigid, chunk->data, file, error);
}

/* Is a point within one domain size of the domain? A body there may reach into the domain. */
static int is_near(const sk_step *step, const double x[3])
{
    int near = 1;
    for (int d = 0; d < step->dimension; d++) {
        double size = step->grid.high[d] - step->grid.low[d];
        near &= x[d] > step->grid.low[d] - size && x[d] < step->grid.high[d] + size;
    }
    return near;
}

/* A body that has fallen out of an open side no longer limits the step. */
static void limit_step(const sk_step *step, sk_step_limits *limits)
{
    for (int b = 0; b < step->rigid->body_count; b++)
        if (is_near(step, step->rigid->states[b].position))
            limits->speed = fmax(limits->speed, sk_rigid_speed(step->rigid, b));
}

/* Energies of all bodies, and the force on them. Rotation counts in the body's own axes: 1/2 w_local I w_local. */
static void statistics(const sk_step *step, selkie_statistics *s)
{
    const sk_rigid *rigid = step->rigid;
    double kinetic = 0.0, potential = 0.0, force[3] = {0};
    for (int b = 0; b < rigid->body_count; b++) {
        const sk_rigid_body *body = &rigid->bodies[b];
        const sk_rigid_state *state = &rigid->states[b];
        double rotation[9], w[3];
        sk_rotation_from_quaternion(state->quaternion, rotation);
        for (int i = 0; i < 3; i++)
            w[i] = rotation[i] * state->angular_velocity[0] + rotation[3 + i] * state->angular_velocity[1] +
                   rotation[6 + i] * state->angular_velocity[2];
        for (int i = 0; i < 3; i++) {
            const double *row = &body->inertia[3 * i];
            kinetic += 0.5 * body->mass * state->velocity[i] * state->velocity[i];
            kinetic += 0.5 * w[i] * (row[0] * w[0] + row[1] * w[1] + row[2] * w[2]);
            force[i] += state->force[i];
        }
        for (int d = 0; d < step->dimension; d++)
            potential -= body->mass * step->scene->gravity[d] * (state->position[d] - step->grid.low[d]);
    }
    s->body_kinetic_energy = kinetic;
    s->body_potential_energy = potential;
    s->body_force_x = force[0];
    s->body_force_y = force[1];
    s->body_force_z = force[2];
}

/* Force and torque of the liquid on a body, means over the last step. SPH measures them itself. */
static int force_on(const sk_step *step, const char *name, const double about[3], double force[3], double torque[3])
{
    const sk_rigid *rigid = step->rigid;
    if (!rigid || !name || step->scene->discretization == SELKIE_DISCRETIZATION_SPH)
        return 0;
    for (int b = 0; b < rigid->body_count; b++) {
        const sk_rigid_state *state = &rigid->states[b];
        double arm[3];
        if (!rigid->bodies[b].def->name || strcmp(rigid->bodies[b].def->name, name) != 0)
            continue;
        for (int d = 0; d < 3; d++)
            arm[d] = state->position[d] - about[d];
        for (int d = 0; d < 3; d++) {
            force[d] = state->force[d];
            torque[d] = state->torque[d] + arm[(d + 1) % 3] * state->force[(d + 2) % 3] -
                        arm[(d + 2) % 3] * state->force[(d + 1) % 3];
        }
        return 1;
    }
    return 0;
}

const sk_method sk_method_bodies = {
    .name = "bodies",
    .takes_part = takes_part,
    .check = check,
    .create = create,
    .destroy = destroy,
    .state = state,
    .restore = restore,
    .limit_step = limit_step,
    .statistics = statistics,
    .force_on = force_on,
};

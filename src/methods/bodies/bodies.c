#include <math.h>
#include <string.h>

#include "defs/soft.h"
#include "methods/bodies/bodies.h"
#include "rigid/rigid.h"

static int takes_part(const selkie_scene *scene)
{
    return scene->body_count > sk_scene_particle_bodies(scene);
}

static selkie_code create(sk_step *step, selkie_error *error)
{
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
    .create = create,
    .destroy = destroy,
    .state = state,
    .restore = restore,
    .limit_step = limit_step,
    .statistics = statistics,
    .force_on = force_on,
};

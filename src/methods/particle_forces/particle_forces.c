#include "methods/particle_forces/particle_forces.h"

#include <math.h>
#include <string.h>

#include "geom/frame.h"
#include "geom/shape.h"

static int takes_part(const selkie_scene *scene)
{
    int sponges = 0;
    for (int f = 0; f < scene->force_count; f++)
        sponges |= scene->forces[f].kind == SELKIE_FORCE_SPONGE;
    return sponges || sk_frame_turns(&scene->frame);
}

static selkie_code check(const sk_step *step, selkie_error *error)
{
    int sponges = 0;
    for (int f = 0; f < step->scene->force_count; f++)
        sponges += step->scene->forces[f].kind == SELKIE_FORCE_SPONGE;
    if (sponges > SK_MOST_SPONGES)
        return sk_fail(error, SELKIE_ERROR_INPUT, "forces: %d sponges; at most %d", sponges, SK_MOST_SPONGES);
    return SELKIE_OK;
}

static selkie_code create(sk_step *step, selkie_error *error)
{
    return check(step, error);
}

static void add_sponge(sk_particle_forces *forces, const sk_step *step, const selkie_force_def *force,
                       sk_force_window window)
{
    const double from = fmax(force->start, window.from),
                 to = force->end < 0.0 ? window.to : fmin(force->end, window.to);
    const double *g = step->scene->gravity;
    const double gravity = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    const double rate = force->rate > 0.0 ? force->rate : 2.5 * sqrt(gravity / force->width);
    const int axis = (int)force->side / 2, high = (int)force->side & 1;
    if (!(to > from))
        return;
    forces->sponges[forces->sponge_count++] = (sk_sponge){
        .axis = axis,
        .edge = (float)(high ? step->grid.high[axis] - force->width : step->grid.low[axis] + force->width),
        .inverse = (float)((high ? 1.0 : -1.0) / force->width),
        .strength = (float)(rate * (to - from)),
    };
}

/* The Coriolis force, v' = -2 w x v, turns velocities by -2 w in a second: energy stays as it is. */
static void set_turn(sk_particle_forces *forces, const sk_step *step, sk_force_window window)
{
    sk_frame_mean mean;
    double quaternion[4] = {1.0, 0.0, 0.0, 0.0}, matrix[9];
    if (sk_frame_turns(&step->scene->frame)) {
        sk_frame_mean_of(step->scene, step->scene->gravity, window.from, window.to, &mean);
        const double *w = mean.omega, length = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
        const double half = length * (window.to - window.from);
        quaternion[0] = cos(half);
        for (int i = 0; i < 3; i++)
            quaternion[i + 1] = length > 0.0 ? -sin(half) * w[i] / length : 0.0;
    }
    sk_rotation_from_quaternion(quaternion, matrix);
    for (int i = 0; i < 9; i++)
        forces->turn[i] = (float)matrix[i];
}

int sk_particle_forces_of(const sk_step *step, sk_particle_forces *forces)
{
    const sk_force_window window = sk_step_force_window(step);
    memset(forces, 0, sizeof *forces);
    for (int f = 0; f < step->scene->force_count; f++)
        if (step->scene->forces[f].kind == SELKIE_FORCE_SPONGE)
            add_sponge(forces, step, &step->scene->forces[f], window);
    set_turn(forces, step, window);
    return forces->sponge_count || sk_frame_turns(&step->scene->frame);
}

static selkie_code run(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_particle_forces forces;
    if (!sk_particle_forces_of(step, &forces))
        return SELKIE_OK;
    const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, "affine");
    float *affine = attribute ? (float *)(void *)attribute->data : NULL;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        if (!(step->particles.records[p].flags & SK_PARTICLE_BOUNDARY))
            sk_particle_forces_apply(&forces, &step->particles.records[p], affine ? affine + 9 * p : NULL);
    return SELKIE_OK;
}

const sk_method sk_method_particle_forces = {
    .name = "particle_forces",
    .needs = SK_NEEDS_PARTICLES,
    .takes_part = takes_part,
    .check = check,
    .create = create,
    .phases = {{.name = "particle_forces", .slot = SK_SLOT_EXCHANGE, .run = SK_ONE_FORM_ANY_DIMENSION(run)}},
};

/* Options of a step's transfers, and the error for velocities that are not numbers. */
#ifndef SK_METHODS_FLIP_TRANSFER_OPTIONS_H
#define SK_METHODS_FLIP_TRANSFER_OPTIONS_H

#include <math.h>

#include "methods/flip/reflection.h"
#include "methods/step.h"

/* The share of FLIP in this step. With reflected steps flip_ratio is what a particle keeps of its own velocity while
 * the fastest liquid crosses a cell, so that the loss does not depend on the step. */
static inline float flip_ratio_of_step(const sk_step *step)
{
    if (!flip_reflects(step))
        return (float)step->scene->flip_ratio;
    const double *g = step->scene->gravity, h = step->grid.cell_size;
    const double gravity = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    const double cells = (step->sums.max_speed + sqrt(gravity * h)) * step->dt / h;
    return (float)pow(step->scene->flip_ratio, cells);
}

static inline sk_transfer_options flip_transfer_options(const sk_step *step)
{
    sk_transfer_options options = {.kind = SK_TRANSFER_FLIP,
                                   .flip_ratio = flip_ratio_of_step(step),
                                   .density_per_particle = 1.0f / (float)step->particles_per_cell,
                                   .threads = step->threads,
                                   .relative_density = step->relative_density,
                                   .material_mask = step->liquid_mask};
    if (step->scene->transfer == SELKIE_TRANSFER_PIC)
        options.kind = SK_TRANSFER_PIC;
    if (step->scene->transfer == SELKIE_TRANSFER_APIC)
        options.kind = SK_TRANSFER_APIC;
    for (int d = 0; d < 3; d++)
        options.velocity[d] = step->grid.fields[step->end_velocity + d];
    if (step->bounded && step->scene->unilateral.flight == SELKIE_FLIGHT_OWN)
        options.flying = step->grid.fields[SK_FIELD_PREDICTED];
    return options;
}

/* Velocity (m/s) that gravity adds along axis d before the projection. */
SK_KERNEL float flip_gravity_gain(const sk_step *step, int d)
{
    return (float)(step->scene->gravity[d] * sk_step_kick(step));
}

static inline selkie_code flip_check_velocities(const sk_step *step, selkie_error *error)
{
    if (step->sums.bad)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the velocity of %lld particles is not a number; the simulation blew up; try a "
            "smaller time.step or time.cfl",
            (long long)step->step_count + 1, step->time, (long long)step->sums.bad);
    return SELKIE_OK;
}

#endif

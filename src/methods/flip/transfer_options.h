/* How a step's transfers are done, and what to say when they went wrong. */
#ifndef SK_METHODS_FLIP_TRANSFER_OPTIONS_H
#define SK_METHODS_FLIP_TRANSFER_OPTIONS_H

#include "methods/step.h"

static inline sk_transfer_options flip_transfer_options(const sk_step *step)
{
    sk_transfer_options options = {.kind = SK_TRANSFER_FLIP,
                                   .flip_ratio = (float)step->scene->flip_ratio,
                                   .density_per_particle = 1.0f / (float)step->particles_per_cell,
                                   .relative_density = step->relative_density,
                                   .threads = step->threads};
    if (step->scene->transfer == SELKIE_TRANSFER_PIC)
        options.kind = SK_TRANSFER_PIC;
    if (step->scene->transfer == SELKIE_TRANSFER_APIC)
        options.kind = SK_TRANSFER_APIC;
    if (step->bounded && step->scene->unilateral.flight == SELKIE_FLIGHT_OWN)
        options.flying = step->grid.fields[SK_FIELD_PREDICTED];
    return options;
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

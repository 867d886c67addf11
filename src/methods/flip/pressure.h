/* Declarations shared by both forms of the pressure projection. Private to flip/. */
#ifndef SK_METHODS_FLIP_PRESSURE_H
#define SK_METHODS_FLIP_PRESSURE_H

#include "methods/density_errors.h"
#include "methods/step.h"

/* Builds the system in the grid's fields, and reports the density errors at the start of the step. */
selkie_code sk_flip_build_pressure_2d(sk_step *step, selkie_error *error);
selkie_code sk_flip_build_pressure_3d(sk_step *step, selkie_error *error);
selkie_code sk_flip_build_pressure_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_flip_build_pressure_plain_3d(sk_step *step, selkie_error *error);

/* Is the system still that of the balance (balance_dim.c)? Not if frozen bodies have joined it since, or if a target
 * expansion is in the place of the start. */
static inline int sk_flip_keeps_system(const sk_step *step)
{
    return step->modes == step->balanced_modes && !step->has_expansion;
}

/* Finds the vents for the next step, from the solution and the velocities of this one. */
selkie_code sk_flip_vent_2d(sk_step *step, selkie_error *error);
selkie_code sk_flip_vent_3d(sk_step *step, selkie_error *error);

/* Solves the system in the grid's fields into SK_FIELD_POTENTIAL. */
selkie_code sk_flip_solve_pressure_2d(sk_step *step, selkie_error *error);
selkie_code sk_flip_solve_pressure_3d(sk_step *step, selkie_error *error);

#endif

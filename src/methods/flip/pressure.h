/* What both forms of the pressure projection share. Private to flip/. */
#ifndef SK_METHODS_FLIP_PRESSURE_H
#define SK_METHODS_FLIP_PRESSURE_H

#include "methods/density_errors.h"
#include "methods/step.h"

/* Solves the system in the grid's fields into SK_FIELD_POTENTIAL. */
selkie_code sk_flip_solve_pressure_2d(sk_step *step, selkie_error *error);
selkie_code sk_flip_solve_pressure_3d(sk_step *step, selkie_error *error);

#endif

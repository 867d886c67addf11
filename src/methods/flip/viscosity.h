/* What both forms of the viscosity share. Private to flip/. */
#ifndef SK_METHODS_FLIP_VISCOSITY_H
#define SK_METHODS_FLIP_VISCOSITY_H

#include "methods/step.h"

/* Solves the system of one component in the grid's fields into SK_FIELD_POTENTIAL. */
selkie_code sk_flip_solve_viscosity_2d(sk_step *step, selkie_error *error);
selkie_code sk_flip_solve_viscosity_3d(sk_step *step, selkie_error *error);

#endif

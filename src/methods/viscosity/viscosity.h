/* Implicit viscosity with the full stress and a free surface. The method is a phase between forces and pressure. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_H
#define SK_METHODS_VISCOSITY_VISCOSITY_H

#include "methods/method.h"

extern const sk_method sk_method_viscosity;

selkie_code sk_viscosity_2d(sk_step *step, selkie_error *error);
selkie_code sk_viscosity_3d(sk_step *step, selkie_error *error);

#endif

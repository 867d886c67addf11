/* Implicit viscosity with the full stress and a free surface. The method is a phase between forces and pressure. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_H
#define SK_METHODS_VISCOSITY_VISCOSITY_H

#include "linalg/stress.h"
#include "methods/method.h"

/* Residual over right side that a solve must reach, and that does with a warning where rounding stops it before. */
#define SK_VISCOUS_TOLERANCE 1e-5
#define SK_VISCOUS_STALL 1e-4

enum { SK_VISCOUS_LAW_POINTS = 256 }; /* intervals of a table over temperature */

extern const sk_method sk_method_viscosity;

selkie_code sk_viscosity_2d(sk_step *step, selkie_error *error);
selkie_code sk_viscosity_3d(sk_step *step, selkie_error *error);

/* The end of a solve: fails if it did not converge, unless it stalled close to the tolerance. */
selkie_code sk_viscosity_report(sk_step *step, const sk_stress_report *report, selkie_error *error);

/* Logarithms of viscosity x `scale` of each material over the range of temperatures of the scene: the first temperature
 * (K), and one over their distance. Without `laws`, the range alone. */
void sk_viscosity_laws(const selkie_scene *scene, double scale, float (*laws)[SK_VISCOUS_LAW_POINTS + 1], float *lowest,
                       float *inverse);

/* Logarithm of viscosity x `scale`. A liquid without viscosity has a millionth of the largest one. */
float sk_viscosity_log(double viscosity, double largest, double scale);

#endif

/* Implicit density projection (Kugelstadt, Longva, Thuerey and Bender 2019).
 *
 * Right after the advection the density of the liquid is measured on the grid (Eq. 12). A Poisson solve with the
 * pressure's operator gives displacements that restore the rest density. Particles move, velocities stay (Eqs. 9-11
 * split in two). With q = dt^2 p2 / rho0 the second equation is  -lap q = clamp(rho*) / rho0 - 1,  dx = -grad q: it
 * contains neither the step nor the density.
 */
#ifndef SK_METHODS_IDP_IDP_H
#define SK_METHODS_IDP_IDP_H

#include "methods/method.h"

extern const sk_method sk_method_idp;

#define SK_IDP_PHASES(dim)                                                                                             \
    /* density of the particles at their current positions; the classification follows */                              \
    selkie_code sk_idp_density_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_idp_density_plain_##dim(sk_step *step, selkie_error *error);                                        \
    /* spreads the particles of overfull cells, solves, and moves the particles */                                     \
    selkie_code sk_idp_correct_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_idp_correct_plain_##dim(sk_step *step, selkie_error *error);                                        \
    /* the sort after a correction, unless another one follows at once */                                              \
    selkie_code sk_idp_sort_##dim(sk_step *step, selkie_error *error);                                                 \
    selkie_code sk_idp_sort_plain_##dim(sk_step *step, selkie_error *error);

SK_IDP_PHASES(2d)
SK_IDP_PHASES(3d)

#endif

/* Unilateral incompressibility (Gerszewski, "Physics-based animation of large-scale splashing liquids", chapter 3 of
 * the dissertation): liquid that does not compress but may come apart.
 *
 * A cell holds at most as much mass as its kernel has room outside the solids (Eq. 3.13), and pressure, which never
 * pulls, acts only where it is full: a linear complementarity problem in place of the Poisson equation. With density
 * over rest density, lengths in cells and the unknown q = p dt^2 / (rest density h^2), a row is
 *
 *     room - density' >= 0,  q >= 0,  one of them 0,     density' = predicted - sum over faces of V_f (q_i - q_j)
 *
 * where `predicted` is the density at the end of the step if nothing pushed, and V_f the room of the kernel around a
 * face. A face's velocity changes by (h / dt) V_f (q_low - q_i) over its density (Eq. 3.8): the momentum that the
 * particles around it take up is what the pressure gives, so momentum is conserved to round-off.
 *
 * A second problem of the same kind comes first: where particles are too dense already, it shifts their positions,
 * right before they move and without a change of velocity, or errors of density would come out as velocity.
 *
 * Where this leaves the source, and why: docs/decisions/0009-unilateral.md.
 */
#ifndef SK_METHODS_UIC_UIC_H
#define SK_METHODS_UIC_UIC_H

#include "methods/method.h"

extern const sk_method sk_method_uic;

/* In the order of a step. solids_now: obstacles where they are at the start of the step, for the correction of density.
 */
#define SK_UIC_PHASES(dim)                                                                                             \
    selkie_code sk_uic_solids_now_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_uic_correct_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_uic_correct_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_uic_predict_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_uic_predict_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_uic_pressure_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_uic_pressure_plain_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_uic_extrapolate_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_uic_shift_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_uic_extrapolate_plain_##dim(sk_step *step, selkie_error *error);                                    \
    selkie_code sk_uic_shift_plain_##dim(sk_step *step, selkie_error *error);

SK_UIC_PHASES(2d)
SK_UIC_PHASES(3d)

#endif

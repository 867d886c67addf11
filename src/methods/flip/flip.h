/* FLIP, PIC and APIC: the phases, in the order of a step. */
#ifndef SK_METHODS_FLIP_FLIP_H
#define SK_METHODS_FLIP_FLIP_H

#include "methods/method.h"

extern const sk_method sk_method_flip;

#define SK_FLIP_PHASES(dim)                                                                                            \
    selkie_code sk_flip_to_grid_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_flip_forces_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_flip_balance_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_flip_pressure_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_flip_pressure_plain_##dim(sk_step *step, selkie_error *error);                                      \
    selkie_code sk_flip_friction_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_flip_wall_layer_##dim(sk_step *step, selkie_error *error);                                          \
    /* A part of it: faces in the air beside the surface change like the liquid. */                                    \
    selkie_code sk_flip_move_shore_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_flip_extrapolate_##dim(sk_step *step, selkie_error *error);                                         \
    selkie_code sk_flip_to_particles_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_flip_advect_##dim(sk_step *step, selkie_error *error);                                              \
    /* Both of these in one pass: a block's particles move while they are still in the cache. */                       \
    selkie_code sk_flip_move_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_flip_to_grid_plain_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_flip_extrapolate_plain_##dim(sk_step *step, selkie_error *error);                                   \
    selkie_code sk_flip_to_particles_plain_##dim(sk_step *step, selkie_error *error);                                  \
    selkie_code sk_flip_advect_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_flip_move_plain_##dim(sk_step *step, selkie_error *error);

SK_FLIP_PHASES(2d)
SK_FLIP_PHASES(3d)

/* After a pressure solve, of any backend: the error of one that has not converged. */
selkie_code sk_flip_judge_pressure(const sk_step *step, selkie_error *error);

#endif

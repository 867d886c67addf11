/* Sorting and moving solids: what every method with particles begins its step with.
 *
 * sk_sort_particles_again and sk_move_solids also follow corrections of positions, in the lists of the methods that
 * correct them.
 */
#ifndef SK_METHODS_SORTING_H
#define SK_METHODS_SORTING_H

#include "methods/method.h"

extern const sk_method sk_method_sorting;

#define SK_SORTING_PHASES(dim)                                                                                         \
    selkie_code sk_sort_particles_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_sort_particles_again_##dim(sk_step *step, selkie_error *error);                                     \
    selkie_code sk_sort_particles_plain_##dim(sk_step *step, selkie_error *error); /* of both */                       \
    selkie_code sk_move_solids_##dim(sk_step *step, selkie_error *error);

SK_SORTING_PHASES(2d)
SK_SORTING_PHASES(3d)

#endif

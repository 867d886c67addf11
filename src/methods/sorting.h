/* Sorting particles and moving solids: the first phases of every method with particles.
 *
 * sk_sort_particles_again and sk_move_solids also follow corrections of positions. Methods with such corrections list
 * them again.
 */
#ifndef SK_METHODS_SORTING_H
#define SK_METHODS_SORTING_H

#include "methods/method.h"

extern const sk_method sk_method_sorting;

#define SK_SORTING_PHASES(dim)                                                                                         \
    selkie_code sk_sort_particles_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_sort_particles_again_##dim(sk_step *step, selkie_error *error);                                     \
    selkie_code sk_sort_particles_plain_##dim(sk_step *step, selkie_error *error); /* serves both phases */            \
    selkie_code sk_move_solids_##dim(sk_step *step, selkie_error *error);

SK_SORTING_PHASES(2d)
SK_SORTING_PHASES(3d)

#endif

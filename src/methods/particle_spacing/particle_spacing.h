/* Corrections of volume that push particles apart which are too close: two of the methods that implicit density
 * projection is compared with (Kugelstadt et al. 2019, Fig. 5). Positions change, velocities do not.
 *
 * The phases need particles in the order of their cells and solids that know the grid's blocks, and leave particles
 * beside their cells: both have to be brought up to date after them. */
#ifndef SK_METHODS_PARTICLE_SPACING_PARTICLE_SPACING_H
#define SK_METHODS_PARTICLE_SPACING_PARTICLE_SPACING_H

#include "methods/method.h"

extern const sk_method sk_method_ando, sk_method_sato;

/* Weak springs, explicit: Ando and Tsuruno 2011. */
selkie_code sk_spacing_ando_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_ando_3d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_ando_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_ando_plain_3d(sk_step *step, selkie_error *error);

/* Constraints of distance, position-based: Sato et al. 2018. */
selkie_code sk_spacing_sato_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_sato_3d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_sato_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_sato_plain_3d(sk_step *step, selkie_error *error);

#endif

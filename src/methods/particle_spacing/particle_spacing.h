/* Volume corrections that push close particles apart. Kugelstadt et al. 2019 (Fig. 5) compare implicit density
 * projection with these two methods. Positions change, velocities do not.
 *
 * The phases need sorted particles and solids on the current blocks. Afterwards particles may lie outside their cells:
 * sort them and update the solids again.
 */
#ifndef SK_METHODS_PARTICLE_SPACING_PARTICLE_SPACING_H
#define SK_METHODS_PARTICLE_SPACING_PARTICLE_SPACING_H

#include "methods/method.h"

extern const sk_method sk_method_ando, sk_method_sato;

/* Weak explicit springs: Ando and Tsuruno 2011. */
selkie_code sk_spacing_ando_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_ando_3d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_ando_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_ando_plain_3d(sk_step *step, selkie_error *error);

/* Position-based distance constraints: Sato et al. 2018. */
selkie_code sk_spacing_sato_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_sato_3d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_sato_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_spacing_sato_plain_3d(sk_step *step, selkie_error *error);

#endif

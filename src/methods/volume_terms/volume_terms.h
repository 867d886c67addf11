/* Corrections of volume that live in the pressure solve: the error of density as a divergence that the velocity shall
 * have. Two of the methods that implicit density projection is compared with (Kugelstadt et al. 2019, Fig. 5). Their
 * phase comes right before the pressure's. */
#ifndef SK_METHODS_VOLUME_TERMS_VOLUME_TERMS_H
#define SK_METHODS_VOLUME_TERMS_VOLUME_TERMS_H

#include "methods/method.h"

extern const sk_method sk_method_eq8, sk_method_losasso;

/* The whole error within one step: Eq. 8 of Kugelstadt et al. 2019. */
selkie_code sk_volume_eq8_2d(sk_step *step, selkie_error *error);
selkie_code sk_volume_eq8_3d(sk_step *step, selkie_error *error);
selkie_code sk_volume_eq8_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_volume_eq8_plain_3d(sk_step *step, selkie_error *error);

/* The error spread over losasso.averaging_time: Losasso et al. 2008. */
selkie_code sk_volume_losasso_2d(sk_step *step, selkie_error *error);
selkie_code sk_volume_losasso_3d(sk_step *step, selkie_error *error);
selkie_code sk_volume_losasso_plain_2d(sk_step *step, selkie_error *error);
selkie_code sk_volume_losasso_plain_3d(sk_step *step, selkie_error *error);

#endif

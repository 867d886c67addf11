/* The density error of one cell as a divergence; volume_terms_dim.c has the derivation. */
#ifndef SK_METHODS_VOLUME_TERMS_VOLUME_KERNELS_H
#define SK_METHODS_VOLUME_TERMS_VOLUME_KERNELS_H

#include "base/kernel.h"

/* The flux (m/s) out of a liquid cell that corrects its density at the speed `rate` (m/s). `excess` is the density over
 * rest density minus 1. Beside air a negative excess counts as 0. */
SK_KERNEL float sk_volume_expansion(float excess, int beside_air, float rate)
{
    return excess < 0.0f && beside_air ? 0.0f : rate * excess;
}

#endif

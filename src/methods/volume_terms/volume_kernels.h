/* The error of density of one cell as a divergence: volume_terms_dim.c says why. */
#ifndef SK_METHODS_VOLUME_TERMS_VOLUME_KERNELS_H
#define SK_METHODS_VOLUME_TERMS_VOLUME_KERNELS_H

#include "base/kernel.h"

/* The flux (m/s) out of a liquid cell that corrects its density at the speed `rate` (m/s). `excess` is the density over
 * rest density minus 1; beside air a lack of it is none. */
SK_KERNEL float sk_volume_expansion(float excess, int beside_air, float rate)
{
    return excess < 0.0f && beside_air ? 0.0f : rate * excess;
}

#endif

/* Implicit density projection for one cell and one face. idp_dim.c has the forms for rows of cells. */
#ifndef SK_METHODS_IDP_IDP_KERNELS_H
#define SK_METHODS_IDP_IDP_KERNELS_H

#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"

/* Bounds of a cell's error: density_min, density_max and evenness of the scene. */
typedef struct sk_idp_limits {
    float least, most, evenness;
} sk_idp_limits;

/* Density over rest density minus 1, bounded. Solids (`blurred`, their share of the kernel) count as liquid. Beside air
 * the kernel lacks particles, so only a positive error counts there. `filled` is the number of particles over the
 * number at rest; it may contribute away from solids. */
SK_KERNEL float sk_idp_density_error(float density, float blurred, float filled, int beside_air, sk_idp_limits limits)
{
    const float least = beside_air ? 1.0f : limits.least;
    float total = density + blurred;
    if (limits.evenness > 0.0f && blurred == 0.0f)
        total += limits.evenness * (filled - density);
    total = total < limits.most ? total : limits.most;
    return (total > least ? total : least) - 1.0f;
}

/* Density beyond the bound, which is missing from the right side, in 0.001 cells: integers, so that threads may add
 * them in any order. */
SK_KERNEL int64_t sk_idp_unseen(float total, float most)
{
    const float over = (total > most ? total - most : 0.0f) * 1e3f;
    return over < 1e12f ? (int64_t)over : 0;
}

/* Push through a closed face: the larger displacement of the solid cells beside it. */
SK_KERNEL float sk_idp_pushed_face(float below, float above)
{
    return __builtin_fabsf(above) > __builtin_fabsf(below) ? above : below;
}

/* Strength of the sharpening: see sharpened_descent in idp_dim.c. */
#define SK_IDP_SHARPNESS (SELKIE_DIM == 2 ? 2.0f / 3.0f : 1.5f)

/* A displacement sharpened against the interpolation to particles: minus a multiple of the second differences across.
 * `own` is the difference of the potential at the face, `beside` the differences at the open faces across. */
SK_KERNEL float sk_idp_sharpened(float descent, float own, const float *beside, int count)
{
    float across = 0.0f;
    for (int n = 0; n < count; n++)
        across += beside[n] - own;
    return descent - 0.25f * SK_IDP_SHARPNESS * across;
}

/* The displacement of a face, cells; NaN = unknown. It is 0 at a closed face of the liquid, unless the solid behind
 * pushes (0 = no push). */
SK_KERNEL float sk_idp_displacement(float descent, int beside_liquid, int closed, float push, float farthest)
{
    if (closed && push != 0.0f)
        return push;
    if (!beside_liquid)
        return __builtin_nanf("");
    if (closed)
        return 0.0f;
    descent = descent < farthest ? descent : farthest;
    return descent > -farthest ? descent : -farthest;
}

#endif

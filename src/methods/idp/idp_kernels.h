/* Implicit density projection for one cell and one face. The twins for rows of cells are in idp_dim.c. */
#ifndef SK_METHODS_IDP_IDP_KERNELS_H
#define SK_METHODS_IDP_IDP_KERNELS_H

#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"

/* What bounds the error of a cell: density_min, density_max and evenness of the scene. */
typedef struct sk_idp_limits {
    float least, most, evenness;
} sk_idp_limits;

/* Density over rest density minus 1, bounded. Solids (`blurred`, their share of the kernel) count as if they were
 * liquid; beside air the kernel lacks particles, so there only too much is an error. `filled` is the number of
 * particles over that at rest: where no solid is near, the numbers may count as well. */
SK_KERNEL float sk_idp_density_error(float density, float blurred, float filled, int beside_air, sk_idp_limits limits)
{
    const float least = beside_air ? 1.0f : limits.least;
    float total = density + blurred;
    if (limits.evenness > 0.0f && blurred == 0.0f)
        total += limits.evenness * (filled - density);
    total = total < limits.most ? total : limits.most;
    return (total > least ? total : least) - 1.0f;
}

/* Density beyond the bound, which the solve does not see, in thousandths of a cell: whole numbers, so that threads may
 * add them in any order. */
SK_KERNEL int64_t sk_idp_unseen(float total, float most)
{
    const float over = (total > most ? total - most : 0.0f) * 1e3f;
    return over < 1e12f ? (int64_t)over : 0;
}

/* What a closed face does: the displacement of the solid cell beside it that asks for more. */
SK_KERNEL float sk_idp_pushed_face(float below, float above)
{
    return __builtin_fabsf(above) > __builtin_fabsf(below) ? above : below;
}

/* How strongly displacements are lifted over those beside them: see sharpened_descent in idp_dim.c. */
#define SK_IDP_SHARPNESS (SELKIE_DIM == 2 ? 2.0f / 3.0f : 1.5f)

/* A displacement made good for what the particles will smooth away: minus a part of the second differences across.
 * `own` is the difference of the potential at the face, `beside` those at the faces across that count. */
SK_KERNEL float sk_idp_sharpened(float descent, float own, const float *beside, int count)
{
    float across = 0.0f;
    for (int n = 0; n < count; n++)
        across += beside[n] - own;
    return descent - 0.25f * SK_IDP_SHARPNESS * across;
}

/* The displacement of a face, cells; NaN = unknown. Nothing goes through a closed face of the liquid, unless the solid
 * behind it pushes (0 = it does not). */
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

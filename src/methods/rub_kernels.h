/* A velocity after friction along a surface; for faces of the grid and for particles of SPH. */
#ifndef SK_METHODS_RUB_KERNELS_H
#define SK_METHODS_RUB_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Component d of a velocity after friction. `relative` is the velocity over the surface, `area` points along its
 * normal. Friction takes at most `most` (m/s) of the tangential speed, and never more than all of it. */
SK_KERNEL float sk_rubbed_velocity(int d, float velocity, const float relative[3], const float area[3], float most)
{
    float length2 = 0.0f, through = 0.0f, tangential2 = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        length2 += area[e] * area[e];
        through += area[e] * relative[e];
    }
    if (!(length2 > 1e-6f))
        return velocity;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float along = relative[e] - through * area[e] / length2;
        tangential2 += along * along;
    }
    const float along = relative[d] - through * area[d] / length2, speed = __builtin_sqrtf(tangential2);
    return velocity - (speed > most ? most / speed : 1.0f) * along;
}

#endif

/* Elastoplastic points and liquid: one face, one node, one particle. */
#ifndef SK_METHODS_IMMERSED_KERNELS_H
#define SK_METHODS_IMMERSED_KERNELS_H

#include <math.h>

#include "base/kernel.h"

/* Velocity (m/s) and mass of the points at a face from those of the nodes below and above, along one axis. The
 * transpose gives a node the mean of the changes of its two faces, so that momentum is kept. */
SK_KERNEL float sk_immersed_face(float below, float below_mass, float above, float above_mass, float *mass)
{
    *mass = 0.5f * (below_mass + above_mass);
    return *mass > 0.0f ? 0.5f * (below_mass * below + above_mass * above) / *mass : 0.0f;
}

/* Share of an eased face that counts: none where liquid is near. */
SK_KERNEL float sk_immersed_ease(float share, float grains, float most)
{
    const float inside = share > 0.9f ? 10.0f * (share - 0.9f) : 0.0f;
    return most * grains * inside;
}

/* Liquid and points at a node. `normal` points into the points; velocities in m/s. If the liquid moves into the points,
 * both take a common velocity along the normal, and friction acts across it: momentum is kept. Returns whether they
 * meet. */
SK_KERNEL int sk_immersed_meet(int dimension, const float normal[3], float friction, const float mass[2],
                               float liquid[3], float points[3])
{
    float into = 0.0f, across[3] = {0.0f, 0.0f, 0.0f}, speed2 = 0.0f;
    for (int d = 0; d < dimension; d++)
        into += (liquid[d] - points[d]) * normal[d];
    if (!(into > 0.0f))
        return 0;
    for (int d = 0; d < dimension; d++) {
        across[d] = liquid[d] - points[d] - into * normal[d];
        speed2 += across[d] * across[d];
    }
    const float speed = sqrtf(speed2), lost = friction * into;
    const float stopped = speed > lost ? (speed > 0.0f ? lost / speed : 0.0f) : 1.0f;
    const float share = mass[1] / (mass[0] + mass[1]);
    for (int d = 0; d < dimension; d++) {
        const float change = into * normal[d] + stopped * across[d];
        liquid[d] -= share * change;
        points[d] += (1.0f - share) * change;
    }
    return 1;
}

#endif

/* Rigid bodies in the liquid, for one face, cell or contact. */
#ifndef SK_METHODS_RIGID_LIQUID_KERNELS_H
#define SK_METHODS_RIGID_LIQUID_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Modes of a body: translations, then rotations. */
#define SK_BODY_MODES (SELKIE_DIM == 3 ? 6 : 3)

/* Adds `share` times the velocity along axis d that each mode has at `arm` from the centre of mass. */
SK_KERNEL void sk_body_add_modes(int d, const double arm[3], float share, float modes[6])
{
    modes[d] += share;
#if SELKIE_DIM == 3
    const int e = (d + 1) % 3, f = (d + 2) % 3;
    modes[3 + e] += share * (float)arm[f];
    modes[3 + f] -= share * (float)arm[e];
#else
    modes[2] += share * (float)(d == 0 ? -arm[1] : arm[0]);
#endif
}

/* Velocity of a contact normal to the surface for a particle of velocity v, and its modes (n, r x n). Arms in m. */
SK_KERNEL void sk_body_contact_modes(const float normal[3], const double arm[3], double modes[6])
{
    const double n[3] = {(double)normal[0], (double)normal[1], SELKIE_DIM == 3 ? (double)normal[2] : 0.0};
    for (int d = 0; d < SELKIE_DIM; d++)
        modes[d] = n[d];
#if SELKIE_DIM == 3
    for (int d = 0; d < 3; d++)
        modes[3 + d] = arm[(d + 1) % 3] * n[(d + 2) % 3] - arm[(d + 2) % 3] * n[(d + 1) % 3];
#else
    modes[2] = arm[0] * n[1] - arm[1] * n[0];
#endif
}

#endif

/* Values around those that are known, and velocities behind solid surfaces, one face at a time. Compiled by the C
 * compiler and by nvcc. */
#ifndef SK_GRID_EXTRAPOLATE_KERNELS_H
#define SK_GRID_EXTRAPOLATE_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Mean of the known values among `count`, in their order; NaN if there are none. */
SK_KERNEL float sk_mean_of_known(const float *values, int count)
{
    float sum = 0.0f, known = 0.0f;
    for (int n = 0; n < count; n++)
        if (values[n] == values[n]) {
            sum += values[n];
            known += 1.0f;
        }
    return known > 0.0f ? sum / known : __builtin_nanf("");
}

/* Outward normal of the nearest solid at the lower face across axis d of a cell, from the distances (cells) of the
 * cell's own centre and of the centre below it along d: `own` and `below` hold the centre's distance and, along each
 * axis, those of the centres before and after it. Zero where the distances say nothing. */
SK_KERNEL void sk_normal_at_face(int d, const float own[1 + 2 * SELKIE_DIM], const float below[1 + 2 * SELKIE_DIM],
                                 float normal[3])
{
    float length2 = 0.0f;
    normal[2] = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const int before = 1 + 2 * e, after = 2 + 2 * e;
        normal[e] = e == d ? own[0] - below[0] : 0.25f * ((own[after] - own[before]) + (below[after] - below[before]));
        length2 += normal[e] * normal[e];
    }
    const float scale = length2 > 1e-12f && length2 < 1e12f ? 1.0f / __builtin_sqrtf(length2) : 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        normal[e] *= scale;
}

/* Component d of a velocity without the part that goes through a surface, `relative` to which the velocity is given. */
SK_KERNEL float sk_slip_velocity(int d, float velocity, const float relative[3], const float normal[3])
{
    float through = 0.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        through += normal[e] * relative[e];
    return velocity - through * normal[d];
}

#endif

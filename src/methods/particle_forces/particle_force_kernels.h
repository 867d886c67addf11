/* Velocity-dependent forces on one particle. */
#ifndef SK_METHODS_PARTICLE_FORCES_PARTICLE_FORCE_KERNELS_H
#define SK_METHODS_PARTICLE_FORCES_PARTICLE_FORCE_KERNELS_H

#include "base/kernel.h"

/* A sponge in a window of time: damping that grows quadratically towards a side of the domain. */
typedef struct sk_sponge {
    int axis;
    float edge;     /* m    where it begins */
    float inverse;  /* 1/m  one over the width; below 0 where the side is the low one */
    float strength; /*      rate at the side x time */
} sk_sponge;

/* The part of its velocity that a particle keeps. exp(-x) as 1 / (1 + x + x^2/2): it never reverses the motion. */
SK_KERNEL float sk_sponge_keep(const sk_sponge *sponge, const float x[3])
{
    const float depth = (x[sponge->axis] - sponge->edge) * sponge->inverse;
    const float q = depth < 0.0f ? 0.0f : depth > 1.0f ? 1.0f : depth, loss = sponge->strength * q * q;
    return 1.0f / (1.0f + loss + 0.5f * loss * loss);
}

/* Turns a vector by a matrix, row-major, and scales it. */
SK_KERNEL void sk_turn_and_scale(const float matrix[9], float keep, float v[3])
{
    const float x = v[0], y = v[1], z = v[2];
    for (int d = 0; d < 3; d++)
        v[d] = keep * (matrix[3 * d] * x + matrix[3 * d + 1] * y + matrix[3 * d + 2] * z);
}

#endif

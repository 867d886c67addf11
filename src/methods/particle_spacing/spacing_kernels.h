/* The push between two particles that are too close. */
#ifndef SK_METHODS_PARTICLE_SPACING_SPACING_KERNELS_H
#define SK_METHODS_PARTICLE_SPACING_SPACING_KERNELS_H

#include <math.h>
#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "base/random.h"

/* Displacement (m) of a particle by a neighbour at distance r < radius: a spring with displacement `strength` (m) at r
 * = 0 (Ando and Tsuruno 2011). */
SK_KERNEL float sk_spacing_spring(float strength, float radius, float r)
{
    return strength * (1.0f - r * r * (1.0f / (radius * radius)));
}

/* What a pair counts among the pairs of a particle: 1, and beyond the radius less and less. If it counted wholly or not
 * at all, rounding that moves it across the radius would change the push of all other pairs. */
#define SK_SPACING_EDGE 16.0f /* a pair counts up to a sixteenth beyond the radius */
SK_KERNEL float sk_spacing_weight(float radius, float r)
{
    return fmaxf(fminf(1.0f + SK_SPACING_EDGE * (1.0f - r / radius), 1.0f), 0.0f);
}

/* Half of the missing distance, divided by the larger number of pairs of the two (Sato et al. 2018). */
SK_KERNEL float sk_spacing_constraint(float pairs, float radius, float r)
{
    return 0.5f * (radius - r) / fmaxf(pairs, 1.0f);
}

/* Direction for two particles at the same place; opposite for the two. */
SK_KERNEL void SK_DIM(sk_spacing_direction)(uint32_t own, uint32_t other, float direction[3])
{
    uint64_t pair = own < other ? (uint64_t)own << 32 | other : (uint64_t)other << 32 | own;
    float sign = own < other ? 1.0f : -1.0f, angle = 6.2831853f * sk_random_float(11, pair, 0);
    float z = SELKIE_DIM == 3 ? 2.0f * sk_random_float(11, pair, 1) - 1.0f : 0.0f, across = sqrtf(1.0f - z * z);
    direction[0] = sign * across * cosf(angle);
    direction[1] = sign * across * sinf(angle);
    direction[2] = sign * z;
}

#endif

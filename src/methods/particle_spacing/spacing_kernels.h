/* Particles that push each other apart, for one pair. */
#ifndef SK_METHODS_PARTICLE_SPACING_SPACING_KERNELS_H
#define SK_METHODS_PARTICLE_SPACING_SPACING_KERNELS_H

#include <math.h>
#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "base/random.h"

/* m: displacement of a particle by a neighbour at distance r < radius. A spring of strength (m) at no length (Ando and
 * Tsuruno 2011). */
SK_KERNEL float sk_spacing_spring(float strength, float radius, float r)
{
    return strength * (1.0f - r * r * (1.0f / (radius * radius)));
}

/* Half of what the two lack, shared among the pairs of the busier one (Sato et al. 2018). */
SK_KERNEL float sk_spacing_constraint(float pairs, float radius, float r)
{
    return 0.5f * (radius - r) / fmaxf(pairs, 1.0f);
}

/* Two particles in one place part in a direction of their own, opposite for the two. */
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

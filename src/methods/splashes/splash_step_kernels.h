/* A particle's way to a splash, and a droplet in the air. */
#ifndef SK_METHODS_SPLASHES_SPLASH_STEP_KERNELS_H
#define SK_METHODS_SPLASHES_SPLASH_STEP_KERNELS_H

#include "base/kernel.h"
#include "base/random.h"

/* A threshold with an exponential distribution of mean 1. */
SK_KERNEL float sk_splash_threshold(uint64_t seed, uint32_t id, uint32_t draw)
{
    return -__builtin_logf(1.0f - sk_random_float(seed, id, 77u + draw));
}

/* Hazard of a step: -ln(1 - p) dt / duration, with p the probability within the duration. */
SK_KERNEL float sk_splash_step_hazard(float probability, float steps)
{
    return -__builtin_log1pf(-(probability < 0.999f ? probability : 0.999f)) * steps;
}

/* Velocity of a droplet after gravity (a change of velocity) and quadratic drag over dt. */
SK_KERNEL void sk_splash_accelerate(float velocity[3], const float gain[3], float drag, float dt)
{
    float square = 0.0f;
    for (int d = 0; d < 3; d++) {
        velocity[d] += gain[d];
        square += velocity[d] * velocity[d];
    }
    const float factor = 1.0f / (1.0f + drag * __builtin_sqrtf(square) * dt);
    for (int d = 0; d < 3; d++)
        velocity[d] *= factor;
}

#endif

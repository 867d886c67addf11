/* Which particles become droplets: what one cell and one particle have to do with it. */
#ifndef SK_METHODS_SPLASHES_SPLASH_FIND_KERNELS_H
#define SK_METHODS_SPLASHES_SPLASH_FIND_KERNELS_H

#include "learn/network_kernels.h"
#include "methods/splashes/splash_step_kernels.h"

/* What a look at a cell depends on, beside the flow. */
typedef struct sk_splash_looks {
    uint64_t seed;
    uint64_t step;        /* its number */
    float part;           /* of the model's duration that a look stands for */
    float rate;           /* factor of the hazards */
    float threshold;      /* of the probability of balanced classes */
    float calibration[2]; /* of the logits */
    int mean_velocity;    /* nothing is random in the change of velocity */
} sk_splash_looks;

/* Velocity at the centre of a cell from its lower and upper face, as far as these are known (NaN = not known). */
SK_KERNEL float sk_splash_centre(float lower, float upper)
{
    const float low = lower == lower ? lower : upper, mean = 0.5f * (low + (upper == upper ? upper : low));
    return mean == mean ? mean : 0.0f;
}

/* The centre of a cell, at most the lower of the two that a particle at a place (cells, from the first centre of the
 * block) lies between along an axis; `count` cells of a block. */
SK_KERNEL int sk_splash_lower(float at, int count, float *fraction)
{
    float low = __builtin_floorf(at);
    low = low < -1.0f ? -1.0f : low > (float)(count - 1) ? (float)(count - 1) : low;
    const float above = at - low;
    *fraction = above < 0.0f ? 0.0f : above > 1.0f ? 1.0f : above;
    return (int)low;
}

/* The fill as far as it counts as liquid, 0 in solids. */
SK_KERNEL float sk_splash_wet(float fill)
{
    return fill < 0.0f ? 0.0f : fill > 1.0f ? 1.0f : fill;
}

/* Of the particles of a cell, `count` of them, the number of the one that stands for all. The draw depends on the place
 * of the cell, local index and coordinates of its block, and on the step alone. */
SK_KERNEL int sk_splash_drawn(const sk_splash_looks *looks, int cell, const int *coordinates, int dimension, int count)
{
    uint64_t place = (uint64_t)cell;
    for (int d = 0; d < dimension; d++)
        place = place << 16 | (uint64_t)(uint16_t)coordinates[d];
    const float random = sk_random_float(looks->seed, place, 0x5b1a0000u + looks->step);
    const int drawn = (int)(random * (float)count);
    return drawn < count ? drawn : count - 1;
}

/* Does the hazard of a particle that stands for `share` of them pass its threshold? What is left of an exponential
 * threshold has the same distribution again, so each look draws a new one, and particles need not carry it. */
SK_KERNEL int sk_splash_passes(const sk_splash_looks *looks, uint32_t id, float logit, float share)
{
    const float p = sk_learn_calibrated(looks->calibration, logit);
    if (sk_learn_sigmoid(logit) < looks->threshold) /* of balanced classes, as in the paper */
        return 0;
    return share * looks->rate * sk_splash_step_hazard(p, looks->part) >=
           sk_splash_threshold(looks->seed, id, (uint32_t)looks->step);
}

/* Eq. 7 of Um et al. 2018 over windows of the duration, with the probabilities of balanced classes. `state` holds the
 * sum and the part of the window that is over. */
SK_KERNEL int sk_splash_passes_window(const sk_splash_looks *looks, float logit, float state[2])
{
    state[0] += (2.0f * sk_learn_sigmoid(logit) - 1.0f) * __builtin_sqrtf(looks->part);
    state[1] += looks->part;
    if (state[1] < 1.0f - 1e-6f)
        return 0;
    const int splash = state[0] > 0.0f;
    state[0] = state[1] = 0.0f;
    return splash;
}

/* Has a block of cells its turn in a step? Blocks beside each other have theirs in different ones. */
SK_KERNEL int sk_splash_has_turn(int64_t step, const int *coordinates, int dimension, int every)
{
    int turn = (int)(step % every);
    for (int d = 0; d < dimension; d++)
        turn += coordinates[d] & 3;
    return turn % every == 0;
}

/* Is a feature beyond those of training, of which `largest` is the largest? */
SK_KERNEL int sk_splash_is_beyond(float feature, float largest)
{
    return __builtin_fabsf(feature) > 2.0f * largest + 0.1f;
}

/* The random number of the change of velocity along axis d of the stencil. */
SK_KERNEL float sk_splash_chance(const sk_splash_looks *looks, uint32_t id, int d)
{
    return looks->mean_velocity ? 0.5f : sk_random_float(looks->seed, id, 1000u + 3u * looks->step + (uint64_t)d);
}

#endif

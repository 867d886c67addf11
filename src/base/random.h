/* Counter-based random numbers: a value depends on the seed and a counter, not on earlier values, so that order and
 * threads do not matter. */
#ifndef SK_BASE_RANDOM_H
#define SK_BASE_RANDOM_H

#include <stdint.h>
#include "base/kernel.h"

/* splitmix64's finaliser (Steele, Lea and Flood 2014). */
SK_KERNEL uint64_t sk_hash64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* Uniform in [0, 1), 24 bits. */
SK_KERNEL float sk_random_float(uint64_t seed, uint64_t index, uint64_t channel)
{
    uint64_t bits = sk_hash64(sk_hash64(sk_hash64(seed) ^ index) ^ channel);
    return (float)(bits >> 40) * (1.0f / 16777216.0f);
}

#endif

/* Entries of the lists of neighbours, one at a time: how they are stored and read. sph_tile.h says why they look like
 * this and walks them many at a time. */
#ifndef SK_METHODS_SPH_SPH_LIST_KERNELS_H
#define SK_METHODS_SPH_SPH_LIST_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/kernel.h"

enum {
    SK_SPH_LINE_BYTES = 16,     /* the unit of sk_sph.first */
    SK_SPH_LEAN_LIMIT = 0x7c00, /* particles in a tile: from here on an index's bits would be an infinity */
    SK_SPH_ENTRIES = 4          /* a list is a multiple of these, filled up with gradients of zero */
};

/* Gradient w grad W times the particle spacing, in half precision; index of the neighbour in the tile. */
typedef struct sk_sph_lean_entry {
    uint16_t gradient[3], index;
} sk_sph_lean_entry;

typedef struct sk_sph_wide_entry {
    float gradient[3];
    uint32_t index;
} sk_sph_wide_entry;

typedef union sk_sph_bits {
    float value;
    uint32_t bits;
} sk_sph_bits;

/* Half precision (IEEE 754 binary16), rounded to nearest, ties to even. */
SK_KERNEL uint16_t sk_sph_half_from_float(float value)
{
    sk_sph_bits number;
    number.value = value;
    const uint32_t sign = number.bits >> 16 & 0x8000u, magnitude = number.bits & 0x7fffffffu;
    if (magnitude >= 0x47800000u) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14, multiples of 2^-24: adding 2^23 rounds to a whole number of them */
        number.bits = magnitude;
        number.value = number.value * 16777216.0f + 8388608.0f;
        return (uint16_t)(sign | (number.bits - 0x4b000000u));
    }
    return (uint16_t)(sign | (((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - (112u << 10)));
}

SK_KERNEL float sk_sph_float_from_half(uint16_t half)
{
    sk_sph_bits number;
    number.bits = (uint32_t)(half & 0x7fffu) << 13;
    number.value *= 5.192296858534827628530496329220096e33f; /* 2^112: the difference of the exponents' offsets */
    number.bits |= (uint32_t)(half & 0x8000u) << 16;
    return number.value;
}

/* Lines that a list of `count` neighbours takes. */
SK_KERNEL uint32_t sk_sph_list_lines(uint32_t count, int wide)
{
    const uint32_t entries = (count + SK_SPH_ENTRIES - 1) / SK_SPH_ENTRIES * SK_SPH_ENTRIES;
    return entries * (uint32_t)(wide ? sizeof(sk_sph_wide_entry) : sizeof(sk_sph_lean_entry)) / SK_SPH_LINE_BYTES;
}

/* Entry k of a list. The gradient becomes what a reader will see. */
SK_KERNEL void sk_sph_write_entry(void *list, int wide, uint32_t k, float gradient[3], uint32_t index)
{
    if (wide) {
        sk_sph_wide_entry *entry = (sk_sph_wide_entry *)list + k;
        for (int d = 0; d < 3; d++)
            entry->gradient[d] = gradient[d];
        entry->index = index;
        return;
    }
    sk_sph_lean_entry *entry = (sk_sph_lean_entry *)list + k;
    for (int d = 0; d < 3; d++) {
        entry->gradient[d] = sk_sph_half_from_float(gradient[d]);
        gradient[d] = sk_sph_float_from_half(entry->gradient[d]);
    }
    entry->index = (uint16_t)index;
}

/* Returns the index. */
SK_KERNEL uint32_t sk_sph_read_entry(const void *list, int wide, uint32_t k, float gradient[3])
{
    if (wide) {
        const sk_sph_wide_entry *entry = (const sk_sph_wide_entry *)list + k;
        for (int d = 0; d < 3; d++)
            gradient[d] = entry->gradient[d];
        return entry->index;
    }
    const sk_sph_lean_entry *entry = (const sk_sph_lean_entry *)list + k;
    for (int d = 0; d < 3; d++)
        gradient[d] = sk_sph_float_from_half(entry->gradient[d]);
    return entry->index;
}

#endif

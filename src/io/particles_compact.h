/* The layout of compact particle files (.skp), shared by their writer and their reader.
 *
 * All numbers are little endian. A file is a header, a table of sizes and the data.
 *
 * - Header: "SELKIEP1"; codec, dimension, attributes (u32 each), particles (i64); time (s), radius (m), quantum (m) and
 *   origin (m, three numbers), each a double; the lowest cell (three i64); for each attribute its name (32 bytes), type
 *   and components (u32 each).
 * - Table: for each chunk of 65,536 particles the bytes of each plane (u32) and a CRC-32 of the chunk's data; at its
 *   end a CRC-32 of header and table.
 * - Data: the planes, chunk by chunk.
 *
 * A plane is one byte of each particle of a chunk. Bytes of the same kind lie together and compress well. A plane whose
 * size is the number of particles is stored as it is. The planes of a chunk:
 *
 * - Cells, four for each axis: the coordinate in cells of 1024 quanta, less the lowest cell, as the difference to the
 *   particle before (u32, zigzag).
 * - Fractions, one for each axis: the lower 8 of the 10 bits within the cell. One more has the upper two bits of all
 *   axes.
 * - Velocity, two for each axis: a half-precision float as an ordered integer, as the difference to the particle before
 *   (u16, zigzag).
 * - Id, four; each component of a further attribute, four.
 *
 * Positions are in the axes of the scene, relative to the origin, to the nearest quantum: 1/1024 of a grid cell. The
 * error is half of that. Velocities have a relative error of at most 2^-11 above 6e-5 m/s, and end at 65,504 m/s.
 */
#ifndef SK_IO_PARTICLES_COMPACT_H
#define SK_IO_PARTICLES_COMPACT_H

#include <stdint.h>
#include <string.h>

#define SK_COMPACT_MAGIC "SELKIEP1"
enum {
    SK_COMPACT_CHUNK = 65536,
    SK_COMPACT_NAME = 32,
    SK_COMPACT_FIXED = 8 + 4 * 3 + 8 + 8 * 6 + 8 * 3, /* bytes of the header before the attributes */
    SK_COMPACT_ATTRIBUTE = SK_COMPACT_NAME + 8,
    SK_COMPACT_FRACTION_BITS = 10,
    SK_COMPACT_PARTS = 1 << SK_COMPACT_FRACTION_BITS /* of a cell */
};
typedef enum sk_compact_codec { SK_COMPACT_ZLIB = 1, SK_COMPACT_ZSTD = 2 } sk_compact_codec;

/* Planes before those of further attributes. */
static inline int sk_compact_own_planes(int dimension)
{
    return 4 * dimension + dimension + 1 + 2 * dimension + 4;
}

static inline uint32_t sk_zigzag32(uint32_t difference)
{
    return difference << 1 ^ (difference >> 31 ? 0xffffffffu : 0u);
}

static inline uint32_t sk_unzigzag32(uint32_t code)
{
    return code >> 1 ^ (code & 1 ? 0xffffffffu : 0u);
}

static inline uint16_t sk_zigzag16(uint16_t difference)
{
    return (uint16_t)((unsigned)difference << 1 ^ (difference >> 15 ? 0xffffu : 0u));
}

static inline uint16_t sk_unzigzag16(uint16_t code)
{
    return (uint16_t)((unsigned)code >> 1 ^ (code & 1 ? 0xffffu : 0u));
}

/* IEEE half precision, to nearest, ties to even; beyond the largest half: the largest. */
static inline uint16_t sk_half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x477fe000u) /* 65,504, infinities and what is not a number */
        return (uint16_t)(sign | 0x7bffu);
    if (magnitude < 0x38800000u) { /* below 2^-14: multiples of 2^-24 */
        float scaled;
        memcpy(&scaled, &magnitude, sizeof scaled);
        scaled = scaled * 0x1p24f + 0x1p23f; /* the addition rounds */
        uint32_t rounded;
        memcpy(&rounded, &scaled, sizeof rounded);
        return (uint16_t)(sign | (rounded & 0x7ffu));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u;
    return (uint16_t)(sign | rounded >> 13);
}

static inline float sk_float_from_half(uint16_t half)
{
    const uint32_t magnitude = half & 0x7fffu;
    float value;
    if (magnitude < 0x400u) {
        value = (float)magnitude * 0x1p-24f;
    } else {
        const uint32_t bits = (magnitude << 13) + 0x38000000u;
        memcpy(&value, &bits, sizeof value);
    }
    return half & 0x8000u ? -value : value;
}

/* Halves as integers in the order of their values, so that near velocities have small differences. */
static inline uint16_t sk_ordered_half(float value)
{
    const uint16_t half = sk_half_from_float(value);
    return (uint16_t)(half & 0x8000u ? 0x8000u - (half & 0x7fffu) : 0x8000u + half);
}

static inline float sk_value_of_ordered(uint16_t ordered)
{
    if (ordered >= 0x8000u)
        return sk_float_from_half((uint16_t)(ordered - 0x8000u));
    return -sk_float_from_half((uint16_t)(0x8000u - ordered > 0x7fffu ? 0x7fffu : 0x8000u - ordered));
}

#endif

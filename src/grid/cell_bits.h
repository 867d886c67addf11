/* A bit for each cell of a block, in words of 64 cells: a word is a plane of a block in 3D, four rows in 2D. A byte is
 * a run of eight cells. For files compiled per dimension. */
#ifndef SK_GRID_CELL_BITS_H
#define SK_GRID_CELL_BITS_H

#include <stdint.h>
#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid.h"

enum { SK_CELL_WORDS = SK_BLOCK_CELLS / 64 };

typedef struct sk_block_bits {
    uint64_t words[SK_CELL_WORDS];
} sk_block_bits;

/* Word w of a block's bits, each taken from the cell beside along axis d to one side (-1 or 1). */
SK_VECTOR uint64_t sk_bits_beside(const sk_grid *grid, const sk_block_bits *bits, int block, int w, const int d,
                                  const int side)
{
    enum { ROW = SK_BLOCK_N };
    const uint64_t lowest = SELKIE_DIM == 3 ? UINT64_C(0x0101010101010101) : UINT64_C(0x0001000100010001);
    const uint64_t own = bits[block].words[w];
    const sk_block_bits *next = &bits[grid->neighbours[block][SK_NEIGHBOURS / 2 + side * (d == 0   ? 1
                                                                                          : d == 1 ? 3
                                                                                                   : 9)]];
    if (d == 0)
        return side < 0 ? (own << 1 & ~lowest) | (next->words[w] >> (ROW - 1) & lowest)
                        : (own >> 1 & ~(lowest << (ROW - 1))) | (next->words[w] & lowest) << (ROW - 1);
    const int other = w + side, inside = other >= 0 && other < SK_CELL_WORDS;
    const uint64_t word = inside ? bits[block].words[other] : next->words[side < 0 ? SK_CELL_WORDS - 1 : 0];
    if (d == 2)
        return word;
    const uint64_t rows = SELKIE_DIM == 3 ? next->words[w] : word;
    return side < 0 ? own << ROW | rows >> (64 - ROW) : own >> ROW | rows << (64 - ROW);
}

/* Runs of a block with a bit in word w. */
SK_VECTOR uint64_t sk_runs_of_word(uint64_t word, int w)
{
    uint64_t any = word | word >> 4;
    any |= any >> 2;
    any = (any | any >> 1) & UINT64_C(0x0101010101010101);
    return (any * UINT64_C(0x0102040810204080) >> 56) << 8 * w; /* gathers the lowest bits of the bytes */
}

/* Word w of the bits of whole runs. */
SK_VECTOR uint64_t sk_word_of_runs(uint64_t runs, int w)
{
    const uint64_t one = (runs >> 8 * w & 0xff) * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return ((one + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101)) * 0xff;
}

/* The bits of run c. */
SK_VECTOR unsigned sk_bits_of_run(const sk_block_bits *bits, int c)
{
    return (unsigned)(bits->words[c / 64] >> (c % 64) & 0xff);
}

/* The same as a mask of lanes. */
SK_VECTOR i8 i8_from_bits(unsigned bits)
{
    return (i8_splat((int32_t)bits) & (i8){1, 2, 4, 8, 16, 32, 64, 128}) != 0;
}

/* sum + value in the lanes of some bits. */
SK_VECTOR f8 f8_add_chosen(f8 sum, f8 value, unsigned bits)
{
#if defined(__AVX512VL__)
    return (f8)_mm256_mask_add_ps((__m256)sum, (__mmask8)bits, (__m256)sum, (__m256)value);
#else
    return f8_select(i8_from_bits(bits), sum + value, sum);
#endif
}

#endif

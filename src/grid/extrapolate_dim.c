/* Known values are bits. A layer finds the unknown values beside known ones by shifts of words, and fills only these,
 * in place: values that the same layer fills are not known to it. The bits lie in the scratch fields. */
#include "grid/extrapolate.h"

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/beside.h"
#include "grid/cell_bits.h"
#include "grid/runs.h"

/* Bits of the blocks, of one field: values that are known before a layer and behind it, and those that it fills. */
typedef struct layer_bits {
    sk_block_bits *known, *later, *filled; /* [blocks] */
} layer_bits;

/* Bits take a small part of a scratch field. Its first block stands for absent ones and keeps its values. */
static layer_bits bits_in(float *scratch, int block_count, int layer)
{
    sk_block_bits *bits = (sk_block_bits *)(void *)(scratch + SK_BLOCK_CELLS);
    layer_bits l = {bits, bits + block_count, bits + 2 * (size_t)block_count};
    if (layer % 2) {
        l.known = l.later;
        l.later = bits;
    }
    return l;
}

static void find_known(const float *field, int block, sk_block_bits *known)
{
    const float *values = field + (size_t)block * SK_BLOCK_CELLS;
    for (int w = 0; w < SK_CELL_WORDS; w++) {
        uint64_t bits = 0;
#if SK_WIDE == 16
        for (int c = 0; c < 64; c += 16) {
            const __m512 value = _mm512_loadu_ps(values + 64 * w + c);
            bits |= (uint64_t)_mm512_cmp_ps_mask(value, value, _CMP_ORD_Q) << c;
        }
#else
        for (int c = 0; c < 64; c += 8) {
            const f8 value = f8_load(values + 64 * w + c);
            bits |= (uint64_t)i8_bits(value == value) << c;
        }
#endif
        known[block].words[w] = bits;
    }
}

/* The values that a layer fills in a block: unknown ones beside known ones. Blocks that are not filled keep theirs. */
static void choose_values(const sk_grid *grid, const layer_bits *l, int block, uint64_t wanted)
{
    for (int w = 0; w < SK_CELL_WORDS; w++) {
        const uint64_t known = l->known[block].words[w];
        uint64_t beside = 0;
        for (int d = 0; d < SELKIE_DIM && ~known; d++)
            beside |= sk_bits_beside(grid, l->known, block, w, d, -1) | sk_bits_beside(grid, l->known, block, w, d, 1);
        const uint64_t filled = beside & ~known & sk_word_of_runs(wanted, w);
        l->filled[block].words[w] = filled;
        l->later[block].words[w] = known | filled;
    }
}

/* Adds the known values on one side of run c. Sides without one are not read: most have none, and they may lie in other
 * blocks. */
SK_VECTOR f8 add_side(f8 sum, const sk_grid *grid, const float *field, int block, int c, const int d, const int side,
                      unsigned bits)
{
    if (!bits)
        return sum;
    if (d > 0 || bits & (side < 0 ? 1u : 0x80u))
        return f8_add_chosen(sum, sk_values_beside(grid, field, block, c, d, side), bits);
    const f8 own = f8_load(field + (size_t)block * SK_BLOCK_CELLS + (size_t)c);
    const f8 moved = side < 0 ? __builtin_shufflevector(own, own, 0, 0, 1, 2, 3, 4, 5, 6)
                              : __builtin_shufflevector(own, own, 1, 2, 3, 4, 5, 6, 7, 7);
    return f8_add_chosen(sum, moved, bits);
}

/* Means of the known neighbours of the chosen values in run c, in the order of the sides. */
SK_VECTOR void fill_run(const sk_grid *grid, float *field, int block, int c, unsigned filled, const unsigned bits[6],
                        f8 count)
{
    f8 sum = f8_splat(0.0f);
#pragma GCC unroll 3
    for (int d = 0; d < SELKIE_DIM; d++) {
        sum = add_side(sum, grid, field, block, c, d, -1, bits[2 * d]);
        sum = add_side(sum, grid, field, block, c, d, 1, bits[2 * d + 1]);
    }
    float *to = field + (size_t)block * SK_BLOCK_CELLS + (size_t)c;
    f8_store(to, f8_select(i8_from_bits(filled), sum / count, f8_load(to)));
}

/* Fills the chosen values of a block in field f of each group. */
static void fill_block(const sk_grid *grid, const sk_extrapolation *what, const layer_bits *l, int f, int block)
{
    const int groups = what->groups > 1 ? what->groups : 1;
    for (int w = 0; w < SK_CELL_WORDS; w++) {
        const uint64_t filled = l->filled[block].words[w];
        uint64_t beside[6];
        for (int side = 0; filled && side < 2 * SELKIE_DIM; side++)
            beside[side] = sk_bits_beside(grid, l->known, block, w, side / 2, side % 2 ? 1 : -1);
        SK_EACH_RUN(c, sk_runs_of_word(filled, 0))
        {
            unsigned bits[6];
            f8 count = f8_splat(0.0f);
            for (int side = 0; side < 2 * SELKIE_DIM; side++) {
                bits[side] = (unsigned)(beside[side] >> c & 0xff);
                count = f8_add_chosen(count, f8_splat(1.0f), bits[side]);
            }
            for (int g = 0; g < groups; g++)
                fill_run(grid, what->fields[g * what->field_count + f], block, 64 * w + c,
                         (unsigned)(filled >> c & 0xff), bits, count);
        }
    }
}

void SK_DIM(sk_extrapolate)(const sk_grid *grid, const sk_extrapolation *what)
{
    const int field_count = what->field_count, count = what->block_count, blocks = grid->block_count;
    if (count == 0)
        return;
#pragma omp parallel num_threads(what->threads)
    {
        /* Blocks that are not filled have the same known values before and behind each layer. */
#pragma omp for schedule(static)
        for (int b = 0; b < blocks; b++)
            for (int f = 0; f < field_count; f++) {
                const layer_bits l = bits_in(what->scratch[f], blocks, 0);
                find_known(what->fields[f], b, l.known);
                l.later[b] = l.known[b];
            }
        for (int layer = 0; layer < what->layers; layer++) {
#pragma omp for schedule(static)
            for (int w = 0; w < count; w++)
                for (int f = 0; f < field_count; f++) {
                    const layer_bits l = bits_in(what->scratch[f], blocks, layer);
                    choose_values(grid, &l, what->blocks[w],
                                  what->wanted ? what->wanted[what->blocks[w]] : SK_ALL_RUNS);
                }
                /* Blocks at the surface have far more values to fill than the others. */
#pragma omp for schedule(dynamic, 4)
            for (int w = 0; w < count; w++)
                for (int f = 0; f < field_count; f++) {
                    const layer_bits l = bits_in(what->scratch[f], blocks, layer);
                    fill_block(grid, what, &l, f, what->blocks[w]);
                }
        }
    }
}

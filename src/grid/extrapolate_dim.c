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

/* Where the values beside a run lie in a field, side by side: eight values, or for the sides along x the one value that
 * does not belong to the run. */
typedef struct run_sides {
    size_t own, beside[2 * SELKIE_DIM];
} run_sides;

SK_VECTOR run_sides find_sides(const sk_grid *grid, int block, int c)
{
    const int32_t *around = grid->neighbours[block] + SK_NEIGHBOURS / 2;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    run_sides at = {.own = base + (size_t)c};
#pragma GCC unroll 3
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int step = 1 << d * SK_BLOCK_LOG, way = d == 0 ? 1 : d == 1 ? 3 : 9, length = d == 0 ? 8 : 1;
        const int index = c >> d * SK_BLOCK_LOG & SK_BLOCK_MASK, last = SK_BLOCK_N - length;
        const size_t lower = (size_t)around[-way] * SK_BLOCK_CELLS, upper = (size_t)around[way] * SK_BLOCK_CELLS;
        at.beside[2 * d] = index > 0 ? at.own - (size_t)step : lower + (size_t)(c + SK_BLOCK_MASK * step);
        at.beside[2 * d + 1] = index < last ? at.own + (size_t)(step * length) : upper + (size_t)(c - last * step);
    }
    return at;
}

/* A run with values to fill. */
typedef struct filled_run {
    run_sides at;
    unsigned filled, known[2 * SELKIE_DIM]; /* its values to fill, and those with a known value on each side */
} filled_run;

/* Lists the runs of a block with values to fill in field f of each group, and prefetches what they read. */
SK_VECTOR int find_runs(const sk_grid *grid, const sk_extrapolation *what, int groups, const layer_bits *l, int f,
                        int block, filled_run *runs)
{
    int count = 0;
    for (int w = 0; w < SK_CELL_WORDS; w++) {
        const uint64_t filled = l->filled[block].words[w];
        uint64_t beside[2 * SELKIE_DIM];
        for (int side = 0; filled && side < 2 * SELKIE_DIM; side++)
            beside[side] = sk_bits_beside(grid, l->known, block, w, side / 2, side % 2 ? 1 : -1);
        SK_EACH_RUN(c, sk_runs_of_word(filled, 0))
        {
            filled_run *run = &runs[count++];
            run->at = find_sides(grid, block, 64 * w + c);
            run->filled = (unsigned)(filled >> c & 0xff);
            for (int side = 0; side < 2 * SELKIE_DIM; side++)
                run->known[side] = (unsigned)(beside[side] >> c & 0xff);
            for (int g = 0; g < groups; g++) {
                const float *field = what->fields[g * what->field_count + f];
                __builtin_prefetch(field + run->at.own, 1);
                for (int side = 0; side < 2 * SELKIE_DIM; side++)
                    __builtin_prefetch(field + run->at.beside[side]);
            }
        }
    }
    return count;
}

/* Means of the known neighbours of the chosen values in a run, in the order of the sides. All sides are read: which of
 * them have a known value is as good as random, and branches would be mispredicted. */
SK_VECTOR void fill_run(float *field, const filled_run *run, f8 count)
{
    const f8 own = f8_load(field + run->at.own);
    f8 sum = f8_splat(0.0f);
    sum = f8_add_chosen(sum, __builtin_shufflevector(own, own, 0, 0, 1, 2, 3, 4, 5, 6), run->known[0] & 0xfe);
    sum = f8_add_chosen(sum, f8_splat(field[run->at.beside[0]]), run->known[0] & 0x01);
    sum = f8_add_chosen(sum, __builtin_shufflevector(own, own, 1, 2, 3, 4, 5, 6, 7, 7), run->known[1] & 0x7f);
    sum = f8_add_chosen(sum, f8_splat(field[run->at.beside[1]]), run->known[1] & 0x80);
#pragma GCC unroll 4
    for (int side = 2; side < 2 * SELKIE_DIM; side++)
        sum = f8_add_chosen(sum, f8_load(field + run->at.beside[side]), run->known[side]);
    f8_store(field + run->at.own, f8_select(i8_from_bits(run->filled), sum / count, own));
}

/* Fills the chosen values of a block in field f of each group. */
static void fill_block(const sk_grid *grid, const sk_extrapolation *what, const layer_bits *l, int f, int block)
{
    const int groups = what->groups > 1 ? what->groups : 1;
    filled_run runs[SK_BLOCK_CELLS / 8];
    const int run_count = find_runs(grid, what, groups, l, f, block, runs);
    for (int i = 0; i < run_count; i++) {
        f8 count = f8_splat(0.0f);
        for (int side = 0; side < 2 * SELKIE_DIM; side++)
            count = f8_add_chosen(count, f8_splat(1.0f), runs[i].known[side]);
        for (int g = 0; g < groups; g++)
            fill_run(what->fields[g * what->field_count + f], &runs[i], count);
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

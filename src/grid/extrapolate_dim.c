#include "grid/extrapolate.h"

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/runs.h"

/* Runs of a block by the known values in them, over several fields. */
typedef struct known_runs {
    uint64_t any, first, last; /* runs with some known value; with a known first or last cell */
    uint64_t full;             /* runs in which all values of all fields are known */
} known_runs;

static known_runs find_known(float *const *fields, int field_count, int block)
{
    known_runs known = {0, 0, 0, SK_ALL_RUNS};
    for (int f = 0; f < field_count; f++) {
        const float *values = fields[f] + (size_t)block * SK_BLOCK_CELLS;
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            const f8 value = f8_load(values + c);
            const unsigned bits = i8_bits(value == value);
            known.any |= (uint64_t)(bits != 0) << (c / 8);
            known.first |= (uint64_t)(bits & 1) << (c / 8);
            known.last |= (uint64_t)(bits >> 7) << (c / 8);
            known.full &= ~((uint64_t)(bits != 0xff) << (c / 8));
        }
    }
    known.first &= SK_LOWER_RUNS;
    known.last &= SK_UPPER_RUNS;
    return known;
}

/* Eight values, shifted by one cell along axis d (y or z) to one side (-1 or 1). They lie in the block or in its
 * neighbour. */
static inline f8 values_beside(const sk_grid *grid, const float *field, int block, int c, const int d, const int side)
{
    const int step = 1 << d * SK_BLOCK_LOG, index = c >> d * SK_BLOCK_LOG & SK_BLOCK_MASK;
    if (side < 0 ? index > 0 : index < SK_BLOCK_MASK)
        return f8_load(field + (size_t)block * SK_BLOCK_CELLS + (size_t)(c + side * step));
    const int other = grid->neighbours[block][SK_NEIGHBOURS / 2 + side * (d == 1 ? 3 : 9)];
    return f8_load(field + (size_t)other * SK_BLOCK_CELLS + (size_t)(c - side * SK_BLOCK_MASK * step));
}

/* The value beside a run along x. */
static inline float value_beside(const sk_grid *grid, const float *field, int block, int c, const int side)
{
    const int index = c & SK_BLOCK_MASK;
    if (side < 0 ? index > 0 : index + 8 < SK_BLOCK_N)
        return field[(size_t)block * SK_BLOCK_CELLS + (size_t)(side < 0 ? c - 1 : c + 8)];
    const int other = grid->neighbours[block][SK_NEIGHBOURS / 2 + side], row = c - index;
    return field[(size_t)other * SK_BLOCK_CELLS + (size_t)(side < 0 ? row + SK_BLOCK_MASK : row)];
}

static inline void add_known(f8 value, f8 *sum, f8 *count)
{
    const i8 known = value == value;
    *sum += f8_select(known, value, f8_splat(0.0f));
    *count += f8_select(known, f8_splat(1.0f), f8_splat(0.0f));
}

/* Means of the known neighbours of the unknown values in some runs of a block; NaN if there are none. */
static void mean_block(const sk_grid *grid, const float *field, int block, uint64_t runs, float *result)
{
    SK_EACH_RUN(c, runs)
    {
        const f8 own = f8_load(field + (size_t)block * SK_BLOCK_CELLS + (size_t)c);
        const f8 left = f8_splat(value_beside(grid, field, block, c, -1));
        const f8 right = f8_splat(value_beside(grid, field, block, c, 1));
        f8 sum = f8_splat(0.0f), count = f8_splat(0.0f);
        add_known(__builtin_shufflevector(left, own, 0, 8, 9, 10, 11, 12, 13, 14), &sum, &count);
        add_known(__builtin_shufflevector(own, right, 1, 2, 3, 4, 5, 6, 7, 8), &sum, &count);
        for (int d = 1; d < SELKIE_DIM; d++) {
            add_known(values_beside(grid, field, block, c, d, -1), &sum, &count);
            add_known(values_beside(grid, field, block, c, d, 1), &sum, &count);
        }
        f8_store(result + c, f8_select(own == own, own, sum / count)); /* 0 / 0 gives the NaN of an unknown value */
    }
}

/* Copies the filled runs of a block back from the scratch. */
static void take_filled(float *const *fields, const sk_extrapolation *what, int block, uint64_t runs)
{
    for (int f = 0; f < what->field_count; f++) {
        float *field = fields[f] + (size_t)block * SK_BLOCK_CELLS;
        const float *filled = what->scratch[f] + (size_t)block * SK_BLOCK_CELLS;
        SK_EACH_RUN(c, runs)
        memcpy(field + c, filled + c, 8 * sizeof(float));
    }
}

void SK_DIM(sk_extrapolate)(const sk_grid *grid, const sk_extrapolation *what)
{
    float *const *fields = what->fields, *const *scratch = what->scratch;
    const int field_count = what->field_count, count = what->block_count, groups = what->groups > 1 ? what->groups : 1;
    const int32_t *blocks = what->blocks;
    const uint64_t *wanted = what->wanted;

    /* Runs over all fields together: with any known value, with all values known, and runs that a layer fills. */
    uint64_t *known = grid->runs[SK_RUNS_SCRATCH], *full = grid->runs[SK_RUNS_SCRATCH_2],
             *taken = grid->runs[SK_RUNS_SCRATCH_3];
    uint64_t *first = grid->runs[SK_RUNS_SCRATCH_4], *last = grid->runs[SK_RUNS_SCRATCH_5];
    const sk_run_masks masks = {known, first, last, grid->block_count};
    if (count == 0)
        return;
#pragma omp parallel num_threads(what->threads)
    {
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++) {
            const known_runs here = find_known(fields, field_count, b);
            known[b] = here.any;
            first[b] = here.first;
            last[b] = here.last;
            full[b] = here.full;
        }
        for (int layer = 0; layer < what->layers; layer++)
            for (int g = 0; g < groups; g++) {
                float *const *group = fields + g * field_count;
#pragma omp for schedule(static)
                for (int w = 0; w < count; w++) {
                    const int b = blocks[w];
                    if (g == 0)
                        taken[b] = sk_runs_around(grid, masks, b) & ~full[b] & (wanted ? wanted[b] : SK_ALL_RUNS);
                    for (int f = 0; taken[b] && f < field_count; f++)
                        mean_block(grid, group[f], b, taken[b], scratch[f] + (size_t)b * SK_BLOCK_CELLS);
                }
#pragma omp for schedule(static)
                for (int w = 0; w < count; w++) {
                    const int b = blocks[w];
                    take_filled(group, what, b, taken[b]);
                    if (g < groups - 1)
                        continue;
                    known[b] |= taken[b]; /* at least some of them */
                    first[b] |= taken[b] & SK_LOWER_RUNS;
                    last[b] |= taken[b] & SK_UPPER_RUNS;
                }
            }
    }
}

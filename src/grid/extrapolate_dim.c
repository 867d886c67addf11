#include "grid/extrapolate.h"

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/runs.h"

enum { N1 = SK_TILE_N(1) };

/* Runs of a block in which some values are known; `full` gets those in which all are. */
static uint64_t find_known(const float *field, int block, uint64_t *full)
{
    const float *values = field + (size_t)block * SK_BLOCK_CELLS;
    uint64_t known = 0;
    *full = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        f8 value = f8_load(values + c);
        unsigned bits = i8_bits(value == value);
        known |= (uint64_t)(bits != 0) << (c / 8);
        *full |= (uint64_t)(bits == 0xff) << (c / 8);
    }
    return known;
}

/* Means of the known neighbours of the unknown values in some runs of a block; NaN where there are none. */
static void mean_block(const sk_grid *grid, const float *field, int block, uint64_t runs, float *result)
{
    static const int step[3] = {1, N1, N1 * N1};
    float tile[SK_TILE_VALUES(1)];
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    sk_tile_load_rows(grid, field, block, &rows, tile);
    SK_EACH_RUN(c, runs) {
        int node = SK_TILE_ORIGIN(1) + (c & SK_BLOCK_MASK) + N1 * ((c >> SK_BLOCK_LOG & SK_BLOCK_MASK) + N1 * (c >> (2 * SK_BLOCK_LOG)));
        f8 own = f8_load(tile + node), sum = f8_splat(0.0f), count = f8_splat(0.0f);
        for (int d = 0; d < SELKIE_DIM; d++)
            for (int side = -1; side <= 1; side += 2) {
                f8 value = f8_load(tile + node + side * step[d]);
                i8 known = value == value;
                sum += f8_select(known, value, f8_splat(0.0f));
                count += f8_select(known, f8_splat(1.0f), f8_splat(0.0f));
            }
        f8_store(result + c, f8_select(own == own, own, sum / count)); /* 0 / 0 is the NaN we want */
    }
}

void SK_DIM(sk_extrapolate)(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                            const int32_t *blocks, int count, int layers, int threads)
{
    /* Of all fields together: runs in which any knows something, in which all know everything, and which a layer fills. */
    uint64_t *known = grid->runs[SK_RUNS_SCRATCH], *full = grid->runs[SK_RUNS_SCRATCH_2], *taken = grid->runs[SK_RUNS_SCRATCH_3];
    if (count == 0)
        return;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int b = 1; b < grid->block_count; b++) {
            known[b] = 0;
            full[b] = SK_ALL_RUNS;
            for (int f = 0; f < field_count; f++) {
                uint64_t complete;
                known[b] |= find_known(fields[f], b, &complete);
                full[b] &= complete;
            }
        }
        for (int layer = 0; layer < layers; layer++) {
#pragma omp for schedule(dynamic, 8)
            for (int w = 0; w < count; w++) {
                const int b = blocks[w];
                taken[b] = sk_runs_around(grid, known, grid->block_count, b) & ~full[b];
                for (int f = 0; taken[b] && f < field_count; f++)
                    mean_block(grid, fields[f], b, taken[b], scratch[f] + (size_t)b * SK_BLOCK_CELLS);
            }
#pragma omp for schedule(static)
            for (int w = 0; w < count; w++) {
                const int b = blocks[w];
                for (int f = 0; f < field_count; f++) {
                    float *field = fields[f] + (size_t)b * SK_BLOCK_CELLS;
                    const float *filled = scratch[f] + (size_t)b * SK_BLOCK_CELLS;
                    SK_EACH_RUN(c, taken[b])
                        memcpy(field + c, filled + c, 8 * sizeof(float));
                }
                known[b] |= taken[b];
            }
        }
    }
}

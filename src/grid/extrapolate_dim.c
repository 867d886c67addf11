#include "grid/extrapolate.h"

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/tile.h"

enum { N1 = SK_TILE_N(1) };

/* Means of the known neighbours of the unknown values of a block; NaN where there are none. */
static void mean_block(const sk_grid *grid, const float *field, int block, float *result)
{
    static const int step[3] = {1, N1, N1 * N1};
    float tile[SK_TILE_VALUES(1)];
    sk_tile_load(grid, field, block, 1, tile);
    for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
        int node = SK_TILE_ORIGIN(1) + (c & SK_BLOCK_MASK) + N1 * ((c >> SK_BLOCK_LOG & SK_BLOCK_MASK) + N1 * (c >> (2 * SK_BLOCK_LOG)));
        f8 own = f8_load(tile + node), sum = f8_splat(0.0f), count = f8_splat(0.0f);
        if (i8_any(own != own))
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

void SK_DIM(sk_extrapolate)(const sk_grid *grid, float *field, float *scratch, const int32_t *blocks, int count, int layers,
                            int threads)
{
    for (int layer = 0; layer < layers; layer++) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
        for (int w = 0; w < count; w++)
            mean_block(grid, field, blocks[w], scratch + (size_t)blocks[w] * SK_BLOCK_CELLS);
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int w = 0; w < count; w++)
            memcpy(field + (size_t)blocks[w] * SK_BLOCK_CELLS, scratch + (size_t)blocks[w] * SK_BLOCK_CELLS,
                   SK_BLOCK_CELLS * sizeof(float));
    }
}

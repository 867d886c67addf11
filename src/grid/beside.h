/* Values beside runs of eight cells, in the block of the run or in its neighbours. For files compiled per dimension. */
#ifndef SK_GRID_BESIDE_H
#define SK_GRID_BESIDE_H

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid.h"

/* The value beside a run along x. */
SK_VECTOR float sk_value_beside(const sk_grid *grid, const float *field, int block, int c, const int side)
{
    const int index = c & SK_BLOCK_MASK;
    if (side < 0 ? index > 0 : index + 8 < SK_BLOCK_N)
        return field[(size_t)block * SK_BLOCK_CELLS + (size_t)(side < 0 ? c - 1 : c + 8)];
    const int other = grid->neighbours[block][SK_NEIGHBOURS / 2 + side], row = c - index;
    return field[(size_t)other * SK_BLOCK_CELLS + (size_t)(side < 0 ? row + SK_BLOCK_MASK : row)];
}

/* The eight values of run c, shifted by one cell along axis d to one side (-1 or 1). */
SK_VECTOR f8 sk_values_beside(const sk_grid *grid, const float *field, int block, int c, const int d, const int side)
{
    const float *own = field + (size_t)block * SK_BLOCK_CELLS + (size_t)c;
    if (d == 0) {
        const f8 values = f8_load(own), next = f8_splat(sk_value_beside(grid, field, block, c, side));
        return side < 0 ? __builtin_shufflevector(next, values, 0, 8, 9, 10, 11, 12, 13, 14)
                        : __builtin_shufflevector(values, next, 1, 2, 3, 4, 5, 6, 7, 8);
    }
    const int step = 1 << d * SK_BLOCK_LOG, index = c >> d * SK_BLOCK_LOG & SK_BLOCK_MASK;
    if (side < 0 ? index > 0 : index < SK_BLOCK_MASK)
        return f8_load(own + side * step);
    const int other = grid->neighbours[block][SK_NEIGHBOURS / 2 + side * (d == 1 ? 3 : 9)];
    return f8_load(field + (size_t)other * SK_BLOCK_CELLS + (size_t)(c - side * SK_BLOCK_MASK * step));
}

#endif

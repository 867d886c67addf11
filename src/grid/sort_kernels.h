/* Where a particle belongs in the cell sort. Compiled by the C compiler and by nvcc. */
#ifndef SK_GRID_SORT_KERNELS_H
#define SK_GRID_SORT_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"

/* The place of a position's block in the table, and its cell in that block. Returns 0 where there is no place: outside
 * of the grid, or not a number. */
SK_KERNEL int sk_place_of_position(const float position[3], const float corner[3], float inverse_cell_size,
                                   const int blocks[3], unsigned *place, unsigned *cell)
{
    unsigned stride = 1;
    *place = *cell = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float coordinate = sk_cell_coordinate(position[d], corner[d], inverse_cell_size);
        if (!(coordinate >= 0.0f && coordinate < (float)(blocks[d] * SK_BLOCK_N)))
            return 0;
        const unsigned i = (unsigned)coordinate;
        *place += (i >> SK_BLOCK_LOG) * stride;
        *cell += (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        stride *= (unsigned)blocks[d];
    }
    return 1;
}

/* Does the kernel of a particle in a cell of a block, or the band of extrapolated velocities around it, reach neighbour
 * n of the 3^dim, x fastest? Both are one cell wide. */
SK_KERNEL int sk_cell_reaches(int cell, int n)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int along = cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK, side = n % 3;
        if ((side == 0 && along >= 2) || (side == 2 && along < SK_BLOCK_N - 2))
            return 0;
        n /= 3;
    }
    return 1;
}

#endif

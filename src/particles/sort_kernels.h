/* Block and cell of a particle for the cell sort. Compiled by the C compiler and by nvcc. */
#ifndef SK_PARTICLES_SORT_KERNELS_H
#define SK_PARTICLES_SORT_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"

/* The coordinates of a position's block, and its cell in that block. Returns 0 if the position is outside the grid or
 * NaN. */
SK_KERNEL int sk_place_of_position(const float position[3], const float corner[3], float inverse_cell_size,
                                   const int blocks[3], int block[3], unsigned *cell)
{
    block[0] = block[1] = block[2] = 0;
    *cell = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float coordinate = sk_cell_coordinate(position[d], corner[d], inverse_cell_size);
        if (!(coordinate >= 0.0f && coordinate < (float)(blocks[d] * SK_BLOCK_N)))
            return 0;
        const unsigned i = (unsigned)coordinate;
        block[d] = (int)(i >> SK_BLOCK_LOG);
        *cell += (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return 1;
}

/* Does a particle in this cell reach neighbour n of the 3^dim, x fastest? Its kernel and the band of extrapolated
 * velocities around it are each one cell wide. */
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

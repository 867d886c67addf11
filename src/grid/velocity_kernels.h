/* The staggered velocity field in its blocks at a place: what one particle reads. Compiled by the C compiler and by
 * nvcc. */
#ifndef SK_GRID_VELOCITY_KERNELS_H
#define SK_GRID_VELOCITY_KERNELS_H

#include "base/block_table_kernels.h"
#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/sampler_kernels.h"

/* The velocity field in its blocks. */
typedef struct sk_velocity_blocks {
    const float *component[3]; /* m/s  [slots][cells of a block], NaN where unknown */
    sk_block_table table;      /*      slot of each block, 0 = absent */
    int blocks[3];             /*      along each axis */
} sk_velocity_blocks;

enum { SK_PIECE_NODES = SELKIE_DIM == 3 ? 27 : 9 }; /* of a piece of three nodes along each axis */

/* The piece of three nodes along each axis that begins at cell `first` of the grid, fetched one by one. */
SK_KERNEL void sk_load_small_piece(const sk_velocity_blocks *field, const int first[3],
                                   float values[SELKIE_DIM][SK_PIECE_NODES], sk_velocity_piece *piece)
{
    for (int n = 0; n < SK_PIECE_NODES; n++) {
        const int cell[3] = {first[0] + n % 3, first[1] + n / 3 % 3, SELKIE_DIM == 3 ? first[2] + n / 9 : 0};
        int slot = 0, inside = 1, local = 0, block[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++) {
            inside &= cell[d] >= 0 && cell[d] < field->blocks[d] * SK_BLOCK_N;
            block[d] = cell[d] >> SK_BLOCK_LOG;
            local += (cell[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        if (inside)
            slot = sk_block_find(&field->table, sk_block_key(block[0], block[1], block[2]));
        for (int d = 0; d < SELKIE_DIM; d++)
            values[d][n] = field->component[d][(long)slot * SK_BLOCK_CELLS + local];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        piece->component[d] = values[d];
    piece->pitch = 3;
    piece->dimension = SELKIE_DIM;
}

/* Velocity (m/s) at a place in cells from the grid's corner; `fallback` where nothing is known. */
SK_KERNEL void sk_velocity_at(const sk_velocity_blocks *field, const float coordinate[3], const float fallback[3],
                              float velocity[3])
{
    int first[3] = {0, 0, 0}, near = 1;
    for (int d = 0; d < SELKIE_DIM; d++)
        near &= coordinate[d] > -2.0f && coordinate[d] < (float)(field->blocks[d] * SK_BLOCK_N + 2);
    if (!near) { /* off the grid, maybe farther than whole numbers go */
        for (int d = 0; d < SELKIE_DIM; d++)
            velocity[d] = fallback[d];
        return;
    }
    float in_piece[3] = {0.0f, 0.0f, 0.0f}, values[SELKIE_DIM][SK_PIECE_NODES];
    for (int d = 0; d < SELKIE_DIM; d++) {
        first[d] = (int)__builtin_floorf(coordinate[d]) - 1;
        in_piece[d] = coordinate[d] - (float)first[d];
    }
    sk_velocity_piece piece;
    sk_load_small_piece(field, first, values, &piece);
    sk_sample_velocity(&piece, in_piece, SELKIE_DIM, fallback, velocity);
}

#endif

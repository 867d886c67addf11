/* Blocks of a level as tiles (linalg_kernels.h), for the plain operations. Private to src/linalg.
 *
 * Fields stay in the split layout of split.h. The tuned operations need it, and shared code uses it. A plain operation
 * copies its input into tiles, in natural order and with a halo, and writes its result back.
 */
#ifndef SK_LINALG_TILE_H
#define SK_LINALG_TILE_H

#include "linalg/multigrid.h"

/* Loops over the cells (i, j, k) of a block. */
#define SK_EACH_CELL(i, j, k)                                                                                          \
    for (int k = 0; k < SK_PLANES; ++k)                                                                                \
        for (int j = 0; j < SK_BLOCK_N; ++j)                                                                           \
            for (int i = 0; i < SK_BLOCK_N; ++i)

/* Loops over the first child of each coarse cell of the block. */
#define SK_EACH_FIRST_CHILD(i, j, k)                                                                                   \
    for (int k = 0; k < SK_PLANES; k += 2)                                                                             \
        for (int j = 0; j < SK_BLOCK_N; j += 2)                                                                        \
            for (int i = 0; i < SK_BLOCK_N; i += 2)

SK_INLINE int sk_natural_index(int i, int j, int k)
{
    return i + SK_BLOCK_N * (j + SK_BLOCK_N * k);
}

/* The coarse cell of a first child, in the parent. */
SK_INLINE int sk_parent_index(const int origin[3], int i, int j, int k)
{
    return sk_split_index(origin[0] + i / 2, origin[1] + j / 2, origin[2] + k / 2);
}

/* The cells of a block without a halo. */
SK_INLINE void sk_tile_read_own(sk_tile *tile, const float *own)
{
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            const float *even = own + sk_split_index(0, j, k), *odd = own + sk_split_index(1, j, k);
            float *row = &tile->cell[sk_tile_index(0, j, k)];
            for (int i = 0; i < SK_ROW; ++i) {
                row[2 * i] = even[i];
                row[2 * i + 1] = odd[i];
            }
        }
}

/* The cells of a block of a caller's field, in natural order. */
SK_INLINE void sk_tile_read_natural(sk_tile *tile, const float *own)
{
    SK_EACH_CELL(i, j, k)
    tile->cell[sk_tile_index(i, j, k)] = own[sk_natural_index(i, j, k)];
}

/* The layer of a neighbouring block that touches this one at a side. `natural`: a caller's field. */
SK_INLINE void sk_tile_read_halo(sk_tile *tile, int side, const float *field, int natural)
{
    int low[3] = {0, 0, 0}, high[3] = {SK_BLOCK_N, SK_BLOCK_N, SK_PLANES}, axis = side / 2;
    low[axis] = side & 1 ? SK_BLOCK_N : -1;
    high[axis] = low[axis] + 1;
    for (int k = low[2]; k < high[2]; ++k)
        for (int j = low[1]; j < high[1]; ++j)
            for (int i = low[0]; i < high[0]; ++i) {
                int there[3] = {i & SK_BLOCK_MASK, j & SK_BLOCK_MASK, k & (SK_PLANES - 1)};
                tile->cell[sk_tile_index(i, j, k)] = field[natural ? sk_natural_index(there[0], there[1], there[2])
                                                                   : sk_split_index(there[0], there[1], there[2])];
            }
}

/* The layer of the tile's own cells at the opposite side: the block is its own neighbour. */
SK_INLINE void sk_tile_wrap_halo(sk_tile *tile, int side)
{
    int low[3] = {0, 0, 0}, high[3] = {SK_BLOCK_N, SK_BLOCK_N, SK_PLANES}, axis = side / 2;
    low[axis] = side & 1 ? SK_BLOCK_N : -1;
    high[axis] = low[axis] + 1;
    for (int k = low[2]; k < high[2]; ++k)
        for (int j = low[1]; j < high[1]; ++j)
            for (int i = low[0]; i < high[0]; ++i)
                tile->cell[sk_tile_index(i, j, k)] =
                    tile->cell[sk_tile_index(i & SK_BLOCK_MASK, j & SK_BLOCK_MASK, k & (SK_PLANES - 1))];
}

/* A block with its halo. */
SK_INLINE void sk_tile_read(sk_tile *tile, const sk_around *around)
{
    sk_tile_read_own(tile, around->own);
    for (int side = 0; side < SK_SIDES; ++side)
        sk_tile_read_halo(tile, side, around->side[side], 0);
}

SK_INLINE void sk_tile_read_field(sk_tile *tile, const sk_level *level, const float *field, int block)
{
    sk_around around;
    sk_look_around(level, field, block, &around);
    sk_tile_read(tile, &around);
}

/* Lower faces of the block's cells and, from the blocks on the upper sides, the upper faces of its last cells. */
SK_INLINE void sk_tile_read_faces(sk_tile face[SELKIE_DIM], const sk_level *level, int block)
{
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int upper = 2 * axis + 1;
        sk_tile_read_own(&face[axis], sk_slot_array(level, block, axis));
        sk_tile_read_halo(&face[axis], upper, sk_slot_array(level, level->neighbour[block][upper], axis), 0);
    }
}

SK_INLINE void sk_tile_write(const sk_tile *tile, float *own)
{
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            float *even = own + sk_split_index(0, j, k), *odd = own + sk_split_index(1, j, k);
            const float *row = &tile->cell[sk_tile_index(0, j, k)];
            for (int i = 0; i < SK_ROW; ++i) {
                even[i] = row[2 * i];
                odd[i] = row[2 * i + 1];
            }
        }
}

#endif

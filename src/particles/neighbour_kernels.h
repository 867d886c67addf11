/* The points of one cell, and the distance of one pair. */
#ifndef SK_PARTICLES_NEIGHBOUR_KERNELS_H
#define SK_PARTICLES_NEIGHBOUR_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/wrap_kernels.h"
#include "particles/cell_index_kernels.h"

/* Slot of the block at these block coordinates; 0 if it has no points. */
SK_KERNEL int SK_DIM(sk_slot_at)(const sk_cell_index *index, const int block[3])
{
    int at[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        at[d] = index->periodic >> d & 1 ? sk_wrap_index(block[d], index->blocks[d]) : block[d];
        if (at[d] < 0 || at[d] >= index->blocks[d])
            return 0;
    }
    int slot = sk_block_find(&index->table, sk_block_key(at[0], at[1], at[2]));
    return slot <= index->block_count ? slot : 0;
}

/* The points of the cell at these coordinates; an empty range outside the grid. */
SK_KERNEL sk_cell_range SK_DIM(sk_points_of_cell)(const sk_cell_index *index, const int cell[3])
{
    sk_cell_range range = {0, 0};
    int block[3] = {0, 0, 0};
    size_t local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        block[d] = cell[d] >> SK_BLOCK_LOG;
        local += (size_t)(cell[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    int slot = SK_DIM(sk_slot_at)(index, block);
    if (slot > 0) {
        const uint32_t *start = index->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + local;
        range.from = start[0];
        range.to = start[1];
    }
    return range;
}

/* The ranges of points in the cells within `reach` of a cell that are not empty, x fastest. Returns their number. */
SK_KERNEL int SK_DIM(sk_ranges_around)(const sk_cell_index *index, const int cell[3], int reach, sk_cell_range *ranges)
{
    const int deep = SELKIE_DIM == 3 ? reach : 0;
    int count = 0;
    for (int z = -deep; z <= deep; z++)
        for (int y = -reach; y <= reach; y++)
            for (int x = -reach; x <= reach; x++) {
                const int at[3] = {cell[0] + x, cell[1] + y, SELKIE_DIM == 3 ? cell[2] + z : 0};
                ranges[count] = SK_DIM(sk_points_of_cell)(index, at);
                count += ranges[count].to > ranges[count].from;
            }
    return count;
}

/* Returns the squared distance of two points, m2; `difference` gets a - b, m. */
SK_KERNEL float SK_DIM(sk_difference)(const float a[3], const float b[3], float difference[3])
{
    float squared = 0.0f;
    difference[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        difference[d] = a[d] - b[d];
        squared += difference[d] * difference[d];
    }
    return squared;
}

/* The same to the nearest image of b along periodic axes. */
SK_KERNEL float SK_DIM(sk_image_difference)(const sk_cell_index *index, const float a[3], const float b[3],
                                            float difference[3])
{
    float squared = SK_DIM(sk_difference)(a, b, difference);
    if (!index->periodic)
        return squared;
    squared = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (index->periodic >> d & 1)
            difference[d] = sk_wrap_difference(difference[d], index->period[d]);
        squared += difference[d] * difference[d];
    }
    return squared;
}

#endif

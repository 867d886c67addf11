/* The walls near the particles of a block: sheets of the domain's sides, and boundary particles by cell. For files
 * compiled per dimension. */
#ifndef SK_METHODS_SPH_NEAR_WALLS_H
#define SK_METHODS_SPH_NEAR_WALLS_H

#include "base/dimension.h"
#include "methods/sph/walls.h"
#include "particles/neighbour_kernels.h"

typedef struct near_walls {
    int side_count;
    const sk_sph_side *sides[6];
    int range_count; /* of boundary particles around the current cell */
    sk_cell_range ranges[SK_NEIGHBOURS];
} near_walls;

/* Are there boundary particles in the block or in a neighbour? */
SK_KERNEL int points_near_block(const sk_step *step, int block)
{
    const sk_sph_boundary *boundary = &step->sph->boundary;
    const int32_t *middle = step->grid.coordinates[block];
    for (int n = 0; boundary->count && n < SK_NEIGHBOURS; n++) {
        const int at[3] = {middle[0] + n % 3 - 1, middle[1] + n / 3 % 3 - 1,
                           SELKIE_DIM == 3 ? middle[2] + n / 9 - 1 : 0};
        if (SK_DIM(sk_slot_at)(&boundary->index, at))
            return 1;
    }
    return 0;
}

/* Finds the boundary particles of the cells around cell c of a block. */
SK_KERNEL void find_points_near_cell(const sk_step *step, int block, int c, near_walls *walls)
{
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        cell[d] = step->grid.coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
    walls->range_count = SK_DIM(sk_ranges_around)(&step->sph->boundary.index, cell, 1, walls->ranges);
}

#endif

/* Cell lookup for the plain forms of the phases: the block of a cell, and the cells around it.
 *
 * The tuned forms copy a block and its halo into a dense tile. The plain forms look up one cell at a time. For files
 * compiled per dimension. Loops over blocks begin at slot 1: slot 0 is the shared empty block.
 */
#ifndef SK_GRID_PLAIN_H
#define SK_GRID_PLAIN_H

#include <stddef.h>
#include "base/dimension.h"
#include "grid/grid.h"
#include "grid/solids.h"

/* A cell: the slot of its block and its index there. Slot 0 stands for every cell without a block. */
typedef struct sk_plain_cell {
    int slot, local;
} sk_plain_cell;

/* Place of a cell, or of its lower faces, in the grid's fields and kinds. */
SK_KERNEL size_t sk_plain_index(sk_plain_cell cell)
{
    return (size_t)cell.slot * SK_BLOCK_CELLS + (size_t)cell.local;
}

/* Likewise in the fields of the solids. */
SK_KERNEL size_t sk_plain_solid_index(const sk_solids *solids, sk_plain_cell cell)
{
    return (size_t)solids->block_slot[cell.slot] * SK_BLOCK_CELLS + (size_t)cell.local;
}

/* Index of a cell in its block along axis d. */
SK_KERNEL int sk_plain_along(int local, int d)
{
    return local >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK;
}

/* Coordinates of a cell in the grid (padding included); the third is 0 in 2D. */
SK_KERNEL void sk_plain_coordinates(const sk_grid *grid, sk_plain_cell cell, int coordinates[3])
{
    for (int d = 0; d < 3; d++)
        coordinates[d] =
            d < SELKIE_DIM ? grid->coordinates[cell.slot][d] * SK_BLOCK_N + sk_plain_along(cell.local, d) : 0;
}

/* The cell `offset` cells away, at most a block's width along each axis. */
SK_KERNEL sk_plain_cell sk_plain_beside(const sk_grid *grid, sk_plain_cell cell, const int offset[3])
{
    sk_plain_cell other = {0, 0};
    int neighbour = 0, stride = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = sk_plain_along(cell.local, d) + offset[d];
        const int side = at < 0 ? 0 : at < SK_BLOCK_N ? 1 : 2; /* the block below, the own block, the block above */
        neighbour += side * stride;
        stride *= 3;
        other.local |= (at & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    other.slot = grid->neighbours[cell.slot][neighbour];
    return other;
}

/* The next cell along axis d, on the lower (side -1) or the upper side (1). Only a cell at the border of its block asks
 * for the next block. */
SK_KERNEL sk_plain_cell sk_plain_next(const sk_grid *grid, sk_plain_cell cell, int d, int side)
{
    const int stride = 1 << (d * SK_BLOCK_LOG), upper = side > 0;
    const int leaves = sk_plain_along(cell.local, d) == (upper ? SK_BLOCK_N - 1 : 0);
    sk_plain_cell other = {cell.slot, cell.local + side * stride};
    if (leaves) {
        other.slot = grid->faces[cell.slot][2 * d + upper];
        other.local = cell.local - side * (SK_BLOCK_N - 1) * stride;
    }
    return other;
}

/* The cell with given coordinates in the grid; slot 0 if it has no block. */
SK_KERNEL sk_plain_cell sk_plain_find(const sk_grid *grid, const int coordinates[3])
{
    sk_plain_cell cell;
    cell.local = (int)sk_grid_find_cell(grid, coordinates, &cell.slot);
    return cell;
}

/* The particles [first, last) of a cell. Blocks without particles give an empty range. */
SK_KERNEL void sk_plain_particles(const sk_grid *grid, sk_plain_cell cell, uint32_t *first, uint32_t *last)
{
    *first = *last = 0;
    if (cell.slot < 1 || cell.slot > grid->particle_blocks)
        return;
    const uint32_t *start = grid->cell_start + (size_t)(cell.slot - 1) * SK_BLOCK_CELLS + cell.local;
    *first = start[0];
    *last = start[1];
}

/* Each cell of a block in turn. */
#define SK_PLAIN_EACH_CELL(cell, block)                                                                                \
    for (sk_plain_cell cell = {(block), 0}; cell.local < SK_BLOCK_CELLS; cell.local++)

#endif

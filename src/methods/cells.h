/* Index of a block's cells in a tile with a halo of one cell, and the faces on the domain's walls. For files compiled
 * per dimension. */
#ifndef SK_METHODS_CELLS_H
#define SK_METHODS_CELLS_H

#include <limits.h>

#include "base/dimension.h"
#include "grid/tile.h"
#include "methods/step.h"

enum { N1 = SK_TILE_N(1) };
static const int node_step[3] __attribute__((unused)) = {1, N1, N1 *N1};

static inline __attribute__((unused)) int node_of(int c)
{
    return SK_TILE_ORIGIN(1) + (c & SK_BLOCK_MASK) +
           N1 * ((c >> SK_BLOCK_LOG & SK_BLOCK_MASK) + N1 * (c >> (2 * SK_BLOCK_LOG)));
}

/* Is the lower face of cell c across axis d on a closed wall of the domain? */
static inline __attribute__((unused)) int on_wall(const sk_step *step, int block, int c, int d)
{
    const sk_grid *grid = &step->grid;
    int cell = grid->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) - grid->padding[d];
    return (cell == 0 && step->scene->domain.walls[2 * d] != SELKIE_WALL_OPEN) ||
           (cell == grid->cells[d] && step->scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN);
}

/* The local index along axis d at which the lower faces of a block's cells lie on a closed wall of the domain. Side 0
 * is the lower wall. The index may lie outside the block; INT_MIN if the side is open. */
static inline __attribute__((unused)) int wall_place(const sk_step *step, int block, int d, int side)
{
    const sk_grid *grid = &step->grid;
    if (step->scene->domain.walls[2 * d + side] == SELKIE_WALL_OPEN)
        return INT_MIN;
    return grid->padding[d] + (side ? grid->cells[d] : 0) - grid->coordinates[block][d] * SK_BLOCK_N;
}

/* The same if it lies in the block, else -1. */
static inline __attribute__((unused)) int wall_index(const sk_step *step, int block, int d, int side)
{
    const int at = wall_place(step, block, d, side);
    return at >= 0 && at < SK_BLOCK_N ? at : -1;
}

/* Cell number n of the cells with a given local index along axis d; there are SK_BLOCK_CELLS / SK_BLOCK_N. */
static inline __attribute__((unused)) int cell_of_plane(int d, int index, int n)
{
    const int low = n & ((1 << d * SK_BLOCK_LOG) - 1);
    return (n - low) << SK_BLOCK_LOG | index << d * SK_BLOCK_LOG | low;
}

#endif

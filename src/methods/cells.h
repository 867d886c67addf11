/* Where a block's cells stand in a tile with one cell around it, and which faces lie on the domain's walls. For files
 * compiled per dimension. */
#ifndef SK_METHODS_CELLS_H
#define SK_METHODS_CELLS_H

#include "base/dimension.h"
#include "grid/tile.h"
#include "methods/step.h"

enum { N1 = SK_TILE_N(1) };
static const int node_step[3] __attribute__((unused)) = {1, N1, N1 * N1};

static inline __attribute__((unused)) int node_of(int c)
{
    return SK_TILE_ORIGIN(1) + (c & SK_BLOCK_MASK) + N1 * ((c >> SK_BLOCK_LOG & SK_BLOCK_MASK) + N1 * (c >> (2 * SK_BLOCK_LOG)));
}

/* Is the lower face of cell c across axis d on a closed wall of the domain? */
static inline __attribute__((unused)) int on_wall(const sk_step *step, int block, int c, int d)
{
    const sk_grid *grid = &step->grid;
    int cell = grid->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) - grid->padding[d];
    return (cell == 0 && step->scene->domain.walls[2 * d] != SELKIE_WALL_OPEN) ||
           (cell == grid->cells[d] && step->scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN);
}

#endif

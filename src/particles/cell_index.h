/* The cells of the grid as a neighbour search sees them. */
#ifndef SK_PARTICLES_CELL_INDEX_H
#define SK_PARTICLES_CELL_INDEX_H

#include "grid/grid.h"
#include "particles/cell_index_kernels.h"

/* Valid until the next sort. */
static inline sk_cell_index sk_grid_cell_index(const sk_grid *grid)
{
    sk_cell_index index = {.blocks = {grid->blocks[0], grid->blocks[1], grid->blocks[2]},
                           .periodic = grid->periodic,
                           .period = {grid->period[0], grid->period[1], grid->period[2]},
                           .block_count = grid->particle_blocks,
                           .table = grid->table,
                           .coordinates = (const int32_t(*)[4])grid->coordinates,
                           .neighbours = (const int32_t(*)[SK_MAX_NEIGHBOURS])grid->neighbours,
                           .cell_start = grid->cell_start};
    return index;
}

#endif

/* Mirror images of single cells beside the domain's walls, for the plain forms with mirror walls. For files compiled
 * per dimension. */
#ifndef SK_METHODS_WALL_PLAIN_H
#define SK_METHODS_WALL_PLAIN_H

#include <limits.h>

#include "grid/plain.h"
#include "methods/step.h"
#include "methods/wall_kernels.h"

SK_KERNEL sk_flat_walls flat_walls_of(const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    sk_flat_walls walls;
    for (int d = 0; d < 3; d++) {
        const int low = grid->padding[d], high = grid->padding[d] + grid->cells[d];
        walls.low[d] = d < SELKIE_DIM && step->solids.walls[2 * d] != SELKIE_WALL_OPEN ? low : INT_MIN / 2;
        walls.high[d] = d < SELKIE_DIM && step->solids.walls[2 * d + 1] != SELKIE_WALL_OPEN ? high : INT_MAX / 2;
    }
    return walls;
}

/* Grid coordinates of the cell at `offset` from a cell; the block need not exist. */
SK_KERNEL void coordinates_beside(const sk_grid *grid, sk_plain_cell cell, const int offset[3], int at[3])
{
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] += offset[d];
}

/* The cell at `offset` from a cell and its images at the walls, in the order of sk_wall_fold. Faces across axis
 * `across` have no image along it (-1: cells). Returns the axes with images as bits. */
SK_KERNEL int find_wall_images(const sk_grid *grid, const sk_flat_walls *walls, sk_plain_cell cell, const int offset[3],
                               int across, sk_plain_cell images[1 << SELKIE_DIM])
{
    int at[3], step[3] = {0, 0, 0}, found = 0;
    coordinates_beside(grid, cell, offset, at);
    for (int d = 0; d < SELKIE_DIM; d++) {
        step[d] = d == across ? 0 : sk_wall_image(walls, d, at[d]);
        found |= (step[d] != 0) << d;
    }
    for (int n = 0; n < 1 << SELKIE_DIM; n++) {
        images[n] = cell;
        if (n & ~found)
            continue;
        int other[3] = {offset[0], offset[1], offset[2]};
        for (int d = 0; d < SELKIE_DIM; d++)
            other[d] += n >> d & 1 ? step[d] : 0;
        images[n] = sk_plain_beside(grid, cell, other);
    }
    return found;
}

/* A field of the grid at that cell, with the values behind walls added to those before them. */
SK_KERNEL float folded_value(const sk_grid *grid, const sk_flat_walls *walls, const float *field, sk_plain_cell cell,
                             const int offset[3], int across)
{
    sk_plain_cell images[1 << SELKIE_DIM];
    float values[1 << SELKIE_DIM];
    const int found = find_wall_images(grid, walls, cell, offset, across, images);
    for (int n = 0; n < 1 << SELKIE_DIM; n++)
        values[n] = (n & ~found) == 0 ? field[sk_plain_index(images[n])] : 0.0f;
    return sk_wall_fold(values, found);
}

#endif

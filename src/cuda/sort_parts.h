/* The first part of the cell sort, for every phase that moves particles. Private to src/cuda; for files compiled per
 * dimension. */
#ifndef SK_CUDA_SORT_PARTS_H
#define SK_CUDA_SORT_PARTS_H

#include "cuda/device.h"

extern "C" {
#include "grid/wrap_kernels.h"
#include "particles/sort_kernels.h"
}

static const uint32_t no_cell = UINT32_MAX; /* of dead particles and of particles outside the grid */

/* What the place of a particle depends on. */
typedef struct sorted_grid {
    float corner[3], inverse; /* m, 1/m */
    int blocks[3];
} sorted_grid;

SK_DEVICE sorted_grid grid_to_sort(const sk_grid *grid)
{
    const sorted_grid sorted = {{(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]},
                                (float)(1.0 / grid->cell_size),
                                {grid->blocks[0], grid->blocks[1], grid->blocks[2]}};
    return sorted;
}

/* Moves a position (m) that left through a joined side back into the domain: sk_grid_wrap. */
SK_DEVICE void wrap_position(const sk_grid *grid, float x[3])
{
    for (int d = 0; grid->periodic && d < SELKIE_DIM; d++)
        if (grid->periodic >> d & 1)
            x[d] = sk_wrap_position(x[d], (float)grid->low[d], grid->last[d], grid->period[d]);
}

/* The key of particle p at a position (m), and a mark at its place. */
SK_DEVICE void mark_place(const sorted_grid *grid, sk_cuda_data *data, uint32_t p, const float position[3], int dead)
{
    unsigned cell;
    int block[3];
    uint32_t key = no_cell;
    if (!dead && sk_place_of_position(position, grid->corner, grid->inverse, grid->blocks, block, &cell)) {
        const int place = block[0] + grid->blocks[0] * (block[1] + grid->blocks[1] * block[2]);
        key = (uint32_t)place * SK_BLOCK_CELLS + cell;
        if (!data->marked[place])
            data->marked[place] = 1;
    } else if (!dead) {
        atomicAdd((unsigned long long *)&data->results.lost, 1ull);
    }
    data->keys[p] = key;
}

/* The same for a particle of the block at `own_place`. Most particles stay in their block, which is marked once.
 * Returns whether this one stays. */
SK_DEVICE int find_key(const float corner[3], float inverse, const int blocks[3], sk_cuda_data *data, uint32_t p,
                       const float position[3], int gone, int own_place)
{
    uint32_t key = no_cell;
    unsigned cell;
    int block[3], place = -1;
    if (!gone && sk_place_of_position(position, corner, inverse, blocks, block, &cell)) {
        place = block[0] + blocks[0] * (block[1] + blocks[1] * block[2]);
        key = (uint32_t)place * SK_BLOCK_CELLS + cell;
        if (place != own_place && !data->marked[place])
            data->marked[place] = 1;
    } else if (!gone) {
        atomicAdd((unsigned long long *)&data->results.lost, 1ull);
    }
    data->keys[p] = key;
    return place == own_place;
}

#endif

/* The domain's flat walls as mirrors, for tiles of a block with a halo of one cell. For files compiled per dimension.
 */
#ifndef SK_METHODS_WALL_MIRROR_H
#define SK_METHODS_WALL_MIRROR_H

#include "methods/cells.h"

/* Local index of the plane of faces on each closed wall of the domain; -1000 if the wall does not reach the block or
 * its halo. */
typedef struct mirror_walls {
    int plane[SELKIE_DIM][2];
    int any;
} mirror_walls;

static inline __attribute__((unused)) void find_mirror_walls(const sk_step *step, int block, mirror_walls *walls)
{
    const sk_grid *grid = &step->grid;
    walls->any = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            int plane = grid->padding[d] + (side ? grid->cells[d] : 0) - grid->coordinates[block][d] * SK_BLOCK_N;
            int near = step->solids.walls[2 * d + side] != SELKIE_WALL_OPEN && plane >= -1 && plane <= SK_BLOCK_N + 1;
            walls->plane[d][side] = near ? plane : -1000;
            walls->any |= near;
        }
}

/* Node k of the layer of a tile (halo of one cell) with the coordinate `at` along an axis; the block begins at 0. */
enum { LAYER_NODES = SK_TILE_VALUES(1) / N1 };

static inline __attribute__((unused)) int layer_node(int d, int at, int k)
{
    return d == 0 ? at + 1 + N1 * k : d == 1 ? k % N1 + N1 * (at + 1 + N1 * (k / N1)) : k + N1 * N1 * (at + 1);
}

/* The layer of cells before a wall, as a coordinate in the tile, and the offset to the layer behind it; 0 if the tile
 * does not contain both. */
static inline __attribute__((unused)) int layers_at_wall(const mirror_walls *walls, int d, int side, int *before)
{
    *before = walls->plane[d][side] - side;
    int behind = *before + (side ? 1 : -1);
    if (*before < -1 || *before > SK_BLOCK_N || behind < -1 || behind > SK_BLOCK_N)
        return 0;
    return side ? node_step[d] : -node_step[d];
}

/* The domain's flat walls are mirrors: kernel contributions in the cells behind a wall count in the cells before it.
 * Adds the layer behind each wall to the layer before it and gives both the sum. For values on faces across axis
 * `across`, applies to the other axes only; -1 for cells. */
static inline __attribute__((unused)) void fold_at_walls(const mirror_walls *walls, int across, float *tile)
{
    for (int d = 0; walls->any && d < SELKIE_DIM; d++)
        for (int side = 0; side < 2 && d != across; side++) {
            int before, behind = layers_at_wall(walls, d, side, &before);
            for (int k = 0; behind && k < LAYER_NODES; k++) {
                int n = layer_node(d, before, k);
                tile[n] = tile[n + behind] = tile[n] + tile[n + behind];
            }
        }
}

/* Copies the layer before each wall into the layer behind it. */
static inline __attribute__((unused)) void mirror_at_walls(const mirror_walls *walls, float *tile)
{
    for (int d = 0; walls->any && d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            int before, behind = layers_at_wall(walls, d, side, &before);
            for (int k = 0; behind && k < LAYER_NODES; k++) {
                int n = layer_node(d, before, k);
                tile[n + behind] = tile[n];
            }
        }
}

/* Is a cell of the block behind a wall? */
static inline __attribute__((unused)) int behind_walls(const mirror_walls *walls, int c)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        int at = c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK;
        if (at < walls->plane[d][0] || (walls->plane[d][1] >= -1 && at >= walls->plane[d][1]))
            return 1;
    }
    return 0;
}

#endif

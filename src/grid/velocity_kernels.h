/* The staggered velocity field in its blocks at a place: what one particle reads. Compiled by the C compiler and by
 * nvcc. */
#ifndef SK_GRID_VELOCITY_KERNELS_H
#define SK_GRID_VELOCITY_KERNELS_H

#include "base/block_table_kernels.h"
#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/sampler_kernels.h"
#include "grid/wrap_kernels.h"

/* The velocity field in its blocks. */
typedef struct sk_velocity_blocks {
    const float *component[3]; /* m/s  [slots][cells of a block], NaN where unknown */
    sk_block_table table;      /*      slot of each block, 0 = absent */
    int blocks[3];             /*      along each axis */
    const int32_t *slots;      /*      [blocks] slot of each place, x fastest; NULL = search the table */
    int periodic;              /*      bit d: the sides across axis d are joined */
    const float *tile;         /*      [3][side^dimension] a copy of the cells from tile_first on; NULL = none */
    int tile_first[3];
} sk_velocity_blocks;

enum { SK_PIECE_NODES = SELKIE_DIM == 3 ? 27 : 9 }; /* of a piece of three nodes along each axis */

/* Cells along a side of a tile: a block and one layer around it, two, or four. A constant, so that a place in a tile is
 * a base and eight known offsets. */
typedef enum sk_tile_side {
    SK_NEAR_TILE = SK_BLOCK_N + 2,
    SK_FAR_TILE = SK_BLOCK_N + 4,
    SK_WIDE_TILE = SK_BLOCK_N + 8
} sk_tile_side;

/* Slot and index of a cell of the grid; slot 0 if it has no block. */
SK_KERNEL long sk_velocity_node(const sk_velocity_blocks *field, const int cell[3])
{
    int slot = 0, inside = 1, local = 0, block[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = field->periodic >> d & 1 ? sk_wrap_index(cell[d], field->blocks[d] * SK_BLOCK_N) : cell[d];
        inside &= at >= 0 && at < field->blocks[d] * SK_BLOCK_N;
        block[d] = at >> SK_BLOCK_LOG;
        local += (at & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    if (inside && field->slots)
        slot = field->slots[(long)block[0] + (long)field->blocks[0] * (block[1] + (long)field->blocks[1] * block[2])];
    else if (inside)
        slot = sk_block_find(&field->table, sk_block_key(block[0], block[1], block[2]));
    return (long)slot * SK_BLOCK_CELLS + local;
}

/* The piece of three nodes along each axis that begins at cell `first` of the grid, fetched one by one. */
SK_KERNEL void sk_load_small_piece(const sk_velocity_blocks *field, const int first[3],
                                   float values[SELKIE_DIM][SK_PIECE_NODES], sk_velocity_piece *piece)
{
    for (int n = 0; n < SK_PIECE_NODES; n++) {
        const int cell[3] = {first[0] + n % 3, first[1] + n / 3 % 3, SELKIE_DIM == 3 ? first[2] + n / 9 : 0};
        const long node = sk_velocity_node(field, cell);
        for (int d = 0; d < SELKIE_DIM; d++)
            values[d][n] = field->component[d][node];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        piece->component[d] = values[d];
    piece->pitch = 3;
    piece->dimension = SELKIE_DIM;
}

/* Trilinear in the place between eight nodes (four in 2D); NaN if one of them is unknown. */
SK_KERNEL float sk_velocity_between(const float q[SK_CORNERS], const float weight[3])
{
    float value = q[0] + weight[0] * (q[1] - q[0]);
    value += weight[1] * ((q[2] + weight[0] * (q[3] - q[2])) - value);
#if SELKIE_DIM == 3
    float far = q[4] + weight[0] * (q[5] - q[4]);
    far += weight[1] * ((q[6] + weight[0] * (q[7] - q[6])) - far);
    value = value + weight[2] * (far - value);
#endif
    return value;
}

/* Trilinear from the known nodes alone; `fallback` if none is known. It is called: few places need it, and its
 * registers would halve the threads of a kernel that fit on a multiprocessor. */
SK_KERNEL_CALLED float sk_velocity_of_known(float q0, float q1, float q2, float q3, float q4, float q5, float q6,
                                            float q7, float weight_x, float weight_y, float weight_z, float fallback)
{
    const float all[8] = {q0, q1, q2, q3, q4, q5, q6, q7}, weight[3] = {weight_x, weight_y, weight_z};
    float sum = 0.0f, total = 0.0f;
    for (int corner = 0; corner < SK_CORNERS; corner++) {
        float w = 1.0f;
        for (int e = 0; e < SELKIE_DIM; e++)
            w *= corner >> e & 1 ? weight[e] : 1.0f - weight[e];
        sum += all[corner] == all[corner] ? w * all[corner] : 0.0f;
        total += all[corner] == all[corner] ? w : 0.0f;
    }
    return total > 1e-6f ? sum / total : fallback;
}

/* The velocity (m/s) between nodes, of which some may be unknown. */
SK_KERNEL float sk_velocity_of_nodes(const float q[SK_CORNERS], const float weight[3], float fallback)
{
    const float value = sk_velocity_between(q, weight);
    const int far = SELKIE_DIM == 3 ? 4 : 0;
    if (value == value)
        return value;
    return sk_velocity_of_known(q[0], q[1], q[2], q[3], q[far], q[far + 1], q[far + 2], q[far + 3], weight[0],
                                weight[1], weight[2], fallback);
}

/* Component d of the velocity (m/s) between nodes of the blocks themselves. It is called as well: a tile suffices at
 * most places. */
SK_KERNEL_CALLED float sk_velocity_in_blocks(const sk_velocity_blocks *field, int d, int lower_x, int lower_y,
                                             int lower_z, float weight_x, float weight_y, float weight_z,
                                             float fallback)
{
    const float weight[3] = {weight_x, weight_y, weight_z};
    const int lower[3] = {lower_x, lower_y, lower_z};
    long node[SK_CORNERS];
    float q[SK_CORNERS];
    int in_one = 1;
    for (int e = 0; e < SELKIE_DIM; e++)
        in_one &= (lower[e] & SK_BLOCK_MASK) != SK_BLOCK_MASK;
    node[0] = sk_velocity_node(field, lower);
    for (int corner = 1; corner < SK_CORNERS; corner++) {
        const int cell[3] = {lower_x + (corner & 1), lower_y + (corner >> 1 & 1), lower_z + (corner >> 2)};
        node[corner] = in_one ? node[0] + (corner & 1) + SK_BLOCK_N * ((corner >> 1 & 1) + SK_BLOCK_N * (corner >> 2))
                              : sk_velocity_node(field, cell);
    }
    for (int corner = 0; corner < SK_CORNERS; corner++)
        q[corner] = field->component[d][node[corner]];
    return sk_velocity_of_nodes(q, weight, fallback);
}

/* Component d of the velocity (m/s) at a place in cells from the cell `first`: the sums of sampler_kernels.h over the
 * nodes that the place lies between. */
SK_KERNEL float sk_velocity_component(const sk_velocity_blocks *field, sk_tile_side side, int d, const int first[3],
                                      const float position[3], float fallback)
{
    int lower[3] = {0, 0, 0}, in_tile = field->tile != 0, from = 0, pitch = 1;
    float weight[3] = {0.0f, 0.0f, 0.0f}, q[SK_CORNERS];
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float x = e == d ? position[e] : position[e] - 0.5f;
        const int i = (int)x;
        weight[e] = x - (float)i;
        lower[e] = first[e] + i;
    }
    for (int e = 0; e < SELKIE_DIM; e++) {
        const int at = lower[e] - field->tile_first[e];
        in_tile &= at >= 0 && at + 1 < (int)side;
        from += at * pitch;
        pitch *= (int)side;
    }
    if (in_tile) {
        for (int corner = 0; corner < SK_CORNERS; corner++)
            q[corner] = field->tile[d * pitch + from + (corner & 1) +
                                    (int)side * ((corner >> 1 & 1) + (int)side * (corner >> 2))];
        return sk_velocity_of_nodes(q, weight, fallback);
    }
    return sk_velocity_in_blocks(field, d, lower[0], lower[1], lower[2], weight[0], weight[1], weight[2], fallback);
}

/* Velocity (m/s) at a place in cells from the grid's corner; `fallback` where nothing is known. `side` is that of the
 * field's tile, if it has one. */
SK_KERNEL void sk_velocity_at(const sk_velocity_blocks *field, sk_tile_side side, const float coordinate[3],
                              const float fallback[3], float velocity[3])
{
    int first[3] = {0, 0, 0}, near = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float beyond = field->periodic >> d & 1 ? 1e9f : 2.0f;
        near &= coordinate[d] > -beyond && coordinate[d] < (float)(field->blocks[d] * SK_BLOCK_N) + beyond;
    }
    if (!near) { /* off the grid, maybe farther than whole numbers go */
        for (int d = 0; d < SELKIE_DIM; d++)
            velocity[d] = fallback[d];
        return;
    }
    float in_piece[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; d < SELKIE_DIM; d++) {
        first[d] = (int)__builtin_floorf(coordinate[d]) - 1;
        in_piece[d] = coordinate[d] - (float)first[d];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        velocity[d] = sk_velocity_component(field, side, d, first, in_piece, fallback[d]);
}

/* The same where the tile and known nodes suffice: returns whether they do. */
SK_KERNEL int sk_velocity_in_tile(const sk_velocity_blocks *field, sk_tile_side side, const float coordinate[3],
                                  float velocity[3])
{
    float in_piece[3] = {0.0f, 0.0f, 0.0f};
    int from = 0, inside = 1, pitch = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int cell = (int)__builtin_floorf(coordinate[d]), at = cell - field->tile_first[d];
        in_piece[d] = coordinate[d] - (float)(cell - 1);
        inside &= at >= 1 && at < (int)side - 1; /* the nodes around it are in the tile as well */
        from += (at - 1) * pitch;
        pitch *= (int)side;
    }
    if (!inside)
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float weight[3] = {0.0f, 0.0f, 0.0f}, q[SK_CORNERS];
        int base = d * pitch + from, step = 1;
        for (int e = 0; e < SELKIE_DIM; e++) {
            const float x = e == d ? in_piece[e] : in_piece[e] - 0.5f;
            const int i = (int)x;
            weight[e] = x - (float)i;
            base += i * step;
            step *= (int)side;
        }
        for (int corner = 0; corner < SK_CORNERS; corner++)
            q[corner] = field->tile[base + (corner & 1) + (int)side * ((corner >> 1 & 1) + (int)side * (corner >> 2))];
        velocity[d] = sk_velocity_between(q, weight);
        inside &= velocity[d] == velocity[d];
    }
    return inside;
}

#endif

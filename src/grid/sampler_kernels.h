/* Samples the staggered velocity field at one position. Compiled by the C compiler and by nvcc. */
#ifndef SK_GRID_SAMPLER_KERNELS_H
#define SK_GRID_SAMPLER_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* A dense piece of the velocity field. Node (i,j,k) of each component is at i + pitch (j + pitch k); component d sits
 * on the lower faces across axis d. Positions are in cells from the piece's corner. */
typedef struct sk_velocity_piece {
    const float *component[3];
    int pitch;
    int dimension;
} sk_velocity_piece;

/* The node below a position for component d, the steps to the next node along each axis, and the fractions. */
SK_KERNEL int sk_locate(const sk_velocity_piece *piece, int d, const float position[3], const int dimension,
                        int steps[3], float weight[3])
{
    int base = 0, step = 1;
    for (int e = 0; e < dimension; e++) {
        float x = e == d ? position[e] : position[e] - 0.5f;
        int i = (int)x;
        weight[e] = x - (float)i;
        base += i * step;
        steps[e] = step;
        step *= piece->pitch;
    }
    return base;
}

/* Component d at a position, trilinear. NaN if one of the nodes is unknown. */
SK_KERNEL float sk_sample_component(const sk_velocity_piece *piece, int d, const float position[3], const int dimension)
{
    int steps[3];
    float weight[3];
    int base = sk_locate(piece, d, position, dimension, steps, weight);
    const float *q = piece->component[d] + base;
    float near = q[0] + weight[0] * (q[1] - q[0]);
    const float *r = q + steps[1];
    near += weight[1] * ((r[0] + weight[0] * (r[1] - r[0])) - near);
    if (dimension == 2)
        return near;
    q += steps[2];
    r += steps[2];
    float far = q[0] + weight[0] * (q[1] - q[0]);
    far += weight[1] * ((r[0] + weight[0] * (r[1] - r[0])) - far);
    return near + weight[2] * (far - near);
}

/* The same from known nodes alone, with weights that sum to one; `fallback` if no node is known. */
SK_KERNEL float sk_sample_component_known(const sk_velocity_piece *piece, int d, const float position[3],
                                          const int dimension, float fallback)
{
    int steps[3];
    float weight[3];
    int base = sk_locate(piece, d, position, dimension, steps, weight);
    float sum = 0.0f, total = 0.0f;
    for (int corner = 0; corner < (dimension == 2 ? 4 : 8); corner++) {
        float w = 1.0f;
        int node = base;
        for (int e = 0; e < dimension; e++) {
            w *= corner >> e & 1 ? weight[e] : 1.0f - weight[e];
            node += corner >> e & 1 ? steps[e] : 0;
        }
        float value = piece->component[d][node];
        if (value == value) {
            sum += w * value;
            total += w;
        }
    }
    return total > 1e-6f ? sum / total : fallback;
}

SK_KERNEL void sk_sample_velocity(const sk_velocity_piece *piece, const float position[3], const int dimension,
                                  const float fallback[3], float velocity[3])
{
    for (int d = 0; d < dimension; d++) {
        float u = sk_sample_component(piece, d, position, dimension);
        velocity[d] = u == u ? u : sk_sample_component_known(piece, d, position, dimension, fallback[d]);
    }
}

/* The velocity field as sparse blocks. */
typedef struct sk_velocity_blocks {
    const float *component[3]; /* m/s  [slots][cells of a block], NaN if unknown */
    const int *table;          /*      [places] slot, 0 = absent */
    int blocks[3];             /*      places along each axis */
} sk_velocity_blocks;

enum { SK_PIECE_NODES = SELKIE_DIM == 3 ? 27 : 9 }; /* in a piece of three nodes along each axis */

/* Loads the piece of three nodes along each axis that begins at cell `first` of the grid, node by node. */
SK_KERNEL void sk_load_small_piece(const sk_velocity_blocks *field, const int first[3],
                                   float values[SELKIE_DIM][SK_PIECE_NODES], sk_velocity_piece *piece)
{
    for (int n = 0; n < SK_PIECE_NODES; n++) {
        const int cell[3] = {first[0] + n % 3, first[1] + n / 3 % 3, SELKIE_DIM == 3 ? first[2] + n / 9 : 0};
        int slot = 0, inside = 1, local = 0;
        long place = 0, stride = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            inside &= cell[d] >= 0 && cell[d] < field->blocks[d] * SK_BLOCK_N;
            place += (inside ? cell[d] >> SK_BLOCK_LOG : 0) * stride;
            stride *= field->blocks[d];
            local += (cell[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        if (inside)
            slot = field->table[place];
        for (int d = 0; d < SELKIE_DIM; d++)
            values[d][n] = field->component[d][(long)slot * SK_BLOCK_CELLS + local];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        piece->component[d] = values[d];
    piece->pitch = 3;
    piece->dimension = SELKIE_DIM;
}

/* Velocity (m/s) at a position in cells from the grid's corner; `fallback` if all nodes are unknown. */
SK_KERNEL void sk_velocity_at(const sk_velocity_blocks *field, const float coordinate[3], const float fallback[3],
                              float velocity[3])
{
    int first[3] = {0, 0, 0}, near = 1;
    for (int d = 0; d < SELKIE_DIM; d++)
        near &= coordinate[d] > -2.0f && coordinate[d] < (float)(field->blocks[d] * SK_BLOCK_N + 2);
    if (!near) { /* off the grid, possibly beyond the range of int */
        for (int d = 0; d < SELKIE_DIM; d++)
            velocity[d] = fallback[d];
        return;
    }
    float in_piece[3] = {0.0f, 0.0f, 0.0f}, values[SELKIE_DIM][SK_PIECE_NODES];
    for (int d = 0; d < SELKIE_DIM; d++) {
        first[d] = (int)__builtin_floorf(coordinate[d]) - 1;
        in_piece[d] = coordinate[d] - (float)first[d];
    }
    sk_velocity_piece piece;
    sk_load_small_piece(field, first, values, &piece);
    sk_sample_velocity(&piece, in_piece, SELKIE_DIM, fallback, velocity);
}

#endif

/* One particle beside a surface that holds the liquid, for the CPU and the GPU: see wall_layer_dim.c. For files
 * compiled per dimension. */
#ifndef SK_METHODS_FLIP_WALL_LAYER_PLAIN_H
#define SK_METHODS_FLIP_WALL_LAYER_PLAIN_H

#include "grid/grid_kernels.h"
#include "grid/solids.h"
#include "grid/velocity_kernels.h"
#include "methods/flip/wall_layer_kernels.h"
#include "methods/step.h"

/* Distance (cells) up to which faces feel the surface: the kernel of the faces in it and of those beside it. */
#define SK_WALL_LAYER 1.5f

/* Is a place (cells) beside a surface that holds liquid? */
SK_KERNEL int is_held(const sk_step *step, const sk_velocity_blocks *field, const float coordinate[3])
{
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        cell[d] = (int)__builtin_floorf(coordinate[d]);
    const long node = sk_velocity_node(field, cell), slot = node / SK_BLOCK_CELLS;
    const size_t at = (size_t)step->solids.block_slot[slot] * SK_BLOCK_CELLS + (size_t)(node % SK_BLOCK_CELLS);
    return slot && step->solids.block_slot[slot] && sk_solids_grip(&step->solids, at) > 0.0f &&
           step->solids.distance[at] < SK_WALL_LAYER;
}

/* Keeps a particle beside such a surface within the range of the velocities that it is interpolated from. */
SK_KERNEL void limit_particle(const sk_step *step, const sk_velocity_blocks *field, const float corner[3],
                              float inverse, sk_particle *particle)
{
    float coordinate[3] = {0.0f, 0.0f, 0.0f}, in_piece[3] = {0.0f, 0.0f, 0.0f}, values[SELKIE_DIM][SK_PIECE_NODES];
    int first[3] = {0, 0, 0};
    sk_velocity_piece piece;
    for (int d = 0; d < SELKIE_DIM; d++) {
        coordinate[d] = sk_cell_coordinate(particle->position[d], corner[d], inverse);
        first[d] = (int)__builtin_floorf(coordinate[d]) - 1;
        in_piece[d] = coordinate[d] - (float)first[d];
    }
    if (particle->flags & (SK_PARTICLE_DEAD | SK_PARTICLE_FLYING) || !is_held(step, field, coordinate))
        return;
    sk_load_small_piece(field, first, values, &piece);
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->velocity[d] = sk_within_nodes(&piece, d, in_piece, particle->velocity[d]);
}

#endif

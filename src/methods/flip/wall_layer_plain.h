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

/* Beside an obstacle along which liquid slips, the largest speed of a particle over that of the faces around it. */
#define SK_WALL_LAYER_MOST 1.2f

/* Is a block near an obstacle, or a wall that holds liquid? Particles that came from other blocks follow in the next
 * step. */
SK_KERNEL int is_near_layer(const sk_step *step, int block)
{
    const int slot = step->solids.block_slot[block];
    return slot && !step->solids.plain[slot];
}

/* Is a place (cells) beside a surface that holds liquid (2), or an obstacle along which it slips (1)? Bodies exchange
 * momentum with the liquid and are left alone. */
SK_KERNEL int is_held(const sk_step *step, const sk_velocity_blocks *field, const float coordinate[3])
{
    const sk_solids *solids = &step->solids;
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        cell[d] = (int)__builtin_floorf(coordinate[d]);
    const long node = sk_velocity_node(field, cell), slot = node / SK_BLOCK_CELLS;
    if (!slot || !solids->block_slot[slot])
        return 0;
    const size_t at = (size_t)solids->block_slot[slot] * SK_BLOCK_CELLS + (size_t)(node % SK_BLOCK_CELLS);
    if (solids->distance[at] >= SK_WALL_LAYER)
        return 0;
    if (sk_solids_grip(solids, at) > 0.0f)
        return 2;
    return step->scene->incompressibility != SELKIE_INCOMPRESSIBILITY_UNILATERAL &&
           solids->obstacle_count > solids->body_count && !solids->plain[solids->block_slot[slot]] &&
           (!solids->body_count || solids->slot_share[solids->block_slot[slot]] == UINT32_MAX);
}

/* Keeps a particle beside a surface that holds liquid within the range of the velocities that it is interpolated from,
 * and one beside an obstacle from being much faster than them. */
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
    const int held = particle->flags & (SK_PARTICLE_DEAD | SK_PARTICLE_FLYING) ? 0 : is_held(step, field, coordinate);
    if (!held)
        return;
    sk_load_small_piece(field, first, values, &piece);
    float most = 0.0f, speed = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (held == 2) {
            particle->velocity[d] = sk_within_nodes(&piece, d, in_piece, particle->velocity[d]);
            continue;
        }
        const float of_nodes = sk_most_of_nodes(&piece, d, in_piece);
        if (of_nodes < 0.0f)
            return;
        most += of_nodes * of_nodes;
        speed += particle->velocity[d] * particle->velocity[d];
    }
    most *= SK_WALL_LAYER_MOST * SK_WALL_LAYER_MOST;
    const float part = held == 1 && speed > most ? __builtin_sqrtf(most / speed) : 1.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->velocity[d] *= part;
}

#endif

/* Velocities behind solids, one face at a time, for the plain form and the GPU: see extrapolate_dim.c. For files
 * compiled per dimension. */
#ifndef SK_METHODS_FLIP_CONSTRAIN_PLAIN_H
#define SK_METHODS_FLIP_CONSTRAIN_PLAIN_H

#include "grid/extrapolate_kernels.h"
#include "methods/face_velocity_plain.h"
#include "methods/liquid_plain.h"

/* The normal of a wall thinner than the grid resolves, at the lower face of a cell: sk_barriers_normal. */
typedef void (*sk_barrier_normal)(const sk_solids *solids, const sk_grid *grid, int block, int cell, int d,
                                  float normal[3]);

/* Distances of the solids at a cell's centre and at both neighbours along each axis. `below` selects the cell below
 * along axis d. */
SK_KERNEL void distances_around(const sk_step *step, sk_plain_cell cell, int d, int below,
                                float distances[1 + 2 * SELKIE_DIM])
{
    for (int n = 0; n < 1 + 2 * SELKIE_DIM; n++) {
        int offset[3] = {0, 0, 0};
        offset[d] -= below;
        if (n > 0)
            offset[(n - 1) / 2] += n % 2 ? -1 : 1;
        const sk_plain_cell other = sk_plain_beside(&step->grid, cell, offset);
        distances[n] = step->solids.distance[sk_plain_solid_index(&step->solids, other)];
    }
}

/* The velocity of the lower face of a cell across axis d, constrained by the solid. `barrier_normal` is NULL where no
 * wall is thinner than the grid resolves. `along` is the component of the normal of a slip surface along the axis. */
SK_KERNEL float constrained_velocity(const sk_step *step, int first, sk_plain_cell cell, int d,
                                     sk_barrier_normal barrier_normal, float *along)
{
    *along = 0.0f;
    const sk_solids *solids = &step->solids;
    const size_t solid = sk_plain_solid_index(solids, cell);
    const int moving = (size_t)solids->block_slot[cell.slot] >= solids->static_count;
    const float own = step->grid.fields[first + d][sk_plain_index(cell)];
    if (solids->fraction[d][solid] > 0.0f || own != own || face_on_wall(step, cell, d))
        return own;
    if (solids->no_slip[solid])
        return moving ? solids->velocity[d][solid] : 0.0f;
    float here[1 + 2 * SELKIE_DIM], below[1 + 2 * SELKIE_DIM], normal[3], relative[3];
    distances_around(step, cell, d, 0, here);
    distances_around(step, cell, d, 1, below);
    if (barrier_normal && solids->barriers[solid] >> d & 1)
        barrier_normal(solids, &step->grid, cell.slot, cell.local, d, normal);
    else
        sk_normal_at_face(d, here, below, normal);
    for (int e = 0; e < SELKIE_DIM; e++)
        relative[e] = velocity_at_face(&step->grid, first, cell, d, e) - (moving ? solids->velocity[e][solid] : 0.0f);
    *along = normal[d];
    const float slipping = sk_slip_velocity(d, own, relative, normal), grip = sk_solids_grip(solids, solid);
    return grip > 0.0f ? sk_held_velocity(slipping, moving ? solids->velocity[d][solid] : 0.0f, grip) : slipping;
}

/* The constrained velocity of a face. The velocity that the particles take carries its change along. */
SK_KERNEL float constrain_face(const sk_step *step, int first, sk_plain_cell cell, int d,
                               sk_barrier_normal barrier_normal)
{
    const size_t at = sk_plain_index(cell);
    float along, *change = &step->grid.fields[SK_FIELD_CHANGE_X + d][at];
    const float velocity = constrained_velocity(step, first, cell, d, barrier_normal, &along);
    if (first == step->end_velocity)
        *change = sk_constrained_change(*change, step->grid.fields[first + d][at], velocity,
                                        step->before_walls ? step->grid.fields[step->before_walls + d][at] : velocity,
                                        step->before_walls ? along : 0.0f);
    return velocity;
}

#endif

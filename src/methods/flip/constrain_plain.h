/* Velocities behind solids, one face at a time, for the plain form and the GPU: see extrapolate_dim.c. For files
 * compiled per dimension. */
#ifndef SK_METHODS_FLIP_CONSTRAIN_PLAIN_H
#define SK_METHODS_FLIP_CONSTRAIN_PLAIN_H

#include "grid/extrapolate_kernels.h"
#include "methods/face_velocity_plain.h"
#include "methods/flip/sliver_plain.h"
#include "methods/vents_plain.h"

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

/* Outward normal of the solid at the closed lower face of a cell across axis d. `barrier_normal` is NULL where no wall
 * is thinner than the grid resolves. */
SK_KERNEL void solid_normal(const sk_step *step, sk_plain_cell cell, int d, sk_barrier_normal barrier_normal,
                            float normal[3])
{
    const sk_solids *solids = &step->solids;
    if (barrier_normal && solids->barriers[sk_plain_solid_index(solids, cell)] >> d & 1) {
        barrier_normal(solids, &step->grid, cell.slot, cell.local, d, normal);
        return;
    }
    float here[1 + 2 * SELKIE_DIM], below[1 + 2 * SELKIE_DIM];
    distances_around(step, cell, d, 0, here);
    distances_around(step, cell, d, 1, below);
    sk_normal_at_face(d, here, below, normal);
}

/* What crosses the surface at the closed lower face of a cell across axis d, from the velocity in the fields from
 * `first` on and, if `with_change`, from the particles' velocity and the change of FLIP. */
SK_KERNEL sk_slip slip_at_face(const sk_step *step, int first, sk_plain_cell cell, int d,
                               sk_barrier_normal barrier_normal, int with_change)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    const size_t solid = sk_plain_solid_index(solids, cell);
    const int moving = (size_t)solids->block_slot[cell.slot] >= solids->static_count;
    sk_slip slip = {0.0f, 0.0f, 0.0f, 0.0f};
    float normal[3], velocity[3], before[3], change[3];
    solid_normal(step, cell, d, barrier_normal, normal);
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float wall = moving ? solids->velocity[e][solid] : 0.0f;
        velocity[e] = velocity_at_face(grid, first, cell, d, e) - wall;
        before[e] = with_change ? sk_known_or_zero(mean_at_face(grid, step->before_walls, cell, d, e) - wall) : 0.0f;
        change[e] = with_change ? sk_known_or_zero(mean_at_face(grid, SK_FIELD_CHANGE_X, cell, d, e)) : 0.0f;
    }
    slip.normal = normal[d];
    slip.through = sk_across(velocity, normal);
    slip.before = sk_across(before, normal);
    slip.change = sk_across(change, normal);
    return slip;
}

/* A face's velocity behind a solid, and FLIP's change there. */
typedef struct sk_constrained_face {
    float velocity, change;
} sk_constrained_face;

/* The lower face of a cell across axis d, constrained by the solid, from the velocity in the fields from `first` on.
 * The velocity that the particles take carries its change along. */
SK_KERNEL sk_constrained_face constrain_face(const sk_step *step, int first, sk_plain_cell cell, int d,
                                             sk_barrier_normal barrier_normal)
{
    const sk_solids *solids = &step->solids;
    const size_t at = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
    const int moving = (size_t)solids->block_slot[cell.slot] >= solids->static_count;
    const int with_change = step->before_walls && first == step->end_velocity;
    const float own = step->grid.fields[first + d][at], wall = moving ? solids->velocity[d][solid] : 0.0f;
    sk_constrained_face face = {own, step->grid.fields[SK_FIELD_CHANGE_X + d][at]};
    if (solids->fraction[d][solid] > 0.0f || keeps_velocity(step, cell, d) || own != own ||
        face_on_wall(step, cell, d) || own * (float)way_of_vent(step, cell, d) > 0.0f)
        return face;
    sk_slip slip = {0.0f, 0.0f, 0.0f, 0.0f};
    face.velocity = wall;
    if (!solids->no_slip[solid]) {
        slip = slip_at_face(step, first, cell, d, barrier_normal, with_change);
        const float slipping = own - slip.through * slip.normal, grip = sk_solids_grip(solids, solid);
        face.velocity = grip > 0.0f ? sk_held_velocity(slipping, wall, grip) : slipping;
    }
    if (first == step->end_velocity) {
        slip.normal = with_change ? slip.normal : 0.0f;
        const float before = with_change ? step->grid.fields[step->before_walls + d][at] : 0.0f;
        face.change = sk_constrained_change(face.change, own, face.velocity, before, &slip);
    }
    return face;
}

#endif

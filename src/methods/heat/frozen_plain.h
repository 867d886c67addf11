/* Frozen bodies on faces and particles of the grid: functions of one face or particle, which the GPU runs as well. For
 * files compiled per dimension. */
#ifndef SK_METHODS_HEAT_FROZEN_PLAIN_H
#define SK_METHODS_HEAT_FROZEN_PLAIN_H

#include <math.h>

#include "grid/grid_kernels.h"
#include "methods/heat/frozen.h"
#include "methods/liquid_plain.h"

/* Does a particle change its cell? */
SK_KERNEL int frozen_changes_cell(const sk_grid *grid, const float from[3], const float to[3])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    int differs = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        differs |= floorf(sk_cell_coordinate(from[d], (float)grid->corner[d], inverse)) !=
                   floorf(sk_cell_coordinate(to[d], (float)grid->corner[d], inverse));
    return differs;
}

/* Does a particle stay where its body has it? `place` has the bits of its "frozen_at". */
SK_KERNEL int frozen_has_place(const uint32_t place[3])
{
    return (place[0] | place[1] | place[2]) != 0;
}

/* The velocity of a body at the lower faces of a block across an axis: linear over its cells. */
typedef struct frozen_plane {
    int body;              /* -1 = none yet */
    double first, more[3]; /* m/s  at the first cell, and from cell to cell */
} frozen_plane;

SK_KERNEL void frozen_find_plane(const sk_grid *grid, const sk_frozen_body *body, const double velocity[3],
                                 const double turning[3], int block, int d, frozen_plane *plane)
{
    const sk_plain_cell cell = {block, 0};
    const double h = grid->cell_size;
    const int e = (d + 1) % 3, f = (d + 2) % 3;
    int at[3];
    double arm[3] = {0.0, 0.0, 0.0};
    sk_plain_coordinates(grid, cell, at);
    for (int n = 0; n < SELKIE_DIM; n++)
        arm[n] = grid->corner[n] + (at[n] + (n == d ? 0.0 : 0.5)) * h - body->centre[n];
    plane->first = sk_frozen_velocity(velocity, turning, arm, d);
    plane->more[d] = 0.0;
    plane->more[e] = -h * turning[f];
    plane->more[f] = h * turning[e];
}

SK_KERNEL double frozen_plane_at(const frozen_plane *plane, int c)
{
    double sum = plane->first;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum += plane->more[d] * sk_plain_along(c, d);
    return sum;
}

/* Velocities of a body: after the pressure solve, at the end of the step, and before it. */
typedef struct frozen_planes {
    int owner; /* -1 = none yet */
    frozen_plane now, end, before;
} frozen_planes;

SK_KERNEL void frozen_find_planes(const sk_grid *grid, const sk_frozen_body *body, int block, int d,
                                  frozen_planes *planes)
{
    frozen_find_plane(grid, body, body->solved, body->solved_turning, block, d, &planes->now);
    frozen_find_plane(grid, body, body->final, body->final_turning, block, d, &planes->end);
    frozen_find_plane(grid, body, body->velocity, body->turning, block, d, &planes->before);
}

/* Does a body cover a face in which it has a share, and is its velocity known? */
SK_KERNEL int frozen_is_covered(const sk_step *step, sk_plain_cell cell, int d)
{
    const float velocity = step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)];
    return velocity == velocity && !(open_fraction_at(step, cell, d) > 0.0f);
}

/* The velocity of such a face, and its change for FLIP. */
SK_KERNEL void frozen_set_face(const sk_step *step, const frozen_planes *planes, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    const size_t here = sk_plain_index(cell);
    const double last = frozen_plane_at(&planes->end, cell.local);
    grid->fields[SK_FIELD_VELOCITY_X + d][here] = (float)frozen_plane_at(&planes->now, cell.local);
    grid->fields[step->end_velocity + d][here] = (float)last;
    grid->fields[SK_FIELD_CHANGE_X + d][here] = (float)(last - frozen_plane_at(&planes->before, cell.local));
}

#endif

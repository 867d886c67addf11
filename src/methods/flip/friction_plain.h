/* Coulomb's friction on one face, for the CPU and the GPU: see friction_dim.c. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_FRICTION_PLAIN_H
#define SK_METHODS_FLIP_FRICTION_PLAIN_H

#include <math.h>

#include "methods/face_velocity_plain.h"
#include "methods/flip/friction_kernels.h"
#include "methods/liquid_plain.h"

/* A velocity on the grid. */
typedef struct rubbed_field {
    int first;          /* its first field */
    float part;         /* impulse of the step over that of the pressure solve */
    float *result[3];   /* scratch */
    int carries_change; /* particles take this velocity: FLIP's change follows it */
} rubbed_field;

SK_KERNEL sk_rubbing_cell cell_at(const sk_step *step, sk_plain_cell cell)
{
    const size_t solid = sk_plain_solid_index(&step->solids, cell);
    const size_t here = sk_plain_index(cell);
    sk_rubbing_cell found;
    found.friction = step->solids.friction[solid];
    for (int d = 0; d < 3; d++)
        found.push[d] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        found.push[d] = step->grid.fields[SK_FIELD_POTENTIAL][here] +
                        (step->viscous_push ? step->grid.fields[step->viscous_push + d][here] : 0.0f);
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        found.open[side] = open_fraction_at(step, cell_of_side(&step->grid, cell, side), side / 2);
    return found;
}

/* Component e of the velocity of the surface with normal `area` beside a cell. Open faces have none, so the cell
 * towards the solid may have it. */
SK_KERNEL float surface_velocity(const sk_step *step, sk_plain_cell cell, const float area[3], int e)
{
    int along = 0;
    if (!sk_solids_have_velocity(&step->solids))
        return 0.0f;
    for (int d = 1; d < SELKIE_DIM; d++)
        along = fabsf(area[d]) > fabsf(area[along]) ? d : along;
    if (open_fraction_at(step, cell, e) == 1.0f)
        cell = sk_plain_next(&step->grid, cell, along, area[along] > 0.0f ? -1 : 1);
    return solid_velocity_at(step, cell, e);
}

/* The velocity of the lower face of a cell across axis d after friction. */
SK_KERNEL float rubbed(const sk_step *step, const rubbed_field *field, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    const float own = grid->fields[field->first + d][sk_plain_index(cell)], open = open_fraction_at(step, cell, d);
    if (own != own || !(open > 0.0f))
        return own;

    /* Friction of the two cells beside the face, each with half of the face's liquid. */
    float area[3] = {0.0f, 0.0f, 0.0f}, most = 0.0f, relative[3] = {0.0f, 0.0f, 0.0f};
    for (int side = 0; side < 2; side++) {
        const sk_rubbing_cell beside = cell_at(step, side ? cell : sk_plain_next(grid, cell, d, -1));
        most += 0.5f * sk_friction_of_cell(&beside, area);
    }
    if (!(most > 0.0f))
        return own;
    for (int e = 0; e < SELKIE_DIM; e++)
        relative[e] = velocity_at_face(grid, field->first, cell, d, e) - surface_velocity(step, cell, area, e);
    return sk_rubbed_velocity(d, own, relative, area, field->part * lightness_at(step, cell, d) * most / open);
}

#endif

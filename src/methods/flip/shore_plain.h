/* Faces in the air beside the surface, one at a time: see shore.h. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_SHORE_PLAIN_H
#define SK_METHODS_FLIP_SHORE_PLAIN_H

#include "methods/flip/reflection.h"
#include "methods/liquid_plain.h"

/* Is the lower face of a cell across axis d in the air beside the surface? See shore.h. */
SK_KERNEL int is_shore_face(const sk_grid *grid, sk_plain_cell cell, int d)
{
    int air[2], liquid[2], liquid_beside[2] = {0, 0};
    for (int n = 0; n < 2; n++) {
        const sk_plain_cell own = n ? sk_plain_next(grid, cell, d, -1) : cell;
        const int kind = grid->kinds[sk_plain_index(own)] & SK_CELL_KIND_MASK;
        air[n] = kind == SK_CELL_AIR;
        liquid[n] = kind == SK_CELL_LIQUID;
        if (liquid[n])
            return 0;
        for (int side = 0; side < 2 * SELKIE_DIM; side++)
            liquid_beside[n] |= liquid_cell_at(grid, sk_plain_next(grid, own, side / 2, side % 2 ? 1 : -1)).liquid;
    }
    return sk_liquid_is_shore(air, liquid, liquid_beside);
}

/* The change of a shore face by pressure and surface tension: the mean over the faces of its component beside it on
 * which pressure acts. */
SK_KERNEL float shore_change(const sk_step *step, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    float sum = 0.0f;
    int count = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1);
        int beside_liquid;
        if (!other.slot || !(open_fraction_at(step, other, d) > 0.0f))
            continue;
        const float descent = lightness_at(step, other, d) * gather_descent(step, other, d, &beside_liquid);
        const float push = step->tension_push ? grid->fields[step->tension_push + d][sk_plain_index(other)] : 0.0f;
        sum += beside_liquid ? descent + push : 0.0f;
        count += beside_liquid;
    }
    return count ? sum / (float)count : 0.0f;
}

/* Moves a shore face by it, if it is open. No face reads what another one writes. */
SK_KERNEL void move_shore_face(const sk_step *step, sk_plain_cell cell, int d)
{
    if (!(open_fraction_at(step, cell, d) > 0.0f))
        return;
    const float change = shore_change(step, cell, d);
    const float all = (1.0f + (float)step->reflection) * change; /* of the whole step: reflection_kernels.h */
    step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)] += change;
    step->grid.fields[SK_FIELD_CHANGE_X + d][sk_plain_index(cell)] += all;
    if (flip_has_end(step))
        step->grid.fields[step->end_velocity + d][sk_plain_index(cell)] += all;
}

/* Does the block have unknown faces, and known ones near them? */
SK_KERNEL int has_unknown_near_known(const sk_grid *grid, int block)
{
    int near = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        near |= grid->block_flags[grid->neighbours[block][n]] & SK_BLOCK_KNOWN;
    return near && grid->block_flags[block] & SK_BLOCK_UNKNOWN;
}

#endif

/* Gathers the values around one cell or face from the grid and the solids, for the plain solves over the liquid. For
 * files compiled per dimension. */
#ifndef SK_METHODS_LIQUID_PLAIN_H
#define SK_METHODS_LIQUID_PLAIN_H

#include "grid/plain.h"
#include "methods/liquid_kernels.h"
#include "methods/step.h"

SK_KERNEL sk_liquid_cell liquid_cell_at(const sk_grid *grid, sk_plain_cell cell)
{
    const size_t here = sk_plain_index(cell);
    const sk_liquid_cell found = {(grid->kinds[here] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID,
                                  grid->fields[SK_FIELD_DEPTH][here]};
    return found;
}

SK_KERNEL float open_fraction_at(const sk_step *step, sk_plain_cell cell, int d)
{
    return step->solids.fraction[d][sk_plain_solid_index(&step->solids, cell)];
}

SK_KERNEL float solid_velocity_at(const sk_step *step, sk_plain_cell cell, int d)
{
    return sk_solids_have_velocity(&step->solids) ? step->solids.velocity[d][sk_plain_solid_index(&step->solids, cell)]
                                                  : 0.0f;
}

/* The cell that stores the face on a side of this one. A face belongs to the cell above it. */
SK_KERNEL sk_plain_cell cell_of_side(const sk_grid *grid, sk_plain_cell cell, int side)
{
    return side % 2 ? sk_plain_next(grid, cell, side / 2, 1) : cell;
}

/* Reference density over the density of the liquid around a face; 1 for a single density. */
SK_KERNEL float lightness_at(const sk_step *step, sk_plain_cell cell, int d)
{
    return step->relative_density ? step->grid.fields[SK_FIELD_LIGHTNESS_X + d][sk_plain_index(cell)] : 1.0f;
}

/* The view of a cell. `weighted` scales faces by lightness, as the pressure solve needs it. Volume corrections do not.
 */
SK_KERNEL void gather_liquid_view(const sk_step *step, sk_plain_cell cell, int weighted, sk_liquid_view *view)
{
    const sk_grid *grid = &step->grid;
    view->voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    view->own = liquid_cell_at(grid, cell);
    SK_KERNEL_UNROLL
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        view->beside[side] = liquid_cell_at(grid, sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1));
        view->open[side] = open_fraction_at(step, cell_of_side(grid, cell, side), side / 2);
        view->lightness[side] = weighted ? lightness_at(step, cell_of_side(grid, cell, side), side / 2) : 1.0f;
    }
}

/* The lower face of a cell across axis d: minus the gradient of POTENTIAL, and whether liquid is beside it. */
SK_KERNEL float gather_descent(const sk_step *step, sk_plain_cell cell, int d, int *beside_liquid)
{
    const sk_grid *grid = &step->grid;
    const float *solution = grid->fields[SK_FIELD_POTENTIAL];
    const sk_plain_cell other = sk_plain_next(grid, cell, d, -1);
    const sk_liquid_cell above = liquid_cell_at(grid, cell), below = liquid_cell_at(grid, other);
    *beside_liquid = above.liquid || below.liquid;
    return sk_liquid_descent(&below, &above, solution[sk_plain_index(other)], solution[sk_plain_index(cell)],
                             step->scene->pressure.surface == SELKIE_SURFACE_VOXEL);
}

/* The way into the domain along axis d if the lower face of a cell is on a closed wall of the domain: 1 at the lower
 * wall, -1 at the upper one. 0 elsewhere. */
SK_KERNEL int face_on_wall(const sk_step *step, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    int at[3];
    sk_plain_coordinates(grid, cell, at);
    if (at[d] == grid->padding[d] && step->scene->domain.walls[2 * d] != SELKIE_WALL_OPEN)
        return 1;
    return at[d] == grid->padding[d] + grid->cells[d] && step->scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN ? -1
                                                                                                                  : 0;
}

/* Is there no liquid in the cell beside a face on a closed wall, nor around that cell? `away` is 1 or -1, the way away
 * from the wall. */
SK_KERNEL int wall_is_dry(const sk_step *step, sk_plain_cell cell, int d, int away)
{
    const sk_grid *grid = &step->grid;
    const sk_plain_cell inner = away > 0 ? cell : sk_plain_next(grid, cell, d, -1);
    int dry = !liquid_cell_at(grid, inner).liquid;
    for (int side = 0; dry && side < 2 * SELKIE_DIM; side++)
        dry = !liquid_cell_at(grid, sk_plain_next(grid, inner, side / 2, side % 2 ? 1 : -1)).liquid;
    return dry;
}

/* The flags of a block with a number of known faces. */
SK_KERNEL uint8_t sk_plain_known_flags(uint8_t flags, int known)
{
    return (uint8_t)((flags & SK_BLOCK_LIQUID) | (known ? SK_BLOCK_KNOWN : 0) |
                     (known < SELKIE_DIM * SK_BLOCK_CELLS ? SK_BLOCK_UNKNOWN : 0));
}

#endif

/* Cells that rigid bodies cover for the most part. They are unknowns of the pressure solve if liquid is beside the
 * body: see grid/solids.h. For files compiled per dimension. */
#ifndef SK_METHODS_COVERED_CELLS_H
#define SK_METHODS_COVERED_CELLS_H

#include "grid/plain.h"
#include "methods/cell_kernels.h"
#include "methods/step.h"

/* Is a body near the block? */
SK_KERNEL int covered_near(const sk_step *step, int block)
{
    const sk_solids *solids = &step->solids;
    return solids->body_count && solids->slot_share[solids->block_slot[block]] != UINT32_MAX;
}

SK_KERNEL int is_covered(const sk_step *step, sk_plain_cell cell)
{
    const size_t solid = sk_plain_solid_index(&step->solids, cell);
    return step->solids.covered[solid] && !step->solids.closed[solid];
}

SK_KERNEL float covered_fill(const sk_step *step, sk_plain_cell cell)
{
    const int walls = step->solids.covered[sk_plain_solid_index(&step->solids, cell)];
    float density[1 + 2 * SELKIE_DIM], blurred[1 + 2 * SELKIE_DIM];
    for (int n = 0; n < 1 + 2 * SELKIE_DIM; n++) {
        const int d = (n - 1) / 2, side = n % 2 ? -1 : 1;
        const sk_plain_cell other = n ? sk_plain_next(&step->grid, cell, d, side) : cell;
        const int apart = n && walls >> n & 1;
        density[n] = apart ? 0.0f : step->grid.fields[SK_FIELD_DENSITY][sk_plain_index(other)];
        blurred[n] = apart ? 1.0f : step->solids.blurred[sk_plain_solid_index(&step->solids, other)];
    }
    return sk_covered_cell_fill(density, blurred);
}

#endif

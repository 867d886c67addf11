/* Faces in the air beside the surface, one at a time: see shore.h. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_SHORE_PLAIN_H
#define SK_METHODS_FLIP_SHORE_PLAIN_H

#include "methods/liquid_plain.h"

/* Is the lower face of a cell across axis d in the air beside the surface? See shore.h. */
static __attribute__((unused)) int is_shore_face(const sk_grid *grid, sk_plain_cell cell, int d)
{
    int air[2], liquid[2], liquid_beside[2] = {0, 0};
    for (int n = 0; n < 2; n++) {
        const sk_plain_cell own = n ? sk_plain_next(grid, cell, d, -1) : cell;
        const int kind = grid->kinds[sk_plain_index(own)] & SK_CELL_KIND_MASK;
        air[n] = kind == SK_CELL_AIR;
        liquid[n] = kind == SK_CELL_LIQUID;
        for (int side = 0; side < 2 * SELKIE_DIM; side++)
            liquid_beside[n] |= liquid_cell_at(grid, sk_plain_next(grid, own, side / 2, side % 2 ? 1 : -1)).liquid;
    }
    return sk_liquid_is_shore(air, liquid, liquid_beside);
}

#endif

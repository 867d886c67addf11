/* The change of one face by the pressure that balances gravity: see balance_dim.c. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_BALANCE_PLAIN_H
#define SK_METHODS_FLIP_BALANCE_PLAIN_H

#include "methods/flip/shore_plain.h"

/* m/s: of the lower face of a cell across axis d by the pressure alone; NaN where none acts. */
SK_KERNEL float balance_push_at(const sk_step *step, sk_plain_cell cell, int d)
{
    int beside_liquid;
    if (!cell.slot || !(open_fraction_at(step, cell, d) > 0.0f))
        return __builtin_nanf("");
    const float descent = lightness_at(step, cell, d) * gather_descent(step, cell, d, &beside_liquid);
    return beside_liquid ? descent : __builtin_nanf("");
}

/* m/s: of the lower face of a cell across axis d. Faces in the air beside the surface follow the liquid, as after the
 * pressure solve; 0 where no pressure acts. */
SK_KERNEL float balance_at(const sk_step *step, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    const float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)];
    if (velocity != velocity || !(open_fraction_at(step, cell, d) > 0.0f))
        return 0.0f;
    const float own = balance_push_at(step, cell, d);
    if (own == own)
        return own;
    if (!is_shore_face(grid, cell, d))
        return 0.0f;
    float sum = 0.0f;
    int count = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const float push = balance_push_at(step, sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1), d);
        sum += push == push ? push : 0.0f;
        count += push == push;
    }
    return count ? sum / (float)count : 0.0f;
}

#endif

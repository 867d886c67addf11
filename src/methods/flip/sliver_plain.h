/* Slivers of bodies (grid/slivers.h) in the grid's velocity. For files compiled per dimension. */
#ifndef SK_METHODS_FLIP_SLIVER_PLAIN_H
#define SK_METHODS_FLIP_SLIVER_PLAIN_H

#include "grid/slivers.h"
#include "methods/liquid_plain.h"

/* Do all slivers keep the velocity of their particles? The affine velocities of APIC would keep the gradient towards
 * the body after the contact, and drive films on it. So in PIC and APIC slivers beside liquid are closed faces while
 * pressure acts. */
SK_KERNEL int all_slivers_keep(const sk_step *step)
{
    return step->scene->transfer == SELKIE_TRANSFER_FLIP || !sk_step_has_pressure(step);
}

/* Does the lower face of a cell across axis d keep the velocity of its particles, as a sliver? */
SK_KERNEL int keeps_velocity(const sk_step *step, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    if (!sk_is_sliver(open_fraction_at(step, cell, d)))
        return 0;
    return all_slivers_keep(step) ||
           (!liquid_cell_at(grid, cell).liquid && !liquid_cell_at(grid, sk_plain_next(grid, cell, d, -1)).liquid);
}

#endif

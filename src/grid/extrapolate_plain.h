/* The extrapolation of one face, for the plain form and the GPU: see extrapolate.h. For files compiled per dimension.
 */
#ifndef SK_GRID_EXTRAPOLATE_PLAIN_H
#define SK_GRID_EXTRAPOLATE_PLAIN_H

#include "grid/extrapolate_kernels.h"
#include "grid/plain.h"

SK_KERNEL int is_wanted(const uint64_t *wanted, sk_plain_cell cell)
{
    return !wanted || (wanted[cell.slot] >> (cell.local / 8) & 1);
}

/* The places in the fields of the cells before and after a cell along each axis; 0 = no block. */
SK_KERNEL void places_around(const sk_grid *grid, sk_plain_cell cell, size_t around[2 * SELKIE_DIM])
{
    for (int n = 0; n < 2 * SELKIE_DIM; n++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, n / 2, n % 2 ? 1 : -1);
        around[n] = other.slot ? sk_plain_index(other) : 0;
    }
}

/* The mean of the known values at these places. */
SK_KERNEL float mean_around(const float *field, const size_t around[2 * SELKIE_DIM])
{
    float values[2 * SELKIE_DIM];
    for (int n = 0; n < 2 * SELKIE_DIM; n++)
        values[n] = around[n] ? field[around[n]] : __builtin_nanf(""); /* no block: unknown */
    return sk_mean_of_known(values, 2 * SELKIE_DIM);
}

/* The new value of an unknown face: the mean of the known values before and after it along each axis. */
SK_KERNEL float filled_value(const sk_grid *grid, const float *field, sk_plain_cell cell)
{
    const float own = field[sk_plain_index(cell)];
    size_t around[2 * SELKIE_DIM];
    if (own == own)
        return own;
    places_around(grid, cell, around);
    return mean_around(field, around);
}

#endif

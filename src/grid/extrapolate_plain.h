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

/* The new value of an unknown face: the mean of the known values before and after it along each axis. */
SK_KERNEL float filled_value(const sk_grid *grid, const float *field, sk_plain_cell cell)
{
    const float own = field[sk_plain_index(cell)];
    float around[2 * SELKIE_DIM];
    for (int n = 0; n < 2 * SELKIE_DIM; n++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, n / 2, n % 2 ? 1 : -1);
        around[n] = other.slot ? field[sk_plain_index(other)] : __builtin_nanf(""); /* no block: unknown */
    }
    return own == own ? own : sk_mean_of_known(around, 2 * SELKIE_DIM);
}

#endif

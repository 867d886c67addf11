/* Velocities at faces, for the plain forms. For files compiled per dimension. */
#ifndef SK_METHODS_FACE_VELOCITY_PLAIN_H
#define SK_METHODS_FACE_VELOCITY_PLAIN_H

#include "grid/extrapolate_kernels.h"
#include "grid/plain.h"
#include "grid/transfer_kernels.h"

/* Component e of a velocity, the fields from `first` on, at the lower face of a cell across axis d: the value itself,
 * or the mean of the faces around; NaN if none of them is known. */
SK_KERNEL float mean_at_face(const sk_grid *grid, int first, sk_plain_cell cell, int d, int e)
{
    const float *field = grid->fields[first + e];
    float around[4];
    if (d == e)
        return field[sk_plain_index(cell)];
    for (int n = 0; n < 4; n++) {
        int offset[3] = {0, 0, 0};
        offset[d] = n / 2 - 1;
        offset[e] = n % 2;
        around[n] = field[sk_plain_index(sk_plain_beside(grid, cell, offset))];
    }
    return sk_mean_of_known(around, 4);
}

/* Likewise; 0 where the faces around are not known. */
SK_KERNEL float velocity_at_face(const sk_grid *grid, int first, sk_plain_cell cell, int d, int e)
{
    const float mean = mean_at_face(grid, first, cell, d, e);
    return d == e ? mean : sk_known_or_zero(mean);
}

#endif

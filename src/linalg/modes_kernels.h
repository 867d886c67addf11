/* Rigid bodies in a Poisson system, for one cell beside a body. */
#ifndef SK_LINALG_MODES_KERNELS_H
#define SK_LINALG_MODES_KERNELS_H

#include <stddef.h>
#include "base/dimension.h"
#include "base/kernel.h"

/* (A x) of a cell, from its value, its neighbours' and the coefficients of its faces. */
SK_KERNEL double sk_mode_row(const float *x, size_t at, const size_t beside[2 * SELKIE_DIM],
                             const float face[2 * SELKIE_DIM], float excess)
{
    const double here = (double)x[at];
    double sum = (double)excess * here;
    for (int side = 0; side < 2 * SELKIE_DIM; ++side)
        sum += (double)face[side] * (here - (double)x[beside[side]]);
    return sum;
}

/* The flux of a body's modes through a cell, for velocities of the modes. */
SK_KERNEL double sk_mode_flux(const float *flux, const double *velocity, int rank)
{
    double sum = 0.0;
    for (int k = 0; k < rank; ++k)
        sum += (double)flux[k] * velocity[k];
    return sum;
}

#endif

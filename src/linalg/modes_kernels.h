/* Rigid bodies in a Poisson system, for one cell beside a body. */
#ifndef SK_LINALG_MODES_KERNELS_H
#define SK_LINALG_MODES_KERNELS_H

#include <stddef.h>
#include "base/dimension.h"
#include "base/kernel.h"

/* Modes of a body, and zeros up to a whole vector. */
enum { SK_MODES_WIDE = SELKIE_DIM == 3 ? 8 : 4 };

/* (A x) of a cell for several vectors at once, from the values around it and the coefficients of its faces. */
SK_KERNEL void sk_mode_row(const float *x, const float *const beside[2 * SELKIE_DIM], const float face[2 * SELKIE_DIM],
                           float diagonal, float sum[SK_MODES_WIDE])
{
    for (int k = 0; k < SK_MODES_WIDE; ++k)
        sum[k] = diagonal * x[k];
    for (int side = 0; side < 2 * SELKIE_DIM; ++side)
        for (int k = 0; k < SK_MODES_WIDE; ++k)
            sum[k] -= face[side] * beside[side][k];
}

/* The flux of a body's modes through a cell, for velocities of the modes. */
SK_KERNEL float sk_mode_flux(const float flux[SK_MODES_WIDE], const float velocity[SK_MODES_WIDE])
{
    float sum[2] = {0.0f, 0.0f};
    for (int k = 0; k < SK_MODES_WIDE; k += 2) {
        sum[0] += flux[k] * velocity[k];
        sum[1] += flux[k + 1] * velocity[k + 1];
    }
    return sum[0] + sum[1];
}

/* sums += the modes of a cell times its value. */
SK_KERNEL void sk_mode_add(const float modes[SK_MODES_WIDE], float value, float sums[SK_MODES_WIDE])
{
    for (int k = 0; k < SK_MODES_WIDE; ++k)
        sums[k] += modes[k] * value;
}

#endif

/* The liquid's share of cells, faces and edges, from eight sub-cells a cell (four in 2D), for the viscous stress. */
#ifndef SK_METHODS_VISCOSITY_VISCOSITY_KERNELS_H
#define SK_METHODS_VISCOSITY_VISCOSITY_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* The value at the centre of sub-cell n of a cell, interpolated from the centres of the cells around it. Bit d of n is
 * set in the upper half along axis d. corner[m] is the value of the cell that lies towards the sub-cell along the axes
 * of the bits of m; corner[0] is the cell's own. */
SK_KERNEL float sk_viscous_sub_value(const float corner[SK_CORNERS])
{
    float sum = 0.0f;
    for (int m = 0; m < SK_CORNERS; m++) {
        float weight = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            weight *= m >> d & 1 ? 0.25f : 0.75f;
        sum += weight * corner[m];
    }
    return sum;
}

/* Share of a sub-cell, half a cell wide, on the positive side of a flat surface `distance` cells from its centre. */
SK_KERNEL float sk_viscous_sub_share(float distance)
{
    const float share = 0.5f + 2.0f * distance;
    return share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
}

/* A table of count + 1 logarithms at a place between 0 and count; constant beyond. */
SK_KERNEL float sk_viscous_law(const float *table, int count, float place)
{
    const float inside = place > 0.0f ? (place < (float)count ? place : (float)count) : 0.0f;
    const int n = inside < (float)count ? (int)inside : count - 1;
    return table[n] + (inside - (float)n) * (table[n + 1] - table[n]);
}

/* Weight of the shear at a wall over the viscosity. The velocity differs over theta h, half a cell, or over theta h + b
 * with a slip length b: the grip is theta h / (theta h + b). share is the liquid's share around the edge. Exact for
 * Couette flow. */
SK_KERNEL float sk_viscous_wall_weight(float share, float grip)
{
    const float theta = 0.5f;
    return share / (theta * theta) * grip;
}

#endif

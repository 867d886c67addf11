/* Weights, surfaces and open parts of cells: numerics that the grid's phases share, compiled by the C compiler and by
 * nvcc. */
#ifndef SK_GRID_GRID_KERNELS_H
#define SK_GRID_GRID_KERNELS_H

#include "base/kernel.h"

/* Position in cells from the grid's corner. Subtract first, then scale: the same bits wherever it is inlined, since no
 * fused operation can be made of it. */
SK_KERNEL float sk_cell_coordinate(float position, float corner, float inverse_cell_size)
{
    return (position - corner) * inverse_cell_size;
}

/* The linear hat of width two cells: weights of the nodes at -1, 0, +1 around a cell centre for a particle at
 * `fraction` in [0, 1) of the cell. */
SK_KERNEL void sk_hat_weights_centred(float fraction, float weights[3])
{
    float offset = fraction - 0.5f;
    weights[0] = offset < 0.0f ? -offset : 0.0f;
    weights[2] = offset > 0.0f ? offset : 0.0f;
    weights[1] = 1.0f - (weights[0] + weights[2]);
}

/* Likewise for nodes on the lower and upper face of the cell. */
SK_KERNEL void sk_hat_weights_face(float fraction, float weights[3])
{
    weights[0] = 1.0f - fraction;
    weights[1] = fraction;
    weights[2] = 0.0f;
}

/* Distance from a cell centre to the liquid's surface in cells, positive inside, from the fill of the cell: exact for a
 * flat surface across the axis, whose fill by the linear hat is 1 - (1 - d)^2 / 2 below and (1 + d)^2 / 2 above. */
SK_KERNEL float sk_surface_depth(float fill)
{
    float below = 1.0f - __builtin_sqrtf(2.0f * (fill < 1.0f ? 1.0f - fill : 0.0f));
    float above = __builtin_sqrtf(2.0f * (fill > 0.0f ? fill : 0.0f)) - 1.0f;
    return fill >= 0.5f ? below : above;
}

/* Share of the way from a liquid cell's centre to its air neighbour's at which the surface lies (ghost fluid method,
 * Enright et al. 2003), bounded away from 0, where the system would become singular. Where the depths say nothing (a
 * hole in the liquid counted as liquid) it lies in the neighbour's centre. */
SK_KERNEL float sk_surface_theta_of_depths(float inside, float outside)
{
    float theta = inside / (inside - outside);
    theta = theta < 0.05f ? 0.05f : theta;
    return inside > 0.0f && outside < 0.0f && theta < 1.0f ? theta : 1.0f;
}

/* Part of a segment that lies where the distance, linear between its ends, is positive (outside the solid). A face that
 * lies wholly in the solid's surface, all zero, is closed. */
SK_KERNEL float sk_open_segment(float a, float b)
{
    if (a <= 0.0f && b <= 0.0f)
        return 0.0f;
    if (a >= 0.0f && b >= 0.0f)
        return 1.0f;
    return a > 0.0f ? a / (a - b) : b / (b - a);
}

/* Part of a triangle outside, the distance being linear on it. */
SK_KERNEL float sk_open_triangle(float a, float b, float c)
{
    int inside = (a < 0.0f) + (b < 0.0f) + (c < 0.0f);
    if (a <= 0.0f && b <= 0.0f && c <= 0.0f)
        return 0.0f;
    if (inside == 0)
        return 1.0f;
    if (inside == 1) { /* turn the inner one into a */
        float t = a;
        if (b < 0.0f) {
            a = b;
            b = c;
            c = t;
        } else if (c < 0.0f) {
            a = c;
            c = b;
            b = t;
        }
        return 1.0f - (a / (a - b)) * (a / (a - c));
    }
    float t = a; /* turn the outer one into a */
    if (b >= 0.0f) {
        a = b;
        b = c;
        c = t;
    } else if (c >= 0.0f) {
        a = c;
        c = b;
        b = t;
    }
    return (a / (a - b)) * (a / (a - c));
}

/* Part of a square outside, from its corner values in order around it: four triangles around the mean in the middle, so
 * that no diagonal is preferred. */
SK_KERNEL float sk_open_square(float a, float b, float c, float d)
{
    float middle = 0.25f * ((a + c) + (b + d));
    return 0.25f * ((sk_open_triangle(a, b, middle) + sk_open_triangle(c, d, middle)) +
                    (sk_open_triangle(b, c, middle) + sk_open_triangle(d, a, middle)));
}

#endif

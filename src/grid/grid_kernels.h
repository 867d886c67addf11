/* Weights, surfaces and open parts of cells: numerics that the grid's phases share, compiled by the C compiler and by
 * nvcc. */
#ifndef SK_GRID_GRID_KERNELS_H
#define SK_GRID_GRID_KERNELS_H

#include "base/kernel.h"

/* Position in cells from the grid's corner. It subtracts before it scales, so that no compiler can fuse the two. All
 * callers get the same bits. */
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

/* Distance from a cell centre to the liquid surface in cells, positive inside, from the fill of the cell. It is exact
 * for a flat surface across an axis. The fill by the linear hat is then 1 - (1 - d)^2 / 2 below the surface and (1 +
 * d)^2 / 2 above. */
SK_KERNEL float sk_surface_depth(float fill)
{
    float below = 1.0f - __builtin_sqrtf(2.0f * (fill < 1.0f ? 1.0f - fill : 0.0f));
    float above = __builtin_sqrtf(2.0f * (fill > 0.0f ? fill : 0.0f)) - 1.0f;
    return fill >= 0.5f ? below : above;
}

/* Position of the surface between the centres of a liquid cell and its air neighbour, 0 to 1 (ghost fluid method,
 * Enright et al. 2003). The result is 1 if the depths show no surface, as in a hole that counts as liquid. `least` is
 * the least depth of a liquid cell, in cells: it keeps the system regular. The limit is on the depth and not on theta:
 * a limit on each theta would let a cell at the surface push sideways by up to the whole weight of gravity, whatever
 * the slope of the surface. */
SK_KERNEL float sk_surface_theta_of_depths(float inside, float outside, float least)
{
    const float depth = inside > least ? inside : least;
    const float theta = depth / (depth - outside);
    return inside >= 0.0f && outside < 0.0f && theta < 1.0f ? theta : 1.0f;
}

/* Open part of a segment, where the distance is positive (outside the solid) and linear between the ends. A segment
 * with zero distance at both ends is closed. */
SK_KERNEL float sk_open_segment(float a, float b)
{
    if (a <= 0.0f && b <= 0.0f)
        return 0.0f;
    if (a >= 0.0f && b >= 0.0f)
        return 1.0f;
    return a > 0.0f ? a / (a - b) : b / (b - a);
}

/* Open part of a triangle with a linear distance. */
SK_KERNEL float sk_open_triangle(float a, float b, float c)
{
    int inside = (a < 0.0f) + (b < 0.0f) + (c < 0.0f);

    /* All corners on one side: closed or open. */
    if (a <= 0.0f && b <= 0.0f && c <= 0.0f)
        return 0.0f;
    if (inside == 0)
        return 1.0f;

    /* One corner inside: the closed part is the triangle at this corner. */
    if (inside == 1) { /* rotate the corner inside into a */
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

    /* Two corners inside: the open part is the triangle at the third corner. */
    float t = a; /* rotate the corner outside into a */
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

/* Open part of a square, from its corner values in order around it. Four triangles around the mean in the middle
 * prefer no diagonal. */
SK_KERNEL float sk_open_square(float a, float b, float c, float d)
{
    float middle = 0.25f * ((a + c) + (b + d));
    return 0.25f * ((sk_open_triangle(a, b, middle) + sk_open_triangle(c, d, middle)) +
                    (sk_open_triangle(b, c, middle) + sk_open_triangle(d, a, middle)));
}

#endif

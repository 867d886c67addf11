/* Periodic axes: indices and positions beyond a side that is joined to the opposite one. Compiled by the C compiler and
 * by nvcc. */
#ifndef SK_GRID_WRAP_KERNELS_H
#define SK_GRID_WRAP_KERNELS_H

#include "base/kernel.h"

/* An index in [0, count), `count` apart from the given one or a multiple of it. */
SK_KERNEL int sk_wrap_index(int index, int count)
{
    const int rest = index % count;
    return rest < 0 ? rest + count : rest;
}

/* A position (m) moved by whole periods into [low, last]. `last` is the largest float in the domain: rounding must not
 * move a particle to its far side, where no cell is. NaN stays NaN. */
SK_KERNEL float sk_wrap_position(float x, float low, float last, float period)
{
    if (x >= low && x <= last)
        return x;
    x -= period * __builtin_floorf((x - low) / period);
    return x < low ? low : x > last ? last : x;
}

/* The difference (m) of a position and the nearest image of another, from their own difference. */
SK_KERNEL float sk_wrap_difference(float difference, float period)
{
    if (difference > 0.5f * period)
        return difference - period;
    return difference < -0.5f * period ? difference + period : difference;
}

#endif

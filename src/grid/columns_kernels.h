/* Particles among the nodes of columns, for probes of heights and levels (world/columns.h); compiled by the C compiler
 * and by nvcc.
 *
 * Sums are whole numbers, parts of a particle: they do not depend on the order of the particles. */
#ifndef SK_GRID_COLUMNS_KERNELS_H
#define SK_GRID_COLUMNS_KERNELS_H

#include <stdint.h>

#include "base/kernel.h"

/* Sums of an interval; the sum of a particle. */
enum { sk_interval_sums = 8, sk_column_unit = 1 << 16 };

/* Adding it to a float below 2^22 leaves the nearest whole number in the low bits. */
#define SK_COLUMN_ROUNDER 12582912.0f

/* Where the nodes are. Axes: along the slabs, across them, up. */
typedef struct sk_column_frame {
    int dimension;
    int axis[3];            /* of the domain; 2 for that across in 2D */
    float scale, offset[3]; /* distance from the middle between the first two nodes = position (m) * scale + offset */
    float low[3];           /* m  lower corner of the domain */
    float end[3];           /* number of intervals */
    int rows, length;       /* rows of a plane, nodes of a row */
} sk_column_frame;

/* What a particle adds to the column over a height probe: at the nodes below and above it. `middle` is the place of
 * the probe in nodes. Returns the node below. */
SK_KERNEL int sk_column_height_part(const sk_column_frame *frame, const float position[3], const float middle[4],
                                    uint32_t parts[2])
{
    float weight = (float)sk_column_unit * middle[3];
    for (int a = 0; a < frame->dimension - 1; a++) {
        const int d = frame->axis[a];
        const float share = 1.0f - __builtin_fabsf((position[d] - frame->low[d]) * frame->scale + 0.5f - middle[d]);
        weight *= share > 0.0f ? share : 0.0f;
    }
    const int up = frame->axis[2];
    const float g = (position[up] - frame->low[up]) * frame->scale + 0.5f;
    const int node = (int)g;
    const uint32_t all = (uint32_t)(weight + 0.5f), upper = (uint32_t)(weight * (g - (float)node) + 0.5f);
    parts[0] = all - upper;
    parts[1] = upper;
    return node;
}

/* The bin of a position along an axis, the nearest one where it is beyond all. */
SK_KERNEL int sk_column_bin(float position, float low, float scale, int bins)
{
    const int bin = (int)((position - low) * scale);
    return bin < 0 ? 0 : bin >= bins ? bins - 1 : bin;
}

#endif

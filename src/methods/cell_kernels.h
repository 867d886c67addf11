/* The state of one cell: its fill, its depth below the surface, and whether it is liquid. classify_dim.c has the form
 * for rows of cells. */
#ifndef SK_METHODS_CELL_KERNELS_H
#define SK_METHODS_CELL_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"

/* Density over the capacity of the open part of the kernel around the centre. `blurred` is the share of the kernel
 * inside solids. */
SK_KERNEL float sk_cell_fill(float density, float blurred)
{
    const float room = 1.0f - blurred;
    return density / (room > 0.05f ? room : 0.05f);
}

/* The fill of a cell that a rigid body covers for the most part: its own kernel sees too few particles. The cells
 * around it count by their room. The first values are the cell's own, then its neighbours'. */
SK_KERNEL float sk_covered_cell_fill(const float density[1 + 2 * SELKIE_DIM], const float blurred[1 + 2 * SELKIE_DIM])
{
    float sum = 0.0f, squares = 0.0f;
    for (int n = 0; n < 1 + 2 * SELKIE_DIM; n++) {
        const float room = 1.0f - blurred[n];
        sum += room * density[n];
        squares += room * room;
    }
    return sum / (squares > 1e-4f ? squares : 1e-4f);
}

/* Part of a cell below the surface, from the depth of its centre (cells). */
SK_KERNEL float sk_cell_part_below(float depth)
{
    const float part = 0.5f + depth;
    return part > 0.0f ? (part < 1.0f ? part : 1.0f) : 0.0f;
}

/* Liquid of an open cell that counts as volume: at most its open part. */
SK_KERNEL float sk_cell_volume(float density, float room)
{
    return density < room ? density : room;
}

/* Eq. 19 of Kugelstadt et al. 2019: particles over their number at rest, at most 1. */
SK_KERNEL float sk_cell_counted(int particles, float inverse_at_rest)
{
    const float part = (float)particles * inverse_at_rest;
    return part < 1.0f ? part : 1.0f;
}

/* Is an open cell liquid by itself? Ghost fluid: if its centre lies below the surface. Voxels: if it holds a particle.
 * A cell whose kernel an obstacle cuts may be full and hold none, so that the surface decides there as well. */
SK_KERNEL int sk_cell_is_liquid(int voxel, int occupied, int cut, float fill)
{
    const int below = fill >= 0.5f;
    return voxel ? occupied || (cut && below) : below;
}

/* Is an open cell a hole in the liquid? A hole is less than half full but has no empty neighbour across an open face.
 * Neighbours and faces are numbered -x +x -y +y -z +z. */
SK_KERNEL int sk_cell_is_hole(float fill, const int occupied[2 * SELKIE_DIM], const float open[2 * SELKIE_DIM])
{
    int hole = fill > 0.0f;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        hole &= occupied[side] || open[side] == 0.0f;
    return hole;
}

/* Is a cell liquid, with liquid behind each of its open faces? */
SK_KERNEL int sk_cell_is_inner(int liquid, const int liquid_beside[2 * SELKIE_DIM], const float open[2 * SELKIE_DIM])
{
    int inner = liquid;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        inner &= liquid_beside[side] || open[side] == 0.0f;
    return inner;
}

#endif

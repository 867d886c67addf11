/* What one cell is: how full it is, how deep below the surface it lies, and whether it is liquid. The twin for rows of
 * cells is in classify_dim.c. */
#ifndef SK_METHODS_CELL_KERNELS_H
#define SK_METHODS_CELL_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"

/* Density over what the open part of the kernel around the centre can hold; `blurred` is the solids' share of it. */
SK_KERNEL float sk_cell_fill(float density, float blurred)
{
    const float room = 1.0f - blurred;
    return density / (room > 0.05f ? room : 0.05f);
}

/* Part of a cell below the surface, as the depth of its centre (cells) says. */
SK_KERNEL float sk_cell_part_below(float depth)
{
    const float part = 0.5f + depth;
    return part > 0.0f ? (part < 1.0f ? part : 1.0f) : 0.0f;
}

/* Liquid of an open cell that counts as volume: no more than fits. */
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

/* Is an open cell liquid by itself? Voxels: where it holds a particle. Ghost fluid: where its centre lies below the
 * surface. */
SK_KERNEL int sk_cell_is_liquid(int voxel, int occupied, float fill)
{
    return voxel ? occupied : fill >= 0.5f;
}

/* Is an open cell a hole in the liquid: thin, but without an empty neighbour that it is open to? Neighbours and faces
 * are those at -x +x -y +y -z +z. */
SK_KERNEL int sk_cell_is_hole(float fill, const int occupied[2 * SELKIE_DIM], const float open[2 * SELKIE_DIM])
{
    int hole = fill > 0.0f;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        hole &= occupied[side] || open[side] == 0.0f;
    return hole;
}

/* Is a cell liquid and without an open face to anything else? */
SK_KERNEL int sk_cell_is_inner(int liquid, const int liquid_beside[2 * SELKIE_DIM], const float open[2 * SELKIE_DIM])
{
    int inner = liquid;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        inner &= liquid_beside[side] || open[side] == 0.0f;
    return inner;
}

#endif

/* The cells of a shape (geom/voxels.h) and the search for the one at a point. Compiled by the C compiler and by nvcc.
 */
#ifndef SK_GEOM_VOXELS_KERNELS_H
#define SK_GEOM_VOXELS_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "base/kernel.h"

typedef struct sk_voxels {
    struct sk_memory *memory;
    int dimension;
    double low[3];       /* m  lower corner of cell 0 0 0, in the shape's own frame */
    double cell;         /* m  side of a cell */
    int cells[3];        /*    of the grid: the shape's box and one more all around */
    size_t count;        /*    cells taken */
    size_t solid_count;  /*    cells of the shape, taken or not (a shell leaves the inner ones out) */
    float (*centers)[3]; /* m  of the cells taken, x fastest */
    int32_t *places;     /*    [cells] place in `centers`, -1: not taken */
} sk_voxels;

/* Number of a cell among all of the grid. */
SK_KERNEL size_t sk_voxels_cell(const sk_voxels *voxels, int i, int j, int k)
{
    return (size_t)i + (size_t)voxels->cells[0] * ((size_t)j + (size_t)voxels->cells[1] * (size_t)k);
}

/* The taken cell that a point of the shape's own frame falls into, as a place in `centers`; -1 if none. */
SK_KERNEL int32_t sk_voxels_at(const sk_voxels *voxels, const double local[3])
{
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < voxels->dimension; d++) {
        const double place = floor((local[d] - voxels->low[d]) / voxels->cell);
        if (!(place >= 0.0 && place < voxels->cells[d]))
            return -1;
        cell[d] = (int)place;
    }
    return voxels->places[sk_voxels_cell(voxels, cell[0], cell[1], cell[2])];
}

#endif

/* The cells of a shape on a grid of cubic cells.
 *
 * Liquid boundaries (Cornelis et al. 2015, Section 3.2) use such a grid: cells of a particle's diameter hold at most
 * one particle each, which neither leaves gaps nor squeezes. A cell belongs to the shape if its centre lies inside. For
 * meshes the parity of crossings along a line through the centre decides, one line for each axis, by majority of the
 * axes (Nooruddin and Turk 2003): a hole or a doubled triangle changes one vote, not the result. Primitives use their
 * inside test. Parts too thin to hold the centres of a closed layer (sheets, fins, open meshes) are marked from samples
 * of their surface. So thick parts keep their volume and thin ones have no holes.
 *
 * Shells: a cell is of layer 1 if one of the 26 cells around it (8 in 2D) does not belong to the shape, of layer 2 if
 * one of them is of layer 1, and so on. One layer already separates inside from outside, diagonally as well.
 */

#ifndef SK_GEOM_VOXELS_H
#define SK_GEOM_VOXELS_H

#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"
#include "geom/shape.h"
#include "geom/voxels_kernels.h"

typedef struct sk_voxels_options {
    double cell;              /* m  side of a cell */
    int layers;               /*    to take; 0: all */
    const double *low, *high; /* m  [3] box that infinite shapes are cut to */
    int threads;
    const char *what;  /*    name of the shape in messages */
    sk_memory *memory; /*    may be NULL */
} sk_voxels_options;

/* The grid is centred on the shape: a box of whole cells is made of exactly these. */
selkie_code sk_voxels_create(const sk_shape *shape, const sk_voxels_options *options, sk_voxels *voxels,
                             selkie_error *error);
void sk_voxels_free(sk_voxels *voxels);

#endif

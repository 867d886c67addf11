/* The cell index of a neighbour search: points sorted by the cells of a table of blocks. */
#ifndef SK_PARTICLES_CELL_INDEX_KERNELS_H
#define SK_PARTICLES_CELL_INDEX_KERNELS_H

#include <stdint.h>

#include "base/block_table_kernels.h"

/* particles/cell_index.h fills it for the particles, the SPH walls fill it for boundary particles. base/dimension.h
 * sets the size of a block. */
typedef struct sk_cell_index {
    int blocks[3];                   /* of the grid along each axis */
    int periodic;                    /* bit d: the sides across axis d are joined */
    float period[3];                 /* m  along such an axis */
    int block_count;                 /* slots 1 .. block_count hold points; the others count as absent */
    sk_block_table table;            /* slot of each block; 0 = absent */
    const int32_t (*coordinates)[4]; /* [block_count + 1] place of each block along the axes; or NULL */
    const int32_t (*neighbours)[27]; /* [block_count + 1] slots of the 3^dimension blocks around, x fastest; or NULL */
    const uint32_t *cell_start;      /* [block_count * cells of a block + 1] first point of each cell; slot 1 first */
} sk_cell_index;

/* Points [from, to). */
typedef struct sk_cell_range {
    uint32_t from, to;
} sk_cell_range;

#endif

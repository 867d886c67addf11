/* Points sorted by the cells of a table of blocks, as a search sees them. */
#ifndef SK_PARTICLES_CELL_INDEX_KERNELS_H
#define SK_PARTICLES_CELL_INDEX_KERNELS_H

#include <stdint.h>

/* Whoever sorts the points fills it: grid/cell_index.h for the particles, the walls of SPH for boundary particles. A
 * block is as large as base/dimension.h says. */
typedef struct sk_cell_index {
    int blocks[3];                   /* places of the table along each axis */
    int block_count;                 /* slots 1 .. block_count hold points; the others count as absent */
    const int32_t *table;            /* [places] slot of each block, x fastest; 0 = absent */
    const int32_t (*coordinates)[4]; /* [block_count + 1] place of each block along the axes; or NULL */
    const int32_t (*neighbours)[27]; /* [block_count + 1] slots of the 3^dimension blocks around, x fastest; or NULL */
    const uint32_t *cell_start;      /* [block_count * cells of a block + 1] first point of each cell; slot 1 first */
} sk_cell_index;

/* Points [from, to). */
typedef struct sk_cell_range {
    uint32_t from, to;
} sk_cell_range;

#endif

/* Extrapolation into unknown values. An unknown value (NaN) becomes the mean of its known face neighbours, one layer
 * at a time. Several fields are filled at once. */
#ifndef SK_GRID_EXTRAPOLATE_H
#define SK_GRID_EXTRAPOLATE_H

#include "grid/grid.h"

typedef struct sk_extrapolation {
    float *const *fields;  /* [field_count] */
    float *const *scratch; /* [field_count] fields of the same size */
    int field_count;
    int groups;            /* of fields that have the unknown values of the first group; 0 = 1 */
    const int32_t *blocks; /* [block_count] the blocks to fill */
    int block_count;
    const uint64_t *wanted; /* runs to fill of each block of the grid; NULL = all runs */
    int layers;
    int threads;
} sk_extrapolation;

void sk_extrapolate_2d(const sk_grid *grid, const sk_extrapolation *what);
void sk_extrapolate_3d(const sk_grid *grid, const sk_extrapolation *what);

#endif

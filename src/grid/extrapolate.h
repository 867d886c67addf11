/* Extrapolation into unknown values. An unknown value (NaN) becomes the mean of its known face neighbours, one layer
 * at a time. Only the given blocks are filled, and in them only the `wanted` runs (NULL: all runs). Several fields are
 * filled at once. `scratch` holds as many fields of the same size. */
#ifndef SK_GRID_EXTRAPOLATE_H
#define SK_GRID_EXTRAPOLATE_H

#include "grid/grid.h"

void sk_extrapolate_2d(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                       const int32_t *blocks, int count, const uint64_t *wanted, int layers, int threads);
void sk_extrapolate_3d(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                       const int32_t *blocks, int count, const uint64_t *wanted, int layers, int threads);

#endif

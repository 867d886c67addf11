/* Values around those that are known: unknown ones (NaN) take the mean of their known face neighbours, a layer at a
 * time, in the given blocks, and of these in the runs that somebody wants (NULL: in all). Several fields at once;
 * `scratch` are as many of the same size. */
#ifndef SK_GRID_EXTRAPOLATE_H
#define SK_GRID_EXTRAPOLATE_H

#include "grid/grid.h"

void sk_extrapolate_2d(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                       const int32_t *blocks, int count, const uint64_t *wanted, int layers, int threads);
void sk_extrapolate_3d(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                       const int32_t *blocks, int count, const uint64_t *wanted, int layers, int threads);

#endif

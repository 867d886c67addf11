/* Points spread evenly over the surface of a shape.
 *
 * They stand for the solid where liquid is made of particles (volume-weighted boundary particles: Akinci et al. 2012).
 * What has a regular surface is covered by a lattice or by rings; meshes, height fields and waves by a Poisson-disk
 * sampling that ends with a sweep over a fine lattice, so that no gap is left. The same shape, spacing and seed always
 * give the same points in the same order.
 *
 * `depth` puts the points that far below the surface, so that particles of liquid, which are kept about a spacing away
 * from them, come to rest where the surface is. Where the solid is thinner than twice the depth they lie in its middle.
 */
#ifndef SK_GEOM_SURFACE_POINTS_H
#define SK_GEOM_SURFACE_POINTS_H

#include <stdint.h>
#include "geom/shape.h"

typedef struct sk_surface_points {
    sk_memory *memory;
    size_t count, capacity;
    double (*points)[3]; /* m; the third is 0 in 2D */
} sk_surface_points;

typedef struct sk_surface_points_def {
    double spacing;         /* m  between neighbours, about */
    double depth;           /* m  below the surface, >= 0 */
    double low[3], high[3]; /* m  only what lies in this box; must be finite */
    uint64_t seed;
} sk_surface_points_def;

/* Appends to `points`, which starts zeroed but for its memory. */
selkie_code sk_shape_surface_points(const sk_shape *shape, const sk_surface_points_def *def, sk_surface_points *points,
                                    selkie_error *error);
void sk_surface_points_free(sk_surface_points *points);

#endif

/* Points spread evenly over the surface of a shape.
 *
 * They represent solids for particle liquids (volume-weighted boundary particles: Akinci et al. 2012). Lattices
 * or rings cover regular surfaces. Poisson-disk sampling covers meshes, height fields and waves; a last sweep
 * over a fine lattice closes its gaps. The same shape, spacing and seed always give the same points in the same
 * order.
 *
 * `depth` places the points below the surface: liquid particles keep about a spacing away from them and so come
 * to rest at the surface. In solids thinner than twice the depth the points lie in the middle.
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
    double low[3], high[3]; /* m  clip box; must be finite */
    uint64_t seed;
} sk_surface_points_def;

/* Appends to `points`, which starts zeroed but for its memory. */
selkie_code sk_shape_surface_points(const sk_shape *shape, const sk_surface_points_def *def, sk_surface_points *points,
                                    selkie_error *error);
void sk_surface_points_free(sk_surface_points *points);

#endif

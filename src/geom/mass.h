/* Volume, centre and moments of inertia of a shape filled with matter of density 1. */
#ifndef SK_GEOM_MASS_H
#define SK_GEOM_MASS_H

#include "geom/shape.h"

typedef struct sk_mass_properties {
    double volume;     /* m3; in 2D the area, m2 */
    double center[3];  /* m  of mass */
    double inertia[9]; /* m5 about the centre, row-major; in 2D only the last one, m4, is used */
} sk_mass_properties;

/* Exact for boxes, spheres, cylinders and closed meshes; unions and open meshes are sampled on a lattice, to about 0.1
 * %. An infinite shape is an error; the message begins with `what`. */
selkie_code sk_shape_mass(const sk_shape *shape, const char *what, sk_mass_properties *mass, selkie_error *error);

#endif

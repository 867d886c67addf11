/* Ground from a table of heights: the inside lies below the surface along the up direction.
 *
 * The surface is made of triangles, two to each square of the table, and continues level beyond the table's edge.
 * Distances are exact within `reach` of the surface; farther away they are lower bounds, which is enough to decide
 * whether a block is near the ground.
 */
#ifndef SK_GEOM_HEIGHTFIELD_H
#define SK_GEOM_HEIGHTFIELD_H

#include "base/memory.h"
#include "base/status.h"
#include "geom/ground_kernels.h"

typedef struct sk_heightfield sk_heightfield;

typedef struct sk_heightfield_def {
    const char *path; /* ESRI ASCII grid */
    const char *name; /* for messages */
    int dimension;
    double up[3];
    double scale[3], translate[3]; /* as of a mesh; scale above 0 */
    double reach;                  /* m; 0 = two squares of the table */
} sk_heightfield_def;

selkie_code sk_heightfield_create(const sk_heightfield_def *def, sk_memory *memory, sk_heightfield **field,
                                  selkie_error *error);
void sk_heightfield_destroy(sk_heightfield *field);

/* Whether a point lies below the surface; faster than the sign of the distance. */
int sk_heightfield_inside(const sk_heightfield *field, const double x[3]);
/* Signed distance (m), negative below the surface; `normal` (may be NULL) gets the outward unit normal. */
double sk_heightfield_distance(const sk_heightfield *field, const double x[3], double normal[3]);
/* Infinite but for the highest point. */
void sk_heightfield_bounds(const sk_heightfield *field, double low[3], double high[3]);

/* For pictures: the frame, and the surface over a place. */
const sk_heightfield_frame *sk_heightfield_look(const sk_heightfield *field);
/* Height (m, along up) at a distance east and north of the origin; on the triangles. */
double sk_heightfield_height(const sk_heightfield *field, double east, double north);
/* What kernels ask. */
const sk_ground *sk_heightfield_ground(const sk_heightfield *field);

#endif

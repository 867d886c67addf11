/* Distance to a mesh, and which side of it.
 *
 * One hierarchy of boxes serves both: branch and bound finds the nearest piece, the generalized winding number (far
 * branches as dipoles) the side. Pieces are triangles in 3D, segments in 2D. */
#ifndef SK_GEOM_MESH_DISTANCE_H
#define SK_GEOM_MESH_DISTANCE_H

#include <stddef.h>
#include "base/memory.h"
#include "geom/mesh_kernels.h"

typedef struct sk_mesh_distance sk_mesh_distance;

typedef struct sk_mesh_pieces {
    int dimension;
    size_t count;
    const double (*corners)[3]; /* m [count * dimension] piece after piece */
    int closed;                 /*   the pieces bound a solid */
    const char *name;           /*   for messages */
} sk_mesh_pieces;

/* Copies the corners. */
selkie_code sk_mesh_distance_create(const sk_mesh_pieces *pieces, sk_memory *memory, sk_mesh_distance **mesh,
                                    selkie_error *error);
void sk_mesh_distance_destroy(sk_mesh_distance *mesh);

/* Distance to the nearest piece, m, >= 0. `hint` (may be NULL): a piece that may be near, such as the nearest one of
 * a point close by (SIZE_MAX: none known); gets the nearest one. It speeds up the search, with the same result. */
double sk_mesh_distance_unsigned(const sk_mesh_distance *mesh, const double x[3], size_t *hint);
/* The winding number: 1 inside, 0 outside a closed mesh; in between near a hole. */
double sk_mesh_distance_winding(const sk_mesh_distance *mesh, const double x[3]);
/* Inside: the absolute winding number is above 0.5. */
int sk_mesh_distance_inside(const sk_mesh_distance *mesh, const double x[3]);
/* Negative inside; `normal` (may be NULL) is the outward unit normal. */
double sk_mesh_distance_signed(const sk_mesh_distance *mesh, const double x[3], double normal[3]);

/* The first piece that the segment from a to b crosses: `at` is 0 at a and 1 at b, `normal` (unit) points to the side
 * of a. Returns 1 if the segment comes from outside (the front of the piece), -1 from inside, 0 if there is none. */
int sk_mesh_distance_first_hit(const sk_mesh_distance *mesh, const double a[3], const double b[3], double *at,
                               double normal[3]);
/* What queries read, for kernels. */
const sk_mesh_tree *sk_mesh_distance_tree(const sk_mesh_distance *mesh);

int sk_mesh_distance_closed(const sk_mesh_distance *mesh);
void sk_mesh_distance_bounds(const sk_mesh_distance *mesh, double low[3], double high[3]);
size_t sk_mesh_distance_piece_count(const sk_mesh_distance *mesh);
/* Corners of a piece; in 2D the third is not written. */
void sk_mesh_distance_piece(const sk_mesh_distance *mesh, size_t piece, double corners[3][3]);

#endif

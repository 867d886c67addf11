/* Distance to a mesh, and which side of it.
 *
 * The same hierarchy of boxes answers both: the nearest piece by branch and bound, and the side by the generalized
 * winding number, where far-off branches count as dipoles. Pieces are triangles in 3D, segments in 2D. */
#ifndef SK_GEOM_MESH_DISTANCE_H
#define SK_GEOM_MESH_DISTANCE_H

#include <stddef.h>
#include "base/memory.h"

typedef struct sk_mesh_distance sk_mesh_distance;

/* `corners`: piece after piece, `dimension` points each (m). `closed`: the pieces are known to bound a solid. */
selkie_code sk_mesh_distance_create(int dimension, size_t piece_count, const double (*corners)[3], int closed,
                                    const char *name, sk_memory *memory, sk_mesh_distance **mesh, selkie_error *error);
void sk_mesh_distance_destroy(sk_mesh_distance *mesh);

/* Distance to the nearest piece, m, >= 0. `hint` (may be NULL): a piece that may be near, such as the nearest one of a
 * point close by (SIZE_MAX: none known); gets the nearest one. It makes the search quicker and changes nothing else. */
double sk_mesh_distance_unsigned(const sk_mesh_distance *mesh, const double x[3], size_t *hint);
/* How often the mesh goes around a point: 1 inside, 0 outside a closed one; in between near a hole. */
double sk_mesh_distance_winding(const sk_mesh_distance *mesh, const double x[3]);
/* Inside is where the mesh goes around by more than half, in either direction. */
int sk_mesh_distance_inside(const sk_mesh_distance *mesh, const double x[3]);
/* Negative inside; `normal` (may be NULL) is the outward unit normal. */
double sk_mesh_distance_signed(const sk_mesh_distance *mesh, const double x[3], double normal[3]);

int sk_mesh_distance_closed(const sk_mesh_distance *mesh);
void sk_mesh_distance_bounds(const sk_mesh_distance *mesh, double low[3], double high[3]);
size_t sk_mesh_distance_piece_count(const sk_mesh_distance *mesh);
/* Corners of a piece; in 2D the third is left alone. */
void sk_mesh_distance_piece(const sk_mesh_distance *mesh, size_t piece, double corners[3][3]);

#endif

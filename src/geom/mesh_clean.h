/* Steps between a file's triangles and a sk_solid_mesh; for mesh_import.c and mesh_clean.c. */
#ifndef SK_GEOM_MESH_CLEAN_H
#define SK_GEOM_MESH_CLEAN_H

#include "geom/mesh_import.h"

enum { sk_mesh_triangle_limit = 20000000 };

selkie_code sk_clean_check_point(const double point[3], size_t index, const char *name, selkie_error *error);
/* Packs the distinct points to the front of `points`; welded[i] is the new index of point i. */
selkie_code sk_clean_weld(size_t point_count, double (*points)[3], uint32_t *welded, size_t *vertex_count,
                          const char *name, sk_memory *memory, selkie_error *error);
/* Everything after welding: degenerate triangles, directions, open edges. */
selkie_code sk_clean_mesh(sk_solid_mesh *mesh, const char *name, selkie_error *error);

#endif

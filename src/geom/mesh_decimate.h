/* Fewer triangles where a surface is flat. */
#ifndef SK_GEOM_MESH_DECIMATE_H
#define SK_GEOM_MESH_DECIMATE_H

#include "geom/surface.h"

/* Merges vertices into neighbours while the surface stays within `tolerance` (m) of the planes of its triangles. The
 * vertices that remain keep their place and their values, and a closed mesh stays closed. The result does not depend on
 * threads. */
selkie_code sk_mesh_decimate(sk_mesh *mesh, double tolerance, selkie_error *error);

#endif

/* Mesh files (OBJ, STL, PLY, glTF) as one clean triangle mesh.
 *
 * All parts of a file are merged with the transforms of their nodes, then scaled, rotated and translated by the scene's
 * placement. Vertices in the same place, to single precision, become one (STL has no others), triangles without an area
 * are dropped, the faces of each connected piece are made to agree in direction, and the whole is turned inside out if
 * its volume is negative.
 *
 * Limits: files of at most 1 GiB, 20 million triangles, coordinates within 1e30 m.
 */
#ifndef SK_GEOM_MESH_IMPORT_H
#define SK_GEOM_MESH_IMPORT_H

#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"

typedef struct sk_solid_mesh {
    sk_memory *memory;
    size_t vertex_count;
    double (*vertices)[3]; /* m  [vertex_count] */
    size_t triangle_count;
    uint32_t (*triangles)[3]; /*    [triangle_count], counter-clockwise seen from outside */
    size_t open_edges;        /*    edges that are passed more often in one direction */
} sk_solid_mesh;

typedef struct sk_mesh_placement {
    double scale[3];
    double rotate[3];    /* deg about x, then y, then z */
    double translate[3]; /* m */
} sk_mesh_placement;

/* `path` as it is opened. `what` names the mesh in messages ("obstacles[1].shape"). */
selkie_code sk_solid_mesh_import(const char *path, const sk_mesh_placement *placement, const char *what,
                                 sk_memory *memory, sk_solid_mesh *mesh, selkie_error *error);
/* Takes triangles from memory, three points each, through the same cleaning; `name` stands in messages. */
selkie_code sk_solid_mesh_from_corners(size_t triangle_count, const double (*corners)[3], const char *name,
                                       sk_memory *memory, sk_solid_mesh *mesh, selkie_error *error);
void sk_solid_mesh_release(sk_solid_mesh *mesh);

/* Volume inside, m3; never negative for a closed mesh. */
double sk_solid_mesh_volume(const sk_solid_mesh *mesh);

/* Is the mesh a surface without an inside, such as a plate or a cup of zero thickness? Its holes then have more than 2
 * % of its area. Smaller holes are gaps in a solid. */
selkie_code sk_solid_mesh_is_sheet(const sk_solid_mesh *mesh, const char *name, int *sheet, selkie_error *error);
/* All of it in one plane of equal z. */
int sk_solid_mesh_is_flat(const sk_solid_mesh *mesh);
/* The mesh in a 2D scene: its section with the plane z = 0, or, if it is flat, its boundary. Segments have the inside
 * on the left; `segments` is released with sk_release(memory, ...). */
selkie_code sk_solid_mesh_outline(const sk_solid_mesh *mesh, const char *name, sk_memory *memory, size_t *segment_count,
                                  double (**segments)[2][3], selkie_error *error);

#endif

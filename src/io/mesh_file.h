/* A surface of one frame as a file: binary PLY with normals and velocities, or OBJ with
 * normals.
 *
 * OBJ has no velocities, so only PLY has them. Metres and metres per second. */
#ifndef SK_IO_MESH_FILE_H
#define SK_IO_MESH_FILE_H

#include <selkie/scene.h>
#include "geom/surface.h"

typedef struct sk_mesh_frame {
    const sk_mesh *mesh;
    double time; /* s */
    selkie_attribute_names names;
    selkie_up_axis up;
    double scene_up[3];
    double origin[3]; /* m  of the mesh in the scene */
    double detail;    /* m  decides about doubles: sk_needs_doubles */
} sk_mesh_frame;

selkie_code sk_mesh_write_ply(const sk_mesh_frame *frame, const char *path, selkie_error *error);
selkie_code sk_mesh_write_obj(const sk_mesh_frame *frame, const char *path, selkie_error *error);
/* By the ending: .ply or .obj. */
selkie_code sk_mesh_write(const sk_mesh_frame *frame, const char *path, selkie_error *error);

#endif

/* A surface of one frame as a file: binary PLY with normals and velocities, or OBJ with
 * normals, or USD in text.
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
/* USD in text (.usda): one prim, /surface. */
selkie_code sk_mesh_write_usd(const sk_mesh_frame *frame, const char *path, selkie_error *error);
/* A stage that shows the USD files of several frames, each at its time. */
typedef struct sk_usd_stage {
    const char *prefix; /* of the files, before the number */
    size_t count;
    const int64_t *frames; /* in ascending order */
    double fps;            /* 1/s frames */
    char up;               /* Y or Z */
} sk_usd_stage;
selkie_code sk_mesh_write_usd_stage(const char *path, const sk_usd_stage *stage, selkie_error *error);
/* The axis that is up in a file: Y or Z. */
char sk_usd_up(selkie_up_axis wanted, const double scene_up[3]);
/* By the ending: .ply, .obj or .usda. */
selkie_code sk_mesh_write(const sk_mesh_frame *frame, const char *path, selkie_error *error);

#endif

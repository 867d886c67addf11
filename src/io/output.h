/* A world's frame as files, in two steps: what is written, and the writing. The first looks at the world, the second
 * may happen in another thread (writer.h). */
#ifndef SK_IO_OUTPUT_H
#define SK_IO_OUTPUT_H

#include <selkie/world.h>
#include "io/mesh_file.h"
#include "io/particles_file.h"

/* Points a frame to the arrays of a world; `extras` is where frame->extra will point to. */
selkie_code sk_world_frame(const selkie_world *world, sk_frame *frame,
                           selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error);
/* The same without its arrays, which may be old where the world is on a GPU. */
selkie_code sk_world_frame_outline(const selkie_world *world, sk_frame *frame,
                                   selkie_attribute_view extras[SK_MAX_EXTRA_ATTRIBUTES], selkie_error *error);

/* The surface of a frame with the scene's keys for meshes, as a mesh (sk_mesh_free it) that `surface` points to. */
selkie_code sk_frame_surface(const sk_frame *frame, const selkie_scene *scene, int threads, sk_mesh *mesh,
                             sk_mesh_frame *surface, selkie_error *error);
/* Adds the frame's further attributes of one number, and the vorticity, to its surface. */
selkie_code sk_frame_add_values(const sk_frame *frame, const selkie_scene *scene, int threads, sk_mesh *mesh,
                                selkie_error *error);
/* Level set and velocity of a frame (.vdb). */
selkie_code sk_frame_write_volume(const sk_frame *frame, const selkie_scene *scene, int threads, int with_values,
                                  const char *path, selkie_error *error);
/* The surface of a frame with the scene's keys for meshes (.ply or .obj), made with so many threads. */
selkie_code sk_frame_write_surface(const sk_frame *frame, const selkie_scene *scene, int threads, const char *path,
                                   selkie_error *error);

#endif

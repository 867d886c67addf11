/* All frames of a run in one Alembic file: the surface as a mesh, or the particles as points.
 *
 * Objects are /liquid (a transform without effect, which Blender and Maya expect above a shape) and /liquid/surface or
 * /liquid/particles. The number of vertices may change from frame to frame. Velocities are in m/s, for motion blur.
 * Further numbers (vorticity, temperature, material) are arbitrary parameters under the names of the particles' values.
 * Alembic files have y up and faces clockwise from outside; faces are turned round here, axes are those of the frame
 * (output.up).
 */
#ifndef SK_IO_ALEMBIC_FILE_H
#define SK_IO_ALEMBIC_FILE_H

#include "io/mesh_file.h"
#include "io/particles_file.h"

typedef struct sk_alembic sk_alembic;

selkie_code sk_alembic_begin(const char *path, int points, sk_alembic **archive, selkie_error *error);
/* Frames in order of time. */
selkie_code sk_alembic_add_mesh(sk_alembic *archive, const sk_mesh_frame *frame, selkie_error *error);
selkie_code sk_alembic_add_points(sk_alembic *archive, const sk_frame *frame, selkie_error *error);
/* Puts the file in its place if `so_far` is SELKIE_OK. The archive is released in any case; NULL is fine. */
selkie_code sk_alembic_end(sk_alembic *archive, selkie_code so_far, selkie_error *error);

#endif

/* Shapes made ready for questions: inside or outside, how far, where around.
 *
 * Distances are signed, negative inside, in metres. In 2D the third coordinate
 * is ignored. Primitives answer exactly; a union is the least of its members
 * (exact outside); a mesh answers from its triangles through a bounding volume
 * hierarchy, or, where it has been sampled (sk_shape_sample), from a grid of
 * its own.
 */
#ifndef SK_GEOM_SHAPE_H
#define SK_GEOM_SHAPE_H

#include <stddef.h>
#include <selkie/scene.h>
#include "base/memory.h"

typedef struct sk_shape sk_shape;

/* `what` names the shape in messages ("obstacles[1].shape"). `warning` (may be NULL) gets one line if a mesh is not
 * closed, else "". `sample_size` > 0: spacing (m) at which a mesh's distance is sampled on a narrow-band grid, so that
 * later questions are cheap; 0: never sampled. Thread-safe to query after creation. */
selkie_code sk_shape_create(const selkie_shape *def, int dimension, const double up[3], const char *folder,
                            double sample_size, const char *what, sk_memory *memory, sk_shape **shape, char warning[256],
                            selkie_error *error);
void sk_shape_destroy(sk_shape *shape);

double sk_shape_distance(const sk_shape *shape, const double x[3]);
/* Also the outward unit normal (gradient of the distance). */
double sk_shape_distance_normal(const sk_shape *shape, const double x[3], double normal[3]);
/* May be infinite (+-INFINITY) for half spaces and waves. */
void sk_shape_bounds(const sk_shape *shape, double low[3], double high[3]);

/* Triangles of the shape for pictures (and in 2D the outline as line segments, pairs of points): primitives are
 * tessellated and clipped to the box low..high. Points are xyz triples. The caller frees both with free(). */
selkie_code sk_shape_triangles(const sk_shape *shape, const double low[3], const double high[3], size_t *triangle_count,
                               float **triangle_points, selkie_error *error);

/* A rigid pose of a moving obstacle: x_world = rotation (x_local - center) + center + translation. */
typedef struct sk_pose {
    double rotation[9];         /* row-major */
    double translation[3];      /* m */
    double center[3];           /* m, in the local frame */
    double velocity[3];         /* m/s of the center */
    double angular_velocity[3]; /* rad/s, world frame */
} sk_pose;

/* Where an obstacle is at a time (s), and how it moves. Keyframes are interpolated linearly in translation and by
 * spherical interpolation in rotation, held before the first and after the last. */
void sk_pose_at(const selkie_obstacle_def *obstacle, double time, sk_pose *pose);
int sk_obstacle_moves(const selkie_obstacle_def *obstacle);
void sk_pose_to_local(const sk_pose *pose, const double world[3], double local[3]);
void sk_pose_to_world(const sk_pose *pose, const double local[3], double world[3]);
void sk_pose_rotate(const sk_pose *pose, const double local[3], double world[3]);
/* Velocity of the solid at a world point, m/s. */
void sk_pose_velocity(const sk_pose *pose, const double world[3], double velocity[3]);

#endif

/* Shapes made ready for queries: inside or outside, distance, normal, bounds.
 *
 * Distances are signed, negative inside, in metres. In 2D the third
 * coordinate is ignored. Primitives are exact; a union is the minimum of its
 * members (exact outside, right in sign inside). The distance of a mesh comes
 * from its triangles in a bounding volume hierarchy (geom/mesh_distance.h)
 * or, with a sample size, from a sampled grid (geom/mesh_sample.h). In 2D a
 * mesh is its section with the plane z = 0 or, if it is flat, the area within
 * its outline.
 *
 * Queries never fail and never return a NaN for finite points. At centres, on
 * edges and on medial axes the gradient is not unique: the normal is then one
 * of the valid ones. It always has unit length.
 */
#ifndef SK_GEOM_SHAPE_H
#define SK_GEOM_SHAPE_H

#include <stddef.h>
#include <selkie/scene.h>
#include "base/memory.h"
#include "geom/distance_kernels.h"
#include "geom/hit_kernels.h"
#include "geom/pose_kernels.h"

typedef struct sk_shape sk_shape;

typedef struct sk_shape_options {
    int dimension;      /*   2 or 3 */
    const double *up;   /*   [3] direction against gravity; NULL: y */
    const char *folder; /*   relative file names start here; NULL: the current folder */
    double sample_size; /* m spacing of the narrow-band grid on which a mesh's distance is sampled; 0: not sampled */
    int sheets;         /*   an open mesh may be a sheet without an inside; otherwise its winding number decides */
    const char *what;   /*   name of the shape in messages ("obstacles[1].shape") */
    sk_memory *memory;  /*   may be NULL */
    char *warning;      /*   [256], may be NULL; gets one line if a mesh is not closed, else "" */
} sk_shape_options;

/* After creation any number of threads may query the shape. */
selkie_code sk_shape_create(const selkie_shape *def, const sk_shape_options *options, sk_shape **shape,
                            selkie_error *error);
void sk_shape_destroy(sk_shape *shape);

double sk_shape_distance(const sk_shape *shape, const double x[3]);
/* Whether the distance is below 0; faster than the distance for some shapes. */
int sk_shape_inside(const sk_shape *shape, const double x[3]);
/* For filling grids: `count` world points, xyz triples; `pose_or_null` as in sk_obstacle_distance. Runs on the calling
 * thread; the result for a point does not depend on the others. */
void sk_shape_distances(const sk_shape *shape, const sk_pose *pose_or_null, size_t count, const double *points_xyz,
                        double *distances);
/* Also the outward unit normal (gradient of the distance). */
double sk_shape_distance_normal(const sk_shape *shape, const double x[3], double normal[3]);
/* The first place where the segment from a to b enters the shape. A segment that starts inside may leave: no hit. A
 * mesh that is a sheet stops paths from both sides. Exact: nothing is sampled. */
int sk_shape_first_hit(const sk_shape *shape, const double a[3], const double b[3], sk_surface_hit *hit);
/* The signed distance from the surface itself, exact up to `radius` (m) and at least `radius` beyond. The distance of a
 * mesh elsewhere in this header may be sampled and miss thin walls. */
double sk_shape_distance_within(const sk_shape *shape, const double x[3], double radius, double normal[3]);
/* The parts of a shape, at most `most`: itself, or the members of a union. Returns their number, 0 if it has more. */
struct sk_shape_part;
int sk_shape_parts(const sk_shape *shape, struct sk_shape_part *parts, int most);
/* m: the thickness of the shape's walls. At most 5 % of a mesh's surface has less behind it; 0 for a sheet, INFINITY
 * for shapes without a back. Walls thinner than a cell hold liquid, but the grid does not resolve the flow around them.
 */
double sk_shape_thickness(const sk_shape *shape);
/* m: the least width of a convex solid (box, sphere, cylinder); 0 for other shapes. */
double sk_shape_convex_width(const sk_shape *shape);
/* Does the shape contain a sheet, an open mesh without an inside? Its distance is positive on both sides. */
int sk_shape_is_sheet(const sk_shape *shape);
/* May be infinite (+-INFINITY) for half spaces and waves. In 2D the third is 0 .. 0. */
void sk_shape_bounds(const sk_shape *shape, double low[3], double high[3]);

/* A ball that contains the shape: its middle (m). Returns its radius (m), INFINITY for a shape without end. */
double sk_shape_ball(const sk_shape *shape, double middle[3]);

/* Triangles of the shape for pictures (and in 2D the outline as line segments, pairs of points), counter-clockwise seen
 * from outside (2D: the inside on the left). Points are xyz triples: 9 floats a triangle, 6 a segment. Primitives are
 * tessellated; infinite shapes (half space, wave) are clipped to the box low..high. Members of a union follow each
 * other, each complete. The caller releases the points with free(); NULL if there are none. */
selkie_code sk_shape_triangles(const sk_shape *shape, const double low[3], const double high[3], size_t *triangle_count,
                               float **triangle_points, selkie_error *error);

/* Pose and velocities of an obstacle at a time (s). Keyframes are interpolated linearly in translation and by spherical
 * interpolation in rotation (the shorter way: at most half a turn between keys). Before the first and after the last
 * key the pose is constant and velocities are zero. */
void sk_pose_at(const selkie_obstacle_def *obstacle, double time, sk_pose *pose);
/* Adds oscillations to the motion of a pose; the rotation turns about its center, after that of the pose. */
void sk_pose_oscillate(const selkie_oscillation *oscillations, int count, double time, sk_pose *pose);
/* Value and derivatives of the sine of an oscillation with its ramp: its part of the amplitude, 1/s and 1/s2. */
void sk_oscillation_at(const selkie_oscillation *oscillation, double time, double value[3]);
/* Rotation by angles (rad) about x, then y, then z, and the angular velocity (rad/s, world frame) of their rates. */
void sk_rotation_from_angles(const double angles[3], const double rates[3], double rotation[9], double omega[3]);
/* Whether the pose changes with time. A constant pose may still differ from the identity (a single keyframe). */
int sk_obstacle_moves(const selkie_obstacle_def *obstacle);
void sk_pose_identity(sk_pose *pose);
/* Row-major rotation about x, then y, then z. */
void sk_rotation_from_degrees(const double degrees[3], double rotation[9]);
/* Row-major, from w x y z of any length but 0. */
void sk_rotation_from_quaternion(const double wxyz[4], double rotation[9]);
/* w x y z of unit length, w not negative. */
void sk_quaternion_from_rotation(const double rotation[9], double wxyz[4]);

/* The rotation vector (rad, world frame) from one pose to another, the shorter way. */
void sk_pose_turn(const sk_pose *from, const sk_pose *to, double turn[3]);

/* Signed distance of a world point to a shape in a pose (NULL: as it is); `normal_world` may be NULL. */
double sk_obstacle_distance(const sk_shape *shape, const sk_pose *pose_or_null, const double world[3],
                            double normal_world[3]);

#endif

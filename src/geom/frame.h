/* Accelerations in a frame that moves: gravity over time and the motion of the domain (scene.frame).
 *
 * A point of the domain at r from the frame's center lies at c + X + R r. Seen in the frame, liquid is accelerated by
 *   R^T (g - X'') - w' x r - w x (w x r) - 2 w x v
 * with w the angular velocity in the frame: gravity and translation, Euler, centrifugal and Coriolis.
 */
#ifndef SK_GEOM_FRAME_H
#define SK_GEOM_FRAME_H

#include <selkie/scene.h>

typedef struct sk_frame_mean {
    double gravity[3]; /* m/s2  gravity and translation, the same everywhere */
    double slope[9];   /* 1/s2  Euler and centrifugal: times the offset from the center, row-major */
    double omega[3];   /* rad/s */
} sk_frame_mean;

/* Whether the domain moves. */
int sk_frame_moves(const selkie_frame_def *frame);
/* Whether it turns. */
int sk_frame_turns(const selkie_frame_def *frame);
/* Means over a window of time (s); at a moment if both are equal. `gravity` (m/s2) counts where the scene has no
 * gravity over time. */
void sk_frame_mean_of(const selkie_scene *scene, const double gravity[3], double from, double to, sk_frame_mean *mean);

#endif

/* Obstacles that whitewater does not enter. A mark a cell says whether one may be near, so that few particles ask for
 * distances. Positions are relative to domain.origin. */
#ifndef SK_WHITEWATER_OBSTACLES_H
#define SK_WHITEWATER_OBSTACLES_H

#include <selkie/scene.h>
#include <selkie/status.h>

typedef struct sk_foam_obstacles sk_foam_obstacles;

/* NULL if the scene has none. Its array of obstacles must outlive them. */
selkie_code sk_foam_obstacles_create(const selkie_scene *scene, sk_foam_obstacles **obstacles, selkie_error *error);
void sk_foam_obstacles_destroy(sk_foam_obstacles *obstacles);
/* Poses at a time (s), and the marks around them. */
void sk_foam_obstacles_move(sk_foam_obstacles *obstacles, double time, int threads);
/* Keeps a particle that has moved from `before` out of the obstacles: it stops where it meets a wall, or goes to the
 * nearest side, and loses its velocity into the obstacle. Returns 0 if there is no way out. */
int sk_foam_obstacles_keep_out(const sk_foam_obstacles *obstacles, const float before[3], float position[3],
                               float velocity[3]);

#endif

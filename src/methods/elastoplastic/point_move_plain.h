/* The move of one point without obstacles, and the sums over points, for the CPU and the GPU. For files compiled per
 * dimension. */
#ifndef SK_METHODS_POINT_MOVE_PLAIN_H
#define SK_METHODS_POINT_MOVE_PLAIN_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid.h"
#include "particles/store.h"

typedef struct sk_point_move_sums {
    double position[3], kinetic, fastest2;
    int64_t gone, bad;
} sk_point_move_sums;

/* Moves a point with its velocity for dt (s), inside bounds (m) that are infinite at open sides. A point that leaves
 * through one is dead. */
SK_KERNEL void sk_advance_point(const sk_grid *grid, const float low[3], const float high[3], float dt,
                                sk_particle *point)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        float x = point->position[d] + dt * point->velocity[d];
        if ((low[d] == -INFINITY && x < (float)grid->low[d]) || (high[d] == INFINITY && x > (float)grid->high[d]))
            point->flags |= SK_PARTICLE_DEAD;
        x = x < low[d] ? low[d] : x;
        point->position[d] = x > high[d] ? high[d] : x;
    }
}

SK_KERNEL void sk_add_moved_point(const sk_particle *point, sk_point_move_sums *sums)
{
    double speed2 = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        speed2 += (double)point->velocity[d] * point->velocity[d];
    sums->bad += !(speed2 < 1e30);
    if (point->flags & SK_PARTICLE_DEAD) {
        sums->gone++;
        return;
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sums->position[d] += point->position[d];
    sums->kinetic += 0.5 * speed2;
    sums->fastest2 = speed2 > sums->fastest2 ? speed2 : sums->fastest2;
}

#endif

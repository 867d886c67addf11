/* The move of one particle of SPH without obstacles, for the CPU and the GPU. For files compiled per dimension. */
#ifndef SK_METHODS_SPH_INTEGRATE_PLAIN_H
#define SK_METHODS_SPH_INTEGRATE_PLAIN_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid.h"
#include "particles/store.h"

typedef struct sk_sph_bounds {
    float low[3], high[3]; /* m  inside closed walls */
    int open[6];
} sk_sph_bounds;

static inline sk_sph_bounds sk_sph_bounds_of(const sk_grid *grid, const selkie_scene *scene)
{
    sk_sph_bounds bounds;
    const double gap = 1e-3 * grid->cell_size;
    for (int d = 0; d < 3; d++) {
        const int joined = grid->periodic >> d & 1;
        for (int side = 0; side < 2; side++)
            bounds.open[2 * d + side] = scene->domain.walls[2 * d + side] == SELKIE_WALL_OPEN && !joined;
        bounds.low[d] = bounds.open[2 * d] || joined ? -INFINITY : (float)(grid->low[d] + gap);
        bounds.high[d] = bounds.open[2 * d + 1] || joined ? INFINITY : (float)(grid->high[d] - gap);
    }
    return bounds;
}

/* Moves a particle with its velocity for dt (s). It is dead behind an open side. */
SK_KERNEL void sk_sph_advance(const sk_grid *grid, const sk_sph_bounds *bounds, float dt, sk_particle *particle)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        float x = particle->position[d] + dt * particle->velocity[d];
        if ((bounds->open[2 * d] && x < (float)grid->low[d]) || (bounds->open[2 * d + 1] && x > (float)grid->high[d]))
            particle->flags |= SK_PARTICLE_DEAD;
        if (x < bounds->low[d]) {
            x = bounds->low[d];
            particle->velocity[d] = fmaxf(particle->velocity[d], 0.0f);
        } else if (x > bounds->high[d]) {
            x = bounds->high[d];
            particle->velocity[d] = fminf(particle->velocity[d], 0.0f);
        }
        particle->position[d] = x;
    }
}

/* Sums over particles that have moved. */
typedef struct sk_sph_moved_sums {
    double position[3], kinetic, fastest2;
    int64_t gone, bad;
} sk_sph_moved_sums;

SK_KERNEL void sk_sph_add_moved(const sk_particle *particle, sk_sph_moved_sums *sums)
{
    double speed2 = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        speed2 += (double)particle->velocity[d] * (double)particle->velocity[d];
    sums->bad += !(speed2 < 1e30);
    if (particle->flags & SK_PARTICLE_DEAD) {
        sums->gone++;
        return;
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        sums->position[d] += (double)particle->position[d];
    sums->kinetic += 0.5 * speed2;
    sums->fastest2 = speed2 > sums->fastest2 ? speed2 : sums->fastest2;
}

#endif

/* Moves points with their velocities, around obstacles and inside walls, and adds up what the world reports. For files
 * compiled per dimension. */
#ifndef SK_METHODS_POINT_MOVE_H
#define SK_METHODS_POINT_MOVE_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/sweep.h"
#include "methods/elastoplastic/point_move_plain.h"
#include "methods/step.h"

#define SK_MOVE_INLINE static inline __attribute__((unused))

typedef struct sk_point_moving {
    const sk_step *step;
    float dt;                 /* s */
    float low[3], high[3];    /* m  bounds inside closed walls */
    sk_point_move_sums *sums; /* [blocks] */
} sk_point_moving;

SK_MOVE_INLINE selkie_code sk_begin_moving(sk_step *step, sk_point_moving *moving, selkie_error *error)
{
    *moving = (sk_point_moving){.step = step, .dt = (float)step->dt};
    sk_solids_bounds(&step->solids, &step->grid, moving->low, moving->high);
    return sk_step_scratch(step, ((size_t)step->grid.particle_blocks + 1) * sizeof *moving->sums, "move of points",
                           (void **)&moving->sums, error);
}

/* Keeps the path of a point out of obstacles. */
SK_MOVE_INLINE void sk_sweep_point(const sk_point_moving *moving, const float from[3], float clearance,
                                   sk_particle *point)
{
    const sk_solids *solids = &moving->step->solids;
    sk_swept_path path = {.end = 1.0, .deepest = INFINITY};
    sk_touch touch;
    float travelled = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        travelled += fabsf(point->position[d] - from[d]);
        path.from[d] = from[d];
        path.to[d] = point->position[d];
        path.low[d] = moving->low[d];
        path.high[d] = moving->high[d];
    }
    if (travelled < clearance * (float)solids->cell_size || !sk_sweep(solids, &path, &touch))
        return;
    memcpy(point->position, path.to, SELKIE_DIM * sizeof(float));
    sk_sweep_stop(solids, &touch, point->position, point->velocity);
}

/* Moves a point with its velocity and adds it to the sums of its block. */
SK_MOVE_INLINE void sk_move_point(const sk_point_moving *moving, float clearance, sk_particle *point,
                                  sk_point_move_sums *sums)
{
    const float from[3] = {point->position[0], point->position[1], point->position[2]};
    sk_advance_point(&moving->step->grid, moving->low, moving->high, moving->dt, point);
    if (moving->step->solids.obstacle_count && !(point->flags & SK_PARTICLE_DEAD))
        sk_sweep_point(moving, from, clearance, point);
    sk_add_moved_point(point, sums);
}

/* Adds up the blocks in their order. */
SK_MOVE_INLINE selkie_code sk_end_moving(sk_step *step, const sk_point_moving *moving, selkie_error *error)
{
    double fastest2 = 0.0, kinetic = 0.0;
    int64_t bad = 0;
    sk_particles_moved(&step->particles);
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memset(step->positions, 0, sizeof step->positions);
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const sk_point_move_sums *sums = &moving->sums[block];
        step->drained += sums->gone;
        bad += sums->bad;
        kinetic += sums->kinetic;
        fastest2 = fmax(fastest2, sums->fastest2);
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums->position[d];
    }
    step->sums.kinetic = kinetic;
    step->sums.max_speed = sqrt(fastest2);
    step->sums.bad = bad;
    if (bad)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the velocity of %lld points is not a number; the simulation blew up; try a "
                       "smaller time.cfl",
                       (long long)step->step_count + 1, step->time, (long long)bad);
    return SELKIE_OK;
}

#endif

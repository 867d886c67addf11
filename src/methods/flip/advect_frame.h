/* Constants of the advection and its collisions with obstacles, shared by both forms. For files compiled per dimension.
 */
#ifndef SK_METHODS_FLIP_ADVECT_FRAME_H
#define SK_METHODS_FLIP_ADVECT_FRAME_H

#include <math.h>

#include "base/dimension.h"
#include "grid/velocity_kernels.h"
#include "methods/step.h"

typedef struct advect_frame {
    const sk_step *step;
    sk_velocity_blocks velocity;
    float inverse;         /* 1/m */
    float corner[3];       /* m   of the grid */
    float low[3], high[3]; /* m   bounds inside closed walls; open sides are infinite */
    int open[6], any_open;
    float dt; /* s   */
    int order;
    int trapezoidal;   /*     rule of order 2 */
    int bisect;        /*     a particle that cannot be projected onto an obstacle goes back along its path */
    int lists_leavers; /*     list the migrating particles of each block for the next sort */
} advect_frame;

static __attribute__((unused)) advect_frame frame_of(const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    advect_frame frame = {.step = step,
                          .inverse = (float)(1.0 / grid->cell_size),
                          .velocity.table = grid->table,
                          .dt = (float)step->dt,
                          .order = step->scene->advection.order};
    const int unilateral = step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const selkie_advection_rule rule = step->scene->advection.rule;
    frame.trapezoidal =
        frame.order == 2 && (rule == SELKIE_RULE_TRAPEZOIDAL || (rule == SELKIE_RULE_AUTO && unilateral));
    frame.bisect = unilateral && step->scene->unilateral.clip_bisection;
    frame.lists_leavers = sk_step_is_calm(step, step->dt);
    /* A small gap to the walls, so that no particle lies in the cell behind. */
    for (int d = 0; d < 3; d++) {
        frame.velocity.component[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
        frame.velocity.blocks[d] = grid->blocks[d];
        frame.corner[d] = (float)grid->corner[d];
        double gap = 1e-3 * grid->cell_size;
        frame.open[2 * d] = d < SELKIE_DIM && step->scene->domain.walls[2 * d] == SELKIE_WALL_OPEN;
        frame.open[2 * d + 1] = d < SELKIE_DIM && step->scene->domain.walls[2 * d + 1] == SELKIE_WALL_OPEN;
        frame.any_open |= frame.open[2 * d] | frame.open[2 * d + 1];
        frame.low[d] = frame.open[2 * d] ? -INFINITY : (float)(grid->low[d] + gap);
        frame.high[d] = frame.open[2 * d + 1] ? INFINITY : (float)(grid->high[d] - gap);
    }
    return frame;
}

/* Removes the velocity component into the touched solid. */
static __attribute__((unused)) void stop_at_solid(const advect_frame *frame, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    double point[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3], wall[3];
    int obstacle;
    sk_solids_distance(solids, point, normal, &obstacle);
    sk_solids_velocity(solids, obstacle, point, wall);
    double into = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        into += (particle->velocity[d] - wall[d]) * normal[d];
    for (int d = 0; into < 0.0 && d < SELKIE_DIM; d++)
        particle->velocity[d] -= (float)(into * normal[d]);
}

/* Is a particle (m) inside an obstacle? */
static __attribute__((unused)) int is_inside(const advect_frame *frame, const float x[3])
{
    double point[3] = {x[0], x[1], x[2]}, normal[3];
    int obstacle;
    return sk_solids_distance(&frame->step->solids, point, normal, &obstacle) < 0.0 && obstacle >= 0;
}

/* Projects a particle that moved into an obstacle onto its surface, along the gradient of the distance. If that fails
 * (in a nook, or with a wall behind), moves it back along its path to just before the obstacle (Gerszewski, sec.
 * 3.2.4). Returns whether it touched one. */
static __attribute__((unused)) int clip(const advect_frame *frame, const float from[3], float to[3])
{
    float end[3] = {to[0], to[1], to[2]};
    if (!sk_solids_push_out(&frame->step->solids, frame->low, frame->high, to))
        return 0;
    if (!frame->bisect || !is_inside(frame, to) || is_inside(frame, from))
        return 1;
    float outside = 0.0f, inside = 1.0f;
    for (int bisection = 0; bisection < 10; bisection++) {
        float middle = 0.5f * (inside + outside), x[3];
        for (int d = 0; d < 3; d++)
            x[d] = from[d] + middle * (end[d] - from[d]);
        *(is_inside(frame, x) ? &inside : &outside) = middle;
    }
    for (int d = 0; d < 3; d++)
        to[d] = from[d] + outside * (end[d] - from[d]);
    return 1;
}

#endif

/* Constants of the advection and its collisions with obstacles, shared by both forms. For files compiled per dimension.
 */
#ifndef SK_METHODS_FLIP_ADVECT_FRAME_H
#define SK_METHODS_FLIP_ADVECT_FRAME_H

#include <math.h>

#include "base/dimension.h"
#include "grid/sweep.h"
#include "methods/flip/advect_kernels.h"
#include "methods/flip/reflection.h"
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
    int trapezoidal;        /*     rule of order 2 */
    sk_velocity_blocks end; /* the velocity at the end of a reflected step */
    int straight;           /*     paths end at a straight drift with it: see sk_straighten */
    float reach;            /* m   its largest distance from the path along the field */
    int lists_leavers;      /*     list the migrating particles of each block for the next sort */
} advect_frame;

static __attribute__((unused)) advect_frame frame_of(const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    advect_frame frame = {.step = step,
                          .inverse = (float)(1.0 / grid->cell_size),
                          .dt = (float)step->dt,
                          .order = step->scene->advection.order};

    /* The automatic rule is trapezoidal if incompressibility is unilateral. */
    const int unilateral = step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const selkie_advection_rule rule = step->scene->advection.rule;
    frame.trapezoidal =
        frame.order == 2 && (rule == SELKIE_RULE_TRAPEZOIDAL || (rule == SELKIE_RULE_AUTO && unilateral));
    frame.velocity.table = frame.end.table = grid->table;
    frame.velocity.periodic = frame.end.periodic = grid->periodic;

    /* Straight drift of reflections, and whether to list migrating particles. */
    frame.straight = flip_reflects(step);
    frame.reach = frame.straight ? flip_drift_reach(step) : 0.0f;
    frame.lists_leavers = sk_step_is_calm(step, step->dt);

    /* A small gap to the walls, so that no particle lies in the cell behind. */
    for (int d = 0; d < 3; d++) {
        frame.velocity.component[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
        frame.end.component[d] = grid->fields[step->end_velocity + d];
        frame.velocity.blocks[d] = frame.end.blocks[d] = grid->blocks[d];
        frame.corner[d] = (float)grid->corner[d];
        double gap = 1e-3 * grid->cell_size;
        const int joined = grid->periodic >> d & 1;
        for (int side = 0; side < 2; side++) {
            const selkie_wall wall = step->scene->domain.walls[2 * d + side];
            frame.open[2 * d + side] = d < SELKIE_DIM && wall == SELKIE_WALL_OPEN && !joined;
            frame.any_open |= frame.open[2 * d + side];
        }
        frame.low[d] = frame.open[2 * d] || joined ? -INFINITY : (float)(grid->low[d] + gap);
        frame.high[d] = frame.open[2 * d + 1] || joined ? INFINITY : (float)(grid->high[d] - gap);
    }
    return frame;
}

/* The same for the functions of advect_kernels.h. */
static __attribute__((unused)) sk_advection advection_of(const advect_frame *frame)
{
    const sk_grid *grid = &frame->step->grid;
    sk_advection a = {.velocity = frame->velocity,
                      .inverse = frame->inverse,
                      .dt = frame->dt,
                      .order = frame->order,
                      .trapezoidal = frame->trapezoidal,
                      .end = frame->end,
                      .straight = frame->straight,
                      .reach = frame->reach};
    for (int d = 0; d < 3; d++) {
        a.corner[d] = frame->corner[d];
        a.low[d] = frame->low[d];
        a.high[d] = frame->high[d];
        a.leaves_below[d] = frame->open[2 * d] ? (float)grid->low[d] : -INFINITY;
        a.leaves_above[d] = frame->open[2 * d + 1] ? (float)grid->high[d] : INFINITY;
    }
    return a;
}

/* Moves a particle from a place to another during a part of the step, without crossing an obstacle. `inside`: it was
 * left inside one by the density projection and stays there. Returns whether it touched one. */
static __attribute__((unused)) int sweep_particle(const advect_frame *frame, const float from[3], float to[3],
                                                  double begin, double end, int inside, sk_touch *touch)
{
    sk_swept_path path = {.begin = begin, .end = end, .deepest = inside ? 0.0 : INFINITY};
    for (int d = 0; d < SELKIE_DIM; d++) {
        path.from[d] = from[d];
        path.to[d] = to[d];
        path.low[d] = frame->low[d];
        path.high[d] = frame->high[d];
    }

    /* Obstacles lie in the domain; a path may have left it through a joined side. */
    const sk_grid *grid = &frame->step->grid;
    float away[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; grid->periodic && d < SELKIE_DIM; d++)
        if (grid->periodic >> d & 1) {
            away[d] = grid->period[d] * floorf((from[d] - (float)grid->low[d]) / grid->period[d]);
            path.from[d] -= away[d];
            path.to[d] -= away[d];
        }
    if (!sk_sweep(&frame->step->solids, &path, touch))
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        to[d] = path.to[d] + away[d];
    return 1;
}

#endif

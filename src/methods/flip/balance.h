/* Gravity in balance with pressure while viscosity acts: see balance_dim.c. Private to flip/. */
#ifndef SK_METHODS_FLIP_BALANCE_H
#define SK_METHODS_FLIP_BALANCE_H

#include "defs/materials.h"
#include "methods/step.h"

/* Is there a surface that viscous liquid sticks to, or an obstacle, whose surface may be oblique? Where nothing but
 * level slip walls holds the liquid back, gravity acts on all of it alike and the viscous solve leaves it as it is.
 * Unilateral pressure has other unknowns, and bodies of particles have a velocity of their own at a face: both are left
 * as they were. */
static inline int flip_scene_balances(const selkie_scene *scene)
{
    int holds = scene->obstacle_count > 0;
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        holds |= scene->domain.walls[side] == SELKIE_WALL_NO_SLIP && !(scene->domain.periodic >> side / 2 & 1);
    for (int b = 0; b < scene->body_count; b++)
        holds |= scene->bodies[b].surface == SELKIE_WALL_NO_SLIP;
    return holds && scene->discretization == SELKIE_DISCRETIZATION_GRID && sk_scene_viscosity(scene) > 0.0 &&
           scene->incompressibility != SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

static inline int flip_balances(const sk_step *step)
{
    return flip_scene_balances(step->scene) && !step->liquid_mask;
}

#endif

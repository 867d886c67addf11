/* Gravity in balance with pressure while viscosity acts: see balance_dim.c. */
#ifndef SK_METHODS_FLIP_BALANCE_H
#define SK_METHODS_FLIP_BALANCE_H

#include "defs/materials.h"
#include "linalg/poisson.h"
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

#define FLIP_BALANCE(dim)                                                                                              \
    /* The change of the bodies by the pressure, from the sums of flux times q over each body. */                      \
    void sk_flip_find_held_##dim(sk_step *step, const double(*sums)[SK_POISSON_MODES]);                                \
    /* Adds it to the velocities of the grid inside them, or with -1 takes it out. */                                  \
    selkie_code sk_flip_hold_bodies_##dim(sk_step *step, double sign, selkie_error *error);
FLIP_BALANCE(2d)
FLIP_BALANCE(3d)

#endif

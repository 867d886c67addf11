/* Gravity in balance with pressure while viscosity acts.
 *
 * Viscosity acts before the pressure solve, on liquid that gravity has just set falling. Surfaces that hold the liquid
 * (no slip) take a part of that fall from the layer beside them, and the pressure solve gives the layer all of it back:
 * a pool at rest would circulate at up to 0.9 g x step for ever. So pressure acts first: with q the potential that
 * makes the velocity free of divergence, viscosity sees v - grad q (`balance`), and the gradient is taken out again
 * afterwards (`release`). What is left is the change by viscosity alone. The pressure solve then sees all forces.
 *
 * Each kind of pressure has a `balance` of its own: flip/balance_dim.c, uic/uic_pressure_dim.c.
 */
#ifndef SK_METHODS_BALANCE_H
#define SK_METHODS_BALANCE_H

#include "defs/materials.h"
#include "linalg/poisson.h"
#include "methods/step.h"

/* Is there a surface that viscous liquid sticks to, or an obstacle, whose surface may be oblique? Where nothing but
 * level slip walls holds the liquid back, gravity acts on all of it alike and the viscous solve leaves it as it is. Not
 * so with unilateral pressure, whose free surface is not that of viscosity: it needs the balance beside any wall.
 * Unilateral pressure that bounds densities (the source's form of the prediction) is left as it was. */
static inline int sk_scene_balances(const selkie_scene *scene)
{
    const int unilateral = scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    int holds = scene->obstacle_count > 0 || unilateral;
    for (int side = 0; side < 2 * scene->domain.dimension; side++)
        holds |= scene->domain.walls[side] == SELKIE_WALL_NO_SLIP && !(scene->domain.periodic >> side / 2 & 1);
    for (int b = 0; b < scene->body_count; b++)
        holds |= scene->bodies[b].surface == SELKIE_WALL_NO_SLIP;
    return holds && scene->discretization == SELKIE_DISCRETIZATION_GRID && sk_scene_viscosity(scene) > 0.0 &&
           (!unilateral || scene->unilateral.prediction == SELKIE_PREDICTION_PARTICLES);
}

/* Bodies of particles have a velocity of their own at a face, and are left as they were. */
static inline int sk_step_balances(const sk_step *step)
{
    return sk_scene_balances(step->scene) && !step->liquid_mask;
}

#define SK_BALANCE(dim)                                                                                                \
    /* Adds the fields of the balance to the velocities of liquid and bodies; with -1 takes them out. */               \
    selkie_code sk_balance_add_##dim(sk_step *step, double sign, selkie_error *error);                                 \
    /* The change of the bodies by the pressure, from the sums of flux times q over each body. */                      \
    void sk_balance_find_held_##dim(sk_step *step, const double(*sums)[SK_POISSON_MODES]);                             \
    /* Adds it to the velocities of the grid inside them, or with -1 takes it out. */                                  \
    selkie_code sk_balance_hold_bodies_##dim(sk_step *step, double sign, selkie_error *error);                         \
    /* The phase `release`. */                                                                                         \
    selkie_code sk_balance_release_##dim(sk_step *step, selkie_error *error);
SK_BALANCE(2d)
SK_BALANCE(3d)

#endif

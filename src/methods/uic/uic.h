/* Unilateral incompressibility (Gerszewski, "Physics-based animation of large-scale splashing liquids", chapter 3 of
 * the dissertation): liquid that does not compress but may come apart.
 *
 * The mass of a cell is bounded by the room of its kernel outside the solids (Eq. 3.13). Pressure never pulls and acts
 * only in full cells. This is a linear complementarity problem in place of the Poisson equation. With density over rest
 * density, lengths in cells and the unknown q = p dt^2 / (rest density h^2), a row is
 *
 *     room - density' >= 0,  q >= 0,  one of them 0,     density' = predicted - sum over faces of V_f (q_i - q_j)
 *
 * `predicted` is the density at the end of the step without pressure, and V_f the room of the kernel around a face. A
 * face's velocity changes by (h / dt) V_f (q_low - q_i) over its density (Eq. 3.8). The particles around a face gain
 * exactly the momentum of the pressure, so momentum is conserved to round-off.
 *
 * Density is noisy, and its noise must not become velocity. So rows of full cells bound the flow instead: the volume
 * that a full cell gains in the step is at most its spare room (SPARE). `predicted` counts in the other cells.
 *
 * A second problem of the same kind comes first. It shifts particles that are already too dense, right before they move
 * and without a change of velocity. Otherwise density errors would turn into velocity.
 *
 * docs/decisions/0009-unilateral.md lists the differences from the source and their reasons.
 */
#ifndef SK_METHODS_UIC_UIC_H
#define SK_METHODS_UIC_UIC_H

#include <math.h>

#include "base/kernel.h"
#include "defs/materials.h"
#include "methods/method.h"

extern const sk_method sk_method_uic;

typedef struct sk_uic_state {
    int spare;           /* field: density that a full cell may gain before pressure resists; -1 in other cells */
    int surface_mass[3]; /* fields: mass in the solve of a cell's lower faces next to the surface; -1 for other faces */
} sk_uic_state;

static inline float *sk_uic_spare_of(const sk_step *step)
{
    const sk_uic_state *state = (const sk_uic_state *)sk_step_state(step, &sk_method_uic);
    return step->grid.fields[state->spare];
}

/* A pressure (Pa) in the unit q of the unknowns. */
SK_KERNEL float sk_uic_least_pressure(const sk_step *step, double pressure)
{
    const double h = step->grid.cell_size;
    return (float)(pressure * step->dt * sk_step_kick(step) / (step->density * h * h));
}

/* Surface tension holds full cells together: liquid comes apart only where the suction exceeds that of the most curved
 * surface that the grid resolves. Pa, not above 0. */
static inline double sk_uic_held_pressure(const sk_step *step)
{
    return -(step->dimension - 1) * sk_scene_surface_tension(step->scene) / step->grid.cell_size;
}

/* Layers of cells around the surface without suction. */
static inline int sk_uic_suction_layers(const selkie_unilateral_def *def)
{
    return (int)ceil(def->suction_depth);
}

static inline float *sk_uic_surface_mass_of(const sk_step *step, int d)
{
    const sk_uic_state *state = (const sk_uic_state *)sk_step_state(step, &sk_method_uic);
    return step->grid.fields[state->surface_mass[d]];
}

/* Do rows of full cells bound the flow? The source's form of the prediction bounds the density in all cells. */
static inline int sk_uic_bounds_flow(const sk_step *step)
{
    return step->scene->unilateral.prediction == SELKIE_PREDICTION_PARTICLES;
}

/* In the order of a step. solids_now: obstacles with their pose at the start of the step, for the density correction.
 */
#define SK_UIC_PHASES(dim)                                                                                             \
    selkie_code sk_uic_solids_now_##dim(sk_step *step, selkie_error *error);                                           \
    selkie_code sk_uic_correct_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_uic_correct_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_uic_balance_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_uic_balance_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_uic_predict_##dim(sk_step *step, selkie_error *error);                                              \
    selkie_code sk_uic_predict_plain_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_uic_pressure_##dim(sk_step *step, selkie_error *error);                                             \
    selkie_code sk_uic_pressure_plain_##dim(sk_step *step, selkie_error *error);                                       \
    selkie_code sk_uic_extrapolate_##dim(sk_step *step, selkie_error *error);                                          \
    selkie_code sk_uic_shift_##dim(sk_step *step, selkie_error *error);                                                \
    selkie_code sk_uic_extrapolate_plain_##dim(sk_step *step, selkie_error *error);                                    \
    selkie_code sk_uic_shift_plain_##dim(sk_step *step, selkie_error *error);

SK_UIC_PHASES(2d)
SK_UIC_PHASES(3d)

#endif

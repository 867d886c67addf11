/* Elastoplastic points by local fits, as a method: discretization printed and additive.
 *
 * A step has these phases. `neighbours`: lists. `stress`: plastic flow and stress of each point. `forces`: between
 * pairs. `deform`: velocities change, then deformations follow them. `move`. fitted_kernels.h has the formulas.
 *
 * Attributes of points: `deformation` (F - 1, or the total strain of additive, row-major), `plastic_strain`,
 * `plastic_volume`, `stress` (Pa, equivalent).
 */
#ifndef SK_METHODS_FITTED_H
#define SK_METHODS_FITTED_H

#include "methods/elastoplastic/elastic_saved.h"
#include "methods/method.h"
#include "particles/neighbours.h"

extern const sk_method sk_method_fitted;

typedef struct sk_fitted {
    sk_elastic_saved saved;
    int material_count, is_additive;
    struct sk_elastic_material *materials; /* [material_count] */
    double spacing, support;               /* m */
    double full;                           /*   sum of the weights of a point inside a lattice */
    sk_neighbour_lists lists;
    float *cut;    /* m2    [points] squared distance of the farthest neighbour that counts */
    float *push;   /* Pa    [points][matrix] P K^-1, over the density */
    float *back;   /*       [points][matrix] F^-1 */
    float *extra;  /* m2/s2 [points] pressure over density */
    float *change; /* m/s2  [points][3] acceleration */
    size_t cut_capacity, push_capacity, back_capacity, extra_capacity, change_capacity;
} sk_fitted;

static inline sk_fitted *sk_fitted_of(const sk_step *step)
{
    return sk_step_state(step, &sk_method_fitted);
}

#define SK_FITTED_PHASES(dim)                                                                                          \
    selkie_code sk_fitted_neighbours_##dim(sk_step *step, selkie_error *error);                                        \
    selkie_code sk_fitted_stress_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_fitted_forces_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_fitted_deform_##dim(sk_step *step, selkie_error *error);                                            \
    selkie_code sk_fitted_move_##dim(sk_step *step, selkie_error *error);

SK_FITTED_PHASES(2d)
SK_FITTED_PHASES(3d)

#endif

/* The pressure solve of SPH, whoever applies its operator: pressure_dim.c eight particles at a time,
 * pressure_plain_dim.c one at a time. */
#ifndef SK_METHODS_SPH_SOLVE_H
#define SK_METHODS_SPH_SOLVE_H

#include "methods/sph/sph.h"
#include "methods/sph/sph_kernels.h"

/* sk_sph.variable: y is where the operator is applied, and the answer. */
enum { SK_SPH_Y, SK_SPH_X, SK_SPH_NEXT, SK_SPH_BEFORE, SK_SPH_RESIDUAL };

typedef struct sk_sph_iteration {
    int accelerated;
    int first;   /* nothing is known of an iterate before */
    float omega; /* step of the relaxation */
} sk_sph_iteration;

/* Applies the operator to y, and puts the step of the solver into `next`. */
typedef sk_sph_solve_sums (*sk_sph_iterate)(sk_step *step, const sk_sph_iteration *iteration, void *scratch);

/* The constants of this step's system; 0 if there is nothing to solve. */
int sk_sph_system_begin(sk_step *step, sk_sph_system *system);
/* Once right side, inverse diagonal and start are there. */
selkie_code sk_sph_solve(sk_step *step, sk_sph_iterate iterate, void *scratch, selkie_error *error);
/* Velocities take up the displacement; pressures, forces on parts and the report follow. */
void sk_sph_system_end(sk_step *step);

/* The sums of all blocks, in their order. */
sk_sph_solve_sums sk_sph_add_solve_sums(const sk_step *step);

#endif

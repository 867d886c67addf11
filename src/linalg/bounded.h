/* Linear complementarity over sparse blocks: a Poisson system whose unknowns have lower bounds.
 *
 *   w = A x - right_side >= 0,   x >= lower,   (x - lower) . w = 0
 *
 * that is the least of 1/2 x.A x - right_side.x above the bounds. A, the blocks
 * and the fields are those of linalg/poisson.h. A cell is free where x > lower
 * (there w = 0, as without a bound) and active where x = lower (there w >= 0).
 *
 * How good an answer is: the natural residual m = min(d (x - lower), w) with d
 * the diagonal, zero in every cell exactly at the solution. Relative, it is
 * |m| over that of x = max(lower, 0), which for bounds of 0 is |min(-right_side, 0)|
 * and without any bound |right_side|.
 *
 * A component without a Dirichlet face has a solution only if its right side
 * does not sum to more than 0 (no more goes in than there is room for). Where it
 * does, the mean is taken out, and the solution is the least one above the bounds.
 */
#ifndef SK_LINALG_BOUNDED_H
#define SK_LINALG_BOUNDED_H

#include "linalg/poisson.h"

typedef struct sk_bounded_system {
    sk_poisson_system poisson;
    const float *lower; /* NULL = 0 everywhere; -INFINITY = no bound in that cell */
} sk_bounded_system;

typedef enum sk_bounded_method {
    SK_BOUNDED_ACTIVE_SET, /* over the multigrid of the Poisson solver: fast */
    SK_BOUNDED_MPRGP       /* Dostal's, with incomplete Cholesky: slow, on one thread, a reference */
} sk_bounded_method;

typedef struct sk_bounded_options {
    sk_bounded_method method;
    double tolerance;
    selkie_residual_norm norm; /* relative: see above; max: max |m| <= tolerance */
    int max_iterations;
    int warm_start; /* poisson.solution is the start; raised to the bounds where it is below them */
    int threads;
    int forget; /* MPRGP: estimate the largest eigenvalue anew, not from the last solve's vector */
    sk_backend backend;
} sk_bounded_options;

typedef struct sk_bounded_report {
    int iterations;          /* outer steps; MPRGP: all steps */
    int free_steps;          /* conjugate gradient steps on the free cells */
    int expansion_steps;     /* steps that ended at a bound: more cells become active */
    int proportioning_steps; /* steps that let active cells go */
    int converged;
    double residual; /* true one, computed in double at the end, in the asked norm */
    int64_t unknowns, free_cells, active_cells;
    int overfull_components; /* closed ones whose mean was taken out */
    double eigenvalue;       /* MPRGP: estimate of the largest one of A */
    int history_count;
    double history[SK_POISSON_MAX_HISTORY]; /* residual before each step */
    double setup_ms, solve_ms;
} sk_bounded_report;

/* Scratch that lives from solve to solve, and the last eigenvector. */
typedef struct sk_bounded_solver sk_bounded_solver;

sk_bounded_solver *sk_bounded_create_2d(sk_memory *memory);
sk_bounded_solver *sk_bounded_create_3d(sk_memory *memory);
void sk_bounded_destroy_2d(sk_bounded_solver *solver);
void sk_bounded_destroy_3d(sk_bounded_solver *solver);

/* A solve with the active set depends on its input alone. MPRGP also starts its estimate of the largest eigenvalue from
 * the last one's vector, unless it is told to forget it.
 * A solve that does not converge is not an error here: see report->converged. Out of memory and NaN in the input are.
 * The same bits on any number of threads. */
selkie_code sk_bounded_solve_2d(sk_bounded_solver *solver, const sk_bounded_system *system,
                                const sk_bounded_options *options, sk_bounded_report *report, selkie_error *error);
selkie_code sk_bounded_solve_3d(sk_bounded_solver *solver, const sk_bounded_system *system,
                                const sk_bounded_options *options, sk_bounded_report *report, selkie_error *error);

#endif

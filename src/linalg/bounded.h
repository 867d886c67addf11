/* Linear complementarity over sparse blocks: a Poisson system whose unknowns have lower bounds.
 *
 *   w = A x - right_side >= 0,   x >= lower,   (x - lower) . w = 0
 *
 * that is the minimum of 1/2 x.A x - right_side.x above the bounds. A, the blocks
 * and the fields are those of linalg/poisson.h. A cell is free where x > lower
 * (there w = 0, as without a bound) and active where x = lower (there w >= 0).
 *
 * The error measure is the natural residual m = min(d (x - lower), w) with d
 * the diagonal. It is zero in every cell exactly at the solution. The relative
 * residual is |m| over that of x = max(lower, 0). The latter is
 * |min(-right_side, 0)| for bounds of 0, and |right_side| without bounds.
 *
 * A component without a Dirichlet face has a solution only if its right side
 * does not sum to more than 0 (the liquid fits). Otherwise the mean is subtracted,
 * and the solution is the least one above the bounds.
 *
 * With rigid bodies (poisson.modes) a method of its own takes the place of both below: bounded_modes_dim.c.
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
    SK_BOUNDED_MPRGP       /* Dostal's, with incomplete Cholesky: slow, single-threaded, a reference */
} sk_bounded_method;

typedef struct sk_bounded_options {
    sk_bounded_method method;
    double tolerance;
    selkie_residual_norm norm; /* relative: see above; max: max |m| <= tolerance */
    int max_iterations;
    int warm_start; /* start from poisson.solution, raised to the bounds */
    int threads;
    int forget; /* MPRGP: estimate the largest eigenvalue anew, without the last solve's vector */
    sk_backend backend;
} sk_bounded_options;

typedef struct sk_bounded_report {
    int iterations;          /* outer steps; MPRGP: all steps */
    int free_steps;          /* conjugate gradient steps on the free cells */
    int expansion_steps;     /* steps that ended at a bound: more cells become active */
    int proportioning_steps; /* steps that release active cells */
    int converged;
    double residual; /* true residual, computed in double at the end, in the requested norm */
    int64_t unknowns, free_cells, active_cells;
    int overfull_components; /* closed components whose mean was subtracted */
    double eigenvalue;       /* MPRGP: estimate of the largest eigenvalue of A */
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

/* A solve with the active set depends on its input alone. MPRGP starts its estimate of the largest eigenvalue from the
 * last solve's vector, unless options->forget is set. A solve that does not converge is not an error here: see
 * report->converged. Out of memory and NaN in the input are errors. The same bits on any number of threads. */
selkie_code sk_bounded_solve_2d(sk_bounded_solver *solver, const sk_bounded_system *system,
                                const sk_bounded_options *options, sk_bounded_report *report, selkie_error *error);
selkie_code sk_bounded_solve_3d(sk_bounded_solver *solver, const sk_bounded_system *system,
                                const sk_bounded_options *options, sk_bounded_report *report, selkie_error *error);

#endif

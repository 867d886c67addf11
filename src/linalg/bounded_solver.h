/* What a bounded solver keeps from solve to solve. Private to src/linalg. */
#ifndef SK_LINALG_BOUNDED_SOLVER_H
#define SK_LINALG_BOUNDED_SOLVER_H

#include "linalg/bounded.h"
#include "linalg/solver.h"

struct sk_bounded_solver {
    sk_memory *memory;
    sk_poisson_solver *poisson; /* reads the input, finds closed components */
    /* MPRGP */
    sk_scratch flat_memory, last_memory;
    int last_count;           /* blocks of the last solve */
    int32_t (*last_place)[4]; /* [last_count] their coordinates in order; fourth unused */
    float *last_eigenvector;  /* [last_count * SK_BLOCK_CELLS] */
};

/* --- bounded_flat_dim.c: the reference --- */
selkie_code SK_DIM(sk_bounded_solve_flat)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                          const sk_bounded_options *options, sk_bounded_report *report,
                                          selkie_error *error);

#endif

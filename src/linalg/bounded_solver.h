/* State of a bounded solver between solves, and the steps of a solve that have files of their own. Private to
 * src/linalg. */
#ifndef SK_LINALG_BOUNDED_SOLVER_H
#define SK_LINALG_BOUNDED_SOLVER_H

#include "linalg/bounded.h"
#include "linalg/solver.h"

/* Changes of a block's cells since the levels below were last coarsened. */
enum { SK_CELLS_CAUGHT = 1, SK_CELLS_RELEASED = 2, SK_CELLS_NEW = 4 };

/* Fields of a level's own problem under bounds, (block_count + 1) * SK_BLOCK_CELLS each, in the split layout. They are
 * 0 in cells that are no unknowns. */
typedef struct sk_bound_level {
    float *high, *low;   /* the solution is high + low; on a bound the sum equals it to the bit */
    int paired;          /* low is in use; otherwise it is 0 */
    float *f, *lower;    /* right side, bound; lower = NULL: 0 everywhere */
    float *r, *z;        /* residual f - A x, correction */
    float *part_inverse; /* see sk_level: free cells take part */
    uint8_t *part;
    uint8_t *changed;  /* [block_count + 1] see above; while the level is below the root, see multigrid.h */
    sk_active *active; /* vectors with free cells */
    sk_scratch memory;
} sk_bound_level;

#define SK_BAD_RIGHT_SIDE "bounded solver: the right side is not finite in some cell"
#define SK_BAD_BOUNDS "bounded solver: the bound of some cell is NaN or infinity; -infinity means none"

/* The arithmetic of the active set method on one block. */
typedef struct sk_bounded_operations {
    /* x = max(lower, x), or max(lower, 0) if x is not usable. */
    void (*start)(const sk_bound_level *bound, int block);
    /* Sum of the squares of positive right sides: the natural residual of x = 0 if all bounds are 0. */
    double (*push)(const float *f);
    /* Two red-black Gauss-Seidel sweeps of A field = rhs inside a block, never below `bound`. rhs and bound belong to
     * this block. */
    void (*project)(const sk_level *level, float *field, const float *rhs, const float *bound, int block);
    /* Residual (in double or quick), norm of the natural residual, sum of the squares of x, and the free cells. */
    double (*judge)(const sk_level *level, const sk_bound_level *bound, int block, selkie_residual_norm norm,
                    int exactly, double *size);
    /* z = max(scale z, bound - x) */
    void (*clip)(const sk_level *level, const sk_bound_level *bound, int block, float scale);
    /* A projected sweep of the correction z; then, if wanted, x += z. */
    void (*correct)(const sk_level *level, const sk_bound_level *bound, int block, int advance);
    /* The block's part of its parent's right side and bounds. */
    void (*restrict_problem)(const sk_level *fine, const sk_bound_level *from, const sk_bound_level *to, int block);
    /* Interpolates x linearly from the level below and raises it to the bounds. */
    void (*interpolate)(const sk_level *fine, const sk_level *coarse, const sk_bound_level *from,
                        const sk_bound_level *to, int block);
    /* Cells above their bounds. */
    int (*count_above)(const sk_bound_level *bound, int block);
} sk_bounded_operations;

struct sk_bounded_solver {
    sk_memory *memory;
    const sk_bounded_operations *operations;
    sk_poisson_solver *poisson; /* reads the input, finds closed components; its levels are those of all of A */
    /* The active set method. */
    sk_bound_level bound[SK_MAX_LEVELS];
    sk_multigrid part;              /* levels coarsened from the free cells of one of them, the root */
    sk_level coarse[SK_MAX_LEVELS]; /* memory of part.level[] below the root */
    sk_scratch partial_memory;
    double *partial[3];
    uint8_t *mark;
    uint8_t *skip; /* [components] closed components with a held cell: these are regular */
    float scale;   /* of bound[0].f: scaled right side = the caller's right side times this */
    /* With rigid bodies. */
    sk_poisson_solver *free_cells; /* the steps of Newton's method; NULL until a system has bodies */
    sk_scratch newton_memory;
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

/* --- bounded_active_dim.c: the fast one --- */
selkie_code SK_DIM(sk_bounded_solve_active)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                            const sk_bounded_options *options, sk_bounded_report *report,
                                            selkie_error *error);

/* --- bounded_modes_dim.c: systems with rigid bodies --- */
selkie_code SK_DIM(sk_bounded_solve_modes)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                           const sk_bounded_options *options, sk_bounded_report *report,
                                           selkie_error *error);

/* --- bounded_levels_dim.c: reading and memory --- */
selkie_code SK_DIM(sk_bounded_set_up)(sk_bounded_solver *solver, const sk_bounded_system *system, int threads,
                                      selkie_error *error);
/* Zeros fields that are not written otherwise. */
void SK_DIM(sk_bounded_clear_level)(sk_bounded_solver *solver, int depth, sk_team team);

/* --- bounded_pockets_dim.c: components without a Dirichlet face --- */

/* Subtracts the mean from right sides without a solution, and counts those components. */
void SK_DIM(sk_bounded_pockets_start)(sk_bounded_solver *solver, sk_team team, int *overfull);
/* Finds the components without held cells. sk_pockets_balance skips the others from now on. */
void SK_DIM(sk_bounded_pockets_classify)(sk_bounded_solver *solver, sk_team team);
/* Lowers those components until a cell meets its bound. */
void SK_DIM(sk_bounded_pockets_lower)(sk_bounded_solver *solver, sk_team team);

/* --- bounded_tuned_dim.c, bounded_nested_tuned_dim.c: vectors of cells --- */
extern const sk_bounded_operations SK_DIM(sk_bounded_operations_tuned);
void SK_DIM(sk_restrict_problem)(const sk_level *fine, const sk_bound_level *from, const sk_bound_level *to, int block);
void SK_DIM(sk_interpolate_block)(const sk_level *fine, const sk_level *coarse, const sk_bound_level *from,
                                  const sk_bound_level *to, int block);

/* --- bounded_plain_dim.c: one cell at a time --- */
extern const sk_bounded_operations SK_DIM(sk_bounded_operations_plain);

#endif

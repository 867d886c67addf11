/* State of a Poisson solver between solves, and the steps of a solve that have files of their own. Private. */
#ifndef SK_LINALG_SOLVER_H
#define SK_LINALG_SOLVER_H

#include "base/simd.h"
#include "linalg/mode_lanes.h"
#include "linalg/multigrid.h"

enum { SK_BLOCK_WORDS = SK_BLOCK_CELLS / 64 };

/* One bit a cell, in natural order: bit i + N (j + N k) of the block. */
typedef struct sk_cell_bits {
    uint64_t word[SK_BLOCK_WORDS];
} sk_cell_bits;

/* Links of a general block: its unknowns, and the lower faces that are not closed. */
typedef struct sk_links {
    sk_cell_bits unknown, face[SELKIE_DIM];
} sk_links;

/* The part of a closed component that lies in one block. */
typedef struct sk_pocket_piece {
    int32_t block;
    int32_t component;
    int32_t first; /* into the list of cells; -1: all cells of the block */
    int32_t count;
} sk_pocket_piece;

typedef struct sk_poisson_operations sk_poisson_operations;

typedef struct sk_pockets {
    const sk_poisson_operations *operations;
    int component_count;
    size_t piece_count, cell_count;
    sk_pocket_piece *piece; /* sorted by component, then block */
    uint16_t *cell;         /* indices in the split layout */
    double *sum;            /* [piece_count] */
    double *mean;           /* [component_count] */
    size_t *cells_of;       /* [component_count] */
    const uint8_t *skip;    /* [component_count] components to skip; NULL: none */
    size_t piece_capacity, cell_capacity, sum_capacity, mean_capacity, cells_of_capacity;
    sk_scratch flood_memory;
} sk_pockets;

/* Pointers to a block's coefficients in the caller's fields. */
typedef struct sk_source {
    const float *diagonal, *diagonal_side[6]; /* own block, its neighbours */
    const float *face[3], *face_upper[3];     /* own block, its upper neighbour along that axis */
} sk_source;

/* The arithmetic on one block of the finest level, in addition to sk_level_operations: reading a system, and the
 * vectors of the conjugate gradients. Fields belong to the block unless a solver is given. */
struct sk_poisson_operations {
    /* Is a block of the caller uniform? Sets its excess and inverse, and its flaws if it is. */
    int (*is_uniform)(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *flaws);
    /* Fills the slot of a general block; returns its flaws. */
    int (*read_general)(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *unknowns);
    /* The caller's right side in the split layout, scaled; returns its largest magnitude. */
    float (*read_right_side)(const sk_poisson_solver *solver, const sk_poisson_system *system, int block, float scale,
                             float *b);
    void (*scale)(float *field, float by);
    double (*sum)(const float *field);
    void (*subtract)(float *field, float value);
    /* Sum of squares, or the largest magnitude; NaN if a value is NaN. */
    double (*norm)(const float *r, selkie_residual_norm norm);
    /* high + low stays the same, and low becomes the rounding error of high. */
    void (*fold)(float *high, float *low);
    /* p = z + beta p */
    void (*turn)(float *p, const float *z, float beta, sk_active active);
    /* low += alpha p, r -= alpha z; returns the norm of r. */
    double (*advance)(const sk_poisson_solver *solver, int block, float alpha, selkie_residual_norm norm,
                      double *low_squares);
    /* Writes (high + low) * unscale in the caller's layout. Returns whether all of it is finite. */
    int (*write)(const float *high, const float *low, float unscale, float *target);
};

/* A cell near a rigid body, in the list of the body: its row of A. */
typedef struct sk_mode_row {
    int32_t beside[2 * SELKIE_DIM]; /* places of the neighbours in the list; -1 = not there, zeros */
    float face[2 * SELKIE_DIM];     /* coefficients of its faces */
    float diagonal, inverse;        /* the diagonal, and 1 over it */
} sk_mode_row;

enum { SK_MODES_RINGS = SELKIE_DIM == 3 ? 4 : 6 };

/* Values of the modes in cells, in the order of the bodies. The entries of a cell are linked in a circle, and one of
 * them is its first. */
#define SK_MODE_FIRST 0x80000000u
typedef struct sk_mode_list {
    size_t count;
    int32_t *body;                  /* [count] */
    uint32_t *at;                   /* [count] of the cell in the fields of level 0 */
    uint32_t *next;                 /* [count] the next entry of the cell; of its first one, with SK_MODE_FIRST */
    float (*values)[SK_MODES_WIDE]; /* [count] */
    size_t *first;                  /* [bodies + 1] */
    size_t capacity[4];
} sk_mode_list;

/* The cells of a mover in a block. */
enum { SK_MODE_RUN_LANES = 8 };
typedef struct sk_mode_run {
    int32_t mover;
    uint32_t block;        /* of level 0 */
    uint32_t start, count; /* its cells in the arrays of the runs */
} sk_mode_run;

/* Values of a list, for products with fields: see poisson_modes_runs_dim.c. */
typedef struct sk_mode_runs {
    size_t count, room; /* runs; cells with the zeros behind each run */
    sk_mode_run *runs;  /* [count] mover by mover */
    sk_mode_run *by_block;
    size_t *first;                                      /* [movers + 1] */
    uint32_t *run_of;                                   /* [list.count] */
    uint32_t *at;                                       /* [room] of the cell in the fields of level 0 */
    float *value[SK_MODES_RANK], *image[SK_MODES_RANK]; /* [room] */
    size_t capacity, ordered_capacity, first_capacity, run_of_capacity;
    sk_scratch value_memory, block_memory;
} sk_mode_runs;

/* The cells of some bodies that one thread lists. */
typedef struct sk_mode_part {
    size_t count, at_capacity, row_capacity, place_capacity;
    uint32_t *at;
    sk_mode_row *rows;
    uint32_t *place; /* of the cells in the box of their body */
    uint32_t *table; /* places of the body's cells in its list plus 1, by the place in the box, or by a hash of `at` */
    size_t table_size, table_capacity;
} sk_mode_part;

/* Entries of a body up to each ring of cells around it. */
typedef struct sk_mode_rings {
    int count;
    int is_weak; /* it has no cells: the multigrid cycle is enough */
    size_t end[SK_MODES_RINGS + 1];
    size_t from; /* place of the cells in their part */
} sk_mode_rings;

/* The flux of a moving body in the deflated space of another: W^T Z. */
typedef struct sk_mode_pair {
    int32_t mover, body;
    double flux[SK_MODES_WIDE][SK_MODES_WIDE];
} sk_mode_pair;

/* Rigid bodies in the system: see poisson_modes_dim.c. Bodies are movers here: in 3D the translations of a body are
 * one, its rotations the next. */
typedef struct sk_modes {
    int body_count;                                   /* movers, 0 = none */
    int parts_of_body;                                /* movers of a body */
    int64_t all_unknowns;                             /* of the liquid */
    double (*response)[SK_MODES_RANK][SK_MODES_RANK]; /* [bodies] */
    sk_mode_list flux, space;                         /* W, and the deflated space Z */
    sk_mode_runs flux_runs, space_runs;               /* the same, for products with fields */
    int32_t *meets;                  /* [space.count] first entry of W in the cell; -1 = no body moves it */
    sk_mode_part *parts;             /* [threads] */
    float (*image)[SK_MODES_WIDE];   /* [space.count] A Z */
    const sk_mode_row **rows;        /* [bodies] of its cells, in its part */
    float (*rounded)[SK_MODES_WIDE]; /* [bodies] velocities of the modes */
    sk_mode_rings *rings;            /* [bodies] */
    sk_mode_pair *pairs;
    size_t *pair_first, *mover_first; /* [bodies + 1] pairs of a body; of a mover, into by_mover */
    uint32_t *by_mover;
    int32_t *body_at, *place_of;   /* [bodies] the order of the rows of E */
    int32_t *first_at, *least_at;  /* [bodies] first place that a body's rows reach; scratch */
    size_t *row_first, *row_start; /* [rows] first column, and place in the factor */
    double *factor, *sums, *moved, *wanted, *residual, *ordered; /* [rows] but for the factor */
    size_t image_capacity, pair_capacity, by_mover_capacity, factor_capacity, meets_capacity;
    size_t part_capacity;
    sk_scratch memory, thread_memory;
} sk_modes;

struct sk_poisson_solver {
    sk_memory *memory;
    const sk_poisson_operations *operations;
    sk_multigrid multigrid;
    sk_pockets pockets;
    sk_modes modes;
    sk_scratch map_memory, link_memory, partial_memory, sort_memory;
    int32_t *inside;    /* [system.block_count] the caller's block -> the solver's, 0 = it has no unknowns */
    int32_t *outside;   /* [block_count + 1] the solver's block -> the caller's */
    sk_links *links;    /* [slots] of the general blocks */
    sk_cell_bits *open; /* [block_count + 1] cells with a proven connection to an excess */
    double *partial[3]; /* [block_count + 2] sums of a block, for reductions in a fixed order */
    float *high, *low;  /* the solution is high + low: accurate as a double, and one float to update */
    float *r, *p, *z;   /* residual, direction, preconditioned residual (then A p in the same place) */
};

/* --- poisson_input_dim.c: the caller's fields to level 0 --- */
selkie_code SK_DIM(sk_poisson_read)(sk_poisson_solver *solver, const sk_poisson_system *system, int threads,
                                    selkie_error *error);
void SK_DIM(sk_look_up_source)(const sk_poisson_solver *solver, const sk_poisson_system *system, int block,
                               sk_source *from);

/* --- pockets_dim.c: components without any excess --- */
selkie_code SK_DIM(sk_pockets_find)(sk_poisson_solver *solver, selkie_error *error);
/* Subtracts the mean of each closed component from a field. */
void SK_DIM(sk_pockets_balance)(sk_pockets *pockets, sk_team team, float *field);
void SK_DIM(sk_pockets_release)(sk_pockets *pockets, sk_memory *memory);

/* --- poisson_modes_dim.c: rigid bodies in the system --- */
selkie_code SK_DIM(sk_modes_read)(sk_poisson_solver *solver, const sk_poisson_system *system, int threads,
                                  selkie_error *error);
/* Prepares the products below. */
selkie_code SK_DIM(sk_modes_prepare)(sk_poisson_solver *solver, int threads, selkie_error *error);
void SK_DIM(sk_modes_release)(sk_modes *modes, sk_memory *memory);
/* E^-1 as a whole, in the order of the bodies: [rows][rows]. Modes that drop out have rows of 0. */
void SK_DIM(sk_modes_invert)(const sk_modes *modes, double *inverse, int threads);
/* All threads of the team call these. They wait for each other at the end.
 * y += factor W R W^T x; returns x W R W^T x. */
double SK_DIM(sk_modes_apply)(sk_modes *modes, sk_team team, const float *x, float *y, double factor);
/* The best start in the space of the modes for the residual r: x += Z E^-1 Z^T r. Updates r. */
void SK_DIM(sk_modes_start)(sk_modes *modes, sk_team team, float *r, float *x);
/* Deflates z = M r; returns the change of r.z. */
double SK_DIM(sk_modes_deflate)(sk_modes *modes, sk_team team, const float *r, float *z);

/* --- poisson_modes_space_dim.c: the cells of the bodies --- */
/* W in the order of the movers, from entries in the order of the cells. */
selkie_code SK_DIM(sk_modes_read_flux)(sk_poisson_solver *solver, const sk_poisson_modes *given, selkie_error *error);
/* Lists the cells of all bodies: those of W, then some rings around them, fewer around bodies of many entries. */
selkie_code SK_DIM(sk_modes_list_bodies)(sk_poisson_solver *solver, int rings, size_t most_entries, int threads,
                                         selkie_error *error);
/* Links the entries of each cell. `map` has room for all cells and gets the first entry of each plus 1, or 0. */
void SK_DIM(sk_modes_link_cells)(const sk_poisson_solver *solver, sk_mode_list *list, uint32_t *map, int threads);
void SK_DIM(sk_modes_release_lists)(sk_modes *modes, sk_memory *memory);
/* Solves A z = w for all modes of a body, approximately: Z, and A Z = w - r. `scratch` has 3 (entries + 1) vectors. */
void SK_DIM(sk_modes_solve)(sk_modes *modes, int body, float (*scratch)[SK_MODES_WIDE]);
/* Natural index of a cell from its index in the split layout. */
int SK_DIM(sk_modes_natural_index)(int split);

/* --- poisson_modes_runs_dim.c: products with fields --- */
/* `image` NULL: none. */
selkie_code SK_DIM(sk_modes_make_runs)(sk_poisson_solver *solver, const sk_mode_list *list,
                                       const float (*image)[SK_MODES_WIDE], sk_mode_runs *runs, int threads,
                                       selkie_error *error);
void SK_DIM(sk_modes_release_runs)(sk_mode_runs *runs, sk_memory *memory);
/* sums = values of a mover times x; image = images of the same cells times y. */
void SK_DIM(sk_modes_gather)(const sk_mode_runs *runs, int mover, const float *x, double sums[SK_MODES_RANK]);
void SK_DIM(sk_modes_gather_both)(const sk_mode_runs *runs, int mover, const float *x, const float *y,
                                  double sums[SK_MODES_RANK], double image[SK_MODES_RANK]);
/* x += factor times values, or images, times the velocities of the modes, in a thread's share of the blocks. */
void SK_DIM(sk_modes_spread)(const sk_mode_runs *runs, int is_image, const float (*velocity)[SK_MODES_WIDE],
                             sk_team team, float factor, float *x);

/* --- poisson_dim.c --- */
/* Sets up level 0 and the bodies alone, for a solver elsewhere. `unknowns`: of the whole system. */
selkie_code SK_DIM(sk_poisson_read_bodies)(sk_poisson_solver *solver, const sk_poisson_system *system, int64_t unknowns,
                                           int threads, selkie_error *error);

/* --- poisson_tuned_dim.c, poisson_plain_dim.c: the arithmetic --- */
extern const sk_poisson_operations SK_DIM(sk_poisson_operations_tuned), SK_DIM(sk_poisson_operations_plain);
/* Selects the operations of a backend, also for the levels. */
void SK_DIM(sk_poisson_choose)(sk_poisson_solver *solver, sk_backend backend);

#endif

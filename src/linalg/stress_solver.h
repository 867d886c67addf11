/* The levels of the stress solver. Private to linalg/. For files compiled per dimension. */
#ifndef SK_LINALG_STRESS_SOLVER_H
#define SK_LINALG_STRESS_SOLVER_H

#include "base/dimension.h"
#include "grid/wrap_kernels.h"
#include "linalg/stress.h"
#include "linalg/stress_kernels.h"

enum { SK_STRESS_LEVELS = 12, SK_STRESS_COLOURS = 2 * SELKIE_DIM, SK_STRESS_DIRECT = 300 };

typedef struct sk_stress_level {
    /* Blocks, as in sk_stress_system. */
    int block_count;
    const int32_t (*coordinates)[4];
    const int32_t (*neighbours)[27];
    int32_t joined[3]; /* blocks along a periodic axis of this level; 0 = its sides are not joined */
    const float *mass[3], *normal[3], *bulk, *shear[3]; /* normal strain has a weight for each direction */
    const uint8_t *fixed[3];

    /* Unknowns, one colour after the other. Number `count` is a face without an unknown: its value is 0. In each colour
     * the even rows come first: those whose weights are the usual ones inside liquid of one viscosity. They share their
     * coefficients, which a loop then keeps in registers. */
    int32_t *index[3]; /* [block_count][cells] number of the unknown, or `count` */
    int32_t count;
    int32_t colour[SK_STRESS_COLOURS + 1]; /* first unknown of each colour */
    int32_t uneven[SK_STRESS_COLOURS];     /* first unknown of each colour with coefficients of its own */
    sk_stress_weights even[3];             /* weights of even rows of each component */
    float shared[3][SK_STRESS_NEIGHBOURS], shared_diagonal[3];
    float *coefficient;        /* [count][SK_STRESS_NEIGHBOURS] */
    int32_t *column;           /* [count][SK_STRESS_NEIGHBOURS] */
    float *inverse, *diagonal; /* [count] */
    float *x, *b, *residual;   /* [count + 1] */

    /* Transfers to and from the next level. */
    int32_t *parent;      /* [count][SK_STRESS_PARENTS] unknowns of the next level */
    uint8_t *kind;        /* [count] axis of the face times 8, plus the parity of its indices */
    int32_t *child;       /* [count of the next level][SK_STRESS_CHILDREN] */
    uint8_t *coarse_axis; /* [count of the next level] */
} sk_stress_level;

typedef struct sk_stress_hierarchy {
    int count;
    int threads;
    sk_stress_level levels[SK_STRESS_LEVELS];
    double
        *factor; /* Cholesky factor of the coarsest level, lower triangle [count][count]; NULL = it has too many rows */
} sk_stress_hierarchy;

/* Place of the cell at `at` from a block's lower corner, at most one block outside. */
static inline __attribute__((unused)) size_t sk_stress_place(const int32_t (*neighbours)[27], int block,
                                                             const int at[3])
{
    int neighbour = 0, stride = 1, local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        neighbour += ((at[d] >> SK_BLOCK_LOG) + 1) * stride;
        stride *= 3;
        local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return (size_t)neighbours[block][neighbour] * SK_BLOCK_CELLS + (size_t)local;
}

/* Offset in cells of neighbour m of a face across axis a, in the order of the coefficients. */
static inline __attribute__((unused)) void sk_stress_offset(int a, int m, int offset[3])
{
    /* Along a and along the other axis. */
    static const int along[SK_STRESS_OTHER] = {0, 0, 0, -1, 0, -1}, across[SK_STRESS_OTHER] = {-1, 1, 0, 0, 1, 1};
    offset[0] = offset[1] = offset[2] = 0;
    if (m < 2) {
        offset[a] = m ? 1 : -1;
        return;
    }
    const int b = sk_stress_axis(a, (m - 2) / SK_STRESS_OTHER), n = (m - 2) % SK_STRESS_OTHER;
    offset[a] = along[n];
    offset[b] = across[n];
}

/* Places of the neighbours of a face across axis a, in the order of the coefficients. */
static inline __attribute__((unused)) void sk_stress_places(const int32_t (*neighbours)[27], int block, const int at[3],
                                                            int a, size_t places[SK_STRESS_NEIGHBOURS])
{
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        int other[3];
        sk_stress_offset(a, m, other);
        for (int d = 0; d < 3; d++)
            other[d] += at[d];
        places[m] = sk_stress_place(neighbours, block, other);
    }
}

/* Component of neighbour m of a face across axis a. */
static inline __attribute__((unused)) int sk_stress_component(int a, int m)
{
    if (m < 2 || (m - 2) % SK_STRESS_OTHER < 2)
        return a;
    return sk_stress_axis(a, (m - 2) / SK_STRESS_OTHER);
}

selkie_code SK_DIM(sk_stress_make_levels)(const sk_stress_system *system, const sk_stress_options *options,
                                          sk_stress_hierarchy *hierarchy, selkie_error *error);

/* Restores momentum and angular momentum of liquid that touches no wall: adds rigid motions to x, the solution. */
selkie_code SK_DIM(sk_stress_keep_momenta)(const sk_stress_system *system, const sk_stress_options *options,
                                           const sk_stress_level *level, double *x, selkie_error *error);

#endif

/* The GPU form of the stress solver (linalg/stress.h): its levels and the rows of its matrix. Private to src/cuda; for
 * files compiled per dimension.
 *
 * Unknowns are not numbered: a level keeps its vectors in blocks, and a thread computes the coefficients of its face
 * from the weights around it. Levels, sweeps and stopping rules are those of linalg/stress_levels_dim.c and
 * linalg/stress_dim.c, so that both take the same iterations. */
#ifndef SK_CUDA_STRESS_PARTS_H
#define SK_CUDA_STRESS_PARTS_H

extern "C" {
#include "methods/viscosity/viscosity.h"
}
#include "cuda/grid_parts.h"
#include "cuda/poisson_parts.h"
#include "linalg/stress_kernels.h"
#include "methods/viscosity/viscosity_plain.h"

enum {
    FACES = CELLS / 2,                 /* faces of a colour in a block */
    UNDER = SELKIE_DIM == 3 ? 64 : 16, /* blocks of the finer level under a block and beside those */
    PARTS_A_BLOCK = 16                 /* parts of liquid that touch no wall: room for so many a block */
};

/* A level. Level 0 has the blocks of the grid. A coarse level numbers its own in the order of their places. Block 0 is
 * empty. Vectors are 0 at faces that are no unknowns. */
typedef struct stress_level {
    int low[3], blocks[3];                        /* first block and number of places along each axis */
    int places, capacity;                         /* capacity: blocks with block 0 */
    int32_t *map;                                 /* [places] number of the block, 0 = none */
    int32_t (*coordinates)[4];                    /* [capacity] */
    int32_t (*neighbours)[27];                    /* [capacity] */
    int32_t *parent;                              /* [capacity] block of the next level that contains the block */
    int32_t (*under)[UNDER];                      /* [capacity] blocks of the level before; not of level 0 */
    float *mass[3], *normal[3], *bulk, *shear[3]; /* [capacity][cells] as in linalg/stress.h */
    uint8_t *fixed[3];                            /* [capacity][cells] */
    uint8_t *unknown;                             /* [capacity][cells] bits by axis */
    uint8_t *held;                                /* [capacity][cells] rows that mass holds: bits by axis */
    uint8_t *any;                                 /* [capacity] the block has unknowns */
    float *x[3], *b[3], *rest[3];                 /* [capacity][cells] of a cycle */
} stress_level;

/* Liquid that touches no wall: sums over its faces in whole units, so that their order does not matter. */
typedef struct rigid_part {
    unsigned long long matrix[SK_STRESS_TRIANGLE], missing[SK_STRESS_MODES]; /* of two's complement */
    double motion[SK_STRESS_MODES];
    int root;  /* face */
    int speck; /* it has less than a cell of liquid */
} rigid_part;

struct sk_cuda_stress {
    int level_count; /* with memory */
    stress_level level[SK_STRESS_LEVELS];
    sk_viscous_fields fields;                     /* addresses on the device */
    double *x[3], *r[3], *p[3], *q[3], *right[3]; /* [capacity][cells] of the conjugate gradients */
    float *source, *gain;                         /* [capacity][cells] */
    double *partial[2];                           /* [capacity] sums of blocks; 0 without unknowns */
    double *factor, *inverse;                     /* [SK_STRESS_DIRECT^2] of the coarsest level, by columns */
    int32_t *bottom_face;                         /* [SK_STRESS_DIRECT] its unknowns: place times dimension plus axis */
    rigid_part *parts;
    int part_capacity;
    float (*laws)[SK_VISCOUS_LAW_POINTS + 1]; /* [materials] see viscosity_logs; NULL = no viscosity has a law */
    double law_scale;                         /* of the tables that are there; of the host */

    /* of a step, written by the device */
    int count[SK_STRESS_LEVELS]; /* blocks with block 0 */
    int unknowns[SK_STRESS_LEVELS], loose[SK_STRESS_LEVELS];
    unsigned stiffness[SK_STRESS_LEVELS]; /* bits of stress over mass */
    int bottom, sweeps;                   /* the coarsest level; its symmetric sweeps, 0 = it is solved directly */
    int direct, bottom_unknowns, singular;
    int soft;     /* symmetric sweeps of an iteration, where the finest level is the only one; else 0 */
    int overflow; /* a level or the list of parts had no room */
    int part_count;
    unsigned largest_mass;               /* bits */
    unsigned long long largest_momentum; /* bits of the largest mass times missing velocity of a face */
    unsigned ticket;

    /* of a pass */
    int pass, iteration, visits, done, converged, failed;
    int fresh, corrections; /* a reduction of the energy of the residual by sweeps begins; number of those before it */
    double tolerance, size, norm, scale, energy, now, alpha, beta, enough;
    int most_iterations, pass_visits[SK_VISCOUS_PASSES];
    double residual;
};

/* --- Places --- */

/* Where the cells around a cell are: for offsets of -1, 0 and 1 along each axis. */
typedef struct cells_around {
    const int32_t *slots;
    int side[3][3], local[3][3];
    size_t here;
} cells_around;

SK_DEVICE cells_around around_cell(const stress_level &level, int block, int cell)
{
    cells_around around;
    int stride = 1;
    around.slots = level.neighbours[block];
    around.here = (size_t)block * CELLS + (size_t)cell;
#pragma unroll
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = sk_plain_along(cell, d);
#pragma unroll
        for (int o = 0; o < 3; o++) {
            const int other = at + o - 1;
            around.side[d][o] = (other < 0 ? 0 : other < SK_BLOCK_N ? 1 : 2) * stride;
            around.local[d][o] = (other & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        stride *= 3;
    }
    return around;
}

SK_DEVICE size_t place_at(const cells_around &around, const int offset[3])
{
    int neighbour = 0, local = 0;
#pragma unroll
    for (int d = 0; d < SELKIE_DIM; d++) {
        neighbour += around.side[d][offset[d] + 1];
        local |= around.local[d][offset[d] + 1];
    }
    return (size_t)around.slots[neighbour] * CELLS + (size_t)local;
}

SK_DEVICE size_t place_beside(const cells_around &around, int axis, int side)
{
    int offset[3] = {0, 0, 0};
    offset[axis] = side;
    return place_at(around, offset);
}

/* Cell of a block of the face number n of a colour, 0 <= n < FACES. */
SK_DEVICE int cell_of_colour(int n, int parity)
{
    const int row = n / (N / 2), y = row % N, z = row / N;
    return row * N + 2 * (n % (N / 2)) + ((parity + y + z) & 1);
}

/* Place of the fine cell at `at` from the lower corner of a coarse block. */
SK_DEVICE size_t fine_place(const int32_t *under, const int at[3])
{
    int number = 0, local = 0;
#pragma unroll
    for (int d = 0; d < SELKIE_DIM; d++) {
        number |= ((at[d] >> SK_BLOCK_LOG) + 1) << 2 * d;
        local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return (size_t)under[number] * CELLS + (size_t)local;
}

/* The block of a level at a place; 0 = none. */
SK_DEVICE int block_at(const stress_level &level, const int at[3])
{
    int place = 0;
    for (int d = SELKIE_DIM - 1; d >= 0; d--) {
        const int n = at[d] - level.low[d];
        if (n < 0 || n >= level.blocks[d])
            return 0;
        place = place * level.blocks[d] + n;
    }
    return level.map[place];
}

/* --- Rows --- */

/* The row of a face across axis A. Returns the diagonal. */
template <int A>
SK_DEVICE float row_of(const stress_level &level, const cells_around &around, float coefficient[SK_STRESS_NEIGHBOURS])
{
    const size_t here = around.here, before = place_beside(around, A, -1);
    sk_stress_weights w;
    w.mass = level.mass[A][here];
    w.normal[0] = level.normal[A][before];
    w.normal[1] = level.normal[A][here];
    w.bulk[0] = level.bulk[before];
    w.bulk[1] = level.bulk[here];
#pragma unroll
    for (int n = 0; n < SK_STRESS_ACROSS; n++) {
        const int b = sk_stress_axis(A, n);
        const float *shear = level.shear[sk_stress_edge(A, b)];
        w.shear[n][0] = shear[here];
        w.shear[n][1] = shear[place_beside(around, b, 1)];
    }
    return sk_stress_row(&w, coefficient);
}

/* Sum of coefficient x neighbour, in two chains. */
template <int A, typename T>
SK_DEVICE T neighbour_sum(const cells_around &around, const float coefficient[SK_STRESS_NEIGHBOURS], T *const x[3])
{
    T sum[2] = {(T)0, (T)0};
#pragma unroll
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        int offset[3];
        sk_stress_offset(A, m, offset);
        sum[m & 1] += (T)coefficient[m] * x[sk_stress_component(A, m)][place_at(around, offset)];
    }
    return sum[0] + sum[1];
}

SK_DEVICE int is_unknown(const stress_level &level, size_t place, int a)
{
    return level.unknown[place] >> a & 1;
}

/* Each axis as a constant: `work` is a generic lambda that takes it. */
template <int A> struct axis_constant {
    static const int value = A;
};
template <typename Work> SK_DEVICE void with_axis(int a, Work work)
{
    if (a == 0)
        work(axis_constant<0>());
    else if (a == 1)
        work(axis_constant<1>());
#if SELKIE_DIM == 3
    else
        work(axis_constant<2>());
#endif
}
template <typename Work> SK_DEVICE void each_axis(Work work)
{
    work(axis_constant<0>());
    work(axis_constant<1>());
#if SELKIE_DIM == 3
    work(axis_constant<2>());
#endif
}

/* --- Launches --- */

static inline int width_of_level(const sk_cuda *cuda, const stress_level *level, int depth)
{
    const int blocks = depth ? level->capacity : cuda->expected_blocks;
    return blocks > LAUNCH_BLOCKS ? LAUNCH_BLOCKS : blocks < 1 ? 1 : blocks;
}

/* Loops over the blocks of a level that have unknowns, a thread block each. */
#define EACH_STRESS_BLOCK(block, stress, level, depth)                                                                 \
    for (int block = 1 + (int)blockIdx.x; block < (stress)->count[depth]; block += (int)gridDim.x)                     \
        if ((level).any[block])

/* The levels of this step, from the weights of level 0. The start of the first pass, what lies between it and the next
 * one, the end of the last; as many iterations as the last solves needed. The momenta of liquid that touches no wall.
 */
void SK_DIM(sk_cuda_launch_stress_levels)(sk_cuda *cuda);
void SK_DIM(sk_cuda_start_stress)(sk_cuda *cuda);
void SK_DIM(sk_cuda_next_stress)(sk_cuda *cuda, const sk_step *host);
void SK_DIM(sk_cuda_end_stress)(sk_cuda *cuda, const sk_step *host);
selkie_code SK_DIM(sk_cuda_iterate_stress)(sk_step *step, int kind, selkie_error *error);
void SK_DIM(sk_cuda_launch_momenta)(sk_cuda *cuda);
/* A cycle, which is one symmetric sweep where the liquid is soft; symmetric sweep number n there, if it takes `sweeps`
 * of them (0 = or any number); the first level that the cycle leaves to a cluster, at most SK_CUDA_TAIL_DEPTHS. */
enum { SK_CUDA_TAIL_DEPTHS = 4 };
void SK_DIM(sk_cuda_launch_stress_cycle)(sk_cuda *cuda);
void SK_DIM(sk_cuda_launch_symmetric_sweep)(sk_cuda *cuda, int n, int sweeps);
int SK_DIM(sk_cuda_stress_tail)(const sk_cuda *cuda);

#endif

/* Levels of the multigrid preconditioner and the operations on them.
 *
 * Private to src/linalg. A level holds its blocks in two runs: blocks whose coordinates have an even sum (colour 0),
 * then the others. Each run follows a Morton curve, so that neighbours in space are near in memory. Block 0 is the
 * empty block: zeros in place of every absent neighbour.
 *
 * The fields of a level have (block_count + 1) * SK_BLOCK_CELLS values, in the split layout of split.h. Operations on
 * a level take a team. The blocks of each thread depend on the level alone, and no result depends on the thread that
 * computed it.
 */
#ifndef SK_LINALG_MULTIGRID_H
#define SK_LINALG_MULTIGRID_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "base/backend.h"
#include "base/dimension.h"
#include "base/memory.h"
#include "base/status.h"
#include "grid/wrap_kernels.h"
#include "linalg/linalg_kernels.h"
#include "linalg/poisson.h"
#include "linalg/split.h"

enum {
    SK_SMALL_LEVEL = 24, /* blocks; a smaller level loses more by a barrier than it gains by a second thread */
    SK_MAX_LEVELS = 28,
    SK_BOTTOM_UNKNOWNS = 48, /* the largest level that is solved exactly */
    SK_SLOT_EMPTY = 0,       /* coefficients of block 0: all zero */
    SK_SLOT_UNIFORM = 1,     /* shared by all uniform blocks: faces 1, the rest unused */
    SK_SLOT_FIRST = 2
};

/* Coefficients of a general block, each SK_BLOCK_CELLS floats, one after the other in its slot. */
enum { SK_COEFFICIENT_FACE = 0, SK_COEFFICIENT_EXCESS = SELKIE_DIM, SK_COEFFICIENT_INVERSE, SK_COEFFICIENT_ARRAYS };

/* Memory that only grows: a second solve of the same size allocates nothing. */
typedef struct sk_scratch {
    void *data;
    size_t bytes;
} sk_scratch;

/* The unknowns of a block that take part: none, some or all. */
typedef enum sk_part { SK_PART_NONE, SK_PART_SOME, SK_PART_ALL } sk_part;

typedef struct sk_level {
    int block_count; /* without block 0 */
    int first[3];    /* first block of colour 0, of colour 1, and one past the last */
    int64_t unknowns;
    int32_t joined[3];         /* blocks along a periodic axis; 0 = no block has a neighbour beyond the sides */
    int32_t (*coordinates)[4]; /* [block_count + 1] of the blocks; fourth unused */
    int32_t (*neighbour)[6];   /* [block_count + 1] 0 = none */
    int32_t *parent;           /* [block_count + 1] block of the next level */
    int32_t *morton;           /* [block_count] blocks along the Morton curve, colours mixed */
    int32_t *slot;             /* [block_count + 1] coefficients of the block */
    int32_t *work;             /* [block_count + 2] cost of all blocks before this one, for equal shares of work */
    sk_active *active;         /* [block_count + 1] vectors with unknowns */
    uint8_t *joins;            /* [block_count + 1] 1: all faces between two unknowns of a general block are 1 */
    float *excess, *inverse;   /* [block_count + 1] for uniform blocks: d - sum of faces, 1 / d */
    float *coefficients;       /* [slots * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS] */
    float *x, *b;              /* unknown and right side of this level in a cycle */
    float softness;            /* softening of its stiffest Dirichlet terms, see multigrid_setup_dim.c */
    /* Set if some unknowns are held, as by bounds; part = NULL: none. Held unknowns have x = 0 at all times, so that
     * faces towards them need no change. b may be anything there. */
    uint8_t *part;       /* [block_count + 1] an sk_part, of block 0 SK_PART_ALL */
    float *part_inverse; /* 1 / d of unknowns that take part, else 0 */
    sk_scratch index_memory, coefficient_memory, vector_memory;
} sk_level;

/* Two red-black sweeps inside each block of one colour of blocks. SK_SWEEP_BACKWARD reverses both orders and gives the
 * transpose. */
typedef enum sk_sweep { SK_SWEEP_FORWARD, SK_SWEEP_FORWARD_FROM_ZERO, SK_SWEEP_BACKWARD } sk_sweep;

/* The arithmetic on one block of a level. Each backend has one table. Its callers are shared by all backends. */
typedef struct sk_level_operations {
    /* Smooths x of the block for b. */
    void (*smooth)(const sk_level *level, int block, sk_sweep sweep);
    /* y = A x for unknowns; y belongs to one block. */
    void (*multiply)(const sk_level *level, const float *x, int block, float *y);
    /* Sum of a * b over a block. */
    double (*dot)(const float *a, const float *b, sk_active active);
    /* b - A (high + low) in double, rounded at the end; b and residual belong to one block. low is the rounding error
     * of high (see sk_fold). */
    void (*residual)(const sk_level *level, const float *high, const float *low, const float *b, int block,
                     float *residual);
    /* The block's part of its parent's b: b - A x, restricted. */
    void (*restrict_residual)(const sk_level *fine, const sk_level *coarse, int block);
    /* x += x of the parent. */
    void (*prolong)(const sk_level *fine, const sk_level *coarse, int block);
    /* Faces and excess of the block's part of its parent. */
    void (*coarsen)(const sk_level *fine, const sk_level *coarse, int block);
    /* Inverse diagonals, after the faces of all blocks. Returns whether the block is uniform; counts unknowns. */
    int (*invert)(const sk_level *level, int block, int *unknowns);
} sk_level_operations;

typedef struct sk_multigrid {
    sk_memory *memory;
    const sk_level_operations *operations;
    float largest_face; /* upper bound of the face coefficients on level 0: the unit of its Dirichlet terms */
    int thorough; /* more work on the finest level, less below it: pays in 3D if an iteration is mostly the cycle */
    int level_count;
    sk_level level[SK_MAX_LEVELS];
    int bottom_unknowns;
    int32_t bottom_cell[SK_BOTTOM_UNKNOWNS]; /* block * SK_BLOCK_CELLS + index on the last level */
    float bottom_inverse[SK_BOTTOM_UNKNOWNS][SK_BOTTOM_UNKNOWNS];
} sk_multigrid;

/* A barrier of a team. Threads spin, since a sweep over a small level takes microseconds. They spin only briefly: on a
 * busy machine a spinning thread may block the one it waits for. */
typedef struct sk_barrier {
    atomic_int arrived, round;
} sk_barrier;

/* The threads that share a piece of work. A team of one never waits. */
typedef struct sk_team {
    int thread, threads;
    sk_barrier *barrier;
} sk_team;

void SK_DIM(sk_barrier_wait)(sk_barrier *barrier, int threads);

SK_INLINE void sk_team_wait(sk_team team)
{
    if (team.threads > 1)
        SK_DIM(sk_barrier_wait)(team.barrier, team.threads);
}

/* A thread's blocks of a level, [first, last) of each colour. They are the same in all operations on the level: data
 * that another core has written is slow to read. */
typedef struct sk_share {
    int first[2], last[2];
} sk_share;

sk_share SK_DIM(sk_level_share)(const sk_level *level, sk_team team);

#define SK_EACH_OWN_BLOCK(block, share)                                                                                \
    for (int colour_of_##block = 0; colour_of_##block < 2; ++colour_of_##block)                                        \
        for (int block = (share).first[colour_of_##block]; block < (share).last[colour_of_##block]; ++block)

SK_INLINE const float *sk_slot_array(const sk_level *level, int block, int array)
{
    return level->coefficients + ((size_t)level->slot[block] * SK_COEFFICIENT_ARRAYS + (size_t)array) * SK_BLOCK_CELLS;
}

SK_INLINE void sk_look_around(const sk_level *level, const float *field, int block, sk_around *around)
{
    around->own = field + (size_t)block * SK_BLOCK_CELLS;
    for (int side = 0; side < SK_SIDES; ++side)
        around->side[side] = field + (size_t)level->neighbour[block][side] * SK_BLOCK_CELLS;
}

/* Upper faces are stored in the blocks on the upper sides. */
SK_INLINE void sk_look_around_faces(const sk_level *level, int block, sk_around around[SELKIE_DIM])
{
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        around[axis].own = sk_slot_array(level, block, axis);
        for (int side = 0; side < SK_SIDES; ++side)
            around[axis].side[side] = sk_slot_array(level, level->neighbour[block][side], axis);
    }
}

SK_INLINE int sk_is_unknown(const sk_level *level, int block, int index)
{
    return level->slot[block] == SK_SLOT_UNIFORM || sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)[index] > 0;
}

SK_INLINE float sk_excess_at(const sk_level *level, int block, int index)
{
    return level->slot[block] == SK_SLOT_UNIFORM ? level->excess[block]
                                                 : sk_slot_array(level, block, SK_COEFFICIENT_EXCESS)[index];
}

/* 1 / d of an unknown that takes part, otherwise 0. */
SK_INLINE float sk_inverse_at(const sk_level *level, int block, int index)
{
    if (level->part)
        return level->part_inverse[(size_t)block * SK_BLOCK_CELLS + (size_t)index];
    return level->slot[block] == SK_SLOT_UNIFORM ? level->inverse[block]
                                                 : sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)[index];
}

SK_INLINE sk_part sk_part_of(const sk_level *level, int block)
{
    return level->part ? (sk_part)level->part[block] : SK_PART_ALL;
}

/* Position of a fine block in its parent, in coarse cells. */
SK_INLINE void sk_place_in_parent(const sk_level *fine, int block, int origin[3])
{
    for (int axis = 0; axis < 3; ++axis)
        origin[axis] = (fine->coordinates[block][axis] & 1) * SK_CHILD;
}

/* --- multigrid_setup_dim.c --- */

selkie_code SK_DIM(sk_scratch_reserve)(sk_memory *memory, sk_scratch *scratch, size_t bytes, selkie_error *error);
/* Lays out the index arrays of a level of `block_count` blocks. Only block 0 gets content. */
selkie_code SK_DIM(sk_level_allocate)(sk_multigrid *multigrid, int depth, int block_count, selkie_error *error);
/* Builds the coarse levels from level 0: colours, order, neighbours and coefficients. */
selkie_code SK_DIM(sk_multigrid_coarsen)(sk_multigrid *multigrid, int threads, selkie_error *error);
/* Numbers the blocks of a level. `curve` lists them along the Morton curve by coordinates; number[i] becomes the
 * number of curve[i]. */
void SK_DIM(sk_level_number)(sk_level *level, const int32_t (*coordinates)[4], int32_t *number);
void SK_DIM(sk_level_finish_work)(sk_level *level);
/* Faces and excess of a block's part of its parent. Closes the sides that are joined on the fine level alone. */
void SK_DIM(sk_coarsen_with_sides)(const sk_multigrid *multigrid, const sk_level *fine, const sk_level *coarse,
                                   int block);
void SK_DIM(sk_multigrid_release)(sk_multigrid *multigrid);

/* --- multigrid_bottom_dim.c --- */

void SK_DIM(sk_multigrid_prepare_bottom)(sk_multigrid *multigrid);

/* --- multigrid_part_dim.c --- */

/* Do all unknowns of the block and of its neighbours take part? */
int SK_DIM(sk_level_is_whole)(const sk_level *level, int block);
/* Coarsens the levels below `root` again after some of its unknowns were held or released. changed[depth] has a byte
 * for each block of a level. The caller fills that of the root; the others are filled here. `mark` is scratch of the
 * same size. */
void SK_DIM(sk_multigrid_recoarsen)(sk_multigrid *multigrid, int root, sk_team team, uint8_t *const changed[],
                                    uint8_t *mark);

/* --- multigrid_cycle_dim.c --- */

/* x of the level at `root` = M b, with M symmetric. partial[block], if not NULL, gets the sum of b * x. A careful
 * cycle takes a little longer and is positive definite for all faces. Other cycles nearly always are. */
void SK_DIM(sk_multigrid_cycle)(const sk_multigrid *multigrid, int root, sk_team team, int careful, double *partial);

/* --- multigrid_tuned_dim.c, multigrid_coarsen_tuned_dim.c: vectors of cells --- */

extern const sk_level_operations SK_DIM(sk_level_operations_tuned);
void SK_DIM(sk_coarsen_block)(const sk_level *fine, const sk_level *coarse, int block);
int SK_DIM(sk_invert_block)(const sk_level *level, int block, int *unknowns);
void SK_DIM(sk_residual_block)(const sk_level *level, const float *high, const float *low, const float *b, int block,
                               float *residual);

/* --- multigrid_plain_dim.c: one cell at a time --- */

extern const sk_level_operations SK_DIM(sk_level_operations_plain);

#endif

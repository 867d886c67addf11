/* Levels of the multigrid preconditioner and what is done on them.
 *
 * Private to src/linalg. A level holds its blocks in two runs, first those whose
 * block coordinates have an even sum (colour 0), then the others; inside a run
 * along a Morton curve, so that neighbours in space are near in memory. Block 0
 * is the empty one: zeros that stand for whatever is absent.
 *
 * Sizes of a level's fields: (block_count + 1) * SK_BLOCK_CELLS, in the split
 * layout of split.h. Everything that works on a level takes a team: the range of
 * blocks that falls to each thread depends on the level alone, and no result
 * depends on who computed it.
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
#include "linalg/linalg_kernels.h"
#include "linalg/poisson.h"
#include "linalg/split.h"

enum {
    SK_SMALL_LEVEL = 24, /* blocks; below this a barrier costs more than the second thread saves */
    SK_MAX_LEVELS = 28,
    SK_BOTTOM_UNKNOWNS = 48, /* a level this small is solved exactly */
    SK_SLOT_EMPTY = 0,       /* coefficients of block 0: all zero */
    SK_SLOT_UNIFORM = 1,     /* shared by every uniform block: faces 1, nothing else in use */
    SK_SLOT_FIRST = 2
};

/* Coefficients of a general block, each SK_BLOCK_CELLS floats, one after the other in its slot. */
enum { SK_COEFFICIENT_FACE = 0, SK_COEFFICIENT_EXCESS = SELKIE_DIM, SK_COEFFICIENT_INVERSE, SK_COEFFICIENT_ARRAYS };

/* Memory that only grows, so that a solve of the same size allocates nothing. */
typedef struct sk_scratch {
    void *data;
    size_t bytes;
} sk_scratch;

/* How many of a block's unknowns take part. */
typedef enum sk_part { SK_PART_NONE, SK_PART_SOME, SK_PART_ALL } sk_part;

typedef struct sk_level {
    int block_count; /* without block 0 */
    int first[3];    /* first block of colour 0, of colour 1, and one past the last */
    int64_t unknowns;
    int32_t (*coordinates)[4]; /* [block_count + 1] of the blocks; fourth unused */
    int32_t (*neighbour)[6];   /* [block_count + 1] 0 = none */
    int32_t *parent;           /* [block_count + 1] block of the next level */
    int32_t *morton;           /* [block_count] blocks along the Morton curve, colours mixed */
    int32_t *slot;             /* [block_count + 1] coefficients of the block */
    int32_t *work;             /* [block_count + 2] cost of all blocks before this one, for fair shares */
    sk_active *active;         /* [block_count + 1] vectors with unknowns */
    float *excess, *inverse;   /* [block_count + 1] of uniform blocks: d - sum of faces, 1 / d */
    float *coefficients;       /* [slots * SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS] */
    float *x, *b;              /* unknown and right side of this level's part of a cycle */
    float softness;            /* of its stiffest Dirichlet terms, see multigrid_setup_dim.c */
    /* Where some unknowns are held still, as bounds do it; part = NULL: none. They have x = 0 at all times, so that
     * faces towards them need no change; b may be anything there. */
    uint8_t *part;       /* [block_count + 1] an sk_part, of block 0 SK_PART_ALL */
    float *part_inverse; /* 1 / d of unknowns that take part, else 0 */
    sk_scratch index_memory, coefficient_memory, vector_memory;
} sk_level;

/* Two red-black sweeps inside each block of one colour of blocks. The reverse order of both, backwards, is the
 * transpose. */
typedef enum sk_sweep { SK_SWEEP_FORWARD, SK_SWEEP_FORWARD_FROM_ZERO, SK_SWEEP_BACKWARD } sk_sweep;

/* The arithmetic on one block of a level. Each backend has a table of its own; what calls it is the same for all. */
typedef struct sk_level_operations {
    /* x of the block for b. */
    void (*smooth)(const sk_level *level, int block, sk_sweep sweep);
    /* y = A x where there are unknowns; y is of one block. */
    void (*multiply)(const sk_level *level, const float *x, int block, float *y);
    /* Sum of a * b over a block. */
    double (*dot)(const float *a, const float *b, sk_active active);
    /* b - A (high + low) in double, rounded at the end; b and residual are of one block. low is what high cannot hold
     * (see sk_fold). */
    void (*residual)(const sk_level *level, const float *high, const float *low, const float *b, int block,
                     float *residual);
    /* The block's part of its parent's b: b - A x, restricted. */
    void (*restrict_residual)(const sk_level *fine, const sk_level *coarse, int block);
    /* x += x of the parent. */
    void (*prolong)(const sk_level *fine, const sk_level *coarse, int block);
    /* Faces and excess of the block's part of its parent. */
    void (*coarsen)(const sk_level *fine, const sk_level *coarse, int block);
    /* Inverse diagonals, once the faces of all blocks are known. Says whether the block is uniform; counts unknowns. */
    int (*invert)(const sk_level *level, int block, int *unknowns);
} sk_level_operations;

typedef struct sk_multigrid {
    sk_memory *memory;
    const sk_level_operations *operations;
    float largest_face; /* bound of the coefficients of faces on level 0: the unit of its Dirichlet terms */
    int thorough; /* more work on the finest level, less below it: pays in 3D where a cycle is all that is done in an
                     iteration */
    int level_count;
    sk_level level[SK_MAX_LEVELS];
    int bottom_unknowns;
    int32_t bottom_cell[SK_BOTTOM_UNKNOWNS]; /* block * SK_BLOCK_CELLS + index on the last level */
    float bottom_inverse[SK_BOTTOM_UNKNOWNS][SK_BOTTOM_UNKNOWNS];
} sk_multigrid;

/* Where the threads of a team meet. They spin, since a sweep over a small level takes microseconds, but not for long:
 * on a machine that is busy with other things a thread that spins may keep away the one it waits for. */
typedef struct sk_barrier {
    atomic_int arrived, round;
} sk_barrier;

/* Who works on something. A team of one never waits. */
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

/* A thread's blocks of a level, [first, last) of each colour. The same thread has the same ones in all that is done on
 * the level: what another core has written is slow to come by. */
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

/* Upper faces belong to the blocks on the upper sides, so those are looked up there. */
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

/* 1 / d of an unknown that takes part, else 0. */
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

/* Where a fine block lies in its parent, in coarse cells. */
SK_INLINE void sk_place_in_parent(const sk_level *fine, int block, int origin[3])
{
    for (int axis = 0; axis < 3; ++axis)
        origin[axis] = (fine->coordinates[block][axis] & 1) * SK_CHILD;
}

/* --- multigrid_setup_dim.c --- */

selkie_code SK_DIM(sk_scratch_reserve)(sk_memory *memory, sk_scratch *scratch, size_t bytes, selkie_error *error);
/* Lays out the index arrays of a level of `block_count` blocks; their content is undefined but for block 0. */
selkie_code SK_DIM(sk_level_allocate)(sk_multigrid *multigrid, int depth, int block_count, selkie_error *error);
/* Sets colours, order and neighbours of the coarse levels, and their coefficients, from those of level 0. */
selkie_code SK_DIM(sk_multigrid_coarsen)(sk_multigrid *multigrid, int threads, selkie_error *error);
/* Gives the blocks of a level their numbers: `curve` lists them along the Morton curve by coordinates, and
 * number[i] becomes the number of curve[i]. */
void SK_DIM(sk_level_number)(sk_level *level, const int32_t (*coordinates)[4], int32_t *number);
void SK_DIM(sk_level_finish_work)(sk_level *level);
void SK_DIM(sk_multigrid_release)(sk_multigrid *multigrid);

/* --- multigrid_bottom_dim.c --- */

void SK_DIM(sk_multigrid_prepare_bottom)(sk_multigrid *multigrid);

/* --- multigrid_part_dim.c --- */

/* Do all unknowns of the block and of those around it take part? */
int SK_DIM(sk_level_is_whole)(const sk_level *level, int block);
/* Coarsens again the levels below `root`, after some of its unknowns changed sides: changed[depth] (bytes, of each
 * block of a level) says where on the root level, and is filled below it. `mark` is scratch as long. */
void SK_DIM(sk_multigrid_recoarsen)(sk_multigrid *multigrid, int root, sk_team team, uint8_t *const changed[],
                                    uint8_t *mark);

/* --- multigrid_cycle_dim.c --- */

/* x of the level at `root` = M b, with M symmetric. partial[block] receives the sum of b * x if not NULL. A careful
 * cycle takes a little longer and is positive definite whatever the faces are; others nearly always are. */
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

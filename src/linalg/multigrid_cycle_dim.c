/* One multigrid cycle over sparse blocks: the preconditioner of the conjugate gradients.
 *
 * The smoother takes the blocks in a checkerboard: all blocks of one colour, which do not touch each other, then all
 * of the other. Each visit does two red-black Gauss-Seidel sweeps on a block while it is in the L1 cache; neighbouring
 * blocks do not change meanwhile. So the result does not depend on threads, and one pass over memory does two sweeps.
 * After the coarse correction all orders are reversed (blocks of the second colour first, black cells first). The
 * cycle is then symmetric, as conjugate gradients require.
 *
 * A coarse cell is the sum of its children (restriction) and gives them its value (prolongation). Plain aggregation
 * converges slowly: its piecewise constants make the coarse operator too stiff by a factor of 2. Scaling the right
 * side by that factor (scaled aggregation, Braess 1995; Stueben 2001) repairs it. Restriction is then 1/2 the sum of
 * the 8 children in 3D and the sum of the 4 in 2D, with a full face 1 on every level. SK_CORRECTION_SCALE reduces it
 * slightly, which saves iterations.
 *
 * The level below the finest is visited twice (a W cycle). It has 1/8 (2D: 1/4) of the cells, and its errors cost
 * iterations on the finest level. The next level is also visited twice unless it is small. Further second visits save
 * nothing. One thread runs the levels that are too small to share.
 *
 * A thorough cycle visits each block of the finest level twice. The second visit uses the updated values of the
 * neighbours; without it the jumps between blocks cost iterations. A thorough cycle visits a coarse level once if it
 * has nearly as many blocks as the fine one, as in a splash. A second visit would then cost more time than it saves.
 */
#include "linalg/multigrid.h"

#include <sched.h>

enum { barrier_spins = 500 }; /* some tens of microseconds */

void SK_DIM(sk_barrier_wait)(sk_barrier *barrier, int threads)
{
    int round = atomic_load_explicit(&barrier->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) == threads - 1) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&barrier->round, round + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&barrier->round, memory_order_acquire) == round; ++spins) {
        if (spins > barrier_spins) {
            sched_yield();
            continue;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

sk_share SK_DIM(sk_level_share)(const sk_level *level, sk_team team)
{
    sk_share share;
    for (int colour = 0; colour < 2; ++colour) {
        int bound[2] = {level->first[colour], level->first[colour + 1]}, cut[2] = {bound[0], bound[1]};
        int64_t from = level->work[bound[0]], all = level->work[bound[1]] - from;
        for (int end = 0; team.threads > 1 && end < 2; ++end) {
            int64_t wanted = from + all * (team.thread + end) / team.threads;
            int low = bound[0], high = bound[1];
            while (low < high) {
                int middle = (low + high) / 2;
                if (level->work[middle] < wanted)
                    low = middle + 1;
                else
                    high = middle;
            }
            cut[end] = low;
        }
        share.first[colour] = cut[0];
        share.last[colour] = cut[1];
    }
    return share;
}

static void solve_bottom(const sk_multigrid *multigrid, const sk_level *level)
{
    int count = multigrid->bottom_unknowns;
    float sum[SK_BOTTOM_UNKNOWNS] = {0};
    for (int j = 0; j < count; ++j) {
        float b = level->b[multigrid->bottom_cell[j]];
        for (int i = 0; i < SK_BOTTOM_UNKNOWNS; ++i)
            sum[i] += multigrid->bottom_inverse[j][i] * b;
    }
    for (int i = 0; i < count; ++i)
        level->x[multigrid->bottom_cell[i]] = sum[i];
}

/* Sum of b.x over a block, while it is in the cache. */
static void take_dot(const sk_multigrid *multigrid, const sk_level *level, int block, double *partial)
{
    size_t at = (size_t)block * SK_BLOCK_CELLS;
    if (partial)
        partial[block] = multigrid->operations->dot(level->b + at, level->x + at, level->active[block]);
}

/* Does a second visit to this level, from the one above it, pay? */
static int is_worth_it(const sk_multigrid *multigrid, int depth, int careful)
{
    const int fine = multigrid->level[depth - 1].block_count, coarse = multigrid->level[depth].block_count;
    if (depth == multigrid->level_count - 1)
        return 0; /* solved exactly */
    const int sparse = multigrid->thorough && coarse > fine / 4;
    return careful || (!sparse && (depth == 1 || (depth == 2 && coarse >= SK_SMALL_LEVEL)));
}

/* A second visit to a coarse level turns its preconditioner B into 2 B - B A B, with eigenvalues 2 l - l^2. If two
 * parts of the liquid are connected by nearly closed faces, the mean of faces is half of the coarse coefficient
 * needed. Each level then doubles the correction of the one below it: l is 0.95, 1.9, 3.6 and so on, until 2 l - l^2
 * is negative and B is indefinite. If every level is visited twice, l stays between 0 and 2 on all of them, for all
 * faces. A cycle is therefore careful after one that was not has failed. */
static void cycle(const sk_multigrid *multigrid, int depth, sk_team team, int careful, int from_zero, double *partial)
{
    const sk_level *level = &multigrid->level[depth];
    const sk_level_operations *operate = multigrid->operations;
    if (team.threads > 1 && level->block_count < SK_SMALL_LEVEL) {
        if (team.thread == 0)
            cycle(multigrid, depth, (sk_team){0, 1, NULL}, careful, from_zero, partial);
        sk_team_wait(team);
        return;
    }
    const sk_share share = SK_DIM(sk_level_share)(level, team);
    const int *first = share.first, *last = share.last;
    if (depth == multigrid->level_count - 1) {
        if (team.thread == 0) {
            solve_bottom(multigrid, level);
            for (int block = 1; block <= level->block_count; ++block)
                take_dot(multigrid, level, block, partial);
        }
    } else {
        const sk_level *coarse = level + 1;
        sk_sweep sweep = from_zero ? SK_SWEEP_FORWARD_FROM_ZERO : SK_SWEEP_FORWARD;

        const int visits =
            depth == 0 && multigrid->thorough ? 2 : 1; /* of each block, on the way down and on the way up */

        /* Down. Blocks of the second colour already have the values of all their neighbours. */
        for (int visit = 1; visit <= visits; ++visit) {
            for (int block = first[0]; block < last[0]; ++block)
                operate->smooth(level, block, sweep);
            sk_team_wait(team);
            for (int block = first[1]; block < last[1]; ++block) {
                operate->smooth(level, block, sweep);
                if (visit == visits)
                    operate->restrict_residual(level, coarse, block);
            }
            sk_team_wait(team);
            sweep = SK_SWEEP_FORWARD;
        }
        for (int block = first[0]; block < last[0]; ++block)
            operate->restrict_residual(level, coarse, block);
        sk_team_wait(team);

        cycle(multigrid, depth + 1, team, careful, 1, NULL);
        if (is_worth_it(multigrid, depth + 1, careful))
            cycle(multigrid, depth + 1, team, careful, 0, NULL);

        /* Up, in reverse. */
        for (int block = first[0]; block < last[0]; ++block)
            operate->prolong(level, coarse, block);
        sk_team_wait(team);
        for (int visit = visits; visit >= 1; --visit) {
            for (int block = first[1]; block < last[1]; ++block) {
                if (visit == visits)
                    operate->prolong(level, coarse, block);
                operate->smooth(level, block, SK_SWEEP_BACKWARD);
                if (visit == 1)
                    take_dot(multigrid, level, block, partial);
            }
            sk_team_wait(team);
            for (int block = first[0]; block < last[0]; ++block) {
                operate->smooth(level, block, SK_SWEEP_BACKWARD);
                if (visit == 1)
                    take_dot(multigrid, level, block, partial);
            }
            if (visit > 1)
                sk_team_wait(team);
        }
    }
    sk_team_wait(team);
}

void SK_DIM(sk_multigrid_cycle)(const sk_multigrid *multigrid, int root, sk_team team, int careful, double *partial)
{
    cycle(multigrid, root, team, careful, 1, partial);
}

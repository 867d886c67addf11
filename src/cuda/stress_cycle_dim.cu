/* The multigrid cycle of the GPU form of the stress solver, in single precision: a sweep is a launch a colour, and the
 * coarse levels are left to one cluster of thread blocks. See cuda/stress_dim.cu. */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/stress_parts.h"

/* --- The cycle --- */

/* The residual after a forward sweep. It is 0 in the last colour, whose rows the sweep has just solved. */
template <int A> SK_DEVICE void leave_face(const stress_level &level, int block, int cell)
{
    const size_t here = (size_t)block * CELLS + (size_t)cell;
    if (!is_unknown(level, here, A))
        return;
    const int at[3] = {sk_plain_along(cell, 0), sk_plain_along(cell, 1), SELKIE_DIM == 3 ? sk_plain_along(cell, 2) : 0};
    float left = 0.0f;
    if (sk_stress_colour_at(at, A) != SK_STRESS_COLOURS - 1) {
        const cells_around around = around_cell(level, block, cell);
        float coefficient[SK_STRESS_NEIGHBOURS];
        const float diagonal = row_of<A>(level, around, coefficient);
        left = level.b[A][here] - neighbour_sum<A, float>(around, coefficient, level.x) - diagonal * level.x[A][here];
    }
    level.rest[A][here] = left;
}

/* The transposed interpolation to a coarse face, over the number of fine faces of a coarse one. */
template <int A> SK_DEVICE void restrict_face(const stress_level &fine, const stress_level &coarse, int block, int cell)
{
    const size_t here = (size_t)block * CELLS + (size_t)cell;
    if (!is_unknown(coarse, here, A))
        return;
    const float along[3] = {0.25f, 0.5f, 0.25f}, across[4] = {0.125f, 0.375f, 0.375f, 0.125f};
    const int32_t *under = coarse.under[block];
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int n = 0;
#pragma unroll
    for (int k = 0; k < (SELKIE_DIM == 2 ? 1 : A == 2 ? 3 : 4); k++)
#pragma unroll
        for (int j = 0; j < (A == 1 ? 3 : 4); j++)
#pragma unroll
            for (int i = 0; i < (A == 0 ? 3 : 4); i++, n++) {
                const int at[3] = {2 * sk_plain_along(cell, 0) - 1 + i, 2 * sk_plain_along(cell, 1) - 1 + j,
                                   SELKIE_DIM == 3 ? 2 * sk_plain_along(cell, 2) - 1 + k : 0};
                const float weight = (SELKIE_DIM == 2 ? 1.0f
                                      : A == 2        ? along[k % 3]
                                                      : across[k]) *
                                     (A == 1 ? along[j % 3] : across[j]) * (A == 0 ? along[i % 3] : across[i]);
                sum[n & 3] += weight * fine.rest[A][fine_place(under, at)];
            }
    coarse.b[A][here] = sum[0] + sum[1] + (sum[2] + sum[3]);
    coarse.x[A][here] = 0.0f;
}

template <int A> SK_DEVICE void correct_face(const stress_level &fine, const stress_level &coarse, int block, int cell)
{
    const size_t here = (size_t)block * CELLS + (size_t)cell;
    if (!is_unknown(fine, here, A))
        return;
    int parity = 0, local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = sk_plain_along(cell, d);
        parity |= (at & 1) << d;
        local |= (at / 2 + (fine.coordinates[block][d] & 1) * (N / 2)) << (d * SK_BLOCK_LOG);
    }
    const cells_around around = around_cell(coarse, fine.parent[block], local);
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < SK_STRESS_PARENTS; p++) {
        int offset[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            offset[d] = sk_stress_parent_offset(A, parity, p, d);
        sum += sk_stress_parent_weight(A, parity, p) * coarse.x[A][place_at(around, offset)];
    }
    fine.x[A][here] += sum;
}

/* Sweeps of a visit to a level, by where they count: on all levels that are not solved directly; only above the
 * coarsest one; only on a soft coarsest level below the finest; on both. On a soft finest level: the second or the
 * third symmetric sweep; any of an iteration of one, two or three. */
enum sweep_role {
    SWEEP_ALWAYS,
    SWEEP_INNER,
    SWEEP_SOFT,
    SWEEP_MOST,
    SWEEP_SECOND,
    SWEEP_THIRD,
    SWEEP_OF_ONE,
    SWEEP_OF_TWO,
    SWEEP_OF_THREE
};

SK_DEVICE bool sweep_counts(const sk_cuda_stress *stress, int depth, int role)
{
    if (depth > stress->bottom)
        return false;
    const bool inner = depth < stress->bottom, soft = !inner && stress->sweeps == 2;
    return role == SWEEP_ALWAYS  ? inner || soft || stress->sweeps == 1
           : role == SWEEP_INNER ? inner
           : role == SWEEP_SOFT  ? soft
           : role == SWEEP_MOST  ? inner || soft
           : role <= SWEEP_THIRD ? stress->soft >= 2 + role - SWEEP_SECOND
                                 : stress->soft == 1 + role - SWEEP_OF_ONE;
}

/* The row of a face: no launch of an iteration changes it. */
typedef struct face_row {
    cells_around around;
    float coefficient[SK_STRESS_NEIGHBOURS], inverse;
    int unknown;
} face_row;

template <int A> SK_DEVICE void load_row(const stress_level &level, int block, int cell, face_row *row)
{
    row->unknown = level.any[block] && is_unknown(level, (size_t)block * CELLS + (size_t)cell, A);
    if (!row->unknown)
        return;
    row->around = around_cell(level, block, cell);
    row->inverse = 1.0f / row_of<A>(level, row->around, row->coefficient);
}

template <int A> SK_DEVICE void smooth_row(const stress_level &level, const face_row &row)
{
    const size_t here = row.around.here;
    const float sum = neighbour_sum<A, float>(row.around, row.coefficient, level.x);
    level.x[A][here] = row.inverse * (level.b[A][here] - sum);
}

template <int A> SK_DEVICE void smooth_face(const stress_level &level, int block, int cell)
{
    face_row row;
    load_row<A>(level, block, cell, &row);
    if (row.unknown)
        smooth_row<A>(level, row);
}

/* Gauss-Seidel in the faces of colour k. The first row is loaded before the launch before this one is done. */
static __global__ void __launch_bounds__(FACES, 3)
    smooth_colour(sk_cuda_stress *stress, const __grid_constant__ stress_level level, int depth, int k, int role)
{
    SK_CUDA_LET_NEXT_START();
    const int count = sweep_counts(stress, depth, role) ? stress->count[depth] : 0;
    const int cell = cell_of_colour((int)threadIdx.x, k & 1);
    if (1 + (int)blockIdx.x >= count && blockIdx.x > 0)
        return;
    with_axis(k / 2, [&](auto axis) {
        constexpr int A = decltype(axis)::value;
        int block = 1 + (int)blockIdx.x;
        face_row row;
        if (block < count)
            load_row<A>(level, block, cell, &row);
        SK_CUDA_WAIT();
        if (stress->done)
            return;
        while (block < count) {
            if (row.unknown)
                smooth_row<A>(level, row);
            block += (int)gridDim.x;
            if (block < count)
                load_row<A>(level, block, cell, &row);
        }
    });
}

/* Sweep n of several begins with the result of the one before times a factor: sk_stress_relaxation(). */
static __global__ void __launch_bounds__(CELLS) relax(sk_cuda_stress *stress, int n, int role)
{
    SK_CUDA_WAIT();
    if (stress->done || !sweep_counts(stress, 0, role))
        return;
    const stress_level &level = stress->level[0];
    const float factor = sk_stress_relaxation(stress->soft, n);
    EACH_STRESS_BLOCK(block, stress, level, 0)
    for (int a = 0; a < SELKIE_DIM; a++)
        level.x[a][(size_t)block * CELLS + threadIdx.x] *= factor;
}

static __global__ void __launch_bounds__(CELLS)
    find_residual(sk_cuda_stress *stress, const __grid_constant__ stress_level level, int depth)
{
    SK_CUDA_WAIT();
    if (stress->done || depth >= stress->bottom)
        return;
    EACH_STRESS_BLOCK(block, stress, level, depth)
    each_axis([&](auto axis) { leave_face<decltype(axis)::value>(level, block, (int)threadIdx.x); });
}

static __global__ void __launch_bounds__(CELLS)
    restrict_residual(sk_cuda_stress *stress, const __grid_constant__ stress_level fine,
                      const __grid_constant__ stress_level coarse, int depth)
{
    SK_CUDA_WAIT();
    if (stress->done || depth >= stress->bottom)
        return;
    EACH_STRESS_BLOCK(block, stress, coarse, depth + 1)
    each_axis([&](auto axis) { restrict_face<decltype(axis)::value>(fine, coarse, block, (int)threadIdx.x); });
}

static __global__ void __launch_bounds__(CELLS)
    add_correction(sk_cuda_stress *stress, const __grid_constant__ stress_level fine,
                   const __grid_constant__ stress_level coarse, int depth)
{
    SK_CUDA_WAIT();
    if (stress->done || depth >= stress->bottom)
        return;
    EACH_STRESS_BLOCK(block, stress, fine, depth)
    each_axis([&](auto axis) { correct_face<decltype(axis)::value>(fine, coarse, block, (int)threadIdx.x); });
}

/* --- Levels of one cluster --- */

/* A cluster of thread blocks waits for its barriers a quarter of the time that dependent launches take. */
#ifdef SK_CUDA_EMULATED
enum { CLUSTER = 1, CLUSTER_THREADS = 64 };
#define SK_CLUSTER
#define CLUSTER_BARRIER() __syncthreads()
#else
enum { CLUSTER = 8, CLUSTER_THREADS = 512 };
#define SK_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#define CLUSTER_BARRIER() asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory")
#endif

/* Calls `work` for the cells or the faces of a colour of a level, `count` in a block. One cluster. */
template <typename Work>
SK_DEVICE void each_alone(const sk_cuda_stress *stress, const stress_level &level, int depth, int count, Work work)
{
    const int all = (stress->count[depth] - 1) * count;
    SK_CUDA_EACH(i, all)
    if (level.any[1 + (int)i / count])
        work(1 + (int)i / count, (int)i % count);
    CLUSTER_BARRIER();
}

SK_DEVICE void sweep_alone(const sk_cuda_stress *stress, int depth, int backward)
{
    const stress_level &level = stress->level[depth];
    for (int n = 0; n < SK_STRESS_COLOURS; n++) {
        const int k = backward ? SK_STRESS_COLOURS - 1 - n : n;
        each_alone(stress, level, depth, FACES, [&](int block, int face) {
            const int cell = cell_of_colour(face, k & 1);
            with_axis(k / 2, [&](auto axis) { smooth_face<decltype(axis)::value>(level, block, cell); });
        });
    }
}

/* The coarsest level: by its inverse, or by symmetric sweeps. */
SK_DEVICE void solve_bottom_alone(const sk_cuda_stress *stress)
{
    __shared__ float b[SK_STRESS_DIRECT];
    const stress_level &level = stress->level[stress->bottom];
    const int count = stress->bottom_unknowns;
    if (stress->sweeps) {
        for (int n = 0; n < stress->sweeps; n++)
            for (int backward = 0; backward < 2; backward++)
                sweep_alone(stress, stress->bottom, backward);
        return;
    }
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        const int face = stress->bottom_face[i];
        b[i] = level.b[face % SELKIE_DIM][face / SELKIE_DIM];
    }
    __syncthreads();
    SK_CUDA_EACH(i, count)
    {
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (int k = 0; k < count; k += 4)
#pragma unroll
            for (int n = 0; n < 4; n++)
                sum[n] += k + n < count ? stress->inverse[(size_t)(k + n) * count + i] * (double)b[k + n] : 0.0;
        const int face = stress->bottom_face[i];
        level.x[face % SELKIE_DIM][face / SELKIE_DIM] = (float)((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    CLUSTER_BARRIER();
}

/* The coarsest level where it is not one of the tail, unless its sweeps are launches of their own. */
static __global__ void SK_CLUSTER __launch_bounds__(CLUSTER_THREADS) solve_bottom(sk_cuda_stress *stress, int depth)
{
    SK_CUDA_WAIT();
    if (!stress->done && depth == stress->bottom && (!stress->sweeps || stress->sweeps == SK_STRESS_LAST_SWEEPS))
        solve_bottom_alone(stress);
}

/* The levels from `top` on. */
static __global__ void SK_CLUSTER __launch_bounds__(CLUSTER_THREADS) cycle_tail(sk_cuda_stress *stress, int top)
{
    SK_CUDA_WAIT();
    if (stress->done || stress->bottom < top)
        return;
    const int bottom = stress->bottom;
    for (int depth = top; depth < bottom; depth++) {
        const stress_level &level = stress->level[depth], &coarse = stress->level[depth + 1];
        for (int n = 0; n < SK_STRESS_SMOOTHINGS + (depth ? SK_STRESS_MORE : 0); n++)
            sweep_alone(stress, depth, 0);
        each_alone(stress, level, depth, CELLS, [&](int block, int cell) {
            each_axis([&](auto axis) { leave_face<decltype(axis)::value>(level, block, cell); });
        });
        each_alone(stress, coarse, depth + 1, CELLS, [&](int block, int cell) {
            each_axis([&](auto axis) { restrict_face<decltype(axis)::value>(level, coarse, block, cell); });
        });
    }
    solve_bottom_alone(stress);
    for (int depth = bottom - 1; depth >= top; depth--) {
        const stress_level &level = stress->level[depth], &coarse = stress->level[depth + 1];
        each_alone(stress, level, depth, CELLS, [&](int block, int cell) {
            each_axis([&](auto axis) { correct_face<decltype(axis)::value>(level, coarse, block, cell); });
        });
        for (int n = 0; n < SK_STRESS_SMOOTHINGS + (depth ? SK_STRESS_MORE : 0); n++)
            sweep_alone(stress, depth, 1);
    }
}
/* --- Launches --- */

/* The first level that is left to a cluster: it had few blocks in the last step. Before the first step it is told by
 * its places, of which liquid fills a part. */
enum { TAIL_MOST = 16 };
int SK_DIM(sk_cuda_stress_tail)(const sk_cuda *cuda)
{
    const sk_cuda_stress *shadow = cuda->stress_shadow;
    int depth = 1;
    while (depth < shadow->level_count && depth < SK_CUDA_TAIL_DEPTHS) {
        const int last = cuda->results->viscosity.blocks[depth];
        if ((last ? last : shadow->level[depth].places / 4) <= TAIL_MOST)
            break;
        depth++;
    }
    return depth;
}

static void launch_sweep(sk_cuda *cuda, int depth, int backward, int role)
{
    const stress_level level = cuda->stress_shadow->level[depth];
    const int wide = width_of_level(cuda, &level, depth);
    for (int n = 0; n < SK_STRESS_COLOURS; n++)
        SK_LAUNCH_SIMPLE(cuda, smooth_colour, wide, FACES, cuda->stress, level, depth,
                         backward ? SK_STRESS_COLOURS - 1 - n : n, role);
}

/* A cycle from a level on. Sweeps of a soft coarsest level are forward, backward, forward, backward. */
static void launch_cycle(sk_cuda *cuda, int depth, int tail)
{
    if (depth >= tail) {
        if (depth < cuda->stress_shadow->level_count)
            SK_LAUNCH(cuda, cycle_tail, CLUSTER, CLUSTER_THREADS, cuda->stress, depth);
        return;
    }
    const stress_level level = cuda->stress_shadow->level[depth];
    const int wide = width_of_level(cuda, &level, depth);
    SK_LAUNCH(cuda, solve_bottom, CLUSTER, CLUSTER_THREADS, cuda->stress, depth);
    launch_sweep(cuda, depth, 0, SWEEP_ALWAYS);
    if (depth) {
        launch_sweep(cuda, depth, 1, SWEEP_SOFT);
        launch_sweep(cuda, depth, 0, SWEEP_MOST);
    }
    launch_sweep(cuda, depth, 0, SWEEP_INNER);
    if (depth + 1 < cuda->stress_shadow->level_count) {
        const stress_level next = cuda->stress_shadow->level[depth + 1];
        SK_LAUNCH_SIMPLE(cuda, find_residual, wide, CELLS, cuda->stress, level, depth);
        SK_LAUNCH_SIMPLE(cuda, restrict_residual, width_of_level(cuda, &next, depth + 1), CELLS, cuda->stress, level,
                         next, depth);
        launch_cycle(cuda, depth + 1, tail);
        SK_LAUNCH_SIMPLE(cuda, add_correction, wide, CELLS, cuda->stress, level, next, depth);
    }
    for (int n = 1; n < SK_STRESS_SMOOTHINGS + (depth ? SK_STRESS_MORE : 0); n++)
        launch_sweep(cuda, depth, 1, SWEEP_INNER);
    launch_sweep(cuda, depth, 1, SWEEP_ALWAYS);
}

void SK_DIM(sk_cuda_launch_stress_cycle)(sk_cuda *cuda)
{
    launch_cycle(cuda, 0, SK_DIM(sk_cuda_stress_tail)(cuda));
}

void SK_DIM(sk_cuda_launch_symmetric_sweep)(sk_cuda *cuda, int n, int sweeps)
{
    const int role = sweeps ? SWEEP_OF_ONE + sweeps - 1 : SWEEP_SECOND + n - 1;
    if (n)
        SK_LAUNCH_SIMPLE(cuda, relax, width_of_level(cuda, &cuda->stress_shadow->level[0], 0), CELLS, cuda->stress, n,
                         role);
    launch_sweep(cuda, 0, 0, role);
    launch_sweep(cuda, 0, 1, role);
}

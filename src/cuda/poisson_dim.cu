/* The GPU form of the Poisson solver: conjugate gradients preconditioned by one multigrid cycle.
 *
 * The scheme, its cycle and its stopping rule are those of linalg/poisson_dim.c and linalg/multigrid_cycle_dim.c.
 * Level 0 works on the blocks of the grid where they are. The places of a coarse level form a small dense box, which
 * maps to its blocks. A thread block of 256 threads smooths a block of cells in shared memory; a thread owns two cells
 * beside each other along x, one of each colour. The smallest levels are left to a single thread block.
 *
 * Scalars stay on the device: the last thread block of a launch to finish adds up the sums of all, in a fixed order,
 * and decides how the iteration goes on.
 *
 * Liquid without any free surface is one closed component: the constants are the null space of its matrix. Their part
 * is removed from the right side and from the result of each cycle. Closed components beside liquid with a surface, or
 * several of them, are not told apart: such a system does not converge if its right side is inconsistent.
 */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/bodies_parts.h"
#include "cuda/poisson_course.h"
#include "cuda/poisson_open.h"
#include "cuda/poisson_tail.h"

/* --- Kernels of the cycle --- */

/* A level and the next one. */
typedef struct level_pair {
    int depth;
    sk_cuda_level fine, coarse;
} level_pair;

/* Solves the coarsest level exactly. One thread block. */
SK_DEVICE void solve_bottom(sk_cuda_solver *solver)
{
    __shared__ float b[SK_CUDA_BOTTOM];
    const sk_cuda_level *level = &solver->level[solver->state.bottom];
    const int n = (int)threadIdx.x, unknowns = solver->bottom_unknowns;
    if (n < unknowns)
        b[n] = level->b[solver->bottom_cell[n]];
    __syncthreads();
    if (n < unknowns) {
        float sum = 0.0f;
#pragma unroll 8
        for (int j = 0; j < unknowns; j++)
            sum += solver->bottom_inverse[j][n] * b[j];
        level->x[solver->bottom_cell[n]] = sum;
    }
    __syncthreads();
}

/* A level above the tail is the coarsest one, in a small system. One thread block. */
static __device__ __noinline__ void solve_above_tail(sk_cuda_solver *solver, int depth)
{
    solve_bottom(solver);
    if (depth > 0 || solver->bounded || solver->surface_cells)
        return;
    /* No smoother takes the sum. */
    const sk_cuda_level *level = &solver->level[0];
    for (int n = 0; n < blocks_of(solver, 0); n++) {
        const int block = block_of_level(solver, 0, n);
        double sum = 0.0;
        for (int c = (int)threadIdx.x; c < CELLS; c += (int)blockDim.x)
            sum += (double)level->x[(size_t)block * CELLS + c];
        sum = sk_cuda_sum(sum);
        if (threadIdx.x == 0)
            solver->partial[2][block] = sum;
    }
    __threadfence_block();
    __syncthreads();
    decide_mean(solver);
}

/* Smooths the blocks of a colour of a level. The first launch of a visit has the flag ARRIVE. The levels are arguments,
 * so that their addresses need no load. */
template <bool WRAPS>
static __global__ void __launch_bounds__(PAIRS)
    smooth_level(sk_cuda_solver *solver, const __grid_constant__ level_pair levels, int colour, int flags, int how)
{
    __shared__ shared_block s;
    SK_CUDA_LET_NEXT_START();
    const sk_cuda_level *level = &levels.fine, *coarse = &levels.coarse;
    const int count = solver->count[levels.depth][colour], t = (int)threadIdx.x;
    int n = (int)blockIdx.x, block = 0;
    if (is_idle(count))
        return;
    pair own;
    locate_pair(t, &own);
    if (n < count)
        block = load_rows(level, entry_of_colour(level, colour, n), t, flags, &own);
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    if (n < count) { /* before the state is here */
        load_right_side(level, block, &own);
        load_tile(level, coarse, block, colour, flags, &own, s.x);
    }
    if (is_skipped(state, how))
        return;
    if (levels.depth >= state.bottom) {
        if (levels.depth == state.bottom && flags & ARRIVE && blockIdx.x == 0)
            solve_above_tail(solver, levels.depth);
        return;
    }
    while (n < count) {
        smooth_block<WRAPS>(level, coarse, block, flags, t, &own, &s);
        if (flags & TAKE_MEAN && !solver->surface_cells) {
            const double sum = sk_cuda_sum((double)s.x[own.tile] + (double)s.x[own.tile + 1]);
            if (t == 0)
                solver->partial[2][block] = sum;
        }
        __syncthreads();
        n += (int)gridDim.x;
        if (n >= count)
            break;
        block = load_rows(level, entry_of_colour(level, colour, n), t, flags, &own);
        load_right_side(level, block, &own);
        load_tile(level, coarse, block, colour, flags, &own, s.x);
    }
    /* The blocks of the first colour come last. */
    if (flags & TAKE_MEAN && colour == 0 && !solver->surface_cells && is_last_busy(solver, count))
        decide_mean(solver);
}

/* Restricts the residual of the blocks of the first colour. */
static __global__ void __launch_bounds__(PAIRS)
    restrict_level(sk_cuda_solver *solver, const __grid_constant__ level_pair levels, int how)
{
    __shared__ shared_block s;
    SK_CUDA_LET_NEXT_START();
    const sk_cuda_level *level = &levels.fine, *coarse = &levels.coarse;
    const int count = solver->count[levels.depth][0], t = (int)threadIdx.x;
    int n = (int)blockIdx.x, block = 0;
    if (is_idle(count))
        return;
    pair own;
    locate_pair(t, &own);
    if (n < count)
        block = load_rows(level, entry_of_colour(level, 0, n), t, RESTRICT, &own);
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    while (n < count) {
        load_right_side(level, block, &own);
        load_tile(level, coarse, block, 0, 0, &own, s.x);
        if (is_skipped(state, how) || levels.depth >= state.bottom)
            return;
        __syncthreads();
        restrict_block(coarse, block, t, 0, &own, s.x, s.left);
        n += (int)gridDim.x;
        if (n >= count)
            break;
        block = load_rows(level, entry_of_colour(level, 0, n), t, RESTRICT, &own);
    }
}

/* smooth_level for level 0 by the bits of open sides. What a visit needs of the coarse level, RESTRICT, PROLONG or
 * none, is known when it is compiled: other visits do without the registers. */
template <int BETWEEN_LEVELS>
static __global__ void __launch_bounds__(PAIRS, OPEN_LAUNCHES)
    smooth_open(sk_cuda_solver *solver, const __grid_constant__ level_pair levels, int colour, int all_flags, int how)
{
    const int other_flags = RESTRICT | PROLONG | (BETWEEN_LEVELS == PROLONG ? 0 : PROLONG_HALO);
    const int flags = (all_flags & ~other_flags) | BETWEEN_LEVELS;
    __shared__ shared_block s;
    __shared__ float inverse_of[INVERSES];
    SK_CUDA_LET_NEXT_START();
    const sk_cuda_level *level = &levels.fine, *coarse = &levels.coarse;
    const int count = solver->count[0][colour], width = (int)gridDim.x;
    int n = (int)blockIdx.x;
    if (is_idle(count))
        return;
    const open_place place = find_open_place((int)threadIdx.x);
    fill_inverses(inverse_of);
    int next = n + width < count ? entry_of_colour(level, colour, n + width) : 0;
    open_rows rows = read_open_rows(level, n < count ? entry_of_colour(level, colour, n) : 0, &place, flags);
    bool has_others = false;
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    open_values values = read_open_values(level, coarse, &rows, &place, colour, flags);
    __syncthreads();
    if (is_skipped(state, how))
        return;
    if (state.bottom == 0) {
        if (flags & ARRIVE && blockIdx.x == 0)
            solve_above_tail(solver, 0);
        return;
    }
    for (; n < count; n += width) {
        const int later = n + 2 * width < count ? entry_of_colour(level, colour, n + 2 * width) : 0;
        const open_rows after = read_open_rows(level, next, &place, flags);
        if (rows.form == ANY_ROWS) {
            has_others = true;
        } else {
            fill_tile(&rows, &values, &place, flags, s.x);
            sweep_open(level, &rows, values.b, &place, flags, inverse_of, s.x);
            if (flags & RESTRICT)
                restrict_open(coarse, &rows, values.b, &place, first_of_pair(place.t, flags), s.x, s.left);
        }
        next = later;
        rows = after;
        if (n + width < count)
            values = read_open_values(level, coarse, &rows, &place, colour, flags);
        __syncthreads();
    }
    for (n = has_others ? (int)blockIdx.x : count; n < count; n += width) {
        const int entry = entry_of_colour(level, colour, n);
        if (entry >> FORM_SHIFT == ANY_ROWS)
            smooth_other(&solver->level[0], &solver->level[1], entry, colour, flags, &s);
    }
}

/* restrict_level likewise. */
static __global__ void __launch_bounds__(PAIRS, OPEN_LAUNCHES)
    restrict_open_level(sk_cuda_solver *solver, const __grid_constant__ level_pair levels, int how)
{
    __shared__ shared_block s;
    SK_CUDA_LET_NEXT_START();
    const sk_cuda_level *level = &levels.fine, *coarse = &levels.coarse;
    const int count = solver->count[0][0], width = (int)gridDim.x;
    int n = (int)blockIdx.x;
    if (is_idle(count))
        return;
    const open_place place = find_open_place((int)threadIdx.x);
    int next = n + width < count ? entry_of_colour(level, 0, n + width) : 0;
    open_rows rows = read_open_rows(level, n < count ? entry_of_colour(level, 0, n) : 0, &place, RESTRICT);
    bool has_others = false;
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    open_values values = read_open_values(level, coarse, &rows, &place, 0, 0);
    if (is_skipped(state, how) || state.bottom == 0)
        return;
    for (; n < count; n += width) {
        const int later = n + 2 * width < count ? entry_of_colour(level, 0, n + 2 * width) : 0;
        const open_rows after = read_open_rows(level, next, &place, RESTRICT);
        if (rows.form == ANY_ROWS) {
            has_others = true;
        } else {
            fill_tile(&rows, &values, &place, 0, s.x);
            __syncthreads();
            restrict_open(coarse, &rows, values.b, &place, 0, s.x, s.left);
        }
        next = later;
        rows = after;
        if (n + width < count)
            values = read_open_values(level, coarse, &rows, &place, 0, 0);
        __syncthreads();
    }
    for (n = has_others ? (int)blockIdx.x : count; n < count; n += width) {
        const int entry = entry_of_colour(level, 0, n);
        if (entry >> FORM_SHIFT == ANY_ROWS)
            restrict_other(&solver->level[0], &solver->level[1], entry, &s);
    }
}

/* The coarsest levels, from `top` on, by one thread block. `early`: no launch of the graph writes their matrix. */
static __global__ void __launch_bounds__(TEAMS *PAIRS)
    cycle_tail(sk_cuda_solver *solver, int top, int from_zero, int early, int how)
{
    SK_CUDA_LARGE_SHARED(tail_cells, cells, 1);
    __shared__ tail_work work;
    SK_CUDA_LET_NEXT_START();
    int bottom = early ? solver->state.bottom : 0;
    if (bottom >= top)
        load_tail(solver, top, bottom, &work, cells);
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    /* A level above may be the coarsest one: it was solved there. */
    if (is_skipped(state, how) || state.bottom < top)
        return;
    bottom = state.bottom;
    if (!early)
        load_tail(solver, top, bottom, &work, cells);
    __syncthreads();
    const sk_cuda_level *level = &solver->level[top];
    const int tops = work.first[top + 1];
    load_vectors(level, from_zero, tops, &work, cells);
    for (int depth = top; depth < bottom; depth++) {
        smooth_tail(&work, depth, 0, 0, cells);
        smooth_tail(&work, depth, 1, 0, cells);
        restrict_tail(&work, depth, cells);
    }
    solve_tail(&work, solver->bottom_unknowns, cells->x);
    for (int depth = bottom - 1; depth >= top; depth--) {
        prolong_tail(&work, depth, cells->x);
        smooth_tail(&work, depth, 1, 1, cells);
        smooth_tail(&work, depth, 0, 1, cells);
    }
    store_solution(level, tops, cells);
}

/* --- Kernels of the conjugate gradients --- */

/* A z of a cycle's result z, and from the sums of r z and z A z the next step. With bodies, more is added to both
 * before the step is chosen. */
static __global__ void __launch_bounds__(PAIRS, 4) apply_to_cycle(sk_cuda_solver *solver, int with_bodies, int how)
{
    __shared__ float x[TILE_CELLS];
    SK_CUDA_LET_NEXT_START();
    const sk_cuda_level *level = &solver->level[0];
    const int blocks = blocks_of(solver, 0);
    int n = (int)blockIdx.x, block = 0;
    if (is_idle(blocks))
        return;
    pair own;
    locate_pair((int)threadIdx.x, &own);
    if (n < blocks)
        block = load_rows(level, entry_of_level(solver, 0, n), (int)threadIdx.x, WITH_EXCESS, &own);
    double *const partial[3] = {solver->partial[0], solver->partial[1], solver->partial[2]};
    float *const image = solver->image;
    const int closed = !with_bodies && !solver->surface_cells, count = solver->block_count;
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    const sk_cuda_solve_memory last = load_record(&solver->memory);
    while (n < blocks) {
        load_right_side(level, block, &own);
        load_tile(level, nullptr, block, 0, 0, &own, x);
        if (is_over(state, how))
            return;
        __syncthreads();
        const float z[2] = {x[own.tile], x[own.tile + 1]};
        const float product[2] = {apply(x, &own.r[0], own.tile), apply(x, &own.r[1], own.tile + 1)};
        store_two(image + (size_t)block * CELLS + own.at, product[0], product[1]);
        double sums[2] = {(double)z[0] * (double)product[0] + (double)z[1] * (double)product[1],
                          (double)z[0] * (double)own.r[0].b + (double)z[1] * (double)own.r[1].b};
        sum_two(sums, 0);
        if (threadIdx.x == 0) {
            partial[0][block] = sums[0];
            partial[1][block] = sums[1];
        }
        if (closed) {
            const double sum = sk_cuda_sum((double)z[0] + (double)z[1]);
            if (threadIdx.x == 0)
                partial[2][block] = sum;
        }
        __syncthreads();
        n += (int)gridDim.x;
        if (n >= blocks)
            break;
        block = load_rows(level, entry_of_level(solver, 0, n), (int)threadIdx.x, WITH_EXCESS, &own);
    }
    if (!with_bodies && !is_over(state, how) && is_last_busy(solver, blocks))
        end_application(solver, last, partial, count, closed);
}

/* apply_to_cycle by the bits of open sides, where there are no bodies. */
static __global__ void __launch_bounds__(PAIRS, OPEN_LAUNCHES)
    apply_open_to_cycle(sk_cuda_solver *solver, const __grid_constant__ sk_cuda_level level, int how)
{
    __shared__ float x[TILE_CELLS];
    __shared__ double room[2][2][PAIRS]; /* of blocks in turn: a warp still adds up while the others go on */
    SK_CUDA_LET_NEXT_START();
    const int blocks = blocks_of(solver, 0), t = (int)threadIdx.x, width = (int)gridDim.x;
    int n = (int)blockIdx.x;
    if (is_idle(blocks))
        return;
    const open_place place = find_open_place(t);
    int next = n + width < blocks ? entry_of_level(solver, 0, n + width) : 0;
    open_rows rows = read_open_rows(&level, n < blocks ? entry_of_level(solver, 0, n) : 0, &place, WITH_EXCESS);
    double *const partial[3] = {solver->partial[0], solver->partial[1], solver->partial[2]};
    float *const image = solver->image;
    const int closed = !solver->surface_cells, count = solver->block_count;
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    const sk_cuda_solve_memory last = load_record(&solver->memory);
    open_values values = read_open_values(&level, nullptr, &rows, &place, 0, 0);
    int turn = 0;
    if (is_over(state, how))
        return;
    for (; n < blocks; n += width) {
        const int later = n + 2 * width < blocks ? entry_of_level(solver, 0, n + 2 * width) : 0;
        const open_rows after = read_open_rows(&level, next, &place, WITH_EXCESS);
        const int own = place.tile, block = rows.block;
        float product[2];
        fill_tile(&rows, &values, &place, 0, x);
        __syncthreads();
        if (rows.form == ANY_ROWS) {
            apply_other(&solver->level[0], block, x, product);
        } else {
            product[0] = apply_open(x, rows.bits, rows.excess.x, own);
            product[1] = apply_open(x, rows.bits >> 8, rows.excess.y, own + 1);
        }
        const float z[2] = {x[own], x[own + 1]};
        store_two(image + (size_t)block * CELLS + 2 * (size_t)t, product[0], product[1]);
        double sums[2] = {(double)z[0] * (double)product[0] + (double)z[1] * (double)product[1],
                          (double)z[0] * (double)values.b.x + (double)z[1] * (double)values.b.y};
        next = later;
        rows = after;
        if (n + width < blocks)
            values = read_open_values(&level, nullptr, &rows, &place, 0, 0);
        sum_two_for_first(sums, room[turn]);
        turn ^= 1;
        if (t == 0) {
            partial[0][block] = sums[0];
            partial[1][block] = sums[1];
        }
        if (closed) {
            const double sum = sk_cuda_sum((double)z[0] + (double)z[1]);
            if (t == 0)
                partial[2][block] = sum;
        }
    }
    if (is_last_busy(solver, blocks))
        end_application(solver, last, partial, count, closed);
}

/* p = z + beta p, A p likewise, and a step along p. */
static __global__ void __launch_bounds__(PAIRS) advance(sk_cuda_solver *solver, sk_cuda_condition handle, int how)
{
    SK_CUDA_LET_NEXT_START();
    const int blocks = blocks_of(solver, 0);
    if (is_idle(blocks))
        return;
    const sk_cuda_level *level = &solver->level[0];
    const float *const result = level->x, *const image = solver->image, *const inverse = level->inverse;
    float *const p = solver->p, *const product = solver->product, *const found = solver->low, *const right = level->b;
    double *const partial[2] = {solver->partial[0], solver->partial[1]};
    end_rules rules = fixed_rules(solver);
    const int mine = block_of_level(solver, 0, (int)blockIdx.x < blocks ? (int)blockIdx.x : 0);
    SK_CUDA_WAIT();
    const sk_cuda_solve_state state = load_record(&solver->state);
    const sk_cuda_solve_turn turn = load_record(&solver->turn);
    rules.computed = solver->computed;
    rules.drifted = solver->drifted;
    rules.iteration = solver->iteration;
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = n == (int)blockIdx.x ? mine : block_of_level(solver, 0, n);
        const size_t at = (size_t)block * CELLS + 2 * threadIdx.x;
        float2 z, az, old, old_product, x, b;
        SK_CUDA_LOAD_TWO(z, result + at);
        SK_CUDA_LOAD_TWO(az, image + at);
        SK_CUDA_LOAD_TWO(old, p + at);
        SK_CUDA_LOAD_TWO(old_product, product + at);
        SK_CUDA_LOAD_TWO(x, found + at);
        SK_CUDA_LOAD_TWO(b, right + at);
        if (is_over(state, how) || turn.skip)
            break;
        if (turn.mean_z != 0.0f) {
            z.x -= inverse[at] > 0.0f ? turn.mean_z : 0.0f;
            z.y -= inverse[at + 1] > 0.0f ? turn.mean_z : 0.0f;
        }
        /* The first direction does not ask for what an earlier solve has left. */
        const int first = turn.beta == 0.0f;
        const float along[2] = {first ? z.x : sk_add_scaled(z.x, turn.beta, old.x),
                                first ? z.y : sk_add_scaled(z.y, turn.beta, old.y)};
        const float q[2] = {first ? az.x : sk_add_scaled(az.x, turn.beta, old_product.x),
                            first ? az.y : sk_add_scaled(az.y, turn.beta, old_product.y)};
        const float low[2] = {sk_add_scaled(x.x, turn.alpha, along[0]), sk_add_scaled(x.y, turn.alpha, along[1])};
        const float r[2] = {sk_add_scaled(b.x, -turn.alpha, q[0]), sk_add_scaled(b.y, -turn.alpha, q[1])};
        store_two(p + at, along[0], along[1]);
        store_two(product + at, q[0], q[1]);
        store_two(found + at, low[0], low[1]);
        store_two(right + at, r[0], r[1]);
        const int largest = rules.norm == SELKIE_NORM_MAX;
        const double left[2] = {fabs((double)r[0]), fabs((double)r[1])};
        double sums[2] = {(double)low[0] * (double)low[0] + (double)low[1] * (double)low[1],
                          largest ? sk_cuda_largest_of(left[0], left[1]) : left[0] * left[0] + left[1] * left[1]};
        sum_two(sums, largest);
        if (threadIdx.x == 0) {
            partial[0][block] = sums[0];
            partial[1][block] = sums[1];
        }
        __syncthreads();
    }
    if (is_over(state, how) || turn.skip) {
        if (blockIdx.x == 0 && threadIdx.x == 0)
            SK_CUDA_SET_CONDITION(handle, !state.done);
        return;
    }
    if (is_last_busy(solver, blocks)) {
        decide_end(solver, &rules);
        if (threadIdx.x == 0)
            SK_CUDA_SET_CONDITION(handle, !solver->state.done);
    }
}

/* Folds low into high where the residual is to be computed afresh. */
static __global__ void __launch_bounds__(PAIRS) fold(sk_cuda_solver *solver)
{
    SK_CUDA_WAIT();
    if (solver->state.done || !solver->state.check)
        return;
    const sk_cuda_level *level = &solver->level[0];
    for (int n = (int)blockIdx.x; n < blocks_of(solver, 0); n += (int)gridDim.x) {
        const int block = block_of_level(solver, 0, n);
        const size_t at = (size_t)block * CELLS + 2 * threadIdx.x;
        for (int c = 0; c < 2; c++)
            sk_fold(&solver->high[at + c], &solver->low[at + c]);
    }
}

/* After a fresh residual: whether the solve goes on. By the last thread block. */
SK_DEVICE void judge_residual(sk_cuda_solver *solver, sk_cuda_condition handle)
{
    const double residual = residual_of(solver, solver->partial[1], solver->block_count);
    if (threadIdx.x != 0)
        return;
    solver->residual = solver->computed = residual;
    solver->drifted = 0.0;
    solver->state.check = 0;
    solver->converged = residual <= solver->tolerance;
    solver->state.done =
        solver->converged || solver->broken || !(residual < INFINITY) || solver->iteration >= solver->max_iterations;
    SK_CUDA_SET_CONDITION(handle, !solver->state.done);
}

/* `with_bodies`: the residual is still to be judged. */
static __global__ void __launch_bounds__(PAIRS)
    true_residual(const sk_step *step, sk_cuda_solver *solver, sk_cuda_condition handle, int with_bodies)
{
    SK_CUDA_WAIT();
    __shared__ float high[TILE_CELLS], low[TILE_CELLS];
    if (solver->state.done || !solver->state.check)
        return;
    const sk_cuda_level *level = &solver->level[0];
    const int blocks = blocks_of(solver, 0);
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = block_of_level(solver, 0, n);
        pair own;
        locate_pair((int)threadIdx.x, &own);
        load_rows(level, block, (int)threadIdx.x, WITH_EXCESS, &own);
        const size_t base = (size_t)block * CELLS + own.at;
        for (int c = 0; c < 2; c++) {
            high[own.tile + c] = solver->high[base + c];
            low[own.tile + c] = solver->low[base + c];
        }
        for (int e = 0; e < EDGES; e++) {
            if (own.edge_tile[e] < 0)
                continue;
            high[own.edge_tile[e]] = solver->high[own.edge[e]];
            low[own.edge_tile[e]] = solver->low[own.edge[e]];
        }
        __syncthreads();
        float r[2];
        for (int c = 0; c < 2; c++) {
            const row *row_c = &own.r[c];
            const int at = own.tile + c;
            const double here = (double)high[at];
            double sum = (double)right_side(step, solver, base + c) - (double)apply(low, row_c, at) -
                         (double)row_c->excess * here;
            for (int axis = 0; axis < SELKIE_DIM; axis++) {
                const int stride = tile_stride(axis);
                sum -= (double)row_c->lower[axis] * (here - (double)high[at - stride]);
                sum -= (double)row_c->upper[axis] * (here - (double)high[at + stride]);
            }
            r[c] = level->b[base + c] = (float)sum;
        }
        const double left = norm_of(solver->norm, r[0], r[1]);
        if (threadIdx.x == 0)
            solver->partial[1][block] = left;
        __syncthreads();
    }
    if (!with_bodies && sk_cuda_is_last(&solver->ticket))
        judge_residual(solver, handle);
}

/* The norm of a residual that bodies have changed. */
static __global__ void __launch_bounds__(PAIRS) judge_with_bodies(sk_cuda_solver *solver, sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    if (solver->state.done || !solver->state.check)
        return;
    const float *r = solver->level[0].b;
    const int blocks = blocks_of(solver, 0);
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = block_of_level(solver, 0, n);
        const size_t at = (size_t)block * CELLS + 2 * threadIdx.x;
        const double left = norm_of(solver->norm, r[at], r[at + 1]);
        if (threadIdx.x == 0)
            solver->partial[1][block] = left;
    }
    if (sk_cuda_is_last(&solver->ticket))
        judge_residual(solver, handle);
}

/* --- The end --- */

/* The solution in the units of the caller; 0 in cells that are no unknowns. */
static __global__ void write_solution(const sk_step *step, sk_cuda_solver *solver)
{
    SK_CUDA_WAIT();
    const float unscale = 1.0f / solver->scale;
    SK_CUDA_EACH(i, (size_t)(step->grid.block_count - 1) * CELLS)
    {
        const size_t at = i + CELLS;
        step->grid.fields[SK_FIELD_POTENTIAL][at] =
            solver->active[at / CELLS] ? (solver->high[at] + solver->low[at]) * unscale : 0.0f;
    }
}

/* --- Launches --- */

/* What a cycle works on: all cells, or the free cells of a solve under bounds. */
typedef struct cycled_levels {
    sk_cuda_solver *solver;       /* on the device */
    const sk_cuda_solver *shadow; /* the host's copy */
    int thorough;                 /* the blocks of level 0 are visited twice */
    int with_bodies;              /* the mean of the result is taken */
} cycled_levels;

/* Are there kernels for the bits of open sides of a level? */
template <bool WRAPS> static int has_open_kernels(const cycled_levels *of, const level_pair *levels)
{
    return !WRAPS && levels->fine.open && !of->with_bodies;
}

template <bool WRAPS>
static void launch_smoothing(sk_cuda *cuda, const cycled_levels *of, const level_pair *levels, int colour, int flags,
                             int how)
{
    const int wide = launch_width(cuda, levels->depth);
    if (!has_open_kernels<WRAPS>(of, levels))
        SK_LAUNCH(cuda, smooth_level<WRAPS>, wide, PAIRS, of->solver, *levels, colour, flags, how);
    else if (flags & RESTRICT)
        SK_LAUNCH(cuda, smooth_open<RESTRICT>, wide, PAIRS, of->solver, *levels, colour, flags, how);
    else if (flags & PROLONG)
        SK_LAUNCH(cuda, smooth_open<PROLONG>, wide, PAIRS, of->solver, *levels, colour, flags, how);
    else
        SK_LAUNCH(cuda, smooth_open<0>, wide, PAIRS, of->solver, *levels, colour, flags, how);
}

/* A cycle from a level on. */
template <bool WRAPS>
static void launch_cycle(sk_cuda *cuda, const cycled_levels *of, int depth, int from_zero, int how)
{
    sk_cuda_solver *solver = of->solver;
    const level_pair levels = {depth, of->shadow->level[depth], of->shadow->level[depth + 1]};
    const int zero = from_zero ? FROM_ZERO : 0, visits = depth == 0 && SELKIE_DIM == 3 && of->thorough ? 2 : 1;
    const int wide = launch_width(cuda, depth);
    if (depth >= tail_of(cuda, SK_CUDA_TAIL_BLOCKS)) {
        SK_LAUNCH_LARGE(cuda, cycle_tail, 1, TEAMS * PAIRS, sizeof(tail_cells), solver, depth, from_zero, of->thorough,
                        how);
        return;
    }

    /* Down. Blocks of the second colour already have the values of all their neighbours. */
    for (int n = 1; n <= visits; n++)
        for (int colour = 0; colour < 2; colour++)
            launch_smoothing<WRAPS>(
                cuda, of, &levels, colour,
                (n == 1 ? zero : 0) | (n == 1 && !colour ? ARRIVE : 0) | (colour && n == visits ? RESTRICT : 0), how);
    if (has_open_kernels<WRAPS>(of, &levels))
        SK_LAUNCH(cuda, restrict_open_level, wide, PAIRS, solver, levels, how);
    else
        SK_LAUNCH(cuda, restrict_level, wide, PAIRS, solver, levels, how);

    launch_cycle<WRAPS>(cuda, of, depth + 1, 1, how);
    if (how >> (depth + 1) & 1 && depth + 1 <= 2 && depth + 1 < cuda->solver_shadow.level_count - 1)
        launch_cycle<WRAPS>(cuda, of, depth + 1, 0, how | VISITS_OF_LAUNCH << (depth + 1));

    /* Up, in reverse. */
    for (int n = visits; n >= 1; n--)
        for (int colour = 1; colour >= 0; colour--)
            launch_smoothing<WRAPS>(cuda, of, &levels, colour,
                                    SWEEP_BACKWARD | (n == visits ? PROLONG | (colour ? PROLONG_HALO : 0) : 0) |
                                        (depth == 0 && n == 1 && of->thorough && of->with_bodies ? TAKE_MEAN : 0),
                                    how);
}

/* Does the solve contain rigid bodies? */
static int has_bodies(const sk_cuda *cuda)
{
    return cuda->bodies && cuda->bodies->in_solve;
}

static void launch_check(sk_cuda *cuda)
{
    const int with_bodies = has_bodies(cuda);
    SK_LAUNCH(cuda, fold, full_width(cuda), PAIRS, cuda->solver);
    if (with_bodies)
        SK_DIM(sk_cuda_move_modes)(cuda);
    SK_LAUNCH(cuda, true_residual, full_width(cuda), PAIRS, &cuda->device->step, cuda->solver, cuda->condition,
              with_bodies);
    if (!with_bodies)
        return;
    SK_DIM(sk_cuda_subtract_modes)(cuda);
    SK_LAUNCH(cuda, judge_with_bodies, full_width(cuda), PAIRS, cuda->solver, cuda->condition);
}

static void launch_steps(sk_cuda *cuda, int how)
{
    const cycled_levels all = {cuda->solver, &cuda->solver_shadow, 1, has_bodies(cuda)};
    if (has_joined_sides(cuda))
        launch_cycle<true>(cuda, &all, 0, 1, how);
    else
        launch_cycle<false>(cuda, &all, 0, 1, how);
    if (has_bodies(cuda))
        SK_DIM(sk_cuda_deflate)(cuda);
    const sk_cuda_level *finest = &cuda->solver_shadow.level[0];
    if (finest->open && !has_bodies(cuda) && !has_joined_sides(cuda))
        SK_LAUNCH(cuda, apply_open_to_cycle, full_width(cuda), PAIRS, cuda->solver, *finest, how);
    else
        SK_LAUNCH(cuda, apply_to_cycle, full_width(cuda), PAIRS, cuda->solver, has_bodies(cuda), how);
    if (has_bodies(cuda))
        SK_DIM(sk_cuda_apply_modes)(cuda);
    SK_LAUNCH(cuda, advance, full_width(cuda), PAIRS, cuda->solver, cuda->condition, how);
}

void SK_DIM(sk_cuda_cycle_part)(sk_cuda *cuda, int root)
{
    const cycled_levels part = {&cuda->bounded->part, &cuda->part_shadow, 0, 0};
    if (has_joined_sides(cuda))
        launch_cycle<true>(cuda, &part, root, 1, ALL_VISITS);
    else
        launch_cycle<false>(cuda, &part, root, 1, ALL_VISITS);
}

/* An iteration of the loop: an iteration before it may have asked for the residual. */
static void launch_iteration(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_check(cuda);
    launch_steps(cuda, ALL_VISITS);
    launch_check(cuda);
}

/* The same in a solve with bodies, where nothing has been asked for before. */
static void launch_with_bodies(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_steps(cuda, ALL_VISITS);
    launch_check(cuda);
}

/* Several iterations with some second visits. */
template <int COUNT, int VISITS> static void launch_several(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    for (int n = 0; n < COUNT; n++)
        launch_steps(cuda, WITHOUT_CHECK | VISITS);
}

/* Graphs of one to four iterations: a launch of a graph takes as long as two stages of a cycle. */
enum { MOST_TOGETHER = 4 };
static const struct {
    const char *name;
    sk_cuda_launches launches;
} iterations_of[3][MOST_TOGETHER] = {
    {{"iteration without second visits", launch_several<1, 0>},
     {"2 iterations without second visits", launch_several<2, 0>},
     {"3 iterations without second visits", launch_several<3, 0>},
     {"4 iterations without second visits", launch_several<4, 0>}},
    {{"iteration with one second visit", launch_several<1, VISITS_HERE << 1>},
     {"2 iterations with one second visit", launch_several<2, VISITS_HERE << 1>},
     {"3 iterations with one second visit", launch_several<3, VISITS_HERE << 1>},
     {"4 iterations with one second visit", launch_several<4, VISITS_HERE << 1>}},
    {{"iteration", launch_several<1, ALL_VISITS>},
     {"2 iterations", launch_several<2, ALL_VISITS>},
     {"3 iterations", launch_several<3, ALL_VISITS>},
     {"4 iterations", launch_several<4, ALL_VISITS>}},
};

/* Does the loop of the end have anything to do? */
static __global__ void look_again(sk_cuda_solver *solver, sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    (void)solver;
    SK_CUDA_SET_CONDITION(handle, !solver->state.done);
}

void SK_DIM(sk_cuda_start_solve)(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_DIM(sk_cuda_prepare_solve)(cuda);
    cuda->condition = 0;
}

selkie_code SK_DIM(sk_cuda_iterate)(sk_step *step, int kind, selkie_error *error)
{
    /* The larger of the last two numbers of iterations, and all second visits of the last solves. */
    const int *before = step->cuda->last[kind].iterations;
    const int iterations = before[0] > before[1] ? before[0] : before[1];
    int twice = 0;
    for (int n = 0; n < SK_CUDA_REMEMBERED; n++)
        twice |= step->cuda->last[kind].twice[n];
    step->cuda->condition = 0;
    for (int n = 0; has_bodies(step->cuda) && n < iterations; n++)
        SK_TRY(sk_cuda_run(step, "iteration with bodies", launch_with_bodies, error));
    for (int n = has_bodies(step->cuda) ? 0 : iterations; n > 0; n -= MOST_TOGETHER) {
        const int together = n < MOST_TOGETHER ? n : MOST_TOGETHER, visits = twice & ~2 ? 2 : twice != 0;
        SK_TRY(sk_cuda_run(step, iterations_of[visits][together - 1].name, iterations_of[visits][together - 1].launches,
                           error));
    }
    return SELKIE_OK;
}

void SK_DIM(sk_cuda_end_solve)(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_condition handle = sk_cuda_new_condition(cuda);
    SK_LAUNCH_SIMPLE(cuda, look_again, 1, 1, cuda->solver, handle);
    sk_cuda_repeat(cuda, host, launch_iteration, &cuda->solver->state.done);
    SK_LAUNCH_SIMPLE(cuda, write_solution, full_width(cuda), SK_CUDA_THREADS, step, cuda->solver);
}

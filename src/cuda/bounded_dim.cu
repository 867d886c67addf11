/* The GPU form of the solver for unknowns that are at least 0, or at least a bound below it.
 *
 * The scheme is that of linalg/bounded_active_dim.c: steps of one multigrid cycle over the free cells and of projected
 * sweeps over all, from the solutions of coarser problems. The levels and the cycle are those of the Poisson solver.
 * All levels below the root of a step are made from its free cells again, and the length of a step is measured in all
 * blocks. A step whose cycle is not positive definite is made of its sweeps alone. Of closed components only one that
 * is all of the liquid is told apart; in others a cell on its bound makes the system regular.
 */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/poisson_cells.h"

/* Visits of projected sweeps after an interpolation and in a step, and the largest length of a step: as on the CPU. */
enum { START_VISITS = 4, STEP_VISITS = 2 };
static const double longest_step = 2.0, quick_accuracy = 1e-5;

/* The solution of a level's problem. The second float is of level 0 alone. */
SK_DEVICE float *high_of(const sk_cuda_solver *solver, int depth)
{
    return depth ? solver->level[depth].x : solver->high;
}
SK_DEVICE float low_at(const sk_cuda_solver *solver, int depth, size_t at)
{
    return depth ? 0.0f : solver->low[at];
}
SK_DEVICE float gap_at(const sk_cuda_solver *solver, int depth, size_t at)
{
    return sk_bound_gap(high_of(solver, depth)[at], low_at(solver, depth, at), bound_at(solver, depth, at));
}

SK_DEVICE int has_no_problem(const sk_cuda_solver *solver, const sk_cuda_bounded *bounded, int depth)
{
    return bounded->part.state.done || depth > solver->state.bottom;
}

/* --- Start --- */

/* The levels of the free cells have the places of the others. */
static __global__ void begin_steps(const sk_cuda_solver *solver, sk_cuda_bounded *bounded)
{
    SK_CUDA_WAIT();
    sk_cuda_solver *part = &bounded->part;
    SK_CUDA_EACH(i, solver->block_count)
    part->partial[0][i] = part->partial[1][i] = 0.0;
    if (blockIdx.x > 0 || threadIdx.x > 0)
        return;
    part->block_count = solver->block_count;
    part->state.bottom = solver->state.bottom;
    part->state.twice = solver->state.twice;
    part->surface_cells = solver->surface_cells;
    for (int depth = 0; depth < solver->level_count; depth++)
        for (int colour = 0; colour < 2; colour++)
            part->count[depth][colour] = solver->count[depth][colour];
    part->bounded = 1;
    part->tolerance = solver->tolerance;
    part->max_iterations = solver->max_iterations;
    part->iteration = 0;
    part->state.done = solver->state.done;
    part->converged = solver->converged || solver->idle;
    part->broken = solver->broken;
    part->residual = solver->idle ? 0.0 : solver->residual;
    part->ticket = 0;
    bounded->unit = solver->norm_b;
    bounded->exactly = solver->tolerance < quick_accuracy;
    bounded->paired = bounded->check = bounded->balanced = bounded->held = 0;
    bounded->mean_r = bounded->mean_z = bounded->length = 0.0f;
}

/* --- Residual and free cells --- */

/* After a residual: the rules of solve_level in linalg/bounded_active_dim.c. */
SK_DEVICE void decide_step(const sk_cuda_solver *solver, sk_cuda_bounded *bounded, int exact)
{
    sk_cuda_solver *part = &bounded->part;
    const double residual = sqrt(add_up(part->partial[0], part->block_count)) / bounded->unit;
    const double size = add_up(part->partial[1], part->block_count);
    const double sum = solver->surface_cells ? 0.0 : add_up(solver->partial[0], part->block_count);
    if (threadIdx.x != 0)
        return;
    const double rounding = 4e-8 * sqrt((4.0 * SELKIE_DIM * SELKIE_DIM + 2.0 * SELKIE_DIM) * size) / bounded->unit;
    const int ends = residual <= part->tolerance || part->iteration >= part->max_iterations;
    part->residual = residual;
    bounded->check = !exact && ends;
    bounded->exactly |= exact;
    bounded->balanced = !solver->surface_cells && bounded->held == 0;
    bounded->mean_r = (float)(solver->unknowns[0] ? sum / (double)solver->unknowns[0] : 0.0);
    bounded->held = 0;
    bounded->paired |= exact || rounding > 0.1 * part->tolerance;
    if (!(residual < INFINITY))
        part->broken = part->state.done = 1;
    if (exact && ends) {
        part->converged = residual <= part->tolerance;
        part->state.done = 1;
    }
}

/* The residual of the thread's cell c. In double where that is asked for: sk_residual_cell. */
SK_DEVICE float residual_of_cell(const float *high, const float *low, const row *r, float f, int at, int exact)
{
    const float h = high[at], l = low[at];
    if (exact) {
        const double here = (double)h;
        double sum = (double)f - (double)apply(low, r, at) - (double)r->excess * here;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            const int stride = tile_stride(axis);
            sum -= (double)r->lower[axis] * (here - (double)high[at - stride]);
            sum -= (double)r->upper[axis] * (here - (double)high[at + stride]);
        }
        return (float)sum;
    }
    float sum = 0.0f;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = tile_stride(axis);
        sum += r->lower[axis] * ((h - high[at - stride]) + (l - low[at - stride]));
        sum += r->upper[axis] * ((h - high[at + stride]) + (l - low[at + stride]));
    }
    return (f - r->excess * (h + l)) - sum;
}

/* Sums over cells of a block. */
typedef struct judged_cells {
    double squares, size, sum; /* of the natural residual and of x, squared; of the residual */
    int held;
} judged_cells;

/* Copies x of a level's problem into tiles. */
SK_DEVICE void load_problem(const sk_cuda_solver *solver, int depth, const pair *own, size_t base, float *high,
                            float *low)
{
    const float *x = high_of(solver, depth);
    for (int c = 0; c < 2; c++) {
        high[own->tile + c] = x[base + c];
        low[own->tile + c] = low_at(solver, depth, base + c);
    }
    for (int e = 0; e < EDGES; e++) {
        if (own->edge_tile[e] < 0)
            continue;
        high[own->edge_tile[e]] = x[own->edge[e]];
        low[own->edge_tile[e]] = low_at(solver, depth, own->edge[e]);
    }
}

/* Residual and free cells among the two of a thread. `f` are their right sides. */
SK_DEVICE judged_cells judge_pair(const pair *own, const float *high, const float *low, const float *f,
                                  const float bound[2], int exact, float *residual, float *free_inverse)
{
    judged_cells found = {0.0, 0.0, 0.0, 0};
    for (int c = 0; c < 2; c++) {
        const int at = own->tile + c;
        const float inverse = own->r[c].inverse, gap = sk_bound_gap(high[at], low[at], bound[c]);
        const float r = residual_of_cell(high, low, &own->r[c], f[c], at, exact);
        const int is_free = sk_is_free(gap, r, inverse);
        const double natural = (double)sk_natural_residual(gap, r, inverse);
        residual[c] = r;
        free_inverse[c] = is_free ? inverse : 0.0f;
        found.squares += natural * natural;
        found.size += (double)high[at] * (double)high[at];
        found.sum += (double)r;
        found.held += inverse > 0.0f && !is_free;
    }
    return found;
}

/* Residual and free cells of a level's problem. `again`: in double, if the residual before asked for it. */
static __global__ void __launch_bounds__(PAIRS)
    judge(const sk_cuda_solver *solver, sk_cuda_bounded *bounded, int depth, int again)
{
    __shared__ float high[TILE_CELLS], low[TILE_CELLS];
    SK_CUDA_WAIT();
    sk_cuda_solver *part = &bounded->part;
    if (has_no_problem(solver, bounded, depth) || (again && !bounded->check))
        return;
    const sk_cuda_level *level = &solver->level[depth], *to = &part->level[depth];
    for (int n = 0; depth > 0 && n < 2; n++)
        SK_CUDA_EACH(i, level->places)
    bounded->partial[n][i] = 0.0;
    const int blocks = blocks_of(solver, depth), exact = depth == 0 && (again || bounded->exactly),
              closed = depth == 0 && !solver->surface_cells;
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = block_of_level(solver, depth, n);
        pair own;
        locate_pair((int)threadIdx.x, &own);
        load_rows(level, block, (int)threadIdx.x, WITH_EXCESS, &own);
        const size_t base = (size_t)block * CELLS + own.at;
        load_problem(solver, depth, &own, base, high, low);
        __syncthreads();
        const float bound[2] = {bound_at(solver, depth, base), bound_at(solver, depth, base + 1)};
        const judged_cells found =
            judge_pair(&own, high, low, level->b + base, bound, exact, to->b + base, to->inverse + base);

        /* Level 0 decides how the steps go on. */
        const double squares = depth ? 0.0 : sk_cuda_sum(found.squares), size = depth ? 0.0 : sk_cuda_sum(found.size);
        if (threadIdx.x == 0 && depth == 0) {
            part->partial[0][block] = squares;
            part->partial[1][block] = size;
        }
        if (closed) {
            const double sum = sk_cuda_sum(found.sum);
            const int held = sk_cuda_sum(found.held);
            if (threadIdx.x == 0) {
                solver->partial[0][block] = sum;
                atomicAdd(&bounded->held, held);
            }
        }
        __syncthreads();
    }
    if (depth == 0 && sk_cuda_is_last(&part->ticket))
        decide_step(solver, bounded, exact);
}

/* --- A step --- */

/* The best length along the correction without bounds, and the mean of the correction. */
static __global__ void __launch_bounds__(PAIRS)
    measure_length(const sk_cuda_solver *solver, sk_cuda_bounded *bounded, int depth)
{
    __shared__ float z[TILE_CELLS];
    SK_CUDA_WAIT();
    sk_cuda_solver *part = &bounded->part;
    if (has_no_problem(solver, bounded, depth))
        return;
    const sk_cuda_level *level = &part->level[depth];
    double *const *partial = depth ? bounded->partial : part->partial; /* blocks of coarse levels have no fixed order */
    const int blocks = blocks_of(solver, depth);
    double slope = 0.0, curvature = 0.0, sum = 0.0;
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = block_of_level(solver, depth, n);
        pair own;
        locate_pair((int)threadIdx.x, &own);
        load_rows(level, block, (int)threadIdx.x, WITH_EXCESS, &own);
        load_right_side(level, block, &own);
        load_tile(level, level, block, 1, 0, &own, z);
        __syncthreads();
        slope = curvature = sum = 0.0;
        for (int c = 0; c < 2; c++) {
            const double value = (double)z[own.tile + c];
            slope += own.r[c].inverse > 0.0f ? value * (double)own.r[c].b : 0.0;
            curvature += value * (double)apply(z, &own.r[c], own.tile + c);
            sum += value;
        }
        slope = sk_cuda_sum(slope);
        curvature = sk_cuda_sum(curvature);
        sum = sk_cuda_sum(sum);
        if (threadIdx.x == 0) {
            const int at = depth ? level->place[block] : block;
            partial[0][at] = slope;
            partial[1][at] = curvature;
            if (depth == 0)
                solver->partial[0][block] = sum;
        }
        __syncthreads();
    }
    if (!sk_cuda_is_last(&part->ticket))
        return;
    slope = add_up(partial[0], depth ? level->places : part->block_count);
    curvature = add_up(partial[1], depth ? level->places : part->block_count);
    sum = depth ? 0.0 : add_up(solver->partial[0], part->block_count);
    if (threadIdx.x == 0) {
        const double length = slope > 0.0 && curvature > 0.0 ? slope / curvature : 0.0;
        bounded->length = (float)(length < longest_step ? length : longest_step);
        bounded->mean_z =
            depth == 0 && bounded->balanced && solver->unknowns[0] ? (float)(sum / (double)solver->unknowns[0]) : 0.0f;
    }
}

/* Two red-black sweeps of a tile that stay above `room`: sk_larger(sk_relax_cell, room). */
SK_DEVICE void project_tile(const pair *own, const float room[2], float *x)
{
    __syncthreads();
    for (int half = 0; half < 4; half++) {
        const int c = ((half & 1) + own->j + own->k) & 1; /* which of the two cells has that colour */
        row chosen;
        chosen.inverse = c ? own->r[1].inverse : own->r[0].inverse;
        chosen.b = c ? own->r[1].b : own->r[0].b;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            chosen.lower[axis] = c ? own->r[1].lower[axis] : own->r[0].lower[axis];
            chosen.upper[axis] = c ? own->r[1].upper[axis] : own->r[0].upper[axis];
        }
        x[own->tile + c] = sk_larger(relax(x, &chosen, own->tile + c), c ? room[1] : room[0]);
        __syncthreads();
    }
}

/* The correction of a cell after the cycle, scaled and clipped at the bound. */
SK_DEVICE float clipped(const sk_cuda_solver *solver, const sk_cuda_bounded *bounded, int depth, size_t at)
{
    const float mean = solver->level[depth].inverse[at] > 0.0f ? bounded->mean_z : 0.0f;
    return sk_larger(bounded->length * (bounded->part.level[depth].x[at] - mean), -gap_at(solver, depth, at));
}

enum { FIRST_VISIT = 1, ADVANCE = 2 };

/* Is the correction of a cell of a block's halo still unclipped when the block is visited? */
SK_DEVICE int is_unclipped(const pair *own, int e, int block, int colour, int flags)
{
    return flags & FIRST_VISIT && own->edge[e] >= CELLS && (!colour || own->edge[e] / CELLS == block);
}

/* Projected sweeps of the correction over the blocks of a colour, and the step. The first visit clips the correction:
 * blocks of the first colour also read that of their neighbours, and a block that touches itself its own. */
static __global__ void __launch_bounds__(PAIRS)
    correct(const sk_cuda_solver *solver, sk_cuda_bounded *bounded, int depth, int colour, int flags)
{
    __shared__ float z[TILE_CELLS];
    SK_CUDA_WAIT();
    if (has_no_problem(solver, bounded, depth))
        return;
    const sk_cuda_level *level = &solver->level[depth], *part = &bounded->part.level[depth];
    float *x = high_of(solver, depth);
    const int count = solver->count[depth][colour], paired = depth == 0 && bounded->paired;
    for (int n = (int)blockIdx.x; n < count; n += (int)gridDim.x) {
        const int block = block_of_colour(level, colour, n);
        pair own;
        locate_pair((int)threadIdx.x, &own);
        load_rows(level, block, (int)threadIdx.x, 0, &own);
        load_right_side(part, block, &own);
        const size_t base = (size_t)block * CELLS + own.at;
        float room[2];
        for (int c = 0; c < 2; c++) {
            room[c] = -gap_at(solver, depth, base + c);
            z[own.tile + c] = flags & FIRST_VISIT ? clipped(solver, bounded, depth, base + c) : part->x[base + c];
        }
        for (int e = 0; e < EDGES; e++)
            if (own.edge_tile[e] >= 0)
                z[own.edge_tile[e]] = is_unclipped(&own, e, block, colour, flags)
                                          ? clipped(solver, bounded, depth, own.edge[e])
                                          : part->x[own.edge[e]];
        project_tile(&own, room, z);
        for (int c = 0; c < 2; c++) {
            part->x[base + c] = z[own.tile + c];
            if (!(flags & ADVANCE))
                continue;
            float high = x[base + c], low = low_at(solver, depth, base + c);
            sk_step_above(&high, &low, bound_at(solver, depth, base + c), room[c], z[own.tile + c], paired);
            x[base + c] = high;
            if (depth == 0)
                solver->low[base + c] = low;
        }
        __syncthreads();
    }
}

/* Lowers a closed component without held cells until a cell meets its bound. One pass finds the distance, the other one
 * lowers. */
static __global__ void __launch_bounds__(PAIRS) lower_all(sk_cuda_solver *solver, sk_cuda_bounded *bounded, int lowers)
{
    SK_CUDA_WAIT();
    sk_cuda_solver *part = &bounded->part;
    if (part->state.done || !bounded->balanced)
        return;
    const int blocks = blocks_of(solver, 0);
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = block_of_level(solver, 0, n);
        const size_t base = (size_t)block * CELLS + 2 * threadIdx.x;
        double nearest = -INFINITY; /* minus the least gap */
        for (size_t at = base; at < base + 2; at++) {
            const float gap = gap_at(solver, 0, at), least = bounded->length;
            if (!(solver->level[0].inverse[at] > 0.0f))
                continue;
            nearest = fmax(nearest, -(double)gap);
            if (!lowers || !(least > 0.0f))
                continue;
            const double x = (double)solver->high[at] + (double)solver->low[at] - (double)least;
            solver->high[at] = gap <= least ? bound_at(solver, 0, at) : (float)x;
            solver->low[at] = gap <= least || !bounded->paired ? 0.0f : (float)(x - (double)(float)x);
        }
        nearest = sk_cuda_largest(nearest);
        if (threadIdx.x == 0)
            part->partial[0][block] = nearest; /* as the other kernels: what is not written stays 0 */
        __syncthreads();
    }
    if (lowers || !sk_cuda_is_last(&part->ticket))
        return;
    double nearest = -INFINITY;
    for (int i = (int)threadIdx.x; i < blocks; i += (int)blockDim.x)
        nearest = fmax(nearest, part->partial[0][block_of_level(solver, 0, i)]);
    nearest = sk_cuda_largest(nearest);
    if (threadIdx.x == 0)
        bounded->length = nearest > -INFINITY ? (float)-nearest : 0.0f; /* the length of the step is used up */
}

static __global__ void count_step(sk_cuda_bounded *bounded)
{
    SK_CUDA_WAIT();
    if (!bounded->part.state.done)
        bounded->part.iteration++;
}

/* --- From coarse to fine --- */

/* Index of the cell on a side of cell c of a block; in block 0 if there is none. */
SK_DEVICE size_t cell_beside(const sk_cuda_level *level, int block, int c, int side)
{
    const int axis = side / 2, upper = side & 1, stride = axis == 0 ? 1 : axis == 1 ? N : N * N, along = c / stride % N;
    if (along != (upper ? N - 1 : 0))
        return (size_t)block * CELLS + c + (upper ? stride : -stride);
    return (size_t)level->neighbour[block][side] * CELLS + c + (upper ? -(N - 1) : N - 1) * stride;
}

/* The solution of the next coarser problem, interpolated linearly and raised to the bounds. A thread a cell. */
static __global__ void __launch_bounds__(CELLS)
    interpolate(const sk_cuda_solver *solver, const sk_cuda_bounded *bounded, int depth)
{
    SK_CUDA_WAIT();
    if (has_no_problem(solver, bounded, depth + 1))
        return;
    const sk_cuda_level *level = &solver->level[depth], *coarse = level + 1;
    const float *from = high_of(solver, depth + 1);
    float *to = high_of(solver, depth);
    const int c = (int)threadIdx.x, at[3] = {c % N, c / N % N, c / N / N};
    for (int n = (int)blockIdx.x; n < blocks_of(solver, depth); n += (int)gridDim.x) {
        const int block = block_of_level(solver, depth, n), parent = level->parent[block] + parent_offset(c);
        const float own = from[parent];
        float value = own;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            const int upper = at[axis] & 1;
            const size_t beside = cell_beside(coarse, parent / CELLS, parent % CELLS, 2 * axis + upper);
            const float open = coarse->face[axis][upper ? beside : (size_t)parent];
            value += 0.25f * (open < 1.0f ? open : 1.0f) * (from[beside] - own);
        }
        const size_t cell = (size_t)block * CELLS + c;
        to[cell] = level->inverse[cell] > 0.0f ? sk_larger(value, bound_at(solver, depth, cell)) : 0.0f;
    }
}

/* Projected sweeps of a level's own problem. */
static __global__ void __launch_bounds__(PAIRS)
    smooth_problem(const sk_cuda_solver *solver, const sk_cuda_bounded *bounded, int depth, int colour)
{
    __shared__ float x[TILE_CELLS];
    SK_CUDA_WAIT();
    if (has_no_problem(solver, bounded, depth + 1))
        return;
    const sk_cuda_level *level = &solver->level[depth];
    float *field = high_of(solver, depth);
    for (int n = (int)blockIdx.x; n < solver->count[depth][colour]; n += (int)gridDim.x) {
        const int block = block_of_colour(level, colour, n);
        pair own;
        locate_pair((int)threadIdx.x, &own);
        load_rows(level, block, (int)threadIdx.x, 0, &own);
        load_right_side(level, block, &own);
        const size_t base = (size_t)block * CELLS + own.at;
        const float room[2] = {bound_at(solver, depth, base), bound_at(solver, depth, base + 1)};
        x[own.tile] = field[base];
        x[own.tile + 1] = field[base + 1];
        for (int e = 0; e < EDGES; e++)
            if (own.edge_tile[e] >= 0)
                x[own.edge_tile[e]] = field[own.edge[e]];
        project_tile(&own, room, x);
        store_two(field + base, x[own.tile], x[own.tile + 1]);
        __syncthreads();
    }
}

/* --- The end --- */

/* The solution in the units of the caller, and the report. A thread a cell. */
static __global__ void __launch_bounds__(CELLS)
    write_bounded(const sk_step *step, sk_cuda_solver *solver, sk_cuda_bounded *bounded, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const float unscale = 1.0f / solver->scale;
    const int count = (int)gridDim.x;
    double above = 0.0;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const size_t at = (size_t)block * CELLS + threadIdx.x;
        const int is_here = solver->active[block] && !solver->idle;
        const float x = is_here ? solver->high[at] + solver->low[at] : 0.0f;
        step->grid.fields[SK_FIELD_POTENTIAL][at] = x * unscale;
        above += is_here && gap_at(solver, 0, at) > 0.0f;
    }
    above = sk_cuda_sum(above);
    if (threadIdx.x == 0)
        data->partial[blockIdx.x] = above;
    if (!sk_cuda_is_last(&data->ticket[0]))
        return;
    above = 0.0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        above += data->partial[i];
    above = sk_cuda_sum(above);
    if (threadIdx.x == 0) {
        const sk_cuda_solver *part = &bounded->part;
        data->results.bounded.iterations = part->iteration;
        data->results.bounded.converged = part->converged;
        data->results.bounded.done = part->state.done;
        data->results.bounded.broken = part->broken;
        data->results.bounded.unknowns = solver->unknowns[0];
        data->results.bounded.residual = part->residual;
        data->results.bounded.free_cells = (int64_t)above;
        data->results.bounded.excess = (double)data->unilateral.largest;
    }
}

/* --- Launches --- */

/* Blocks of a launch over a level, of both colours. */
static int level_width(const sk_cuda *cuda, int depth)
{
    return depth ? 2 * launch_width(cuda, depth) : full_width(cuda);
}

static void launch_judge(sk_cuda *cuda, int depth, int again)
{
    SK_LAUNCH(cuda, judge, level_width(cuda, depth), PAIRS, cuda->solver, cuda->bounded, depth, again);
}

/* A step on a level whose residual is known. */
static void launch_level_step(sk_cuda *cuda, int depth)
{
    SK_DIM(sk_cuda_coarsen_part)(cuda, depth);
    SK_DIM(sk_cuda_cycle_part)(cuda, depth);
    SK_LAUNCH(cuda, measure_length, level_width(cuda, depth), PAIRS, cuda->solver, cuda->bounded, depth);
    for (int half = 0; half < 2 * STEP_VISITS; half++)
        SK_LAUNCH(cuda, correct, launch_width(cuda, depth), PAIRS, cuda->solver, cuda->bounded, depth, half & 1,
                  (half < 2 ? FIRST_VISIT : 0) | (half >= 2 * (STEP_VISITS - 1) ? ADVANCE : 0));
}

static void launch_start(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_DIM(sk_cuda_prepare_solve)(cuda);
    SK_LAUNCH_SIMPLE(cuda, begin_steps, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, cuda->solver, cuda->bounded);
    SK_DIM(sk_cuda_restrict_problem)(cuda);

    /* From the coarsest problem up. */
    for (int depth = cuda->solver_shadow.level_count - 1; depth > 0; depth--) {
        launch_judge(cuda, depth, 0);
        launch_level_step(cuda, depth);
        SK_LAUNCH_SIMPLE(cuda, interpolate, level_width(cuda, depth - 1), CELLS, cuda->solver, cuda->bounded,
                         depth - 1);
        for (int half = 0; half < 2 * START_VISITS; half++)
            SK_LAUNCH(cuda, smooth_problem, launch_width(cuda, depth - 1), PAIRS, cuda->solver, cuda->bounded,
                      depth - 1, half & 1);
    }
    for (int again = 0; again < 2; again++)
        launch_judge(cuda, 0, again);
}

static void launch_step(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_level_step(cuda, 0);
    for (int lowers = 0; lowers < 2; lowers++)
        SK_LAUNCH(cuda, lower_all, full_width(cuda), PAIRS, cuda->solver, cuda->bounded, lowers);
    SK_LAUNCH_SIMPLE(cuda, count_step, 1, 1, cuda->bounded);
    for (int again = 0; again < 2; again++)
        launch_judge(cuda, 0, again);
}

static void launch_end(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, write_bounded, SK_CUDA_SUMS, CELLS, &cuda->device->step, cuda->solver, cuda->bounded, cuda->data);
}

selkie_code SK_DIM(sk_cuda_solve_bounded)(sk_step *step, int kind, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const int *before = cuda->last[kind].iterations, most = step->scene->unilateral.max_iterations;
    int steps = before[0] > before[1] ? before[0] : before[1];
    SK_TRY(sk_cuda_run(step, "bounded_start", launch_start, error));

    /* As many steps as the last solves of that kind took; more if that was too few. */
    for (int launched = 0;; steps = launched + 1) {
        for (; launched < steps; launched++)
            SK_TRY(sk_cuda_run(step, "bounded_step", launch_step, error));
        SK_TRY(sk_cuda_run(step, "bounded_end", launch_end, error));
        SK_TRY(sk_cuda_read_results(step, error));
        if (cuda->results->bounded.done || launched > most)
            break;
    }
    sk_cuda_remember_solve(cuda, kind, cuda->results->bounded.iterations, 0);
    return SELKIE_OK;
}

/* Memory of the levels of the free cells. */
selkie_code SK_DIM(sk_cuda_take_bounded)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_cuda_solver *part = &cuda->part_shadow;
    *part = cuda->solver_shadow;
    for (int depth = 0; depth < part->level_count; depth++) {
        sk_cuda_level *level = &part->level[depth];
        const size_t bytes = (size_t)level->capacity * CELLS * sizeof(float);
        float **const fields[4] = {&level->excess, &level->inverse, &level->x, &level->b};
        level->open = NULL;
        for (int d = 0; d < SELKIE_DIM; d++)
            SK_TRY(sk_cuda_take(cuda, &level->face[d], bytes, 1, error));
        for (int n = 0; n < 4; n++)
            SK_TRY(sk_cuda_take(cuda, fields[n], bytes, 1, error));
    }
    for (int depth = 0; step->scene->unilateral.suction + step->capillary && depth < part->level_count; depth++) {
        sk_cuda_level *level = &cuda->solver_shadow.level[depth];
        SK_TRY(sk_cuda_take(cuda, &level->lower, (size_t)level->capacity * CELLS * sizeof(float), 1, error));
    }
    const size_t blocks = (size_t)cuda->shadow.capacity;
    for (int n = 0; n < 2; n++)
        SK_TRY(sk_cuda_take(cuda, &part->partial[n], blocks * sizeof(double), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.unilateral.wanted, blocks * sizeof(uint32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.unilateral.excess, blocks * sizeof(float), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->bounded, sizeof *cuda->bounded, 1, error));
    for (int n = 0; n < 2; n++) {
        double *sums;
        SK_TRY(sk_cuda_take(cuda, &sums, (size_t)part->level[part->level_count > 1].places * sizeof *sums, 1, error));
        SK_CUDA_TRY(
            cudaMemcpyAsync(&cuda->bounded->partial[n], &sums, sizeof sums, cudaMemcpyHostToDevice, cuda->stream),
            "the solver", error);
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the solver", error);
    }
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->bounded->part, part, sizeof *part, cudaMemcpyHostToDevice, cuda->stream),
                "the solver", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the solver", error);
    return SELKIE_OK;
}

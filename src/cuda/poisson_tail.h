/* The tail of a cycle of the GPU solver: its smallest levels, by one thread block. Private to src/cuda; for files
 * compiled per dimension.
 *
 * A stage of a small level takes longer to load its blocks than to compute. So the thread block copies the matrix of
 * all its levels into shared memory before it waits for the launches before it, with the indices of all neighbours;
 * vectors stay there too. If there are too many blocks for that, rows of some are used where they are, and indices are
 * computed in each stage. A tail has few blocks: each level has at most half as many places as the finer one.
 */
#ifndef SK_CUDA_POISSON_TAIL_H
#define SK_CUDA_POISSON_TAIL_H

#include "cuda/poisson_cells.h"

enum {
    TAIL_BLOCKS = 2 * SK_CUDA_TAIL_BLOCKS, /* most blocks of all levels */
    TAIL_NEAR = 12,                        /* those with room for their rows in shared memory */
    TAIL_LANES = 16                        /* threads that add up a row of the coarsest level */
};

/* Values in shared memory. The first form has links: indices of the values below (16 bits) and above each pair along
 * each axis; NO_CELL and the cell after it are empty. */
enum { NO_CELL = TAIL_NEAR * CELLS };
typedef struct tail_rows {
    float face[SELKIE_DIM][CELLS], inverse[CELLS], excess[CELLS], b[CELLS];
} tail_rows;
typedef union tail_cells {
    float x[TAIL_BLOCKS * CELLS];
    struct {
        float x[NO_CELL + 2], face[SELKIE_DIM][NO_CELL + 2], inverse[NO_CELL], excess[NO_CELL], b[NO_CELL];
        uint32_t links[TAIL_NEAR][SELKIE_DIM][PAIRS];
    } linked;
    struct {
        float x[TAIL_BLOCKS * CELLS];
        tail_rows near[TAIL_NEAR];
    } other;
} tail_cells;

/* A block: where its rows are, and the blocks around it and above it by their number in the tail. */
typedef struct tail_block {
    float *face[SELKIE_DIM], *inverse, *excess, *b;
    int beside[SIDES]; /* -1 = none */
    int above, child;  /* the coarse block, and the cell of it that contains the first cell */
} tail_block;

typedef struct tail_work {
    int linked;                    /* the form of the values */
    int first[SK_CUDA_LEVELS + 1]; /* number of the first block of each level */
    int count[SK_CUDA_LEVELS];     /* blocks of the first colour */
    int order[TAIL_BLOCKS];        /* the blocks of each level, those of the first colour first */
    tail_block block[TAIL_BLOCKS];
    float left[TEAMS][PAIRS];
    float inverse[SK_CUDA_BOTTOM][SK_CUDA_BOTTOM];
    int bottom_block[SK_CUDA_BOTTOM], bottom_cell[SK_CUDA_BOTTOM];
} tail_work;

/* --- Cells --- */

/* The pair of cells of a thread: its rows, and the indices of the values around it. */
typedef struct tail_pair {
    row r[2];
    int x;
    int lower[SELKIE_DIM], upper[SELKIE_DIM]; /* along x beside the pair, along other axes pairs */
} tail_pair;

/* Finds the values around the pair of thread t of a team in block n; -1 = none. */
SK_DEVICE void link_pair(const tail_work *work, int n, int t, tail_pair *own)
{
    const tail_block *block = &work->block[n];
    pair place;
    locate_pair(t, &place);
    const int at = place.at, along[3] = {place.i, place.j, place.k};
    own->x = n * CELLS + at;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = axis == 0 ? 1 : axis == 1 ? N : N * N, back = (N - 1) * stride;
        const int is_first = along[axis] == 0, is_last = along[axis] == (axis ? N - 1 : N - 2);
        const int end = axis ? own->x : own->x + 1; /* the cell that the upper neighbour follows */
        const int before = block->beside[2 * axis], after = block->beside[2 * axis + 1];
        own->lower[axis] = !is_first ? own->x - stride : before < 0 ? -1 : own->x + back + (before - n) * CELLS;
        own->upper[axis] = !is_last ? end + stride : after < 0 ? -1 : end - back + (after - n) * CELLS;
    }
}

/* Rows of a pair whose neighbours are known. Where there is none, coefficients are 0 and any value will do. */
SK_DEVICE void load_tail_rows(const tail_work *work, int n, tail_pair *own)
{
    const tail_block *block = &work->block[n];
    const int at = own->x % CELLS;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int next = own->upper[axis];
        const float *next_face = next < 0 ? NULL : work->block[next / CELLS].face[axis] + next % CELLS;
        own->lower[axis] = own->lower[axis] < 0 ? own->x : own->lower[axis];
        own->upper[axis] = next < 0 ? own->x : next;
        for (int c = 0; c < 2; c++) {
            own->r[c].lower[axis] = block->face[axis][at + c];
            own->r[c].upper[axis] = axis == 0 && c == 0 ? block->face[0][at + 1]
                                    : next < 0          ? 0.0f
                                                        : next_face[axis ? c : 0];
        }
    }
    for (int c = 0; c < 2; c++) {
        own->r[c].inverse = block->inverse[at + c];
        own->r[c].excess = block->excess[at + c];
        own->r[c].b = block->b[at + c];
    }
}

/* The same with links. */
SK_DEVICE void load_linked_rows(const tail_cells *cells, int n, int t, tail_pair *own)
{
    own->x = n * CELLS + 2 * t;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const uint32_t links = cells->linked.links[n][axis][t];
        const float *face = cells->linked.face[axis];
        own->lower[axis] = (int)(links & 0xffff);
        own->upper[axis] = (int)(links >> 16);
        const float2 lower = load_two(face + own->x);
        own->r[0].lower[axis] = lower.x, own->r[1].lower[axis] = lower.y;
        if (axis == 0) {
            own->r[0].upper[0] = lower.y, own->r[1].upper[0] = face[own->upper[0]];
        } else {
            const float2 upper = load_two(face + own->upper[axis]);
            own->r[0].upper[axis] = upper.x, own->r[1].upper[axis] = upper.y;
        }
    }
    const float2 inverse = load_two(cells->linked.inverse + own->x), excess = load_two(cells->linked.excess + own->x),
                 b = load_two(cells->linked.b + own->x);
    own->r[0].inverse = inverse.x, own->r[1].inverse = inverse.y;
    own->r[0].excess = excess.x, own->r[1].excess = excess.y;
    own->r[0].b = b.x, own->r[1].b = b.y;
}

/* Values beside cell c of a pair. */
SK_DEVICE float value_below(const float *x, const tail_pair *own, int c, int axis)
{
    return x[axis ? own->lower[axis] + c : c ? own->x : own->lower[0]];
}
SK_DEVICE float value_above(const float *x, const tail_pair *own, int c, int axis)
{
    return x[axis ? own->upper[axis] + c : c ? own->upper[0] : own->x + 1];
}

/* --- Copies --- */

SK_DEVICE int level_of_block(const tail_work *work, int top, int n)
{
    int depth = top;
    while (n >= work->first[depth + 1])
        depth++;
    return depth;
}

/* Finds the blocks of the levels from `top` to `bottom`. By all threads. */
SK_DEVICE void list_tail(const sk_cuda_solver *solver, int top, int bottom, tail_work *work, tail_cells *cells)
{
    const int t = (int)threadIdx.x;
    if (t == 0) {
        work->first[top] = 0;
        for (int depth = top; depth <= bottom; depth++) {
            work->count[depth] = solver->count[depth][0];
            work->first[depth + 1] = work->first[depth] + blocks_of(solver, depth);
        }
        work->linked = work->first[bottom + 1] <= TAIL_NEAR;
    }
    __syncthreads();
    const int blocks = work->first[bottom + 1], linked = work->linked;
    for (int n = t; n < blocks; n += (int)blockDim.x) {
        /* Blocks of a coarse level are numbered from 1. */
        const int depth = level_of_block(work, top, n), first = work->first[depth], own = n - first + 1;
        const sk_cuda_level *level = &solver->level[depth];
        const size_t base = (size_t)own * CELLS;
        tail_block *block = &work->block[n];
        work->order[n] = first + block_of_level(solver, depth, n - first) - 1;
        for (int side = 0; side < SIDES; side++) {
            const int other = level->neighbour[own][side];
            block->beside[side] = other ? first + other - 1 : -1;
        }
        block->above = depth < bottom ? work->first[depth + 1] + level->parent[own] / CELLS - 1 : 0;
        block->child = depth < bottom ? level->parent[own] % CELLS : 0;
        tail_rows *near = &cells->other.near[n < TAIL_NEAR ? n : 0];
        const int at = n * CELLS, is_near = n < TAIL_NEAR;
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            block->face[axis] = linked    ? cells->linked.face[axis] + at
                                : is_near ? near->face[axis]
                                          : level->face[axis] + base;
        block->inverse = linked ? cells->linked.inverse + at : is_near ? near->inverse : level->inverse + base;
        block->excess = linked ? cells->linked.excess + at : is_near ? near->excess : level->excess + base;
        block->b = linked ? cells->linked.b + at : is_near ? near->b : level->b + base;
    }
}

/* The links of all pairs, and the empty cells. By all threads. */
SK_DEVICE void link_tail(int blocks, const tail_work *work, tail_cells *cells)
{
    for (int e = (int)threadIdx.x; e < blocks * PAIRS; e += (int)blockDim.x) {
        tail_pair own;
        link_pair(work, e / PAIRS, e % PAIRS, &own);
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            cells->linked.links[e / PAIRS][axis][e % PAIRS] =
                (uint32_t)(own.lower[axis] < 0 ? (int)NO_CELL : own.lower[axis]) |
                (uint32_t)(own.upper[axis] < 0 ? (int)NO_CELL : own.upper[axis]) << 16;
    }
    if (threadIdx.x < 2) {
        cells->linked.x[NO_CELL + threadIdx.x] = 0.0f;
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            cells->linked.face[axis][NO_CELL + threadIdx.x] = 0.0f;
    }
}

/* Lists the blocks, and copies their matrix and the inverse of the coarsest one. By all threads. */
static __device__ __noinline__ void load_tail(const sk_cuda_solver *solver, int top, int bottom, tail_work *work,
                                              tail_cells *cells)
{
    list_tail(solver, top, bottom, work, cells);
    __syncthreads();
    const int t = (int)threadIdx.x, threads = (int)blockDim.x, unknowns = solver->bottom_unknowns;
    const int blocks = work->first[bottom + 1], with_rows = blocks < TAIL_NEAR ? blocks : TAIL_NEAR;
    for (int e = t; e < blocks * CELLS; e += threads)
        cells->x[e] = 0.0f;
    for (int e = t; e < with_rows * CELLS; e += threads) {
        const int n = e / CELLS, c = e % CELLS, depth = level_of_block(work, top, n);
        const sk_cuda_level *level = &solver->level[depth];
        const size_t at = (size_t)(n - work->first[depth] + 1) * CELLS + c;
        const tail_block *block = &work->block[n];
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            block->face[axis][c] = level->face[axis][at];
        block->inverse[c] = level->inverse[at];
        block->excess[c] = level->excess[at];
        block->b[c] = 0.0f; /* not all cells of the next level have children */
    }
    if (work->linked)
        link_tail(blocks, work, cells);
    for (int e = t; e < SK_CUDA_BOTTOM * SK_CUDA_BOTTOM; e += threads)
        work->inverse[e / SK_CUDA_BOTTOM][e % SK_CUDA_BOTTOM] =
            solver->bottom_inverse[e / SK_CUDA_BOTTOM][e % SK_CUDA_BOTTOM];
    for (int n = t; n < unknowns; n += threads) {
        work->bottom_block[n] = work->first[bottom] + solver->bottom_cell[n] / CELLS - 1;
        work->bottom_cell[n] = solver->bottom_cell[n] % CELLS;
    }
}

/* The vectors of the top, its first `tops` blocks. Other levels start from 0. By all threads. */
SK_DEVICE void load_vectors(const sk_cuda_level *level, int from_zero, int tops, const tail_work *work,
                            tail_cells *cells)
{
    for (int e = (int)threadIdx.x; e < tops * CELLS; e += (int)blockDim.x) {
        if (e < TAIL_NEAR * CELLS)
            work->block[e / CELLS].b[e % CELLS] = level->b[CELLS + e];
        if (!from_zero)
            cells->x[e] = level->x[CELLS + e];
    }
    __syncthreads();
}

/* The solution of the top. By all threads. */
SK_DEVICE void store_solution(const sk_cuda_level *level, int tops, const tail_cells *cells)
{
    for (int e = (int)threadIdx.x; e < tops * CELLS; e += (int)blockDim.x)
        level->x[CELLS + e] = cells->x[e];
}

/* --- Stages, by all threads --- */

/* Loads the pair of thread t of a team in block n. */
SK_DEVICE void load_tail_pair(const tail_work *work, const tail_cells *cells, int n, int t, tail_pair *own)
{
    if (work->linked) {
        load_linked_rows(cells, n, t, own);
    } else {
        link_pair(work, n, t, own);
        load_tail_rows(work, n, own);
    }
}

/* Two sweeps over the blocks of a colour of a level. */
static __device__ __noinline__ void smooth_tail(const tail_work *work, int depth, int colour, int backward,
                                                tail_cells *cells)
{
    float *x = cells->x;
    const int team = (int)threadIdx.x / PAIRS, t = (int)threadIdx.x % PAIRS;
    const int middle = work->first[depth] + work->count[depth];
    const int end = colour ? work->first[depth + 1] : middle;
    for (int n = team + (colour ? middle : work->first[depth]); n - team < end; n += TEAMS) {
        const int first = (t / (N / 2) % N + t / (N / 2) / N + backward) & 1; /* the cell that comes first */
        tail_pair own;
        if (n < end) {
            load_tail_pair(work, cells, work->order[n], t, &own);
            order_rows(own.r, first);
        }
#pragma unroll
        for (int half = 0; half < 4; half++) {
            const int c = first ^ (half & 1);
            const row *r = &own.r[half & 1];
            if (n < end) {
                float sum = r->b;
                for (int axis = 0; axis < SELKIE_DIM; axis++) {
                    sum += r->lower[axis] * value_below(x, &own, c, axis);
                    sum += r->upper[axis] * value_above(x, &own, c, axis);
                }
                x[own.x + c] = r->inverse * sum;
            }
            __syncthreads();
        }
    }
}

/* Right sides of the next level from the residuals of a level. */
static __device__ __noinline__ void restrict_tail(tail_work *work, int depth, const tail_cells *cells)
{
    const float *x = cells->x;
    const int team = (int)threadIdx.x / PAIRS, t = (int)threadIdx.x % PAIRS, end = work->first[depth + 1];
    for (int n = team + work->first[depth]; n - team < end; n += TEAMS) {
        const tail_block *block = &work->block[n < end ? n : 0];
        tail_pair own;
        float left = 0.0f;
        load_tail_pair(work, cells, n < end ? n : 0, t, &own);
        for (int c = 0; c < 2; c++) {
            const row *r = &own.r[c];
            const float here = x[own.x + c];
            float sum = r->excess * here;
            for (int axis = 0; axis < SELKIE_DIM; axis++) {
                sum += r->lower[axis] * (here - value_below(x, &own, c, axis));
                sum += r->upper[axis] * (here - value_above(x, &own, c, axis));
            }
            left += r->inverse > 0.0f ? r->b - sum : 0.0f;
        }
        work->left[team][t] = left;
        __syncthreads();
        if (n < end && t < CELLS / SK_CORNERS)
            work->block[block->above]
                .b[block->child + cell_index(t % (N / 2), t / (N / 2) % (N / 2), t / (N / 2) / (N / 2))] =
                SK_CORRECTION_SCALE * SK_RESTRICTION_SCALE * add_children(work->left[team], t);
        __syncthreads();
    }
}

/* Adds the values of the next level to a level. */
SK_DEVICE void prolong_tail(const tail_work *work, int depth, float *x)
{
    const int first = work->first[depth], blocks = work->first[depth + 1] - first;
    for (int e = (int)threadIdx.x; e < blocks * CELLS; e += (int)blockDim.x) {
        const tail_block *block = &work->block[first + e / CELLS];
        const int c = e % CELLS;
        if (block->inverse[c] > 0.0f)
            x[first * CELLS + e] += x[block->above * CELLS + block->child + parent_offset(c)];
    }
    __syncthreads();
}

/* The coarsest level, by the inverse of its matrix. */
SK_DEVICE void solve_tail(const tail_work *work, int unknowns, float *x)
{
    const int lane = (int)threadIdx.x % TAIL_LANES;
    for (int from = 0; from < unknowns; from += (int)blockDim.x / TAIL_LANES) {
        const int n = from + (int)threadIdx.x / TAIL_LANES, is = n < unknowns;
        float sum = 0.0f;
        for (int j = lane; is && j < unknowns; j += TAIL_LANES)
            sum += work->inverse[n][j] * work->block[work->bottom_block[j]].b[work->bottom_cell[j]];
        for (int lanes = TAIL_LANES / 2; lanes > 0; lanes /= 2)
            sum += __shfl_xor_sync(~0u, sum, lanes);
        if (is && lane == 0)
            x[work->bottom_block[n] * CELLS + work->bottom_cell[n]] = sum;
    }
    __syncthreads();
}

#endif

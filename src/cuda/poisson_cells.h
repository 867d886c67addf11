/* The blocks of the GPU solver: the rows of a thread's cells, tiles with a halo, smoothing and restriction. Private to
 * src/cuda; for files compiled per dimension. */
#ifndef SK_CUDA_POISSON_CELLS_H
#define SK_CUDA_POISSON_CELLS_H

#include "cuda/poisson_parts.h"

enum {
    SWEEP_BACKWARD = 1,
    FROM_ZERO = 2,
    RESTRICT = 4,
    PROLONG = 8,
    PROLONG_HALO = 16,
    TAKE_MEAN = 32,
    ARRIVE = 64,
    WITH_EXCESS = 128
};

/* --- Cells of a block --- */

/* A tile has a block and a layer around it. Its rows are longer than that, so that the cells of one colour that a warp
 * visits lie in different banks of shared memory. */
enum {
    TILE_SIDE = N + 2,
    TILE_ROW = SELKIE_DIM == 3 ? 12 : 24,
    TILE_CELLS = TILE_ROW * TILE_SIDE * (SELKIE_DIM == 3 ? TILE_SIDE : 1)
};
SK_DEVICE int tile_stride(int axis)
{
    return axis == 0 ? 1 : axis == 1 ? TILE_ROW : TILE_ROW * TILE_SIDE;
}
SK_DEVICE int tile_index(int i, int j, int k)
{
    return i + 1 + TILE_ROW * (j + 1) + (SELKIE_DIM == 3 ? TILE_ROW * TILE_SIDE * (k + 1) : 0);
}

/* Cell n of the layer beside a block on a side: its index in the neighbour, and in a tile. */
SK_DEVICE void halo_cell(int side, int n, int *there, int *tile)
{
    const int a = n % N, b = n / N, upper = side & 1, near = upper ? 0 : N - 1, far = upper ? N : -1;
    if (side / 2 == 0) {
        *there = cell_index(near, a, b);
        *tile = tile_index(far, a, b);
    } else if (side / 2 == 1) {
        *there = cell_index(a, near, b);
        *tile = tile_index(a, far, b);
    } else {
        *there = cell_index(a, b, near);
        *tile = tile_index(a, b, far);
    }
}

/* Coefficients of one cell. */
typedef struct row {
    float lower[SELKIE_DIM], upper[SELKIE_DIM], inverse, excess, b;
} row;

enum { EDGES = (SIDES * LAYER + PAIRS - 1) / PAIRS }; /* cells of the halo a thread loads */

/* The pair of cells of a thread, and the cells of the halo that it loads. */
typedef struct pair {
    int i, j, k, at, tile; /* of the first cell */
    row r[2];
    int parent;                                      /* index of the pair's coarse cell */
    int first_parent;                                /* that of the block's first cell */
    int edge_tile[EDGES], edge[EDGES], above[EDGES]; /* place in the tile, index of the cell, of its coarse cell */
} pair;

/* `t` is the thread's number in its team of PAIRS threads. */
SK_DEVICE void locate_pair(int t, pair *own)
{
    own->i = 2 * (t % (N / 2));
    own->j = t / (N / 2) % N;
    own->k = t / (N / 2) / N;
    own->at = cell_index(own->i, own->j, own->k);
    own->tile = tile_index(own->i, own->j, own->k);
}

SK_DEVICE float2 load_two(const float *from)
{
    return *(const float2 *)(const void *)from;
}

SK_DEVICE void store_two(float *to, float first, float second)
{
    float2 both;
    both.x = first, both.y = second;
    *(float2 *)(void *)to = both;
}

/* Cells from the coarse cell of a block's first cell to that of another one. */
SK_DEVICE int parent_offset(int at)
{
    return cell_index(at % N / 2, at / N % N / 2, at / N / N / 2);
}

/* The halo of a block: where the thread loads it from. With PROLONG_HALO, also the coarse cells above; -1 = none. */
SK_DEVICE void locate_halo(const sk_cuda_level *level, int block, int t, int flags, pair *own)
{
    for (int e = 0; e < EDGES; e++) {
        const int n = t + e * PAIRS;
        int there = 0;
        own->edge_tile[e] = -1;
        if (n >= SIDES * LAYER)
            continue;
        halo_cell(n / LAYER, n % LAYER, &there, &own->edge_tile[e]);
        const int other = level->neighbour[block][n / LAYER];
        own->edge[e] = other * CELLS + there;
        own->above[e] = -1;
        if (flags & PROLONG_HALO && other &&
            (level->open ? level->open[own->edge[e]] & IS_UNKNOWN : level->inverse[own->edge[e]] > 0.0f))
            own->above[e] = level->parent[other] + parent_offset(there);
    }
}

/* Coefficients of the thread's cells from the bits of their open sides, as read_rows has computed them: two bytes
 * instead of the six to eleven numbers below. */
SK_DEVICE void load_open_rows(const sk_cuda_level *level, int block, int form, pair *own)
{
    const size_t base = (size_t)block * CELLS + own->at;
    const uint32_t both = *(const uint16_t *)(const void *)(level->open + base);
    float2 excess = {0.0f, 0.0f};
    if (form == OPEN_ROWS_WITH_EXCESS)
        excess = load_two(level->excess + base);
    own->r[0].excess = excess.x;
    own->r[1].excess = excess.y;
    for (int c = 0; c < 2; c++) {
        const uint32_t bits = both >> (8 * c);
        float sum = 0.0f;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            own->r[c].lower[axis] = bits >> (2 * axis) & 1 ? 1.0f : 0.0f;
            own->r[c].upper[axis] = bits >> (2 * axis + 1) & 1 ? 1.0f : 0.0f;
            sum += own->r[c].lower[axis] + own->r[c].upper[axis];
        }
        own->r[c].inverse = bits & IS_UNKNOWN ? 1.0f / (sum + own->r[c].excess) : 0.0f;
    }
}

/* The same from numbers. */
SK_DEVICE void load_any_rows(const sk_cuda_level *level, int block, int flags, pair *own)
{
    const size_t base = (size_t)block * CELLS + own->at;
    const int along[3] = {own->i + 1, own->j, own->k};
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = axis == 0 ? 1 : axis == 1 ? N : N * N, last = along[axis] == N - 1;
        const float *face = level->face[axis];
        const size_t after =
            last ? (size_t)level->neighbour[block][2 * axis + 1] * CELLS + own->at - (N - 1) * stride : base + stride;
        const float2 lower = load_two(face + base);
        own->r[0].lower[axis] = lower.x;
        own->r[1].lower[axis] = lower.y;
        if (axis == 0) {
            own->r[0].upper[0] = lower.y;
            own->r[1].upper[0] = face[after + 1];
        } else {
            const float2 upper = load_two(face + after);
            own->r[0].upper[axis] = upper.x;
            own->r[1].upper[axis] = upper.y;
        }
    }
    const float2 inverse = load_two(level->inverse + base);
    own->r[0].inverse = inverse.x;
    own->r[1].inverse = inverse.y;
    if (flags & (RESTRICT | WITH_EXCESS)) {
        const float2 excess = load_two(level->excess + base);
        own->r[0].excess = excess.x;
        own->r[1].excess = excess.y;
    }
}

/* Coefficients of the thread's cells in a block of a list, and where their neighbours are: all this stays the same
 * during a solve. Returns the block. */
SK_DEVICE int load_rows(const sk_cuda_level *level, int entry, int t, int flags, pair *own)
{
    const int block = entry & BLOCK_OF_ENTRY, form = level->open ? entry >> FORM_SHIFT : ANY_ROWS;
    if (form == ANY_ROWS)
        load_any_rows(level, block, flags, own);
    else
        load_open_rows(level, block, form, own);
    if (flags & (RESTRICT | PROLONG)) {
        own->first_parent = level->parent[block];
        own->parent = own->first_parent + parent_offset(own->at);
    }
    locate_halo(level, block, t, flags, own);
    return block;
}

/* The halo of a block that touches itself follows its own cells. By all threads of a thread block. */
SK_DEVICE void wrap_halo(int block, const pair *own, float *x)
{
    for (int e = 0; e < EDGES; e++)
        if (own->edge_tile[e] >= 0 && own->edge[e] / CELLS == block) {
            const int c = own->edge[e] % CELLS;
            x[own->edge_tile[e]] = x[tile_index(c % N, c / N % N, c / N / N)];
        }
    __syncthreads();
}

SK_DEVICE void load_right_side(const sk_cuda_level *level, int block, pair *own)
{
    float2 b;
    SK_CUDA_LOAD_TWO(b, level->b + (size_t)block * CELLS + own->at);
    own->r[0].b = b.x;
    own->r[1].b = b.y;
}

SK_DEVICE float relax(const float *x, const row *r, int at)
{
    float sum = r->b;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = tile_stride(axis);
        sum += r->lower[axis] * x[at - stride];
        sum += r->upper[axis] * x[at + stride];
    }
    return r->inverse * sum;
}

SK_DEVICE float apply(const float *x, const row *r, int at)
{
    const float here = x[at];
    float sum = r->excess * here;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = tile_stride(axis);
        sum += r->lower[axis] * (here - x[at - stride]);
        sum += r->upper[axis] * (here - x[at + stride]);
    }
    return sum;
}

/* --- Between levels --- */

/* The sum of the residuals of the children of coarse cell n of a block, from those of its pairs. */
SK_DEVICE float add_children(const float *left, int n)
{
    const int half = N / 2, first = n % half + half * (2 * (n / half % half) + N * 2 * (n / half / half));
    float sum = left[first] + left[first + half];
    if (SELKIE_DIM == 3)
        sum += left[first + half * N] + left[first + half * (N + 1)];
    return sum;
}

/* Restricts the residual of a block. The rows of its pairs begin with cell `first`. `x` is its tile, `left` room for
 * its pairs. */
SK_DEVICE void restrict_block(const sk_cuda_level *coarse, int block, int t, int first, const pair *own, const float *x,
                              float *left)
{
    float sum = 0.0f;
    for (int c = 0; c < 2; c++)
        sum += own->r[c].inverse > 0.0f ? own->r[c].b - apply(x, &own->r[c], own->tile + (c ^ first)) : 0.0f;
    left[t] = sum;
    __syncthreads();
    if (block && t < CELLS / SK_CORNERS)
        coarse->b[own->first_parent + cell_index(t % (N / 2), t / (N / 2) % (N / 2), t / (N / 2) / (N / 2))] =
            SK_CORRECTION_SCALE * SK_RESTRICTION_SCALE * add_children(left, t);
    __syncthreads();
}

/* Loads x of a block and its halo into a tile. All loads come first: the compiler would not move one of them before a
 * store to the tile. */
SK_DEVICE void load_tile(const sk_cuda_level *level, const sk_cuda_level *coarse, int block, int colour, int flags,
                         const pair *own, float *x)
{
    float2 both = {0.0f, 0.0f};
    float more = 0.0f, value[EDGES], above[EDGES];
    if (!(flags & FROM_ZERO)) {
        SK_CUDA_LOAD_TWO(both, level->x + (size_t)block * CELLS + own->at);
        if (flags & PROLONG)
            SK_CUDA_LOAD(more, coarse->x + own->parent); /* the pair has one coarse cell */
    }
    for (int e = 0; e < EDGES; e++) {
        value[e] = above[e] = 0.0f;
        /* From zero, only blocks of the first colour have values yet. */
        if (own->edge_tile[e] >= 0 && !(flags & FROM_ZERO && colour == 0))
            SK_CUDA_LOAD(value[e], level->x + own->edge[e]);
        if (flags & PROLONG_HALO && own->edge_tile[e] >= 0 && own->above[e] >= 0)
            SK_CUDA_LOAD(above[e], coarse->x + own->above[e]);
    }
    x[own->tile] = both.x + (own->r[0].inverse > 0.0f ? more : 0.0f);
    x[own->tile + 1] = both.y + (own->r[1].inverse > 0.0f ? more : 0.0f);
    for (int e = 0; e < EDGES; e++)
        if (own->edge_tile[e] >= 0)
            x[own->edge_tile[e]] = value[e] + above[e];
}

typedef struct shared_block {
    float x[TILE_CELLS], left[PAIRS];
} shared_block;

/* Puts the rows of a pair into the order in which they are visited: cell `first` of the two comes first. */
SK_DEVICE void order_rows(row r[2], int first)
{
    const row before[2] = {r[0], r[1]};
    for (int c = 0; c < 2; c++) {
        r[c].inverse = c ^ first ? before[1].inverse : before[0].inverse;
        r[c].excess = c ^ first ? before[1].excess : before[0].excess;
        r[c].b = c ^ first ? before[1].b : before[0].b;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            r[c].lower[axis] = c ^ first ? before[1].lower[axis] : before[0].lower[axis];
            r[c].upper[axis] = c ^ first ? before[1].upper[axis] : before[0].upper[axis];
        }
    }
}

/* Smooths a block whose coefficients, right side and tile are loaded: two red-black sweeps. WRAPS: blocks may touch
 * themselves across a periodic axis. Block 0 does nothing but take part in the barriers. */
template <bool WRAPS>
SK_DEVICE void smooth_block(const sk_cuda_level *level, const sk_cuda_level *coarse, int block, int flags, int t,
                            pair *own, shared_block *s)
{
    const int begin = (own->j + own->k + flags) & SWEEP_BACKWARD; /* which of the two cells the first half visits */
    order_rows(own->r, begin);
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 4; half++) {
        if (WRAPS)
            wrap_halo(block, own, s->x);
        const int at = own->tile + (begin ^ (half & 1));
        s->x[at] = relax(s->x, &own->r[half & 1], at); /* the threads read cells of the other colour */
        __syncthreads();
    }
    if (block)
        store_two(level->x + (size_t)block * CELLS + own->at, s->x[own->tile], s->x[own->tile + 1]);
    if (WRAPS && flags & RESTRICT)
        wrap_halo(block, own, s->x);
    if (flags & RESTRICT)
        restrict_block(coarse, block, t, begin, own, s->x, s->left);
}

#endif

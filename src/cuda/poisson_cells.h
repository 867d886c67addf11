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
    TAKE_DOT = 32,
    ARRIVE = 64,
    WITH_EXCESS = 128
};

/* --- Cells of a block --- */

/* Cell n of the layer beside a block on a side: its index in the neighbour, and in a tile. */
SK_DEVICE void halo_cell(int side, int n, int *there, int *tile)
{
    const int a = n % N, b = n / N, upper = side & 1, near = upper ? 0 : N - 1, far = upper ? N : -1;
    if (side / 2 == 0) {
        *there = cell_index(near, a, b);
        *tile = sk_tile_index(far, a, b);
    } else if (side / 2 == 1) {
        *there = cell_index(a, near, b);
        *tile = sk_tile_index(a, far, b);
    } else {
        *there = cell_index(a, b, near);
        *tile = sk_tile_index(a, b, far);
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
    int edge_tile[EDGES], edge[EDGES], above[EDGES]; /* place in the tile, index of the cell, of its coarse cell */
} pair;

/* `t` is the thread's number in its team of PAIRS threads. */
SK_DEVICE void locate_pair(int t, pair *own)
{
    own->i = 2 * (t % (N / 2));
    own->j = t / (N / 2) % N;
    own->k = t / (N / 2) / N;
    own->at = cell_index(own->i, own->j, own->k);
    own->tile = sk_tile_index(own->i, own->j, own->k);
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

SK_DEVICE int parent_of(const sk_cuda_level *fine, int block, int at)
{
    return fine->parent[block] + cell_index(at % N / 2, at / N % N / 2, at / N / N / 2);
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
        if (flags & PROLONG_HALO && other && level->inverse[own->edge[e]] > 0.0f)
            own->above[e] = parent_of(level, other, there);
    }
}

/* Coefficients of the thread's cells, and where their neighbours are: all this stays the same during a solve. */
SK_DEVICE void load_rows(const sk_cuda_level *level, int block, int t, int flags, pair *own)
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
    if (flags & (RESTRICT | PROLONG))
        own->parent = parent_of(level, block, own->at);
    locate_halo(level, block, t, flags, own);
}

/* The halo of a block that touches itself follows its own cells. By all threads of a thread block. */
SK_DEVICE void wrap_halo(int block, const pair *own, float *x)
{
    for (int e = 0; e < EDGES; e++)
        if (own->edge_tile[e] >= 0 && own->edge[e] / CELLS == block) {
            const int c = own->edge[e] % CELLS;
            x[own->edge_tile[e]] = x[sk_tile_index(c % N, c / N % N, c / N / N)];
        }
    __syncthreads();
}

SK_DEVICE void load_right_side(const sk_cuda_level *level, int block, pair *own)
{
    const float2 b = load_two(level->b + (size_t)block * CELLS + own->at);
    own->r[0].b = b.x;
    own->r[1].b = b.y;
}

SK_DEVICE float relax(const float *x, const row *r, int at)
{
    float sum = r->b;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = sk_tile_stride(axis);
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
        const int stride = sk_tile_stride(axis);
        sum += r->lower[axis] * (here - x[at - stride]);
        sum += r->upper[axis] * (here - x[at + stride]);
    }
    return sum;
}

/* --- Between levels --- */

/* Restricts the residual of a block. `x` is its tile, `left` room for its cells. */
SK_DEVICE void restrict_block(const sk_cuda_level *fine, const sk_cuda_level *coarse, int block, int t, const pair *own,
                              const float *x, float *left)
{
    for (int c = 0; c < 2; c++)
        left[own->at + c] = own->r[c].inverse > 0.0f ? own->r[c].b - apply(x, &own->r[c], own->tile + c) : 0.0f;
    __syncthreads();
    for (int n = t; block && n < CELLS / SK_CORNERS; n += PAIRS) {
        const int i = 2 * (n % (N / 2)), j = 2 * (n / (N / 2) % (N / 2)), k = 2 * (n / (N / 2) / (N / 2));
        float sum = 0.0f;
        for (int child = 0; child < SK_CORNERS; child++)
            sum += left[cell_index(i + (child & 1), j + (child >> 1 & 1), k + (child >> 2))];
        coarse->b[fine->parent[block] + cell_index(i / 2, j / 2, k / 2)] =
            SK_CORRECTION_SCALE * SK_RESTRICTION_SCALE * sum;
    }
    __syncthreads();
}

/* Loads x of a block and its halo into a tile. */
SK_DEVICE void load_tile(const sk_cuda_level *level, const sk_cuda_level *coarse, int block, int colour, int flags,
                         const pair *own, float *x)
{
    float first = 0.0f, second = 0.0f;
    if (!(flags & FROM_ZERO)) {
        const float2 both = load_two(level->x + (size_t)block * CELLS + own->at);
        const float more = flags & PROLONG ? coarse->x[own->parent] : 0.0f; /* the pair has one coarse cell */
        first = both.x + (own->r[0].inverse > 0.0f ? more : 0.0f);
        second = both.y + (own->r[1].inverse > 0.0f ? more : 0.0f);
    }
    x[own->tile] = first;
    x[own->tile + 1] = second;
    for (int e = 0; e < EDGES; e++) {
        if (own->edge_tile[e] < 0)
            continue;
        /* From zero, only blocks of the first colour have values yet. */
        float value = flags & FROM_ZERO && colour == 0 ? 0.0f : level->x[own->edge[e]];
        if (flags & PROLONG_HALO && own->above[e] >= 0)
            value += coarse->x[own->above[e]];
        x[own->edge_tile[e]] = value;
    }
}

typedef struct shared_block {
    float x[SK_TILE_CELLS], left[CELLS];
} shared_block;

/* Smooths a block whose coefficients, right side and tile are loaded: two red-black sweeps. WRAPS: blocks may touch
 * themselves across a periodic axis. Returns the sum of b x over
 * the thread's cells. Block 0 does nothing but take part in the barriers. */
template <bool WRAPS>
SK_DEVICE double smooth_block(const sk_cuda_level *level, const sk_cuda_level *coarse, int block, int flags, int t,
                              pair *own, shared_block *s)
{
    __syncthreads();
    for (int half = 0; half < 4; half++) {
        if (WRAPS)
            wrap_halo(block, own, s->x);
        const int red = (half + (flags & SWEEP_BACKWARD)) & 1;
        const int c = (red + own->j + own->k) & 1; /* which of the two cells has that colour */
        row chosen;
        chosen.inverse = c ? own->r[1].inverse : own->r[0].inverse;
        chosen.b = c ? own->r[1].b : own->r[0].b;
        for (int axis = 0; axis < SELKIE_DIM; axis++) {
            chosen.lower[axis] = c ? own->r[1].lower[axis] : own->r[0].lower[axis];
            chosen.upper[axis] = c ? own->r[1].upper[axis] : own->r[0].upper[axis];
        }
        const float value = relax(s->x, &chosen, own->tile + c);
        s->x[own->tile + c] = value; /* the threads read cells of the other colour */
        __syncthreads();
    }
    const size_t base = (size_t)block * CELLS + own->at;
    const float first = s->x[own->tile], second = s->x[own->tile + 1];
    if (block)
        store_two(level->x + base, first, second);
    if (WRAPS && flags & RESTRICT)
        wrap_halo(block, own, s->x);
    if (flags & RESTRICT)
        restrict_block(level, coarse, block, t, own, s->x, s->left);
    return (double)own->r[0].b * (double)first + (double)own->r[1].b * (double)second;
}

#endif

/* Level 0 of the GPU solver where most faces are open or closed as a whole: kernels that work on the bits of open sides
 * instead of coefficients. Sweeps, restrictions and products have the same bits as those of the general kernels; sums
 * are added up in another order. Private to src/cuda; for files compiled per dimension.
 *
 * A row takes one byte, so that a visit of a block moves a third of the bytes. What does not change during a solve is
 * loaded a block ahead. Blocks of other rows take the general way, after the others.
 */
#ifndef SK_CUDA_POISSON_OPEN_H
#define SK_CUDA_POISSON_OPEN_H

#include "cuda/poisson_cells.h"

enum { OPEN_LAUNCHES = 4 }; /* thread blocks that share a multiprocessor: 64 registers a thread */

/* What a thread has of every block: its pair is cells 2 t and 2 t + 1, and it loads some cells of the halo. */
typedef struct open_place {
    int t, tile;                                     /* number of the thread, place of its first cell in the tile */
    int side[EDGES], there[EDGES], halo_tile[EDGES]; /* of the cells of the halo; side -1 = none */
} open_place;

SK_DEVICE open_place find_open_place(int t)
{
    open_place place;
    place.t = t;
    place.tile = tile_index(2 * (t % (N / 2)), t / (N / 2) % N, t / (N / 2) / N);
    for (int e = 0; e < EDGES; e++) {
        const int n = t + e * PAIRS, is = n < SIDES * LAYER;
        place.side[e] = is ? n / LAYER : -1;
        halo_cell(is ? n / LAYER : 0, n % LAYER, &place.there[e], &place.halo_tile[e]);
    }
    return place;
}

/* What a thread needs of a block that does not change during a solve. */
typedef struct open_rows {
    int block, form;
    uint32_t bits; /* of both cells */
    float2 excess, inverse;
    int parent, beside[EDGES];
} open_rows;

/* `what`: the flags of a visit; with RESTRICT or WITH_EXCESS the excess is needed. */
SK_DEVICE open_rows read_open_rows(const sk_cuda_level *level, int entry, const open_place *place, int what)
{
    open_rows rows;
    rows.block = entry & BLOCK_OF_ENTRY;
    rows.form = entry >> FORM_SHIFT;
    const size_t base = (size_t)rows.block * CELLS + 2 * (size_t)place->t;
    rows.bits = *(const uint16_t *)(const void *)(level->open + base);
    rows.excess.x = rows.excess.y = rows.inverse.x = rows.inverse.y = 0.0f;
    if (rows.form == OPEN_ROWS_WITH_EXCESS) {
        rows.inverse = load_two(level->inverse + base);
        if (what & (RESTRICT | WITH_EXCESS))
            rows.excess = load_two(level->excess + base);
    }
    rows.parent = what & (RESTRICT | PROLONG) ? level->parent[rows.block] : 0;
    for (int e = 0; e < EDGES; e++)
        rows.beside[e] = place->side[e] < 0 ? 0 : level->neighbour[rows.block][place->side[e]];
    return rows;
}

/* Values of a block before a visit, and those from the coarse level to add. */
typedef struct open_values {
    float2 x, b;
    float halo[EDGES], more, above[EDGES];
} open_values;

/* All loads come first: none waits for another one. */
SK_DEVICE open_values read_open_values(const sk_cuda_level *level, const sk_cuda_level *coarse, const open_rows *rows,
                                       const open_place *place, int colour, int flags)
{
    const size_t base = (size_t)rows->block * CELLS + 2 * (size_t)place->t;
    open_values values;
    values.x.x = values.x.y = values.more = 0.0f;
    SK_CUDA_LOAD_TWO(values.b, level->b + base);
    if (!(flags & FROM_ZERO)) {
        SK_CUDA_LOAD_TWO(values.x, level->x + base);
        if (flags & PROLONG)
            SK_CUDA_LOAD(values.more, coarse->x + rows->parent + parent_offset(2 * place->t));
    }
    for (int e = 0; e < EDGES; e++) {
        const size_t at = (size_t)rows->beside[e] * CELLS + (size_t)place->there[e];
        values.halo[e] = values.above[e] = 0.0f;
        /* From zero, only blocks of the first colour have values yet. */
        if (place->side[e] >= 0 && !(flags & FROM_ZERO && colour == 0))
            SK_CUDA_LOAD(values.halo[e], level->x + at);
        if (flags & PROLONG_HALO && rows->beside[e] && level->open[at] & IS_UNKNOWN)
            SK_CUDA_LOAD(values.above[e], coarse->x + level->parent[rows->beside[e]] + parent_offset(place->there[e]));
    }
    return values;
}

/* Puts a block and its halo into a tile. */
SK_DEVICE void fill_tile(const open_rows *rows, const open_values *values, const open_place *place, int flags, float *x)
{
    x[place->tile] = values->x.x + (flags & PROLONG && rows->bits & IS_UNKNOWN ? values->more : 0.0f);
    x[place->tile + 1] = values->x.y + (flags & PROLONG && rows->bits >> 8 & IS_UNKNOWN ? values->more : 0.0f);
    for (int e = 0; e < EDGES; e++)
        if (place->side[e] >= 0)
            x[place->halo_tile[e]] = values->halo[e] + (flags & PROLONG_HALO ? values->above[e] : 0.0f);
}

/* The coefficients of a cell from its bits, 0 and 1. Their products are exact, so that a fused multiply-add takes the
 * bits of a product and a sum. */
typedef struct open_sides {
    float lower[SELKIE_DIM], upper[SELKIE_DIM];
} open_sides;

SK_DEVICE open_sides sides_of(uint32_t bits)
{
    open_sides sides;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        sides.lower[axis] = bits >> (2 * axis) & 1 ? 1.0f : 0.0f;
        sides.upper[axis] = bits >> (2 * axis + 1) & 1 ? 1.0f : 0.0f;
    }
    return sides;
}

/* `relax` and `apply` with them. */
SK_DEVICE float relax_open(const float *x, const open_sides *sides, float b, float inverse, int at)
{
    float sum = b;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = tile_stride(axis);
        sum = fmaf(sides->lower[axis], x[at - stride], sum);
        sum = fmaf(sides->upper[axis], x[at + stride], sum);
    }
    return inverse * sum;
}

SK_DEVICE float apply_open(const float *x, uint32_t bits, float excess, int at)
{
    const open_sides sides = sides_of(bits);
    const float here = x[at];
    float sum = excess * here;
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        const int stride = tile_stride(axis);
        sum = fmaf(sides.lower[axis], here - x[at - stride], sum);
        sum = fmaf(sides.upper[axis], here - x[at + stride], sum);
    }
    return sum;
}

/* One over the number of open sides, as read_rows has it where there is no excess. A table in shared memory. */
enum { INVERSES = SIDES + 1 };
SK_DEVICE void fill_inverses(float inverse_of[INVERSES])
{
    if (threadIdx.x < INVERSES)
        inverse_of[threadIdx.x] = threadIdx.x ? 1.0f / (float)threadIdx.x : 0.0f;
}

SK_DEVICE float inverse_of_row(const open_rows *rows, int second, const float inverse_of[INVERSES])
{
    const uint32_t bits = second ? rows->bits >> 8 : rows->bits;
    return rows->form == OPEN_ROWS_WITH_EXCESS ? (second ? rows->inverse.y : rows->inverse.x)
                                               : inverse_of[__popc(bits & (IS_UNKNOWN - 1))];
}

/* Which of its two cells a thread visits first in a sweep. */
SK_DEVICE int first_of_pair(int t, int flags)
{
    const int j = t / (N / 2) % N, k = t / (N / 2) / N;
    return (j + k + flags) & SWEEP_BACKWARD;
}

/* Two red-black sweeps over a block that is in the tile: `smooth_block`. */
SK_DEVICE void sweep_open(const sk_cuda_level *level, const open_rows *rows, float2 b, const open_place *place,
                          int flags, const float inverse_of[INVERSES], float *x)
{
    const int begin = first_of_pair(place->t, flags);
    open_sides sides[2];
    float right[2], inverse[2];
    for (int half = 0; half < 2; half++) {
        const int second = begin ^ half;
        sides[half] = sides_of(second ? rows->bits >> 8 : rows->bits);
        right[half] = second ? b.y : b.x;
        inverse[half] = inverse_of_row(rows, second, inverse_of);
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 4; half++) {
        const int at = place->tile + (begin ^ (half & 1));
        x[at] = relax_open(x, &sides[half & 1], right[half & 1], inverse[half & 1], at);
        __syncthreads();
    }
    store_two(level->x + (size_t)rows->block * CELLS + 2 * (size_t)place->t, x[place->tile], x[place->tile + 1]);
}

/* Restricts the residual of a block that is in the tile: `restrict_block`. The order of both sums is that of the
 * general kernels: in a visit from the cell that the sweep began with. */
SK_DEVICE void restrict_open(const sk_cuda_level *coarse, const open_rows *rows, float2 b, const open_place *place,
                             int begin, const float *x, float *left)
{
    const int t = place->t;
    float sum = 0.0f;
    for (int c = 0; c < 2; c++) {
        const int second = c ^ begin;
        const uint32_t bits = second ? rows->bits >> 8 : rows->bits;
        const float residual =
            (second ? b.y : b.x) - apply_open(x, bits, second ? rows->excess.y : rows->excess.x, place->tile + second);
        sum += bits & IS_UNKNOWN ? residual : 0.0f;
    }
    left[t] = sum;
    __syncthreads();
    if (t < CELLS / SK_CORNERS)
        coarse->b[rows->parent + cell_index(t % (N / 2), t / (N / 2) % (N / 2), t / (N / 2) / (N / 2))] =
            SK_CORRECTION_SCALE * SK_RESTRICTION_SCALE * add_children(left, t);
}

/* --- Blocks of other rows --- */

/* These are few, and calls: what they need of registers must not cost the others' thread blocks. They take levels in
 * the memory of the device: loads from the address of a parameter look out of bounds to compute-sanitizer. */
static __device__ __noinline__ void smooth_other(const sk_cuda_level *level, const sk_cuda_level *coarse, int entry,
                                                 int colour, int flags, shared_block *s)
{
    const int t = (int)threadIdx.x;
    pair own;
    locate_pair(t, &own);
    const int block = load_rows(level, entry, t, flags, &own);
    load_right_side(level, block, &own);
    load_tile(level, coarse, block, colour, flags, &own, s->x);
    smooth_block<false>(level, coarse, block, flags, t, &own, s);
}

/* A x of the thread's pair; the tile is loaded. */
static __device__ __noinline__ void apply_other(const sk_cuda_level *level, int block, const float *x, float product[2])
{
    pair own;
    locate_pair((int)threadIdx.x, &own);
    load_any_rows(level, block, WITH_EXCESS, &own);
    for (int c = 0; c < 2; c++)
        product[c] = apply(x, &own.r[c], own.tile + c);
}

static __device__ __noinline__ void restrict_other(const sk_cuda_level *level, const sk_cuda_level *coarse, int entry,
                                                   shared_block *s)
{
    const int t = (int)threadIdx.x;
    pair own;
    locate_pair(t, &own);
    const int block = load_rows(level, entry, t, RESTRICT, &own);
    load_right_side(level, block, &own);
    load_tile(level, coarse, block, 0, 0, &own, s->x);
    __syncthreads();
    restrict_block(coarse, block, t, 0, &own, s->x, s->left);
}

#endif

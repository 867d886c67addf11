/* The linear solvers on one cell: operator, smoother, transfers between levels, bounds. Compiled by the C compiler and
 * by nvcc.
 *
 * A cell reads its neighbours from tiles: the cells of a block in natural order with a halo of one cell. `face` is one
 * tile an axis, with the coefficient of the lower face of each cell. The inverse diagonal is 0 for a held cell and for
 * a cell that is no unknown.
 *
 * The operator is written with differences, sum of c (x - x_neighbour) + e x, instead of d x - sum of c x_neighbour. A
 * smooth x is large beside its differences, and single precision would lose them.
 */
#ifndef SK_LINALG_LINALG_KERNELS_H
#define SK_LINALG_LINALG_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

#define SK_TILE_SIDE (SK_BLOCK_N + 2)
#if SELKIE_DIM == 3
#define SK_TILE_CELLS (SK_TILE_SIDE * SK_TILE_SIDE * SK_TILE_SIDE)
#define SK_RESTRICTION_SCALE 0.5f /* factor of the sum over children; a full face is 1 on every level */
#define SK_COARSE_FACE_SHARE 0.25f
#else
#define SK_TILE_CELLS (SK_TILE_SIDE * SK_TILE_SIDE)
#define SK_RESTRICTION_SCALE 1.0f
#define SK_COARSE_FACE_SHARE 0.5f
#endif
#define SK_CORRECTION_SCALE 0.95f    /* factor of restricted residuals, see multigrid_cycle_dim.c */
#define SK_SMALLEST_DIAGONAL 1e-30f  /* a smaller one has no inverse in single precision and counts as none */
#define SK_EXCESS_ROUND_OFF 2e-6f    /* an excess below this part of the diagonal is round-off of the caller's sum */
#define SK_DOMINANCE_ROUND_OFF 1e-3f /* part of the diagonal that may be missing */

typedef struct sk_tile {
    float cell[SK_TILE_CELLS];
} sk_tile;

/* Index of cell (i, j, k) of the block, each from -1 to SK_BLOCK_N. */
SK_KERNEL int sk_tile_index(int i, int j, int k)
{
    return i + 1 + SK_TILE_SIDE * (j + 1) + (SELKIE_DIM == 3 ? SK_TILE_SIDE * SK_TILE_SIDE * (k + 1) : 0);
}

/* Step from a cell to the next one along an axis. */
SK_KERNEL int sk_tile_stride(int axis)
{
    return axis == 0 ? 1 : axis == 1 ? SK_TILE_SIDE : SK_TILE_SIDE * SK_TILE_SIDE;
}

/* Step from a cell to the child with these bits: x, y, z. */
SK_KERNEL int sk_tile_child(int child)
{
    return (child & 1) + SK_TILE_SIDE * (child >> 1 & 1) + SK_TILE_SIDE * SK_TILE_SIDE * (child >> 2);
}

SK_KERNEL float sk_larger(float a, float b)
{
    return a > b ? a : b;
}

SK_KERNEL int sk_is_finite(float value)
{
    return value - value == 0.0f;
}

/* --- The operator --- */

/* (A x)_i */
SK_KERNEL float sk_apply_cell(const sk_tile *x, const sk_tile *face, float excess, int at)
{
    float here = x->cell[at], sum = excess * here;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int stride = sk_tile_stride(axis);
        sum += face[axis].cell[at] * (here - x->cell[at - stride]);
        sum += face[axis].cell[at + stride] * (here - x->cell[at + stride]);
    }
    return sum;
}

/* (b - A (high + low))_i. Differences of high are taken in double. low is a rounding error of high; single precision
 * suffices for its differences. */
SK_KERNEL float sk_residual_cell(const sk_tile *high, const sk_tile *low, const sk_tile *face, float excess, float b,
                                 int at)
{
    double here = (double)high->cell[at];
    double sum = (double)b - (double)sk_apply_cell(low, face, excess, at) - (double)excess * here;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int stride = sk_tile_stride(axis);
        sum -= (double)face[axis].cell[at] * (here - (double)high->cell[at - stride]);
        sum -= (double)face[axis].cell[at + stride] * (here - (double)high->cell[at + stride]);
    }
    return (float)sum;
}

/* The same in single precision. Differences of neighbours are small and nearly exact, whatever the size of high. Only
 * the differences suffer a rounding error, x does not. */
SK_KERNEL float sk_quick_residual_cell(const sk_tile *high, const sk_tile *low, const sk_tile *face, float excess,
                                       float b, int at)
{
    float h = high->cell[at], l = low->cell[at], sum = 0.0f;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int stride = sk_tile_stride(axis);
        sum += face[axis].cell[at] * ((h - high->cell[at - stride]) + (l - low->cell[at - stride]));
        sum += face[axis].cell[at + stride] * ((h - high->cell[at + stride]) + (l - low->cell[at + stride]));
    }
    return (b - excess * (h + l)) - sum;
}

/* Gauss-Seidel: the x_i that solves row i. */
SK_KERNEL float sk_relax_cell(const sk_tile *x, const sk_tile *face, float b, float inverse, int at)
{
    float sum = b;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int stride = sk_tile_stride(axis);
        sum += face[axis].cell[at] * x->cell[at - stride];
        sum += face[axis].cell[at + stride] * x->cell[at + stride];
    }
    return inverse * sum;
}

/* --- Between levels --- */

/* Sum over the children of a coarse cell. The first child is at `at`. */
SK_KERNEL float sk_sum_of_children(const sk_tile *fine, int at)
{
    float sum = 0.0f;
    for (int child = 0; child < SK_CORNERS; ++child)
        sum += fine->cell[at + sk_tile_child(child)];
    return sum;
}

/* Lower face of a coarse cell along an axis: the mean of the fine faces in it. */
SK_KERNEL float sk_coarse_face(const sk_tile *face, int axis, int at)
{
    float sum = 0.0f;
    for (int child = 0; child < SK_CORNERS; ++child)
        sum += child >> axis & 1 ? 0.0f : face[axis].cell[at + sk_tile_child(child)];
    return SK_COARSE_FACE_SHARE * sum;
}

/* Excess of a coarse cell. Stiff Dirichlet terms of its children are softened, see multigrid_setup_dim.c. */
SK_KERNEL float sk_coarse_excess(const sk_tile *excess, float softness, int at)
{
    float sum = 0.0f;
    for (int child = 0; child < SK_CORNERS; ++child) {
        float e = excess->cell[at + sk_tile_child(child)];
        sum += SK_RESTRICTION_SCALE * e / (1.0f + softness * e);
    }
    return sum;
}

SK_KERNEL float sk_inverse_diagonal(const sk_tile *face, float excess, int at)
{
    float sum = excess;
    for (int axis = 0; axis < SELKIE_DIM; ++axis)
        sum += face[axis].cell[at] + face[axis].cell[at + sk_tile_stride(axis)];
    return sum > 0.0f ? 1.0f / sum : 0.0f;
}

SK_KERNEL int sk_has_full_faces(const sk_tile *face, int at)
{
    int full = 1;
    for (int axis = 0; axis < SELKIE_DIM; ++axis)
        full &= face[axis].cell[at] == 1.0f && face[axis].cell[at + sk_tile_stride(axis)] == 1.0f;
    return full;
}

/* Lower face of a cell in a level with held unknowns: it stays if both sides take part, otherwise it is 0. */
SK_KERNEL float sk_face_of_part(const sk_tile *face, const sk_tile *inverse, int axis, int at)
{
    int stays = inverse->cell[at] > 0.0f && inverse->cell[at - sk_tile_stride(axis)] > 0.0f;
    return stays ? face[axis].cell[at] : 0.0f;
}

/* Excess of such a cell: faces towards held cells are added. */
SK_KERNEL float sk_excess_of_part(const sk_tile *face, const sk_tile *inverse, float excess, int at)
{
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int stride = sk_tile_stride(axis);
        excess += inverse->cell[at - stride] > 0.0f ? 0.0f : face[axis].cell[at];
        excess += inverse->cell[at + stride] > 0.0f ? 0.0f : face[axis].cell[at + stride];
    }
    return inverse->cell[at] > 0.0f ? excess : 0.0f;
}

/* --- The caller's system --- */

enum { SK_FLAW_NOT_FINITE = 1, SK_FLAW_NEGATIVE = 2, SK_FLAW_NOT_DOMINANT = 4 };

typedef struct sk_input_cell {
    float face[SELKIE_DIM], excess, inverse;
    int is_unknown;
    int is_full; /* an unknown with full faces to other unknowns on all sides */
    int flaws;
} sk_input_cell;

/* A row of the matrix from the caller's diagonal and faces. Faces towards cells that are no unknowns are dropped: x is
 * zero behind them, and their weight is part of the excess. */
SK_KERNEL sk_input_cell sk_read_cell(const sk_tile *diagonal, const sk_tile *face, int at)
{
    sk_input_cell cell;
    float d = diagonal->cell[at], sum = 0.0f;
    cell.is_unknown = cell.is_full = d > SK_SMALLEST_DIAGONAL;
    cell.flaws = 0;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int stride = sk_tile_stride(axis);
        float lower = face[axis].cell[at], upper = face[axis].cell[at + stride];
        cell.flaws |= (sk_is_finite(lower) ? 0 : SK_FLAW_NOT_FINITE) | (lower < 0.0f ? SK_FLAW_NEGATIVE : 0);
        lower = cell.is_unknown && diagonal->cell[at - stride] > SK_SMALLEST_DIAGONAL ? lower : 0.0f;
        upper = cell.is_unknown && diagonal->cell[at + stride] > SK_SMALLEST_DIAGONAL ? upper : 0.0f;
        cell.is_full &= lower == 1.0f && upper == 1.0f;
        cell.face[axis] = lower;
        sum += lower + upper;
    }
    float excess = cell.is_unknown ? d - sum : 0.0f;
    cell.flaws |= excess < -SK_DOMINANCE_ROUND_OFF * d ? SK_FLAW_NOT_DOMINANT : 0;
    cell.excess = excess > SK_EXCESS_ROUND_OFF * d ? excess : 0.0f;
    cell.inverse = cell.is_unknown ? 1.0f / (sum + cell.excess) : 0.0f;
    return cell;
}

/* --- Conjugate gradients --- */

SK_KERNEL float sk_add_scaled(float a, float factor, float b)
{
    return a + factor * b;
}

/* Two-sum (Knuth): high + low stays the same, and low becomes the rounding error of high. */
SK_KERNEL void sk_fold(float *high, float *low)
{
    float sum = *high + *low, part = sum - *high;
    *low = (*high - (sum - part)) + (*low - part);
    *high = sum;
}

/* --- Bounds --- */

/* Distance of high + low from its bound. */
SK_KERNEL float sk_bound_gap(float high, float low, float lower)
{
    return (high - lower) + low;
}

/* Is the caller's start usable? Otherwise the bound or 0 is taken. */
SK_KERNEL float sk_feasible_start(float x, float lower)
{
    return x > lower && sk_is_finite(x) ? x : sk_larger(lower, 0.0f);
}

/* Is the cell free: above its bound, or pushed away from it by the residual? */
SK_KERNEL int sk_is_free(float gap, float residual, float inverse)
{
    return inverse > 0.0f && (gap > 0.0f || residual > 0.0f);
}

/* min(d gap, -residual), up to its sign. */
SK_KERNEL float sk_natural_residual(float gap, float residual, float inverse)
{
    if (!(inverse > 0.0f))
        return 0.0f;
    float distance = gap / inverse;
    return distance < -residual ? distance : residual;
}

/* x + z in a pair of floats or in one. If z reaches the bound, x is the bound to the bit. */
SK_KERNEL void sk_step_above(float *high, float *low, float lower, float room, float z, int paired)
{
    if (z <= room) {
        *high = lower;
        *low = 0.0f;
    } else if (paired) {
        *low += z;
        sk_fold(high, low);
    } else {
        *high += z;
    }
}

/* Value of a child of coarse cell `at`, linear between coarse cells. Along each axis it adds 0.25 of the difference to
 * the neighbour on the child's side, times the open fraction of the face between. */
SK_KERNEL float sk_interpolate_child(const sk_tile *coarse, const sk_tile *face, int at, int child)
{
    float own = coarse->cell[at], value = own;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        int upper = child >> axis & 1, stride = sk_tile_stride(axis);
        float open = face[axis].cell[upper ? at + stride : at];
        float other = coarse->cell[upper ? at + stride : at - stride];
        value += 0.25f * (open < 1.0f ? open : 1.0f) * (other - own);
    }
    return value;
}

#endif

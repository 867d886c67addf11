/* The coarsest level of the GPU solver: the inverse of its matrix, by one thread block. Private to src/cuda; for files
 * compiled per dimension. */
#ifndef SK_CUDA_POISSON_BOTTOM_H
#define SK_CUDA_POISSON_BOTTOM_H

#include "cuda/poisson_parts.h"

enum { PIVOTS = 4 }; /* SK_CUDA_BOTTOM is a multiple of it */

/* The coarsest level while its matrix is inverted. */
typedef struct bottom_work {
    double a[2][SK_CUDA_BOTTOM][SK_CUDA_BOTTOM], diagonal[SK_CUDA_BOTTOM];
    float faces[SK_CUDA_BOTTOM][SIDES];
    int cells[SK_CUDA_BOTTOM], beside[SK_CUDA_BOTTOM][SIDES];
    int count;
} bottom_work;

/* Lists the unknowns in the order of the places (level 0: of the blocks) and of the cells. Returns their number. */
SK_DEVICE int list_bottom(sk_cuda_solver *solver, const sk_cuda_level *level, bottom_work *work)
{
    const int depth = solver->state.bottom, most = depth ? level->places : solver->block_count, t = (int)threadIdx.x;
    if (t == 0)
        work->count = 0;
    __syncthreads();
    for (int n = 0; n < most; n++) {
        const int block = depth ? level->map[n] : solver->active[n] ? n : 0;
        for (int c = 0; block && c < CELLS; c += (int)blockDim.x) {
            const int at = block * CELLS + c + t;
            int total;
            const int is = c + t < CELLS && level->inverse[at] > 0.0f, before = work->count + sk_cuda_scan(is, &total);
            if (is && before < SK_CUDA_BOTTOM)
                solver->bottom_cell[before] = work->cells[before] = at;
            __syncthreads();
            if (t == 0)
                work->count += total;
            __syncthreads();
        }
    }
    return work->count < SK_CUDA_BOTTOM ? work->count : SK_CUDA_BOTTOM;
}

/* The matrix. A thread finds the unknown on a side of another one. */
SK_DEVICE void fill_bottom(const sk_cuda_level *level, int unknowns, bottom_work *work)
{
    const int t = (int)threadIdx.x;
    for (int e = t; e < SK_CUDA_BOTTOM * SK_CUDA_BOTTOM; e += (int)blockDim.x)
        for (int copy = 0; copy < 2; copy++)
            work->a[copy][e / SK_CUDA_BOTTOM][e % SK_CUDA_BOTTOM] = 0.0;
    for (int e = t; e < unknowns * SIDES; e += (int)blockDim.x) {
        const int own = work->cells[e / SIDES], side = e % SIDES, block = own / CELLS, c = own % CELLS;
        const int axis = side / 2, stride = axis == 0 ? 1 : axis == 1 ? N : N * N, upper = side & 1;
        const int along = c / stride % N, leaves = along == (upper ? N - 1 : 0);
        const int other = leaves ? level->neighbour[block][side] : block;
        const int there = other * CELLS + c + (leaves ? (upper ? -1 : 1) * (N - 1) : (upper ? 1 : -1)) * stride;
        int found = -1;
        for (int j = 0; j < unknowns; j++)
            found = work->cells[j] == there ? j : found;
        work->faces[e / SIDES][side] = level->face[axis][upper ? there : own];
        work->beside[e / SIDES][side] = found;
    }
    if (t < SK_CUDA_BOTTOM)
        work->diagonal[t] = 1.0; /* beyond the unknowns too, where no pivot is larger than a small part of it */
    __syncthreads();
    if (t < unknowns) {
        double sum = level->excess[work->cells[t]];
        for (int side = 0; side < SIDES; side++) {
            const double face = work->faces[t][side];
            sum += face;
            if (face > 0.0 && work->beside[t][side] >= 0)
                work->a[0][t][work->beside[t][side]] -= face;
        }
        work->a[0][t][t] = work->diagonal[t] = sum;
    }
    __syncthreads();
}

/* 1 / x but for the last bits: two steps of Newton's method, a third of the time of a division. */
SK_DEVICE double find_reciprocal(double x)
{
#ifdef SK_CUDA_EMULATED
    return 1.0 / x;
#else
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    for (int n = 0; n < 2; n++)
        r = fma(fma(-x, r, 1.0), r, r);
    return r;
#endif
}

/* Inverts the rows and columns k to k + PIVOTS - 1 alone, by Gauss-Jordan. Without an excess the matrix is singular; a
 * small pivot then counts as infinite. By each thread. */
SK_DEVICE void invert_pivots(const double (*a)[SK_CUDA_BOTTOM], const double *diagonal, int k, double p[PIVOTS][PIVOTS])
{
    for (int i = 0; i < PIVOTS; i++)
        for (int j = 0; j < PIVOTS; j++)
            p[i][j] = a[k + i][k + j];
#pragma unroll
    for (int n = 0; n < PIVOTS; n++) {
        const double pivot = p[n][n] > 1e-10 * diagonal[k + n] ? find_reciprocal(p[n][n]) : 0.0;
        p[n][n] = 1.0;
        for (int j = 0; j < PIVOTS; j++)
            p[n][j] *= pivot;
        for (int i = 0; i < PIVOTS; i++) {
            const double factor = p[i][n];
            for (int j = 0; i != n && j < PIVOTS; j++)
                p[i][j] = fma(-factor, p[n][j], j == n ? 0.0 : p[i][j]);
        }
    }
}

/* Gauss-Jordan with several pivots at a time. Steps take turns between two copies, so that one barrier a step suffices.
 * A thread has a column and some of the rows. Returns the copy with the inverse. */
SK_DEVICE int invert_bottom(int unknowns, bottom_work *work)
{
    const int t = (int)threadIdx.x, teams = (int)blockDim.x / SK_CUDA_BOTTOM, column = t % SK_CUDA_BOTTOM,
              team = t / SK_CUDA_BOTTOM;
    int copy = 0;
    for (int k = 0; k < unknowns; k += PIVOTS, copy ^= 1) {
        const double(*from)[SK_CUDA_BOTTOM] = work->a[copy];
        const bool is_pivot = column >= k && column < k + PIVOTS;
        double p[PIVOTS][PIVOTS], row[PIVOTS];
        invert_pivots(from, work->diagonal, k, p);
        for (int i = 0; i < PIVOTS; i++) {
            row[i] = 0.0;
            for (int j = 0; j < PIVOTS; j++)
                row[i] = fma(p[i][j], is_pivot ? (double)(column == k + j) : from[k + j][column], row[i]);
        }
        for (int i = team < teams ? team : SK_CUDA_BOTTOM; i < unknowns; i += teams) {
            double value = is_pivot ? 0.0 : from[i][column];
            for (int j = 0; j < PIVOTS; j++)
                value = fma(-from[i][k + j], row[j], value);
            for (int j = 0; j < PIVOTS; j++)
                value = i == k + j ? row[j] : value;
            work->a[copy ^ 1][i][column] = value;
        }
        __syncthreads();
    }
    return copy;
}

/* The coarsest level: its unknowns, and the inverse of their matrix by Gauss-Jordan. One thread block. */
SK_DEVICE void prepare_bottom(sk_cuda_solver *solver)
{
    __shared__ bottom_work work;
    const sk_cuda_level *level = &solver->level[solver->state.bottom];
    const int unknowns = list_bottom(solver, level, &work);
    fill_bottom(level, unknowns, &work);
    const double(*result)[SK_CUDA_BOTTOM] = work.a[invert_bottom(unknowns, &work)];
    for (int e = (int)threadIdx.x; e < SK_CUDA_BOTTOM * SK_CUDA_BOTTOM; e += (int)blockDim.x) {
        const int i = e / SK_CUDA_BOTTOM, j = e % SK_CUDA_BOTTOM;
        solver->bottom_inverse[i][j] =
            i < unknowns && j < unknowns ? (float)(0.5 * (result[i][j] + result[j][i])) : 0.0f;
    }
    if (threadIdx.x == 0)
        solver->bottom_unknowns = unknowns;
}

#endif

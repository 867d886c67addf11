/* Parts that the files of the GPU solver share. Private to src/cuda; for files compiled per dimension. */
#ifndef SK_CUDA_POISSON_PARTS_H
#define SK_CUDA_POISSON_PARTS_H

#include "cuda/device.h"
#include "linalg/linalg_kernels.h"

enum { CELLS = SK_BLOCK_CELLS, N = SK_BLOCK_N, PAIRS = CELLS / 2, SIDES = 2 * SELKIE_DIM, LAYER = CELLS / N };

#ifdef SK_CUDA_EMULATED
enum { LAUNCH_BLOCKS = 2, TEAMS = 2 };
#else
/* Thread blocks of a wide launch, and teams of PAIRS threads in the thread block of the tail. */
enum { LAUNCH_BLOCKS = 132 * 8, TEAMS = 4 };
#endif

SK_DEVICE int cell_index(int i, int j, int k)
{
    return i + N * (j + N * k);
}

/* Loads that the compiler leaves where they are: those at the start of a launch must all be under way before one of
 * them is asked for. */
#ifdef SK_CUDA_EMULATED
#define SK_CUDA_LOAD(value, from) ((value) = *(from))
#define SK_CUDA_LOAD_TWO(value, from) memcpy(&(value), (from), sizeof(float2))
#define SK_CUDA_LOAD_RECORD(value, from) memcpy(&(value), (from), sizeof(int4))
#else
#define SK_CUDA_LOAD(value, from) asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from))
#define SK_CUDA_LOAD_TWO(value, from)                                                                                  \
    asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"((value).x), "=f"((value).y) : "l"(from))
#define SK_CUDA_LOAD_RECORD(value, from)                                                                               \
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"                                                            \
                 : "=r"((value).x), "=r"((value).y), "=r"((value).z), "=r"((value).w)                                  \
                 : "l"(from))
#endif

/* The records of a solve's course, each by one load. */
template <typename Record> SK_DEVICE Record load_record(const Record *from)
{
    int4 all;
    Record record;
    SK_CUDA_LOAD_RECORD(all, from);
    memcpy(&record, &all, sizeof record);
    return record;
}

SK_DEVICE int blocks_of(const sk_cuda_solver *solver, int depth)
{
    return solver->count[depth][0] + solver->count[depth][1];
}

/* An entry of a list is a block and the form of its rows in the bits above. In an OPEN block each face is open or
 * closed as a whole, so that a bit a side tells its rows, with an excess or without any; other rows are numbers. */
enum block_form { ANY_ROWS, OPEN_ROWS, OPEN_ROWS_WITH_EXCESS };
enum { FORM_SHIFT = 29, BLOCK_OF_ENTRY = (1 << FORM_SHIFT) - 1 };
enum { IS_UNKNOWN = 1 << SIDES }; /* of sk_cuda_level.open, above the bits of the sides */

/* Entry n of a colour of a level, and its block. */
SK_DEVICE int entry_of_colour(const sk_cuda_level *level, int colour, int n)
{
    return level->list[colour ? level->capacity - 1 - n : n];
}
SK_DEVICE int block_of_colour(const sk_cuda_level *level, int colour, int n)
{
    return entry_of_colour(level, colour, n) & BLOCK_OF_ENTRY;
}

/* Entry n of a level, of both colours, and its block. */
SK_DEVICE int entry_of_level(const sk_cuda_solver *solver, int depth, int n)
{
    const int first = solver->count[depth][0];
    return n < first ? entry_of_colour(&solver->level[depth], 0, n)
                     : entry_of_colour(&solver->level[depth], 1, n - first);
}
SK_DEVICE int block_of_level(const sk_cuda_solver *solver, int depth, int n)
{
    return entry_of_level(solver, depth, n) & BLOCK_OF_ENTRY;
}

/* Sums and the largest of the blocks of the grid, by the threads of a thread block. */
SK_DEVICE double add_up(const double *partial, int count)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int i = (int)threadIdx.x; i < count; i += 4 * (int)blockDim.x)
        for (int n = 0; n < 4; n++) /* four loads at a time */
            sum[n] += i + n * (int)blockDim.x < count ? partial[i + n * (int)blockDim.x] : 0.0;
    return sk_cuda_sum(sum[0] + sum[1] + sum[2] + sum[3]);
}

SK_DEVICE double find_largest(const double *partial, int count)
{
    double largest[4] = {0.0, 0.0, 0.0, 0.0};
    for (int i = (int)threadIdx.x; i < count; i += 4 * (int)blockDim.x)
        for (int n = 0; n < 4; n++)
            largest[n] = sk_cuda_largest_of(i + n * (int)blockDim.x < count ? partial[i + n * (int)blockDim.x] : 0.0,
                                            largest[n]);
    return sk_cuda_largest(
        sk_cuda_largest_of(sk_cuda_largest_of(largest[0], largest[1]), sk_cuda_largest_of(largest[2], largest[3])));
}

/* The residual from norms of blocks. */
SK_DEVICE double residual_of(const sk_cuda_solver *solver, const double *partial, int count)
{
    return solver->norm == SELKIE_NORM_MAX ? find_largest(partial, count) / (double)solver->scale
                                           : sqrt(add_up(partial, count)) / solver->norm_b;
}

/* Two sums over the threads of a block at once, or a sum and the largest of the second values. */
SK_DEVICE double gather_second(double a, double b, int largest)
{
    return largest ? sk_cuda_largest_of(a, b) : a + b;
}
SK_DEVICE void sum_two_of_warp(double value[2], int largest)
{
    for (int n = 16; n > 0; n /= 2) {
        const double first = __shfl_xor_sync(~0u, value[0], n), second = __shfl_xor_sync(~0u, value[1], n);
        value[0] += first;
        value[1] = gather_second(value[1], second, largest);
    }
}
SK_DEVICE void sum_two(double value[2], int largest)
{
    __shared__ double part[2][32];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = ((int)blockDim.x + 31) / 32;
    sum_two_of_warp(value, largest);
    __syncthreads();
    if (lane == 0) {
        part[0][warp] = value[0];
        part[1][warp] = value[1];
    }
    __syncthreads();
    value[0] = part[0][0];
    value[1] = part[1][0];
    for (int n = 1; n < warps; n++) {
        value[0] += part[0][n];
        value[1] = gather_second(value[1], part[1][n], largest);
    }
}

/* Two sums over a thread block of PAIRS threads, for its first thread alone: a warp adds up what all leave in shared
 * memory. That room may be used again after the next barrier. */
SK_DEVICE void sum_two_for_first(double value[2], double room[2][PAIRS])
{
#ifdef SK_CUDA_EMULATED
    (void)room;
    sum_two(value, 0);
#else
    const int t = (int)threadIdx.x;
    for (int n = 0; n < 2; n++)
        room[n][t] = value[n];
    __syncthreads();
    if (t >= 32)
        return;
    for (int n = 0; n < 2; n++) {
        value[n] = room[n][t];
        for (int i = t + 32; i < PAIRS; i += 32)
            value[n] += room[n][i];
    }
    sum_two_of_warp(value, 0);
#endif
}

/* The same over the blocks of the grid. All loads are under way before one of them is used. */
SK_DEVICE void add_up_two(double *const partial[2], int count, int largest, double value[2])
{
    double first[4] = {0.0, 0.0, 0.0, 0.0}, second[4] = {0.0, 0.0, 0.0, 0.0};
    for (int i = (int)threadIdx.x; i < count; i += 4 * (int)blockDim.x)
        for (int n = 0; n < 4; n++) {
            const int at = i + n * (int)blockDim.x;
            first[n] += at < count ? partial[0][at] : 0.0;
            second[n] = gather_second(second[n], at < count ? partial[1][at] : 0.0, largest);
        }
    value[0] = first[0] + first[1] + first[2] + first[3];
    value[1] = gather_second(gather_second(second[0], second[1], largest), gather_second(second[2], second[3], largest),
                             largest);
    sum_two(value, largest);
}

/* The norm of a block in the requested kind, from a thread's two values. */
SK_DEVICE double norm_of(int norm, float first, float second)
{
    const double a = fabs((double)first), b = fabs((double)second);
    return norm == SELKIE_NORM_MAX ? sk_cuda_largest(sk_cuda_largest_of(a, b)) : sk_cuda_sum(a * a + b * b);
}

/* The scaled right side of a cell, from its value and that of the inverse of its diagonal. */
SK_DEVICE float scaled_right_side(const sk_cuda_solver *solver, float inverse, float value)
{
    return inverse > 0.0f ? solver->scale * value - (float)solver->mean : 0.0f;
}
SK_DEVICE float right_side(const sk_step *step, const sk_cuda_solver *solver, size_t at)
{
    return scaled_right_side(solver, solver->level[0].inverse[at], step->grid.fields[SK_FIELD_RIGHT_SIDE][at]);
}

/* The bound of an unknown of a level. */
SK_DEVICE float bound_at(const sk_cuda_solver *solver, int depth, size_t at)
{
    return solver->lowered ? solver->level[depth].lower[at] : 0.0f;
}

/* The next direction, p = z + beta p, and the step along it from r z and z A z of a cycle's result z. Its curvature
 * p A p follows from that of the last one, to which it is orthogonal (Chronopoulos and Gear 1989, s-step iterative
 * methods for symmetric linear systems). By one thread. */
SK_DEVICE void choose_step(sk_cuda_solver *solver, sk_cuda_solve_memory last, double rz, double own, double mean_z)
{
    sk_cuda_solve_turn turn = {0.0f, 0.0f, (float)mean_z, 1};
    if (rz > 0.0 && rz < INFINITY) {
        double beta = last.rz == 0.0 ? 0.0 : rz / last.rz, curvature = own - beta * beta * last.curvature;
        if (!(curvature > 0.0)) { /* lost in round-off: along the gradient */
            beta = 0.0;
            curvature = own;
        }
        if (curvature > 0.0) {
            turn.beta = (float)beta;
            turn.alpha = (float)(rz / curvature);
            turn.skip = 0;
            solver->memory.rz = rz;
            solver->memory.curvature = curvature;
        } else {
            solver->state.check = solver->broken = 1;
        }
    } else if (!solver->careful && rz == rz && rz > -INFINITY && !(rz > 0.0)) {
        /* The cycle is not positive definite here: cycles without second visits are. */
        solver->careful = 1;
        solver->memory.rz = 0.0;
        solver->state.twice = 0;
    } else {
        solver->state.check = solver->broken = 1;
    }
    solver->turn = turn;
}

/* Before a solve: nothing is listed. By one thread. */
SK_DEVICE void begin_solve(const sk_step *step, sk_cuda_solver *solver)
{
    solver->block_count = step->grid.block_count;
    solver->surface_cells = 0;
    solver->bounded = solver->lowered = solver->idle = 0;
    for (int depth = 0; depth < solver->level_count; depth++)
        solver->count[depth][0] = solver->count[depth][1] = solver->unknowns[depth] = solver->numbers[depth] = 0;
}

/* The places of coarse levels have no blocks yet. By all threads of the launch before the setup. */
SK_DEVICE void clear_maps(sk_cuda_solver *solver)
{
    for (int depth = 1; depth < solver->level_count; depth++)
        SK_CUDA_EACH(i, solver->level[depth].places)
    solver->level[depth].map[i] = 0;
}

static inline int has_joined_sides(const sk_cuda *cuda)
{
    int joined = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        joined |= cuda->solver_shadow.level[0].joined[d];
    return joined != 0;
}

/* The first level with at most so many places, or the last one: one thread block runs the levels from it on. */
static inline int tail_of(const sk_cuda *cuda, int places)
{
    int depth = 1;
    while (depth < cuda->solver_shadow.level_count - 1 && cuda->solver_shadow.level[depth].places > places)
        depth++;
    return depth;
}

/* Thread blocks of a launch over the blocks of a colour of a level, or of all of level 0. */
static inline int launch_width(const sk_cuda *cuda, int depth)
{
    const int places = depth ? cuda->solver_shadow.level[depth].places : cuda->expected_blocks;
    return places / 2 + 1 > LAUNCH_BLOCKS ? LAUNCH_BLOCKS : places / 2 + 1;
}
static inline int full_width(const sk_cuda *cuda)
{
    return cuda->expected_blocks > LAUNCH_BLOCKS ? LAUNCH_BLOCKS : cuda->expected_blocks;
}

#endif

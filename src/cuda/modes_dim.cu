/* Rigid bodies in the GPU form of the Poisson solver: A' = A + sum of W R W^T, and the deflated space Z.
 *
 * The scheme is that of linalg/poisson_modes_dim.c. A thread block adds up the entries of a mover, in a fixed order. A
 * thread a cell adds what the modes of all movers give to the cell: the entries of a cell are linked in a circle. One
 * thread block solves for the modes, with the inverse of E that the host has computed. */
#include "cuda/bodies_parts.h"
#include "cuda/poisson_parts.h"

enum { RANK = 3 };

/* --- Sums over a mover, and what they give to cells --- */

typedef struct mode_sums {
    double mode[RANK];
} mode_sums;

SK_DEVICE void add_entry(mode_sums *sums, float x, float4 value)
{
    sums->mode[0] += (double)x * (double)value.x;
    sums->mode[1] += (double)x * (double)value.y;
    sums->mode[2] += (double)x * (double)value.z;
}

/* The sums of all threads of a thread block, into the rows of a mover. */
SK_DEVICE void store_sums(mode_sums sums, int mover, double *rows)
{
    for (int k = 0; k < RANK; k++) {
        const double sum = sk_cuda_sum(sums.mode[k]);
        if (threadIdx.x == 0)
            rows[mover * RANK + k] = sum;
    }
}

/* The motion of a mover under a sum of impulses. By one thread. */
SK_DEVICE void respond(const sk_cuda_modes *modes, int mover, const double *sums)
{
    const double *response = modes->response + 9 * mover;
    double moved[RANK];
    for (int i = 0; i < RANK; i++) {
        moved[i] = 0.0;
        for (int j = 0; j < RANK; j++)
            moved[i] += response[RANK * i + j] * sums[j];
        modes->moved[mover * RANK + i] = moved[i];
    }
    const float4 rounded = {(float)moved[0], (float)moved[1], (float)moved[2], 0.0f};
    modes->of_flux[mover] = rounded;
}

/* x += factor times the list times the velocities of the modes. */
SK_DEVICE void spread_list(const sk_cuda_mode_list *list, const float4 *values, const float4 *velocity, float factor,
                           float *x)
{
    SK_CUDA_EACH(e, list->count)
    {
        const uint32_t next = list->next[e];
        if (!(next & SK_MODES_VIEW_FIRST))
            continue;
        float sum = 0.0f;
        uint32_t n = (uint32_t)e;
        do {
            const float4 value = values[n], by = velocity[list->mover[n]];
            sum += value.x * by.x + value.y * by.y + value.z * by.z;
            n = list->next[n] & ~SK_MODES_VIEW_FIRST;
        } while (n != (uint32_t)e);
        x[list->at[e]] += factor * sum;
    }
}

/* In a closed component W R W^T x leaves the balanced space: its mean over the unknowns. */
SK_DEVICE float mean_of_flux(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    double sum = 0.0;
    if (solver->surface_cells || !solver->unknowns[0])
        return 0.0f;
    for (int i = 0; i < modes->mover_count * RANK; i++)
        sum += modes->column[i] * modes->moved[i];
    return (float)(sum / (double)solver->unknowns[0]);
}

SK_DEVICE void subtract_mean(const sk_cuda_solver *solver, float mean, float *x)
{
    if (mean == 0.0f)
        return;
    const float *inverse = solver->level[0].inverse;
    SK_CUDA_EACH(i, (size_t)(solver->block_count - 1) * CELLS)
    {
        const size_t at = i + CELLS;
        if (solver->active[at / CELLS] && inverse[at] > 0.0f)
            x[at] -= mean;
    }
}

/* rows = matrix^T from: a thread a row. By one thread block. */
SK_DEVICE void multiply_rows(const double *matrix, const double *from, int count, double *rows, int transposed)
{
    for (int j = (int)threadIdx.x; j < count; j += (int)blockDim.x) {
        double sum = 0.0;
        for (int i = 0; i < count; i++)
            sum += (transposed ? matrix[(size_t)j * count + i] : matrix[(size_t)i * count + j]) * from[i];
        rows[j] = sum;
    }
    __syncthreads();
}

/* Velocities of the modes of Z in single precision. By one thread block. */
SK_DEVICE void round_rows(const sk_cuda_modes *modes, const double *rows)
{
    for (int m = (int)threadIdx.x; m < modes->mover_count; m += (int)blockDim.x) {
        const float4 rounded = {(float)rows[RANK * m], (float)rows[RANK * m + 1], (float)rows[RANK * m + 2], 0.0f};
        modes->of_space[m] = rounded;
    }
}

/* --- The start --- */

SK_DEVICE int starts(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    return solver->norm_b > 0.0 && !solver->idle && !solver->broken && modes->mover_count > 0;
}

/* Z^T r */
static __global__ void gather_start(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!starts(solver, modes))
        return;
    const float *r = solver->level[0].b;
    const sk_cuda_mode_list *space = &modes->space;
    for (int m = (int)blockIdx.x; m < modes->mover_count; m += (int)gridDim.x) {
        mode_sums sums = {{0.0, 0.0, 0.0}};
        for (uint32_t e = space->first[m] + threadIdx.x; e < space->first[m + 1]; e += blockDim.x)
            add_entry(&sums, r[space->at[e]], space->value[e]);
        store_sums(sums, m, modes->wanted);
    }
}

/* The modes of Z, and the motion of the movers under Z times them. */
static __global__ void __launch_bounds__(PAIRS) solve_start(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!starts(solver, modes))
        return;
    const int rows = modes->mover_count * RANK;
    multiply_rows(modes->inverse, modes->wanted, rows, modes->right, 0);
    round_rows(modes, modes->right);
    multiply_rows(modes->coupling, modes->right, rows, modes->sums, 1);
    for (int m = (int)threadIdx.x; m < modes->mover_count; m += (int)blockDim.x)
        respond(modes, m, modes->sums + RANK * m);
}

/* x += Z, r -= A Z of the modes. */
static __global__ void spread_start(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!starts(solver, modes))
        return;
    spread_list(&modes->space, modes->space.value, modes->of_space, 1.0f, solver->high);
    spread_list(&modes->space, modes->image, modes->of_space, -1.0f, solver->level[0].b);
}

/* r -= W R W^T Z of the modes. */
static __global__ void spread_start_flux(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (starts(solver, modes))
        spread_list(&modes->flux, modes->flux.value, modes->of_flux, -1.0f, solver->level[0].b);
}

static __global__ void balance_start(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (starts(solver, modes))
        subtract_mean(solver, -mean_of_flux(solver, modes), solver->level[0].b);
}

/* The norm of r: start_solution of linalg/poisson_dim.c. */
static __global__ void __launch_bounds__(PAIRS) judge_start(sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!starts(solver, modes))
        return;
    const float *r = solver->level[0].b;
    const int blocks = blocks_of(solver, 0);
    for (int n = (int)blockIdx.x; n < blocks; n += (int)gridDim.x) {
        const int block = block_of_level(solver, 0, n);
        const size_t at = (size_t)block * CELLS + 2 * threadIdx.x;
        const double norm = norm_of(solver->norm, r[at], r[at + 1]);
        if (threadIdx.x == 0)
            solver->partial[1][block] = norm;
    }
    if (!sk_cuda_is_last(&solver->ticket))
        return;
    const double residual = residual_of(solver, solver->partial[1], solver->block_count);
    if (threadIdx.x == 0) {
        /* The rounding error of the start: some units of single precision. */
        solver->drifted = 1e-6 / (solver->norm == SELKIE_NORM_MAX ? (double)solver->scale : 1.0);
        solver->residual = solver->computed = residual;
        solver->converged = residual + solver->drifted <= solver->tolerance;
        solver->state.done = solver->converged || !(residual < INFINITY);
    }
}

/* --- After a cycle --- */

/* Z^T r and (A Z)^T z, and the motion of the movers under z. */
static __global__ void gather_cycle(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (solver->state.done)
        return;
    const float *r = solver->level[0].b, *z = solver->level[0].x, mean = solver->turn.mean_z;
    const sk_cuda_mode_list *space = &modes->space, *flux = &modes->flux;
    for (int m = (int)blockIdx.x; m < modes->mover_count; m += (int)gridDim.x) {
        mode_sums own = {{0.0, 0.0, 0.0}}, image = own, sums = own;
        for (uint32_t e = space->first[m] + threadIdx.x; e < space->first[m + 1]; e += blockDim.x) {
            const uint32_t at = space->at[e];
            add_entry(&own, r[at], space->value[e]);
            add_entry(&image, z[at] - mean, modes->image[e]);
        }
        for (uint32_t e = flux->first[m] + threadIdx.x; e < flux->first[m + 1]; e += blockDim.x)
            add_entry(&sums, z[flux->at[e]] - mean, flux->value[e]);
        store_sums(own, m, modes->start);
        store_sums(image, m, modes->wanted);
        store_sums(sums, m, modes->sums);
        if (threadIdx.x == 0)
            respond(modes, m, modes->sums + RANK * m);
    }
}

/* The modes of Z that are added to z. One thread block. */
static __global__ void __launch_bounds__(PAIRS) solve_cycle(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (solver->state.done)
        return;
    const int rows = modes->mover_count * RANK;
    multiply_rows(modes->coupling, modes->moved, rows, modes->right, 0);
    for (int i = (int)threadIdx.x; i < rows; i += (int)blockDim.x)
        modes->wanted[i] = modes->start[i] - modes->wanted[i] - modes->right[i];
    __syncthreads();
    multiply_rows(modes->inverse, modes->wanted, rows, modes->right, 0);
    round_rows(modes, modes->right);
}

static __global__ void spread_cycle(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!solver->state.done)
        spread_list(&modes->space, modes->space.value, modes->of_space, 1.0f, solver->level[0].x);
}

/* --- After a product --- */

/* The motion of the movers under z, and the step. */
static __global__ void __launch_bounds__(PAIRS) gather_product(sk_cuda_solver *solver, sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (solver->state.done)
        return;
    const float *z = solver->level[0].x, mean = solver->turn.mean_z;
    const sk_cuda_mode_list *flux = &modes->flux;
    for (int m = (int)blockIdx.x; m < modes->mover_count; m += (int)gridDim.x) {
        mode_sums sums = {{0.0, 0.0, 0.0}};
        for (uint32_t e = flux->first[m] + threadIdx.x; e < flux->first[m + 1]; e += blockDim.x)
            add_entry(&sums, z[flux->at[e]] - mean, flux->value[e]);
        store_sums(sums, m, modes->sums);
        if (threadIdx.x == 0)
            respond(modes, m, modes->sums + RANK * m);
    }
    if (!sk_cuda_is_last(&modes->ticket))
        return;
    double energy = 0.0;
    for (int i = (int)threadIdx.x; i < modes->mover_count * RANK; i += (int)blockDim.x)
        energy += modes->sums[i] * modes->moved[i];
    energy = sk_cuda_sum(energy);
    double sums[2];
    add_up_two(solver->partial, solver->block_count, 0, sums);
    if (threadIdx.x == 0)
        choose_step(solver, solver->memory, sums[1], sums[0] + energy, (double)mean);
}

static __global__ void spread_product(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!solver->state.done && !solver->turn.skip)
        spread_list(&modes->flux, modes->flux.value, modes->of_flux, 1.0f, solver->image);
}

static __global__ void balance_product(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!solver->state.done && !solver->turn.skip)
        subtract_mean(solver, mean_of_flux(solver, modes), solver->image);
}

/* --- A fresh residual --- */

/* The motion of the movers under the solution. */
static __global__ void gather_solution(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (solver->state.done || !solver->state.check)
        return;
    const sk_cuda_mode_list *flux = &modes->flux;
    for (int m = (int)blockIdx.x; m < modes->mover_count; m += (int)gridDim.x) {
        mode_sums sums = {{0.0, 0.0, 0.0}};
        for (uint32_t e = flux->first[m] + threadIdx.x; e < flux->first[m + 1]; e += blockDim.x) {
            add_entry(&sums, solver->high[flux->at[e]], flux->value[e]);
            add_entry(&sums, solver->low[flux->at[e]], flux->value[e]);
        }
        store_sums(sums, m, modes->sums);
        if (threadIdx.x == 0)
            respond(modes, m, modes->sums + RANK * m);
    }
}

static __global__ void spread_solution(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!solver->state.done && solver->state.check)
        spread_list(&modes->flux, modes->flux.value, modes->of_flux, -1.0f, solver->level[0].b);
}

static __global__ void balance_solution(const sk_cuda_solver *solver, const sk_cuda_modes *modes)
{
    SK_CUDA_WAIT();
    if (!solver->state.done && solver->state.check)
        subtract_mean(solver, -mean_of_flux(solver, modes), solver->level[0].b);
}

/* --- Launches --- */

/* Thread blocks: of a launch that adds up movers, and of one over entries. */
static int movers_of(const sk_cuda *cuda)
{
    const int movers = cuda->bodies->modes_shadow.body_count * (SELKIE_DIM == 3 ? 2 : 1);
    return movers < 1 ? 1 : movers > SK_CUDA_WIDE ? SK_CUDA_WIDE : movers;
}
enum { ENTRY_BLOCKS = SK_CUDA_WIDE / 4 };

void SK_DIM(sk_cuda_start_modes)(sk_cuda *cuda, const sk_step *host)
{
    const sk_cuda_modes *modes = cuda->bodies->modes;
    (void)host;
    SK_LAUNCH(cuda, gather_start, movers_of(cuda), PAIRS, cuda->solver, modes);
    SK_LAUNCH(cuda, solve_start, 1, PAIRS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, spread_start, ENTRY_BLOCKS, SK_CUDA_THREADS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, spread_start_flux, ENTRY_BLOCKS, SK_CUDA_THREADS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, balance_start, SK_CUDA_WIDE, SK_CUDA_THREADS, cuda->solver, modes);
    SK_LAUNCH(cuda, judge_start, full_width(cuda), PAIRS, cuda->solver, modes);
}

void SK_DIM(sk_cuda_deflate)(sk_cuda *cuda)
{
    const sk_cuda_modes *modes = cuda->bodies->modes;
    SK_LAUNCH(cuda, gather_cycle, movers_of(cuda), PAIRS, cuda->solver, modes);
    SK_LAUNCH(cuda, solve_cycle, 1, PAIRS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, spread_cycle, ENTRY_BLOCKS, SK_CUDA_THREADS, cuda->solver, modes);
}

void SK_DIM(sk_cuda_apply_modes)(sk_cuda *cuda)
{
    sk_cuda_modes *modes = cuda->bodies->modes;
    SK_LAUNCH(cuda, gather_product, movers_of(cuda), PAIRS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, spread_product, ENTRY_BLOCKS, SK_CUDA_THREADS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, balance_product, SK_CUDA_WIDE, SK_CUDA_THREADS, cuda->solver, modes);
}

void SK_DIM(sk_cuda_move_modes)(sk_cuda *cuda)
{
    SK_LAUNCH(cuda, gather_solution, movers_of(cuda), PAIRS, cuda->solver, cuda->bodies->modes);
}

void SK_DIM(sk_cuda_subtract_modes)(sk_cuda *cuda)
{
    const sk_cuda_modes *modes = cuda->bodies->modes;
    SK_LAUNCH_SIMPLE(cuda, spread_solution, ENTRY_BLOCKS, SK_CUDA_THREADS, cuda->solver, modes);
    SK_LAUNCH_SIMPLE(cuda, balance_solution, SK_CUDA_WIDE, SK_CUDA_THREADS, cuda->solver, modes);
}

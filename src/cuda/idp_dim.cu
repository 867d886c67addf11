/* The density projection on the GPU: the plain form of idp/, a thread a cell or a particle. Obstacles are not known
 * here, so nothing pushes and no cell is cut. */
#include "cuda/device.h"

#include "grid/run_masks.h"
#include "grid/extrapolate_plain.h"
#include "methods/idp/idp_plain.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"
#include "cuda/poisson_parts.h"

/* --- density --- */

/* Rows that kernels of particles reach, as runs. */
static __global__ void find_reached(const sk_step *step)
{
    SK_CUDA_WAIT();
    __shared__ unsigned runs[2];
    SK_CUDA_EACH_BLOCK(block, step)
    {
        if (threadIdx.x < 2)
            runs[threadIdx.x] = 0;
        __syncthreads();
        const int first = (int)threadIdx.x * SK_BLOCK_N;
        if (first < SK_BLOCK_CELLS && sk_plain_row_is_reached(&step->grid, block, first))
            atomicOr(&runs[first / 256], ((1u << SK_BLOCK_N / 8) - 1) << first / 8 % 32);
        __syncthreads();
        if (threadIdx.x == 0)
            step->grid.runs[SK_RUNS_REACHED][block] = (uint64_t)runs[0] | (uint64_t)runs[1] << 32;
        __syncthreads();
    }
}

static void launch_density(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH(cuda, find_reached, SK_CUDA_WIDE, SK_BLOCK_CELLS / SK_BLOCK_N < 32 ? 32 : SK_BLOCK_CELLS / SK_BLOCK_N,
              step);
    SK_DIM(sk_cuda_launch_weigh)(cuda, host);
}

selkie_code SK_DIM(sk_cuda_density)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "density", launch_density, error);
}

/* --- overfull cells --- */

SK_DEVICE int64_t sub_cells(int64_t per_axis)
{
    return SELKIE_DIM == 2 ? per_axis * per_axis : per_axis * per_axis * per_axis;
}

/* Redistributes the particles of a cell that no solid cuts. */
SK_DEVICE void spread_cell(const sk_step *step, sk_particle *records, int64_t count, const double corner[3])
{
    int64_t per_axis = 1;
    while (sub_cells(per_axis) < count)
        per_axis++;
    const int64_t room = sub_cells(per_axis);
    const uint64_t seed = step->scene->seed + (uint64_t)step->step_count;
    double mean[3] = {0.0, 0.0, 0.0};
    for (int64_t p = 0; p < count; p++)
        for (int d = 0; d < SELKIE_DIM; d++)
            mean[d] += records[p].velocity[d] / (double)count;
    for (int64_t p = 0; p < count; p++) {
        const int64_t place = sk_idp_sub_cell(p, count, room);
        for (int d = 0; d < SELKIE_DIM; d++) {
            records[p].position[d] =
                sk_idp_spread_to(seed, records[p].id, d, corner[d], step->grid.cell_size, place, per_axis);
            records[p].velocity[d] = (float)mean[d];
        }
    }
}

static __global__ void spread(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    if (!step->scene->idp.redistribute)
        return;
    SK_CUDA_EACH_CELL(cell, step)
    {
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);
        if ((int64_t)(last - first) <= step->particles_per_cell ||
            !((double)total_density(step, cell) > step->scene->idp.density_max) ||
            step->solids.closed[sk_plain_solid_index(&step->solids, cell)])
            continue;
        int at[3];
        double corner[3];
        sk_plain_coordinates(grid, cell, at);
        for (int d = 0; d < 3; d++)
            corner[d] = grid->corner[d] + at[d] * grid->cell_size;
        spread_cell(step, step->particles.records + first, last - first, corner);
        atomicAdd((unsigned long long *)&data->results.redistributed, (unsigned long long)(last - first));
    }
}

/* --- repeated corrections --- */

static __global__ void __launch_bounds__(SK_BLOCK_CELLS) find_needy(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    __shared__ unsigned runs[2];
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        if (threadIdx.x < 2)
            runs[threadIdx.x] = 0;
        __syncthreads();
        if (is_needy(step, cell))
            atomicOr(&runs[cell.local / 256], 1u << cell.local / 8 % 32);
        __syncthreads();
        if (threadIdx.x == 0) {
            step->grid.runs[SK_RUNS_SCRATCH][block] = (uint64_t)runs[0] | (uint64_t)runs[1] << 32;
            if (runs[0] | runs[1])
                data->results.needy = 1;
        }
        __syncthreads();
    }
}

enum { WIDEN_AROUND, WIDEN_ACROSS };
static __global__ void widen(const sk_step *step, int how, int from, int to)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, grid->block_count - 1)
    {
        const int block = (int)i + 1;
        grid->runs[to][block] = how == WIDEN_AROUND
                                    ? sk_runs_around(grid, sk_whole_runs(grid->runs[from], grid->block_count), block)
                                    : sk_runs_across(grid, grid->runs[from], block);
    }
}

static void launch_region(sk_cuda *cuda)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH(cuda, find_needy, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, widen, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, WIDEN_AROUND, SK_RUNS_SCRATCH,
                     SK_RUNS_CHOSEN);
    for (int layer = 1; layer < SK_IDP_REGION_WIDTH; layer++)
        SK_LAUNCH_SIMPLE(cuda, widen, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, WIDEN_ACROSS,
                         layer % 2 ? SK_RUNS_CHOSEN : SK_RUNS_SCRATCH, layer % 2 ? SK_RUNS_SCRATCH : SK_RUNS_CHOSEN);
    SK_LAUNCH_SIMPLE(cuda, widen, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, WIDEN_AROUND, SK_RUNS_CHOSEN, SK_RUNS_MOVED);
}

/* --- the correction --- */

static __global__ void begin_correction(const sk_step *step, sk_cuda_solver *solver, sk_cuda_data *data, int local)
{
    SK_CUDA_WAIT();
    const selkie_idp_def *def = &step->scene->idp;
    /* The tolerance is the largest density error left in any cell. */
    solver->tolerance = def->tolerance > 0.0 ? def->tolerance : step->scene->pressure.tolerance;
    solver->norm = SELKIE_NORM_MAX;
    solver->max_iterations = step->scene->pressure.max_iterations;
    begin_solve(step, solver);
    data->results.unseen = data->results.needy = 0;
    if (!local)
        data->results.redistributed = 0;
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS) build_rows(const sk_step *step, sk_cuda_data *data, int local)
{
    SK_CUDA_WAIT();
    int64_t unseen = 0;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        build_idp_row(step, cell, local, 0, &unseen);
    }
    if (unseen)
        atomicAdd((unsigned long long *)&data->results.unseen, (unsigned long long)unseen);
}

static __global__ void find_displacements(const sk_step *step, int local)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    displace_faces(step, cell, local, 0);
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    fill_displacements(const sk_step *step, sk_cuda_data *data, int local, int back)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t at = sk_plain_index(cell);
        if (local && !step->grid.runs[SK_RUNS_MOVED][block])
            continue;
        if (!is_flagged_near(&step->grid, block, SK_BLOCK_LIQUID) || !is_wanted(step->grid.runs[SK_RUNS_REACHED], cell))
            continue;
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *field = step->grid.fields[SK_FIELD_VELOCITY_X + d];
            const float own = field[at];
            if (own == own)
                continue;
            if (back)
                field[at] = data->scratch[d][at];
            else
                data->scratch[d][at] = filled_value(&step->grid, field, cell);
        }
    }
}

enum { TILE_SIDE = SK_BLOCK_N + 2, TILE = SELKIE_DIM == 3 ? TILE_SIDE * TILE_SIDE * TILE_SIDE : TILE_SIDE * TILE_SIDE };

/* The new position of a particle: sk_plain_displace, with the nodes that have weights. */
SK_DEVICE void displace_particle(const sk_plain_frame *frame, const sk_displacement *by, const float *tile,
                                 const int corner[3], const int at[3], float position[3])
{
    const float x[3] = {position[0], position[1], SELKIE_DIM == 3 ? position[2] : 0.0f};
    float fraction[3] = {0.0f, 0.0f, 0.0f};
    sk_plain_fractions(frame, x, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++) {
        node_span span = span_of(d, fraction);
        const int upper = fraction[d] >= 0.5f;
        int first = d * TILE, pitch = 1;
        span.weights[d][0] = upper ? 0.0f : 1.0f;
        span.weights[d][1] = upper ? 1.0f : 0.0f;
        for (int e = 0; e < SELKIE_DIM; e++) {
            first += (at[e] - corner[e] + 1 + span.first[e] - (e != d)) * pitch;
            pitch *= TILE_SIDE;
        }
        float sum = 0.0f;
        for (int n = 0; n < SK_CORNERS; n++)
            sum += corner_weight(span.weights, n) *
                   tile[first + (n & 1) + TILE_SIDE * ((n >> 1 & 1) + TILE_SIDE * (n >> 2))];
        position[d] = sk_clamp(x[d] + frame->cell_size * sum, by->low[d], by->high[d]);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    displace(const sk_step *step, const sk_cuda_constants *constants, int local)
{
    __shared__ float tile[SELKIE_DIM * TILE];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const int parts = parts_of_blocks(grid), items = grid->particle_blocks * parts;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int block = 1 + item / parts;
        uint32_t begin, end;
        particles_of_part(grid, block, item % parts, parts, &begin, &end);
        if (local && !grid->runs[SK_RUNS_MOVED][block])
            continue;
        const sk_plain_cell whole = {block, 0};
        int corner[3] = {0, 0, 0};
        sk_plain_coordinates(grid, whole, corner);
        __syncthreads();
        for (int n = (int)threadIdx.x; n < TILE; n += (int)blockDim.x) {
            const int offset[3] = {n % TILE_SIDE - 1, n / TILE_SIDE % TILE_SIDE - 1,
                                   SELKIE_DIM == 3 ? n / TILE_SIDE / TILE_SIDE - 1 : 0};
            const size_t from = sk_plain_index(sk_plain_beside(grid, whole, offset));
            for (int d = 0; d < SELKIE_DIM; d++)
                tile[d * TILE + n] = sk_known_or_zero(grid->fields[SK_FIELD_VELOCITY_X + d][from]);
        }
        __syncthreads();
        for (uint32_t p = begin + threadIdx.x; p < end; p += blockDim.x) {
            float4 *record = (float4 *)(void *)&step->particles.records[p];
            float4 half = *record;
            float position[3] = {half.x, half.y, half.z};
            sk_plain_cell cell = {block, 0};
            int at[3] = {0, 0, 0};
            for (int d = 0; d < SELKIE_DIM; d++) {
                /* Spread particles stay in their cell, but rounding may put them on the border of the block. */
                const int found = (int)sk_cell_coordinate(position[d], frame.corner[d], frame.inverse) - corner[d];
                const int inside = found < 0 ? 0 : found < SK_BLOCK_N ? found : SK_BLOCK_N - 1;
                at[d] = corner[d] + inside;
                cell.local |= inside << (d * SK_BLOCK_LOG);
            }
            if (local && !run_has(grid->runs[SK_RUNS_MOVED], cell))
                continue;
            displace_particle(&frame, &constants->displacement, tile, corner, at, position);
            half.x = position[0], half.y = position[1], half.z = position[2];
            *record = half;
        }
    }
}

static __global__ void report_density(const sk_cuda_solver *solver, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    data->results.density.iterations = solver->iteration;
    data->results.density.converged = solver->converged;
    data->results.density.broken = solver->broken;
    data->results.density.unknowns = solver->unknowns[0];
    data->results.density.residual = solver->residual;
}

static void launch_system(sk_cuda *cuda, const sk_step *host, int local)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH_SIMPLE(cuda, begin_correction, 1, 1, step, cuda->solver, cuda->data, local);
    SK_LAUNCH_SIMPLE(cuda, spread, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
    if (local)
        launch_region(cuda);
    SK_LAUNCH_SIMPLE(cuda, build_rows, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data, local);
    SK_DIM(sk_cuda_start_solve)(cuda, host);
}

static void launch_correction(sk_cuda *cuda, const sk_step *host, int local)
{
    const sk_step *step = &cuda->device->step;
    SK_DIM(sk_cuda_end_solve)(cuda, host);
    SK_LAUNCH_SIMPLE(cuda, report_density, 1, 1, cuda->solver, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, find_displacements, SK_CUDA_WIDE, SK_CUDA_THREADS, step, local);
    for (int back = 0; back < 2; back++)
        SK_LAUNCH(cuda, fill_displacements, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data, local, back);
    SK_LAUNCH(cuda, displace, SK_CUDA_WIDE, SK_CUDA_THREADS, step, &cuda->device->constants, local);
}

static void launch_first_system(sk_cuda *cuda, const sk_step *host)
{
    launch_system(cuda, host, 0);
}

static void launch_first(sk_cuda *cuda, const sk_step *host)
{
    launch_correction(cuda, host, 0);
}

static void launch_local_system(sk_cuda *cuda, const sk_step *host)
{
    launch_system(cuda, host, 1);
}

static void launch_local(sk_cuda *cuda, const sk_step *host)
{
    launch_correction(cuda, host, 1);
}

/* Reports a correction, and whether another one follows: as sk_idp_correct_with. */
static selkie_code take_correction(sk_step *step, int again, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    const selkie_idp_def *def = &step->scene->idp;
    SK_TRY(sk_cuda_read_results(step, error));
    step->redistributed = results->redistributed;
    if (again && !results->needy)
        return SELKIE_OK;
    step->density_passes++;
    step->correct_again =
        step->density_passes < def->passes &&
        (double)results->unseen > SK_IDP_HIDDEN_SHARE * 1e3 * (double)results->count / step->particles_per_cell;
    step->density_report.iterations = results->density.iterations;
    step->density_report.converged = results->density.converged;
    step->density_report.residual = results->density.residual;
    step->density_report.unknowns = results->density.unknowns;
    if (results->density.broken || !results->density.converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the density solve stopped at an error of %.3g after %d iterations (asked: %g, "
            "pressure.max_iterations %d); raise one of the two",
            (long long)step->step_count + 1, step->time, step->density_report.residual, step->density_report.iterations,
            def->tolerance > 0.0 ? def->tolerance : step->scene->pressure.tolerance,
            step->scene->pressure.max_iterations);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_correct)(sk_step *step, selkie_error *error)
{
    const int again = step->density_passes > 0;
    if (!again) {
        step->redistributed = step->pushed_out = 0;
        memset(&step->density_report, 0, sizeof step->density_report);
    }
    step->correct_again = 0;
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    SK_TRY(again ? sk_cuda_run(step, "local_system", launch_local_system, error)
                 : sk_cuda_run(step, "density_system", launch_first_system, error));
    SK_TRY(SK_DIM(sk_cuda_iterate)(step, step->cuda->results->density.iterations, error));
    SK_TRY(again ? sk_cuda_run(step, "density_again", launch_local, error)
                 : sk_cuda_run(step, "density_correct", launch_first, error));
    step->cuda->particles_here = 0;
    return take_correction(step, again, error);
}

/* The phases on the grid: classification, forces, pressure, extrapolation. A thread a cell runs
 * the functions of the plain forms. */
#include "cuda/device.h"

#include "grid/run_masks.h"
#include "grid/extrapolate_plain.h"
#include "grid/transfer_plain.h"
#include "methods/classify_plain.h"
#include "methods/flip/balance_plain.h"
#include "methods/flip/constrain_plain.h"
#include "methods/flip/friction_plain.h"
#include "methods/flip/pressure_plain.h"
#include "methods/flip/shore_plain.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/bodies_parts.h"
#include "cuda/grid_parts.h"
#include "cuda/poisson_parts.h"
#include "cuda/solids_parts.h"
#include "grid/barriers_plain.h"

/* --- classification --- */

template <bool WITH_VOLUMES>
static __global__ void __launch_bounds__(SK_BLOCK_CELLS, 2) measure(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_flat_walls walls = flat_walls_of(step);
    sk_cell_volumes volumes = {0.0, 0.0, 0.0, 0, 0};
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        sk_plain_measure_cell(step, &walls, cell, &volumes);
    }
    if (!WITH_VOLUMES)
        return;
    double total[4] = {volumes.kernel, volumes.counted, volumes.surface, (double)volumes.occupied};
    if (sum_over_launch(data, total, nullptr) && threadIdx.x == 0) {
        data->results.kernel_volume = total[0];
        data->results.counted_volume = total[1];
        data->results.surface_volume = total[2];
        data->results.occupied = (int64_t)total[3];
    }
}

/* Kinds with liquid flags, into memory of their own: neighbours are still read. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS) find_kinds(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    __shared__ unsigned runs[2];
    if (threadIdx.x == 0 && blockIdx.x == 0)
        data->results.liquid = 0;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        if (threadIdx.x == 0)
            runs[0] = runs[1] = 0;
        __syncthreads();
        const int kind = sk_plain_kind(step, cell), liquid = (kind & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
        data->kinds[sk_plain_index(cell)] = (uint8_t)kind;
        mark_runs(liquid, runs);
        __syncthreads();
        if (threadIdx.x == 0) {
            step->grid.runs[SK_RUNS_LIQUID][block] = (uint64_t)runs[0] | (uint64_t)runs[1] << 32;
            step->grid.block_flags[block] = runs[0] | runs[1] ? SK_BLOCK_LIQUID : 0;
        }
        __syncthreads();
    }
}

/* Takes these kinds, a thread sixteen cells at a time. */
static __global__ void take_kinds(const sk_step *step, sk_cuda_data *data, int counts)
{
    enum { TOGETHER = sizeof(int4), PARTS = SK_BLOCK_CELLS / TOGETHER };
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    int liquid = 0;
    SK_CUDA_EACH(i, (size_t)(grid->block_count - 1) * PARTS)
    {
        const int block = 1 + (int)(i / PARTS);
        const size_t at = (size_t)SK_BLOCK_CELLS + i * TOGETHER;
        const int4 kinds = *(const int4 *)(const void *)(data->kinds + at);
        *(int4 *)(void *)(grid->kinds + at) = kinds;
        if (i % PARTS == 0)
            grid->runs[SK_RUNS_NEAR][block] =
                sk_runs_around(grid, sk_whole_runs(grid->runs[SK_RUNS_LIQUID], grid->block_count), block);
        const int words[4] = {kinds.x, kinds.y, kinds.z, kinds.w};
        for (int n = 0; counts && n < TOGETHER; n++)
            liquid += (words[n / 4] >> n % 4 * 8 & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
    }
    liquid = counts ? sk_cuda_sum(liquid) : 0;
    if (threadIdx.x == 0 && liquid)
        atomicAdd((unsigned long long *)&data->results.liquid, (unsigned long long)liquid);
}

static void launch_classification(sk_cuda *cuda, int with_volumes)
{
    const sk_step *step = &cuda->device->step;
    if (with_volumes)
        SK_LAUNCH(cuda, measure<true>, SK_CUDA_SUMS, SK_BLOCK_CELLS, step, cuda->data);
    else
        SK_LAUNCH(cuda, measure<false>, SK_CUDA_SUMS, SK_BLOCK_CELLS, step, cuda->data);
    SK_LAUNCH(cuda, find_kinds, one_each(cuda, 1), SK_BLOCK_CELLS, step, cuda->data);
    SK_LAUNCH(cuda, take_kinds, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data, with_volumes);
}

static void launch_classify(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_classification(cuda, 1);
}

static void launch_classify_cells(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    launch_classification(cuda, 0);
}

selkie_code SK_DIM(sk_cuda_classify)(sk_step *step, selkie_error *error)
{
    step->exchanged = step->emitted - step->drained;
    return sk_cuda_run(step, "classify", launch_classify, error);
}

selkie_code SK_DIM(sk_cuda_classify_cells)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "density_classify", launch_classify_cells, error);
}

/* --- forces --- */

/* Gravity, then the force fields of the scene. */
static __global__ void add_forces(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH_CELL(cell, step)
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)], x[3] = {0.0f, 0.0f, 0.0f};
        int at[3];
        if (constants->gain[d] != 0.0f)
            *velocity += constants->gain[d];
        sk_plain_coordinates(grid, cell, at);
        for (int e = 0; e < SELKIE_DIM; e++)
            x[e] = (float)(grid->corner[e] + ((double)at[e] + (e == d ? 0.0 : 0.5)) * grid->cell_size);
        for (int f = 0; f < constants->force_count; f++) {
            float change[3] = {0.0f, 0.0f, 0.0f};
            sk_force_field_add(&constants->forces[f], x, change);
            *velocity += change[d];
        }
    }
}

static void launch_forces(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, add_forces, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants);
}

selkie_code SK_DIM(sk_cuda_forces)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "forces", launch_forces, error);
}

/* --- pressure --- */

static __global__ void __launch_bounds__(SK_BLOCK_CELLS, 2)
    build_rows(const sk_step *step, sk_cuda_data *data, sk_cuda_solver *solver)
{
    SK_CUDA_WAIT();
    double absolute = 0.0, squares = 0.0, sum = 0.0, largest = 0.0, inner = 0.0;
    clear_maps(solver);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        float error;
        if (!has_liquid_row(&step->grid, cell)) {
            clear_row(&step->grid, cell);
        } else if (sk_plain_pressure_row(step, cell, &error)) {
            absolute += fabs((double)error);
            squares += (double)(error * error);
            sum += (double)error;
            largest = fmax(largest, fabs((double)error));
            inner += 1.0;
        }
    }
    double total[4] = {absolute, squares, sum, inner};
    if (sum_over_launch(data, total, &largest) && threadIdx.x == 0) {
        data->results.error_absolute = total[0];
        data->results.error_squares = total[1];
        data->results.error_sum = total[2];
        data->results.error_count = (int64_t)total[3];
        data->results.error_largest = largest;

        /* The maximum norm is a volume change per step; the right side is a flux in m/s. */
        const selkie_pressure_def *def = &step->scene->pressure;
        solver->norm = (int)def->norm;
        solver->tolerance = def->tolerance * (def->norm == SELKIE_NORM_MAX ? step->grid.cell_size / step->dt : 1.0);
        solver->max_iterations = def->max_iterations;
        begin_solve(step, solver);
    }
}

SK_DEVICE void report_pressure(const sk_step *step, const sk_cuda_solver *solver, sk_cuda_data *data)
{
    const double unit = step->scene->pressure.norm == SELKIE_NORM_MAX ? step->grid.cell_size / step->dt : 1.0;
    data->results.pressure.iterations = solver->iteration;
    data->results.pressure.converged = solver->converged;
    data->results.pressure.broken = solver->broken;
    data->results.pressure.unknowns = solver->unknowns[0];
    data->results.pressure.twice = solver->state.twice;
    data->results.pressure.residual = solver->residual / unit;
}

static __global__ void clear_potential(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    {
        step->grid.fields[SK_FIELD_POTENTIAL][i] = 0.0f;
        if (i == 0)
            memset(&data->results.pressure, 0, sizeof data->results.pressure);
    }
}

/* `solver` is NULL without a solve to report. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS, 3)
    project(const sk_step *step, const sk_cuda_solver *solver, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    if (solver && blockIdx.x == 0 && threadIdx.x == 0)
        report_pressure(step, solver, data);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const int known = sk_plain_project_faces(step, cell);
        const int any = __syncthreads_or(known > 0), lacks = __syncthreads_or(known < SELKIE_DIM);
        if (threadIdx.x == 0)
            step->grid.block_flags[block] = sk_plain_known_flags(step->grid.block_flags[block],
                                                                 any ? SELKIE_DIM * SK_BLOCK_CELLS - (lacks != 0) : 0);
    }
}

/* The vents for the next step, into memory of their own: neighbours are still read. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS) find_vents(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const float suction = suction_of_vent(step);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t here = sk_plain_index(cell);
        if (can_vent(step, block)) {
            const int may = may_have_vents(step->grid.fields[SK_FIELD_POTENTIAL][here], vents_of(step, cell), suction);
            data->kinds[here] = (uint8_t)(may ? vents_after(step, cell, suction) : 0);
        }
    }
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS) take_vents(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        if (can_vent(step, block))
            step->solids.vents[sk_plain_solid_index(&step->solids, cell)] = data->kinds[sk_plain_index(cell)];
    }
}

static void launch_system(sk_cuda *cuda, const sk_step *host)
{
    SK_LAUNCH(cuda, build_rows, SK_CUDA_SUMS, SK_BLOCK_CELLS, &cuda->device->step, cuda->data, cuda->solver);
    SK_DIM(sk_cuda_start_solve)(cuda, host);
}

static void launch_projection(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_DIM(sk_cuda_end_solve)(cuda, host);
    SK_LAUNCH(cuda, project, one_each(cuda, 1), SK_BLOCK_CELLS, step, cuda->solver, cuda->data);
    if (host->solids.obstacle_count > host->solids.moving_count) {
        SK_LAUNCH(cuda, find_vents, one_each(cuda, 1), SK_BLOCK_CELLS, step, cuda->data);
        SK_LAUNCH(cuda, take_vents, one_each(cuda, 1), SK_BLOCK_CELLS, step, cuda->data);
    }
}

static void launch_flight(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, clear_potential, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
    SK_LAUNCH(cuda, project, one_each(cuda, 1), SK_BLOCK_CELLS, step, nullptr, cuda->data);
}

/* A solve whose system has been launched, with the bodies in it, and what follows. */
static selkie_code solve(sk_step *step, const char *name, sk_cuda_launches end, selkie_error *error)
{
    if (step->modes) {
        SK_TRY(SK_DIM(sk_cuda_read_modes)(step, error));
        SK_TRY(sk_cuda_run(step, "start with bodies", SK_DIM(sk_cuda_start_modes), error));
        step->cuda->bodies->in_solve = 1;
    }
    selkie_code code = SK_DIM(sk_cuda_iterate)(step, SK_CUDA_PRESSURE, error);
    if (code == SELKIE_OK)
        code = sk_cuda_run(step, name, end, error);
    if (step->modes)
        step->cuda->bodies->in_solve = 0;
    return code;
}

selkie_code SK_DIM(sk_cuda_pressure)(sk_step *step, selkie_error *error)
{
    if (!sk_step_has_pressure(step))
        return sk_cuda_run(step, "flight", launch_flight, error);
    SK_TRY(sk_cuda_run(step, "pressure_system", launch_system, error));
    return solve(step, "pressure", launch_projection, error);
}

/* --- gravity in balance with pressure while viscosity acts --- */

static __global__ void __launch_bounds__(SK_BLOCK_CELLS) find_balance(const sk_step *step)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        for (int d = 0; d < SELKIE_DIM; d++)
            step->grid.fields[step->balance + d][sk_plain_index(cell)] = balance_at(step, cell, d);
    }
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS) add_balance(const sk_step *step, float sign)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const size_t here = (size_t)block * SK_BLOCK_CELLS + threadIdx.x;
        for (int d = 0; d < SELKIE_DIM; d++)
            step->grid.fields[SK_FIELD_VELOCITY_X + d][here] += sign * step->grid.fields[step->balance + d][here];
    }
}

static void launch_balance(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_DIM(sk_cuda_end_solve)(cuda, host);
    SK_LAUNCH(cuda, find_balance, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step);
    SK_LAUNCH(cuda, add_balance, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, 1.0f);
}

static void launch_release(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, add_balance, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, -1.0f);
}

/* A solve as that of the pressure, which fails where this one does. Both start from 0 and take about as long. */
selkie_code SK_DIM(sk_cuda_balance)(sk_step *step, selkie_error *error)
{
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    SK_TRY(sk_cuda_run(step, "balance_system", launch_system, error));
    SK_TRY(solve(step, "balance", launch_balance, error));
    return SK_DIM(sk_cuda_hold_bodies)(step, 1.0, error);
}

selkie_code SK_DIM(sk_cuda_release)(sk_step *step, selkie_error *error)
{
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    SK_TRY(sk_cuda_run(step, "release", launch_release, error));
    return SK_DIM(sk_cuda_hold_bodies)(step, -1.0, error);
}

/* --- friction --- */

/* Friction on a velocity beside solids: into scratch, then back. */
static __global__ void rub(const sk_step *step, sk_cuda_data *data, int of_end, int back)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    rubbed_field field;
    field.first = of_end ? step->end_velocity : (int)SK_FIELD_VELOCITY_X;
    field.part = of_end ? (float)(1.0 + step->reflection) : 1.0f;
    if (!sk_step_has_pressure(step))
        return;
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t at = sk_plain_index(cell);
        if (!step->solids.block_slot[cell.slot])
            continue;
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *velocity = &grid->fields[field.first + d][at];
            if (!back) {
                data->scratch[d][at] = rubbed(step, &field, cell, d);
                continue;
            }
            const float now = data->scratch[d][at];
            if (field.first == step->end_velocity && now != *velocity)
                grid->fields[SK_FIELD_CHANGE_X + d][at] += now - *velocity;
            *velocity = now;
        }
    }
}

static void launch_friction(sk_cuda *cuda, const sk_step *host)
{
    for (int n = 0; n < (flip_has_end(host) ? 4 : 2); n++)
        SK_LAUNCH_SIMPLE(cuda, rub, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->data, n / 2, n % 2);
}

selkie_code SK_DIM(sk_cuda_friction)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "wall_friction", launch_friction, error);
}

/* --- extrapolation --- */

/* Faces in the air beside the surface change like the liquid. They are few, and lie in layers: a thread block lists the
 * cells that may have some, then those faces, so that all threads of a warp have one. No face reads what another one
 * writes. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS, 4) move_shore(const sk_step *step, sk_cuda_data *data)
{
    __shared__ uint16_t cells[SK_BLOCK_CELLS], faces[SELKIE_DIM * SK_BLOCK_CELLS];
    __shared__ int cell_count, face_count;
    SK_CUDA_WAIT();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        data->overfull = 0; /* for list_to_fill */
    if (!sk_step_has_pressure(step))
        return;
    const sk_grid *grid = &step->grid;
    const uint64_t *near = grid->runs[SK_RUNS_NEAR];
    SK_CUDA_EACH_BLOCK(block, step)
    {
        int any = near[block] != 0; /* liquid is beside one of the two cells */
        const sk_plain_cell whole = {block, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            any |= near[sk_plain_next(grid, whole, d, -1).slot] != 0;
        if (!any)
            continue;
        const int among_solids = step->solids.block_slot[block] != 0;
        __syncthreads();
        if (threadIdx.x == 0)
            cell_count = face_count = 0;
        __syncthreads();
        for (int c = (int)threadIdx.x; c < SK_BLOCK_CELLS; c += (int)blockDim.x) {
            const sk_plain_cell cell = {block, c};
            int wanted = is_wanted(near, cell);
            for (int d = 0; d < SELKIE_DIM; d++)
                wanted |= is_wanted(near, sk_plain_next(grid, cell, d, -1));
            int may = (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID;
            for (int d = 0; among_solids && d < SELKIE_DIM; d++)
                may |= sk_is_sliver(open_fraction_at(step, cell, d));
            if (wanted && may)
                cells[atomicAdd(&cell_count, 1)] = (uint16_t)c;
        }
        __syncthreads();
        for (int n = (int)threadIdx.x; n < SELKIE_DIM * cell_count; n += (int)blockDim.x) {
            const sk_plain_cell cell = {block, cells[n / SELKIE_DIM]};
            const int d = n % SELKIE_DIM;
            if ((is_wanted(near, cell) || is_wanted(near, sk_plain_next(grid, cell, d, -1))) &&
                follows_shore(step, cell, d))
                faces[atomicAdd(&face_count, 1)] = (uint16_t)(cell.local + SK_BLOCK_CELLS * d);
        }
        __syncthreads();
        for (int n = (int)threadIdx.x; n < face_count; n += (int)blockDim.x) {
            const sk_plain_cell cell = {block, faces[n] % SK_BLOCK_CELLS};
            move_shore_face(step, cell, faces[n] / SK_BLOCK_CELLS);
        }
    }
}

/* Lists the blocks that have unknown faces and known ones near them, in an arbitrary order. The list takes the memory
 * of the sort, which is over. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS) list_to_fill(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->grid.block_count)
    {
        const int block = (int)i, fills = block && has_unknown_near_known(&step->grid, block);
        if (fills)
            data->reach[atomicAdd(&data->overfull, 1u)] = (uint32_t)block;
    }
}

/* Fields of the extrapolation: the velocity, its value at the end of a reflected step, and the change of FLIP. Their
 * addresses are read once; a store to a field would make the compiler read them again. */
typedef struct filled_fields {
    float *field[3 * SELKIE_DIM], *scratch[3 * SELKIE_DIM];
    int groups, with_change;
} filled_fields;

SK_DEVICE filled_fields fields_to_fill(const sk_step *step, const sk_cuda_constants *constants,
                                       const sk_cuda_data *data, int layer)
{
    filled_fields fields;
    fields.groups = flip_has_end(step) ? 2 : 1;
    fields.with_change = constants->options.kind == SK_TRANSFER_FLIP && layer == 0;
#pragma unroll
    for (int n = 0; n < 3 * SELKIE_DIM; n++) {
        const int first = n / SELKIE_DIM == 0   ? (int)SK_FIELD_VELOCITY_X
                          : n / SELKIE_DIM == 1 ? step->end_velocity
                                                : (int)SK_FIELD_CHANGE_X;
        fields.field[n] = step->grid.fields[first + n % SELKIE_DIM];
        fields.scratch[n] = data->scratch[n];
    }
    return fields;
}

/* One layer: the new values of unknown faces of the listed blocks into scratch, then back. Thread blocks do not wait
 * for each other: a thread has a cell. */
template <bool BACK>
static __global__ void __launch_bounds__(SK_CUDA_THREADS, 4)
    fill_layer(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data, int layer)
{
    SK_CUDA_WAIT();
    const filled_fields fields = fields_to_fill(step, constants, data, layer);
    SK_CUDA_EACH(i, (size_t)data->overfull * SK_BLOCK_CELLS)
    {
        const int block = (int)data->reach[i / SK_BLOCK_CELLS];
        const sk_plain_cell cell = {block, (int)(i % SK_BLOCK_CELLS)};
        const size_t at = sk_plain_index(cell);
        const int with_change = fields.with_change && step->solids.block_slot[block];
        int unknown = 0;
#pragma unroll
        for (int n = 0; n < 3 * SELKIE_DIM; n++) {
            const int wanted = n / SELKIE_DIM == 2 ? with_change : n / SELKIE_DIM < fields.groups;
            const float own = wanted ? fields.field[n][at] : 0.0f;
            unknown |= (own != own) << n;
        }
        if (!unknown)
            continue;
        if (BACK) {
            float values[3 * SELKIE_DIM];
#pragma unroll
            for (int n = 0; n < 3 * SELKIE_DIM; n++)
                values[n] = unknown >> n & 1 ? fields.scratch[n][at] : 0.0f;
#pragma unroll
            for (int n = 0; n < 3 * SELKIE_DIM; n++)
                if (unknown >> n & 1)
                    fields.field[n][at] = values[n];
            continue;
        }
        size_t around[2 * SELKIE_DIM];
        places_around(&step->grid, cell, around);
#pragma unroll
        for (int n = 0; n < 3 * SELKIE_DIM; n++)
            if (unknown >> n & 1)
                fields.scratch[n][at] = mean_around(fields.field[n], around);
    }
}

/* The normal of a wall that the samples do not resolve: sk_barriers_normal. */
static __host__ __device__ __noinline__ void normal_of_thin(const sk_solids *solids, const sk_grid *grid, int block,
                                                            int cell, int d, float normal[3])
{
    const sk_plain_cell place = {block, cell};
    nearest_normal(solids, grid, place, d, normal);
}

/* Velocities behind solids other than free-slip walls of the domain, and FLIP's changes there: into scratch, then
 * back. */
template <bool THIN>
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    constrain(const sk_step *step, sk_cuda_data *data, int of_end, int back)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const int first = of_end ? step->end_velocity : (int)SK_FIELD_VELOCITY_X;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const int slot = step->solids.block_slot[block];
        if (!slot || step->solids.plain[slot] || !(grid->block_flags[block] & SK_BLOCK_UNKNOWN) ||
            !is_flagged_near(grid, block, SK_BLOCK_KNOWN))
            continue;
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t at = sk_plain_index(cell);
        const int changes = first == step->end_velocity;
        for (int d = 0; d < SELKIE_DIM; d++) {
            if (back) {
                grid->fields[first + d][at] = data->scratch[d][at];
                if (changes)
                    grid->fields[SK_FIELD_CHANGE_X + d][at] = data->scratch[SELKIE_DIM + d][at];
                continue;
            }
            const sk_constrained_face face = constrain_face(step, first, cell, d, THIN ? normal_of_thin : nullptr);
            data->scratch[d][at] = face.velocity;
            if (changes)
                data->scratch[SELKIE_DIM + d][at] = face.change;
        }
    }
}

/* Are there other surfaces than free-slip walls of the domain? */
static int has_holding_walls(const sk_step *step)
{
    int holds = step->solids.has_grip || step->solids.obstacle_count || step->solids.inlet_count;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        holds |= step->solids.walls[side] == SELKIE_WALL_NO_SLIP;
    return holds;
}

static void launch_extrapolate(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_LAUNCH(cuda, move_shore, SK_CUDA_WIDE * 2, SK_CUDA_THREADS, step, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, list_to_fill, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, cuda->data);
    for (int layer = 0; layer < 2; layer++) {
        SK_LAUNCH_SIMPLE(cuda, fill_layer<false>, SK_CUDA_WIDE * 2, SK_CUDA_THREADS, step, constants, cuda->data,
                         layer);
        SK_LAUNCH_SIMPLE(cuda, fill_layer<true>, SK_CUDA_WIDE * 2, SK_CUDA_THREADS, step, constants, cuda->data, layer);
    }
    const int fields = !has_holding_walls(host) ? 0 : flip_has_end(host) ? 2 : 1;
    for (int n = 0; n < 2 * fields; n++)
        if (cuda->solids.has_thin)
            SK_LAUNCH(cuda, constrain<true>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data, n / 2, n % 2);
        else
            SK_LAUNCH(cuda, constrain<false>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data, n / 2, n % 2);
}

selkie_code SK_DIM(sk_cuda_extrapolate)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "extrapolate", launch_extrapolate, error);
}

/* SPH on the GPU: the functions of its plain form, a thread a particle.
 *
 * The lists of 32 particles, a warp, lie beside each other: row k has their neighbours k, so that a warp reads whole
 * rows. An entry is the neighbour's number and its gradient in half precision, as in the lists of the CPU. Neighbours
 * are counted first; the host then makes room for the rows. The order of the neighbours is that of the plain form, and
 * so are the bits of everything but sums over all particles.
 *
 * The solver's sums decide on the device how the solve goes on (sk_sph_judge): a conditional node repeats its kernels.
 */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
#include "defs/materials.h"
}
#include "cuda/grid_parts.h"
#include "cuda/solids_parts.h"
#include "cuda/sort_parts.h"
#include "methods/sph/sph_list_kernels.h"

#ifndef SK_CUDA_EMULATED
#include <cuda_fp16.h>
#endif

/* --- Lists --- */

enum { GROUP = 32 };

typedef struct plain_list {
    uint32_t *index, *flat; /* of the first entry */
    uint16_t *deep;
    uint32_t count;
} plain_list;

SK_DEVICE plain_list list_of_particle(const sk_cuda_sph *lists, const sk_sph *sph, size_t i)
{
    const size_t at = (size_t)lists->row[i / GROUP] * GROUP + i % GROUP;
    const plain_list list = {lists->index + at, lists->flat + at, SELKIE_DIM == 3 ? lists->deep + at : nullptr,
                             sph->number[i]};
    return list;
}

SK_KERNEL float float_of_half(uint16_t half)
{
#ifdef SK_CUDA_EMULATED
    return sk_sph_float_from_half(half);
#else
    return __half2float(__ushort_as_half(half)); /* exact, as sk_sph_float_from_half is */
#endif
}

SK_KERNEL uint32_t neighbour_at(const plain_list *list, uint32_t k, float gradient[3])
{
    const size_t at = (size_t)k * GROUP;
    const uint32_t flat = list->flat[at];
    gradient[0] = float_of_half((uint16_t)(flat & 0xffffu));
    gradient[1] = float_of_half((uint16_t)(flat >> 16));
    gradient[2] = SELKIE_DIM == 3 ? float_of_half(list->deep[at]) : 0.0f;
    return list->index[at];
}

SK_KERNEL void set_gradient(const plain_list *list, uint32_t k, float gradient[3])
{
    uint16_t half[3];
    for (int d = 0; d < 3; d++) {
        half[d] = sk_sph_half_from_float(gradient[d]);
        gradient[d] = sk_sph_float_from_half(half[d]);
    }
    list->flat[(size_t)k * GROUP] = (uint32_t)half[0] | (uint32_t)half[1] << 16;
    if (SELKIE_DIM == 3)
        list->deep[(size_t)k * GROUP] = half[2];
}

#include "methods/sph/correction_plain.h"
#include "methods/sph/forces_plain.h"
#include "methods/sph/integrate_plain.h"
#include "methods/sph/lists_plain.h"
#include "methods/sph/pressure_plain.h"
#include "methods/sph/viscosity_plain.h"

SK_DEVICE list_frame frame_of_lists(sk_step *step, const sk_cuda_sph_constants *constants)
{
    list_frame frame;
    frame.step = step;
    frame.sph = step->sph;
    frame.constants = constants->lists;
    frame.points = constants->points;
    return frame;
}

/* What distances across joined sides need. */
SK_DEVICE sk_cell_index index_of_grid(const sk_grid *grid)
{
    sk_cell_index index;
    index.periodic = grid->periodic;
    for (int d = 0; d < 3; d++)
        index.period[d] = grid->period[d];
    return index;
}

/* Calls visit(j, difference, r2) for each neighbour of particle i, in the order of sk_neighbours_within. */
template <typename Visit>
SK_DEVICE void each_neighbour(const sk_step *step, const sk_cuda_data *data, const sk_plain_frame *frame, uint32_t i,
                              float reach2, Visit visit)
{
    const sk_grid *grid = &step->grid;
    const sk_cell_index index = index_of_grid(grid);
    const sk_particle *records = step->particles.records;
    const float4 half = *(const float4 *)(const void *)&records[i];
    const float own[3] = {half.x, half.y, half.z};
    int at[3];
    const sk_plain_cell cell = cell_of_particle(grid, data, frame, own, at);
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        uint32_t first, last;
        sk_plain_particles(grid, sk_plain_beside(grid, cell, offset), &first, &last);
        for (uint32_t j = first; j < last; j++) {
            const float4 there = *(const float4 *)(const void *)&records[j];
            const float other[3] = {there.x, there.y, there.z};
            float difference[3];
            const float r2 = SK_DIM(sk_image_difference)(&index, own, other, difference);
            if (j != i && r2 < reach2)
                visit(j, difference, r2);
        }
    }
}

/* Cells with particles, and the most in one. Cleared by the first kernel of the phase. */
static __global__ void begin_lists(sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    data->results.occupied = 0;
    data->results.sph.fullest = 0;
    step->sph->pressure = (float *)(void *)step->particles.attributes[constants->pressure].data;
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) look_at_cells(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    int occupied = 0;
    SK_CUDA_EACH_CELL(cell, step)
    {
        uint32_t first, last;
        sk_plain_particles(&step->grid, cell, &first, &last);
        occupied += last > first;
        if (last - first > SK_CUDA_SPH_CROWD)
            data->results.sph.fullest = (int)(last - first);
    }
    occupied = sk_cuda_sum(occupied);
    if (threadIdx.x == 0 && occupied)
        atomicAdd((unsigned long long *)&data->results.occupied, (unsigned long long)occupied);
}

/* Counts the neighbours of each particle, and the rows of each group. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    count_neighbours(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    const size_t count = (size_t)step->particles.count, all = (count + GROUP - 1) / GROUP * GROUP;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < all; i += (size_t)gridDim.x * blockDim.x) {
        int number = 0;
        if (i < count) {
            each_neighbour(step, data, &frame, (uint32_t)i, constants->lists.reach2,
                           [&](uint32_t, const float *, float) { number++; });
            step->sph->number[i] = (uint32_t)number;
        }
        for (int n = GROUP / 2; n > 0; n /= 2) {
            const int other = __shfl_xor_sync(~0u, number, n);
            number = other > number ? other : number;
        }
        if (i % GROUP == 0)
            data->sph.row[i / GROUP] = (uint32_t)number;
    }
}

/* The first row of each group. One thread block. */
static __global__ void number_rows(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    enum { SHARE = 16 };
    __shared__ int before;
    const int groups = (int)((step->particles.count + GROUP - 1) / GROUP);
    if (threadIdx.x == 0)
        before = 0;
    __syncthreads();
    for (int first = 0; first < groups; first += SHARE * (int)blockDim.x) {
        const int from = first + SHARE * (int)threadIdx.x;
        int own[SHARE], sum = 0, total;
        for (int n = 0; n < SHARE; n++) {
            own[n] = from + n < groups ? (int)data->sph.row[from + n] : 0;
            sum += own[n];
        }
        int row = before + sk_cuda_scan(sum, &total);
        for (int n = 0; n < SHARE && from + n < groups; n++) {
            data->sph.row[from + n] = (uint32_t)row;
            row += own[n];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0)
        data->results.sph.rows = before;
}

/* The walls near a cell. */
SK_DEVICE void find_walls(const sk_step *step, sk_plain_cell cell, near_walls *walls)
{
    const sk_sph *sph = step->sph;
    walls->side_count = sk_sph_sides_near(sph, &step->grid, cell.slot, sph->sheet.reach, walls->sides);
    walls->range_count = 0;
    if (sph->boundary.count)
        find_points_near_cell(step, cell.slot, cell.local, walls);
}

/* Adds up sums of the lists: the last thread block has those of all. */
SK_DEVICE void report_lists(const sk_step *step, sk_cuda_data *data, const sk_sph_list_sums *sums)
{
    double total[4] = {sums->pairs, sums->compression, sums->volume, sums->boundaries}, most = sums->compression_max;
    if (sum_over_launch(data, total, &most) && threadIdx.x == 0) {
        data->results.sph.pairs = total[0];
        data->results.sph.compression = total[1];
        data->results.sph.boundaries = total[3];
        data->results.sph.compression_max = most;
        data->results.kernel_volume = data->results.counted_volume = data->results.surface_volume =
            total[2] / step->particles_per_cell;
    }
}

/* The lists, and the sums over them. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    write_lists(sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame grid_frame = frame_of_grid(&step->grid);
    const list_frame frame = frame_of_lists(step, constants);
    sk_sph_list_sums sums = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        listed_sums own;
        uint32_t k = 0;
        begin_sums(&own);
        each_neighbour(step, data, &grid_frame, (uint32_t)i, constants->lists.reach2,
                       [&](uint32_t j, const float *difference, float r2) {
                           float gradient[3];
                           add_neighbour(&frame.constants, difference, r2, gradient, &own);
                           list.index[(size_t)k * GROUP] = j;
                           set_gradient(&list, k++, gradient);
                           add_rounded(gradient, &own);
                       });
        own.sums.density *= frame.constants.weight;
        near_walls walls;
        int at[3];
        find_walls(step, cell_of_particle(&step->grid, data, &grid_frame, step->particles.records[i].position, at),
                   &walls);
        finish_particle(&frame, &walls, (uint32_t)i, &own.sums, own.squares, &sums);
        sums.pairs += (double)k;
    }
    report_lists(step, data, &sums);
}

static void launch_counts(sk_cuda *cuda, const sk_step *host)
{
    sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, begin_lists, 1, 1, step, constants, cuda->data);
    SK_LAUNCH(cuda, look_at_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
    SK_LAUNCH(cuda, count_neighbours, SK_CUDA_WIDE * 2, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, number_rows, 1, SK_CUDA_ONE, step, cuda->data);
}

static void launch_lists(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, write_lists, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->sph_constants,
              cuda->data);
}

/* Makes room for as many rows. */
static selkie_code reserve_rows(sk_cuda *cuda, size_t rows, selkie_error *error)
{
    sk_cuda_sph *lists = &cuda->shadow.sph;
    const size_t before = lists->capacity * GROUP, now = (rows + rows / 8 + 64) * GROUP;
    if (rows <= lists->capacity)
        return SELKIE_OK;
    sk_cuda_give(cuda, lists->index, before * sizeof *lists->index);
    sk_cuda_give(cuda, lists->flat, before * sizeof *lists->flat);
    sk_cuda_give(cuda, lists->deep, before * sizeof *lists->deep);
    lists->index = lists->flat = NULL, lists->deep = NULL, lists->capacity = 0;
    SK_TRY(sk_cuda_take(cuda, &lists->index, now * sizeof *lists->index, 0, error));
    SK_TRY(sk_cuda_take(cuda, &lists->flat, now * sizeof *lists->flat, 0, error));
    if (SELKIE_DIM == 3)
        SK_TRY(sk_cuda_take(cuda, &lists->deep, now * sizeof *lists->deep, 0, error));
    lists->capacity = now / GROUP;
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->data->sph, lists, sizeof *lists, cudaMemcpyHostToDevice, cuda->stream),
                "the neighbour lists", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the neighbour lists", error);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_sph_neighbours)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    memset(&step->sph->report, 0, sizeof step->sph->report);
    step->exchanged = step->emitted - step->drained;
    SK_TRY(sk_cuda_run(step, "sph_counts", launch_counts, error));
    SK_TRY(sk_cuda_read_results(step, error));
    if (cuda->results->sph.fullest)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: a cell holds more than %d particles; SPH cannot work with that: the simulation blew "
            "up, or liquids overlap; try a smaller time.step or time.cfl",
            (long long)step->step_count + 1, step->time, SK_CUDA_SPH_CROWD);
    SK_TRY(reserve_rows(cuda, (size_t)cuda->results->sph.rows, error));
    return sk_cuda_run(step, "sph_lists", launch_lists, error);
}

/* --- Forces --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    find_normals(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        normal_of_particle(step->sph, &constants->forces, &list, (uint32_t)i);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    find_forces(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_cell_index index = index_of_grid(&step->grid);
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        forces_on_particle(step, &constants->forces, &index, &list, (uint32_t)i);
    }
}

/* Adds the changes by neighbours, gravity and the force fields of the scene. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    add_forces(const sk_step *step, const sk_cuda_constants *scene, const sk_cuda_sph_constants *constants)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        float extra[3] = {0.0f, 0.0f, 0.0f};
        if (particle.flags & SK_PARTICLE_BOUNDARY)
            continue;
        for (int d = 0; constants->pair_forces && d < SELKIE_DIM; d++)
            particle.velocity[d] += step->sph->variable[d][i];
        if (scene->force_count)
            sk_force_fields_velocity_change(scene->forces, scene->force_count, particle.position, extra);
        for (int d = 0; d < SELKIE_DIM; d++)
            particle.velocity[d] += constants->gain[d] + extra[d];
        store_particle(&step->particles.records[i], particle);
    }
}

static void launch_forces(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants, *here = &cuda->sent->sph_constants;
    (void)host;
    if (here->pair_forces && here->forces.curvature > 0.0f)
        SK_LAUNCH_SIMPLE(cuda, find_normals, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    if (here->pair_forces)
        SK_LAUNCH_SIMPLE(cuda, find_forces, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, add_forces, SK_CUDA_WIDE, SK_CUDA_THREADS, step, &cuda->device->constants, constants);
}

/* --- Viscosity --- */

/* No-slip walls near a particle. */
SK_DEVICE void find_rough_walls(const sk_step *step, const sk_cuda_data *data, const sk_plain_frame *frame,
                                const float position[3], near_walls *walls)
{
    int at[3];
    const sk_plain_cell cell = cell_of_particle(&step->grid, data, frame, position, at);
    find_rough_sides(step, cell.slot, walls);
    walls->range_count = 0;
    if (step->sph->boundary.count)
        find_points_near_cell(step, cell.slot, cell.local, walls);
}

/* Friction of walls after forces, where viscosity is explicit. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    rub(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        near_walls walls;
        if (particle.flags & SK_PARTICLE_BOUNDARY)
            continue;
        find_rough_walls(step, data, &frame, particle.position, &walls);
        slow_particle(&constants->friction, &step->sph->boundary, &walls, &particle);
        store_particle(&step->particles.records[i], particle);
    }
}

static void launch_friction(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, rub, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->sph_constants,
                     cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_friction)(sk_step *step, selkie_error *error)
{
    if (!SK_DIM(sk_sph_is_rough)(step) || sk_sph_viscosity_is_implicit(step))
        return SELKIE_OK;
    return sk_cuda_run(step, "sph_friction", launch_friction, error);
}

/* Sum over all particles in a fixed order: returns 1 to the last thread block, whose threads all get it. */
SK_DEVICE int sum_of_launch(sk_cuda_data *data, double own, double *sum)
{
    double total[1] = {own};
    const int last = sum_over_launch(data, total, nullptr);
    *sum = last ? total[0] : *sum;
    return last;
}

/* Drag and pull of the walls, and the first guess. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    begin_viscosity(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    double sum = 0.0;
    SK_CUDA_EACH(i, step->particles.count)
    {
        const sk_particle particle = load_particle(&step->particles.records[i]);
        near_walls walls;
        float pull[3] = {0.0f, 0.0f, 0.0f}, drag = 0.0f;
        find_rough_walls(step, data, &frame, particle.position, &walls);
        if (!(particle.flags & SK_PARTICLE_BOUNDARY))
            drag = friction_terms(&constants->friction, &step->sph->boundary, &walls, particle.position, pull);
        s.drag[i] = drag;
        for (int d = 0; d < SELKIE_DIM; d++)
            s.residual[d][i] = pull[d];
        sum += begin_viscosity_at(&s, particle.velocity, i);
    }
    double scale;
    if (sum_of_launch(data, sum, &scale) && threadIdx.x == 0) {
        data->sph.viscosity.scale = scale;
        data->sph.viscosity.goal = SK_SPH_VISCOUS_TOLERANCE * SK_SPH_VISCOUS_TOLERANCE * scale;
        data->sph.viscosity.iterations = data->sph.viscosity.done = 0;
    }
}

/* The product with the direction, and the length of the step along it. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    apply_rows(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    const sk_cell_index index = index_of_grid(&step->grid);
    double sum = 0.0;
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        sum += apply_viscosity(step, &s, &index, &list, (uint32_t)i);
    }
    double curvature;
    if (sum_of_launch(data, sum, &curvature) && threadIdx.x == 0) {
        data->sph.viscosity.length = curvature > 0.0 ? data->sph.viscosity.squares / curvature : 0.0;
        data->sph.viscosity.done = !(curvature > 0.0);
    }
}

/* The first residual. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    begin_residual(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data,
                   sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    double sum = 0.0;
    SK_CUDA_EACH(i, step->particles.count)
    {
        float still[3] = {0.0f, 0.0f, 0.0f};
        first_residual_at(&s, (step->particles.records[i].flags & SK_PARTICLE_BOUNDARY) != 0, i);
        sum += advance_viscosity_at(&s, 0.0, still, i);
    }
    double squares;
    if (sum_of_launch(data, sum, &squares) && threadIdx.x == 0) {
        data->sph.viscosity.squares = squares;
        data->sph.viscosity.done = !(squares > data->sph.viscosity.goal);
        SK_CUDA_SET_CONDITION(handle, !data->sph.viscosity.done);
    }
}

/* A step along the direction, and whether another one follows. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    advance_rows(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data,
                 sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    const double length = data->sph.viscosity.length;
    double sum = 0.0;
    if (data->sph.viscosity.done) { /* without a curvature */
        if (blockIdx.x == 0 && threadIdx.x == 0)
            SK_CUDA_SET_CONDITION(handle, 0);
        return;
    }
    SK_CUDA_EACH(i, step->particles.count)
    sum += advance_viscosity_at(&s, length, step->particles.records[i].velocity, i);
    double squares;
    if (sum_of_launch(data, sum, &squares) && threadIdx.x == 0) {
        data->sph.viscosity.share = squares / data->sph.viscosity.squares;
        data->sph.viscosity.squares = squares;
        data->sph.viscosity.iterations++;
        data->sph.viscosity.done =
            !(squares > data->sph.viscosity.goal) || data->sph.viscosity.iterations >= SK_SPH_MOST_VISCOUS_ITERATIONS;
        SK_CUDA_SET_CONDITION(handle, !data->sph.viscosity.done);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    turn_rows(const sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const viscous_arrays s = viscous_arrays_of(step->sph, constants->viscosity);
    const double share = data->sph.viscosity.share;
    if (data->sph.viscosity.done)
        return;
    SK_CUDA_EACH(i, step->particles.count)
    turn_viscosity_at(&s, share, i);
}

static __global__ void end_viscosity(sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const double squares = data->sph.viscosity.squares;
    data->results.sph.viscosity_iterations = data->sph.viscosity.iterations;
    data->results.sph.viscosity_failed = !(squares <= 1e4 * data->sph.viscosity.goal) && squares > 0.0;
}

static void launch_conjugate_step(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    (void)host;
    SK_LAUNCH(cuda, apply_rows, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, advance_rows, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data, cuda->condition);
    SK_LAUNCH_SIMPLE(cuda, turn_rows, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
}

static void launch_viscosity(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    const sk_cuda_condition handle = sk_cuda_new_condition(cuda);
    SK_LAUNCH(cuda, begin_viscosity, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, apply_rows, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, begin_residual, SK_CUDA_SUMS, SK_CUDA_THREADS, step, constants, cuda->data, handle);
    sk_cuda_repeat(cuda, host, launch_conjugate_step, &cuda->data->sph.viscosity.done);
    SK_LAUNCH_SIMPLE(cuda, end_viscosity, 1, 1, cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_forces)(sk_step *step, selkie_error *error)
{
    step->cuda->particles_here = 0;
    SK_TRY(sk_cuda_run(step, "sph_forces", launch_forces, error));
    return sk_sph_viscosity_is_implicit(step) ? sk_cuda_run(step, "sph_viscosity", launch_viscosity, error) : SELKIE_OK;
}

/* --- Corrected gradients --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    correct(sk_step *step, const sk_cuda_sph_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_plain_frame grid_frame = frame_of_grid(&step->grid);
    const list_frame frame = frame_of_lists(step, constants);
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        const corrected_sums sums = correct_list(step->sph, &list, (uint32_t)i);
        near_walls walls;
        walls.range_count = 0;
        if (step->sph->boundary.count) {
            int at[3];
            find_walls(step, cell_of_particle(&step->grid, data, &grid_frame, step->particles.records[i].position, at),
                       &walls);
        }
        finish_correction(&frame, &walls, (uint32_t)i, &sums);
    }
}

static void launch_correct(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, correct, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->sph_constants,
                     cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_correct)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "sph_correct", launch_correct, error);
}

/* --- Pressure --- */

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    prepare(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data->sph.progress = constants->progress;
        data->sph.done = 0;
        data->sph.diverged = 0;
    }
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, step->sph, i);
        prepare_particle(step, &constants->system, &list, (uint32_t)i);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) find_shifts(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_sph *sph = step->sph;
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, sph, i);
        shift_particle(sph, &list, sph->variable[SK_SPH_Y], (uint32_t)i);
    }
}

/* Does the solve go on? By one thread. Without acceleration the new point replaces the old one. */
SK_DEVICE void judge(sk_sph *sph, sk_cuda_data *data, const sk_sph_solve_sums *sums)
{
    const int verdict = sk_sph_judge(&data->sph.progress, sums);
    data->sph.done = verdict != SK_SPH_GOES_ON;
    data->sph.diverged = verdict == SK_SPH_DIVERGES;
    if (verdict == SK_SPH_GOES_ON && !data->sph.progress.accelerated) {
        float *y = sph->variable[SK_SPH_Y];
        sph->variable[SK_SPH_Y] = sph->variable[SK_SPH_NEXT];
        sph->variable[SK_SPH_NEXT] = y;
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    iterate(const sk_step *step, sk_cuda_data *data, sk_cuda_condition handle)
{
    SK_CUDA_WAIT();
    sk_sph *sph = step->sph;
    const sk_sph_iteration iteration = sk_sph_next_iteration(&data->sph.progress);
    sk_sph_solve_sums sums = {0.0, 0.0, 0.0, 0.0};
    SK_CUDA_EACH(i, step->particles.count)
    {
        const plain_list list = list_of_particle(&data->sph, sph, i);
        iterate_particle(sph, &iteration, shift_divergence(sph, &list, (uint32_t)i), (uint32_t)i, &sums);
    }
    double total[4] = {sums.error, sums.uphill, sums.curvature, sums.length};
    if (sum_over_launch(data, total, nullptr) && threadIdx.x == 0) {
        const sk_sph_solve_sums all = {total[0], total[1], total[2], total[3]};
        judge(sph, data, &all);
        SK_CUDA_SET_CONDITION(handle, !data->sph.done);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS) extrapolate(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_sph *sph = step->sph;
    const float momentum = data->sph.progress.momentum;
    if (data->sph.done)
        return;
    SK_CUDA_EACH(i, step->particles.count)
    sk_sph_extrapolate(sph->variable[SK_SPH_NEXT][i], momentum, &sph->variable[SK_SPH_Y][i],
                       &sph->variable[SK_SPH_X][i], &sph->variable[SK_SPH_BEFORE][i]);
}

/* Velocities and pressures. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    end_solve(const sk_step *step, const sk_cuda_sph_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_sph *sph = step->sph;
    SK_CUDA_EACH(i, step->particles.count)
    sph->pressure[i] = sk_sph_end_particle(&constants->ending, sph->shift[i], sph->variable[SK_SPH_Y][i],
                                           sph->density[i], step->particles.records[i].velocity);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data->results.sph.iterations = data->sph.progress.iterations;
        data->results.sph.error = data->sph.progress.error;
        data->results.sph.largest = data->sph.progress.largest;
        data->results.sph.diverged = data->sph.diverged;
    }
}

static void launch_iteration(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, find_shifts, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
    SK_LAUNCH(cuda, iterate, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data, cuda->condition);
    if (cuda->sent->sph_constants.progress.accelerated)
        SK_LAUNCH_SIMPLE(cuda, extrapolate, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
}

static void launch_pressure(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    sk_cuda_new_condition(cuda);
    SK_LAUNCH_SIMPLE(cuda, prepare, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    sk_cuda_repeat(cuda, host, launch_iteration, &cuda->data->sph.done);
    SK_LAUNCH_SIMPLE(cuda, end_solve, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
}

selkie_code SK_DIM(sk_cuda_sph_pressure)(sk_step *step, selkie_error *error)
{
    sk_sph_system system;
    if (!sk_sph_system_begin(step, &system))
        return SELKIE_OK;
    return sk_cuda_run(step, "sph_pressure", launch_pressure, error);
}

/* --- Move --- */

/* Keeps the path of a particle out of obstacles, and removes its velocity into one that it met. */
SK_DEVICE void sweep_particle(const sk_step *step, const sk_cuda_constants *scene, const sk_sph_bounds *bounds,
                              const float from[3], sk_particle *particle)
{
    sk_swept_path path;
    sk_touch touch;
    if (is_clear_of_obstacles(scene, from, particle->position))
        return;
    path.begin = 0.0, path.end = 1.0, path.deepest = INFINITY;
    for (int d = 0; d < 3; d++) {
        path.from[d] = d < SELKIE_DIM ? from[d] : 0.0f;
        path.to[d] = d < SELKIE_DIM ? particle->position[d] : 0.0f;
        path.low[d] = bounds->low[d];
        path.high[d] = bounds->high[d];
    }
    if (!sweep_once(&step->solids, &path, &touch))
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->position[d] = path.to[d];
    sk_sweep_stop_velocity(&step->solids, &touch, particle->position, particle->velocity);
}

/* Sums over all particles, by the last thread block. */
SK_DEVICE void report_moved(sk_cuda_data *data, const sk_sph_moved_sums *sums, double pressure)
{
    double total[7] = {sums->kinetic,     sums->position[0],  sums->position[1], sums->position[2],
                       (double)sums->bad, (double)sums->gone, pressure};
    double largest = sums->fastest2;
    if (sum_over_launch(data, total, &largest) && threadIdx.x == 0) {
        data->results.kinetic = total[0];
        for (int d = 0; d < 3; d++)
            data->results.positions[d] = total[1 + d];
        data->results.bad = (int64_t)total[4];
        data->results.gone = (int64_t)total[5];
        data->results.fastest2 = largest;
        data->results.sph.pressure = total[6];
    }
}

template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    integrate(const sk_step *step, const sk_cuda_constants *scene, const sk_cuda_sph_constants *constants,
              sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sorted_grid sorted = grid_to_sort(grid);
    const float dt = (float)step->dt;
    const sk_sph *sph = step->sph;
    const double unit = sk_sph_pressure_unit(step->density, sph->spacing, sph->correction_time);
    sk_sph_moved_sums sums = {{0.0, 0.0, 0.0}, 0.0, 0.0, 0, 0};
    double pressure = 0.0; /* the time step needs its mean */
    SK_CUDA_EACH(i, step->particles.count)
    {
        sk_particle particle = load_particle(&step->particles.records[i]);
        const float from[3] = {particle.position[0], particle.position[1], particle.position[2]};
        sk_sph_advance(grid, &constants->bounds, dt, &particle);
        if (AMONG_OBSTACLES && !(particle.flags & (SK_PARTICLE_DEAD | SK_PARTICLE_BOUNDARY)))
            sweep_particle(step, scene, &constants->bounds, from, &particle);
        wrap_position(grid, particle.position);
        sk_sph_add_moved(&particle, &sums);
        pressure += particle.flags & SK_PARTICLE_DEAD ? 0.0 : sk_sph_whole_pressure(sph->pressure[i], unit);
        store_particle(&step->particles.records[i], particle);
        mark_place(&sorted, data, (uint32_t)i, particle.position, (particle.flags & SK_PARTICLE_DEAD) != 0);
    }
    report_moved(data, &sums, pressure);
}

static void launch_integrate(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *scene = &cuda->device->constants;
    const sk_cuda_sph_constants *constants = &cuda->device->sph_constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, integrate<true>, SK_CUDA_SUMS, SK_CUDA_THREADS, step, scene, constants, cuda->data);
    else
        SK_LAUNCH(cuda, integrate<false>, SK_CUDA_SUMS, SK_CUDA_THREADS, step, scene, constants, cuda->data);
}

/* The report of the step. */
static selkie_code take_report(sk_step *step, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    sk_sph *sph = step->sph;
    sk_sph_report *report = &sph->report;
    const int solved = step->dt > 0.0 && sk_step_has_pressure(step) && results->count > 0;
    report->pairs = (int64_t)results->sph.pairs;
    report->list_bytes = (int64_t)results->sph.rows * GROUP * (SELKIE_DIM == 3 ? 10 : 8);
    report->compression = results->count ? results->sph.compression / (double)results->count : 0.0;
    report->compression_max = results->sph.compression_max;
    sph->pressure_sum = results->sph.pressure;
    if (sk_sph_viscosity_is_implicit(step)) {
        report->viscosity_iterations = results->sph.viscosity_iterations;
        if (results->sph.viscosity_failed)
            return sk_sph_viscosity_failed(step, report->viscosity_iterations, error);
    }
    if (!solved)
        return SELKIE_OK;
    report->iterations = step->pressure.iterations = results->sph.iterations;
    report->predicted_error = step->pressure.residual = results->sph.error;
    report->largest_eigenvalue = results->sph.largest;
    return results->sph.diverged ? sk_sph_diverged(step, results->sph.iterations, error) : SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_sph_integrate)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_run(step, "sph_integrate", launch_integrate, error));
    sk_particles_moved(&step->particles);
    step->cuda->particles_here = 0;
    step->cuda->has_keys = 1;
    SK_TRY(sk_cuda_finish_step(step, error));
    return take_report(step, error);
}

/* --- Memory, constants and walls --- */

selkie_code SK_DIM(sk_cuda_take_sph)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_sph *to = &cuda->sph_shadow;
    const size_t count = cuda->particle_capacity, groups = count / GROUP + 2;
    memset(to, 0, sizeof *to);
    SK_TRY(sk_cuda_take(cuda, &cuda->shadow.sph.row, groups * sizeof(uint32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &to->number, count * sizeof *to->number, 1, error));
    SK_TRY(sk_cuda_take(cuda, &to->sum_gradient, count * sizeof *to->sum_gradient, 1, error));
    SK_TRY(sk_cuda_take(cuda, &to->shift, count * sizeof *to->shift, 1, error));
    for (int c = 0; c < 3; c++)
        SK_TRY(sk_cuda_take(cuda, &to->correction[c], count * sizeof *to->correction[c], 1, error));
    float **const values[4] = {&to->density, &to->diagonal, &to->wall_flux, &to->source};
    for (int n = 0; n < 4; n++)
        SK_TRY(sk_cuda_take(cuda, values[n], count * sizeof(float), 1, error));
    for (int n = 0; n < SK_SPH_VARIABLES; n++)
        SK_TRY(sk_cuda_take(cuda, &to->variable[n], count * sizeof(float), 1, error));
    cuda->walls_sent = 0;
    memset(cuda->wall_bytes, 0, sizeof cuda->wall_bytes);
    return SELKIE_OK;
}

void SK_DIM(sk_cuda_fill_sph)(sk_step *step, sk_cuda_sent *sent)
{
    const sk_cuda *cuda = step->cuda;
    const sk_sph *arrays = &cuda->sph_shadow;
    sk_cuda_sph_constants *constants = &sent->sph_constants;

    /* Constants of the host, arrays of the device. */
    sk_sph *to = &sent->sph;
    *to = *step->sph;
    to->boundary = arrays->boundary;
    to->particle_capacity = cuda->particle_capacity;
    to->number = arrays->number;
    to->sum_gradient = arrays->sum_gradient, to->shift = arrays->shift;
    memcpy(to->correction, arrays->correction, sizeof to->correction);
    to->density = arrays->density, to->diagonal = arrays->diagonal;
    to->wall_flux = arrays->wall_flux, to->source = arrays->source;
    memcpy(to->variable, arrays->variable, sizeof to->variable);
    to->body_term = NULL, to->pressure = NULL; /* the first kernel of the phase finds it */
    sent->step.sph = &cuda->device->sph;
    sent->step.surface_pressure = NULL;

    const list_frame frame = make_list_frame(step);
    memset(constants, 0, sizeof *constants);
    constants->lists = frame.constants;
    constants->points = frame.points;
    constants->bounds = sk_sph_bounds_of(&step->grid, step->scene);
    for (int d = 0; d < SELKIE_DIM; d++)
        constants->gain[d] = (float)(sk_step_kick(step) * step->scene->gravity[d]);
    for (int a = 0; a < step->particles.attribute_count; a++)
        if (strcmp(step->particles.attributes[a].name, "pressure") == 0)
            constants->pressure = a;
    SK_DIM(sk_sph_friction_frame_of)(step, &constants->friction);
    constants->viscosity = sk_sph_viscous_shape_of(
        step->sph->viscous, sk_scene_viscosity(step->scene) * sk_step_kick(step), step->sph->support);
    constants->pair_forces = SK_DIM(sk_sph_pair_forces)(step, &constants->forces);
    constants->progress = sk_sph_begin_solve(step);
    if (sk_sph_system_begin(step, &constants->system))
        constants->ending = sk_sph_ending_of(step);
}

/* Sends an array of the walls, larger than before if it must be. */
typedef struct sent_array {
    void *address; /* of the pointer */
    const void *from;
    size_t bytes, *capacity;
} sent_array;

static selkie_code send(sk_cuda *cuda, sent_array of, selkie_error *error)
{
    void **at = (void **)of.address;
    if (of.bytes > *of.capacity) {
        sk_cuda_give(cuda, *at, *of.capacity);
        *of.capacity = 0;
        SK_TRY(sk_cuda_take(cuda, at, of.bytes + of.bytes / 4, 0, error));
        *of.capacity = of.bytes + of.bytes / 4;
    }
    if (of.bytes)
        SK_CUDA_TRY(cudaMemcpyAsync(*at, of.from, of.bytes, cudaMemcpyHostToDevice, cuda->stream), "the walls", error);
    return SELKIE_OK;
}

/* The host places the boundary particles: it has every kind of shape and motion. */
selkie_code SK_DIM(sk_cuda_sph_boundary)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_TRY(sk_sph_boundary_run(step, error));
    if (cuda->walls_sent && !sk_sph_boundary_moves(step->sph))
        return SELKIE_OK;
    const sk_sph_boundary *from = &step->sph->boundary;
    const sk_cell_index *index = &from->index;
    sk_sph_boundary *to = &cuda->sph_shadow.boundary;
    const sk_sph_boundary old = *to;
    const size_t cells = (size_t)index->block_count * SK_BLOCK_CELLS + 1,
                 entries = from->count ? (size_t)1 << index->table.log : 0;
    SK_TRY(sk_cuda_begin(step, error));
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the walls", error); /* the last copy is over */
    *to = *from;
    to->particles = old.particles, to->index.cell_start = old.index.cell_start;
    to->index.table.entries = old.index.table.entries;
    to->bodies = old.bodies, to->index.coordinates = NULL, to->index.neighbours = NULL;
    const sent_array points = {&to->particles, from->particles, from->count * sizeof *from->particles,
                               &cuda->wall_bytes[0]};
    const sent_array starts = {&to->index.cell_start, index->cell_start,
                               from->count ? cells * sizeof *index->cell_start : 0, &cuda->wall_bytes[1]};
    const sent_array table = {&to->index.table.entries, index->table.entries, entries * sizeof *index->table.entries,
                              &cuda->wall_bytes[2]};
    const sent_array bodies = {&to->bodies, from->bodies, (size_t)from->body_count * sizeof *from->bodies,
                               &cuda->wall_bytes[3]};
    SK_TRY(send(cuda, points, error));
    SK_TRY(send(cuda, bodies, error));
    SK_TRY(send(cuda, starts, error));
    SK_TRY(send(cuda, table, error));
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->device->sph.boundary, to, sizeof *to, cudaMemcpyHostToDevice, cuda->stream),
                "the walls", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the walls", error);
    cuda->walls_sent = 1;
    return SELKIE_OK;
}

/* Neighbour lists of SPH on the GPU, a thread a particle. Neighbours are counted first; the host then makes room for
 * the rows. The order of the neighbours is that of the plain form, and so are the bits of everything but sums over all
 * particles. */
#include "cuda/sph_parts.h"

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

/* The cell sort on the GPU: the slots and the order of the plain sort.
 *
 * (1) Each particle finds its place, a block of the domain, and its cell; the phases that move particles do so at their
 * end. (2) Places with particles get slots in
 * ascending order. (3) Particles are counted by cell; prefix sums give the first particle of each cell. (4) Particles
 * go to their cells. Counters give them an arbitrary order there, so each cell then sorts its few particles by their
 * old numbers: the result is that of a stable sort. (5) Places that kernels reach get slots in the order in which a
 * loop over blocks and neighbours meets them: the smallest pair (block, neighbour) of a place wins.
 */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/sort_parts.h"

enum { CELLS = SK_BLOCK_CELLS };

/* Loads and stores of what is not needed again soon: it leaves the cache first. */
#ifdef SK_CUDA_EMULATED
#define SK_CUDA_LOAD_ONCE(from) (*(from))
#define SK_CUDA_STORE_ONCE(to, value) (*(to) = (value))
#else
#define SK_CUDA_LOAD_ONCE(from) __ldcs(from)
#define SK_CUDA_STORE_ONCE(to, value) __stcs(to, value)
#endif

SK_DEVICE void coordinates_of(const sk_grid *grid, int place, int at[3])
{
    at[0] = place % grid->blocks[0];
    at[1] = place / grid->blocks[0] % grid->blocks[1];
    at[2] = place / grid->blocks[0] / grid->blocks[1];
}

/* The place at an offset from a block; -1 outside of the domain. */
SK_DEVICE int place_beside(const sk_grid *grid, const int32_t from[4], int n)
{
    int at[3] = {from[0] + n % 3 - 1, from[1] + n / 3 % 3 - 1, SELKIE_DIM == 3 ? from[2] + n / 9 - 1 : 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (at[d] >= 0 && at[d] < grid->blocks[d])
            continue;
        if (!(grid->periodic >> d & 1))
            return -1;
        at[d] = sk_wrap_index(at[d], grid->blocks[d]);
    }
    return at[0] + grid->blocks[0] * (at[1] + grid->blocks[1] * at[2]);
}

static __global__ void clear_places(sk_cuda_data *data, int with_marks)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, data->places)
    {
        data->slot_of_place[i] = 0;
        data->first_reach[i] = UINT32_MAX;
        if (with_marks)
            data->marked[i] = 0;
        if (with_marks && i == 0)
            data->results.lost = 0;
    }
}

static __global__ void find_places(sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sorted_grid grid = grid_to_sort(&step->grid);
    SK_CUDA_EACH(p, step->particles.count)
    {
        const sk_particle *particle = &step->particles.records[p];
        const float position[3] = {particle->position[0], particle->position[1], particle->position[2]};
        mark_place(&grid, data, (uint32_t)p, position, (particle->flags & SK_PARTICLE_DEAD) != 0);
    }
}

SK_DEVICE void place_block(sk_grid *grid, int slot, int place)
{
    int at[3];
    coordinates_of(grid, place, at);
    for (int d = 0; d < 3; d++)
        grid->coordinates[slot][d] = at[d];
    grid->coordinates[slot][3] = 0;
}

/* Slots for the marked places, in ascending order, and clears the marks; with `clears`, what the last sort has left,
 * too. One thread block; a thread has 8 places at a time. */
static __global__ void number_places(sk_step *step, sk_cuda_data *data, int clears)
{
    SK_CUDA_WAIT();
    enum { SHARE = 8 };
    __shared__ int before;
    sk_grid *grid = &step->grid;
    if (threadIdx.x == 0)
        before = 1;
    __syncthreads();
    for (int first = 0; first < data->places; first += SHARE * (int)blockDim.x) {
        int has[SHARE], count = 0, total;
        const int from = first + SHARE * (int)threadIdx.x, is = from < data->places;
        uint64_t *marked = (uint64_t *)(void *)(data->marked + from);
        const uint64_t marks = is ? *marked : 0; /* a byte each, 0 or 1; the arrays end with a whole share */
        for (int n = 0; n < SHARE; n++) {
            has[n] = marks >> 8 * n & 1;
            count += has[n];
        }
        int slot = before + sk_cuda_scan(count, &total);
        for (int n = 0; is && clears && n < SHARE; n += 4) {
            const int4 none = {-1, -1, -1, -1}, zero = {0, 0, 0, 0};
            *(int4 *)(void *)(data->first_reach + from + n) = none;
            *(int4 *)(void *)(data->slot_of_place + from + n) = zero;
        }
        if (marks)
            *marked = 0;
        for (int n = 0; marks && n < SHARE; n++) {
            if (has[n])
                data->slot_of_place[from + n] = slot < data->capacity ? slot : 0;
            slot += has[n];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        data->results.overflow = before > data->capacity ? before : 0;
        grid->particle_blocks = before <= data->capacity ? before - 1 : data->capacity - 1;
        data->results.particle_blocks = grid->particle_blocks;
    }
}

SK_DEVICE size_t cell_of(const sk_cuda_data *data, uint32_t key)
{
    return (size_t)(data->slot_of_place[key / CELLS] - 1) * CELLS + key % CELLS;
}

/* The number of a particle in its cell. Particles beside each other are often in one cell: those of a warp with the
 * same key count together. */
SK_DEVICE uint32_t rank_in_cell(uint32_t key, uint32_t *count)
{
#ifdef SK_CUDA_EMULATED
    (void)key;
    return atomicAdd(count, 1u);
#else
    const unsigned same = __match_any_sync(__activemask(), key), before = same & ((1u << threadIdx.x % 32) - 1u);
    const int leader = __ffs((int)same) - 1;
    uint32_t first = 0;
    if (!before)
        first = atomicAdd(count, (uint32_t)__popc(same));
    return __shfl_sync(same, first, leader) + (uint32_t)__popc(before);
#endif
}

/* Particles of each cell, and coordinates of the blocks. */
static __global__ void count_cells(sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(place, data->places)
    {
        const int slot = data->slot_of_place[place];
        if (slot) {
            place_block(&step->grid, slot, (int)place);
            data->wins[slot] = 0;
        }
    }
    SK_CUDA_EACH(p, step->particles.count)
    {
        const uint32_t key = data->keys[p];
        if (key != no_cell && data->slot_of_place[key / CELLS])
            data->ranks[p] = rank_in_cell(key, &data->cell_counts[cell_of(data, key)]);
        else
            data->keys[p] = no_cell;
    }
}

/* The neighbours that a cell reaches, a bit each: sk_cell_reaches. */
SK_DEVICE unsigned reached_by(int cell)
{
    unsigned bits = 1;
    for (int d = SELKIE_DIM - 1; d >= 0; d--) {
        const int along = cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK, step = d == 0 ? 1 : d == 1 ? 3 : 9;
        bits = (along < 2 ? bits : 0) | bits << step | (along >= SK_BLOCK_N - 2 ? bits << 2 * step : 0);
    }
    return bits;
}

/* Numbers what blocks have, from `first` on: the first number of each block. Returns the number after the last one. One
 * thread block; a thread has 8 blocks at a time. */
template <typename Count, typename Number>
SK_DEVICE int number_of_blocks(int blocks, int first, Count count_of, Number *numbers)
{
    enum { SHARE = 8 };
    __shared__ int before;
    __syncthreads();
    if (threadIdx.x == 0)
        before = first;
    __syncthreads();
    for (int from = 1; from <= blocks; from += SHARE * (int)blockDim.x) {
        const int mine = from + SHARE * (int)threadIdx.x;
        int own[SHARE], count = 0, total;
        for (int n = 0; n < SHARE; n++) {
            own[n] = mine + n <= blocks ? count_of(mine + n) : 0;
            count += own[n];
        }
        int number = before + sk_cuda_scan(count, &total);
        for (int n = 0; n < SHARE; n++) {
            if (mine + n <= blocks)
                numbers[mine + n] = (Number)number;
            number += own[n];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            before += total;
        __syncthreads();
    }
    return before;
}

/* First particle of each block. One thread block. */
SK_DEVICE void scan_blocks(sk_step *step, sk_cuda_data *data)
{
    const int blocks = step->grid.particle_blocks;
    const int all = number_of_blocks(
        blocks, 0, [&](int b) { return (int)data->block_first[b]; }, data->block_first);
    if (threadIdx.x == 0) {
        data->results.count = all;
        step->grid.cell_start[(size_t)blocks * CELLS] = (uint32_t)all;
    }
}

/* Prefix sums within a block, its total, and the neighbours that its particles reach. A warp a block, a lane a run of
 * its cells. The last thread block adds up the totals. */
static __global__ void __launch_bounds__(CELLS, 2) scan_cells(sk_step *step, sk_cuda_data *data)
{
    enum { WARPS = CELLS / 32, SHARE = CELLS / 32 };
    SK_CUDA_WAIT();
    sk_grid *grid = &step->grid;
    const int lane = (int)threadIdx.x % 32, blocks = grid->particle_blocks;
    const int4 zero = {0, 0, 0, 0};
    for (int first = 1 + (int)blockIdx.x * WARPS; first <= blocks; first += (int)gridDim.x * WARPS) {
        const int b = first + (int)threadIdx.x / 32, is = b <= blocks;
        const size_t at = (size_t)((is ? b : first) - 1) * CELLS + (size_t)(SHARE * lane);
        int4 *counts = (int4 *)(void *)(data->cell_counts + at), *starts = (int4 *)(void *)(grid->cell_start + at);
        int own[SHARE], sum = 0;
        unsigned bits = 0;
        for (int n = 0; n < SHARE / 4; n++) {
            const int4 four = is ? counts[n] : zero;
            own[4 * n] = four.x, own[4 * n + 1] = four.y, own[4 * n + 2] = four.z, own[4 * n + 3] = four.w;
        }
        for (int n = 0; n < SHARE; n++) {
            sum += own[n];
            bits |= own[n] ? reached_by(SHARE * lane + n) : 0;
        }

        /* Over the warp: the sum before each lane, the total and all bits. */
        int before = sum, total = sum;
        for (int n = 1; n < 32; n *= 2) {
            const int lower = __shfl_up_sync(~0u, before, n);
            before += lane >= n ? lower : 0;
            total += __shfl_xor_sync(~0u, total, n);
            bits |= __shfl_xor_sync(~0u, bits, n);
        }
        before -= sum;
        for (int n = 0; is && n < SHARE / 4; n++) {
            int4 start;
            start.x = before, start.y = start.x + own[4 * n], start.z = start.y + own[4 * n + 1],
            start.w = start.z + own[4 * n + 2];
            before = start.w + own[4 * n + 3];
            starts[n] = start;
            if (own[4 * n] | own[4 * n + 1] | own[4 * n + 2] | own[4 * n + 3])
                counts[n] = zero;
        }
        if (is && lane == 0) {
            data->block_first[b] = (uint32_t)total;
            data->reach[b] = bits;
        }
    }
    if (sk_cuda_is_last(&data->ticket[0]))
        scan_blocks(step, data);
}

/* Final cell starts, a thread four cells, and for each reached place the first pair (block, neighbour). */
static __global__ void __launch_bounds__(CELLS) finish_cells(sk_step *step, sk_cuda_data *data)
{
    enum { SHARE = 4, THREADS = CELLS / SHARE };
    SK_CUDA_WAIT();
    sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, (size_t)grid->particle_blocks * THREADS)
    {
        const int b = 1 + (int)(i / THREADS), n = (int)(i % THREADS);
        int4 *starts = (int4 *)(void *)grid->cell_start + i, start = *starts;
        const int first = (int)data->block_first[b];
        start.x += first, start.y += first, start.z += first, start.w += first;
        *starts = start;
        if (n < SK_NEIGHBOURS && data->reach[b] >> n & 1) {
            const int place = place_beside(grid, grid->coordinates[b], n);
            if (place >= 0 && !data->slot_of_place[place])
                atomicMin(&data->first_reach[place], (uint32_t)(b * SK_NEIGHBOURS + n));
        }
    }
}

/* First slot of the places that each block has won. One thread block. */
SK_DEVICE void number_reached(sk_step *step, sk_cuda_data *data)
{
    sk_grid *grid = &step->grid;
    const int blocks = grid->particle_blocks;
    const int all = number_of_blocks(
        blocks, 1 + blocks, [&](int b) { return __popc(data->wins[b]); }, data->slots_won);
    if (threadIdx.x == 0) {
        if (all > data->capacity && all > data->results.overflow)
            data->results.overflow = all;
        grid->block_count = all < data->capacity ? all : data->capacity;
        data->results.block_count = grid->block_count;
    }
}

/* The pairs of a block that give their place its slot: a bit each. The last thread block numbers them. */
static __global__ void find_winners(sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, (size_t)grid->particle_blocks * SK_NEIGHBOURS)
    {
        const int b = 1 + (int)(i / SK_NEIGHBOURS), n = (int)(i % SK_NEIGHBOURS);
        if (!(data->reach[b] >> n & 1))
            continue;
        const int place = place_beside(grid, grid->coordinates[b], n);
        if (place >= 0 && data->first_reach[place] == (uint32_t)(b * SK_NEIGHBOURS + n))
            atomicOr(&data->wins[b], 1u << n);
    }
    if (sk_cuda_is_last(&data->ticket[0]))
        number_reached(step, data);
}

/* Slots for the reached places. */
SK_DEVICE void place_reached(sk_step *step, sk_cuda_data *data)
{
    sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, (size_t)grid->particle_blocks * SK_NEIGHBOURS)
    {
        const int b = 1 + (int)(i / SK_NEIGHBOURS), n = (int)(i % SK_NEIGHBOURS);
        const unsigned wins = data->wins[b];
        if (!(wins >> n & 1))
            continue;
        const int place = place_beside(grid, grid->coordinates[b], n);
        const int slot = data->slots_won[b] + __popc(wins & ((1u << n) - 1));
        if (slot >= data->capacity)
            continue;
        data->slot_of_place[place] = slot;
        place_block(grid, slot, place);
    }
}

/* Slots, and places for the particles: those of a cell in an arbitrary order. Neither needs the other. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS, 8) place_all(sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    place_reached(step, data);
    SK_CUDA_EACH(p, step->particles.count)
    {
        const uint32_t key = data->keys[p];
        if (key != no_cell)
            data->order[step->grid.cell_start[cell_of(data, key)] + data->ranks[p]] = (uint32_t)p;
    }
}

/* Neighbours, faces and solids of each block. */
SK_DEVICE void find_neighbours(sk_step *step, sk_cuda_data *data)
{
    sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, (size_t)grid->block_count * SK_NEIGHBOURS)
    {
        const int b = (int)(i / SK_NEIGHBOURS), n = (int)(i % SK_NEIGHBOURS);
        if (b == 0)
            continue;
        const int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
        const int place = place_beside(grid, grid->coordinates[b], n);
        const int other = place >= 0 ? data->slot_of_place[place] : 0;
        grid->neighbours[b][n] = other;
        if (abs(dx) + abs(dy) + abs(dz) == 1)
            grid->faces[b][dx ? (dx + 1) / 2 : dy ? 2 + (dy + 1) / 2 : 4 + (dz + 1) / 2] = other;
        if (n == SK_NEIGHBOURS / 2) {
            step->solids.block_slot[b] = data->solid_slots[place];
            grid->block_flags[b] = 0;
            if (SELKIE_DIM == 2)
                grid->faces[b][4] = grid->faces[b][5] = 0;
        }
    }
}

/* The copies of the particles change their roles. By one thread. */
SK_DEVICE void swap_particles(sk_particles *particles, int64_t count)
{
    sk_particle *records = particles->records;
    particles->records = particles->spare;
    particles->spare = records;
    for (int a = 0; a < particles->attribute_count; a++) {
        uint32_t *values = particles->attributes[a].data;
        particles->attributes[a].data = particles->attributes[a].spare;
        particles->attributes[a].spare = values;
    }
    particles->count = count;
}

/* Neighbours, and the particles of each cell in their old order: the place of a particle is the number of those of its
 * cell that were before it. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS, 8) move_all(sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    find_neighbours(step, data);
    sk_particles *particles = &step->particles;
    SK_CUDA_EACH(n, data->results.count)
    {
        const uint32_t from = data->order[n];
        const float4 *record = (const float4 *)(const void *)&particles->records[from];
        const float4 first = SK_CUDA_LOAD_ONCE(record), second = SK_CUDA_LOAD_ONCE(record + 1);
        const uint32_t *start = &step->grid.cell_start[cell_of(data, data->keys[from])];
        const uint32_t begin = start[0], end = start[1];
        uint32_t p = begin;
        for (uint32_t other = begin; other < end; other++)
            p += data->order[other] < from;
        float4 *to = (float4 *)(void *)&particles->spare[p];
        SK_CUDA_STORE_ONCE(to, first);
        SK_CUDA_STORE_ONCE(to + 1, second);
        for (int a = 0; a < particles->attribute_count; a++) {
            const sk_attribute *attribute = &particles->attributes[a];
            for (int k = 0; k < attribute->components; k++)
                attribute->spare[p * (size_t)attribute->components + k] =
                    attribute->data[from * (size_t)attribute->components + k];
        }
    }
    if (sk_cuda_is_last(&data->ticket[0]) && threadIdx.x == 0)
        swap_particles(particles, data->results.count);
}

/* A domain of few places needs no launch of its own that clears them. */
enum { FEW_PLACES = 1 << 14 };

static void launch_with_keys(sk_cuda *cuda, int clears)
{
    sk_step *step = &cuda->device->step;
    sk_cuda_data *data = cuda->data;
    SK_LAUNCH(cuda, number_places, 1, SK_CUDA_ONE, step, data, clears);
    SK_LAUNCH_SIMPLE(cuda, count_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, step, data);
    SK_LAUNCH(cuda, scan_cells, SK_CUDA_WIDE / 2, CELLS, step, data);
    SK_LAUNCH_SIMPLE(cuda, finish_cells, SK_CUDA_WIDE / 2, CELLS, step, data);
    SK_LAUNCH(cuda, find_winners, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, step, data);
    SK_LAUNCH_SIMPLE(cuda, place_all, SK_CUDA_WIDE, SK_CUDA_THREADS, step, data);
    SK_LAUNCH(cuda, move_all, SK_CUDA_WIDE, SK_CUDA_THREADS, step, data);
}

static void launch_sort(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, clear_places, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, cuda->data, 1);
    SK_LAUNCH_SIMPLE(cuda, find_places, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->data);
    launch_with_keys(cuda, 0);
}

/* The phase before has found the places of the particles. */
static void launch_sort_of_keys(sk_cuda *cuda, const sk_step *host)
{
    const int few = cuda->shadow.places <= FEW_PLACES;
    (void)host;
    if (!few)
        SK_LAUNCH_SIMPLE(cuda, clear_places, SK_CUDA_WIDE / 4, SK_CUDA_THREADS, cuda->data, 0);
    launch_with_keys(cuda, few);
}

/* Has the sort found more blocks than there is room for? Waits for it, unless all blocks of the domain have room. */
static selkie_code check_room(sk_step *step, int *overflow, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    *overflow = 0;
    if (cuda->shadow.capacity > cuda->shadow.places)
        return SELKIE_OK;
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->results->overflow, &cuda->data->results.overflow, sizeof cuda->results->overflow,
                                cudaMemcpyDeviceToHost, cuda->stream),
                "the sort", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "the sort", error);
    *overflow = cuda->results->overflow;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_sort_ahead)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (cuda->shadow.capacity <= cuda->shadow.places || !cuda->has_keys)
        return SELKIE_OK;
    SK_TRY(sk_cuda_run(step, "sort of keys", launch_sort_of_keys, error));
    cuda->sorted_ahead = 1;
    return SELKIE_OK;
}

/* The particles are in the other copy now. */
static void take_sorted(sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    cuda->current ^= 1;
    cuda->sorted_ahead = cuda->has_keys = cuda->particles_here = cuda->grid_here = 0;
    step->particles.in_order = 1;
}

selkie_code SK_DIM(sk_cuda_sort)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    int overflow;
    if (cuda->sorted_ahead) {
        take_sorted(step);
        return SELKIE_OK;
    }
    if (!cuda->began)
        SK_TRY(sk_cuda_make_room(step, error));
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(cuda->has_keys ? sk_cuda_run(step, "sort of keys", launch_sort_of_keys, error)
                          : sk_cuda_run(step, "sort", launch_sort, error));
    SK_TRY(check_room(step, &overflow, error));

    /* A sort reads one copy of the particles and writes the other: it can be repeated with more room. */
    while (overflow) {
        SK_TRY(sk_cuda_grow(step, error));
        SK_TRY(sk_cuda_run(step, "sort", launch_sort, error));
        SK_TRY(check_room(step, &overflow, error));
    }
    take_sorted(step);
    return SELKIE_OK;
}

/* Static solids only: find_neighbours has looked them up. */
selkie_code SK_DIM(sk_cuda_solids)(sk_step *step, selkie_error *error)
{
    (void)step, (void)error;
    return SELKIE_OK;
}

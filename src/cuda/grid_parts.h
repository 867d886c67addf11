/* Helpers of the kernels on grid and particles. Private to src/cuda; for files compiled per dimension. */
#ifndef SK_CUDA_GRID_PARTS_H
#define SK_CUDA_GRID_PARTS_H

#include "cuda/device.h"
#include "grid/transfer_plain.h"

SK_DEVICE sk_plain_frame frame_of_grid(const sk_grid *grid)
{
    const sk_plain_frame frame = {grid,
                                  {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]},
                                  (float)(1.0 / grid->cell_size),
                                  (float)grid->cell_size};
    return frame;
}

/* Is a cell liquid, so that it may have a row? */
SK_DEVICE int has_liquid_row(const sk_grid *grid, sk_plain_cell cell)
{
    return grid->block_flags[cell.slot] & SK_BLOCK_LIQUID &&
           (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
}

/* The row of another one, as the functions that build rows would write it. */
SK_DEVICE void clear_row(const sk_grid *grid, sk_plain_cell cell)
{
    const size_t here = sk_plain_index(cell);
    grid->fields[SK_FIELD_DIAGONAL][here] = grid->fields[SK_FIELD_RIGHT_SIDE][here] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        grid->fields[SK_FIELD_FACE_X + d][here] = 0.0f;
}

/* The matrices of APIC, the first attribute; NULL for other transfers. */
SK_DEVICE float *affine_of(const sk_step *step, const sk_cuda_constants *constants)
{
    return constants->options.kind == SK_TRANSFER_APIC
               ? (float *)(void *)step->particles.attributes[constants->affine].data
               : nullptr;
}

/* A particle's record in two loads. */
SK_DEVICE sk_particle load_particle(const sk_particle *record)
{
    union {
        float4 half[2];
        sk_particle particle;
    } copy;
    copy.half[0] = ((const float4 *)(const void *)record)[0];
    copy.half[1] = ((const float4 *)(const void *)record)[1];
    return copy.particle;
}

SK_DEVICE void store_particle(sk_particle *record, sk_particle particle)
{
    union {
        float4 half[2];
        sk_particle particle;
    } copy;
    copy.particle = particle;
    ((float4 *)(void *)record)[0] = copy.half[0];
    ((float4 *)(void *)record)[1] = copy.half[1];
}

/* Copies of single values to shared memory that are all under way at once. A thread sees its own ones after
 * SK_CUDA_COPIES_HERE, and those of the others after a barrier. A loop of loads and stores would wait for each load. */
#ifdef SK_CUDA_EMULATED
#define SK_CUDA_COPY(to, from) (*(to) = *(from))
#define SK_CUDA_COPIES_HERE() ((void)0)
#else
#define SK_CUDA_COPY(to, from)                                                                                         \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)),             \
                 "l"(__cvta_generic_to_global(from)))
#define SK_CUDA_COPIES_HERE() asm volatile("cp.async.wait_all;" ::: "memory")
#endif

/* Asks for particles [first, last) before `end`, which are needed soon. By one thread. Those of whole blocks would push
 * each other out of the cache. */
SK_DEVICE void ask_for_particles(const sk_particle *records, uint32_t first, uint32_t last, uint32_t end)
{
    last = last < end ? last : end;
#ifdef SK_CUDA_EMULATED
    (void)records, (void)first;
#else
    if (first < last)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(records + first)),
                     "r"((last - first) * (unsigned)sizeof(sk_particle)));
#endif
}

/* Thread blocks of a launch with one for each block of cells: they differ in their particles. */
static inline int one_each(const sk_cuda *cuda, int least)
{
    const int most = 16 * SK_CUDA_WIDE, wide = cuda->expected_blocks < most ? cuda->expected_blocks : most;
    return wide < least ? least : wide;
}

/* Does a block around this one, itself included, have a flag? By all threads of a thread block. */
SK_DEVICE int is_flagged_near(const sk_grid *grid, int block, int flag)
{
    const int n = (int)threadIdx.x;
    return __syncthreads_or(n < SK_NEIGHBOURS && grid->block_flags[grid->neighbours[block][n]] & flag);
}

/* Marks the runs of eight cells with a marked one, a thread a cell; a warp adds its four runs at once. */
SK_DEVICE void mark_runs(int marked, unsigned runs[2])
{
    const unsigned cells = __ballot_sync(~0u, marked), first = threadIdx.x / 8;
    unsigned found = 0;
    for (int n = 0; n < 4; n++)
        found |= (cells >> 8 * n & 255u ? 1u : 0u) << n;
    if (threadIdx.x % 32 == 0 && found)
        atomicOr(&runs[first / 32], found << first % 32);
}

/* Work over the particles of blocks: a part of a block at a time, so that few blocks keep the device busy too. */
SK_DEVICE int parts_of_blocks(const sk_grid *grid)
{
    return grid->particle_blocks < 1024 ? 2 : 1;
}
SK_DEVICE void particles_of_part(const sk_grid *grid, int block, int part, int parts, uint32_t *first, uint32_t *last)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    /* A part costs a copy of the fields around the block: few particles are one part. */
    const uint32_t begin = start[0], end = start[SK_BLOCK_CELLS], whole = SK_CUDA_THREADS;
    const uint32_t share = ((end - begin + (uint32_t)parts - 1) / (uint32_t)parts + whole - 1) / whole * whole;
    *first = begin + share * (uint32_t)part < end ? begin + share * (uint32_t)part : end;
    *last = *first + share < end ? *first + share : end;
}

/* The slots around a block in shared memory, for copies of the fields there. By all threads of a thread block. */
SK_DEVICE void load_slots_around(const sk_grid *grid, int block, int32_t slots[SK_NEIGHBOURS])
{
    __syncthreads(); /* the last copy is over */
    if (threadIdx.x < SK_NEIGHBOURS)
        slots[threadIdx.x] = grid->neighbours[block][threadIdx.x];
    __syncthreads();
}

/* Which of the blocks around a block has the cell with these coordinates in it, at most a block's width outside. */
SK_DEVICE int neighbour_at(const int at[3])
{
    int neighbour = 0, stride = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        neighbour += (at[d] < 0 ? 0 : at[d] < SK_BLOCK_N ? 1 : 2) * stride;
        stride *= 3;
    }
    return neighbour;
}

/* Index of that cell in the fields. */
SK_DEVICE size_t index_around(const int32_t slots[SK_NEIGHBOURS], const int at[3])
{
    int local = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    return (size_t)slots[neighbour_at(at)] * SK_BLOCK_CELLS + (size_t)local;
}

/* What a transfer reads of the particles. */
SK_DEVICE sk_plain_data particle_data(const sk_step *step, const sk_cuda_constants *constants)
{
    const sk_transfer_options *options = &constants->options;
    const int materials = options->relative_density || options->material_mask;
    const sk_plain_data data = {step->particles.records, affine_of(step, constants),
                                materials ? step->particles.attributes[constants->material].data : nullptr,
                                options->relative_density, options->material_mask};
    return data;
}

/* Sum over the thread blocks of a launch, in a fixed order, by its last one. */
SK_DEVICE double sum_of_partials(const double *partial, int count)
{
    double sum = 0.0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        sum += partial[i];
    return sk_cuda_sum(sum);
}

/* Sums over all threads of a launch, in a fixed order, and the largest of another value unless it is NULL. Returns
 * whether this is the last thread block: it alone has them, in the place of its own. */
template <int COUNT> SK_DEVICE bool sum_over_launch(sk_cuda_data *data, double (&values)[COUNT], double *largest)
{
    const int count = (int)gridDim.x;
    for (int n = 0; n < COUNT; n++) {
        const double sum = sk_cuda_sum(values[n]);
        if (threadIdx.x == 0)
            data->partial[n * count + (int)blockIdx.x] = sum;
    }
    const double most = largest ? sk_cuda_largest(*largest) : 0.0;
    if (largest && threadIdx.x == 0)
        data->partial[COUNT * count + (int)blockIdx.x] = most;
    if (!sk_cuda_is_last(&data->ticket[0]))
        return false;
    for (int n = 0; n < COUNT; n++)
        values[n] = sum_of_partials(data->partial + n * count, count);
    if (!largest)
        return true;
    *largest = 0.0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        *largest = sk_cuda_largest_of(data->partial[COUNT * count + i], *largest);
    *largest = sk_cuda_largest(*largest);
    return true;
}

/* The eight nodes of component d (four in 2D) that a particle has weights on, in a row of three along each axis as in
 * transfer_kernels.h. The other weights are 0. */
typedef struct node_span {
    int first[3];
    float weights[3][2];
} node_span;

SK_DEVICE node_span span_of(int d, const float fraction[3])
{
    node_span span;
    for (int e = 0; e < SELKIE_DIM; e++) {
        float weights[3];
        if (e == d)
            sk_hat_weights_face(fraction[e], weights);
        else
            sk_hat_weights_centred(fraction[e], weights);
        const int upper = e != d && fraction[e] - 0.5f >= 0.0f;
        span.first[e] = upper;
        span.weights[e][0] = upper ? weights[1] : weights[0];
        span.weights[e][1] = upper ? weights[2] : weights[1];
    }
    return span;
}

/* Index of a node of the span in the fields of component d. */
SK_DEVICE size_t node_of_span(const sk_grid *grid, sk_plain_cell cell, int d, const node_span *span, int corner)
{
    const int offset[3] = {span->first[0] + (corner & 1) - (d != 0), span->first[1] + (corner >> 1 & 1) - (d != 1),
                           SELKIE_DIM == 3 ? span->first[2] + (corner >> 2) - (d != 2) : 0};
    return sk_plain_index(sk_plain_beside(grid, cell, offset));
}

/* Product of the weights of a node, in the order of sk_node_weight. */
SK_DEVICE float corner_weight(const float weights[3][2], int corner)
{
    const float weight = weights[0][corner & 1] * weights[1][corner >> 1 & 1];
    return SELKIE_DIM == 3 ? weight * weights[2][corner >> 2] : weight;
}

/* The cell of a particle, which has not moved since the sort. */
SK_DEVICE sk_plain_cell cell_of_particle(const sk_grid *grid, const sk_cuda_data *data, const sk_plain_frame *frame,
                                         const float position[3], int at[3])
{
    sk_plain_cell cell = {0, 0};
    int place = 0, stride = 1;
    at[2] = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        at[d] = (int)sk_cell_coordinate(position[d], frame->corner[d], frame->inverse);
        place += (at[d] >> SK_BLOCK_LOG) * stride;
        stride *= grid->blocks[d];
        cell.local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    cell.slot = data->slot_of_place[place];
    return cell;
}

enum {
    KNOWN_SIDE = SK_BLOCK_N + 2,
    KNOWN_TILE = SELKIE_DIM == 3 ? KNOWN_SIDE * KNOWN_SIDE * KNOWN_SIDE : KNOWN_SIDE * KNOWN_SIDE
};

/* Cell n of such a tile: from the first cell of the block, and its index in the fields. */
SK_DEVICE void place_in_known_tile(int n, int at[3])
{
    at[0] = n % KNOWN_SIDE - 1;
    at[1] = n / KNOWN_SIDE % KNOWN_SIDE - 1;
    at[2] = SELKIE_DIM == 3 ? n / KNOWN_SIDE / KNOWN_SIDE - 1 : 0;
}
SK_DEVICE size_t cell_of_known_tile(const int32_t slots[SK_NEIGHBOURS], int n)
{
    int at[3];
    place_in_known_tile(n, at);
    return index_around(slots, at);
}

/* A copy of three components in the cells of a block and around it, 0 where they are unknown. By all threads of a
 * thread block. */
SK_DEVICE void load_known_tile(const sk_grid *grid, int block, int first, float *tile)
{
    __shared__ int32_t slots[SK_NEIGHBOURS];
    load_slots_around(grid, block, slots);
    for (int n = (int)threadIdx.x; n < KNOWN_TILE; n += (int)blockDim.x) {
        const size_t from = cell_of_known_tile(slots, n);
        for (int d = 0; d < SELKIE_DIM; d++)
            tile[d * KNOWN_TILE + n] = sk_known_or_zero(grid->fields[first + d][from]);
    }
}

/* Component d of a tile at a fraction of a cell, from the nodes that have weights: sk_interpolate, or
 * sk_interpolate_nearest with `nearest`. */
SK_DEVICE float sample_tile(const float *tile, const int corner[3], const int at[3], const float fraction[3], int d,
                            int nearest)
{
    node_span span = span_of(d, fraction);
    const int upper = fraction[d] >= 0.5f;
    int first = d * KNOWN_TILE, pitch = 1;
    if (nearest) {
        span.weights[d][0] = upper ? 0.0f : 1.0f;
        span.weights[d][1] = upper ? 1.0f : 0.0f;
    }
    for (int e = 0; e < SELKIE_DIM; e++) {
        first += (at[e] - corner[e] + 1 + span.first[e] - (e != d)) * pitch;
        pitch *= KNOWN_SIDE;
    }
    float sum = 0.0f;
    for (int n = 0; n < SK_CORNERS; n++)
        sum += corner_weight(span.weights, n) *
               tile[first + (n & 1) + KNOWN_SIDE * ((n >> 1 & 1) + KNOWN_SIDE * (n >> 2))];
    return sum;
}

/* The new position of a particle: sk_plain_displace. */
SK_DEVICE void displace_particle(const sk_plain_frame *frame, const sk_displacement *by, const float *tile,
                                 const int corner[3], const int at[3], float position[3])
{
    const float x[3] = {position[0], position[1], SELKIE_DIM == 3 ? position[2] : 0.0f};
    float fraction[3] = {0.0f, 0.0f, 0.0f};
    sk_plain_fractions(frame, x, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++)
        position[d] =
            sk_clamp(x[d] + frame->cell_size * sample_tile(tile, corner, at, fraction, d, 1), by->low[d], by->high[d]);
}

#endif

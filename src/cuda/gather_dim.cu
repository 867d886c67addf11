/* Transfer of the particles to the grid, and their density.
 *
 * In 3D a thread block has the particles of a block of cells. A thread adds up those of one cell for each node that
 * they reach, in registers. The cells of a layer then add their sums to a tile in shared memory, the nodes of the block
 * and a layer around it, in nine rounds, in each of which the cells reach different nodes. A second kernel adds up the
 * tiles around a block. Both follow the order of sk_plain_gather_cell. 2D takes that function, one thread a cell, and
 * so do faces of liquids of several densities and beside bodies of particles.
 */
#include "cuda/device.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    gather_cells(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sk_plain_data data = particle_data(step, constants);
    SK_CUDA_EACH_CELL(cell, step)
    {
        const sk_gathered sums = sk_plain_gather_cell(&frame, &data, cell);
        sk_plain_set_faces(grid, &sums, data.material != nullptr, constants->options.density_per_particle,
                           sk_plain_index(cell));
        grid->fields[SK_FIELD_DENSITY][sk_plain_index(cell)] = sums.centre * constants->options.density_per_particle;
    }
}

#if SELKIE_DIM == 2
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    weigh_cells(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    sk_plain_data data = particle_data(step, constants);
    data.mask = nullptr; /* bodies of particles take room as liquid does */
    sk_transfer_options options = constants->options;
    options.left_out = step->solids.closed;
    options.left_out_slot = step->solids.block_slot;
    SK_CUDA_EACH_CELL(cell, step)
    step->grid.fields[SK_FIELD_DENSITY][sk_plain_index(cell)] =
        sk_plain_weigh_cell(&frame, &data, &options, cell) * options.density_per_particle;
}
#endif

#if SELKIE_DIM == 3
enum {
    N = SK_BLOCK_N,
    CELLS = SK_BLOCK_CELLS,
    SIDE = N + 2,
    TILE = SIDE * SIDE * SIDE,
    LAYER = N * N,
    AHEAD = 2,  /* layers whose particles are asked for early */
    LAYERS = 2, /* at a time, of the density alone */
    LAYER_THREADS = LAYER * LAYERS
};

/* Weight of a particle with a fraction of its cell, which is `offset` cells from the node: of nodes at centres, and of
 * nodes on the lower faces. The values of sk_hat_weights_centred and sk_hat_weights_face. */
SK_DEVICE float centred_weight(float fraction, int offset)
{
    const float from = fraction - 0.5f, below = from < 0.0f ? -from : 0.0f, above = from > 0.0f ? from : 0.0f;
    return offset == 0 ? 1.0f - (below + above) : offset < 0 ? above : below;
}

SK_DEVICE float face_weight(float fraction, int offset)
{
    return offset == 0 ? 1.0f - fraction : offset < 0 ? fraction : 0.0f;
}

/* The cell of a thread in layer k of its block: where it is, and its particles. */
typedef struct layer_cell {
    int i, j, k;
    int at[3];
    uint32_t first, last;
} layer_cell;

SK_DEVICE layer_cell cell_of_layer(const sk_grid *grid, int block, int k)
{
    layer_cell own;
    own.i = (int)threadIdx.x % N, own.j = (int)threadIdx.x / N % N, own.k = k;
    const int along[3] = {own.i, own.j, own.k};
    for (int d = 0; d < 3; d++)
        own.at[d] = grid->coordinates[block][d] * N + along[d];
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * CELLS + own.i + N * (own.j + N * own.k);
    own.first = start[0];
    own.last = start[1];
    return own;
}

/* Asks for the particles of layers [k, k + count) of a block. By one thread. */
SK_DEVICE void ask_for_layers(const sk_step *step, int block, int k, int count)
{
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * CELLS + LAYER * k;
    if (k < N)
        ask_for_particles(step->particles.records, start[0], start[LAYER * count], start[LAYER * count]);
}

/* The node of the tile that a cell reaches at an offset. */
SK_DEVICE int node_of_tile(const layer_cell *own, int ox, int oy, int oz)
{
    return own->i - ox + 1 + SIDE * (own->j - oy + 1 + SIDE * (own->k - oz + 1));
}

/* Sums of a cell by offset; those of upper offsets along their own axis stay unused. */
typedef struct cell_sums {
    float momentum[3][27], mass[3][27], centre[27];
} cell_sums;

SK_DEVICE void centred_weights(const float fraction[3], float weights[3][3])
{
#pragma unroll
    for (int e = 0; e < 3; e++)
#pragma unroll
        for (int o = -1; o <= 1; o++)
            weights[e][o + 1] = centred_weight(fraction[e], o);
}

/* Adds a particle to the faces of component D. */
template <int D, bool APIC>
SK_DEVICE void add_to_faces(const float fraction[3], const float centred[3][3], const float velocity[3],
                            const float *affine, float cell_size, cell_sums *sums)
{
    float weights[3][3];
#pragma unroll
    for (int e = 0; e < 3; e++)
#pragma unroll
        for (int n = 0; n < 3; n++)
            weights[e][n] = centred[e][n];
    weights[D][0] = face_weight(fraction[D], -1);
    weights[D][1] = face_weight(fraction[D], 0);
#pragma unroll
    for (int n = 0; n < 27; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
        if (offset[D] > 0)
            continue;
        const float weight = weights[0][n % 3] * weights[1][n / 3 % 3] * weights[2][n / 9];
        const float at_face = sk_velocity_at_face(D, fraction, offset, velocity, APIC ? affine : nullptr, cell_size);
        sums->mass[D][n] += weight;
        sums->momentum[D][n] += weight * at_face;
    }
}

template <bool APIC>
SK_DEVICE void add_up_cell(const sk_plain_frame *frame, const sk_plain_data *data, const layer_cell *own,
                           cell_sums *sums)
{
#pragma unroll
    for (int n = 0; n < 27; n++) {
        sums->centre[n] = 0.0f;
#pragma unroll
        for (int d = 0; d < 3; d++)
            sums->momentum[d][n] = sums->mass[d][n] = 0.0f;
    }
    sk_particle next = load_particle(&data->records[own->first < own->last ? own->first : 0]);
    for (uint32_t p = own->first; p < own->last; p++) {
        const sk_particle particle = next; /* the one after it is on its way meanwhile */
        next = load_particle(&data->records[p + 1 < own->last ? p + 1 : p]);
        const float *affine = APIC ? data->affine + 9 * (size_t)p : nullptr;
        float fraction[3], weights[3][3];
        sk_plain_fractions(frame, particle.position, own->at, fraction);
        centred_weights(fraction, weights);
#pragma unroll
        for (int n = 0; n < 27; n++)
            sums->centre[n] += weights[0][n % 3] * weights[1][n / 3 % 3] * weights[2][n / 9];
        add_to_faces<0, APIC>(fraction, weights, particle.velocity, affine, frame->cell_size, sums);
        add_to_faces<1, APIC>(fraction, weights, particle.velocity, affine, frame->cell_size, sums);
        add_to_faces<2, APIC>(fraction, weights, particle.velocity, affine, frame->cell_size, sums);
    }
}

/* The cells of a layer reach a node in nine rounds, one for each offset in the plane of the layer, those of one row of
 * offsets after each other. */
enum { ROUNDS = 9, ROUNDS_OF_ROW = 3 };

/* Waits after a round for the threads whose cells reach the same nodes. A layer has two warps of four rows of cells
 * each. A node beside the border of both takes the cells of its rows in turn: only between the rows of offsets do the
 * warps wait for each other. */
SK_DEVICE void end_round(int round)
{
    if (round % ROUNDS_OF_ROW == ROUNDS_OF_ROW - 1)
        __syncthreads();
    else
        __syncwarp();
}

/* Values of a node in a tile: momentum and mass of the three faces, and the centre. */
enum { OF_MOMENTUM = 0, OF_MASS = 3, OF_CENTRE = 6, VALUES = 7 };

/* A layer at a time: a thread needs all registers that it can get, and small thread blocks wait less for each other. */
template <bool APIC>
static __global__ void __launch_bounds__(LAYER, 4)
    gather(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    __shared__ float tile[VALUES][TILE];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sk_plain_data particles = particle_data(step, constants);
    for (int block = 1 + (int)blockIdx.x; block <= grid->particle_blocks; block += (int)gridDim.x) {
        if (threadIdx.x == 0)
            ask_for_layers(step, block, 0, AHEAD);
        for (int n = (int)threadIdx.x; n < VALUES * TILE; n += LAYER)
            tile[0][n] = 0.0f;
        __syncthreads();
        for (int k = 0; k < N; k++) {
            if (threadIdx.x == 0)
                ask_for_layers(step, block, k + AHEAD, 1);
            const layer_cell own = cell_of_layer(grid, block, k);
            const int has = own.first < own.last;
            cell_sums sums;
            if (!__syncthreads_or(has))
                continue;
            add_up_cell<APIC>(&frame, &particles, &own, &sums);
#pragma unroll
            for (int round = 0; round < ROUNDS; round++) {
                const int ox = round % 3 - 1, oy = round / 3 - 1;
#pragma unroll
                for (int oz = -1; oz <= 1; oz++) {
                    const int offset[3] = {ox, oy, oz}, n = round + 9 * (oz + 1);
                    const int node = node_of_tile(&own, ox, oy, oz);
                    if (!has)
                        continue;
                    tile[OF_CENTRE][node] += sums.centre[n];
#pragma unroll
                    for (int d = 0; d < 3; d++) {
                        if (offset[d] > 0)
                            continue;
                        tile[OF_MOMENTUM + d][node] += sums.momentum[d][n];
                        tile[OF_MASS + d][node] += sums.mass[d][n];
                    }
                }
                end_round(round);
            }
        }
        float *to = data->tiles + (size_t)(block - 1) * VALUES * TILE;
        __syncthreads();
        for (int n = (int)threadIdx.x; n < VALUES * TILE; n += LAYER)
            to[n] = tile[0][n];
        __syncthreads();
    }
}

/* The density alone, without the particles of closed cells. */
static __global__ void __launch_bounds__(LAYER_THREADS)
    weigh(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    __shared__ float tile[TILE];
    SK_CUDA_WAIT();
    (void)constants;
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const int half = (int)threadIdx.x / LAYER;
    for (int block = 1 + (int)blockIdx.x; block <= grid->particle_blocks; block += (int)gridDim.x) {
        for (int n = (int)threadIdx.x; n < TILE; n += LAYER_THREADS)
            tile[n] = 0.0f;
        __syncthreads();
        for (int k = 0; k < N; k += LAYERS) {
            const layer_cell own = cell_of_layer(grid, block, k + half);
            const sk_plain_cell cell = {block, own.i + N * (own.j + N * own.k)};
            const int has = own.first < own.last && !step->solids.closed[sk_plain_solid_index(&step->solids, cell)];
            float sum[27];
            if (!__syncthreads_or(has))
                continue;
#pragma unroll
            for (int n = 0; n < 27; n++)
                sum[n] = 0.0f;
            for (uint32_t p = own.first; has && p < own.last; p++) {
                const float4 position = *(const float4 *)(const void *)&step->particles.records[p];
                const float x[3] = {position.x, position.y, position.z};
                float fraction[3], weights[3][3];
                sk_plain_fractions(&frame, x, own.at, fraction);
                centred_weights(fraction, weights);
#pragma unroll
                for (int n = 0; n < 27; n++)
                    sum[n] += weights[0][n % 3] * weights[1][n / 3 % 3] * weights[2][n / 9];
            }
            for (int turn = 0; turn < LAYERS; turn++)
#pragma unroll
                for (int round = 0; round < 9; round++) {
#pragma unroll
                    for (int oz = -1; oz <= 1; oz++)
                        if (has && turn == half)
                            tile[node_of_tile(&own, round % 3 - 1, round / 3 - 1, oz)] += sum[round + 9 * (oz + 1)];
                    __syncthreads();
                }
        }
        __syncthreads();
        for (int n = (int)threadIdx.x; n < TILE; n += LAYER_THREADS)
            data->tiles[(size_t)(block - 1) * TILE + n] = tile[n];
        __syncthreads();
    }
}

/* Adds up values of a cell from the tiles around its block that hold it: along an axis its own block, and before or
 * after it the neighbour if the cell is at that side. All loads of a value come before its sum, in the order of the
 * blocks; a tile that does not hold the cell adds 0. */
template <int COUNT>
SK_DEVICE void add_tiles(const sk_grid *grid, const float *tiles, int block, int cell, float values[COUNT])
{
    enum { MOST = 8 };
    const int at[3] = {cell % N, cell / N % N, cell / N / N};
    int other[MOST], node[MOST];
#pragma unroll
    for (int n = 0; n < MOST; n++) {
        int is = 1, neighbour = 0;
        node[n] = 0;
#pragma unroll
        for (int d = 2; d >= 0; d--) {
            const int lower = at[d] == 0, upper = at[d] == N - 1, second = n >> d & 1;
            const int side = second ? (upper ? 2 : 1) : (lower ? 0 : 1);
            is &= !second || lower || upper;
            neighbour = 3 * neighbour + side;
            /* The node in the other block's tile, which begins one node before it. */
            node[n] = SIDE * node[n] + at[d] + 1 - (side - 1) * N;
        }
        other[n] = is ? grid->neighbours[block][neighbour] : 0;
        other[n] = other[n] <= grid->particle_blocks ? other[n] : 0;
    }
#pragma unroll
    for (int v = 0; v < COUNT; v++) {
        float parts[MOST];
#pragma unroll
        for (int n = 0; n < MOST; n++)
            parts[n] = other[n] > 0 ? tiles[((size_t)(other[n] - 1) * COUNT + v) * TILE + node[n]] : 0.0f;
        values[v] = 0.0f;
#pragma unroll
        for (int n = 0; n < MOST; n++)
            values[v] += parts[n];
    }
}

static __global__ void __launch_bounds__(CELLS, 3)
    merge_faces(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const float per_particle = constants->options.density_per_particle;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const size_t at = (size_t)block * CELLS + threadIdx.x;
        float values[VALUES];
        sk_gathered sums;
        add_tiles<VALUES>(grid, data->tiles, block, (int)threadIdx.x, values);
        for (int d = 0; d < 3; d++) {
            sums.momentum[d] = values[OF_MOMENTUM + d];
            sums.mass[d] = sums.weight[d] = values[OF_MASS + d];
        }
        sk_plain_set_faces(grid, &sums, 0, per_particle, at);
        grid->fields[SK_FIELD_DENSITY][at] = values[OF_CENTRE] * per_particle;
    }
}

static __global__ void __launch_bounds__(CELLS)
    merge_centres(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        float value[1];
        add_tiles<1>(&step->grid, data->tiles, block, (int)threadIdx.x, value);
        step->grid.fields[SK_FIELD_DENSITY][(size_t)block * CELLS + threadIdx.x] =
            value[0] * constants->options.density_per_particle;
    }
}

#endif

static void launch_gather(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
#if SELKIE_DIM == 3
    if (!host->relative_density && !host->liquid_mask) {
        if (host->scene->transfer == SELKIE_TRANSFER_APIC)
            SK_LAUNCH(cuda, gather<true>, one_each(cuda, 1), LAYER, step, constants, cuda->data);
        else
            SK_LAUNCH(cuda, gather<false>, one_each(cuda, 1), LAYER, step, constants, cuda->data);
        SK_LAUNCH_SIMPLE(cuda, merge_faces, one_each(cuda, 1), CELLS, step, constants, cuda->data);
        return;
    }
#endif
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, gather_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants);
}

void SK_DIM(sk_cuda_launch_gather)(sk_cuda *cuda, const sk_step *host)
{
    launch_gather(cuda, host);
    SK_DIM(sk_cuda_launch_split)(cuda, SK_FIELD_DENSITY, 0, 1);
}

static void launch_weigh(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    (void)host;
#if SELKIE_DIM == 3
    SK_LAUNCH(cuda, weigh, one_each(cuda, 1), LAYER_THREADS, step, constants, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, merge_centres, SK_CUDA_WIDE / 2, CELLS, step, constants, cuda->data);
#else
    SK_LAUNCH_SIMPLE(cuda, weigh_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants);
#endif
}

void SK_DIM(sk_cuda_launch_weigh)(sk_cuda *cuda, const sk_step *host)
{
    launch_weigh(cuda, host);
    SK_DIM(sk_cuda_launch_split)(cuda, SK_FIELD_DENSITY, 0, 0);
}

selkie_code SK_DIM(sk_cuda_to_grid)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "to_grid", SK_DIM(sk_cuda_launch_gather), error);
}

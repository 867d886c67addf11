/* Transfer of the particles to the grid, and their density.
 *
 * In 3D a thread block has a block of cells with one layer around it. It goes through the layers of cells in z. A
 * thread adds up the particles of one cell for each node that they reach; then the sums of all cells of the layer are
 * added to the nodes in shared memory, in nine rounds, in each of which the cells reach different nodes. So a node adds
 * up the cells around it in the order of sk_plain_gather_cell, and no particle is read by more cells than its own and
 * those of the layers around other blocks. 2D and liquids of several densities take that function, one thread a cell.
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

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    weigh_cells(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_plain_frame frame = frame_of_grid(&step->grid);
    const sk_plain_data data = particle_data(step, constants);
    sk_transfer_options options = constants->options;
    options.left_out = step->solids.closed;
    options.left_out_slot = step->solids.block_slot;
    SK_CUDA_EACH_CELL(cell, step)
    step->grid.fields[SK_FIELD_DENSITY][sk_plain_index(cell)] =
        sk_plain_weigh_cell(&frame, &data, &options, cell) * options.density_per_particle;
}

#if SELKIE_DIM == 3
enum { N = SK_BLOCK_N, CELLS = SK_BLOCK_CELLS, SIDE = N + 2, LAYER_THREADS = 128 };

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

/* A cell of a layer: where it is, and its particles. */
typedef struct layer_cell {
    int i, j, k; /* from -1 to N */
    int at[3];
    uint32_t first, last;
} layer_cell;

SK_DEVICE layer_cell cell_of_layer(const sk_grid *grid, int block, int k)
{
    const int t = (int)threadIdx.x;
    layer_cell own;
    own.i = t % SIDE - 1, own.j = t / SIDE - 1, own.k = k;
    own.first = own.last = 0;
    const int side[3] = {own.i < 0   ? 0
                         : own.i < N ? 1
                                     : 2,
                         own.j < 0   ? 0
                         : own.j < N ? 1
                                     : 2,
                         own.k < 0   ? 0
                         : own.k < N ? 1
                                     : 2};
    const int along[3] = {own.i, own.j, own.k};
    for (int d = 0; d < 3; d++)
        own.at[d] = grid->coordinates[block][d] * N + along[d];
    if (t < SIDE * SIDE) {
        const sk_plain_cell cell = {grid->neighbours[block][side[0] + 3 * (side[1] + 3 * side[2])],
                                    (own.i & (N - 1)) | (own.j & (N - 1)) << SK_BLOCK_LOG |
                                        (own.k & (N - 1)) << (2 * SK_BLOCK_LOG)};
        sk_plain_particles(grid, cell, &own.first, &own.last);
    }
    return own;
}

/* Is the cell closed? Its particles do not count. */
SK_DEVICE int is_left_out(const sk_step *step, int block, const layer_cell *own)
{
    const int side[3] = {own->i < 0   ? 0
                         : own->i < N ? 1
                                      : 2,
                         own->j < 0   ? 0
                         : own->j < N ? 1
                                      : 2,
                         own->k < 0   ? 0
                         : own->k < N ? 1
                                      : 2};
    const sk_plain_cell cell = {step->grid.neighbours[block][side[0] + 3 * (side[1] + 3 * side[2])],
                                (own->i & (N - 1)) | (own->j & (N - 1)) << SK_BLOCK_LOG |
                                    (own->k & (N - 1)) << (2 * SK_BLOCK_LOG)};
    return step->solids.closed[sk_plain_solid_index(&step->solids, cell)];
}

/* The node that a cell at (i, j, k) reaches at an offset; -1 outside of the block. */
SK_DEVICE int node_of(const layer_cell *own, int ox, int oy, int oz)
{
    const int i = own->i - ox, j = own->j - oy, k = own->k - oz;
    return ((i | j | k) & ~(N - 1)) == 0 ? i + N * (j + N * k) : -1;
}

/* Adds the sums of the layer's cells for a part of the nodes: of component D, and of a third of the centres. */
template <int D>
SK_DEVICE void gather_layer(const sk_plain_frame *frame, const sk_plain_data *data, const layer_cell *own,
                            float *momentum, float *mass, float *centre)
{
    float sum_momentum[27], sum_mass[27], sum_centre[9]; /* by offset; those of upper offsets along D stay unused */
#pragma unroll
    for (int n = 0; n < 27; n++)
        sum_momentum[n] = sum_mass[n] = 0.0f;
#pragma unroll
    for (int n = 0; n < 9; n++)
        sum_centre[n] = 0.0f;

    /* The particles of the cell. */
    for (uint32_t p = own->first; p < own->last; p++) {
        const sk_particle particle = load_particle(&data->records[p]);
        float fraction[3], weights[3][3];
        sk_plain_fractions(frame, particle.position, own->at, fraction);
#pragma unroll
        for (int e = 0; e < 3; e++)
#pragma unroll
            for (int o = -1; o <= 1; o++)
                weights[e][o + 1] = centred_weight(fraction[e], o);
#pragma unroll
        for (int n = 0; n < 9; n++)
            sum_centre[n] += weights[0][n % 3] * weights[1][n / 3] * weights[2][D];
        weights[D][0] = face_weight(fraction[D], -1);
        weights[D][1] = face_weight(fraction[D], 0);
#pragma unroll
        for (int n = 0; n < 27; n++) {
            const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
            if (offset[D] > 0)
                continue;
            const float weight = weights[0][n % 3] * weights[1][n / 3 % 3] * weights[2][n / 9];
            const float velocity =
                sk_velocity_at_face(D, fraction, offset, particle.velocity,
                                    data->affine ? data->affine + 9 * (size_t)p : nullptr, frame->cell_size);
            sum_mass[n] += weight;
            sum_momentum[n] += weight * velocity;
        }
    }

    /* To the nodes, in rounds. */
#pragma unroll
    for (int round = 0; round < 9; round++) {
        const int ox = round % 3 - 1, oy = round / 3 - 1;
#pragma unroll
        for (int oz = -1; oz <= 1; oz++) {
            const int offset[3] = {ox, oy, oz}, n = round + 9 * (oz + 1), node = node_of(own, ox, oy, oz);
            if (own->first == own->last || node < 0)
                continue;
            if (offset[D] <= 0) {
                momentum[node] += sum_momentum[n];
                mass[node] += sum_mass[n];
            }
            if (oz == D - 1)
                centre[node] += sum_centre[round];
        }
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(LAYER_THREADS) gather(const sk_step *step, const sk_cuda_constants *constants)
{
    __shared__ float momentum[3][CELLS], mass[3][CELLS], centre[CELLS];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sk_plain_data data = particle_data(step, constants);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        for (int c = (int)threadIdx.x; c < CELLS; c += LAYER_THREADS) {
            centre[c] = 0.0f;
            for (int d = 0; d < 3; d++)
                momentum[d][c] = mass[d][c] = 0.0f;
        }
        for (int k = -1; k <= N; k++) {
            const layer_cell own = cell_of_layer(grid, block, k);
            if (!__syncthreads_or(own.first < own.last))
                continue;
            gather_layer<0>(&frame, &data, &own, momentum[0], mass[0], centre);
            gather_layer<1>(&frame, &data, &own, momentum[1], mass[1], centre);
            gather_layer<2>(&frame, &data, &own, momentum[2], mass[2], centre);
        }
        __syncthreads();
        for (int c = (int)threadIdx.x; c < CELLS; c += LAYER_THREADS) {
            sk_gathered sums;
            for (int d = 0; d < 3; d++) {
                sums.momentum[d] = momentum[d][c];
                sums.mass[d] = sums.weight[d] = mass[d][c];
            }
            const size_t at = (size_t)block * CELLS + c;
            sk_plain_set_faces(grid, &sums, 0, constants->options.density_per_particle, at);
            grid->fields[SK_FIELD_DENSITY][at] = centre[c] * constants->options.density_per_particle;
        }
        __syncthreads();
    }
}

/* The density alone, without the particles of closed cells. */
static __global__ void __launch_bounds__(LAYER_THREADS) weigh(const sk_step *step, const sk_cuda_constants *constants)
{
    __shared__ float centre[CELLS];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        for (int c = (int)threadIdx.x; c < CELLS; c += LAYER_THREADS)
            centre[c] = 0.0f;
        for (int k = -1; k <= N; k++) {
            layer_cell own = cell_of_layer(grid, block, k);
            if (own.first < own.last && is_left_out(step, block, &own))
                own.last = own.first;
            if (!__syncthreads_or(own.first < own.last))
                continue;
            float sum[27];
#pragma unroll
            for (int n = 0; n < 27; n++)
                sum[n] = 0.0f;
            for (uint32_t p = own.first; p < own.last; p++) {
                const float4 position = *(const float4 *)(const void *)&step->particles.records[p];
                const float x[3] = {position.x, position.y, position.z};
                float fraction[3], weights[3][3];
                sk_plain_fractions(&frame, x, own.at, fraction);
#pragma unroll
                for (int e = 0; e < 3; e++)
#pragma unroll
                    for (int o = -1; o <= 1; o++)
                        weights[e][o + 1] = centred_weight(fraction[e], o);
#pragma unroll
                for (int n = 0; n < 27; n++)
                    sum[n] += weights[0][n % 3] * weights[1][n / 3 % 3] * weights[2][n / 9];
            }
#pragma unroll
            for (int round = 0; round < 9; round++) {
#pragma unroll
                for (int oz = -1; oz <= 1; oz++) {
                    const int node = node_of(&own, round % 3 - 1, round / 3 - 1, oz);
                    if (own.first < own.last && node >= 0)
                        centre[node] += sum[round + 9 * (oz + 1)];
                }
                __syncthreads();
            }
        }
        __syncthreads();
        for (int c = (int)threadIdx.x; c < CELLS; c += LAYER_THREADS)
            grid->fields[SK_FIELD_DENSITY][(size_t)block * CELLS + c] =
                centre[c] * constants->options.density_per_particle;
        __syncthreads();
    }
}
#endif

void SK_DIM(sk_cuda_launch_gather)(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
#if SELKIE_DIM == 3
    if (!host->relative_density && !host->liquid_mask) {
        SK_LAUNCH(cuda, gather, SK_CUDA_WIDE, LAYER_THREADS, step, constants);
        return;
    }
#endif
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, gather_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants);
}

void SK_DIM(sk_cuda_launch_weigh)(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
#if SELKIE_DIM == 3
    if (!host->relative_density && !host->liquid_mask) {
        SK_LAUNCH(cuda, weigh, SK_CUDA_WIDE, LAYER_THREADS, step, constants);
        return;
    }
#endif
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, weigh_cells, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants);
}

selkie_code SK_DIM(sk_cuda_to_grid)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "to_grid", SK_DIM(sk_cuda_launch_gather), error);
}

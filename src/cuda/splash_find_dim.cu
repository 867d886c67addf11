/* Candidates for splashes on the GPU: features of the cells at the surface, and the networks. What
 * methods/splashes/splash_find_dim.c does; a thread a cell for the features, then a warp a cell. */
#include "cuda/grid_parts.h"
#include "cuda/splash_parts.h"

enum {
    HALO = SK_SPLASH_REACH + 1,
    SIDE = SK_BLOCK_N + 2 * HALO,
    VALUES = SELKIE_DIM == 3 ? SIDE * SIDE * SIDE : SIDE * SIDE,
    AROUND = SELKIE_DIM == 3 ? 27 : 9,
    BATCH = 32, /* cells whose features are there */
    OWN = 2 * SELKIE_DIM + 1,
    LANES = 32,
    MOST_VALUES = BATCH * SK_SPLASH_FEATURES + 3 * SK_SPLASH_WIDEST /* of the large shared memory where it is fixed */
};

/* A block with a halo, and the cells of it that have candidates. */
typedef struct splash_tile {
    float fill[VALUES], velocity[SELKIE_DIM][VALUES];
    sk_splash_frame frames[BATCH];
    uint16_t listed[SK_BLOCK_CELLS];
    int count;
} splash_tile;

/* Cell n of the tile, counted from the first one of the block. */
SK_DEVICE void tile_cell(int n, int at[3])
{
    at[0] = n % SIDE - HALO;
    at[1] = n / SIDE % SIDE - HALO;
    at[2] = SELKIE_DIM == 3 ? n / SIDE / SIDE - HALO : 0;
}

SK_DEVICE int tile_step(int d)
{
    return d == 0 ? 1 : d == 1 ? SIDE : SELKIE_DIM == 3 ? SIDE * SIDE : 0;
}

SK_DEVICE int tile_place(int c)
{
    int n = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        n += ((c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) + HALO) * tile_step(d);
    return n;
}

/* Is a cell of a tile behind a closed wall of the domain? */
SK_DEVICE int is_behind_wall(const sk_step *step, int block, const int at[3])
{
    const sk_grid *grid = &step->grid;
    int behind = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int cell = grid->coordinates[block][d] * SK_BLOCK_N + at[d] - grid->padding[d];
        behind |= cell < 0 && step->scene->domain.walls[2 * d] != SELKIE_WALL_OPEN;
        behind |= cell >= grid->cells[d] && step->scene->domain.walls[2 * d + 1] != SELKIE_WALL_OPEN;
    }
    return behind;
}

/* Fill of the cells, -1 behind walls of the domain: their blocks need not exist. By all threads of a thread block. */
SK_DEVICE void load_fill(const sk_step *step, const int32_t slots[SK_NEIGHBOURS], int block, splash_tile *tile)
{
    for (int n = (int)threadIdx.x; n < VALUES; n += (int)blockDim.x) {
        int at[3];
        tile_cell(n, at);
        tile->fill[n] =
            is_behind_wall(step, block, at) ? -1.0f : step->grid.fields[SK_FIELD_FILL][index_around(slots, at)];
    }
}

/* Velocities at the centres of the cells that features have. Likewise. */
SK_DEVICE void load_velocity(const sk_step *step, const int32_t slots[SK_NEIGHBOURS], int reach, splash_tile *tile)
{
    for (int n = (int)threadIdx.x; n < VALUES; n += (int)blockDim.x) {
        int at[3], inside = 1;
        tile_cell(n, at);
        for (int d = 0; d < SELKIE_DIM; d++)
            inside &= at[d] >= -reach && at[d] < SK_BLOCK_N + reach;
        for (int d = 0; inside && d < SELKIE_DIM; d++) {
            const float *field = step->grid.fields[SK_FIELD_VELOCITY_X + d];
            int above[3] = {at[0], at[1], at[2]};
            above[d]++;
            tile->velocity[d][n] = sk_splash_centre(field[index_around(slots, at)], field[index_around(slots, above)]);
        }
    }
}

/* Lists the cells with particles and liquid that have air in them or around them, in any order. */
SK_DEVICE void list_cells(const uint32_t *start, splash_tile *tile)
{
    for (int c = (int)threadIdx.x; c < SK_BLOCK_CELLS; c += (int)blockDim.x) {
        const int place = tile_place(c);
        int air = 0;
        if (start[c] == start[c + 1] || !(tile->fill[place] > SK_SPLASH_DRY))
            continue;
        for (int n = 0; n < AROUND && !air; n++)
            air = sk_splash_is_air(tile->fill[place + (n % 3 - 1) + (n / 3 % 3 - 1) * SIDE +
                                              (SELKIE_DIM == 3 ? (n / 9 - 1) * SIDE * SIDE : 0)]);
        if (air)
            tile->listed[atomicAdd(&tile->count, 1)] = (uint16_t)c;
    }
}

/* --- the networks, by a warp --- */

SK_DEVICE int lane_of_thread(void)
{
    return (int)threadIdx.x % LANES;
}

/* Sums of the products of inputs with the weights of a layer; each of them in the order of the CPU, which fuses. They
 * begin with `start`, which may be `to`. */
SK_DEVICE void multiply(const float *weight, const float *start, const float *inputs, int count, int outputs, float *to)
{
    for (int o = lane_of_thread(); o < outputs; o += LANES) {
        float sum = start[o];
        for (int k = 0; k < count; k++)
            sum = fmaf(inputs[k], weight[(size_t)k * (size_t)outputs + (size_t)o], sum);
        to[o] = sum;
    }
    __syncwarp();
}

/* The layers behind the first one's sums, which are in `values[0]`. Returns the values of the last one. */
SK_DEVICE const float *go_on(const sk_cuda_network *network, float *const values[2])
{
    int from = 0;
    for (int l = 0; l < network->layers; l++) {
        const int outputs = network->sizes[l + 1];
        if (l > 0) {
            multiply(network->weight[l], network->bias[l], values[from], network->sizes[l], outputs, values[1 - from]);
            from = 1 - from;
        }
        if (l + 1 == network->layers)
            break;
        for (int o = lane_of_thread(); o < outputs; o += LANES)
            values[from][o] = network->gelu ? sk_learn_gelu(values[from][o]) : sk_learn_tanh(values[from][o]);
        __syncwarp();
    }
    return values[from];
}

/* A cell and its warp. */
typedef struct cell_search {
    const sk_step *step;
    const sk_cuda_splash_model *model;
    const sk_cuda_splash_arrays *arrays;
    const sk_splash_looks *looks;
    const sk_splash_cells *cells;
    const sk_splash_frame *frame;
    const float *features;
    float *products, *values[2]; /* of the first layer with the features; of two layers */
    int block, cell;
    uint32_t begin, end; /* particles */
} cell_search;

/* Sources drive some particles, and solid ones stay: can_leave of methods/splashes/splash_find_dim.c. */
SK_DEVICE int can_leave(const cell_search *in, uint32_t p)
{
    return !sk_splash_is_driven(in->step->particles.records[p].flags) && splash_is_melted(in->step, in->arrays, p);
}

/* The features of a candidate, in every lane. */
SK_DEVICE void find_own(const cell_search *in, uint32_t p, float own[OWN])
{
    const sk_grid *grid = &in->step->grid;
    const sk_particle *particle = &in->step->particles.records[p];
    float fraction[3] = {0.0f, 0.0f, 0.0f}, velocity[3];
    int corner = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float at = (particle->position[d] - (float)grid->corner[d]) / (float)grid->cell_size -
                         (float)(grid->coordinates[in->block][d] * SK_BLOCK_N) - 0.5f;
        corner += (sk_splash_lower(at, SK_BLOCK_N, &fraction[d]) + HALO) * tile_step(d);
    }
    sk_splash_own_features(in->cells, &in->model->options, tile_place(in->cell), corner, fraction, in->frame, velocity,
                           own);
}

SK_DEVICE float find_logit(const cell_search *in, const float own[OWN])
{
    const sk_cuda_network *network = &in->model->classifier;
    const int width = network->sizes[1];
    multiply(network->weight[0] + (size_t)in->model->cell_count * (size_t)width, in->products, own, OWN, width,
             in->values[0]);
    const float logit = go_on(network, in->values)[0];
    __syncwarp();
    return logit;
}

/* Marks a particle, with the change of its velocity along the axes of the scene. */
SK_DEVICE void choose(const cell_search *in, uint32_t p, const float own[OWN], int mark)
{
    const sk_cuda_splash_model *model = in->model;
    const sk_cuda_network *network = &model->modifier;
    const int width = network->sizes[1];
    multiply(network->weight[0], network->bias[0], in->features, model->cell_count, width, in->values[0]);
    multiply(network->weight[0] + (size_t)model->cell_count * (size_t)width, in->values[0], own, OWN, width,
             in->values[0]);
    const float *outputs = go_on(network, in->values);
    const uint32_t id = in->step->particles.records[p].id;
    if (lane_of_thread() == 0) {
        float *change = in->arrays->change[p];
        change[0] = change[1] = change[2] = 0.0f;
        for (int n = 0; n < SELKIE_DIM; n++) {
            const float along = sk_splash_change_along(model->normal, model->spread[n], outputs[n],
                                                       outputs[SELKIE_DIM + n], sk_splash_chance(in->looks, id, n));
            change[in->frame->axis[n]] = in->frame->sign[n] * along * model->speed;
        }
        in->arrays->chosen[p] = (uint8_t)mark;
    }
    __syncwarp();
}

/* One particle of the cell, drawn at random, stands for all. Returns whether it becomes a droplet. */
SK_DEVICE int search_drawn(const cell_search *in)
{
    float own[OWN];
    int count = 0;
    for (uint32_t p = in->begin; p < in->end; p++)
        count += can_leave(in, p);
    if (!count)
        return 0;
    int left = sk_splash_drawn(in->looks, in->cell, in->step->grid.coordinates[in->block], SELKIE_DIM, count);
    uint32_t p = in->begin;
    while (!can_leave(in, p) || left-- > 0)
        p++;
    find_own(in, p, own);
    if (!sk_splash_passes(in->looks, in->step->particles.records[p].id, find_logit(in, own), (float)count))
        return 0;
    choose(in, p, own, SK_CUDA_LEAVES);
    return 1;
}

/* The particle that lies farthest towards the air; `end` = none. */
SK_DEVICE uint32_t find_outermost(const cell_search *in)
{
    float slope[SELKIE_DIM], least = INFINITY;
    uint32_t found = in->end;
    const int place = tile_place(in->cell);
    for (int d = 0; d < SELKIE_DIM; d++)
        slope[d] =
            sk_splash_wet(in->cells->fill[place + tile_step(d)]) - sk_splash_wet(in->cells->fill[place - tile_step(d)]);
    for (uint32_t p = in->begin; p < in->end; p++) {
        const float *position = in->step->particles.records[p].position;
        float depth = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            depth += slope[d] * position[d];
        if (depth < least && can_leave(in, p)) {
            least = depth;
            found = p;
        }
    }
    return found;
}

/* All particles of the cell, unless the outermost one is calm. Returns whether one becomes a droplet: the first. */
SK_DEVICE int search_all(const cell_search *in)
{
    const uint32_t outermost = find_outermost(in);
    float own[OWN], *windows = (float *)(void *)in->step->particles.attributes[in->arrays->window].data;
    int found = 0;
    if (outermost == in->end)
        return 0;
    find_own(in, outermost, own);
    if (find_logit(in, own) < in->model->calm_logit)
        return 0;
    for (uint32_t p = in->begin; p < in->end; p++) {
        if (!can_leave(in, p))
            continue;
        find_own(in, p, own);
        const float logit = find_logit(in, own);
        float state[2] = {windows[2 * (size_t)p], windows[2 * (size_t)p + 1]};
        const int passes = sk_splash_passes_window(in->looks, logit, state);
        __syncwarp(); /* all lanes have the state before */
        if (lane_of_thread() == 0) {
            windows[2 * (size_t)p] = state[0];
            windows[2 * (size_t)p + 1] = state[1];
        }
        if (passes)
            choose(in, p, own, found ? SK_CUDA_CHOSEN : SK_CUDA_LEAVES);
        found |= passes;
    }
    return found;
}

/* The features of a batch of cells, and how many of them are beyond those of training. A thread a cell. */
SK_DEVICE void find_features(const sk_cuda_splash_model *model, const sk_splash_cells *cells, int first, int count,
                             splash_tile *tile, float *features, sk_cuda_splash_counts *counts)
{
    const int n = (int)threadIdx.x;
    if (n >= count)
        return;
    float *own = features + n * model->cell_count;
    int beyond = 0;
    sk_splash_cell_features(cells, &model->options, tile_place(tile->listed[first + n]), &tile->frames[n], own);
    for (int k = 0; k < model->cell_count; k++)
        beyond |= sk_splash_is_beyond(own[k], model->largest[k]);
    if (beyond)
        atomicAdd(&counts->beyond, 1ull);
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    find_splashes(const sk_step *step, const __grid_constant__ sk_cuda_splash_model model,
                  const __grid_constant__ sk_cuda_splash_arrays arrays, const __grid_constant__ sk_splash_looks looks,
                  int every)
{
    SK_CUDA_LARGE_SHARED(float, large, MOST_VALUES);
    __shared__ splash_tile tile;
    __shared__ int32_t slots[SK_NEIGHBOURS];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const int warp = (int)threadIdx.x / LANES, warps = (int)blockDim.x / LANES;
    float *features = large, *values = large + BATCH * model.cell_count + 3 * warp * model.widest;
    const sk_splash_cells cells = {{tile.velocity[0], tile.velocity[1], tile.velocity[SELKIE_DIM - 1]},
                                   tile.fill,
                                   {tile_step(0), tile_step(1), tile_step(2)},
                                   SELKIE_DIM};
    for (int block = 1 + (int)blockIdx.x; block <= grid->particle_blocks; block += (int)gridDim.x) {
        const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        if (!sk_splash_has_turn((int64_t)looks.step, grid->coordinates[block], SELKIE_DIM, every))
            continue;
        load_slots_around(grid, block, slots);
        load_fill(step, slots, block, &tile);
        if (threadIdx.x == 0)
            tile.count = 0;
        __syncthreads();
        list_cells(start, &tile);
        __syncthreads();
        const int count = tile.count;
        if (count)
            load_velocity(step, slots, model.options.velocity_reach == 1 ? 1 : SK_SPLASH_REACH, &tile);
        if (count && threadIdx.x == 0)
            atomicAdd(&arrays.counts->looks, (unsigned long long)count);
        for (int first = 0; first < count; first += BATCH) {
            const int in_batch = count - first < BATCH ? count - first : BATCH;
            __syncthreads();
            find_features(&model, &cells, first, in_batch, &tile, features, arrays.counts);
            __syncthreads();
            for (int n = warp; n < in_batch; n += warps) {
                const int c = tile.listed[first + n];
                const cell_search in = {step,
                                        &model,
                                        &arrays,
                                        &looks,
                                        &cells,
                                        &tile.frames[n],
                                        features + n * model.cell_count,
                                        values,
                                        {values + model.widest, values + 2 * model.widest},
                                        block,
                                        c,
                                        start[c],
                                        start[c + 1]};
                const sk_cuda_network *network = &model.classifier;
                multiply(network->weight[0], network->bias[0], in.features, model.cell_count, network->sizes[1],
                         in.products);
                const int leaves = arrays.window < 0 ? search_drawn(&in) : search_all(&in);
                if (leaves && lane_of_thread() == 0)
                    atomicAdd(&arrays.counts->events, 1ull);
            }
        }
    }
}

selkie_code SK_DIM(sk_cuda_find_splashes)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_splashes *s = (sk_splashes *)sk_step_state(step, &sk_method_splashes);
    SK_TRY(sk_cuda_begin(step, error));
    SK_TRY(sk_cuda_take_splashes(step, error));
    SK_TRY(sk_cuda_reserve_chosen(step, error));
    const sk_cuda_splashes *own = cuda->splashes;
    const size_t bytes =
        (BATCH * (size_t)own->model.cell_count + SK_CUDA_THREADS / LANES * 3 * (size_t)own->model.widest) *
        sizeof(float);
    sk_splash_begin_looks(step, s);
    SK_CUDA_TRY(cudaMemsetAsync(own->arrays.chosen, 0, own->particle_room, cuda->stream), "splashes", error);
    SK_CUDA_TRY(cudaMemsetAsync(own->arrays.counts, 0, sizeof *own->arrays.counts, cuda->stream), "splashes", error);
    SK_LAUNCH_LARGE(cuda, find_splashes, SK_CUDA_WIDE / 2, SK_CUDA_THREADS, bytes, &cuda->device->step, own->model,
                    own->arrays, s->looks, s->every);

    /* They are here when the results of the move are. */
    SK_CUDA_TRY(cudaMemcpyAsync(own->counts.here, own->counts.there, sizeof *own->arrays.counts, cudaMemcpyDeviceToHost,
                                cuda->stream),
                "splashes", error);
    SK_CUDA_TRY(cudaGetLastError(), "splashes", error);
    return SELKIE_OK;
}

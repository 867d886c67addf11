/* The density projection on the GPU: the plain form of idp/, a thread a cell or a particle. */
#include "cuda/device.h"

#include "grid/run_masks.h"
#include "grid/extrapolate_plain.h"
#include "methods/idp/idp_plain.h"

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/grid_parts.h"
#include "cuda/poisson_parts.h"
#include "cuda/solids_parts.h"
#include "cuda/sort_parts.h"

#define SK_IDP_DISTANCE distance_once
#define SK_IDP_VELOCITY velocity_of_solids
#define SK_IDP_SWEEP(solids, low, high, from, to) sk_sweep_displaced(solids, low, high, from, to, 0.0)
#include "methods/idp/idp_solids_plain.h"

/* --- density --- */

/* Rows that kernels of particles reach, as runs: sk_plain_row_is_reached, with each cell in and around the block looked
 * up once. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS) find_reached(const sk_step *step)
{
    enum { SIDE = SK_BLOCK_N + 2, ROWS = SELKIE_DIM == 3 ? SIDE * SIDE : SIDE };
    SK_CUDA_WAIT();
    __shared__ int filled[ROWS];
    __shared__ unsigned runs[2];
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell whole = {block, 0};
        for (int row = (int)threadIdx.x; row < ROWS; row += (int)blockDim.x)
            filled[row] = 0;
        if (threadIdx.x < 2)
            runs[threadIdx.x] = 0;
        __syncthreads();
        for (int n = (int)threadIdx.x; n < SIDE * ROWS; n += (int)blockDim.x) {
            const int offset[3] = {n % SIDE - 1, n / SIDE % SIDE - 1, SELKIE_DIM == 3 ? n / SIDE / SIDE - 1 : 0};
            uint32_t begin, end;
            sk_plain_particles(grid, sk_plain_beside(grid, whole, offset), &begin, &end);
            if (begin < end)
                filled[n / SIDE] = 1;
        }
        __syncthreads();
        for (int row = (int)threadIdx.x; row < SK_BLOCK_CELLS / SK_BLOCK_N; row += (int)blockDim.x) {
            const int j = row % SK_BLOCK_N, k = row / SK_BLOCK_N, first = row * SK_BLOCK_N;
            int reached = 0;
            for (int n = 0; n < (SELKIE_DIM == 3 ? 9 : 3); n++)
                reached |= filled[j + n % 3 + SIDE * (SELKIE_DIM == 3 ? k + n / 3 : 0)];
            if (reached)
                atomicOr(&runs[first / 256], ((1u << SK_BLOCK_N / 8) - 1) << first / 8 % 32);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            grid->runs[SK_RUNS_REACHED][block] = (uint64_t)runs[0] | (uint64_t)runs[1] << 32;
        __syncthreads();
    }
}

static void launch_density(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH(cuda, find_reached, SK_CUDA_WIDE, SK_CUDA_THREADS, step);
    SK_DIM(sk_cuda_launch_weigh)(cuda, host);
}

selkie_code SK_DIM(sk_cuda_density)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "density", launch_density, error);
}

/* --- overfull cells --- */

/* Lower corner of a cell, m. */
SK_DEVICE void corner_of_cell(const sk_grid *grid, sk_plain_cell cell, double corner[3])
{
    int at[3];
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < 3; d++)
        corner[d] = grid->corner[d] + at[d] * grid->cell_size;
}

/* Lists the overfull cells, in an arbitrary order. Those that an obstacle cuts are spread at once. The list takes the
 * memory of the sort, which is over. */
template <bool AMONG_OBSTACLES>
static __global__ void find_overfull(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    if (!step->scene->idp.redistribute)
        return;
    const uint32_t *material = step->relative_density ? step->particles.attributes[constants->material].data : nullptr;
    SK_CUDA_EACH_CELL(cell, step)
    {
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);
        if ((int64_t)(last - first) <= step->particles_per_cell)
            continue;
        const size_t solid = sk_plain_solid_index(solids, cell);
        if (!((double)total_density(step, cell) > step->scene->idp.density_max) || solids->closed[solid])
            continue;
        /* Does a solid cut the cell? A wall of the domain, along a face, does not. */
        const double whole = solids->plain[solids->block_slot[cell.slot]] ? 0.45 : 0.5 * sqrt((double)SELKIE_DIM);
        int64_t moved = last - first;
        if (AMONG_OBSTACLES && solids->distance[solid] < (float)whole) {
            double corner[3];
            corner_of_cell(grid, cell, corner);
            moved = idp_spread_cell(step, step->particles.records + first, material ? material + first : nullptr, moved,
                                    corner, 1);
        } else {
            data->order[atomicAdd(&data->overfull, 1u)] = (uint32_t)sk_plain_index(cell);
        }
        atomicAdd((unsigned long long *)&data->results.redistributed, (unsigned long long)moved);
    }
}

enum { SPREAD_WARPS = SK_CUDA_THREADS / 32 };

/* Mean velocity of the particles of a cell by the threads of a warp: idp_mean_velocity, where all have the same mass.
 * The sum has its order. */
SK_DEVICE void mean_of_warp(const sk_particle *records, int64_t count, double (*shares)[3], double mean[3])
{
    const int lane = (int)threadIdx.x % 32;
    mean[0] = mean[1] = mean[2] = 0.0;
    for (int64_t first = 0; first < count; first += 32) {
        const int64_t left = count - first < 32 ? count - first : 32;
        for (int d = 0; lane < left && d < SELKIE_DIM; d++)
            shares[lane][d] = (double)records[first + lane].velocity[d] / (double)count;
        __syncwarp();
        for (int p = 0; p < left; p++)
            for (int d = 0; d < SELKIE_DIM; d++)
                mean[d] += shares[p][d];
        __syncwarp();
    }
}

/* Spreads the particles of the listed cells, a warp a cell. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    spread(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    __shared__ double shares[SPREAD_WARPS][32][3];
    const sk_grid *grid = &step->grid;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const uint32_t *material = step->relative_density ? step->particles.attributes[constants->material].data : nullptr;
    for (unsigned n = blockIdx.x * SPREAD_WARPS + (unsigned)warp; n < data->overfull; n += gridDim.x * SPREAD_WARPS) {
        const sk_plain_cell cell = {(int)(data->order[n] / SK_BLOCK_CELLS), (int)(data->order[n] % SK_BLOCK_CELLS)};
        uint32_t first, last;
        double corner[3], mean[3];
        sk_plain_particles(grid, cell, &first, &last);
        sk_particle *records = step->particles.records + first;
        const int64_t count = last - first, per_axis = idp_refine(count, 0);
        corner_of_cell(grid, cell, corner);
        if (step->relative_density)
            idp_mean_velocity(step, records, material + first, count, mean);
        else
            mean_of_warp(records, count, shares[warp], mean);
        __syncwarp();
        for (int64_t p = lane; p < count; p += 32)
            idp_spread_particle(step, corner, per_axis, sk_idp_sub_cell(p, count, idp_sub_cells(per_axis)), mean,
                                records[p].position, &records[p]);
        __syncwarp();
    }
}

/* --- particles inside solids --- */

static __global__ void clear_pushes(const sk_step *step)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH_CELL(cell, step)
    {
        uint32_t first, last;
        for (int d = 0; d < SELKIE_DIM; d++)
            grid->fields[SK_FIELD_CHANGE_X + d][sk_plain_index(cell)] = 0.0f;
        if (!step->solids.block_slot[cell.slot])
            continue;
        sk_plain_particles(grid, cell, &first, &last);
        for (uint32_t p = first; p < last; p++)
            step->particles.records[p].flags &= ~(uint32_t)SK_PARTICLE_INSIDE;
    }
}

static __global__ void find_intruders(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH_CELL(cell, step)
    {
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);
        if (first == last || !step->solids.block_slot[cell.slot] ||
            (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) != SK_CELL_SOLID)
            continue;
        const int64_t pushed = idp_push_cell(step, step->particles.records + first, last - first, sk_plain_index(cell));
        if (pushed)
            atomicAdd((unsigned long long *)&data->results.intruders, (unsigned long long)pushed);
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
        mark_runs(is_needy(step, cell), runs);
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

static __global__ void begin_correction(const sk_step *step, sk_cuda_solver *solver, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const selkie_idp_def *def = &step->scene->idp;
    /* The tolerance is the largest density error left in any cell. */
    solver->tolerance = def->tolerance > 0.0 ? def->tolerance : step->scene->pressure.tolerance;
    solver->norm = SELKIE_NORM_MAX;
    solver->max_iterations = step->scene->pressure.max_iterations;
    begin_solve(step, solver);
    data->results.unseen = data->results.needy = 0;
    data->results.redistributed = data->results.intruders = 0;
    data->overfull = 0;
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    build_rows(const sk_step *step, sk_cuda_data *data, sk_cuda_solver *solver, int local, int pushing)
{
    SK_CUDA_WAIT();
    int64_t unseen = 0;
    clear_maps(solver);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        if (has_liquid_row(&step->grid, cell))
            build_idp_row(step, cell, local, pushing, &unseen);
        else
            clear_row(&step->grid, cell);
    }
    if (unseen)
        atomicAdd((unsigned long long *)&data->results.unseen, (unsigned long long)unseen);
}

SK_DEVICE void report_density(const sk_cuda_solver *solver, sk_cuda_data *data)
{
    data->results.density.iterations = solver->iteration;
    data->results.density.converged = solver->converged;
    data->results.density.broken = solver->broken;
    data->results.density.unknowns = solver->unknowns[0];
    data->results.density.residual = solver->residual;
    data->results.density.twice = solver->state.twice;
}

/* The potential in and around a block, and whether there is liquid. `among_solids`: some face there may not be open. */
typedef struct potential_tile {
    float potential[KNOWN_TILE];
    uint8_t liquid[KNOWN_TILE];
    int32_t slots[SK_NEIGHBOURS];
    int among_solids;
} potential_tile;

SK_DEVICE int known_stride(int axis)
{
    return axis == 0 ? 1 : axis == 1 ? KNOWN_SIDE : KNOWN_SIDE * KNOWN_SIDE;
}

/* By all threads of a thread block. */
SK_DEVICE void load_potential_tile(const sk_step *step, int block, potential_tile *tile)
{
    const sk_grid *grid = &step->grid;
    const int n_around = (int)threadIdx.x;
    load_slots_around(grid, block, tile->slots);
    const int among = __syncthreads_or(n_around < SK_NEIGHBOURS && step->solids.block_slot[tile->slots[n_around]] != 0);
    if (n_around == 0)
        tile->among_solids = among;
    for (int n = (int)threadIdx.x; n < KNOWN_TILE; n += (int)blockDim.x) {
        const size_t from = cell_of_known_tile(tile->slots, n);
        tile->potential[n] = grid->fields[SK_FIELD_POTENTIAL][from];
        tile->liquid[n] = (grid->kinds[from] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
    }
    __syncthreads();
}

/* sharpened_descent from a tile; the cell is at `place` in it. */
SK_DEVICE float sharpened_in_tile(const sk_step *step, const potential_tile *tile, sk_plain_cell cell, int place, int d,
                                  float descent)
{
    const int back = known_stride(d);
    float across = 0.0f;
    const float own = tile->potential[place - back] - tile->potential[place];
    const int inside = tile->liquid[place] && tile->liquid[place - back] &&
                       (!tile->among_solids || open_fraction_at(step, cell, d) == 1.0f);
    SK_KERNEL_UNROLL
    for (int side = 0; inside && side < 2 * SELKIE_DIM; side++) {
        if (side / 2 == d)
            continue;
        const int other = place + (side % 2 ? 1 : -1) * known_stride(side / 2);
        if (!tile->liquid[other] || !tile->liquid[other - back] ||
            (tile->among_solids &&
             open_fraction_at(step, sk_plain_next(&step->grid, cell, side / 2, side % 2 ? 1 : -1), d) != 1.0f))
            continue;
        across += tile->potential[other - back] - tile->potential[other] - own;
    }
    return sk_idp_sharpened_by(descent, across);
}

/* gather_descent likewise. Depths matter at the surface alone. */
SK_DEVICE float descent_in_tile(const sk_step *step, const potential_tile *tile, sk_plain_cell cell, int place, int d,
                                int *beside_liquid)
{
    const int back = known_stride(d);
    sk_liquid_cell above = {tile->liquid[place], 0.0f}, below = {tile->liquid[place - back], 0.0f};
    *beside_liquid = above.liquid || below.liquid;
    if (above.liquid != below.liquid) {
        const float *depth = step->grid.fields[SK_FIELD_DEPTH];
        above.depth = depth[sk_plain_index(cell)];
        below.depth = depth[sk_plain_index(sk_plain_next(&step->grid, cell, d, -1))];
    }
    return sk_liquid_descent(&below, &above, tile->potential[place - back], tile->potential[place],
                             step->scene->pressure.surface == SELKIE_SURFACE_VOXEL);
}

/* displace_faces, a thread a cell. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS, 3)
    find_displacements(const sk_step *step, const sk_cuda_solver *solver, sk_cuda_data *data, int local, int pushing)
{
    SK_CUDA_WAIT();
    __shared__ potential_tile tile;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        report_density(solver, data);
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const idp_reach reach = reach_of_block(step, block, local, pushing);
        float displacement[SELKIE_DIM];
        int place = 0;
        if (reach.reached)
            load_potential_tile(step, block, &tile);
        for (int d = 0; d < SELKIE_DIM; d++)
            place += (sk_plain_along(cell.local, d) + 1) * known_stride(d);
        SK_KERNEL_UNROLL
        for (int d = 0; d < SELKIE_DIM; d++) {
            if (!asks_for_descent(step, &reach, cell, d, &displacement[d]))
                continue;
            int beside_liquid;
            const float descent = descent_in_tile(step, &tile, cell, place, d, &beside_liquid);
            displacement[d] = displacement_of(step, &reach, cell, d, beside_liquid,
                                              sharpened_in_tile(step, &tile, cell, place, d, descent), pushing);
        }
        SK_KERNEL_UNROLL
        for (int d = 0; d < SELKIE_DIM; d++)
            grid->fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)] = displacement[d];
    }
}

/* A copy of the displacements in the cells of a block and around it. Unknown ones have the mean of those beside them if
 * particles reach them: the extrapolation by one layer, where it is needed. Pushes of solids may be known far from
 * liquid, and are not continued there. By all threads of a thread block. */
SK_DEVICE void load_displacements(const sk_grid *grid, int block, int pushing, float *tile)
{
    __shared__ int32_t slots[SK_NEIGHBOURS];
    __shared__ int32_t near_liquid[SK_NEIGHBOURS];
    load_slots_around(grid, block, slots);
    if (pushing) {
        if (threadIdx.x < SK_NEIGHBOURS) {
            int near = 0;
            for (int n = 0; n < SK_NEIGHBOURS; n++)
                near |= grid->block_flags[grid->neighbours[slots[threadIdx.x]][n]] & SK_BLOCK_LIQUID;
            near_liquid[threadIdx.x] = near;
        }
        __syncthreads();
    }
    const float *fields[SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++)
        fields[d] = grid->fields[SK_FIELD_VELOCITY_X + d];
    for (int n = (int)threadIdx.x; n < KNOWN_TILE; n += (int)blockDim.x) {
        const size_t from = cell_of_known_tile(slots, n);
        for (int d = 0; d < SELKIE_DIM; d++)
            SK_CUDA_COPY(tile + d * KNOWN_TILE + n, fields[d] + from);
    }
    SK_CUDA_COPIES_HERE();
    for (int n = (int)threadIdx.x; n < KNOWN_TILE; n += (int)blockDim.x) {
        float values[SELKIE_DIM];
        int unknown = 0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            values[d] = tile[d * KNOWN_TILE + n];
            unknown |= values[d] != values[d];
        }
        if (!unknown)
            continue;
        int at[3];
        place_in_known_tile(n, at);
        const size_t from = index_around(slots, at);
        const sk_plain_cell cell = {(int)(from / SK_BLOCK_CELLS), (int)(from % SK_BLOCK_CELLS)};
        if (cell.slot && is_wanted(grid->runs[SK_RUNS_REACHED], cell) && (!pushing || near_liquid[neighbour_at(at)]))
            for (int d = 0; d < SELKIE_DIM; d++)
                values[d] = filled_value(grid, fields[d], cell);
        for (int d = 0; d < SELKIE_DIM; d++)
            tile[d * KNOWN_TILE + n] = sk_known_or_zero(values[d]);
    }
}

template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS, AMONG_OBSTACLES ? 1 : 5)
    displace(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data, int local, int pushing)
{
    __shared__ float tile[SELKIE_DIM * KNOWN_TILE];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const sorted_grid sorted = grid_to_sort(grid);
    const uint32_t *body = constants->body >= 0 ? step->particles.attributes[constants->body].data : nullptr;
    const uint32_t *places =
        constants->frozen_at >= 0 ? step->particles.attributes[constants->frozen_at].data : nullptr;
    sk_particle *const records = step->particles.records;
    const int parts = parts_of_blocks(grid), items = grid->particle_blocks * parts;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int block = 1 + item / parts;
        uint32_t begin, end;
        particles_of_part(grid, block, item % parts, parts, &begin, &end);
        const int still = local && !grid->runs[SK_RUNS_MOVED][block];
        if (begin == end)
            continue;
        const sk_plain_cell whole = {block, 0};
        int corner[3] = {0, 0, 0};
        sk_plain_coordinates(grid, whole, corner);
        __syncthreads();
        if (threadIdx.x == 0)
            ask_for_particles(records, begin, begin + 3 * blockDim.x, end);
        if (!still)
            load_displacements(grid, block, pushing, tile);
        __syncthreads();
        const int32_t *where = grid->coordinates[block];
        const int own_place = where[0] + sorted.blocks[0] * (where[1] + sorted.blocks[1] * where[2]);
        int stay = 0;
        const uint32_t mine = begin + threadIdx.x < end ? begin + threadIdx.x : begin;
        float4 next = *(const float4 *)(const void *)&records[mine];
        for (uint32_t p = begin + threadIdx.x; p < end; p += blockDim.x) {
            float4 *record = (float4 *)(void *)&records[p];
            float4 half = next; /* the next one is on its way meanwhile */
            next = *(const float4 *)(const void *)&records[p + blockDim.x < end ? p + blockDim.x : p];
            if (threadIdx.x == 0)
                ask_for_particles(records, p + 3 * blockDim.x, p + 4 * blockDim.x, end);
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
            const int moves = !still && (!local || run_has(grid->runs[SK_RUNS_MOVED], cell)) && !(body && body[p]);
            if (moves) {
                displace_particle(&frame, &constants->displacement, tile, corner, at, position);
                if (places && (places[3 * (size_t)p] | places[3 * (size_t)p + 1] | places[3 * (size_t)p + 2]))
                    memcpy(position, places + 3 * (size_t)p, SELKIE_DIM * sizeof *position);
                if (!AMONG_OBSTACLES)
                    wrap_position(grid, position);
            }
            if (AMONG_OBSTACLES) {
                sk_particle particle = load_particle(&step->particles.records[p]);
                const float before[3] = {half.x, half.y, half.z};
                for (int d = 0; d < SELKIE_DIM; d++)
                    particle.position[d] = position[d];
                sweep_displaced(step, constants, data, before, &particle);
                wrap_position(grid, particle.position);
                store_particle(&step->particles.records[p], particle);
                mark_place(&sorted, data, p, particle.position, 0);
                continue;
            }
            half.x = position[0], half.y = position[1], half.z = position[2];
            if (moves)
                *record = half;
            stay |= find_key(sorted.corner, sorted.inverse, sorted.blocks, data, p, position, 0, own_place);
        }
        if (stay && !data->marked[own_place])
            data->marked[own_place] = 1;
    }
}

/* Overfull cells, and particles inside solids. */
static void launch_overfull(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH_SIMPLE(cuda, begin_correction, 1, 1, step, cuda->solver, cuda->data);
    const sk_cuda_constants *constants = &cuda->device->constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH_SIMPLE(cuda, find_overfull<true>, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    else
        SK_LAUNCH_SIMPLE(cuda, find_overfull<false>, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    SK_LAUNCH(cuda, spread, SK_CUDA_WIDE / 2, SK_CUDA_THREADS, step, constants, cuda->data);
    if (host->scene->idp.solids == SELKIE_IDP_PUSH_OUT && host->solids.obstacle_count) {
        SK_LAUNCH_SIMPLE(cuda, clear_pushes, SK_CUDA_WIDE, SK_CUDA_THREADS, step);
        SK_LAUNCH_SIMPLE(cuda, find_intruders, SK_CUDA_WIDE, SK_CUDA_THREADS, step, cuda->data);
    }
}

static void launch_system(sk_cuda *cuda, const sk_step *host, int local, int pushing)
{
    const sk_step *step = &cuda->device->step;
    if (local)
        launch_region(cuda);
    SK_LAUNCH_SIMPLE(cuda, build_rows, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data, cuda->solver, local,
                     pushing);
    SK_DIM(sk_cuda_start_solve)(cuda, host);
}

static void launch_correction(sk_cuda *cuda, const sk_step *host, int local, int pushing)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_DIM(sk_cuda_end_solve)(cuda, host);
    SK_LAUNCH(cuda, find_displacements, one_each(cuda, 1), SK_BLOCK_CELLS, step, cuda->solver, cuda->data, local,
              pushing);
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, displace<true>, one_each(cuda, SK_CUDA_WIDE), SK_CUDA_THREADS, step, constants, cuda->data,
                  local, pushing);
    else
        SK_LAUNCH(cuda, displace<false>, one_each(cuda, SK_CUDA_WIDE), SK_CUDA_THREADS, step, constants, cuda->data,
                  local, pushing);
}

/* The three kinds of a correction: of all cells, of all cells with solids that push, of a region. Without obstacles the
 * first graph begins with the overfull cells. */
template <int LOCAL, int PUSHING> static void launch_system_of(sk_cuda *cuda, const sk_step *host)
{
    if (!host->solids.obstacle_count && !PUSHING)
        launch_overfull(cuda, host);
    launch_system(cuda, host, LOCAL, PUSHING);
}

template <int LOCAL, int PUSHING> static void launch_correction_of(sk_cuda *cuda, const sk_step *host)
{
    launch_correction(cuda, host, LOCAL, PUSHING);
}

/* Reports a correction, and whether another one follows: as sk_idp_correct_with. */
static selkie_code take_correction(sk_step *step, int local, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    const selkie_idp_def *def = &step->scene->idp;
    SK_TRY(sk_cuda_await_results(step, error));
    step->redistributed += results->redistributed;
    sk_cuda_remember_solve(step->cuda, local ? SK_CUDA_DENSITY_AGAIN : SK_CUDA_DENSITY, results->density.iterations,
                           results->density.twice);
    if (local && !results->needy)
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
    /* Solids that push decide about the system. */
    int pushing = 0;
    if (step->solids.obstacle_count) {
        SK_TRY(sk_cuda_run(step, "overfull", launch_overfull, error));
        SK_TRY(sk_cuda_read_results(step, error));
        pushing = step->cuda->results->intruders > 0;
        step->pushed_out = again ? step->pushed_out : step->cuda->results->intruders;
    }
    const int local = again && !pushing;
    SK_TRY(local     ? sk_cuda_run(step, "local_system", launch_system_of<1, 0>, error)
           : pushing ? sk_cuda_run(step, "pushed_system", launch_system_of<0, 1>, error)
                     : sk_cuda_run(step, "density_system", launch_system_of<0, 0>, error));
    SK_TRY(SK_DIM(sk_cuda_iterate)(step, local ? SK_CUDA_DENSITY_AGAIN : SK_CUDA_DENSITY, error));
    SK_TRY(local     ? sk_cuda_run(step, "density_again", launch_correction_of<1, 0>, error)
           : pushing ? sk_cuda_run(step, "density_pushed", launch_correction_of<0, 1>, error)
                     : sk_cuda_run(step, "density_correct", launch_correction_of<0, 0>, error));
    step->cuda->particles_here = 0;
    step->cuda->has_keys = 1;
    SK_TRY(sk_cuda_ask_results(step, error));
    if (!step->sorts_later)
        SK_TRY(SK_DIM(sk_cuda_sort_ahead)(step, error));
    return take_correction(step, local, error);
}

/* Not if a method sorts before anything needs the order. */
selkie_code SK_DIM(sk_cuda_sort_again)(sk_step *step, selkie_error *error)
{
    return step->sorts_later && !step->correct_again ? SELKIE_OK : SK_DIM(sk_cuda_sort)(step, error);
}

/* Heat on the GPU: transfers, the solve, and mixing within cells. A thread a cell runs the functions of
 * methods/heat/heat_plain.h; a thread block has a block of cells and a layer around it in shared memory where they need
 * tiles. Where a material melts, the host waits for each pass: whether cells have changed their phase. */
#include "cuda/device.h"

#include <float.h>

extern "C" {
#include "cuda/phases.h"
}
#include "cuda/solids_parts.h"
#define SK_HEAT_DISTANCE distance_once
#include "cuda/poisson_parts.h"
#include "methods/heat/heat_plain.h"

/* Heat on the device. Block 0 of the cells stays 0. */
struct sk_cuda_heat {
    sk_heat heat;                /* curves; the range of temperatures of this step */
    sk_heat_solve solve;         /* rows and faces are fields of the grid, and the system of the solver */
    double (*obstacles)[2];      /* temperature and heat exchange: see sk_heat_solve */
    unsigned long long range[2]; /* coldest and warmest: the bits of doubles */
    uint8_t *crowded;            /* [capacity] blocks with cells beyond the range */
    int any_crowded;
    /* Passes where something melts: see heat_dim.c. */
    int is_again;     /* a further pass: the solution of the last one is a start */
    int all;          /* the pass solves all blocks */
    uint8_t *reached; /* [capacity] HEAT_KEPT and so on */
    int32_t *changes; /* [capacity] cells that changed their phase in the last pass */
    double share;     /* largest part of a row that belongs to neighbours */
    int sweeps;       /* of the short form; the solver has nothing to do then, but for a residual */
    double start;     /* norm of the first residual over that of the right side */
    double mean;      /* K  of all that expands */
};

SK_DEVICE unsigned long long bits_of(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
SK_DEVICE double of_bits(unsigned long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

SK_DEVICE sk_heat_attributes attributes_of(const sk_step *step, const sk_cuda_constants *constants,
                                           const sk_cuda_heat *heat)
{
    const sk_attribute *all = step->particles.attributes;
    sk_heat_attributes a;
    a.enthalpy = all[constants->heat.enthalpy].data;
    a.temperature = (float *)(void *)all[constants->heat.temperature].data;
    a.liquid_fraction = nullptr;
    if (constants->heat.liquid_fraction >= 0)
        a.liquid_fraction = (float *)(void *)all[constants->heat.liquid_fraction].data;
    a.material = heat->heat.several ? all[constants->material].data : nullptr;
    return a;
}

/* Copies a field of a block and the cells around it to a tile; `absent` where there is no block. By all threads of a
 * thread block, after load_slots_around. */
template <typename T>
SK_DEVICE void load_tile(const int32_t slots[SK_NEIGHBOURS], const T *field, T absent, T tile[HEAT_TILE])
{
    for (int n = (int)threadIdx.x; n < HEAT_TILE; n += (int)blockDim.x) {
        const int at[3] = {n % HEAT_SIDE - 1, n / HEAT_SIDE % HEAT_SIDE - 1,
                           SELKIE_DIM == 3 ? n / HEAT_SIDE / HEAT_SIDE - 1 : 0};
        const size_t from = index_around(slots, at);
        tile[n] = from < SK_BLOCK_CELLS ? absent : field[from];
    }
}

/* The coefficients of the faces around a block. */
typedef struct face_tiles {
    float face[SELKIE_DIM][HEAT_TILE];
} face_tiles;

SK_DEVICE void load_faces(const int32_t slots[SK_NEIGHBOURS], const sk_heat_cells *cells, face_tiles *tiles,
                          const float *face[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        load_tile(slots, (const float *)cells->face[d], 0.0f, tiles->face[d]);
    face[0] = tiles->face[0], face[1] = tiles->face[1], face[2] = tiles->face[SELKIE_DIM - 1];
}

/* What the pass does with a block. */
SK_DEVICE int reach_of(const sk_cuda_heat *heat, int block)
{
    return heat->all ? (int)HEAT_SOLVED : heat->reached[block];
}

/* --- Particles to cells --- */

static __global__ void begin_heat(const sk_cuda_constants *constants, sk_cuda_heat *heat, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    data->results.heat.changed = 0;
    heat->is_again = 0;
    heat->all = 1;
    heat->share = 0.0;
    heat->range[0] = bits_of(constants->heat.coldest);
    heat->range[1] = bits_of(constants->heat.warmest);
    heat->solve.unit = constants->heat.unit;
    heat->any_crowded = 0;
}

/* New particles have a temperature and no enthalpy yet. They widen the range of temperatures, which are positive: their
 * bits are in their order. */
static __global__ void begin_particles(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    SK_CUDA_EACH(p, step->particles.count)
    if (sk_heat_begin(&heat->heat, &a, (int64_t)p)) {
        atomicMin(&heat->range[0], bits_of((double)a.temperature[p]));
        atomicMax(&heat->range[1], bits_of((double)a.temperature[p]));
    }
}

static __global__ void gather_heat(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    const sk_heat_cells *cells = &heat->solve.cells;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        heat->heat.coldest = of_bits(heat->range[0]);
        heat->heat.warmest = of_bits(heat->range[1]);
    }
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t here = sk_plain_index(cell);
        heat_gather_cell(step, &heat->heat, &a, cells, cell);
        cells->filled[here] = sk_heat_filled((float)(cells->capacity[here] / heat->heat.full_capacity));
        if (cell.local == 0)
            heat->crowded[cell.slot] = 0;
    }
}

/* --- Thermal expansion --- */

/* The mean temperature of all that expands. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    find_mean(const sk_step *step, sk_cuda_heat *heat, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_heat_cells *cells = &heat->solve.cells;
    double sums[2] = {0.0, 0.0};
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t here = sk_plain_index(cell);
        const double weight = heat->heat.curves[cells->material[here]].expansion * cells->capacity[here];
        sums[0] += weight;
        sums[1] += weight * cells->temperature[here];
    }
    if (sum_over_launch(data, sums, nullptr) && threadIdx.x == 0)
        heat->mean = sums[0] != 0.0 ? sums[1] / sums[0] : 0.0;
}

static __global__ void find_lightness(const sk_step *step, const sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    const sk_heat_cells *cells = &heat->solve.cells;
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t here = sk_plain_index(cell);
        const double expansion = heat->heat.curves[cells->material[here]].expansion;
        step->grid.fields[heat->heat.lightness][here] =
            cells->capacity[here] > 0.0 ? (float)(expansion * (cells->temperature[here] - heat->mean))
                                        : __builtin_nanf("");
    }
}

static __global__ void expand(const sk_step *step, const sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    const float *lightness = step->grid.fields[heat->heat.lightness];
    SK_CUDA_EACH_CELL(cell, step)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float kick = (float)(-step->scene->gravity[d] * sk_step_kick(step));
        const size_t here = sk_plain_index(cell), below = sk_plain_index(sk_plain_next(&step->grid, cell, d, -1));
        if (kick != 0.0f)
            step->grid.fields[SK_FIELD_VELOCITY_X + d][here] +=
                kick * sk_heat_face_lightness(lightness[below], lightness[here]);
    }
}

/* --- The system --- */

/* Coefficients of faces, surfaces and air. WARM: some obstacle has a temperature. */
template <bool WARM>
static __global__ void __launch_bounds__(SK_BLOCK_CELLS) find_faces(const sk_step *step, const sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    __shared__ float filled[HEAT_TILE];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const sk_heat_cells *cells = &heat->solve.cells;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t here = sk_plain_index(cell);
        const int n = heat_tile_index(cell.local);
        load_slots_around(&step->grid, block, slots);
        load_tile(slots, (const float *)cells->filled, 0.0f, filled);
        __syncthreads();
        for (int d = 0; d < SELKIE_DIM; d++) {
            const int below = n - heat_tile_step(d);
            float face = 0.0f;
            if (filled[n] > 0.0f && filled[below] > 0.0f)
                face = sk_heat_face(open_fraction_at(step, cell, d), filled[below], filled[n],
                                    cells->resistance[sk_plain_index(sk_plain_next(&step->grid, cell, d, -1))],
                                    cells->resistance[here], heat->heat.least_resistance);
            cells->face[d][here] = face;
        }
        cells->outside[here] = 0.0f;
        cells->supply[here] = 0.0;
        heat_add_outside(&heat->solve, WARM, cell, filled, n);
    }
}

/* Rows, and the solution without neighbours, or that of the last pass. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    build_rows(const sk_step *step, sk_cuda_heat *heat, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    __shared__ face_tiles faces;
    __shared__ double temperature[HEAT_TILE];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const sk_heat_cells *cells = &heat->solve.cells;
    double share = 0.0, none[1] = {0.0};
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const float *face[3];
        if (reach_of(heat, block) != HEAT_SOLVED)
            continue;
        load_slots_around(&step->grid, block, slots);
        load_faces(slots, cells, &faces, face);
        load_tile(slots, (const double *)cells->temperature, 0.0, temperature);
        __syncthreads();
        const size_t here = (size_t)block * SK_BLOCK_CELLS + threadIdx.x;
        const float last = heat->is_again ? cells->solution[here] : 0.0f;
        share = fmax(share, heat_build_row(&heat->solve, here, face, temperature, heat_tile_index((int)threadIdx.x)));
        if (last != 0.0f && cells->diagonal[here] > 0.0f)
            cells->solution[here] = last;
    }
    if (sum_over_launch(data, none, &share) && threadIdx.x == 0)
        heat->share = fmax(heat->share, share);
}

/* The residual of that solution as the right side of the solver, which starts from 0. Short steps leave it nothing to
 * do: sweeps take its place. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    start_heat(const sk_step *step, sk_cuda_heat *heat, sk_cuda_data *data, sk_cuda_solver *solver)
{
    SK_CUDA_WAIT();
    __shared__ face_tiles faces;
    __shared__ float solution[HEAT_TILE];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const sk_heat_cells *cells = &heat->solve.cells;
    double squares[2] = {0.0, 0.0};
    clear_maps(solver);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const float *face[3];
        const size_t here = (size_t)block * SK_BLOCK_CELLS + threadIdx.x;
        const int n = heat_tile_index((int)threadIdx.x);
        load_slots_around(&step->grid, block, slots);
        load_faces(slots, cells, &faces, face);
        load_tile(slots, (const float *)cells->solution, 0.0f, solution);
        __syncthreads();
        double left = (double)cells->right[here] - (double)cells->diagonal[here] * (double)solution[n];
        for (int d = 0; d < SELKIE_DIM && cells->diagonal[here] > 0.0f; d++) {
            const int along = heat_tile_step(d);
            left += (double)face[d][n] * (double)solution[n - along];
            left += (double)face[d][n + along] * (double)solution[n + along];
        }
        step->grid.fields[SK_FIELD_RIGHT_SIDE][here] = (float)left;
        squares[0] += (double)cells->right[here] * (double)cells->right[here];
        squares[1] += left * left;
    }
    if (!sum_over_launch(data, squares, nullptr) || threadIdx.x > 0)
        return;
    const double tolerance = step->scene->heat.tolerance;
    const int is_short = !(heat->share > SK_HEAT_MOST_SHARE);
    heat->start = squares[0] > 0.0 ? sqrt(squares[1] / squares[0]) : 0.0;
    heat->sweeps = is_short ? heat_sweeps(heat->share, tolerance) : 0;
    if (heat->is_again) /* blocks that are kept have a place in one array: an even number ends there */
        heat->sweeps += heat->sweeps % 2;
    heat->all |= !is_short;
    begin_solve(step, solver);
    solver->idle = is_short || heat->start <= tolerance;
    solver->norm = SELKIE_NORM_RELATIVE;
    solver->tolerance = solver->idle ? 1.0 : tolerance / heat->start;
    solver->max_iterations = step->scene->pressure.max_iterations;
}

/* --- The end of the solve --- */

/* A sweep from one array to the other, which holds the values of the sweep before. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    sweep(const sk_step *step, const sk_cuda_heat *heat, int number)
{
    SK_CUDA_WAIT();
    __shared__ face_tiles faces;
    __shared__ float solution[HEAT_TILE];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const sk_heat_cells *cells = &heat->solve.cells;
    const float *from = number % 2 ? cells->other : cells->solution;
    float *to = number % 2 ? cells->solution : cells->other;
    if (number >= heat->sweeps)
        return;
    double length = 1.0;
    for (int n = 0; n < number; n++)
        length = heat_next_step(heat->share, n, length);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const float *face[3];
        const size_t here = (size_t)block * SK_BLOCK_CELLS + threadIdx.x;
        if (reach_of(heat, block) != HEAT_SOLVED)
            continue;
        load_slots_around(&step->grid, block, slots);
        load_faces(slots, cells, &faces, face);
        load_tile(slots, from, 0.0f, solution);
        __syncthreads();
        to[here] = heat_sweep_cell(face, solution, heat_tile_index((int)threadIdx.x), cells->diagonal[here],
                                   cells->right[here], number ? to[here] : 0.0f, (float)length);
    }
}

SK_DEVICE void report_heat(const sk_cuda_heat *heat, const sk_cuda_solver *solver, sk_cuda_data *data)
{
    data->results.heat.iterations = solver->iteration;
    data->results.heat.converged = solver->idle || solver->converged;
    data->results.heat.broken = solver->broken;
    data->results.heat.unknowns = solver->unknowns[0];
    data->results.heat.twice = solver->state.twice;
    data->results.heat.residual = solver->residual * heat->start;
}

/* Changes of enthalpy from the fluxes at the new temperatures, and the phases for the next pass. The solver's part of
 * the temperatures is in POTENTIAL. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    find_changes(const sk_step *step, const sk_cuda_heat *heat, const sk_cuda_solver *solver, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    __shared__ face_tiles faces;
    __shared__ double temperature[HEAT_TILE];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const sk_heat_cells *cells = &heat->solve.cells;
    const float *solution = heat->sweeps % 2 ? cells->other : cells->solution;
    const float *further = step->grid.fields[SK_FIELD_POTENTIAL];
    if (blockIdx.x == 0 && threadIdx.x == 0)
        report_heat(heat, solver, data);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const float *face[3];
        const size_t here = (size_t)block * SK_BLOCK_CELLS + threadIdx.x;
        const int kept = reach_of(heat, block) == HEAT_KEPT;
        if (kept && threadIdx.x == 0)
            heat->changes[block] = 0;
        if (kept)
            continue;
        load_slots_around(&step->grid, block, slots);
        load_faces(slots, cells, &faces, face);
        for (int n = (int)threadIdx.x; n < HEAT_TILE; n += (int)blockDim.x) {
            const int at[3] = {n % HEAT_SIDE - 1, n / HEAT_SIDE % HEAT_SIDE - 1,
                               SELKIE_DIM == 3 ? n / HEAT_SIDE / HEAT_SIDE - 1 : 0};
            const size_t from = index_around(slots, at);
            temperature[n] =
                from < SK_BLOCK_CELLS ? 0.0 : cells->temperature[from] + (double)(solution[from] + further[from]);
        }
        __syncthreads();
        const int n = heat_tile_index((int)threadIdx.x);
        cells->change[here] = heat_change(&heat->solve, here, face, temperature, n);
        if (!heat->heat.melts)
            continue;
        const int changed = __syncthreads_count(heat_note_phase(&heat->solve, here, temperature[n]));
        if (threadIdx.x > 0)
            continue;
        heat->changes[block] = changed;
        if (changed)
            atomicAdd(&data->results.heat.changed, changed);
    }
}

/* --- Further passes --- */

/* The end of a pass: the solution, and the phases of the next one. */
static __global__ void end_pass(const sk_step *step, const sk_cuda_heat *heat, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_heat_cells *cells = &heat->solve.cells;
    const float *solution = heat->sweeps % 2 ? cells->other : cells->solution;
    const float *further = step->grid.fields[SK_FIELD_POTENTIAL];
    if (!data->results.heat.changed)
        return;
    SK_CUDA_EACH_CELL(cell, step)
    {
        const size_t here = sk_plain_index(cell);
        cells->solution[here] = solution[here] + further[here];
        if (reach_of(heat, cell.slot) != HEAT_KEPT)
            heat_take_phase(&heat->solve, here);
    }
}

static __global__ void begin_again(sk_cuda_heat *heat, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    data->results.heat.changed = 0;
    heat->is_again = 1;
    heat->all = heat->share > SK_HEAT_MOST_SHARE;
}

/* Where the sweeps of the last pass sufficed: the blocks in which or beside which cells changed their phase. */
static __global__ void choose_solved(const sk_step *step, sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->grid.block_count - 1)
    {
        const int block = (int)i + 1;
        int any = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            any |= heat->changes[step->grid.neighbours[block][n]] > 0;
        heat->reached[block] = (uint8_t)(any ? HEAT_SOLVED : HEAT_KEPT);
    }
}

static __global__ void choose_beside(const sk_step *step, sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->grid.block_count - 1)
    {
        const int block = (int)i + 1;
        int any = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            any |= heat->reached[step->grid.neighbours[block][n]] == HEAT_SOLVED;
        if (any && heat->reached[block] != HEAT_SOLVED)
            heat->reached[block] = HEAT_BESIDE_SOLVED;
    }
}

/* Sweeps go from one array to the other: both have the solution beside what they solve. */
static __global__ void copy_beside(const sk_step *step, const sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    if (reach_of(heat, cell.slot) == HEAT_BESIDE_SOLVED)
        heat->solve.cells.other[sk_plain_index(cell)] = heat->solve.cells.solution[sk_plain_index(cell)];
}

/* --- Cells to particles --- */

/* Gives the changes to the particles. */
static __global__ void scatter_heat(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    const sk_heat_cells *cells = &heat->solve.cells;
    SK_CUDA_EACH_CELL(cell, step)
    {
        heat_scatter_cell(step, &heat->heat, &a, cells, cell);
        if (cells->phase[sk_plain_index(cell)] == SK_HEAT_BEYOND)
            heat->crowded[cell.slot] = heat->any_crowded = 1;
    }
}

/* Cells without room for what their particles have beyond the range. They ask for help in their order, since two may
 * share a helper: a cell has its turn when no earlier one within reach is left, so that cells far apart go together. */
enum {
    LIMITED = 1024,    /* cells of a list */
    LIMIT_CONFLICT = 4 /* cells: help comes from two cells away */
};
typedef struct limited_cell {
    int block, local; /* local -1 = done */
    int at[3];
} limited_cell;

/* May two cells share a helper? */
SK_DEVICE int share_helpers(const sk_grid *grid, const limited_cell *a, const limited_cell *b)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int around = grid->periodic >> d & 1 ? grid->blocks[d] * SK_BLOCK_N : 0;
        const int apart = abs(a->at[d] - b->at[d]);
        if (apart > LIMIT_CONFLICT && (!around || around - apart > LIMIT_CONFLICT))
            return 0;
    }
    return 1;
}

/* Helps the cells of a list. One thread block. */
SK_DEVICE void help_list(const sk_step *step, const sk_heat_attributes *a, const sk_cuda_heat *heat, limited_cell *list,
                         int count)
{
    __shared__ uint8_t turn[LIMITED];
    int left = 1;
    while (left) {
        int waits = 0;
        for (int n = (int)threadIdx.x; n < count; n += (int)blockDim.x) {
            int is = list[n].local >= 0;
            for (int before = 0; is && before < n; before++)
                is = list[before].local < 0 || !share_helpers(&step->grid, &list[n], &list[before]);
            turn[n] = (uint8_t)is;
            waits |= list[n].local >= 0 && !is;
        }
        left = __syncthreads_or(waits);
        for (int n = (int)threadIdx.x; n < count; n += (int)blockDim.x) {
            const sk_plain_cell cell = {list[n].block, list[n].local};
            if (!turn[n])
                continue;
            heat_limit_with_help(&heat->solve, a, cell);
            list[n].local = -1;
        }
        __threadfence_block();
        __syncthreads();
    }
}

/* They are rare. One thread block. */
static __global__ void __launch_bounds__(SK_CUDA_ONE)
    limit_cells(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    __shared__ limited_cell list[LIMITED];
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    const sk_grid *grid = &step->grid;
    const int blocks = grid->particle_blocks, wide = (int)blockDim.x;
    int count = 0;
    for (int first = 1; heat->any_crowded && first <= blocks; first += wide) {
        const int own = first + (int)threadIdx.x;
        if (!__syncthreads_or(own <= blocks && heat->crowded[own]))
            continue;
        for (int block = first; block <= blocks && block < first + wide; block++) {
            if (!heat->crowded[block])
                continue;
            for (int from = 0; from < SK_BLOCK_CELLS; from += wide) {
                const sk_plain_cell cell = {block, from + (int)threadIdx.x};
                const int is =
                    cell.local < SK_BLOCK_CELLS && heat->solve.cells.phase[sk_plain_index(cell)] == SK_HEAT_BEYOND;
                int found;
                const int before = sk_cuda_scan(is, &found);
                if (count + found > LIMITED) {
                    help_list(step, &a, heat, list, count);
                    count = 0;
                }
                if (is) {
                    limited_cell *entry = &list[count + before];
                    entry->block = block;
                    entry->local = cell.local;
                    for (int d = 0; d < SELKIE_DIM; d++)
                        entry->at[d] =
                            grid->coordinates[block][d] * SK_BLOCK_N + (cell.local >> d * SK_BLOCK_LOG & SK_BLOCK_MASK);
                }
                count += found;
                __syncthreads();
            }
        }
    }
    if (count)
        help_list(step, &a, heat, list, count);
}

/* --- Mixing --- */

/* The solve needs these arrays no more. */
SK_DEVICE sk_heat_ranges ranges_of(const sk_cuda_heat *heat)
{
    const sk_heat_cells *cells = &heat->solve.cells;
    const sk_heat_ranges ranges = {cells->supply, cells->enthalpy, cells->temperature};
    return ranges;
}

static __global__ void measure_ranges(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    const sk_heat_ranges ranges = ranges_of(heat);
    SK_CUDA_EACH_CELL(cell, step)
    heat_measure_cell(step, &heat->heat, &a, &ranges, cell);
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    mix_cells(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_heat *heat)
{
    SK_CUDA_WAIT();
    __shared__ double means[HEAT_TILE];
    __shared__ int32_t slots[SK_NEIGHBOURS];
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    const sk_heat_ranges ranges = ranges_of(heat);
    for (int block = 1 + (int)blockIdx.x; block <= step->grid.particle_blocks; block += (int)gridDim.x) {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t here = sk_plain_index(cell);
        uint32_t first, last;
        load_slots_around(&step->grid, block, slots);
        load_tile(slots, (const double *)ranges.mean, (double)__builtin_nanf(""), means);
        __syncthreads();
        sk_plain_particles(&step->grid, cell, &first, &last);
        if (last - first < 2)
            continue;
        const double mean = ranges.mean[here], spread = heat_spread_of(means + heat_tile_index(cell.local));
        if (fmax(ranges.warmest[here] - mean, mean - ranges.coldest[here]) > spread)
            heat_mix_cell(&heat->heat, &a, &constants->heat.mixing, first, last, mean, spread);
    }
}

/* --- Sums --- */

static __global__ void begin_sums(sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    data->results.heat.range[0] = bits_of(DBL_MAX);
    data->results.heat.range[1] = 0;
}

/* Energy and range of temperatures of the particles. */
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    sum_heat(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_heat *heat, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_heat_attributes a = attributes_of(step, constants, heat);
    sk_heat_sums sums = {0.0, DBL_MAX, 0.0};
    SK_CUDA_EACH(p, step->particles.count)
    {
        const sk_heat_curve *curve = sk_heat_curve_of(&heat->heat, &a, (int64_t)p);
        sk_heat_begin(&heat->heat, &a, (int64_t)p);
        const double enthalpy = sk_heat_get(&a, (int64_t)p), temperature = sk_heat_temperature(curve, enthalpy);
        const sk_heat_sums own = {curve->capacity * enthalpy, temperature, temperature};
        if (!(step->particles.records[p].flags & SK_PARTICLE_DEAD))
            sk_heat_sums_add(&sums, &own);
    }
    const double coldest = -sk_cuda_largest(-sums.coldest), warmest = sk_cuda_largest(sums.warmest);
    if (threadIdx.x == 0) {
        atomicMin(&data->results.heat.range[0], bits_of(coldest));
        atomicMax(&data->results.heat.range[1], bits_of(warmest));
    }
    double energy[1] = {sums.energy};
    if (sum_over_launch(data, energy, nullptr) && threadIdx.x == 0)
        data->results.heat.energy = energy[0];
}

/* --- Launches --- */

static const sk_heat *heat_of(const sk_step *step)
{
    return (const sk_heat *)sk_step_state(step, &sk_method_heat);
}

static void launch_rows(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH(cuda, build_rows, SK_CUDA_SUMS, SK_BLOCK_CELLS, step, cuda->heat, cuda->data);
    SK_LAUNCH(cuda, start_heat, SK_CUDA_SUMS, SK_BLOCK_CELLS, step, cuda->heat, cuda->data, cuda->solver);
    SK_DIM(sk_cuda_start_solve)(cuda, host);
}

static void launch_system(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    sk_cuda_heat *heat = cuda->heat;
    SK_LAUNCH_SIMPLE(cuda, begin_heat, 1, 1, constants, heat, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, begin_particles, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, heat);
    SK_LAUNCH_SIMPLE(cuda, gather_heat, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, heat);
    if (heat_of(host)->lightness >= 0) {
        SK_LAUNCH(cuda, find_mean, SK_CUDA_SUMS, SK_CUDA_THREADS, step, heat, cuda->data);
        SK_LAUNCH_SIMPLE(cuda, find_lightness, SK_CUDA_WIDE, SK_CUDA_THREADS, step, heat);
    }
    if (sk_heat_warm_obstacles(host, NULL))
        SK_LAUNCH(cuda, find_faces<true>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, heat);
    else
        SK_LAUNCH(cuda, find_faces<false>, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, heat);
    launch_rows(cuda, host);
}

/* A further pass, where something melts. */
static void launch_again(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    sk_cuda_heat *heat = cuda->heat;
    SK_LAUNCH_SIMPLE(cuda, begin_again, 1, 1, heat, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, choose_solved, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, heat);
    SK_LAUNCH_SIMPLE(cuda, choose_beside, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, heat);
    SK_LAUNCH_SIMPLE(cuda, copy_beside, SK_CUDA_WIDE, SK_CUDA_THREADS, step, heat);
    launch_rows(cuda, host);
}

/* The end of a pass. */
static void launch_changes(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    sk_cuda_heat *heat = cuda->heat;
    const int most = heat_sweeps(SK_HEAT_MOST_SHARE, host->scene->heat.tolerance), melts = heat_of(host)->melts;
    SK_DIM(sk_cuda_end_solve)(cuda, host);
    for (int n = 0; n < most + (melts ? most % 2 : 0); n++)
        SK_LAUNCH(cuda, sweep, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, heat, n);
    SK_LAUNCH(cuda, find_changes, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, heat, cuda->solver, cuda->data);
    if (melts)
        SK_LAUNCH_SIMPLE(cuda, end_pass, SK_CUDA_WIDE, SK_CUDA_THREADS, step, heat, cuda->data);
}

static void launch_give(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    sk_cuda_heat *heat = cuda->heat;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, scatter_heat, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, heat);
    SK_LAUNCH(cuda, limit_cells, 1, SK_CUDA_ONE, step, constants, heat);
}

/* Where nothing melts one pass does. */
static void launch_end(sk_cuda *cuda, const sk_step *host)
{
    launch_changes(cuda, host);
    launch_give(cuda, host);
}

static void launch_mix(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, measure_ranges, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->heat);
    SK_LAUNCH(cuda, mix_cells, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, constants, cuda->heat);
}

static void launch_expand(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, expand, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->heat);
}

static void launch_sums(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, begin_sums, 1, 1, cuda->data);
    SK_LAUNCH(cuda, sum_heat, SK_CUDA_SUMS, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants, cuda->heat,
              cuda->data);
}

/* The report of a pass that is over. */
static selkie_code report_pass(sk_step *step, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    sk_heat *heat = (sk_heat *)sk_step_state(step, &sk_method_heat);
    sk_cuda_remember_solve(step->cuda, SK_CUDA_HEAT, results->heat.iterations, results->heat.twice);
    heat->report.iterations = results->heat.iterations;
    heat->report.converged = results->heat.converged && !results->heat.broken;
    heat->report.residual = results->heat.residual;
    heat->report.unknowns = results->heat.unknowns;
    return sk_heat_judge(step, &heat->report, error);
}

/* Copies the results of heat alone. */
static selkie_code fetch_results(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    SK_CUDA_TRY(cudaMemcpyAsync(&cuda->results->heat, &cuda->data->results.heat, sizeof cuda->results->heat,
                                cudaMemcpyDeviceToHost, cuda->stream),
                "heat", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "heat", error);
    return SELKIE_OK;
}

/* Passes until no cell changes its phase. */
static selkie_code solve_in_passes(sk_step *step, selkie_error *error)
{
    sk_heat *heat = (sk_heat *)sk_step_state(step, &sk_method_heat);
    for (int pass = 0; pass < HEAT_MOST_PASSES; pass++) {
        SK_TRY(pass ? sk_cuda_run(step, "heat_again", launch_again, error)
                    : sk_cuda_run(step, "heat_system", launch_system, error));
        SK_TRY(SK_DIM(sk_cuda_iterate)(step, SK_CUDA_HEAT, error));
        SK_TRY(sk_cuda_run(step, "heat_changes", launch_changes, error));
        SK_TRY(fetch_results(step, error));
        SK_TRY(report_pass(step, error));
        heat->passes = pass + 1;
        if (!step->cuda->results->heat.changed)
            break;
    }
    return sk_cuda_run(step, "heat_give", launch_give, error);
}

selkie_code SK_DIM(sk_cuda_heat)(sk_step *step, selkie_error *error)
{
    if (!(step->dt > 0.0)) /* the world only measures */
        return SELKIE_OK;
    if (heat_of(step)->melts) {
        SK_TRY(solve_in_passes(step, error));
    } else {
        SK_TRY(sk_cuda_run(step, "heat_system", launch_system, error));
        SK_TRY(SK_DIM(sk_cuda_iterate)(step, SK_CUDA_HEAT, error));
        SK_TRY(sk_cuda_run(step, "heat", launch_end, error));
    }
    if (sk_heat_find_mixing(step, heat_of(step)).ticks > 0.0)
        SK_TRY(sk_cuda_run(step, "heat_mix", launch_mix, error));
    step->cuda->particles_here = 0;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_expand)(sk_step *step, selkie_error *error)
{
    return step->dt > 0.0 ? sk_cuda_run(step, "expansion", launch_expand, error) : SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_sum_heat)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "heat_sums", launch_sums, error);
}

static void take_sums(sk_step *step)
{
    const sk_cuda_results *results = step->cuda->results;
    sk_heat *heat = (sk_heat *)sk_step_state(step, &sk_method_heat);
    heat->sums.energy = results->heat.energy;
    memcpy(&heat->sums.coldest, &results->heat.range[0], sizeof heat->sums.coldest);
    memcpy(&heat->sums.warmest, &results->heat.range[1], sizeof heat->sums.warmest);
}

/* The phase that follows the move: the sums have come with the results of the step, but for what sources have added and
 * for droplets. */
selkie_code SK_DIM(sk_cuda_heat_sums)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (!step->sources && !sk_cuda_has_droplets(cuda))
        return SELKIE_OK;
    SK_TRY(SK_DIM(sk_cuda_sum_heat)(step, error));
    SK_TRY(fetch_results(step, error));
    cuda->began = cuda->particles_here = 0; /* the step is over */
    take_sums(step);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_cuda_report_heat)(sk_step *step, selkie_error *error)
{
    sk_heat *heat = (sk_heat *)sk_step_state(step, &sk_method_heat);
    take_sums(step);
    if (heat->melts) /* passes have been reported */
        return SELKIE_OK;
    heat->passes = 1;
    return report_pass(step, error);
}

/* --- Memory and constants --- */

void SK_DIM(sk_cuda_fill_heat)(const sk_step *step, sk_cuda_constants *constants)
{
    const sk_heat *heat = heat_of(step);
    constants->heat.coldest = heat->coldest;
    constants->heat.warmest = heat->warmest;
    constants->heat.unit =
        step->dt > 0.0 ? heat->least_resistance / (step->dt * pow(step->grid.cell_size, SELKIE_DIM - 2)) : 0.0;
    constants->heat.mixing = sk_heat_find_mixing(step, heat);
    constants->heat.liquid_fraction = -1;
    for (int a = 0; a < step->particles.attribute_count; a++) {
        if (strcmp(step->particles.attributes[a].name, "liquid_fraction") == 0)
            constants->heat.liquid_fraction = a;
        if (strcmp(step->particles.attributes[a].name, "enthalpy") == 0)
            constants->heat.enthalpy = a;
        if (strcmp(step->particles.attributes[a].name, "temperature") == 0)
            constants->heat.temperature = a;
    }
}

/* Temperatures and heat exchange of the obstacles. They stay as they are: scenes with changes are refused. */
static selkie_code take_obstacles(sk_step *step, sk_cuda_heat *shadow, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t bytes = ((size_t)step->solids.obstacle_count + 1) * sizeof *shadow->obstacles;
    double(*own)[2] = (double(*)[2])calloc(1, bytes);
    if (!own)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory");
    sk_heat_warm_obstacles(step, own);
    selkie_code code = sk_cuda_take(cuda, &shadow->obstacles, bytes, 0, error);
    int failed = 0;
    if (code == SELKIE_OK) {
        failed = (int)cudaMemcpyAsync(shadow->obstacles, own, bytes, cudaMemcpyHostToDevice, cuda->stream);
        failed |= (int)cudaStreamSynchronize(cuda->stream);
    }
    free(own);
    return failed ? sk_cuda_failed(failed, "heat", error) : code;
}

selkie_code SK_DIM(sk_cuda_take_heat)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const sk_grid *grid = &cuda->sent->step.grid; /* addresses */
    const size_t capacity = (size_t)cuda->shadow.capacity, count = capacity * SK_BLOCK_CELLS;
    sk_cuda_heat shadow;
    memset(&shadow, 0, sizeof shadow);
    sk_heat_cells *cells = &shadow.solve.cells;
    double **const doubles[] = {&cells->capacity,    &cells->enthalpy,   &cells->change,
                                &cells->temperature, &cells->resistance, &cells->supply};
    float **const floats[] = {&cells->outside, &cells->filled, &cells->right, &cells->solution, &cells->other};
    for (size_t n = 0; n < sizeof doubles / sizeof *doubles; n++)
        SK_TRY(sk_cuda_take(cuda, doubles[n], count * sizeof(double), 1, error));
    for (size_t n = 0; n < sizeof floats / sizeof *floats; n++)
        SK_TRY(sk_cuda_take(cuda, floats[n], count * sizeof(float), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cells->material, count, 1, error));
    SK_TRY(sk_cuda_take(cuda, &cells->phase, count, 1, error));
    SK_TRY(sk_cuda_take(cuda, &shadow.crowded, capacity, 1, error));
    SK_TRY(sk_cuda_take(cuda, &shadow.reached, capacity, 1, error));
    SK_TRY(sk_cuda_take(cuda, &shadow.changes, capacity * sizeof(int32_t), 1, error));
    SK_TRY(sk_cuda_take(cuda, &cuda->heat, sizeof shadow, 0, error));
    SK_TRY(take_obstacles(step, &shadow, error));
    for (int d = 0; d < SELKIE_DIM; d++)
        cells->face[d] = grid->fields[SK_FIELD_FACE_X + d];
    cells->diagonal = grid->fields[SK_FIELD_DIAGONAL];
    shadow.heat = *heat_of(step);
    shadow.solve.step = &cuda->device->step;
    shadow.solve.heat = &cuda->heat->heat;
    shadow.solve.obstacles = (const double(*)[2])shadow.obstacles;
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->heat, &shadow, sizeof shadow, cudaMemcpyHostToDevice, cuda->stream), "heat",
                error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "heat", error);
    return SELKIE_OK;
}

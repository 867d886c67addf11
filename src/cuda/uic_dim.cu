/* Unilateral incompressibility on the GPU: the functions of the plain form, a thread a cell or a particle. */
#include "cuda/device.h"

#include "grid/predict_kernels.h"
#include "grid/extrapolate_plain.h"
#include "methods/uic/uic_plain.h"

extern "C" {
#include "cuda/phases.h"
#include "methods/uic/uic.h"
}
#include "cuda/grid_parts.h"
#include "cuda/poisson_parts.h"
#include "cuda/solids_parts.h"

/* --- rows --- */

/* The problems of a step: the density, the density after a correction, the pressure that balances gravity while
 * viscosity acts, and the pressure. */
enum { OF_DENSITY, OF_DENSITY_AGAIN, OF_BALANCE, OF_PRESSURE };

SK_DEVICE int is_of_pressure(int of)
{
    return of == OF_BALANCE || of == OF_PRESSURE;
}

/* As in uic_correct_dim.c. */
static const double good_enough = 0.01, roughly = 1e-2;
static const float too_much = 0.06f, still_too_much = 0.03f;
enum { AROUND = 2 };

/* Before the solve: its tolerance, and whether there is anything to solve. By one thread. */
SK_DEVICE void begin_bounded(const sk_step *step, sk_cuda_solver *solver, sk_cuda_data *data, int of, float largest)
{
    const selkie_unilateral_def *def = &step->scene->unilateral;
    begin_solve(step, solver);
    solver->norm = SELKIE_NORM_RELATIVE;
    solver->tolerance = of == OF_DENSITY_AGAIN ? fmax(def->tolerance, roughly) : def->tolerance;
    solver->max_iterations = def->max_iterations;
    solver->bounded = 1;
    solver->lowered = (is_of_pressure(of) && def->suction) ||
                      (of == OF_PRESSURE && step->capillary); /* may be active without any excess */
    solver->idle = !solver->lowered && !((double)largest > (of == OF_DENSITY_AGAIN ? good_enough : 0.0));
    data->unilateral.largest = largest;
    if (of == OF_DENSITY)
        data->unilateral.shifted = largest > 0.0f;
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    build_rows(const sk_step *step, const sk_cuda_constants *constants, sk_cuda_data *data, sk_cuda_solver *solver,
               int of)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const int count = (int)gridDim.x;
    const sk_cuda_unilateral *unilateral = &data->unilateral;
    const int predicted = of == OF_DENSITY_AGAIN || of == OF_PRESSURE;
    const uic_rows rows = {grid->fields[predicted ? SK_FIELD_PREDICTED : SK_FIELD_DENSITY],
                           is_of_pressure(of) ? grid->fields[SK_FIELD_DENSITY] : nullptr, is_of_pressure(of),
                           of == OF_PRESSURE && step->capillary != 0,
                           of == OF_DENSITY ||
                               (of == OF_DENSITY_AGAIN && !(step->solids.obstacle_count + step->scene->body_count))};
    double largest = 0.0;
    clear_maps(solver);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        float excess = 0.0f;
        if (of == OF_DENSITY_AGAIN && unilateral->partly && !unilateral->wanted[block]) {
            grid->fields[SK_FIELD_DIAGONAL][sk_plain_index(cell)] = 0.0f;
        } else {
            const surroundings around =
                surroundings_of(step, block, is_of_pressure(of) ? grid->fields[constants->spare] : nullptr);
            excess = build_uic_row(&around, &rows, cell);
        }
        const double most = sk_cuda_largest((double)excess);
        if (threadIdx.x == 0)
            unilateral->excess[block] = (float)most;
        largest = fmax(largest, most);
    }
    if (threadIdx.x == 0)
        data->partial[blockIdx.x] = largest;
    if (!sk_cuda_is_last(&data->ticket[0]))
        return;
    largest = 0.0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        largest = fmax(largest, data->partial[i]);
    largest = sk_cuda_largest(largest);
    if (threadIdx.x == 0)
        begin_bounded(step, solver, data, of, (float)largest);
}

template <int OF> static void launch_rows(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH(cuda, build_rows, SK_CUDA_SUMS, SK_BLOCK_CELLS, &cuda->device->step, &cuda->device->constants, cuda->data,
              cuda->solver, OF);
}

/* The report of the last solve. A problem that did not converge ends the run. */
static selkie_code take_report(sk_step *step, const char *name, sk_bounded_report *report, selkie_error *error)
{
    const sk_cuda_results *results = step->cuda->results;
    const selkie_unilateral_def *def = &step->scene->unilateral;
    memset(report, 0, sizeof *report);
    report->iterations = report->free_steps = results->bounded.iterations;
    report->converged = results->bounded.converged && !results->bounded.broken;
    report->residual = results->bounded.residual;
    report->unknowns = results->bounded.unknowns;
    report->free_cells = results->bounded.free_cells;
    report->active_cells = report->unknowns - report->free_cells;
    if (!report->converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the complementarity problem of the %s stopped at an error of %.3g after %d iterations "
            "(asked: unilateral.tolerance %g, unilateral.max_iterations %d); raise one of the two",
            (long long)step->step_count + 1, step->time, name, report->residual, report->iterations, def->tolerance,
            def->max_iterations);
    return SELKIE_OK;
}

/* --- the correction of density --- */

static __global__ void shift_faces(const sk_step *step, const sk_cuda_solver *solver, int again)
{
    SK_CUDA_WAIT();
    if (again && solver->idle)
        return;
    SK_CUDA_EACH_CELL(cell, step)
    {
        const surroundings around = surroundings_of(step, cell.slot, nullptr);
        shift_uic_faces(&around, cell, again, 0);
    }
}

template <int AGAIN> static void launch_shift_of_faces(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, shift_faces, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, cuda->solver, AGAIN);
}

static __global__ void forget_wanted(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, step->grid.block_count)
    {
        data->unilateral.wanted[i] = 0;
        if (i == 0)
            data->unilateral.wanted_count = 0;
    }
}

/* Marks the blocks near cells that are denser than the limit. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    want_around(const sk_step *step, sk_cuda_data *data, float limit)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const int c = (int)threadIdx.x;
    SK_CUDA_EACH_BLOCK(block, step)
    {
        if (!(data->unilateral.excess[block] > limit) ||
            !(grid->fields[SK_FIELD_RIGHT_SIDE][(size_t)block * SK_BLOCK_CELLS + c] > limit))
            continue;
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int side[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
            const int other = grid->neighbours[block][n];
            int near = other > 0;
            for (int d = 0; d < SELKIE_DIM; d++) {
                const int at = sk_plain_along(c, d);
                near = near && (side[d] == 0 || (side[d] < 0 ? at < AROUND : at >= SK_BLOCK_N - AROUND));
            }
            if (near && !data->unilateral.wanted[other] && !atomicOr(&data->unilateral.wanted[other], 1u))
                atomicAdd(&data->unilateral.wanted_count, 1);
        }
    }
}

/* If there are many such blocks, all blocks take part. */
static __global__ void choose_blocks(const sk_step *step, sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    data->unilateral.partly = 2 * data->unilateral.wanted_count < step->grid.block_count;
}

/* --- the density of moved particles --- */

enum {
    REACHED_SIDE = SK_BLOCK_N + 2 * SK_PREDICT_REACH, /* cells that particles of a block reach along an axis */
    REACHED = SELKIE_DIM == 3 ? REACHED_SIDE * REACHED_SIDE * REACHED_SIDE : REACHED_SIDE * REACHED_SIDE
};

static __global__ void clear_weights(const sk_step *step)
{
    SK_CUDA_WAIT();
    uint32_t *weights = (uint32_t *)(void *)step->grid.fields[SK_FIELD_PREDICTED];
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    weights[i] = 0;
}

/* Cell of the grid that is cell n of the cells that a block reaches. */
SK_DEVICE sk_plain_cell reached_cell(const sk_grid *grid, int block, const int from_corner[3])
{
    const sk_plain_cell whole = {block, 0};
    return sk_plain_beside(grid, whole, from_corner);
}

/* Adds the weights of a moved particle to the tile of its block. `coordinate` in cells. */
SK_DEVICE void add_weights(const sk_grid *grid, int block, const int corner[3], const float coordinate[3],
                           uint32_t *tile)
{
    int at[3] = {0, 0, 0}, from_corner[3] = {0, 0, 0};
    float fraction[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; d < SELKIE_DIM; d++) {
        at[d] = (int)__builtin_floorf(coordinate[d]);
        from_corner[d] = at[d] - corner[d];
        fraction[d] = coordinate[d] - (float)at[d];
    }
    if (!reached_cell(grid, block, from_corner).slot)
        return; /* a cell without a block has no particles */
    for (int n = 0; n < SK_CORNERS; n++) {
        /* Along each axis the centre of the cell itself has a weight, and the nearer one beside it. */
        int offset[3] = {0, 0, 0}, place = 0, pitch = 1, inside = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            offset[d] = !(n >> d & 1) ? 0 : fraction[d] < 0.5f ? 1 : -1;
            const int along = from_corner[d] - offset[d] + SK_PREDICT_REACH;
            inside &= along >= 0 && along < REACHED_SIDE;
            place += along * pitch;
            pitch *= REACHED_SIDE;
        }
        const uint32_t weight = sk_fixed_weight(sk_centre_weight(fraction, offset));
        if (weight && inside)
            atomicAdd(&tile[place], weight);
    }
}

/* What moves the particles of a block: copies of the fields in and around it. */
typedef struct moving_tiles {
    float velocity[SELKIE_DIM * KNOWN_TILE], shift[SELKIE_DIM * KNOWN_TILE];
} moving_tiles;

/* How particles are moved. */
typedef struct predicted_move {
    sk_plain_frame frame;
    float dt;    /* s  0 = only shifted */
    int shifted; /*    by SHIFT_* */
} predicted_move;

/* The coordinates (cells) of a moved particle: predict_position of grid/predict_plain_dim.c. */
template <bool AMONG_OBSTACLES>
SK_DEVICE void predict_coordinate(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                                  const predicted_move *move, const moving_tiles *tiles, const int corner[3],
                                  const float x[3], float coordinate[3])
{
    const sk_plain_frame *frame = &move->frame;
    const float *low = constants->displacement.low, *high = constants->displacement.high;
    float fraction[3] = {0.0f, 0.0f, 0.0f}, moved[3] = {0.0f, 0.0f, 0.0f};
    int at[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)sk_cell_coordinate(x[d], frame->corner[d], frame->inverse);
    sk_plain_fractions(frame, x, at, fraction);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float flown = move->dt > 0.0f ? sample_tile(tiles->velocity, corner, at, fraction, d, 0) : 0.0f;
        const float pushed = move->shifted ? sample_tile(tiles->shift, corner, at, fraction, d, 1) : 0.0f;
        moved[d] = sk_clamp(x[d] + (move->dt * flown + frame->cell_size * pushed), low[d], high[d]);
    }
    if (AMONG_OBSTACLES && !is_clear_of_obstacles(step, constants, data, x, moved, 1))
        sk_sweep_displaced(&step->solids, low, high, x, moved, move->dt > 0.0f ? 1.0 : 0.0);
    for (int d = 0; d < SELKIE_DIM; d++)
        coordinate[d] = sk_within_reach(sk_cell_coordinate(moved[d], frame->corner[d], frame->inverse), corner[d]);
}

/* Adds the weights in the tile of a block to those of the grid. */
SK_DEVICE void add_tile(const sk_grid *grid, int block, const uint32_t *tile)
{
    uint32_t *weights = (uint32_t *)(void *)grid->fields[SK_FIELD_PREDICTED];
    for (int n = (int)threadIdx.x; n < REACHED; n += (int)blockDim.x) {
        const int from_corner[3] = {n % REACHED_SIDE - SK_PREDICT_REACH,
                                    n / REACHED_SIDE % REACHED_SIDE - SK_PREDICT_REACH,
                                    SELKIE_DIM == 3 ? n / REACHED_SIDE / REACHED_SIDE - SK_PREDICT_REACH : 0};
        if (!tile[n])
            continue;
        const sk_plain_cell cell = reached_cell(grid, block, from_corner);
        if (cell.slot)
            atomicAdd(&weights[sk_plain_index(cell)], tile[n]);
    }
}

/* Weights of the particles at their positions at the end of the step, or only shifted. */
template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    weigh_moved(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data, int by_velocity)
{
    __shared__ moving_tiles tiles;
    __shared__ uint32_t tile[REACHED];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const predicted_move move = {frame_of_grid(grid), by_velocity ? (float)step->dt : 0.0f, data->unilateral.shifted};
    const int parts = parts_of_blocks(grid), items = grid->particle_blocks * parts;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int block = 1 + item / parts;
        uint32_t first, last;
        particles_of_part(grid, block, item % parts, parts, &first, &last);
        if (first == last)
            continue;

        /* The fields around the block. */
        const sk_plain_cell whole = {block, 0};
        int corner[3] = {0, 0, 0};
        sk_plain_coordinates(grid, whole, corner);
        __syncthreads();
        for (int n = (int)threadIdx.x; n < REACHED; n += (int)blockDim.x)
            tile[n] = 0;
        if (by_velocity)
            load_known_tile(grid, block, SK_FIELD_VELOCITY_X, tiles.velocity);
        if (move.shifted)
            load_known_tile(grid, block, SK_FIELD_SHIFT_X, tiles.shift);
        __syncthreads();

        /* The threads of a warp take particles far apart: those of one cell would add to the same sums. */
        const uint32_t run = (last - first + blockDim.x - 1) / blockDim.x, begin = first + threadIdx.x * run;
        for (uint32_t p = begin; p < begin + run && p < last; p++) {
            const float4 half = *(const float4 *)(const void *)&step->particles.records[p];
            const float x[3] = {half.x, half.y, half.z};
            float coordinate[3] = {0.0f, 0.0f, 0.0f};
            predict_coordinate<AMONG_OBSTACLES>(step, constants, data, &move, &tiles, corner, x, coordinate);
            add_weights(grid, block, corner, coordinate, tile);
        }
        __syncthreads();
        add_tile(grid, block, tile);
    }
}

static __global__ void take_weights(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    float *predicted = step->grid.fields[SK_FIELD_PREDICTED];
    const uint32_t *weights = (const uint32_t *)(const void *)predicted;
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    predicted[i] = sk_float_weight(weights[i]) * constants->options.density_per_particle;
}

static void launch_weights(sk_cuda *cuda, const sk_step *host, int by_velocity)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    SK_LAUNCH_SIMPLE(cuda, clear_weights, SK_CUDA_WIDE, SK_CUDA_THREADS, step);
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, weigh_moved<true>, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data, by_velocity);
    else
        SK_LAUNCH(cuda, weigh_moved<false>, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data, by_velocity);
    SK_LAUNCH_SIMPLE(cuda, take_weights, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants);
}

/* --- the phase of the correction --- */

template <int SECOND> static void launch_again(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    SK_LAUNCH_SIMPLE(cuda, forget_wanted, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, step, cuda->data);
    SK_LAUNCH_SIMPLE(cuda, want_around, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, cuda->data,
                     SECOND ? too_much : still_too_much);
    SK_LAUNCH_SIMPLE(cuda, choose_blocks, 1, 1, step, cuda->data);
    launch_weights(cuda, host, 0);
    launch_rows<OF_DENSITY_AGAIN>(cuda, host);
}

selkie_code SK_DIM(sk_cuda_uic_correct)(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    sk_bounded_report report;
    memset(&step->correction, 0, sizeof step->correction);
    step->shifted = step->density_passes = 0;
    step->overfull = 0.0;
    SK_TRY(sk_cuda_begin(step, error));
    if (!sk_step_has_pressure(step)) {
        SK_CUDA_TRY(cudaMemsetAsync(&cuda->data->unilateral.shifted, 0, sizeof(int), cuda->stream), "a step", error);
        return SELKIE_OK;
    }
    SK_TRY(sk_cuda_run(step, "uic_density", launch_rows<OF_DENSITY>, error));
    SK_TRY(SK_DIM(sk_cuda_solve_bounded)(step, SK_CUDA_DENSITY, error));
    SK_TRY(take_report(step, "density", &step->correction, error));
    step->overfull = cuda->results->bounded.excess;
    step->shifted = step->overfull > 0.0;
    if (!step->shifted)
        return SELKIE_OK;
    SK_TRY(sk_cuda_run(step, "uic_shift", launch_shift_of_faces<0>, error));

    /* Further solves for the excess that remains. */
    double excess = step->overfull;
    step->density_passes = 1;
    for (int pass = 1; pass < step->scene->unilateral.density_passes; pass++) {
        if (!(excess > (double)(pass == 1 ? too_much : still_too_much)))
            break;
        SK_TRY(pass == 1 ? sk_cuda_run(step, "uic_again", launch_again<1>, error)
                         : sk_cuda_run(step, "uic_once_more", launch_again<0>, error));
        SK_TRY(SK_DIM(sk_cuda_solve_bounded)(step, SK_CUDA_DENSITY_AGAIN, error));
        SK_TRY(take_report(step, "density", &report, error));
        excess = cuda->results->bounded.excess;
        if (!(excess > good_enough))
            break;
        step->density_passes++;
        SK_TRY(sk_cuda_run(step, "uic_shift_again", launch_shift_of_faces<1>, error));
    }
    return SELKIE_OK;
}

/* --- prediction and pressure --- */

/* Blocks look up the solids of their places. */
static __global__ void find_solids(const sk_step *step, const sk_cuda_data *data)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, grid->block_count - 1)
    {
        const int block = (int)i + 1, *at = grid->coordinates[block];
        const int place = at[0] + grid->blocks[0] * (at[1] + (SELKIE_DIM == 3 ? grid->blocks[1] * at[2] : 0));
        step->solids.block_slot[block] = data->solid_slots[place];
    }
}

static void launch_solids(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, find_solids, SK_CUDA_WIDE / 8, SK_CUDA_THREADS, &cuda->device->step, cuda->data);
}

/* Obstacles at the end of the step, after the correction of density. */
selkie_code SK_DIM(sk_cuda_uic_solids)(sk_step *step, selkie_error *error)
{
    SK_TRY(sk_cuda_end_solids(step, error));
    return sk_cuda_run(step, "uic_solids", launch_solids, error);
}

static __global__ void stop_at_walls(const sk_step *step)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    {
        if (!step->solids.block_slot[cell.slot])
            continue; /* no solid is near */
        const surroundings around = surroundings_of(step, cell.slot, nullptr);
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *velocity = &step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)];
            *velocity = stopped(&around, cell, d, *velocity, 0.0f);
        }
    }
}

static __global__ void mark_full(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    {
        const surroundings around = surroundings_of(step, cell.slot, nullptr);
        step->grid.fields[constants->spare][sk_plain_index(cell)] = spare_of_cell(&around, cell);
    }
}

/* Full cells, and faces at walls before there is pressure. */
static void launch_full(sk_cuda *cuda)
{
    SK_LAUNCH_SIMPLE(cuda, mark_full, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants);
    SK_LAUNCH_SIMPLE(cuda, stop_at_walls, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step);
}

static void launch_predict(sk_cuda *cuda, const sk_step *host)
{
    launch_full(cuda);
    if (!sk_step_has_pressure(host))
        return;
    launch_weights(cuda, host, 1);
    SK_DIM(sk_cuda_launch_split)(cuda, SK_FIELD_PREDICTED, 1, 1);
}

selkie_code SK_DIM(sk_cuda_uic_predict)(sk_step *step, selkie_error *error)
{
    return sk_step_has_pressure(step) ? sk_cuda_run(step, "uic_predict", launch_predict, error)
                                      : sk_cuda_run(step, "uic_stop", launch_predict, error);
}

/* --- bounds of the pressure below 0 --- */

/* Marks surface cells, and all cells outside of the blocks, in `to`. */
static __global__ void mark_surface(const sk_step *step, int to, int next)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    SK_CUDA_EACH(i, (size_t)grid->block_count * SK_BLOCK_CELLS)
    {
        const int outside = i < SK_BLOCK_CELLS;
        grid->fields[to][i] = outside || sk_uic_is_surface(grid->fields[SK_FIELD_FILL][i]) ? 1.0f : 0.0f;
        if (outside)
            grid->fields[next][i] = 1.0f;
    }
}

/* Adds a layer of cells beside marked ones. */
static __global__ void grow_surface(const sk_step *step, int from, int to)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_CELL(cell, step)
    step->grid.fields[to][sk_plain_index(cell)] = grown_mark(&step->grid, step->grid.fields[from], cell);
}

/* Suction far from the marked cells, down to `suction`, and in full cells down to `held` (both Pa, not above 0).
 * `marks` is a field; 0 = there is no suction. The potential outside of the blocks is 0 again. */
static __global__ void find_bounds(const sk_step *step, const sk_cuda_constants *constants, int marks, double suction,
                                   double held)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const float sucked = sk_uic_least_pressure(step, suction), together = sk_uic_least_pressure(step, held);
    SK_CUDA_EACH(i, (size_t)grid->block_count * SK_BLOCK_CELLS)
    {
        float lower = !marks || grid->fields[marks][i] > 0.0f ? 0.0f : sucked;
        if (step->capillary && grid->fields[constants->spare][i] >= 0.0f && together < lower)
            lower = together;
        grid->fields[SK_FIELD_LOWER][i] = lower;
        if (i < SK_BLOCK_CELLS)
            grid->fields[SK_FIELD_POTENTIAL][i] = 0.0f;
    }
}

static void launch_bounds(sk_cuda *cuda, const sk_step *host, int has_tension)
{
    const sk_step *step = &cuda->device->step;
    const selkie_unilateral_def *def = &host->scene->unilateral;
    int marks = SK_FIELD_LOWER, next = SK_FIELD_POTENTIAL;
    if (!def->suction && !has_tension)
        return;
    if (def->suction)
        SK_LAUNCH_SIMPLE(cuda, mark_surface, SK_CUDA_WIDE, SK_CUDA_THREADS, step, marks, next);
    for (int layer = 0; def->suction && layer < sk_uic_suction_layers(def); layer++) {
        SK_LAUNCH_SIMPLE(cuda, grow_surface, SK_CUDA_WIDE, SK_CUDA_THREADS, step, marks, next);
        const int swapped = marks;
        marks = next;
        next = swapped;
    }
    SK_LAUNCH_SIMPLE(cuda, find_bounds, SK_CUDA_WIDE, SK_CUDA_THREADS, step, &cuda->device->constants,
                     def->suction ? marks : 0, -def->suction_pressure, has_tension ? sk_uic_held_pressure(host) : 0.0);
}

static void launch_pressure_rows(sk_cuda *cuda, const sk_step *host)
{
    launch_bounds(cuda, host, host->capillary > 0);
    launch_rows<OF_PRESSURE>(cuda, host);
}

SK_DEVICE float unit_of_potential(const sk_step *step)
{
    return (float)(step->grid.cell_size / step->dt);
}

static __global__ void __launch_bounds__(SK_BLOCK_CELLS) finish(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const float unit = unit_of_potential(step);
    SK_CUDA_EACH_BLOCK(block, step)
    {
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const surroundings around = surroundings_of(step, block, grid->fields[constants->spare]);
        const int flight = block <= grid->particle_blocks && step->scene->unilateral.flight == SELKIE_FLIGHT_OWN;
        const int known = sk_cuda_sum(finish_uic_cell(&around, cell, unit, flight));
        if (threadIdx.x == 0)
            grid->block_flags[block] = sk_plain_known_flags(grid->block_flags[block], known);
    }
}

/* Other phases read the potential in the unit of the bilateral pressure. */
static __global__ void scale_potential(const sk_step *step)
{
    SK_CUDA_WAIT();
    const float unit = unit_of_potential(step);
    SK_CUDA_EACH(i, (size_t)(step->grid.block_count - 1) * SK_BLOCK_CELLS)
    step->grid.fields[SK_FIELD_POTENTIAL][SK_BLOCK_CELLS + i] *= unit;
}

static __global__ void clear_potential(const sk_step *step)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, (size_t)step->grid.block_count * SK_BLOCK_CELLS)
    step->grid.fields[SK_FIELD_POTENTIAL][i] = 0.0f;
}

static void launch_push(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    if (!sk_step_has_pressure(host))
        SK_LAUNCH_SIMPLE(cuda, clear_potential, SK_CUDA_WIDE, SK_CUDA_THREADS, step);
    SK_LAUNCH(cuda, finish, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, step, &cuda->device->constants);
    SK_LAUNCH_SIMPLE(cuda, scale_potential, SK_CUDA_WIDE, SK_CUDA_THREADS, step);
}

selkie_code SK_DIM(sk_cuda_uic_pressure)(sk_step *step, selkie_error *error)
{
    memset(&step->unilateral, 0, sizeof step->unilateral);
    if (!sk_step_has_pressure(step))
        return sk_cuda_run(step, "uic_flight", launch_push, error);
    SK_TRY(sk_cuda_run(step, "uic_pressure", launch_pressure_rows, error));
    SK_TRY(SK_DIM(sk_cuda_solve_bounded)(step, SK_CUDA_PRESSURE, error));
    SK_TRY(take_report(step, "pressure", &step->unilateral, error));
    return sk_cuda_run(step, "uic_push", launch_push, error);
}

/* --- gravity in balance with pressure while viscosity acts --- */

static void launch_balance_rows(sk_cuda *cuda, const sk_step *host)
{
    launch_full(cuda);
    launch_bounds(cuda, host, 0);
    launch_rows<OF_BALANCE>(cuda, host);
}

/* A face reads no other velocity than its own, and takes its change at once. */
static __global__ void find_balance(const sk_step *step, const sk_cuda_constants *constants)
{
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const float unit = unit_of_potential(step);
    SK_CUDA_EACH_CELL(cell, step)
    {
        const surroundings around = surroundings_of(step, cell.slot, grid->fields[constants->spare]);
        const size_t here = sk_plain_index(cell);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float change = uic_balance_at(&around, cell, d, unit);
            grid->fields[step->balance + d][here] = change;
            grid->fields[SK_FIELD_VELOCITY_X + d][here] += change;
        }
    }
}

static void launch_balance(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    SK_LAUNCH_SIMPLE(cuda, find_balance, SK_CUDA_WIDE, SK_CUDA_THREADS, &cuda->device->step, &cuda->device->constants);
}

selkie_code SK_DIM(sk_cuda_uic_balance)(sk_step *step, selkie_error *error)
{
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    SK_TRY(sk_cuda_run(step, "uic_balance_rows", launch_balance_rows, error));
    SK_TRY(SK_DIM(sk_cuda_solve_bounded)(step, SK_CUDA_PRESSURE, error));
    SK_TRY(take_report(step, "balance", &step->unilateral, error));
    return sk_cuda_run(step, "uic_balance", launch_balance, error);
}

/* --- after the pressure --- */

/* One layer of unknown velocities into scratch, then back: as fill_layer of grid_dim.cu, of the velocity alone. */
static __global__ void __launch_bounds__(SK_BLOCK_CELLS)
    fill_velocity(const sk_step *step, sk_cuda_data *data, int back)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH_BLOCK(block, step)
    {
        if (!(step->grid.block_flags[block] & SK_BLOCK_UNKNOWN) || !is_flagged_near(&step->grid, block, SK_BLOCK_KNOWN))
            continue;
        const sk_plain_cell cell = {block, (int)threadIdx.x};
        const size_t at = sk_plain_index(cell);
        size_t around[2 * SELKIE_DIM];
        places_around(&step->grid, cell, around);
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *field = step->grid.fields[SK_FIELD_VELOCITY_X + d];
            if (field[at] == field[at])
                continue;
            if (back)
                field[at] = data->scratch[d][at];
            else
                data->scratch[d][at] = mean_around(field, around);
        }
    }
}

static void launch_extrapolate(sk_cuda *cuda, const sk_step *host)
{
    (void)host;
    for (int n = 0; n < 4; n++) /* two layers */
        SK_LAUNCH(cuda, fill_velocity, SK_CUDA_WIDE / 2, SK_BLOCK_CELLS, &cuda->device->step, cuda->data, n % 2);
}

selkie_code SK_DIM(sk_cuda_uic_extrapolate)(sk_step *step, selkie_error *error)
{
    return sk_cuda_run(step, "uic_extrapolate", launch_extrapolate, error);
}

/* Moves the particles by the shifts of the faces. */
template <bool AMONG_OBSTACLES>
static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    shift_particles(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data)
{
    __shared__ float tile[SELKIE_DIM * KNOWN_TILE];
    SK_CUDA_WAIT();
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    const int parts = parts_of_blocks(grid), items = grid->particle_blocks * parts;
    if (!data->unilateral.shifted)
        return;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int block = 1 + item / parts;
        const sk_plain_cell whole = {block, 0};
        uint32_t first, last;
        int corner[3] = {0, 0, 0};
        particles_of_part(grid, block, item % parts, parts, &first, &last);
        sk_plain_coordinates(grid, whole, corner);
        __syncthreads();
        load_known_tile(grid, block, SK_FIELD_SHIFT_X, tile);
        __syncthreads();
        for (uint32_t p = first + threadIdx.x; p < last; p += blockDim.x) {
            float4 *record = (float4 *)(void *)&step->particles.records[p];
            float4 half = *record;
            float position[3] = {half.x, half.y, half.z};
            int at[3] = {0, 0, 0};
            for (int d = 0; d < SELKIE_DIM; d++)
                at[d] = (int)sk_cell_coordinate(position[d], frame.corner[d], frame.inverse);
            displace_particle(&frame, &constants->displacement, tile, corner, at, position);
            if (AMONG_OBSTACLES) {
                sk_particle particle = load_particle(&step->particles.records[p]);
                const float before[3] = {half.x, half.y, half.z};
                for (int d = 0; d < SELKIE_DIM; d++)
                    particle.position[d] = position[d];
                sweep_displaced(step, constants, data, before, &particle);
                store_particle(&step->particles.records[p], particle);
                continue;
            }
            half.x = position[0], half.y = position[1], half.z = position[2];
            *record = half;
        }
    }
}

static void launch_shift(sk_cuda *cuda, const sk_step *host)
{
    const sk_step *step = &cuda->device->step;
    const sk_cuda_constants *constants = &cuda->device->constants;
    if (host->solids.obstacle_count)
        SK_LAUNCH(cuda, shift_particles<true>, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
    else
        SK_LAUNCH(cuda, shift_particles<false>, SK_CUDA_WIDE, SK_CUDA_THREADS, step, constants, cuda->data);
}

selkie_code SK_DIM(sk_cuda_uic_shift)(sk_step *step, selkie_error *error)
{
    step->cuda->particles_here = 0;
    return step->shifted ? sk_cuda_run(step, "uic_shift_particles", launch_shift, error) : SELKIE_OK;
}

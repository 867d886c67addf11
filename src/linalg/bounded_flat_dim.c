/* Converts sparse blocks to a plain list of unknowns and back, for MPRGP. */
#include "linalg/bounded_solver.h"

#include <math.h>
#include <stdlib.h>
#include <omp.h>
#include "base/random.h"
#include "base/timer.h"
#include "linalg/mprgp.h"

typedef struct flattening {
    sk_bounded_solver *solver;
    const sk_bounded_system *system;
    const sk_level *level;
    int32_t *order; /* [block_count] blocks by z, y, x */
    int32_t
        *number; /* [(block_count + 1) * SK_BLOCK_CELLS] number of a cell in the list, in the split layout; -1 = none */
    sk_flat_system flat;
    void *scratch;
} flattening;

typedef struct placed_block {
    int32_t place[3], block;
} placed_block;

static int compare_places(const void *left, const void *right)
{
    const int32_t *a = left, *b = right;
    for (int axis = 2; axis >= 0; --axis)
        if (a[axis] != b[axis])
            return a[axis] < b[axis] ? -1 : 1;
    return 0;
}

/* One allocation for everything, cut into pieces. */
static selkie_code allocate(flattening *f, selkie_error *error)
{
    const sk_level *level = f->level;
    size_t blocks = (size_t)level->block_count + 1, cells = blocks * SK_BLOCK_CELLS, n = (size_t)level->unknowns + 1;
    size_t doubles = 5 + SELKIE_DIM, integers = 2 * SELKIE_DIM;
    if (level->unknowns >= INT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT, "bounded solver: more than %d unknowns are too many for MPRGP",
                       (int)INT32_MAX - 1);

    /* Bytes of all pieces. */
    size_t scratch_bytes = (sk_mprgp_scratch_bytes((int32_t)level->unknowns) + 63) / 64 * 64;
    size_t bytes = scratch_bytes + n * doubles * sizeof(double) + n * integers * sizeof(int32_t) +
                   blocks * (sizeof(placed_block) + sizeof(int32_t)) + cells * sizeof(int32_t);
    SK_TRY(SK_DIM(sk_scratch_reserve)(f->solver->memory, &f->solver->flat_memory, bytes, error));

    /* Scratch comes first, then doubles, then integers: so all are aligned. */
    char *at = f->solver->flat_memory.data;
    f->scratch = at;
    double *real = (double *)(at + scratch_bytes);
    sk_flat_system *flat = &f->flat;
    double **field[5] = {&flat->diagonal, &flat->right_side, &flat->bound, &flat->x, &flat->eigenvector};
    for (int i = 0; i < 5; ++i, real += n)
        *field[i] = real;
    for (int axis = 0; axis < SELKIE_DIM; ++axis, real += n)
        flat->face[axis] = real;
    int32_t *whole = (int32_t *)real;
    for (int axis = 0; axis < SELKIE_DIM; ++axis, whole += 2 * n) {
        flat->lower[axis] = whole;
        flat->upper[axis] = whole + n;
    }
    f->number = whole;
    f->order = whole + cells;
    flat->axes = SELKIE_DIM;
    flat->count = (int32_t)level->unknowns;
    return SELKIE_OK;
}

static void sort_blocks(flattening *f)
{
    const sk_level *level = f->level;
    placed_block *placed = (placed_block *)(void *)(f->order + level->block_count);
    for (int block = 1; block <= level->block_count; ++block) {
        memcpy(placed[block - 1].place, level->coordinates[block], sizeof(placed[0].place));
        placed[block - 1].block = block;
    }
    qsort(placed, (size_t)level->block_count, sizeof(*placed), compare_places);
    for (int n = 0; n < level->block_count; ++n)
        f->order[n] = placed[n].block;
}

/* Numbers cells plane by plane, row by row, across all blocks of a row: f->order lists the blocks so. */
static void number_cells(flattening *f)
{
    const sk_level *level = f->level;
    memset(f->number, 0xff, ((size_t)level->block_count + 1) * SK_BLOCK_CELLS * sizeof(int32_t));
    int32_t next = 0;
    for (int layer = 0, layer_end; layer < level->block_count; layer = layer_end) {
        const int32_t *first = level->coordinates[f->order[layer]];
        for (layer_end = layer; layer_end < level->block_count; ++layer_end)
            if (level->coordinates[f->order[layer_end]][2] != first[2])
                break;
        for (int k = 0; k < SK_PLANES; ++k)
            for (int row = layer, row_end; row < layer_end; row = row_end) {
                int32_t y = level->coordinates[f->order[row]][1];
                for (row_end = row; row_end < layer_end; ++row_end)
                    if (level->coordinates[f->order[row_end]][1] != y)
                        break;
                for (int j = 0; j < SK_BLOCK_N; ++j)
                    for (int n = row; n < row_end; ++n)
                        for (int i = 0; i < SK_BLOCK_N; ++i) {
                            int block = f->order[n], index = sk_split_index(i, j, k);
                            if (sk_is_unknown(level, block, index))
                                f->number[(size_t)block * SK_BLOCK_CELLS + (size_t)index] = next++;
                        }
            }
    }
}

/* The number of the cell across a side; `count` if it is no unknown. */
static int32_t neighbour_of(const flattening *f, int block, const int cell[3], int side)
{
    int axis = side / 2, to[3] = {cell[0], cell[1], cell[2]};
    to[axis] += side & 1 ? 1 : -1;
    if (to[axis] < 0 || to[axis] >= SK_BLOCK_N) {
        block = f->level->neighbour[block][side];
        to[axis] &= SK_BLOCK_MASK;
    }
    int32_t n = f->number[(size_t)block * SK_BLOCK_CELLS + (size_t)sk_split_index(to[0], to[1], to[2])];
    return n < 0 ? f->flat.count : n;
}

static void fill_cell(flattening *f, int block, const int cell[3], int32_t n, int warm_start)
{
    const sk_level *level = f->level;
    const sk_poisson_system *system = &f->system->poisson;
    sk_flat_system *flat = &f->flat;
    int index = sk_split_index(cell[0], cell[1], cell[2]), uniform = level->slot[block] == SK_SLOT_UNIFORM;
    size_t from = (size_t)f->solver->poisson->outside[block] * SK_BLOCK_CELLS +
                  (size_t)(cell[0] + SK_BLOCK_N * (cell[1] + SK_BLOCK_N * cell[2]));
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        flat->lower[axis][n] = neighbour_of(f, block, cell, 2 * axis);
        flat->upper[axis][n] = neighbour_of(f, block, cell, 2 * axis + 1);
        flat->face[axis][n] = uniform ? 1 : (double)sk_slot_array(level, block, axis)[index];
    }
    /* The faces are added once those of the upper neighbours are computed. */
    flat->diagonal[n] =
        (double)(uniform ? level->excess[block] : sk_slot_array(level, block, SK_COEFFICIENT_EXCESS)[index]);
    flat->right_side[n] = (double)system->right_side[from];
    flat->bound[n] = f->system->lower ? (double)f->system->lower[from] : 0;
    flat->x[n] =
        fmax(flat->bound[n], warm_start && isfinite(system->solution[from]) ? (double)system->solution[from] : 0);
}

static void fill(flattening *f, int warm_start)
{
    const sk_level *level = f->level;
    sk_flat_system *flat = &f->flat;
    for (int block = 1; block <= level->block_count; ++block)
        for (int at = 0; at < SK_BLOCK_CELLS; ++at) {
            int cell[3] = {at % SK_BLOCK_N, at / SK_BLOCK_N % SK_BLOCK_N, at / (SK_BLOCK_N * SK_BLOCK_N)};
            int32_t n = f->number[(size_t)block * SK_BLOCK_CELLS + (size_t)sk_split_index(cell[0], cell[1], cell[2])];
            if (n >= 0)
                fill_cell(f, block, cell, n, warm_start);
        }
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        flat->lower[axis][flat->count] = flat->upper[axis][flat->count] = flat->count;
        flat->face[axis][flat->count] = 0;
    }
    flat->diagonal[flat->count] = flat->right_side[flat->count] = flat->bound[flat->count] = flat->x[flat->count] = 0;
    for (int32_t n = 0; n < flat->count; ++n)
        for (int axis = 0; axis < SELKIE_DIM; ++axis)
            flat->diagonal[n] += flat->face[axis][n] + flat->face[axis][flat->upper[axis][n]];
}

/* The number of cell n of a piece of a closed component. */
static int32_t piece_cell(const flattening *f, const sk_pocket_piece *piece, int n)
{
    int index = piece->first < 0 ? n : f->solver->poisson->pockets.cell[piece->first + n];
    return f->number[(size_t)piece->block * SK_BLOCK_CELLS + (size_t)index];
}

/* Subtracts the mean of the right side from closed components without a solution: overfull ones, and unbalanced ones
 * without bounds. pockets->mean keeps the mean; it is 0 for other components. Returns their number. */
static int balance_overfull(flattening *f)
{
    const sk_pockets *pockets = &f->solver->poisson->pockets;
    for (size_t p = 0; p < pockets->piece_count;) {
        int component = pockets->piece[p].component, bounded = 0;
        double sum = 0;
        for (; p < pockets->piece_count && pockets->piece[p].component == component; ++p)
            for (int n = 0; n < pockets->piece[p].count; ++n) {
                int32_t cell = piece_cell(f, &pockets->piece[p], n);
                sum += f->flat.right_side[cell];
                bounded |= f->flat.bound[cell] > -INFINITY;
            }
        pockets->mean[component] = sum > 0 || !bounded ? sum : 0;
    }
    for (size_t p = 0; p < pockets->piece_count; ++p) {
        int component = pockets->piece[p].component;
        for (int n = 0; n < pockets->piece[p].count; ++n)
            f->flat.right_side[piece_cell(f, &pockets->piece[p], n)] -=
                pockets->mean[component] / (double)pockets->cells_of[component];
    }
    int overfull = 0;
    for (int component = 0; component < pockets->component_count; ++component)
        overfull += pockets->mean[component] != 0;
    return overfull;
}

/* Shifts the solution of those components, if all of their cells are free, to the least one above the bounds. */
static void lower_overfull(flattening *f)
{
    const sk_pockets *pockets = &f->solver->poisson->pockets;
    for (size_t p = 0; p < pockets->piece_count;) {
        int component = pockets->piece[p].component;
        size_t end = p;
        double least = INFINITY;
        for (; end < pockets->piece_count && pockets->piece[end].component == component; ++end)
            for (int n = 0; n < pockets->piece[end].count; ++n) {
                int32_t cell = piece_cell(f, &pockets->piece[end], n);
                least = fmin(least, f->flat.x[cell] - f->flat.bound[cell]);
            }
        for (; p < end; ++p)
            for (int n = 0; n < pockets->piece[p].count && pockets->mean[component] > 0 && least < INFINITY; ++n)
                f->flat.x[piece_cell(f, &pockets->piece[p], n)] -= least;
    }
}

/* --- The eigenvector from solve to solve --- */

static const float *find_last(const sk_bounded_solver *solver, const int32_t *place)
{
    int low = 0, high = solver->last_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (compare_places(solver->last_place[middle], place) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < solver->last_count && compare_places(solver->last_place[low], place) == 0
               ? solver->last_eigenvector + (size_t)low * SK_BLOCK_CELLS
               : NULL;
}

/* Start of cells without a value of the last solve: a checkerboard, which is close to the eigenvector, plus noise,
 * which contains all others. */
static void start_eigenvector(flattening *f)
{
    const sk_level *level = f->level;
    double mean = f->flat.count ? 1 / sqrt((double)f->flat.count) : 0;
    for (int block = 1; block <= level->block_count; ++block) {
        const float *last = find_last(f->solver, level->coordinates[block]);
        for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
            int32_t n = f->number[(size_t)block * SK_BLOCK_CELLS + (size_t)i];
            double noise = (double)sk_random_float(1, (uint64_t)(n < 0 ? 0 : n), 0);
            double fresh = (i < SK_HALF ? mean : -mean) * (0.5 + noise);
            if (n >= 0)
                f->flat.eigenvector[n] = last && last[i] != 0 ? (double)last[i] : fresh;
        }
    }
    f->flat.eigenvector[f->flat.count] = 0;
}

static selkie_code keep_eigenvector(flattening *f, selkie_error *error)
{
    const sk_level *level = f->level;
    sk_bounded_solver *solver = f->solver;
    size_t blocks = (size_t)level->block_count;
    solver->last_count = 0;
    if (blocks == 0)
        return SELKIE_OK;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &solver->last_memory,
                                      blocks * (sizeof(*solver->last_place) + SK_BLOCK_CELLS * sizeof(float)), error));
    solver->last_place = solver->last_memory.data;
    solver->last_eigenvector = (float *)(solver->last_place + blocks);
    for (size_t b = 0; b < blocks; ++b) {
        int block = f->order[b];
        memcpy(solver->last_place[b], level->coordinates[block], sizeof(solver->last_place[b]));
        for (size_t i = 0; i < SK_BLOCK_CELLS; ++i) {
            int32_t n = f->number[(size_t)block * SK_BLOCK_CELLS + i];
            solver->last_eigenvector[b * SK_BLOCK_CELLS + i] = n < 0 ? 0 : (float)f->flat.eigenvector[n];
        }
    }
    solver->last_count = level->block_count;
    return SELKIE_OK;
}

static int write_solution(const flattening *f, sk_bounded_report *report)
{
    const sk_poisson_system *system = &f->system->poisson;
    memset(system->solution, 0, (size_t)system->block_count * SK_BLOCK_CELLS * sizeof(float));
    int finite = 1;
    for (int block = 1; block <= f->level->block_count; ++block)
        for (int at = 0; at < SK_BLOCK_CELLS; ++at) {
            int index = sk_split_index(at % SK_BLOCK_N, at / SK_BLOCK_N % SK_BLOCK_N, at / (SK_BLOCK_N * SK_BLOCK_N));
            int32_t n = f->number[(size_t)block * SK_BLOCK_CELLS + (size_t)index];
            if (n < 0)
                continue;
            float x = (float)f->flat.x[n];
            system->solution[(size_t)f->solver->poisson->outside[block] * SK_BLOCK_CELLS + (size_t)at] = x;
            finite &= isfinite(x) != 0;
            report->free_cells += f->flat.x[n] > f->flat.bound[n];
        }
    report->active_cells = report->unknowns - report->free_cells;
    return finite;
}

/* Checks the bounds. Coefficients are checked by their readers. Cells that are no unknowns may hold anything. */
static selkie_code check_bounds(const sk_bounded_system *system, selkie_error *error)
{
    const sk_poisson_system *poisson = &system->poisson;
    for (size_t i = SK_BLOCK_CELLS; i < (size_t)poisson->block_count * SK_BLOCK_CELLS; ++i) {
        if (!(poisson->diagonal[i] > 0))
            continue;
        if (!isfinite(poisson->right_side[i]))
            return sk_fail(error, SELKIE_ERROR_DIVERGED, SK_BAD_RIGHT_SIDE);
        if (system->lower && !(system->lower[i] < INFINITY))
            return sk_fail(error, SELKIE_ERROR_DIVERGED, SK_BAD_BOUNDS);
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_bounded_solve_flat)(sk_bounded_solver *solver, const sk_bounded_system *system,
                                          const sk_bounded_options *options, sk_bounded_report *report,
                                          selkie_error *error)
{
    double start = sk_wall_ms();
    SK_TRY(check_bounds(system, error));
    int threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    SK_TRY(SK_DIM(sk_poisson_read)(solver->poisson, &system->poisson, threads, error));
    SK_TRY(SK_DIM(sk_pockets_find)(solver->poisson, error));

    /* Flatten the blocks into one sparse matrix. */
    flattening f = {.solver = solver, .system = system, .level = &solver->poisson->multigrid.level[0]};
    SK_TRY(allocate(&f, error));
    sort_blocks(&f);
    number_cells(&f);
    fill(&f, options->warm_start);

    /* The last solve's eigenvector is a good start for this one. */
    if (options->forget)
        solver->last_count = 0;
    start_eigenvector(&f);
    report->unknowns = f.level->unknowns;
    report->overfull_components = balance_overfull(&f);

    /* Solve, and write the solution back to the blocks. */
    double ready = sk_wall_ms();
    report->setup_ms = ready - start;
    sk_mprgp_solve(&f.flat, options, f.scratch, report);
    lower_overfull(&f);
    SK_TRY(keep_eigenvector(&f, error));
    int finite = write_solution(&f, report) && isfinite(report->residual);
    report->solve_ms = sk_wall_ms() - ready;
    if (!finite)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "bounded solver: the solution is not finite after %d steps: try a smaller time step",
                       report->iterations);
    return SELKIE_OK;
}

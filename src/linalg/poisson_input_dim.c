/* Reads the caller's fields into level 0 of the solver.
 *
 * Only blocks with unknowns are read. A uniform block has unknowns with full faces and the same excess in all cells,
 * and stores no coefficients. In a deep pool nearly all blocks are uniform. The others are general.
 *
 * Faces towards cells that are no unknowns are dropped: x is zero behind them, and their weight is part of the excess.
 */
#include "linalg/solver.h"

#include <math.h>
#include <stdlib.h>

enum { flaw_neighbour = 8 }; /* besides those of linalg_kernels.h */

/* --- Which blocks --- */

/* Spreads the bits of a coordinate to every third bit. */
static uint64_t spread(uint64_t x)
{
    x &= 0x1fffff;
    x = (x | x << 32) & 0x1f00000000ffffULL;
    x = (x | x << 16) & 0x1f0000ff0000ffULL;
    x = (x | x << 8) & 0x100f00f00f00f00fULL;
    x = (x | x << 4) & 0x10c30c30c30c30c3ULL;
    return (x | x << 2) & 0x1249249249249249ULL;
}

typedef struct curve_entry {
    uint64_t code;
    int32_t block, unused;
} curve_entry;

static int compare_entries(const void *left, const void *right)
{
    const curve_entry *a = left, *b = right;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* 1 if the block has unknowns, plus flaws shifted by one bit. */
static int look_at_diagonal(const float *diagonal)
{
    int32_t positive = 0, negative = 0, wild = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
        int32_t bits;
        memcpy(&bits, diagonal + i, sizeof(bits));
        positive |= diagonal[i] > SK_SMALLEST_DIAGONAL;
        negative |= diagonal[i] < 0;
        wild |= (bits & 0x7f800000) == 0x7f800000;
    }
    return positive | (wild ? SK_FLAW_NOT_FINITE << 1 : 0) | (negative ? SK_FLAW_NEGATIVE << 1 : 0);
}

static selkie_code complain(int flaws, int block, const sk_poisson_system *system, selkie_error *error)
{
    const int32_t *c = system->coordinates[block];
    const char *what = flaws & SK_FLAW_NOT_FINITE ? "a coefficient or right side is not finite"
                       : flaws & SK_FLAW_NEGATIVE ? "a coefficient is negative"
                       : flaws & flaw_neighbour   ? "its neighbours are not where its coordinates say"
                                                  : "a diagonal is less than the sum of its faces";
    return sk_fail(error, flaws & SK_FLAW_NOT_FINITE ? SELKIE_ERROR_DIVERGED : SELKIE_ERROR_INPUT,
                   "pressure solver: block (%d, %d, %d): %s", (int)c[0], (int)c[1], (int)c[2], what);
}

static selkie_code choose_blocks(sk_poisson_solver *solver, const sk_poisson_system *system, int threads, int *chosen,
                                 selkie_error *error)
{
    int count = system->block_count > 0 ? system->block_count : 1;
    sk_memory *memory = solver->memory;
    (void)threads; /* in builds without OpenMP */
    SK_TRY(SK_DIM(sk_scratch_reserve)(memory, &solver->map_memory, 2 * ((size_t)count + 16) * sizeof(int32_t), error));
    SK_TRY(SK_DIM(sk_scratch_reserve)(memory, &solver->sort_memory, (size_t)count * (sizeof(curve_entry) + 16), error));
    solver->inside = solver->map_memory.data;
    solver->outside = solver->inside + (count + 15) / 16 * 16;
    solver->inside[0] = 0;

    /* Find blocks with unknowns, and flaws of the diagonal. */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && count > 64)
    for (int block = 1; block < count; ++block)
        solver->inside[block] = look_at_diagonal(system->diagonal + (size_t)block * SK_BLOCK_CELLS);

    /* List them along the Morton curve. */
    curve_entry *entry = solver->sort_memory.data;
    int active = 0, sorted = 1;
    for (int block = 1; block < count; ++block) {
        const int32_t *c = system->coordinates[block];
        if (solver->inside[block] > 1)
            return complain(solver->inside[block] >> 1, block, system, error);
        if (!solver->inside[block])
            continue;
        for (int axis = 0; axis < 3; ++axis)
            if (c[axis] < 0 || c[axis] >= 1 << 21 || (axis >= SELKIE_DIM && c[axis] != 0))
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "pressure solver: block (%d, %d, %d) is outside of what can be numbered (0 to %d)",
                               (int)c[0], (int)c[1], (int)c[2], (1 << 21) - 1);
        uint64_t code = spread((uint64_t)c[0]) | spread((uint64_t)c[1]) << 1 | spread((uint64_t)c[2]) << 2;
        sorted &= active == 0 || entry[active - 1].code < code;
        entry[active++] = (curve_entry){code, block, 0};
    }
    if (!sorted)
        qsort(entry, (size_t)active, sizeof(*entry), compare_entries);
    *chosen = active;
    return SELKIE_OK;
}

static selkie_code number_blocks(sk_poisson_solver *solver, const sk_poisson_system *system, int active,
                                 selkie_error *error)
{
    sk_level *level = &solver->multigrid.level[0];
    SK_TRY(SK_DIM(sk_level_allocate)(&solver->multigrid, 0, active, error));
    memcpy(level->joined, system->joined, sizeof(level->joined));

    /* Coordinates along the curve. Two blocks at one place are an error. */
    const curve_entry *entry = solver->sort_memory.data;
    int32_t(*curve)[4] = (void *)((char *)solver->sort_memory.data + (size_t)active * sizeof(curve_entry));
    for (int i = 0; i < active; ++i) {
        if (i > 0 && entry[i].code == entry[i - 1].code)
            return complain(flaw_neighbour, entry[i].block, system, error);
        memcpy(curve[i], system->coordinates[entry[i].block], sizeof(curve[i]));
        curve[i][3] = 0;
    }

    /* Map the caller's numbers to the level's and back. */
    SK_DIM(sk_level_number)(level, (const int32_t(*)[4])curve, level->slot);
    solver->outside[0] = 0;
    for (int i = 0; i < active; ++i) {
        solver->inside[entry[i].block] = level->slot[i];
        solver->outside[level->slot[i]] = entry[i].block;
    }

    /* Neighbours, checked against the coordinates. */
    for (int block = 1; block <= active; ++block) {
        int out = solver->outside[block];
        memset(level->neighbour[block], 0, sizeof(level->neighbour[block]));
        for (int side = 0; side < SK_SIDES; ++side) {
            int other = system->faces[out][side];
            if (other <= 0 || other >= system->block_count || !solver->inside[other])
                continue;
            int32_t there[3];
            memcpy(there, system->coordinates[out], sizeof(there));
            there[side / 2] += side & 1 ? 1 : -1;
            if (system->joined[side / 2])
                there[side / 2] = sk_wrap_index(there[side / 2], system->joined[side / 2]);
            if (memcmp(there, system->coordinates[other], sizeof(there)) != 0)
                return complain(flaw_neighbour, out, system, error);
            level->neighbour[block][side] = solver->inside[other];
        }
    }
    level->slot[0] = SK_SLOT_EMPTY;
    return SELKIE_OK;
}

/* --- Coefficients --- */

void SK_DIM(sk_look_up_source)(const sk_poisson_solver *solver, const sk_poisson_system *system, int block,
                               sk_source *from)
{
    const sk_level *level = &solver->multigrid.level[0];
    size_t own = (size_t)solver->outside[block] * SK_BLOCK_CELLS;
    from->diagonal = system->diagonal + own;
    for (int side = 0; side < SK_SIDES; ++side)
        from->diagonal_side[side] =
            system->diagonal + (size_t)solver->outside[level->neighbour[block][side]] * SK_BLOCK_CELLS;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        from->face[axis] = system->face[axis] + own;
        from->face_upper[axis] =
            system->face[axis] + (size_t)solver->outside[level->neighbour[block][2 * axis + 1]] * SK_BLOCK_CELLS;
    }
}

static selkie_code allocate_coefficients(sk_poisson_solver *solver, int general, selkie_error *error)
{
    sk_level *level = &solver->multigrid.level[0];
    size_t slots = (size_t)general + SK_SLOT_FIRST, slot_cells = SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS;
    size_t blocks = (size_t)level->block_count + 1;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &level->coefficient_memory, slots * slot_cells * sizeof(float),
                                      error));
    level->coefficients = level->coefficient_memory.data;
    memset(level->coefficients, 0, SK_SLOT_FIRST * slot_cells * sizeof(float));
    for (size_t i = 0; i < SELKIE_DIM * SK_BLOCK_CELLS; ++i)
        level->coefficients[SK_SLOT_UNIFORM * slot_cells + i] = 1.0f;
    SK_TRY(SK_DIM(sk_scratch_reserve)(solver->memory, &solver->link_memory,
                                      slots * sizeof(sk_links) + blocks * sizeof(sk_cell_bits) + 64, error));
    solver->links = solver->link_memory.data;
    solver->open = (sk_cell_bits *)(solver->links + slots);
    memset(solver->open, 0, blocks * sizeof(sk_cell_bits));
    memset(&solver->links[SK_SLOT_EMPTY], 0, sizeof(sk_links));
    memset(&solver->links[SK_SLOT_UNIFORM], 0xff, sizeof(sk_links));
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_poisson_read)(sk_poisson_solver *solver, const sk_poisson_system *system, int threads,
                                    selkie_error *error)
{
    int active = 0;
    SK_TRY(choose_blocks(solver, system, threads, &active, error));
    SK_TRY(number_blocks(solver, system, active, error));
    sk_level *level = &solver->multigrid.level[0];

    /* Uniform blocks first, since the coefficients of the others need memory. Reports the flaws of the first block
     * that has any. Threads follow the curve, so that each prepares about its own blocks of the solve. */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && active > 64)
    for (int i = 0; i < active; ++i) {
        int block = level->morton[i], flaws = 0;
        level->slot[block] = solver->operations->is_uniform(solver, system, block, &flaws);
        level->work[block] = flaws;
    }
    int general = 0;
    for (int block = 1; block <= active; ++block)
        level->slot[block] = level->slot[block] ? SK_SLOT_UNIFORM : SK_SLOT_FIRST + general++;
    SK_TRY(allocate_coefficients(solver, general, error));
    int64_t unknowns = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : unknowns) if (threads > 1 && active > 64)
    for (int i = 0; i < active; ++i) {
        int block = level->morton[i], count = SK_BLOCK_CELLS;
        level->active[block] = SK_ALL_ACTIVE;
        if (level->slot[block] != SK_SLOT_UNIFORM)
            level->work[block] = solver->operations->read_general(solver, system, block, &count);
        else if (level->excess[block] > 0)
            memset(&solver->open[block], 0xff, sizeof(solver->open[block]));
        unknowns += count;
    }
    for (int block = 1; block <= active; ++block)
        if (level->work[block])
            return complain(level->work[block], solver->outside[block], system, error);
    level->unknowns = unknowns;
    SK_DIM(sk_level_finish_work)(level);
    return SELKIE_OK;
}

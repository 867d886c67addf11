/* The caller's fields to level 0 of the solver.
 *
 * Only blocks with unknowns are taken over. A block whose cells are all unknowns
 * with six full faces and the same excess is uniform and stores no coefficients;
 * in a deep pool that is nearly all of them. The others are general.
 *
 * Faces towards cells that are no unknowns are dropped here: what is behind them
 * is zero in A x anyway, and what they weigh belongs to the excess.
 */
#include "linalg/solver.h"

#include <math.h>
#include <stdlib.h>

/* An excess below this part of the diagonal is the round-off of the caller's sum. */
static const float round_off = 2e-6f;

/* A diagonal below this has no inverse in single precision and counts as none. */
static const float smallest_diagonal = 1e-30f;

enum { flaw_none = 0, flaw_not_finite = 1, flaw_negative = 2, flaw_not_dominant = 4, flaw_neighbour = 8 };

/* --- Which blocks --- */

/* One bit of the axis's coordinate in every third place. */
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

/* 1 if the block has unknowns, and flaws shifted by one. */
static int look_at_diagonal(const float *diagonal)
{
    int32_t positive = 0, negative = 0, wild = 0;
    for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
        int32_t bits;
        memcpy(&bits, diagonal + i, sizeof(bits));
        positive |= diagonal[i] > smallest_diagonal;
        negative |= diagonal[i] < 0;
        wild |= (bits & 0x7f800000) == 0x7f800000;
    }
    return positive | (wild ? flaw_not_finite << 1 : 0) | (negative ? flaw_negative << 1 : 0);
}

static selkie_code complain(int flaws, int block, const sk_poisson_system *system, selkie_error *error)
{
    const int32_t *c = system->coordinates[block];
    const char *what = flaws & flaw_not_finite  ? "a coefficient or right side is not finite"
                       : flaws & flaw_negative  ? "a coefficient is negative"
                       : flaws & flaw_neighbour ? "its neighbours are not where its coordinates say"
                                                : "a diagonal is less than the sum of its faces";
    return sk_fail(error, flaws & flaw_not_finite ? SELKIE_ERROR_DIVERGED : SELKIE_ERROR_INPUT,
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
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && count > 64)
    for (int block = 1; block < count; ++block)
        solver->inside[block] = look_at_diagonal(system->diagonal + (size_t)block * SK_BLOCK_CELLS);
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
    const curve_entry *entry = solver->sort_memory.data;
    int32_t(*curve)[4] = (void *)((char *)solver->sort_memory.data + (size_t)active * sizeof(curve_entry));
    for (int i = 0; i < active; ++i) {
        if (i > 0 && entry[i].code == entry[i - 1].code)
            return complain(flaw_neighbour, entry[i].block, system, error);
        memcpy(curve[i], system->coordinates[entry[i].block], sizeof(curve[i]));
        curve[i][3] = 0;
    }
    SK_DIM(sk_level_number)(level, (const int32_t(*)[4])curve, level->slot);
    solver->outside[0] = 0;
    for (int i = 0; i < active; ++i) {
        solver->inside[entry[i].block] = level->slot[i];
        solver->outside[level->slot[i]] = entry[i].block;
    }
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
            if (memcmp(there, system->coordinates[other], sizeof(there)) != 0)
                return complain(flaw_neighbour, out, system, error);
            level->neighbour[block][side] = solver->inside[other];
        }
    }
    level->slot[0] = SK_SLOT_EMPTY;
    return SELKIE_OK;
}

/* --- Coefficients --- */

typedef struct source {
    const float *diagonal, *diagonal_side[6]; /* own block, those around it */
    const float *face[3], *face_upper[3];     /* own block, the one on the upper side along that axis */
} source;

static void look_up_source(const sk_poisson_solver *solver, const sk_poisson_system *system, int block, source *from)
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

typedef struct row_coefficients {
    sk_row face[SELKIE_DIM], excess, inverse;
    sk_int_row unknown, unlike; /* unlike: what a uniform block has nowhere */
} row_coefficients;

#if SELKIE_DIM == 2
#define SK_ROW_FROM_LEFT 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#define SK_ROW_FROM_RIGHT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#else
#define SK_ROW_FROM_LEFT 15, 0, 1, 2, 3, 4, 5, 6
#define SK_ROW_FROM_RIGHT 1, 2, 3, 4, 5, 6, 7, 8
#endif

SK_INLINE sk_row row_at(const float *field, int j, int k)
{
    return *(const sk_row *)(field + (j + SK_BLOCK_N * k) * SK_BLOCK_N);
}

/* The row before or after (j, k) along an axis, from the block on that side where it ends here. */
SK_INLINE sk_row row_beside(const float *own, const float *beside, int axis, int step, int j, int k)
{
    int at = (axis == 1 ? j : k) + step;
    const float *field = at < 0 || at >= SK_BLOCK_N ? beside : own;
    at &= SK_BLOCK_MASK;
    return axis == 1 ? row_at(field, at, k) : row_at(field, j, at);
}

SK_INLINE sk_row keep(sk_row value, sk_int_row mask)
{
    return (sk_row)((sk_int_row)value & mask);
}

/* A bit for each lane whose mask is set. */
SK_INLINE unsigned row_bits(sk_int_row mask)
{
#if SELKIE_DIM == 2
    return i8_bits(__builtin_shufflevector(mask, mask, 0, 1, 2, 3, 4, 5, 6, 7)) |
           i8_bits(__builtin_shufflevector(mask, mask, 8, 9, 10, 11, 12, 13, 14, 15)) << 8;
#else
    return i8_bits(mask);
#endif
}

SK_INLINE int any(sk_int_row mask)
{
    return row_bits(mask) != 0;
}

SK_INLINE void read_row(const source *from, int j, int k, row_coefficients *row, sk_int_row flaw[3])
{
    const sk_row zero = {0}, least = smallest_diagonal - zero;
    sk_row d = row_at(from->diagonal, j, k), sum = zero;
    sk_int_row unknown = d > least, unlike = ~unknown;
    for (int axis = 0; axis < SELKIE_DIM; ++axis) {
        sk_row face = row_at(from->face[axis], j, k), d_lower, d_upper, face_upper;
        flaw[0] |= ((sk_int_row)face & 0x7f800000) == 0x7f800000;
        flaw[1] |= face < zero;
        if (axis == 0) {
            d_lower = __builtin_shufflevector(d, row_at(from->diagonal_side[0], j, k), SK_ROW_FROM_LEFT);
            d_upper = __builtin_shufflevector(d, row_at(from->diagonal_side[1], j, k), SK_ROW_FROM_RIGHT);
            face_upper = __builtin_shufflevector(face, row_at(from->face_upper[0], j, k), SK_ROW_FROM_RIGHT);
        } else {
            d_lower = row_beside(from->diagonal, from->diagonal_side[2 * axis], axis, -1, j, k);
            d_upper = row_beside(from->diagonal, from->diagonal_side[2 * axis + 1], axis, 1, j, k);
            face_upper = row_beside(from->face[axis], from->face_upper[axis], axis, 1, j, k);
        }
        face = keep(face, unknown & (d_lower > least));
        face_upper = keep(face_upper, unknown & (d_upper > least));
        unlike |= (face != 1.0f - zero) | (face_upper != 1.0f - zero);
        row->face[axis] = face;
        sum += face + face_upper;
    }
    sk_row excess = keep(d - sum, unknown);
    flaw[2] |= excess < -1e-3f * d;
    excess = keep(excess, excess > round_off * d);
    row->excess = excess;
    sk_row diagonal = sum + excess;
    row->inverse = keep(1.0f / (diagonal + keep(1.0f - zero, ~unknown)), unknown);
    row->unknown = unknown;
    row->unlike = unlike;
}

static int judge(const sk_int_row flaw[3])
{
    return (any(flaw[0]) ? flaw_not_finite : 0) | (any(flaw[1]) ? flaw_negative : 0) |
           (any(flaw[2]) ? flaw_not_dominant : 0);
}

/* Is the block uniform? Stops at the first row that is not. */
static int is_uniform(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *flaws)
{
    source from;
    look_up_source(solver, system, block, &from);
    sk_level *level = &solver->multigrid.level[0];
    sk_int_row flaw[3] = {{0}};
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            row_coefficients row;
            read_row(&from, j, k, &row, flaw);
            if (j == 0 && k == 0) {
                level->excess[block] = row.excess[0];
                level->inverse[block] = row.inverse[0];
            }
            if (any(row.unlike | (row.excess != level->excess[block] - (sk_row){0})))
                return 0;
        }
    *flaws = judge(flaw);
    return 1;
}

SK_INLINE void set_row_bits(sk_cell_bits *bits, int j, int k, sk_int_row mask)
{
    int at = SK_BLOCK_N * (j + SK_BLOCK_N * k);
    bits->word[at / 64] |= (uint64_t)row_bits(mask) << (at % 64);
}

/* Fills the slot of a general block; returns its flaws. */
static int read_general(sk_poisson_solver *solver, const sk_poisson_system *system, int block, int *unknowns)
{
    sk_level *level = &solver->multigrid.level[0];
    source from;
    look_up_source(solver, system, block, &from);
    int slot = level->slot[block];
    float *array[SK_COEFFICIENT_ARRAYS];
    for (int i = 0; i < SK_COEFFICIENT_ARRAYS; ++i)
        array[i] = level->coefficients + ((size_t)slot * SK_COEFFICIENT_ARRAYS + (size_t)i) * SK_BLOCK_CELLS;
    sk_links *links = &solver->links[slot];
    memset(links, 0, sizeof(*links));
    sk_int_row flaw[3] = {{0}}, count = {0};
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j) {
            row_coefficients row;
            if (!any(row_at(from.diagonal, j, k) > smallest_diagonal - (sk_row){0})) {
                /* no unknowns: neither coefficients nor links, and flaws are looked for where they would matter */
                for (int i = 0; i < SK_COEFFICIENT_ARRAYS; ++i)
                    sk_split_row(array[i], j, k, (sk_row){0});
                continue;
            }
            read_row(&from, j, k, &row, flaw);
            for (int axis = 0; axis < SELKIE_DIM; ++axis) {
                sk_split_row(array[axis], j, k, row.face[axis]);
                set_row_bits(&links->face[axis], j, k, row.face[axis] > (sk_row){0});
            }
            sk_split_row(array[SK_COEFFICIENT_EXCESS], j, k, row.excess);
            sk_split_row(array[SK_COEFFICIENT_INVERSE], j, k, row.inverse);
            set_row_bits(&links->unknown, j, k, row.unknown);
            set_row_bits(&solver->open[block], j, k, row.excess > (sk_row){0});
            count -= row.unknown;
        }
    *unknowns = 0;
    for (int i = 0; i < SK_BLOCK_N; ++i)
        *unknowns += count[i];
    level->excess[block] = level->inverse[block] = 0;
    /* A vector of both colours together is a run of cells in natural order. */
    level->active[block] = 0;
    for (int bit = 0; bit < SK_ACTIVE_BITS; ++bit) {
        int first = bit * 2 * SK_LANES;
        uint64_t run = links->unknown.word[first / 64] >> (first % 64) & ~0ULL >> (64 - 2 * SK_LANES);
        level->active[block] |= (sk_active)(run != 0) << bit;
    }
    return judge(flaw);
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

    /* Uniform blocks first, since the others' coefficients need room. Flaws are told of the first block that has one.
     * Along the curve, so that threads prepare about what will be theirs in the solve. */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && active > 64)
    for (int i = 0; i < active; ++i) {
        int block = level->morton[i], flaws = 0;
        level->slot[block] = is_uniform(solver, system, block, &flaws);
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
            level->work[block] = read_general(solver, system, block, &count);
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

float SK_DIM(sk_read_right_side)(const sk_poisson_solver *solver, const sk_poisson_system *system, int block,
                                 float scale, float *b)
{
    const sk_level *level = &solver->multigrid.level[0];
    const float *field = system->right_side + (size_t)solver->outside[block] * SK_BLOCK_CELLS;
    for (int k = 0; k < SK_PLANES; ++k)
        for (int j = 0; j < SK_BLOCK_N; ++j)
            sk_split_row(b, j, k, scale * row_at(field, j, k));
    /* Cells that are no unknowns may hold anything. */
    if (level->slot[block] != SK_SLOT_UNIFORM) {
        const float *inverse = sk_slot_array(level, block, SK_COEFFICIENT_INVERSE);
        for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
            sk_int_vec unknown = sk_load(inverse + i) > (sk_vec){0};
            sk_store(b + i, (sk_vec)((sk_int_vec)sk_load(b + i) & unknown));
        }
    }
    sk_int_vec largest = {0};
    for (int i = 0; i < SK_BLOCK_CELLS; i += SK_LANES) {
        sk_int_vec magnitude = (sk_int_vec)sk_load(b + i) & 0x7fffffff; /* order of floats is that of their bits */
        sk_int_vec larger = magnitude > largest;
        largest = (magnitude & larger) | (largest & ~larger);
    }
    int32_t bits = 0;
    for (int i = 0; i < SK_LANES; ++i)
        bits = largest[i] > bits ? largest[i] : bits;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

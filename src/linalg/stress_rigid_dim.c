/* Momentum and angular momentum of liquid that touches no wall.
 *
 * Viscous forces are internal, so both stay what the target says. The conjugate gradients stop at a tolerance and leave
 * an error. A rigid motion removes it: it has no strain, so the stress does not change. Each connected part of the
 * liquid gets its own (Batty and Bridson 2008, sec. 4, keep it by tight tolerances).
 *
 * A speck, a part with less than a cell of liquid, keeps its target. Few of its faces have mass, so that its rotation
 * is free: the massless faces beside them may have any velocity, and a particle that reads them would lose its own. */
#include <math.h>
#include <string.h>

#include "linalg/stress_solver.h"

enum { MODES = SK_STRESS_MODES, TRIANGLE = SK_STRESS_TRIANGLE };

/* Sums over the faces of a part. */
typedef struct part {
    double matrix[TRIANGLE]; /* of masses: lower triangle */
    double missing[MODES];   /* momentum and angular momentum; then the rigid motion */
    int held;                /* a wall acts on it */
    int speck;               /* less than a cell of liquid */
} part;

static int32_t find_root(int32_t *root, int32_t i)
{
    while (root[i] != i) {
        root[i] = root[root[i]];
        i = root[i];
    }
    return i;
}

/* Joins a row to the part with root `own`. Returns the root of the two, the smaller one: the result does not depend on
 * the order. */
static inline int32_t join_to(int32_t *root, int32_t own, int32_t other)
{
    if (root[other] == own)
        return own;
    const int32_t found = find_root(root, other), least = own < found ? own : found;
    root[own < found ? found : own] = least;
    root[other] = least;
    return least;
}

static inline void join(int32_t *root, int32_t i, int32_t other)
{
    root[i] = join_to(root, find_root(root, i), other);
}

/* The search for the parts. */
typedef struct part_search {
    const sk_stress_level *level;
    int32_t *root; /* [count] a row of the same part with a smaller number; itself for the first of the part */
    uint32_t runs; /* all bits if stress acts between even rows and all their neighbours, else none */
} part_search;

/* Even faces of the cells of a row of a block: bit n is set if all lower faces of cell n are even rows. They are joined
 * to all their neighbours, so the faces of such a cell are one part. */
static inline uint32_t even_cells(const part_search *search, int block, int r)
{
    uint32_t even = search->runs;
    for (int a = 0; a < SELKIE_DIM; a++) {
        const sk_stress_bits *bits = &search->level->bits[block][a][r];
        even &= bits->unknown & ~bits->own;
    }
    return even;
}

static inline uint32_t even_cells_at(const part_search *search, size_t place)
{
    return even_cells(search, (int)(place / SK_BLOCK_CELLS), (int)(place % SK_BLOCK_CELLS / SK_BLOCK_N));
}

/* The first cell of the run of even cells that cell n is in. */
static inline int run_start(uint32_t even, int n)
{
    const uint32_t gaps = ~even & ((1u << n) - 1);
    return gaps ? 32 - __builtin_clz(gaps) : 0;
}

/* The smallest number in a run of even cells, `count` from n on. Numbers rise along a half row, so it is that of one of
 * the first two cells. */
static int32_t least_of_run(const sk_stress_level *level, size_t row, int n, int count)
{
    int32_t least = level->count;
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int m = n; m < n + 2 && m < n + count; m++) {
            const int32_t number = level->index[a][row + (size_t)m];
            least = number < least ? number : least;
        }
    return least;
}

/* Begins the parts of a block's runs of even cells: the first face of a run stands for all of them. With `all` set, the
 * other faces get its root. */
static void mark_runs(const part_search *search, int block, int all)
{
    const sk_stress_level *level = search->level;
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const size_t row = (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
        for (uint32_t left = even_cells(search, block, r); left;) {
            const int n = sk_stress_lowest(left), count = __builtin_ctz(~(left >> n));
            left &= ~(((1u << count) - 1) << n);
            if (!all) {
                search->root[level->index[0][row + (size_t)n]] = least_of_run(level, row, n, count);
                continue;
            }
            const int32_t root = find_root(search->root, level->index[0][row + (size_t)n]);
            for (int a = 0; a < SELKIE_DIM; a++)
                for (int m = n; m < n + count; m++)
                    search->root[level->index[a][row + (size_t)m]] = root;
        }
    }
}

/* Joins even cells of a row to those of the row at `offset` (y and z) that lie beside them, or one before them along x
 * if `shifted`. */
static void join_beside(const part_search *search, int block, int r, uint32_t even, const int offset[3], int shifted)
{
    const sk_stress_level *level = search->level;
    const size_t row = (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
    int at[3];
    sk_stress_cell(r * SK_BLOCK_N, at);
    const int other[3] = {at[0], at[1] + offset[1], at[2] + offset[2]};
    const size_t place = sk_stress_place(level->neighbours, block, other);
    const uint32_t beside = even_cells_at(search, place);
    for (int shift = 0; shift <= shifted; shift++) {
        const uint32_t both = (even >> shift) & beside;
        for (uint32_t starts = both & ~(both << 1); starts; starts &= starts - 1) {
            const int n = sk_stress_lowest(starts);
            join(search->root, level->index[0][row + (size_t)run_start(even, n + shift)],
                 level->index[0][place + (size_t)run_start(beside, n)]);
        }
    }
    if (shifted && even & 1) {
        const size_t before = sk_stress_place(level->neighbours, block, (const int[3]){-1, other[1], other[2]});
        const uint32_t cells = even_cells_at(search, before);
        if (cells >> (SK_BLOCK_N - 1) & 1)
            join(search->root, level->index[0][row],
                 level->index[0][before - (SK_BLOCK_N - 1) + (size_t)run_start(cells, SK_BLOCK_N - 1)]);
    }
}

/* Joins the even cells of a block to those around it. Of two cells, direct neighbours are: faces of the same component
 * side by side; in a plane (a, b), the face across a of one and the face across b of the cell one before along a and
 * one after along b. */
static void join_cells(const part_search *search, int block)
{
    const sk_stress_level *level = search->level;
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const uint32_t even = even_cells(search, block, r);
        int at[3];
        if (!even)
            continue;
        sk_stress_cell(r * SK_BLOCK_N, at);
        const size_t row = (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
        const size_t after = sk_stress_place(level->neighbours, block, (const int[3]){SK_BLOCK_N, at[1], at[2]});
        if (even >> (SK_BLOCK_N - 1) & 1 && even_cells_at(search, after) & 1)
            join(search->root, level->index[0][row + (size_t)run_start(even, SK_BLOCK_N - 1)], level->index[0][after]);
        join_beside(search, block, r, even, (const int[3]){0, 1, 0}, 1);
        if (SELKIE_DIM == 3) {
            join_beside(search, block, r, even, (const int[3]){0, 0, 1}, 1);
            join_beside(search, block, r, even, (const int[3]){0, -1, 1}, 0);
        }
    }
}

/* Joins a row to the neighbours that stress acts on. */
static inline void join_row(const part_search *search, int32_t i, const int32_t *columns, const float *coefficient)
{
    const int32_t count = search->level->count;
    int32_t own = find_root(search->root, i), others[SK_STRESS_NEIGHBOURS];
    search->root[i] = own;

    /* The row itself in place of the rest: a branch on them would often be predicted wrongly. */
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        others[m] = ((coefficient[m] != 0.0f) & (columns[m] < count)) ? columns[m] : i;
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        own = join_to(search->root, own, others[m]);
    search->root[i] = own;
}

/* Joins the other rows of a block: even ones to all their neighbours, uneven ones to those between which stress acts.
 */
static void join_rows(const part_search *search, int block)
{
    const sk_stress_level *level = search->level;
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        const uint32_t even = even_cells(search, block, r);
        for (int a = 0; a < SELKIE_DIM; a++) {
            const sk_stress_bits *bits = &level->bits[block][a][r];
            for (uint32_t left = bits->unknown & ~bits->own & ~even; left; left &= left - 1) {
                const size_t cell = (size_t)(r * SK_BLOCK_N + sk_stress_lowest(left));
                const int32_t i = level->index[a][(size_t)block * SK_BLOCK_CELLS + cell];
                int32_t columns[SK_STRESS_NEIGHBOURS];
                sk_stress_columns(level, sk_stress_colour_of(level, i), i, columns);
                join_row(search, i, columns, level->shared[a]);
            }
        }
    }
}

/* The parts: rows between which stress acts, at once or by way of others. Most rows are in cells whose faces are all
 * even, which are joined a run at a time. */
static void find_parts(const sk_stress_level *level, int32_t *root)
{
    part_search search = {level, root, ~0u};
    for (int32_t i = 0; i < level->count; i++)
        root[i] = i;
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
            search.runs = level->shared[a][m] != 0.0f ? search.runs : 0;
    for (int b = 1; b < level->block_count; b++)
        mark_runs(&search, b, 0);
    for (int b = 1; b < level->block_count; b++)
        join_cells(&search, b);
    for (int b = 1; b < level->block_count; b++)
        mark_runs(&search, b, 1);
    for (int b = 1; b < level->block_count; b++)
        join_rows(&search, b);
    const int32_t own = level->colour[SK_STRESS_COLOURS - 1].own_last;
    for (int32_t n = 0; n < own; n++) {
        const size_t entry = (size_t)n * SK_STRESS_NEIGHBOURS;
        join_row(&search, level->own_row[n], level->own_column + entry, level->coefficient + entry);
    }
}

/* Velocity of the rigid motions at a face across axis a. Where sides are joined there are no rotations: liquid that
 * crosses them turns about no centre. */
static void rigid_modes(const sk_stress_level *level, const double x[3], int a, double mode[MODES])
{
    sk_stress_rigid_modes(x, a, !(level->joined[0] || level->joined[1] || level->joined[2]), mode);
}

static void face_centre(const sk_stress_level *level, int block, int c, int a, double x[3])
{
    x[2] = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = level->coordinates[block][d] * SK_BLOCK_N + (c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK) +
               (d == a ? 0.0 : 0.5);
}

/* Is a neighbour of the face with a stress between the two given? */
static int is_held(const sk_stress_system *system, const sk_stress_level *level, int block, int c, int a,
                   int32_t number)
{
    int at[3], held = 0;
    size_t places[SK_STRESS_NEIGHBOURS];
    const float *coefficient = NULL;
    sk_stress_cell(c, at);
    sk_stress_places(level->neighbours, block, at, a, places);
    for (int m = 0; m < SK_STRESS_NEIGHBOURS && !held; m++) {
        if (!system->fixed[sk_stress_component(a, m)][places[m]])
            continue;
        if (!coefficient)
            coefficient = sk_stress_coefficients(level, sk_stress_colour_of(level, number), number);
        held = coefficient[m] != 0.0f;
    }
    return held;
}

/* Marks the roots of the parts that a wall holds, from the faces of a block. */
static void find_held_parts(const sk_stress_system *system, const sk_stress_level *level, int block, int32_t *root,
                            uint8_t *held)
{
    for (int r = 0; r < SK_STRESS_ROWS && level->near_given[block]; r++) {
        const uint32_t around = sk_stress_given_around(level, block, r);
        for (int a = 0; a < SELKIE_DIM; a++)
            for (uint32_t left = level->bits[block][a][r].unknown & around; left; left &= left - 1) {
                const int c = r * SK_BLOCK_N + sk_stress_lowest(left);
                const int32_t number = level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
                uint8_t *mark = &held[find_root(root, number)];
                *mark = *mark || is_held(system, level, block, c, a, number);
            }
    }
}

/* Adds the faces of a block to the sums of their parts. */
static void sum_block(const sk_stress_system *system, const sk_stress_level *level, int block, const double *x,
                      const int32_t *number_of_part, part *parts)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            const int32_t number = level->index[a][here];
            const double mass = (double)system->mass[a][here];
            if (number == level->count)
                continue;
            part *p = &parts[number_of_part[number]];
            if (p->held || !(mass > 0.0))
                continue;
            double centre[3], mode[MODES];
            face_centre(level, block, c, a, centre);
            rigid_modes(level, centre, a, mode);
            const double change = (double)system->target[a][here] - x[number];
            for (int i = 0; i < MODES; i++) {
                p->missing[i] += mass * mode[i] * change;
                for (int j = 0; j <= i; j++)
                    p->matrix[i * (i + 1) / 2 + j] += mass * mode[i] * mode[j];
            }
        }
}

/* Has a part less than a cell of liquid? Its mass along each axis is that of its faces across it. */
static int is_speck(const part *p)
{
    double mass = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        mass += p->matrix[d * (d + 3) / 2];
    return mass < SELKIE_DIM;
}

/* Adds the rigid motion of its part to each face. Faces of specks take their target where there is one. */
static void move_block(const sk_stress_system *system, const sk_stress_level *level, int block, double *x,
                       const int32_t *number_of_part, const part *parts)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int32_t number = level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
            if (number == level->count || parts[number_of_part[number]].held)
                continue;
            const float target = system->target[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
            if (parts[number_of_part[number]].speck && target == target) {
                x[number] = (double)target;
                continue;
            }
            double centre[3], mode[MODES];
            face_centre(level, block, c, a, centre);
            rigid_modes(level, centre, a, mode);
            for (int i = 0; i < MODES; i++)
                x[number] += parts[number_of_part[number]].missing[i] * mode[i];
        }
}

selkie_code SK_DIM(sk_stress_keep_momenta)(const sk_stress_system *system, const sk_stress_options *options,
                                           const sk_stress_level *level, double *x, selkie_error *error)
{
    int32_t *root, *number, count = 0, loose = 0;
    uint8_t *held;
    part *parts;
    const size_t rows = (size_t)level->count + 1;
    SK_TRY(sk_arena_take(options->arena, rows * sizeof *root, "viscosity", (void **)&root, error));
    SK_TRY(sk_arena_take(options->arena, rows, "viscosity", (void **)&held, error));
    memset(held, 0, rows);
    find_parts(level, root);
    for (int b = 1; b < system->block_count; b++)
        find_held_parts(system, level, b, root, held);
    for (int32_t i = 0; i < level->count; i++)
        loose += (root[i] == i) & !held[i];
    if (!loose)
        return SELKIE_OK;

    /* Parts in the order of their roots. A root is the smallest of its part, so it is numbered before the others. */
    SK_TRY(sk_arena_take(options->arena, rows * sizeof *number, "viscosity", (void **)&number, error));
    for (int32_t i = 0; i < level->count; i++)
        number[i] = root[i] == i ? count++ : number[find_root(root, i)];
    SK_TRY(sk_arena_take(options->arena, ((size_t)count + 1) * sizeof *parts, "viscosity", (void **)&parts, error));
    memset(parts, 0, (size_t)count * sizeof *parts);
    for (int32_t i = 0; i < level->count; i++)
        if (root[i] == i)
            parts[number[i]].held = held[i];

    /* One thread and one order: the same bits. */
    for (int b = 1; b < system->block_count; b++)
        sum_block(system, level, b, x, number, parts);
    for (int32_t n = 0; n < count; n++) {
        parts[n].speck = !parts[n].held && is_speck(&parts[n]);
        sk_stress_rigid_motion(parts[n].matrix, 0.0, parts[n].missing);
    }
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < system->block_count; b++)
        move_block(system, level, b, x, number, parts);
    return SELKIE_OK;
}

/* Unknowns and rows of a level of the stress solver. */
#include <string.h>

#include "linalg/stress_solver.h"

/* Rows with a smaller diagonal are no unknowns: less than a millionth of a full face. */
#define SMALLEST_DIAGONAL 1e-6f

/* --- Weights around a block --- */

/* A block's values of a field and a halo of one cell, so that neighbours are at constant offsets. */
enum { TILE_N = SK_BLOCK_N + 2, TILE_NZ = SELKIE_DIM == 3 ? TILE_N : 1, TILE_VALUES = TILE_N * TILE_N * TILE_NZ };
static const int tile_step[3] = {1, TILE_N, TILE_N *TILE_N};

static inline int tile_place(const int at[3])
{
    int place = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        place += (at[d] + 1) * tile_step[d];
    return place;
}

/* Copies values of four bytes. */
static void load_tile(const int32_t (*neighbours)[27], int block, const void *field, void *tile)
{
    const uint32_t *values = field;
    uint32_t *row = tile;
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k < (SELKIE_DIM == 3 ? SK_BLOCK_N + 1 : 1); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++, row += TILE_N) {
            const int first[3] = {0, j, k}, before[3] = {-1, j, k}, after[3] = {SK_BLOCK_N, j, k};
            row[0] = values[sk_stress_place(neighbours, block, before)];
            memcpy(row + 1, values + sk_stress_place(neighbours, block, first), SK_BLOCK_N * sizeof *row);
            row[TILE_N - 1] = values[sk_stress_place(neighbours, block, after)];
        }
}

/* The weights of strains around a block. */
typedef struct weight_tiles {
    float values[7][TILE_VALUES];
    const float *normal[3], *bulk, *shear[3];
} weight_tiles;

static void load_weights(const sk_stress_level *level, int block, weight_tiles *tiles)
{
    int count = 0;
    tiles->bulk = NULL;
    for (int d = 0; d < SELKIE_DIM; d++) {
        tiles->normal[d] = d && level->normal[d] == level->normal[0] ? tiles->normal[0] : tiles->values[count];
        if (tiles->normal[d] == tiles->values[count])
            load_tile(level->neighbours, block, level->normal[d], tiles->values[count++]);
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++) {
        tiles->shear[edge] = tiles->values[count];
        load_tile(level->neighbours, block, level->shear[edge], tiles->values[count++]);
    }
    if (level->bulk) {
        tiles->bulk = tiles->values[count];
        load_tile(level->neighbours, block, level->bulk, tiles->values[count]);
    }
}

/* The weights around a face at a place of the tiles. */
static inline void gather_weights(const weight_tiles *tiles, float mass, int place, int a, sk_stress_weights *w)
{
    const int before = place - tile_step[a];
    w->mass = mass;
    w->normal[0] = tiles->normal[a][before];
    w->normal[1] = tiles->normal[a][place];
    w->bulk[0] = tiles->bulk ? tiles->bulk[before] : 0.0f;
    w->bulk[1] = tiles->bulk ? tiles->bulk[place] : 0.0f;
    for (int n = 0; n < SK_STRESS_ACROSS; n++) {
        const int b = sk_stress_axis(a, n);
        const float *shear = tiles->shear[sk_stress_edge(a, b)];
        w->shear[n][0] = shear[place];
        w->shear[n][1] = shear[place + tile_step[b]];
    }
}

/* --- Numbers of the unknowns --- */

/* Marks of faces in `index` before they have numbers. */
enum { MARK_NONE = -1, MARK_UNEVEN = 0, MARK_EVEN = 1 };

/* Classes of rows, in the order of their numbers. Rows with coefficients of their own are also counted by class. */
enum { CLASS_GROUP, CLASS_ODD_GROUP, CLASS_SINGLE, CLASS_UNEVEN, CLASSES };

/* Half rows: the cells of a block's row along x with even x, then those with odd x. */
enum { HALF_ROWS = SK_BLOCK_CELLS / SK_STRESS_GROUP };
typedef enum half_row {
    HALF_NONE,    /* no face is an unknown */
    HALF_PARTIAL, /* some faces are no unknowns */
    HALF_UNEVEN,  /* all are uneven rows */
    HALF_FULL,    /* all are unknowns */
    HALF_GROUP
} half_row;

/* Rows of a block by colour and class: how many, then the number of the next one. Those with coefficients of their own,
 * likewise. */
typedef struct row_counts {
    int32_t rows[SK_STRESS_COLOURS][CLASSES], own[SK_STRESS_COLOURS][CLASSES];
} row_counts;

/* Scratch of the numbering, a value or table for each block. */
typedef struct numbering {
    sk_stress_weights (*first)[SELKIE_DIM];    /* weights of the first even row */
    uint8_t (*half)[SELKIE_DIM][HALF_ROWS];    /* kinds of half rows, without groups */
    uint8_t (*grouped)[SELKIE_DIM][HALF_ROWS]; /* with groups */
    row_counts *counts;
    int32_t *own[3]; /* [blocks][cells] place of a face in `own_row`; -1 = none */
} numbering;

static inline int half_row_of(int c)
{
    return 2 * (c >> SK_BLOCK_LOG) + (c & 1);
}

/* Marks the unknowns in a row of a block along x, whose first face is at `here` and at `place` of the tiles. */
static void mark_row(const sk_stress_level *level, const weight_tiles *tiles, size_t here, int place, int a)
{
    const float *normal = tiles->normal[a] + place, *before = normal - tile_step[a], *mass = level->mass[a] + here;
    float diagonal[SK_BLOCK_N];
    int32_t even[SK_BLOCK_N], *mark = level->index[a] + here;
    for (int n = 0; n < SK_BLOCK_N; n++) {
        diagonal[n] = mass[n] + 2.0f * (before[n] + normal[n]);
        even[n] = before[n] == normal[n];
    }
    if (tiles->bulk) {
        const float *bulk = tiles->bulk + place, *bulk_before = bulk - tile_step[a];
        for (int n = 0; n < SK_BLOCK_N; n++) {
            diagonal[n] += bulk_before[n] + bulk[n];
            even[n] &= bulk_before[n] == bulk[n];
        }
    }
    for (int m = 0; m < SK_STRESS_ACROSS; m++) {
        const int b = sk_stress_axis(a, m);
        const float *shear = tiles->shear[sk_stress_edge(a, b)] + place, *after = shear + tile_step[b];
        for (int n = 0; n < SK_BLOCK_N; n++) {
            diagonal[n] += shear[n] + after[n];
            even[n] &= shear[n] == after[n];
        }
    }
    for (int n = 0; n < SK_BLOCK_N; n++) {
        const int is_unknown = diagonal[n] > SMALLEST_DIAGONAL && !level->fixed[a][here + (size_t)n];
        mark[n] = is_unknown ? (even[n] ? MARK_EVEN : MARK_UNEVEN) : MARK_NONE;
    }
    for (int n = 0; n < SK_BLOCK_N && level->home; n++)
        mark[n] = sk_stress_is_copy(level, here + (size_t)n) ? MARK_NONE : mark[n];
}

/* Marks the unknowns of a block. `first` gets the weights of the first even one of each component; without mass and
 * normal weight if there is none. */
static void find_unknowns(const sk_stress_level *level, int block, sk_stress_weights first[SELKIE_DIM])
{
    weight_tiles tiles;
    memset(first, 0, SELKIE_DIM * sizeof *first);
    load_weights(level, block, &tiles);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            int at[3];
            sk_stress_cell(c, at);
            const int place = tile_place(at);
            mark_row(level, &tiles, here, place, a);
            for (int n = 0; n < SK_BLOCK_N && !(first[a].normal[0] > 0.0f); n++)
                if (level->index[a][here + (size_t)n] == MARK_EVEN)
                    gather_weights(&tiles, level->mass[a][here + (size_t)n], place + n, a, &first[a]);
        }
}

/* The weights of even rows: those of the first block that has some. */
static void choose_even_weights(sk_stress_level *level, const sk_stress_weights (*first)[SELKIE_DIM])
{
    for (int a = 0; a < SELKIE_DIM; a++) {
        memset(&level->even[a], 0, sizeof level->even[a]);
        for (int b = 1; b < level->block_count && !(level->even[a].normal[0] > 0.0f); b++)
            level->even[a] = first[b][a];
        level->shared_diagonal[a] = sk_stress_row(&level->even[a], level->shared[a]);
    }
}

/* Even rows of a block's row along x that have other weights than the shared ones become uneven. */
static void check_weights(const sk_stress_level *level, size_t here, int a)
{
    const sk_stress_weights *even = &level->even[a];
    const float *mass = level->mass[a] + here, *normal = level->normal[a] + here;
    int32_t same[SK_BLOCK_N], *mark = level->index[a] + here;
    for (int n = 0; n < SK_BLOCK_N; n++)
        same[n] = mass[n] == even->mass && normal[n] == even->normal[1];
    for (int n = 0; n < SK_BLOCK_N && level->bulk; n++)
        same[n] &= level->bulk[here + (size_t)n] == even->bulk[1];
    for (int m = 0; m < SK_STRESS_ACROSS; m++) {
        const float *shear = level->shear[sk_stress_edge(a, sk_stress_axis(a, m))] + here;
        for (int n = 0; n < SK_BLOCK_N; n++)
            same[n] &= shear[n] == even->shear[m][0];
    }
    for (int n = 0; n < SK_BLOCK_N; n++)
        mark[n] = mark[n] == MARK_EVEN && !same[n] ? MARK_UNEVEN : mark[n];
}

/* Rows with weights of their own are uneven. Finds what the half rows of a block hold. */
static void look_at_half_rows(const sk_stress_level *level, int block, uint8_t half[SELKIE_DIM][HALF_ROWS])
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            const int32_t *mark = level->index[a] + here;
            int even[2] = {0, 0}, uneven[2] = {0, 0};
            check_weights(level, here, a);
            for (int n = 0; n < SK_BLOCK_N; n++) {
                even[n & 1] += mark[n] == MARK_EVEN;
                uneven[n & 1] += mark[n] == MARK_UNEVEN;
            }
            for (int n = 0; n < 2; n++) {
                const int unknowns = even[n] + uneven[n];
                half[a][half_row_of(c + n)] = (uint8_t)(unknowns == 0                ? HALF_NONE
                                                        : unknowns < SK_STRESS_GROUP ? HALF_PARTIAL
                                                        : even[n]                    ? HALF_FULL
                                                                                     : HALF_UNEVEN);
            }
        }
}

/* A full half row is a group if the half rows of all its neighbours have consecutive numbers. */
static void find_groups(const sk_stress_level *level, int block, const numbering *n, int a)
{
    for (int h = 0; h < HALF_ROWS; h++) {
        int at[3], whole = n->half[block][a][h] == HALF_FULL;
        sk_stress_cell(SK_BLOCK_N * (h / 2) + h % 2, at);
        for (int m = 0; m < SK_STRESS_NEIGHBOURS && whole; m++) {
            int other[3];
            sk_stress_offset(a, m, other);
            other[0] = (at[0] + other[0]) & 1;
            other[1] += at[1];
            other[2] += at[2];
            const size_t place = sk_stress_place(level->neighbours, block, other);
            whole =
                n->half[place / SK_BLOCK_CELLS][sk_stress_component(a, m)][half_row_of((int)(place % SK_BLOCK_CELLS))] >
                HALF_PARTIAL;
        }
        n->grouped[block][a][h] = whole ? HALF_GROUP : n->half[block][a][h];
    }
}

/* Colour of a face: its component, and the parity of its indices. */
static int colour_of(const sk_stress_level *level, int block, const int at[3], int a)
{
    int sum = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum += level->coordinates[block][d] * SK_BLOCK_N + at[d];
    return 2 * a + (sum & 1);
}

/* Class of a face with a mark. All rows of a full half row that is no group are treated as uneven, which keeps their
 * numbers together. */
static int class_of(const numbering *n, int block, int c, int a, int mark)
{
    const uint8_t half = n->grouped[block][a][half_row_of(c)];
    if (half == HALF_GROUP)
        return c & 1 ? CLASS_ODD_GROUP : CLASS_GROUP;
    return half == HALF_FULL || mark == MARK_UNEVEN ? CLASS_UNEVEN : CLASS_SINGLE;
}

/* Does a row of a block along x begin with cell c, and has it no unknowns? */
static inline int skips_row(const numbering *n, int block, int c, int a)
{
    return c % SK_BLOCK_N == 0 && n->half[block][a][half_row_of(c)] == HALF_NONE &&
           n->half[block][a][half_row_of(c + 1)] == HALF_NONE;
}

/* Counts the unknowns of a block by colour and class. */
static void count_unknowns(const sk_stress_level *level, int block, const numbering *n)
{
    row_counts *counts = &n->counts[block];
    memset(counts, 0, sizeof *counts);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int32_t mark = level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
            int at[3];
            c += skips_row(n, block, c, a) ? SK_BLOCK_N - 1 : 0;
            if (mark == MARK_NONE)
                continue;
            sk_stress_cell(c, at);
            const int colour = colour_of(level, block, at, a), class = class_of(n, block, c, a, mark);
            counts->rows[colour][class]++;
            counts->own[colour][class] += class == CLASS_UNEVEN || mark == MARK_UNEVEN;
        }
}

/* Numbers the unknowns of a block, and gives all other faces the number `count`. */
static void number_unknowns(const sk_stress_level *level, int block, const numbering *n)
{
    row_counts *counts = &n->counts[block];
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            int32_t *index = &level->index[a][here];
            const int32_t mark = *index;
            int at[3];
            if (skips_row(n, block, c, a)) {
                for (int i = 0; i < SK_BLOCK_N; i++)
                    index[i] = level->count;
                c += SK_BLOCK_N - 1;
                continue;
            }
            *index = level->count;
            n->own[a][here] = -1;
            if (mark == MARK_NONE)
                continue;
            sk_stress_cell(c, at);
            const int colour = colour_of(level, block, at, a), class = class_of(n, block, c, a, mark);
            *index = counts->rows[colour][class]++;
            if (class == CLASS_UNEVEN || mark == MARK_UNEVEN) {
                n->own[a][here] = counts->own[colour][class]++;
                level->own_row[n->own[a][here]] = *index;
            }
        }
}

/* Replaces the counts of the blocks by sums of all that come before. */
static void add_up(const sk_stress_level *level, const numbering *n, int k, int class, int64_t *rows, int32_t *own)
{
    for (int b = 1; b < level->block_count; b++) {
        int32_t *next = &n->counts[b].rows[k][class], *next_own = &n->counts[b].own[k][class];
        const int32_t count = *next, own_count = *next_own;
        *next = (int32_t)*rows;
        *next_own = *own;
        *rows += count;
        *own += own_count;
    }
}

/* First number of each colour, class and block. */
static selkie_code order_unknowns(sk_stress_level *level, const numbering *n, selkie_error *error)
{
    int64_t total = 0;
    int32_t groups = 0, columns = 0, own = 0;
    for (int k = 0; k < SK_STRESS_COLOURS; k++) {
        sk_stress_colour *colour = &level->colour[k];
        int32_t *bounds[CLASSES] = {&colour->first, &colour->odd_groups, &colour->singles, &colour->uneven};
        colour->own_first = own;
        for (int class = 0; class < CLASSES; class ++) {
            *bounds[class] = (int32_t)total;
            add_up(level, n, k, class, &total, &own);
        }
        if (total > INT32_MAX / SK_STRESS_NEIGHBOURS)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "viscosity: more than %d unknowns",
                           INT32_MAX / SK_STRESS_NEIGHBOURS);
        colour->last = (int32_t)total;
        colour->own_last = own;
        colour->groups = groups;
        colour->columns = columns;
        groups += (colour->singles - colour->first) / SK_STRESS_GROUP;
        columns += colour->uneven - colour->singles;
    }
    level->count = (int32_t)total;
    return SELKIE_OK;
}

/* Each pass over the blocks reads what the one before it wrote in the blocks around. */
static selkie_code number_level(sk_stress_level *level, numbering *scratch, const sk_stress_options *options,
                                selkie_error *error)
{
    numbering n;
    SK_STRESS_TAKE(options->arena, n.counts, level->block_count);
    SK_STRESS_TAKE(options->arena, n.first, level->block_count);
    SK_STRESS_TAKE(options->arena, n.half, level->block_count);
    SK_STRESS_TAKE(options->arena, n.grouped, level->block_count);
    memset(n.half[0], HALF_NONE, sizeof n.half[0]);
    for (int a = 0; a < SELKIE_DIM; a++) {
        SK_STRESS_TAKE(options->arena, level->index[a], (size_t)level->block_count * SK_BLOCK_CELLS);
        SK_STRESS_TAKE(options->arena, n.own[a], (size_t)level->block_count * SK_BLOCK_CELLS);
    }
    *scratch = n;

    /* Kinds of rows. */
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        find_unknowns(level, b, n.first[b]);
    choose_even_weights(level, (const sk_stress_weights(*)[SELKIE_DIM])n.first);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        look_at_half_rows(level, b, n.half[b]);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++) {
        for (int a = 0; a < SELKIE_DIM; a++)
            find_groups(level, b, &n, a);
        count_unknowns(level, b, &n);
    }

    /* Numbers. */
    SK_TRY(order_unknowns(level, &n, error));
    SK_STRESS_TAKE(options->arena, level->own_row, level->colour[SK_STRESS_COLOURS - 1].own_last);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            level->index[a][c] = level->count;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        number_unknowns(level, b, &n);

    /* Copies have the numbers of the cells that they copy. */
    const size_t values = (size_t)level->block_count * SK_BLOCK_CELLS;
    for (size_t i = 0; i < values && level->home; i++)
        for (int a = 0; a < SELKIE_DIM && sk_stress_is_copy(level, i); a++)
            level->index[a][i] = level->index[a][level->home[i]];
    return SELKIE_OK;
}

/* --- Rows --- */

/* The numbers of a block's faces and those around it, and where the neighbours of a face are among them. */
typedef struct number_tiles {
    int32_t numbers[SELKIE_DIM * TILE_VALUES];     /* a tile for each axis */
    int offsets[SELKIE_DIM][SK_STRESS_NEIGHBOURS]; /* in `numbers`, of the neighbours of a face across each axis */
} number_tiles;

static void load_numbers(const sk_stress_level *level, int block, number_tiles *tiles)
{
    for (int a = 0; a < SELKIE_DIM; a++) {
        load_tile(level->neighbours, block, level->index[a], tiles->numbers + a * TILE_VALUES);
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
            int offset[3];
            sk_stress_offset(a, m, offset);
            tiles->offsets[a][m] =
                tile_place(offset) - tile_place((const int[3]){0, 0, 0}) + sk_stress_component(a, m) * TILE_VALUES;
        }
    }
}

static inline int32_t neighbour_number(const number_tiles *tiles, int place, int a, int m)
{
    return tiles->numbers[place + tiles->offsets[a][m]];
}

/* The columns of a group from its first face. The first of a neighbour's half row may lie beyond the row: the others
 * are one further. */
static void make_group(const number_tiles *tiles, int place, int a, int odd, int32_t columns[SK_STRESS_GROUP_COLUMNS])
{
    const int last = place + 2 * (SK_STRESS_GROUP - 1);
    for (int m = 0, beyond = SK_STRESS_NEIGHBOURS; m < SK_STRESS_NEIGHBOURS; m++) {
        columns[m] = neighbour_number(tiles, place, a, m);
        if (!sk_stress_is_beyond(a == 0, odd, m))
            continue;
        columns[beyond++] = odd ? neighbour_number(tiles, last, a, m) : columns[m];
        if (!odd)
            columns[m] = neighbour_number(tiles, place + 2, a, m) - 1;
    }
}

/* A row with coefficients of its own. */
static void make_own_row(const sk_stress_level *level, const weight_tiles *weights, const number_tiles *numbers,
                         int32_t row, int32_t own, float mass, int place, int a)
{
    sk_stress_weights w;
    gather_weights(weights, mass, place, a, &w);
    level->diagonal[row] = sk_stress_row(&w, level->coefficient + (size_t)own * SK_STRESS_NEIGHBOURS);
    level->inverse[row] = 1.0f / level->diagonal[row];
    level->own_mass[own] = mass;
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
        level->own_column[(size_t)own * SK_STRESS_NEIGHBOURS + (size_t)m] = neighbour_number(numbers, place, a, m);
}

static void make_rows(const sk_stress_level *level, const numbering *n, int block)
{
    weight_tiles weights;
    number_tiles numbers;
    load_weights(level, block, &weights);
    load_numbers(level, block, &numbers);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            const int32_t row = level->index[a][here], own = n->own[a][here];
            if (skips_row(n, block, c, a)) {
                c += SK_BLOCK_N - 1;
                continue;
            }
            if (row == level->count || sk_stress_is_copy(level, here))
                continue;
            const sk_stress_colour *colour = &level->colour[row < level->colour[2 * a].last ? 2 * a : 2 * a + 1];
            int at[3];
            sk_stress_cell(c, at);
            const int place = tile_place(at);

            /* Coefficients. */
            if (own >= 0)
                make_own_row(level, &weights, &numbers, row, own, level->mass[a][here], place, a);

            /* Columns of the group that begins here, or of a single row. */
            if (row < colour->singles && at[0] < 2) {
                const int32_t group = (row - colour->first) / SK_STRESS_GROUP;
                make_group(&numbers, place, a, at[0],
                           level->group_column + (size_t)(colour->groups + group) * SK_STRESS_GROUP_COLUMNS);
            }
            if (row < colour->singles || row >= colour->uneven)
                continue;
            int32_t *column = level->column + (size_t)(row - colour->singles + colour->columns) * SK_STRESS_NEIGHBOURS;
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
                column[m] = neighbour_number(&numbers, place, a, m);
        }
}

selkie_code SK_DIM(sk_stress_make_rows)(sk_stress_level *level, const sk_stress_options *options, selkie_error *error)
{
    numbering n;
    SK_TRY(number_level(level, &n, options, error));
    const size_t count = (size_t)level->count;
    const sk_stress_colour *last = &level->colour[SK_STRESS_COLOURS - 1];
    const size_t groups = (size_t)(last->groups + (last->singles - last->first) / SK_STRESS_GROUP);
    const size_t singles = (size_t)(last->columns + last->uneven - last->singles), own = (size_t)last->own_last;
    SK_STRESS_TAKE(options->arena, level->group_column, groups * SK_STRESS_GROUP_COLUMNS);
    SK_STRESS_TAKE(options->arena, level->column, singles * SK_STRESS_NEIGHBOURS);
    SK_STRESS_TAKE(options->arena, level->own_column, own * SK_STRESS_NEIGHBOURS);
    SK_STRESS_TAKE(options->arena, level->coefficient, own * SK_STRESS_NEIGHBOURS);
    SK_STRESS_TAKE(options->arena, level->own_mass, own);
    SK_STRESS_TAKE(options->arena, level->inverse, count);
    SK_STRESS_TAKE(options->arena, level->diagonal, count);
    SK_STRESS_TAKE(options->arena, level->x, count + 2);
    SK_STRESS_TAKE(options->arena, level->b, count + 1);
    SK_STRESS_TAKE(options->arena, level->residual, count + 1);
    *level->x++ = 0.0f;
    level->x[count] = level->b[count] = level->residual[count] = 0.0f;
    for (int k = 0; k < SK_STRESS_COLOURS; k++)
        for (int32_t i = level->colour[k].first; i < level->colour[k].last; i++) {
            level->diagonal[i] = level->shared_diagonal[k / 2];
            level->inverse[i] = 1.0f / level->shared_diagonal[k / 2];
        }
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        make_rows(level, &n, b);
    return SELKIE_OK;
}

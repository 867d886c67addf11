/* Unknowns and rows of a level of the stress solver. */
#include <string.h>

#include "linalg/stress_tiles.h"

/* --- Numbers of the unknowns --- */

/* Classes of rows, in the order of their numbers. Rows with coefficients of their own are also counted by class. */
enum { CLASS_GROUP, CLASS_ODD_GROUP, CLASS_SINGLE, CLASS_UNEVEN, CLASSES };

/* Rows of a block by colour and class: how many, then the number of the first one. Those with coefficients of their
 * own, likewise. */
typedef struct row_counts {
    int32_t rows[SK_STRESS_COLOURS][CLASSES], own[SK_STRESS_COLOURS][CLASSES];
} row_counts;

/* Finds the unknowns in a row of a block along x, whose first face is at `here` and at `place` of the tiles. Those with
 * other weights than `shared` have their own; NULL = any even weights are shared. */
static sk_stress_bits find_row(const sk_stress_level *level, const weight_tiles *tiles, size_t here, int place, int a,
                               const sk_stress_weights *shared)
{
    const float *normal = tiles->normal[a] + place, *before = normal - tile_step[a], *mass = level->mass[a] + here;
    const float *bulk = tiles->bulk ? tiles->bulk + place : NULL;
    const uint8_t *fixed = level->fixed[a] + here;
    sk_stress_bits row = {0, 0, 0, 0};
    for (int n = 0; n < SK_BLOCK_N; n += 8) {
        const f8 own = f8_load(mass + n), first = f8_load(before + n), second = f8_load(normal + n);
        f8 diagonal = own + 2.0f * (first + second);
        i8 even = first == second;
        if (shared)
            even &= (own == shared->mass) & (second == shared->normal[1]);
        if (bulk) {
            const f8 bulk_before = f8_load(bulk + n - tile_step[a]), bulk_here = f8_load(bulk + n);
            diagonal += bulk_before + bulk_here;
            even &= bulk_before == bulk_here;
            if (shared)
                even &= bulk_here == shared->bulk[1];
        }
        for (int m = 0; m < SK_STRESS_ACROSS; m++) {
            const int b = sk_stress_axis(a, m);
            const float *shear = tiles->shear[sk_stress_edge(a, b)] + place + n;
            const f8 shear_here = f8_load(shear), after = f8_load(shear + tile_step[b]);
            diagonal += shear_here + after;
            even &= shear_here == after;
            if (shared)
                even &= shear_here == shared->shear[m][0];
        }
        const uint32_t given = i8_bits(i8_from_bytes(fixed + n) != 0);
        const uint32_t unknown = i8_bits(diagonal > SK_STRESS_SMALLEST_DIAGONAL) & ~given;
        row.given |= given << n;
        row.unknown |= unknown << n;
        row.own |= (unknown & ~i8_bits(even)) << n;
    }
    for (int n = 0; n < SK_BLOCK_N && level->home; n++)
        row.unknown &= ~((uint32_t)sk_stress_is_copy(level, here + (size_t)n) << n);
    row.own &= row.unknown;
    return row;
}

/* Weights of the first even row of a component in a block that has some normal weight. Returns whether there is one. */
static int find_even_weights(const sk_stress_level *level, const weight_tiles *tiles, int block, int a,
                             sk_stress_weights *even)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
        int at[3];
        sk_stress_cell(c, at);
        const sk_stress_bits bits = find_row(level, tiles, here, tile_place(at), a, NULL);
        for (uint32_t left = bits.unknown & ~bits.own; left; left &= left - 1) {
            const int n = sk_stress_lowest(left);
            gather_weights(tiles, level->mass[a][here + (size_t)n], tile_place(at) + n, a, even);
            if (even->normal[0] > 0.0f)
                return 1;
        }
    }
    return 0;
}

/* The weights that even rows share: those of the first block that has some. */
static void choose_even_weights(sk_stress_level *level)
{
    int missing = (1 << SELKIE_DIM) - 1;
    memset(level->even, 0, sizeof level->even);
    for (int b = 1; b < level->block_count && missing; b++) {
        tile_rows rows;
        weight_tiles tiles;
        find_tile_rows(level->neighbours, b, &rows);
        load_weights(level, &rows, &tiles);
        for (int a = 0; a < SELKIE_DIM; a++)
            if (missing >> a & 1)
                missing &= ~(find_even_weights(level, &tiles, b, a, &level->even[a]) << a);
    }
    for (int a = 0; a < SELKIE_DIM; a++)
        level->shared_diagonal[a] = sk_stress_row(&level->even[a], level->shared[a]);
}

/* Finds the unknowns of a block. */
static void find_unknowns(const sk_stress_level *level, int block)
{
    tile_rows rows;
    weight_tiles tiles;
    find_tile_rows(level->neighbours, block, &rows);
    load_weights(level, &rows, &tiles);
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++)
            level->bits[block][a][r] = find_row(level, &tiles, (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N,
                                                tile_place(at), a, &level->even[a]);
    }
}

selkie_code SK_DIM(sk_stress_find_unknowns)(sk_stress_level *level, const sk_stress_options *options,
                                            selkie_error *error)
{
    SK_STRESS_TAKE(options->arena, level->bits, level->block_count);
    memset(level->bits[0], 0, sizeof level->bits[0]);
    choose_even_weights(level);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        find_unknowns(level, b);
    return SELKIE_OK;
}

/* The unknowns of a block and of the rows beside it. */
typedef struct bit_tiles {
    uint32_t unknown[SELKIE_DIM][TILE_ROWS];
} bit_tiles;

static inline int row_place(int j, int k)
{
    return j + 1 + (SELKIE_DIM == 3 ? TILE_N * (k + 1) : 0);
}

static void load_bits(const sk_stress_level *level, int block, bit_tiles *tiles)
{
    int row = 0;
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k < (SELKIE_DIM == 3 ? SK_BLOCK_N + 1 : 1); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++, row++) {
            const size_t place = sk_stress_place(level->neighbours, block, (const int[3]){0, j, k});
            for (int a = 0; a < SELKIE_DIM; a++)
                tiles->unknown[a][row] =
                    level->bits[place / SK_BLOCK_CELLS][a][place % SK_BLOCK_CELLS / SK_BLOCK_N].unknown;
        }
}

/* A full half row is a group if it has even rows and if the half rows of all its neighbours are full: their numbers are
 * then consecutive. `half` is the parity of its x. */
static int is_group(const bit_tiles *tiles, const sk_stress_bits *bits, const int at[3], int a, int half)
{
    const uint32_t mask = SK_STRESS_HALF << half;
    if ((bits->unknown & mask) != mask || (bits->own & mask) == mask)
        return 0;
    for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
        int offset[3];
        sk_stress_offset(a, m, offset);
        const uint32_t beside = SK_STRESS_HALF << ((half + offset[0]) & 1);
        const int row = row_place(at[1] + offset[1], at[2] + offset[2]);
        if ((tiles->unknown[sk_stress_component(a, m)][row] & beside) != beside)
            return 0;
    }
    return 1;
}

/* The faces of a block of one colour in a row along x. Blocks have an even width. */
static inline int colour_of_half(const int at[3], int a, int half)
{
    const int first[3] = {half, at[1], at[2]};
    return sk_stress_colour_at(first, a);
}

/* Finds the groups of a block. Counts its unknowns by colour and class. All rows of a full half row that is no group
 * have coefficients of their own, which keeps their numbers together. */
static void count_unknowns(const sk_stress_level *level, int block, row_counts *counts)
{
    bit_tiles tiles;
    memset(counts, 0, sizeof *counts);
    load_bits(level, block, &tiles);
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++) {
            sk_stress_bits *bits = &level->bits[block][a][r];
            for (int half = 0; half < 2 && bits->unknown; half++) {
                const uint32_t mask = SK_STRESS_HALF << half;
                const int k = colour_of_half(at, a, half);
                const int group = is_group(&tiles, bits, at, a, half);
                bits->group |= group ? mask : 0;
                bits->own |= !group && (bits->unknown & mask) == mask ? mask : 0;
                const int unknowns = __builtin_popcount(bits->unknown & mask),
                          own = __builtin_popcount(bits->own & mask);
                const int class = !group ? CLASS_UNEVEN : half ? CLASS_ODD_GROUP : CLASS_GROUP;
                counts->rows[k][class] += group ? unknowns : own;
                counts->rows[k][CLASS_SINGLE] += group ? 0 : unknowns - own;
                counts->own[k][class] += own;
            }
        }
    }
}

/* Numbers the unknowns of a block, and gives all other faces the number `count`. */
static void number_unknowns(const sk_stress_level *level, int block, row_counts next)
{
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++) {
            const sk_stress_bits bits = level->bits[block][a][r];
            int32_t *index = level->index[a] + (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N;
            for (int n = 0; n < SK_BLOCK_N; n++)
                index[n] = level->count;
            for (int half = 0; half < 2 && bits.unknown; half++) {
                const uint32_t mask = SK_STRESS_HALF << half;
                int32_t *rows = next.rows[colour_of_half(at, a, half)];
                if (bits.group & mask) {
                    int32_t *number = &rows[half ? CLASS_ODD_GROUP : CLASS_GROUP];
                    for (int n = 0; n < SK_STRESS_GROUP; n++)
                        index[2 * n + half] = *number + n;
                    *number += SK_STRESS_GROUP;
                    continue;
                }
                for (uint32_t left = bits.unknown & mask; left; left &= left - 1)
                    index[sk_stress_lowest(left)] = rows[bits.own & left & -left ? CLASS_UNEVEN : CLASS_SINGLE]++;
            }
        }
    }
}

/* Replaces the counts of the blocks by sums of all that come before. */
static void add_up(const sk_stress_level *level, row_counts *counts, int k, int class, int64_t *rows, int32_t *own)
{
    for (int b = 1; b < level->block_count; b++) {
        int32_t *next = &counts[b].rows[k][class], *next_own = &counts[b].own[k][class];
        const int32_t count = *next, own_count = *next_own;
        *next = (int32_t)*rows;
        *next_own = *own;
        *rows += count;
        *own += own_count;
    }
}

/* First number of each colour, class and block. */
static selkie_code order_unknowns(sk_stress_level *level, row_counts *counts, selkie_error *error)
{
    int64_t total = 0;
    int32_t groups = 0, columns = 0, own = 0;
    for (int k = 0; k < SK_STRESS_COLOURS; k++) {
        sk_stress_colour *colour = &level->colour[k];
        int32_t *bounds[CLASSES] = {&colour->first, &colour->odd_groups, &colour->singles, &colour->uneven};
        colour->own_first = own;
        for (int class = 0; class < CLASSES; class ++) {
            *bounds[class] = (int32_t)total;
            add_up(level, counts, k, class, &total, &own);
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
static selkie_code number_level(sk_stress_level *level, row_counts **scratch, const sk_stress_options *options,
                                selkie_error *error)
{
    row_counts *counts;
    SK_STRESS_TAKE(options->arena, counts, level->block_count);
    for (int a = 0; a < SELKIE_DIM; a++)
        SK_STRESS_TAKE(options->arena, level->index[a], (size_t)level->block_count * SK_BLOCK_CELLS);
    *scratch = counts;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        count_unknowns(level, b, &counts[b]);

    /* Numbers. */
    SK_TRY(order_unknowns(level, counts, error));
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            level->index[a][c] = level->count;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        number_unknowns(level, b, counts[b]);

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

static void load_numbers(const sk_stress_level *level, const tile_rows *rows, number_tiles *tiles)
{
    for (int a = 0; a < SELKIE_DIM; a++) {
        load_tile(rows, level->index[a], tiles->numbers + a * TILE_VALUES);
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

/* The rows of a half row along x, whose first face is at `here` and at `place` of the tiles. `own` is the number of the
 * next row with coefficients of its own. */
static void make_half(const sk_stress_level *level, const weight_tiles *weights, const number_tiles *numbers,
                      const sk_stress_bits *bits, size_t here, int place, int k, int half, int32_t *own)
{
    const sk_stress_colour *colour = &level->colour[k];
    const int a = k / 2;
    const uint32_t mask = SK_STRESS_HALF << half;

    /* Columns of the group, or of single rows. */
    if (bits->group & mask) {
        const int32_t group = (level->index[a][here + (size_t)half] - colour->first) / SK_STRESS_GROUP;
        make_group(numbers, place + half, a, half,
                   level->group_column + (size_t)(colour->groups + group) * SK_STRESS_GROUP_COLUMNS);
    }
    for (uint32_t left = bits->unknown & ~bits->own & ~bits->group & mask; left; left &= left - 1) {
        const int n = sk_stress_lowest(left);
        const int32_t row = level->index[a][here + (size_t)n];
        int32_t *column = level->column + (size_t)(row - colour->singles + colour->columns) * SK_STRESS_NEIGHBOURS;
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
            column[m] = neighbour_number(numbers, place + n, a, m);
    }

    /* Coefficients. */
    for (uint32_t left = bits->own & mask; left; left &= left - 1, (*own)++) {
        const int n = sk_stress_lowest(left);
        const int32_t row = level->index[a][here + (size_t)n];
        level->own_row[*own] = row;
        make_own_row(level, weights, numbers, row, *own, level->mass[a][here + (size_t)n], place + n, a);
    }
}

static void make_rows(const sk_stress_level *level, row_counts next, int block)
{
    tile_rows rows;
    weight_tiles weights;
    number_tiles numbers;
    find_tile_rows(level->neighbours, block, &rows);
    load_weights(level, &rows, &weights);
    load_numbers(level, &rows, &numbers);
    for (int r = 0; r < SK_STRESS_ROWS; r++) {
        int at[3];
        sk_stress_cell(r * SK_BLOCK_N, at);
        for (int a = 0; a < SELKIE_DIM; a++) {
            const sk_stress_bits *bits = &level->bits[block][a][r];
            for (int half = 0; half < 2 && bits->unknown; half++) {
                const int k = colour_of_half(at, a, half);
                const int group = (bits->group >> half & 1) != 0;
                int32_t *own = &next.own[k][!group ? CLASS_UNEVEN : half ? CLASS_ODD_GROUP : CLASS_GROUP];
                make_half(level, &weights, &numbers, bits, (size_t)block * SK_BLOCK_CELLS + (size_t)r * SK_BLOCK_N,
                          tile_place(at), k, half, own);
            }
        }
    }
}

selkie_code SK_DIM(sk_stress_make_rows)(sk_stress_level *level, const sk_stress_options *options, selkie_error *error)
{
    row_counts *counts;
    if (!level->bits)
        SK_TRY(SK_DIM(sk_stress_find_unknowns)(level, options, error));
    SK_TRY(number_level(level, &counts, options, error));
    const size_t count = (size_t)level->count;
    const sk_stress_colour *last = &level->colour[SK_STRESS_COLOURS - 1];
    const size_t groups = (size_t)(last->groups + (last->singles - last->first) / SK_STRESS_GROUP);
    const size_t singles = (size_t)(last->columns + last->uneven - last->singles), own = (size_t)last->own_last;
    SK_STRESS_TAKE(options->arena, level->group_column, groups * SK_STRESS_GROUP_COLUMNS);
    SK_STRESS_TAKE(options->arena, level->column, singles * SK_STRESS_NEIGHBOURS);
    SK_STRESS_TAKE(options->arena, level->own_row, own);
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
        make_rows(level, counts[b], b);
    return SELKIE_OK;
}

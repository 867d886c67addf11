/* Levels of the stress solver: blocks, weights, rows and transfers. */
#include <math.h>
#include <string.h>

#include "linalg/stress_solver.h"

/* Rows with a smaller diagonal are no unknowns: less than a millionth of a full face. */
#define SMALLEST_DIAGONAL 1e-6f

static void cell_of(int c, int at[3])
{
    for (int d = 0; d < 3; d++)
        at[d] = d < SELKIE_DIM ? c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK : 0;
}

/* --- Rows of a level --- */

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

/* Colour of a face: its component, and the parity of its indices. */
static int colour_of(const sk_stress_level *level, int block, const int at[3], int a)
{
    int sum = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum += level->coordinates[block][d] * SK_BLOCK_N + at[d];
    return 2 * a + (sum & 1);
}

/* Are the weights on both sides of a face the same? */
static int is_even(const sk_stress_weights *w)
{
    int even = w->normal[0] == w->normal[1] && w->bulk[0] == w->bulk[1];
    for (int n = 0; n < SK_STRESS_ACROSS; n++)
        even &= w->shear[n][0] == w->shear[n][1];
    return even;
}

/* Marks of faces in `index` before they have numbers. */
enum { MARK_NONE = -1, MARK_UNEVEN = 0, MARK_EVEN = 1 };

/* Marks the unknowns of a block. `first` gets the weights of the first even one of each component; without mass and
 * normal weight if there is none. */
static void find_unknowns(const sk_stress_level *level, int block, sk_stress_weights first[SELKIE_DIM])
{
    weight_tiles tiles;
    memset(first, 0, SELKIE_DIM * sizeof *first);
    load_weights(level, block, &tiles);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            sk_stress_weights w;
            float coefficient[SK_STRESS_NEIGHBOURS];
            int at[3];
            cell_of(c, at);
            level->index[a][here] = MARK_NONE;
            if (level->fixed[a][here])
                continue;
            gather_weights(&tiles, level->mass[a][here], tile_place(at), a, &w);
            if (!(sk_stress_row(&w, coefficient) > SMALLEST_DIAGONAL))
                continue;
            level->index[a][here] = is_even(&w) ? MARK_EVEN : MARK_UNEVEN;
            if (is_even(&w) && !(first[a].normal[0] > 0.0f))
                first[a] = w;
        }
}

/* Has a face whose two sides are the same the weights of even rows? */
static int has_shared_weights(const sk_stress_level *level, size_t here, int a)
{
    const sk_stress_weights *even = &level->even[a];
    int same = level->mass[a][here] == even->mass && level->normal[a][here] == even->normal[1] &&
               (!level->bulk || level->bulk[here] == even->bulk[1]);
    for (int n = 0; n < SK_STRESS_ACROSS; n++)
        same &= level->shear[sk_stress_edge(a, sk_stress_axis(a, n))][here] == even->shear[n][0];
    return same;
}

/* Counts the unknowns of a block by colour, even ones first. */
static void count_unknowns(const sk_stress_level *level, int block, int32_t counts[SK_STRESS_COLOURS][2])
{
    memset(counts, 0, SK_STRESS_COLOURS * sizeof *counts);
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            int32_t *mark = &level->index[a][here];
            int at[3];
            if (*mark == MARK_NONE)
                continue;
            if (*mark == MARK_EVEN && !has_shared_weights(level, here, a))
                *mark = MARK_UNEVEN;
            cell_of(c, at);
            counts[colour_of(level, block, at, a)][*mark == MARK_UNEVEN]++;
        }
}

/* Numbers the unknowns of a block from `next` on, and gives all other faces the number `count`. */
static void number_unknowns(const sk_stress_level *level, int block, int32_t next[SK_STRESS_COLOURS][2])
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            int32_t *index = &level->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
            int at[3];
            cell_of(c, at);
            *index = *index == MARK_NONE ? level->count : next[colour_of(level, block, at, a)][*index == MARK_UNEVEN]++;
        }
}

static void make_rows(const sk_stress_level *level, int block)
{
    weight_tiles tiles;
    int32_t numbers[SELKIE_DIM][TILE_VALUES];
    load_weights(level, block, &tiles);
    for (int a = 0; a < SELKIE_DIM; a++)
        load_tile(level->neighbours, block, level->index[a], numbers[a]);
    for (int a = 0; a < SELKIE_DIM; a++) {
        /* Offsets of the neighbours in a tile, and their components. */
        int offsets[SK_STRESS_NEIGHBOURS], components[SK_STRESS_NEIGHBOURS];
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
            int offset[3];
            sk_stress_offset(a, m, offset);
            offsets[m] = tile_place(offset) - tile_place((const int[3]){0, 0, 0});
            components[m] = sk_stress_component(a, m);
        }
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            const int32_t number = level->index[a][here];
            if (number == level->count)
                continue;
            sk_stress_weights w;
            int at[3];
            cell_of(c, at);
            const int place = tile_place(at);
            gather_weights(&tiles, level->mass[a][here], place, a, &w);
            level->diagonal[number] = sk_stress_row(&w, level->coefficient + (size_t)number * SK_STRESS_NEIGHBOURS);
            level->inverse[number] = 1.0f / level->diagonal[number];
            int32_t *column = level->column + (size_t)number * SK_STRESS_NEIGHBOURS;
            for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
                column[m] = numbers[components[m]][place + offsets[m]];
        }
    }
}

#define TAKE(arena, pointer, count, what)                                                                              \
    SK_TRY(sk_arena_take(arena, (size_t)(count) * sizeof *(pointer), what, (void **)&(pointer), error))

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

static selkie_code number_level(sk_stress_level *level, const sk_stress_options *options, selkie_error *error)
{
    int32_t(*counts)[SK_STRESS_COLOURS][2];
    sk_stress_weights(*first)[SELKIE_DIM];
    TAKE(options->arena, counts, level->block_count, "viscosity");
    TAKE(options->arena, first, level->block_count, "viscosity");
    for (int a = 0; a < SELKIE_DIM; a++)
        TAKE(options->arena, level->index[a], (size_t)level->block_count * SK_BLOCK_CELLS, "viscosity");
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        find_unknowns(level, b, first[b]);
    choose_even_weights(level, (const sk_stress_weights(*)[SELKIE_DIM])first);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        count_unknowns(level, b, counts[b]);

    /* First unknown of each colour and block: even rows, then the others. */
    int64_t total = 0;
    for (int k = 0; k < 2 * SK_STRESS_COLOURS; k++) {
        const int colour = k / 2, own = k % 2;
        (own ? level->uneven : level->colour)[colour] = (int32_t)total;
        for (int b = 1; b < level->block_count; b++) {
            const int32_t here = counts[b][colour][own];
            counts[b][colour][own] = (int32_t)total;
            total += here;
        }
        if (total > INT32_MAX / SK_STRESS_NEIGHBOURS)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "viscosity: more than %d unknowns",
                           INT32_MAX / SK_STRESS_NEIGHBOURS);
    }
    level->colour[SK_STRESS_COLOURS] = level->count = (int32_t)total;
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            level->index[a][c] = level->count;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        number_unknowns(level, b, counts[b]);
    return SELKIE_OK;
}

static selkie_code make_level(sk_stress_level *level, const sk_stress_options *options, selkie_error *error)
{
    SK_TRY(number_level(level, options, error));
    const size_t count = (size_t)level->count;
    TAKE(options->arena, level->coefficient, count * SK_STRESS_NEIGHBOURS, "viscosity");
    TAKE(options->arena, level->column, count * SK_STRESS_NEIGHBOURS, "viscosity");
    TAKE(options->arena, level->inverse, count, "viscosity");
    TAKE(options->arena, level->diagonal, count, "viscosity");
    TAKE(options->arena, level->x, count + 1, "viscosity");
    TAKE(options->arena, level->b, count + 1, "viscosity");
    TAKE(options->arena, level->residual, count + 1, "viscosity");
    level->x[count] = level->b[count] = level->residual[count] = 0.0f;
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 4)
    for (int b = 1; b < level->block_count; b++)
        make_rows(level, b);
    return SELKIE_OK;
}

/* --- Blocks of the next level --- */

/* A table from coordinates to slots, by open addressing. */
typedef struct block_table {
    int32_t (*coordinates)[4];
    int32_t *slots;
    uint32_t mask;
    int count;         /* with slot 0 */
    int32_t joined[3]; /* blocks along a periodic axis, else 0 */
} block_table;

static int32_t *look_up(const block_table *table, const int32_t place[3])
{
    int32_t at[3];
    for (int d = 0; d < 3; d++)
        at[d] = table->joined[d] ? sk_wrap_index(place[d], table->joined[d]) : place[d];
    uint32_t hash = (uint32_t)at[0] * 73856093u ^ (uint32_t)at[1] * 19349663u ^ (uint32_t)at[2] * 83492791u;
    for (hash ^= hash >> 15;; hash++) {
        int32_t *slot = &table->slots[hash & table->mask];
        if (!*slot || memcmp(table->coordinates[*slot], at, 3 * sizeof *at) == 0)
            return slot;
    }
}

static selkie_code make_table(block_table *table, size_t most, sk_arena *arena, selkie_error *error)
{
    size_t size = 16;
    while (size < 4 * (most + 1))
        size *= 2;
    TAKE(arena, table->slots, size, "viscosity");
    TAKE(arena, table->coordinates, most + 1, "viscosity");
    memset(table->slots, 0, size * sizeof *table->slots);
    memset(table->coordinates[0], 0, sizeof table->coordinates[0]);
    table->mask = (uint32_t)(size - 1);
    table->count = 1;
    memset(table->joined, 0, sizeof table->joined);
    return SELKIE_OK;
}

static void add_block(block_table *table, const int32_t at[3])
{
    int32_t *slot = look_up(table, at);
    if (*slot)
        return;
    *slot = table->count++;
    for (int d = 0; d < 3; d++)
        table->coordinates[*slot][d] = table->joined[d] ? sk_wrap_index(at[d], table->joined[d]) : at[d];
    table->coordinates[*slot][3] = 0;
}

/* The coarse blocks that the kernels of a fine block's weights reach: two fine cells beyond it. */
static void add_coarse_blocks(block_table *table, const int32_t fine[4])
{
    int32_t first[3] = {0, 0, 0}, last[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        first[d] = (fine[d] * SK_BLOCK_N - 2) >> (SK_BLOCK_LOG + 1);
        last[d] = (fine[d] * SK_BLOCK_N + SK_BLOCK_N + 1) >> (SK_BLOCK_LOG + 1);
    }
    for (int32_t z = first[2]; z <= last[2]; z++)
        for (int32_t y = first[1]; y <= last[1]; y++)
            for (int32_t x = first[0]; x <= last[0]; x++)
                add_block(table, (const int32_t[3]){x, y, z});
}

static void find_neighbours(const block_table *table, int32_t (*neighbours)[27])
{
    for (int b = 0; b < table->count; b++)
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int32_t at[3] = {table->coordinates[b][0] + n % 3 - 1, table->coordinates[b][1] + n / 3 % 3 - 1,
                                   SELKIE_DIM == 3 ? table->coordinates[b][2] + n / 9 - 1 : 0};
            neighbours[b][n] = b ? *look_up(table, at) : 0;
        }
}

/* --- Weights of the next level --- */

/* The fine blocks under a coarse block, with one more on each side. */
typedef struct fine_blocks {
    int32_t slots[SELKIE_DIM == 3 ? 64 : 16];
} fine_blocks;

static void find_fine_blocks(const block_table *fine, const int32_t coarse[4], fine_blocks *under)
{
    for (int n = 0; n < (SELKIE_DIM == 3 ? 64 : 16); n++) {
        const int32_t at[3] = {2 * coarse[0] + n % 4 - 1, 2 * coarse[1] + n / 4 % 4 - 1,
                               SELKIE_DIM == 3 ? 2 * coarse[2] + n / 16 - 1 : 0};
        under->slots[n] = *look_up(fine, at);
    }
}

/* Place of the fine cell at `at` from the coarse block's lower corner. */
static inline size_t fine_place(const fine_blocks *under, const int at[3])
{
    int number = 0, local = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        number |= ((at[d] >> SK_BLOCK_LOG) + 1) << 2 * d;
        local |= (at[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return (size_t)under->slots[number] * SK_BLOCK_CELLS + (size_t)local;
}

/* The fine values around a coarse block: from one cell before it to two cells after it along each axis. */
enum {
    AROUND = 2 * SK_BLOCK_N + 3,
    AROUND_Z = SELKIE_DIM == 3 ? AROUND : 1,
    AROUND_VALUES = AROUND * AROUND * AROUND_Z
};

static void load_around(const fine_blocks *under, const float *field, float values[AROUND_VALUES])
{
    for (int k = 0; k < AROUND_Z; k++)
        for (int j = 0; j < AROUND; j++) {
            float *row = values + AROUND * (j + AROUND * k);
            const int at[3] = {-1, j - 1, SELKIE_DIM == 3 ? k - 1 : 0};
            row[0] = field[fine_place(under, at)];
            for (int n = 0; n < 2; n++)
                memcpy(row + 1 + n * SK_BLOCK_N,
                       field + fine_place(under, (const int[3]){n * SK_BLOCK_N, at[1], at[2]}),
                       SK_BLOCK_N * sizeof *row);
            memcpy(row + 1 + 2 * SK_BLOCK_N, field + fine_place(under, (const int[3]){2 * SK_BLOCK_N, at[1], at[2]}),
                   2 * sizeof *row);
        }
}

/* Means along one axis, from `from` with `extent` values along the axes to `to` with a block's width along axis d. */
static void take_means(const float *from, int d, sk_stress_mean mean, int extent[3], float *to)
{
    float weight[4];
    int first, before[3] = {extent[0], extent[1], extent[2]};
    const int count = sk_stress_mean_weights(mean, &first, weight);
    const int stride = d == 0 ? 1 : d == 1 ? before[0] : before[0] * before[1];
    extent[d] = SK_BLOCK_N;
    for (int k = 0; k < extent[2]; k++)
        for (int j = 0; j < extent[1]; j++)
            for (int i = 0; i < extent[0]; i++) {
                const int at[3] = {d == 0 ? 2 * i + first + 1 : i, d == 1 ? 2 * j + first + 1 : j,
                                   d == 2 ? 2 * k + first + 1 : k};
                const float *value = from + at[0] + before[0] * (at[1] + before[1] * at[2]);
                float sum = 0.0f;
                for (int n = 0; n < count; n++)
                    sum += weight[n] * value[n * stride];
                to[i + extent[0] * (j + extent[1] * k)] = sum;
            }
}

/* The means of a fine field over a coarse block, times `scale`. The last axis goes first: its sums run along rows. */
static void coarsen_field(const fine_blocks *under, const float *field, const sk_stress_mean means[3], float scale,
                          float *to)
{
    float values[2][AROUND_VALUES];
    int extent[3] = {AROUND, AROUND, AROUND_Z}, now = 0;
    load_around(under, field, values[0]);
    for (int d = SELKIE_DIM - 1; d >= 0; d--) {
        take_means(values[now], d, means[d], extent, values[!now]);
        now = !now;
    }
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        to[c] = scale * values[now][c];
}

/* A coarse face is given if no fine face in it is an unknown and one is given. */
static uint8_t is_fixed(const sk_stress_level *fine, const fine_blocks *under, const int at[3], int a)
{
    int given = 0;
    for (int n = 0; n < 1 << SELKIE_DIM; n++) {
        int place[3] = {2 * at[0], 2 * at[1], 2 * at[2]};
        if (n >> a & 1)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            place[d] += n >> d & 1;
        const size_t face = fine_place(under, place);
        if (fine->index[a][face] != fine->count)
            return 0;
        given |= fine->fixed[a][face];
    }
    return (uint8_t)given;
}

typedef struct coarse_weights {
    float *mass[3], *normal[3], *bulk, *shear[3];
    uint8_t *fixed[3];
} coarse_weights;

/* Differences halve from level to level, so weights of strains fall to a quarter beside the masses. */
static void coarsen_block(const sk_stress_level *fine, const fine_blocks *under, int block, coarse_weights *to)
{
    /* The divergence of a fine cell mixes coarse cells, so no mean bounds it. The factor takes the fewest iterations.
     */
    const float strain = 0.25f, mixed = 1.5f;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    for (int a = 0; a < SELKIE_DIM; a++) {
        sk_stress_mean means[3] = {SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ACROSS};
        means[a] = SK_STRESS_MEAN_NODE;
        coarsen_field(under, fine->mass[a], means, 1.0f, to->mass[a] + base);
        means[a] = SK_STRESS_MEAN_ALONG;
        coarsen_field(under, fine->normal[a], means, strain, to->normal[a] + base);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            int at[3];
            cell_of(c, at);
            to->fixed[a][base + (size_t)c] = is_fixed(fine, under, at, a);
        }
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++) {
        sk_stress_mean means[3] = {SK_STRESS_MEAN_NODE, SK_STRESS_MEAN_NODE, SK_STRESS_MEAN_NODE};
        means[edge] = SK_STRESS_MEAN_ACROSS;
        coarsen_field(under, fine->shear[edge], means, strain, to->shear[edge] + base);
    }
    const sk_stress_mean all[3] = {SK_STRESS_MEAN_ALONG, SK_STRESS_MEAN_ALONG, SK_STRESS_MEAN_ALONG};
    if (fine->bulk)
        coarsen_field(under, fine->bulk, all, mixed * strain, to->bulk + base);
}

/* --- Transfers --- */

/* Parents of the unknowns of a coarse block's fine cells. */
static void find_parents(const sk_stress_level *fine, const sk_stress_level *coarse, const fine_blocks *under,
                         int block)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int n = 0; n < SK_BLOCK_CELLS << SELKIE_DIM; n++) {
            const int size = 2 * SK_BLOCK_N;
            const int at[3] = {n % size, n / size % size, SELKIE_DIM == 3 ? n / (size * size) : 0};
            const int32_t number = fine->index[a][fine_place(under, at)];
            if (number == fine->count)
                continue;
            int parity = 0;
            for (int d = 0; d < SELKIE_DIM; d++)
                parity |= (at[d] & 1) << d;
            fine->kind[number] = (uint8_t)(8 * a + parity);
            for (int p = 0; p < SK_STRESS_PARENTS; p++) {
                int place[3] = {0, 0, 0};
                for (int d = 0; d < SELKIE_DIM; d++)
                    place[d] = (at[d] >> 1) + sk_stress_parent_offset(a, parity, p, d);
                fine->parent[(size_t)number * SK_STRESS_PARENTS + (size_t)p] =
                    coarse->index[a][sk_stress_place(coarse->neighbours, block, place)];
            }
        }
}

/* Fine faces that are interpolated from a coarse unknown: three along its normal, four across it. */
static void find_children(const sk_stress_level *fine, const sk_stress_level *coarse, const fine_blocks *under,
                          int block)
{
    for (int a = 0; a < SELKIE_DIM; a++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int32_t number = coarse->index[a][(size_t)block * SK_BLOCK_CELLS + (size_t)c];
            int at[3], n = 0;
            if (number == coarse->count)
                continue;
            cell_of(c, at);
            fine->coarse_axis[number] = (uint8_t)a;
            int extent[3] = {4, 4, SELKIE_DIM == 3 ? 4 : 1};
            extent[a] = 3;
            for (int k = 0; k < extent[2]; k++)
                for (int j = 0; j < extent[1]; j++)
                    for (int i = 0; i < extent[0]; i++) {
                        const int place[3] = {2 * at[0] - 1 + i, 2 * at[1] - 1 + j,
                                              SELKIE_DIM == 3 ? 2 * at[2] - 1 + k : 0};
                        fine->child[(size_t)number * SK_STRESS_CHILDREN + (size_t)n++] =
                            fine->index[a][fine_place(under, place)];
                    }
        }
}

/* --- The hierarchy --- */

static selkie_code take_weights(coarse_weights *to, size_t values, int with_bulk, sk_arena *arena, selkie_error *error)
{
    float **fields[10];
    int count = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        fields[count++] = &to->mass[d];
        fields[count++] = &to->normal[d];
    }
    for (int edge = SELKIE_DIM == 3 ? 0 : 2; edge < 3; edge++)
        fields[count++] = &to->shear[edge];
    if (with_bulk)
        fields[count++] = &to->bulk;
    for (int f = 0; f < count; f++) {
        TAKE(arena, *fields[f], values, "viscosity");
        memset(*fields[f], 0, SK_BLOCK_CELLS * sizeof **fields[f]);
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        TAKE(arena, to->fixed[d], values, "viscosity");
        memset(to->fixed[d], 0, SK_BLOCK_CELLS);
    }
    return SELKIE_OK;
}

/* The level above `fine`. `table` holds the blocks of the fine level, then those of the coarse one. */
static selkie_code coarsen(sk_stress_level *fine, sk_stress_level *coarse, block_table *table,
                           const sk_stress_options *options, selkie_error *error)
{
    /* Blocks. */
    block_table below = *table, above;
    SK_TRY(make_table(&above, (size_t)below.count << SELKIE_DIM, options->arena, error));

    /* Joined sides stay joined while blocks pair up. Further down the liquid ends there: the transfers of both levels
     * must agree on that. */
    for (int d = 0; d < 3; d++) {
        above.joined[d] = below.joined[d] % 2 ? 0 : below.joined[d] / 2;
        below.joined[d] = above.joined[d] ? below.joined[d] : 0;
    }
    for (int b = 1; b < below.count; b++)
        add_coarse_blocks(&above, below.coordinates[b]);
    int32_t(*neighbours)[27];
    fine_blocks *under;
    TAKE(options->arena, neighbours, above.count, "viscosity");
    TAKE(options->arena, under, above.count, "viscosity");
    find_neighbours(&above, neighbours);

    /* Weights. */
    coarse_weights to = {.bulk = NULL};
    SK_TRY(take_weights(&to, (size_t)above.count * SK_BLOCK_CELLS, fine->bulk != NULL, options->arena, error));
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < above.count; b++) {
        find_fine_blocks(&below, above.coordinates[b], &under[b]);
        coarsen_block(fine, &under[b], b, &to);
    }
    *coarse = (sk_stress_level){.block_count = above.count,
                                .coordinates = (const int32_t(*)[4])above.coordinates,
                                .neighbours = (const int32_t(*)[27])neighbours,
                                .bulk = to.bulk};
    memcpy(coarse->joined, above.joined, sizeof coarse->joined);
    for (int d = 0; d < 3; d++) {
        coarse->mass[d] = to.mass[d];
        coarse->normal[d] = to.normal[d];
        coarse->shear[d] = to.shear[d];
        coarse->fixed[d] = to.fixed[d];
    }
    SK_TRY(make_level(coarse, options, error));

    /* Transfers. */
    TAKE(options->arena, fine->parent, (size_t)fine->count * SK_STRESS_PARENTS, "viscosity");
    TAKE(options->arena, fine->kind, fine->count, "viscosity");
    TAKE(options->arena, fine->child, (size_t)coarse->count * SK_STRESS_CHILDREN, "viscosity");
    TAKE(options->arena, fine->coarse_axis, coarse->count, "viscosity");
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < above.count; b++) {
        find_parents(fine, coarse, &under[b], b);
        find_children(fine, coarse, &under[b], b);
    }
    *table = above;
    return SELKIE_OK;
}

/* Cholesky's factor of the coarsest level. */
static selkie_code factorize(sk_stress_hierarchy *hierarchy, const sk_stress_level *level, sk_arena *arena,
                             selkie_error *error)
{
    const size_t count = (size_t)level->count;
    double *l;
    TAKE(arena, l, count * count, "viscosity");
    memset(l, 0, count * count * sizeof *l);

    /* Lower triangle of the matrix. */
    for (size_t i = 0; i < count; i++) {
        l[i * count + i] = (double)level->diagonal[i];
        for (size_t m = 0; m < SK_STRESS_NEIGHBOURS; m++) {
            const size_t j = (size_t)level->column[i * SK_STRESS_NEIGHBOURS + m];
            if (j < i)
                l[i * count + j] += (double)level->coefficient[i * SK_STRESS_NEIGHBOURS + m];
        }
    }

    /* Factorize in place, row by row. */
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = l[i * count + j];
            for (size_t k = 0; k < j; k++)
                sum -= l[i * count + k] * l[j * count + k];
            if (j < i)
                l[i * count + j] = sum / l[j * count + j];
            else if (sum > 1e-7 * l[i * count + i])
                l[i * count + i] = sqrt(sum);
            else
                return SELKIE_OK; /* singular to rounding: the smoother must do */
        }
    }
    hierarchy->factor = l;
    return SELKIE_OK;
}

/* Would the next level open a joined side? */
static int loses_sides(const sk_stress_level *level)
{
    return level->joined[0] % 2 || level->joined[1] % 2 || level->joined[2] % 2;
}

selkie_code SK_DIM(sk_stress_make_levels)(const sk_stress_system *system, const sk_stress_options *options,
                                          sk_stress_hierarchy *hierarchy, selkie_error *error)
{
    enum { FEW = 100 }; /* unknowns that a direct solve takes least time for */
    sk_stress_level *level = &hierarchy->levels[0];
    memset(hierarchy, 0, sizeof *hierarchy);
    hierarchy->threads = options->threads;
    *level = (sk_stress_level){.block_count = system->block_count,
                               .coordinates = system->coordinates,
                               .neighbours = system->neighbours,
                               .bulk = system->bulk};
    for (int d = 0; d < 3; d++) {
        level->mass[d] = system->mass[d];
        level->normal[d] = system->normal;
        level->shear[d] = system->shear[d];
        level->fixed[d] = system->fixed[d];
    }
    memcpy(level->joined, system->joined, sizeof level->joined);
    SK_TRY(make_level(level, options, error));

    block_table table;
    SK_TRY(make_table(&table, (size_t)system->block_count, options->arena, error));
    memcpy(table.joined, system->joined, sizeof table.joined);
    for (int b = 1; b < system->block_count; b++)
        add_block(&table, system->coordinates[b]);
    hierarchy->count = 1;
    while (hierarchy->count < SK_STRESS_LEVELS && level->count > FEW) {
        if (level->count <= SK_STRESS_DIRECT && loses_sides(level))
            break;
        SK_TRY(coarsen(level, level + 1, &table, options, error));
        if (level[1].count == 0 || level[1].count >= level->count)
            break;
        level++;
        hierarchy->count++;
    }
    if (level->count > 0 && level->count <= SK_STRESS_DIRECT)
        SK_TRY(factorize(hierarchy, level, options->arena, error));
    return SELKIE_OK;
}

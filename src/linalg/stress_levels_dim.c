/* Levels of the stress solver: blocks, weights and transfers. */
#include <math.h>
#include <string.h>

#include "linalg/stress_solver.h"

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
    SK_STRESS_TAKE(arena, table->slots, size);
    SK_STRESS_TAKE(arena, table->coordinates, most + 1);
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

/* Blocks with cells from one before a period to two after it. */
static int is_near_period(int32_t block, int32_t period)
{
    return block >= -1 && block * SK_BLOCK_N <= period + 1;
}

/* The cells of a block with mass or stress: first and last along each axis; last < first if there are none. */
typedef struct liquid_box {
    int first[3], last[3];
} liquid_box;

static liquid_box find_liquid(const sk_stress_level *level, int block)
{
    liquid_box box = {{SK_BLOCK_N, SK_BLOCK_N, SELKIE_DIM == 3 ? SK_BLOCK_N : 0}, {-1, -1, SELKIE_DIM == 3 ? -1 : 0}};
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
        float weight = level->bulk ? level->bulk[here] : 0.0f;
        int at[3];
        for (int d = 0; d < 3; d++) {
            weight += d < SELKIE_DIM ? level->mass[d][here] + level->normal[d][here] : 0.0f;
            weight += level->shear[d] && (SELKIE_DIM == 3 || d == 2) ? level->shear[d][here] : 0.0f;
        }
        if (!(weight > 0.0f))
            continue;
        sk_stress_cell(c, at);
        for (int d = 0; d < SELKIE_DIM; d++) {
            box.first[d] = at[d] < box.first[d] ? at[d] : box.first[d];
            box.last[d] = at[d] > box.last[d] ? at[d] : box.last[d];
        }
    }
    return box;
}

/* The coarse blocks that the weights of a fine block reach, and the faces beside them: two fine cells before its
 * liquid, three after it. Along an axis with a period (coarse cells), also those that its images reach. */
static void add_coarse_blocks(block_table *table, const int32_t fine[4], const liquid_box *liquid,
                              const int32_t period[3])
{
    int32_t first[3] = {0, 0, 0}, last[3] = {0, 0, 0}, images[3] = {0, 0, 0}, image[3];
    for (int d = 0; d < SELKIE_DIM; d++)
        images[d] = period[d] ? 1 : 0;
    for (image[2] = -images[2]; image[2] <= images[2]; image[2]++)
        for (image[1] = -images[1]; image[1] <= images[1]; image[1]++)
            for (image[0] = -images[0]; image[0] <= images[0]; image[0]++) {
                for (int d = 0; d < SELKIE_DIM; d++) {
                    const int32_t low = fine[d] * SK_BLOCK_N + 2 * image[d] * period[d];
                    first[d] = (low + liquid->first[d] - 2) >> (SK_BLOCK_LOG + 1);
                    last[d] = (low + liquid->last[d] + 3) >> (SK_BLOCK_LOG + 1);
                }
                for (int32_t z = first[2]; z <= last[2]; z++)
                    for (int32_t y = first[1]; y <= last[1]; y++)
                        for (int32_t x = first[0]; x <= last[0]; x++) {
                            const int32_t at[3] = {x, y, z};
                            int near = 1;
                            for (int d = 0; d < SELKIE_DIM; d++)
                                near &= !period[d] || is_near_period(at[d], period[d]);
                            if (near)
                                add_block(table, at);
                        }
            }
}

/* Finds the cells that the cells beyond the periods of a level copy. */
static selkie_code find_homes(sk_stress_level *level, const block_table *table, sk_arena *arena, selkie_error *error)
{
    if (!level->period[0] && !level->period[1] && !level->period[2])
        return SELKIE_OK;
    SK_STRESS_TAKE(arena, level->home, (size_t)level->block_count * SK_BLOCK_CELLS);
    for (int b = 0; b < level->block_count; b++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            int at[3], local = 0, block[3] = {0, 0, 0}, moved = 0;
            sk_stress_cell(c, at);
            for (int d = 0; d < SELKIE_DIM; d++) {
                const int cell = level->coordinates[b][d] * SK_BLOCK_N + at[d];
                const int home = level->period[d] ? sk_wrap_index(cell, level->period[d]) : cell;
                moved |= home != cell;
                block[d] = home >> SK_BLOCK_LOG;
                local |= (home & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
            }
            const int32_t slot = b && moved ? *look_up(table, block) : b;
            level->home[(size_t)b * SK_BLOCK_CELLS + (size_t)c] =
                (uint32_t)slot * SK_BLOCK_CELLS + (uint32_t)(b && moved ? local : c);
        }
    return SELKIE_OK;
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

/* Copies values of four bytes. */
static void load_around(const fine_blocks *under, const void *from, void *to)
{
    const uint32_t *field = from;
    uint32_t *values = to;
    for (int k = 0; k < AROUND_Z; k++)
        for (int j = 0; j < AROUND; j++) {
            uint32_t *row = values + AROUND * (j + AROUND * k);
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

/* The mean of `count` values, `stride` apart; called with constants. */
static inline __attribute__((always_inline)) float mean_of(const float *value, int stride, const float *weight,
                                                           int count)
{
    float sum = 0.0f;
    for (int n = 0; n < count; n++)
        sum += weight[n] * value[n * stride];
    return sum;
}

/* Means along axis d for a row of `width` values along x. */
static inline __attribute__((always_inline)) void mean_row(const float *from, int step, int stride, int width,
                                                           sk_stress_mean mean, float *to)
{
    float weight[4];
    int first;
    const int count = sk_stress_mean_weights(mean, &first, weight);
    for (int i = 0; i < width; i++)
        to[i] = mean_of(from + step * i + (first + 1) * stride, stride, weight, count);
}

/* Means along one axis, from `from` with `extent` values along the axes to `to` with a block's width along axis d. */
static void take_means(const float *from, int d, sk_stress_mean mean, int extent[3], float *to)
{
    const int before[3] = {extent[0], extent[1], extent[2]};
    const int stride = d == 0 ? 1 : d == 1 ? before[0] : before[0] * before[1], step = d == 0 ? 2 : 1;
    extent[d] = SK_BLOCK_N;
    for (int k = 0; k < extent[2]; k++)
        for (int j = 0; j < extent[1]; j++, to += extent[0]) {
            const float *row = from + before[0] * ((d == 1 ? 2 : 1) * j + before[1] * (d == 2 ? 2 : 1) * k);
            if (mean == SK_STRESS_MEAN_ACROSS)
                mean_row(row, step, stride, extent[0], SK_STRESS_MEAN_ACROSS, to);
            else if (mean == SK_STRESS_MEAN_ALONG)
                mean_row(row, step, stride, extent[0], SK_STRESS_MEAN_ALONG, to);
            else
                mean_row(row, step, stride, extent[0], SK_STRESS_MEAN_NODE, to);
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

/* Copies the weights of cells to the cells beyond the periods. */
static void copy_weights(const sk_stress_level *level, const coarse_weights *to)
{
    const size_t values = (size_t)level->block_count * SK_BLOCK_CELLS;
    for (size_t i = 0; i < values && level->home; i++) {
        const size_t home = level->home[i];
        for (int d = 0; d < 3 && home != i; d++) {
            if (d < SELKIE_DIM) {
                to->mass[d][i] = to->mass[d][home];
                to->normal[d][i] = to->normal[d][home];
                to->fixed[d][i] = to->fixed[d][home];
            }
            if (to->shear[d])
                to->shear[d][i] = to->shear[d][home];
        }
        if (to->bulk && home != i)
            to->bulk[i] = to->bulk[home];
    }
}

static void coarsen_block(const sk_stress_level *fine, const fine_blocks *under, int block, coarse_weights *to)
{
    const float strain = SK_STRESS_COARSE_STRAIN;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    for (int a = 0; a < SELKIE_DIM; a++) {
        sk_stress_mean means[3] = {SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ACROSS};
        means[a] = SK_STRESS_MEAN_NODE;
        coarsen_field(under, fine->mass[a], means, 1.0f, to->mass[a] + base);
        means[a] = SK_STRESS_MEAN_ALONG;
        coarsen_field(under, fine->normal[a], means, strain, to->normal[a] + base);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            int at[3];
            sk_stress_cell(c, at);
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
        coarsen_field(under, fine->bulk, all, SK_STRESS_COARSE_BULK, to->bulk + base);
}

/* --- Transfers --- */

/* The numbers of a component around a coarse block: of the fine level, as in load_around(), and of the coarse level
 * with one cell on each side. */
enum { BESIDE = SK_BLOCK_N + 2, BESIDE_Z = SELKIE_DIM == 3 ? BESIDE : 1 };
typedef struct transfer_tiles {
    int32_t fine[AROUND_VALUES], coarse[BESIDE * BESIDE * BESIDE_Z];
} transfer_tiles;

static inline int around_place(int x, int y, int z)
{
    return x + 1 + AROUND * (y + 1 + (SELKIE_DIM == 3 ? AROUND * (z + 1) : 0));
}

static inline int beside_place(int x, int y, int z)
{
    return x + 1 + BESIDE * (y + 1 + (SELKIE_DIM == 3 ? BESIDE * (z + 1) : 0));
}

static void load_transfer(const sk_stress_level *fine, const sk_stress_level *coarse, const fine_blocks *under,
                          int block, int a, transfer_tiles *tiles)
{
    load_around(under, fine->index[a], tiles->fine);
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k < (SELKIE_DIM == 3 ? SK_BLOCK_N + 1 : 1); k++)
        for (int j = -1; j <= SK_BLOCK_N; j++)
            for (int i = -1; i <= SK_BLOCK_N; i++)
                tiles->coarse[beside_place(i, j, k)] =
                    coarse->index[a][sk_stress_place(coarse->neighbours, block, (const int[3]){i, j, k})];
}

/* Parents of the unknowns in the fine cells of coarse cell `at`. */
static void find_parents(const sk_stress_level *fine, const transfer_tiles *tiles, const int at[3], int a)
{
    for (int parity = 0; parity < 1 << SELKIE_DIM; parity++) {
        const int32_t number = tiles->fine[around_place(2 * at[0] + (parity & 1), 2 * at[1] + (parity >> 1 & 1),
                                                        2 * at[2] + (parity >> 2 & 1))];
        if (number == fine->count)
            continue;
        fine->kind[number] = (uint8_t)(8 * a + parity);
        for (int p = 0; p < SK_STRESS_PARENTS; p++) {
            int place[3] = {0, 0, 0};
            for (int d = 0; d < SELKIE_DIM; d++)
                place[d] = at[d] + sk_stress_parent_offset(a, parity, p, d);
            fine->parent[(size_t)number * SK_STRESS_PARENTS + (size_t)p] =
                tiles->coarse[beside_place(place[0], place[1], place[2])];
        }
    }
}

/* Fine faces that are interpolated from a coarse unknown: three along its normal, four across it. */
static void find_children(const sk_stress_level *fine, const transfer_tiles *tiles, const int at[3], int a,
                          int32_t number)
{
    int32_t *child = fine->child + (size_t)number * SK_STRESS_CHILDREN;
    int extent[3] = {4, 4, SELKIE_DIM == 3 ? 4 : 1};
    extent[a] = 3;
    fine->coarse_axis[number] = (uint8_t)a;
    for (int k = 0; k < extent[2]; k++)
        for (int j = 0; j < extent[1]; j++)
            for (int i = 0; i < extent[0]; i++)
                *child++ = tiles->fine[around_place(2 * at[0] - 1 + i, 2 * at[1] - 1 + j,
                                                    SELKIE_DIM == 3 ? 2 * at[2] - 1 + k : 0)];
}

/* Parents and children of a coarse block. */
static void find_transfers(const sk_stress_level *fine, const sk_stress_level *coarse, const fine_blocks *under,
                           int block)
{
    transfer_tiles tiles;
    for (int a = 0; a < SELKIE_DIM; a++) {
        load_transfer(fine, coarse, under, block, a, &tiles);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t here = (size_t)block * SK_BLOCK_CELLS + (size_t)c;
            const int32_t number = coarse->index[a][here];
            int at[3];
            if (sk_stress_is_copy(coarse, here))
                continue;
            sk_stress_cell(c, at);
            find_parents(fine, &tiles, at, a);
            if (number != coarse->count)
                find_children(fine, &tiles, at, a, number);
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
        SK_STRESS_TAKE(arena, *fields[f], values);
        memset(*fields[f], 0, SK_BLOCK_CELLS * sizeof **fields[f]);
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        SK_STRESS_TAKE(arena, to->fixed[d], values);
        memset(to->fixed[d], 0, SK_BLOCK_CELLS);
    }
    return SELKIE_OK;
}

/* Periodic sides of the next level. They stay joined while blocks pair up; then the axis has a period in cells, while
 * that is even. An odd period has no two colours, so only a level that is solved directly may have one. Below that the
 * liquid ends at the sides: the transfers of both levels must agree on that. */
static void halve_periods(const sk_stress_level *fine, int32_t joined[3], int32_t period[3])
{
    const int last = fine->count <= SK_STRESS_DIRECT << SELKIE_DIM;
    for (int d = 0; d < 3; d++) {
        const int32_t cells = fine->joined[d] ? fine->joined[d] * SK_BLOCK_N : fine->period[d];
        joined[d] = fine->joined[d] % 2 ? 0 : fine->joined[d] / 2;
        period[d] = joined[d] || cells % 2 || (cells % 4 && !last) ? 0 : cells / 2;
    }
}

/* Would the next level open a joined side? */
static int loses_sides(const sk_stress_level *level)
{
    int32_t joined[3], period[3];
    int loses = 0;
    halve_periods(level, joined, period);
    for (int d = 0; d < 3; d++)
        loses |= (level->joined[d] || level->period[d]) && !joined[d] && !period[d];
    return loses;
}

/* The level above `fine`. `table` holds the blocks of the fine level, then those of the coarse one. */
static selkie_code coarsen(sk_stress_level *fine, sk_stress_level *coarse, block_table *table,
                           const sk_stress_options *options, selkie_error *error)
{
    /* Blocks. */
    block_table below = *table, above;
    *coarse = (sk_stress_level){.block_count = 0};
    halve_periods(fine, coarse->joined, coarse->period);
    int64_t images = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        images *= coarse->period[d] ? 3 : 1;
        if (!coarse->joined[d] && !coarse->period[d])
            below.joined[d] = 0;
    }
    SK_TRY(make_table(&above, (size_t)(images * below.count) << SELKIE_DIM, options->arena, error));
    memcpy(above.joined, coarse->joined, sizeof above.joined);
    for (int b = 1; b < below.count; b++) {
        const liquid_box liquid = find_liquid(fine, b);
        if (liquid.last[0] >= 0)
            add_coarse_blocks(&above, below.coordinates[b], &liquid, coarse->period);
    }
    int32_t(*neighbours)[27];
    fine_blocks *under;
    SK_STRESS_TAKE(options->arena, neighbours, above.count);
    SK_STRESS_TAKE(options->arena, under, above.count);
    find_neighbours(&above, neighbours);

    /* Weights. */
    coarse_weights to = {.bulk = NULL};
    SK_TRY(take_weights(&to, (size_t)above.count * SK_BLOCK_CELLS, fine->bulk != NULL, options->arena, error));
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < above.count; b++) {
        find_fine_blocks(&below, above.coordinates[b], &under[b]);
        coarsen_block(fine, &under[b], b, &to);
    }
    coarse->block_count = above.count;
    coarse->coordinates = (const int32_t(*)[4])above.coordinates;
    coarse->neighbours = (const int32_t(*)[27])neighbours;
    coarse->bulk = to.bulk;
    SK_TRY(find_homes(coarse, &above, options->arena, error));
    copy_weights(coarse, &to);
    for (int d = 0; d < 3; d++) {
        coarse->mass[d] = to.mass[d];
        coarse->normal[d] = to.normal[d];
        coarse->shear[d] = to.shear[d];
        coarse->fixed[d] = to.fixed[d];
    }
    SK_TRY(SK_DIM(sk_stress_make_rows)(coarse, options, error));

    /* Transfers. */
    SK_STRESS_TAKE(options->arena, fine->parent, (size_t)fine->count * SK_STRESS_PARENTS);
    SK_STRESS_TAKE(options->arena, fine->kind, fine->count);
    SK_STRESS_TAKE(options->arena, fine->child, (size_t)coarse->count * SK_STRESS_CHILDREN);
    SK_STRESS_TAKE(options->arena, fine->coarse_axis, coarse->count);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < above.count; b++)
        find_transfers(fine, coarse, &under[b], b);
    *table = above;
    return SELKIE_OK;
}

/* Cholesky's factor of the coarsest level. */
static selkie_code factorize(sk_stress_hierarchy *hierarchy, const sk_stress_level *level, sk_arena *arena,
                             selkie_error *error)
{
    const size_t count = (size_t)level->count;
    double *l;
    SK_STRESS_TAKE(arena, l, count * count);
    memset(l, 0, count * count * sizeof *l);

    /* Lower triangle of the matrix. */
    for (size_t i = 0; i < count; i++) {
        l[i * count + i] = (double)level->diagonal[i];
        int32_t columns[SK_STRESS_NEIGHBOURS];
        const int k = sk_stress_colour_of(level, (int32_t)i);
        const float *coefficient = sk_stress_coefficients(level, k, (int32_t)i);
        sk_stress_columns(level, k, (int32_t)i, columns);
        for (int m = 0; m < SK_STRESS_NEIGHBOURS; m++)
            if ((size_t)columns[m] < i)
                l[i * count + (size_t)columns[m]] += (double)coefficient[m];
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

/* Does a block have a face whose velocity is given and not 0? */
static int has_moving(const sk_stress_system *system, int block)
{
    int moving = 0;
    for (int a = 0; a < SELKIE_DIM; a++)
        for (size_t i = (size_t)block * SK_BLOCK_CELLS; i < (size_t)(block + 1) * SK_BLOCK_CELLS; i++)
            moving |= (system->fixed[a][i] != 0) & (system->velocity[a][i] != 0.0f);
    return moving;
}

/* Finds the blocks with given faces in or beside them. */
static selkie_code find_given(const sk_stress_system *system, sk_stress_level *level, const sk_stress_options *options,
                              selkie_error *error)
{
    uint8_t *given, *moving;
    SK_STRESS_TAKE(options->arena, given, level->block_count);
    SK_STRESS_TAKE(options->arena, moving, level->block_count);
    SK_STRESS_TAKE(options->arena, level->near_given, level->block_count);
    SK_STRESS_TAKE(options->arena, level->near_moving, level->block_count);
#pragma omp parallel for num_threads(options->threads) schedule(static)
    for (int b = 0; b < level->block_count; b++) {
        given[b] = 0;
        for (int a = 0; a < SELKIE_DIM; a++)
            given[b] |= memchr(level->fixed[a] + (size_t)b * SK_BLOCK_CELLS, 1, SK_BLOCK_CELLS) != NULL;
        moving[b] = given[b] && has_moving(system, b);
    }
    for (int b = 0; b < level->block_count; b++) {
        level->near_given[b] = level->near_moving[b] = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            level->near_given[b] |= given[level->neighbours[b][n]];
            level->near_moving[b] |= moving[level->neighbours[b][n]];
        }
    }
    return SELKIE_OK;
}

/* Has a level too many rows for a direct solve, and no two colours? */
static int cannot_smooth(const sk_stress_level *level)
{
    return level->count > SK_STRESS_DIRECT && (level->period[0] % 2 || level->period[1] % 2 || level->period[2] % 2);
}

/* The largest of a block's values, none of them negative: their bits have the same order. */
static float largest_of(const float *values)
{
    int32_t bits[SK_BLOCK_CELLS], most = 0;
    float largest;
    memcpy(bits, values, sizeof bits);
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        most = bits[c] > most ? bits[c] : most;
    memcpy(&largest, &most, sizeof largest);
    return largest;
}

/* Stress over mass at the faces of a level: the largest of its blocks. The bulk viscosity adds to it and not to the
 * number of sweeps. Faces beside the surface have little mass, so a
 * block counts with its largest weights. */
static float stiffness_of(const sk_stress_level *level)
{
    float stiffness = 0.0f;
    for (int b = 1; b < level->block_count; b++) {
        float stress = 0.0f, mass = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float normal = largest_of(level->normal[d] + (size_t)b * SK_BLOCK_CELLS);
            const float own = largest_of(level->mass[d] + (size_t)b * SK_BLOCK_CELLS);
            stress = fmaxf(stress, (2.0f * SELKIE_DIM + 2.0f) * normal);
            mass = fmaxf(mass, own);
        }
        /* Without mass there is no bound. */
        if (stress > stiffness * mass)
            stiffness = mass > 0.0f ? stress / mass : INFINITY;
    }
    return stiffness;
}

/* Is each uneven row held, by mass of its own or by rows beside it that are? The common motion of a few faces with
 * hardly a mass leaves hardly a residual, so sweeps do not find it: what the start has of it would go from step to step
 * and grow. Coarse levels find it. Beside a surface most rows without mass hang on rows that have some: half of their
 * stress acts there, at most two rows away. */
static selkie_code find_held(const sk_stress_level *level, sk_arena *arena, int *all_held, selkie_error *error)
{
    enum { STEPS = 2 };
    const int32_t rows = level->colour[SK_STRESS_COLOURS - 1].own_last;
    int32_t loose = rows;
    uint8_t *held;
    SK_STRESS_TAKE(arena, held, (size_t)level->count + 1);
    memset(held, 1, (size_t)level->count + 1);
    for (int32_t n = 0; n < rows; n++)
        held[level->own_row[n]] = level->diagonal[level->own_row[n]] <= SK_STRESS_HELD * level->own_mass[n];
    for (int step = 0; step < STEPS && loose; step++) {
        loose = 0;
        for (int32_t n = 0; n < rows; n++) {
            const int32_t i = level->own_row[n];
            const size_t entry = (size_t)n * SK_STRESS_NEIGHBOURS;
            float sum = 0.0f;
            for (int m = 0; m < SK_STRESS_NEIGHBOURS && !held[i]; m++)
                sum += held[level->own_column[entry + (size_t)m]] == 1 ? fabsf(level->coefficient[entry + (size_t)m])
                                                                       : 0.0f;
            /* A mark of 2 holds others from the next step on: the order of the rows does not matter. */
            held[i] = held[i] ? held[i] : sum >= 0.5f * level->diagonal[i] ? 2 : 0;
            loose += !held[i];
        }
        for (int32_t n = 0; n < rows; n++)
            held[level->own_row[n]] = held[level->own_row[n]] != 0;
    }
    *all_held = !loose;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_stress_begin)(const sk_stress_system *system, const sk_stress_options *options,
                                    sk_stress_hierarchy *hierarchy, int64_t *unknowns, int *sweeps, selkie_error *error)
{
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
    SK_TRY(find_given(system, level, options, error));
    SK_TRY(SK_DIM(sk_stress_find_unknowns)(level, options, error));
    *unknowns = 0;
    for (int b = 1; b < level->block_count; b++)
        for (int a = 0; a < SELKIE_DIM; a++)
            for (int r = 0; r < SK_STRESS_ROWS; r++)
                *unknowns += __builtin_popcount(level->bits[b][a][r].unknown);
    *sweeps = *unknowns > SK_STRESS_FEW_UNKNOWNS ? sk_stress_lone_sweeps(stiffness_of(level)) : 0;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_stress_make_levels)(const sk_stress_system *system, const sk_stress_options *options,
                                          sk_stress_hierarchy *hierarchy, selkie_error *error)
{
    int soft = 0;
    sk_stress_level *level = &hierarchy->levels[0];
    SK_TRY(SK_DIM(sk_stress_make_rows)(level, options, error));

    block_table table;
    SK_TRY(make_table(&table, (size_t)system->block_count, options->arena, error));
    memcpy(table.joined, system->joined, sizeof table.joined);
    for (int b = 1; b < system->block_count; b++)
        add_block(&table, system->coordinates[b]);
    hierarchy->count = 1;
    while (hierarchy->count < SK_STRESS_LEVELS && level->count > SK_STRESS_FEW_UNKNOWNS) {
        /* A coarsest level that sweeps do not solve well would cost iterations. */
        soft = hierarchy->count > 1 && stiffness_of(level) <= SK_STRESS_SOFT_COARSE;
        if (soft)
            SK_TRY(find_held(level, options->arena, &soft, error));
        if (soft || (level->count <= SK_STRESS_DIRECT && loses_sides(level)))
            break;
        SK_TRY(coarsen(level, level + 1, &table, options, error));
        if (level[1].count == 0 || level[1].count >= level->count || cannot_smooth(&level[1]))
            break;
        level++;
        hierarchy->count++;
    }
    hierarchy->last_sweeps = soft ? 2 : SK_STRESS_LAST_SWEEPS;
    if (!soft && level->count > 0 && level->count <= SK_STRESS_DIRECT)
        SK_TRY(factorize(hierarchy, level, options->arena, error));
    return SELKIE_OK;
}

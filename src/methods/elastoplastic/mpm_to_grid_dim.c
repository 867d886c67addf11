/* Points to nodes, tuned: four points are lanes, or eight where registers hold as many.
 *
 * Sums over the 3^dimension nodes of a point are taken along one axis after the other. Along an axis the nodes get a
 * value, its rise and its moment; the first two axes then need three values each and not nine. It is the transpose of
 * nodes to points (mpm_to_points_dim.c).
 *
 * Lanes are points of neighbouring cells along x, one of each: the sums of a node are then sums of vectors, and no
 * lanes are added up. Where few of those cells have points, lanes are points of one cell.
 */
#include "base/simd.h"
#include "methods/elastoplastic/mpm_lanes.h"

/* --- Lanes of one cell --- */

enum {
    ROWS = SK_MPM_NODES / 3,                 /* of three nodes along x */
    MOST_GROUPS = 32 / SK_LANES,             /* of a cell, added at once */
    MOST_WIDE = 16,                          /* of neighbouring cells */
    WIDE_COST = SK_LANES_COUNT == 8 ? 6 : 8, /* sums of the eight lanes of a cell are dear */
    MOST_LAWS = 512                          /* points of neighbouring cells that are lanes */
};

/* What the groups of a block share. */
typedef struct give_frame {
    const sk_mpm_giving *giving;
    int block;
    const uint32_t *start; /* of its cells */
    sk_mpm_law_sums sums;
    float laws[MOST_LAWS][SK_MPM_PUSH];
} give_frame;

/* What a group gives to the levels of the axes, by component; `x` and `level[0]` have the factor of mass. */
typedef struct gift {
    fl x[3], y[3], z[3], cross[ROWS];
    fl level[SELKIE_DIM][SELKIE_DIM][3]; /* m/s  [axis][component] */
} gift;

/* The axes, velocity, affine part and stress of a group. `mass` is zero in idle lanes. */
static void make_gift(const sk_mpm_giving *giving, const sk_lane_place *place, const sk_point_rows *rows,
                      const sk_point_rows *sources, fl mass, const fl push[SK_SYMMETRIC], gift *to)
{
    sk_lane_records records;
    sk_mpm_axis axes[SELKIE_DIM];
    fl affine[SK_MPM_MATRIX];
    sk_load_records(giving->points.records, rows, &records);
    sk_load_matrices(giving->points.now.affine, sources, affine);
    sk_mpm_axes(place, records.column, axes);
    sk_mpm_cross(axes, to->cross);
    for (int n = 0; n < 3; n++) {
        to->x[n] = mass * axes[0].weight[n];
        to->y[n] = axes[1].weight[n];
        to->z[n] = axes[SELKIE_DIM - 1].weight[n];
    }

    /* Nodes before and behind get the rise of stress and the moment of the affine part, those at the cell the rest. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fl low = giving->cell_size * axes[d].moment[0], high = giving->cell_size * axes[d].moment[1];
        for (int c = 0; c < SELKIE_DIM; c++) {
            const fl slope = affine[SELKIE_DIM * c + d], against = -push[sk_entry(c, d)];
            fl *level = to->level[d][c];
            level[0] = fl_multiply_add(axes[d].rise[0], against, low * slope);
            level[2] = fl_multiply_add(axes[d].rise[1], against, high * slope);
            if (d == 0) {
                level[0] *= mass;
                level[2] *= mass;
            }
            level[1] = -(level[0] + level[2]);
        }
    }

    /* Velocity goes with the last axis. */
    for (int c = 0; c < SELKIE_DIM; c++)
        for (int n = 0; n < 3; n++) {
            fl *level = &to->level[SELKIE_DIM - 1][c][n];
            *level = fl_multiply_add(axes[SELKIE_DIM - 1].weight[n], records.column[3 + c], *level);
        }
}

/* Momentum of component c that groups give to the nodes at level k of z, a sum in each lane. */
SK_LANES_INLINE void add_level(const gift *gifts, int count, int c, int k, fl sum[9])
{
    fl total[9];
    for (int n = 0; n < 9; n++)
        total[n] = fl_splat(0.0f);
    for (const gift *g = gifts; g < gifts + count; g++) {
        const fl *x = g->level[0][c], *y = g->level[1][c], *z = g->level[SELKIE_DIM - 1][c];
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            const fl row = SELKIE_DIM == 3 ? fl_multiply_add(g->y[j], z[k], g->z[k] * y[j]) : y[j];
            const fl cross = g->cross[3 * k + j];
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++)
                total[3 * j + i] = fl_multiply_add(g->x[i], row, fl_multiply_add(cross, x[i], total[3 * j + i]));
        }
    }
    for (int n = 0; n < 9; n++)
        sum[n] = total[n];
}

SK_LANES_INLINE void add_mass(const gift *gifts, int count, int k, fl sum[9])
{
    fl total[9];
    for (int n = 0; n < 9; n++)
        total[n] = fl_splat(0.0f);
    for (const gift *g = gifts; g < gifts + count; g++)
#pragma GCC unroll 9
        for (int n = 0; n < 9; n++)
            total[n] = fl_multiply_add(g->x[n % 3], g->cross[3 * k + n / 3], total[n]);
    for (int n = 0; n < 9; n++)
        sum[n] = total[n];
}

/* Adds groups of a cell to its nodes. */
static void add_gifts(const gift *gifts, int count, float (*first)[4])
{
    for (int k = 0; k < ROWS / 3; k++) {
        fl sum[4][9];
        for (int c = 0; c < SELKIE_DIM; c++)
            add_level(gifts, count, c, k, sum[c]);
        if (SELKIE_DIM == 2)
            memset(sum[2], 0, sizeof sum[2]);
        add_mass(gifts, count, k, sum[3]);
        for (int n = 0; n < 9; n++) {
            f4 *node = (f4 *)(void *)first[sk_mpm_row_start(3 * k + n / 3) + n % 3];
            *node += sk_lane_sums(sum[0][n], sum[1][n], sum[2][n], sum[3][n]);
        }
    }
}

/* Points from `begin` to `end` of a cell, at most MOST_LAWS. */
static void give_points(give_frame *frame, const sk_lane_place *place, uint32_t begin, uint32_t end, float (*first)[4])
{
    const sk_mpm_giving *giving = frame->giving;
    gift gifts[MOST_GROUPS];
    int count = 0;
    SK_DIM(sk_mpm_laws)(giving, begin, end, &frame->sums, frame->laws);
    for (uint32_t p = begin; p < end; p += SK_LANES) {
        const sk_point_rows rows = sk_point_rows_of(p, end), sources = sk_mpm_sources(&giving->points, &rows);
        fl push[SK_SYMMETRIC];
        sk_mpm_fetch(&giving->points, giving->points.now.affine, p);
        const fl mass = sk_mpm_load_push(frame->laws, begin, &rows, push);
        make_gift(giving, place, &rows, &sources, mass, push, &gifts[count++]);
        if (count < MOST_GROUPS && p + SK_LANES < end)
            continue;
        add_gifts(gifts, count, first);
        count = 0;
    }
}

static void give_cell(give_frame *frame, int cell, float (*first)[4])
{
    const uint32_t *start = frame->start + cell;
    const sk_lane_place place = sk_place_lanes(frame->giving->grid, frame->block, cell, 0);
    for (uint32_t p = start[0]; p < start[1]; p += MOST_LAWS)
        give_points(frame, &place, p, start[1] - p < MOST_LAWS ? start[1] : p + MOST_LAWS, first);
}

/* --- Lanes of neighbouring cells --- */

/* Along an axis the nodes before, at and behind a cell are 0, 1 and 2. Their weights add up to 1, and the levels of
 * rises and moments to 0. Sums are taken of 0, of all three, and of 2: no weights of 1 are needed. Node 1 is what is
 * left of the sum; its weight is at least half of it, so that it keeps its digits. */
enum { LOW, ALL, HIGH };

/* What a point of each cell gives to the levels of the axes; `x` and `level[0]` have the factor of mass. */
typedef struct wide_gift {
    fl mass, x[2], y[2], z[2], cross[2][2]; /* weights of 0 and 2; [z][y] */
    fl velocity[SELKIE_DIM];                /* m/s  */
    fl level[SELKIE_DIM][SELKIE_DIM][2];    /* m/s  [axis][component] */
} wide_gift;

static void make_wide_gift(const sk_mpm_giving *giving, const sk_lane_place *place, const sk_point_rows *rows,
                           const sk_point_rows *sources, fl mass, const fl push[SK_SYMMETRIC], wide_gift *to)
{
    enum { LAST = SELKIE_DIM - 1 };
    sk_lane_records records;
    sk_mpm_axis axes[SELKIE_DIM];
    fl affine[SK_MPM_MATRIX];
    sk_load_records(giving->points.records, rows, &records);
    sk_load_matrices(giving->points.now.affine, sources, affine);
    sk_mpm_axes(place, records.column, axes);
    to->mass = mass;
    for (int n = 0; n < 2; n++) {
        to->x[n] = mass * axes[0].weight[2 * n];
        to->y[n] = axes[1].weight[2 * n];
        to->z[n] = axes[LAST].weight[2 * n];
    }
    for (int k = 0; k < 2 && SELKIE_DIM == 3; k++)
        for (int j = 0; j < 2; j++)
            to->cross[k][j] = axes[1].weight[2 * j] * axes[LAST].weight[2 * k];

    /* The rise of stress and the moment of the affine part; velocity goes with the last axis. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fl moment[2] = {giving->cell_size * axes[d].moment[0], giving->cell_size * axes[d].moment[1]};
        for (int c = 0; c < SELKIE_DIM; c++) {
            const fl slope = affine[SELKIE_DIM * c + d], against = -push[sk_entry(c, d)];
            for (int n = 0; n < 2; n++) {
                fl level = fl_multiply_add(axes[d].rise[n], against, moment[n] * slope);
                if (d == 0)
                    level *= mass;
                if (d == LAST)
                    level = fl_multiply_add(axes[d].weight[2 * n], records.column[3 + c], level);
                to->level[d][c][n] = level;
            }
        }
    }
    for (int c = 0; c < SELKIE_DIM; c++)
        to->velocity[c] = records.column[3 + c];
}

/* Momentum of component c at level `k` of z; sum[3 j + i] of x and y. In 2D the level is ALL. */
SK_LANES_INLINE void add_wide_level(const wide_gift *gifts, int count, int c, int k, fl sum[9])
{
    fl total[9];
    for (int n = 0; n < 9; n++)
        total[n] = fl_splat(0.0f);
    for (const wide_gift *g = gifts; g < gifts + count; g++) {
        const fl *x = g->level[0][c], *y = g->level[1][c];
        fl row[3];
        row[ALL] = k == ALL ? g->velocity[c] : g->level[SELKIE_DIM - 1][c][k / 2];
        for (int j = 0; j < 2; j++)
            row[2 * j] = SELKIE_DIM == 2 ? y[j]
                         : k == ALL      ? fl_multiply_add(g->y[j], row[ALL], y[j])
                                         : fl_multiply_add(g->y[j], row[ALL], g->z[k / 2] * y[j]);
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            fl *to = total + 3 * j;
            to[ALL] = fl_multiply_add(g->mass, row[j], to[ALL]);
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++) {
                const fl before = to[2 * i];
                fl across;
                if (k == ALL)
                    across = j == ALL ? before + x[i] : fl_multiply_add(g->y[j / 2], x[i], before);
                else
                    across = fl_multiply_add(j == ALL ? g->z[k / 2] : g->cross[k / 2][j / 2], x[i], before);
                to[2 * i] = fl_multiply_add(g->x[i], row[j], across);
            }
        }
    }
    for (int n = 0; n < 9; n++)
        sum[n] = total[n];
}

SK_LANES_INLINE void add_wide_mass(const wide_gift *gifts, int count, int k, fl sum[9])
{
    const fl one = fl_splat(1.0f);
    fl total[9];
    for (int n = 0; n < 9; n++)
        total[n] = fl_splat(0.0f);
    for (const wide_gift *g = gifts; g < gifts + count; g++) {
        const fl across[3] = {k == ALL ? g->y[0] : g->cross[k / 2][0], k == ALL ? one : g->z[k / 2],
                              k == ALL ? g->y[1] : g->cross[k / 2][1]};
#pragma GCC unroll 9
        for (int n = 0; n < 9; n++)
            total[n] = fl_multiply_add(n % 3 == ALL ? g->mass : g->x[n % 3 / 2], across[n / 3], total[n]);
    }
    for (int n = 0; n < 9; n++)
        sum[n] = total[n];
}

/* Momentum and mass of a block's nodes by component. */
typedef struct wide_tile {
    float component[4][SK_MPM_TILE];
    int any;
} wide_tile;

/* Adds sums over points of neighbouring cells to their nodes. Nodes of a row overlap: those of other rows come between.
 */
static void add_wide_sums(fl (*sum)[9], int c, int first, wide_tile *tile)
{
    enum { LEVELS = ROWS / 3 };
    for (int k = 0; k < LEVELS; k++)
        for (int j = 0; j < 3; j++)
            sum[k][3 * j + ALL] -= sum[k][3 * j + LOW] + sum[k][3 * j + HIGH];
    for (int k = 0; k < LEVELS; k++)
        for (int i = 0; i < 3; i++)
            sum[k][3 + i] -= sum[k][i] + sum[k][6 + i];
    for (int n = 0; n < 9 && SELKIE_DIM == 3; n++)
        sum[LEVELS / 2][n] -= sum[0][n] + sum[LEVELS - 1][n];
    float *nodes = tile->component[c == SELKIE_DIM ? 3 : c] + first;
    for (int i = 0; i < 3; i++)
        for (int row = 0; row < ROWS; row++) {
            float *to = nodes + sk_mpm_row_start(row) + i;
            fl_store(to, fl_load(to) + sum[row / 3][3 * (row % 3) + i]);
        }
}

static void add_wide_gifts(const wide_gift *gifts, int count, int first, wide_tile *tile)
{
    for (int c = 0; c <= SELKIE_DIM; c++) {
        fl sum[ROWS / 3][9];
        for (int k = 0; k < ROWS / 3; k++) {
            const int level = SELKIE_DIM == 2 ? ALL : k;
            if (c == SELKIE_DIM)
                add_wide_mass(gifts, count, level, sum[k]);
            else
                add_wide_level(gifts, count, c, level, sum[k]);
        }
        add_wide_sums(sum, c, first, tile);
    }
    tile->any = 1;
}

/* Cells that are lanes, and what their points give. */
typedef struct wide_giving {
    give_frame *frame;
    wide_tile *tile;
    const uint32_t *start;
    sk_lane_place place;
    int first, count; /* node, gifts */
    wide_gift gifts[MOST_WIDE];
} wide_giving;

/* Fetches what the transfer needs of points while their laws are computed. */
static void fetch_points(const sk_mpm_points *points, uint32_t begin, uint32_t end)
{
    for (uint32_t p = begin; p < end; p++) {
        __builtin_prefetch(points->now.affine + sk_mpm_row(points, p) * SK_MPM_MATRIX);
        if (p % 2 == 0) /* two a cache line */
            __builtin_prefetch(points->records + p);
    }
}

/* Points n from `begin` to `end` of each cell. */
SK_LANES_INLINE void give_wide(wide_giving *wide, uint32_t begin, uint32_t end, sk_lane_kind kind)
{
    const sk_mpm_giving *giving = wide->frame->giving;
    for (uint32_t n = begin; n < end; n++) {
        const sk_point_rows rows = sk_point_rows_across(wide->start, n, kind);
        const sk_point_rows sources = sk_mpm_sources(&giving->points, &rows);
        fl push[SK_SYMMETRIC];
        const fl mass = sk_mpm_load_push(wide->frame->laws, wide->start[0], &rows, push);
        make_wide_gift(giving, &wide->place, &rows, &sources, mass, push, &wide->gifts[wide->count++]);
        if (wide->count < MOST_WIDE)
            continue;
        add_wide_gifts(wide->gifts, wide->count, wide->first, wide->tile);
        wide->count = 0;
    }
}

static void give_cells(give_frame *frame, int cell, const sk_mpm_wide *lanes, wide_tile *tile)
{
    wide_giving wide;
    wide.frame = frame;
    wide.tile = tile;
    wide.start = frame->start + cell;
    wide.first = sk_mpm_first_node(cell);
    wide.count = 0;
    wide.place = sk_place_lanes(frame->giving->grid, frame->block, cell, 1);
    fetch_points(&frame->giving->points, wide.start[0], wide.start[SK_LANES]);
    SK_DIM(sk_mpm_laws)(frame->giving, wide.start[0], wide.start[SK_LANES], &frame->sums, frame->laws);
    give_wide(&wide, 0, lanes->least, SK_LANES_FULL);
    give_wide(&wide, lanes->least, lanes->most, SK_LANES_PART);
    if (wide.count)
        add_wide_gifts(wide.gifts, wide.count, wide.first, tile);
}

/* --- Blocks --- */

/* Adds a tile by component to the one of the block. */
static void add_wide_tile(const wide_tile *from, float (*tile)[4])
{
    for (int n = 0; n < SK_MPM_TILE; n += 4) {
        f4 part[4];
        for (int c = 0; c < 4; c++)
            part[c] = f4_load(from->component[c] + n);
        sk_transpose(part);
        for (int l = 0; l < 4; l++)
            f4_store(tile[n + l], f4_load(tile[n + l]) + part[l]);
    }
}

static void give_block(const sk_mpm_giving *giving, int block)
{
    float(*tile)[4] = giving->mpm->tiles + (size_t)(block - 1) * SK_MPM_TILE;
    give_frame frame;
    wide_tile wide;
    frame.giving = giving;
    frame.block = block;
    frame.start = giving->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    frame.sums = (sk_mpm_law_sums){0};
    memset(tile, 0, SK_MPM_TILE * sizeof *tile);
    memset(&wide, 0, sizeof wide);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell += SK_LANES) {
        const uint32_t *start = frame.start + cell;
        sk_mpm_wide lanes;
        if (start[0] == start[SK_LANES])
            continue;
        if (sk_mpm_is_wide(start, WIDE_COST, &lanes) && start[SK_LANES] - start[0] <= MOST_LAWS) {
            give_cells(&frame, cell, &lanes, &wide);
            continue;
        }
        for (int c = 0; c < SK_LANES; c++)
            if (start[c] < start[c + 1])
                give_cell(&frame, cell + c, tile + sk_mpm_first_node(cell + c));
    }
    if (wide.any)
        add_wide_tile(&wide, tile);
    giving->sums[block] = frame.sums;
}

selkie_code SK_DIM(sk_mpm_to_grid)(sk_step *step, selkie_error *error)
{
    sk_mpm_giving giving;
    SK_TRY(sk_mpm_begin_giving(step, &giving, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        give_block(&giving, block);
    sk_mpm_end_giving(step, &giving);
    return SELKIE_OK;
}

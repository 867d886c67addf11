/* The transfers of mpm, tuned: four points of a cell are lanes, or eight where registers hold as many, and all points
 * of a cell share their nodes.
 *
 * Sums over the 3^dimension nodes of a point are taken along one axis after the other. Along an axis the nodes give a
 * value, its rise and its moment; the first two axes then need three values each and not nine:
 *
 *   nodes --(weights along x)--> rows --(along y)--> levels of z: value, rise and moment along z
 *                                  \---(along z)--> levels of y: rise and moment along y
 *   nodes --(weights across x)--> levels of x: rise and moment along x
 *
 * Points to nodes is the transpose of nodes to points.
 */
#include "base/simd.h"

#if defined(__AVX2__) && !defined(SK_LANES_COUNT)
#define SK_LANES_COUNT 8
#endif
#include "methods/elastoplastic/mpm_law.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = SK_MPM_NODES / 3 }; /* of three nodes along x */

/* First node of a row in the tile, counted from the cell's first. */
INLINE int row_start(int row)
{
    return SK_MPM_TILE_N * (row % 3) + SK_MPM_TILE_N * SK_MPM_TILE_N * (row / 3);
}

/* --- Points to nodes --- */

enum { MOST_GROUPS = 32 / SK_LANES }; /* of a cell, added at once */

/* What a group gives to the levels of the axes, by component; `x` and `level[0]` have the factor of mass. */
typedef struct gift {
    fl x[3], y[3], z[3], cross[ROWS];
    fl level[SELKIE_DIM][SELKIE_DIM][3]; /* m/s  [axis][component] */
} gift;

/* The axes, velocity, affine part and stress of a group. `mass` is zero in idle lanes. */
static void make_gift(const sk_mpm_giving *giving, const float centre[3], const sk_point_rows *rows,
                      const sk_point_rows *sources, fl mass, const fl push[SK_SYMMETRIC], gift *to)
{
    sk_lane_records records;
    sk_mpm_axis axes[SELKIE_DIM];
    fl affine[SK_MPM_MATRIX];
    sk_load_records(giving->points.records, rows, &records);
    sk_load_matrices(giving->points.now.affine, sources, affine);
    sk_mpm_axes(giving->grid, centre, records.column, axes);
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
INLINE void add_level(const gift *gifts, int count, int c, int k, fl sum[9])
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

INLINE void add_mass(const gift *gifts, int count, int k, fl sum[9])
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
            f4 *node = (f4 *)(void *)first[row_start(3 * k + n / 3) + n % 3];
            *node += sk_lane_sums(sum[0][n], sum[1][n], sum[2][n], sum[3][n]);
        }
    }
}

static void give_cell(const sk_mpm_giving *giving, const float centre[3], uint32_t begin, uint32_t end,
                      sk_mpm_lane_sums *sums, float (*first)[4])
{
    gift gifts[MOST_GROUPS];
    int count = 0;
    for (uint32_t p = begin; p < end; p += SK_LANES) {
        const sk_point_rows rows = sk_point_rows_of(p, end), sources = sk_mpm_sources(&giving->points, &rows);
        fl push[SK_SYMMETRIC], mass;
        sk_mpm_fetch(&giving->points, giving->points.now.deformation, p);
        sk_mpm_fetch(&giving->points, giving->points.now.affine, p);
        sk_mpm_group_law(giving, &rows, &sources, sums, push, &mass);
        make_gift(giving, centre, &rows, &sources, mass, push, &gifts[count++]);
        if (count < MOST_GROUPS && p + SK_LANES < end)
            continue;
        add_gifts(gifts, count, first);
        count = 0;
    }
}

static void give_block(const sk_mpm_giving *giving, int block)
{
    const uint32_t *start = giving->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    float(*tile)[4] = giving->mpm->tiles + (size_t)(block - 1) * SK_MPM_TILE;
    sk_mpm_lane_sums sums = {0};
    memset(tile, 0, SK_MPM_TILE * sizeof *tile);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell++) {
        float centre[3];
        if (start[cell] == start[cell + 1])
            continue;
        sk_mpm_centre(giving->grid, block, cell, centre);
        give_cell(giving, centre, start[cell], start[cell + 1], &sums, tile + sk_mpm_first_node(cell));
    }
    giving->sums[block] = sk_mpm_total_sums(&sums);
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

/* --- Nodes to points --- */

/* Velocities of a tile by component. The last row may be read beyond its end. */
typedef struct velocity_tile {
    float component[SELKIE_DIM][SK_MPM_TILE + 4];
} velocity_tile;

/* Copies the nodes of a block and its halo. */
static void copy_nodes(const sk_mpm_taking *taking, int block, f4 *tile)
{
    for (int tz = 0; tz < SK_MPM_TILE_NZ; tz++)
        for (int ty = 0; ty < SK_MPM_TILE_N; ty++) {
            const int y = ty - 1, z = SELKIE_DIM == 3 ? tz - 1 : 0;
            const int by = y < 0 ? 0 : y < SK_BLOCK_N ? 1 : 2, bz = z < 0 ? 0 : z < SK_BLOCK_N ? 1 : 2;
            const int beside = 3 * by + (SELKIE_DIM == 3 ? 9 * bz : 0);
            const int row = SK_BLOCK_N * ((y & SK_BLOCK_MASK) + SK_BLOCK_N * (z & SK_BLOCK_MASK));
            f4 *to = tile + SK_MPM_TILE_N * (ty + SK_MPM_TILE_N * tz);
            for (int bx = 0; bx < 3; bx++) {
                const int slot = taking->grid->neighbours[block][bx + beside];
                const float(*from)[4] =
                    (const float(*)[4])(taking->mpm->nodes + (size_t)slot * SK_BLOCK_CELLS + (size_t)row);
                const int first = bx == 0 ? SK_BLOCK_N - 1 : 0, count = bx == 1 ? SK_BLOCK_N : 1;
                memcpy(to, from + first, (size_t)count * sizeof *to);
                to += count;
            }
        }
}

static void load_tile(const sk_mpm_taking *taking, int block, velocity_tile *tile)
{
    f4 nodes[SK_MPM_TILE];
    copy_nodes(taking, block, nodes);
    for (int n = 0; n < SK_MPM_TILE; n += 4) {
        sk_transpose(nodes + n);
        for (int c = 0; c < SELKIE_DIM; c++)
            f4_store(tile->component[c] + n, nodes[n + c]);
    }
    for (int c = 0; c < SELKIE_DIM; c++)
        f4_store(tile->component[c] + SK_MPM_TILE, (f4){0.0f, 0.0f, 0.0f, 0.0f});
}

/* Rise and moment along an axis, from the values of its three levels. */
INLINE void take_along(const sk_mpm_axis *axis, const fl level[3], fl *rise, fl *moment)
{
    const fl low = level[0] - level[1], high = level[2] - level[1];
    *rise = fl_multiply_add(axis->rise[1], high, axis->rise[0] * low);
    *moment = fl_multiply_add(axis->moment[1], high, axis->moment[0] * low);
}

INLINE fl weigh(const fl weight[3], const fl level[3])
{
    return fl_multiply_add(weight[2], level[2], fl_multiply_add(weight[1], level[1], weight[0] * level[0]));
}

/* A component of velocity (m/s), and its gradient and affine slope in the units of the axes' rises and moments. */
INLINE fl take(const float *first, const sk_mpm_axis axes[SELKIE_DIM], const fl cross[ROWS], fl gradient[SELKIE_DIM],
               fl slope[SELKIE_DIM])
{
    const fl zero = fl_splat(0.0f);
    fl level[3][3] = {{zero, zero, zero}, {zero, zero, zero}, {zero, zero, zero}}; /* [axis] */
#pragma GCC unroll 9
    for (int row = 0; row < ROWS; row++) {
        const int j = row % 3, k = row / 3;
        const f4 nodes = f4_load(first + row_start(row));
        const fl node[3] = {fl_splat(nodes[0]), fl_splat(nodes[1]), fl_splat(nodes[2])};
        for (int i = 0; i < 3; i++)
            level[0][i] = fl_multiply_add(cross[row], node[i], level[0][i]);
        const fl sum = weigh(axes[0].weight, node);
        if (SELKIE_DIM == 2) {
            level[1][j] = sum;
            continue;
        }
        level[1][j] = fl_multiply_add(axes[SELKIE_DIM - 1].weight[k], sum, level[1][j]);
        level[2][k] = fl_multiply_add(axes[1].weight[j], sum, level[2][k]);
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        take_along(&axes[d], level[d], &gradient[d], &slope[d]);
    return weigh(axes[SELKIE_DIM - 1].weight, level[SELKIE_DIM - 1]);
}

/* sk_mpm_deform. `gradient` has no unit. */
INLINE void deform(const fl gradient[SK_MPM_MATRIX], fl deformation[SK_MPM_MATRIX])
{
    fl next[SK_MPM_MATRIX];
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            fl sum = gradient[SELKIE_DIM * i + j];
            for (int k = 0; k < SELKIE_DIM; k++)
                sum = fl_multiply_add(gradient[SELKIE_DIM * i + k], deformation[SELKIE_DIM * k + j], sum);
            next[SELKIE_DIM * i + j] = deformation[SELKIE_DIM * i + j] + sum;
        }
    for (int n = 0; n < SK_MPM_MATRIX; n++)
        deformation[n] = next[n];
}

/* Velocity, affine part and deformation of a group. `first` is the first node of its cell. */
INLINE void take_group(const sk_mpm_taking *taking, const float centre[3], const velocity_tile *tile, int first,
                       const sk_point_rows *rows, sk_lane_records *records)
{
    const sk_mpm_points *points = &taking->points;
    const float factor = 4.0f * taking->per_cell, time = taking->moving.dt * taking->per_cell;
    sk_mpm_axis axes[SELKIE_DIM];
    fl cross[ROWS], affine[SK_MPM_MATRIX], gradient[SK_MPM_MATRIX], deformation[SK_MPM_MATRIX];
    sk_mpm_axes(taking->grid, centre, records->column, axes);
    sk_mpm_cross(axes, cross);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int n = 0; n < 2; n++) {
            axes[d].rise[n] *= time;
            axes[d].moment[n] *= factor;
        }

        /* A loop: the weights stay in registers for all components. */
#pragma GCC unroll 1
    for (int c = 0; c < SELKIE_DIM; c++)
        records->column[3 + c] =
            take(tile->component[c] + first, axes, cross, gradient + SELKIE_DIM * c, affine + SELKIE_DIM * c);
    sk_store_matrices(points->next.affine, rows, affine);
    const sk_point_rows sources = sk_mpm_sources(points, rows);
    sk_mpm_fetch(points, points->now.deformation, rows->at[0]);
    sk_load_matrices(points->now.deformation, &sources, deformation);
    deform(gradient, deformation);
    sk_store_matrices(points->next.deformation, rows, deformation);
}

static void take_block(const sk_mpm_taking *taking, int block)
{
    const uint32_t *start = taking->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    sk_point_move_sums sums = {0};
    sk_lane_move_sums lane_sums = {0};
    velocity_tile tile;
    load_tile(taking, block, &tile);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell++) {
        float centre[3];
        if (start[cell] == start[cell + 1])
            continue;
        sk_mpm_centre(taking->grid, block, cell, centre);
        for (uint32_t p = start[cell]; p < start[cell + 1]; p += SK_LANES) {
            const sk_point_rows rows = sk_point_rows_of(p, start[cell + 1]);
            sk_lane_records records;
            sk_load_records(taking->points.records, &rows, &records);
            take_group(taking, centre, &tile, sk_mpm_first_node(cell), &rows, &records);
            sk_move_group(&taking->moving, block, &rows, &records, taking->points.records, &lane_sums, &sums);
        }
    }
    sk_add_lane_sums(&lane_sums, &sums);
    taking->moving.sums[block] = sums;
}

selkie_code SK_DIM(sk_mpm_to_points)(sk_step *step, selkie_error *error)
{
    sk_mpm_taking taking;
    SK_TRY(sk_mpm_begin_taking(step, &taking, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        take_block(&taking, block);
    if (taking.points.order)
        sk_lagging_swap(step, &sk_mpm_of(step)->own);
    return sk_end_moving(step, &taking.moving, error);
}

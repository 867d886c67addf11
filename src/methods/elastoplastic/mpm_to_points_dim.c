/* Nodes to points, tuned: four points are lanes, or eight where registers hold as many.
 *
 * Sums over the 3^dimension nodes of a point are taken along one axis after the other. Along an axis the nodes give a
 * value, its rise and its moment; the first two axes then need three values each and not nine:
 *
 *   nodes --(weights along x)--> rows --(along y)--> levels of z: value, rise and moment along z
 *                                  \---(along z)--> levels of y: rise and moment along y
 *   nodes --(weights across x)--> levels of x: rise and moment along x
 *
 * Lanes are points of neighbouring cells along x, one of each, or of one cell (mpm_to_grid_dim.c).
 */
#include "base/simd.h"
#include "methods/elastoplastic/mpm_lanes.h"

enum {
    ROWS = SK_MPM_NODES / 3, /* of three nodes along x */
    WIDE_COST = 10           /* points of several cells lie apart in memory */
};

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
SK_LANES_INLINE void take_along(const sk_mpm_axis *axis, const fl level[3], fl *rise, fl *moment)
{
    const fl low = level[0] - level[1], high = level[2] - level[1];
    *rise = fl_multiply_add(axis->rise[1], high, axis->rise[0] * low);
    *moment = fl_multiply_add(axis->moment[1], high, axis->moment[0] * low);
}

SK_LANES_INLINE fl weigh(const fl weight[3], const fl level[3])
{
    return fl_multiply_add(weight[2], level[2], fl_multiply_add(weight[1], level[1], weight[0] * level[0]));
}

/* --- Lanes of one cell --- */

/* A node in all lanes. AVX loads it there; elsewhere compilers multiply by a lane of the three nodes. */
SK_LANES_INLINE fl spread(const float *node)
{
#if SK_LANES_COUNT == 8 && defined(__AVX__)
    return (fl)_mm256_broadcast_ss(node);
#else
    return fl_splat(*node);
#endif
}

/* A component of velocity (m/s), and its gradient and affine slope in the units of the axes' rises and moments. */
SK_LANES_INLINE fl take(const float *first, const sk_mpm_axis axes[SELKIE_DIM], const fl cross[ROWS],
                        fl gradient[SELKIE_DIM], fl slope[SELKIE_DIM])
{
    const fl zero = fl_splat(0.0f);
    fl level[3][3] = {{zero, zero, zero}, {zero, zero, zero}, {zero, zero, zero}}; /* [axis] */
#pragma GCC unroll 9
    for (int row = 0; row < ROWS; row++) {
        const int j = row % 3, k = row / 3;
        const float *from = first + sk_mpm_row_start(row);
        const fl node[3] = {spread(from), spread(from + 1), spread(from + 2)};
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
SK_LANES_INLINE void deform(const fl gradient[SK_MPM_MATRIX], fl deformation[SK_MPM_MATRIX])
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

/* --- Lanes of neighbouring cells --- */

/* A component of the nodes of neighbouring cells, by differences: along each axis node 0 less node 1, node 1, and node
 * 2 less node 1. Weights add up to 1, and rises and moments to 0. */
typedef fl wide_nodes[SK_MPM_NODES];

static void load_wide_nodes(const float *first, fl *nodes)
{
    for (int row = 0; row < ROWS; row++) {
        const float *from = first + sk_mpm_row_start(row);
        const fl middle = fl_load(from + 1);
        nodes[3 * row] = fl_load(from) - middle;
        nodes[3 * row + 1] = middle;
        nodes[3 * row + 2] = fl_load(from + 2) - middle;
    }
    for (int k = 0; k < ROWS / 3; k++)
        for (int i = 0; i < 3; i++) {
            nodes[9 * k + i] -= nodes[9 * k + 3 + i];
            nodes[9 * k + 6 + i] -= nodes[9 * k + 3 + i];
        }
    for (int n = 0; n < 9 && SELKIE_DIM == 3; n++) {
        nodes[n] -= nodes[9 + n];
        nodes[SK_MPM_NODES - 9 + n] -= nodes[9 + n];
    }
}

/* The sum over an axis of nodes at `stride`. */
SK_LANES_INLINE fl weigh_wide(const sk_mpm_axis *axis, const fl *nodes, int stride)
{
    return fl_multiply_add(axis->weight[2], nodes[2 * stride],
                           fl_multiply_add(axis->weight[0], nodes[0], nodes[stride]));
}

SK_LANES_INLINE void take_wide_along(const sk_mpm_axis *axis, fl low, fl high, fl *rise, fl *moment)
{
    *rise = fl_multiply_add(axis->rise[1], high, axis->rise[0] * low);
    *moment = fl_multiply_add(axis->moment[1], high, axis->moment[0] * low);
}

/* `take` of points of neighbouring cells. */
SK_LANES_INLINE fl take_wide(const fl *nodes, const sk_mpm_axis axes[SELKIE_DIM], fl gradient[SELKIE_DIM],
                             fl slope[SELKIE_DIM])
{
    const sk_mpm_axis *last = &axes[SELKIE_DIM - 1];
    fl plane[9], along[3];
#pragma GCC unroll 9
    for (int n = 0; n < 9; n++)
        plane[n] = SELKIE_DIM == 3 ? weigh_wide(last, nodes + n, 9) : nodes[n];
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        along[i] = weigh_wide(&axes[1], plane + i, 3);
    take_wide_along(&axes[0], along[0], along[2], &gradient[0], &slope[0]);
    take_wide_along(&axes[1], weigh_wide(&axes[0], plane, 1), weigh_wide(&axes[0], plane + 6, 1), &gradient[1],
                    &slope[1]);
    if (SELKIE_DIM == 3) {
        fl level[2];
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const fl *from = nodes + (SK_MPM_NODES - 9) * k;
            fl row[3];
            for (int i = 0; i < 3; i++)
                row[i] = weigh_wide(&axes[1], from + i, 3);
            level[k] = weigh_wide(&axes[0], row, 1);
        }
        take_wide_along(last, level[0], level[1], &gradient[SELKIE_DIM - 1], &slope[SELKIE_DIM - 1]);
    }
    return weigh_wide(&axes[0], along, 1);
}

/* --- Groups --- */

/* The splines of a group, with the factors of gradients and of affine slopes. */
SK_LANES_INLINE void take_axes(const sk_mpm_taking *taking, const sk_lane_place *place, const fl *position,
                               sk_mpm_axis axes[SELKIE_DIM])
{
    const float factor = 4.0f * taking->per_cell, time = taking->moving.dt * taking->per_cell;
    sk_mpm_axes(place, position, axes);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int n = 0; n < 2; n++) {
            axes[d].rise[n] *= time;
            axes[d].moment[n] *= factor;
        }
}

/* Affine part and deformation of a group. */
SK_LANES_INLINE void store_group(const sk_mpm_points *points, const sk_point_rows *rows, sk_lane_kind kind,
                                 const fl *gradient, const fl *affine)
{
    fl deformation[SK_MPM_MATRIX];
    sk_store_matrices(points->next.affine, rows, kind, affine);
    const sk_point_rows sources = sk_mpm_sources(points, rows);
    sk_load_matrices(points->now.deformation, &sources, deformation);
    deform(gradient, deformation);
    sk_store_matrices(points->next.deformation, rows, kind, deformation);
}

/* What the groups of a block share. */
typedef struct take_frame {
    const sk_mpm_taking *taking;
    int block;
    sk_point_move_sums sums;
    sk_lane_move_sums lane_sums;
    velocity_tile tile;
} take_frame;

static void take_cell(take_frame *frame, int cell)
{
    const sk_mpm_taking *taking = frame->taking;
    const uint32_t *start = taking->grid->cell_start + (size_t)(frame->block - 1) * SK_BLOCK_CELLS + cell;
    const int first = sk_mpm_first_node(cell);
    sk_lane_move_sums sums = frame->lane_sums;
    const sk_lane_place place = sk_place_lanes(taking->grid, frame->block, cell, 0);
    const sk_lane_homes home = {&place, sk_lane_numbers() * 0 + cell};
    for (uint32_t p = start[0]; p < start[1]; p += SK_LANES) {
        const sk_point_rows rows = sk_point_rows_of(p, start[1]);
        fl cross[ROWS], affine[SK_MPM_MATRIX], gradient[SK_MPM_MATRIX];
        sk_mpm_axis axes[SELKIE_DIM];
        sk_lane_records records;
        sk_load_records(taking->points.records, &rows, &records);
        take_axes(taking, &place, records.column, axes);
        sk_mpm_cross(axes, cross);
        sk_mpm_fetch(&taking->points, taking->points.now.deformation, rows.at[0]);

        /* A loop: the weights stay in registers for all components. */
#pragma GCC unroll 1
        for (int c = 0; c < SELKIE_DIM; c++)
            records.column[3 + c] =
                take(frame->tile.component[c] + first, axes, cross, gradient + SELKIE_DIM * c, affine + SELKIE_DIM * c);
        store_group(&taking->points, &rows, SK_LANES_ADJOIN, gradient, affine);
        sk_move_group(&taking->moving, frame->block, &rows, SK_LANES_ADJOIN, &home, &records, taking->points.records,
                      &sums, &frame->sums);
    }
    frame->lane_sums = sums;
}

/* Point n of each of the cells from `cell` on. */
SK_LANES_INLINE void take_wide_group(take_frame *frame, const wide_nodes *nodes, const sk_lane_place *place, int cell,
                                     uint32_t n, sk_lane_kind kind, sk_lane_move_sums *sums)
{
    const sk_mpm_taking *taking = frame->taking;
    const uint32_t *start = taking->grid->cell_start + (size_t)(frame->block - 1) * SK_BLOCK_CELLS + cell;
    const sk_point_rows rows = sk_point_rows_across(start, n, kind);
    fl affine[SK_MPM_MATRIX], gradient[SK_MPM_MATRIX];
    sk_mpm_axis axes[SELKIE_DIM];
    sk_lane_records records;
    sk_load_records(taking->points.records, &rows, &records);
    take_axes(taking, place, records.column, axes);
#pragma GCC unroll 1
    for (int c = 0; c < SELKIE_DIM; c++)
        records.column[3 + c] = take_wide(nodes[c], axes, gradient + SELKIE_DIM * c, affine + SELKIE_DIM * c);
    store_group(&taking->points, &rows, kind, gradient, affine);
    const sk_lane_homes home = {place, sk_lane_numbers() + cell};
    sk_move_group(&taking->moving, frame->block, &rows, kind, &home, &records, taking->points.records, sums,
                  &frame->sums);
}

static void take_cells(take_frame *frame, int cell, const sk_mpm_wide *lanes)
{
    wide_nodes nodes[SELKIE_DIM];
    sk_lane_move_sums sums = frame->lane_sums;
    const sk_lane_place place = sk_place_lanes(frame->taking->grid, frame->block, cell, 1);
    for (int c = 0; c < SELKIE_DIM; c++)
        load_wide_nodes(frame->tile.component[c] + sk_mpm_first_node(cell), nodes[c]);
    for (uint32_t n = 0; n < lanes->least; n++)
        take_wide_group(frame, (const wide_nodes *)nodes, &place, cell, n, SK_LANES_FULL, &sums);
    for (uint32_t n = lanes->least; n < lanes->most; n++)
        take_wide_group(frame, (const wide_nodes *)nodes, &place, cell, n, SK_LANES_PART, &sums);
    frame->lane_sums = sums;
}

static void take_block(const sk_mpm_taking *taking, sk_step *step, int block)
{
    const uint32_t *start = taking->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    take_frame frame = {.taking = taking, .block = block};
    load_tile(taking, block, &frame.tile);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell += SK_LANES) {
        sk_mpm_wide lanes;
        if (start[cell] == start[cell + SK_LANES])
            continue;
        if (sk_mpm_is_wide(start + cell, WIDE_COST, &lanes)) {
            take_cells(&frame, cell, &lanes);
            continue;
        }
        for (int c = cell; c < cell + SK_LANES; c++)
            if (start[c] < start[c + 1])
                take_cell(&frame, c);
    }
    sk_add_lane_sums(&frame.lane_sums, &frame.sums);
    taking->moving.sums[block] = frame.sums;
    if (taking->moving.lists)
        sk_list_leavers(step, &taking->moving, block);
}

selkie_code SK_DIM(sk_mpm_to_points)(sk_step *step, selkie_error *error)
{
    sk_mpm_taking taking;
    SK_TRY(sk_mpm_begin_taking(step, &taking, error));
    if (step->scene->discretization == SELKIE_DISCRETIZATION_MPM)
        SK_TRY(sk_begin_lists(step, &taking.moving, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        take_block(&taking, step, block);
    if (taking.points.order)
        sk_lagging_swap(step, &sk_mpm_of(step)->own);
    return sk_end_moving(step, &taking.moving, error);
}

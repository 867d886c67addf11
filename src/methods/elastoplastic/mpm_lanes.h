/* Matrices and splines of points of one cell as lanes. For files compiled per dimension. */
#ifndef SK_METHODS_MPM_LANES_H
#define SK_METHODS_MPM_LANES_H

/* As wide as a register. */
#if defined(__AVX2__) && !defined(SK_LANES_COUNT)
#define SK_LANES_COUNT 8
#endif

#include "methods/elastoplastic/mpm_frame.h"
#include "methods/elastoplastic/point_lanes.h"

/* Rows of the attributes of the points in the rows `rows`. */
SK_LANES_INLINE sk_point_rows sk_mpm_sources(const sk_mpm_points *points, const sk_point_rows *rows)
{
    sk_point_rows sources = *rows;
    for (int l = 0; points->order && l < SK_LANES; l++)
        sources.at[l] = points->order[rows->at[l]];
    return sources;
}

/* Fetches attributes of points that come some groups later. Their rows jump, so the hardware does not foresee them. The
 * order has as many entries beyond the last. */
SK_LANES_INLINE void sk_mpm_fetch(const sk_mpm_points *points, const float *matrices, size_t p)
{
    enum { AHEAD = SK_LAGGING_BEYOND };
    if (points->order)
        for (size_t l = 0; l < SK_LANES; l++)
            __builtin_prefetch(matrices + (size_t)points->order[p + AHEAD - SK_LANES + l] * SK_MPM_MATRIX);
}

/* Cells that follow each other along x, as lanes. */
typedef struct sk_mpm_wide {
    uint32_t least, most; /* points of a cell */
} sk_mpm_wide;

/* Are groups across SK_LANES cells faster than groups in each of them? start[] of the cells; `cost` is that of a group
 * across cells over that of a group in one, times 8. */
SK_LANES_INLINE int sk_mpm_is_wide(const uint32_t *start, uint32_t cost, sk_mpm_wide *wide)
{
    uint32_t apart = 0;
    *wide = (sk_mpm_wide){UINT32_MAX, 0};
    for (int l = 0; l < SK_LANES; l++) {
        const uint32_t count = start[l + 1] - start[l];
        apart += (count + SK_LANES - 1) / SK_LANES;
        wide->most = count > wide->most ? count : wide->most;
        wide->least = count < wide->least ? count : wide->least;
    }
    return cost * wide->most <= 8 * apart;
}

/* First node of a row in the tile, counted from the cell's first. */
SK_LANES_INLINE int sk_mpm_row_start(int row)
{
    return SK_MPM_TILE_N * (row % 3) + SK_MPM_TILE_N * SK_MPM_TILE_N * (row / 3);
}

/* --- Laws --- */

/* What transfers need of a point's law: `push` of sk_mpm_gift, symmetric (3D: two numbers more), and mass at the end.
 */
enum { SK_MPM_PUSH = SELKIE_DIM == 3 ? 8 : 4 };

/* Plastic flow and stress of the points from `begin` to `end` (mpm_law_dim.c). push[] is of the first. */
void SK_DIM(sk_mpm_laws)(const sk_mpm_giving *giving, uint32_t begin, uint32_t end, sk_mpm_law_sums *sums,
                         float (*push)[SK_MPM_PUSH]);

/* Push and mass of a group from the rows of its points, which count from `begin`. Idle lanes have no mass. */
SK_LANES_INLINE fl sk_mpm_load_push(float (*push)[SK_MPM_PUSH], uint32_t begin, const sk_point_rows *rows,
                                    fl to[SK_SYMMETRIC])
{
    sk_point_rows own = *rows;
    fl column[SK_MPM_PUSH];
    for (int l = 0; l < SK_LANES; l++)
        own.at[l] -= begin;
    for (int n = 0; n < SK_MPM_PUSH; n += 4)
        sk_load_columns(push[0], SK_MPM_PUSH, n, &own, column + n);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        to[n] = column[n];
    return sk_choose(rows->busy, column[SK_MPM_PUSH - 1], fl_splat(0.0f));
}

/* --- Matrices --- */

/* Matrices of the points, row-major. */
SK_LANES_INLINE void sk_load_matrices(const float *from, const sk_point_rows *rows, fl matrix[SK_MPM_MATRIX])
{
    for (int n = 0; n + 4 <= SK_MPM_MATRIX; n += 4)
        sk_load_columns(from, SK_MPM_MATRIX, n, rows, matrix + n);
    if (SELKIE_DIM == 3 && SK_LANES == 16) {
        fl last[4]; /* a fourth column costs less than numbers one by one */
        sk_load_columns(from, SK_MPM_MATRIX, SK_MPM_MATRIX - 4, rows, last);
        matrix[SK_MPM_MATRIX - 1] = last[3];
    } else if (SELKIE_DIM == 3)
        matrix[SK_MPM_MATRIX - 1] = sk_load_column(from, SK_MPM_MATRIX, SK_MPM_MATRIX - 1, rows);
}

SK_LANES_INLINE void sk_store_matrices(float *to, const sk_point_rows *rows, sk_lane_kind kind,
                                       const fl matrix[SK_MPM_MATRIX])
{
    for (int n = 0; n + 4 <= SK_MPM_MATRIX; n += 4)
        sk_store_columns(to, SK_MPM_MATRIX, n, rows, kind, matrix + n);
    if (SELKIE_DIM == 3 && SK_LANES == 16)
        sk_store_columns(to, SK_MPM_MATRIX, SK_MPM_MATRIX - 4, rows, kind, matrix + SK_MPM_MATRIX - 4);
    else if (SELKIE_DIM == 3)
        sk_store_column(to, SK_MPM_MATRIX, SK_MPM_MATRIX - 1, rows, kind, matrix[SK_MPM_MATRIX - 1]);
}

/* --- Splines along an axis --- */

/* Values a, b, c of the nodes before, at and behind the cell enter as b and the differences a - b and c - b, since
 * weights add up to 1, and their rises and their moments about the point to 0. */
typedef struct sk_mpm_axis {
    fl weight[3];
    fl rise[2];   /* a cell: of the nodes before and behind */
    fl moment[2]; /* weight times the way from the point to the node, cells */
} sk_mpm_axis;

/* sk_mpm_weights of the points of a cell. */
SK_LANES_INLINE void sk_mpm_axes(const sk_lane_place *place, const fl position[3], sk_mpm_axis axes[SELKIE_DIM])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fl offset = sk_lane_offset(place, d, position[d]);
        const fl below = 0.5f - offset, above = 0.5f + offset;
        sk_mpm_axis *axis = &axes[d];
        axis->weight[0] = 0.5f * below * below;
        axis->weight[1] = 0.75f - offset * offset;
        axis->weight[2] = 0.5f * above * above;
        axis->rise[0] = -below;
        axis->rise[1] = above;
        axis->moment[0] = axis->weight[0] * (-1.0f - offset);
        axis->moment[1] = axis->weight[2] * (1.0f - offset);
    }
}

/* Weights across x: products of those along y and z. */
SK_LANES_INLINE void sk_mpm_cross(const sk_mpm_axis axes[SELKIE_DIM], fl cross[SK_MPM_NODES / 3])
{
    for (int row = 0; row < SK_MPM_NODES / 3; row++)
        cross[row] =
            SELKIE_DIM == 3 ? axes[1].weight[row % 3] * axes[SELKIE_DIM - 1].weight[row / 3] : axes[1].weight[row % 3];
}

#endif

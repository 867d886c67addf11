/* Points of one cell as lanes: their records, matrices and splines. For files compiled per dimension.
 *
 * A group is up to four points of a cell. Idle lanes repeat the last point: what they store is stored there twice.
 */
#ifndef SK_METHODS_MPM_LANES_H
#define SK_METHODS_MPM_LANES_H

#include "methods/elastoplastic/elastic_lanes.h"
#include "methods/elastoplastic/mpm_frame.h"

/* Rows of a group's points in arrays of records or attributes. */
typedef struct sk_mpm_rows {
    int count; /* points, 1 to SK_LANES */
    size_t at[SK_LANES];
} sk_mpm_rows;

SK_LANES_INLINE sk_mpm_rows sk_mpm_rows_of(uint32_t p, uint32_t end)
{
    sk_mpm_rows rows = {.count = end - p < SK_LANES ? (int)(end - p) : SK_LANES};
    for (int l = 0; l < SK_LANES; l++)
        rows.at[l] = p + (size_t)(l < rows.count ? l : rows.count - 1);
    return rows;
}

/* Rows of the attributes of the points in the rows `rows`. */
SK_LANES_INLINE sk_mpm_rows sk_mpm_sources(const sk_mpm_points *points, const sk_mpm_rows *rows)
{
    sk_mpm_rows sources = *rows;
    for (int l = 0; points->order && l < SK_LANES; l++)
        sources.at[l] = points->order[rows->at[l]];
    return sources;
}

/* Fetches attributes of points that come some groups later. Their rows jump, so the hardware does not foresee them. The
 * order has as many entries beyond the last. */
SK_LANES_INLINE void sk_mpm_fetch(const sk_mpm_points *points, const float *matrices, size_t p)
{
    enum { AHEAD = SK_PARTICLES_BEYOND };
    if (points->order)
        for (size_t l = 0; l < SK_LANES; l++)
            __builtin_prefetch(matrices + (size_t)points->order[p + AHEAD - SK_LANES + l] * SK_MPM_MATRIX);
}

/* All ones in the lanes of points. */
SK_LANES_INLINE sk_lane_mask sk_mpm_busy(const sk_mpm_rows *rows)
{
    return (sk_lane_mask){0, 1, 2, 3} < rows->count;
}

/* --- Rows and columns --- */

/* Four rows of four as four columns; its own inverse. */
SK_LANES_INLINE void sk_transpose(f4 r[4])
{
    const f4 a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const f4 c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

/* Columns `first` to `first` + 3 of rows of `width` floats. */
SK_LANES_INLINE void sk_load_columns(const float *from, int width, int first, const sk_mpm_rows *rows, f4 columns[4])
{
    for (int l = 0; l < SK_LANES; l++)
        columns[l] = f4_load(from + rows->at[l] * (size_t)width + first);
    sk_transpose(columns);
}

SK_LANES_INLINE void sk_store_columns(float *to, int width, int first, const sk_mpm_rows *rows, const f4 columns[4])
{
    f4 row[4] = {columns[0], columns[1], columns[2], columns[3]};
    sk_transpose(row);
    for (int l = 0; l < SK_LANES; l++)
        f4_store(to + rows->at[l] * (size_t)width + first, row[l]);
}

SK_LANES_INLINE f4 sk_load_column(const float *from, int width, int column, const sk_mpm_rows *rows)
{
    const float *first = from + column;
    const size_t w = (size_t)width;
    return (f4){first[rows->at[0] * w], first[rows->at[1] * w], first[rows->at[2] * w], first[rows->at[3] * w]};
}

SK_LANES_INLINE void sk_store_column(float *to, int width, int column, const sk_mpm_rows *rows, f4 values)
{
    for (int l = 0; l < SK_LANES; l++)
        to[rows->at[l] * (size_t)width + (size_t)column] = values[l];
}

/* A number for each point of rows in a row. */
SK_LANES_INLINE void sk_store_number(float *to, const sk_mpm_rows *rows, f4 values)
{
    float *first = to + rows->at[0];
    if (rows->count == SK_LANES) {
        f4_store(first, values);
        return;
    }
    for (int l = 0; l < rows->count; l++)
        first[l] = values[l];
}

/* Matrices of the points, row-major. */
SK_LANES_INLINE void sk_load_matrices(const float *from, const sk_mpm_rows *rows, f4 matrix[SK_MPM_MATRIX])
{
    for (int n = 0; n + 4 <= SK_MPM_MATRIX; n += 4)
        sk_load_columns(from, SK_MPM_MATRIX, n, rows, matrix + n);
    if (SELKIE_DIM == 3)
        matrix[SK_MPM_MATRIX - 1] = sk_load_column(from, SK_MPM_MATRIX, SK_MPM_MATRIX - 1, rows);
}

SK_LANES_INLINE void sk_store_matrices(float *to, const sk_mpm_rows *rows, const f4 matrix[SK_MPM_MATRIX])
{
    for (int n = 0; n + 4 <= SK_MPM_MATRIX; n += 4)
        sk_store_columns(to, SK_MPM_MATRIX, n, rows, matrix + n);
    if (SELKIE_DIM == 3)
        sk_store_column(to, SK_MPM_MATRIX, SK_MPM_MATRIX - 1, rows, matrix[SK_MPM_MATRIX - 1]);
}

/* Records: position, velocity, id and flags. */
typedef struct sk_mpm_records {
    f4 column[8];
} sk_mpm_records;

SK_LANES_INLINE void sk_load_records(const sk_particle *from, const sk_mpm_rows *rows, sk_mpm_records *records)
{
    sk_load_columns(sk_particle_floats(from), 8, 0, rows, records->column);
    sk_load_columns(sk_particle_floats(from), 8, 4, rows, records->column + 4);
}

SK_LANES_INLINE void sk_store_records(sk_particle *to, const sk_mpm_rows *rows, const sk_mpm_records *records)
{
    sk_store_columns(sk_particle_floats(to), 8, 0, rows, records->column);
    sk_store_columns(sk_particle_floats(to), 8, 4, rows, records->column + 4);
}

/* --- Splines along an axis --- */

/* Values a, b, c of the nodes before, at and behind the cell enter as b and the differences a - b and c - b, since
 * weights add up to 1, and their rises and their moments about the point to 0. */
typedef struct sk_mpm_axis {
    f4 weight[3];
    f4 rise[2];   /* a cell: of the nodes before and behind */
    f4 moment[2]; /* weight times the way from the point to the node, cells */
} sk_mpm_axis;

/* sk_mpm_weights of the points of a cell. */
SK_LANES_INLINE void sk_mpm_axes(const sk_grid *grid, const float centre[3], const f4 position[3],
                                 sk_mpm_axis axes[SELKIE_DIM])
{
    const float inverse = (float)(1.0 / grid->cell_size);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const f4 offset = (position[d] - (float)grid->corner[d]) * inverse - centre[d];
        const f4 below = 0.5f - offset, above = 0.5f + offset;
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
SK_LANES_INLINE void sk_mpm_cross(const sk_mpm_axis axes[SELKIE_DIM], f4 cross[SK_MPM_NODES / 3])
{
    for (int row = 0; row < SK_MPM_NODES / 3; row++)
        cross[row] =
            SELKIE_DIM == 3 ? axes[1].weight[row % 3] * axes[SELKIE_DIM - 1].weight[row / 3] : axes[1].weight[row % 3];
}

#endif

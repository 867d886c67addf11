/* Points as lanes: their records, columns of their attributes, and their move. For files compiled per dimension.
 *
 * A group is up to four points, or eight. Idle lanes repeat the last point: what they store is stored there twice.
 */
#ifndef SK_METHODS_POINT_LANES_H
#define SK_METHODS_POINT_LANES_H

#include "methods/elastoplastic/elastic_lanes.h"
#include "methods/elastoplastic/point_move.h"

/* Rows of a group's points in arrays of records or attributes. */
typedef struct sk_point_rows {
    int count; /* points, 1 to SK_LANES */
    size_t at[SK_LANES];
} sk_point_rows;

SK_LANES_INLINE sk_point_rows sk_point_rows_of(uint32_t p, uint32_t end)
{
    sk_point_rows rows = {.count = end - p < SK_LANES ? (int)(end - p) : SK_LANES};
    for (int l = 0; l < SK_LANES; l++)
        rows.at[l] = p + (size_t)(l < rows.count ? l : rows.count - 1);
    return rows;
}

/* All ones in the lanes of points. */
SK_LANES_INLINE sk_lane_mask sk_lane_busy(const sk_point_rows *rows)
{
#if SK_LANES_COUNT == 8
    return (sk_lane_mask){0, 1, 2, 3, 4, 5, 6, 7} < rows->count;
#else
    return (sk_lane_mask){0, 1, 2, 3} < rows->count;
#endif
}

typedef double sk_lane_doubles __attribute__((vector_size(8 * SK_LANES_COUNT)));

SK_LANES_INLINE sk_lane_doubles sk_doubles(fl a)
{
    return __builtin_convertvector(a, sk_lane_doubles);
}

SK_LANES_INLINE double sk_lane_sum(sk_lane_doubles a)
{
    double sum = (a[0] + a[2]) + (a[1] + a[3]);
    for (int l = 4; l < SK_LANES; l++)
        sum += a[l];
    return sum;
}

SK_LANES_INLINE float sk_lane_most(fl a)
{
    float most = fmaxf(fmaxf(a[0], a[1]), fmaxf(a[2], a[3]));
    for (int l = 4; l < SK_LANES; l++)
        most = fmaxf(most, a[l]);
    return most;
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

/* The sums of the lanes of four vectors of four. */
SK_LANES_INLINE f4 sk_four_sums(f4 a, f4 b, f4 c, f4 d)
{
#if defined(__aarch64__)
    const float32x4_t ab = vpaddq_f32((float32x4_t)a, (float32x4_t)b), cd = vpaddq_f32((float32x4_t)c, (float32x4_t)d);
    return (f4)vpaddq_f32(ab, cd);
#elif defined(__SSE3__)
    return (f4)_mm_hadd_ps(_mm_hadd_ps((__m128)a, (__m128)b), _mm_hadd_ps((__m128)c, (__m128)d));
#else
    return (f4){(a[0] + a[1]) + (a[2] + a[3]), (b[0] + b[1]) + (b[2] + b[3]), (c[0] + c[1]) + (c[2] + c[3]),
                (d[0] + d[1]) + (d[2] + d[3])};
#endif
}

/* The sums of the lanes of four vectors. */
SK_LANES_INLINE f4 sk_lane_sums(fl a, fl b, fl c, fl d)
{
#if SK_LANES_COUNT == 8
    return sk_four_sums(fl_low(a) + fl_high(a), fl_low(b) + fl_high(b), fl_low(c) + fl_high(c), fl_low(d) + fl_high(d));
#else
    return sk_four_sums(a, b, c, d);
#endif
}

/* Columns `first` to `first` + 3 of rows of `width` floats. */
SK_LANES_INLINE void sk_load_columns(const float *from, int width, int first, const sk_point_rows *rows, fl columns[4])
{
    f4 part[SK_LANES / 4][4];
    for (int l = 0; l < SK_LANES; l++)
        part[l / 4][l % 4] = f4_load(from + rows->at[l] * (size_t)width + first);
    for (int n = 0; n < SK_LANES / 4; n++)
        sk_transpose(part[n]);
    for (int c = 0; c < 4; c++)
#if SK_LANES_COUNT == 8
        columns[c] = fl_join(part[0][c], part[1][c]);
#else
        columns[c] = part[0][c];
#endif
}

SK_LANES_INLINE void sk_store_columns(float *to, int width, int first, const sk_point_rows *rows, const fl columns[4])
{
    f4 part[SK_LANES / 4][4];
    for (int c = 0; c < 4; c++) {
#if SK_LANES_COUNT == 8
        part[0][c] = fl_low(columns[c]);
        part[SK_LANES / 4 - 1][c] = fl_high(columns[c]);
#else
        part[0][c] = columns[c];
#endif
    }
    for (int n = 0; n < SK_LANES / 4; n++)
        sk_transpose(part[n]);
    for (int l = 0; l < SK_LANES; l++)
        f4_store(to + rows->at[l] * (size_t)width + first, part[l / 4][l % 4]);
}

SK_LANES_INLINE fl sk_load_column(const float *from, int width, int column, const sk_point_rows *rows)
{
    const float *first = from + column;
    const size_t w = (size_t)width, *at = rows->at;
#if SK_LANES_COUNT == 8
    return (fl){first[at[0] * w], first[at[1] * w], first[at[2] * w], first[at[3] * w],
                first[at[4] * w], first[at[5] * w], first[at[6] * w], first[at[7] * w]};
#else
    return (fl){first[at[0] * w], first[at[1] * w], first[at[2] * w], first[at[3] * w]};
#endif
}

SK_LANES_INLINE void sk_store_column(float *to, int width, int column, const sk_point_rows *rows, fl values)
{
    for (int l = 0; l < SK_LANES; l++)
        to[rows->at[l] * (size_t)width + (size_t)column] = values[l];
}

/* A number for each point of rows in a row. */
SK_LANES_INLINE void sk_store_number(float *to, const sk_point_rows *rows, fl values)
{
    float *first = to + rows->at[0];
    if (rows->count == SK_LANES) {
        fl_store(first, values);
        return;
    }
    for (int l = 0; l < rows->count; l++)
        first[l] = values[l];
}

/* Records: position, velocity, id and flags. */
typedef struct sk_lane_records {
    fl column[8];
} sk_lane_records;

SK_LANES_INLINE void sk_load_records(const sk_particle *from, const sk_point_rows *rows, sk_lane_records *records)
{
    sk_load_columns(sk_particle_floats(from), 8, 0, rows, records->column);
    sk_load_columns(sk_particle_floats(from), 8, 4, rows, records->column + 4);
}

SK_LANES_INLINE void sk_store_records(sk_particle *to, const sk_point_rows *rows, const sk_lane_records *records)
{
    sk_store_columns(sk_particle_floats(to), 8, 0, rows, records->column);
    sk_store_columns(sk_particle_floats(to), 8, 4, rows, records->column + 4);
}

/* --- Move --- */

/* Sums of sk_point_move_sums, a point in each lane. */
typedef struct sk_lane_move_sums {
    sk_lane_doubles position[3], speed2;
    fl fastest2;
    sk_lane_mask gone, bad; /* minus the number of points */
} sk_lane_move_sums;

SK_LANES_INLINE void sk_add_lane_sums(const sk_lane_move_sums *lanes, sk_point_move_sums *sums)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        sums->position[d] += sk_lane_sum(lanes->position[d]);
    sums->kinetic += 0.5 * sk_lane_sum(lanes->speed2);
    sums->fastest2 = fmax(sums->fastest2, sk_lane_most(lanes->fastest2));
    for (int l = 0; l < SK_LANES; l++) {
        sums->gone -= lanes->gone[l];
        sums->bad -= lanes->bad[l];
    }
}

/* Points that may touch an obstacle, one at a time. */
static __attribute__((noinline, unused)) void sk_move_single(const sk_point_moving *moving, float clearance,
                                                             const sk_point_rows *rows, sk_particle *points,
                                                             sk_point_move_sums *sums)
{
    for (int l = 0; l < rows->count; l++)
        sk_move_point(moving, clearance, &points[rows->at[l]], sums);
}

/* sk_move_point of a group of a block, whose records have their new velocities: stores them in `points`. */
SK_LANES_INLINE void sk_move_group(const sk_point_moving *moving, int block, const sk_point_rows *rows,
                                   sk_lane_records *records, sk_particle *points, sk_lane_move_sums *sums,
                                   sk_point_move_sums *single)
{
    const sk_grid *grid = &moving->step->grid;
    const fl zero = fl_splat(0.0f);
    fl moved[3], speed2 = zero, travelled = zero;
    sk_lane_mask gone = {0, 0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fl velocity = records->column[3 + d], x = sk_scaled_add(moving->dt, velocity, records->column[d]);
        const fl above = sk_choose(x < moving->low[d], fl_splat(moving->low[d]), x);
        if (moving->low[d] == -INFINITY)
            gone |= x < (float)grid->low[d];
        if (moving->high[d] == INFINITY)
            gone |= x > (float)grid->high[d];
        moved[d] = sk_choose(above > moving->high[d], fl_splat(moving->high[d]), above);
        speed2 = fl_multiply_add(velocity, velocity, speed2);
        travelled += sk_absolute(moved[d] - records->column[d]);
    }
    if (moving->step->solids.obstacle_count) {
        const float clearance = moving->step->solids.clearance[block];
        if (sk_any(~(travelled < clearance * (float)moving->step->solids.cell_size))) {
            sk_store_records(points, rows, records);
            sk_move_single(moving, clearance, rows, points, single);
            return;
        }
    }

    /* Sums of the points that stay. */
    const sk_lane_mask busy = sk_lane_busy(rows), dead = (sk_lane_mask)records->column[7] & SK_PARTICLE_DEAD;
    const sk_lane_mask stays = busy & ~(gone | (dead != 0));
    for (int d = 0; d < SELKIE_DIM; d++) {
        records->column[d] = moved[d];
        sums->position[d] += sk_doubles(sk_choose(stays, moved[d], zero));
    }
    records->column[7] = (fl)((sk_lane_mask)records->column[7] | (gone & SK_PARTICLE_DEAD));
    sums->gone += busy & ~stays;
    sums->bad += busy & ~(speed2 < 1e30f);
    speed2 = sk_choose(stays, speed2, zero);
    sums->speed2 += sk_doubles(speed2);
    sums->fastest2 = sk_larger(speed2, sums->fastest2);
    sk_store_records(points, rows, records);
}

#endif

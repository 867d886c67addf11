/* Points as lanes: their records, columns of their attributes, and their move. For files compiled per dimension.
 *
 * A group is up to four points, eight or sixteen; sk_lane_kind says which. Kinds are constants where functions are
 * inlined.
 */
#ifndef SK_METHODS_POINT_LANES_H
#define SK_METHODS_POINT_LANES_H

#include "methods/elastoplastic/elastic_lanes.h"
#include "methods/elastoplastic/point_move.h"

enum { SK_ALL_LANES = (1 << SK_LANES_COUNT) - 1 };

typedef enum sk_lane_kind {
    SK_LANES_ADJOIN, /* points that follow each other; idle lanes repeat the last: what they store is stored twice */
    SK_LANES_FULL,   /* a point of each of neighbouring cells */
    SK_LANES_PART    /* likewise; cells without one hold another point in their lanes, and store nothing */
} sk_lane_kind;

/* Rows of a group's points in arrays of records or attributes. */
typedef struct sk_point_rows {
    sk_lane_mask busy; /* all ones in the lanes of points */
    unsigned points;   /* bit l: lane l is a point */
    size_t at[SK_LANES];
} sk_point_rows;

/* Does lane l store? */
SK_LANES_INLINE int sk_lane_stores(const sk_point_rows *rows, sk_lane_kind kind, int l)
{
    return kind != SK_LANES_PART || (rows->points >> l & 1);
}

SK_LANES_INLINE sk_lane_mask sk_lane_numbers(void)
{
#if SK_LANES_COUNT == 16
    return (sk_lane_mask){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif SK_LANES_COUNT == 8
    return (sk_lane_mask){0, 1, 2, 3, 4, 5, 6, 7};
#else
    return (sk_lane_mask){0, 1, 2, 3};
#endif
}

/* Points p, p + 1 .. before `end`. */
SK_LANES_INLINE sk_point_rows sk_point_rows_of(uint32_t p, uint32_t end)
{
    const int count = end - p < SK_LANES ? (int)(end - p) : SK_LANES;
    sk_point_rows rows = {.busy = sk_lane_numbers() < count, .points = (1u << count) - 1u};
    for (int l = 0; l < SK_LANES; l++)
        rows.at[l] = p + (size_t)(l < count ? l : count - 1);
    return rows;
}

/* Point n of each of SK_LANES cells that follow each other, from the starts of the cells. At least one has as many. */
SK_LANES_INLINE sk_point_rows sk_point_rows_across(const uint32_t *start, uint32_t n, sk_lane_kind kind)
{
    sk_point_rows rows = {.busy = ~(sk_lane_numbers() * 0), .points = SK_ALL_LANES};
    for (int l = 0; l < SK_LANES; l++) {
        const int is_point = kind == SK_LANES_FULL || n < start[l + 1] - start[l];
        rows.at[l] = is_point ? start[l] + n : start[0];
        if (!is_point) {
            rows.busy[l] = 0;
            rows.points &= ~(1u << l);
        }
    }
    return rows;
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
#if SK_LANES_COUNT <= 8
SK_LANES_INLINE f4 sk_lane_sums(fl a, fl b, fl c, fl d)
{
#if SK_LANES_COUNT == 8
    return sk_four_sums(fl_low(a) + fl_high(a), fl_low(b) + fl_high(b), fl_low(c) + fl_high(c), fl_low(d) + fl_high(d));
#else
    return sk_four_sums(a, b, c, d);
#endif
}
#endif

#if SK_LANES_COUNT == 16
/* sk_transpose of each four lanes. */
SK_LANES_INLINE void sk_transpose_halves(fl r[4])
{
    const __m512 a = _mm512_unpacklo_ps((__m512)r[0], (__m512)r[1]), b = _mm512_unpackhi_ps((__m512)r[0], (__m512)r[1]);
    const __m512 c = _mm512_unpacklo_ps((__m512)r[2], (__m512)r[3]), d = _mm512_unpackhi_ps((__m512)r[2], (__m512)r[3]);
    r[0] = (fl)_mm512_unpacklo_pd((__m512d)a, (__m512d)c);
    r[1] = (fl)_mm512_unpackhi_pd((__m512d)a, (__m512d)c);
    r[2] = (fl)_mm512_unpacklo_pd((__m512d)b, (__m512d)d);
    r[3] = (fl)_mm512_unpackhi_pd((__m512d)b, (__m512d)d);
}

/* Four of the lanes. `quarter` is a constant where this is inlined. */
SK_LANES_INLINE f4 sk_quarter(fl a, int quarter)
{
    return (f4)(quarter == 0   ? _mm512_castps512_ps128((__m512)a)
                : quarter == 1 ? _mm512_extractf32x4_ps((__m512)a, 1)
                : quarter == 2 ? _mm512_extractf32x4_ps((__m512)a, 2)
                               : _mm512_extractf32x4_ps((__m512)a, 3));
}
#elif SK_LANES_COUNT == 8
/* sk_transpose of the first and of the last four lanes. */
SK_LANES_INLINE void sk_transpose_halves(fl r[4])
{
    const fl a = __builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const fl b = __builtin_shufflevector(r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const fl c = __builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const fl d = __builtin_shufflevector(r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}
#else
SK_LANES_INLINE void sk_transpose_halves(fl r[4])
{
    sk_transpose(r);
}
#endif

/* Columns `first` to `first` + 3 of rows of `width` floats. */
SK_LANES_INLINE void sk_load_columns(const float *from, int width, int first, const sk_point_rows *rows, fl columns[4])
{
    for (int l = 0; l < 4; l++) {
        const f4 low = f4_load(from + rows->at[l] * (size_t)width + first);
#if SK_LANES_COUNT == 16
        __m512 part = _mm512_castps128_ps512((__m128)low);
        part = _mm512_insertf32x4(part, _mm_loadu_ps(from + rows->at[l + 4] * (size_t)width + first), 1);
        part = _mm512_insertf32x4(part, _mm_loadu_ps(from + rows->at[l + 8] * (size_t)width + first), 2);
        columns[l] = (fl)_mm512_insertf32x4(part, _mm_loadu_ps(from + rows->at[l + 12] * (size_t)width + first), 3);
#elif SK_LANES_COUNT == 8
        columns[l] = fl_join(low, f4_load(from + rows->at[l + 4] * (size_t)width + first));
#else
        columns[l] = low;
#endif
    }
    sk_transpose_halves(columns);
}

SK_LANES_INLINE void sk_store_columns(float *to, int width, int first, const sk_point_rows *rows, sk_lane_kind kind,
                                      const fl columns[4])
{
    fl part[4] = {columns[0], columns[1], columns[2], columns[3]};
    sk_transpose_halves(part);
#pragma GCC unroll 16
    for (int l = 0; l < SK_LANES; l++)
        if (sk_lane_stores(rows, kind, l))
#if SK_LANES_COUNT == 16
            f4_store(to + rows->at[l] * (size_t)width + first, sk_quarter(part[l % 4], l / 4));
#elif SK_LANES_COUNT == 8
            f4_store(to + rows->at[l] * (size_t)width + first, l < 4 ? fl_low(part[l % 4]) : fl_high(part[l % 4]));
#else
            f4_store(to + rows->at[l] * (size_t)width + first, part[l]);
#endif
}

SK_LANES_INLINE fl sk_load_column(const float *from, int width, int column, const sk_point_rows *rows)
{
    const float *first = from + column;
    const size_t w = (size_t)width, *at = rows->at;
#if SK_LANES_COUNT == 16
    typedef uint64_t index __attribute__((vector_size(64), aligned(8)));
    const __m256 low = _mm512_i64gather_ps((__m512i)(*(const index *)at * w), first, 4);
    const __m256 high = _mm512_i64gather_ps((__m512i)(*(const index *)(at + 8) * w), first, 4);
    return (fl)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#elif SK_LANES_COUNT == 8
    return (fl){first[at[0] * w], first[at[1] * w], first[at[2] * w], first[at[3] * w],
                first[at[4] * w], first[at[5] * w], first[at[6] * w], first[at[7] * w]};
#else
    return (fl){first[at[0] * w], first[at[1] * w], first[at[2] * w], first[at[3] * w]};
#endif
}

SK_LANES_INLINE void sk_store_column(float *to, int width, int column, const sk_point_rows *rows, sk_lane_kind kind,
                                     fl values)
{
    for (int l = 0; l < SK_LANES; l++)
        if (sk_lane_stores(rows, kind, l))
            to[rows->at[l] * (size_t)width + (size_t)column] = values[l];
}

/* A number for each point. */
SK_LANES_INLINE void sk_store_number(float *to, const sk_point_rows *rows, sk_lane_kind kind, fl values)
{
    if (kind == SK_LANES_ADJOIN && rows->points == SK_ALL_LANES)
        fl_store(to + rows->at[0], values);
    else
        sk_store_column(to, 1, 0, rows, kind, values);
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

SK_LANES_INLINE void sk_store_records(sk_particle *to, const sk_point_rows *rows, sk_lane_kind kind,
                                      const sk_lane_records *records)
{
    sk_store_columns(sk_particle_floats(to), 8, 0, rows, kind, records->column);
    sk_store_columns(sk_particle_floats(to), 8, 4, rows, kind, records->column + 4);
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
static __attribute__((noinline, unused)) void sk_move_single(const sk_point_moving *moving, float clearance, int block,
                                                             const sk_point_rows *rows, sk_lane_mask home,
                                                             sk_particle *points, sk_point_move_sums *sums)
{
    for (int l = 0; l < SK_LANES; l++)
        if (rows->points >> l & 1) {
            sk_particle *point = &points[rows->at[l]];
            sk_move_point(moving, clearance, point, sums);
            if (moving->lists)
                sk_note_cell(moving, block, rows->at[l], home[l], point->position);
        }
}

/* --- Cells after a move, for the next sort --- */

/* Cells in a block of positions, with SK_LEAVES where they lie in another block. As sk_leavers_add finds them. */
SK_LANES_INLINE sk_lane_mask sk_cells_in_block(const sk_grid *grid, int block, const fl *position)
{
    const float inverse = (float)(1.0 / grid->cell_size);
    sk_lane_mask cell = sk_lane_numbers() & 0, elsewhere = cell;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fl g = (position[d] - (float)grid->corner[d]) * inverse;
        const sk_lane_mask i = __builtin_convertvector(g, sk_lane_mask) - grid->coordinates[block][d] * SK_BLOCK_N;
        elsewhere |= (i & ~SK_BLOCK_MASK) | ((sk_lane_mask)g & INT32_MIN);
        cell |= (i & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    return cell | ((elsewhere != 0) & SK_LEAVES);
}

static __attribute__((noinline, unused)) void sk_note_new_cells(const sk_point_moving *moving, int block,
                                                                const sk_point_rows *rows, sk_lane_mask home,
                                                                const fl *position)
{
    const sk_lane_mask cell = sk_cells_in_block(&moving->step->grid, block, position);
    const sk_lane_mask keys = cell | ((cell != home) & SK_STRAYS);
    for (int l = 0; l < SK_LANES; l++)
        if (rows->points >> l & 1)
            moving->step->grid.cell_keys[rows->at[l]] = (uint16_t)keys[l];
}

/* Cells of the lanes on the grid. */
typedef struct sk_lane_place {
    fl centre[3];             /* of the cells, in cells from the grid's corner */
    float corner[3], inverse; /* m, 1/m  of the grid: its corner, 1 over its cell size */
} sk_lane_place;

/* Cell `cell` of a block for all lanes, or, if `is_wide`, that cell and those that follow it along x. */
SK_LANES_INLINE sk_lane_place sk_place_lanes(const sk_grid *grid, int block, int cell, int is_wide)
{
    sk_lane_place place = {.inverse = (float)(1.0 / grid->cell_size)};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int at = grid->coordinates[block][d] * SK_BLOCK_N + (cell >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK);
        place.centre[d] = fl_splat((float)at + 0.5f);
        place.corner[d] = (float)grid->corner[d];
    }
    if (is_wide)
        place.centre[0] += __builtin_convertvector(sk_lane_numbers(), fl);
    return place;
}

/* Offsets (cells) of positions from the centres of their cells, along an axis. */
SK_LANES_INLINE fl sk_lane_offset(const sk_lane_place *place, int d, fl position)
{
    return (position - place->corner[d]) * place->inverse - place->centre[d];
}

/* Cells of a group before its move. `place` is NULL if they are neither the same nor neighbours. */
typedef struct sk_lane_homes {
    const sk_lane_place *place;
    sk_lane_mask cell; /* in the block */
} sk_lane_homes;

SK_LANES_INLINE void sk_note_cells(const sk_point_moving *moving, int block, const sk_point_rows *rows,
                                   sk_lane_kind kind, const sk_lane_homes *home, const fl *position)
{
    typedef uint16_t key_lanes __attribute__((vector_size(2 * SK_LANES_COUNT)));
    uint16_t *to = moving->step->grid.cell_keys;
    sk_lane_mask stays = rows->busy;
    for (int d = 0; d < SELKIE_DIM && home->place; d++)
        stays &= sk_absolute(sk_lane_offset(home->place, d, position[d])) < 0.5f;
    if (!home->place || sk_any(~stays)) {
        sk_note_new_cells(moving, block, rows, home->cell, position);
        return;
    }

    /* Most groups stay in their cells. */
    const key_lanes keys = __builtin_convertvector(home->cell, key_lanes);
    if (kind == SK_LANES_ADJOIN)
        memcpy(to + rows->at[0], &keys, sizeof keys);
    else
        for (int l = 0; l < SK_LANES; l++)
            to[rows->at[l]] = keys[l];
}

/* sk_move_point of a group of a block, whose records have their new velocities: stores them in `points`. `home` is
 * their cells in the block before. */
SK_LANES_INLINE void sk_move_group(const sk_point_moving *moving, int block, const sk_point_rows *rows,
                                   sk_lane_kind kind, const sk_lane_homes *home, sk_lane_records *records,
                                   sk_particle *points, sk_lane_move_sums *sums, sk_point_move_sums *single)
{
    const sk_grid *grid = &moving->step->grid;
    const fl zero = fl_splat(0.0f);
    fl moved[3], speed2 = zero, travelled = zero;
    sk_lane_mask gone = sk_lane_numbers() * 0;
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
            sk_store_records(points, rows, kind, records);
            sk_move_single(moving, clearance, block, rows, home->cell, points, single);
            return;
        }
    }

    /* Sums of the points that stay. */
    const sk_lane_mask busy = rows->busy, dead = (sk_lane_mask)records->column[7] & SK_PARTICLE_DEAD;
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
    if (moving->lists)
        sk_note_cells(moving, block, rows, kind, home, records->column);
    sk_store_records(points, rows, kind, records);
}

#endif

/* Particles added to columns: places are found for vectors of lanes, weights one particle at a time. */
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "defs/structs.h"
#include "world/columns.h"

typedef uint32_t u8 __attribute__((vector_size(32))); /* the sums of an interval */
typedef uint32_t u16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));

enum { group_bits = 4, batch_most = 256 };

/* Adding it to a float below 2^22 leaves the nearest whole number in the low bits. */
static const float rounder = 12582912.0f;

/* Constants of a pass over the particles. Axes: along the slabs, across them, up. */
typedef struct sk_scan {
    int axis[3];            /* of the domain; 2 for that across in 2D */
    float scale, offset[3]; /* distance from the middle between the first two nodes = position (m) * scale + offset */
    float from;             /* first plane of the slab */
    float end[3];           /* number of intervals, from that plane */
    int rows;               /* of a plane */
    int length;             /* intervals of a row; 1 if no level is measured */
    int group_shift;        /* of intervals to groups, or to rows if no level is measured */
    int height_from;        /* intervals before it belong to the slab before, where height probes are concerned */
    const uint8_t *near;    /* of the slab's first group */
    uint32_t *sums;         /* of this part; NULL if no level is measured */
    uint8_t *touched;
    uint32_t *heights;
} sk_scan;

static sk_scan begin_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part)
{
    const sk_grid *grid = &step->grid;
    const int levels = columns->level_count > 0, length = levels ? (int)columns->length : 1;
    const size_t groups = levels ? columns->length / sk_column_group : 1;
    sk_scan scan = {.axis = {columns->axis[0], columns->axis[1] < 0 ? 2 : columns->axis[1], step->up_axis},
                    .scale = (float)(1.0 / grid->cell_size),
                    .from = (float)slab->from,
                    .rows = columns->rows,
                    .length = length,
                    .group_shift = levels ? group_bits : 0,
                    .height_from = slab->from ? columns->rows * length : 0,
                    .near = columns->near + (size_t)slab->from * (size_t)columns->rows * groups,
                    .heights = columns->heights + (size_t)part * columns->height_room};
    if (levels) {
        scan.sums = columns->rooms + sk_interval_sums * (size_t)part * columns->room;
        scan.touched = columns->touched + (size_t)part * columns->room / sk_column_group;
    }
    for (int a = 0; a < 3; a++) {
        scan.offset[a] = (float)(-grid->low[scan.axis[a]] / grid->cell_size);
        scan.end[a] = (float)(a == 0                                      ? slab->to + 1 - slab->from
                              : scan.axis[a] == 2 && grid->dimension == 2 ? 1
                                                                          : grid->cells[scan.axis[a]] + 1);
    }
    return scan;
}

/* Places of particles among the nodes, and what they add to the sums of their intervals. */
typedef struct sk_places {
    float parts[batch_most][sk_interval_sums];
    int32_t at[batch_most]; /* interval in the slab; -1 = outside of it */
} sk_places;

/* Marks dead particles as outside, where there are some among `lanes` of them. */
static inline __attribute__((always_inline)) void leave_out_dead(const sk_particle *records, int lanes, int32_t *at)
{
    uint32_t flags = 0;
    for (int l = 0; l < lanes; l++)
        flags |= records[l].flags;
    for (int l = 0; flags & SK_PARTICLE_DEAD && l < lanes; l++)
        at[l] = records[l].flags & SK_PARTICLE_DEAD ? -1 : at[l];
}

/* Finds the eight parts of a particle: below and above it in the four columns around it. `beyond` is the distance from
 * the middle of the interval along each axis, -0.5 to 0.5. */
static inline __attribute__((always_inline)) void find_parts(const fw beyond[3], fw below[4], fw above[4])
{
    const fw far[2] = {(0.5f - beyond[0]) * (float)sk_column_unit, (0.5f + beyond[0]) * (float)sk_column_unit};
    const fw next[2] = {0.5f - beyond[1], 0.5f + beyond[1]}, up = beyond[2] + 0.5f;
    for (int c = 0; c < 4; c++) {
        const fw weight = far[c >> 1] * next[c & 1];
        const iw upper = (iw)(weight * up + rounder);
        below[c] = (fw)((iw)(weight + rounder) - upper);
        above[c] = (fw)(upper - (iw)fw_splat(rounder));
    }
}

/* A domain has less than 2^22 cells along an axis, so nodes are exact in floats; the intervals of a slab are more. */
static inline __attribute__((always_inline)) void find_places(const sk_scan *scan, const sk_particle *records,
                                                              int lanes, int first, sk_places *places)
{
    fw x[4], beyond[3];
    iw rounded[3], inside = iw_splat(-1);
    fw_load_columns(sk_particle_floats(records), lanes, x);
    for (int a = 0; a < 3; a++) {
        const fw place = scan->axis[a] == 0 ? x[0] : scan->axis[a] == 1 ? x[1] : x[2];
        fw g = place * scan->scale + scan->offset[a];
        g = a ? g : g - scan->from;
        const fw middle = g + 0.5f, moved = g + rounder;
        inside &= (middle >= 0.0f) & (middle < scan->end[a]); /* not a number: outside */
        rounded[a] = (iw)moved - (iw)fw_splat(rounder);
        beyond[a] = g - (moved - rounder);
    }
    const iw row = rounded[0] * scan->rows + rounded[1];
    const iw at = (scan->sums ? row * scan->length + rounded[2] : row * scan->length) | ~inside;
    memcpy(places->at + first, &at, sizeof at);
    leave_out_dead(records, lanes, places->at + first);
    if (scan->sums) {
        fw below[4], above[4];
        find_parts(beyond, below, above);
        fw_store_columns(places->parts[first], SK_WIDE, below);
        fw_store_columns(places->parts[first] + 4, SK_WIDE, above);
    }
}

/* Adds a particle to the columns of the height probes that are near it: probe `near` - 1, or any if it is `several`. */
static void add_to_heights(const sk_columns *columns, const sk_step *step, const sk_particle *particle, int near,
                           uint32_t *sums)
{
    const sk_grid *grid = &step->grid;
    const int up = step->up_axis, first = near == sk_several_probes ? 0 : near - 1,
              end = near == sk_several_probes ? step->scene->probe_count : near;
    const float inverse = (float)(1.0 / grid->cell_size);
    float g[3];
    for (int d = 0; d < 3; d++)
        g[d] = (particle->position[d] - (float)grid->low[d]) * inverse + 0.5f;
    const int node = (int)g[up];
    for (int p = first; p < end; p++) {
        const float *middle = columns->middles[p];
        float weight = (float)sk_column_unit * middle[3];
        for (int a = 0; a < step->dimension - 1; a++)
            weight *= fmaxf(1.0f - fabsf(g[columns->axis[a]] - middle[columns->axis[a]]), 0.0f);
        uint32_t *to = sums + (size_t)p * columns->length + (size_t)node;
        const uint32_t all = (uint32_t)(weight + 0.5f), upper = (uint32_t)(weight * (g[up] - (float)node) + 0.5f);
        to[0] += all - upper;
        to[1] += upper;
    }
}

/* Clears the sums of a group at its first particle. */
static void touch_group(const sk_scan *scan, int group)
{
    u8 *sums = (u8 *)(void *)scan->sums + (size_t)group * sk_column_group;
    for (int n = 0; n < sk_column_group; n++)
        sums[n] = (u8){0};
    scan->touched[group] = 1;
}

/* Adds a batch to the levels. Returns whether some particle may be near a height probe. */
static int add_all_to_levels(const sk_scan *scan, const sk_places *places, int count)
{
    int near = 0;
    for (int p = 0; p < count; p++) {
        const int32_t at = places->at[p];
        if (at < 0)
            continue;
        const int group = at >> group_bits;
        if (!scan->touched[group])
            touch_group(scan, group);
        u8 part, *to = (u8 *)(void *)scan->sums + at;
        memcpy(&part, places->parts[p], sizeof part);
        *to += part;
        near |= scan->near[group];
    }
    return near;
}

/* Places are found for a batch before any is added: the processor overlaps more of them. */
static void add_batch(const sk_columns *columns, const sk_step *step, const sk_scan *scan, const sk_particle *records,
                      int count)
{
    sk_places places;
    for (int n = 0; n < count; n += SK_WIDE)
        find_places(scan, records + n, count - n < SK_WIDE ? count - n : SK_WIDE, n, &places);
    if (scan->sums && !add_all_to_levels(scan, &places, count))
        return;
    for (int p = 0; p < count; p++) {
        const int32_t at = places.at[p];
        const int near = at >= scan->height_from ? scan->near[at >> scan->group_shift] : 0;
        if (near)
            add_to_heights(columns, step, &records[p], near, scan->heights);
    }
}

void sk_columns_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part,
                     const sk_particle *records, int64_t count)
{
    const sk_scan scan = begin_scan(columns, step, slab, part);
    for (int64_t p = 0; p < count; p += batch_most)
        add_batch(columns, step, &scan, &records[p], (int)(count - p < batch_most ? count - p : batch_most));
}

void sk_columns_join(const sk_columns *columns, int row)
{
    const size_t groups = columns->length / sk_column_group, first = (size_t)row * groups;
    for (int part = 1; part < columns->parts; part++) {
        uint8_t *touched = columns->touched + (size_t)part * columns->room / sk_column_group + first;
        for (size_t group = 0; group < groups; group++) {
            if (!touched[group])
                continue;
            u8 *restrict to = (u8 *)(void *)columns->rooms + (first + group) * sk_column_group;
            const u8 *restrict from = to + (size_t)part * columns->room;
            const int adds = columns->touched[first + group];
            for (size_t n = 0; n < sk_column_group; n++)
                to[n] = adds ? to[n] + from[n] : from[n];
            touched[group] = 0;
            columns->touched[first + group] = 1;
        }
    }
}

/* The sums of two intervals in one column, which is column c in row c. Below the particles: lanes 0 to 3 of each eight,
 * above them: the others. */
static inline __attribute__((always_inline)) u16 sum_two(const uint32_t *const from[4], size_t at)
{
    static const u16 own[4] = {{~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0},
                               {0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0},
                               {0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0},
                               {0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, ~0u}};
    u16 all = {0};
    for (int c = 0; c < 4; c++)
        all |= *(const u16 *)(const void *)(from[c] + at) & own[c];
    all += __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    return all + __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
}

/* The sums of eight intervals: below the particles and above them. */
static inline __attribute__((always_inline)) u16 sum_eight(const uint32_t *const from[4])
{
    u16 sums[4], halves[2];
    for (int q = 0; q < 4; q++)
        sums[q] = sum_two(from, 2 * sk_interval_sums * (size_t)q);
    for (int q = 0; q < 2; q++)
        halves[q] = __builtin_shufflevector(sums[2 * q], sums[2 * q + 1], 0, 8, 16, 24, 4, 12, 20, 28, 0, 8, 16, 24, 4,
                                            12, 20, 28);
    return __builtin_shufflevector(halves[0], halves[1], 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
}

/* The fill of the sixteen nodes of a group. `before` holds the sums of the group before above its particles, and
 * receives those of this one. Returns a bit for each node that is not empty. */
static inline __attribute__((always_inline)) unsigned read_group(const uint32_t *const from[4], float part, u16 *before,
                                                                 float *fill)
{
    const uint32_t *upper[4];
    for (int c = 0; c < 4; c++)
        upper[c] = from[c] + sk_interval_sums * sk_column_group / 2;
    const u16 low = sum_eight(from), high = sum_eight(upper);
    const u16 below = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const u16 above = __builtin_shufflevector(low, high, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    const u16 all =
        below + __builtin_shufflevector(*before, above, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
    const f16 values = __builtin_convertvector((i16)all, f16) * part;
    memcpy(fill, &values, sizeof values);
    *before = above;
    return i8_bits(f8_load(fill) > 0.0f) | i8_bits(f8_load(fill + 8) > 0.0f) << 8;
}

void sk_columns_read(const sk_columns *columns, int row, int stops, float part, float *fill)
{
    static const u16 none[sk_interval_sums * sk_column_group / 16];
    const int back = columns->axis[1] < 0 ? 0 : 1, groups = (int)columns->length / sk_column_group;
    const int rows[4] = {row, row - back, row - columns->rows, row - columns->rows - back};
    u16 before = {0};
    for (int g = 0; g < groups; g++, fill += sk_column_group) {
        const uint32_t *from[4];
        unsigned some = 0, empty = 0xffff;
        for (int c = 0; c < 4; c++) {
            const size_t group = (size_t)rows[c] * (size_t)groups + (size_t)g;
            const int touched = columns->touched[group];
            from[c] = touched ? columns->rooms + sk_interval_sums * sk_column_group * group
                              : (const uint32_t *)(const void *)none;
            some |= (unsigned)touched;
        }
        if (some) {
            empty = ~read_group(from, part, &before, fill) & 0xffff;
        } else {
            /* Without particles, only the first node may hold anything. */
            memset(fill, 0, sk_column_group * sizeof *fill);
            fill[0] = (float)before[15] * part;
            before = (u16){0};
        }
        if (stops && empty & empty >> 1 & empty >> 2 & empty >> 3)
            return;
    }
}

int sk_columns_find_thin(const float *fill, int first, int end)
{
    for (int n = first; n + 8 < end; n += 8) {
        const unsigned thin = i8_bits((f8_load(fill + n) < 0.5f) & (f8_load(fill + n + 1) < 0.5f));
        if (thin)
            return n + __builtin_ctz(thin);
        first = n + 8;
    }
    while (first < end && (fill[first] >= 0.5f || (first + 1 < end && fill[first + 1] >= 0.5f)))
        first++;
    return first;
}

/* Particles added to columns: places are found for vectors of lanes, weights one particle at a time. */
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "defs/structs.h"
#include "world/columns.h"

typedef int32_t i4 __attribute__((vector_size(16)));
typedef uint32_t u4 __attribute__((vector_size(16)));
typedef uint32_t u16 __attribute__((vector_size(64)));
typedef uint32_t u16_memory __attribute__((vector_size(64), aligned(4)));
typedef int32_t i16 __attribute__((vector_size(64)));

enum { node_sums = 4, group_bits = 4, batch_most = 256 };

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
        scan.sums = columns->rooms + node_sums * (size_t)part * columns->room;
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

/* Places of particles among the nodes. */
typedef struct sk_places {
    float beyond[3][batch_most]; /* the middle of the interval along each axis, -0.5 to 0.5 */
    int32_t at[batch_most];      /* interval in the slab; -1 = outside of it */
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

/* A domain has less than 2^22 cells along an axis, so nodes are exact in floats; the intervals of a slab are more. */
static inline __attribute__((always_inline)) void find_places(const sk_scan *scan, const sk_particle *records,
                                                              int lanes, int first, sk_places *places)
{
    fw x[4];
    iw rounded[3], inside = iw_splat(-1);
    fw_load_columns(sk_particle_floats(records), lanes, x);
    for (int a = 0; a < 3; a++) {
        const fw place = scan->axis[a] == 0 ? x[0] : scan->axis[a] == 1 ? x[1] : x[2];
        fw g = place * scan->scale + scan->offset[a];
        g = a ? g : g - scan->from;
        const fw middle = g + 0.5f, moved = g + rounder;
        inside &= (middle >= 0.0f) & (middle < scan->end[a]); /* not a number: outside */
        rounded[a] = (iw)moved - (iw)fw_splat(rounder);
        fw_store(places->beyond[a] + first, g - (moved - rounder));
    }
    const iw row = rounded[0] * scan->rows + rounded[1];
    const iw at = (scan->sums ? row * scan->length + rounded[2] : row * scan->length) | ~inside;
    memcpy(places->at + first, &at, sizeof at);
    leave_out_dead(records, lanes, places->at + first);
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

/* Adds a particle's eight parts: below and above it in the four columns around it. Both halves are added on their own,
 * because a load across two recent stores would stall. */
static inline __attribute__((always_inline)) void add_to_levels(const sk_scan *scan, const sk_places *places, int p)
{
    const float unit = sk_column_unit;
    const f4 side0 = {-unit, -unit, unit, unit}, side1 = {-1.0f, 1.0f, -1.0f, 1.0f};
    const f4 far = places->beyond[0][p] * side0 + 0.5f * unit, next = places->beyond[1][p] * side1 + 0.5f;
    const f4 weight = far * next, base = {rounder, rounder, rounder, rounder};
    const float up = places->beyond[2][p] + 0.5f;
    const u4 all = (u4)(weight + base), above = (u4)(weight * up + base);
    u4 *to = (u4 *)(void *)(scan->sums + node_sums * (size_t)places->at[p]);
    to[0] += all - above;
    to[1] += above - (u4)base;
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
        add_to_levels(scan, places, p);
        scan->touched[group] = 1;
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

void sk_columns_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part)
{
    const sk_scan scan = begin_scan(columns, step, slab, part);
    const sk_particle *records = step->particles.records;
    const int64_t count = step->particles.count, end = count * (part + 1) / columns->parts;
    for (int64_t p = count * part / columns->parts; p < end; p += batch_most)
        add_batch(columns, step, &scan, &records[p], (int)(end - p < batch_most ? end - p : batch_most));
}

/* Sums of a group that particles in it reach: those of the next node as well, but for the last group of a row. */
static size_t group_reach(size_t group, size_t groups)
{
    return node_sums * (sk_column_group + (group + 1 < groups ? 1 : 0));
}

void sk_columns_join(const sk_columns *columns, int row)
{
    const size_t groups = columns->length / sk_column_group, first = (size_t)row * groups;
    for (int part = 1; part < columns->parts; part++) {
        uint8_t *touched = columns->touched + (size_t)part * columns->room / sk_column_group + first;
        for (size_t group = 0; group < groups; group++) {
            if (!touched[group])
                continue;
            uint32_t *restrict to = columns->rooms + node_sums * (first + group) * sk_column_group;
            uint32_t *restrict from = to + node_sums * (size_t)part * columns->room;
            const size_t reach = group_reach(group, groups);
            for (size_t n = 0; n < reach; n++)
                to[n] += from[n];
            memset(from, 0, reach * sizeof *from);
            touched[group] = 0;
            columns->touched[first + group] = 1;
        }
    }
}

void sk_columns_clear(const sk_columns *columns, int row)
{
    const size_t groups = columns->length / sk_column_group, first = (size_t)row * groups;
    for (size_t group = 0; group < groups; group++)
        if (columns->touched[first + group]) {
            /* Two sizes that the compiler knows. */
            uint32_t *sums = columns->rooms + node_sums * (first + group) * sk_column_group;
            memset(sums, 0, node_sums * sk_column_group * sizeof *sums);
            if (group + 1 < groups)
                memset(sums + node_sums * sk_column_group, 0, node_sums * sizeof *sums);
            columns->touched[first + group] = 0;
        }
}

/* The sums of four nodes: part c of each from row c. Each sum fills four lanes. */
static inline __attribute__((always_inline)) u16 sum_four(const uint32_t *const from[4], size_t at)
{
    const u16 a = *(const u16_memory *)(from[0] + at), b = *(const u16_memory *)(from[1] + at),
              c = *(const u16_memory *)(from[2] + at), d = *(const u16_memory *)(from[3] + at);
    const u16 lower = __builtin_shufflevector(a, b, 0, 17, 0, 17, 4, 21, 4, 21, 8, 25, 8, 25, 12, 29, 12, 29);
    const u16 upper = __builtin_shufflevector(c, d, 2, 19, 2, 19, 6, 23, 6, 23, 10, 27, 10, 27, 14, 31, 14, 31);
    const u16 half = lower + upper;
    return half + __builtin_shufflevector(half, half, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}

/* The fill of the sixteen nodes of a group. Returns a bit for each that is not empty. */
static inline __attribute__((always_inline)) unsigned read_group(const uint32_t *const from[4], size_t first,
                                                                 float part, float *fill)
{
    u16 sums[4];
    for (int q = 0; q < 4; q++)
        sums[q] = sum_four(from, node_sums * (first + 4 * (size_t)q));
    const u16 low = __builtin_shufflevector(sums[0], sums[1], 0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const u16 high =
        __builtin_shufflevector(sums[2], sums[3], 0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const u16 all = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const f16 values = __builtin_convertvector((i16)all, f16) * part;
    memcpy(fill + first, &values, sizeof values);
    unsigned bits = 0;
    for (int n = 0; n < sk_column_group; n++)
        bits |= (unsigned)(fill[first + (size_t)n] != 0.0f) << n;
    return bits;
}

void sk_columns_read(const sk_columns *columns, int row, int stops, float part, float *fill)
{
    const int back = columns->axis[1] < 0 ? 0 : 1, groups = (int)columns->length / sk_column_group;
    const int rows[4] = {row, row - back, row - columns->rows, row - columns->rows - back};
    const uint32_t *from[4];
    const uint8_t *touched[4];
    for (int c = 0; c < 4; c++) {
        from[c] = columns->rooms + node_sums * (size_t)rows[c] * columns->length;
        touched[c] = columns->touched + (size_t)rows[c] * (size_t)groups;
    }
    for (int g = 0; g < groups; g++) {
        const size_t first = (size_t)g * sk_column_group;
        unsigned empty = 0xffff;
        if (touched[0][g] | touched[1][g] | touched[2][g] | touched[3][g]) {
            empty = ~read_group(from, first, part, fill) & 0xffff;
        } else {
            /* Without particles, only the first node may hold anything. */
            const size_t at = node_sums * first;
            memset(fill + first, 0, sk_column_group * sizeof *fill);
            fill[first] = (float)(from[0][at] + from[1][at + 1] + from[2][at + 2] + from[3][at + 3]) * part;
        }
        if (stops && empty & empty >> 1 & empty >> 2 & empty >> 3)
            return;
    }
}

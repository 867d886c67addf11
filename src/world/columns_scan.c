/* Particles added to columns, four at a time. */
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "defs/structs.h"
#include "world/columns.h"

typedef int32_t i4 __attribute__((vector_size(16)));
typedef uint32_t u4 __attribute__((vector_size(16)));

enum { node_sums = 4, group_bits = 4, batch_fours = 64 };

/* Adding it to a float below 2^22 leaves the nearest whole number in the low bits. */
static const float rounder = 12582912.0f;

/* Constants of a pass over the particles. Axes: along the slabs, across them, up. */
typedef struct sk_scan {
    int axis[3];         /* of the domain; 2 for that across in 2D */
    f4 scale, offset[3]; /* distance from the middle between the first two nodes = position (m) * scale + offset */
    f4 from;             /* first plane of the slab */
    u4 end[3];           /* bits of the number of intervals, from that plane */
    int rows;            /* of a plane */
    int length;          /* intervals of a row; 1 if no level is measured */
    int group_shift;     /* of intervals to groups, or to rows if no level is measured */
    int height_from;     /* intervals before it belong to the slab before, where height probes are concerned */
    const uint8_t *near; /* of the slab's first group */
    uint32_t *sums;      /* of this part; NULL if no level is measured */
    uint8_t *touched;
    uint32_t *heights;
} sk_scan;

static inline __attribute__((always_inline)) f4 splat(float value)
{
    return (f4){value, value, value, value};
}

static sk_scan begin_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part)
{
    const sk_grid *grid = &step->grid;
    const int levels = columns->level_count > 0, length = levels ? (int)columns->length : 1;
    const size_t groups = levels ? columns->length / sk_column_group : 1;
    sk_scan scan = {.axis = {columns->axis[0], columns->axis[1] < 0 ? 2 : columns->axis[1], step->up_axis},
                    .scale = splat((float)(1.0 / grid->cell_size)),
                    .from = splat((float)slab->from),
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
        scan.offset[a] = splat((float)(-grid->low[scan.axis[a]] / grid->cell_size));
        scan.end[a] = (u4)splat((float)(a == 0                                      ? slab->to + 1 - slab->from
                                        : scan.axis[a] == 2 && grid->dimension == 2 ? 1
                                                                                    : grid->cells[scan.axis[a]] + 1));
    }
    return scan;
}

static inline __attribute__((always_inline)) void transpose(const f4 in[4], f4 out[4])
{
    const f4 low[2] = {__builtin_shufflevector(in[0], in[1], 0, 4, 1, 5),
                       __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5)};
    const f4 high[2] = {__builtin_shufflevector(in[0], in[1], 2, 6, 3, 7),
                        __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7)};
    out[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    out[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    out[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    out[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
}

/* Places of four particles among the nodes. */
typedef struct sk_places {
    f4 beyond[3]; /* the middle of the interval along each axis, -0.5 to 0.5 */
    i4 at;        /* interval in the slab; -1 = outside of it */
} sk_places;

/* A domain has less than 2^22 cells along an axis, so nodes are exact in floats; the intervals of a slab are more. */
static inline __attribute__((always_inline)) void find_places(const sk_scan *scan, const sk_particle four[4],
                                                              sk_places *places)
{
    const f4 records[4] = {f4_load(four[0].position), f4_load(four[1].position), f4_load(four[2].position),
                           f4_load(four[3].position)};
    f4 x[4], node[3], rounded[3];
    i4 outside = {0, 0, 0, 0};
    transpose(records, x);

    /* The bits of negative floats, read as whole numbers, are larger than those of the end. */
    for (int a = 0; a < 3; a++) {
        f4 g = x[scan->axis[a]] * scan->scale + scan->offset[a];
        g = a ? g : g - scan->from;
        outside |= (i4)((u4)(g + 0.5f) >= scan->end[a]);
        rounded[a] = g + rounder;
        node[a] = rounded[a] - rounder;
        places->beyond[a] = g - node[a];
    }
    const i4 base = (i4)splat(rounder), row = ((i4)rounded[0] - base) * scan->rows + ((i4)rounded[1] - base);
    places->at = (scan->sums ? row * scan->length + ((i4)rounded[2] - base) : row * scan->length) | outside;
    if ((four[0].flags | four[1].flags | four[2].flags | four[3].flags) & SK_PARTICLE_DEAD)
        for (int lane = 0; lane < 4; lane++)
            places->at[lane] = four[lane].flags & SK_PARTICLE_DEAD ? -1 : places->at[lane];
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

/* The eight parts of each of four particles, below and above in the four columns around it. */
static inline __attribute__((always_inline)) void weigh(const sk_places *places, u4 below[4], u4 above[4])
{
    const float unit = sk_column_unit;
    const f4 b = places->beyond[1] + 0.5f, up = places->beyond[2] + 0.5f, half = splat(0.5f * unit);
    const f4 far = half + places->beyond[0] * unit, near = half - places->beyond[0] * unit;
    const f4 next = far * b, right = near * b;
    const f4 weight[4] = {near - right, right, far - next, next};
    f4 lower[4], upper[4];
    for (int c = 0; c < 4; c++) {
        const u4 all = (u4)(weight[c] + rounder), top = (u4)(weight[c] * up + rounder);
        lower[c] = (f4)(all - top);
        upper[c] = (f4)(top - (u4)splat(rounder));
    }
    f4 by_particle[4];
    transpose(lower, by_particle);
    for (int p = 0; p < 4; p++)
        below[p] = (u4)by_particle[p];
    transpose(upper, by_particle);
    for (int p = 0; p < 4; p++)
        above[p] = (u4)by_particle[p];
}

static inline __attribute__((always_inline)) void add_to_levels(const sk_scan *scan, const sk_places *places)
{
    u4 below[4], above[4];
    weigh(places, below, above);
    for (int p = 0; p < 4; p++) {
        if (places->at[p] < 0)
            continue;
        const size_t at = (size_t)places->at[p];
        u4 *to = (u4 *)(void *)(scan->sums + node_sums * at);
        to[0] += below[p];
        to[1] += above[p];
        scan->touched[at >> group_bits] = 1;
    }
}

/* Particles that some height probe may be near. */
static __attribute__((noinline)) void add_near(const sk_columns *columns, const sk_step *step, const sk_scan *scan,
                                               const sk_particle four[4], i4 at)
{
    for (int p = 0; p < 4; p++)
        if (at[p] >= scan->height_from && scan->near[at[p] >> scan->group_shift])
            add_to_heights(columns, step, &four[p], scan->near[at[p] >> scan->group_shift], scan->heights);
}

static inline __attribute__((always_inline)) void add_four(const sk_columns *columns, const sk_step *step,
                                                           const sk_scan *scan, const sk_particle four[4],
                                                           const sk_places *places)
{
    const i4 group = (places->at & ~(places->at >> 31)) >> scan->group_shift;
    if (scan->near[group[0]] | scan->near[group[1]] | scan->near[group[2]] | scan->near[group[3]])
        add_near(columns, step, scan, four, places->at);
    if (scan->sums)
        add_to_levels(scan, places);
}

/* Places are found for a batch before any is added: the processor overlaps more of them. */
static void add_batch(const sk_columns *columns, const sk_step *step, const sk_scan *scan, const sk_particle *records,
                      int fours)
{
    sk_places places[batch_fours];
    for (int n = 0; n < fours; n++)
        find_places(scan, &records[4 * n], &places[n]);
    for (int n = 0; n < fours; n++)
        add_four(columns, step, scan, &records[4 * n], &places[n]);
}

void sk_columns_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part)
{
    const sk_scan scan = begin_scan(columns, step, slab, part);
    const sk_particle *records = step->particles.records;
    const int64_t count = step->particles.count, end = count * (part + 1) / columns->parts;
    int64_t p = count * part / columns->parts;
    for (int64_t fours = (end - p) / 4; fours > 0; fours = (end - p) / 4) {
        fours = fours < batch_fours ? fours : batch_fours;
        add_batch(columns, step, &scan, &records[p], (int)fours);
        p += 4 * fours;
    }

    /* The rest, filled up. */
    sk_particle last[4];
    memset(last, 0, sizeof last);
    for (int n = 0; n < 4; n++)
        if (p + n < end)
            last[n] = records[p + n];
        else
            last[n].flags = SK_PARTICLE_DEAD;
    add_batch(columns, step, &scan, last, 1);
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
            memset(columns->rooms + node_sums * (first + group) * sk_column_group, 0,
                   group_reach(group, groups) * sizeof *columns->rooms);
            columns->touched[first + group] = 0;
        }
}

void sk_columns_read(const sk_columns *columns, int row, int stops, float part, float *fill)
{
    const int back = columns->axis[1] < 0 ? 0 : 1, groups = (int)columns->length / sk_column_group;
    const int rows[4] = {row, row - back, row - columns->rows, row - columns->rows - back};
    const uint32_t *from[4];
    const uint8_t *touched[4];
    for (int c = 0; c < 4; c++) {
        from[c] = columns->rooms + node_sums * (size_t)rows[c] * columns->length + c;
        touched[c] = columns->touched + (size_t)rows[c] * (size_t)groups;
    }
    int empty = 0;
    for (int g = 0; g < groups && !(stops && empty >= sk_column_stop); g++) {
        const int first = g * sk_column_group;
        const int any = touched[0][g] | touched[1][g] | touched[2][g] | touched[3][g];
        /* Without particles, only the first node may hold anything. */
        if (!any)
            memset(fill + first, 0, sk_column_group * sizeof *fill);
        for (int n = first; n < first + (any ? sk_column_group : 1) && !(stops && empty >= sk_column_stop); n++) {
            const size_t at = node_sums * (size_t)n;
            const uint32_t sum = from[0][at] + from[1][at] + from[2][at] + from[3][at];
            fill[n] = (float)sum * part;
            empty = sum ? 0 : empty + 1;
        }
        empty = any ? empty : sk_column_group;
    }
}

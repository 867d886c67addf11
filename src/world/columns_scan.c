/* Particles added to columns: places are found for vectors of lanes, weights one particle at a time. */
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "defs/structs.h"
#include "world/columns.h"

typedef uint32_t u4 __attribute__((vector_size(16))); /* two nodes of two columns beside an interval, or four nodes */
typedef uint32_t u4_memory __attribute__((vector_size(16), aligned(4)));

enum { group_bits = 4, batch_most = 128 };

static const float rounder = SK_COLUMN_ROUNDER;

/* Constants of a pass over the particles. Axes: along the slabs, across them, up. */
typedef struct sk_scan {
    sk_column_frame frame;  /* of all planes */
    int axis[3];            /* those of the frame */
    float scale, offset[3]; /* likewise */
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
    sk_column_tile *tile;
    uint32_t full; /* parts of a full node, for particles that stand for liquid around them; 0 = they are themselves */
    int next[4];   /* rows from that of an interval to those of its four columns */
} sk_scan;

static sk_scan begin_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part)
{
    const sk_column_frame frame = sk_columns_frame(columns, step);
    const int levels = columns->level_count > 0, length = levels ? (int)columns->length : 1;
    const size_t groups = levels ? columns->length / sk_column_group : 1;
    sk_scan scan = {.frame = frame,
                    .scale = frame.scale,
                    .from = (float)slab->from,
                    .rows = columns->rows,
                    .length = length,
                    .group_shift = levels ? group_bits : 0,
                    .height_from = slab->from ? columns->rows * length : 0,
                    .near = columns->near + (size_t)slab->from * (size_t)columns->rows * groups,
                    .heights = columns->heights + (size_t)part * columns->height_room};
    if (levels) {
        const int back = columns->axis[1] < 0 ? 0 : 1;
        scan.sums = columns->rooms + (size_t)part * columns->room;
        scan.tile = &columns->tiles[part];
        for (int c = 0; c < 4; c++)
            scan.next[c] = (c >> 1) * columns->rows + (c & 1) * back;
        scan.touched = columns->touched + (size_t)part * columns->room / sk_column_group;
    }
    for (int a = 0; a < 3; a++) {
        scan.axis[a] = frame.axis[a];
        scan.offset[a] = frame.offset[a];
        scan.end[a] = a == 0 ? (float)(slab->to + 1 - slab->from) : frame.end[a];
    }
    return scan;
}

/* Places of particles among the nodes, and what they add to the sums of their intervals. */
typedef struct sk_places {
    float parts[batch_most][sk_interval_sums];
    int32_t at[batch_most];      /* interval in the slab; -1 = outside of it */
    int32_t in_tile[batch_most]; /* interval in the tile; -1 = outside of it */
} sk_places;

/* Are there dead particles among SK_WIDE of them? A record has eight words, the last of which are the flags. */
static inline __attribute__((always_inline)) int any_dead(const sk_particle *records)
{
    const int32_t *words = (const int32_t *)(const void *)records;
    iw flags = iw_splat(0), part;
    for (int n = 0; n < 8; n++) {
        memcpy(&part, words + (size_t)n * SK_WIDE, sizeof part);
        flags |= part;
    }
    return (flags[7] | flags[SK_WIDE - 1]) & SK_PARTICLE_DEAD;
}

/* Marks dead particles among `lanes` as outside. */
static inline __attribute__((always_inline)) void leave_out_dead(const sk_particle *records, int lanes, sk_places *to,
                                                                 int first)
{
    if (lanes == SK_WIDE && !any_dead(records))
        return;
    for (int l = 0; l < lanes; l++)
        if (records[l].flags & SK_PARTICLE_DEAD)
            to->at[first + l] = to->in_tile[first + l] = -1;
}

/* --- Tiles --- */

/* The sums of nodes of a row from `node` on, which are cleared if it is the first time. */
static inline uint32_t *touch_nodes(const sk_scan *scan, int row, int node, int count)
{
    const size_t first = (size_t)row * (size_t)scan->length + (size_t)node;
    for (size_t group = first >> group_bits; group <= (first + (size_t)count - 1) >> group_bits; group++)
        if (!scan->touched[group]) {
            memset(scan->sums + (group << group_bits), 0, sk_column_group * sizeof *scan->sums);
            scan->touched[group] = 1;
        }
    return scan->sums + first;
}

/* The height probes near an interval: see sk_columns.near. */
static inline int find_near(const sk_scan *scan, int at)
{
    return at >= scan->height_from ? scan->near[at >> scan->group_shift] : 0;
}

/* Adds the parts of a particle outside of the tile. */
static void add_alone(const sk_scan *scan, int at, const uint32_t *parts)
{
    const int row = at / scan->length, node = at % scan->length;
    for (int c = 0; c < 4; c++) {
        uint32_t *to = touch_nodes(scan, row + scan->next[c], node, 2);
        to[0] += parts[4 * (c >> 1) + (c & 1)];
        to[1] += parts[4 * (c >> 1) + (c & 1) + 2];
    }
}

/* Adds a row of the tile to the nodes of its two columns, and clears it. */
static void empty_row(const sk_scan *scan, int row, u4 *sums)
{
    enum { nodes = sk_tile_intervals + 1 };
    uint32_t *const to[2] = {touch_nodes(scan, row, scan->tile->from[2], nodes),
                             touch_nodes(scan, row + scan->next[1], scan->tile->from[2], nodes)};
    u4 before = {0};
    for (int n = 0; n < nodes; n += 4) {
        const u4 last = n + 3 < sk_tile_intervals ? sums[n + 3] : (u4){0};
        const u4 first_two = __builtin_shufflevector(sums[n], sums[n + 1], 0, 1, 4, 5) +
                             __builtin_shufflevector(before, sums[n], 2, 3, 6, 7),
                 last_two = __builtin_shufflevector(sums[n + 2], last, 0, 1, 4, 5) +
                            __builtin_shufflevector(sums[n + 1], sums[n + 2], 2, 3, 6, 7);
        before = last;
        *(u4_memory *)(to[0] + n) += __builtin_shufflevector(first_two, last_two, 0, 2, 4, 6);
        *(u4_memory *)(to[1] + n) += __builtin_shufflevector(first_two, last_two, 1, 3, 5, 7);
    }
    memset(sums, 0, sk_tile_intervals * sizeof *sums);
}

static void empty_tile(const sk_scan *scan)
{
    enum { rows = sk_tile_intervals * sk_tile_intervals };
    sk_column_tile *tile = scan->tile;
    for (int r = 0; tile->open && r < rows + sk_tile_intervals; r++) {
        const int used = (r < rows && tile->used[r]) | (r >= sk_tile_intervals && tile->used[r - sk_tile_intervals]);
        if (!used)
            continue;
        const int row = (tile->from[0] + r / sk_tile_intervals) * scan->rows + tile->from[1] + r % sk_tile_intervals;
        empty_row(scan, row, (u4 *)(void *)tile->sums[r * sk_tile_intervals]);
    }
    memset(tile->used, 0, sizeof tile->used);
    tile->open = 0;
}

/* Lays the empty tile with its first interval at `from`, or before it where its nodes would leave the row. Marks its
 * rows near height probes. */
static void lay_tile(const sk_scan *scan, const int from[3])
{
    sk_column_tile *tile = scan->tile;
    const int last = scan->length - (sk_tile_intervals + 1);
    for (int a = 0; a < 3; a++)
        tile->from[a] = from[a] > 0 ? from[a] : 0;
    tile->from[2] = tile->from[2] < last ? tile->from[2] : last;
    for (int r = 0; r < sk_tile_intervals * sk_tile_intervals; r++) {
        const int i = tile->from[0] + r / sk_tile_intervals, j = tile->from[1] + r % sk_tile_intervals;
        const int inside = (float)i < scan->end[0] && (float)j < scan->end[1];
        tile->near[r] = inside ? find_near(scan, (i * scan->rows + j) * scan->length) : 0;
    }
    tile->open = 1;
}

/* Lays the tile around the first particle of a batch, unless that is in it already. Particles are sorted by block and
 * cell, so the others of its block lie ahead. */
static void place_tile(const sk_scan *scan, const int first[3], int at)
{
    const sk_column_tile *tile = scan->tile;
    int inside = tile->open;
    for (int a = 0; a < 3; a++)
        inside &= first[a] >= tile->from[a] && first[a] < tile->from[a] + sk_tile_intervals;
    if (inside || at < 0)
        return;
    empty_tile(scan);
    lay_tile(scan, (const int[3]){first[0] - 1, first[1] - 1, first[2] - 1});
}

/* --- Particles --- */

/* Finds the eight parts of a particle: in the two columns before it along the slabs, below and then above it, and the
 * same in those behind it. `beyond` is the distance from the middle of the interval along each axis, -0.5 to 0.5. */
static inline __attribute__((always_inline)) void find_parts(const fw beyond[3], fw parts[2][4])
{
    const fw far[2] = {(0.5f - beyond[0]) * (float)sk_column_unit, (0.5f + beyond[0]) * (float)sk_column_unit};
    const fw next[2] = {0.5f - beyond[1], 0.5f + beyond[1]}, up = beyond[2] + 0.5f;
    for (int c = 0; c < 4; c++) {
        const fw weight = far[c >> 1] * next[c & 1];
        const iw upper = (iw)(weight * up + rounder);
        parts[c >> 1][c & 1] = (fw)((iw)(weight + rounder) - upper);
        parts[c >> 1][(c & 1) + 2] = (fw)(upper - (iw)fw_splat(rounder));
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
    if (scan->sums) {
        if (first == 0)
            place_tile(scan, (const int[3]){rounded[0][0], rounded[1][0], rounded[2][0]}, places->at[0]);
        iw here[3], within = iw_splat(-1);
        for (int a = 0; a < 3; a++) {
            here[a] = rounded[a] - scan->tile->from[a];
            within &= (here[a] >= 0) & (here[a] < sk_tile_intervals);
        }
        const iw in_tile = ((here[0] * sk_tile_intervals + here[1]) * sk_tile_intervals + here[2]) | ~(within & inside);
        memcpy(places->in_tile + first, &in_tile, sizeof in_tile);
        fw parts[2][4];
        find_parts(beyond, parts);
        for (int c = 0; c < 4 && scan->full; c++)
            parts[0][c] = parts[1][c] = (fw)iw_splat((int)scan->full);
        fw_store_columns(places->parts[first], SK_WIDE, parts[0]);
        fw_store_columns(places->parts[first] + 4, SK_WIDE, parts[1]);
    }
    leave_out_dead(records, lanes, places, first);
}

/* Adds a particle to the columns of the height probes that are near it: probe `near` - 1, or any if it is `several`. */
static void add_to_heights(const sk_columns *columns, const sk_step *step, const sk_scan *scan,
                           const sk_particle *particle, int near)
{
    const int first = near == sk_several_probes ? 0 : near - 1,
              end = near == sk_several_probes ? step->scene->probe_count : near;
    const uint32_t full = scan->full;
    for (int p = first; p < end; p++) {
        uint32_t parts[2];
        const int node = sk_column_height_part(&scan->frame, particle->position, columns->middles[p], parts);
        uint32_t *to = scan->heights + (size_t)p * columns->length + (size_t)node;
        to[0] += full && parts[0] + parts[1] ? full : parts[0];
        to[1] += full && parts[0] + parts[1] ? full : parts[1];
    }
}

/* Adds a batch to the levels, and lists its particles near height probes. Returns how many these are. */
static int add_all_to_levels(const sk_scan *scan, const sk_places *places, int count, uint8_t list[batch_most + 1])
{
    int near = 0;
    sk_column_tile *tile = scan->tile;
    for (int p = 0; p < count; p++) {
        const int32_t in_tile = places->in_tile[p];
        list[near] = (uint8_t)p;
        if (__builtin_expect(in_tile < 0, 0)) {
            const int32_t at = places->at[p];
            if (at < 0)
                continue;
            add_alone(scan, at, (const uint32_t *)(const void *)places->parts[p]);
            near += find_near(scan, at) != 0;
            continue;
        }
        /* Halves: the processor forwards stored vectors only to loads of the same size. */
        u4 before, behind;
        memcpy(&before, places->parts[p], sizeof before);
        memcpy(&behind, places->parts[p] + 4, sizeof behind);
        u4 *sums = (u4 *)(void *)tile->sums[in_tile];
        sums[0] += before;
        sums[sk_tile_intervals * sk_tile_intervals] += behind;
        const unsigned row = (unsigned)in_tile / sk_tile_intervals;
        tile->used[row] = 1;
        near += tile->near[row] != 0;
    }
    return near;
}

/* Places are found for a batch before any is added: the processor overlaps more of them. */
static void add_batch(const sk_columns *columns, const sk_step *step, const sk_scan *scan, const sk_particle *records,
                      int count)
{
    sk_places places;
    uint8_t list[batch_most + 1];
    int listed = 0;
    for (int n = 0; n < count; n += SK_WIDE)
        find_places(scan, records + n, count - n < SK_WIDE ? count - n : SK_WIDE, n, &places);
    if (scan->sums)
        listed = add_all_to_levels(scan, &places, count, list);
    else
        for (int p = 0; p < count; p++) {
            list[listed] = (uint8_t)p;
            listed += places.at[p] >= 0 && find_near(scan, places.at[p]);
        }
    for (int n = 0; n < listed; n++)
        add_to_heights(columns, step, scan, &records[list[n]], find_near(scan, places.at[list[n]]));
}

static void add_particles(const sk_columns *columns, const sk_step *step, const sk_scan *scan,
                          const sk_particle *records, int64_t count)
{
    for (int64_t p = 0; p < count; p += batch_most)
        add_batch(columns, step, scan, &records[p], (int)(count - p < batch_most ? count - p : batch_most));
}

void sk_columns_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int part,
                     const sk_particle *records, int64_t count)
{
    const sk_scan scan = begin_scan(columns, step, slab, part);
    add_particles(columns, step, &scan, records, count);
    if (scan.tile)
        empty_tile(&scan);
}

/* Lays the tile over a block's particles. Along axes where they reach further than a tile, batches place it. */
static void lay_over_block(const sk_scan *scan, const sk_moved_block *block)
{
    int from[3];
    for (int a = 0; a < 3; a++) {
        const int d = scan->axis[a];
        const float low = block->low[d] * scan->scale + scan->offset[a],
                    high = block->high[d] * scan->scale + scan->offset[a];
        if (!(low > -2.0f && high - low < sk_tile_intervals - 1.01f))
            return;
        from[a] = (int)(low + 0.49f);
    }
    lay_tile(scan, from);
}

/* Adds the cells of a row surely inside the liquid, each by its first particle: the nodes around it are full. */
static void add_full_row(const sk_columns *columns, const sk_step *step, sk_scan *scan, const uint32_t *start)
{
    enum { cells = 8 };
    sk_particle firsts[SK_WIDE];
    int count = 0;
    for (int c = 0; c < cells; c++)
        if (start[c] < start[c + 1])
            firsts[count++] = step->particles.records[start[c]];
    if (!count)
        return;
    scan->full = (uint32_t)(step->particles_per_cell * sk_column_unit);
    add_batch(columns, step, scan, firsts, count);
    scan->full = 0;
}

void sk_columns_scan_block(const sk_columns *columns, const sk_step *step, int part, const sk_moved_block *block)
{
    const sk_slab all = {0, step->grid.cells[columns->axis[0]]};
    sk_scan scan = begin_scan(columns, step, &all, part);
    if (!columns->deep.capacity) {
        add_particles(columns, step, &scan, block->records, block->count);
        if (scan.tile)
            empty_tile(&scan);
        return;
    }

    /* Rows of cells along x that are not surely inside the liquid, as many at a time as follow each other. */
    enum { rows = 64 };
    const uint32_t *start = step->grid.cell_start + (size_t)(block->slot - 1) * (size_t)step->grid.block_cells;
    const sk_particle *records = step->particles.records;
    const uint64_t deep = sk_deep_rows(&columns->deep, block->slot);
    lay_over_block(&scan, block);
    for (int row = 0, next; row < rows; row = next) {
        next = row + 1;
        if (deep >> row & 1) {
            add_full_row(columns, step, &scan, start + 8 * row);
            continue;
        }
        while (next < rows && !(deep >> next & 1))
            next++;
        add_particles(columns, step, &scan, records + start[8 * row], (int64_t)start[8 * next] - start[8 * row]);
    }
    empty_tile(&scan);
}

void sk_columns_join(const sk_columns *columns, int row)
{
    const size_t groups = columns->length / sk_column_group, first = (size_t)row * groups;
    for (int part = 1; part < columns->parts; part++) {
        uint8_t *touched = columns->touched + (size_t)part * columns->room / sk_column_group + first;
        for (size_t group = 0; group < groups; group++) {
            if (!touched[group])
                continue;
            uint32_t *restrict to = columns->rooms + (first + group) * sk_column_group;
            const uint32_t *restrict from = to + (size_t)part * columns->room;
            const int adds = columns->touched[first + group];
            for (size_t n = 0; n < sk_column_group; n++)
                to[n] = adds ? to[n] + from[n] : from[n];
            touched[group] = 0;
            columns->touched[first + group] = 1;
        }
    }
}

void sk_columns_read(const sk_columns *columns, int row, int stops, float part, float *fill)
{
    const size_t groups = columns->length / sk_column_group, first = (size_t)row * groups;
    for (size_t g = 0; g < groups; g++, fill += sk_column_group) {
        unsigned empty = 0xffff;
        if (columns->added_nodes || columns->touched[first + g]) {
            const uint32_t *sums =
                (columns->added_nodes ? columns->added_nodes : columns->rooms) + (first + g) * sk_column_group;
            for (int n = 0; n < sk_column_group; n++)
                fill[n] = (float)(int32_t)sums[n] * part;
            empty = i8_bits(f8_load(fill) == 0.0f) | i8_bits(f8_load(fill + 8) == 0.0f) << 8;
        } else {
            memset(fill, 0, sk_column_group * sizeof *fill);
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

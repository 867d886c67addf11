#include "world/columns.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/simd.h"
#include "defs/structs.h"

/* The open share of the kernel around a cell's centre beside obstacles, over that beside walls alone. The share of
 * solids includes both. */
static float open_beside_obstacles(const sk_step *step, const int cell[3])
{
    const sk_grid *grid = &step->grid;
    int slot;
    size_t local = sk_grid_find_cell(grid, cell, &slot);
    float solid = step->solids.blurred[(size_t)step->solids.block_slot[slot] * (size_t)grid->block_cells + local],
          walls = 1.0f;
    for (int d = 0; d < grid->dimension; d++) {
        int i = cell[d] - grid->padding[d];
        walls *= 1.0f - (i == 0 && step->solids.walls[2 * d] != SELKIE_WALL_OPEN ? 0.125f : 0.0f) -
                 (i == grid->cells[d] - 1 && step->solids.walls[2 * d + 1] != SELKIE_WALL_OPEN ? 0.125f : 0.0f);
    }
    return fminf(fmaxf((1.0f - solid) / walls, 0.05f), 1.0f);
}

/* --- One pass over the particles --- */

/* Sums are whole numbers, parts of a particle: they do not depend on the order of the particles or on the threads. */
enum { unit = 1 << 16, most_parts = 8, several = 255 };

/* Columns whose sums are kept at a time: some planes of cells along axis[0], with one more on each side. */
typedef struct sk_slab {
    int from, to; /* planes that are measured */
    size_t plane; /* nodes of a plane */
} sk_slab;

static int columns_across(const sk_columns *columns, const sk_grid *grid)
{
    return columns->axis[1] < 0 ? 1 : grid->cells[columns->axis[1]];
}

/* With one column more on each side. */
static size_t plane_nodes(const sk_columns *columns, const sk_grid *grid)
{
    return (columns->axis[1] < 0 ? 1 : (size_t)grid->cells[columns->axis[1]] + 2) * columns->length;
}

typedef int32_t i4 __attribute__((vector_size(16)));

/* Constants of a pass over the particles. Axes: along the slabs, across them, up. */
typedef struct sk_scan {
    int axis[3];         /* of the domain; 2 for that across in 2D */
    float low[3];        /* m */
    float inverse;       /* 1/m */
    float end[3];        /* nodes: cell centres, one more before and one behind the domain */
    float plane, length; /* nodes */
    float row;           /* marks of columns near height probes, of a plane */
    float from, to;      /* planes of the slab, the last one included */
} sk_scan;

static sk_scan begin_scan(const sk_columns *columns, const sk_step *step, const sk_slab *slab)
{
    const sk_grid *grid = &step->grid;
    sk_scan scan = {.axis = {columns->axis[0], columns->axis[1] < 0 ? 2 : columns->axis[1], step->up_axis},
                    .inverse = (float)(1.0 / grid->cell_size),
                    .plane = (float)slab->plane,
                    .length = columns->axis[1] < 0 ? 0.0f : (float)columns->length,
                    .row = (float)(columns_across(columns, grid) + 1),
                    .from = (float)slab->from,
                    .to = (float)(slab->to + 1)};
    for (int a = 0; a < 3; a++) {
        scan.low[a] = (float)grid->low[scan.axis[a]];
        scan.end[a] = (float)(grid->cells[scan.axis[a]] + 1);
    }
    if (columns->axis[1] < 0) { /* all in the middle of one cell */
        scan.low[1] = 0.0f;
        scan.end[1] = 1.0f;
    }
    return scan;
}

enum { batch_size = 256 };

/* Places of some particles among the nodes, four at a time. */
typedef struct sk_batch {
    i4 low, high;               /* nodes along up between which all are */
    float share[3][batch_size]; /* of the next node along each axis */
    int32_t node[batch_size];   /* in the slab; -1 = outside of it */
    int32_t column[batch_size]; /* mark; 0 = outside */
} sk_batch;

static inline f4 f4_where(i4 mask, f4 value)
{
    return (f4)((i4)value & mask);
}

/* Positions of four particles: lane by axis becomes axis by lane. */
static inline void transpose(const f4 in[4], f4 out[4])
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

/* Indices of nodes are exact in floats: slabs have less than 2^24. */
static void find_nodes(const sk_scan *scan, const sk_particle four[4], int n, sk_batch *batch)
{
    const f4 rows[4] = {f4_load(four[0].position), f4_load(four[1].position), f4_load(four[2].position),
                        f4_load(four[3].position)};
    f4 x[4], node[3];
    i4 within = {-1, -1, -1, -1};
    transpose(rows, x);
    if ((four[0].flags | four[1].flags | four[2].flags | four[3].flags) & SK_PARTICLE_DEAD)
        for (int lane = 0; lane < 4; lane++)
            within[lane] = four[lane].flags & SK_PARTICLE_DEAD ? 0 : -1;

    /* Coordinates in nodes, and the shares of the next nodes. */
    f4 g[3];
    for (int a = 0; a < 3; a++) {
        g[a] = (x[scan->axis[a]] - scan->low[a]) * scan->inverse + 0.5f;
        within &= (g[a] >= 0.0f) & (g[a] < scan->end[a]);
    }
    for (int a = 0; a < 3; a++) {
        g[a] = f4_where(within, g[a]);
        node[a] = __builtin_convertvector(__builtin_convertvector(g[a], i4), f4);
        f4_store(&batch->share[a][n], g[a] - node[a]);
    }

    /* Indices, and the nodes that hold something. */
    const i4 inside = within & (node[0] >= scan->from) & (node[0] < scan->to);
    const f4 index = (node[0] - scan->from) * scan->plane + node[1] * scan->length + node[2];
    const i4 at = (__builtin_convertvector(f4_where(inside, index), i4)) | ~inside;
    const i4 column = __builtin_convertvector(node[0] * scan->row + node[1] + 1.0f, i4) & within;
    const i4 up = __builtin_convertvector(node[2], i4);
    memcpy(&batch->node[n], &at, sizeof at);
    memcpy(&batch->column[n], &column, sizeof column);
    const i4 lower = (up < batch->low) & within, upper = (up > batch->high) & within;
    batch->low = (up & lower) | (batch->low & ~lower);
    batch->high = (up & upper) | (batch->high & ~upper);
}

/* Adds a particle to the columns of the height probes that are near it: probe `near` - 1, or any if it is `several`. */
static void add_to_heights(const sk_columns *columns, const sk_step *step, const sk_particle *particle, int near,
                           uint32_t *sums)
{
    const sk_grid *grid = &step->grid;
    const int up = step->up_axis, first = near == several ? 0 : near - 1,
              end = near == several ? step->scene->probe_count : near;
    const float inverse = (float)(1.0 / grid->cell_size);
    float g[3];
    for (int d = 0; d < 3; d++)
        g[d] = (particle->position[d] - (float)grid->low[d]) * inverse + 0.5f;
    const int node = (int)g[up];
    for (int p = first; p < end; p++) {
        const float *middle = columns->middles[p];
        float weight = (float)unit * middle[3];
        for (int a = 0; a < step->dimension - 1; a++)
            weight *= fmaxf(1.0f - fabsf(g[columns->axis[a]] - middle[columns->axis[a]]), 0.0f);
        uint32_t *to = sums + (size_t)p * columns->length + (size_t)node;
        const uint32_t all = (uint32_t)(weight + 0.5f), upper = (uint32_t)(weight * (g[up] - (float)node) + 0.5f);
        to[0] += all - upper;
        to[1] += upper;
    }
}

/* Adds four particles to the four columns around each (two in 2D). The four sums of a node are those of the particles
 * between it and the next ones along both axes: a particle needs two vectors of a cache line. */
static void add_to_levels(const sk_batch *batch, int n, uint32_t *nodes)
{
    const f4 a = f4_load(&batch->share[0][n]), b = f4_load(&batch->share[1][n]), up = f4_load(&batch->share[2][n]);
    const f4 near = (1.0f - a) * (float)unit, far = a * (float)unit;
    const f4 weight[4] = {near * (1.0f - b), near * b, far * (1.0f - b), far * b};
    f4 lower[4], upper[4];
    for (int c = 0; c < 4; c++) {
        const i4 top = __builtin_convertvector(weight[c] * up + 0.5f, i4);
        upper[c] = (f4)top;
        lower[c] = (f4)(__builtin_convertvector(weight[c] + 0.5f, i4) - top);
    }
    f4 by_particle[2][4];
    transpose(lower, by_particle[0]);
    transpose(upper, by_particle[1]);
    for (int p = 0; p < 4; p++) {
        if (batch->node[n + p] < 0)
            continue;
        i4 here[2];
        uint32_t *to = nodes + 4 * (size_t)batch->node[n + p];
        memcpy(here, to, sizeof here);
        here[0] += (i4)by_particle[0][p];
        here[1] += (i4)by_particle[1][p];
        memcpy(to, here, sizeof here);
    }
}

/* Some particles, at most a batch. */
static void scan_batch(const sk_columns *columns, const sk_step *step, const sk_scan *scan, const sk_particle *records,
                       int count, int heights, int part, sk_batch *batch)
{
    sk_particle last[4] = {{.flags = SK_PARTICLE_DEAD},
                           {.flags = SK_PARTICLE_DEAD},
                           {.flags = SK_PARTICLE_DEAD},
                           {.flags = SK_PARTICLE_DEAD}};
    memcpy(last, records + count / 4 * 4, (size_t)(count % 4) * sizeof *last);
    for (int n = 0; n < count; n += 4)
        find_nodes(scan, n + 4 <= count ? records + n : last, n, batch);

    for (int n = 0; n < count && heights; n++) {
        const int near = columns->near[batch->column[n]];
        if (near)
            add_to_heights(columns, step, &records[n], near, columns->heights + (size_t)part * columns->height_room);
    }
    for (int n = 0; n < count && columns->level_count; n += 4)
        add_to_levels(batch, n, columns->rooms + 4 * (size_t)part * columns->room);
}

/* Particles of one part: adds them to its columns. */
static void scan_part(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int heights, int part)
{
    const sk_scan scan = begin_scan(columns, step, slab);
    const int64_t count = step->particles.count, end = count * (part + 1) / columns->parts;
    const int most = (int)columns->length;
    sk_batch batch;
    batch.low = (i4){most, most, most, most};
    batch.high = (i4){-1, -1, -1, -1};
    for (int64_t p = count * part / columns->parts; p < end; p += batch_size)
        scan_batch(columns, step, &scan, &step->particles.records[p],
                   (int)(end - p < batch_size ? end - p : batch_size), heights, part, &batch);
    int *span = &columns->spans[2 * part];
    span[0] = most;
    span[1] = -1;
    for (int lane = 0; lane < 4; lane++) {
        span[0] = batch.low[lane] < span[0] ? batch.low[lane] : span[0];
        span[1] = batch.high[lane] + 1 > span[1] ? batch.high[lane] + 1 : span[1];
    }
}

/* Adds the sums of the other parts to those of the first, and clears them. Each reaches over its span of nodes. */
static void join_parts(const sk_columns *columns, int threads)
{
    const int rows = (int)(columns->room / columns->length);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int row = 0; row < rows; row++)
        for (int part = 1; part < columns->parts; part++) {
            uint32_t *restrict to = columns->rooms + 4 * (size_t)row * columns->length;
            uint32_t *restrict from = to + 4 * (size_t)part * columns->room;
            for (int i = 4 * columns->spans[2 * part]; i < 4 * (columns->spans[2 * part + 1] + 1); i++) {
                to[i] += from[i];
                from[i] = 0;
            }
        }
    for (int part = 1; part < columns->parts; part++) {
        const int *span = &columns->spans[2 * part];
        columns->spans[0] = span[0] < columns->spans[0] ? span[0] : columns->spans[0];
        columns->spans[1] = span[1] > columns->spans[1] ? span[1] : columns->spans[1];
    }
}

/* All sums are 0 between two measurements. */
static void clear_sums(const sk_columns *columns)
{
    const int low = columns->spans[0], high = columns->spans[1];
    const size_t rows = columns->room / columns->length;
    for (size_t row = 0; row < rows && high >= low; row++)
        memset(columns->rooms + 4 * (row * columns->length + (size_t)low), 0,
               4 * (size_t)(high - low + 1) * sizeof *columns->rooms);
}

/* --- One column --- */

/* The share of the kernel across a column that lies inside the domain: walls cut it. */
static float open_across(const sk_grid *grid, int up, const double at[3])
{
    float share = 1.0f;
    for (int d = 0; d < grid->dimension; d++) {
        if (d == up)
            continue;
        double g = (at[d] - grid->low[d]) / grid->cell_size, part = 1.0;
        for (int side = 0; side < 2; side++) {
            double distance = side ? grid->cells[d] - g : g;
            if (distance < 1.0)
                part -= 0.5 * (1.0 - distance) * (1.0 - distance);
        }
        share *= (float)part;
    }
    return share > 0.05f ? share : 0.05f;
}

/* The height (m) above `at`; `end` receives the cell of the surface, counted from below. */
static double follow_column(const sk_step *step, const double at[3], const float *column, int *end)
{
    const sk_grid *grid = &step->grid;
    const int sign = step->up_sign, up = step->up_axis;
    int cells = grid->cells[up];
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++)
        cell[d] =
            grid->padding[d] + (int)fmin(fmax(floor((at[d] - grid->low[d]) / grid->cell_size), 0), grid->cells[d] - 1);

    double start = (at[up] - grid->low[up]) / grid->cell_size;
    start = sign > 0 ? start : cells - start;
    int first = (int)fmin(fmax(floor(start), 0), cells - 1);

    /* Follow the fill from the start to the surface. */
    float before = 1.0f;
    for (int n = first; n < cells; n++) {
        int i = sign > 0 ? n : cells - 1 - n;
        cell[up] = grid->padding[up] + i;
        float fill = column[i + 1];
        if (step->solids.obstacle_count)
            fill /= open_beside_obstacles(step, cell);
        if (n == 0)
            fill += 0.125f; /* the floor cuts 1/8 of the hat, and counts as full */
        /* A thin cell under a full one is a hole in the liquid, not its surface. */
        int next = sign > 0 ? i + 1 : i - 1;
        if (fill < 0.5f && n > first && n + 1 < cells && column[next + 1] >= 0.5f)
            fill = 0.5f;
        *end = n;
        if (fill < 0.5f && n == 0) /* less than half a cell: a film with the depth of its mass over the floor */
            return fmax((double)(column[i] + column[i + 1] + column[i + 2]) - start, 0.0) * grid->cell_size;
        if (fill < 0.5f && n == first)
            return (double)(column[i + 1] + column[next + 1]) * 0.5 * grid->cell_size;
        if (fill < 0.5f) {
            /* A level surface at the fraction t of the way from the centre below to this one gives fills of 1 - (1 -
             * t)^2 / 2 and t^2 / 2. Their sum is 0.5 + t. It is linear, so noise of the fill does not bias the mean. */
            double crossing = n - 0.5 + fmin(fmax((double)before + (double)fill - 0.5, 0.0), 1.0);
            return (crossing - start) * grid->cell_size;
        }
        before = fill;
    }
    *end = cells;
    return (cells - start) * grid->cell_size;
}

double sk_column_height(const sk_columns *columns, const sk_step *step, int probe)
{
    const double *at = step->scene->probes[probe].at;
    const float full = (float)(step->particles_per_cell * unit) * open_across(&step->grid, step->up_axis, at);
    float *column = columns->walks;
    for (size_t n = 0; n < columns->length; n++) {
        uint32_t sum = 0;
        for (int part = 0; part < columns->parts; part++)
            sum += columns->heights[(size_t)part * columns->height_room + (size_t)probe * columns->length + n];
        column[n] = (float)sum / full;
    }
    int end;
    return follow_column(step, at, column, &end);
}

/* --- Mean over an area --- */

static void mark_near(uint8_t *mark, int probe)
{
    *mark = (uint8_t)(*mark || probe + 1 >= several ? several : probe + 1);
}

/* Marks the columns between nodes within a cell of a height probe. */
static void mark_heights(const sk_columns *columns, const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    const int rows = columns_across(columns, grid) + 1;
    for (int p = 0; p < step->scene->probe_count; p++) {
        const selkie_probe_def *def = &step->scene->probes[p];
        int from[2] = {0, 0}, to[2] = {0, 0};
        if (def->kind != SELKIE_PROBE_HEIGHT)
            continue;
        columns->middles[p][3] = 1.0f;
        for (int a = 0; a < grid->dimension - 1; a++) {
            const int d = columns->axis[a];
            const double g = (def->at[d] - grid->low[d]) / grid->cell_size + 0.5, most = grid->cells[d];
            columns->middles[p][d] = (float)g;
            from[a] = (int)fmin(fmax(floor(g - 1.001), 0.0), most);
            to[a] = (int)fmin(fmax(floor(g + 1.001), 0.0), most);
        }
        for (int i = from[0]; i <= to[0]; i++)
            for (int j = from[1]; j <= to[1]; j++)
                mark_near(&columns->near[1 + (size_t)i * (size_t)rows + (size_t)j], p);
    }
}

/* Slabs of a bounded size: more of them mean more passes over the particles. */
static void choose_slabs(sk_columns *columns, const sk_grid *grid)
{
    const size_t most_bytes = (size_t)32 << 20;
    const int planes = grid->cells[columns->axis[0]];
    const size_t plane = plane_nodes(columns, grid);
    columns->thickness = planes;
    while (columns->thickness > 1 && (size_t)(columns->thickness + 2) * plane * 4 * sizeof *columns->rooms > most_bytes)
        columns->thickness = (columns->thickness + 1) / 2;
    columns->room = (size_t)(columns->thickness + 2) * plane;
}

selkie_code sk_columns_init(sk_columns *columns, const sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const int up = step->up_axis, count = step->scene->probe_count;
    memset(columns, 0, sizeof *columns);
    columns->memory = step->memory;
    for (int p = 0; p < count; p++) {
        columns->level_count += step->scene->probes[p].kind == SELKIE_PROBE_LEVEL;
        columns->height_count += step->scene->probes[p].kind == SELKIE_PROBE_HEIGHT;
    }
    if (!columns->level_count && !columns->height_count)
        return SELKIE_OK;

    /* Slabs follow each other along the longer horizontal axis. */
    columns->axis[0] = up == 0 ? 1 : 0;
    columns->axis[1] = grid->dimension == 3 ? 3 - up - columns->axis[0] : -1;
    if (grid->dimension == 3 && grid->cells[columns->axis[1]] > grid->cells[columns->axis[0]]) {
        columns->axis[1] = columns->axis[0];
        columns->axis[0] = 3 - up - columns->axis[1];
    }
    columns->length = (size_t)(grid->cells[up] + 2);
    columns->parts = step->threads < most_parts ? step->threads : most_parts;
    choose_slabs(columns, grid);

    /* Sums of each part, and what the measuring needs. */
    const size_t planes = (size_t)grid->cells[columns->axis[0]];
    columns->height_room = (size_t)count * columns->length;
    columns->near = sk_allocate_zeroed(step->memory, 1 + (planes + 1) * (size_t)(columns_across(columns, grid) + 1));
    columns->middles = sk_allocate_zeroed(step->memory, (size_t)count * sizeof *columns->middles);
    columns->spans = sk_allocate(step->memory, (size_t)columns->parts * 2 * sizeof *columns->spans);
    columns->walks = sk_allocate(step->memory, (size_t)step->threads * columns->length * sizeof *columns->walks);
    columns->heights = sk_allocate(step->memory, (size_t)columns->parts * columns->height_room * sizeof(uint32_t));
    columns->levels = sk_allocate(step->memory, (size_t)count * sizeof *columns->levels);
    if (columns->level_count) {
        columns->rooms =
            sk_allocate_zeroed(step->memory, (size_t)columns->parts * columns->room * 4 * sizeof *columns->rooms);
        columns->sums = sk_allocate(step->memory, (size_t)count * planes * 2 * sizeof *columns->sums);
    }
    if (!columns->near || !columns->middles || !columns->spans || !columns->walks || !columns->heights ||
        !columns->levels || (columns->level_count && (!columns->rooms || !columns->sums)))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "probes: no memory for the columns of probes of heights");
    mark_heights(columns, step);
    return SELKIE_OK;
}

void sk_columns_free(sk_columns *columns)
{
    void *const arrays[] = {columns->near,    columns->middles, columns->spans, columns->walks,
                            columns->heights, columns->rooms,   columns->sums,  columns->levels};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        sk_release(columns->memory, arrays[i]);
    memset(columns, 0, sizeof *columns);
}

/* Is the column's cell n, counted from below, in an obstacle? */
static int is_solid(const sk_step *step, int up, int sign, int n, const double at[3])
{
    const sk_grid *grid = &step->grid;
    if (n >= grid->cells[up])
        return 0;
    double x[3] = {at[0], at[1], at[2]}, normal[3];
    x[up] = grid->low[up] + ((sign > 0 ? n : grid->cells[up] - 1 - n) + 0.5) * grid->cell_size;
    int near = 0, obstacle = -1;
    for (int o = 0; o < step->solids.obstacle_count && !near; o++) {
        near = 1;
        for (int d = 0; d < grid->dimension; d++)
            near &= x[d] >= step->solids.obstacles[o].low[d] && x[d] <= step->solids.obstacles[o].high[d];
    }
    return near && sk_solids_distance(&step->solids, x, normal, &obstacle) < 0.0 && obstacle >= 0;
}

/* The share of a column's cell that the side of the area covers, 0 to 1. */
static double covered(const double side[2], int column)
{
    return fmax(fmin(side[1], column + 1) - fmax(side[0], column), 0.0);
}

/* The area of a probe in cells; min and max both 0: the whole extent. */
static void find_area(const sk_columns *columns, const sk_grid *grid, const selkie_probe_def *def, double sides[2][2],
                      int from[2], int to[2])
{
    sides[1][0] = from[0] = from[1] = 0;
    sides[1][1] = to[0] = to[1] = 1;
    for (int a = 0; a < grid->dimension - 1; a++) {
        const int d = columns->axis[a];
        const int all = def->min[d] == 0.0 && def->max[d] == 0.0;
        sides[a][0] = all ? 0.0 : fmax((def->min[d] - grid->low[d]) / grid->cell_size, 0.0);
        sides[a][1] = all ? grid->cells[d] : fmin((def->max[d] - grid->low[d]) / grid->cell_size, grid->cells[d]);
        from[a] = (int)fmin(floor(sides[a][0]), grid->cells[d] - 1);
        to[a] = (int)fmax(ceil(sides[a][1]), from[a] + 1);
    }
}

/* The fill of a column from its sums. What lies behind four empty nodes in a row is not read if the column begins at
 * node 0: the surface is below. */
static void read_column(const sk_columns *columns, const sk_slab *slab, int i, int j, float part, int sign,
                        float *restrict column)
{
    const size_t row = columns->axis[1] >= 0 ? (size_t)j + 1 : 0;
    const ptrdiff_t back = row ? 4 * (ptrdiff_t)columns->length : 0;
    const uint32_t *here = columns->rooms + 4 * ((size_t)(i - slab->from + 1) * slab->plane + row * columns->length);
    const uint32_t *before = here - 4 * slab->plane;
    int empty = 0;
    memset(column, 0, columns->length * sizeof *column);
    for (int n = columns->spans[0]; n <= columns->spans[1] && (sign < 0 || empty < 4); n++) {
        const uint32_t sum = here[4 * n] + before[4 * n + 2] + here[4 * n + 1 - back] + before[4 * n + 3 - back];
        column[n] = (float)sum * part;
        empty = sum ? 0 : empty + 1;
    }
}

/* Heights times covered shares, and the sum of these shares, of one plane of columns. */
static void measure_plane(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int probe, int i)
{
    const sk_grid *grid = &step->grid;
    const int sign = step->up_sign, up = step->up_axis;
    double at[3] = {0.0, 0.0, 0.0}, sides[2][2], *sums = columns->sums;
    int from[2], to[2];
    find_area(columns, grid, &step->scene->probes[probe], sides, from, to);
    sums += 2 * ((size_t)probe * (size_t)grid->cells[columns->axis[0]] + (size_t)i);
    sums[0] = sums[1] = 0.0;
    if (i < from[0] || i >= to[0])
        return;

    /* Its columns, from the floor. */
    at[up] = sign > 0 ? grid->low[up] : grid->low[up] + grid->cells[up] * grid->cell_size;
    at[columns->axis[0]] = grid->low[columns->axis[0]] + (i + 0.5) * grid->cell_size;
    for (int j = from[1]; j < to[1]; j++) {
        if (columns->axis[1] >= 0)
            at[columns->axis[1]] = grid->low[columns->axis[1]] + (j + 0.5) * grid->cell_size;
        const float part = 1.0f / ((float)(step->particles_per_cell * unit) * open_across(grid, up, at));
        float *column = columns->walks + (size_t)omp_get_thread_num() * columns->length;
        read_column(columns, slab, i, j, part, sign, column);
        int end;
        const double height = follow_column(step, at, column, &end);
        if (step->solids.obstacle_count && (is_solid(step, up, sign, 0, at) || is_solid(step, up, sign, end, at)))
            continue; /* it begins or ends at an obstacle, not at the surface */
        const double share = covered(sides[0], i) * covered(sides[1], j);
        sums[0] += share * height;
        sums[1] += share;
    }
}

/* Adds the planes in order: the same bits on any number of threads. */
static double mean_level(const sk_columns *columns, const sk_grid *grid, int probe)
{
    const int planes = grid->cells[columns->axis[0]];
    const double *sums = columns->sums + 2 * (size_t)probe * (size_t)planes;
    double sum = 0.0, shares = 0.0;
    for (int i = 0; i < planes; i++) {
        sum += sums[2 * i];
        shares += sums[2 * i + 1];
    }
    return shares > 0.0 ? sum / shares : NAN;
}

void sk_columns_fill(const sk_columns *columns, const sk_step *step)
{
    if (!columns->parts)
        return;
    const sk_grid *grid = &step->grid;
    const int planes = columns->level_count ? grid->cells[columns->axis[0]] : 1;
    memset(columns->heights, 0, (size_t)columns->parts * columns->height_room * sizeof *columns->heights);

    for (int first = 0; first < planes; first += columns->level_count ? columns->thickness : 1) {
        const int end = first + columns->thickness < planes ? first + columns->thickness : planes;
        const sk_slab slab = {first, end, plane_nodes(columns, grid)};
        /* Particles. */
#pragma omp parallel for num_threads(columns->parts) schedule(static, 1)
        for (int part = 0; part < columns->parts; part++)
            scan_part(columns, step, &slab, columns->height_count && !first, part);

        if (columns->level_count)
            join_parts(columns, step->threads);

        /* Levels of the planes of this slab. */
        for (int p = 0; p < step->scene->probe_count && columns->level_count; p++)
            if (step->scene->probes[p].kind == SELKIE_PROBE_LEVEL) {
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
                for (int i = slab.from; i < slab.to; i++)
                    measure_plane(columns, step, &slab, p, i);
            }
        if (columns->level_count)
            clear_sums(columns);
    }
    for (int p = 0; p < step->scene->probe_count && columns->level_count; p++)
        columns->levels[p] = step->scene->probes[p].kind == SELKIE_PROBE_LEVEL ? mean_level(columns, grid, p) : NAN;
}

#include "world/columns.h"

#include <math.h>
#include <omp.h>
#include <string.h>

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

/* The distance (m) of the centre of the column's cell n, counted from below, to the nearest obstacle; below 0 inside.
 */
static double distance_to_obstacle(const sk_step *step, int n, const double at[3])
{
    const sk_grid *grid = &step->grid;
    const int up = step->up_axis;
    double x[3] = {at[0], at[1], at[2]}, normal[3];
    x[up] = grid->low[up] + ((step->up_sign > 0 ? n : grid->cells[up] - 1 - n) + 0.5) * grid->cell_size;
    int near = 0, obstacle = -1;
    for (int o = 0; o < step->solids.obstacle_count && !near; o++) {
        near = 1;
        for (int d = 0; d < grid->dimension; d++)
            near &= x[d] >= step->solids.obstacles[o].low[d] && x[d] <= step->solids.obstacles[o].high[d];
    }
    if (!near)
        return HUGE_VAL;
    const double distance = sk_solids_distance(&step->solids, x, normal, &obstacle);
    return obstacle >= 0 ? distance : HUGE_VAL;
}

/* Is the column's cell n in an obstacle? */
static int is_solid(const sk_step *step, int n, const double at[3])
{
    return n < step->grid.cells[step->up_axis] && distance_to_obstacle(step, n, at) < 0.0;
}

/* Where the column over `at` begins, in cells from below. */
static double column_start(const sk_step *step, const double at[3])
{
    const sk_grid *grid = &step->grid;
    const double start = (at[step->up_axis] - grid->low[step->up_axis]) / grid->cell_size;
    return step->up_sign > 0 ? start : grid->cells[step->up_axis] - start;
}

/* The height (m) above `at` of the surface of the liquid that begins in the cell `first`, counted from below; `end`
 * receives the cell of the surface. */
static double follow_column(const sk_step *step, const double at[3], const float *column, int first, int *end)
{
    const sk_grid *grid = &step->grid;
    const int sign = step->up_sign, up = step->up_axis;
    int cells = grid->cells[up];
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++)
        cell[d] =
            grid->padding[d] + (int)fmin(fmax(floor((at[d] - grid->low[d]) / grid->cell_size), 0), grid->cells[d] - 1);

    const double start = column_start(step, at);

    /* Follow the fill from the start to the surface. */
    float before = 1.0f;
    int begin = first;
    if (sign > 0 && !step->solids.obstacle_count) {
        /* Without obstacles the fill is the column's, beyond the first node that may touch the floor. */
        begin = sk_columns_find_thin(column + 1, first + 1, cells);
        const int full = column[first + 1] + (first ? 0.0f : 0.125f) >= 0.5f;
        begin = full ? begin : first;
        before = begin > first ? column[begin] + (begin == 1 ? 0.125f : 0.0f) : before;
    }
    for (int n = begin; n < cells; n++) {
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
        if (fill < 0.5f && n == first && first > start) { /* the same over an obstacle, which ends in or below here */
            const double top = n - 0.5 - fmax(distance_to_obstacle(step, n - 1, at) / grid->cell_size, -1.0);
            return (top - start + (double)(column[i] + column[i + 1] + column[i + 2])) * grid->cell_size;
        }
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
    const float full = (float)(step->particles_per_cell * sk_column_unit) * open_across(&step->grid, step->up_axis, at);
    float *column = columns->walks;
    for (size_t n = 0; n < columns->length; n++) {
        uint32_t sum = columns->added_heights ? columns->added_heights[(size_t)probe * columns->length + n] : 0;
        for (int part = 0; part < (columns->added_heights ? 0 : columns->parts); part++)
            sum += columns->heights[(size_t)part * columns->height_room + (size_t)probe * columns->length + n];
        column[n] = (float)sum / full;
    }
    /* A point inside an obstacle: the liquid above that obstacle counts, its height is still that over the point. */
    int first = (int)fmin(fmax(floor(column_start(step, at)), 0), step->grid.cells[step->up_axis] - 1), end;
    while (step->solids.obstacle_count && first + 1 < step->grid.cells[step->up_axis] && is_solid(step, first, at))
        first++;
    return follow_column(step, at, column, first, &end);
}

/* --- Mean over an area --- */

static void mark_near(uint8_t *mark, int probe)
{
    *mark = (uint8_t)(*mark || probe + 1 >= sk_several_probes ? sk_several_probes : probe + 1);
}

/* Marks the columns between nodes within a cell of a height probe. */
static void mark_heights(const sk_columns *columns, const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    const size_t groups = columns->level_count ? columns->length / sk_column_group : 1;
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
                for (size_t g = 0; g < groups; g++)
                    mark_near(&columns->near[((size_t)i * (size_t)columns->rows + (size_t)j) * groups + g], p);
    }
}

/* Slabs of a bounded size: more of them mean more passes over the particles. */
static void choose_slabs(sk_columns *columns, const sk_grid *grid)
{
    const size_t most_bytes = (size_t)32 << 20, plane = (size_t)columns->rows * columns->length;
    columns->thickness = grid->cells[columns->axis[0]];
    while (columns->thickness > 1 && (size_t)(columns->thickness + 2) * plane * sizeof *columns->rooms > most_bytes)
        columns->thickness = (columns->thickness + 1) / 2;
    columns->room = (size_t)(columns->thickness + 2) * plane;
}

/* Sums of each part, and what the measuring needs. */
static int allocate(sk_columns *columns, const sk_step *step)
{
    sk_memory *memory = step->memory;
    const size_t planes = (size_t)step->grid.cells[columns->axis[0]], count = (size_t)step->scene->probe_count,
                 parts = (size_t)columns->parts;
    columns->height_room = count * columns->length;
    columns->near = sk_allocate_zeroed(memory, (planes + 1) * (size_t)columns->rows *
                                                   (columns->level_count ? columns->length / sk_column_group : 1));
    columns->middles = sk_allocate_zeroed(memory, count * sizeof *columns->middles);
    columns->walks = sk_allocate(memory, (size_t)step->threads * columns->length * sizeof *columns->walks);
    columns->heights = sk_allocate(memory, parts * columns->height_room * sizeof(uint32_t));
    columns->levels = sk_allocate(memory, count * sizeof *columns->levels);
    if (columns->level_count) {
        columns->rooms = sk_allocate(memory, parts * columns->room * sizeof *columns->rooms);
        columns->tiles = sk_allocate_zeroed(memory, parts * sizeof *columns->tiles);
        columns->touched = sk_allocate_zeroed(memory, parts * columns->room / sk_column_group);
        columns->sums = sk_allocate(memory, count * planes * 2 * sizeof *columns->sums);
    }
    return columns->near && columns->middles && columns->walks && columns->heights && columns->levels &&
           (!columns->level_count || (columns->rooms && columns->touched && columns->tiles && columns->sums));
}

size_t sk_columns_nodes(const sk_columns *columns, const sk_step *step)
{
    return columns->level_count
               ? (size_t)(step->grid.cells[columns->axis[0]] + 2) * (size_t)columns->rows * columns->length
               : 0;
}

sk_column_frame sk_columns_frame(const sk_columns *columns, const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    sk_column_frame frame = {.dimension = grid->dimension,
                             .axis = {columns->axis[0], columns->axis[1] < 0 ? 2 : columns->axis[1], step->up_axis},
                             .scale = (float)(1.0 / grid->cell_size),
                             .rows = columns->rows,
                             .length = (int)columns->length};
    for (int a = 0; a < 3; a++) {
        frame.low[a] = (float)grid->low[a];
        frame.offset[a] = (float)(-grid->low[frame.axis[a]] / grid->cell_size);
        frame.end[a] = frame.axis[a] == 2 && grid->dimension == 2 ? 1.0f : (float)(grid->cells[frame.axis[a]] + 1);
    }
    return frame;
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
    columns->rows = grid->dimension == 3 ? grid->cells[columns->axis[1]] + 2 : 1;
    columns->length = ((size_t)grid->cells[up] + 1 + sk_column_group) / sk_column_group * sk_column_group;
    columns->parts = step->threads < sk_most_column_parts ? step->threads : sk_most_column_parts;
    choose_slabs(columns, grid);
    if (!allocate(columns, step))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "probes: no memory for the columns of probes of heights");
    mark_heights(columns, step);
    return SELKIE_OK;
}

void sk_columns_free(sk_columns *columns)
{
    void *const arrays[] = {columns->near,    columns->middles, columns->walks, columns->heights, columns->rooms,
                            columns->touched, columns->tiles,   columns->sums,  columns->levels};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        sk_release(columns->memory, arrays[i]);
    sk_deep_cells_free(&columns->deep, columns->memory);
    memset(columns, 0, sizeof *columns);
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

/* The height (m) of one column from its sums; `end` receives the cell of the surface. */
static double measure_column(const sk_columns *columns, const sk_step *step, const sk_slab *slab, const int cell[2],
                             const double at[3], int *end)
{
    const sk_grid *grid = &step->grid;
    const int row = (cell[0] - slab->from + 1) * columns->rows + (columns->axis[1] < 0 ? 0 : cell[1] + 1);
    float *fill = columns->walks + (size_t)omp_get_thread_num() * columns->length;
    const int inside =
        cell[0] > 0 && cell[0] < grid->cells[columns->axis[0]] - 1 && cell[1] > 0 && cell[1] < columns->rows - 3;
    const float open = inside ? 1.0f : open_across(grid, step->up_axis, at);
    const float part = 1.0f / ((float)(step->particles_per_cell * sk_column_unit) * open);
    sk_columns_read(columns, row, step->up_sign > 0, part, fill);
    return follow_column(step, at, fill, 0, end);
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
        int end;
        const double height = measure_column(columns, step, slab, (const int[2]){i, j}, at, &end);
        if (step->solids.obstacle_count && (is_solid(step, 0, at) || is_solid(step, end, at)))
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

/* Forgets all sums. */
static void start_over(const sk_columns *columns)
{
    memset(columns->heights, 0, (size_t)columns->parts * columns->height_room * sizeof *columns->heights);
    if (columns->level_count)
        memset(columns->touched, 0, (size_t)columns->parts * columns->room / sk_column_group);
}

int sk_columns_can_watch(const sk_columns *columns, const sk_step *step)
{
    return !columns->level_count || columns->thickness == step->grid.cells[columns->axis[0]];
}

selkie_code sk_columns_begin(sk_columns *columns, const sk_step *step, selkie_error *error)
{
    start_over(columns);
    return columns->level_count ? sk_deep_cells_find(&columns->deep, step, error) : SELKIE_OK;
}

/* May particles of a block lie within a cell of a height probe, across up? */
static int reaches_height(const sk_columns *columns, const sk_step *step, const sk_moved_block *block)
{
    const sk_grid *grid = &step->grid;
    int reaches = 0;
    for (int p = 0; p < step->scene->probe_count && !reaches; p++) {
        reaches = step->scene->probes[p].kind == SELKIE_PROBE_HEIGHT;
        for (int a = 0; a < grid->dimension - 1; a++) {
            const int d = columns->axis[a];
            const double at = step->scene->probes[p].at[d], reach = 1.01 * grid->cell_size;
            reaches &= (double)block->low[d] < at + reach && (double)block->high[d] > at - reach;
        }
    }
    return reaches;
}

void sk_columns_see(sk_columns *columns, const sk_step *step, const sk_moved_block *block, int part)
{
    if (columns->level_count || reaches_height(columns, step, block))
        sk_columns_scan_block(columns, step, part, block);
}

/* Adds the particles to the sums of a slab unless they are in them, and measures its levels. Runs in all threads of a
 * parallel region. */
static void measure_slab(const sk_columns *columns, const sk_step *step, const sk_slab *slab, int seen)
{
    const int rows = (slab->to - slab->from + 2) * columns->rows, levels = columns->level_count;
    const int64_t count = step->particles.count;
#pragma omp for schedule(static, 1)
    for (int part = 0; part < (seen ? 0 : columns->parts); part++) {
        const int64_t first = count * part / columns->parts, end = count * (part + 1) / columns->parts;
        sk_columns_scan(columns, step, slab, part, step->particles.records + first, end - first);
    }
    if (!levels)
        return;

#pragma omp for schedule(static)
    for (int row = 0; row < (columns->added_nodes ? 0 : rows); row++)
        sk_columns_join(columns, row);

#pragma omp for schedule(dynamic, 1)
    for (int i = slab->from; i < slab->to; i++)
        for (int p = 0; p < step->scene->probe_count; p++)
            if (step->scene->probes[p].kind == SELKIE_PROBE_LEVEL)
                measure_plane(columns, step, slab, p, i);

#pragma omp single
    if (!columns->added_nodes)
        memset(columns->touched, 0, (size_t)rows * columns->length / sk_column_group);
}

void sk_columns_fill(sk_columns *columns, const sk_step *step, int seen)
{
    if (!columns->parts)
        return;
    const sk_grid *grid = &step->grid;
    const int planes = grid->cells[columns->axis[0]],
              thickness = columns->level_count && !columns->added_nodes ? columns->thickness : planes;
    if (!seen)
        start_over(columns);
#pragma omp parallel num_threads(step->threads)
    for (int first = 0; first < planes; first += thickness) {
        const sk_slab slab = {first, first + thickness < planes ? first + thickness : planes};
        measure_slab(columns, step, &slab, seen);
    }
    for (int p = 0; p < step->scene->probe_count && columns->level_count; p++)
        columns->levels[p] = step->scene->probes[p].kind == SELKIE_PROBE_LEVEL ? mean_level(columns, grid, p) : NAN;
}

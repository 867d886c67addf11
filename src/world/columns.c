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

/* --- One column --- */

/* Adds one particle to the column of a height probe. */
static void add_to_column(const sk_step *step, const sk_particle *particle, const selkie_probe_def *def, int up,
                          float *column)
{
    const sk_grid *grid = &step->grid;
    const float inverse = (float)(1.0 / grid->cell_size);
    float weight = 1.0f;
    for (int d = 0; d < grid->dimension; d++) {
        float distance = fabsf(particle->position[d] - (float)def->at[d]) * inverse;
        if (d == up)
            continue;
        if (!(distance < 1.0f))
            return;
        weight *= 1.0f - distance;
    }
    float g =
        (particle->position[up] - (float)grid->low[up]) * inverse + 0.5f; /* nodes: centres, one before the domain */
    int i = (int)g;
    if (i < 0 || i > grid->cells[up] || (particle->flags & SK_PARTICLE_DEAD))
        return;
    column[i] += weight * (1.0f - (g - (float)i));
    column[i + 1] += weight * (g - (float)i);
}

/* One pass over the particles. Nearly all are far from every probe, so batches are rejected at once. */
/* Horizontal places near a probe, as marks of square bins over the domain: most particles are near none. */
enum { probe_bins = 64 };
typedef struct probe_map {
    int axis[2];
    float low[2], scale[2]; /* m, bins a metre */
    uint8_t marks[probe_bins][probe_bins];
} probe_map;

static int probe_bin(const probe_map *map, int a, float x)
{
    const float bin = (x - map->low[a]) * map->scale[a];
    return bin < 0.0f ? 0 : bin >= probe_bins ? probe_bins - 1 : (int)bin;
}

static void map_probes(const sk_step *step, const int axis[2], float reach, probe_map *map)
{
    memset(map, 0, sizeof *map);
    for (int a = 0; a < 2; a++) {
        map->axis[a] = axis[a];
        if (axis[a] < 0)
            continue;
        map->low[a] = (float)step->grid.low[axis[a]];
        map->scale[a] = (float)(probe_bins / (step->grid.cells[axis[a]] * step->grid.cell_size));
    }
    for (int p = 0; p < step->scene->probe_count; p++) {
        const selkie_probe_def *def = &step->scene->probes[p];
        if (def->kind != SELKIE_PROBE_HEIGHT)
            continue;
        int from[2] = {0, 0}, to[2] = {0, 0};
        for (int a = 0; a < 2 && axis[a] >= 0; a++) {
            from[a] = probe_bin(map, a, (float)def->at[axis[a]] - 1.01f * reach);
            to[a] = probe_bin(map, a, (float)def->at[axis[a]] + 1.01f * reach);
        }
        for (int j = from[1]; j <= to[1]; j++)
            for (int i = from[0]; i <= to[0]; i++)
                map->marks[j][i] = 1;
    }
}

/* Whether a probe may be near one of a batch of particles. */
static int any_near(const probe_map *map, const sk_particle *records, int lanes)
{
    int near = 0;
    for (int l = 0; l < lanes; l++) {
        const float *x = records[l].position;
        near |=
            map->marks[map->axis[1] < 0 ? 0 : probe_bin(map, 1, x[map->axis[1]])][probe_bin(map, 0, x[map->axis[0]])];
    }
    return near;
}

void sk_columns_fill(const sk_step *step, float *columns)
{
    const selkie_scene *scene = step->scene;
    const int up = step->up_axis;
    const size_t length = (size_t)(step->grid.cells[up] + 2);
    const int across = up == 0 ? 1 : 0;
    const float reach = (float)(1.001 * step->grid.cell_size);
    int any = 0;

    /* Clear the columns of the probes. */
    for (int p = 0; p < scene->probe_count; p++)
        if (scene->probes[p].kind == SELKIE_PROBE_HEIGHT) {
            memset(columns + (size_t)p * length, 0, length * sizeof *columns);
            any = 1;
        }

    probe_map map;
    const int horizontal[2] = {across, step->dimension == 3 ? 3 - up - across : -1};
    map_probes(step, horizontal, reach, &map);

    /* Test batches of particles against each probe. */
    for (int64_t first = 0; any && first < step->particles.count; first += SK_WIDE) {
        int lanes = step->particles.count - first < SK_WIDE ? (int)(step->particles.count - first) : SK_WIDE;
        const sk_particle *records = step->particles.records + first;
        if (!any_near(&map, records, lanes))
            continue;
        fw x[4];
        fw_load_columns(records->position, lanes, x);
        for (int p = 0; p < scene->probe_count; p++) {
            const selkie_probe_def *def = &scene->probes[p];
            if (def->kind != SELKIE_PROBE_HEIGHT)
                continue;
            iw near = fw_abs(x[across] - (float)def->at[across]) < reach;
            if (step->dimension == 3) {
                int other = 3 - up - across;
                near &= fw_abs(x[other] - (float)def->at[other]) < reach;
            }
            if (!iw_any(near))
                continue;

            /* Add the particles of the batch that are near. */
            for (int l = 0; l < lanes; l++)
                if (near[l])
                    add_to_column(step, records + l, def, up, columns + (size_t)p * length);
        }
    }
}

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
static double follow_column(const sk_step *step, const double at[3], float *column, int *end)
{
    const sk_grid *grid = &step->grid;
    const int sign = step->up_sign, up = step->up_axis;
    int cells = grid->cells[up];
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++)
        cell[d] =
            grid->padding[d] + (int)fmin(fmax(floor((at[d] - grid->low[d]) / grid->cell_size), 0), grid->cells[d] - 1);

    /* Fill over the capacity of the column. */
    const float full = (float)step->particles_per_cell * open_across(grid, up, at);
    for (int i = 0; i < cells + 2; i++)
        column[i] /= full;
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
            return fmax(column[i] + column[i + 1] + column[i + 2] - start, 0.0) * grid->cell_size;
        if (fill < 0.5f && n == first)
            return (column[i + 1] + column[next + 1]) * 0.5 * grid->cell_size;
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

double sk_column_height(const sk_step *step, const double at[3], float *column)
{
    int end;
    return follow_column(step, at, column, &end);
}

/* --- Mean over an area --- */

selkie_code sk_levels_init(sk_levels *levels, const sk_step *step, selkie_error *error)
{
    /* Limit per thread; above it a thread processes the columns in several passes over the particles. */
    const size_t most_bytes = (size_t)32 << 20;
    const sk_grid *grid = &step->grid;
    memset(levels, 0, sizeof *levels);
    levels->memory = step->memory;

    /* Only probes of type level need memory. */
    int any = 0;
    const int up = step->up_axis;
    for (int p = 0; p < step->scene->probe_count; p++)
        any |= step->scene->probes[p].kind == SELKIE_PROBE_LEVEL;
    if (!any)
        return SELKIE_OK;

    /* Slabs follow each other along the longer horizontal axis. */
    levels->axis[0] = up == 0 ? 1 : 0;
    levels->axis[1] = grid->dimension == 3 ? 3 - up - levels->axis[0] : -1;
    if (grid->dimension == 3 && grid->cells[levels->axis[1]] > grid->cells[levels->axis[0]]) {
        levels->axis[1] = levels->axis[0];
        levels->axis[0] = 3 - up - levels->axis[1];
    }

    /* One slab per thread, or thinner slabs if the limit requires it. */
    const int planes = grid->cells[levels->axis[0]];
    const size_t row =
        (size_t)(grid->dimension == 3 ? grid->cells[levels->axis[1]] + 2 : 1) * (size_t)(grid->cells[up] + 2);
    levels->thickness = (planes + step->threads - 1) / step->threads;
    while (levels->thickness > 1 && (size_t)(levels->thickness + 2) * row * sizeof *levels->rooms > most_bytes)
        levels->thickness = (levels->thickness + 1) / 2;
    levels->room = (size_t)(levels->thickness + 2) * row;

    /* Nodes of a slab for each thread, and sums for each plane. */
    levels->rooms = sk_allocate(step->memory, (size_t)step->threads * levels->room * sizeof *levels->rooms);
    levels->sums = sk_allocate(step->memory, (size_t)planes * 2 * sizeof *levels->sums);
    if (!levels->rooms || !levels->sums)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "probes: no memory for the columns of a probe of type level");
    return SELKIE_OK;
}

void sk_levels_free(sk_levels *levels)
{
    sk_release(levels->memory, levels->rooms);
    sk_release(levels->memory, levels->sums);
    memset(levels, 0, sizeof *levels);
}

/* A slab of columns: from[a] up to to[a] along each axis across, with a halo of one column for contributions that are
 * not read. In memory the up direction comes first, then axis[1], then axis[0]. */
typedef struct sk_slab {
    int from[2], to[2];
    size_t strides[2];
    float *nodes;
} sk_slab;

/* Adds all particles in their order, so the sums do not depend on the thread. */
static void fill_slab(const sk_levels *levels, const sk_step *step, int up, const sk_slab *slab)
{
    const sk_grid *grid = &step->grid;
    const float inverse = (float)(1.0 / grid->cell_size);
    const int across = grid->dimension - 1;
    const float last_up = (float)(grid->cells[up] + 1);
    memset(slab->nodes, 0, (size_t)(slab->to[0] - slab->from[0] + 2) * slab->strides[0] * sizeof *slab->nodes);

    for (int64_t first = 0; first < step->particles.count; first += SK_WIDE) {
        int lanes = step->particles.count - first < SK_WIDE ? (int)(step->particles.count - first) : SK_WIDE;
        const sk_particle *records = step->particles.records + first;
        fw x[4], part[2] = {{0}, {0}};
        fw_load_columns(records->position, lanes, x);
        fw g = (x[up] - (float)grid->low[up]) * inverse + 0.5f;
        iw near = iw_first(lanes) & (g >= 0.0f) & (g < last_up);
        g = (fw)((iw)g & near); /* clear far lanes, so that they cannot overflow */
        iw node = iw_from_fw(g);
        fw upper = g - fw_from_iw(node);

        /* Columns of the lanes, and their weights. */
        for (int a = 0; a < across; a++) {
            const int d = levels->axis[a];
            g = (x[d] - (float)grid->low[d]) * inverse +
                0.5f; /* relative to the domain, not to the slab, so that rounding does not depend on the slab */
            near &= (g >= (float)slab->from[a]) & (g < (float)(slab->to[a] + 1));
            g = (fw)((iw)g & near);
            iw column = iw_from_fw(g);
            part[a] = g - fw_from_iw(column);
            node += (column - slab->from[a]) * (int)slab->strides[a];
        }

        /* Trilinear weights of the particles inside the slab. */
        for (unsigned bits = iw_bits(near); bits; bits &= bits - 1) {
            const int l = __builtin_ctz(bits);
            if (records[l].flags & SK_PARTICLE_DEAD)
                continue;
            float *at = slab->nodes + node[l];
            for (int c = 0; c < 2; c++, at += slab->strides[0]) {
                float share = c ? part[0][l] : 1.0f - part[0][l], beside = part[1][l];
                float low = share * (1.0f - upper[l]), high = share * upper[l];
                at[0] += (1.0f - beside) * low;
                at[1] += (1.0f - beside) * high;
                if (across == 2) {
                    at[slab->strides[1]] += beside * low;
                    at[slab->strides[1] + 1] += beside * high;
                }
            }
        }
    }
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

static void measure_slab(const sk_levels *levels, const sk_step *step, double sides[2][2], const sk_slab *slab)
{
    const sk_grid *grid = &step->grid;
    const int sign = step->up_sign, up = step->up_axis;
    double at[3] = {0.0, 0.0, 0.0};
    at[up] = sign > 0 ? grid->low[up] : grid->low[up] + grid->cells[up] * grid->cell_size;
    for (int i = slab->from[0]; i < slab->to[0]; i++) {
        double *sums = levels->sums + 2 * i;
        sums[0] = sums[1] = 0.0;
        at[levels->axis[0]] = grid->low[levels->axis[0]] + (i + 0.5) * grid->cell_size;
        for (int j = slab->from[1]; j < slab->to[1]; j++) {
            if (levels->axis[1] >= 0)
                at[levels->axis[1]] = grid->low[levels->axis[1]] + (j + 0.5) * grid->cell_size;
            float *column = slab->nodes + (size_t)(i - slab->from[0] + 1) * slab->strides[0] +
                            (levels->axis[1] >= 0 ? (size_t)(j - slab->from[1] + 1) * slab->strides[1] : 0);
            int end;
            double height = follow_column(step, at, column, &end);
            if (step->solids.obstacle_count && (is_solid(step, up, sign, 0, at) || is_solid(step, up, sign, end, at)))
                continue; /* it begins or ends at an obstacle, not at the surface */
            double share = covered(sides[0], i) * covered(sides[1], j);
            sums[0] += share * height;
            sums[1] += share;
        }
    }
}

double sk_level_measure(const sk_levels *levels, const sk_step *step, const selkie_probe_def *def)
{
    const sk_grid *grid = &step->grid;
    const int up = step->up_axis;
    sk_slab area = {.to = {1, 1}, .strides = {(size_t)(grid->cells[up] + 2), (size_t)(grid->cells[up] + 2)}};
    double sides[2][2] = {{0.0, 1.0}, {0.0, 1.0}}; /* cells */

    /* The area in cells; min and max both 0: the whole extent. */
    for (int a = 0; a < grid->dimension - 1; a++) {
        const int d = levels->axis[a];
        const int all = def->min[d] == 0.0 && def->max[d] == 0.0;
        sides[a][0] = all ? 0.0 : fmax((def->min[d] - grid->low[d]) / grid->cell_size, 0.0);
        sides[a][1] = all ? grid->cells[d] : fmin((def->max[d] - grid->low[d]) / grid->cell_size, grid->cells[d]);
        area.from[a] = (int)fmin(floor(sides[a][0]), grid->cells[d] - 1);
        area.to[a] = (int)fmax(ceil(sides[a][1]), area.from[a] + 1);
    }
    if (grid->dimension == 3)
        area.strides[0] *= (size_t)(area.to[1] - area.from[1] + 2);

#pragma omp parallel for num_threads(step->threads) schedule(static, 1)
    for (int first = area.from[0]; first < area.to[0]; first += levels->thickness) {
        /* Fill and measure one slab, in the nodes of this thread. */
        sk_slab slab = area;
        slab.from[0] = first;
        slab.to[0] = first + levels->thickness < area.to[0] ? first + levels->thickness : area.to[0];
        slab.nodes = levels->rooms + (size_t)omp_get_thread_num() * levels->room;
        fill_slab(levels, step, up, &slab);
        measure_slab(levels, step, sides, &slab);
    }

    /* Add the planes in order: the same bits on any number of threads. */
    double sum = 0.0, shares = 0.0;
    for (int i = area.from[0]; i < area.to[0]; i++) {
        sum += levels->sums[2 * i];
        shares += levels->sums[2 * i + 1];
    }
    return shares > 0.0 ? sum / shares : NAN;
}

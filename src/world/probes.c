#include "world/probes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/simd.h"
#include "methods/sph/boundary.h"

enum { FRONT_BINS = 64 }; /* of a cell */

static int up_axis(const selkie_scene *scene, int *sign)
{
    double up[3];
    selkie_scene_up(scene, up);
    int axis = 0;
    for (int d = 1; d < scene->domain.dimension; d++)
        if (fabs(up[d]) > fabs(up[axis]))
            axis = d;
    *sign = up[axis] < 0 ? -1 : 1;
    return axis;
}

selkie_code sk_probes_init(sk_probes *probes, const sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    memset(probes, 0, sizeof *probes);
    probes->memory = step->memory;
    size_t most = (size_t)scene->probe_count * 3 + 1;
    int longest = 0;
    for (int d = 0; d < step->dimension; d++)
        longest = step->grid.cells[d] > longest ? step->grid.cells[d] : longest;
    probes->names = sk_allocate_zeroed(step->memory, most * sizeof *probes->names);
    probes->values = sk_allocate_zeroed(step->memory, most * sizeof *probes->values);
    probes->columns = sk_allocate(step->memory, ((size_t)scene->probe_count + 1) * (size_t)(longest + 2) * sizeof *probes->columns);
    probes->histogram = sk_allocate(step->memory, ((size_t)longest * FRONT_BINS + 1) * sizeof *probes->histogram);
    if (!probes->names || !probes->values || !probes->columns || !probes->histogram)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "probes: no memory for %d probes", scene->probe_count);
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_def *def = &scene->probes[p];
        if (def->kind == SELKIE_PROBE_VELOCITY || def->kind == SELKIE_PROBE_FORCE)
            for (int d = 0; d < step->dimension; d++)
                snprintf(probes->names[probes->column_count++], sizeof *probes->names, "%.60s_%c", def->name, "xyz"[d]);
        else
            snprintf(probes->names[probes->column_count++], sizeof *probes->names, "%.63s", def->name);
    }
    return SELKIE_OK;
}

void sk_probes_free(sk_probes *probes)
{
    sk_release(probes->memory, probes->names);
    sk_release(probes->memory, probes->values);
    sk_release(probes->memory, probes->columns);
    sk_release(probes->memory, probes->histogram);
    memset(probes, 0, sizeof *probes);
}

/* Slot and index of a grid cell; slot 0 if it does not exist. */
static size_t find_cell(const sk_grid *grid, const int cell[3], int *slot)
{
    size_t place = 0, stride = 1, local = 0, local_stride = 1;
    *slot = 0;
    for (int d = 0; d < grid->dimension; d++) {
        if (cell[d] < 0 || cell[d] >= grid->blocks[d] * grid->extent[d])
            return 0;
        place += (size_t)(cell[d] / grid->extent[d]) * stride;
        stride *= (size_t)grid->blocks[d];
        local += (size_t)(cell[d] % grid->extent[d]) * local_stride;
        local_stride *= (size_t)grid->extent[d];
    }
    *slot = grid->table[place];
    return local;
}

static float solid_share(const sk_step *step, const int cell[3])
{
    int slot;
    size_t local = find_cell(&step->grid, cell, &slot);
    return step->solids.blurred[(size_t)step->solids.block_slot[slot] * (size_t)step->grid.block_cells + local];
}

/* One particle's part in the column of a height probe. */
static void add_to_column(const sk_step *step, const sk_particle *particle, const selkie_probe_def *def, int up, float *column)
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
    float g = (particle->position[up] - (float)grid->low[up]) * inverse + 0.5f; /* nodes: centres, one before the domain */
    int i = (int)g;
    if (i < 0 || i > grid->cells[up] || (particle->flags & SK_PARTICLE_DEAD))
        return;
    column[i] += weight * (1.0f - (g - (float)i));
    column[i + 1] += weight * (g - (float)i);
}

/* The columns of all height probes in one go over the particles: nearly all of them are far from every probe, and that is
 * found out many at a time. */
static void fill_columns(const sk_probes *probes, const sk_step *step, int up)
{
    const selkie_scene *scene = step->scene;
    const size_t length = (size_t)(step->grid.cells[up] + 2);
    const int across = up == 0 ? 1 : 0;
    const float reach = (float)(1.001 * step->grid.cell_size);
    int any = 0;
    for (int p = 0; p < scene->probe_count; p++)
        if (scene->probes[p].kind == SELKIE_PROBE_HEIGHT) {
            memset(probes->columns + (size_t)p * length, 0, length * sizeof *probes->columns);
            any = 1;
        }
    for (int64_t first = 0; any && first < step->particles.count; first += SK_WIDE) {
        int lanes = step->particles.count - first < SK_WIDE ? (int)(step->particles.count - first) : SK_WIDE;
        const sk_particle *records = step->particles.records + first;
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
            for (int l = 0; l < lanes; l++)
                if (near[l])
                    add_to_column(step, records + l, def, up, probes->columns + (size_t)p * length);
        }
    }
}

/* The height of the liquid above a point: the fill along the column through it, from the particles as they are now, up to
 * the first crossing of one half. */
static double measure_height(const sk_step *step, const selkie_probe_def *def, float *column)
{
    const sk_grid *grid = &step->grid;
    int sign, up = up_axis(step->scene, &sign), dimension = grid->dimension;
    int cells = grid->cells[up];
    /* The kernel is cut by walls across and by the floor: over what of it is open. */
    float full = (float)step->particles_per_cell, share = 1.0f;
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < dimension; d++) {
        double g = (def->at[d] - grid->low[d]) / grid->cell_size;
        cell[d] = grid->padding[d] + (int)fmin(fmax(floor(g), 0), grid->cells[d] - 1);
        if (d == up)
            continue;
        for (int side = 0; side < 2; side++) {
            double distance = side ? grid->cells[d] - g : g;
            if (distance < 1.0)
                share -= (float)(0.5 * (1.0 - distance) * (1.0 - distance));
        }
    }
    share = share > 0.05f ? share : 0.05f;
    for (int i = 0; i < cells + 2; i++)
        column[i] /= full * share;
    double start = (def->at[up] - grid->low[up]) / grid->cell_size;
    int first = (int)fmin(fmax(floor(sign > 0 ? start : grid->cells[up] - start), 0), cells - 1);
    float before = 1.0f;
    for (int n = first; n < cells; n++) {
        int i = sign > 0 ? n : cells - 1 - n;
        cell[up] = grid->padding[up] + i;
        float open = 1.0f;
        if (n == 0)
            open = 0.875f; /* the wall below takes an eighth of the hat */
        else if (step->solids.obstacle_count)
            open = fmaxf(1.0f - solid_share(step, cell), 0.05f);
        float fill = column[i + 1] / open;
        /* One thin cell under a full one is a hole in the liquid and not its surface. */
        int next = sign > 0 ? i + 1 : i - 1;
        if (fill < 0.5f && n > first && n + 1 < cells && column[next + 1] >= 0.5f)
            fill = 0.5f;
        if (fill < 0.5f) {
            if (n == first) {
                /* Not even half a cell: a film, as deep as its mass. */
                double depth = (column[i + 1] + column[i + 2 - (sign < 0 ? 2 : 0)]) * 0.5;
                return depth * grid->cell_size;
            }
            /* A level surface t of the way from the centre below to this one fills them by 1 - (1 - t)^2 / 2 and t^2 / 2:
             * one half and t together, and linear, so that noise of the fill leaves the mean as it is. */
            double crossing = n - 0.5 + fmin(fmax((double)before + (double)fill - 0.5, 0.0), 1.0);
            return (crossing - (sign > 0 ? start : grid->cells[up] - start)) * grid->cell_size;
        }
        before = fill;
    }
    return (cells - (sign > 0 ? start : grid->cells[up] - start)) * grid->cell_size;
}

/* Where less than the liquid of one cell lies ahead. */
static double measure_front(const sk_probes *probes, const sk_step *step, const selkie_probe_def *def)
{
    const sk_grid *grid = &step->grid;
    int axis = (int)def->axis, bins = grid->cells[axis] * FRONT_BINS;
    if (axis >= grid->dimension)
        return NAN;
    memset(probes->histogram, 0, (size_t)bins * sizeof *probes->histogram);
    double scale = FRONT_BINS / grid->cell_size;
    int64_t count = 0;
    for (int64_t p = 0; p < step->particles.count; p++) {
        const sk_particle *particle = &step->particles.records[p];
        if (particle->flags & SK_PARTICLE_DEAD)
            continue;
        int bin = (int)((particle->position[axis] - grid->low[axis]) * scale);
        probes->histogram[bin < 0 ? 0 : bin >= bins ? bins - 1 : bin]++;
        count++;
    }
    int64_t ahead = 0, enough = count < step->particles_per_cell ? count : step->particles_per_cell;
    if (!count)
        return NAN;
    for (int n = 0; n < bins; n++) {
        int bin = def->direction >= 0 ? bins - 1 - n : n;
        ahead += probes->histogram[bin];
        if (ahead >= enough)
            return grid->low[axis] + (bin + 0.5) / scale;
    }
    return NAN;
}

/* Pressure at a cell's centre, continued hydrostatically into solids from the liquid beside them; 0 in air. */
static double cell_pressure(const sk_step *step, const int cell[3], double unit)
{
    const sk_grid *grid = &step->grid;
    int slot;
    size_t local = find_cell(grid, cell, &slot);
    int kind = slot ? grid->kinds[(size_t)slot * (size_t)grid->block_cells + local] & SK_CELL_KIND_MASK : SK_CELL_SOLID;
    if (slot && kind != SK_CELL_SOLID)
        return kind == SK_CELL_LIQUID ? grid->fields[SK_FIELD_POTENTIAL][(size_t)slot * (size_t)grid->block_cells + local] * unit : 0.0;
    double sum = 0.0;
    int count = 0;
    for (int d = 0; d < grid->dimension; d++)
        for (int side = -1; side <= 1; side += 2) {
            int other[3] = {cell[0], cell[1], cell[2]};
            other[d] += side;
            size_t where = find_cell(grid, other, &slot);
            if (!slot || (grid->kinds[(size_t)slot * (size_t)grid->block_cells + where] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID)
                continue;
            sum += grid->fields[SK_FIELD_POTENTIAL][(size_t)slot * (size_t)grid->block_cells + where] * unit -
                   side * step->density * step->scene->gravity[d] * grid->cell_size;
            count++;
        }
    return count ? sum / count : 0.0;
}

static double measure_pressure(const sk_step *step, const double at[3], double kick)
{
    if (step->sph)
        return sk_sph_at(step, at, -1);
    const sk_grid *grid = &step->grid;
    double unit = kick > 0.0 ? step->density * grid->cell_size / kick : 0.0, total = 0.0, weight[3] = {0, 0, 0};
    int base[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++) {
        double g = (at[d] - grid->corner[d]) / grid->cell_size - 0.5;
        base[d] = (int)floor(g);
        weight[d] = g - base[d];
    }
    for (int corner = 0; corner < 1 << grid->dimension; corner++) {
        double w = 1.0;
        int cell[3] = {base[0], base[1], base[2]};
        for (int d = 0; d < grid->dimension; d++) {
            w *= corner >> d & 1 ? weight[d] : 1.0 - weight[d];
            cell[d] += corner >> d & 1;
        }
        if (w > 1e-9)
            total += w * cell_pressure(step, cell, unit);
    }
    return total;
}

static double measure_velocity(const sk_step *step, const double at[3], int d)
{
    if (step->sph)
        return sk_sph_at(step, at, d);
    const sk_grid *grid = &step->grid;
    double total = 0.0, weights = 0.0, weight[3] = {0, 0, 0};
    int base[3] = {0, 0, 0};
    for (int e = 0; e < grid->dimension; e++) {
        double g = (at[e] - grid->corner[e]) / grid->cell_size - (e == d ? 0.0 : 0.5);
        base[e] = (int)floor(g);
        weight[e] = g - base[e];
    }
    for (int corner = 0; corner < 1 << grid->dimension; corner++) {
        double w = 1.0;
        int cell[3] = {base[0], base[1], base[2]}, slot;
        for (int e = 0; e < grid->dimension; e++) {
            w *= corner >> e & 1 ? weight[e] : 1.0 - weight[e];
            cell[e] += corner >> e & 1;
        }
        size_t local = find_cell(grid, cell, &slot);
        float u = grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)slot * (size_t)grid->block_cells + local];
        if (u == u) {
            total += w * u;
            weights += w;
        }
    }
    return weights > 1e-6 ? total / weights : NAN;
}

void sk_probes_measure(sk_probes *probes, const sk_step *step, double kick)
{
    const selkie_scene *scene = step->scene;
    int column = 0;
    int sign, up = up_axis(scene, &sign);
    fill_columns(probes, step, up);
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_def *def = &scene->probes[p];
        switch (def->kind) {
        case SELKIE_PROBE_HEIGHT:
            probes->values[column++] = measure_height(step, def, probes->columns + (size_t)p * (size_t)(step->grid.cells[up] + 2));
            break;
        case SELKIE_PROBE_PRESSURE:
            probes->values[column++] = measure_pressure(step, def->at, kick);
            break;
        case SELKIE_PROBE_VELOCITY:
            for (int d = 0; d < step->dimension; d++)
                probes->values[column++] = measure_velocity(step, def->at, d);
            break;
        case SELKIE_PROBE_FORCE: {
            double force[3] = {NAN, NAN, NAN};
            sk_sph_boundary_force(step, def->on, force);
            for (int d = 0; d < step->dimension; d++)
                probes->values[column++] = force[d];
            break;
        }
        case SELKIE_PROBE_FRONT:
            probes->values[column++] = measure_front(probes, step, def);
            break;
        }
    }
}

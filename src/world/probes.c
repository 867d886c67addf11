#include "world/probes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "defs/structs.h"

enum { FRONT_BINS = 64 }; /* per cell */

selkie_code sk_probes_init(sk_probes *probes, const sk_step *step, sk_method_list methods, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    memset(probes, 0, sizeof *probes);
    probes->memory = step->memory;
    probes->methods = methods;
    size_t most = (size_t)scene->probe_count * 3 + 1;
    int longest = 0;
    for (int d = 0; d < step->dimension; d++)
        longest = step->grid.cells[d] > longest ? step->grid.cells[d] : longest;
    probes->names = sk_allocate_zeroed(step->memory, most * sizeof *probes->names);
    probes->values = sk_allocate_zeroed(step->memory, most * sizeof *probes->values);
    probes->columns =
        sk_allocate(step->memory, ((size_t)scene->probe_count + 1) * (size_t)(longest + 2) * sizeof *probes->columns);
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
    return sk_levels_init(&probes->levels, step, error);
}

void sk_probes_free(sk_probes *probes)
{
    sk_levels_free(&probes->levels);
    sk_release(probes->memory, probes->names);
    sk_release(probes->memory, probes->values);
    sk_release(probes->memory, probes->columns);
    sk_release(probes->memory, probes->histogram);
    memset(probes, 0, sizeof *probes);
}

/* The position ahead of which lies less than the liquid of one cell. */
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
            return grid->origin[axis] + grid->low[axis] + (bin + 0.5) / scale;
    }
    return NAN;
}

/* Density (kg/m3) of the liquid around the lower face of a cell across axis d. */
static double face_density(const sk_step *step, const int cell[3], int d)
{
    if (!step->relative_density)
        return step->density;
    int slot;
    size_t local = sk_grid_find_cell(&step->grid, cell, &slot);
    return step->density /
           step->grid.fields[SK_FIELD_LIGHTNESS_X + d][(size_t)slot * (size_t)step->grid.block_cells + local];
}

/* Pressure at a cell's centre, extended hydrostatically into solids from the liquid beside them; 0 in air. */
static double cell_pressure(const sk_step *step, const int cell[3], double unit)
{
    const sk_grid *grid = &step->grid;
    int slot;
    size_t local = sk_grid_find_cell(grid, cell, &slot);
    int kind = slot ? grid->kinds[(size_t)slot * (size_t)grid->block_cells + local] & SK_CELL_KIND_MASK : SK_CELL_SOLID;
    if (slot && kind != SK_CELL_SOLID)
        return kind == SK_CELL_LIQUID
                   ? grid->fields[SK_FIELD_POTENTIAL][(size_t)slot * (size_t)grid->block_cells + local] * unit
                   : 0.0;
    double sum = 0.0;
    int count = 0;
    for (int d = 0; d < grid->dimension; d++)
        for (int side = -1; side <= 1; side += 2) {
            int other[3] = {cell[0], cell[1], cell[2]};
            other[d] += side;
            size_t where = sk_grid_find_cell(grid, other, &slot);
            if (!slot ||
                (grid->kinds[(size_t)slot * (size_t)grid->block_cells + where] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID)
                continue;
            sum += grid->fields[SK_FIELD_POTENTIAL][(size_t)slot * (size_t)grid->block_cells + where] * unit -
                   side * face_density(step, side > 0 ? other : cell, d) * step->scene->gravity[d] * grid->cell_size;
            count++;
        }
    return count ? sum / count : 0.0;
}

static double measure_pressure(const sk_step *step, const double at[3], double kick)
{
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
        size_t local = sk_grid_find_cell(grid, cell, &slot);
        float u = grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)slot * (size_t)grid->block_cells + local];
        if (u == u) {
            total += w * u;
            weights += w;
        }
    }
    return weights > 1e-6 ? total / weights : NAN;
}

/* The method that provides pressure and velocity at a point; NULL = read them from the grid. */
static const sk_method *find_sampler(const sk_probes *probes)
{
    for (int m = 0; m < probes->methods.count; m++)
        if (probes->methods.methods[m]->value_at)
            return probes->methods.methods[m];
    return NULL;
}

static void measure_force(const sk_probes *probes, const sk_step *step, const char *on, double force[3])
{
    for (int m = 0; m < probes->methods.count; m++)
        if (probes->methods.methods[m]->force_on && probes->methods.methods[m]->force_on(step, on, force))
            return;
}

void sk_probes_measure(sk_probes *probes, const sk_step *step, double kick)
{
    if (!probes->memory)
        return;
    const selkie_scene *scene = step->scene;
    const sk_method *sampler = find_sampler(probes);
    int column = 0;
    const size_t length = (size_t)(step->grid.cells[sk_scene_up_axis(scene, NULL)] + 2);

    /* Columns of all height probes, in one pass over the particles. */
    sk_columns_fill(step, probes->columns);

    /* One value per scalar, one per axis for vectors. */
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_def *def = &scene->probes[p];
        switch (def->kind) {
        case SELKIE_PROBE_HEIGHT:
            probes->values[column++] = sk_column_height(step, def->at, probes->columns + (size_t)p * length);
            break;
        case SELKIE_PROBE_LEVEL:
            probes->values[column++] = sk_level_measure(&probes->levels, step, def);
            break;
        case SELKIE_PROBE_PRESSURE:
            probes->values[column++] =
                sampler ? sampler->value_at(step, def->at, -1) : measure_pressure(step, def->at, kick);
            break;
        case SELKIE_PROBE_VELOCITY:
            for (int d = 0; d < step->dimension; d++)
                probes->values[column++] =
                    sampler ? sampler->value_at(step, def->at, d) : measure_velocity(step, def->at, d);
            break;
        case SELKIE_PROBE_FORCE: {
            double force[3] = {NAN, NAN, NAN};
            measure_force(probes, step, def->on, force);
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

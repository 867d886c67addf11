#include "world/probes.h"

#include "cuda/cuda.h"
#include "cuda/probes.h"
#include "cuda/surface.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "defs/structs.h"

enum { FRONT_BINS = 64 /* per cell */, most_parts = sk_most_column_parts };
enum { most_nodes_there = 1 << 26 }; /* sums on a device, 256 MB; levels of larger domains are measured here */

/* Surfaces of the force probes on the grid. Methods without a grid measure forces themselves. */
static selkie_code init_surfaces(sk_probes *probes, const sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    if (scene->discretization != SELKIE_DISCRETIZATION_GRID)
        return SELKIE_OK;
    probes->surfaces = sk_allocate_zeroed(step->memory, ((size_t)scene->probe_count + 1) * sizeof *probes->surfaces);
    if (!probes->surfaces)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "probes: no memory for %d probes", scene->probe_count);
    probes->surface_count = scene->probe_count;
    for (int p = 0; p < scene->probe_count; p++)
        if (scene->probes[p].kind == SELKIE_PROBE_FORCE || scene->probes[p].kind == SELKIE_PROBE_TORQUE)
            SK_TRY(sk_surface_init(&probes->surfaces[p], step, scene->probes[p].on, error));
    return SELKIE_OK;
}

selkie_code sk_probes_init(sk_probes *probes, const sk_step *step, sk_method_list methods, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    memset(probes, 0, sizeof *probes);
    probes->memory = step->memory;
    probes->methods = methods;
    for (int part = 0; part < sk_most_column_parts; part++)
        omp_init_lock(&probes->locks[part]);
    size_t most = (size_t)scene->probe_count * 3 + 1;
    int longest = 0;
    for (int d = 0; d < step->dimension; d++)
        longest = step->grid.cells[d] > longest ? step->grid.cells[d] : longest;
    probes->names = sk_allocate_zeroed(step->memory, most * sizeof *probes->names);
    probes->values = sk_allocate_zeroed(step->memory, most * sizeof *probes->values);
    probes->parts = step->threads < most_parts ? step->threads : most_parts;
    for (int p = 0; p < scene->probe_count; p++)
        probes->front_count +=
            scene->probes[p].kind == SELKIE_PROBE_FRONT && (int)scene->probes[p].axis < step->dimension;

    /* The bins follow the domain, so they are there only for probes that fill them. */
    if (probes->front_count) {
        probes->bins = (size_t)longest * FRONT_BINS;
        probes->histogram =
            sk_allocate(step->memory, ((size_t)probes->parts * probes->bins + 1) * sizeof *probes->histogram);
        probes->fronts = sk_allocate_zeroed(step->memory, (size_t)scene->probe_count * (size_t)probes->parts *
                                                              sizeof *probes->fronts);
    }
    if (!probes->names || !probes->values || (probes->front_count && (!probes->histogram || !probes->fronts)))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "probes: no memory for %d probes", scene->probe_count);
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_def *def = &scene->probes[p];
        const int is_torque = def->kind == SELKIE_PROBE_TORQUE;
        if (def->kind == SELKIE_PROBE_VELOCITY || def->kind == SELKIE_PROBE_FORCE || is_torque)
            for (int d = is_torque && step->dimension == 2 ? 2 : 0; d < (is_torque ? 3 : step->dimension); d++)
                snprintf(probes->names[probes->column_count++], sizeof *probes->names, "%.60s_%c", def->name, "xyz"[d]);
        else
            snprintf(probes->names[probes->column_count++], sizeof *probes->names, "%.63s", def->name);
    }
    SK_TRY(init_surfaces(probes, step, error));
    return sk_columns_init(&probes->columns, step, error);
}

void sk_probes_free(sk_probes *probes)
{
    for (int part = 0; part < sk_most_column_parts && probes->memory; part++)
        omp_destroy_lock(&probes->locks[part]);
    sk_columns_free(&probes->columns);
    for (int p = 0; p < probes->surface_count; p++)
        sk_surface_free(&probes->surfaces[p], probes->memory);
    sk_release(probes->memory, probes->surfaces);
    sk_release(probes->memory, probes->names);
    sk_release(probes->memory, probes->values);
    sk_release(probes->memory, probes->histogram);
    sk_release(probes->memory, probes->fronts);
    memset(probes, 0, sizeof *probes);
}

/* --- While particles move --- */

static int is_front(const sk_step *step, int probe)
{
    const selkie_probe_def *def = &step->scene->probes[probe];
    return def->kind == SELKIE_PROBE_FRONT && (int)def->axis < step->dimension;
}

static selkie_code begin_watch(sk_watch *watch, const sk_step *step, selkie_error *error)
{
    sk_probes *probes = (sk_probes *)watch;
    memset(probes->seen, 0, sizeof probes->seen);
    for (int n = 0; probes->front_count && n < step->scene->probe_count * probes->parts; n++)
        probes->fronts[n].count = 0;
    return probes->columns.parts ? sk_columns_begin(&probes->columns, step, error) : SELKIE_OK;
}

static void see_block(sk_watch *watch, const sk_step *step, const sk_moved_block *block, int thread)
{
    sk_probes *probes = (sk_probes *)watch;
    const int part = thread % probes->parts, shared = step->threads > probes->parts;
    if (shared)
        omp_set_lock(&probes->locks[part]);
    for (int p = 0; probes->front_count && p < step->scene->probe_count; p++)
        if (is_front(step, p))
            sk_front_see(&probes->fronts[p * probes->parts + part], &step->scene->probes[p], step->particles_per_cell,
                         block);
    if (probes->columns.parts)
        sk_columns_see(&probes->columns, step, block, part);
    probes->seen[part][0] += block->count;
    if (shared)
        omp_unset_lock(&probes->locks[part]);
}

sk_watch *sk_probes_watch(sk_probes *probes, const sk_step *step)
{
    const int wanted = probes->columns.parts || probes->front_count;
    if (!wanted || step->particles_per_cell > sk_most_ahead ||
        (probes->columns.parts && !sk_columns_can_watch(&probes->columns, step)))
        return NULL;
    probes->watch = (sk_watch){.begin = begin_watch, .see = see_block};
    return &probes->watch;
}

void sk_probes_drop(sk_probes *probes, const sk_particles *particles, uint64_t moves, int64_t count)
{
    if (probes->watch.moves != moves)
        return;
    probes->watch.moves = particles->moves;
    probes->seen[0][0] -= count - particles->count;
}

/* Have the current particles been seen as they moved? */
static int saw_all(const sk_probes *probes, const sk_step *step)
{
    int64_t count = 0;
    for (int thread = 0; thread < sk_most_column_parts; thread++)
        count += probes->seen[thread][0];
    return step->watch && count == step->particles.count && probes->watch.moves == step->particles.moves;
}

/* --- Fronts --- */

static double front_of_bin(const sk_grid *grid, int axis, int bin)
{
    return grid->origin[axis] + grid->low[axis] + (bin + 0.5) * grid->cell_size / FRONT_BINS;
}

/* The front from the particles seen while they moved: the same bin as from all of them. */
static double seen_front(const sk_probes *probes, const sk_step *step, int probe)
{
    const sk_grid *grid = &step->grid;
    const selkie_probe_def *def = &step->scene->probes[probe];
    const int axis = (int)def->axis, bins = grid->cells[axis] * FRONT_BINS;
    const float scale = (float)(FRONT_BINS / grid->cell_size), low = (float)grid->low[axis];
    sk_front front = probes->fronts[probe * probes->parts];
    for (int part = 1; part < probes->parts; part++)
        sk_front_join(&front, &probes->fronts[probe * probes->parts + part], step->particles_per_cell);
    if (!front.count)
        return NAN;
    const float last = front.ahead[front.count - 1];
    const int bin = (int)(((def->direction >= 0 ? last : -last) - low) * scale);
    return front_of_bin(grid, axis, bin < 0 ? 0 : bin >= bins ? bins - 1 : bin);
}

/* Counts the particles of one part in bins along an axis. */
static void count_bins(const sk_probes *probes, const sk_step *step, int axis, int part)
{
    const int64_t count = step->particles.count, end = count * (part + 1) / probes->parts;
    const int bins = step->grid.cells[axis] * FRONT_BINS;
    const float scale = (float)(FRONT_BINS / step->grid.cell_size), low = (float)step->grid.low[axis];
    uint32_t *histogram = probes->histogram + (size_t)part * probes->bins;
    memset(histogram, 0, (size_t)bins * sizeof *histogram);
    for (int64_t p = count * part / probes->parts; p < end; p++) {
        const sk_particle *particle = &step->particles.records[p];
        const int bin = sk_column_bin(particle->position[axis], low, scale, bins);
        histogram[bin] += !(particle->flags & SK_PARTICLE_DEAD);
    }
}

/* The position ahead of which lies less than the liquid of one cell. */
static double measure_front(const sk_probes *probes, const sk_step *step, const selkie_probe_def *def)
{
    const sk_grid *grid = &step->grid;
    const int axis = (int)def->axis;
    if (axis >= grid->dimension)
        return NAN;
    const uint32_t *histogram = probes->added_bins[axis] ? probes->added_bins[axis] : probes->histogram;
    const int parts = probes->added_bins[axis] ? 1 : probes->parts;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int part = 0; part < (probes->added_bins[axis] ? 0 : parts); part++)
        count_bins(probes, step, axis, part);

    const int bins = grid->cells[axis] * FRONT_BINS;
    int64_t count = 0, ahead = 0;
    for (int part = 0; part < parts; part++)
        for (int bin = 0; bin < bins; bin++)
            count += histogram[(size_t)part * probes->bins + (size_t)bin];
    const int64_t enough = count < step->particles_per_cell ? count : step->particles_per_cell;
    for (int n = 0; n < bins && count; n++) {
        const int bin = def->direction >= 0 ? bins - 1 - n : n;
        for (int part = 0; part < parts; part++)
            ahead += histogram[(size_t)part * probes->bins + (size_t)bin];
        if (ahead >= enough)
            return front_of_bin(grid, axis, bin);
    }
    return NAN;
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
                   side * sk_face_density(step, side > 0 ? other : cell, d) * step->scene->gravity[d] * grid->cell_size;
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

/* The method that provides pressure and velocity at a point; NULL = read them from the grid. */
static const sk_method *find_sampler(const sk_probes *probes)
{
    for (int m = 0; m < probes->methods.count; m++)
        if (probes->methods.methods[m]->value_at)
            return probes->methods.methods[m];
    return NULL;
}

/* Temperature at a point: mean of the particles within a cell of it, by the linear hat. NaN without particles. */
static double measure_temperature(const sk_step *step, const double at[3])
{
    const sk_attribute *attribute = sk_particles_find_attribute(&step->particles, "temperature");
    const float *temperature = attribute ? (const float *)(const void *)attribute->data : NULL;
    double sum = 0.0, weights = 0.0;
    for (int64_t p = 0; temperature && p < step->particles.count; p++) {
        double weight = 1.0;
        for (int d = 0; d < step->dimension; d++)
            weight *=
                fmax(1.0 - fabs((double)step->particles.records[p].position[d] - at[d]) / step->grid.cell_size, 0.0);
        if (!(weight > 0.0) || step->particles.records[p].flags & SK_PARTICLE_DEAD)
            continue;
        sum += weight * (double)temperature[p];
        weights += weight;
    }
    return weights > 0.0 ? sum / weights : NAN;
}

/* Force, or torque about the point of the probe. NaN where nothing measures it. */
static void measure_force(const sk_probes *probes, const sk_step *step, int probe, double kick, double result[3])
{
    const selkie_probe_def *def = &step->scene->probes[probe];
    double force[3] = {NAN, NAN, NAN}, torque[3] = {NAN, NAN, NAN};
    int found = 0;
    for (int m = 0; m < probes->methods.count && !found; m++)
        if (probes->methods.methods[m]->force_on)
            found = probes->methods.methods[m]->force_on(step, def->on, def->at, force, torque);
    if (!found && probe < probes->surface_count && probes->surfaces[probe].count)
        sk_surface_force(&probes->surfaces[probe], step, kick, def->at, force, torque);
    memcpy(result, def->kind == SELKIE_PROBE_TORQUE ? torque : force, sizeof force);
}

/* Mean pressure over a round gauge: rings of equal area, in 2D pieces of a line. */
static double measure_gauge(const sk_step *step, const sk_method *sampler, const selkie_probe_def *def, double kick)
{
    enum { RINGS = 4, POINTS = 8 };
    const double *n = def->normal, length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const double unit[3] = {n[0] / length, n[1] / length, n[2] / length};
    double u[3] = {-unit[1], unit[0], 0.0}, v[3] = {0.0, 0.0, 0.0}, sum = 0.0;
    int count = 0;

    /* Two directions in the plane of the gauge. */
    if (step->dimension == 3) {
        const int least = fabs(unit[0]) < fabs(unit[1])   ? fabs(unit[0]) < fabs(unit[2]) ? 0 : 2
                          : fabs(unit[1]) < fabs(unit[2]) ? 1
                                                          : 2;
        double axis[3] = {least == 0, least == 1, least == 2}, size = 0.0;
        for (int d = 0; d < 3; d++)
            u[d] = unit[(d + 1) % 3] * axis[(d + 2) % 3] - unit[(d + 2) % 3] * axis[(d + 1) % 3];
        size = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
        for (int d = 0; d < 3; d++)
            u[d] /= size;
        for (int d = 0; d < 3; d++)
            v[d] = unit[(d + 1) % 3] * u[(d + 2) % 3] - unit[(d + 2) % 3] * u[(d + 1) % 3];
    }

    for (int r = 0; r < RINGS; r++)
        for (int p = 0; p < POINTS; p++) {
            double at[3], a, b = 0.0;
            if (step->dimension == 3) {
                const double radius = def->radius * sqrt((r + 0.5) / RINGS),
                             angle = 2.0 * M_PI * (p + 0.5 * r) / POINTS;
                a = radius * cos(angle), b = radius * sin(angle);
            } else {
                a = def->radius * (2.0 * (r * POINTS + p + 0.5) / (RINGS * POINTS) - 1.0);
            }
            for (int d = 0; d < 3; d++)
                at[d] = def->at[d] + a * u[d] + b * v[d];
            sum += sampler ? sampler->value_at(step, at, -1) : sk_pressure_near(step, at, NULL, kick);
            count++;
        }
    return sum / count;
}

static double measure_pressure_probe(const sk_step *step, const sk_method *sampler, const selkie_probe_def *def,
                                     double kick)
{
    if (def->radius > 0.0)
        return measure_gauge(step, sampler, def, kick);
    return sampler ? sampler->value_at(step, def->at, -1) : measure_pressure(step, def->at, kick);
}

/* --- On the device --- */

/* Do sums over the particles suffice for a probe? */
static int is_of_sums(enum selkie_probe_kind kind)
{
    return kind == SELKIE_PROBE_HEIGHT || kind == SELKIE_PROBE_LEVEL || kind == SELKIE_PROBE_FRONT;
}

/* Makes the sums of the probes on the device. */
static selkie_code add_up_there(sk_probes *probes, sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    sk_columns *columns = &probes->columns;
    sk_cuda_wanted_sums wanted = {
        .frame = {.low = {(float)step->grid.low[0], (float)step->grid.low[1], (float)step->grid.low[2]}},
        .bin_scale = (float)(FRONT_BINS / step->grid.cell_size)};
    sk_cuda_added added;
    if (columns->parts) {
        wanted.frame = sk_columns_frame(columns, step);
        wanted.node_count = sk_columns_nodes(columns, step);
        wanted.probe_count = columns->height_count ? scene->probe_count : 0;
        wanted.middles = (const float(*)[4])columns->middles;
    }
    for (int p = 0; p < scene->probe_count; p++)
        if (is_front(step, p))
            wanted.bin_count[(int)scene->probes[p].axis] = step->grid.cells[(int)scene->probes[p].axis] * FRONT_BINS;
    SK_TRY(sk_cuda_add_up(step, &wanted, &added, error));
    columns->added_nodes = wanted.node_count ? added.nodes : NULL;
    columns->added_heights = added.heights;
    for (int d = 0; d < 3; d++)
        probes->added_bins[d] = wanted.bin_count[d] ? added.bins[d] : NULL;
    return SELKIE_OK;
}

selkie_code sk_probes_fetch(sk_probes *probes, sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    int of_sums = 0, of_particles = scene->discretization != SELKIE_DISCRETIZATION_GRID;
    if (!step->cuda || !scene->probe_count)
        return SELKIE_OK;
    for (int p = 0; p < scene->probe_count; p++) {
        of_sums += is_of_sums(scene->probes[p].kind);
        of_particles |= scene->probes[p].kind == SELKIE_PROBE_TEMPERATURE;
    }
    const int there = of_sums && sk_cuda_has_particles(step) &&
                      (!probes->columns.parts || sk_columns_nodes(&probes->columns, step) <= most_nodes_there);
    if (there)
        SK_TRY(add_up_there(probes, step, error));

    /* Heights beside obstacles need the shares of solids; pressures, velocities and forces the fields. Methods without
     * a grid, and temperatures, need the particles. */
    const int others = of_sums < scene->probe_count;
    if ((others && of_particles) || (of_sums && !there))
        SK_TRY(sk_cuda_fetch_particles(step, error));
    return others || step->solids.obstacle_count ? sk_cuda_fetch_grid(step, others, error) : SELKIE_OK;
}

void sk_probes_measure(sk_probes *probes, const sk_step *step, double kick)
{
    const selkie_scene *scene = step->scene;
    if (!probes->memory || !scene->probe_count)
        return;
    const sk_method *sampler = find_sampler(probes);
    const int added = probes->columns.added_heights != NULL, seen = added || saw_all(probes, step);
    int column = 0;

    /* Columns of all probes of heights and levels, in one pass over the particles. */
    sk_columns_fill(&probes->columns, step, seen);

    /* One value per scalar, one per axis for vectors. */
    for (int p = 0; p < scene->probe_count; p++) {
        const selkie_probe_def *def = &scene->probes[p];
        switch (def->kind) {
        case SELKIE_PROBE_HEIGHT:
            probes->values[column++] = sk_column_height(&probes->columns, step, p);
            break;
        case SELKIE_PROBE_LEVEL:
            probes->values[column++] = probes->columns.levels[p];
            break;
        case SELKIE_PROBE_PRESSURE:
            probes->values[column++] = measure_pressure_probe(step, sampler, def, kick);
            break;
        case SELKIE_PROBE_VELOCITY:
            for (int d = 0; d < step->dimension; d++)
                probes->values[column++] =
                    sampler ? sampler->value_at(step, def->at, d) : sk_velocity_at(step, def->at, d);
            break;
        case SELKIE_PROBE_FORCE: {
            double force[3];
            measure_force(probes, step, p, kick, force);
            for (int d = 0; d < step->dimension; d++)
                probes->values[column++] = force[d];
            break;
        }
        case SELKIE_PROBE_TORQUE: {
            double torque[3];
            measure_force(probes, step, p, kick, torque);
            for (int d = step->dimension == 2 ? 2 : 0; d < 3; d++)
                probes->values[column++] = torque[d];
            break;
        }
        case SELKIE_PROBE_TEMPERATURE:
            probes->values[column++] = measure_temperature(step, def->at);
            break;
        case SELKIE_PROBE_FRONT:
            probes->values[column++] =
                seen && !added && is_front(step, p) ? seen_front(probes, step, p) : measure_front(probes, step, def);
            break;
        }
    }
    /* The sums are used up. */
    memset(probes->seen, 0, sizeof probes->seen);
    memset(probes->added_bins, 0, sizeof probes->added_bins);
    probes->columns.added_nodes = probes->columns.added_heights = NULL;
}

#include "methods/sources/sources.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

static int sub_cells_per_axis(int per_cell, int dimension)
{
    int n = 1;
    while ((dimension == 2 ? n * n : n * n * n) < per_cell)
        n++;
    return n;
}

/* Shape, bounds cut to the domain, and the range of cells. */
static selkie_code prepare(sk_source *source, const selkie_shape *def, const char *what, const sk_step *step,
                           selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    double up[3];
    selkie_scene_up(step->scene, up);
    SK_TRY(sk_shape_create(def, grid->dimension, up, step->scene->folder, 0.5 * grid->cell_size, what, step->memory,
                           &source->shape, NULL, error));
    sk_shape_bounds(source->shape, source->low, source->high);
    for (int d = 0; d < 3; d++) {
        source->low[d] = fmax(source->low[d], grid->low[d]);
        source->high[d] = fmin(source->high[d], grid->high[d]);
        if (d >= grid->dimension) {
            source->first[d] = 0;
            source->size[d] = 1;
            continue;
        }
        if (!(source->low[d] < source->high[d]))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s: lies outside the domain, which is %g..%g m along %c", what,
                           grid->low[d], grid->high[d], "xyz"[d]);
        source->first[d] = (int)floor((source->low[d] - grid->low[d]) / grid->cell_size);
        int last = (int)ceil((source->high[d] - grid->low[d]) / grid->cell_size);
        last = last > grid->cells[d] ? grid->cells[d] : last;
        source->size[d] = last - source->first[d];
    }
    return SELKIE_OK;
}

static selkie_code find_sites(sk_sources *sources, sk_source *source, const char *what, const sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    int n = sources->per_axis, nz = grid->dimension == 3 ? n : 1;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2], found = 0;
    source->sites = sk_allocate_zeroed(step->memory, cells * (size_t)sources->sub_cells);
    source->taken = sk_allocate(step->memory, cells * (size_t)sources->sub_cells);
    source->counts = sk_allocate(step->memory, cells * sizeof *source->counts);
    if (!source->sites || !source->taken || !source->counts)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: %.1f MiB for its sub-cells cannot be had", what,
                       (double)cells * (2 * sources->sub_cells + 4) / 1048576.0);
    for (size_t c = 0; c < cells; c++) {
        size_t i = c % (size_t)source->size[0], j = c / (size_t)source->size[0] % (size_t)source->size[1];
        size_t k = c / (size_t)source->size[0] / (size_t)source->size[1];
        for (int s = 0; s < sources->sub_cells; s++) {
            double x[3] = {((double)i + ((s % n) + 0.5) / n), ((double)j + ((s / n % n) + 0.5) / n), ((double)k + ((s / n / n % nz) + 0.5) / n)};
            for (int d = 0; d < 3; d++)
                x[d] = d < grid->dimension ? grid->low[d] + (source->first[d] + x[d]) * grid->cell_size : 0.0;
            double normal[3];
            int obstacle;
            int open = sk_shape_distance(source->shape, x) < 0.0 && sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0;
            source->sites[c * (size_t)sources->sub_cells + (size_t)s] = (uint8_t)open;
            found += (size_t)open;
        }
    }
    if (!found)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: holds no place for a particle (spacing %g m): it is too thin or inside an obstacle", what,
                       grid->cell_size / n);
    return SELKIE_OK;
}

selkie_code sk_sources_init(sk_sources *sources, const sk_step *step, selkie_error *error)
{
    const selkie_scene *scene = step->scene;
    memset(sources, 0, sizeof *sources);
    sources->memory = step->memory;
    sources->per_axis = sub_cells_per_axis(step->particles_per_cell, step->dimension);
    sources->sub_cells = sources->per_axis * sources->per_axis * (step->dimension == 3 ? sources->per_axis : 1);
    size_t total = (size_t)scene->source_count + (size_t)scene->drain_count + 1;
    sources->sources = sk_allocate_zeroed(step->memory, total * sizeof *sources->sources);
    if (!sources->sources)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sources: no memory");
    sources->drains = sources->sources + scene->source_count;
    char what[64];
    for (int s = 0; s < scene->source_count; s++) {
        snprintf(what, sizeof what, "sources[%d].shape", s);
        sources->source_count++;
        SK_TRY(prepare(&sources->sources[s], &scene->sources[s].shape, what, step, error));
        SK_TRY(find_sites(sources, &sources->sources[s], what, step, error));
    }
    for (int s = 0; s < scene->drain_count; s++) {
        snprintf(what, sizeof what, "drains[%d].shape", s);
        sources->drain_count++;
        SK_TRY(prepare(&sources->drains[s], &scene->drains[s].shape, what, step, error));
    }
    return SELKIE_OK;
}

void sk_sources_free(sk_sources *sources)
{
    for (int s = 0; s < sources->source_count; s++) {
        sk_shape_destroy(sources->sources[s].shape);
        sk_release(sources->memory, sources->sources[s].sites);
        sk_release(sources->memory, sources->sources[s].taken);
        sk_release(sources->memory, sources->sources[s].counts);
    }
    for (int s = 0; s < sources->drain_count; s++)
        sk_shape_destroy(sources->drains[s].shape);
    sk_release(sources->memory, sources->sources);
    memset(sources, 0, sizeof *sources);
}

static int in_bounds(const sk_source *source, const float x[3], int dimension)
{
    int inside = 1;
    for (int d = 0; d < dimension; d++)
        inside &= x[d] >= source->low[d] && x[d] <= source->high[d];
    return inside;
}

static void drain(const sk_source *source, sk_step *step)
{
    sk_particles *particles = &step->particles;
    int64_t gone = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if ((particle->flags & SK_PARTICLE_DEAD) || !in_bounds(source, particle->position, step->dimension))
            continue;
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
        if (sk_shape_distance(source->shape, x) < 0.0) {
            particle->flags |= SK_PARTICLE_DEAD;
            gone++;
            for (int d = 0; d < step->dimension; d++)
                step->positions[d] -= x[d];
        }
    }
    step->drained += gone;
}

/* Which sub-cells of the source are taken, and how many particles each of its cells holds. */
static void survey(const sk_sources *sources, sk_source *source, const double velocity[3], sk_step *step)
{
    const sk_grid *grid = &step->grid;
    sk_particles *particles = &step->particles;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2];
    memset(source->taken, 0, cells * (size_t)sources->sub_cells);
    memset(source->counts, 0, cells * sizeof *source->counts);
    int n = sources->per_axis;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (particle->flags & SK_PARTICLE_DEAD)
            continue;
        size_t cell = 0, stride = 1;
        int sub = 0, sub_stride = 1, inside = 1;
        for (int d = 0; d < step->dimension; d++) {
            double g = (particle->position[d] - grid->low[d]) / grid->cell_size - source->first[d];
            inside &= g >= 0.0 && g < source->size[d];
            if (!inside)
                break;
            int i = (int)g, s = (int)((g - i) * n);
            cell += (size_t)i * stride;
            stride *= (size_t)source->size[d];
            sub += (s < n ? s : n - 1) * sub_stride;
            sub_stride *= n;
        }
        if (!inside)
            continue;
        /* Sums of integers and equal bytes: the order of the threads does not show. */
        __atomic_fetch_add(&source->counts[cell], 1, __ATOMIC_RELAXED);
        __atomic_store_n(&source->taken[cell * (size_t)sources->sub_cells + (size_t)sub], 1, __ATOMIC_RELAXED);
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
        if (in_bounds(source, particle->position, step->dimension) && sk_shape_distance(source->shape, x) < 0.0)
            for (int d = 0; d < step->dimension; d++)
                particle->velocity[d] = (float)velocity[d];
    }
}

static selkie_code fill(const sk_sources *sources, const sk_source *source, const double velocity[3], sk_step *step,
                        selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    sk_particles *particles = &step->particles;
    int n = sources->per_axis, sub_cells = sources->sub_cells, rest = step->particles_per_cell;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2];
    for (size_t c = 0; c < cells; c++) {
        int room = rest - (int)source->counts[c];
        if (room <= 0)
            continue;
        SK_TRY(sk_particles_reserve(particles, particles->count + room, error));
        size_t at[3] = {c % (size_t)source->size[0], c / (size_t)source->size[0] % (size_t)source->size[1],
                        c / (size_t)source->size[0] / (size_t)source->size[1]};
        for (int s = 0; s < sub_cells && room > 0; s++) {
            size_t site = c * (size_t)sub_cells + (size_t)s;
            if (!source->sites[site] || source->taken[site])
                continue;
            int sub[3] = {s % n, s / n % n, s / n / n};
            double x[3] = {0, 0, 0};
            for (int d = 0; d < step->dimension; d++) {
                double jitter = step->scene->particles.arrangement == SELKIE_ARRANGEMENT_LATTICE
                                    ? 0.0 : 0.5 * (sk_random_float(step->scene->seed, particles->next_id, (uint64_t)d + 8) - 0.5);
                x[d] = grid->low[d] + ((double)source->first[d] + (double)at[d] + (sub[d] + 0.5 + jitter) / n) * grid->cell_size;
            }
            sk_particles_append(particles, x, velocity);
            for (int d = 0; d < step->dimension; d++)
                step->positions[d] += x[d];
            step->emitted++;
            room--;
        }
    }
    return SELKIE_OK;
}

static int running(double start, double end, double time)
{
    return time >= start - 1e-9 && (end < 0.0 || time < end - 1e-9);
}

selkie_code sk_sources_run(sk_step *step, selkie_error *error)
{
    sk_sources *sources = step->sources;
    const selkie_scene *scene = step->scene;
    for (int s = 0; s < sources->drain_count; s++)
        if (running(scene->drains[s].start, scene->drains[s].end, step->time))
            drain(&sources->drains[s], step);
    for (int s = 0; s < sources->source_count; s++)
        if (running(scene->sources[s].start, scene->sources[s].end, step->time)) {
            survey(sources, &sources->sources[s], scene->sources[s].velocity, step);
            SK_TRY(fill(sources, &sources->sources[s], scene->sources[s].velocity, step, error));
        }
    return SELKIE_OK;
}

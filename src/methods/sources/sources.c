#include "methods/sources/sources.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "defs/materials.h"

static int sub_cells_per_axis(int per_cell, int dimension)
{
    int n = 1;
    while ((dimension == 2 ? n * n : n * n * n) < per_cell)
        n++;
    return n;
}

/* Shape, bounds cut to the domain, and the range of cells. */
static selkie_code prepare(sk_source *source, const selkie_shape *def, const double velocity[3], const char *what,
                           const sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    double up[3];
    selkie_scene_up(step->scene, up);
    const sk_shape_options options = {.dimension = grid->dimension,
                                      .up = up,
                                      .folder = step->scene->folder,
                                      .sample_size = 0.5 * grid->cell_size,
                                      .what = what,
                                      .memory = step->memory};
    SK_TRY(sk_shape_create(def, &options, &source->shape, error));
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
        /* Moving sub-cells start up to a cell before the shape. */
        source->first[d] -= velocity[d] != 0.0;
        source->size[d] = last - source->first[d];
    }
    return SELKIE_OK;
}

enum { SITE_OUTSIDE, SITE_NEAR, SITE_INSIDE };

/* Classifies the sub-cells: always inside the shape while they move within a cell, never inside, or sometimes inside.
 * The last kind is tested before each filling. */
static selkie_code find_sites(sk_sources *sources, sk_source *source, const char *what, const sk_step *step,
                              selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    int n = sources->per_axis, nz = grid->dimension == 3 ? n : 1;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2], found = 0;
    source->sites = sk_allocate_zeroed(step->memory, cells * (size_t)sources->sub_cells);
    source->taken = sk_allocate(step->memory, cells * (size_t)sources->sub_cells);
    source->counts = sk_allocate(step->memory, cells * sizeof *source->counts);
    source->standing = sk_allocate(step->memory, cells * sizeof *source->standing);
    if (!source->sites || !source->taken || !source->counts || !source->standing)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for its sub-cells (%.1f MiB)", what,
                       (double)cells * (2 * sources->sub_cells + 8) / 1048576.0);
    const double reach = sqrt((double)grid->dimension) * grid->cell_size;
    for (size_t c = 0; c < cells; c++) {
        size_t i = c % (size_t)source->size[0], j = c / (size_t)source->size[0] % (size_t)source->size[1];
        size_t k = c / (size_t)source->size[0] / (size_t)source->size[1];
        for (int s = 0; s < sources->sub_cells; s++) {
            double x[3] = {((double)i + ((s % n) + 0.5) / n), ((double)j + ((s / n % n) + 0.5) / n),
                           ((double)k + ((s / n / n % nz) + 0.5) / n)};
            for (int d = 0; d < 3; d++)
                x[d] = d < grid->dimension ? grid->low[d] + (source->first[d] + x[d]) * grid->cell_size : 0.0;
            double normal[3];
            int obstacle;
            double distance = sk_shape_distance(source->shape, x);
            source->sites[c * (size_t)sources->sub_cells + (size_t)s] = distance < -reach  ? SITE_INSIDE
                                                                        : distance < reach ? SITE_NEAR
                                                                                           : SITE_OUTSIDE;
            found += distance < 0.0 && sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0;
        }
    }
    if (!found)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: has no room for a particle (spacing %g m): it is too thin or inside an obstacle", what,
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
        SK_TRY(prepare(&sources->sources[s], &scene->sources[s].shape, scene->sources[s].velocity, what, step, error));
        SK_TRY(find_sites(sources, &sources->sources[s], what, step, error));
    }
    for (int s = 0; s < scene->drain_count; s++) {
        snprintf(what, sizeof what, "drains[%d].shape", s);
        sources->drain_count++;
        SK_TRY(prepare(&sources->drains[s], &scene->drains[s].shape, (const double[3]){0, 0, 0}, what, step, error));
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
        sk_release(sources->memory, sources->sources[s].standing);
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

/* Updates the mass sums for a particle that is added (sign 1) or removed (-1). */
static void count_mass(sk_step *step, const sk_attribute *material, int64_t p, double sign)
{
    if (!step->relative_density)
        return;
    const double mass = sign * sk_step_mass(step, material, p);
    step->mass_sums.mass += mass;
    for (int d = 0; d < step->dimension; d++)
        step->mass_sums.moment[d] += mass * step->particles.records[p].position[d];
}

static void drain(const sk_source *source, sk_step *step)
{
    sk_particles *particles = &step->particles;
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    int64_t gone = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if ((particle->flags & SK_PARTICLE_DEAD) || !in_bounds(source, particle->position, step->dimension))
            continue;
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
        if (sk_shape_distance(source->shape, x) < 0.0) {
            particle->flags |= SK_PARTICLE_DEAD;
            count_mass(step, material, p, -1.0);
            gone++;
            for (int d = 0; d < step->dimension; d++)
                step->positions[d] -= x[d];
        }
    }
    step->drained += gone;
}

/* Current displacement of the source's sub-cells within a cell, in cells. */
static void moved_by(const selkie_source_def *def, const sk_step *step, double shift[3])
{
    for (int d = 0; d < 3; d++) {
        double way = def->velocity[d] * (step->time - def->start) / step->grid.cell_size;
        shift[d] = d < step->dimension ? way - floor(way) : 0.0;
    }
}

/* Finds the occupied sub-cells of the source, and the number of particles in each of its cells, moving and fixed. */
static void survey(const sk_sources *sources, sk_source *source, const double velocity[3], const double shift[3],
                   sk_step *step)
{
    const sk_grid *grid = &step->grid;
    sk_particles *particles = &step->particles;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2];
    memset(source->taken, 0, cells * (size_t)sources->sub_cells);
    memset(source->counts, 0, cells * sizeof *source->counts);
    memset(source->standing, 0, cells * sizeof *source->standing);
    int n = sources->per_axis;

    /* Count particles in the moving and in the fixed cells. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (particle->flags & SK_PARTICLE_DEAD)
            continue;
        size_t cell = 0, fixed = 0, stride = 1;
        int sub = 0, sub_stride = 1, inside = 1, stands = 1;
        for (int d = 0; d < step->dimension; d++) {
            double g = (particle->position[d] - grid->low[d]) / grid->cell_size - source->first[d], m = g - shift[d];
            stands &= g >= 0.0 && g < source->size[d];
            inside &= m >= 0.0 && m < source->size[d];
            if (!stands && !inside)
                break;
            int i = inside ? (int)m : 0, s = (int)((m - i) * n);
            cell += (size_t)i * stride;
            fixed += (size_t)(stands ? (int)g : 0) * stride;
            stride *= (size_t)source->size[d];
            sub += (s < 0 ? 0 : s < n ? s : n - 1) * sub_stride;
            sub_stride *= n;
        }
        /* Integer sums and equal bytes: the order of the threads does not matter. */
        if (stands)
            __atomic_fetch_add(&source->standing[fixed], 1, __ATOMIC_RELAXED);
        if (inside) {
            __atomic_fetch_add(&source->counts[cell], 1, __ATOMIC_RELAXED);
            __atomic_store_n(&source->taken[cell * (size_t)sources->sub_cells + (size_t)sub], 1, __ATOMIC_RELAXED);
        }

        /* Particles inside the shape take the velocity of the source. */
        if (!stands)
            continue;
        double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
        if (in_bounds(source, particle->position, step->dimension) && sk_shape_distance(source->shape, x) < 0.0)
            for (int d = 0; d < step->dimension; d++)
                particle->velocity[d] = (float)velocity[d];
    }
}

/* May a particle be put at x, whose sub-cell has the centre `middle`? If so, `fixed` receives its fixed cell. */
static int may_fill(const sk_source *source, const sk_step *step, int site, const double middle[3], const double x[3],
                    size_t *fixed)
{
    const sk_grid *grid = &step->grid;
    if (site == SITE_OUTSIDE || (site == SITE_NEAR && !(sk_shape_distance(source->shape, middle) < 0.0)))
        return 0;
    double normal[3];
    int obstacle;
    if (!(sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0))
        return 0;
    size_t stride = 1;
    *fixed = 0;
    for (int d = 0; d < step->dimension; d++) {
        int i = (int)floor((x[d] - grid->low[d]) / grid->cell_size) - source->first[d];
        if (x[d] < grid->low[d] || x[d] > grid->high[d] || i < 0 || i >= source->size[d])
            return 0;
        *fixed += (size_t)i * stride;
        stride *= (size_t)source->size[d];
    }
    return source->standing[*fixed] < (uint32_t)step->particles_per_cell;
}

static selkie_code fill(const sk_sources *sources, const sk_source *source, const selkie_source_def *def,
                        const double shift[3], sk_step *step, selkie_error *error)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const uint32_t material_index = (uint32_t)sk_scene_find_material(step->scene, def->material);
    const sk_grid *grid = &step->grid;
    sk_particles *particles = &step->particles;
    int n = sources->per_axis, sub_cells = sources->sub_cells, rest = step->particles_per_cell;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2];

    /* Fill empty sub-cells up to the rest count. */
    for (size_t c = 0; c < cells; c++) {
        int room = rest - (int)source->counts[c];
        if (room <= 0)
            continue;
        SK_TRY(sk_particles_reserve(particles, particles->count + room, error));
        size_t at[3] = {c % (size_t)source->size[0], c / (size_t)source->size[0] % (size_t)source->size[1],
                        c / (size_t)source->size[0] / (size_t)source->size[1]};
        for (int s = 0; s < sub_cells && room > 0; s++) {
            size_t site = c * (size_t)sub_cells + (size_t)s;
            if (source->sites[site] == SITE_OUTSIDE || source->taken[site])
                continue;

            /* The place of the particle. */
            int sub[3] = {s % n, s / n % n, s / n / n};
            double x[3] = {0, 0, 0}, middle[3] = {0, 0, 0};
            size_t fixed;
            for (int d = 0; d < step->dimension; d++) {
                double jitter =
                    step->scene->particles.arrangement == SELKIE_ARRANGEMENT_LATTICE
                        ? 0.0
                        : step->scene->particles.jitter *
                              (sk_random_float(step->scene->seed, particles->next_id, (uint64_t)d + 8) - 0.5);
                double corner = (double)source->first[d] + (double)at[d] + shift[d];
                middle[d] = grid->low[d] + (corner + (sub[d] + 0.5) / n) * grid->cell_size;
                x[d] = middle[d] + jitter / n * grid->cell_size;
            }

            /* Add it, and update the sums. */
            if (!may_fill(source, step, source->sites[site], middle, x, &fixed))
                continue;
            source->standing[fixed]++;
            sk_particles_append(particles, x, def->velocity);
            if (material)
                material->data[particles->count - 1] = material_index;
            count_mass(step, material, particles->count - 1, 1.0);
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
        if (running(scene->drains[s].start, scene->drains[s].end, step->time)) {
            drain(&sources->drains[s], step);
            sk_particles_moved(&step->particles);
        }
    for (int s = 0; s < sources->source_count; s++)
        if (running(scene->sources[s].start, scene->sources[s].end, step->time)) {
            double shift[3];
            moved_by(&scene->sources[s], step, shift);
            survey(sources, &sources->sources[s], scene->sources[s].velocity, shift, step);
            SK_TRY(fill(sources, &sources->sources[s], &scene->sources[s], shift, step, error));
        }
    return SELKIE_OK;
}

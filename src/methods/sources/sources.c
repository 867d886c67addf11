#include "methods/sources/sources.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "defs/materials.h"
#include "defs/structs.h"

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

    /* The shape and its bounds. */
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

    /* Cut the bounds to the domain and find the cells that they cover. */
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
                           grid->low[d] + grid->origin[d], grid->high[d] + grid->origin[d], "xyz"[d]);
        source->first[d] = (int)floor((source->low[d] - grid->low[d]) / grid->cell_size);
        int last = (int)ceil((source->high[d] - grid->low[d]) / grid->cell_size);
        last = last > grid->cells[d] ? grid->cells[d] : last;
        source->size[d] = last - source->first[d];
    }
    return SELKIE_OK;
}

/* Middle of a sub-cell, m. */
static void place_of_site(const sk_sources *sources, const sk_source *source, const sk_grid *grid, size_t cell, int s,
                          double x[3])
{
    const int n = sources->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    const size_t at[3] = {cell % (size_t)source->size[0], cell / (size_t)source->size[0] % (size_t)source->size[1],
                          cell / (size_t)source->size[0] / (size_t)source->size[1]};
    for (int d = 0; d < 3; d++)
        x[d] = d < grid->dimension
                   ? grid->low[d] + (source->first[d] + (double)at[d] + (sub[d] + 0.5) / n) * grid->cell_size
                   : 0.0;
}

/* Finds the sub-cells inside the shape of a source that keeps it filled. */
static selkie_code find_sites(sk_sources *sources, sk_source *source, const char *what, const sk_step *step,
                              selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    size_t cells = (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2], found = 0;
    source->sites = sk_allocate_zeroed(step->memory, cells * (size_t)sources->sub_cells);
    source->held = sk_allocate(step->memory, cells * (size_t)sources->sub_cells * sizeof *source->held);
    source->cells = sk_allocate(step->memory, cells * sizeof *source->cells);
    if (!source->sites || !source->held || !source->cells)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for its sub-cells (%.1f MiB)", what,
                       (double)cells * (5.0 * sources->sub_cells + (double)sizeof *source->cells) / 1048576.0);
    for (size_t c = 0; c < cells; c++)
        for (int s = 0; s < sources->sub_cells; s++) {
            double x[3], normal[3];
            int obstacle;
            place_of_site(sources, source, grid, c, s, x);
            const int inside = sk_shape_distance(source->shape, x) < 0.0;
            source->sites[c * (size_t)sources->sub_cells + (size_t)s] = (uint8_t)inside;
            found += inside && sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0;
        }
    if (!found)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: has no room for a particle (spacing %g m): it is too thin or inside an obstacle", what,
                       grid->cell_size / sources->per_axis);
    return SELKIE_OK;
}

static selkie_code init_source(sk_sources *sources, int index, const sk_step *step, selkie_error *error)
{
    sk_source *source = &sources->sources[index];
    const selkie_source_def *def = &step->scene->sources[index];
    char what[64];
    snprintf(what, sizeof what, "sources[%d].shape", index);
    SK_TRY(prepare(source, &def->shape, what, step, error));
    const double *v = def->velocity;
    source->streams = def->flow_rate > 0.0 || v[0] != 0.0 || v[1] != 0.0 || v[2] != 0.0;
    if (!source->streams)
        return find_sites(sources, source, what, step, error);
    const sk_stream_source from = {.shape = source->shape,
                                   .def = &def->shape,
                                   .velocity = {v[0], v[1], v[2]},
                                   .flow_rate = def->flow_rate,
                                   .spacing = step->grid.cell_size / sources->per_axis,
                                   .what = what};
    SK_TRY(sk_stream_init(&source->stream, &from, step, error));
    sk_inlet *inlet = &sources->inlets[index];
    inlet->shape = source->shape;
    memcpy(inlet->low, source->low, sizeof inlet->low);
    memcpy(inlet->high, source->high, sizeof inlet->high);
    memcpy(inlet->velocity, source->stream.velocity, sizeof inlet->velocity);
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
    sources->inlets = sk_allocate_zeroed(step->memory, total * sizeof *sources->inlets);
    if (!sources->sources || !sources->inlets)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "sources: no memory");
    sources->drains = sources->sources + scene->source_count;
    for (int s = 0; s < scene->source_count; s++) {
        sources->source_count++;
        SK_TRY(init_source(sources, s, step, error));
    }
    for (int s = 0; s < scene->drain_count; s++) {
        char what[64];
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
        sk_release(sources->memory, sources->sources[s].held);
        sk_release(sources->memory, sources->sources[s].cells);
        sk_stream_free(&sources->sources[s].stream, sources->memory);
    }
    for (int s = 0; s < sources->drain_count; s++)
        sk_shape_destroy(sources->drains[s].shape);
    sk_release(sources->memory, sources->sources);
    sk_release(sources->memory, sources->inlets);
    memset(sources, 0, sizeof *sources);
}

static int in_bounds(const sk_source *source, const float x[3], int dimension)
{
    int inside = 1;
    for (int d = 0; d < dimension; d++)
        inside &= x[d] >= source->low[d] && x[d] <= source->high[d];
    return inside;
}

/* (m/s)^2 */
static double speed_squared(const sk_step *step, int64_t p)
{
    double sum = 0.0;
    for (int d = 0; d < step->dimension; d++)
        sum += (double)step->particles.records[p].velocity[d] * step->particles.records[p].velocity[d];
    return sum;
}

/* Updates the mass sums for a particle that is added (sign 1) or removed (-1). */
static void count_mass(sk_step *step, const sk_attribute *material, int64_t p, double sign)
{
    if (!step->relative_density)
        return;
    const double mass = sign * sk_step_mass(step, material, p);
    step->mass_sums.mass += mass;
    step->mass_sums.kinetic += 0.5 * mass * speed_squared(step, p);
    for (int d = 0; d < step->dimension; d++)
        step->mass_sums.moment[d] += mass * step->particles.records[p].position[d];
}

static int is_inside(const sk_source *source, const sk_step *step, const sk_particle *particle)
{
    const double x[3] = {particle->position[0], particle->position[1], particle->position[2]};
    return !(particle->flags & SK_PARTICLE_DEAD) && in_bounds(source, particle->position, step->dimension) &&
           sk_shape_distance(source->shape, x) < 0.0;
}

static void remove_particle(sk_step *step, const sk_attribute *material, int64_t p)
{
    sk_particle *particle = &step->particles.records[p];
    particle->flags |= SK_PARTICLE_DEAD;
    count_mass(step, material, p, -1.0);
    step->drained++;
    for (int d = 0; d < step->dimension; d++)
        step->positions[d] -= particle->position[d];
}

/* The part of a step in which a source or drain runs, as seconds since its start. */
static void running_time(double start, double end, const sk_step *step, double *from, double *to)
{
    const double last = end < 0.0 ? INFINITY : end;
    *from = fmax(fmin(step->time, last) - start, 0.0);
    *to = fmax(fmin(step->end_time, last) - start, 0.0);
}

static int running(double start, double end, double time)
{
    return time >= start - 1e-9 && (end < 0.0 || time < end - 1e-9);
}

/* Removes at most `wanted` of the liquid particles inside a drain. Bodies of particles stay whole. Of those inside,
 * every n-th goes. */
static selkie_code drain(sk_step *step, const sk_source *source, int64_t wanted, selkie_error *error)
{
    const sk_particles *particles = &step->particles;
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    const sk_attribute *body = sk_particles_find_attribute(particles, "body"); /* 0 = liquid */
    int64_t inside = 0, seen = 0;
    (void)error;
    for (int64_t p = 0; wanted && wanted < INT64_MAX && p < particles->count; p++)
        inside += !(body && body->data[p]) && is_inside(source, step, &particles->records[p]);
    for (int64_t p = 0; wanted && p < particles->count; p++) {
        if ((body && body->data[p]) || !is_inside(source, step, &particles->records[p]))
            continue;
        if (wanted >= inside || (seen + 1) * wanted / inside > seen * wanted / inside)
            remove_particle(step, material, p);
        seen++;
    }
    sk_particles_moved(&step->particles);
    return SELKIE_OK;
}

/* The particles that a drain may remove in this step. */
static int64_t drained_at_most(const selkie_drain_def *def, const sk_step *step)
{
    double from, to;
    if (!(def->flow_rate > 0.0))
        return INT64_MAX;
    const double rate =
        def->flow_rate * step->particles_per_cell / pow(step->grid.cell_size, step->dimension); /* particles, 1/s */
    running_time(def->start, def->end, step, &from, &to);
    return (int64_t)floor(rate * to + 1e-6) - (int64_t)floor(rate * from + 1e-6);
}

static size_t cell_count(const sk_source *source)
{
    return (size_t)source->size[0] * (size_t)source->size[1] * (size_t)source->size[2];
}

/* Counts the particles in the sub-cells of a source that keeps its shape filled. */
static selkie_code survey(sk_step *step, sk_source *source, selkie_error *error)
{
    const sk_sources *sources = step->sources;
    const sk_grid *grid = &step->grid;
    const sk_particles *particles = &step->particles;
    memset(source->held, 0, cell_count(source) * (size_t)sources->sub_cells * sizeof *source->held);
    int n = sources->per_axis;

#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        const sk_particle *particle = &particles->records[p];
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
        /* Integer sums: the order of the threads does not matter. */
        if (inside)
            __atomic_fetch_add(&source->held[cell * (size_t)sources->sub_cells + (size_t)sub], 1, __ATOMIC_RELAXED);
    }
    (void)error;
    return SELKIE_OK;
}

/* Adds a particle and updates the sums. */
static selkie_code add_particle(sk_step *step, const selkie_source_def *def, const double x[3],
                                const double velocity[3], selkie_error *error)
{
    sk_particles *particles = &step->particles;
    SK_TRY(sk_particles_reserve(particles, particles->count + 1, error));
    sk_particles_append(particles, x, velocity);
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    if (material)
        material->data[particles->count - 1] = (uint32_t)sk_scene_find_material(step->scene, def->material);
    const sk_attribute *temperature = sk_particles_find_attribute(particles, "temperature");
    if (temperature)
        ((float *)(void *)temperature->data)[particles->count - 1] = (float)def->temperature;
    count_mass(step, material, particles->count - 1, 1.0);
    const double speed2 = speed_squared(step, particles->count - 1);
    step->sums.kinetic += 0.5 * speed2;
    step->sums.max_speed = fmax(step->sums.max_speed, sqrt(speed2));
    for (int d = 0; d < step->dimension; d++)
        step->positions[d] += x[d];
    step->emitted++;
    step->is_dry = 0;
    return SELKIE_OK;
}

/* Moves a place at random within its sub-cell, but not out of the domain. */
static void jitter(const sk_sources *sources, const sk_step *step, double x[3])
{
    const sk_grid *grid = &step->grid;
    const selkie_arrangement arrangement = step->scene->particles.arrangement;
    if (arrangement == SELKIE_ARRANGEMENT_LATTICE ||
        (arrangement == SELKIE_ARRANGEMENT_AUTO &&
         (step->scene->discretization == SELKIE_DISCRETIZATION_SPH || sk_scene_has_points(step->scene) ||
          sk_scene_has_immersed_points(step->scene))))
        return;
    const double reach = step->scene->particles.jitter * grid->cell_size / sources->per_axis,
                 gap = 1e-3 * grid->cell_size;
    for (int d = 0; d < step->dimension; d++) {
        x[d] += reach * (sk_random_float(step->scene->seed, step->particles.next_id, (uint64_t)d + 8) - 0.5);
        x[d] = fmin(fmax(x[d], grid->low[d] + gap), grid->high[d] - gap);
    }
}

static int is_free(const sk_step *step, const double x[3])
{
    double normal[3];
    int obstacle;
    return sk_solids_distance(&step->solids, x, normal, &obstacle) > 0.0;
}

/* Particles of a cell inside the shape, and how many it holds at rest. */
static void count_cell(const sk_sources *sources, const sk_source *source, const sk_step *step, size_t c)
{
    const size_t first = c * (size_t)sources->sub_cells;
    int held = 0, free = 0;
    for (int s = 0; s < sources->sub_cells; s++) {
        double x[3];
        if (!source->sites[first + (size_t)s])
            continue;
        held += (int)source->held[first + (size_t)s];
        if (step->solids.obstacle_count && !source->held[first + (size_t)s]) {
            place_of_site(sources, source, &step->grid, c, s, x);
            free += is_free(step, x);
        } else {
            free++;
        }
    }
    source->cells[c].held = (float)held;
    source->cells[c].rest = (float)free * (float)step->particles_per_cell / (float)sources->sub_cells;
}

/* Particles that a cell and its neighbours lack, and how many they hold at rest. */
static float lack_around(const sk_source *source, size_t c, float *rest)
{
    const int at[3] = {(int)(c % (size_t)source->size[0]), (int)(c / (size_t)source->size[0] % (size_t)source->size[1]),
                       (int)(c / (size_t)source->size[0] / (size_t)source->size[1])};
    int low[3], high[3];
    float lack = 0.0f;
    *rest = 0.0f;
    for (int d = 0; d < 3; d++) {
        low[d] = at[d] > 0 ? at[d] - 1 : 0;
        high[d] = at[d] < source->size[d] - 1 ? at[d] + 1 : at[d];
    }
    for (int k = low[2]; k <= high[2]; k++)
        for (int j = low[1]; j <= high[1]; j++)
            for (int i = low[0]; i <= high[0]; i++) {
                const sk_source_cell *cell =
                    &source->cells[((size_t)k * (size_t)source->size[1] + (size_t)j) * (size_t)source->size[0] +
                                   (size_t)i];
                lack += cell->rest - cell->held;
                *rest += cell->rest;
            }
    return lack;
}

/* Particles. In liquid that moves under density projection, cells along walls lacked up to 0.16 of their rest count,
 * others up to 0.10 (3D). At a surface this is 0.4 cells of height. */
static float least_lack(float rest)
{
    return fminf(0.18f * rest + 1.5f, 0.5f * rest);
}

/* Finds the cells to fill. In liquid that moves, single cells hold two particles more or less than at rest. To fill
 * those that have less would raise the mean in each step, and the density projection would carry the surplus away: a
 * pump. What has left shows over a cell and its neighbours. */
static void find_lacking(const sk_sources *sources, sk_source *source, const sk_step *step)
{
    const int64_t cells = (int64_t)cell_count(source);
#pragma omp parallel num_threads(step->threads)
    {
#pragma omp for schedule(static)
        for (int64_t c = 0; c < cells; c++)
            count_cell(sources, source, step, (size_t)c);
#pragma omp for schedule(static)
        for (int64_t c = 0; c < cells; c++) {
            float rest;
            sk_source_cell *cell = &source->cells[c];
            cell->lacks = cell->held + 0.5f < cell->rest && lack_around(source, (size_t)c, &rest) > least_lack(rest);
        }
    }
}

/* Fills empty sub-cells up to the rest count of their cell and of those around it. */
static selkie_code fill(const sk_sources *sources, sk_source *source, const selkie_source_def *def, sk_step *step,
                        selkie_error *error)
{
    const double at_rest[3] = {0.0, 0.0, 0.0};
    const int sub_cells = sources->sub_cells;
    const size_t cells = cell_count(source);
    find_lacking(sources, source, step);
    for (size_t c = 0; c < cells; c++) {
        float rest;
        if (!source->cells[c].lacks)
            continue;
        float room = fminf(source->cells[c].rest - source->cells[c].held, lack_around(source, c, &rest));
        for (int s = 0; s < sub_cells && room >= 0.5f; s++) {
            const size_t site = c * (size_t)sub_cells + (size_t)s;
            double x[3];
            if (!source->sites[site] || source->held[site])
                continue;
            place_of_site(sources, source, &step->grid, c, s, x);
            jitter(sources, step, x);
            if (!is_free(step, x))
                continue;
            SK_TRY(add_particle(step, def, x, at_rest, error));
            source->cells[c].held += 1.0f;
            room -= 1.0f;
        }
    }
    return SELKIE_OK;
}

selkie_code sk_sources_drive(sk_step *step, const sk_source *source, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    sk_attribute *affine = sk_particles_find_attribute(particles, "affine");
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (!is_inside(source, step, particle))
            continue;
        particle->flags |= SK_PARTICLE_DRIVEN;
        for (int d = 0; d < step->dimension; d++)
            particle->velocity[d] = (float)source->stream.velocity[d];
        if (affine)
            memset(affine->data + p * affine->components, 0, (size_t)affine->components * sizeof *affine->data);
    }
    (void)error;
    return SELKIE_OK;
}

static selkie_code count_inside(sk_step *step, const sk_source *source, int64_t *inside, selkie_error *error)
{
    *inside = 0;
    for (int64_t p = 0; p < step->particles.count; p++)
        *inside += is_inside(source, step, &step->particles.records[p]);
    (void)error;
    return SELKIE_OK;
}

/* Fills the shape of a stream that starts, unless it holds liquid already. */
static selkie_code begin_stream(const sk_source *source, const selkie_source_def *def, sk_step *step,
                                const sk_sources_form *form, selkie_error *error)
{
    const sk_stream *stream = &source->stream;
    double wanted = 0.0, x[3];
    int64_t inside = 0;
    for (int64_t p = 0; p < stream->point_count; p++)
        wanted += stream->lengths[p] / stream->layer;
    SK_TRY(form->count_inside(step, source, &inside, error));
    if ((double)inside > 0.5 * wanted)
        return SELKIE_OK;
    sk_stream_filling filling = {0};
    while (sk_stream_fill(stream, &filling, step->time - def->start, x)) {
        jitter(step->sources, step, x);
        if (is_free(step, x))
            SK_TRY(add_particle(step, def, x, stream->velocity, error));
    }
    return SELKIE_OK;
}

void sk_sources_find_running(sk_step *step)
{
    sk_sources *sources = step->sources;
    for (int s = 0; s < sources->source_count; s++) {
        const selkie_source_def *def = &step->scene->sources[s];
        sources->inlets[s].running = running(def->start, def->end, step->time) && sources->sources[s].streams;
    }
}

selkie_code sk_sources_run_with(sk_step *step, const sk_sources_form *form, selkie_error *error)
{
    sk_sources *sources = step->sources;
    const selkie_scene *scene = step->scene;
    sk_sources_find_running(step);
    for (int s = 0; s < sources->drain_count; s++)
        if (running(scene->drains[s].start, scene->drains[s].end, step->time))
            SK_TRY(form->drain(step, &sources->drains[s], drained_at_most(&scene->drains[s], step), error));
    for (int s = 0; s < sources->source_count; s++) {
        sk_source *source = &sources->sources[s];
        const selkie_source_def *def = &scene->sources[s];
        if (!running(def->start, def->end, step->time))
            continue;
        if (source->streams) {
            const double before = step->time - step->last_dt;
            if (step->step_count == 0 || !running(def->start, -1.0, before))
                SK_TRY(begin_stream(source, def, step, form, error));
            SK_TRY(form->drive(step, source, error));
        } else {
            SK_TRY(form->survey(step, source, error));
            SK_TRY(fill(sources, source, def, step, error));
        }
    }
    return SELKIE_OK;
}

/* The methods without an inlet on the grid have changed the velocities of driven particles. SPH starts each step with
 * the source's velocity and keeps what pressure adds: taken back, the pressure in the source would never relax. */
static selkie_code keep_driven(sk_step *step, const sk_source *source, selkie_error *error)
{
    sk_particles *particles = &step->particles;
    const double *velocity = source->stream.velocity;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < particles->count; p++) {
        sk_particle *particle = &particles->records[p];
        if (!(particle->flags & SK_PARTICLE_DRIVEN) || (particle->flags & SK_PARTICLE_DEAD))
            continue;
        if (!in_bounds(source, particle->position, step->dimension))
            continue;
        particle->flags &= ~(uint32_t)SK_PARTICLE_DRIVEN;
        for (int d = 0; d < step->dimension; d++)
            particle->velocity[d] = (float)velocity[d];
    }
    (void)error;
    return SELKIE_OK;
}

static selkie_code end_drive(sk_step *step, selkie_error *error)
{
    (void)error;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++)
        if (step->particles.records[p].flags & SK_PARTICLE_DRIVEN) /* few: the others are not written */
            step->particles.records[p].flags &= ~(uint32_t)SK_PARTICLE_DRIVEN;
    return SELKIE_OK;
}

static selkie_code emit(const sk_sources *sources, const sk_source *source, const selkie_source_def *def, sk_step *step,
                        selkie_error *error)
{
    double from, to;
    running_time(def->start, def->end, step, &from, &to);
    const int64_t last = sk_stream_count(&source->stream, to);
    for (int64_t k = sk_stream_count(&source->stream, from); k < last; k++) {
        double x[3];
        sk_stream_place(&source->stream, k, step->end_time - def->start, x);
        jitter(sources, step, x);
        if (is_free(step, x))
            SK_TRY(add_particle(step, def, x, source->stream.velocity, error));
    }
    return SELKIE_OK;
}

selkie_code sk_sources_emit_with(sk_step *step, const sk_sources_form *form, selkie_error *error)
{
    sk_sources *sources = step->sources;
    const selkie_scene *scene = step->scene;
    int streams = 0;
    for (int s = 0; s < sources->source_count; s++)
        if (sources->sources[s].streams && sources->inlets[s].running && !step->sph)
            SK_TRY(form->keep_driven(step, &sources->sources[s], error));
    SK_TRY(form->end_drive(step, error));
    for (int s = 0; s < sources->source_count; s++) {
        if (!sources->sources[s].streams)
            continue;
        streams = 1;
        SK_TRY(emit(sources, &sources->sources[s], &scene->sources[s], step, error));
    }
    if (streams)
        sk_particles_moved(&step->particles);
    return SELKIE_OK;
}

static const sk_sources_form on_host = {drain, count_inside, survey, sk_sources_drive, keep_driven, end_drive};

selkie_code sk_sources_run(sk_step *step, selkie_error *error)
{
    return sk_sources_run_with(step, &on_host, error);
}

selkie_code sk_sources_emit(sk_step *step, selkie_error *error)
{
    return sk_sources_emit_with(step, &on_host, error);
}

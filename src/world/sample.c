/* Samples liquids with particles.
 *
 * A liquid is filled cell by cell, one particle per sub-cell, in two passes: count, then write. A liquid with a `count`
 * gets exactly that many particles at random places in its shape instead, whatever the cells hold. (A million in one
 * cell is a start that the density projection must survive.) These liquids come last, in scene order, and ignore
 * overlap with other liquids.
 *
 * All random numbers are functions of a place or of an attempt's number, so the result does not depend on threads.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/block_table.h"
#include "base/random.h"
#include "defs/materials.h"
#include "defs/structs.h"
#include "world/sample_parts.h"

int sk_scene_particles_per_cell(const selkie_scene *scene)
{
    return selkie_scene_particles_per_cell(scene);
}

static int is_jittered(const selkie_scene *scene)
{
    const selkie_arrangement arrangement = scene->particles.arrangement;
    if (!(scene->particles.jitter > 0.0))
        return 0;
    return arrangement == SELKIE_ARRANGEMENT_JITTERED ||
           (arrangement == SELKIE_ARRANGEMENT_AUTO && scene->discretization != SELKIE_DISCRETIZATION_SPH &&
            !sk_scene_has_points(scene) && !sk_scene_has_immersed_points(scene));
}

/* The particle of a liquid at a place, with the liquid's velocity there. */
static void fill_record(const sk_sampler *sampler, int liquid, const double x[3], uint32_t id, sk_particle *particle)
{
    const selkie_liquid_def *def = &sampler->scene->liquids[liquid];
    const double *w = def->angular_velocity, *g = def->velocity_gradient;
    int dimension = sampler->grid->dimension;
    double r[3] = {x[0] - def->center[0], x[1] - def->center[1], dimension == 3 ? x[2] - def->center[2] : 0.0};
    double v[3] = {def->velocity[0] + w[1] * r[2] - w[2] * r[1], def->velocity[1] + w[2] * r[0] - w[0] * r[2],
                   def->velocity[2] + w[0] * r[1] - w[1] * r[0]};
    sk_flow_add(&sampler->flows[liquid], x, v);
    memset(particle, 0, sizeof *particle);
    for (int d = 0; d < dimension; d++) {
        particle->position[d] = (float)x[d];
        particle->velocity[d] = (float)(v[d] + g[3 * d] * r[0] + g[3 * d + 1] * r[1] + g[3 * d + 2] * r[2]);
    }
    particle->id = id;
    if (sampler->materials)
        sampler->materials[particle - sampler->records] =
            (uint32_t)sk_scene_find_material(sampler->scene, def->material);
    if (sampler->temperatures)
        sampler->temperatures[particle - sampler->records] = (float)def->temperature;
}

/* Finds the arrays to write to, after room was reserved. */
static void find_records(sk_sampler *sampler, const sk_particles *particles)
{
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    const sk_attribute *temperature = sk_particles_find_attribute(particles, "temperature");
    sampler->records = particles->records;
    sampler->temperatures = temperature ? (float *)(void *)temperature->data : NULL;
    sampler->materials = material ? material->data : NULL;
}

/* Counts (records == NULL) or writes the particles of one cell; those before it are `count`. */
static int64_t sample_cell(const sk_sampler *sampler, const sk_sample_view *view, const int index[3],
                           sk_particle *records, uint32_t first_id, int64_t count, int64_t *per_liquid)
{
    const sk_grid *grid = sampler->grid;
    const uint64_t cell = (uint64_t)index[0] + (uint64_t)grid->cells[0] *
                                                   ((uint64_t)index[1] + (uint64_t)grid->cells[1] * (uint64_t)index[2]);
    const int64_t stride = records ? 1 : sampler->stride;
    const sk_sampling_near *near = sampler->sampling->near;
    for (int s = 0; s < sampler->sub_cells; s++) {
        double x[3] = {0, 0, 0};
        const int liquid = sk_sample_sub_cell(sampler, view, index, cell, s, x);
        if (liquid < 0 || (near && !near->is_near(near->context, x)))
            continue;
        per_liquid[liquid]++;
        if (records)
            fill_record(sampler, liquid, x, first_id + (uint32_t)count, &records[count]);
        count += stride;
    }
    return count;
}

/* Counts (records == NULL) or writes the particles of one span of cells. */
static int64_t sample_span(const sk_sampler *sampler, const int span[3], sk_particle *records, uint32_t first_id,
                           int64_t *per_liquid, int64_t *cells_filled)
{
    sk_sample_view view;
    sk_sample_place_span(sampler->grid, span, &view);
    if (!sk_sample_look_around(sampler, &view))
        return 0;
    const int *begin = view.begin, *end = view.end;
    if (!records && sk_sample_is_whole(sampler, &view)) {
        const int64_t cells = (int64_t)(end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
        *cells_filled += cells;
        per_liquid[view.liquids[0]] += cells * sampler->per_cell;
        return cells * sampler->per_cell;
    }

    /* Test each sub-cell. */
    const int64_t stride = records ? 1 : sampler->stride;
    int64_t count = 0;
    for (int k = begin[2]; k < end[2]; k++)
        for (int j = begin[1]; j < end[1]; j++)
            for (int i = begin[0]; i < end[0]; i++) {
                const int64_t before = count;
                if ((i + 3 * j + 5 * k) % stride)
                    continue;
                count = sample_cell(sampler, &view, (const int[3]){i, j, k}, records, first_id, count, per_liquid);
                *cells_filled += count > before ? stride : 0;
            }
    return count;
}

/* A liquid without a single particle is an error in the scene; names the liquid. */
static selkie_code check_liquids(const sk_sampler *sampler, const int64_t *per_liquid, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    for (int l = 0; l < sampler->scene->liquid_count; l++) {
        if (per_liquid[l] || sampler->scene->liquids[l].count)
            continue;
        double low[3], high[3];
        sk_shape_bounds(sampler->shapes[l], low, high);
        for (int d = 0; d < grid->dimension; d++)
            if (low[d] >= grid->high[d] || high[d] <= grid->low[d])
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "liquids[%d].shape: %g..%g m along %c lies outside the domain, which is %g..%g m", l,
                               low[d] + grid->origin[d], high[d] + grid->origin[d], "xyz"[d],
                               grid -> low[d] + grid -> origin[d], grid -> high[d] + grid -> origin[d]);
        return sk_fail(
            error, SELKIE_ERROR_INPUT,
            "liquids[%d].shape: holds no particle: it lies wholly inside an obstacle or an earlier liquid, or is "
            "smaller than the particles' spacing of %g m",
            l, grid->cell_size / sampler->per_axis);
    }
    return SELKIE_OK;
}

/* Adds the spans within the bounds of a liquid, and one around them for rounding. */
static selkie_code list_spans_of(sk_sampler *sampler, int liquid, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    double low[3], high[3];
    int first[3] = {0, 0, 0}, last[3] = {0, 0, 0};
    sk_shape_bounds(sampler->shapes[liquid], low, high);
    for (int d = 0; d < grid->dimension; d++) {
        const double span = SK_SAMPLE_SPAN * grid->cell_size, most = (grid->cells[d] - 1) / SK_SAMPLE_SPAN;
        first[d] = (int)fmin(fmax(floor((low[d] - grid->low[d]) / span) - 1.0, 0.0), most + 1.0);
        last[d] = (int)fmax(fmin(floor((high[d] - grid->low[d]) / span) + 1.0, most), -1.0);
    }
    const double count =
        fmax(last[0] - first[0] + 1.0, 0.0) * fmax(last[1] - first[1] + 1.0, 0.0) * fmax(last[2] - first[2] + 1.0, 0.0);
    if (count > 1e15)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "liquids[%d].shape: no memory for counting its particles", liquid);
    SK_TRY(sk_reserve(grid->memory, (void **)&sampler->spans, &sampler->span_capacity,
                      sampler->span_count + (size_t)count, sizeof *sampler->spans, "liquids", error));
    for (int k = first[2]; k <= last[2]; k++)
        for (int j = first[1]; j <= last[1]; j++)
            for (int i = first[0]; i <= last[0]; i++)
                sampler->spans[sampler->span_count++] = sk_block_key(i, j, k);
    return SELKIE_OK;
}

/* Adds the spans within the radius of each point: the box around a splash has many more. Points are sorted by cells, so
 * that most follow one in the same spans. */
static selkie_code list_spans_near(sk_sampler *sampler, const sk_sampling_near *near, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    const double span = SK_SAMPLE_SPAN * grid->cell_size;
    int before[2][3] = {{-1, -1, -1}, {-1, -1, -1}};
    for (int64_t p = 0; p < near->count; p++) {
        int ends[2][3] = {{0, 0, 0}, {0, 0, 0}};
        for (int d = 0; d < grid->dimension; d++)
            for (int end = 0; end < 2; end++) {
                const double x = near->points[p][d] + (end ? near->radius : -near->radius) - grid->low[d];
                ends[end][d] = (int)fmin(fmax(floor(x / span), 0.0), (grid->cells[d] - 1) / SK_SAMPLE_SPAN);
            }
        if (!memcmp(before, ends, sizeof ends))
            continue;
        memcpy(before, ends, sizeof ends);
        SK_TRY(sk_reserve(grid->memory, (void **)&sampler->spans, &sampler->span_capacity, sampler->span_count + 27,
                          sizeof *sampler->spans, "liquids", error));
        for (int k = ends[0][2]; k <= ends[1][2]; k++)
            for (int j = ends[0][1]; j <= ends[1][1]; j++)
                for (int i = ends[0][0]; i <= ends[1][0]; i++)
                    sampler->spans[sampler->span_count++] = sk_block_key(i, j, k);
    }
    return SELKIE_OK;
}

/* The spans that the filled liquids may reach, each once, in the order of the domain: time and memory follow the
 * liquids, not the domain. */
static selkie_code list_spans(sk_sampler *sampler, selkie_error *error)
{
    size_t once = 0;
    if (sampler->sampling->near)
        SK_TRY(list_spans_near(sampler, sampler->sampling->near, error));
    for (int l = 0; l < sampler->scene->liquid_count; l++)
        if (!sampler->scene->liquids[l].count && !sampler->sampling->near)
            SK_TRY(list_spans_of(sampler, l, error));
    sk_block_sort_keys(sampler->spans, sampler->span_count);
    for (size_t s = 0; s < sampler->span_count; s++)
        if (once == 0 || sampler->spans[once - 1] != sampler->spans[s])
            sampler->spans[once++] = sampler->spans[s];
    sampler->span_count = once;
    return SELKIE_OK;
}

/* What a pass over the spans leaves. */
typedef struct span_counts {
    int64_t *particles;  /* [spans + 1] of each span; then those before it */
    int64_t *per_liquid; /* [threads + 1][liquids] the sum, then the counts of each thread */
    int64_t cells;       /* with liquid */
} span_counts;

/* Counts (particles == NULL) or writes the particles of all spans. */
static void visit_spans(const sk_sampler *sampler, int threads, const sk_particles *particles, span_counts *counts)
{
    const int liquids = sampler->scene->liquid_count;
    int64_t *before = counts->particles, filled = 0;
    memset(counts->per_liquid, 0, (size_t)(threads + 1) * (size_t)liquids * sizeof *counts->per_liquid);
#pragma omp parallel num_threads(threads) reduction(+ : filled)
    {
        int64_t *tally = counts->per_liquid + (size_t)(omp_get_thread_num() + 1) * (size_t)liquids;
#pragma omp for schedule(dynamic, 16)
        for (int64_t s = 0; s < (int64_t)sampler->span_count; s++) {
            int span[3];
            for (int d = 0; d < 3; d++)
                span[d] = sk_block_coordinate(sampler->spans[s], d);
            if (!particles)
                before[s] = sample_span(sampler, span, NULL, 0, tally, &filled);
            else if (before[s + 1] > before[s])
                sample_span(sampler, span, particles->records + before[s], (uint32_t)before[s], tally, &filled);
        }
    }
    for (int t = 1; t <= threads; t++)
        for (int l = 0; l < liquids; l++)
            counts->per_liquid[l] += counts->per_liquid[(size_t)t * (size_t)liquids + (size_t)l];
    counts->cells = filled;
}

/* Counts become the numbers of particles before each span. Returns the sum. */
static int64_t sum_up(int64_t *counts, int64_t spans)
{
    int64_t sum = 0;
    for (int64_t s = 0; s < spans; s++) {
        const int64_t n = counts[s];
        counts[s] = sum;
        sum += n;
    }
    return counts[spans] = sum;
}

/* Counts; a liquid without particles is an error. An estimate that misses a small liquid looks at every cell. */
static selkie_code count_all(sk_sampler *sampler, int threads, span_counts *counts, int64_t *total, selkie_error *error)
{
    for (;;) {
        visit_spans(sampler, threads, NULL, counts);
        *total = sum_up(counts->particles, (int64_t)sampler->span_count);
        const selkie_code code = check_liquids(sampler, counts->per_liquid, error);
        if (code == SELKIE_OK || sampler->stride == 1)
            return code;
        sampler->stride = 1;
    }
}

static selkie_code sample_all(sk_sampler *sampler, int threads, sk_particles *particles, int64_t *total,
                              int64_t *liquid_cells, sk_memory *memory, selkie_error *error)
{
    SK_TRY(list_spans(sampler, error));
    const int64_t spans = (int64_t)sampler->span_count;
    const size_t liquids = (size_t)sampler->scene->liquid_count;
    /* An estimate looks at the cells of about 2^15 spans. */
    for (sampler->stride = 1; !particles && spans / sampler->stride > 1 << 15 && sampler->stride < 16;)
        sampler->stride *= 2;
    span_counts counts = {
        .particles = sk_allocate_zeroed(memory, (size_t)(spans + 1) * sizeof *counts.particles),
        .per_liquid = sk_allocate_zeroed(memory, ((size_t)(threads + 1) * liquids + 1) * sizeof *counts.per_liquid),
    };
    selkie_code code = SELKIE_OK;
    if (!counts.particles || !counts.per_liquid)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "liquids: no memory for counting (%.1f MiB)",
                       (double)spans * 8 / 1048576.0);
    if (code == SELKIE_OK)
        code = count_all(sampler, threads, &counts, total, error);
    *liquid_cells = counts.cells;
    if (code == SELKIE_OK && particles)
        code = sk_particles_reserve(particles, *total, error);
    if (code == SELKIE_OK && particles) {
        find_records(sampler, particles);
        visit_spans(sampler, threads, particles, &counts);
        particles->count = *total;
        particles->next_id = (uint32_t)*total;
    }
    sk_release(memory, counts.particles);
    sk_release(memory, counts.per_liquid);
    return code;
}

/* --- Liquids by count --- */

enum { ATTEMPTS = 1 << 16 }; /* tried at once */

/* The n-th place tried for a liquid: uniform in the box low..high. */
static void attempt(const sk_sampler *sampler, int liquid, uint64_t n, const double low[3], const double high[3],
                    double x[3])
{
    uint64_t stream = sk_hash64(sk_hash64(sampler->scene->seed) ^ (0x6c69717569640000ULL + (uint64_t)liquid));
    for (int d = 0; d < 3; d++) {
        uint64_t bits = sk_hash64(sk_hash64(stream ^ n) ^ (uint64_t)d);
        x[d] = d < sampler->grid->dimension ? low[d] + (double)(bits >> 11) * 0x1p-53 * (high[d] - low[d]) : 0.0;
    }
}

/* Finds the first `wanted` places inside one liquid, in the order of the attempts. With records NULL, only tests
 * whether there is one. */
static selkie_code sample_counted(const sk_sampler *sampler, int liquid, int threads, int64_t wanted,
                                  sk_particle *records, uint32_t first_id, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    const sk_shape *shape = sampler->shapes[liquid];
    int leave_solids = !sampler->scene->liquids[liquid].fill_obstacles;
    sk_near_solids solids;
    sk_sample_list_solids(sampler, grid->low, INFINITY, &solids); /* all */

    /* Bounds of the shape within the domain. */
    double low[3], high[3], margin = 1e-3 * grid->cell_size; /* rounding must not put a particle behind a wall */
    sk_shape_bounds(shape, low, high);
    for (int d = 0; d < grid->dimension; d++) {
        low[d] = fmax(low[d], grid->low[d] + margin);
        high[d] = fmin(high[d], grid->high[d] - margin);
        if (!(low[d] < high[d]))
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "liquids[%d].shape: lies outside the domain along %c, which is %g..%g m there", liquid,
                           "xyz"[d], grid -> low[d] + grid -> origin[d], grid -> high[d] + grid -> origin[d]);
    }

    /* Make attempts in rounds, each in parallel, up to a limit. */
    uint8_t *inside = sk_allocate(grid->memory, ATTEMPTS);
    if (!inside)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "liquids[%d]: no memory", liquid);
    int64_t found = 0, tried = 0, most = 1000 * wanted + 10000000;
    while (found < wanted && tried < most) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int i = 0; i < ATTEMPTS; i++) {
            double x[3];
            attempt(sampler, liquid, (uint64_t)(tried + i), low, high, x);
            inside[i] = sk_shape_inside(shape, x) && !(leave_solids && sk_sample_in_solid(sampler, &solids, x));
        }

        /* Take the places inside in the order of the attempts. */
        for (int i = 0; i < ATTEMPTS && found < wanted; i++) {
            if (!inside[i])
                continue;
            double x[3];
            if (records) {
                attempt(sampler, liquid, (uint64_t)(tried + i), low, high, x);
                fill_record(sampler, liquid, x, first_id + (uint32_t)found, &records[found]);
            }
            found++;
        }
        tried += ATTEMPTS;
    }

    /* With too few places the shape is too thin for the number of particles. */
    sk_release(grid->memory, inside);
    if (found < wanted)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "liquids[%d].shape: of %lld random places in its bounds %lld lie inside it and outside "
                       "obstacles; count asks "
                       "for %lld: use a thicker shape, or fill_obstacles",
                       liquid, (long long)tried, (long long)found, (long long)wanted);
    return SELKIE_OK;
}

/* Adds the liquids with a prescribed count. */
static selkie_code sample_all_counted(sk_sampler *sampler, int threads, sk_particles *particles, int64_t *total,
                                      int64_t *liquid_cells, selkie_error *error)
{
    const selkie_scene *scene = sampler->scene;
    for (int l = 0; l < scene->liquid_count; l++) {
        int64_t wanted = scene->liquids[l].count;
        if (!wanted)
            continue;
        if (*total + wanted > (int64_t)UINT32_MAX)
            return sk_fail(error, SELKIE_ERROR_INPUT, "liquids[%d].count: %lld particles together; at most %u", l,
                           (long long)(*total + wanted), UINT32_MAX);
        if (particles) {
            SK_TRY(sk_particles_reserve(particles, *total + wanted, error));
            find_records(sampler, particles);
            SK_TRY(sample_counted(sampler, l, threads, wanted, particles->records + *total, (uint32_t)*total, error));
            particles->count = *total + wanted;
            particles->next_id = (uint32_t)(*total + wanted);
        } else {
            SK_TRY(sample_counted(sampler, l, threads, 1, NULL, 0, error));
        }
        *total += wanted;
        /* The cells at rest density, which the memory depends on, not the volume of the shape. */
        *liquid_cells += (wanted + sampler->per_cell - 1) / sampler->per_cell;
    }
    return SELKIE_OK;
}

selkie_code sk_world_sample(const sk_sampling *sampling, sk_particles *particles, int64_t *total, int64_t *liquid_cells,
                            selkie_error *error)
{
    const selkie_scene *scene = sampling->scene;
    const sk_grid *grid = sampling->grid;
    const int particles_per_cell = sampling->particles_per_cell;
    *total = *liquid_cells = 0;
    if (scene->liquid_count > 256)
        return sk_fail(error, SELKIE_ERROR_INPUT, "liquids: %d of them; at most 256 (join shapes in a union)",
                       scene->liquid_count);

    /* Sub-cells: the smallest cube that holds the particles of a cell. */
    sk_sampler sampler = {.scene = scene,
                          .sampling = sampling,
                          .grid = grid,
                          .solids = sampling->solids,
                          .per_cell = particles_per_cell,
                          .per_axis = 1,
                          .jittered = is_jittered(scene)};
    while ((grid->dimension == 2 ? sampler.per_axis * sampler.per_axis
                                 : sampler.per_axis * sampler.per_axis * sampler.per_axis) < particles_per_cell)
        sampler.per_axis++;
    sampler.sub_cells = sampler.per_axis * sampler.per_axis * (grid->dimension == 3 ? sampler.per_axis : 1);

    /* The shapes of the liquids. */
    sampler.shapes = sk_allocate_zeroed(grid->memory, ((size_t)scene->liquid_count + 1) * sizeof *sampler.shapes);
    sampler.flows = sk_allocate_zeroed(grid->memory, ((size_t)scene->liquid_count + 1) * sizeof *sampler.flows);
    sampler.levels = sk_allocate_zeroed(grid->memory, ((size_t)scene->liquid_count + 1) * sizeof *sampler.levels);
    if (!sampler.shapes || !sampler.flows || !sampler.levels) {
        sk_release(grid->memory, sampler.shapes);
        sk_release(grid->memory, sampler.flows);
        sk_release(grid->memory, sampler.levels);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "liquids: no memory");
    }
    double up[3];
    selkie_scene_up(scene, up);
    selkie_code code = SELKIE_OK;
    for (int l = 0; code == SELKIE_OK && l < scene->liquid_count; l++) {
        char what[64];
        snprintf(what, sizeof what, "liquids[%d].shape", l);
        const sk_shape_options options = {.dimension = grid->dimension,
                                          .up = up,
                                          .folder = scene->folder,
                                          .sample_size = grid->cell_size / sampler.per_axis,
                                          .what = what,
                                          .memory = grid->memory};
        code = sk_shape_create(&scene->liquids[l].shape, &options, &sampler.shapes[l], error);
        snprintf(what, sizeof what, "liquids[%d]", l);
        if (code == SELKIE_OK)
            code = sk_flow_open(&sampler.flows[l], &scene->liquids[l], grid->dimension, grid->origin, scene->folder,
                                what, error);
    }

    for (int l = 0; code == SELKIE_OK && sampler.jittered && l < scene->liquid_count; l++)
        if (sampler.sub_cells == sampler.per_cell)
            sampler.levels[l] = sk_level_rows_of(sampling, sampler.shapes, l, sampler.per_axis);

    const int is_lattice = scene->discretization == SELKIE_DISCRETIZATION_SPH && !sampler.jittered;
    if (code == SELKIE_OK && is_lattice && sampler.sub_cells == sampler.per_cell)
        sk_sample_lattice_shift(sampling, sampler.shapes, grid->cell_size / sampler.per_axis, sampler.shift);

    /* Filled liquids first, then those with a count. */
    if (code == SELKIE_OK)
        code = sample_all(&sampler, sampling->threads, particles, total, liquid_cells, grid->memory, error);
    if (code == SELKIE_OK)
        code = sample_all_counted(&sampler, sampling->threads, particles, total, liquid_cells, error);
    for (int l = 0; l < scene->liquid_count; l++) {
        sk_shape_destroy(sampler.shapes[l]);
        sk_flow_close(&sampler.flows[l]);
    }
    sk_release(grid->memory, sampler.levels);
    sk_release(grid->memory, sampler.flows);
    sk_release(grid->memory, sampler.shapes);
    sk_release(grid->memory, sampler.spans);
    return code;
}

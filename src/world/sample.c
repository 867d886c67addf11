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
#include "defs/heat.h"
#include "defs/materials.h"
#include "defs/structs.h"
#include "world/flow.h"
#include "world/sample_level.h"
#include "world/world_internal.h"

enum {
    SPAN = 8,       /* cells per axis of a span, which is tested as a whole first */
    LEVEL_CELLS = 4 /* rows below a level surface end above this depth */
};

int sk_scene_particles_per_cell(const selkie_scene *scene)
{
    return selkie_scene_particles_per_cell(scene);
}

typedef struct sampler {
    const selkie_scene *scene;
    const sk_sampling *sampling;
    const sk_grid *grid;
    const sk_solids *solids;
    sk_shape **shapes;
    sk_flow *flows;        /* [liquid_count] velocity fields */
    sk_level_rows *levels; /* [liquid_count] rows below level surfaces */
    sk_particle *records;  /* of all particles, where they are written */
    uint32_t *materials;   /* parallel to the records; NULL for a scene with one material */
    float *temperatures;   /* K  likewise; NULL without heat */
    int per_cell, per_axis, sub_cells;
    int jittered;    /* particles lie at random places in their sub-cells */
    int even;        /* a cut sub-cell has its share of particles, not a lot */
    int64_t stride;  /* of the cells that an estimate looks at; 1 = all */
    uint64_t *spans; /* [span_count] keys of the spans that liquids may reach, ascending */
    size_t span_count, span_capacity;
} liquid_sampler;

/* Place of the s-th particle of a cell, in cells. If there are more sub-cells than particles, random ones are left out.
 * Returns 0 for those. */
static int place(const liquid_sampler *sampler, uint64_t cell_index, int s, double offset[3])
{
    int n = sampler->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    uint64_t seed = sampler->scene->seed;
    if (sampler->sub_cells > sampler->per_cell) {
        float lot = sk_random_float(seed, cell_index * 4096 + (uint64_t)s, 7);
        int before = 0;
        for (int other = 0; other < sampler->sub_cells; other++) {
            float lot_other = sk_random_float(seed, cell_index * 4096 + (uint64_t)other, 7);
            before += lot_other < lot || (lot_other == lot && other < s);
        }
        if (before >= sampler->per_cell)
            return 0;
    }
    for (int d = 0; d < 3; d++) {
        double jitter = 0.0;
        if (sampler->jittered)
            jitter = sampler->scene->particles.jitter *
                     (sk_random_float(seed, cell_index * 4096 + (uint64_t)s, (uint64_t)d) - 0.5);
        offset[d] = d < sampler->grid->dimension ? (sub[d] + 0.5 + jitter) / n : 0.0;
    }
    return 1;
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

/* Obstacles that can be within two cells of some places, ascending. */
enum { NEAR = 256 }; /* obstacles, or liquids, that reach into one span */
typedef struct near_solids {
    int count; /* all obstacles if there are more than NEAR */
    int32_t numbers[NEAR];
} near_solids;

/* Those whose bounds a ball (m) reaches, with a margin of two cells. */
static void list_solids(const liquid_sampler *sampler, const double middle[3], double radius, near_solids *near)
{
    const double reach = radius + 2.0 * sampler->grid->cell_size;
    near->count = 0;
    for (int o = 0; o < sampler->solids->obstacle_count; o++) {
        const sk_obstacle *obstacle = &sampler->solids->obstacles[o];
        int is_near = 1;
        for (int d = 0; d < sampler->grid->dimension; d++)
            is_near &= !(middle[d] < obstacle->low[d] - reach) && !(middle[d] > obstacle->high[d] + reach);
        if (!is_near)
            continue;
        if (near->count == NEAR) {
            near->count = sampler->solids->obstacle_count;
            return;
        }
        near->numbers[near->count++] = o;
    }
}

/* The list, or NULL for all obstacles. */
static const int32_t *numbers_of(const near_solids *near)
{
    return near->count <= NEAR ? near->numbers : NULL;
}

static int in_solid(const liquid_sampler *sampler, const near_solids *solids, const double x[3])
{
    /* The inside test is cheaper than the distance, which is needed only just outside. */
    const double margin = 1e-3 * sampler->grid->cell_size;
    const int32_t *numbers = numbers_of(solids);
    for (int n = 0; n < solids->count; n++) {
        const sk_obstacle *obstacle = &sampler->solids->obstacles[numbers ? numbers[n] : n];
        double local[3] = {x[0], x[1], x[2]};
        int near = 1;
        for (int d = 0; d < sampler->grid->dimension; d++)
            near &= x[d] > obstacle->low[d] - margin && x[d] < obstacle->high[d] + margin;
        if (!near)
            continue;
        if (obstacle->placed)
            sk_pose_to_local(obstacle->placed, x, local);
        if (sk_shape_inside(obstacle->shape, local))
            return 1;
    }
    double normal[3];
    int obstacle;
    return sk_solids_distance_among(sampler->solids, numbers, solids->count, x, normal, &obstacle) < margin;
}

/* The particle of a liquid at a place, with the liquid's velocity there. */
static void fill_record(const liquid_sampler *sampler, int liquid, const double x[3], uint32_t id,
                        sk_particle *particle)
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
static void find_records(liquid_sampler *sampler, const sk_particles *particles)
{
    const sk_attribute *material = sk_particles_find_attribute(particles, "material");
    const sk_attribute *temperature = sk_particles_find_attribute(particles, "temperature");
    sampler->records = particles->records;
    sampler->temperatures = temperature ? (float *)(void *)temperature->data : NULL;
    sampler->materials = material ? material->data : NULL;
}

/* A span of cells, and what lies near it. */
typedef struct span_view {
    int begin[3], end[3];
    double middle[3], radius; /* m  of a ball around it */
    int liquids[NEAR], liquid_count;
    int has_solids;
    near_solids solids;
} span_view;

/* The first liquid that contains a point; -1: none, or inside a solid that the liquid does not fill. */
static int liquid_at(const liquid_sampler *sampler, const span_view *view, const double x[3])
{
    int solid = -1; /* not tested yet */
    for (int c = 0; c < view->liquid_count; c++) {
        if (!sk_shape_inside(sampler->shapes[view->liquids[c]], x))
            continue;
        if (!view->has_solids || sampler->scene->liquids[view->liquids[c]].fill_obstacles)
            return view->liquids[c];
        if (solid < 0)
            solid = in_solid(sampler, &view->solids, x);
        if (!solid)
            return view->liquids[c];
    }
    return -1;
}

static void place_span(const sk_grid *grid, const int span[3], span_view *view)
{
    const double h = grid->cell_size;
    double radius2 = 0.0;
    for (int d = 0; d < 3; d++) {
        view->begin[d] = span[d] * SPAN;
        view->end[d] = view->begin[d] + SPAN < grid->cells[d] ? view->begin[d] + SPAN : grid->cells[d];
        const double length = (view->end[d] - view->begin[d]) * h;
        view->middle[d] = d < grid->dimension ? grid->low[d] + 0.5 * (view->begin[d] + view->end[d]) * h : 0.0;
        if (d < grid->dimension)
            radius2 += 0.25 * length * length;
    }
    view->radius = sqrt(radius2);
}

/* Finds liquids and obstacles near the span; 0 = no liquid can be in it. */
static int look_around(const liquid_sampler *sampler, span_view *view)
{
    const double reach = view->radius + sampler->grid->cell_size;
    int buried = 0;
    view->liquid_count = view->has_solids = 0;
    for (int l = 0; l < sampler->scene->liquid_count && view->liquid_count < NEAR; l++)
        if (!sampler->scene->liquids[l].count && sk_shape_distance(sampler->shapes[l], view->middle) < reach)
            view->liquids[view->liquid_count++] = l;
    if (!view->liquid_count)
        return 0;
    list_solids(sampler, view->middle, reach, &view->solids);
    const int32_t *numbers = numbers_of(&view->solids);
    for (int n = 0; n < view->solids.count && !buried; n++) {
        const sk_obstacle *obstacle = &sampler->solids->obstacles[numbers ? numbers[n] : n];
        double normal[3];
        const double distance = sk_obstacle_distance(obstacle->shape, obstacle->placed, view->middle, normal);
        view->has_solids |= distance < reach;
        buried = distance < -reach;
    }
    /* A river's liquid may be everything below its surface, and most of that is rock. */
    for (int c = 0; c < view->liquid_count && buried; c++)
        buried = !sampler->scene->liquids[view->liquids[c]].fill_obstacles;
    return !buried;
}

/* Deep inside the first liquid and far from solids the count needs no test of single particles. Counting then costs
 * time in proportion to the surfaces. */
static int is_whole(const liquid_sampler *sampler, const span_view *view)
{
    const int first = view->liquids[0];
    const double margin = (sampler->levels[first].rows ? LEVEL_CELLS : 1) * sampler->grid->cell_size;
    return !sampler->sampling->near && (!view->has_solids || sampler->scene->liquids[first].fill_obstacles) &&
           sk_shape_distance(sampler->shapes[first], view->middle) < -(view->radius + margin);
}

enum { PROBES = 16 }; /* points of a sub-cell that a surface may cut */

/* m: point n of a sub-cell with this centre: a lattice of rank 1, shifted by `shift` (parts of the sub-cell). Along
 * each axis the points have distances of 1 / PROBES. */
static void probe(const liquid_sampler *sampler, const double centre[3], const double shift[3], int n, double x[3])
{
    static const int rank[3] = {1, 7, 5};
    const double size = sampler->grid->cell_size / sampler->per_axis;
    for (int d = 0; d < 3; d++) {
        const double along = (double)(n * rank[d]) / PROBES + shift[d];
        x[d] = d < sampler->grid->dimension ? centre[d] + (along - floor(along) - 0.5) * size : 0.0;
    }
}

/* m: half the diagonal of a sub-cell. */
static double reach_of_sub_cell(const liquid_sampler *sampler)
{
    return 0.5 * sqrt((double)sampler->grid->dimension) * sampler->grid->cell_size / sampler->per_axis * (1.0 + 1e-9);
}

/* May an obstacle cut the sub-cell with this centre (m)? */
static int is_cut_by_solid(const liquid_sampler *sampler, const span_view *view, const double centre[3])
{
    double normal[3];
    int obstacle;
    return view->has_solids &&
           fabs(sk_solids_distance_among(sampler->solids, numbers_of(&view->solids), view->solids.count, centre, normal,
                                         &obstacle)) < reach_of_sub_cell(sampler);
}

/* May a surface cut it? */
static int is_cut(const liquid_sampler *sampler, const span_view *view, const double centre[3])
{
    const double reach = reach_of_sub_cell(sampler);
    for (int c = 0; c < view->liquid_count; c++)
        if (fabs(sk_shape_distance(sampler->shapes[view->liquids[c]], centre)) < reach)
            return 1;
    return is_cut_by_solid(sampler, view, centre);
}

/* The threshold of a sub-cell, 0 to 1. Thresholds of neighbours are spread evenly, so that any part of a surface gets
 * its number of particles to about one. In 2D they follow the golden ratio along x and twice it along y: along rows,
 * columns and diagonals few fractions come near the step. (With 0.7549, close to 3/4, particles gathered in waves as
 * long as the tank, which sloshed more than lots.) In 3D the steps are powers of the root of x^4 = x + 1. */
static double threshold(const liquid_sampler *sampler, const int index[3], int s)
{
    static const double step[2][3] = {{0.6180339887498949, 0.2360679774997898, 0.0},
                                      {0.8191725133961645, 0.6710436067037893, 0.5497004779019703}};
    const int n = sampler->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    double sum = sk_random_float(sampler->scene->seed, 0, 23);
    for (int d = 0; d < sampler->grid->dimension; d++)
        sum += step[sampler->grid->dimension - 2][d] * ((double)index[d] * n + sub[d]);
    return sum - floor(sum);
}

/* The liquid of a sub-cell that surfaces cut, and the particle's place x (m) in it; -1 = none. A sub-cell has a
 * particle if its part with liquid is above its threshold. Lots would leave an uneven surface, which sloshes for a long
 * time, and a test of its middle would round the liquid's volume to layers of sub-cells. */
static int liquid_in_cut(const liquid_sampler *sampler, const span_view *view, const int index[3], uint64_t place_index,
                         int s, const double centre[3], double x[3])
{
    const uint64_t seed = sampler->scene->seed;
    int found[PROBES], liquid = -1, full = 0, first = 0;
    double shift[3];
    for (int d = 0; d < 3; d++)
        shift[d] = sk_random_float(seed, place_index, (uint64_t)d + 24);
    for (int n = 0; n < PROBES; n++) {
        double point[3];
        probe(sampler, centre, shift, n, point);
        found[n] = liquid_at(sampler, view, point);
        full += found[n] >= 0;
    }
    /* In a whole sub-cell the particle keeps its place. One point may lie in the gap that particles keep from walls. */
    if (full >= PROBES - 1)
        liquid = liquid_at(sampler, view, x);
    if (liquid >= 0)
        return liquid;
    /* The liquids of the sub-cell share the thresholds in the order of the scene. */
    int above = (int)(threshold(sampler, index, s) * PROBES);
    if (above >= full)
        return -1;
    for (int c = 0; c < view->liquid_count && liquid < 0; c++) {
        int own = 0;
        for (int n = 0; n < PROBES; n++)
            own += found[n] == view->liquids[c];
        if (above < own)
            liquid = view->liquids[c];
        above -= own;
    }
    first = (int)(sk_random_float(seed, place_index, 27) * PROBES);
    for (int n = 0; n < PROBES; n++)
        if (found[(n + first) % PROBES] == liquid) {
            probe(sampler, centre, shift, (n + first) % PROBES, x);
            break;
        }
    return liquid;
}

/* The part of the jitter that remains below a level surface, where it would make the surface uneven. */
#define LEVEL_JITTER 0.4

/* The liquid of a sub-cell in the rows below a level surface and its particle's place x (m), -1 = none; or -2 for a
 * sub-cell elsewhere. `offset` is that of place(). */
static int liquid_in_rows(const liquid_sampler *sampler, const span_view *view, const int index[3], const int sub[3],
                          const double offset[3], const double centre[3], double x[3])
{
    const int n = sampler->per_axis;
    int64_t number[3];
    double jitter[3];
    for (int d = 0; d < 3; d++) {
        number[d] = (int64_t)index[d] * n + sub[d];
        jitter[d] = LEVEL_JITTER * (offset[d] * n - sub[d] - 0.5);
    }
    for (int c = 0; c < view->liquid_count; c++) {
        const sk_level_rows *rows = &sampler->levels[view->liquids[c]];
        double place[3] = {0, 0, 0};
        int has;
        if (!rows->rows || is_cut_by_solid(sampler, view, centre) ||
            !sk_level_rows_place(rows, sampler->grid, sampler->scene->seed, number, jitter, &has, place))
            continue;
        for (int d = 0; d < 3; d++)
            x[d] = place[d];
        return has ? liquid_at(sampler, view, x) : -1;
    }
    return -2;
}

/* The liquid of a sub-cell, and its particle's place x (m); -1 = none. */
static int liquid_of_sub_cell(const liquid_sampler *sampler, const span_view *view, const int index[3],
                              uint64_t place_index, int s, const double offset[3], double x[3])
{
    const sk_grid *grid = sampler->grid;
    const int n = sampler->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    double centre[3] = {0, 0, 0};
    for (int d = 0; d < grid->dimension; d++) {
        x[d] = grid->low[d] + (index[d] + offset[d]) * grid->cell_size;
        centre[d] = grid->low[d] + (index[d] + (sub[d] + 0.5) / n) * grid->cell_size;
    }
    if (!sampler->even)
        return liquid_at(sampler, view, x);
    const int liquid = liquid_in_rows(sampler, view, index, sub, offset, centre, x);
    if (liquid > -2)
        return liquid;
    return is_cut(sampler, view, centre) ? liquid_in_cut(sampler, view, index, place_index, s, centre, x)
                                         : liquid_at(sampler, view, x);
}

/* Counts (records == NULL) or writes the particles of one cell; those before it are `count`. */
static int64_t sample_cell(const liquid_sampler *sampler, const span_view *view, const int index[3],
                           sk_particle *records, uint32_t first_id, int64_t count, int64_t *per_liquid)
{
    const sk_grid *grid = sampler->grid;
    const uint64_t cell = (uint64_t)index[0] + (uint64_t)grid->cells[0] *
                                                   ((uint64_t)index[1] + (uint64_t)grid->cells[1] * (uint64_t)index[2]);
    const int64_t stride = records ? 1 : sampler->stride;
    const sk_sampling_near *near = sampler->sampling->near;
    for (int s = 0; s < sampler->sub_cells; s++) {
        double offset[3], x[3] = {0, 0, 0};
        if (!place(sampler, cell, s, offset))
            continue;
        const int liquid = liquid_of_sub_cell(sampler, view, index, cell * 4096 + (uint64_t)s, s, offset, x);
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
static int64_t sample_span(const liquid_sampler *sampler, const int span[3], sk_particle *records, uint32_t first_id,
                           int64_t *per_liquid, int64_t *cells_filled)
{
    span_view view;
    place_span(sampler->grid, span, &view);
    if (!look_around(sampler, &view))
        return 0;
    const int *begin = view.begin, *end = view.end;
    if (!records && is_whole(sampler, &view)) {
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
static selkie_code check_liquids(const liquid_sampler *sampler, const int64_t *per_liquid, selkie_error *error)
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
static selkie_code list_spans_of(liquid_sampler *sampler, int liquid, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    double low[3], high[3];
    int first[3] = {0, 0, 0}, last[3] = {0, 0, 0};
    sk_shape_bounds(sampler->shapes[liquid], low, high);
    for (int d = 0; d < grid->dimension; d++) {
        const double span = SPAN * grid->cell_size, most = (grid->cells[d] - 1) / SPAN;
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
static selkie_code list_spans_near(liquid_sampler *sampler, const sk_sampling_near *near, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    const double span = SPAN * grid->cell_size;
    int before[2][3] = {{-1, -1, -1}, {-1, -1, -1}};
    for (int64_t p = 0; p < near->count; p++) {
        int ends[2][3] = {{0, 0, 0}, {0, 0, 0}};
        for (int d = 0; d < grid->dimension; d++)
            for (int end = 0; end < 2; end++) {
                const double x = near->points[p][d] + (end ? near->radius : -near->radius) - grid->low[d];
                ends[end][d] = (int)fmin(fmax(floor(x / span), 0.0), (grid->cells[d] - 1) / SPAN);
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
static selkie_code list_spans(liquid_sampler *sampler, selkie_error *error)
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
static void visit_spans(const liquid_sampler *sampler, int threads, const sk_particles *particles, span_counts *counts)
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
static selkie_code count_all(liquid_sampler *sampler, int threads, span_counts *counts, int64_t *total,
                             selkie_error *error)
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

static selkie_code sample_all(liquid_sampler *sampler, int threads, sk_particles *particles, int64_t *total,
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
static void attempt(const liquid_sampler *sampler, int liquid, uint64_t n, const double low[3], const double high[3],
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
static selkie_code sample_counted(const liquid_sampler *sampler, int liquid, int threads, int64_t wanted,
                                  sk_particle *records, uint32_t first_id, selkie_error *error)
{
    const sk_grid *grid = sampler->grid;
    const sk_shape *shape = sampler->shapes[liquid];
    int leave_solids = !sampler->scene->liquids[liquid].fill_obstacles;
    near_solids solids;
    list_solids(sampler, grid->low, INFINITY, &solids); /* all */

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
            inside[i] = sk_shape_inside(shape, x) && !(leave_solids && in_solid(sampler, &solids, x));
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
static selkie_code sample_all_counted(liquid_sampler *sampler, int threads, sk_particles *particles, int64_t *total,
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
    /* Scenes with ice start by lots: the pressure solve around a block of ice whose lowest layer has holes at even
     * distances may fail to converge. */
    liquid_sampler sampler = {.scene = scene,
                              .sampling = sampling,
                              .grid = grid,
                              .solids = sampling->solids,
                              .per_cell = particles_per_cell,
                              .per_axis = 1,
                              .jittered = is_jittered(scene),
                              .even = is_jittered(scene) && !sk_scene_melts(scene)};
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

    for (int l = 0; code == SELKIE_OK && sampler.even && l < scene->liquid_count; l++)
        if (sampler.sub_cells == sampler.per_cell)
            sampler.levels[l] = sk_level_rows_of(sampling, sampler.shapes, l, sampler.per_axis);

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

/* Which liquid a sub-cell has, and where its particle lies: see sample.c.
 *
 * Sub-cells that a surface cuts have a particle by their part with liquid. Below a level surface particles lie in even
 * rows (sample_level.h). Elsewhere a sub-cell has the liquid of its particle's place.
 */
#include <math.h>

#include "base/random.h"
#include "world/sample_parts.h"

/* Cells: rows below a level surface end above this depth. */
enum { LEVEL_CELLS = 4 };

/* Place of the s-th particle of a cell, in cells. If there are more sub-cells than particles, random ones are left out.
 * Returns 0 for those. */
static int place(const sk_sampler *sampler, uint64_t cell_index, int s, double offset[3])
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

void sk_sample_list_solids(const sk_sampler *sampler, const double middle[3], double radius, sk_near_solids *near)
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
        if (near->count == SK_SAMPLE_NEAR) {
            near->count = sampler->solids->obstacle_count;
            return;
        }
        near->numbers[near->count++] = o;
    }
}

/* The list, or NULL for all obstacles. */
static const int32_t *numbers_of(const sk_near_solids *near)
{
    return near->count <= SK_SAMPLE_NEAR ? near->numbers : NULL;
}

int sk_sample_in_solid(const sk_sampler *sampler, const sk_near_solids *solids, const double x[3])
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

/* The first liquid that contains a point; -1: none, or inside a solid that the liquid does not fill. */
static int liquid_at(const sk_sampler *sampler, const sk_sample_view *view, const double x[3])
{
    int solid = -1; /* not tested yet */
    for (int c = 0; c < view->liquid_count; c++) {
        if (!sk_shape_inside(sampler->shapes[view->liquids[c]], x))
            continue;
        if (!view->has_solids || sampler->scene->liquids[view->liquids[c]].fill_obstacles)
            return view->liquids[c];
        if (solid < 0)
            solid = sk_sample_in_solid(sampler, &view->solids, x);
        if (!solid)
            return view->liquids[c];
    }
    return -1;
}

void sk_sample_place_span(const sk_grid *grid, const int span[3], sk_sample_view *view)
{
    const double h = grid->cell_size;
    double radius2 = 0.0;
    for (int d = 0; d < 3; d++) {
        view->begin[d] = span[d] * SK_SAMPLE_SPAN;
        view->end[d] =
            view->begin[d] + SK_SAMPLE_SPAN < grid->cells[d] ? view->begin[d] + SK_SAMPLE_SPAN : grid->cells[d];
        const double length = (view->end[d] - view->begin[d]) * h;
        view->middle[d] = d < grid->dimension ? grid->low[d] + 0.5 * (view->begin[d] + view->end[d]) * h : 0.0;
        if (d < grid->dimension)
            radius2 += 0.25 * length * length;
    }
    view->radius = sqrt(radius2);
}

int sk_sample_look_around(const sk_sampler *sampler, sk_sample_view *view)
{
    const double reach = view->radius + sampler->grid->cell_size;
    int buried = 0;
    view->liquid_count = view->has_solids = 0;
    for (int l = 0; l < sampler->scene->liquid_count && view->liquid_count < SK_SAMPLE_NEAR; l++)
        if (!sampler->scene->liquids[l].count && sk_shape_distance(sampler->shapes[l], view->middle) < reach)
            view->liquids[view->liquid_count++] = l;
    if (!view->liquid_count)
        return 0;
    sk_sample_list_solids(sampler, view->middle, reach, &view->solids);
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

int sk_sample_is_whole(const sk_sampler *sampler, const sk_sample_view *view)
{
    const int first = view->liquids[0];
    const double margin = (sampler->levels[first].rows ? LEVEL_CELLS : 1) * sampler->grid->cell_size;
    return !sampler->sampling->near && (!view->has_solids || sampler->scene->liquids[first].fill_obstacles) &&
           sk_shape_distance(sampler->shapes[first], view->middle) < -(view->radius + margin);
}

enum { PROBES = 16 }; /* points of a sub-cell that a surface may cut */

/* m: point n of a sub-cell with this centre: a lattice of rank 1, shifted by `shift` (parts of the sub-cell). Along
 * each axis the points have distances of 1 / PROBES. */
static void probe(const sk_sampler *sampler, const double centre[3], const double shift[3], int n, double x[3])
{
    static const int rank[3] = {1, 7, 5};
    const double size = sampler->grid->cell_size / sampler->per_axis;
    for (int d = 0; d < 3; d++) {
        const double along = (double)(n * rank[d]) / PROBES + shift[d];
        x[d] = d < sampler->grid->dimension ? centre[d] + (along - floor(along) - 0.5) * size : 0.0;
    }
}

/* m: half the diagonal of a sub-cell. */
static double reach_of_sub_cell(const sk_sampler *sampler)
{
    return 0.5 * sqrt((double)sampler->grid->dimension) * sampler->grid->cell_size / sampler->per_axis * (1.0 + 1e-9);
}

/* May an obstacle cut the sub-cell with this centre (m)? Walls of the domain lie along sub-cells and cut none. */
static int is_cut_by_solid(const sk_sampler *sampler, const sk_sample_view *view, const double centre[3])
{
    const double near = 2.0 * sampler->grid->cell_size;
    const int32_t *numbers = numbers_of(&view->solids);
    double nearest = INFINITY;
    for (int n = 0; view->has_solids && n < view->solids.count; n++) {
        const sk_obstacle *obstacle = &sampler->solids->obstacles[numbers ? numbers[n] : n];
        double normal[3];
        int is_near = 1;
        for (int d = 0; d < sampler->grid->dimension; d++)
            is_near &= centre[d] > obstacle->low[d] - near && centre[d] < obstacle->high[d] + near;
        if (is_near)
            nearest = fmin(nearest, sk_obstacle_distance(obstacle->shape, obstacle->placed, centre, normal));
    }
    return fabs(nearest) < reach_of_sub_cell(sampler);
}

/* May a surface cut it? */
static int is_cut(const sk_sampler *sampler, const sk_sample_view *view, const double centre[3])
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
 * long as the tank, which sloshed more than lots.) In 3D the steps make the first two modes of the level
 * small in tanks of 8 to 24 cells with gravity along y (docs/decisions/0019-time-scheme.md). */
static double threshold(const sk_sampler *sampler, const int index[3], int s)
{
    static const double step[2][3] = {{0.6180339887498949, 0.2360679774997898, 0.0},
                                      {0.5557133578136, 0.8019377358048, 0.3092692450571}};
    const int n = sampler->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    double sum = sk_random_float(sampler->scene->seed, 0, 23);
    for (int d = 0; d < sampler->grid->dimension; d++)
        sum += step[sampler->grid->dimension - 2][d] * ((double)index[d] * n + sub[d]);
    return sum - floor(sum);
}

/* The liquid of a sub-cell that surfaces cut, and the particle's place x (m) in it; -1 = none. A sub-cell has a
 * particle if its part with liquid is above its threshold. Lots would leave an uneven surface, which sloshes for a long
 * time, and a test of its middle would round the liquid's volume to layers of sub-cells. */
static int liquid_in_cut(const sk_sampler *sampler, const sk_sample_view *view, const int index[3],
                         uint64_t place_index, int s, const double centre[3], double x[3])
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
static int liquid_in_rows(const sk_sampler *sampler, const sk_sample_view *view, const int index[3], const int sub[3],
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

int sk_sample_sub_cell(const sk_sampler *sampler, const sk_sample_view *view, const int index[3], uint64_t cell, int s,
                       double x[3])
{
    const sk_grid *grid = sampler->grid;
    const int n = sampler->per_axis, sub[3] = {s % n, s / n % n, s / n / n};
    double offset[3], centre[3] = {0, 0, 0};
    if (!place(sampler, cell, s, offset))
        return -1;
    for (int d = 0; d < grid->dimension; d++) {
        x[d] = grid->low[d] + (index[d] + offset[d]) * grid->cell_size;
        centre[d] = grid->low[d] + (index[d] + (sub[d] + 0.5) / n) * grid->cell_size;
    }
    if (!sampler->jittered) {
        for (int d = 0; d < grid->dimension; d++)
            x[d] += sampler->shift[d];
        return liquid_at(sampler, view, x);
    }
    const int liquid = liquid_in_rows(sampler, view, index, sub, offset, centre, x);
    if (liquid > -2)
        return liquid;
    return is_cut(sampler, view, centre) ? liquid_in_cut(sampler, view, index, cell * 4096 + (uint64_t)s, s, centre, x)
                                         : liquid_at(sampler, view, x);
}

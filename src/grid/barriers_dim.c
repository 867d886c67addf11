/* Faces and kernels beside thin walls: see barriers.h. */
#include "grid/barriers.h"

#include <math.h>
#include <string.h>

#include "grid/plain.h"
#include "grid/sweep.h"

typedef struct stand {
    double x[3]; /* m */
    int exists;  /*   not deep inside an obstacle */
} stand;

static void to_local(const sk_obstacle *obstacle, const double x[3], double local[3])
{
    if (obstacle->placed)
        sk_pose_to_local(obstacle->placed, x, local);
    else
        memcpy(local, x, 3 * sizeof *local);
}

/* The nearest place outside the obstacles. A second push leaves the corner between two of them. */
static stand find_stand(const sk_solids *solids, const double centre[3])
{
    const double h = solids->cell_size, gap = SK_SWEEP_GAP * h;
    const double deepest = (solids->blur_faces ? 1.0 : 0.5) * h; /* half of the thinnest wall that kernels resolve */
    stand place = {{centre[0], centre[1], centre[2]}, 1};

    /* Push the place out of each obstacle whose surface is nearer than the gap. */
    for (int pass = 0; pass < 2; pass++) {
        int pushed = 0;
        for (int o = 0; o < solids->obstacle_count; o++) {
            const sk_obstacle *obstacle = &solids->obstacles[o];
            double local[3], normal[3];
            int near = 1;
            for (int d = 0; d < SELKIE_DIM; d++)
                near &= place.x[d] > obstacle->low[d] - gap && place.x[d] < obstacle->high[d] + gap;
            if (!near)
                continue;
            to_local(obstacle, place.x, local);
            const double distance = sk_shape_distance_within(obstacle->shape, local, h, normal);
            if (distance >= (pass ? 0.9 : 1.0) * gap) /* a push leaves the gap but for its rounding */
                continue;

            /* Deep inside, or still too near after the first pass: there is no such place. */
            if (distance < -deepest || pass) {
                place.exists = 0;
                return place;
            }

            /* Push along the normal until the gap is kept. */
            if (obstacle->placed)
                sk_pose_rotate(obstacle->placed, normal, normal);
            for (int d = 0; d < SELKIE_DIM; d++)
                place.x[d] += (gap - distance) * normal[d];
            pushed = 1;
        }
        if (!pushed)
            break;
    }
    return place;
}

/* Is an obstacle between two places outside, with a surface towards each of them? A segment that only cuts the corner
 * of an obstacle meets surfaces at an angle. Returns its number, -1 for none. */
static int wall_between(const sk_solids *solids, const double from[3], const double to[3])
{
    for (int o = 0; o < solids->obstacle_count; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        double a[3], b[3];
        sk_surface_hit there, back;
        int near = 1;
        for (int d = 0; d < SELKIE_DIM; d++)
            near &= fmax(from[d], to[d]) >= obstacle->low[d] && fmin(from[d], to[d]) <= obstacle->high[d];
        if (!near)
            continue;
        to_local(obstacle, from, a);
        to_local(obstacle, to, b);
        if (sk_shape_first_hit(obstacle->shape, a, b, &there) && sk_shape_first_hit(obstacle->shape, b, a, &back) &&
            sk_hit_dot(there.normal, back.normal) < -0.3)
            return o;
    }
    return -1;
}

/* Part of a face that a wall between the stands leaves open: 0 for a plate, more beside its edge and for a rod. Paths
 * lead from one stand to the other around the middle of the face. */
static float open_part(const sk_solids *solids, const double a[3], const double b[3], int axis)
{
    const double aside = 0.25 * solids->cell_size;
    int open = 0, paths = 0;
    for (int n = 0; n < 1 << (SELKIE_DIM - 1); n++) {
        double over_a[3], over_b[3];
        int bit = 0;
        for (int d = 0; d < 3; d++) {
            const double offset = d == axis || d >= SELKIE_DIM ? 0.0 : n >> bit++ & 1 ? aside : -aside;
            over_a[d] = a[d] + offset;
            over_b[d] = b[d] + offset;
        }
        paths++;
        open += !sk_sweep_hidden(solids, a, over_a) && !sk_sweep_hidden(solids, over_a, over_b) &&
                !sk_sweep_hidden(solids, over_b, b);
    }
    return (float)open / (float)paths;
}

static void find_stands(const sk_solids *solids, const double corner[3], const float distances[SK_BARRIER_CELLS],
                        stand stands[SK_BARRIER_CELLS])
{
    for (int n = 0; n < SK_BARRIER_CELLS; n++) {
        const int at[3] = {n % SK_BARRIER_N - 1, n / SK_BARRIER_N % SK_BARRIER_N - 1,
                           n / (SK_BARRIER_N * SK_BARRIER_N) - 1};
        double centre[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < SELKIE_DIM; d++)
            centre[d] = corner[d] + (at[d] + 0.5) * solids->cell_size;
        stands[n] = (stand){{centre[0], centre[1], centre[2]}, distances[n] > -1.0f};
        if (fabsf(distances[n]) < 1.0f)
            stands[n] = find_stand(solids, centre);
    }
}

void SK_DIM(sk_barriers_find)(const sk_solids *solids, const double corner[3], const float distances[SK_BARRIER_CELLS],
                              sk_barriers *barriers)
{
    static const int steps[3] = {1, SK_BARRIER_N, SK_BARRIER_N * SK_BARRIER_N};
    stand stands[SK_BARRIER_CELLS];
    find_stands(solids, corner, distances, stands);
    memset(barriers->near, 0, sizeof barriers->near);
    barriers->found = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int n = 0; n < SK_BARRIER_CELLS; n++) {
            barriers->open[d][n] = 1.0f;
            barriers->wall[d][n] = -1;
            const int below = n - steps[d];
            if (n / steps[d] % SK_BARRIER_N == 0 || !stands[n].exists || !stands[below].exists ||
                (fabsf(distances[n]) > 1.5f && fabsf(distances[below]) > 1.5f))
                continue;
            const int wall = wall_between(solids, stands[below].x, stands[n].x);
            if (wall < 0)
                continue;
            const float open = open_part(solids, stands[below].x, stands[n].x, d);
            barriers->open[d][n] = open < 0.1f ? 0.0f : open;
            barriers->wall[d][n] = (int16_t)wall;
            barriers->near[n] = barriers->near[below] = 1;
            barriers->found = 1;
        }
}

/* --- kernels --- */

/* Integral of the hat of one cell's half width from its middle to x, in cells. */
static double hat_to(double x)
{
    x = x < -1.0 ? -1.0 : x > 1.0 ? 1.0 : x;
    return x - 0.5 * x * fabs(x);
}

static int is_open(const sk_solids *solids, const double x[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        if ((solids->walls[2 * d] != SELKIE_WALL_OPEN && x[d] < solids->low[d]) ||
            (solids->walls[2 * d + 1] != SELKIE_WALL_OPEN && x[d] > solids->high[d]))
            return 0;
    for (int o = 0; o < solids->obstacle_count; o++) {
        double local[3];
        to_local(&solids->obstacles[o], x, local);
        if (sk_shape_distance_within(solids->obstacles[o].shape, local, solids->cell_size, NULL) < 0.0)
            return 0;
    }
    return 1;
}

/* The first hit of a segment on any obstacle, as a share of it; 1 if there is none. */
static double free_share(const sk_solids *solids, const double from[3], const double to[3])
{
    double share = 1.0;
    for (int o = 0; o < solids->obstacle_count; o++) {
        double a[3], b[3];
        sk_surface_hit hit;
        to_local(&solids->obstacles[o], from, a);
        to_local(&solids->obstacles[o], to, b);
        if (sk_shape_first_hit(solids->obstacles[o].shape, a, b, &hit))
            share = fmin(share, hit.at);
    }
    return share;
}

/* The part of a line through the kernel that the stand sees, weighted by the hat along the line. `ends` (m) are the
 * line's ends, one cell to either side of the centre. Walls cut the line; each piece at an end is seen or hidden. */
static double seen_of_line(const sk_solids *solids, const stand *place, int axis, double ends[2][3])
{
    const double h = solids->cell_size, middle = 0.5 * (ends[0][axis] + ends[1][axis]);
    double seen = 0.0;
    if (solids->walls[2 * axis] != SELKIE_WALL_OPEN)
        ends[0][axis] = fmax(ends[0][axis], solids->low[axis]);
    if (solids->walls[2 * axis + 1] != SELKIE_WALL_OPEN)
        ends[1][axis] = fmin(ends[1][axis], solids->high[axis]);
    if (!(ends[0][axis] < ends[1][axis]))
        return 0.0;
    for (int side = 0; side < 2; side++) {
        const double *from = ends[side], *to = ends[1 - side];
        double half[3];
        if (!is_open(solids, from))
            continue;
        const double share = free_share(solids, from, to);
        if (share >= 1.0 && side)
            break; /* the whole line is one piece */
        for (int d = 0; d < 3; d++)
            half[d] = from[d] + 0.5 * share * (to[d] - from[d]);
        if (sk_sweep_hidden(solids, place->x, half))
            continue;
        const double end = from[axis] + share * (to[axis] - from[axis]);
        seen += fabs(hat_to((end - middle) / h) - hat_to((from[axis] - middle) / h));
    }
    return seen;
}

float SK_DIM(sk_barriers_hidden_share)(const sk_solids *solids, const double centre[3])
{
    enum { LINES = 6 };
    const double h = solids->cell_size;
    const stand place = find_stand(solids, centre);
    double normal[3] = {0.0, 0.0, 0.0}, seen = 0.0, total = 0.0;
    int axis = 0, obstacle;
    if (!place.exists)
        return 1.0f;

    /* Lines run across the wall. */
    sk_solids_distance(solids, place.x, normal, &obstacle);
    for (int d = 1; d < SELKIE_DIM; d++)
        if (fabs(normal[d]) > fabs(normal[axis]))
            axis = d;
    const int across[2] = {(axis + 1) % SELKIE_DIM, (axis + 2) % 3};
    for (int n = 0; n < (SELKIE_DIM == 3 ? LINES * LINES : LINES); n++) {
        const double offset[2] = {(n % LINES + 0.5) * 2.0 / LINES - 1.0, (n / LINES + 0.5) * 2.0 / LINES - 1.0};
        double ends[2][3], weight = 1.0;
        for (int side = 0; side < 2; side++) {
            memcpy(ends[side], centre, sizeof ends[side]);
            ends[side][axis] += side ? h : -h;
            for (int e = 0; e < SELKIE_DIM - 1; e++)
                ends[side][across[e]] += offset[e] * h;
        }
        for (int e = 0; e < SELKIE_DIM - 1; e++)
            weight *= 1.0 - fabs(offset[e]);
        total += weight;
        int inside = 1;
        for (int e = 0; e < SELKIE_DIM - 1; e++) {
            const int d = across[e];
            inside &= (solids->walls[2 * d] == SELKIE_WALL_OPEN || ends[0][d] >= solids->low[d]) &&
                      (solids->walls[2 * d + 1] == SELKIE_WALL_OPEN || ends[0][d] <= solids->high[d]);
        }
        if (inside)
            seen += weight * seen_of_line(solids, &place, axis, ends);
    }
    return (float)(1.0 - seen / total);
}

void SK_DIM(sk_barriers_normal)(const sk_solids *solids, const sk_grid *grid, int block, int cell, int axis,
                                float normal[3])
{
    const sk_plain_cell place = {block, cell};
    double x[3] = {0.0, 0.0, 0.0}, nearest = INFINITY, direction[3];
    int at[3];
    sk_plain_coordinates(grid, place, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = grid->corner[d] + (at[d] + (d == axis ? 0.0 : 0.5)) * grid->cell_size;
    memset(normal, 0, 3 * sizeof *normal);
    for (int o = 0; o < solids->obstacle_count; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        const double distance = fabs(sk_obstacle_distance(obstacle->shape, obstacle->placed, x, direction));
        for (int d = 0; distance < nearest && d < SELKIE_DIM; d++)
            normal[d] = (float)direction[d];
        nearest = fmin(nearest, distance);
    }
}

/* Does a stand see the particles of a cell? 1 all, 0 none, -1 a wall passes through the cell: each is tested. */
static int sees_cell(const sk_solids *solids, const sk_grid *grid, const double from[3], sk_plain_cell cell)
{
    double centre[3] = {0.0, 0.0, 0.0};
    int at[3];
    if (fabsf(solids->distance[sk_plain_solid_index(solids, cell)]) < 1.0f)
        return -1;
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        centre[d] = grid->corner[d] + (at[d] + 0.5) * grid->cell_size;
    return !sk_sweep_hidden(solids, from, centre);
}

/* Density of one cell from the particles that its stand sees, or from the hidden ones. */
static float count_particles(const sk_solids *solids, const sk_grid *grid, const sk_particles *particles,
                             sk_plain_cell cell, const sk_transfer_options *options, int hidden)
{
    double centre[3] = {0.0, 0.0, 0.0};
    int at[3];
    float sum = 0.0f;

    /* The stand of the cell. */
    sk_plain_coordinates(grid, cell, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        centre[d] = grid->corner[d] + (at[d] + 0.5) * grid->cell_size;
    const stand place = find_stand(solids, centre);

    /* Sum the interpolation weights of the particles in the cells around. */
    const sk_attribute *material = options->material_mask ? sk_particles_find_attribute(particles, "material") : NULL;
    for (int n = 0; place.exists && n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell other = sk_plain_beside(grid, cell, offset);
        uint32_t first, last;
        sk_plain_particles(grid, other, &first, &last);
        const int seen = first < last ? sees_cell(solids, grid, place.x, other) : 0;

        /* Where a wall passes through the cell, test the line of sight to each particle. */
        for (uint32_t p = first; (seen || hidden) && p < last; p++) {
            double x[3] = {0.0, 0.0, 0.0}, weight = 1.0;
            if (options->material_mask && material && !options->material_mask[material->data[p]])
                continue;
            for (int d = 0; d < SELKIE_DIM; d++) {
                x[d] = (double)particles->records[p].position[d];
                weight *= fmax(0.0, 1.0 - fabs(x[d] - centre[d]) / grid->cell_size);
            }
            if (weight > 0.0 && hidden == !(seen < 0 ? !sk_sweep_hidden(solids, place.x, x) : seen))
                sum += (float)weight;
        }
    }
    return sum * options->density_per_particle;
}

/* Splits the density of the cells that see a part of their kernel only: replaces it by what they see, or takes out what
 * they do not. */
static void split_density(const sk_solids *solids, sk_grid *grid, const sk_particles *particles,
                          const sk_transfer_options *options, sk_grid_field field, int hidden)
{
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++)
        if (solids->split[solids->block_slot[b]])
            SK_PLAIN_EACH_CELL(cell, b)
    if (solids->barriers[sk_plain_solid_index(solids, cell)] & SK_BARRIER_SPLIT) {
        float *density = &grid->fields[field][sk_plain_index(cell)];
        const float counted = count_particles(solids, grid, particles, cell, options, hidden);
        *density = hidden ? fmaxf(*density - counted, 0.0f) : counted;
    }
}

void SK_DIM(sk_barriers_recount)(const sk_solids *solids, sk_grid *grid, const sk_particles *particles,
                                 const sk_transfer_options *options)
{
    split_density(solids, grid, particles, options, SK_FIELD_DENSITY, 0);
}

void SK_DIM(sk_barriers_hide)(const sk_solids *solids, sk_grid *grid, const sk_particles *particles,
                              const sk_transfer_options *options)
{
    split_density(solids, grid, particles, options, SK_FIELD_PREDICTED, 1);
}

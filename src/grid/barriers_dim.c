/* Faces and kernels beside thin walls: see barriers.h. */
#include "grid/barriers.h"

#include <math.h>
#include <string.h>

#define SK_SWEEP_HIT(obstacle, a, b, hit) sk_shape_first_hit((obstacle)->shape, a, b, hit)
#define SK_SWEEP_WITHIN(obstacle, x, radius, normal) sk_shape_distance_within((obstacle)->shape, x, radius, normal)
#define SK_SOLIDS_SHAPE_DISTANCE(obstacle, x, normal) sk_shape_distance_normal((obstacle)->shape, x, normal)
#include "grid/barriers_plain.h"

/* Normals with a smaller product face away from each other: the surfaces of a wall. */
#define OPPOSITE -0.3

/* Does a segment between two places outside only cut a corner of an obstacle, which it enters and leaves through
 * surfaces at an angle? A path along both surfaces then leads around the corner. Inside a corner of a cup it does not:
 * where they meet is behind the wall. */
static int cuts_a_corner(const sk_solids *solids, const double from[3], const double to[3], const sk_obstacle *obstacle,
                         const sk_surface_hit *there, const sk_surface_hit *back)
{
    const double gap = SK_SWEEP_GAP * solids->cell_size, cosine = sk_hit_dot(there->normal, back->normal);
    double a[3], b[3], n[2][3], corner[3], way = 0.0;
    const double sine2 = 1.0 - cosine * cosine;
    if (cosine < OPPOSITE)
        return 0;
    if (sine2 < 1e-6)
        return 1;
    memcpy(n[0], there->normal, sizeof n[0]);
    memcpy(n[1], back->normal, sizeof n[1]);
    if (obstacle->placed)
        for (int side = 0; side < 2; side++)
            sk_pose_rotate(obstacle->placed, n[side], n[side]);

    /* Where the two surfaces meet, a little outside of both. */
    for (int d = 0; d < 3; d++) {
        a[d] = from[d] + there->at * (to[d] - from[d]);
        b[d] = to[d] + back->at * (from[d] - to[d]);
        way += (b[d] - a[d]) * n[1][d] / sine2;
    }
    for (int d = 0; d < 3; d++)
        corner[d] = a[d] + way * (n[1][d] - cosine * n[0][d]) + gap * (n[0][d] + n[1][d]) / (1.0 + cosine);
    return !is_hidden(solids, from, corner) && !is_hidden(solids, corner, to);
}

/* Is an obstacle between two places outside, with a surface towards each of them? Returns its number, -1 for none. */
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
        to_frame_of(obstacle, from, a);
        to_frame_of(obstacle, to, b);
        if (sk_shape_first_hit(obstacle->shape, a, b, &there) && sk_shape_first_hit(obstacle->shape, b, a, &back) &&
            !cuts_a_corner(solids, from, to, obstacle, &there, &back))
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
        open += !is_hidden(solids, a, over_a) && !is_hidden(solids, over_a, over_b) && !is_hidden(solids, over_b, b);
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
    stand *stands = barriers->stands;
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

void SK_DIM(sk_barriers_add_bodies)(const sk_solids *solids, const double corner[3],
                                    const float distances[SK_BARRIER_CELLS], int fixed_count, sk_barriers *barriers)
{
    static const int steps[3] = {1, SK_BARRIER_N, SK_BARRIER_N * SK_BARRIER_N};
    sk_barriers all;
    SK_DIM(sk_barriers_find)(solids, corner, distances, &all);
    for (int d = 0; all.found && d < SELKIE_DIM; d++)
        for (int n = 0; n < SK_BARRIER_CELLS; n++) {
            if (all.wall[d][n] < fixed_count || barriers->wall[d][n] >= 0)
                continue;
            barriers->open[d][n] = all.open[d][n];
            barriers->wall[d][n] = all.wall[d][n];
            barriers->near[n] = barriers->near[n - steps[d]] = 1;
            barriers->found = 1;
        }
}

/* --- kernels --- */

int SK_DIM(sk_barriers_has_wall)(const uint8_t near[SK_BARRIER_CELLS], int cell, int axis)
{
    static const int steps[3] = {1, SK_BARRIER_N, SK_BARRIER_N * SK_BARRIER_N};
    int any = 0;
    for (int n = 0; n < (SELKIE_DIM == 3 ? 18 : 6); n++) {
        const int below = n % 2, a = n / 2 % 3 - 1, b = SELKIE_DIM == 3 ? n / 6 - 1 : 0;
        any |= near[cell - below * steps[axis] + a * steps[(axis + 1) % SELKIE_DIM] + b * steps[(axis + 2) % 3]];
    }
    return any;
}

uint64_t SK_DIM(sk_barriers_seen_halves)(const sk_solids *solids, const double corner[3], const sk_barriers *barriers,
                                         int cell, int axis)
{
    static const int steps[3] = {1, SK_BARRIER_N, SK_BARRIER_N * SK_BARRIER_N};
    const int at[3] = {cell % SK_BARRIER_N - 1, cell / SK_BARRIER_N % SK_BARRIER_N - 1,
                       cell / (SK_BARRIER_N * SK_BARRIER_N) - 1};
    uint64_t seen = 0;
    for (int n = 0; n < (SELKIE_DIM == 3 ? 64 : 16); n++) {
        const int tap[3] = {n % 4, n / 4 % 4, n / 16};
        const stand *place = &barriers->stands[tap[axis] < 2 ? cell - steps[axis] : cell];
        double x[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] = corner[d] + (at[d] + 0.5 * tap[d] - (d == axis ? 0.75 : 0.25)) * solids->cell_size;
        if (place->exists && !is_hidden(solids, place->x, x))
            seen |= UINT64_C(1) << n;
    }
    return seen;
}

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
        to_frame_of(&solids->obstacles[o], x, local);
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
        to_frame_of(&solids->obstacles[o], from, a);
        to_frame_of(&solids->obstacles[o], to, b);
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
        if (is_hidden(solids, place->x, half))
            continue;
        const double end = from[axis] + share * (to[axis] - from[axis]);
        seen += fabs(hat_to((end - middle) / h) - hat_to((from[axis] - middle) / h));
    }
    return seen;
}

/* Is a place outside the obstacles? Surfaces belong to them. */
static int is_outside(const sk_solids *solids, const double x[3])
{
    for (int o = 0; o < solids->obstacle_count; o++) {
        double local[3];
        to_frame_of(&solids->obstacles[o], x, local);
        if (sk_shape_distance_within(solids->obstacles[o].shape, local, solids->cell_size, NULL) <
            1e-4 * solids->cell_size)
            return 0;
    }
    return 1;
}

float SK_DIM(sk_barriers_seen_face)(const sk_solids *solids, const double corner[3], const sk_barriers *barriers,
                                    int cell, int axis)
{
    static const int steps[3] = {1, SK_BARRIER_N, SK_BARRIER_N * SK_BARRIER_N};
    enum { PLACES = SELKIE_DIM == 2 ? 32 : 8 }; /* along an axis of the face */
    const int at[3] = {cell % SK_BARRIER_N - 1, cell / SK_BARRIER_N % SK_BARRIER_N - 1,
                       cell / (SK_BARRIER_N * SK_BARRIER_N) - 1};
    const int a = SELKIE_DIM == 2 ? 1 - axis : (axis + 1) % 3, b = (axis + 2) % 3;
    const stand *sides[2] = {&barriers->stands[cell - steps[axis]], &barriers->stands[cell]};
    int seen = 0;
    for (int n = 0; n < (SELKIE_DIM == 2 ? PLACES : PLACES * PLACES); n++) {
        double x[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] = corner[d] + at[d] * solids->cell_size;
        x[a] += (n % PLACES + 0.5) / PLACES * solids->cell_size;
        if (SELKIE_DIM == 3)
            x[b] += (n / PLACES + 0.5) / PLACES * solids->cell_size;
        int open = is_outside(solids, x);
        for (int side = 0; side < 2 && open; side++)
            open = !sides[side]->exists || !is_hidden(solids, sides[side]->x, x);
        seen += open;
    }
    return (float)seen / (SELKIE_DIM == 2 ? PLACES : PLACES * PLACES);
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
    nearest_normal(solids, grid, place, axis, normal);
}

/* Splits the density of the cells that see a part of their kernel only. */
static void split_density(const sk_solids *solids, sk_grid *grid, const sk_particles *particles,
                          const sk_transfer_options *options, sk_grid_field field, int hidden)
{
    const sk_attribute *material = options->material_mask ? sk_particles_find_attribute(particles, "material") : NULL;
    const counted_particles counted = {.records = particles->records,
                                       .material = material ? material->data : NULL,
                                       .mask = material ? options->material_mask : NULL,
                                       .density_per_particle = options->density_per_particle};
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++)
        if (solids->split[solids->block_slot[b]])
            SK_PLAIN_EACH_CELL(cell, b)
    split_cell(solids, grid, cell, &counted, grid->fields[field], hidden);
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

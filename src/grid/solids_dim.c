/* Solids on one block: from sampled distances to fractions. See solids.h. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/barriers.h"
#include "grid/solid_bodies.h"
#include "grid/solid_samples.h"

/* Is an obstacle within two cells of the block? Tests the boxes first, then the distance of the block's centre. */
static int obstacle_near(const sk_obstacle *obstacle, const sk_grid *grid, const double corner[3])
{
    double h = grid->cell_size, middle[3] = {0, 0, 0};
    double half = 0.5 * SK_BLOCK_N * h;
    for (int d = 0; d < SELKIE_DIM; d++) {
        middle[d] = corner[d] + half;
        if (obstacle->low[d] > corner[d] + (SK_BLOCK_N + 2) * h || obstacle->high[d] < corner[d] - 2 * h)
            return 0;
    }
    double normal[3];
    double distance = sk_obstacle_distance(obstacle->shape, obstacle->placed, middle, normal);
    return distance < sqrt((double)SELKIE_DIM) * (half + 2 * h);
}

/* Cells from a block to the nearest obstacle during the step, or less. First from the boxes, then from the distance of
 * the block's centre. */
static float clearance_of(const sk_solids *solids, const sk_grid *grid, const double corner[3])
{
    const double h = grid->cell_size, half = 0.5 * SK_BLOCK_N * h;
    double least = 1e9 * h;
    for (int o = 0; o < solids->obstacle_count; o++) {
        const sk_obstacle *obstacle = &solids->obstacles[o];
        double apart = 0.0, middle[3] = {0, 0, 0}, normal[3];
        for (int d = 0; d < SELKIE_DIM; d++) {
            const double below = obstacle->swept_low[d] - (corner[d] + SK_BLOCK_N * h),
                         above = corner[d] - obstacle->swept_high[d];
            const double out = below > above ? below : above; /* fmax may be a call */
            apart = out > apart ? out : apart;
            middle[d] = corner[d] + half;
        }
        if (apart < 4 * h && apart < least) {
            /* The sampled distance of a mesh may be too large by a fraction of a cell. */
            const double distance = sk_obstacle_distance(obstacle->shape, obstacle->placed, middle, normal);
            const double around = distance - half * sqrt((double)SELKIE_DIM) - ((double)solids->motion + 0.5) * h;
            apart = around > apart ? around : apart;
        }
        least = apart < least ? apart : least;
    }
    return (float)(least / h);
}

static int wall_near(const sk_solids *solids, const sk_grid *grid, const double corner[3])
{
    double h = grid->cell_size;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        int d = side / 2;
        if (solids->walls[side] == SELKIE_WALL_OPEN)
            continue;
        if (side & 1 ? corner[d] + (SK_BLOCK_N + 2) * h > solids->high[d] : corner[d] - 2 * h < solids->low[d])
            return 1;
    }
    return 0;
}

/* Slivers would make the system stiff. Their velocity only balances fluxes; particles must not follow it across half a
 * cell. */
static float without_slivers(float fraction)
{
    return fraction < 0.1f ? 0.0f : fraction > 0.99f ? 1.0f : fraction;
}

/* Open fraction of one face, a square (a segment in 2D). Its lower corner is node n; a and b are the steps along it. */
static float face_fraction(const float *distance, int n, int a, int b)
{
    float fraction, least = distance[n];
    for (int i = 0; i < (SELKIE_DIM == 3 ? 9 : 3); i++) {
        const float value = distance[n + i % 3 * a + i / 3 * b];
        least = value < least ? value : least;
    }
    if (least > 0.0f)
        return 1.0f;
    if (SELKIE_DIM == 2) {
        fraction = 0.5f * (sk_open_segment(distance[n], distance[n + a]) +
                           sk_open_segment(distance[n + a], distance[n + 2 * a]));
    } else {
        fraction = 0.0f;
        for (int j = 0; j < 2; j++)
            for (int i = 0; i < 2; i++) {
                const float *q = distance + n + i * a + j * b;
                fraction += 0.25f * sk_open_square(q[0], q[a], q[a + b], q[b]);
            }
    }
    return without_slivers(fraction);
}

/* Does a face meet an edge of an obstacle or a wall that the samples do not resolve? Its distances are then not linear.
 * Faces farther than a cell from all surfaces are open. */
static int has_edge(const float *distance, int n, int a, int b)
{
    float least = distance[n], most = 0.0f;
    for (int i = 0; i < (SELKIE_DIM == 3 ? 9 : 3); i++)
        least = fminf(least, distance[n + i % 3 * a + i / 3 * b]);
    for (int i = 0; i < (SELKIE_DIM == 3 ? 3 : 1); i++) {
        const float *p = distance + n + i * b, *q = distance + n + i * a;
        most = fmaxf(most, fabsf(p[0] - 2.0f * p[a] + p[2 * a]));
        if (SELKIE_DIM == 3)
            most = fmaxf(most, fabsf(q[0] - 2.0f * q[b] + q[2 * b]));
    }
    return least > -0.75f && least < 0.5f && most > 0.1f;
}

/* Bodies near a block that are sampled once; further ones are sampled twice. */
enum { SAMPLED_BODIES = 4 };

/* Obstacles near a block whose surfaces are tested beyond the samples. */
enum { MOST_NEAR = 32 };

/* A block while it is computed. */
typedef struct block_work {
    double corner[3];
    size_t slot;
    int moving;      /* moving obstacles count */
    int walls_alone; /* no obstacle is near */
    int which;       /* surfaces differ: the nearest one matters */
    samples s;
    const samples *fixed;          /* without rigid bodies */
    samples alone[SAMPLED_BODIES]; /* of the first bodies near the block, each alone */
    int alone_count;
    sk_barriers barriers;
    uint8_t walled[SK_BARRIER_CELLS]; /* a wall of an obstacle separates the cell from one beside it */
    sk_obstacle near[MOST_NEAR];      /* obstacles near the block; bodies come last */
    int fixed_count;                  /* those that are no bodies; MOST_NEAR: there may be more */
} block_work;

/* Is an obstacle a rigid body? Walls have negative numbers. */
static int is_body(const sk_solids *solids, int obstacle)
{
    return obstacle >= solids->obstacle_count - solids->body_count;
}

/* The solids with the obstacles near the block alone, without rigid bodies. */
static sk_solids fixed_view(const sk_solids *solids, const block_work *work)
{
    sk_solids view = *solids;
    view.obstacles = (sk_obstacle *)work->near;
    view.obstacle_count = work->fixed_count;
    return view;
}

/* The sampled distances of the centres of the cells of a block and around it. */
static void centre_distances(const samples *s, float distances[SK_BARRIER_CELLS])
{
    for (int n = 0; n < SK_BARRIER_CELLS; n++) {
        const int at[3] = {n % SK_BARRIER_N, n / SK_BARRIER_N % SK_BARRIER_N, n / (SK_BARRIER_N * SK_BARRIER_N)};
        distances[n] =
            s->distance[2 * at[0] + 1 + NODES * (2 * at[1] + 1 + (SELKIE_DIM == 3 ? NODES * (2 * at[2] + 1) : 0))];
    }
}

/* Faces that walls of obstacles close, as without bodies, and those that thin bodies close. `view`: the solids near the
 * block. Stands are those without bodies. */
static void find_faces(const sk_solids *solids, const sk_solids *view, block_work *work)
{
    sk_barriers *barriers = &work->barriers;
    float distances[SK_BARRIER_CELLS];
    const sk_solids fixed = fixed_view(solids, work);
    centre_distances(work->fixed, distances);
    SK_DIM(sk_barriers_find)(&fixed, work->corner, distances, barriers);
    memcpy(work->walled, barriers->near, sizeof work->walled);
    if (work->fixed == &work->s)
        return;

    centre_distances(&work->s, distances);
    SK_DIM(sk_barriers_add_bodies)(view, work->corner, distances, work->fixed_count, barriers);
}

/* Walls between the samples close faces and hide parts of kernels. */
static void find_barriers(sk_solids *solids, const sk_grid *grid, block_work *work)
{
    /* The obstacles near the block. */
    int16_t numbers[MOST_NEAR];
    sk_solids view = *solids;
    view.obstacles = work->near;
    view.obstacle_count = 0;
    for (int o = 0; o < solids->obstacle_count && view.obstacle_count < MOST_NEAR; o++)
        if ((work->moving || !solids->obstacles[o].moves) && obstacle_near(&solids->obstacles[o], grid, work->corner)) {
            numbers[view.obstacle_count] = (int16_t)o;
            work->near[view.obstacle_count++] = solids->obstacles[o];
            work->fixed_count += !is_body(solids, o);
        }

    /* Faces. */
    find_faces(solids, &view, work);
    for (int d = 0; work->barriers.found && d < SELKIE_DIM; d++)
        for (int n = 0; n < SK_BARRIER_CELLS; n++)
            if (work->barriers.wall[d][n] >= 0)
                work->barriers.wall[d][n] = numbers[work->barriers.wall[d][n]];

    /* Kernels, which reach one cell to each side. */
    for (int c = 0; work->barriers.found && c < SK_BLOCK_CELLS; c++) {
        const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
        const size_t cell = work->slot * SK_BLOCK_CELLS + (size_t)c;
        double centre[3] = {0.0, 0.0, 0.0};
        int split = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            split |= work->barriers.near[sk_barrier_index(at[0] + n % 3 - 1, at[1] + n / 3 % 3 - 1,
                                                          SELKIE_DIM == 3 ? at[2] + n / 9 - 1 : 0)];
        if (!split)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            centre[d] = work->corner[d] + (at[d] + 0.5) * solids->cell_size;
        solids->barriers[cell] |= SK_BARRIER_SPLIT;
        solids->blurred[cell] = SK_DIM(sk_barriers_hidden_share)(&view, centre);
        solids->split[work->slot] = 1;
    }
}

/* Open fraction of a face across axis d, without bodies. Its lower corner is node n, its cell of the barriers `cell`.
 */
static float fraction_of(const sk_solids *solids, const block_work *work, int n, int a, int b, int cell, int d)
{
    const float *distance = work->fixed->distance;
    const int wall = work->barriers.found ? work->barriers.wall[d][cell] : -1;
    const float open = wall >= 0 && !is_body(solids, wall) ? work->barriers.open[d][cell] : 1.0f;
    if (work->fixed_count > 0 && work->fixed_count < MOST_NEAR && open > 0.0f && has_edge(distance, n, a, b)) {
        const sk_solids view = fixed_view(solids, work);
        return without_slivers(SK_DIM(sk_barriers_seen_face)(&view, work->corner, &work->barriers, cell, d));
    }
    return open * face_fraction(distance, n, a, b);
}

/* Do the distances around a face across axis d, from which its normal follows, belong to another obstacle than `owner`,
 * which closes it, and does one of both move? Node n is the lower corner of the face. */
static int meets_another(const sk_solids *solids, const block_work *work, int n, int d, int owner)
{
    static const int steps[3] = {1, NODES, SLICE};
    const int centre = n + 1 + NODES + (SELKIE_DIM == 3 ? SLICE : 0);
    for (int m = 0; owner >= 0 && m < 2 * (2 * SELKIE_DIM + 1); m++) {
        const int axis = m / 2 % SELKIE_DIM, way = m < 2 ? 0 : m / 2 <= SELKIE_DIM ? 2 : -2;
        const int at = centre - m % 2 * 2 * steps[d] + (axis == d ? 0 : way * steps[axis]), other = work->s.nearest[at];
        if (other >= 0 && other != owner && (solids->obstacles[other].moves || solids->obstacles[owner].moves))
            return 1;
    }
    return 0;
}

/* Open fraction of the lower face of cell c across axis d, and the solid's velocity there. Returns the fractions of the
 * lower and the upper face together. */
static float compute_face(sk_solids *solids, const block_work *work, int c, int d)
{
    static const int steps[3] = {1, NODES, SLICE};
    const int cell[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
    const int node = (2 * cell[0] + 2) + NODES * ((2 * cell[1] + 2) + NODES * (SELKIE_DIM == 3 ? 2 * cell[2] + 2 : 0));
    const int a = SELKIE_DIM == 2 ? steps[1 - d] : steps[(d + 1) % 3], b = steps[(d + 2) % 3];
    const size_t at = work->slot * SK_BLOCK_CELLS + (size_t)c;

    /* Open fractions from the samples, and the solid nearest to the centre of the face. */
    const int lower = sk_barrier_index(cell[0], cell[1], cell[2]),
              upper = sk_barrier_index(cell[0] + (d == 0), cell[1] + (d == 1), cell[2] + (d == 2));
    const float fraction = fraction_of(solids, work, node, a, b, lower, d),
                above = fraction_of(solids, work, node + 2 * steps[d], a, b, upper, d);
    int owner = work->fixed->nearest[node + a + (SELKIE_DIM == 3 ? b : 0)];

    /* Walls that the samples do not resolve. */
    if (work->barriers.found) {
        if (work->barriers.open[d][lower] == 0.0f && face_fraction(work->fixed->distance, node, a, b) > 0.0f)
            solids->barriers[at] |= (uint8_t)(1 << d);
        const int wall = work->barriers.wall[d][lower];
        owner = wall >= 0 && !is_body(solids, wall) ? wall : owner;
    }
    if (work->moving && fraction == 0.0f && meets_another(solids, work, node, d, owner))
        solids->barriers[at] |= (uint8_t)(1 << d);

    /* Store the fraction, and the velocity of a moving solid at the centre of the face. */
    solids->fraction[d][at] = fraction;
    if (work->moving) {
        double x[3], velocity[3];
        for (int e = 0; e < 3; e++)
            x[e] = work->corner[e] + (cell[e] + (e == d || e >= SELKIE_DIM ? 0.0 : 0.5)) * solids->cell_size;
        sk_solids_velocity(solids, owner, x, velocity);
        solids->velocity[d][at] = fraction < 1.0f ? (float)velocity[d] : 0.0f;
    }
    return fraction + above;
}

/* The surface nearest to a cell: whether liquid sticks to it, its grip and its friction. */
static void compute_surface(sk_solids *solids, const block_work *work, int centre, size_t at)
{
    const int nearest = work->which ? work->s.nearest[centre] : 0;
    const sk_obstacle *obstacle = nearest >= 0 && work->which ? &solids->obstacles[nearest] : NULL;
    /* A rigid body has no definition of an obstacle, and no friction. */
    const selkie_obstacle_def *def = obstacle ? obstacle->def : NULL;
    const int side = nearest < 0 ? -1 - nearest : 0;
    const selkie_wall kind = obstacle ? obstacle->surface : solids->walls[side];
    const double slip_length = obstacle ? obstacle->slip_length : solids->slip_length[side],
                 friction = def        ? def->liquid_friction
                            : obstacle ? 0.0
                                       : solids->side_friction[side],
                 half = 0.5 * solids->cell_size;
    const int rough = work->which && kind == SELKIE_WALL_NO_SLIP;
    solids->no_slip[at] = rough && !(slip_length > 0.0);
    if (solids->has_grip)
        solids->grip[at] = rough ? (float)(half / (half + slip_length)) : 0.0f;
    if (solids->has_friction)
        solids->friction[at] = work->which && kind == SELKIE_WALL_FREE_SLIP ? (float)friction : 0.0f;
}

/* Distance, slip and faces of one cell. */
static void compute_cell(sk_solids *solids, const block_work *work, int c)
{
    const int i = c & SK_BLOCK_MASK, j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> (2 * SK_BLOCK_LOG);
    const int centre = (2 * i + 3) + NODES * ((2 * j + 3) + NODES * (SELKIE_DIM == 3 ? 2 * k + 3 : 0));
    const size_t at = work->slot * SK_BLOCK_CELLS + (size_t)c;
    const float distance = work->s.distance[centre];
    solids->distance[at] = distance;
    compute_surface(solids, work, centre, at);
    float open = 0.0f;
    /* Fast path: most cells are wholly open or closed. Walls are axis-aligned, so that the distance changes by at most
     * half a cell from the centre to any corner. Walls do not move. */
    const int whole = work->walls_alone && !work->moving && fabsf(distance) > 0.501f;
    for (int d = 0; whole && d < SELKIE_DIM; d++)
        solids->fraction[d][at] = open = distance > 0.0f ? 1.0f : 0.0f;
    for (int d = 0; !whole && d < SELKIE_DIM; d++)
        open += compute_face(solids, work, c, d);
    solids->closed[at] = open == 0.0f;
}

/* A block's faces while the shares of bodies are taken from them. */
typedef struct face_room {
    solid_halves fixed;                           /* solid part of the half cells without bodies */
    solid_halves solid;                           /* so far */
    float outside[SELKIE_DIM][SK_BLOCK_CELLS];    /* part of the face's kernel outside of obstacles */
    float room[SELKIE_DIM][SK_BLOCK_CELLS];       /* part of it without bodies, over `outside` */
    float solid_flux[SELKIE_DIM][SK_BLOCK_CELLS]; /* m/s  of the closed part */
} face_room;

/* Parts of the kernel around the lower face of cell c across axis d that a body takes, and that obstacles leave open:
 * of what is not behind a wall that the samples do not resolve. */
static void measure_seen(const sk_solids *solids, const block_work *work, const face_room *faces,
                         const solid_halves *body, int c, int d, float *taken, float *open)
{
    static const float taps[4] = {0.125f, 0.375f, 0.375f, 0.125f};
    const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
    const sk_solids fixed = fixed_view(solids, work);
    uint64_t left = SK_DIM(sk_barriers_seen_halves)(&fixed, work->corner, &work->barriers,
                                                    sk_barrier_index(at[0], at[1], at[2]), d);
    *taken = *open = 0.0f;
    for (; left; left &= left - 1) {
        const int n = __builtin_ctzll(left), tap[3] = {n % 4, n / 4 % 4, n / 16};
        int half[3] = {0, 0, 0};
        float weight = 1.0f;
        for (int e = 0; e < SELKIE_DIM; e++) {
            half[e] = 2 * at[e] + (e != d) + tap[e];
            weight *= taps[tap[e]];
        }
        *taken += weight * body->part[half[2]][half[1]][half[0]];
        *open += weight * (1.0f - faces->fixed.part[half[2]][half[1]][half[0]]);
    }
}

/* The share of one body: its part of the trilinear kernel around the face, over the part outside of obstacles. A plate
 * that the samples do not resolve closes what it covers. */
static void add_body(sk_solids *solids, const sk_grid *grid, size_t piece, const block_work *work, face_room *faces)
{
    const int number = solids->obstacle_count - solids->body_count + solids->pieces[piece].body;
    const sk_obstacle *body = &solids->obstacles[number];
    const int order = (int)(piece - solids->piece_first[solids->pieces[piece].block]);
    samples again;
    solid_halves halves;
    if (order >= SAMPLED_BODIES)
        sample_body(body, grid, work->corner, &again);
    measure_halves(order < SAMPLED_BODIES ? work->alone[order].distance : again.distance, &every_half, &halves);
    float *part = &halves.part[0][0][0], *solid = &faces->solid.part[0][0][0];
    for (int n = 0; n < HALVES_Z * HALVES * HALVES; n++) {
        part[n] = part[n] < 1.0f - solid[n] ? part[n] : 1.0f - solid[n];
        solid[n] += part[n];
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *share = solids->piece_share[d] + (size_t)solids->pieces[piece].share * SK_BLOCK_CELLS;
        blur(&halves, d, &every_cell, share);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int at =
                sk_barrier_index(c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG);
            float taken = share[c], open = faces->outside[d][c], *room = &faces->room[d][c];
            if (taken > 0.0f && SK_DIM(sk_barriers_has_wall)(work->walled, at, d))
                measure_seen(solids, work, faces, &halves, c, d, &taken, &open);
            float phi = taken / fmaxf(open, 1e-3f);
            if (work->barriers.found && work->barriers.wall[d][at] == number)
                phi = fmaxf(phi, 1.0f - work->barriers.open[d][at]);
            phi = *room - phi < SK_BODY_SLIVER ? *room : phi < 1e-5f ? 0.0f : phi;
            *room -= phi;
            share[c] = phi * solids->fraction[d][work->slot * SK_BLOCK_CELLS + (size_t)c];
            if (!(share[c] > 0.0f))
                continue;
            double x[3], velocity[3];
            centre_of_face(work->corner, solids->cell_size, c, d, x);
            sk_pose_velocity(&body->pose, x, velocity);
            faces->solid_flux[d][c] += share[c] * (float)velocity[d];
        }
    }
}

/* Is a face that bodies have closed, at its place in the barriers, a sliver? A plate that closes it keeps the liquid on
 * its sides apart. */
static int is_sliver(const sk_solids *solids, const block_work *work, int c, int d)
{
    const size_t cell = work->slot * SK_BLOCK_CELLS + (size_t)c;
    const int at = sk_barrier_index(c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG);
    return !(work->barriers.found && work->barriers.wall[d][at] >= 0) && !(sk_solids_grip(solids, cell) > 0.0f);
}

/* Sides of cell c behind a wall that closes the whole face, a bit each: -x +x -y +y -z +z. */
static int walls_around(const block_work *work, int c)
{
    const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
    int sides = 0;
    for (int side = 0; work->barriers.found && side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, up = side % 2;
        const int face = sk_barrier_index(at[0] + (up && d == 0), at[1] + (up && d == 1), at[2] + (up && d == 2));
        sides |= (work->barriers.open[d][face] == 0.0f) << side;
    }
    return sides;
}

/* Cells that bodies cover. */
static void find_covered(sk_solids *solids, const block_work *work, const solid_halves *fixed)
{
    const sk_solids view = fixed_view(solids, work);
    float blurred[SK_BLOCK_CELLS];
    blur(fixed, -1, &every_cell, blurred);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const size_t cell = work->slot * SK_BLOCK_CELLS + (size_t)c;
        double centre[3];
        centre_of_face(work->corner, solids->cell_size, c, -1, centre);
        if (solids->blurred[cell] > 0.5f && solids->barriers[cell] & SK_BARRIER_SPLIT)
            blurred[c] = SK_DIM(sk_barriers_hidden_share)(&view, centre);
        if (sk_solids_cover(blurred[c], solids->blurred[cell]))
            solids->covered[cell] = (uint8_t)(1 | walls_around(work, c) << 1);
    }
}

/* Takes the shares of all bodies near the block from its open fractions. The velocity of the closed part is the mean of
 * obstacles and bodies. */
static void add_bodies(sk_solids *solids, const sk_grid *grid, int block, const block_work *work)
{
    face_room faces;
    const size_t base = work->slot * SK_BLOCK_CELLS;
    measure_halves(work->fixed->distance, &every_half, &faces.fixed);
    faces.solid = faces.fixed;
    find_covered(solids, work, &faces.fixed);
    for (int d = 0; d < SELKIE_DIM; d++) {
        blur(&faces.solid, d, &every_cell, faces.outside[d]);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            faces.outside[d][c] = 1.0f - faces.outside[d][c];
            faces.room[d][c] = 1.0f;
            faces.solid_flux[d][c] =
                (1.0f - solids->fraction[d][base + (size_t)c]) * solids->velocity[d][base + (size_t)c];
        }
    }
    for (uint32_t piece = solids->piece_first[block]; piece < solids->piece_first[block + 1]; piece++)
        add_body(solids, grid, piece, work, &faces);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            float *fraction = &solids->fraction[d][base + (size_t)c];
            const int closes = *fraction > 0.0f && faces.room[d][c] == 0.0f;
            *fraction = closes && is_sliver(solids, work, c, d) ? -0.0f : *fraction * faces.room[d][c];
            solids->velocity[d][base + (size_t)c] =
                *fraction < 1.0f ? faces.solid_flux[d][c] / (1.0f - *fraction) : 0.0f;
        }
}

/* Samples the distances of a block: of all solids, and without bodies into `fixed` if there are any. Returns whether
 * only walls are near. */
static int sample_block(const sk_solids *solids, const sk_grid *grid, block_work *work, samples *fixed)
{
    int plain = 1;
    work->fixed = &work->s;
    sample_walls(solids, grid, work->corner, work->which, &work->s);
    for (int o = 0; o < solids->obstacle_count; o++) {
        if ((!work->moving && solids->obstacles[o].moves) || !obstacle_near(&solids->obstacles[o], grid, work->corner))
            continue;
        if (is_body(solids, o) && work->fixed != fixed) {
            *fixed = work->s;
            work->fixed = fixed;
        }
        plain = 0;
        if (!is_body(solids, o)) {
            sample_obstacle(&solids->obstacles[o], o, grid, work->corner, &work->s);
            continue;
        }

        /* Bodies are near each block in the order of its pieces. */
        samples spare, *alone = work->alone_count < SAMPLED_BODIES ? &work->alone[work->alone_count++] : &spare;
        sample_body(&solids->obstacles[o], grid, work->corner, alone);
        for (int n = 0; n < NODES_Z * SLICE; n++)
            if (alone->distance[n] < work->s.distance[n]) {
                work->s.distance[n] = alone->distance[n];
                work->s.nearest[n] = (int16_t)o;
            }
    }
    snap(&work->s);
    if (work->fixed == fixed)
        snap(fixed);
    return plain;
}

/* The kernel around a face is two cells wide, so that no face of a thinner wall lies wholly inside it: pressure would
 * pass. The faces that such a wall closes are closed here too. */
static void close_thin_walls(sk_solids *solids, const block_work *work)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const size_t at = work->slot * SK_BLOCK_CELLS + (size_t)c;
            const float open = work->barriers.open[d][sk_barrier_index(
                c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG))];
            solids->blurred_face[d][at] = fmaxf(solids->blurred_face[d][at], 1.0f - open);
            if (open == 0.0f)
                solids->barriers[at] |= (uint8_t)(SK_BARRIER_THIN << d);
        }
}

static void compute_block(sk_solids *solids, const sk_grid *grid, int block, size_t slot, int moving)
{
    block_work work;
    samples fixed;
    const size_t base = slot * SK_BLOCK_CELLS;
    work.slot = slot;
    work.moving = moving;
    work.alone_count = work.barriers.found = work.fixed_count = 0;
    block_corner(grid, grid->coordinates[block], work.corner);

    /* Distances. */
    int free_slip = 1;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        free_slip &= solids->walls[side] != SELKIE_WALL_NO_SLIP;
    /* Otherwise every surface is free-slip and without friction. */
    work.which = !free_slip || solids->obstacle_count > 0 || solids->has_friction;
    work.walls_alone = sample_block(solids, grid, &work, &fixed);
    solids->plain[slot] = (uint8_t)(free_slip && work.walls_alone);
    solids->split[slot] = solids->exact[slot] = 0;
    memset(solids->barriers + base, 0, SK_BLOCK_CELLS);
    memset(solids->vents + base, 0, SK_BLOCK_CELLS);
    if (solids->covered)
        memset(solids->covered + base, 0, SK_BLOCK_CELLS);

    /* Kernels, then cells and faces. */
    solid_halves halves;
    measure_halves(work.s.distance, &every_half, &halves);
    blur(&halves, -1, &every_cell, solids->blurred + base);
    for (int d = 0; solids->blur_faces && d < SELKIE_DIM; d++)
        blur(&halves, d, &every_cell, solids->blurred_face[d] + base);
    if (!work.walls_alone)
        find_barriers(solids, grid, &work);
    if (work.barriers.found && solids->blur_faces)
        close_thin_walls(solids, &work);
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        compute_cell(solids, &work, c);
    if (work.fixed == &fixed)
        add_bodies(solids, grid, block, &work);
}

static uint64_t key_of_block(const sk_grid *grid, int block)
{
    const int32_t *at = grid->coordinates[block];
    return sk_block_key(at[0], at[1], at[2]);
}

/* A block near moving obstacles. If they all are bodies that the samples resolve, they join the static values. */
static void compute_moving(sk_solids *solids, const sk_grid *grid, int block)
{
    const int first_body = solids->obstacle_count - solids->body_count;
    double corner[3];
    int joins = solids->body_count > 0;
    block_corner(grid, grid->coordinates[block], corner);
    for (int o = 0; joins && o < first_body; o++)
        joins = !obstacle_near(&solids->obstacles[o], grid, corner);
    for (uint32_t n = joins ? solids->piece_first[block] : 0; joins && n < solids->piece_first[block + 1]; n++)
        joins = solids->obstacles[first_body + solids->pieces[n].body].is_thick;
    const int32_t known = sk_block_find(&solids->table, key_of_block(grid, block));
    if (joins)
        SK_DIM(sk_solids_add_bodies)(solids, grid, block, known > 0 ? (size_t)known : 0);
    else
        compute_block(solids, grid, block, (size_t)solids->block_slot[block], 1);
}

/* --- rigid bodies --- */

/* Lists the bodies near each block that moving obstacles reach, with room for their shares. Slots from `fresh` on are
 * new; earlier ones keep their shares. */
static selkie_code list_pieces(sk_solids *solids, const sk_grid *grid, size_t fresh, selkie_error *error)
{
    const int first_body = solids->obstacle_count - solids->body_count;
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->piece_first, &solids->piece_first_capacity,
                      (size_t)grid->block_count + 1, sizeof *solids->piece_first, "bodies", error));
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->slot_share, &solids->slot_share_capacity, solids->slot_count,
                      sizeof *solids->slot_share, "bodies", error));
    solids->piece_count = 0;
    for (size_t slot = 0; slot < solids->static_count; slot++)
        solids->slot_share[slot] = UINT32_MAX;
    for (int b = 0; b < grid->block_count; b++) {
        const size_t slot = (size_t)solids->block_slot[b], first = solids->piece_count;
        double corner[3];
        solids->piece_first[b] = (uint32_t)first;
        block_corner(grid, grid->coordinates[b], corner);
        if (!b || slot < solids->static_count)
            continue;
        if (slot >= fresh)
            solids->slot_share[slot] = solids->share_count;
        for (int n = 0; n < solids->body_count; n++) {
            if (!obstacle_near(&solids->obstacles[first_body + n], grid, corner))
                continue;
            SK_TRY(sk_reserve(solids->memory, (void **)&solids->pieces, &solids->piece_capacity,
                              solids->piece_count + 1, sizeof *solids->pieces, "bodies", error));
            sk_body_piece *piece = &solids->pieces[solids->piece_count++];
            *piece = (sk_body_piece){.block = b, .body = n};
            piece->share = solids->slot_share[slot] + (uint32_t)(solids->piece_count - 1 - first);
            SK_DIM(sk_solids_range_of_body)(solids, grid, piece);
        }
        if (slot >= fresh && solids->piece_count > first)
            solids->share_count += (uint32_t)(solids->piece_count - first);
        else if (slot >= fresh)
            solids->slot_share[slot] = UINT32_MAX;
    }
    solids->piece_first[grid->block_count] = (uint32_t)solids->piece_count;
    for (int d = 0; d < SELKIE_DIM; d++)
        SK_TRY(sk_reserve(solids->memory, (void **)&solids->piece_share[d], &solids->share_capacity[d],
                          (size_t)solids->share_count + 1, SK_BLOCK_CELLS * sizeof(float), "bodies", error));
    return SELKIE_OK;
}

/* A cell is closed if none of its faces is open. Upper faces may belong to the next block. */
static void close_cells(sk_solids *solids, const sk_grid *grid, int block)
{
    const size_t slot = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    const float *next[SELKIE_DIM];
    for (int d = 0; d < SELKIE_DIM; d++)
        next[d] = solids->fraction[d] + (size_t)solids->block_slot[grid->faces[block][2 * d + 1]] * SK_BLOCK_CELLS;
    for (int row = 0; row < SK_BLOCK_CELLS; row += SK_BLOCK_N) {
        float along[SK_BLOCK_N + 1];
        memcpy(along, solids->fraction[0] + slot + row, SK_BLOCK_N * sizeof *along);
        along[SK_BLOCK_N] = next[0][row];
        for (int i = 0; i < SK_BLOCK_N; i += 8) {
            const int c = row + i;
            f8 open = f8_load(along + i) + f8_load(along + i + 1);
            for (int d = 1; d < SELKIE_DIM; d++) {
                const int step = 1 << d * SK_BLOCK_LOG, last = (c >> d * SK_BLOCK_LOG & SK_BLOCK_MASK) == SK_BLOCK_MASK;
                const float *own = solids->fraction[d] + slot;
                open += f8_load(own + c) + f8_load(last ? next[d] + (c - SK_BLOCK_MASK * step) : own + c + step);
            }
            i8_to_bytes(solids->closed + slot + c, (open == 0.0f) & 1);
        }
    }
}

void SK_DIM(sk_solids_find_clearance)(sk_solids *solids, const sk_grid *grid, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int b = 0; b < grid->block_count; b++) {
        double corner[3];
        block_corner(grid, grid->coordinates[b], corner);
        solids->clearance[b] = b ? clearance_of(solids, grid, corner) : 0.0f;
    }
}

selkie_code SK_DIM(sk_solids_reserve)(sk_solids *solids, size_t count, selkie_error *error)
{
    if (count <= solids->capacity)
        return SELKIE_OK;
    size_t before = solids->capacity, capacity = before, element = SK_BLOCK_CELLS * sizeof(float);
    float **const vectors[] = {solids->fraction, solids->blurred_face, solids->velocity};
    float **arrays[] = {&solids->blurred, &solids->distance, &solids->grip, &solids->friction};
    const int needed[] = {1, 1, solids->has_grip, solids->has_friction};
    const int wanted[] = {1, solids->blur_faces, sk_solids_have_velocity(solids)};

    /* Grow the arrays of floats. */
    for (int v = 0; v < 3; v++)
        for (int d = 0; wanted[v] && d < SELKIE_DIM; d++) {
            capacity = before;
            SK_TRY(sk_reserve(solids->memory, (void **)&vectors[v][d], &capacity, count, element, "solids", error));
        }
    for (int a = 0; a < 4; a++) {
        if (!needed[a])
            continue;
        capacity = before;
        SK_TRY(sk_reserve(solids->memory, (void **)arrays[a], &capacity, count, element, "solids", error));
    }

    /* Grow the arrays of bytes. The last three have one value per slot. */
    uint8_t **bytes[] = {&solids->covered, &solids->no_slip, &solids->closed, &solids->barriers,
                         &solids->vents,   &solids->plain,   &solids->split,  &solids->exact};
    for (int a = solids->body_count ? 0 : 1; a < 8; a++) {
        size_t got = before;
        SK_TRY(sk_reserve(solids->memory, (void **)bytes[a], &got, count, a > 4 ? 1 : SK_BLOCK_CELLS, "solids", error));
        capacity = got < capacity ? got : capacity;
    }

    /* Slot 0 stands for all blocks without solids. */
    if (before == 0) {
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            for (int d = 0; d < SELKIE_DIM; d++) {
                solids->fraction[d][c] = 1.0f;
                if (solids->blur_faces)
                    solids->blurred_face[d][c] = 0.0f;
                if (sk_solids_have_velocity(solids))
                    solids->velocity[d][c] = 0.0f;
            }
            solids->blurred[c] = 0.0f;
            solids->distance[c] = 1e9f;
            solids->no_slip[c] = 0;
            if (solids->has_grip)
                solids->grip[c] = 0.0f;
            if (solids->has_friction)
                solids->friction[c] = 0.0f;
            solids->closed[c] = 0;
            if (solids->covered)
                solids->covered[c] = 0;
            solids->barriers[c] = solids->vents[c] = 0;
        }
        solids->plain[0] = 1;
        solids->split[0] = solids->exact[0] = 0;
    }
    solids->capacity = capacity;
    return SELKIE_OK;
}

/* Gives slots to the blocks near moving obstacles and lists those to compute in `work`. Blocks that had a slot while
 * the obstacles were where they are now keep it. Returns the number of the blocks to compute. */
static selkie_code find_touched(sk_solids *solids, const sk_grid *grid, int32_t *touched, selkie_error *error)
{
    *touched = 0;
    for (int b = 1; solids->moving_count && b < grid->block_count; b++) {
        double corner[3];
        int near = 0;
        block_corner(grid, grid->coordinates[b], corner);
        for (int o = 0; !near && o < solids->obstacle_count; o++)
            near = solids->obstacles[o].moves && obstacle_near(&solids->obstacles[o], grid, corner);
        if (!near)
            continue;
        int32_t slot = sk_block_find(&solids->moving_table, key_of_block(grid, b));
        if (!slot) {
            slot = (int32_t)solids->slot_count++;
            solids->work[(*touched)++] = b;
            SK_TRY(sk_block_table_set(&solids->moving_table, solids->memory, key_of_block(grid, b), slot, error));
        }
        solids->block_slot[b] = slot;
    }
    return SELKIE_OK;
}

/* The slots of the blocks near moving obstacles, and the bodies in them. `renumbered`: static slots were added. */
static selkie_code update_moving(sk_solids *solids, const sk_grid *grid, int renumbered, int threads,
                                 selkie_error *error)
{
    int32_t touched;
    if (renumbered || !solids->settled) {
        sk_block_table_clear(&solids->moving_table);
        solids->share_count = 0;
    }
    const size_t fresh = solids->static_count + (size_t)solids->moving_table.count;
    solids->settled = 0; /* until the slots are filled */
    solids->slot_count = fresh;
    SK_TRY(find_touched(solids, grid, &touched, error));
    SK_TRY(SK_DIM(sk_solids_reserve)(solids, solids->slot_count, error));
    if (solids->body_count)
        SK_TRY(list_pieces(solids, grid, fresh, error));

        /* Fill the new slots. */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int32_t w = 0; w < touched; w++)
        compute_moving(solids, grid, solids->work[w]);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4) if (solids->piece_count > 0)
    for (int b = 1; b < grid->block_count; b++)
        if (solids->piece_count && solids->piece_first[b] < solids->piece_first[b + 1])
            close_cells(solids, grid, b);
    solids->settled = 1;
    return SK_DIM(sk_solids_impose)(solids, grid, error);
}

selkie_code SK_DIM(sk_solids_update)(sk_solids *solids, const sk_grid *grid, int threads, selkie_error *error)
{
    size_t blocks = (size_t)grid->block_count;
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->block_slot, &solids->block_capacity, blocks, sizeof(int32_t),
                      "solids", error));
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->work, &solids->work_capacity, blocks, sizeof(int32_t), "solids",
                      error));
    SK_TRY(sk_reserve(solids->memory, (void **)&solids->clearance, &solids->clearance_capacity, blocks, sizeof(float),
                      "solids", error));
    solids->block_slot[0] = 0;
    solids->slot_count = solids->static_count;
    SK_DIM(sk_solids_find_clearance)(solids, grid, threads);

    /* Static slots for places that liquid reaches for the first time. */
    int32_t fresh = 0;
    for (int b = 1; b < grid->block_count; b++) {
        int32_t known = sk_block_find(&solids->table, key_of_block(grid, b));
        if (!known) {
            double corner[3];
            block_corner(grid, grid->coordinates[b], corner);
            int near = wall_near(solids, grid, corner);
            for (int o = 0; !near && o < solids->obstacle_count; o++)
                near = !solids->obstacles[o].moves && obstacle_near(&solids->obstacles[o], grid, corner);
            known = near ? (int32_t)solids->slot_count++ : -1;
            if (near)
                solids->work[fresh++] = b;
            else
                SK_TRY(sk_block_table_set(&solids->table, solids->memory, key_of_block(grid, b), known, error));
        }
        solids->block_slot[b] = known > 0 ? known : 0;
    }
    /* The table gets the slots after they are allocated, so that a later call does not use missing ones. */
    SK_TRY(SK_DIM(sk_solids_reserve)(solids, solids->slot_count, error));
    for (int32_t w = 0; w < fresh; w++)
        SK_TRY(sk_block_table_set(&solids->table, solids->memory, key_of_block(grid, solids->work[w]),
                                  solids->block_slot[solids->work[w]], error));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int32_t w = 0; w < fresh; w++) {
        const size_t slot = (size_t)solids->block_slot[solids->work[w]];
        compute_block(solids, grid, solids->work[w], slot, 0);
        for (size_t n = 0; n < solids->restored_count; n++)
            if (solids->restored[n].block == key_of_block(grid, solids->work[w]))
                solids->vents[slot * SK_BLOCK_CELLS + solids->restored[n].cell] = (uint8_t)solids->restored[n].sides;
    }
    if (sk_solids_have_velocity(solids))
        for (size_t slot = solids->static_count; slot < solids->slot_count; slot++)
            for (int d = 0; d < SELKIE_DIM; d++)
                memset(solids->velocity[d] + slot * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    solids->static_count = solids->slot_count;
    return update_moving(solids, grid, fresh > 0, threads, error);
}

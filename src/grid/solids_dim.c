/* Solids on one block: from sampled distances to fractions. See solids.h. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/barriers.h"
#include "grid/grid_kernels.h"
#include "grid/solids.h"

/* Distances are sampled every half cell over the block and one cell around it. */
enum {
    NODES = 2 * (SK_BLOCK_N + 2) + 1,
    NODES_Z = SELKIE_DIM == 3 ? NODES : 1,
    SLICE = NODES * NODES,
    HALVES = NODES - 1, /* half cells along an axis */
    HALVES_Z = SELKIE_DIM == 3 ? HALVES : 1
};

typedef struct samples {
    float distance[NODES_Z * SLICE];  /* cells */
    int16_t nearest[NODES_Z * SLICE]; /* obstacle, or -1 - side for a wall */
} samples;

static void block_corner(const sk_grid *grid, const int32_t coordinates[4], double corner[3])
{
    for (int d = 0; d < 3; d++)
        corner[d] = grid->corner[d] + (double)coordinates[d] * grid->extent[d] * grid->cell_size;
}

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
            apart = fmax(apart, fmax(below, above));
            middle[d] = corner[d] + half;
        }
        if (apart < 4 * h) {
            /* The sampled distance of a mesh may be too large by a fraction of a cell. */
            const double distance = sk_obstacle_distance(obstacle->shape, obstacle->placed, middle, normal);
            apart = fmax(apart, distance - half * sqrt((double)SELKIE_DIM) - ((double)solids->motion + 0.5) * h);
        }
        least = fmin(least, apart);
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

/* Distance to the union of the walls: exact outside the solids, negative depth inside. `which`: also the nearest wall.
 */
static void sample_walls(const sk_solids *solids, const sk_grid *grid, const double corner[3], int which, samples *s)
{
    double h = grid->cell_size;
    double axis_distance[3][NODES];
    float along_x[NODES];
    int axis_side[3][NODES];

    /* Along each axis: distance to the nearer wall, in cells, and its side. */
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = 0; i < NODES; i++) {
            double x = corner[d] + (0.5 * i - 1.0) * h;
            double below = solids->walls[2 * d] == SELKIE_WALL_OPEN ? 1e9 : (x - solids->low[d]) / h;
            double above = solids->walls[2 * d + 1] == SELKIE_WALL_OPEN ? 1e9 : (solids->high[d] - x) / h;
            axis_distance[d][i] = below < above ? below : above;
            axis_side[d][i] = below < above ? 2 * d : 2 * d + 1;
        }

    /* At each node: the smallest distance of the axes. */
    for (int i = 0; i < NODES; i++)
        along_x[i] = (float)axis_distance[0][i];
    for (int k = 0; k < NODES_Z; k++)
        for (int j = 0; j < NODES; j++) {
            const int deeper = SELKIE_DIM == 3 && axis_distance[2][k] < axis_distance[1][j];
            const double across = deeper ? axis_distance[2][k] : axis_distance[1][j];
            float *distance = s->distance + NODES * (j + NODES * k);
            for (int i = 0; i < NODES; i++)
                distance[i] = along_x[i] < (float)across ? along_x[i] : (float)across;
            for (int i = 0; which && i < NODES; i++)
                s->nearest[i + NODES * (j + NODES * k)] =
                    (int16_t)(-1 - (across < axis_distance[0][i] ? axis_side[deeper ? 2 : 1][deeper ? k : j]
                                                                 : axis_side[0][i]));
        }
}

static void sample_obstacle(const sk_obstacle *obstacle, int index, const sk_grid *grid, const double corner[3],
                            samples *s)
{
    double h = grid->cell_size, points[SLICE * 3], distances[SLICE];
    for (int k = 0; k < NODES_Z; k++) {
        for (int j = 0; j < NODES; j++)
            for (int i = 0; i < NODES; i++) {
                double *x = points + 3 * (i + NODES * j);
                x[0] = corner[0] + (0.5 * i - 1.0) * h;
                x[1] = corner[1] + (0.5 * j - 1.0) * h;
                x[2] = SELKIE_DIM == 3 ? corner[2] + (0.5 * k - 1.0) * h : 0.0;
            }
        sk_shape_distances(obstacle->shape, obstacle->placed, SLICE, points, distances);
        for (int n = 0; n < SLICE; n++) {
            float distance = (float)(distances[n] / h);
            if (distance < s->distance[n + SLICE * k]) {
                s->distance[n + SLICE * k] = distance;
                s->nearest[n + SLICE * k] = (int16_t)index;
            }
        }
    }
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
    /* Slivers would make the system stiff. Their velocity only balances fluxes; particles must not follow it across
     * half a cell. */
    return fraction < 0.1f ? 0.0f : fraction > 0.99f ? 1.0f : fraction;
}

/* Part of a cube in which a linear function is positive, from its mean and its slope along each axis: the volume under
 * a plane (Scardovelli and Zaleski 2000, Eq. 1). The lower limit of the slopes avoids a division by zero; its error is
 * negligible. */
static float open_cube(float mean, const float slope[3])
{
    double m[3], sum = 0.0;
    for (int axis = 0; axis < 3; axis++)
        sum += fabs((double)slope[axis]);
    if (sum == 0.0)
        return mean > 0.0f ? 1.0f : 0.0f;
    for (int axis = 0; axis < 3; axis++)
        m[axis] = fmax(fabs((double)slope[axis]) / sum, 1e-4);
    double total = m[0] + m[1] + m[2], level = 0.5 * total + (double)mean / sum, volume = 0.0;
    /* Sum over the corners of the cube, with alternating signs. */
    for (int corner = 0; corner < 8; corner++) {
        double above = level;
        int odd = 0;
        for (int axis = 0; axis < 3; axis++)
            if (corner >> axis & 1) {
                above -= m[axis];
                odd ^= 1;
            }
        if (above > 0.0)
            volume += odd ? -above * above * above : above * above * above;
    }
    volume /= 6.0 * m[0] * m[1] * m[2];
    return volume < 0.0 ? 0.0f : volume > 1.0 ? 1.0f : (float)volume;
}

/* Open part of a half cell that a surface cuts. Its lower corner is q. The distance is taken as linear. */
static float open_half_cell(const float *q)
{
    static const int steps[3] = {1, NODES, SELKIE_DIM == 3 ? SLICE : 0};
    if (SELKIE_DIM == 2)
        return sk_open_square(q[0], q[1], q[NODES + 1], q[NODES]);
    float mean = 0.0f, slope[3] = {0.0f, 0.0f, 0.0f};
    for (int corner = 0; corner < 8; corner++) {
        float value = q[(corner & 1) + (corner >> 1 & 1) * steps[1] + (corner >> 2) * steps[2]];
        mean += 0.125f * value;
        for (int axis = 0; axis < 3; axis++)
            slope[axis] += corner >> axis & 1 ? 0.25f * value : -0.25f * value;
    }
    return open_cube(mean, slope);
}

/* Solid part of each half cell. */
typedef struct solid_halves {
    float part[HALVES_Z][HALVES][HALVES];
} solid_halves;

/* Least and largest distance at the corners of a row of half cells. */
static void find_extremes(const float *q, float least[HALVES], float most[HALVES])
{
    float low[NODES], high[NODES];
    for (int i = 0; i < NODES; i++) {
        low[i] = q[i] < q[i + NODES] ? q[i] : q[i + NODES];
        high[i] = q[i] > q[i + NODES] ? q[i] : q[i + NODES];
    }
    for (int i = 0; SELKIE_DIM == 3 && i < NODES; i++) {
        const float a = q[i + SLICE], b = q[i + NODES + SLICE], less = a < b ? a : b, more = a > b ? a : b;
        low[i] = less < low[i] ? less : low[i];
        high[i] = more > high[i] ? more : high[i];
    }
    for (int i = 0; i < HALVES; i++) {
        least[i] = low[i] < low[i + 1] ? low[i] : low[i + 1];
        most[i] = high[i] > high[i + 1] ? high[i] : high[i + 1];
    }
}

/* Between two walls the distance has an edge. A mean over the corners would count the corner region as half solid. A
 * half cell whose corners are all open is therefore open. */
static void measure_halves(const float *distance, solid_halves *solid)
{
    for (int k = 0; k < HALVES_Z; k++)
        for (int j = 0; j < HALVES; j++) {
            const float *q = distance + NODES * (j + NODES * k);
            float least[HALVES], most[HALVES], *part = solid->part[k][j];
            int cut = 0;
            find_extremes(q, least, most);
            for (int i = 0; i < HALVES; i++) {
                part[i] = least[i] >= 0.0f && most[i] > 0.0f ? 0.0f : 1.0f;
                cut |= least[i] < 0.0f && most[i] > 0.0f;
            }
            for (int i = 0; cut && i < HALVES; i++)
                if (least[i] < 0.0f && most[i] > 0.0f)
                    part[i] = 1.0f - open_half_cell(q + i);
        }
}

/* Share of a trilinear kernel that lies in the solid, for each cell. The kernel is centred on the cell's lower face
 * across axis `face`, or on the cell if face = -1. The solid parts are filtered along each axis with the exact
 * integrals of the hat over half cells. A kernel centred on the cell begins half a cell later than one centred on the
 * face. */
static void blur(const solid_halves *solid, int face, float *blurred)
{
    static const float taps[4] = {0.125f, 0.375f, 0.375f, 0.125f};
    static const int flat = SELKIE_DIM == 2;
    const int first[3] = {face != 0, face != 1, face != 2};
    float rows[HALVES_Z][HALVES][SK_BLOCK_N];
    for (int k = 0; k < HALVES_Z; k++)
        for (int j = 0; j < HALVES; j++)
            for (int c = 0; c < SK_BLOCK_N; c++) {
                const float *q = solid->part[k][j] + 2 * c + first[0];
                rows[k][j][c] = (taps[0] * q[0] + taps[3] * q[3]) + (taps[1] * q[1] + taps[2] * q[2]);
            }
    for (int k = 0; k < SK_BLOCK_NZ; k++)
        for (int j = 0; j < SK_BLOCK_N; j++)
            for (int c = 0; c < SK_BLOCK_N; c++) {
                float total = 0.0f;
                for (int z = 0; z < (flat ? 1 : 4); z++)
                    for (int y = 0; y < 4; y++)
                        total += (flat ? 1.0f : taps[z]) * taps[y] *
                                 rows[flat ? 0 : 2 * k + first[2] + z][2 * j + first[1] + y][c];
                blurred[c + SK_BLOCK_N * (j + SK_BLOCK_N * k)] = total;
            }
}

/* Rounding must not open a face that lies in a wall. */
static void snap(samples *s)
{
    for (int n = 0; n < NODES_Z * SLICE; n++)
        s->distance[n] = fabsf(s->distance[n]) < 1e-4f ? 0.0f : s->distance[n];
}

/* A block while it is computed. */
typedef struct block_work {
    double corner[3];
    size_t slot;
    int moving;      /* moving obstacles count */
    int walls_alone; /* no obstacle is near */
    int which;       /* surfaces differ: the nearest one matters */
    samples s;
    sk_barriers barriers;
} block_work;

/* Walls between the samples close faces and hide parts of kernels. */
static void find_barriers(sk_solids *solids, const sk_grid *grid, block_work *work)
{
    /* The obstacles near the block. */
    enum { MOST = 32 };
    sk_obstacle near[MOST];
    int16_t numbers[MOST];
    sk_solids view = *solids;
    view.obstacles = near;
    view.obstacle_count = 0;
    for (int o = 0; o < solids->obstacle_count && view.obstacle_count < MOST; o++)
        if ((work->moving || !solids->obstacles[o].moves) && obstacle_near(&solids->obstacles[o], grid, work->corner)) {
            numbers[view.obstacle_count] = (int16_t)o;
            near[view.obstacle_count++] = solids->obstacles[o];
        }

    /* Faces. */
    float distances[SK_BARRIER_CELLS];
    for (int n = 0; n < SK_BARRIER_CELLS; n++) {
        const int at[3] = {n % SK_BARRIER_N, n / SK_BARRIER_N % SK_BARRIER_N, n / (SK_BARRIER_N * SK_BARRIER_N)};
        distances[n] =
            work->s.distance[2 * at[0] + 1 + NODES * (2 * at[1] + 1 + (SELKIE_DIM == 3 ? NODES * (2 * at[2] + 1) : 0))];
    }
    SK_DIM(sk_barriers_find)(&view, work->corner, distances, &work->barriers);
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
    float fraction = face_fraction(work->s.distance, node, a, b);
    float above = face_fraction(work->s.distance, node + 2 * steps[d], a, b);
    int owner = work->s.nearest[node + a + (SELKIE_DIM == 3 ? b : 0)];

    /* Barriers reduce the fractions: the samples do not resolve them. */
    if (work->barriers.found) {
        const int lower = sk_barrier_index(cell[0], cell[1], cell[2]),
                  upper = sk_barrier_index(cell[0] + (d == 0), cell[1] + (d == 1), cell[2] + (d == 2));
        if (fraction > 0.0f && work->barriers.open[d][lower] == 0.0f)
            solids->barriers[at] |= (uint8_t)(1 << d);
        owner = work->barriers.wall[d][lower] >= 0 ? work->barriers.wall[d][lower] : owner;
        fraction *= work->barriers.open[d][lower];
        above *= work->barriers.open[d][upper];
    }

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

/* Distance, slip and faces of one cell. */
static void compute_cell(sk_solids *solids, const block_work *work, int c)
{
    const int i = c & SK_BLOCK_MASK, j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> (2 * SK_BLOCK_LOG);
    const int centre = (2 * i + 3) + NODES * ((2 * j + 3) + NODES * (SELKIE_DIM == 3 ? 2 * k + 3 : 0));
    const size_t at = work->slot * SK_BLOCK_CELLS + (size_t)c;
    const float distance = work->s.distance[centre];
    const int nearest = work->which ? work->s.nearest[centre] : 0;
    solids->distance[at] = distance;
    solids->no_slip[at] = !work->which   ? 0
                          : nearest >= 0 ? solids->obstacles[nearest].def->surface == SELKIE_WALL_NO_SLIP
                                         : solids->walls[-1 - nearest] == SELKIE_WALL_NO_SLIP;
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

static void compute_block(sk_solids *solids, const sk_grid *grid, int block, size_t slot, int moving)
{
    block_work work = {.slot = slot, .moving = moving, .walls_alone = 1};
    const size_t base = slot * SK_BLOCK_CELLS;
    block_corner(grid, grid->coordinates[block], work.corner);

    /* Distances. */
    int plain = 1;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        plain &= solids->walls[side] != SELKIE_WALL_NO_SLIP;
    work.which = !plain || solids->obstacle_count > 0; /* otherwise every surface is free-slip */
    sample_walls(solids, grid, work.corner, work.which, &work.s);
    for (int o = 0; o < solids->obstacle_count; o++)
        if ((moving || !solids->obstacles[o].moves) && obstacle_near(&solids->obstacles[o], grid, work.corner)) {
            sample_obstacle(&solids->obstacles[o], o, grid, work.corner, &work.s);
            plain = work.walls_alone = 0;
        }
    snap(&work.s);
    solids->plain[slot] = (uint8_t)plain;
    solids->split[slot] = 0;
    memset(solids->barriers + base, 0, SK_BLOCK_CELLS);

    /* Kernels, then cells and faces. */
    solid_halves halves;
    measure_halves(work.s.distance, &halves);
    blur(&halves, -1, solids->blurred + base);
    for (int d = 0; solids->blur_faces && d < SELKIE_DIM; d++)
        blur(&halves, d, solids->blurred_face[d] + base);
    if (!work.walls_alone)
        find_barriers(solids, grid, &work);
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        compute_cell(solids, &work, c);
}

static uint64_t key_of_block(const sk_grid *grid, int block)
{
    const int32_t *at = grid->coordinates[block];
    return sk_block_key(at[0], at[1], at[2]);
}

selkie_code SK_DIM(sk_solids_reserve)(sk_solids *solids, size_t count, selkie_error *error)
{
    if (count <= solids->capacity)
        return SELKIE_OK;
    size_t before = solids->capacity, capacity = before, element = SK_BLOCK_CELLS * sizeof(float);
    float **const vectors[] = {solids->fraction, solids->blurred_face, solids->velocity};
    float **arrays[] = {&solids->blurred, &solids->distance};
    const int wanted[] = {1, solids->blur_faces, sk_solids_have_velocity(solids)};

    /* Grow the arrays of floats. */
    for (int v = 0; v < 3; v++)
        for (int d = 0; wanted[v] && d < SELKIE_DIM; d++) {
            capacity = before;
            SK_TRY(sk_reserve(solids->memory, (void **)&vectors[v][d], &capacity, count, element, "solids", error));
        }
    for (int a = 0; a < 2; a++) {
        capacity = before;
        SK_TRY(sk_reserve(solids->memory, (void **)arrays[a], &capacity, count, element, "solids", error));
    }

    /* Grow the arrays of bytes. The last two have one value per slot. */
    uint8_t **bytes[] = {&solids->no_slip, &solids->closed, &solids->barriers, &solids->plain, &solids->split};
    for (int a = 0; a < 5; a++) {
        size_t got = before;
        SK_TRY(sk_reserve(solids->memory, (void **)bytes[a], &got, count, a > 2 ? 1 : SK_BLOCK_CELLS, "solids", error));
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
            solids->closed[c] = 0;
            solids->barriers[c] = 0;
        }
        solids->plain[0] = 1;
        solids->split[0] = 0;
    }
    solids->capacity = capacity;
    return SELKIE_OK;
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
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int b = 0; b < grid->block_count; b++) {
        double corner[3];
        block_corner(grid, grid->coordinates[b], corner);
        solids->clearance[b] = b ? clearance_of(solids, grid, corner) : 0.0f;
    }

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
    for (int32_t w = 0; w < fresh; w++)
        compute_block(solids, grid, solids->work[w], (size_t)solids->block_slot[solids->work[w]], 0);
    if (sk_solids_have_velocity(solids))
        for (size_t slot = solids->static_count; slot < solids->slot_count; slot++)
            for (int d = 0; d < SELKIE_DIM; d++)
                memset(solids->velocity[d] + slot * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    solids->static_count = solids->slot_count;

    /* Blocks near a moving obstacle are computed in each step. */
    int32_t touched = 0;
    for (int b = 1; solids->moving_count && b < grid->block_count; b++) {
        double corner[3];
        block_corner(grid, grid->coordinates[b], corner);
        for (int o = 0; o < solids->obstacle_count; o++)
            if (solids->obstacles[o].moves && obstacle_near(&solids->obstacles[o], grid, corner)) {
                solids->work[touched++] = b;
                solids->block_slot[b] = (int32_t)solids->slot_count++;
                break;
            }
    }
    SK_TRY(SK_DIM(sk_solids_reserve)(solids, solids->slot_count, error));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int32_t w = 0; w < touched; w++)
        compute_block(solids, grid, solids->work[w], (size_t)solids->block_slot[solids->work[w]], 1);
    return SK_DIM(sk_solids_impose)(solids, grid, error);
}

/* Rigid bodies on one block, from the values of the static solids there.
 *
 * A body changes the cells within one cell of its bounds, and their distances within a few cells. Only those are
 * computed: the distances at the half cells of the bounds, the shares that follow, and the distances of the centres
 * around them. The block must have no obstacle near it but bodies, and none of them may be thinner than the samples
 * resolve (grid/barriers.h).
 */
#include "grid/solid_bodies.h"

#include "grid/solid_samples.h"

/* Cells beyond the bounds of a body in which the distance is exact; farther it is that to the bounds, which is less. */
#define EXACT_CELLS 2.5

/* A block while bodies are added to it. */
typedef struct body_work {
    double corner[3];
    size_t slot;
    block_range cells;                            /* of all bodies together */
    float distance[NODES_Z * SLICE];              /* cells  of the walls, then of one body */
    solid_halves solid;                           /* solid part of the half cells so far */
    solid_halves alone;                           /* of one body */
    float outside[SELKIE_DIM][SK_BLOCK_CELLS];    /* part of the face's kernel outside of walls */
    float room[SELKIE_DIM][SK_BLOCK_CELLS];       /* part of it without bodies, over `outside` */
    float solid_flux[SELKIE_DIM][SK_BLOCK_CELLS]; /* m/s  of the closed part */
} body_work;

/* --- ranges --- */

/* The half cells of the block, and of the cell around it, that the bounds of a body touch. */
static block_range halves_of(const sk_obstacle *body, const double corner[3], double h)
{
    block_range range = {{0, 0, 0}, {1, 1, 1}};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double first = floor((body->low[d] - corner[d]) / h * 2.0 + 2.0 - 1e-3),
                     last = ceil((body->high[d] - corner[d]) / h * 2.0 + 2.0 + 1e-3);
        range.low[d] = first > 0.0 ? first < HALVES ? (int)first : HALVES : 0;
        range.high[d] = last < HALVES ? last > range.low[d] ? (int)last : range.low[d] : HALVES;
    }
    return range;
}

/* The cells whose kernels, or those of their lower faces, reach a range of half cells. */
static block_range cells_of(const block_range *halves)
{
    block_range range = {{0, 0, 0}, {1, 1, 1}};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int first = halves->low[d] - 4, last = (halves->high[d] - 1) / 2 + 1;
        range.low[d] = first > 0 ? (first + 1) / 2 : 0;
        range.high[d] = last < SK_BLOCK_N ? last : SK_BLOCK_N;
        if (halves->low[d] >= halves->high[d] || range.high[d] < range.low[d])
            range.high[d] = range.low[d];
    }
    return range;
}

/* The half cells that the kernels of a range of cells reach. */
static block_range reach_of(const block_range *cells)
{
    block_range range = {{0, 0, 0}, {1, 1, 1}};
    for (int d = 0; d < SELKIE_DIM; d++) {
        range.low[d] = 2 * cells->low[d];
        range.high[d] = 2 * cells->high[d] + 3 < HALVES ? 2 * cells->high[d] + 3 : HALVES;
    }
    return range;
}

static int is_empty(const block_range *range)
{
    int empty = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        empty |= range->low[d] >= range->high[d];
    return empty;
}

void SK_DIM(sk_solids_range_of_body)(const sk_solids *solids, const sk_grid *grid, sk_body_piece *piece)
{
    double corner[3];
    block_corner(grid, grid->coordinates[piece->block], corner);
    const block_range halves = halves_of(&solids->obstacles[solids->obstacle_count - solids->body_count + piece->body],
                                         corner, solids->cell_size),
                      cells = cells_of(&halves);
    for (int d = 0; d < 3; d++) {
        piece->low[d] = (uint8_t)cells.low[d];
        piece->high[d] = (uint8_t)cells.high[d];
    }
}

static block_range range_of_piece(const sk_body_piece *piece)
{
    block_range range;
    for (int d = 0; d < 3; d++) {
        range.low[d] = piece->low[d];
        range.high[d] = piece->high[d];
    }
    return range;
}

/* --- distances --- */

/* Distances (cells) to a body at points along x, `step` cells apart. */
static void sample_row(const sk_obstacle *body, double h, const double first[3], double step, int count,
                       float distance[])
{
    double points[3 * NODES] = {0.0}, found[NODES];
    for (int i = 0; i < count; i++) {
        points[3 * i] = first[0] + step * i * h;
        points[3 * i + 1] = first[1];
        points[3 * i + 2] = first[2];
    }
    sk_shape_distances(body->shape, body->placed, (size_t)count, points, found);
    for (int i = 0; i < count; i++) {
        const float value = (float)(found[i] / h);
        distance[i] = fabsf(value) < 1e-4f ? 0.0f : value; /* as the other samples: rounding must not open a face */
    }
}

/* Samples the corners of a range of half cells. */
static void sample_halves(const sk_obstacle *body, double h, const block_range *halves, body_work *work)
{
    for (int k = halves->low[2]; k <= (SELKIE_DIM == 3 ? halves->high[2] : 0); k++)
        for (int j = halves->low[1]; j <= halves->high[1]; j++) {
            const double first[3] = {work->corner[0] + (0.5 * halves->low[0] - 1.0) * h,
                                     work->corner[1] + (0.5 * j - 1.0) * h,
                                     SELKIE_DIM == 3 ? work->corner[2] + (0.5 * k - 1.0) * h : 0.0};
            sample_row(body, h, first, 0.5, halves->high[0] - halves->low[0] + 1,
                       work->distance + halves->low[0] + NODES * (j + NODES * k));
        }
}

/* Cells of a row that are nearer to the body than to what was nearest so far. */
static void come_nearer(sk_solids *solids, const sk_obstacle *body, size_t row, const float distance[SK_BLOCK_N])
{
    const int rough = body->surface == SELKIE_WALL_NO_SLIP;
    const double half = 0.5 * solids->cell_size;
    const float grip = rough ? (float)(half / (half + body->slip_length)) : 0.0f;
    const uint8_t no_slip = (uint8_t)(rough && !(body->slip_length > 0.0));
    int nearer[SK_BLOCK_N], any = 0;
    for (int i = 0; i < SK_BLOCK_N; i++) {
        float *to = &solids->distance[row + (size_t)i];
        nearer[i] = distance[i] < *to;
        any |= nearer[i];
        *to = nearer[i] ? distance[i] : *to;
    }
    for (int i = 0; any && i < SK_BLOCK_N; i++)
        solids->no_slip[row + (size_t)i] = nearer[i] ? no_slip : solids->no_slip[row + (size_t)i];
    for (int i = 0; any && solids->has_grip && i < SK_BLOCK_N; i++)
        solids->grip[row + (size_t)i] = nearer[i] ? grip : solids->grip[row + (size_t)i];
    for (int i = 0; any && solids->has_friction && i < SK_BLOCK_N; i++)
        solids->friction[row + (size_t)i] = nearer[i] ? 0.0f : solids->friction[row + (size_t)i];
}

/* Distance of x to an interval; written out, since compilers call fmax as a function. */
static double beyond(double low, double high, double x)
{
    const double below = low - x, above = x - high, out = below > above ? below : above;
    return out > 0.0 ? out : 0.0;
}

/* How far the centres of cells lie beyond the bounds of a body along each axis, squared. */
typedef struct beyond_bounds {
    double along2[SELKIE_DIM][SK_BLOCK_N]; /* m2 */
} beyond_bounds;

static void find_beyond(const sk_solids *solids, const sk_obstacle *body, const body_work *work, beyond_bounds *to)
{
    const double h = solids->cell_size;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = 0; i < SK_BLOCK_N; i++) {
            const double out = beyond(body->low[d], body->high[d], work->corner[d] + (i + 0.5) * h);
            to->along2[d][i] = out * out;
        }
}

/* Distances of the centres of a row of cells, and the surface nearest to each. Far cells take the distance to the
 * bounds. */
static void find_row_distances(sk_solids *solids, const sk_obstacle *body, const body_work *work,
                               const beyond_bounds *bounds, int j, int k)
{
    const double h = solids->cell_size, far2 = EXACT_CELLS * h * (EXACT_CELLS * h), scale = 1.0 / (h * h),
                 *along2 = bounds->along2[0],
                 across2 = bounds->along2[1][j] + (SELKIE_DIM == 3 ? bounds->along2[SELKIE_DIM - 1][k] : 0.0);
    const size_t row = work->slot * SK_BLOCK_CELLS + (size_t)(SK_BLOCK_N * (j + SK_BLOCK_N * k));
    float distance[SK_BLOCK_N];
    for (int i = 0; i < SK_BLOCK_N; i++)
        distance[i] = sqrtf((float)(scale * (across2 + along2[i])));

    /* The bounds are a box, so that the others follow each other. */
    int exact[2] = {SK_BLOCK_N, 0};
    for (int i = 0; across2 <= far2 && i < SK_BLOCK_N; i++)
        if (!(across2 + along2[i] > far2)) {
            exact[0] = i < exact[0] ? i : exact[0];
            exact[1] = i + 1;
        }
    if (exact[0] < exact[1]) {
        const double first[3] = {work->corner[0] + (exact[0] + 0.5) * h, work->corner[1] + (j + 0.5) * h,
                                 SELKIE_DIM == 3 ? work->corner[2] + (k + 0.5) * h : 0.0};
        sample_row(body, h, first, 1.0, exact[1] - exact[0], distance + exact[0]);
    }
    come_nearer(solids, body, row, distance);
}

/* --- shares --- */

/* Takes the share of a body from a face, and adds its flux. */
static void take_share(sk_solids *solids, const sk_obstacle *body, body_work *work, int c, int d, float *share)
{
    float phi = *share / fmaxf(work->outside[d][c], 1e-3f), *room = &work->room[d][c];
    phi = *room - phi < 1e-3f ? *room : phi < 1e-5f ? 0.0f : phi; /* no slivers */
    *room -= phi;
    *share = phi * solids->fraction[d][work->slot * SK_BLOCK_CELLS + (size_t)c];
    if (!(*share > 0.0f))
        return;
    double x[3], velocity[3];
    centre_of_face(work->corner, solids->cell_size, c, d, x);
    sk_pose_velocity(&body->pose, x, velocity);
    work->solid_flux[d][c] += *share * (float)velocity[d];
}

/* Solid part of the half cells: of one body, as far as others leave room for it. */
static void measure_body(const block_range *halves, const block_range *cells, body_work *work)
{
    const block_range reach = reach_of(cells);
    for (int k = reach.low[2]; k < reach.high[2]; k++)
        for (int j = reach.low[1]; j < reach.high[1]; j++)
            memset(work->alone.part[k][j], 0, sizeof work->alone.part[k][j]); /* whole rows, for blur() */
    measure_halves(work->distance, halves, &work->alone);
    for (int k = halves->low[2]; k < halves->high[2]; k++)
        for (int j = halves->low[1]; j < halves->high[1]; j++)
            for (int i = halves->low[0]; i < halves->high[0]; i++) {
                float *part = &work->alone.part[k][j][i], *solid = &work->solid.part[k][j][i];
                *part = *part < 1.0f - *solid ? *part : 1.0f - *solid;
                *solid += *part;
            }
}

static void add_piece(sk_solids *solids, uint32_t number, body_work *work)
{
    const sk_body_piece *piece = &solids->pieces[number];
    const sk_obstacle *body = &solids->obstacles[solids->obstacle_count - solids->body_count + piece->body];
    const block_range cells = range_of_piece(piece), halves = halves_of(body, work->corner, solids->cell_size);
    beyond_bounds bounds;
    find_beyond(solids, body, work, &bounds);
    for (int k = 0; k < SK_BLOCK_NZ; k++)
        for (int j = 0; j < SK_BLOCK_N; j++)
            find_row_distances(solids, body, work, &bounds, j, k);
    if (is_empty(&cells))
        return;
    sample_halves(body, solids->cell_size, &halves, work);
    measure_body(&halves, &cells, work);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *share = solids->piece_share[d] + (size_t)piece->share * SK_BLOCK_CELLS;
        blur(&work->alone, d, &cells, share);
        for (int k = cells.low[2]; k < cells.high[2]; k++)
            for (int j = cells.low[1]; j < cells.high[1]; j++)
                for (int i = cells.low[0]; i < cells.high[0]; i++) {
                    const int c = i + SK_BLOCK_N * (j + SK_BLOCK_N * k);
                    take_share(solids, body, work, c, d, share + c);
                }
    }
}

/* --- the block --- */

/* The cells of all pieces of the block, and its walls in them. Returns whether there are any. */
static int begin_block(const sk_solids *solids, const sk_grid *grid, int block, int has_walls, body_work *work)
{
    work->cells = (block_range){{SK_BLOCK_N, SK_BLOCK_N, SK_BLOCK_NZ}, {0, 0, 0}};
    for (uint32_t n = solids->piece_first[block]; n < solids->piece_first[block + 1]; n++) {
        const block_range cells = range_of_piece(&solids->pieces[n]);
        for (int d = 0; !is_empty(&cells) && d < 3; d++) {
            work->cells.low[d] = cells.low[d] < work->cells.low[d] ? cells.low[d] : work->cells.low[d];
            work->cells.high[d] = cells.high[d] > work->cells.high[d] ? cells.high[d] : work->cells.high[d];
        }
    }
    if (is_empty(&work->cells))
        return 0;

    /* Part of the kernels that walls take. */
    if (has_walls) {
        samples walls;
        sample_walls(solids, grid, work->corner, 0, &walls);
        snap(&walls);
        block_range reach = reach_of(&work->cells);
        reach.low[0] = 0; /* whole rows, for blur() */
        reach.high[0] = HALVES;
        measure_halves(walls.distance, &reach, &work->solid);
    } else {
        memset(&work->solid, 0, sizeof work->solid);
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        memset(work->outside[d], 0, sizeof work->outside[d]);
        if (has_walls)
            blur(&work->solid, d, &work->cells, work->outside[d]);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            work->outside[d][c] = 1.0f - work->outside[d][c];
            work->room[d][c] = 1.0f;
            work->solid_flux[d][c] = 0.0f;
        }
    }
    return 1;
}

void SK_DIM(sk_solids_add_bodies)(sk_solids *solids, const sk_grid *grid, int block, size_t static_slot)
{
    body_work work;
    const size_t slot = (size_t)solids->block_slot[block], base = slot * SK_BLOCK_CELLS;
    work.slot = slot;
    block_corner(grid, grid->coordinates[block], work.corner);
    SK_DIM(sk_solids_copy_slot)(solids, static_slot, slot);
    solids->plain[slot] = 0;
    solids->exact[slot] = 1; /* walls and convex shapes alone */
    const int any = begin_block(solids, grid, block, static_slot > 0, &work);
    for (uint32_t n = solids->piece_first[block]; n < solids->piece_first[block + 1]; n++)
        add_piece(solids, n, &work);
    if (!any)
        return;

    /* Kernels, and what bodies leave of the faces. Static solids do not move. */
    blur(&work.solid, -1, &work.cells, solids->blurred + base);
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (solids->blur_faces)
            blur(&work.solid, d, &work.cells, solids->blurred_face[d] + base);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            float *fraction = &solids->fraction[d][base + (size_t)c];
            *fraction *= work.room[d][c];
            solids->velocity[d][base + (size_t)c] =
                *fraction < 1.0f ? work.solid_flux[d][c] / (1.0f - *fraction) : 0.0f;
        }
    }
}

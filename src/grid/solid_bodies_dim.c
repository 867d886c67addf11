/* Rigid bodies on one block, from the values of the static solids there.
 *
 * A body changes the cells within one cell of its bounds, and their distances within a few cells. Only those are
 * computed: the distances at the half cells of the bounds, the shares that follow, and the distances of the centres
 * around them. The block must have no obstacle near it but bodies, and none of them may be thinner than the samples
 * resolve (grid/barriers.h).
 */
#include "grid/solid_bodies.h"

#include "geom/parts_kernels.h"
#include "grid/solid_samples.h"

/* Cells beyond the bounds of a body in which the distance is exact; farther it is that to the bounds, which is less. */
#define EXACT_CELLS 2.5

/* A block while bodies are added to it. */
typedef struct body_work {
    double corner[3];
    size_t slot;
    block_range cells;                            /* of all bodies together */
    float distance[NODES_Z * SLICE + 8];          /* cells  of one body; the last row may run over */
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

/* The first cells of the rows along x of a range. */
#define EACH_ROW_OF(cells, row)                                                                                        \
    for (int k_of_##row = (cells)->low[2]; k_of_##row < (cells)->high[2]; k_of_##row++)                                \
        for (int row = SK_BLOCK_N * ((cells)->low[1] + SK_BLOCK_N * k_of_##row),                                       \
                 end_of_##row = SK_BLOCK_N * ((cells)->high[1] + SK_BLOCK_N * k_of_##row);                             \
             row < end_of_##row; row += SK_BLOCK_N)

/* --- distances --- */

/* A ball in cells from the corner of a block: most bodies are balls, and their distances are vectors. */
typedef struct ball_place {
    int is_ball;
    float centre[3], radius;
} ball_place;

static ball_place place_of_ball(const sk_obstacle *body, const double corner[3], double h)
{
    sk_shape_part part;
    ball_place ball = {.is_ball = sk_shape_parts(body->shape, &part, 1) == 1 && part.kind == SK_PART_SPHERE};
    double centre[3];
    if (!ball.is_ball)
        return ball;
    memcpy(centre, part.center, sizeof centre);
    if (body->placed)
        sk_pose_to_world(body->placed, part.center, centre);
    for (int d = 0; d < SELKIE_DIM; d++)
        ball.centre[d] = (float)((centre[d] - corner[d]) / h);
    ball.radius = (float)(part.radius / h);
    return ball;
}

/* As the other samples: rounding must not open a face. */
static inline f8 snapped(f8 distance)
{
    return f8_select(f8_abs(distance) < 1e-4f, f8_splat(0.0f), distance);
}

/* Distances (cells) to a body at points along x, `step` cells apart. The first one lies `first` cells from the corner
 * of the block. Writes whole vectors. */
static void sample_row(const sk_obstacle *body, const body_work *work, const ball_place *ball, double h,
                       const float first[3], float step, int count, float *distance)
{
    static const f8 eight = {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f};
    if (ball->is_ball) {
        const float y = first[1] - ball->centre[1], z = SELKIE_DIM == 3 ? first[2] - ball->centre[2] : 0.0f,
                    across2 = y * y + z * z;
        for (int i = 0; i < count; i += 8) {
            const f8 x = (first[0] - ball->centre[0] + step * (float)i) + step * eight;
            f8_store(distance + i, snapped(f8_sqrt(x * x + across2) - ball->radius));
        }
        return;
    }
    double points[3 * (NODES + 7)] = {0.0}, found[NODES + 7];
    for (int i = 0; i < count; i++)
        for (int d = 0; d < SELKIE_DIM; d++)
            points[3 * i + d] = work->corner[d] + ((double)first[d] + (d == 0 ? (double)step * i : 0.0)) * h;
    sk_shape_distances(body->shape, body->placed, (size_t)count, points, found);
    for (int i = 0; i < count; i++) {
        const float value = (float)(found[i] / h);
        distance[i] = fabsf(value) < 1e-4f ? 0.0f : value;
    }
}

/* Samples the corners of a range of half cells. */
static void sample_halves(const sk_obstacle *body, double h, const ball_place *ball, const block_range *halves,
                          body_work *work)
{
    for (int k = halves->low[2]; k <= (SELKIE_DIM == 3 ? halves->high[2] : 0); k++)
        for (int j = halves->low[1]; j <= halves->high[1]; j++) {
            const float first[3] = {0.5f * (float)halves->low[0] - 1.0f, 0.5f * (float)j - 1.0f,
                                    0.5f * (float)k - 1.0f};
            sample_row(body, work, ball, h, first, 0.5f, halves->high[0] - halves->low[0] + 1,
                       work->distance + halves->low[0] + NODES * (j + NODES * k));
        }
}

/* What the surface of a body is like. */
typedef struct body_surface {
    float grip;
    uint8_t no_slip;
} body_surface;

static body_surface surface_of(const sk_solids *solids, const sk_obstacle *body)
{
    const int rough = body->surface == SELKIE_WALL_NO_SLIP;
    const double half = 0.5 * solids->cell_size;
    return (body_surface){rough ? (float)(half / (half + body->slip_length)) : 0.0f,
                          (uint8_t)(rough && !(body->slip_length > 0.0))};
}

/* Eight cells that are nearer to the body than to what was nearest so far. */
static void come_nearer(sk_solids *solids, const body_surface *surface, size_t first, f8 distance)
{
    const f8 before = f8_load(solids->distance + first);
    const i8 nearer = distance < before;
    if (!i8_any(nearer))
        return;
    const i8 sticks = i8_from_bytes(solids->no_slip + first);
    f8_store(solids->distance + first, f8_select(nearer, distance, before));
    i8_to_bytes(solids->no_slip + first, (nearer & surface->no_slip) | (~nearer & sticks));
    if (solids->has_grip)
        f8_store(solids->grip + first, f8_select(nearer, f8_splat(surface->grip), f8_load(solids->grip + first)));
    if (solids->has_friction)
        f8_store(solids->friction + first, f8_select(nearer, f8_splat(0.0f), f8_load(solids->friction + first)));
}

/* How far the centres of cells lie beyond the bounds of a body along each axis, squared. In double: cells at the limit
 * of the exact distances are on the same side of it as in other samples. */
typedef struct beyond_bounds {
    double along2[SELKIE_DIM][SK_BLOCK_N]; /* m2 */
} beyond_bounds;

static void find_beyond(const sk_solids *solids, const sk_obstacle *body, const body_work *work, beyond_bounds *to)
{
    const double h = solids->cell_size;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = 0; i < SK_BLOCK_N; i++) {
            /* Written out, since compilers call fmax as a function. */
            const double x = work->corner[d] + (i + 0.5) * h, below = body->low[d] - x, above = x - body->high[d],
                         out = below > above ? below : above;
            to->along2[d][i] = out > 0.0 ? out * out : 0.0;
        }
}

/* Distances of the centres of a row of cells, and the surface nearest to each. Far cells take the distance to the
 * bounds. */
static void find_row_distances(sk_solids *solids, const sk_obstacle *body, const body_work *work,
                               const ball_place *ball, const body_surface *surface, const beyond_bounds *bounds, int j,
                               int k)
{
    const double h = solids->cell_size, far2 = EXACT_CELLS * h * (EXACT_CELLS * h), scale = 1.0 / (h * h),
                 across2 = bounds->along2[1][j] + (SELKIE_DIM == 3 ? bounds->along2[SELKIE_DIM - 1][k] : 0.0);
    const size_t row = work->slot * SK_BLOCK_CELLS + (size_t)(SK_BLOCK_N * (j + SK_BLOCK_N * k));
    for (int c = 0; c < SK_BLOCK_N; c += 8) {
        d8 apart2;
        memcpy(&apart2, bounds->along2[0] + c, sizeof apart2);
        apart2 += across2;
        const i8 exact = __builtin_convertvector(apart2 <= far2, i8);
        f8 distance = f8_sqrt(__builtin_convertvector(scale * apart2, f8));
        if (i8_any(exact)) {
            const float first[3] = {(float)c + 0.5f, (float)j + 0.5f, (float)k + 0.5f};
            float sampled[8];
            sample_row(body, work, ball, h, first, 1.0f, 8, sampled);
            distance = f8_select(exact, f8_load(sampled), distance);
        }
        come_nearer(solids, surface, row + (size_t)c, distance);
    }
}

/* --- shares --- */

/* Takes the shares of a body from a row of faces across axis d, and adds their flux. Cells beyond the piece stay as
 * they are. */
static void take_shares(const sk_solids *solids, const sk_obstacle *body, body_work *work, const block_range *cells,
                        int row, int d, float *share)
{
    static const i8 eight = {0, 1, 2, 3, 4, 5, 6, 7};
    const float *fraction = solids->fraction[d] + work->slot * SK_BLOCK_CELLS;
    const int e = (d + 1) % 3, f = (d + 2) % 3;
    const double *turning = body->pose.angular_velocity;
    double x[3];
    centre_of_face(work->corner, solids->cell_size, row, d, x);
    for (int i = 0; i < 3; i++)
        x[i] -= body->pose.center[i] + body->pose.translation[i];

    /* The velocity of the body is linear along the row. */
    const float start = (float)(body->pose.velocity[d] + turning[e] * x[f] - turning[f] * x[e]),
                slope = (float)(((f == 0 ? turning[e] : 0.0) - (e == 0 ? turning[f] : 0.0)) * solids->cell_size);
    for (int i = cells->low[0] & ~7; i < cells->high[0]; i += 8) {
        const int c = row + i;
        const i8 along = eight + i, own = (along >= cells->low[0]) & (along < cells->high[0]);
        const f8 raw = f8_load(share + c), room = f8_load(work->room[d] + c), zero = f8_splat(0.0f);
        if (!i8_any(own & (raw > 0.0f))) {
            f8_store(share + c, f8_select(own, zero, raw));
            continue;
        }
        f8 phi = raw / f8_max(f8_load(work->outside[d] + c), f8_splat(1e-3f));
        phi = f8_select(room - phi < SK_BODY_SLIVER, room, f8_select(phi < 1e-5f, zero, phi));
        phi = f8_select(own, phi, zero);
        const f8 taken = phi * f8_load(fraction + c), velocity = start + slope * f8_from_i8(along);
        f8_store(work->room[d] + c, room - phi);
        f8_store(share + c, f8_select(own, taken, raw));
        f8_store(work->solid_flux[d] + c, f8_load(work->solid_flux[d] + c) + taken * velocity);
    }
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
    const ball_place ball = place_of_ball(body, work->corner, solids->cell_size);
    const body_surface surface = surface_of(solids, body);
    beyond_bounds bounds;
    find_beyond(solids, body, work, &bounds);
    for (int k = 0; k < SK_BLOCK_NZ; k++)
        for (int j = 0; j < SK_BLOCK_N; j++)
            find_row_distances(solids, body, work, &ball, &surface, &bounds, j, k);
    if (is_empty(&cells))
        return;
    sample_halves(body, solids->cell_size, &ball, &halves, work);
    measure_body(&halves, &cells, work);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *share = solids->piece_share[d] + (size_t)piece->share * SK_BLOCK_CELLS;
        blur(&work->alone, d, &cells, share);
        for (int k = cells.low[2]; k < cells.high[2]; k++)
            for (int j = cells.low[1]; j < cells.high[1]; j++)
                take_shares(solids, body, work, &cells, SK_BLOCK_N * (j + SK_BLOCK_N * k), d, share);
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
        const block_range reach = reach_of(&work->cells);
        for (int k = reach.low[2]; k < reach.high[2]; k++)
            for (int j = reach.low[1]; j < reach.high[1]; j++)
                memset(work->solid.part[k][j], 0, sizeof work->solid.part[k][j]);
    }
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (has_walls)
            blur(&work->solid, d, &work->cells, work->outside[d]);
        EACH_ROW_OF(&work->cells, row)
        for (int c = row; c < row + SK_BLOCK_N; c++) {
            const int is_own = (c & SK_BLOCK_MASK) >= work->cells.low[0] && (c & SK_BLOCK_MASK) < work->cells.high[0];
            work->outside[d][c] = has_walls && is_own ? 1.0f - work->outside[d][c] : 1.0f;
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
    memset(solids->covered + base, 0, SK_BLOCK_CELLS);
    solids->exact[slot] = 1; /* walls and convex shapes alone */
    const int any = begin_block(solids, grid, block, static_slot > 0, &work);
    for (uint32_t n = solids->piece_first[block]; n < solids->piece_first[block + 1]; n++)
        add_piece(solids, n, &work);
    if (!any)
        return;

    /* Kernels, and what bodies leave of the faces. Static solids do not move. */
    blur(&work.solid, -1, &work.cells, solids->blurred + base);
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        solids->covered[base + (size_t)c] = (uint8_t)sk_solids_cover(
            solids->blurred[static_slot * SK_BLOCK_CELLS + (size_t)c], solids->blurred[base + (size_t)c]);
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (solids->blur_faces)
            blur(&work.solid, d, &work.cells, solids->blurred_face[d] + base);
        EACH_ROW_OF(&work.cells, row)
        for (int c = row; c < row + SK_BLOCK_N; c += 8) {
            float *fraction = solids->fraction[d] + base + c;
            const f8 before = f8_load(fraction), room = f8_load(work.room[d] + c);
            i8 holds = i8_from_bytes(solids->no_slip + base + c) != 0;
            if (solids->has_grip)
                holds |= f8_load(solids->grip + base + c) > 0.0f;
            const i8 sliver = (room == 0.0f) & (before > 0.0f) & ~holds;
            const f8 open = f8_select(sliver, f8_splat(-0.0f), before * room);
            f8_store(fraction, open);
            f8_store(solids->velocity[d] + base + c,
                     f8_select(open < 1.0f, f8_load(work.solid_flux[d] + c) / (1.0f - open), f8_splat(0.0f)));
        }
    }
}

/* --- changes of velocity --- */

/* Changes the velocity of a body on the faces of one piece. */
static void change_piece(sk_solids *solids, const sk_grid *grid, const sk_body_piece *piece,
                         const sk_velocity_change *by)
{
    typedef double d8_lanes __attribute__((vector_size(64)));
    const size_t base = (size_t)solids->block_slot[piece->block] * SK_BLOCK_CELLS;
    const i8 eight = {0, 1, 2, 3, 4, 5, 6, 7};
    double corner[3];
    block_corner(grid, grid->coordinates[piece->block], corner);
    const int first = piece->low[0] & ~7, last = piece->high[0];
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int k = piece->low[2]; k < piece->high[2]; k++)
            for (int j = piece->low[1]; j < piece->high[1]; j++) {
                const int row = SK_BLOCK_N * (j + SK_BLOCK_N * k), e = (d + 1) % 3, f = (d + 2) % 3;
                const float *shares = solids->piece_share[d] + (size_t)piece->share * SK_BLOCK_CELLS + row,
                            *fraction = solids->fraction[d] + base + row;
                float *velocity = solids->velocity[d] + base + row;
                for (int i = first; i < last; i += 8) {
                    const i8 cells = eight + i;
                    const f8 share = f8_load(shares + i), own = f8_load(velocity + i);
                    /* Cells beyond the piece have no shares. */
                    const i8 moved = (cells >= piece->low[0]) & (cells < last) & (share > 0.0f);
                    if (!i8_any(moved))
                        continue;

                    /* The change is linear along the row. */
                    double x[3];
                    centre_of_face(corner, solids->cell_size, row, d, x);
                    const double start = by->velocity[d] + by->angular_velocity[e] * (x[f] - by->centre[f]) -
                                         by->angular_velocity[f] * (x[e] - by->centre[e]),
                                 slope = ((f == 0 ? by->angular_velocity[e] : 0.0) -
                                          (e == 0 ? by->angular_velocity[f] : 0.0)) *
                                         solids->cell_size;
                    const f8 change =
                        __builtin_convertvector(start + slope * __builtin_convertvector(cells, d8_lanes), f8);
                    f8_store(velocity + i,
                             f8_select(moved, own + share / (1.0f - f8_load(fraction + i)) * change, own));
                }
            }
}

void SK_DIM(sk_solids_change_velocity)(sk_solids *solids, const sk_grid *grid, const sk_velocity_change *changes,
                                       int threads)
{
    solids->settled = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++)
        for (uint32_t n = solids->piece_first[b]; n < solids->piece_first[b + 1]; n++)
            change_piece(solids, grid, &solids->pieces[n], &changes[solids->pieces[n].body]);
}

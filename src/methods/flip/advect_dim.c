/* Advection: each particle follows the grid's velocity by Runge-Kutta steps.
 *
 * No stage may cross more than a cell. Otherwise, at a large step, the midpoint of a falling drop could lie in the
 * still pool below it, and the drop would hover. A fast particle therefore takes sub-steps, with a collision test after
 * each: grid/sweep.h. Beyond the extrapolation band the grid's velocity is unknown, and a particle keeps its own
 * velocity.
 *
 * The velocities of a block with a halo of four cells are copied into one dense tile. A batch of particles fills the
 * SIMD lanes, each lane with its own sub-steps. A lane that leaves the tile or meets an unknown node uses the plain
 * kernel. The choice depends on the particle alone, not on its batch.
 */
#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/deal.h"
#include "grid/gather_lanes.h"
#include "grid/grid_kernels.h"
#include "particles/leavers.h"
#include "grid/runs.h"
#include "grid/sampler_kernels.h"
#include "grid/sweep_lanes.h"
#include "grid/tile.h"
#include "methods/flip/advect_frame.h"
#include "methods/flip/flip.h"
#include "methods/flip/reflection_kernels.h"
#include "methods/flip/transfer_options.h"

enum { HALO = SK_ROW_LEAD, WIDTH = SK_TILE_N(HALO) }; /* row stride as in a row tile */

typedef struct local_piece {
    const advect_frame *frame;
    sk_velocity_piece piece;
    float origin[3]; /* grid cells at the tile's corner */
    _Alignas(64) float values[SELKIE_DIM][SK_TILE_VALUES(HALO) + SK_ROW_BEYOND];
} local_piece;

static void load_piece(const advect_frame *frame, int block, local_piece *local)
{
    const sk_grid *grid = &frame->step->grid;
    local->frame = frame;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, HALO, local->values[d]);
        local->piece.component[d] = local->values[d];
    }
    local->piece.pitch = WIDTH;
    local->piece.dimension = SELKIE_DIM;
    for (int d = 0; d < 3; d++)
        local->origin[d] = d < SELKIE_DIM ? (float)(grid->coordinates[block][d] * SK_BLOCK_N - HALO) : 0.0f;
}

/* Outside the block's tile, nodes are fetched one by one. */
static __attribute__((noinline)) void velocity_far(const advect_frame *frame, const float coordinate[3],
                                                   const float own[3], float velocity[3])
{
    sk_velocity_at(&frame->velocity, SK_FAR_TILE, coordinate, own, velocity);
}

/* Velocity at a position (m), in m/s. */
static inline __attribute__((always_inline)) void velocity_at(const advect_frame *frame, const local_piece *local,
                                                              const float x[3], const float own[3], float velocity[3])
{
    float coordinate[3] = {0, 0, 0}, in_piece[3] = {0, 0, 0};
    int covered = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        coordinate[d] = sk_cell_coordinate(x[d], frame->corner[d], frame->inverse);
        in_piece[d] = coordinate[d] - local->origin[d];
        covered &= in_piece[d] >= 0.5f && in_piece[d] < (float)(WIDTH - 1);
    }
    if (covered) {
        sk_sample_velocity(&local->piece, in_piece, SELKIE_DIM, own, velocity);
        return;
    }
    velocity_far(frame, coordinate, own, velocity);
}

/* Component d at places in the tile; NaN beside an unknown node. The vectorised form of sk_sample_component. */
SK_VECTOR fw sample_lanes(const local_piece *local, const int d, const fw place[3])
{
    fw weight[3];
    iw base = iw_splat(0);
    int step = 1;
    for (int e = 0; e < SELKIE_DIM; e++) {
        fw x = e == d ? place[e] : place[e] - 0.5f;
        iw i = iw_from_fw(x);
        weight[e] = x - fw_from_iw(i);
        base += i * step;
        step *= WIDTH;
    }
    fw plane[2];
    for (int k = 0; k < (SELKIE_DIM == 3 ? 2 : 1); k++) {
        fw a, b, c, e;
        fw_gather_pairs(local->values[d] + k * WIDTH * WIDTH, base, &a, &b);
        fw_gather_pairs(local->values[d] + k * WIDTH * WIDTH + WIDTH, base, &c, &e);
        a += weight[0] * (b - a);
        c += weight[0] * (e - c);
        plane[k] = a + weight[1] * (c - a);
    }
    return SELKIE_DIM == 3 ? plane[0] + weight[2] * (plane[SELKIE_DIM - 2] - plane[0]) : plane[0];
}

#if SELKIE_DIM == 3 && SK_WIDE == 16
/* Nodes before the lanes along an axis across x: either `first` or the next one. */
typedef struct node_pair {
    int first;
    iw next; /* all ones: the next one */
    fw weight;
} node_pair;

/* Returns whether all lanes share such a pair, `shift` cells before their places. The node after the next one is one of
 * the tile's too. */
SK_VECTOR int share_nodes(fw place, const float shift, node_pair *pair)
{
    const fw x = place - shift;
    const iw i = iw_from_fw(x);
    int first = i[0] - iw_any(i < i[0]);
    first = first < WIDTH - 3 ? first : WIDTH - 3;
    pair->first = first;
    pair->next = i != first;
    pair->weight = x - fw_from_iw(i);
    return !iw_any(((i - first) & ~1) != 0);
}

/* sample_lanes with its bits, by permutations of whole rows instead of gathers, which take several times as long. */
SK_VECTOR fw sample_together(const local_piece *local, const int d, fw place, const node_pair *y, const node_pair *z)
{
    const fw x = d == 0 ? place : place - 0.5f;
    const iw column = iw_from_fw(x);
    const fw way = x - fw_from_iw(column);
    fw plane[3];
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++) {
        const float *row = local->values[d] + WIDTH * (y->first + WIDTH * (z->first + k));
        fw a, b, c, e;
        fw_look_up_either_pairs(row, row + WIDTH, WIDTH, column, y->next, &a, &b);
        fw_look_up_either_pairs(row + WIDTH, row + 2 * WIDTH, WIDTH, column, y->next, &c, &e);
        a += way * (b - a);
        c += way * (e - c);
        plane[k] = a + y->weight * (c - a);
    }
    const fw lower = fw_select(z->next, plane[1], plane[0]), upper = fw_select(z->next, plane[2], plane[1]);
    return lower + z->weight * (upper - lower);
}

/* All components at once if the lanes are near each other, as those of a row of cells mostly still are after a
 * sub-step. Returns 0 if they are not. */
SK_VECTOR int sample_all_together(const local_piece *local, const fw place[3], fw velocity[3])
{
    node_pair face[3], centre[3];
    for (int d = 1; d < 3; d++)
        if (!share_nodes(place[d], 0.0f, &face[d]) || !share_nodes(place[d], 0.5f, &centre[d]))
            return 0;
    velocity[0] = sample_together(local, 0, place[0], &centre[1], &centre[2]);
    velocity[1] = sample_together(local, 1, place[0], &face[1], &centre[2]);
    velocity[2] = sample_together(local, 2, place[0], &centre[1], &face[2]);
    return 1;
}
#else
SK_VECTOR int sample_all_together(const local_piece *local, const fw place[3], fw velocity[3])
{
    (void)local, (void)place, (void)velocity;
    return 0;
}
#endif

/* Velocities of particles at x (m), in m/s. `own` replaces unknown velocities and the velocities of flying particles.
 */
SK_VECTOR void velocities_at(const advect_frame *frame, const local_piece *local, const fw x[3], const fw own[3],
                             iw flying, fw velocity[3])
{
    fw place[3];
    iw covered = iw_splat(-1);
    for (int d = 0; d < SELKIE_DIM; d++) {
        place[d] = (x[d] - frame->corner[d]) * frame->inverse - local->origin[d];
        iw here = (place[d] >= 0.5f) & (place[d] < (float)(WIDTH - 1));
        covered &= here;
        place[d] = fw_select(here, place[d], fw_splat(1.0f));
    }
    iw known = covered;
    fw sampled[3];
    if (!sample_all_together(local, place, sampled))
        for (int d = 0; d < SELKIE_DIM; d++)
            sampled[d] = sample_lanes(local, d, place);
    for (int d = 0; d < SELKIE_DIM; d++) {
        velocity[d] = fw_select(flying, own[d], sampled[d]);
        known &= velocity[d] == velocity[d];
    }
    known |= flying;
    if (!iw_any(~known))
        return;
    for (int l = 0; l < SK_WIDE; l++)
        if (!known[l]) {
            float at[3] = {0, 0, 0}, mine[3] = {0, 0, 0}, v[3] = {0, 0, 0};
            for (int d = 0; d < SELKIE_DIM; d++)
                at[d] = x[d][l], mine[d] = own[d][l];
            velocity_at(frame, local, at, mine, v);
            for (int d = 0; d < SELKIE_DIM; d++)
                velocity[d][l] = v[d];
        }
}

/* Lanes with no unknown component: a sum with NaN is NaN. */
SK_VECTOR iw are_known(const fw velocity[3])
{
    fw sum = velocity[0] + velocity[1];
    sum = SELKIE_DIM == 3 ? sum + velocity[SELKIE_DIM - 1] : sum;
    return sum == sum;
}

/* Replaces unknown velocities (NaN) at x by samples of single nodes; flying particles keep their own velocity. Works
 * lane by lane, so a particle's path does not depend on its batch. */
SK_VECTOR void fill_unknown(const advect_frame *frame, const local_piece *local, const fw x[3], const fw own[3],
                            iw flying, fw velocity[3])
{
    const iw settled = are_known(velocity) & ~flying;
    if (!iw_any(~settled))
        return;
    fw sampled[3];
    velocities_at(frame, local, x, own, flying, sampled);
    for (int d = 0; d < SELKIE_DIM; d++)
        velocity[d] = fw_select(settled, velocity[d], sampled[d]);
}

/* The velocity that a batch starts with. Unknown values are replaced by samples of single nodes. */
SK_VECTOR void fill_start(const advect_frame *frame, const local_piece *local, const fw x[3], const fw own[3],
                          iw flying, fw velocity[3])
{
    if (!frame->straight) {
        fill_unknown(frame, local, x, own, flying, velocity);
        return;
    }
    for (int d = 0; d < SELKIE_DIM && iw_any(flying); d++)
        velocity[d] = fw_select(flying, own[d], velocity[d]);
    const iw known = are_known(velocity);
    for (int l = 0; l < SK_WIDE && iw_any(~known); l++)
        if (!known[l]) {
            float coordinate[3] = {0, 0, 0}, mine[3] = {0, 0, 0}, v[3] = {0, 0, 0};
            for (int d = 0; d < SELKIE_DIM; d++) {
                coordinate[d] = sk_cell_coordinate(x[d][l], frame->corner[d], frame->inverse);
                mine[d] = own[d][l];
            }
            sk_velocity_at(&frame->end, SK_NEAR_TILE, coordinate, mine, v);
            for (int d = 0; d < SELKIE_DIM; d++)
                velocity[d][l] = v[d];
        }
}

/* The row of cells along x that contains a batch. */
typedef struct home_row {
    int first;       /* node of the tile where the row one cell lower along y and z begins */
    float across[3]; /* coordinates in the tile along y and z, cells */
} home_row;

/* Interpolation weights along y and z for places at most half a cell outside a row of cells. */
typedef struct row_weights {
    fw face[3][4], centre[3][3];
} row_weights;

static inline __attribute__((always_inline)) void weights_near_row(const fw place[3], const home_row *home,
                                                                   row_weights *w)
{
    for (int d = 1; d < SELKIE_DIM; d++) {
        const fw zero = fw_splat(0.0f), way = place[d] - home->across[d];
        w->face[d][0] = fw_max(-way, zero);
        w->face[d][3] = fw_max(way - 1.0f, zero);
        w->face[d][2] = fw_max(fw_min(way, 2.0f - way), zero);
        w->face[d][1] = 1.0f - (w->face[d][0] + w->face[d][2] + w->face[d][3]);
        w->centre[d][0] = fw_max(0.5f - way, zero);
        w->centre[d][2] = fw_max(way - 0.5f, zero);
        w->centre[d][1] = 1.0f - (w->centre[d][0] + w->centre[d][2]);
    }
}

/* Component d near a row of cells. Unlike sample_lanes, all lanes share the rows of nodes, and each lane looks up two
 * nodes in each row. NaN if any of these nodes is unknown, even at weight 0. */
static inline __attribute__((always_inline)) fw
sample_near_row(const local_piece *local, const int d, const home_row *home, const fw place[3], const row_weights *w)
{
    const int ny = d == 1 ? 4 : 3, nz = SELKIE_DIM == 2 ? 1 : d == 2 ? 4 : 3;
    const fw x = d == 0 ? place[0] : place[0] - 0.5f;
    const iw column = iw_from_fw(x);
    const fw way = x - fw_from_iw(column);
    const float *rows = local->values[d] + home->first;
    fw total = fw_splat(0.0f);
#pragma GCC unroll 4
    for (int k = 0; k < nz; k++) {
        fw plane = fw_splat(0.0f);
#pragma GCC unroll 4
        for (int j = 0; j < ny; j++) {
            const float *row = rows + WIDTH * (j + WIDTH * k);
            fw value, next;
            fw_look_up_pairs(row, WIDTH, column, &value, &next);
            value += way * (next - value);
            plane += (d == 1 ? w->face[1][j] : w->centre[1][j]) * value;
        }
        total += SELKIE_DIM == 2 ? plane : (d == 2 ? w->face[SELKIE_DIM - 1][k] : w->centre[SELKIE_DIM - 1][k]) * plane;
    }
    return total;
}

/* velocities_at for places at most half a cell outside a row of cells. */
SK_VECTOR void velocities_near_row(const advect_frame *frame, const local_piece *local, const home_row *home,
                                   const fw x[3], const fw own[3], iw flying, fw velocity[3])
{
    fw place[3];
    for (int d = 0; d < SELKIE_DIM; d++)
        place[d] = (x[d] - frame->corner[d]) * frame->inverse - local->origin[d];
    row_weights w;
    weights_near_row(place, home, &w);
    velocity[0] = sample_near_row(local, 0, home, place, &w);
    velocity[1] = sample_near_row(local, 1, home, place, &w);
#if SELKIE_DIM == 3
    velocity[2] = sample_near_row(local, 2, home, place, &w);
#endif
    fill_unknown(frame, local, x, own, flying, velocity);
}

SK_VECTOR fw largest(const fw velocity[3])
{
    fw most = fw_max(fw_abs(velocity[0]), fw_abs(velocity[1]));
    return SELKIE_DIM == 3 ? fw_max(most, fw_abs(velocity[SELKIE_DIM - 1])) : most;
}

/* One Runge-Kutta step of at most h (s) for a batch. The step is shortened if the second stage is so much faster than
 * the first that it would cross more than a cell. Returns the length taken. `home` is the row of cells of the batch,
 * NULL if unknown. */
SK_VECTOR fw runge_kutta(const local_piece *local, const home_row *home, fw x[3], const fw own[3], iw flying,
                         const fw k1[3], fw h)
{
    const advect_frame *frame = local->frame;
    fw stage[3], k2[3], k3[3];
    const float way = frame->trapezoidal ? 1.0f : 0.5f;
    for (int d = 0; d < SELKIE_DIM; d++)
        stage[d] = x[d] + way * h * k1[d];

    /* Second stage. */
    if (home && !frame->trapezoidal)
        velocities_near_row(frame, local, home, stage, own, flying, k2);
    else
        velocities_at(frame, local, stage, own, flying, k2);
    for (int d = 0; frame->trapezoidal && d < SELKIE_DIM; d++)
        k2[d] = 0.5f * (k1[d] + k2[d]);

    /* Shorten the step so that it crosses at most one cell. */
    fw cells = largest(k2) * frame->inverse * h;
    if (iw_any(cells > 1.0f))
        h = fw_select(cells > 1.0f, h / cells, h);

    if (frame->order == 3) {
        /* Ralston's third order scheme. */
        for (int d = 0; d < SELKIE_DIM; d++)
            stage[d] = x[d] + 0.75f * h * k2[d];
        velocities_at(frame, local, stage, own, flying, k3);
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] += h * ((2.0f / 9.0f) * k1[d] + (3.0f / 9.0f) * k2[d] + (4.0f / 9.0f) * k3[d]);
    } else {
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] += h * k2[d];
    }
    return h;
}

/* Lanes of a batch after the move. */
typedef struct batch_ends {
    iw gone, touched; /* left through an open side; touched an obstacle */
    sk_touch touches[SK_WIDE];
} batch_ends;

/* A batch of particles of a block. */
typedef struct batch_start {
    const home_row *home; /* its row of cells, NULL = unknown */
    int row;              /* a cell of that row, -1 = unknown */
    iw cells;             /* cells of the block, -1 = unknown */
    uint32_t first;       /* first particle */
    int lanes;            /* particles */
} batch_start;

/* A part of the step for each lane. */
typedef struct path_part {
    int block;           /* at the beginning of the step */
    fw from[3];          /* m  places at its beginning */
    fw remaining, after; /* s  of the step, before it and after it */
    fw travelled;        /* cells, from the beginning of the step to its end, or more */
} path_part;

/* Keeps positions within closed walls. Marks lanes that left through an open side. */
SK_VECTOR void confine(const advect_frame *frame, fw x[3], iw *gone)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (frame->open[2 * d])
            *gone |= x[d] < (float)frame->step->grid.low[d];
        if (frame->open[2 * d + 1])
            *gone |= x[d] > (float)frame->step->grid.high[d];
        /* This order keeps a NaN position NaN, so the sort detects it. */
        x[d] = fw_min(fw_splat(frame->high[d]), fw_max(fw_splat(frame->low[d]), x[d]));
    }
}

/* Cells from the centre of its cell to each place. */
SK_VECTOR fw cells_off_centre(const advect_frame *frame, const fw x[3])
{
    fw sum = fw_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fw place = (x[d] - frame->corner[d]) * frame->inverse, off = place - fw_from_iw(iw_from_fw(place)) - 0.5f;
        sum += off * off;
    }
    return fw_sqrt(sum);
}

/* sk_sweep_is_place_clear() for a batch: lanes whose paths no surface can meet. Those inside of an obstacle are clear
 * if they may stay there, as lanes in `left` may: a new obstacle has particles deep inside. */
SK_VECTOR iw lanes_clear(const sk_solids *solids, const batch_start *batch, fw off, iw left, const path_part *part)
{
    const size_t slot = (size_t)solids->block_slot[part->block];
    if (batch->row < 0)
        return iw_splat(0);
    const fw distance = sk_lanes_distances(solids, slot, batch->row, batch->cells);
    const fw least = part->travelled + solids->motion + sk_sweep_sample_error(solids, slot);
    const fw away = fw_select(left, fw_abs(distance), distance);
    return (away - off > least) & (least < SK_SWEEP_SAMPLED);
}

/* Keeps the paths of a batch out of obstacles. Lanes in `left` may stay inside one. The block and the cells are those
 * at the beginning of the step, where the lanes are `off` cells from the centres. */
static __attribute__((noinline)) void sweep_lanes(const advect_frame *frame, const batch_start *batch, fw off, iw left,
                                                  const path_part *part, fw x[3], batch_ends *end)
{
    const sk_solids *solids = &frame->step->solids;
    const size_t slot = (size_t)solids->block_slot[part->block];
    iw wanted = ~end->gone & (part->remaining > part->after) & ~lanes_clear(solids, batch, off, left, part) &
                iw_first(batch->lanes);
    if (iw_any(wanted)) {
        const fw least = part->travelled + solids->motion + sk_sweep_sample_error(solids, slot);
        const sk_lane_paths paths = {part->from, x, 1.0f - part->remaining / frame->dt, 1.0f - part->after / frame->dt};
        wanted &= sk_lanes_may_meet_bodies(solids, &frame->step->grid, part->block,
                                           (batch->cells >= 0) & (least < SK_SWEEP_SAMPLED), &paths);
    }
    for (unsigned some = iw_bits(wanted); some; some &= some - 1) {
        const int l = __builtin_ctz(some);
        float at[3] = {0, 0, 0}, start[3] = {0, 0, 0};
        sk_touch touch;
        for (int d = 0; d < SELKIE_DIM; d++)
            at[d] = x[d][l], start[d] = part->from[d][l];
        if (!sweep_particle(frame, start, at, 1.0 - part->remaining[l] / frame->dt, 1.0 - part->after[l] / frame->dt,
                            left[l] != 0, &touch))
            continue;
        end->touched[l] = -1;
        end->touches[l] = touch;
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d][l] = at[d];
    }
}

/* Sums over a block's particles after the move. */
typedef struct block_ends {
    float clearance;           /* cells to the nearest obstacle, or less */
    float rows[SK_BLOCK_ROWS]; /* the same for the particles of each row of cells */
    d8 positions[3];           /* m  sum of the final positions of particles still in the domain */
    fw low[3], high[3];        /* m  box of the final positions, lane by lane */
    sk_leavers leavers;        /* migrating particles of the block, for the next sort */
} block_ends;

/* sk_straighten for a batch that moved from `start` to x. */
SK_VECTOR void straighten(const advect_frame *frame, iw stays, const fw start[3], const fw velocity[3], fw x[3])
{
    fw way[3], length2 = fw_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++) {
        way[d] = (start[d] + frame->dt * velocity[d]) - x[d];
        length2 += way[d] * way[d];
    }
    const fw reach = fw_splat(frame->reach);
    const fw part = fw_select(length2 > reach * reach, reach / fw_sqrt(length2), fw_splat(1.0f));
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = fw_select(stays, x[d], x[d] + part * way[d]);
}

/* Tests a part of the paths against the obstacles, where one is near. The lanes began the step at `start`. */
SK_VECTOR void keep_out(const local_piece *local, const batch_start *batch, const fw start[3], iw left, path_part *part,
                        fw x[3], const block_ends *ends, batch_ends *end)
{
    const advect_frame *frame = local->frame;
    if (!frame->step->solids.obstacle_count)
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        part->travelled += fw_abs(x[d] - part->from[d]) * frame->inverse;
    if (iw_any(part->travelled >= (batch->row < 0 ? ends->clearance : ends->rows[batch->row / SK_BLOCK_N])))
        sweep_lanes(frame, batch, cells_off_centre(frame, start), left, part, x, end);
}

/* Moves a batch. `r` are the columns of the records, and k1 the grid's velocities (NaN where unknown). */
SK_VECTOR void advect_batch(const local_piece *local, const batch_start *batch, fw r[8], fw k1[3], block_ends *ends,
                            batch_ends *end)
{
    const advect_frame *frame = local->frame;
    const int lanes = batch->lanes;
    fw x[3], drift[3];
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = r[d];
    fw remaining = fw_splat(frame->dt);
    path_part part = {.block = ends->leavers.block, .travelled = fw_splat(0.0f)};
    end->gone = end->touched = iw_splat(0);
    const iw left = ((iw)r[7] & SK_PARTICLE_INSIDE) != 0; /* left to the density projection */
    const iw flying = ((iw)r[7] & SK_PARTICLE_FLYING) != 0;
    fill_start(frame, local, x, r + 3, flying, k1);
    for (int d = 0; d < SELKIE_DIM; d++)
        drift[d] = k1[d];

    /* More sub-steps mean a step far beyond any sensible length; the rest of the path is dropped. */
    for (int sub_step = 0; sub_step < 1000; sub_step++) {
        if (sub_step > 0)
            velocities_at(frame, local, x, r + 3, flying, k1);
        fw far = largest(k1) * frame->inverse * remaining, h = remaining; /* cells */
        if (iw_any(far > 1.0f)) {
            /* round up */
            fw whole = fw_from_iw(iw_from_fw(fw_min(far, fw_splat(1e6f))));
            whole = fw_select(whole < far, whole + 1.0f, whole);
            h = fw_select(far <= 1.0f, remaining, remaining / fw_max(whole, fw_splat(1.0f)));
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            part.from[d] = x[d];
        part.remaining = remaining;
        h = runge_kutta(local, sub_step ? NULL : batch->home, x, r + 3, flying, k1, h);
        confine(frame, x, &end->gone);
        /* A remainder from rounding counts as 0. */
        remaining -= h;
        remaining = fw_select(end->gone | (remaining < 1e-6f * frame->dt), fw_splat(0.0f), remaining);
        part.after = remaining;
        keep_out(local, batch, r, left, &part, x, ends, end);
        if (!iw_any((remaining > 0.0f) & iw_first(lanes)))
            break;
    }

    /* The straight drift, at the end of the step. */
    if (frame->straight) {
        for (int d = 0; d < SELKIE_DIM; d++)
            part.from[d] = x[d];
        part.remaining = fw_splat(1e-6f * frame->dt);
        part.after = fw_splat(0.0f);
        straighten(frame, end->gone | end->touched, r, drift, x);
        confine(frame, x, &end->gone);
        keep_out(local, batch, r, left, &part, x, ends, end);
    }

    /* Final positions and their sums. */
    if (__builtin_expect(frame->step->grid.periodic, 0))
        sk_wrap_batch(&frame->step->grid, x);
    iw counted = iw_first(lanes) & ~end->gone;
    for (int d = 0; d < SELKIE_DIM; d++) {
        r[d] = x[d];
        ends->positions[d] += d8_from_fw(fw_select(counted, x[d], fw_splat(0.0f)));
        /* Obstacles still push out particles that touched them. */
        ends->low[d] = fw_min(ends->low[d], fw_select(end->touched, fw_splat(-HUGE_VALF), x[d]));
        ends->high[d] = fw_max(ends->high[d], fw_select(end->touched, fw_splat(HUGE_VALF), x[d]));
    }

    /* Idle lanes repeat the last particle (see fw_store_columns), but confine skipped them: copy its position. */
    for (int l = lanes; frame->step->solids.obstacle_count && l < SK_WIDE; l++)
        for (int d = 0; d < SELKIE_DIM; d++)
            r[d][l] = r[d][lanes - 1];

    /* List the migrating particles. */
    if (frame->lists_leavers) {
        sk_grid *grid = (sk_grid *)&frame->step->grid;
        sk_leavers_add(grid, &ends->leavers, batch->first, lanes, r, batch->cells,
                       end->gone & iw_first(lanes) & SK_PARTICLE_DEAD);
    }
}

static void end_batch(const advect_frame *frame, const batch_ends *end, sk_particle *records, int lanes)
{
    if (!iw_any(end->gone | end->touched))
        return;
    for (int l = 0; l < lanes; l++) {
        if (end->gone[l])
            records[l].flags |= SK_PARTICLE_DEAD;
        else if (end->touched[l])
            sk_sweep_stop(&frame->step->solids, &end->touches[l], records[l].position, records[l].velocity);
    }
}

static void advect_lanes(const local_piece *local, const sk_carried *carried, sk_particle *all, uint32_t first,
                         int lanes, block_ends *ends)
{
    fw r[8], k1[3];
    sk_particle *records = all + first;
    fw_load_columns(sk_particle_floats(records), lanes, r);
    fw_load_columns(sk_particle_floats(records) + 4, lanes, r + 4);
    /* Idle lanes repeat the last particle (see fw_store_columns): values behind it in `carried` are undefined. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        k1[d] = carried->values ? fw_load(carried->values + (size_t)d * carried->stride + first)
                                : fw_splat(__builtin_nanf(""));
        for (int l = lanes; l < SK_WIDE; l++)
            k1[d][l] = k1[d][lanes - 1];
    }
    const batch_start batch = {NULL, -1, iw_splat(-1), first, lanes};
    batch_ends end;
    advect_batch(local, &batch, r, k1, ends, &end);
    fw_store_columns(sk_particle_floats(records), lanes, r);
    end_batch(local->frame, &end, records, lanes);
}

/* Sums over a block's particles. */
typedef struct block_sums {
    sk_particle_sums velocity;
    double position[3];
    int64_t gone;
} block_sums;

/* --- velocities and advection together --- */

typedef struct block_mover {
    sk_gather gather;
    local_piece local;
    sk_particle *records;
    float *affine; /* APIC's matrices, NULL for others */
    block_ends *ends;
    _Alignas(64) float start[SELKIE_DIM][SK_ROW_TILE_VALUES]; /* m/s  the velocity that paths start with */
} block_mover;

/* Gathers the velocities of the particles in a row of a block's cells and moves them. */
static inline __attribute__((always_inline)) void move_row(const sk_transfer_kind kind, block_mover *mover,
                                                           const particle_row *row)
{
    sk_gather *g = &mover->gather;
    sk_particle *all = mover->records;
    int j = row->j;
    const int k = row->k;
    const home_row home = {WIDTH * (HALO + j - 1 + WIDTH * (SELKIE_DIM == 3 ? HALO + k - 1 : 0)),
                           {0.0f, (float)(HALO + j), (float)(HALO + k)}};
    for (uint32_t first = row->begin; first < row->end; first += SK_WIDE) {
        const int lanes = row->end - first < SK_WIDE ? (int)(row->end - first) : SK_WIDE;
        float *floats = sk_particle_floats(all + first);
        fw r[8], sampled[3];

        /* Load a batch of records, and compute its interpolation weights. */
        KEEP_IN_MEMORY(j);
        prefetch_ahead(all + first);
        fw_load_columns(floats, lanes, r);
        fw_load_columns(floats + 4, lanes, r + 4);
        lane_weights w;
        lanes_of(r, g->corner, g->inverse, &row->cells, kind == SK_TRANSFER_APIC, &w);

        /* Gather the velocities, then move the particles along them. */
        batch_ends last;
        last.gone = last.touched = iw_splat(0);
        const gathered_batch batch = {SK_ROW_PLANE,
                                      lanes,
                                      j,
                                      k,
                                      row->flying,
                                      kind == SK_TRANSFER_APIC ? mover->affine + 9 * (size_t)first : NULL};
        const int cells = (j << SK_BLOCK_LOG) + (k << 2 * SK_BLOCK_LOG);
        const batch_start start = {SK_WIDE == 16 ? &home : NULL, cells, w.cell + cells, first, lanes};
        if (gather_batch(kind, g, &batch, r, &w, sampled))
            advect_batch(&mover->local, &start, r, sampled, mover->ends, &last);

        /* Store the records, then treat particles that left or touched an obstacle. */
        fw_store_columns(floats, lanes, r);
        fw_store_columns(floats + 4, lanes, r + 4);
        end_batch(mover->local.frame, &last, all + first, lanes);
    }
}

static void move_block(const advect_frame *frame, const sk_transfer_options *options, int block, block_mover *mover)
{
    const sk_grid *grid = &frame->step->grid;
    sk_gather *g = &mover->gather;
    load_piece(frame, block, &mover->local);
    const float *const plain[3] = {mover->start[0], mover->start[1], mover->start[SELKIE_DIM - 1]};
    const sk_tile_rows rows = sk_tile_rows_around(grid->occupied[block]);
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_row_tile_load(grid, sk_transfer_velocity(options, grid, d), block, &rows, mover->start[d]);
    SK_DIM(sk_gather_begin)(g, options, grid, block, plain, SK_ROW_PLANE);

    /* Each call has a constant kind, so that the compiler makes a loop for each. */
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        const particle_row row = particles_of_row(grid, block, c, g->flying);
        if (row.begin == row.end)
            continue;
        if (g->kind == SK_TRANSFER_FLIP)
            move_row(SK_TRANSFER_FLIP, mover, &row);
        else if (g->kind == SK_TRANSFER_PIC)
            move_row(SK_TRANSFER_PIC, mover, &row);
        else
            move_row(SK_TRANSFER_APIC, mover, &row);
    }
}

static block_ends start_of(const sk_step *step, int block)
{
    block_ends ends;
    memset(&ends, 0, sizeof ends);
    for (int d = 0; d < SELKIE_DIM; d++) {
        ends.low[d] = fw_splat(HUGE_VALF);
        ends.high[d] = fw_splat(-HUGE_VALF);
    }
    ends.leavers = sk_leavers_of(&step->grid, block);
    ends.clearance = step->solids.clearance[block];
    if (step->solids.obstacle_count)
        sk_lanes_row_clearance(&step->solids, block, ends.clearance, ends.rows);
    return ends;
}

/* Shows a block's particles to what watches them. */
static void show_block(const sk_step *step, const block_ends *ends)
{
    const int slot = ends->leavers.block;
    const uint32_t *start = step->grid.cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS;
    sk_moved_block block = {slot,
                            step->particles.records + start[0],
                            (int64_t)start[SK_BLOCK_CELLS] - start[0],
                            {0.0f, 0.0f, 0.0f},
                            {0.0f, 0.0f, 0.0f}};
    for (int d = 0; d < SELKIE_DIM; d++) {
        block.low[d] = ends->low[d][0];
        block.high[d] = ends->high[d][0];
        for (int l = 1; l < SK_WIDE; l++) {
            block.low[d] = fminf(block.low[d], ends->low[d][l]);
            block.high[d] = fmaxf(block.high[d], ends->high[d][l]);
        }
    }
    step->watch->see(step->watch, step, &block, omp_get_thread_num());
}

static void finish_block(const advect_frame *frame, const block_ends *ends, block_sums *sums)
{
    const sk_step *step = frame->step;
    const sk_grid *grid = &step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(ends->leavers.block - 1) * SK_BLOCK_CELLS;
    if (step->watch)
        show_block(step, ends);
    sums->gone = 0;
    for (uint32_t p = start[0]; frame->any_open && p < start[SK_BLOCK_CELLS]; p++)
        sums->gone += step->particles.records[p].flags & SK_PARTICLE_DEAD;
    for (int d = 0; d < 3; d++)
        sums->position[d] = d8_sum(ends->positions[d]);
    if (frame->lists_leavers)
        grid->leavers[ends->leavers.block] = sk_leavers_found(&ends->leavers);
}

/* Adds the blocks in their order, so the bits do not depend on the number of threads. */
static void add_up(sk_step *step, const block_sums *sums, int told)
{
    sk_particles_moved(&step->particles);
    if (step->watch)
        step->watch->moves = step->particles.moves;
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memset(step->positions, 0, sizeof step->positions);
    step->grid.leavers_at = told ? step->particles.moves : 0;
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        step->drained += sums[b].gone;
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums[b].position[d];
    }
}

selkie_code SK_DIM(sk_flip_move)(sk_step *step, selkie_error *error)
{
    block_sums *sums;
    SK_TRY(
        sk_step_scratch(step, ((size_t)step->grid.particle_blocks + 1) * sizeof *sums, "move", (void **)&sums, error));
    SK_TRY(sk_grid_reserve_leavers(&step->grid, error));
    const advect_frame frame = frame_of(step);
    if (step->watch)
        SK_TRY(step->watch->begin(step->watch, step, error));
    const sk_transfer_options options = flip_transfer_options(step);
    const sk_attribute *attribute =
        options.kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(&step->particles, "affine") : NULL;

    /* Gather and move the particles, block by block. */
    sk_deal deal;
    sk_deal_particle_blocks(&deal, &step->grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    {
        block_mover mover;
        mover.records = step->particles.records;
        mover.affine = attribute ? (float *)attribute->data : NULL;
        SK_EACH_DEALT(b, &deal)
        {
            block_ends ends = start_of(step, b);
            mover.ends = &ends;
            move_block(&frame, &options, b, &mover);
            SK_DIM(sk_gather_end)(&mover.gather, &sums[b].velocity);
            finish_block(&frame, &ends, &sums[b]);
        }
    }

    /* Add the sums of the blocks in their order. */
    memset(&step->sums, 0, sizeof step->sums);
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        sk_particle_sums_add(&step->sums, &sums[b].velocity);
    add_up(step, sums, frame.lists_leavers);
    return flip_check_velocities(step, error);
}

selkie_code SK_DIM(sk_flip_advect)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    block_sums *sums;
    SK_TRY(sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * sizeof *sums, "advect", (void **)&sums, error));
    SK_TRY(sk_grid_reserve_leavers(&step->grid, error));
    const advect_frame frame = frame_of(step);
    if (step->watch)
        SK_TRY(step->watch->begin(step->watch, step, error));

    /* The transfer may have sampled the velocities of the first stage already. */
    const int few = step->particles.count < SK_WIDE; /* scratch for so few particles has no room for idle lanes */
    const sk_carried carried = {few ? NULL : step->particles.carried, (size_t)step->particles.count, 0};

    /* Move the particles, block by block. */
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    {
        local_piece local;
        SK_EACH_DEALT(b, &deal)
        {
            const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
            block_ends ends = start_of(step, b);
            ends.clearance -= 1.0f; /* shifts since the sort move particles by less than a cell */
            load_piece(&frame, b, &local);
            for (uint32_t p = start[0], end = start[SK_BLOCK_CELLS]; p < end; p += SK_WIDE)
                advect_lanes(&local, &carried, step->particles.records, p, end - p < SK_WIDE ? (int)(end - p) : SK_WIDE,
                             &ends);
            finish_block(&frame, &ends, &sums[b]);
        }
    }
    add_up(step, sums, frame.lists_leavers);
    return SELKIE_OK;
}

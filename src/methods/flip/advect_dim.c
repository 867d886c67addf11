/* Advection: every particle goes along the grid's velocity with Runge-Kutta steps of its own.
 *
 * No stage may cross more than a cell: at a large step the midpoint of a falling drop would otherwise lie in the still
 * pool below it and the drop would hover. So a fast particle takes as many sub-steps as it needs, each with the solids
 * asked again. Where no velocity is known (out in the air, beyond the band) a particle keeps its own and flies.
 *
 * The velocities of a block and four cells around it are copied into one dense piece, and the particles go as many at a
 * time as there are lanes, each with its own sub-steps. A lane that leaves the piece, or meets an unknown node, is answered
 * by the plain kernel; which way a particle takes depends on the particle alone.
 */
#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/gather.h"
#include "grid/grid_kernels.h"
#include "grid/leavers.h"
#include "grid/tile.h"
#include "methods/flip/advect_kernels.h"
#include "methods/flip/flip.h"
#include "methods/flip/transfer_options.h"

enum { HALO = 4, WIDTH = SK_TILE_N(HALO) };

typedef struct advect_frame {
    const sk_step *step;
    float inverse;        /* 1/m */
    float corner[3];      /* m   of the grid */
    float low[3], high[3];/* m   where closed walls let particles be; open sides are infinite */
    int open[6], any_open;
    float dt;             /* s   */
    int order;
    int trapezoidal;      /*     rule of order 2 */
    int bisect;           /*     what cannot be set onto an obstacle goes back on its path */
    int tell_leavers;     /*     the next sort is told who left its block */
} advect_frame;

typedef struct local_piece {
    sk_velocity_piece piece;
    float origin[3];       /* cells of the grid at the piece's corner */
    float values[SELKIE_DIM][SK_TILE_VALUES(HALO)];
} local_piece;

static void load_piece(const sk_grid *grid, int block, local_piece *local)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, HALO, local->values[d]);
        local->piece.component[d] = local->values[d];
    }
    local->piece.pitch = WIDTH;
    local->piece.dimension = SELKIE_DIM;
    for (int d = 0; d < 3; d++)
        local->origin[d] = d < SELKIE_DIM ? (float)(grid->coordinates[block][d] * SK_BLOCK_N - HALO) : 0.0f;
}

/* Around a place that the block's own piece does not cover: the 2^dim nodes of each component, fetched one by one. */
static void load_small_piece(const sk_grid *grid, const float coordinate[3], sk_velocity_piece *piece,
                             float values[SELKIE_DIM][27], float origin[3])
{
    int first[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        first[d] = (int)floorf(coordinate[d]) - 1;
        origin[d] = (float)first[d];
    }
    for (int n = 0; n < (SELKIE_DIM == 3 ? 27 : 9); n++) {
        int cell[3] = {first[0] + n % 3, first[1] + n / 3 % 3, SELKIE_DIM == 3 ? first[2] + n / 9 : 0};
        int slot = 0, inside = 1, local = 0;
        size_t place = 0, stride = 1;
        for (int d = 0; d < SELKIE_DIM; d++) {
            inside &= cell[d] >= 0 && cell[d] < grid->blocks[d] * SK_BLOCK_N;
            place += (size_t)(inside ? cell[d] >> SK_BLOCK_LOG : 0) * stride;
            stride *= (size_t)grid->blocks[d];
            local += (cell[d] & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
        }
        if (inside)
            slot = grid->table[place];
        for (int d = 0; d < SELKIE_DIM; d++)
            values[d][n] = grid->fields[SK_FIELD_VELOCITY_X + d][(size_t)slot * SK_BLOCK_CELLS + (size_t)local];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        piece->component[d] = values[d];
    piece->pitch = 3;
    piece->dimension = SELKIE_DIM;
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
    sk_velocity_piece piece;
    float values[SELKIE_DIM][27], origin[3] = {0, 0, 0};
    load_small_piece(&frame->step->grid, coordinate, &piece, values, origin);
    for (int d = 0; d < SELKIE_DIM; d++)
        in_piece[d] = coordinate[d] - origin[d];
    sk_sample_velocity(&piece, in_piece, SELKIE_DIM, own, velocity);
}

/* The part of a particle's velocity that goes into the solid it touches is lost. */
static void stop_at_solid(const advect_frame *frame, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    double point[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3], wall[3];
    int obstacle;
    sk_solids_distance(solids, point, normal, &obstacle);
    sk_solids_velocity(solids, obstacle, point, wall);
    double into = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        into += (particle->velocity[d] - wall[d]) * normal[d];
    for (int d = 0; into < 0.0 && d < SELKIE_DIM; d++)
        particle->velocity[d] -= (float)(into * normal[d]);
}

/* Component d at places of the piece; NaN where a node is unknown. The twin of sk_sample_component. */
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

/* Velocities of particles at x (m), in m/s; `own` is what each falls back on, and what those that fly keep. */
SK_VECTOR void velocities_at(const advect_frame *frame, const local_piece *local, const fw x[3], const fw own[3], iw flying,
                             fw velocity[3])
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
    for (int d = 0; d < SELKIE_DIM; d++) {
        velocity[d] = fw_select(flying, own[d], sample_lanes(local, d, place));
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

SK_VECTOR fw largest(const fw velocity[3])
{
    fw most = fw_max(fw_abs(velocity[0]), fw_abs(velocity[1]));
    return SELKIE_DIM == 3 ? fw_max(most, fw_abs(velocity[SELKIE_DIM - 1])) : most;
}

/* One Runge-Kutta step of length h (s) at most for a batch, shorter where the second stage is so much faster than
 * the first that it would cross more than a cell. Returns its length. */
SK_VECTOR fw runge_kutta(const advect_frame *frame, const local_piece *local, fw x[3], const fw own[3], iw flying, const fw k1[3],
                         fw h)
{
    fw stage[3], k2[3], k3[3];
    const float way = frame->trapezoidal ? 1.0f : 0.5f;
    for (int d = 0; d < SELKIE_DIM; d++)
        stage[d] = x[d] + way * h * k1[d];
    velocities_at(frame, local, stage, own, flying, k2);
    for (int d = 0; frame->trapezoidal && d < SELKIE_DIM; d++)
        k2[d] = 0.5f * (k1[d] + k2[d]);
    fw cells = largest(k2) * frame->inverse * h;
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

/* Is a particle (m) inside an obstacle? */
static int is_inside(const advect_frame *frame, const float x[3])
{
    double point[3] = {x[0], x[1], x[2]}, normal[3];
    int obstacle;
    return sk_solids_distance(&frame->step->solids, point, normal, &obstacle) < 0.0 && obstacle >= 0;
}

/* Sets a particle that went from one place into an obstacle onto its surface, along the gradient of the distance. Where that
 * does not lead out (a nook, or a wall behind), it goes back on its path to just before the obstacle (Gerszewski, sec. 3.2.4).
 * Returns whether it touched one. */
static int clip(const advect_frame *frame, const float from[3], float to[3])
{
    float end[3] = {to[0], to[1], to[2]};
    if (!sk_solids_push_out(&frame->step->solids, frame->low, frame->high, to))
        return 0;
    if (!frame->bisect || !is_inside(frame, to) || is_inside(frame, from))
        return 1;
    float outside = 0.0f, inside = 1.0f;
    for (int bisection = 0; bisection < 10; bisection++) {
        float middle = 0.5f * (inside + outside), x[3];
        for (int d = 0; d < 3; d++)
            x[d] = from[d] + middle * (end[d] - from[d]);
        *(is_inside(frame, x) ? &inside : &outside) = middle;
    }
    for (int d = 0; d < 3; d++)
        to[d] = from[d] + outside * (end[d] - from[d]);
    return 1;
}

/* Keeps positions within closed walls and out of obstacles; lanes that left through an open side come back in `gone`,
 * those that touched an obstacle in `touched`; those in `left` may stay inside one. */
SK_VECTOR void confine(const advect_frame *frame, int lanes, iw left, const fw from[3], fw x[3], iw *gone, iw *touched)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (frame->open[2 * d])
            *gone |= x[d] < (float)frame->step->grid.low[d];
        if (frame->open[2 * d + 1])
            *gone |= x[d] > (float)frame->step->grid.high[d];
        /* In this order a position that is not a number stays so, and the sort finds it. */
        x[d] = fw_min(fw_splat(frame->high[d]), fw_max(fw_splat(frame->low[d]), x[d]));
    }
    if (!frame->step->solids.obstacle_count)
        return;
    for (int l = 0; l < lanes; l++) {
        float at[3] = {0, 0, 0}, start[3] = {0, 0, 0};
        for (int d = 0; d < SELKIE_DIM; d++)
            at[d] = x[d][l], start[d] = from[d][l];
        if (!(*gone)[l] && !left[l] && sk_solids_near(&frame->step->solids, &frame->step->grid, at) && clip(frame, start, at)) {
            (*touched)[l] = -1;
            for (int d = 0; d < SELKIE_DIM; d++)
                x[d][l] = at[d];
        }
    }
}

/* The grid's velocity at the particles: as the transfer has left it, or sampled where it has not. */
SK_VECTOR void first_velocities(const advect_frame *frame, const local_piece *local, const sk_carried *at_hand, uint32_t first,
                                int lanes, const fw x[3], const fw own[3], iw flying, fw velocity[3])
{
    if (!at_hand->values) {
        velocities_at(frame, local, x, own, flying, velocity);
        return;
    }
    /* Idle lanes read what comes after, which is there in any case, but could be anything: they stand. */
    iw known = iw_splat(-1);
    for (int d = 0; d < SELKIE_DIM; d++) {
        fw carried = fw_load(at_hand->values + (size_t)d * at_hand->stride + (first - at_hand->first));
        velocity[d] = fw_select(iw_first(lanes), fw_select(flying, own[d], carried), fw_splat(0.0f));
        known &= velocity[d] == velocity[d];
    }
    if (iw_any(~known)) {
        /* Lane by lane, so that no particle's way depends on its neighbours in the batch. */
        fw sampled[3];
        velocities_at(frame, local, x, own, flying, sampled);
        for (int d = 0; d < SELKIE_DIM; d++)
            velocity[d] = fw_select(known, velocity[d], sampled[d]);
    }
}

/* What a block's particles did on their way. */
typedef struct block_ends {
    int block;
    d8 positions[3];    /* m  sum of where they end, those that left the domain excepted */
    sk_leavers leavers; /*    those that left the block, if the next sort is to be told */
} block_ends;

static void advect_lanes(const advect_frame *frame, const local_piece *local, const sk_carried *carried, sk_particle *all,
                         uint32_t first, int lanes, block_ends *ends)
{
    fw r[8], x[3], k1[3];
    sk_particle *records = all + first;
    fw_load_columns(sk_particle_floats(records), lanes, r);
    fw_load_columns(sk_particle_floats(records) + 4, lanes, r + 4);
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = r[d];
    fw remaining = fw_splat(frame->dt);
    iw gone = iw_splat(0), touched = iw_splat(0);
    iw left = ((iw)r[7] & SK_PARTICLE_INSIDE) != 0; /* to the density projection */
    iw flying = ((iw)r[7] & SK_PARTICLE_FLYING) != 0;
    first_velocities(frame, local, carried, first, lanes, x, r + 3, flying, k1);
    /* A particle that would need more sub-steps than this is far beyond any sensible step; the rest of its way is left. */
    for (int sub_step = 0; sub_step < 1000; sub_step++) {
        if (sub_step > 0)
            velocities_at(frame, local, x, r + 3, flying, k1);
        fw cells = largest(k1) * frame->inverse * remaining;
        /* rounded up */
        fw whole = fw_from_iw(iw_from_fw(fw_min(cells, fw_splat(1e6f))));
        whole = fw_select(whole < cells, whole + 1.0f, whole);
        fw h = fw_select(cells <= 1.0f, remaining, remaining / fw_max(whole, fw_splat(1.0f)));
        fw from[3];
        for (int d = 0; d < SELKIE_DIM; d++)
            from[d] = x[d];
        h = runge_kutta(frame, local, x, r + 3, flying, k1, h);
        confine(frame, lanes, left, from, x, &gone, &touched);
        /* What is left by rounding alone is nothing. */
        remaining -= h;
        remaining = fw_select(gone | (remaining < 1e-6f * frame->dt), fw_splat(0.0f), remaining);
        if (!iw_any((remaining > 0.0f) & iw_first(lanes)))
            break;
    }
    iw counted = iw_first(lanes) & ~gone;
    for (int d = 0; d < SELKIE_DIM; d++) {
        r[d] = x[d];
        ends->positions[d] += d8_from_fw(fw_select(counted, x[d], fw_splat(0.0f)));
    }
    for (int l = lanes; l < SK_WIDE; l++) /* idle lanes went their own way; see fw_store_columns */
        for (int d = 0; d < SELKIE_DIM; d++)
            r[d][l] = r[d][lanes - 1];
    fw_store_columns(sk_particle_floats(records), lanes, r);
    if (frame->tell_leavers) {
        sk_grid *grid = (sk_grid *)&frame->step->grid;
        sk_leavers_add(grid, ends->block, grid->cell_start[(size_t)(ends->block - 1) * SK_BLOCK_CELLS], first, lanes, r,
                       gone & iw_first(lanes) & SK_PARTICLE_DEAD, &ends->leavers);
    }
    if (!iw_any(gone | touched))
        return;
    for (int l = 0; l < lanes; l++) {
        if (gone[l])
            records[l].flags |= SK_PARTICLE_DEAD;
        else if (touched[l])
            stop_at_solid(frame, &records[l]);
    }
}

static void advect_range(const advect_frame *frame, const local_piece *local, const sk_carried *carried, sk_particle *all,
                         uint32_t begin, uint32_t end, block_ends *ends)
{
    for (uint32_t p = begin; p < end; p += SK_WIDE)
        advect_lanes(frame, local, carried, all, p, end - p < SK_WIDE ? (int)(end - p) : SK_WIDE, ends);
}

/* What a block's particles did. */
typedef struct block_sums {
    sk_particle_sums velocity;
    double position[3];
    int64_t gone;
} block_sums;

/* --- velocities and advection together ----------------------------------------------------------------------------------- */

enum { GROUP = 512, BUFFER = 1024 }; /* particles that go at a time, and that there is room for the grid's velocities of */

typedef struct block_mover {
    sk_gather gather;
    local_piece local;
    float carried[SELKIE_DIM][BUFFER + SK_WIDE];
} block_mover;

/* A few rows at a time: their particles take their velocities and go on while they are in the nearest cache. */
static void move_block(const advect_frame *frame, const sk_transfer_options *options, float *affine, int block,
                       block_mover *mover, block_ends *ends)
{
    sk_grid *grid = (sk_grid *)&frame->step->grid;
    const sk_particles *particles = &frame->step->particles;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    sk_gather *gather = &mover->gather;
    SK_DIM(sk_gather_begin)(gather, options, grid, block);
    load_piece(grid, block, &mover->local);
    for (int first = 0, last; first < SK_BLOCK_CELLS; first = last) {
        for (last = first + SK_BLOCK_N; last < SK_BLOCK_CELLS && start[last + SK_BLOCK_N] - start[first] <= GROUP;)
            last += SK_BLOCK_N;
        const uint32_t count = start[last] - start[first];
        if (count == 0)
            continue;
        gather->end = start[last];
        gather->carried = (sk_carried){mover->carried[0], BUFFER + SK_WIDE, start[first]};
        if (count > BUFFER) /* one row that holds them all */
            gather->carried = (sk_carried){sk_particles_scratch(particles), (size_t)particles->count, 0};
        SK_DIM(sk_gather_cells)(gather, grid, particles->records, affine, block, first, last);
        if (gather->bad)
            return; /* the step ends here */
        advect_range(frame, &mover->local, &gather->carried, particles->records, start[first], start[last], ends);
    }
}

static advect_frame frame_of(const sk_step *step)
{
    const sk_grid *grid = &step->grid;
    advect_frame frame = {.step = step, .inverse = (float)(1.0 / grid->cell_size), .dt = (float)step->dt, .order = step->scene->advection.order};
    const int unilateral = step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    const selkie_advection_rule rule = step->scene->advection.rule;
    frame.trapezoidal = frame.order == 2 && (rule == SELKIE_RULE_TRAPEZOIDAL || (rule == SELKIE_RULE_AUTO && unilateral));
    frame.bisect = unilateral && step->scene->unilateral.clip_bisection;
    frame.tell_leavers = sk_step_is_calm(step, step->dt);
    /* A hair off the walls, so that no particle sits in the cell behind. */
    for (int d = 0; d < 3; d++) {
        frame.corner[d] = (float)grid->corner[d];
        double gap = 1e-3 * grid->cell_size;
        frame.open[2 * d] = d < SELKIE_DIM && step->scene->domain.walls[2 * d] == SELKIE_WALL_OPEN;
        frame.open[2 * d + 1] = d < SELKIE_DIM && step->scene->domain.walls[2 * d + 1] == SELKIE_WALL_OPEN;
        frame.any_open |= frame.open[2 * d] | frame.open[2 * d + 1];
        frame.low[d] = frame.open[2 * d] ? -INFINITY : (float)(grid->low[d] + gap);
        frame.high[d] = frame.open[2 * d + 1] ? INFINITY : (float)(grid->high[d] - gap);
    }
    return frame;
}

static block_ends start_of(int block)
{
    block_ends ends;
    memset(&ends, 0, sizeof ends);
    ends.block = block;
    return ends;
}

static void finish_block(const advect_frame *frame, const block_ends *ends, block_sums *sums)
{
    const sk_grid *grid = &frame->step->grid;
    const uint32_t *start = grid->cell_start + (size_t)(ends->block - 1) * SK_BLOCK_CELLS;
    sums->gone = 0;
    for (uint32_t p = start[0]; frame->any_open && p < start[SK_BLOCK_CELLS]; p++)
        sums->gone += frame->step->particles.records[p].flags & SK_PARTICLE_DEAD;
    for (int d = 0; d < 3; d++)
        sums->position[d] = d8_sum(ends->positions[d]);
    if (frame->tell_leavers)
        grid->leavers[ends->block] = sk_leavers_found(&ends->leavers);
}

/* Over the blocks in their order: the same bits on any number of threads. */
static void add_up(sk_step *step, const block_sums *sums, int told)
{
    step->particles.carried = NULL; /* they are elsewhere now */
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memset(step->positions, 0, sizeof step->positions);
    step->grid.leavers_known = told;
    for (int b = 1; b <= step->grid.particle_blocks; b++) {
        step->drained += sums[b].gone;
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums[b].position[d];
    }
}

selkie_code SK_DIM(sk_flip_move)(sk_step *step, selkie_error *error)
{
    block_sums *sums;
    SK_TRY(sk_step_scratch(step, ((size_t)step->grid.particle_blocks + 1) * sizeof *sums, "move", (void **)&sums, error));
    SK_TRY(sk_grid_reserve_leavers(&step->grid, error));
    const advect_frame frame = frame_of(step);
    const sk_transfer_options options = flip_transfer_options(step);
    const sk_attribute *attribute = options.kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(&step->particles, "affine") : NULL;
    float *affine = attribute ? (float *)attribute->data : NULL;
#pragma omp parallel num_threads(step->threads)
    {
        block_mover mover;
#pragma omp for schedule(dynamic, 2)
        for (int b = 1; b <= step->grid.particle_blocks; b++) {
            block_ends ends = start_of(b);
            move_block(&frame, &options, affine, b, &mover, &ends);
            SK_DIM(sk_gather_end)(&mover.gather, &sums[b].velocity);
            finish_block(&frame, &ends, &sums[b]);
        }
    }
    memset(&step->sums, 0, sizeof step->sums);
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        sk_particle_sums_add(&step->sums, &sums[b].velocity);
    add_up(step, sums, frame.tell_leavers);
    return flip_check_velocities(step, error);
}

selkie_code SK_DIM(sk_flip_advect)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    block_sums *sums;
    SK_TRY(sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * sizeof *sums, "advect", (void **)&sums, error));
    SK_TRY(sk_grid_reserve_leavers(&step->grid, error));
    const advect_frame frame = frame_of(step);
    const int few = step->particles.count < SK_WIDE; /* the scratch of so few has no room for idle lanes */
    const sk_carried carried = {few ? NULL : step->particles.carried, (size_t)step->particles.count, 0};
#pragma omp parallel num_threads(step->threads)
    {
        local_piece local;
#pragma omp for schedule(dynamic, 2)
        for (int b = 1; b <= grid->particle_blocks; b++) {
            const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
            block_ends ends = start_of(b);
            load_piece(grid, b, &local);
            advect_range(&frame, &local, &carried, step->particles.records, start[0], start[SK_BLOCK_CELLS], &ends);
            finish_block(&frame, &ends, &sums[b]);
        }
    }
    add_up(step, sums, frame.tell_leavers);
    return SELKIE_OK;
}

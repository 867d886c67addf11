/* Particles that are too close push each other apart.
 *
 * Two laws over the same search. Springs (Ando and Tsuruno 2011): a neighbour at distance r < R moves a particle by
 * stiffness dt R (1 - r^2/R^2), explicitly, so that a large step overshoots. Constraints (Sato et al. 2018): each sweep
 * moves both particles of a pair by half of what they lack, R - r, divided by the number of pairs that the busier of
 * the two is in. Dividing by the same number on both sides keeps the pair's centre of mass where it is, and no particle
 * moves farther than its worst pair asks.
 *
 * Every particle sums over its neighbours (Jacobi): displacements go into the particles' spare copy, which is free
 * between two sorts, and are applied when all are known, so threads leave no trace. The particles of a cell share one
 * list of candidates, copied from the cells around it, and test eight at a time.
 *
 * Lists of candidates are those of the sort before: a pair that comes into reach from more than `reach` cells apart
 * between two sweeps is left to the next step. Where far too many particles crowd a cell, only those of the same rank
 * (group) in their cells see each other, which is symmetric and keeps a collapsed liquid from costing the square of its
 * particles.
 *
 * A solid acts as a mirror: a particle is pushed by its own image, so that liquid at rest along a wall is not pressed
 * against it.
 */
#include <math.h>
#include <omp.h>

#include "base/dimension.h"
#include "base/random.h"
#include "base/simd.h"
#include "methods/particle_spacing/particle_spacing.h"

typedef enum law {
    LAW_COUNT, /* how many pairs is a particle in? */
    LAW_CONSTRAIN,
    LAW_SPRING
} law;

typedef struct spacing_frame {
    sk_step *step;
    float radius;          /* m  under which particles push */
    float strength;        /* m  displacement by a spring of no length */
    float low[3], high[3]; /* m  where particles may be */
    int reach;             /*    cells around a particle's own that are searched */
    uint32_t group;        /*    particles of a cell that see each other */
} spacing_frame;

/* The particles around a cell. */
typedef struct crowd {
    int count;
    int own;            /* where the cell's own begin */
    float *position[3]; /* m */
    float *pairs;       /* of each, from LAW_COUNT */
    uint32_t *id;
} crowd;

static size_t crowd_capacity(const spacing_frame *frame)
{
    size_t width = 2 * (size_t)frame->reach + 1, cells = SELKIE_DIM == 3 ? width * width * width : width * width;
    return (cells * frame->group + 8 + 15) / 16 * 16;
}

static void crowd_place(const spacing_frame *frame, float *buffer, crowd *around)
{
    size_t capacity = crowd_capacity(frame);
    for (int d = 0; d < 3; d++)
        around->position[d] = buffer + (size_t)d * capacity;
    around->pairs = buffer + 3 * capacity;
    around->id = (uint32_t *)(buffer + 4 * capacity);
}

/* Slot of the block and cell in it at `offset` cells from a local cell; slot 0 where there are no particles. */
static int cell_at(const sk_grid *grid, int block, const int local[3], const int offset[3], int *cell)
{
    int neighbour = 0, stride = 1;
    *cell = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        int at = local[d] + offset[d] + SK_BLOCK_N; /* from the block before */
        neighbour += (at >> SK_BLOCK_LOG) * stride;
        stride *= 3;
        *cell += (at & SK_BLOCK_MASK) << (d * SK_BLOCK_LOG);
    }
    int slot = grid->neighbours[block][neighbour];
    return slot <= grid->particle_blocks ? slot : 0;
}

/* What may be near to any of the particles begin to end, which are group `group` of cell c: most of the cells around
 * are not. */
static void gather(const spacing_frame *frame, int with_pairs, int block, int c, uint32_t group, uint32_t begin,
                   uint32_t end, crowd *around)
{
    const sk_grid *grid = &frame->step->grid;
    const sk_particles *particles = &frame->step->particles;
    const int local[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> (2 * SK_BLOCK_LOG)};
    const int reach = frame->reach, reach_z = SELKIE_DIM == 3 ? reach : 0;
    /* The radius and more than can be lost in rounding, around the particles as they stand after earlier sweeps. */
    const float margin = frame->radius + 1e-3f * (float)grid->cell_size;
    float low[3], high[3];
    for (int d = 0; d < SELKIE_DIM; d++) {
        low[d] = high[d] = particles->records[begin].position[d];
        for (uint32_t p = begin + 1; p < end; p++) {
            float x = particles->records[p].position[d];
            low[d] = x < low[d] ? x : low[d];
            high[d] = x > high[d] ? x : high[d];
        }
        low[d] -= margin;
        high[d] += margin;
    }
    int count = 0;
    for (int k = -reach_z; k <= reach_z; k++)
        for (int j = -reach; j <= reach; j++)
            for (int i = -reach; i <= reach; i++) {
                const int offset[3] = {i, j, k};
                int cell, slot = cell_at(grid, block, local, offset, &cell);
                if (!slot)
                    continue;
                const uint32_t *start = grid->cell_start + (size_t)(slot - 1) * SK_BLOCK_CELLS + cell;
                uint64_t first = start[0] + (uint64_t)group * frame->group, last = first + frame->group;
                last = last < start[1] ? last : start[1];
                if (!i && !j && !k)
                    around->own = count;
                for (uint64_t p = first; p < last; p++) {
                    const sk_particle *particle = &particles->records[p];
                    int inside = 1;
                    for (int d = 0; d < SELKIE_DIM; d++) {
                        around->position[d][count] = particle->position[d];
                        inside &= (particle->position[d] >= low[d]) & (particle->position[d] <= high[d]);
                    }
                    around->pairs[count] = with_pairs ? (float)particles->spare[p].flags : 1.0f;
                    around->id[count] = particle->id;
                    count += inside;
                }
            }
    around->count = count;
    /* Whole vectors: the rest is too far away for anyone. */
    for (int n = count; n < count + 8; n++) {
        around->pairs[n] = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            around->position[d][n] = 1e15f;
    }
}

/* Displacement, m, of a particle by neighbours at distance r < R; `pairs`: of the busier one. */
SK_VECTOR f8 push_of(const spacing_frame *frame, const law rule, f8 r, f8 pairs)
{
    const float radius = frame->radius;
    if (rule == LAW_SPRING)
        return frame->strength * (1.0f - r * r * (1.0f / (radius * radius)));
    return 0.5f * (radius - r) / f8_max(pairs, f8_splat(1.0f));
}

/* Two particles in one place part in a direction of their own, opposite for the two. */
static void chance_direction(uint32_t own, uint32_t other, float direction[3])
{
    uint64_t pair = own < other ? (uint64_t)own << 32 | other : (uint64_t)other << 32 | own;
    float sign = own < other ? 1.0f : -1.0f, angle = 6.2831853f * sk_random_float(11, pair, 0);
    float z = SELKIE_DIM == 3 ? 2.0f * sk_random_float(11, pair, 1) - 1.0f : 0.0f, across = sqrtf(1.0f - z * z);
    direction[0] = sign * across * cosf(angle);
    direction[1] = sign * across * sinf(angle);
    direction[2] = sign * z;
}

typedef struct pushed {
    float displacement[3]; /* m */
    int pairs;
} pushed;

static inline void push_along(const spacing_frame *frame, const law rule, float r, float pairs,
                              const float direction[3], pushed *sum)
{
    sum->pairs++;
    float push = push_of(frame, rule, f8_splat(r), f8_splat(pairs))[0];
    for (int d = 0; d < SELKIE_DIM; d++)
        sum->displacement[d] += push * direction[d];
}

/* Images in the domain's closed walls and in the nearest obstacle. */
static void push_by_solids(const spacing_frame *frame, const law rule, const float x[3], float pairs, pushed *sum)
{
    const sk_step *step = frame->step;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        if (step->scene->domain.walls[side] == SELKIE_WALL_OPEN)
            continue;
        int d = side / 2;
        float depth = side & 1 ? (float)step->grid.high[d] - x[d] : x[d] - (float)step->grid.low[d];
        if (2.0f * depth >= frame->radius)
            continue;
        float direction[3] = {0, 0, 0};
        direction[d] = side & 1 ? -1.0f : 1.0f;
        push_along(frame, rule, fmaxf(2.0f * depth, 0.0f), pairs, direction, sum);
    }
    if (!sk_solids_near(&step->solids, &step->grid, x))
        return;
    double point[3] = {x[0], x[1], SELKIE_DIM == 3 ? x[2] : 0.0}, normal[3];
    int obstacle;
    double depth = sk_solids_distance(&step->solids, point, normal, &obstacle);
    /* Walls had their turn. */
    if (obstacle >= 0 && 2.0 * depth < frame->radius) {
        const float direction[3] = {(float)normal[0], (float)normal[1], (float)normal[2]};
        push_along(frame, rule, fmaxf((float)(2.0 * depth), 0.0f), pairs, direction, sum);
    }
}

SK_VECTOR float sum_of(f8 a)
{
    f4 half = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    return (half[0] + half[2]) + (half[1] + half[3]);
}

/* Rare, and kept out of the way of the others: particles of the crowd from n on that are in the same place as `self`.
 */
static __attribute__((noinline)) void push_coincident(const spacing_frame *frame, law rule, const crowd *around,
                                                      int self, int n, i8 same, pushed *sum)
{
    for (int l = 0; l < 8; l++)
        if (same[l]) {
            float direction[3];
            chance_direction(around->id[self], around->id[n + l], direction);
            push_along(frame, rule, 0.0f, fmaxf(around->pairs[n + l], around->pairs[self]), direction, sum);
        }
}

/* What its neighbours and the solids do to particle `self` of the crowd. */
static inline __attribute__((always_inline)) pushed push(const spacing_frame *frame, const law rule,
                                                         const crowd *around, int self)
{
    const float limit = frame->radius * frame->radius, together = 1e-10f * limit;
    const float own_pairs = around->pairs[self];
    pushed sum = {{0, 0, 0}, 0};
    f8 moved[3] = {f8_splat(0.0f), f8_splat(0.0f), f8_splat(0.0f)};
    i8 counted = i8_splat(0);
    for (int n = 0; n < around->count; n += 8) {
        f8 away[3], squared = f8_splat(0.0f);
        for (int d = 0; d < SELKIE_DIM; d++) {
            away[d] = around->position[d][self] - f8_load(around->position[d] + n);
            squared += away[d] * away[d];
        }
        i8 near = (squared < limit) & ((i8){0, 1, 2, 3, 4, 5, 6, 7} != self - n);
        if (!i8_any(near))
            continue;
        i8 apart = near & (squared > together), same = near & ~apart;
        counted += apart; /* all ones is minus one */
        if (rule != LAW_COUNT) {
            f8 r = f8_sqrt(f8_max(squared, f8_splat(together)));
            f8 share = push_of(frame, rule, r, f8_max(f8_load(around->pairs + n), f8_splat(own_pairs))) / r;
            share = f8_select(apart, share, f8_splat(0.0f));
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d] += share * away[d];
        }
        if (i8_any(same))
            push_coincident(frame, rule, around, self, n, same, &sum);
    }
    sum.pairs -= (int)sum_of(f8_from_i8(counted));
    float x[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++) {
        x[d] = around->position[d][self];
        sum.displacement[d] += rule == LAW_COUNT ? 0.0f : sum_of(moved[d]);
    }
    push_by_solids(frame, rule, x, own_pairs, &sum);
    return sum;
}

static inline __attribute__((always_inline)) void push_block(const spacing_frame *frame, const law rule, int block,
                                                             crowd *around)
{
    const sk_step *step = frame->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        for (uint32_t group = 0, begin = start[c]; begin < start[c + 1]; group++) {
            uint32_t end = start[c + 1] - begin < frame->group ? start[c + 1] : begin + frame->group;
            gather(frame, rule == LAW_CONSTRAIN, block, c, group, begin, end, around);
            for (uint32_t p = begin; p < end; p++) {
                pushed result = push(frame, rule, around, around->own + (int)(p - begin));
                sk_particle *spare = &step->particles.spare[p];
                if (rule == LAW_COUNT)
                    spare->flags = (uint32_t)result.pairs;
                else
                    memcpy(spare->position, result.displacement, sizeof spare->position);
            }
            begin = end;
        }
}

/* A cell at most, so that a stiff spring throws nothing through a wall. */
static void move_particle(const spacing_frame *frame, const float displacement[3], sk_particle *particle)
{
    const sk_step *step = frame->step;
    float squared = 0.0f, scale = 1.0f, most = (float)step->grid.cell_size, x[3] = {0, 0, 0};
    for (int d = 0; d < SELKIE_DIM; d++)
        squared += displacement[d] * displacement[d];
    if (squared == 0.0f)
        return;
    if (squared > most * most)
        scale = most / sqrtf(squared);
    for (int d = 0; d < SELKIE_DIM; d++) {
        x[d] = particle->position[d] + scale * displacement[d];
        x[d] = x[d] < frame->low[d] ? frame->low[d] : x[d] > frame->high[d] ? frame->high[d] : x[d];
    }
    if (sk_solids_near(&step->solids, &step->grid, x))
        sk_solids_push_out(&step->solids, frame->low, frame->high, x);
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->position[d] = x[d];
}

/* Applies the displacements; `sums` gets what the block's positions changed by, m. */
static void move_block(const spacing_frame *frame, int block, double sums[3])
{
    const sk_step *step = frame->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        sk_particle *particle = &step->particles.records[p];
        const float before[3] = {particle->position[0], particle->position[1], particle->position[2]};
        move_particle(frame, step->particles.spare[p].position, particle);
        for (int d = 0; d < SELKIE_DIM; d++)
            sums[d] += (double)particle->position[d] - (double)before[d];
    }
}

static void push_particles(const spacing_frame *frame, const law rule, float *buffers)
{
    const sk_step *step = frame->step;
#pragma omp parallel num_threads(step->threads)
    {
        crowd around;
        crowd_place(frame, buffers + (size_t)omp_get_thread_num() * 5 * crowd_capacity(frame), &around);
#pragma omp for schedule(dynamic, 2)
        for (int b = 1; b <= step->grid.particle_blocks; b++) {
            if (rule == LAW_COUNT)
                push_block(frame, LAW_COUNT, b, &around);
            else if (rule == LAW_CONSTRAIN)
                push_block(frame, LAW_CONSTRAIN, b, &around);
            else
                push_block(frame, LAW_SPRING, b, &around);
        }
    }
}

static void move_particles(const spacing_frame *frame, double (*sums)[3])
{
    sk_step *step = frame->step;
    memset(sums, 0, ((size_t)step->grid.particle_blocks + 1) * sizeof *sums);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        move_block(frame, b, sums[b]);
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums[b][d];
}

/* `radius` in particle spacings, `strength` as in the frame but in radii; `sweeps` of constraints, or 0 for springs. */
static selkie_code space_particles(sk_step *step, double radius, double strength, int sweeps, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    /* Before the first step no time has passed in which particles could have come too close. */
    if (!(step->dt > 0.0) || !sk_step_has_pressure(step) || !grid->particle_blocks)
        return SELKIE_OK;
    double spacing = pow((double)step->particles_per_cell, -1.0 / SELKIE_DIM); /* cells */
    spacing_frame frame = {.step = step,
                           .radius = (float)(radius * spacing * grid->cell_size),
                           .strength = (float)(strength * radius * spacing * grid->cell_size),
                           .reach = (int)ceil(radius * spacing - 1e-6),
                           .group = (uint32_t)(step->particles_per_cell < 8 ? 64 : 8 * step->particles_per_cell)};
    for (int d = 0; d < 3; d++) {
        double gap = 1e-3 * grid->cell_size; /* as advection leaves to walls */
        frame.low[d] = (float)(grid->low[d] + gap);
        frame.high[d] = (float)(grid->high[d] - gap);
    }
    double(*sums)[3] = sk_allocate(step->memory, ((size_t)grid->particle_blocks + 1) * sizeof *sums);
    size_t bytes = (size_t)step->threads * 5 * crowd_capacity(&frame) * sizeof(float);
    float *buffers = sk_allocate(step->memory, bytes);
    if (!sums || !buffers) {
        sk_release(step->memory, sums);
        sk_release(step->memory, buffers);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "spacing: no memory for the neighbours of particles (%.1f MiB)",
                       (double)bytes / 1048576.0);
    }
    for (int sweep = 0; sweep < sweeps; sweep++) {
        push_particles(&frame, LAW_COUNT, buffers);
        push_particles(&frame, LAW_CONSTRAIN, buffers);
        move_particles(&frame, sums);
    }
    if (!sweeps) {
        push_particles(&frame, LAW_SPRING, buffers);
        move_particles(&frame, sums);
    }
    sk_release(step->memory, sums);
    sk_release(step->memory, buffers);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_spacing_ando)(sk_step *step, selkie_error *error)
{
    const selkie_ando_def *def = &step->scene->ando;
    return space_particles(step, def->radius, def->stiffness * step->dt, 0, error);
}

selkie_code SK_DIM(sk_spacing_sato)(sk_step *step, selkie_error *error)
{
    const selkie_sato_def *def = &step->scene->sato;
    return space_particles(step, def->radius, 0.0, def->iterations, error);
}

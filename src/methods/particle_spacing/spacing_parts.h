/* Parts shared by both forms of the spacing phases. For files compiled per dimension.
 *
 * Particles that are too close push each other apart. Two laws use the same search.
 *
 * Springs (Ando and Tsuruno 2011): a neighbour at distance r < R moves a particle by stiffness dt R (1 - r^2/R^2). They
 * are explicit, so a large step overshoots.
 *
 * Constraints (Sato et al. 2018): each sweep moves both particles of a pair by half of the missing distance R - r,
 * divided by the larger number of pairs of the two. Both sides divide by the same number, so the pair keeps its centre
 * of mass. No particle moves farther than its worst pair requires.
 *
 * Every particle sums over its neighbours (Jacobi). Displacements go into the particles' spare copy, which is free
 * between two sorts. They are applied when all are complete, so the result does not depend on the threads.
 *
 * Candidates come from the last sort. A pair that approaches from more than `reach` cells apart between two sweeps is
 * left to the next step. In an overcrowded cell only particles of the same group of ranks interact. That is symmetric
 * and avoids quadratic cost in a collapsed liquid.
 *
 * A solid acts as a mirror: a particle's own image pushes it, so that liquid at rest along a wall is not pressed
 * against it.
 */
#ifndef SK_METHODS_PARTICLE_SPACING_SPACING_PARTS_H
#define SK_METHODS_PARTICLE_SPACING_SPACING_PARTS_H

#include <math.h>
#include <string.h>

#include "particles/cell_index.h"
#include "grid/sweep.h"
#include "methods/particle_spacing/particle_spacing.h"
#include "methods/particle_spacing/spacing_kernels.h"
#include "particles/neighbours.h"

typedef enum law {
    LAW_COUNT, /* counts the pairs of each particle */
    LAW_CONSTRAIN,
    LAW_SPRING
} law;

typedef struct spacing_frame {
    sk_step *step;
    sk_cell_index index;
    float radius;          /* m  distance below which particles push */
    float outer;           /* m  distance below which they count as pairs */
    float strength;        /* m  displacement by a spring at distance 0 */
    float low[3], high[3]; /* m  bounds of the particles */
    int reach;             /*    cells around a particle's own that are searched */
    uint32_t group;        /*    particles of a cell that interact */
} spacing_frame;

/* m: how near a neighbour must be to matter to a law. */
static inline float range_of(const spacing_frame *frame, const law rule)
{
    return rule == LAW_COUNT ? frame->outer : frame->radius;
}

typedef struct pushed {
    float displacement[3]; /* m */
    float pairs;
} pushed;

static inline void push_along(const spacing_frame *frame, const law rule, float r, float pairs,
                              const float direction[3], pushed *sum)
{
    if (rule == LAW_COUNT) {
        sum->pairs += sk_spacing_weight(frame->radius, r);
        return;
    }
    const float push = rule == LAW_SPRING ? sk_spacing_spring(frame->strength, frame->radius, r)
                                          : sk_spacing_constraint(pairs, frame->radius, r);
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
        if (2.0f * depth >= range_of(frame, rule))
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
    /* The walls are handled above. */
    if (obstacle >= 0 && 2.0 * depth < range_of(frame, rule)) {
        const float direction[3] = {(float)normal[0], (float)normal[1], (float)normal[2]};
        push_along(frame, rule, fmaxf((float)(2.0 * depth), 0.0f), pairs, direction, sum);
    }
}

/* The number of pairs of particle p, as store_push left it. */
static inline float pairs_of(const spacing_frame *frame, uint32_t p)
{
    float pairs;
    memcpy(&pairs, &frame->step->particles.spare[p].flags, sizeof pairs);
    return pairs;
}

/* Stores the displacement of particle p by all neighbours and solids, for the move and for the next law. */
static inline void store_push(const spacing_frame *frame, const law rule, uint32_t p, const pushed *sum)
{
    sk_particle *spare = &frame->step->particles.spare[p];
    if (rule == LAW_COUNT)
        memcpy(&spare->flags, &sum->pairs, sizeof spare->flags);
    else
        memcpy(spare->position, sum->displacement, sizeof spare->position);
}

/* Moves at most one cell, so that a stiff spring pushes no particle through a wall. */
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
    if (step->solids.obstacle_count)
        sk_sweep_displacement(&step->solids, frame->low, frame->high, particle->position, x, 0.0);
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->position[d] = x[d];
}

/* Applies the displacements; `sums` receives the change of the block's sum of positions, m. */
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
    sk_particles_moved(&step->particles);
}

static int spacing_acts(const sk_step *step)
{
    /* Before the first step dt is 0, and there is nothing to correct. */
    return step->dt > 0.0 && sk_step_has_pressure(step) && step->grid.particle_blocks > 0;
}

/* `radius` in particle spacings, `strength` as in the frame but in radii. */
static spacing_frame make_spacing_frame(sk_step *step, double radius, double strength)
{
    const sk_grid *grid = &step->grid;
    const double spacing = pow((double)step->particles_per_cell, -1.0 / SELKIE_DIM);  /* cells */
    const double outer = strength == 0.0 ? 1.0 + 1.0 / (double)SK_SPACING_EDGE : 1.0; /* springs count no pairs */
    spacing_frame frame = {.step = step,
                           .index = sk_grid_cell_index(grid),
                           .radius = (float)(radius * spacing * grid->cell_size),
                           .outer = (float)(outer * radius * spacing * grid->cell_size),
                           .strength = (float)(strength * radius * spacing * grid->cell_size),
                           .reach = (int)ceil(outer * radius * spacing - 1e-6),
                           .group = (uint32_t)(step->particles_per_cell < 8 ? 64 : 8 * step->particles_per_cell)};
    for (int d = 0; d < 3; d++) {
        double gap = 1e-3 * grid->cell_size; /* the same gap to walls as in the advection */
        frame.low[d] = (float)(grid->low[d] + gap);
        frame.high[d] = (float)(grid->high[d] - gap);
    }
    return frame;
}

/* Computes the displacement of every particle by one law; store_push stores it. */
typedef selkie_code (*push_function)(const spacing_frame *frame, law rule, void *scratch, selkie_error *error);

/* Runs `sweeps` of constraints, or the springs once if that is 0. */
static selkie_code run_laws(const spacing_frame *frame, int sweeps, push_function push, void *scratch,
                            selkie_error *error)
{
    sk_step *step = frame->step;
    double(*sums)[3] = sk_allocate(step->memory, ((size_t)step->grid.particle_blocks + 1) * sizeof *sums);
    if (!sums)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "spacing: no memory for the sums of %d blocks",
                       step->grid.particle_blocks);
    selkie_code code = SELKIE_OK;
    for (int sweep = 0; code == SELKIE_OK && sweep < (sweeps ? sweeps : 1); sweep++) {
        if (sweeps)
            code = push(frame, LAW_COUNT, scratch, error);
        if (code == SELKIE_OK)
            code = push(frame, sweeps ? LAW_CONSTRAIN : LAW_SPRING, scratch, error);
        if (code == SELKIE_OK)
            move_particles(frame, sums);
    }
    sk_release(step->memory, sums);
    return code;
}

#endif

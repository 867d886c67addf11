/* The plain form of the advection, one particle at a time: see advect_dim.c. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/flip/advect_frame.h"
#include "methods/flip/advect_kernels.h"
#include "methods/flip/flip.h"
#include "methods/flip/reflection_kernels.h"

static sk_advection advection_of(const advect_frame *frame)
{
    const sk_grid *grid = &frame->step->grid;
    sk_advection a = {.velocity = frame->velocity,
                      .inverse = frame->inverse,
                      .dt = frame->dt,
                      .order = frame->order,
                      .trapezoidal = frame->trapezoidal,
                      .end = frame->end,
                      .straight = frame->straight,
                      .reach = frame->reach};
    for (int d = 0; d < 3; d++) {
        a.corner[d] = frame->corner[d];
        a.low[d] = frame->low[d];
        a.high[d] = frame->high[d];
        a.leaves_below[d] = frame->open[2 * d] ? (float)grid->low[d] : -INFINITY;
        a.leaves_above[d] = frame->open[2 * d + 1] ? (float)grid->high[d] : INFINITY;
    }
    return a;
}

/* Moves a particle through the step. Returns whether it left the domain. */
static int advect_particle(const advect_frame *frame, const sk_advection *a, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    const int stays_inside = (particle->flags & SK_PARTICLE_INSIDE) != 0; /* left to the density projection */
    sk_traveller traveller = {{0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, (particle->flags & SK_PARTICLE_FLYING) != 0};
    memcpy(traveller.x, particle->position, SELKIE_DIM * sizeof(float));
    memcpy(traveller.own, particle->velocity, SELKIE_DIM * sizeof(float));
    float remaining = a->dt, start[3], drift[3] = {0.0f, 0.0f, 0.0f};
    int gone = 0;
    sk_touch touch = {.obstacle = -1}, met;
    memcpy(start, traveller.x, sizeof start);
    sk_field_velocity(a, &a->end, &traveller, start, drift);

    /* The path along the field. A reflected step begins with the velocity at its end. */
    /* More sub-steps mean a step far beyond any sensible length. */
    for (int sub_step = 0; sub_step < 1000 && remaining > 0.0f && !gone; sub_step++) {
        float k1[3] = {0.0f, 0.0f, 0.0f}, from[3];
        const float before = remaining;
        memcpy(from, traveller.x, sizeof from);
        if (sub_step == 0)
            memcpy(k1, drift, sizeof k1);
        else
            sk_travel_velocity(a, &traveller, traveller.x, k1);
        remaining -= sk_runge_kutta(a, &traveller, k1, sk_sub_step(a, k1, remaining));
        remaining = remaining < 1e-6f * a->dt ? 0.0f : remaining; /* a remainder from rounding counts as 0 */
        gone = sk_confine_to_walls(a, traveller.x);
        if (!gone && solids->obstacle_count &&
            sweep_particle(frame, from, traveller.x, 1.0 - before / a->dt, 1.0 - remaining / a->dt, stays_inside, &met))
            touch = met;
    }

    /* The straight drift, at the end of the step. */
    if (a->straight && !gone && touch.obstacle < 0) {
        float from[3];
        memcpy(from, traveller.x, sizeof from);
        sk_straighten(start, drift, a->dt, a->reach, traveller.x);
        gone = sk_confine_to_walls(a, traveller.x);
        if (!gone && solids->obstacle_count &&
            sweep_particle(frame, from, traveller.x, 1.0 - 1e-6, 1.0, stays_inside, &met))
            touch = met;
    }
    memcpy(particle->position, traveller.x, SELKIE_DIM * sizeof(float));
    if (gone)
        particle->flags |= SK_PARTICLE_DEAD;
    else
        sk_sweep_stop(solids, &touch, particle->position, particle->velocity);
    return gone;
}

/* Sums over a block's particles. */
typedef struct block_sums {
    double position[3]; /* m  sum of the final positions of particles still in the domain */
    int64_t gone;
} block_sums;

static block_sums advect_block(const advect_frame *frame, const sk_advection *a, int block)
{
    const uint32_t *start = frame->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    block_sums sums = {{0.0, 0.0, 0.0}, 0};
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        sk_particle *particle = &frame->step->particles.records[p];
        if (advect_particle(frame, a, particle))
            sums.gone++;
        else
            for (int d = 0; d < SELKIE_DIM; d++)
                sums.position[d] += (double)particle->position[d];
    }
    return sums;
}

selkie_code SK_DIM(sk_flip_advect_plain)(sk_step *step, selkie_error *error)
{
    const int blocks = step->grid.particle_blocks;
    block_sums *sums;
    SK_TRY(sk_step_scratch(step, ((size_t)blocks + 1) * sizeof *sums, "advect", (void **)&sums, error));
    const advect_frame frame = frame_of(step);
    const sk_advection a = advection_of(&frame);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= blocks; b++)
        sums[b] = advect_block(&frame, &a, b);

    sk_particles_moved(&step->particles); /* no lists of migrating particles: the next sort finds them */
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memset(step->positions, 0, sizeof step->positions);
    /* In block order, so the bits do not depend on the number of threads. */
    for (int b = 1; b <= blocks; b++) {
        step->drained += sums[b].gone;
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums[b].position[d];
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_move_plain)(sk_step *step, selkie_error *error)
{
    SK_TRY(SK_DIM(sk_flip_to_particles_plain)(step, error));
    return SK_DIM(sk_flip_advect_plain)(step, error);
}

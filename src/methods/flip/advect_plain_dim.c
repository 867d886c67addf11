/* The plain form of the advection, one particle at a time: see advect_dim.c. */
#include <string.h>

#include "base/dimension.h"
#include "methods/flip/advect_frame.h"
#include "methods/flip/flip.h"

/* The obstacles on the path of a particle. */
typedef struct obstacles_met {
    const advect_frame *frame;
    int stays_inside; /* left inside an obstacle by the density projection */
    sk_touch touch;   /* the last one */
} obstacles_met;

static int sweep_path(void *obstacles, const float from[3], float to[3], double begin, double end)
{
    obstacles_met *met = obstacles;
    sk_touch touch;
    if (!sweep_particle(met->frame, from, to, begin, end, met->stays_inside, &touch))
        return 0;
    met->touch = touch;
    return 1;
}

/* Moves a particle through the step. Returns whether it left the domain. */
static int advect_particle(const advect_frame *frame, const sk_advection *a, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    obstacles_met met = {frame, (particle->flags & SK_PARTICLE_INSIDE) != 0, {.obstacle = -1}};
    sk_traveller traveller = {
        {0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}, (particle->flags & SK_PARTICLE_FLYING) != 0, NULL, SK_FAR_TILE};
    memcpy(traveller.x, particle->position, SELKIE_DIM * sizeof(float));
    memcpy(traveller.own, particle->velocity, SELKIE_DIM * sizeof(float));
    const int gone = sk_travel(a, &traveller, solids->obstacle_count ? sweep_path : NULL, &met);
    sk_grid_wrap(&frame->step->grid, traveller.x);
    memcpy(particle->position, traveller.x, SELKIE_DIM * sizeof(float));
    if (gone)
        particle->flags |= SK_PARTICLE_DEAD;
    else
        sk_sweep_stop(solids, &met.touch, particle->position, particle->velocity);
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

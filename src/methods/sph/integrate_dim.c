/* Moves the particles. Pressure keeps them inside the walls. A particle that crosses a wall all the same (a too long
 * step, a scene without boundary particles) is set back to the wall and loses its normal velocity. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/sweep.h"
#include "methods/sph/integrate_plain.h"
#include "methods/sph/sph.h"

typedef struct integrate_frame {
    sk_step *step;
    float dt;
    sk_sph_bounds bounds;
} integrate_frame;

/* Keeps the path of a particle out of obstacles, and removes its velocity into one that it met. `clearance`: cells from
 * its block to the nearest obstacle. */
static void sweep(const integrate_frame *frame, const float from[3], float clearance, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    sk_swept_path path = {.end = 1.0, .deepest = INFINITY};
    sk_touch touch;
    float travelled = 0.0f; /* m, or more */
    for (int d = 0; d < SELKIE_DIM; d++) {
        travelled += fabsf(particle->position[d] - from[d]);
        path.from[d] = from[d];
        path.to[d] = particle->position[d];
        path.low[d] = frame->bounds.low[d];
        path.high[d] = frame->bounds.high[d];
    }
    if (travelled < clearance * (float)solids->cell_size || !sk_sweep(solids, &path, &touch))
        return;
    memcpy(particle->position, path.to, SELKIE_DIM * sizeof(float));
    sk_sweep_stop(solids, &touch, particle->position, particle->velocity);
}

static void move(const integrate_frame *frame, float clearance, sk_particle *particle)
{
    const sk_grid *grid = &frame->step->grid;
    const float from[3] = {particle->position[0], particle->position[1], particle->position[2]};
    sk_sph_advance(grid, &frame->bounds, frame->dt, particle);
    if (frame->step->solids.obstacle_count && !(particle->flags & (SK_PARTICLE_DEAD | SK_PARTICLE_BOUNDARY)))
        sweep(frame, from, clearance, particle);
    sk_grid_wrap(grid, particle->position);
}

static void integrate_block(const integrate_frame *frame, int block, sk_sph_moved_sums *sums)
{
    const uint32_t *start = frame->step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const float clearance = frame->step->solids.clearance[block];
    memset(sums, 0, sizeof *sums);
    for (uint32_t i = start[0]; i < start[SK_BLOCK_CELLS]; i++) {
        sk_particle *particle = &frame->step->particles.records[i];
        move(frame, clearance, particle);
        sk_sph_add_moved(particle, sums);
    }
}

selkie_code SK_DIM(sk_sph_integrate)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    sk_sph_moved_sums *sums;
    SK_TRY(
        sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * sizeof *sums, "integrate", (void **)&sums, error));
    const integrate_frame frame = {.step = step, .dt = (float)step->dt, .bounds = sk_sph_bounds_of(grid, step->scene)};

#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block <= grid->particle_blocks; block++)
        integrate_block(&frame, block, &sums[block]);

    /* Sums in block order. */
    sk_particles_moved(&step->particles);
    double fastest2 = 0.0, kinetic = 0.0;
    int64_t bad = 0;
    memcpy(step->positions_before, step->positions, sizeof step->positions);
    memset(step->positions, 0, sizeof step->positions);
    for (int block = 1; block <= grid->particle_blocks; block++) {
        step->drained += sums[block].gone;
        bad += sums[block].bad;
        kinetic += sums[block].kinetic;
        fastest2 = fmax(fastest2, sums[block].fastest2);
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] += sums[block].position[d];
    }

    step->sums.kinetic = kinetic;
    step->sums.max_speed = sqrt(fastest2);
    step->sums.bad = bad;
    if (bad)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the velocity of %lld particles is not a number; the simulation blew up; try a "
            "smaller time.step or time.cfl",
            (long long)step->step_count + 1, step->time, (long long)bad);
    return SELKIE_OK;
}

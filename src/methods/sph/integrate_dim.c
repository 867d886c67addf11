/* Moves the particles. Pressure keeps them inside the walls. A particle that crosses a wall all the same (a too long
 * step, a scene without boundary particles) is set back to the wall and loses its normal velocity. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/sph/sph.h"

typedef struct integrate_frame {
    sk_step *step;
    float dt;
    float low[3], high[3]; /* m  bounds inside closed walls */
    int open[6];
} integrate_frame;

/* Removes the velocity component into the touched obstacle. */
static void leave_obstacle(const integrate_frame *frame, sk_particle *particle)
{
    const sk_solids *solids = &frame->step->solids;
    if (!sk_solids_near(solids, &frame->step->grid, particle->position) ||
        !sk_solids_push_out(solids, frame->low, frame->high, particle->position))
        return;
    double point[3] = {particle->position[0], particle->position[1], particle->position[2]}, normal[3], wall[3],
           into = 0.0;
    int obstacle;
    sk_solids_distance(solids, point, normal, &obstacle);
    sk_solids_velocity(solids, obstacle, point, wall);
    for (int d = 0; d < SELKIE_DIM; d++)
        into += (particle->velocity[d] - wall[d]) * normal[d];
    for (int d = 0; into < 0.0 && d < SELKIE_DIM; d++)
        particle->velocity[d] -= (float)(into * normal[d]);
}

static void move(const integrate_frame *frame, sk_particle *particle)
{
    const sk_grid *grid = &frame->step->grid;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float x = particle->position[d] + frame->dt * particle->velocity[d];
        if ((frame->open[2 * d] && x < (float)grid->low[d]) || (frame->open[2 * d + 1] && x > (float)grid->high[d]))
            particle->flags |= SK_PARTICLE_DEAD;
        if (x < frame->low[d]) {
            x = frame->low[d];
            particle->velocity[d] = fmaxf(particle->velocity[d], 0.0f);
        } else if (x > frame->high[d]) {
            x = frame->high[d];
            particle->velocity[d] = fminf(particle->velocity[d], 0.0f);
        }
        particle->position[d] = x;
    }
    if (frame->step->solids.obstacle_count && !(particle->flags & (SK_PARTICLE_DEAD | SK_PARTICLE_BOUNDARY)))
        leave_obstacle(frame, particle);
}

typedef struct block_sums {
    double position[3], kinetic, fastest2;
    int64_t gone, bad;
} block_sums;

static void integrate_block(const integrate_frame *frame, uint32_t from, uint32_t to, block_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (uint32_t i = from; i < to; i++) {
        sk_particle *particle = &frame->step->particles.records[i];
        move(frame, particle);
        double speed2 = 0.0;
        for (int d = 0; d < SELKIE_DIM; d++)
            speed2 += (double)particle->velocity[d] * particle->velocity[d];
        sums->bad += !(speed2 < 1e30);
        if (particle->flags & SK_PARTICLE_DEAD) {
            sums->gone++;
            continue;
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            sums->position[d] += particle->position[d];
        sums->kinetic += 0.5 * speed2;
        sums->fastest2 = speed2 > sums->fastest2 ? speed2 : sums->fastest2;
    }
}

selkie_code SK_DIM(sk_sph_integrate)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    block_sums *sums;
    SK_TRY(
        sk_step_scratch(step, ((size_t)grid->particle_blocks + 1) * sizeof *sums, "integrate", (void **)&sums, error));
    integrate_frame frame = {.step = step, .dt = (float)step->dt};
    for (int d = 0; d < 3; d++) {
        double gap = 1e-3 * grid->cell_size;
        frame.open[2 * d] = step->scene->domain.walls[2 * d] == SELKIE_WALL_OPEN;
        frame.open[2 * d + 1] = step->scene->domain.walls[2 * d + 1] == SELKIE_WALL_OPEN;
        frame.low[d] = frame.open[2 * d] ? -INFINITY : (float)(grid->low[d] + gap);
        frame.high[d] = frame.open[2 * d + 1] ? INFINITY : (float)(grid->high[d] - gap);
    }

#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int block = 1; block <= grid->particle_blocks; block++)
        integrate_block(&frame, grid->cell_start[(size_t)(block - 1) * SK_BLOCK_CELLS],
                        grid->cell_start[(size_t)block * SK_BLOCK_CELLS], &sums[block]);

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

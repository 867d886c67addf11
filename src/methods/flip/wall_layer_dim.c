/* FLIP's particles beside surfaces that hold the liquid.
 *
 * A no-slip surface changes the velocity of the faces beside it from that of the particles, on average, to its own.
 * FLIP gives this change to every particle near, to fast ones as to slow ones, so that a particle which already moves
 * with the surface becomes faster than it. The faces have the right velocity: a particle beside the surface is kept
 * within the range of those that it is interpolated from.
 *
 * At the edge of an obstacle in a stream a particle may lie still, on the surface or in the air behind the edge, beside
 * fast liquid. The change of the faces there is the acceleration of the liquid that passes; the particle takes it in
 * each step, although it does not pass, and its velocity grew to twice that of the stream while it did not move. So
 * beside obstacles no particle is much faster than the faces around it. Slower ones and directions are left alone.
 */
#include <math.h>

#include "base/dimension.h"
#include "grid/gather.h"
#include "methods/flip/advect_frame.h"
#include "methods/flip/flip.h"
#include "methods/flip/wall_layer_plain.h"

/* What the limit does in a block. */
typedef struct layer_sums {
    double kinetic;       /* m2/s2  gained */
    double before, after; /* m2/s2  largest square of a speed */
} layer_sums;

static double square_of(const sk_particle *particle)
{
    double sum = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum += (double)particle->velocity[d] * (double)particle->velocity[d];
    return sum;
}

/* Limits the particles of a block beside a surface; the others are left alone. */
static layer_sums limit_block(const advect_frame *frame, int block)
{
    const sk_step *step = frame->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    layer_sums sums = {0.0, 0.0, 0.0};
    if (!is_near_layer(step, block))
        return sums;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        sk_particle *particle = &step->particles.records[p];
        const double before = square_of(particle);
        limit_particle(step, &frame->end, frame->corner, frame->inverse, particle);
        const double after = square_of(particle);
        sums.kinetic += 0.5 * (after - before);
        sums.before = fmax(sums.before, before);
        sums.after = fmax(sums.after, after);
    }
    return sums;
}

/* m/s: the largest speed of all particles. */
static double find_fastest(const sk_step *step)
{
    double most = 0.0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(max : most)
    for (uint32_t p = 0; p < (uint32_t)step->particles.count; p++) {
        const double square = square_of(&step->particles.records[p]);
        most = square > most ? square : most;
    }
    return sqrt(most);
}

selkie_code SK_DIM(sk_flip_wall_layer)(sk_step *step, selkie_error *error)
{
    const int blocks = step->grid.particle_blocks;
    layer_sums *sums, all = {0.0, 0.0, 0.0};
    SK_TRY(sk_step_scratch(step, ((size_t)blocks + 1) * sizeof *sums, "wall_layer", (void **)&sums, error));
    const advect_frame frame = frame_of(step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b <= blocks; b++)
        sums[b] = limit_block(&frame, b);

    /* In the order of the blocks: the same bits on any number of threads. */
    for (int b = 1; b <= blocks; b++) {
        all.kinetic += sums[b].kinetic;
        all.before = fmax(all.before, sums[b].before);
        all.after = fmax(all.after, sums[b].after);
    }
    step->sums.kinetic += all.kinetic;
    /* The fastest particle may be slower now. The move has its speed in single precision. */
    if (all.after < all.before && sqrt(all.before) > (1.0 - 1e-6) * step->sums.max_speed)
        step->sums.max_speed = find_fastest(step);
    else
        step->sums.max_speed = fmax(step->sums.max_speed, sqrt(all.after));
    return SELKIE_OK;
}

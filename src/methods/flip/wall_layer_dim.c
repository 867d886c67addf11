/* FLIP's particles beside surfaces that hold the liquid.
 *
 * A no-slip surface changes the velocity of the faces beside it from that of the particles, on average, to its own.
 * FLIP gives this change to every particle near, to fast ones as to slow ones, so that a particle which already moves
 * with the surface becomes faster than it. The faces have the right velocity: a particle beside the surface is kept
 * within the range of those that it is interpolated from.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/gather.h"
#include "methods/flip/advect_frame.h"
#include "methods/flip/flip.h"
#include "methods/flip/wall_layer_plain.h"

/* Limits the particles of a block. Returns the sums of all of them. */
static sk_particle_sums limit_block(const advect_frame *frame, int block)
{
    const sk_step *step = frame->step;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    const int near = step->solids.block_slot[block] || step->solids.moving_count;
    sk_particle_sums sums = {0.0, 0.0, 0};
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        sk_particle *particle = &step->particles.records[p];
        double speed2 = 0.0;
        if (near)
            limit_particle(step, &frame->end, frame->corner, frame->inverse, particle);
        for (int d = 0; d < SELKIE_DIM; d++)
            speed2 += (double)particle->velocity[d] * (double)particle->velocity[d];
        sums.kinetic += 0.5 * speed2;
        sums.max_speed = fmax(sums.max_speed, sqrt(speed2));
    }
    return sums;
}

selkie_code SK_DIM(sk_flip_wall_layer)(sk_step *step, selkie_error *error)
{
    const int blocks = step->grid.particle_blocks;
    sk_particle_sums *sums;
    SK_TRY(sk_step_scratch(step, ((size_t)blocks + 1) * sizeof *sums, "wall_layer", (void **)&sums, error));
    const advect_frame frame = frame_of(step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b <= blocks; b++)
        sums[b] = limit_block(&frame, b);

    /* In the order of the blocks: the same bits on any number of threads. */
    memset(&step->sums, 0, sizeof step->sums);
    for (int b = 1; b <= blocks; b++)
        sk_particle_sums_add(&step->sums, &sums[b]);
    return SELKIE_OK;
}

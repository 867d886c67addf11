/* The density of the particles where they would be at the end of a step.
 *
 * Each particle is moved by the shift and by the velocity that the grid has for it, kept within closed walls and out of
 * obstacles, and weighs on the cells around that place. Nothing is linearised: liquid that flies freely keeps its
 * density exactly, whatever its speed, where density minus the divergence of a mass flux would make every front that
 * advances look too dense. The particles themselves stay where they are.
 */
#ifndef SK_GRID_PREDICT_H
#define SK_GRID_PREDICT_H

#include "grid/grid.h"
#include "grid/solids.h"

typedef struct sk_predict_options {
    float density_per_particle; /*   1 / particles per cell at rest */
    float dt;                   /* s */
    int shifted;                /*   by SHIFT_* first */
    const sk_solids *solids;    /*   where they will be; up to date with the grid's blocks */
    /* Blocks that are asked for, `wanted_stride` bytes apart, from that of block 0 on; NULL = all. Then cells of theirs
     * and one cell around them are filled, and particles must not move farther than half a cell. */
    const uint8_t *wanted;
    size_t wanted_stride;
    int threads;
} sk_predict_options;

/* Fills PREDICTED from the particles, VELOCITY_* and SHIFT_*. A particle counts at most three cells away from its
 * block. */
selkie_code sk_predict_density_2d(sk_grid *grid, const sk_particles *particles, const sk_predict_options *options,
                                  selkie_error *error);
selkie_code sk_predict_density_3d(sk_grid *grid, const sk_particles *particles, const sk_predict_options *options,
                                  selkie_error *error);

#endif

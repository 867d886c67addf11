/* Predicted density: the density of the particles at their positions at the end of a step.
 *
 * Each particle moves by the shift and by the grid's velocity. It stays within closed walls and out of obstacles, and
 * adds its weight to the cells around its new position. Nothing is linearised: liquid in free flight keeps its density
 * exactly at any speed. Density minus the divergence of a mass flux would make every advancing front look too dense.
 * The stored positions do not change.
 */
#ifndef SK_GRID_PREDICT_H
#define SK_GRID_PREDICT_H

#include "grid/grid.h"
#include "grid/solids.h"

typedef struct sk_predict_options {
    float density_per_particle; /*   1 / particles per cell at rest */
    float dt;                   /* s */
    int shifted;                /*   by SHIFT_* first */
    const sk_solids *solids;    /* solids at the end of the step; up to date with the grid's blocks */
    /* Flags of wanted blocks, `wanted_stride` bytes apart, block 0 first; NULL = all. Only cells of wanted blocks and
     * one cell around them are then filled. Particles must not move farther than half a cell in that case. */
    const uint8_t *wanted;
    size_t wanted_stride;
    int threads;
} sk_predict_options;

/* Fills PREDICTED from the particles, VELOCITY_* and SHIFT_*. A particle counts at most three cells outside its block.
 */
selkie_code sk_predict_density_2d(sk_grid *grid, const sk_particles *particles, const sk_predict_options *options,
                                  selkie_error *error);
selkie_code sk_predict_density_3d(sk_grid *grid, const sk_particles *particles, const sk_predict_options *options,
                                  selkie_error *error);

#endif

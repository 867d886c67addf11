/* Grid-to-particle velocities, one block at a time. Advection uses it to move particles while they are in the cache.
 * For files compiled per dimension. */
#ifndef SK_GRID_GATHER_H
#define SK_GRID_GATHER_H

#include "base/simd.h"
#include "grid/tile.h"
#include "grid/transfer.h"

/* The grid's velocity at particles: component d of particle p is values[d * stride + p], m/s, NaN if unknown. Sixteen
 * floats beyond the last may be read. NULL = not sampled. */
typedef struct sk_carried {
    float *values;
    size_t stride;
    uint32_t end; /* end of the particles that whole batches may overwrite */
} sk_carried;

/* Outputs of the transfer to the particles of a block, and its sums. */
typedef struct sk_gather {
    sk_transfer_kind kind;
    float corner[3], inverse, ratio;
    const float *plain[3]; /* the grid's velocity, NaN if unknown; NULL if the particles take it as it is */
    const float *flying;   /* for the cells of the block: see sk_transfer_options; NULL = flags stay */
    iw flags_kept;
    fw speed_max; /* (m/s)^2 */
    d8 kinetic;
    int64_t bad;
    _Alignas(
        64) float tiles[SELKIE_DIM][SK_ROW_TILE_VALUES]; /* sampled to give the new velocities; unknown values are 0 */
} sk_gather;

/* Loads the fields around a block. `plain` is the grid's velocity, NaN if unknown. Its rows are those of a row tile,
 * and its planes are `plain_plane` apart. */
void SK_DIM(sk_gather_begin)(sk_gather *gather, const sk_transfer_options *options, const sk_grid *grid, int block,
                             const float *const plain[3], int plain_plane);
void SK_DIM(sk_gather_end)(const sk_gather *gather, sk_particle_sums *sums);
/* Sums over the blocks, in their order. */
static inline void sk_particle_sums_add(sk_particle_sums *sums, const sk_particle_sums *more)
{
    sums->kinetic += more->kinetic;
    sums->max_speed = more->max_speed > sums->max_speed ? more->max_speed : sums->max_speed;
    sums->bad += more->bad;
}

#endif

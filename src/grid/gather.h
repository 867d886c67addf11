/* Velocities from the grid to the particles, a block at a time: for whoever has more to do with the particles while
 * they are near (advection). For files compiled per dimension. */
#ifndef SK_GRID_GATHER_H
#define SK_GRID_GATHER_H

#include "base/simd.h"
#include "grid/tile.h"
#include "grid/transfer.h"

/* The grid's velocity at particles: component d of particle p at values[d * stride + p], m/s, NaN where it is unknown.
 * Sixteen floats beyond the last may be read. NULL = nobody has sampled it. */
typedef struct sk_carried {
    float *values;
    size_t stride;
    uint32_t end; /* one past the last particle that may be written with whole batches */
} sk_carried;

/* What the particles of a block are given, and what is found on the way. */
typedef struct sk_gather {
    sk_transfer_kind kind;
    float corner[3], inverse, ratio;
    const float *plain[3]; /* the grid's velocity, NaN where unknown; NULL if that is what they become */
    const float *flying;   /* of the block's cells: see sk_transfer_options; NULL = flags stay */
    iw flags_kept;
    fw speed_max; /* (m/s)^2 */
    d8 kinetic;
    int64_t bad;
    _Alignas(64) float tiles[SELKIE_DIM][SK_ROW_TILE_VALUES]; /* what velocities become; 0 where unknown */
} sk_gather;

/* Reads the fields around a block. `plain` is the grid's velocity, NaN where it is unknown, in rows as those of a row
 * tile, whose planes are `plain_plane` apart. */
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

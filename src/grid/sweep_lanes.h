/* Which paths of a batch of particles can meet a rigid body: most particles near bodies do not, and a test of lanes is
 * much cheaper than a call of sk_sweep() for each. For files compiled per dimension. */
#ifndef SK_GRID_SWEEP_LANES_H
#define SK_GRID_SWEEP_LANES_H

#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/sweep.h"

/* Paths of a batch of particles, straight, and the shares of the step at which they begin and end. */
typedef struct sk_lane_paths {
    const fw *from, *to; /* m  [dimension] */
    fw begin, end;
} sk_lane_paths;

/* may_meet() of sweep_plain.h for a batch and a body, in single precision: the margin (m) covers its rounding. The ball
 * is that of the pose: seen from its moving centre, a path is straight again. */
static inline __attribute__((always_inline, unused)) iw sk_lanes_may_meet(const sk_obstacle *body, float margin,
                                                                          const sk_lane_paths *paths)
{
    iw outside = iw_splat(0);
    fw start[SELKIE_DIM], way[SELKIE_DIM], along = fw_splat(0.0f), length2 = fw_splat(1e-30f), apart2 = fw_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++)
        outside |= (fw_max(paths->from[d], paths->to[d]) < (float)body->swept_low[d] - margin) |
                   (fw_min(paths->from[d], paths->to[d]) > (float)body->swept_high[d] + margin);
    if (!iw_any(~outside)) /* most batches */
        return iw_splat(0);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fw from = paths->from[d], to = paths->to[d];
        start[d] = from - (float)body->ball_start[d] - paths->begin * (float)body->ball_way[d];
        way[d] = to - (float)body->ball_start[d] - paths->end * (float)body->ball_way[d] - start[d];
        along -= start[d] * way[d];
        length2 += way[d] * way[d];
    }
    const fw nearest = fw_min(fw_max(along / length2, fw_splat(0.0f)), fw_splat(1.0f));
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fw apart = start[d] + nearest * way[d];
        apart2 += apart * apart;
    }
    const float reach = (float)body->ball + margin;
    return ~(outside | (apart2 > reach * reach));
}

/* Sampled distances (cells) for a batch of particles of one row of cells; `first` is a cell of the row. Sixteen
 * distances follow each other in memory: the row, or in 3D two rows. */
static inline __attribute__((always_inline, unused)) fw sk_lanes_distances(const sk_solids *solids, size_t slot,
                                                                           int first, iw cells)
{
    if (solids->plain[slot])
        return fw_splat(SK_SWEEP_SAMPLED);
    return fw_look_up(solids->distance + slot * SK_BLOCK_CELLS + (first & ~15), 16, cells & 15);
}

/* The clearance (cells) of the particles in each row of cells of a block: sk_sweep_is_place_clear() for all of its
 * particles at once, wherever they lie in their cells. `least` is that of the block. */
enum { SK_BLOCK_ROWS = SK_BLOCK_CELLS / SK_BLOCK_N };
static inline __attribute__((unused)) void sk_lanes_row_clearance(const sk_solids *solids, int block, float least,
                                                                  float rows[SK_BLOCK_ROWS])
{
    const size_t slot = (size_t)solids->block_slot[block];
    const float farthest = SELKIE_DIM == 3 ? 0.867f : 0.708f, /* from the centre of a cell, and rounding */
        sampled = SK_SWEEP_SAMPLED - solids->motion - sk_sweep_sample_error(solids, slot) - 1e-3f;
    const float *distance = solids->distance + slot * SK_BLOCK_CELLS;
    for (int row = 0; row < SK_BLOCK_ROWS; row++) {
        rows[row] = least;
        if (least >= sampled || solids->plain[slot])
            continue;
        float nearest = distance[SK_BLOCK_N * row];
        for (int i = 1; i < SK_BLOCK_N; i++)
            nearest = distance[SK_BLOCK_N * row + i] < nearest ? distance[SK_BLOCK_N * row + i] : nearest;
        const float clear =
            sampled + (nearest - farthest < SK_SWEEP_SAMPLED ? nearest - farthest - SK_SWEEP_SAMPLED : 0.0f);
        rows[row] = clear > least ? clear : least;
    }
}

/* A margin (m) of such tests: that of may_meet() and rounding. */
static inline __attribute__((unused)) float sk_lanes_margin(const sk_solids *solids)
{
    double largest = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double low = fabs(solids->low[d]), high = fabs(solids->high[d]), most = low > high ? low : high;
        largest = most > largest ? most : largest;
    }
    return (float)(6.0 * SK_SWEEP_GAP * solids->cell_size + 1e-6 * largest);
}

/* Lanes that can meet a body near their block. They lie in cells of the block (`known`) or have come from there by less
 * than SK_SWEEP_SAMPLED, the motion of the bodies included. Other lanes may meet anything, and so may all where there
 * are other obstacles or joined sides. */
static inline __attribute__((unused)) iw sk_lanes_may_meet_bodies(const sk_solids *solids, const sk_grid *grid,
                                                                  int block, iw known, const sk_lane_paths *paths)
{
    iw may = ~known;
    if (solids->obstacle_count > solids->body_count || grid->periodic)
        return iw_splat(-1);
    const float margin = sk_lanes_margin(solids);
    for (uint32_t n = solids->piece_first[block]; n < solids->piece_first[block + 1]; n++)
        may |= sk_lanes_may_meet(&solids->obstacles[solids->pieces[n].body], margin, paths);
    return may;
}

#endif

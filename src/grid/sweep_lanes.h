/* Which paths of a batch of particles can meet a rigid body: most particles near bodies do not, and a test of lanes is
 * much cheaper than a call of sk_sweep() for each. For files compiled per dimension. */
#ifndef SK_GRID_SWEEP_LANES_H
#define SK_GRID_SWEEP_LANES_H

#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/sweep.h"

/* may_meet() of sweep_plain.h for a batch and a body, in single precision: the margin (m) covers its rounding. */
static inline __attribute__((always_inline, unused)) iw sk_lanes_may_meet(const sk_obstacle *body, float margin,
                                                                          const fw from[3], const fw to[3])
{
    iw outside = iw_splat(0);
    fw apart2 = fw_splat(0.0f), reach = fw_splat((float)body->reach + margin);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fw apart = 0.5f * (from[d] + to[d]) - (float)body->middle[d];
        outside |= (fw_max(from[d], to[d]) < (float)body->swept_low[d] - margin) |
                   (fw_min(from[d], to[d]) > (float)body->swept_high[d] + margin);
        apart2 += apart * apart;
        reach += 0.5f * fw_abs(to[d] - from[d]);
    }
    return ~(outside | (apart2 > reach * reach));
}

/* Lanes that can meet a body near their block. They lie in cells of the block (`known`) or have come from there by less
 * than SK_SWEEP_SAMPLED, the motion of the bodies included. Other lanes may meet anything, and so may all where there
 * are other obstacles or joined sides. */
static inline __attribute__((unused)) iw sk_lanes_may_meet_bodies(const sk_solids *solids, const sk_grid *grid,
                                                                  int block, iw known, const fw from[3], const fw to[3])
{
    iw may = ~known;
    double largest = 0.0;
    if (solids->obstacle_count > solids->body_count || grid->periodic)
        return iw_splat(-1);
    for (int d = 0; d < SELKIE_DIM; d++)
        largest = fmax(largest, fmax(fabs(solids->low[d]), fabs(solids->high[d])));
    const float margin = (float)(0.02 * solids->cell_size + 1e-6 * largest);
    for (uint32_t n = solids->piece_first[block]; n < solids->piece_first[block + 1]; n++)
        may |= sk_lanes_may_meet(&solids->obstacles[solids->pieces[n].body], margin, from, to);
    return may;
}

#endif

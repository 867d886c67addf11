/* Grid-to-particle transfer for a batch of particles in a row of cells. The lanes are particles (lanes.h). Used by the
 * transfer alone and by the phase that transfers and then moves the particles. For files compiled per dimension. */
#ifndef SK_GRID_GATHER_LANES_H
#define SK_GRID_GATHER_LANES_H

#include "grid/gather.h"
#include "grid/lanes.h"

/* One component for the particles of a batch. d is a constant at each call, so that the compiler knows the number of
 * nodes. Returns the grid's velocity, NaN if unknown. */
static inline __attribute__((always_inline)) fw gather_component(const int d, const sk_transfer_kind kind,
                                                                 const sk_gather *g, const int plain_plane, fw r[8],
                                                                 const lane_weights *w, int j, int k, int lanes,
                                                                 float *affine)
{
    fw slopes[3] = {fw_splat(0.0f), fw_splat(0.0f), fw_splat(0.0f)};
    fw sampled = sample_component(d, g->tiles[d] + first_row(d, SK_ROW_PLANE, j, k), SK_ROW_PLANE, w,
                                  kind == SK_TRANSFER_APIC ? slopes : NULL);
    r[3 + d] = kind == SK_TRANSFER_FLIP ? g->ratio * r[3 + d] + sampled : sampled;
    for (int e = 0; kind == SK_TRANSFER_APIC && e < SELKIE_DIM; e++) {
        const fw slope = slopes[e] * g->inverse;
        for (int l = 0; l < lanes; l++)
            affine[9 * (size_t)l + (size_t)(3 * d + e)] = slope[l];
    }
    /* The compiler must not fold these for FLIP: the two fields differ. */
    if (kind != SK_TRANSFER_FLIP && !g->plain[d])
        return sampled;
    return sample_component(d, g->plain[d] + first_row(d, plain_plane, j, k), plain_plane, w, NULL);
}

/* Sets velocities and flags of a batch in `r`, the columns of the records, and samples the grid's velocities. Returns
 * whether all values are finite. Planes of g->plain are `plain_plane` apart. `flying` holds values of the row's cells,
 * or is NULL. `affine` points at the first particle's matrix. */
static inline __attribute__((always_inline)) int gather_batch(const sk_transfer_kind kind, sk_gather *g,
                                                              const int plain_plane, fw r[8], const lane_weights *w,
                                                              float *affine, int lanes, int j, int k,
                                                              const float *flying, fw carried[3])
{
    carried[0] = gather_component(0, kind, g, plain_plane, r, w, j, k, lanes, affine);
    carried[1] = gather_component(1, kind, g, plain_plane, r, w, j, k, lanes, affine);
    fw speed2 = r[3] * r[3] + r[4] * r[4];
#if SELKIE_DIM == 3
    carried[2] = gather_component(2, kind, g, plain_plane, r, w, j, k, lanes, affine);
    speed2 += r[5] * r[5];
#endif
    iw flags = (iw)r[7] & g->flags_kept;
    if (flying) {
        float cells[32] = {0};
        memcpy(cells, flying, SK_BLOCK_N * sizeof *cells);
        flags |= (fw_look_up(cells, SK_BLOCK_N, w->cell) > 0.0f) & (int32_t)SK_PARTICLE_FLYING;
    }
    r[7] = (fw)flags;
    /* Idle lanes repeat the last particle. The maximum stays right, and the sum leaves them out. */
    g->speed_max = fw_max(speed2, g->speed_max);
    speed2 = fw_select(iw_first(lanes), speed2, fw_splat(0.0f));
    g->kinetic += d8_from_fw(speed2);
    iw good = speed2 < 1e30f;
    if (!iw_any(~good))
        return 1;
    for (int l = 0; l < lanes; l++)
        g->bad += !good[l];
    return 0;
}

#endif

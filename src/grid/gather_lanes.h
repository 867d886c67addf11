/* Grid-to-particle transfer for a batch of particles in a row of cells. The lanes are particles (lanes.h). Used by the
 * transfer alone and by the phase that transfers and then moves the particles. For files compiled per dimension. */
#ifndef SK_GRID_GATHER_LANES_H
#define SK_GRID_GATHER_LANES_H

#include "grid/gather.h"
#include "grid/lanes.h"

/* The particles of a row of cells. */
typedef struct particle_row {
    cell_row cells;
    int j, k;            /* the row of the block */
    uint32_t begin, end; /* its particles */
    const float *flying; /* for its cells: see sk_transfer_options; NULL = flags stay */
} particle_row;

/* The row from cell c of a block on. `flying` holds values of the cells of the block, or is NULL. */
static inline particle_row particles_of_row(const sk_grid *grid, int block, int c, const float *flying)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    return (particle_row){row_of_cell(grid, block, c), c >> SK_BLOCK_LOG & SK_BLOCK_MASK,
                          c >> (2 * SK_BLOCK_LOG),     start[c],
                          start[c + SK_BLOCK_N],       flying ? flying + c : NULL};
}

/* A batch of a row's particles. */
typedef struct gathered_batch {
    int plain_plane;     /* distance of the planes of sk_gather.plain, a constant at each call */
    int lanes;           /* particles */
    int j, k;            /* its row of the block */
    const float *flying; /* see particle_row */
    float *affine;       /* the first particle's matrix; APIC alone */
} gathered_batch;

/* One component for the particles of a batch. d is a constant at each call, so that the compiler knows the number of
 * nodes. Returns the grid's velocity, NaN if unknown. */
static inline __attribute__((always_inline)) fw gather_component(const int d, const sk_transfer_kind kind,
                                                                 const sk_gather *g, const gathered_batch *batch,
                                                                 fw r[8], const lane_weights *w)
{
    const int j = batch->j, k = batch->k, plain_plane = batch->plain_plane;
    fw slopes[3] = {fw_splat(0.0f), fw_splat(0.0f), fw_splat(0.0f)};
    fw sampled = sample_component(d, g->tiles[d] + first_row(d, SK_ROW_PLANE, j, k), SK_ROW_PLANE, w,
                                  kind == SK_TRANSFER_APIC ? slopes : NULL);
    r[3 + d] = kind == SK_TRANSFER_FLIP ? g->ratio * r[3 + d] + sampled : sampled;
    for (int e = 0; kind == SK_TRANSFER_APIC && e < SELKIE_DIM; e++) {
        const fw slope = slopes[e] * g->inverse;
        for (int l = 0; l < batch->lanes; l++)
            batch->affine[9 * (size_t)l + (size_t)(3 * d + e)] = slope[l];
    }
    /* The compiler must not fold these for FLIP: the two fields differ. */
    if (kind != SK_TRANSFER_FLIP && !g->plain[d])
        return sampled;
    return sample_component(d, g->plain[d] + first_row(d, plain_plane, j, k), plain_plane, w, NULL);
}

/* Sets velocities and flags of a batch in `r`, the columns of the records, and samples the grid's velocities. Returns
 * whether all values are finite. */
static inline __attribute__((always_inline)) int gather_batch(const sk_transfer_kind kind, sk_gather *g,
                                                              const gathered_batch *batch, fw r[8],
                                                              const lane_weights *w, fw carried[3])
{
    const int lanes = batch->lanes;
    const float *flying = batch->flying;
    carried[0] = gather_component(0, kind, g, batch, r, w);
    carried[1] = gather_component(1, kind, g, batch, r, w);
    fw speed2 = r[3] * r[3] + r[4] * r[4];
#if SELKIE_DIM == 3
    carried[2] = gather_component(2, kind, g, batch, r, w);
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

/* The transfer from the grid to the particles, a row of cells at a time: the lanes are particles (lanes.h). See transfer.h for
 * the scheme; the plain forms are in grid_kernels.h and the tests compare.
 */
#include "grid/gather.h"

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/lanes.h"
#include "grid/runs.h"

/* One component for the particles of a batch; called with a constant d, so that the nodes are counted at compile time. */
static inline __attribute__((always_inline)) void gather_component(const int d, const sk_transfer_kind kind,
                                                                   const sk_gather *g, fw r[8], const lane_weights *w, int j,
                                                                   int k, uint32_t first, int lanes, float *affine)
{
    const int row = first_row(d, j, k);
    fw slopes[3] = {fw_splat(0.0f), fw_splat(0.0f), fw_splat(0.0f)};
    fw sampled = sample_component(d, 0, g->tiles[d] + row, w, kind == SK_TRANSFER_APIC ? slopes : NULL);
    r[3 + d] = kind == SK_TRANSFER_FLIP ? g->ratio * r[3 + d] + sampled : sampled;
    if (g->carried.values) {
        float *carried = g->carried.values + (size_t)d * g->carried.stride + (first - g->carried.first);
        if (g->plain[d])
            sampled = sample_component(d, 0, g->plain[d] + row, w, NULL);
        /* Idle lanes write where the next particles follow with theirs. */
        if (first + SK_WIDE <= g->end)
            fw_store(carried, sampled);
        else
            for (int l = 0; l < lanes; l++)
                carried[l] = sampled[l];
    }
    if (kind != SK_TRANSFER_APIC)
        return;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const fw slope = slopes[e] * g->inverse;
        for (int l = 0; l < lanes; l++)
            affine[9 * (size_t)l + (size_t)(3 * d + e)] = slope[l];
    }
}

/* The particles of one row of cells; `flying` is of those cells, or NULL. */
static inline __attribute__((always_inline)) void gather_row(const sk_transfer_kind kind, sk_gather *g, sk_particle *records,
                                                             float *affine, uint32_t begin, uint32_t end, const cell_row *row,
                                                             int j, int k, const float *flying)
{
    for (uint32_t first = begin; first < end; first += SK_WIDE) {
        int lanes = end - first < SK_WIDE ? (int)(end - first) : SK_WIDE;
        fw r[8];
        KEEP_IN_MEMORY(j);
        fw_load_columns(sk_particle_floats(records + first), lanes, r);
        fw_load_columns(sk_particle_floats(records + first) + 4, lanes, r + 4);
        lane_weights w;
        lanes_of(r, g->corner, g->inverse, row, kind == SK_TRANSFER_APIC, &w);
        float *slopes = kind == SK_TRANSFER_APIC ? affine + 9 * (size_t)first : NULL;
        gather_component(0, kind, g, r, &w, j, k, first, lanes, slopes);
        gather_component(1, kind, g, r, &w, j, k, first, lanes, slopes);
        fw speed2 = r[3] * r[3] + r[4] * r[4];
#if SELKIE_DIM == 3
        gather_component(2, kind, g, r, &w, j, k, first, lanes, slopes);
        speed2 += r[5] * r[5];
#endif
        iw flags = (iw)r[7] & g->flags_kept;
        if (flying) {
            float cells[32] = {0};
            memcpy(cells, flying, SK_BLOCK_N * sizeof *cells);
            flags |= (fw_look_up(cells, SK_BLOCK_N, w.cell) > 0.0f) & (int32_t)SK_PARTICLE_FLYING;
        }
        r[7] = (fw)flags;
        fw_store_columns(sk_particle_floats(records + first), lanes, r);
        fw_store_columns(sk_particle_floats(records + first) + 4, lanes, r + 4);
        /* Idle lanes repeat the last particle: harmless for the largest, left out of the sum. */
        g->speed_max = fw_max(speed2, g->speed_max);
        speed2 = fw_select(iw_first(lanes), speed2, fw_splat(0.0f));
        g->kinetic += d8_from_fw(speed2);
        iw good = speed2 < 1e30f;
        if (iw_any(~good))
            for (int l = 0; l < lanes; l++)
                g->bad += !good[l];
    }
}

void SK_DIM(sk_gather_begin)(sk_gather *g, const sk_transfer_options *options, const sk_grid *grid, int block)
{
    const float ratio = options->flip_ratio;
    float change[SK_TILE_VALUES(1)] = {0};
    const sk_tile_rows rows = sk_tile_rows_around(grid->occupied[block]);
    g->kind = options->kind;
    g->inverse = (float)(1.0 / grid->cell_size);
    g->ratio = ratio;
    g->flying = options->flying ? options->flying + (size_t)block * SK_BLOCK_CELLS : NULL;
    g->flags_kept = iw_splat(g->flying ? (int32_t)~SK_PARTICLE_FLYING : -1);
    g->speed_max = fw_splat(0.0f);
    memset(&g->kinetic, 0, sizeof g->kinetic);
    g->bad = 0;
    for (int d = 0; d < 3; d++)
        g->corner[d] = (float)grid->corner[d];
    for (int d = 0; d < SELKIE_DIM; d++) {
        int unknown = 0;
        float *mixed = g->mixed_values[d], *plain = g->plain_values[d];
        g->tiles[d] = mixed;
        memset(plain, 0, sizeof g->plain_values[d]);
        sk_tile_load_rows(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, &rows, plain);
        /* A node of weight zero may be unknown, and zero times NaN is NaN. */
        for (int i = 0; i < SK_TILE_VALUES(1); i++) {
            int known = plain[i] == plain[i];
            mixed[i] = known ? plain[i] : 0.0f;
            unknown |= !known;
        }
        g->plain[d] = unknown || g->kind == SK_TRANSFER_FLIP ? plain : NULL;
        if (g->kind != SK_TRANSFER_FLIP)
            continue;
        /* ratio (v + change) + (1 - ratio) velocity is linear in the fields: mixed here, they are sampled once. */
        sk_tile_load_rows(grid, grid->fields[SK_FIELD_CHANGE_X + d], block, &rows, change);
        for (int i = 0; i < SK_TILE_VALUES(1); i++)
            mixed[i] = (change[i] == change[i] ? ratio * change[i] : 0.0f) + (1.0f - ratio) * mixed[i];
    }
}

void SK_DIM(sk_gather_cells)(sk_gather *g, const sk_grid *grid, sk_particle *records, float *affine, int block, int first, int last)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (int c = first; c < last; c += SK_BLOCK_N) {
        const uint32_t begin = start[c], end = start[c + SK_BLOCK_N];
        if (begin == end)
            continue;
        const int j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> (2 * SK_BLOCK_LOG);
        const float *flying = g->flying ? g->flying + c : NULL;
        const cell_row row = row_of_cell(grid, block, c);
        if (g->kind == SK_TRANSFER_FLIP)
            gather_row(SK_TRANSFER_FLIP, g, records, NULL, begin, end, &row, j, k, flying);
        else if (g->kind == SK_TRANSFER_PIC)
            gather_row(SK_TRANSFER_PIC, g, records, NULL, begin, end, &row, j, k, flying);
        else
            gather_row(SK_TRANSFER_APIC, g, records, affine, begin, end, &row, j, k, flying);
    }
}

void SK_DIM(sk_gather_end)(const sk_gather *g, sk_particle_sums *sums)
{
    sums->kinetic = 0.5 * d8_sum(g->kinetic);
    sums->max_speed = sqrt((double)fw_largest(g->speed_max));
    sums->bad = g->bad;
}

selkie_code SK_DIM(sk_transfer_to_particles)(sk_grid *grid, sk_particles *particles, const sk_transfer_options *options,
                                             sk_particle_sums *sums, selkie_error *error)
{
    const sk_attribute *affine = options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;
    /* Partial sums by block, added up in order: the same bits on any number of threads. */
    sk_particle_sums *partial = NULL;
    size_t room = 0;
    SK_TRY(sk_reserve(grid->memory, (void **)&partial, &room, (size_t)grid->particle_blocks + 1, sizeof *partial, "grid to particles", error));
    particles->carried = sk_particles_scratch(particles);
#pragma omp parallel for num_threads(options->threads) schedule(dynamic, 2)
    for (int b = 1; b <= grid->particle_blocks; b++) {
        sk_gather gather = {.carried = {particles->carried, (size_t)particles->count, 0},
                            .end = grid->cell_start[(size_t)b * SK_BLOCK_CELLS]};
        SK_DIM(sk_gather_begin)(&gather, options, grid, b);
        SK_DIM(sk_gather_cells)(&gather, grid, particles->records, affine ? (float *)affine->data : NULL, b, 0, SK_BLOCK_CELLS);
        SK_DIM(sk_gather_end)(&gather, &partial[b]);
    }
    memset(sums, 0, sizeof *sums);
    for (int b = 1; b <= grid->particle_blocks; b++)
        sk_particle_sums_add(sums, &partial[b]);
    sk_release(grid->memory, partial);
    return SELKIE_OK;
}

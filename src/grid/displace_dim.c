/* Moves particles by a displacement on the faces of the grid: see transfer.h. */
#include "grid/transfer.h"

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/lanes.h"
#include "grid/sweep_lanes.h"
#include "particles/leavers.h"
#include "grid/runs.h"
#include "grid/tile.h"

/* Component d of a displacement at the particles. Along axis d it is that of the nearest face, across d it is linear.
 * `rows` points at the first row of nodes. */
static inline __attribute__((always_inline)) fw sample_nearest(const int d, const float *rows, const lane_weights *w)
{
    const int ny = d == 1 ? 1 : 3, nz = SELKIE_DIM == 2 || d == 2 ? 1 : 3, next = d == 1 ? SK_ROW_PITCH : SK_ROW_PLANE;
    /* For faces across x the nearest node is a column of the row. For other faces it lies in one of two rows. */
    const iw upper = d == 0 ? iw_splat(0) : w->face[d][1] >= 0.5f;
    const iw nearest_column = w->face_column - (w->face_way >= 0.5f); /* minus all ones */
    fw total = fw_splat(0.0f);
#pragma GCC unroll 3
    for (int k = 0; k < nz; k++) {
        fw plane = fw_splat(0.0f);
#pragma GCC unroll 3
        for (int j = 0; j < ny; j++) {
            const float *row = rows + SK_ROW_PITCH * j + SK_ROW_PLANE * k;
            fw value;
            if (d == 0) {
                value = fw_look_up(row, SK_ROW_PITCH, nearest_column);
            } else {
                fw beside;
                fw_look_up_either_pairs(row, row + next, SK_ROW_PITCH, w->centre_column, upper, &value, &beside);
                value += w->centre_way * (beside - value);
            }
            plane += d == 1 ? value : w->centre[1][j] * value;
        }
        total += SELKIE_DIM == 2 || d == 2 ? plane : w->centre[SELKIE_DIM - 1][k] * plane;
    }
    return total;
}

/* What the rows of a block share. */
typedef struct displaced_block {
    sk_grid *grid;
    sk_particle *records;
    const sk_displacement *by;
    float corner[3], inverse, cell_size; /* m, 1/m, m */
    const float *tiles[3];               /* displacements around the block, cells */
    float clearance[SK_BLOCK_ROWS];      /* cells to the nearest obstacle, or less, for each row of cells */
    sk_leavers leavers;
} displaced_block;

/* sk_sweep_is_place_clear() for a batch that is displaced by `length` cells at most. */
static iw lanes_clear(const displaced_block *in, int row, iw cells, const fw from[3], fw length)
{
    const sk_solids *solids = in->by->solids;
    const size_t slot = (size_t)solids->block_slot[in->leavers.block];
    const fw distance = sk_lanes_distances(solids, slot, row, cells);
    fw off2 = fw_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const fw place = (from[d] - in->corner[d]) * in->inverse, off = place - fw_from_iw(iw_from_fw(place)) - 0.5f;
        off2 += off * off;
    }
    const fw least = length + solids->motion + sk_sweep_sample_error(solids, slot);
    return (fw_abs(distance) - fw_sqrt(off2) > least) & (least < SK_SWEEP_SAMPLED);
}

/* Moves the ends of displacements back to where no obstacle is crossed. */
static __attribute__((noinline)) void sweep_lanes(const displaced_block *in, uint32_t p, unsigned wanted,
                                                  const float (*from)[SK_WIDE], float (*to)[SK_WIDE])
{
    sk_swept_path path = {.begin = 0.0};
    memcpy(path.low, in->by->low, sizeof path.low);
    memcpy(path.high, in->by->high, sizeof path.high);
    for (unsigned some = wanted; some; some &= some - 1) {
        const int l = __builtin_ctz(some);
        float before[3] = {0.0f, 0.0f, 0.0f};
        sk_particle moved = {.flags = in->records[p + (uint32_t)l].flags};
        for (int d = 0; d < SELKIE_DIM; d++)
            before[d] = from[d][l], moved.position[d] = to[d][l];
        sk_sweep_displaced_particle(in->by->solids, &path, before, &moved);
        in->records[p + (uint32_t)l].flags = moved.flags;
        for (int d = 0; d < SELKIE_DIM; d++)
            to[d][l] = moved.position[d];
    }
}

/* Keeps a batch of displacements out of obstacles, where one is near. */
static inline __attribute__((always_inline)) void keep_out(const displaced_block *in, uint32_t p, int lanes, int row,
                                                           iw cells, const fw from[3], fw to[3])
{
    fw length = fw_splat(0.0f);
    for (int d = 0; d < SELKIE_DIM; d++)
        length += fw_abs(to[d] - from[d]) * in->inverse;
    if (!iw_any(length >= in->clearance[row / SK_BLOCK_N]))
        return;
    const sk_solids *solids = in->by->solids;
    iw near = ~lanes_clear(in, row, cells, from, length) & iw_first(lanes);
    if (!iw_any(near))
        return;
    const sk_lane_paths paths = {from, to, fw_splat(0.0f), fw_splat(0.0f)};
    near &= sk_lanes_may_meet_bodies(solids, in->grid, in->leavers.block,
                                     length + solids->motion + 0.53f < SK_SWEEP_SAMPLED, &paths);
    const unsigned wanted = iw_bits(near);
    if (!wanted)
        return;
    float begin[SELKIE_DIM][SK_WIDE], end[SELKIE_DIM][SK_WIDE];
    memcpy(begin, from, sizeof begin);
    memcpy(end, to, sizeof end);
    sweep_lanes(in, p, wanted, (const float(*)[SK_WIDE])begin, end);
    for (int l = lanes; l < SK_WIDE; l++) /* the last particle again, which a store of all lanes writes last */
        for (int d = 0; d < SELKIE_DIM; d++)
            end[d][l] = end[d][lanes - 1];
    memcpy(to, end, sizeof end);
}

/* Puts the particles of a batch that stay back to their places. */
static __attribute__((noinline)) void keep_places(const uint32_t *places, int lanes, fw to[3])
{
    uint32_t any = 0;
    for (int n = 0; n < 3 * lanes; n++)
        any |= places[n];
    for (int l = 0; any && l < SK_WIDE; l++) {
        /* Idle lanes are as the last, which a store of all lanes writes last. */
        const uint32_t *place = places + 3 * (size_t)(l < lanes ? l : lanes - 1);
        float at[3];
        memcpy(at, place, sizeof at);
        for (int d = 0; d < SELKIE_DIM && (place[0] | place[1] | place[2]); d++)
            to[d][l] = at[d];
    }
}

/* Which of a batch do not stay where they are. Idle lanes are as the last. */
static inline iw free_lanes(const uint32_t *held, int lanes)
{
    iw values;
    for (int l = 0; l < SK_WIDE; l++)
        values[l] = (int32_t)held[l < lanes ? l : lanes - 1];
    return values == 0;
}

/* Moves the particles begin .. end - 1, those of some cells of row (j, k). */
static inline __attribute__((always_inline)) void displace_row(displaced_block *in, const cell_row *row, int j, int k,
                                                               uint32_t begin, uint32_t end)
{
    for (uint32_t p = begin; p < end; p += SK_WIDE) {
        int lanes = end - p < SK_WIDE ? (int)(end - p) : SK_WIDE;
        float *values = sk_particle_floats(in->records + p);
        fw r[4], moved[3];
        KEEP_IN_MEMORY(j);
        prefetch_ahead(in->records + p);
        fw_load_columns(values, lanes, r);
        lane_weights w;
        lanes_of(r, in->corner, in->inverse, row, 0, &w);
        moved[0] = r[0] + in->cell_size * sample_nearest(0, in->tiles[0] + first_row(0, SK_ROW_PLANE, j, k), &w);
        moved[1] = r[1] + in->cell_size * sample_nearest(1, in->tiles[1] + first_row(1, SK_ROW_PLANE, j, k), &w);
#if SELKIE_DIM == 3
        moved[2] = r[2] + in->cell_size * sample_nearest(2, in->tiles[2] + first_row(2, SK_ROW_PLANE, j, k), &w);
#endif

        /* Closed walls. In this order NaN stays NaN, and the sort finds it. */
        for (int d = 0; d < SELKIE_DIM; d++)
            moved[d] = fw_min(fw_splat(in->by->high[d]), fw_max(fw_splat(in->by->low[d]), moved[d]));
        const int first = (j << SK_BLOCK_LOG) + (k << 2 * SK_BLOCK_LOG);
        const iw cells = w.cell + first;
        if (__builtin_expect(in->by->solids != NULL, 0))
            keep_out(in, p, lanes, first, cells, r, moved);
        if (__builtin_expect(in->by->places != NULL, 0)) {
            fw kept[3] = {moved[0], moved[1], moved[SELKIE_DIM - 1]};
            keep_places(in->by->places + 3 * (size_t)p, lanes, kept);
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d] = kept[d];
        }
        if (__builtin_expect(in->by->held != NULL, 0)) {
            const iw are_free = free_lanes(in->by->held + p, lanes);
            for (int d = 0; d < SELKIE_DIM; d++)
                moved[d] = fw_select(are_free, moved[d], r[d]);
        }
        for (int d = 0; d < SELKIE_DIM; d++)
            r[d] = moved[d];
        if (__builtin_expect(in->by->wraps, 0))
            sk_wrap_batch(in->grid, r);
        fw_store_columns(values, lanes, r);

        /* The last sort dropped dead particles. */
        if (in->by->lists_leavers)
            sk_leavers_add(in->grid, &in->leavers, p, lanes, r, cells, iw_splat(0));
    }
}

/* Writes the cell keys of eight cells whose particles do not move. */
static void all_stay(sk_grid *grid, const uint32_t *start, int first)
{
    for (int c = first; c < first + 8; c++)
        for (uint32_t p = start[c]; p < start[c + 1]; p++)
            grid->cell_keys[p] = (uint16_t)c;
}

/* Moves the particles of some runs of a block. */
static void displace_block(sk_grid *grid, sk_particles *particles, const sk_displacement *by, int block, uint64_t moved)
{
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    _Alignas(64) float values[SELKIE_DIM][SK_ROW_TILE_VALUES];
    const sk_tile_rows rows = sk_tile_rows_around(moved);
    displaced_block in = {.grid = grid,
                          .records = particles->records,
                          .by = by,
                          .corner = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]},
                          .inverse = (float)(1.0 / grid->cell_size),
                          .cell_size = (float)grid->cell_size,
                          .tiles = {values[0], values[1], values[SELKIE_DIM - 1]},
                          .leavers = sk_leavers_of(grid, block)};
    if (by->solids)
        sk_lanes_row_clearance(by->solids, block, by->solids->clearance[block], in.clearance);
    for (int d = 0; d < SELKIE_DIM; d++)
        sk_row_tile_load_known(grid, grid->fields[(int)by->first + d], block, &rows, values[d]);

    SK_EACH_RUN(c, moved)
    {
        const int j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> (2 * SK_BLOCK_LOG);
        const cell_row row = row_of_cell(grid, block, c);
        displace_row(&in, &row, j, k, start[c], start[c + 8]);
    }
    if (by->lists_leavers)
        grid->leavers[block] = sk_leavers_found(&in.leavers);
}

void SK_DIM(sk_transfer_displace)(sk_grid *grid, sk_particles *particles, const sk_displacement *by)
{
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, by->threads);
#pragma omp parallel num_threads(by->threads)
    SK_EACH_DEALT(b, &deal)
    {
        const uint64_t moved = by->runs ? by->runs[b] & grid->occupied[b] : grid->occupied[b];
        if (by->lists_leavers) {
            grid->leavers[b] = 0;
            SK_EACH_RUN(c, grid->occupied[b] & ~moved)
            all_stay(grid, grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS, c);
        }
        if (moved)
            displace_block(grid, particles, by, b, moved);
    }
    sk_particles_moved(particles);
    grid->leavers_at = by->lists_leavers ? particles->moves : 0;
    grid->moved = by->lists_leavers ? by->runs : NULL;
}

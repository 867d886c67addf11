/* Moves particles by a displacement on the faces of the grid: see transfer.h. */
#include "grid/transfer.h"

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/lanes.h"
#include "grid/leavers.h"
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
                value = fw_look_up_either(row, row + next, SK_ROW_PITCH, w->centre_column, upper);
                value += w->centre_way *
                         (fw_look_up_either(row, row + next, SK_ROW_PITCH, w->centre_column + 1, upper) - value);
            }
            plane += d == 1 ? value : w->centre[1][j] * value;
        }
        total += SELKIE_DIM == 2 || d == 2 ? plane : w->centre[SELKIE_DIM - 1][k] * plane;
    }
    return total;
}

/* Moves the particles of some cells of a row by a displacement on the faces. */
static inline __attribute__((always_inline)) void
displace_row(sk_grid *grid, int block, sk_particle *all, uint32_t begin, uint32_t end, const float corner[3],
             float inverse, float cell_size, const cell_row *row, int j, int k, const float *const tiles[3],
             const float low[3], const float high[3], uint32_t first_of_block, sk_leavers *leavers)
{
    for (uint32_t p = begin; p < end; p += SK_WIDE) {
        int lanes = end - p < SK_WIDE ? (int)(end - p) : SK_WIDE;
        fw r[4], moved[3];
        KEEP_IN_MEMORY(j);
        ask_ahead(all + p);
        fw_load_columns(sk_particle_floats(all + p), lanes, r);
        lane_weights w;
        lanes_of(r, corner, inverse, row, 0, &w);
        moved[0] = r[0] + cell_size * sample_nearest(0, tiles[0] + first_row(0, SK_ROW_PLANE, j, k), &w);
        moved[1] = r[1] + cell_size * sample_nearest(1, tiles[1] + first_row(1, SK_ROW_PLANE, j, k), &w);
#if SELKIE_DIM == 3
        moved[2] = r[2] + cell_size * sample_nearest(2, tiles[2] + first_row(2, SK_ROW_PLANE, j, k), &w);
#endif
        /* Closed walls. In this order NaN stays NaN, and the sort finds it. */
        for (int d = 0; d < SELKIE_DIM; d++)
            r[d] = fw_min(fw_splat(high[d]), fw_max(fw_splat(low[d]), moved[d]));
        fw_store_columns(sk_particle_floats(all + p), lanes, r);
        if (leavers) /* the last sort dropped dead particles */
            sk_leavers_add(grid, block, first_of_block, p, lanes, r,
                           w.cell + (j << SK_BLOCK_LOG) + (k << 2 * SK_BLOCK_LOG), iw_splat(0), leavers);
    }
}

/* Writes the cell keys of eight cells whose particles do not move. */
static void all_stay(sk_grid *grid, const uint32_t *start, int first)
{
    for (int c = first; c < first + 8; c++)
        for (uint32_t p = start[c]; p < start[c + 1]; p++)
            grid->cell_keys[p] = (uint16_t)c;
}

void SK_DIM(sk_transfer_displace)(sk_grid *grid, sk_grid_field first, sk_particles *particles, const float low[3],
                                  const float high[3], const uint64_t *runs, int tell_leavers, int threads)
{
    const float inverse = (float)(1.0 / grid->cell_size);
    const float corner[3] = {(float)grid->corner[0], (float)grid->corner[1], (float)grid->corner[2]};
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, threads);
#pragma omp parallel num_threads(threads)
    SK_EACH_DEALT(b, &deal)
    {
        const uint32_t *start = grid->cell_start + (size_t)(b - 1) * SK_BLOCK_CELLS;
        const uint64_t moved = runs ? runs[b] & grid->occupied[b] : grid->occupied[b];
        if (tell_leavers) {
            grid->leavers[b] = 0;
            SK_EACH_RUN(c, grid->occupied[b] & ~moved)
            all_stay(grid, start, c);
        }
        if (!moved)
            continue;
        _Alignas(64) float values[SELKIE_DIM][SK_ROW_TILE_VALUES];
        const float *const tiles[3] = {values[0], values[1], values[SELKIE_DIM - 1]};
        const sk_tile_rows rows = sk_tile_rows_around(moved);
        for (int d = 0; d < SELKIE_DIM; d++)
            sk_row_tile_load_known(grid, grid->fields[(int)first + d], b, &rows, values[d]);
        sk_leavers leavers = {0, iw_splat(0)};
        SK_EACH_RUN(c, moved)
        {
            const int j = c >> SK_BLOCK_LOG & SK_BLOCK_MASK, k = c >> (2 * SK_BLOCK_LOG);
            const cell_row row = row_of_cell(grid, b, c);
            displace_row(grid, b, particles->records, start[c], start[c + 8], corner, inverse, (float)grid->cell_size,
                         &row, j, k, tiles, low, high, start[0], tell_leavers ? &leavers : NULL);
        }
        if (tell_leavers)
            grid->leavers[b] = sk_leavers_found(&leavers);
    }
    sk_particles_moved(particles);
    grid->leavers_at = tell_leavers ? particles->moves : 0;
    grid->moved = tell_leavers ? runs : NULL;
}

/* Moves particles by a displacement on the faces of the grid: see transfer.h. */
#include "grid/transfer.h"

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/lanes.h"
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
    sk_leavers leavers;
} displaced_block;

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
            r[d] = fw_min(fw_splat(in->by->high[d]), fw_max(fw_splat(in->by->low[d]), moved[d]));
        if (__builtin_expect(in->by->wraps, 0))
            sk_wrap_batch(in->grid, r);
        fw_store_columns(values, lanes, r);

        /* The last sort dropped dead particles. */
        if (in->by->lists_leavers)
            sk_leavers_add(in->grid, &in->leavers, p, lanes, r, w.cell + (j << SK_BLOCK_LOG) + (k << 2 * SK_BLOCK_LOG),
                           iw_splat(0));
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

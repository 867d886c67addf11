/* Grid-to-particle transfer, one row of cells at a time. The lanes are particles (lanes.h). transfer.h describes the
 * scheme. transfer_plain_dim.c has the plain forms, and tests compare both. */
#include "grid/gather.h"

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/gather_lanes.h"
#include "grid/runs.h"

/* The particles of one row of cells. */
static inline __attribute__((always_inline)) void gather_row(const sk_transfer_kind kind, sk_gather *g,
                                                             sk_particle *records, float *affine,
                                                             const sk_carried *carried, const particle_row *row)
{
    int j = row->j;
    for (uint32_t first = row->begin; first < row->end; first += SK_WIDE) {
        int lanes = row->end - first < SK_WIDE ? (int)(row->end - first) : SK_WIDE;
        fw r[8], sampled[3];
        KEEP_IN_MEMORY(j);
        fw_load_columns(sk_particle_floats(records + first), lanes, r);
        fw_load_columns(sk_particle_floats(records + first) + 4, lanes, r + 4);
        lane_weights w;
        lanes_of(r, g->corner, g->inverse, &row->cells, kind == SK_TRANSFER_APIC, &w);
        const gathered_batch batch = {
            SK_ROW_PLANE, lanes, j, row->k, row->flying, kind == SK_TRANSFER_APIC ? affine + 9 * (size_t)first : NULL};
        gather_batch(kind, g, &batch, r, &w, sampled);
        fw_store_columns(sk_particle_floats(records + first), lanes, r);
        fw_store_columns(sk_particle_floats(records + first) + 4, lanes, r + 4);
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *to = carried->values + (size_t)d * carried->stride + first;
            /* Idle lanes write into the next particles, which are written afterwards. */
            if (first + SK_WIDE <= carried->end)
                fw_store(to, sampled[d]);
            else
                for (int l = 0; l < lanes; l++)
                    to[l] = sampled[d][l];
        }
    }
}

void SK_DIM(sk_gather_begin)(sk_gather *g, const sk_transfer_options *options, const sk_grid *grid, int block,
                             const float *const plain[3], int plain_plane)
{
    const float ratio = options->flip_ratio;
    _Alignas(64) float change[SK_ROW_TILE_VALUES];
    const sk_tile_rows rows = sk_tile_rows_around(grid->occupied[block]);

    /* Constants of the gather, and cleared sums. */
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

    /* Tiles of the field that the particles sample, one per component. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        i8 unknown = i8_splat(0);
        float *mixed = g->tiles[d];
        if (g->kind == SK_TRANSFER_FLIP)
            sk_row_tile_load(grid, grid->fields[SK_FIELD_CHANGE_X + d], block, &rows, change);
        SK_EACH_TILE_ROW(j, k, &rows)
        for (int i = 0; i < SK_ROW_PITCH; i += 8) {
            const int at = SK_ROW_PITCH * j + SK_ROW_PLANE * k + i;
            const i8 place = (i8){0, 1, 2, 3, 4, 5, 6, 7} + i;
            /* A node with weight zero may be unknown, and zero times NaN is NaN. */
            f8 value = f8_load(plain[d] + SK_ROW_PITCH * j + plain_plane * k + i), changed = f8_load(change + at);
            unknown |= (value != value) & (place >= SK_ROW_LEAD - 1) & (place <= SK_ROW_LEAD + SK_BLOCK_N);
            value = f8_select(value == value, value, f8_splat(0.0f));
            /* ratio (v + change) + (1 - ratio) velocity is linear in the fields. Mixing them here leaves one field to
             * sample. */
            changed = f8_select(changed == changed, ratio * changed, f8_splat(0.0f));
            f8_store(mixed + at, g->kind == SK_TRANSFER_FLIP ? changed + (1.0f - ratio) * value : value);
        }

        /* The plain field is sampled as well if the mixed one differs from it. */
        g->plain[d] = i8_any(unknown) || g->kind == SK_TRANSFER_FLIP ? plain[d] : NULL;
    }
}

static void gather_block(sk_gather *g, const sk_grid *grid, sk_particle *records, float *affine,
                         const sk_carried *carried, int block)
{
    for (int c = 0; c < SK_BLOCK_CELLS; c += SK_BLOCK_N) {
        const particle_row row = particles_of_row(grid, block, c, g->flying);
        if (row.begin == row.end)
            continue;
        if (g->kind == SK_TRANSFER_FLIP)
            gather_row(SK_TRANSFER_FLIP, g, records, NULL, carried, &row);
        else if (g->kind == SK_TRANSFER_PIC)
            gather_row(SK_TRANSFER_PIC, g, records, NULL, carried, &row);
        else
            gather_row(SK_TRANSFER_APIC, g, records, affine, carried, &row);
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
    const sk_attribute *affine =
        options->kind == SK_TRANSFER_APIC ? sk_particles_find_attribute(particles, "affine") : NULL;

    /* Partial sums of blocks are added in block order: the same bits on any number of threads. */
    sk_particle_sums *partial = NULL;
    size_t room = 0;
    SK_TRY(sk_reserve(grid->memory, (void **)&partial, &room, (size_t)grid->particle_blocks + 1, sizeof *partial,
                      "grid to particles", error));

    /* Gather block by block. */
    particles->carried = sk_particles_scratch(particles);
    sk_deal deal;
    sk_deal_particle_blocks(&deal, grid, options->threads);
#pragma omp parallel num_threads(options->threads)
    SK_EACH_DEALT(b, &deal)
    {
        const sk_carried carried = {particles->carried, (size_t)particles->count,
                                    grid->cell_start[(size_t)b * SK_BLOCK_CELLS]};
        sk_gather gather;
        _Alignas(64) float values[SELKIE_DIM][SK_ROW_TILE_VALUES];
        const float *const plain[3] = {values[0], values[1], values[SELKIE_DIM - 1]};
        const sk_tile_rows rows = sk_tile_rows_around(grid->occupied[b]);
        for (int d = 0; d < SELKIE_DIM; d++)
            sk_row_tile_load(grid, sk_transfer_velocity(options, grid, d), b, &rows, values[d]);
        SK_DIM(sk_gather_begin)(&gather, options, grid, b, plain, SK_ROW_PLANE);
        gather_block(&gather, grid, particles->records, affine ? (float *)affine->data : NULL, &carried, b);
        SK_DIM(sk_gather_end)(&gather, &partial[b]);
    }

    /* Add up the partial sums. */
    memset(sums, 0, sizeof *sums);
    for (int b = 1; b <= grid->particle_blocks; b++)
        sk_particle_sums_add(sums, &partial[b]);
    sk_release(grid->memory, partial);
    return SELKIE_OK;
}

/* The transfers of mpm in plain form: one point and one node at a time. */
#include "methods/elastoplastic/mpm_frame.h"

/* --- Points to nodes --- */

static void give_point(const sk_mpm_giving *giving, uint32_t p, const float centre[3], float (*first)[4],
                       sk_mpm_law_sums *sums)
{
    sk_mpm_gift gift;
    sk_mpm_make_gift(giving, p, sums, &gift);
    for (int n = 0; n < SK_MPM_NODES; n++) {
        const int at[3] = {n % 3, n / 3 % 3, n / 9};
        sk_mpm_give_node(giving->grid, &gift, centre, giving->points.records[p].position, at, first[sk_mpm_node(n)]);
    }
}

static void give_block(const sk_mpm_giving *giving, int block)
{
    const uint32_t *start = giving->grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    float(*tile)[4] = giving->mpm->tiles + (size_t)(block - 1) * SK_MPM_TILE;
    sk_mpm_law_sums sums = {0};
    memset(tile, 0, SK_MPM_TILE * sizeof *tile);
    for (int cell = 0; cell < SK_BLOCK_CELLS; cell++) {
        float centre[3];
        sk_mpm_centre(giving->grid, block, cell, centre);
        for (uint32_t p = start[cell]; p < start[cell + 1]; p++)
            give_point(giving, p, centre, tile + sk_mpm_first_node(cell), &sums);
    }
    giving->sums[block] = sums;
}

selkie_code SK_DIM(sk_mpm_to_grid_plain)(sk_step *step, selkie_error *error)
{
    sk_mpm_giving giving;
    sk_lagging_settle(step, &sk_mpm_of(step)->own);
    SK_TRY(sk_mpm_begin_giving(step, &giving, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++)
        give_block(&giving, block);
    sk_mpm_end_giving(step, &giving);
    return SELKIE_OK;
}

/* --- Nodes to points --- */

static void take_point(const sk_mpm_taking *taking, uint32_t p, int block, int cell, sk_point_move_sums *sums)
{
    sk_mpm_take_point(taking->grid, (const float(*)[4])taking->mpm->nodes, &taking->points, p,
                      (sk_plain_cell){block, cell}, taking->moving.dt, taking->per_cell);
    sk_move_point(&taking->moving, taking->moving.step->solids.clearance[block], &taking->points.records[p], sums);
}

selkie_code SK_DIM(sk_mpm_to_points_plain)(sk_step *step, selkie_error *error)
{
    sk_mpm_taking taking;
    sk_lagging_settle(step, &sk_mpm_of(step)->own);
    SK_TRY(sk_mpm_begin_taking(step, &taking, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int block = 1; block <= step->grid.particle_blocks; block++) {
        const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
        sk_point_move_sums sums = {0};
        for (int cell = 0; cell < SK_BLOCK_CELLS; cell++)
            for (uint32_t p = start[cell]; p < start[cell + 1]; p++)
                take_point(&taking, p, block, cell, &sums);
        taking.moving.sums[block] = sums;
    }
    return sk_end_moving(step, &taking.moving, error);
}

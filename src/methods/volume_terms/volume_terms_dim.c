/* The density error as an extra divergence in the pressure solve.
 *
 * Conservation of mass over a time T, ending at rest density, reads (Kugelstadt et al. 2019, Eqs. 6 to 8)
 *     div u = (density / rest density - 1) / T
 * T is the step (Eq. 8), or a longer averaging time (Losasso et al. 2008), which corrects T / dt times less per step.
 * Liquid leaves an overfull cell. The divergence becomes part of the particles' velocity, and the next solve must
 * remove it; with large steps it overshoots. It is deliberately not bounded: these are the methods as published, for
 * comparison.
 *
 * Liquid and solids contribute to the density with the same kernel. A cell beside air never counts as too thin: there
 * the kernel reaches into the air, and its deficit is no lack of liquid (ibid., sec. 3.2).
 */
#include <math.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "methods/cells.h"
#include "methods/volume_terms/volume_terms.h"

static int beside_air(const uint8_t *kinds, int node)
{
    for (int k = SELKIE_DIM == 3 ? -1 : 0; k <= (SELKIE_DIM == 3 ? 1 : 0); k++)
        for (int j = -1; j <= 1; j++)
            for (int i = -1; i <= 1; i++)
                if ((kinds[node + i + N1 * (j + N1 * k)] & SK_CELL_KIND_MASK) == SK_CELL_AIR)
                    return 1;
    return 0;
}

/* The flux out of each liquid cell (m/s) that corrects it at the speed `rate` (m/s). */
static void ask_for_expansion(const sk_step *step, int block, float rate)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    const float *density = grid->fields[SK_FIELD_DENSITY] + base;
    const float *solid = solids->blurred + (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    float *expansion = grid->fields[SK_FIELD_EXPANSION] + base;
    memset(expansion, 0, SK_BLOCK_CELLS * sizeof *expansion);
    if (!(grid->block_flags[block] & SK_BLOCK_LIQUID))
        return;
    uint8_t kinds[SK_TILE_VALUES(1)];
    sk_tile_load_bytes(grid, grid->kinds, block, 1, kinds);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int node = node_of(c);
        if ((kinds[node] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID)
            continue;
        float excess = density[c] + solid[c] - 1.0f;
        expansion[c] = excess < 0.0f && beside_air(kinds, node) ? 0.0f : rate * excess;
    }
}

/* `duration`: time (s) in which the whole error is corrected. */
static selkie_code correct_within(sk_step *step, double duration)
{
    sk_grid *grid = &step->grid;
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    float rate = (float)(grid->cell_size / duration);
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    ask_for_expansion(step, b, rate);
    step->has_expansion = 1;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_volume_eq8)(sk_step *step, selkie_error *error)
{
    (void)error;
    return correct_within(step, step->dt);
}

selkie_code SK_DIM(sk_volume_losasso)(sk_step *step, selkie_error *error)
{
    (void)error;
    /* At most the whole error is corrected in a step. */
    return correct_within(step, fmax(step->scene->losasso.averaging_time, step->dt));
}

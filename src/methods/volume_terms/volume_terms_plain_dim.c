/* The plain form of volume_terms_dim.c. */
#include <math.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/volume_terms/volume_kernels.h"
#include "methods/volume_terms/volume_terms.h"

static int kind_of(const sk_grid *grid, sk_plain_cell cell)
{
    return grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK;
}

/* Is one of the cells around, diagonal ones included, air? */
static int beside_air(const sk_grid *grid, sk_plain_cell cell)
{
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        if (kind_of(grid, sk_plain_beside(grid, cell, offset)) == SK_CELL_AIR)
            return 1;
    }
    return 0;
}

/* `duration`: s, in which the whole error is corrected. */
static selkie_code correct_within(sk_step *step, double duration)
{
    sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    const float rate = (float)(grid->cell_size / duration);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        SK_PLAIN_EACH_CELL(cell, b)
        {
            const size_t here = sk_plain_index(cell);
            const float excess =
                grid->fields[SK_FIELD_DENSITY][here] + solids->blurred[sk_plain_solid_index(solids, cell)] - 1.0f;
            grid->fields[SK_FIELD_EXPANSION][here] = kind_of(grid, cell) == SK_CELL_LIQUID
                                                         ? sk_volume_expansion(excess, beside_air(grid, cell), rate)
                                                         : 0.0f;
        }
    step->has_expansion = 1;
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_volume_eq8_plain)(sk_step *step, selkie_error *error)
{
    (void)error;
    return correct_within(step, step->dt);
}

selkie_code SK_DIM(sk_volume_losasso_plain)(sk_step *step, selkie_error *error)
{
    (void)error;
    return correct_within(step, fmax(step->scene->losasso.averaging_time, step->dt));
}

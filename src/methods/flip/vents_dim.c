/* The vents after a step: see methods/vents_plain.h. */
#include <string.h>

#include "base/dimension.h"
#include "methods/flip/pressure.h"
#include "methods/vents.h"

selkie_code SK_DIM(sk_flip_vent)(sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    sk_solids *solids = &step->solids;
    const float suction = suction_of_vent(step);
    if (solids->moving_count == solids->obstacle_count)
        return SELKIE_OK;

    /* Cells ask for the vents beside them, so that the new ones need memory of their own. */
    uint8_t *fresh;
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * SK_BLOCK_CELLS, "vents", (void **)&fresh, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++) {
        const float *solution = grid->fields[SK_FIELD_POTENTIAL] + (size_t)b * SK_BLOCK_CELLS;
        const uint8_t *before = solids->vents + (size_t)solids->block_slot[b] * SK_BLOCK_CELLS;
        for (int c = 0; can_vent(step, b) && c < SK_BLOCK_CELLS; c++) {
            const sk_plain_cell cell = {b, c};
            const int may = may_have_vents(solution[c], before[c], suction);
            fresh[sk_plain_index(cell)] = may ? (uint8_t)vents_after(step, cell, suction) : 0;
        }
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        if (can_vent(step, b))
            memcpy(solids->vents + (size_t)solids->block_slot[b] * SK_BLOCK_CELLS, fresh + (size_t)b * SK_BLOCK_CELLS,
                   SK_BLOCK_CELLS);
    return SELKIE_OK;
}

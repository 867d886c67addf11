/* The plain forms of the extrapolation and of the shift in uic_pressure_dim.c and uic_correct_dim.c. */
#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "grid/sweep.h"
#include "methods/uic/uic.h"
#include "methods/uic/uic_kernels.h"

enum { LAYERS = 2 };

selkie_code SK_DIM(sk_uic_extrapolate_plain)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    int32_t *blocks;
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *blocks, "extrapolate", (void **)&blocks, error));
    int count = 0;
    for (int b = 1; b < grid->block_count; b++) {
        int near = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            near |= grid->block_flags[grid->neighbours[b][n]] & SK_BLOCK_KNOWN;
        if (near && grid->block_flags[b] & SK_BLOCK_UNKNOWN)
            blocks[count++] = b;
    }
    const sk_extrapolation velocity = {.fields = grid->fields + SK_FIELD_VELOCITY_X,
                                       .scratch = grid->fields + SK_FIELD_FACE_X,
                                       .field_count = SELKIE_DIM,
                                       .blocks = blocks,
                                       .block_count = count,
                                       .layers = LAYERS,
                                       .threads = step->threads};
    SK_DIM(sk_extrapolate_plain)(grid, &velocity);
    return SELKIE_OK;
}

/* Cells that a shift moves a particle at most. */
static const float shift_reach = 1.8f * UIC_FARTHEST_SHIFT;

selkie_code SK_DIM(sk_uic_shift_plain)(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_displacement shift = {.first = SK_FIELD_SHIFT_X, .threads = step->threads};
    if (!step->shifted)
        return SELKIE_OK;
    sk_solids_bounds(&step->solids, &step->grid, shift.low, shift.high);
    if (step->solids.obstacle_count)
        sk_sweep_keep_places(&step->solids, &step->grid, &step->particles, shift_reach, step->threads);
    SK_DIM(sk_transfer_displace_plain)(&step->grid, &step->particles, &shift);
    if (step->solids.obstacle_count)
        sk_sweep_places(&step->solids, &step->grid, &step->particles, shift_reach, step->threads);
    return SELKIE_OK;
}

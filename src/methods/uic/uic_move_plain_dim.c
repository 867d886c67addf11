/* The plain forms of the extrapolation and of the shift in uic_pressure_dim.c and uic_correct_dim.c. */
#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "methods/uic/uic.h"

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

selkie_code SK_DIM(sk_uic_shift_plain)(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_displacement shift = {.first = SK_FIELD_SHIFT_X, .threads = step->threads};
    if (!step->shifted)
        return SELKIE_OK;
    sk_solids_bounds(&step->solids, &step->grid, shift.low, shift.high);
    SK_DIM(sk_transfer_displace_plain)(&step->grid, &step->particles, &shift);
    /* Keep shifted positions out of obstacles. */
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t p = 0; p < step->particles.count; p++) {
        float *x = step->particles.records[p].position;
        if (sk_solids_near(&step->solids, &step->grid, x))
            sk_solids_push_out(&step->solids, shift.low, shift.high, x);
    }
    return SELKIE_OK;
}

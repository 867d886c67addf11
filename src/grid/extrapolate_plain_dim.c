/* The plain form of the extrapolation: see extrapolate.h. */
#include "base/dimension.h"
#include "grid/extrapolate_plain.h"
#include "grid/plain_forms.h"

void SK_DIM(sk_extrapolate_plain)(const sk_grid *grid, const sk_extrapolation *what)
{
    const int32_t *blocks = what->blocks;
    for (int layer = 0; layer < what->layers; layer++)
        for (int f = 0; f < what->field_count * (what->groups > 1 ? what->groups : 1); f++) {
            float *field = what->fields[f], *scratch = what->scratch[f % what->field_count];
            /* Writes into the scratch, then copies back: a layer must not read its own values. */
#pragma omp parallel for num_threads(what->threads) schedule(static)
            for (int w = 0; w < what->block_count; w++)
                SK_PLAIN_EACH_CELL(cell, blocks[w])
            scratch[sk_plain_index(cell)] = filled_value(grid, field, cell);
#pragma omp parallel for num_threads(what->threads) schedule(static)
            for (int w = 0; w < what->block_count; w++)
                SK_PLAIN_EACH_CELL(cell, blocks[w])
            if (is_wanted(what->wanted, cell))
                field[sk_plain_index(cell)] = scratch[sk_plain_index(cell)];
        }
}

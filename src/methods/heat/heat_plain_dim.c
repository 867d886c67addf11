/* The plain form of the transfers of heat: heat_transfer_dim.c explains them. */
#include "methods/heat/heat_plain.h"

selkie_code SK_DIM(sk_heat_gather_plain)(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error)
{
    (void)error;
    const sk_heat_attributes a = sk_heat_find_attributes(step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < step->grid.block_count; b++) {
        cells->empty[b] = 0;
        SK_PLAIN_EACH_CELL(cell, b)
        heat_gather_cell(step, heat, &a, cells, cell);
    }
    return SELKIE_OK;
}

void SK_DIM(sk_heat_scatter_plain)(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block)
{
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    SK_PLAIN_EACH_CELL(cell, block)
    heat_scatter_cell(step, heat, &a, cells, cell);
}

/* The plain form of the transfers of heat: heat_transfer_dim.c explains them. */
#include "base/dimension.h"
#include "grid/grid_kernels.h"
#include "grid/plain.h"
#include "methods/heat/heat.h"

/* Cells and weights of a particle in a cell. Closed cells are replaced by its own. */
static void find_cells(const sk_step *step, sk_plain_cell own, const float position[3], sk_plain_cell cell[SK_CORNERS],
                       float weight[SK_CORNERS])
{
    const sk_grid *grid = &step->grid;
    int at[3], low[3];
    float above[3];
    sk_plain_coordinates(grid, own, at);
    for (int d = 0; d < SELKIE_DIM; d++)
        low[d] = sk_heat_place(sk_cell_coordinate(position[d], (float)grid->corner[d], (float)(1.0 / grid->cell_size)),
                               &above[d]) -
                 at[d];
    for (int c = 0; c < SK_CORNERS; c++) {
        int offset[3] = {0, 0, 0};
        weight[c] = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++) {
            weight[c] *= c >> d & 1 ? above[d] : 1.0f - above[d];
            offset[d] = low[d] + (c >> d & 1);
        }
        cell[c] = sk_plain_beside(grid, own, offset);
        if (step->solids.closed[sk_plain_solid_index(&step->solids, cell[c])])
            cell[c] = own;
    }
}

/* Adds what the particles of a neighbour give to a cell. */
static void add_from(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a, sk_plain_cell cell,
                     sk_plain_cell from, double sums[SK_HEAT_SUMS])
{
    uint32_t first, last;
    sk_plain_particles(&step->grid, from, &first, &last);
    for (uint32_t p = first; p < last; p++) {
        sk_plain_cell around[SK_CORNERS];
        float weight[SK_CORNERS];
        double values[SK_HEAT_SUMS] = {0};
        sk_heat_values(heat, a, p, heat->several, values);
        find_cells(step, from, step->particles.records[p].position, around, weight);
        for (int n = 0; n < SK_CORNERS; n++)
            for (int v = 0; v < SK_HEAT_SUMS && around[n].slot == cell.slot && around[n].local == cell.local; v++)
                sums[v] += (double)weight[n] * values[v];
    }
}

static void gather_block(const sk_step *step, const sk_heat *heat, const sk_heat_attributes *a, sk_heat_cells *cells,
                         int block)
{
    SK_PLAIN_EACH_CELL(cell, block)
    {
        double sums[SK_HEAT_SUMS] = {0};
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
            add_from(step, heat, a, cell, sk_plain_beside(&step->grid, cell, offset), sums);
        }
        sk_heat_finish_cell(heat, cells, sk_plain_index(cell), sums);
    }
}

selkie_code SK_DIM(sk_heat_gather_plain)(sk_step *step, const sk_heat *heat, sk_heat_cells *cells, selkie_error *error)
{
    (void)error;
    const sk_heat_attributes a = sk_heat_find_attributes(step);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < step->grid.block_count; b++) {
        cells->empty[b] = 0;
        gather_block(step, heat, &a, cells, b);
    }
    return SELKIE_OK;
}

void SK_DIM(sk_heat_scatter_plain)(const sk_step *step, const sk_heat *heat, const sk_heat_cells *cells, int block)
{
    const sk_heat_attributes a = sk_heat_find_attributes(step);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        uint32_t first, last;
        int beyond = 0;
        sk_plain_particles(&step->grid, cell, &first, &last);
        for (uint32_t p = first; p < last; p++) {
            sk_plain_cell around[SK_CORNERS];
            float weight[SK_CORNERS];
            double enthalpy = sk_heat_get(&a, p);
            find_cells(step, cell, step->particles.records[p].position, around, weight);
            for (int n = 0; n < SK_CORNERS; n++)
                enthalpy += (double)weight[n] * cells->change[sk_plain_index(around[n])];
            const sk_heat_curve *curve = sk_heat_curve_of(heat, &a, p);
            const double temperature = sk_heat_set(&a, curve, p, enthalpy);
            beyond |= temperature > heat->warmest || temperature < heat->coldest;
        }
        const uint32_t range[1][2] = {{first, last}};
        cells->phase[sk_plain_index(cell)] = beyond && !sk_heat_limit_cells(heat, &a, range, 1) ? SK_HEAT_BEYOND : 0;
    }
}

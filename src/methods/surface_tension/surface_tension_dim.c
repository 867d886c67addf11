/* The impulse of surface tension on the faces at the surface. */
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/liquid_plain.h"
#include "methods/surface_tension/surface_tension.h"
#include "methods/surface_tension/surface_tension_kernels.h"

/* Surface tension (N/m) of a liquid cell: the mean over its particles. */
static float sigma_of(const sk_step *step, const sk_tension *tension, sk_plain_cell cell)
{
    const sk_attribute *material =
        tension->has_materials ? sk_particles_find_attribute(&step->particles, "material") : NULL;
    uint32_t first, last;
    sk_plain_particles(&step->grid, cell, &first, &last);
    if (!material || first == last)
        return tension->sigma[0];
    float sum = 0.0f;
    for (uint32_t p = first; p < last; p++)
        sum += tension->sigma[material->data[p] % SK_TRANSFER_MATERIALS];
    return sum / (float)(last - first);
}

/* The impulse on the lower face of a cell across axis d, m/s; one of the cells beside it is liquid, the other air. */
static float push_on_face(const sk_step *step, const sk_tension *tension, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    const float *curvature = grid->fields[tension->curvature];
    const sk_plain_cell below = sk_plain_next(grid, cell, d, -1);
    const int wet_above = liquid_cell_at(grid, cell).liquid;
    const sk_plain_cell inside = wet_above ? cell : below, outside = wet_above ? below : cell;
    const double h = grid->cell_size;

    const sk_liquid_cell wet = liquid_cell_at(grid, inside), dry = liquid_cell_at(grid, outside);
    const float theta = 1.0f / sk_liquid_slope(&wet, &dry, step->scene->pressure.surface == SELKIE_SURFACE_VOXEL);
    const float jump = (float)(sigma_of(step, tension, inside) * sk_step_kick(step) / (step->density * h * h)) *
                       lightness_at(step, cell, d);
    const float bent = curvature[sk_plain_index(inside)];
    const float push = sk_tension_push(jump, bent, outside.slot ? curvature[sk_plain_index(outside)] : bent, theta);
    return wet_above ? push : -push;
}

/* Impulses on the faces of a block, and their velocities. An unknown velocity counts as rest. */
static void push_block(const sk_step *step, const sk_tension *tension, int block)
{
    const sk_grid *grid = &step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    uint8_t kinds[SK_TILE_VALUES(1)];
    sk_tile_load_bytes(grid, grid->kinds, block, 1, kinds);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        kinds[n] &= SK_CELL_KIND_MASK;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *push = grid->fields[step->tension_push + d] + base,
              *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        memset(push, 0, SK_BLOCK_CELLS * sizeof *push);
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int n = node_of(c);
            const sk_plain_cell cell = {block, c};
            if (kinds[n] + kinds[n - node_step[d]] != SK_CELL_AIR + SK_CELL_LIQUID ||
                !(open_fraction_at(step, cell, d) > 0.0f))
                continue;
            push[c] = push_on_face(step, tension, cell, d);
            velocity[c] = (velocity[c] == velocity[c] ? velocity[c] : 0.0f) + push[c];
        }
    }
}

/* Surface tension (N/m) at a cell beside the border of the full cells: that of the full cells. */
static float sigma_at_border(const sk_step *step, const sk_tension *tension, sk_plain_cell cell)
{
    const float *full = step->grid.fields[step->full_cells];
    float sum = 0.0f, count = 0.0f;
    if (!tension->has_materials)
        return tension->sigma[0];
    if (full[sk_plain_index(cell)] >= 0.0f)
        return sigma_of(step, tension, cell);
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(&step->grid, cell, side / 2, side % 2 ? 1 : -1);
        if (!(full[sk_plain_index(other)] >= 0.0f))
            continue;
        sum += sigma_of(step, tension, other);
        count += 1.0f;
    }
    return count > 0.0f ? sum / count : tension->sigma[0];
}

/* Pressure of the curved surface, in the unit of POTENTIAL. */
selkie_code SK_DIM(sk_tension_of_cells)(sk_step *step, selkie_error *error)
{
    const sk_tension *tension = sk_step_state(step, &sk_method_surface_tension);
    const sk_grid *grid = &step->grid;
    const double h = grid->cell_size;
    const float unit = (float)(sk_step_kick(step) / (step->density * h * h));
    const float *curvature = grid->fields[tension->curvature];
    float *capillary = grid->fields[step->capillary];
    (void)error;
    memset(capillary, 0, SK_BLOCK_CELLS * sizeof *capillary);
    SK_DIM(sk_tension_curvatures)(step, tension->curvature);
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    SK_PLAIN_EACH_CELL(cell, b)
    {
        const size_t here = sk_plain_index(cell);
        const float bent = curvature[here];
        capillary[here] = bent == 0.0f ? 0.0f : unit * sigma_at_border(step, tension, cell) * bent;
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_tension)(sk_step *step, selkie_error *error)
{
    const sk_tension *tension = sk_step_state(step, &sk_method_surface_tension);
    const sk_grid *grid = &step->grid;
    (void)error;
    for (int d = 0; d < SELKIE_DIM; d++)
        memset(grid->fields[step->tension_push + d], 0, SK_BLOCK_CELLS * sizeof(float));
    SK_DIM(sk_tension_curvatures)(step, tension->curvature);
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    push_block(step, tension, b);
    return SELKIE_OK;
}

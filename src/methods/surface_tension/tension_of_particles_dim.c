/* Surface tension of SPH: the curvature of the surface that the particles' fill of the cells describes, as on the grid,
 * and its pressure at each particle beside the surface. */
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "methods/surface_tension/tension_of_particles_plain.h"

static void press_block(const sk_step *step, const sk_tension *tension, int block)
{
    const sk_attribute *material =
        tension->has_materials ? sk_particles_find_attribute(&step->particles, "material") : NULL;
    SK_PLAIN_EACH_CELL(cell, block)
    tension_press_cell(step, tension, material ? material->data : NULL, cell, tension->pressure);
}

selkie_code SK_DIM(sk_tension_of_particles)(sk_step *step, selkie_error *error)
{
    sk_tension *tension = sk_step_state(step, &sk_method_surface_tension);
    const sk_grid *grid = &step->grid;
    SK_TRY(sk_reserve(step->memory, (void **)&tension->pressure, &tension->pressure_capacity,
                      (size_t)step->particles.count + 1, sizeof *tension->pressure, "surface tension", error));
    step->surface_pressure = tension->pressure;
    grid->kinds[0] = SK_CELL_AIR;
    memset(grid->fields[SK_FIELD_FILL], 0, SK_BLOCK_CELLS * sizeof(float));
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    SK_PLAIN_EACH_CELL(cell, b)
    tension_fill_cell(step, cell);
    SK_DIM(sk_tension_curvatures)(step, tension->curvature);
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    press_block(step, tension, b);
    return SELKIE_OK;
}

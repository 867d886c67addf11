/* The impulse of surface tension on the faces at the surface. */
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/surface_tension/surface_tension_plain.h"

/* The material of each particle; NULL = one surface tension. */
static const uint32_t *materials_of(const sk_step *step, const sk_tension *tension)
{
    const sk_attribute *material =
        tension->has_materials ? sk_particles_find_attribute(&step->particles, "material") : NULL;
    return material ? material->data : NULL;
}

/* Impulses on the faces of a block, and their velocities. An unknown velocity counts as rest. */
static void push_block(const sk_step *step, const sk_tension *tension, int block)
{
    const sk_grid *grid = &step->grid;
    const uint32_t *material = materials_of(step, tension);
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
            push[c] = tension_on_face(step, tension, material, cell, d);
            velocity[c] = (velocity[c] == velocity[c] ? velocity[c] : 0.0f) + push[c];
        }
    }
}

/* Pressure of the curved surface, in the unit of POTENTIAL. */
selkie_code SK_DIM(sk_tension_of_cells)(sk_step *step, selkie_error *error)
{
    const sk_tension *tension = sk_step_state(step, &sk_method_surface_tension);
    const sk_grid *grid = &step->grid;
    const uint32_t *material = materials_of(step, tension);
    float *capillary = grid->fields[step->capillary];
    (void)error;
    memset(capillary, 0, SK_BLOCK_CELLS * sizeof *capillary);
    SK_DIM(sk_tension_curvatures)(step, tension->curvature);
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    SK_PLAIN_EACH_CELL(cell, b)
    capillary[sk_plain_index(cell)] = tension_at_border(step, tension, material, cell);
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

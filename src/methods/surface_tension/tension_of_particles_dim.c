/* Surface tension of SPH: the curvature of the surface that the particles' fill of the cells describes, as on the grid,
 * and its pressure at each particle beside the surface. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/plain.h"
#include "methods/surface_tension/surface_tension.h"

enum { AROUND = SELKIE_DIM == 3 ? 27 : 9 };

/* Offset number n of the 3^d cells around one. */
static void offset_of(int n, int offset[3])
{
    offset[0] = n % 3 - 1;
    offset[1] = n / 3 % 3 - 1;
    offset[2] = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
}

/* The way from the centre of a cell to a point, in cells. */
static void way_from(const sk_grid *grid, sk_plain_cell cell, const float point[3], float way[3])
{
    int place[3];
    sk_plain_coordinates(grid, cell, place);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float distance = point[d] - (float)(grid->corner[d] + (place[d] + 0.5) * grid->cell_size);
        if (grid->periodic >> d & 1)
            distance = sk_wrap_difference(distance, grid->period[d]);
        way[d] = distance / (float)grid->cell_size;
    }
}

/* The hat kernel of width one cell, summed over the particles around a cell, over that of a full one. */
static float fill_of(const sk_step *step, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    float sum = 0.0f;
    for (int n = 0; n < AROUND; n++) {
        int offset[3];
        uint32_t first, last;
        offset_of(n, offset);
        sk_plain_particles(grid, sk_plain_beside(grid, cell, offset), &first, &last);
        for (uint32_t p = first; p < last; p++) {
            float way[3], weight = 1.0f;
            way_from(grid, cell, step->particles.records[p].position, way);
            for (int d = 0; d < SELKIE_DIM; d++)
                weight *= fmaxf(1.0f - fabsf(way[d]), 0.0f);
            sum += weight;
        }
    }
    return sum / (float)step->particles_per_cell;
}

/* Fill and kinds of the cells of a block, as the grid's curvature wants them. */
static void fill_block(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
        const float fill = fill_of(step, cell) / fmaxf(1.0f - solids->blurred[solid], 0.05f);
        const int closed = solids->closed[solid];
        grid->fields[SK_FIELD_FILL][here] = closed ? -1.0f : fill;
        grid->kinds[here] = (uint8_t)(closed ? SK_CELL_SOLID : fill >= 0.5f ? SK_CELL_LIQUID : SK_CELL_AIR);
    }
}

/* The curvature (per cell) at a particle: the mean of the cells around it that lie beside the surface. */
static float curvature_at(const sk_step *step, const float *curvature, sk_plain_cell cell, const float position[3])
{
    float sum = 0.0f, weights = 0.0f;
    for (int n = 0; n < AROUND; n++) {
        int offset[3];
        float way[3], weight = 1.0f;
        offset_of(n, offset);
        const sk_plain_cell other = sk_plain_beside(&step->grid, cell, offset);
        const float there = other.slot ? curvature[sk_plain_index(other)] : 0.0f;
        if (there == 0.0f)
            continue;
        way_from(&step->grid, other, position, way);
        for (int d = 0; d < SELKIE_DIM; d++)
            weight *= fmaxf(1.5f - fabsf(way[d]), 0.0f);
        sum += weight * there;
        weights += weight;
    }
    return weights > 0.0f ? sum / weights : 0.0f;
}

static void press_block(const sk_step *step, const sk_tension *tension, int block)
{
    const sk_grid *grid = &step->grid;
    const float unit = (float)(1.0 / (step->density * grid->cell_size));
    const sk_attribute *material =
        tension->has_materials ? sk_particles_find_attribute(&step->particles, "material") : NULL;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        uint32_t first, last;
        sk_plain_particles(grid, cell, &first, &last);
        for (uint32_t p = first; p < last; p++) {
            const float sigma = tension->sigma[material ? material->data[p] % SK_TRANSFER_MATERIALS : 0];
            const float *position = step->particles.records[p].position;
            tension->pressure[p] = sigma * unit * curvature_at(step, grid->fields[tension->curvature], cell, position);
        }
    }
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
    fill_block(step, b);
    SK_DIM(sk_tension_curvatures)(step, tension->curvature);
    sk_deal_particle_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    press_block(step, tension, b);
    return SELKIE_OK;
}

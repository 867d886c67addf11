/* Surface tension of SPH at one cell: its fill by particles, and the pressure of the curved surface at each of them.
 * For the CPU and the GPU, and for files compiled per dimension. */
#ifndef SK_METHODS_SURFACE_TENSION_OF_PARTICLES_PLAIN_H
#define SK_METHODS_SURFACE_TENSION_OF_PARTICLES_PLAIN_H

#include <math.h>

#include "grid/plain.h"
#include "methods/surface_tension/surface_tension.h"

enum { CELLS_AROUND = SELKIE_DIM == 3 ? 27 : 9 };

/* Offset number n of the 3^d cells around one. */
SK_KERNEL void offset_around(int n, int offset[3])
{
    offset[0] = n % 3 - 1;
    offset[1] = n / 3 % 3 - 1;
    offset[2] = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
}

/* The way from the centre of a cell to a point, in cells. */
SK_KERNEL void way_from_centre(const sk_grid *grid, sk_plain_cell cell, const float point[3], float way[3])
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
SK_KERNEL float fill_by_particles(const sk_step *step, sk_plain_cell cell)
{
    const sk_grid *grid = &step->grid;
    float sum = 0.0f;
    for (int n = 0; n < CELLS_AROUND; n++) {
        int offset[3];
        uint32_t first, last;
        offset_around(n, offset);
        sk_plain_particles(grid, sk_plain_beside(grid, cell, offset), &first, &last);
        for (uint32_t p = first; p < last; p++) {
            float way[3], weight = 1.0f;
            way_from_centre(grid, cell, step->particles.records[p].position, way);
            for (int d = 0; d < SELKIE_DIM; d++)
                weight *= fmaxf(1.0f - fabsf(way[d]), 0.0f);
            sum += weight;
        }
    }
    return sum / (float)step->particles_per_cell;
}

/* Fill and kind of a cell, as the curvature on the grid wants them. */
SK_KERNEL void tension_fill_cell(const sk_step *step, sk_plain_cell cell)
{
    const sk_solids *solids = &step->solids;
    const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
    const float fill = fill_by_particles(step, cell) / fmaxf(1.0f - solids->blurred[solid], 0.05f);
    const int closed = solids->closed[solid];
    step->grid.fields[SK_FIELD_FILL][here] = closed ? -1.0f : fill;
    step->grid.kinds[here] = (uint8_t)(closed ? SK_CELL_SOLID : fill >= 0.5f ? SK_CELL_LIQUID : SK_CELL_AIR);
}

/* The curvature (per cell) at a particle: the mean of the cells around it that lie beside the surface. */
SK_KERNEL float curvature_at_particle(const sk_step *step, const float *curvature, sk_plain_cell cell,
                                      const float position[3])
{
    float sum = 0.0f, weights = 0.0f;
    for (int n = 0; n < CELLS_AROUND; n++) {
        int offset[3];
        float way[3], weight = 1.0f;
        offset_around(n, offset);
        const sk_plain_cell other = sk_plain_beside(&step->grid, cell, offset);
        const float there = other.slot ? curvature[sk_plain_index(other)] : 0.0f;
        if (there == 0.0f)
            continue;
        way_from_centre(&step->grid, other, position, way);
        for (int d = 0; d < SELKIE_DIM; d++)
            weight *= fmaxf(1.5f - fabsf(way[d]), 0.0f);
        sum += weight * there;
        weights += weight;
    }
    return weights > 0.0f ? sum / weights : 0.0f;
}

/* The pressure over the density (m2/s2) at the particles of a cell. `material` is that of each particle, or NULL. */
SK_KERNEL void tension_press_cell(const sk_step *step, const sk_tension *tension, const uint32_t *material,
                                  sk_plain_cell cell, float *pressure)
{
    const sk_grid *grid = &step->grid;
    const float unit = (float)(1.0 / (step->density * grid->cell_size));
    uint32_t first, last;
    sk_plain_particles(grid, cell, &first, &last);
    for (uint32_t p = first; p < last; p++) {
        const float sigma = tension->sigma[material ? material[p] % SK_TRANSFER_MATERIALS : 0];
        const float *position = step->particles.records[p].position;
        pressure[p] = sigma * unit * curvature_at_particle(step, grid->fields[tension->curvature], cell, position);
    }
}

#endif

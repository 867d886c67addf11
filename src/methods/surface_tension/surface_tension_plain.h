/* Surface tension at one cell and one face of the grid, for the CPU and the GPU. For files compiled per dimension. */
#ifndef SK_METHODS_SURFACE_TENSION_PLAIN_H
#define SK_METHODS_SURFACE_TENSION_PLAIN_H

#include <math.h>

#include "methods/liquid_plain.h"
#include "methods/surface_tension/surface_tension.h"
#include "methods/surface_tension/surface_tension_kernels.h"

/* The depth of a block and of the cells around it that a fit and the solid cells in it reach. */
enum {
    SK_TENSION_REACH = 2,
    SK_TENSION_WIDTH = SK_BLOCK_N + 2 * SK_TENSION_REACH,
    SK_TENSION_VALUES = SK_TENSION_WIDTH * SK_TENSION_WIDTH * (SELKIE_DIM == 3 ? SK_TENSION_WIDTH : 1),
    SK_TENSION_WINDOW = SELKIE_DIM == 3 ? 27 : 9
};
typedef struct sk_tension_tile {
    float depth[SK_TENSION_VALUES];    /* cells  below the surface, where it is near */
    uint8_t closed[SK_TENSION_VALUES]; /* is the cell solid, or behind a wall of the domain? */
} sk_tension_tile;

/* --- Curvature --- */

/* Index of a cell of the block in a tile. */
SK_KERNEL int tension_place(int local)
{
    int place = 0, stride = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        place += (sk_plain_along(local, d) + SK_TENSION_REACH) * stride;
        stride *= SK_TENSION_WIDTH;
    }
    return place;
}

/* Offset number n of a window of 3^d cells. */
SK_KERNEL int tension_window(int n, int offset[3])
{
    offset[0] = n % 3 - 1;
    offset[1] = n / 3 % 3 - 1;
    offset[2] = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
    return offset[0] + SK_TENSION_WIDTH * (offset[1] + SK_TENSION_WIDTH * offset[2]);
}

/* The contact angle, and the gradient of the depth at the cell of a fit as if it were 90 degrees. */
typedef struct contact_line {
    float cosine, sine, gradient[3];
} contact_line;

/* How the depth grows along the unit normal into a solid. At the contact line it is the cosine of the angle, and the
 * slope along the solid is its sine. A film has no contact line: its surface follows the solid. */
SK_KERNEL float growth_into_solid(const contact_line *contact, const float normal[3])
{
    float across = 0.0f, square = 0.0f;
    for (int d = 0; d < 3; d++) {
        across += contact->gradient[d] * normal[d];
        square += contact->gradient[d] * contact->gradient[d];
    }
    const float slope = __builtin_sqrtf(fmaxf(square - across * across, 0.0f));
    return contact->cosine * (slope < contact->sine ? slope / contact->sine : 1.0f);
}

/* Depth in a solid cell such that the surface meets the solid at the contact angle. The open cells around count by how
 * far they lie along the normal. */
SK_KERNEL_CALLED float depth_in_solid(const sk_tension_tile *tile, int place, const contact_line *contact,
                                      float otherwise)
{
    float normal[3] = {0.0f, 0.0f, 0.0f}, sum = 0.0f, weights = 0.0f;
    int offset[3];
    for (int n = 0; n < SK_TENSION_WINDOW; n++) {
        const float closed = (float)tile->closed[place + tension_window(n, offset)];
        for (int d = 0; d < 3; d++)
            normal[d] += closed * (float)offset[d];
    }
    const float length = __builtin_sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    if (!(length > 0.0f))
        return otherwise;
    for (int d = 0; d < 3; d++)
        normal[d] /= length;
    const float growth = growth_into_solid(contact, normal);
    for (int n = 0; n < SK_TENSION_WINDOW; n++) {
        const int other = place + tension_window(n, offset);
        float way = 0.0f, square = 0.0f;
        for (int d = 0; d < 3; d++) {
            way -= normal[d] * (float)offset[d];
            square += (float)(offset[d] * offset[d]);
        }
        if (tile->closed[other] || way <= 0.0f)
            continue;
        const float weight = way * way * way * way / (square * square);
        sum += weight * (tile->depth[other] + growth * way);
        weights += weight;
    }
    return weights > 0.0f ? sum / weights : otherwise;
}

/* Fits the depth around a cell. Returns whether a solid is near. */
SK_KERNEL int fit_depth(const sk_tension_tile *tile, int place, const contact_line *contact, sk_tension_fit *fit)
{
    float values[SK_TENSION_WINDOW];
    int solid = 0;
    for (int n = 0; n < SK_TENSION_WINDOW; n++) {
        int offset[3];
        const int other = place + tension_window(n, offset), closed = tile->closed[other];
        values[n] = closed ? depth_in_solid(tile, other, contact, tile->depth[place]) : tile->depth[other];
        solid |= closed;
    }
    sk_tension_fit_quadratic(values, fit);
    return solid;
}

/* A curvature of 0 stands for a cell away from the surface: a flat surface has one of almost 0. */
SK_KERNEL float tension_not_zero(float curvature)
{
    return curvature == 0.0f ? 1e-30f : curvature;
}

/* The curvature at a cell, in which the blur of the fill still is. `cosine` is that of the contact angle. */
SK_KERNEL_CALLED float tension_curvature_at(const sk_tension_tile *tile, int place, float cosine)
{
    contact_line contact = {0.0f, 1.0f, {0.0f, 0.0f, 0.0f}};
    sk_tension_fit fit;
    if (fit_depth(tile, place, &contact, &fit) && cosine != 0.0f) {
        contact.cosine = cosine;
        contact.sine = fmaxf(__builtin_sqrtf(fmaxf(1.0f - cosine * cosine, 0.0f)), 0.1f);
        for (int d = 0; d < 3; d++)
            contact.gradient[d] = fit.gradient[d];
        fit_depth(tile, place, &contact, &fit);
    }
    return tension_not_zero(sk_tension_curvature(&fit, tile->depth[place]));
}

/* The curvature of a cell without the effect of the blur, from those around it (SK_TENSION_VALUES). */
SK_KERNEL float tension_sharpened(const float *around, int place)
{
    enum { SIDE = 2 * SK_TENSION_REACH + 1 };
    float sum = 0.0f, weights = 0.0f, squares = 0.0f;

    /* The mean over the cells beside the surface, which have a curvature. */
    for (int n = 0; n < SIDE * SIDE * (SELKIE_DIM == 3 ? SIDE : 1); n++) {
        const int x = n % SIDE - SK_TENSION_REACH, y = n / SIDE % SIDE - SK_TENSION_REACH,
                  z = SELKIE_DIM == 3 ? n / (SIDE * SIDE) - SK_TENSION_REACH : 0;
        const float there = around[place + x + SK_TENSION_WIDTH * (y + SK_TENSION_WIDTH * z)];
        const float square = (float)(x * x + y * y + z * z);
        const float weight = there == 0.0f ? 0.0f : sk_tension_weight(square);
        sum += weight * there;
        weights += weight;
        squares += weight * square;
    }
    return tension_not_zero(sk_tension_unblurred(around[place], sum / weights, squares / weights));
}

/* Is the curvature of a cell sharpened? Beside solids the mean is one-sided, which is right where the surface goes on
 * as a mirror image, at a contact angle of 90 degrees. */
SK_KERNEL int tension_is_sharpened(const sk_step *step, sk_plain_cell cell, float curvature, float cosine)
{
    const float solid = step->solids.blurred[sk_plain_solid_index(&step->solids, cell)];
    return curvature != 0.0f && (!(solid > 0.0f) || fabsf(cosine) < 0.01f);
}

/* --- Impulse --- */

/* Surface tension (N/m) of a liquid cell: the mean over its particles. `material` is that of each particle, or NULL. */
SK_KERNEL float tension_of_cell(const sk_step *step, const sk_tension *tension, const uint32_t *material,
                                sk_plain_cell cell)
{
    uint32_t first, last;
    sk_plain_particles(&step->grid, cell, &first, &last);
    if (!material || first == last)
        return tension->sigma[0];
    float sum = 0.0f;
    for (uint32_t p = first; p < last; p++)
        sum += tension->sigma[material[p] % SK_TRANSFER_MATERIALS];
    return sum / (float)(last - first);
}

/* Surface tension (N/m) at a cell beside the border of the full cells: that of the full cells. */
SK_KERNEL float tension_of_border(const sk_step *step, const sk_tension *tension, const uint32_t *material,
                                  sk_plain_cell cell)
{
    const float *full = step->grid.fields[step->full_cells];
    float sum = 0.0f, count = 0.0f;
    if (!material)
        return tension->sigma[0];
    if (full[sk_plain_index(cell)] >= 0.0f)
        return tension_of_cell(step, tension, material, cell);
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(&step->grid, cell, side / 2, side % 2 ? 1 : -1);
        if (!(full[sk_plain_index(other)] >= 0.0f))
            continue;
        sum += tension_of_cell(step, tension, material, other);
        count += 1.0f;
    }
    return count > 0.0f ? sum / count : tension->sigma[0];
}

/* Beside unilateral incompressibility: the pressure of the curved border of the full cells, in the unit of POTENTIAL.
 */
SK_KERNEL float tension_at_border(const sk_step *step, const sk_tension *tension, const uint32_t *material,
                                  sk_plain_cell cell)
{
    const double h = step->grid.cell_size;
    const float unit = (float)(sk_step_kick(step) / (step->density * h * h)),
                bent = step->grid.fields[tension->curvature][sk_plain_index(cell)];
    return bent == 0.0f ? 0.0f : unit * tension_of_border(step, tension, material, cell) * bent;
}

/* The impulse on the lower face of a cell across axis d, m/s; one of the cells beside it is liquid, the other air. */
SK_KERNEL float tension_on_face(const sk_step *step, const sk_tension *tension, const uint32_t *material,
                                sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    const float *curvature = grid->fields[tension->curvature];
    const sk_plain_cell below = sk_plain_next(grid, cell, d, -1);
    const int wet_above = liquid_cell_at(grid, cell).liquid;
    const sk_plain_cell inside = wet_above ? cell : below, outside = wet_above ? below : cell;
    const double h = grid->cell_size;

    const sk_liquid_cell wet = liquid_cell_at(grid, inside), dry = liquid_cell_at(grid, outside);
    const float theta = 1.0f / sk_liquid_slope(&wet, &dry, step->scene->pressure.surface == SELKIE_SURFACE_VOXEL);
    const float sigma = tension_of_cell(step, tension, material, inside);
    const float jump = (float)(sigma * sk_step_kick(step) / (step->density * h * h)) * lightness_at(step, cell, d);
    const float bent = curvature[sk_plain_index(inside)];
    const float push = sk_tension_push(jump, bent, outside.slot ? curvature[sk_plain_index(outside)] : bent, theta);
    return wet_above ? push : -push;
}

#endif

/* The Poisson operator of the liquid for one cell and one face. liquid_system.h defines it and has the form for rows of
 * cells.
 *
 * Sides of a cell are numbered -x +x -y +y -z +z. A view holds the values of a cell and of its neighbours.
 */
#ifndef SK_METHODS_LIQUID_KERNELS_H
#define SK_METHODS_LIQUID_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"

/* The least depth of a liquid cell below the surface, in cells: see sk_surface_theta_of_depths. A larger one lifts the
 * level of such cells over that of their neighbours whose centre is just above the surface, and a pool with a level at
 * the centres of cells never rests. A smaller one lets a wave that makes cells liquid and air in turn gain energy: in
 * 3D, where fewer particles a row leave a more uneven surface, FLIP keeps up to 0.07 of sqrt(g H) for ever with 0.02
 * at levels of 0.53 to 0.56 cells, 0.014 with 0.04 and 0.017 with 0.1. */
#define SK_LIQUID_LEAST_DEPTH (SELKIE_DIM == 2 ? 0.02f : 0.04f)

typedef struct sk_liquid_cell {
    int liquid;  /*        an unknown of the system */
    float depth; /* cells  below the surface */
} sk_liquid_cell;

typedef struct sk_liquid_view {
    sk_liquid_cell own, beside[2 * SELKIE_DIM];
    float open[2 * SELKIE_DIM];      /* fraction of the faces */
    float lightness[2 * SELKIE_DIM]; /* reference density over that of the liquid around them; 1 for one density */
    int voxel;                       /* the surface runs along faces: depths are ignored */
} sk_liquid_view;

/* One over the distance from a cell to its neighbour's unknown, in cells. It exceeds 1 from liquid towards air, where
 * the surface is nearer than the neighbour's centre. */
SK_KERNEL float sk_liquid_slope(const sk_liquid_cell *cell, const sk_liquid_cell *other, int voxel)
{
    if (voxel || !cell->liquid || other->liquid)
        return 1.0f;
    return 1.0f / sk_surface_theta_of_depths(cell->depth, other->depth, SK_LIQUID_LEAST_DEPTH);
}

/* Coefficients of the lower faces and the diagonal of a cell's row; all 0 for a cell that is no unknown. */
SK_KERNEL float sk_liquid_row(const sk_liquid_view *view, float face[SELKIE_DIM])
{
    float diagonal = 0.0f;
    SK_KERNEL_UNROLL
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int lower = 2 * d, upper = 2 * d + 1;
        const float below = view->open[lower] * view->lightness[lower],
                    above = view->open[upper] * view->lightness[upper];
        face[d] = view->own.liquid && view->beside[lower].liquid ? below : 0.0f;
        if (view->own.liquid)
            diagonal += below * sk_liquid_slope(&view->own, &view->beside[lower], view->voxel) +
                        above * sk_liquid_slope(&view->own, &view->beside[upper], view->voxel);
    }
    return diagonal;
}

/* Flux through a face (m/s): the liquid's velocity in the open part, the solid's in the closed part. An unknown
 * velocity (NaN) counts as rest. */
SK_KERNEL float sk_liquid_flux(float velocity, float open, float solid_velocity)
{
    const float through = open * (velocity == velocity ? velocity : 0.0f);
    return through + (1.0f - open) * solid_velocity;
}

/* Minus the divergence of a cell (m/s), from the fluxes through its sides. */
SK_KERNEL float sk_liquid_inflow(const float flux[2 * SELKIE_DIM])
{
    float sum = 0.0f;
    SK_KERNEL_UNROLL
    for (int d = 0; d < SELKIE_DIM; d++)
        sum = sum + flux[2 * d] - flux[2 * d + 1];
    return sum;
}

/* Minus the gradient of the solution across the face between two cells, per cell; 0 if neither is liquid. The solution
 * is 0 outside the liquid, so the difference only needs the scale of the surface's distance. */
SK_KERNEL float sk_liquid_descent(const sk_liquid_cell *below, const sk_liquid_cell *above, float solution_below,
                                  float solution_above, int voxel)
{
    return (solution_below - solution_above) * sk_liquid_slope(above, below, voxel) *
           sk_liquid_slope(below, above, voxel);
}

/* Is the face between two cells in the air beside the surface? Neither cell is liquid, and one of them is an air cell
 * beside liquid. */
SK_KERNEL int sk_liquid_is_shore(const int air[2], const int liquid[2], const int liquid_beside[2])
{
    return !liquid[0] && !liquid[1] && ((air[0] && liquid_beside[0]) || (air[1] && liquid_beside[1]));
}

/* The solid of a closed face. */
typedef struct sk_closed_face {
    int on_wall;    /*      not 0: a closed wall of the domain, normal to the face; 1 or -1, the way away from it */
    int sticks;     /*      the surface is no-slip */
    float velocity; /* m/s  of the solid */
} sk_closed_face;

/* Velocity of a face after the solve. It is unknown (NaN) behind solids, and far from particles unless liquid is beside
 * the face. Particles near the face (`had_velocity`) take the velocity of a no-slip surface. */
SK_KERNEL float sk_liquid_projected(float velocity, float descent, int beside_liquid, float open,
                                    const sk_closed_face *closed, int had_velocity)
{
    float projected = velocity;
    if (beside_liquid)
        projected = (velocity == velocity ? velocity : 0.0f) + descent;
    if (!(open > 0.0f))
        projected = closed->sticks && had_velocity ? closed->velocity : __builtin_nanf("");
    return closed->on_wall && had_velocity && (projected != projected || !(open > 0.0f)) ? 0.0f : projected;
}

#endif

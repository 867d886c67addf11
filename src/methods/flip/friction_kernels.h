/* Coulomb's friction of liquid on a solid surface, for one cell and one face.
 *
 * A solid that pushes the liquid of a cell with the impulse N (per mass of a full cell, m/s) rubs with at most mu N
 * along the surface, against the velocity of the liquid over it. N is the potential of the pressure solve, q = p dt /
 * (density h), and the normal impulse of the viscous stress, times the area of the solid in the cell over that of a
 * face. That area is the difference of the open fractions of opposite faces: the fluxes of a constant velocity through
 * all sides of the liquid cancel.
 */
#ifndef SK_METHODS_FLIP_FRICTION_KERNELS_H
#define SK_METHODS_FLIP_FRICTION_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "methods/rub_kernels.h"

/* A cell beside a surface. Sides are numbered -x +x -y +y -z +z. */
typedef struct sk_rubbing_cell {
    float push[3];              /* m/s  impulse along each axis */
    float friction;             /*      mu */
    float open[2 * SELKIE_DIM]; /*      fractions of the sides */
} sk_rubbing_cell;

/* Adds the area of the solid in a cell, along its normal into the liquid, to `area`. Returns the largest change of
 * velocity (m/s) by friction, of the mass of a full cell. Liquid that is pulled to the wall does not rub. */
SK_KERNEL float sk_friction_of_cell(const sk_rubbing_cell *cell, float area[3])
{
    float length2 = 0.0f, normal = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float along = cell->open[2 * d + 1] - cell->open[2 * d];
        area[d] += along;
        length2 += along * along;
        normal += along * along * cell->push[d];
    }
    return normal > 0.0f ? cell->friction * normal / __builtin_sqrtf(length2) : 0.0f;
}

#endif

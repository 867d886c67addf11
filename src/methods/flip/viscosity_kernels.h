/* Implicit viscosity for one face: viscosity_dim.c says what is solved. */
#ifndef SK_METHODS_FLIP_VISCOSITY_KERNELS_H
#define SK_METHODS_FLIP_VISCOSITY_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* A face and the next ones of its component, at -x +x -y +y -z +z. */
typedef struct sk_viscous_face {
    int axis;                               /*      that the component runs along */
    float velocity, beside[2 * SELKIE_DIM]; /* m/s  NaN where unknown */
    float open, open_beside[2 * SELKIE_DIM];
    int no_slip, no_slip_beside[2 * SELKIE_DIM];
    float density, density_beside[2 * SELKIE_DIM]; /* over the reference density */
    float wall[2 * SELKIE_DIM];                    /* m/s  of the solid there */
} sk_viscous_face;

/* The row of a face with the mass term h^2 / (nu dt): returns the diagonal, 0 for a face that is no unknown. */
SK_KERNEL float sk_viscous_row(const sk_viscous_face *face, float mass, float coefficient[SELKIE_DIM],
                               float *right_side)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        coefficient[d] = 0.0f;
    *right_side = 0.0f;
    if (face->velocity != face->velocity || face->open == 0.0f)
        return 0.0f;
    float diagonal = mass * face->density, known = diagonal * face->velocity;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        if (face->open_beside[side] == 0.0f) {
            /* The wall that the component runs into lies on a face, one that it runs along half a cell away. */
            const int sticks = face->no_slip_beside[side] || face->no_slip;
            const float weight = (side / 2 == face->axis ? 1.0f : sticks ? 2.0f : 0.0f) * face->density;
            diagonal += weight;
            known += weight * face->wall[side];
        } else if (face->beside[side] == face->beside[side]) {
            const float weight = 0.5f * (face->density + face->density_beside[side]);
            diagonal += weight;
            if (side % 2 == 0)
                coefficient[side / 2] = weight;
        }
    }
    *right_side = known;
    return diagonal;
}

#endif

/* Vectors of the viscosity solve of SPH, and their steps at one particle. For files compiled per dimension. */
#ifndef SK_METHODS_SPH_VISCOUS_ARRAYS_H
#define SK_METHODS_SPH_VISCOUS_ARRAYS_H

#include "methods/sph/sph.h"
#include "methods/sph/sph_pair_kernels.h"

enum { SK_SPH_MOST_VISCOUS_ITERATIONS = 200 };
#define SK_SPH_VISCOUS_TOLERANCE 1e-5 /* of |residual| over |v*| */

typedef struct viscous_arrays {
    sk_sph_viscous_shape shape;
    float *residual[3], *direction[3], *product[3];
    float *drag; /* of no-slip walls */
} viscous_arrays;

/* The arrays of the pressure solve are free before it. */
SK_KERNEL viscous_arrays viscous_arrays_of(const sk_sph *sph, sk_sph_viscous_shape shape)
{
    viscous_arrays s;
    float *const shift = (float *)(void *)sph->shift;
    const size_t count = sph->particle_capacity;
    s.shape = shape;
    for (int d = 0; d < 3; d++) {
        s.residual[d] = shift + (size_t)d * count;
        s.direction[d] = sph->variable[d];
    }
    s.product[0] = sph->variable[3], s.product[1] = sph->variable[4], s.product[2] = sph->source;
    s.drag = shift + 3 * count;
    return s;
}

/* The first guess v*: the direction. Returns |v* + c u|^2; the residual has c u. */
SK_KERNEL double begin_viscosity_at(const viscous_arrays *s, const float velocity[3], size_t i)
{
    double sum = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        s->direction[d][i] = velocity[d];
        const double right = (double)s->direction[d][i] + (double)s->residual[d][i];
        sum += right * right;
    }
    return sum;
}

/* The first residual, v* + c u - A v*. */
SK_KERNEL void first_residual_at(const viscous_arrays *s, int fixed, size_t i)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float rest = fixed ? 0.0f : s->direction[d][i] + s->residual[d][i] - s->product[d][i];
        s->residual[d][i] = s->direction[d][i] = rest;
    }
}

/* Moves solution and residual along the direction. Returns the square of the residual. */
SK_KERNEL double advance_viscosity_at(const viscous_arrays *s, double length, float velocity[3], size_t i)
{
    double sum = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (length != 0.0) {
            velocity[d] += (float)(length * (double)s->direction[d][i]);
            s->residual[d][i] -= (float)(length * (double)s->product[d][i]);
        }
        sum += (double)s->residual[d][i] * (double)s->residual[d][i];
    }
    return sum;
}

SK_KERNEL void turn_viscosity_at(const viscous_arrays *s, double share, size_t i)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        s->direction[d][i] = s->residual[d][i] + (float)share * s->direction[d][i];
}

#endif

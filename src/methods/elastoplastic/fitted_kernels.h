/* Elastoplastic points by local fits (Gerszewski, chapter 4): one point and one pair.
 *
 * Over a step, F_step is the affine map that fits the motion of the neighbours best (Eq. 4.6), with weights poly6
 * (Eq. 4.7). `printed` composes them, F <- F_step F (Eq. 4.8); `additive` adds their Green strain to a total strain,
 * which takes the place of F - 1 (his Fig. 4.8). Forces between two points follow Eq. 4.10 with three corrections:
 *
 *   - Eq. 4.9 is the first Piola stress P already: a point gives its pairs P, without another factor F;
 *   - the gradient of the kernel (Eq. 4.12), d, points to the neighbour;
 *   - it is corrected by K = sum d X^T, where X is the pair at rest, F^-1 (y_j - y_i) (Eq. 4.11). At free faces the
 *     sum of the kernel lacks up to a third. The kernel's constant (Eq. 4.13) cancels.
 *
 * With V the volume of a point, the force on point i is sum_j V (P_i K_i^-1 d_ij - P_j K_j^-1 d_ji): momentum and,
 * since P F^T is symmetric, angular momentum are kept.
 */
#ifndef SK_METHODS_FITTED_KERNELS_H
#define SK_METHODS_FITTED_KERNELS_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"

enum {
    SK_FITTED_MATRIX = SELKIE_DIM * SELKIE_DIM,
    SK_FITTED_LEAST = SELKIE_DIM == 3 ? 6 : 3 /* neighbours without which a deformation is not updated */
};

/* Weight of a neighbour in a fit: poly6 over its value at 0. */
SK_KERNEL float sk_fitted_weight(float squared, float support)
{
    const float q = 1.0f - squared / (support * support);
    return q > 0.0f ? q * q * q : 0.0f;
}

/* Gradient of the kernel of Eq. 4.12 over its constant, towards the neighbour at X. */
SK_KERNEL void SK_DIM(sk_fitted_gradient)(const float x[3], float support, float gradient[3])
{
    float squares = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += x[d] * x[d];
    const float length = sqrtf(squares);
    const float slope =
        length < support && length > 0.0f ? sinf((length + support) * 1.57079633f / support) / length : 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        gradient[d] = slope * x[d];
}

/* matrix vector */
SK_KERNEL void SK_DIM(sk_fitted_apply)(const float matrix[SELKIE_DIM * SELKIE_DIM], const float x[3], float result[3])
{
    for (int i = 0; i < SELKIE_DIM; i++) {
        result[i] = 0.0f;
        for (int j = 0; j < SELKIE_DIM; j++)
            result[i] += matrix[SELKIE_DIM * i + j] * x[j];
    }
}

/* sum += weight a b^T */
SK_KERNEL void SK_DIM(sk_fitted_add)(float weight, const float a[3], const float b[3],
                                     float sum[SELKIE_DIM * SELKIE_DIM])
{
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            sum[SELKIE_DIM * i + j] += weight * a[i] * b[j];
}

/* a b */
SK_KERNEL void SK_DIM(sk_fitted_product)(const float a[SELKIE_DIM * SELKIE_DIM], const float b[SELKIE_DIM * SELKIE_DIM],
                                         float product[SELKIE_DIM * SELKIE_DIM])
{
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            product[SELKIE_DIM * i + j] = 0.0f;
            for (int k = 0; k < SELKIE_DIM; k++)
                product[SELKIE_DIM * i + j] += a[SELKIE_DIM * i + k] * b[SELKIE_DIM * k + j];
        }
}

/* Inverse of a matrix; returns the determinant, and 0 for one that is nearly singular: below 1e-3 of the power of the
 * mean of the diagonal. */
SK_KERNEL float SK_DIM(sk_fitted_inverse)(const float a[SELKIE_DIM * SELKIE_DIM],
                                          float inverse[SELKIE_DIM * SELKIE_DIM])
{
    float mean = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        mean += fabsf(a[(SELKIE_DIM + 1) * d]) * (1.0f / SELKIE_DIM);
#if SELKIE_DIM == 2
    const float determinant = a[0] * a[3] - a[1] * a[2];
    if (!(fabsf(determinant) > 1e-3f * mean * mean))
        return 0.0f;
    const float scale = 1.0f / determinant;
    inverse[0] = scale * a[3];
    inverse[1] = -scale * a[1];
    inverse[2] = -scale * a[2];
    inverse[3] = scale * a[0];
#else
    const float c0 = a[4] * a[8] - a[5] * a[7], c1 = a[5] * a[6] - a[3] * a[8], c2 = a[3] * a[7] - a[4] * a[6];
    const float determinant = a[0] * c0 + a[1] * c1 + a[2] * c2;
    if (!(fabsf(determinant) > 1e-3f * mean * mean * mean))
        return 0.0f;
    const float scale = 1.0f / determinant;
    inverse[0] = scale * c0;
    inverse[1] = scale * (a[2] * a[7] - a[1] * a[8]);
    inverse[2] = scale * (a[1] * a[5] - a[2] * a[4]);
    inverse[3] = scale * c1;
    inverse[4] = scale * (a[0] * a[8] - a[2] * a[6]);
    inverse[5] = scale * (a[2] * a[3] - a[0] * a[5]);
    inverse[6] = scale * c2;
    inverse[7] = scale * (a[1] * a[6] - a[0] * a[7]);
    inverse[8] = scale * (a[0] * a[4] - a[1] * a[3]);
#endif
    return determinant;
}

/* Can a step have deformed a point so? `change` is the gradient of velocity times the step. Steps are short, so that
 * neighbours come closer or part by a few percent: more is a fit of points that lie nearly in a plane. */
SK_KERNEL int SK_DIM(sk_fitted_is_likely)(const float change[SELKIE_DIM * SELKIE_DIM])
{
    const float most = 0.2f;
    int likely = 1;
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++)
        likely &= fabsf(change[n]) < most;
    return likely;
}

/* The deformation F - 1 after a step with the gradient of velocity times the step in `change`. A step that would turn
 * the point inside out is left out. */
SK_KERNEL void SK_DIM(sk_fitted_compose)(const float change[SELKIE_DIM * SELKIE_DIM],
                                         float deformation[SELKIE_DIM * SELKIE_DIM])
{
    float next[SELKIE_DIM * SELKIE_DIM], f[SELKIE_DIM * SELKIE_DIM], unused[SELKIE_DIM * SELKIE_DIM];
    SK_DIM(sk_fitted_product)(change, deformation, next);
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++) {
        next[n] += deformation[n] + change[n];
        f[n] = next[n] + (n % (SELKIE_DIM + 1) == 0 ? 1.0f : 0.0f);
    }
    if (!(SK_DIM(sk_fitted_inverse)(f, unused) > 0.0f))
        return;
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++)
        deformation[n] = next[n];
}

/* The total strain after a step: adds Green's strain of the step, (C + C^T + C^T C)/2. A step that would turn the point
 * inside out is left out. */
SK_KERNEL void SK_DIM(sk_fitted_accumulate)(const float change[SELKIE_DIM * SELKIE_DIM],
                                            float strain[SELKIE_DIM * SELKIE_DIM])
{
    float next[SELKIE_DIM * SELKIE_DIM], f[SELKIE_DIM * SELKIE_DIM], unused[SELKIE_DIM * SELKIE_DIM];
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            const int n = SELKIE_DIM * i + j;
            float sum = change[n] + change[SELKIE_DIM * j + i];
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += change[SELKIE_DIM * k + i] * change[SELKIE_DIM * k + j];
            next[n] = strain[n] + 0.5f * sum;
            f[n] = next[n] + (i == j ? 1.0f : 0.0f);
        }
    if (!(SK_DIM(sk_fitted_inverse)(f, unused) > 0.0f))
        return;
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++)
        strain[n] = next[n];
}

/* Viscosity between two points along the line between them: acceleration (m/s2) of the first. `away` from the second
 * to the first (m), `velocity` of the first against the second (m/s), `rate` in 1/s. */
SK_KERNEL void SK_DIM(sk_fitted_viscosity)(float rate, const float away[3], const float velocity[3],
                                           float acceleration[3])
{
    float squares = 0.0f, along = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        squares += away[d] * away[d];
        along += away[d] * velocity[d];
    }
    for (int d = 0; d < SELKIE_DIM && squares > 0.0f; d++)
        acceleration[d] -= rate * along / squares * away[d];
}

#endif

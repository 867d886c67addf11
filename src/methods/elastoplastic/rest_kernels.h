/* Elastoplastic points with a rest shape: one point and one bond.
 *
 * At rest the points lie on a lattice, and a point has bonds to the up to 8 (3D: 26) points around it. With o the
 * offset of a neighbour on the lattice, s the spacing and e = x_j - x_i - s o its displacement against the rest shape,
 * the deformation F of point i is the least-squares fit of its bonds, with weights w(o):
 *
 *   F - 1 = 1/s sum_j w e o^T K^-1,   K = sum_j w o o^T                          (Ganzenmueller 2015, corrected
 * gradient)
 *
 * The fit does not see all motions, saw teeth for example. What it leaves, z_j = e - s (F - 1) o, has an energy of its
 * own (zero-energy control; Silling 2017). The energy of the body is then V sum_i [E(F_i) + c/2 sum_j w z_j^2], and the
 * forces are its derivatives. The fit makes sum_j w z_j o^T vanish, so the second term adds c w z_j to a bond, no more.
 * With P the first Piola stress, the acceleration of a point is
 *
 *   a_i = sum_j w [(B_i + B_j) o + (c_i + c_j) e],   B = P K^-1 / (rho s) - c s (F - 1),   c divided by rho
 *
 * Momentum is kept, since a bond acts on both its points; angular momentum, since the energy does not change by a
 * rotation.
 *
 * References: G. C. Ganzenmueller, An hourglass control algorithm for Lagrangian smooth particle hydrodynamics, CMAME
 * 286, 2015. S. A. Silling, Stability of peridynamic correspondence material models, CMAME 322, 2017.
 */
#ifndef SK_METHODS_REST_KERNELS_H
#define SK_METHODS_REST_KERNELS_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"

enum {
    SK_REST_MATRIX = SELKIE_DIM * SELKIE_DIM,
    SK_REST_SYMMETRIC = SELKIE_DIM == 3 ? 6 : 3,
    SK_REST_CENTRE = SK_NEIGHBOURS / 2,     /* bit of the point itself in its bonds */
    SK_REST_FULL = (1 << SK_NEIGHBOURS) - 1 /* bonds of a point inside a body */
};

/* Offset of bond n on the lattice, -1, 0 or 1 along each axis. */
SK_KERNEL int sk_rest_offset(int n, int axis)
{
    return (axis == 0 ? n % 3 : axis == 1 ? n / 3 % 3 : n / 9) - 1;
}

/* Weights of bonds across faces, edges and corners. Bonds of points at a surface lie to one side: what lies across
 * edges draws their fit into the body, and weakens bending. Faces alone would leave thin parts without a fit. */
#define SK_REST_ACROSS_EDGES 0.1f
#define SK_REST_ACROSS_CORNERS (SK_REST_ACROSS_EDGES * SK_REST_ACROSS_EDGES)
/* Each eigenvalue of K inside a body: 2 faces, 8 (2D: 4) edges and 8 corners have a component along an axis. */
#define SK_REST_MOMENT                                                                                                 \
    (SELKIE_DIM == 3 ? 2.0f + 8.0f * SK_REST_ACROSS_EDGES + 8.0f * SK_REST_ACROSS_CORNERS                              \
                     : 2.0f + 4.0f * SK_REST_ACROSS_EDGES)

SK_KERNEL float SK_DIM(sk_rest_weight)(int n)
{
    int squares = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += sk_rest_offset(n, d) * sk_rest_offset(n, d);
    return squares == 1 ? 1.0f : squares == 2 ? SK_REST_ACROSS_EDGES : squares == 3 ? SK_REST_ACROSS_CORNERS : 0.0f;
}

/* What a point gives to a bond. */
typedef struct sk_rest_push {
    float matrix[SELKIE_DIM * SELKIE_DIM]; /* 1/s2  B, row-major, times metres */
    float stiffness;                       /* 1/s2  c over the density */
} sk_rest_push;

/* Adds bond n to the sum of w e o^T. `e` in m. */
SK_KERNEL void SK_DIM(sk_rest_fit)(int n, const float e[3], float moment[SELKIE_DIM * SELKIE_DIM])
{
    const float weight = SK_DIM(sk_rest_weight)(n);
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++)
            moment[SELKIE_DIM * i + j] += weight * e[i] * (float)sk_rest_offset(n, j);
}

/* F - 1 from the sum and from the inverse of K (upper triangle by rows), 1/m. */
SK_KERNEL void SK_DIM(sk_rest_deformation)(const float moment[SELKIE_DIM * SELKIE_DIM],
                                           const float inverse[SELKIE_DIM * SELKIE_DIM], float per_spacing,
                                           float deformation[SELKIE_DIM * SELKIE_DIM])
{
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            float sum = 0.0f;
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += moment[SELKIE_DIM * i + k] * inverse[SELKIE_DIM * k + j];
            deformation[SELKIE_DIM * i + j] = per_spacing * sum;
        }
}

/* Adds bond n to the acceleration (m/s2) of a point. */
SK_KERNEL void SK_DIM(sk_rest_pull)(int n, const sk_rest_push *own, const sk_rest_push *other, const float e[3],
                                    float acceleration[3])
{
    const float weight = SK_DIM(sk_rest_weight)(n);
    for (int i = 0; i < SELKIE_DIM; i++) {
        float sum = (own->stiffness + other->stiffness) * e[i];
        for (int j = 0; j < SELKIE_DIM; j++)
            sum += (own->matrix[SELKIE_DIM * i + j] + other->matrix[SELKIE_DIM * i + j]) * (float)sk_rest_offset(n, j);
        acceleration[i] += weight * sum;
    }
}

/* Inverse of a matrix. A determinant near 0 counts as 0.01: points that are squeezed flat keep finite forces. Returns
 * the determinant. */
SK_KERNEL float SK_DIM(sk_rest_inverse)(const float a[SELKIE_DIM * SELKIE_DIM], float inverse[SELKIE_DIM * SELKIE_DIM])
{
    const float least = 0.01f;
#if SELKIE_DIM == 2
    const float determinant = a[0] * a[3] - a[1] * a[2];
    const float scale = 1.0f / (determinant < least ? least : determinant);
    inverse[0] = scale * a[3];
    inverse[1] = -scale * a[1];
    inverse[2] = -scale * a[2];
    inverse[3] = scale * a[0];
#else
    const float c0 = a[4] * a[8] - a[5] * a[7], c1 = a[5] * a[6] - a[3] * a[8], c2 = a[3] * a[7] - a[4] * a[6];
    const float determinant = a[0] * c0 + a[1] * c1 + a[2] * c2;
    const float scale = 1.0f / (determinant < least ? least : determinant);
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

/* Constants of a material for its bonds. */
typedef struct sk_rest_material {
    float push;                    /* 1/(rho s), m2/kg */
    float stiffness;               /* 1/s2  c over the density */
    float spacing;                 /* m */
    float yield, hardening, shear; /* Pa  yield stress, its growth, 3 mu; yield < 0: does not flow */
} sk_rest_material;

/* Share of the zero-energy stiffness that is left after plastic flow: that of the secant modulus of all the strain. */
SK_KERNEL float sk_rest_softening(const sk_rest_material *material, float plastic_strain)
{
    if (material->yield < 0.0f)
        return 1.0f;
    const float stress = material->yield + material->hardening * plastic_strain;
    const float share = (stress + 0.02f * material->shear) / (stress + material->shear * (plastic_strain + 0.02f));
    return share;
}

/* B of a point from Kirchhoff's stress (Pa), which is P F^T. */
SK_KERNEL void SK_DIM(sk_rest_push_of)(const sk_rest_material *material, const float stress[SELKIE_DIM * SELKIE_DIM],
                                       const float f_inverse[SELKIE_DIM * SELKIE_DIM],
                                       const float inverse[SELKIE_DIM * SELKIE_DIM],
                                       const float deformation[SELKIE_DIM * SELKIE_DIM], float softening,
                                       sk_rest_push *push)
{
    float piola[SELKIE_DIM * SELKIE_DIM];
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            float sum = 0.0f;
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += stress[SELKIE_DIM * i + k] * f_inverse[SELKIE_DIM * j + k];
            piola[SELKIE_DIM * i + j] = sum;
        }
    push->stiffness = material->stiffness * softening;
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            float sum = 0.0f;
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += piola[SELKIE_DIM * i + k] * inverse[SELKIE_DIM * k + j];
            push->matrix[SELKIE_DIM * i + j] =
                material->push * sum - push->stiffness * material->spacing * deformation[SELKIE_DIM * i + j];
        }
}

/* Push of two points without a bond that come closer than a spacing: acceleration (m/s2) of the first. `away` points
 * from the second to the first, m. `stiffness` is force over distance and the mass of the first, 1/s2. */
SK_KERNEL void SK_DIM(sk_rest_contact)(float stiffness, float spacing, const float away[3], float acceleration[3])
{
    float squares = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        squares += away[d] * away[d];
    if (!(squares < spacing * spacing) || !(squares > 0.0f))
        return;
    const float distance = sqrtf(squares), push = stiffness * (spacing - distance) / distance;
    for (int d = 0; d < SELKIE_DIM; d++)
        acceleration[d] += push * away[d];
}

#endif

/* The material point method: transfers between one point and one node, and walls at one node.
 *
 * Nodes are the centres of cells. A point in a cell reaches the 3^dimension nodes around it with quadratic B-splines w,
 * so all points of a cell share their nodes. Velocities go by affine transfers (APIC, Jiang et al. 2015), stress by the
 * gradients of the splines: a point gives a node, at offset d from it,
 *
 *   m w (v + C d) - kick m / density stress grad w
 *
 * of momentum, where C is its affine velocity and kick the time for which forces act. Momentum and angular momentum are
 * kept. Stress through the affine weights (MLS-MPM, Hu et al. 2018) saves a third of the work, but beams are then 12 %
 * too soft, and not 4 %. Lengths are in cells: C h, d / h, h grad w.
 *
 * References: C. Jiang et al., The affine particle-in-cell method, SIGGRAPH 2015. M. Steffen et al., Analysis and
 * reduction of quadrature errors in the material point method, IJNME 76, 2008 (splines). Y. Hu et al., A moving least
 * squares material point method, SIGGRAPH 2018.
 */
#ifndef SK_METHODS_MPM_KERNELS_H
#define SK_METHODS_MPM_KERNELS_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "methods/elastoplastic/contact_kernels.h"

enum { SK_MPM_NODES = SELKIE_DIM == 3 ? 27 : 9 };

/* Weights of the nodes before, at and behind the point's cell along an axis, and their rise a cell. `offset` is the
 * point's place from the centre of its cell, in cells, -0.5 to 0.5. */
SK_KERNEL void sk_mpm_weights(float offset, float weight[3], float rise[3])
{
    const float below = 0.5f - offset, above = 0.5f + offset;
    weight[0] = 0.5f * below * below;
    weight[1] = 0.75f - offset * offset;
    weight[2] = 0.5f * above * above;
    rise[0] = -below;
    rise[1] = -2.0f * offset;
    rise[2] = above;
}

/* What a point gives. */
typedef struct sk_mpm_gift {
    float mass;                           /*      over that of a point of the first material */
    float velocity[3];                    /* m/s  */
    float slope[SELKIE_DIM * SELKIE_DIM]; /* m/s  a cell: C h */
    float push[SELKIE_DIM * SELKIE_DIM];  /* m/s  kick stress / (density h) */
} sk_mpm_gift;

/* A node as a point sees it. */
typedef struct sk_mpm_sight {
    float weight;
    float rise[SELKIE_DIM]; /* of the weight, a cell */
    float away[SELKIE_DIM]; /* from the point to the node, cells */
} sk_mpm_sight;

/* A node at 0, 1 or 2 along each axis, from its weights and rises along them. */
SK_KERNEL void SK_DIM(sk_mpm_see_at)(const int at[3], const float weight[3], const float rise[3], const float offset[3],
                                     sk_mpm_sight *sight)
{
    sight->weight = 1.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sight->away[d] = (float)(at[d] - 1) - offset[d];
        sight->weight *= weight[d];
        sight->rise[d] = 1.0f;
        for (int e = 0; e < SELKIE_DIM; e++)
            sight->rise[d] *= e == d ? rise[e] : weight[e];
    }
}

/* Node n of the 3^dimension, from weights and rises along the axes. */
SK_KERNEL void SK_DIM(sk_mpm_see)(int n, const float weight[3][3], const float rise[3][3], const float offset[3],
                                  sk_mpm_sight *sight)
{
    const int at[3] = {n % 3, n / 3 % 3, n / 9};
    float own_weight[3] = {0.0f, 0.0f, 0.0f}, own_rise[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; d < SELKIE_DIM; d++) {
        own_weight[d] = weight[d][at[d]];
        own_rise[d] = rise[d][at[d]];
    }
    SK_DIM(sk_mpm_see_at)(at, own_weight, own_rise, offset, sight);
}

/* Adds the share of a point to a node: momentum over the mass of a point of the first material (m/s), then mass. */
SK_KERNEL void SK_DIM(sk_mpm_give)(const sk_mpm_gift *gift, const sk_mpm_sight *sight, float node[4])
{
    for (int i = 0; i < SELKIE_DIM; i++) {
        float value = gift->velocity[i], pushed = 0.0f;
        for (int j = 0; j < SELKIE_DIM; j++) {
            value += gift->slope[SELKIE_DIM * i + j] * sight->away[j];
            pushed += gift->push[SELKIE_DIM * i + j] * sight->rise[j];
        }
        node[i] += gift->mass * (sight->weight * value - pushed);
    }
    node[3] += gift->mass * sight->weight;
}

/* Adds the share of a node to a point: velocity (m/s), a quarter of its affine slope and its gradient (m/s a cell). */
SK_KERNEL void SK_DIM(sk_mpm_take)(const float node[4], const sk_mpm_sight *sight, float velocity[3],
                                   float slope[SELKIE_DIM * SELKIE_DIM], float gradient[SELKIE_DIM * SELKIE_DIM])
{
    for (int i = 0; i < SELKIE_DIM; i++) {
        const float part = sight->weight * node[i];
        velocity[i] += part;
        for (int j = 0; j < SELKIE_DIM; j++) {
            slope[SELKIE_DIM * i + j] += part * sight->away[j];
            gradient[SELKIE_DIM * i + j] += node[i] * sight->rise[j];
        }
    }
}

/* The deformation (F - 1) of a point after steps of `time` (s, over the cell size): F <- (1 + time gradient) F. */
SK_KERNEL void SK_DIM(sk_mpm_deform)(float time, const float gradient[SELKIE_DIM * SELKIE_DIM],
                                     float deformation[SELKIE_DIM * SELKIE_DIM])
{
    float change[SELKIE_DIM * SELKIE_DIM];
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            float sum = gradient[SELKIE_DIM * i + j];
            for (int k = 0; k < SELKIE_DIM; k++)
                sum += gradient[SELKIE_DIM * i + k] * deformation[SELKIE_DIM * k + j];
            change[SELKIE_DIM * i + j] = time * sum;
        }
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++)
        deformation[n] += change[n];
}

/* A wall between two nodes, halfway: what it does to their mean velocity, which is that of points at the wall. Impulses
 * act on both nodes alike, so that momentum into the wall is what their masses carry. `behind` and `before` are
 * velocities (m/s) and masses; `normal` is 1 or -1, away from the wall along `axis`. */
SK_KERNEL void sk_mpm_touch_pair(const sk_solid_contact *contact, int dimension, float behind[4], float before[4])
{
    float wall[3] = {0.0f, 0.0f, 0.0f}, after[3] = {0.0f, 0.0f, 0.0f};
    for (int d = 0; d < dimension; d++)
        wall[d] = after[d] = 0.5f * (behind[d] + before[d]);
    sk_solid_touch(contact, dimension, after);

    /* Impulse J: velocities change by J / (2 m), their mean by J / 4 (1 / m + 1 / m'). */
    const float behind_share = 2.0f * before[3] / (behind[3] + before[3]), before_share = 2.0f - behind_share;
    for (int d = 0; d < dimension; d++) {
        behind[d] += behind_share * (after[d] - wall[d]);
        before[d] += before_share * (after[d] - wall[d]);
    }
}

#endif

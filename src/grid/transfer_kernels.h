/* Transfers between one particle and the nodes around it, trilinear weights. Compiled by the C compiler and by nvcc.
 *
 * A particle has weights on at most three nodes along each axis. Nodes of component d (faces) begin at the cell itself
 * along axis d and one cell below it along the others. Centres begin one cell below it along all axes. So index n of a
 * row of three is node n - 1 of a centred axis, and node n of the faces' own axis.
 */
#ifndef SK_GRID_TRANSFER_KERNELS_H
#define SK_GRID_TRANSFER_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"
#include "grid/grid_kernels.h"

enum { SK_AROUND = SELKIE_DIM == 3 ? 27 : 9 }; /* nodes, or cells, around a cell: three along each axis */

/* Position of a particle in a cell of the grid, 0 to 1 along an axis. */
SK_KERNEL float sk_cell_fraction(float position, float corner, float inverse_cell_size, int cell)
{
    return (position - corner) * inverse_cell_size - (float)cell;
}

/* Clamps a value between two bounds; NaN stays NaN. */
SK_KERNEL float sk_clamp(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

/* Weights of the nodes of component d along each axis. */
SK_KERNEL void sk_face_weights(int d, const float fraction[3], float weights[3][3])
{
    for (int e = 0; e < SELKIE_DIM; e++)
        if (e == d)
            sk_hat_weights_face(fraction[e], weights[e]);
        else
            sk_hat_weights_centred(fraction[e], weights[e]);
}

/* Weight of node n of SK_AROUND, x fastest: the product along the axes. */
SK_KERNEL float sk_node_weight(const float weights[3][3], int n)
{
    float weight = weights[0][n % 3] * weights[1][n / 3 % 3];
    return SELKIE_DIM == 3 ? weight * weights[2][n / 9] : weight;
}

/* --- to the grid --- */

/* Sums of a cell: of its centre and of its lower faces. */
typedef struct sk_gathered {
    float momentum[3]; /* m/s  of mass times velocity, over the mass of a particle of the reference density */
    float mass[3];     /* 1    likewise of mass */
    float weight[3];   /* 1    of volume: all particles have the same */
    float centre;      /* 1    likewise */
} sk_gathered;

/* Weight of a particle on the centre of a cell. `offset` leads from that cell to the particle's own, -1 to 1 along
 * each axis. */
SK_KERNEL float sk_centre_weight(const float fraction[3], const int offset[3])
{
    float weight = 1.0f;
    for (int e = 0; e < SELKIE_DIM; e++) {
        float centred[3];
        sk_hat_weights_centred(fraction[e], centred);
        weight *= centred[1 - offset[e]];
    }
    return weight;
}

/* Velocity of a particle at a face of component d (APIC: Jiang et al. 2015). `affine` is the particle's 3x3 matrix in
 * 1/s, or NULL. */
SK_KERNEL float sk_velocity_at_face(int d, const float fraction[3], const int offset[3], const float velocity[3],
                                    const float *affine, float cell_size)
{
    float value = velocity[d];
    if (!affine)
        return value;
    for (int e = 0; e < SELKIE_DIM; e++) {
        const float node = (e == d ? 0.0f : 0.5f) - (float)offset[e]; /* cells from the corner of the particle's cell */
        value += affine[3 * d + e] * cell_size * (node - fraction[e]);
    }
    return value;
}

/* Adds a particle to the sums of a cell. Its mass is over that of a particle of the reference density. */
SK_KERNEL void sk_gather_particle(const float fraction[3], const int offset[3], const float velocity[3],
                                  const float *affine, float cell_size, float mass, sk_gathered *sums)
{
    float on_face[3], on_centre[3];
    for (int e = 0; e < SELKIE_DIM; e++) {
        float face[3], centred[3];
        sk_hat_weights_face(fraction[e], face);
        sk_hat_weights_centred(fraction[e], centred);
        on_face[e] = face[offset[e] > 0 ? 2 : -offset[e]]; /* the cell above does not reach the lower face */
        on_centre[e] = centred[1 - offset[e]];
    }
    float centre = 1.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        centre *= on_centre[e];
    sums->centre += centre;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float weight = 1.0f;
        for (int e = 0; e < SELKIE_DIM; e++)
            weight *= e == d ? on_face[e] : on_centre[e];
        if (weight == 0.0f)
            continue;
        sums->weight[d] += weight;
        sums->mass[d] += weight * mass;
        sums->momentum[d] += weight * (mass * sk_velocity_at_face(d, fraction, offset, velocity, affine, cell_size));
    }
}

/* Velocity of a face: the mean of the particles around it by mass, NaN if there are none. */
SK_KERNEL float sk_face_velocity(float momentum, float mass)
{
    return mass > 0.0f ? momentum / mass : __builtin_nanf("");
}

/* Reference density over the density of a face's liquid, 1 if there is none. */
SK_KERNEL float sk_face_lightness(float volume, float mass)
{
    return mass > 0.0f ? volume / mass : 1.0f;
}

/* --- to the particles --- */

SK_KERNEL float sk_known_or_zero(float value)
{
    return value == value ? value : 0.0f;
}

/* The grid's share of a FLIP velocity at one node. It is linear in both fields, so they are mixed before sampling. */
SK_KERNEL float sk_flip_mix(float velocity, float change, float ratio)
{
    return ratio * sk_known_or_zero(change) + (1.0f - ratio) * sk_known_or_zero(velocity);
}

/* Component d at a particle, from the nodes around its cell. */
SK_KERNEL float sk_interpolate(int d, const float nodes[SK_AROUND], const float fraction[3])
{
    float weights[3][3], sum = 0.0f;
    sk_face_weights(d, fraction, weights);
    for (int n = 0; n < SK_AROUND; n++)
        sum += sk_node_weight(weights, n) * nodes[n];
    return sum;
}

/* Derivatives of a component at a particle, per cell (APIC's C: the sum of u_i grad w_i). */
SK_KERNEL void sk_interpolate_gradient(int d, const float nodes[SK_AROUND], const float fraction[3], float gradient[3])
{
    float weights[3][3], slopes[3][3];
    sk_face_weights(d, fraction, weights);
    for (int e = 0; e < SELKIE_DIM; e++) {
        /* The particle lies between the first two nodes of the row, or between the last two. */
        const int last = e != d && fraction[e] - 0.5f >= 0.0f;
        for (int i = 0; i < 3; i++)
            slopes[e][i] = i == last ? -1.0f : i == last + 1 ? 1.0f : 0.0f;
    }
    for (int axis = 0; axis < SELKIE_DIM; axis++) {
        float along[3][3];
        for (int e = 0; e < SELKIE_DIM; e++)
            for (int i = 0; i < 3; i++)
                along[e][i] = e == axis ? slopes[e][i] : weights[e][i];
        gradient[axis] = 0.0f;
        for (int n = 0; n < SK_AROUND; n++)
            gradient[axis] += sk_node_weight(along, n) * nodes[n];
    }
}

/* Component d of a displacement at a particle: nearest face along axis d, linear across it. */
SK_KERNEL float sk_interpolate_nearest(int d, const float nodes[SK_AROUND], const float fraction[3])
{
    float weights[3][3], sum = 0.0f;
    sk_face_weights(d, fraction, weights);
    for (int i = 0; i < 3; i++)
        weights[d][i] = i == (fraction[d] >= 0.5f) ? 1.0f : 0.0f;
    for (int n = 0; n < SK_AROUND; n++)
        sum += sk_node_weight(weights, n) * nodes[n];
    return sum;
}

#endif

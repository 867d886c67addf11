/* The staggered velocity field at a place of a dense piece of it; 2D or 3D by an argument. Compiled by the C compiler
 * and by nvcc. */
#ifndef SK_GRID_SAMPLER_KERNELS_H
#define SK_GRID_SAMPLER_KERNELS_H

#include "base/kernel.h"

/* A dense piece of the velocity field. Node (i,j,k) of each component is at i + pitch (j + pitch k); component d sits
 * on the lower faces across axis d. Positions are in cells from the piece's corner. */
typedef struct sk_velocity_piece {
    const float *component[3];
    int pitch;
    int dimension;
} sk_velocity_piece;

/* The node below a position for component d, the steps to the next one along each axis, and how far it is. */
SK_KERNEL int sk_locate(const sk_velocity_piece *piece, int d, const float position[3], const int dimension,
                        int steps[3], float weight[3])
{
    int base = 0, step = 1;
    for (int e = 0; e < dimension; e++) {
        float x = e == d ? position[e] : position[e] - 0.5f;
        int i = (int)x;
        weight[e] = x - (float)i;
        base += i * step;
        steps[e] = step;
        step *= piece->pitch;
    }
    return base;
}

/* Component d at a position, trilinear. NaN if one of the nodes is unknown. */
SK_KERNEL float sk_sample_component(const sk_velocity_piece *piece, int d, const float position[3], const int dimension)
{
    int steps[3];
    float weight[3];
    int base = sk_locate(piece, d, position, dimension, steps, weight);
    const float *q = piece->component[d] + base;
    float near = q[0] + weight[0] * (q[1] - q[0]);
    const float *r = q + steps[1];
    near += weight[1] * ((r[0] + weight[0] * (r[1] - r[0])) - near);
    if (dimension == 2)
        return near;
    q += steps[2];
    r += steps[2];
    float far = q[0] + weight[0] * (q[1] - q[0]);
    far += weight[1] * ((r[0] + weight[0] * (r[1] - r[0])) - far);
    return near + weight[2] * (far - near);
}

/* Likewise, from the known nodes alone, their weights made to sum to one; `fallback` if there are none. */
SK_KERNEL float sk_sample_component_known(const sk_velocity_piece *piece, int d, const float position[3],
                                          const int dimension, float fallback)
{
    int steps[3];
    float weight[3];
    int base = sk_locate(piece, d, position, dimension, steps, weight);
    float sum = 0.0f, total = 0.0f;
    for (int corner = 0; corner < (dimension == 2 ? 4 : 8); corner++) {
        float w = 1.0f;
        int node = base;
        for (int e = 0; e < dimension; e++) {
            w *= corner >> e & 1 ? weight[e] : 1.0f - weight[e];
            node += corner >> e & 1 ? steps[e] : 0;
        }
        float value = piece->component[d][node];
        if (value == value) {
            sum += w * value;
            total += w;
        }
    }
    return total > 1e-6f ? sum / total : fallback;
}

SK_KERNEL void sk_sample_velocity(const sk_velocity_piece *piece, const float position[3], const int dimension,
                                  const float fallback[3], float velocity[3])
{
    for (int d = 0; d < dimension; d++) {
        float u = sk_sample_component(piece, d, position, dimension);
        velocity[d] = u == u ? u : sk_sample_component_known(piece, d, position, dimension, fallback[d]);
    }
}

#endif

/* A tracer in the velocities of the nodes of a regular grid. */
#ifndef SK_METHODS_REDUCED_KERNELS_H
#define SK_METHODS_REDUCED_KERNELS_H

#include "base/kernel.h"

/* Velocities at the nodes: u and v of node (i, j) at values[2 ((i * (cells[1] + 1)) + j)]. */
typedef struct sk_reduced_view {
    const float *values; /* m/s */
    int cells[2];
    float inverse[2]; /* 1/m  cells over a length */
    float size[2];    /* m */
    int periodic[2];
    int open[4]; /* x_min x_max y_min y_max */
} sk_reduced_view;

/* Velocity at a point, bilinear. Points outside take the velocity of the nearest point of the box. */
SK_KERNEL void sk_reduced_sample(const sk_reduced_view *view, float x, float y, float velocity[2])
{
    const float last_x = (float)view->cells[0], last_y = (float)view->cells[1];
    float gx = x * view->inverse[0], gy = y * view->inverse[1];
    if (view->periodic[0])
        gx -= last_x * __builtin_floorf(gx / last_x);
    if (view->periodic[1])
        gy -= last_y * __builtin_floorf(gy / last_y);
    gx = gx > 0.0f ? (gx < last_x ? gx : last_x) : 0.0f;
    gy = gy > 0.0f ? (gy < last_y ? gy : last_y) : 0.0f;
    int i = (int)gx, j = (int)gy;
    i = i < view->cells[0] ? i : view->cells[0] - 1;
    j = j < view->cells[1] ? j : view->cells[1] - 1;

    const float fx = gx - (float)i, fy = gy - (float)j;
    const int row = 2 * (view->cells[1] + 1);
    const float *low = view->values + (long)i * row + 2 * j, *high = low + row;
    const float w00 = (1.0f - fx) * (1.0f - fy), w01 = (1.0f - fx) * fy, w10 = fx * (1.0f - fy), w11 = fx * fy;
    velocity[0] = w00 * low[0] + w01 * low[2] + (w10 * high[0] + w11 * high[2]);
    velocity[1] = w00 * low[1] + w01 * low[3] + (w10 * high[1] + w11 * high[3]);
}

/* Puts a tracer to a place, in the box. Returns 0 if that lies beyond an open side. */
SK_KERNEL int sk_reduced_place_tracer(const sk_reduced_view *view, const float place[2], float position[3])
{
    int inside = 1;
    for (int d = 0; d < 2; d++) {
        const float size = view->size[d];
        float x = place[d];
        if (view->periodic[d]) {
            x -= size * __builtin_floorf(x / size);
        } else {
            inside &= !(x < 0.0f && view->open[2 * d]) && !(x > size && view->open[2 * d + 1]);
            x = x > 0.0f ? x : 0.0f;
        }
        position[d] = x < size ? x : size;
    }
    return inside;
}

/* Moves a tracer by the midpoint rule. Returns 0 if it has left through an open side. */
SK_KERNEL int sk_reduced_move_tracer(const sk_reduced_view *view, float dt, float position[3], float velocity[3])
{
    float u[2];
    sk_reduced_sample(view, position[0], position[1], u);
    sk_reduced_sample(view, position[0] + 0.5f * dt * u[0], position[1] + 0.5f * dt * u[1], u);
    const float place[2] = {position[0] + dt * u[0], position[1] + dt * u[1]};
    velocity[0] = u[0];
    velocity[1] = u[1];
    return sk_reduced_place_tracer(view, place, position);
}

#endif

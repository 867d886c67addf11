/* A node of the map of the dye: values between the nodes, and the way back in time. */
#ifndef SK_METHODS_REDUCED_DYE_KERNELS_H
#define SK_METHODS_REDUCED_DYE_KERNELS_H

#include "methods/reduced/reduced_kernels.h"

/* Weights of four points at -1, 0, 1, 2 for a value at t: Lagrange's cubic. */
SK_KERNEL void sk_dye_weights(float t, float w[4])
{
    const float a = t + 1.0f, b = t - 1.0f, c = t - 2.0f;
    w[0] = -t * b * c * (1.0f / 6.0f);
    w[1] = a * b * c * 0.5f;
    w[2] = -a * t * c * 0.5f;
    w[3] = a * t * b * (1.0f / 6.0f);
}

/* First of the four nodes around a place along an axis, which is `t` behind the second of them. Beside walls the nodes
 * lie on one side. */
SK_KERNEL int sk_dye_first(const sk_reduced_view *view, int d, float x, float *t)
{
    const float last = (float)view->cells[d];
    float g = x * view->inverse[d];
    if (view->periodic[d])
        g -= last * __builtin_floorf(g / last);
    g = g > 0.0f ? (g < last ? g : last) : 0.0f;
    int first = (int)g - 1;
    if (!view->periodic[d])
        first = first < 0 ? 0 : first > view->cells[d] - 3 ? view->cells[d] - 3 : first;
    *t = g - (float)(first + 1);
    return first;
}

/* The pair of values at a place, by cubics. Needs three cells along each axis. */
SK_KERNEL void sk_dye_sample(const sk_reduced_view *view, const float x[2], float value[2])
{
    float t[2], w[2][4], sum[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    const int first[2] = {sk_dye_first(view, 0, x[0], &t[0]), sk_dye_first(view, 1, x[1], &t[1])};
    const int row = 2 * (view->cells[1] + 1);
    const int across = first[1] < 0 || first[1] + 3 > view->cells[1]; /* the four nodes wrap around */
    sk_dye_weights(t[0], w[0]);
    sk_dye_weights(t[1], w[1]);
    for (int i = 0; i < 4; i++) {
        int at = first[0] + i;
        at = at < 0 ? at + view->cells[0] : at > view->cells[0] ? at - view->cells[0] : at;
        const float *values = view->values + (long)at * row;
        for (int j = 0; j < 4 && across; j++) {
            int to = first[1] + j;
            to = to < 0 ? to + view->cells[1] : to > view->cells[1] ? to - view->cells[1] : to;
            sum[2 * j] += w[0][i] * values[2 * to];
            sum[2 * j + 1] += w[0][i] * values[2 * to + 1];
        }
        for (int k = 0; k < 8 && !across; k++)
            sum[k] += w[0][i] * values[2 * first[1] + k];
    }
    for (int d = 0; d < 2; d++)
        value[d] = w[1][0] * sum[d] + w[1][1] * sum[2 + d] + (w[1][2] * sum[4 + d] + w[1][3] * sum[6 + d]);
}

/* Goes back by dt (s) along the flow: Runge-Kutta steps of fourth order that cross at most two cells each. `smooth`:
 * cubics between the nodes, else linear ones. */
SK_KERNEL void sk_dye_trace(const sk_reduced_view *view, int smooth, float dt, float x[2])
{
    enum { MOST_PARTS = 64 };
    float u[4][2];
    sk_reduced_sample(view, x[0], x[1], u[0]);
    const float fast = __builtin_fabsf(u[0][0]) * view->inverse[0] + __builtin_fabsf(u[0][1]) * view->inverse[1];
    const float crossed = 0.5f * dt * fast;
    const int parts = crossed < (float)(MOST_PARTS - 1) ? 1 + (int)crossed : MOST_PARTS;
    const float part = dt / (float)parts;
    for (int n = 0; n < parts; n++) {
        for (int k = 0; k < 4; k++) {
            const float ahead = k == 0 ? 0.0f : k == 3 ? part : 0.5f * part;
            const float at[2] = {x[0] - ahead * u[k ? k - 1 : 0][0], x[1] - ahead * u[k ? k - 1 : 0][1]};
            if (smooth)
                sk_dye_sample(view, at, u[k]);
            else
                sk_reduced_sample(view, at[0], at[1], u[k]);
        }
        for (int d = 0; d < 2; d++)
            x[d] -= part * (1.0f / 6.0f) * (u[0][d] + u[3][d] + 2.0f * (u[1][d] + u[2][d]));
    }
    for (int d = 0; d < 2; d++) {
        const int free = view->periodic[d];
        x[d] = x[d] < 0.0f && !free && !view->open[2 * d] ? 0.0f : x[d];
        x[d] = x[d] > view->size[d] && !free && !view->open[2 * d + 1] ? view->size[d] : x[d];
    }
}

#endif

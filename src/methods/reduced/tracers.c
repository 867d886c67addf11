#include "methods/reduced/tracers.h"

typedef float four __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float))));
typedef float two __attribute__((vector_size(2 * sizeof(float)), aligned(sizeof(float))));

int sk_reduced_has_walls(const sk_reduced_view *view)
{
    return !view->periodic[0] && !view->periodic[1] && !view->open[0] && !view->open[1] && !view->open[2] &&
           !view->open[3];
}

/* The velocities of the two nodes along y are one vector: the mean along x is one operation. */
static inline two sample(const sk_reduced_view *view, float x, float y)
{
    float gx = x * view->inverse[0], gy = y * view->inverse[1];
    gx = __builtin_fminf(__builtin_fmaxf(gx, 0.0f), (float)view->cells[0]);
    gy = __builtin_fminf(__builtin_fmaxf(gy, 0.0f), (float)view->cells[1]);
    int i = (int)gx, j = (int)gy;
    i = i < view->cells[0] ? i : view->cells[0] - 1;
    j = j < view->cells[1] ? j : view->cells[1] - 1;
    const float fx = gx - (float)i, fy = gy - (float)j;
    const float *low = view->values + 2 * ((long)i * (view->cells[1] + 1) + j);
    const four a = *(const four *)(const void *)low, b = *(const four *)(const void *)(low + 2 * (view->cells[1] + 1)),
               m = a + fx * (b - a);
    const two near = {m[0], m[1]}, far = {m[2], m[3]};
    return near + fy * (far - near);
}

/* Groups of tracers: their chains of dependent operations overlap. */
void sk_reduced_move_tracers(const sk_reduced_view *view, float dt, sk_particle *tracers, int64_t count)
{
    enum { GROUP = 4 };
    const sk_reduced_view v = *view;
    for (int64_t first = 0; first < count; first += GROUP) {
        const int group = count - first < GROUP ? (int)(count - first) : GROUP;
        two u[GROUP];
        for (int n = 0; n < group; n++)
            u[n] = sample(&v, tracers[first + n].position[0], tracers[first + n].position[1]);
        for (int n = 0; n < group; n++)
            u[n] = sample(&v, tracers[first + n].position[0] + 0.5f * dt * u[n][0],
                          tracers[first + n].position[1] + 0.5f * dt * u[n][1]);
        for (int n = 0; n < group; n++)
            for (int d = 0; d < 2; d++) {
                float *x = &tracers[first + n].position[d];
                *x = __builtin_fminf(__builtin_fmaxf(*x + dt * u[n][d], 0.0f), v.size[d]);
                tracers[first + n].velocity[d] = u[n][d];
            }
    }
}

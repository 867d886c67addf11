/* Liquid particles inside bodies of particles, for the CPU and the GPU: a test of one place, and of a path. For files
 * compiled per dimension. */
#ifndef SK_METHODS_SHAPE_INSIDE_PLAIN_H
#define SK_METHODS_SHAPE_INSIDE_PLAIN_H

#include <math.h>

#include "grid/plain.h"
#include "methods/shape_matching/shape_matching.h"

/* A liquid particle inside a body. */
typedef struct sk_soft_inside {
    uint32_t particle, point;
    int32_t body;
    float normal[3]; /* outwards */
    float depth;     /* m */
} sk_soft_inside;

/* The number of the body in this method, of a point. */
SK_KERNEL int soft_body_of(const sk_soft *soft, uint32_t point)
{
    int b = 0;
    while (point >= soft->bodies[b].first + soft->bodies[b].count)
        b++;
    return b;
}

/* The nearest point of a body in the cells around. */
SK_KERNEL int64_t soft_nearest_point(const sk_step *step, sk_plain_cell cell, const float x[3], double *distance2)
{
    const sk_soft *soft = step->soft;
    int64_t best = -1;
    const double h = step->grid.cell_size;
    int at[3];
    sk_plain_coordinates(&step->grid, cell, at);
    *distance2 = 4.0001 * soft->spacing * soft->spacing; /* farther ones do not count */
    for (int m = 0; m < (SELKIE_DIM == 3 ? 27 : 9); m++) {
        /* The own cell first: then most of the others are too far away. */
        const int own = SELKIE_DIM == 3 ? 13 : 4, n = m == 0 ? own : m <= own ? m - 1 : m;
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        double gap2 = 0.0;
        for (int d = 0; d < SELKIE_DIM; d++) {
            const double low = step->grid.corner[d] + (at[d] + offset[d]) * h;
            const double gap = fmax(fmax(low - (double)x[d], (double)x[d] - low - h), 0.0);
            gap2 += gap * gap;
        }
        if (gap2 > *distance2 * 1.0001)
            continue;
        const sk_plain_cell other = sk_plain_beside(&step->grid, cell, offset);
        uint32_t begin, end;
        sk_plain_particles(&step->grid, other, &begin, &end);
        if (begin == end || !soft->crowded[sk_plain_index(other)])
            continue;
        for (uint32_t p = begin; p < end; p++) {
            const uint32_t k = step->particles.records[p].id - soft->first_id;
            double square = 0.0;
            if (!soft->owner[p] || k >= soft->point_count)
                continue;
            for (int d = 0; d < SELKIE_DIM; d++)
                square += (soft->points[k].position[d] - (double)x[d]) * (soft->points[k].position[d] - (double)x[d]);
            if (square < *distance2 || (square == *distance2 && (int64_t)k < best)) {
                *distance2 = square;
                best = (int64_t)k;
            }
        }
    }
    return best;
}

/* Is a particle at x inside the body of the point k nearest to it? Fills in where. */
SK_KERNEL int soft_is_behind(const sk_soft *soft, uint32_t p, const float x[3], int64_t k, sk_soft_inside *found)
{
    double distance2 = 0.0, out = 0.0;
    for (int d = 0; d < SELKIE_DIM && k >= 0; d++)
        distance2 += (soft->points[k].position[d] - (double)x[d]) * (soft->points[k].position[d] - (double)x[d]);
    if (k < 0 || distance2 > 4.0 * soft->spacing * soft->spacing)
        return 0;
    const int b = soft_body_of(soft, (uint32_t)k);
    const double *r = soft->states[b].rotation;
    const float *surface = soft->surfaces[k];
    found->particle = p;
    found->point = (uint32_t)k;
    found->body = b;
    found->normal[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        found->normal[d] = (float)(r[3 * d] * (double)surface[0] + r[3 * d + 1] * (double)surface[1] +
                                   r[3 * d + 2] * (double)surface[2]);
        out += (double)found->normal[d] * ((double)x[d] - soft->points[k].position[d]);
    }
    found->depth = (float)((double)surface[3] - out);
    /* Beside an edge the plane of the surface goes on, the body does not. */
    return found->depth > 0.0f && distance2 - out * out < 0.75 * soft->spacing * soft->spacing;
}

/* Is a particle at x, which is in a cell, inside a body? Fills in where. */
SK_KERNEL int soft_find_inside(const sk_step *step, sk_plain_cell cell, uint32_t p, const float x[3],
                               sk_soft_inside *found)
{
    double distance2;
    const int64_t k = soft_nearest_point(step, cell, x, &distance2);
    return soft_is_behind(step->soft, p, x, k, found);
}

/* Is particle p at x inside a body? `in` is what the test needs. */
typedef int (*soft_inside_test)(const void *in, uint32_t p, const float x[3], sk_soft_inside *found);

/* Stops a particle where its path enters a body: half a spacing inside at most, from where the next step leads it back
 * to the side that it came from. Returns whether it does. The path is that relative to the body, whose points are still
 * at the start of the step. */
SK_KERNEL int soft_stop_particle(const sk_step *step, uint32_t p, const float before[3], soft_inside_test is_inside,
                                 const void *in)
{
    const sk_soft *soft = step->soft;
    sk_particle *particle = &step->particles.records[p];
    double way[3] = {0.0, 0.0, 0.0}, length2 = 0.0;
    sk_soft_inside found;
    for (int d = 0; d < SELKIE_DIM; d++) {
        way[d] = (double)particle->position[d] - (double)before[d];
        length2 += way[d] * way[d];
    }
    if (!(length2 > 0.15 * soft->spacing * soft->spacing)) /* most of them: one step at most */
        return 0;
    const int count = (int)ceil(sqrt(length2) / (0.4 * soft->spacing));
    for (int n = 0; n <= count && count > 1; n++) {
        float x[3] = {0.0f, 0.0f, 0.0f};
        for (int d = 0; d < SELKIE_DIM; d++)
            x[d] = (float)((double)before[d] + way[d] * n / count);
        if (!is_inside(in, p, x, &found))
            continue;
        double into = 0.0;
        const double *drift = soft->points[found.point].velocity;
        for (int d = 0; d < SELKIE_DIM; d++)
            into += (double)found.normal[d] * (way[d] - step->dt * drift[d]);
        if (n == 0 || !(into < 0.0)) /* it was inside, or leaves */
            return 0;
        for (int d = 0; d < SELKIE_DIM; d++)
            particle->position[d] =
                (float)((double)before[d] + way[d] * n / count + step->dt * drift[d] * (1.0 - (double)n / count));
        return 1;
    }
    return 0;
}

#endif

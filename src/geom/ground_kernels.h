/* The distance to ground from a table of heights, one query at a time: see heightfield.c. Compiled by the C compiler
 * and by nvcc.
 *
 * If all of the surface within t of a point, seen from above, lies at least t below or above it, the surface is at
 * least t away; so the largest min(t, gap) over several t is a lower bound. The lowest and highest points come from a
 * pyramid of minima and maxima, and t doubles from level to level. If it is below `reach`, the search visits the
 * triangles within twice the reach, except those in squares whose heights are too far off. */
#ifndef SK_GEOM_GROUND_KERNELS_H
#define SK_GEOM_GROUND_KERNELS_H

#include <limits.h>
#include <math.h>
#include <stddef.h>

#include "base/kernel.h"

enum { SK_GROUND_LEVELS = 21 };

/* The axes (index) and directions (+1, -1) of east, north and up, and the table. */
typedef struct sk_heightfield_frame {
    int axis[3]; /* east, north, up */
    double sign[3];
    double origin[2], spacing[2]; /* m, of the table's first point and along east and north */
    int count[2];                 /* points along east and north */
} sk_heightfield_frame;

typedef struct sk_ground {
    sk_heightfield_frame frame;
    int dimension;
    double reach;           /* m */
    double highest, lowest; /* m along up */
    float *heights;         /* [count[1]][count[0]] m along up, the southernmost row first */
    int levels;             /*    of the pyramid */
    int size[SK_GROUND_LEVELS][2];
    float (*range[SK_GROUND_LEVELS])[2]; /* [size[1]][size[0]] lowest and highest point of the squares below */
} sk_ground;

/* fmin and fmax of the C library are calls; these are single instructions. No NaNs occur here. */
SK_KERNEL double sk_ground_smaller(double a, double b)
{
    return a < b ? a : b;
}

SK_KERNEL double sk_ground_larger(double a, double b)
{
    return a > b ? a : b;
}

SK_KERNEL float sk_ground_node(const sk_ground *field, int i, int j)
{
    const int *count = field->frame.count;
    i = i < 0 ? 0 : i >= count[0] ? count[0] - 1 : i;
    j = j < 0 ? 0 : j >= count[1] ? count[1] - 1 : j;
    return field->heights[(size_t)j * (size_t)count[0] + (size_t)i];
}

/* Squares are counted in ints. Far beyond the table the ground is level, so the count may saturate. */
SK_KERNEL int sk_ground_square(double place)
{
    return (int)floor(sk_ground_smaller(sk_ground_larger(place, -1e8), 1e8));
}

SK_KERNEL_CALLED double sk_ground_height(const sk_ground *field, double east, double north)
{
    const double *spacing = field->frame.spacing;
    double u = sk_ground_smaller(sk_ground_larger(east / spacing[0], -1.0), field->frame.count[0]);
    double v = sk_ground_smaller(sk_ground_larger(north / spacing[1], -1.0), field->frame.count[1]);
    int i = sk_ground_square(u), j = sk_ground_square(v);
    double fu = u - i, fv = v - j, h00 = sk_ground_node(field, i, j), h11 = sk_ground_node(field, i + 1, j + 1);
    if (fu > fv) {
        double h10 = sk_ground_node(field, i + 1, j);
        return h00 + fu * (h10 - h00) + fv * (h11 - h10);
    }
    double h01 = sk_ground_node(field, i, j + 1);
    return h00 + fv * (h01 - h00) + fu * (h11 - h01);
}

/* Lowest and highest point of the surface within a distance, seen from above. Covers whole squares of the level, which
 * should be about as wide as the distance. */
SK_KERNEL void sk_ground_range(const sk_ground *field, const double place[2], double radius, int level, float range[2])
{
    const int *size = field->size[level];
    int first[2], last[2];
    for (int a = 0; a < 2; a++) {
        double width = field->frame.spacing[a] * (double)(1 << level);
        first[a] = sk_ground_square((place[a] - radius) / width);
        last[a] = sk_ground_square((place[a] + radius) / width);
        /* Beyond the table the height is that of its edge. */
        first[a] = first[a] < 0 ? 0 : first[a] >= size[a] ? size[a] - 1 : first[a];
        last[a] = last[a] < 0 ? 0 : last[a] >= size[a] ? size[a] - 1 : last[a];
    }
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (int j = first[1]; j <= last[1]; j++)
        for (int i = first[0]; i <= last[0]; i++) {
            const float *square = field->range[level][(size_t)j * (size_t)size[0] + (size_t)i];
            range[0] = square[0] < range[0] ? square[0] : range[0];
            range[1] = square[1] > range[1] ? square[1] : range[1];
        }
}

/* A lower bound of the distance to the surface, m; exact over level ground. */
SK_KERNEL double sk_ground_bound(const sk_ground *field, const double place[2], double height, double above)
{
    double vertical = fabs(above), best = 0.0;
    double width = sk_ground_smaller(field->frame.spacing[0], field->frame.spacing[1]);
    for (int level = 0; level < field->levels; level++) {
        double radius = sk_ground_smaller(width * (double)(1 << level), vertical);
        float range[2];
        sk_ground_range(field, place, radius, level, range);
        double gap = above < 0.0 ? range[0] - height : height - range[1];
        best = sk_ground_larger(best, sk_ground_smaller(radius, gap));
        if (gap <= best || radius >= vertical)
            break; /* a larger t finds no larger gap */
    }
    /* The height above the highest, or below the lowest, point of all is a bound too. */
    return sk_ground_larger(best, above < 0.0 ? field->lowest - height : height - field->highest);
}

SK_KERNEL double sk_ground_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Nearest point of the segment a + t (b - a) to the origin. */
SK_KERNEL double sk_ground_on_segment(const double a[3], const double b[3], double nearest[3])
{
    double way[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, length2 = sk_ground_dot(way, way);
    double t = length2 > 0.0 ? sk_ground_smaller(sk_ground_larger(-sk_ground_dot(a, way) / length2, 0.0), 1.0) : 0.0;
    for (int d = 0; d < 3; d++)
        nearest[d] = a[d] + t * way[d];
    return sk_ground_dot(nearest, nearest);
}

/* Nearest point of a triangle to the origin: the foot on its plane if that is inside, else on an edge. Triangles of a
 * height field have an area when seen from above, so that the plane is never undefined. */
SK_KERNEL_CALLED double sk_ground_on_triangle(const double corners[3][3], double nearest[3])
{
    const double *a = corners[0], *b = corners[1], *c = corners[2];
    double ab[3], ac[3], normal[3];
    for (int d = 0; d < 3; d++) {
        ab[d] = b[d] - a[d];
        ac[d] = c[d] - a[d];
    }

    /* Foot of the origin on the plane. */
    normal[0] = ab[1] * ac[2] - ab[2] * ac[1];
    normal[1] = ab[2] * ac[0] - ab[0] * ac[2];
    normal[2] = ab[0] * ac[1] - ab[1] * ac[0];
    double height = sk_ground_dot(a, normal) / sk_ground_dot(normal, normal);
    for (int d = 0; d < 3; d++)
        nearest[d] = height * normal[d];

    /* Inside the triangle? */
    int inside = 1;
    for (int e = 0; e < 3 && inside; e++) {
        const double *p = corners[e], *q = corners[(e + 1) % 3];
        double edge[3], from[3], turn[3];
        for (int d = 0; d < 3; d++) {
            edge[d] = q[d] - p[d];
            from[d] = nearest[d] - p[d];
        }
        turn[0] = edge[1] * from[2] - edge[2] * from[1];
        turn[1] = edge[2] * from[0] - edge[0] * from[2];
        turn[2] = edge[0] * from[1] - edge[1] * from[0];
        inside = sk_ground_dot(turn, normal) >= 0.0;
    }
    if (inside)
        return sk_ground_dot(nearest, nearest);

    /* Else the nearest point is on an edge. */
    double best = INFINITY;
    for (int e = 0; e < 3; e++) {
        double candidate[3], distance2 = sk_ground_on_segment(corners[e], corners[(e + 1) % 3], candidate);
        if (distance2 < best) {
            best = distance2;
            for (int d = 0; d < 3; d++)
                nearest[d] = candidate[d];
        }
    }
    return best;
}

typedef struct sk_ground_query {
    const sk_ground *field;
    double place[2], height; /* m of the point: east, north, up */
    double best2;            /* m2 */
    double nearest[3];       /* m from the point to the surface: east, north, up */
} sk_ground_query;

SK_KERNEL_CALLED void sk_ground_ask(sk_ground_query *query, int i, int j)
{
    const sk_ground *field = query->field;
    const double *s = field->frame.spacing;
    double low[2] = {i * s[0] - query->place[0], j * s[1] - query->place[1]};
    double high[2] = {low[0] + s[0], low[1] + s[1]};
    double h[4] = {sk_ground_node(field, i, j), sk_ground_node(field, i + 1, j), sk_ground_node(field, i + 1, j + 1),
                   sk_ground_node(field, i, j + 1)};
    double least = sk_ground_smaller(sk_ground_smaller(h[0], h[1]), sk_ground_smaller(h[2], h[3])) - query->height;
    double most = sk_ground_larger(sk_ground_larger(h[0], h[1]), sk_ground_larger(h[2], h[3])) - query->height;
    double away[3] = {sk_ground_larger(sk_ground_larger(low[0], -high[0]), 0.0),
                      sk_ground_larger(sk_ground_larger(low[1], -high[1]), 0.0),
                      sk_ground_larger(sk_ground_larger(least, -most), 0.0)};
    if (sk_ground_dot(away, away) >= query->best2)
        return;
    const double points[4][3] = {{low[0], low[1], h[0] - query->height},
                                 {high[0], low[1], h[1] - query->height},
                                 {high[0], high[1], h[2] - query->height},
                                 {low[0], high[1], h[3] - query->height}};
    for (int t = 0; t < 2; t++) {
        double triangle[3][3], nearest[3];
        for (int d = 0; d < 3; d++) {
            triangle[0][d] = points[0][d];
            triangle[1][d] = points[1 + t][d];
            triangle[2][d] = points[2 + t][d];
        }
        double distance2 = sk_ground_on_triangle((const double(*)[3])triangle, nearest);
        if (distance2 < query->best2) {
            query->best2 = distance2;
            for (int d = 0; d < 3; d++)
                query->nearest[d] = nearest[d];
        }
    }
}

/* May the squares below a square of the pyramid hold a nearer point? */
SK_KERNEL int sk_ground_may_be_nearer(const sk_ground_query *query, int level, const int index[2])
{
    const sk_ground *field = query->field;
    const int *size = field->size[level];
    const float *range = field->range[level][(size_t)index[1] * (size_t)size[0] + (size_t)index[0]];
    double away[3], least = range[0] - query->height, most = range[1] - query->height;
    for (int a = 0; a < 2; a++) {
        double width = field->frame.spacing[a] * (double)(1 << level), low = index[a] * width - query->place[a];
        away[a] = sk_ground_larger(sk_ground_larger(low, -low - width), 0.0);
    }
    away[2] = sk_ground_larger(sk_ground_larger(least, -most), 0.0);
    return sk_ground_dot(away, away) < query->best2;
}

/* Asks the squares below a square of the pyramid, the four parts of each in their order. Without recursion: a kernel
 * must know how much memory it needs. */
SK_KERNEL void sk_ground_ask_below(sk_ground_query *query, int top, int i, int j)
{
    int level = top, at[2] = {i, j};
    for (;;) {
        const int *size = query->field->size[level], exists = at[0] < size[0] && at[1] < size[1];
        if (exists && level == 0)
            sk_ground_ask(query, at[0], at[1]);
        else if (exists && sk_ground_may_be_nearer(query, level, at)) {
            level--;
            at[0] *= 2;
            at[1] *= 2;
            continue;
        }

        /* The next part, of the first square above that has one left. */
        while (level < top && (at[0] & 1) && (at[1] & 1)) {
            level++;
            at[0] >>= 1;
            at[1] >>= 1;
        }
        if (level == top)
            return;
        at[1] += at[0] & 1;
        at[0] ^= 1;
    }
}

/* All squares that may hold a nearer point than the one found so far. */
SK_KERNEL void sk_ground_search(sk_ground_query *query)
{
    const sk_ground *field = query->field;
    const sk_heightfield_frame *frame = &field->frame;
    double rest = sqrt(query->best2), least = sk_ground_smaller(frame->spacing[0], frame->spacing[1]);
    int first[2], last[2], own[2], within = 1, level = 0;

    /* Range of squares within the distance found so far. */
    for (int a = 0; a < 2; a++) {
        first[a] = sk_ground_square((query->place[a] - rest) / frame->spacing[a]);
        last[a] = sk_ground_square((query->place[a] + rest) / frame->spacing[a]);
        within &= first[a] >= 0 && last[a] < field->size[0][a];
        /* Beyond the table the squares repeat those of its edge. The nearest point is either straight across or at the
         * edge, so one square at the edge and the point's own square are enough. */
        own[a] = sk_ground_square(query->place[a] / frame->spacing[a]);
        first[a] = first[a] < -1 ? -1 : first[a] > field->size[0][a] ? field->size[0][a] : first[a];
        last[a] = last[a] > field->size[0][a] ? field->size[0][a] : last[a] < -1 ? -1 : last[a];
        own[a] = own[a] < first[a] || own[a] > last[a] ? own[a] : INT_MIN;
    }

    /* Within the table, start at the level of the pyramid whose squares are as large as the distance. */
    while (within && level < field->levels - 1 && least * (double)(1 << level) < rest)
        level++;
    if (within) {
        for (int j = first[1] >> level; j <= last[1] >> level; j++)
            for (int i = first[0] >> level; i <= last[0] >> level; i++)
                sk_ground_ask_below(query, level, i, j);
        return;
    }

    /* Beyond the table there is no pyramid: visit the squares one by one. */
    for (int j = first[1]; j <= last[1] + 1; j++)
        for (int i = first[0]; i <= last[0] + 1; i++) {
            int x = i <= last[0] ? i : own[0], y = j <= last[1] ? j : own[1];
            if (x != INT_MIN && y != INT_MIN)
                sk_ground_ask(query, x, y);
        }
}

/* Upward normal of the triangle over a place, in the frame of the field. */
SK_KERNEL void sk_ground_normal(const sk_ground *field, const double place[2], double normal[3])
{
    const double *s = field->frame.spacing;
    double step = 1e-3;
    double east = sk_ground_height(field, place[0] + step * s[0], place[1]) -
                  sk_ground_height(field, place[0] - step * s[0], place[1]);
    double north = sk_ground_height(field, place[0], place[1] + step * s[1]) -
                   sk_ground_height(field, place[0], place[1] - step * s[1]);
    normal[0] = -east / (2.0 * step * s[0]);
    normal[1] = -north / (2.0 * step * s[1]);
    normal[2] = 1.0;
}

SK_KERNEL void sk_ground_set_normal(const sk_ground *field, const double local[3], double normal[3])
{
    const sk_heightfield_frame *frame = &field->frame;
    double v[3] = {local[0], field->dimension == 2 ? 0.0 : local[1], local[2]}, length = sqrt(sk_ground_dot(v, v));
    if (!(length > 0.0)) {
        v[2] = length = 1.0;
        v[0] = v[1] = 0.0;
    }
    for (int a = 0; a < 3; a++)
        normal[frame->axis[a]] = frame->sign[a] * v[a] / length;
}

/* The point in the frame of the table; returns how far it is above the ground (m). */
SK_KERNEL double sk_ground_place(const sk_ground *field, const double x[3], double place[2], double *height)
{
    const sk_heightfield_frame *frame = &field->frame;
    for (int a = 0; a < 2; a++)
        place[a] = frame->sign[a] * (x[frame->axis[a]] - frame->origin[a]);
    if (field->dimension == 2)
        place[1] = 0.0;
    *height = frame->sign[2] * x[frame->axis[2]];
    return *height - sk_ground_height(field, place[0], place[1]);
}

SK_KERNEL int sk_ground_inside(const sk_ground *field, const double x[3])
{
    double place[2], height;
    return sk_ground_place(field, x, place, &height) < 0.0;
}

SK_KERNEL_CALLED double sk_ground_distance(const sk_ground *field, const double x[3], double normal[3])
{
    const sk_heightfield_frame *frame = &field->frame;
    sk_ground_query query;
    query.field = field;
    query.nearest[0] = query.nearest[1] = 0.0;

    /* Bounds that need no search. */
    double above = sk_ground_place(field, x, query.place, &query.height);
    double vertical = fabs(above), sign = above < 0.0 ? -1.0 : 1.0;
    double bound = sk_ground_bound(field, query.place, query.height, above), found = bound;
    double local[3];
    sk_ground_normal(field, query.place, local);

    /* Search only near the ground. */
    if (bound < field->reach && bound < vertical) {
        /* The point straight below also bounds the distance. The search stops at twice the reach. */
        double radius = sk_ground_smaller(vertical, 2.0 * field->reach);
        query.best2 = radius * radius;
        query.nearest[2] = -above;
        /* The square below usually holds the nearest point and so bounds the search of the others. */
        sk_ground_ask(&query, sk_ground_square(query.place[0] / frame->spacing[0]),
                      sk_ground_square(query.place[1] / frame->spacing[1]));
        sk_ground_search(&query);
        found = sk_ground_larger(sqrt(query.best2), bound);
        /* Away from the surface the gradient of the distance points along the shortest way; on it, the gradient is the
         * triangle's normal.
         */
        if (query.best2 < radius * radius && query.best2 > 1e-12 * frame->spacing[0] * frame->spacing[0])
            for (int a = 0; a < 3; a++)
                local[a] = -sign * query.nearest[a];
    }

    if (normal)
        sk_ground_set_normal(field, local, normal);
    return sign * found;
}

#endif

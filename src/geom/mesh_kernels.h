/* Distance to a mesh and its side, and the first hit of a segment, one query at a time: see mesh_distance.c. Compiled
 * by the C compiler and by nvcc. */
#ifndef SK_GEOM_MESH_KERNELS_H
#define SK_GEOM_MESH_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "geom/distance_kernels.h"

/* The tree is balanced: its depth is about log2 of the pieces. */
enum { SK_MESH_STACK = 64 };

/* A branch is far if its distance is more than this many of its radii: the error of the winding number then stays below
 * 0.03 on the meshes of the tests, and the threshold is 0.5. */
#define SK_MESH_FAR_RADII 2.3

typedef struct sk_mesh_node {
    double low[3], high[3]; /* m */
    uint32_t first;         /*   leaf: first piece; else: right child. The left child follows its parent */
    uint32_t count;         /*   leaf: pieces; else 0 */
} sk_mesh_node;

typedef struct sk_mesh_dipole {
    double center[3]; /* m   */
    double moment[3]; /* m2  sum of area x normal (2D: m) */
    double radius;    /* m   the pieces lie within it of the center */
} sk_mesh_dipole;

typedef struct sk_mesh_tree {
    int dimension;
    size_t piece_count, node_count;
    double (*corners)[3]; /* m [piece_count * dimension] piece after piece, in the order of the leaves */
    sk_mesh_node *nodes;
    sk_mesh_dipole *dipoles; /* [node_count] */
} sk_mesh_tree;

SK_KERNEL void sk_mesh_subtract(const double a[3], const double b[3], double c[3])
{
    for (int i = 0; i < 3; i++)
        c[i] = a[i] - b[i];
}

SK_KERNEL void sk_mesh_copy(const double from[3], double to[3])
{
    for (int i = 0; i < 3; i++)
        to[i] = from[i];
}

SK_KERNEL void sk_mesh_cross(const double a[3], const double b[3], double c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* Area times outward normal; for a segment, with the inside on its left, length times the normal to its right. */
SK_KERNEL void sk_mesh_moment(const sk_mesh_tree *mesh, size_t piece, double moment[3])
{
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double u[3], v[3];
    sk_mesh_subtract(p[1], p[0], u);
    if (mesh->dimension == 2) {
        moment[0] = u[1];
        moment[1] = -u[0];
        moment[2] = 0.0;
        return;
    }
    sk_mesh_subtract(p[2], p[0], v);
    sk_mesh_cross(u, v, moment);
    for (int i = 0; i < 3; i++)
        moment[i] *= 0.5;
}

/* --- Nearest piece --- */

SK_KERNEL double sk_mesh_unit_share(double t)
{
    return t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
}

/* Squared distance from x to the segment, whose nearest point goes to `nearest`. */
SK_KERNEL double sk_mesh_segment_squared(const double a[3], const double b[3], const double x[3], double nearest[3])
{
    double along[3], arm[3];
    sk_mesh_subtract(b, a, along);
    sk_mesh_subtract(x, a, arm);
    double squared_length = sk_hit_dot(along, along);
    double t = squared_length > 0.0 ? sk_mesh_unit_share(sk_hit_dot(arm, along) / squared_length) : 0.0;
    for (int i = 0; i < 3; i++)
        nearest[i] = a[i] + t * along[i];
    sk_mesh_subtract(x, nearest, arm);
    return sk_hit_dot(arm, arm);
}

SK_KERNEL double sk_mesh_sides_squared(const double p[3][3], const double x[3], double nearest[3])
{
    double best = INFINITY;
    for (int side = 0; side < 3; side++) {
        double candidate[3];
        double d = sk_mesh_segment_squared(p[side], p[(side + 1) % 3], x, candidate);
        if (d < best) {
            best = d;
            sk_mesh_copy(candidate, nearest);
        }
    }
    return best;
}

/* Squared distance from x to a triangle. The projections of x, seen from each corner, on the sides u and v that leave
 * the first corner give the nearest feature (Voronoi regions of a triangle, Ericson 2005, section 5.1.5). The areas
 * between x's foot and the sides decide the remaining cases. They are inaccurate in needles, which test each side
 * instead. */
SK_KERNEL double sk_mesh_triangle_squared(const double p[3][3], const double x[3], double nearest[3])
{
    double u[3], v[3], arm[3];
    sk_mesh_subtract(p[1], p[0], u);
    sk_mesh_subtract(p[2], p[0], v);
    sk_mesh_subtract(x, p[0], arm);
    double uv = sk_hit_dot(u, v), along_u = sk_hit_dot(u, arm), along_v = sk_hit_dot(v, arm);

    /* Projections of x seen from corner 0, 1, 2. */
    double on_u[3] = {along_u, along_u - sk_hit_dot(u, u), along_u - uv};
    double on_v[3] = {along_v, along_v - uv, along_v - sk_hit_dot(v, v)};

    double s, t; /* the nearest point is p0 + s u + t v */
    double area_2 = on_u[0] * on_v[1] - on_u[1] * on_v[0];
    double area_1 = on_u[2] * on_v[0] - on_u[0] * on_v[2];
    double area_0 = on_u[1] * on_v[2] - on_u[2] * on_v[1];
    double from_1 = on_v[1] - on_u[1], from_2 = on_u[2] - on_v[2]; /* along the third side, from either end */

    /* Corners, sides, inside. */
    if (on_u[0] <= 0.0 && on_v[0] <= 0.0) {
        s = t = 0.0;
    } else if (on_u[1] >= 0.0 && from_1 <= 0.0) {
        s = 1.0;
        t = 0.0;
    } else if (on_v[2] >= 0.0 && from_2 <= 0.0) {
        s = 0.0;
        t = 1.0;
    } else if (area_2 <= 0.0 && on_u[0] >= 0.0 && on_u[1] <= 0.0) {
        s = on_u[0] / (on_u[0] - on_u[1]);
        t = 0.0;
    } else if (area_1 <= 0.0 && on_v[0] >= 0.0 && on_v[2] <= 0.0) {
        s = 0.0;
        t = on_v[0] / (on_v[0] - on_v[2]);
    } else if (area_0 <= 0.0 && from_1 >= 0.0 && from_2 >= 0.0) {
        t = from_1 / (from_1 + from_2);
        s = 1.0 - t;
    } else {
        double whole = area_0 + area_1 + area_2;
        s = area_1 / whole;
        t = area_2 / whole;
    }

    /* Needles: test each side. */
    if (!(s >= 0.0 && t >= 0.0 && s + t <= 1.0 + 1e-12))
        return sk_mesh_sides_squared(p, x, nearest);
    for (int i = 0; i < 3; i++)
        nearest[i] = p[0][i] + s * u[i] + t * v[i];
    sk_mesh_subtract(x, nearest, arm);
    return sk_hit_dot(arm, arm);
}

SK_KERNEL double sk_mesh_box_squared(const sk_mesh_node *node, const double x[3])
{
    double sum = 0.0;
    for (int i = 0; i < 3; i++) {
        double below = node->low[i] - x[i], above = x[i] - node->high[i];
        double beyond = below > above ? below : above;
        beyond = beyond > 0.0 ? beyond : 0.0;
        sum += beyond * beyond;
    }
    return sum;
}

typedef struct sk_mesh_nearest {
    double squared; /* m2 */
    double point[3];
    size_t piece; /* SIZE_MAX: none within the bound */
} sk_mesh_nearest;

SK_KERNEL void sk_mesh_try_piece(const sk_mesh_tree *mesh, size_t piece, const double x[3], sk_mesh_nearest *best)
{
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double point[3] = {0.0, 0.0, 0.0};
    double squared =
        mesh->dimension == 3 ? sk_mesh_triangle_squared(p, x, point) : sk_mesh_segment_squared(p[0], p[1], x, point);
    if (squared < best->squared || best->piece == SIZE_MAX) {
        best->squared = squared;
        best->piece = piece;
        sk_mesh_copy(point, best->point);
    }
}

SK_KERNEL void sk_mesh_search(const sk_mesh_tree *mesh, const double x[3], sk_mesh_nearest *best)
{
    struct {
        uint32_t node;
        double squared;
    } stack[SK_MESH_STACK];

    /* Start at the root; the stack holds nodes with their squared distance from x. */
    int height = 0;
    stack[height].node = 0;
    stack[height++].squared = sk_mesh_box_squared(&mesh->nodes[0], x);
    while (height > 0) {
        height--;
        double to_node = stack[height].squared;
        uint32_t node = stack[height].node;

        /* Descends to a leaf, the nearer child first; pushes the other one unless it is too far. */
        while (to_node <= best->squared && mesh->nodes[node].count == 0) {
            uint32_t left = node + 1, right = mesh->nodes[node].first;
            double to_left = sk_mesh_box_squared(&mesh->nodes[left], x),
                   to_right = sk_mesh_box_squared(&mesh->nodes[right], x);
            int left_first = to_left <= to_right;
            double later = left_first ? to_right : to_left;
            if (later <= best->squared) {
                stack[height].node = left_first ? right : left;
                stack[height++].squared = later;
            }
            node = left_first ? left : right;
            to_node = left_first ? to_left : to_right;
        }

        /* Try the pieces of the leaf unless a nearer one is known. */
        if (to_node <= best->squared)
            for (uint32_t i = 0; i < mesh->nodes[node].count; i++)
                sk_mesh_try_piece(mesh, mesh->nodes[node].first + i, x, best);
    }
}

/* --- Side --- */

/* Signed solid angle of a triangle over 4 pi (Van Oosterom and Strackee 1983), angle of a segment over 2 pi. */
SK_KERNEL double sk_mesh_piece_winding(const sk_mesh_tree *mesh, size_t piece, const double x[3])
{
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double a[3], b[3], c[3], normal[3];
    sk_mesh_subtract(p[0], x, a);
    sk_mesh_subtract(p[1], x, b);
    if (mesh->dimension == 2)
        return atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]) * (1.0 / 6.28318530717958647692);
    sk_mesh_subtract(p[2], x, c);
    sk_mesh_cross(b, c, normal);
    double la = sqrt(sk_hit_dot(a, a)), lb = sqrt(sk_hit_dot(b, b)), lc = sqrt(sk_hit_dot(c, c));
    double numerator = sk_hit_dot(a, normal);
    double denominator = la * lb * lc + sk_hit_dot(a, b) * lc + sk_hit_dot(b, c) * la + sk_hit_dot(c, a) * lb;
    return atan2(numerator, denominator) * (1.0 / 6.28318530717958647692);
}

SK_KERNEL double sk_mesh_winding(const sk_mesh_tree *mesh, const double x[3])
{
    uint32_t stack[SK_MESH_STACK];
    int height = 0;
    double winding = 0.0;
    stack[height++] = 0;
    while (height > 0) {
        uint32_t node = stack[--height];
        const sk_mesh_dipole *d = &mesh->dipoles[node];
        double arm[3];
        sk_mesh_subtract(d->center, x, arm);
        double squared = sk_hit_dot(arm, arm);
        if (squared > SK_MESH_FAR_RADII * SK_MESH_FAR_RADII * d->radius * d->radius && squared > 0.0) {
            double over = mesh->dimension == 2 ? 6.28318530717958647692 * squared
                                               : 12.56637061435917295385 * squared * sqrt(squared);
            winding += sk_hit_dot(d->moment, arm) / over;
        } else if (mesh->nodes[node].count > 0) {
            for (uint32_t i = 0; i < mesh->nodes[node].count; i++)
                winding += sk_mesh_piece_winding(mesh, mesh->nodes[node].first + i, x);
        } else {
            stack[height++] = mesh->nodes[node].first;
            stack[height++] = node + 1;
        }
    }
    return winding;
}

SK_KERNEL int sk_mesh_inside(const sk_mesh_tree *mesh, const double x[3])
{
    /* No point outside the box is inside the mesh, open or not. */
    const sk_mesh_node *root = &mesh->nodes[0];
    for (int i = 0; i < mesh->dimension; i++)
        if (x[i] < root->low[i] || x[i] > root->high[i])
            return 0;
    return fabs(sk_mesh_winding(mesh, x)) > 0.5;
}

SK_KERNEL double sk_mesh_signed(const sk_mesh_tree *mesh, const double x[3], double normal[3])
{
    sk_mesh_nearest best = {INFINITY, {0.0, 0.0, 0.0}, SIZE_MAX};
    sk_mesh_search(mesh, x, &best);
    double distance = sqrt(best.squared);
    int inside = sk_mesh_inside(mesh, x);
    if (normal) {
        /* On the surface the vector to the nearest point is rounding error: the piece's normal is used. */
        double scale = fabs(best.point[0]) + fabs(best.point[1]) + fabs(best.point[2]);
        int usable = 0;
        if (distance > 1e-12 * scale) {
            sk_mesh_subtract(x, best.point, normal);
            usable = sk_normalise(normal) > 0.0;
            for (int i = 0; i < 3 && inside; i++)
                normal[i] = -normal[i];
        }
        if (!usable && best.piece != SIZE_MAX) {
            sk_mesh_moment(mesh, best.piece, normal);
            usable = sk_normalise(normal) > 0.0;
        }
        if (!usable) {
            normal[0] = normal[2] = 0.0;
            normal[1] = 1.0;
        }
    }
    return inside ? -distance : distance;
}

/* Sine of the angle below which a point lies in the plane of a piece: far above rounding. */
#define SK_MESH_LEVEL 1e-9

/* Distance to the nearest piece if it is at most `radius`, else INFINITY. It is negative behind the piece. `normal`
 * (may be NULL) then points outwards. Faster than sk_mesh_signed; for meshes whose pieces face outwards. */
SK_KERNEL double sk_mesh_within(const sk_mesh_tree *mesh, const double x[3], double radius, double normal[3])
{
    sk_mesh_nearest best = {radius * radius, {0.0, 0.0, 0.0}, SIZE_MAX};
    double front[3], arm[3];
    sk_mesh_search(mesh, x, &best);
    if (best.piece == SIZE_MAX || best.squared > radius * radius)
        return INFINITY;
    sk_mesh_moment(mesh, best.piece, front);
    sk_mesh_subtract(x, best.point, arm);
    /* Beside a convex edge the point lies before both pieces, so that either may decide. In the plane of one of them,
     * beyond the edge, that one cannot: in a corner of a cup such a point is inside the wall. */
    const double over = sk_hit_dot(arm, front);
    int inside = over < 0.0;
    if (over * over <= SK_MESH_LEVEL * SK_MESH_LEVEL * best.squared * sk_hit_dot(front, front))
        inside = sk_mesh_inside(mesh, x);
    const double sign = inside ? -1.0 : 1.0;
    if (normal) {
        /* On the surface the vector to the nearest point is rounding error: the piece's normal is used. */
        const double scale = fabs(best.point[0]) + fabs(best.point[1]) + fabs(best.point[2]);
        sk_mesh_copy(arm, normal);
        if (best.squared <= 1e-24 * scale * scale || !(sk_normalise(normal) > 0.0)) {
            sk_mesh_copy(front, normal);
            if (!(sk_normalise(normal) > 0.0))
                normal[0] = 1.0;
            return 0.0;
        }
        for (int i = 0; i < 3; i++)
            normal[i] *= sign;
    }
    return sign * sqrt(best.squared);
}

/* --- First hit --- */

typedef struct sk_mesh_segment {
    double a[3], way[3], inverse[3];
    double at; /* of the first hit so far */
    size_t piece;
} sk_mesh_segment;

/* Does the segment up to the first hit so far pass through a node's box? The margin covers rounding. */
SK_KERNEL int sk_mesh_meets_box(const sk_mesh_node *node, const sk_mesh_segment *q)
{
    double enter = 0.0, leave = q->at;
    for (int i = 0; i < 3; i++) {
        const double margin = 1e-12 * (fabs(node->low[i]) + fabs(node->high[i]));
        if (q->way[i] == 0.0) {
            if (q->a[i] < node->low[i] - margin || q->a[i] > node->high[i] + margin)
                return 0;
            continue;
        }
        const double low = (node->low[i] - margin - q->a[i]) * q->inverse[i],
                     high = (node->high[i] + margin - q->a[i]) * q->inverse[i];
        const double first = low < high ? low : high, last = low < high ? high : low;
        enter = first > enter ? first : enter;
        leave = last < leave ? last : leave;
    }
    return enter <= leave;
}

/* A triangle: the segment pierces its plane at a point inside (Moeller and Trumbore 1997). A segment of an outline: the
 * same in the plane. The borders belong to the piece with a margin, so that nothing passes between two pieces. */
SK_KERNEL void sk_mesh_cross_piece(const sk_mesh_tree *mesh, size_t piece, sk_mesh_segment *q)
{
    const double margin = 1e-9;
    const double(*p)[3] = (const double(*)[3])(mesh->corners + piece * (size_t)mesh->dimension);
    double u[3], v[3], arm[3], normal[3], turned[3], s, t, over;
    sk_mesh_subtract(p[1], p[0], u);
    sk_mesh_subtract(q->a, p[0], arm);

    /* Return unless the line of the query passes through the piece. */
    if (mesh->dimension == 2) {
        over = u[0] * q->way[1] - u[1] * q->way[0];
        if (over == 0.0)
            return;
        s = (arm[0] * q->way[1] - arm[1] * q->way[0]) / over;
        if (!(s >= -margin && s <= 1.0 + margin))
            return;
        normal[0] = u[1];
        normal[1] = -u[0];
        normal[2] = 0.0;
    } else {
        sk_mesh_subtract(p[2], p[0], v);
        sk_mesh_cross(u, v, normal);
        over = sk_hit_dot(normal, q->way);
        if (over == 0.0)
            return;
        sk_mesh_cross(arm, q->way, turned);
        s = -sk_hit_dot(v, turned) / over;
        t = sk_hit_dot(u, turned) / over;
        if (!(s >= -margin && t >= -margin && s + t <= 1.0 + margin))
            return;
    }

    /* Keep the first crossing along the query. */
    const double at = -sk_hit_dot(normal, arm) / sk_hit_dot(normal, q->way);
    if (at >= 0.0 && at <= q->at) {
        q->at = at;
        q->piece = piece;
    }
}

SK_KERNEL int sk_mesh_first_hit(const sk_mesh_tree *mesh, const double a[3], const double b[3], double *at,
                                double normal[3])
{
    sk_mesh_segment q;
    q.at = 1.0;
    q.piece = SIZE_MAX;
    sk_mesh_copy(a, q.a);
    sk_mesh_subtract(b, a, q.way);
    for (int i = 0; i < 3; i++)
        q.inverse[i] = q.way[i] != 0.0 ? 1.0 / q.way[i] : 0.0;

    uint32_t stack[SK_MESH_STACK];
    int height = 0;
    stack[height++] = 0;
    while (height > 0) {
        const uint32_t node = stack[--height];
        if (!sk_mesh_meets_box(&mesh->nodes[node], &q))
            continue;
        for (uint32_t i = 0; i < mesh->nodes[node].count; i++)
            sk_mesh_cross_piece(mesh, mesh->nodes[node].first + i, &q);
        if (mesh->nodes[node].count == 0) {
            stack[height++] = mesh->nodes[node].first;
            stack[height++] = node + 1;
        }
    }
    if (q.piece == SIZE_MAX)
        return 0;
    *at = q.at;
    sk_mesh_moment(mesh, q.piece, normal);
    if (!(sk_normalise(normal) > 0.0))
        return 0;
    const int front = sk_hit_dot(normal, q.way) > 0.0 ? -1 : 1;
    for (int i = 0; i < 3; i++)
        normal[i] *= front;
    return front;
}

#endif

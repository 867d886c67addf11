/* Shapes as triangles (3D) or outline segments (2D), for pictures.
 *
 * Every piece goes through add_polygon(), which fans a convex polygon into triangles, or add_segment(); infinite shapes
 * are patches larger than the box, clipped to it (Sutherland and Hodgman 1974: one plane after another). Polygons are
 * counter-clockwise seen from outside; segments have the inside on their left.
 */
#include "geom/shape_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
    circle_steps = 64,       /* segments of a circle: 0.1 % of the radius off */
    steps_a_wavelength = 48, /* of a wave */
    wave_steps_limit = 1 << 14,
    polygon_limit = 16 /* corners: a quad gains at most one for each of six planes */
};

typedef struct piece_list {
    size_t count, capacity; /* triangles or segments */
    float *points;
    int corners; /* 3 or 2 */
    int failed;  /* out of memory */
    const double *low, *high;
} piece_list;

static void add_piece(piece_list *list, const double corners[][3])
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 256;
        size_t piece_bytes = sizeof(float) * 3 * (size_t)list->corners;
        float *points = capacity > SIZE_MAX / piece_bytes ? NULL : realloc(list->points, capacity * piece_bytes);
        if (!points) {
            list->failed = 1;
            return;
        }
        list->points = points;
        list->capacity = capacity;
    }
    float *out = list->points + list->count++ * 3 * (size_t)list->corners;
    for (int c = 0; c < list->corners; c++)
        for (int i = 0; i < 3; i++)
            *out++ = (float)corners[c][i];
}

static void add_polygon(piece_list *list, int count, const double polygon[][3])
{
    for (int i = 2; i < count; i++) {
        double triangle[3][3];
        memcpy(triangle[0], polygon[0], sizeof triangle[0]);
        memcpy(triangle[1], polygon[i - 1], 2 * sizeof triangle[0]);
        add_piece(list, (const double(*)[3])triangle);
    }
}

/* --- Clipping to the box --- */

static void cross_plane(const double a[3], const double b[3], int axis, double at, double point[3])
{
    double share = (at - a[axis]) / (b[axis] - a[axis]);
    for (int i = 0; i < 3; i++)
        point[i] = a[i] + share * (b[i] - a[i]);
    point[axis] = at;
}

static void add_clipped_polygon(piece_list *list, int count, const double polygon[][3])
{
    double current[polygon_limit][3], next[polygon_limit][3];
    memcpy(current, polygon, sizeof current[0] * (size_t)count);
    for (int plane = 0; plane < 6 && count > 0; plane++) {
        int axis = plane / 2, upper = plane % 2, kept = 0;
        double at = upper ? list->high[axis] : list->low[axis];
        for (int i = 0; i < count && kept < polygon_limit - 1; i++) {
            const double *a = current[i], *b = current[(i + 1) % count];
            int a_in = upper ? a[axis] <= at : a[axis] >= at, b_in = upper ? b[axis] <= at : b[axis] >= at;
            if (a_in)
                memcpy(next[kept++], a, sizeof next[0]);
            if (a_in != b_in)
                cross_plane(a, b, axis, at, next[kept++]);
        }
        memcpy(current, next, sizeof current);
        count = kept;
    }
    add_polygon(list, count, (const double(*)[3])current);
}

static void add_clipped_segment(piece_list *list, const double segment[2][3])
{
    double ends[2][3];
    memcpy(ends, segment, sizeof ends);
    for (int plane = 0; plane < 4; plane++) {
        int axis = plane / 2, upper = plane % 2;
        double at = upper ? list->high[axis] : list->low[axis];
        int in[2];
        for (int e = 0; e < 2; e++)
            in[e] = upper ? ends[e][axis] <= at : ends[e][axis] >= at;
        if (!in[0] && !in[1])
            return;
        if (in[0] != in[1]) {
            double point[3];
            cross_plane(ends[0], ends[1], axis, at, point);
            memcpy(ends[in[0] ? 1 : 0], point, sizeof point);
        }
    }
    add_piece(list, (const double(*)[3])ends);
}

/* --- Shapes --- */

static void add_box(piece_list *list, const sk_shape *shape)
{
    const double *c = shape->center, *h = shape->half;
    if (shape->dimension == 2) {
        static const int signs[5][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}, {-1, -1}};
        for (int i = 0; i < 4; i++) {
            double ends[2][3] = {{c[0] + signs[i][0] * h[0], c[1] + signs[i][1] * h[1], 0.0},
                                 {c[0] + signs[i + 1][0] * h[0], c[1] + signs[i + 1][1] * h[1], 0.0}};
            add_piece(list, (const double(*)[3])ends);
        }
        return;
    }
    for (int axis = 0; axis < 3; axis++)
        for (int upper = 0; upper < 2; upper++) {
            int u = (axis + 1) % 3, v = (axis + 2) % 3; /* u x v = axis */
            static const int signs[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
            double quad[4][3];
            for (int i = 0; i < 4; i++) {
                double *p = quad[upper ? i : 3 - i];
                p[axis] = c[axis] + (upper ? h[axis] : -h[axis]);
                p[u] = c[u] + signs[i][0] * h[u];
                p[v] = c[v] + signs[i][1] * h[v];
            }
            add_polygon(list, 4, (const double(*)[3])quad);
        }
}

static void circle(int step, int steps, double *cosine, double *sine)
{
    double angle = 6.28318530717958647692 * (step % steps) / steps;
    *cosine = cos(angle);
    *sine = sin(angle);
}

static void sphere_point(const sk_shape *shape, int ring, int step, double point[3])
{
    double c, s, up, out;
    circle(step, circle_steps, &c, &s);
    circle(ring, circle_steps, &up, &out); /* ring 0 is one pole, circle_steps / 2 the other */
    if (ring == circle_steps / 2)
        out = 0.0;
    point[0] = shape->center[0] + shape->radius * out * c;
    point[1] = shape->center[1] - shape->radius * up;
    point[2] = shape->center[2] - shape->radius * out * s;
}

static void add_sphere(piece_list *list, const sk_shape *shape)
{
    if (shape->dimension == 2) {
        for (int i = 0; i < circle_steps; i++) {
            double ends[2][3] = {{0.0}};
            for (int e = 0; e < 2; e++) {
                double c, s;
                circle(i + e, circle_steps, &c, &s);
                ends[e][0] = shape->center[0] + shape->radius * c;
                ends[e][1] = shape->center[1] + shape->radius * s;
            }
            add_piece(list, (const double(*)[3])ends);
        }
        return;
    }
    int rings = circle_steps / 2;
    for (int ring = 0; ring < rings; ring++)
        for (int step = 0; step < circle_steps; step++) {
            double quad[4][3];
            sphere_point(shape, ring, step, quad[0]);
            sphere_point(shape, ring, step + 1, quad[1]);
            sphere_point(shape, ring + 1, step + 1, quad[2]);
            sphere_point(shape, ring + 1, step, quad[3]);
            if (ring == 0) /* at the poles two of the corners are one */
                memmove(quad[1], quad[2], 2 * sizeof quad[0]);
            add_polygon(list, ring == 0 || ring == rings - 1 ? 3 : 4, (const double(*)[3])quad);
        }
}

static void cross_product(const double a[3], const double b[3], double c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static void add_cylinder(piece_list *list, const sk_shape *shape)
{
    double third[3];
    cross_product(shape->axis, shape->side, third);

    /* In 2D a rectangle. */
    if (shape->dimension == 2) {
        static const int signs[5][2] = {
            {-1, -1}, {1, -1}, {1, 1}, {-1, 1}, {-1, -1}}; /* axis, side: a right-handed pair */
        for (int i = 0; i < 4; i++) {
            double ends[2][3];
            for (int e = 0; e < 2; e++)
                for (int a = 0; a < 3; a++)
                    ends[e][a] = shape->center[a] + signs[i + e][0] * shape->half_length * shape->axis[a] +
                                 signs[i + e][1] * shape->radius * shape->side[a];
            add_piece(list, (const double(*)[3])ends);
        }
        return;
    }

    /* In 3D a strip of the side and of both caps for each step of the circle. */
    for (int step = 0; step < circle_steps; step++) {
        double rim[2][2][3], middle[2][3]; /* [end][step] */
        for (int end = 0; end < 2; end++)
            for (int e = 0; e < 2; e++) {
                double c, s, along = end ? shape->half_length : -shape->half_length;
                circle(step + e, circle_steps, &c, &s);
                for (int a = 0; a < 3; a++) {
                    middle[end][a] = shape->center[a] + along * shape->axis[a];
                    rim[end][e][a] = middle[end][a] + shape->radius * (c * shape->side[a] + s * third[a]);
                }
            }
        double side[4][3], caps[2][3][3];
        memcpy(side[0], rim[0][0], sizeof side[0]);
        memcpy(side[1], rim[0][1], sizeof side[0]);
        memcpy(side[2], rim[1][1], sizeof side[0]);
        memcpy(side[3], rim[1][0], sizeof side[0]);
        add_polygon(list, 4, (const double(*)[3])side);
        for (int end = 0; end < 2; end++) {
            memcpy(caps[end][0], middle[end], sizeof caps[end][0]);
            memcpy(caps[end][1], rim[end][end ? 0 : 1], sizeof caps[end][0]);
            memcpy(caps[end][2], rim[end][end ? 1 : 0], sizeof caps[end][0]);
            add_polygon(list, 3, (const double(*)[3])caps[end]);
        }
    }
}

/* A strip of the plane or wave between two places along `side`, as wide as the box. */
static void add_strip(piece_list *list, const sk_shape *shape, const double middle[3], double half_width,
                      const double along[2], const double height[2])
{
    double third[3];
    cross_product(shape->axis, shape->side, third);
    double ends[2][3];
    for (int e = 0; e < 2; e++)
        for (int a = 0; a < 3; a++)
            ends[e][a] = along[e] * shape->side[a] + height[e] * shape->axis[a];
    if (shape->dimension == 2) {
        /* The inside is on the left: the direction is the axis turned left by 90 degrees. */
        int turn = shape->axis[0] * shape->side[1] - shape->axis[1] * shape->side[0] > 0.0;
        double way[2][3];
        memcpy(way[turn ? 0 : 1], ends[0], sizeof way[0]);
        memcpy(way[turn ? 1 : 0], ends[1], sizeof way[0]);
        add_clipped_segment(list, (const double(*)[3])way);
        return;
    }
    double across = sk_dot(middle, third);
    double quad[4][3];
    for (int i = 0; i < 4; i++) {
        int e = i == 1 || i == 2;
        for (int a = 0; a < 3; a++) /* side x third = axis: counter-clockwise seen from above */
            quad[i][a] = ends[e][a] + (across + (i < 2 ? -half_width : half_width)) * third[a];
    }
    add_clipped_polygon(list, 4, (const double(*)[3])quad);
}

static void add_half_space_or_wave(piece_list *list, const sk_shape *shape)
{
    double middle[3] = {0.0, 0.0, 0.0}, squared = 0.0;
    for (int i = 0; i < shape->dimension; i++) {
        middle[i] = 0.5 * (list->low[i] + list->high[i]);
        squared += 0.25 * (list->high[i] - list->low[i]) * (list->high[i] - list->low[i]);
    }
    double reach = sqrt(squared) * 1.01; /* half the box's diagonal, with a margin for rounding */
    double start = sk_dot(middle, shape->side) - reach;
    double plane = sk_dot(shape->center, shape->axis); /* 0 for a wave */
    double count = ceil(2.0 * reach * shape->wave_number / 6.28318530717958647692 * steps_a_wavelength);
    int steps = shape->wave_number > 0.0 ? (int)fmin(fmax(count, 1.0), wave_steps_limit) : 1;
    for (int i = 0; i < steps; i++) {
        double along[2], height[2];
        for (int e = 0; e < 2; e++) {
            along[e] = start + 2.0 * reach * (i + e) / steps;
            height[e] = shape->kind == SELKIE_SHAPE_HALF_SPACE
                            ? plane
                            : shape->level + shape->amplitude * cos(shape->wave_number * along[e] + shape->phase);
        }
        add_strip(list, shape, middle, reach, along, height);
    }
}

static void add_mesh(piece_list *list, const sk_shape *shape)
{
    size_t count = sk_mesh_distance_piece_count(shape->mesh);
    for (size_t i = 0; i < count; i++) {
        double corners[3][3];
        sk_mesh_distance_piece(shape->mesh, i, corners);
        add_piece(list, (const double(*)[3])corners);
    }
}

/* A point of the ground, or under it, `east` and `north` of the table's origin, at a height along up. */
static void ground_point(const sk_heightfield_frame *frame, double east, double north, double height, double point[3])
{
    const double place[3] = {frame->origin[0] + frame->sign[0] * east, frame->origin[1] + frame->sign[1] * north,
                             frame->sign[2] * height};
    for (int a = 0; a < 3; a++)
        point[frame->axis[a]] = place[a];
}

/* The stretch of the box along an axis of the table, m from its origin (up: from 0). */
static void ground_range(const piece_list *list, const sk_heightfield_frame *frame, int a, double range[2])
{
    int axis = frame->axis[a];
    double origin = a < 2 ? frame->origin[a] : 0.0;
    double one = frame->sign[a] * (list->low[axis] - origin), other = frame->sign[a] * (list->high[axis] - origin);
    range[0] = fmin(one, other);
    range[1] = fmax(one, other);
}

/* The ends of a stretch and the table's lines within it, at which the slope changes. NULL when out of memory. */
static double *ground_stops(const double range[2], double spacing, int count, int *stop_count)
{
    double *stops = malloc(((size_t)count + 2) * sizeof *stops);
    if (!stops)
        return NULL;
    *stop_count = 0;
    stops[(*stop_count)++] = range[0];
    for (int i = 0; i < count; i++)
        if (i * spacing > range[0] && i * spacing < range[1])
            stops[(*stop_count)++] = i * spacing;
    stops[(*stop_count)++] = range[1];
    return stops;
}

static void add_ground_profile(piece_list *list, const sk_heightfield *field, const double *stops, int count)
{
    const sk_heightfield_frame *frame = sk_heightfield_look(field);
    /* Along a segment with up on the right, the inside is on the left. */
    int backwards = (frame->axis[0] == 0 ? 1.0 : -1.0) * frame->sign[2] > 0.0;
    for (int i = 0; i + 1 < count; i++) {
        double ends[2][3];
        for (int e = 0; e < 2; e++) {
            double east = stops[i + e];
            double *end = ends[backwards ? 1 - e : e];
            ground_point(frame, east, 0.0, sk_heightfield_height(field, east, 0.0), end);
            end[2] = 0.0;
        }
        add_clipped_segment(list, (const double(*)[3])ends);
    }
}

static void add_ground_square(piece_list *list, const sk_heightfield *field, const double east[2],
                              const double north[2])
{
    double corners[4][3];
    for (int c = 0; c < 4; c++) {
        double e = east[c == 1 || c == 2], n = north[c > 1];
        ground_point(sk_heightfield_look(field), e, n, sk_heightfield_height(field, e, n), corners[c]);
    }
    for (int t = 0; t < 2; t++) {
        double triangle[3][3];
        memcpy(triangle[0], corners[0], sizeof triangle[0]);
        memcpy(triangle[1], corners[1 + t], 2 * sizeof triangle[0]);
        add_clipped_polygon(list, 3, (const double(*)[3])triangle);
    }
}

/* The ground over the box, and its section along the sides of the box, so that it looks solid.
 */
static void add_heightfield(piece_list *list, const sk_shape *shape)
{
    const sk_heightfield *field = shape->heightfield;
    const sk_heightfield_frame *frame = sk_heightfield_look(field);
    double range[3][2], *stops[2] = {NULL, NULL};
    int counts[2] = {0, 0};

    /* The part of the table over the box. */
    for (int a = 0; a < 3; a++)
        if (frame->axis[a] < shape->dimension)
            ground_range(list, frame, a, range[a]);
    for (int a = 0; a < shape->dimension - 1 && !list->failed; a++) {
        stops[a] = ground_stops(range[a], frame->spacing[a], frame->count[a], &counts[a]);
        list->failed |= !stops[a];
    }

    /* The surface. */
    if (!list->failed && shape->dimension == 2)
        add_ground_profile(list, field, stops[0], counts[0]);
    for (int j = 0; j + 1 < counts[1] && !list->failed; j++)
        for (int i = 0; i + 1 < counts[0]; i++)
            add_ground_square(list, field, stops[0] + i, stops[1] + j);

    /* In 3D the section along the four sides of the box. */
    for (int side = 0; side < 4 && shape->dimension == 3 && !list->failed; side++) {
        int a = side / 2, upper = side % 2;
        for (int i = 0; i + 1 < counts[a]; i++) {
            double quad[4][3];
            for (int c = 0; c < 4; c++) {
                double along = stops[a][i + (c == 1 || c == 2)], across = range[1 - a][upper];
                double east = a == 0 ? along : across, north = a == 0 ? across : along;
                double height = c < 2 ? range[2][0] : fmax(sk_heightfield_height(field, east, north), range[2][0]);
                ground_point(frame, east, north, height, quad[(a == 0) == upper ? 3 - c : c]);
            }
            add_clipped_polygon(list, 4, (const double(*)[3])quad);
        }
    }

    free(stops[0]);
    free(stops[1]);
}

static void add_shape(piece_list *list, const sk_shape *shape)
{
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        add_box(list, shape);
        break;
    case SELKIE_SHAPE_SPHERE:
        add_sphere(list, shape);
        break;
    case SELKIE_SHAPE_CYLINDER:
        add_cylinder(list, shape);
        break;
    case SELKIE_SHAPE_HALF_SPACE:
    case SELKIE_SHAPE_WAVE:
        add_half_space_or_wave(list, shape);
        break;
    case SELKIE_SHAPE_MESH:
        add_mesh(list, shape);
        break;
    case SELKIE_SHAPE_HEIGHTFIELD:
        add_heightfield(list, shape);
        break;
    case SELKIE_SHAPE_UNION:
        for (int i = 0; i < shape->child_count; i++)
            add_shape(list, shape->children[i]);
        break;
    case SELKIE_SHAPE_POLYGON: /* meshes by now */
    case SELKIE_SHAPE_PICTURE:
        break;
    }
}

selkie_code sk_shape_triangles(const sk_shape *shape, const double low[3], const double high[3], size_t *triangle_count,
                               float **triangle_points, selkie_error *error)
{
    *triangle_count = 0;
    *triangle_points = NULL;
    for (int i = 0; i < shape->dimension; i++)
        if (!isfinite(low[i]) || !isfinite(high[i]) || low[i] > high[i])
            return sk_fail(error, SELKIE_ERROR_INPUT, "triangles of a shape: the box %g .. %g along %c must be finite",
                           low[i], high[i], "xyz"[i]);
    piece_list list = {.corners = shape->dimension, .low = low, .high = high};
    add_shape(&list, shape);
    if (list.failed) {
        free(list.points);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "triangles of a shape: no memory for %zu of them",
                       2 * list.capacity);
    }
    *triangle_count = list.count;
    *triangle_points = list.points;
    return SELKIE_OK;
}

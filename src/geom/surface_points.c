/* Points on surfaces: lattices and rings on regular shapes, Poisson discs on the others. */
#include "geom/surface_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"
#include "geom/shape_internal.h"

static const double two_pi = 6.28318530717958647692;

/* Random discs of this radius, in spacings, packed until no more fit number about one in a square of the spacing. */
static const double disc_radius = 0.82;

enum {
    random_passes = 24, /* each throws about one point into a square of the spacing */
    fill_steps = 4,     /* lattice points along a spacing in the sweep that leaves no gap */
    index_limit = 1 << 30
};

/* --- Points in buckets --- */

typedef struct point_index {
    sk_memory *memory;
    double cell; /* m  edge of a cell, the least distance at most */
    size_t count, capacity;
    double (*points)[3];
    int32_t *next; /* [capacity] the next point of the same bucket, or -1 */
    size_t next_capacity;
    int32_t *buckets; /* [bucket_count], -1 = empty; a power of two of them */
    size_t bucket_count;
} point_index;

static size_t bucket_of(const point_index *index, const int64_t cell[3])
{
    uint64_t hash = sk_hash64((uint64_t)cell[0]);
    hash = sk_hash64(hash ^ (uint64_t)cell[1]);
    hash = sk_hash64(hash ^ (uint64_t)cell[2]);
    return (size_t)hash & (index->bucket_count - 1);
}

static void cell_of(const point_index *index, const double x[3], int64_t cell[3])
{
    for (int i = 0; i < 3; i++)
        cell[i] = (int64_t)floor(x[i] / index->cell);
}

static void free_index(point_index *index)
{
    sk_release(index->memory, index->points);
    sk_release(index->memory, index->next);
    sk_release(index->memory, index->buckets);
}

static selkie_code grow_buckets(point_index *index, selkie_error *error)
{
    size_t wanted = index->bucket_count ? 4 * index->bucket_count : 1024;
    int32_t *buckets = sk_allocate(index->memory, wanted * sizeof *buckets);
    if (!buckets)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "points on a surface: no memory for %zu of them", wanted);
    sk_release(index->memory, index->buckets);
    memset(buckets, -1, wanted * sizeof *buckets);
    index->buckets = buckets;
    index->bucket_count = wanted;
    for (size_t p = 0; p < index->count; p++) {
        int64_t cell[3];
        cell_of(index, index->points[p], cell);
        size_t bucket = bucket_of(index, cell);
        index->next[p] = buckets[bucket];
        buckets[bucket] = (int32_t)p;
    }
    return SELKIE_OK;
}

static int has_neighbour(const point_index *index, int dimension, const double x[3], double distance)
{
    int64_t middle[3], cell[3];
    if (index->count == 0)
        return 0;
    cell_of(index, x, middle);
    int depth = dimension == 3;
    for (int k = -depth; k <= depth; k++)
        for (int j = -1; j <= 1; j++)
            for (int i = -1; i <= 1; i++) {
                cell[0] = middle[0] + i;
                cell[1] = middle[1] + j;
                cell[2] = middle[2] + k;
                for (int32_t p = index->buckets[bucket_of(index, cell)]; p >= 0; p = index->next[p]) {
                    double dx = index->points[p][0] - x[0], dy = index->points[p][1] - x[1],
                           dz = index->points[p][2] - x[2];
                    if (dx * dx + dy * dy + dz * dz < distance * distance)
                        return 1;
                }
            }
    return 0;
}

static selkie_code add_to_index(point_index *index, const double x[3], selkie_error *error)
{
    if (index->count >= index_limit)
        return sk_fail(error, SELKIE_ERROR_INPUT, "points on a surface: more than %d: the spacing is too fine for it",
                       index_limit);
    SK_TRY(sk_reserve(index->memory, (void **)&index->points, &index->capacity, index->count + 1, sizeof *index->points,
                      "points on a surface", error));
    SK_TRY(sk_reserve(index->memory, (void **)&index->next, &index->next_capacity, index->count + 1,
                      sizeof *index->next, "points on a surface", error));
    memcpy(index->points[index->count], x, sizeof index->points[0]);
    index->count++;
    if (index->count > 2 * index->bucket_count)
        return grow_buckets(index, error);
    int64_t cell[3];
    cell_of(index, x, cell);
    size_t bucket = bucket_of(index, cell);
    index->next[index->count - 1] = index->buckets[bucket];
    index->buckets[bucket] = (int32_t)(index->count - 1);
    return SELKIE_OK;
}

/* --- What is being covered --- */

typedef struct sampler {
    const sk_shape *whole; /* the surface of the points: for a member of a union, the union */
    const sk_surface_points_def *def;
    int dimension;
    point_index kept; /* the points so far, at their depth; least distance half a spacing */
    point_index bare; /* Poisson discs: the same points before they went below the surface */
    selkie_error *error;
} sampler;

static int in_box(const sampler *s, const double x[3])
{
    for (int i = 0; i < s->dimension; i++)
        if (!(x[i] >= s->def->low[i] && x[i] <= s->def->high[i]))
            return 0;
    return 1;
}

/* Keeps a point at its depth if it is in the box, not inside another member of the union, and not too close to an
 * earlier point. */
static selkie_code keep_point(sampler *s, const sk_shape *shape, const double x[3])
{
    const sk_surface_points_def *def = s->def;
    if (!in_box(s, x) || has_neighbour(&s->kept, s->dimension, x, 0.5 * def->spacing))
        return SELKIE_OK;
    if (shape != s->whole && sk_shape_distance(s->whole, x) < -def->depth - 1e-3 * def->spacing)
        return SELKIE_OK;
    return add_to_index(&s->kept, x, s->error);
}

/* --- Lattices and rings --- */

/* Number of steps of at most the spacing. */
static int64_t steps_over(double length, double spacing)
{
    return (int64_t)ceil(fmin(length / spacing, (double)index_limit) - 1e-6);
}

/* The steps of a line that may be in the box: those within half its diagonal of the middle. */
static void steps_in_box(const sampler *s, const double from[3], const double direction[3], double step, int64_t count,
                         int64_t range[2])
{
    double middle = 0.0, reach = 0.0;
    for (int i = 0; i < s->dimension; i++) {
        middle += (0.5 * (s->def->low[i] + s->def->high[i]) - from[i]) * direction[i];
        reach += 0.5 * (s->def->high[i] - s->def->low[i]) * fabs(direction[i]);
    }
    range[0] = 0;
    range[1] = count;
    if (!(step > 0.0))
        return;
    range[0] = (int64_t)fmin(fmax(floor((middle - reach) / step), 0.0), (double)count);
    range[1] = (int64_t)fmax(fmin(ceil((middle + reach) / step), (double)count), 0.0);
}

/* The surface of a box with any axes; a flat one is a plane. */
static selkie_code cover_box(sampler *s, const sk_shape *shape, const double center[3], const double axes[3][3],
                             const double half_sizes[3])
{
    double corner[3], step[3] = {0, 0, 0};
    int64_t count[3] = {0, 0, 0}, range[3][2] = {{0, 0}, {0, 0}, {0, 0}};
    memcpy(corner, center, sizeof corner);

    /* Steps along each axis, and the range of them that may be in the sampled region. */
    for (int d = 0; d < s->dimension; d++) {
        double half = fmax(half_sizes[d] - s->def->depth, 0.0);
        count[d] = steps_over(2.0 * half, s->def->spacing);
        step[d] = count[d] ? 2.0 * half / (double)count[d] : 0.0;
        for (int i = 0; i < 3; i++)
            corner[i] -= half * axes[d][i];
    }
    for (int d = 0; d < s->dimension; d++)
        steps_in_box(s, corner, axes[d], step[d], count[d], range[d]);

    /* Visit the lattice points on the surface. */
    for (int64_t k = range[2][0]; k <= range[2][1]; k++)
        for (int64_t j = range[1][0]; j <= range[1][1]; j++) {
            int on_side = j == 0 || j == count[1] || (s->dimension == 3 && (k == 0 || k == count[2]));
            /* Inside the outline of the other two only the first and the last are on the surface. */
            for (int64_t i = range[0][0]; i <= range[0][1]; i = on_side || i >= count[0] ? i + 1 : count[0]) {
                double x[3];
                if (!on_side && i != 0 && i != count[0])
                    continue;
                for (int a = 0; a < 3; a++)
                    x[a] = corner[a] + (double)i * step[0] * axes[0][a] + (double)j * step[1] * axes[1][a] +
                           (s->dimension == 3 ? (double)k * step[2] * axes[2][a] : 0.0);
                SK_TRY(keep_point(s, shape, x));
            }
        }
    return SELKIE_OK;
}

/* A ring of even steps; one point if it has no length. `turn` of a step shifts it against its neighbours. */
static selkie_code cover_ring(sampler *s, const sk_shape *shape, const double center[3], const double u[3],
                              const double v[3], double radius, double turn)
{
    int64_t count = steps_over(two_pi * radius, s->def->spacing);
    if (count < 1)
        count = 1;
    for (int64_t i = 0; i < count; i++) {
        double angle = two_pi * ((double)i + turn) / (double)count, x[3];
        for (int a = 0; a < 3; a++)
            x[a] = center[a] + radius * (cos(angle) * u[a] + sin(angle) * v[a]);
        SK_TRY(keep_point(s, shape, x));
    }
    return SELKIE_OK;
}

static selkie_code cover_sphere(sampler *s, const sk_shape *shape)
{
    static const double x_axis[3] = {1, 0, 0}, y_axis[3] = {0, 1, 0};
    double radius = fmax(shape->radius - s->def->depth, 0.0);
    if (s->dimension == 2)
        return cover_ring(s, shape, shape->center, x_axis, y_axis, radius, 0.0);
    int64_t rings = steps_over(0.5 * two_pi * radius, s->def->spacing);
    for (int64_t k = 0; k <= rings; k++) {
        double angle = rings ? 0.5 * two_pi * (double)k / (double)rings : 0.0;
        double center[3] = {shape->center[0], shape->center[1], shape->center[2] + radius * cos(angle)};
        /* sin(pi) is not quite 0. */
        double around = k == 0 || k == rings ? 0.0 : radius * sin(angle);
        SK_TRY(cover_ring(s, shape, center, x_axis, y_axis, around, 0.5 * (double)(k & 1)));
    }
    return SELKIE_OK;
}

static void cross_product(const double a[3], const double b[3], double c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static selkie_code cover_cylinder(sampler *s, const sk_shape *shape)
{
    double third[3];
    cross_product(shape->axis, shape->side, third);
    if (s->dimension == 2) {
        const double axes[3][3] = {{shape->axis[0], shape->axis[1], 0}, {shape->side[0], shape->side[1], 0}, {0, 0, 1}};
        const double half[3] = {shape->half_length, shape->radius, 0.0};
        return cover_box(s, shape, shape->center, axes, half);
    }
    double radius = fmax(shape->radius - s->def->depth, 0.0), half = fmax(shape->half_length - s->def->depth, 0.0);
    int64_t rows = steps_over(2.0 * half, s->def->spacing), rings = steps_over(radius, s->def->spacing);
    for (int64_t k = 0; k <= rows; k++) {
        double along = rows ? -half + 2.0 * half * (double)k / (double)rows : 0.0, center[3];
        for (int a = 0; a < 3; a++)
            center[a] = shape->center[a] + along * shape->axis[a];
        /* The ends are closed by smaller and smaller rings. */
        int64_t inner = k == 0 || k == rows ? rings : 0;
        for (int64_t r = 0; r <= inner; r++)
            SK_TRY(cover_ring(s, shape, center, shape->side, third,
                              rings ? radius * (double)(rings - r) / (double)rings : 0.0, 0.5 * (double)((k + r) & 1)));
    }
    return SELKIE_OK;
}

static selkie_code cover_half_space(sampler *s, const sk_shape *shape)
{
    /* A flat box across the normal, as large as the box's diagonal, around the point of the plane nearest to its
     * middle. */
    double center[3] = {0, 0, 0}, squared = 0.0, third[3];
    for (int i = 0; i < s->dimension; i++) {
        center[i] = 0.5 * (s->def->low[i] + s->def->high[i]);
        squared += 0.25 * (s->def->high[i] - s->def->low[i]) * (s->def->high[i] - s->def->low[i]);
    }
    double offset[3] = {center[0] - shape->center[0], center[1] - shape->center[1], center[2] - shape->center[2]};
    double height = sk_dot(offset, shape->axis) + s->def->depth;
    for (int i = 0; i < s->dimension; i++)
        center[i] -= height * shape->axis[i];
    cross_product(shape->axis, shape->side, third);
    double axes[3][3];
    memcpy(axes[0], shape->side, sizeof axes[0]);
    memcpy(axes[s->dimension == 2 ? 1 : 2], shape->axis, sizeof axes[0]);
    memcpy(axes[s->dimension == 2 ? 2 : 1], third, sizeof axes[0]);
    double reach = s->def->spacing * ceil(sqrt(squared) / s->def->spacing) + s->def->depth;
    const double half_2d[3] = {reach, 0.0, 0.0}, half_3d[3] = {reach, reach, 0.0};
    return cover_box(s, shape, center, (const double(*)[3])axes, s->dimension == 2 ? half_2d : half_3d);
}

/* --- Poisson discs ---
 * Discs are kept apart on the surface itself, where that is cheap to see, and go below it once they are taken. */

/* From the surface to its depth: along the gradient of the distance, which rounds corners; in a solid that is too thin,
 * to its middle. */
static void sink(const sampler *s, const sk_shape *shape, double x[3])
{
    double normal[3], start[3], inward[3], depth = s->def->depth;
    memcpy(start, x, sizeof start);

    /* Move to the surface. */
    double distance = sk_shape_distance_normal(shape, x, inward);
    for (int i = 0; i < 3; i++)
        x[i] = start[i] -= distance * inward[i];
    if (!(depth > 0.0))
        return;

    /* Newton steps to the depth. */
    for (int i = 0; i < 3; i++)
        x[i] -= depth * inward[i];
    for (int n = 0; n < 6; n++) {
        double error = sk_shape_distance_normal(shape, x, normal) + depth;
        if (fabs(error) <= 1e-3 * s->def->spacing)
            return;
        for (int i = 0; i < 3; i++)
            x[i] -= error * normal[i];
    }
    if (fabs(sk_shape_distance(shape, x) + depth) <= 0.05 * s->def->spacing)
        return;

    /* The solid is too thin: bisect along the inward normal for its middle. */
    double low = 0.0, high = depth; /* the point at `low` is as deep as it went */
    for (int n = 0; n < 12; n++) {
        double middle = 0.5 * (low + high), y[3];
        for (int i = 0; i < 3; i++)
            y[i] = start[i] - middle * inward[i];
        if (sk_shape_distance(shape, y) <= -0.9 * middle)
            low = middle;
        else
            high = middle;
    }
    for (int i = 0; i < 3; i++)
        x[i] = start[i] - low * inward[i];
}

static selkie_code try_disc(sampler *s, const sk_shape *shape, const double surface[3])
{
    double x[3] = {surface[0], surface[1], surface[2]};
    if (!in_box(s, x) || has_neighbour(&s->bare, s->dimension, x, disc_radius * s->def->spacing))
        return SELKIE_OK;
    SK_TRY(add_to_index(&s->bare, x, s->error));
    sink(s, shape, x);
    return keep_point(s, shape, x);
}

static double triangle_area(const float *corners)
{
    double a[3], b[3], normal[3];
    for (int i = 0; i < 3; i++) {
        a[i] = (double)corners[3 + i] - corners[i];
        b[i] = (double)corners[6 + i] - corners[i];
    }
    cross_product(a, b, normal);
    return 0.5 * sqrt(sk_dot(normal, normal));
}

static selkie_code try_on_triangle(sampler *s, const sk_shape *shape, const float *corners, double u, double v)
{
    double x[3];
    for (int i = 0; i < 3; i++)
        x[i] = corners[i] + u * ((double)corners[3 + i] - corners[i]) + v * ((double)corners[6 + i] - corners[i]);
    return try_disc(s, shape, x);
}

static selkie_code throw_at_triangle(sampler *s, const sk_shape *shape, const float *corners, uint64_t triangle,
                                     int pass)
{
    double expected = triangle_area(corners) / (s->def->spacing * s->def->spacing);
    uint64_t stream = triangle * random_passes + (uint64_t)pass;
    int64_t count = (int64_t)(expected + sk_random_float(s->def->seed, stream, 0));
    for (int64_t n = 0; n < count; n++) {
        double u = sk_random_float(s->def->seed, stream, 1 + 2 * (uint64_t)n);
        double v = sk_random_float(s->def->seed, stream, 2 + 2 * (uint64_t)n);
        if (u + v > 1.0) {
            u = 1.0 - u;
            v = 1.0 - v;
        }
        SK_TRY(try_on_triangle(s, shape, corners, u, v));
    }
    return SELKIE_OK;
}

static selkie_code fill_triangle(sampler *s, const sk_shape *shape, const float *corners)
{
    double longest = 0.0;
    for (int e = 0; e < 3; e++) {
        double squared = 0.0;
        for (int i = 0; i < 3; i++) {
            double side = (double)corners[3 * ((e + 1) % 3) + i] - corners[3 * e + i];
            squared += side * side;
        }
        longest = fmax(longest, sqrt(squared));
    }
    int64_t steps = steps_over(longest, s->def->spacing / fill_steps);
    if (steps < 1)
        steps = 1;
    for (int64_t j = 0; j <= steps; j++)
        for (int64_t i = 0; i + j <= steps; i++)
            SK_TRY(try_on_triangle(s, shape, corners, (double)i / (double)steps, (double)j / (double)steps));
    return SELKIE_OK;
}

/* In 2D follows the outline from end to end with points at the least distance. */
static selkie_code walk_segment(sampler *s, const sk_shape *shape, const float *ends)
{
    double along[2] = {(double)ends[3] - ends[0], (double)ends[4] - ends[1]};
    int64_t steps = steps_over(hypot(along[0], along[1]), s->def->spacing / 32);
    for (int64_t i = 0; i <= steps; i++) {
        double share = steps ? (double)i / (double)steps : 0.0;
        double x[3] = {ends[0] + share * along[0], ends[1] + share * along[1], 0.0};
        SK_TRY(try_disc(s, shape, x));
    }
    return SELKIE_OK;
}

static selkie_code cover_pieces(sampler *s, const sk_shape *shape, size_t count, const float *pieces)
{
    if (s->dimension == 2) {
        for (size_t p = 0; p < count; p++)
            SK_TRY(walk_segment(s, shape, pieces + 6 * p));
        return SELKIE_OK;
    }
    for (int pass = 0; pass < random_passes; pass++)
        for (size_t p = 0; p < count; p++)
            SK_TRY(throw_at_triangle(s, shape, pieces + 9 * p, p, pass));
    for (size_t p = 0; p < count; p++)
        SK_TRY(fill_triangle(s, shape, pieces + 9 * p));
    return SELKIE_OK;
}

/* The triangles of a height field include its cut along the sides of the box. Points that are not on the shape's
 * surface are removed. */
static selkie_code cover_by_discs(sampler *s, const sk_shape *shape)
{
    size_t count, kept = 0;
    float *pieces;
    SK_TRY(sk_shape_triangles(shape, s->def->low, s->def->high, &count, &pieces, s->error));
    size_t corners = (size_t)s->dimension, values = 3 * corners;
    for (size_t p = 0; p < count; p++) {
        double middle[3] = {0, 0, 0};
        for (size_t c = 0; c < values; c++)
            middle[c % 3] += pieces[values * p + c] / (double)corners;
        if (shape->kind == SELKIE_SHAPE_HEIGHTFIELD && fabs(sk_shape_distance(shape, middle)) > 0.02 * s->def->spacing)
            continue;
        memmove(pieces + values * kept++, pieces + values * p, values * sizeof *pieces);
    }
    s->bare.count = 0;
    if (s->bare.buckets)
        memset(s->bare.buckets, -1, s->bare.bucket_count * sizeof *s->bare.buckets);
    selkie_code code = cover_pieces(s, shape, kept, pieces);
    free(pieces);
    return code;
}

/* --- All shapes --- */

static selkie_code cover(sampler *s, const sk_shape *shape)
{
    static const double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        return cover_box(s, shape, shape->center, axes, shape->half);
    case SELKIE_SHAPE_SPHERE:
        return cover_sphere(s, shape);
    case SELKIE_SHAPE_CYLINDER:
        return cover_cylinder(s, shape);
    case SELKIE_SHAPE_HALF_SPACE:
        return cover_half_space(s, shape);
    case SELKIE_SHAPE_UNION:
        for (int i = 0; i < shape->child_count; i++)
            SK_TRY(cover(s, shape->children[i]));
        return SELKIE_OK;
    default:
        return cover_by_discs(s, shape);
    }
}

static selkie_code append(sk_surface_points *points, size_t count, double (*from)[3], selkie_error *error)
{
    if (!count)
        return SELKIE_OK;
    SK_TRY(sk_reserve(points->memory, (void **)&points->points, &points->capacity, points->count + count,
                      sizeof *points->points, "points on a surface", error));
    memcpy(points->points + points->count, from, count * sizeof *from);
    points->count += count;
    return SELKIE_OK;
}

selkie_code sk_shape_surface_points(const sk_shape *shape, const sk_surface_points_def *def, sk_surface_points *points,
                                    selkie_error *error)
{
    if (!(def->spacing > 0.0) || !(def->depth >= 0.0))
        return sk_fail(error, SELKIE_ERROR_INPUT, "points on a surface: a spacing of %g m, %g m deep, makes no sense",
                       def->spacing, def->depth);
    sampler s = {.whole = shape, .def = def, .dimension = shape->dimension, .error = error};
    s.kept.memory = s.bare.memory = points->memory;
    s.kept.cell = s.bare.cell = disc_radius * def->spacing;
    selkie_code code = cover(&s, shape);
    if (code == SELKIE_OK)
        code = append(points, s.kept.count, s.kept.points, error);
    free_index(&s.kept);
    free_index(&s.bare);
    return code;
}

void sk_surface_points_free(sk_surface_points *points)
{
    sk_release(points->memory, points->points);
    points->points = NULL;
    points->count = points->capacity = 0;
}

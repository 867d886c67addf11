/* First hit of a path on a shape, and exact distances close to its surface. See shape.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geom/shape_internal.h"

/* The first hit on any member. A start inside one of them is inside the union. */
static int hit_union(const sk_shape *shape, const double a[3], const double b[3], sk_surface_hit *hit)
{
    int found = 0;
    for (int i = 0; i < shape->child_count; i++) {
        sk_surface_hit candidate;
        if (sk_shape_first_hit(shape->children[i], a, b, &candidate) && (!found || candidate.at < hit->at)) {
            *hit = candidate;
            found = 1;
        }
    }
    return found && sk_shape_distance_within(shape, a, 0.0, NULL) >= 0.0;
}

int sk_shape_first_hit(const sk_shape *shape, const double from[3], const double to[3], sk_surface_hit *hit)
{
    double a[3] = {from[0], from[1], 0.0}, b[3] = {to[0], to[1], 0.0}, offset[3], way[3];
    sk_mesh_solid solid;

    /* The path, and its start relative to the centre; z is 0 in 2D. */
    if (shape->dimension == 3) {
        a[2] = from[2];
        b[2] = to[2];
    }
    for (int i = 0; i < 3; i++) {
        offset[i] = a[i] - shape->center[i];
        way[i] = b[i] - a[i];
    }

    /* Kinds whose first hit has a closed form or a search of its own. */
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        return sk_hit_box(shape->half, shape->dimension, offset, way, hit);
    case SELKIE_SHAPE_SPHERE:
        return sk_hit_sphere(shape->radius, offset, way, hit);
    case SELKIE_SHAPE_CYLINDER:
        return sk_hit_cylinder(shape->axis, shape->radius, shape->half_length, offset, way, hit);
    case SELKIE_SHAPE_HALF_SPACE:
        return sk_hit_plane(shape->axis, offset, way, hit);
    case SELKIE_SHAPE_MESH:
        solid = sk_shape_mesh_solid(shape);
        return sk_mesh_solid_first_hit(&solid, a, b, hit);
    case SELKIE_SHAPE_UNION:
        return hit_union(shape, a, b, hit);
    case SELKIE_SHAPE_POLYGON: /* meshes by now */
    case SELKIE_SHAPE_PICTURE:
    case SELKIE_SHAPE_WAVE:
    case SELKIE_SHAPE_HEIGHTFIELD:
        break;
    }

    /* Waves and height fields. */
    sk_shape_part part;
    return sk_shape_parts(shape, &part, 1) && sk_part_advance(&part, a, way, hit);
}

double sk_shape_distance_within(const sk_shape *shape, const double x[3], double radius, double normal[3])
{
    const double point[3] = {x[0], x[1], shape->dimension == 3 ? x[2] : 0.0};
    if (shape->kind == SELKIE_SHAPE_MESH) {
        const sk_mesh_solid solid = sk_shape_mesh_solid(shape);
        return sk_mesh_solid_within(&solid, point, radius, normal);
    }
    double least = INFINITY, candidate[3];
    for (int i = 0; i < shape->child_count; i++) {
        const double distance = sk_shape_distance_within(shape->children[i], point, radius, normal ? candidate : NULL);
        if (distance < least) {
            least = distance;
            if (normal)
                memcpy(normal, candidate, sizeof candidate);
        }
    }
    return shape->child_count ? least : sk_shape_distance_normal(shape, point, normal);
}

int sk_shape_is_sheet(const sk_shape *shape)
{
    int sheet = shape->sheet;
    for (int i = 0; i < shape->child_count; i++)
        sheet |= sk_shape_is_sheet(shape->children[i]);
    return sheet;
}

/* --- Thickness --- */

typedef struct wall_sample {
    double thickness, area;
} wall_sample;

static int compare_samples(const void *a, const void *b)
{
    const double x = ((const wall_sample *)a)->thickness, y = ((const wall_sample *)b)->thickness;
    return x < y ? -1 : x > y;
}

/* What lies behind the middle of a piece, up to the next surface. */
static wall_sample sample_wall(const sk_shape *shape, size_t piece)
{
    double corners[3][3] = {{0.0}}, normal[3] = {0.0, 0.0, 0.0}, middle[3], inner[3], far[3], low[3], high[3], at;
    const int count = shape->dimension;
    sk_mesh_distance_piece(shape->mesh, piece, corners);
    sk_mesh_distance_bounds(shape->mesh, low, high);
    double u[3], v[3] = {0.0, 0.0, 1.0}, reach = 0.0;
    for (int i = 0; i < 3; i++) {
        u[i] = corners[1][i] - corners[0][i];
        if (count == 3)
            v[i] = corners[2][i] - corners[0][i];
        middle[i] = (corners[0][i] + corners[1][i] + (count == 3 ? corners[2][i] : 0.0)) / count;
        reach += high[i] - low[i];
    }
    for (int i = 0; i < 3; i++)
        normal[i] = u[(i + 1) % 3] * v[(i + 2) % 3] - u[(i + 2) % 3] * v[(i + 1) % 3];
    const double area = sqrt(sk_dot(normal, normal));
    for (int i = 0; i < 3; i++) {
        inner[i] = middle[i] - 1e-9 * reach * normal[i] / area;
        far[i] = middle[i] - reach * normal[i] / area;
    }
    if (!(area > 0.0) || !sk_mesh_distance_first_hit(shape->mesh, inner, far, &at, normal))
        return (wall_sample){INFINITY, area};
    return (wall_sample){at * reach, area};
}

static double mesh_thickness(const sk_shape *shape)
{
    enum { MOST = 2000 };
    const size_t pieces = sk_mesh_distance_piece_count(shape->mesh), stride = pieces / MOST + 1;
    wall_sample samples[MOST + 1];
    size_t count = 0;
    double area = 0.0, thinner = 0.0;
    if (shape->sheet)
        return 0.0;
    for (size_t piece = 0; piece < pieces && count < MOST; piece += stride) {
        samples[count] = sample_wall(shape, piece);
        area += samples[count++].area;
    }
    qsort(samples, count, sizeof *samples, compare_samples);
    for (size_t n = 0; n < count; n++) {
        thinner += samples[n].area;
        if (thinner > 0.05 * area)
            return samples[n].thickness;
    }
    return INFINITY;
}

double sk_shape_convex_width(const sk_shape *shape)
{
    const int convex =
        shape->kind == SELKIE_SHAPE_BOX || shape->kind == SELKIE_SHAPE_SPHERE || shape->kind == SELKIE_SHAPE_CYLINDER;
    return convex ? sk_shape_thickness(shape) : 0.0;
}

double sk_shape_thickness(const sk_shape *shape)
{
    double least = INFINITY;
    switch (shape->kind) {
    case SELKIE_SHAPE_BOX:
        for (int d = 0; d < shape->dimension; d++)
            least = fmin(least, 2.0 * shape->half[d]);
        return least;
    case SELKIE_SHAPE_SPHERE:
        return 2.0 * shape->radius;
    case SELKIE_SHAPE_CYLINDER:
        return 2.0 * fmin(shape->radius, shape->half_length);
    case SELKIE_SHAPE_MESH:
        return mesh_thickness(shape);
    case SELKIE_SHAPE_UNION:
        for (int i = 0; i < shape->child_count; i++)
            least = fmin(least, sk_shape_thickness(shape->children[i]));
        return least;
    case SELKIE_SHAPE_HALF_SPACE:
    case SELKIE_SHAPE_WAVE:
    case SELKIE_SHAPE_HEIGHTFIELD:
    case SELKIE_SHAPE_POLYGON: /* meshes by now */
    case SELKIE_SHAPE_PICTURE:
        break;
    }
    return INFINITY;
}

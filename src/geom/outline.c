#include "geom/outline.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "geom/shape_internal.h"

#define PI 3.14159265358979323846

enum { FEW_SIDES = 8, LEAST_A_SIDE = 3, LEAST_OF_CIRCLE = 8, MOST_PIECES = 4096 };

static selkie_code take_memory(sk_outline *outline, int count, sk_memory *memory, selkie_error *error)
{
    memset(outline, 0, sizeof *outline);
    outline->memory = memory;
    outline->count = count;
    outline->corners = sk_allocate(memory, (size_t)count * sizeof *outline->corners);
    return outline->corners ? SELKIE_OK
                            : sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for an outline of %d pieces", count);
}

void sk_outline_free(sk_outline *outline)
{
    sk_release(outline->memory, outline->corners);
    memset(outline, 0, sizeof *outline);
}

selkie_code sk_outline_circle(const double center[2], double radius, int count, sk_memory *memory, sk_outline *outline,
                              selkie_error *error)
{
    const double angle = 2.0 * PI / count, reach = radius * sqrt(angle / sin(angle));
    SK_TRY(take_memory(outline, count, memory, error));
    for (int n = 0; n < count; n++) {
        outline->corners[n][0] = center[0] + reach * cos(n * angle);
        outline->corners[n][1] = center[1] + reach * sin(n * angle);
    }
    return SELKIE_OK;
}

static int pieces_of_side(const double a[2], const double b[2], double length, int least)
{
    const double pieces = round(hypot(b[0] - a[0], b[1] - a[1]) / length);
    return (int)fmin(fmax(pieces, least), MOST_PIECES);
}

selkie_code sk_outline_polygon(int count, const double (*corners)[2], double length, sk_memory *memory,
                               sk_outline *outline, selkie_error *error)
{
    const int least = count <= FEW_SIDES ? LEAST_A_SIDE : 1;
    int total = 0, at = 0;
    for (int n = 0; n < count; n++)
        total += pieces_of_side(corners[n], corners[(n + 1) % count], length, least);
    SK_TRY(take_memory(outline, total, memory, error));

    for (int n = 0; n < count; n++) {
        const double *a = corners[n], *b = corners[(n + 1) % count];
        const int pieces = pieces_of_side(a, b, length, least);
        for (int p = 0; p < pieces; p++, at++)
            for (int d = 0; d < 2; d++)
                outline->corners[at][d] = a[d] + (b[d] - a[d]) * 0.5 * (1.0 - cos(PI * p / pieces));
    }
    return SELKIE_OK;
}

/* --- Outlines of many short sides --- */

static double area_of(int count, const double (*corners)[2])
{
    double area = 0.0;
    for (int n = 0; n < count; n++) {
        const double *a = corners[n], *b = corners[(n + 1) % count];
        area += 0.5 * (a[0] * b[1] - a[1] * b[0]);
    }
    return area;
}

/* Points at even distances along a polygon, moved away from their middle so that the area stays. */
static selkie_code resample(int count, const double (*corners)[2], double perimeter, double length, sk_memory *memory,
                            sk_outline *outline, selkie_error *error)
{
    const int pieces = (int)fmax(round(perimeter / length), LEAST_OF_CIRCLE);
    double middle[2] = {0.0, 0.0}, passed = 0.0;
    int side = 0;
    SK_TRY(take_memory(outline, pieces, memory, error));
    for (int p = 0; p < pieces; p++) {
        const double wanted = perimeter * p / pieces;
        double here =
            hypot(corners[(side + 1) % count][0] - corners[side][0], corners[(side + 1) % count][1] - corners[side][1]);
        while (passed + here < wanted && side + 1 < count) {
            passed += here;
            side++;
            here = hypot(corners[(side + 1) % count][0] - corners[side][0],
                         corners[(side + 1) % count][1] - corners[side][1]);
        }
        for (int d = 0; d < 2; d++) {
            outline->corners[p][d] =
                corners[side][d] + (corners[(side + 1) % count][d] - corners[side][d]) * (wanted - passed) / here;
            middle[d] += outline->corners[p][d] / pieces;
        }
    }
    const double ratio = area_of(count, corners) / area_of(pieces, (const double(*)[2])outline->corners);
    const double stretch = ratio > 0.0 && ratio < 2.0 ? sqrt(ratio) : 1.0;
    for (int p = 0; p < pieces; p++)
        for (int d = 0; d < 2; d++)
            outline->corners[p][d] = middle[d] + stretch * (outline->corners[p][d] - middle[d]);
    return SELKIE_OK;
}

static selkie_code pieces_of(int count, const double (*corners)[2], double length, sk_memory *memory,
                             sk_outline *outline, selkie_error *error)
{
    double perimeter = 0.0;
    for (int n = 0; n < count; n++)
        perimeter += hypot(corners[(n + 1) % count][0] - corners[n][0], corners[(n + 1) % count][1] - corners[n][1]);
    return count > FEW_SIDES && perimeter < 0.8 * length * count
               ? resample(count, corners, perimeter, length, memory, outline, error)
               : sk_outline_polygon(count, corners, length, memory, outline, error);
}

/* --- Meshes --- */

/* The piece that begins where piece `from` ends; -1 if there is none. */
static int next_piece(const sk_mesh_distance *mesh, int pieces, const double end[2], double near)
{
    for (int p = 0; p < pieces; p++) {
        double corners[3][3];
        sk_mesh_distance_piece(mesh, (size_t)p, corners);
        if (fabs(corners[0][0] - end[0]) <= near && fabs(corners[0][1] - end[1]) <= near)
            return p;
    }
    return -1;
}

static selkie_code chain(const sk_mesh_distance *mesh, const char *what, double (*corners)[2], selkie_error *error)
{
    const int pieces = (int)sk_mesh_distance_piece_count(mesh);
    double low[3], high[3], piece[3][3];
    sk_mesh_distance_bounds(mesh, low, high);
    const double near = 1e-6 * (high[0] - low[0] + high[1] - low[1]);
    int at = 0, count = 0;
    do {
        sk_mesh_distance_piece(mesh, (size_t)at, piece);
        corners[count][0] = piece[0][0];
        corners[count++][1] = piece[0][1];
        at = next_piece(mesh, pieces, piece[1], near);
    } while (at > 0 && count < pieces);
    if (at < 0)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: the outline is open at (%g, %g) m; it must be closed", what,
                       piece[1][0], piece[1][1]);
    if (count < pieces)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: the outline has several loops or touches itself; it must be one closed polygon", what);
    return SELKIE_OK;
}

static selkie_code of_mesh(const sk_shape *shape, double length, const char *what, sk_memory *memory,
                           sk_outline *outline, selkie_error *error)
{
    const size_t pieces = sk_mesh_distance_piece_count(shape->mesh);
    if (shape->sheet || pieces < 3 || pieces > MOST_PIECES)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: an outline of %zu segments; it must be closed and have between 3 and %d", what, pieces,
                       (int)MOST_PIECES);
    double(*corners)[2] = sk_allocate(memory, pieces * sizeof *corners);
    if (!corners)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for its outline", what);
    selkie_code code = chain(shape->mesh, what, corners, error);
    if (code == SELKIE_OK)
        code = pieces_of((int)pieces, (const double(*)[2])corners, length, memory, outline, error);
    sk_release(memory, corners);
    return code;
}

/* --- Shapes --- */

selkie_code sk_outline_create(const sk_shape *shape, double length, const char *what, sk_memory *memory,
                              sk_outline *outline, selkie_error *error)
{
    memset(outline, 0, sizeof *outline);
    const double *c = shape->center;
    double along[2] = {shape->half[0], 0.0}, across[2] = {0.0, shape->half[1]};
    switch (shape->kind) {
    case SELKIE_SHAPE_SPHERE: {
        const double pieces = fmin(fmax(round(2.0 * PI * shape->radius / length), LEAST_OF_CIRCLE), MOST_PIECES);
        return sk_outline_circle(c, shape->radius, (int)pieces, memory, outline, error);
    }
    case SELKIE_SHAPE_CYLINDER:
        for (int d = 0; d < 2; d++)
            along[d] = shape->half_length * shape->axis[d];
        across[0] = -shape->radius * shape->axis[1];
        across[1] = shape->radius * shape->axis[0];
        break;
    case SELKIE_SHAPE_BOX:
        break;
    case SELKIE_SHAPE_MESH:
        return of_mesh(shape, length, what, memory, outline, error);
    default:
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "%s: has no single outline; it must be a box, sphere, cylinder, polygon, picture or mesh", what);
    }
    const double corners[4][2] = {{c[0] - along[0] - across[0], c[1] - along[1] - across[1]},
                                  {c[0] + along[0] - across[0], c[1] + along[1] - across[1]},
                                  {c[0] + along[0] + across[0], c[1] + along[1] + across[1]},
                                  {c[0] - along[0] + across[0], c[1] - along[1] + across[1]}};
    return sk_outline_polygon(4, corners, length, memory, outline, error);
}

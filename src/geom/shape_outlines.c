/* Polygons and pictures: shapes that are given by their outline, 2D. They are meshes of segments from then on. */
#include <math.h>
#include <stdio.h>

#include "base/status.h"
#include "geom/picture_file.h"
#include "geom/shape_internal.h"

static selkie_code take_segments(sk_shape *shape, size_t count, const double (*segments)[2][3], const char *name,
                                 selkie_error *error)
{
    const sk_mesh_pieces pieces = {.dimension = 2,
                                   .count = count,
                                   .corners = (const double(*)[3])(const void *)segments,
                                   .closed = 1,
                                   .name = name};
    shape->kind = SELKIE_SHAPE_MESH;
    return sk_mesh_distance_create(&pieces, shape->memory, &shape->mesh, error);
}

static selkie_code need_plane(const sk_shape *shape, const char *what, selkie_error *error)
{
    return shape->dimension == 2
               ? SELKIE_OK
               : sk_fail(error, SELKIE_ERROR_INPUT,
                         "%s.type: polygons and pictures are for 2D scenes: must be another shape", what);
}

/* --- Polygons --- */

/* Twice the area of a triangle, positive counter-clockwise. */
static double turn_of(const double *a, const double *b, const double *c)
{
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

static int cross(const double *a, const double *b, const double *c, const double *d)
{
    return turn_of(a, b, c) * turn_of(a, b, d) < 0.0 && turn_of(c, d, a) * turn_of(c, d, b) < 0.0;
}

static selkie_code check_polygon(const selkie_shape *def, const char *what, double *area, selkie_error *error)
{
    const int count = def->point_count;
    const selkie_point *points = def->points;
    *area = 0.0;
    if (count < 3 || !points)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s.points: %d of them: a polygon must have at least 3", what, count);
    for (int i = 0; i < count; i++) {
        const double *a = points[i].at, *b = points[(i + 1) % count].at;
        if (!isfinite(a[0]) || !isfinite(a[1]))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s.points[%d]: must be finite numbers (m)", what, i);
        if (a[0] == b[0] && a[1] == b[1])
            return sk_fail(error, SELKIE_ERROR_INPUT,
                           "%s.points[%d]: is the same point as the next one; a polygon closes itself", what, i);
        *area += 0.5 * (a[0] * b[1] - a[1] * b[0]);
        for (int j = i + 2; j < count; j++)
            if ((j + 1) % count != i && cross(a, b, points[j].at, points[(j + 1) % count].at))
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "%s.points: the sides from points %d and %d cross; the outline must not cross itself",
                               what, i, j);
    }
    return *area != 0.0 ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_INPUT, "%s.points: have no area", what);
}

selkie_code sk_shape_make_polygon(const selkie_shape *def, const char *what, sk_shape *shape, selkie_error *error)
{
    double area;
    SK_TRY(need_plane(shape, what, error));
    SK_TRY(check_polygon(def, what, &area, error));
    const int count = def->point_count;
    double(*segments)[2][3] = sk_allocate(shape->memory, (size_t)count * sizeof *segments);
    if (!segments)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %d points", what, count);
    for (int i = 0; i < count; i++)
        for (int end = 0; end < 2; end++) {
            const int n = (i + end) % count;
            const double *at = def->points[area > 0.0 ? n : count - 1 - n].at;
            segments[i][end][0] = at[0];
            segments[i][end][1] = at[1];
            segments[i][end][2] = 0.0;
        }
    selkie_code code = take_segments(shape, (size_t)count, (const double(*)[2][3])segments, what, error);
    sk_release(shape->memory, segments);
    return code;
}

/* --- Pictures --- */

selkie_code sk_shape_make_picture(const selkie_shape *def, const char *folder, const char *what, sk_shape *shape,
                                  selkie_error *error)
{
    char path[4096], name[256];
    sk_picture_data picture;
    size_t count = 0;
    double(*segments)[2][3] = NULL;
    SK_TRY(need_plane(shape, what, error));
    snprintf(name, sizeof name, "%.200s.file", what);
    if (!def->file || !def->file[0])
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: needs the name of a picture", name);
    SK_TRY(sk_picture_path(def->file, folder, name, path, sizeof path, error));
    SK_TRY(sk_picture_read(path, name, shape->memory, &picture, error));
    selkie_code code = sk_picture_outline(&picture, def->threshold, def->min, def->max, name, &count, &segments, error);
    sk_picture_free(&picture);
    if (code == SELKIE_OK)
        code = take_segments(shape, count, (const double(*)[2][3])segments, name, error);
    sk_release(shape->memory, segments);
    return code;
}

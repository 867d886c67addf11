#include "geom/voxels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "geom/shape_internal.h"

enum {
    VOTE = 1u,   /* and the two bits above it: parity of crossings along each axis */
    INSIDE = 8u, /* the centre lies inside */
    THIN = 16u,  /* the surface of a thin part passes through */
    MAX_CELLS = 1 << 30
};

typedef struct voxel_job {
    sk_voxels *voxels;
    const sk_shape *shape; /* all of it */
    uint8_t *marks;        /* [cells] */
    int threads;
} voxel_job;

static inline double center_along(const sk_voxels *v, int axis, int i)
{
    return axis < v->dimension ? v->low[axis] + (i + 0.5) * v->cell : 0.0;
}

/* First and last cell along an axis whose centre lies in from..to. */
static void span_of(const sk_voxels *v, int axis, double from, double to, int *first, int *last)
{
    double a = ceil((from - v->low[axis]) / v->cell - 0.5), b = floor((to - v->low[axis]) / v->cell - 0.5);
    *first = a > 0.0 ? (a < v->cells[axis] ? (int)a : v->cells[axis]) : 0;
    *last = b < v->cells[axis] - 1 ? (b > -1.0 ? (int)b : -1) : v->cells[axis] - 1;
}

/* --- Inside: primitives, by their inside test --- */

static void mark_asked(voxel_job *job, const sk_shape *shape)
{
    sk_voxels *v = job->voxels;
    int64_t rows = (int64_t)v->cells[1] * v->cells[2];
#pragma omp parallel for num_threads(job->threads) schedule(dynamic, 16)
    for (int64_t row = 0; row < rows; row++) {
        int j = (int)(row % v->cells[1]), k = (int)(row / v->cells[1]);
        for (int i = 0; i < v->cells[0]; i++) {
            double x[3] = {center_along(v, 0, i), center_along(v, 1, j), center_along(v, 2, k)};
            if (sk_shape_inside(shape, x))
                job->marks[sk_voxels_cell(v, i, j, k)] |= INSIDE;
        }
    }
}

/* --- Inside: meshes, by majority of three lines --- */

/* Coordinate u at a given v of the line through two points (u, v). The ends are sorted first, so that two triangles
 * that share an edge get the same bits. */
static double edge_place(double au, double av, double bu, double bv, double v)
{
    if (bv < av || (bv == av && bu < au)) {
        double u = au, w = av;
        au = bu;
        av = bv;
        bu = u;
        bv = w;
    }
    return au + (v - av) / (bv - av) * (bu - au);
}

/* Whether a line along `axis` through (u, w) passes the triangle: crossing number of its projection, with half-open
 * edges. So around a shared edge or corner an odd number of triangles is passed exactly if the line crosses the
 * surface. */
static int passes(const double t[3][3], int u_axis, int w_axis, double u, double w)
{
    int odd = 0;
    for (int e = 0; e < 3; e++) {
        const double *a = t[e], *b = t[(e + 1) % 3];
        if ((a[w_axis] > w) != (b[w_axis] > w))
            odd ^= u < edge_place(a[u_axis], a[w_axis], b[u_axis], b[w_axis], w);
    }
    return odd;
}

/* Flips the vote of the first cell behind the crossing at `x` along `axis`; sweep() extends it to the cells behind. */
static void toggle(voxel_job *job, int axis, double x, const int cell[3])
{
    sk_voxels *v = job->voxels;
    double place = ceil((x - v->low[axis]) / v->cell - 0.5);
    int at[3] = {cell[0], cell[1], cell[2]};
    at[axis] = place > 0.0 ? (int)fmin(place, v->cells[axis]) : 0;
    if (at[axis] < v->cells[axis])
        job->marks[sk_voxels_cell(v, at[0], at[1], at[2])] ^= (uint8_t)(VOTE << axis);
}

static void cross_triangle(voxel_job *job, int axis, const double t[3][3])
{
    sk_voxels *v = job->voxels;
    int u_axis = (axis + 1) % 3, w_axis = (axis + 2) % 3;
    double a[3], b[3], n[3];

    /* Normal of the triangle. */
    for (int d = 0; d < 3; d++) {
        a[d] = t[1][d] - t[0][d];
        b[d] = t[2][d] - t[0][d];
    }
    for (int d = 0; d < 3; d++)
        n[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
    if (n[axis] == 0.0)
        return; /* seen from the edge */

    /* Range of lines along the axis that may cross it. */
    int u_first, u_last, w_first, w_last;
    span_of(v, u_axis, fmin(t[0][u_axis], fmin(t[1][u_axis], t[2][u_axis])),
            fmax(t[0][u_axis], fmax(t[1][u_axis], t[2][u_axis])), &u_first, &u_last);
    span_of(v, w_axis, fmin(t[0][w_axis], fmin(t[1][w_axis], t[2][w_axis])),
            fmax(t[0][w_axis], fmax(t[1][w_axis], t[2][w_axis])), &w_first, &w_last);

    /* Flip the vote of the cell behind each crossing. */
    for (int q = w_first; q <= w_last; q++)
        for (int p = u_first; p <= u_last; p++) {
            double u = center_along(v, u_axis, p), w = center_along(v, w_axis, q);
            if (!passes(t, u_axis, w_axis, u, w))
                continue;
            double x = t[0][axis] - (n[u_axis] * (u - t[0][u_axis]) + n[w_axis] * (w - t[0][w_axis])) / n[axis];
            int cell[3];
            cell[u_axis] = p;
            cell[w_axis] = q;
            cell[axis] = 0;
            toggle(job, axis, x, cell);
        }
}

static void cross_segment(voxel_job *job, int axis, const double s[2][3])
{
    sk_voxels *v = job->voxels;
    int other = 1 - axis, first, last;
    span_of(v, other, fmin(s[0][other], s[1][other]), fmax(s[0][other], s[1][other]), &first, &last);
    for (int p = first; p <= last; p++) {
        double w = center_along(v, other, p);
        if ((s[0][other] > w) == (s[1][other] > w))
            continue;
        int cell[3] = {0, 0, 0};
        cell[other] = p;
        toggle(job, axis, edge_place(s[0][axis], s[0][other], s[1][axis], s[1][other], w), cell);
    }
}

/* Parity along every line of an axis: a cell's vote is the sum of all flips up to it. */
static void sweep(voxel_job *job, int axis)
{
    sk_voxels *v = job->voxels;
    size_t stride = axis == 0 ? 1 : axis == 1 ? (size_t)v->cells[0] : (size_t)v->cells[0] * (size_t)v->cells[1];
    size_t total = (size_t)v->cells[0] * (size_t)v->cells[1] * (size_t)v->cells[2];
    uint8_t bit = (uint8_t)(VOTE << axis);
    for (size_t c = 0; c < total; c++)
        if ((int)(c / stride % (size_t)v->cells[axis]) > 0)
            job->marks[c] ^= job->marks[c - stride] & bit;
}

static void mark_voted(voxel_job *job, const sk_shape *shape)
{
    sk_voxels *v = job->voxels;
    size_t pieces = sk_mesh_distance_piece_count(shape->mesh);
    size_t total = (size_t)v->cells[0] * (size_t)v->cells[1] * (size_t)v->cells[2];
    for (int axis = 0; axis < v->dimension; axis++) {
        for (size_t p = 0; p < pieces; p++) {
            double corners[3][3] = {{0}};
            sk_mesh_distance_piece(shape->mesh, p, corners);
            if (v->dimension == 3)
                cross_triangle(job, axis, (const double(*)[3])corners);
            else
                cross_segment(job, axis, (const double(*)[3])corners);
        }
        sweep(job, axis);
    }
    for (size_t c = 0; c < total; c++) {
        unsigned votes = job->marks[c] & 7u;
        int yes = __builtin_popcount(votes), inside = yes >= 2;
        if (v->dimension == 2 && yes == 1) { /* one against one: the winding number decides */
            double x[3] = {center_along(v, 0, (int)(c % (size_t)v->cells[0])),
                           center_along(v, 1, (int)(c / (size_t)v->cells[0])), 0.0};
            inside = sk_mesh_distance_inside(shape->mesh, x);
        }
        job->marks[c] = (uint8_t)((job->marks[c] & ~7u) | (inside ? INSIDE : 0u));
    }
}

/* Members of a union one by one: crossings of overlapping ones would cancel. */
static void mark_inside(voxel_job *job, const sk_shape *shape)
{
    if (shape->kind == SELKIE_SHAPE_UNION)
        for (int c = 0; c < shape->child_count; c++)
            mark_inside(job, shape->children[c]);
    else if (shape->kind == SELKIE_SHAPE_MESH && shape->mesh)
        mark_voted(job, shape);
    else
        mark_asked(job, shape);
}

/* --- Thin parts: samples of the surface --- */

/* Whether the shape is too thin behind a point of its surface to hold the centres of a closed layer of cells: that
 * takes a depth of cell (|nx| + |ny| + |nz|), the thickness of a plane of cells without gaps. */
static int is_thin(const voxel_job *job, const double x[3], const double normal[3])
{
    const sk_voxels *v = job->voxels;
    int dimension = v->dimension;
    double depth = 0.0;

    /* Fast path: cells at depths of 1 to 2 cells are inside. */
    int deep = 1;
    for (int part = 2; part <= 4 && deep; part++) {
        int cell[3] = {0, 0, 0};
        for (int d = 0; d < dimension; d++) {
            double place = floor((x[d] - 0.5 * part * v->cell * normal[d] - v->low[d]) / v->cell);
            deep &= place >= 0.0 && place < v->cells[d];
            cell[d] = deep ? (int)place : 0;
        }
        uint8_t mark; /* other threads may set THIN */
#pragma omp atomic read
        mark = job->marks[sk_voxels_cell(v, cell[0], cell[1], cell[2])];
        deep = deep && (mark & INSIDE);
    }
    if (deep)
        return 0;

    /* Test points down to the depth of a closed layer. */
    for (int d = 0; d < dimension; d++)
        depth += fabs(normal[d]);
    depth *= 0.98 * v->cell;
    for (int part = 1; part <= 4; part++) {
        double y[3] = {0, 0, 0};
        for (int d = 0; d < dimension; d++)
            y[d] = x[d] - 0.25 * part * depth * normal[d];
        if (!sk_shape_inside(job->shape, y))
            return 1;
    }
    return 0;
}

/* Marks every cell near the sample that the plane of the surface crosses. Together they leave no gap; the cells of the
 * samples alone would leave diagonal ones. */
static void mark_plane(voxel_job *job, const int cell[3], const double x[3], const double normal[3])
{
    sk_voxels *v = job->voxels;
    double reach = 0.5 * v->cell * (fabs(normal[0]) + fabs(normal[1]) + fabs(normal[2]));
    for (int n = v->dimension == 3 ? 0 : 9; n < (v->dimension == 3 ? 27 : 18); n++) {
        int at[3] = {cell[0] + n % 3 - 1, cell[1] + n / 3 % 3 - 1, cell[2] + n / 9 - 1};
        double off = 0.0, far2 = 0.0;
        int exists = 1;
        for (int d = 0; d < v->dimension; d++) {
            double from = center_along(v, d, at[d]) - x[d];
            exists &= at[d] >= 0 && at[d] < v->cells[d];
            off += from * normal[d];
            far2 += from * from;
        }
        if (!exists || fabs(off) > reach * (1.0 - 1e-9) || far2 - off * off > 0.5625 * v->cell * v->cell)
            continue;
        uint8_t *mark = &job->marks[sk_voxels_cell(v, at[0], at[1], at[2])];
#pragma omp atomic update
        *mark |= THIN;
    }
}

static void mark_sample(voxel_job *job, const double x[3], const double normal[3])
{
    sk_voxels *v = job->voxels;
    int cell[3] = {0, 0, 0};
    for (int d = 0; d < v->dimension; d++) {
        /* A little below the surface: a sample on a cell face belongs to the cell behind it. */
        double place = floor((x[d] - 1e-3 * v->cell * normal[d] - v->low[d]) / v->cell);
        if (!(place >= 0.0 && place < v->cells[d]))
            return;
        cell[d] = (int)place;
    }
    if (is_thin(job, x, normal))
        mark_plane(job, cell, x, normal);
}

/* Samples at most half a cell apart. */
static void sample_triangle(voxel_job *job, const float *points)
{
    double a[3], b[3], n[3], longest = 0.0, area = 0.0;
    for (int d = 0; d < 3; d++) {
        a[d] = (double)points[3 + d] - points[d];
        b[d] = (double)points[6 + d] - points[d];
    }
    for (int d = 0; d < 3; d++) {
        n[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
        area += n[d] * n[d];
    }
    if (!(area > 0.0))
        return;
    double c[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    longest = sqrt(fmax(sk_dot(a, a), fmax(sk_dot(b, b), sk_dot(c, c))));
    for (int d = 0; d < 3; d++)
        n[d] /= sqrt(area);
    int steps = (int)fmin(ceil(longest / (0.5 * job->voxels->cell)), 16384.0);
    for (int i = 0; i < steps; i++)
        for (int j = 0; i + j < steps; j++)
            for (int half = 0; half < (i + j + 1 < steps ? 2 : 1); half++) {
                double s = (i + (half ? 2.0 : 1.0) / 3.0) / steps, t = (j + (half ? 2.0 : 1.0) / 3.0) / steps, x[3];
                for (int d = 0; d < 3; d++)
                    x[d] = points[d] + s * a[d] + t * b[d];
                mark_sample(job, x, n);
            }
}

static void sample_segment(voxel_job *job, const float *points)
{
    double a[2] = {(double)points[3] - points[0], (double)points[4] - points[1]}, length = hypot(a[0], a[1]);
    if (!(length > 0.0))
        return;
    double n[3] = {a[1] / length, -a[0] / length, 0.0}; /* the inside is on the left */
    int steps = (int)fmin(ceil(length / (0.5 * job->voxels->cell)), 1e6);
    for (int i = 0; i < steps; i++) {
        double s = (i + 0.5) / steps, x[3] = {points[0] + s * a[0], points[1] + s * a[1], 0.0};
        mark_sample(job, x, n);
    }
}

static selkie_code mark_thin(voxel_job *job, const char *what, selkie_error *error)
{
    sk_voxels *v = job->voxels;
    double low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    for (int d = 0; d < v->dimension; d++) {
        low[d] = v->low[d];
        high[d] = v->low[d] + v->cells[d] * v->cell;
    }
    size_t count;
    float *points;
    selkie_error inner;
    selkie_code code = sk_shape_triangles(job->shape, low, high, &count, &points, &inner);
    if (code != SELKIE_OK)
        return sk_fail(error, code, "%s: %s", what, inner.message);
#pragma omp parallel for num_threads(job->threads) schedule(dynamic, 64)
    for (size_t p = 0; p < count; p++)
        if (v->dimension == 3)
            sample_triangle(job, points + 9 * p);
        else
            sample_segment(job, points + 6 * p);
    free(points);
    return SELKIE_OK;
}

/* --- Layers --- */

static int has_neighbor_of_level(const sk_voxels *v, const uint8_t *levels, int i, int j, int k, int level)
{
    for (int dk = -1; dk <= 1; dk++)
        for (int dj = -1; dj <= 1; dj++)
            for (int di = -1; di <= 1; di++) {
                int x = i + di, y = j + dj, z = v->dimension == 3 ? k + dk : 0;
                int outside = x < 0 || y < 0 || z < 0 || x >= v->cells[0] || y >= v->cells[1] || z >= v->cells[2];
                if ((outside ? 0 : levels[sk_voxels_cell(v, x, y, z)]) == level)
                    return 1;
            }
    return 0;
}

/* Marks become levels: 0 outside, 1, 2 ... `layers`, and 255 for what lies deeper (or, with 0 layers, for all). */
static void find_layers(voxel_job *job, int layers)
{
    sk_voxels *v = job->voxels;
    uint8_t *levels = job->marks;
    size_t total = (size_t)v->cells[0] * (size_t)v->cells[1] * (size_t)v->cells[2];
    for (size_t c = 0; c < total; c++) {
        levels[c] = levels[c] ? 255 : 0;
        v->solid_count += levels[c] != 0;
    }
    for (int level = 1; level <= layers; level++)
        for (int k = 0; k < v->cells[2]; k++)
            for (int j = 0; j < v->cells[1]; j++)
                for (int i = 0; i < v->cells[0]; i++) {
                    size_t c = sk_voxels_cell(v, i, j, k);
                    if (levels[c] == 255 && has_neighbor_of_level(v, levels, i, j, k, level - 1))
                        levels[c] = (uint8_t)level;
                }
}

static int is_taken(uint8_t level, int layers)
{
    return level && (!layers || level <= layers);
}

static selkie_code collect(voxel_job *job, int layers, const char *what, selkie_error *error)
{
    sk_voxels *v = job->voxels;
    size_t total = (size_t)v->cells[0] * (size_t)v->cells[1] * (size_t)v->cells[2];
    for (size_t c = 0; c < total; c++)
        v->count += (size_t)is_taken(job->marks[c], layers);
    v->centers = sk_allocate(v->memory, (v->count + 1) * sizeof *v->centers);
    v->places = sk_allocate(v->memory, total * sizeof *v->places);
    if (!v->centers || !v->places)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for a grid of %zu cells", what, total);
    size_t n = 0;
    for (int k = 0; k < v->cells[2]; k++)
        for (int j = 0; j < v->cells[1]; j++)
            for (int i = 0; i < v->cells[0]; i++) {
                size_t c = sk_voxels_cell(v, i, j, k);
                v->places[c] = -1;
                if (!is_taken(job->marks[c], layers))
                    continue;
                const int cell[3] = {i, j, k};
                for (int d = 0; d < 3; d++)
                    v->centers[n][d] = (float)center_along(v, d, cell[d]);
                v->places[c] = (int32_t)n++;
            }
    return SELKIE_OK;
}

/* --- All together --- */

/* The shape's box in whole cells, centred on it, and a cell more on every side. */
static selkie_code lay_grid(sk_voxels *v, const sk_shape *shape, const sk_voxels_options *options, selkie_error *error)
{
    double from[3], to[3], total = 1.0;
    sk_shape_bounds(shape, from, to);
    for (int d = 0; d < 3; d++) {
        v->cells[d] = 1;
        if (d >= v->dimension)
            continue;
        from[d] = isfinite(from[d]) ? from[d] : options->low[d];
        to[d] = isfinite(to[d]) ? to[d] : options->high[d];
        double cells = fmax(ceil((to[d] - from[d]) / v->cell - 1e-4), 1.0) + 2.0;
        total *= cells;
        if (!(from[d] <= to[d]) || !(total <= MAX_CELLS))
            return sk_fail(
                error, SELKIE_ERROR_INPUT,
                "%s: from %g to %g m along %c makes too many cells of a particle's size, %g m: at most %d in all",
                options->what, from[d], to[d], "xyz"[d], v -> cell, MAX_CELLS);
        v->cells[d] = (int)cells;
        v->low[d] = 0.5 * (from[d] + to[d]) - 0.5 * cells * v->cell;
    }
    return SELKIE_OK;
}

selkie_code sk_voxels_create(const sk_shape *shape, const sk_voxels_options *options, sk_voxels *voxels,
                             selkie_error *error)
{
    /* The grid. */
    memset(voxels, 0, sizeof *voxels);
    voxels->memory = options->memory;
    voxels->dimension = shape->dimension;
    voxels->cell = options->cell;
    SK_TRY(lay_grid(voxels, shape, options, error));
    voxel_job job = {.voxels = voxels, .shape = shape, .threads = options->threads > 0 ? options->threads : 1};
    size_t total = (size_t)voxels->cells[0] * (size_t)voxels->cells[1] * (size_t)voxels->cells[2];
    job.marks = sk_allocate_zeroed(options->memory, total);
    if (!job.marks)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for a grid of %zu cells", options->what, total);

    /* Cells of the shape, their layers, and the list of those taken. */
    int layers = options->layers > 254 ? 0 : options->layers;
    mark_inside(&job, shape);
    selkie_code code = mark_thin(&job, options->what, error);
    if (code == SELKIE_OK) {
        find_layers(&job, layers);
        code = collect(&job, layers, options->what, error);
    }
    sk_release(options->memory, job.marks);
    if (code != SELKIE_OK)
        sk_voxels_free(voxels);
    return code;
}

void sk_voxels_free(sk_voxels *voxels)
{
    sk_release(voxels->memory, voxels->centers);
    sk_release(voxels->memory, voxels->places);
    voxels->centers = NULL;
    voxels->places = NULL;
    voxels->count = 0;
}

/* Half-edge collapses in rounds. A round visits the vertices in order and merges a vertex into the neighbour with the
 * least quadric error (Garland and Heckbert 1997). The neighbours of a merged vertex rest until the next round, so that
 * the lists of triangles around vertices are made once a round.
 */
#include "geom/mesh_decimate.h"

#include <math.h>
#include <string.h>

enum { most_rounds = 40, most_around = 48 };

/* Symmetric 4x4 matrix of squared distances from planes: xx xy xz xw yy yz yw zz zw ww. */
typedef struct quadric {
    double q[10];
} quadric;

typedef struct decimator {
    sk_mesh *mesh;
    double most; /* m2 of a quadric */
    quadric *errors;
    uint32_t *first;     /* [vertex_count + 1] of a vertex in `around` */
    uint32_t *around;    /* triangles around vertices */
    uint32_t *into;      /* [vertex_count] vertex that took its place; itself while it is there */
    unsigned char *rest; /* [vertex_count] 1 = not in this round */
} decimator;

static void corner_of(const sk_mesh *mesh, uint32_t vertex, double x[3])
{
    for (int k = 0; k < 3; k++)
        x[k] = (double)mesh->positions[3 * (size_t)vertex + (size_t)k];
}

/* Normal of a triangle, of twice its area. */
static void normal_of(double a[3], double b[3], double c[3], double n[3])
{
    const double u[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, v[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    n[0] = u[1] * v[2] - u[2] * v[1];
    n[1] = u[2] * v[0] - u[0] * v[2];
    n[2] = u[0] * v[1] - u[1] * v[0];
}

static double length_of(const double n[3])
{
    return sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
}

static void add_plane(quadric *to, const double p[4])
{
    for (int i = 0, at = 0; i < 4; i++)
        for (int j = i; j < 4; j++)
            to->q[at++] += p[i] * p[j];
}

/* Sum of the squared distances (m2) of a point from the planes of both. */
static double error_at(const quadric *a, const quadric *b, const double x[3])
{
    const double p[4] = {x[0], x[1], x[2], 1.0};
    double sum = 0.0;
    for (int i = 0, at = 0; i < 4; i++)
        for (int j = i; j < 4; j++, at++)
            sum += (i == j ? 1.0 : 2.0) * (a->q[at] + b->q[at]) * p[i] * p[j];
    return sum;
}

static void make_quadrics(decimator *d)
{
    const sk_mesh *mesh = d->mesh;
    memset(d->errors, 0, mesh->vertex_count * sizeof *d->errors);
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        const uint32_t *v = mesh->triangles + 3 * t;
        double x[3][3], n[4];
        for (int k = 0; k < 3; k++)
            corner_of(mesh, v[k], x[k]);
        normal_of(x[0], x[1], x[2], n);
        const double length = length_of(n);
        for (int k = 0; k < 3 && length > 0.0; k++)
            n[k] /= length;
        n[3] = -(n[0] * x[0][0] + n[1] * x[0][1] + n[2] * x[0][2]);
        for (int k = 0; k < 3 && length > 0.0; k++)
            add_plane(&d->errors[v[k]], n);
    }
}

/* Triangles around each vertex. */
static void list_around(decimator *d)
{
    const sk_mesh *mesh = d->mesh;
    memset(d->first, 0, (mesh->vertex_count + 1) * sizeof *d->first);
    for (size_t i = 0; i < 3 * mesh->triangle_count; i++)
        d->first[mesh->triangles[i]]++;
    uint32_t sum = 0;
    for (size_t v = 0; v <= mesh->vertex_count; v++) {
        const uint32_t count = v < mesh->vertex_count ? d->first[v] : 0;
        d->first[v] = sum += count;
    }
    for (size_t i = 3 * mesh->triangle_count; i-- > 0;)
        d->around[--d->first[mesh->triangles[i]]] = (uint32_t)(i / 3);
}

/* Neighbours of a vertex, each once; -1 if there are too many. */
static int list_neighbours(const decimator *d, uint32_t vertex, uint32_t neighbours[most_around])
{
    int count = 0;
    for (uint32_t i = d->first[vertex]; i < d->first[vertex + 1]; i++)
        for (int k = 0; k < 3; k++) {
            const uint32_t other = d->mesh->triangles[3 * (size_t)d->around[i] + (size_t)k];
            int found = other == vertex;
            for (int n = 0; n < count && !found; n++)
                found = neighbours[n] == other;
            if (found)
                continue;
            if (count == most_around)
                return -1;
            neighbours[count++] = other;
        }
    return count;
}

/* Two neighbours in common, those of the two triangles at the edge: else the collapse would pinch the surface. */
static int keeps_closed(const decimator *d, const uint32_t *ring, int count, uint32_t to)
{
    uint32_t others[most_around];
    const int other_count = list_neighbours(d, to, others);
    int common = 0;
    for (int i = 0; i < count && other_count >= 0; i++)
        for (int j = 0; j < other_count; j++)
            common += ring[i] == others[j];
    return other_count > 3 && common == 2;
}

/* Do the triangles that remain keep their side? */
static int keeps_sides(const decimator *d, uint32_t from, uint32_t to)
{
    for (uint32_t i = d->first[from]; i < d->first[from + 1]; i++) {
        const uint32_t *v = d->mesh->triangles + 3 * (size_t)d->around[i];
        double x[3][3], y[3][3], before[3], after[3];
        if (v[0] == to || v[1] == to || v[2] == to)
            continue;
        for (int k = 0; k < 3; k++) {
            corner_of(d->mesh, v[k], x[k]);
            corner_of(d->mesh, v[k] == from ? to : v[k], y[k]);
        }
        normal_of(x[0], x[1], x[2], before);
        normal_of(y[0], y[1], y[2], after);
        const double product = before[0] * after[0] + before[1] * after[1] + before[2] * after[2];
        if (!(product > 0.8 * length_of(before) * length_of(after)) || !(product > 0.0))
            return 0;
    }
    return 1;
}

/* Merges a vertex into its best neighbour; 0 if there is none. */
static int merge_vertex(decimator *d, uint32_t vertex)
{
    uint32_t ring[most_around], best = vertex;
    const int count = list_neighbours(d, vertex, ring);
    double least = d->most;
    for (int n = 0; n < count; n++) {
        double x[3];
        if (d->rest[ring[n]])
            continue;
        corner_of(d->mesh, ring[n], x);
        const double error = error_at(&d->errors[vertex], &d->errors[ring[n]], x);
        if (error < least && keeps_sides(d, vertex, ring[n]) && keeps_closed(d, ring, count, ring[n])) {
            least = error;
            best = ring[n];
        }
    }
    if (best == vertex)
        return 0;

    d->into[vertex] = best;
    for (int i = 0; i < 10; i++)
        d->errors[best].q[i] += d->errors[vertex].q[i];
    d->rest[vertex] = 1;
    for (int n = 0; n < count; n++)
        d->rest[ring[n]] = 1;
    return 1;
}

/* Triangles with the merged vertices; those that have become lines are left out. */
static void renew_triangles(decimator *d)
{
    sk_mesh *mesh = d->mesh;
    size_t kept = 0;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        const uint32_t *from = mesh->triangles + 3 * t;
        const uint32_t a = d->into[from[0]], b = d->into[from[1]], c = d->into[from[2]];
        uint32_t *to = mesh->triangles + 3 * kept;
        to[0] = a, to[1] = b, to[2] = c;
        kept += a != b && b != c && c != a;
    }
    mesh->triangle_count = kept;
}

/* Packs the vertices that are left, with their values. */
static void pack_vertices(decimator *d)
{
    sk_mesh *mesh = d->mesh;
    uint32_t kept = 0;
    for (uint32_t v = 0; v < mesh->vertex_count; v++) {
        if (d->into[v] != v)
            continue;
        float *const arrays[3] = {mesh->positions, mesh->normals, mesh->velocities};
        for (int a = 0; a < 3; a++)
            if (arrays[a])
                memmove(arrays[a] + 3 * (size_t)kept, arrays[a] + 3 * (size_t)v, 3 * sizeof(float));
        for (int i = 0; i < mesh->value_count; i++)
            mesh->values[i].data[kept] = mesh->values[i].data[v];
        d->first[v] = kept++;
    }
    for (size_t i = 0; i < 3 * mesh->triangle_count; i++)
        mesh->triangles[i] = d->first[mesh->triangles[i]];
    mesh->vertex_count = kept;
}

static void run_rounds(decimator *d)
{
    const size_t count = d->mesh->vertex_count;
    make_quadrics(d);
    for (uint32_t v = 0; v < count; v++)
        d->into[v] = v;
    for (int round = 0; round < most_rounds; round++) {
        size_t merged = 0;
        list_around(d);
        memset(d->rest, 0, count);
        for (uint32_t v = 0; v < count; v++)
            if (d->into[v] == v && !d->rest[v] && d->first[v] < d->first[v + 1])
                merged += (size_t)merge_vertex(d, v);
        renew_triangles(d);
        if (merged < 1 + count / 1000)
            break;
    }
    pack_vertices(d);
}

selkie_code sk_mesh_decimate(sk_mesh *mesh, double tolerance, selkie_error *error)
{
    if (!(tolerance > 0.0) || !mesh->triangle_count)
        return SELKIE_OK;
    const size_t count = mesh->vertex_count;
    decimator d = {.mesh = mesh,
                   .most = tolerance * tolerance,
                   .errors = sk_allocate(NULL, count * sizeof *d.errors),
                   .first = sk_allocate(NULL, (count + 1) * sizeof *d.first),
                   .around = sk_allocate(NULL, 3 * mesh->triangle_count * sizeof *d.around),
                   .into = sk_allocate(NULL, count * sizeof *d.into),
                   .rest = sk_allocate(NULL, count)};
    selkie_code code = SELKIE_OK;
    if (d.errors && d.first && d.around && d.into && d.rest)
        run_rounds(&d);
    else
        code =
            sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory to decimate %zu triangles", mesh->triangle_count);
    void *const arrays[] = {d.errors, d.first, d.around, d.into, d.rest};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        sk_release(NULL, arrays[i]);
    return code;
}

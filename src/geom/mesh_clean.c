/* From unconnected triangles to a mesh with a defined inside.
 *
 * Everything follows from one sorted list of edges: open edges, neighbours of triangles, the boundary of a flat mesh.
 * Each triangle passes three edges in one direction or the other. A mesh is closed, in the sense that its winding
 * number is a whole number everywhere, exactly if every edge is passed as often one way as the other; that also holds
 * where more than two triangles meet, as where two boxes touch along an edge.
 */
#include "geom/mesh_clean.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"

/* --- Welding --- */

/* A hashed grid finds points. Its cells are as large as the tolerance, so every point within it is in the same cell or
 * in one of the 26 around. */
static uint64_t hash_cell(const double cell[3])
{
    uint64_t bits[3], hash = 0;
    memcpy(bits, cell, sizeof bits);
    for (int i = 0; i < 3; i++)
        hash = sk_hash64(hash ^ bits[i]);
    return hash;
}

typedef struct weld_table {
    size_t slots; /* a power of two */
    uint32_t *vertex_of;
    const double (*points)[3];
    double tolerance; /* m, > 0 */
} weld_table;

static void cell_of(const weld_table *table, const double point[3], double cell[3])
{
    for (int i = 0; i < 3; i++)
        cell[i] = floor(point[i] / table->tolerance) + 0.0; /* + 0: no negative zero, whose bits differ */
}

/* The first vertex within the tolerance of a point in the given cell, or UINT32_MAX and the free slot. */
static uint32_t look_up(const weld_table *table, const double cell[3], const double point[3], size_t *slot)
{
    for (*slot = hash_cell(cell) & (table->slots - 1); table->vertex_of[*slot] != UINT32_MAX;
         *slot = (*slot + 1) & (table->slots - 1)) {
        const double *vertex = table->points[table->vertex_of[*slot]];
        double squared = 0.0;
        for (int i = 0; i < 3; i++)
            squared += (vertex[i] - point[i]) * (vertex[i] - point[i]);
        if (squared <= table->tolerance * table->tolerance)
            return table->vertex_of[*slot];
    }
    return UINT32_MAX;
}

static uint32_t look_around(const weld_table *table, const double cell[3], const double point[3])
{
    for (int neighbour = 0; neighbour < 27; neighbour++) {
        double other[3] = {cell[0] + neighbour % 3 - 1 + 0.0, cell[1] + neighbour / 3 % 3 - 1 + 0.0,
                           cell[2] + neighbour / 9 - 1 + 0.0};
        size_t unused;
        uint32_t vertex = look_up(table, other, point, &unused);
        if (vertex != UINT32_MAX)
            return vertex;
    }
    return UINT32_MAX;
}

/* Transforms of a file's parts separate equal points by a few units of single precision. */
static double weld_tolerance(size_t point_count, const double (*points)[3])
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, largest = 0.0;
    for (size_t i = 0; i < point_count; i++)
        for (int a = 0; a < 3; a++) {
            low[a] = fmin(low[a], points[i][a]);
            high[a] = fmax(high[a], points[i][a]);
        }
    for (int a = 0; a < 3 && point_count > 0; a++)
        largest = fmax(largest, high[a] - low[a]);
    return largest > 0.0 ? 5e-7 * largest : 1e-30;
}

selkie_code sk_clean_weld(size_t point_count, double (*points)[3], uint32_t *welded, size_t *vertex_count,
                          const char *name, sk_memory *memory, selkie_error *error)
{
    weld_table table = {64, NULL, (const double(*)[3])points, weld_tolerance(point_count, (const double(*)[3])points)};

    /* Hash table, at most half full. */
    while (table.slots < 2 * point_count)
        table.slots *= 2;
    table.vertex_of = sk_allocate(memory, table.slots * sizeof *table.vertex_of);
    if (!table.vertex_of)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory to weld %zu vertices (%.1f MiB more needed)", name,
                       point_count, (double)table.slots * sizeof *table.vertex_of / 1048576.0);
    memset(table.vertex_of, 0xff, table.slots * sizeof *table.vertex_of);

    /* A point takes the vertex at its place, or becomes a new vertex. */
    size_t count = 0;
    for (size_t i = 0; i < point_count; i++) {
        double point[3], cell[3];
        memcpy(point, points[i], sizeof point);
        cell_of(&table, point, cell);
        size_t slot;
        uint32_t vertex = look_up(&table, cell, point, &slot);
        if (vertex == UINT32_MAX)
            vertex = look_around(&table, cell, point);
        if (vertex == UINT32_MAX) {
            memcpy(points[count], point, sizeof point); /* count <= i: never overtakes what is still to be read */
            table.vertex_of[slot] = vertex = (uint32_t)count++;
        }
        welded[i] = vertex;
    }

    sk_release(memory, table.vertex_of);
    *vertex_count = count;
    return SELKIE_OK;
}

/* --- Edges --- */

typedef struct edge {
    uint32_t low, high; /* vertices */
    uint32_t triangle;
    uint8_t corner;  /* its first corner in the triangle */
    uint8_t falling; /* passed from high to low */
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    if (x->triangle != y->triangle)
        return x->triangle < y->triangle ? -1 : 1;
    return (int)x->corner - (int)y->corner;
}

static edge *list_edges(const sk_solid_mesh *mesh)
{
    edge *edges = sk_allocate(mesh->memory, 3 * mesh->triangle_count * sizeof *edges);
    if (!edges)
        return NULL;
    for (size_t t = 0; t < mesh->triangle_count; t++)
        for (int c = 0; c < 3; c++) {
            uint32_t from = mesh->triangles[t][c], to = mesh->triangles[t][(c + 1) % 3];
            edge *e = &edges[3 * t + (size_t)c];
            e->low = from < to ? from : to;
            e->high = from < to ? to : from;
            e->triangle = (uint32_t)t;
            e->corner = (uint8_t)c;
            e->falling = from > to;
        }
    qsort(edges, 3 * mesh->triangle_count, sizeof *edges, compare_edges);
    return edges;
}

static size_t group_end(const edge *edges, size_t count, size_t start)
{
    size_t end = start + 1;
    while (end < count && edges[end].low == edges[start].low && edges[end].high == edges[start].high)
        end++;
    return end;
}

/* --- Direction --- */

static void flip(uint32_t triangle[3])
{
    uint32_t kept = triangle[1];
    triangle[1] = triangle[2];
    triangle[2] = kept;
}

/* Walks each connected piece over the edges that two triangles share and turns those that disagree with the first; if
 * that would turn more than half of them, turns the others instead. */
static void agree(sk_solid_mesh *mesh, const uint32_t *neighbours, uint8_t *state, uint32_t *queue)
{
    enum { seen = 1, turned = 2 };
    for (size_t seed = 0; seed < mesh->triangle_count; seed++) {
        if (state[seed])
            continue;
        size_t head = 0, tail = 0, turned_count = 0;
        queue[tail++] = (uint32_t)seed;
        state[seed] = seen;
        while (head < tail) {
            uint32_t t = queue[head++];
            turned_count += (state[t] & turned) != 0;
            for (int c = 0; c < 3; c++) {
                uint32_t link = neighbours[3 * (size_t)t + (size_t)c]; /* triangle * 2 + 1 if they disagree */
                uint32_t other = link >> 1;
                if (link == UINT32_MAX || state[other])
                    continue;
                int turn = ((state[t] & turned) != 0) ^ (int)(link & 1);
                state[other] = (uint8_t)(seen | (turn ? turned : 0));
                queue[tail++] = other;
            }
        }
        int others = 2 * turned_count > tail;
        for (size_t i = 0; i < tail; i++)
            if (((state[queue[i]] & turned) != 0) != others)
                flip(mesh->triangles[queue[i]]);
    }
}

static selkie_code make_directions_agree(sk_solid_mesh *mesh, const edge *edges, const char *name, selkie_error *error)
{
    size_t count = mesh->triangle_count;
    uint32_t *neighbours = sk_allocate(mesh->memory, 3 * count * sizeof *neighbours);
    uint32_t *queue = sk_allocate(mesh->memory, count * sizeof *queue);
    uint8_t *state = sk_allocate_zeroed(mesh->memory, count);
    selkie_code code = SELKIE_OK;
    if (!neighbours || !queue || !state) {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the neighbours of %zu triangles", name, count);
    } else {
        memset(neighbours, 0xff, 3 * count * sizeof *neighbours);
        for (size_t start = 0, end; start < 3 * count; start = end) {
            end = group_end(edges, 3 * count, start);
            if (end - start != 2)
                continue;
            const edge *a = &edges[start], *b = &edges[start + 1];
            uint32_t disagree = a->falling == b->falling;
            neighbours[3 * (size_t)a->triangle + a->corner] = 2 * b->triangle + disagree;
            neighbours[3 * (size_t)b->triangle + b->corner] = 2 * a->triangle + disagree;
        }
        agree(mesh, neighbours, state, queue);
    }
    sk_release(mesh->memory, neighbours);
    sk_release(mesh->memory, queue);
    sk_release(mesh->memory, state);
    return code;
}

static void double_area_normal(const sk_solid_mesh *mesh, const uint32_t triangle[3], double normal[3])
{
    const double *a = mesh->vertices[triangle[0]], *b = mesh->vertices[triangle[1]], *c = mesh->vertices[triangle[2]];
    double u[3], v[3];
    for (int i = 0; i < 3; i++) {
        u[i] = b[i] - a[i];
        v[i] = c[i] - a[i];
    }
    normal[0] = u[1] * v[2] - u[2] * v[1];
    normal[1] = u[2] * v[0] - u[0] * v[2];
    normal[2] = u[0] * v[1] - u[1] * v[0];
}

double sk_solid_mesh_volume(const sk_solid_mesh *mesh)
{
    /* From the first vertex rather than from the origin, so that a mesh far from it keeps its precision. */
    double sum = 0.0;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        double normal[3];
        double_area_normal(mesh, mesh->triangles[t], normal);
        const double *a = mesh->vertices[mesh->triangles[t][0]], *origin = mesh->vertices[0];
        for (int i = 0; i < 3; i++)
            sum += (a[i] - origin[i]) * normal[i];
    }
    return sum / 6.0;
}

static int z_is_constant(const sk_solid_mesh *mesh, double *lowest_z, double *highest_z)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (size_t v = 0; v < mesh->vertex_count; v++)
        for (int i = 0; i < 3; i++) {
            low[i] = fmin(low[i], mesh->vertices[v][i]);
            high[i] = fmax(high[i], mesh->vertices[v][i]);
        }
    *lowest_z = low[2];
    *highest_z = high[2];
    /* Files hold single precision: z of a rotated flat mesh is rounding error. */
    return high[2] - low[2] <= 1e-6 * fmax(high[0] - low[0], high[1] - low[1]);
}

int sk_solid_mesh_is_flat(const sk_solid_mesh *mesh)
{
    double low, high;
    return z_is_constant(mesh, &low, &high);
}

/* The direction of positive volume is outward; a flat mesh has no volume and faces +z. */
static void face_outward(sk_solid_mesh *mesh)
{
    double low, high, measure = 0.0;
    if (z_is_constant(mesh, &low, &high)) {
        for (size_t t = 0; t < mesh->triangle_count; t++) {
            double normal[3];
            double_area_normal(mesh, mesh->triangles[t], normal);
            measure += normal[2];
        }
    } else {
        measure = sk_solid_mesh_volume(mesh);
    }
    if (measure < 0.0)
        for (size_t t = 0; t < mesh->triangle_count; t++)
            flip(mesh->triangles[t]);
}

/* --- All of it --- */

static void drop_repeated_corners(sk_solid_mesh *mesh)
{
    size_t kept = 0;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        uint32_t a = mesh->triangles[t][0], b = mesh->triangles[t][1], c = mesh->triangles[t][2];
        if (a != b && b != c && c != a)
            memmove(mesh->triangles[kept++], mesh->triangles[t], sizeof mesh->triangles[0]);
    }
    mesh->triangle_count = kept;
}

/* Triangles without an area have no direction. They are dropped after the edges were counted, since they may close a
 * seam. */
static void drop_slivers(sk_solid_mesh *mesh)
{
    size_t kept = 0;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        double normal[3];
        double_area_normal(mesh, mesh->triangles[t], normal);
        if (normal[0] != 0.0 || normal[1] != 0.0 || normal[2] != 0.0)
            memmove(mesh->triangles[kept++], mesh->triangles[t], sizeof mesh->triangles[0]);
    }
    mesh->triangle_count = kept;
}

/* An edge is open unless as many triangles run along it in one direction as in the other. */
static selkie_code count_open_edges(sk_solid_mesh *mesh, const char *name, selkie_error *error)
{
    edge *edges = list_edges(mesh);
    if (!edges)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the edges of %zu triangles", name,
                       mesh->triangle_count);
    mesh->open_edges = 0;
    for (size_t start = 0, end; start < 3 * mesh->triangle_count; start = end) {
        end = group_end(edges, 3 * mesh->triangle_count, start);
        size_t falling = 0;
        for (size_t i = start; i < end; i++)
            falling += edges[i].falling;
        mesh->open_edges += 2 * falling != end - start;
    }
    sk_release(mesh->memory, edges);
    return SELKIE_OK;
}

selkie_code sk_clean_mesh(sk_solid_mesh *mesh, const char *name, selkie_error *error)
{
    drop_repeated_corners(mesh);
    if (mesh->triangle_count > 0) {
        edge *edges = list_edges(mesh);
        if (!edges)
            return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the edges of %zu triangles (%.1f MiB)", name,
                           mesh->triangle_count, 3.0 * (double)mesh->triangle_count * sizeof *edges / 1048576.0);
        selkie_code code = make_directions_agree(mesh, edges, name, error);
        sk_release(mesh->memory, edges);
        SK_TRY(code);
        SK_TRY(count_open_edges(mesh, name, error));
        drop_slivers(mesh);
    }
    if (mesh->triangle_count == 0)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: holds no triangle with an area: a mesh needs faces", name);
    face_outward(mesh);
    return SELKIE_OK;
}

void sk_solid_mesh_release(sk_solid_mesh *mesh)
{
    sk_release(mesh->memory, mesh->vertices);
    sk_release(mesh->memory, mesh->triangles);
    memset(mesh, 0, sizeof *mesh);
}

selkie_code sk_solid_mesh_from_corners(size_t triangle_count, const double (*corners)[3], const char *name,
                                       sk_memory *memory, sk_solid_mesh *mesh, selkie_error *error)
{
    memset(mesh, 0, sizeof *mesh);
    mesh->memory = memory;
    if (triangle_count > sk_mesh_triangle_limit)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %zu triangles are more than the limit of %d", name,
                       triangle_count, (int)sk_mesh_triangle_limit);
    for (size_t i = 0; i < 3 * triangle_count; i++)
        SK_TRY(sk_clean_check_point(corners[i], i, name, error));
    mesh->vertices = sk_allocate(memory, 3 * triangle_count * sizeof *mesh->vertices);
    mesh->triangles = sk_allocate(memory, triangle_count * sizeof *mesh->triangles);
    selkie_code code = SELKIE_OK;
    if (!mesh->vertices || !mesh->triangles)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for %zu triangles", name, triangle_count);
    if (code == SELKIE_OK) {
        memcpy(mesh->vertices, corners, 3 * triangle_count * sizeof *mesh->vertices);
        mesh->triangle_count = triangle_count;
        code = sk_clean_weld(3 * triangle_count, mesh->vertices, &mesh->triangles[0][0], &mesh->vertex_count, name,
                             memory, error);
    }
    if (code == SELKIE_OK)
        code = sk_clean_mesh(mesh, name, error);
    if (code != SELKIE_OK)
        sk_solid_mesh_release(mesh);
    return code;
}

selkie_code sk_clean_check_point(const double point[3], size_t index, const char *name, selkie_error *error)
{
    for (int i = 0; i < 3; i++)
        if (!(fabs(point[i]) <= 1e30)) /* also a NaN */
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%s: vertex %zu is (%g, %g, %g): not finite, or beyond 1e30 m",
                           name, index, point[0], point[1], point[2]);
    return SELKIE_OK;
}

/* --- Outlines for 2D --- */

/* The point at which the edge between two vertices meets z = 0. The lower vertex number comes first, so that both
 * triangles of an edge get the same point to the last bit and the outline is closed. */
static void edge_in_plane(const sk_solid_mesh *mesh, uint32_t a, uint32_t b, double point[3])
{
    const double *p = mesh->vertices[a < b ? a : b], *q = mesh->vertices[a < b ? b : a];
    double share = p[2] / (p[2] - q[2]);
    for (int i = 0; i < 2; i++)
        point[i] = share == 1.0 ? q[i] : p[i] + share * (q[i] - p[i]);
    point[2] = 0.0;
}

/* A vertex in the plane counts as above it, so that a triangle is cut in no or exactly two edges, and an edge that lies
 * in the plane is taken from the triangle below it alone. */
static size_t cut(const sk_solid_mesh *mesh, double (*segments)[2][3])
{
    size_t count = 0;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        const uint32_t *v = mesh->triangles[t];
        double ends[2][3];
        int found = 0;
        for (int c = 0; c < 3; c++) {
            uint32_t from = v[c], to = v[(c + 1) % 3];
            int from_above = mesh->vertices[from][2] >= 0.0, to_above = mesh->vertices[to][2] >= 0.0;
            if (from_above == to_above)
                continue;
            /* Seen from outside the triangle turns left: it leaves the upper side where the section, with the inside
             * on its left seen from above, starts. */
            edge_in_plane(mesh, from, to, ends[from_above ? 0 : 1]);
            found++;
        }
        if (found != 2 || (ends[0][0] == ends[1][0] && ends[0][1] == ends[1][1]))
            continue;
        if (segments)
            memcpy(segments[count], ends, sizeof ends);
        count++;
    }
    return count;
}

/* Edges that are passed more often in one direction, once for each extra pass. */
static size_t boundary(const sk_solid_mesh *mesh, const edge *edges, double (*segments)[2][3])
{
    size_t count = 0;
    for (size_t start = 0, end; start < 3 * mesh->triangle_count; start = end) {
        end = group_end(edges, 3 * mesh->triangle_count, start);
        size_t falling = 0;
        for (size_t i = start; i < end; i++)
            falling += edges[i].falling;
        size_t rising = end - start - falling;
        if (falling == rising)
            continue;
        const double *from = mesh->vertices[falling > rising ? edges[start].high : edges[start].low];
        const double *to = mesh->vertices[falling > rising ? edges[start].low : edges[start].high];
        for (size_t n = falling > rising ? falling - rising : rising - falling; n > 0; n--) {
            if (segments)
                for (int i = 0; i < 3; i++) {
                    segments[count][0][i] = i < 2 ? from[i] : 0.0;
                    segments[count][1][i] = i < 2 ? to[i] : 0.0;
                }
            count++;
        }
    }
    return count;
}

selkie_code sk_solid_mesh_outline(const sk_solid_mesh *mesh, const char *name, sk_memory *memory, size_t *segment_count,
                                  double (**segments)[2][3], selkie_error *error)
{
    *segment_count = 0;
    *segments = NULL;
    double low, high;
    int flat = z_is_constant(mesh, &low, &high);
    edge *edges = NULL;
    if (flat && !(edges = list_edges(mesh)))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for its outline", name);
    size_t count = flat ? boundary(mesh, edges, NULL) : cut(mesh, NULL);
    selkie_code code = SELKIE_OK;
    if (count == 0)
        code = flat ? sk_fail(error, SELKIE_ERROR_INPUT, "%s: is flat and has no boundary: nothing is inside it", name)
                    : sk_fail(error, SELKIE_ERROR_INPUT,
                              "%s: does not cross the plane z = 0, its z runs from %g to %g: a 2D scene takes the "
                              "section there, so move it with translate",
                              name, low, high);
    else if (!(*segments = sk_allocate(memory, count * sizeof **segments)))
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for an outline of %zu segments", name, count);
    if (code == SELKIE_OK)
        *segment_count = flat ? boundary(mesh, edges, *segments) : cut(mesh, *segments);
    sk_release(mesh->memory, edges);
    return code;
}

/* --- Sheets --- */

static uint32_t root_of(uint32_t *parents, uint32_t vertex)
{
    while (parents[vertex] != vertex)
        vertex = parents[vertex] = parents[parents[vertex]];
    return vertex;
}

/* Adds the open edges of a hole to its vector area: the hole is all open edges that hang together. Edges with more
 * passes in one direction count as often. */
static void add_open_edges(const sk_solid_mesh *mesh, const edge *edges, uint32_t *parents, double (*areas)[3])
{
    const size_t count = 3 * mesh->triangle_count;
    for (int pass = 0; pass < 2; pass++)
        for (size_t start = 0, end; start < count; start = end) {
            long long excess = 0;
            end = group_end(edges, count, start);
            for (size_t i = start; i < end; i++)
                excess += edges[i].falling ? -1 : 1;
            if (excess == 0)
                continue;
            const uint32_t low = edges[start].low, high = edges[start].high;
            if (pass == 0) {
                parents[root_of(parents, low)] = root_of(parents, high);
                continue;
            }
            const double *p = mesh->vertices[low], *q = mesh->vertices[high], *base = mesh->vertices[0];
            double *area = areas[root_of(parents, low)];
            for (int i = 0; i < 3; i++) {
                const int j = (i + 1) % 3, k = (i + 2) % 3;
                area[i] +=
                    0.5 * (double)excess * ((p[j] - base[j]) * (q[k] - base[k]) - (p[k] - base[k]) * (q[j] - base[j]));
            }
        }
}

selkie_code sk_solid_mesh_is_sheet(const sk_solid_mesh *mesh, const char *name, int *sheet, selkie_error *error)
{
    *sheet = 0;
    if (mesh->open_edges == 0)
        return SELKIE_OK;
    edge *edges = list_edges(mesh);
    uint32_t *parents = sk_allocate(mesh->memory, mesh->vertex_count * sizeof *parents);
    double(*areas)[3] = sk_allocate_zeroed(mesh->memory, mesh->vertex_count * sizeof *areas);
    selkie_code code = SELKIE_OK;

    /* Compare the area of the holes with that of the mesh. */
    if (edges && parents && areas) {
        double holes = 0.0, whole = 0.0, normal[3];
        for (size_t v = 0; v < mesh->vertex_count; v++)
            parents[v] = (uint32_t)v;
        add_open_edges(mesh, edges, parents, areas);
        for (size_t v = 0; v < mesh->vertex_count; v++)
            holes += sqrt(areas[v][0] * areas[v][0] + areas[v][1] * areas[v][1] + areas[v][2] * areas[v][2]);
        for (size_t t = 0; t < mesh->triangle_count; t++) {
            double_area_normal(mesh, mesh->triangles[t], normal);
            whole += 0.5 * sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
        }
        *sheet = holes > 0.02 * whole;
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%s: no memory for the edges of %zu triangles", name,
                       mesh->triangle_count);
    }

    sk_release(mesh->memory, edges);
    sk_release(mesh->memory, parents);
    sk_release(mesh->memory, areas);
    return code;
}

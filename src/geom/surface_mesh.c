/* From the level set to triangles: marching cubes with derived tables.
 *
 * Each grid edge that crosses the surface has one vertex; an edge belongs to its lower node, a cell to its lowest one.
 * In each cell the vertices are joined, face by face, into closed loops. A face with two crossings has one way to join
 * them; on an ambiguous face (four crossings) the two inside corners are kept apart. The choice depends on the face's
 * own corners alone, so two cells that share a face always agree, and the mesh is closed. Loops are cut into triangles
 * without diagonals in a face of the cell: the neighbour cell could use the same diagonal, and the edge would have four
 * triangles.
 *
 * Vertices are numbered by a bit a crossing edge and counts before each word of bits, so that a cell computes the
 * number of a neighbour block's vertex without a table. Signs of the nodes are bits too: cells without the surface cost
 * nothing.
 */
#include "geom/surface_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { max_loop = 12 };

/* --- The table of cases --- */

/* The edge between two corners that differ in one bit. Corner bits are x, y, z. */
static int edge_between(int a, int b)
{
    int axis = (a ^ b) == 1 ? 0 : (a ^ b) == 2 ? 1 : 2, low = a & b;
    int first = low >> (axis == 0 ? 1 : 0) & 1, second = low >> (axis == 2 ? 1 : 2) & 1;
    return 4 * axis + first + 2 * second;
}

/* Bits of the two faces (2 axis + side) that an edge lies in. */
static int edge_faces(int edge)
{
    int corner = sk_edge_lower_corner(edge), faces = 0;
    for (int a = 0; a < 3; ++a)
        if (a != edge >> 2)
            faces |= 1 << (2 * a + (corner >> a & 1));
    return faces;
}

/* Corners of a face, counter-clockwise seen from outside the cell. */
static void face_corners(int face, int corners[4])
{
    int axis = face >> 1, side = face & 1, u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3, base = side << axis;
    int ring[4] = {base, base | u, base | u | v, base | v};
    for (int i = 0; i < 4; ++i)
        corners[i] = ring[side ? i : 3 - i];
}

/* next[e] is the edge that follows e on the loop, or -1. */
static void join_crossings(int inside, int next[12])
{
    for (int e = 0; e < 12; ++e)
        next[e] = -1;
    for (int face = 0; face < 6; ++face) {
        int corners[4];
        face_corners(face, corners);
        for (int i = 0; i < 4; ++i) {
            int before = corners[(i + 3) & 3], corner = corners[i];
            if ((inside >> before & 1) || !(inside >> corner & 1))
                continue;
            /* A run of inside corners starts here: joins its entry with its exit. */
            int end = i;
            while (inside >> corners[(end + 1) & 3] & 1)
                ++end;
            next[edge_between(before, corner)] = edge_between(corners[end & 3], corners[(end + 1) & 3]);
        }
    }
}

/* Cuts the part first..last of a loop, closed by the diagonal last-first. */
static int cut_loop(const int *loop, int first, int last, uint8_t (*triangle)[3], int *count)
{
    if (last - first < 2)
        return 1;
    for (int m = first + 1; m < last; ++m) {
        int start = *count;
        if (m > first + 1 && (edge_faces(loop[first]) & edge_faces(loop[m])))
            continue;
        if (m < last - 1 && (edge_faces(loop[m]) & edge_faces(loop[last])))
            continue;
        uint8_t *t = triangle[(*count)++];
        t[0] = (uint8_t)loop[first];
        t[1] = (uint8_t)loop[m];
        t[2] = (uint8_t)loop[last];
        if (cut_loop(loop, first, m, triangle, count) && cut_loop(loop, m, last, triangle, count))
            return 1;
        *count = start;
    }
    return 0;
}

void sk_surface_build_table(sk_case_table *table)
{
    memset(table, 0, sizeof *table);
    for (int inside = 1; inside < 255; ++inside) {
        int next[12], count = 0;
        join_crossings(inside, next);
        for (int e = 0; e < 12; ++e) {
            int loop[max_loop], length = 0;
            for (int at = e; next[at] >= 0;) {
                int following = next[at];
                loop[length++] = at;
                next[at] = -1;
                at = following;
            }
            if (length >= 3)
                cut_loop(loop, 0, length - 1, table->triangle[inside], &count);
        }
        table->count[inside] = (uint8_t)count;
    }
}

/* --- Crossings of a block --- */

/* 0 where no cell of the block is crossed. */
static int load_signs(const sk_surface_grid *grid, size_t block, sk_sign_rows *signs)
{
    unsigned any = 0, all = 0x1ff;
    for (int k = 0; k <= sk_node_n; ++k)
        for (int j = 0; j <= sk_node_n; ++j) {
            signs->row[k][j] = sk_load_signs(grid, block, j, k);
            any |= signs->row[k][j];
            all &= signs->row[k][j];
        }
    return any != 0 && all != 0x1ff;
}

static void count_block(const sk_surface_grid *grid, const sk_case_table *table, size_t block, sk_block_edges *edges)
{
    sk_sign_rows signs;
    memset(edges, 0, sizeof *edges);
    edges->velocity_block = -1;
    if (!load_signs(grid, block, &signs))
        return;
    for (int k = 0; k < sk_node_n; ++k)
        for (int j = 0; j < sk_node_n; ++j) {
            for (int a = 0; a < 3; ++a)
                edges->bits[sk_node_n * a + k] |= (uint64_t)sk_crossed_edges(&signs, a, j, k) << (sk_node_n * j);
            edges->triangle_count += sk_row_triangles(&signs, table, j, k);
        }
    for (int w = 0; w < sk_edge_words; ++w) {
        edges->before[w] = (uint16_t)edges->vertex_count;
        edges->vertex_count += (uint32_t)sk_bits_of_64(edges->bits[w]);
    }
}

/* --- Vertices and triangles --- */

typedef struct mesher {
    sk_surface_mesher shared;
    const sk_surface_grid *grid;
    sk_block_edges *edges;
    float *node_velocity;
} mesher;

static void emit_vertices(const mesher *m, size_t block, const float *phi)
{
    const sk_block_edges *edges = &m->edges[block];
    size_t vertex = edges->first_vertex;
    for (int w = 0; w < sk_edge_words; ++w)
        for (uint64_t bits = edges->bits[w]; bits; bits &= bits - 1)
            sk_emit_vertex(&m->shared, block, phi, w >> 3, (w & 7) * 64 + __builtin_ctzll(bits), vertex++);
}

static void emit_triangles(const mesher *m, size_t block, const sk_sign_rows *signs)
{
    uint32_t *out = m->shared.triangles + 3 * (size_t)m->edges[block].first_triangle;
    for (int k = 0; k < sk_node_n; ++k)
        for (int j = 0; j < sk_node_n; ++j)
            out = sk_emit_row(&m->shared, block, signs, j, k, out);
}

static void emit_block(const mesher *m, size_t block)
{
    if (!m->edges[block].vertex_count && !m->edges[block].triangle_count)
        return;
    float phi[sk_vertex_n * sk_vertex_n * sk_vertex_n];
    sk_sign_rows signs;
    load_signs(m->grid, block, &signs);
    sk_surface_load(m->grid, m->grid->phi, block, sk_vertex_halo, phi);
    emit_vertices(m, block, phi);
    emit_triangles(m, block, &signs);
}

/* --- Velocities --- */

/* Marks the blocks that hold or border a crossing edge and returns their number. */
static int32_t mark_velocity_blocks(mesher *m, uint8_t *marked, uint8_t *around)
{
    static const int upper[8] = {13, 14, 16, 17, 22, 23, 25, 26};
    const sk_surface_grid *grid = m->grid;
    int32_t count = 0;
    for (size_t b = 0; b < grid->block_count; ++b)
        for (int n = 0; n < 8 && m->edges[b].vertex_count; ++n) {
            int32_t other = grid->neighbours[b][upper[n]];
            if (other >= 0 && !marked[other])
                marked[other] = 1;
        }
    /* The filter also reads the blocks around. */
    for (size_t b = 0; b < grid->block_count; ++b)
        if (marked[b]) {
            m->edges[b].velocity_block = count++;
            for (int n = 0; n < 27; ++n)
                if (grid->neighbours[b][n] >= 0)
                    around[grid->neighbours[b][n]] = 1;
        }
    return count;
}

/* Kernel means of the particles' velocities at the nodes of the marked blocks. */
static selkie_code mean_velocities(mesher *m, const float *velocity, size_t stride, uint8_t *marked, uint8_t *around,
                                   selkie_error *error)
{
    const sk_surface_grid *grid = m->grid;
    sk_surface_sums sums;
    int32_t count = mark_velocity_blocks(m, marked, around);
    m->node_velocity = sk_allocate(NULL, ((size_t)count + 1) * 3 * sk_node_count * sizeof(float));
    float(*sorted)[3] = sk_allocate(NULL, (grid->particle_count + 1) * sizeof *sorted);
    if (!m->node_velocity || !sorted) {
        sk_release(NULL, sorted);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for velocities",
                       ((double)count * 3 * sk_node_count + 3.0 * (double)grid->particle_count) * 4 / 1048576.0);
    }
    sk_surface_sort_vectors(grid, velocity, stride, sorted);
    selkie_code code = sk_surface_sum(grid, around, (const float(*)[3])sorted, &sums, error);
    sk_release(NULL, sorted);
    if (code)
        return code;
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 4)
    for (size_t b = 0; b < grid->block_count; ++b) {
        if (m->edges[b].velocity_block < 0)
            continue;
        f4 filtered[sk_node_count];
        sk_surface_filter(grid, &sums, 0, b, filtered);
        float *to = m->node_velocity + (size_t)m->edges[b].velocity_block * 3 * sk_node_count;
        for (int a = 0; a < 3; ++a)
            for (int i = 0; i < sk_node_count; ++i)
                to[a * sk_node_count + i] = sk_node_mean(filtered[i], a);
    }
    sk_surface_sums_free(&sums);
    return SELKIE_OK;
}

static selkie_code gather_velocities(mesher *m, const float *velocity, size_t stride, selkie_error *error)
{
    uint8_t *marked = sk_allocate_zeroed(NULL, 2 * (m->grid->block_count + 1));
    if (!marked)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory for %zu blocks", m->grid->block_count);
    selkie_code code = mean_velocities(m, velocity, stride, marked, marked + m->grid->block_count + 1, error);
    sk_release(NULL, marked);
    return code;
}

/* --- The whole --- */

selkie_code sk_mesh_allocate(sk_mesh *mesh, size_t vertices, size_t triangles, int with_velocity, selkie_error *error)
{
    if (vertices >= UINT32_MAX || triangles >= UINT32_MAX)
        return sk_fail(error, SELKIE_ERROR_MEMORY,
                       "surface: %zu vertices and %zu triangles do not fit into 32-bit numbers; a larger voxel_size "
                       "makes fewer",
                       vertices, triangles);
    mesh->vertex_count = vertices;
    mesh->triangle_count = triangles;
    mesh->positions = sk_allocate(NULL, (vertices + 1) * 3 * sizeof(float));
    mesh->normals = sk_allocate(NULL, (vertices + 1) * 3 * sizeof(float));
    mesh->velocities = with_velocity ? sk_allocate(NULL, (vertices + 1) * 3 * sizeof(float)) : NULL;
    mesh->triangles = sk_allocate(NULL, (triangles + 1) * 3 * sizeof(uint32_t));
    if (!mesh->positions || !mesh->normals || !mesh->triangles || (with_velocity && !mesh->velocities))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for %zu triangles",
                       ((double)vertices * 36 + (double)triangles * 12) / 1048576.0, triangles);
    return SELKIE_OK;
}

selkie_code sk_surface_triangulate(const sk_surface_grid *grid, const float *velocity, size_t velocity_stride,
                                   const sk_surface_options *options, sk_mesh *mesh, selkie_error *error)
{
    sk_case_table table;
    sk_surface_build_table(&table);

    /* Count vertices and triangles of each block. */
    sk_block_edges *edges = sk_allocate(NULL, (grid->block_count + 1) * sizeof *edges);
    if (!edges)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "surface: no memory, %.1f MiB for edges",
                       (double)grid->block_count * sizeof *edges / 1048576.0);
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
    for (size_t b = 0; b < grid->block_count; ++b)
        count_block(grid, &table, b, &edges[b]);

    /* First vertex and triangle of each block. */
    size_t vertices = 0, triangles = 0;
    for (size_t b = 0; b < grid->block_count; ++b) {
        edges[b].first_vertex = (uint32_t)vertices;
        edges[b].first_triangle = (uint32_t)triangles;
        vertices += edges[b].vertex_count;
        triangles += edges[b].triangle_count;
    }

    /* Write them. Each block writes its own part of the mesh. */
    mesher m = {.shared = {.grid = grid, .table = &table, .edges = edges}, .grid = grid, .edges = edges};
    memcpy(m.shared.low, options->low, sizeof m.shared.low);
    memcpy(m.shared.high, options->high, sizeof m.shared.high);
    selkie_code code = sk_mesh_allocate(mesh, vertices, triangles, velocity != NULL, error);
    if (!code && velocity)
        code = gather_velocities(&m, velocity, velocity_stride, error);
    m.shared.node_velocity = m.node_velocity;
    m.shared.positions = mesh->positions;
    m.shared.normals = mesh->normals;
    m.shared.velocities = mesh->velocities;
    m.shared.triangles = mesh->triangles;
    if (!code) {
#pragma omp parallel for num_threads(grid->threads) schedule(dynamic, 16)
        for (size_t b = 0; b < grid->block_count; ++b)
            emit_block(&m, b);
    }

    sk_release(NULL, m.node_velocity);
    sk_release(NULL, edges);
    return code;
}

/* --- Questions to a mesh --- */

double sk_mesh_volume(const sk_mesh *mesh)
{
    /* Sum of signed tetrahedra against the first vertex, which keeps precision far from the origin. */
    double six_volumes = 0;
    for (size_t t = 0; t < mesh->triangle_count; ++t) {
        double p[3][3];
        for (int c = 0; c < 3; ++c)
            for (int a = 0; a < 3; ++a)
                p[c][a] = (double)mesh->positions[3 * (size_t)mesh->triangles[3 * t + (size_t)c] + (size_t)a] -
                          (double)mesh->positions[a];
        six_volumes += p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) +
                       p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2]) +
                       p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0]);
    }
    return six_volumes / 6.0;
}

typedef struct mesh_edge {
    uint32_t low, high;
    int direction;
} mesh_edge;

static int compare_edges(const void *a, const void *b)
{
    const mesh_edge *left = a, *right = b;
    if (left->low != right->low)
        return left->low < right->low ? -1 : 1;
    if (left->high != right->high)
        return left->high < right->high ? -1 : 1;
    return 0;
}

size_t sk_mesh_open_edges(const sk_mesh *mesh)
{
    size_t count = 3 * mesh->triangle_count, open = 0;
    mesh_edge *edges = sk_allocate(NULL, (count + 1) * sizeof *edges);
    if (!edges)
        return SIZE_MAX;
    for (size_t i = 0; i < count; ++i) {
        uint32_t a = mesh->triangles[i], b = mesh->triangles[i % 3 == 2 ? i - 2 : i + 1];
        edges[i] = (mesh_edge){a < b ? a : b, a < b ? b : a, a < b ? 1 : -1};
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    for (size_t i = 0, j; i < count; i = j) {
        int sum = 0;
        for (j = i; j < count && !compare_edges(&edges[i], &edges[j]); ++j)
            sum += edges[j].direction;
        open += j - i != 2 || sum != 0 || edges[i].low == edges[i].high;
    }
    sk_release(NULL, edges);
    return open;
}

void sk_mesh_free(sk_mesh *mesh)
{
    sk_release(NULL, mesh->positions);
    sk_release(NULL, mesh->normals);
    sk_release(NULL, mesh->velocities);
    sk_release(NULL, mesh->triangles);
    for (int v = 0; v < mesh->value_count; ++v)
        sk_release(NULL, mesh->values[v].data);
    memset(mesh, 0, sizeof *mesh);
}

/* The mesh of a surface, for the CPU and the GPU: what happens to a block with crossings, a vertex and a triangle. The
 * second part of surface_plain.h. */
#ifndef SK_GEOM_SURFACE_MESH_PLAIN_H
#define SK_GEOM_SURFACE_MESH_PLAIN_H

#include "geom/surface_plain.h"

/* --- Crossings of a block --- */

/* Triangles of the 256 cases of a cell. */
typedef struct sk_case_table {
    uint8_t count[256];
    uint8_t triangle[256][sk_most_case_triangles][3]; /* edges of the cell: 4 axis + place of its lower corner */
} sk_case_table;

SK_KERNEL int sk_edge_lower_corner(int edge)
{
    const int axis = edge >> 2, first = edge & 1, second = edge >> 1 & 1;
    return first << (axis == 0 ? 1 : 0) | second << (axis == 2 ? 1 : 2);
}

typedef struct sk_block_edges {
    uint64_t bits[sk_edge_words];
    uint16_t before[sk_edge_words]; /* crossings in the words before */
    uint32_t first_vertex;
    uint32_t vertex_count, triangle_count;
    uint32_t first_triangle;
    int32_t velocity_block; /* -1: none needed */
} sk_block_edges;

/* Signs of the nodes 0..8 of a block, a row a number, bits along x. */
typedef struct sk_sign_rows {
    unsigned row[sk_node_n + 1][sk_node_n + 1]; /* [z][y] */
} sk_sign_rows;

SK_KERNEL unsigned sk_load_signs(const sk_surface_grid *grid, size_t block, int j, int k)
{
    const int32_t *from = grid->neighbours[block] + sk_middle + 3 * (j >> 3) + 9 * (k >> 3);
    const int row = (j & 7) + sk_node_n * (k & 7);
    const unsigned bits = from[0] >= 0 ? grid->signs[from[0]][row] : 0u;
    return bits | (from[1] >= 0 ? (grid->signs[from[1]][row] & 1u) << sk_node_n : 0u);
}

/* Bits of the cells of a row that the surface crosses. */
SK_KERNEL unsigned sk_crossed_cells(const sk_sign_rows *signs, int j, int k)
{
    const unsigned a = signs->row[k][j], b = signs->row[k][j + 1], c = signs->row[k + 1][j],
                   d = signs->row[k + 1][j + 1];
    const unsigned any = a | b | c | d, all = a & b & c & d;
    return (any | any >> 1) & ~(all & all >> 1) & 0xff;
}

/* Bits of the edges along an axis that begin at the nodes of a row and cross the surface. */
SK_KERNEL unsigned sk_crossed_edges(const sk_sign_rows *signs, int axis, int j, int k)
{
    const unsigned own = signs->row[k][j], next = axis == 0   ? own >> 1
                                                  : axis == 1 ? signs->row[k][j + 1]
                                                              : signs->row[k + 1][j];
    return (own ^ next) & 0xff;
}

/* Bits of the cell's corners inside: x, y, z. */
SK_KERNEL int sk_cell_case(const sk_sign_rows *signs, int i, int j, int k)
{
    const unsigned low = (signs->row[k][j] >> i & 3) | (signs->row[k][j + 1] >> i & 3) << 2;
    const unsigned high = (signs->row[k + 1][j] >> i & 3) | (signs->row[k + 1][j + 1] >> i & 3) << 2;
    return (int)(low | high << 4);
}

/* Triangles of the cells of a row. */
SK_KERNEL uint32_t sk_row_triangles(const sk_sign_rows *signs, const sk_case_table *table, int j, int k)
{
    uint32_t count = 0;
    for (unsigned cells = sk_crossed_cells(signs, j, k); cells; cells &= cells - 1)
        count += table->count[sk_cell_case(signs, sk_lowest_bit(cells), j, k)];
    return count;
}

SK_KERNEL uint32_t sk_vertex_number(const sk_block_edges *edges, int axis, int node)
{
    const int bit = axis * sk_node_count + node, word = bit >> 6;
    const uint64_t lower = edges->bits[word] & (((uint64_t)1 << (bit & 63)) - 1);
    return edges->first_vertex + edges->before[word] + (uint32_t)sk_bits_of_64(lower);
}

/* --- Vertices and triangles --- */

/* What the vertices and triangles of all blocks need. */
typedef struct sk_surface_mesher {
    const sk_surface_grid *grid;
    double low[3], high[3]; /* m  the container */
    const sk_case_table *table;
    const sk_block_edges *edges;
    const float *node_velocity; /* m/s [velocity blocks][3][512]; NAN where no particle is near; NULL if none */
    float *positions;           /* of the mesh, as in sk_mesh */
    float *normals;
    float *velocities;
    uint32_t *triangles;
} sk_surface_mesher;

SK_KERNEL float sk_wall_distance(const sk_surface_grid *grid, int axis, float x)
{
    const float below = grid->wall_low[axis] - x, above = x - grid->wall_high[axis];
    return below > above ? below : above;
}

SK_KERNEL void sk_vertex_gradient(const float *phi, int n, float g[3])
{
    int step = 1;
    for (int a = 0; a < 3; ++a, step *= sk_vertex_n)
        g[a] = 0.5f * (phi[n + step] - phi[n - step]);
}

/* A grid edge that leaves the liquid. */
typedef struct sk_edge_crossing {
    int node;    /*        lower node, index into a padded block */
    int axis;    /*        of the edge */
    int step;    /*        index distance to the upper node */
    float x;     /* voxels of the lower node along the axis */
    float t;     /*        place of the crossing, fraction of the edge from its lower node */
    int at_wall; /*        the container ends there, not the liquid */
} sk_edge_crossing;

/* Finds `t` and `at_wall`: the first zero, seen from the inside, of the level set or of the distance to the walls. Each
 * of the two is linear along the edge, their maximum is not. */
SK_KERNEL void sk_find_crossing(const sk_surface_grid *grid, const float *phi, sk_edge_crossing *edge)
{
    const float level[2] = {phi[edge->node], phi[edge->node + edge->step]};
    const float wall[2] = {sk_wall_distance(grid, edge->axis, edge->x),
                           sk_wall_distance(grid, edge->axis, edge->x + 1.0f)};
    const int inside = level[0] < 0.0f && wall[0] < 0.0f ? 0 : 1, outside = 1 - inside;
    float part = 1.0f;
    edge->at_wall = 0;
    if (level[outside] >= 0.0f)
        part = level[inside] / (level[inside] - level[outside]);
    if (wall[outside] >= 0.0f) {
        const float end = wall[inside] / (wall[inside] - wall[outside]);
        edge->at_wall = end <= part;
        part = fminf(part, end);
    }
    part = fminf(fmaxf(part, 0.001f), 0.999f);
    edge->t = inside ? 1.0f - part : part;
}

/* Outward: the wall's normal at a cut by the wall, else the gradient of the uncut level set, so that a pool stays flat
 * up to the wall. */
SK_KERNEL void sk_vertex_normal(const sk_surface_grid *grid, const float *phi, const sk_edge_crossing *edge,
                                float normal[3])
{
    float low[3], high[3], square = 0.0f;
    if (edge->at_wall) {
        const float middle = 0.5f * (grid->wall_low[edge->axis] + grid->wall_high[edge->axis]);
        for (int a = 0; a < 3; ++a)
            normal[a] = a != edge->axis ? 0.0f : edge->x < middle ? -1.0f : 1.0f;
        return;
    }
    sk_vertex_gradient(phi, edge->node, low);
    sk_vertex_gradient(phi, edge->node + edge->step, high);
    for (int a = 0; a < 3; ++a) {
        normal[a] = low[a] + edge->t * (high[a] - low[a]);
        square += normal[a] * normal[a];
    }
    const float inverse = square > 1e-12f ? 1.0f / sqrtf(square) : 0.0f;
    for (int a = 0; a < 3; ++a)
        normal[a] = inverse > 0.0f ? normal[a] * inverse : (float)(a == 1);
}

SK_KERNEL const float *sk_node_velocity(const sk_surface_mesher *m, size_t block, const int node[3])
{
    int n = sk_middle, local = 0;
    for (int a = 2; a >= 0; --a) {
        local = local * sk_node_n + (node[a] & 7);
        if (node[a] >= sk_node_n)
            n += a == 0 ? 1 : a == 1 ? 3 : 9;
    }
    const int32_t from = m->grid->neighbours[block][n];
    if (from < 0 || m->edges[from].velocity_block < 0)
        return NULL;
    const float *v = m->node_velocity + (size_t)m->edges[from].velocity_block * 3 * sk_node_count + local;
    return v[0] != v[0] ? NULL : v;
}

SK_KERNEL void sk_vertex_velocity(const sk_surface_mesher *m, size_t block, const int node[3], int axis, float t,
                                  float velocity[3])
{
    const int far_node[3] = {node[0] + (axis == 0), node[1] + (axis == 1), node[2] + (axis == 2)};
    const float *low = sk_node_velocity(m, block, node), *high = sk_node_velocity(m, block, far_node);
    if (!low)
        low = high;
    if (!high)
        high = low;
    for (int a = 0; a < 3; ++a)
        velocity[a] = low ? low[a * sk_node_count] + t * (high[a * sk_node_count] - low[a * sk_node_count]) : 0.0f;
}

/* A mean of particles' values at a node, from its sums. */
SK_KERNEL float sk_node_mean(f4 sum, int value)
{
    return sum[0] > 1e-7f ? sum[value + 1] / sum[0] : NAN;
}

/* Writes a vertex; `phi` is the level set of its block with sk_vertex_halo nodes around it. */
SK_KERNEL void sk_emit_vertex(const sk_surface_mesher *m, size_t block, const float *phi, int axis, int node,
                              size_t vertex)
{
    const sk_surface_grid *grid = m->grid;
    const int place[3] = {node & 7, node >> 3 & 7, node >> 6};
    sk_edge_crossing edge;
    edge.node = place[0] + sk_vertex_halo +
                sk_vertex_n * (place[1] + sk_vertex_halo + sk_vertex_n * (place[2] + sk_vertex_halo));
    edge.axis = axis;
    edge.step = axis == 0 ? 1 : axis == 1 ? sk_vertex_n : sk_vertex_n * sk_vertex_n;
    edge.x = (float)(grid->coordinates[block][axis] * sk_node_n + place[axis]);
    sk_find_crossing(grid, phi, &edge);

    /* Position in metres, then normal and velocity. */
    for (int b = 0; b < 3; ++b) {
        const float x = (float)(grid->coordinates[block][b] * sk_node_n + place[b]) + (b == axis ? edge.t : 0.0f);
        double metres = grid->origin[b] + (double)x * grid->voxel[b];
        metres = metres > m->low[b] ? metres : m->low[b];
        metres = metres < m->high[b] ? metres : m->high[b];
        m->positions[3 * vertex + (size_t)b] = (float)metres;
    }
    sk_vertex_normal(grid, phi, &edge, m->normals + 3 * vertex);
    if (m->velocities)
        sk_vertex_velocity(m, block, place, axis, edge.t, m->velocities + 3 * vertex);
}

SK_KERNEL uint32_t sk_cell_vertex(const sk_surface_mesher *m, size_t block, const int cell[3], int edge)
{
    const int corner = sk_edge_lower_corner(edge);
    int n = sk_middle, local = 0;
    for (int a = 2; a >= 0; --a) {
        const int place = cell[a] + (corner >> a & 1);
        local = local * sk_node_n + (place & 7);
        if (place >= sk_node_n)
            n += a == 0 ? 1 : a == 1 ? 3 : 9;
    }
    const int32_t owner = m->grid->neighbours[block][n];
    /* Upper blocks that do not exist are air: an edge there is not crossed. */
    return owner < 0 ? 0 : sk_vertex_number(&m->edges[owner], edge >> 2, local);
}

/* Writes the triangles of the cells of a row from `out` on; returns where the next row's begin. */
SK_KERNEL uint32_t *sk_emit_row(const sk_surface_mesher *m, size_t block, const sk_sign_rows *signs, int j, int k,
                                uint32_t *out)
{
    for (unsigned cells = sk_crossed_cells(signs, j, k); cells; cells &= cells - 1) {
        const int cell[3] = {sk_lowest_bit(cells), j, k}, inside = sk_cell_case(signs, cell[0], j, k);
        for (int t = 0; t < m->table->count[inside]; ++t)
            for (int c = 0; c < 3; ++c)
                *out++ = sk_cell_vertex(m, block, cell, m->table->triangle[inside][t][c]);
    }
    return out;
}

/* --- Values of particles at vertices --- */

/* Index of the block at these coordinates, -1 = none. Blocks are sorted by z, y, x. */
SK_KERNEL ptrdiff_t sk_surface_find_block(const sk_surface_grid *grid, const int at[3])
{
    size_t low = 0, high = grid->block_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int32_t *c = grid->coordinates[middle];
        const int before = c[2] != at[2] ? c[2] < at[2] : c[1] != at[1] ? c[1] < at[1] : c[0] < at[0];
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == grid->block_count || grid->coordinates[low][0] != at[0] || grid->coordinates[low][1] != at[1] ||
        grid->coordinates[low][2] != at[2])
        return -1;
    return (ptrdiff_t)low;
}

/* Means at a place (voxels) of the sums at the nodes of all blocks; returns 0 where no particle is near. */
SK_KERNEL int sk_surface_sample(const sk_surface_grid *grid, const f4 *sums, const float place[3], float means[3])
{
    int base[3];
    float part[3];
    f4 sum = sk_f4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int a = 0; a < 3; ++a) {
        base[a] = (int)floorf(place[a]);
        part[a] = place[a] - (float)base[a];
    }
    for (int c = 0; c < 8; ++c) {
        const int node[3] = {base[0] + (c & 1), base[1] + (c >> 1 & 1), base[2] + (c >> 2)};
        const int block[3] = {node[0] >> sk_node_log, node[1] >> sk_node_log, node[2] >> sk_node_log};
        const ptrdiff_t b = sk_surface_find_block(grid, block);
        const float weight = (c & 1 ? part[0] : 1.0f - part[0]) * (c >> 1 & 1 ? part[1] : 1.0f - part[1]) *
                             (c >> 2 ? part[2] : 1.0f - part[2]);
        if (b >= 0)
            sum += weight *
                   sums[(size_t)b * sk_node_count + (size_t)((node[0] & 7) + 8 * (node[1] & 7) + 64 * (node[2] & 7))];
    }
    if (!(sum[0] > 1e-6f))
        return 0;
    for (int a = 0; a < 3; ++a)
        means[a] = sum[a + 1] / sum[0];
    return 1;
}

/* From a position (m) to voxels. */
SK_KERNEL void sk_vertex_place(const sk_surface_grid *grid, const float position[3], float place[3])
{
    for (int a = 0; a < 3; ++a)
        place[a] = (float)(((double)position[a] - grid->origin[a]) / grid->voxel[a]);
}

/* Curl of the velocity (1/s), by differences over two voxels; one-sided beside the air. */
SK_KERNEL void sk_surface_curl(const sk_surface_grid *grid, const f4 *sums, const float place[3], float result[3])
{
    float slopes[3][3], middle[3];
    result[0] = result[1] = result[2] = 0.0f;
    if (!sk_surface_sample(grid, sums, place, middle))
        return;
    for (int a = 0; a < 3; ++a) {
        float ends[2][3], way = 0.0f;
        for (int side = 0; side < 2; ++side) {
            float at[3] = {place[0], place[1], place[2]};
            at[a] += side ? 1.0f : -1.0f;
            const int found = sk_surface_sample(grid, sums, at, ends[side]);
            way += found ? 1.0f : 0.0f;
            for (int k = 0; k < 3 && !found; ++k)
                ends[side][k] = middle[k];
        }
        for (int k = 0; k < 3; ++k)
            slopes[a][k] = way > 0.0f ? (ends[1][k] - ends[0][k]) / (way * (float)grid->voxel[a]) : 0.0f;
    }
    for (int k = 0; k < 3; ++k)
        result[k] = slopes[(k + 1) % 3][(k + 2) % 3] - slopes[(k + 2) % 3][(k + 1) % 3];
}

/* A mean as it is shown: that of whole numbers is rounded. */
SK_KERNEL float sk_shown_mean(float mean, int is_whole)
{
    return is_whole ? floorf(mean + 0.5f) : mean;
}

/* --- What the host prepares --- */

/* The filter of the smoothing: its taps, how often it is applied (0 = no smoothing), and what calm water bears. */
typedef struct sk_surface_blur {
    float taps[2 * sk_most_halo + 1];
    int rounds;
    float bound; /* voxels */
} sk_surface_blur;

#ifdef __cplusplus
extern "C" {
#endif
/* Lengths and kernel for these options; the grid is empty yet (surface.c). */
selkie_code sk_surface_grid_init(sk_surface_grid *grid, const sk_surface_options *options, size_t particle_count,
                                 selkie_error *error);
sk_surface_blur sk_surface_blur_of(const sk_surface_grid *grid, double smoothing);
void sk_surface_build_table(sk_case_table *table);
/* Arrays of a mesh. */
selkie_code sk_mesh_allocate(sk_mesh *mesh, size_t vertices, size_t triangles, int with_velocity, selkie_error *error);
/* A further value of the vertices; NULL after a failure. */
float *sk_mesh_add_value(sk_mesh *mesh, const char *name, selkie_error *error, selkie_code *code);
/* Place and scale of a volume, and arrays of its blocks: coordinates, surface and velocity if that is wanted. Returns
 * the scale (m) through `metre`. */
selkie_code sk_volume_allocate(sk_volume *volume, const sk_surface_grid *grid, int with_velocity, float *metre,
                               selkie_error *error);
/* A further value of its nodes; NULL after a failure. */
float *sk_volume_add_value(sk_volume *volume, const char *name, selkie_error *error);
/* Names of the components of the vorticity. */
extern const char *const sk_vorticity_names[3];
#ifdef __cplusplus
}
#endif

#endif

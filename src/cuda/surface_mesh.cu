/* Surfaces of particles on the GPU: from the level set to triangles, as geom/surface_mesh.c. */
#include "cuda/surface_parts.h"

/* --- crossings --- */

SK_DEVICE void load_signs(const sk_surface_grid *grid, size_t block, sk_sign_rows *signs)
{
    enum { N = sk_node_n + 1 };
    for (int t = (int)threadIdx.x; t < N * N; t += (int)blockDim.x)
        signs->row[t / N][t % N] = sk_load_signs(grid, block, t % N, t / N);
    __syncthreads();
}

/* Counts vertices and triangles of each block. */
static __global__ void count_crossings(const __grid_constant__ sk_surface_grid grid, const sk_case_table *table,
                                       sk_block_edges *all, uint32_t *vertices, uint32_t *triangles)
{
    __shared__ sk_sign_rows signs;
    __shared__ unsigned long long words[sk_edge_words];
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    const int t = (int)threadIdx.x;
    sk_block_edges *edges = all + block;
    load_signs(&grid, block, &signs);

    int rows = 0;
    for (int row = t; row < sk_sub_count; row += (int)blockDim.x)
        rows += (int)sk_row_triangles(&signs, table, row & 7, row >> 3);
    for (int w = t; w < sk_edge_words; w += (int)blockDim.x) {
        uint64_t bits = 0;
        for (int j = 0; j < sk_node_n; ++j)
            bits |= (uint64_t)sk_crossed_edges(&signs, w >> 3, j, w & 7) << (sk_node_n * j);
        words[w] = edges->bits[w] = bits;
    }
    rows = sk_cuda_sum(rows); /* waits for the words too */
    for (int w = t; w <= sk_edge_words; w += (int)blockDim.x) {
        int before = 0;
        for (int n = 0; n < w; ++n)
            before += sk_bits_of_64(words[n]);
        if (w < sk_edge_words)
            edges->before[w] = (uint16_t)before;
        else
            vertices[block] = edges->vertex_count = (uint32_t)before;
    }
    if (t == 0)
        triangles[block] = edges->triangle_count = (uint32_t)rows;
}

/* First vertex and triangle of each block, and its number among those with velocities. */
static __global__ void write_firsts(size_t count, const int32_t *vertex, const int32_t *triangle,
                                    const int32_t *velocity, sk_block_edges *edges)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(block, count)
    {
        edges[block].first_vertex = (uint32_t)vertex[block];
        edges[block].first_triangle = (uint32_t)triangle[block];
        edges[block].velocity_block = velocity[block];
    }
}

/* Blocks that hold or border a crossing edge; marked by all that write there alike. */
static __global__ void mark_velocities(const __grid_constant__ sk_surface_grid grid, const uint32_t *vertices,
                                       uint32_t *marked)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(block, grid.block_count)
    for (int n = 0; n < 8 && vertices[block]; ++n) {
        const int32_t other = grid.neighbours[block][sk_middle + (n & 1) + 3 * (n >> 1 & 1) + 9 * (n >> 2)];
        if (other >= 0)
            marked[other] = 1;
    }
}

/* The filter also reads the blocks around. */
static __global__ void mark_around(const __grid_constant__ sk_surface_grid grid, const uint32_t *marked,
                                   uint32_t *around)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(block, grid.block_count)
    {
        uint32_t any = 0;
        for (int n = 0; n < 27; ++n) {
            const int32_t other = grid.neighbours[block][n];
            any |= other >= 0 ? marked[other] : 0u;
        }
        around[block] = any;
    }
}

/* --- vertices and triangles --- */

static __global__ void emit(const __grid_constant__ sk_surface_grid grid,
                            const __grid_constant__ sk_surface_mesher given)
{
    enum { N = sk_vertex_n };
    __shared__ float phi[N * N * N];
    __shared__ sk_sign_rows signs;
    SK_CUDA_WAIT();
    const size_t block = blockIdx.x;
    const sk_block_edges *edges = given.edges + block;
    sk_surface_mesher m = given;
    m.grid = &grid;
    if (!edges->vertex_count && !edges->triangle_count)
        return;
    sk_cuda_load_field<sk_vertex_halo>(&grid, grid.phi, block, phi);
    load_signs(&grid, block, &signs);

    for (int e = (int)threadIdx.x; e < 3 * sk_node_count; e += (int)blockDim.x)
        if (edges->bits[e >> 6] >> (e & 63) & 1) {
            const int axis = e / sk_node_count, node = e % sk_node_count;
            sk_emit_vertex(&m, block, phi, axis, node, sk_vertex_number(edges, axis, node));
        }

    /* Rows follow each other. */
    uint32_t *out = m.triangles + 3 * (size_t)edges->first_triangle;
    for (int first = 0; first < sk_sub_count; first += (int)blockDim.x) {
        const int row = first + (int)threadIdx.x;
        int all;
        const int count = row < sk_sub_count ? (int)sk_row_triangles(&signs, m.table, row & 7, row >> 3) : 0;
        const int before = sk_cuda_scan(count, &all);
        if (count)
            sk_emit_row(&m, block, &signs, row & 7, row >> 3, out + 3 * before);
        out += 3 * all;
    }
}

/* --- the whole --- */

/* Counts, and what the vertices need of the velocities. The flags of three kinds lie behind the edges. */
static selkie_code count(sk_cuda_mesher *m, selkie_error *error)
{
    const size_t blocks = m->grid.block_count;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_EDGES, blocks * (sizeof *m->edges + 6 * sizeof(uint32_t)), &m->edges, error));
    uint32_t *vertices = (uint32_t *)(void *)(m->edges + blocks), *triangles = vertices + blocks,
             *marked = triangles + blocks, *around = marked + blocks;
    int32_t *first_vertex = (int32_t *)(void *)(around + blocks), *first_triangle = first_vertex + blocks;
    SK_LAUNCH(&m->cuda, count_crossings, (int)blocks, SK_SURFACE_THREADS, m->grid, m->table, m->edges, vertices,
              triangles);
    sk_cuda_number(m, vertices, blocks, 0, first_vertex, SK_TOTAL_VERTICES);
    sk_cuda_number(m, triangles, blocks, 0, first_triangle, SK_TOTAL_TRIANGLES);
    SK_CUDA_TRY(cudaMemsetAsync(marked, 0, blocks * sizeof *marked, m->cuda.stream), "a surface", error);
    if (m->cloud.velocity)
        SK_LAUNCH_SIMPLE(&m->cuda, mark_velocities, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, vertices, marked);
    SK_LAUNCH_SIMPLE(&m->cuda, mark_around, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, marked, around);
    sk_cuda_number(m, marked, blocks, 1, m->block_index, SK_TOTAL_VELOCITY_BLOCKS);
    sk_cuda_number(m, around, blocks, 1, m->sum_index, SK_TOTAL_VELOCITY_SUMS);
    SK_LAUNCH_SIMPLE(&m->cuda, write_firsts, SK_SURFACE_WIDE, SK_SURFACE_THREADS, blocks, first_vertex, first_triangle,
                     m->block_index, m->edges);
    return sk_cuda_read_totals(m, error);
}

static selkie_code take_means(sk_cuda_mesher *m, const float **means, selkie_error *error)
{
    float *to;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_MEANS,
                           (size_t)m->counted[SK_TOTAL_VELOCITY_BLOCKS] * 3 * sk_node_count * sizeof *to, &to, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_SUMS,
                           (size_t)m->counted[SK_TOTAL_VELOCITY_SUMS] * sk_node_count * sizeof *m->sums, &m->sums,
                           error));
    const sk_cuda_values velocity = sk_cuda_velocity(&m->cloud);
    sk_cuda_surface_sum(m, &velocity);
    sk_cuda_surface_mean(m, to);
    *means = to;
    return SELKIE_OK;
}

/* Copies the mesh to the host. */
static selkie_code fetch(sk_cuda_mesher *m, const sk_surface_mesher *there, sk_mesh *mesh, selkie_error *error)
{
    const size_t vertices = 3 * mesh->vertex_count * sizeof(float),
                 triangles = 3 * mesh->triangle_count * sizeof(uint32_t);
    const struct {
        void *to;
        const void *from;
        size_t bytes;
    } copies[4] = {{mesh->positions, there->positions, vertices},
                   {mesh->normals, there->normals, vertices},
                   {mesh->velocities, there->velocities, vertices},
                   {mesh->triangles, there->triangles, triangles}};
    for (int n = 0; n < 4; ++n)
        if (copies[n].to && copies[n].bytes)
            SK_CUDA_TRY(
                cudaMemcpyAsync(copies[n].to, copies[n].from, copies[n].bytes, cudaMemcpyDeviceToHost, m->cuda.stream),
                "a surface", error);
    SK_CUDA_TRY(cudaStreamSynchronize(m->cuda.stream), "a surface", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_surface_mesh(sk_cuda_mesher *m, const sk_surface_options *options, sk_mesh *mesh,
                                 selkie_error *error)
{
    sk_surface_mesher to;
    memset(&to, 0, sizeof to);
    SK_TRY(count(m, error));
    SK_TRY(sk_mesh_allocate(mesh, (size_t)m->counted[SK_TOTAL_VERTICES], (size_t)m->counted[SK_TOTAL_TRIANGLES],
                            m->cloud.velocity != NULL, error));
    if (m->cloud.velocity)
        SK_TRY(take_means(m, &to.node_velocity, error));

    const size_t numbers = 3 * mesh->vertex_count;
    float *memory;
    SK_TRY(
        sk_cuda_reserve(m, SK_ROOM_MESH, (3 * numbers + 3 * mesh->triangle_count + 1) * sizeof(float), &memory, error));
    to.positions = memory;
    to.normals = memory + numbers;
    to.velocities = m->cloud.velocity ? memory + 2 * numbers : NULL;
    to.triangles = (uint32_t *)(void *)(memory + 3 * numbers);
    to.table = m->table;
    to.edges = m->edges;
    memcpy(to.low, options->low, sizeof to.low);
    memcpy(to.high, options->high, sizeof to.high);
    SK_LAUNCH(&m->cuda, emit, (int)m->grid.block_count, SK_SURFACE_THREADS, m->grid, to);
    return fetch(m, &to, mesh, error);
}

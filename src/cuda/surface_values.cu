/* Surfaces of particles on the GPU: values of the particles at vertices, and level sets as files, as
 * geom/surface_values.c and surface_volume.c. */
#include "cuda/surface_parts.h"

/* --- values at the vertices --- */

/* Three values of a vertex lie beside each other. */
static __global__ void sample_means(const __grid_constant__ sk_surface_grid grid, const f4 *sums, size_t count,
                                    const float *positions, int is_curl, float *to)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(i, count)
    {
        float place[3], values[3] = {0.0f, 0.0f, 0.0f};
        sk_vertex_place(&grid, positions + 3 * i, place);
        if (is_curl)
            sk_surface_curl(&grid, sums, place, values);
        else
            sk_surface_sample(&grid, sums, place, values);
        for (int v = 0; v < 3; ++v)
            to[(size_t)v * count + i] = values[v];
    }
}

/* Sums of all blocks over all particles: those deep inside count too. */
static selkie_code prepare_sums(sk_cuda_mesher *m, f4 **filtered, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemsetAsync(m->grid.deep, 0, m->grid.block_count * sizeof *m->grid.deep, m->cuda.stream),
                "a surface", error);
    SK_TRY(sk_cuda_surface_room(m, error));
    return sk_cuda_reserve(m, SK_ROOM_MEANS, m->grid.block_count * sk_node_count * sizeof(f4), filtered, error);
}

/* Where values are sampled on the device. */
typedef struct sampling {
    const float *positions; /* [count][3] of the vertices */
    float *to;              /* [3][count] */
    f4 *filtered;           /* [blocks][512] */
    sk_mesh *mesh;
} sampling;

/* Grid, vertices and room. */
static selkie_code begin_sampling(sk_cuda_mesher *m, sampling *s, selkie_error *error)
{
    const size_t numbers = 3 * s->mesh->vertex_count;
    float *memory;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_MESH, 2 * numbers * sizeof(float), &memory, error));
    s->positions = memory;
    s->to = memory + numbers;
    if (numbers)
        SK_CUDA_TRY(cudaMemcpyAsync(memory, s->mesh->positions, numbers * sizeof(float), cudaMemcpyHostToDevice,
                                    m->cuda.stream),
                    "a surface", error);
    SK_TRY(sk_cuda_surface_bin(m, error));
    if (!m->grid.block_count)
        return SELKIE_OK;
    return prepare_sums(m, &s->filtered, error);
}

/* Samples values, or the curl of the velocity, into new arrays of the mesh. */
static selkie_code sample_values(sk_cuda_mesher *m, const sampling *s, const sk_cuda_values *values,
                                 const char *const names[3], int is_curl, selkie_error *error)
{
    const size_t count = s->mesh->vertex_count;
    selkie_code code = SELKIE_OK;
    if (m->grid.block_count) {
        sk_cuda_surface_sum(m, values);
        sk_cuda_surface_filter(m, s->filtered);
        SK_LAUNCH_SIMPLE(&m->cuda, sample_means, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, s->filtered, count,
                         s->positions, is_curl, s->to);
        SK_CUDA_TRY(cudaGetLastError(), "a surface", error);
    }
    for (int v = 0; v < values->count && !code; ++v) {
        float *data = sk_mesh_add_value(s->mesh, names[v], error, &code);
        if (code)
            return code;
        memset(data, 0, count * sizeof *data);
        if (!m->grid.block_count || !count)
            continue;
        SK_CUDA_TRY(cudaMemcpyAsync(data, s->to + (size_t)v * count, count * sizeof *data, cudaMemcpyDeviceToHost,
                                    m->cuda.stream),
                    "a surface", error);
        SK_CUDA_TRY(cudaStreamSynchronize(m->cuda.stream), "a surface", error);
        for (size_t i = 0; i < count && values->is_whole[v]; ++i)
            data[i] = sk_shown_mean(data[i], 1);
    }
    return code;
}

/* Up to three values of the caller, to the device. */
static selkie_code send_values(sk_cuda_mesher *m, int count, const sk_surface_value *given, sk_cuda_values *values,
                               const char *names[3], selkie_error *error)
{
    memset(values, 0, sizeof *values);
    values->count = count;
    for (int v = 0; v < count; ++v) {
        char *to;
        const size_t bytes = m->cloud.count ? (m->cloud.count - 1) * given[v].stride + 4 : 0;
        SK_TRY(sk_cuda_reserve(m, (sk_cuda_room)(SK_ROOM_VALUES + v), bytes, &to, error));
        if (bytes)
            SK_CUDA_TRY(cudaMemcpyAsync(to, given[v].data, bytes, cudaMemcpyHostToDevice, m->cuda.stream), "a surface",
                        error);
        values->data[v] = to;
        values->stride[v] = given[v].stride;
        values->is_whole[v] = given[v].is_whole;
        names[v] = given[v].name;
    }
    return SELKIE_OK;
}

selkie_code sk_cuda_surface_add_values(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                       const sk_surface_options *options, int count, const sk_surface_value *values,
                                       sk_mesh *mesh, selkie_error *error)
{
    sampling s;
    memset(&s, 0, sizeof s);
    s.mesh = mesh;
    SK_TRY(sk_cuda_surface_begin(m, particles, options, error));
    SK_TRY(begin_sampling(m, &s, error));
    for (int v = 0; v < count; v += 3) {
        sk_cuda_values three;
        const char *names[3];
        SK_TRY(send_values(m, count - v < 3 ? count - v : 3, values + v, &three, names, error));
        SK_TRY(sample_values(m, &s, &three, names, 0, error));
    }
    if (!particles->velocity)
        return SELKIE_OK;
    const sk_cuda_values velocity = sk_cuda_velocity(&m->cloud);
    return sample_values(m, &s, &velocity, sk_vorticity_names, 1, error);
}

/* --- level sets --- */

static __global__ void close_levels(const __grid_constant__ sk_surface_grid grid, float metre, float *to)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, grid.block_count * sk_node_count)
    to[n] = sk_closed_level(&grid, n / sk_node_count, (int)(n % sk_node_count), grid.phi[n], metre);
}

/* Means of value v of the nodes into every `step`th number. */
static __global__ void write_means(const f4 *sums, size_t nodes, int v, int is_whole, size_t step, float *to)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(n, nodes)
    to[n * step] = sk_volume_mean(sums[n], v, is_whole);
}

static selkie_code fetch_array(sk_cuda_mesher *m, void *to, const void *from, size_t bytes, selkie_error *error)
{
    SK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, m->cuda.stream), "a surface", error);
    SK_CUDA_TRY(cudaStreamSynchronize(m->cuda.stream), "a surface", error);
    return SELKIE_OK;
}

/* Means of the particles' values at all nodes: velocity, then the others. */
static selkie_code fill_volume(sk_cuda_mesher *m, int count, const sk_surface_value *values, sk_volume *volume,
                               selkie_error *error)
{
    const size_t nodes = volume->block_count * sk_node_count;
    float *to;
    f4 *filtered;
    SK_TRY(prepare_sums(m, &filtered, error));
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_MESH, 3 * nodes * sizeof *to, &to, error));
    if (m->cloud.velocity) {
        const sk_cuda_values velocity = sk_cuda_velocity(&m->cloud);
        sk_cuda_surface_sum(m, &velocity);
        sk_cuda_surface_filter(m, filtered);
        for (int a = 0; a < 3; ++a)
            SK_LAUNCH_SIMPLE(&m->cuda, write_means, SK_SURFACE_WIDE, SK_SURFACE_THREADS, filtered, nodes, a, 0,
                             (size_t)3, to + a);
        SK_TRY(fetch_array(m, volume->velocity, to, 3 * nodes * sizeof *to, error));
    }
    for (int first = 0; first < count && first < SK_MESH_MOST_VALUES; first += 3) {
        const int most = count < SK_MESH_MOST_VALUES ? count : SK_MESH_MOST_VALUES;
        sk_cuda_values three;
        const char *names[3];
        SK_TRY(send_values(m, most - first < 3 ? most - first : 3, values + first, &three, names, error));
        sk_cuda_surface_sum(m, &three);
        sk_cuda_surface_filter(m, filtered);
        for (int v = 0; v < three.count; ++v) {
            float *data = sk_volume_add_value(volume, names[v], error);
            if (!data)
                return SELKIE_ERROR_MEMORY;
            SK_LAUNCH_SIMPLE(&m->cuda, write_means, SK_SURFACE_WIDE, SK_SURFACE_THREADS, filtered, nodes, v,
                             three.is_whole[v], (size_t)1, to);
            SK_TRY(fetch_array(m, data, to, nodes * sizeof *to, error));
        }
    }
    return SELKIE_OK;
}

static selkie_code make_volume(sk_cuda_mesher *m, double smoothing, int count, const sk_surface_value *values,
                               sk_volume *volume, selkie_error *error)
{
    float metre;
    SK_TRY(sk_cuda_surface_bin(m, error));
    SK_TRY(sk_volume_allocate(volume, &m->grid, m->cloud.velocity != NULL, &metre, error));
    for (int v = 0; v < count && v < SK_MESH_MOST_VALUES && !m->grid.block_count; ++v)
        if (!sk_volume_add_value(volume, values[v].name, error))
            return SELKIE_ERROR_MEMORY;
    if (!m->grid.block_count)
        return SELKIE_OK;
    SK_TRY(sk_cuda_surface_level(m, smoothing, error));
    SK_LAUNCH_SIMPLE(&m->cuda, close_levels, SK_SURFACE_WIDE, SK_SURFACE_THREADS, m->grid, metre, m->grid.other);
    SK_TRY(fetch_array(m, volume->coordinates, m->grid.coordinates, volume->block_count * sizeof *volume->coordinates,
                       error));
    SK_TRY(fetch_array(m, volume->surface, m->grid.other, volume->block_count * sk_node_count * sizeof(float), error));
    return fill_volume(m, count, values, volume, error);
}

selkie_code sk_cuda_surface_volume(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                   const sk_surface_options *options, int count, const sk_surface_value *values,
                                   sk_volume *volume, selkie_error *error)
{
    memset(volume, 0, sizeof *volume);
    selkie_code code = sk_cuda_surface_begin(m, particles, options, error);
    if (!code)
        code = make_volume(m, options->smoothing, count, values, volume, error);
    if (code)
        sk_volume_free(volume);
    return code;
}

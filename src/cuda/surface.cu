/* Surfaces of particles on the GPU: memory, sums of counts, and the order of the steps. */
#include "cuda/surface_parts.h"

/* --- memory --- */

selkie_code sk_cuda_reserve(sk_cuda_mesher *m, sk_cuda_room room, size_t bytes, void *address, selkie_error *error)
{
    bytes = bytes < 256 ? 256 : bytes;
    if (m->rooms[room].bytes < bytes) {
        const size_t wanted = bytes + bytes / 4;
        if (m->rooms[room].memory) {
            cudaStreamSynchronize(m->cuda.stream);
            cudaFree(m->rooms[room].memory);
            m->bytes -= m->rooms[room].bytes;
        }
        m->rooms[room].memory = NULL;
        m->rooms[room].bytes = 0;
        SK_CUDA_TRY(cudaMalloc(&m->rooms[room].memory, wanted), "a surface", error);
        m->rooms[room].bytes = wanted;
        m->bytes += wanted;
    }
    memcpy(address, &m->rooms[room].memory, sizeof m->rooms[room].memory);
    return SELKIE_OK;
}

selkie_code sk_cuda_mesher_create(sk_cuda_mesher **result, selkie_error *error)
{
    sk_cuda_info info;
    sk_case_table table;
    *result = NULL;
    SK_TRY(sk_cuda_find(&info, error));
    sk_cuda_mesher *m = (sk_cuda_mesher *)calloc(1, sizeof *m);
    if (!m)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory");
    *result = m;
#ifndef SK_CUDA_EMULATED
    SK_CUDA_TRY(cudaSetDevice(0), "the choice of the device", error);
    SK_CUDA_TRY(cudaStreamCreateWithFlags(&m->cuda.stream, cudaStreamNonBlocking), "a stream", error);
#endif
    sk_surface_build_table(&table);
    SK_CUDA_TRY(cudaMalloc((void **)&m->table, sizeof table), "a surface", error);
    SK_CUDA_TRY(cudaMalloc((void **)&m->totals, SK_TOTALS * sizeof *m->totals), "a surface", error);
    SK_CUDA_TRY(cudaMalloc((void **)&m->partial, SK_SURFACE_CHUNKS * sizeof *m->partial), "a surface", error);
    SK_CUDA_TRY(cudaMemsetAsync(m->totals, 0, SK_TOTALS * sizeof *m->totals, m->cuda.stream), "a surface", error);
    SK_CUDA_TRY(cudaMemcpyAsync(m->table, &table, sizeof table, cudaMemcpyHostToDevice, m->cuda.stream), "a surface",
                error);
    SK_CUDA_TRY(cudaStreamSynchronize(m->cuda.stream), "a surface", error);
    return SELKIE_OK;
}

void sk_cuda_mesher_destroy(sk_cuda_mesher *m)
{
    if (!m)
        return;
    for (int room = 0; room < SK_ROOMS; ++room)
        if (m->rooms[room].memory)
            cudaFree(m->rooms[room].memory);
    if (m->table)
        cudaFree(m->table);
    if (m->totals)
        cudaFree(m->totals);
    if (m->partial)
        cudaFree(m->partial);
    sk_cuda_end_profile(&m->cuda);
#ifndef SK_CUDA_EMULATED
    if (m->cuda.stream)
        cudaStreamDestroy(m->cuda.stream);
#endif
    free(m);
}

size_t sk_cuda_mesher_bytes(const sk_cuda_mesher *m)
{
    return m->bytes;
}

sk_cuda *sk_cuda_mesher_launches(sk_cuda_mesher *m)
{
    return &m->cuda;
}

/* --- sums of counts --- */

static __global__ void add_chunks(const uint32_t *counts, size_t n, size_t chunk, unsigned long long *partial)
{
    SK_CUDA_WAIT();
    const size_t first = blockIdx.x * chunk, last = first + chunk < n ? first + chunk : n;
    unsigned long long sum = 0;
    for (size_t i = first + threadIdx.x; i < last; i += blockDim.x)
        sum += counts[i];
    sum = sk_cuda_sum(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

static __global__ void number_chunks(const uint32_t *counts, size_t n, size_t chunk, const unsigned long long *partial,
                                     int absent, int32_t *numbers, unsigned long long *total)
{
    SK_CUDA_WAIT();
    unsigned long long before = 0;
    for (size_t i = threadIdx.x; i < blockIdx.x; i += blockDim.x)
        before += partial[i];
    before = sk_cuda_sum(before);
    const size_t first = blockIdx.x * chunk, last = first + chunk < n ? first + chunk : n;
    for (size_t i = first; i < last; i += blockDim.x) {
        const size_t own = i + threadIdx.x;
        const int count = own < last ? (int)counts[own] : 0;
        int all;
        const int place = sk_cuda_scan(count, &all);
        if (own < last)
            numbers[own] = absent && !count ? -1 : (int32_t)(before + (unsigned long long)place);
        before += (unsigned long long)all;
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
        *total = before;
}

void sk_cuda_number(sk_cuda_mesher *m, const uint32_t *counts, size_t n, int absent, int32_t *numbers,
                    sk_cuda_total total)
{
    const int chunks = n < 4096 ? 1 : SK_SURFACE_CHUNKS;
    const size_t chunk = (n + (size_t)chunks - 1) / (size_t)chunks;
    const int threads = SK_CUDA_THREADS;
    SK_LAUNCH(&m->cuda, add_chunks, chunks, threads, counts, n, chunk, m->partial);
    SK_LAUNCH(&m->cuda, number_chunks, chunks, threads, counts, n, chunk, m->partial, absent, numbers,
              m->totals + total);
}

selkie_code sk_cuda_read_totals(sk_cuda_mesher *m, selkie_error *error)
{
    SK_CUDA_TRY(cudaGetLastError(), "a surface", error);
    SK_CUDA_TRY(cudaMemcpyAsync(m->counted, m->totals, sizeof m->counted, cudaMemcpyDeviceToHost, m->cuda.stream),
                "a surface", error);
    SK_CUDA_TRY(cudaStreamSynchronize(m->cuda.stream), "a surface", error);
    return SELKIE_OK;
}

/* --- the whole --- */

static selkie_code extract(sk_cuda_mesher *m, const sk_surface_options *options, sk_mesh *mesh, selkie_error *error)
{
    SK_TRY(sk_cuda_surface_bin(m, error));
    if (!m->grid.block_count)
        return sk_mesh_allocate(mesh, 0, 0, m->cloud.velocity != NULL, error);
    SK_TRY(sk_cuda_surface_level(m, options->smoothing, error));
    return sk_cuda_surface_mesh(m, options, mesh, error);
}

/* Begins a frame: checks the options. */
static selkie_code begin(sk_cuda_mesher *m, size_t count, const sk_surface_options *options, selkie_error *error)
{
    memset(&m->cloud, 0, sizeof m->cloud);
    if (count > (size_t)INT32_MAX)
        return sk_fail(error, SELKIE_ERROR_INPUT,
                       "backend: \"cuda\" makes no surface of %zu particles; use \"tuned\" for the mesh", count);
    return sk_surface_grid_init(&m->grid, options, count, error);
}

/* Copies the arrays of the caller to the device, in one piece if a particle's values lie beside each other. */
static selkie_code send(sk_cuda_mesher *m, const sk_surface_particles *particles, selkie_error *error)
{
    sk_cuda_cloud *cloud = &m->cloud;
    const char *position = (const char *)particles->position, *velocity = (const char *)particles->velocity;
    const size_t stride = particles->position_stride, count = particles->count;
    const int together = velocity && particles->velocity_stride == stride && velocity > position &&
                         (size_t)(velocity - position) + 12 <= stride;
    char *to;
    cloud->count = count;
    cloud->position_stride = stride;
    cloud->velocity_stride = particles->velocity_stride;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_RECORDS, count * stride, &to, error));
    cloud->position = to;
    /* The last particle may end before the stride does. */
    const size_t last = together ? (size_t)(velocity - position) + 12 : 12;
    if (count)
        SK_CUDA_TRY(cudaMemcpyAsync(to, position, (count - 1) * stride + last, cudaMemcpyHostToDevice, m->cuda.stream),
                    "a surface", error);
    if (together)
        cloud->velocity = to + (velocity - position);
    if (!velocity || together)
        return SELKIE_OK;
    SK_TRY(sk_cuda_reserve(m, SK_ROOM_VELOCITIES, count * cloud->velocity_stride, &to, error));
    cloud->velocity = to;
    if (count)
        SK_CUDA_TRY(cudaMemcpyAsync(to, velocity, (count - 1) * cloud->velocity_stride + 12, cudaMemcpyHostToDevice,
                                    m->cuda.stream),
                    "a surface", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_surface_extract(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                    const sk_surface_options *options, sk_mesh *mesh, selkie_error *error)
{
    memset(mesh, 0, sizeof *mesh);
    selkie_code code = begin(m, particles->count, options, error);
    if (!code)
        code = send(m, particles, error);
    if (!code)
        code = extract(m, options, mesh, error);
    if (code)
        sk_mesh_free(mesh);
    return code;
}

int sk_cuda_has_particles(const sk_step *step)
{
    const sk_cuda *cuda = step->cuda;
    return cuda && cuda->allocation_count && !cuda->host_changed && !cuda->began && cuda->device_count;
}

selkie_code sk_cuda_surface_extract_here(sk_cuda_mesher *m, const sk_step *step, const sk_surface_options *options,
                                         sk_mesh *mesh, selkie_error *error)
{
    const sk_cuda *cuda = step->cuda;
    const char *records = (const char *)cuda->records[cuda->current];
    memset(mesh, 0, sizeof *mesh);
    selkie_code code = begin(m, (size_t)cuda->device_count, options, error);
    m->cloud.count = (size_t)cuda->device_count;
    m->cloud.position_stride = m->cloud.velocity_stride = sizeof(sk_particle);
    m->cloud.position = records + offsetof(sk_particle, position);
    m->cloud.velocity = records + offsetof(sk_particle, velocity);
    m->cloud.flags = records + offsetof(sk_particle, flags);
    if (!code) /* the last step is over, but what follows it may still run */
        SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "a surface", error);
    if (!code)
        code = extract(m, options, mesh, error);
    if (code)
        sk_mesh_free(mesh);
    return code;
}

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
    /* Particles deep inside count too. */
    SK_CUDA_TRY(cudaMemsetAsync(m->grid.deep, 0, m->grid.block_count * sizeof *m->grid.deep, m->cuda.stream),
                "a surface", error);
    SK_TRY(sk_cuda_surface_room(m, error));
    return sk_cuda_reserve(m, SK_ROOM_MEANS, m->grid.block_count * sk_node_count * sizeof(f4), &s->filtered, error);
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

/* Up to three values of the caller, to the device and to the vertices. */
static selkie_code send_values(sk_cuda_mesher *m, const sampling *s, int count, const sk_surface_value *given,
                               selkie_error *error)
{
    sk_cuda_values values;
    const char *names[3];
    memset(&values, 0, sizeof values);
    values.count = count;
    for (int v = 0; v < count; ++v) {
        char *to;
        const size_t bytes = m->cloud.count ? (m->cloud.count - 1) * given[v].stride + 4 : 0;
        SK_TRY(sk_cuda_reserve(m, (sk_cuda_room)(SK_ROOM_VALUES + v), bytes, &to, error));
        if (bytes)
            SK_CUDA_TRY(cudaMemcpyAsync(to, given[v].data, bytes, cudaMemcpyHostToDevice, m->cuda.stream), "a surface",
                        error);
        values.data[v] = to;
        values.stride[v] = given[v].stride;
        values.is_whole[v] = given[v].is_whole;
        names[v] = given[v].name;
    }
    return sample_values(m, s, &values, names, 0, error);
}

selkie_code sk_cuda_surface_add_values(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                       const sk_surface_options *options, int count, const sk_surface_value *values,
                                       sk_mesh *mesh, selkie_error *error)
{
    sampling s;
    memset(&s, 0, sizeof s);
    s.mesh = mesh;
    SK_TRY(begin(m, particles->count, options, error));
    SK_TRY(send(m, particles, error));
    SK_TRY(begin_sampling(m, &s, error));
    for (int v = 0; v < count; v += 3)
        SK_TRY(send_values(m, &s, count - v < 3 ? count - v : 3, values + v, error));
    if (!particles->velocity)
        return SELKIE_OK;
    const sk_cuda_values velocity = sk_cuda_velocity(&m->cloud);
    return sample_values(m, &s, &velocity, sk_vorticity_names, 1, error);
}

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

/* Begins a surface: checks the options. */
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

selkie_code sk_cuda_surface_begin(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                  const sk_surface_options *options, selkie_error *error)
{
    SK_TRY(begin(m, particles->count, options, error));
    return send(m, particles, error);
}

selkie_code sk_cuda_surface_extract(sk_cuda_mesher *m, const sk_surface_particles *particles,
                                    const sk_surface_options *options, sk_mesh *mesh, selkie_error *error)
{
    memset(mesh, 0, sizeof *mesh);
    selkie_code code = sk_cuda_surface_begin(m, particles, options, error);
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

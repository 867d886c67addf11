/* Sums of the particles for probes of heights, levels and fronts: whole numbers, added in any order. The host reads
 * them (world/columns.h, world/probes.c), so that no particle has to be copied. */
#include "cuda/device.h"

extern "C" {
#include "cuda/probes.h"
}

/* The sums lie behind each other: of the nodes, of the height probes, of the bins along each axis. */
struct sk_cuda_sums {
    uint32_t *device, *host; /* pinned */
    float (*middles)[4];     /* device: [probes] */
    size_t count;            /* of all sums */
    int middle_count;
};

/* What the kernel needs, by value. */
typedef struct sum_places {
    sk_column_frame frame;
    uint32_t *nodes, *heights, *bins[3]; /* device; NULL = not wanted */
    const float (*middles)[4];           /* device */
    int probe_count, bin_count[3];
    float bin_scale; /* 1/m */
} sum_places;

/* As find_places and find_parts of world/columns_scan.c, for one particle. The interval of a particle, and the distance
 * from its middle along each axis (-0.5 to 0.5). Returns whether there is one; not a number is outside. */
SK_DEVICE int find_place(const sk_column_frame *frame, const float position[3], int at[3], float beyond[3])
{
    int inside = 1;
    for (int a = 0; a < 3; a++) {
        const float g = position[frame->axis[a]] * frame->scale + frame->offset[a], middle = g + 0.5f;
        const float nearest = (g + SK_COLUMN_ROUNDER) - SK_COLUMN_ROUNDER;
        const int here = middle >= 0.0f && middle < frame->end[a];
        inside &= here;
        at[a] = here ? (int)nearest : 0;
        beyond[a] = g - nearest;
    }
    return inside;
}

/* Part c of a particle (0 to 3: the column before or behind it along the slabs, bit 1, and across them, bit 0): at the
 * nodes below and above it. */
SK_DEVICE void find_part(const float beyond[3], int c, uint32_t parts[2])
{
    const float far = (c >> 1 ? 0.5f + beyond[0] : 0.5f - beyond[0]) * (float)sk_column_unit;
    const float weight = far * (c & 1 ? 0.5f + beyond[1] : 0.5f - beyond[1]);
    const float all = (weight + SK_COLUMN_ROUNDER) - SK_COLUMN_ROUNDER;
    const float upper = (weight * (beyond[2] + 0.5f) + SK_COLUMN_ROUNDER) - SK_COLUMN_ROUNDER;
    parts[0] = (uint32_t)(int)(all - upper);
    parts[1] = (uint32_t)(int)upper;
}

/* A particle adds to the eight nodes around it. */
SK_DEVICE void add_to_nodes(const sum_places *places, const int at[3], const float beyond[3])
{
    const sk_column_frame *frame = &places->frame;
    const int across = frame->dimension == 3;
    for (int c = 0; c < 4; c++) {
        uint32_t parts[2];
        const int row = (at[0] + (c >> 1)) * frame->rows + at[1] + (c & 1) * across;
        uint32_t *to = places->nodes + (size_t)row * (size_t)frame->length + (size_t)at[2];
        find_part(beyond, c, parts);
        if (parts[0])
            atomicAdd(&to[0], parts[0]);
        if (parts[1])
            atomicAdd(&to[1], parts[1]);
    }
}

/* Adds a particle to the columns over height probes near it. */
SK_DEVICE void add_to_heights(const sum_places *places, const float position[3])
{
    for (int p = 0; p < places->probe_count; p++) {
        uint32_t parts[2];
        const int node = sk_column_height_part(&places->frame, position, places->middles[p], parts);
        uint32_t *to = places->heights + (size_t)p * (size_t)places->frame.length + (size_t)node;
        if (parts[0])
            atomicAdd(&to[0], parts[0]);
        if (parts[1])
            atomicAdd(&to[1], parts[1]);
    }
}

static __global__ void __launch_bounds__(SK_CUDA_THREADS)
    add_up_particles(const __grid_constant__ sum_places places, const sk_particle *records, size_t count)
{
    SK_CUDA_WAIT();
    SK_CUDA_EACH(p, count)
    {
        const sk_particle particle = records[p];
        int at[3];
        float beyond[3];
        if (particle.flags & SK_PARTICLE_DEAD)
            continue;
        for (int d = 0; d < 3; d++)
            if (places.bins[d])
                atomicAdd(&places.bins[d][sk_column_bin(particle.position[d], places.frame.low[d], places.bin_scale,
                                                        places.bin_count[d])],
                          1u);
        if (!find_place(&places.frame, particle.position, at, beyond))
            continue;
        if (places.nodes)
            add_to_nodes(&places, at, beyond);
        if (places.heights)
            add_to_heights(&places, particle.position);
    }
}

void sk_cuda_release_sums(sk_cuda *cuda)
{
    sk_cuda_sums *sums = cuda->sums;
    if (!sums)
        return;
    cudaFree(sums->device);
    cudaFree(sums->middles);
    if (sums->host)
        cudaFreeHost(sums->host);
    free(sums);
    cuda->sums = NULL;
    cuda->sum_bytes = 0;
}

/* Memory of the sums, kept from step to step. */
static selkie_code take_memory(sk_cuda *cuda, const sk_cuda_wanted_sums *wanted, size_t count, selkie_error *error)
{
    if (cuda->sums && cuda->sums->count == count && cuda->sums->middle_count == wanted->probe_count)
        return SELKIE_OK;
    sk_cuda_release_sums(cuda);
    cuda->sums = (sk_cuda_sums *)calloc(1, sizeof *cuda->sums);
    if (!cuda->sums)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for probes");
    const size_t bytes = count * sizeof(uint32_t), middles = (size_t)wanted->probe_count * sizeof *wanted->middles;
    SK_CUDA_TRY(cudaMalloc((void **)&cuda->sums->device, bytes), "probes", error);
    SK_CUDA_TRY(cudaMalloc((void **)&cuda->sums->middles, middles ? middles : 1), "probes", error);
    SK_CUDA_TRY(cudaMallocHost((void **)&cuda->sums->host, bytes), "probes", error);
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->sums->middles, wanted->middles, middles, cudaMemcpyHostToDevice, cuda->stream),
                "probes", error);
    cuda->sums->count = count;
    cuda->sums->middle_count = wanted->probe_count;
    cuda->sum_bytes = bytes + middles;
    return SELKIE_OK;
}

selkie_code sk_cuda_add_up(sk_step *step, const sk_cuda_wanted_sums *wanted, sk_cuda_added *added, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    const size_t heights = (size_t)wanted->probe_count * (size_t)wanted->frame.length;
    size_t count = wanted->node_count + heights;
    for (int d = 0; d < 3; d++)
        count += (size_t)wanted->bin_count[d];
    SK_TRY(take_memory(cuda, wanted, count, error));

    /* Places of the sums, of the device and of the host. */
    sum_places places;
    memset(&places, 0, sizeof places);
    memset(added, 0, sizeof *added);
    places.frame = wanted->frame;
    places.middles = cuda->sums->middles;
    places.probe_count = wanted->probe_count;
    places.bin_scale = wanted->bin_scale;
    places.nodes = wanted->node_count ? cuda->sums->device : nullptr;
    places.heights = heights ? cuda->sums->device + wanted->node_count : nullptr;
    added->nodes = cuda->sums->host;
    added->heights = cuda->sums->host + wanted->node_count;
    size_t from = wanted->node_count + heights;
    for (int d = 0; d < 3; d++) {
        places.bin_count[d] = wanted->bin_count[d];
        places.bins[d] = wanted->bin_count[d] ? cuda->sums->device + from : nullptr;
        added->bins[d] = cuda->sums->host + from;
        from += (size_t)wanted->bin_count[d];
    }

    SK_CUDA_TRY(cudaMemsetAsync(cuda->sums->device, 0, count * sizeof(uint32_t), cuda->stream), "probes", error);
    SK_LAUNCH_AFTER(cuda, add_up_particles, SK_CUDA_WIDE, SK_CUDA_THREADS, places, cuda->records[cuda->current],
                    (size_t)cuda->device_count);
    SK_CUDA_TRY(cudaMemcpyAsync(cuda->sums->host, cuda->sums->device, count * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                                cuda->stream),
                "probes", error);
    SK_CUDA_TRY(cudaStreamSynchronize(cuda->stream), "probes", error);
    return SELKIE_OK;
}

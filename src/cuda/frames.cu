/* Copies of the particles for files, while the steps that follow run.
 *
 * The stream of the simulation copies the particles to a second place on the device, at the bandwidth of its memory,
 * and records an event. A stream of its own waits for it and copies them on to pinned memory of the host; the thread
 * that writes the file waits for that. Pinned memory is slow to take, so it is kept for the next frame. */
#include <pthread.h>

#include "cuda/device.h"

extern "C" {
#include "particles/store.h"
}

enum { MOST_KEPT = 3 }; /* frames or checkpoints: one being copied, two that wait to be written (io/writer.h) */

struct sk_cuda_copy {
    sk_particles particles; /* addresses in the pinned memory; those that have left included */
    int64_t shown;          /* particles without them */
    sk_cuda_pinned *pinned; /* where the memory goes back to */
    void *memory;           /* pinned */
    size_t bytes;
    cudaEvent_t here; /* the copy is complete */
};

/* --- pinned memory that nobody has --- */

/* Of a world. Copies may outlive it, in the thread that writes files: the last one to leave releases it. */
struct sk_cuda_pinned {
    pthread_mutex_t lock;
    int users; /* the world and its copies */
    void *memory[MOST_KEPT];
    size_t bytes[MOST_KEPT];
};

/* The pinned memory of a world; NULL = no memory for it. */
static sk_cuda_pinned *join_pinned(sk_cuda *cuda)
{
    if (!cuda->pinned) {
        cuda->pinned = (sk_cuda_pinned *)calloc(1, sizeof *cuda->pinned);
        if (!cuda->pinned)
            return NULL;
        pthread_mutex_init(&cuda->pinned->lock, NULL);
        cuda->pinned->users = 1;
    }
    pthread_mutex_lock(&cuda->pinned->lock);
    cuda->pinned->users++;
    pthread_mutex_unlock(&cuda->pinned->lock);
    return cuda->pinned;
}

static void leave_pinned(sk_cuda_pinned *kept)
{
    pthread_mutex_lock(&kept->lock);
    const int users = --kept->users;
    pthread_mutex_unlock(&kept->lock);
    if (users)
        return;
    for (int n = 0; n < MOST_KEPT; n++)
        if (kept->memory[n])
            cudaFreeHost(kept->memory[n]);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

static void *take_pinned(sk_cuda_pinned *kept, size_t bytes, size_t *taken)
{
    void *memory = NULL;
    pthread_mutex_lock(&kept->lock);
    for (int n = 0; n < MOST_KEPT && !memory; n++)
        if (kept->memory[n] && kept->bytes[n] >= bytes) {
            memory = kept->memory[n];
            *taken = kept->bytes[n];
            kept->memory[n] = NULL;
        }
    pthread_mutex_unlock(&kept->lock);
    *taken = memory ? *taken : bytes + bytes / 8;
    if (!memory && cudaMallocHost(&memory, *taken) != cudaSuccess) {
        cudaGetLastError(); /* the frame is fetched instead */
        memory = NULL;
    }
    return memory;
}

/* Keeps the largest ones. */
static void keep_pinned(sk_cuda_pinned *kept, void *memory, size_t bytes)
{
    pthread_mutex_lock(&kept->lock);
    for (int n = 0; n < MOST_KEPT && memory; n++)
        if (!kept->memory[n] || kept->bytes[n] < bytes) {
            void *smaller = kept->memory[n];
            const size_t its_bytes = kept->bytes[n];
            kept->memory[n] = memory, kept->bytes[n] = bytes;
            memory = smaller, bytes = its_bytes;
        }
    pthread_mutex_unlock(&kept->lock);
    if (memory)
        cudaFreeHost(memory);
}

void sk_cuda_release_frames(sk_cuda *cuda)
{
    if (cuda->pinned)
        leave_pinned(cuda->pinned);
    cuda->pinned = NULL;
}

/* Gives back the memory of a copy, and the copy. */
static void end_copy(sk_cuda_copy *copy)
{
    if (copy->memory)
        keep_pinned(copy->pinned, copy->memory, copy->bytes);
    if (copy->pinned)
        leave_pinned(copy->pinned);
    free(copy);
}

/* --- copies --- */

/* Places of the arrays, one behind the other; returns the bytes of all. */
static size_t lay_out(const sk_particles *particles, size_t count, size_t places[1 + SK_MAX_ATTRIBUTES])
{
    size_t bytes = 0;
    for (int n = 0; n <= particles->attribute_count; n++) {
        const size_t size =
            n ? (size_t)particles->attributes[n - 1].components * sizeof(uint32_t) : sizeof(sk_particle);
        places[n] = bytes;
        bytes += (count * size + 255) / 256 * 256;
    }
    return bytes;
}

/* Room on the device for a frame; none is no error. */
static void *take_stage(sk_cuda *cuda, size_t bytes)
{
    if (cuda->stage_bytes >= bytes)
        return cuda->stage;
    cudaStreamSynchronize(cuda->copy_stream); /* the frame before may be there still */
    sk_cuda_give(cuda, cuda->stage, cuda->stage_bytes);
    cuda->stage = NULL, cuda->stage_bytes = 0;
    if (sk_cuda_take(cuda, &cuda->stage, bytes + bytes / 8, 1, NULL) != SELKIE_OK) /* 0: gaps are copied, too */
        return NULL;
    cuda->stage_bytes = bytes + bytes / 8;
    return cuda->stage;
}

/* Launches the copies from the arrays of the device to the stage, and from there to the host. */
static selkie_code launch_copies(sk_cuda *cuda, sk_cuda_copy *copy, const size_t *places, size_t bytes,
                                 selkie_error *error)
{
    const size_t count = (size_t)copy->particles.count;
    char *stage = (char *)cuda->stage;
    SK_CUDA_TRY(cudaStreamWaitEvent(cuda->stream, cuda->stage_free, 0), "a frame", error);
    SK_CUDA_TRY(cudaMemcpyAsync(stage, cuda->records[cuda->current], count * sizeof(sk_particle),
                                cudaMemcpyDeviceToDevice, cuda->stream),
                "a frame", error);
    for (int a = 0; a < copy->particles.attribute_count; a++)
        SK_CUDA_TRY(cudaMemcpyAsync(stage + places[1 + a], cuda->attributes[a][cuda->current],
                                    count * (size_t)copy->particles.attributes[a].components * sizeof(uint32_t),
                                    cudaMemcpyDeviceToDevice, cuda->stream),
                    "a frame", error);
    SK_CUDA_TRY(cudaEventRecord(cuda->staged, cuda->stream), "a frame", error);
    SK_CUDA_TRY(cudaStreamWaitEvent(cuda->copy_stream, cuda->staged, 0), "a frame", error);
    SK_CUDA_TRY(cudaMemcpyAsync(copy->memory, stage, bytes, cudaMemcpyDeviceToHost, cuda->copy_stream), "a frame",
                error);
    SK_CUDA_TRY(cudaEventRecord(copy->here, cuda->copy_stream), "a frame", error);
    SK_CUDA_TRY(cudaEventRecord(cuda->stage_free, cuda->copy_stream), "a frame", error);
    return SELKIE_OK;
}

selkie_code sk_cuda_copy_begin(sk_step *step, sk_cuda_copy **result, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    size_t places[1 + SK_MAX_ATTRIBUTES];
    *result = NULL;
    if (!cuda || !cuda->allocation_count || cuda->particles_here || cuda->host_changed || cuda->began ||
        !cuda->device_count)
        return SELKIE_OK;
    const size_t bytes = lay_out(&step->particles, (size_t)cuda->device_count, places);
    sk_cuda_copy *copy = (sk_cuda_copy *)calloc(1, sizeof *copy);
    if (!copy)
        return SELKIE_OK; /* without room for it the frame is fetched */
    copy->pinned = join_pinned(cuda);
    if (copy->pinned && take_stage(cuda, bytes))
        copy->memory = take_pinned(copy->pinned, bytes, &copy->bytes);
    if (!copy->memory) {
        end_copy(copy);
        return SELKIE_OK;
    }
    copy->particles = step->particles;
    copy->particles.memory = NULL;
    copy->particles.spare = NULL;
    copy->particles.carried = NULL;
    copy->particles.count = cuda->device_count;
    copy->particles.records = (sk_particle *)copy->memory;
    copy->shown = step->particles.count;
    for (int a = 0; a < step->particles.attribute_count; a++)
        copy->particles.attributes[a].data = (uint32_t *)(void *)((char *)copy->memory + places[1 + a]);
#ifndef SK_CUDA_EMULATED
    if (cudaEventCreateWithFlags(&copy->here, cudaEventDisableTiming | cudaEventBlockingSync) != cudaSuccess) {
        cudaGetLastError();
        end_copy(copy);
        return SELKIE_OK;
    }
#endif
    const selkie_code code = launch_copies(cuda, copy, places, bytes, error);
    if (code != SELKIE_OK)
        sk_cuda_copy_free(copy);
    else
        *result = copy;
    return code;
}

selkie_code sk_cuda_copy_take(sk_cuda_copy *copy, sk_particles *particles, selkie_error *error)
{
    SK_CUDA_TRY(cudaEventSynchronize(copy->here), "a frame", error);
    if (copy->shown != copy->particles.count)
        sk_particles_drop_dead(&copy->particles);
    *particles = copy->particles;
    return SELKIE_OK;
}

void sk_cuda_copy_free(sk_cuda_copy *copy)
{
    if (!copy)
        return;
#ifndef SK_CUDA_EMULATED
    cudaEventSynchronize(copy->here); /* nobody may write there any more */
    cudaEventDestroy(copy->here);
#endif
    end_copy(copy);
}

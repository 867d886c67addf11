/* Memory of rigid bodies on the device: see bodies_parts.h. */
#include "cuda/bodies_parts.h"

void sk_cuda_unstage(sk_cuda_staged *staged)
{
    if (staged->here)
        cudaFreeHost(staged->here);
    if (staged->there)
        cudaFree(staged->there);
    memset(staged, 0, sizeof *staged);
}

selkie_code sk_cuda_stage(sk_cuda_staged *staged, size_t bytes, selkie_error *error)
{
    if (bytes <= staged->bytes)
        return SELKIE_OK;
    sk_cuda_unstage(staged);
    const size_t room = bytes + bytes / 2;
    SK_CUDA_TRY(cudaMallocHost((void **)&staged->here, room), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&staged->there, room), "the bodies", error);
    /* Copies take the gaps between arrays along. */
    SK_CUDA_TRY(cudaMemsetAsync(staged->there, 0, room, 0), "the bodies", error);
    SK_CUDA_TRY(cudaStreamSynchronize(0), "the bodies", error);
    staged->bytes = room;
    return SELKIE_OK;
}

selkie_code sk_cuda_take_bodies(sk_step *step, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    if (cuda->bodies)
        return SELKIE_OK;
    cuda->bodies = (sk_cuda_bodies *)calloc(1, sizeof *cuda->bodies);
    if (!cuda->bodies)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "GPU: no memory for the bodies");
    sk_cuda_bodies *bodies = cuda->bodies;
    bodies->memory = step->memory;
    const size_t count = step->rigid ? (size_t)step->rigid->body_count : 1; /* 1: frozen bodies meet no particles */
    bodies->partial_bytes = count * SK_CUDA_CONTACT_PARTS * SK_CUDA_CONTACT_SUMS * sizeof(double);
    SK_CUDA_TRY(cudaMalloc((void **)&bodies->modes, sizeof *bodies->modes), "the bodies", error);
    SK_CUDA_TRY(cudaMemsetAsync(bodies->modes, 0, sizeof *bodies->modes, cuda->stream), "the bodies", error);
    SK_CUDA_TRY(cudaMalloc((void **)&bodies->partial, bodies->partial_bytes), "the bodies", error);
    return SELKIE_OK;
}

void sk_cuda_release_bodies(sk_cuda *cuda)
{
    sk_cuda_bodies *bodies = cuda->bodies;
    if (cuda->drag) {
        sk_cuda_unstage(&cuda->drag->places);
        sk_cuda_unstage(&cuda->drag->faces);
    }
    free(cuda->drag);
    cuda->drag = NULL;
    if (!bodies)
        return;
    sk_cuda_unstage(&bodies->faces);
    sk_cuda_unstage(&bodies->rows);
    sk_cuda_unstage(&bodies->lists);
    sk_cuda_unstage(&bodies->contacts);
    if (bodies->modes)
        cudaFree(bodies->modes);
    if (bodies->partial)
        cudaFree(bodies->partial);
    sk_poisson_free_view(bodies->memory, &bodies->view);
    free(bodies);
    cuda->bodies = NULL;
}

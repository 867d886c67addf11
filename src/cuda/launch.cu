/* Graphs of launches, their repetition, and times of kernels. */
#include "cuda/device.h"

#ifdef SK_CUDA_EMULATED
void sk_cuda_start_profile(sk_step *step)
{
    (void)step;
}

sk_cuda_condition sk_cuda_new_condition(sk_cuda *cuda)
{
    (void)cuda;
    return 0;
}

void sk_cuda_repeat(sk_cuda *cuda, const sk_step *step, sk_cuda_launches body, const int *done)
{
    while (!*done)
        body(cuda, step);
}

selkie_code sk_cuda_run(sk_step *step, const char *name, sk_cuda_launches launches, selkie_error *error)
{
    (void)name;
    SK_TRY(sk_cuda_begin(step, error));
    launches(step->cuda, step);
    return SELKIE_OK;
}

#else
void sk_cuda_start_profile(sk_step *step)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda || cuda->profile)
        return;
    cuda->profile = (sk_cuda_profile *)calloc(1, sizeof *cuda->profile);
    if (!cuda->profile)
        return;
    cudaEventCreate(&cuda->profile->begin);
    cudaEventCreate(&cuda->profile->end);
}

void sk_cuda_profile_begin(sk_cuda *cuda)
{
    cudaEventRecord(cuda->profile->begin, cuda->stream);
}

void sk_cuda_profile_end(sk_cuda *cuda, const char *kernel)
{
    sk_cuda_profile *profile = cuda->profile;
    float ms = 0.0f;
    int n = 0;
    cudaEventRecord(profile->end, cuda->stream);
    cudaEventSynchronize(profile->end);
    cudaEventElapsedTime(&ms, profile->begin, profile->end);
    while (n < profile->count && strcmp(profile->kernels[n].kernel, kernel) != 0)
        n++;
    if (n == SK_CUDA_KERNELS)
        return;
    profile->count = n < profile->count ? profile->count : n + 1;
    profile->kernels[n].kernel = kernel;
    profile->kernels[n].ms += (double)ms;
    profile->kernels[n].launches++;
}

/* The graph that the stream records, and what its next node waits for. */
static cudaGraph_t recorded(sk_cuda *cuda, const cudaGraphNode_t **after, size_t *count)
{
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    const cudaGraphEdgeData *edges;
    unsigned long long id;
    *count = 0;
    cudaStreamGetCaptureInfo(cuda->stream, &status, &id, &graph, after, &edges, count);
    return graph;
}

sk_cuda_condition sk_cuda_new_condition(sk_cuda *cuda)
{
    const cudaGraphNode_t *after;
    size_t count;
    cuda->condition = 0;
    if (cuda->profile)
        return 0;
    cudaGraph_t graph = recorded(cuda, &after, &count);
    if (cudaGraphConditionalHandleCreate(&cuda->condition, graph, 1, cudaGraphCondAssignDefault) != cudaSuccess)
        cuda->condition = 0;
    return cuda->condition;
}

void sk_cuda_repeat(sk_cuda *cuda, const sk_step *step, sk_cuda_launches body, const int *done)
{
    int is_done = 0;
    while (cuda->profile && !is_done) {
        body(cuda, step);
        if (cudaMemcpyAsync(&is_done, done, sizeof is_done, cudaMemcpyDeviceToHost, cuda->stream) != cudaSuccess ||
            cudaStreamSynchronize(cuda->stream) != cudaSuccess)
            return; /* sk_cuda_run reports it */
    }
    if (cuda->profile)
        return;
    const cudaGraphNode_t *after;
    size_t count;
    cudaGraph_t graph = recorded(cuda, &after, &count), ended;
    cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
    cudaGraphNode_t node;
    parameters.conditional.handle = cuda->condition;
    parameters.conditional.type = cudaGraphCondTypeWhile;
    parameters.conditional.size = 1;
    if (cudaGraphAddNode(&node, graph, after, NULL, count, &parameters) != cudaSuccess)
        return; /* the capture fails, and sk_cuda_run reports it */

    /* The body is recorded through a stream of its own. */
    cudaStream_t outer = cuda->stream;
    cudaStreamBeginCaptureToGraph(cuda->body_stream, parameters.conditional.phGraph_out[0], NULL, NULL, 0,
                                  cudaStreamCaptureModeThreadLocal);
    cuda->stream = cuda->body_stream;
    body(cuda, step);
    cuda->stream = outer;
    cudaStreamEndCapture(cuda->body_stream, &ended);
    cudaStreamUpdateCaptureDependencies(cuda->stream, &node, NULL, 1, cudaStreamSetCaptureDependencies);
}

static selkie_code record(sk_step *step, const char *name, sk_cuda_launches launches, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    cudaGraph_t graph = NULL;
    if (cuda->graph_count == SK_CUDA_GRAPHS)
        return sk_fail(error, SELKIE_ERROR_INTERNAL, "the GPU backend has no room for another graph");
    SK_CUDA_TRY(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal), name, error);
    launches(cuda, step);
    SK_CUDA_TRY(cudaStreamEndCapture(cuda->stream, &graph), name, error);
    SK_CUDA_TRY(cudaGetLastError(), name, error);
    const cudaError_t code = cudaGraphInstantiate(&cuda->graphs[cuda->graph_count].graph, graph, 0);
    cudaGraphDestroy(graph);
    SK_CUDA_TRY(code, name, error);
    cuda->graphs[cuda->graph_count++].name = name;
    return SELKIE_OK;
}

selkie_code sk_cuda_run(sk_step *step, const char *name, sk_cuda_launches launches, selkie_error *error)
{
    sk_cuda *cuda = step->cuda;
    int n = 0;
    SK_TRY(sk_cuda_begin(step, error));
    if (cuda->profile) {
        launches(cuda, step);
        SK_CUDA_TRY(cudaGetLastError(), name, error);
        return SELKIE_OK;
    }
    while (n < cuda->graph_count && strcmp(cuda->graphs[n].name, name) != 0)
        n++;
    if (n == cuda->graph_count)
        SK_TRY(record(step, name, launches, error));
    SK_CUDA_TRY(cudaGraphLaunch(cuda->graphs[n].graph, cuda->stream), name, error);
    return SELKIE_OK;
}
#endif

int sk_cuda_profile_entry(const sk_step *step, int n, sk_cuda_time *time)
{
    const sk_cuda_profile *profile = step->cuda ? step->cuda->profile : NULL;
    if (!profile || n >= profile->count)
        return 0;
    *time = profile->kernels[n];
    return 1;
}

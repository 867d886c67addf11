/* Graphs of launches, their repetition, and times of kernels. */
#include "cuda/device.h"

#ifdef SK_CUDA_EMULATED
void sk_cuda_start_profile(sk_step *step, enum sk_cuda_timed timed)
{
    (void)step, (void)timed;
}

void sk_cuda_take_graph_times(sk_cuda *cuda)
{
    (void)cuda;
}

void sk_cuda_end_profile(sk_cuda *cuda)
{
    (void)cuda;
}

double sk_cuda_triad(void)
{
    return 0.0;
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
void sk_cuda_start_profile(sk_step *step, enum sk_cuda_timed timed)
{
    sk_cuda *cuda = step->cuda;
    if (!cuda)
        return;
    sk_cuda_end_profile(cuda);
    cuda->profile = (sk_cuda_profile *)calloc(1, sizeof *cuda->profile);
    if (!cuda->profile)
        return;
    cuda->profile->timed = timed;
    for (int n = 0; n < SK_CUDA_TIMED_GRAPHS; n++) {
        cudaEventCreate(&cuda->profile->begin[n]);
        cudaEventCreate(&cuda->profile->end[n]);
    }
}

void sk_cuda_end_profile(sk_cuda *cuda)
{
    for (int n = 0; cuda->profile && n < SK_CUDA_TIMED_GRAPHS; n++) {
        cudaEventDestroy(cuda->profile->begin[n]);
        cudaEventDestroy(cuda->profile->end[n]);
    }
    free(cuda->profile);
    cuda->profile = NULL;
}

static void add_time(sk_cuda_profile *profile, const char *name, cudaEvent_t begin, cudaEvent_t end)
{
    float ms = 0.0f;
    int n = 0;
    cudaEventElapsedTime(&ms, begin, end);
    while (n < profile->count && strcmp(profile->kernels[n].kernel, name) != 0)
        n++;
    if (n == SK_CUDA_KERNELS)
        return;
    profile->count = n < profile->count ? profile->count : n + 1;
    profile->kernels[n].kernel = name;
    profile->kernels[n].ms += (double)ms;
    profile->kernels[n].launches++;
}

void sk_cuda_profile_begin(sk_cuda *cuda)
{
    cudaEventRecord(cuda->profile->begin[0], cuda->stream);
}

void sk_cuda_profile_end(sk_cuda *cuda, const char *kernel)
{
    cudaEventRecord(cuda->profile->end[0], cuda->stream);
    cudaEventSynchronize(cuda->profile->end[0]);
    add_time(cuda->profile, kernel, cuda->profile->begin[0], cuda->profile->end[0]);
}

void sk_cuda_take_graph_times(sk_cuda *cuda)
{
    sk_cuda_profile *profile = cuda->profile;
    for (int n = 0; profile && n < profile->graph_count; n++)
        add_time(profile, profile->graphs[n], profile->begin[n], profile->end[n]);
    if (profile)
        profile->graph_count = 0;
}

/* Are kernels launched one by one, not as graphs? */
static int launches_singly(const sk_cuda *cuda)
{
#ifdef SK_CUDA_SINGLE_LAUNCHES
    return cuda != NULL;
#else
    return sk_cuda_times_kernels(cuda);
#endif
}

/* Launches a graph, and times it if asked for. */
static cudaError_t launch_graph(sk_cuda *cuda, int n)
{
    sk_cuda_profile *profile = cuda->profile;
    const int timed = profile && profile->graph_count < SK_CUDA_TIMED_GRAPHS ? profile->graph_count++ : -1;
    if (timed >= 0) {
        profile->graphs[timed] = cuda->graphs[n].name;
        cudaEventRecord(profile->begin[timed], cuda->stream);
    }
    const cudaError_t code = cudaGraphLaunch(cuda->graphs[n].graph, cuda->stream);
    if (timed >= 0)
        cudaEventRecord(profile->end[timed], cuda->stream);
    return code;
}

static __global__ void triad(float4 *a, const float4 *b, const float4 *c, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        const float4 x = b[i], y = c[i];
        float4 sum;
        sum.x = x.x + 3.0f * y.x, sum.y = x.y + 3.0f * y.y, sum.z = x.z + 3.0f * y.z, sum.w = x.w + 3.0f * y.w;
        a[i] = sum;
    }
}

double sk_cuda_triad(void)
{
    const size_t bytes = (size_t)1 << 29;
    void *arrays[3] = {NULL, NULL, NULL};
    cudaEvent_t begin, end;
    double best = 0.0;
    int good = 1;
    for (int n = 0; n < 3; n++)
        good &= cudaMalloc(&arrays[n], bytes) == cudaSuccess && cudaMemset(arrays[n], 0, bytes) == cudaSuccess;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int n = 0; good && n < 5; n++) {
        float ms = 0.0f;
        cudaEventRecord(begin);
        triad<<<132 * 16, 512>>>((float4 *)arrays[0], (const float4 *)arrays[1], (const float4 *)arrays[2],
                                 bytes / sizeof(float4));
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, begin, end);
        best = ms > 0.0f && 3.0 * (double)bytes / ((double)ms * 1e-3) > best ? 3.0 * (double)bytes / ((double)ms * 1e-3)
                                                                             : best;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    for (int n = 0; n < 3; n++)
        cudaFree(arrays[n]);
    return best;
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
    if (launches_singly(cuda))
        return 0;
    cudaGraph_t graph = recorded(cuda, &after, &count);
    if (cudaGraphConditionalHandleCreate(&cuda->condition, graph, 1, cudaGraphCondAssignDefault) != cudaSuccess)
        cuda->condition = 0;
    return cuda->condition;
}

void sk_cuda_repeat(sk_cuda *cuda, const sk_step *step, sk_cuda_launches body, const int *done)
{
    int is_done = 0;
    while (launches_singly(cuda) && !is_done) {
        body(cuda, step);
        if (cudaMemcpyAsync(&is_done, done, sizeof is_done, cudaMemcpyDeviceToHost, cuda->stream) != cudaSuccess ||
            cudaStreamSynchronize(cuda->stream) != cudaSuccess)
            return; /* sk_cuda_run reports it */
    }
    if (launches_singly(cuda))
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
    if (launches_singly(cuda)) {
        launches(cuda, step);
        SK_CUDA_TRY(cudaGetLastError(), name, error);
        return SELKIE_OK;
    }
    while (n < cuda->graph_count && strcmp(cuda->graphs[n].name, name) != 0)
        n++;
    if (n == cuda->graph_count)
        SK_TRY(record(step, name, launches, error));
    SK_CUDA_TRY(launch_graph(cuda, n), name, error);
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

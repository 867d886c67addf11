/* CUDA on the CPU, for tests of src/cuda where there is no device.
 *
 * A launch runs its thread blocks one after the other. The threads of a block are fibers that take turns at barriers.
 * Copies and graphs happen at once. The emulation is slow and knows only what src/cuda uses. */
#ifndef SK_TESTS_CUDA_EMULATE_H
#define SK_TESTS_CUDA_EMULATE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csetjmp>
#include <functional>
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __noinline__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)

struct sk_emulated_index {
    unsigned x;
};
inline sk_emulated_index threadIdx, blockIdx, blockDim, gridDim;
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
struct int4 {
    int x, y, z, w;
};

enum { SK_EMULATED_THREADS = 1024, SK_EMULATED_STACK = 128 * 1024 };
struct sk_emulated_fiber {
    ucontext_t context; /* enters the fiber; then jumps, which need no system call */
    jmp_buf jump;
    bool begun, done;
};
inline sk_emulated_fiber *sk_emulated_fibers;
inline char *sk_emulated_stacks;
inline ucontext_t sk_emulated_scheduler;
inline jmp_buf sk_emulated_back;
inline int sk_emulated_current;
inline const std::function<void()> *sk_emulated_body;

inline void sk_emulated_entry()
{
    (*sk_emulated_body)();
    sk_emulated_fibers[sk_emulated_current].done = true;
    _longjmp(sk_emulated_back, 1);
}

inline void __syncthreads()
{
    const int own = sk_emulated_current;
    if (!_setjmp(sk_emulated_fibers[own].jump))
        _longjmp(sk_emulated_back, 1);
    threadIdx.x = (unsigned)own;
}

inline int __syncthreads_or(int value)
{
    static int values[SK_EMULATED_THREADS], any;
    const int own = sk_emulated_current;
    values[own] = value;
    __syncthreads();
    any = 0;
    for (unsigned t = 0; t < blockDim.x; t++)
        any |= values[t];
    __syncthreads();
    return any;
}

inline int __syncthreads_count(int value)
{
    static int values[SK_EMULATED_THREADS], count;
    const int own = sk_emulated_current;
    values[own] = value != 0;
    __syncthreads();
    count = 0;
    for (unsigned t = 0; t < blockDim.x; t++)
        count += values[t];
    __syncthreads();
    return count;
}

/* Kernels with barriers of warps are launched with one warp a thread block. */
inline void __syncwarp()
{
    __syncthreads();
}

template <typename T> inline T __shfl_sync_emulated(T value, int from)
{
    static T values[SK_EMULATED_THREADS];
    const int own = sk_emulated_current;
    values[own] = value;
    __syncthreads();
    const T result = values[from < (int)blockDim.x ? from : own];
    __syncthreads();
    return result;
}
template <typename T> inline T __shfl_xor_sync(unsigned, T value, int lanes)
{
    return __shfl_sync_emulated(value, sk_emulated_current ^ lanes);
}
template <typename T> inline T __shfl_up_sync(unsigned, T value, int lanes)
{
    const int own = sk_emulated_current;
    return __shfl_sync_emulated(value, own % 32 >= lanes ? own - lanes : own);
}
inline unsigned __ballot_sync(unsigned, int value)
{
    static int values[SK_EMULATED_THREADS];
    const int own = sk_emulated_current, first = own / 32 * 32;
    unsigned bits = 0;
    values[own] = value;
    __syncthreads();
    for (int t = 0; t < 32 && first + t < (int)blockDim.x; t++)
        bits |= (values[first + t] != 0 ? 1u : 0u) << t;
    __syncthreads();
    return bits;
}
inline int __popc(unsigned value)
{
    return __builtin_popcount(value);
}
inline void __threadfence()
{
}
inline void __threadfence_block()
{
}
template <typename T> inline T atomicCAS(T *at, T expected, T value)
{
    const T before = *at;
    *at = before == expected ? value : before;
    return before;
}
template <typename T, typename U> inline T atomicExch(T *at, U value)
{
    const T before = *at;
    *at = (T)value;
    return before;
}
template <typename T, typename U> inline T atomicAdd(T *at, U value)
{
    const T before = *at;
    *at = before + (T)value;
    return before;
}
template <typename T, typename U> inline T atomicMin(T *at, U value)
{
    const T before = *at;
    *at = before < (T)value ? before : (T)value;
    return before;
}
template <typename T, typename U> inline T atomicMax(T *at, U value)
{
    const T before = *at;
    *at = before > (T)value ? before : (T)value;
    return before;
}
template <typename T, typename U> inline T atomicOr(T *at, U value)
{
    const T before = *at;
    *at = before | (T)value;
    return before;
}

inline void sk_emulate(unsigned blocks, unsigned threads, const std::function<void()> &body)
{
    if (!sk_emulated_fibers) {
        sk_emulated_fibers = new sk_emulated_fiber[SK_EMULATED_THREADS];
        sk_emulated_stacks = (char *)malloc((size_t)SK_EMULATED_THREADS * SK_EMULATED_STACK);
    }
    sk_emulated_body = &body;
    gridDim.x = blocks, blockDim.x = threads;
    for (volatile unsigned b = 0; b < blocks; b = b + 1) {
        blockIdx.x = b;
        for (unsigned t = 0; t < threads; t++) {
            sk_emulated_fiber *fiber = &sk_emulated_fibers[t];
            getcontext(&fiber->context);
            fiber->context.uc_stack.ss_sp = sk_emulated_stacks + (size_t)t * SK_EMULATED_STACK;
            fiber->context.uc_stack.ss_size = SK_EMULATED_STACK;
            fiber->context.uc_link = &sk_emulated_scheduler;
            fiber->begun = fiber->done = false;
            makecontext(&fiber->context, sk_emulated_entry, 0);
        }
        for (volatile bool running = true; running;) {
            running = false;
            for (volatile unsigned t = 0; t < threads; t = t + 1) {
                if (sk_emulated_fibers[t].done)
                    continue;
                sk_emulated_current = (int)t;
                threadIdx.x = t;
                if (_setjmp(sk_emulated_back) == 0) {
                    if (sk_emulated_fibers[t].begun)
                        _longjmp(sk_emulated_fibers[t].jump, 1);
                    sk_emulated_fibers[t].begun = true;
                    setcontext(&sk_emulated_fibers[t].context);
                }
                running = running || !sk_emulated_fibers[t].done;
            }
        }
    }
}

/* Threads without barriers need no fibers. */
inline void sk_emulate_simple(unsigned blocks, unsigned threads, const std::function<void()> &body)
{
    gridDim.x = blocks, blockDim.x = threads;
    for (unsigned b = 0; b < blocks; b++)
        for (unsigned t = 0; t < threads; t++) {
            blockIdx.x = b;
            threadIdx.x = t;
            body();
        }
}

/* --- the part of the runtime that src/cuda calls --- */

typedef int cudaError_t;
typedef int cudaStream_t;
typedef int cudaEvent_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
inline cudaError_t cudaMalloc(void **at, size_t bytes)
{
    *at = malloc(bytes);
    if (*at)
        memset(*at, 0xab, bytes);
    return *at ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void *at)
{
    free(at);
    return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void **at, size_t bytes)
{
    return cudaMalloc(at, bytes);
}
inline cudaError_t cudaFreeHost(void *at)
{
    return cudaFree(at);
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    memmove(to, from, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
    memset(to, value, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
inline const char *cudaGetErrorString(cudaError_t)
{
    return "emulated";
}
inline cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    *free_bytes = *all = (size_t)1 << 30;
    return cudaSuccess;
}

#endif

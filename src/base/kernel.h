/* Marks for numerics that are written once and compiled by the C compiler and by nvcc.
 *
 * A kernel header holds static functions that say what happens to one cell,
 * face or particle. It includes nothing but this file and other kernel headers,
 * uses the common part of C and CUDA C++ (no compound literals, no designated
 * initialisers, explicit casts), and allocates nothing.
 */
#ifndef SK_BASE_KERNEL_H
#define SK_BASE_KERNEL_H

#ifdef __CUDACC__
#define SK_KERNEL static __host__ __device__ __forceinline__
#else
#define SK_KERNEL static inline __attribute__((always_inline, unused))
#endif

/* Before a loop whose index chooses elements of small arrays: nvcc keeps these in registers only if it unrolls it. */
#ifdef __CUDACC__
#define SK_KERNEL_UNROLL _Pragma("unroll")
#else
#define SK_KERNEL_UNROLL
#endif

/* Long ones: they are called. */
#ifdef __CUDACC__
#define SK_KERNEL_CALLED static __host__ __device__ __noinline__
#else
#define SK_KERNEL_CALLED static __attribute__((unused))
#endif

#endif

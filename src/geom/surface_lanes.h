/* Four numbers at a time, and numbers of four nodes at a time, for the surface of particles on the CPU and the GPU.
 *
 * The functions of surface_plain.h are written in these types. On the CPU both are vectors of the compiler. On the GPU
 * `f4` is a struct of four floats, and a lane is one float: a thread has one node. Sums run in the order in which they
 * are written, so that both have the same bits.
 */
#ifndef SK_GEOM_SURFACE_LANES_H
#define SK_GEOM_SURFACE_LANES_H

#include <math.h>
#include <stdint.h>

#include "base/kernel.h"

#ifndef __cplusplus
#include "base/simd.h"

typedef int32_t i4 __attribute__((vector_size(16)));
typedef f4 sk_lane;
typedef i4 sk_lane_mask;

SK_KERNEL f4 sk_f4(float x, float y, float z, float w)
{
    return (f4){x, y, z, w};
}

SK_KERNEL sk_lane sk_lane_of(float value)
{
    return (f4){value, value, value, value};
}

SK_KERNEL sk_lane sk_lane_select(sk_lane_mask mask, sk_lane yes, sk_lane no)
{
    return (f4)((mask & (i4)yes) | (~mask & (i4)no));
}

SK_KERNEL sk_lane sk_lane_size(sk_lane a)
{
    return (f4)((i4)a & 0x7fffffff);
}

SK_KERNEL sk_lane sk_lane_sqrt(sk_lane a)
{
    return f4_sqrt(a);
}

SK_KERNEL sk_lane sk_lane_load(const float *from)
{
    return f4_load(from);
}

SK_KERNEL int sk_bits_of_64(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* Number of the lowest bit that is set. */
SK_KERNEL int sk_lowest_bit(unsigned bits)
{
    return __builtin_ctz(bits);
}

#else

#ifdef __CUDACC__
#define SK_MEMBER __host__ __device__ __forceinline__
#else
#define SK_MEMBER inline
#endif

struct alignas(16) f4 {
    float v[4];
    SK_MEMBER float operator[](int n) const
    {
        return v[n];
    }
    SK_MEMBER float &operator[](int n)
    {
        return v[n];
    }
    SK_MEMBER f4 &operator+=(const f4 &other)
    {
        for (int n = 0; n < 4; n++)
            v[n] += other.v[n];
        return *this;
    }
};

typedef float sk_lane;
typedef bool sk_lane_mask;

SK_KERNEL f4 sk_f4(float x, float y, float z, float w)
{
    f4 result;
    result.v[0] = x, result.v[1] = y, result.v[2] = z, result.v[3] = w;
    return result;
}

static SK_MEMBER f4 operator+(const f4 &a, const f4 &b)
{
    return sk_f4(a.v[0] + b.v[0], a.v[1] + b.v[1], a.v[2] + b.v[2], a.v[3] + b.v[3]);
}

static SK_MEMBER f4 operator*(const f4 &a, float b)
{
    return sk_f4(a.v[0] * b, a.v[1] * b, a.v[2] * b, a.v[3] * b);
}

static SK_MEMBER f4 operator*(float a, const f4 &b)
{
    return sk_f4(a * b.v[0], a * b.v[1], a * b.v[2], a * b.v[3]);
}

SK_KERNEL sk_lane sk_lane_of(float value)
{
    return value;
}

SK_KERNEL sk_lane sk_lane_select(sk_lane_mask mask, sk_lane yes, sk_lane no)
{
    return mask ? yes : no;
}

SK_KERNEL sk_lane sk_lane_size(sk_lane a)
{
    return fabsf(a);
}

SK_KERNEL sk_lane sk_lane_sqrt(sk_lane a)
{
    return sqrtf(a);
}

SK_KERNEL sk_lane sk_lane_load(const float *from)
{
    return *from;
}

SK_KERNEL int sk_bits_of_64(uint64_t bits)
{
#ifdef __CUDA_ARCH__
    return __popcll(bits);
#else
    return __builtin_popcountll(bits);
#endif
}

SK_KERNEL int sk_lowest_bit(unsigned bits)
{
#ifdef __CUDA_ARCH__
    return __ffs((int)bits) - 1;
#else
    return __builtin_ctz(bits);
#endif
}

#endif

#endif

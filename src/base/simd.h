/* Eight floats at a time, in the compilers' own vector types: AVX-512, AVX2 and NEON all come out of the same lines. The
 * one thing the types cannot say, gathering, is spelled out where the machine has it. */
#ifndef SK_BASE_SIMD_H
#define SK_BASE_SIMD_H

#include <stdint.h>
#include <string.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

typedef float f4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef double d8 __attribute__((vector_size(64))); /* for sums */
typedef float f4_unaligned __attribute__((vector_size(16), aligned(4)));
typedef float f8_unaligned __attribute__((vector_size(32), aligned(4)));

#define SK_VECTOR static inline __attribute__((always_inline, unused))

SK_VECTOR f8 f8_splat(float value)
{
    return (f8){value, value, value, value, value, value, value, value};
}

SK_VECTOR i8 i8_splat(int32_t value)
{
    return (i8){value, value, value, value, value, value, value, value};
}

SK_VECTOR f8 f8_select(i8 mask, f8 yes, f8 no)
{
    return (f8)((mask & (i8)yes) | (~mask & (i8)no));
}

SK_VECTOR f8 f8_max(f8 a, f8 b)
{
    return f8_select(a > b, a, b);
}

SK_VECTOR f8 f8_min(f8 a, f8 b)
{
    return f8_select(a < b, a, b);
}

SK_VECTOR f8 f8_abs(f8 a)
{
    return (f8)((i8)a & i8_splat(0x7fffffff));
}

SK_VECTOR f8 f8_sqrt(f8 a)
{
#if defined(__AVX__)
    return (f8)_mm256_sqrt_ps((__m256)a);
#else
    for (int l = 0; l < 8; l++)
        a[l] = __builtin_sqrtf(a[l]);
    return a;
#endif
}

SK_VECTOR f8 f8_load(const float *from)
{
    return *(const f8_unaligned *)from;
}

SK_VECTOR void f8_store(float *to, f8 value)
{
    *(f8_unaligned *)to = value;
}

/* Towards zero. */
SK_VECTOR i8 i8_from_f8(f8 a)
{
    return __builtin_convertvector(a, i8);
}

SK_VECTOR f8 f8_from_i8(i8 a)
{
    return __builtin_convertvector(a, f8);
}

SK_VECTOR i8 i8_from_bytes(const uint8_t *from)
{
    typedef uint8_t bytes8 __attribute__((vector_size(8)));
    bytes8 bytes;
    memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, i8);
}

/* All ones in the first `count` lanes. */
SK_VECTOR i8 i8_first(int count)
{
    return (i8){0, 1, 2, 3, 4, 5, 6, 7} < count;
}

SK_VECTOR d8 d8_from_f8(f8 a)
{
    return __builtin_convertvector(a, d8);
}

SK_VECTOR double d8_sum(d8 a)
{
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* Is any lane of a mask set? */
SK_VECTOR int i8_any(i8 mask)
{
#if defined(__AVX2__)
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    int64_t words[4];
    memcpy(words, &mask, sizeof words);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}

/* base[index] and base[index + 1] in each lane. */
SK_VECTOR void f8_gather_pairs(const float *base, i8 index, f8 *first, f8 *second)
{
#if defined(__AVX2__)
    __m256d low = _mm256_i32gather_pd((const double *)(const void *)base, _mm256_castsi256_si128((__m256i)index), 4);
    __m256d high = _mm256_i32gather_pd((const double *)(const void *)base, _mm256_extracti128_si256((__m256i)index, 1), 4);
    f8 a = (f8)low, b = (f8)high;
    *first = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *second = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    f8 a, b;
    for (int l = 0; l < 8; l++) {
        a[l] = base[index[l]];
        b[l] = base[index[l] + 1];
    }
    *first = a;
    *second = b;
#endif
}

/* Eight rows of eight as eight columns; its own inverse. */
SK_VECTOR void f8_transpose(f8 r[8])
{
    f8 t[8], u[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        t[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 2; i++) {
            u[4 * h + i] = __builtin_shufflevector(t[4 * h + i], t[4 * h + 2 + i], 0, 1, 8, 9, 4, 5, 12, 13);
            u[4 * h + 2 + i] = __builtin_shufflevector(t[4 * h + i], t[4 * h + 2 + i], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        r[i] = __builtin_shufflevector(u[i], u[4 + i], 0, 1, 2, 3, 8, 9, 10, 11);
        r[4 + i] = __builtin_shufflevector(u[i], u[4 + i], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

#endif

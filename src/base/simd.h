/* Eight floats at a time, in the compilers' own vector types: AVX-512, AVX2 and NEON all come out of the same lines.
 * The one thing the types cannot say, gathering, is spelled out where the machine has it. Lanes are spelled out rather
 * than looped over: a compiler that does not unroll the loop would keep the vector in memory. */
#ifndef SK_BASE_SIMD_H
#define SK_BASE_SIMD_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

typedef float f4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef float f16 __attribute__((vector_size(64)));
typedef double d8 __attribute__((vector_size(64))); /* for sums */
typedef float f4_unaligned __attribute__((vector_size(16), aligned(4)));
typedef float f8_unaligned __attribute__((vector_size(32), aligned(4)));

#define SK_VECTOR static inline __attribute__((always_inline, unused))

/* The operations that vectors of every width have, under the names that all widths share: PREFIX_splat, _load, _store,
 * _select, _abs and conversions. `alignment` is that of memory, in bytes;
 * `attributes` are further ones of the types. Masks are all ones or all zeros. */
#define SK_VECTOR_FAMILY(f, i, lanes, alignment, attributes)                                                           \
    typedef float f __attribute__((vector_size(4 * (lanes)))) attributes;                                              \
    typedef int32_t i __attribute__((vector_size(4 * (lanes)))) attributes;                                            \
    typedef float f##_memory __attribute__((vector_size(4 * (lanes)), aligned(alignment))) attributes;                 \
    SK_VECTOR f f##_splat(float value)                                                                                 \
    {                                                                                                                  \
        return value - (f){0};                                                                                         \
    }                                                                                                                  \
    SK_VECTOR i i##_splat(int32_t value)                                                                               \
    {                                                                                                                  \
        return value - (i){0};                                                                                         \
    }                                                                                                                  \
    SK_VECTOR f f##_load(const float *from)                                                                            \
    {                                                                                                                  \
        return *(const f##_memory *)from;                                                                              \
    }                                                                                                                  \
    SK_VECTOR void f##_store(float *to, f value)                                                                       \
    {                                                                                                                  \
        *(f##_memory *)to = value;                                                                                     \
    }                                                                                                                  \
    SK_VECTOR f f##_select(i mask, f yes, f no)                                                                        \
    {                                                                                                                  \
        return (f)((mask & (i)yes) | (~mask & (i)no));                                                                 \
    }                                                                                                                  \
    SK_VECTOR f f##_abs(f a)                                                                                           \
    {                                                                                                                  \
        return (f)((i)a & i##_splat(0x7fffffff));                                                                      \
    }                                                                                                                  \
    /* Towards zero. */                                                                                                \
    SK_VECTOR i i##_from_##f(f a)                                                                                      \
    {                                                                                                                  \
        return __builtin_convertvector(a, i);                                                                          \
    }                                                                                                                  \
    SK_VECTOR f f##_from_##i(i a)                                                                                      \
    {                                                                                                                  \
        return __builtin_convertvector(a, f);                                                                          \
    }

/* Numbers too small for the usual form count as zero in the thread that asks, until it restores what was: on x86 each
 * one would cost a hundred cycles. */
SK_VECTOR unsigned long sk_flush_denormals(void)
{
#if defined(__SSE__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040u);
    return before;
#elif defined(__aarch64__)
    unsigned long before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | 1ul << 24));
    return before;
#else
    return 0;
#endif
}

SK_VECTOR void sk_restore_denormals(unsigned long before)
{
#if defined(__SSE__)
    _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

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

/* The second one where either is not a number, on every machine. */
SK_VECTOR f8 f8_max(f8 a, f8 b)
{
#if defined(__AVX__)
    return (f8)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return f8_select(a > b, a, b);
#endif
}

SK_VECTOR f8 f8_min(f8 a, f8 b)
{
#if defined(__AVX__)
    return (f8)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return f8_select(a < b, a, b);
#endif
}

SK_VECTOR f8 f8_abs(f8 a)
{
    return (f8)((i8)a & i8_splat(0x7fffffff));
}

SK_VECTOR f8 f8_sqrt(f8 a)
{
#if defined(__AVX__)
    return (f8)_mm256_sqrt_ps((__m256)a);
#elif defined(__wasm_simd128__)
    const v128_t low = wasm_f32x4_sqrt((v128_t)__builtin_shufflevector(a, a, 0, 1, 2, 3));
    const v128_t high = wasm_f32x4_sqrt((v128_t)__builtin_shufflevector(a, a, 4, 5, 6, 7));
    return __builtin_shufflevector((f4)low, (f4)high, 0, 1, 2, 3, 4, 5, 6, 7);
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

SK_VECTOR f4 f4_load(const float *from)
{
    return *(const f4_unaligned *)from;
}

SK_VECTOR void f4_store(float *to, f4 value)
{
    *(f4_unaligned *)to = value;
}

SK_VECTOR float f4_sum(f4 a)
{
    a += __builtin_shufflevector(a, a, 2, 3, 0, 1);
    return a[0] + a[1];
}

SK_VECTOR f4 f4_sqrt(f4 a)
{
#if defined(__SSE__)
    return (f4)_mm_sqrt_ps((__m128)a);
#elif defined(__aarch64__)
    return (f4)vsqrtq_f32((float32x4_t)a);
#elif defined(__wasm_simd128__)
    return (f4)wasm_f32x4_sqrt((v128_t)a);
#else
    for (int l = 0; l < 4; l++)
        a[l] = __builtin_sqrtf(a[l]);
    return a;
#endif
}

/* a * b + c: with one rounding where the machine can, whatever the compiler would contract. */
SK_VECTOR f4 f4_multiply_add(f4 a, f4 b, f4 c)
{
#if defined(__FMA__)
    return (f4)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#elif defined(__aarch64__)
    return (f4)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

SK_VECTOR f8 f8_multiply_add(f8 a, f8 b, f8 c)
{
#if defined(__FMA__)
    return (f8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    const f4 low = f4_multiply_add(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(b, b, 0, 1, 2, 3),
                                   __builtin_shufflevector(c, c, 0, 1, 2, 3));
    const f4 high =
        f4_multiply_add(__builtin_shufflevector(a, a, 4, 5, 6, 7), __builtin_shufflevector(b, b, 4, 5, 6, 7),
                        __builtin_shufflevector(c, c, 4, 5, 6, 7));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

/* The first `count` lanes. */
SK_VECTOR void f8_store_first(float *to, f8 value, uint32_t count)
{
    if (count >= 8)
        f8_store(to, value);
    else
        memcpy(to, &value, count * sizeof *to);
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

SK_VECTOR void i8_to_bytes(uint8_t *to, i8 values)
{
    typedef uint8_t bytes8 __attribute__((vector_size(8)));
    bytes8 bytes = __builtin_convertvector(values, bytes8);
    memcpy(to, &bytes, sizeof bytes);
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
#elif defined(__wasm_simd128__)
    return wasm_v128_any_true(
        (v128_t)(__builtin_shufflevector(mask, mask, 0, 1, 2, 3) | __builtin_shufflevector(mask, mask, 4, 5, 6, 7)));
#else
    int64_t words[4];
    memcpy(words, &mask, sizeof words);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}

/* A bit for each lane of a mask. */
SK_VECTOR unsigned i8_bits(i8 mask)
{
#if defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps((__m256)mask);
#elif defined(__wasm_simd128__)
    return wasm_i32x4_bitmask((v128_t)__builtin_shufflevector(mask, mask, 0, 1, 2, 3)) |
           wasm_i32x4_bitmask((v128_t)__builtin_shufflevector(mask, mask, 4, 5, 6, 7)) << 4;
#else
    mask &= (i8){1, 2, 4, 8, 16, 32, 64, 128};
    return (unsigned)(((mask[0] | mask[4]) | (mask[2] | mask[6])) | ((mask[1] | mask[5]) | (mask[3] | mask[7])));
#endif
}

/* base[index] in each lane. */
SK_VECTOR f8 f8_gather(const float *base, i8 index)
{
#if defined(__AVX2__)
    return (f8)_mm256_i32gather_ps(base, (__m256i)index, 4);
#else
    return (f8){base[index[0]], base[index[1]], base[index[2]], base[index[3]],
                base[index[4]], base[index[5]], base[index[6]], base[index[7]]};
#endif
}

SK_VECTOR i8 i8_from_shorts(const uint16_t *from)
{
#if defined(__AVX2__)
    return (i8)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
    typedef uint16_t shorts8 __attribute__((vector_size(16)));
    shorts8 shorts;
    memcpy(&shorts, from, sizeof shorts);
    return __builtin_convertvector(shorts, i8);
#endif
}

/* Numbers of half precision (10 bits of mantissa), below 65504. Without the machine's own conversion, what is smaller
 * than 6e-5 may come out as zero. */
SK_VECTOR f8 f8_from_halves(const uint16_t *from)
{
#if defined(__F16C__)
    return (f8)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
    i8 bits = i8_from_shorts(from);
    f8 value = (f8)((bits & 0x7fff) << 13) * 0x1p112f;
    return (f8)((i8)value | (bits & 0x8000) << 16);
#endif
}

SK_VECTOR f16 f16_from_halves(const uint16_t *from)
{
#if defined(__AVX512F__)
    return (f16)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
#else
    return __builtin_shufflevector(f8_from_halves(from), f8_from_halves(from + 8), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                   12, 13, 14, 15);
#endif
}

/* Four values, four times each. */
SK_VECTOR f16 f16_splat4(const float *a, const float *b, const float *c, const float *d)
{
#if defined(__AVX512F__)
    __m512 value = _mm512_set1_ps(*a);
    value = _mm512_mask_broadcastss_ps(value, 0x00f0, _mm_load_ss(b));
    value = _mm512_mask_broadcastss_ps(value, 0x0f00, _mm_load_ss(c));
    return (f16)_mm512_mask_broadcastss_ps(value, 0xf000, _mm_load_ss(d));
#else
    return (f16){*a, *a, *a, *a, *b, *b, *b, *b, *c, *c, *c, *c, *d, *d, *d, *d};
#endif
}

/* Four times four values. */
SK_VECTOR f16 f16_load4(const float *a, const float *b, const float *c, const float *d)
{
#if defined(__AVX512F__)
    __m512 value = _mm512_broadcast_f32x4(_mm_loadu_ps(a));
    value = _mm512_mask_broadcast_f32x4(value, 0x00f0, _mm_loadu_ps(b));
    value = _mm512_mask_broadcast_f32x4(value, 0x0f00, _mm_loadu_ps(c));
    return (f16)_mm512_mask_broadcast_f32x4(value, 0xf000, _mm_loadu_ps(d));
#else
    const f4 v[4] = {*(const f4_unaligned *)a, *(const f4_unaligned *)b, *(const f4_unaligned *)c,
                     *(const f4_unaligned *)d};
    f16 value;
    memcpy(&value, v, sizeof value);
    return value;
#endif
}

/* The four fours added up. */
SK_VECTOR f4 f16_sum4(f16 a)
{
    f8 half = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) +
              __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
}

SK_VECTOR void f8_to_halves(uint16_t *to, f8 value)
{
#if defined(__F16C__)
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph((__m256)value, 0));
#else
    typedef uint16_t shorts8 __attribute__((vector_size(16)));
    i8 bits = (i8)(f8_abs(value) * 0x1p-112f), sign = (i8)value >> 16 & 0x8000;
    shorts8 shorts = __builtin_convertvector(((bits + 0x1000) >> 13 & 0x7fff) | sign, shorts8);
    memcpy(to, &shorts, sizeof shorts);
#endif
}

SK_VECTOR float f8_sum(f8 a)
{
    f4 half = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    half += __builtin_shufflevector(half, half, 2, 3, 0, 1);
    return half[0] + half[1];
}

/* The floats at two addresses and behind them. */
SK_VECTOR f4 f4_load_pairs(const float *a, const float *b)
{
#if defined(__wasm_simd128__)
    return (f4)wasm_v128_load64_lane(b, wasm_v128_load64_zero(a), 1);
#else
    typedef float f2 __attribute__((vector_size(8)));
    f2 low, high;
    memcpy(&low, a, sizeof low);
    memcpy(&high, b, sizeof high);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3);
#endif
}

/* base[index] and base[index + 1] in each lane. */
SK_VECTOR void f8_gather_pairs(const float *base, i8 index, f8 *first, f8 *second)
{
#if defined(__AVX2__)
    __m256d low = _mm256_i32gather_pd((const double *)(const void *)base, _mm256_castsi256_si128((__m256i)index), 4);
    __m256d high =
        _mm256_i32gather_pd((const double *)(const void *)base, _mm256_extracti128_si256((__m256i)index, 1), 4);
    f8 a = (f8)low, b = (f8)high;
    *first = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *second = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    const f4 a = f4_load_pairs(base + index[0], base + index[1]), b = f4_load_pairs(base + index[2], base + index[3]);
    const f4 c = f4_load_pairs(base + index[4], base + index[5]), d = f4_load_pairs(base + index[6], base + index[7]);
    const f8 low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 1, 3, 5, 7);
    const f8 high = __builtin_shufflevector(c, d, 0, 2, 4, 6, 1, 3, 5, 7);
    *first = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
    *second = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
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

/* --- As many particles at a time as the machine has lanes ---
 *
 * For kernels whose lanes are particles. A cell holds about eight, often a few more: with sixteen lanes one batch does
 * where eight lanes need two, the second of them nearly empty.
 */
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define SK_WIDE 16
#else
#define SK_WIDE 8
#endif

SK_VECTOR_FAMILY(fw, iw, SK_WIDE, 4, )

#if SK_WIDE == 16
SK_VECTOR fw fw_max(fw a, fw b)
{
    return (fw)_mm512_max_ps((__m512)a, (__m512)b);
}
SK_VECTOR fw fw_min(fw a, fw b)
{
    return (fw)_mm512_min_ps((__m512)a, (__m512)b);
}
SK_VECTOR int iw_any(iw mask)
{
    return _mm512_movepi32_mask((__m512i)mask) != 0;
}
SK_VECTOR unsigned iw_bits(iw mask)
{
    return _mm512_movepi32_mask((__m512i)mask);
}
#define SK_WIDE_LANES 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#else
SK_VECTOR fw fw_max(fw a, fw b)
{
    return f8_max(a, b);
}
SK_VECTOR fw fw_min(fw a, fw b)
{
    return f8_min(a, b);
}
SK_VECTOR int iw_any(iw mask)
{
    return i8_any(mask);
}
SK_VECTOR unsigned iw_bits(iw mask)
{
    return i8_bits(mask);
}
#define SK_WIDE_LANES 0, 1, 2, 3, 4, 5, 6, 7
#endif

SK_VECTOR fw fw_sqrt(fw a)
{
#if SK_WIDE == 16
    return (fw)_mm512_sqrt_ps((__m512)a);
#else
    return f8_sqrt(a);
#endif
}

/* As f4_multiply_add. */
SK_VECTOR fw fw_multiply_add(fw a, fw b, fw c)
{
#if SK_WIDE == 16
    return (fw)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return f8_multiply_add(a, b, c);
#endif
}

/* Wraps around: what is no number, or far too large, becomes the smallest integer, and there is nothing below that. */
SK_VECTOR iw iw_minus(iw a, int32_t b)
{
    typedef uint32_t uw __attribute__((vector_size(4 * SK_WIDE)));
    return (iw)((uw)a - (uint32_t)b);
}

SK_VECTOR iw iw_first(int count)
{
    return (iw){SK_WIDE_LANES} < count;
}

/* Stores the lanes whose bits are set one after the other; returns how many. */
SK_VECTOR int iw_store_chosen(uint32_t *to, iw values, unsigned bits)
{
    const int count = __builtin_popcount(bits);
#if SK_WIDE == 16
    __m512i packed = _mm512_maskz_compress_epi32((__mmask16)bits, (__m512i)values);
    _mm512_mask_storeu_epi32(to, (__mmask16)((1u << count) - 1u), packed);
#else
    for (; bits; bits &= bits - 1)
        *to++ = (uint32_t)values[__builtin_ctz(bits)];
#endif
    return count;
}

/* The sum of the lanes, eight at a time, as doubles. */
SK_VECTOR d8 d8_from_fw(fw a)
{
#if SK_WIDE == 16
    return d8_from_f8(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)) +
           d8_from_f8(__builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15));
#else
    return d8_from_f8(a);
#endif
}

SK_VECTOR float fw_smallest(fw a)
{
#if SK_WIDE == 16
    return _mm512_reduce_min_ps((__m512)a);
#else
    float least = a[0];
    for (int l = 1; l < SK_WIDE; l++)
        least = a[l] < least ? a[l] : least;
    return least;
#endif
}

SK_VECTOR int32_t iw_largest(iw a)
{
#if SK_WIDE == 16
    return _mm512_reduce_max_epi32((__m512i)a);
#else
    int32_t most = a[0];
    for (int l = 1; l < SK_WIDE; l++)
        most = a[l] > most ? a[l] : most;
    return most;
#endif
}

SK_VECTOR iw iw_from_bytes(const uint8_t *from)
{
    typedef uint8_t bytes __attribute__((vector_size(SK_WIDE)));
    bytes values;
    memcpy(&values, from, sizeof values);
    return __builtin_convertvector(values, iw);
}

SK_VECTOR float fw_largest(fw a)
{
    float most = a[0];
    for (int l = 1; l < SK_WIDE; l++)
        most = a[l] > most ? a[l] : most;
    return most;
}

/* base[index] and base[index + 1] in each lane. */
SK_VECTOR void fw_gather_pairs(const float *base, iw index, fw *first, fw *second)
{
#if SK_WIDE == 16
    typedef int32_t half __attribute__((vector_size(32)));
    half lower = __builtin_shufflevector(index, index, 0, 1, 2, 3, 4, 5, 6, 7);
    half upper = __builtin_shufflevector(index, index, 8, 9, 10, 11, 12, 13, 14, 15);
    fw a = (fw)_mm512_i32gather_pd((__m256i)lower, base, 4), b = (fw)_mm512_i32gather_pd((__m256i)upper, base, 4);
    *first = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *second = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#else
    f8_gather_pairs(base, index, first, second);
#endif
}

/* values[index] in each lane, of at most 32, of which all 32 may be read. */
SK_VECTOR fw fw_look_up(const float *values, const int length, iw index)
{
#if SK_WIDE == 16
    if (length <= 16)
        return (fw)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(values));
    return (fw)_mm512_permutex2var_ps(_mm512_loadu_ps(values), (__m512i)index, _mm512_loadu_ps(values + 16));
#elif defined(__AVX2__)
    /* Of eight at a time, chosen by the higher bits: many times cheaper than a gather. */
    __m256 found = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values), (__m256i)index);
    const __m256 next = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + 8), (__m256i)index);
    found = _mm256_blendv_ps(found, next, (__m256)(index << 28));
    if (length > 16) {
        __m256 upper = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + 16), (__m256i)index);
        const __m256 last = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + 24), (__m256i)index);
        upper = _mm256_blendv_ps(upper, last, (__m256)(index << 28));
        found = _mm256_blendv_ps(found, upper, (__m256)(index << 27));
    }
    return (fw)found;
#else
    (void)length;
    return f8_gather(values, index & 31);
#endif
}

/* values[index] and values[index + 1] in each lane, likewise. `values` has a float more than `length` rounded up to 16
 * or 32. */
SK_VECTOR void fw_look_up_pairs(const float *values, const int length, iw index, fw *first, fw *second)
{
#if SK_WIDE == 16 || defined(__AVX2__)
    *first = fw_look_up(values, length, index);
    *second = fw_look_up(values, length, index + 1);
#else
    f8_gather_pairs(values, index & (length <= 16 ? 15 : 31), first, second);
#endif
}

/* Likewise of one of two rows, the second where the mask says so. */
SK_VECTOR fw fw_look_up_either(const float *first, const float *second, const int length, iw index, iw from_second)
{
#if SK_WIDE == 16
    if (length <= 16)
        return (fw)_mm512_permutex2var_ps(_mm512_loadu_ps(first), (__m512i)(index | (from_second & 16)),
                                          _mm512_loadu_ps(second));
#endif
    return fw_select(from_second, fw_look_up(second, length, index), fw_look_up(first, length, index));
}

/* Pairs as above of one of two rows of the same array. */
SK_VECTOR void fw_look_up_either_pairs(const float *first_row, const float *second_row, const int length, iw index,
                                       iw from_second, fw *first, fw *second)
{
#if SK_WIDE == 16 || defined(__AVX2__)
    *first = fw_look_up_either(first_row, second_row, length, index, from_second);
    *second = fw_look_up_either(first_row, second_row, length, index + 1, from_second);
#else
    const int32_t away = (int32_t)(second_row - first_row);
    f8_gather_pairs(first_row, (index & (length <= 16 ? 15 : 31)) + (from_second & away), first, second);
#endif
}

/* Which row a lane stands for when only the first `count` are in use: idle lanes repeat the last one. */
#define SK_LANES_OF(n)                                                                                                 \
    {                                                                                                                  \
        0, 1 < n ? 1 : n - 1, 2 < n ? 2 : n - 1, 3 < n ? 3 : n - 1, 4 < n ? 4 : n - 1, 5 < n ? 5 : n - 1,              \
            6 < n ? 6 : n - 1, 7 < n ? 7 : n - 1, 8 < n ? 8 : n - 1, 9 < n ? 9 : n - 1, 10 < n ? 10 : n - 1,           \
            11 < n ? 11 : n - 1, 12 < n ? 12 : n - 1, 13 < n ? 13 : n - 1, 14 < n ? 14 : n - 1, 15 < n ? 15 : n - 1    \
    }
static const uint8_t sk_lane_rows[17][16] __attribute__((unused)) = {
    SK_LANES_OF(1),  SK_LANES_OF(1),  SK_LANES_OF(2),  SK_LANES_OF(3),  SK_LANES_OF(4),  SK_LANES_OF(5),
    SK_LANES_OF(6),  SK_LANES_OF(7),  SK_LANES_OF(8),  SK_LANES_OF(9),  SK_LANES_OF(10), SK_LANES_OF(11),
    SK_LANES_OF(12), SK_LANES_OF(13), SK_LANES_OF(14), SK_LANES_OF(15), SK_LANES_OF(16)};

/* Four by four, in each part of 16 bytes; its own inverse. */
#define SK_TRANSPOSE_PARTS(vector, parts, other, v)                                                                    \
    do {                                                                                                               \
        vector low_a = __builtin_shufflevector(v[0], v[1], parts(0, other, 1, other + 1));                             \
        vector high_a = __builtin_shufflevector(v[0], v[1], parts(2, other + 2, 3, other + 3));                        \
        vector low_b = __builtin_shufflevector(v[2], v[3], parts(0, other, 1, other + 1));                             \
        vector high_b = __builtin_shufflevector(v[2], v[3], parts(2, other + 2, 3, other + 3));                        \
        v[0] = __builtin_shufflevector(low_a, low_b, parts(0, 1, other, other + 1));                                   \
        v[1] = __builtin_shufflevector(low_a, low_b, parts(2, 3, other + 2, other + 3));                               \
        v[2] = __builtin_shufflevector(high_a, high_b, parts(0, 1, other, other + 1));                                 \
        v[3] = __builtin_shufflevector(high_a, high_b, parts(2, 3, other + 2, other + 3));                             \
    } while (0)
#define SK_TWO_PARTS(a, b, c, d) a, b, c, d, a + 4, b + 4, c + 4, d + 4
#define SK_FOUR_PARTS(a, b, c, d)                                                                                      \
    a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8, d + 8, a + 12, b + 12, c + 12, d + 12

/* Four columns of the eight (sixteen) rows of eight floats that row[] lists, one lane a row. Spelled out for sixteen,
 * so that each insertion takes its row from memory and none is a shuffle. */
#define SK_LOAD_EIGHT(rows, row, columns)                                                                              \
    do {                                                                                                               \
        for (int i = 0; i < 4; i++)                                                                                    \
            columns[i] = __builtin_shufflevector(f4_load(rows + 8 * (size_t)row[i]),                                   \
                                                 f4_load(rows + 8 * (size_t)row[i + 4]), 0, 1, 2, 3, 4, 5, 6, 7);      \
        SK_TRANSPOSE_PARTS(f8, SK_TWO_PARTS, 8, columns);                                                              \
    } while (0)
#define SK_LOAD_SIXTEEN(rows, row, columns)                                                                            \
    do {                                                                                                               \
        for (int i = 0; i < 4; i++) {                                                                                  \
            __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(rows + 8 * (size_t)row[i]));                                \
            v = _mm512_insertf32x4(v, _mm_loadu_ps(rows + 8 * (size_t)row[i + 4]), 1);                                 \
            v = _mm512_insertf32x4(v, _mm_loadu_ps(rows + 8 * (size_t)row[i + 8]), 2);                                 \
            columns[i] = (fw)_mm512_insertf32x4(v, _mm_loadu_ps(rows + 8 * (size_t)row[i + 12]), 3);                   \
        }                                                                                                              \
        SK_TRANSPOSE_PARTS(fw, SK_FOUR_PARTS, 16, columns);                                                            \
    } while (0)

/* Four columns of rows of eight floats, as vectors of lanes, one lane a row. Lanes from `count` on repeat the last row;
 * count >= 1. Each row is read as 16 bytes into its part of a vector, which leaves little to shuffle. */
SK_VECTOR void f8_load_columns(const float *rows, int count, f8 columns[4])
{
    const uint8_t *row = sk_lane_rows[count];
    SK_LOAD_EIGHT(rows, row, columns);
}

/* And back. Idle lanes must hold what the last row's lane holds: they are stored there once more, which is cheaper than
 * to ask. */
SK_VECTOR void f8_store_columns(float *rows, int count, const f8 columns[4])
{
    const uint8_t *row = sk_lane_rows[count];
    f8 v[4] = {columns[0], columns[1], columns[2], columns[3]};
    SK_TRANSPOSE_PARTS(f8, SK_TWO_PARTS, 8, v);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
#if defined(__AVX__)
        /* The compiler would take the transposition apart again, lane by lane. */
        __asm__("" : "+v"(v[i]));
#endif
        *(f4_unaligned *)(rows + 8 * (size_t)row[i]) = __builtin_shufflevector(v[i], v[i], 0, 1, 2, 3);
        *(f4_unaligned *)(rows + 8 * (size_t)row[i + 4]) = __builtin_shufflevector(v[i], v[i], 4, 5, 6, 7);
    }
}

/* Of any rows. */
SK_VECTOR void fw_load_rows(const float *rows, const uint32_t row[SK_WIDE], fw columns[4])
{
#if SK_WIDE == 16
    SK_LOAD_SIXTEEN(rows, row, columns);
#else
    SK_LOAD_EIGHT(rows, row, columns);
#endif
}

#if SK_WIDE == 16
#define SK_STORE_SIXTEEN(rows, row, v)                                                                                 \
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                                                \
    {                                                                                                                  \
        __asm__("" : "+v"(v[i]));                                                                                      \
        _mm_storeu_ps(rows + 8 * (size_t)row[i], _mm512_castps512_ps128((__m512)v[i]));                                \
        _mm_storeu_ps(rows + 8 * (size_t)row[i + 4], _mm512_extractf32x4_ps((__m512)v[i], 1));                         \
        _mm_storeu_ps(rows + 8 * (size_t)row[i + 8], _mm512_extractf32x4_ps((__m512)v[i], 2));                         \
        _mm_storeu_ps(rows + 8 * (size_t)row[i + 12], _mm512_extractf32x4_ps((__m512)v[i], 3));                        \
    }

/* Nearly all batches are full, and then the compiler knows where the rows are. */
SK_VECTOR void fw_load_columns(const float *rows, int count, fw columns[4])
{
    const uint8_t *row = sk_lane_rows[count];
    if (count == SK_WIDE)
        SK_LOAD_SIXTEEN(rows, sk_lane_rows[16], columns);
    else
        SK_LOAD_SIXTEEN(rows, row, columns);
}

SK_VECTOR void fw_store_columns(float *rows, int count, const fw columns[4])
{
    const uint8_t *row = sk_lane_rows[count];
    fw v[4] = {columns[0], columns[1], columns[2], columns[3]};
    SK_TRANSPOSE_PARTS(fw, SK_FOUR_PARTS, 16, v);
    if (count == SK_WIDE)
        SK_STORE_SIXTEEN(rows, sk_lane_rows[16], v)
    else
        SK_STORE_SIXTEEN(rows, row, v)
}
#else
SK_VECTOR void fw_load_columns(const float *rows, int count, fw columns[4])
{
    f8_load_columns(rows, count, columns);
}
SK_VECTOR void fw_store_columns(float *rows, int count, const fw columns[4])
{
    f8_store_columns(rows, count, columns);
}
#endif

#endif

/* The laws of elastic_kernels.h for four, eight or sixteen points of one material at a time. For files compiled per
 * dimension.
 *
 * No eigenvectors: with b = F F^T, every law is a function of the matrix b itself. Hencky's strain is log(b)/2, by
 * X = (b - 1)(b + 1)^-1 and its series X + X^3/3 + X^5/5 + ..; the stretch V = sqrt(b) comes from Newton's iteration;
 * plastic flow multiplies F by the exponential of the change of Hencky's strain. Symmetric matrices that are functions
 * of b commute, so products of them are symmetric: 6 numbers (2D: 3), the upper triangle by rows.
 *
 * All start from b - 1, which keeps the digits of small strains. Stretches outside the reach of the series, inverted
 * points and tearing take the kernels' way, one point at a time.
 */
#ifndef SK_METHODS_ELASTIC_LANES_H
#define SK_METHODS_ELASTIC_LANES_H

#include "base/simd.h"
#include "methods/elastoplastic/elastic_kernels.h"

#define SK_LANES_INLINE static inline __attribute__((always_inline, unused))

/* Points in a group: 4, 8, or 16 with AVX-512; a file that takes more than four defines it before this header. */
#ifndef SK_LANES_COUNT
#define SK_LANES_COUNT 4
#endif

enum { SK_LANES = SK_LANES_COUNT, SK_SYMMETRIC = SELKIE_DIM == 3 ? 6 : 3 };

typedef float fl __attribute__((vector_size(4 * SK_LANES_COUNT)));
typedef int32_t sk_lane_mask __attribute__((vector_size(4 * SK_LANES_COUNT)));

/* The group of points, or fewer at the end. */
typedef struct sk_elastic_group {
    fl deformation[SELKIE_DIM * SELKIE_DIM]; /* F - 1, changed by plastic flow */
    fl strain, volume;                       /* sk_plastic_state, changed by plastic flow */
    fl stress[SK_SYMMETRIC];                 /* Pa    Kirchhoff's */
    fl equivalent;                           /* Pa    */
    fl energy, work;                         /* J/m3  */
    fl wave_square;                          /* m2/s2 of the speed of waves */
} sk_elastic_group;

/* --- Lanes --- */

SK_LANES_INLINE fl fl_splat(float value)
{
#if SK_LANES_COUNT == 16
    return (fl)_mm512_set1_ps(value);
#elif SK_LANES_COUNT == 8
    return f8_splat(value);
#else
    return (fl){value, value, value, value};
#endif
}

/* Eight lanes from the first and the last four, and back. AVX loads and stores the last four in one instruction, which
 * GCC does not find: it shuffles. */
#if SK_LANES_COUNT == 8
SK_LANES_INLINE fl fl_join(f4 low, f4 high)
{
#if defined(__AVX__)
    return (fl)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)low), (__m128)high, 1);
#else
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

SK_LANES_INLINE f4 fl_low(fl a)
{
    return __builtin_shufflevector(a, a, 0, 1, 2, 3);
}

SK_LANES_INLINE f4 fl_high(fl a)
{
#if defined(__AVX__)
    return (f4)_mm256_extractf128_ps((__m256)a, 1);
#else
    return __builtin_shufflevector(a, a, 4, 5, 6, 7);
#endif
}
#endif

typedef float fl_memory __attribute__((vector_size(4 * SK_LANES_COUNT), aligned(4)));

SK_LANES_INLINE fl fl_load(const float *from)
{
    return *(const fl_memory *)from;
}

SK_LANES_INLINE void fl_store(float *to, fl value)
{
    *(fl_memory *)to = value;
}

SK_LANES_INLINE fl fl_multiply_add(fl a, fl b, fl c)
{
#if SK_LANES_COUNT == 16
    return (fl)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif SK_LANES_COUNT == 4
    return f4_multiply_add(a, b, c);
#elif defined(__FMA__)
    return (fl)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return fl_join(f4_multiply_add(fl_low(a), fl_low(b), fl_low(c)),
                   f4_multiply_add(fl_high(a), fl_high(b), fl_high(c)));
#endif
}

SK_LANES_INLINE fl fl_sqrt(fl a)
{
#if SK_LANES_COUNT == 16
    return (fl)_mm512_sqrt_ps((__m512)a);
#elif SK_LANES_COUNT == 8
    return f8_sqrt(a);
#else
    return f4_sqrt(a);
#endif
}

/* scale b + c */
SK_LANES_INLINE fl sk_scaled_add(float scale, fl b, fl c)
{
    return fl_multiply_add(fl_splat(scale), b, c);
}

SK_LANES_INLINE fl sk_choose(sk_lane_mask mask, fl yes, fl no)
{
#if SK_LANES_COUNT == 8 && defined(__AVX__)
    return (fl)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
    return (fl)((mask & (sk_lane_mask)yes) | (~mask & (sk_lane_mask)no));
#endif
}

/* The second one where either is not a number, but on ARM, where it is the other. */
SK_LANES_INLINE fl sk_larger(fl a, fl b)
{
#if SK_LANES_COUNT == 16
    return (fl)_mm512_max_ps((__m512)a, (__m512)b);
#elif SK_LANES_COUNT == 8 && defined(__AVX__)
    return (fl)_mm256_max_ps((__m256)a, (__m256)b);
#elif SK_LANES_COUNT == 4 && defined(__SSE__)
    return (fl)_mm_max_ps((__m128)a, (__m128)b);
#elif SK_LANES_COUNT == 4 && defined(__aarch64__)
    return (fl)vmaxnmq_f32((float32x4_t)a, (float32x4_t)b);
#else
    return sk_choose(a > b, a, b);
#endif
}

SK_LANES_INLINE fl sk_absolute(fl a)
{
    return (fl)((sk_lane_mask)a & 0x7fffffff);
}

SK_LANES_INLINE int sk_any(sk_lane_mask mask)
{
#if SK_LANES_COUNT == 16
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif SK_LANES_COUNT == 8 && defined(__AVX__)
    return _mm256_movemask_ps((__m256)mask) != 0;
#elif SK_LANES_COUNT == 4 && defined(__aarch64__)
    return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
    typedef int64_t halves __attribute__((vector_size(4 * SK_LANES_COUNT)));
    const halves h = (halves)mask;
    int64_t any = h[0] | h[1];
    for (int l = 2; l < SK_LANES / 2; l++)
        any |= h[l];
    return any != 0;
#endif
}

/* --- Symmetric matrices --- */

/* Place of entry i, j in the upper triangle. */
SK_LANES_INLINE int sk_entry(int i, int j)
{
    const int low = i < j ? i : j, high = i < j ? j : i;
    return low * SELKIE_DIM - low * (low - 1) / 2 + high - low;
}

SK_LANES_INLINE int sk_is_diagonal(int entry)
{
    return entry == 0 || entry == SK_SYMMETRIC - 1 || (SELKIE_DIM == 3 && entry == 3);
}

/* a b, of matrices that commute. */
SK_LANES_INLINE void sk_symmetric_product(const fl *a, const fl *b, fl *result)
{
    fl sum[SK_SYMMETRIC];
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = i; j < SELKIE_DIM; j++) {
            fl total = a[sk_entry(i, 0)] * b[sk_entry(0, j)];
            for (int k = 1; k < SELKIE_DIM; k++)
                total = fl_multiply_add(a[sk_entry(i, k)], b[sk_entry(k, j)], total);
            sum[sk_entry(i, j)] = total;
        }
    for (int n = 0; n < SK_SYMMETRIC; n++)
        result[n] = sum[n];
}

SK_LANES_INLINE fl sk_trace(const fl *a)
{
    return SELKIE_DIM == 3 ? a[0] + a[3] + a[SK_SYMMETRIC - 1] : a[0] + a[SK_SYMMETRIC - 1];
}

/* Sum of the squares of all entries. */
SK_LANES_INLINE fl sk_squares(const fl *a)
{
    fl diagonal = fl_splat(0.0f), rest = fl_splat(0.0f);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        if (sk_is_diagonal(n))
            diagonal += a[n] * a[n];
        else
            rest += a[n] * a[n];
    return diagonal + 2.0f * rest;
}

/* Largest sum of the magnitudes of a row: at least the largest eigenvalue. */
SK_LANES_INLINE fl sk_row_norm(const fl *a)
{
    fl most = fl_splat(0.0f);
    for (int i = 0; i < SELKIE_DIM; i++) {
        fl sum = sk_absolute(a[sk_entry(i, 0)]);
        for (int k = 1; k < SELKIE_DIM; k++)
            sum += sk_absolute(a[sk_entry(i, k)]);
        most = sk_larger(sum, most);
    }
    return most;
}

/* sk_largest_of the eigenvalues. */
SK_LANES_INLINE fl sk_largest_bound(const fl *a)
{
    const float share = 1.0f - 1.0f / SELKIE_DIM;
    const fl mean = sk_trace(a) * (1.0f / SELKIE_DIM);
    fl shape[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++)
        shape[n] = sk_is_diagonal(n) ? a[n] - mean : a[n];
    return sk_larger(mean + fl_sqrt(share * sk_squares(shape)), fl_splat(0.0f));
}

SK_LANES_INLINE void sk_symmetric_inverse(const fl *a, fl *result)
{
#if SELKIE_DIM == 2
    const fl scale = 1.0f / (a[0] * a[2] - a[1] * a[1]);
    const fl first = a[2] * scale;
    result[2] = a[0] * scale;
    result[1] = -a[1] * scale;
    result[0] = first;
#else
    const fl c0 = a[3] * a[5] - a[4] * a[4], c1 = a[2] * a[4] - a[1] * a[5], c2 = a[1] * a[4] - a[2] * a[3];
    const fl c3 = a[0] * a[5] - a[2] * a[2], c4 = a[1] * a[2] - a[0] * a[4], c5 = a[0] * a[3] - a[1] * a[1];
    const fl scale = 1.0f / (a[0] * c0 + a[1] * c1 + a[2] * c2);
    result[0] = c0 * scale;
    result[1] = c1 * scale;
    result[2] = c2 * scale;
    result[3] = c3 * scale;
    result[4] = c4 * scale;
    result[5] = c5 * scale;
#endif
}

/* excess (excess + shift)^-1 */
SK_LANES_INLINE void sk_divide_by_shifted(const fl *excess, const fl *divisor, float shift, fl *result)
{
    fl shifted[SK_SYMMETRIC], inverse[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++)
        shifted[n] = sk_is_diagonal(n) ? divisor[n] + shift : divisor[n];
    sk_symmetric_inverse(shifted, inverse);
    sk_symmetric_product(excess, inverse, result);
}

/* b - 1 = D + D^T + D D^T, with D = F - 1. */
SK_LANES_INLINE void sk_excess(const fl *deformation, fl *excess)
{
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = i; j < SELKIE_DIM; j++) {
            fl sum = deformation[SELKIE_DIM * i + j] + deformation[SELKIE_DIM * j + i];
            for (int k = 0; k < SELKIE_DIM; k++)
                sum = fl_multiply_add(deformation[SELKIE_DIM * i + k], deformation[SELKIE_DIM * j + k], sum);
            excess[sk_entry(i, j)] = sum;
        }
}

/* det F - 1 without the loss of digits of det F. */
SK_LANES_INLINE fl sk_volume_change(const fl *d)
{
#if SELKIE_DIM == 2
    return d[0] + d[3] + (d[0] * d[3] - d[1] * d[2]);
#else
    const fl minors = d[0] * d[4] - d[1] * d[3] + d[0] * d[8] - d[2] * d[6] + d[4] * d[8] - d[5] * d[7];
    const fl product =
        d[0] * (d[4] * d[8] - d[5] * d[7]) - d[1] * (d[3] * d[8] - d[5] * d[6]) + d[2] * (d[3] * d[7] - d[4] * d[6]);
    return d[0] + d[4] + d[8] + minors + product;
#endif
}

/* --- Functions of b --- */

/* sum of c[n] a^n, n = 1 to `terms`. */
SK_LANES_INLINE void sk_power_series(const fl *a, const float *c, int terms, fl *result)
{
    fl sum[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++)
        sum[n] = c[terms] * a[n] + (sk_is_diagonal(n) ? c[terms - 1] : 0.0f);
    for (int power = terms - 2; power >= 1; power--) {
        sk_symmetric_product(a, sum, sum);
        for (int n = 0; n < SK_SYMMETRIC; n++)
            sum[n] += sk_is_diagonal(n) ? c[power] : 0.0f;
    }
    sk_symmetric_product(a, sum, result);
}

/* Reach of series of four terms in E = b - 1: the next one of the root, 7/256 E^5, is then below 3e-9, that of the
 * logarithm, E^5/10, below 1e-8. */
#define SK_SMALL_EXCESS 0.04f

SK_LANES_INLINE int sk_is_small(const fl *a, float reach)
{
    return !sk_any(~(sk_row_norm(a) < reach));
}

/* V - 1 by its series. Returns 0 where that does not reach. */
SK_LANES_INLINE int sk_small_stretch(const fl *excess, fl *result)
{
    static const float c[] = {0.0f, 0.5f, -1.0f / 8.0f, 1.0f / 16.0f, -5.0f / 128.0f};
    if (!sk_is_small(excess, SK_SMALL_EXCESS))
        return 0;
    sk_power_series(excess, c, 4, result);
    return 1;
}

/* exp(a) - 1, below 1/2 by eight terms, where the next is below 6e-9, else by halves: exp(a) = exp(a/2)^2. */
static __attribute__((noinline, unused)) void sk_long_exponential(const fl *a, fl *result)
{
    enum { MOST = 4 };
    static const float c[] = {0.0f,          1.0f,          1.0f / 2.0f,    1.0f / 6.0f,    1.0f / 24.0f,
                              1.0f / 120.0f, 1.0f / 720.0f, 1.0f / 5040.0f, 1.0f / 40320.0f};
    fl part[SK_SYMMETRIC], square[SK_SYMMETRIC];
    int halves = 0;
    for (int n = 0; n < SK_SYMMETRIC; n++)
        part[n] = a[n];
    for (; halves < MOST && !sk_is_small(part, 0.5f); halves++)
        for (int n = 0; n < SK_SYMMETRIC; n++)
            part[n] *= 0.5f;
    sk_power_series(part, c, 8, result);
    for (; halves > 0; halves--) {
        sk_symmetric_product(result, result, square);
        for (int n = 0; n < SK_SYMMETRIC; n++)
            result[n] = 2.0f * result[n] + square[n];
    }
}

/* exp(a) - 1: `few` terms, three or four, where a is small (the next is then below 1e-8 or 3e-11). */
SK_LANES_INLINE void sk_exponential(const fl *a, int few, fl *result)
{
    static const float c[] = {0.0f, 1.0f, 1.0f / 2.0f, 1.0f / 6.0f, 1.0f / 24.0f};
    if (sk_is_small(a, 0.02f))
        sk_power_series(a, c, few, result);
    else
        sk_long_exponential(a, result);
}

/* Where Newton's iteration Y <- (Y + Y^-1 b)/2 for V = sqrt(b) is stable: it amplifies rounding where the largest
 * stretch is more than three times the smallest one. Rows of b - 1 up to 1/2 keep that ratio below sqrt(3). */
#define SK_NEWTON_REACH 0.5f

/* V - 1 of large stretches by coupled iterations, which do not amplify rounding (Denman and Beavers 1976): Y <- (Y +
 * Z^-1)/2 to V and Z <- (Z + Y^-1)/2 to V^-1. Then V - 1 = (b - 1)(V + 1)^-1. Returns 0 if a lane does not converge. */
static __attribute__((noinline, unused)) int sk_long_stretch(const fl *excess, fl *result)
{
    enum { MOST = 12 };
    const float close = 2e-4f; /* of the root; errors are squared in each iteration */
    fl root[SK_SYMMETRIC], other[SK_SYMMETRIC], b[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++) {
        b[n] = sk_is_diagonal(n) ? 1.0f + excess[n] : excess[n];
        root[n] = sk_is_diagonal(n) ? 1.0f + 0.5f * excess[n] : 0.5f * excess[n];
    }
    sk_symmetric_inverse(b, other);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        other[n] = 0.5f * (sk_is_diagonal(n) ? 1.0f + other[n] : other[n]);
    for (int iteration = 0; iteration < MOST; iteration++) {
        fl inverse[SK_SYMMETRIC], other_inverse[SK_SYMMETRIC], change = fl_splat(0.0f), size = fl_splat(0.0f);
        sk_symmetric_inverse(root, inverse);
        sk_symmetric_inverse(other, other_inverse);
        for (int n = 0; n < SK_SYMMETRIC; n++) {
            const fl next = 0.5f * (root[n] + other_inverse[n]);
            change = sk_larger(sk_absolute(next - root[n]), change);
            size = sk_larger(sk_absolute(next), size);
            root[n] = next;
            other[n] = 0.5f * (other[n] + inverse[n]);
        }
        if (sk_any(~(change <= close * size)))
            continue;
        sk_divide_by_shifted(excess, root, 1.0f, result);
        return 1;
    }
    return 0;
}

/* V - 1, with V = sqrt(b). Returns 0 where no way reaches. */
SK_LANES_INLINE int sk_stretch(const fl *excess, fl *result)
{
    enum { MOST = 6 };
    if (sk_small_stretch(excess, result))
        return 1;
    if (!sk_is_small(excess, SK_NEWTON_REACH))
        return sk_long_stretch(excess, result);
    const float close = 2e-4f; /* errors are squared in each iteration, and the last formula divides them by 40 or so */
    fl root[SK_SYMMETRIC], b[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++) {
        b[n] = sk_is_diagonal(n) ? 1.0f + excess[n] : excess[n];
        root[n] = sk_is_diagonal(n) ? 1.0f + 0.5f * excess[n] : 0.5f * excess[n];
    }
    for (int iteration = 0; iteration < MOST; iteration++) {
        fl inverse[SK_SYMMETRIC], quotient[SK_SYMMETRIC], change = fl_splat(0.0f);
        sk_symmetric_inverse(root, inverse);
        sk_symmetric_product(inverse, b, quotient);
        for (int n = 0; n < SK_SYMMETRIC; n++) {
            const fl next = 0.5f * (root[n] + quotient[n]);
            change = sk_larger(sk_absolute(next - root[n]), change);
            root[n] = next;
        }
        if (!sk_any(change > close))
            break;
    }
    sk_divide_by_shifted(excess, root, 1.0f, result);
    return 1;
}

/* The inverse hyperbolic tangent of x, |x| below 1/4, where the next term, x^9/9, is below 1e-6. */
SK_LANES_INLINE void sk_inverse_tangent(const fl *x, fl *result)
{
    fl square[SK_SYMMETRIC], sum[SK_SYMMETRIC];
    sk_symmetric_product(x, x, square);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        sum[n] = square[n] * (1.0f / 7.0f) + (sk_is_diagonal(n) ? 0.2f : 0.0f);
    sk_symmetric_product(square, sum, sum);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        sum[n] += sk_is_diagonal(n) ? 1.0f / 3.0f : 0.0f;
    sk_symmetric_product(square, sum, sum);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        sum[n] += sk_is_diagonal(n) ? 1.0f : 0.0f;
    sk_symmetric_product(x, sum, result);
}

#define SK_TANGENT_REACH 0.25f

/* Hencky's strain of large stretches, by one root after the other: log b = 2 log V, log V = 2 log sqrt(V) .. Returns 0
 * beyond stretches of 7.7 and below 0.13. */
static __attribute__((noinline, unused)) int sk_far_hencky(const fl *excess, fl *strain)
{
    fl root[SK_SYMMETRIC], x[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++)
        root[n] = excess[n];
    for (float roots = 2.0f; roots <= 8.0f; roots *= 2.0f) {
        if (!sk_stretch(root, root))
            return 0;
        sk_divide_by_shifted(root, root, 2.0f, x);
        if (!sk_is_small(x, SK_TANGENT_REACH))
            continue;
        sk_inverse_tangent(x, strain);
        for (int n = 0; n < SK_SYMMETRIC; n++)
            strain[n] *= roots;
        return 1;
    }
    return 0;
}

/* Hencky's strain log(b)/2 = artanh((b - 1)(b + 1)^-1). Returns 0 where no way reaches. */
SK_LANES_INLINE int sk_hencky(const fl *excess, fl *strain)
{
    static const float c[] = {0.0f, 0.5f, -0.25f, 1.0f / 6.0f, -0.125f};
    fl x[SK_SYMMETRIC];
    if (sk_is_small(excess, SK_SMALL_EXCESS)) {
        sk_power_series(excess, c, 4, strain);
        return 1;
    }
    sk_divide_by_shifted(excess, excess, 2.0f, x);
    if (!sk_is_small(x, SK_TANGENT_REACH))
        return sk_far_hencky(excess, strain);
    sk_inverse_tangent(x, strain);
    return 1;
}

/* F <- exp(change) F. */
SK_LANES_INLINE void sk_apply_change(const fl *change, fl *deformation)
{
    fl series[SK_SYMMETRIC], next[SELKIE_DIM * SELKIE_DIM];
    sk_exponential(change, 3, series);
    for (int i = 0; i < SELKIE_DIM; i++)
        for (int j = 0; j < SELKIE_DIM; j++) {
            fl sum = series[sk_entry(i, j)];
            for (int k = 0; k < SELKIE_DIM; k++)
                sum = fl_multiply_add(series[sk_entry(i, k)], deformation[SELKIE_DIM * k + j], sum);
            next[SELKIE_DIM * i + j] = deformation[SELKIE_DIM * i + j] + sum;
        }
    for (int n = 0; n < SELKIE_DIM * SELKIE_DIM; n++)
        deformation[n] = next[n];
}

/* --- Plastic flow --- */

/* What flow leaves of the shape, and what it adds to the mean of Hencky's strain. */
typedef struct sk_lane_flow {
    fl left, shift;
} sk_lane_flow;

/* 1 - exp(-x), x not below 0: eight terms below 1/2, where the next is below 6e-9. */
SK_LANES_INLINE fl sk_decayed(fl x)
{
    if (sk_any(~(x < 0.5f))) {
        for (int l = 0; l < SK_LANES; l++)
            x[l] = -expm1f(-x[l]);
        return x;
    }
    fl sum = fl_splat(1.0f);
    for (int n = 8; n >= 2; n--)
        sum = fl_multiply_add(x * (-1.0f / (float)n), sum, fl_splat(1.0f));
    return x * sum;
}

/* sk_flow_von_mises. `length` is |shape|. */
SK_LANES_INLINE sk_lane_flow sk_lanes_von_mises(const sk_elastic_material *m, float dt, fl mean, fl length,
                                                sk_elastic_group *group)
{
    const float stiffness = 3.0f * m->mu;
    const fl q = (2.0f * m->mu * 1.22474487f) * length, excess = q - m->yield - m->hardening * group->strain;
    const sk_lane_mask flows = excess > 0.0f;
    fl share = fl_splat(1.0f);
    if (m->flow_time > 0.0f && sk_any(flows)) {
        const fl slower = m->thickening > 0.0f ? q * (1.0f / m->thickening) : share;
        share = sk_decayed(sk_choose(flows, (dt / m->flow_time) / slower, fl_splat(0.0f)));
    }
    const fl flow = sk_choose(flows, share * excess * (1.0f / (stiffness + m->hardening)), fl_splat(0.0f));
    const fl left = sk_choose(flows, 1.0f - stiffness * flow / q, fl_splat(1.0f));
    group->strain += flow;
    group->work = (q - 0.5f * stiffness * flow) * flow;
    return (sk_lane_flow){left, m->keeps_volume ? fl_splat(0.0f) : mean * (left - 1.0f)};
}

/* sk_flow_drucker_prager. */
SK_LANES_INLINE sk_lane_flow sk_lanes_drucker_prager(const sk_elastic_material *m, fl mean, fl length,
                                                     sk_elastic_group *group)
{
    const fl zero = fl_splat(0.0f), sum = (float)SELKIE_DIM * mean + group->volume, pressed = sum - m->tip;
    const sk_lane_mask parts = pressed >= 0.0f;
    const float factor = m->cone * (2.0f * m->mu + SELKIE_DIM * m->lambda) / (2.0f * m->mu);
    const fl allowed = sk_choose(parts, zero, -factor * pressed), over = length - allowed;
    const fl slip = sk_choose(over > 0.0f, over, zero);
    const fl target = sk_choose(parts, fl_splat(m->tip), sum) * (1.0f / SELKIE_DIM);
    group->volume = sk_choose(parts, pressed, zero);
    group->strain += 0.81649658f * slip;
    group->work = sk_choose(parts, zero, (2.0f * m->mu) * (allowed + 0.5f * slip) * slip);
    return (sk_lane_flow){sk_choose(over > 0.0f, allowed / length, fl_splat(1.0f)), target - mean};
}

/* Flow of the group; `strain` (Hencky's) changes with it. Returns whether any point flowed. */
SK_LANES_INLINE int sk_lanes_flow(const sk_elastic_material *material, float dt, fl *strain, sk_elastic_group *group)
{
    const fl mean = sk_trace(strain) * (1.0f / SELKIE_DIM);
    fl shape[SK_SYMMETRIC], change[SK_SYMMETRIC];
    for (int n = 0; n < SK_SYMMETRIC; n++)
        shape[n] = sk_is_diagonal(n) ? strain[n] - mean : strain[n];
    const fl length = fl_sqrt(sk_squares(shape));
    const sk_lane_flow flow = material->plasticity == SK_PLASTIC_VON_MISES
                                  ? sk_lanes_von_mises(material, dt, mean, length, group)
                                  : sk_lanes_drucker_prager(material, mean, length, group);
    if (!sk_any((flow.left != 1.0f) | (flow.shift != 0.0f)))
        return 0;
    for (int n = 0; n < SK_SYMMETRIC; n++) {
        change[n] = (flow.left - 1.0f) * shape[n] + (sk_is_diagonal(n) ? flow.shift : fl_splat(0.0f));
        strain[n] += change[n];
    }
    sk_apply_change(change, group->deformation);
    return 1;
}

/* --- Stress --- */

/* Laws that are quadratic in a strain: energy, and 2 mu strain + lambda trace. */
SK_LANES_INLINE void sk_lanes_quadratic(const sk_elastic_material *material, const fl *strain, sk_elastic_group *group)
{
    const fl trace = sk_trace(strain);
    group->energy = material->mu * sk_squares(strain) + (0.5f * material->lambda) * trace * trace;
    for (int n = 0; n < SK_SYMMETRIC; n++)
        group->stress[n] =
            (2.0f * material->mu) * strain[n] + (sk_is_diagonal(n) ? material->lambda * trace : fl_splat(0.0f));
}

/* Stress times 1 + strain: laws of V - 1, and with b - 1 that of the squares. */
SK_LANES_INLINE void sk_lanes_multiply(const fl *excess, sk_elastic_group *group)
{
    fl product[SK_SYMMETRIC];
    sk_symmetric_product(group->stress, excess, product);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        group->stress[n] += product[n];
}

SK_LANES_INLINE void sk_lanes_corotated(const sk_elastic_material *material, const fl *stretch, sk_elastic_group *group)
{
    const fl change = sk_volume_change(group->deformation), pressure = material->lambda * change * (1.0f + change);
    group->energy = material->mu * sk_squares(stretch) + (0.5f * material->lambda) * change * change;
    for (int n = 0; n < SK_SYMMETRIC; n++)
        group->stress[n] = (2.0f * material->mu) * stretch[n];
    sk_lanes_multiply(stretch, group);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        if (sk_is_diagonal(n))
            group->stress[n] += pressure;
}

/* Equivalent stress and speed of waves (sk_elastic_wave). `stretch2` is at least the square of the largest
 * stretch, and 1. */
SK_LANES_INLINE void sk_lanes_measure(const sk_elastic_material *material, fl stretch2, sk_elastic_group *group)
{
    fl shape[SK_SYMMETRIC];
    const fl mean = sk_trace(group->stress) * (1.0f / SELKIE_DIM);
    for (int n = 0; n < SK_SYMMETRIC; n++)
        shape[n] = sk_is_diagonal(n) ? group->stress[n] - mean : group->stress[n];
    group->equivalent = fl_sqrt(1.5f * sk_squares(shape));
    group->wave_square = fl_splat(material->wave_speed * material->wave_speed);
    if (material->law == SK_ELASTIC_COROTATED) {
        const fl volume = 1.0f + sk_volume_change(group->deformation),
                 volume2 = sk_larger(volume * volume, fl_splat(1.0f));
        group->wave_square = material->inverse_density * (2.0f * material->mu * stretch2 + material->lambda * volume2);
    } else if (material->law != SK_ELASTIC_HENCKY)
        group->wave_square *= material->law == SK_ELASTIC_SQUARED ? stretch2 * (1.5f * stretch2 - 0.5f) : stretch2;
}

/* Plastic flow in a time dt (s), then stress. Returns 0, and changes nothing, if a point needs the kernels. */
SK_LANES_INLINE int sk_lanes_law(const sk_elastic_material *material, float dt, sk_elastic_group *group)
{
    fl excess[SK_SYMMETRIC], strain[SK_SYMMETRIC];
    const int plastic = material->plasticity != SK_PLASTIC_NONE;
    if (material->tear > 0.0f || sk_any(~(sk_volume_change(group->deformation) > -0.9f)))
        return 0;
    sk_excess(group->deformation, excess);
    group->work = fl_splat(0.0f);
    if ((plastic || material->law == SK_ELASTIC_HENCKY) && !sk_hencky(excess, strain))
        return 0;
    const int flowed = plastic && sk_lanes_flow(material, dt, strain, group);

    if (material->law == SK_ELASTIC_HENCKY) {
        sk_lanes_quadratic(material, strain, group);
        sk_lanes_measure(material, fl_splat(1.0f), group);
        return 1;
    }
    if (material->law == SK_ELASTIC_SQUARED) {
        if (flowed)
            sk_excess(group->deformation, excess);
        for (int n = 0; n < SK_SYMMETRIC; n++)
            strain[n] = 0.5f * excess[n];
        sk_lanes_quadratic(material, strain, group);
        sk_lanes_multiply(excess, group);
        sk_lanes_measure(material, 1.0f + sk_largest_bound(excess), group);
        return 1;
    }

    /* Laws of V - 1. */
    fl stretch[SK_SYMMETRIC];
    if (plastic)
        sk_exponential(strain, 4, stretch);
    else if (!sk_stretch(excess, stretch))
        return 0;
    if (material->law == SK_ELASTIC_COROTATED)
        sk_lanes_corotated(material, stretch, group);
    else {
        sk_lanes_quadratic(material, stretch, group);
        sk_lanes_multiply(stretch, group);
    }
    const fl largest = 1.0f + sk_largest_bound(stretch);
    sk_lanes_measure(material, largest * largest, group);
    return 1;
}

#endif

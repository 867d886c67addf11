/* Eigenvectors, singular values and polar decompositions of 2x2 and 3x3 matrices: residuals, orthogonality, signs and
 * order on matrices of many kinds, in float and double; against LAPACK where it is here; lanes against the kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef SELKIE_HAVE_LAPACKE
#include <lapacke.h>
#endif

#include "base/random.h"
#include "base/simd.h"
#include "linalg/small_dense.h"
#include "linalg/small_dense_kernels.h"

enum { MATRICES = 2000 }; /* of a kind */

typedef struct precision {
    const char *name;
    int single;
    double epsilon, smallest, largest; /* smallest: denormal */
} precision;

static const precision precisions[2] = {{"float", 1, FLT_EPSILON, 0x1p-149, FLT_MAX},
                                        {"double", 0, DBL_EPSILON, 0x1p-1074, DBL_MAX}};

typedef enum kind {
    RANDOM,          /* entries of -1 to 1 */
    ROTATED,         /* two rotations and random values between them */
    NEARLY_EQUAL,    /* two values differ by 1e-6, the third is near them or not */
    EQUAL,           /* a rotation times a number, or a reflection */
    SINGULAR,        /* one value is zero */
    RANK_ONE,        /* all but one are */
    INVERTED,        /* one value is negative */
    GRADED,          /* values of 1 to 1e-12 */
    GRADED_ENTRIES,  /* entries of 1 to 1e-12 */
    WHOLE,           /* small whole numbers: exact ties and zeros */
    NEARLY_DIAGONAL, /* entries beside the diagonal of 1e-8 to 1 */
    TINY,            /* denormal numbers */
    HUGE_VALUES,     /* a third of the largest number */
    ZERO,
    KINDS
} kind;

static double random_number(kind k, size_t i, int channel)
{
    const uint64_t seed = 100 + (uint64_t)k, c = 2 * (uint64_t)channel;
    double fine = (double)sk_random_float(seed, i, c + 1) / 16777216.0;
    return 2.0 * ((double)sk_random_float(seed, i, c) + fine) - 1.0;
}

static void random_rotation(int n, kind k, size_t i, int channel, double q[9])
{
    double x[4], norm = 0.0;
    for (int d = 0; d < 4; d++)
        x[d] = n == 2 && (d == 1 || d == 2) ? 0.0 : random_number(k, i, channel + d);
    for (int d = 0; d < 4; d++)
        norm += x[d] * x[d];
    for (int d = 0; d < 4; d++)
        x[d] /= sqrt(norm);
    const double w = x[0], a = x[1], b = x[2], c = x[3];
    const double full[9] = {1 - 2 * (b * b + c * c), 2 * (a * b - w * c),     2 * (a * c + w * b),
                            2 * (a * b + w * c),     1 - 2 * (a * a + c * c), 2 * (b * c - w * a),
                            2 * (a * c - w * b),     2 * (b * c + w * a),     1 - 2 * (a * a + b * b)};
    for (int r = 0; r < n; r++)
        for (int s = 0; s < n; s++)
            q[n * r + s] = full[3 * r + s];
}

static void random_values(int n, kind k, size_t i, double values[3])
{
    for (int d = 0; d < n; d++)
        values[d] = k == GRADED ? pow(10.0, -12.0 * fabs(random_number(k, i, d))) : random_number(k, i, d);
    if (k == NEARLY_EQUAL || k == EQUAL)
        for (int d = 1; d < (i % 3 == 0 ? 2 : n); d++)
            values[d] = values[0] * (i % 2 && d == n - 1 ? -1.0 : 1.0) + (k == EQUAL ? 0.0 : 1e-6 * values[d]);
    if (k == SINGULAR || k == RANK_ONE)
        for (int d = k == SINGULAR ? n - 1 : 1; d < n; d++)
            values[d] = 0.0;
    if (k == INVERTED)
        for (int d = 0; d < n; d++)
            values[d] = fabs(values[d]) * (d == (int)(i % (size_t)n) ? -1.0 : 1.0);
}

/* An entry of the kinds that are made entry by entry. */
static double random_entry(const precision *p, kind k, size_t i, int entry, int diagonal)
{
    const double value = random_number(k, i, entry), decades = fabs(random_number(k, i, 9 + entry));
    switch (k) {
    case GRADED_ENTRIES:
        return value * pow(10.0, -12.0 * decades);
    case WHOLE:
        return trunc(3.0 * value);
    case NEARLY_DIAGONAL:
        return diagonal ? value : value * pow(10.0, -8.0 * fabs(random_number(k, i, 20)));
    case TINY:
        return trunc(value * 1000.0) * p->smallest;
    case HUGE_VALUES:
        return value * p->largest / 3.0;
    case ZERO:
        return 0.0;
    default:
        return value;
    }
}

/* Matrix i of a kind, n x n, symmetric or not, in numbers that the precision has. */
static void make(const precision *p, kind k, size_t i, int n, int symmetric, double *a)
{
    if (k >= ROTATED && k <= GRADED) {
        double u[9], v[9], values[3];
        random_rotation(n, k, i, 10, u);
        random_rotation(n, k, i, symmetric ? 10 : 20, v);
        random_values(n, k, i, values);
        for (int r = 0; r < n; r++)
            for (int s = 0; s < n; s++) {
                a[n * r + s] = 0.0;
                for (int d = 0; d < n; d++)
                    a[n * r + s] += u[n * r + d] * values[d] * v[n * s + d];
            }
    } else {
        for (int entry = 0; entry < n * n; entry++)
            a[entry] = random_entry(p, k, i, entry, entry % (n + 1) == 0);
    }
    for (int r = 0; r < n; r++)
        for (int s = 0; s < n; s++) {
            a[n * r + s] = symmetric && s < r ? a[n * s + r] : a[n * r + s];
            a[n * r + s] = p->single ? (double)(float)a[n * r + s] : a[n * r + s];
        }
}

/* --- The kernels of both precisions and dimensions behind one face; in and out are doubles --- */

static void upper_triangle(int n, const double *a, double *triangle)
{
    for (int r = 0; r < n; r++)
        for (int s = r; s < n; s++)
            *triangle++ = a[n * r + s];
}

static void from_triangle(int n, const double *triangle, double *a)
{
    for (int r = 0; r < n; r++)
        for (int s = r; s < n; s++)
            a[n * r + s] = a[n * s + r] = *triangle++;
}

static void to_floats(int count, const double *from, float *to)
{
    for (int i = 0; i < count; i++)
        to[i] = (float)from[i];
}

static void to_doubles(int count, const float *from, double *to)
{
    for (int i = 0; i < count; i++)
        to[i] = (double)from[i];
}

static void eigen(const precision *p, int n, const double *a, double *values, double *vectors)
{
    double triangle[6] = {0};
    upper_triangle(n, a, triangle);
    if (p->single) {
        float in[6], out_values[9] = {0}, out_vectors[9] = {0};
        to_floats(6, triangle, in);
        if (n == 2)
            sk_eigen_2d(in, out_values, out_vectors);
        else
            sk_eigen_3d(in, out_values, out_vectors);
        to_doubles(n, out_values, values);
        to_doubles(n * n, out_vectors, vectors);
    } else if (n == 2) {
        sk_eigen_double_2d(triangle, values, vectors);
    } else {
        sk_eigen_double_3d(triangle, values, vectors);
    }
}

static void svd(const precision *p, int n, sk_svd_signs signs, const double *a, double *u, double *values, double *v)
{
    typedef void single(const float *, float *, float *, float *);
    typedef void twice(const double *, double *, double *, double *);
    if (p->single) {
        single *const kernels[4] = {sk_svd_2d, sk_svd_3d, sk_svd_nonnegative_2d, sk_svd_nonnegative_3d};
        float in[9] = {0}, out_u[9] = {0}, out_values[3] = {0}, out_v[9] = {0};
        to_floats(n * n, a, in);
        kernels[2 * (signs == SK_SVD_NONNEGATIVE) + n - 2](in, out_u, out_values, out_v);
        to_doubles(n * n, out_u, u);
        to_doubles(n, out_values, values);
        to_doubles(n * n, out_v, v);
    } else {
        twice *const kernels[4] = {sk_svd_double_2d, sk_svd_double_3d, sk_svd_nonnegative_double_2d,
                                   sk_svd_nonnegative_double_3d};
        kernels[2 * (signs == SK_SVD_NONNEGATIVE) + n - 2](a, u, values, v);
    }
}

static void polar(const precision *p, int n, const double *a, double *rotation, double *stretch)
{
    double triangle[6];
    if (p->single) {
        float in[9], out_rotation[9] = {0}, out_triangle[6] = {0};
        to_floats(n * n, a, in);
        if (n == 2)
            sk_polar_2d(in, out_rotation, out_triangle);
        else
            sk_polar_3d(in, out_rotation, out_triangle);
        to_doubles(n * n, out_rotation, rotation);
        to_doubles(6, out_triangle, triangle);
    } else if (n == 2) {
        sk_polar_double_2d(a, rotation, triangle);
    } else {
        sk_polar_double_3d(a, rotation, triangle);
    }
    from_triangle(n, triangle, stretch);
}

/* --- What is measured, in long double --- */

static long double determinant(int n, const double *a)
{
    const long double x = a[0], y = a[1], z = a[2];
    if (n == 2)
        return x * a[3] - y * z;
    return x * ((long double)a[4] * a[8] - (long double)a[5] * a[7]) -
           y * ((long double)a[3] * a[8] - (long double)a[5] * a[6]) +
           z * ((long double)a[3] * a[7] - (long double)a[4] * a[6]);
}

/* The largest entry of |Q^T Q - 1|; NaN stays. */
static long double skewness(int n, const double *q)
{
    long double most = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            long double sum = i == j ? -1 : 0;
            for (int d = 0; d < n; d++)
                sum += (long double)q[n * d + i] * q[n * d + j];
            most = fabsl(sum) <= most ? most : fabsl(sum);
        }
    return most;
}

/* The largest entry of |A - U diag(values) V^T|. */
static long double residual(int n, const double *a, const double *u, const double *values, const double *v)
{
    long double most = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            long double sum = -(long double)a[n * i + j];
            for (int d = 0; d < n; d++)
                sum += (long double)u[n * i + d] * values[d] * v[n * j + d];
            most = fabsl(sum) <= most ? most : fabsl(sum);
        }
    return most;
}

/* The largest entry of |A - R S|. */
static long double product_residual(int n, const double *a, const double *r, const double *s)
{
    long double most = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            long double sum = -(long double)a[n * i + j];
            for (int d = 0; d < n; d++)
                sum += (long double)r[n * i + d] * s[n * d + j];
            most = fabsl(sum) <= most ? most : fabsl(sum);
        }
    return most;
}

static void expect(int good, const char *what, const precision *p, int n, int k, size_t i, long double value)
{
    if (!good)
        fail_msg("%s: %dx%d, %s, kind %d, matrix %zu: %Lg", what, n, n, p->name, k, i, value);
}

/* Rounding of entries, of at most 15 rotations of V and of the products: see docs/decisions/0014-small-dense.md. Values
 * below the smallest normal number are rounded to multiples of the smallest one. */
static long double bound(const precision *p, double largest)
{
    return SK_SMALL_DENSE_ERROR * (long double)p->epsilon * fabs(largest) + 4 * (long double)p->smallest;
}

typedef void each_matrix(const precision *p, int n, kind k, size_t i);

static void for_all(each_matrix *what)
{
    for (int p = 0; p < 2; p++)
        for (int n = 2; n <= 3; n++)
            for (int k = 0; k < KINDS; k++)
                for (size_t i = 0; i < MATRICES; i++)
                    what(&precisions[p], n, (kind)k, i);
}

/* --- Eigenvectors --- */

static void check_eigen(const precision *p, int n, kind k, size_t i)
{
    double a[9], values[3], q[9];
    make(p, k, i, n, 1, a);
    eigen(p, n, a, values, q);
    const double largest = fmax(fabs(values[0]), fabs(values[n - 1]));
    long double error = residual(n, a, q, values, q), skew = skewness(n, q);
    expect(error <= bound(p, largest), "residual of eigenvectors", p, n, k, i, error);
    expect(skew <= SK_SMALL_DENSE_ERROR * p->epsilon, "eigenvectors are not orthonormal", p, n, k, i, skew);
    expect(determinant(n, q) > 0, "eigenvectors are left-handed", p, n, k, i, determinant(n, q));
    for (int d = 1; d < n; d++)
        expect(values[d - 1] >= values[d], "eigenvalues are not sorted", p, n, k, i, values[d]);
}

static void eigenvectors(void **state)
{
    (void)state;
    for_all(check_eigen);
}

/* --- Singular values --- */

static void check_svd(const precision *p, int n, kind k, size_t i)
{
    double a[9], u[9], values[3], v[9], w[9], sizes[3], same_v[9];
    make(p, k, i, n, 0, a);
    svd(p, n, SK_SVD_ROTATIONS, a, u, values, v);
    long double error = residual(n, a, u, values, v), skew = fmaxl(skewness(n, u), skewness(n, v));
    expect(error <= bound(p, values[0]), "residual of singular values", p, n, k, i, error);
    expect(skew <= SK_SMALL_DENSE_ERROR * p->epsilon, "singular vectors are not orthonormal", p, n, k, i, skew);
    expect(determinant(n, u) > 0 && determinant(n, v) > 0, "U or V is no rotation", p, n, k, i, determinant(n, u));
    for (int d = 1; d < n; d++)
        expect(values[d - 1] >= fabs(values[d]), "singular values are not sorted", p, n, k, i, values[d]);

    /* The sign is that of the determinant, where that is beyond rounding. */
    const int sure = fabs(values[n - 1]) > (double)bound(p, values[0]);
    if (sure && (k == RANDOM || k == ROTATED || k == INVERTED))
        expect((determinant(n, a) < 0) == (values[n - 1] < 0), "sign of the smallest value", p, n, k, i, values[n - 1]);

    /* Without signs: the same but for the last column of U. */
    svd(p, n, SK_SVD_NONNEGATIVE, a, w, sizes, same_v);
    error = residual(n, a, w, sizes, v);
    expect(error <= bound(p, values[0]), "residual of non-negative values", p, n, k, i, error);
    expect(memcmp(v, same_v, sizeof *v * (size_t)(n * n)) == 0, "V depends on the signs", p, n, k, i, 0);
    for (int d = 0; d < n; d++)
        expect(sizes[d] >= 0 && sizes[d] == fabs(values[d]), "a negative value", p, n, k, i, sizes[d]);
}

static void singular_values(void **state)
{
    (void)state;
    for_all(check_svd);
}

/* --- Polar decomposition --- */

/* R and S are products of U, V and the values: each adds its own errors, so three times the bound. */
static void check_polar(const precision *p, int n, kind k, size_t i)
{
    double a[9], r[9], s[9], u[9], values[3], v[9];
    make(p, k, i, n, 0, a);
    polar(p, n, a, r, s);
    svd(p, n, SK_SVD_ROTATIONS, a, u, values, v);
    long double error = product_residual(n, a, r, s), skew = skewness(n, r);
    expect(error <= 3 * bound(p, values[0]), "residual of R S", p, n, k, i, error);
    expect(skew <= 3 * SK_SMALL_DENSE_ERROR * p->epsilon, "R is not orthonormal", p, n, k, i, skew);
    expect(determinant(n, r) > 0, "R is no rotation", p, n, k, i, determinant(n, r));

    /* R is the nearest rotation: no other has a larger trace of R^T A, the sum of the signed values. */
    long double trace = 0;
    for (int d = 0; d < n * n; d++)
        trace += (long double)r[d] * a[d];
    for (int d = 0; d < n; d++)
        trace -= values[d];
    expect(fabsl(trace) <= 9 * bound(p, values[0]), "R is not the nearest rotation", p, n, k, i, trace);
}

static void polar_decompositions(void **state)
{
    (void)state;
    for_all(check_polar);
}

/* A known rotation times a known stretch, inverted or not, gives the rotation back. The condition of R is
 * 2 / (values[1] + values[2]) (Mathias 1993); R is continuous through an inversion for the same reason. */
static void check_known_rotation(const precision *p, int n, kind k, size_t i)
{
    double q[9], v[9], a[9], r[9], s[9], worst = 0.0;
    double values[3] = {2.0, 1.0 + 0.5 * random_number(k, i, 0), 0.9 * random_number(k, i, 1) - 0.4};
    if (n == 2)
        values[1] = values[2];
    if (values[n - 2] + values[n - 1] < 0.1)
        return;
    random_rotation(n, k, i, 10, q);
    random_rotation(n, k, i, 20, v);
    for (int row = 0; row < n; row++)
        for (int column = 0; column < n; column++) {
            double sum = 0.0;
            for (int d = 0; d < n; d++)
                for (int e = 0; e < n; e++)
                    sum += q[n * row + e] * v[n * e + d] * values[d] * v[n * column + d];
            a[n * row + column] = p->single ? (double)(float)sum : sum;
        }
    polar(p, n, a, r, s);
    for (int d = 0; d < n * n; d++)
        worst = fmax(worst, fabs(r[d] - q[d]));
    const double condition = 2.0 / (values[n - 2] + values[n - 1]);
    expect(worst <= (3 + 3 * 2.0 * condition) * SK_SMALL_DENSE_ERROR * p->epsilon, "R of a known rotation", p, n, k, i,
           worst);
}

static void known_rotations(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++)
        for (int n = 2; n <= 3; n++)
            for (size_t i = 0; i < 5 * MATRICES; i++)
                check_known_rotation(&precisions[p], n, ROTATED, i);
}

/* --- Special matrices --- */

static void exact_cases(void **state)
{
    (void)state;
    const double one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zero[9] = {0}, diagonal[9] = {4, 0, 0, 0, 3, 0, 0, 0, -2};
    const double one_2d[4] = {1, 0, 0, 1};
    for (int p = 0; p < 2; p++) {
        double r[9], s[9], values[3], q[9];
        polar(&precisions[p], 3, zero, r, s);
        for (int d = 0; d < 9; d++)
            assert_true(r[d] == one[d] && s[d] == 0.0);
        polar(&precisions[p], 2, zero, r, s);
        for (int d = 0; d < 4; d++)
            assert_true(r[d] == one_2d[d] && s[d] == 0.0);
        polar(&precisions[p], 3, one, r, s);
        for (int d = 0; d < 9; d++)
            assert_true(r[d] == one[d] && s[d] == one[d]);
        polar(&precisions[p], 3, diagonal, r, s);
        for (int d = 0; d < 9; d++)
            assert_true(r[d] == one[d] && s[d] == diagonal[d]);
        eigen(&precisions[p], 3, diagonal, values, q);
        for (int d = 0; d < 9; d++)
            assert_true(q[d] == one[d]);
        assert_true(values[0] == 4 && values[1] == 3 && values[2] == -2);
    }
}

static void assert_all_nan(int count, const double *values)
{
    for (int i = 0; i < count; i++)
        assert_true(isnan(values[i]));
}

static void not_finite(void **state)
{
    (void)state;
    const double bad[3] = {NAN, INFINITY, -INFINITY};
    for (int p = 0; p < 2; p++)
        for (int n = 2; n <= 3; n++)
            for (int entry = 0; entry < n * n; entry++)
                for (int b = 0; b < 3; b++) {
                    double a[9], u[9], values[3], v[9];
                    make(&precisions[p], RANDOM, 1, n, 1, a);
                    a[entry] = a[entry % n * n + entry / n] = bad[b];
                    eigen(&precisions[p], n, a, values, v);
                    assert_all_nan(n, values);
                    assert_all_nan(n * n, v);
                    svd(&precisions[p], n, SK_SVD_NONNEGATIVE, a, u, values, v);
                    assert_all_nan(n * n, u);
                    assert_all_nan(n, values);
                    assert_all_nan(n * n, v);
                    polar(&precisions[p], n, a, u, v);
                    assert_all_nan(n * n, u);
                    assert_all_nan(n * n, v);
                }
}

/* Threads that count denormal numbers as zero get rotations all the same. */
static void without_denormals(void **state)
{
    (void)state;
    for (size_t i = 0; i < MATRICES; i++) {
        float a[9], u[9], values[3], v[9];
        double wide_u[9], wide_v[9];
        for (int d = 0; d < 9; d++)
            a[d] = (float)(random_number(TINY, i, d) * (i % 2 ? 1e-37 : 1e-42));
        unsigned long before = sk_flush_denormals();
        sk_svd_3d(a, u, values, v);
        sk_restore_denormals(before);
        to_doubles(9, u, wide_u);
        to_doubles(9, v, wide_v);
        assert_true(skewness(3, wide_u) <= SK_SMALL_DENSE_ERROR * (long double)FLT_EPSILON);
        assert_true(skewness(3, wide_v) <= SK_SMALL_DENSE_ERROR * (long double)FLT_EPSILON);
        assert_true(values[0] >= values[1] && values[1] >= fabsf(values[2]));
    }
}

/* --- LAPACK --- */

#ifdef SELKIE_HAVE_LAPACKE
/* LAPACK computes in double; its own error is a few epsilons of double. */
static void check_lapack(const precision *p, int n, kind k, size_t i)
{
    double a[9], copy[9], u[9], values[3], v[9], theirs[3], their_u[9], their_v[9], spare[3];
    if (i >= MATRICES / 4 || (!p->single && k == TINY))
        return; /* LAPACK does not keep a few epsilons on denormal numbers */
    make(p, k, i, n, 0, a);
    svd(p, n, SK_SVD_NONNEGATIVE, a, u, values, v);
    memcpy(copy, a, sizeof a);
    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'A', 'A', n, n, copy, n, theirs, their_u, n, their_v, n, spare),
                     0);
    for (int d = 0; d < n; d++)
        expect(fabs(values[d] - theirs[d]) <= 2 * bound(p, theirs[0]), "value unlike LAPACK's", p, n, k, i,
               values[d] - theirs[d]);

    /* Where the first value stands apart, so does its vector. */
    const double gap = theirs[0] > 0 ? 1.0 - theirs[1] / theirs[0] : 0.0;
    double cosine = 0.0;
    for (int d = 0; d < n; d++)
        cosine += v[n * d] * their_v[d];
    if (gap > 0.01)
        expect(1.0 - fabs(cosine) <= 4 * SK_SMALL_DENSE_ERROR * p->epsilon / gap, "vector unlike LAPACK's", p, n, k, i,
               cosine);

    make(p, k, i, n, 1, a);
    eigen(p, n, a, values, v);
    memcpy(copy, a, sizeof a);
    assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', n, copy, n, theirs), 0);
    const double largest = fmax(fabs(theirs[0]), fabs(theirs[n - 1]));
    for (int d = 0; d < n; d++)
        expect(fabs(values[d] - theirs[n - 1 - d]) <= 2 * bound(p, largest), "eigenvalue unlike LAPACK's", p, n, k, i,
               values[d] - theirs[n - 1 - d]);
}

static void against_lapack(void **state)
{
    (void)state;
    for_all(check_lapack);
}
#else
static void against_lapack(void **state)
{
    (void)state;
    print_message("built without LAPACKE (liblapacke-dev)\n");
    skip();
}
#endif

/* --- Lanes --- */

typedef struct batch {
    size_t count;
    float *a, *triangles;             /* count x 9 or less */
    float *u, *values, *v, *expected; /* likewise; expected: u, values, v of the kernel */
} batch;

/* Same values; compilers may choose the sign of a zero in each form. */
static int differ(float a, float b)
{
    return isnan(b) ? !isnan(a) : a != b;
}

static void compare(const batch *b, size_t i, int size, const float *got, const float *expected)
{
    for (int d = 0; d < size; d++)
        if (differ(got[(size_t)size * i + (size_t)d], expected[d]))
            fail_msg("matrix %zu of %zu: number %d is %.9g in a batch and %.9g alone", i, b->count, d,
                     (double)got[(size_t)size * i + (size_t)d], (double)expected[d]);
}

static void check_batch_3d(batch *b, int threads)
{
    float u[9], values[6], v[9];
    for (int signs = 0; signs < 2; signs++) {
        sk_svd_batch_3d(b->count, b->a, b->u, b->values, b->v, (sk_svd_signs)signs, threads);
        for (size_t i = 0; i < b->count; i++) {
            if (signs == SK_SVD_ROTATIONS)
                sk_svd_3d(b->a + 9 * i, u, values, v);
            else
                sk_svd_nonnegative_3d(b->a + 9 * i, u, values, v);
            compare(b, i, 9, b->u, u);
            compare(b, i, 3, b->values, values);
            compare(b, i, 9, b->v, v);
        }
    }
    sk_polar_batch_3d(b->count, b->a, b->u, b->values, threads);
    sk_eigen_batch_3d(b->count, b->triangles, b->expected, b->v, threads);
    for (size_t i = 0; i < b->count; i++) {
        sk_polar_3d(b->a + 9 * i, u, values);
        compare(b, i, 9, b->u, u);
        compare(b, i, 6, b->values, values);
        sk_eigen_3d(b->triangles + 6 * i, values, v);
        compare(b, i, 3, b->expected, values);
        compare(b, i, 9, b->v, v);
    }
}

static void check_batch_2d(batch *b, int threads)
{
    float u[4], values[3], v[4];
    for (int signs = 0; signs < 2; signs++) {
        sk_svd_batch_2d(b->count, b->a, b->u, b->values, b->v, (sk_svd_signs)signs, threads);
        for (size_t i = 0; i < b->count; i++) {
            if (signs == SK_SVD_ROTATIONS)
                sk_svd_2d(b->a + 4 * i, u, values, v);
            else
                sk_svd_nonnegative_2d(b->a + 4 * i, u, values, v);
            compare(b, i, 4, b->u, u);
            compare(b, i, 2, b->values, values);
            compare(b, i, 4, b->v, v);
        }
    }
    sk_polar_batch_2d(b->count, b->a, b->u, b->values, threads);
    sk_eigen_batch_2d(b->count, b->triangles, b->expected, b->v, threads);
    for (size_t i = 0; i < b->count; i++) {
        sk_polar_2d(b->a + 4 * i, u, values);
        compare(b, i, 4, b->u, u);
        compare(b, i, 3, b->values, values);
        sk_eigen_2d(b->triangles + 3 * i, values, v);
        compare(b, i, 2, b->expected, values);
        compare(b, i, 4, b->v, v);
    }
}

/* All kinds in turn, so that neighbouring lanes hold unlike matrices; now and then one that is not finite. */
static void fill_batch(batch *b, int n)
{
    const int triangle = n * (n + 1) / 2;
    for (size_t i = 0; i < b->count; i++) {
        double a[9], packed[6];
        make(&precisions[0], (kind)(i % KINDS), i, n, 0, a);
        if (i % 37 == 5)
            a[i % (size_t)(n * n)] = i % 2 ? NAN : INFINITY;
        to_floats(n * n, a, b->a + (size_t)(n * n) * i);
        upper_triangle(n, a, packed);
        to_floats(triangle, packed, b->triangles + (size_t)triangle * i);
    }
}

static void lanes_as_kernels(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 5000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        batch b = {.count = counts[c]};
        float **const arrays[6] = {&b.a, &b.triangles, &b.u, &b.values, &b.v, &b.expected};
        for (int i = 0; i < 6;
             i++) /* as long as the longest of them in 3D: the sanitizers see what is read or written beyond */
            assert_non_null(*arrays[i] = malloc((9 * b.count + 1) * sizeof(float)));
        for (int threads = 1; threads <= 3; threads += 2) {
            fill_batch(&b, 2);
            check_batch_2d(&b, threads);
            fill_batch(&b, 3);
            check_batch_3d(&b, threads);
        }
        for (int i = 0; i < 6; i++)
            free(*arrays[i]);
    }
}

/* Doubles go through the kernels themselves. */
static void batches_of_doubles(void **state)
{
    (void)state;
    enum { COUNT = 19 };
    for (int n = 2; n <= 3; n++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const size_t full = (size_t)(n * n), triangle = (size_t)(n * (n + 1) / 2), size = (size_t)n;
            double a[9 * COUNT], packed[6 * COUNT], u[9 * COUNT], values[6 * COUNT], v[9 * COUNT], r[9], s[9], t[9];
            for (size_t i = 0; i < COUNT; i++) {
                make(&precisions[1], RANDOM, i, n, 1, a + full * i);
                upper_triangle(n, a + full * i, packed + triangle * i);
            }
            for (int signs = 0; signs < 2; signs++) {
                (n == 2 ? sk_svd_batch_double_2d : sk_svd_batch_double_3d)(COUNT, a, u, values, v, (sk_svd_signs)signs,
                                                                           threads);
                for (size_t i = 0; i < COUNT; i++) {
                    svd(&precisions[1], n, (sk_svd_signs)signs, a + full * i, r, s, t);
                    assert_memory_equal(u + full * i, r, full * sizeof *r);
                    assert_memory_equal(values + size * i, s, size * sizeof *s);
                    assert_memory_equal(v + full * i, t, full * sizeof *t);
                }
            }
            (n == 2 ? sk_eigen_batch_double_2d : sk_eigen_batch_double_3d)(COUNT, packed, values, v, threads);
            for (size_t i = 0; i < COUNT; i++) {
                eigen(&precisions[1], n, a + full * i, s, r);
                assert_memory_equal(values + size * i, s, size * sizeof *s);
                assert_memory_equal(v + full * i, r, full * sizeof *r);
            }
            (n == 2 ? sk_polar_batch_double_2d : sk_polar_batch_double_3d)(COUNT, a, u, values, threads);
            for (size_t i = 0; i < COUNT; i++) {
                polar(&precisions[1], n, a + full * i, r, s);
                upper_triangle(n, s, t);
                assert_memory_equal(u + full * i, r, full * sizeof *r);
                assert_memory_equal(values + triangle * i, t, triangle * sizeof *t);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigenvectors),       cmocka_unit_test(singular_values), cmocka_unit_test(polar_decompositions),
        cmocka_unit_test(known_rotations),    cmocka_unit_test(exact_cases),     cmocka_unit_test(not_finite),
        cmocka_unit_test(without_denormals),  cmocka_unit_test(against_lapack),  cmocka_unit_test(lanes_as_kernels),
        cmocka_unit_test(batches_of_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

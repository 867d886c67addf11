/* Eigenvectors, singular values and polar decomposition of one 2x2 or 3x3 matrix, in float and in double.
 *
 * Matrices are row-major: 9 numbers, or 4 in 2D. Symmetric ones are the upper triangle by rows: xx xy xz yy yz zz, or
 * xx xy yy in 2D. Vectors are columns. Inputs and outputs must not overlap.
 *
 *   eigen            A = Q diag(values) Q^T, values largest first, Q a rotation
 *   svd              A = U diag(values) V^T, U and V rotations, values[0] >= values[1] >= |values[2]|: the sign of the
 *                    determinant is that of the smallest value (Irving, Teran and Fedkiw 2004)
 *   svd_nonnegative  the same with no value below zero; the last column of U changes sign for that
 *   polar            A = R S, R = U V^T the rotation nearest to A, S = V diag(values) V^T symmetric, one eigenvalue of
 * it negative where A inverts. R is continuous wherever it is unique: values[1] + values[2] > 0.
 *
 * The methods have a fixed number of operations:
 *   Eigenvectors, 3x3: a fixed number of cyclic Jacobi sweeps (Golub and Van Loan 2013, 8.5), the angles by a rational
 *   approximation in the manner of McAdams et al. 2011, but closer to the exact angle.
 *   SVD, 3x3: Jacobi on A^T A. Only its first vector is used directly: small singular values are lost in A^T A. B = A
 * V. The first column of B gives that of U. The rest of B, orthogonal to it, is a 2x2 matrix whose SVD has a closed
 * form (Blinn 1996). Its error is a small multiple of epsilon |A|, where eigenvectors of A^T A alone, with a QR
 *   factorisation of B, leave sqrt(epsilon) |A| if the values are far apart.
 *
 * Entries are first scaled by a power of two: any finite matrix is decomposed, zero, singular, of 1e-45 or of 1e38. A
 * value beyond the largest float is infinite, and then S of the polar decomposition may be NaN. Errors are relative to
 * the largest value: |A - U S V^T| <= SK_SMALL_DENSE_ERROR epsilon |A|. If an entry is not finite, all results are NaN.
 *
 * The same bits in every form (float here, lanes in small_dense.h, on CPUs that have a fused multiply-add also nvcc's):
 * see small_dense_body_kernels.h.
 *
 * References: G. Irving, J. Teran, R. Fedkiw, Invertible finite elements for robust simulation of large deformation,
 * SCA 2004. A. McAdams et al., Computing the singular value decomposition of 3x3 matrices with minimal branching and
 * elementary floating point operations, University of Wisconsin TR1690, 2011. J. Blinn, Consider the lowly 2x2 matrix,
 * IEEE CG&A 16 (2), 1996. T. Duff et al., Building an orthonormal basis, revisited, JCGT 6 (1), 2017. G. H. Golub, C.
 * F. Van Loan, Matrix computations, 4th ed., 2013.
 */
#ifndef SK_LINALG_SMALL_DENSE_KERNELS_H
#define SK_LINALG_SMALL_DENSE_KERNELS_H

#include <math.h>
#include <stdint.h>
#include "base/kernel.h"

/* Upper bound, in epsilons, of departures from orthogonality (largest entry) and, times |A|, of residuals. */
#define SK_SMALL_DENSE_ERROR 16

/* A function of the body, for any of the types. */
#define SK_KERNEL_BODY SK_KERNEL

/* Has the machine a fused multiply-add? If so, a compiler may use it anywhere: then all forms use it explicitly. */
#if defined(__CUDACC__) || defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMAF)
#define SK_FUSED(fused, plain) (fused)
#else
#define SK_FUSED(fused, plain) (plain)
#endif

/* --- The operations of the body on floats --- */

SK_KERNEL float sk_splat_float(float value)
{
    return value;
}

SK_KERNEL float sk_multiply_add_float(float a, float b, float c)
{
    return SK_FUSED(fmaf(a, b, c), a * b + c);
}

SK_KERNEL float sk_sqrt_float(float a)
{
    return sqrtf(a);
}

SK_KERNEL float sk_abs_float(float a)
{
    return fabsf(a);
}

SK_KERNEL float sk_select_float(int mask, float yes, float no)
{
    return mask ? yes : no;
}

/* The largest power of two that is not above a normal number. */
SK_KERNEL float sk_power_of_two_float(float a)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.number = a;
    both.bits &= 0x7f800000u;
    return both.number;
}

SK_KERNEL float sk_inverse_power_of_two_float(float a)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.number = a;
    both.bits = 0x7f000000u - (both.bits & 0x7f800000u);
    return both.number;
}

#define SK_SWEEPS_FLOAT 4
#define SK_NEGLIGIBLE_FLOAT 0x1p-112f
#define SK_SMALL_FACTOR_FLOAT 0x1p40f
#define SK_LARGEST_POWER_FLOAT 0x1p126f
#define SK_SMALLEST_POWER_FLOAT 0x1p-126f

#define SK_REAL float
#define SK_MASK int
#define SK_REAL_(name) name##float
#define SK_SWEEPS SK_SWEEPS_FLOAT
#define SK_NEGLIGIBLE SK_NEGLIGIBLE_FLOAT
#define SK_SMALL_FACTOR SK_SMALL_FACTOR_FLOAT
#define SK_LARGEST_POWER SK_LARGEST_POWER_FLOAT
#define SK_SMALLEST_POWER SK_SMALLEST_POWER_FLOAT
#include "linalg/small_dense_body_kernels.h"

/* --- The operations of the body on doubles --- */

SK_KERNEL double sk_splat_double(double value)
{
    return value;
}

SK_KERNEL double sk_multiply_add_double(double a, double b, double c)
{
    return SK_FUSED(fma(a, b, c), a * b + c);
}

SK_KERNEL double sk_sqrt_double(double a)
{
    return sqrt(a);
}

SK_KERNEL double sk_abs_double(double a)
{
    return fabs(a);
}

SK_KERNEL double sk_select_double(int mask, double yes, double no)
{
    return mask ? yes : no;
}

SK_KERNEL double sk_power_of_two_double(double a)
{
    union {
        double number;
        uint64_t bits;
    } both;
    both.number = a;
    both.bits &= 0x7ff0000000000000u;
    return both.number;
}

SK_KERNEL double sk_inverse_power_of_two_double(double a)
{
    union {
        double number;
        uint64_t bits;
    } both;
    both.number = a;
    both.bits = 0x7fe0000000000000u - (both.bits & 0x7ff0000000000000u);
    return both.number;
}

#define SK_REAL double
#define SK_MASK int
#define SK_REAL_(name) name##double
#define SK_SWEEPS 5
#define SK_NEGLIGIBLE 0x1p-260
#define SK_SMALL_FACTOR 0x1p300
#define SK_LARGEST_POWER 0x1p1022
#define SK_SMALLEST_POWER 0x1p-1022
#include "linalg/small_dense_body_kernels.h"

/* --- Public functions; SK_DIM(sk_svd) is the one of the dimension --- */

SK_KERNEL void sk_eigen_2d(const float a[3], float values[2], float vectors[4])
{
    sk_eigen_body_2d_float(a, values, vectors);
}

SK_KERNEL void sk_eigen_3d(const float a[6], float values[3], float vectors[9])
{
    sk_eigen_body_3d_float(a, values, vectors);
}

SK_KERNEL void sk_svd_2d(const float a[4], float u[4], float values[2], float v[4])
{
    sk_svd_body_2d_float(a, u, values, v);
}

SK_KERNEL void sk_svd_3d(const float a[9], float u[9], float values[3], float v[9])
{
    sk_svd_body_3d_float(a, u, values, v);
}

SK_KERNEL void sk_svd_nonnegative_2d(const float a[4], float u[4], float values[2], float v[4])
{
    sk_svd_body_2d_float(a, u, values, v);
    sk_make_nonnegative_float(2, u, values);
}

SK_KERNEL void sk_svd_nonnegative_3d(const float a[9], float u[9], float values[3], float v[9])
{
    sk_svd_body_3d_float(a, u, values, v);
    sk_make_nonnegative_float(3, u, values);
}

SK_KERNEL void sk_polar_2d(const float a[4], float rotation[4], float stretch[3])
{
    sk_polar_body_2d_float(a, rotation, stretch);
}

SK_KERNEL void sk_polar_3d(const float a[9], float rotation[9], float stretch[6])
{
    sk_polar_body_3d_float(a, rotation, stretch);
}

SK_KERNEL void sk_eigen_double_2d(const double a[3], double values[2], double vectors[4])
{
    sk_eigen_body_2d_double(a, values, vectors);
}

SK_KERNEL void sk_eigen_double_3d(const double a[6], double values[3], double vectors[9])
{
    sk_eigen_body_3d_double(a, values, vectors);
}

SK_KERNEL void sk_svd_double_2d(const double a[4], double u[4], double values[2], double v[4])
{
    sk_svd_body_2d_double(a, u, values, v);
}

SK_KERNEL void sk_svd_double_3d(const double a[9], double u[9], double values[3], double v[9])
{
    sk_svd_body_3d_double(a, u, values, v);
}

SK_KERNEL void sk_svd_nonnegative_double_2d(const double a[4], double u[4], double values[2], double v[4])
{
    sk_svd_body_2d_double(a, u, values, v);
    sk_make_nonnegative_double(2, u, values);
}

SK_KERNEL void sk_svd_nonnegative_double_3d(const double a[9], double u[9], double values[3], double v[9])
{
    sk_svd_body_3d_double(a, u, values, v);
    sk_make_nonnegative_double(3, u, values);
}

SK_KERNEL void sk_polar_double_2d(const double a[4], double rotation[4], double stretch[3])
{
    sk_polar_body_2d_double(a, rotation, stretch);
}

SK_KERNEL void sk_polar_double_3d(const double a[9], double rotation[9], double stretch[6])
{
    sk_polar_body_3d_double(a, rotation, stretch);
}

#endif

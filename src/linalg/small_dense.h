/* Eigenvectors, singular values and polar decompositions of many 2x2 or 3x3 matrices: small_dense_kernels.h over lanes
 * and threads. Results have the bits of the kernels, for any number of threads and any place in a batch.
 *
 * Matrices follow each other in memory, row-major: 9 (4) numbers each; symmetric ones 6 (3), values 3 (2).
 * small_dense_kernels.h defines the decompositions. Inputs and outputs must not overlap. `threads` is at least 1.
 * Doubles are processed one matrix at a time, without lanes.
 */
#ifndef SK_LINALG_SMALL_DENSE_H
#define SK_LINALG_SMALL_DENSE_H

#include <stddef.h>

typedef enum sk_svd_signs {
    SK_SVD_ROTATIONS,  /* U and V are rotations; the smallest value has the sign of the determinant */
    SK_SVD_NONNEGATIVE /* no value is negative; U is a reflection if the determinant is negative */
} sk_svd_signs;

/* a: count x 3 (6); values: count x 2 (3), largest first; vectors: count x 4 (9), columns. */
void sk_eigen_batch_2d(size_t count, const float *a, float *values, float *vectors, int threads);
void sk_eigen_batch_3d(size_t count, const float *a, float *values, float *vectors, int threads);
void sk_eigen_batch_double_2d(size_t count, const double *a, double *values, double *vectors, int threads);
void sk_eigen_batch_double_3d(size_t count, const double *a, double *values, double *vectors, int threads);

/* a, u, v: count x 4 (9); values: count x 2 (3). */
void sk_svd_batch_2d(size_t count, const float *a, float *u, float *values, float *v, sk_svd_signs signs, int threads);
void sk_svd_batch_3d(size_t count, const float *a, float *u, float *values, float *v, sk_svd_signs signs, int threads);
void sk_svd_batch_double_2d(size_t count, const double *a, double *u, double *values, double *v, sk_svd_signs signs,
                            int threads);
void sk_svd_batch_double_3d(size_t count, const double *a, double *u, double *values, double *v, sk_svd_signs signs,
                            int threads);

/* a, rotations: count x 4 (9); stretches: count x 3 (6). */
void sk_polar_batch_2d(size_t count, const float *a, float *rotations, float *stretches, int threads);
void sk_polar_batch_3d(size_t count, const float *a, float *rotations, float *stretches, int threads);
void sk_polar_batch_double_2d(size_t count, const double *a, double *rotations, double *stretches, int threads);
void sk_polar_batch_double_3d(size_t count, const double *a, double *rotations, double *stretches, int threads);

#endif

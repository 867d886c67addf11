#include "linalg/small_dense.h"
#include "base/simd.h"
#include "linalg/small_dense_kernels.h"

/* --- The operations of the kernels' body on lanes ---
 *
 * As wide as a register. Compilers split wider vectors and then compare lane by lane, which is slow.
 */
#if defined(__AVX__)
enum { LANES = SK_WIDE };
typedef fw lanes;
typedef iw lane_mask;
#define MULTIPLY_ADD fw_multiply_add
#define SQUARE_ROOT fw_sqrt
#else
enum { LANES = 4 };
typedef f4 lanes;
typedef int32_t lane_mask __attribute__((vector_size(16)));
#define MULTIPLY_ADD f4_multiply_add
#define SQUARE_ROOT f4_sqrt
#endif

SK_VECTOR lanes sk_splat_lanes(float value)
{
    return value - (lanes){0};
}

SK_VECTOR lanes sk_multiply_add_lanes(lanes a, lanes b, lanes c)
{
    return MULTIPLY_ADD(a, b, c);
}

SK_VECTOR lanes sk_sqrt_lanes(lanes a)
{
    return SQUARE_ROOT(a);
}

SK_VECTOR lanes sk_abs_lanes(lanes a)
{
    return (lanes)((lane_mask)a & 0x7fffffff);
}

SK_VECTOR lanes sk_select_lanes(lane_mask mask, lanes yes, lanes no)
{
    return (lanes)((mask & (lane_mask)yes) | (~mask & (lane_mask)no));
}

SK_VECTOR lanes sk_power_of_two_lanes(lanes a)
{
    return (lanes)((lane_mask)a & 0x7f800000);
}

SK_VECTOR lanes sk_inverse_power_of_two_lanes(lanes a)
{
    return (lanes)(0x7f000000 - ((lane_mask)a & 0x7f800000));
}

#define SK_REAL lanes
#define SK_MASK lane_mask
#define SK_REAL_(name) name##lanes
#define SK_SWEEPS SK_SWEEPS_FLOAT
#define SK_NEGLIGIBLE SK_NEGLIGIBLE_FLOAT
#define SK_SMALL_FACTOR SK_SMALL_FACTOR_FLOAT
#define SK_LARGEST_POWER SK_LARGEST_POWER_FLOAT
#define SK_SMALLEST_POWER SK_SMALLEST_POWER_FLOAT
#include "linalg/small_dense_body_kernels.h"

/* --- Between memory and lanes: `size` numbers a matrix, one lane a matrix --- */

/* Lanes from `count` on repeat the last matrix. */
SK_VECTOR void load_lanes(const float *from, int size, int count, lanes *to)
{
    for (int i = 0; i < size; i++) {
        float column[LANES];
        for (int l = 0; l < LANES; l++)
            column[l] = from[size * (l < count ? l : count - 1) + i];
        memcpy(&to[i], column, sizeof column);
    }
}

SK_VECTOR void store_lanes(float *to, int size, int count, const lanes *from)
{
    for (int i = 0; i < size; i++) {
        float column[LANES];
        memcpy(column, &from[i], sizeof column);
        for (int l = 0; l < count; l++)
            to[size * l + i] = column[l];
    }
}

/* --- Batches --- */

/* Matrices of a group of lanes that begins at `first`. */
static int group_size(size_t first, size_t count)
{
    return count - first < LANES ? (int)(count - first) : LANES;
}

/* A loop over the groups, or, with step 1, over the matrices. Threads write different matrices. */
#define FOR_EACH(first, step)                                                                                          \
    _Pragma("omp parallel for num_threads(threads) if (threads > 1)") for (size_t first = 0; first < count;            \
                                                                           first += step)

void sk_eigen_batch_2d(size_t count, const float *a, float *values, float *vectors, int threads)
{
    FOR_EACH(first, LANES)
    {
        const int size = group_size(first, count);
        lanes in[3], lane_values[2], lane_vectors[4];
        load_lanes(a + 3 * first, 3, size, in);
        sk_eigen_body_2d_lanes(in, lane_values, lane_vectors);
        store_lanes(values + 2 * first, 2, size, lane_values);
        store_lanes(vectors + 4 * first, 4, size, lane_vectors);
    }
}

void sk_eigen_batch_3d(size_t count, const float *a, float *values, float *vectors, int threads)
{
    FOR_EACH(first, LANES)
    {
        const int size = group_size(first, count);
        lanes in[6], lane_values[3], lane_vectors[9];
        load_lanes(a + 6 * first, 6, size, in);
        sk_eigen_body_3d_lanes(in, lane_values, lane_vectors);
        store_lanes(values + 3 * first, 3, size, lane_values);
        store_lanes(vectors + 9 * first, 9, size, lane_vectors);
    }
}

void sk_svd_batch_2d(size_t count, const float *a, float *u, float *values, float *v, sk_svd_signs signs, int threads)
{
    FOR_EACH(first, LANES)
    {
        const int size = group_size(first, count);
        lanes in[4], lane_u[4], lane_values[2], lane_v[4];
        load_lanes(a + 4 * first, 4, size, in);
        sk_svd_body_2d_lanes(in, lane_u, lane_values, lane_v);
        if (signs == SK_SVD_NONNEGATIVE)
            sk_make_nonnegative_lanes(2, lane_u, lane_values);
        store_lanes(u + 4 * first, 4, size, lane_u);
        store_lanes(values + 2 * first, 2, size, lane_values);
        store_lanes(v + 4 * first, 4, size, lane_v);
    }
}

void sk_svd_batch_3d(size_t count, const float *a, float *u, float *values, float *v, sk_svd_signs signs, int threads)
{
    FOR_EACH(first, LANES)
    {
        const int size = group_size(first, count);
        lanes in[9], lane_u[9], lane_values[3], lane_v[9];
        load_lanes(a + 9 * first, 9, size, in);
        sk_svd_body_3d_lanes(in, lane_u, lane_values, lane_v);
        if (signs == SK_SVD_NONNEGATIVE)
            sk_make_nonnegative_lanes(3, lane_u, lane_values);
        store_lanes(u + 9 * first, 9, size, lane_u);
        store_lanes(values + 3 * first, 3, size, lane_values);
        store_lanes(v + 9 * first, 9, size, lane_v);
    }
}

void sk_polar_batch_2d(size_t count, const float *a, float *rotations, float *stretches, int threads)
{
    FOR_EACH(first, LANES)
    {
        const int size = group_size(first, count);
        lanes in[4], lane_rotation[4], lane_stretch[3];
        load_lanes(a + 4 * first, 4, size, in);
        sk_polar_body_2d_lanes(in, lane_rotation, lane_stretch);
        store_lanes(rotations + 4 * first, 4, size, lane_rotation);
        store_lanes(stretches + 3 * first, 3, size, lane_stretch);
    }
}

void sk_polar_batch_3d(size_t count, const float *a, float *rotations, float *stretches, int threads)
{
    FOR_EACH(first, LANES)
    {
        const int size = group_size(first, count);
        lanes in[9], lane_rotation[9], lane_stretch[6];
        load_lanes(a + 9 * first, 9, size, in);
        sk_polar_body_3d_lanes(in, lane_rotation, lane_stretch);
        store_lanes(rotations + 9 * first, 9, size, lane_rotation);
        store_lanes(stretches + 6 * first, 6, size, lane_stretch);
    }
}

/* --- Doubles, one matrix at a time --- */

void sk_eigen_batch_double_2d(size_t count, const double *a, double *values, double *vectors, int threads)
{
    FOR_EACH(i, 1)
    sk_eigen_double_2d(a + 3 * i, values + 2 * i, vectors + 4 * i);
}

void sk_eigen_batch_double_3d(size_t count, const double *a, double *values, double *vectors, int threads)
{
    FOR_EACH(i, 1)
    sk_eigen_double_3d(a + 6 * i, values + 3 * i, vectors + 9 * i);
}

void sk_svd_batch_double_2d(size_t count, const double *a, double *u, double *values, double *v, sk_svd_signs signs,
                            int threads)
{
    FOR_EACH(i, 1)
    {
        if (signs == SK_SVD_NONNEGATIVE)
            sk_svd_nonnegative_double_2d(a + 4 * i, u + 4 * i, values + 2 * i, v + 4 * i);
        else
            sk_svd_double_2d(a + 4 * i, u + 4 * i, values + 2 * i, v + 4 * i);
    }
}

void sk_svd_batch_double_3d(size_t count, const double *a, double *u, double *values, double *v, sk_svd_signs signs,
                            int threads)
{
    FOR_EACH(i, 1)
    {
        if (signs == SK_SVD_NONNEGATIVE)
            sk_svd_nonnegative_double_3d(a + 9 * i, u + 9 * i, values + 3 * i, v + 9 * i);
        else
            sk_svd_double_3d(a + 9 * i, u + 9 * i, values + 3 * i, v + 9 * i);
    }
}

void sk_polar_batch_double_2d(size_t count, const double *a, double *rotations, double *stretches, int threads)
{
    FOR_EACH(i, 1)
    sk_polar_double_2d(a + 4 * i, rotations + 4 * i, stretches + 3 * i);
}

void sk_polar_batch_double_3d(size_t count, const double *a, double *rotations, double *stretches, int threads)
{
    FOR_EACH(i, 1)
    sk_polar_double_3d(a + 9 * i, rotations + 9 * i, stretches + 6 * i);
}

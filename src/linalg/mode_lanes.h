/* The modes of a rigid body in a cell as the lanes of a vector. */
#ifndef SK_LINALG_MODE_LANES_H
#define SK_LINALG_MODE_LANES_H

#include <string.h>
#include "base/dimension.h"

/* Modes of a mover, and zeros up to a whole vector. */
enum { SK_MODES_RANK = 3, SK_MODES_WIDE = 4 };

typedef float sk_mode_vector __attribute__((vector_size(4 * 4)));

static inline sk_mode_vector sk_mode_load(const float from[SK_MODES_WIDE])
{
    sk_mode_vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void sk_mode_store(const sk_mode_vector v, float to[SK_MODES_WIDE])
{
    memcpy(to, &v, sizeof v);
}

/* (A x) of a cell for several vectors at once, from the values around it and the coefficients of its faces. */
static inline sk_mode_vector sk_mode_multiply(sk_mode_vector x, const float *const beside[2 * SELKIE_DIM],
                                              const float face[2 * SELKIE_DIM], float diagonal)
{
    sk_mode_vector sum = diagonal * x;
    for (int side = 0; side < 2 * SELKIE_DIM; ++side)
        sum -= face[side] * sk_mode_load(beside[side]);
    return sum;
}

/* Sum over the lanes. */
static inline float sk_mode_sum(const sk_mode_vector each)
{
    return (each[0] + each[2]) + (each[1] + each[3]);
}

/* block += a b^T of two vectors of modes. */
static inline void sk_mode_add_product(const float a[SK_MODES_WIDE], const float b[SK_MODES_WIDE],
                                       float block[SK_MODES_WIDE][SK_MODES_WIDE])
{
    const sk_mode_vector left = sk_mode_load(a), right = sk_mode_load(b);
    for (int i = 0; i < SK_MODES_RANK; ++i)
        sk_mode_store(sk_mode_load(block[i]) + left[i] * right, block[i]);
}

#endif

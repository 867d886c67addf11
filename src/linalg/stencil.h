/* The stencil of A on one vector of cells, for sweeps and products. Private to src/linalg.
 *
 * The operator is written with differences, sum of c (x - x_neighbour) + e x, instead of d x - sum of c x_neighbour. A
 * smooth x is large beside its differences, and single precision would lose them.
 */
#ifndef SK_LINALG_STENCIL_H
#define SK_LINALG_STENCIL_H

#include "linalg/multigrid.h"

/* The coefficients of a block's rows of A. A uniform block has faces of 1 and one excess: face and excess are NULL. */
typedef struct sk_row_coefficients {
    const sk_around *face; /* [dimension] */
    const float *excess;
    float uniform_excess;
} sk_row_coefficients;

SK_INLINE fs sk_sum_of_neighbours(const sk_around *x, sk_place at)
{
    fs sum = (sk_left_of(x, at) + sk_right_of(x, at)) + (sk_below(x, at) + sk_above(x, at));
#if SELKIE_DIM == 3
    sum += sk_back_of(x, at) + sk_front_of(x, at);
#endif
    return sum;
}

SK_INLINE fs sk_weighted_sum_of_neighbours(const sk_around *x, const sk_around *face, sk_place at)
{
    fs sum_x = fs_load(face[0].own + at.here) * sk_left_of(x, at) + sk_right_of(&face[0], at) * sk_right_of(x, at);
    fs sum_y = fs_load(face[1].own + at.here) * sk_below(x, at) + sk_above(&face[1], at) * sk_above(x, at);
#if SELKIE_DIM == 3
    sum_x += fs_load(face[2].own + at.here) * sk_back_of(x, at);
    sum_y += sk_front_of(&face[2], at) * sk_front_of(x, at);
#endif
    return sum_x + sum_y;
}

SK_INLINE fs sk_apply_uniform_at(const sk_around *x, float excess, sk_place at)
{
    fs here = fs_load(x->own + at.here);
    fs sum = (here - sk_left_of(x, at)) + (here - sk_right_of(x, at));
    sum += (here - sk_below(x, at)) + (here - sk_above(x, at));
#if SELKIE_DIM == 3
    sum += (here - sk_back_of(x, at)) + (here - sk_front_of(x, at));
#endif
    return sum + excess * here;
}

SK_INLINE fs sk_apply_general_at(const sk_around *x, const sk_around *face, const float *excess, sk_place at)
{
    fs here = fs_load(x->own + at.here);
    fs sum_x = fs_load(face[0].own + at.here) * (here - sk_left_of(x, at)) +
               sk_right_of(&face[0], at) * (here - sk_right_of(x, at));
    fs sum_y =
        fs_load(face[1].own + at.here) * (here - sk_below(x, at)) + sk_above(&face[1], at) * (here - sk_above(x, at));
#if SELKIE_DIM == 3
    sum_x += fs_load(face[2].own + at.here) * (here - sk_back_of(x, at));
    sum_y += sk_front_of(&face[2], at) * (here - sk_front_of(x, at));
#endif
    return sum_x + sum_y + fs_load(excess + at.here) * here;
}

#endif

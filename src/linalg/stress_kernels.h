/* The viscous stress at one face, and the transfers between two levels: see stress.h. */
#ifndef SK_LINALG_STRESS_KERNELS_H
#define SK_LINALG_STRESS_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Neighbours of a face across axis a, in the order of the coefficients: the faces before and after it along a; then for
 * each other axis b the faces of its own component before and after along b, and the four faces across b around it: at
 * its place, one before along a, one after along b, both. */
enum {
    SK_STRESS_ACROSS = SELKIE_DIM - 1,
    SK_STRESS_OTHER = 6, /* neighbours for each axis b */
    SK_STRESS_NEIGHBOURS = 2 + SK_STRESS_OTHER * SK_STRESS_ACROSS,
    SK_STRESS_PARENTS = 1 << SELKIE_DIM, /* coarse faces of which a face is interpolated */
    SK_STRESS_CHILDREN = SELKIE_DIM == 3 ? 48 : 12
};

/* Weights around a face across axis a. */
typedef struct sk_stress_weights {
    float mass;
    float normal[2], bulk[2];         /* of the cells before and after it along a */
    float shear[SK_STRESS_ACROSS][2]; /* of the edges before and after it along each other axis */
} sk_stress_weights;

/* The row of a face: A u = diagonal u + sum of coefficient x neighbour. Returns the diagonal. */
SK_KERNEL float sk_stress_row(const sk_stress_weights *w, float coefficient[SK_STRESS_NEIGHBOURS])
{
    float diagonal = w->mass;
    for (int side = 0; side < 2; side++) {
        const float weight = 2.0f * w->normal[side] + w->bulk[side];
        coefficient[side] = -weight;
        diagonal += weight;
    }
    for (int n = 0; n < SK_STRESS_ACROSS; n++) {
        float *c = coefficient + 2 + SK_STRESS_OTHER * n;
        const float before = w->shear[n][0], after = w->shear[n][1];
        c[0] = -before;
        c[1] = -after;
        c[2] = before + w->bulk[1];
        c[3] = -before - w->bulk[0];
        c[4] = -after - w->bulk[1];
        c[5] = after + w->bulk[0];
        diagonal += before + after;
    }
    return diagonal;
}

/* The other axis number n of a face across axis a, and the axis along the edges between the two. */
SK_KERNEL int sk_stress_axis(int a, int n)
{
    return n < a ? n : n + 1;
}

SK_KERNEL int sk_stress_edge(int a, int b)
{
    return 3 - a - b;
}

/* Means of fine values for a coarse one along an axis: at centres across it, at centres along it, at nodes. The first
 * fine value lies `first` cells from twice the coarse index. Returns the number of values. */
typedef enum sk_stress_mean { SK_STRESS_MEAN_ACROSS, SK_STRESS_MEAN_ALONG, SK_STRESS_MEAN_NODE } sk_stress_mean;

SK_KERNEL int sk_stress_mean_weights(sk_stress_mean mean, int *first, float weight[4])
{
    *first = mean == SK_STRESS_MEAN_ALONG ? 0 : -1;
    weight[3] = 0.125f;
    if (mean == SK_STRESS_MEAN_ACROSS) {
        weight[0] = 0.125f;
        weight[1] = weight[2] = 0.375f;
        return 4;
    }
    if (mean == SK_STRESS_MEAN_ALONG) {
        weight[0] = weight[1] = 0.5f;
        return 2;
    }
    weight[0] = weight[2] = 0.25f;
    weight[1] = 0.5f;
    return 3;
}

/* Interpolation of a face across axis a from the coarse level: along a linear between nodes, across it 3/4 and 1/4.
 * Parent n has bit d set if it is the second one along axis d. `parity` has bit d set if the fine index along d is odd.
 */
SK_KERNEL float sk_stress_parent_weight(int a, int parity, int n)
{
    float weight = 1.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int second = n >> d & 1, odd = parity >> d & 1;
        if (d == a)
            weight *= odd ? 0.5f : second ? 0.0f : 1.0f;
        else
            weight *= second ? 0.25f : 0.75f;
    }
    return weight;
}

/* Offset of that parent from half the fine index, along axis d. */
SK_KERNEL int sk_stress_parent_offset(int a, int parity, int n, int d)
{
    if (!(n >> d & 1))
        return 0;
    return d == a || parity >> d & 1 ? 1 : -1;
}

#endif

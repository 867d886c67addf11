/* The viscous stress at one face, and the transfers between two levels: see stress.h. */
#ifndef SK_LINALG_STRESS_KERNELS_H
#define SK_LINALG_STRESS_KERNELS_H

#include <math.h>

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

/* The hierarchy and its cycle: levels at most, colours of a sweep, unknowns of a level that is solved directly at most,
 * and for which a direct solve takes least time; sweeps before and after the coarse correction on the finest level, and
 * further ones on coarse levels, which cost little and which a bulk viscosity needs; symmetric sweeps on a coarsest
 * level that is not solved directly; sweeps over the faces without mass at the start. */
enum {
    SK_STRESS_LEVELS = 12,
    SK_STRESS_COLOURS = 2 * SELKIE_DIM,
    SK_STRESS_DIRECT = 400,
    SK_STRESS_FEW_UNKNOWNS = 100,
    SK_STRESS_SMOOTHINGS = 2,
    SK_STRESS_MORE = 1,
    SK_STRESS_LAST_SWEEPS = 12,
    SK_STRESS_MASSLESS_SWEEPS = 2
};

/* Rows with a smaller diagonal are no unknowns: less than a millionth of a full face. */
#define SK_STRESS_SMALLEST_DIAGONAL 1e-6f

/* Most stress over mass of rows for which sweeps do: of the finest level, and of others. Sweeps take about half of the
 * time of coarse levels. In 3D the bulk viscosity makes stiffer rows loose (SK_STRESS_HELD). For coarse levels 1.5 is
 * the most that costs no iteration: a box of 48^3 with strengths of 3, 10 and 30 takes 5, 6 and 6 iterations with 0.4
 * and with 1.5, and 6, 6 and 6 with 6. */
#define SK_STRESS_SOFT (SELKIE_DIM == 2 ? 72.0f : 56.0f)
#define SK_STRESS_SOFT_COARSE 1.5f
/* The same for one symmetric sweep an iteration, and for two. The bounds are where a box of liquid takes 20 iterations
 * to 1e-4 in one pass, with bulk viscosity. */
#define SK_STRESS_SOFT_ONE 9.0f
#define SK_STRESS_SOFT_TWO 34.0f
/* Most diagonal over mass of a row that its mass holds: with the bulk viscosity, and little mass beside a surface. */
#define SK_STRESS_HELD (SELKIE_DIM == 2 ? 240.0f : 120.0f)

/* Weights of strains fall to a quarter from level to level beside the masses, since differences halve. The divergence
 * of a fine cell mixes coarse cells, so no mean bounds it. The factor takes the fewest iterations. */
#define SK_STRESS_COARSE_STRAIN 0.25f
#define SK_STRESS_COARSE_BULK (1.5f * SK_STRESS_COARSE_STRAIN)

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

/* Symmetric sweeps of an iteration without coarse levels, by the stress over mass of the stiffest rows; 0 = coarse
 * levels cost less. */
SK_KERNEL int sk_stress_lone_sweeps(float stiffness)
{
    return stiffness <= SK_STRESS_SOFT_ONE   ? 1
           : stiffness <= SK_STRESS_SOFT_TWO ? 2
           : stiffness <= SK_STRESS_SOFT     ? 3
                                             : 0;
}

/* Sweep n of several begins with the result of the one before times this. With M the matrix of a sweep they then are
 * Chebyshev's polynomial for eigenvalues of M^-1 A from 1/7 (two sweeps) or 0.06 (three) to 1. */
SK_KERNEL float sk_stress_relaxation(int sweeps, int n)
{
    return sweeps == 2 ? 7.0f : n == 1 ? -2.439f : -4.711f;
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

/* The tolerance of a pass. Passes before the last one only estimate the source. */
SK_KERNEL double sk_stress_tolerance(double tolerance, int is_last)
{
    const double looser = is_last ? tolerance : 3000.0 * tolerance;
    return looser < 0.03 ? looser : 0.03;
}

/* To what part sweeps bring the energy of a residual `norm` that may be `enough`, in correction number n. The energy is
 * not the size of the residual itself, so each aims at less than the one before. */
SK_KERNEL double sk_stress_reduction(double enough, double norm, int n)
{
    const double aim = ldexp(0.7, -n) * enough / norm;
    return aim < 1e-5 ? 1e-5 : aim > 0.7 ? 0.7 : aim;
}

/* Component of neighbour m of a face across axis a, in the order of the coefficients. */
SK_KERNEL int sk_stress_component(int a, int m)
{
    return m < 2 || (m - 2) % SK_STRESS_OTHER < 2 ? a : sk_stress_axis(a, (m - 2) / SK_STRESS_OTHER);
}

/* Offset of that neighbour in cells. */
SK_KERNEL void sk_stress_offset(int a, int m, int offset[3])
{
    offset[0] = offset[1] = offset[2] = 0;
    if (m < 2) {
        offset[a] = m ? 1 : -1;
        return;
    }
    const int n = (m - 2) % SK_STRESS_OTHER;
    offset[a] = n == 3 || n == 5 ? -1 : 0;
    offset[sk_stress_axis(a, (m - 2) / SK_STRESS_OTHER)] = n == 0 ? -1 : n == 1 || n >= 4 ? 1 : 0;
}

/* The colour of a face: no two neighbours have the same. `at` is the place of its cell. */
SK_KERNEL int sk_stress_colour_at(const int at[3], int a)
{
    return 2 * a + ((at[0] + at[1] + at[2]) & 1);
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

/* Rigid motions: translations, then rotations. */
enum { SK_STRESS_MODES = SELKIE_DIM == 3 ? 6 : 3, SK_STRESS_TRIANGLE = SK_STRESS_MODES * (SK_STRESS_MODES + 1) / 2 };

/* Velocity of the rigid motions at a face across axis a, whose centre is x; `turns`: with the rotations. */
SK_KERNEL void sk_stress_rigid_modes(const double x[3], int a, int turns, double mode[SK_STRESS_MODES])
{
    for (int n = 0; n < SK_STRESS_MODES; n++)
        mode[n] = 0.0;
    mode[a] = 1.0;
    if (!turns)
        return;
#if SELKIE_DIM == 2
    mode[2] = a == 0 ? -x[1] : x[0];
#else
    mode[3 + (a + 1) % 3] = x[(a + 2) % 3];
    mode[3 + (a + 2) % 3] = -x[(a + 1) % 3];
#endif
}

/* The rigid motion that carries the momenta x, by Cholesky; in x. `matrix` is the lower triangle of the masses, known
 * to `rounding`. Modes without mass stay out. */
SK_KERNEL void sk_stress_rigid_motion(const double matrix[SK_STRESS_TRIANGLE], double rounding,
                                      double x[SK_STRESS_MODES])
{
    double l[SK_STRESS_MODES][SK_STRESS_MODES];
    for (int i = 0; i < SK_STRESS_MODES; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = matrix[i * (i + 1) / 2 + j];
            const double whole = sum;
            for (int k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j)
                l[i][i] = sum > 1e-9 * whole + rounding ? sqrt(sum) : 0.0;
            else
                l[i][j] = l[j][j] > 0.0 ? sum / l[j][j] : 0.0;
        }
        for (int k = 0; k < i; k++)
            x[i] -= l[i][k] * x[k];
        x[i] = l[i][i] > 0.0 ? x[i] / l[i][i] : 0.0;
    }
    for (int i = SK_STRESS_MODES - 1; i >= 0; i--) {
        for (int k = i + 1; k < SK_STRESS_MODES; k++)
            x[i] -= l[k][i] * x[k];
        x[i] = l[i][i] > 0.0 ? x[i] / l[i][i] : 0.0;
    }
}

#endif

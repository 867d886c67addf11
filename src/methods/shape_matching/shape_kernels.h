/* Shape matching for one particle (Mueller, Heidelberger, Teschner and Gross, Meshless deformations based on shape
 * matching, 2005), in double precision. Positions are relative to a point near the body, so that sums do not cancel.
 */
#ifndef SK_METHODS_SHAPE_KERNELS_H
#define SK_METHODS_SHAPE_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Columns of the linear and of the quadratic map: q; then q_i^2 and q_i q_j. */
#define SK_SHAPE_LINEAR SELKIE_DIM
#define SK_SHAPE_COLUMNS (SELKIE_DIM == 3 ? 9 : 5)

/* Sums over the particles of a region: its mass, moments and best maps of the rest shape. */
typedef struct sk_shape_sums {
    double mass;         /* kg */
    double first[3];     /* kg m     of mass times position y */
    double momentum[3];  /* kg m/s */
    double spin[3];      /* kg m2/s  of y x v */
    double second[6];    /* kg m2    of y y^T: xx xy xz yy yz zz */
    double match[3 * 9]; /* kg m2    of y times the columns of the rest position, [3][SK_SHAPE_COLUMNS] */
} sk_shape_sums;

/* The columns of a rest position q (m) about the rest centre. `middle` are the means of the quadratic ones. */
SK_KERNEL void sk_shape_columns(int count, const double q[3], const double middle[9], double columns[9])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        columns[d] = q[d];
    if (count <= SELKIE_DIM)
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        columns[SELKIE_DIM + d] = q[d] * q[d] - middle[SELKIE_DIM + d];
#if SELKIE_DIM == 3
    for (int d = 0; d < 3; d++)
        columns[6 + d] = q[d] * q[(d + 1) % 3] - middle[6 + d];
#else
    columns[4] = q[0] * q[1] - middle[4];
#endif
}

/* Adds a particle of mass m to the sums. */
SK_KERNEL void sk_shape_add(int count, double m, const double y[3], const double v[3], const double columns[9],
                            sk_shape_sums *sums)
{
    sums->mass += m;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sums->first[d] += m * y[d];
        sums->momentum[d] += m * v[d];
        for (int c = 0; c < count; c++)
            sums->match[9 * d + c] += m * y[d] * columns[c];
    }
    sums->spin[2] += m * (y[0] * v[1] - y[1] * v[0]);
    sums->second[0] += m * y[0] * y[0];
    sums->second[1] += m * y[0] * y[1];
    sums->second[3] += m * y[1] * y[1];
#if SELKIE_DIM == 3
    sums->spin[0] += m * (y[1] * v[2] - y[2] * v[1]);
    sums->spin[1] += m * (y[2] * v[0] - y[0] * v[2]);
    sums->second[2] += m * y[0] * y[2];
    sums->second[4] += m * y[1] * y[2];
    sums->second[5] += m * y[2] * y[2];
#endif
}

/* Sums for the motion of a region that fits given velocities of its particles best. */
typedef struct sk_fit_sums {
    double mass;       /* kg */
    double first[3];   /* kg m    of mass times position y */
    double second[6];  /* kg m2   of y y^T: xx xy xz yy yz zz */
    double total[3];   /* kg m/s  of mass times velocity */
    double moments[9]; /* kg m2/s of velocity times y^T, row-major */
} sk_fit_sums;

SK_KERNEL void sk_fit_add(double m, const double y[3], const double v[3], sk_fit_sums *sums)
{
    sums->mass += m;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sums->first[d] += m * y[d];
        sums->total[d] += m * v[d];
        for (int e = 0; e < SELKIE_DIM; e++)
            sums->moments[3 * d + e] += m * v[d] * y[e];
    }
    sums->second[0] += m * y[0] * y[0];
    sums->second[1] += m * y[0] * y[1];
    sums->second[3] += m * y[1] * y[1];
#if SELKIE_DIM == 3
    sums->second[2] += m * y[0] * y[2];
    sums->second[4] += m * y[1] * y[2];
    sums->second[5] += m * y[2] * y[2];
#endif
}

/* A linear motion: velocity + gradient (y - centre). */
typedef struct sk_fit {
    double centre[3];   /* m    relative to the same point as y */
    double velocity[3]; /* m/s */
    double gradient[9]; /* 1/s  row-major */
} sk_fit;

/* Adds `share` of the motion to a velocity. */
SK_KERNEL void sk_fit_move(const sk_fit *fit, double share, const double y[3], double v[3])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        double value = fit->velocity[d];
        for (int e = 0; e < SELKIE_DIM; e++)
            value += fit->gradient[3 * d + e] * (y[e] - fit->centre[e]);
        v[d] += share * value;
    }
}

/* How the particles of a region move. */
typedef struct sk_shape_goal {
    int count;          /* columns of the map */
    double map[3 * 9];  /* the goal is map columns + centre */
    double centre[3];   /* m    of mass, relative to the same point as y */
    double velocity[3]; /* m/s  of the centre */
    double turn[3];     /* rad/s */
    double pull;        /* 1/s  alpha / the longer of this step and the last */
    double damping;     /* part of the deformation's velocity that a step removes */
} sk_shape_goal;

/* Velocity after the pull towards the goal and the damping, in the velocity form (Mueller et al. 2005, Eq. 1): momentum
 * and angular momentum of the region stay. `share` is the part of the particle's mass in this region. */
SK_KERNEL void sk_shape_pull(const sk_shape_goal *goal, double share, const double y[3], const double columns[9],
                             double v[3])
{
    double r[3] = {0.0, 0.0, 0.0}, rigid[3];
    for (int d = 0; d < SELKIE_DIM; d++)
        r[d] = y[d] - goal->centre[d];
    rigid[0] = goal->velocity[0] + goal->turn[1] * r[2] - goal->turn[2] * r[1];
    rigid[1] = goal->velocity[1] + goal->turn[2] * r[0] - goal->turn[0] * r[2];
    rigid[2] = goal->velocity[2] + goal->turn[0] * r[1] - goal->turn[1] * r[0];
    for (int d = 0; d < SELKIE_DIM; d++) {
        double to_goal = -r[d];
        for (int c = 0; c < goal->count; c++)
            to_goal += goal->map[9 * d + c] * columns[c];
        v[d] += share * (goal->pull * to_goal - goal->damping * (v[d] - rigid[d]));
    }
}

#endif

/* The answer of a body of particles to impulses: a rigid motion, or a linear one without change of volume for soft
 * bodies. Its energy is the least that gives the momentum and angular momentum. For files compiled per dimension. */
#ifndef SK_METHODS_SHAPE_RESPONSE_H
#define SK_METHODS_SHAPE_RESPONSE_H

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/shape_matching/shape_matching.h"

typedef struct soft_response {
    int is_linear;
    double mass;        /* kg */
    double centre[3];   /* m */
    double inverse[6];  /* 1/(kg m2)  of the second moments, or of the inertia of a rigid one: xx xy xz yy yz zz */
    double velocity[3]; /* m/s  of the centre, by impulses so far */
    double gradient[9]; /* 1/s  likewise, row-major */
} soft_response;

static inline double soft_entry(const double a[6], int i, int j)
{
    static const int at[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};
    return a[at[3 * i + j]];
}

/* The inverse of a symmetric matrix; returns 0 if it is close to singular. */
static inline int soft_invert(const double a[6], double inverse[6])
{
#if SELKIE_DIM == 3
    const double trace = a[0] + a[3] + a[5];
    inverse[0] = a[3] * a[5] - a[4] * a[4];
    inverse[1] = a[2] * a[4] - a[1] * a[5];
    inverse[2] = a[1] * a[4] - a[2] * a[3];
    inverse[3] = a[0] * a[5] - a[2] * a[2];
    inverse[4] = a[1] * a[2] - a[0] * a[4];
    inverse[5] = a[0] * a[3] - a[1] * a[1];
    const double determinant = a[0] * inverse[0] + a[1] * inverse[1] + a[2] * inverse[2];
    const int is_good = determinant > 1e-9 * trace * trace * trace;
#else
    const double trace = a[0] + a[3], determinant = a[0] * a[3] - a[1] * a[1];
    const int is_good = determinant > 1e-9 * trace * trace;
    inverse[0] = a[3];
    inverse[1] = -a[1];
    inverse[3] = a[0];
    inverse[2] = inverse[4] = inverse[5] = 0.0;
#endif
    for (int i = 0; i < 6; i++)
        inverse[i] = is_good ? inverse[i] / determinant : 0.0;
    return is_good;
}

/* From the second moments (kg m2) about the centre. */
static inline void soft_set_moments(soft_response *r, const double second[6])
{
    if (r->is_linear && soft_invert(second, r->inverse))
        return;
    r->is_linear = 0;
    const double trace = second[0] + second[3] + second[5];
    const double inertia[6] = {trace - second[0], -second[1], -second[2],
                               trace - second[3], -second[4], trace - second[5]};
    memset(r->inverse, 0, sizeof r->inverse);
    if (SELKIE_DIM == 3)
        soft_invert(inertia, r->inverse);
    else
        r->inverse[5] = inertia[5] > 0.0 ? 1.0 / inertia[5] : 0.0;
}

/* The gradient that a matrix of moments gives, sum of impulse times arm^T. */
static inline void soft_gradient(const soft_response *r, const double moments[9], double gradient[9])
{
    memset(gradient, 0, 9 * sizeof *gradient);
    if (!r->is_linear) {
        double spin[3], turn[3];
        for (int d = 0; d < 3; d++)
            spin[d] = moments[3 * ((d + 2) % 3) + (d + 1) % 3] - moments[3 * ((d + 1) % 3) + (d + 2) % 3];
        for (int d = 0; d < 3; d++)
            turn[d] = soft_entry(r->inverse, d, 0) * spin[0] + soft_entry(r->inverse, d, 1) * spin[1] +
                      soft_entry(r->inverse, d, 2) * spin[2];
        for (int d = 0; d < 3; d++) {
            gradient[3 * ((d + 1) % 3) + (d + 2) % 3] = -turn[d];
            gradient[3 * ((d + 2) % 3) + (d + 1) % 3] = turn[d];
        }
        return;
    }
    double trace = 0.0, compliance = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        for (int e = 0; e < SELKIE_DIM; e++)
            for (int k = 0; k < SELKIE_DIM; k++)
                gradient[3 * d + e] += moments[3 * d + k] * soft_entry(r->inverse, k, e);
        trace += gradient[4 * d];
        compliance += soft_entry(r->inverse, d, d);
    }

    /* No change of volume: the goal keeps it, and the pressure takes the body for incompressible. */
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int e = 0; e < SELKIE_DIM; e++)
            gradient[3 * d + e] -= trace / compliance * soft_entry(r->inverse, d, e);
}

/* The change of velocity at `at` (m) by an impulse (N s) at `where`, both relative to the centre. */
static inline void soft_answer(const soft_response *r, const double impulse[3], const double where[3],
                               const double at[3], double change[3])
{
    double moments[9], gradient[9];
    for (int d = 0; d < 3; d++)
        for (int e = 0; e < 3; e++)
            moments[3 * d + e] = impulse[d] * where[e];
    soft_gradient(r, moments, gradient);
    for (int d = 0; d < 3; d++)
        change[d] =
            impulse[d] / r->mass + gradient[3 * d] * at[0] + gradient[3 * d + 1] * at[1] + gradient[3 * d + 2] * at[2];
}

/* Adds an impulse. */
static inline void soft_push(soft_response *r, const double impulse[3], const double where[3])
{
    double moments[9], gradient[9];
    for (int d = 0; d < 3; d++)
        for (int e = 0; e < 3; e++)
            moments[3 * d + e] = impulse[d] * where[e];
    soft_gradient(r, moments, gradient);
    for (int d = 0; d < 3; d++)
        r->velocity[d] += impulse[d] / r->mass;
    for (int i = 0; i < 9; i++)
        r->gradient[i] += gradient[i];
}

/* The change of velocity by all impulses so far, at `at` relative to the centre. */
static inline void soft_change(const soft_response *r, const double at[3], double change[3])
{
    for (int d = 0; d < 3; d++)
        change[d] = r->velocity[d] + r->gradient[3 * d] * at[0] + r->gradient[3 * d + 1] * at[1] +
                    r->gradient[3 * d + 2] * at[2];
}

/* The same at a position (m). */
static inline void soft_change_at(const soft_response *r, const double position[3], double change[3])
{
    double arm[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < SELKIE_DIM; d++)
        arm[d] = position[d] - r->centre[d];
    soft_change(r, arm, change);
}

#endif

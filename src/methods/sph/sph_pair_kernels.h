/* SPH for one pair: a particle and a neighbour, or a particle and a boundary particle. */
#ifndef SK_METHODS_SPH_SPH_PAIR_KERNELS_H
#define SK_METHODS_SPH_SPH_PAIR_KERNELS_H

#include <math.h>

#include "base/dimension.h"
#include "base/kernel.h"
#include "methods/sph/sph_kernels.h"
#include "particles/neighbour_kernels.h"

/* --- Lists --- */

typedef struct sk_sph_list_constants {
    float reach2;          /* m2   square of the support */
    float inverse_support; /* 1/m */
    float weight;          /*      particle volume x factor of the kernel */
    float slope;           /* 1/m  that x spacing / support^2 */
    float inverse_spacing; /* 1/m */
    float order;           /* Pa   from this pressure on particles are kept in order by no more than by this one */
    int wendland;
} sk_sph_list_constants;

/* Returns w(q); `gradient` receives w grad W times the spacing. Two particles at one place have no direction; their
 * gradient is 0. */
SK_KERNEL float SK_DIM(sk_sph_pair_gradient)(const sk_sph_list_constants *constants, const float difference[3],
                                             float r2, float gradient[3])
{
    const float q2 = r2 * (constants->inverse_support * constants->inverse_support);
    const float q = sqrtf(fmaxf(q2, 1e-12f));
    const float slope = sk_sph_kernel_slope(constants->wendland, q) / q * constants->slope;
    gradient[2] = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        gradient[d] = slope * difference[d];
    return sk_sph_kernel(constants->wendland, q);
}

/* Symmetric matrices. */
enum { SK_SPH_XX, SK_SPH_YY, SK_SPH_ZZ, SK_SPH_XY, SK_SPH_XZ, SK_SPH_YZ, SK_SPH_COMPONENTS };

/* Sums of a particle over its neighbours and walls. */
typedef struct sk_sph_sums {
    float density;                   /*      ratio */
    float gradient[3];               /*      times the spacing */
    float moment[SK_SPH_COMPONENTS]; /*      of gradient x (neighbour - particle): 1 in a full neighbourhood */
    float wall_flux;                 /* 1/s  sum of gradient . velocity of the walls */
} sk_sph_sums;

/* moment += scale gradient x difference, for a gradient along the difference. */
SK_KERNEL void SK_DIM(sk_sph_add_moment)(float scale, const float gradient[3], const float difference[3],
                                         float moment[SK_SPH_COMPONENTS])
{
    moment[SK_SPH_XX] += scale * gradient[0] * difference[0];
    moment[SK_SPH_YY] += scale * gradient[1] * difference[1];
    moment[SK_SPH_XY] += scale * gradient[0] * difference[1];
    if (SELKIE_DIM == 3) {
        moment[SK_SPH_ZZ] += scale * gradient[2] * difference[2];
        moment[SK_SPH_XZ] += scale * gradient[0] * difference[2];
        moment[SK_SPH_YZ] += scale * gradient[1] * difference[2];
    }
}

typedef struct sk_sph_point_constants {
    float reach2, inverse_reach; /* m2, 1/m */
    float weight;                /* 1/m3  of a boundary particle's volume */
    float steepness;             /*       spacing / reach */
    float inverse_spacing;       /* 1/m */
} sk_sph_point_constants;

/* Adds a boundary particle at `point` with the given volume (m3). */
SK_KERNEL void SK_DIM(sk_sph_add_point)(const sk_sph_point_constants *constants, const float x[3], const float point[3],
                                        const float velocity[3], float volume, sk_sph_sums *sums)
{
    float difference[3];
    const float r2 = SK_DIM(sk_difference)(x, point, difference);
    if (r2 >= constants->reach2)
        return;
    const float r = sqrtf(r2), share = constants->weight * volume, q = r * constants->inverse_reach;
    const float slope = sk_sph_point_slope(q) * constants->steepness * share / (q > 1e-6f ? r : 1e-6f);
    float gradient[3] = {0, 0, 0};
    sums->density += sk_sph_point(q) * share;
    for (int d = 0; d < SELKIE_DIM; d++) {
        gradient[d] = slope * difference[d];
        sums->gradient[d] += gradient[d];
        sums->wall_flux += gradient[d] * velocity[d] * constants->inverse_spacing;
    }
    /* The surface lies halfway to the point. */
    SK_DIM(sk_sph_add_moment)(-0.5f * constants->inverse_spacing, gradient, difference, sums->moment);
}

/* --- Correction of gradients (correction_parts.h) --- */

#define SK_SPH_ISOTROPY 0.68f    /* share of the correction in full neighbourhoods */
#define SK_SPH_CORRECT_FROM 0.8f /* density ratio at which the correction begins: a surface particle has no ... */
#define SK_SPH_CORRECT_FULL 0.9f /* ... and from here on it is complete */
#define SK_SPH_LEAST_MOMENT 0.1f /* determinant: below it neighbours lie in a line or a plane */

/* The share of the correction at a pressure (Pa). */
SK_KERNEL float sk_sph_isotropy(float order, float pressure)
{
    return 1.0f - (1.0f - SK_SPH_ISOTROPY) * (pressure > order ? order / pressure : 1.0f);
}

/* The columns of L = 1 + share (M^-1 - 1) for the moment M; 1 where air is near or M is singular. `isotropy`: the share
 * in full neighbourhoods. */
SK_KERNEL void SK_DIM(sk_sph_make_correction)(const float m[SK_SPH_COMPONENTS], float density, float isotropy,
                                              float column[3][3])
{
    float inverse[SK_SPH_COMPONENTS] = {m[SK_SPH_YY], m[SK_SPH_XX], 0.0f, -m[SK_SPH_XY], 0.0f, 0.0f};
    float determinant = m[SK_SPH_XX] * m[SK_SPH_YY] - m[SK_SPH_XY] * m[SK_SPH_XY];
    if (SELKIE_DIM == 3) {
        inverse[SK_SPH_XX] = m[SK_SPH_YY] * m[SK_SPH_ZZ] - m[SK_SPH_YZ] * m[SK_SPH_YZ];
        inverse[SK_SPH_YY] = m[SK_SPH_XX] * m[SK_SPH_ZZ] - m[SK_SPH_XZ] * m[SK_SPH_XZ];
        inverse[SK_SPH_ZZ] = m[SK_SPH_XX] * m[SK_SPH_YY] - m[SK_SPH_XY] * m[SK_SPH_XY];
        inverse[SK_SPH_XY] = m[SK_SPH_XZ] * m[SK_SPH_YZ] - m[SK_SPH_XY] * m[SK_SPH_ZZ];
        inverse[SK_SPH_XZ] = m[SK_SPH_XY] * m[SK_SPH_YZ] - m[SK_SPH_XZ] * m[SK_SPH_YY];
        inverse[SK_SPH_YZ] = m[SK_SPH_XY] * m[SK_SPH_XZ] - m[SK_SPH_XX] * m[SK_SPH_YZ];
        determinant =
            m[SK_SPH_XX] * inverse[SK_SPH_XX] + m[SK_SPH_XY] * inverse[SK_SPH_XY] + m[SK_SPH_XZ] * inverse[SK_SPH_XZ];
    }
    const float full = (density - SK_SPH_CORRECT_FROM) / (SK_SPH_CORRECT_FULL - SK_SPH_CORRECT_FROM);
    const float share = determinant > SK_SPH_LEAST_MOMENT ? isotropy * fminf(sk_sph_positive(full), 1.0f) : 0.0f;
    const float scale = share > 0.0f ? share / determinant : 0.0f, rest = 1.0f - share;
    column[0][0] = rest + scale * inverse[SK_SPH_XX];
    column[1][1] = rest + scale * inverse[SK_SPH_YY];
    column[2][2] = SELKIE_DIM == 3 ? rest + scale * inverse[SK_SPH_ZZ] : 1.0f;
    column[0][1] = column[1][0] = scale * inverse[SK_SPH_XY];
    column[0][2] = column[2][0] = scale * inverse[SK_SPH_XZ];
    column[1][2] = column[2][1] = scale * inverse[SK_SPH_YZ];
}

/* (L_a + L_b) / 2 times the gradient, for two particles with these columns. */
SK_KERNEL void SK_DIM(sk_sph_correct_gradient)(const float *const a[3], const float *const b[3],
                                               const float gradient[3], float result[3])
{
    for (int d = 0; d < 3; d++)
        result[d] = 0.0f;
    for (int c = 0; c < SELKIE_DIM; c++)
        for (int d = 0; d < SELKIE_DIM; d++)
            result[d] += 0.5f * (a[c][d] + b[c][d]) * gradient[c];
}

/* --- Forces --- */

/* The viscous force of a pair over its distance (measure_viscosity in sph.c), times nu and time. */
typedef struct sk_sph_viscous_shape {
    float softening; /* m2   that keeps it finite at r = 0 */
    float near;      /* m */
    float even;      /* 1/m */
    float far;       /* 1/m3 */
} sk_sph_viscous_shape;

static inline sk_sph_viscous_shape sk_sph_viscous_shape_of(const double viscous[3], double area, double support)
{
    return (sk_sph_viscous_shape){(float)(SK_SPH_SOFTENING * support * support), (float)(area * viscous[0]),
                                  (float)(area * viscous[1]), (float)(area * viscous[2])};
}

/* Coefficients of the forces between particles (forces_dim.c), times their duration; 0: no such force. */
typedef struct sk_sph_force_constants {
    float spacing;         /* m */
    float inverse_support; /* 1/m */
    float weight;          /*      particle volume x factor of the kernel */
    int wendland;
    int viscous; /*      viscosity acts, and is explicit */
    sk_sph_viscous_shape viscosity;
    float xsph;                      /*      share */
    float calming;                   /*      share at the surface beyond that: sk_sph_calmed */
    float calm_pressure, calm_speed; /* 1/Pa, s2/m2 */
    float filter;                    /*      share of the filter of noise: sk_sph_filter_weight */
    float becker;                    /* 1/s */
    float cohesion;                  /* m/s  with the factor of its kernel and the mass */
    float curvature;                 /* m/s  of a difference of normals */
} sk_sph_force_constants;

/* A particle minus its neighbour. */
typedef struct sk_sph_pair {
    float position[3], velocity[3]; /* m, m/s */
    float normal[3];                /* of normals, or of lags for the filter */
    float gradient[3];              /* w grad W times the spacing */
    float density;                  /* ratio, sum of the two */
    float calm;                     /* the lesser sk_sph_calm of the two */
} sk_sph_pair;

/* The share of XSPH that pairs at the surface have beyond that of others, the depth (spacings) at which it ends, and
 * the part of sqrt(g spacing) beyond which motion is that of a splash and is left alone. Under little weight particles
 * find no lasting order: every now and then one slips past its neighbours, and the pool never rests. */
#define SK_SPH_CALMING 0.3
#define SK_SPH_CALM_DEPTH 5.0
#define SK_SPH_CALM_SPEED 0.5

/* 1 at the surface, 0 below a depth: from the pressure (Pa), as of water at rest. */
SK_KERNEL float sk_sph_calm(const sk_sph_force_constants *constants, float pressure)
{
    return sk_sph_positive(1.0f - pressure * constants->calm_pressure);
}

/* The share of XSPH of a pair. `speed2`: m2/s2, of one past the other. */
SK_KERNEL float sk_sph_calmed(const sk_sph_force_constants *constants, float calm, float speed2)
{
    return constants->xsph + constants->calming * calm * sk_sph_positive(1.0f - speed2 * constants->calm_speed);
}

/* The filter of noise: XSPH of what XSPH would change. A wave is nearly linear over the reach of a kernel and passes,
 * a few particles that slip past their neighbours do not. So it acts at any depth, where XSPH of the same strength
 * would damp waves. Its share in a natural step, and the most of a step: the sums of weights have eigenvalues of at
 * most about one, and a step stays stable while the shares of XSPH and filter are below two together. */
#define SK_SPH_FILTER 2.0
#define SK_SPH_MOST_FILTER 1.0

/* The weight of a pair in it; `speed2` as above. */
SK_KERNEL float sk_sph_filter_weight(const sk_sph_force_constants *constants, float speed2)
{
    return sk_sph_positive(1.0f - speed2 * constants->calm_speed);
}

/* Do normals or lags come before the forces? */
SK_KERNEL int sk_sph_needs_normals(const sk_sph_force_constants *constants)
{
    return constants->curvature > 0.0f || constants->filter > 0.0f;
}

/* The factor of the gradient in the viscous acceleration. `approach`: position . velocity, m2/s. */
SK_KERNEL float sk_sph_viscous_share(const sk_sph_viscous_shape *shape, float density, float approach, float r2)
{
    return (2.0f / density) * approach * (shape->near / (r2 + shape->softening) + shape->even + shape->far * r2);
}

/* Adds the velocity change (m/s) of a particle by one neighbour. */
SK_KERNEL void SK_DIM(sk_sph_add_forces)(const sk_sph_force_constants *constants, const sk_sph_pair *pair,
                                         float change[3])
{
    float r2 = 0.0f, approach = 0.0f, speed2 = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        r2 += pair->position[d] * pair->position[d];
        approach += pair->position[d] * pair->velocity[d];
        speed2 += pair->velocity[d] * pair->velocity[d];
    }
    const float volume = 2.0f / pair->density, r = sqrtf(r2), q = r * constants->inverse_support;
    float along_x = 0.0f, along_v = 0.0f, along_gradient = 0.0f, value = 0.0f;
    if (constants->xsph + constants->calming + constants->becker + constants->filter > 0.0f)
        value = sk_sph_kernel(constants->wendland, q) * constants->weight;
    if (constants->viscous)
        along_gradient = sk_sph_viscous_share(&constants->viscosity, pair->density, approach, r2);
    along_v = -sk_sph_calmed(constants, pair->calm, speed2) * volume * value;
    along_x = -constants->becker * value;
    const float filter = constants->filter * sk_sph_filter_weight(constants, speed2) * volume * value;
    if (constants->cohesion > 0.0f)
        along_x -= constants->cohesion * volume * sk_sph_cohesion(q) / fmaxf(r, 1e-6f * constants->spacing);
    for (int d = 0; d < SELKIE_DIM; d++) {
        change[d] += along_gradient * pair->gradient[d] + along_x * pair->position[d] + along_v * pair->velocity[d];
        if (constants->curvature > 0.0f)
            change[d] -= constants->curvature * volume * pair->normal[d];
        if (constants->filter > 0.0f)
            change[d] += filter * pair->normal[d];
    }
}

/* --- Pressure --- */

SK_KERNEL float SK_DIM(sk_sph_dot)(const float a[3], const float b[3])
{
    float sum = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum += a[d] * b[d];
    return sum;
}

/* sum += scale gradient */
SK_KERNEL void SK_DIM(sk_sph_add_scaled)(float scale, const float gradient[3], float sum[3])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        sum[d] += scale * gradient[d];
}

/* --- Friction at walls --- */

typedef struct sk_sph_friction_constants {
    float reach2, inverse_support; /* m2, 1/m */
    float slope;                   /* factor of the kernel / support^2 */
    float softening;               /* m2 */
    float strength;                /* m2 */
    int wendland;
} sk_sph_friction_constants;

/* The contribution of a boundary particle to a particle's friction (c in friction_dim.c); 0 out of reach. */
SK_KERNEL float SK_DIM(sk_sph_friction_weight)(const sk_sph_friction_constants *constants, const float x[3],
                                               const float point[3], float volume)
{
    float r2 = 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++)
        r2 += (x[d] - point[d]) * (x[d] - point[d]);
    if (r2 >= constants->reach2)
        return 0.0f;
    const float q = fmaxf(sqrtf(r2) * constants->inverse_support, 1e-6f);
    const float slope = sk_sph_kernel_slope(constants->wendland, q) / q * constants->slope;
    return -constants->strength * volume * slope * r2 / (r2 + constants->softening);
}

#endif

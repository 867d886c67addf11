/* SPH for one distance and for one particle: kernels, and the arithmetic of the pressure system. Compiled by the C
 * compiler and by nvcc. Pairs of particles: sph_pair_kernels.h.
 *
 * All kernels take q = r / H, H the radius of support, and leave out the factor of normalisation (sk_sph_*_factor),
 * which holds the power of H: W = factor(H) w(q), dW/dr = factor(H) / H * slope(q). */
#ifndef SK_METHODS_SPH_SPH_KERNELS_H
#define SK_METHODS_SPH_SPH_KERNELS_H

#define SK_SPH_SOFTENING 0.01 /* of the support^2: keeps 1 / r^2 finite in viscosity */

#include <math.h>

#include "base/kernel.h"

#define SK_SPH_PI 3.14159265358979323846

SK_KERNEL float sk_sph_positive(float a)
{
    return a > 0.0f ? a : 0.0f;
}

/* Cubic spline (Monaghan 1992): 2 (1-q)^3 - 8 (1/2-q)^3, each bracket where it is positive. */
SK_KERNEL float sk_sph_cubic(float q)
{
    float a = sk_sph_positive(1.0f - q), b = sk_sph_positive(0.5f - q);
    return 2.0f * a * a * a - 8.0f * b * b * b;
}

SK_KERNEL float sk_sph_cubic_slope(float q)
{
    float a = sk_sph_positive(1.0f - q), b = sk_sph_positive(0.5f - q);
    return 24.0f * b * b - 6.0f * a * a;
}

SK_KERNEL double sk_sph_cubic_factor(int dimension, double support)
{
    return dimension == 2 ? 40.0 / (7.0 * SK_SPH_PI * support * support)
                          : 8.0 / (SK_SPH_PI * support * support * support);
}

/* Wendland's C2 function (Wendland 1995; Dehnen and Aly 2012): (1-q)^4 (4q+1). It has no pairing instability. */
SK_KERNEL float sk_sph_wendland(float q)
{
    float a = sk_sph_positive(1.0f - q), b = a * a;
    return b * b * (4.0f * q + 1.0f);
}

SK_KERNEL float sk_sph_wendland_slope(float q)
{
    float a = sk_sph_positive(1.0f - q);
    return -20.0f * q * a * a * a;
}

SK_KERNEL double sk_sph_wendland_factor(int dimension, double support)
{
    return dimension == 2 ? 7.0 / (SK_SPH_PI * support * support)
                          : 21.0 / (2.0 * SK_SPH_PI * support * support * support);
}

/* The kernel of the scene: Wendland's, or the cubic spline. */
SK_KERNEL float sk_sph_kernel(int wendland, float q)
{
    return wendland ? sk_sph_wendland(q) : sk_sph_cubic(q);
}

SK_KERNEL float sk_sph_kernel_slope(int wendland, float q)
{
    return wendland ? sk_sph_wendland_slope(q) : sk_sph_cubic_slope(q);
}

SK_KERNEL double sk_sph_kernel_factor(int wendland, int dimension, double support)
{
    return wendland ? sk_sph_wendland_factor(dimension, support) : sk_sph_cubic_factor(dimension, support);
}

/* The density of a wall as a function of the distance over its reach. It is not the kernel of the liquid: sph.c derives
 * its slope. A point of a surface counts (1-q)^3. In 3D a plane of such points sums up to the sheet, 5 a^4 - 4 a^5 with
 * a = 1-q. Its slope is largest at q = 1/4 and 0 on the sheet itself. */
SK_KERNEL float sk_sph_point(float q)
{
    float a = sk_sph_positive(1.0f - q);
    return a * a * a;
}

SK_KERNEL float sk_sph_point_slope(float q)
{
    float a = sk_sph_positive(1.0f - q);
    return -3.0f * a * a;
}

SK_KERNEL float sk_sph_sheet(float q)
{
    float a = sk_sph_positive(1.0f - q), b = a * a;
    return b * b * (5.0f - 4.0f * a);
}

SK_KERNEL float sk_sph_sheet_slope(float q)
{
    float a = sk_sph_positive(1.0f - q);
    return -20.0f * a * a * a * (1.0f - a);
}

/* Cohesion of Akinci et al. 2013, Eq. 2: attracts beyond half the support and repels below. Its factor in 3D is 32 /
 * (pi H^3) with lengths over H. */
SK_KERNEL float sk_sph_cohesion(float q)
{
    float a = sk_sph_positive(1.0f - q), product = a * q, cube = product * product * product;
    return q > 0.5f ? cube : 2.0f * cube - 1.0f / 64.0f;
}

SK_KERNEL double sk_sph_cohesion_factor(int dimension, double support)
{
    /* In 2D half a disc must attract as half a ball does: pi/2 times the ratio of the kernel's second and first
     * moments, 1.83687e-3 and 2.91574e-3. */
    return dimension == 2 ? 0.989577 * 32.0 / (SK_SPH_PI * support * support)
                          : 32.0 / (SK_SPH_PI * support * support * support);
}

/* --- The mean pressure, for the length of a step --- */

/* A power of two near 2^-16 of the pressure (Pa) of the scene's natural speed: 0.4 spacings in the correction time. */
SK_KERNEL double sk_sph_pressure_unit(double density, double spacing, double correction_time)
{
    const double speed = correction_time > 0.0 ? 0.4 * spacing / correction_time : 1.0;
    int exponent = 0;
    frexp(density * speed * speed, &exponent);
    return ldexp(1.0, exponent - 16);
}

/* A pressure in whole units. Sums are exact, and so the same in any order, while they stay below 2^53: for a million
 * particles up to a mean of 2^17 times the pressure of the natural speed, which leaves out force fields. The bound
 * keeps a single wild pressure from hiding all others. */
SK_KERNEL double sk_sph_whole_pressure(float pressure, double unit)
{
    const double most = 1099511627776.0, whole = floor((double)pressure / unit + 0.5); /* 2^40 */
    return whole < -most ? -most : whole < most ? whole : most;
}

/* --- The order of particles (correction_parts.h) --- */

/* What the correction leaves (SK_SPH_ISOTROPY) keeps particles in order, but holds bodies by friction proportional to
 * the pressure. While a body moves, it stops growing at the pressure of these spacings of depth. Below this part of
 * sqrt(g spacing) of the body's speed the limit rises, so that liquid at rest keeps its order. */
#define SK_SPH_ORDER_DEPTH 5.0
#define SK_SPH_ORDER_SPEED 0.1

/* --- The pressure system, one particle (derivation: sph.h) --- */

#define SK_SPH_FULL 0.95f /* density ratio: below it air is within a particle's reach */

/* The increase of the density ratio D that a step may give to a particle. Below SK_SPH_FULL it may fill up. Above, it
 * counts as full although it is not: noise puts half of all particles below 1, and without this rule they would carry
 * no load, and the liquid would begin to fall. The gap to 1 stays open: closing it would pump energy. */
SK_KERNEL float sk_sph_allowed(float density)
{
    return sk_sph_positive(SK_SPH_FULL - density);
}

typedef struct sk_sph_system {
    float dt;      /* s */
    float correct; /*      share of the density error that is corrected in this step */
    int lenient;   /*      particles below rest density may fill up in one step */
    float warm;    /*      share of the last pressure at the start of the solve */
    float least;   /*      least diagonal: particles at nearly one place have almost no gradient, and without a floor
                      under the diagonal their steps would be unbounded */
    float unit;    /* m/Pa variable of a pressure at rest density */
    float spacing; /* m */
    int roles;     /*      there are liquid boundaries */
} sk_sph_system;

/* Right side, m: the excess of the density ratio at the end of the step times the spacing. `flux`: m/s, S.v - sum G.v.
 */
SK_KERNEL float sk_sph_source(const sk_sph_system *system, float density, float flux)
{
    float excess = density - 1.0f;
    if (excess > 0.0f)
        excess *= system->correct;
    else if (!system->lenient)
        excess = -sk_sph_allowed(density);
    return excess * system->spacing + system->dt * flux;
}

/* 0 for a particle without pressure. */
SK_KERNEL float sk_sph_inverse_diagonal(const sk_sph_system *system, float diagonal)
{
    return diagonal > 0.0f ? 1.0f / fmaxf(diagonal, system->least) : 0.0f;
}

/* The start of a solve, from the last pressure. */
SK_KERNEL float sk_sph_start(const sk_sph_system *system, float inverse_diagonal, float pressure, float density)
{
    return inverse_diagonal > 0.0f ? system->warm * pressure * system->unit / (density * density) : 0.0f;
}

/* The residual in the stopping test. */
SK_KERNEL float sk_sph_counted(float residual, float q)
{
    return q > 0.0f ? (residual < 0.0f ? -residual : residual) : sk_sph_positive(residual);
}

/* A Jacobi step with clamping at 0. */
SK_KERNEL float sk_sph_relaxed(float q, float residual, float inverse_diagonal, float omega)
{
    return inverse_diagonal > 0.0f ? sk_sph_positive(q + omega * residual * inverse_diagonal) : 0.0f;
}

#endif

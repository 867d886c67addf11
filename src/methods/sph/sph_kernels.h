/* Kernels of SPH: what one distance weighs. The plain form, compiled by the C compiler and by nvcc; the lists of
 * neighbours are built by a vector twin that is tested against it.
 *
 * All take q = r / H, H the radius of support, and leave out the factor of normalisation (sk_sph_*_factor), which holds
 * the power of H: W = factor(H) w(q), dW/dr = factor(H) / H * slope(q). */
#ifndef SK_METHODS_SPH_SPH_KERNELS_H
#define SK_METHODS_SPH_SPH_KERNELS_H

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

/* Wendland's C2 function (Wendland 1995; Dehnen and Aly 2012): (1-q)^4 (4q+1). Never pairs particles up. */
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

/* What a wall adds to the density, of the distance over its reach. It is no kernel of the liquid: sph.c says which
 * slope it must have. A point of a surface counts (1-q)^3; in 3D a plane of such points sums up to the sheet, 5 a^4 - 4
 * a^5 with a = 1-q, whose slope pushes most strongly at a quarter of the reach and not at all on the sheet itself. */
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

/* Poly6 (Mueller et al. 2003): (1-q^2)^3; what elastoplastic points weigh with. */
SK_KERNEL float sk_sph_poly6(float q)
{
    float a = sk_sph_positive(1.0f - q * q);
    return a * a * a;
}

SK_KERNEL double sk_sph_poly6_factor(int dimension, double support)
{
    return dimension == 2 ? 4.0 / (SK_SPH_PI * support * support)
                          : 315.0 / (64.0 * SK_SPH_PI * support * support * support);
}

/* Cohesion of Akinci et al. 2013, Eq. 2: pulls beyond half the support and pushes below. Its factor in 3D is
 * 32 / (pi H^3) with lengths over H. */
SK_KERNEL float sk_sph_cohesion(float q)
{
    float a = sk_sph_positive(1.0f - q), product = a * q, cube = product * product * product;
    return q > 0.5f ? cube : 2.0f * cube - 1.0f / 64.0f;
}

SK_KERNEL double sk_sph_cohesion_factor(int dimension, double support)
{
    /* In 2D chosen so that half a disc pulls as half a ball does: pi/2 times the ratio of the kernel's second and first
     * moments, 1.83687e-3 and 2.91574e-3. */
    return dimension == 2 ? 0.989577 * 32.0 / (SK_SPH_PI * support * support)
                          : 32.0 / (SK_SPH_PI * support * support * support);
}

#endif

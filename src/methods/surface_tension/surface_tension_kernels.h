/* Surface tension at one cell and one face. */
#ifndef SK_METHODS_SURFACE_TENSION_KERNELS_H
#define SK_METHODS_SURFACE_TENSION_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Passes of the binomial kernel (1 2 1)/4 along each axis over the fill, and the variance (cells^2) of the blur: 1/2 a
 * pass, and 1/6 of the hat kernel that the fill was measured with. */
#define SK_TENSION_PASSES 3
#define SK_TENSION_VARIANCE (0.5f * SK_TENSION_PASSES + 1.0f / 6.0f)
/* Cells around a block: the passes, the fit, and the cells around a solid cell of the fit. */
#define SK_TENSION_HALO (SK_TENSION_PASSES + 2)

/* Depth below the surface (cells), positive inside, of a point with the blurred fill. A flat surface blurred by a
 * normal distribution has the fill Phi(depth / sqrt(variance)); the inverse is that of Winitzki 2008, exact to 0.2 %.
 * The fill is cut where it says nothing more about the distance. */
SK_KERNEL float sk_tension_depth(float fill)
{
    const float a = 0.147f, least = 1e-3f;
    const float cut = fill < least ? least : fill > 1.0f - least ? 1.0f - least : fill;
    const float x = 2.0f * cut - 1.0f;
    const float log_part = __builtin_logf(1.0f - x * x);
    const float half = 2.0f / (3.14159265f * a) + 0.5f * log_part;
    const float inner = __builtin_sqrtf(half * half - log_part / a) - half;
    const float root = __builtin_sqrtf(2.0f * SK_TENSION_VARIANCE * (inner > 0.0f ? inner : 0.0f));
    return x < 0.0f ? -root : root;
}

/* Gradient and second derivatives (xx yy zz xy yz zx) of the quadratic that fits the values at the 3^d cells around a
 * cell best, x fastest. */
typedef struct sk_tension_fit {
    float gradient[3], second[6];
} sk_tension_fit;

SK_KERNEL void sk_tension_fit_quadratic(const float *values, sk_tension_fit *fit)
{
    const float planes = SELKIE_DIM == 3 ? 3.0f : 1.0f;
    float sums[9] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    for (int n = 0; n < (SELKIE_DIM == 3 ? 27 : 9); n++) {
        const int x = n % 3 - 1, y = n / 3 % 3 - 1, z = SELKIE_DIM == 3 ? n / 9 - 1 : 0;
        const float v = values[n];
        sums[0] += (float)x * v;
        sums[1] += (float)y * v;
        sums[2] += (float)z * v;
        sums[3] += (float)(3 * x * x - 2) * v;
        sums[4] += (float)(3 * y * y - 2) * v;
        sums[5] += (float)(3 * z * z - 2) * v;
        sums[6] += (float)(x * y) * v;
        sums[7] += (float)(y * z) * v;
        sums[8] += (float)(z * x) * v;
    }
    for (int d = 0; d < 3; d++) {
        fit->gradient[d] = d < SELKIE_DIM ? sums[d] / (6.0f * planes) : 0.0f;
        fit->second[d] = d < SELKIE_DIM ? sums[3 + d] / (3.0f * planes) : 0.0f;
        fit->second[3 + d] = d == 0 || SELKIE_DIM == 3 ? sums[6 + d] / (4.0f * planes) : 0.0f;
    }
}

/* Curvature of the surface (per cell, positive around a drop; the sum of both in 3D) nearest to a cell, from the fit of
 * the depth there. The fit gives that of the level through the cell, which is parallel to the surface. */
SK_KERNEL float sk_tension_curvature(const sk_tension_fit *fit, float depth)
{
    const float *g = fit->gradient, *s = fit->second;
    const float square = g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
    const float length = __builtin_sqrtf(square > 0.0625f ? square : 0.0625f), most = (float)(SELKIE_DIM - 1);

    /* Sum H and product K of the curvatures of the level. */
    const float trace = s[0] + s[1] + s[2];
    const float along = g[0] * (g[0] * s[0] + 2.0f * g[1] * s[3]) + g[1] * (g[1] * s[1] + 2.0f * g[2] * s[4]) +
                        g[2] * (g[2] * s[2] + 2.0f * g[0] * s[5]);
    const float sum = (along - square * trace) / (length * length * length);
    float product = 0.0f;
    if (SELKIE_DIM == 3) {
        const float xx = s[1] * s[2] - s[4] * s[4], yy = s[0] * s[2] - s[5] * s[5], zz = s[0] * s[1] - s[3] * s[3];
        const float xy = s[4] * s[5] - s[3] * s[2], yz = s[3] * s[5] - s[4] * s[0], zx = s[3] * s[4] - s[5] * s[1];
        product = (g[0] * (g[0] * xx + 2.0f * g[1] * xy) + g[1] * (g[1] * yy + 2.0f * g[2] * yz) +
                   g[2] * (g[2] * zz + 2.0f * g[0] * zx)) /
                  (length * length * length * length);
    }

    /* The parallel surface at the cell's distance. */
    const float way = depth / length, distance = way < 1.5f ? (way > -1.5f ? way : -1.5f) : 1.5f;
    const float part = 1.0f + sum * distance + product * distance * distance;
    const float curvature = (sum + 2.0f * product * distance) / (part > 0.25f ? part : 0.25f);
    return curvature < most ? (curvature > -most ? curvature : -most) : most;
}

/* Weight of a cell for the mean curvature around another one, at a squared distance (cells^2). */
SK_KERNEL float sk_tension_weight(float square)
{
    return __builtin_expf(-square / 2.88f);
}

/* The curvature without the blur. The blur moves the surface like mean curvature flow over the time variance / 2, in
 * which the curvature H grows by its Laplacian along the surface + |A|^2 H (Huisken 1984; |A|^2 of equal curvatures).
 * The mean over the cells beside the surface with the mean squared distance `square` gives the Laplacian. */
SK_KERNEL float sk_tension_unblurred(float curvature, float mean, float square)
{
    const float across = 0.3f, dimension = (float)(SELKIE_DIM - 1), time = 0.5f * SK_TENSION_VARIANCE;
    const float spread = (square > 2.0f * across ? square - across : across) / dimension;
    const float bend = time * curvature * curvature / dimension;
    return curvature * (1.0f - (bend < 0.5f ? bend : 0.5f)) - time * 2.0f * (mean - curvature) / spread;
}

/* Impulse of surface tension on a face between a liquid cell and an air cell (m/s) towards the liquid, without the
 * lightness. `jump` is sigma t / (density h^2) for a curvature of one per cell; theta as in the pressure solve. */
SK_KERNEL float sk_tension_push(float jump, float inside, float outside, float theta)
{
    return jump * ((1.0f - theta) * inside + theta * outside) / theta;
}

#endif

/* The change of velocity of a new droplet, drawn from the distribution that the modifier gives it. */
#ifndef SK_LEARN_SPLASH_CHANGE_KERNELS_H
#define SK_LEARN_SPLASH_CHANGE_KERNELS_H

#include "base/kernel.h"

SK_KERNEL double sk_splash_within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Quantile of a Student-t distribution with 3 degrees of freedom, by Newton's method; cut at 5. */
SK_KERNEL_CALLED float sk_splash_student_quantile(float u)
{
    const double p = sk_splash_within(u, 1e-4, 1.0 - 1e-4), root = 1.7320508075688772, pi = 3.14159265358979323846;
    double t = (p - 0.5) * 2.0;
    for (int n = 0; n < 40; n++) {
        const double a = t / root, part = 1.0 + a * a, most = 1.0 + (t < 0.0 ? -t : t);
        const double below = 0.5 + (a / part + __builtin_atan(a)) / pi, density = 2.0 / (pi * root * part * part);
        t -= sk_splash_within((below - p) / density, -most, most);
    }
    return (float)sk_splash_within(t, -5.0, 5.0);
}

/* The same for a normal distribution. */
SK_KERNEL_CALLED float sk_splash_normal_quantile(float u)
{
    const double p = sk_splash_within(u, 1e-6, 1.0 - 1e-6), root = 1.4142135623730951, wide = 2.5066282746310002;
    double z = 0.0;
    for (int n = 0; n < 60; n++) {
        const double below = 0.5 * __builtin_erfc(-z / root), density = __builtin_exp(-0.5 * z * z) / wide;
        z -= sk_splash_within((below - p) / (density > 1e-9 ? density : 1e-9), -0.5, 0.5);
    }
    return (float)z;
}

/* The change along an axis over the speed of the model, from its mean and the logarithm of its scale (normal: of its
 * variance), which the modifier gives, and the spread of all changes. A random number of 0.5 gives the mean. */
SK_KERNEL float sk_splash_change_along(int normal, float spread, float mean, float raw, float random)
{
    const float limit = normal ? 12.0f : 6.0f, bounded = raw < -limit ? -limit : raw > limit ? limit : raw;
    float part = 0.0f;
    if (random != 0.5f)
        part = __builtin_expf((normal ? 0.5f : 1.0f) * bounded) *
               (normal ? sk_splash_normal_quantile(random) : sk_splash_student_quantile(random));
    return spread * (mean + part);
}

#endif

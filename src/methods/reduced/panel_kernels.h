/* A vortex panel: a straight piece with constant circulation for a length, counter-clockwise, of unit strength.
 *
 * Eq. 5.11 of the source is not free of divergence. Here the stream function and its derivatives are used:
 * psi = -(F(x) - F(x - length)) / 2 pi with F(a) = a/2 ln(a^2 + y^2) - a + y atan(a / y), u = psi_y, v = -psi_x.
 */
#ifndef SK_METHODS_REDUCED_PANEL_KERNELS_H
#define SK_METHODS_REDUCED_PANEL_KERNELS_H

#include "base/kernel.h"

#define SK_INVERSE_TWO_PI 0.15915494309189533577

SK_KERNEL double sk_panel_part(double a, double y)
{
    const double square = a * a + y * y;
    const double logarithm = square > 0.0 ? 0.5 * a * __builtin_log(square) : 0.0;
    return logarithm - a + (y != 0.0 ? y * __builtin_atan(a / y) : 0.0);
}

/* m2/s for a strength of 1 m/s. The panel begins at the origin and goes along x for `length` (m). */
SK_KERNEL double sk_panel_stream(double x, double y, double length)
{
    return -SK_INVERSE_TWO_PI * (sk_panel_part(x, y) - sk_panel_part(x - length, y));
}

/* The velocity (m/s) of a panel of strength 1 m/s. On the panel itself (y = 0) it is the mean of both sides. */
SK_KERNEL void sk_panel_velocity(double x, double y, double length, double velocity[2])
{
    const double a = x, b = x - length;
    const double angle = y != 0.0 ? __builtin_atan2(y * length, y * y + a * b) : 0.0; /* atan(a / y) - atan(b / y) */
    velocity[0] = -SK_INVERSE_TWO_PI * angle;
    velocity[1] = 0.5 * SK_INVERSE_TWO_PI * __builtin_log((a * a + y * y + 1e-300) / (b * b + y * y + 1e-300));
}

#endif

/* Frozen bodies: moments of one particle, share in one face, response to an impulse. */
#ifndef SK_METHODS_HEAT_FROZEN_KERNELS_H
#define SK_METHODS_HEAT_FROZEN_KERNELS_H

#include "base/kernel.h"

/* Adds a particle to the inertia and the angular momentum about a centre. In 2D arms and velocities have z = 0. */
SK_KERNEL void sk_frozen_add_moments(double mass, const double arm[3], const double velocity[3], double inertia[9],
                                     double momentum[3])
{
    const double square = arm[0] * arm[0] + arm[1] * arm[1] + arm[2] * arm[2];
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        momentum[i] += mass * (arm[j] * velocity[k] - arm[k] * velocity[j]);
        for (int e = 0; e < 3; e++)
            inertia[3 * i + e] += mass * ((i == e ? square : 0.0) - arm[i] * arm[e]);
    }
}

/* The inverse of an inertia; 0, for a body that does not turn, if it is singular. In 2D a body turns about z alone. */
SK_KERNEL void sk_frozen_invert(const double a[9], int dimension, double inverse[9])
{
    const double scale = a[0] + a[4] + a[8];
    for (int n = 0; n < 9; n++)
        inverse[n] = 0.0;
    if (dimension == 2) {
        inverse[8] = a[8] > 0.0 ? 1.0 / a[8] : 0.0;
        return;
    }
    const double determinant =
        a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) + a[2] * (a[3] * a[7] - a[4] * a[6]);
    if (!(determinant > 1e-9 * scale * scale * scale))
        return;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const int p = (j + 1) % 3, q = (j + 2) % 3, r = (i + 1) % 3, s = (i + 2) % 3;
            inverse[3 * i + j] = (a[3 * p + r] * a[3 * q + s] - a[3 * p + s] * a[3 * q + r]) / determinant;
        }
}

/* Angular velocity from an angular momentum. */
SK_KERNEL void sk_frozen_turn(const double inverse[9], const double momentum[3], double turning[3])
{
    for (int i = 0; i < 3; i++)
        turning[i] = inverse[3 * i] * momentum[0] + inverse[3 * i + 1] * momentum[1] + inverse[3 * i + 2] * momentum[2];
}

/* Share of a body in a face from the weights of its particles and of all. Slivers would make the system stiff. */
SK_KERNEL float sk_frozen_share(float solid, float all)
{
    const float share = all > 0.0f ? solid / all : 0.0f;
    return share < 0.02f ? 0.0f : share > 0.95f ? 1.0f : share;
}

/* Velocity that an impulse along a direction (unit vector) at an arm gives to its own point: 1/kg. */
SK_KERNEL double sk_frozen_mobility(double mass, const double inverse[9], const double arm[3], const double normal[3],
                                    double turn[3])
{
    double moment[3], sum = 1.0 / mass;
    for (int i = 0; i < 3; i++)
        moment[i] = arm[(i + 1) % 3] * normal[(i + 2) % 3] - arm[(i + 2) % 3] * normal[(i + 1) % 3];
    sk_frozen_turn(inverse, moment, turn);
    for (int i = 0; i < 3; i++)
        sum += turn[i] * moment[i];
    return sum;
}

/* The matrix of a rotation by a vector (rad), row-major (Rodrigues). */
SK_KERNEL void sk_frozen_rotation(const double w[3], double matrix[9])
{
    const double angle2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2], angle = __builtin_sqrt(angle2);
    const double s = angle > 1e-4 ? __builtin_sin(angle) / angle : 1.0 - angle2 / 6.0;
    const double c = angle > 1e-4 ? (1.0 - __builtin_cos(angle)) / angle2 : 0.5 - angle2 / 24.0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            matrix[3 * i + j] = c * w[i] * w[j] + (i == j ? 1.0 - c * angle2 : 0.0);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        matrix[3 * j + k] -= s * w[i];
        matrix[3 * k + j] += s * w[i];
    }
}

/* The same of a turn with an angular velocity (rad/s) for a time. */
SK_KERNEL void sk_frozen_turned(const double turning[3], double dt, double rotation[9])
{
    const double vector[3] = {dt * turning[0], dt * turning[1], dt * turning[2]};
    sk_frozen_rotation(vector, rotation);
}

#endif

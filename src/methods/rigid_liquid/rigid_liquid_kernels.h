/* Rigid bodies in the liquid, for one face, cell or contact. */
#ifndef SK_METHODS_RIGID_LIQUID_KERNELS_H
#define SK_METHODS_RIGID_LIQUID_KERNELS_H

#include "base/dimension.h"
#include "base/kernel.h"

/* Modes of a body: translations, then rotations. */
#define SK_BODY_MODES (SELKIE_DIM == 3 ? 6 : 3)

/* Adds `share` times the velocity along axis d that each mode has at `arm` from the centre of mass. */
SK_KERNEL void sk_body_add_modes(int d, const double arm[3], float share, float modes[6])
{
    modes[d] += share;
#if SELKIE_DIM == 3
    const int e = (d + 1) % 3, f = (d + 2) % 3;
    modes[3 + e] += share * (float)arm[f];
    modes[3 + f] -= share * (float)arm[e];
#else
    modes[2] += share * (float)(d == 0 ? -arm[1] : arm[0]);
#endif
}

/* Velocity of a contact normal to the surface for a particle of velocity v, and its modes (n, r x n). Arms in m. */
SK_KERNEL void sk_body_contact_modes(const float normal[3], const double arm[3], double modes[6])
{
    const double n[3] = {(double)normal[0], (double)normal[1], SELKIE_DIM == 3 ? (double)normal[2] : 0.0};
    for (int d = 0; d < SELKIE_DIM; d++)
        modes[d] = n[d];
#if SELKIE_DIM == 3
    for (int d = 0; d < 3; d++)
        modes[3 + d] = arm[(d + 1) % 3] * n[(d + 2) % 3] - arm[(d + 2) % 3] * n[(d + 1) % 3];
#else
    modes[2] = arm[0] * n[1] - arm[1] * n[0];
#endif
}

/* Solves a x = b for a small matrix, by elimination with pivots. */
SK_KERNEL_CALLED void sk_body_solve_dense(double a[6][6], double x[6], int n)
{
    for (int j = 0; j < n; j++) {
        int best = j;
        for (int i = j + 1; i < n; i++)
            best = __builtin_fabs(a[i][j]) > __builtin_fabs(a[best][j]) ? i : best;
        for (int k = 0; k < n && best != j; k++) {
            const double swap = a[j][k];
            a[j][k] = a[best][k];
            a[best][k] = swap;
        }
        const double swap = x[j];
        x[j] = x[best];
        x[best] = swap;
        for (int i = j + 1; i < n; i++) {
            const double factor = a[i][j] / a[j][j];
            for (int k = j; k < n; k++)
                a[i][k] -= factor * a[j][k];
            x[i] -= factor * x[j];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
}

/* A particle at the surface of a body: its velocity along the normal (m/s), seen from the body, and the modes of the
 * contact. `velocity` is that of the body's modes: m/s, rad/s about `centre` (m). */
SK_KERNEL double sk_body_approach(const float position[3], const float particle_velocity[3], const float normal[3],
                                  const double centre[3], const double velocity[6], double modes[6])
{
    double arm[3] = {0.0, 0.0, 0.0}, normal_velocity = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        arm[d] = (double)position[d] - centre[d];
    sk_body_contact_modes(normal, arm, modes);
    for (int d = 0; d < SELKIE_DIM; d++)
        normal_velocity += modes[d] * (double)particle_velocity[d];
    for (int k = 0; k < SK_BODY_MODES; k++)
        normal_velocity -= modes[k] * velocity[k];
    return normal_velocity;
}

/* The change of a body's modes in a joint contact: (I + M^-1 K) delta = M^-1 g, so that held axes stay. `response` is
 * M^-1; `momentum` gets what the body takes from the particles. */
SK_KERNEL_CALLED void sk_body_meet(const double response[6][6], const double stiffness[6][6], const double gained[6],
                                   double change[6], double momentum[6])
{
    double system[6][6];
    for (int i = 0; i < SK_BODY_MODES; i++) {
        change[i] = 0.0;
        for (int j = 0; j < SK_BODY_MODES; j++) {
            change[i] += response[i][j] * gained[j];
            system[i][j] = i == j ? 1.0 : 0.0;
            for (int k = 0; k < SK_BODY_MODES; k++)
                system[i][j] += response[i][k] * stiffness[k][j];
        }
    }
    sk_body_solve_dense(system, change, SK_BODY_MODES);
    for (int k = 0; k < SK_BODY_MODES; k++) {
        momentum[k] = gained[k];
        for (int j = 0; j < SK_BODY_MODES; j++)
            momentum[k] -= stiffness[k][j] * change[j];
    }
}

#endif

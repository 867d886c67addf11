/* Velocities of a box as a sum of eigenfunctions of the Laplacian (Gerszewski, ch. 5), and how they move.
 *
 * Mode k has the stream function psi_k = 2 / sqrt(lambda_k Lx Ly) sin(k1 pi x / Lx) sin(k2 pi y / Ly) and the velocity
 * (d psi/dy, -d psi/dx). The velocities are orthonormal, so the kinetic energy is rho/2 times the sum of r_k^2, and the
 * enstrophy is the sum of lambda_k r_k^2 over 2. lambda_k = (k1 pi / Lx)^2 + (k2 pi / Ly)^2.
 *
 * Advection: dr_k/dt = -sum_ij lambda_j G_kij r_i r_j, with G_kij the integral of psi_k (u_i . grad) psi_j. G is
 * totally antisymmetric and has at most four values other than 0 for each pair, in closed form. Few modes sum over
 * triads. Many modes evaluate omega_t = -(dxx - dyy)(u v) - dxy(v^2 - u^2) on a grid fine enough to be exact.
 */
#ifndef SK_METHODS_REDUCED_SPECTRUM_H
#define SK_METHODS_REDUCED_SPECTRUM_H

#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"

/* Interaction of three modes a < b < c: G_abc. */
typedef struct sk_reduced_triad {
    int32_t a, b, c;
    double strength;
} sk_reduced_triad;

typedef struct sk_reduced_spectrum {
    sk_memory *memory;
    double size[2]; /* m   of the box */
    int count;      /*     modes, by their eigenvalue */
    int32_t (*wave)[2];
    double *lambda; /* 1/m2 */
    double *norm;   /*     factor of the stream function */

    int64_t triad_count; /* 0 = by transforms */
    sk_reduced_triad *triads;

    /* Grid for products: midpoints, more than 3/2 of the largest wave number along each axis. */
    int waves[2], points[2];
    double *sine[2], *cosine[2];  /* [waves][points] */
    double *table;                /* [waves[0]][waves[1]] scratch of coefficients */
    double *half, *u, *v, *p, *q; /* scratch: [waves[0]][points[1]] and [points[0]][points[1]] */

    double *k[4], *stage; /* [count] of the integrator */
} sk_reduced_spectrum;

selkie_code sk_reduced_spectrum_make(sk_reduced_spectrum *s, const double size[2], int count, sk_memory *memory,
                                     selkie_error *error);
void sk_reduced_spectrum_free(sk_reduced_spectrum *s);

/* dr/dt by advection. */
void sk_reduced_advect(sk_reduced_spectrum *s, const double *r, double *rate, int threads);
void sk_reduced_advect_by_triads(const sk_reduced_spectrum *s, const double *r, double *rate);
void sk_reduced_advect_by_transforms(sk_reduced_spectrum *s, const double *r, double *rate, int threads);

/* One step of length dt (s): half of the viscous decay, a Runge-Kutta step of fourth order that keeps energy and
 * enstrophy, the other half. nu in m2/s. */
void sk_reduced_step(sk_reduced_spectrum *s, double *r, double dt, double nu, int threads);

/* Sums of r^2 and of lambda r^2. */
void sk_reduced_moments(const sk_reduced_spectrum *s, const double *r, double *energy, double *enstrophy);

/* Velocity at a point (m from the corner), m/s. */
void sk_reduced_velocity(const sk_reduced_spectrum *s, const double *r, const double x[2], double velocity[2]);
/* Velocities on the nodes of a grid of nx x ny cells over the box: [nx + 1][ny + 1] of each component. */
void sk_reduced_velocities(sk_reduced_spectrum *s, const double *r, const int cells[2], double *const nodes[2],
                           double *scratch, int threads);
/* Adds the part of a force field that the modes carry. `force` gives the acceleration x time (m/s) at a point. */
void sk_reduced_add_force(sk_reduced_spectrum *s, double *r,
                          void (*force)(void *context, const double x[2], double f[2]), void *context, int threads);

#endif

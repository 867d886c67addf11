/* Velocities of a box as a sum of eigenfunctions of the Laplacian (Gerszewski, ch. 5), and how they move.
 *
 * Mode k has the stream function psi_k = norm_k X(x) Y(y) and the velocity (d psi/dy, -d psi/dx). X and Y are sines
 * between walls, cosines between open sides, both between periodic ones. The velocities are orthonormal, so the kinetic
 * energy is rho/2 times the sum of r_k^2, and the enstrophy is the sum of lambda_k r_k^2 over 2. In a closed box
 * lambda_k = (k1 pi / Lx)^2 + (k2 pi / Ly)^2.
 *
 * Advection in a closed box: dr_k/dt = -sum_ij lambda_j G_kij r_i r_j, with G_kij the integral of psi_k (u_i . grad)
 * psi_j. G is totally antisymmetric and has at most four values other than 0 for each pair, in closed form. Few modes
 * sum over triads. Many modes evaluate omega_t = -(dxx - dyy)(u v) - dxy(v^2 - u^2) on a grid fine enough to be exact;
 * periodic boxes do so with any number of modes.
 *
 * Further modes of any shape, such as drawn ones and the mean flow, are given by their velocity and vorticity on the
 * midpoints of a grid. Such a basis, and a box with open sides, projects u x omega at these points. That form does no
 * work at any point, so energy stays for every basis.
 */
#ifndef SK_METHODS_REDUCED_SPECTRUM_H
#define SK_METHODS_REDUCED_SPECTRUM_H

#include <stdint.h>
#include "base/memory.h"
#include "base/status.h"

typedef enum sk_reduced_family {
    SK_REDUCED_CLOSED,    /* walls at both ends: sin(n pi x / L), n >= 1 */
    SK_REDUCED_OPEN,      /* open at both ends: cos(n pi x / L), n >= 0 */
    SK_REDUCED_OPEN_LOW,  /* open at x = 0: cos((n - 1/2) pi x / L), n >= 1 */
    SK_REDUCED_OPEN_HIGH, /* open at x = L: sin((n - 1/2) pi x / L), n >= 1 */
    SK_REDUCED_PERIODIC   /* n = 2j - 1: sin(2 j pi x / L), n = 2j: cos(2 j pi x / L), n >= 0 */
} sk_reduced_family;

/* Interaction of three modes a < b < c: G_abc. */
typedef struct sk_reduced_triad {
    int32_t a, b, c;
    double strength;
} sk_reduced_triad;

/* Functions along one axis at some points: [waves][points], and transposed in two parts. `slope` is the derivative over
 * its wave number. */
typedef struct sk_reduced_table {
    int points;
    double *value, *slope;
    double *value_turned, *slope_turned; /* [points][even waves], then [points][odd waves] */
} sk_reduced_table;

/* Modes that are not eigenfunctions in closed form. Points are the midpoints of the cells, [mode][x][y]. */
typedef struct sk_reduced_extra {
    int count, room;
    double *u, *v, *omega;   /* m/s, m/s, 1/s at the midpoints */
    double *node_u, *node_v; /* m/s at the nodes */
    double *stream;          /* m2/s at the nodes, 0 at the corner of the box; NULL unless the box asks for them */
    int are_eigenfunctions;  /* enstrophy is kept */
} sk_reduced_extra;

/* What a basis is made for. */
typedef struct sk_reduced_box {
    double size[2]; /* m */
    int family[2];  /* sk_reduced_family */
    int cells[2];   /* of the grid that shows velocities and takes forces; 0 = none */
    int modes;      /* in closed form */
    int extra;      /* room for further modes */
    int streams;    /* further modes have their stream functions at the nodes: for bodies */
} sk_reduced_box;

typedef struct sk_reduced_spectrum {
    sk_memory *memory;
    double size[2]; /* m   of the box */
    int family[2];
    int closed; /*     modes in closed form, by their eigenvalue */
    int count;  /*     all modes: further ones are the last */
    int32_t (*wave)[2];
    double *lambda;    /* 1/m2 */
    double *norm;      /*     factor of the stream function */
    double *number[2]; /* 1/m  wave numbers of the closed modes along x and y */
    int32_t *at;       /*     their places in the table of coefficients */
    sk_reduced_extra extra;

    int64_t triad_count; /* 0 = by transforms */
    sk_reduced_triad *triads;

    /* Grid for products: midpoints, more than 3/2 of the largest wave number along each axis. */
    int waves[2], points[2];
    sk_reduced_table table[2];
    /* Grid for views and forces: midpoints and nodes of cells. */
    int cells[2];
    sk_reduced_table middle[2], node[2];

    double *coefficients; /* [waves[0]][waves[1]] scratch */
    double *half;         /* [waves[0]][most points along y] scratch */
    double *fold;         /* scratch of the transforms */
    double *grid[5];      /* scratch: the larger of points and nodes */
    double *k[4], *stage; /* [count] of the integrator */
} sk_reduced_spectrum;

selkie_code sk_reduced_spectrum_make(sk_reduced_spectrum *s, const sk_reduced_box *box, sk_memory *memory,
                                     selkie_error *error);
void sk_reduced_spectrum_free(sk_reduced_spectrum *s);
/* Adds a mode by its velocity and vorticity at midpoints and its velocity at nodes. There must be room. */
void sk_reduced_spectrum_add(sk_reduced_spectrum *s, double lambda, const double *const middle[3],
                             const double *const node[2]);

/* The modes that are in `extra` count from now on: their values were read into its arrays. */
void sk_reduced_spectrum_take(sk_reduced_spectrum *s, int extra);

/* The angular wave number (1/m) of function n along axis d, and its value at x (m from the corner). */
double sk_reduced_wave_number(const sk_reduced_spectrum *s, int d, int n);
void sk_reduced_function(const sk_reduced_spectrum *s, int d, int n, double x, double *value, double *slope);
/* First number of the functions along an axis: 0 or 1. */
int sk_reduced_first(int family);

/* dr/dt by advection. */
void sk_reduced_advect(sk_reduced_spectrum *s, const double *r, double *rate, int threads);
void sk_reduced_advect_by_triads(const sk_reduced_spectrum *s, const double *r, double *rate);
void sk_reduced_advect_by_transforms(sk_reduced_spectrum *s, const double *r, double *rate, int threads);
void sk_reduced_advect_by_points(sk_reduced_spectrum *s, const double *r, double *rate, int threads);

/* One step of length dt (s): half of the viscous decay, a Runge-Kutta step of fourth order that keeps energy and
 * enstrophy, the other half. nu in m2/s. */
void sk_reduced_step(sk_reduced_spectrum *s, double *r, double dt, double nu, int threads);
/* Eq. 5.9: the exponential of advection with the velocity frozen, and of viscosity, by its Taylor series. Needs triads.
 */
void sk_reduced_step_exponential(sk_reduced_spectrum *s, double *r, double dt, double nu);

/* Sums of r^2 and of lambda r^2. */
void sk_reduced_moments(const sk_reduced_spectrum *s, const double *r, double *energy, double *enstrophy);

/* Velocity at a point (m from the corner), m/s, of the modes in closed form. */
void sk_reduced_velocity(const sk_reduced_spectrum *s, const double *r, const double x[2], double velocity[2]);
/* Velocities at the nodes of the cells: [cells[0] + 1][cells[1] + 1] of each component. */
void sk_reduced_velocities(sk_reduced_spectrum *s, const double *r, double *const nodes[2], int threads);
/* Velocities and vorticity at their midpoints. */
void sk_reduced_middles(sk_reduced_spectrum *s, const double *r, double *const middles[3], int threads);
/* Adds the part of a velocity field that the modes carry (Eq. 5.4): the field at the midpoints of the cells. */
void sk_reduced_project(sk_reduced_spectrum *s, const double *const field[2], double *r, int threads);

#endif

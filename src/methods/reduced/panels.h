/* Vortex panels on the outline of one body, in its own frame (Gerszewski, ch. 5.3.1).
 *
 * The source cancels the normal velocity at the middles of the panels in the least squares sense. That system is
 * singular for some outlines. Here the stream function is constant along the outline, up to an unknown constant C:
 *
 *   sum_j gamma_j psi_j(m_i) - C = -(psi_r - psi_o)(m_i),   sum_j length_j gamma_j = 0,
 *
 * with psi_r that of the liquid without this body and psi_o = U y - V x - Omega r^2 / 2 that of its motion. The matrix
 * does not depend on the pose, so its inverse is made once.
 */
#ifndef SK_METHODS_REDUCED_PANELS_H
#define SK_METHODS_REDUCED_PANELS_H

#include "base/memory.h"
#include "base/status.h"

typedef struct sk_panels {
    sk_memory *memory;
    int count;
    double (*corner)[2];  /* m   [count] from the centre of mass */
    double (*middle)[2];  /* m   [count] */
    double (*tangent)[2]; /*     [count] unit, counter-clockwise; the outward normal is (tangent y, -tangent x) */
    double *length;       /* m   [count] */
    double *arm;          /* m   [count] middle x normal: normal velocity at 1 rad/s */
    double area;          /* m2 */
    double perimeter;     /* m */
    double reach;         /* m   largest distance of a corner from the centre */
    double longest;       /* m   panel */
    double *inverse;      /*     [count][count]: strengths of minus the stream function at the middles */
    double added[3][3];   /* m2, m3, m4: added mass over the density, for motion along x, y and rotation */
} sk_panels;

/* Corners (m) counter-clockwise around `center`, the centre of mass. `what` begins messages. */
selkie_code sk_panels_make(sk_panels *panels, int count, const double (*corners)[2], const double center[2],
                           const char *what, sk_memory *memory, selkie_error *error);
void sk_panels_free(sk_panels *panels);

/* m2/s at a point (m, the body's frame) of panel j with strength 1 m/s; likewise the velocity, m/s. */
double sk_panels_stream(const sk_panels *panels, int j, const double x[2]);
/* The same at least `gap` (m) beside the panel. */
double sk_panels_stream_beside(const sk_panels *panels, int j, const double x[2], double gap);
void sk_panels_velocity(const sk_panels *panels, int j, const double x[2], double velocity[2]);
/* strengths = inverse x (-stream), m/s. */
void sk_panels_strengths(const sk_panels *panels, const double *minus_stream, double *strengths);

#endif

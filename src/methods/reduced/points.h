/* Modes at points that lie anywhere: their stream function, and the modes of vortices there.
 *
 * A point has the functions of each axis. The stream function of a sum of modes is a sum over products of them. In
 * return, the velocity of a vortex of circulation Gamma, with all images, has the coefficient Gamma psi_k in mode k:
 * the integral of u . u_k is that of the vorticity times psi_k, since psi_k is 0 on the walls.
 */
#ifndef SK_METHODS_REDUCED_POINTS_H
#define SK_METHODS_REDUCED_POINTS_H

#include "methods/reduced/spectrum.h"

typedef struct sk_mode_points {
    sk_memory *memory;
    int count;
    int waves[2];
    double (*x)[2];   /* m [count] */
    double *table[2]; /*   [count][waves] functions along x and y */
} sk_mode_points;

/* `s`: the spectrum with the most waves that is used at these points. */
selkie_code sk_mode_points_make(sk_mode_points *points, const sk_reduced_spectrum *s, int count, selkie_error *error);
void sk_mode_points_free(sk_mode_points *points);
void sk_mode_points_place(sk_mode_points *points, const sk_reduced_spectrum *s, int n, const double x[2]);

/* Stream function (m2/s) of the modes at the points first .. end - 1. */
void sk_mode_points_stream(const sk_mode_points *points, sk_reduced_spectrum *s, const double *r, int first, int end,
                           double *stream);
/* r_k += sum of circulation x psi_k over all points, with circulations in m2/s. */
void sk_mode_points_add(const sk_mode_points *points, sk_reduced_spectrum *s, const double *circulation, double *r);

#endif

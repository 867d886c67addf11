/* MPRGP on a plain list of unknowns: the reference for the fast bounded solver. Private to src/linalg. */
#ifndef SK_LINALG_MPRGP_H
#define SK_LINALG_MPRGP_H

#include "linalg/bounded.h"

/* Unknowns in the order of z, then y, then x, so that lower neighbours come first. Entry `count` of every vector is an
 * absent cell with value 0; absent neighbours point there. All values are double. */
typedef struct sk_flat_system {
    int axes;
    int32_t count;
    int32_t *lower[3], *upper[3]; /* neighbours */
    double *face[3];              /* coefficient of the lower face */
    double *diagonal, *right_side, *bound;
    double *x;
    double *eigenvector; /* in: a start; out: an approximate eigenvector of the largest eigenvalue */
} sk_flat_system;

/* Bytes of scratch that a solve needs. */
size_t sk_mprgp_scratch_bytes(int32_t count);
/* Starts from system->x, which must not be below its bounds. Fills steps, residual, eigenvalue and history of the
 * report. */
void sk_mprgp_solve(sk_flat_system *system, const sk_bounded_options *options, void *scratch,
                    sk_bounded_report *report);

#endif

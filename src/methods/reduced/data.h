/* Modes from snapshots of runs: proper orthogonal modes of velocity fields, beside those of a basis. */
#ifndef SK_METHODS_REDUCED_DATA_H
#define SK_METHODS_REDUCED_DATA_H

#include "methods/reduced/reduced.h"

/* Velocity fields at the midpoints of the cells. */
typedef struct sk_snapshots {
    int count;
    const double *fields; /* m/s [count][2][x][y] */
    int most;             /*     modes that are wanted at most */
    double cut;           /*     fields with a singular value below this part of the largest are left out */
} sk_snapshots;

typedef struct sk_snapshot_report {
    int modes;    /*   that were added */
    double kept;  /*   part of the snapshots' energy in the basis with them, */
    double plain; /*   and without them */
} sk_snapshot_report;

/* Adds modes to the basis of a world that is not stepped any more: `selkie basis` writes it to a file. Each is a flow
 * "data_1", "data_2", ... that scenes may excite. */
selkie_code sk_reduced_add_snapshots(sk_reduced *reduced, const sk_step *step, const sk_snapshots *snapshots,
                                     sk_snapshot_report *report, selkie_error *error);

#endif

/* The parts of a correction that both forms share, and the parts that differ. Private to idp/. For files compiled per
 * dimension. */
#ifndef SK_METHODS_IDP_IDP_PARTS_H
#define SK_METHODS_IDP_IDP_PARTS_H

#include "base/dimension.h"
#include "grid/extrapolate.h"
#include "grid/transfer.h"
#include "methods/step.h"

/* The operations of a form on a block. */
typedef struct sk_idp_form {
    /* Spreads the particles of overfull cells. Returns their number. */
    int64_t (*spread)(const sk_step *step, sk_particle *records, int block);
    /* Runs with cells that need another correction. */
    uint64_t (*needy_runs)(const sk_step *step, int block);
    /* Rows and right side; only of chosen runs if `local`. Returns the density that is missing from the right side. */
    int64_t (*build)(const sk_step *step, int block, int local, int pushing);
    /* Displacements on the faces, cells, into VELOCITY_*; unknown away from liquid and behind solids. */
    void (*displacements)(const sk_step *step, int block, int local, int pushing);
    /* Extrapolates the displacements, in the blocks of a list. */
    void (*extrapolate)(const sk_grid *grid, const sk_extrapolation *what);
    /* Moves the particles by the displacements: sk_transfer_displace. `sweeps`: among obstacles as well. */
    void (*displace)(sk_grid *grid, sk_particles *particles, const sk_displacement *by);
    int sweeps;
} sk_idp_form;

/* One correction. */
selkie_code SK_DIM(sk_idp_correct_with)(sk_step *step, const sk_idp_form *form, selkie_error *error);

/* Redistributes the particles of an overfull cell. `corner` is its lower corner (m), `cut` is set if a solid cuts it.
 * Returns their number. */
int64_t SK_DIM(sk_idp_spread_cell)(const sk_step *step, sk_particle *records, int64_t count, const double corner[3],
                                   int cut);

#endif

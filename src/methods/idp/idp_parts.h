/* The parts of a correction that both forms share, and those that each has of its own. Private to idp/. For files
 * compiled per dimension. */
#ifndef SK_METHODS_IDP_IDP_PARTS_H
#define SK_METHODS_IDP_IDP_PARTS_H

#include "base/dimension.h"
#include "methods/step.h"

/* Density that a second correction in a step is for (what is beyond the bound, in any case). Measured in the double
 * dams at 20 ms: with fewer cells volume is lost (3D: above 1.2, the kernel volume falls to 0.9901 to 0.9907 in four
 * runs instead of 0.9914), more save none. */
#define SK_IDP_NEEDY_DENSITY 1.1f

/* What a form does to a block. */
typedef struct sk_idp_form {
    /* Spreads the particles of overfull cells. Returns how many. */
    int64_t (*spread)(const sk_step *step, sk_particle *records, int block);
    /* Runs with cells that need another correction. */
    uint64_t (*needy_runs)(const sk_step *step, int block);
    /* Rows and right side, of chosen runs alone if `local`. Returns the density that the solve will not see. */
    int64_t (*build)(const sk_step *step, int block, int local, int pushing);
    /* Displacements on the faces, cells, into VELOCITY_*; unknown where no liquid is near and behind solids. */
    void (*displacements)(const sk_step *step, int block, int local, int pushing);
    /* Into the faces around them, in the blocks of a list. */
    void (*extrapolate)(const sk_grid *grid, float *const *fields, float *const *scratch, int field_count,
                        const int32_t *blocks, int count, const uint64_t *wanted, int layers, int threads);
    /* Moves the particles by them: sk_transfer_displace. */
    void (*displace)(sk_grid *grid, sk_grid_field first, sk_particles *particles, const float low[3],
                     const float high[3], const uint64_t *runs, int tell_leavers, int threads);
} sk_idp_form;

/* One correction. */
selkie_code SK_DIM(sk_idp_correct_with)(sk_step *step, const sk_idp_form *form, selkie_error *error);

/* Lays the particles of an overfull cell out anew; its lower corner is in m, `cut` says whether a solid cuts it.
 * Returns how many. */
int64_t SK_DIM(sk_idp_spread_cell)(const sk_step *step, sk_particle *records, int64_t count, const double corner[3],
                                   int cut);

#endif

/* The complementarity problem over the cells that hold mass, shared by the pressure and by the correction of density. For
 * files compiled per dimension. */
#ifndef SK_METHODS_UIC_UIC_SYSTEM_H
#define SK_METHODS_UIC_UIC_SYSTEM_H

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/tile.h"
#include "methods/cells.h"
#include "methods/step.h"

/* More than this above the room is too dense; less is the rounding of sums over particles. */
#define UIC_SLACK 1e-5f

/* A cell with less room than this is part of a solid: whether it takes part is asked of its neighbours (mark_in_solids). */
#define UIC_LEAST_ROOM 0.1f

/* Faces whose kernel has less room than this are closed. */
#define UIC_LEAST_FACE 1e-3f

/* Room of a block's cells and of their faces (V_f), with one cell around. */
typedef struct uic_rooms {
    _Alignas(64) float cell[SK_TILE_VALUES(1)];
    float face[SELKIE_DIM][SK_TILE_VALUES(1)];
    int has_solid;
} uic_rooms;

static inline __attribute__((unused)) void uic_load_rooms(const sk_step *step, int block, uic_rooms *rooms)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    rooms->has_solid = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        rooms->has_solid |= solids->block_slot[grid->neighbours[block][n]] > 0;
    if (!rooms->has_solid) {
        for (int n = 0; n < SK_TILE_VALUES(1); n++)
            rooms->cell[n] = 1.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            memcpy(rooms->face[d], rooms->cell, sizeof rooms->cell);
        return;
    }
    sk_tile_load_mapped(grid, solids->block_slot, solids->blurred, block, 1, rooms->cell);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        rooms->cell[n] = 1.0f - rooms->cell[n] > 0.0f ? 1.0f - rooms->cell[n] : 0.0f;
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_tile_load_mapped(grid, solids->block_slot, solids->blurred_face[d], block, 1, rooms->face[d]);
        for (int n = 0; n < SK_TILE_VALUES(1); n++)
            rooms->face[d][n] = 1.0f - rooms->face[d][n] >= UIC_LEAST_FACE ? 1.0f - rooms->face[d][n] : 0.0f;
    }
}

/* What a problem is about. */
typedef struct uic_problem {
    const char *name;      /* for messages */
    const float *target;   /* density that must fit */
    const float *presence; /* density that makes a cell take part as well; NULL = none */
    const float *lower;    /* bounds of the unknown; NULL = 0 */
    double tolerance;
    selkie_residual_norm norm;
} uic_problem;

/* Builds and solves; the solution is in SK_FIELD_POTENTIAL, 0 outside. Where nothing is too dense there is nothing to
 * solve. `excess` gets the largest density above the room. */
selkie_code SK_DIM(sk_uic_solve)(sk_step *step, const uic_problem *problem, sk_bounded_report *report, double *excess,
                                 selkie_error *error);

#endif

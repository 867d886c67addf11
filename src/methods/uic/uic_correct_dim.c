/* The correction of density: a complementarity problem on positions (Narain et al. 2010; Gerszewski, sec. 3.1). */
#include <math.h>

#include "base/dimension.h"
#include "methods/uic/uic.h"
#include "methods/uic/uic_system.h"

/* No particle is shifted farther than this in a step, cells. */
static const float farthest = 0.5f;

/* A face's flux of mass moves what mass it has; where it has next to none, this much. */
static const float least_density = 0.25f;

selkie_code SK_DIM(sk_uic_solids_now)(sk_step *step, selkie_error *error)
{
    sk_solids_move(&step->solids, step->time);
    return SK_DIM(sk_solids_update)(&step->solids, &step->grid, step->threads, error);
}

/* Shifts on the faces, and the density that they lead to, in PREDICTED: what the flux form of the prediction starts from. */
static void shift_block(const sk_step *step, int block, int corrected)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float potential[SK_TILE_VALUES(1)];
    uic_rooms rooms;
    uic_load_rooms(step, block, &rooms);
    sk_tile_load(grid, grid->fields[SK_FIELD_POTENTIAL], block, 1, potential);
    float *predicted = grid->fields[SK_FIELD_PREDICTED] + base;
    if (corrected)
        memcpy(predicted, grid->fields[SK_FIELD_DENSITY] + base, SK_BLOCK_CELLS * sizeof *predicted);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        const float *density = grid->fields[SK_FIELD_FACE_DENSITY_X + d] + base;
        float *shift = grid->fields[SK_FIELD_SHIFT_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 own = f8_load(potential + n), flux = f8_load(rooms.face[d] + n) * (f8_load(potential + n - up) - own);
            f8 moved = flux / f8_max(f8_load(density + c), f8_splat(least_density));
            f8_store(shift + c, f8_max(f8_min(moved, f8_splat(farthest)), f8_splat(-farthest)));
            if (corrected) {
                f8 out = f8_load(rooms.face[d] + n + up) * (own - f8_load(potential + n + up));
                f8_store(predicted + c, f8_load(predicted + c) + flux - out);
            }
        }
    }
}

/* Faces take the mean of what the cells beside them gained (sec. 3.1). */
static void update_faces(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float before[SK_TILE_VALUES(1)], after[SK_TILE_VALUES(1)];
    sk_tile_load(grid, grid->fields[SK_FIELD_DENSITY], block, 1, before);
    sk_tile_load(grid, grid->fields[SK_FIELD_PREDICTED], block, 1, after);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        float *density = grid->fields[SK_FIELD_FACE_DENSITY_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 gained = (f8_load(after + n) - f8_load(before + n)) + (f8_load(after + n - up) - f8_load(before + n - up));
            f8 old = f8_load(density + c);
            f8_store(density + c, f8_select(old > 0.0f, f8_max(old + 0.5f * gained, 0.1f * old), old));
        }
    }
}

selkie_code SK_DIM(sk_uic_correct)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const selkie_unilateral_def *def = &step->scene->unilateral;
    memset(&step->correction, 0, sizeof step->correction);
    step->shifted = 0;
    step->overfull = 0.0;
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    const uic_problem problem = {.name = "density",
                                 .target = grid->fields[SK_FIELD_DENSITY],
                                 .tolerance = def->tolerance,
                                 .norm = SELKIE_NORM_RELATIVE};
    SK_TRY(SK_DIM(sk_uic_solve)(step, &problem, &step->correction, &step->overfull, error));
    step->shifted = step->overfull > 0.0;
    const int corrected = def->prediction == SELKIE_PREDICTION_FLUX;
    if (!step->shifted && !corrected)
        return SELKIE_OK;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++)
        shift_block(step, b, corrected);
    if (corrected) {
        memset(grid->fields[SK_FIELD_PREDICTED], 0, SK_BLOCK_CELLS * sizeof(float));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++)
            update_faces(step, b);
    }
    return SELKIE_OK;
}

/* Positions that were shifted stay out of obstacles. */
static void confine_block(const sk_step *step, int block, const float low[3], const float high[3])
{
    const sk_grid *grid = &step->grid;
    if (!step->solids.block_slot[block])
        return;
    const uint32_t *start = grid->cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    for (uint32_t p = start[0]; p < start[SK_BLOCK_CELLS]; p++) {
        float *x = step->particles.records[p].position;
        if (sk_solids_near(&step->solids, grid, x))
            sk_solids_push_out(&step->solids, low, high, x);
    }
}

selkie_code SK_DIM(sk_uic_shift)(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_grid *grid = &step->grid;
    float low[3], high[3];
    if (!step->shifted)
        return SELKIE_OK;
    sk_solids_bounds(&step->solids, grid, low, high);
    SK_DIM(sk_transfer_displace)(grid, SK_FIELD_SHIFT_X, &step->particles, low, high, step->threads);
    if (!step->solids.obstacle_count)
        return SELKIE_OK;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= grid->particle_blocks; b++)
        confine_block(step, b, low, high);
    return SELKIE_OK;
}

/* The correction of density: a complementarity problem on positions (Narain et al. 2010; Gerszewski, sec. 3.1). */
#include <math.h>

#include "base/dimension.h"
#include "grid/predict.h"
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

/* Particles move by the shifts of the faces around them, linear across, which smooths a shift that differs from cell to cell to
 * a third of its strength in 2D and a ninth in 3D. So it is lifted over its neighbours across by as much first, as the implicit
 * density projection does it (methods/idp/idp_dim.c has the factors). Only faces in the open count. */
static const float sharpness = 1.5f;

SK_VECTOR f8 sharpened_flux(const uic_rooms *rooms, const float *potential, int d, int n, f8 flux)
{
    const int up = node_step[d];
    f8 across = f8_splat(0.0f);
    i8 open = f8_load(rooms->face[d] + n) == 1.0f;
    for (int e = 0; e < SELKIE_DIM; e++)
        for (int side = -1; side <= 1 && e != d; side += 2) {
            int m = n + side * node_step[e];
            f8 other = f8_load(potential + m - up) - f8_load(potential + m);
            across += f8_select(open & (f8_load(rooms->face[d] + m) == 1.0f), other - flux, f8_splat(0.0f));
        }
    return flux - 0.25f * sharpness * across;
}

/* Shifts on the faces, added to those of passes before, and the density that they lead to, in PREDICTED: what the flux form of
 * the prediction starts from. */
static void shift_block(const sk_step *step, int block, int pass, int corrected)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float potential[SK_TILE_VALUES(1)];
    uic_rooms rooms;
    uic_load_rooms(step, block, &rooms);
    sk_tile_load(grid, grid->fields[SK_FIELD_POTENTIAL], block, 1, potential);
    mirror_at_walls(&rooms.walls, potential);
    float *predicted = grid->fields[SK_FIELD_PREDICTED] + base;
    if (corrected)
        memcpy(predicted, grid->fields[SK_FIELD_DENSITY] + base, SK_BLOCK_CELLS * sizeof *predicted);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        float density[SK_TILE_VALUES(1)], *shift = grid->fields[SK_FIELD_SHIFT_X + d] + base;
        sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, density);
        fold_at_walls(&rooms.walls, d, density);
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 own = f8_load(potential + n), flux = f8_load(rooms.face[d] + n) * (f8_load(potential + n - up) - own);
            f8 moved = sharpened_flux(&rooms, potential, d, n, flux) / f8_max(f8_load(density + n), f8_splat(least_density));
            moved += pass ? f8_load(shift + c) : f8_splat(0.0f);
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

/* Where particles are with the shifts so far, in PREDICTED. */
static selkie_code look_at_shifted(sk_step *step, selkie_error *error)
{
    sk_predict_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                  .shifted = 1,
                                  .solids = &step->solids,
                                  .threads = step->threads};
    return SK_DIM(sk_predict_density)(&step->grid, &step->particles, &options, error);
}

/* The problem is linear and particles are not: of an excess a fifth to a third is left. Where that is too much, once more, and
 * then roughly, since it is not the solve that leaves it. */
static const double too_much = 0.06, roughly = 1e-2;

selkie_code SK_DIM(sk_uic_correct)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const selkie_unilateral_def *def = &step->scene->unilateral;
    const int by_flux = def->prediction == SELKIE_PREDICTION_FLUX;
    memset(&step->correction, 0, sizeof step->correction);
    step->shifted = 0;
    step->overfull = 0.0;
    step->density_passes = 0;
    if (!sk_step_has_pressure(step))
        return SELKIE_OK;
    for (int pass = 0; pass < (by_flux ? 1 : def->density_passes); pass++) {
        if (pass > 0)
            SK_TRY(look_at_shifted(step, error));
        const uic_problem problem = {.name = "density",
                                     .target = grid->fields[pass ? SK_FIELD_PREDICTED : SK_FIELD_DENSITY],
                                     .tolerance = pass ? fmax(def->tolerance, roughly) : def->tolerance,
                                     .norm = SELKIE_NORM_RELATIVE};
        double excess;
        sk_bounded_report report;
        SK_TRY(SK_DIM(sk_uic_solve)(step, &problem, &report, &excess, error));
        if (pass == 0) {
            step->overfull = excess;
            step->correction = report;
            step->shifted = excess > 0.0;
        }
        if (!step->shifted && !by_flux)
            return SELKIE_OK;
        step->density_passes++;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++)
            shift_block(step, b, pass, by_flux);
        if (!(excess > too_much))
            break;
    }
    if (by_flux) {
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

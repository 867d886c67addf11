/* The density correction: a complementarity problem on positions (Narain et al. 2010; Gerszewski, sec. 3.1). */
#include <math.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "grid/predict.h"
#include "methods/uic/uic.h"
#include "methods/uic/uic_system.h"

selkie_code SK_DIM(sk_uic_solids_now)(sk_step *step, selkie_error *error)
{
    sk_solids_move(&step->solids, step->time);
    sk_solids_step(&step->solids, step->time, step->time + step->dt);
    return SK_DIM(sk_solids_update)(&step->solids, &step->grid, step->threads, error);
}

/* sk_uic_sharpened_flux for eight faces. */
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
    return flux - 0.25f * UIC_SHARPNESS * across;
}

/* Adds shifts to the faces. Writes the resulting density into PREDICTED, for the flux form of the prediction. */
static void shift_block(const sk_step *step, int block, int again, int corrected)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float potential[SK_TILE_VALUES(1)];
    uic_rooms rooms;

    /* The potential, mirrored at closed walls, and the density before the shifts. */
    uic_load_rooms(step, block, &rooms);
    sk_tile_load(grid, grid->fields[SK_FIELD_POTENTIAL], block, 1, potential);
    mirror_at_walls(&rooms.walls, potential);
    float *predicted = grid->fields[SK_FIELD_PREDICTED] + base;
    if (corrected)
        memcpy(predicted, grid->fields[SK_FIELD_DENSITY] + base, SK_BLOCK_CELLS * sizeof *predicted);

    /* The shift of a face is its sharpened flux over its density, with a limit. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        float density[SK_TILE_VALUES(1)], *shift = grid->fields[SK_FIELD_SHIFT_X + d] + base;
        sk_tile_load(grid, grid->fields[SK_FIELD_FACE_DENSITY_X + d], block, 1, density);
        fold_at_walls(&rooms.walls, d, density);
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 own = f8_load(potential + n), flux = f8_load(rooms.face[d] + n) * (f8_load(potential + n - up) - own);
            f8 moved = sharpened_flux(&rooms, potential, d, n, flux) /
                       f8_max(f8_load(density + n), f8_splat(UIC_LEAST_SHIFTED_DENSITY));
            moved += again ? f8_load(shift + c) : f8_splat(0.0f);
            f8_store(shift + c, f8_max(f8_min(moved, f8_splat(UIC_FARTHEST_SHIFT)), f8_splat(-UIC_FARTHEST_SHIFT)));

            /* The density changes by the flux in minus the flux out. */
            if (corrected) {
                f8 out = f8_load(rooms.face[d] + n + up) * (own - f8_load(potential + n + up));
                f8_store(predicted + c, f8_load(predicted + c) + flux - out);
            }
        }
    }
}

/* Faces gain the mean density change of the two cells beside them (sec. 3.1). */
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
            f8 gained =
                (f8_load(after + n) - f8_load(before + n)) + (f8_load(after + n - up) - f8_load(before + n - up));
            f8 old = f8_load(density + c);
            f8_store(density + c, f8_select(old > 0.0f, f8_max(old + 0.5f * gained, 0.1f * old), old));
        }
    }
}

/* --- repeated corrections --- */

/* The problem is linear, but the motion of particles is not: one solve leaves up to 33 % of the excess in single cells.
 * Above these limits the correction is repeated, with a loose tolerance, since the solve does not cause the rest. */
static const float too_much = 0.06f, still_too_much = 0.03f;
static const double good_enough = 0.01, roughly = 1e-2;

/* The remaining excess is pushed into at least this many cells in each direction, with air beyond. A full cell at that
 * border would receive only 1 / (4 pi 3^2) of it in 3D and 1 / (2 pi 3) in 2D. */
enum { AROUND = 2 };

/* Marks the blocks near cells that are denser than the limit. */
static int want_around(const sk_step *step, int block, float limit, uic_block *blocks)
{
    const sk_grid *grid = &step->grid;
    const float *right = grid->fields[SK_FIELD_RIGHT_SIDE] + (size_t)block * SK_BLOCK_CELLS;
    int count = 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        if (!(right[c] > limit))
            continue;
        for (int n = 0; n < SK_NEIGHBOURS; n++) {
            const int side[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
            int other = grid->neighbours[block][n], near = 1;
            for (int d = 0; d < SELKIE_DIM; d++) {
                int at = c >> (d * SK_BLOCK_LOG) & SK_BLOCK_MASK;
                near &= side[d] == 0 || (side[d] < 0 ? at < AROUND : at >= SK_BLOCK_N - AROUND);
            }
            if (other > 0 && near && !blocks[other].wanted) {
                blocks[other].wanted = 1;
                count++;
            }
        }
    }
    return count;
}

/* Marks the blocks of the next pass. Returns 0 if there are so many that all blocks take part. */
static int find_wanted(const sk_step *step, float limit, uic_block *blocks)
{
    const int end = step->grid.block_count;
    int count = 0;
    for (int b = 0; b < end; b++)
        blocks[b].wanted = 0;
    for (int b = 1; b < end; b++)
        if (blocks[b].excess > limit)
            count += want_around(step, b, limit, blocks);
    return 2 * count < end;
}

static int is_near_wanted(const sk_grid *grid, const uic_block *blocks, int block)
{
    int near = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        near |= grid->neighbours[block][n] > 0 && blocks[grid->neighbours[block][n]].wanted;
    return near;
}

/* Density of the particles at their shifted positions, into PREDICTED. */
static selkie_code look_at_shifted(sk_step *step, const uic_correct_form *form, const uic_block *blocks,
                                   selkie_error *error)
{
    sk_predict_options options = {.density_per_particle = 1.0f / (float)step->particles_per_cell,
                                  .shifted = 1,
                                  .solids = &step->solids,
                                  .wanted = blocks ? &blocks->wanted : NULL,
                                  .wanted_stride = sizeof *blocks,
                                  .threads = step->threads};
    return form->predict(&step->grid, &step->particles, &options, error);
}

/* One more solve for the remaining excess, in the marked blocks. `excess` receives the excess before this solve. */
static selkie_code correct_again(sk_step *step, const uic_correct_form *form, uic_block *blocks, int partly,
                                 double *excess, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    SK_TRY(look_at_shifted(step, form, partly ? blocks : NULL, error));
    const uic_problem problem = {.name = "density",
                                 .target = grid->fields[SK_FIELD_PREDICTED],
                                 .tolerance = fmax(step->scene->unilateral.tolerance, roughly),
                                 .least_excess = good_enough,
                                 .keeps_excess = !(step->solids.obstacle_count + step->scene->body_count),
                                 .blocks = blocks,
                                 .partly = partly,
                                 .build = form->build};
    sk_bounded_report report;
    SK_TRY(SK_DIM(sk_uic_solve)(step, &problem, &report, excess, error));
    step->correction.setup_ms += report.setup_ms;
    step->correction.solve_ms += report.solve_ms;
    if (!(*excess > good_enough))
        return SELKIE_OK;
    step->density_passes++;
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    if (!partly || is_near_wanted(grid, blocks, b))
        form->shift(step, b, 1, 0);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_uic_correct_with)(sk_step *step, const uic_correct_form *form, selkie_error *error)
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

    /* First solve: all blocks. */
    uic_problem problem = {.name = "density",
                           .target = grid->fields[SK_FIELD_DENSITY],
                           .tolerance = def->tolerance,
                           .keeps_excess = !by_flux && !step->soft,
                           .is_first = 1,
                           .build = form->build};
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *problem.blocks, "density",
                           (void **)&problem.blocks, error));
    SK_TRY(SK_DIM(sk_uic_solve)(step, &problem, &step->correction, &step->overfull, error));
    step->shifted = step->overfull > 0.0;
    if (!step->shifted && !by_flux)
        return SELKIE_OK;

    /* Shifts on the faces. */
    step->density_passes = 1;
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    form->shift(step, b, 0, by_flux);
    if (by_flux) {
        memset(grid->fields[SK_FIELD_PREDICTED], 0, SK_BLOCK_CELLS * sizeof(float));
        sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
        SK_EACH_DEALT(b, &deal)
        form->update_faces(step, b);
        return SELKIE_OK;
    }

    /* Further solves for the excess that remains. */
    double excess = step->overfull;
    for (int pass = 1; pass < def->density_passes; pass++) {
        float limit = pass == 1 ? too_much : still_too_much;
        if (!(excess > (double)limit))
            break;
        SK_TRY(correct_again(step, form, problem.blocks, find_wanted(step, limit, problem.blocks), &excess, error));
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_uic_correct)(sk_step *step, selkie_error *error)
{
    static const uic_correct_form tuned = {.build = SK_DIM(sk_uic_build),
                                           .shift = shift_block,
                                           .update_faces = update_faces,
                                           .predict = SK_DIM(sk_predict_density)};
    return SK_DIM(sk_uic_correct_with)(step, &tuned, error);
}

selkie_code SK_DIM(sk_uic_shift)(sk_step *step, selkie_error *error)
{
    (void)error;
    sk_grid *grid = &step->grid;
    sk_displacement shift = {.first = SK_FIELD_SHIFT_X,
                             .solids = step->solids.obstacle_count ? &step->solids : NULL,
                             .threads = step->threads};
    if (!step->shifted)
        return SELKIE_OK;
    sk_solids_bounds(&step->solids, grid, shift.low, shift.high);
    SK_DIM(sk_transfer_displace)(grid, &step->particles, &shift);
    return SELKIE_OK;
}

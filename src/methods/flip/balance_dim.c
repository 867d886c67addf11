/* Gravity in balance with pressure while viscosity acts.
 *
 * Viscosity acts before the pressure solve, on liquid that gravity has just set falling. Surfaces that hold the liquid
 * (no slip) take a part of that fall from the layer beside them, and the pressure solve gives the layer all of it back:
 * a pool at rest would circulate at up to 0.9 g x step for ever. So pressure acts first: with q the potential that
 * makes the velocity free of divergence, viscosity sees v - grad q (`balance`), and the gradient is taken out again
 * afterwards (`release`). What is left is the change by viscosity alone. The pressure solve then sees all forces, and
 * starts from q.
 */
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "methods/cells.h"
#include "methods/flip/balance_plain.h"
#include "methods/flip/flip.h"
#include "methods/flip/pressure.h"
#include "methods/liquid_system.h"
#include "rigid/rigid.h"

static void add_block(const sk_step *step, int block, float sign)
{
    const sk_grid *grid = &step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        const float *balance = grid->fields[step->balance + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            velocity[c] += sign * balance[c];
    }
}

static void add_balance(const sk_step *step, float sign)
{
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < step->grid.block_count; b++)
        add_block(step, b, sign);
}

/* Flux times q of each body, in the order of the entries. */
static selkie_code sum_modes(sk_step *step, double (**sums)[SK_POISSON_MODES], selkie_error *error)
{
    const sk_poisson_modes *modes = step->modes;
    const float *q = step->grid.fields[SK_FIELD_POTENTIAL];
    SK_TRY(sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof **sums, "balance", (void **)sums, error));
    memset(*sums, 0, (size_t)step->rigid->body_count * sizeof **sums);
    for (size_t e = 0; step->balanced && modes && e < modes->entry_count; e++) {
        const sk_poisson_mode_entry *entry = &modes->entries[e];
        for (int m = 0; m < modes->rank; m++)
            (*sums)[entry->body][m] += (double)entry->flux[m] * (double)q[entry->cell];
    }
    return SELKIE_OK;
}

void SK_DIM(sk_flip_find_held)(sk_step *step, const double (*sums)[SK_POISSON_MODES])
{
    const sk_poisson_modes *modes = step->modes;
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_rigid_body *body = &step->rigid->bodies[b];
        memset(body->held_up, 0, sizeof body->held_up);
        memset(body->held_turning, 0, sizeof body->held_turning);
        for (int k = 0; modes && k < modes->rank; k++) {
            double *change = k < SELKIE_DIM    ? &body->held_up[k]
                             : SELKIE_DIM == 3 ? &body->held_turning[k - SELKIE_DIM]
                                               : &body->held_turning[2];
            for (int m = 0; m < modes->rank; m++)
                *change += (k < SELKIE_DIM ? 1.0 : 1.0 / step->grid.cell_size) * modes->response[b][k][m] * sums[b][m];
        }
    }
}

selkie_code SK_DIM(sk_flip_hold_bodies)(sk_step *step, double sign, selkie_error *error)
{
    sk_velocity_change *changes;
    SK_TRY(
        sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof *changes, "balance", (void **)&changes, error));
    for (int b = 0; b < step->rigid->body_count; b++)
        for (int d = 0; d < 3; d++) {
            changes[b].velocity[d] = sign * step->rigid->bodies[b].held_up[d];
            changes[b].angular_velocity[d] = sign * step->rigid->bodies[b].held_turning[d];
            changes[b].centre[d] = step->rigid->states[b].position[d];
        }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, changes, step->threads);
    return SELKIE_OK;
}

static selkie_code add_to_bodies(sk_step *step, double sign, selkie_error *error)
{
    double(*sums)[SK_POISSON_MODES];
    if (!step->rigid || !step->rigid->body_count)
        return SELKIE_OK;
    if (sign > 0.0) {
        SK_TRY(sum_modes(step, &sums, error));
        SK_DIM(sk_flip_find_held)(step, (const double(*)[SK_POISSON_MODES])sums);
    }
    return SK_DIM(sk_flip_hold_bodies)(step, sign, error);
}

static void find_block_plain(const sk_step *step, int block)
{
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++)
        step->grid.fields[step->balance + d][sk_plain_index(cell)] = balance_at(step, cell, d);
}

/* Inside the liquid eight faces at a time. Faces without liquid beside them, near it, one by one. */
static void find_block(const sk_step *step, int block, liquid_view *view, float *potential)
{
    const sk_grid *grid = &step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    const uint64_t runs = sk_runs_around(grid, sk_whole_runs(grid->runs[SK_RUNS_NEAR], grid->block_count), block);
    for (int d = 0; d < SELKIE_DIM; d++)
        memset(grid->fields[step->balance + d] + base, 0, SK_BLOCK_CELLS * sizeof(float));
    if (!runs)
        return;
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_cells(step, block, &rows, view);
    sk_tile_load_rows(grid, grid->fields[SK_FIELD_POTENTIAL], block, &rows, potential);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        const float *fraction = step->solids.fraction[d] + solid;
        const float *lightness = step->relative_density ? grid->fields[SK_FIELD_LIGHTNESS_X + d] + base : NULL;
        float *balance = grid->fields[step->balance + d] + base;
        const int up = node_step[d];
        SK_EACH_RUN(c, runs)
        {
            const int n = node_of(c);
            const f8 u = f8_load(velocity + c);
            const i8 wanted = (u == u) & (f8_load(fraction + c) > 0.0f);
            const i8 beside = f8_load(view->liquid + n) + f8_load(view->liquid + n - up) > 0.0f;
            f8 descent = liquid_descent(view, potential, n, up);
            if (lightness)
                descent *= f8_load(lightness + c);
            f8_store(balance + c, f8_select(wanted & beside, descent, f8_splat(0.0f)));
            for (uint32_t left = i8_bits(wanted & ~beside); left; left &= left - 1) {
                const int at = c + __builtin_ctz(left);
                balance[at] = balance_at(step, (sk_plain_cell){block, at}, d);
            }
        }
    }
}

static selkie_code solve(sk_step *step, selkie_error *error)
{
    const int plain = step->backend == SK_BACKEND_PLAIN;
    SK_TRY(plain ? SK_DIM(sk_flip_build_pressure_plain)(step, error) : SK_DIM(sk_flip_build_pressure)(step, error));
    return SK_DIM(sk_flip_solve_pressure)(step, error);
}

selkie_code SK_DIM(sk_flip_balance)(sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    step->balanced = 0; /* the solve starts from 0 */
    if (!sk_step_has_pressure(step))
        return add_to_bodies(step, 1.0, error);
    SK_TRY(solve(step, error));
    step->balanced = 1;
    step->balanced_modes = step->modes;
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    {
        liquid_view view;
        float potential[SK_TILE_VALUES(1)];
        SK_EACH_DEALT(b, &deal)
        if (step->backend == SK_BACKEND_PLAIN)
            find_block_plain(step, b);
        else
            find_block(step, b, &view, potential);
    }
    add_balance(step, 1.0f);
    return add_to_bodies(step, 1.0, error);
}

selkie_code SK_DIM(sk_flip_release)(sk_step *step, selkie_error *error)
{
    if (!step->balanced)
        return SELKIE_OK;
    add_balance(step, -1.0f);
    return add_to_bodies(step, -1.0, error);
}

/* The balance of gravity (methods/balance.h) for FLIP's pressure, whose solve then starts from q. */
#include <string.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "methods/balance.h"
#include "methods/cells.h"
#include "methods/flip/balance_plain.h"
#include "methods/flip/flip.h"
#include "methods/flip/pressure.h"
#include "methods/liquid_system.h"

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
        return SK_DIM(sk_balance_add)(step, 1.0, error);
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
    return SK_DIM(sk_balance_add)(step, 1.0, error);
}

/* The pressure projection.
 *
 * The unknown is q = p dt / (density h), in m/s, so that a face's velocity changes by the plain difference of q. The
 * operator is in liquid_system.h. The right side is minus the sum of the outward fluxes w u + (1 - w) u_solid.
 *
 * Where liquids differ in density, q has the reference density (step->density, that of the first material), and a
 * face's velocity changes by the difference of q times its lightness.
 */
#include <math.h>

#include "base/dimension.h"
#include "grid/deal.h"
#include "methods/cells.h"
#include "methods/flip/flip.h"
#include "methods/flip/pressure.h"
#include "methods/liquid_system.h"

/* Fluxes through the lower faces along axis d, m/s, for the block's cells and the next ones. */
static void face_fluxes(const sk_step *step, int block, const liquid_view *view, const sk_tile_rows *rows, int d,
                        float *flux)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    sk_tile_load_rows(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, rows, flux);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        flux[n] = view->fraction[d][n] * (flux[n] == flux[n] ? flux[n] : 0.0f); /* unknown velocity counts as rest */
    if (view->has_moving) {
        float solid[SK_TILE_VALUES(1)];
        sk_tile_load_rows_mapped(grid, solids->block_slot, solids->velocity[d], block, rows, solid);
        for (int n = 0; n < SK_TILE_VALUES(1); n++)
            flux[n] += (1.0f - view->fraction[d][n]) * solid[n];
    }
}

static void build_block(const sk_step *step, int block, density_errors *errors)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base, *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    if (!(grid->block_flags[block] & SK_BLOCK_LIQUID)) {
        clear_liquid_rows(step, block);
        memset(errors, 0, sizeof *errors);
        return;
    }

    /* The matrix. */
    liquid_view view;
    float flux[SK_TILE_VALUES(1)];
    const uint64_t runs = grid->runs[SK_RUNS_LIQUID][block];
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_view(step, block, runs, &view);
    if (step->relative_density) {
        face_lightness lightness;
        load_lightness(step, block, &rows, &lightness);
        build_weighted_rows(step, block, runs, &view, &lightness);
    } else {
        build_liquid_rows(step, block, runs, &view);
    }
    measure_density_errors(step, block, &view, errors);

    /* The right side: minus the divergence. */
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int up = node_step[d];
        face_fluxes(step, block, &view, &rows, d, flux);
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            const f8 before = d ? f8_load(right + c) : f8_splat(0.0f);
            f8_store(right + c, before + f8_load(flux + n) - f8_load(flux + n + up));
        }
    }

    /* A method may prescribe an expansion (step->has_expansion). Its flux is stored in the field of the solution. */
    const float *expansion = grid->fields[SK_FIELD_EXPANSION] + base;
    for (int c = 0; step->has_expansion && c < SK_BLOCK_CELLS; c++)
        right[c] += expansion[c];

    /* The right side is 0 in cells that are no unknowns. */
    SK_EACH_RUN(c, runs)
    f8_store(right + c, f8_select(f8_load(diagonal + c) > 0.0f, f8_load(right + c), f8_splat(0.0f)));
}

static void set_flags(const sk_grid *grid, int block, int flags)
{
    __atomic_store_n(&grid->block_flags[block], (uint8_t)flags, __ATOMIC_RELAXED);
}

/* A block without liquid: particles fly, faces behind solids are unknown. */
static void pass_block(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS, solid = (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;
    int known = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base,
              *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        for (int c = 0; solid && c < SK_BLOCK_CELLS; c++)
            if (step->solids.fraction[d][solid + (size_t)c] == 0.0f)
                velocity[c] = on_wall(step, block, c, d) && change[c] == change[c] ? 0.0f : __builtin_nanf("");
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            change[c] = velocity[c] - change[c];
            known += velocity[c] == velocity[c];
        }
    }
    set_flags(grid, block, (known ? SK_BLOCK_KNOWN : 0) | (known < SELKIE_DIM * SK_BLOCK_CELLS ? SK_BLOCK_UNKNOWN : 0));
}

/* Velocities after the solve, the change for FLIP, and the unknown faces: those without particles or behind solids. The
 * extrapolation fills them. */
static void project_block(const sk_step *step, int block, liquid_view *view, float *potential)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;

    /* Other threads write block flags at the same time, but never this bit. */
    int liquid_near = grid->block_flags[block] & SK_BLOCK_LIQUID;
    for (int d = 0; d < SELKIE_DIM; d++)
        liquid_near |=
            __atomic_load_n(&grid->block_flags[grid->faces[block][2 * d]], __ATOMIC_RELAXED) & SK_BLOCK_LIQUID;
    if (!liquid_near) {
        pass_block(step, block);
        return;
    }

    const uint64_t runs = grid->runs[SK_RUNS_NEAR][block];
    const sk_tile_rows rows = sk_tile_rows_around(runs);
    load_liquid_cells(step, block, &rows, view);
    sk_tile_load_rows(grid, grid->fields[SK_FIELD_POTENTIAL], block, &rows, potential);
    const size_t solid = (size_t)step->solids.block_slot[block] * SK_BLOCK_CELLS;

    int known = 0, unknown = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base,
              *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        const int up = node_step[d];
        const float *fraction = step->solids.fraction[d] + solid;
        const float *lightness = step->relative_density ? grid->fields[SK_FIELD_LIGHTNESS_X + d] + base : NULL;
        int known_rows = 0;

        /* Subtract the gradient beside liquid. */
        SK_EACH_RUN(c, runs)
        {
            int n = node_of(c);
            f8 above = f8_load(view->liquid + n), below = f8_load(view->liquid + n - up), u = f8_load(velocity + c);
            f8 descent = liquid_descent(view, potential, n, up);
            if (lightness)
                descent *= f8_load(lightness + c);
            f8 projected = f8_select(u == u, u, f8_splat(0.0f)) + descent;
            f8_store(velocity + c, f8_select(above + below > 0.0f, projected, u));
        }

        /* Faces in solids are unknown; faces on closed walls near particles are at rest. */
        for (int c = 0; solid && c < SK_BLOCK_CELLS; c++)
            velocity[c] = fraction[c] > 0.0f ? velocity[c] : __builtin_nanf("");
        for (int side = 0; side < 2; side++) {
            const int wall = wall_index(step, block, d, side);
            for (int n = 0; wall >= 0 && n < SK_BLOCK_CELLS / SK_BLOCK_N; n++) {
                const int c = cell_of_plane(d, wall, n);
                if (velocity[c] != velocity[c] && change[c] == change[c])
                    velocity[c] = 0.0f; /* particles are near, and the wall is closed */
            }
        }

        /* The change for FLIP. */
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            change[c] = velocity[c] - change[c];
            known_rows += velocity[c] == velocity[c];
        }
        known += known_rows;
        unknown += SK_BLOCK_CELLS - known_rows;
    }

    set_flags(grid, block,
              (grid->block_flags[block] & SK_BLOCK_LIQUID) | (known ? SK_BLOCK_KNOWN : 0) |
                  (unknown ? SK_BLOCK_UNKNOWN : 0));
}

/* The coefficient of the lightest material. */
static double largest_face(const sk_step *step)
{
    double largest = 1.0;
    for (int m = 0; step->relative_density && m < SK_TRANSFER_MATERIALS; m++)
        largest = fmax(largest, 1.0 / step->relative_density[m]);
    return largest;
}

selkie_code SK_DIM(sk_flip_solve_pressure)(sk_step *step, selkie_error *error)
{
    const selkie_pressure_def *def = &step->scene->pressure;
    /* The maximum norm is given as a volume change per step; the right side is a flux in m/s. */
    double unit = def->norm == SELKIE_NORM_MAX ? step->grid.cell_size / step->dt : 1.0;
    SK_TRY(solve_liquid_system(step, def->tolerance * unit, def->norm, largest_face(step), &step->pressure, error));
    step->pressure.residual /= unit;
    if (!step->pressure.converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the pressure solve stopped at a residual of %.3g after %d iterations (asked: "
            "pressure.tolerance %g, pressure.max_iterations %d); raise one of the two",
            (long long)step->step_count + 1, step->time, step->pressure.residual, step->pressure.iterations,
            def->tolerance, def->max_iterations);
    return SELKIE_OK;
}

/* The matrix, the right side, and the density errors at the start of the step. */
static selkie_code build(sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    density_errors *errors;
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *errors, "pressure", (void **)&errors, error));
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    build_block(step, b, &errors[b]);
    report_density_errors(step, errors);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_pressure)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    if (sk_step_has_pressure(step)) {
        SK_TRY(build(step, error));
        step->has_expansion = 0;
        SK_TRY(SK_DIM(sk_flip_solve_pressure)(step, error));
    } else {
        memset(grid->fields[SK_FIELD_POTENTIAL], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
        memset(&step->pressure, 0, sizeof step->pressure);
    }
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    {
        liquid_view view;
        float potential[SK_TILE_VALUES(1)];
        SK_EACH_DEALT(b, &deal)
        project_block(step, b, &view, potential);
    }
    return SELKIE_OK;
}

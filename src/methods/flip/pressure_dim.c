/* The pressure projection: variational at solids (Batty et al. 2007), ghost fluid at the surface (Enright et al. 2003).
 *
 * The unknown is q = p dt / (density h), in m/s, so that a face's velocity changes by the plain difference of q. Row of a
 * liquid cell, with w the open fraction of a face:
 *   sum over faces of  w (q_i - q_j)        liquid neighbour
 *                      w q_i / theta        air: the surface lies theta of the way
 *                      0                    closed part, whose flux is known: (1 - w) of the solid's velocity
 *   = - (sum of outward fluxes w u + (1 - w) u_solid)
 */
#include <math.h>

#include "base/dimension.h"
#include "base/simd.h"
#include "grid/grid_kernels.h"
#include "grid/tile.h"
#include "methods/flip/cells.h"
#include "methods/flip/flip.h"

/* A block and one cell around it, as numbers that a row of cells can be computed with. */
typedef struct block_view {
    _Alignas(64) float liquid[SK_TILE_VALUES(1)]; /* 1 = unknown of the system, 0 = not */
    float fill[SK_TILE_VALUES(1)];
    float velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
    float fraction[SELKIE_DIM][SK_TILE_VALUES(1)];
    float solid_velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
    int has_moving, voxel;
} block_view;

/* `with_velocity`: the projection writes velocities while other blocks are read, so it does without their tiles. */
static void load_view(const sk_step *step, int block, int with_velocity, block_view *view)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    view->has_moving = 0;
    int has_solid = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        int slot = solids->block_slot[grid->neighbours[block][n]];
        has_solid |= slot > 0;
        view->has_moving |= (size_t)slot >= solids->static_count;
    }
    uint8_t kinds[SK_TILE_VALUES(1)];
    sk_tile_load_bytes(grid, grid->kinds, block, 1, kinds);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        view->liquid[n] = (kinds[n] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID ? 1.0f : 0.0f;
    view->voxel = step->scene->pressure.surface == SELKIE_SURFACE_VOXEL;
    if (!view->voxel)
        sk_tile_load(grid, grid->fields[SK_FIELD_FILL], block, 1, view->fill);
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (with_velocity)
            sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, 1, view->velocity[d]);
        if (has_solid)
            sk_tile_load_mapped(grid, solids->block_slot, solids->fraction[d], block, 1, view->fraction[d]);
        else
            for (int n = 0; n < SK_TILE_VALUES(1); n++)
                view->fraction[d][n] = 1.0f;
        if (view->has_moving)
            sk_tile_load_mapped(grid, solids->block_slot, solids->velocity[d], block, 1, view->solid_velocity[d]);
    }
}

/* The twins of sk_surface_depth and sk_surface_theta_of_depths for eight cells. */
SK_VECTOR f8 depths(f8 fill)
{
    f8 below = 1.0f - f8_sqrt(2.0f * f8_max(1.0f - fill, f8_splat(0.0f)));
    f8 above = f8_sqrt(2.0f * f8_max(fill, f8_splat(0.0f))) - 1.0f;
    return f8_select(fill >= 0.5f, below, above);
}

SK_VECTOR f8 thetas(f8 inside, f8 outside)
{
    f8 theta = f8_max(inside / (inside - outside), f8_splat(0.05f));
    return f8_select((inside > 0.0f) & (outside < 0.0f) & (theta < 1.0f), theta, f8_splat(1.0f));
}

/* One over the distance from liquid cells to their neighbours' unknowns, in cells: more than one towards air, where the
 * surface is nearer than the neighbour's centre. `other` is the step to the neighbour. */
SK_VECTOR f8 slopes(const block_view *view, int node, int other, f8 liquid, f8 other_liquid)
{
    i8 surface = (liquid > 0.0f) & (other_liquid == 0.0f);
    if (view->voxel || !i8_any(surface))
        return f8_splat(1.0f);
    f8 theta = thetas(depths(f8_load(view->fill + node)), depths(f8_load(view->fill + node + other)));
    return f8_select(surface, 1.0f / theta, f8_splat(1.0f));
}

/* Fluxes through the lower faces along axis d, m/s, for the block's cells and the next ones. */
static void face_fluxes(const block_view *view, int d, float *flux)
{
    for (int n = 0; n < SK_TILE_VALUES(1); n++) {
        float u = view->velocity[d][n];
        flux[n] = view->fraction[d][n] * (u == u ? u : 0.0f); /* no particle near this face: at rest */
    }
    for (int n = 0; view->has_moving && n < SK_TILE_VALUES(1); n++)
        flux[n] += (1.0f - view->fraction[d][n]) * view->solid_velocity[d][n];
}

static void build_block(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base, *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    memset(diagonal, 0, SK_BLOCK_CELLS * sizeof(float));
    memset(right, 0, SK_BLOCK_CELLS * sizeof(float));
    if (!(grid->block_flags[block] & SK_BLOCK_LIQUID)) {
        for (int d = 0; d < SELKIE_DIM; d++)
            memset(grid->fields[SK_FIELD_FACE_X + d] + base, 0, SK_BLOCK_CELLS * sizeof(float));
        return;
    }
    block_view view;
    float flux[SK_TILE_VALUES(1)];
    load_view(step, block, 1, &view);
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *face = grid->fields[SK_FIELD_FACE_X + d] + base;
        const int up = node_step[d];
        face_fluxes(&view, d, flux);
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 own = f8_load(view.liquid + n), lower = f8_load(view.liquid + n - up), upper = f8_load(view.liquid + n + up);
            f8 open_lower = f8_load(view.fraction[d] + n), open_upper = f8_load(view.fraction[d] + n + up);
            f8_store(face + c, own * lower * open_lower);
            f8 sum = open_lower * slopes(&view, n, -up, own, lower) + open_upper * slopes(&view, n, up, own, upper);
            f8_store(diagonal + c, f8_load(diagonal + c) + own * sum);
            f8_store(right + c, f8_load(right + c) + own * (f8_load(flux + n) - f8_load(flux + n + up)));
        }
    }
    /* A liquid cell whose faces are all closed is no unknown. */
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        right[c] = diagonal[c] > 0.0f ? right[c] : 0.0f;
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
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base, *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        for (int c = 0; solid && c < SK_BLOCK_CELLS; c++)
            if (step->solids.fraction[d][solid + (size_t)c] == 0.0f)
                velocity[c] = on_wall(step, block, c, d) && velocity[c] == velocity[c] ? 0.0f : __builtin_nanf("");
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            change[c] = velocity[c] - change[c];
            known += velocity[c] == velocity[c];
        }
    }
    set_flags(grid, block, (known ? SK_BLOCK_KNOWN : 0) | (known < SELKIE_DIM * SK_BLOCK_CELLS ? SK_BLOCK_UNKNOWN : 0));
}

/* Velocities after the solve, the change for FLIP, and which faces remain unknown: those without particles or behind
 * solids, which the extrapolation fills. */
static void project_block(const sk_step *step, int block, block_view *view, float *potential)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    /* Others write their flags meanwhile, but never this bit of them. */
    int liquid_near = grid->block_flags[block] & SK_BLOCK_LIQUID;
    for (int d = 0; d < SELKIE_DIM; d++)
        liquid_near |= __atomic_load_n(&grid->block_flags[grid->faces[block][2 * d]], __ATOMIC_RELAXED) & SK_BLOCK_LIQUID;
    if (!liquid_near) {
        pass_block(step, block);
        return;
    }
    load_view(step, block, 0, view);
    sk_tile_load(grid, grid->fields[SK_FIELD_POTENTIAL], block, 1, potential);
    const int walls = step->solids.block_slot[block] > 0;
    int known = 0, unknown = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base, *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        const int up = node_step[d];
        int known_rows = 0;
        for (int c = 0; c < SK_BLOCK_CELLS; c += 8) {
            int n = node_of(c);
            f8 above = f8_load(view->liquid + n), below = f8_load(view->liquid + n - up), u = f8_load(velocity + c);
            /* q is zero outside the liquid, so the plain difference is right but for the surface's distance. */
            f8 q = f8_load(potential + n) - f8_load(potential + n - up);
            q *= slopes(view, n, -up, above, below) * slopes(view, n - up, up, below, above);
            f8 projected = f8_select(u == u, u, f8_splat(0.0f)) - q;
            u = f8_select(above + below > 0.0f, projected, u);
            f8_store(velocity + c, f8_select(f8_load(view->fraction[d] + n) > 0.0f, u, f8_splat(__builtin_nanf(""))));
        }
        for (int c = 0; walls && c < SK_BLOCK_CELLS; c++)
            if (velocity[c] != velocity[c] && change[c] == change[c] && on_wall(step, block, c, d))
                velocity[c] = 0.0f; /* particles are near, and the wall lets nothing through */
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            change[c] = velocity[c] - change[c];
            known_rows += velocity[c] == velocity[c];
        }
        known += known_rows;
        unknown += SK_BLOCK_CELLS - known_rows;
    }
    set_flags(grid, block, (grid->block_flags[block] & SK_BLOCK_LIQUID) | (known ? SK_BLOCK_KNOWN : 0) | (unknown ? SK_BLOCK_UNKNOWN : 0));
}

selkie_code SK_DIM(sk_flip_pressure)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < grid->block_count; b++)
        build_block(step, b);

    const selkie_pressure_def *def = &step->scene->pressure;
    sk_poisson_system system = {
        .block_count = grid->block_count,
        .coordinates = (const int32_t(*)[4])grid->coordinates,
        .faces = (const int32_t(*)[6])grid->faces,
        .face = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y], grid->fields[SK_FIELD_FACE_Z]},
        .diagonal = grid->fields[SK_FIELD_DIAGONAL],
        .right_side = grid->fields[SK_FIELD_RIGHT_SIDE],
        .solution = grid->fields[SK_FIELD_POTENTIAL],
    };
    /* The largest norm is asked as a volume change in a step; the right side is a flux in m/s. */
    double unit = def->norm == SELKIE_NORM_MAX ? grid->cell_size / step->dt : 1.0;
    sk_poisson_options options = {def->tolerance * unit, def->norm, def->max_iterations, 0, step->threads};
    SK_TRY(SK_DIM(sk_poisson_solve)(step->solver, &system, &options, &step->pressure, error));
    step->pressure.residual /= unit;
    if (!step->pressure.converged)
        return sk_fail(error, SELKIE_ERROR_DIVERGED,
                       "step %lld at %g s: the pressure solve stopped at a residual of %.3g after %d iterations (asked: "
                       "pressure.tolerance %g, pressure.max_iterations %d); raise one of the two",
                       (long long)step->step_count + 1, step->time, step->pressure.residual, step->pressure.iterations,
                       def->tolerance, def->max_iterations);
#pragma omp parallel num_threads(step->threads)
    {
        block_view view;
        float potential[SK_TILE_VALUES(1)];
#pragma omp for schedule(dynamic, 4)
        for (int b = 1; b < grid->block_count; b++)
            project_block(step, b, &view, potential);
    }
    return SELKIE_OK;
}

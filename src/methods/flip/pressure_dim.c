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
#include "grid/grid_kernels.h"
#include "grid/tile.h"
#include "methods/flip/cells.h"
#include "methods/flip/flip.h"

typedef struct block_view {
    uint8_t kinds[SK_TILE_VALUES(1)];
    float fill[SK_TILE_VALUES(1)];
    float velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
    float fraction[SELKIE_DIM][SK_TILE_VALUES(1)];
    float solid_velocity[SELKIE_DIM][SK_TILE_VALUES(1)];
    int has_solid, has_moving;
} block_view;

/* `with_velocity`: the projection writes velocities while other blocks are read, so it does without their tiles. */
static void load_view(const sk_step *step, int block, int with_velocity, block_view *view)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    view->has_solid = view->has_moving = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++) {
        int slot = solids->block_slot[grid->neighbours[block][n]];
        view->has_solid |= slot > 0;
        view->has_moving |= (size_t)slot >= solids->static_count;
    }
    sk_tile_load_bytes(grid, grid->kinds, block, 1, view->kinds);
    sk_tile_load(grid, grid->fields[SK_FIELD_FILL], block, 1, view->fill);
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (with_velocity)
            sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, 1, view->velocity[d]);
        if (view->has_solid)
            sk_tile_load_mapped(grid, solids->block_slot, solids->fraction[d], block, 1, view->fraction[d]);
        if (view->has_moving)
            sk_tile_load_mapped(grid, solids->block_slot, solids->velocity[d], block, 1, view->solid_velocity[d]);
    }
}

static inline int is_liquid(const block_view *view, int node)
{
    return (view->kinds[node] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
}

static inline float theta_of(const sk_step *step, const block_view *view, int liquid, int air)
{
    return step->scene->pressure.surface == SELKIE_SURFACE_VOXEL ? 1.0f : sk_surface_theta(view->fill[liquid], view->fill[air]);
}

/* Flux through the face `node` of component d along its axis, m/s. */
static inline float face_flux(const block_view *view, int d, int node)
{
    float w = view->has_solid ? view->fraction[d][node] : 1.0f, u = view->velocity[d][node];
    float flux = u == u ? w * u : 0.0f; /* no particle near this face: at rest */
    if (view->has_moving)
        flux += (1.0f - w) * view->solid_velocity[d][node];
    return flux;
}

static void build_block(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base, *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    float *face[3];
    for (int d = 0; d < SELKIE_DIM; d++) {
        face[d] = grid->fields[SK_FIELD_FACE_X + d] + base;
        memset(face[d], 0, SK_BLOCK_CELLS * sizeof(float));
    }
    memset(diagonal, 0, SK_BLOCK_CELLS * sizeof(float));
    memset(right, 0, SK_BLOCK_CELLS * sizeof(float));
    if (!(grid->block_flags[block] & SK_BLOCK_LIQUID))
        return;
    block_view view;
    load_view(step, block, 1, &view);
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int node = node_of(c);
        if (!is_liquid(&view, node))
            continue;
        float sum = 0.0f, divergence = 0.0f;
        for (int d = 0; d < SELKIE_DIM; d++)
            for (int side = 0; side < 2; side++) {
                int f = node + side * node_step[d], other = node + (2 * side - 1) * node_step[d];
                float w = view.has_solid ? view.fraction[d][f] : 1.0f;
                divergence += side ? face_flux(&view, d, f) : -face_flux(&view, d, f);
                if (w == 0.0f)
                    continue;
                if (is_liquid(&view, other)) {
                    sum += w;
                    if (!side)
                        face[d][c] = w;
                } else {
                    sum += w / theta_of(step, &view, node, other);
                }
            }
        diagonal[c] = sum;
        right[c] = sum > 0.0f ? -divergence : 0.0f;
    }
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
    int known = 0, unknown = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base, *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            int upper = node_of(c), lower = upper - node_step[d];
            float w = view->has_solid ? view->fraction[d][upper] : 1.0f, u = velocity[c];
            int above = is_liquid(view, upper), below = is_liquid(view, lower);
            if (w == 0.0f) {
                u = on_wall(step, block, c, d) && u == u ? 0.0f : __builtin_nanf("");
            } else if (above || below) {
                float q = potential[upper] - potential[lower];
                if (!(above && below))
                    q = above ? potential[upper] / theta_of(step, view, upper, lower)
                              : -potential[lower] / theta_of(step, view, lower, upper);
                u = (u == u ? u : 0.0f) - q;
            }
            velocity[c] = u;
            change[c] = u - change[c];
            known += u == u;
            unknown += u != u;
        }
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

/* Implicit viscosity, a component at a time: (1 - nu dt laplacian) u_new = u.
 *
 * The faces of one component form a grid of their own. The pressure solver applies, with the mass term h^2 / (nu dt) in
 * the diagonal. Neighbours without liquid are left out (a surface without stress). A no-slip wall half a cell away is a
 * Dirichlet neighbour of weight 2, a free-slip wall has weight 0. The wall normal to the component has weight 1. The
 * coupling between components in the full stress at a free surface is left out, so threads of honey bend but do not
 * coil.
 *
 * Where liquids differ in density r (over the reference density), the equation is (r - dt div(nu r grad)) u_new = r u.
 * Between two faces r is their mean, so momentum is conserved.
 */
#include <math.h>

#include "base/dimension.h"
#include "defs/materials.h"
#include "grid/deal.h"
#include "methods/cells.h"
#include "methods/flip/flip.h"
#include "methods/flip/viscosity.h"

static void build_component(const sk_step *step, int block, int d, float mass)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    size_t base = (size_t)block * SK_BLOCK_CELLS;
    float velocity[SK_TILE_VALUES(1)], fraction[SK_TILE_VALUES(1)], wall[SK_TILE_VALUES(1)];
    uint8_t no_slip[SK_TILE_VALUES(1)];

    /* Velocity, solids and density, with a halo of one cell. */
    sk_tile_load(grid, grid->fields[SK_FIELD_VELOCITY_X + d], block, 1, velocity);
    sk_tile_load_mapped(grid, solids->block_slot, solids->fraction[d], block, 1, fraction);
    sk_tile_load_mapped_bytes(grid, solids->block_slot, solids->no_slip, block, 1, no_slip);
    if (sk_solids_have_velocity(solids))
        sk_tile_load_mapped(grid, solids->block_slot, solids->velocity[d], block, 1, wall);
    float density[SK_TILE_VALUES(1)];
    if (step->relative_density)
        sk_tile_load(grid, grid->fields[SK_FIELD_LIGHTNESS_X + d], block, 1, density);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        density[n] = step->relative_density ? 1.0f / density[n] : 1.0f;

    float *diagonal = grid->fields[SK_FIELD_DIAGONAL] + base, *right = grid->fields[SK_FIELD_RIGHT_SIDE] + base;
    float *face[3];
    for (int e = 0; e < SELKIE_DIM; e++) {
        face[e] = grid->fields[SK_FIELD_FACE_X + e] + base;
        memset(face[e], 0, SK_BLOCK_CELLS * sizeof(float));
    }

    /* The row of each face. */
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        int node = node_of(c);
        float u = velocity[node];
        diagonal[c] = right[c] = 0.0f;
        if (u != u || fraction[node] == 0.0f)
            continue;
        float sum = mass * density[node], known = sum * u;
        for (int e = 0; e < SELKIE_DIM; e++)
            for (int side = -1; side <= 1; side += 2) {
                int other = node + side * node_step[e];
                if (fraction[other] == 0.0f) {
                    float weight = e == d ? 1.0f : no_slip[other] || no_slip[node] ? 2.0f : 0.0f;
                    weight *= density[node];
                    sum += weight;
                    known += weight * (sk_solids_have_velocity(solids) ? wall[other] : 0.0f);
                } else if (velocity[other] == velocity[other]) {
                    const float weight = 0.5f * (density[node] + density[other]);
                    sum += weight;
                    if (side < 0)
                        face[e][c] = weight;
                }
            }
        diagonal[c] = sum;
        right[c] = known;
    }
}

/* The coefficient of the heaviest material. */
static double largest_face(const sk_step *step)
{
    double largest = 1.0;
    for (int m = 0; step->relative_density && m < SK_TRANSFER_MATERIALS; m++)
        largest = fmax(largest, step->relative_density[m]);
    return largest;
}

selkie_code SK_DIM(sk_flip_solve_viscosity)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    sk_poisson_system system = {
        .block_count = grid->block_count,
        .coordinates = (const int32_t(*)[4])grid->coordinates,
        .faces = (const int32_t(*)[6])grid->faces,
        .face = {grid->fields[SK_FIELD_FACE_X], grid->fields[SK_FIELD_FACE_Y], grid->fields[SK_FIELD_FACE_Z]},
        .diagonal = grid->fields[SK_FIELD_DIAGONAL],
        .right_side = grid->fields[SK_FIELD_RIGHT_SIDE],
        .solution = grid->fields[SK_FIELD_POTENTIAL],
    };
    sk_poisson_options options = {.tolerance = 1e-5,
                                  .norm = SELKIE_NORM_RELATIVE,
                                  .max_iterations = step->scene->pressure.max_iterations,
                                  .threads = step->threads,
                                  .largest_face = largest_face(step),
                                  .backend = step->backend};
    SK_TRY(SK_DIM(sk_poisson_solve)(step->solver, &system, &options, &step->viscosity, error));
    if (!step->viscosity.converged)
        return sk_fail(
            error, SELKIE_ERROR_DIVERGED,
            "step %lld at %g s: the viscosity solve stopped at a residual of %.3g after %d iterations; raise "
            "pressure.max_iterations (now %d) or lower time.cfl",
            (long long)step->step_count + 1, step->time, step->viscosity.residual, step->viscosity.iterations,
            step->scene->pressure.max_iterations);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_viscosity)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    double mass = grid->cell_size * grid->cell_size / (sk_scene_viscosity(step->scene) * sk_step_kick(step));
    for (int d = 0; d < SELKIE_DIM; d++) {
        sk_deal deal;
        sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
        SK_EACH_DEALT(b, &deal)
        build_component(step, b, d, (float)mass);
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d], *solution = grid->fields[SK_FIELD_POTENTIAL];
        const float *diagonal = grid->fields[SK_FIELD_DIAGONAL];
        SK_TRY(SK_DIM(sk_flip_solve_viscosity)(step, error));
        int64_t end = (int64_t)grid->block_count * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int64_t c = SK_BLOCK_CELLS; c < end; c++)
            if (diagonal[c] > 0.0f)
                velocity[c] = solution[c];
    }
    return SELKIE_OK;
}

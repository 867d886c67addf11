/* The plain form of viscosity_dim.c. */
#include "base/dimension.h"
#include "defs/materials.h"
#include "methods/flip/flip.h"
#include "methods/flip/viscosity.h"
#include "methods/flip/viscosity_kernels.h"
#include "methods/liquid_plain.h"

static void gather_face(const sk_step *step, sk_plain_cell cell, int d, sk_viscous_face *face)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    const float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d];
    face->axis = d;
    face->velocity = velocity[sk_plain_index(cell)];
    face->open = open_fraction_at(step, cell, d);
    face->density = 1.0f / lightness_at(step, cell, d);
    face->no_slip = solids->no_slip[sk_plain_solid_index(solids, cell)];
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const sk_plain_cell other = sk_plain_next(grid, cell, side / 2, side % 2 ? 1 : -1);
        face->beside[side] = velocity[sk_plain_index(other)];
        face->open_beside[side] = open_fraction_at(step, other, d);
        face->density_beside[side] = 1.0f / lightness_at(step, other, d);
        face->no_slip_beside[side] = solids->no_slip[sk_plain_solid_index(solids, other)];
        face->wall[side] = solid_velocity_at(step, other, d);
    }
}

selkie_code SK_DIM(sk_flip_viscosity_plain)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    const float mass =
        (float)(grid->cell_size * grid->cell_size / (sk_scene_viscosity(step->scene) * sk_step_kick(step)));
    for (int d = 0; d < SELKIE_DIM; d++) {
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            SK_PLAIN_EACH_CELL(cell, b)
            {
                const size_t here = sk_plain_index(cell);
                sk_viscous_face face;
                float coefficient[SELKIE_DIM];
                gather_face(step, cell, d, &face);
                grid->fields[SK_FIELD_DIAGONAL][here] =
                    sk_viscous_row(&face, mass, coefficient, &grid->fields[SK_FIELD_RIGHT_SIDE][here]);
                for (int e = 0; e < SELKIE_DIM; e++)
                    grid->fields[SK_FIELD_FACE_X + e][here] = coefficient[e];
            }
        SK_TRY(SK_DIM(sk_flip_solve_viscosity)(step, error));

        const float *diagonal = grid->fields[SK_FIELD_DIAGONAL], *solution = grid->fields[SK_FIELD_POTENTIAL];
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d];
        const int64_t end = (int64_t)grid->block_count * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int64_t c = SK_BLOCK_CELLS; c < end; c++)
            velocity[c] = diagonal[c] > 0.0f ? solution[c] : velocity[c];
    }
    return SELKIE_OK;
}

/* The plain form of the pressure projection in pressure_dim.c. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/cell_kernels.h"
#include "methods/flip/flip.h"
#include "methods/flip/pressure.h"
#include "methods/flip/reflection.h"
#include "methods/flip/reflection_kernels.h"
#include "methods/flip/transfer_options.h"
#include "methods/liquid_plain.h"

static float inflow_of(const sk_step *step, sk_plain_cell cell, const sk_liquid_view *view)
{
    float flux[2 * SELKIE_DIM];
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2;
        const sk_plain_cell face = cell_of_side(&step->grid, cell, side);
        flux[side] = sk_liquid_flux(step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(face)], view->open[side],
                                    solid_velocity_at(step, face, d));
    }
    return sk_liquid_inflow(flux);
}

static void add_error(density_errors *errors, float error)
{
    errors->absolute += fabs((double)error);
    errors->squares += (double)(error * error);
    errors->sum += (double)error;
    errors->largest = fmax(errors->largest, fabs((double)error));
    errors->count++;
}

/* The rows of a block's cells, and their density errors. */
static void build_block(const sk_step *step, int block, density_errors *errors)
{
    const sk_grid *grid = &step->grid;
    memset(errors, 0, sizeof *errors);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell);
        sk_liquid_view view;
        float face[SELKIE_DIM];
        gather_liquid_view(step, cell, 1, &view);
        const float diagonal = sk_liquid_row(&view, face);
        grid->fields[SK_FIELD_DIAGONAL][here] = diagonal;
        for (int d = 0; d < SELKIE_DIM; d++)
            grid->fields[SK_FIELD_FACE_X + d][here] = face[d];

        /* A method may prescribe an expansion. Its flux is stored in the field of the solution. */
        float right = inflow_of(step, cell, &view);
        right += step->has_expansion ? grid->fields[SK_FIELD_EXPANSION][here] : 0.0f;
        grid->fields[SK_FIELD_RIGHT_SIDE][here] = diagonal > 0.0f ? right : 0.0f;

        int liquid_beside[2 * SELKIE_DIM];
        for (int side = 0; side < 2 * SELKIE_DIM; side++)
            liquid_beside[side] = view.beside[side].liquid;
        if (sk_cell_is_inner(view.own.liquid, liquid_beside, view.open))
            add_error(errors, grid->fields[SK_FIELD_DENSITY][here] +
                                  step->solids.blurred[sk_plain_solid_index(&step->solids, cell)] - 1.0f);
    }
}

/* Velocities after the solve, the change for FLIP, and the unknown faces. */
static void project_block(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    int known = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t here = sk_plain_index(cell);
        for (int d = 0; d < SELKIE_DIM; d++) {
            float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][here],
                  *change = &grid->fields[SK_FIELD_CHANGE_X + d][here];

            /* Velocity of the face after the solve. */
            int beside_liquid;
            const float descent = lightness_at(step, cell, d) * gather_descent(step, cell, d, &beside_liquid);
            const sk_closed_face closed = {face_on_wall(step, cell, d),
                                           step->solids.no_slip[sk_plain_solid_index(&step->solids, cell)],
                                           solid_velocity_at(step, cell, d)};
            *velocity = sk_liquid_projected(*velocity, descent, beside_liquid, open_fraction_at(step, cell, d), &closed,
                                            *change == *change);

            /* Change of the velocity, for FLIP, and its reflection. */
            *change = sk_net_change(*velocity, *change, flip_gravity_gain(step, d));
            known += *velocity == *velocity;
            if (flip_reflects(step)) {
                /* Closed walls of the domain do not reflect. */
                const float rho = face_on_wall(step, cell, d) ? 0.0f : (float)step->reflection;
                const float more =
                    rho * sk_reflected_change(*change, flip_gravity_gain(step, d), flip_most_reflected(step));
                grid->fields[step->end_velocity + d][here] = *velocity + more;
                *change += more;
            }
        }
    }

    /* Note whether the block has known and unknown faces. */
    grid->block_flags[block] = (uint8_t)((grid->block_flags[block] & SK_BLOCK_LIQUID) | (known ? SK_BLOCK_KNOWN : 0) |
                                         (known < SELKIE_DIM * SK_BLOCK_CELLS ? SK_BLOCK_UNKNOWN : 0));
}

selkie_code SK_DIM(sk_flip_pressure_plain)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    if (sk_step_has_pressure(step)) {
        density_errors *errors;
        SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *errors, "pressure", (void **)&errors, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int b = 1; b < grid->block_count; b++)
            build_block(step, b, &errors[b]);
        report_density_errors(step, errors);
        step->has_expansion = 0;
        SK_TRY(SK_DIM(sk_flip_solve_pressure)(step, error));
    } else {
        memset(grid->fields[SK_FIELD_POTENTIAL], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
        memset(&step->pressure, 0, sizeof step->pressure);
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        project_block(step, b);
    return SELKIE_OK;
}

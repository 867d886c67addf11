/* The plain form of the pressure projection in pressure_dim.c. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "methods/flip/flip.h"
#include "methods/flip/pressure.h"
#include "methods/flip/pressure_plain.h"

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
    memset(errors, 0, sizeof *errors);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        float error;
        if (sk_plain_pressure_row(step, cell, &error))
            add_error(errors, error);
    }
}

/* Velocities after the solve, the change for FLIP, and the unknown faces. */
static void project_block(const sk_step *step, int block)
{
    uint8_t *flags = &step->grid.block_flags[block];
    int known = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    known += sk_plain_project_faces(step, cell);
    *flags = sk_plain_known_flags(*flags, known);
}

selkie_code SK_DIM(sk_flip_build_pressure_plain)(sk_step *step, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    density_errors *errors;
    SK_TRY(sk_step_scratch(step, (size_t)grid->block_count * sizeof *errors, "pressure", (void **)&errors, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        build_block(step, b, &errors[b]);
    report_density_errors(step, errors);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_pressure_plain)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    if (sk_step_has_pressure(step)) {
        step->balanced &= sk_flip_keeps_system(step);
        SK_TRY(SK_DIM(sk_flip_build_pressure_plain)(step, error));
        step->has_expansion = 0;
        SK_TRY(SK_DIM(sk_flip_solve_pressure)(step, error));
        step->balanced = 0;
    } else {
        memset(grid->fields[SK_FIELD_POTENTIAL], 0, (size_t)grid->block_count * SK_BLOCK_CELLS * sizeof(float));
        memset(&step->pressure, 0, sizeof step->pressure);
    }
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < grid->block_count; b++)
        project_block(step, b);
    return sk_step_has_pressure(step) ? SK_DIM(sk_flip_vent)(step, error) : SELKIE_OK;
}

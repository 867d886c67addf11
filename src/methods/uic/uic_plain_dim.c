/* The plain forms of unilateral incompressibility. uic_system_dim.c, uic_correct_dim.c and uic_pressure_dim.c explain
 * the parts. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain_forms.h"
#include "methods/uic/uic.h"
#include "methods/uic/uic_plain.h"
#include "methods/uic/uic_problem.h"

/* NULL if rows bound the density. */
static const float *spare_in_use(const sk_step *step)
{
    return sk_uic_bounds_flow(step) ? sk_uic_spare_of(step) : NULL;
}

static void mark_full(const sk_step *step, int block)
{
    const surroundings around = surroundings_of(step, block, NULL);
    float *spare = sk_uic_spare_of(step);
    SK_PLAIN_EACH_CELL(cell, block)
    spare[sk_plain_index(cell)] = spare_of_cell(&around, cell);
}

void SK_DIM(sk_uic_build_plain)(const sk_step *step, int block, const uic_problem *problem)
{
    const surroundings around = surroundings_of(step, block, problem->spare);
    const uic_rows rows = {problem->target, problem->presence, problem->spare != NULL, problem->has_tension,
                           problem->keeps_excess};
    float largest = 0.0f;
    SK_PLAIN_EACH_CELL(cell, block)
    largest = fmaxf(largest, build_uic_row(&around, &rows, cell));
    problem->blocks[block].excess = largest;
}

/* --- shifts --- */

static void shift_block(const sk_step *step, int block, int again, int corrected)
{
    const surroundings around = surroundings_of(step, block, NULL);
    SK_PLAIN_EACH_CELL(cell, block)
    shift_uic_faces(&around, cell, again, corrected);
}

static void update_faces(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const float *before = grid->fields[SK_FIELD_DENSITY], *after = grid->fields[SK_FIELD_PREDICTED];
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t above = sk_plain_index(cell), below = sk_plain_index(sk_plain_next(grid, cell, d, -1));
        float *density = &grid->fields[SK_FIELD_FACE_DENSITY_X + d][above];
        *density = sk_uic_face_density(*density, after[above] - before[above], after[below] - before[below]);
    }
}

selkie_code SK_DIM(sk_uic_correct_plain)(sk_step *step, selkie_error *error)
{
    static const uic_correct_form plain = {.build = SK_DIM(sk_uic_build_plain),
                                           .shift = shift_block,
                                           .update_faces = update_faces,
                                           .predict = SK_DIM(sk_predict_density_plain)};
    return SK_DIM(sk_uic_correct_with)(step, &plain, error);
}

/* --- prediction --- */

static void stop_before_pressure(const sk_step *step, int block)
{
    const surroundings around = surroundings_of(step, block, NULL);
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = &step->grid.fields[SK_FIELD_VELOCITY_X + d][sk_plain_index(cell)];
        *velocity = stopped(&around, cell, d, *velocity, 0.0f);
    }
}

static void predict_by_flux(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const float scale = (float)(step->dt / grid->cell_size);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        float *predicted = &grid->fields[SK_FIELD_PREDICTED][sk_plain_index(cell)];
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float *density = grid->fields[SK_FIELD_FACE_DENSITY_X + d],
                        *velocity = grid->fields[SK_FIELD_VELOCITY_X + d];
            const size_t lower = sk_plain_index(cell), upper = sk_plain_index(sk_plain_next(grid, cell, d, 1));
            *predicted += scale * (sk_uic_mass_flux(density[lower], velocity[lower]) -
                                   sk_uic_mass_flux(density[upper], velocity[upper]));
        }
    }
}

/* --- pressure --- */

static void mark_surface(const sk_step *step, int block, float *marks)
{
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const size_t index = sk_plain_index(cell);
        marks[index] = sk_uic_is_surface(step->grid.fields[SK_FIELD_FILL][index]) ? 1.0f : 0.0f;
    }
}

static void grow_surface(const sk_step *step, int block, const float *from, float *to)
{
    SK_PLAIN_EACH_CELL(cell, block)
    to[sk_plain_index(cell)] = grown_mark(&step->grid, from, cell);
}

static void balance_block(const sk_step *step, int block, float scale)
{
    const surroundings around = surroundings_of(step, block, spare_in_use(step));
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++)
        step->grid.fields[step->balance + d][sk_plain_index(cell)] = uic_balance_at(&around, cell, d, scale);
}

static void finish_block(const sk_step *step, int block, float scale)
{
    const sk_grid *grid = &step->grid;
    const surroundings around = surroundings_of(step, block, spare_in_use(step));
    const int marks_flight = block <= grid->particle_blocks && step->scene->unilateral.flight == SELKIE_FLIGHT_OWN;
    int known = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    known += finish_uic_cell(&around, cell, scale, marks_flight);
    grid->block_flags[block] = sk_plain_known_flags(grid->block_flags[block], known);
}

static const uic_pressure_form plain_form = {.build = SK_DIM(sk_uic_build_plain),
                                             .stop_at_walls = stop_before_pressure,
                                             .predict_by_flux = predict_by_flux,
                                             .predict = SK_DIM(sk_predict_density_plain),
                                             .mark_full = mark_full,
                                             .mark_surface = mark_surface,
                                             .grow_surface = grow_surface,
                                             .balance = balance_block,
                                             .finish = finish_block};

selkie_code SK_DIM(sk_uic_balance_plain)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_uic_balance_with)(step, &plain_form, error);
}

selkie_code SK_DIM(sk_uic_predict_plain)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_uic_predict_with)(step, &plain_form, error);
}

selkie_code SK_DIM(sk_uic_pressure_plain)(sk_step *step, selkie_error *error)
{
    return SK_DIM(sk_uic_pressure_with)(step, &plain_form, error);
}

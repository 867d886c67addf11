/* Coulomb's friction of liquid on walls and obstacles (liquid_friction), after the pressure solve.
 *
 * The pressure is the normal force, so friction follows it in the same step. A reflected step applies the change of the
 * pressure 1 + rho times, and friction with it; friction itself is not reflected, because a velocity that it stops
 * would turn round. FLIP's change carries the friction to the particles.
 */
#include "base/dimension.h"
#include "methods/flip/flip.h"
#include "methods/flip/friction_plain.h"
#include "methods/flip/reflection.h"

/* Rubs a velocity in blocks beside solids. */
static void rub(sk_step *step, const rubbed_field *field)
{
    const sk_grid *grid = &step->grid;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++)
        if (step->solids.block_slot[b])
            SK_PLAIN_EACH_CELL(cell, b)
    for (int d = 0; d < SELKIE_DIM; d++)
        field->result[d][sk_plain_index(cell)] = rubbed(step, field, cell, d);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < grid->block_count; b++)
        for (int d = 0; d < SELKIE_DIM && step->solids.block_slot[b]; d++) {
            const size_t base = (size_t)b * SK_BLOCK_CELLS;
            float *velocity = grid->fields[field->first + d] + base,
                  *change = grid->fields[SK_FIELD_CHANGE_X + d] + base;
            for (int c = 0; c < SK_BLOCK_CELLS; c++) {
                const float now = field->result[d][base + (size_t)c];
                if (field->carries_change && now != velocity[c])
                    change[c] += now - velocity[c];
                velocity[c] = now;
            }
        }
}

selkie_code SK_DIM(sk_flip_friction)(sk_step *step, selkie_error *error)
{
    (void)error;
    rubbed_field field = {.first = SK_FIELD_VELOCITY_X, .part = 1.0f, .carries_change = !flip_reflects(step)};
    if (!step->solids.friction || !sk_step_has_pressure(step))
        return SELKIE_OK;
    for (int d = 0; d < SELKIE_DIM; d++)
        field.result[d] = step->grid.fields[SK_FIELD_FACE_X + d];
    rub(step, &field);
    if (!flip_reflects(step))
        return SELKIE_OK;
    field.first = step->end_velocity;
    field.part = (float)(1.0 + step->reflection);
    field.carries_change = 1;
    rub(step, &field);
    return SELKIE_OK;
}

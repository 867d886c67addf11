/* Coulomb's friction of liquid on walls and obstacles (liquid_friction), after the pressure solve.
 *
 * The pressure is the normal force, so friction follows it in the same step. A reflected step applies the change of the
 * pressure 1 + rho times, and friction with it; friction itself is not reflected, because a velocity that it stops
 * would turn round. FLIP's change carries the friction to the particles.
 */
#include <math.h>

#include "base/dimension.h"
#include "methods/flip/face_velocity_plain.h"
#include "methods/flip/flip.h"
#include "methods/flip/friction_kernels.h"
#include "methods/flip/reflection.h"
#include "methods/liquid_plain.h"

/* A velocity on the grid. */
typedef struct rubbed_field {
    int first;          /* its first field */
    float part;         /* impulse of the step over that of the pressure solve */
    float *result[3];   /* scratch */
    int carries_change; /* particles take this velocity: FLIP's change follows it */
} rubbed_field;

static sk_rubbing_cell cell_at(const sk_step *step, sk_plain_cell cell)
{
    const size_t solid = sk_plain_solid_index(&step->solids, cell);
    const size_t here = sk_plain_index(cell);
    sk_rubbing_cell found = {.friction = step->solids.friction[solid]};
    for (int d = 0; d < SELKIE_DIM; d++)
        found.push[d] = step->grid.fields[SK_FIELD_POTENTIAL][here] +
                        (step->viscous_push ? step->grid.fields[step->viscous_push + d][here] : 0.0f);
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        found.open[side] = open_fraction_at(step, cell_of_side(&step->grid, cell, side), side / 2);
    return found;
}

/* Component e of the velocity of the surface with normal `area` beside a cell. Open faces have none, so the cell
 * towards the solid may have it. */
static float surface_velocity(const sk_step *step, sk_plain_cell cell, const float area[3], int e)
{
    int along = 0;
    if (!sk_solids_have_velocity(&step->solids))
        return 0.0f;
    for (int d = 1; d < SELKIE_DIM; d++)
        along = fabsf(area[d]) > fabsf(area[along]) ? d : along;
    if (open_fraction_at(step, cell, e) == 1.0f)
        cell = sk_plain_next(&step->grid, cell, along, area[along] > 0.0f ? -1 : 1);
    return solid_velocity_at(step, cell, e);
}

/* The velocity of the lower face of a cell across axis d after friction. */
static float rubbed(const sk_step *step, const rubbed_field *field, sk_plain_cell cell, int d)
{
    const sk_grid *grid = &step->grid;
    const float own = grid->fields[field->first + d][sk_plain_index(cell)], open = open_fraction_at(step, cell, d);
    if (own != own || !(open > 0.0f))
        return own;

    /* Friction of the two cells beside the face, each with half of the face's liquid. */
    float area[3] = {0.0f, 0.0f, 0.0f}, most = 0.0f, relative[3] = {0.0f, 0.0f, 0.0f};
    for (int side = 0; side < 2; side++) {
        const sk_rubbing_cell beside = cell_at(step, side ? cell : sk_plain_next(grid, cell, d, -1));
        most += 0.5f * sk_friction_of_cell(&beside, area);
    }
    if (!(most > 0.0f))
        return own;
    for (int e = 0; e < SELKIE_DIM; e++)
        relative[e] = velocity_at_face(grid, field->first, cell, d, e) - surface_velocity(step, cell, area, e);
    return sk_rubbed_velocity(d, own, relative, area, field->part * lightness_at(step, cell, d) * most / open);
}

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

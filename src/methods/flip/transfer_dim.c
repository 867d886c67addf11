/* Transfers and forces as phases. */
#include "base/dimension.h"
#include "grid/barriers.h"
#include "grid/deal.h"
#include "methods/flip/flip.h"
#include "methods/flip/transfer_options.h"
#include "methods/force_fields.h"

selkie_code SK_DIM(sk_flip_to_grid)(sk_step *step, selkie_error *error)
{
    sk_transfer_options options = flip_transfer_options(step);
    SK_TRY(SK_DIM(sk_transfer_to_grid)(&step->grid, &step->particles, &options, error));
    if (step->solids.obstacle_count)
        SK_DIM(sk_barriers_recount)(&step->solids, &step->grid, &step->particles, &options);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_to_particles)(sk_step *step, selkie_error *error)
{
    sk_transfer_options options = flip_transfer_options(step);
    SK_TRY(SK_DIM(sk_transfer_to_particles)(&step->grid, &step->particles, &options, &step->sums, error));
    return flip_check_velocities(step, error);
}

/* Does the block, with the faces on its lower sides, intersect the box of the field? */
static int block_meets(const sk_grid *grid, int block, const sk_force_field *field)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        double low = grid->corner[d] + (double)grid->coordinates[block][d] * SK_BLOCK_N * grid->cell_size;
        if (low > field->high[d] || low + SK_BLOCK_N * grid->cell_size < field->low[d])
            return 0;
    }
    return 1;
}

/* The field at the middle of each face, in the face's direction. */
static void add_field_to_block(const sk_grid *grid, int block, const sk_force_field *field)
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + (size_t)block * SK_BLOCK_CELLS;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int at[3] = {c & SK_BLOCK_MASK, c >> SK_BLOCK_LOG & SK_BLOCK_MASK, c >> 2 * SK_BLOCK_LOG};
            float x[3] = {0.0f, 0.0f, 0.0f}, change[3] = {0.0f, 0.0f, 0.0f};
            for (int e = 0; e < SELKIE_DIM; e++) {
                double cell = (double)(grid->coordinates[block][e] * SK_BLOCK_N + at[e]) + (e == d ? 0.0 : 0.5);
                x[e] = (float)(grid->corner[e] + cell * grid->cell_size);
            }
            sk_force_field_add(field, x, change);
            velocity[c] += change[d];
        }
    }
}

/* Explosions, vortices and jets act in the same windows of time as gravity. */
static selkie_code add_force_fields(sk_step *step, selkie_error *error)
{
    if (!sk_force_fields_most(step->scene))
        return SELKIE_OK;
    void *scratch;
    SK_TRY(sk_step_scratch(step, (size_t)sk_force_fields_most(step->scene) * sizeof(sk_force_field), "forces", &scratch,
                           error));
    sk_force_field *fields = scratch;
    int count = sk_force_fields_in(step->scene, sk_step_force_window(step), fields);
    sk_force_fields_scale(fields, count, 1.0 / (1.0 + step->reflection));
    const sk_grid *grid = &step->grid;
    if (!count)
        return SELKIE_OK;
    sk_deal deal;
    sk_deal_blocks(&deal, grid, step->threads);
#pragma omp parallel num_threads(step->threads)
    SK_EACH_DEALT(b, &deal)
    for (int f = 0; f < count; f++)
        if (block_meets(grid, b, &fields[f]))
            add_field_to_block(grid, b, &fields[f]);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_flip_forces)(sk_step *step, selkie_error *error)
{
    sk_grid *grid = &step->grid;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float gain = flip_gravity_gain(step, d);
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d];
        if (gain == 0.0f)
            continue;
        int64_t end = (int64_t)grid->block_count * SK_BLOCK_CELLS;
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int64_t c = SK_BLOCK_CELLS; c < end; c++)
            velocity[c] += gain; /* NaN (unknown) stays NaN */
    }
    return add_force_fields(step, error);
}

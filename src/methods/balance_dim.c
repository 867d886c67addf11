/* The change by the pressure that balances gravity, of liquid and bodies: what all kinds of pressure share. */
#include "methods/balance.h"

#include <string.h>

#include "base/dimension.h"
#include "rigid/rigid.h"

static void add_block(const sk_step *step, int block, float sign)
{
    const sk_grid *grid = &step->grid;
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM; d++) {
        float *velocity = grid->fields[SK_FIELD_VELOCITY_X + d] + base;
        const float *balance = grid->fields[step->balance + d] + base;
        for (int c = 0; c < SK_BLOCK_CELLS; c++)
            velocity[c] += sign * balance[c];
    }
}

static void add_fields(const sk_step *step, float sign)
{
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int b = 1; b < step->grid.block_count; b++)
        add_block(step, b, sign);
}

/* Flux times q of each body, in the order of the entries. */
static selkie_code sum_modes(sk_step *step, double (**sums)[SK_POISSON_MODES], selkie_error *error)
{
    const sk_poisson_modes *modes = step->modes;
    const float *q = step->grid.fields[SK_FIELD_POTENTIAL];
    SK_TRY(sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof **sums, "balance", (void **)sums, error));
    memset(*sums, 0, (size_t)step->rigid->body_count * sizeof **sums);
    for (size_t e = 0; step->balanced && modes && e < modes->entry_count; e++) {
        const sk_poisson_mode_entry *entry = &modes->entries[e];
        for (int m = 0; m < modes->rank; m++)
            (*sums)[entry->body][m] += (double)entry->flux[m] * (double)q[entry->cell];
    }
    return SELKIE_OK;
}

void SK_DIM(sk_balance_find_held)(sk_step *step, const double (*sums)[SK_POISSON_MODES])
{
    const sk_poisson_modes *modes = step->modes;
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_rigid_body *body = &step->rigid->bodies[b];
        memset(body->held_up, 0, sizeof body->held_up);
        memset(body->held_turning, 0, sizeof body->held_turning);
        for (int k = 0; modes && k < modes->rank; k++) {
            double *change = k < SELKIE_DIM    ? &body->held_up[k]
                             : SELKIE_DIM == 3 ? &body->held_turning[k - SELKIE_DIM]
                                               : &body->held_turning[2];
            for (int m = 0; m < modes->rank; m++)
                *change += (k < SELKIE_DIM ? 1.0 : 1.0 / step->grid.cell_size) * modes->response[b][k][m] * sums[b][m];
        }
    }
}

selkie_code SK_DIM(sk_balance_hold_bodies)(sk_step *step, double sign, selkie_error *error)
{
    sk_velocity_change *changes;
    SK_TRY(
        sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof *changes, "balance", (void **)&changes, error));
    for (int b = 0; b < step->rigid->body_count; b++)
        for (int d = 0; d < 3; d++) {
            changes[b].velocity[d] = sign * step->rigid->bodies[b].held_up[d];
            changes[b].angular_velocity[d] = sign * step->rigid->bodies[b].held_turning[d];
            changes[b].centre[d] = step->rigid->states[b].position[d];
        }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, changes, step->threads);
    return SELKIE_OK;
}

static selkie_code add_to_bodies(sk_step *step, double sign, selkie_error *error)
{
    double(*sums)[SK_POISSON_MODES];
    if (!step->rigid || !step->rigid->body_count)
        return SELKIE_OK;
    if (sign > 0.0) {
        SK_TRY(sum_modes(step, &sums, error));
        SK_DIM(sk_balance_find_held)(step, (const double(*)[SK_POISSON_MODES])sums);
    }
    return SK_DIM(sk_balance_hold_bodies)(step, sign, error);
}

selkie_code SK_DIM(sk_balance_add)(sk_step *step, double sign, selkie_error *error)
{
    if (step->balanced)
        add_fields(step, (float)sign);
    return add_to_bodies(step, sign, error);
}

selkie_code SK_DIM(sk_balance_release)(sk_step *step, selkie_error *error)
{
    return step->balanced ? SK_DIM(sk_balance_add)(step, -1.0, error) : SELKIE_OK;
}

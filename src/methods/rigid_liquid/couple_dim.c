/* Rigid bodies in the pressure solve: the modes of the bodies before it, and the impulses after it. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/rigid_liquid/rigid_liquid.h"
#include "methods/rigid_liquid/rigid_liquid_kernels.h"

static int is_liquid(const sk_grid *grid, sk_plain_cell cell)
{
    return (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
}

/* The share of a body in the lower face of a cell across axis d. */
static float share_at(const sk_solids *solids, sk_plain_cell face, int body, int d)
{
    if (!face.slot)
        return 0.0f;
    for (uint32_t piece = solids->piece_first[face.slot]; piece < solids->piece_first[face.slot + 1]; piece++)
        if (solids->pieces[piece].body == body)
            return solids->piece_share[d][(size_t)piece * SK_BLOCK_CELLS + (size_t)face.local];
    return 0.0f;
}

/* The flux out of a cell for each mode of a body; arms in cells. Returns whether there is any. */
static int find_flux(const sk_step *step, sk_plain_cell cell, int body, float flux[SK_POISSON_MODES])
{
    const sk_grid *grid = &step->grid;
    const double *centre = step->rigid->states[body].position;
    int at[3], found = 0;
    sk_plain_coordinates(grid, cell, at);
    memset(flux, 0, SK_POISSON_MODES * sizeof *flux);
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            const sk_plain_cell face = side ? sk_plain_next(grid, cell, d, 1) : cell;
            const float share = share_at(&step->solids, face, body, d);
            double arm[3] = {0.0, 0.0, 0.0};
            if (!(share > 0.0f))
                continue;
            for (int e = 0; e < SELKIE_DIM; e++)
                arm[e] = (grid->corner[e] - centre[e]) / grid->cell_size + at[e] + (e == d ? side : 0.5);
            sk_body_add_modes(d, arm, side ? share : -share, flux);
            found = 1;
        }
    return found;
}

/* Counts the entries of a block, or writes them if `to` is not NULL. */
static uint32_t entries_of_block(const sk_step *step, int block, sk_poisson_mode_entry *to)
{
    const sk_solids *solids = &step->solids;
    uint32_t count = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        if (!is_liquid(&step->grid, cell))
            continue;
        for (uint32_t piece = solids->piece_first[block]; piece < solids->piece_first[block + 1]; piece++) {
            sk_poisson_mode_entry entry = {.cell = (int64_t)sk_plain_index(cell), .body = solids->pieces[piece].body};
            if (!find_flux(step, cell, entry.body, entry.flux))
                continue;
            if (to)
                to[count] = entry;
            count++;
        }
    }
    return count;
}

/* The modes of all bodies, in the order of the blocks. */
static selkie_code list_entries(sk_step *step, sk_rigid_liquid *state, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    SK_TRY(sk_reserve(step->memory, (void **)&state->counts, &state->count_capacity, (size_t)grid->block_count + 1,
                      sizeof *state->counts, "bodies", error));
    uint32_t *first = state->counts;
    first[0] = first[1] = 0;

    /* Count, then write. */
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++)
        first[b + 1] =
            step->solids.piece_first[b] < step->solids.piece_first[b + 1] ? entries_of_block(step, b, NULL) : 0;
    for (int b = 1; b < grid->block_count; b++)
        first[b + 1] += first[b];
    SK_TRY(sk_reserve(step->memory, (void **)&state->entries, &state->entry_capacity,
                      (size_t)first[grid->block_count] + 1, sizeof *state->entries, "bodies", error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++)
        if (first[b] < first[b + 1])
            entries_of_block(step, b, state->entries + first[b]);
    state->modes = (sk_poisson_modes){
        .body_count = step->rigid->body_count,
        .rank = SK_BODY_MODES,
        .entry_count = first[grid->block_count],
        .entries = state->entries,
        .response = (const double(*)[SK_POISSON_MODES][SK_POISSON_MODES])state->response,
    };
    return SELKIE_OK;
}

/* The response of a body in the units of the pressure solve: density h^d M^-1, rotations in m/s at an arm of a cell. */
static void find_response(const sk_step *step, int body, double response[SK_POISSON_MODES][SK_POISSON_MODES])
{
    const double h = step->grid.cell_size, mass = step->density * pow(h, SELKIE_DIM);
    double inverse_mass[3], inverse_inertia[9];
    memset(response, 0, SK_POISSON_MODES * sizeof *response);
    sk_rigid_response(step->rigid, body, inverse_mass, inverse_inertia);
    for (int d = 0; d < SELKIE_DIM; d++)
        response[d][d] = mass * inverse_mass[d];
    for (int i = 0; i < (SELKIE_DIM == 3 ? 3 : 1); i++)
        for (int j = 0; j < (SELKIE_DIM == 3 ? 3 : 1); j++)
            response[SELKIE_DIM + i][SELKIE_DIM + j] = mass * h * h * inverse_inertia[SELKIE_DIM == 3 ? 3 * i + j : 8];
}

/* Faces of the liquid that a body covers in part and no particle reaches move with the body. */
static void fill_faces(const sk_step *step, int block)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
        float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][here], share = 0.0f;
        for (uint32_t piece = solids->piece_first[block]; piece < solids->piece_first[block + 1]; piece++)
            share += solids->piece_share[d][(size_t)piece * SK_BLOCK_CELLS + (size_t)cell.local];
        if (*velocity == *velocity || !(share > 0.0f) ||
            (!is_liquid(grid, cell) && !is_liquid(grid, sk_plain_next(grid, cell, d, -1))))
            continue;
        *velocity = solids->velocity[d][solid];
        grid->fields[SK_FIELD_CHANGE_X + d][here] = *velocity - (float)(step->scene->gravity[d] * sk_step_kick(step));
    }
}

selkie_code SK_DIM(sk_rigid_liquid_couple)(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);
    const double kick = sk_step_kick(step);

    /* Velocities before the solve: those of the last step, and gravity as for the liquid. */
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_velocity_change *change = &state->changes[b];
        find_response(step, b, state->response[b]);
        memset(change, 0, sizeof *change);
        for (int d = 0; d < SELKIE_DIM; d++)
            change->velocity[d] = state->response[b][d][d] > 0.0 ? kick * step->scene->gravity[d] : 0.0;
        memcpy(change->centre, step->rigid->states[b].position, sizeof change->centre);
    }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, state->changes);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b < step->grid.block_count; b++)
        if (step->solids.piece_first[b] < step->solids.piece_first[b + 1])
            fill_faces(step, b);

    SK_TRY(list_entries(step, state, error));
    step->modes = &state->modes;
    return SELKIE_OK;
}

/* Impulses of the pressure on the bodies, for the whole step. */
static void add_impulses(sk_step *step, const sk_poisson_modes *modes)
{
    const double h = step->grid.cell_size, mass = step->density * pow(h, SELKIE_DIM) * (1.0 + step->reflection);
    const float *q = step->grid.fields[SK_FIELD_POTENTIAL];
    for (size_t e = 0; e < modes->entry_count; e++) {
        const sk_poisson_mode_entry *entry = &modes->entries[e];
        sk_rigid_body *body = &step->rigid->bodies[entry->body];
        const double unit = mass * (double)q[entry->cell];
        for (int d = 0; d < SELKIE_DIM; d++)
            body->impulse[d] += unit * (double)entry->flux[d];
        for (int k = SELKIE_DIM; k < SK_BODY_MODES; k++)
            body->angular_impulse[SELKIE_DIM == 3 ? k - 3 : 2] += unit * h * (double)entry->flux[k];
    }
}

selkie_code SK_DIM(sk_rigid_liquid_move)(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);
    if (sk_step_has_pressure(step))
        add_impulses(step, &state->modes);
    step->modes = NULL;
    for (int b = 0; b < step->rigid->body_count; b++) {
        const sk_rigid_state *body = &step->rigid->states[b];
        for (int d = 0; d < 3; d++) {
            state->changes[b].velocity[d] = -body->velocity[d] - state->changes[b].velocity[d];
            state->changes[b].angular_velocity[d] = -body->angular_velocity[d];
        }
    }
    SK_TRY(sk_rigid_step(step->rigid, step->time, step->dt, error));

    /* Particles follow the surfaces to the new poses, and faces in bodies have the new velocities. */
    sk_solids_end_bodies(&step->solids);
    SK_DIM(sk_solids_find_clearance)(&step->solids, &step->grid, step->threads);
    for (int b = 0; b < step->rigid->body_count; b++)
        for (int d = 0; d < 3; d++) {
            state->changes[b].velocity[d] += step->rigid->states[b].velocity[d];
            state->changes[b].angular_velocity[d] += step->rigid->states[b].angular_velocity[d];
        }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, state->changes);
    return SELKIE_OK;
}

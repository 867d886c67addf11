/* Rigid bodies in the pressure solve: the modes of the bodies before it, and the impulses after it. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/impulse_time.h"
#include "methods/rigid_liquid/rigid_liquid.h"
#include "methods/rigid_liquid/rigid_liquid_kernels.h"

static int is_liquid(const sk_grid *grid, sk_plain_cell cell)
{
    return (grid->kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
}

/* The unilateral pressure has unknowns of its own, which are not known yet. Its solver drops other cells. On a GPU the
 * cells are not here. */
static int takes_all_cells(const sk_step *step)
{
    return step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_UNILATERAL || step->cuda;
}

/* The shares of a body in the faces of a block: of the block's own piece, and of those in the next block along each
 * axis. */
typedef struct body_shares {
    const sk_body_piece *own, *next[SELKIE_DIM]; /* NULL = none */
    double to_corner[3];                         /* cells  from the centre of mass to the corner of the block */
} body_shares;

static const sk_body_piece *piece_of(const sk_solids *solids, int block, int body)
{
    for (uint32_t n = block ? solids->piece_first[block] : 0; block && n < solids->piece_first[block + 1]; n++)
        if (solids->pieces[n].body == body)
            return &solids->pieces[n];
    return NULL;
}

static body_shares find_shares(const sk_step *step, const sk_body_piece *piece)
{
    const sk_grid *grid = &step->grid;
    const double *centre = step->rigid->states[piece->body].position;
    body_shares shares = {.own = piece};
    for (int d = 0; d < SELKIE_DIM; d++) {
        shares.next[d] = piece_of(&step->solids, grid->faces[piece->block][2 * d + 1], piece->body);
        shares.to_corner[d] =
            (grid->corner[d] - centre[d]) / grid->cell_size + (double)grid->coordinates[piece->block][d] * SK_BLOCK_N;
    }
    return shares;
}

/* The shares of a body in all faces of a block, with zeros where it has none. The upper faces of the last cells are
 * those of the next blocks. */
enum {
    PADDED_N = SK_BLOCK_N + 1,
    PADDED_STEP_Z = SELKIE_DIM == 3 ? PADDED_N * PADDED_N : 0,
    PADDED_CELLS = PADDED_N * PADDED_N * (SELKIE_DIM == 3 ? PADDED_N : 1)
};
typedef struct padded_shares {
    float face[SELKIE_DIM][PADDED_CELLS];
} padded_shares;

/* Copies the cells of a piece for axis d; of one in the next block along d, its first layer behind the last one. */
static void pad_piece(const sk_solids *solids, const sk_body_piece *piece, int d, int is_next, padded_shares *to)
{
    const float *share = solids->piece_share[d] + (size_t)piece->share * SK_BLOCK_CELLS;
    const int shift[3] = {1, PADDED_N, PADDED_STEP_Z};
    int high[3] = {piece->high[0], piece->high[1], piece->high[2]};
    if (is_next && piece->low[d] > 0)
        return;
    high[d] = is_next && high[d] > 1 ? 1 : high[d];
    float *target = to->face[d] + (is_next ? SK_BLOCK_N * shift[d] : 0);
    for (int k = piece->low[2]; k < high[2]; k++)
        for (int j = piece->low[1]; j < high[1]; j++)
            for (int i = piece->low[0]; i < high[0]; i++)
                target[i + PADDED_N * j + PADDED_STEP_Z * k] = share[i + SK_BLOCK_N * (j + SK_BLOCK_N * k)];
}

static void pad_shares(const sk_solids *solids, const body_shares *shares, padded_shares *to)
{
    memset(to, 0, sizeof *to);
    for (int d = 0; d < SELKIE_DIM; d++) {
        pad_piece(solids, shares->own, d, 0, to);
        if (shares->next[d])
            pad_piece(solids, shares->next[d], d, 1, to);
    }
}

/* The flux out of a cell for each mode of a body; arms in cells. Returns whether there is any. */
static int find_flux(const padded_shares *padded, const body_shares *shares, const int cell[3],
                     float flux[SK_POISSON_MODES])
{
    const int shift[3] = {1, PADDED_N, PADDED_STEP_Z}, at = cell[0] + PADDED_N * cell[1] + PADDED_STEP_Z * cell[2];
    int found = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++) {
            const float share = padded->face[d][at + side * shift[d]];
            double arm[3] = {0.0, 0.0, 0.0};
            if (!(share > 0.0f))
                continue;
            for (int e = 0; e < SELKIE_DIM; e++)
                arm[e] = shares->to_corner[e] + cell[e] + (e == d ? side : 0.5);
            sk_body_add_modes(d, arm, side ? share : -share, flux);
            found = 1;
        }
    return found;
}

/* The cells of the block whose faces can have a share of the body. Upper faces may lie in the next block. */
typedef struct cell_box {
    int low[3], high[3];
} cell_box;

static cell_box box_of(const body_shares *shares)
{
    cell_box box = {{0, 0, 0}, {1, 1, 1}};
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int low = shares->own->low[d];
        box.low[d] = low > 0 ? low - 1 : 0;
        box.high[d] = shares->next[d] ? SK_BLOCK_N : shares->own->high[d];
    }
    return box;
}

/* Writes the entries of one body in its block. Returns their number. */
static uint32_t entries_of_piece(const sk_step *step, const sk_body_piece *piece, sk_poisson_mode_entry *to)
{
    const body_shares shares = find_shares(step, piece);
    const cell_box box = box_of(&shares);
    const int all = takes_all_cells(step);
    padded_shares padded;
    uint32_t count = 0;
    pad_shares(&step->solids, &shares, &padded);
    for (int k = box.low[2]; k < box.high[2]; k++)
        for (int j = box.low[1]; j < box.high[1]; j++)
            for (int i = box.low[0]; i < box.high[0]; i++) {
                const sk_plain_cell cell = {piece->block, i + SK_BLOCK_N * (j + SK_BLOCK_N * k)};
                to[count] = (sk_poisson_mode_entry){.cell = (int64_t)sk_plain_index(cell), .body = piece->body};
                if (all || is_liquid(&step->grid, cell))
                    count += (uint32_t)find_flux(&padded, &shares, (const int[3]){i, j, k}, to[count].flux);
            }
    return count;
}

/* Room for the entries of a block, and for one more. */
static uint32_t most_entries(const sk_step *step, int block)
{
    uint32_t count = 0;
    for (uint32_t n = step->solids.piece_first[block]; n < step->solids.piece_first[block + 1]; n++) {
        const body_shares shares = find_shares(step, &step->solids.pieces[n]);
        const cell_box box = box_of(&shares);
        uint32_t cells = 1;
        for (int d = 0; d < 3; d++)
            cells *= (uint32_t)(box.high[d] > box.low[d] ? box.high[d] - box.low[d] : 0);
        count += cells;
    }
    return count ? count + 1 : 0;
}

/* Writes the entries of a block. Returns their number. */
static uint32_t entries_of_block(const sk_step *step, int block, sk_poisson_mode_entry *to)
{
    uint32_t count = 0;
    for (uint32_t n = step->solids.piece_first[block]; n < step->solids.piece_first[block + 1]; n++)
        count += entries_of_piece(step, &step->solids.pieces[n], to + count);
    return count;
}

/* The modes of all bodies, in the order of the blocks. */
static selkie_code list_entries(sk_step *step, sk_rigid_liquid *state, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    SK_TRY(sk_reserve(step->memory, (void **)&state->counts, &state->count_capacity, 2 * (size_t)grid->block_count + 1,
                      sizeof *state->counts, "bodies", error));
    uint32_t *first = state->counts, *counts = first + grid->block_count + 1;
    first[0] = first[1] = 0;

    /* Each block writes into room of its own, then the entries close up. */
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 8)
    for (int b = 1; b < grid->block_count; b++)
        first[b + 1] = most_entries(step, b);
    for (int b = 1; b < grid->block_count; b++)
        first[b + 1] += first[b];
    SK_TRY(sk_reserve(step->memory, (void **)&state->entries, &state->entry_capacity,
                      (size_t)first[grid->block_count] + 1, sizeof *state->entries, "bodies", error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b < grid->block_count; b++)
        counts[b - 1] = first[b] < first[b + 1] ? entries_of_block(step, b, state->entries + first[b]) : 0;
    size_t total = 0;
    for (int b = 1; b < grid->block_count; b++) {
        memmove(state->entries + total, state->entries + first[b], counts[b - 1] * sizeof *state->entries);
        total += counts[b - 1];
    }

    state->modes = (sk_poisson_modes){
        .body_count = step->rigid->body_count,
        .rank = SK_BODY_MODES,
        .entry_count = total,
        .entries = state->entries,
        .response = (const double(*)[SK_POISSON_MODES][SK_POISSON_MODES])state->response,
        .velocity = (const double(*)[SK_POISSON_MODES])state->velocity,
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
static void fill_faces(const sk_step *step, const sk_body_piece *piece)
{
    const sk_grid *grid = &step->grid;
    const sk_solids *solids = &step->solids;
    for (int k = piece->low[2]; k < piece->high[2]; k++)
        for (int j = piece->low[1]; j < piece->high[1]; j++)
            for (int i = piece->low[0]; i < piece->high[0]; i++)
                for (int d = 0; d < SELKIE_DIM; d++) {
                    const sk_plain_cell cell = {piece->block, i + SK_BLOCK_N * (j + SK_BLOCK_N * k)};
                    const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
                    float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][here];
                    if (*velocity == *velocity ||
                        !(solids->piece_share[d][(size_t)piece->share * SK_BLOCK_CELLS + (size_t)cell.local] > 0.0f) ||
                        (!is_liquid(grid, cell) && !is_liquid(grid, sk_plain_next(grid, cell, d, -1))))
                        continue;
                    *velocity = solids->velocity[d][solid];
                    grid->fields[SK_FIELD_CHANGE_X + d][here] =
                        *velocity - (float)(step->scene->gravity[d] * sk_step_kick(step));
                }
}

/* What gravity and viscous drag change of a body's velocity before the pressure solve. Where gravity is balanced before
 * viscosity acts, the drag is not known yet. */
static void find_change(const sk_step *step, const sk_rigid_liquid *state, int body, sk_velocity_change *change)
{
    memset(change, 0, sizeof *change);
    if (!step->balance)
        sk_rigid_drag_change(step->rigid, body, change->velocity, change->angular_velocity);
    memcpy(change->centre, step->rigid->states[body].position, sizeof change->centre);
    for (int d = 0; d < SELKIE_DIM; d++)
        if (state->response[body][d][d] > 0.0) /* not held */
            change->velocity[d] += sk_step_kick(step) * step->scene->gravity[d];
}

/* Motion of a body's modes: m/s, rotations at an arm of a cell. */
static void take_modes(const sk_step *step, const double velocity[3], const double turning[3],
                       double modes[SK_POISSON_MODES])
{
    for (int k = 0; k < SK_BODY_MODES; k++)
        modes[k] = k < SELKIE_DIM ? velocity[k] : turning[SELKIE_DIM == 3 ? k % 3 : 2] * step->grid.cell_size;
}

selkie_code SK_DIM(sk_rigid_liquid_drag)(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);
    sk_velocity_change *drag;
    SK_TRY(sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof *drag, "bodies", (void **)&drag, error));
    for (int b = 0; b < step->rigid->body_count; b++) {
        double modes[SK_POISSON_MODES];
        drag[b] = state->changes[b];
        sk_rigid_drag_change(step->rigid, b, drag[b].velocity, drag[b].angular_velocity);
        take_modes(step, drag[b].velocity, drag[b].angular_velocity, modes);
        for (int k = 0; k < SK_BODY_MODES; k++)
            state->velocity[b][k] += modes[k];
        for (int d = 0; d < 3; d++) {
            state->changes[b].velocity[d] += drag[b].velocity[d];
            state->changes[b].angular_velocity[d] += drag[b].angular_velocity[d];
        }
    }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, drag, step->threads);
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_rigid_liquid_couple)(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);

    /* Velocities before the solve: those of the last step, and gravity and viscous stress as for the liquid. */
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_velocity_change *change = &state->changes[b];
        const sk_rigid_state *body = &step->rigid->states[b];
        find_response(step, b, state->response[b]);
        find_change(step, state, b, change);
        double velocity[3], turning[3];
        for (int d = 0; d < 3; d++) {
            velocity[d] = body->velocity[d] + change->velocity[d];
            turning[d] = body->angular_velocity[d] + change->angular_velocity[d];
        }
        take_modes(step, velocity, turning, state->velocity[b]);
    }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, state->changes, step->threads);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b < step->grid.block_count; b++)
        for (uint32_t n = step->solids.piece_first[b]; !takes_all_cells(step) && n < step->solids.piece_first[b + 1];
             n++)
            fill_faces(step, &step->solids.pieces[n]);

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

/* Impulses of the viscous stress, likewise. */
static void add_drag(const sk_step *step)
{
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_rigid_body *body = &step->rigid->bodies[b];
        for (int d = 0; d < 3; d++) {
            body->impulse[d] += (1.0 + step->reflection) * body->drag[d];
            body->angular_impulse[d] += (1.0 + step->reflection) * body->angular_drag[d];
        }
    }
}

selkie_code SK_DIM(sk_rigid_liquid_move)(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);
    if (sk_step_has_pressure(step) && !step->cuda) /* a GPU has added them */
        add_impulses(step, &state->modes);
    add_drag(step);
    if (sk_step_has_pressure(step))
        SK_TRY(SK_DIM(sk_rigid_liquid_rub)(step, &state->modes, error));
    step->modes = NULL;
    for (int b = 0; b < step->rigid->body_count; b++) {
        const sk_rigid_state *body = &step->rigid->states[b];
        for (int d = 0; d < 3; d++) {
            state->changes[b].velocity[d] = -body->velocity[d] - state->changes[b].velocity[d];
            state->changes[b].angular_velocity[d] = -body->angular_velocity[d] - state->changes[b].angular_velocity[d];
        }
    }
    SK_TRY(sk_rigid_step(step->rigid, step->time, step->dt, sk_step_impulse_time(step), error));

    /* Particles follow the surfaces to the new poses, and faces in bodies have the new velocities. */
    sk_solids_end_bodies(&step->solids);
    SK_DIM(sk_solids_find_clearance)(&step->solids, &step->grid, step->threads);
    for (int b = 0; b < step->rigid->body_count; b++)
        for (int d = 0; d < 3; d++) {
            state->changes[b].velocity[d] += step->rigid->states[b].velocity[d];
            state->changes[b].angular_velocity[d] += step->rigid->states[b].angular_velocity[d];
        }
    SK_DIM(sk_solids_change_velocity)(&step->solids, &step->grid, state->changes, step->threads);
    return SELKIE_OK;
}

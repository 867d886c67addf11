/* Momentum of particles into the surfaces of bodies (Gao et al. 2017, Eqs. 7 and 8, as a joint inelastic contact).
 *
 * The particles at the surface of a body that move into it and the body take a common velocity along the normals:
 *
 *   (M + sum m J J^T) delta = sum m J v_n,   J = (n, r x n),   v_n = n . (v - V - omega x r) < 0,
 *
 * then v -= v_n(new) n. The momentum is that before, and the result does not depend on the number of particles.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/sweep_lanes.h"
#include "methods/rigid_liquid/rigid_liquid.h"
#include "methods/rigid_liquid/rigid_liquid_kernels.h"

/* The cells of a block, from low up to high, whose particles can touch the body within `reach` cells of their way.
 * Returns whether there are any. */
static int may_touch(const sk_step *step, int block, const sk_obstacle *body, double reach, int low[3], int high[3])
{
    const sk_grid *grid = &step->grid;
    const double h = grid->cell_size;
    low[2] = 0;
    high[2] = 1;
    for (int d = 0; d < SELKIE_DIM; d++) {
        const double corner = grid->corner[d] + grid->coordinates[block][d] * SK_BLOCK_N * h,
                     first = floor((body->swept_low[d] - corner) / h - reach),
                     last = ceil((body->swept_high[d] - corner) / h + reach);
        if (!(first < SK_BLOCK_N) || !(last > 0.0))
            return 0;
        low[d] = first > 0.0 ? (int)first : 0;
        high[d] = last < SK_BLOCK_N ? (int)last : SK_BLOCK_N;
    }
    return 1;
}

/* Is a row of cells too far from the ball around the body for particles that go at most `reach` cells? */
static int is_beside(const sk_step *step, int block, const sk_obstacle *body, double reach, int j, int k)
{
    const sk_grid *grid = &step->grid;
    const int at[3] = {0, j, k};
    const double most = body->reach / grid->cell_size + reach + 1.0; /* more than half of the row's diagonal */
    double apart2 = 0.0;
    for (int d = 1; d < SELKIE_DIM; d++) {
        const double row = grid->corner[d] + (grid->coordinates[block][d] * SK_BLOCK_N + at[d] + 0.5) * grid->cell_size,
                     apart = (row - body->middle[d]) / grid->cell_size;
        apart2 += apart * apart;
    }
    return apart2 > most * most;
}

/* Writes the contact of a particle with a body, if it has one. */
static int touches(const sk_step *step, uint32_t p, int number, const sk_obstacle *body, sk_body_contact *to)
{
    const double gap = SK_SWEEP_GAP * step->grid.cell_size;
    const float *x = step->particles.records[p].position;
    const double point[3] = {(double)x[0], (double)x[1], SELKIE_DIM == 3 ? (double)x[2] : 0.0};
    double local[3], normal[3], world[3];
    sk_pose_to_local(&body->end, point, local);
    if (sk_shape_distance_within(body->shape, local, 3.0 * gap, normal) > 2.0 * gap)
        return 0;
    sk_pose_rotate(&body->end, normal, world);
    *to = (sk_body_contact){p, number, {(float)world[0], (float)world[1], (float)world[2]}};
    return 1;
}

/* Writes the contacts of particles with one body. Returns their number. */
static uint32_t contacts_with(const sk_step *step, uint32_t first, uint32_t last, int number, const sk_obstacle *body,
                              sk_body_contact *to)
{
    const float margin = sk_lanes_margin(&step->solids);
    uint32_t count = 0;
    for (uint32_t p = first; p < last; p += SK_WIDE) {
        const int lanes = last - p < SK_WIDE ? (int)(last - p) : SK_WIDE;
        fw x[4];
        fw_load_columns(step->particles.records[p].position, lanes, x);
        const sk_lane_paths paths = {x, x, fw_splat(1.0f), fw_splat(1.0f)};
        for (unsigned some = iw_bits(sk_lanes_may_meet(body, margin, &paths) & iw_first(lanes)); some; some &= some - 1)
            count += (uint32_t)touches(step, p + (uint32_t)__builtin_ctz(some), number, body, to + count);
    }
    return count;
}

/* The same with all bodies. `to` NULL: the number of particles near them, which is the most that there can be. */
static uint32_t contacts_of_block(const sk_step *step, int block, double reach, sk_body_contact *to)
{
    const sk_solids *solids = &step->solids;
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    uint32_t count = 0;
    for (int b = 0; b < step->rigid->body_count; b++) {
        const sk_obstacle *body = &solids->obstacles[solids->obstacle_count - solids->body_count + b];
        int low[3], high[3];
        if (!may_touch(step, block, body, reach, low, high))
            continue;
        for (int k = low[2]; k < high[2]; k++)
            for (int j = low[1]; j < high[1]; j++) {
                const uint32_t *row = start + SK_BLOCK_N * (j + SK_BLOCK_N * k);
                if (is_beside(step, block, body, reach, j, k))
                    continue;
                count += to ? contacts_with(step, row[low[0]], row[high[0]], b, body, to + count)
                            : row[high[0]] - row[low[0]];
            }
    }
    return count;
}

static selkie_code list_contacts(sk_step *step, sk_rigid_liquid *state, size_t *total, selkie_error *error)
{
    const sk_grid *grid = &step->grid;
    const float reach = (float)(step->sums.max_speed * step->dt / grid->cell_size) + 1.0f;
    SK_TRY(sk_reserve(step->memory, (void **)&state->counts, &state->count_capacity, 2 * (size_t)grid->block_count + 2,
                      sizeof *state->counts, "bodies", error));
    uint32_t *first = state->counts, *counts = first + grid->block_count + 1;
    first[0] = first[1] = 0;

    /* Each block writes into room of its own, then the contacts close up. */
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 8)
    for (int b = 1; b <= grid->particle_blocks; b++)
        first[b + 1] = sk_sweep_is_clear(&step->solids, b, reach) ? 0 : contacts_of_block(step, b, (double)reach, NULL);
    for (int b = 1; b <= grid->particle_blocks; b++)
        first[b + 1] += first[b];
    SK_TRY(sk_reserve(step->memory, (void **)&state->contacts, &state->contact_capacity,
                      (size_t)first[grid->particle_blocks + 1] + 1, sizeof *state->contacts, "bodies", error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 1; b <= grid->particle_blocks; b++)
        counts[b] = first[b] < first[b + 1] ? contacts_of_block(step, b, (double)reach, state->contacts + first[b]) : 0;
    *total = 0;
    for (int b = 1; b <= grid->particle_blocks; b++) {
        memmove(state->contacts + *total, state->contacts + first[b], counts[b] * sizeof *state->contacts);
        *total += counts[b];
    }
    return SELKIE_OK;
}

/* Modes of a contact and its normal velocity. */
static double approach(const sk_step *step, const sk_body_contact *contact, const double velocity[SK_POISSON_MODES],
                       double modes[SK_POISSON_MODES])
{
    const sk_particle *particle = &step->particles.records[contact->particle];
    return sk_body_approach(particle->position, particle->velocity, contact->normal,
                            step->rigid->states[contact->body].position, velocity, modes);
}

void SK_DIM(sk_rigid_liquid_contact_response)(const sk_step *step, const sk_rigid_liquid *state, int body,
                                              double response[SK_POISSON_MODES][SK_POISSON_MODES])
{
    const double unit = step->density * pow(step->grid.cell_size, SELKIE_DIM), h = step->grid.cell_size;
    memset(response, 0, SK_POISSON_MODES * sizeof *response);
    for (int i = 0; i < SK_BODY_MODES; i++)
        for (int j = 0; j < SK_BODY_MODES; j++)
            response[i][j] =
                state->response[body][i][j] / (unit * (i < SELKIE_DIM ? 1.0 : h) * (j < SELKIE_DIM ? 1.0 : h));
}

void SK_DIM(sk_rigid_liquid_body_modes)(const sk_rigid_state *rigid, double velocity[SK_POISSON_MODES])
{
    for (int d = 0; d < SELKIE_DIM; d++)
        velocity[d] = rigid->velocity[d];
    for (int k = SELKIE_DIM; k < SK_BODY_MODES; k++)
        velocity[k] = rigid->angular_velocity[SELKIE_DIM == 3 ? k - 3 : 2];
}

void SK_DIM(sk_rigid_liquid_take_contact)(sk_rigid_state *rigid, double dt, const double after[SK_POISSON_MODES],
                                          const double momentum[SK_POISSON_MODES])
{
    for (int d = 0; d < SELKIE_DIM; d++) {
        rigid->velocity[d] = after[d];
        rigid->force[d] += momentum[d] / dt;
    }
    for (int k = SELKIE_DIM; k < SK_BODY_MODES; k++) {
        const int axis = SELKIE_DIM == 3 ? k - 3 : 2;
        rigid->angular_velocity[axis] = after[k];
        rigid->torque[axis] += momentum[k] / dt;
    }
}

/* The joint contact of one body. */
static void meet_body(sk_step *step, const sk_rigid_liquid *state, int body, const sk_body_contact *contacts,
                      size_t count)
{
    sk_rigid_state *rigid = &step->rigid->states[body];
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    double velocity[SK_POISSON_MODES] = {0}, gained[SK_POISSON_MODES] = {0}, modes[SK_POISSON_MODES] = {0};
    double stiffness[SK_POISSON_MODES][SK_POISSON_MODES] = {{0}}, response[SK_POISSON_MODES][SK_POISSON_MODES];
    double change[SK_POISSON_MODES], momentum[SK_POISSON_MODES];
    SK_DIM(sk_rigid_liquid_body_modes)(rigid, velocity);

    /* The sums. */
    int found = 0;
    for (size_t c = 0; c < count; c++) {
        const double into = approach(step, &contacts[c], velocity, modes);
        if (!(into < 0.0))
            continue;
        const double mass = sk_step_mass(step, material, contacts[c].particle);
        found = 1;
        for (int i = 0; i < SK_BODY_MODES; i++) {
            gained[i] += mass * modes[i] * into;
            for (int j = 0; j < SK_BODY_MODES; j++)
                stiffness[i][j] += mass * modes[i] * modes[j];
        }
    }
    if (!found)
        return;

    SK_DIM(sk_rigid_liquid_contact_response)(step, state, body, response);
    sk_body_meet((const double(*)[SK_POISSON_MODES])response, (const double(*)[SK_POISSON_MODES])stiffness, gained,
                 change, momentum);

    /* The particles take the new velocity along the normal, the body the change. */
    double after[SK_POISSON_MODES] = {0};
    for (int k = 0; k < SK_BODY_MODES; k++)
        after[k] = velocity[k] + change[k];
    for (size_t c = 0; c < count; c++) {
        if (!(approach(step, &contacts[c], velocity, modes) < 0.0))
            continue;
        const double left = approach(step, &contacts[c], after, modes);
        for (int d = 0; d < SELKIE_DIM; d++)
            step->particles.records[contacts[c].particle].velocity[d] -= (float)(left * modes[d]);
    }
    SK_DIM(sk_rigid_liquid_take_contact)(rigid, step->dt, after, momentum);
}

/* Orders contacts by body; those of a body keep their order. `first` gets the first of each body. */
static selkie_code order_contacts(sk_step *step, sk_rigid_liquid *state, size_t count, size_t **first,
                                  sk_body_contact **ordered, selkie_error *error)
{
    const size_t bodies = (size_t)step->rigid->body_count;
    SK_TRY(sk_step_scratch(step, (bodies + 2) * sizeof **first, "body_contacts", (void **)first, error));
    SK_TRY(sk_step_scratch(step, (count + 1) * sizeof **ordered, "body_contacts", (void **)ordered, error));
    memset(*first, 0, (bodies + 2) * sizeof **first);
    for (size_t c = 0; c < count; c++)
        (*first)[state->contacts[c].body + 2]++;
    for (size_t b = 2; b < bodies + 2; b++)
        (*first)[b] += (*first)[b - 1];
    for (size_t c = 0; c < count; c++)
        (*ordered)[(*first)[state->contacts[c].body + 1]++] = state->contacts[c];
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_rigid_liquid_contact)(sk_step *step, selkie_error *error)
{
    sk_rigid_liquid *state = sk_step_state(step, &sk_method_rigid_liquid);
    sk_body_contact *ordered;
    size_t count, *first;
    SK_TRY(list_contacts(step, state, &count, error));
    if (!count)
        return SELKIE_OK;
    SK_TRY(order_contacts(step, state, count, &first, &ordered, error));
    for (int b = 0; b < step->rigid->body_count; b++)
        meet_body(step, state, b, ordered + first[b], first[b + 1] - first[b]);
    return sk_rigid_place(step->rigid, "bodies", error);
}

/* Rigid bodies with a no-slip surface in the viscous solve.
 *
 * The liquid drags a body along, and the body the liquid. A solve that takes the velocity of the body as given and
 * hands it the stress afterwards is unstable for light bodies in thick liquid. So the body takes part: its faces are
 * unknowns that carry its mass, and its cells and edges are so stiff that it stays nearly rigid. What momentum its
 * faces gain is the impulse of the liquid on it; the solve keeps the momentum of both together. The shear between body
 * and liquid is that of any no-slip wall.
 *
 * A body that may not turn is held along its held axes by a large mass. One that may turn counts as free along all
 * axes, and the engine leaves the impulses along held ones out. A body that is thinner than a cell has no face of its
 * own and no drag.
 */
#include "methods/viscosity/viscosity_bodies_plain.h"

#include <math.h>
#include <string.h>

#include "grid/plain.h"
#include "methods/viscosity/viscosity.h"
#include "rigid/rigid.h"

static const float held_mass = 1e4f; /* of faces along held axes, over their own mass */

static int takes_part(const sk_rigid *rigid, int body)
{
    return rigid->bodies[body].def->surface == SELKIE_WALL_NO_SLIP;
}

/* Is the body held along an axis? One that may turn moves there all the same. */
static int is_held(const sk_rigid *rigid, int body, int d)
{
    double inverse_mass[3], inverse_inertia[9];
    sk_rigid_response(rigid, body, inverse_mass, inverse_inertia);
    return !(inverse_mass[d] > 0.0) && !(inverse_inertia[0] + inverse_inertia[4] + inverse_inertia[8] > 0.0);
}

/* The change of the body at a face by the pressure that balances gravity, m/s. */
static float held_at(const sk_step *step, int body, int d, const float arm[3])
{
    const sk_rigid_body *of = &step->rigid->bodies[body];
    const int e = (d + 1) % 3, g = (d + 2) % 3;
    return (float)(of->held_up[d] + of->held_turning[e] * (double)arm[g] - of->held_turning[g] * (double)arm[e]);
}

/* The velocity of the body at a face; gravity acts on it as on the liquid. */
static float velocity_at(const sk_step *step, int body, int d, const float arm[3])
{
    const sk_rigid_state *state = &step->rigid->states[body];
    const double *w = state->angular_velocity;
    const int e = (d + 1) % 3, g = (d + 2) % 3;
    double inverse_mass[3], inverse_inertia[9];
    sk_rigid_response(step->rigid, body, inverse_mass, inverse_inertia);
    const double fall = inverse_mass[d] > 0.0 ? sk_step_kick(step) * step->scene->gravity[d] : 0.0;
    return (float)(state->velocity[d] + fall + w[e] * (double)arm[g] - w[g] * (double)arm[e]);
}

/* Lists the faces of a piece that lie in the body for the most part. `owner` names the body of each face. */
static size_t list_piece(const sk_step *step, const sk_body_piece *piece, int32_t *const owner[SELKIE_DIM],
                         sk_viscous_body_face *to)
{
    const sk_grid *grid = &step->grid;
    const double h = grid->cell_size, *centre = step->rigid->states[piece->body].position;
    size_t count = 0;
    for (int k = piece->low[2]; k < piece->high[2]; k++)
        for (int j = piece->low[1]; j < piece->high[1]; j++)
            for (int i = piece->low[0]; i < piece->high[0]; i++)
                for (int d = 0; d < SELKIE_DIM; d++) {
                    const int at[3] = {i, j, k};
                    const sk_plain_cell cell = {piece->block, i + SK_BLOCK_N * (j + SK_BLOCK_N * k)};
                    const size_t here = sk_plain_index(cell);
                    const float share =
                        step->solids.piece_share[d][(size_t)piece->share * SK_BLOCK_CELLS + (size_t)cell.local];
                    if (!(share > 0.5f) || owner[d][here])
                        continue;
                    sk_viscous_body_face *face = &to[count++];
                    *face = (sk_viscous_body_face){.place = here, .body = piece->body, .axis = d, .mass = share};
                    owner[d][here] = piece->body + 1;
                    double x[3] = {0.0, 0.0, 0.0};
                    for (int e = 0; e < SELKIE_DIM; e++) {
                        x[e] = grid->corner[e] + ((double)grid->coordinates[piece->block][e] * SK_BLOCK_N + at[e] +
                                                  (e == d ? 0.0 : 0.5)) *
                                                     h;
                        face->arm[e] = (float)(x[e] - centre[e]);
                    }
                    face->held = held_at(step, piece->body, d, face->arm);
                    face->velocity = velocity_at(step, piece->body, d, face->arm) + face->held;
                }
    return count;
}

/* In the solve's unit, density x cell volume. */
selkie_code SK_DIM(sk_viscous_weigh_bodies)(sk_step *step, const sk_viscous_bodies *bodies, selkie_error *error)
{
    const double unit = step->density * pow(step->grid.cell_size, SELKIE_DIM);
    double(*sums)[3];
    SK_TRY(sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof *sums, "viscosity", (void **)&sums, error));
    memset(sums, 0, (size_t)step->rigid->body_count * sizeof *sums);
    for (size_t n = 0; n < bodies->count; n++)
        sums[bodies->faces[n].body][bodies->faces[n].axis] += (double)bodies->faces[n].mass;
    for (size_t n = 0; n < bodies->count; n++) {
        sk_viscous_body_face *face = &bodies->faces[n];
        face->mass *= (float)(step->rigid->bodies[face->body].mass / (unit * sums[face->body][face->axis]));
        face->mass *= is_held(step->rigid, face->body, face->axis) ? held_mass : 1.0f;
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_viscous_list_bodies)(sk_step *step, sk_viscous_bodies *bodies, selkie_error *error)
{
    const sk_solids *solids = &step->solids;
    const size_t values = (size_t)step->grid.block_count * SK_BLOCK_CELLS;
    const uint32_t pieces = solids->body_count ? solids->piece_first[step->grid.block_count] : 0;
    int32_t *owner[SELKIE_DIM];
    size_t room = 0;
    *bodies = (sk_viscous_bodies){.count = 0};
    for (int b = 0; step->rigid && b < step->rigid->body_count; b++)
        for (int d = 0; d < 3; d++)
            step->rigid->bodies[b].drag[d] = step->rigid->bodies[b].angular_drag[d] = 0.0;
    for (uint32_t n = 0; n < pieces; n++)
        room += takes_part(step->rigid, solids->pieces[n].body) ? (size_t)SK_BLOCK_CELLS * SELKIE_DIM : 0;
    if (!room)
        return SELKIE_OK;

    /* The faces, in the order of the blocks. */
    SK_TRY(sk_step_scratch(step, room * sizeof *bodies->faces, "viscosity", (void **)&bodies->faces, error));
    for (int d = 0; d < SELKIE_DIM; d++) {
        SK_TRY(sk_step_scratch(step, values * sizeof *owner[d], "viscosity", (void **)&owner[d], error));
        memset(owner[d], 0, values * sizeof *owner[d]);
    }
    for (uint32_t n = 0; n < pieces; n++)
        if (takes_part(step->rigid, solids->pieces[n].body))
            bodies->count += list_piece(step, &solids->pieces[n], owner, bodies->faces + bodies->count);
    for (int d = 0; d < SELKIE_DIM; d++)
        bodies->owner[d] = owner[d];
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_viscous_add_bodies)(sk_step *step, sk_viscous_fields *f, sk_viscous_bodies *bodies,
                                          selkie_error *error)
{
    SK_TRY(SK_DIM(sk_viscous_list_bodies)(step, bodies, error));
    if (!bodies->count)
        return SELKIE_OK;
    for (size_t n = 0; n < bodies->count; n++) {
        sk_viscous_body_face *face = &bodies->faces[n];
        f->closed[face->place] |= (uint8_t)(1 << face->axis);
        f->filled[face->place] = 0;
        take_body_face(step, f, step->balanced, face);
    }
    return SK_DIM(sk_viscous_weigh_bodies)(step, bodies, error);
}

void SK_DIM(sk_viscous_join_bodies)(sk_step *step, const sk_viscous_fields *f, const sk_viscous_bodies *bodies)
{
    for (size_t n = 0; n < bodies->count; n++)
        join_body_face(step, f, bodies->owner, f->strength, &bodies->faces[n]);
}

/* The solve may see a part of a body alone, in the blocks beside the liquid, with the mass of all of it there: that
 * part turns less easily than the body. An impulse is cut to the part with which the body comes nearest to the
 * velocities that the solve found for its faces, so that it never turns past them. */
static void limit_drag(sk_step *step, const sk_viscous_bodies *bodies, int body)
{
    const double unit = step->density * pow(step->grid.cell_size, SELKIE_DIM);
    sk_rigid_body *of = &step->rigid->bodies[body];
    double velocity[3], spin[3], work = 0.0, energy = 0.0;
    sk_rigid_drag_change(step->rigid, body, velocity, spin);
    for (int d = 0; d < 3; d++)
        work += of->drag[d] * velocity[d] + of->angular_drag[d] * spin[d];
    for (size_t n = 0; n < bodies->count; n++) {
        const sk_viscous_body_face *face = &bodies->faces[n];
        const int d = face->axis, e = (d + 1) % 3, g = (d + 2) % 3;
        if (face->body != body)
            continue;
        const double gain = velocity[d] + spin[e] * (double)face->arm[g] - spin[g] * (double)face->arm[e];
        energy += unit * (double)face->mass * gain * gain;
    }
    const double part = energy > work ? work / energy : 1.0;
    for (int d = 0; d < 3; d++) {
        of->drag[d] *= part;
        of->angular_drag[d] *= part;
    }
}

void SK_DIM(sk_viscous_drag_bodies)(sk_step *step, const sk_viscous_bodies *bodies, const double *gains)
{
    const double unit = step->density * pow(step->grid.cell_size, SELKIE_DIM);
    for (size_t n = 0; n < bodies->count; n++) {
        const sk_viscous_body_face *face = &bodies->faces[n];
        const int d = face->axis, e = (d + 1) % 3, g = (d + 2) % 3;
        sk_rigid_body *body = &step->rigid->bodies[face->body];
        const double gain = unit * (double)face->mass * gains[n];
        body->drag[d] += gain;
        body->angular_drag[e] += (double)face->arm[g] * gain;
        body->angular_drag[g] -= (double)face->arm[e] * gain;
    }
    for (int b = 0; bodies->count && b < step->rigid->body_count; b++)
        if (takes_part(step->rigid, b))
            limit_drag(step, bodies, b);
}

selkie_code SK_DIM(sk_viscous_take_bodies)(sk_step *step, const sk_viscous_fields *f, const sk_viscous_bodies *bodies,
                                           selkie_error *error)
{
    double *gains;
    if (!bodies->count)
        return SELKIE_OK;
    SK_TRY(sk_step_scratch(step, bodies->count * sizeof *gains, "viscosity", (void **)&gains, error));
    for (size_t n = 0; n < bodies->count; n++)
        gains[n] = leave_body_face(step, f, &bodies->faces[n]);
    SK_DIM(sk_viscous_drag_bodies)(step, bodies, gains);
    return SELKIE_OK;
}

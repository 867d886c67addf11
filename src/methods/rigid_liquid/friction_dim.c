/* Coulomb's friction of liquid on rigid bodies (liquid_friction), after the pressure solve.
 *
 * The pressure of a cell pushes a body with q times the area of the body in the cell: the flux of its modes. Friction
 * is at most mu times that, along the surface. It acts on the layer at the surface, a cell deep. What the liquid loses
 * the body gains.
 *
 * A light body follows the liquid within the step, so that friction must not stop the liquid at the body's old
 * velocity. With lambda_f = s_f t_f the impulse of face f, s_f = min(m_f, most_f / |t_f|), and t_f the velocity of the
 * liquid along the body, V solves
 *
 *   V = V_0 + M^-1 sum_f J_f^T s_f t_f(V):
 *
 * the minimum of a convex function, by reweighted linear systems of the body's modes.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "linalg/dense.h"
#include "methods/face_velocity_plain.h"
#include "methods/liquid_plain.h"
#include "methods/rigid_liquid/rigid_liquid.h"
#include "methods/rigid_liquid/rigid_liquid_kernels.h"

enum { MOST_PASSES = 30, MOST_FACES = 4 };
static const double enough_change = 1e-6; /* of the largest speed of the body, where passes end */
/* Masses of faces, in full cells: up to the first further faces take part, below the second a face has none. */
static const float full_mass = 0.9f, least_mass = 1e-3f;

/* A face that rubs on a body. Impulses are per mass of a full cell (m/s). */
typedef struct rubbed_face {
    sk_plain_cell cell;
    int32_t body, axis;
    int32_t next, next_of_body;  /* further records of this face, and of this body; -1 = none */
    float all, mass;             /* of its liquid, and the part of it that this body may stop */
    float most;                  /* impulse of friction */
    float area[3];               /* sum over the cells that push, along the normal into the liquid */
    double modes[6];             /* velocity of the body's modes across the face, rotations in rad/s */
    double along[SELKIE_DIM][6]; /* and along the surface, each component */
    double velocity[SELKIE_DIM]; /* m/s  of the liquid along the surface */
    double start;                /* m/s  and of the liquid along the body before friction, across the face */
} rubbed_face;

typedef struct rubbed_faces {
    rubbed_face *list;
    size_t count;
    int32_t *first[SELKIE_DIM]; /* [cells] newest record of each face + 1, 0 = none */
    int32_t *of_body;           /* [bodies] newest record of each body + 1 */
} rubbed_faces;

static double friction_of(const sk_step *step, int body)
{
    const selkie_body_def *def = step->rigid->bodies[body].def;
    return def->surface == SELKIE_WALL_FREE_SLIP ? def->liquid_friction : 0.0;
}

/* The mass of the particles at a face: what they take of its change. 0 = no part of it is open. */
static float mass_at(const sk_step *step, sk_plain_cell cell, int d)
{
    const size_t here = sk_plain_index(cell);
    const float velocity = step->grid.fields[step->end_velocity + d][here],
                mass = step->grid.fields[SK_FIELD_FACE_DENSITY_X + d][here] / lightness_at(step, cell, d);
    return velocity == velocity && open_fraction_at(step, cell, d) > 0.0f && mass > least_mass ? mass : 0.0f;
}

/* The record of a face and a body, a new one if there is none. */
static rubbed_face *record_of(const sk_step *step, rubbed_faces *faces, sk_plain_cell cell, int d, int body)
{
    const size_t place = sk_plain_index(cell);
    int32_t n = faces->first[d][place] - 1;
    while (n >= 0 && faces->list[n].body != body)
        n = faces->list[n].next;
    if (n >= 0)
        return &faces->list[n];

    rubbed_face *face = &faces->list[faces->count++];
    *face = (rubbed_face){.cell = cell,
                          .body = body,
                          .axis = d,
                          .next = faces->first[d][place] - 1,
                          .next_of_body = faces->of_body[body] - 1};
    faces->first[d][place] = faces->of_body[body] = (int32_t)faces->count;
    face->all = mass_at(step, cell, d);
    return face;
}

/* A face of a cell with those before and behind it along the surface's normal, up to the mass of a cell. The layer of a
 * cell at the surface may be cut anywhere: it moves as one. */
typedef struct face_column {
    sk_plain_cell cells[MOST_FACES];
    float mass[MOST_FACES], sum;
    int count;
} face_column;

static face_column column_at(const sk_step *step, sk_plain_cell cell, int d, const float area[3])
{
    face_column column = {.count = 0, .sum = 0.0f};
    int along = 0;
    for (int e = 1; e < SELKIE_DIM; e++)
        along = fabsf(area[e]) > fabsf(area[along]) ? e : along;
    const int out = area[along] > 0.0f ? 1 : -1;
    cell = sk_plain_next(&step->grid, cell, along, -out);
    while (column.count < MOST_FACES && column.sum < full_mass) {
        column.cells[column.count] = cell;
        column.mass[column.count] = mass_at(step, cell, d);
        if (column.sum > 0.0f && column.mass[column.count] == 0.0f)
            break; /* what lies behind a closed or empty face is another layer */
        column.sum += column.mass[column.count++];
        cell = sk_plain_next(&step->grid, cell, along, out);
    }
    return column;
}

/* Hands friction to the faces of a column. */
static void hand_out(const sk_step *step, rubbed_faces *faces, const face_column *column, int d, int body, float most,
                     const float area[3])
{
    for (int n = 0; n < column->count; n++) {
        const float part = column->mass[n] / column->sum;
        if (!(column->mass[n] > 0.0f))
            continue;
        rubbed_face *face = record_of(step, faces, column->cells[n], d, body);
        face->most += part * most;
        for (int e = 0; e < SELKIE_DIM; e++)
            face->area[e] += part * area[e];
    }
}

/* The friction of one cell on a body, and the faces that take it. */
typedef struct cell_friction {
    float most; /* 0 = none */
    float area[3];
    face_column columns[SELKIE_DIM][2]; /* of the lower and the upper face across each axis */
} cell_friction;

/* A body that is pulled does not rub. */
static void find_friction(const sk_step *step, const sk_poisson_mode_entry *entry, cell_friction *found)
{
    const sk_grid *grid = &step->grid;
    const float mu = (float)friction_of(step, entry->body);
    const size_t here = (size_t)entry->cell;
    const sk_plain_cell cell = {(int)(here / SK_BLOCK_CELLS), (int)(here % SK_BLOCK_CELLS)};
    float area[3] = {0.0f, 0.0f, 0.0f}, length2 = 0.0f, normal = 0.0f;
    for (int d = 0; mu > 0.0f && d < SELKIE_DIM; d++) {
        const float push = grid->fields[SK_FIELD_POTENTIAL][here] +
                           (step->viscous_push ? grid->fields[step->viscous_push + d][here] : 0.0f);
        area[d] = -entry->flux[d];
        length2 += area[d] * area[d];
        normal += area[d] * area[d] * push;
    }
    found->most = 0.0f;
    if (!(normal > 0.0f) || !(length2 > 1e-6f))
        return;
    found->most = mu * normal / sqrtf(length2);
    memcpy(found->area, area, sizeof area);
    for (int d = 0; d < SELKIE_DIM; d++) {
        found->columns[d][0] = column_at(step, cell, d, area);
        found->columns[d][1] = column_at(step, sk_plain_next(grid, cell, d, 1), d, area);
    }
}

/* Half of it on each of two opposite faces, all of it where there is one alone. */
static void add_cell(const sk_step *step, rubbed_faces *faces, int body, const cell_friction *cell)
{
    for (int d = 0; cell->most > 0.0f && d < SELKIE_DIM; d++)
        for (int side = 0; side < 2; side++)
            hand_out(step, faces, &cell->columns[d][side], d, body,
                     cell->columns[d][1 - side].sum > 0.0f ? 0.5f * cell->most : cell->most, cell->area);
}

/* Threads find the columns of some cells; their faces are listed in order. */
static selkie_code add_cells(sk_step *step, const sk_poisson_modes *modes, rubbed_faces *faces, selkie_error *error)
{
    enum { BATCH = 512 };
    cell_friction *batch;
    SK_TRY(sk_step_scratch(step, BATCH * sizeof *batch, "bodies", (void **)&batch, error));
    for (size_t first = 0; first < modes->entry_count; first += BATCH) {
        const int count = modes->entry_count - first < BATCH ? (int)(modes->entry_count - first) : BATCH;
#pragma omp parallel for num_threads(step->threads) schedule(static)
        for (int n = 0; n < count; n++)
            find_friction(step, &modes->entries[first + (size_t)n], &batch[n]);
        for (int n = 0; n < count; n++)
            add_cell(step, faces, modes->entries[first + (size_t)n].body, &batch[n]);
    }
    return SELKIE_OK;
}

/* Velocities of the body's modes at a face. */
static void find_modes(const sk_step *step, rubbed_face *face)
{
    const sk_grid *grid = &step->grid;
    const double *centre = step->rigid->states[face->body].position;
    double length2 = 0.0, normal[3] = {0.0, 0.0, 0.0}, arm[3] = {0.0, 0.0, 0.0}, all[SELKIE_DIM][6] = {{0}};
    int at[3];
    sk_plain_coordinates(grid, face->cell, at);
    for (int e = 0; e < SELKIE_DIM; e++) {
        arm[e] = grid->corner[e] + (at[e] + (e == face->axis ? 0.0 : 0.5)) * grid->cell_size - centre[e];
        length2 += (double)(face->area[e] * face->area[e]);
    }
    for (int e = 0; e < SELKIE_DIM; e++) {
        float modes[6] = {0};
        normal[e] = length2 > 0.0 ? (double)face->area[e] / sqrt(length2) : 0.0;
        face->area[e] = (float)normal[e];
        sk_body_add_modes(e, arm, 1.0f, modes);
        for (int k = 0; k < SK_BODY_MODES; k++)
            all[e][k] = (double)modes[k];
    }
    memcpy(face->modes, all[face->axis], sizeof face->modes);
    for (int k = 0; k < SK_BODY_MODES; k++) {
        double through = 0.0;
        for (int e = 0; e < SELKIE_DIM; e++)
            through += normal[e] * all[e][k];
        for (int e = 0; e < SELKIE_DIM; e++)
            face->along[e][k] = all[e][k] - through * normal[e];
    }
}

/* Bodies share the liquid of a face: together they stop all of it, not each of them. */
static void share_masses(const sk_step *step, const rubbed_faces *faces)
{
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t n = 0; n < faces->count; n++) {
        rubbed_face *face = &faces->list[n];
        int count = 0;
        for (int32_t m = faces->first[face->axis][sk_plain_index(face->cell)] - 1; m >= 0; m = faces->list[m].next)
            count++;
        face->mass = face->all / (float)count;
    }
}

/* Lists the faces that rub, from the cells that push. */
static selkie_code list_faces(sk_step *step, const sk_poisson_modes *modes, rubbed_faces *faces, selkie_error *error)
{
    const size_t values = (size_t)step->grid.block_count * SK_BLOCK_CELLS, bodies = (size_t)step->rigid->body_count;
    size_t cells = 0;
    for (size_t n = 0; n < modes->entry_count; n++)
        cells += friction_of(step, modes->entries[n].body) > 0.0;
    faces->count = 0;
    SK_TRY(sk_step_scratch(step, (cells * 2 * SELKIE_DIM * MOST_FACES + 1) * sizeof *faces->list, "bodies",
                           (void **)&faces->list, error));
    SK_TRY(sk_step_scratch(step, bodies * sizeof *faces->of_body, "bodies", (void **)&faces->of_body, error));
    memset(faces->of_body, 0, bodies * sizeof *faces->of_body);
    for (int d = 0; d < SELKIE_DIM; d++) {
        SK_TRY(sk_step_scratch(step, values * sizeof *faces->first[d], "bodies", (void **)&faces->first[d], error));
        memset(faces->first[d], 0, values * sizeof *faces->first[d]);
    }
    SK_TRY(add_cells(step, modes, faces, error));
    share_masses(step, faces);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t n = 0; n < faces->count; n++)
        find_modes(step, &faces->list[n]);
    return SELKIE_OK;
}

/* Reads the velocity of the liquid along the bodies, before any face changes. */
static void read_velocities(const sk_step *step, int field, const rubbed_faces *faces)
{
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (size_t n = 0; n < faces->count; n++) {
        rubbed_face *face = &faces->list[n];
        double through = 0.0;
        for (int e = 0; e < SELKIE_DIM; e++) {
            face->velocity[e] = (double)velocity_at_face(&step->grid, field, face->cell, face->axis, e);
            through += face->velocity[e] * (double)face->area[e];
        }
        for (int e = 0; e < SELKIE_DIM; e++)
            face->velocity[e] -= through * (double)face->area[e];
    }
}

/* The velocity of the liquid along a body that moves with V: its component across the face. `grip` receives s_f, for
 * `part` times the friction of the pressure solve. */
static double slip_at(const rubbed_face *face, double part, const double body[6], double *grip)
{
    const double most = part * (double)face->most, mass = (double)face->mass;
    double slip[SELKIE_DIM], speed2 = 0.0;
    for (int e = 0; e < SELKIE_DIM; e++) {
        slip[e] = face->velocity[e];
        for (int k = 0; k < SK_BODY_MODES; k++)
            slip[e] -= face->along[e][k] * body[k];
        speed2 += slip[e] * slip[e];
    }
    *grip = mass * sqrt(speed2) > most ? most / sqrt(speed2) : mass;
    return slip[face->axis];
}

/* `gain` = sum J^T s t(V_0) with s of the velocity `now`, and `fall`, how it falls with V. */
static void sum_faces(const rubbed_faces *faces, int body, double part, const double now[6], double gain[6],
                      double fall[6][6])
{
    memset(gain, 0, 6 * sizeof *gain);
    memset(fall, 0, 6 * sizeof *fall);
    for (int32_t n = faces->of_body[body] - 1; n >= 0; n = faces->list[n].next_of_body) {
        const rubbed_face *face = &faces->list[n];
        double grip;
        slip_at(face, part, now, &grip);
        for (int k = 0; k < SK_BODY_MODES; k++) {
            gain[k] += face->modes[k] * grip * face->start;
            for (int l = 0; l < SK_BODY_MODES; l++)
                fall[k][l] += face->modes[k] * grip * face->along[face->axis][l];
        }
    }
}

/* Response of a body's modes, rotations in rad/s, to impulses per mass of a full cell. */
static void response_of(const sk_step *step, int body, double response[6][6])
{
    const double unit = step->density * pow(step->grid.cell_size, SELKIE_DIM);
    double inverse_mass[3], inverse_inertia[9];
    memset(response, 0, 6 * sizeof *response);
    sk_rigid_response(step->rigid, body, inverse_mass, inverse_inertia);
    for (int d = 0; d < SELKIE_DIM; d++)
        response[d][d] = unit * inverse_mass[d];
    for (int i = 0; i < SK_BODY_MODES - SELKIE_DIM; i++)
        for (int j = 0; j < SK_BODY_MODES - SELKIE_DIM; j++)
            response[SELKIE_DIM + i][SELKIE_DIM + j] = unit * inverse_inertia[SELKIE_DIM == 3 ? 3 * i + j : 8];
}

/* The velocity of a body after friction, from the one before it. */
static void find_velocity(const sk_step *step, const rubbed_faces *faces, int body, double part, const double start[6],
                          double now[6])
{
    enum { N = SK_BODY_MODES };
    double response[6][6], gain[6], fall[6][6], change = 1.0, speed = 0.0;
    response_of(step, body, response);
    memcpy(now, start, 6 * sizeof *now);
    for (int32_t n = faces->of_body[body] - 1; n >= 0; n = faces->list[n].next_of_body) {
        double unused;
        faces->list[n].start = slip_at(&faces->list[n], part, start, &unused);
    }
    for (int pass = 0; pass < MOST_PASSES && change > enough_change * speed; pass++) {
        double matrix[N * N], x[N], scratch[N];
        int rows[N];
        sum_faces(faces, body, part, now, gain, fall);
        for (int i = 0; i < N; i++) {
            x[i] = 0.0;
            for (int j = 0; j < N; j++) {
                x[i] += response[i][j] * gain[j];
                matrix[N * i + j] = i == j ? 1.0 : 0.0;
                for (int k = 0; k < N; k++)
                    matrix[N * i + j] += response[i][k] * fall[k][j];
            }
        }
        if (!sk_lu_factor(N, matrix, rows))
            return;
        sk_lu_solve(N, matrix, rows, x, scratch);
        change = speed = 0.0;
        for (int i = 0; i < N; i++) {
            change = fmax(change, fabs(start[i] + x[i] - now[i]));
            speed = fmax(speed, fabs(start[i] + x[i]));
            now[i] = start[i] + x[i];
        }
    }
}

/* The velocity of a body after `part` of gravity and of the impulses of pressure and viscosity so far. */
static void velocity_before(const sk_step *step, int body, double part, double modes[6])
{
    const sk_rigid_state *state = &step->rigid->states[body];
    const sk_rigid_body *of = &step->rigid->bodies[body];
    const double share = part / (1.0 + step->reflection);
    double inverse_mass[3], inverse_inertia[9], spin[3];
    memset(modes, 0, 6 * sizeof *modes);
    sk_rigid_response(step->rigid, body, inverse_mass, inverse_inertia);
    for (int d = 0; d < 3; d++) {
        spin[d] = state->angular_velocity[d];
        for (int e = 0; e < 3; e++)
            spin[d] += share * inverse_inertia[3 * d + e] * of->angular_impulse[e];
    }
    for (int d = 0; d < SELKIE_DIM; d++)
        modes[d] = state->velocity[d] + share * inverse_mass[d] * of->impulse[d] +
                   (inverse_mass[d] > 0.0 ? part * sk_step_kick(step) * step->scene->gravity[d] : 0.0);
    for (int k = SELKIE_DIM; k < SK_BODY_MODES; k++)
        modes[k] = spin[SELKIE_DIM == 3 ? k - 3 : 2];
}

/* Rubs a velocity on the grid. The field that the particles take also gives the impulses and FLIP's change. `after` has
 * room for the velocities of the bodies. They are found at once, and then act in order: bodies share faces. */
static void rub(sk_step *step, const rubbed_faces *faces, int field, double part, int counts, double (*after)[6])
{
    const double unit = step->density * pow(step->grid.cell_size, SELKIE_DIM);
    read_velocities(step, field, faces);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (int b = 0; b < step->rigid->body_count; b++) {
        double start[6];
        if (!faces->of_body[b])
            continue;
        velocity_before(step, b, part, start);
        find_velocity(step, faces, b, part, start, after[b]);
    }
    for (int b = 0; b < step->rigid->body_count; b++) {
        sk_rigid_body *body = &step->rigid->bodies[b];
        for (int32_t n = faces->of_body[b] - 1; n >= 0; n = faces->list[n].next_of_body) {
            const rubbed_face *face = &faces->list[n];
            const size_t place = sk_plain_index(face->cell);
            double grip;
            const double slip = slip_at(face, part, after[b], &grip), impulse = grip * slip;
            const float change = (float)(-impulse / (double)face->all);
            step->grid.fields[field + face->axis][place] += change;
            if (!counts)
                continue;
            step->grid.fields[SK_FIELD_CHANGE_X + face->axis][place] += change;
            for (int d = 0; d < SELKIE_DIM; d++)
                body->impulse[d] += unit * impulse * face->modes[d];
            for (int k = SELKIE_DIM; k < SK_BODY_MODES; k++)
                body->angular_impulse[SELKIE_DIM == 3 ? k - 3 : 2] += unit * impulse * face->modes[k];
        }
    }
}

selkie_code SK_DIM(sk_rigid_liquid_rub)(sk_step *step, const sk_poisson_modes *modes, selkie_error *error)
{
    const int reflects = step->end_velocity != SK_FIELD_VELOCITY_X;
    rubbed_faces faces;
    double(*after)[6];
    int rubs = 0;
    for (int b = 0; b < step->rigid->body_count; b++)
        rubs |= friction_of(step, b) > 0.0;
    if (!rubs)
        return SELKIE_OK;
    SK_TRY(list_faces(step, modes, &faces, error));
    SK_TRY(sk_step_scratch(step, (size_t)step->rigid->body_count * sizeof *after, "bodies", (void **)&after, error));
    rub(step, &faces, SK_FIELD_VELOCITY_X, 1.0, !reflects, after);
    if (reflects)
        rub(step, &faces, step->end_velocity, 1.0 + step->reflection, 1, after);
    return SELKIE_OK;
}

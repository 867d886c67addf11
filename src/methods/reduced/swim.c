#include "methods/reduced/swim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geom/outline.h"
#include "methods/reduced/enrich.h"
#include "methods/reduced/reduced.h"
#include "rigid/rigid.h"

#define PI 3.14159265358979323846
static const double sheet_tolerance = 1e-5; /* of the largest strength */

/* --- Life --- */

static selkie_code make_panels(const sk_step *step, int b, sk_panels *panels, selkie_error *error)
{
    const sk_rigid_body *body = &step->rigid->bodies[b];
    const double wanted = step->scene->reduced.panel_length;
    sk_outline outline;
    char what[64];
    snprintf(what, sizeof what, "bodies[%d].shape", b);
    SK_TRY(sk_outline_create(body->shape, wanted > 0.0 ? wanted : step->grid.cell_size, what, step->memory, &outline,
                             error));
    selkie_code code = sk_panels_make(panels, outline.count, (const double(*)[2])outline.corners, body->center, what,
                                      step->memory, error);
    sk_outline_free(&outline);
    return code;
}

/* The engine's contacts move the liquid around a body along with it. */
static selkie_code make_coupling(sk_swim *swim, const sk_step *step, const sk_reduced_box *box, selkie_error *error)
{
    const int count = step->rigid->body_count;
    const int closed[2] = {box->family[0] == SK_REDUCED_CLOSED, box->family[1] == SK_REDUCED_CLOSED};
    sk_panels *panels = sk_allocate_zeroed(step->memory, ((size_t)count + 1) * sizeof *panels);
    if (!panels)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", count);
    swim->coupling = (sk_coupling){.memory = step->memory, .panels = panels, .body_count = count};
    for (int b = 0; b < count; b++)
        SK_TRY(make_panels(step, b, &panels[b], error));
    SK_TRY(sk_coupling_make(&swim->coupling, count, panels, box->size, closed, step->memory, error));
    for (int b = 0; b < count; b++)
        sk_rigid_add_mass(step->rigid, b, 0.5 * step->density * (panels[b].added[0][0] + panels[b].added[1][1]),
                          step->density * panels[b].added[2][2]);
    return SELKIE_OK;
}

static selkie_code make_tree(sk_swim *swim, const sk_step *step, selkie_error *error)
{
    const sk_coupling *c = &swim->coupling;
    double length = 0.0;
    if (step->scene->reduced.feedback_by == SELKIE_FEEDBACK_PANELS)
        return SELKIE_OK;
    if (!(swim->tree = sk_allocate_zeroed(step->memory, sizeof *swim->tree)))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for a quadtree");
    for (int b = 0; b < c->body_count; b++)
        length += c->panels[b].perimeter / c->count;
    sk_quadtree_make(swim->tree, swim->fine.cells, swim->fine.size, length);
    return SELKIE_OK;
}

selkie_code sk_swim_make(sk_swim *swim, const sk_step *step, const sk_reduced_spectrum *s, selkie_error *error)
{
    sk_reduced_box fine = sk_reduced_box_of(step);
    SK_TRY(make_coupling(swim, step, &fine, error));
    fine.modes = sk_reduced_fine_modes(&fine);
    fine.extra = 0;
    SK_TRY(sk_reduced_spectrum_make(&swim->fine, &fine, step->memory, error));

    const int count = swim->coupling.count;
    SK_TRY(sk_mode_points_make(&swim->points, s, 2 * count, error));
    SK_TRY(sk_mode_points_make(&swim->shown, &swim->fine, 2 * count, error));
    SK_TRY(sk_mode_points_make(&swim->moved, s, count, error));
    const size_t n = (size_t)count;
    swim->sheet = sk_allocate_zeroed(step->memory, (size_t)fine.modes * sizeof(double));
    swim->stream = sk_allocate_zeroed(step->memory, 2 * n * sizeof(double));
    swim->later = sk_allocate_zeroed(step->memory, n * sizeof(double));
    swim->circulation = sk_allocate_zeroed(step->memory, 2 * n * sizeof(double));
    swim->flow = sk_allocate_zeroed(step->memory, (size_t)swim->coupling.body_count * sizeof *swim->flow);
    if (!swim->sheet || !swim->stream || !swim->later || !swim->circulation || !swim->flow)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d panels", count);
    SK_TRY(make_tree(swim, step, error));
    return sk_swim_near_make(swim, step, error);
}

void sk_swim_free(sk_swim *swim, sk_memory *memory)
{
    sk_swim_near_free(swim, memory);
    sk_coupling_free(&swim->coupling);
    sk_reduced_spectrum_free(&swim->fine);
    sk_mode_points_free(&swim->points);
    sk_mode_points_free(&swim->shown);
    sk_mode_points_free(&swim->moved);
    sk_release(memory, swim->tree);
    sk_release(memory, swim->sheet);
    sk_release(memory, swim->stream);
    sk_release(memory, swim->later);
    sk_release(memory, swim->circulation);
    sk_release(memory, swim->flow);
}

/* --- Input errors --- */

/* Does a corner of one body lie in another one? */
static int overlap(const sk_step *step, const sk_outline *outline, int b)
{
    for (int i = 0; i < outline->count; i++)
        if (sk_shape_inside(step->rigid->bodies[b].shape,
                            (const double[3]){outline->corners[i][0], outline->corners[i][1], 0.0}))
            return 1;
    return 0;
}

static selkie_code check_outline(const sk_step *step, const sk_reduced_box *box, int b, const sk_outline *outline,
                                 selkie_error *error)
{
    for (int i = 0; i < outline->count; i++)
        for (int d = 0; d < 2; d++) {
            const double x = outline->corners[i][d];
            if (box->family[d] == SK_REDUCED_CLOSED && !(x > 0.0 && x < box->size[d]))
                return sk_fail(error, SELKIE_ERROR_INPUT,
                               "bodies[%d].shape: reaches out of the domain along %c; it must lie inside", b, "xy"[d]);
        }
    for (int other = 0; other < step->rigid->body_count; other++)
        if (other != b && overlap(step, outline, other))
            return sk_fail(error, SELKIE_ERROR_INPUT, "bodies[%d].shape: overlaps bodies[%d]; they must be apart",
                           b > other ? b : other, b > other ? other : b);
    return SELKIE_OK;
}

selkie_code sk_swim_check(const sk_step *step, const sk_reduced_box *box, selkie_error *error)
{
    for (int b = 0; step->rigid && b < step->rigid->body_count; b++) {
        sk_outline outline;
        char what[64];
        snprintf(what, sizeof what, "bodies[%d].shape", b);
        SK_TRY(
            sk_outline_create(step->rigid->bodies[b].shape, step->grid.cell_size, what, step->memory, &outline, error));
        const selkie_code code = check_outline(step, box, b, &outline, error);
        sk_outline_free(&outline);
        SK_TRY(code);
    }
    return SELKIE_OK;
}

/* --- Sheets --- */

static double angle_of(const sk_rigid_state *state)
{
    return 2.0 * atan2(state->quaternion[3], state->quaternion[0]);
}

static void place_bodies(sk_swim *swim, const sk_step *step, const sk_reduced_spectrum *s)
{
    sk_coupling *c = &swim->coupling;
    for (int b = 0; b < c->body_count; b++)
        sk_coupling_place(c, b, step->rigid->states[b].position, angle_of(&step->rigid->states[b]));
#pragma omp parallel for num_threads(step->threads) schedule(static) if (c->count > 64 && step->threads > 1)
    for (int n = 0; n < c->count; n++) {
        sk_mode_points_place(&swim->points, s, n, c->middle[n]);
        sk_mode_points_place(&swim->points, s, c->count + n, c->corner[n]);
    }
}

void sk_swim_solve(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, const double *r)
{
    sk_coupling *c = &swim->coupling;
    place_bodies(swim, step, s);
    sk_coupling_assemble(c, step->threads);
    sk_mode_points_stream(&swim->points, s, r, 0, c->count, swim->stream);
    for (int b = 0; b < c->body_count; b++) {
        const sk_rigid_state *state = &step->rigid->states[b];
        const double *v = state->velocity, spin = state->angular_velocity[2];
        for (int n = c->first[b]; n < c->first[b + 1]; n++) {
            const double x = c->middle[n][0] - state->position[0], y = c->middle[n][1] - state->position[1];
            c->wanted[n] = v[0] * y - v[1] * x - 0.5 * spin * (x * x + y * y) - swim->stream[n];
        }
    }
    sk_coupling_solve(c, sheet_tolerance);
}

/* The circulation of the sheets at middles and corners, by Simpson's rule over each panel; `weight` for each body, NULL
 * = 1. */
static void spread_circulation(sk_swim *swim, const double *weight)
{
    const sk_coupling *c = &swim->coupling;
    memset(swim->circulation, 0, 2 * (size_t)c->count * sizeof(double));
    for (int b = 0; b < c->body_count; b++)
        for (int n = c->first[b]; n < c->first[b + 1]; n++) {
            const int next = n + 1 < c->first[b + 1] ? n + 1 : c->first[b];
            const double part = (weight ? weight[b] : 1.0) * c->circulation[n] / 6.0;
            swim->circulation[n] += 4.0 * part;
            swim->circulation[c->count + n] += part;
            swim->circulation[c->count + next] += part;
        }
}

void sk_swim_spread(sk_swim *swim)
{
    spread_circulation(swim, NULL);
}

/* The source's way: velocities on the cells, which are projected. */
static void feed_back_by_tree(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, const double *weight,
                              double *r)
{
    const selkie_reduced_def *def = &step->scene->reduced;
    double *const field[2] = {s->grid[3], s->grid[4]};
    for (int d = 0; d < 2; d++)
        memset(field[d], 0, (size_t)s->cells[0] * (size_t)s->cells[1] * sizeof(double));
    sk_quadtree_add(swim->tree, &swim->coupling, weight,
                    def->feedback_by == SELKIE_FEEDBACK_GRID ? -1.0 : def->feedback_error, field);
    sk_reduced_project(s, (const double *const[2]){field[0], field[1]}, r, step->threads);
}

void sk_swim_feed_back(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, double *r)
{
    const sk_coupling *c = &swim->coupling;
    double *weight = c->work;
    for (int b = 0; b < c->body_count; b++) {
        const double perimeter = c->panels[b].perimeter;
        double slip = 0.0; /* m2/s */
        for (int n = c->first[b]; n < c->first[b + 1]; n++)
            slip += fabs(c->circulation[n]);
        weight[b] = -expm1(-step->dt * step->scene->reduced.feedback * slip * PI / (perimeter * perimeter));
    }
    if (swim->tree) {
        feed_back_by_tree(swim, step, s, weight, r);
        return;
    }
    spread_circulation(swim, weight);
    sk_mode_points_add(&swim->points, s, swim->circulation, r);
}

/* --- Forces --- */

/* Mean velocity (m/s) over a body of a stream function given at its middles. */
static void mean_velocity(const sk_coupling *c, int b, const double *stream, double velocity[2])
{
    const sk_panels *p = &c->panels[b];
    const double cosine = cos(c->place[b][2]), sine = sin(c->place[b][2]);
    double sum[2] = {0.0, 0.0};
    for (int i = 0; i < p->count; i++) {
        const double part = stream[i] * p->length[i];
        sum[0] -= part * p->tangent[i][0];
        sum[1] -= part * p->tangent[i][1];
    }
    velocity[0] = (cosine * sum[0] - sine * sum[1]) / p->area;
    velocity[1] = (sine * sum[0] + cosine * sum[1]) / p->area;
}

void sk_swim_remember(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, const double *r)
{
    const sk_coupling *c = &swim->coupling;
    (void)step;
    sk_mode_points_stream(&swim->points, s, r, 0, 2 * c->count, swim->stream);
    for (int b = 0; b < c->body_count; b++)
        mean_velocity(c, b, swim->stream + c->first[b], swim->flow[b]);
}

/* The unknowns of a body: two velocities (m/s) and the spin (rad/s). */
typedef struct body_system {
    double mass[3][3];     /* kg, kg m, kg m2: with the added mass */
    double momentum[3];    /* of the known forces and the velocity before */
    double before[3];      /* velocity before the step */
    double free_axis[3];   /* 0 = held */
    double cosine, sine;   /* of its angle */
    double inertial[3][3]; /* added mass alone */
} body_system;

/* The added mass in the axes of the box. */
static void turn_added_mass(const sk_panels *p, double density, body_system *system)
{
    const double c = system->cosine, s = system->sine, rotation[3][3] = {{c, -s, 0.0}, {s, c, 0.0}, {0.0, 0.0, 1.0}};
    double half[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            half[i][j] = 0.0;
            for (int k = 0; k < 3; k++)
                half[i][j] += rotation[i][k] * p->added[k][j];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            system->inertial[i][j] = 0.0;
            for (int k = 0; k < 3; k++)
                system->inertial[i][j] += density * half[i][k] * rotation[j][k];
        }
}

/* A stream turns a slender body broadside on (Munk's torque). The force that belongs to it is the suction of edges,
 * which liquid does not have where it separates; with it joined bodies would swim tail first. A slender body would
 * swing about the stream faster than a step resolves; the stiffness of the torque counts as inertia. */
static void add_turning(body_system *system, const double flow[2], double dt)
{
    const double(*a)[3] = (const double(*)[3])system->inertial;
    const double v[2] = {system->before[0] - flow[0], system->before[1] - flow[1]}, spin = system->before[2];
    const double p[2] = {a[0][0] * v[0] + a[0][1] * v[1], a[1][0] * v[0] + a[1][1] * v[1]};
    system->momentum[2] -= dt * (v[0] * p[1] - v[1] * p[0]);
    const double stiffness = hypot(a[0][0] - a[1][1], 2.0 * a[0][1]) * (v[0] * v[0] + v[1] * v[1]); /* N m a radian */
    system->mass[2][2] += dt * dt * stiffness;
    system->momentum[2] += dt * dt * stiffness * spin;
}

/* Solves the 3x3 system over the free axes. */
static void solve_free(const double matrix[3][3], const double right[3], const double held[3],
                       const double free_axis[3], double x[3])
{
    double m[3][4];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            m[i][j] = free_axis[i] != 0.0 ? matrix[i][j] : i == j;
        m[i][3] = free_axis[i] != 0.0 ? right[i] : held[i];
    }
    for (int c = 0; c < 3; c++)
        for (int i = c + 1; i < 3; i++) {
            const double factor = m[i][c] / m[c][c];
            for (int j = c; j < 4; j++)
                m[i][j] -= factor * m[c][j];
        }
    for (int i = 2; i >= 0; i--) {
        double sum = m[i][3];
        for (int j = i + 1; j < 3; j++)
            sum -= m[i][j] * x[j];
        x[i] = sum / m[i][i];
    }
}

/* Normal velocity (m/s) of the liquid without the body's own sheet at each panel: the flux of the modes between the
 * corners, and the slope of what other bodies and images add at the middles. */
static void incident_velocity(const sk_swim *swim, int b, double *normal)
{
    const sk_coupling *c = &swim->coupling;
    const sk_panels *p = &c->panels[b];
    const double *corner = swim->stream + c->count + c->first[b], *others = c->others + c->first[b];
    for (int i = 0; i < p->count; i++) {
        const int next = i + 1 < p->count ? i + 1 : 0, last = i ? i - 1 : p->count - 1;
        const double way = 0.5 * (p->length[last] + p->length[next]) + p->length[i];
        normal[i] = (corner[next] - corner[i]) / p->length[i] + (others[next] - others[last]) / way;
    }
}

/* Drag of a panel is density/2 |w| w, with w at the end of the step: a few rounds with |w| of the round before.
 * Returns the force (N, N m) in `drag`. */
static void solve_body(const body_system *system, const sk_panels *p, const double *normal, double density, double dt,
                       double velocity[3], double drag[3])
{
    enum { ROUNDS = 4 };
    memcpy(velocity, system->before, 3 * sizeof *velocity);
    for (int round = 0; round <= ROUNDS; round++) {
        double matrix[3][3], right[3];
        memcpy(matrix, system->mass, sizeof matrix);
        memcpy(right, system->momentum, sizeof right);
        memset(drag, 0, 3 * sizeof *drag);
        for (int i = 0; i < p->count; i++) {
            const double tx = system->cosine * p->tangent[i][0] - system->sine * p->tangent[i][1],
                         ty = system->sine * p->tangent[i][0] + system->cosine * p->tangent[i][1];
            const double way[3] = {ty, -tx, p->arm[i]};
            const double past = normal[i] - (way[0] * velocity[0] + way[1] * velocity[1] + way[2] * velocity[2]);
            const double strength = 0.5 * density * p->length[i] * fabs(past);
            for (int a = 0; a < 3; a++) {
                drag[a] += strength * past * way[a];
                right[a] += dt * strength * normal[i] * way[a];
                for (int d = 0; d < 3; d++)
                    matrix[a][d] += dt * strength * way[a] * way[d];
            }
        }
        if (round < ROUNDS)
            solve_free((const double(*)[3])matrix, right, system->before, system->free_axis, velocity);
    }
}

/* The system of a body. `change` is how much faster the liquid around it has become (m/s), without its own sheet. */
static void fill_system(const sk_step *step, const sk_swim *swim, int b, const double change[2], body_system *system)
{
    const sk_rigid_body *body = &step->rigid->bodies[b];
    const sk_rigid_state *state = &step->rigid->states[b];
    const double displaced = step->density * body->volume, angle = swim->coupling.place[b][2];
    double after[3], spin[3];
    memset(system, 0, sizeof *system);
    system->cosine = cos(angle);
    system->sine = sin(angle);
    turn_added_mass(&swim->coupling.panels[b], step->density, system);
    sk_rigid_predict(step->rigid, b, step->dt, after, spin);
    for (int a = 0; a < 3; a++) {
        system->before[a] = a < 2 ? state->velocity[a] : state->angular_velocity[2];
        system->free_axis[a] = a < 2 ? body->def->move[a] : body->def->turn[2];
        for (int d = 0; d < 3; d++)
            system->mass[a][d] = system->inertial[a][d] + (a == d ? (a < 2 ? body->mass : body->inertia[8]) : 0.0);
    }
    for (int a = 0; a < 3; a++)
        for (int d = 0; d < 3; d++)
            system->momentum[a] += system->mass[a][d] * system->before[d];
    for (int a = 0; a < 2; a++)
        system->momentum[a] += (body->mass - displaced) * (after[a] - state->velocity[a]) + displaced * change[a];
    for (int a = 0; a < 3; a++)
        system->momentum[a] += system->inertial[a][0] * change[0] + system->inertial[a][1] * change[1];
    add_turning(system, swim->flow[b], step->dt);
}

/* Gives a body the impulse for its new velocity, and returns the liquid's force in `force` (N, N m). */
static void push_body(sk_step *step, int b, const body_system *system, const double velocity[3], const double drag[3],
                      double force[3])
{
    sk_rigid *rigid = step->rigid;
    sk_rigid_body *body = &rigid->bodies[b];
    const sk_rigid_state *state = &rigid->states[b];
    double after[3], spin[3];
    sk_rigid_predict(rigid, b, step->dt, after, spin);
    for (int a = 0; a < 2; a++) {
        const double gravity = body->mass * (after[a] - state->velocity[a]), gain = velocity[a] - system->before[a];
        body->impulse[a] += (body->mass + body->added_mass) * gain - gravity;
        force[a] = system->free_axis[a] != 0.0 ? (body->mass * gain - gravity) / step->dt
                                               : drag[a] - step->density * body->volume * step->scene->gravity[a];
    }
    const double gain = velocity[2] - system->before[2];
    body->angular_impulse[2] += (body->inertia[8] + body->added_inertia) * gain;
    force[2] = system->free_axis[2] != 0.0 ? body->inertia[8] * gain / step->dt : drag[2];
}

/* Where the liquid around each body is after the step, and its velocity there. */
static void follow_liquid(sk_swim *swim, const sk_step *step, sk_reduced_spectrum *s, const double *r)
{
    const sk_coupling *c = &swim->coupling;
    for (int b = 0; b < c->body_count; b++)
        for (int n = c->first[b]; n < c->first[b + 1]; n++) {
            const double x[2] = {c->middle[n][0] + step->dt * swim->flow[b][0],
                                 c->middle[n][1] + step->dt * swim->flow[b][1]};
            sk_mode_points_place(&swim->moved, s, n, x);
        }
    sk_mode_points_stream(&swim->moved, s, r, 0, c->count, swim->later);
}

selkie_code sk_swim_move(sk_swim *swim, sk_step *step, sk_reduced_spectrum *s, const double *r, selkie_error *error)
{
    sk_coupling *c = &swim->coupling;
    double(*force)[3] = (double(*)[3])(void *)c->dense, *normal = c->work;
    follow_liquid(swim, step, s, r);
    for (int b = 0; b < c->body_count; b++) {
        double later[2], velocity[3], drag[3];
        body_system system;
        mean_velocity(c, b, swim->later + c->first[b], later);
        const double change[2] = {later[0] - swim->flow[b][0], later[1] - swim->flow[b][1]};
        fill_system(step, swim, b, change, &system);
        incident_velocity(swim, b, normal);
        solve_body(&system, &c->panels[b], normal, step->density, step->dt, velocity, drag);
        push_body(step, b, &system, velocity, drag, force[b]);
    }
    SK_TRY(sk_rigid_step(step->rigid, step->time, step->dt, step->dt, error));
    for (int b = 0; b < c->body_count; b++) {
        for (int a = 0; a < 2; a++)
            step->rigid->states[b].force[a] = force[b][a];
        step->rigid->states[b].torque[2] = force[b][2];
    }
    return SELKIE_OK;
}

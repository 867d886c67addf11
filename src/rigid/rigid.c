#include "rigid/rigid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "defs/soft.h"
#include "geom/mass.h"
#include "selkie_config.h"

/* Contacts need short steps, independent of the liquid's. */
static const double longest_substep = 1.0 / 120.0; /* s */
static const double deepest_overlap = 0.04;        /* cells, of bodies that meet in a grid method */
static const double most_of_meetings = 64;         /* substeps */

int sk_rigid_available(void)
{
    return SELKIE_HAVE_ODE;
}

static selkie_code check_states(int count, const sk_rigid_state *states, const char *what, selkie_error *error)
{
    for (int b = 0; b < count; b++) {
        const sk_rigid_state *state = &states[b];
        const double *values = (const double *)state;
        double sum = 0.0, length2 = 0.0;
        for (size_t i = 0; i < sizeof *state / sizeof(double); i++)
            sum += fabs(values[i]);
        for (int i = 0; i < 4; i++)
            length2 += state->quaternion[i] * state->quaternion[i];
        if (!(sum < 1e30) || !(length2 > 0.25) || !(state->last_substep >= 0.0))
            return sk_fail(error, SELKIE_ERROR_DIVERGED,
                           "%s: bodies[%d] is at (%g, %g, %g) m and moves with (%g, %g, %g) m/s", what, b,
                           state->position[0], state->position[1], state->position[2], state->velocity[0],
                           state->velocity[1], state->velocity[2]);
    }
    return SELKIE_OK;
}

selkie_code sk_rigid_restore(sk_rigid *rigid, const sk_rigid_state *states, const char *file, selkie_error *error)
{
    SK_TRY(check_states(rigid->body_count, states, file, error));
    memcpy(rigid->states, states, (size_t)rigid->body_count * sizeof *states);
    return sk_rigid_place(rigid, file, error);
}

selkie_code sk_rigid_place(sk_rigid *rigid, const char *what, selkie_error *error)
{
    SK_TRY(check_states(rigid->body_count, rigid->states, what, error));
    for (int b = 0; b < rigid->body_count; b++) {
        sk_rigid_body *body = &rigid->bodies[b];
        const sk_rigid_state *state = &rigid->states[b];
        sk_rotation_from_quaternion(state->quaternion, body->pose.rotation);
        for (int i = 0; i < 3; i++) {
            body->pose.center[i] = body->center[i];
            body->pose.translation[i] = state->position[i] - body->center[i];
            body->pose.velocity[i] = state->velocity[i];
            body->pose.angular_velocity[i] = state->angular_velocity[i];
        }
    }
    return SELKIE_OK;
}

static selkie_code init_body(sk_rigid *rigid, int b, selkie_error *error)
{
    const selkie_scene *scene = rigid->scene;
    sk_rigid_body *body = &rigid->bodies[b];
    sk_rigid_state *state = &rigid->states[b];
    char what[64];
    double up[3];
    const int number = sk_rigid_shape(scene, b);
    body->def = &scene->bodies[number];
    selkie_scene_up(scene, up);
    snprintf(what, sizeof what, "bodies[%d].shape", number);
    const sk_shape_options options = {.dimension = rigid->dimension,
                                      .up = up,
                                      .folder = scene->folder,
                                      .sample_size = 0.5 * rigid->solids->cell_size,
                                      .what = what,
                                      .memory = rigid->memory};
    SK_TRY(sk_shape_create(&body->def->shape, &options, &body->shape, error));

    /* Mass and inertia. */
    sk_mass_properties mass;
    SK_TRY(sk_shape_mass(body->shape, what, &mass, error));
    double density = body->def->mass > 0.0 ? body->def->mass / mass.volume : body->def->density;
    body->volume = mass.volume;
    body->mass = density * mass.volume;
    memcpy(body->center, mass.center, sizeof body->center);
    for (int i = 0; i < 9; i++)
        body->inertia[i] = density * mass.inertia[i];

    /* State at the start. */
    memcpy(state->position, mass.center, sizeof state->position);
    state->quaternion[0] = 1.0;
    for (int i = 0; i < 3; i++) {
        int in_plane = rigid->dimension == 3 || i < 2, turns = rigid->dimension == 3 || i == 2;
        state->velocity[i] = in_plane && body->def->move[i] != 0.0 ? body->def->velocity[i] : 0.0;
        state->angular_velocity[i] = turns && body->def->turn[i] != 0.0 ? body->def->angular_velocity[i] : 0.0;
    }
    return SELKIE_OK;
}

selkie_code sk_rigid_init(sk_rigid *rigid, const selkie_scene *scene, const sk_solids *solids, sk_memory *memory,
                          selkie_error *error)
{
    memset(rigid, 0, sizeof *rigid);
    rigid->memory = memory;
    rigid->scene = scene;
    rigid->solids = solids;
    rigid->dimension = scene->domain.dimension;
    rigid->obstacle_count = solids->obstacle_count;
    rigid->kicks_at_once = scene->discretization == SELKIE_DISCRETIZATION_GRID;
    if (!sk_rigid_available())
        return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                       "bodies: this build has no rigid body engine; install libode-dev and build again");
    rigid->bodies = sk_allocate_zeroed(memory, ((size_t)scene->body_count + 1) * sizeof *rigid->bodies);
    rigid->states = sk_allocate_zeroed(memory, ((size_t)scene->body_count + 1) * sizeof *rigid->states);
    if (!rigid->bodies || !rigid->states)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "bodies: no memory for %d of them", scene->body_count);
    rigid->body_count = scene->body_count - sk_scene_particle_bodies(scene);
    for (int b = 0; b < rigid->body_count; b++)
        SK_TRY(init_body(rigid, b, error));
    SK_TRY(sk_rigid_place(rigid, "bodies", error));
    return sk_rigid_engine_create(rigid, error);
}

void sk_rigid_free(sk_rigid *rigid)
{
    sk_rigid_engine_destroy(rigid);
    for (int b = 0; b < rigid->body_count; b++)
        sk_shape_destroy(rigid->bodies[b].shape);
    sk_release(rigid->memory, rigid->bodies);
    sk_release(rigid->memory, rigid->states);
    memset(rigid, 0, sizeof *rigid);
}

static void cross_product(const double a[3], const double b[3], double c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

void sk_rigid_add_impulse(sk_rigid *rigid, int body, const double impulse[3], const double at[3])
{
    const double *center = rigid->states[body].position;
    double arm[3] = {at[0] - center[0], at[1] - center[1], at[2] - center[2]}, turn[3];
    cross_product(arm, impulse, turn);
    for (int i = 0; i < 3; i++) {
        rigid->bodies[body].impulse[i] += impulse[i];
        rigid->bodies[body].angular_impulse[i] += turn[i];
    }
}

void sk_rigid_add_mass(sk_rigid *rigid, int body, double mass, double inertia)
{
    rigid->bodies[body].added_mass = mass;
    rigid->bodies[body].added_inertia = inertia;
    sk_rigid_engine_weigh(rigid, body);
}

/* Inverse of a symmetric matrix over the axes that are free; the others stay zero. */
static void invert_free(const double m[9], const int free_axis[3], double inverse[9])
{
    int axes[3], n = 0;
    memset(inverse, 0, 9 * sizeof *inverse);
    for (int i = 0; i < 3; i++)
        if (free_axis[i])
            axes[n++] = i;
#define AT(i, j) m[3 * axes[i] + axes[j]]
    if (n == 1) {
        inverse[4 * axes[0]] = 1.0 / AT(0, 0);
    } else if (n == 2) {
        double determinant = AT(0, 0) * AT(1, 1) - AT(0, 1) * AT(1, 0);
        inverse[4 * axes[0]] = AT(1, 1) / determinant;
        inverse[4 * axes[1]] = AT(0, 0) / determinant;
        inverse[3 * axes[0] + axes[1]] = inverse[3 * axes[1] + axes[0]] = -AT(0, 1) / determinant;
    } else if (n == 3) {
        double rows[3][3], cofactors[3][3];
        memcpy(rows, m, sizeof rows);
        for (int i = 0; i < 3; i++)
            cross_product(rows[(i + 1) % 3], rows[(i + 2) % 3], cofactors[i]);
        double determinant = rows[0][0] * cofactors[0][0] + rows[0][1] * cofactors[0][1] + rows[0][2] * cofactors[0][2];
        for (int i = 0; i < 9; i++)
            inverse[i] = cofactors[i % 3][i / 3] / determinant;
    }
#undef AT
}

void sk_rigid_response(const sk_rigid *rigid, int b, double inverse_mass[3], double inverse_inertia[9])
{
    const sk_rigid_body *body = &rigid->bodies[b];
    const double *r = body->pose.rotation;
    double half[9], world[9];
    int turns[3];
    for (int i = 0; i < 3; i++) {
        int in_plane = rigid->dimension == 3 || i < 2;
        inverse_mass[i] = in_plane && body->def->move[i] != 0.0 ? 1.0 / body->mass : 0.0;
        turns[i] = (rigid->dimension == 3 || i == 2) && body->def->turn[i] != 0.0;
        for (int j = 0; j < 3; j++)
            half[3 * i + j] =
                r[3 * i] * body->inertia[j] + r[3 * i + 1] * body->inertia[3 + j] + r[3 * i + 2] * body->inertia[6 + j];
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            world[3 * i + j] = half[3 * i] * r[3 * j] + half[3 * i + 1] * r[3 * j + 1] + half[3 * i + 2] * r[3 * j + 2];
    invert_free(world, turns, inverse_inertia);
}

/* How a step of length dt is cut. */
static int substeps(double dt)
{
    return (int)fmin(fmax(ceil(dt / longest_substep - 1e-6), 1.0), 10000.0);
}

/* m: an upper bound of the distance from the centre of mass to a point of the body. */
static double reach_of(const sk_rigid *rigid, int b)
{
    double low[3], high[3], reach2 = 0.0;
    sk_shape_bounds(rigid->bodies[b].shape, low, high);
    for (int d = 0; d < rigid->dimension; d++) {
        const double reach = fmax(high[d] - rigid->bodies[b].center[d], rigid->bodies[b].center[d] - low[d]);
        reach2 += reach * reach;
    }
    return sqrt(reach2);
}

/* The same with more substeps where two bodies can meet. The engine finds a contact when they overlap, and a substep of
 * their approach is how deep that is. */
static int substeps_of_meetings(const sk_rigid *rigid, double dt)
{
    const double deepest = deepest_overlap * rigid->solids->cell_size;
    double most = 0.0;
    for (int a = 0; a < rigid->body_count; a++)
        for (int b = a + 1; b < rigid->body_count; b++) {
            double distance2 = 0.0, speed2 = 0.0;
            for (int d = 0; d < rigid->dimension; d++) {
                const double apart = rigid->states[a].position[d] - rigid->states[b].position[d];
                const double speed = rigid->states[a].velocity[d] - rigid->states[b].velocity[d];
                distance2 += apart * apart;
                speed2 += speed * speed;
            }
            const double way = sqrt(speed2) * dt;
            if (way > fmax(most, deepest) && sqrt(distance2) - way < reach_of(rigid, a) + reach_of(rigid, b))
                most = way;
        }
    return (int)fmin(fmax(substeps(dt), ceil(most / deepest)), fmax(most_of_meetings, substeps(dt)));
}

double sk_rigid_speed(const sk_rigid *rigid, int b)
{
    const sk_rigid_state *state = &rigid->states[b];
    double low[3], high[3], reach2 = 0.0, v2 = 0.0, w2 = 0.0;
    sk_shape_bounds(rigid->bodies[b].shape, low, high);
    for (int d = 0; d < rigid->dimension; d++) {
        double reach = fmax(high[d] - rigid->bodies[b].center[d], rigid->bodies[b].center[d] - low[d]);
        reach2 += reach * reach;
    }
    for (int d = 0; d < 3; d++) {
        v2 += state->velocity[d] * state->velocity[d];
        w2 += state->angular_velocity[d] * state->angular_velocity[d];
    }
    return sqrt(v2) + sqrt(w2 * reach2);
}

void sk_rigid_drag_change(const sk_rigid *rigid, int body, double velocity[3], double angular_velocity[3])
{
    const sk_rigid_body *of = &rigid->bodies[body];
    double inverse_mass[3], inverse_inertia[9];
    sk_rigid_response(rigid, body, inverse_mass, inverse_inertia);
    for (int d = 0; d < 3; d++) {
        velocity[d] = inverse_mass[d] * of->drag[d];
        angular_velocity[d] = 0.0;
        for (int e = 0; e < 3; e++)
            angular_velocity[d] += inverse_inertia[3 * d + e] * of->angular_drag[e];
    }
}

void sk_rigid_predict(const sk_rigid *rigid, int b, double dt, double velocity[3], double angular_velocity[3])
{
    int count = rigid->kicks_at_once ? 1 : substeps(dt);
    double h = dt / count, kick = 0.5 * (rigid->states[b].last_substep + h) + (count - 1) * h, inverse_mass[3],
           inverse_inertia[9];
    sk_rigid_response(rigid, b, inverse_mass, inverse_inertia);
    for (int i = 0; i < 3; i++) {
        velocity[i] = rigid->states[b].velocity[i] + (inverse_mass[i] > 0.0 ? kick * rigid->scene->gravity[i] : 0.0);
        angular_velocity[i] = rigid->states[b].angular_velocity[i];
    }
}

selkie_code sk_rigid_step(sk_rigid *rigid, double time, double dt, double impulse_time, selkie_error *error)
{
    int count = rigid->kicks_at_once ? substeps_of_meetings(rigid, dt) : substeps(dt);
    double h = dt / count;
    rigid->recovery = 0.2 * substeps(dt) / count;
    for (int n = 0; n < count; n++) {
        const double last = rigid->states[0].last_substep, at_once = n ? 0.0 : 0.5 * (last + dt);
        const double kick = rigid->kicks_at_once ? at_once : 0.5 * (last + h);
        const double share = rigid->kicks_at_once ? (n ? 0.0 : 1.0) : 1.0 / count;
        SK_TRY(sk_rigid_engine_step(rigid, time + n * h, kick, h, share, error));
        for (int b = 0; b < rigid->body_count; b++)
            rigid->states[b].last_substep = h;
    }
    for (int b = 0; rigid->kicks_at_once && b < rigid->body_count; b++)
        rigid->states[b].last_substep = dt;
    for (int b = 0; b < rigid->body_count; b++) {
        sk_rigid_body *body = &rigid->bodies[b];
        for (int i = 0; i < 3; i++) {
            rigid->states[b].force[i] = body->impulse[i] / impulse_time;
            rigid->states[b].torque[i] = body->angular_impulse[i] / impulse_time;
            body->impulse[i] = body->angular_impulse[i] = 0.0;
        }
    }
    return sk_rigid_place(rigid, "bodies", error);
}

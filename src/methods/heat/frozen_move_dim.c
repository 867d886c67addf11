/* Motion of frozen bodies: in the pressure solve, at contacts, and of their particles. frozen.h explains them. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/heat/frozen.h"
#include "methods/heat/frozen_kernels.h"
#include "methods/liquid_plain.h"

enum { RANK = SELKIE_DIM == 3 ? 6 : 3, MOST_CONTACTS = 12, SWEEPS = 8 };

/* --- Contacts --- */

typedef struct touch {
    int surface;      /* side of the domain, or 6 + obstacle */
    double depth;     /* m  largest */
    double weight;    /* m  sum of the depths */
    double point[3];  /* m  mean, weighted by depth */
    double normal[3]; /*    likewise */
} touch;

static void add_contact(touch *list, int *count, int surface, double depth, const double x[3], const double normal[3])
{
    int n = 0;
    while (n < *count && list[n].surface != surface)
        n++;
    if (n == MOST_CONTACTS)
        return;
    if (n == *count) {
        memset(&list[n], 0, sizeof list[n]);
        list[n].surface = surface;
        (*count)++;
    }
    list[n].depth = fmax(list[n].depth, depth);
    list[n].weight += depth;
    for (int d = 0; d < 3; d++) {
        list[n].point[d] += depth * x[d];
        list[n].normal[d] += depth * normal[d];
    }
}

/* Position of a particle of a body after the step. */
static void predict(const sk_frozen_body *body, const double velocity[3], const double rotation[9], double dt,
                    const float before[3], double x[3])
{
    double arm[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < SELKIE_DIM; d++)
        arm[d] = (double)before[d] - body->centre[d];
    for (int d = 0; d < 3; d++)
        x[d] = body->centre[d] + dt * velocity[d] + rotation[3 * d] * arm[0] + rotation[3 * d + 1] * arm[1] +
               rotation[3 * d + 2] * arm[2];
}

static void find_rotation(const double turning[3], double dt, double rotation[9])
{
    const double vector[3] = {dt * turning[0], dt * turning[1], dt * turning[2]};
    sk_frozen_rotation(vector, rotation);
}

/* Surfaces that a particle at x would be in, or nearer to than `margin`. */
static void contacts_of_point(const sk_step *step, const double x[3], double margin, touch *list, int *count)
{
    const sk_grid *grid = &step->grid;
    const float single[3] = {(float)x[0], (float)x[1], (float)x[2]};
    double normal[3] = {0.0, 0.0, 0.0};
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, sign = side % 2 ? -1 : 1;
        const double depth = margin - sign * (x[d] - (side % 2 ? grid->high[d] : grid->low[d]));
        if (!(depth > 0.0) || step->scene->domain.walls[side] == SELKIE_WALL_OPEN)
            continue;
        normal[d] = sign;
        add_contact(list, count, side, depth, x, normal);
        normal[d] = 0.0;
    }
    int obstacle;
    if (!step->solids.obstacle_count || !sk_solids_near(&step->solids, grid, single))
        return;
    const double depth = margin - sk_solids_distance(&step->solids, x, normal, &obstacle);
    if (depth > 0.0 && obstacle >= 0)
        add_contact(list, count, 6 + obstacle, depth, x, normal);
}

void SK_DIM(sk_frozen_touch)(const sk_step *step, const sk_frozen *frozen, const sk_frozen_contact *c)
{
    const sk_frozen_body *body = &frozen->bodies[c->body];
    touch list[MOST_CONTACTS];
    int count = 0;
    double rotation[9];

    /* Where particles would go too far. */
    find_rotation(c->turning, step->dt, rotation);
    for (int64_t p = 0; p < frozen->particle_count; p++) {
        double x[3];
        if (frozen->body_of[p] != c->body)
            continue;
        predict(body, c->velocity, rotation, step->dt, frozen->before[p], x);
        contacts_of_point(step, x, c->reach, list, &count);
    }
    for (int n = 0; n < count; n++) {
        const double *m = list[n].normal, length = sqrt(m[0] * m[0] + m[1] * m[1] + m[2] * m[2]);
        for (int d = 0; d < 3; d++) {
            list[n].point[d] /= list[n].weight;
            list[n].normal[d] /= length > 0.0 ? length : 1.0;
            if (c->shift)
                c->shift[d] += list[n].depth * list[n].normal[d];
        }
    }

    /* Inelastic impulses, one surface after the other. */
    for (int sweep = 0; sweep < SWEEPS * (c->shift == NULL); sweep++)
        for (int n = 0; n < count; n++) {
            double arm[3], turn[3], speed = 0.0, wall[3] = {0.0, 0.0, 0.0};
            if (list[n].surface >= 6)
                sk_solids_velocity(&step->solids, list[n].surface - 6, list[n].point, wall);
            for (int d = 0; d < 3; d++)
                arm[d] = d < SELKIE_DIM ? list[n].point[d] - body->centre[d] : 0.0;
            for (int d = 0; d < SELKIE_DIM; d++)
                speed += list[n].normal[d] * (sk_frozen_velocity(c->velocity, c->turning, arm, d) - wall[d]);
            if (!(speed < 0.0))
                continue;
            const double impulse =
                -speed / sk_frozen_mobility(body->mass, body->inverse_inertia, arm, list[n].normal, turn);
            for (int d = 0; d < 3; d++) {
                c->velocity[d] += impulse / body->mass * list[n].normal[d];
                c->turning[d] += impulse * turn[d];
            }
        }
}

/* Particles keep this distance from surfaces: half of their own. */
static double margin_of(const sk_step *step)
{
    return 0.25 * step->grid.cell_size / pow((double)step->particles_per_cell, 1.0 / SELKIE_DIM);
}

/* --- The pressure solve --- */

/* Velocity of the body that owns the lower face of a cell, there. */
static double face_velocity(const sk_step *step, const sk_frozen_body *body, const double velocity[3],
                            const double turning[3], sk_plain_cell cell, int d)
{
    int at[3];
    double arm[3] = {0.0, 0.0, 0.0};
    sk_plain_coordinates(&step->grid, cell, at);
    for (int e = 0; e < SELKIE_DIM; e++)
        arm[e] = step->grid.corner[e] + (at[e] + (e == d ? 0.0 : 0.5)) * step->grid.cell_size - body->centre[e];
    return sk_frozen_velocity(velocity, turning, arm, d);
}

/* Gives the closed parts of the faces of a block the velocities of the bodies: adds `sign` times `solved`. */
static void add_velocities(const sk_step *step, const sk_frozen *frozen, int block, int begins)
{
    const sk_solids *solids = &step->solids;
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t here = sk_plain_index(cell), solid = sk_plain_solid_index(solids, cell);
        const float share = frozen->share[d][here], closed = 1.0f - solids->fraction[d][solid];
        if (!(share > 0.0f))
            continue;
        const sk_frozen_body *body = &frozen->bodies[frozen->owner[d][here]];
        const float own = (float)face_velocity(step, body, body->solved, body->solved_turning, cell, d);
        float *velocity = &solids->velocity[d][solid];
        *velocity = begins ? ((closed - share) * *velocity + share * own) / closed : *velocity + share * own / closed;
    }
}

/* Flux out of a cell for each mode of a body; arms in cells. Returns whether there is any. */
static int find_flux(const sk_step *step, const sk_frozen *frozen, sk_plain_cell cell, int body,
                     float flux[SK_POISSON_MODES])
{
    const sk_grid *grid = &step->grid;
    int at[3], found = 0;
    sk_plain_coordinates(grid, cell, at);
    memset(flux, 0, SK_POISSON_MODES * sizeof *flux);
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2;
        const size_t face = sk_plain_index(cell_of_side(grid, cell, side));
        const float share = face >= SK_BLOCK_CELLS && frozen->owner[d][face] == body ? frozen->share[d][face] : 0.0f;
        double arm[3] = {0.0, 0.0, 0.0};
        if (!(share > 0.0f))
            continue;
        for (int e = 0; e < SELKIE_DIM; e++)
            arm[e] = (grid->corner[e] - frozen->bodies[body].centre[e]) / grid->cell_size + at[e] +
                     (e == d ? side % 2 : 0.5);
        const float signed_share = side % 2 ? share : -share;
        flux[d] += signed_share;
        for (int k = 0; k < RANK - SELKIE_DIM; k++) {
            /* Velocity along d of a unit rotation about axis k (2D: z). */
            const double zero[3] = {0.0, 0.0, 0.0};
            double unit[3] = {0.0, 0.0, 0.0};
            unit[SELKIE_DIM == 3 ? k : 2] = 1.0;
            flux[SELKIE_DIM + k] += signed_share * (float)sk_frozen_velocity(zero, unit, arm, d);
        }
        found = 1;
    }
    return found;
}

/* Is a cell an unknown of the pressure solve? */
static int is_unknown(const sk_step *step, sk_plain_cell cell)
{
    int open = 0;
    if ((step->grid.kinds[sk_plain_index(cell)] & SK_CELL_KIND_MASK) != SK_CELL_LIQUID)
        return 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        open |= open_fraction_at(step, cell_of_side(&step->grid, cell, side), side / 2) > 0.0f;
    return open;
}

/* Bodies of the faces around a cell that move freely, each once and in ascending order. */
static int bodies_around(const sk_step *step, const sk_frozen *frozen, sk_plain_cell cell, int bodies[2 * SELKIE_DIM])
{
    int count = 0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const size_t face = sk_plain_index(cell_of_side(&step->grid, cell, side));
        const int owner =
            face >= SK_BLOCK_CELLS && frozen->share[side / 2][face] > 0.0f ? frozen->owner[side / 2][face] : -1;
        int n = count;
        if (owner < 0 || frozen->bodies[owner].held)
            continue;
        for (int m = 0; m < count; m++)
            n = bodies[m] == owner ? -1 : n;
        for (; n > 0 && bodies[n - 1] > owner; n--)
            bodies[n] = bodies[n - 1];
        if (n >= 0) {
            bodies[n] = owner;
            count++;
        }
    }
    return count;
}

static selkie_code list_entries(sk_step *step, sk_frozen *frozen, selkie_error *error)
{
    size_t count = 0;
    for (int b = 1; b < step->grid.block_count; b++) {
        if ((size_t)step->solids.block_slot[b] < step->solids.static_count)
            continue;
        SK_TRY(sk_reserve(step->memory, (void **)&frozen->entries, &frozen->entry_capacity,
                          count + (size_t)SK_BLOCK_CELLS * 2 * SELKIE_DIM, sizeof *frozen->entries, "frozen bodies",
                          error));
        SK_PLAIN_EACH_CELL(cell, b)
        {
            int bodies[2 * SELKIE_DIM + 1];
            const int found = is_unknown(step, cell) ? bodies_around(step, frozen, cell, bodies) : 0;
            for (int n = 0; n < found; n++) {
                sk_poisson_mode_entry *entry = &frozen->entries[count];
                entry->cell = (int64_t)sk_plain_index(cell);
                entry->body = bodies[n];
                count += (size_t)find_flux(step, frozen, cell, bodies[n], entry->flux);
            }
        }
    }
    frozen->modes =
        (sk_poisson_modes){.body_count = frozen->body_count,
                           .rank = RANK,
                           .entry_count = count,
                           .entries = frozen->entries,
                           .response = (const double(*)[SK_POISSON_MODES][SK_POISSON_MODES])frozen->response};
    return SELKIE_OK;
}

/* The response of a body in the units of the pressure solve: density h^d M^-1, rotations in m/s at an arm of a cell. */
static void find_response(const sk_step *step, const sk_frozen_body *body,
                          double response[SK_POISSON_MODES][SK_POISSON_MODES])
{
    const double h = step->grid.cell_size, mass = step->density * pow(h, SELKIE_DIM);
    memset(response, 0, SK_POISSON_MODES * sizeof *response);
    if (body->held)
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        response[d][d] = mass / body->mass;
    for (int i = 0; i < RANK - SELKIE_DIM; i++)
        for (int j = 0; j < RANK - SELKIE_DIM; j++)
            response[SELKIE_DIM + i][SELKIE_DIM + j] =
                mass * h * h * body->inverse_inertia[SELKIE_DIM == 3 ? 3 * i + j : 8];
}

/* Before the solve: gravity acts on the bodies as on the liquid, and they join the system. */
selkie_code SK_DIM(sk_frozen_couple)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    const double kick = sk_step_kick(step);
    if (!frozen->coupled)
        return SELKIE_OK;
    for (int b = 0; b < frozen->body_count; b++) {
        sk_frozen_body *body = &frozen->bodies[b];
        memcpy(body->solved, body->velocity, sizeof body->solved);
        memcpy(body->solved_turning, body->turning, sizeof body->turning);
        for (int d = 0; d < SELKIE_DIM && !body->held; d++)
            body->solved[d] += kick * step->scene->gravity[d] * body->weight / body->mass;
        const sk_frozen_contact contact = {
            .body = b, .velocity = body->solved, .turning = body->solved_turning, .reach = margin_of(step)};
        if (!body->held)
            SK_DIM(sk_frozen_touch)(step, frozen, &contact);
        find_response(step, body, frozen->response[b]);
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < step->grid.block_count; b++)
        if ((size_t)step->solids.block_slot[b] >= step->solids.static_count)
            add_velocities(step, frozen, b, 1);
    SK_TRY(list_entries(step, frozen, error));
    step->modes = frozen->modes.entry_count ? &frozen->modes : NULL;
    return SELKIE_OK;
}

/* Impulses of the pressure: the change of velocity of each body. */
static void add_impulses(const sk_step *step, sk_frozen *frozen, double (*change)[SK_POISSON_MODES])
{
    const float *q = step->grid.fields[SK_FIELD_POTENTIAL];
    const double h = step->grid.cell_size;
    for (size_t e = 0; e < frozen->modes.entry_count; e++) {
        const sk_poisson_mode_entry *entry = &frozen->modes.entries[e];
        const double(*response)[SK_POISSON_MODES] = (const double(*)[SK_POISSON_MODES])frozen->response[entry->body];
        for (int k = 0; k < RANK; k++)
            for (int m = 0; m < RANK; m++)
                change[entry->body][k] +=
                    (k < SELKIE_DIM ? 1.0 : 1.0 / h) * response[k][m] * (double)entry->flux[m] * (double)q[entry->cell];
    }
}

/* Faces that a body covers have its velocity, and its change for FLIP. */
static void set_faces(const sk_step *step, const sk_frozen *frozen, int block)
{
    const sk_grid *grid = &step->grid;
    SK_PLAIN_EACH_CELL(cell, block)
    for (int d = 0; d < SELKIE_DIM; d++) {
        const size_t here = sk_plain_index(cell);
        float *velocity = &grid->fields[SK_FIELD_VELOCITY_X + d][here];
        if (!(frozen->share[d][here] > 0.0f) || open_fraction_at(step, cell, d) > 0.0f || *velocity != *velocity)
            continue;
        const sk_frozen_body *body = &frozen->bodies[frozen->owner[d][here]];
        const double now = face_velocity(step, body, body->solved, body->solved_turning, cell, d);
        const double end = face_velocity(step, body, body->final, body->final_turning, cell, d);
        *velocity = (float)now;
        grid->fields[step->end_velocity + d][here] = (float)end;
        grid->fields[SK_FIELD_CHANGE_X + d][here] =
            (float)(end - face_velocity(step, body, body->velocity, body->turning, cell, d));
    }
}

selkie_code SK_DIM(sk_frozen_push)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    double(*change)[SK_POISSON_MODES];
    if (!frozen->coupled)
        return SELKIE_OK;
    step->modes = NULL;
    const size_t bytes = (size_t)(frozen->body_count + 1) * sizeof *change;
    SK_TRY(sk_step_scratch(step, bytes, "frozen bodies", (void **)&change, error));
    memset(change, 0, bytes);
    if (sk_step_has_pressure(step))
        add_impulses(step, frozen, change);

    /* The faces get the change of velocity, then the bodies theirs. */
    for (int b = 0; b < frozen->body_count; b++) {
        sk_frozen_body *body = &frozen->bodies[b];
        for (int d = 0; d < 3; d++) {
            const double more = d < SELKIE_DIM ? change[b][d] : 0.0;
            const double turn = SELKIE_DIM == 3 ? change[b][(3 + d) % SK_POISSON_MODES] : d == 2 ? change[b][2] : 0.0;
            const double before = body->solved[d], turned = body->solved_turning[d];
            body->final[d] = body->velocity[d] + (1.0 + step->reflection) * (before + more - body->velocity[d]);
            body->final_turning[d] = body->turning[d] + (1.0 + step->reflection) * (turned + turn - body->turning[d]);
            body->solved[d] = more;
            body->solved_turning[d] = turn;
            change[b][d] = before + more;
            change[b][3 + d] = turned + turn;
        }
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < step->grid.block_count; b++)
        if ((size_t)step->solids.block_slot[b] >= step->solids.static_count)
            add_velocities(step, frozen, b, 0);
    for (int b = 0; b < frozen->body_count; b++) {
        memcpy(frozen->bodies[b].solved, change[b], 3 * sizeof(double));
        memcpy(frozen->bodies[b].solved_turning, change[b] + 3, 3 * sizeof(double));
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < step->grid.block_count; b++)
        if ((size_t)step->solids.block_slot[b] >= step->solids.static_count)
            set_faces(step, frozen, b);
    return SELKIE_OK;
}

/* --- The particles --- */

/* Without a coupled solve: the rigid motion with the momentum of the particles. */
static void take_motion(const sk_step *step, sk_frozen *frozen, int b)
{
    sk_frozen_body *body = &frozen->bodies[b];
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    double momentum[3] = {0.0, 0.0, 0.0}, unused[9] = {0.0};
    memset(body->final, 0, sizeof body->final);
    for (int64_t p = 0; p < frozen->particle_count; p++) {
        if (frozen->body_of[p] != b)
            continue;
        const double mass = sk_step_mass(step, material, p);
        double arm[3] = {0.0, 0.0, 0.0}, velocity[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < SELKIE_DIM; d++) {
            arm[d] = (double)frozen->before[p][d] - body->centre[d];
            velocity[d] = (double)step->particles.records[p].velocity[d];
            body->final[d] += mass / body->mass * velocity[d];
        }
        sk_frozen_add_moments(mass, arm, velocity, unused, momentum);
    }
    sk_frozen_turn(body->inverse_inertia, momentum, body->final_turning);
    const double kick = 0.5 * (step->last_dt + step->dt) * (body->weight / body->mass - 1.0);
    for (int d = 0; d < SELKIE_DIM; d++)
        body->final[d] += kick * step->scene->gravity[d];
}

/* The motion of a body in this step, out of surfaces. */
static void finish_motion(const sk_step *step, sk_frozen *frozen, int b, double shift[3])
{
    sk_frozen_body *body = &frozen->bodies[b];
    if (!frozen->coupled)
        take_motion(step, frozen, b);
    if (body->held) {
        memcpy(body->final, body->velocity, sizeof body->final);
        memset(body->final_turning, 0, sizeof body->final_turning);
        return;
    }
    sk_frozen_contact contact = {
        .body = b, .velocity = body->final, .turning = body->final_turning, .reach = margin_of(step)};
    SK_DIM(sk_frozen_touch)(step, frozen, &contact);
    contact.shift = shift;
    SK_DIM(sk_frozen_touch)(step, frozen, &contact);
}

/* Moves a particle with its body. */
static void move_particle(const sk_step *step, const sk_frozen *frozen, int64_t p, const double rotation[9],
                          const double shift[3], float *affine)
{
    const sk_frozen_body *body = &frozen->bodies[frozen->body_of[p]];
    const double *w = body->final_turning;
    sk_particle *particle = &step->particles.records[p];
    double x[3], arm[3];
    predict(body, body->final, rotation, step->dt, frozen->before[p], x);
    for (int d = 0; d < 3; d++)
        arm[d] = x[d] - body->centre[d] - step->dt * body->final[d];
    for (int d = 0; d < SELKIE_DIM; d++) {
        particle->position[d] = (float)(x[d] + shift[d]);
        particle->velocity[d] = (float)sk_frozen_velocity(body->final, w, arm, d);
    }
    const double gradient[9] = {0.0, -w[2], w[1], w[2], 0.0, -w[0], -w[1], w[0], 0.0};
    for (int n = 0; affine && n < 9; n++)
        affine[n] = (float)gradient[n];
}

/* Speeds of all particles, as after the move. */
static void sum_speeds(sk_step *step)
{
    step->sums.kinetic = step->sums.max_speed = 0.0;
    for (int64_t p = 0; p < step->particles.count; p++) {
        const sk_particle *particle = &step->particles.records[p];
        double square = 0.0;
        for (int d = 0; d < SELKIE_DIM && !(particle->flags & SK_PARTICLE_DEAD); d++)
            square += (double)particle->velocity[d] * (double)particle->velocity[d];
        step->sums.kinetic += 0.5 * square;
        step->sums.max_speed = fmax(step->sums.max_speed, square);
    }
    step->sums.max_speed = sqrt(step->sums.max_speed);
}

/* Frozen particles move with their bodies, whatever the flow did to them, and remember where they are. */
selkie_code SK_DIM(sk_frozen_move)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    uint32_t *places = sk_particles_find_attribute(&step->particles, "frozen_at")->data;
    const sk_attribute *affine = sk_particles_find_attribute(&step->particles, "affine");
    double(*shifts)[3], (*rotations)[9];
    float low[3], high[3];
    const size_t count = (size_t)frozen->body_count + 1;
    SK_TRY(sk_step_scratch(step, count * sizeof *shifts, "frozen bodies", (void **)&shifts, error));
    SK_TRY(sk_step_scratch(step, count * sizeof *rotations, "frozen bodies", (void **)&rotations, error));
    memset(shifts, 0, count * sizeof *shifts);
    sk_solids_bounds(&step->solids, &step->grid, low, high);
    for (int b = 0; b < frozen->body_count; b++) {
        finish_motion(step, frozen, b, shifts[b]);
        find_rotation(frozen->bodies[b].final_turning, step->dt, rotations[b]);
    }

    /* Sums over positions stay in the order of the particles. */
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    frozen->solid_count = 0;
    memset(frozen->lifted, 0, sizeof frozen->lifted);
    for (int64_t p = 0; p < frozen->particle_count; p++) {
        sk_particle *particle = &step->particles.records[p];
        const int body = frozen->body_of[p];
        memset(places + 3 * p, 0, 3 * sizeof *places);
        if (body < 0 || particle->flags & SK_PARTICLE_DEAD)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            step->positions[d] -= (double)particle->position[d];
        move_particle(step, frozen, p, rotations[body], shifts[body],
                      affine ? (float *)(void *)(affine->data + 9 * p) : NULL);
        for (int d = 0; d < SELKIE_DIM; d++) {
            particle->position[d] = fminf(fmaxf(particle->position[d], low[d]), high[d]);
            step->positions[d] += (double)particle->position[d];
        }
        const selkie_material_def *def = &step->scene->materials[material ? material->data[p] : 0];
        const double lift = sk_step_mass(step, material, p) * (sk_frozen_relative_weight(def) - 1.0);
        for (int d = 0; d < SELKIE_DIM; d++)
            frozen->lifted[d] += lift * ((double)particle->position[d] - step->grid.low[d]);
        frozen->solid_count++;
        memcpy(places + 3 * p, particle->position, 3 * sizeof *places);
    }
    if (frozen->body_count) {
        sk_particles_moved(&step->particles);
        sum_speeds(step);
    }
    frozen->body_count = 0;
    return SELKIE_OK;
}

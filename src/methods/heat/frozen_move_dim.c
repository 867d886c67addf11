/* Motion of frozen bodies: in the pressure solve, at contacts, and of their particles. frozen.h explains them. */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "methods/heat/frozen.h"
#include "methods/heat/frozen_kernels.h"
#include "methods/heat/frozen_plain.h"

enum { RANK = SELKIE_DIM == 3 ? 6 : 3 };

/* Particles keep this distance from surfaces: half of their own. */
static double margin_of(const sk_step *step)
{
    return 0.25 * step->grid.cell_size / pow((double)step->particles_per_cell, 1.0 / SELKIE_DIM);
}

/* --- The pressure solve --- */

/* Gives the closed parts of the faces of a block the velocities of the bodies: adds `sign` times `solved`. */
static void add_velocities(const sk_step *step, const sk_frozen *frozen, int block, int begins)
{
    const sk_solids *solids = &step->solids;
    const size_t base = (size_t)block * SK_BLOCK_CELLS, slot = (size_t)solids->block_slot[block] * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM && frozen->shared[block]; d++) {
        frozen_plane plane = {.body = -1};
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const float share = frozen->share[d][base + (size_t)c];
            if (!(share > 0.0f))
                continue;
            const float closed = 1.0f - solids->fraction[d][slot + (size_t)c];
            const int owner = frozen->owner[d][base + (size_t)c];
            const sk_frozen_body *body = &frozen->bodies[owner];
            if (plane.body != owner)
                frozen_find_plane(&step->grid, body, body->solved, body->solved_turning, block, d, &plane);
            plane.body = owner;
            const float own = (float)frozen_plane_at(&plane, c);
            float *velocity = &solids->velocity[d][slot + (size_t)c];
            *velocity =
                begins ? ((closed - share) * *velocity + share * own) / closed : *velocity + share * own / closed;
        }
    }
}

/* Flux out of a cell for each mode of a body; arms in cells. */
static void find_flux(const sk_step *step, const sk_frozen *frozen, sk_plain_cell cell, int body,
                      float flux[SK_POISSON_MODES])
{
    const sk_grid *grid = &step->grid;
    int at[3];
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
    }
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

/* Marks the cells of a block with a share of a body in a face. Returns whether there are any. */
static int mark_shared(const sk_step *step, const sk_frozen *frozen, int block, uint8_t marks[SK_BLOCK_CELLS])
{
    const sk_grid *grid = &step->grid;
    int any = 0, side = 1;
    memset(marks, 0, SK_BLOCK_CELLS);
    for (int d = 0; d < SELKIE_DIM; d++, side *= SK_BLOCK_N) {
        const int above = grid->neighbours[block][SELKIE_DIM == 3 ? 13 + (d == 0   ? 1
                                                                          : d == 1 ? 3
                                                                                   : 9)
                                                                  : 4 + (d ? 3 : 1)];
        const float *own = frozen->share[d] + (size_t)block * SK_BLOCK_CELLS;
        const float *next = frozen->share[d] + (size_t)above * SK_BLOCK_CELLS;
        if (!frozen->shared[block] && !frozen->shared[above])
            continue;
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int last = sk_plain_along(c, d) == SK_BLOCK_N - 1;
            const float upper = last ? next[c - (SK_BLOCK_N - 1) * side] : own[c + side];
            marks[c] |= own[c] > 0.0f || upper > 0.0f;
            any |= marks[c];
        }
    }
    return any;
}

/* Cells of a block with a share of a body in a face. */
static size_t count_shared(const sk_step *step, const sk_frozen *frozen, int block)
{
    uint8_t marks[SK_BLOCK_CELLS];
    size_t count = 0;
    if (!mark_shared(step, frozen, block, marks))
        return 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        count += marks[c];
    return count;
}

/* Writes the entries of a block. Returns their number. */
static size_t entries_of_block(const sk_step *step, const sk_frozen *frozen, int block, sk_poisson_mode_entry *entries)
{
    uint8_t marks[SK_BLOCK_CELLS];
    size_t count = 0;
    mark_shared(step, frozen, block, marks);
    SK_PLAIN_EACH_CELL(cell, block)
    {
        int bodies[2 * SELKIE_DIM + 1];
        if (!marks[cell.local] || !is_unknown(step, cell))
            continue;
        const int found = bodies_around(step, frozen, cell, bodies);
        for (int n = 0; n < found; n++, count++) {
            entries[count].cell = (int64_t)sk_plain_index(cell);
            entries[count].body = bodies[n];
            find_flux(step, frozen, cell, bodies[n], entries[count].flux);
        }
    }
    return count;
}

/* Each block writes its entries where there is room for the most; then the lists close up. */
static selkie_code list_entries(sk_step *step, sk_frozen *frozen, selkie_error *error)
{
    const int blocks = step->grid.block_count;
    const size_t most = frozen->body_count < 2 * SELKIE_DIM ? (size_t)frozen->body_count : 2 * SELKIE_DIM;
    size_t *first, *found, room = 0, count = 0;
    SK_TRY(sk_step_scratch(step, 2 * ((size_t)blocks + 1) * sizeof *first, "frozen bodies", (void **)&first, error));
    found = first + blocks + 1;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < blocks; b++)
        found[b] = most * count_shared(step, frozen, b);
    for (int b = 1; b < blocks; b++) {
        first[b] = room;
        room += found[b];
    }
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->entries, &frozen->entry_capacity, room + 1,
                      sizeof *frozen->entries, "frozen bodies", error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b < blocks; b++)
        found[b] = found[b] ? entries_of_block(step, frozen, b, frozen->entries + first[b]) : 0;
    for (int b = 1; b < blocks; b++) {
        memmove(frozen->entries + count, frozen->entries + first[b], found[b] * sizeof *frozen->entries);
        count += found[b];
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
        memcpy(body->met, body->solved, sizeof body->met);
        memcpy(body->met_turning, body->solved_turning, sizeof body->met_turning);
        if (!body->held)
            SK_DIM(sk_frozen_touch)(step, frozen, &contact);
        for (int d = 0; d < 3; d++) {
            body->met[d] = body->solved[d] - body->met[d];
            body->met_turning[d] = body->solved_turning[d] - body->met_turning[d];
        }
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

/* Flux times q of each body, in the order of the entries. */
static void sum_modes(const sk_step *step, const sk_frozen *frozen, double (*sums)[SK_POISSON_MODES])
{
    const float *q = step->grid.fields[SK_FIELD_POTENTIAL];
    for (size_t e = 0; e < frozen->modes.entry_count; e++) {
        const sk_poisson_mode_entry *entry = &frozen->modes.entries[e];
        for (int m = 0; m < RANK; m++)
            sums[entry->body][m] += (double)entry->flux[m] * (double)q[entry->cell];
    }
}

/* The change of velocity of a body by the pressure, in m/s and rad/s, from these sums. */
static void change_of(const sk_step *step, const sk_frozen *frozen, int body, const double sums[SK_POISSON_MODES],
                      double change[3], double turn[3])
{
    for (int d = 0; d < 3; d++)
        change[d] = turn[d] = 0.0;
    for (int k = 0; k < RANK; k++) {
        double *to = k < SELKIE_DIM ? &change[k] : SELKIE_DIM == 3 ? &turn[k - SELKIE_DIM] : &turn[2];
        for (int m = 0; m < RANK; m++)
            *to += frozen->response[body][k][m] * sums[m];
        *to *= k < SELKIE_DIM ? 1.0 : 1.0 / step->grid.cell_size;
    }
}

void SK_DIM(sk_frozen_answer)(sk_step *step, const double (*sums)[SK_POISSON_MODES])
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    double after[SK_FROZEN_MOST_BODIES][6]; /* m/s, rad/s */

    /* The faces get the change of velocity, then the bodies theirs. */
    for (int b = 0; b < frozen->body_count; b++) {
        sk_frozen_body *body = &frozen->bodies[b];
        double more[3], turn[3];
        change_of(step, frozen, b, sums[b], more, turn);
        for (int d = 0; d < 3; d++) {
            const double before = body->solved[d], turned = body->solved_turning[d];
            /* A reflected step applies forces and pressure 1 + reflection times, but an impact once: it would bounce.
             */
            body->final[d] = body->velocity[d] + body->met[d] +
                             (1.0 + step->reflection) * (before + more[d] - body->met[d] - body->velocity[d]);
            body->final_turning[d] =
                body->turning[d] + body->met_turning[d] +
                (1.0 + step->reflection) * (turned + turn[d] - body->met_turning[d] - body->turning[d]);
            body->solved[d] = more[d];
            body->solved_turning[d] = turn[d];
            after[b][d] = before + more[d];
            after[b][3 + d] = turned + turn[d];
        }
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 1; b < step->grid.block_count; b++)
        if ((size_t)step->solids.block_slot[b] >= step->solids.static_count)
            add_velocities(step, frozen, b, 0);
    for (int b = 0; b < frozen->body_count; b++) {
        memcpy(frozen->bodies[b].solved, after[b], 3 * sizeof(double));
        memcpy(frozen->bodies[b].solved_turning, after[b] + 3, 3 * sizeof(double));
    }
}

/* Faces that a body covers have its velocity, and its change for FLIP. */
static void set_faces(const sk_step *step, const sk_frozen *frozen, int block)
{
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    for (int d = 0; d < SELKIE_DIM && frozen->shared[block]; d++) {
        frozen_planes planes = {.owner = -1};
        for (int c = 0; c < SK_BLOCK_CELLS; c++) {
            const int owner = frozen->owner[d][base + (size_t)c];
            const sk_plain_cell cell = {block, c};
            if (!(frozen->share[d][base + (size_t)c] > 0.0f) || !frozen_is_covered(step, cell, d))
                continue;
            if (planes.owner != owner)
                frozen_find_planes(&step->grid, &frozen->bodies[owner], block, d, &planes);
            planes.owner = owner;
            frozen_set_face(step, &planes, cell, d);
        }
    }
}

selkie_code SK_DIM(sk_frozen_push)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    double(*sums)[SK_POISSON_MODES];
    if (!frozen->coupled)
        return SELKIE_OK;
    step->modes = NULL;
    const size_t bytes = (size_t)(frozen->body_count + 1) * sizeof *sums;
    SK_TRY(sk_step_scratch(step, bytes, "frozen bodies", (void **)&sums, error));
    memset(sums, 0, bytes);
    if (sk_step_has_pressure(step))
        sum_modes(step, frozen, sums);
    SK_DIM(sk_frozen_answer)(step, (const double(*)[SK_POISSON_MODES])sums);
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
    for (uint32_t n = frozen->first_member[b]; n < frozen->first_member[b + 1]; n++) {
        const uint32_t p = frozen->members[n];
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
    sk_frozen_predict(body, body->final, rotation, step->dt, frozen->before[p], SELKIE_DIM, x);
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

/* Sums over some particles. */
typedef struct speed_sums {
    double kinetic, fastest; /* m2/s2 */
} speed_sums;

/* Speeds of all particles, as after the move. Those behind the ones of this step's sort, droplets in flight, do not
 * limit the next step. */
static selkie_code sum_speeds(sk_step *step, const sk_frozen *frozen, selkie_error *error)
{
    const int64_t count = step->particles.count, spans = (count + SK_FROZEN_SPAN - 1) / SK_FROZEN_SPAN;
    speed_sums *sums, total = {0.0, 0.0};
    SK_TRY(sk_step_scratch(step, (size_t)(spans + 1) * sizeof *sums, "frozen bodies", (void **)&sums, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t s = 0; s < spans; s++) {
        const int64_t begin = s * SK_FROZEN_SPAN, end = count - begin < SK_FROZEN_SPAN ? count : begin + SK_FROZEN_SPAN;
        sums[s] = (speed_sums){0.0, 0.0};
        for (int64_t p = begin; p < end; p++) {
            const sk_particle *particle = &step->particles.records[p];
            double square = 0.0;
            for (int d = 0; d < SELKIE_DIM && !(particle->flags & SK_PARTICLE_DEAD); d++)
                square += (double)particle->velocity[d] * (double)particle->velocity[d];
            sums[s].kinetic += 0.5 * square;
            sums[s].fastest = square > sums[s].fastest && p < frozen->particle_count ? square : sums[s].fastest;
        }
    }
    for (int64_t s = 0; s < spans; s++) {
        total.kinetic += sums[s].kinetic;
        total.fastest = fmax(total.fastest, sums[s].fastest);
    }
    step->sums.kinetic = total.kinetic;
    step->sums.max_speed = sqrt(total.fastest);
    return SELKIE_OK;
}

/* What the move of bodies needs. */
typedef struct frozen_motion {
    double (*shifts)[3], (*rotations)[9]; /* [bodies] */
    float low[3], high[3];                /* m  particles stay within */
    float *affine;                        /* [particles][9] or NULL */
    uint32_t *places;                     /* [particles][3] */
} frozen_motion;

/* Sums over a span: particles, the change of their positions, and the lift of frozen.h. */
typedef struct moved_sums {
    int64_t count;
    double way[3], lifted[3]; /* m, kg m */
} moved_sums;

/* Moves the particles of a span with their body. */
static void move_span(const sk_step *step, const sk_frozen *frozen, const frozen_motion *motion,
                      const sk_frozen_span *span, moved_sums *sums)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    memset(sums, 0, sizeof *sums);
    for (uint32_t n = span->begin; n < span->end; n++) {
        const uint32_t p = frozen->members[n];
        sk_particle *particle = &step->particles.records[p];
        if (particle->flags & SK_PARTICLE_DEAD)
            continue;
        const selkie_material_def *def = &step->scene->materials[material ? material->data[p] : 0];
        const double lift = sk_step_mass(step, material, p) * (sk_frozen_relative_weight(def) - 1.0);
        for (int d = 0; d < SELKIE_DIM; d++)
            sums->way[d] -= (double)particle->position[d];
        move_particle(step, frozen, p, motion->rotations[span->body], motion->shifts[span->body],
                      motion->affine ? motion->affine + 9 * (size_t)p : NULL);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const float x = particle->position[d], low = motion->low[d], high = motion->high[d];
            particle->position[d] = x < low ? low : x > high ? high : x;
            sums->way[d] += (double)particle->position[d];
            sums->lifted[d] += lift * ((double)particle->position[d] - step->grid.low[d]);
        }
        sums->count++;
        memcpy(motion->places + 3 * (size_t)p, particle->position, 3 * sizeof *motion->places);
    }
}

/* Moves all bodies, and adds their sums in order. */
static selkie_code move_bodies(sk_step *step, sk_frozen *frozen, const frozen_motion *motion, selkie_error *error)
{
    moved_sums *sums;
    SK_TRY(
        sk_step_scratch(step, ((size_t)frozen->span_count + 1) * sizeof *sums, "frozen bodies", (void **)&sums, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < frozen->span_count; s++)
        move_span(step, frozen, motion, &frozen->spans[s], &sums[s]);
    for (int s = 0; s < frozen->span_count; s++) {
        frozen->solid_count += sums[s].count;
        for (int d = 0; d < SELKIE_DIM; d++) {
            step->positions[d] += sums[s].way[d];
            frozen->lifted[d] += sums[s].lifted[d];
        }
    }
    return SELKIE_OK;
}

/* Frozen particles move with their bodies, whatever the flow did to them, and remember where they are. */
selkie_code SK_DIM(sk_frozen_move_bodies)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    const sk_attribute *affine = sk_particles_find_attribute(&step->particles, "affine");
    const size_t count = (size_t)frozen->body_count + 1;
    frozen_motion motion = {.affine = affine ? (float *)(void *)affine->data : NULL,
                            .places = sk_particles_find_attribute(&step->particles, "frozen_at")->data};
    frozen->solid_count = 0;
    memset(frozen->lifted, 0, sizeof frozen->lifted);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t n = 0; n < 3 * frozen->particle_count; n++)
        motion.places[n] = 0;
    if (!frozen->body_count)
        return SELKIE_OK;

    SK_TRY(sk_step_scratch(step, count * sizeof *motion.shifts, "frozen bodies", (void **)&motion.shifts, error));
    SK_TRY(sk_step_scratch(step, count * sizeof *motion.rotations, "frozen bodies", (void **)&motion.rotations, error));
    memset(motion.shifts, 0, count * sizeof *motion.shifts);
    sk_solids_bounds(&step->solids, &step->grid, motion.low, motion.high);
    for (int b = 0; b < frozen->body_count; b++) {
        finish_motion(step, frozen, b, motion.shifts[b]);
        sk_frozen_turned(frozen->bodies[b].final_turning, step->dt, motion.rotations[b]);
    }
    return move_bodies(step, frozen, &motion, error);
}

selkie_code SK_DIM(sk_frozen_move)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    SK_TRY(SK_DIM(sk_frozen_move_bodies)(step, error));
    if (!frozen->body_count)
        return SELKIE_OK;
    sk_particles_moved(&step->particles);
    frozen->body_count = 0;
    return sum_speeds(step, frozen, error);
}

/* Finding frozen bodies, and their share in the faces of the grid. frozen.h explains them. */
#include "methods/heat/frozen.h"

#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/grid_kernels.h"
#include "grid/plain.h"
#include "grid/tile.h"
#include "methods/heat/frozen_kernels.h"
#include "methods/heat/frozen_plain.h"
#include "methods/sorting.h"

enum {
    UNKNOWN = -2,
    NONE = SK_FROZEN_NONE
}; /* labels of cells that are solid and in no body yet, and of cells that are not */

static const float *liquid_fractions(const sk_step *step)
{
    return (const float *)(const void *)sk_particles_find_attribute(&step->particles, "liquid_fraction")->data;
}

/* --- Corrections of positions --- */

/* Corrections of density may move all particles. Frozen ones go back to where their body has them. */
selkie_code SK_DIM(sk_frozen_hold)(sk_step *step, selkie_error *error)
{
    const float *liquid = liquid_fractions(step);
    const uint32_t *places = sk_particles_find_attribute(&step->particles, "frozen_at")->data;
    int moved = 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) reduction(| : moved)
    for (int64_t p = 0; p < step->particles.count; p++) {
        float *position = step->particles.records[p].position, place[3];
        memcpy(place, places + 3 * p, sizeof place);
        if (!frozen_has_place(places + 3 * p) || !sk_frozen_is_solid(liquid, p))
            continue;
        moved |= frozen_changes_cell(&step->grid, position, place);
        memcpy(position, place, sizeof place);
    }
    if (!moved)
        return SELKIE_OK;
    sk_particles_moved(&step->particles);
    SK_TRY(SK_DIM(sk_sort_particles_again)(step, error));
    return SK_DIM(sk_move_solids)(step, error);
}

/* --- Bodies --- */

static selkie_code reserve(sk_step *step, sk_frozen *frozen, selkie_error *error)
{
    const size_t blocks = (size_t)step->grid.block_count, cells = blocks * SK_BLOCK_CELLS;
    const size_t count = (size_t)step->particles.count + 1;
    static const char what[] = "frozen bodies";
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->labels, &frozen->label_capacity, cells, sizeof(int32_t), what,
                      error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->queue, &frozen->queue_capacity, cells, sizeof(int32_t), what,
                      error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->marked, &frozen->mark_capacity, blocks, 1, what, error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->shared, &frozen->shared_capacity, blocks, 1, what, error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->body_of, &frozen->body_of_capacity, count, sizeof(int16_t), what,
                      error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->before, &frozen->before_capacity, count, sizeof *frozen->before,
                      what, error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->content, &frozen->content_capacity, cells, sizeof(int16_t), what,
                      error));
    for (int d = 0; d < SELKIE_DIM; d++) {
        SK_TRY(sk_reserve(step->memory, (void **)&frozen->share[d], &frozen->share_capacity[d], cells, sizeof(float),
                          what, error));
        SK_TRY(sk_reserve(step->memory, (void **)&frozen->owner[d], &frozen->owner_capacity[d], cells, sizeof(int16_t),
                          what, error));
    }
    return SELKIE_OK;
}

/* Marks the cells of a block in which at least half of the particles are solid. */
static void mark_block(const sk_step *step, sk_frozen *frozen, const float *liquid, int block)
{
    int any = 0;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        uint32_t first, last, solid = 0;
        sk_plain_particles(&step->grid, cell, &first, &last);
        for (uint32_t p = first; p < last; p++)
            solid += (uint32_t)sk_frozen_is_solid(liquid, p);
        frozen->labels[sk_plain_index(cell)] = solid && 2 * solid >= last - first ? UNKNOWN : NONE;
        any |= solid > 0;
    }
    frozen->marked[block] = (uint8_t)any;
}

static sk_plain_cell cell_of(int32_t index)
{
    return (sk_plain_cell){index / SK_BLOCK_CELLS, index % SK_BLOCK_CELLS};
}

/* The cells that are connected to a first one become a body, or none if they are too few. */
static void grow_body(const sk_step *step, sk_frozen *frozen, int32_t first)
{
    const int label = frozen->body_count;
    int32_t count = 0, done = 0, *queue = frozen->queue;
    queue[count++] = first;
    frozen->labels[first] = label;
    while (done < count) {
        const sk_plain_cell cell = cell_of(queue[done++]);
        for (int side = 0; side < 2 * SELKIE_DIM; side++) {
            const sk_plain_cell next = sk_plain_next(&step->grid, cell, side / 2, side % 2 ? 1 : -1);
            const int32_t index = (int32_t)sk_plain_index(next);
            if (!next.slot || frozen->labels[index] != UNKNOWN ||
                open_fraction_at(step, cell_of_side(&step->grid, cell, side), side / 2) == 0.0f)
                continue;
            frozen->labels[index] = label;
            queue[count++] = index;
        }
    }
    if (count >= SK_FROZEN_LEAST_CELLS && label < SK_FROZEN_MOST_BODIES) {
        frozen->body_count++;
        return;
    }
    for (int32_t n = 0; n < count; n++)
        frozen->labels[queue[n]] = NONE;
}

static void find_bodies(const sk_step *step, sk_frozen *frozen, const float *liquid)
{
    const int blocks = step->grid.block_count;
    frozen->body_count = 0;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 0; b < blocks; b++)
        mark_block(step, frozen, liquid, b);
    for (int b = 1; b < blocks; b++)
        for (int c = 0; frozen->marked[b] && c < SK_BLOCK_CELLS; c++)
            if (frozen->labels[b * SK_BLOCK_CELLS + c] == UNKNOWN)
                grow_body(step, frozen, b * SK_BLOCK_CELLS + c);
}

/* The body of the solid particles in a cell: its own, or one around it. */
static int body_near(const sk_step *step, const sk_frozen *frozen, sk_plain_cell cell)
{
    int label = frozen->labels[sk_plain_index(cell)];
    for (int n = 0; n < SK_NEIGHBOURS && label < 0; n++) {
        const int offset[3] = {n % 3 - 1, n / 3 % 3 - 1, SELKIE_DIM == 3 ? n / 9 - 1 : 0};
        const sk_plain_cell next = sk_plain_beside(&step->grid, cell, offset);
        label = next.slot ? frozen->labels[sk_plain_index(next)] : NONE;
    }
    return label < 0 ? NONE : label;
}

/* Bodies of the particles of a block, and their positions. */
static void assign_block(const sk_step *step, sk_frozen *frozen, const float *liquid, int block)
{
    const uint32_t *start = step->grid.cell_start + (size_t)(block - 1) * SK_BLOCK_CELLS;
    int16_t *content = frozen->content + (size_t)block * SK_BLOCK_CELLS;
    for (int c = 0; c < SK_BLOCK_CELLS; c++)
        content[c] = (int16_t)(start[c] == start[c + 1] ? SK_FROZEN_EMPTY : NONE);
    if (!frozen->marked[block])
        return;
    SK_PLAIN_EACH_CELL(cell, block)
    {
        const uint32_t first = start[cell.local], last = start[cell.local + 1];
        uint32_t solid = 0;
        for (uint32_t p = first; p < last; p++)
            solid += (uint32_t)sk_frozen_is_solid(liquid, p);
        const int body = solid ? body_near(step, frozen, cell) : NONE;
        if (body == NONE)
            continue;
        for (uint32_t p = first; p < last; p++) {
            frozen->body_of[p] = (int16_t)(sk_frozen_is_solid(liquid, p) ? body : NONE);
            memcpy(frozen->before[p], step->particles.records[p].position, sizeof *frozen->before);
        }
        content[cell.local] = (int16_t)(solid == last - first ? body : SK_FROZEN_MIXED);
    }
}

/* Lists the particles of each body, and the spans of the lists. */
static selkie_code list_members(sk_step *step, sk_frozen *frozen, selkie_error *error)
{
    static const char what[] = "frozen bodies";
    uint32_t next[SK_FROZEN_MOST_BODIES] = {0}, *first = frozen->first_member;
    for (int64_t p = 0; p < frozen->particle_count; p++)
        if (frozen->body_of[p] >= 0)
            next[frozen->body_of[p]]++;
    first[0] = 0;
    size_t most = 0;
    for (int b = 0; b < frozen->body_count; b++) {
        first[b + 1] = first[b] + next[b];
        most += next[b] / SK_FROZEN_SPAN + 1;
        next[b] = first[b];
    }
    const size_t count = (size_t)first[frozen->body_count] + 1;
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->members, &frozen->member_capacity, count, sizeof *frozen->members,
                      what, error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->touching, &frozen->touching_capacity, count, 1, what, error));
    SK_TRY(sk_reserve(step->memory, (void **)&frozen->spans, &frozen->span_capacity, most, sizeof *frozen->spans, what,
                      error));
    for (int64_t p = 0; p < frozen->particle_count; p++)
        if (frozen->body_of[p] >= 0)
            frozen->members[next[frozen->body_of[p]]++] = (uint32_t)p;
    frozen->span_count = 0;
    for (int b = 0; b < frozen->body_count; b++)
        for (uint32_t n = first[b]; n < first[b + 1]; n += SK_FROZEN_SPAN)
            frozen->spans[frozen->span_count++] =
                (sk_frozen_span){b, n, first[b + 1] - n < SK_FROZEN_SPAN ? first[b + 1] : n + (uint32_t)SK_FROZEN_SPAN};
    return SELKIE_OK;
}

/* --- Mass and motion --- */

/* Sums over particles of a body. */
typedef struct frozen_sums {
    double mass, weight, centre[3], velocity[3];
    float low[3], high[3];          /* bounds of positions */
    double inertia[9], momentum[3]; /* about the centre */
} frozen_sums;

static void sum_masses(const sk_step *step, const sk_frozen *frozen, const sk_frozen_span *span, frozen_sums *sums)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    memset(sums, 0, sizeof *sums);
    for (int d = 0; d < 3; d++) {
        sums->low[d] = INFINITY;
        sums->high[d] = -INFINITY;
    }
    for (uint32_t n = span->begin; n < span->end; n++) {
        const uint32_t p = frozen->members[n];
        const sk_particle *particle = &step->particles.records[p];
        const double mass = sk_step_mass(step, material, p);
        for (int d = 0; d < SELKIE_DIM; d++) {
            sums->low[d] = particle->position[d] < sums->low[d] ? particle->position[d] : sums->low[d];
            sums->high[d] = particle->position[d] > sums->high[d] ? particle->position[d] : sums->high[d];
        }
        sums->mass += mass;
        sums->weight += mass * sk_frozen_relative_weight(&step->scene->materials[material ? material->data[p] : 0]);
        for (int d = 0; d < SELKIE_DIM; d++) {
            sums->centre[d] += mass * (double)particle->position[d];
            sums->velocity[d] += mass * (double)particle->velocity[d];
        }
    }
}

/* Moments of inertia and angular momenta about the centres. */
static void sum_moments(const sk_step *step, const sk_frozen *frozen, const sk_frozen_span *span, frozen_sums *sums)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    const sk_frozen_body *body = &frozen->bodies[span->body];
    for (uint32_t n = span->begin; n < span->end; n++) {
        const uint32_t p = frozen->members[n];
        const sk_particle *particle = &step->particles.records[p];
        double arm[3] = {0.0, 0.0, 0.0}, velocity[3] = {0.0, 0.0, 0.0};
        for (int d = 0; d < SELKIE_DIM; d++) {
            arm[d] = (double)particle->position[d] - body->centre[d];
            velocity[d] = (double)particle->velocity[d];
        }
        sk_frozen_add_moments(sk_step_mass(step, material, p), arm, velocity, sums->inertia, sums->momentum);
    }
}

/* Mass, bounds, centre and velocity of the bodies, from the sums of their spans. */
static void set_masses(sk_frozen *frozen, const frozen_sums *sums)
{
    for (int b = 0; b < frozen->body_count; b++)
        for (int d = 0; d < SELKIE_DIM; d++) {
            frozen->bodies[b].low[d] = INFINITY;
            frozen->bodies[b].high[d] = -INFINITY;
        }
    for (int s = 0; s < frozen->span_count; s++) {
        sk_frozen_body *body = &frozen->bodies[frozen->spans[s].body];
        body->mass += sums[s].mass;
        body->weight += sums[s].weight;
        for (int d = 0; d < SELKIE_DIM; d++) {
            body->low[d] = fmin(body->low[d], (double)sums[s].low[d]);
            body->high[d] = fmax(body->high[d], (double)sums[s].high[d]);
            body->centre[d] += sums[s].centre[d];
            body->velocity[d] += sums[s].velocity[d];
        }
    }
    for (int b = 0; b < frozen->body_count; b++)
        for (int d = 0; d < SELKIE_DIM; d++) {
            frozen->bodies[b].centre[d] /= frozen->bodies[b].mass;
            frozen->bodies[b].velocity[d] /= frozen->bodies[b].mass;
        }
}

static selkie_code measure_bodies(sk_step *step, sk_frozen *frozen, selkie_error *error)
{
    frozen_sums *sums;
    SK_TRY(
        sk_step_scratch(step, ((size_t)frozen->span_count + 1) * sizeof *sums, "frozen bodies", (void **)&sums, error));
    memset(frozen->bodies, 0, sizeof *frozen->bodies * (size_t)frozen->body_count);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < frozen->span_count; s++)
        sum_masses(step, frozen, &frozen->spans[s], &sums[s]);
    set_masses(frozen, sums);
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < frozen->span_count; s++)
        sum_moments(step, frozen, &frozen->spans[s], &sums[s]);

    for (int b = 0, s = 0; b < frozen->body_count; b++) {
        sk_frozen_body *body = &frozen->bodies[b];
        double inertia[9] = {0.0}, momentum[3] = {0.0};
        for (; s < frozen->span_count && frozen->spans[s].body == b; s++) {
            for (int n = 0; n < 9; n++)
                inertia[n] += sums[s].inertia[n];
            for (int d = 0; d < 3; d++)
                momentum[d] += sums[s].momentum[d];
        }
        sk_frozen_invert(inertia, SELKIE_DIM, body->inverse_inertia);
        sk_frozen_turn(body->inverse_inertia, momentum, body->turning);
    }
    return SELKIE_OK;
}

/* --- Cold surfaces --- */

/* Melting point of the solid in a cell, K. */
static double melting_point(const sk_step *step, sk_plain_cell cell)
{
    const sk_attribute *material = sk_particles_find_attribute(&step->particles, "material");
    uint32_t first, last;
    sk_plain_particles(&step->grid, cell, &first, &last);
    return last > first ? step->scene->materials[material ? material->data[first] : 0].melting_point : 0.0;
}

static int is_cold(double temperature, double melting)
{
    return temperature > 0.0 && temperature <= melting;
}

/* Is a cell beside a cold surface? Writes the obstacle, or -1 for a side of the domain. */
static int touches_cold(const sk_step *step, sk_plain_cell cell, int warm_obstacles, int *obstacle)
{
    const sk_grid *grid = &step->grid;
    const double melting = melting_point(step, cell);
    int at[3];
    double x[3] = {0.0, 0.0, 0.0}, normal[3];
    sk_plain_coordinates(grid, cell, at);
    *obstacle = -1;
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const int d = side / 2, wall = grid->padding[d] + (side % 2 ? grid->cells[d] - 1 : 0);
        if (at[d] == wall && is_cold(step->scene->domain.temperature[side], melting))
            return 1;
    }
    if (!warm_obstacles || !step->solids.block_slot[cell.slot])
        return 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        x[d] = grid->corner[d] + (at[d] + 0.5) * grid->cell_size;
    if (sk_solids_distance(&step->solids, x, normal, obstacle) > 0.75 * grid->cell_size || *obstacle < 0)
        return 0;
    const selkie_obstacle_def *def = step->solids.obstacles[*obstacle].def;
    return def && is_cold(def->temperature, melting);
}

/* Bodies beside cold surfaces are held, or move along with an obstacle. */
static void find_held(const sk_step *step, sk_frozen *frozen)
{
    int warm_obstacles = 0, cold = 0, obstacle;
    for (int o = 0; o < step->scene->obstacle_count; o++)
        warm_obstacles |= step->scene->obstacles[o].temperature > 0.0;
    for (int side = 0; side < 2 * SELKIE_DIM; side++)
        cold |= step->scene->domain.temperature[side] > 0.0;
    for (int b = 1; (cold || warm_obstacles) && b < step->grid.block_count; b++) {
        SK_PLAIN_EACH_CELL(cell, b)
        {
            const int label = frozen->marked[b] ? frozen->labels[sk_plain_index(cell)] : NONE;
            if (label < 0 || frozen->bodies[label].held || !touches_cold(step, cell, warm_obstacles, &obstacle))
                continue;
            sk_frozen_body *body = &frozen->bodies[label];
            body->held = 1;
            memset(body->velocity, 0, sizeof body->velocity);
            memset(body->turning, 0, sizeof body->turning);
            if (obstacle >= 0)
                sk_solids_velocity(&step->solids, obstacle, body->centre, body->velocity);
        }
    }
}

/* --- Faces --- */

/* Shares of bodies in the lower face of a cell across axis d, by the linear hat along the axis. */
static float share_of_face(const sk_step *step, const sk_frozen *frozen, sk_plain_cell cell, int d, int *owner)
{
    const sk_grid *grid = &step->grid;
    const float corner = (float)grid->corner[d], inverse = (float)(1.0 / grid->cell_size);
    int at[3], bodies[2] = {NONE, NONE};
    float all = 0.0f, solid[2] = {0.0f, 0.0f};
    sk_plain_coordinates(grid, cell, at);
    for (int below = 0; below < 2; below++) {
        uint32_t first, last;
        sk_plain_particles(grid, below ? sk_plain_next(grid, cell, d, -1) : cell, &first, &last);
        for (uint32_t p = first; p < last; p++) {
            const float place = sk_cell_coordinate(step->particles.records[p].position[d], corner, inverse);
            const float beside = 1.0f - fabsf(place - (float)at[d]), weight = beside > 0.0f ? beside : 0.0f;
            const int body = frozen->body_of[p], n = bodies[0] == body || bodies[0] == NONE ? 0 : 1;
            all += weight;
            if (body < 0 || (n && bodies[1] != NONE && bodies[1] != body))
                continue;
            bodies[n] = body;
            solid[n] += weight;
        }
    }
    const int larger = solid[1] > solid[0];
    *owner = bodies[larger];
    return sk_frozen_share(solid[larger], all);
}

/* The share of a body in a face where the particles of both cells belong to one, or to none; -1 = it needs weights. */
static float plain_share(int above, int under, int *owner)
{
    if (above == SK_FROZEN_MIXED || under == SK_FROZEN_MIXED)
        return -1.0f;
    if (above != under && above != SK_FROZEN_EMPTY && under != SK_FROZEN_EMPTY)
        return -1.0f;
    const int body = above == SK_FROZEN_EMPTY ? under : above;
    *owner = body < 0 ? NONE : body;
    return body < 0 ? 0.0f : 1.0f;
}

SK_TILE_LOADER(load_contents, int16_t)

/* Shares of a block. Returns whether there are any. Owners are set where there are. */
static int find_shares(const sk_step *step, const sk_frozen *frozen, int block)
{
    static const int tile_step[3] = {1, SK_TILE_N(1), SK_TILE_N(1) * SK_TILE_N(1)};
    const size_t base = (size_t)block * SK_BLOCK_CELLS;
    int16_t content[SK_TILE_VALUES(1)];
    int any = 0, bodies = 0;
    load_contents(&step->grid, frozen->content, block, 1, content);
    for (int n = 0; n < SK_TILE_VALUES(1); n++)
        bodies |= content[n] >= 0 || content[n] == SK_FROZEN_MIXED;
    if (!bodies)
        return 0;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int n = SK_TILE_ORIGIN(1) + sk_plain_along(c, 0) + SK_TILE_N(1) * sk_plain_along(c, 1) +
                      (SELKIE_DIM == 3 ? tile_step[2] * sk_plain_along(c, 2) : 0);
        for (int d = 0; d < SELKIE_DIM; d++) {
            const sk_plain_cell cell = {block, c};
            int owner = NONE;
            float share = plain_share(content[n], content[n - tile_step[d]], &owner);
            frozen->share[d][base + (size_t)c] = 0.0f;
            const float open = share != 0.0f ? open_fraction_at(step, cell, d) : 0.0f;
            if (!(open > 0.0f))
                continue;
            if (share < 0.0f)
                share = share_of_face(step, frozen, cell, d, &owner);
            frozen->share[d][base + (size_t)c] = open * share;
            frozen->owner[d][base + (size_t)c] = (int16_t)owner;
            any |= share > 0.0f;
        }
    }
    return any;
}

/* Are there solid particles in a block or beside it? */
static int is_near(const sk_step *step, const sk_frozen *frozen, int block)
{
    int near = 0;
    for (int n = 0; n < SK_NEIGHBOURS; n++)
        near |= step->grid.neighbours[block][n] && frozen->marked[step->grid.neighbours[block][n]];
    return near;
}

/* Takes the shares of bodies from the open fractions, in slots of their own. Faces that a body covers hold liquid. */
static selkie_code close_faces(sk_step *step, sk_frozen *frozen, selkie_error *error)
{
    sk_solids *solids = &step->solids;
    const int blocks = step->grid.block_count;
    uint8_t *any = frozen->shared;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 2)
    for (int b = 0; b < blocks; b++) {
        any[b] = (uint8_t)(b && is_near(step, frozen, b) && find_shares(step, frozen, b));
        for (int d = 0; d < SELKIE_DIM && !any[b]; d++)
            memset(frozen->share[d] + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof(float));
    }
    for (int b = 1; b < blocks; b++) {
        if (!any[b])
            continue;
        SK_TRY(SK_DIM(sk_solids_own_slot)(solids, b, error));
        const size_t slot = (size_t)solids->block_slot[b] * SK_BLOCK_CELLS, base = (size_t)b * SK_BLOCK_CELLS;
        solids->plain[solids->block_slot[b]] = 0;
        for (int d = 0; d < SELKIE_DIM; d++)
            for (size_t c = 0; c < SK_BLOCK_CELLS; c++) {
                const float share = frozen->share[d][base + c];
                solids->fraction[d][slot + c] -= share;
                solids->no_slip[slot + c] |= share > 0.0f;
            }
    }
    return SELKIE_OK;
}

selkie_code SK_DIM(sk_frozen_find)(sk_step *step, selkie_error *error)
{
    sk_frozen *frozen = sk_step_state(step, &sk_method_frozen);
    const float *liquid = liquid_fractions(step);
    SK_TRY(reserve(step, frozen, error));
    find_bodies(step, frozen, liquid);
    frozen->particle_count = step->particles.count;
    frozen->coupled = 0;
    memset(frozen->body_of, 0xff, (size_t)frozen->particle_count * sizeof *frozen->body_of);
    if (!frozen->body_count)
        return SELKIE_OK;
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 1; b <= step->grid.particle_blocks; b++)
        assign_block(step, frozen, liquid, b);
    for (size_t c = (size_t)(step->grid.particle_blocks + 1) * SK_BLOCK_CELLS;
         c < (size_t)step->grid.block_count * SK_BLOCK_CELLS; c++)
        frozen->content[c] = SK_FROZEN_EMPTY;
    for (int c = 0; c < SK_BLOCK_CELLS; c++) /* where there is no block */
        frozen->content[c] = SK_FROZEN_EMPTY;
    SK_TRY(list_members(step, frozen, error));
    SK_TRY(measure_bodies(step, frozen, error));
    find_held(step, frozen);

    /* Unilateral pressure, and bodies of shapes, have no room for them: only their particles move rigidly. */
    frozen->coupled = step->scene->incompressibility == SELKIE_INCOMPRESSIBILITY_BILATERAL && !step->rigid;
    return frozen->coupled ? close_faces(step, frozen, error) : SELKIE_OK;
}

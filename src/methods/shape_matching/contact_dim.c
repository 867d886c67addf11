/* Contacts of bodies of particles with walls, obstacles and each other.
 *
 * The surface of a body near one of its outer points is a plane: its normal is that of the shape at rest, turned with
 * the body, and its distance is the depth of the point at rest. Where the surfaces would meet within the step, impulses
 * bound the approach (Gao et al. 2017, Eqs. 5 to 8, as inelastic contacts of whole bodies): the result depends neither
 * on the number of particles nor on their order. A few outermost contacts stand for all of a pair.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "grid/plain.h"
#include "grid/tile.h"
#include "methods/shape_matching/response.h"
#include "methods/shape_matching/shape_matching.h"

enum {
    DIRECTIONS = SELKIE_DIM == 3 ? 8 : 4, /* outermost contacts that are kept, beside the deepest one */
    SWEEPS = 60
};
static const double recovery = 0.2;     /* part of an overlap that a step removes */
static const double allowed = 0.01;     /* cells of overlap that stay, so that contacts at rest do not flicker */
static const double bounce_speed = 0.2; /* m/s  slower approaches do not bounce */

typedef struct contact {
    int body[2];       /* the second may be -1: a wall or an obstacle */
    double arm[2][3];  /* m    from the centres */
    double start[3];   /* m/s  relative velocity before */
    double axes[3][3]; /* the normal, from the second to the first, and tangents */
    double target;     /* m/s  least normal velocity */
    double friction;
    double ease[3];    /* kg   1 / change of velocity along an axis by a unit impulse along it */
    double impulse[3]; /* N s  along the axes */
    double gap;        /* m */
} contact;

typedef struct contact_list {
    contact *contacts;
    size_t count, capacity;
} contact_list;

/* The best contacts of a pair so far. */
typedef struct chosen {
    int found[DIRECTIONS + 1];
    double score[DIRECTIONS + 1];
    contact contacts[DIRECTIONS + 1];
} chosen;

/* --- Bodies --- */

static selkie_code find_responses(sk_step *step, soft_response **responses, selkie_error *error)
{
    const sk_soft *soft = step->soft;
    SK_TRY(sk_step_scratch(step, ((size_t)soft->body_count + 1) * sizeof **responses, "bodies", (void **)responses,
                           error));
    for (int b = 0; b < soft->body_count; b++) {
        const sk_soft_body *body = &soft->bodies[b];
        const sk_soft_moments *m = &body->moments;
        soft_response *r = &(*responses)[b];
        double second[6];
        memset(r, 0, sizeof *r);
        r->is_linear = body->soft.mode != SELKIE_SOFT_RIGID;
        if (!(m->count > 0.0))
            continue;
        r->mass = m->count * body->mass;
        for (int i = 0, d = 0; d < 3; d++) {
            r->centre[d] = soft->states[b].position[d] + m->first[d] / m->count;
            for (int e = d; e < 3; e++, i++)
                second[i] = body->mass * (m->second[i] - m->first[d] * m->first[e] / m->count);
        }
        soft_set_moments(r, second);
    }
    return SELKIE_OK;
}

/* --- Finding contacts --- */

/* Outward normal of the surface near a point, now. */
static void normal_of(const sk_soft *soft, int b, uint32_t k, double normal[3])
{
    const double *r = soft->states[b].rotation;
    const float *n = soft->surfaces[k];
    for (int d = 0; d < 3; d++)
        normal[d] = r[3 * d] * (double)n[0] + r[3 * d + 1] * (double)n[1] + r[3 * d + 2] * (double)n[2];
}

static int is_there(const sk_soft *soft, uint32_t k)
{
    return soft->record[k] >= 0;
}

/* Keeps a contact if it is the deepest or lies farthest along one of the directions. */
static void choose(chosen *best, const contact *found, const double at[3])
{
    static const double turns[8][2] = {{1, 0.1}, {-1, -0.1}, {0.1, 1},  {-0.1, -1},
                                       {1, 1.1}, {-1, -1.1}, {1, -0.9}, {-1, 0.9}};
    for (int i = 0; i <= DIRECTIONS; i++) {
        double score = -found->gap;
        if (i < DIRECTIONS && SELKIE_DIM == 2)
            score = turns[i][0] * at[0] + turns[i][1] * at[1];
        else if (i < DIRECTIONS) {
            /* Tangential directions. */
            double along[2] = {0.0, 0.0};
            for (int d = 0; d < 3; d++) {
                along[0] += found->axes[1][d] * at[d];
                along[1] += found->axes[2][d] * at[d];
            }
            score = turns[i][0] * along[0] + turns[i][1] * along[1];
        }
        if (best->found[i] && !(score > best->score[i]))
            continue;
        best->found[i] = 1;
        best->score[i] = score;
        best->contacts[i] = *found;
    }
}

/* Tangents of a normal, the same for the same normal. */
static void set_axes(contact *c, const double normal[3])
{
    memcpy(c->axes[0], normal, sizeof c->axes[0]);
#if SELKIE_DIM == 3
    const int least = fabs(normal[0]) < fabs(normal[1]) ? (fabs(normal[0]) < fabs(normal[2]) ? 0 : 2)
                                                        : (fabs(normal[1]) < fabs(normal[2]) ? 1 : 2);
    double length2 = 0.0;
    for (int d = 0; d < 3; d++) {
        c->axes[1][d] = (d == least) - normal[least] * normal[d];
        length2 += c->axes[1][d] * c->axes[1][d];
    }
    for (int d = 0; d < 3; d++)
        c->axes[1][d] /= sqrt(length2);
    for (int d = 0; d < 3; d++)
        c->axes[2][d] = normal[(d + 1) % 3] * c->axes[1][(d + 2) % 3] - normal[(d + 2) % 3] * c->axes[1][(d + 1) % 3];
#else
    c->axes[1][0] = -normal[1];
    c->axes[1][1] = normal[0];
#endif
}

/* Completes a contact: what the impulses must reach. `velocity` is that of the other side. */
static void set_target(const sk_step *step, contact *c, double restitution)
{
    const double slop = allowed * step->grid.cell_size;
    double approach = 0.0;
    for (int d = 0; d < 3; d++)
        approach += c->axes[0][d] * c->start[d];
    /* An overlap of a long step gains no speed from a short one after it. */
    c->target =
        c->gap > 0.0 ? -c->gap / step->dt : recovery * fmax(-c->gap - slop, 0.0) / fmax(step->dt, step->last_dt);
    if (approach < -bounce_speed && approach < c->target)
        c->target = fmax(c->target, -restitution * approach);
}

/* Distance that the normal approach covers in the step, and a little more. */
static double reach_of(const sk_step *step, double approach)
{
    return fmax(-approach, 0.0) * step->dt + 0.1 * step->grid.cell_size;
}

/* What the search for contacts shares. */
typedef struct search {
    const sk_step *step;
    const soft_response *responses;
    const double *ahead;  /* m/s  added to all velocities */
    const uint8_t *sides; /* [outer points] bits of the sides of the domain within reach */

    /* Bits of the bodies with points in a cell, and within two cells of it: that of body b is b % 32. */
    uint32_t *bodies_in, *bodies_near;
} search;

/* Outer points of a body that may touch a side of the domain, an obstacle or another body, and their best contacts.
 * Threads take one at a time; those with the same partner are joined in order. */
typedef enum partner_kind { SIDE, OBSTACLE, BODY } partner_kind;
typedef struct contact_task {
    int body, partner;
    partner_kind kind;
    uint32_t begin, end; /* of `outer` */
    chosen best;
} contact_task;

enum { TASK_POINTS = 1024 };

typedef struct task_list {
    contact_task *tasks;
    size_t count;
} task_list;

/* Gap of a point's surface to a side of the domain (m), and the velocity away from it (m/s). */
static double gap_to_side(const search *in, uint32_t k, int side, double *away)
{
    const sk_soft_point *point = &in->step->soft->points[k];
    const int axis = side / 2;
    const double sign = side % 2 ? -1.0 : 1.0, wall = side % 2 ? in->step->grid.high[axis] : in->step->grid.low[axis];
    *away = sign * (point->velocity[axis] + in->ahead[axis]);
    return sign * (point->position[axis] - wall) - (double)in->step->soft->surfaces[k][3];
}

static uint8_t sides_near(const search *in, uint32_t k)
{
    uint8_t found = 0;
    for (int side = 0; side < 2 * SELKIE_DIM && is_there(in->step->soft, k); side++) {
        double away;
        const double gap = gap_to_side(in, k, side, &away);
        if (in->step->scene->domain.walls[side] != SELKIE_WALL_OPEN && gap <= reach_of(in->step, away))
            found |= (uint8_t)(1 << side);
    }
    return found;
}

/* Contacts of a body with a closed side of the domain. */
static void meet_side(const search *in, contact_task *task)
{
    const int b = task->body, side = task->partner;
    const sk_soft *soft = in->step->soft;
    const sk_soft_body *body = &soft->bodies[b];
    const int axis = side / 2;
    double normal[3] = {0.0, 0.0, 0.0};
    normal[axis] = side % 2 ? -1.0 : 1.0;
    for (uint32_t n = task->begin; n < task->end; n++) {
        const uint32_t k = soft->outer[n];
        double own[3], away;
        contact c = {.body = {b, -1}, .friction = body->def->friction};
        if (!(in->sides[n] >> side & 1))
            continue;
        c.gap = gap_to_side(in, k, side, &away);
        normal_of(soft, b, k, own);
        if (own[axis] * normal[axis] > -0.2 && c.gap > 0.0)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++) {
            c.start[d] = soft->points[k].velocity[d] + in->ahead[d];
            c.arm[0][d] = soft->points[k].position[d] - in->responses[b].centre[d];
        }
        set_axes(&c, normal);
        set_target(in->step, &c, body->def->restitution);
        choose(&task->best, &c, c.arm[0]);
    }
}

/* Contacts of a body with an obstacle, or a rigid body, at the end of the step. */
static void meet_obstacle(const search *in, contact_task *task)
{
    const sk_step *step = in->step;
    const sk_obstacle *obstacle = &step->solids.obstacles[task->partner];
    const int b = task->body;
    const sk_soft *soft = step->soft;
    const sk_soft_body *body = &soft->bodies[b];
    for (uint32_t n = task->begin; n < task->end; n++) {
        const uint32_t k = soft->outer[n];
        const sk_soft_point *point = &soft->points[k];
        const double room = 2.0 * step->grid.cell_size;
        double normal[3], local[3], turned[3], relative[3] = {0.0, 0.0, 0.0}, approach = 0.0;
        contact c = {.body = {b, -1}, .friction = body->def->friction};
        int near = is_there(soft, k);
        for (int d = 0; d < SELKIE_DIM && near; d++)
            near &= point->position[d] > obstacle->swept_low[d] - room &&
                    point->position[d] < obstacle->swept_high[d] + room;
        if (!near)
            continue;
        sk_pose_to_local(&obstacle->start, point->position, local);
        c.gap = sk_shape_distance_within(obstacle->shape, local, room, turned) - (double)soft->surfaces[k][3];
        sk_pose_rotate(&obstacle->start, turned, normal);
        if (obstacle->moves)
            sk_pose_velocity(&obstacle->start, point->position, relative);
        for (int d = 0; d < SELKIE_DIM; d++) {
            c.start[d] = point->velocity[d] + in->ahead[d] - relative[d];
            approach += normal[d] * c.start[d];
            c.arm[0][d] = point->position[d] - in->responses[b].centre[d];
        }
        if (c.gap > reach_of(step, approach))
            continue;
        set_axes(&c, normal);
        set_target(step, &c, body->def->restitution);
        choose(&task->best, &c, c.arm[0]);
    }
}

/* The point of body `other` in a cell that is nearest to x, if nearer than the best so far. */
static void look_into(const sk_step *step, sk_plain_cell cell, const double x[3], int other, double *least,
                      int64_t *best)
{
    const sk_soft *soft = step->soft;
    const uint32_t wanted = (uint32_t)soft->bodies[other].number + 1;
    uint32_t begin, end;
    sk_plain_particles(&step->grid, cell, &begin, &end);
    for (uint32_t p = begin; p < end; p++) {
        const uint32_t k = step->particles.records[p].id - soft->first_id;
        double distance2 = 0.0;
        if (soft->owner[p] != wanted || k >= soft->point_count)
            continue;
        for (int d = 0; d < SELKIE_DIM; d++)
            distance2 += (soft->points[k].position[d] - x[d]) * (soft->points[k].position[d] - x[d]);
        if (distance2 < *least || (distance2 == *least && (int64_t)k < *best)) {
            *least = distance2;
            *best = (int64_t)k;
        }
    }
}

/* The point of body `other` nearest to a position; -1 = none within two cells around. Near cells come first, so that
 * most of the others are too far away. */
static int64_t nearest_point(const search *in, const double x[3], int other)
{
    static const int order[5] = {0, -1, 1, -2, 2};
    const sk_grid *grid = &in->step->grid;
    const double h = grid->cell_size;
    const uint32_t bit = 1u << (other & 31);
    int at[3] = {0, 0, 0};
    double least = INFINITY, gap2[3][5] = {{0.0}};
    int64_t best = -1;
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)floor((x[d] - grid->corner[d]) / h);
    const sk_plain_cell own = sk_plain_find(grid, at);
    if (own.slot && !(in->bodies_near[sk_plain_index(own)] & bit))
        return -1;

    /* Squared distances to cells along the axes, a little less since positions are rounded for the sort. */
    for (int d = 0; d < SELKIE_DIM; d++)
        for (int i = 0; i < 5; i++) {
            const double low = grid->corner[d] + (at[d] + order[i]) * h - 1e-3 * h, high = low + 1.002 * h;
            const double gap = x[d] < low ? low - x[d] : x[d] > high ? x[d] - high : 0.0;
            gap2[d][i] = gap * gap;
        }
    for (int k = 0; k < (SELKIE_DIM == 3 ? 5 : 1); k++)
        for (int j = 0; j < 5 && gap2[2][k] <= least; j++)
            for (int i = 0; i < 5 && gap2[1][j] + gap2[2][k] <= least; i++) {
                const int there[3] = {at[0] + order[i], at[1] + order[j], at[2] + order[k]};
                if (gap2[0][i] + gap2[1][j] + gap2[2][k] > least)
                    continue;
                const sk_plain_cell cell = sk_plain_find(grid, there);
                if (in->bodies_in[sk_plain_index(cell)] & bit)
                    look_into(in->step, cell, x, other, &least, &best);
            }
    return best;
}

/* Contacts of the points of a body with the surface of another. */
static void meet_body(const search *in, contact_task *task)
{
    const sk_step *step = in->step;
    const int a = task->body, b = task->partner;
    const sk_soft *soft = step->soft;
    const sk_soft_body *body = &soft->bodies[a], *other = &soft->bodies[b];
    const double h = step->grid.cell_size;
    for (uint32_t n = task->begin; n < task->end; n++) {
        const uint32_t k = soft->outer[n];
        const sk_soft_point *point = &soft->points[k];
        double own[3], normal[3], approach = 0.0;
        int near = is_there(soft, k);
        for (int d = 0; d < SELKIE_DIM && near; d++)
            near &= point->position[d] > other->low[d] - 1.0 * h && point->position[d] < other->high[d] + 1.0 * h;
        const int64_t j = near ? nearest_point(in, point->position, b) : -1;
        if (j < 0)
            continue;

        /* The gap between the planes of the two surfaces. */
        contact c = {.body = {a, b},
                     .friction = sqrt(body->def->friction * other->def->friction),
                     .gap = -(double)soft->surfaces[j][3] - (double)soft->surfaces[k][3]};
        double facing = 0.0;
        normal_of(soft, a, k, own);
        normal_of(soft, b, (uint32_t)j, normal);
        for (int d = 0; d < SELKIE_DIM; d++) {
            facing += own[d] * normal[d];
            c.gap += normal[d] * (point->position[d] - soft->points[j].position[d]);
            c.start[d] = point->velocity[d] - soft->points[j].velocity[d];
            approach += normal[d] * c.start[d];
            c.arm[0][d] = point->position[d] - in->responses[a].centre[d];
            c.arm[1][d] = point->position[d] - in->responses[b].centre[d];
        }
        if (facing > -0.3 || c.gap > reach_of(step, approach))
            continue;
        set_axes(&c, normal);
        set_target(step, &c, fmax(body->def->restitution, other->def->restitution));
        choose(&task->best, &c, c.arm[0]);
    }
}

static selkie_code take(sk_step *step, contact_list *list, const chosen *best, selkie_error *error)
{
    SK_TRY(sk_reserve(step->memory, (void **)&list->contacts, &list->capacity, list->count + DIRECTIONS + 1,
                      sizeof *list->contacts, "bodies", error));
    for (int i = 0; i <= DIRECTIONS; i++) {
        int again = 0;
        for (int j = 0; j < i && best->found[i]; j++)
            again |= best->found[j] &&
                     memcmp(best->contacts[i].arm, best->contacts[j].arm, sizeof best->contacts[i].arm) == 0;
        if (best->found[i] && !again)
            list->contacts[list->count++] = best->contacts[i];
    }
    return SELKIE_OK;
}

static int boxes_near(const double low_a[3], const double high_a[3], const double low_b[3], const double high_b[3],
                      double room)
{
    int near = 1;
    for (int d = 0; d < SELKIE_DIM; d++)
        near &= low_a[d] < high_b[d] + room && low_b[d] < high_a[d] + room;
    return near;
}

/* Finds the outer points near the sides of the domain. */
static selkie_code find_sides(sk_step *step, search *in, selkie_error *error)
{
    const sk_soft *soft = step->soft;
    const sk_soft_body *last = &soft->bodies[soft->body_count - 1];
    const int64_t count = soft->body_count ? (int64_t)last->first_outer + (int64_t)last->outer_count : 0;
    uint8_t *sides;
    SK_TRY(sk_step_scratch(step, (size_t)count + 1, "bodies", (void **)&sides, error));
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int64_t n = 0; n < count; n++)
        sides[n] = sides_near(in, soft->outer[n]);
    in->sides = sides;
    return SELKIE_OK;
}

/* --- Cells of bodies --- */

SK_TILE_LOADER(load_bits, uint32_t)

/* Marks the cells within two cells of those with points. */
static void spread_bits(const search *in, int block)
{
    enum { N = SK_TILE_N(2), VALUES = SK_TILE_VALUES(2) };
    static const int strides[3] = {1, N, N * N};
    uint32_t tile[VALUES], wide[VALUES];
    load_bits(&in->step->grid, in->bodies_in, block, 2, tile);
    for (int d = 0; d < SELKIE_DIM; d++) {
        const int stride = strides[d];
        memset(wide, 0, sizeof wide);
        for (int n = 2 * stride; n < VALUES - 2 * stride; n++)
            wide[n] = tile[n - 2 * stride] | tile[n - stride] | tile[n] | tile[n + stride] | tile[n + 2 * stride];
        memcpy(tile, wide, sizeof tile);
    }
    for (int c = 0; c < SK_BLOCK_CELLS; c++) {
        const int i = sk_plain_along(c, 0), j = sk_plain_along(c, 1), k = SELKIE_DIM == 3 ? sk_plain_along(c, 2) : 0;
        in->bodies_near[(size_t)block * SK_BLOCK_CELLS + (size_t)c] = tile[SK_TILE_ORIGIN(2) + i + N * (j + N * k)];
    }
}

/* Finds the bodies in and near the cells, where there is more than one. */
static selkie_code mark_bodies(sk_step *step, search *in, selkie_error *error)
{
    const sk_soft *soft = step->soft;
    const sk_grid *grid = &step->grid;
    const size_t blocks = (size_t)grid->block_count, bytes = blocks * SK_BLOCK_CELLS * sizeof(uint32_t);
    uint32_t *in_block, *bits_of;
    SK_TRY(sk_step_scratch(step, bytes, "bodies", (void **)&in->bodies_in, error));
    SK_TRY(sk_step_scratch(step, bytes, "bodies", (void **)&in->bodies_near, error));
    SK_TRY(sk_step_scratch(step, blocks * sizeof *in_block, "bodies", (void **)&in_block, error));
    SK_TRY(sk_step_scratch(step, (size_t)soft->wet_count * sizeof *bits_of, "bodies", (void **)&bits_of, error));
    memset(bits_of, 0, (size_t)soft->wet_count * sizeof *bits_of);
    for (int b = 0; b < soft->body_count; b++)
        bits_of[soft->bodies[b].number + 1] = 1u << (b & 31);
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 0; b < grid->block_count; b++) {
        in_block[b] = 0;
        SK_PLAIN_EACH_CELL(cell, b)
        {
            uint32_t begin, end, bits = 0;
            sk_plain_particles(grid, cell, &begin, &end);
            for (uint32_t p = begin; p < end; p++)
                bits |= bits_of[soft->owner[p]];
            in->bodies_in[sk_plain_index(cell)] = bits;
            in_block[b] |= bits;
        }
    }
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 4)
    for (int b = 0; b < grid->block_count; b++) {
        uint32_t bits = 0;
        for (int n = 0; n < SK_NEIGHBOURS; n++)
            bits |= in_block[grid->neighbours[b][n]];
        if (soft->body_count > 32 || bits & (bits - 1)) /* two bodies may share a bit */
            spread_bits(in, b);
        else
            memset(in->bodies_near + (size_t)b * SK_BLOCK_CELLS, 0, SK_BLOCK_CELLS * sizeof *in->bodies_near);
    }
    return SELKIE_OK;
}

/* --- All contacts --- */

static selkie_code add_tasks(sk_step *step, task_list *list, int body, partner_kind kind, int partner,
                             selkie_error *error)
{
    sk_soft *soft = step->soft;
    const sk_soft_body *own = &soft->bodies[body];
    const uint32_t last = own->first_outer + own->outer_count;
    SK_TRY(sk_reserve(step->memory, &soft->tasks, &soft->task_capacity,
                      list->count + own->outer_count / TASK_POINTS + 1, sizeof *list->tasks, "bodies", error));
    list->tasks = soft->tasks;
    for (uint32_t n = own->first_outer; n < last; n += TASK_POINTS) {
        contact_task *task = &list->tasks[list->count++];
        task->body = body;
        task->kind = kind;
        task->partner = partner;
        task->begin = n;
        task->end = last - n < TASK_POINTS ? last : n + TASK_POINTS;
        memset(task->best.found, 0, sizeof task->best.found);
    }
    return SELKIE_OK;
}

/* The tasks of all bodies. `pairs`: whether two bodies may meet. */
static selkie_code list_tasks(sk_step *step, const search *in, task_list *list, int *pairs, selkie_error *error)
{
    const sk_soft *soft = step->soft;
    const double room = 2.0 * step->grid.cell_size;
    *pairs = 0;
    for (int a = 0; a < soft->body_count; a++) {
        const sk_soft_body *body = &soft->bodies[a];
        uint8_t sides = 0;
        for (uint32_t n = body->first_outer; n < body->first_outer + body->outer_count; n++)
            sides |= in->sides[n];
        for (int side = 0; side < 2 * SELKIE_DIM; side++)
            if (sides >> side & 1)
                SK_TRY(add_tasks(step, list, a, SIDE, side, error));
        for (int o = 0; o < step->solids.obstacle_count; o++) {
            const sk_obstacle *obstacle = &step->solids.obstacles[o];
            if (boxes_near(body->low, body->high, obstacle->swept_low, obstacle->swept_high, room))
                SK_TRY(add_tasks(step, list, a, OBSTACLE, o, error));
        }
        for (int b = 0; b < soft->body_count; b++) {
            if (a == b || !boxes_near(body->low, body->high, soft->bodies[b].low, soft->bodies[b].high, room))
                continue;
            *pairs = 1;
            SK_TRY(add_tasks(step, list, a, BODY, b, error));
        }
    }
    return SELKIE_OK;
}

static void run_task(const search *in, contact_task *task)
{
    if (task->kind == SIDE)
        meet_side(in, task);
    else if (task->kind == OBSTACLE)
        meet_obstacle(in, task);
    else
        meet_body(in, task);
}

/* Adds the best contacts of later points. */
static void join(chosen *best, const chosen *later)
{
    for (int i = 0; i <= DIRECTIONS; i++) {
        if (!later->found[i] || (best->found[i] && !(later->score[i] > best->score[i])))
            continue;
        best->found[i] = 1;
        best->score[i] = later->score[i];
        best->contacts[i] = later->contacts[i];
    }
}

static selkie_code list_contacts(sk_step *step, search *in, contact_list *list, selkie_error *error)
{
    task_list todo = {0};
    int pairs;
    SK_TRY(find_sides(step, in, error));
    SK_TRY(list_tasks(step, in, &todo, &pairs, error));
    if (pairs)
        SK_TRY(mark_bodies(step, in, error));
#pragma omp parallel for num_threads(step->threads) schedule(dynamic, 1)
    for (size_t n = 0; n < todo.count; n++)
        run_task(in, &todo.tasks[n]);

    for (size_t n = 0, next; n < todo.count; n = next) {
        contact_task *task = &todo.tasks[n];
        for (next = n + 1; next < todo.count; next++) {
            const contact_task *later = &todo.tasks[next];
            if (later->body != task->body || later->kind != task->kind || later->partner != task->partner)
                break;
            join(&task->best, &later->best);
        }
        SK_TRY(take(step, list, &task->best, error));
    }
    return SELKIE_OK;
}

/* --- Solving them --- */

/* Change of the relative velocity along an axis by a unit impulse along it. */
static double compliance(const soft_response *responses, const contact *c, int axis)
{
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        double change[3];
        if (c->body[side] < 0)
            continue;
        soft_answer(&responses[c->body[side]], c->axes[axis], c->arm[side], c->arm[side], change);
        for (int d = 0; d < SELKIE_DIM; d++)
            sum += c->axes[axis][d] * change[d];
    }
    return sum;
}

/* Relative velocity along an axis, with the impulses so far. */
static double velocity_along(const soft_response *responses, const contact *c, int axis)
{
    double sum = 0.0;
    for (int d = 0; d < SELKIE_DIM; d++)
        sum += c->axes[axis][d] * c->start[d];
    for (int side = 0; side < 2; side++) {
        double change[3];
        if (c->body[side] < 0)
            continue;
        soft_change(&responses[c->body[side]], c->arm[side], change);
        for (int d = 0; d < SELKIE_DIM; d++)
            sum += (side ? -1.0 : 1.0) * c->axes[axis][d] * change[d];
    }
    return sum;
}

static void push_pair(soft_response *responses, contact *c, int axis, double impulse)
{
    double vector[3];
    c->impulse[axis] += impulse;
    for (int side = 0; side < 2; side++) {
        for (int d = 0; d < 3; d++)
            vector[d] = (side ? -impulse : impulse) * c->axes[axis][d];
        if (c->body[side] >= 0)
            soft_push(&responses[c->body[side]], vector, c->arm[side]);
    }
}

/* Sweeps of impulses, normal ones not negative, tangential ones within Coulomb's bound. */
static void solve(soft_response *responses, contact_list *list)
{
    for (size_t n = 0; n < list->count; n++)
        for (int axis = 0; axis < SELKIE_DIM; axis++)
            list->contacts[n].ease[axis] = 1.0 / compliance(responses, &list->contacts[n], axis);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t n = 0; n < list->count; n++) {
            contact *c = &list->contacts[n];
            const double wanted = c->ease[0] * (c->target - velocity_along(responses, c, 0));
            push_pair(responses, c, 0, fmax(c->impulse[0] + wanted, 0.0) - c->impulse[0]);
            for (int axis = 1; axis < SELKIE_DIM; axis++) {
                const double most = c->friction * c->impulse[0];
                const double stop = c->impulse[axis] - c->ease[axis] * velocity_along(responses, c, axis);
                push_pair(responses, c, axis, fmax(fmin(stop, most), -most) - c->impulse[axis]);
            }
        }
}

selkie_code SK_DIM(sk_soft_find_answers)(sk_step *step, const double ahead[3], struct soft_response **answers,
                                         selkie_error *error)
{
    sk_soft *soft = step->soft;
    soft_response *responses;
    contact_list list = {0};
    *answers = NULL;
    soft->owner = sk_particles_find_attribute(&step->particles, "body")->data;
    SK_TRY(find_responses(step, &responses, error));
    search in = {.step = step, .responses = responses, .ahead = ahead};
    const selkie_code code = list_contacts(step, &in, &list, error);
    if (code == SELKIE_OK && list.count) {
        solve(responses, &list);
        *answers = responses;
    }
    sk_release(step->memory, list.contacts);
    return code;
}

selkie_code SK_DIM(sk_soft_meet)(sk_step *step, selkie_error *error)
{
    const double none[3] = {0.0, 0.0, 0.0};
    const sk_soft *soft = step->soft;
    soft_response *answers;
    SK_TRY(SK_DIM(sk_soft_find_answers)(step, none, &answers, error));
    if (!answers)
        return SELKIE_OK;
#pragma omp parallel for num_threads(step->threads) schedule(static)
    for (int s = 0; s < soft->span_count; s++)
        for (uint32_t k = soft->spans[s].begin; k < soft->spans[s].end; k++) {
            double change[3];
            soft_change_at(&answers[soft->spans[s].body], soft->points[k].position, change);
            for (int d = 0; d < SELKIE_DIM; d++)
                soft->points[k].velocity[d] += change[d];
        }
    return SELKIE_OK;
}

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
    c->target = c->gap > 0.0 ? -c->gap / step->dt : recovery * fmax(-c->gap - slop, 0.0) / step->dt;
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
} search;

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
static void meet_walls(const search *in, int b, int side, chosen *best)
{
    const sk_soft *soft = in->step->soft;
    const sk_soft_body *body = &soft->bodies[b];
    const int axis = side / 2;
    double normal[3] = {0.0, 0.0, 0.0};
    normal[axis] = side % 2 ? -1.0 : 1.0;
    for (uint32_t n = body->first_outer; n < body->first_outer + body->outer_count; n++) {
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
        choose(best, &c, c.arm[0]);
    }
}

/* Contacts of a body with an obstacle, or a rigid body, at the end of the step. */
static void meet_obstacle(const search *in, int b, const sk_obstacle *obstacle, chosen *best)
{
    const sk_step *step = in->step;
    const sk_soft *soft = step->soft;
    const sk_soft_body *body = &soft->bodies[b];
    for (uint32_t n = body->first_outer; n < body->first_outer + body->outer_count; n++) {
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
        choose(best, &c, c.arm[0]);
    }
}

/* The point of body `other` nearest to a position; -1 = none within `cells` cells around. */
static int64_t nearest_point(const sk_step *step, const double x[3], int other, int cells)
{
    const sk_soft *soft = step->soft;
    const sk_grid *grid = &step->grid;
    const uint32_t *owner = soft->owner;
    const uint32_t wanted = (uint32_t)soft->bodies[other].number + 1;
    int at[3] = {0, 0, 0}, offset[3];
    double least = INFINITY;
    int64_t best = -1;
    for (int d = 0; d < SELKIE_DIM; d++)
        at[d] = (int)floor((x[d] - grid->corner[d]) / grid->cell_size);
    for (offset[2] = SELKIE_DIM == 3 ? -cells : 0; offset[2] <= (SELKIE_DIM == 3 ? cells : 0); offset[2]++)
        for (offset[1] = -cells; offset[1] <= cells; offset[1]++)
            for (offset[0] = -cells; offset[0] <= cells; offset[0]++) {
                const int cell[3] = {at[0] + offset[0], at[1] + offset[1], at[2] + offset[2]};
                uint32_t begin, end;
                sk_plain_particles(grid, sk_plain_find(grid, cell), &begin, &end);
                for (uint32_t p = begin; p < end; p++) {
                    const uint32_t k = step->particles.records[p].id - soft->first_id;
                    double distance2 = 0.0;
                    if (owner[p] != wanted || k >= soft->point_count)
                        continue;
                    for (int d = 0; d < SELKIE_DIM; d++)
                        distance2 += (soft->points[k].position[d] - x[d]) * (soft->points[k].position[d] - x[d]);
                    if (distance2 < least || (distance2 == least && (int64_t)k < best)) {
                        least = distance2;
                        best = (int64_t)k;
                    }
                }
            }
    return best;
}

/* Contacts of the points of body a with the surface of body b. */
static void meet_body(const search *in, int a, int b, chosen *best)
{
    const sk_step *step = in->step;
    const sk_soft *soft = step->soft;
    const sk_soft_body *body = &soft->bodies[a], *other = &soft->bodies[b];
    const double h = step->grid.cell_size;
    for (uint32_t n = body->first_outer; n < body->first_outer + body->outer_count; n++) {
        const uint32_t k = soft->outer[n];
        const sk_soft_point *point = &soft->points[k];
        double own[3], normal[3], approach = 0.0;
        int near = is_there(soft, k);
        for (int d = 0; d < SELKIE_DIM && near; d++)
            near &= point->position[d] > other->low[d] - 1.0 * h && point->position[d] < other->high[d] + 1.0 * h;
        const int64_t j = near ? nearest_point(step, point->position, b, 2) : -1;
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
        choose(best, &c, c.arm[0]);
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

static selkie_code list_contacts(sk_step *step, search *in, contact_list *list, selkie_error *error)
{
    sk_soft *soft = step->soft;
    const double room = 2.0 * step->grid.cell_size;
    SK_TRY(find_sides(step, in, error));
    for (int a = 0; a < soft->body_count; a++) {
        const sk_soft_body *body = &soft->bodies[a];
        for (int side = 0; side < 2 * SELKIE_DIM; side++) {
            chosen best = {0};
            meet_walls(in, a, side, &best);
            SK_TRY(take(step, list, &best, error));
        }
        for (int o = 0; o < step->solids.obstacle_count; o++) {
            chosen best = {0};
            const sk_obstacle *obstacle = &step->solids.obstacles[o];
            if (!boxes_near(body->low, body->high, obstacle->swept_low, obstacle->swept_high, room))
                continue;
            meet_obstacle(in, a, obstacle, &best);
            SK_TRY(take(step, list, &best, error));
        }
        for (int b = 0; b < soft->body_count; b++) {
            chosen best = {0};
            if (a == b || !boxes_near(body->low, body->high, soft->bodies[b].low, soft->bodies[b].high, room))
                continue;
            meet_body(in, a, b, &best);
            SK_TRY(take(step, list, &best, error));
        }
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

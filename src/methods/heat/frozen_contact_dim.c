/* Contacts of frozen bodies with sides and obstacles. frozen.h explains them.
 *
 * Particles are looked at where they would be after the step, obstacles where they are then. A path that enters an
 * obstacle stops at that side of it, however thin and fast it is.
 */
#include <math.h>
#include <string.h>

#include "base/dimension.h"
#include "geom/hit_kernels.h"
#include "geom/pose_kernels.h"
#include "methods/heat/frozen.h"
#include "methods/heat/frozen_kernels.h"

enum { MOST_CONTACTS = 12, MOST_NEAR = 64, SWEEPS = 8 };

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

/* Depth of a position in a closed side of the domain, or within `margin` of it (m). Others are not positive. */
static double depth_in_side(const sk_step *step, const double x[3], double margin, int side)
{
    const int d = side / 2, sign = side % 2 ? -1 : 1;
    const double depth = margin - sign * (x[d] - (side % 2 ? step->grid.high[d] : step->grid.low[d]));
    return step->scene->domain.walls[side] == SELKIE_WALL_OPEN ? 0.0 : depth;
}

/* What a search for contacts of a body shares. */
typedef struct touch_search {
    const sk_frozen_body *body;
    const sk_frozen_contact *contact;
    double rotation[9];
    int sides;                   /* bits of the sides of the domain that the body may reach */
    int near[MOST_NEAR], nearby; /* obstacles that it may reach, and their number; more than MOST_NEAR: all */
} touch_search;

/* Number n of the obstacles that the body may reach. */
static int number_of(const touch_search *in, int n)
{
    return in->nearby <= MOST_NEAR ? in->near[n] : n;
}

/* Sides of the domain, and obstacles, that the bounds of a body reach in the step. */
static void find_in_reach(const sk_step *step, touch_search *in)
{
    const sk_frozen_body *body = in->body;
    const double reach = 1.01 * in->contact->reach; /* a part of the margin for rounding */
    double lows[3], highs[3];                       /* m  on the way */
    in->sides = in->nearby = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        double low[3] = {0.0, 0.0, 0.0}, high[3] = {0.0, 0.0, 0.0};
        low[d] = high[d] = body->centre[d] + step->dt * in->contact->velocity[d];
        for (int e = 0; e < SELKIE_DIM; e++) {
            const double r = in->rotation[3 * d + e];
            const double one = r * (body->low[e] - body->centre[e]), other = r * (body->high[e] - body->centre[e]);
            low[d] += fmin(one, other);
            high[d] += fmax(one, other);
        }
        in->sides |= depth_in_side(step, low, reach, 2 * d) > 0.0 ? 1 << 2 * d : 0;
        in->sides |= depth_in_side(step, high, reach, 2 * d + 1) > 0.0 ? 2 << 2 * d : 0;
        lows[d] = fmin(low[d], body->low[d]) - reach;
        highs[d] = fmax(high[d], body->high[d]) + reach;
    }
    for (int o = 0; o < step->solids.obstacle_count && in->nearby <= MOST_NEAR; o++) {
        const sk_obstacle *obstacle = &step->solids.obstacles[o];
        int meets = 1;
        for (int d = 0; d < SELKIE_DIM; d++)
            meets &= obstacle->swept_low[d] < highs[d] && obstacle->swept_high[d] > lows[d];
        if (meets && in->nearby < MOST_NEAR)
            in->near[in->nearby] = o;
        in->nearby += meets;
    }
    if (in->nearby > MOST_NEAR)
        in->nearby = step->solids.obstacle_count;
}

/* Does a particle's path stay farther than `margin` (m) from all places of an obstacle in the step? */
static int passes(const sk_obstacle *obstacle, const float before[3], const double x[3], double margin)
{
    for (int d = 0; d < SELKIE_DIM; d++)
        if (fmax((double)before[d], x[d]) + margin < obstacle->swept_low[d] ||
            fmin((double)before[d], x[d]) - margin > obstacle->swept_high[d])
            return 1;
    return 0;
}

/* The path of a particle in the frame of an obstacle, which moves as well. Returns its length. */
static double find_path(const sk_obstacle *obstacle, const float before[3], const double x[3], double from[3],
                        double to[3])
{
    const double start[3] = {(double)before[0], (double)before[1], SELKIE_DIM == 3 ? (double)before[2] : 0.0};
    double length2 = 0.0;
    sk_pose_to_local(&obstacle->start, start, from);
    sk_pose_to_local(&obstacle->end, x, to);
    for (int d = 0; d < SELKIE_DIM; d++)
        length2 += (to[d] - from[d]) * (to[d] - from[d]);
    return sqrt(length2);
}

/* How deep a particle ends in an obstacle, or nearer to it than `margin`: behind the surface that its path meets, or
 * else in the one beside it. The outward normal is that of the end of the step. */
static double depth_in_obstacle(const sk_obstacle *obstacle, const float before[3], const double x[3], double margin,
                                double normal[3])
{
    double from[3], to[3], local[3], depth;
    sk_surface_hit hit;
    const double length = find_path(obstacle, before, x, from, to), room = length > margin ? length : margin;
    depth = margin - sk_shape_distance_within(obstacle->shape, to, 1.01 * room, local);
    if (depth < margin - room)
        return depth;
    if (length > 0.0 && sk_shape_first_hit(obstacle->shape, from, to, &hit)) {
        depth = margin;
        memcpy(local, hit.normal, sizeof local);
        for (int d = 0; d < SELKIE_DIM; d++)
            depth -= local[d] * (1.0 - hit.at) * (to[d] - from[d]);
    }
    sk_pose_rotate(&obstacle->end, local, normal);
    return depth;
}

/* May contacts_of_point() find one for a particle? */
static int may_touch(const sk_step *step, const touch_search *in, const float before[3])
{
    const double *r = in->rotation, *centre = in->body->centre, *v = in->contact->velocity;
    double x[3] = {0.0, 0.0, 0.0};
    int near = 0;
    for (int d = 0; d < SELKIE_DIM; d++) {
        if (!(in->sides >> 2 * d & 3))
            continue;
        x[d] = centre[d] + step->dt * v[d];
        for (int e = 0; e < SELKIE_DIM; e++)
            x[d] += r[3 * d + e] * ((double)before[e] - centre[e]);
        near |= depth_in_side(step, x, 1.01 * in->contact->reach, 2 * d) > 0.0 ||
                depth_in_side(step, x, 1.01 * in->contact->reach, 2 * d + 1) > 0.0;
    }
    if (near || !in->nearby)
        return near;
    sk_frozen_predict(in->body, v, r, step->dt, before, SELKIE_DIM, x);
    for (int n = 0; n < in->nearby && !near; n++) {
        const sk_obstacle *obstacle = &step->solids.obstacles[number_of(in, n)];
        double from[3], to[3], normal[3];
        if (passes(obstacle, before, x, 1.01 * in->contact->reach))
            continue;
        const double room = fmax(find_path(obstacle, before, x, from, to), in->contact->reach);
        near = sk_shape_distance_within(obstacle->shape, to, 1.01 * room, normal) < 1.01 * room;
    }
    return near;
}

/* Surfaces that a particle would be in at x, or nearer to than the margin, or on its way pass. */
static void contacts_of_point(const sk_step *step, const touch_search *in, const float before[3], const double x[3],
                              touch *list, int *count)
{
    const double margin = in->contact->reach;
    double normal[3] = {0.0, 0.0, 0.0};
    for (int side = 0; side < 2 * SELKIE_DIM; side++) {
        const double depth = depth_in_side(step, x, margin, side);
        if (!(depth > 0.0))
            continue;
        normal[side / 2] = side % 2 ? -1.0 : 1.0;
        add_contact(list, count, side, depth, x, normal);
        normal[side / 2] = 0.0;
    }
    for (int n = 0; n < in->nearby; n++) {
        const sk_obstacle *obstacle = &step->solids.obstacles[number_of(in, n)];
        if (passes(obstacle, before, x, margin))
            continue;
        const double depth = depth_in_obstacle(obstacle, before, x, margin, normal);
        if (depth > 0.0)
            add_contact(list, count, 6 + number_of(in, n), depth, x, normal);
    }
}

/* Contacts of the particles of a body that would go too far. Threads find the particles; their order stays. */
static int find_contacts(const sk_step *step, const sk_frozen *frozen, const sk_frozen_contact *c,
                         touch list[MOST_CONTACTS])
{
    const sk_frozen_body *body = &frozen->bodies[c->body];
    const uint32_t begin = frozen->first_member[c->body], end = frozen->first_member[c->body + 1];
    int count = 0;
    touch_search in = {.body = body, .contact = c};
    sk_frozen_turned(c->turning, step->dt, in.rotation);
    find_in_reach(step, &in);
    if (!in.sides && !in.nearby)
        return 0;
#pragma omp parallel for num_threads(step->threads) schedule(static) if (end - begin > SK_FROZEN_SPAN)
    for (uint32_t n = begin; n < end; n++)
        frozen->touching[n] = (uint8_t)may_touch(step, &in, frozen->before[frozen->members[n]]);
    for (uint32_t n = begin; n < end; n++) {
        double x[3];
        if (!frozen->touching[n])
            continue;
        const float *before = frozen->before[frozen->members[n]];
        sk_frozen_predict(body, c->velocity, in.rotation, step->dt, before, SELKIE_DIM, x);
        contacts_of_point(step, &in, before, x, list, &count);
    }
    return count;
}

void SK_DIM(sk_frozen_touch)(const sk_step *step, const sk_frozen *frozen, const sk_frozen_contact *c)
{
    const sk_frozen_body *body = &frozen->bodies[c->body];
    touch list[MOST_CONTACTS];
    const int count = find_contacts(step, frozen, c, list);
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

/* One path among obstacles, for the CPU and the GPU: see sweep.h.
 *
 * The includer defines how a shape is asked: SK_SWEEP_HIT(obstacle, a, b, hit) as sk_shape_first_hit, and
 * SK_SWEEP_WITHIN(obstacle, x, radius, normal) as sk_shape_distance_within, both in the obstacle's frame;
 * SK_SWEEP_PATH is a function that calls sk_sweep_path. */
#ifndef SK_GRID_SWEEP_PLAIN_H
#define SK_GRID_SWEEP_PLAIN_H

#include <math.h>
#include <string.h>

#include "grid/sweep.h"

SK_KERNEL int sk_sweep_lowest_bit(uint64_t bits)
{
#ifdef __CUDA_ARCH__
    return __ffsll((long long)bits) - 1;
#else
    return __builtin_ctzll(bits);
#endif
}

/* As fmax and fmin, which compilers may call as functions. */
SK_KERNEL double sk_sweep_most(double a, double b)
{
    return a > b ? a : b;
}

SK_KERNEL double sk_sweep_least(double a, double b)
{
    return a < b ? a : b;
}

/* Stops and slides of one path. Corners between three surfaces need three; more are needed in wedges. */
enum { SWEEP_ATTEMPTS = 8 };

/* A point of the path: its place (m) and its share of the step. */
typedef struct way_point {
    double x[3], share;
} way_point;

/* The first surface on a segment. */
typedef struct contact {
    const sk_obstacle *obstacle; /* NULL = none */
    double at;                   /* share of the segment at which the particle stops */
    double stop[3];              /* m  that place, in the obstacle's frame */
    double rest[3];              /* m  the rest of the segment in that frame */
    double normal[3];            /*    in that frame */
} contact;

SK_KERNEL void to_local(const sk_obstacle *obstacle, double share, const double x[3], double local[3])
{
    if (!obstacle->placed) {
        memcpy(local, x, 3 * sizeof *local);
    } else if (!obstacle->moves || share <= 0.0) {
        sk_pose_to_local(&obstacle->start, x, local);
    } else if (share >= 1.0) {
        sk_pose_to_local(&obstacle->end, x, local);
    } else {
        sk_pose pose;
        sk_pose_between(&obstacle->start, &obstacle->end, obstacle->turn, share, &pose);
        sk_pose_to_local(&pose, x, local);
    }
}

/* `direction`: rotates only. */
SK_KERNEL void to_world(const sk_obstacle *obstacle, double share, int direction, const double local[3], double x[3])
{
    sk_pose pose;
    if (!obstacle->placed) {
        for (int d = 0; d < 3; d++)
            x[d] = local[d];
        return;
    }
    sk_pose_between(&obstacle->start, &obstacle->end, obstacle->turn, share, &pose);
    if (direction)
        sk_pose_rotate(&pose, local, x);
    else
        sk_pose_to_world(&pose, local, x);
}

/* Can the segment meet the obstacle at any time of the step? Its box, then its ball. */
SK_KERNEL int may_meet(const sk_solids *solids, const sk_obstacle *obstacle, const double a[3], const double b[3])
{
    const double margin = 4.0 * SK_SWEEP_GAP * solids->cell_size;
    double apart2 = 0.0, reach = obstacle->reach + margin;
    for (int d = 0; d < solids->dimension; d++) {
        if (sk_sweep_most(a[d], b[d]) < obstacle->swept_low[d] - margin ||
            sk_sweep_least(a[d], b[d]) > obstacle->swept_high[d] + margin)
            return 0;
        const double apart = 0.5 * (a[d] + b[d]) - obstacle->middle[d];
        apart2 += apart * apart;
        reach += 0.5 * fabs(b[d] - a[d]);
    }
    return !(apart2 > reach * reach);
}

/* The obstacles that a path can meet, with its slides. */
enum { MOST_NEAR = 12 };
typedef struct near_obstacles {
    int count; /* -1 = more than fit: all of them */
    int16_t numbers[MOST_NEAR];
} near_obstacles;

/* 64 obstacles, by bit: those in the slices of the domain that a box reaches along every axis. */
SK_KERNEL uint64_t obstacles_in(const sk_solids *solids, const double low[3], const double high[3], size_t word)
{
    uint64_t all = UINT64_MAX;
    for (int d = 0; d < solids->dimension && all; d++) {
        const int last = sk_solids_bin(solids, d, high[d], 1);
        uint64_t along = 0;
        for (int bin = sk_solids_bin(solids, d, low[d], 0); bin <= last; bin++)
            along |= solids->bins[(size_t)(d * SK_SOLID_BINS + bin) * solids->bin_words + word];
        all &= along;
    }
    return all;
}

/* A slide along a surface is at most as long as the path and the way of the surface. */
SK_KERNEL near_obstacles find_near(const sk_solids *solids, const double from[3], const double to[3])
{
    const double h = solids->cell_size;
    near_obstacles near;
    double length2 = 0.0, low[3], high[3];
    near.count = 0;
    for (int d = 0; d < solids->dimension; d++)
        length2 += (to[d] - from[d]) * (to[d] - from[d]);
    const double reach = sqrt(length2) + ((double)solids->motion + 1.0) * h;
    for (int d = 0; d < solids->dimension; d++) {
        low[d] = sk_sweep_least(from[d], to[d]) - reach;
        high[d] = sk_sweep_most(from[d], to[d]) + reach;
    }
    for (size_t word = 0; word < solids->bin_words; word++)
        for (uint64_t left = obstacles_in(solids, low, high, word); left; left &= left - 1) {
            const int o = (int)(64 * word) + sk_sweep_lowest_bit(left);
            if (!may_meet(solids, &solids->obstacles[o], low, high))
                continue;
            if (near.count == MOST_NEAR) {
                near.count = -1;
                return near;
            }
            near.numbers[near.count++] = (int16_t)o;
        }
    return near;
}

SK_KERNEL int near_count(const sk_solids *solids, const near_obstacles *near)
{
    return near->count < 0 ? solids->obstacle_count : near->count;
}

SK_KERNEL const sk_obstacle *near_obstacle(const sk_solids *solids, const near_obstacles *near, int n)
{
    return &solids->obstacles[near->count < 0 ? n : near->numbers[n]];
}

/* The first contact with one obstacle, if it is earlier than the one found so far. The segment is made longer by the
 * gap, so that a path that ends just before a surface stops as well. */
SK_KERNEL void meet_obstacle(const sk_solids *solids, const sk_obstacle *obstacle, const way_point *from,
                             const way_point *to, contact *first)
{
    const double gap = SK_SWEEP_GAP * solids->cell_size;
    double a[3], b[3], beyond[3], length = 0.0, into = 0.0;
    sk_surface_hit hit;
    to_local(obstacle, from->share, from->x, a);
    to_local(obstacle, to->share, to->x, b);
    for (int d = 0; d < solids->dimension; d++)
        length += (b[d] - a[d]) * (b[d] - a[d]);
    length = sqrt(length);
    if (!(length > 0.0))
        return;
    for (int d = 0; d < 3; d++)
        beyond[d] = b[d] + gap / length * (b[d] - a[d]);
    if (!SK_SWEEP_HIT(obstacle, a, beyond, &hit))
        return;

    /* Back along the path until the surface is a gap away. */
    for (int d = 0; d < solids->dimension; d++)
        into -= hit.normal[d] * (b[d] - a[d]) / length;
    const double stop = sk_sweep_most(0.0, hit.at * (length + gap) - gap / sk_sweep_most(into, 1e-9));
    if (stop >= length || (first->obstacle && stop / length >= first->at))
        return;
    first->obstacle = obstacle;
    first->at = stop / length;
    for (int d = 0; d < 3; d++) {
        first->stop[d] = a[d] + first->at * (b[d] - a[d]);
        first->rest[d] = b[d] - first->stop[d];
        first->normal[d] = hit.normal[d];
    }
}

/* Can the segment meet any obstacle? Most particles near one do not, and need no list. */
SK_KERNEL int may_meet_any(const sk_solids *solids, const double from[3], const double to[3])
{
    const double margin = 4.0 * SK_SWEEP_GAP * solids->cell_size;
    double low[3], high[3];
    for (int d = 0; d < solids->dimension; d++) {
        low[d] = sk_sweep_least(from[d], to[d]) - margin;
        high[d] = sk_sweep_most(from[d], to[d]) + margin;
    }
    for (size_t word = 0; word < solids->bin_words; word++)
        for (uint64_t left = obstacles_in(solids, low, high, word); left; left &= left - 1)
            if (may_meet(solids, &solids->obstacles[(int)(64 * word) + sk_sweep_lowest_bit(left)], from, to))
                return 1;
    return 0;
}

SK_KERNEL contact first_contact(const sk_solids *solids, const near_obstacles *near, const way_point *from,
                                const way_point *to)
{
    contact first;
    first.obstacle = NULL;
    for (int n = 0; n < near_count(solids, near); n++)
        if (may_meet(solids, near_obstacle(solids, near, n), from->x, to->x))
            meet_obstacle(solids, near_obstacle(solids, near, n), from, to, &first);
    return first;
}

SK_KERNEL void clamp_to_bounds(const sk_solids *solids, const sk_swept_path *path, double x[3])
{
    for (int d = 0; d < solids->dimension; d++)
        x[d] = sk_sweep_least(sk_sweep_most(x[d], (double)path->low[d]), (double)path->high[d]);
}

SK_KERNEL void note_touch(const sk_solids *solids, const sk_obstacle *obstacle, double share, const double normal[3],
                          sk_touch *touch)
{
    double world[3];
    to_world(obstacle, share, 1, normal, world);
    touch->obstacle = (int)(obstacle - solids->obstacles);
    for (int d = 0; d < 3; d++)
        touch->normal[d] = (float)world[d];
}

/* Follows the path, with stops and slides. */
SK_KERNEL int follow(const sk_solids *solids, const near_obstacles *near, const sk_swept_path *path, way_point *end,
                     sk_touch *touch)
{
    way_point here = {{path->from[0], path->from[1], path->from[2]}, path->begin};
    int touched = 0;
    for (int attempt = 0;; attempt++) {
        const contact met = first_contact(solids, near, &here, end);
        if (!met.obstacle)
            return touched;
        touched = 1;
        note_touch(solids, met.obstacle, end->share, met.normal, touch);

        /* Stop: the particle then moves with the obstacle. */
        double into = 0.0, target[3];
        here.share += met.at * (end->share - here.share);
        to_world(met.obstacle, here.share, 0, met.stop, here.x);
        for (int d = 0; d < 3; d++)
            into += met.rest[d] * met.normal[d];

        /* Slide: the rest of the path without its part into the surface; none at last. */
        for (int d = 0; d < 3; d++)
            target[d] = met.stop[d] +
                        (attempt < SWEEP_ATTEMPTS ? met.rest[d] - sk_sweep_least(into, 0.0) * met.normal[d] : 0.0);
        to_world(met.obstacle, end->share, 0, target, end->x);
        clamp_to_bounds(solids, path, end->x);
        if (attempt >= SWEEP_ATTEMPTS)
            return touched;
    }
}

/* Keeps the end of a path a gap off the surfaces, so that rounding cannot carry it across. A particle that was inside
 * an obstacle before is pushed out at the nearest side. */
SK_KERNEL int settle(const sk_solids *solids, const near_obstacles *near, const sk_swept_path *path, way_point *end,
                     sk_touch *touch)
{
    const double gap = SK_SWEEP_GAP * solids->cell_size;
    const contact none = {NULL, 0.0, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
    int pushed = 0;

    /* Each attempt treats all obstacles: a push away from one may lead into another. */
    for (int attempt = 0; attempt < SWEEP_ATTEMPTS; attempt++) {
        int moved = 0;
        for (int n = 0; n < near_count(solids, near); n++) {
            const sk_obstacle *obstacle = near_obstacle(solids, near, n);
            double local[3], normal[3] = {0.0, 0.0, 0.0};
            if (!may_meet(solids, obstacle, end->x, end->x))
                continue;
            to_local(obstacle, end->share, end->x, local);
            const double distance = SK_SWEEP_WITHIN(obstacle, local, gap, normal);
            if (distance >= 0.5 * gap || distance < -path->deepest)
                continue;

            /* Push the end out along the normal. */
            note_touch(solids, obstacle, end->share, normal, touch);
            way_point out = *end;
            for (int d = 0; d < solids->dimension; d++)
                out.x[d] += (gap - distance) * (double)touch->normal[d];
            clamp_to_bounds(solids, path, out.x);

            /* Between two surfaces closer than the gap the particle stays in the middle. */
            const contact other = distance > 0.0 ? first_contact(solids, near, end, &out) : none;
            const double share = other.obstacle ? 0.5 * other.at : 1.0;
            for (int d = 0; d < solids->dimension; d++)
                end->x[d] += share * (out.x[d] - end->x[d]);
            moved = 1;
        }
        pushed |= moved;
        if (!moved)
            break;
    }
    return pushed;
}

SK_KERNEL int sk_sweep_path(const sk_solids *solids, sk_swept_path *path, sk_touch *touch)
{
    way_point end = {{path->to[0], path->to[1], path->to[2]}, path->end};
    const double from[3] = {path->from[0], path->from[1], path->from[2]};
    touch->obstacle = -1;
    if (!may_meet_any(solids, from, end.x))
        return 0;
    const near_obstacles near = find_near(solids, from, end.x);
    const int touched = follow(solids, &near, path, &end, touch) | settle(solids, &near, path, &end, touch);
    for (int d = 0; touched && d < solids->dimension; d++)
        path->to[d] = (float)end.x[d];
    return touched;
}

SK_KERNEL void sk_sweep_stop_velocity(const sk_solids *solids, const sk_touch *touch, const float x[3],
                                      float velocity[3])
{
    const double point[3] = {x[0], x[1], x[2]};
    double wall[3] = {0.0, 0.0, 0.0}, into = 0.0;
    if (touch->obstacle < 0 || solids->obstacles[touch->obstacle].follows)
        return;
    if (solids->obstacles[touch->obstacle].moves)
        sk_pose_velocity(&solids->obstacles[touch->obstacle].end, point, wall);
    for (int d = 0; d < solids->dimension; d++)
        into += ((double)velocity[d] - wall[d]) * (double)touch->normal[d];
    for (int d = 0; into < 0.0 && d < solids->dimension; d++)
        velocity[d] -= (float)(into * (double)touch->normal[d]);
}

/* --- Displacements at the start of the step --- */

SK_KERNEL int sk_sweep_displaced(const sk_solids *solids, const float low[3], const float high[3], const float from[3],
                                 float to[3], double end)
{
    sk_swept_path path;
    sk_touch touch;
    path.begin = 0.0, path.end = end;
    path.deepest = INFINITY;
    for (int d = 0; d < 3; d++) {
        path.from[d] = d < solids->dimension ? from[d] : 0.0f;
        path.to[d] = d < solids->dimension ? to[d] : 0.0f;
        path.low[d] = low[d];
        path.high[d] = high[d];
    }
    const int touched = SK_SWEEP_PATH(solids, &path, &touch);
    for (int d = 0; touched && d < solids->dimension; d++)
        to[d] = path.to[d];
    return touched;
}

/* A particle that a correction has displaced from `before`. `path` has the bounds. */
SK_KERNEL void sk_sweep_moved(const sk_solids *solids, sk_swept_path *path, const float before[3],
                              sk_particle *particle)
{
    sk_touch touch;
    for (int d = 0; d < 3; d++) {
        path->from[d] = before[d];
        path->to[d] = particle->position[d];
    }
    path->deepest = particle->flags & SK_PARTICLE_INSIDE ? 0.5 * solids->cell_size : INFINITY;
    if (!SK_SWEEP_PATH(solids, path, &touch))
        return;
    for (int d = 0; d < solids->dimension; d++)
        particle->position[d] = path->to[d];
    particle->flags &= ~(uint32_t)SK_PARTICLE_INSIDE;
}

#endif

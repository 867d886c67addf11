#include "whitewater/obstacles.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "geom/shape.h"

/* Cells: half a cell's diagonal. Cells of the grid: the longest path of most substeps, and what is kept from a wall. */
static const double half_diagonal = 0.8661, path_cells = 3.0, kept_cells = 0.02;

/* Halves the cells: fewer particles then ask for exact distances. Those of moving obstacles are found in each step. */
static void refine(sk_foam_obstacles *o)
{
    const double most = 1 << 26;
    if (o->moving || 8.0 * o->cells[0] * o->cells[1] * o->cells[2] > most)
        return;
    for (int a = 0; a < 3; a++)
        o->cells[a] *= 2;
    o->cell_size *= 0.5;
    o->finer = 2;
}

selkie_code sk_foam_obstacles_create(const selkie_scene *scene, sk_foam_obstacles **obstacles, selkie_error *error)
{
    *obstacles = NULL;
    if (!scene->obstacle_count)
        return SELKIE_OK;
    double up[3];
    selkie_scene_up(scene, up);
    const size_t count = (size_t)scene->obstacle_count;
    const sk_shape_options options = {
        .dimension = scene->domain.dimension, .up = up, .folder = scene->folder, .what = "obstacle"};
    sk_foam_obstacles *o = sk_allocate_zeroed(NULL, sizeof *o);
    if (o) {
        o->cell_size = selkie_scene_cells(scene, o->cells);
        memcpy(o->origin, scene->domain.origin, sizeof o->origin);
        o->defs = scene->obstacles;
        o->shapes = sk_allocate_zeroed(NULL, count * sizeof(sk_shape *));
        o->poses = sk_allocate_zeroed(NULL, count * sizeof *o->poses);
        o->thin = sk_allocate_zeroed(NULL, count);
        o->finer = 1;
        for (size_t n = 0; n < count; n++)
            o->moving |= sk_obstacle_moves(&o->defs[n]);
        refine(o);
        o->inverse = (float)(1.0 / o->cell_size);
        o->kept = (float)(kept_cells * o->finer);
        o->distances = sk_allocate(NULL, (size_t)o->cells[0] * (size_t)o->cells[1] * (size_t)o->cells[2]);
    }
    selkie_code code = SELKIE_OK;
    if (!o || !o->shapes || !o->poses || !o->thin || !o->distances)
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "whitewater: no memory for %zu obstacles", count);
    for (size_t n = 0; n < count && !code; n++) {
        code = sk_shape_create(&o->defs[n].shape, &options, &o->shapes[n], error);
        if (code)
            break;
        o->count++;
        o->thin[n] =
            sk_shape_is_sheet(o->shapes[n]) || sk_shape_thickness(o->shapes[n]) < path_cells * o->finer * o->cell_size;
        o->any_thin |= o->thin[n];
    }
    if (code) {
        sk_foam_obstacles_destroy(o);
        return code;
    }
    *obstacles = o;
    return SELKIE_OK;
}

void sk_foam_obstacles_destroy(sk_foam_obstacles *o)
{
    if (!o)
        return;
    for (int n = 0; n < o->count; n++)
        sk_shape_destroy(o->shapes[n]);
    void *const arrays[] = {o->shapes, o->poses, o->thin, o->distances, o};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        sk_release(NULL, arrays[i]);
}

/* Cells that an obstacle in its pose may reach, from its bounds. Returns 0 if there are none. */
static int find_reach(const sk_foam_obstacles *o, int n, double margin, int from[3], int to[3])
{
    double low[3], high[3];
    int any = 1;
    sk_shape_bounds(o->shapes[n], low, high);
    double reach[2][3] = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    const int bounded = isfinite(low[0] + low[1] + low[2] + high[0] + high[1] + high[2]);
    for (int corner = 0; corner < 8 && bounded; corner++) {
        const double local[3] = {corner & 1 ? high[0] : low[0], corner & 2 ? high[1] : low[1],
                                 corner & 4 ? high[2] : low[2]};
        double world[3];
        sk_pose_to_world(&o->poses[n], local, world);
        for (int a = 0; a < 3; a++) {
            reach[0][a] = fmin(reach[0][a], world[a]);
            reach[1][a] = fmax(reach[1][a], world[a]);
        }
    }
    for (int a = 0; a < 3; a++) {
        const double first = bounded ? (reach[0][a] - o->origin[a]) / o->cell_size - margin : 0.0;
        const double last = bounded ? (reach[1][a] - o->origin[a]) / o->cell_size + margin : o->cells[a];
        from[a] = (int)fmin(fmax(floor(first), 0.0), o->cells[a]);
        to[a] = (int)fmin(fmax(ceil(last), 0.0), o->cells[a]);
        any &= from[a] < to[a];
    }
    return any;
}

/* Distances that matter are kept, rounded down; others stay far. */
static void add_distances(sk_foam_obstacles *o, int n, int threads)
{
    const double margin = half_diagonal + o->finer * (kept_cells + (o->thin[n] ? path_cells : 0.0));
    int from[3], to[3];
    if (!find_reach(o, n, margin, from, to))
        return;
    for (int a = 0; a < 3; a++) {
        o->low[a] = fminf(o->low[a], (float)(from[a] * o->cell_size));
        o->high[a] = fmaxf(o->high[a], (float)(to[a] * o->cell_size));
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int k = from[2]; k < to[2]; k++)
        for (int j = from[1]; j < to[1]; j++)
            for (int i = from[0]; i < to[0]; i++) {
                const double x[3] = {o->origin[0] + (i + 0.5) * o->cell_size, o->origin[1] + (j + 0.5) * o->cell_size,
                                     o->origin[2] + (k + 0.5) * o->cell_size};
                const double distance = sk_obstacle_distance(o->shapes[n], &o->poses[n], x, NULL) / o->cell_size;
                uint8_t *least = &o->distances[sk_foam_obstacles_cell(o, (const int[3]){i, j, k})];
                if (distance >= margin)
                    continue;
                const int parts = (int)floor(fmax(distance, 0.0) * SK_FOAM_DISTANCE_PARTS);
                *least = (uint8_t)(parts < *least ? parts : *least);
            }
}

void sk_foam_obstacles_move(sk_foam_obstacles *o, double time, int threads)
{
    if (o->placed && !o->moving)
        return;
    memset(o->distances, SK_FOAM_FAR, (size_t)o->cells[0] * (size_t)o->cells[1] * (size_t)o->cells[2]);
    for (int a = 0; a < 3; a++) {
        o->low[a] = INFINITY;
        o->high[a] = -INFINITY;
    }
    for (int n = 0; n < o->count; n++) {
        sk_pose_at(&o->defs[n], time, &o->poses[n]);
        add_distances(o, n, threads);
    }
    o->placed = 1;
}

/* Least distance (cells) of a point from the obstacles; INFINITY without one near. */
static float least_distance(const sk_foam_obstacles *o, const float x[3])
{
    int cell[3], within = 1;
    float square = 0.0f;
    for (int a = 0; a < 3; a++)
        within &= (x[a] >= o->low[a]) & (x[a] <= o->high[a]);
    if (!within)
        return INFINITY;
    for (int a = 0; a < 3; a++) {
        const float at = x[a] * o->inverse;
        cell[a] = (int)at;
        cell[a] = cell[a] < 0 ? 0 : cell[a] < o->cells[a] ? cell[a] : o->cells[a] - 1;
        const float off = at - (float)cell[a] - 0.5f;
        square += off * off;
    }
    const int parts = o->distances[sk_foam_obstacles_cell(o, cell)];
    return parts == SK_FOAM_FAR ? INFINITY : (float)parts / SK_FOAM_DISTANCE_PARTS - sqrtf(square);
}

int sk_foam_obstacles_risks(const sk_foam_obstacles *o, const float before[3], const float x[3])
{
    int risks = least_distance(o, x) < 1.001f * o->kept ? SK_FOAM_MAY_BE_INSIDE : 0;
    if (o->any_thin) {
        float square = 0.0f;
        for (int a = 0; a < 3; a++)
            square += (x[a] - before[a]) * (x[a] - before[a]);
        const float path = 1.001f * (sqrtf(square) * o->inverse + o->kept);
        if (least_distance(o, before) < path || least_distance(o, x) < path)
            risks |= SK_FOAM_MAY_CROSS;
    }
    return risks;
}

/* Removes the velocity into an obstacle. */
static void stop_at(const sk_pose *pose, const double x[3], const double normal[3], float velocity[3])
{
    double wall[3], into = 0.0;
    sk_pose_velocity(pose, x, wall);
    for (int a = 0; a < 3; a++)
        into += ((double)velocity[a] - wall[a]) * normal[a];
    for (int a = 0; a < 3 && into < 0.0; a++)
        velocity[a] -= (float)(into * normal[a]);
}

/* Ends the path of a particle at the first thin wall that it meets. */
static void stop_path(const sk_foam_obstacles *o, const float before[3], float position[3], float velocity[3])
{
    for (int n = 0; n < o->count; n++) {
        double a[3], b[3], world[2][3], normal[3];
        sk_surface_hit hit;
        if (!o->thin[n])
            continue;
        for (int d = 0; d < 3; d++) {
            world[0][d] = (double)before[d] + o->origin[d];
            world[1][d] = (double)position[d] + o->origin[d];
        }
        sk_pose_to_local(&o->poses[n], world[0], a);
        sk_pose_to_local(&o->poses[n], world[1], b);
        if (!sk_shape_first_hit(o->shapes[n], a, b, &hit))
            continue;
        sk_pose_rotate(&o->poses[n], hit.normal, normal);
        for (int d = 0; d < 3; d++) {
            world[1][d] =
                world[0][d] + hit.at * (world[1][d] - world[0][d]) + kept_cells * o->finer * o->cell_size * normal[d];
            position[d] = (float)(world[1][d] - o->origin[d]);
        }
        stop_at(&o->poses[n], world[1], normal, velocity);
    }
}

/* Is the nearest point of the surface exact? Then what is pushed out is outside. */
static int is_exact(const sk_foam_obstacles *o, int n)
{
    const selkie_shape_kind kind = o->defs[n].shape.kind;
    return kind == SELKIE_SHAPE_BOX || kind == SELKIE_SHAPE_SPHERE || kind == SELKIE_SHAPE_CYLINDER ||
           kind == SELKIE_SHAPE_HALF_SPACE;
}

/* Returns the last obstacle that the particle was in, from 1 on; 0 = none. */
static int push_out(const sk_foam_obstacles *o, float position[3], float velocity[3])
{
    int pushed = 0;
    for (int n = 0; n < o->count; n++) {
        double x[3], normal[3];
        for (int d = 0; d < 3; d++)
            x[d] = (double)position[d] + o->origin[d];
        const double depth =
            kept_cells * o->finer * o->cell_size - sk_obstacle_distance(o->shapes[n], &o->poses[n], x, normal);
        if (!(depth > 0.0))
            continue;
        for (int d = 0; d < 3; d++)
            position[d] = (float)(x[d] + depth * normal[d] - o->origin[d]);
        stop_at(&o->poses[n], x, normal, velocity);
        pushed = n + 1;
    }
    return pushed;
}

/* `pushed` is the obstacle that the particle has just left, from 1 on. */
static int is_inside(const sk_foam_obstacles *o, int pushed, const float position[3])
{
    double x[3];
    int inside = 0;
    for (int d = 0; d < 3; d++) {
        x[d] = (double)position[d] + o->origin[d];
        inside |= position[d] < 0.0f || (double)position[d] > o->cells[d] * o->cell_size;
    }
    for (int n = 0; n < o->count && !inside; n++)
        inside =
            (n + 1 != pushed || !is_exact(o, n)) && sk_obstacle_distance(o->shapes[n], &o->poses[n], x, NULL) < 0.0;
    return inside;
}

int sk_foam_obstacles_keep_out(const sk_foam_obstacles *o, int risks, const float before[3], float position[3],
                               float velocity[3])
{
    if (risks & SK_FOAM_MAY_CROSS) {
        stop_path(o, before, position, velocity);
        risks |= SK_FOAM_MAY_BE_INSIDE;
    }
    /* The way out of one may lead into another one, or out of the domain. */
    const int pushed = risks & SK_FOAM_MAY_BE_INSIDE ? push_out(o, position, velocity) : 0;
    return !pushed || !is_inside(o, pushed, position);
}

/* Obstacles in kernels: paths and distances of the device's shapes. Private to src/cuda; for files compiled per
 * dimension. On the device the `shape` of an obstacle is an sk_cuda_shape. */
#ifndef SK_CUDA_SOLIDS_PARTS_H
#define SK_CUDA_SOLIDS_PARTS_H

#include "cuda/grid_parts.h"
#include "grid/sweep.h"

SK_KERNEL const sk_cuda_shape *shape_on_device(const sk_obstacle *obstacle)
{
    return (const sk_cuda_shape *)(const void *)obstacle->shape;
}

#define SK_SWEEP_WITHIN(obstacle, x, radius, normal)                                                                   \
    sk_parts_distance(shape_on_device(obstacle)->parts, shape_on_device(obstacle)->count, x, radius, normal)
#define SK_SOLIDS_SHAPE_DISTANCE(obstacle, x, normal) SK_SWEEP_WITHIN(obstacle, x, -1.0, normal)
#define SK_SWEEP_HIT(obstacle, a, b, hit)                                                                              \
    sk_parts_first_hit(shape_on_device(obstacle)->parts, shape_on_device(obstacle)->count, a, b, hit)
#define SK_SWEEP_PATH sweep_once

static __host__ __device__ __noinline__ int sweep_once(const sk_solids *solids, sk_swept_path *path, sk_touch *touch);
#include "grid/solids_plain.h"
#include "grid/sweep_plain.h"

static __host__ __device__ __noinline__ int sweep_once(const sk_solids *solids, sk_swept_path *path, sk_touch *touch)
{
    return sk_sweep_path(solids, path, touch);
}

/* Both are long; they are compiled once. */
static __host__ __device__ __noinline__ double distance_once(const sk_solids *solids, const double x[3],
                                                             double normal[3], int *obstacle)
{
    return distance_of_solids(solids, x, normal, obstacle);
}

/* Is a cell inside of an obstacle? */
SK_DEVICE int is_inside_obstacle(const sk_solids *solids, sk_plain_cell cell)
{
    return !solids->plain[solids->block_slot[cell.slot]] && solids->distance[sk_plain_solid_index(solids, cell)] < 0.0f;
}

/* Is a path (m) outside of the box around all obstacles, or shorter than the sampled distance at its start? One inside
 * of an obstacle is clear if the particle may stay there: a new obstacle has particles deep inside. */
SK_DEVICE int is_clear_of_obstacles(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                                    const float from[3], const float to[3], int may_stay_inside)
{
    const sk_grid *grid = &step->grid;
    const sk_plain_frame frame = frame_of_grid(grid);
    int clear = 0, inside = 1, at[3];
    for (int d = 0; d < SELKIE_DIM; d++) {
        const float cell = sk_cell_coordinate(from[d], frame.corner[d], frame.inverse);
        inside &= cell >= 0.0f && cell < (float)(grid->blocks[d] << SK_BLOCK_LOG);
        clear |=
            fmaxf(from[d], to[d]) < constants->obstacles_low[d] || fminf(from[d], to[d]) > constants->obstacles_high[d];
    }
    if (clear || !inside)
        return clear;
    const sk_plain_cell cell = cell_of_particle(grid, data, &frame, from, at);
    return cell.slot && sk_sweep_is_path_clear(&step->solids, grid, cell.slot, cell.local, from, to) &&
           (may_stay_inside || !is_inside_obstacle(&step->solids, cell));
}

/* No displacement crosses an obstacle. Particles that were inside one move out half a cell at a time. */
SK_DEVICE void sweep_displaced(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                               const float before[3], sk_particle *particle)
{
    sk_swept_path path;
    if (is_clear_of_obstacles(step, constants, data, before, particle->position, 1))
        return;
    path.begin = path.end = 0.0;
    for (int d = 0; d < 3; d++) {
        path.low[d] = constants->displacement.low[d];
        path.high[d] = constants->displacement.high[d];
    }
    sk_sweep_moved(&step->solids, &path, before, particle);
}

/* Keeps the path of a particle between `low` and `high` out of obstacles, and removes its velocity into one that it
 * met: sk_sweep_point. */
SK_DEVICE void sweep_moved(const sk_step *step, const sk_cuda_constants *constants, const sk_cuda_data *data,
                           const float low[3], const float high[3], const float from[3], sk_particle *particle)
{
    sk_swept_path path;
    sk_touch touch;
    if (is_clear_of_obstacles(step, constants, data, from, particle->position, 0))
        return;
    path.begin = 0.0, path.end = 1.0, path.deepest = INFINITY;
    for (int d = 0; d < 3; d++) {
        path.from[d] = d < SELKIE_DIM ? from[d] : 0.0f;
        path.to[d] = d < SELKIE_DIM ? particle->position[d] : 0.0f;
        path.low[d] = low[d];
        path.high[d] = high[d];
    }
    if (!sweep_once(&step->solids, &path, &touch))
        return;
    for (int d = 0; d < SELKIE_DIM; d++)
        particle->position[d] = path.to[d];
    sk_sweep_stop_velocity(&step->solids, &touch, particle->position, particle->velocity);
}

#endif

/* Obstacles in kernels: paths and distances of the device's shapes. Private to src/cuda; for files compiled per
 * dimension. On the device the `shape` of an obstacle is an sk_cuda_shape. */
#ifndef SK_CUDA_SOLIDS_PARTS_H
#define SK_CUDA_SOLIDS_PARTS_H

#include "cuda/device.h"
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

/* Lies a segment (m) outside of the box around all obstacles? */
SK_DEVICE int is_clear_of_obstacles(const sk_cuda_constants *constants, const float from[3], const float to[3])
{
    int clear = 0;
    for (int d = 0; d < SELKIE_DIM; d++)
        clear |=
            fmaxf(from[d], to[d]) < constants->obstacles_low[d] || fminf(from[d], to[d]) > constants->obstacles_high[d];
    return clear;
}

/* No displacement crosses an obstacle. Particles that were inside one move out half a cell at a time. */
SK_DEVICE void sweep_displaced(const sk_step *step, const sk_cuda_constants *constants, const float before[3],
                               sk_particle *particle)
{
    sk_swept_path path;
    if (is_clear_of_obstacles(constants, before, particle->position))
        return;
    path.begin = path.end = 0.0;
    for (int d = 0; d < 3; d++) {
        path.low[d] = constants->displacement.low[d];
        path.high[d] = constants->displacement.high[d];
    }
    sk_sweep_moved(&step->solids, &path, before, particle);
}

#endif

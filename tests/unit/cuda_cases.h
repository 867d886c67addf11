/* Worlds of the GPU backend and of the plain one, for tests that compare them. */
#ifndef SK_TESTS_CUDA_CASES_H
#define SK_TESTS_CUDA_CASES_H

#include <math.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda/cuda.h"
#include "world/world_internal.h"

/* m: how far paths that meet curved or moving obstacles may be apart after some steps without a solve. The host's
 * compiler fuses multiply-adds of shapes in double precision and the device's does not, so that a position may round
 * the other way: 6e-8 m a contact at 0.5 to 1 m. */
#define PATHS_APART 4e-7

static inline int device_is_here(void)
{
    sk_cuda_info info;
    selkie_error error = {0};
    if (sk_cuda_find(&info, &error) == SELKIE_OK)
        return 1;
    print_message("[  skip    ] %s\n", error.message);
    return 0;
}

/* The same for a simulation in 3D, which takes too long where the device is emulated. */
static inline int device_is_fast(int dimension)
{
    sk_cuda_info info;
    if (!device_is_here())
        return 0;
    if (dimension == 2 || sk_cuda_find(&info, NULL) != SELKIE_OK || strcmp(info.name, "emulated") != 0)
        return 1;
    print_message("[  skip    ] the device is emulated\n");
    return 0;
}

/* Two columns of liquid in a box. */
static inline void set_scene(selkie_scene *scene, selkie_liquid_def liquids[2], int dimension, selkie_volume volume)
{
    selkie_scene_defaults(scene);
    scene->domain.dimension = dimension;
    scene->domain.cell_size = 1.0 / 24;
    const double size[3] = {1.0, 1.5, dimension == 3 ? 0.75 : 0.0};
    for (int d = 0; d < dimension; d++)
        scene->domain.size[d] = size[d];
    for (int l = 0; l < 2; l++) {
        selkie_liquid_defaults(&liquids[l]);
        selkie_shape_defaults(&liquids[l].shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < dimension; d++) {
            const double part = d == 1 ? 0.4 : 0.35;
            liquids[l].shape.min[d] = l && d != 1 ? size[d] * (1.0 - part) : 0.0;
            liquids[l].shape.max[d] = l && d != 1 ? size[d] : size[d] * part;
        }
    }
    scene->liquids = liquids;
    scene->liquid_count = 2;
    scene->time.step = 0.01;
    scene->time.fps = 100.0;
    scene->time.end = 100.0;
    scene->volume = volume;
}

static inline selkie_shape box_of(const double low[3], const double high[3])
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_BOX);
    memcpy(shape.min, low, sizeof shape.min);
    memcpy(shape.max, high, sizeof shape.max);
    return shape;
}

static inline selkie_shape ball_of(double x, double y, double z, double radius)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_SPHERE);
    shape.center[0] = x;
    shape.center[1] = y;
    shape.center[2] = z;
    shape.radius = radius;
    return shape;
}

static inline selkie_world *make_world_with(const selkie_scene *scene, selkie_backend backend, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = 1;
    options.backend = backend;
    selkie_world *world;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static inline selkie_world *make_world(const selkie_scene *scene, selkie_backend backend)
{
    return make_world_with(scene, backend, 2);
}

static inline void take_steps(selkie_world *world, int steps)
{
    selkie_error error = {0};
    for (int n = 0; n < steps; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("step %d: %s", n, error.message);
}

/* Largest difference of positions (m), particle by particle in their order. */
static inline double difference(const selkie_world *a, const selkie_world *b)
{
    const sk_particles *p = &a->step.particles, *q = &b->step.particles;
    double most = 0.0;
    assert_int_equal(sk_world_fetch(a, 1, NULL), SELKIE_OK);
    assert_int_equal(sk_world_fetch(b, 1, NULL), SELKIE_OK);
    assert_int_equal(p->count, q->count);
    for (int64_t n = 0; n < p->count; n++) {
        if (p->records[n].id != q->records[n].id)
            return INFINITY;
        for (int d = 0; d < 3; d++)
            most = fmax(most, fabs((double)p->records[n].position[d] - (double)q->records[n].position[d]));
    }
    return most;
}

#endif

/* Scenes of the tests of splashes, and what they do with worlds. Tests include it once, after cmocka.h. */
#ifndef SELKIE_TESTS_SPLASH_CASES_H
#define SELKIE_TESTS_SPLASH_CASES_H

#include <string.h>

#include <selkie/selkie.h>

/* A dam that breaks over shallow water, cells of 1 cm, with the weights that come with the program. */
typedef struct dam {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
} dam;

static void dam_scene(dam *d)
{
    selkie_scene *scene = &d->scene;
    selkie_scene_defaults(scene);
    scene->domain.dimension = 2;
    scene->domain.size[0] = 1.0;
    scene->domain.size[1] = 0.75;
    scene->domain.cell_size = 0.01;
    scene->particles.per_cell = 4;
    scene->volume = SELKIE_VOLUME_IDP;
    scene->time.fps = 60.0;
    scene->splashes = "default";
    const double tops[2][2] = {{0.25, 0.45}, {1.0, 0.08}};
    for (int l = 0; l < 2; l++) {
        selkie_liquid_defaults(&d->liquids[l]);
        selkie_shape_defaults(&d->liquids[l].shape, SELKIE_SHAPE_BOX);
        d->liquids[l].shape.max[0] = tops[l][0];
        d->liquids[l].shape.max[1] = tops[l][1];
        d->liquids[l].shape.max[2] = 1.0;
    }
    scene->liquids = d->liquids;
    scene->liquid_count = 2;
}

static selkie_world *new_world(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static void run_to(selkie_world *world, double time)
{
    selkie_error error = {0};
    while (selkie_world_time(world) < time * (1 - 1e-9))
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

static void same_particles(const selkie_world *a, const selkie_world *b)
{
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    for (int n = 0; n < selkie_world_attribute_count(a); n++) {
        selkie_attribute_view x, y;
        assert_int_equal(selkie_world_attribute(a, n, &x), SELKIE_OK);
        assert_int_equal(selkie_world_attribute(b, n, &y), SELKIE_OK);
        for (int64_t p = 0; p < selkie_world_particle_count(a); p++)
            assert_memory_equal((char *)x.data + (size_t)p * x.stride, (char *)y.data + (size_t)p * y.stride,
                                (size_t)x.components * 4);
    }
}

#endif

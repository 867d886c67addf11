/* Worlds of reduced fluids in tests: made, run, compared, refused. */
#ifndef SK_TESTS_REDUCED_SCENE_H
#define SK_TESTS_REDUCED_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <selkie/selkie.h>

/* A box of 1 m2. */
static inline void reduced_defaults(selkie_scene *scene, int modes, int resolution)
{
    selkie_scene_defaults(scene);
    scene->discretization = SELKIE_DISCRETIZATION_REDUCED;
    scene->domain.dimension = 2;
    scene->domain.size[0] = scene->domain.size[1] = 1.0;
    scene->domain.resolution = resolution;
    scene->time.end = 1.0;
    scene->reduced.modes = modes;
}

static inline selkie_world *create_world(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world *world;
    selkie_error error;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static inline void run_world(selkie_world *world, int steps)
{
    selkie_error error;
    for (int n = 0; n < steps; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

static inline selkie_body_state body_of(const selkie_world *world, int b)
{
    selkie_body_state state;
    assert_int_equal(selkie_world_body(world, b, &state), SELKIE_OK);
    return state;
}

/* The same bits: tracers, bodies, sums. */
static inline void assert_same_worlds(const selkie_world *a, const selkie_world *b)
{
    selkie_attribute_view x, y;
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    assert_int_equal(selkie_world_find_attribute(a, "position", &x, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(b, "position", &y, NULL), SELKIE_OK);
    assert_memory_equal(x.data, y.data, (size_t)selkie_world_particle_count(a) * x.stride);
    for (int n = 0; n < selkie_world_body_count(a); n++) {
        const selkie_body_state s = body_of(a, n), t = body_of(b, n);
        assert_memory_equal(s.position, t.position, sizeof s.position);
        assert_memory_equal(s.velocity, t.velocity, sizeof s.velocity);
        assert_memory_equal(s.force, t.force, sizeof s.force);
    }
    const selkie_statistics *s = selkie_world_statistics(a), *t = selkie_world_statistics(b);
    assert_true(s->kinetic_energy == t->kinetic_energy && s->enstrophy == t->enstrophy && s->dt == t->dt);
}

/* The scene is refused, and the message contains the words. */
static inline void expect_refusal(const selkie_scene *scene, const char *words)
{
    selkie_world *world = NULL;
    selkie_error error;
    if (selkie_world_create(scene, NULL, &world, &error) == SELKIE_OK) {
        selkie_world_destroy(world);
        fail_msg("a scene passes that should say \"%s\"", words);
    }
    if (!strstr(error.message, words))
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
}

#endif

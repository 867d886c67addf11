/* The model of splashes in a run: particles are kept, momentum is given back, bits over threads and checkpoints, counts
 * over step lengths and thresholds, mirrored and moving flows, and files that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "base/random.h"
#include "learn/splash_model.h"
#include "methods/splashes/splash_step_kernels.h"

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

static void bits_and_particles(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    selkie_error error = {0};
    char path[] = "/tmp/selkie-test-splashes-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    selkie_world *one = new_world(&d.scene, 1), *three = new_world(&d.scene, 3), *resumed = new_world(&d.scene, 2);
    const int64_t count = selkie_world_particle_count(one);
    run_to(one, 0.6);
    run_to(three, 0.4);
    assert_int_equal(selkie_world_save(three, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    run_to(three, 0.6);
    run_to(resumed, 0.6);
    same_particles(one, three);
    same_particles(one, resumed);
    const selkie_statistics *s = selkie_world_statistics(one), *r = selkie_world_statistics(resumed);
    print_message("%lld made, %lld in flight\n", (long long)s->splashes_made, (long long)s->splashes);
    assert_true(s->splashes_made > 5);
    assert_int_equal(s->splashes_made, r->splashes_made);
    assert_int_equal(selkie_world_particle_count(one), count);
    selkie_world_destroy(one);
    selkie_world_destroy(three);
    selkie_world_destroy(resumed);
    unlink(path);
}

/* Droplets that leave and come back in most steps. A world that goes on sorts only what moved; one that begins at a
 * checkpoint sorts all. Both have the same bits after a step, in each of many. */
static void sorts_of_few_and_of_all(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    d.scene.splash.rate = 300.0;
    selkie_error error = {0};
    char path[] = "/tmp/selkie-test-splashes-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    selkie_world *goes_on = new_world(&d.scene, 2);
    run_to(goes_on, 0.3);
    int64_t made = 0, before = selkie_world_statistics(goes_on)->splashes_made;
    for (int n = 0; n < 25; n++) {
        selkie_world *begins = new_world(&d.scene, 1);
        assert_int_equal(selkie_world_save(goes_on, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_load(begins, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_step(goes_on, &error), SELKIE_OK);
        assert_int_equal(selkie_world_step(begins, &error), SELKIE_OK);
        same_particles(goes_on, begins);
        selkie_world_destroy(begins);
        made += selkie_world_statistics(goes_on)->splashes_made > before;
        before = selkie_world_statistics(goes_on)->splashes_made;
    }
    print_message("%lld made, in %lld of 25 steps\n", (long long)before, (long long)made);
    assert_true(made > 10);
    selkie_world_destroy(goes_on);
    unlink(path);
}

/* Sum of the particles' velocities. */
static void momentum_of(const selkie_world *world, double momentum[2])
{
    selkie_attribute_view v;
    assert_int_equal(selkie_world_find_attribute(world, "velocity", &v, NULL), SELKIE_OK);
    momentum[0] = momentum[1] = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        for (int k = 0; k < 2; k++)
            momentum[k] += ((float *)(void *)((char *)v.data + (size_t)p * v.stride))[k];
}

/* One step with droplets and the same step without: the same momentum to rounding of single velocities. */
static void momentum_is_given_back(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    char path[] = "/tmp/selkie-test-splashes-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    selkie_error error = {0};
    d.scene.splash.rate = 0.0;
    selkie_world *base = new_world(&d.scene, 2), *without = new_world(&d.scene, 2);
    run_to(base, 0.5);
    assert_int_equal(selkie_world_save(base, path, &error), SELKIE_OK);
    d.scene.splash.rate = 3e5; /* a handful of droplets in this one step, whatever the flow */
    selkie_world *with = new_world(&d.scene, 2);
    assert_int_equal(selkie_world_load(without, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(with, path, &error), SELKIE_OK);
    double a[2], b[2];
    assert_int_equal(selkie_world_step(without, &error), SELKIE_OK);
    assert_int_equal(selkie_world_step(with, &error), SELKIE_OK);
    momentum_of(without, a);
    momentum_of(with, b);
    const int64_t made = selkie_world_statistics(with)->splashes_made;
    print_message("%lld droplets, momentum %g %g, change %g %g\n", (long long)made, a[0], a[1], b[0] - a[0],
                  b[1] - a[1]);
    assert_true(made > 2);      /* where steps are short, blocks take turns */
    for (int k = 0; k < 2; k++) /* a rounding of 1e-7 of 1 m/s for each of up to 40 receivers of a droplet */
        assert_true(fabs(b[k] - a[k]) < 40.0 * 1e-7 * (double)made);
    selkie_world_destroy(base);
    selkie_world_destroy(without);
    selkie_world_destroy(with);
    unlink(path);
}

/* A constant probability over many particles: the expected number of splashes whatever the step. */
static void counts_do_not_depend_on_the_step(void **state)
{
    (void)state;
    const float p = 0.02f;
    for (int steps = 1; steps <= 16; steps *= 4) { /* of one duration */
        int splashes = 0;
        for (uint32_t id = 0; id < 50000; id++) {
            int splash = 0;
            for (int n = 0; n < steps; n++) /* a new threshold each time */
                splash |= sk_splash_step_hazard(p, 1.0f / (float)steps) >= sk_splash_threshold(1, id, (uint32_t)n);
            splashes += splash;
        }
        assert_true(abs(splashes - 1000) < 120); /* four deviations */
    }
}

/* Features of random cells, of their mirror image, and of cells that move as a whole. */
static void mirrored_and_moving(void **state)
{
    (void)state;
    enum { N = 9 };
    float fill[3][N * N], u[3][N * N], v[3][N * N], features[3][81],
        fraction[3][3] = {{0.3f, 0.6f, 0}, {0.7f, 0.6f, 0}, {0.3f, 0.6f, 0}};
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            const int n = i + N * j, m = N - 1 - i + N * j;
            fill[0][n] = fill[1][m] = fill[2][n] = 1.3f * sk_random_float(1, (uint64_t)n, 0);
            u[0][n] = sk_random_float(1, (uint64_t)n, 1);
            u[1][m] = -u[0][n];
            u[2][n] = u[0][n] + 2.0f;
            v[0][n] = v[1][m] = sk_random_float(1, (uint64_t)n, 2);
            v[2][n] = v[0][n] - 3.0f;
        }
    const sk_splash_options options = {2, 2, 1, 1.0f, 2.0f, 0.5f};
    float sign[3];
    for (int c = 0; c < 3; c++) {
        const sk_splash_cells cells = {{u[c], v[c], NULL}, fill[c], {1, N, 0}, 2};
        sk_splash_frame frame;
        float velocity[3];
        const int cell = 4 + 5 * N; /* of the point, and of its mirror image */
        assert_int_equal(sk_splash_cell_features(&cells, &options, cell, &frame, features[c]), 76);
        /* the mirror image of a point between the centres 4 and 5 lies between 3 and 4 */
        sk_splash_own_features(&cells, &options, cell, (c == 1 ? 3 : 4) + 4 * N, fraction[c], &frame, velocity,
                               features[c] + 76);
        sign[c] = frame.sign[0];
    }
    assert_float_equal(sign[1], -sign[0], 0.0f); /* so the model's answer is mirrored back */
    assert_float_equal(sign[2], sign[0], 0.0f);
    for (int f = 0; f < 81; f++) {
        assert_float_equal(features[0][f], features[1][f], 2e-6f);
        assert_float_equal(features[0][f], features[2][f], 2e-5f);
    }
}

static void refused(void **state)
{
    (void)state;
    dam d;
    selkie_error error = {0};
    selkie_world *world = NULL;
    dam_scene(&d);
    d.scene.splashes = "/nowhere/model.safetensors";
    assert_int_equal(selkie_world_create(&d.scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "splashes: /nowhere/model.safetensors"));
    d.scene.splashes = __FILE__;
    assert_int_equal(selkie_world_create(&d.scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_null(world);
}

/* With a rate that marks every candidate at once: a cell makes no second droplet within the duration, so that four
 * steps of a quarter of it do not make four times as many as one step. */
static void one_a_cell_and_duration(void **state)
{
    (void)state;
    dam d;
    int64_t made[2];
    for (int n = 0; n < 2; n++) {
        dam_scene(&d);
        selkie_error error = {0};
        d.scene.splash.look_ahead = 0;
        d.scene.splash.rate = 1e9;
        d.scene.time.step = n ? 1.0 / 240.0 : 1.0 / 60.0;
        selkie_world *world = new_world(&d.scene, 2);
        for (int k = 0; k < (n ? 4 : 1); k++)
            assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
        made[n] = selkie_world_statistics(world)->splashes_made;
        selkie_world_destroy(world);
    }
    print_message("%lld made in one step, %lld in four\n", (long long)made[0], (long long)made[1]);
    assert_true(made[0] > 30);
    assert_true(made[1] < 1.5 * (double)made[0]); /* cells that become free join later */
}

/* Water that flows through joined sides: droplets pass these as well. */
static void joined_sides(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    d.scene.domain.size[0] = 0.96;
    d.scene.domain.periodic = SELKIE_AXES_X;
    d.scene.splash.rate = 20.0;
    for (int l = 0; l < 2; l++)
        d.liquids[l].velocity[0] = 2.5; /* the column crosses the seam three times a second */
    selkie_world *one = new_world(&d.scene, 1), *three = new_world(&d.scene, 3);
    const int64_t count = selkie_world_particle_count(one);
    selkie_attribute_view age, position;
    int crossed = 0;
    for (double time = 0.05; time < 0.51; time += 0.05) {
        run_to(one, time);
        assert_int_equal(selkie_world_find_attribute(one, "splash", &age, NULL), SELKIE_OK);
        assert_int_equal(selkie_world_find_attribute(one, "position", &position, NULL), SELKIE_OK);
        for (int64_t p = 0; p < count; p++) {
            const float t = *(float *)(void *)((char *)age.data + (size_t)p * age.stride);
            const float *x = (float *)(void *)((char *)position.data + (size_t)p * position.stride);
            assert_true(x[0] >= 0.0f && x[0] < 0.96f);
            crossed += t > 0.05f && x[0] < 2.0f * t; /* it began beyond the seam, at 2 m/s or more */
        }
    }
    run_to(three, selkie_world_time(one));
    same_particles(one, three);
    assert_int_equal(selkie_world_particle_count(one), count);
    print_message("%lld made, %d of them seen beyond the seam\n",
                  (long long)selkie_world_statistics(one)->splashes_made, crossed);
    assert_true(crossed > 0);
    selkie_world_destroy(one);
    selkie_world_destroy(three);
}

/* A jet that begins at a source: new particles come behind the droplets in the store, and these fly on. A particle that
 * has an age flies: it is among the counted ones. */
static void beside_a_source(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    selkie_source_def source;
    selkie_source_defaults(&source);
    selkie_shape_defaults(&source.shape, SELKIE_SHAPE_BOX);
    for (int k = 0; k < 2; k++) {
        source.shape.min[k] = k ? 0.6 : 0.45;
        source.shape.max[k] = k ? 0.65 : 0.5;
    }
    source.velocity[1] = -2.0;
    d.scene.sources = &source;
    d.scene.source_count = 1;
    d.scene.splash.rate = 5.0;
    selkie_world *world = new_world(&d.scene, 2);
    selkie_attribute_view age;
    float oldest = 0.0f;
    for (double time = 0.05; time < 0.51; time += 0.05) {
        int64_t flying = 0;
        run_to(world, time);
        assert_int_equal(selkie_world_find_attribute(world, "splash", &age, NULL), SELKIE_OK);
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float t = *(float *)(void *)((char *)age.data + (size_t)p * age.stride);
            flying += t > 0.0f;
            oldest = fmaxf(oldest, t);
        }
        assert_int_equal(selkie_world_statistics(world)->splashes, flying);
    }
    print_message("oldest droplet %g s\n", (double)oldest);
    assert_true(oldest > 0.05f);
    selkie_world_destroy(world);
}

/* A scene with cells far from those of the training runs is warned about, once. */
static void warns_outside_its_range(void **state)
{
    (void)state;
    dam d;
    selkie_error error = {0};
    dam_scene(&d);
    d.scene.domain.cell_size = 0.05;
    selkie_world *world = new_world(&d.scene, 1);
    assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
    assert_non_null(strstr(selkie_world_warning(world), "splashes: cells of 0.05 m"));
    selkie_world_destroy(world);
}

/* The weights for 3D: droplets in a small column that falls, and every particle is kept. */
static void default_model_in_3d(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    d.scene.domain.dimension = 3;
    d.scene.domain.size[0] = d.scene.domain.size[1] = 0.48;
    d.scene.domain.size[2] = 0.24;
    d.scene.domain.cell_size = 0.02;
    d.scene.particles.per_cell = 8;
    d.scene.splash.rate = 50.0;
    selkie_world *one = new_world(&d.scene, 1), *three = new_world(&d.scene, 3);
    const int64_t count = selkie_world_particle_count(one);
    run_to(one, 0.25);
    run_to(three, 0.25);
    same_particles(one, three);
    print_message("%lld made in 3D\n", (long long)selkie_world_statistics(one)->splashes_made);
    assert_true(selkie_world_statistics(one)->splashes_made > 5);
    assert_int_equal(selkie_world_particle_count(one), count);
    selkie_world_destroy(one);
    selkie_world_destroy(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_and_particles),      cmocka_unit_test(sorts_of_few_and_of_all),
        cmocka_unit_test(momentum_is_given_back),  cmocka_unit_test(counts_do_not_depend_on_the_step),
        cmocka_unit_test(mirrored_and_moving),     cmocka_unit_test(default_model_in_3d),
        cmocka_unit_test(one_a_cell_and_duration), cmocka_unit_test(joined_sides),
        cmocka_unit_test(beside_a_source),         cmocka_unit_test(refused),
        cmocka_unit_test(warns_outside_its_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
#include "methods/splashes/splashes.h"
#include "splash_cases.h"
#include "world/world_internal.h"

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

/* With a rate that marks every candidate: look-ahead leaves out those that would end in liquid or a solid, and the
 * others are as many as without it. */
static void look_ahead_reverts(void **state)
{
    (void)state;
    dam d;
    struct sk_splash_counts counts[2];
    for (int ahead = 0; ahead < 2; ahead++) {
        dam_scene(&d);
        d.scene.splash.rate = 0.0;
        selkie_world *world = new_world(&d.scene, 2);
        run_to(world, 0.4);                    /* the same flow for both */
        selkie_scene *scene = world->relative; /* that of the phases */
        selkie_error error = {0};
        scene->splash.rate = 1e9;
        scene->splash.look_ahead = ahead;
        assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
        counts[ahead] = ((const sk_splashes *)sk_step_state(&world->step, &sk_method_splashes))->counts;
        selkie_world_destroy(world);
    }
    print_message("%lld made without look-ahead; with it %lld, %lld reverted\n", (long long)counts[0].made,
                  (long long)counts[1].made, (long long)counts[1].reverted);
    assert_true(counts[1].reverted > counts[0].reverted && counts[1].made > 0);
    assert_int_equal(counts[0].made + counts[0].reverted, counts[1].made + counts[1].reverted);
}

/* Eq. 7 of the paper as an option, and droplets beside unilateral incompressibility and a floating body: they are made,
 * none is lost, and threads do not show. */
static void other_kinds_of_runs(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        dam d;
        selkie_body_def body;
        dam_scene(&d);
        d.scene.splash.rate = 20.0;
        if (kind == 0)
            d.scene.splash.sampling = SELKIE_SPLASH_EXPECTATION;
        if (kind == 1) {
            d.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
            d.scene.volume = SELKIE_VOLUME_NONE;
        }
        if (kind == 2) {
            selkie_body_defaults(&body);
            selkie_shape_defaults(&body.shape, SELKIE_SHAPE_BOX);
            for (int k = 0; k < 2; k++) {
                body.shape.min[k] = k ? 0.12 : 0.6;
                body.shape.max[k] = k ? 0.2 : 0.7;
            }
            body.density = 500.0;
            d.scene.bodies = &body;
            d.scene.body_count = 1;
        }
        selkie_world *one = new_world(&d.scene, 1), *three = new_world(&d.scene, 3);
        const int64_t count = selkie_world_particle_count(one);
        run_to(one, 0.5);
        run_to(three, 0.5);
        same_particles(one, three);
        print_message("kind %d: %lld made\n", kind, (long long)selkie_world_statistics(one)->splashes_made);
        assert_true(selkie_world_statistics(one)->splashes_made > 5);
        assert_int_equal(selkie_world_particle_count(one), count);
        selkie_world_destroy(one);
        selkie_world_destroy(three);
    }
}

/* Energies count droplets: they are those of all particles. Sums of single precision positions, of 10,000 particles:
 * 1e-6. */
static void energy_of_droplets(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    d.scene.splash.rate = 20.0;
    selkie_world *world = new_world(&d.scene, 2);
    const double mass = world->step.particle_mass, g = 9.81;
    double height = 0.0, before = 0.0;
    int64_t flying = 0;
    selkie_error error = {0};
    while (selkie_world_time(world) < 0.4) {
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        selkie_attribute_view x, v;
        double kinetic = 0.0;
        assert_int_equal(selkie_world_find_attribute(world, "position", &x, NULL), SELKIE_OK);
        assert_int_equal(selkie_world_find_attribute(world, "velocity", &v, NULL), SELKIE_OK);
        before = height;
        height = 0.0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *velocity = (float *)(void *)((char *)v.data + (size_t)p * v.stride);
            height += (double)((float *)(void *)((char *)x.data + (size_t)p * x.stride))[1];
            kinetic += 0.5 * (double)(velocity[0] * velocity[0] + velocity[1] * velocity[1]);
        }
        const selkie_statistics *s = selkie_world_statistics(world);
        flying += s->splashes;
        assert_true(fabs(s->kinetic_energy - mass * kinetic) <= 1e-6 * mass * kinetic);
        if (before > 0.0)
            assert_true(fabs(s->potential_energy - mass * g * 0.5 * (before + height)) <= 1e-6 * mass * g * height);
    }
    assert_true(flying > 100);
    selkie_world_destroy(world);
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

/* --- Droplets below a particle's size --- */

/* The dam below a plate that is thinner than a cell and has no liquid near it, with three pairs around each droplet. */
static void dam_below_a_plate(dam *d, selkie_obstacle_def *plate)
{
    dam_scene(d);
    selkie_obstacle_defaults(plate);
    selkie_shape_defaults(&plate->shape, SELKIE_SHAPE_BOX);
    const double low[3] = {0.3, 0.3, 0.0}, high[3] = {0.9, 0.302, 1.0};
    memcpy(plate->shape.min, low, sizeof low);
    memcpy(plate->shape.max, high, sizeof high);
    d->scene.obstacles = plate;
    d->scene.obstacle_count = 1;
    d->scene.splash.rate = 300.0;
    d->scene.splash.air_drag = 0.5;
    d->scene.splash.pairs = 3;
}

/* The pieces of a world, to be freed. */
static sk_splash_piece *pieces_of(const selkie_world *world, size_t *count)
{
    const sk_splashes *s = sk_step_state(&world->step, &sk_method_splashes);
    sk_splash_piece *pieces = calloc(2 * s->pair_count + 1, sizeof *pieces);
    assert_non_null(pieces);
    *count = sk_splash_list_pieces(&world->step, pieces);
    return pieces;
}

static int compare_pieces(const void *a, const void *b)
{
    const uint32_t x = ((const sk_splash_piece *)a)->id, y = ((const sk_splash_piece *)b)->id;
    return (x > y) - (x < y);
}

/* Every piece has an id of its own, is in the domain and outside the plate, and lies opposite to its twin. */
static size_t check_pieces(const selkie_world *world, const selkie_obstacle_def *plate)
{
    size_t count;
    sk_splash_piece *pieces = pieces_of(world, &count);
    const sk_particles *particles = &world->step.particles;
    qsort(pieces, count, sizeof *pieces, compare_pieces);
    assert_int_equal(count % 2, 0);
    for (size_t n = 0; n < count; n++) {
        const float *x = pieces[n].position;
        const double *low = plate->shape.min, *high = plate->shape.max;
        assert_true(pieces[n].id >= particles->next_id && (!n || pieces[n].id > pieces[n - 1].id));
        assert_true(x[0] > 0.0f && x[0] < 1.0f && x[1] > 0.0f && x[1] < 0.75f);
        assert_false(x[0] > low[0] && x[0] < high[0] && x[1] > low[1] && x[1] < high[1]);
    }
    for (int64_t p = 0; p < particles->count; p++)
        for (size_t n = 0; n < count; n += 2) {
            if (pieces[n].particle != particles->records[p].id)
                continue;
            assert_int_equal(pieces[n + 1].particle, pieces[n].particle);
            for (int k = 0; k < 2; k++) {
                const sk_splash_piece *one = &pieces[n], *other = &pieces[n + 1];
                assert_float_equal(0.5f * (one->position[k] + other->position[k]), particles->records[p].position[k],
                                   1e-6f);
                assert_float_equal(0.5f * (one->velocity[k] + other->velocity[k]), particles->records[p].velocity[k],
                                   1e-5f);
            }
        }
    free(pieces);
    return count;
}

/* No droplet and no piece crosses the plate: a path from the step before to now would. */
static int is_above(const float x[2])
{
    return x[1] > 0.301f;
}

static void check_crossings(const sk_splash_piece *before, size_t count_before, const sk_splash_piece *now,
                            size_t count)
{
    for (size_t n = 0; n < count; n++) {
        const sk_splash_piece *was =
            count_before ? bsearch(&now[n], before, count_before, sizeof *before, compare_pieces) : NULL;
        if (was && is_above(was->position) != is_above(now[n].position)) {
            const float share = (0.301f - was->position[1]) / (now[n].position[1] - was->position[1]);
            const float x = was->position[0] + share * (now[n].position[0] - was->position[0]);
            assert_true(x < 0.301f || x > 0.899f); /* around it, not through it */
        }
    }
}

static void small_droplets_and_solids(void **state)
{
    (void)state;
    dam d;
    selkie_obstacle_def plate;
    selkie_error error = {0};
    dam_below_a_plate(&d, &plate);
    selkie_world *world = new_world(&d.scene, 2);
    sk_splash_piece *before = NULL;
    size_t count_before = 0, most = 0;
    while (selkie_world_time(world) < 0.6) {
        assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
        size_t count = check_pieces(world, &plate);
        most = count > most ? count : most;
        sk_splash_piece *now = pieces_of(world, &count);
        qsort(now, count, sizeof *now, compare_pieces);
        check_crossings(before, count_before, now, count);
        free(before);
        before = now;
        count_before = count;
    }
    free(before);
    print_message("%zu pieces at most, %lld droplets made\n", most,
                  (long long)selkie_world_statistics(world)->splashes_made);
    assert_true(most > 50);
    selkie_world_destroy(world);
}

/* Drag of a piece over one step: (1 + 2 N)^(1/2) times that of a particle, on the mean of both squared speeds. */
static void small_droplets_and_air(void **state)
{
    (void)state;
    dam d;
    selkie_obstacle_def plate;
    selkie_error error = {0};
    dam_below_a_plate(&d, &plate);
    selkie_world *world = new_world(&d.scene, 1);
    run_to(world, 0.4);
    size_t count, after;
    sk_splash_piece *before = pieces_of(world, &count);
    assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
    sk_splash_piece *now = pieces_of(world, &after);
    const double drag = 0.5 * sqrt(7.0), dt = selkie_world_statistics(world)->dt;
    qsort(before, count, sizeof *before, compare_pieces);
    qsort(now, after, sizeof *now, compare_pieces);
    int compared = 0;
    for (size_t n = 0; n < after; n += 2) {
        const sk_splash_piece *was = bsearch(&now[n], before, count, sizeof *before, compare_pieces);
        double square = 0.0;
        for (int k = 0; was && k < 2; k++) {
            const double half = 0.5 * (was[0].velocity[k] - was[1].velocity[k]),
                         common = 0.5 * (now[n].velocity[k] + now[n + 1].velocity[k]);
            square += half * half + common * common;
        }
        for (int k = 0; was && k < 2; k++, compared++)
            assert_float_equal(now[n].velocity[k] - now[n + 1].velocity[k],
                               (was[0].velocity[k] - was[1].velocity[k]) / (1.0 + drag * sqrt(square) * dt), 2e-5);
    }
    assert_true(compared > 10);
    free(before);
    free(now);
    selkie_world_destroy(world);
}

/* Pieces change nothing in the run, have the same bits on any number of threads, and go on after a checkpoint. */
static void small_droplets_and_bits(void **state)
{
    (void)state;
    dam d;
    selkie_obstacle_def plate;
    selkie_error error = {0};
    dam_below_a_plate(&d, &plate);
    char path[] = "/tmp/selkie-test-splashes-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    selkie_world *one = new_world(&d.scene, 1), *three = new_world(&d.scene, 3), *resumed = new_world(&d.scene, 2);
    d.scene.splash.pairs = 0;
    selkie_world *without = new_world(&d.scene, 2);
    run_to(one, 0.5);
    run_to(without, 0.5);
    run_to(three, 0.4);
    assert_int_equal(selkie_world_save(three, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    run_to(three, 0.5);
    run_to(resumed, 0.5);
    same_particles(one, without);
    same_particles(one, three);
    size_t count, other_count;
    sk_splash_piece *pieces = pieces_of(one, &count);
    const selkie_world *others[2] = {three, resumed};
    for (int n = 0; n < 2; n++) {
        sk_splash_piece *other = pieces_of(others[n], &other_count);
        assert_int_equal(count, other_count);
        assert_memory_equal(pieces, other, count * sizeof *pieces);
        free(other);
    }
    assert_true(count > 10);
    free(pieces);
    selkie_world_destroy(one);
    selkie_world_destroy(three);
    selkie_world_destroy(resumed);
    selkie_world_destroy(without);
    unlink(path);
}

/* A caller that looks at positions between steps, as files do, does not change the bits. */
static void looked_at(void **state)
{
    (void)state;
    dam d;
    dam_scene(&d);
    d.scene.splash.rate = 300.0;
    selkie_error error = {0};
    selkie_world *quiet = new_world(&d.scene, 2), *seen = new_world(&d.scene, 3);
    while (selkie_world_time(quiet) < 0.4) {
        selkie_attribute_view view;
        assert_int_equal(selkie_world_step(quiet, &error), SELKIE_OK);
        assert_int_equal(selkie_world_step(seen, &error), SELKIE_OK);
        assert_int_equal(selkie_world_find_attribute(seen, "position", &view, NULL), SELKIE_OK);
    }
    same_particles(quiet, seen);
    selkie_world_destroy(quiet);
    selkie_world_destroy(seen);
}

/* Flows outside those of training: one warning for columns that meet at 50 m/s, none for the dam. */
static void warns_of_flows(void **state)
{
    (void)state;
    dam d;
    for (int fast = 0; fast < 2; fast++) {
        dam_scene(&d);
        for (int l = 0; l < 2 && fast; l++) {
            d.liquids[l].shape.min[0] = l ? 0.6 : 0.0;
            d.liquids[l].shape.max[0] = l ? 0.9 : 0.3;
            d.liquids[l].shape.max[1] = 0.4;
            d.liquids[l].velocity[0] = l ? -25.0 : 25.0;
        }
        selkie_world *world = new_world(&d.scene, 2);
        run_to(world, fast ? 0.05 : 0.5);
        const char *warning = selkie_world_warning(world);
        print_message("%s\n", warning ? warning : "no warning");
        assert_true(fast ? warning && strstr(warning, "flows outside") : !warning);
        selkie_world_destroy(world);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_and_particles),
                                       cmocka_unit_test(sorts_of_few_and_of_all),
                                       cmocka_unit_test(momentum_is_given_back),
                                       cmocka_unit_test(counts_do_not_depend_on_the_step),
                                       cmocka_unit_test(mirrored_and_moving),
                                       cmocka_unit_test(default_model_in_3d),
                                       cmocka_unit_test(one_a_cell_and_duration),
                                       cmocka_unit_test(joined_sides),
                                       cmocka_unit_test(beside_a_source),
                                       cmocka_unit_test(energy_of_droplets),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(warns_outside_its_range),
                                       cmocka_unit_test(small_droplets_and_solids),
                                       cmocka_unit_test(small_droplets_and_air),
                                       cmocka_unit_test(small_droplets_and_bits),
                                       cmocka_unit_test(look_ahead_reverts),
                                       cmocka_unit_test(other_kinds_of_runs),
                                       cmocka_unit_test(looked_at),
                                       cmocka_unit_test(warns_of_flows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Splashes on the GPU against the plain backend: the same droplets, which stay together, and the same bits from run to
 * run. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"
#include "scratch_folder.h"
#include "methods/splashes/splashes.h"

enum { MOST_LIQUIDS = 2 };

typedef struct splash_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[MOST_LIQUIDS];
    selkie_obstacle_def obstacles[2];
    selkie_material_def materials[2];
} splash_scene;

/* Columns that meet, in cells of the size that the weights were trained for, with many more droplets than they give. */
static void set_splashes(splash_scene *s, int dimension, selkie_volume volume)
{
    selkie_scene *scene = &s->scene;
    memset(s, 0, sizeof *s);
    set_scene(scene, s->liquids, dimension, volume);
    scene->domain.cell_size = 0.01;
    for (int d = 0; d < dimension; d++) {
        const double size[3] = {0.48, 0.4, 0.24};
        const double low[2][3] = {{0.0, 0.0, 0.0}, {0.32, 0.0, 0.0}},
                     high[2][3] = {{0.16, 0.16, 0.24}, {0.48, 0.16, 0.24}};
        scene->domain.size[d] = size[d];
        for (int l = 0; l < 2; l++) {
            s->liquids[l].shape.min[d] = low[l][d];
            s->liquids[l].shape.max[d] = high[l][d];
        }
    }
    s->liquids[0].velocity[0] = 1.5;
    s->liquids[1].velocity[0] = -1.0;
    s->liquids[1].velocity[1] = 0.7;
    scene->time.step = 0.004;
    scene->time.fps = 250.0;
    scene->particles.per_cell = dimension == 3 ? 8 : 9;
    scene->splashes = "default";
    scene->splash.rate = 300.0;
    scene->pressure.tolerance = 1e-6;
}

static const sk_splashes *splashes_of(const selkie_world *world)
{
    return (const sk_splashes *)sk_step_state(&world->step, &sk_method_splashes);
}

/* Farthest distances of two worlds' particles, by their order: positions (m), velocities (m/s) of those that no source
 * drives, ages (s). */
typedef struct distances {
    double position, velocity, age;
} distances;

static distances apart(const selkie_world *a, const selkie_world *b)
{
    const sk_particles *p = &a->step.particles, *q = &b->step.particles;
    distances most = {difference(a, b), 0.0, 0.0};
    const float *ages[2] = {(float *)(void *)sk_particles_find_attribute(p, SK_SPLASH_AGE)->data,
                            (float *)(void *)sk_particles_find_attribute(q, SK_SPLASH_AGE)->data};
    for (int64_t n = 0; n < p->count; n++) {
        most.age = fmax(most.age, fabs((double)ages[0][n] - (double)ages[1][n]));
        for (int d = 0; d < 3 && !(p->records[n].flags & SK_PARTICLE_DRIVEN); d++)
            most.velocity = fmax(most.velocity, fabs((double)p->records[n].velocity[d] - q->records[n].velocity[d]));
    }
    return most;
}

/* The same counts, cells and pairs. Returns the farthest distance of pieces (m). */
static double have_the_same_state(const selkie_world *a, const selkie_world *b)
{
    const sk_splashes *x = splashes_of(a), *y = splashes_of(b);
    double most = 0.0;
    assert_int_equal(x->flying, y->flying);
    assert_int_equal(x->counts.made, y->counts.made);
    assert_int_equal(x->counts.reverted, y->counts.reverted);
    assert_int_equal(x->counts.returned, y->counts.returned);
    assert_int_equal(x->counts.looks, y->counts.looks);
    assert_int_equal(x->counts.beyond, y->counts.beyond);
    assert_int_equal(x->recent_count, y->recent_count);
    for (size_t n = 0; n < x->recent_count; n++)
        assert_true(x->recent[n].key == y->recent[n].key && x->recent[n].until == y->recent[n].until);
    assert_int_equal(x->pair_count, y->pair_count);
    for (size_t n = 0; n < x->pair_count; n++) {
        assert_int_equal(x->pairs[n].particle, y->pairs[n].particle);
        assert_int_equal(x->pairs[n].id, y->pairs[n].id);
        for (int d = 0; d < 3; d++)
            most = fmax(most, fabs((double)x->pairs[n].offset[d] - (double)y->pairs[n].offset[d]));
    }
    return most;
}

/* Steps of both backends: the same droplets, within bounds (m, m/s). Returns how many were made. */
static int64_t run_both(const splash_scene *s, const char *name, int steps, double position, double velocity)
{
    selkie_world *plain = make_world(&s->scene, SELKIE_BACKEND_PLAIN),
                 *cuda = make_world(&s->scene, SELKIE_BACKEND_CUDA);
    distances most = {0.0, 0.0, 0.0};
    double pieces = 0.0;
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const distances now = apart(plain, cuda);
        if (!(now.position <= position && now.velocity <= velocity && now.age <= 1e-6))
            fail_msg("%s, step %d: positions %g m, velocities %g m/s, ages %g s apart", name, n + 1, now.position,
                     now.velocity, now.age);
        most.position = fmax(most.position, now.position);
        most.velocity = fmax(most.velocity, now.velocity);
        pieces = fmax(pieces, have_the_same_state(plain, cuda));
        assert_int_equal(plain->step.particles.count, cuda->step.particles.count);
    }
    const sk_splashes *made = splashes_of(cuda);
    print_message("%s: %lld made, %lld left out, %lld back, %lld in flight; %g m and %g m/s apart, pairs %g m\n", name,
                  (long long)made->counts.made, (long long)made->counts.reverted, (long long)made->counts.returned,
                  (long long)made->flying, most.position, most.velocity, pieces);
    assert_true(pieces <= position);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-4 * plain->statistics.kinetic_energy);
    const int64_t count = made->counts.made;
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
    return count;
}

/* Without a solve the flow has the same bits, and the networks differ by rounding. */
static void test_flight_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    assert_true(run_both(&s, "hazards", 25, 1e-5, 1e-3) > 20);
    s.scene.splash.mean_velocity = 1;
    s.scene.splash.look_ahead = 0;
    s.scene.transfer = SELKIE_TRANSFER_APIC;
    assert_true(run_both(&s, "means, without a look ahead", 12, 1e-5, 1e-3) > 20);
    s.scene.splash.air_drag = 2.0;
    s.scene.splash.pairs = 3;
    s.scene.splash.mean_velocity = 0;
    assert_true(run_both(&s, "pairs, with drag", 20, 1e-5, 1e-3) > 20);
}

static void test_flight_3d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    set_splashes(&s, 3, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    s.scene.splash.rate = 1e4;
    assert_true(run_both(&s, "hazards in 3D", 6, 1e-5, 1e-3) > 20);
}

/* Eq. 7 of the paper: sums over windows, in an attribute of the particles. */
static void test_windows(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    s.scene.splash.sampling = SELKIE_SPLASH_EXPECTATION;
    assert_true(run_both(&s, "expectation", 15, 1e-5, 1e-3) > 5);
}

/* An obstacle that moves, a fixed one, and one that droplets fall on: they come back there. */
static void test_obstacles(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&s.obstacles[o]);
    s.obstacles[0].shape = ball_of(0.24, 0.1, 0.0, 0.04);
    s.obstacles[0].velocity[1] = 0.3;
    s.obstacles[1].shape = box_of((const double[3]){0.1, 0.22, 0.0}, (const double[3]){0.38, 0.225, 1.0});
    s.scene.obstacles = s.obstacles;
    s.scene.obstacle_count = 2;
    s.scene.splash.pairs = 2;
    assert_true(run_both(&s, "obstacles", 30, 1e-5, 1e-3) > 20);
}

/* A joined side, an open one, a stream and a drain: particles come and go beside the droplets. */
static void test_streams(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    selkie_source_def source;
    selkie_drain_def drain;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    s.scene.domain.periodic = SELKIE_AXES_X;
    s.scene.domain.size[0] = 0.64; /* an even number of blocks */
    s.scene.domain.walls[2] = SELKIE_WALL_OPEN;
    selkie_source_defaults(&source);
    source.shape = box_of((const double[3]){0.2, 0.3, 0.0}, (const double[3]){0.28, 0.34, 1.0});
    source.velocity[1] = -2.0;
    s.scene.sources = &source;
    s.scene.source_count = 1;
    selkie_drain_defaults(&drain);
    drain.shape = box_of((const double[3]){0.5, 0.0, 0.0}, (const double[3]){0.6, 0.05, 1.0});
    s.scene.drains = &drain;
    s.scene.drain_count = 1;
    assert_true(run_both(&s, "streams", 25, 1e-5, 1e-3) > 20);
}

/* With pressure and the density projection: nearly as many droplets, and no particle is lost. */
static void solve(const splash_scene *s, const char *name, int steps)
{
    selkie_world *plain = make_world(&s->scene, SELKIE_BACKEND_PLAIN),
                 *cuda = make_world(&s->scene, SELKIE_BACKEND_CUDA);
    const int64_t count = cuda->step.particles.count;
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
    }
    assert_int_equal(sk_world_fetch(cuda, 0, NULL), SELKIE_OK);
    assert_int_equal(cuda->step.particles.count, count);
    const sk_splashes *p = splashes_of(plain), *q = splashes_of(cuda);
    const int64_t made[2] = {p->counts.made, q->counts.made};
    print_message("%s: %lld and %lld droplets, %lld and %lld in flight\n", name, (long long)made[0], (long long)made[1],
                  (long long)p->flying, (long long)q->flying);
    assert_true(made[0] > 10);
    assert_true(llabs(made[0] - made[1]) <= 2 + made[0] / 20);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_solve_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    set_splashes(&s, 2, SELKIE_VOLUME_IDP);
    solve(&s, "projection", 30);
    s.scene.volume = SELKIE_VOLUME_NONE;
    s.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    solve(&s, "unilateral", 15);
}

/* Beside a rigid body, and viscosity with no-slip sides, whose layer of particles is moved after the droplets. */
static void test_others(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    selkie_body_def body;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    selkie_body_defaults(&body);
    body.shape = ball_of(0.24, 0.3, 0.0, 0.04);
    body.density = 400.0;
    body.velocity[1] = -2.0;
    s.scene.bodies = &body;
    s.scene.body_count = 1;
    solve(&s, "a body", 25);
    s.scene.body_count = 0;
    s.scene.viscosity = 1e-4;
    s.scene.surface_tension = 0.07;
    for (int side = 0; side < 6; side++)
        s.scene.domain.walls[side] = SELKIE_WALL_NO_SLIP;
    solve(&s, "viscosity and surface tension", 20);
}

/* What is not here yet is refused with one line that names it. */
static void test_refused(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    selkie_body_def body;
    selkie_error error = {0};
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    for (int m = 0; m < 2; m++)
        selkie_material_defaults(&s.materials[m]);
    s.materials[0].name = "water";
    s.materials[1].name = "cork";
    s.materials[1].kind = SELKIE_MATERIAL_RIGID;
    s.materials[1].density = 400.0;
    s.scene.materials = s.materials;
    s.scene.material_count = 2;
    selkie_body_defaults(&body);
    body.shape = ball_of(0.24, 0.3, 0.0, 0.04);
    body.material = "cork";
    s.scene.bodies = &body;
    s.scene.body_count = 1;
    assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_ERROR_INPUT);
    if (!strstr(error.message, "bodies of particles with splashes"))
        fail_msg("%s", error.message);
    s.scene.splashes = NULL;
    assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_OK);
}

static void test_solve_3d(void **state)
{
    (void)state;
    if (!device_is_fast(3))
        skip();
    splash_scene s;
    set_splashes(&s, 3, SELKIE_VOLUME_IDP);
    s.scene.splash.rate = 1e3;
    solve(&s, "projection in 3D", 30);
}

/* Frozen particles become no droplets, and take no impulse from those beside them. */
static void test_ice(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    selkie_material_defaults(&s.materials[0]);
    s.materials[0].name = "water";
    s.materials[0].heat_capacity = 4000.0;
    s.materials[0].conductivity = 0.5;
    s.materials[0].melting_point = 273.0;
    s.materials[0].latent_heat = 3e5;
    for (int l = 0; l < 2; l++) {
        s.liquids[l].material = "water";
        s.liquids[l].temperature = l ? 250.0 : 300.0;
    }
    s.liquids[1].shape.min[0] = 0.2; /* droplets fly beside it */
    s.scene.materials = s.materials;
    s.scene.material_count = 1;
    assert_true(run_both(&s, "ice", 15, 1e-5, 1e-3) > 20);
}

/* Liquids of two densities, and heat: sums over all particles have the droplets in them. */
static void test_warm(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    static const char *const names[2] = {"water", "oil"};
    splash_scene s;
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&s.materials[m]);
        s.materials[m].name = names[m];
        s.materials[m].density = m ? 800.0 : 1000.0;
        s.materials[m].heat_capacity = 4000.0;
        s.materials[m].conductivity = 0.5;
        s.liquids[m].material = names[m];
        s.liquids[m].temperature = m ? 350.0 : 300.0;
    }
    s.scene.materials = s.materials;
    s.scene.material_count = 2;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    take_steps(plain, 15);
    take_steps(cuda, 15);
    const distances now = apart(plain, cuda);
    assert_true(now.position < 1e-5 && now.velocity < 1e-3);
    have_the_same_state(plain, cuda);
    assert_true(splashes_of(cuda)->flying > 5);
    const selkie_statistics *p = selkie_world_statistics(plain), *q = selkie_world_statistics(cuda);
    assert_float_equal(p->heat_energy, q->heat_energy, 1e-7 * fabs(p->heat_energy));
    assert_float_equal(plain->step.mass_sums.mass, cuda->step.mass_sums.mass, 1e-9 * plain->step.mass_sums.mass);
    assert_float_equal(plain->step.mass_sums.kinetic, cuda->step.mass_sums.kinetic,
                       1e-4 * plain->step.mass_sums.kinetic);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Two runs, and one that goes on from a checkpoint: the same bits. The plain backend goes on from it as well. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const char *file = in_root("checkpoint");
    splash_scene s;
    selkie_error error = {0};
    set_splashes(&s, 2, SELKIE_VOLUME_IDP);
    s.scene.splash.pairs = 2;
    selkie_world *world[4];
    for (int w = 0; w < 4; w++)
        world[w] = make_world(&s.scene, w < 3 ? SELKIE_BACKEND_CUDA : SELKIE_BACKEND_PLAIN);
    for (int w = 0; w < 2; w++) {
        take_steps(world[w], 12);
        if (w == 0)
            assert_int_equal(selkie_world_save(world[w], file, &error), SELKIE_OK);
        take_steps(world[w], 6);
    }
    for (int w = 2; w < 4; w++) {
        if (selkie_world_load(world[w], file, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        take_steps(world[w], w < 3 ? 6 : 1);
    }
    assert_true(splashes_of(world[0])->flying > 5);
    for (int w = 1; w < 3; w++) {
        const distances now = apart(world[0], world[w]);
        assert_true(now.position == 0.0 && now.velocity == 0.0 && now.age == 0.0);
        assert_true(have_the_same_state(world[0], world[w]) == 0.0);
    }

    /* And back: a checkpoint of the plain backend. */
    assert_true(splashes_of(world[3])->flying > 5);
    assert_int_equal(selkie_world_save(world[3], file, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(world[2], file, &error), SELKIE_OK);
    const distances now = apart(world[2], world[3]);
    assert_true(now.position == 0.0 && now.velocity == 0.0 && now.age == 0.0);
    take_steps(world[2], 1);
    take_steps(world[3], 1);
    assert_int_equal(splashes_of(world[2])->flying, splashes_of(world[3])->flying);
    for (int w = 0; w < 4; w++)
        selkie_world_destroy(world[w]);
}

/* Particles that others change between steps, droplets among them: the next step finds these where they are now. */
static void test_changes(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash_scene s;
    selkie_change_def changes[2]; /* liquid, and a wall: the second builds the world anew */
    selkie_error error = {0};
    set_splashes(&s, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    memset(changes, 0, sizeof changes);
    changes[0].kind = SELKIE_CHANGE_LIQUID;
    selkie_liquid_defaults(&changes[0].liquid);
    changes[0].liquid.shape = box_of((const double[3]){0.02, 0.3, 0.0}, (const double[3]){0.06, 0.34, 1.0});
    changes[1].kind = SELKIE_CHANGE_OBSTACLE;
    selkie_obstacle_defaults(&changes[1].obstacle);
    changes[1].obstacle.shape = box_of((const double[3]){0.22, 0.2, 0.0}, (const double[3]){0.24, 0.4, 1.0});
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 3; n++) {
        take_steps(plain, 8);
        take_steps(cuda, 8);
        assert_true(apart(plain, cuda).position < 1e-5);
        have_the_same_state(plain, cuda);
        if (n == 2)
            break;
        assert_true(splashes_of(cuda)->flying > 2);
        if (selkie_world_change(plain, &changes[n], NULL, &error) ||
            selkie_world_change(cuda, &changes[n], NULL, &error))
            fail_msg("%s", error.message);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flight_2d), cmocka_unit_test(test_flight_3d), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_obstacles), cmocka_unit_test(test_streams),   cmocka_unit_test(test_solve_2d),
        cmocka_unit_test(test_solve_3d),  cmocka_unit_test(test_warm),      cmocka_unit_test(test_ice),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_changes),   cmocka_unit_test(test_others),
        cmocka_unit_test(test_refused),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

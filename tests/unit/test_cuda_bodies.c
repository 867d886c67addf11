/* Rigid bodies in the liquid on the GPU against the plain backend: marks and paths have the same bits, the solver takes
 * as many iterations, and bodies float as deep. Skipped with a word where there is no device. */
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
#include "rigid/rigid.h"

enum { MOST_BODIES = 6 };

typedef struct body_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_body_def bodies[MOST_BODIES];
} body_scene;

static void add_body(body_scene *s, selkie_shape shape, double density)
{
    selkie_body_def *body = &s->bodies[s->scene.body_count++];
    selkie_body_defaults(body);
    body->shape = shape;
    body->density = density;
    s->scene.bodies = s->bodies;
}

/* Two columns that fall onto each other, a light box and a heavy ball. */
static void set_bodies(body_scene *s, int dimension, selkie_volume volume, selkie_transfer transfer)
{
    memset(s, 0, sizeof *s);
    set_scene(&s->scene, s->liquids, dimension, volume);
    s->scene.transfer = transfer;
    const double z = dimension == 3 ? 0.2 : 0.0;
    add_body(s, box_of((const double[3]){0.1, 0.5, 0.05}, (const double[3]){0.3, 0.65, 0.25}), 200.0);
    add_body(s, ball_of(0.62, 0.35, 2.5 * z, 0.12), 2500.0);
}

static double largest_apart(const selkie_world *a, const selkie_world *b)
{
    double most = 0.0;
    for (int n = 0; n < selkie_world_body_count(a); n++) {
        selkie_body_state p, q;
        assert_int_equal(selkie_world_body(a, n, &p), SELKIE_OK);
        assert_int_equal(selkie_world_body(b, n, &q), SELKIE_OK);
        for (int d = 0; d < 3; d++)
            most = fmax(most, fabs(p.position[d] - q.position[d]));
    }
    return most;
}

/* Without pressure: particles rain on bodies that fall. Paths have the same bits while contacts move the bodies alike;
 * sums over contacts have another order. */
static void rain(int dimension, selkie_transfer transfer)
{
    body_scene s;
    set_bodies(&s, dimension, SELKIE_VOLUME_NONE, transfer);
    s.scene.pressure.start = 10.0;
    s.liquids[0].velocity[0] = 2.0;
    s.liquids[1].velocity[0] = -1.5;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    for (int n = 0; n < (dimension == 2 ? 8 : 3); n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda), bodies = largest_apart(plain, cuda);
        if (n == 0 && apart != 0.0)
            fail_msg("after step %d: %g m apart", n + 1, apart);
        if (bodies > 1e-9 || !(apart < 1e-6))
            fail_msg("after step %d: bodies %g m, particles %g m apart", n + 1, bodies, apart);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Particles at rest that a force throws at a box in one step, over many cells. */
static void test_fast_start(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    body_scene s;
    selkie_force_def force;
    memset(&s, 0, sizeof s);
    set_scene(&s.scene, s.liquids, 2, SELKIE_VOLUME_NONE);
    s.scene.pressure.start = 10.0;
    for (int l = 0; l < 2; l++) {
        s.liquids[l].shape.min[1] += 0.6;
        s.liquids[l].shape.max[1] += 0.6;
    }
    selkie_force_defaults(&force, SELKIE_FORCE_UNIFORM);
    force.acceleration[1] = -8000.0;
    s.scene.forces = &force;
    s.scene.force_count = 1;
    add_body(&s, box_of((const double[3]){0.1, 0.3, 0.0}, (const double[3]){0.9, 0.45, 1.0}), 800.0);
    s.bodies[0].move[0] = 0.0;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    take_steps(plain, 1);
    take_steps(cuda, 1);
    selkie_body_state p, q;
    assert_int_equal(selkie_world_body(plain, 0, &p), SELKIE_OK);
    assert_int_equal(selkie_world_body(cuda, 0, &q), SELKIE_OK);
    print_message("the box moves at %g and %g m/s\n", p.velocity[1], q.velocity[1]);
    assert_true(p.velocity[1] < -5.0);
    assert_float_equal(p.velocity[1], q.velocity[1], 1e-9);
    assert_true(difference(plain, cuda) == 0.0);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Bodies beside a source, a drain, an open side and liquids of two densities. */
static void streams(double pressure_start)
{
    body_scene s;
    selkie_material_def materials[2];
    selkie_source_def source;
    selkie_drain_def drain;
    set_bodies(&s, 2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP);
    s.scene.pressure.start = pressure_start;
    s.scene.pressure.tolerance = 1e-6;
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = m ? "oil" : "water";
        materials[m].density = m ? 700.0 : 1000.0;
        s.liquids[m].material = materials[m].name;
    }
    s.scene.materials = materials;
    s.scene.material_count = 2;
    s.liquids[0].velocity[0] = 2.0;
    selkie_source_defaults(&source);
    source.shape = box_of((const double[3]){0.1, 1.1, 0.0}, (const double[3]){0.3, 1.2, 1.0});
    source.velocity[1] = -3.0;
    source.material = "oil";
    s.scene.sources = &source;
    s.scene.source_count = 1;
    selkie_drain_defaults(&drain);
    drain.shape = box_of((const double[3]){0.0, 0.0, 0.0}, (const double[3]){0.2, 0.1, 1.0});
    s.scene.drains = &drain;
    s.scene.drain_count = 1;
    s.scene.domain.walls[1] = SELKIE_WALL_OPEN;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 12; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double bodies = largest_apart(plain, cuda);
        const int iterations[2] = {plain->step.pressure.iterations, cuda->step.pressure.iterations};
        print_message("step %d: bodies %g m apart; %d and %d iterations\n", n + 1, bodies, iterations[0],
                      iterations[1]);
        assert_true(abs(iterations[0] - iterations[1]) <= 1);
        assert_true(bodies < 1e-3 * s.scene.domain.cell_size);
    }
    assert_true(cuda->step.emitted > 0 && cuda->step.drained > 0);
    assert_int_equal(plain->step.emitted, cuda->step.emitted);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_streams(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    streams(10.0);
    streams(0.0);
}

static void test_rain_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    rain(2, SELKIE_TRANSFER_FLIP);
    rain(2, SELKIE_TRANSFER_APIC);
}

static void test_rain_3d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    rain(3, SELKIE_TRANSFER_FLIP);
}

/* Steps with pressure: as many iterations as the plain form, and the bodies stay together. */
static void splash(int dimension, selkie_volume volume, selkie_transfer transfer, int steps)
{
    body_scene s;
    set_bodies(&s, dimension, volume, transfer);
    s.scene.pressure.tolerance = 1e-6;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda), bodies = largest_apart(plain, cuda);
        print_message("step %d: particles %g m, bodies %g m apart; pressure %d and %d iterations; density %d and %d\n",
                      n + 1, apart, bodies, p->pressure.iterations, q->pressure.iterations,
                      p->density_report.iterations, q->density_report.iterations);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        assert_true(abs(p->density_report.iterations - q->density_report.iterations) <= 1);
        assert_true(bodies < 1e-3 * s.scene.domain.cell_size);
        if (n == 0) /* later steps sort particles apart */
            assert_true(apart < 1e-3 * s.scene.domain.cell_size);
    }
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_splash_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash(2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP, 12);
    splash(2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_APIC, 12);
    splash(2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_PIC, 6);
}

static void test_splash_3d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash(3, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP, 3);
}

/* A box full of water has no free surface: the solve is balanced, and a light disc in it feels its added mass. */
static void test_closed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    body_scene s;
    memset(&s, 0, sizeof s);
    set_scene(&s.scene, s.liquids, 2, SELKIE_VOLUME_NONE);
    s.scene.liquid_count = 1;
    s.scene.domain.size[1] = s.liquids[0].shape.max[0] = s.liquids[0].shape.max[1] = 1.0;
    add_body(&s, ball_of(0.5, 0.5, 0.0, 0.2), 100.0);
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 5; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(abs(plain->step.pressure.iterations - cuda->step.pressure.iterations) <= 1);
        assert_true(largest_apart(plain, cuda) < 1e-4 * s.scene.domain.cell_size);
    }
    selkie_body_state body;
    assert_int_equal(selkie_world_body(cuda, 0, &body), SELKIE_OK);
    assert_true(body.velocity[1] > 0.1); /* it rises */
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* ANALYTIC: Archimedes. The bound is that of tests/physics/floating.c. */
static void test_draught(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    static const double ratios[2] = {0.1, 0.5};
    for (int n = 0; n < 2; n++) {
        body_scene s;
        memset(&s, 0, sizeof s);
        set_scene(&s.scene, s.liquids, 2, SELKIE_VOLUME_IDP);
        s.scene.liquid_count = 1;
        s.scene.domain.size[1] = s.liquids[0].shape.max[0] = 1.0;
        s.liquids[0].shape.max[1] = 0.5;
        s.scene.time.step = 0.02;
        const double bottom = 0.5 - 0.25 * ratios[n], start = bottom + 0.125;
        add_body(&s, box_of((const double[3]){0.375, bottom, 0.0}, (const double[3]){0.625, bottom + 0.25, 1.0}),
                 1000.0 * ratios[n]);
        selkie_world *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
        double sum = 0.0;
        for (int step = 0; step < 60; step++) {
            selkie_body_state body;
            take_steps(cuda, 1);
            assert_int_equal(selkie_world_body(cuda, 0, &body), SELKIE_OK);
            sum += step < 20 ? 0.0 : body.position[1] / 40.0;
        }
        print_message("ratio %g: draught off by %.3f cells\n", ratios[n], fabs(sum - start) * 24.0);
        assert_true(fabs(sum - start) * 24.0 < 0.2);
        selkie_world_destroy(cuda);
    }
}

/* Momentum along y of the particles and the first body, kg m/s. */
static double momentum_of(const selkie_world *world)
{
    selkie_body_state body;
    assert_int_equal(sk_world_fetch(world, 1, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_body(world, 0, &body), SELKIE_OK);
    double sum = body.mass * body.velocity[1];
    for (int64_t p = 0; p < world->step.particles.count; p++)
        sum += world->step.particle_mass * (double)world->step.particles.records[p].velocity[1];
    return sum;
}

/* A drop hits a body in free space. Without pressure contacts alone act, which conserve momentum to the rounding of the
 * particles' velocities (30 steps of 2^-24); with it the surface of the drop is less than full
 * (tests/physics/floating.c). */
static void test_momentum(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    for (int pressure = 0; pressure < 2; pressure++) {
        body_scene s;
        memset(&s, 0, sizeof s);
        set_scene(&s.scene, s.liquids, 2, SELKIE_VOLUME_NONE);
        s.scene.liquid_count = 1;
        s.scene.gravity[1] = 0.0;
        s.scene.time.step = 0.005;
        s.scene.pressure.start = pressure ? 0.0 : 10.0;
        s.liquids[0].shape = ball_of(0.5, 0.75, 0.0, 0.1);
        s.liquids[0].velocity[1] = -2.0;
        add_body(&s, box_of((const double[3]){0.45, 0.4, 0.0}, (const double[3]){0.7, 0.5, 1.0}), 800.0);
        selkie_world *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
        const double start = momentum_of(cuda);
        take_steps(cuda, 30);
        selkie_body_state body;
        assert_int_equal(selkie_world_body(cuda, 0, &body), SELKIE_OK);
        const double lost = fabs(momentum_of(cuda) / start - 1.0);
        print_message("%s pressure: %.3g of the momentum lost, the body moves at %.3g m/s\n",
                      pressure ? "with" : "without", lost, body.velocity[1]);
        assert_true(body.velocity[1] < -0.05);
        assert_true(lost < (pressure ? 0.06 : 30.0 / (1 << 24)));
        selkie_world_destroy(cuda);
    }
}

/* Bodies that touch each other, one of them held and one of a mesh, beside an obstacle that moves: forces and poses are
 * those of the plain form. */
static void test_crowd(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    static const selkie_point hook[] = {{{0.4, 0.42}}, {{0.6, 0.42}},  {{0.6, 0.6}},
                                        {{0.54, 0.6}}, {{0.54, 0.48}}, {{0.4, 0.48}}};
    body_scene s;
    selkie_obstacle_def obstacle;
    memset(&s, 0, sizeof s);
    set_scene(&s.scene, s.liquids, 2, SELKIE_VOLUME_IDP);
    s.scene.liquid_count = 1;
    s.liquids[0].shape.max[0] = 1.0;
    s.liquids[0].shape.max[1] = 0.5;
    s.scene.pressure.tolerance = 1e-6;
    selkie_obstacle_defaults(&obstacle);
    obstacle.shape = ball_of(0.85, 0.1, 0.0, 0.08);
    obstacle.velocity[0] = -0.5;
    s.scene.obstacles = &obstacle;
    s.scene.obstacle_count = 1;
    selkie_shape polygon;
    selkie_shape_defaults(&polygon, SELKIE_SHAPE_POLYGON);
    polygon.points = hook;
    polygon.point_count = sizeof hook / sizeof *hook;
    add_body(&s, ball_of(0.2, 0.45, 0.0, 0.1), 20.0);
    add_body(&s, ball_of(0.2, 0.652, 0.0, 0.1), 900.0);
    add_body(&s, polygon, 700.0);
    add_body(&s, box_of((const double[3]){0.4, 0.1, 0.0}, (const double[3]){0.55, 0.22, 1.0}), 500.0);
    add_body(&s, ball_of(0.75, 0.5, 0.0, 0.09), 300.0);
    for (int d = 0; d < 3; d++)
        s.bodies[3].move[d] = s.bodies[3].turn[d] = 0.0;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 10; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = largest_apart(plain, cuda);
        print_message("step %d: bodies %g m apart; %d and %d iterations\n", n + 1, apart,
                      plain->step.pressure.iterations, cuda->step.pressure.iterations);
        assert_true(abs(plain->step.pressure.iterations - cuda->step.pressure.iterations) <= 1);
        assert_true(apart < 1e-3 * s.scene.domain.cell_size);
    }
    for (int b = 0; b < s.scene.body_count; b++) {
        selkie_body_state p, q;
        assert_int_equal(selkie_world_body(plain, b, &p), SELKIE_OK);
        assert_int_equal(selkie_world_body(cuda, b, &q), SELKIE_OK);
        const double force = hypot(p.force[0], p.force[1]);
        print_message("body %d: %g and %g N\n", b, force, hypot(q.force[0], q.force[1]));
        assert_true(b != 3 || force > 100.0); /* the one that is held */
        for (int d = 0; d < 2; d++)
            assert_true(fabs(p.force[d] - q.force[d]) < 0.01 * force + 0.1);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Two runs, and one that goes on from a checkpoint: the same bits. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const char *file = in_root("checkpoint");
    body_scene s;
    selkie_error error = {0};
    set_bodies(&s, 2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP);
    selkie_world *world[3];
    for (int w = 0; w < 3; w++)
        world[w] = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int w = 0; w < 2; w++) {
        take_steps(world[w], 5);
        if (w == 0)
            assert_int_equal(selkie_world_save(world[w], file, &error), SELKIE_OK);
        take_steps(world[w], 5);
    }
    if (selkie_world_load(world[2], file, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    take_steps(world[2], 5);
    for (int w = 1; w < 3; w++) {
        assert_true(difference(world[0], world[w]) == 0.0);
        for (int b = 0; b < 2; b++)
            assert_memory_equal(&world[0]->step.rigid->states[b], &world[w]->step.rigid->states[b],
                                sizeof world[0]->step.rigid->states[b]);
    }
    for (int w = 0; w < 3; w++)
        selkie_world_destroy(world[w]);
}

/* What is not here yet is refused with one line that names it. */
static void test_refused(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    for (int n = 0; n < 3; n++) {
        body_scene s;
        selkie_error error = {0};
        set_bodies(&s, 2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP);
        if (n == 0)
            s.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        else if (n == 1)
            s.bodies[0].liquid_friction = 0.3;
        else
            s.scene.domain.periodic = 1;
        static const char *const words[] = {"unilateral", "liquid_friction", "periodic"};
        assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_ERROR_INPUT);
        assert_non_null(strstr(error.message, words[n]));
    }
    static selkie_body_def many[1025];
    body_scene s;
    selkie_error error = {0};
    set_bodies(&s, 2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP);
    for (int b = 0; b < 1025; b++)
        many[b] = s.bodies[0];
    s.scene.bodies = many;
    s.scene.body_count = 1024;
    assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_OK);
    s.scene.body_count = 1025;
    assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "1024"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rain_2d),   cmocka_unit_test(test_rain_3d),    cmocka_unit_test(test_splash_2d),
        cmocka_unit_test(test_splash_3d), cmocka_unit_test(test_closed),     cmocka_unit_test(test_draught),
        cmocka_unit_test(test_momentum),  cmocka_unit_test(test_crowd),      cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_fast_start), cmocka_unit_test(test_streams),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

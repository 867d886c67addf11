/* Changes of a world between steps on the GPU: what they do in the plain backend, up to the rounding of paths where
 * nothing is solved, and a record of them replays. Skipped with a word where there is no device. */
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
#include "selkie_config.h"

static selkie_error error;
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != SELKIE_OK)                                                                                       \
            fail_msg("%s", error.message);                                                                             \
    } while (0)

/* A world, and the one it is compared with; NULL = none. */
typedef struct pair {
    selkie_world *world, *other;
    double tolerance; /* m */
    int step;
} pair;

static void advance(pair *both, int steps)
{
    for (int n = 0; n < steps; n++) {
        take_steps(both->world, 1);
        both->step++;
        if (!both->other)
            continue;
        take_steps(both->other, 1);
        assert_int_equal(both->world->step.particles.count, both->other->step.particles.count);
        const double apart = difference(both->world, both->other);
        if (!(apart <= both->tolerance))
            fail_msg("after step %d: %g m apart", both->step, apart);
        assert_int_equal(both->world->step.emitted, both->other->step.emitted);
        assert_int_equal(both->world->step.drained, both->other->step.drained);
    }
}

static void change(pair *both, const selkie_change_def *change)
{
    selkie_change_report report, other;
    OK(selkie_world_change(both->world, change, &report, &error));
    if (!both->other)
        return;
    OK(selkie_world_change(both->other, change, &other, &error));
    assert_int_equal(report.added, other.added);
    assert_int_equal(report.removed, other.removed);
}

static selkie_shape flat_box(double x0, double y0, double x1, double y1)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_BOX);
    shape.min[0] = x0;
    shape.min[1] = y0;
    shape.max[0] = x1;
    shape.max[1] = y1;
    shape.max[2] = 0.4;
    return shape;
}

static selkie_shape disc_of(double x, double y, double radius)
{
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_SPHERE);
    shape.center[0] = x;
    shape.center[1] = y;
    shape.center[2] = 0.2;
    shape.radius = radius;
    return shape;
}

static void move_ball(pair *both, double x, double y)
{
    selkie_change_def move;
    selkie_change_defaults(&move, SELKIE_CHANGE_MOVE);
    move.name = "ball";
    move.translate[0] = x;
    move.translate[1] = y;
    move.rotate[2] = 30;
    move.duration = 0.1;
    change(both, &move);
}

static void change_flow(pair *both)
{
    selkie_change_def next;
    selkie_change_defaults(&next, SELKIE_CHANGE_GRAVITY);
    next.gravity[0] = 3.0;
    next.gravity[1] = -9.0;
    change(both, &next);
    advance(both, 2);
    selkie_change_defaults(&next, SELKIE_CHANGE_FORCE);
    next.force.name = "jet";
    next.force.kind = SELKIE_FORCE_UNIFORM;
    next.force.acceleration[0] = -2.0;
    change(both, &next);
    advance(both, 1);
    selkie_change_defaults(&next, SELKIE_CHANGE_LIQUID);
    next.liquid.shape = flat_box(0.4, 0.6, 0.65, 0.85);
    next.liquid.velocity[0] = -1.0;
    change(both, &next);
    advance(both, 2);
    selkie_change_defaults(&next, SELKIE_CHANGE_CLEAR);
    next.shape = disc_of(0.1, 0.1, 0.08);
    change(both, &next);
    advance(both, 2);
}

/* Every kind of change of what is not a body. */
static void play(pair *both)
{
    selkie_change_def next;
    advance(both, 2);
    change_flow(both);
    selkie_change_defaults(&next, SELKIE_CHANGE_OBSTACLE);
    next.obstacle.name = "ball";
    next.obstacle.shape = disc_of(0.7, 0.5, 0.1);
    memcpy(next.obstacle.center, next.obstacle.shape.center, sizeof next.obstacle.center);
    change(both, &next);
    advance(both, 2);
    move_ball(both, -0.2, 0.1);
    advance(both, 2);
    move_ball(both, 0.1, 0.0);
    advance(both, 1);
    selkie_change_defaults(&next, SELKIE_CHANGE_STEP);
    next.length = 0.0123;
    change(both, &next);
    advance(both, 1);
    selkie_change_defaults(&next, SELKIE_CHANGE_SOURCE);
    next.source.name = "tap";
    next.source.shape = flat_box(0.1, 0.8, 0.25, 0.9);
    next.source.velocity[1] = -1.0;
    change(both, &next);
    advance(both, 3);
    selkie_change_defaults(&next, SELKIE_CHANGE_DRAIN);
    next.drain.name = "sink";
    next.drain.shape = flat_box(0.0, 0.0, 0.2, 0.1);
    change(both, &next);
    advance(both, 2);
    selkie_change_defaults(&next, SELKIE_CHANGE_REMOVE);
    next.name = "ball";
    change(both, &next);
    advance(both, 3);
}

static void set_fall(selkie_scene *scene, selkie_liquid_def liquids[2], int dimension)
{
    set_scene(scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene->pressure.start = 10.0;
    liquids[0].velocity[0] = 2.0;
    liquids[1].velocity[0] = -1.5;
}

static void compare(const selkie_scene *scene, double tolerance)
{
    pair both = {make_world(scene, SELKIE_BACKEND_PLAIN), make_world(scene, SELKIE_BACKEND_CUDA), tolerance, 0};
    play(&both);
    selkie_world_destroy(both.world);
    selkie_world_destroy(both.other);
}

static void test_flight(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_fall(&scene, liquids, 2);
    compare(&scene, PATHS_APART);
    scene.transfer = SELKIE_TRANSFER_APIC;
    compare(&scene, PATHS_APART);
    set_fall(&scene, liquids, 3);
    compare(&scene, PATHS_APART);
}

/* With pressure and the density projection: as many iterations, and the volume of the plain form. The numbers of
 * particles in cells decide where liquid is added, so that the sums may differ by a few. */
static void test_flow(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_IDP);
    scene.pressure.tolerance = 1e-6;
    pair one = {make_world(&scene, SELKIE_BACKEND_PLAIN), NULL, 0.0, 0},
         two = {make_world(&scene, SELKIE_BACKEND_CUDA), NULL, 0.0, 0};
    play(&one);
    play(&two);
    const selkie_statistics *p = selkie_world_statistics(one.world), *q = selkie_world_statistics(two.world);
    print_message("%lld and %lld particles, volume %.4f and %.4f, energy %.4f and %.4f\n", (long long)p->particles,
                  (long long)q->particles, p->volume_ratio, q->volume_ratio, p->kinetic_energy, q->kinetic_energy);
    assert_true(llabs((long long)(p->particles - q->particles)) < p->particles / 200);
    assert_float_equal(p->volume_ratio, q->volume_ratio, 0.005);
    assert_float_equal(p->kinetic_energy, q->kinetic_energy, 0.02 * p->kinetic_energy);
    selkie_world_destroy(one.world);
    selkie_world_destroy(two.world);
}

/* A record of a steered world: played again, and resumed in the middle, with the same bits. */
static void test_record(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const char *file = in_root("checkpoint");
    selkie_scene scene, *record;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_IDP);
    pair played = {make_world(&scene, SELKIE_BACKEND_CUDA), NULL, 0.0, 0};
    play(&played);
    OK(sk_scene_copy(selkie_world_record(played.world), &record, &error));
    assert_int_equal(record->change_count, 11);
    selkie_world *replayed = make_world(record, SELKIE_BACKEND_CUDA),
                 *resumed = make_world(record, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < played.step; n++) {
        if (n == played.step / 2)
            OK(selkie_world_save(replayed, file, &error));
        take_steps(replayed, 1);
    }
    assert_true(difference(played.world, replayed) == 0.0);
    OK(selkie_world_load(resumed, file, &error));
    take_steps(resumed, played.step - played.step / 2);
    assert_true(difference(played.world, resumed) == 0.0);
    selkie_world_destroy(played.world);
    selkie_world_destroy(replayed);
    selkie_world_destroy(resumed);
    selkie_scene_free(record);
}

static void compare_bodies(const pair *both)
{
    const int count = selkie_world_body_count(both->world);
    assert_int_equal(count, selkie_world_body_count(both->other));
    for (int b = 0; b < count; b++) {
        selkie_body_state p, q;
        OK(selkie_world_body(both->world, b, &p));
        OK(selkie_world_body(both->other, b, &q));
        for (int d = 0; d < 3; d++) {
            assert_float_equal(p.position[d], q.position[d], 1e-9);
            assert_float_equal(p.velocity[d], q.velocity[d], 1e-7);
        }
    }
}

/* Bodies that come, are pushed and go, in a rain without pressure. Sums over contacts have another order: 1e-9 m, as in
 * test_cuda_bodies.c; particles at their surfaces take the rounding with them. */
static void test_bodies(void **state)
{
    (void)state;
    if (!device_is_here() || !SELKIE_HAVE_ODE)
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_body_def body;
    selkie_change_def next;
    set_fall(&scene, liquids, 2);
    selkie_body_defaults(&body);
    body.name = "raft";
    body.shape = flat_box(0.4, 0.2, 0.6, 0.3);
    body.density = 300.0;
    scene.bodies = &body;
    scene.body_count = 1;
    pair both = {make_world(&scene, SELKIE_BACKEND_PLAIN), make_world(&scene, SELKIE_BACKEND_CUDA), 1e-6, 0};
    advance(&both, 2);
    selkie_change_defaults(&next, SELKIE_CHANGE_PUSH);
    next.name = "raft";
    next.velocity[1] = 2.0;
    next.angular_velocity[2] = 3.0;
    change(&both, &next);
    advance(&both, 2);
    compare_bodies(&both);
    selkie_change_defaults(&next, SELKIE_CHANGE_BODY);
    next.body.name = "ball";
    next.body.shape = disc_of(0.2, 0.3, 0.1);
    next.body.density = 700.0;
    change(&both, &next);
    advance(&both, 3);
    compare_bodies(&both);
    selkie_change_defaults(&next, SELKIE_CHANGE_REMOVE);
    next.list = SELKIE_LIST_BODIES;
    next.name = "raft";
    change(&both, &next);
    advance(&both, 3);
    compare_bodies(&both);
    selkie_world_destroy(both.world);
    selkie_world_destroy(both.other);
}

/* A change to what is not here yet is refused with one line; the world goes on. In a scene it is refused at the start.
 */
static void test_refused(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_change_def next;
    set_fall(&scene, liquids, 2);
    scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    pair both = {make_world(&scene, SELKIE_BACKEND_PLAIN), make_world(&scene, SELKIE_BACKEND_CUDA), 0.0, 0};
    advance(&both, 1);
    selkie_change_defaults(&next, SELKIE_CHANGE_BODY);
    next.body.name = "ball";
    next.body.shape = disc_of(0.7, 0.5, 0.1);
    assert_int_equal(selkie_world_change(both.other, &next, NULL, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "rigid bodies with unilateral"));
    assert_null(strchr(error.message, '\n'));
    advance(&both, 2);
    selkie_world_destroy(both.world);
    selkie_world_destroy(both.other);
    scene.changes = &next;
    scene.change_count = 1;
    assert_int_equal(sk_cuda_check(&scene, &error), SELKIE_ERROR_INPUT);
    scene.incompressibility = SELKIE_INCOMPRESSIBILITY_BILATERAL;
    assert_int_equal(sk_cuda_check(&scene, &error), SELKIE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flight), cmocka_unit_test(test_flow),    cmocka_unit_test(test_record),
        cmocka_unit_test(test_bodies), cmocka_unit_test(test_refused),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

/* Changes of a world between steps: what they do, and that a record of them replays bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <string.h>

#include <selkie/selkie.h>
#include "geom/shape.h"
#include "rigid/rigid.h"
#include "scratch_folder.h"
#include "world/scene_changes.h"

static selkie_error error;
#define OK(call) assert_int_equal((error.message[0] = 0, call), SELKIE_OK)

/* A dam of a unit square at an origin. */
static void dam(selkie_scene *scene, selkie_liquid_def *liquid, double origin)
{
    selkie_scene_defaults(scene);
    scene->domain.dimension = 2;
    scene->domain.origin[0] = origin;
    scene->domain.size[0] = scene->domain.size[1] = 1;
    scene->domain.resolution = 24;
    selkie_liquid_defaults(liquid);
    liquid->shape.kind = SELKIE_SHAPE_BOX;
    memset(liquid->shape.min, 0, sizeof liquid->shape.min);
    liquid->shape.min[0] = origin;
    liquid->shape.max[0] = origin + 0.4;
    liquid->shape.max[1] = 0.6;
    scene->liquids = liquid;
    scene->liquid_count = 1;
}

static void step(selkie_world *world, int count)
{
    for (int n = 0; n < count; n++)
        OK(selkie_world_step(world, &error));
}

static selkie_change_def ball(const char *name, double x, double y)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_OBSTACLE);
    change.obstacle.name = name;
    change.obstacle.shape.kind = SELKIE_SHAPE_SPHERE;
    change.obstacle.shape.center[0] = change.obstacle.center[0] = x;
    change.obstacle.shape.center[1] = change.obstacle.center[1] = y;
    change.obstacle.shape.radius = 0.1;
    return change;
}

static selkie_change_def move_of(const char *name, double x, double y)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_MOVE);
    change.name = name;
    change.translate[0] = x;
    change.translate[1] = y;
    change.rotate[2] = 30;
    change.duration = 0.1;
    return change;
}

static selkie_change_def block_of_liquid(double x, double y)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_LIQUID);
    change.liquid.shape.kind = SELKIE_SHAPE_BOX;
    for (int d = 0; d < 2; d++) {
        change.liquid.shape.min[d] = d ? y : x;
        change.liquid.shape.max[d] = (d ? y : x) + 0.25;
    }
    return change;
}

/* Every kind of change in one run. */
static void play(selkie_world *world, double origin)
{
    step(world, 3);
    OK(selkie_world_set_gravity(world, (double[3]){3, -9, 0}, &error));
    step(world, 2);
    selkie_change_def change = ball("ball", origin + 0.7, 0.2);
    OK(selkie_world_change(world, &change, NULL, &error));
    change = block_of_liquid(origin + 0.6, 0.6);
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 2);
    change = move_of("ball", -0.2, 0.1);
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 2);
    change = move_of("ball", 0.1, 0.0);
    OK(selkie_world_change(world, &change, NULL, &error));
    OK(selkie_world_step_for(world, 0.0123, &error));

    selkie_change_defaults(&change, SELKIE_CHANGE_SOURCE);
    change.source.name = "tap";
    change.source.shape.kind = SELKIE_SHAPE_BOX;
    change.source.shape.min[0] = origin + 0.1;
    change.source.shape.min[1] = 0.8;
    change.source.shape.max[0] = origin + 0.2;
    change.source.shape.max[1] = 0.9;
    change.source.velocity[1] = -1;
    OK(selkie_world_change(world, &change, NULL, &error));
    selkie_change_defaults(&change, SELKIE_CHANGE_FORCE);
    change.force.name = "jet";
    change.force.kind = SELKIE_FORCE_UNIFORM;
    change.force.acceleration[0] = -2;
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 3);
    change.force.acceleration[0] = 5;
    OK(selkie_world_change(world, &change, NULL, &error));
    selkie_change_defaults(&change, SELKIE_CHANGE_CLEAR);
    change.shape.kind = SELKIE_SHAPE_SPHERE;
    change.shape.center[0] = origin + 0.1;
    change.shape.center[1] = 0.1;
    change.shape.radius = 0.05;
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 2);
    selkie_change_defaults(&change, SELKIE_CHANGE_REMOVE);
    change.name = "ball";
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 3);
}

static void assert_same(const selkie_world *a, const selkie_world *b)
{
    assert_int_equal(selkie_world_step_count(a), selkie_world_step_count(b));
    assert_true(selkie_world_time(a) == selkie_world_time(b));
    assert_int_equal(selkie_world_frame(a), selkie_world_frame(b));
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    for (int i = 0; i < selkie_world_attribute_count(a); i++) {
        selkie_attribute_view x, y;
        OK(selkie_world_attribute(a, i, &x));
        OK(selkie_world_attribute(b, i, &y));
        for (int64_t p = 0; p < selkie_world_particle_count(a); p++)
            assert_memory_equal((char *)x.data + (size_t)p * x.stride, (char *)y.data + (size_t)p * y.stride,
                                (size_t)x.components * 4);
    }
}

static void replay(selkie_discretization discretization, double origin)
{
    selkie_scene scene, *read;
    selkie_liquid_def liquid;
    selkie_world *played, *replayed, *resumed;
    dam(&scene, &liquid, origin);
    scene.discretization = discretization;
    OK(selkie_world_create(&scene, &(selkie_world_options){.threads = 1}, &played, &error));
    play(played, origin);

    /* From the file that the run leaves, on two threads; and resumed in the middle. */
    OK(selkie_scene_save(selkie_world_record(played), in_root("replay.json"), &error));
    OK(selkie_scene_load(in_root("replay.json"), 0, NULL, &read, &error));
    assert_int_equal(read->change_count, 11);
    OK(selkie_world_create(read, &(selkie_world_options){.threads = 2}, &replayed, &error));
    OK(selkie_world_create(read, NULL, &resumed, &error));
    const int count = (int)selkie_world_step_count(played), phases = selkie_world_phase_count(replayed);
    for (int n = 0; n < count; n++) {
        if (n == count / 2)
            OK(selkie_world_save(replayed, in_root("half.selkie"), &error));
        step(replayed, 1);
    }
    assert_same(played, replayed);
    assert_int_equal(selkie_world_phase_count(replayed), phases); /* the columns of stats.csv stay */
    OK(selkie_world_load(resumed, in_root("half.selkie"), &error));
    step(resumed, count - count / 2);
    assert_same(played, resumed);

    /* A checkpoint of a steered world needs the record. */
    OK(selkie_world_save(played, in_root("end.selkie"), &error));
    selkie_world_destroy(resumed);
    OK(selkie_world_create(&scene, NULL, &resumed, &error));
    assert_int_equal(selkie_world_load(resumed, in_root("end.selkie"), &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "after 11 changes"));
    selkie_world_destroy(played);
    selkie_world_destroy(replayed);
    selkie_world_destroy(resumed);
    selkie_scene_free(read);
}

static void a_record_replays(void **state)
{
    (void)state;
    replay(SELKIE_DISCRETIZATION_GRID, 0);
    replay(SELKIE_DISCRETIZATION_GRID, 1000);
    replay(SELKIE_DISCRETIZATION_SPH, 0);
}

/* A new obstacle pushes the liquid inside out in one step, however deep it is, in both backends. */
static void a_new_obstacle_is_empty(void **state)
{
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        selkie_scene scene;
        selkie_liquid_def liquid;
        selkie_world *world;
        selkie_change_def change = ball("ball", 0.2, 0.25);
        dam(&scene, &liquid, 0);
        scene.volume = SELKIE_VOLUME_NONE;
        scene.backend = backend ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_TUNED;
        change.obstacle.shape.radius = 0.15;
        OK(selkie_world_create(&scene, NULL, &world, &error));
        step(world, 2);
        OK(selkie_world_change(world, &change, NULL, &error));
        step(world, 1);
        selkie_attribute_view position;
        OK(selkie_world_attribute(world, 0, &position));
        assert_string_equal(position.name, "position");
        int inside = 0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            float x[2];
            memcpy(x, (const char *)position.data + (size_t)p * position.stride, sizeof x);
            inside += hypot((double)x[0] - 0.2, (double)x[1] - 0.25) < 0.149;
        }
        assert_int_equal(inside, 0);
        selkie_world_destroy(world);
    }
}

static void snapshots_go_back(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_world *world, *other;
    selkie_snapshot *early;
    dam(&scene, &liquid, 0);
    OK(selkie_world_create(&scene, NULL, &world, &error));
    OK(selkie_world_create(&scene, NULL, &other, &error));
    step(world, 4);
    OK(selkie_world_snapshot(world, &early, &error));
    selkie_change_def change = ball("", 0.5, 0.3);
    OK(selkie_world_change(world, &change, NULL, &error));
    OK(selkie_world_set_gravity(world, (double[3]){0, 0, 0}, &error));
    step(world, 4);
    OK(selkie_world_go_back(world, early, &error));
    assert_int_equal(selkie_world_scene(world)->obstacle_count, 0);
    assert_int_equal(selkie_world_record(world)->change_count, 0);
    step(world, 4);
    step(other, 8);
    assert_same(world, other);

    change = ball("", 0.5, 0.3);
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 2);
    OK(selkie_world_reset(world, &error));
    OK(selkie_world_reset(other, &error));
    assert_int_equal(selkie_world_step_count(world), 0);
    step(world, 8);
    step(other, 8);
    assert_same(world, other);
    selkie_snapshot_free(early);
    selkie_world_destroy(world);
    selkie_world_destroy(other);
}

/* Mean of a component of the velocity (m/s). */
static double mean_velocity(const selkie_world *world, int d)
{
    selkie_attribute_view v;
    OK(selkie_world_find_attribute(world, "velocity", &v, NULL));
    double sum = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        sum += ((float *)(void *)((char *)v.data + (size_t)p * v.stride))[d];
    return sum / (double)selkie_world_particle_count(world);
}

/* A falling drop: velocities live half a step behind, and forces of a step act between the middles of two steps. */
static void gravity_and_forces_act_from_now_on(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_world *world;
    dam(&scene, &liquid, 0);
    liquid.shape.kind = SELKIE_SHAPE_SPHERE;
    liquid.shape.center[0] = liquid.shape.center[1] = 0.5;
    liquid.shape.radius = 0.1;
    scene.time.step = 0.005;
    scene.time.fps = 200; /* frames shorten no step */
    OK(selkie_world_create(&scene, NULL, &world, &error));
    step(world, 10);
    const double before = mean_velocity(world, 1);
    OK(selkie_world_set_gravity(world, (double[3]){4, 2, 0}, &error));
    step(world, 10);
    /* Ten kicks of 5 ms, in single precision. */
    assert_true(fabs(mean_velocity(world, 0) - 4 * 0.05) < 1e-5);
    assert_true(fabs(mean_velocity(world, 1) - before - 2 * 0.05) < 1e-5);

    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_FORCE);
    change.force.name = "push";
    change.force.kind = SELKIE_FORCE_UNIFORM;
    change.force.acceleration[0] = -4;
    OK(selkie_world_change(world, &change, NULL, &error));
    const double then = mean_velocity(world, 0);
    step(world, 10);
    assert_true(fabs(mean_velocity(world, 0) - then) < 1e-5);
    /* The picture's up does not tilt with gravity. */
    double up[3];
    selkie_scene_up(selkie_world_scene(world), up);
    assert_true(up[1] == 1.0);
    selkie_world_destroy(world);
}

static void liquid_comes_where_there_is_room(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_world *world;
    selkie_change_report report;
    dam(&scene, &liquid, 0);
    OK(selkie_world_create(&scene, NULL, &world, &error));
    const int64_t start = selkie_world_particle_count(world);

    /* 6 x 6 cells of 9 particles; a second time there is no room. */
    selkie_change_def change = block_of_liquid(0.5, 0.5);
    OK(selkie_world_change(world, &change, &report, &error));
    assert_int_equal(report.added, 36 * 9);
    OK(selkie_world_change(world, &change, &report, &error));
    assert_int_equal(report.added, 0);
    assert_int_equal(selkie_world_particle_count(world), start + 36 * 9);
    step(world, 20);
    const selkie_statistics *statistics = selkie_world_statistics(world);
    assert_true(fabs(statistics->volume_ratio - 1.0) < 0.02); /* as without changes */

    /* Everything goes. */
    selkie_change_defaults(&change, SELKIE_CHANGE_CLEAR);
    change.shape.kind = SELKIE_SHAPE_BOX;
    change.shape.min[0] = change.shape.min[1] = -1;
    change.shape.max[0] = change.shape.max[1] = 2;
    OK(selkie_world_change(world, &change, &report, &error));
    assert_int_equal(report.removed, start + 36 * 9);
    step(world, 3);
    assert_int_equal(selkie_world_particle_count(world), 0);
    selkie_world_destroy(world);
}

static void bad_changes_leave_the_world_as_it_was(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_world *world, *other;
    dam(&scene, &liquid, 0);
    OK(selkie_world_create(&scene, NULL, &world, &error));
    OK(selkie_world_create(&scene, NULL, &other, &error));
    step(world, 2);

    selkie_change_def change = ball("ball", 0.5, 0.5);
    change.obstacle.shape.radius = -1;
    assert_int_equal(selkie_world_change(world, &change, NULL, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "radius"));
    change = ball("ball", 0.5, 0.5);
    change.obstacle.shape.kind = SELKIE_SHAPE_MESH;
    change.obstacle.shape.file = "is_not_there.obj";
    assert_int_not_equal(selkie_world_change(world, &change, NULL, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "is_not_there.obj"));
    change = move_of("nobody", 0, 0);
    assert_int_equal(selkie_world_change(world, &change, NULL, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "nobody"));
    selkie_change_defaults(&change, SELKIE_CHANGE_PUSH);
    change.name = "7";
    assert_int_equal(selkie_world_change(world, &change, NULL, &error), SELKIE_ERROR_INPUT);
    assert_int_equal(selkie_world_step_for(world, -1, &error), SELKIE_ERROR_INPUT);
    assert_int_equal(selkie_world_record(world)->change_count, 0);

    step(world, 4);
    step(other, 6);
    assert_same(world, other);
    selkie_world_destroy(world);
    selkie_world_destroy(other);
}

static void bodies_can_be_pushed(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_body_def body;
    selkie_body_state before, after;
    selkie_world *world;
    dam(&scene, &liquid, 0);
    selkie_body_defaults(&body);
    body.name = "log";
    body.shape.kind = SELKIE_SHAPE_SPHERE;
    body.shape.center[0] = 0.7;
    body.shape.center[1] = 0.5;
    body.shape.radius = 0.1;
    scene.bodies = &body;
    scene.body_count = 1;
    const selkie_code code = selkie_world_create(&scene, NULL, &world, &error);
    if (code == SELKIE_ERROR_UNSUPPORTED)
        skip();
    assert_int_equal(code, SELKIE_OK);
    step(world, 2);
    OK(selkie_world_body(world, 0, &before));
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_PUSH);
    change.name = "log";
    change.velocity[0] = -1.5;
    change.angular_velocity[2] = 2;
    OK(selkie_world_change(world, &change, NULL, &error));
    OK(selkie_world_body(world, 0, &after));
    assert_true(fabs(after.velocity[0] - before.velocity[0] + 1.5) < 1e-12);
    assert_true(fabs(after.angular_velocity[2] - before.angular_velocity[2] - 2) < 1e-12);

    /* In the air it flies on; a change of the solids keeps it. */
    change = ball("", 0.8, 0.9);
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 2);
    OK(selkie_world_body(world, 0, &after));
    assert_true(fabs(after.velocity[0] + 1.5) < 1e-6);
    assert_true(after.position[0] < before.position[0]);
    selkie_world_destroy(world);
}

static selkie_change_def disc(const char *name, double x, double y, double density)
{
    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_BODY);
    change.body.name = name;
    change.body.density = density;
    change.body.shape.kind = SELKIE_SHAPE_SPHERE;
    change.body.shape.center[0] = x;
    change.body.shape.center[1] = y;
    change.body.shape.radius = 0.06;
    return change;
}

/* Bodies come and go in a world that begins without any; those that stay go on, and the record replays. */
static void bodies_come_and_go_in(selkie_discretization discretization)
{
    selkie_scene scene, *read;
    selkie_liquid_def liquid;
    selkie_body_state before, after;
    selkie_world *world, *replayed;
    dam(&scene, &liquid, 0);
    scene.discretization = discretization;
    if (discretization == SELKIE_DISCRETIZATION_REDUCED) {
        scene.time.step = 1.0 / 60.0;
        scene.reduced.modes = 16;
    }
    OK(selkie_world_create(&scene, &(selkie_world_options){.threads = 1}, &world, &error));
    step(world, 2);
    selkie_change_def change = disc("first", 0.7, 0.7, 2000);
    OK(selkie_world_change(world, &change, NULL, &error));
    assert_int_equal(selkie_world_body_count(world), 1);
    step(world, 3);
    OK(selkie_world_body(world, 0, &before));
    assert_true(before.position[1] < 0.7);

    /* A second one does not disturb the first. */
    change = disc("second", 0.8, 0.3, 500);
    OK(selkie_world_change(world, &change, NULL, &error));
    OK(selkie_world_body(world, 0, &after));
    assert_memory_equal(before.position, after.position, sizeof before.position);
    assert_memory_equal(before.velocity, after.velocity, sizeof before.velocity);
    OK(selkie_world_body(world, 1, &after));
    assert_string_equal(after.name, "second");
    assert_true(fabs(after.position[0] - 0.8) < 1e-9);
    step(world, 3);

    /* Without the first, the second is the only one; under its own name it starts anew. */
    OK(selkie_world_body(world, 1, &before));
    selkie_change_defaults(&change, SELKIE_CHANGE_REMOVE);
    change.list = SELKIE_LIST_BODIES;
    change.name = "first";
    OK(selkie_world_change(world, &change, NULL, &error));
    assert_int_equal(selkie_world_body_count(world), 1);
    OK(selkie_world_body(world, 0, &after));
    assert_memory_equal(before.position, after.position, sizeof before.position);
    step(world, 2);
    change = disc("second", 0.6, 0.8, 500);
    OK(selkie_world_change(world, &change, NULL, &error));
    OK(selkie_world_body(world, 0, &after));
    assert_true(fabs(after.position[0] - 0.6) < 1e-9);
    step(world, 2);

    /* The file that the run leaves. */
    OK(selkie_scene_save(selkie_world_record(world), in_root("bodies.json"), &error));
    OK(selkie_scene_load(in_root("bodies.json"), 0, NULL, &read, &error));
    OK(selkie_world_create(read, &(selkie_world_options){.threads = 2}, &replayed, &error));
    step(replayed, 7);
    OK(selkie_world_save(replayed, in_root("bodies.selkie"), &error));
    OK(selkie_world_load(replayed, in_root("bodies.selkie"), &error));
    step(replayed, (int)selkie_world_step_count(world) - 7);
    assert_same(world, replayed);
    OK(selkie_world_body(world, 0, &before));
    OK(selkie_world_body(replayed, 0, &after));
    assert_memory_equal(before.position, after.position, sizeof before.position);

    /* The last one. */
    selkie_change_defaults(&change, SELKIE_CHANGE_REMOVE);
    change.list = SELKIE_LIST_BODIES;
    change.name = "0";
    OK(selkie_world_change(world, &change, NULL, &error));
    assert_int_equal(selkie_world_body_count(world), 0);
    step(world, 1);
    selkie_world_destroy(world);
    selkie_world_destroy(replayed);
    selkie_scene_free(read);
}

static void bodies_come_and_go(void **state)
{
    (void)state;
    if (!sk_rigid_available())
        skip();
    bodies_come_and_go_in(SELKIE_DISCRETIZATION_GRID);
    bodies_come_and_go_in(SELKIE_DISCRETIZATION_SPH);
    bodies_come_and_go_in(SELKIE_DISCRETIZATION_REDUCED);
}

/* Pictures of a run pair its table of bodies with the bodies of each step, and show obstacles where they were moved. */
static void solids_of_a_step_are_known(void **state)
{
    (void)state;
    selkie_scene scene, *read;
    selkie_liquid_def liquid;
    selkie_change_def changes[5];
    double steps[8], ends[8]; /* s */
    int changed;
    const sk_step_times times = {8, steps, ends};
    dam(&scene, &liquid, 0);
    changes[0] = ball("ball", 0.5, 0.8);
    changes[1] = disc("first", 0.7, 0.7, 2000);
    changes[1].step = 2;
    changes[2] = move_of("ball", 0.2, 0.0); /* in 0.1 s */
    changes[2].step = 3;
    changes[3] = disc("second", 0.8, 0.3, 500);
    changes[3].step = 4;
    selkie_change_defaults(&changes[4], SELKIE_CHANGE_REMOVE);
    changes[4].list = SELKIE_LIST_BODIES;
    changes[4].name = "first";
    changes[4].step = 6;
    scene.changes = changes;
    scene.change_count = 5;
    OK(selkie_scene_save(&scene, in_root("steps.json"), &error));
    OK(selkie_scene_load(in_root("steps.json"), 0, NULL, &read, &error));
    for (int n = 0; n < 8; n++) {
        steps[n] = n + 1;
        ends[n] = 0.02 * (n + 1);
    }

    /* A change acts after the frame at its step. */
    const int counts[8] = {0, 0, 0, 1, 1, 2, 2, 1};
    for (int n = 0; n < 8; n++) {
        const int64_t at = sk_step_at(&times, 0.02 * n + 1e-6);
        assert_int_equal(at, n);
        OK(sk_scene_change_solids(read, at, &times, &changed, &error));
        assert_int_equal(read->body_count, counts[n]);
        assert_int_equal(read->obstacle_count, n > 0);
        assert_int_equal(changed, n == 1 || (n >= 3 && n != 6));
        sk_pose pose;
        sk_pose_identity(&pose);
        if (n > 0)
            sk_pose_at(&read->obstacles[0], 0.02 * n, &pose);
        assert_true(fabs(pose.translation[0] - (n > 3 ? 0.2 * (0.02 * n - 0.06) / 0.1 : 0)) < 1e-12);
    }
    assert_string_equal(read->bodies[0].name, "second");
    assert_int_equal(read->change_count, 0);
    selkie_scene_free(read);
}

/* A drawn mode of a reduced fluid is driven while a caller says so. */
static void drawn_modes_are_driven(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_stroke_def stroke;
    selkie_drawn_def drawn = {.name = "jet", .stroke_count = 1, .strokes = &stroke, .snapshots = 1};
    selkie_world *world;
    dam(&scene, &liquid, 0);
    scene.discretization = SELKIE_DISCRETIZATION_REDUCED;
    scene.time.step = 0.01;
    scene.time.fps = 100;
    scene.reduced.modes = 16;
    selkie_stroke_defaults(&stroke);
    stroke.from[0] = 0.25;
    stroke.to[0] = 0.75;
    stroke.from[1] = stroke.to[1] = 0.5;
    stroke.radius = 0.15;
    scene.reduced.drawn = &drawn;
    scene.reduced.drawn_count = 1;
    OK(selkie_world_create(&scene, NULL, &world, &error));
    step(world, 2);
    double velocity[3];
    const double middle[3] = {0.5, 0.5, 0};
    OK(selkie_world_velocity_at(world, middle, velocity));
    assert_true(velocity[0] == 0.0);

    selkie_change_def change;
    selkie_change_defaults(&change, SELKIE_CHANGE_EXCITE);
    change.excite.mode = "jet";
    change.excite.strength = 2.0;
    OK(selkie_world_change(world, &change, NULL, &error));
    step(world, 5);
    OK(selkie_world_velocity_at(world, middle, velocity));
    /* 5 steps of 10 ms at 2 m/s2 where the drawing is fastest, near its middle; the flow moves on by 1 % of the box. */
    assert_true(fabs(velocity[0] - 0.1) < 0.01);
    change.excite.strength = 0.0; /* in place of the one before */
    OK(selkie_world_change(world, &change, NULL, &error));
    assert_int_equal(selkie_world_scene(world)->reduced.excite_count, 1);
    const double energy = selkie_world_statistics(world)->kinetic_energy;
    step(world, 5);
    assert_true(fabs(selkie_world_statistics(world)->kinetic_energy / energy - 1.0) < 1e-9);
    change.excite.mode = "nothing";
    assert_int_equal(selkie_world_change(world, &change, NULL, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "excite.mode"));
    selkie_world_destroy(world);
}

/* Names that are wrong are found with the scene, before anything runs. */
static void changes_are_checked_early(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    dam(&scene, &liquid, 0);
    selkie_change_def changes[3] = {ball("ball", 0.7, 0.3), move_of("ball", 0.1, 0), move_of("bell", 0.1, 0)};
    changes[2].step = 4;
    scene.changes = changes;
    scene.change_count = 2;
    OK(selkie_scene_check(&scene, &error));
    scene.change_count = 3;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "changes[2].name"));
    assert_non_null(strstr(error.message, "bell"));

    /* What is removed is gone. */
    selkie_change_defaults(&changes[1], SELKIE_CHANGE_REMOVE);
    changes[1].name = "ball";
    changes[2] = move_of("ball", 0.1, 0);
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "changes[2].name"));
}

/* --- Run and cancel --- */

typedef struct watcher {
    int steps, frames, stop_at;
} watcher;

static int count_step(selkie_world *world, void *context)
{
    (void)world;
    watcher *seen = context;
    return ++seen->steps == seen->stop_at;
}

static int count_frame(selkie_world *world, void *context)
{
    (void)world;
    ((watcher *)context)->frames++;
    return 0;
}

static void *cancel_from_outside(void *world)
{
    selkie_world_cancel(world);
    return NULL;
}

static void runs_can_be_watched_and_cancelled(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_world *world;
    dam(&scene, &liquid, 0);
    scene.time.end = 0.2;
    scene.time.fps = 30;
    OK(selkie_world_create(&scene, NULL, &world, &error));
    watcher seen = {.stop_at = 2};
    selkie_run_options run = {.after_step = count_step, .after_frame = count_frame, .context = &seen};
    assert_int_equal(selkie_world_run(world, &run, &error), SELKIE_ERROR_INTERRUPTED);
    assert_int_equal(seen.steps, 2);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_from_outside, world), 0);
    pthread_join(thread, NULL);
    assert_int_equal(selkie_world_run(world, &run, &error), SELKIE_ERROR_INTERRUPTED);
    assert_int_equal(seen.steps, 2);
    OK(selkie_world_run(world, &run, &error));
    assert_true(selkie_world_finished(world));
    assert_int_equal(seen.frames, 7); /* the start and 0.2 s x 30 */

    /* Past the end, in steps of any length. */
    OK(selkie_world_step_for(world, 1.0 / 60, &error));
    OK(selkie_world_step_for(world, 1.0 / 60, &error));
    assert_int_equal(selkie_world_frame(world), 7);
    assert_true(selkie_world_at_frame(world));
    OK(selkie_world_step_for(world, 0.1, &error));
    assert_int_equal(selkie_world_frame(world), 10);
    run.until = 0.5;
    OK(selkie_world_run(world, &run, &error));
    assert_true(fabs(selkie_world_time(world) - 0.5) < 1e-9);
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_replays),
        cmocka_unit_test(a_new_obstacle_is_empty),
        cmocka_unit_test(snapshots_go_back),
        cmocka_unit_test(gravity_and_forces_act_from_now_on),
        cmocka_unit_test(liquid_comes_where_there_is_room),
        cmocka_unit_test(bad_changes_leave_the_world_as_it_was),
        cmocka_unit_test(bodies_can_be_pushed),
        cmocka_unit_test(bodies_come_and_go),
        cmocka_unit_test(solids_of_a_step_are_known),
        cmocka_unit_test(drawn_modes_are_driven),
        cmocka_unit_test(changes_are_checked_early),
        cmocka_unit_test(runs_can_be_watched_and_cancelled),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

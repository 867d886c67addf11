/* Bodies in reduced fluids: Archimedes, rest, added mass, drafting, the flow around a cylinder, threads, checkpoints,
 * bad scenes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reduced_scene.h"

#include "rigid/rigid.h"
#include "selkie_config.h"

#define PI 3.14159265358979323846

enum { MOST_BODIES = 4 };

typedef struct fixture {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_body_def bodies[MOST_BODIES];
} fixture;

/* A box of 1 m2 with a few tracers. */
static void make(fixture *f, int modes, double gravity)
{
    selkie_scene *scene = &f->scene;
    reduced_defaults(scene, modes, 48);
    scene->time.fps = 60;
    scene->time.step = 1.0 / 60.0;
    scene->gravity[1] = -gravity;
    scene->reduced.panel_length = 0.01;
    selkie_liquid_defaults(&f->liquid);
    selkie_shape_defaults(&f->liquid.shape, SELKIE_SHAPE_BOX);
    f->liquid.shape.max[0] = f->liquid.shape.max[1] = 0.2;
    scene->liquids = &f->liquid;
    scene->liquid_count = 1;
    scene->bodies = f->bodies;
    scene->body_count = 0;
}

static selkie_body_def *add_disc(fixture *f, double x, double y, double radius, double density)
{
    selkie_body_def *body = &f->bodies[f->scene.body_count++];
    selkie_body_defaults(body);
    selkie_shape_defaults(&body->shape, SELKIE_SHAPE_SPHERE);
    body->shape.center[0] = x;
    body->shape.center[1] = y;
    body->shape.radius = radius;
    body->density = density;
    return body;
}

/* The force on a body that is held is that of Archimedes; a free one starts with (m - displaced) g / (m + added). The
 * added mass of a disc 8 radii from the walls is 1 % above the displaced mass, panels take 0.3 %. */
static void archimedes(void **state)
{
    (void)state;
    fixture f;
    make(&f, 73, 10.0);
    add_disc(&f, 0.5, 0.5, 0.06, 500.0);
    for (int d = 0; d < 3; d++)
        f.bodies[0].move[d] = f.bodies[0].turn[d] = 0.0;
    selkie_world *world = create_world(&f.scene, 1);
    run_world(world, 3);
    const double displaced = 1000.0 * PI * 0.06 * 0.06;
    assert_true(fabs(body_of(world, 0).force[1] / (displaced * 10.0) - 1.0) < 1e-12);
    assert_true(fabs(body_of(world, 0).force[0]) < 1e-9);
    assert_true(selkie_world_statistics(world)->body_force_y == body_of(world, 0).force[1]);
    selkie_world_destroy(world);

    make(&f, 73, 10.0);
    f.scene.time.step = 1e-4;
    add_disc(&f, 0.5, 0.5, 0.06, 500.0);
    world = create_world(&f.scene, 1);
    run_world(world, 10);
    const double wanted = 0.5 * 10.0 / 1.5 * 9.5e-4; /* leapfrog: half a step behind */
    print_message("rises with %.6f of the velocity\n", body_of(world, 0).velocity[1] / wanted);
    assert_true(fabs(body_of(world, 0).velocity[1] / wanted - 1.0) < 0.01);
    selkie_world_destroy(world);
}

static void neutral_body_stays(void **state)
{
    (void)state;
    fixture f;
    make(&f, 73, 10.0);
    add_disc(&f, 0.4, 0.5, 0.06, 1000.0);
    selkie_body_def *box = add_disc(&f, 0.7, 0.3, 0.05, 1000.0);
    selkie_shape_defaults(&box->shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 2; d++) {
        box->shape.min[d] = 0.25;
        box->shape.max[d] = 0.3;
    }
    selkie_world *world = create_world(&f.scene, 1);
    run_world(world, 60);
    for (int b = 0; b < 2; b++)
        for (int d = 0; d < 2; d++)
            assert_true(fabs(body_of(world, b).velocity[d]) < 1e-12);
    assert_true(selkie_world_statistics(world)->kinetic_energy < 1e-20);
    selkie_world_destroy(world);
}

/* A disc above another one, both falling. Returns the distance between the centres after `time` (s). */
static double drafting(double time, double step)
{
    fixture f;
    make(&f, 67, 1.0);
    f.scene.time.step = step;
    f.scene.time.end = time;
    add_disc(&f, 0.5, 0.92, 0.035, 1200.0);
    add_disc(&f, 0.5, 0.80, 0.035, 1200.0);
    selkie_world *world = create_world(&f.scene, 1);
    while (!selkie_world_finished(world))
        run_world(world, 1);
    const double gap = body_of(world, 0).position[1] - body_of(world, 1).position[1];
    assert_true(body_of(world, 1).position[1] > 0.05); /* has not reached the floor */
    selkie_world_destroy(world);
    return gap;
}

/* The upper disc catches up (Fig. 5.5), and the step does not matter. */
static void upper_body_catches_up(void **state)
{
    (void)state;
    const double coarse = drafting(4.5, 1.0 / 60.0), fine = drafting(4.5, 1.0 / 240.0);
    print_message("distance 0.120 -> %.4f m at 1/60 s, %.4f m at 1/240 s\n", coarse, fine);
    assert_true(coarse < 0.095);
    assert_true(fabs(coarse - fine) < 0.05 * (0.120 - fine));
    assert_true(drafting(5.6, 1.0 / 60.0) < 0.0725); /* they touch: 0.07 m */
}

/* Velocities around a disc that is pushed through a liquid at rest: a dipole, U R^2 / r^2. Feedback is off, so the
 * modes stay at rest; the walls are 5 radii away and add 4 % of U R^2 / r^2 at the disc. */
static void flow_around_a_disc(void **state)
{
    (void)state;
    fixture f;
    selkie_probe_def probes[3];
    make(&f, 73, 0.0);
    f.scene.domain.resolution = 96;
    f.scene.reduced.feedback = 0.0;
    add_disc(&f, 0.5, 0.5, 0.05, 1e9)->velocity[0] = 1.0;
    static const double at[3][2] = {{0.58, 0.5}, {0.5, 0.59}, {0.56, 0.56}};
    for (int n = 0; n < 3; n++) {
        selkie_probe_defaults(&probes[n]);
        probes[n].kind = SELKIE_PROBE_VELOCITY;
        probes[n].name = n == 0 ? "a" : n == 1 ? "b" : "c";
        probes[n].at[0] = at[n][0];
        probes[n].at[1] = at[n][1];
    }
    f.scene.probes = probes;
    f.scene.probe_count = 3;
    f.scene.time.step = 1e-5;
    selkie_world *world = create_world(&f.scene, 1);
    run_world(world, 1);
    for (int n = 0; n < 3; n++) {
        const double x = at[n][0] - 0.5, y = at[n][1] - 0.5, square = x * x + y * y,
                     wanted[2] = {0.0025 * (x * x - y * y) / (square * square), 0.0025 * 2 * x * y / (square * square)};
        for (int d = 0; d < 2; d++) {
            const double value = selkie_world_probe_value(world, 2 * n + d);
            print_message("%.4f (%.4f) ", value, wanted[d]);
            assert_true(fabs(value - wanted[d]) < 0.03);
        }
    }
    print_message("\n");
    selkie_world_destroy(world);
}

/* --- Joints --- */

/* A swimmer of three slender parts: the way (m) of its middle part in 2 s. */
static double swim(double phase)
{
    fixture f;
    selkie_joint_def joints[2];
    static const char *const names[3] = {"head", "middle", "tail"};
    make(&f, 73, 0.0);
    f.scene.time.step = 1.0 / 120.0;
    f.scene.time.end = 2.0;
    for (int b = 0; b < 3; b++) {
        selkie_body_def *body = add_disc(&f, 0.0, 0.0, 0.1, 1000.0);
        body->name = names[b];
        selkie_shape_defaults(&body->shape, SELKIE_SHAPE_BOX);
        body->shape.min[0] = 0.6 - 0.1 * b;
        body->shape.max[0] = body->shape.min[0] + 0.094;
        body->shape.min[1] = 0.492;
        body->shape.max[1] = 0.508;
    }
    for (int j = 0; j < 2; j++) {
        selkie_joint_defaults(&joints[j]);
        joints[j].first = names[j];
        joints[j].second = names[j + 1];
        joints[j].at[0] = 0.597 - 0.1 * j;
        joints[j].at[1] = 0.5;
        joints[j].swing = 35.0;
        joints[j].period = 0.5;
        joints[j].phase = phase * j;
    }
    f.scene.joints = joints;
    f.scene.joint_count = 2;
    selkie_world *world = create_world(&f.scene, 1);
    while (!selkie_world_finished(world))
        run_world(world, 1);

    /* The hinges hold. */
    const selkie_body_state a = body_of(world, 0), b = body_of(world, 1);
    const double turn[2] = {2.0 * atan2(a.quaternion[3], a.quaternion[0]),
                            2.0 * atan2(b.quaternion[3], b.quaternion[0])};
    const double x[2] = {a.position[0] - 0.05 * cos(turn[0]), b.position[0] + 0.05 * cos(turn[1])},
                 y[2] = {a.position[1] - 0.05 * sin(turn[0]), b.position[1] + 0.05 * sin(turn[1])};
    assert_true(hypot(x[0] - x[1], y[0] - y[1]) < 1e-3);
    const double way = b.position[0] - 0.547;
    selkie_world_destroy(world);
    return way;
}

/* A wave from head to tail pushes forwards, one from tail to head backwards: 12 and 15 mm. The bound is a third of it.
 */
static void jointed_body_swims(void **state)
{
    (void)state;
    const double forwards = swim(-80.0), backwards = swim(80.0);
    print_message("swims %.3f m, %.3f m\n", forwards, backwards);
    assert_true(forwards > 0.004 && backwards < -0.004);
}

/* --- Bits --- */

static void make_crowd(fixture *f)
{
    make(f, 200, 2.0);
    f->liquid.velocity[0] = 0.5;
    add_disc(f, 0.3, 0.7, 0.05, 1500.0);
    add_disc(f, 0.34, 0.55, 0.04, 600.0);
    add_disc(f, 0.6, 0.3, 0.06, 50.0)->angular_velocity[2] = 3.0;
    selkie_shape_defaults(&f->bodies[2].shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 2; d++) {
        f->bodies[2].shape.min[d] = 0.6;
        f->bodies[2].shape.max[d] = 0.7 + 0.05 * d;
    }
}

static void same_bits_and_resume(void **state)
{
    (void)state;
    fixture f;
    selkie_error error;
    char path[64];
    make_crowd(&f);
    selkie_world *one = create_world(&f.scene, 1), *three = create_world(&f.scene, 3),
                 *resumed = create_world(&f.scene, 2);
    run_world(one, 20);
    run_world(three, 20);
    assert_same_worlds(one, three);

    snprintf(path, sizeof path, "/tmp/selkie_swim_%ld.state", (long)getpid());
    assert_int_equal(selkie_world_save(one, path, &error), SELKIE_OK);
    run_world(one, 20);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    run_world(resumed, 20);
    assert_same_worlds(one, resumed);
    remove(path);
    selkie_world_destroy(one);
    selkie_world_destroy(three);
    selkie_world_destroy(resumed);
}

/* --- Bad scenes --- */

/* Three of the four sides of a box: its section with the plane is open. */
static void open_outline(void **state)
{
    (void)state;
    if (!SELKIE_HAVE_ASSIMP)
        skip();
    fixture f;
    char path[64];
    snprintf(path, sizeof path, "/tmp/selkie_open_%ld.obj", (long)getpid());
    FILE *file = fopen(path, "w");
    static const double corners[4][2] = {{0.4, 0.4}, {0.6, 0.4}, {0.6, 0.6}, {0.4, 0.6}};
    for (int n = 0; n < 8; n++)
        fprintf(file, "v %g %g %g\n", corners[n % 4][0], corners[n % 4][1], n < 4 ? -0.5 : 0.5);
    for (int n = 1; n < 4; n++)
        fprintf(file, "f %d %d %d %d\n", n, n + 1, n + 5, n + 4);
    fclose(file);
    make(&f, 73, 1.0);
    add_disc(&f, 0.5, 0.5, 0.1, 1000.0);
    selkie_shape_defaults(&f.bodies[0].shape, SELKIE_SHAPE_MESH);
    f.bodies[0].shape.file = path;
    expect_refusal(&f.scene, "must be closed");
    remove(path);
}

/* A disc drawn with points rises like a disc: as far in 0.5 s, to 5 %. */
static void polygons_move(void **state)
{
    (void)state;
    enum { SIDES = 24 };
    double way[2];
    for (int n = 0; n < 2; n++) {
        fixture f;
        selkie_point points[SIDES];
        make(&f, 73, 2.0);
        add_disc(&f, 0.5, 0.4, 0.06, 500.0);
        for (int i = 0; i < SIDES; i++)
            points[i] =
                (selkie_point){{0.5 + 0.06 * cos(2.0 * PI * i / SIDES), 0.4 + 0.06 * sin(2.0 * PI * i / SIDES)}};
        if (n) {
            selkie_shape_defaults(&f.bodies[0].shape, SELKIE_SHAPE_POLYGON);
            f.bodies[0].shape.points = points;
            f.bodies[0].shape.point_count = SIDES;
        }
        selkie_world *world = create_world(&f.scene, 1);
        run_world(world, 30);
        way[n] = body_of(world, 0).position[1] - 0.4;
        selkie_world_destroy(world);
    }
    print_message("a disc rises %.4f m, a polygon %.4f m\n", way[0], way[1]);
    assert_true(way[0] > 0.05 && fabs(way[1] / way[0] - 1.0) < 0.05);
}

static void bad_scenes(void **state)
{
    (void)state;
    fixture f;
    make_crowd(&f);
    f.bodies[1].shape.center[1] = 0.66;
    expect_refusal(&f.scene, "bodies[1].shape: overlaps bodies[0]");
    make_crowd(&f);
    f.bodies[0].shape.center[0] = 0.04;
    expect_refusal(&f.scene, "bodies[0].shape: reaches out of the domain along x");
    make_crowd(&f);
    f.scene.domain.walls[2] = SELKIE_WALL_OPEN;
    expect_refusal(&f.scene, "y_min");
    make_crowd(&f);
    f.bodies[0].surface = SELKIE_WALL_NO_SLIP;
    expect_refusal(&f.scene, "bodies[0].surface");
    make_crowd(&f);
    selkie_shape parts[2] = {f.bodies[0].shape, f.bodies[1].shape};
    selkie_shape_defaults(&f.bodies[0].shape, SELKIE_SHAPE_UNION);
    f.bodies[0].shape.children = parts;
    f.bodies[0].shape.child_count = 2;
    expect_refusal(&f.scene, "has no single outline");

    selkie_joint_def joint;
    make_crowd(&f);
    selkie_joint_defaults(&joint);
    joint.first = "nobody";
    f.scene.joints = &joint;
    f.scene.joint_count = 1;
    expect_refusal(&f.scene, "joints[0].first: no body is called \"nobody\"");
    f.bodies[0].name = "somebody";
    joint.first = joint.second = "somebody";
    expect_refusal(&f.scene, "joints[0].second: is the same body as first");
}

int main(void)
{
    if (!sk_rigid_available())
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archimedes),
        cmocka_unit_test(neutral_body_stays),
        cmocka_unit_test(upper_body_catches_up),
        cmocka_unit_test(flow_around_a_disc),
        cmocka_unit_test(same_bits_and_resume),
        cmocka_unit_test(jointed_body_swims),
        cmocka_unit_test(polygons_move),
        cmocka_unit_test(open_outline),
        cmocka_unit_test(bad_scenes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

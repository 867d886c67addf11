/* Rigid bodies: masses against integrals known by hand, motion against mechanics, contacts, checkpoints. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geom/mass.h"
#include "grid/grid.h"
#include "rigid/rigid.h"
#include "selkie_config.h"

static const double pi = 3.14159265358979323846;

/* --- Masses --- */

static void mass_of(const selkie_shape *def, int dimension, const char *folder, sk_mass_properties *mass)
{
    sk_shape *shape = NULL;
    selkie_error error = {0};
    const sk_shape_options options = {.dimension = dimension, .folder = folder, .what = "shape"};
    if (sk_shape_create(def, &options, &shape, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    if (sk_shape_mass(shape, "shape", mass, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    sk_shape_destroy(shape);
}

static void expect_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.12g is not %.12g within %g", value, expected, tolerance);
}

static void test_masses(void **state)
{
    (void)state;
    sk_mass_properties m;
    selkie_shape box, ball, bar;
    selkie_shape_defaults(&box, SELKIE_SHAPE_BOX);
    memcpy(box.min, (double[3]){1, 2, 3}, sizeof box.min);
    memcpy(box.max, (double[3]){2, 4, 6}, sizeof box.max);
    mass_of(&box, 3, NULL, &m);
    expect_near(m.volume, 6, 1e-12);
    expect_near(m.center[2], 4.5, 1e-12);
    expect_near(m.inertia[0], 6 * (4 + 9) / 12.0, 1e-12);
    expect_near(m.inertia[4], 6 * (1 + 9) / 12.0, 1e-12);
    expect_near(m.inertia[1], 0, 1e-12);
    mass_of(&box, 2, NULL, &m);
    expect_near(m.volume, 2, 1e-12);
    expect_near(m.inertia[8], 2 * (1 + 4) / 12.0, 1e-12);

    selkie_shape_defaults(&ball, SELKIE_SHAPE_SPHERE);
    ball.radius = 2;
    mass_of(&ball, 3, NULL, &m);
    expect_near(m.volume, 32 * pi / 3, 1e-9);
    expect_near(m.inertia[0], 0.4 * m.volume * 4, 1e-9);
    mass_of(&ball, 2, NULL, &m);
    expect_near(m.volume, 4 * pi, 1e-9);
    expect_near(m.inertia[8], 0.5 * m.volume * 4, 1e-9);

    selkie_shape_defaults(&bar, SELKIE_SHAPE_CYLINDER);
    memcpy(bar.to, (double[3]){3, 0, 3}, sizeof bar.to); /* askew: half of each moment along x and z */
    bar.radius = 0.5;
    mass_of(&bar, 3, NULL, &m);
    double length2 = 18, along = 0.5 * 0.25, across = 0.25 * 0.25 + length2 / 12;
    expect_near(m.volume, pi * 0.25 * sqrt(length2), 1e-9);
    expect_near(m.inertia[0], m.volume * 0.5 * (along + across), 1e-9);
    expect_near(m.inertia[2], m.volume * 0.5 * (along - across), 1e-9);
    expect_near(m.inertia[4], m.volume * across, 1e-9);
    memcpy(bar.to, (double[3]){3, 4, 0}, sizeof bar.to);
    mass_of(&bar, 2, NULL, &m);
    expect_near(m.volume, 5, 1e-9);
    expect_near(m.inertia[8], 5 * (25 + 1) / 12.0, 1e-9);
}

/* A union of two boxes that overlap, on the lattice, is the one box they make. */
static void test_mass_of_union(void **state)
{
    (void)state;
    selkie_shape both, members[2];
    for (int i = 0; i < 2; i++) {
        selkie_shape_defaults(&members[i], SELKIE_SHAPE_BOX);
        memcpy(members[i].min, (double[3]){i ? 0.4 : 0.0, 0.1, 0.2}, sizeof members[i].min);
        memcpy(members[i].max, (double[3]){i ? 1.0 : 0.6, 0.6, 0.7}, sizeof members[i].max);
    }
    selkie_shape_defaults(&both, SELKIE_SHAPE_UNION);
    both.child_count = 2;
    both.children = members;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_mass_properties m;
        mass_of(&both, dimension, NULL, &m);
        double volume = dimension == 3 ? 0.25 : 0.5;
        expect_near(m.volume, volume, 2e-3 * volume);
        expect_near(m.center[0], 0.5, 1e-3);
        expect_near(m.inertia[8], volume * 1.25 / 12, 4e-3 * volume * 1.25 / 12);
    }
}

/* The ring: exact sums over its triangles against the lattice, which asks for nothing but distances. */
static void test_mass_of_mesh(void **state)
{
    (void)state;
#if SELKIE_HAVE_ASSIMP && SELKIE_HAVE_EMBREE
    selkie_shape mesh, pair[2], both;
    selkie_shape_defaults(&mesh, SELKIE_SHAPE_MESH);
    mesh.file = "examples/ring.obj";
    memcpy(mesh.rotate, (double[3]){20, 30, 0}, sizeof mesh.rotate);
    memcpy(mesh.translate, (double[3]){0.1, 0.2, 0.3}, sizeof mesh.translate);
    selkie_shape_defaults(&both, SELKIE_SHAPE_UNION);
    pair[0] = pair[1] = mesh;
    both.child_count = 2;
    both.children = pair;
    sk_mass_properties exact, sampled;
    mass_of(&mesh, 3, SELKIE_SCENES, &exact);
    mass_of(&both, 3, SELKIE_SCENES, &sampled);
    print_message("ring: %g m3 exact, %g on the lattice\n", exact.volume, sampled.volume);
    expect_near(sampled.volume, exact.volume, 5e-3 * exact.volume);
    for (int i = 0; i < 3; i++)
        expect_near(sampled.center[i], exact.center[i], 2e-3);
    for (int i = 0; i < 9; i++)
        expect_near(sampled.inertia[i], exact.inertia[i], 1e-2 * exact.inertia[0]);
#else
    skip();
#endif
}

/* --- Motion --- */

typedef struct stage {
    selkie_scene scene;
    selkie_body_def bodies[4];
    selkie_obstacle_def obstacles[2];
    sk_memory memory;
    sk_grid grid;
    sk_solids solids;
    sk_rigid rigid;
} stage;

static void begin(stage *s, int dimension, int bodies)
{
    memset(s, 0, sizeof *s);
    selkie_scene_defaults(&s->scene);
    s->scene.domain.dimension = dimension;
    for (int d = 0; d < 3; d++)
        s->scene.domain.size[d] = 4.0;
    s->scene.domain.cell_size = 0.1;
    s->scene.bodies = s->bodies;
    s->scene.body_count = bodies;
    s->scene.obstacles = s->obstacles;
    for (int b = 0; b < bodies; b++) {
        selkie_body_defaults(&s->bodies[b]);
        selkie_shape_defaults(&s->bodies[b].shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < 3; d++) {
            s->bodies[b].shape.min[d] = 1.0 + (d == 0 ? 0.6 * b : 0.0);
            s->bodies[b].shape.max[d] = s->bodies[b].shape.min[d] + 0.4;
        }
    }
}

static void start(stage *s)
{
    int cells[3];
    selkie_error error = {0};
    double cell = selkie_scene_cells(&s->scene, cells);
    assert_int_equal(
        sk_grid_init(&s->grid, s->scene.domain.dimension, cells, s->scene.domain.origin, cell, &s->memory, &error),
        SELKIE_OK);
    assert_int_equal(sk_solids_init(&s->solids, &s->scene, &s->grid, &s->memory, &error), SELKIE_OK);
    if (sk_rigid_init(&s->rigid, &s->scene, &s->solids, &s->memory, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
}

static void advance(stage *s, double time, double dt)
{
    selkie_error error = {0};
    if (sk_rigid_step(&s->rigid, time, dt, dt, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
}

static void end(stage *s)
{
    sk_rigid_free(&s->rigid);
    sk_solids_free(&s->solids);
    sk_grid_free(&s->grid);
    assert_int_equal(s->memory.used, 0);
}

/* Velocities half a step behind positions: a parabola at steps of any length, also unequal ones. */
static void test_free_fall(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        begin(&s, dimension, 1);
        s.bodies[0].velocity[0] = 0.5;
        s.bodies[0].velocity[1] = 2.0;
        s.bodies[0].angular_velocity[2] = 3.0;
        start(&s);
        double time = 0.0;
        for (int n = 0; n < 22; n++) {
            double dt = 0.01 * (1 + n % 3);
            advance(&s, time, dt);
            time += dt;
        }
        const sk_rigid_state *b = &s.rigid.states[0];
        expect_near(b->position[0], 1.2 + 0.5 * time, 1e-9);
        expect_near(b->position[1], 1.2 + 2.0 * time - 0.5 * 9.81 * time * time, 1e-9);
        expect_near(b->angular_velocity[2], 3.0, 1e-9);
        double angle = 2 * atan2(b->quaternion[3], b->quaternion[0]);
        expect_near(remainder(angle - 3.0 * time, 2 * pi), 0.0, 1e-6);
        end(&s);
    }
}

/* ANALYTIC R3: s = g (sin b - mu cos b) t^2 / 2, at rest where tan b < mu; the incline is gravity turned. */
static void test_slider(void **state)
{
    (void)state;
    const double angle = 30 * pi / 180;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int steep = 0; steep < 2; steep++) {
            stage s;
            begin(&s, dimension, 1);
            s.scene.gravity[0] = 9.81 * sin(angle);
            s.scene.gravity[1] = -9.81 * cos(angle);
            s.bodies[0].shape.min[1] = 0.0;
            s.bodies[0].shape.max[1] = 0.1;
            s.bodies[0].friction = steep ? 0.3 : 0.7;
            start(&s);
            for (int n = 0; n < 50; n++)
                advance(&s, 0.01 * n, 0.01);
            double moved = s.rigid.states[0].position[0] - 1.2;
            double expected = steep ? 0.5 * 9.81 * (sin(angle) - 0.3 * cos(angle)) * 0.25 : 0.0;
            print_message("slider %dD: %.5f m, %.5f expected\n", dimension, moved, expected);
            expect_near(moved, expected, steep ? 0.01 * expected : 1e-4);
            expect_near(s.rigid.states[0].position[1], 0.05, 1e-3);
            end(&s);
        }
}

static void test_bounce(void **state)
{
    (void)state;
    stage s;
    begin(&s, 3, 1);
    selkie_shape_defaults(&s.bodies[0].shape, SELKIE_SHAPE_SPHERE);
    for (int d = 0; d < 3; d++)
        s.bodies[0].shape.center[d] = 1.2;
    s.bodies[0].shape.radius = 0.2;
    s.bodies[0].restitution = 0.5;
    start(&s);
    double top = 0.0;
    int fell = 0;
    for (int n = 0; n < 400; n++) {
        advance(&s, 0.0025 * n, 0.0025);
        const sk_rigid_state *b = &s.rigid.states[0];
        fell |= b->position[1] < 0.21;
        if (fell)
            top = fmax(top, b->position[1]);
        assert_true(b->position[1] > 0.18);
    }
    print_message("bounce: %.4f m over the floor, 0.25 expected\n", top - 0.2);
    expect_near(top - 0.2, 0.25, 0.02);
    end(&s);
}

/* No gravity: two boxes that meet keep their momentum; an impulse off the centre turns a body as its inertia says. */
static void test_collision_and_impulse(void **state)
{
    (void)state;
    stage s;
    begin(&s, 3, 2);
    memset(s.scene.gravity, 0, sizeof s.scene.gravity);
    s.bodies[0].velocity[0] = 1.0;
    s.bodies[1].density = 1500;
    start(&s);
    for (int n = 0; n < 100; n++)
        advance(&s, 0.005 * n, 0.005);
    double momentum = 0.0, first = s.rigid.states[0].velocity[0], second = s.rigid.states[1].velocity[0];
    for (int b = 0; b < 2; b++)
        momentum += s.rigid.bodies[b].mass * s.rigid.states[b].velocity[0];
    assert_true(second > 0.2 && first <= second + 1e-9);
    expect_near(momentum, s.rigid.bodies[0].mass, 1e-6 * s.rigid.bodies[0].mass);
    end(&s);

    begin(&s, 3, 1);
    memset(s.scene.gravity, 0, sizeof s.scene.gravity);
    start(&s);
    double mass = s.rigid.bodies[0].mass, inertia = mass * 0.16 / 6, inverse_mass[3], inverse_inertia[9];
    expect_near(mass, 32.0, 1e-9);
    sk_rigid_response(&s.rigid, 0, inverse_mass, inverse_inertia);
    expect_near(inverse_mass[1], 1 / mass, 1e-12);
    expect_near(inverse_inertia[8], 1 / inertia, 1e-9);
    sk_rigid_add_impulse(&s.rigid, 0, (double[3]){0, 8, 0}, (double[3]){1.3, 1.2, 1.2});
    advance(&s, 0.0, 0.02);
    expect_near(s.rigid.states[0].velocity[1], 8 / mass, 1e-9);
    expect_near(s.rigid.states[0].angular_velocity[2], 0.8 / inertia, 1e-6);
    expect_near(s.rigid.states[0].force[1], 400.0, 1e-9);
    expect_near(s.rigid.states[0].torque[2], 40.0, 1e-9);
    end(&s);
}

/* Axes that are held stay where they are, to the bit. */
static void test_held(void **state)
{
    (void)state;
    stage s;
    begin(&s, 3, 1);
    s.bodies[0].move[0] = s.bodies[0].move[2] = 0;
    memset(s.bodies[0].turn, 0, sizeof s.bodies[0].turn);
    start(&s);
    double inverse_mass[3], inverse_inertia[9];
    sk_rigid_response(&s.rigid, 0, inverse_mass, inverse_inertia);
    assert_true(inverse_mass[0] == 0.0 && inverse_mass[1] > 0.0 && inverse_inertia[4] == 0.0);
    for (int n = 0; n < 20; n++) {
        sk_rigid_add_impulse(&s.rigid, 0, (double[3]){3, 1, 2}, (double[3]){1.4, 1.4, 1.3});
        advance(&s, 0.01 * n, 0.01);
    }
    const sk_rigid_state *b = &s.rigid.states[0];
    assert_true(b->position[0] == 1.2 && b->position[2] == 1.2 && b->position[1] < 1.2);
    assert_true(b->quaternion[0] == 1.0 && b->angular_velocity[1] == 0.0);
    end(&s);
}

/* A heap of different shapes comes to rest in the box, on a slanted plane and a mesh; a moving wall pushes it. */
static void test_heap(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        const int dimension = 2 + turn % 2;
        stage s;
        begin(&s, dimension, 4);
        selkie_shape_defaults(&s.bodies[1].shape, SELKIE_SHAPE_SPHERE);
        memcpy(s.bodies[1].shape.center, (double[3]){1.1, 1.8, 1.2}, sizeof s.bodies[1].shape.center);
        s.bodies[1].shape.radius = 0.2;
        selkie_shape_defaults(&s.bodies[2].shape, SELKIE_SHAPE_CYLINDER);
        memcpy(s.bodies[2].shape.from, (double[3]){1.0, 2.4, 1.1}, sizeof s.bodies[2].shape.from);
        memcpy(s.bodies[2].shape.to, (double[3]){1.5, 2.6, 1.2}, sizeof s.bodies[2].shape.to);
        s.bodies[2].shape.radius = 0.1;
        s.scene.obstacle_count = 2;
        for (int o = 0; o < 2; o++)
            selkie_obstacle_defaults(&s.obstacles[o]);
        selkie_shape_defaults(&s.obstacles[0].shape, SELKIE_SHAPE_HALF_SPACE);
        memcpy(s.obstacles[0].shape.point, (double[3]){0.0, 0.3, 0.0}, sizeof s.obstacles[0].shape.point);
        memcpy(s.obstacles[0].shape.normal, (double[3]){0.1, 1, 0}, sizeof s.obstacles[0].shape.normal);
        selkie_shape_defaults(&s.obstacles[1].shape, SELKIE_SHAPE_BOX); /* a piston */
        memcpy(s.obstacles[1].shape.min, (double[3]){-1, 0, 0}, sizeof s.obstacles[1].shape.min);
        memcpy(s.obstacles[1].shape.max, (double[3]){0.2, 4, 4}, sizeof s.obstacles[1].shape.max);
        if (turn >= 2) { /* the same one, without an end */
            selkie_shape_defaults(&s.obstacles[1].shape, SELKIE_SHAPE_HALF_SPACE);
            memcpy(s.obstacles[1].shape.point, (double[3]){0.2, 0, 0}, sizeof s.obstacles[1].shape.point);
            memcpy(s.obstacles[1].shape.normal, (double[3]){1, 0, 0}, sizeof s.obstacles[1].shape.normal);
        }
        s.obstacles[1].velocity[0] = 0.5;
        start(&s);
        for (int n = 0; n < 300; n++)
            advance(&s, 0.01 * n, 0.01);
        for (int b = 0; b < 4; b++) {
            const sk_rigid_state *body = &s.rigid.states[b];
            double v = 0.0;
            for (int d = 0; d < 3; d++) {
                v += body->velocity[d] * body->velocity[d];
                assert_true(body->position[d] > -1e-9 && body->position[d] < 4.0);
            }
            assert_true(body->position[0] > 1.7); /* the piston came to 1.7 m */
            assert_true(sqrt(v) < 1.5);
            if (dimension == 2)
                assert_true(body->position[2] == 0.0 && body->quaternion[1] == 0.0);
        }
        end(&s);
    }
}

/* A run that goes on from copied states is the run that never stopped, to the bit, in the middle of collisions. */
static void test_resume(void **state)
{
    (void)state;
    stage a, b;
    begin(&a, 3, 3);
    for (int i = 0; i < 3; i++) {
        a.bodies[i].velocity[0] = 2.0 - i;
        a.bodies[i].angular_velocity[1] = 1.0;
        a.bodies[i].restitution = 0.3;
    }
    b = a;
    b.scene.bodies = b.bodies;
    b.scene.obstacles = b.obstacles;
    start(&a);
    for (int n = 0; n < 60; n++)
        advance(&a, 0.01 * n, 0.01);
    start(&b);
    memcpy(b.rigid.states, a.rigid.states, 3 * sizeof *a.rigid.states);
    selkie_error error = {0};
    assert_int_equal(sk_rigid_place(&b.rigid, "test", &error), SELKIE_OK);
    for (int n = 60; n < 120; n++) {
        advance(&a, 0.01 * n, 0.01);
        advance(&b, 0.01 * n, 0.01);
    }
    assert_memory_equal(a.rigid.states, b.rigid.states, 3 * sizeof *a.rigid.states);
    b.rigid.states[1].position[2] = NAN;
    assert_int_equal(sk_rigid_place(&b.rigid, "test", &error), SELKIE_ERROR_DIVERGED);
    end(&a);
    end(&b);
}

static void test_bad_shapes(void **state)
{
    (void)state;
    stage s;
    begin(&s, 3, 1);
    selkie_shape_defaults(&s.bodies[0].shape, SELKIE_SHAPE_HALF_SPACE);
    int cells[3];
    selkie_error error = {0};
    double cell = selkie_scene_cells(&s.scene, cells);
    assert_int_equal(sk_grid_init(&s.grid, 3, cells, s.scene.domain.origin, cell, &s.memory, &error), SELKIE_OK);
    assert_int_equal(sk_solids_init(&s.solids, &s.scene, &s.grid, &s.memory, &error), SELKIE_OK);
    assert_int_equal(sk_rigid_init(&s.rigid, &s.scene, &s.solids, &s.memory, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "bodies[0].shape: an infinite shape"));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest masses[] = {
        cmocka_unit_test(test_masses),
        cmocka_unit_test(test_mass_of_union),
        cmocka_unit_test(test_mass_of_mesh),
    };
    const struct CMUnitTest motion[] = {
        cmocka_unit_test(test_free_fall), cmocka_unit_test(test_slider),
        cmocka_unit_test(test_bounce),    cmocka_unit_test(test_collision_and_impulse),
        cmocka_unit_test(test_held),      cmocka_unit_test(test_heap),
        cmocka_unit_test(test_resume),    cmocka_unit_test(test_bad_shapes),
    };
    int failed = cmocka_run_group_tests_name("masses", masses, NULL, NULL);
    if (sk_rigid_available())
        failed += cmocka_run_group_tests_name("motion", motion, NULL, NULL);
    return failed;
}

/* Initial velocity fields, motions from files, oscillations, and the motion of the frame, against formulas. */
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
#include "defs/motion_file.h"
#include "defs/structs.h"
#include "geom/frame.h"
#include "geom/shape.h"
#include "rigid/rigid.h"

typedef struct fixture {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_obstacle_def obstacle;
} fixture;

static void make(fixture *f, int dimension)
{
    memset(f, 0, sizeof *f);
    selkie_scene_defaults(&f->scene);
    f->scene.domain.dimension = dimension;
    for (int d = 0; d < 3; d++)
        f->scene.domain.size[d] = 1.0;
    f->scene.domain.cell_size = 1.0 / 8;
    selkie_liquid_defaults(&f->liquid);
    selkie_shape_defaults(&f->liquid.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 3; d++)
        f->liquid.shape.max[d] = 1.0;
    f->scene.liquids = &f->liquid;
    f->scene.liquid_count = 1;
    selkie_obstacle_defaults(&f->obstacle);
    selkie_shape_defaults(&f->obstacle.shape, SELKIE_SHAPE_SPHERE);
    f->obstacle.shape.radius = 0.1;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Largest difference of the particles' velocities from a formula. */
static double worst(const fixture *f, void (*formula)(const double x[3], double v[3]))
{
    selkie_world *world;
    selkie_error error = {0};
    if (selkie_world_create(&f->scene, NULL, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    selkie_attribute_view position, velocity;
    assert_int_equal(selkie_world_find_attribute(world, "position", &position, &error), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(world, "velocity", &velocity, &error), SELKIE_OK);
    double most = 0.0;
    assert_true(selkie_world_particle_count(world) > 100);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *at = (const float *)((const char *)position.data + (size_t)p * position.stride);
        const float *u = (const float *)((const char *)velocity.data + (size_t)p * velocity.stride);
        double x[3], v[3] = {0, 0, 0};
        for (int d = 0; d < 3; d++)
            x[d] = at[d] + position.origin[d];
        formula(x, v);
        for (int d = 0; d < f->scene.domain.dimension; d++)
            most = fmax(most, fabs(u[d] - v[d]));
    }
    selkie_world_destroy(world);
    return most;
}

static void vortices_2d(const double x[3], double v[3])
{
    const double k = 2.0 * M_PI / 0.5;
    v[0] = 0.3 + 0.2 * sin(k * (x[0] - 0.25)) * cos(k * (x[1] - 0.25));
    v[1] = -0.2 * cos(k * (x[0] - 0.25)) * sin(k * (x[1] - 0.25));
}

static void vortices_3d(const double x[3], double v[3])
{
    vortices_2d(x, v);
    const double along = cos(2.0 * M_PI / 0.5 * (x[2] - 0.25));
    v[0] = 0.3 + (v[0] - 0.3) * along;
    v[1] *= along;
}

static void taylor_green(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        fixture f;
        make(&f, dimension);
        f.liquid.velocity[0] = 0.3;
        f.liquid.flow.kind = SELKIE_FLOW_TAYLOR_GREEN;
        f.liquid.flow.speed = 0.2;
        f.liquid.flow.wavelength = 0.5;
        for (int d = 0; d < dimension; d++)
            f.liquid.center[d] = 0.25;
        assert_true(worst(&f, dimension == 2 ? vortices_2d : vortices_3d) < 1e-6);
    }
}

/* Bilinear interpolation is exact for x, y and x y. */
static void bilinear(const double x[3], double v[3])
{
    v[0] = 1.0 + 2.0 * x[0] - x[1] + 0.5 * x[0] * x[1];
    v[1] = -x[0];
}

static void flow_from_file(void **state)
{
    (void)state;
    char path[] = "/tmp/selkie_flow_XXXXXX";
    close(mkstemp(path));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("# a grid of 3 x 2 points\ny, x, v, u\n", file);
    static const double xs[] = {10.0, 10.25, 11.0}, ys[] = {0.0, 1.0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            double v[3];
            bilinear((double[3]){xs[i], ys[j], 0}, v);
            fprintf(file, "%.17g, %.17g, %.17g, %.17g\n", ys[j], xs[i], v[1], v[0]);
        }
    fclose(file);
    fixture f;
    make(&f, 2);
    f.scene.domain.origin[0] = 10.0; /* positions of the file are the scene's */
    f.liquid.shape.min[0] = 10.0, f.liquid.shape.max[0] = 11.0;
    f.liquid.flow.kind = SELKIE_FLOW_FILE;
    f.liquid.flow.file = path;
    assert_true(worst(&f, bilinear) < 1e-5);

    /* Files that make no grid. */
    static const char *const bad[][2] = {
        {"x,y,u,v\n0,0,1,1\n1,0,1,1\n0,1,1,1\n", "do not make a grid"},
        {"x,y,u\n0,0,1\n", "no column \"v\""},
        {"x,y,u,v\n0,0,1\n", "line 2"},
        {"1,2,3,4\n", "line of names"},
    };
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        selkie_world *world = NULL;
        selkie_error error = {0};
        write_text(path, bad[b][0]);
        assert_int_not_equal(selkie_world_create(&f.scene, NULL, &world, &error), SELKIE_OK);
        if (!strstr(error.message, bad[b][1]))
            fail_msg("\"%s\" does not say \"%s\"", error.message, bad[b][1]);
    }
    unlink(path);
}

static void motion_from_file(void **state)
{
    (void)state;
    char path[] = "/tmp/selkie_motion_XXXXXX";
    close(mkstemp(path));
    write_text(path, "time,x,rz\n0,0,0\n1,0.5,90\n\n2,1.5,90\n");
    fixture f;
    make(&f, 2);
    f.obstacle.motion_file = path;
    f.scene.obstacles = &f.obstacle;
    f.scene.obstacle_count = 1;
    selkie_scene *copy;
    selkie_error error = {0};
    assert_int_equal(sk_scene_copy(&f.scene, &copy, &error), SELKIE_OK);
    assert_int_equal(sk_scene_load_motions(copy, &error), SELKIE_OK);
    assert_int_equal(copy->obstacles[0].keyframe_count, 3);
    sk_pose pose;
    sk_pose_at(&copy->obstacles[0], 1.5, &pose);
    assert_true(fabs(pose.translation[0] - 1.0) < 1e-12 && fabs(pose.velocity[0] - 1.0) < 1e-12);
    assert_true(fabs(pose.rotation[3] - 1.0) < 1e-12);
    selkie_scene_free(copy);
    unlink(path);
}

/* Velocities are the derivatives of positions, also while the motion fades in. */
static void oscillation_derivatives(void **state)
{
    (void)state;
    fixture f;
    make(&f, 3);
    selkie_oscillation motions[2];
    for (int m = 0; m < 2; m++) {
        selkie_oscillation_defaults(&motions[m]);
        for (int d = 0; d < 3; d++) {
            motions[m].translate[d] = 0.1 * (d + 1);
            motions[m].rotate[d] = 20.0 - 7.0 * d;
        }
        motions[m].period = 1.0 + m;
        motions[m].phase = 30.0;
        motions[m].ramp = 2.0 * m;
    }
    f.obstacle.oscillation_count = 2;
    f.obstacle.oscillations = motions;
    f.obstacle.angular_velocity[1] = 0.7;
    f.obstacle.velocity[0] = 0.2;
    assert_true(sk_obstacle_moves(&f.obstacle));
    for (double time = 0.1; time < 4.0; time += 0.37) {
        const double step = 1e-6, local[3] = {0.3, -0.2, 0.5};
        sk_pose before, now, after;
        double a[3], b[3], x[3], v[3];
        sk_pose_at(&f.obstacle, time - step, &before);
        sk_pose_at(&f.obstacle, time, &now);
        sk_pose_at(&f.obstacle, time + step, &after);
        sk_pose_to_world(&before, local, a);
        sk_pose_to_world(&now, local, x);
        sk_pose_to_world(&after, local, b);
        sk_pose_velocity(&now, x, v);
        for (int d = 0; d < 3; d++)
            assert_true(fabs(v[d] - (b[d] - a[d]) / (2.0 * step)) < 1e-7);
    }
}

/* Keyframes of the frame that sample a parabola give its acceleration; gravity over time is linear between its keys. */
static void frame_accelerations(void **state)
{
    (void)state;
    fixture f;
    make(&f, 2);
    selkie_keyframe keys[9] = {{0}};
    for (int k = 0; k < 9; k++) {
        keys[k].time = 0.25 * k;
        keys[k].translate[0] = 1.5 * keys[k].time * keys[k].time;
    }
    f.scene.frame.keyframes = keys;
    f.scene.frame.keyframe_count = 9;
    const selkie_gravity_key gravity[2] = {{1.0, {0, -1, 0}}, {2.0, {2, -3, 0}}};
    f.scene.gravity_keys = gravity;
    f.scene.gravity_key_count = 2;
    sk_frame_mean mean;
    sk_frame_mean_of(&f.scene, f.scene.gravity, 1.2, 1.3, &mean);
    assert_true(fabs(mean.gravity[0] - (0.5 - 3.0)) < 1e-9);
    assert_true(fabs(mean.gravity[1] + 1.5) < 1e-9);
    sk_frame_mean_of(&f.scene, f.scene.gravity, 5.0, 5.1, &mean);
    assert_true(fabs(mean.gravity[0] - 2.0) < 1e-12 && fabs(mean.gravity[1] + 3.0) < 1e-12);

    /* A steady turn: centrifugal force alone, and gravity turns against it. */
    selkie_keyframe turn[3] = {{.time = -4}, {.time = 0}, {.time = 4}};
    for (int k = 0; k < 3; k++)
        turn[k].rotate[2] = 10.0 * turn[k].time;
    f.scene.frame.keyframes = turn;
    f.scene.frame.keyframe_count = 3;
    f.scene.gravity_key_count = 0;
    sk_frame_mean_of(&f.scene, f.scene.gravity, 0.0, 0.0, &mean);
    const double w = 10.0 * M_PI / 180.0;
    assert_true(fabs(mean.omega[2] - w) < 1e-9);
    assert_true(fabs(mean.slope[0] - w * w) < 1e-6 && fabs(mean.slope[4] - w * w) < 1e-6);
}

static void refusals(void **state)
{
    (void)state;
    fixture f;
    selkie_error error = {0};
    selkie_force_def sponge;
    make(&f, 2);
    selkie_force_defaults(&sponge, SELKIE_FORCE_SPONGE);
    sponge.side = SELKIE_SIDE_Z_MAX;
    f.scene.forces = &sponge;
    f.scene.force_count = 1;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "do not exist in 2D"));
    sponge.side = SELKIE_SIDE_X_MAX;
    sponge.width = 3.0;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "more than the domain has"));
}

/* A resumed run with a moving frame, gravity over time and a sponge has the bits of an unbroken one. */
static void resumes_to_the_bit(void **state)
{
    (void)state;
    fixture f;
    selkie_error error = {0};
    selkie_oscillation motion;
    selkie_force_def sponge;
    const selkie_gravity_key gravity[2] = {{0.0, {0, -9, 0}}, {0.2, {1, -10, 0}}};
    char path[] = "/tmp/selkie_frame_XXXXXX";
    close(mkstemp(path));
    make(&f, 2);
    f.liquid.shape.max[1] = 0.5;
    selkie_oscillation_defaults(&motion);
    motion.rotate[2] = 10.0;
    motion.translate[0] = 0.05;
    selkie_force_defaults(&sponge, SELKIE_FORCE_SPONGE);
    sponge.side = SELKIE_SIDE_X_MIN;
    sponge.width = 0.5;
    f.scene.frame.oscillations = &motion;
    f.scene.frame.oscillation_count = 1;
    f.scene.gravity_keys = gravity;
    f.scene.gravity_key_count = 2;
    f.scene.forces = &sponge;
    f.scene.force_count = 1;
    f.scene.transfer = SELKIE_TRANSFER_APIC;

    selkie_world *whole, *half, *rest;
    selkie_world **const worlds[] = {&whole, &half, &rest};
    for (int w = 0; w < 3; w++)
        if (selkie_world_create(&f.scene, NULL, worlds[w], &error) != SELKIE_OK)
            fail_msg("%s", error.message);
    for (int n = 0; n < 12; n++)
        assert_int_equal(selkie_world_step(whole, &error), SELKIE_OK);
    for (int n = 0; n < 6; n++)
        assert_int_equal(selkie_world_step(half, &error), SELKIE_OK);
    assert_int_equal(selkie_world_save(half, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(rest, path, &error), SELKIE_OK);
    for (int n = 0; n < 6; n++)
        assert_int_equal(selkie_world_step(rest, &error), SELKIE_OK);
    for (int a = 0; a < 2; a++) {
        selkie_attribute_view one, other;
        assert_int_equal(selkie_world_find_attribute(whole, a ? "velocity" : "position", &one, &error), SELKIE_OK);
        assert_int_equal(selkie_world_find_attribute(rest, a ? "velocity" : "position", &other, &error), SELKIE_OK);
        for (int64_t p = 0; p < selkie_world_particle_count(whole); p++)
            assert_memory_equal((const char *)one.data + (size_t)p * one.stride,
                                (const char *)other.data + (size_t)p * other.stride, 2 * sizeof(float));
    }
    for (int w = 0; w < 3; w++)
        selkie_world_destroy(*worlds[w]);
    unlink(path);
}

/* A disc that flies and spins: m v^2 / 2 + I w^2 / 2 with I = m r^2 / 2, and m g y. */
static void energy_of_bodies(void **state)
{
    (void)state;
    fixture f;
    selkie_error error = {0};
    selkie_body_def disc;
    selkie_world *world;
    make(&f, 2);
    if (!sk_rigid_available())
        skip();
    f.scene.discretization = SELKIE_DISCRETIZATION_SPH;
    f.liquid.shape.max[1] = 0.25;
    selkie_body_defaults(&disc);
    selkie_shape_defaults(&disc.shape, SELKIE_SHAPE_SPHERE);
    disc.shape.center[0] = disc.shape.center[1] = 0.7;
    disc.shape.radius = 0.1;
    disc.velocity[0] = 0.5;
    disc.angular_velocity[2] = 6.0;
    f.scene.bodies = &disc;
    f.scene.body_count = 1;
    if (selkie_world_create(&f.scene, NULL, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    const double mass = 500.0 * M_PI * 0.01, kinetic = 0.5 * mass * (0.25 + 0.5 * 0.01 * 36.0);
    const selkie_statistics *s = selkie_world_statistics(world);
    assert_true(fabs(s->body_kinetic_energy / kinetic - 1.0) < 0.01);
    assert_true(fabs(s->body_potential_energy / (mass * 9.81 * 0.7) - 1.0) < 0.01);
    selkie_world_destroy(world);
}

/* A body without gravity stays behind a swaying frame: x = A w t - A sin(w t). With a roll it is refused. */
static void body_in_a_frame(void **state)
{
    (void)state;
    fixture f;
    selkie_error error = {0};
    selkie_body_def disc;
    selkie_oscillation sway;
    selkie_world *world;
    selkie_body_state body;
    make(&f, 2);
    if (!sk_rigid_available())
        skip();
    f.scene.discretization = SELKIE_DISCRETIZATION_SPH;
    f.scene.gravity[1] = 0.0;
    f.scene.time.step = 0.002;
    f.liquid.shape.max[1] = 0.25;
    selkie_body_defaults(&disc);
    selkie_shape_defaults(&disc.shape, SELKIE_SHAPE_SPHERE);
    disc.shape.center[0] = 0.5, disc.shape.center[1] = 0.7;
    disc.shape.radius = 0.1;
    f.scene.bodies = &disc;
    f.scene.body_count = 1;
    selkie_oscillation_defaults(&sway);
    sway.translate[0] = 0.05;
    sway.period = 0.5;
    f.scene.frame.oscillations = &sway;
    f.scene.frame.oscillation_count = 1;
    if (selkie_world_create(&f.scene, NULL, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    while (selkie_world_time(world) < 0.2)
        assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
    assert_int_equal(selkie_world_body(world, 0, &body), SELKIE_OK);
    const double w = 2.0 * M_PI / 0.5, t = selkie_world_time(world), way = 0.05 * (w * t - sin(w * t));
    if (!(fabs((body.position[0] - 0.5) / way - 1.0) < 0.01))
        fail_msg("%g, not %g", body.position[0] - 0.5, way);
    selkie_world_destroy(world);
    sway.rotate[2] = 1.0;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "leave out the rotation"));
}

/* Periodic axes: the cells must fit, and what cannot be there is named. */
static void periodic_axes(void **state)
{
    (void)state;
    fixture f;
    selkie_error error = {0};
    make(&f, 2);
    f.scene.domain.periodic = SELKIE_AXES_X;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK); /* 8 cells */
    assert_non_null(strstr(error.message, "must be 16 or a multiple of 32"));
    f.scene.domain.cell_size = 1.0 / 32;
    assert_int_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);

    f.scene.domain.walls[1] = SELKIE_WALL_NO_SLIP;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "domain.walls.x_max"));
    f.scene.domain.walls[1] = SELKIE_WALL_FREE_SLIP;
    f.scene.volume = SELKIE_VOLUME_ANDO;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "cannot be in a periodic domain"));
    f.scene.volume = SELKIE_VOLUME_AUTO;
    f.scene.domain.periodic = SELKIE_AXES_XZ;
    assert_int_not_equal(selkie_scene_check(&f.scene, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "has no z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periodic_axes),
        cmocka_unit_test(taylor_green),
        cmocka_unit_test(flow_from_file),
        cmocka_unit_test(motion_from_file),
        cmocka_unit_test(oscillation_derivatives),
        cmocka_unit_test(frame_accelerations),
        cmocka_unit_test(refusals),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(energy_of_bodies),
        cmocka_unit_test(body_in_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Force fields: exact answers at points, windows of time that leave nothing out and nothing double, and what they give
 * to liquid: momentum of an explosion, angular momentum of a vortex, the speed of a jet. Pressure is off where the
 * exact answer is that of free particles (pressure.start lies far away). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include <selkie/selkie.h>
#include "methods/force_fields.h"
#include "scratch_folder.h"
#include "step_cases.h"

#define near(value, expected, tolerance)                                                                               \
    do {                                                                                                               \
        if (!(fabs((double)(value) - (double)(expected)) <= (tolerance)))                                              \
            fail_msg("%s is %.9g, not %.9g within %g", #value, (double)(value), (double)(expected),                    \
                     (double)(tolerance));                                                                             \
    } while (0)

static selkie_force_def explosion(double x, double y, double z, double radius, double speed, double time)
{
    selkie_force_def force;
    selkie_force_defaults(&force, SELKIE_FORCE_EXPLOSION);
    const double center[3] = {x, y, z};
    memcpy(force.center, center, sizeof center);
    force.radius = radius;
    force.speed = speed;
    force.time = time;
    return force;
}

static void step_once(step_case *c)
{
    selkie_error error = {0};
    if (selkie_world_step(c->world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
}

/* --- at a point --- */

static void at_points(void **state)
{
    (void)state;
    selkie_force_def forces[4];
    forces[0] = explosion(1, 2, 3, 2, 10, 0.5);
    selkie_force_defaults(&forces[1], SELKIE_FORCE_VORTEX);
    forces[1].radius = 2;
    forces[1].spin = 3;
    forces[1].pull = 5;
    forces[1].lift = 7;
    selkie_force_defaults(&forces[2], SELKIE_FORCE_JET);
    forces[2].from[0] = 1;
    forces[2].to[0] = 3;
    forces[2].to[1] = 0;
    forces[2].radius = 0.5;
    forces[2].falloff = SELKIE_FALLOFF_LINEAR;
    forces[2].strength = 4;
    forces[2].start = 0.25;
    selkie_force_defaults(&forces[3], SELKIE_FORCE_UNIFORM);
    forces[3].acceleration[2] = -2;
    forces[3].end = 0.5;
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    scene.forces = forces;
    sk_force_field field;
    float v[3];
    scene.force_count = 1;

    /* Half the radius from the centre: (1 - 1/4)^2 of the speed, in the direction (0, 0, 1). */
    assert_int_equal(sk_force_fields_in(&scene, (sk_force_window){0.4, 0.6}, &field), 1);
    sk_force_fields_velocity_change(&field, 1, (const float[3]){1, 2, 4}, v);
    assert_true(v[0] == 0 && v[1] == 0);
    near(v[2], 5.625, 1e-6);
    sk_force_fields_velocity_change(&field, 1, (const float[3]){1, 2, 3}, v);
    assert_true(v[0] == 0 && v[1] == 0 && v[2] == 0);
    sk_force_fields_velocity_change(&field, 1, (const float[3]){1, 4, 3}, v);
    assert_true(v[1] == 0);
    assert_int_equal(sk_force_fields_in(&scene, (sk_force_window){0.2, 0.5}, &field), 0);

    /* About y, at x = 1: w = 9/16 for 0.2 s; from +x it turns to -z, is pulled to -x and lifted to +y. */
    scene.forces = forces + 1;
    assert_int_equal(sk_force_fields_in(&scene, (sk_force_window){0.1, 0.3}, &field), 1);
    sk_force_fields_velocity_change(&field, 1, (const float[3]){1, 9, 0}, v);
    near(v[0], -0.2 * 0.5625 * 5 * 0.5, 1e-6);
    near(v[1], 0.2 * 0.5625 * 7, 1e-6);
    near(v[2], -0.2 * 0.5625 * 3, 1e-6);

    /* The jet is there for the second half of the window, half as strong at half its radius, and nowhere past its ends.
     */
    scene.forces = forces + 2;
    assert_int_equal(sk_force_fields_in(&scene, (sk_force_window){0.15, 0.35}, &field), 1);
    sk_force_fields_velocity_change(&field, 1, (const float[3]){2, 0.25f, 0}, v);
    near(v[0], 4 * 0.1 * 0.5, 1e-6);
    assert_true(v[1] == 0 && v[2] == 0);
    sk_force_fields_velocity_change(&field, 1, (const float[3]){3.01f, 0, 0}, v);
    assert_true(v[0] == 0);
    near(field.low[0], 1, 1e-6);
    near(field.high[1], 0.5, 1e-6);
    assert_int_equal(sk_force_fields_in(&scene, (sk_force_window){0.0, 0.25}, &field), 0);

    scene.forces = forces;
    scene.force_count = 4;
    sk_force_field all[4];
    assert_int_equal(sk_force_fields_in(&scene, (sk_force_window){0.4, 0.6}, all), 4);
    sk_force_fields_velocity_change(all, 4, (const float[3]){20, 20, 20}, v);
    near(v[2], -0.2, 1e-6);
    near(sk_force_fields_speed(&scene, (sk_force_window){0.4, 0.6}), 10, 0);
    near(sk_force_fields_acceleration(&scene, (sk_force_window){0.5, 0.6}), (3 * 2 + 5) * 16.0 / 25 / sqrt(5) + 7 + 4,
         1e-12);
}

/* Charges that go off at once add up where their balls overlap. */
static void explosions_that_overlap_add_up(void **state)
{
    (void)state;
    enum { MANY = 300 };
    static selkie_force_def forces[MANY];
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    scene.forces = forces;
    const sk_force_window window = {0.0, 0.1};
    forces[0] = explosion(0, 0, 0, 1, 10, 0.05);
    forces[1] = explosion(1.5, 0, 0, 1, -7, 0.0);
    forces[2] = explosion(5, 0, 0, 1, 15, 0.02);
    forces[3] = explosion(0, 0, 0, 1, 100, 0.1);
    scene.force_count = 2;
    near(sk_force_fields_speed(&scene, window), 17, 0);
    scene.force_count = 4;
    near(sk_force_fields_speed(&scene, window), 17, 0);
    forces[1].center[0] = 2.5;
    near(sk_force_fields_speed(&scene, window), 15, 0);
    for (int e = 0; e < MANY; e++)
        forces[e] = explosion(10.0 * e, 0, 0, 1, 2, 0.0);
    scene.force_count = MANY;
    near(sk_force_fields_speed(&scene, window), 2.0 * MANY, 0); /* too many to tell apart: on the safe side */
}

/* --- in time --- */

/* Steps of random lengths that end on frames now and then, as the world makes them. Explosions sit on frames, on the
 * middles of steps and in between: each must fall into exactly one window, and lasting forces must last. */
static void windows_tile_time(void **state)
{
    (void)state;
    enum { EXPLOSIONS = 200 };
    static selkie_force_def forces[EXPLOSIONS + 1];
    static sk_force_field fields[EXPLOSIONS + 1];
    int seen[EXPLOSIONS] = {0};
    for (int pass = 0; pass < 2; pass++) { /* the first pass finds middles to put explosions on */
        sk_step step = {0};
        double lasted = 0.0;
        int frame = 0;
        for (int n = 0; frame < 60; n++) {
            double frame_time = (frame + 1) / 30.0, dt = 0.001 + 0.02 * sk_random_float(7, (uint64_t)n, 0);
            int last = step.time + dt >= frame_time;
            step.dt = last ? frame_time - step.time : dt;
            step.end_time = last ? frame_time : step.time + dt;
            sk_force_window window = sk_step_force_window(&step);
            if (pass == 0 && n < EXPLOSIONS)
                forces[n] = explosion(0, 0, 0, 1, 1, n % 3 == 0 ? frame / 30.0 : n % 3 == 1 ? window.to : step.time);
            if (pass == 1) {
                selkie_scene scene;
                selkie_scene_defaults(&scene);
                scene.forces = forces;
                scene.force_count = EXPLOSIONS;
                for (int e = 0; e < EXPLOSIONS; e++) {
                    scene.forces = forces + e;
                    scene.force_count = 1;
                    seen[e] += sk_force_fields_in(&scene, window, fields);
                }
                scene.forces = forces + EXPLOSIONS;
                if (sk_force_fields_in(&scene, window, fields))
                    lasted += fields[0].uniform[0];
            }
            step.time = step.end_time;
            step.last_dt = step.dt;
            frame += last;
        }
        if (pass == 0) {
            selkie_force_defaults(&forces[EXPLOSIONS], SELKIE_FORCE_UNIFORM);
            forces[EXPLOSIONS].acceleration[0] = 1.0;
            forces[EXPLOSIONS].start = 0.123;
            forces[EXPLOSIONS].end = 1.456;
        } else
            near(lasted, 1.456 - 0.123, 1e-6);
    }
    for (int e = 0; e < EXPLOSIONS; e++)
        if (forces[e].time < 1.9)
            assert_int_equal(seen[e], 1);
}

/* --- on liquid --- */

enum { CELLS = 24 };
static const double h = 0.125; /* m */

static void tank_without_pressure(step_case *c, int dimension)
{
    case_begin(c, dimension, CELLS, CELLS, CELLS, h);
    c->scene.gravity[1] = 0.0;
    c->scene.pressure.start = 1e5;
    c->scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
}

static double momentum(const step_case *c, int d)
{
    double sum = 0.0;
    for (int64_t p = 0; p < c->step->particles.count; p++)
        sum += c->step->particles.records[p].velocity[d];
    return sum * c->step->particle_mass;
}

/* An explosion in the surface of a half space of liquid: the momentum across it is the density times the speed times
 * the integral of w cos(angle) over half the ball: R^2 / 3 in 2D and 8 pi R^3 / 105 in 3D for the smooth falloff.
 * Whatever the steps are, and once. */
static void explosion_gives_momentum(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int variant = 0; variant < 3; variant++) {
            step_case c;
            tank_without_pressure(&c, dimension);
            c.scene.liquid_count = 1;
            case_box(&c, &c.liquids[0].shape, CELLS / 2, 0, 0, CELLS, CELLS, CELLS);
            const double middle = 0.5 * CELLS * h, radius = (dimension == 2 ? 11 : 9) * h, speed = 0.01,
                         time = variant == 2 ? 0.0 : 0.02;
            selkie_force_def force = explosion(middle, middle, middle, radius, speed, time);
            c.scene.forces = &force;
            c.scene.force_count = 1;
            c.scene.time.step = variant == 0 ? 0.01 : 0.007;
            c.scene.time.fps = 100;
            case_create(&c, 2, 0.0);
            while (selkie_world_time(c.world) < 0.0449)
                step_once(&c);
            double exact =
                1000.0 * speed * (dimension == 2 ? radius * radius / 3 : 8 * M_PI * radius * radius * radius / 105);
            /* Faces take the field at their middles and particles the mean of faces: about 2 (h / R)^2 is smoothed
             * away. */
            near(momentum(&c, 0) / exact, 1.0, 2.5 * h * h / (radius * radius));
            near(momentum(&c, 1) / exact, 0.0, 1e-4);
            case_end(&c);
        }
}

/* A disc in a vortex of constant falloff: the field is linear, which the transfer keeps exactly, so that the angular
 * momentum after a short step is spin x kick x sum of m r^2. */
static void vortex_gives_angular_momentum(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        tank_without_pressure(&c, dimension);
        c.scene.liquid_count = 1;
        case_ball(&c, &c.liquids[0].shape, CELLS / 2, CELLS / 2, CELLS / 2, 6);
        selkie_force_def force;
        selkie_force_defaults(&force, SELKIE_FORCE_VORTEX);
        force.falloff = SELKIE_FALLOFF_CONSTANT;
        force.radius = 10 * h;
        force.spin = 3.0;
        force.axis[1] = 0;
        force.axis[2] = 2;
        for (int d = 0; d < dimension; d++)
            force.point[d] = 0.5 * CELLS * h;
        c.scene.forces = &force;
        c.scene.force_count = 1;
        c.scene.time.step = 1e-4;
        case_create(&c, 2, 0.0);
        step_once(&c);
        double angular = 0.0, inertia = 0.0;
        for (int64_t p = 0; p < c.step->particles.count; p++) {
            const sk_particle *particle = &c.step->particles.records[p];
            double x = particle->position[0] - force.point[0], y = particle->position[1] - force.point[1];
            angular += x * particle->velocity[1] - y * particle->velocity[0];
            inertia += x * x + y * y;
        }
        near(angular / inertia, 3.0 * 0.5e-4, 3.0 * 0.5e-4 * 1e-4);
        case_end(&c);
    }
}

/* A block all of which is in a jet: v(t) = strength x the time that the jet has been on, exact at the middles of steps.
 */
static void jet_accelerates(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int method = SELKIE_METHOD_PIC; method <= SELKIE_METHOD_APIC; method++) {
            step_case c;
            tank_without_pressure(&c, dimension);
            selkie_scene_set_method(&c.scene, (selkie_method)method);
            c.scene.liquid_count = 1;
            case_box(&c, &c.liquids[0].shape, 2, 10, 10, 6, 14, 14);
            selkie_force_def force;
            selkie_force_defaults(&force, SELKIE_FORCE_JET);
            force.falloff = SELKIE_FALLOFF_CONSTANT;
            force.radius = 8 * h;
            force.strength = 4.0;
            force.start = 0.033;
            force.end = 0.26;
            for (int d = 0; d < 3; d++)
                force.from[d] = force.to[d] = d ? 12 * h : 0.0;
            force.to[0] = CELLS * h;
            c.scene.forces = &force;
            c.scene.force_count = 1;
            c.scene.time.step = 0.017;
            case_create(&c, 2, 0.0);
            for (int n = 0; n < 25; n++) {
                step_once(&c);
                double middle = selkie_world_time(c.world) - 0.5 * selkie_world_statistics(c.world)->dt;
                double exact = 4.0 * (fmax(fmin(middle, force.end), force.start) - force.start);
                double mass = c.step->particle_mass * (double)c.step->particles.count;
                near(momentum(&c, 0) / mass, exact, 1e-5);
                near(momentum(&c, 1) / mass, 0.0, 1e-5);
            }
            case_end(&c);
        }
}

/* A blast is a gradient. Under water, bilateral pressure takes all of it back: what may not come apart does not. */
static void bilateral_pressure_smothers_a_blast(void **state)
{
    (void)state;
    step_case c;
    case_begin(&c, 2, 32, 32, 1, h);
    c.scene.liquid_count = 1;
    c.scene.gravity[1] = 0.0;
    c.scene.pressure.tolerance = 1e-6;
    case_box(&c, &c.liquids[0].shape, 0, 0, 0, 32, 24, 1);
    selkie_force_def force = explosion(16 * h, 12 * h, 0, 8 * h, 10.0, 0.0);
    c.scene.forces = &force;
    c.scene.force_count = 1;
    c.scene.time.step = 1e-3;
    case_create(&c, 2, 0.0);
    step_once(&c);
    /* a smooth ball of 16 cells across is resolved to about (h / R)^2 */
    assert_true(selkie_world_statistics(c.world)->max_speed < 0.05 * 10.0);
    case_end(&c);
}

/* --- steps, checkpoints --- */

static void begin_blast(step_case *c, selkie_force_def *force)
{
    case_begin(c, 2, CELLS, CELLS, 1, h);
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, CELLS, 8, 1);
    *force = explosion(12 * h, 8 * h, 0, 4 * h, 20.0, 0.1);
    c->scene.forces = force;
    c->scene.force_count = 1;
    case_create(c, 2, 0.0);
    c->step->last_dt = 0.0;
}

/* The step in which it explodes is as short as the explosion's speed asks for. */
static void step_knows_the_explosion(void **state)
{
    (void)state;
    step_case c;
    selkie_force_def force;
    begin_blast(&c, &force);
    double before = 0.0;
    while (selkie_world_statistics(c.world)->max_speed < 5.0 && selkie_world_time(c.world) < 0.2) {
        before = selkie_world_statistics(c.world)->max_speed;
        step_once(&c);
    }
    const selkie_statistics *s = selkie_world_statistics(c.world);
    assert_true(before < 1.0 && s->max_speed > 5.0);
    assert_true(s->dt <= 3.0 * h / 20.0 * (1 + 1e-9));
    assert_true(fabs(s->time - 0.1) <= 2 * s->dt);
    case_end(&c);
}

/* Broken off at every step around the explosion and resumed, the run ends the same to the bit. */
static void resumed_run_explodes_once(void **state)
{
    (void)state;
    selkie_error error = {0};
    step_case whole;
    selkie_force_def force;
    begin_blast(&whole, &force);
    int steps = 0;
    for (; selkie_world_time(whole.world) < 0.15; steps++)
        step_once(&whole);
    for (int stop = 0; stop < steps; stop++) {
        step_case first, second;
        begin_blast(&first, &force);
        for (int n = 0; n < stop; n++)
            step_once(&first);
        const char *path = in_root("blast.checkpoint");
        if (selkie_world_save(first.world, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        begin_blast(&second, &force);
        if (selkie_world_load(second.world, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        for (int n = stop; n < steps; n++)
            step_once(&second);
        assert_int_equal(second.step->particles.count, whole.step->particles.count);
        assert_memory_equal(second.step->particles.records, whole.step->particles.records,
                            (size_t)whole.step->particles.count * sizeof(sk_particle));
        case_end(&first);
        case_end(&second);
    }
    case_end(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_points),
        cmocka_unit_test(explosions_that_overlap_add_up),
        cmocka_unit_test(windows_tile_time),
        cmocka_unit_test(explosion_gives_momentum),
        cmocka_unit_test(vortex_gives_angular_momentum),
        cmocka_unit_test(jet_accelerates),
        cmocka_unit_test(bilateral_pressure_smothers_a_blast),
        cmocka_unit_test(step_knows_the_explosion),
        cmocka_unit_test(resumed_run_explodes_once),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

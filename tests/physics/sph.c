/* SPH against what is known: free fall, momentum, a drop that surface tension makes round, and what does not depend on
 * threads or on being resumed. */
#include <unistd.h>

#include "physics.h"
#include "methods/sph/sph.h"
#include "world/world_internal.h"

/* --- What is exact --- */

/* A block falls as one, at any step; the lattice is at rest density, so nothing happens in it. */
static void free_fall(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        tank(&t, dimension, 1, 3, 1, 0.1);
        selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
        t.scene.time.cfl = 0.0;
        add_liquid(&t, box_shape(0.3, 2.3, 0.3, 0.7, 2.7, 0.7));
        selkie_world *world = make_world(&t);
        particle_sums before = sum_particles(world, NULL);
        run_until(world, 0.5);
        particle_sums after = sum_particles(world, NULL);
        double time = selkie_world_time(world), fallen = 0.5 * GRAVITY * time * time;
        at_most(dimension == 2 ? "free fall 2D SPH" : "free fall 3D SPH", "centre of mass, error / (g t^2 / 2)",
                fabs(before.position[1] - after.position[1] - fallen) / fallen, 1e-5);
        selkie_world_destroy(world);
    }
}

/* Two drops that meet, without gravity and far from walls: momentum is what it was, to rounding. */
static void momentum_is_kept(void **state)
{
    (void)state;
    test_scene t;
    tank(&t, 2, 2, 2, 0, 0.04);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
    t.scene.time.cfl = 0.0;
    set3(t.scene.gravity, 0, 0, 0);
    set3(add_liquid(&t, sphere_shape(0.8, 1.0, 0, 0.16))->velocity, 1.0, 0.0, 0.0);
    set3(add_liquid(&t, sphere_shape(1.2, 1.06, 0, 0.16))->velocity, -1.0, 0.2, 0.0);
    selkie_world *world = make_world(&t);
    particle_sums before = sum_particles(world, NULL);
    double energy = before.kinetic;
    run_until(world, 0.25);
    particle_sums after = sum_particles(world, NULL);
    at_most("two drops meet, SPH", "change of momentum / (mass x 1 m/s)",
            fmax(fabs(after.momentum[0] - before.momentum[0]), fabs(after.momentum[1] - before.momentum[1])), 1e-6);
    between("two drops meet, SPH", "kinetic energy kept", after.kinetic / energy, 0.1, 1.0);
    selkie_world_destroy(world);
}

/* A square of liquid becomes round: the mean deviation of the outline's radius falls. */
static void a_square_becomes_round(void **state)
{
    (void)state;
    for (int which = SELKIE_TENSION_BECKER; which <= SELKIE_TENSION_AKINCI; which++) {
        test_scene t;
        tank(&t, 2, 1, 1, 0, 0.04);
        selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
        t.scene.time.cfl = 0.0;
        set3(t.scene.gravity, 0, 0, 0);
        t.scene.viscosity = 0.01;
        t.scene.time.max_step = 0.002;
        t.scene.sph.surface_tension = (selkie_sph_tension)which;
        t.scene.sph.tension = which == SELKIE_TENSION_BECKER ? 3000.0 : 20.0;
        add_liquid(&t, box_shape(0.32, 0.32, 0, 0.68, 0.68, 0));
        selkie_world *world = make_world(&t);
        double spread[2];
        for (int when = 0; when < 2; when++) {
            if (when)
                run_until(world, 0.6);
            /* How far the outermost particle of each of 32 directions is, over their mean. */
            selkie_attribute_view position = attribute_of(world, "position");
            double far[32] = {0}, mean = 0.0, deviation = 0.0;
            particle_sums sums = sum_particles(world, NULL);
            for (int64_t p = 0; p < sums.count; p++) {
                const float *x = particle_of(&position, p);
                double dx = x[0] - sums.position[0], dy = x[1] - sums.position[1];
                int sector = (int)((atan2(dy, dx) / 3.14159265358979 + 1.0) * 16.0) % 32;
                far[sector] = fmax(far[sector], sqrt(dx * dx + dy * dy));
            }
            for (int k = 0; k < 32; k++)
                mean += far[k] / 32;
            for (int k = 0; k < 32; k++)
                deviation += (far[k] - mean) * (far[k] - mean) / 32;
            spread[when] = sqrt(deviation) / mean;
        }
        const char *name = which == SELKIE_TENSION_BECKER ? "square drop, becker" : "square drop, akinci";
        note(name, "deviation of the radius at the start", spread[0]);
        at_most(name, "deviation of the radius after 0.6 s / at the start", spread[1] / spread[0], 0.6);
        selkie_world_destroy(world);
    }
}

/* A square drop at the steps that the program chooses, from rest: cohesion, not time.fps, limits the first one. The
 * drop stays in one piece: no particle is farther out than a corner of the square was. */
static void a_square_stays_together(void **state)
{
    (void)state;
    test_scene t;
    tank(&t, 2, 1, 1, 0, 0.04);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
    t.scene.time.cfl = 0.0;
    t.scene.time.fps = 30.0;
    set3(t.scene.gravity, 0, 0, 0);
    t.scene.sph.surface_tension = SELKIE_TENSION_AKINCI;
    t.scene.sph.tension = 20.0;
    add_liquid(&t, box_shape(0.32, 0.32, 0, 0.68, 0.68, 0));
    selkie_world *world = make_world(&t);
    run_until(world, 0.5);
    selkie_attribute_view position = attribute_of(world, "position");
    const particle_sums sums = sum_particles(world, NULL);
    double far = 0.0;
    for (int64_t p = 0; p < sums.count; p++) {
        const float *x = particle_of(&position, p);
        far = fmax(far, hypot(x[0] - sums.position[0], x[1] - sums.position[1]));
    }
    at_most("square drop, default steps", "farthest particle / the square's corner", far / (0.18 * sqrt(2.0)), 1.0);
    selkie_world_destroy(world);
}

/* --- Bits --- */

static void splash(test_scene *t)
{
    tank(t, 3, 0.6, 0.5, 0.3, 0.05);
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_SPH);
    t->scene.time.cfl = 0.0;
    t->scene.viscosity = 1e-3;
    t->scene.sph.surface_tension = SELKIE_TENSION_AKINCI;
    t->scene.sph.tension = 1.0;
    add_liquid(t, box_shape(0, 0, 0, 0.2, 0.4, 0.3));
    add_obstacle(t, sphere_shape(0.4, 0.05, 0.15, 0.08));
}

static void assert_same(const selkie_world *a, const selkie_world *b)
{
    assert_int_equal(sk_world_fetch(a, 0, NULL), SELKIE_OK);
    assert_int_equal(sk_world_fetch(b, 0, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    assert_true(selkie_world_time(a) == selkie_world_time(b));
    size_t bytes = (size_t)selkie_world_particle_count(a) * sizeof(sk_particle);
    assert_memory_equal(a->step.particles.records, b->step.particles.records, bytes);
}

static void threads_and_checkpoints_leave_no_trace(void **state)
{
    (void)state;
    test_scene t;
    splash(&t);
    selkie_world *reference = make_world_threads(&t.scene, 1), *resumed = NULL;
    char path[] = "sph_bits_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    for (int step = 0; step < 120; step++) {
        if (step == 60) {
            selkie_error error = {0};
            assert_int_equal(selkie_world_save(reference, path, &error), SELKIE_OK);
            resumed = make_world_threads(&t.scene, 2);
            if (selkie_world_load(resumed, path, &error) != SELKIE_OK)
                fail_msg("%s", error.message);
        }
        step_world(reference);
        if (resumed)
            step_world(resumed);
    }
    assert_same(reference, resumed);
    for (int threads = 2; threads <= 3; threads++) {
        selkie_world *other = make_world_threads(&t.scene, threads);
        for (int step = 0; step < 120; step++)
            step_world(other);
        assert_same(reference, other);
        selkie_world_destroy(other);
    }
    remove(path);
    selkie_world_destroy(resumed);
    selkie_world_destroy(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_fall),
        cmocka_unit_test(momentum_is_kept),
        cmocka_unit_test(a_square_becomes_round),
        cmocka_unit_test(a_square_stays_together),
        cmocka_unit_test(threads_and_checkpoints_leave_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

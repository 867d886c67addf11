/* SPH against what is known: water at rest between walls of boundary particles, the dam break of Martin and Moyce 1952,
 * free fall, a drop that surface tension makes round, and what does not depend on threads or on being resumed. */
#include <unistd.h>

#include "table.h"
#include "methods/sph/sph.h"
#include "world/world_internal.h"

/* --- Water at rest --------------------------------------------------------------------------------------------------- */

/* Pressure probes in the middle of a column against hydrostatics, mean over some time. The probe weighs the particles around
 * it with the kernel; between two layers of particles and on one of them the pressure differs by some per cent. */
static void column(int dimension, double width, double depth, double h, double settle, double average)
{
    enum { PROBES = 5 };
    static const char *const names[PROBES] = {"p1", "p2", "p3", "p4", "p5"};
    test_scene t;
    tank(&t, dimension, width, 1.25 * depth, width, h);
    t.scene.method = SELKIE_METHOD_SPH;
    t.scene.time.cfl = 0.0;
    t.scene.sph.xsph = 0.05; /* a column that is let go all at once swings for a while */
    t.scene.sph.density_error = 0.001;
    add_liquid(&t, box_shape(0, 0, 0, width, depth, width));
    for (int n = 0; n < PROBES; n++)
        add_probe(&t, names[n], SELKIE_PROBE_PRESSURE, 0.5 * width, depth * (n + 1) / (PROBES + 1), 0.5 * width);
    selkie_world *world = make_world(&t);
    const sk_step *step = &world->step;
    const double full = step->density * GRAVITY * depth;
    double sum[PROBES] = {0}, time = 0.0, worst = 0.0, speed = 0.0, samples = 0.0, iterations = 0.0, compression = 0.0, largest = 0.0;
    while (selkie_world_time(world) < settle + average) {
        step_world(world);
        worst = fmax(worst, step->sph->report.predicted_error);
        if (selkie_world_time(world) < settle)
            continue;
        for (int n = 0; n < PROBES; n++)
            sum[n] += selkie_world_probe_value(world, n) * step->dt;
        time += step->dt;
        speed += sqrt(2.0 * step->sums.kinetic / (double)step->particles.count);
        iterations += step->sph->report.iterations;
        compression += step->sph->report.compression;
        samples++;
    }
    char what[64];
    snprintf(what, sizeof what, "SPH column %dD, %.0f layers", dimension, depth / step->sph->spacing);
    for (int n = 0; n < PROBES; n++) {
        double exact = full * (1.0 - (n + 1.0) / (PROBES + 1));
        print_message("   %s %.1f Pa, exact %.1f Pa\n", names[n], sum[n] / time, exact);
        largest = fmax(largest, fabs(sum[n] / time - exact) / full);
    }
    at_most(what, "pressure at any probe, error / rho g depth", largest, 0.03);
    at_most(what, "speed, RMS / sqrt(g depth)", speed / samples / sqrt(GRAVITY * depth), 0.05);
    at_most(what, "error that any solve left / allowed", worst / 0.001, 1.0);
    at_most(what, "real compression, mean", compression / samples, 0.001);
    note(what, "iterations a step", iterations / samples);
    selkie_world_destroy(world);
}

static void plane_column(void **state)
{
    (void)state;
    column(2, 0.3, 0.4, 0.03, 1.0, 0.5);
}

static void square_column(void **state)
{
    (void)state;
    column(3, 0.25, 0.25, 0.05, 0.8, 0.4);
}

/* --- Dam break --------------------------------------------------------------------------------------------------------- */

enum { SAMPLES = 6000 };

static void plane_dam_break(void **state)
{
    (void)state;
    const double a = 0.05715, h = a / 16;
    test_scene t;
    tank(&t, 2, 16 * a, 3 * a, 0, h);
    t.scene.domain.walls[1] = SELKIE_WALL_OPEN;
    t.scene.method = SELKIE_METHOD_SPH;
    t.scene.time.cfl = 0.0;
    add_liquid(&t, box_shape(0, 0, 0, a, 2 * a, 0));
    selkie_probe_def *front = add_probe(&t, "front", SELKIE_PROBE_FRONT, 0, 0, 0);
    front->axis = SELKIE_AXIS_X;
    front->direction = 1;
    selkie_world *world = make_world(&t);
    static double time[SAMPLES], position[SAMPLES];
    double worst = 0.0, iterations = 0.0;
    int count = 0;
    for (; count < SAMPLES; step_world(world)) {
        double z = selkie_world_probe_value(world, 0) / a;
        if (count && z <= position[count - 1])
            z = position[count - 1] + 1e-9;
        time[count] = selkie_world_time(world);
        position[count++] = z;
        worst = fmax(worst, world->step.sph->report.predicted_error);
        iterations += world->step.sph->report.iterations;
        if (z > 14.2)
            break;
    }
    selkie_world_destroy(world);
    double scale = sqrt(2 * GRAVITY / a), shift = 1.19 - scale * interpolate(count, position, time, 1.44), near = 0.0, all = 0.0;
    table measured = read_table("martin_moyce_front.csv", 4);
    int near_count = 0, all_count = 0;
    for (int n = 0; n < measured.rows; n++) {
        double z = measured.value[n][0], ours = scale * interpolate(count, position, time, z);
        if (z < 1.44 || isnan(ours))
            continue;
        double error = (ours + shift) / measured.value[n][1] - 1.0;
        all += error * error;
        all_count++;
        near += z <= 4.11 ? error * error : 0.0;
        near_count += z <= 4.11;
    }
    at_most("Martin and Moyce 2D SPH, a = 32 particles", "front, T at Z 1.44..4.11, RMS relative error", sqrt(near / near_count), 0.06);
    at_most("Martin and Moyce 2D SPH, a = 32 particles", "front, T at Z 1.44..14, RMS relative error", sqrt(all / all_count), 0.06);
    at_most("Martin and Moyce 2D SPH, a = 32 particles", "error that any solve left / allowed", worst / 0.003, 1.0);
    note("Martin and Moyce 2D SPH, a = 32 particles", "iterations a step", iterations / count);
    note("Martin and Moyce 2D SPH, a = 32 particles", "shift of T", shift);
}

/* --- What is exact -------------------------------------------------------------------------------------------------------- */

/* A block falls as one, at any step; the lattice is at rest density, so nothing happens in it. */
static void free_fall(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        tank(&t, dimension, 1, 3, 1, 0.1);
        t.scene.method = SELKIE_METHOD_SPH;
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
    t.scene.method = SELKIE_METHOD_SPH;
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
        t.scene.method = SELKIE_METHOD_SPH;
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

/* --- Bits ------------------------------------------------------------------------------------------------------------------- */

static void splash(test_scene *t)
{
    tank(t, 3, 0.6, 0.5, 0.3, 0.05);
    t->scene.method = SELKIE_METHOD_SPH;
    t->scene.time.cfl = 0.0;
    t->scene.viscosity = 1e-3;
    t->scene.sph.surface_tension = SELKIE_TENSION_AKINCI;
    t->scene.sph.tension = 1.0;
    add_liquid(t, box_shape(0, 0, 0, 0.2, 0.4, 0.3));
    add_obstacle(t, sphere_shape(0.4, 0.05, 0.15, 0.08));
}

static void assert_same(const selkie_world *a, const selkie_world *b)
{
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
        cmocka_unit_test(free_fall),           cmocka_unit_test(momentum_is_kept),
        cmocka_unit_test(a_square_becomes_round), cmocka_unit_test(threads_and_checkpoints_leave_no_trace),
        cmocka_unit_test(plane_column),        cmocka_unit_test(square_column),
        cmocka_unit_test(plane_dam_break),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Domains whose sides are joined: liquid crosses the seam as if it were not there, and flows that repeat agree with
 * their exact solutions. */
#include <unistd.h>

#include "physics.h"

/* Blocks are 16 cells wide in 2D and 8 in 3D. */
static double cell_size(int dimension)
{
    return dimension == 2 ? 1.0 / 32 : 1.0 / 16;
}

/* A domain of 1 x 1 (x 1) m that repeats along some axes. */
static void box(test_scene *t, int dimension, selkie_method method, selkie_volume volume, selkie_axes periodic)
{
    tank(t, dimension, 1, 1, 1, cell_size(dimension));
    selkie_scene_set_method(&t->scene, method);
    t->scene.volume = volume;
    t->scene.domain.periodic = periodic;
    t->scene.gravity[1] = 0.0;
}

static selkie_world *make_world_of(const test_scene *t, selkie_backend backend, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = 1;
    options.backend = backend;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(&t->scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("selkie_world_create: %s", error.message);
    return world;
}

/* --- The seam does not show --- */

/* A layer of liquid, or a full box, that moves at one speed. */
static void moves_through(int dimension, selkie_method method, selkie_volume volume, selkie_backend backend, int full)
{
    const double speed = 2.0;
    test_scene t;
    box(&t, dimension, method, volume, full ? dimension == 2 ? SELKIE_AXES_XY : SELKIE_AXES_XYZ : SELKIE_AXES_X);
    t.scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    t.scene.time.step = 0.025;
    selkie_liquid_def *liquid = add_liquid(&t, box_shape(0, 0, 0, 1, full ? 1.0 : 0.5, 1));
    set3(liquid->velocity, speed, full ? -1.0 : 0.0, full && dimension == 3 ? 0.5 : 0.0);
    selkie_world *world = make_world_of(&t, backend, 2);
    const int64_t count = selkie_world_particle_count(world);
    run_until(world, 0.75); /* one and a half times round */

    double worst = 0.0;
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p), *v = particle_of(&velocity, p);
        for (int d = 0; d < dimension; d++)
            worst = fmax(worst, fabs((double)v[d] - liquid->velocity[d]) / speed);
        assert_true(x[0] >= 0.0f && x[0] < 1.0f);
    }
    char what[96];
    snprintf(what, sizeof what, "%s %dD %s%s %s", full ? "full box" : "layer", dimension, method_name(method),
             volume_name(volume), backend == SELKIE_BACKEND_PLAIN ? "plain" : "tuned");
    assert_int_equal(selkie_world_particle_count(world), count);
    /* Rounding of 30 steps in single precision. The solve of SPH leaves density errors of 0.3 %, which it corrects. */
    at_most(what, "largest change of velocity / U", worst, method == SELKIE_METHOD_SPH ? 2e-3 : 2e-5);
    at_most(what, "volume, change", fabs(selkie_world_statistics(world)->volume_ratio - 1.0),
            method == SELKIE_METHOD_SPH ? 1e-2 : 1e-3);
    selkie_world_destroy(world);
}

static void uniform_flow(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        moves_through(dimension, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, SELKIE_BACKEND_TUNED, 0);
        moves_through(dimension, SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, SELKIE_BACKEND_TUNED, 1);
    }
    moves_through(2, SELKIE_METHOD_PIC, SELKIE_VOLUME_NONE, SELKIE_BACKEND_TUNED, 0);
    moves_through(2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, SELKIE_BACKEND_PLAIN, 0);
    moves_through(2, SELKIE_METHOD_APIC, SELKIE_VOLUME_NONE, SELKIE_BACKEND_PLAIN, 1);
    moves_through(2, SELKIE_METHOD_SPH, SELKIE_VOLUME_NONE, SELKIE_BACKEND_TUNED, 0);
    moves_through(2, SELKIE_METHOD_SPH, SELKIE_VOLUME_NONE, SELKIE_BACKEND_PLAIN, 0);
}

/* A column of water falls to both sides. Shifted by half a period, with the seam in its middle, it must fall alike. */
static void column(test_scene *t, int dimension, selkie_method method, selkie_volume volume, double shift)
{
    box(t, dimension, method, volume, SELKIE_AXES_X);
    t->scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    t->scene.gravity[1] = -GRAVITY;
    t->scene.time.step = 0.005;
    t->scene.viscosity = 1e-3;
    for (int part = 0; part < 2; part++) {
        const double middle = 0.375 + 0.25 * part + shift, low = middle - floor(middle) - 0.125;
        add_liquid(t, box_shape(low, 0, 0, low + 0.25, 0.6, 0.5));
    }
}

static void falls_alike(int dimension, selkie_method method, selkie_volume volume, int unilateral)
{
    double height[2], kinetic[2];
    for (int shifted = 0; shifted < 2; shifted++) {
        test_scene t;
        column(&t, dimension, method, volume, 0.5 * shifted);
        if (unilateral)
            t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        selkie_world *world = make_world(&t);
        run_until(world, dimension == 2 ? 0.2 : 0.1);
        const particle_sums sums = sum_particles(world, NULL);
        height[shifted] = sums.position[1];
        kinetic[shifted] = sums.kinetic;
        selkie_world_destroy(world);
    }
    char what[96];
    snprintf(what, sizeof what, "column at the seam %dD %s%s%s", dimension, method_name(method), volume_name(volume),
             unilateral ? " unilateral" : "");
    /* The same numbers but for the order of sums: rounding, which a splash makes grow. */
    at_most(what, "mean height, relative change", fabs(height[1] / height[0] - 1.0), 2e-3);
    at_most(what, "kinetic energy, relative change", fabs(kinetic[1] / kinetic[0] - 1.0), 1e-2);
}

static void translated(void **state)
{
    (void)state;
    falls_alike(2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 0);
    falls_alike(2, SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, 0);
    falls_alike(3, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0);
    falls_alike(2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 1);
    falls_alike(2, SELKIE_METHOD_SPH, SELKIE_VOLUME_NONE, 0);
}

/* --- Exact flows --- */

/* Poiseuille: a force along a channel between no-slip walls; u = g y (H - y) / (2 nu). Finite differences with the wall
 * half a cell beyond the last sample add g h^2 / (8 nu) to it, so that the sum over n cells is too large by 2 / n^2. */
static void poiseuille(int dimension, selkie_method method, int cells)
{
    const double nu = 0.5, g = 0.4, height = 0.5, h = height / cells, exact = g * height * height / (12.0 * nu);
    test_scene t;
    tank(&t, dimension, 32 * h, height, 16 * h, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.domain.periodic = dimension == 3 ? SELKIE_AXES_XZ : SELKIE_AXES_X;
    t.scene.domain.walls[2] = t.scene.domain.walls[3] = SELKIE_WALL_NO_SLIP;
    set3(t.scene.gravity, g, 0.0, 0.0);
    t.scene.viscosity = nu;
    t.scene.time.step = 0.01;
    add_liquid(&t, box_shape(0, 0, 0, 2, height, 2));
    selkie_world *world = make_world(&t);
    run_until(world, 5.0 * height * height / (nu * 9.8696)); /* what is missing has fallen by exp(-5) */
    run_until(world, 1.0);

    selkie_field_view field = field_of(world, "velocity_x");
    const int values = field.extent[0] * field.extent[1] * field.extent[2];
    double flux = 0.0, worst = 0.0;
    int count = 0;
    for (int b = 0; b < field.block_count; b++)
        for (int n = 0; n < values; n++) {
            int cell[3];
            cell_of(&field, b, n, cell);
            if (cell[1] < 0 || cell[1] >= cells)
                continue;
            const double y = (cell[1] + 0.5) * h, u = (double)field.data[(size_t)b * (size_t)values + (size_t)n];
            flux += u;
            worst = fmax(worst, fabs(u - g * y * (height - y) / (2.0 * nu)) / exact);
            count++;
        }
    char what[96];
    snprintf(what, sizeof what, "Poiseuille %dD %s, %d cells", dimension, method_name(method), cells);
    between(what, "flux, error x n^2 / 2", (flux / count / exact - 1.0) * 0.5 * cells * cells, 0.9, 1.1);
    at_most(what, "profile, largest error / mean", worst, 1.6 / (cells * cells) + 0.001);
    selkie_world_destroy(world);
}

static void channel_flow(void **state)
{
    (void)state;
    poiseuille(2, SELKIE_METHOD_APIC, 8);
    poiseuille(2, SELKIE_METHOD_APIC, 16);
    poiseuille(2, SELKIE_METHOD_FLIP, 16);
    poiseuille(3, SELKIE_METHOD_APIC, 8);
}

/* Taylor-Green vortices in a box that repeats along both axes: u = U exp(-2 nu k^2 t), exact with all nonlinear terms.
 */
static void taylor_green(selkie_method method, selkie_volume volume, double most)
{
    const double nu = 0.01, speed = 0.5, k = 2.0 * M_PI, time = 0.5;
    test_scene t;
    box(&t, 2, method, volume, SELKIE_AXES_XY);
    t.scene.domain.cell_size = 1.0 / 64;
    t.scene.viscosity = nu;
    t.scene.time.step = 0.01;
    selkie_liquid_def *liquid = add_liquid(&t, box_shape(0, 0, 0, 1, 1, 1));
    liquid->flow.kind = SELKIE_FLOW_TAYLOR_GREEN;
    liquid->flow.speed = speed;
    liquid->flow.wavelength = 1.0;
    set3(liquid->center, 0.3, 0.7, 0.0); /* the seams are nowhere special */
    selkie_world *world = make_world(&t);
    const double start = sum_particles(world, NULL).kinetic;
    run_until(world, time);
    const double rate = -0.5 * log(sum_particles(world, NULL).kinetic / start) / time;
    char what[96];
    snprintf(what, sizeof what, "Taylor-Green 2D %s%s, 64 cells", method_name(method), volume_name(volume));
    at_most(what, "rate of decay, relative error", fabs(rate / (2.0 * nu * k * k) - 1.0), most);
    selkie_world_destroy(world);
}

static void vortices(void **state)
{
    (void)state;
    taylor_green(SELKIE_METHOD_APIC, SELKIE_VOLUME_NONE, 0.05);
    taylor_green(SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0.15); /* the share of PIC adds to the viscosity */
}

/* --- Bits --- */

static void assert_same_particles(const selkie_world *a, const selkie_world *b)
{
    const selkie_attribute_view x[2] = {attribute_of(a, "position"), attribute_of(b, "position")},
                                v[2] = {attribute_of(a, "velocity"), attribute_of(b, "velocity")};
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    for (int64_t p = 0; p < selkie_world_particle_count(a); p++) {
        assert_memory_equal(particle_of(&x[0], p), particle_of(&x[1], p), 3 * sizeof(float));
        assert_memory_equal(particle_of(&v[0], p), particle_of(&v[1], p), 3 * sizeof(float));
    }
}

static void threads_and_resume(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        column(&t, dimension, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0.5);
        selkie_obstacle_def *obstacle = add_obstacle(&t, sphere_shape(0.0, 0.2, 0.2, 0.1)); /* at the seam */
        obstacle->liquid_friction = 0.2;
        t.scene.gravity[0] = 2.0;
        selkie_world *one = make_world_threads(&t.scene, 1), *two = make_world_threads(&t.scene, 2);
        char path[] = "/tmp/selkie-test-periodic-XXXXXX";
        selkie_error error = {0};
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        for (int n = 0; n < 12; n++) {
            step_world(one);
            step_world(two);
            if (n == 5)
                assert_int_equal(selkie_world_save(one, path, &error), SELKIE_OK);
        }
        assert_same_particles(one, two);
        selkie_world *third = make_world(&t);
        if (selkie_world_load(third, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        for (int n = 6; n < 12; n++)
            step_world(third);
        assert_same_particles(one, third);
        unlink(path);
        selkie_world_destroy(one);
        selkie_world_destroy(two);
        selkie_world_destroy(third);
    }
}

/* An obstacle that crosses the seam is whole: water around it comes to rest as around one in the middle. */
static void obstacle_at_the_seam(void **state)
{
    (void)state;
    double speed[2], lift[2], aside[2];
    for (int at_seam = 0; at_seam < 2; at_seam++) {
        test_scene t;
        box(&t, 2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, SELKIE_AXES_X);
        t.scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
        t.scene.gravity[1] = -GRAVITY;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.625, 1));
        add_obstacle(&t, sphere_shape(at_seam ? 1.03125 : 0.53125, 0.3, 0.0, 0.15))->name = "disc";
        add_probe(&t, "force", SELKIE_PROBE_FORCE, 0, 0, 0)->on = "disc";
        selkie_world *world = make_world(&t);
        run_until(world, 0.5);
        speed[at_seam] = sum_particles(world, NULL).max_speed;
        aside[at_seam] = selkie_world_probe_value(world, 0);
        lift[at_seam] = selkie_world_probe_value(world, 1);
        const double volume = selkie_world_statistics(world)->volume_ratio;
        at_most(at_seam ? "disc at the seam" : "disc in the middle", "volume, change", fabs(volume - 1.0), 5e-3);
        selkie_world_destroy(world);
    }
    /* A part of it lies beyond the seam, and the force is that of the whole: displaced water of 0.15 m radius. */
    const double weight = M_PI * 0.15 * 0.15 * 1000.0 * GRAVITY;
    at_most("disc at the seam", "lift / weight of displaced water - 1", fabs(lift[1] / weight - 1.0), 0.01);
    at_most("disc at the seam", "force on it - that in the middle / weight",
            (fabs(aside[1] - aside[0]) + fabs(lift[1] - lift[0])) / weight, 1e-3);
    note("disc in the middle", "largest speed (m/s)", speed[0]);
    /* What is left of the motion, 0.4 mm/s, differs by the rounding of positions: a tenth of it at most. */
    at_most("disc at the seam", "largest speed / that in the middle - 1", fabs(speed[1] / speed[0] - 1.0), 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_flow), cmocka_unit_test(translated),         cmocka_unit_test(channel_flow),
        cmocka_unit_test(vortices),     cmocka_unit_test(threads_and_resume), cmocka_unit_test(obstacle_at_the_seam),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

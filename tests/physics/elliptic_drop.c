/* A drop without gravity that is drawn out into an ellipse. Exact: semi-axes a' = -A a, b' = A b with
 * A' = A^2 (a^2 - b^2) / (a^2 + b^2), kinetic energy and area constant. In 3D a cylinder between two slippery plates.
 */
#include "physics.h"

/* b at the end, by Runge-Kutta of fourth order. */
static double exact_axis(double rate, double time)
{
    enum { STEPS = 2000 };
    double y[3] = {1.0, 1.0, rate}, dt = time / STEPS;
    for (int n = 0; n < STEPS; n++) {
        double k[4][3];
        for (int stage = 0; stage < 4; stage++) {
            double z[3], part = stage == 0 ? 0.0 : stage == 3 ? dt : 0.5 * dt;
            for (int i = 0; i < 3; i++)
                z[i] = y[i] + (stage ? part * k[stage - 1][i] : 0.0);
            k[stage][0] = -z[2] * z[0];
            k[stage][1] = z[2] * z[1];
            k[stage][2] = z[2] * z[2] * (z[0] * z[0] - z[1] * z[1]) / (z[0] * z[0] + z[1] * z[1]);
        }
        for (int i = 0; i < 3; i++)
            y[i] += dt / 6.0 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
    return y[1];
}

/* Returns the relative error of the energy. */
static double stretch(int dimension, selkie_method method, double h, double cfl, int judge)
{
    const double rate = 100.0, time = 0.0076;
    test_scene t;
    tank(&t, dimension, 3, 5, 4 * h, h);
    set3(t.scene.domain.origin, -1.5, -2.5, 0);
    t.scene.gravity[1] = 0.0;
    selkie_scene_set_method(&t.scene, method);
    t.scene.time.fps = 1.0 / time;
    t.scene.time.cfl = cfl;
    t.scene.time.min_step = 1e-7;
    selkie_shape disc = sphere_shape(0, 0, 0, 1.0);
    if (dimension == 3) {
        selkie_shape_defaults(&disc, SELKIE_SHAPE_CYLINDER);
        set3(disc.from, 0, 0, -1);
        set3(disc.to, 0, 0, 1);
        disc.radius = 1.0;
    }
    selkie_liquid_def *drop = add_liquid(&t, disc);
    drop->velocity_gradient[0] = -rate;
    drop->velocity_gradient[4] = rate;
    selkie_world *world = make_world(&t);
    particle_sums before = sum_particles(world, NULL);
    run_until(world, time);
    particle_sums after = sum_particles(world, NULL);
    /* A full ellipse has <y^2> = b^2 / 4. */
    selkie_attribute_view position = attribute_of(world, "position");
    double x2 = 0.0, y2 = 0.0;
    for (int64_t p = 0; p < after.count; p++) {
        const float *x = particle_of(&position, p);
        const double dx = x[0] + position.origin[0] - after.position[0],
                     dy = x[1] + position.origin[1] - after.position[1];
        x2 += dx * dx;
        y2 += dy * dy;
    }
    double a = 2.0 * sqrt(x2 / (double)after.count), b = 2.0 * sqrt(y2 / (double)after.count),
           exact = exact_axis(rate, time);
    double error = fabs(b / exact - 1.0), energy_error = fabs(after.kinetic / before.kinetic - 1.0);
    double volume = selkie_world_statistics(world)->volume_ratio;
    selkie_world_destroy(world);
    char what[64];
    snprintf(what, sizeof what, "elliptic drop %dD %s, R = %g h, CFL %g", dimension, method_name(method), 1.0 / h, cfl);
    if (judge) {
        note(what, "semi-axis b, exact", exact);
        at_most(what, "semi-axis b, relative error", error, 2e-3);
        at_most(what, "semi-axis a, relative error", fabs(a * exact - 1.0), 2e-3);
        at_most(what, "area, relative error", fabs(volume - 1.0), 0.02);
        at_most(what, "kinetic energy, relative error", energy_error, 0.01);
    } else {
        note(what, "semi-axis b, relative error", error);
        note(what, "kinetic energy, relative error", energy_error);
    }
    return energy_error;
}

static void stretches(void **state)
{
    (void)state;
    stretch(2, SELKIE_METHOD_FLIP, 0.025, 0.25, 1);
    stretch(2, SELKIE_METHOD_APIC, 0.025, 0.25, 1);
    stretch(3, SELKIE_METHOD_APIC, 0.05, 0.25, 1);
}

static void converges(void **state)
{
    (void)state;
    double coarse = stretch(2, SELKIE_METHOD_APIC, 0.1, 0.5, 0), fine = stretch(2, SELKIE_METHOD_APIC, 0.025, 0.5, 0);
    at_most("elliptic drop, h = 0.1 against 0.025", "energy error fine / coarse (first order: 1/4)", fine / coarse,
            0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stretches), cmocka_unit_test(converges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

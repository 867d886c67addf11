/* Surface tension of SPH against Laplace's pressure and the frequency of an oscillating drop, without gravity. */
#include "physics.h"

#define WATER_TENSION 0.073 /* N/m */
#define PI 3.14159265358979

/* A drop of water in the middle of a box, radius in particle spacings of 1 mm. Returns the radius, m. */
static double drop(test_scene *t, int dimension, double radius)
{
    const double spacing = 1e-3, size = 2.0 * ceil(1.5 * radius) * spacing;
    tank(t, dimension, size, size, dimension == 3 ? size : 0, 2.0 * spacing);
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_SPH);
    t->scene.time.cfl = 0.0;
    set3(t->scene.gravity, 0, 0, 0);
    t->scene.surface_tension = WATER_TENSION;
    const double middle = 0.5 * size + 0.3 * spacing;
    add_liquid(t, sphere_shape(middle, middle, dimension == 3 ? middle : 0, radius * spacing));
    return radius * spacing;
}

typedef struct drop_sums {
    double pressure; /* Pa   mean over particles farther than three spacings below the surface */
    double fastest;  /* m/s */
    double stretch;  /* m2   mean of x^2 - y^2 about the centre */
    double farthest; /* m    from the centre */
    double volume_radius;
    double drift; /* m/s  of the centre of mass */
} drop_sums;

static drop_sums measure(const selkie_world *world, int dimension, double deep)
{
    const selkie_attribute_view position = attribute_of(world, "position"), pressure = attribute_of(world, "pressure"),
                                velocity = attribute_of(world, "velocity");
    const particle_sums sums = sum_particles(world, NULL);
    drop_sums result = {0};
    double inside = 0.0, mean[3] = {0};
    for (int64_t p = 0; p < sums.count; p++) {
        const float *x = particle_of(&position, p), *v = particle_of(&velocity, p);
        double r2 = 0.0, v2 = 0.0, d[3] = {0};
        for (int a = 0; a < dimension; a++) {
            d[a] = x[a] - sums.position[a];
            r2 += d[a] * d[a];
            v2 += (double)v[a] * v[a];
            mean[a] += v[a] / (double)sums.count;
        }
        result.fastest = fmax(result.fastest, sqrt(v2));
        result.farthest = fmax(result.farthest, sqrt(r2));
        result.stretch += (d[0] * d[0] - d[1] * d[1]) / (double)sums.count;
        if (sqrt(r2) < deep) {
            result.pressure += *particle_of(&pressure, p);
            inside += 1.0;
        }
    }
    result.pressure /= inside;
    result.drift = sqrt(mean[0] * mean[0] + mean[1] * mean[1] + mean[2] * mean[2]);
    result.volume_radius =
        dimension == 2 ? 1e-3 * sqrt((double)sums.count / PI) : 1e-3 * cbrt(0.75 * (double)sums.count / PI);
    return result;
}

/* The pressure in a drop is sigma / R, in 3D 2 sigma / R. The mean over the time after it has come to rest; viscosity
 * damps the oscillation that rearranging a lattice starts. 3 % are the curvature of a drop of 3.5 to 7 cells, and 2 %
 * the swings that remain. The tension has no sum over pairs, so momentum is kept only as well as the curvature's
 * integral over the surface vanishes: the centre drifts by a small part of the speed of ripples. */
static void laplace(int dimension, double radius, double time, double viscosity)
{
    test_scene t;
    drop(&t, dimension, radius);
    t.scene.viscosity = viscosity;
    selkie_world *world = make_world(&t);
    run_until(world, 0.5 * time);
    double mean = 0.0, fastest = 0.0;
    int count = 0;
    drop_sums now = {0};
    while (selkie_world_time(world) < time) {
        step_world(world);
        now = measure(world, dimension, (radius - 3.0) * 1e-3);
        mean += now.pressure;
        fastest = fmax(fastest, now.fastest);
        count++;
    }
    char name[64];
    snprintf(name, sizeof name, "drop %dD, radius of %g spacings", dimension, radius);
    const double exact = (dimension - 1) * WATER_TENSION / now.volume_radius;
    note(name, "steps", (double)count);
    const double ripple = sqrt(WATER_TENSION / (1000.0 * radius * 1e-3));
    at_most(name, "largest speed / sqrt(sigma / (rho R))", fastest / ripple, 0.2);
    at_most(name, "speed of the centre / sqrt(sigma / (rho R))", now.drift / ripple, 0.05);
    note(name, "farthest particle / radius", now.farthest / now.volume_radius);
    between(name, "pressure / Laplace's", mean / count / exact, 0.95, 1.05);
    selkie_world_destroy(world);
}

static void laplace_2d(void **state)
{
    (void)state;
    laplace(2, 8.0, 0.3, 1e-4);
    laplace(2, 14.0, 0.4, 1e-4);
    laplace(2, 8.0, 0.6, 0.0); /* the noise of the curvature must not stir it */
}

static void laplace_3d(void **state)
{
    (void)state;
    laplace(3, 7.0, 0.2, 1e-4);
}

/* A drop that starts with the velocity (A x, -A y) oscillates in its second mode: omega^2 = 6 sigma / (rho R^3) in 2D
 * (Rayleigh 1879, Lamb 1932 section 273), 8 in 3D. Zero crossings of the mean of x^2 - y^2 are half a period apart.
 * SPH's own damping takes up to 40 % of the amplitude in a period and makes it longer. */
static void oscillation(int dimension, double radius, double bound)
{
    test_scene t;
    const double mass_radius = drop(&t, dimension, radius);
    const double omega = sqrt((dimension == 2 ? 6.0 : 8.0) * WATER_TENSION / (1000.0 * pow(mass_radius, 3.0)));
    selkie_liquid_def *liquid = &t.liquids[0];
    liquid->velocity_gradient[0] = 0.12 * omega;
    liquid->velocity_gradient[4] = -0.12 * omega;
    memcpy(liquid->center, liquid->shape.center, sizeof liquid->center);
    t.scene.viscosity = 1e-6;
    selkie_world *world = make_world(&t);
    double before = 0.0, time_before = 0.0, crossing[3], most[3] = {0};
    int crossings = 0;
    while (crossings < 3 && selkie_world_time(world) < 3.0 * PI * 1.5 / omega) {
        step_world(world);
        const double now = measure(world, dimension, mass_radius).stretch, time = selkie_world_time(world);
        most[crossings] = fmax(most[crossings], fabs(now));
        if (before * now < 0.0 && time > 0.5 / omega)
            crossing[crossings++] = time_before + (time - time_before) * before / (before - now);
        before = now;
        time_before = time;
    }
    char name[64];
    snprintf(name, sizeof name, "oscillating drop %dD, %g spacings", dimension, radius);
    assert_int_equal(crossings, 3);
    note(name, "first half period x omega / pi", crossing[0] * omega / PI);
    note(name, "amplitude of the third swing / first", most[2] / most[0]);
    between(name, "period / exact", 0.5 * (crossing[2] - crossing[0]) * omega / PI, 1.0 - bound, 1.0 + bound);
    selkie_world_destroy(world);
}

static void oscillation_2d(void **state)
{
    (void)state;
    oscillation(2, 12.0, 0.2);
}

static void oscillation_3d(void **state)
{
    (void)state;
    oscillation(3, 7.0, 0.3);
}

/* A square drop, from rest, with the steps that the program chooses. */
static void a_square_becomes_round(void **state)
{
    (void)state;
    test_scene t;
    drop(&t, 2, 9.0);
    const double middle = t.liquids[0].shape.center[0], half = 8e-3;
    t.liquids[0].shape = box_shape(middle - half, middle - half, 0, middle + half, middle + half, 0);
    t.scene.time.fps = 30.0;
    t.scene.viscosity = 1e-4;
    selkie_world *world = make_world(&t);
    double farthest = 0.0;
    drop_sums now = {0};
    while (selkie_world_time(world) < 0.3) {
        step_world(world);
        now = measure(world, 2, 5e-3);
        farthest = fmax(farthest, now.farthest);
    }
    at_most("square drop", "farthest particle on the way / corner", farthest / (half * sqrt(2.0)), 1.02);
    at_most("square drop", "farthest particle at the end / radius", now.farthest / now.volume_radius, 1.1);
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laplace_2d),     cmocka_unit_test(oscillation_2d),         cmocka_unit_test(laplace_3d),
        cmocka_unit_test(oscillation_3d), cmocka_unit_test(a_square_becomes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

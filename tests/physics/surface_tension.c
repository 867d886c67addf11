/* Surface tension on the grid: the pressure in a drop (Laplace), its parasitic speed, the period of its oscillation
 * (Rayleigh 1879; Lamb), a capillary wave (Prosperetti 1981), and the contact angle of a drop on a floor. */
#include "physics.h"

#define SIGMA 0.073 /* N/m, water */
#define CELL 1e-3   /* m */

typedef struct drop_case {
    int dimension;
    selkie_method method;
    selkie_volume volume;
    double radius; /* cells */
    int unilateral;
} drop_case;

/* A drop without gravity in the middle of a box. */
static void drop_scene(test_scene *t, const drop_case *c)
{
    const double size = (2.0 * ceil(1.4 * c->radius)) * CELL;
    tank(t, c->dimension, size, size, size, CELL);
    set3(t->scene.domain.origin, -0.5 * size, -0.5 * size, -0.5 * size);
    t->scene.gravity[1] = 0.0;
    t->scene.surface_tension = SIGMA;
    t->scene.volume = c->volume;
    t->scene.incompressibility =
        c->unilateral ? SELKIE_INCOMPRESSIBILITY_UNILATERAL : SELKIE_INCOMPRESSIBILITY_BILATERAL;
    selkie_scene_set_method(&t->scene, c->method);
    /* off the grid's symmetry */
    add_liquid(t, sphere_shape(0.13 * CELL, 0.31 * CELL, -0.22 * CELL, c->radius * CELL));
}

static void name_case(char *what, size_t size, const char *title, const drop_case *c)
{
    snprintf(what, size, "%s %dD %s%s%s, R = %g h", title, c->dimension, method_name(c->method), volume_name(c->volume),
             c->unilateral ? " unilateral" : "", c->radius);
}

/* Mean pressure (Pa) of the cells within half the radius. */
static double mean_pressure(const selkie_world *world, const double center[3], double radius)
{
    const selkie_scene *scene = selkie_world_scene(world);
    const selkie_field_view view = field_of(world, "pressure");
    const int cells = view.extent[0] * view.extent[1] * view.extent[2];
    double sum = 0.0;
    int64_t count = 0;
    for (int b = 1; b < view.block_count; b++)
        for (int n = 0; n < cells; n++) {
            int cell[3];
            double square = 0.0;
            cell_of(&view, b, n, cell);
            for (int d = 0; d < scene->domain.dimension; d++)
                square += pow((cell[d] + 0.5) * CELL + scene->domain.origin[d] - center[d], 2);
            if (square > 0.25 * radius * radius)
                continue;
            sum += view.data[(size_t)b * (size_t)cells + (size_t)n] * view.scale;
            count++;
        }
    return sum / (double)count;
}

static void laplace(const drop_case *c, double error, double speed, double fraction)
{
    test_scene t;
    char what[80];
    drop_scene(&t, c);
    name_case(what, sizeof what, "drop at rest", c);
    const double radius = c->radius * CELL, period = 2.0 * M_PI * sqrt(1000.0 * pow(radius, 3) / (6.0 * SIGMA));
    selkie_world *world = make_world(&t);
    double sum = 0.0, fastest = 0.0, square = 0.0;
    int steps = 0;
    while (selkie_world_time(world) < fraction * period) {
        step_world(world);
        const particle_sums s = sum_particles(world, NULL);
        sum += mean_pressure(world, s.position, radius);
        fastest = fmax(fastest, s.max_speed);
        square = s.kinetic;
        steps++;
    }
    selkie_world_destroy(world);
    note(what, "steps", steps);
    note(what, "mean speed at the end / sqrt(sigma/(rho h))", sqrt(2.0 * square) / sqrt(SIGMA / (1000.0 * CELL)));
    at_most(what, "pressure / Laplace, error", fabs(sum / steps / ((c->dimension - 1) * SIGMA / radius) - 1.0), error);
    at_most(what, "largest speed / sqrt(sigma/(rho h))", fastest / sqrt(SIGMA / (1000.0 * CELL)), speed);
}

/* Second moments <x x> - <y y> of the particles. */
static double stretch_of(const selkie_world *world)
{
    const selkie_attribute_view position = attribute_of(world, "position");
    const particle_sums s = sum_particles(world, NULL);
    double sum = 0.0;
    for (int64_t p = 0; p < s.count; p++) {
        const float *x = particle_of(&position, p);
        const double dx = x[0] + position.origin[0] - s.position[0], dy = x[1] + position.origin[1] - s.position[1];
        sum += dx * dx - dy * dy;
    }
    return sum / (double)s.count;
}

/* The drop starts with the velocity of its second mode: x stretches, y shrinks (3D: y and z). */
static void oscillation(const drop_case *c, double error)
{
    test_scene t;
    char what[80];
    drop_scene(&t, c);
    name_case(what, sizeof what, "oscillating drop", c);
    const double radius = c->radius * CELL;
    const double omega = sqrt((c->dimension == 2 ? 6.0 : 8.0) * SIGMA / (1000.0 * pow(radius, 3)));
    const double rate = 0.05 * omega, period = 2.0 * M_PI / omega;
    t.liquids[0].velocity_gradient[0] = rate;
    t.liquids[0].velocity_gradient[4] = c->dimension == 2 ? -rate : -0.5 * rate;
    t.liquids[0].velocity_gradient[8] = c->dimension == 2 ? 0.0 : -0.5 * rate;
    selkie_world *world = make_world(&t);
    const double start = stretch_of(world);
    double before = 0.0, time_before = 0.0, crossings[2] = {0.0, 0.0}, extremes[2] = {0.0, 0.0};
    int count = 0;
    while (count < 2 && selkie_world_time(world) < 1.6 * period) {
        step_world(world);
        const double now = stretch_of(world) - start, time = selkie_world_time(world);
        extremes[count] = fmax(extremes[count], fabs(now));
        if (time > 0.25 * period && (now > 0) != (before > 0)) {
            crossings[count] = time_before + (time - time_before) * before / (before - now);
            count++;
        }
        before = now;
        time_before = time;
    }
    selkie_world_destroy(world);
    assert_int_equal(count, 2);
    note(what, "second extreme / first", extremes[1] / extremes[0]);
    at_most(what, "period, relative error", fabs(crossings[1] / period - 1.0), error);
}

static void drops_at_rest(void **state)
{
    (void)state;
    const drop_case cases[] = {{2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 8.0, 0},
                               {2, SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, 8.0, 0},
                               {2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 8.0, 0},
                               {2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 16.0, 0}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        laplace(&cases[n], 0.03, 0.2, 1.0);
    const drop_case solid = {3, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 8.0, 0};
    laplace(&solid, 0.03, 0.2, 0.1);
}

static void unilateral_drops(void **state)
{
    (void)state;
    const drop_case cases[] = {{2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 8.0, 1},
                               {2, SELKIE_METHOD_APIC, SELKIE_VOLUME_NONE, 8.0, 1},
                               {2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 16.0, 1}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        laplace(&cases[n], 0.03, 0.2, 1.0);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        oscillation(&cases[n], 0.05);
    const drop_case solid = {3, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 8.0, 1};
    laplace(&solid, 0.03, 0.2, 0.1);
    oscillation(&solid, 0.05);
}

static void oscillating_drops(void **state)
{
    (void)state;
    const drop_case cases[] = {{2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 8.0, 0},
                               {2, SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, 8.0, 0},
                               {2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 8.0, 0},
                               {2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 16.0, 0},
                               {3, SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 8.0, 0}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        oscillation(&cases[n], 0.05);
}

/* A standing wave of 32 cells, deep and without gravity, with the viscosity 0.02 omega / k^2. Half a wave between two
 * walls, so that the centre of mass swings along x in proportion to the amplitude. */
static void capillary_wave(void **state)
{
    /* Prosperetti 1981 for one liquid: amplitude at omega t = 1, 2, ... 24 times pi/4, over that at the start */
    static const double exact[24] = {0.712719,  0.0354357,  -0.626481, -0.898887,  -0.648762, -0.0461988,
                                     0.548538,  0.799371,   0.583303,  0.0483338,  -0.485183, -0.715318,
                                     -0.528439, -0.0531821, 0.425663,  0.63691,    0.475721,  0.0538014,
                                     -0.375709, -0.569282,  -0.430298, -0.0556681, 0.329647,  0.506994};
    (void)state;
    const double length = 16.0 * CELL, depth = 2.0 * length, k = M_PI / length;
    const double omega = sqrt(SIGMA * k * k * k / 1000.0);
    for (int m = 0; m < 3; m++) {
        test_scene t;
        tank(&t, 2, length, 1.5 * depth, 0, CELL);
        t.scene.gravity[1] = 0.0;
        t.scene.surface_tension = SIGMA;
        t.scene.viscosity = 0.02 * omega / (k * k);
        t.scene.volume = m == 2 ? SELKIE_VOLUME_NONE : SELKIE_VOLUME_IDP;
        t.scene.incompressibility = m == 2 ? SELKIE_INCOMPRESSIBILITY_UNILATERAL : SELKIE_INCOMPRESSIBILITY_BILATERAL;
        selkie_scene_set_method(&t.scene, m == 1 ? SELKIE_METHOD_APIC : SELKIE_METHOD_FLIP);
        t.scene.time.fps = 4.0 * omega / M_PI;
        selkie_shape wave;
        selkie_shape_defaults(&wave, SELKIE_SHAPE_WAVE);
        wave.level = depth;
        wave.amplitude = 0.8 * CELL;
        wave.wave_number[0] = k;
        add_liquid(&t, wave);
        selkie_world *world = make_world(&t);
        const double start = sum_particles(world, NULL).position[0] - 0.5 * length;
        double square = 0.0;
        for (int n = 0; n < 24; n++) {
            run_until(world, (n + 1) * M_PI / (4.0 * omega));
            square += pow((sum_particles(world, NULL).position[0] - 0.5 * length) / start - exact[n], 2);
        }
        selkie_world_destroy(world);
        char what[64];
        static const char *const names[] = {"FLIP idp", "APIC idp", "FLIP unilateral"};
        snprintf(what, sizeof what, "capillary wave 2D %s, 32 cells", names[m]);
        at_most(what, "amplitude, rms error / start", sqrt(square / 24.0), 0.1);
    }
}

/* A half disc on a floor becomes a cap of a disc that meets the floor at the contact angle. */
static void drop_on_a_floor(void **state)
{
    (void)state;
    static const double angles[] = {60.0, 120.0};
    const double radius = 12.0 * CELL, area = 0.5 * M_PI * radius * radius;
    for (int n = 0; n < 4; n++) {
        const int unilateral = n >= 2;
        const double angle = angles[n % 2] * M_PI / 180.0;
        test_scene t;
        tank(&t, 2, 64 * CELL, 24 * CELL, 0, CELL);
        t.scene.gravity[1] = 0.0;
        t.scene.surface_tension = SIGMA;
        t.scene.contact_angle = angles[n % 2];
        t.scene.viscosity = 2e-4;
        t.scene.volume = unilateral ? SELKIE_VOLUME_NONE : SELKIE_VOLUME_IDP;
        t.scene.incompressibility =
            unilateral ? SELKIE_INCOMPRESSIBILITY_UNILATERAL : SELKIE_INCOMPRESSIBILITY_BILATERAL;
        add_liquid(&t, sphere_shape(32.2 * CELL, 0, 0, radius));
        selkie_world *world = make_world(&t);
        run_until(world, 0.6);

        /* The height of the centre of mass of the cap. */
        const double cap = sqrt(area / (angle - sin(angle) * cos(angle)));
        const double mean = 2.0 / 3.0 * cap * pow(sin(angle), 3) / (angle - sin(angle) * cos(angle)) - cap * cos(angle);
        const particle_sums s = sum_particles(world, NULL);
        char what[64];
        snprintf(what, sizeof what, "drop on a floor, contact angle %g%s", angles[n % 2],
                 unilateral ? ", unilateral" : "");
        note(what, "largest speed / sqrt(sigma/(rho h))", s.max_speed / sqrt(SIGMA / (1000.0 * CELL)));
        at_most(what, "height of the centre, relative error", fabs(s.position[1] / mean - 1.0), 0.05);
        selkie_world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drops_at_rest), cmocka_unit_test(unilateral_drops),
                                       cmocka_unit_test(oscillating_drops), cmocka_unit_test(capillary_wave),
                                       cmocka_unit_test(drop_on_a_floor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

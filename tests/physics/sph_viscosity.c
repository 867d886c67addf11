/* The viscosity of SPH against exact solutions: a shear flow between two walls that dies, one that a sliding wall
 * drives, one that a force drives, and a standing wave. */
#include "physics.h"

/* A channel along x, open at both ends, of height 1. Its middle half is too far from the ends to feel them. Speeds are
 * so small that particles move less than a spacing. */
static void channel(test_scene *t, int dimension, int rows, double room_above)
{
    const double s = 1.0 / rows;
    tank(t, dimension, 2, 1 + room_above, 8 * s, 2 * s);
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_SPH);
    set3(t->scene.gravity, 0, 0, 0);
    t->scene.viscosity = 1.0;
    t->scene.time.cfl = 0.0;
    t->scene.domain.walls[0] = t->scene.domain.walls[1] = SELKIE_WALL_OPEN;
    t->scene.domain.walls[2] = t->scene.domain.walls[3] = SELKIE_WALL_NO_SLIP;
    add_liquid(t, box_shape(0, 0, 0, 2, 1, 1));
}

typedef double flow(double y, double time);

/* Largest difference from the exact velocity over the particles of the middle; the sum over sin(pi y) to *mode. */
static double difference(const selkie_world *world, flow *exact, double *mode)
{
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    const int rows = 64;
    double sum[64] = {0}, error[64] = {0}, count[64] = {0}, worst = 0.0, top = 0.0, bottom = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const double x = particle_of(&position, p)[0] + position.origin[0];
        const double y = particle_of(&position, p)[1] + position.origin[1], u = particle_of(&velocity, p)[0];
        const int row = (int)fmin(fmax(y * rows, 0), rows - 1);
        if (fabs(x - 1.0) > 0.5)
            continue;
        sum[row] += u;
        error[row] += u - exact(y, selkie_world_time(world));
        count[row]++;
        top += u * sin(M_PI * y);
        bottom += sin(M_PI * y) * sin(M_PI * y);
    }
    for (int row = 0; row < rows; row++)
        worst = count[row] > 0 ? fmax(worst, fabs(error[row] / count[row])) : worst;
    *mode = top / bottom;
    return worst;
}

enum { ROWS = 16 };
static const double speed = 0.05;

/* The step of the explicit update, and of the implicit one: nu dt is 0.04 and `strong` spacings^2. */
static double step_of(double strong)
{
    return (strong > 0.0 ? strong : 0.04) / (ROWS * ROWS);
}

static double dying(double y, double time)
{
    return speed * sin(M_PI * y) * exp(-M_PI * M_PI * time);
}

static void shear(int dimension, double strong, selkie_sph_kernel kernel, int per_cell, double rate_bound)
{
    test_scene t;
    channel(&t, dimension, per_cell ? 15 : ROWS, 0.0); /* whole cells: three or two rows each */
    t.scene.time.step = step_of(strong);
    t.scene.sph.kernel = kernel;
    if (per_cell) {
        t.scene.domain.cell_size *= 1.5;
        t.scene.particles.per_cell = per_cell;
    }
    selkie_world *world = make_world_threads(&t.scene, 1);
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        particle_of(&velocity, p)[0] = (float)dying(particle_of(&position, p)[1], 0.0);
    run_until(world, 0.1);
    double mode, worst = difference(world, dying, &mode);
    char what[80];
    snprintf(what, sizeof what, "shear between walls %dD %s%s, %s", dimension,
             kernel == SELKIE_SPH_WENDLAND ? "Wendland" : "cubic", per_cell ? " wide" : "",
             strong > 0.0 ? "implicit" : "explicit");
    at_most(what, "rate of decay, relative error",
            fabs(log(mode / speed) / (-M_PI * M_PI * selkie_world_time(world)) - 1.0), rate_bound);
    note(what, "profile, largest error / U", worst / speed);
    selkie_world_destroy(world);
}

static void shears(void **state)
{
    (void)state;
    /* Explicit: differences over 16 rows leave pi^2 / 12 / 16^2 = 0.3 %, the walls' drag after them about 1 %.
     * Implicit: a step of first order leaves pi^2 nu dt / 2, 0.5 and 2 %; the rest up to the measured 6 and 9 % is a
     * bound on what is there, not a derived one. */
    shear(2, 0.0, SELKIE_SPH_CUBIC, 0, 0.02);
    shear(2, 0.0, SELKIE_SPH_WENDLAND, 0, 0.03);
    shear(2, 0.25, SELKIE_SPH_CUBIC, 0, 0.1);
    shear(2, 1.0, SELKIE_SPH_CUBIC, 0, 0.12);
    shear(3, 0.25, SELKIE_SPH_CUBIC, 0, 0.12);
    shear(2, 0.0, SELKIE_SPH_CUBIC, 9, 0.25); /* this kernel reaches two rows, the walls' drag is right for one */
}

/* Couette's line and a sine series. */
static double dragged(double y, double time)
{
    double u = y;
    for (int n = 1; n < 60; n++)
        u += 2.0 / M_PI * (n % 2 ? -1.0 : 1.0) / n * sin(n * M_PI * y) * exp(-n * n * M_PI * M_PI * time);
    return speed * u;
}

static void couette(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        test_scene t;
        channel(&t, 2, ROWS, 0.25);
        t.scene.time.step = step_of(n ? 1.0 : 0.25);
        selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-10, 1, -10, 10, 3, 10));
        lid->velocity[0] = speed;
        lid->surface = SELKIE_WALL_NO_SLIP;
        selkie_world *world = make_world_threads(&t.scene, 1);
        for (int stage = 0; stage < 2; stage++) {
            double mode;
            run_until(world, stage ? 0.5 : 0.05);
            at_most(n ? "Couette 2D, step 1 s2/nu" : "Couette 2D, step 0.25 s2/nu",
                    stage ? "profile at nu t = 0.5, largest error / U" : "profile at nu t = 0.05, largest error / U",
                    difference(world, dragged, &mode) / speed, 0.04);
        }
        selkie_world_destroy(world);
    }
}

/* Both walls with a slip length: Couette's line in the end. */
static double slip_length;
static double slipping(double y, double time)
{
    (void)time;
    return speed * (y + slip_length) / (1.0 + 2.0 * slip_length);
}

static void slips(void **state)
{
    (void)state;
    static const double lengths[2] = {0.1, 0.5};
    for (int n = 0; n < 2; n++) {
        test_scene t;
        double mode;
        slip_length = lengths[n];
        channel(&t, 2, ROWS, 0.25);
        t.scene.time.step = step_of(1.0);
        selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-10, 1, -10, 10, 3, 10));
        lid->velocity[0] = speed;
        lid->surface = SELKIE_WALL_NO_SLIP;
        lid->slip_length = t.scene.domain.slip_length[2] = slip_length;
        selkie_world *world = make_world_threads(&t.scene, 1);
        run_until(world, 0.8 * (1.0 + 2.0 * slip_length));
        at_most(n ? "Couette 2D, slip length 0.5" : "Couette 2D, slip length 0.1", "profile, largest error / U",
                difference(world, slipping, &mode) / speed, 0.04);
        selkie_world_destroy(world);
    }
}

/* A thick block slides down a plane with friction mu: its centre has the acceleration g (sin a - mu cos a). The plane
 * is the floor or the top of an obstacle. 10 %: particles at the ends of the block press less than they should. */
static void block_slides(void **state)
{
    (void)state;
    const double angle = 30.0 * M_PI / 180.0, friction = 0.2, time = 0.3;
    const double exact = GRAVITY * (sin(angle) - friction * cos(angle));
    for (int on_obstacle = 0; on_obstacle < 2; on_obstacle++) {
        const double floor = on_obstacle ? 0.125 : 0.0;
        test_scene t;
        tank(&t, 2, 2, 0.5, 1, 1.0 / 16);
        selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
        set3(t.scene.gravity, GRAVITY * sin(angle), -GRAVITY * cos(angle), 0.0);
        t.scene.viscosity = 2.0;
        t.scene.time.cfl = 0.0;
        if (on_obstacle)
            add_obstacle(&t, box_shape(-1, -1, -1, 3, floor, 3))->liquid_friction = friction;
        else
            t.scene.domain.liquid_friction[2] = friction;
        add_liquid(&t, box_shape(0.25, floor, 0, 0.75, floor + 0.25, 1));
        selkie_world *world = make_world_threads(&t.scene, 1);
        const double start = sum_particles(world, NULL).position[0];
        run_until(world, time);
        const double way = sum_particles(world, NULL).position[0] - start, at = selkie_world_time(world);
        between(on_obstacle ? "block on an obstacle 2D" : "block on the floor 2D", "way / exact",
                way / (0.5 * exact * at * at), 0.9, 1.1);
        selkie_world_destroy(world);
    }
}

/* u = g y (1 - y) / (2 nu) in the end; g is such that the middle has the speed 1 U. */
static double driven(double y, double time)
{
    (void)time;
    return speed * 4.0 * y * (1.0 - y);
}

static void poiseuille(void **state)
{
    (void)state;
    static const double strong[3] = {0.25, 1.0, 4.0};
    for (int n = 0; n < 3; n++) {
        test_scene t;
        channel(&t, 2, ROWS, 0.0);
        t.scene.time.step = step_of(strong[n]);
        t.scene.gravity[0] = 8.0 * speed;
        selkie_world *world = make_world_threads(&t.scene, 1);
        run_until(world, 0.6); /* 1 - 0.997 is left to go */
        double mode;
        char what[64];
        snprintf(what, sizeof what, "Poiseuille 2D, step %g s2/nu", strong[n]);
        at_most(what, "profile, largest error / U", difference(world, driven, &mode) / speed, 0.1);
        selkie_world_destroy(world);
    }
}

/* The rate of decay of a standing wave in a tank of length 1 with smooth walls, 1/s: a line through the logarithms of
 * the largest speeds of its first mode in six half periods. */
static double wave_rate(double viscosity, int particles)
{
    test_scene t;
    const double depth = 0.5, k = M_PI, omega = sqrt(GRAVITY * k * tanh(k * depth));
    tank(&t, 2, 1, 0.75, 1, 2.0 / particles);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
    t.scene.time.cfl = 0.0;
    t.scene.viscosity = viscosity;
    add_liquid(&t, box_shape(0, 0, 0, 1, depth, 1));
    selkie_world *world = make_world_threads(&t.scene, 1);

    /* Start with the potential flow at its greatest speed, surface level. */
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        particle_of(&velocity, p)[0] = (float)(0.2 * sin(k * x[0]) * cosh(k * x[1]) / sinh(k * depth));
        particle_of(&velocity, p)[1] = (float)(-0.2 * cos(k * x[0]) * sinh(k * x[1]) / sinh(k * depth));
    }

    /* The mode is the projection on that flow; its largest value in each half period. */
    double peak[8] = {0}, sums[2] = {0};
    const int halves = 6;
    while (selkie_world_time(world) < (halves + 0.5) * M_PI / omega) {
        step_world(world);
        position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
        double mode = 0.0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *x = particle_of(&position, p), *v = particle_of(&velocity, p);
            mode += v[0] * sin(k * x[0]) * cosh(k * x[1]) - v[1] * cos(k * x[0]) * sinh(k * x[1]);
        }
        const int half = (int)(selkie_world_time(world) * omega / M_PI + 0.5);
        peak[half] = fmax(peak[half], fabs(mode));
    }
    selkie_world_destroy(world);
    for (int n = 1; n <= halves; n++) {
        sums[0] += (n - 3.5) * log(peak[n]);
        sums[1] += (n - 3.5) * (n - 3.5);
    }
    return -sums[0] / sums[1] * omega / M_PI;
}

/* Lamb 1932, section 349: 2 nu k^2 (1 - sqrt(nu k^2 / (2 w))) up to higher powers of nu k^2 / w, which is 0.03 and 0.07
 * here. It holds for any depth over a smooth floor. Without viscosity particles slip past each other and damp the wave
 * by themselves; viscosity removes that, so the rate is compared as it is. 10 % as for the grid; with 32 particles 18 %
 * of the lower rate are left of the method's own damping, with 64 none. */
static void wave(void **state)
{
    (void)state;
    const int particles = 48;
    const double k = M_PI, omega = sqrt(GRAVITY * k * tanh(0.5 * k));
    for (int n = 0; n < 2; n++) {
        const double viscosity = n ? 0.04 : 0.015, small = viscosity * k * k / omega;
        between(n ? "standing wave 2D, 0.04 m2/s" : "standing wave 2D, 0.015 m2/s", "rate of decay / exact",
                wave_rate(viscosity, particles) / (2.0 * viscosity * k * k * (1.0 - sqrt(0.5 * small))), 0.9, 1.1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wave),  cmocka_unit_test(poiseuille),   cmocka_unit_test(couette),
        cmocka_unit_test(slips), cmocka_unit_test(block_slides), cmocka_unit_test(shears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

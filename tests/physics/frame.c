/* A moving frame: liquid in free flight follows the straight path that it has in the frame at rest, and a swaying tank
 * sloshes as linear theory says. */
#include "physics.h"

static const double degree = 0.017453292519943295;

/* Position of the frame's center and angle at a time: a sway and a roll that begin at full amplitude. */
typedef struct pose {
    double x, y, vx, vy, angle, rate;
} pose;

static const double period = 0.9, sway = 0.1, heave = 0.05, roll = 25.0;

static pose pose_at(double time)
{
    const double w = 2.0 * M_PI / period, s = sin(w * time), c = w * cos(w * time);
    return (pose){sway * s, heave * s, sway * c, heave * c, roll * degree * s, roll * degree * c};
}

/* A blob without pressure, in the frame; its centre and its velocity. */
static double fly(int dimension, selkie_method method, double step)
{
    const double center[2] = {1.0, 1.0};
    test_scene t;
    tank(&t, dimension, 2, 2, dimension == 3 ? 0.25 : 2, 1.0 / 16);
    selkie_scene_set_method(&t.scene, method);
    t.scene.pressure.start = 1e5;
    t.scene.time.step = step;
    set3(t.scene.gravity, 0.3, -1.0, 0.0);
    selkie_oscillation motion;
    selkie_oscillation_defaults(&motion);
    set3(motion.translate, sway, heave, 0.0);
    motion.rotate[2] = roll;
    motion.period = period;
    t.scene.frame.oscillation_count = 1;
    t.scene.frame.oscillations = &motion;
    set3(t.scene.frame.center, center[0], center[1], 0.0);
    const double start[2] = {0.8, 1.2}, v0[2] = {0.4, 0.2};
    selkie_liquid_def *blob =
        add_liquid(&t, dimension == 2 ? box_shape(0.7, 1.1, 0, 0.9, 1.3, 0) : box_shape(0.7, 1.1, 0, 0.9, 1.3, 0.25));
    set3(blob->velocity, v0[0], v0[1], 0.0);
    /* Free flight in the frame at rest is rigid there; in the moving frame it turns against the frame. */
    const pose first = pose_at(0.0);
    blob->angular_velocity[2] = -first.rate;
    set3(blob->center, start[0], start[1], dimension == 3 ? 0.125 : 0.0);
    selkie_world *world = make_world(&t);
    const double end = 0.6;
    run_until(world, end);

    /* The path in the frame at rest, seen in the moving one. */
    const double arm[2] = {start[0] - center[0], start[1] - center[1]};
    const double x0[2] = {center[0] + first.x + arm[0], center[1] + first.y + arm[1]}; /* the angle is 0 at the start */
    const double u0[2] = {v0[0] + first.vx - first.rate * arm[1], v0[1] + first.vy + first.rate * arm[0]};
    const pose last = pose_at(end);
    const double x[2] = {x0[0] + u0[0] * end + 0.15 * end * end - center[0] - last.x,
                         x0[1] + u0[1] * end - 0.5 * end * end - center[1] - last.y};
    const double expected[2] = {center[0] + cos(last.angle) * x[0] + sin(last.angle) * x[1],
                                center[1] - sin(last.angle) * x[0] + cos(last.angle) * x[1]};
    const particle_sums sums = sum_particles(world, NULL);
    double error = 0.0;
    for (int d = 0; d < 2; d++)
        error += (sums.position[d] - expected[d]) * (sums.position[d] - expected[d]);
    selkie_world_destroy(world);
    return sqrt(error) / hypot(expected[0] - start[0], expected[1] - start[1]);
}

/* The blob is a few cells wide, and constant extrapolation beside it bends the linear field of velocity: 0.5 % of the
 * way. */
static void flies(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int dimension;
        selkie_method method;
    } cases[] = {
        {"2D FLIP", 2, SELKIE_METHOD_FLIP}, {"2D APIC", 2, SELKIE_METHOD_APIC}, {"3D FLIP", 3, SELKIE_METHOD_FLIP}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char what[64];
        snprintf(what, sizeof what, "free flight in a rolling frame, %s", cases[c].name);
        at_most(what, "error of the centre / way", fly(cases[c].dimension, cases[c].method, 0.004), 0.01);
    }
}

/* Linear theory of a tank that sways by x(t): modes cos(n pi x / L), odd n, integrated in small steps (leapfrog). */
static double linear_sloshing(double length, double depth, const selkie_oscillation *motion, double time, double x)
{
    const int steps = 20000;
    const double dt = time / steps, w = 2.0 * M_PI / motion->period;
    double height = 0.0;
    for (int n = 1; n <= 9; n += 2) {
        const double k = n * M_PI / length, slope = k * tanh(k * depth), weight = 4.0 * length / (n * n * M_PI * M_PI);
        double b = 0.0, rate = 0.0;
        for (int s = 0; s < steps; s++) {
            const double acceleration = -motion->translate[0] * w * w * sin(w * ((s + 0.5) * dt));
            b += 0.5 * dt * rate;
            rate += dt * (acceleration * weight * slope - GRAVITY * slope * b);
            b += 0.5 * dt * rate;
        }
        height += b * cos(k * x);
    }
    return height;
}

static void sloshes(selkie_method method, const char *name)
{
    const double length = 1.0, depth = 0.5, h = 1.0 / 40;
    test_scene t;
    tank(&t, 2, length, 0.8, 1, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = SELKIE_VOLUME_AUTO;
    t.scene.time.cfl = 0.0;
    add_liquid(&t, box_shape(0, 0, 0, length, depth, 1));
    add_probe(&t, "left", SELKIE_PROBE_HEIGHT, 1.5 * h, 0, 0);
    add_probe(&t, "right", SELKIE_PROBE_HEIGHT, length - 1.5 * h, 0, 0);
    selkie_oscillation motion;
    selkie_oscillation_defaults(&motion);
    motion.translate[0] = 0.01;
    motion.period = 1.6;
    t.scene.frame.oscillation_count = 1;
    t.scene.frame.oscillations = &motion;
    selkie_world *world = make_world(&t);
    double worst = 0.0, highest = 0.0;
    while (selkie_world_time(world) < 4.0) {
        step_world(world);
        const double theory = linear_sloshing(length, depth, &motion, selkie_world_time(world), 1.5 * h);
        /* Half the difference of both sides: second-order waves are the same on both and fall out. */
        const double height = 0.5 * (selkie_world_probe_value(world, 0) - selkie_world_probe_value(world, 1));
        worst = fmax(worst, fabs(height - theory));
        highest = fmax(highest, fabs(theory));
    }
    char what[64];
    snprintf(what, sizeof what, "swaying tank, %s", name);
    note(what, "largest height by linear theory, m", highest);
    at_most(what, "largest difference from it / largest height", worst / highest, 0.06);
    selkie_world_destroy(world);
}

static void swaying_tank(void **state)
{
    (void)state;
    sloshes(SELKIE_METHOD_FLIP, "FLIP");
    sloshes(SELKIE_METHOD_APIC, "APIC");
}

/* A tank that rolls, in its own frame and as a moving obstacle in the frame at rest. Heights of the water over the
 * tank's floor near its left wall, and of the first mode at the wall by the centre of mass: A cos(pi x / L) moves the
 * centre by 2 A L / (pi^2 depth). */
enum { SAMPLES = 16 };

typedef struct rolling {
    double height[SAMPLES], mode[SAMPLES]; /* m */
} rolling;

/* What rolls: the angle in degrees, and cells along the tank. */
typedef struct rolling_case {
    const char *name;
    selkie_method method;
    selkie_incompressibility kind;
    double angle;
    int cells;
} rolling_case;

static void roll_tank(int as_obstacle, const rolling_case *c, rolling *found)
{
    const double length = 1.0, depth = 0.4, h = 1.0 / c->cells, wall = 0.1, margin = 0.25, near = 0.075;
    const double low = as_obstacle ? wall + margin : 0.0; /* of the tank's inside, x and y */
    test_scene t;
    tank(&t, 2, length + 2 * low, 0.8 + 2 * low, 1, h);
    selkie_scene_set_method(&t.scene, c->method);
    t.scene.volume = SELKIE_VOLUME_AUTO;
    t.scene.incompressibility = c->kind;
    if (c->method == SELKIE_METHOD_SPH)
        t.scene.time.cfl = 0.0; /* that of the method */
    t.scene.time.step = 0.2 * h;
    t.scene.time.fps = 10.0;
    add_liquid(&t, box_shape(low, low, 0, low + length, low + depth, 1));
    selkie_oscillation motion;
    selkie_oscillation_defaults(&motion);
    motion.rotate[2] = c->angle;
    motion.period = 1.5;
    motion.ramp = 1.5;
    const double center[2] = {low + 0.5 * length, low + 0.2};
    selkie_shape parts[3] = {box_shape(low - wall, low - wall, 0, low + length + wall, low, 1),
                             box_shape(low - wall, low - wall, 0, low, low + 0.8, 1),
                             box_shape(low + length, low - wall, 0, low + length + wall, low + 0.8, 1)};
    if (as_obstacle) {
        selkie_shape whole;
        selkie_shape_defaults(&whole, SELKIE_SHAPE_UNION);
        whole.child_count = 3;
        whole.children = parts;
        selkie_obstacle_def *walls = add_obstacle(&t, whole);
        set3(walls->center, center[0], center[1], 0);
        walls->oscillation_count = 1;
        walls->oscillations = &motion;
    } else {
        set3(t.scene.frame.center, center[0], center[1], 0);
        t.scene.frame.oscillation_count = 1;
        t.scene.frame.oscillations = &motion;
    }
    add_probe(&t, "left", SELKIE_PROBE_HEIGHT, low + near, low + 0.2, 0);
    selkie_world *world = make_world(&t);
    for (int s = 0; s < SAMPLES; s++) {
        run_until(world, 0.2 * (s + 1));
        const particle_sums sums = sum_particles(world, NULL);
        double mean[2] = {sums.position[0] - center[0], sums.position[1] - center[1]}, angle = 0.0;
        found->height[s] = selkie_world_probe_value(world, 0) + 0.2;
        if (as_obstacle) {
            /* The point of the surface, turned back into the tank's frame. Its place along the floor changes by less
             * than a cell. */
            const double time = selkie_world_time(world), ramp = fmin(time / motion.ramp, 1.0);
            const double faded = ramp * ramp * ramp * (10.0 - 15.0 * ramp + 6.0 * ramp * ramp);
            angle = motion.rotate[2] * degree * faded * sin(2.0 * M_PI * time / motion.period);
            const double x = low + near - center[0], y = low + 0.2 + selkie_world_probe_value(world, 0) - center[1];
            found->height[s] = center[1] - sin(angle) * x + cos(angle) * y - low;
        }
        found->mode[s] = -(cos(angle) * mean[0] + sin(angle) * mean[1]) * M_PI * M_PI * depth / (2.0 * length);
    }
    selkie_world_destroy(world);
}

static void compare_heights(const char *what, const char *measure, const double *frame, const double *obstacle)
{
    double squares = 0.0, low = 1e9, high = -1e9;
    for (int s = 0; s < SAMPLES; s++) {
        squares += (frame[s] - obstacle[s]) * (frame[s] - obstacle[s]) / SAMPLES;
        low = fmin(low, frame[s]);
        high = fmax(high, frame[s]);
    }
    note(what, "wave height, m", high - low);
    at_most(what, measure, sqrt(squares) / (high - low), 0.02);
}

/* With unilateral pressure a cell is full or not, and the wave's rate hangs on where in a cell the level at rest lies:
 * at 40 cells and 2 degrees, a wave of 3 cells, the first mode grows by 13 % more half a cell lower. So its wave is 12
 * cells high, and the same bound holds. For SPH the obstacle's walls lie between two places of the domain's lattice,
 * 0.4 spacings off. */
static void rolling_tank(void **state)
{
    (void)state;
    static const rolling_case cases[] = {
        {"rolling tank, FLIP", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_BILATERAL, 2.0, 40},
        {"rolling tank, APIC", SELKIE_METHOD_APIC, SELKIE_INCOMPRESSIBILITY_BILATERAL, 2.0, 40},
        {"rolling tank, PIC", SELKIE_METHOD_PIC, SELKIE_INCOMPRESSIBILITY_BILATERAL, 2.0, 40},
        {"rolling tank, SPH", SELKIE_METHOD_SPH, SELKIE_INCOMPRESSIBILITY_BILATERAL, 4.0, 42},
        {"rolling tank, unilateral", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_UNILATERAL, 4.0, 80},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        rolling frame, obstacle;
        for (int n = 0; n < 2; n++)
            roll_tank(n, &cases[c], n ? &obstacle : &frame);
        compare_heights(cases[c].name, "at the wall, frame - obstacle, rms / wave height", frame.height,
                        obstacle.height);
        compare_heights(cases[c].name, "first mode, frame - obstacle, rms / wave height", frame.mode, obstacle.mode);
    }
}

/* A ball in a tank that rolls from the first moment on: starts are corrected before any force acts. */
static void ball_in_a_rolling_tank(void **state)
{
    (void)state;
    for (int n = 0; n < 3; n++) {
        test_scene t;
        tank(&t, 2, 1, 0.6, 1, 0.02);
        selkie_scene_set_method(&t.scene, n == 2 ? SELKIE_METHOD_SPH : SELKIE_METHOD_FLIP);
        t.scene.incompressibility = n == 1 ? SELKIE_INCOMPRESSIBILITY_UNILATERAL : SELKIE_INCOMPRESSIBILITY_BILATERAL;
        t.scene.volume = SELKIE_VOLUME_AUTO;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.24, 1));
        add_obstacle(&t, sphere_shape(0.5, 0.1, 0.5, 0.06));
        selkie_oscillation motion;
        selkie_oscillation_defaults(&motion);
        motion.rotate[2] = 3.0;
        motion.period = 1.55;
        set3(t.scene.frame.center, 0.5, 0, 0);
        t.scene.frame.oscillation_count = 1;
        t.scene.frame.oscillations = &motion;
        selkie_world *world = make_world(&t);
        run_until(world, 0.1);
        at_most("ball in a rolling tank", "largest speed after 0.1 s, m/s", selkie_world_statistics(world)->max_speed,
                1.0);
        selkie_world_destroy(world);
    }
}

/* The same rolling and swaying tank with every method: height of the water, force and torque on the walls. They are
 * means of 0.08 s, a twentieth of the period, since the pressure of SPH swings from step to step. */
static void methods_agree(void **state)
{
    (void)state;
    enum { MEANS = 9 };
    static const struct {
        const char *name;
        selkie_method method;
        selkie_incompressibility kind;
    } cases[] = {{"FLIP", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_BILATERAL},
                 {"APIC", SELKIE_METHOD_APIC, SELKIE_INCOMPRESSIBILITY_BILATERAL},
                 {"unilateral", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_UNILATERAL},
                 {"SPH", SELKIE_METHOD_SPH, SELKIE_INCOMPRESSIBILITY_BILATERAL}};
    double first[3] = {0, 0, 0};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        test_scene t;
        tank(&t, 2, 1, 0.6, 1, 0.02);
        selkie_scene_set_method(&t.scene, cases[c].method);
        t.scene.incompressibility = cases[c].kind;
        t.scene.volume = SELKIE_VOLUME_AUTO;
        t.scene.time.cfl = 0.0;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.24, 1));
        add_probe(&t, "left", SELKIE_PROBE_HEIGHT, 0.01, 0, 0);
        add_probe(&t, "force", SELKIE_PROBE_FORCE, 0, 0, 0);
        add_probe(&t, "torque", SELKIE_PROBE_TORQUE, 0.5, 0, 0);
        selkie_oscillation motion;
        selkie_oscillation_defaults(&motion);
        motion.rotate[2] = 3.0;
        motion.translate[0] = 0.01;
        motion.period = 1.55;
        set3(t.scene.frame.center, 0.5, 0, 0);
        t.scene.frame.oscillation_count = 1;
        t.scene.frame.oscillations = &motion;
        selkie_world *world = make_world(&t);
        double values[3] = {0, 0, 0};
        for (int n = 0; n < MEANS; n++) {
            run_until(world, 0.6 + (n - MEANS / 2) * 0.01);
            values[0] += (selkie_world_probe_value(world, 0) - 0.24) / MEANS;
            values[1] += selkie_world_probe_value(world, 1) / MEANS;
            values[2] += selkie_world_probe_value(world, 3) / MEANS;
        }
        static const char *const names[3] = {"rise of the water / FLIP's - 1", "sideways force / FLIP's - 1",
                                             "torque / FLIP's - 1"};
        char what[64];
        snprintf(what, sizeof what, "rolling tank at 0.6 s, %s", cases[c].name);
        for (int v = 0; v < 3; v++) {
            first[v] = c == 0 ? values[v] : first[v];
            at_most(what, names[v], fabs(values[v] / first[v] - 1.0), v == 0 ? 0.15 : 0.05);
        }
        selkie_world_destroy(world);
    }
}

/* SPH at rest around a ball: the lattice of the start puts particles into its reach, and they must not fly away. The
 * fastest particle in the first moments, if the ball stays, if its motion begins from rest, and in a tank with a
 * sponge. */
static double start_beside_ball(int dimension, double x, int moves, int sponges)
{
    const double depth = 0.4, h = 1.0 / 20;
    double fastest = 0.0;
    test_scene t;
    tank(&t, dimension, 1, 0.8, dimension == 3 ? 0.5 : 1, h);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
    t.scene.volume = SELKIE_VOLUME_AUTO;
    add_liquid(&t, box_shape(0, 0, 0, 1, depth, 0.5));
    selkie_oscillation motion;
    selkie_oscillation_defaults(&motion);
    motion.translate[0] = 0.02;
    motion.period = 1.5;
    motion.ramp = 1.5;
    selkie_obstacle_def *ball = add_obstacle(&t, sphere_shape(x, 0.2, dimension == 3 ? 0.25 : 0, 0.11));
    ball->oscillation_count = moves;
    ball->oscillations = &motion;
    selkie_force_def sponge;
    selkie_force_defaults(&sponge, SELKIE_FORCE_SPONGE);
    sponge.side = SELKIE_SIDE_X_MAX;
    sponge.width = 0.3;
    t.scene.force_count = sponges;
    t.scene.forces = &sponge;
    selkie_world *world = make_world(&t);
    while (selkie_world_time(world) < 0.03) {
        step_world(world);
        fastest = fmax(fastest, sum_particles(world, NULL).max_speed);
    }
    selkie_world_destroy(world);
    return fastest / sqrt(GRAVITY * depth);
}

static void start_beside_obstacles(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int place = 0; place < (dimension == 3 ? 1 : 3); place++) {
            const double x = 0.45 + 0.013 * place, still = start_beside_ball(dimension, x, 0, 0);
            char what[64];
            snprintf(what, sizeof what, "SPH, ball at %.3f, %dD", x, dimension);
            note(what, "fastest particle at the start / sqrt(g H)", still);
            at_most(what, "the same, the ball begins to move / it stays", start_beside_ball(dimension, x, 1, 0) / still,
                    1.05);
            at_most(what, "the same, in a tank with a sponge / without", start_beside_ball(dimension, x, 0, 1) / still,
                    1.05);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flies),
                                       cmocka_unit_test(swaying_tank),
                                       cmocka_unit_test(rolling_tank),
                                       cmocka_unit_test(methods_agree),
                                       cmocka_unit_test(ball_in_a_rolling_tank),
                                       cmocka_unit_test(start_beside_obstacles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Unilateral incompressibility against what is known: liquid that comes apart is ballistic, liquid that meets is
 * inelastic, and at rest it is water. The cases U1 to U5, walls, and volume. */
#include "physics.h"

static void unilateral(test_scene *t)
{
    t->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    t->scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    t->scene.flip_ratio = 1.0;
}

/* Scenes of a few blocks: threads would wait for each other. */
static selkie_world *small_world(const test_scene *t)
{
    return make_world_threads(&t->scene, 1);
}

static void no_gravity(test_scene *t)
{
    set3(t->scene.gravity, 0, 0, 0);
}

/* Where each particle was and how fast, by id. */
typedef struct start_state {
    int64_t count;
    float (*position)[3], (*velocity)[3];
} start_state;

static start_state remember(const selkie_world *world)
{
    start_state start = {.count = selkie_world_particle_count(world)};
    start.position = calloc((size_t)start.count + 1, sizeof *start.position);
    start.velocity = calloc((size_t)start.count + 1, sizeof *start.velocity);
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity"),
                          id = attribute_of(world, "id");
    for (int64_t p = 0; p < start.count; p++) {
        uint32_t n;
        memcpy(&n, particle_of(&id, p), sizeof n);
        assert_true(n < start.count);
        memcpy(start.position[n], particle_of(&position, p), sizeof *start.position);
        memcpy(start.velocity[n], particle_of(&velocity, p), sizeof *start.velocity);
    }
    return start;
}

static void forget(start_state *start)
{
    free(start->position);
    free(start->velocity);
}

/* Largest distance (m) of a particle from where free flight would have it, and largest change of velocity (m/s) beside
 * gravity's. */
static void flight_errors(const selkie_world *world, const start_state *start, double gravity, double *distance,
                          double *change)
{
    double t = selkie_world_time(world), half = 0.5 * selkie_world_statistics(world)->dt;
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity"),
                          id = attribute_of(world, "id");
    *distance = *change = 0.0;
    for (int64_t p = 0; p < start->count; p++) {
        uint32_t n;
        memcpy(&n, particle_of(&id, p), sizeof n);
        const float *x = particle_of(&position, p), *v = particle_of(&velocity, p);
        for (int d = 0; d < 3; d++) {
            double g = d == 1 ? -gravity : 0.0;
            /* Velocities live half a step before positions. */
            *distance =
                fmax(*distance, fabs(x[d] - (start->position[n][d] + start->velocity[n][d] * t + 0.5 * g * t * t)));
            *change = fmax(*change, fabs(v[d] - (start->velocity[n][d] + g * (t - half))));
        }
    }
}

static double largest_pressure(const selkie_world *world)
{
    selkie_field_view pressure = field_of(world, "pressure");
    double largest = 0.0;
    int64_t cells = (int64_t)pressure.block_count * pressure.extent[0] * pressure.extent[1] * pressure.extent[2];
    for (int64_t c = 0; c < cells; c++)
        largest = fmax(largest, fabs(pressure.data[c] * pressure.scale));
    return largest;
}

/* --- U1 --- */

static void u1_free_flight(int dimension, selkie_method method)
{
    const double h = dimension == 2 ? 0.02 : 0.04;
    char what[64];
    snprintf(what, sizeof what, "U1 free flight, %dD %s", dimension, method_name(method));
    test_scene t;
    tank(&t, dimension, 1, 2, 1, h);
    unilateral(&t);
    selkie_scene_set_method(&t.scene, method);
    selkie_liquid_def *blob = add_liquid(&t, sphere_shape(0.4, 1.5, 0.5, 0.2));
    set3(blob->velocity, 0.5, 0.4, dimension == 3 ? 0.1 : 0.0);
    selkie_world *world = small_world(&t);
    start_state start = remember(world);
    double distance, change, pressure = 0.0;
    while (selkie_world_time(world) < 0.35) {
        step_world(world);
        pressure = fmax(pressure, largest_pressure(world));
    }
    flight_errors(world, &start, GRAVITY, &distance, &change);
    /* Round-off of single precision over some hundred steps. */
    at_most(what, "particles off their parabolas, cells", distance / h, 1e-3);
    at_most(what, "velocities off, over the speed", change / (GRAVITY * 0.35), 1e-5);
    at_most(what, "largest pressure, Pa", pressure, 0.0);
    forget(&start);
    selkie_world_destroy(world);
}

static void free_flight(void **state)
{
    (void)state;
    u1_free_flight(2, SELKIE_METHOD_FLIP);
    u1_free_flight(2, SELKIE_METHOD_APIC);
    u1_free_flight(3, SELKIE_METHOD_FLIP);
}

/* --- U2, U3 --- */

static selkie_world *moving_blob(test_scene *t, int dimension, double stretching, double turning,
                                 selkie_incompressibility kind)
{
    const double h = dimension == 2 ? 0.0125 : 0.04;
    tank(t, dimension, 1, 1, 1, h);
    unilateral(t);
    no_gravity(t);
    t->scene.incompressibility = kind;
    t->scene.time.cfl = 0.5;
    selkie_liquid_def *blob = add_liquid(t, sphere_shape(0.5, 0.5, 0.5, 0.2));
    set3(blob->center, 0.5, 0.5, 0.5);
    for (int d = 0; d < dimension; d++)
        blob->velocity_gradient[4 * d] = stretching;
    blob->angular_velocity[2] = turning;
    return small_world(t);
}

static double root_mean_radius(const selkie_world *world)
{
    selkie_attribute_view position = attribute_of(world, "position");
    double sum = 0.0;
    int64_t count = selkie_world_particle_count(world);
    for (int64_t p = 0; p < count; p++) {
        const float *x = particle_of(&position, p);
        sum += (x[0] - 0.5) * (x[0] - 0.5) + (x[1] - 0.5) * (x[1] - 0.5);
    }
    return sqrt(sum / (double)count);
}

static double density_at_centre(const selkie_world *world)
{
    selkie_field_view density = field_of(world, "density");
    const selkie_scene *scene = selkie_world_scene(world);
    int cells[3], cell[3], per_block = density.extent[0] * density.extent[1] * density.extent[2];
    double h = selkie_scene_cells(scene, cells), sum = 0.0;
    int64_t count = 0;
    for (int b = 0; b < density.block_count; b++)
        for (int n = 0; n < per_block; n++) {
            cell_of(&density, b, n, cell);
            double r2 = 0.0;
            for (int d = 0; d < scene->domain.dimension; d++)
                r2 += ((cell[d] + 0.5) * h - 0.5) * ((cell[d] + 0.5) * h - 0.5);
            if (r2 < 0.1 * 0.1) {
                sum += density.data[(int64_t)b * per_block + n];
                count++;
            }
        }
    return sum / (double)count;
}

static void u2_diverging_blob(int dimension)
{
    const double s = 1.0, end = 0.5;
    char what[64];
    snprintf(what, sizeof what, "U2 diverging blob, %dD FLIP", dimension);
    test_scene t;
    selkie_world *world = moving_blob(&t, dimension, s, 0.0, SELKIE_INCOMPRESSIBILITY_UNILATERAL);
    start_state start = remember(world);
    double before = sum_particles(world, NULL).kinetic, distance, change;
    run_until(world, end);
    flight_errors(world, &start, 0.0, &distance, &change);
    at_most(what, "particles off x0 (1 + s t), over R", distance / 0.2, 1e-4);
    at_most(what, "energy lost or gained", fabs(sum_particles(world, NULL).kinetic / before - 1.0), 1e-6);
    /* The density is that of the start of the last step. */
    double grown = 1.0 + s * (end - selkie_world_statistics(world)->dt);
    at_most(what, "density off rho0 / (1 + s t)^dim", fabs(density_at_centre(world) * pow(grown, dimension) - 1.0),
            dimension == 2 ? 5e-3 : 0.03); /* a lattice of 0.75 cells, seen through a kernel of two */
    forget(&start);
    selkie_world_destroy(world);
    /* What separates the two kinds: suction kills the field in one step. */
    snprintf(what, sizeof what, "U2 diverging blob, %dD bilateral", dimension);
    world = moving_blob(&t, dimension, s, 0.0, SELKIE_INCOMPRESSIBILITY_BILATERAL);
    step_world(world);
    at_most(what, "energy left after one step (exact: 1)", sum_particles(world, NULL).kinetic / before, 0.2);
    selkie_world_destroy(world);
}

static void u3_spinning_disc(selkie_method method)
{
    const double w = 2.0, end = 0.5, centre[3] = {0.5, 0.5, 0.0};
    char what[64];
    snprintf(what, sizeof what, "U3 spinning disc, 2D %s", method_name(method));
    test_scene t;
    selkie_world *world = moving_blob(&t, 2, 0.0, w, SELKIE_INCOMPRESSIBILITY_UNILATERAL);
    if (method != SELKIE_METHOD_FLIP) {
        selkie_world_destroy(world);
        selkie_scene_set_method(&t.scene, method);
        world = small_world(&t);
    }
    double radius = root_mean_radius(world);
    particle_sums before = sum_particles(world, centre);
    run_until(world, end);
    particle_sums after = sum_particles(world, centre);
    double speed = sqrt(2.0 * before.kinetic);
    at_most(what, "momentum, over that of one side",
            hypot(after.momentum[0] - before.momentum[0], after.momentum[1] - before.momentum[1]) / speed, 1e-6);
    if (method == SELKIE_METHOD_FLIP) {
        /* APIC has a part of both in its matrices, which these sums leave out. */
        at_most(what, "angular momentum lost or gained", fabs(after.angular[2] / before.angular[2] - 1.0), 1e-5);
        at_most(what, "energy lost or gained", fabs(after.kinetic / before.kinetic - 1.0), 1e-6);
    }
    at_most(what, "radius off r0 sqrt(1 + w^2 t^2)",
            fabs(root_mean_radius(world) / (radius * sqrt(1.0 + w * w * end * end)) - 1.0), 0.01);
    selkie_world_destroy(world);
    if (method != SELKIE_METHOD_FLIP)
        return;
    world = moving_blob(&t, 2, 0.0, w, SELKIE_INCOMPRESSIBILITY_BILATERAL);
    run_until(world, end);
    at_most("U3 spinning disc, bilateral", "growth of the radius (exact: 1.414)", root_mean_radius(world) / radius,
            1.15);
    selkie_world_destroy(world);
}

static void expansion(void **state)
{
    (void)state;
    u2_diverging_blob(2);
    u2_diverging_blob(3);
    u3_spinning_disc(SELKIE_METHOD_FLIP);
    u3_spinning_disc(SELKIE_METHOD_APIC);
}

/* --- U4 --- */

/* Mean and largest |density / rest - 1| of the cells of a box (m). */
static double density_error(const selkie_world *world, const double low[2], const double high[2], double *mean)
{
    selkie_field_view density = field_of(world, "density");
    int cells[3], cell[3], per_block = density.extent[0] * density.extent[1] * density.extent[2];
    double h = selkie_scene_cells(selkie_world_scene(world), cells), largest = 0.0, sum = 0.0;
    int64_t count = 0;
    for (int b = 0; b < density.block_count; b++)
        for (int n = 0; n < per_block; n++) {
            cell_of(&density, b, n, cell);
            double x = (cell[0] + 0.5) * h, y = (cell[1] + 0.5) * h;
            if (x < low[0] || x > high[0] || y < low[1] || y > high[1])
                continue;
            largest = fmax(largest, fabs((double)density.data[(int64_t)b * per_block + n] - 1.0));
            sum += density.data[(int64_t)b * per_block + n];
            count++;
        }
    *mean = count ? sum / (double)count : 0.0;
    return largest;
}

/* A plug on a lid that is pulled away below it, faster than it falls, and stops 0.3 m lower. */
static void falling_plug(void **state)
{
    (void)state;
    const double h = 0.02, drop = 0.3, fall = sqrt(2.0 * drop / GRAVITY);
    const selkie_keyframe keys[] = {{0.0, {0, 0, 0}, {0, 0, 0}}, {0.1, {0, -drop, 0}, {0, 0, 0}}};
    test_scene t;
    tank(&t, 2, 0.4, 1.4, 1, h);
    unilateral(&t);
    t.scene.particles.per_cell = 16; /* an even number an axis fits beside walls exactly */
    add_liquid(&t, box_shape(0, 0.6, 0, 0.4, 1.0, 1));
    selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-1, 0.5, 0, 2, 0.6, 1));
    lid->keyframe_count = 2;
    lid->keyframes = keys;
    selkie_world *world = small_world(&t);
    double start = sum_particles(world, NULL).position[1], pressure = 0.0;
    while (selkie_world_time(world) < 0.8 * fall) {
        step_world(world);
        if (selkie_world_time(world) > 0.3 * fall)
            pressure = fmax(pressure, largest_pressure(world));
    }
    double time = selkie_world_time(world), fallen = start - sum_particles(world, NULL).position[1];
    at_most("U4 plug over a lid pulled away", "fall off g t^2 / 2", fabs(fallen / (0.5 * GRAVITY * time * time) - 1.0),
            0.01);
    at_most("U4 plug over a lid pulled away", "pressure in the gap's time, over rho g H",
            pressure / (1000.0 * GRAVITY * 0.4), 1e-3);
    run_until(world, 1.5);
    double low[2] = {2 * h, 0.3 + 2 * h}, high[2] = {0.4 - 2 * h, 0.7 - 3 * h}, mean;
    double largest = density_error(world, low, high, &mean);
    at_most("U4 plug after its impact", "density off rest, mean", fabs(mean - 1.0), 0.01);
    note("U4 plug after its impact", "density off rest, largest", largest);
    at_most("U4 plug after its impact", "centre off where it rests, cells",
            fabs(sum_particles(world, NULL).position[1] - (start - drop)) / h, 1.0);
    selkie_world_destroy(world);
}

/* --- U5 --- */

static void colliding_blocks(void **state)
{
    (void)state;
    const double h = 0.02;
    for (int method = SELKIE_METHOD_FLIP; method <= SELKIE_METHOD_APIC; method++) {
        char what[64];
        snprintf(what, sizeof what, "U5 colliding blocks, 2D %s", method_name((selkie_method)method));
        test_scene t;
        tank(&t, 2, 1, 0.2, 1, h);
        unilateral(&t);
        no_gravity(&t);
        selkie_scene_set_method(&t.scene, (selkie_method)method);
        set3(add_liquid(&t, box_shape(0.1, 0, 0, 0.4, 0.2, 1))->velocity, 1.5, 0, 0);
        set3(add_liquid(&t, box_shape(0.6, 0, 0, 0.9, 0.2, 1))->velocity, -0.5, 0, 0);
        selkie_world *world = small_world(&t);
        particle_sums before = sum_particles(world, NULL);
        run_until(world, 0.25); /* impact after 0.1 s; the far wall is reached after 0.4 s */
        particle_sums after = sum_particles(world, NULL);
        at_most(what, "momentum lost or gained", fabs(after.momentum[0] / before.momentum[0] - 1.0), 1e-5);
        /* Perfectly inelastic: the common velocity is 0.5 m/s, and the relative part of the energy is gone. */
        double common = 0.5 * before.momentum[0] * before.momentum[0], relative = before.kinetic - common;
        at_most(what, "relative energy left", (after.kinetic - common) / relative, 0.02);
        selkie_world_destroy(world);
    }
}

/* --- walls, rest, volume --- */

static double share_above(const selkie_world *world, double y)
{
    selkie_attribute_view position = attribute_of(world, "position");
    int64_t above = 0, count = selkie_world_particle_count(world);
    for (int64_t p = 0; p < count; p++)
        above += particle_of(&position, p)[1] > y;
    return (double)above / (double)count;
}

/* A jet at a ceiling falls off it; a bilateral one hangs there, held by suction. */
static void jet_at_a_ceiling(void **state)
{
    (void)state;
    const double h = 0.025;
    double left[2];
    for (int kind = 0; kind < 2; kind++) {
        test_scene t;
        tank(&t, 2, 1.5, 1, 1, h);
        unilateral(&t);
        t.scene.incompressibility = kind ? SELKIE_INCOMPRESSIBILITY_UNILATERAL : SELKIE_INCOMPRESSIBILITY_BILATERAL;
        t.scene.flip_ratio = 0.97;
        set3(add_liquid(&t, box_shape(0.55, 0.05, 0, 0.95, 0.65, 1))->velocity, 0, 4.0, 0);
        selkie_world *world = small_world(&t);
        run_until(world, 1.0);
        left[kind] = share_above(world, 1.0 - 2 * h);
        selkie_world_destroy(world);
    }
    at_most("jet at a ceiling, unilateral", "mass within two cells after 1 s", left[1], 5e-3);
    between("jet at a ceiling, bilateral", "mass within two cells after 1 s", left[0], 0.05, 1.0);
}

/* Water at rest stays so, and presses on the floor as it should. The uppermost cells are packed by half a cell: a cell
 * is full where its kernel, two cells wide, is. */
static void rest(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const double h = dimension == 2 ? 0.02 : 0.05, depth = 16 * h;
        char what[64];
        snprintf(what, sizeof what, "rest, %dD", dimension);
        test_scene t;
        tank(&t, dimension, 12 * h, 24 * h, 8 * h, h);
        unilateral(&t);
        t.scene.flip_ratio = 0.97;
        add_liquid(&t, box_shape(0, 0, 0, 1, depth, 1));
        add_probe(&t, "floor", SELKIE_PROBE_PRESSURE, 6 * h, 0.5 * h, 4 * h);
        add_probe(&t, "level", SELKIE_PROBE_HEIGHT, 6 * h, 0, 4 * h);
        selkie_world *world = small_world(&t);
        run_until(world, dimension == 2 ? 1.5 : 0.6);
        double speed = 0.0, pressure = 0.0, level = 0.0;
        const int steps = 20;
        for (int n = 0; n < steps; n++) {
            step_world(world);
            speed = fmax(speed, sqrt(2.0 * sum_particles(world, NULL).kinetic));
            pressure += selkie_world_probe_value(world, 0) / steps;
            level += selkie_world_probe_value(world, 1) / steps;
        }
        at_most(what, "root mean square of speed, over sqrt(g H)", speed / sqrt(GRAVITY * depth), 0.05);
        at_most(what, "pressure at the floor off, cells of head",
                fabs(pressure / (1000.0 * GRAVITY) - (depth - 0.5 * h)) / h, 0.2);
        at_most(what, "level off, cells", fabs(level - depth) / h, 0.2);
        at_most(what, "volume lost or gained", fabs(selkie_world_statistics(world)->volume_ratio - 1.0), 0.01);
        selkie_world_destroy(world);
    }
}

/* A jittered pool comes to rest, wherever its level lies in a cell and with a ball in it, at default steps and at 20
 * ms. Waves of 1 % of the natural speed are below what a viewer sees. Evening out the start is a part of the start:
 * left to the first step, it lifts the pool by 0.002 cells, and by 0.012 around the ball. */
static void jittered_pool(void **state)
{
    (void)state;
    const double h = 0.03, levels[] = {0.0, 0.375, 0.5, 0.75};
    for (int n = 0; n < 8; n++) {
        const double depth = (12 + levels[n % 4]) * h;
        char what[64];
        snprintf(what, sizeof what, "jittered pool, 2D %s, level %.3f", n % 2 ? "APIC" : "FLIP", levels[n % 4]);
        test_scene t;
        tank(&t, 2, 16 * h, 18 * h, 1, h);
        unilateral(&t);
        selkie_scene_set_method(&t.scene, n % 2 ? SELKIE_METHOD_APIC : SELKIE_METHOD_FLIP);
        t.scene.flip_ratio = 0.97;
        t.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
        if (n < 4)
            t.scene.time.step = 0.02;
        add_liquid(&t, box_shape(0, 0, 0, 1, depth, 1));
        if (n >= 4)
            add_obstacle(&t, sphere_shape(8.2 * h, 5.4 * h, 0.5, 3 * h));
        selkie_world *world = small_world(&t);
        const selkie_statistics *s = selkie_world_statistics(world);
        const double start = s->potential_energy, unit = (double)selkie_world_particle_count(world) *
                                                         selkie_world_particle_mass(world) * GRAVITY * h;
        double growth = 0.0, speed = 0.0;
        while (selkie_world_time(world) < 8.0) {
            step_world(world);
            s = selkie_world_statistics(world);
            growth = fmax(growth, s->kinetic_energy + s->potential_energy - start);
            speed = selkie_world_time(world) > 6.0 ? fmax(speed, s->max_speed) : 0.0;
        }
        at_most(what, "largest speed, over sqrt(g H)", speed / sqrt(GRAVITY * depth), 0.01);
        at_most(what, "growth of energy, cells of lift", growth / unit, 0.001);
        selkie_world_destroy(world);
    }
}

/* Where the level lies near the fill that makes a cell full, without and around a ball. Pressure jumped there, and the
 * density correction lifted what that moved: 0.156 to 0.184 in three starts, 0.15 and 0.17 around the ball, at rest at
 * 0.0003 and 0.008 now. Single particles slid about thin layers around the ball (12.15 cells, APIC: 0.009 to 0.069 in
 * eight starts) while the start had no even rows there. The bound is what a viewer does not see. */
static void level_at_the_full_cells(void **state)
{
    (void)state;
    const double h = 1.0 / 32;
    for (int n = 0; n < 4; n++) {
        const double level = (n < 3 ? 12.25 : 12.15) * h;
        const char *names[] = {"pool of 12.25 cells", "the same around a ball", "the same around a ball, APIC",
                               "12.15 cells around a ball, APIC"};
        test_scene t;
        tank(&t, 2, 16 * h, 18 * h, 1, h);
        t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        t.scene.time.fps = 30.0; /* the steps of a scene that says nothing */
        t.scene.time.cfl = n ? 6.0 : 1.0;
        t.scene.seed = n % 3 ? 0 : 1;
        if (n >= 2)
            selkie_scene_set_method(&t.scene, SELKIE_METHOD_APIC);
        if (n)
            add_obstacle(&t, sphere_shape(8.16 * h, 5.4 * h, 0.5, 3 * h));
        add_liquid(&t, box_shape(0, 0, 0, 16 * h, level, 1));
        selkie_world *world = small_world(&t);
        double speed = 0.0;
        while (selkie_world_time(world) < 20.0 * (1 - 1e-9)) {
            step_world(world);
            if (selkie_world_time(world) > 10.0)
                speed = fmax(speed, selkie_world_statistics(world)->max_speed);
        }
        at_most(names[n], "largest speed, over sqrt(g H)", speed / sqrt(GRAVITY * level), 0.01);
        selkie_world_destroy(world);
    }
}

/* Where the level lies by the cells that become full: a tenth of a cell above a face, where full cells began by their
 * fill, and at a face, where they begin now. With full cells by their fill four of these fail, by up to 0.39 over the
 * slope. */
static void level_as_cells_become_full(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int dimension, seed;
        double level; /* cells */
        selkie_method method;
    } cases[] = {{"12.12 cells around a ball, 20 ms, APIC", 2, 0, 12.12, SELKIE_METHOD_APIC},
                 {"12.12 cells around a ball, 20 ms, FLIP", 2, 2, 12.12, SELKIE_METHOD_FLIP},
                 {"12.01 cells around a ball, 20 ms, FLIP", 2, 3, 12.01, SELKIE_METHOD_FLIP},
                 {"12.12 cells over a slope, 20 ms, APIC", 2, 0, 12.12, SELKIE_METHOD_APIC},
                 {"6.15 cells in 3D, 20 ms, FLIP", 3, 1, 6.15, SELKIE_METHOD_FLIP}};
    const double h = 1.0 / 32;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const int flat = cases[n].dimension == 2, width = flat ? 16 : 8, depth = flat ? 12 : 6;
        const double level = cases[n].level * h;
        test_scene t;
        tank(&t, cases[n].dimension, width * h, (depth + 6) * h, width * h, h);
        t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        t.scene.time.step = 0.02;
        t.scene.time.fps = 10.0;
        t.scene.seed = cases[n].seed;
        selkie_scene_set_method(&t.scene, cases[n].method);
        if (strstr(cases[n].name, "ball"))
            add_obstacle(&t, sphere_shape(8.16 * h, 5.4 * h, 0.0, 3 * h));
        if (strstr(cases[n].name, "slope")) {
            selkie_shape slope;
            selkie_shape_defaults(&slope, SELKIE_SHAPE_HALF_SPACE);
            set3(slope.point, 6.4 * h, 0.1 * h, 0.0);
            set3(slope.normal, sqrt(0.2), sqrt(0.8), 0.0);
            add_obstacle(&t, slope);
        }
        add_liquid(&t, box_shape(0, 0, 0, width * h, level, width * h));
        selkie_world *world = small_world(&t);
        const selkie_statistics *s = selkie_world_statistics(world);
        const double start = s->potential_energy,
                     unit = (double)selkie_world_particle_count(world) * selkie_world_particle_mass(world) * GRAVITY;
        double speed = 0.0, growth = 0.0;
        while (selkie_world_time(world) < 20.0 * (1 - 1e-9)) {
            step_world(world);
            s = selkie_world_statistics(world);
            growth = fmax(growth, s->kinetic_energy + s->potential_energy - start);
            if (selkie_world_time(world) > 10.0)
                speed = fmax(speed, s->max_speed);
        }
        at_most(cases[n].name, "largest speed, over sqrt(g H)", speed / sqrt(GRAVITY * level), 0.01);
        at_most(cases[n].name, "growth of energy, over m g H", growth / (unit * level), 1e-3);
        selkie_world_destroy(world);
    }
}

/* Full cells may gain a millionth of their volume in a step, which many short steps must not add up: the water sank by
 * 1.6 % in 40 s at 2 ms. The bound is twice UIC_SETTLED, from where on they gain less. Potential energy says where the
 * water is. */
static void level_at_short_steps(void **state)
{
    (void)state;
    const double h = 1.0 / 32, level = 12.5 * h;
    test_scene t;
    tank(&t, 2, 16 * h, 18 * h, 1, h);
    t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    t.scene.time.step = 0.002;
    t.scene.time.fps = 25.0;
    add_liquid(&t, box_shape(0, 0, 0, 16 * h, level, 1));
    selkie_world *world = small_world(&t);
    double start = 0.0; /* J */
    while (selkie_world_time(world) < 40.0 * (1 - 1e-9)) {
        step_world(world);
        if (selkie_world_time(world) < 1.0)
            start = selkie_world_statistics(world)->potential_energy;
    }
    const double end = selkie_world_statistics(world)->potential_energy;
    at_most("pool of 12.5 cells at 2 ms", "height lost from 1 to 40 s, share", 1.0 - end / start, 0.004);
    selkie_world_destroy(world);
}

/* A dam that breaks over an obstacle and comes to rest holds what it held. */
static void volume_is_kept(void **state)
{
    (void)state;
    const double h = 0.04;
    test_scene t;
    tank(&t, 2, 1.2, 1.2, 1, h);
    unilateral(&t);
    t.scene.flip_ratio = 0.9; /* comes to rest sooner */
    add_liquid(&t, box_shape(0, 0, 0, 0.4, 0.8, 1));
    add_obstacle(&t, sphere_shape(0.8, 0.1, 0.5, 0.15));
    selkie_world *world = small_world(&t);
    int64_t count = selkie_world_particle_count(world);
    run_until(world, 4.0);
    assert_int_equal(selkie_world_particle_count(world), count);
    double volume = 0.0, speed = 0.0;
    for (int n = 0; n < 20; n++) {
        step_world(world);
        volume += selkie_world_statistics(world)->volume_ratio / 20;
        speed = fmax(speed, selkie_world_statistics(world)->max_speed);
    }
    note("dam over an obstacle, settled", "largest speed, m/s", speed);
    at_most("dam over an obstacle, settled", "volume lost or gained", fabs(volume - 1.0), 0.01);
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_flight),
        cmocka_unit_test(expansion),
        cmocka_unit_test(falling_plug),
        cmocka_unit_test(colliding_blocks),
        cmocka_unit_test(jet_at_a_ceiling),
        cmocka_unit_test(rest),
        cmocka_unit_test(volume_is_kept),
        cmocka_unit_test(jittered_pool),
        cmocka_unit_test(level_at_the_full_cells),
        cmocka_unit_test(level_as_cells_become_full),
        cmocka_unit_test(level_at_short_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

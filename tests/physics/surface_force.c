/* Forces on obstacles: the weight of the displaced water at rest, its torque, and gauges of finite area; a jet that a
 * plate turns. */
#include "physics.h"

static selkie_probe_def *add_on(test_scene *t, const char *name, selkie_probe_kind kind, const char *on, double x,
                                double y)
{
    selkie_probe_def *probe = add_probe(t, name, kind, x, y, 0);
    probe->on = on;
    return probe;
}

/* The grid methods sum the pressure of their solve. Every method gives the weight within 1 % at rest. */
typedef struct method_case {
    const char *name;
    selkie_method method;
    selkie_incompressibility kind;
    selkie_surface_condition surface;
    double bound;
} method_case;

static const method_case cases[] = {
    {"FLIP", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_BILATERAL, SELKIE_SURFACE_GHOST_FLUID, 0.01},
    {"APIC", SELKIE_METHOD_APIC, SELKIE_INCOMPRESSIBILITY_BILATERAL, SELKIE_SURFACE_GHOST_FLUID, 0.01},
    {"FLIP voxel", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_BILATERAL, SELKIE_SURFACE_VOXEL, 0.01},
    {"unilateral", SELKIE_METHOD_FLIP, SELKIE_INCOMPRESSIBILITY_UNILATERAL, SELKIE_SURFACE_GHOST_FLUID, 0.01},
    {"SPH", SELKIE_METHOD_SPH, SELKIE_INCOMPRESSIBILITY_BILATERAL, SELKIE_SURFACE_GHOST_FLUID, 0.01},
};

static void floats_by(const method_case *c, int dimension, int disc)
{
    const double h = 1.0 / 32, depth = 0.75;
    test_scene t;
    tank(&t, dimension, 1, 1, 0.5, h);
    selkie_scene_set_method(&t.scene, c->method);
    t.scene.incompressibility = c->kind;
    t.scene.pressure.surface = c->surface;
    t.scene.volume = SELKIE_VOLUME_AUTO;
    t.scene.time.cfl = 0.0;
    add_liquid(&t, box_shape(0, 0, 0, 1, depth, 1));
    const double z = dimension == 3 ? 0.25 : 0.0;
    selkie_obstacle_def *body = add_obstacle(
        &t, disc ? sphere_shape(0.4, 0.37, z, 0.15)
                 : box_shape(0.3, 0.25, dimension == 3 ? 0.1 : 0.0, 0.55, 0.5, dimension == 3 ? 0.35 : 0.0));
    body->name = "body";
    add_on(&t, "lift", SELKIE_PROBE_FORCE, "body", 0, 0);
    add_on(&t, "turn", SELKIE_PROBE_TORQUE, "body", 0, 0.3);
    add_on(&t, "walls", SELKIE_PROBE_FORCE, "walls", 0, 0);
    selkie_probe_def *gauge = add_probe(&t, "gauge", SELKIE_PROBE_PRESSURE, 0.8, 0.4, z);
    gauge->radius = 0.1;
    selkie_world *world = make_world(&t);

    /* Mean over some steps, after the start has settled. The pressure of SPH swings by 2 % for a second. */
    const int sph = c->method == SELKIE_METHOD_SPH;
    const double settled = sph ? 2.0 : 0.5, end = sph ? 4.0 : 0.7;
    double lift = 0.0, turn = 0.0, floor = 0.0, pressure = 0.0, side = 0.0;
    int count = 0;
    run_until(world, settled);
    for (; selkie_world_time(world) < end; count++) {
        step_world(world);
        const int torques = dimension == 2 ? 1 : 3;
        side += selkie_world_probe_value(world, 0);
        lift += selkie_world_probe_value(world, 1);
        turn += selkie_world_probe_value(world, dimension + torques - 1);
        floor += selkie_world_probe_value(world, dimension + torques + 1);
        pressure += selkie_world_probe_value(world, 2 * dimension + torques);
    }
    char what[64];
    snprintf(what, sizeof what, "submerged %s %dD, %s", disc ? "ball" : "box", dimension, c->name);
    const double volume = !disc            ? pow(0.25, dimension)
                          : dimension == 2 ? M_PI * 0.15 * 0.15
                                           : 4.0 / 3.0 * M_PI * 0.15 * 0.15 * 0.15;
    const double weight = 1000.0 * GRAVITY * volume, middle = disc ? 0.4 : 0.425;
    const double liquid = 1000.0 * GRAVITY * (depth * (dimension == 3 ? 0.5 : 1.0) - volume);
    /* Voxels put the surface into the middle of a cell: half a cell of 24. */
    const double level_bound = c->surface == SELKIE_SURFACE_VOXEL ? 0.05 : c->bound;
    at_most(what, "lift / weight of the displaced water - 1", fabs(lift / count / weight - 1.0), c->bound);
    at_most(what, "sideways / weight", fabs(side / count / weight), c->bound);
    at_most(what, "torque / (weight x arm) - 1", fabs(turn / count / (weight * middle) - 1.0), 2 * c->bound);
    at_most(what, "force on the walls / weight of water and lift - 1", fabs(-floor / count / (liquid + weight) - 1.0),
            level_bound);
    at_most(what, "gauge / (rho g depth) - 1", fabs(pressure / count / (1000.0 * GRAVITY * (depth - 0.4)) - 1.0),
            level_bound);
    selkie_world_destroy(world);
}

static void weight_of_displaced_water(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int disc = 0; disc < 2; disc++)
            floats_by(&cases[c], 2, disc);
    for (int disc = 0; disc < 2; disc++) {
        floats_by(&cases[0], 3, disc); /* FLIP */
        floats_by(&cases[1], 3, disc); /* APIC */
        floats_by(&cases[3], 3, disc); /* unilateral */
    }
}

/* A jet of width b and speed v, without gravity, meets a plate of eight widths, which turns it by 90 degrees: the force
 * is rho b v^2. The source lies in the air or at a wall of the domain. Before the plate the jet has its speed and
 * width. No part of it is faster than its start, by Bernoulli. The tolerance of the force is 0.2 cells at each edge of
 * a jet of eight cells; single particles of FLIP are up to a fifth faster than their surroundings. */
static void jet_on_plate(const char *what, const method_case *c, int at_wall, double cfl, double bound)
{
    const double h = 1.0 / 80, width = 8 * h, speed = 2.0, x = at_wall ? 0.0 : 0.1,
                 exact = 1000.0 * width * speed * speed;
    test_scene t;
    tank(&t, 2, 1, 1, 0, h);
    selkie_scene_set_method(&t.scene, c->method);
    t.scene.incompressibility = c->kind;
    t.scene.volume = SELKIE_VOLUME_AUTO;
    t.scene.time.cfl = cfl;
    t.scene.gravity[1] = 0.0;
    for (int side = 1; side < 4; side++)
        t.scene.domain.walls[side] = SELKIE_WALL_OPEN;
    set3(add_source(&t, box_shape(x, 0.45, 0, x + 4 * h, 0.55, 0))->velocity, speed, 0.0, 0.0);
    add_obstacle(&t, box_shape(0.6, 0.1, 0, 0.65, 0.9, 0))->name = "plate";
    add_on(&t, "force", SELKIE_PROBE_FORCE, "plate", 0, 0);
    selkie_world *world = make_world(&t);
    run_until(world, 0.8);
    double force = 0.0, before = 0.8, time = 0.8, fastest = 0.0;
    while (time < 1.2) {
        step_world(world);
        time = selkie_world_time(world);
        force += (time - before) * selkie_world_probe_value(world, 0);
        fastest = fmax(fastest, selkie_world_statistics(world)->max_speed);
        before = time;
    }

    /* The jet between the source and the plate. */
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    double count = 0.0, along = 0.0, middle = 0.0, square = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *place = particle_of(&position, p);
        if (place[0] < 0.2f || place[0] > 0.4f)
            continue;
        count++;
        along += particle_of(&velocity, p)[0];
        middle += place[1];
        square += (double)place[1] * place[1];
    }
    middle /= count;
    between(what, "speed of the jet / that of the source", along / count / speed, 0.99, 1.01);
    between(what, "width of the jet / that of the source", sqrt(12.0 * (square / count - middle * middle)) / width,
            0.99, 1.01);
    between(what, "force / (rho b v^2)", force / (time - 0.8) / exact, 1.0 - bound, 1.0 + bound);
    if (c->kind == SELKIE_INCOMPRESSIBILITY_BILATERAL)
        at_most(what, "fastest particle / the jet", fastest / speed, 1.2);
    selkie_world_destroy(world);
}

static void jets(void **state)
{
    (void)state;
    jet_on_plate("jet, FLIP, idp", &cases[0], 0, 0.0, 0.05);
    jet_on_plate("jet from a wall, FLIP, idp", &cases[0], 1, 0.0, 0.05);
    /* At short steps the ends of the plate must not brake the film that passes them: see decision 20. */
    jet_on_plate("jet, FLIP, idp, CFL 0.5", &cases[0], 0, 0.5, 0.02);
    jet_on_plate("jet, FLIP, idp, CFL 0.25", &cases[0], 0, 0.25, 0.02);
    jet_on_plate("jet, APIC, idp", &cases[1], 0, 0.0, 0.02);
    jet_on_plate("jet, unilateral", &cases[3], 0, 0.0, 0.05);
}

/* Steps of 12, 12 and 9.3 ms in turn: a force is an impulse over the time in which it acted, from the middle of the
 * last step on, not over the length of the step, which is off by an eighth. SPH splits them and ends a frame with a
 * step of 0.3 ms, where its force was five times too large; a tenth is what it swings by. */
static void steps_of_different_lengths(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int sph = cases[c].method == SELKIE_METHOD_SPH;
        const double h = 1.0 / 32, end = 0.5;
        double worst = 0.0;
        char what[64];
        test_scene t;
        selkie_body_def body;
        tank(&t, 2, 1, 0.5, 1, h);
        selkie_scene_set_method(&t.scene, cases[c].method);
        t.scene.incompressibility = cases[c].kind;
        t.scene.pressure.surface = cases[c].surface;
        t.scene.volume = SELKIE_VOLUME_AUTO;
        t.scene.time.cfl = 0.0;
        t.scene.time.step = 0.012;
        t.scene.time.fps = 30.0;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.25, 1));
        selkie_body_defaults(&body);
        body.shape = box_shape(0.4, 0.2, 0, 0.6, 0.3, 0);
        body.density = 500.0;
        body.name = "body";
        t.scene.body_count = 1;
        t.scene.bodies = &body;
        add_on(&t, "lift", SELKIE_PROBE_FORCE, "body", 0, 0);
        selkie_world *world = make_world(&t);
        run_until(world, 0.3);
        while (selkie_world_time(world) < end - 1e-9) {
            const double before = selkie_world_probe_value(world, 1);
            step_world(world);
            worst = fmax(worst, fabs(selkie_world_probe_value(world, 1) / before - 1.0));
        }
        snprintf(what, sizeof what, "floating box, uneven steps, %s", cases[c].name);
        at_most(what, "force on it / that of the step before - 1", worst, sph ? 0.1 : 0.02);
        selkie_world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(weight_of_displaced_water), cmocka_unit_test(jets),
                                       cmocka_unit_test(steps_of_different_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

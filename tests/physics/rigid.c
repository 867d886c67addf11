/* Rigid bodies in water (SPH): how deep they float, where neutral and heavy ones go, how fast they bob. */
#include "physics.h"

static selkie_body_def bodies[4];

/* Water 0.4 m deep in 2D with a box of 0.24 m x 0.2 m; particles of 0.02 m. */
static selkie_world *box_in_water(test_scene *t, double density, double bottom, const char *name)
{
    tank(t, 2, 0.96, 0.8, 1, 0.04);
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_SPH);
    t->scene.time.cfl = 0.0;
    t->scene.sph.density_error = 5e-4;
    t->scene.sph.xsph = 0.02;
    add_liquid(t, box_shape(0, 0, 0, 0.96, 0.4, 1));
    t->scene.bodies = bodies;
    t->scene.body_count = 1;
    selkie_body_defaults(&bodies[0]);
    bodies[0].name = name;
    bodies[0].density = density;
    bodies[0].shape = box_shape(0.36, bottom, 0, 0.6, bottom + 0.2, 1);
    return make_world_threads(&t->scene, 1); /* so few particles: two threads would only wait for each other */
}

static selkie_body_state body_of(const selkie_world *world)
{
    selkie_body_state state;
    assert_int_equal(selkie_world_body(world, 0, &state), SELKIE_OK);
    return state;
}

/* The level that the water takes with the body in it. */
static double level(const selkie_world *world, double submerged)
{
    double water = (double)selkie_world_particle_count(world) * selkie_world_particle_mass(world) / 1000.0;
    return (water + submerged) / 0.96;
}

/* ANALYTIC R2: the draught is the ratio of densities, to a particle's spacing. */
static void box_floats(void **state)
{
    (void)state;
    static const double densities[] = {300, 600};
    for (int n = 0; n < 2; n++) {
        test_scene t;
        double draught = 0.2 * densities[n] / 1000;
        selkie_world *world = box_in_water(&t, densities[n], 0.4 - draught, "box");
        run_until(world, 0.8);
        double mean = 0.0, force = 0.0, span = 0.0, before = selkie_world_time(world);
        while (selkie_world_time(world) < 2.0) {
            step_world(world);
            double dt = selkie_world_time(world) - before;
            before = selkie_world_time(world);
            mean += dt * body_of(world).position[1];
            force += dt * body_of(world).force[1];
            span += dt;
        }
        double found = level(world, 0.24 * draught) - (mean / span - 0.1);
        char what[64];
        snprintf(what, sizeof what, "floating box, density %g", densities[n]);
        note(what, "draught over height", found / 0.2);
        at_most(what, "error of the draught, spacings", fabs(found - draught) / 0.02, 1.0);
        at_most(what, "lift over weight, error", fabs(force / span / (body_of(world).mass * GRAVITY) - 1.0), 0.05);
        at_most(what, "turned, degrees", fabs(2 * asin(body_of(world).quaternion[3])) * 57.3, 15);
        selkie_world_destroy(world);
    }
}

static void neutral_stays(void **state)
{
    (void)state;
    test_scene t;
    selkie_world *world = box_in_water(&t, 1000, 0.1, "neutral");
    run_until(world, 1.0);
    at_most("neutral box under water", "drift in a second, heights", fabs(body_of(world).position[1] - 0.2) / 0.2,
            0.25);
    selkie_world_destroy(world);
}

static void heavy_sinks(void **state)
{
    (void)state;
    test_scene t;
    selkie_world *world = box_in_water(&t, 3000, 0.2, "stone");
    double fastest = 0.0;
    while (selkie_world_time(world) < 1.0) {
        step_world(world);
        fastest = fmax(fastest, -body_of(world).velocity[1]);
    }
    /* A film of water may stay below it. */
    at_most("stone", "height over the floor at the end, spacings", fabs(body_of(world).position[1] - 0.1) / 0.02, 1.0);
    /* Without water it would arrive with sqrt(2 g 0.2 m) = 1.98 m/s, with buoyancy alone with 1.62 m/s. */
    between("stone", "fastest fall, m/s", fastest, 0.4, 1.62);
    selkie_world_destroy(world);
}

/* A light box rises from any depth, also with only two layers of particles under it. Without drag and walls it
 * accelerates by g (1 - r) / (r + added mass), r the ratio of densities. The added mass of a box near a floor is about
 * its own volume of water and width^3 / (12 gap) of the gap. An elastic lattice of particles would hold it within a
 * spacing. Half of the ideal rise is asked for: the wake costs the rest. */
static void light_box_rises(void **state)
{
    (void)state;
    static const double densities[] = {800, 900}, gaps[] = {0.04, 0.12};
    for (int n = 0; n < 4; n++) {
        const double density = densities[n & 1], gap = gaps[n >> 1], ratio = density / 1000;
        test_scene t;
        selkie_world *world = box_in_water(&t, density, gap, "light");
        run_until(world, 0.6);
        const double added = 1.0 + 0.24 * 0.24 / (12 * gap * 0.2);
        const double ideal = 0.5 * GRAVITY * (1.0 - ratio) / (ratio + added) * 0.36;
        char what[96];
        snprintf(what, sizeof what, "box of density %g, %g spacings over the floor", density, gap / 0.02);
        between(what, "rise in 0.6 s over the ideal one", (body_of(world).position[1] - gap - 0.1) / ideal, 0.3, 1.2);
        selkie_world_destroy(world);
    }
}

/* Glowinski et al. 2001 (J. Comput. Phys. 169): a disc of 2.5 mm and density 1250 in a channel of 20 mm, 1e-5 m2/s. Its
 * terminal speed is about 51 mm/s; here FLIP has 50 mm/s after 0.2 s. Its weight in water,
 * over its diameter, is the pressure of 1.4 spacings of depth, and it lies 17 deep: a yield stress of 1 % of the
 * pressure would hold it. */
static void settling_disc(void **state)
{
    (void)state;
    const double width = 0.02, spacing = width / 56;
    test_scene t;
    tank(&t, 2, width, 1.5 * width, 1, 2 * spacing);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
    t.scene.time.cfl = 0.0;
    t.scene.viscosity = 1e-5;
    for (int side = 0; side < 4; side++)
        t.scene.domain.walls[side] = SELKIE_WALL_NO_SLIP;
    add_liquid(&t, box_shape(0, 0, 0, width, 0.028, 1));
    t.scene.bodies = bodies;
    t.scene.body_count = 1;
    selkie_body_defaults(&bodies[0]);
    bodies[0].name = "disc";
    bodies[0].density = 1250;
    bodies[0].surface = SELKIE_WALL_NO_SLIP;
    bodies[0].shape = sphere_shape(0.5 * width, 0.022, 0, 0.00125);
    selkie_world *world = make_world_threads(&t.scene, 1);
    run_until(world, 0.16);
    const double above = body_of(world).position[1], from = selkie_world_time(world);
    run_until(world, 0.2);
    const double speed = (above - body_of(world).position[1]) / (selkie_world_time(world) - from);
    between("settling disc", "speed at 0.16 to 0.2 s over the terminal one", speed / 0.051, 0.75, 1.25);
    selkie_world_destroy(world);
}

/* Released above where it would float, it bobs. The period without the water that moves along is 2 pi sqrt(m / (rho g
 * B)); that water is about as heavy as the box, in a tank of four widths and twice its depth. */
static void box_bobs(void **state)
{
    (void)state;
    test_scene t;
    selkie_world *world = box_in_water(&t, 500, 0.35, "buoy");
    double mean = level(world, 0.024), rest = mean, crossings[3] = {0, 0, 0}, before = 0.0;
    int count = 0;
    while (selkie_world_time(world) < 2.0 && count < 3) {
        step_world(world);
        double y = body_of(world).position[1] - rest;
        if (before > 0.0 && y <= 0.0)
            crossings[count++] = selkie_world_time(world);
        before = y;
    }
    double bare = 2 * 3.14159265 * sqrt(0.5 * 0.2 / GRAVITY);
    assert_true(count >= 2);
    between("bobbing box", "period over that without added mass", (crossings[1] - crossings[0]) / bare, 1.0, 2.0);
    selkie_world_destroy(world);
}

int main(void)
{
    test_scene t;
    tank(&t, 2, 1, 1, 1, 0.1);
    selkie_scene_set_method(&t.scene, SELKIE_METHOD_SPH);
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.5, 1));
    selkie_body_defaults(&bodies[0]);
    bodies[0].shape = box_shape(0.4, 0.6, 0, 0.6, 0.8, 1);
    t.scene.bodies = bodies;
    t.scene.body_count = 1;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(&t.scene, NULL, &world, &error) == SELKIE_ERROR_UNSUPPORTED)
        return 77; /* a build without the engine */
    selkie_world_destroy(world);
    const struct CMUnitTest tests[] = {cmocka_unit_test(box_floats),    cmocka_unit_test(neutral_stays),
                                       cmocka_unit_test(heavy_sinks),   cmocka_unit_test(light_box_rises),
                                       cmocka_unit_test(settling_disc), cmocka_unit_test(box_bobs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

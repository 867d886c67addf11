/* In a closed tank at rest nobody does work on the liquid: its energy, kinetic and potential together, never grows.
 * (The statistics count the energy of the particles' mean motion; with APIC some sits in their affine motion, comes
 * back from it, and looks like growth.) */
#include "physics.h"

static void closed_tank(int dimension, selkie_method method, int drop)
{
    const double h = 1.0 / (dimension == 2 ? 48 : 24);
    test_scene t;
    tank(&t, dimension, 1, 1, dimension == 3 ? 0.25 : 0, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.time.cfl = 2.0;
    if (drop) {
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.3, 1));
        add_liquid(&t, dimension == 2 ? sphere_shape(0.5, 0.7, 0, 0.12) : sphere_shape(0.5, 0.7, 0.125, 0.1));
    } else {
        add_liquid(&t, box_shape(0, 0, 0, 0.3, 0.7, 1));
    }
    selkie_world *world = make_world(&t);
    const selkie_statistics *s = selkie_world_statistics(world);
    double mass = selkie_world_particle_mass(world) * (double)s->particles;
    double unit = mass * GRAVITY * 0.7, start = s->kinetic_energy + s->potential_energy, least = start, growth = 0.0,
           above = 0.0;
    while (selkie_world_time(world) < 2.0) {
        step_world(world);
        double energy = s->kinetic_energy + s->potential_energy;
        growth = fmax(growth, energy - least); /* above the least so far */
        above = fmax(above, energy - start);
        least = fmin(least, energy);
    }
    assert_int_equal(s->particles, selkie_world_particle_count(world));
    char what[64];
    snprintf(what, sizeof what, "%s %dD %s", drop ? "drop into a pool" : "dam break in a tank", dimension,
             method_name(method));
    at_most(what, "energy above the start / (m g h)", above / unit, 1e-3);
    at_most(what, "largest growth of energy / (m g h)", growth / unit, method == SELKIE_METHOD_APIC ? 1.5e-2 : 5e-3);
    note(what, "energy lost in 2 s / (m g h)", (start - least) / unit);
    note(what, "volume ratio after 2 s", s->volume_ratio);
    selkie_world_destroy(world);
}

/* A dam break with and without implicit density projection, the same step. What is compared is how far the energy lies
 * above that of the same water at rest, over what fell, as the mean over 1 to 3 s. The flow is chaotic: other starts,
 * or another order of sums, and either is ahead by up to four hundredths. Returns what the projection cost. */
static double projected(int dimension, selkie_method method, uint64_t seed)
{
    const double h = 1.0 / (dimension == 2 ? 48 : 24), width = 0.3, height = 0.7;
    double left[2] = {0, 0};
    char what[64];
    for (int n = 0; n < 2; n++) {
        test_scene t;
        tank(&t, dimension, 1, 1, dimension == 3 ? 0.25 : 0, h);
        selkie_scene_set_method(&t.scene, method);
        t.scene.seed = seed;
        t.scene.volume = n ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE;
        t.scene.time.step = 0.005;
        add_liquid(&t, box_shape(0, 0, 0, width, height, 1));
        selkie_world *world = make_world(&t);
        const selkie_statistics *s = selkie_world_statistics(world);
        double mass = selkie_world_particle_mass(world) * (double)s->particles,
               area = 1000.0 * (dimension == 3 ? 0.25 : 1.0);
        double rest = 0.5 * mass * GRAVITY * mass / area, start = s->kinetic_energy + s->potential_energy - rest,
               growth = 0.0;
        int count = 0;
        while (selkie_world_time(world) < 3.0 - 1e-9) {
            step_world(world);
            double energy = (s->kinetic_energy + s->potential_energy - rest) / start;
            growth = fmax(growth, energy - 1.0);
            left[n] += s->time > 1.0 ? energy : 0.0;
            count += s->time > 1.0;
        }
        left[n] /= count;
        snprintf(what, sizeof what, "dam break, 5 ms, %dD %s%s", dimension, method_name(method),
                 volume_name(t.scene.volume));
        note(what, "energy left, 1 to 3 s, of what fell", left[n]);
        if (n)
            at_most(what, "energy above the start, of what fell", growth, 2e-3);
        selkie_world_destroy(world);
    }
    at_most(what, "lost by idp, of what fell", left[0] - left[1], 0.1);
    return left[0] - left[1];
}

static void projection_costs_nothing(void **state)
{
    (void)state;
    /* Two starts each: their scatter of 0.025 leaves an error of 0.009 in the mean of eight. Means of 0.020, 0.022 and,
     * on another processor, 0.035 were seen. The bound is twice that error above their mean. */
    double cost = 0.0;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (uint64_t seed = 1; seed <= 2; seed++)
            cost +=
                (projected(dimension, SELKIE_METHOD_FLIP, seed) + projected(dimension, SELKIE_METHOD_APIC, seed)) / 8.0;
    at_most("dam break, 5 ms, mean of 2D, 3D, FLIP, APIC", "lost by idp, of what fell", cost, 0.044);
}

/* The dam of 0.3 m in a tank of 1.61 m (Buchner 2002), 24 cells deep, with idp and default steps. At 1.2 s the front
 * has run up the far wall and falls back. Steps that converge leave 158 J of 166 J above rest. The bound of 150 J is a
 * twentieth below that, for each start (FLIP keeps 151.2 J or more in 16 of them). The surface has no teeth: these are
 * second differences of the highest particles of neighbouring columns while the surface is smooth. A projection at the
 * end leaves 98 J (FLIP) and 95 J (APIC) at three cells a step. */
static double roughness(const selkie_world *world, double h)
{
    double top[160] = {0.0}, sum = 0.0;
    int count = 0;
    selkie_attribute_view position = attribute_of(world, "position");
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        const int column = (int)(x[0] / h);
        if (column >= 0 && column < 160)
            top[column] = fmax(top[column], x[1] / h);
    }
    for (int i = 2; i < 158; i++)
        if (top[i - 1] > 3.0 && top[i] > 3.0 && top[i + 1] > 3.0) {
            const double bend = top[i] - 0.5 * (top[i - 1] + top[i + 1]);
            sum += bend * bend;
            count++;
        }
    return sqrt(sum / (1.5 * count)); /* independent tops of variance s^2 have a bend of variance 1.5 s^2 */
}

static double dam_energy(selkie_method method, uint64_t seed)
{
    const double h = 0.3 / 24;
    test_scene t;
    tank(&t, 2, 1.61, 0.9, 0, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.seed = seed;
    t.scene.time.cfl = 0.0;
    t.scene.time.fps = 30.0;
    add_liquid(&t, box_shape(0, 0, 0, 0.6, 0.3, 1));
    selkie_world *world = make_world(&t);
    const selkie_statistics *s = selkie_world_statistics(world);
    const double mass = selkie_world_particle_mass(world) * (double)s->particles;
    const double rest = 0.5 * mass * GRAVITY * mass / 1000.0 / (129 * h);
    double rough = 0.0;
    while (selkie_world_time(world) < 1.2 - 1e-9) {
        step_world(world);
        if (s->time > 0.25 && s->time < 0.45)
            rough = fmax(rough, roughness(world, h));
    }

    char what[64];
    snprintf(what, sizeof what, "dam of 0.3 m, default steps, %s idp", method_name(method));
    const double energy = s->kinetic_energy + s->potential_energy - rest;
    at_most(what, "energy above rest at 1.2 s (J)", energy, 167.0);
    at_most(what, "roughness of the surface (cells)", rough, 0.1);
    at_most(what, "volume lost", 1.0 - s->volume_ratio, 0.01);
    selkie_world_destroy(world);
    return energy;
}

static void dam_keeps_its_energy(void **state)
{
    (void)state;
    static const double least[] = {110.0, 150.0, 150.0}; /* J  PIC, FLIP, APIC */
    for (int method = SELKIE_METHOD_PIC; method <= SELKIE_METHOD_APIC; method++) {
        for (uint64_t seed = 1; seed <= 4; seed++)
            between(method_name((selkie_method)method), "energy above rest of the dam (J)",
                    dam_energy((selkie_method)method, seed), least[method], 167.0);
    }
}

static void energy_decays(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int drop = 0; drop < 2; drop++) {
            closed_tank(dimension, SELKIE_METHOD_FLIP, drop);
            closed_tank(dimension, SELKIE_METHOD_APIC, drop);
        }
}

/* A slosh around a fixed ball that lies half in the water, in short steps: a column 0.04 m higher than the rest falls.
 * The closed faces of the ball lie oblique to the grid. No streamline falls by more than the column, so that Bernoulli
 * bounds the speeds under water by sqrt(2 g 0.04 m) = 0.89 m/s. The bound is that of FLIP's particles, which stir more
 * than the liquid flows (APIC: 0.1 m/s). Particles in the splash at the ball's waterline are left out. */
static void slosh_around(selkie_method method, selkie_volume volume)
{
    const double h = 1.0 / 24, head = 0.04;
    test_scene t;
    tank(&t, 2, 1, 0.9, 0, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = volume;
    t.scene.time.step = 0.001;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.5, 1));
    add_liquid(&t, box_shape(0, 0.5, 0, 0.3, 0.5 + head, 1));
    add_obstacle(&t, sphere_shape(0.513, 0.5, 0, 4.3 * h));
    selkie_world *world = make_world_threads(&t.scene, 1); /* small: one thread is the fastest */
    double fastest = 0.0;
    run_until(world, 2.0);
    while (selkie_world_time(world) < 6.0 - 1e-9) {
        step_world(world);
        const selkie_attribute_view position = attribute_of(world, "position"),
                                    velocity = attribute_of(world, "velocity");
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *v = particle_of(&velocity, p);
            if (particle_of(&position, p)[1] < 0.5 - 2 * h)
                fastest = fmax(fastest, hypot(v[0], v[1]));
        }
    }
    char what[64];
    snprintf(what, sizeof what, "slosh around a ball, 1 ms, %s%s", method_name(method), volume_name(volume));
    at_most(what, "largest speed under water, 2 to 6 s (m/s)", fastest, sqrt(2.0 * GRAVITY * head));
    selkie_world_destroy(world);
}

static void sloshes_around_a_ball(void **state)
{
    (void)state;
    for (int method = SELKIE_METHOD_FLIP; method <= SELKIE_METHOD_APIC; method++)
        for (int volume = 0; volume < 2; volume++)
            slosh_around((selkie_method)method, volume ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(energy_decays), cmocka_unit_test(dam_keeps_its_energy),
                                       cmocka_unit_test(projection_costs_nothing),
                                       cmocka_unit_test(sloshes_around_a_ball)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

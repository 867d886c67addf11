/* In a closed tank at rest nobody does work on the liquid: its energy, kinetic and potential together, never grows. (The
 * statistics count the energy of the particles' mean motion; with APIC some sits in their affine motion, comes back from
 * it, and looks like growth.) */
#include "physics.h"

static void closed_tank(int dimension, selkie_method method, int drop)
{
    const double h = 1.0 / (dimension == 2 ? 48 : 24);
    test_scene t;
    tank(&t, dimension, 1, 1, dimension == 3 ? 0.25 : 0, h);
    t.scene.method = method;
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
    double unit = mass * GRAVITY * 0.7, start = s->kinetic_energy + s->potential_energy, least = start, growth = 0.0, above = 0.0;
    while (selkie_world_time(world) < 2.0) {
        step_world(world);
        double energy = s->kinetic_energy + s->potential_energy;
        growth = fmax(growth, energy - least); /* above the least so far */
        above = fmax(above, energy - start);
        least = fmin(least, energy);
    }
    assert_int_equal(s->particles, selkie_world_particle_count(world));
    char what[64];
    snprintf(what, sizeof what, "%s %dD %s", drop ? "drop into a pool" : "dam break in a tank", dimension, method_name(method));
    at_most(what, "energy above the start / (m g h)", above / unit, 1e-3);
    at_most(what, "largest growth of energy / (m g h)", growth / unit, method == SELKIE_METHOD_APIC ? 1.5e-2 : 5e-3);
    note(what, "energy lost in 2 s / (m g h)", (start - least) / unit);
    note(what, "volume ratio after 2 s", s->volume_ratio);
    selkie_world_destroy(world);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(energy_decays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

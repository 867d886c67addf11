/* Heat: both backends, any number of threads, checkpoints, energy, sources, and messages of bad keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend_cases.h"
#include "scene/read.h"
#include "step_cases.h"

typedef struct heat_case {
    step_case c;
    selkie_material_def materials[2];
} heat_case;

/* Warm liquid falls into cold liquid around an obstacle; one or two materials, and they may melt. */
static void begin(heat_case *h, int dimension, int materials, int melts)
{
    step_case *c = &h->c;
    case_begin(c, dimension, 24, 20, 12, 1.0 / 24);
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&h->materials[m]);
        h->materials[m].name = m ? "oil" : "water";
        h->materials[m].density = 1000.0;
        h->materials[m].heat_capacity = m ? 2000.0 : 4000.0;
        h->materials[m].conductivity = m ? 2e4 : 6e4;
        h->materials[m].melting_point = melts ? 300.0 - 10.0 * m : 0.0;
        h->materials[m].latent_heat = melts ? 1e5 : 0.0;
        h->materials[m].solid_conductivity = melts ? 1e5 : 0.0;
    }
    c->scene.materials = h->materials;
    c->scene.material_count = materials;
    c->scene.liquid_count = 2;
    c->liquids[0].material = "water";
    c->liquids[1].material = materials > 1 ? "oil" : "water";
    c->liquids[0].temperature = 280.0;
    c->liquids[1].temperature = 360.0;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 24, 7, 12);
    case_box(c, &c->liquids[1].shape, 2, 9, 0, 14, 17, 12);
    case_ball(c, &c->obstacles[0].shape, 17, 5, 6, 3.3);
    c->scene.obstacle_count = 1;
}

static const float *temperatures(const selkie_world *world)
{
    return (const float *)(const void *)sk_particles_find_attribute(&world->step.particles, "temperature")->data;
}

/* --- Backends --- */

static void plain_and_tuned_agree(void **state)
{
    (void)state;
    for (int n = 0; n < 6; n++) {
        heat_case h;
        backend_pair pair;
        begin(&h, n % 2 + 2, n < 2 ? 1 : 2, n >= 4);
        h.c.obstacles[0].temperature = 330.0;
        h.c.scene.heat.air_temperature = 250.0;
        backend_begin(&pair, &h.c.scene, 4);
        const int p = backend_find(&pair, "heat", 0);
        assert_true(p >= 0);
        sk_phase_function forms[SK_BACKEND_COUNT];
        backend_forms(pair.worlds[0], p, forms);
        backend_run_up_to(pair.worlds[0], p);
        backend_run_up_to(pair.worlds[1], p);
        backend_run_form(pair.worlds[0], p, forms[SK_BACKEND_TUNED]);
        backend_run_form(pair.worlds[1], p, forms[SK_BACKEND_PLAIN]);
        /* The solves of both stop at a part of 1e-5 of a step's change, which is some kelvin. */
        const backend_array array = {"heat", "temperature", n, 1, 1e-4, 0.0};
        backend_compare_floats(array, temperatures(pair.worlds[0]), temperatures(pair.worlds[1]),
                               (size_t)pair.worlds[0]->step.particles.count);
        backend_end(&pair);
    }
}

/* --- Bits --- */

static selkie_world *make(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static void run(selkie_world *world, int steps)
{
    selkie_error error = {0};
    for (int n = 0; n < steps; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("step %d: %s", n, error.message);
}

static void expect_same(const selkie_world *a, const selkie_world *b)
{
    const sk_particles *one = &a->step.particles, *other = &b->step.particles;
    assert_int_equal(one->count, other->count);
    for (int n = 0; n < one->attribute_count; n++)
        assert_memory_equal(one->attributes[n].data, other->attributes[n].data,
                            (size_t)one->count * (size_t)one->attributes[n].components * 4);
    assert_true(a->statistics.heat_energy == b->statistics.heat_energy);
    assert_true(a->statistics.temperature_min == b->statistics.temperature_min);
}

static void same_bits(void **state)
{
    (void)state;
    const char *file = "test_heat.checkpoint";
    selkie_error error = {0};
    for (int n = 0; n < 2; n++) {
        heat_case h;
        begin(&h, n + 2, 2, 1);
        selkie_world *one = make(&h.c.scene, 1), *two = make(&h.c.scene, 2);
        run(one, 6);
        run(two, 3);
        assert_int_equal(selkie_world_save(two, file, &error), SELKIE_OK);
        selkie_world_destroy(two);
        two = make(&h.c.scene, 2);
        if (selkie_world_load(two, file, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        remove(file);
        run(two, 3);
        expect_same(one, two);
        selkie_world_destroy(one);
        selkie_world_destroy(two);
    }
}

/* --- Energy --- */

static void energy_is_kept(void **state)
{
    (void)state;
    static const selkie_method methods[] = {SELKIE_METHOD_PIC, SELKIE_METHOD_FLIP, SELKIE_METHOD_APIC};
    for (int n = 0; n < 6; n++) {
        heat_case h;
        begin(&h, n < 4 ? 2 : 3, n % 2 + 1, n != 3);
        selkie_scene_set_method(&h.c.scene, methods[n % 3]);
        h.c.scene.volume = n > 2 ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE;
        h.c.scene.incompressibility = n == 0 ? SELKIE_INCOMPRESSIBILITY_UNILATERAL : SELKIE_INCOMPRESSIBILITY_BILATERAL;
        selkie_world *world = make(&h.c.scene, 2);
        const double before = world->statistics.heat_energy;
        run(world, n < 4 ? 40 : 8);
        const double after = world->statistics.heat_energy;
        /* Double sums of some thousand particles and steps. */
        if (!(fabs(after / before - 1) < 1e-12))
            fail_msg("case %d: energy %.17g J became %.17g J", n, before, after);
        assert_true(world->statistics.temperature_max < 360.01 && world->statistics.temperature_min > 279.99);
        selkie_world_destroy(world);
    }
}

/* A source brings its heat along, a drain takes it. */
static void sources_and_drains(void **state)
{
    (void)state;
    heat_case h;
    begin(&h, 2, 1, 0);
    selkie_source_def source;
    selkie_source_defaults(&source);
    case_box(&h.c, &source.shape, 16, 15, 0, 20, 18, 1);
    source.velocity[1] = -1.0;
    source.temperature = 400.0;
    h.c.scene.sources = &source;
    h.c.scene.source_count = 1;
    h.materials[0].conductivity = 0.0;
    selkie_world *world = make(&h.c.scene, 2);
    const double before = world->statistics.heat_energy;
    run(world, 20);
    const double emitted = (double)world->step.emitted * world->step.particle_mass * 4000.0 * (400.0 - (double)273.15f);
    assert_true(world->step.emitted > 0);
    assert_true(fabs(world->statistics.heat_energy - before - emitted) < 1e-10 * before);
    assert_true(world->statistics.temperature_max == 400.0);
    selkie_world_destroy(world);
}

/* A soft body of oil starts at its temperature, 293.15 K if not given, and exchanges heat with the water. */
static void bodies_conduct(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        heat_case h;
        begin(&h, 2, 2, 0);
        selkie_body_def body;
        selkie_body_defaults(&body);
        body.material = "oil";
        case_box(&h.c, &body.shape, 2, 9, 0, 14, 17, 12);
        if (n)
            body.temperature = 360.0;
        h.materials[1].kind = SELKIE_MATERIAL_SOFT;
        h.c.scene.bodies = &body;
        h.c.scene.body_count = 1;
        h.c.scene.liquid_count = 1;
        h.c.liquids[0].temperature = 293.15;
        selkie_world *world = make(&h.c.scene, 2);
        const double before = world->statistics.heat_energy;
        run(world, 40);
        assert_true(fabs(world->statistics.heat_energy - before) < 1e-12 * fabs(before));
        /* Without a difference nothing flows: rounding of single temperatures. */
        const double least = world->statistics.temperature_min, most = world->statistics.temperature_max;
        assert_true(least > 293.1499 && (n || least < 293.1501));
        assert_true(n ? most < 360.001 && most > 300.0 : fabs(most - 293.15) < 1e-4);
        double water = 0.0;
        const sk_attribute *owner = sk_particles_find_attribute(&world->step.particles, "body");
        for (int64_t p = 0; p < world->step.particles.count; p++)
            water += owner->data[p] ? 0.0 : (double)temperatures(world)[p] - 293.15;
        assert_true(n ? water > 1.0 : fabs(water) < 1.0);
        selkie_world_destroy(world);
    }
}

/* --- Messages --- */

#define SCENE_HEAD                                                                                                     \
    "{\"domain\": {\"dimension\": 2, \"size\": [4, 4]%s}, \"materials\": [{\"name\": \"wax\", \"heat_capacity\": "     \
    "2000%s}%s], \"liquids\": [{\"material\": \"wax\", \"shape\": {\"type\": \"box\", \"min\": [0, 0], \"max\": [3, "  \
    "3]}}]%s}"

static void bad_keys(void **state)
{
    (void)state;
    static const struct {
        const char *domain, *material, *more, *scene, *expected;
    } rows[] = {
        {"", ", \"conductivity\": -1", "", "", "materials[0].conductivity: -1"},
        {"", ", \"melting_point\": 200", "", "", "materials[0].melting_point: 200 K is below every temperature"},
        {"", "", ", {\"name\": \"gum\", \"kind\": \"soft\", \"heat_capacity\": 2000, \"melting_point\": 320}", "",
         "materials[1].melting_point: 320 K of a material of kind"},
        {"", ", \"latent_heat\": 200", "", "", "materials[0].latent_heat: 200 without a melting_point"},
        {"", ", \"solid_density\": 900", "", "", "materials[0].solid_density: 900 without a melting_point"},
        {"", "", ", {\"name\": \"oil\"}", "", "materials[1].heat_capacity: is missing"},
        {", \"heat_exchange\": {\"x_min\": 5}", "", "", "", "domain.heat_exchange.x_min: 5 W/(m2 K) without"},
        {", \"walls\": {\"x_min\": \"open\"}, \"temperature\": {\"x_min\": 5}", "", "", "",
         "domain.temperature.x_min: 5 K of an open side"},
        {"", "", "",
         ", \"obstacles\": [{\"heat_exchange\": 5, \"shape\": {\"type\": \"sphere\", \"center\": [1, 1], \"radius\": "
         "1}}]",
         "obstacles[0].heat_exchange: 5 W/(m2 K) without a temperature"},
        {"", ", \"viscosity_activation\": 500", "", "", "materials[0].viscosity_activation: 500 K without"},
        {"", ", \"viscosity\": 1, \"viscosity_temperature\": 350, \"viscosity_offset\": 300", "", "",
         "materials[0].viscosity_offset: 300 K: the law has a pole"},
        {"",
         ", \"viscosity_table\": [{\"temperature\": 300, \"viscosity\": 1}, {\"temperature\": 300, \"viscosity\": 1}]",
         "", "", "materials[0].viscosity_table[1].temperature: 300 K is not above"},
        {"", "", "",
         ", \"discretization\": \"sph\", \"probes\": [{\"name\": \"t\", \"type\": \"temperature\", \"at\": [1, 1]}]",
         "probes[0].type: \"temperature\" without heat"},
    };
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char text[1024];
        selkie_scene *scene;
        selkie_error error;
        snprintf(text, sizeof text, SCENE_HEAD, rows[n].domain, rows[n].material, rows[n].more, rows[n].scene);
        const sk_scene_text source = {.text = text, .length = strlen(text), .name = "test.json", .folder = "."};
        if (sk_scene_parse(&source, &scene, &error) == SELKIE_OK)
            fail_msg("accepted, but should say: %s", rows[n].expected);
        if (!strstr(error.message, rows[n].expected) || strchr(error.message, '\n'))
            fail_msg("says: %s\nshould say: %s", error.message, rows[n].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_tuned_agree), cmocka_unit_test(same_bits),      cmocka_unit_test(energy_is_kept),
        cmocka_unit_test(sources_and_drains),    cmocka_unit_test(bodies_conduct), cmocka_unit_test(bad_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

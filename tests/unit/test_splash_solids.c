/* Splashes in scenes with solids: bodies of particles, ice, elastoplastic points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "splash_cases.h"

/* The dam with a box of another material before it, or of ice. */
typedef struct mixed_dam {
    dam d;
    selkie_liquid_def liquids[3];
    selkie_material_def materials[2];
    selkie_body_def body;
} mixed_dam;
enum { MIXED_SOFT, MIXED_ICE, MIXED_POINTS, MIXED_COUNT };

static void mixed_scene(mixed_dam *m, int kind)
{
    selkie_scene *scene = &m->d.scene;
    dam_scene(&m->d);
    for (int n = 0; n < 2; n++) {
        selkie_material_defaults(&m->materials[n]);
        m->materials[n].name = n ? "solid" : "water";
    }
    scene->materials = m->materials;
    scene->material_count = kind == MIXED_ICE ? 1 : 2;
    scene->splash.rate = 20.0;

    selkie_shape box;
    selkie_shape_defaults(&box, SELKIE_SHAPE_BOX);
    for (int k = 0; k < 2; k++) {
        box.min[k] = k ? 0.08 : 0.4;
        box.max[k] = k ? 0.2 : 0.52;
    }
    memcpy(m->liquids, m->d.liquids, sizeof m->d.liquids);
    selkie_liquid_defaults(&m->liquids[2]);
    m->liquids[2].shape = box;
    scene->liquids = m->liquids;
    for (int l = 0; l < 3; l++) {
        m->liquids[l].material = l == 2 && kind == MIXED_POINTS ? "solid" : "water";
        if (kind == MIXED_ICE)
            m->liquids[l].temperature = l == 2 ? 250.0 : 300.0;
    }
    if (kind == MIXED_SOFT) {
        m->materials[1].kind = SELKIE_MATERIAL_SOFT;
        m->materials[1].density = 500.0;
        selkie_body_defaults(&m->body);
        m->body.shape = box;
        m->body.material = "solid";
        scene->bodies = &m->body;
        scene->body_count = 1;
    } else {
        scene->liquid_count = 3;
    }
    if (kind == MIXED_ICE) {
        m->materials[0].heat_capacity = 4186.0;
        m->materials[0].conductivity = 0.6;
        m->materials[0].melting_point = 273.15;
        m->materials[0].latent_heat = 334000.0;
    }
    if (kind == MIXED_POINTS) {
        m->materials[1].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
        m->materials[1].elastoplastic.young = 1e5;
        m->materials[1].elastoplastic.poisson = 0.3;
    }
}

/* Is every droplet liquid? Solids are at hand. */
static void droplets_are_liquid(const selkie_world *world, int kind)
{
    const int64_t count = selkie_world_particle_count(world);
    selkie_attribute_view age, what;
    int64_t solid = 0;
    assert_int_equal(selkie_world_find_attribute(world, "splash", &age, NULL), SELKIE_OK);
    assert_int_equal(
        selkie_world_find_attribute(world, kind == MIXED_ICE ? "liquid_fraction" : "material", &what, NULL), SELKIE_OK);
    for (int64_t p = 0; p < count; p++) {
        const void *value = (char *)what.data + (size_t)p * what.stride;
        const int is_solid = kind == MIXED_ICE ? *(const float *)value < 0.5f : *(const uint32_t *)value != 0;
        const float t = *(float *)(void *)((char *)age.data + (size_t)p * age.stride);
        solid += is_solid;
        assert_true(!(is_solid && t > 0.0f));
    }
    assert_true(solid > 100);
}

/* Water that splashes over a soft body, ice and elastoplastic points: these make no droplets, and the runs have the
 * same bits on any number of threads and after a checkpoint. */
static void beside_solids(void **state)
{
    (void)state;
    for (int kind = 0; kind < MIXED_COUNT; kind++) {
        mixed_dam m;
        mixed_scene(&m, kind);
        selkie_error error = {0};
        char path[] = "/tmp/selkie-test-splashes-XXXXXX";
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        selkie_world *one = new_world(&m.d.scene, 1), *three = new_world(&m.d.scene, 3),
                     *resumed = new_world(&m.d.scene, 2);
        const int64_t count = selkie_world_particle_count(one);
        for (double time = 0.05; time < 0.41; time += 0.05) {
            run_to(one, time);
            droplets_are_liquid(one, kind);
        }
        run_to(three, 0.25);
        assert_int_equal(selkie_world_save(three, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
        run_to(three, selkie_world_time(one));
        run_to(resumed, selkie_world_time(one));
        same_particles(one, three);
        same_particles(one, resumed);
        print_message("kind %d: %lld made beside solids\n", kind,
                      (long long)selkie_world_statistics(one)->splashes_made);
        assert_true(selkie_world_statistics(one)->splashes_made > 5);
        assert_int_equal(selkie_world_particle_count(one), count);
        selkie_world_destroy(one);
        selkie_world_destroy(three);
        selkie_world_destroy(resumed);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_solids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

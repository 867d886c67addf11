/* Discretization, transfer and the materials of a scene: what files may say, what is refused, and what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <selkie/scene.h>
#include <selkie/world.h>
#include "selkie_config.h"
#include "defs/materials.h"
#include "scene/read.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define DOMAIN "\"domain\": {\"size\": [4, 4, 4]}"
#define BOX "\"shape\": {\"type\": \"box\", \"min\": [0, 0, 0], \"max\": [3, 3, 3]}"

static selkie_code try_text(const char *text, const char *override, selkie_scene **scene, selkie_error *error)
{
    const sk_scene_text source = {.text = text,
                                  .length = strlen(text),
                                  .name = "test.json",
                                  .folder = ".",
                                  .override_count = override ? 1 : 0,
                                  .overrides = &override};
    return sk_scene_parse(&source, scene, error);
}

static selkie_scene *parse(const char *text, const char *override)
{
    selkie_scene *scene;
    selkie_error error;
    if (try_text(text, override, &scene, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return scene;
}

/* The message must hold `expected` and be one line. */
static void expect(const char *text, const char *override, const char *expected)
{
    selkie_scene *scene;
    selkie_error error;
    if (try_text(text, override, &scene, &error) == SELKIE_OK)
        fail_msg("accepted, but should say: %s", expected);
    assert_null(scene);
    if (!strstr(error.message, expected) || strchr(error.message, '\n'))
        fail_msg("says: %s\nshould say: %s", error.message, expected);
}

/* --- The older key "method" --- */

static void method_is_an_alias(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *override;
        selkie_discretization discretization;
        selkie_transfer transfer;
    } rows[] = {
        {"", NULL, SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_FLIP},
        {"\"method\": \"pic\",", NULL, SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_PIC},
        {"\"method\": \"flip\",", NULL, SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_FLIP},
        {"\"method\": \"apic\",", NULL, SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_APIC},
        {"\"method\": \"sph\",", NULL, SELKIE_DISCRETIZATION_SPH, SELKIE_TRANSFER_FLIP},
        {"", "method=sph", SELKIE_DISCRETIZATION_SPH, SELKIE_TRANSFER_FLIP},
        {"", "method=\"pic\"", SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_PIC},
        {"\"method\": \"sph\",", "method=apic", SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_APIC},
        {"\"discretization\": \"sph\",", "method=apic", SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_APIC},
        {"\"method\": \"pic\",", "transfer=apic", SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_APIC},
        {"\"transfer\": \"apic\",", "method=sph", SELKIE_DISCRETIZATION_SPH, SELKIE_TRANSFER_APIC},
        {"\"method\": \"apic\", \"transfer\": \"apic\",", NULL, SELKIE_DISCRETIZATION_GRID, SELKIE_TRANSFER_APIC},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        char text[400];
        snprintf(text, sizeof text, "{" DOMAIN ", %s \"liquids\": [{" BOX "}]}", rows[i].keys);
        selkie_scene *scene = parse(text, rows[i].override);
        assert_int_equal(scene->discretization, rows[i].discretization);
        assert_int_equal(scene->transfer, rows[i].transfer);
        selkie_scene_free(scene);
    }
}

static void method_that_contradicts_is_refused(void **state)
{
    (void)state;
    expect("{" DOMAIN ", \"method\": \"flip\", \"discretization\": \"sph\", \"liquids\": [{" BOX "}]}", NULL,
           "method: \"flip\" means discretization \"grid\", but the scene also says \"discretization\": \"sph\"");
    expect("{" DOMAIN ", \"transfer\": \"pic\", \"method\": \"apic\", \"liquids\": [{" BOX "}]}", NULL,
           "method: \"apic\" means transfer \"apic\", but the scene also says \"transfer\": \"pic\"; leave method out");
    expect("{" DOMAIN ", \"liquids\": [{" BOX "}]}", "method=flap",
           "--set method=flap: \"flap\" is no choice: must be \"pic\", \"flip\", \"apic\" or \"sph\"");
}

static void method_is_not_written(void **state)
{
    (void)state;
    const char *path = "materials_saved.json";
    selkie_error error;
    selkie_scene *scene = parse("{" DOMAIN ", \"method\": \"apic\", \"liquids\": [{" BOX "}]}", NULL), *again;
    assert_int_equal(selkie_scene_save(scene, path, &error), SELKIE_OK);
    char text[1 << 14] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_null(strstr(text, "\"method\""));
    assert_non_null(strstr(text, "\"transfer\": \"apic\""));
    assert_int_equal(selkie_scene_load(path, 0, NULL, &again, &error), SELKIE_OK);
    assert_int_equal(again->transfer, SELKIE_TRANSFER_APIC);
    selkie_scene_free(scene);
    selkie_scene_free(again);
    remove(path);
}

static void method_is_set_by_programs(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    selkie_scene_set_method(&scene, SELKIE_METHOD_APIC);
    assert_int_equal(scene.discretization, SELKIE_DISCRETIZATION_GRID);
    assert_int_equal(scene.transfer, SELKIE_TRANSFER_APIC);
    selkie_scene_set_method(&scene, SELKIE_METHOD_SPH);
    assert_int_equal(scene.discretization, SELKIE_DISCRETIZATION_SPH);
    selkie_scene_set_method(&scene, SELKIE_METHOD_PIC);
    assert_int_equal(scene.discretization, SELKIE_DISCRETIZATION_GRID);
    assert_int_equal(scene.transfer, SELKIE_TRANSFER_PIC);
}

/* --- The table of materials --- */

#define WATER "{\"name\": \"water\"}"
#define OIL "{\"name\": \"oil\", \"density\": 900}"
#define SCENE(materials, liquid) "{" DOMAIN ", \"materials\": [" materials "], \"liquids\": [{" BOX liquid "}]}"

static void materials_are_read(void **state)
{
    (void)state;
    selkie_scene *scene = parse(SCENE(WATER ", " OIL, ", \"material\": \"oil\""), NULL);
    assert_int_equal(scene->material_count, 2);
    assert_string_equal(scene->materials[0].name, "water");
    assert_true(scene->materials[0].density == 1000.0);
    assert_true(scene->materials[1].density == 900.0);
    assert_int_equal(scene->materials[1].kind, SELKIE_MATERIAL_LIQUID);
    assert_int_equal(sk_scene_find_material(scene, scene->liquids[0].material), 1);
    assert_int_equal(sk_scene_find_material(scene, ""), 0);
    assert_int_equal(sk_scene_find_material(scene, "honey"), -1);
    assert_true(sk_scene_has_densities(scene));
    assert_true(sk_scene_density(scene, 1) == 900.0);
    selkie_scene_free(scene);

    scene = parse(SCENE("{\"name\": \"honey\", \"viscosity\": 0.01}", ""), NULL); /* the only one needs no name */
    assert_false(sk_scene_has_densities(scene));
    assert_true(sk_scene_viscosity(scene) == 0.01);
    selkie_scene_free(scene);

    /* Pa s over kg/m3. */
    scene = parse(SCENE("{\"name\": \"honey\", \"density\": 1400, \"dynamic_viscosity\": 7}", ""), NULL);
    assert_true(sk_scene_viscosity(scene) == 7.0 / 1400.0);
    selkie_scene_free(scene);
    scene = parse("{" DOMAIN ", \"dynamic_viscosity\": 7, \"liquids\": [{" BOX ", \"density\": 700}]}", NULL);
    assert_true(sk_scene_viscosity(scene) == 0.01);
    selkie_scene_free(scene);
    scene = parse("{" DOMAIN ", \"viscosity\": 0.5, \"liquids\": [{" BOX ", \"density\": 700}]}", NULL);
    assert_true(sk_scene_density(scene, 0) == 700.0);
    assert_true(sk_scene_viscosity(scene) == 0.5);
    selkie_scene_free(scene);
}

static void bad_materials_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *override, *expected;
    } rows[] = {
        {SCENE(WATER ", " OIL, ", \"material\": \"oli\""), NULL,
         "liquids[0].material: \"oli\" is not known: must be one of \"water\", \"oil\""},
        {SCENE(WATER ", " OIL, ""), NULL, "liquids[0].material: is missing: must be one of \"water\", \"oil\""},
        {SCENE("", ", \"material\": \"oil\""), NULL,
         "liquids[0].material: \"oil\" is not known: the scene has no materials"},
        {SCENE(WATER ", " WATER, ", \"material\": \"water\""), NULL,
         "materials[1].name: \"water\" is the name of materials[0] already: choose another"},
        {SCENE("{\"name\": \"\"}", ""), NULL, "materials[0].name: is empty"},
        {SCENE("{\"density\": 2}", ""), NULL, "the key \"name\" is missing"},
        {SCENE("{\"name\": \"void\", \"density\": 0}", ""), NULL,
         "materials[0].density: 0 is out of range: must be at least 0.001 kg/m3"},
        {SCENE("{\"name\": \"void\", \"density\": -3}", ""), NULL, "materials[0].density: -3 is out of range"},
        {SCENE("{\"name\": \"iron\", \"kind\": \"rigid\"}", ""), NULL,
         "materials[0].kind: the first material must be a liquid"},
        {"{" DOMAIN ", \"materials\": [{\"name\": \"water\"}], \"liquids\": [{" BOX "}], \"bodies\": [{\"material\": "
         "\"iron\", " BOX "}]}",
         NULL,
         "bodies[0].material: \"iron\" is not known: must be the name of a material of kind \"rigid\" or \"soft\""},
        {"{" DOMAIN ", \"materials\": [{\"name\": \"water\"}], \"liquids\": [{" BOX "}], \"bodies\": [{\"material\": "
         "\"water\", " BOX "}]}",
         NULL, "bodies[0].material: \"water\" is a liquid"},
        {"{" DOMAIN ", \"materials\": [{\"name\": \"water\"}, {\"name\": \"iron\", \"kind\": \"rigid\"}], "
         "\"liquids\": [{\"material\": \"iron\", " BOX "}]}",
         NULL, "liquids[0].material: \"iron\" is of kind \"rigid\" or \"soft\": bodies alone are made of it"},
        {SCENE("{\"name\": \"sand\", \"kind\": \"granular\"}", ""), NULL, "\"granular\" is not simulated yet"},
        {SCENE("{\"name\": \"air\", \"kind\": \"gas\"}", ""), NULL, "\"gas\" is no choice"},
        {SCENE(WATER, ", \"density\": 900"), NULL,
         "liquids[0].density: 900 kg/m3 stands beside a table of materials: the density belongs there"},
        {SCENE(WATER ", {\"name\": \"honey\", \"viscosity\": 1}", ", \"material\": \"water\""), "discretization=sph",
         "materials[1].viscosity: 1 m2/s differs from that of materials[0], 0"},
        {SCENE("{\"name\": \"honey\", \"viscosity\": 1}", ""), "viscosity=2",
         "materials[0].viscosity: 1 m2/s stands beside the scene's viscosity, 2: give one of them"},
        {SCENE("{\"name\": \"honey\", \"viscosity\": 1, \"dynamic_viscosity\": 3}", ""), NULL,
         "materials[0].dynamic_viscosity: 3 Pa s stands beside a viscosity, 1 m2/s: give one of them"},
        {SCENE("{\"name\": \"honey\", \"dynamic_viscosity\": 1}", ""), "viscosity=2",
         "materials[0].dynamic_viscosity: 1 Pa s stands beside the scene's viscosity, 2: give one of them"},
        {SCENE(WATER ", " OIL, ", \"material\": \"oil\""), "discretization=sph",
         "materials[1].density: 900 kg/m3 differs from that of materials[0], 1000: discretization \"sph\" takes one "
         "density so far"},
        {SCENE(WATER ", " OIL, ", \"material\": \"oil\""), "incompressibility=unilateral",
         "incompressibility \"unilateral\" takes one density so far"},
        {SCENE(WATER ", " OIL, ", \"material\": \"oil\""),
         "sources[0]={\"shape\": {\"type\": \"sphere\", \"center\": [1, 1, 1], \"radius\": 1}, \"material\": \"ink\"}",
         "sources[0].material: \"ink\" is not known"},
    };
    for (int i = 0; i < COUNT(rows); i++)
        expect(rows[i].text, rows[i].override, rows[i].expected);
}

static void too_many_materials_are_refused(void **state)
{
    (void)state;
    static selkie_material_def materials[256];
    static char names[256][8];
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_error error;
    selkie_scene_defaults(&scene);
    selkie_liquid_defaults(&liquid);
    for (int m = 0; m < 256; m++) {
        selkie_material_defaults(&materials[m]);
        snprintf(names[m], sizeof names[m], "m%d", m);
        materials[m].name = names[m];
    }
    liquid.material = "m254";
    scene.domain.size[0] = scene.domain.size[1] = scene.domain.size[2] = 1.0;
    scene.liquids = &liquid;
    scene.liquid_count = 1;
    scene.materials = materials;
    scene.material_count = 255;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_OK);
    scene.material_count = 256;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_string_equal(error.message, "materials: 256 materials are too many: at most 255");
}

static void keys_without_effect_are_noted(void **state)
{
    (void)state;
    char note[256];
    selkie_scene *scene = parse(SCENE(WATER, ""), NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 0);
    selkie_scene_free(scene);
    scene = parse(SCENE("{\"name\": \"w\", \"surface_tension\": 0.07, \"melting_point\": 273}", ""), NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "materials[0].melting_point: has no effect: heat is not simulated");
    assert_int_equal(sk_scene_note(scene, 1, note, sizeof note), 0);
    selkie_scene_free(scene);
    scene = parse(SCENE("{\"name\": \"w\", \"soft\": {\"stiffness\": 50}}", ""), NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "materials[0].soft: has no effect on a liquid: kind \"soft\" makes bodies of it");
    selkie_scene_free(scene);
    scene = parse("{" DOMAIN ", \"discretization\": \"sph\", \"transfer\": \"apic\", \"liquids\": [{" BOX "}]}", NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "transfer: has no effect with discretization sph");
    selkie_scene_free(scene);
    scene = parse("{" DOMAIN ", \"splash\": {\"rate\": 2, \"air_drag\": 1}, \"liquids\": [{" BOX "}]}", NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "splash.rate: has no effect without \"splashes\"");
    assert_int_equal(sk_scene_note(scene, 1, note, sizeof note), 0);
    selkie_scene_free(scene);
    scene = parse("{" DOMAIN ", \"contact_angle\": 60, \"liquids\": [{" BOX "}]}", NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "contact_angle: has no effect without \"surface_tension\"");
    assert_int_equal(sk_scene_note(scene, 1, note, sizeof note), 0);
    selkie_scene_free(scene);
    scene = parse("{" DOMAIN ", \"volume\": \"none\", \"idp\": {\"settle\": 3}, \"liquids\": [{" BOX "}]}", NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "idp.settle: has an effect with volume idp only");
    assert_int_equal(sk_scene_note(scene, 1, note, sizeof note), 0);
    selkie_scene_free(scene);
    scene =
        parse("{" DOMAIN ", \"viscosity\": 0.1, \"bodies\": [{\"liquid_friction\": 0.3, \"surface\": \"no_slip\", " BOX
              "}], \"liquids\": [{" BOX "}]}",
              NULL);
    assert_int_equal(sk_scene_note(scene, 0, note, sizeof note), 1);
    assert_string_equal(note, "bodies[0].liquid_friction: has an effect at free_slip surfaces only");
    assert_int_equal(sk_scene_note(scene, 1, note, sizeof note), 0);
    selkie_scene_free(scene);
}

/* --- Checkpoints --- */

static void run_steps(selkie_world *world, int count)
{
    selkie_error error;
    for (int n = 0; n < count; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

/* Energies of liquids with different densities go on to the same bits, also where liquid leaves through an open side:
 * then the loaded particles have other partial sums. More particles than one partial sum takes, 16384. */
static void energies_resume_to_the_same_bits(void **state)
{
    (void)state;
    selkie_scene *scene =
        parse("{\"domain\": {\"dimension\": 2, \"size\": [2, 1], \"cell_size\": 0.0125,"
              " \"walls\": {\"x_max\": \"open\"}},"
              " \"materials\": [{\"name\": \"water\", \"density\": 1000}, {\"name\": \"oil\", \"density\": 800}],"
              " \"liquids\": [{\"shape\": {\"type\": \"box\", \"min\": [1.0, 0], \"max\": [2, 0.3]},"
              " \"velocity\": [3, 0], \"material\": \"water\"},"
              " {\"shape\": {\"type\": \"box\", \"min\": [1.0, 0.3], \"max\": [2, 0.5]},"
              " \"velocity\": [3, 0], \"material\": \"oil\"}],"
              " \"time\": {\"end\": 1, \"step\": 0.004}}",
              NULL);
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = 2;
    selkie_world *unbroken, *resumed;
    selkie_error error;
    assert_int_equal(selkie_world_create(scene, &options, &unbroken, &error), SELKIE_OK);
    assert_int_equal(selkie_world_create(scene, &options, &resumed, &error), SELKIE_OK);
    assert_true(selkie_world_particle_count(unbroken) > 20000);
    char path[] = "/tmp/selkie_densities_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);

    run_steps(unbroken, 5);
    assert_int_equal(selkie_world_save(unbroken, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    for (int n = 0; n < 3; n++) {
        run_steps(unbroken, 1);
        run_steps(resumed, 1);
        const selkie_statistics *a = selkie_world_statistics(unbroken), *b = selkie_world_statistics(resumed);
        assert_true(a->drained > 0);
        assert_true(a->potential_energy == b->potential_energy && a->kinetic_energy == b->kinetic_energy);
    }
    selkie_world_destroy(unbroken);
    selkie_world_destroy(resumed);
    selkie_scene_free(scene);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(method_is_set_by_programs),
        cmocka_unit_test(too_many_materials_are_refused),
#if SELKIE_HAVE_JSON
        cmocka_unit_test(method_is_an_alias),
        cmocka_unit_test(method_that_contradicts_is_refused),
        cmocka_unit_test(method_is_not_written),
        cmocka_unit_test(materials_are_read),
        cmocka_unit_test(bad_materials_are_refused),
        cmocka_unit_test(keys_without_effect_are_noted),
        cmocka_unit_test(energies_resume_to_the_same_bits),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Discretization, transfer and the materials of a scene: what files may say, what is refused, and what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <selkie/scene.h>
#include "scene/read.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define DOMAIN "\"domain\": {\"size\": [4, 4, 4]}"
#define BOX "\"shape\": {\"type\": \"box\", \"min\": [0, 0, 0], \"max\": [3, 3, 3]}"

static selkie_code try_text(const char *text, const char *override, selkie_scene **scene, selkie_error *error)
{
    return sk_scene_parse(text, strlen(text), "test.json", ".", override ? 1 : 0, &override, scene, error);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(method_is_an_alias),
        cmocka_unit_test(method_that_contradicts_is_refused),
        cmocka_unit_test(method_is_not_written),
        cmocka_unit_test(method_is_set_by_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

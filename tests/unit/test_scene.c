/* Scene files: defaults, round trips, and what is made from the table of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <sys/stat.h>

#include "scene_cases.h"
#include "base/random.h"
#include "defs/describe.h"
#include "defs/fields.h"
#include "defs/structs.h"

#define DOCS SELKIE_SCENES "/../docs"

/* --- Defaults and small questions --- */

static void defaults_are_as_documented(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    assert_int_equal(scene.domain.dimension, 3);
    assert_int_equal(scene.domain.resolution, 64);
    assert_true(scene.domain.cell_size == 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(scene.domain.walls[i], SELKIE_WALL_FREE_SLIP);
    assert_true(scene.gravity[0] == 0 && scene.gravity[1] == -9.81 && scene.gravity[2] == 0);
    assert_true(scene.time.end == 5 && scene.time.fps == 30 && scene.time.step == 0 && scene.time.cfl == 0);
    assert_true(scene.time.min_step == 1e-6 && scene.time.max_step == 0);
    assert_true(scene.seed == 1 && scene.particles.per_cell == 0);
    assert_int_equal(scene.particles.arrangement, SELKIE_ARRANGEMENT_AUTO);
    assert_int_equal(scene.discretization, SELKIE_DISCRETIZATION_GRID);
    assert_int_equal(scene.transfer, SELKIE_TRANSFER_FLIP);
    assert_true(scene.flip_ratio == 0.97 && scene.viscosity == 0);
    assert_true(scene.pressure.tolerance == 1e-4 && scene.pressure.max_iterations == 100);
    assert_int_equal(scene.pressure.surface, SELKIE_SURFACE_GHOST_FLUID);
    assert_int_equal(scene.advection.order, 2);
    assert_true(scene.output.ply == 1 && scene.output.vtp == 0 && scene.output.every == 1);
    assert_true(scene.output.checkpoint_interval == 60 && scene.output.checkpoint_keep == 2);
    assert_true(scene.render.width == 1280 && scene.render.height == 0 && scene.render.field_of_view == 40);
    selkie_liquid_def liquid;
    selkie_liquid_defaults(&liquid);
    assert_true(liquid.density == 1000);
    assert_string_equal(liquid.name, "");
    selkie_source_def source;
    selkie_source_defaults(&source);
    assert_true(source.start == 0 && source.end == -1);
    selkie_drain_def drain;
    selkie_drain_defaults(&drain);
    assert_true(drain.start == 0 && drain.end == -1);
    selkie_body_def body;
    selkie_body_defaults(&body);
    assert_true(body.density == 500 && body.move[2] == 1 && body.turn[0] == 1 && body.friction == 0.3);
    selkie_force_def force;
    selkie_force_defaults(&force, SELKIE_FORCE_VORTEX);
    assert_true(force.kind == SELKIE_FORCE_VORTEX && force.axis[1] == 1 && force.end == -1);
    assert_int_equal(force.falloff, SELKIE_FALLOFF_SMOOTH);
    selkie_obstacle_def obstacle;
    selkie_obstacle_defaults(&obstacle);
    assert_int_equal(obstacle.keyframe_count, 0);
    selkie_probe_def probe;
    selkie_probe_defaults(&probe);
    assert_int_equal(probe.direction, 1);
    selkie_shape shape;
    selkie_shape_defaults(&shape, SELKIE_SHAPE_MESH);
    assert_int_equal(shape.kind, SELKIE_SHAPE_MESH);
    assert_true(shape.scale[0] == 1 && shape.scale[2] == 1);
}

static void cells_and_up(void **state)
{
    (void)state;
    selkie_scene scene;
    int cells[3];
    double up[3];
    selkie_scene_defaults(&scene);
    scene.domain.size[0] = 1.6, scene.domain.size[1] = 0.9, scene.domain.size[2] = 0.8;
    assert_true(fabs(selkie_scene_cells(&scene, cells) - 0.025) < 1e-15);
    assert_true(cells[0] == 64 && cells[1] == 36 && cells[2] == 32);
    scene.domain.cell_size = 0.1; /* 1.6 / 0.1 is a little above or below 16: rounding must not add a cell */
    assert_true(selkie_scene_cells(&scene, cells) == 0.1);
    assert_true(cells[0] == 16 && cells[1] == 9 && cells[2] == 8);
    scene.domain.cell_size = 0.3;
    selkie_scene_cells(&scene, cells);
    assert_true(cells[0] == 6 && cells[1] == 3 && cells[2] == 3);
    scene.domain.dimension = 2;
    selkie_scene_cells(&scene, cells);
    assert_int_equal(cells[2], 1);
    scene.domain.size[0] = NAN;
    selkie_scene_cells(&scene, cells);
    selkie_scene_up(&scene, up);
    assert_true(up[0] == 0 && up[1] == 1 && up[2] == 0);
    scene.domain.dimension = 3;
    scene.gravity[1] = 0, scene.gravity[2] = -3;
    selkie_scene_up(&scene, up);
    assert_true(up[0] == 0 && up[1] == 0 && up[2] == 1);
    scene.gravity[2] = 0;
    selkie_scene_up(&scene, up);
    assert_true(up[1] == 1);
}

/* What only a program can do wrong. */
static void checks_of_structs(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_error error;
    selkie_scene_defaults(&scene);
    scene.domain.size[0] = scene.domain.size[1] = scene.domain.size[2] = 1;
    scene.liquid_count = 1;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_string_equal(error.message, "liquids: 1 elements are announced but the pointer is NULL");
    selkie_liquid_def liquid;
    selkie_liquid_defaults(&liquid);
    liquid.name = NULL;
    scene.liquids = &liquid;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_OK);
    scene.liquid_count = -1;
    assert_int_equal(selkie_scene_check(&scene, NULL), SELKIE_ERROR_INPUT);
    scene.liquid_count = 1;
    scene.transfer = (selkie_transfer)7;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_string_equal(error.message, "transfer: 7 is no choice: must be \"pic\", \"flip\" or \"apic\"");
    selkie_scene_set_method(&scene, SELKIE_METHOD_PIC);
    scene.output.ply = 2;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    scene.output.ply = 1;
    /* A union that contains itself must end, not run off. */
    selkie_shape ring;
    selkie_shape_defaults(&ring, SELKIE_SHAPE_UNION);
    ring.child_count = 1;
    ring.children = &ring;
    liquid.shape = ring;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "deep in each other"));
    selkie_scene *copy;
    assert_int_equal(sk_scene_copy(&scene, &copy, &error), SELKIE_ERROR_INPUT);
    assert_null(copy);
}

/* --- Round trips --- */

static int has_file(const selkie_shape *shape)
{
    int found = shape->kind == SELKIE_SHAPE_MESH || shape->kind == SELKIE_SHAPE_HEIGHTFIELD;
    for (int i = 0; shape->kind == SELKIE_SHAPE_UNION && i < shape->child_count; i++)
        found |= has_file(&shape->children[i]);
    return found;
}

static selkie_scene *load(const char *path)
{
    selkie_scene *scene;
    selkie_error error;
    if (selkie_scene_load(path, 0, NULL, &scene, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return scene;
}

static void round_trip(const char *path)
{
    selkie_error error;
    sk_path where;
    selkie_scene *scene = load(path), *copy, *again, *third;
    assert_true(scene->title[0] != 0);
    const char *saved = in_root("saved.json");
    assert_int_equal(selkie_scene_save(scene, saved, &error), SELKIE_OK);
    again = load(saved);
    int meshes = 0;
    for (int i = 0; i < scene->liquid_count; i++)
        meshes |= has_file(&scene->liquids[i].shape);
    for (int i = 0; i < scene->obstacle_count; i++)
        if (has_file(&scene->obstacles[i].shape)) {
            /* Elsewhere the name is absolute, and leads to the same file. */
            assert_int_equal(again->obstacles[i].shape.file[0], '/');
            assert_int_equal(access(again->obstacles[i].shape.file, R_OK), 0);
            meshes = 1;
        }
    if (!meshes && !sk_scene_equal(scene, again, &where))
        fail_msg("%s: %s changed on its way through a file", path, where.text);
    assert_int_equal(selkie_scene_save(again, in_root("saved_again.json"), &error), SELKIE_OK);
    third = load(in_root("saved_again.json"));
    assert_true(sk_scene_equal(again, third, &where));
    assert_int_equal(sk_scene_copy(scene, &copy, &error), SELKIE_OK);
    assert_true(sk_scene_equal(scene, copy, &where));
    assert_string_equal(scene->folder, copy->folder);
    selkie_scene_free(scene); /* the copy stands on its own */
    assert_true(meshes || sk_scene_equal(copy, again, &where));
    copy->time.cfl += 1;
    assert_false(sk_scene_equal(copy, again, &where));
    if (!meshes)
        assert_string_equal(where.text, "time.cfl");
    selkie_scene_free(copy);
    selkie_scene_free(again);
    selkie_scene_free(third);
}

static void scenes_round_trip(void **state)
{
    (void)state;
    for_each_scene(round_trip);
}

static void numbers_round_trip(void **state)
{
    (void)state;
    char text[40];
    for (uint64_t i = 0; i < 20000; i++) {
        union {
            uint64_t bits;
            double value;
        } number = {sk_hash64(i)};
        if (!isfinite(number.value))
            continue;
        assert_true(strtod(sk_number_text(text, sizeof text, number.value), NULL) == number.value);
    }
    assert_string_equal(sk_number_text(text, sizeof text, 0.1), "0.1");
    assert_string_equal(sk_number_text(text, sizeof text, -1e-7), "-1e-07");
}

/* Decimal commas of a program's locale must not reach the file, nor be expected in it. */
static void locale_does_not_matter(void **state)
{
    (void)state;
    char *before = strdup(setlocale(LC_NUMERIC, NULL));
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        selkie_error error;
        const char *override = "time.end=2.5", *path = in_root("locale.json");
        selkie_scene *scene = parse(small, 1, &override);
        assert_true(scene->time.end == 2.5);
        assert_int_equal(selkie_scene_save(scene, path, &error), SELKIE_OK);
        selkie_scene *again = load(path);
        assert_true(sk_scene_equal(scene, again, NULL));
        selkie_scene_free(scene);
        selkie_scene_free(again);
    }
    setlocale(LC_NUMERIC, before);
    free(before);
}

static void odd_text_round_trips(void **state)
{
    (void)state;
    char long_text[700];
    memset(long_text, '"', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    selkie_scene *scene = parse(small, 0, NULL), *again;
    selkie_error error;
    const char *titles[] = {"a \"quoted\" \\ title", "\xe6\xb0\xb4 // no comment", "", long_text};
    for (int i = 0; i < COUNT(titles); i++) {
        const char *path = in_root("odd.json");
        scene->title = titles[i];
        scene->seed = UINT64_MAX - (uint64_t)i;
        assert_int_equal(selkie_scene_save(scene, path, &error), SELKIE_OK);
        again = load(path);
        assert_true(sk_scene_equal(scene, again, NULL));
        selkie_scene_free(again);
    }
    selkie_scene_free(scene);
    char quoted[12];
    assert_string_equal(sk_quote(quoted, sizeof quoted, "abcdefghijkl"), "\"abcdef...\"");
    assert_string_equal(sk_quote(quoted, sizeof quoted, "abcde\xe6\xb0\xb4xyz"), "\"abcde...\"");
    assert_string_equal(sk_quote(quoted, sizeof quoted, "abcdefghi"), "\"abcdefghi\"");
}

/* --- What is made from the table --- */

static void compare_with_file(const char *path, const char *kept, selkie_code (*write)(FILE *))
{
    char *made = NULL;
    size_t made_length = 0, length;
    FILE *stream = open_memstream(&made, &made_length);
    assert_non_null(stream);
    fputs(kept, stream);
    assert_int_equal(write(stream), SELKIE_OK);
    fclose(stream);
    if (getenv("SELKIE_REGENERATE"))
        write_text(path, made, made_length);
    char *text = read_text(path, &length);
    int same = length == made_length && memcmp(text, made, length) == 0;
    free(text);
    free(made);
    if (!same)
        fail_msg("%s is stale: run this test with SELKIE_REGENERATE=1", path);
}

static void schema_is_fresh(void **state)
{
    (void)state;
    compare_with_file(DOCS "/scene.schema.json", "", sk_scene_schema_write);
}

static void reference_is_fresh(void **state)
{
    (void)state;
    size_t length;
    char *text = read_text(DOCS "/manual/scene.md", &length);
    char *marker = strstr(text, "<!-- From here on");
    assert_non_null(marker);
    marker = strchr(marker, '\n');
    assert_non_null(marker);
    marker[1] = 0; /* what stands before is written by hand */
    compare_with_file(DOCS "/manual/scene.md", text, sk_scene_reference_write);
    free(text);
}

static void manual_page_is_fresh(void **state)
{
    (void)state;
    size_t length;
    char *text = read_text(DOCS "/manual/selkie.1", &length);
    char *marker = strstr(text, ".\\\" From here on");
    assert_non_null(marker);
    marker = strchr(marker, '\n');
    assert_non_null(marker);
    marker[1] = 0; /* what stands before is written by hand */
    compare_with_file(DOCS "/manual/selkie.1", text, sk_scene_manual_write);
    free(text);
}

/* Every row of the table is complete. */
static void check_rows(const sk_struct *type, int depth)
{
    assert_true(depth < 6);
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        assert_true(field->doc && *field->doc);
        assert_ptr_equal(sk_struct_find(type, field->key), field); /* no key twice */
        assert_true((field->type == SK_FIELD_ENUM) == (field->choices != NULL));
        if (field->replaces)
            assert_non_null(sk_struct_find(type, field->replaces));
        for (int k = 0; k < sk_field_components(field); k++)
            assert_true(field->initial[k] >= field->low && field->initial[k] <= field->high &&
                        field->low < field->high);
        if (field->of && field->of != type)
            check_rows(field->of, depth + 1);
    }
}

static void table_is_complete(void **state)
{
    (void)state;
    check_rows(&sk_scene_struct, 0);
    assert_int_equal(sk_edit_distance("velocty", "velocity"), 1);
    assert_int_equal(sk_edit_distance("tiem", "time"), 1);
    assert_int_equal(sk_edit_distance("abc", ""), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_complete),
        cmocka_unit_test(defaults_are_as_documented),
        cmocka_unit_test(cells_and_up),
        cmocka_unit_test(checks_of_structs),
        cmocka_unit_test(numbers_round_trip),
        cmocka_unit_test(schema_is_fresh),
        cmocka_unit_test(reference_is_fresh),
        cmocka_unit_test(manual_page_is_fresh),
#if SELKIE_HAVE_JSON
        cmocka_unit_test(scenes_round_trip),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(odd_text_round_trips),
#endif
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

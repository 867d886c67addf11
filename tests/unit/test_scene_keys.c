/* Scene files: --set on every key, random damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "scene_cases.h"
#include "base/random.h"
#include "defs/describe.h"
#include "defs/fields.h"
#include "defs/structs.h"

/* --- --set on every key --- */

/* The way from the scene to a struct: fields, of which arrays stand for their first element. */
typedef struct route {
    int length;
    const sk_field *steps[8];
} route;

static const void *follow(const route *way, const selkie_scene *scene)
{
    const void *base = scene;
    for (int i = 0; i < way->length; i++) {
        const sk_field *field = way->steps[i];
        base = field->type == SK_FIELD_ARRAY ? sk_field_elements(field, base) : sk_field_in(field, base);
    }
    return base;
}

/* A value that differs from the default and is allowed. */
static void other_value(const sk_field *field, char *text, size_t size, double expected[9], const char **expected_text)
{
    int components = sk_field_components(field);
    *expected_text = NULL;
    if (field->type == SK_FIELD_BOOL) {
        expected[0] = field->initial[0] == 0;
        snprintf(text, size, "%s", expected[0] != 0 ? "true" : "false");
    } else if (field->type == SK_FIELD_ENUM) {
        const sk_enum *choices = field->choices;
        const sk_enum_value *value = &choices->values[choices->count - 1];
        if (choices->count > 1 && value->value == (int)field->initial[0])
            value = &choices->values[0];
        expected[0] = value->value;
        snprintf(text, size, "%s", value->name);
    } else if (field->type == SK_FIELD_STRING || field->type == SK_FIELD_FILE) {
        /* The plane of a cut-away view is checked. */
        snprintf(text, size, "%s", *expected_text = strcmp(field->key, "cut") ? "hello" : "z>0.4");
    } else if (field->type == SK_FIELD_INTEGER || field->type == SK_FIELD_SEED) {
        expected[0] = field->type == SK_FIELD_SEED ? 77 : field->initial[0] != field->low ? field->low : field->high;
        snprintf(text, size, "%.0f", expected[0]);
    } else if (components == 1) {
        expected[0] = field->initial[0] * 1.5 + (field->initial[0] < 0 ? -0.25 : 0.25);
        if (expected[0] > field->high || expected[0] < field->low)
            expected[0] = (field->low + field->high) / 2;
        snprintf(text, size, "%.17g", expected[0]);
    } else {
        size_t used = 0;
        for (int i = 0; i < components; i++) {
            expected[i] = field->high > 1 ? 1.25 + 0.25 * i : 0.25 * (i + 1);
            used += (size_t)snprintf(text + used, size - used, "%c%g", i ? ',' : '[', expected[i]);
        }
        snprintf(text + used, size - used, "]");
    }
}

static int keys_set;

static void set_one(const sk_field *field, const char *path, const route *way, const char *before)
{
    char override[400], text[200];
    double expected[9];
    const char *expected_text;
    other_value(field, text, sizeof text, expected, &expected_text);
    snprintf(override, sizeof override, "%s=%s", path, text);
    const char *overrides[5];
    int count = 0;
    if (strncmp(path, "objects", 7) == 0) {
        /* Objects need a method and a timeline; only a shape can take the place of another. */
        overrides[count++] = "method=sph";
        overrides[count++] = "objects=[{\"shape\":{\"type\":\"box\",\"min\":[0,0,0],\"max\":[3,3,3]},\"timeline\":[{}],"
                             "\"keyframes\":[{\"time\":0}]}]";
        if (before && strncmp(before, "objects[0].shape=", 17) != 0 &&
            strncmp(before, "objects[0].regions[0]=", 22) != 0)
            before = NULL;
    }
    if (strncmp(path, "bodies", 6) == 0 || strncmp(path, "probes", 6) == 0)
        overrides[count++] = "method=sph"; /* for bodies, and for probes of their forces */
    char named[200];
    if (strcmp(path, "probes[0].on") == 0) {
        snprintf(named, sizeof named,
                 "obstacles=[{\"name\":\"%s\",\"shape\":{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1}}]",
                 expected_text);
        overrides[count++] = named;
    }
    if (strstr(path, "].material") && expected_text)
        overrides[count++] = "materials=[{\"name\":\"hello\"}]"; /* the name must be one of these */
    if (before)
        overrides[count++] = before;
    overrides[count++] = override;
    selkie_scene *scene = parse(small, count, overrides);
    const void *base = follow(way, scene);
    if (expected_text)
        assert_string_equal(sk_field_string(field, base), expected_text);
    else if (field->type == SK_FIELD_SEED)
        assert_true(sk_field_seed(field, base) == (uint64_t)expected[0]);
    else if (sk_field_components(field) == 0)
        assert_int_equal(sk_field_int(field, base), (int)expected[0]);
    else
        for (int i = 0; i < sk_field_components(field); i++)
            if (sk_field_numbers(field, base)[i] != expected[i])
                fail_msg("--set %s did not arrive", override);
    keys_set++;
    selkie_scene_free(scene);
}

/* What must be there before the keys of a struct can be set one by one: an element of each array, of each type. */
static const char *const shapes[] = {
    "{\"type\":\"box\",\"min\":[0,0,0],\"max\":[3,3,3]}",
    "{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1}",
    "{\"type\":\"cylinder\",\"from\":[1,1,1],\"to\":[1,2,1],\"radius\":1}",
    "{\"type\":\"half_space\",\"point\":[1,1,1]}",
    "{\"type\":\"wave\",\"level\":1}",
    "{\"type\":\"mesh\",\"file\":\"a.obj\"}",
    "{\"type\":\"union\",\"shapes\":[{\"type\":\"box\",\"min\":[0,0,0],\"max\":[3,3,3]}]}",
};
static const char *const probes[] = {
    "{\"name\":\"a\",\"type\":\"height\",\"at\":[1,1,1]}",
    "{\"name\":\"a\",\"type\":\"pressure\",\"at\":[1,1,1]}",
    "{\"name\":\"a\",\"type\":\"velocity\",\"at\":[1,1,1]}",
    "{\"name\":\"a\",\"type\":\"front\"}",
    "{\"name\":\"a\",\"type\":\"force\"}",
    "{\"name\":\"a\",\"type\":\"level\",\"min\":[0,0,0],\"max\":[3,3,3]}",
    "{\"name\":\"a\",\"type\":\"torque\",\"at\":[1,1,1]}",
};

static const char *const forces[] = {
    "{\"type\":\"explosion\",\"center\":[1,1,1],\"radius\":1,\"speed\":1,\"time\":0}",
    "{\"type\":\"vortex\",\"point\":[1,1,1],\"radius\":1}",
    "{\"type\":\"jet\",\"from\":[1,1,1],\"to\":[1,2,1],\"radius\":1,\"strength\":1}",
    "{\"type\":\"uniform\",\"acceleration\":[1,1,1]}",
    "{\"type\":\"sponge\",\"side\":\"x_max\",\"width\":2}",
};

static const char *const flows[] = {
    "{\"type\":\"none\"}",
    "{\"type\":\"taylor_green\",\"speed\":1,\"wavelength\":1}",
    "{\"type\":\"file\",\"file\":\"a.csv\"}",
};

/* By the number of their kind; empty for those whose only key is an element of a list, or that name one:
 * test_changes.c.
 */
static const char *const changes[] = {
    [SELKIE_CHANGE_GRAVITY] = "\"type\":\"gravity\",\"gravity\":[0,0,0]",
    [SELKIE_CHANGE_STEP] = "\"type\":\"step\",\"length\":1",
    [SELKIE_CHANGE_EXCITE] = NULL,
};

static void set_struct(const sk_struct *type, const char *path, route way, const char *before, int variant);

static void set_field(const sk_struct *type, const sk_field *field, const char *parent, route way, const char *before)
{
    char path[200], prepared[400];
    snprintf(path, sizeof path, "%s%s%s", parent, *parent ? "." : "", field->key);
    if (field == type->variant)
        return; /* the element before sets it, of every kind */
    if (strcmp(path, "materials[0].kind") == 0)
        return; /* it has one value that is not refused */
    if (strcmp(path, "bodies[0].material") == 0)
        return; /* it names the second of two materials, which liquids must name too */
    if (field->of == &sk_joint_struct)
        return; /* joints need a 2D scene of reduced fluids: test_reduced_bodies.c */
    if (strcmp(path, "discretization") == 0)
        return; /* "reduced" is refused in 3D; "sph" is tried with the bodies */
    if (!field->of) {
        set_one(field, path, &way, before);
        return;
    }
    if (type == &sk_shape_struct || type == &sk_change_struct)
        return; /* the shapes of a union are shapes; what a change brings is an element of a list */
    way.steps[way.length++] = field;
    if (field->type == SK_FIELD_ARRAY)
        strcat(path, "[0]");
    if (field->of == &sk_shape_struct) {
        for (int i = 0; i < COUNT(shapes); i++) {
            if (strncmp(path, "bodies", 6) == 0 && (strstr(shapes[i], "half_space") || strstr(shapes[i], "wave")))
                continue; /* bodies have an end */
            /* For liquids the file has one; elsewhere the element is made on the way. */
            snprintf(prepared, sizeof prepared, "%s=%s", path, shapes[i]);
            set_struct(field->of, path, way, prepared, i);
        }
    } else if (field->of == &sk_probe_struct) {
        for (int i = 0; i < COUNT(probes); i++) {
            snprintf(prepared, sizeof prepared, "%s=%s", path, probes[i]);
            set_struct(field->of, path, way, prepared, i);
        }
    } else if (field->of == &sk_force_struct) {
        for (int i = 0; i < COUNT(forces); i++) {
            snprintf(prepared, sizeof prepared, "%s=%s", path, forces[i]);
            set_struct(field->of, path, way, prepared, i);
        }
    } else if (field->of == &sk_change_struct) {
        for (int i = 0; i < COUNT(changes); i++) {
            snprintf(prepared, sizeof prepared, "%s={\"step\":1,%s}", path, changes[i] ? changes[i] : "");
            if (changes[i])
                set_struct(field->of, path, way, prepared, i);
        }
    } else if (field->of == &sk_drawn_struct || field->of == &sk_stroke_struct) {
        set_struct(field->of, path, way,
                   "reduced.drawn=[{\"name\":\"a\",\"strokes\":[{\"from\":[0,0,0],\"to\":[1,0,0]}]}]", -1);
    } else if (field->of == &sk_camera_struct) {
        snprintf(prepared, sizeof prepared, "%s={\"time\":0,\"eye\":[0,0,3],\"target\":[0,0,0]}", path);
        set_struct(field->of, path, way, prepared, -1);
    } else if (field->of == &sk_excite_struct) {
        set_struct(field->of, path, way, "reduced.excite=[{\"mode\":\"a\"}]", -1);
    } else if (strcmp(field->key, "flow") == 0) {
        for (int i = 0; i < COUNT(flows); i++) {
            snprintf(prepared, sizeof prepared, "%s=%s", path, flows[i]);
            set_struct(field->of, path, way, prepared, i);
        }
    } else if (strcmp(field->key, "gravity_over_time") == 0) {
        snprintf(prepared, sizeof prepared, "%s={\"time\":0,\"gravity\":[0,-1,0]}", path);
        set_struct(field->of, path, way, prepared, -1);
    } else if (field->of == &sk_oscillation_struct || strcmp(path, "frame.keyframes[0]") == 0) {
        const int of_obstacle = strncmp(path, "obstacles", 9) == 0;
        if (of_obstacle)
            snprintf(prepared, sizeof prepared, "obstacles=[{\"shape\":%s,\"oscillations\":[{\"period\":1}]}]",
                     shapes[0]);
        else
            snprintf(prepared, sizeof prepared, "%s={\"%s\":1}", path, strstr(path, "keyframes") ? "time" : "period");
        set_struct(field->of, path, way, prepared, -1);
    } else if (field->of == &sk_keyframe_struct) {
        snprintf(prepared, sizeof prepared, "obstacles=[{\"shape\":%s,\"keyframes\":[{\"time\":0}]}]", shapes[0]);
        set_struct(field->of, path, way, prepared, -1);
    } else if (field->of == &sk_viscosity_point_struct) {
        snprintf(prepared, sizeof prepared,
                 "materials=[{\"name\":\"water\",\"viscosity_table\":[{\"temperature\":1,\"viscosity\":1}]}]");
        set_struct(field->of, path, way, prepared, -1);
    } else if (field->of == &sk_material_struct) {
        snprintf(prepared, sizeof prepared, "%s={\"name\":\"water\"}", path);
        set_struct(field->of, path, way, prepared, -1);
    } else if (field->type == SK_FIELD_ARRAY) {
        snprintf(prepared, sizeof prepared, "%s={\"shape\":%s}", path, shapes[0]);
        set_struct(field->of, path, way, prepared, -1);
    } else {
        set_struct(field->of, path, way, before, -1);
    }
}

static void set_struct(const sk_struct *type, const char *path, route way, const char *before, int variant)
{
    for (int i = 0; i < type->field_count; i++)
        if (variant < 0 || sk_field_in_variant(&type->fields[i], variant))
            set_field(type, &type->fields[i], path, way, before);
}

static void set_reaches_every_key(void **state)
{
    (void)state;
    keys_set = 0;
    set_struct(&sk_scene_struct, "", (route){0}, NULL, -1);
    assert_in_range(keys_set, 130, 100000); /* some keys several times, in each kind of shape */
}

static void set_parts(void **state)
{
    (void)state;
    const char *overrides[] = {"gravity[1]=-1",
                               "liquids.0.shape.max.2=2",
                               "liquids[1].shape={\"type\":\"mesh\",\"file\":\"a\",\"scale\":3}",
                               "liquids[1].shape.scale[1]=4",
                               "obstacles[0].shape.type=sphere",
                               "obstacles[0].shape.center=[1, 1, 1]",
                               "obstacles[0].shape.radius=0.5",
                               "title=2024",
                               "liquids[1].name=\"true\"",
                               "domain.walls.x_max=open"};
    selkie_scene *scene = parse(small, COUNT(overrides), overrides);
    assert_true(scene->gravity[0] == 0 && scene->gravity[1] == -1);
    assert_true(scene->liquids[0].shape.max[1] == 3 && scene->liquids[0].shape.max[2] == 2);
    assert_true(scene->liquids[1].shape.scale[0] == 3 && scene->liquids[1].shape.scale[1] == 4);
    assert_true(scene->obstacle_count == 1 && scene->obstacles[0].shape.radius == 0.5);
    assert_string_equal(scene->title, "2024");
    assert_string_equal(scene->liquids[1].name, "true");
    assert_int_equal(scene->domain.walls[1], SELKIE_WALL_OPEN);
    selkie_scene_free(scene);
    /* Setting the resolution or the CFL number takes the place of what the file gives instead. */
    const char *fine[] = {"domain={\"size\": [4, 4, 4], \"cell_size\": 0.5}", "time.step=0.01", "domain.resolution=16"};
    scene = parse(small, 3, fine);
    assert_true(scene->domain.cell_size == 0 && scene->domain.resolution == 16 && scene->time.step == 0.01);
    selkie_scene_free(scene);
    const char *both[] = {"domain.cell_size=0.5", "domain.resolution=16"};
    scene = parse(small, 2, both);
    assert_true(scene->domain.cell_size == 0.5 && scene->domain.resolution == 16);
    selkie_scene_free(scene);
}

/* --- Random damage --- */

static size_t mutate(char *text, size_t length, size_t room, uint64_t seed)
{
    static const char *const pieces[] = {"[",  "]",  "{",   "}",        ",",    ":",   "\"",    "//",
                                         "/*", "*/", "-",   "1e",       "1e99", "\\",  "\\u00", "null",
                                         "[]", "{}", "NaN", "\"type\"", "0",    "\xff"};
    int rounds = 1 + (int)(sk_hash64(seed) % 4);
    for (int i = 0; i < rounds; i++) {
        uint64_t bits = sk_hash64(seed * 31 + (uint64_t)i + 7);
        size_t at = length ? (size_t)(bits >> 8) % length : 0, span = (size_t)(bits >> 40) % 24;
        if (span > length - at)
            span = length - at;
        switch (bits & 3) {
        case 0:
            if (length)
                text[at] = (char)(bits >> 32);
            break;
        case 1:
            memmove(text + at, text + at + span, length - at - span);
            length -= span;
            break;
        case 2:
            if (length + span < room) {
                memmove(text + at + span, text + at, length - at);
                length += span;
            }
            break;
        default: {
            const char *piece = pieces[(bits >> 56) % COUNT(pieces)];
            size_t piece_length = strlen(piece);
            if (length + piece_length < room) {
                memmove(text + at + piece_length, text + at, length - at);
                memcpy(text + at, piece, piece_length);
                length += piece_length;
            }
        }
        }
    }
    text[length] = 0;
    return length;
}

static void damage(const char *path)
{
    size_t length, room;
    char *text = read_text(path, &length), *changed = malloc(room = length + 4096);
    for (uint64_t seed = 0; seed < 150; seed++) {
        memcpy(changed, text, length + 1);
        size_t changed_length = mutate(changed, length, room, seed + length * 1000);
        selkie_scene *scene, *copy;
        selkie_error error = {0};
        const sk_scene_text damaged = {
            .text = changed, .length = changed_length, .name = "damaged.json", .folder = "."};
        if (sk_scene_parse(&damaged, &scene, &error) == SELKIE_OK) {
            assert_int_equal(sk_scene_copy(scene, &copy, &error), SELKIE_OK);
            assert_true(sk_scene_equal(scene, copy, NULL));
            selkie_scene_free(copy);
            selkie_scene_free(scene);
        } else {
            assert_null(scene);
            assert_int_equal(strncmp(error.message, "damaged.json:", 13), 0);
            assert_null(strchr(error.message, '\n'));
        }
        const char *override = changed + sk_hash64(seed) % (changed_length + 1);
        const sk_scene_text overridden = {.text = small,
                                          .length = strlen(small),
                                          .name = "small.json",
                                          .folder = ".",
                                          .override_count = 1,
                                          .overrides = &override};
        if (sk_scene_parse(&overridden, &scene, &error) == SELKIE_OK)
            selkie_scene_free(scene);
    }
    free(text);
    free(changed);
}

static void damaged_scenes(void **state)
{
    (void)state;
    for_each_scene(damage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_reaches_every_key),
        cmocka_unit_test(set_parts),
        cmocka_unit_test(damaged_scenes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

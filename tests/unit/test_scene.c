/* Scene files: defaults, every message, round trips, --set on every key, random damage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <selkie/scene.h>
#include "selkie_config.h"
#include "base/random.h"
#include "defs/describe.h"
#include "defs/fields.h"
#include "defs/structs.h"
#include "defs/text.h"
#include "scene/read.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define DOCS SELKIE_SCENES "/../docs"

/* --- Helpers --- */

/* A file in a folder of its own that goes away with the test program. */
static char scratch[64];

static const char *scratch_file(const char *name)
{
    static char path[2][512];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
    return path[turn];
}

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/selkie_scene_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    DIR *folder = opendir(scratch);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            unlink(scratch_file(entry->d_name));
    if (folder)
        closedir(folder);
    return rmdir(scratch);
}

static char *read_text(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    char *text = calloc(1, 1 << 20);
    *length = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static void write_text(const char *path, const void *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static selkie_scene *parse(const char *text, int count, const char *const *overrides)
{
    selkie_scene *scene;
    selkie_error error;
    const sk_scene_text source = {.text = text,
                                  .length = strlen(text),
                                  .name = "test.json",
                                  .folder = ".",
                                  .override_count = count,
                                  .overrides = overrides};
    if (sk_scene_parse(&source, &scene, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return scene;
}

/* The message must hold `expected`, be one line and leave no scene. */
static void expect_bytes(const char *text, size_t length, int count, const char *const *overrides, const char *expected)
{
    selkie_scene *scene = (selkie_scene *)&scene;
    selkie_error error;
    const sk_scene_text source = {.text = text,
                                  .length = length,
                                  .name = "test.json",
                                  .folder = ".",
                                  .override_count = count,
                                  .overrides = overrides};
    selkie_code code = sk_scene_parse(&source, &scene, &error);
    if (code == SELKIE_OK)
        fail_msg("accepted, but should say: %s", expected);
    assert_null(scene);
    assert_int_equal(code, error.code);
    if (!strstr(error.message, expected) || strchr(error.message, '\n'))
        fail_msg("says: %s\nshould say: %s", error.message, expected);
    assert_int_equal(sk_scene_parse(&source, &scene, NULL), code);
}

static void expect(const char *text, const char *expected)
{
    expect_bytes(text, strlen(text), 0, NULL, expected);
}

static const char small[] = "{\n"
                            "  \"domain\": {\"size\": [4, 4, 4]},\n"
                            "  \"liquids\": [\n"
                            "    {\"shape\": {\"type\": \"box\", \"min\": [0, 0, 0], \"max\": [3, 3, 3]}}\n"
                            "  ]\n"
                            "}\n";

static void expect_set(const char *override, const char *expected)
{
    expect_bytes(small, strlen(small), 1, &override, expected);
}

/* Each scene that comes with the project. */
static void for_each_scene(void (*visit)(const char *path))
{
    static const char *const folders[] = {SELKIE_SCENES "/examples", SELKIE_SCENES "/validation", SELKIE_SCENES "/idp",
                                          SELKIE_SCENES "/uic"};
    int count = 0;
    for (int i = 0; i < COUNT(folders); i++) {
        DIR *folder = opendir(folders[i]);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[1024];
            size_t length = strlen(entry->d_name);
            if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0)
                continue;
            snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            visit(path);
            count++;
        }
        closedir(folder);
    }
    assert_true(count >= 27);
}

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

/* --- Messages --- */

static void malformed_text(void **state)
{
    (void)state;
    expect("  // nothing\n", "test.json:2:1: there is nothing in it");
    expect("{\n  \"domain\": {\"size\": [1 1]}}", "test.json:2:25: a comma or ']' was expected");
    expect("{\"title\" 5}", "test.json:1:10: a colon was expected after the key");
    expect("{\"title\": \"a\" \"b\"}", "test.json:1:15: a comma or '}' was expected");
    expect("{title: 5}", "test.json:1:2: a key in double quotes was expected");
    expect("{\"title\": \"abc", "the text ends too early");
    expect("{ /* ", "the text ends too early");
    expect("{\"title\": \"\\q\"}", "an escape in a string that JSON does not have");
    expect("{ /x }", "a comment was expected after '/'");
    expect("{\"time\": {\"end\": @}}", "test.json:1:18: a value was expected");
    expect("{\"title\": 'abc'}", "test.json:1:11: strings stand in double quotes");
    expect("{\"title\": \"a\nb\"}", "test.json:1:13: a line break or control character inside a string");
    expect("{\"title\": \"a\", \"time\": {},\n \"title\": \"b\"}",
           "test.json:2:2: \"title\" is given twice, first in line 1");
    expect("{\"title\": \"a\", \"t\\u0069tle\": \"b\"}", "\"title\" is given twice");
    expect("{\"a\\u0000b\": 1}", "a key with a zero character");
    expect("{\"time\": {\"end\": NaN}}", "test.json:1:18: NaN is no value");
    expect("{\"time\": {\"end\": -Infinity}}", "-Infinity is no value");
    expect("{\"time\": {\"end\": 007}}", "007 is no value");
    expect("{\"output\": {\"ply\": True}}", "True is no value");
    expect("{\"seed\": 18446744073709551616}", "is too large for any number here");
    expect("{\"seed\": -9223372036854775809}", "is too large for any number here");
    expect("{} {}", "test.json:1:4: more text after the end");
    expect("[]", "an array of 0 does not fit: must be an object {...}");
    expect("null", "null does not fit: must be an object {...}");
    expect("5", "5 does not fit: must be an object {...}");
    expect_bytes("{\"a\": \"\0\"}", 10, 0, NULL, "test.json:1:8: a zero byte");
    expect("{\"title\": \"\xff\"}", "test.json:1:12: the byte 0xff is not UTF-8");
    expect("{\"title\": \"\xc0\x80\"}", "the byte 0xc0 is not UTF-8");
    expect("{\"title\": \"\xed\xa0\x80\"}", "the byte 0xed is not UTF-8");
    expect("{\"title\": \"\xe2\x82", "the byte 0xe2 is not UTF-8");
    char *deep = calloc(1, 2000);
    memset(deep, '[', 1000);
    memset(deep + 1000, ']', 999);
    expect(deep, "nested too deeply");
    free(deep);
    size_t many = 4000100;
    char *commas = malloc(2 * many + 3);
    commas[0] = '[';
    for (size_t i = 0; i < many; i++)
        commas[2 * i + 1] = '0', commas[2 * i + 2] = ',';
    commas[2 * many + 1] = ']';
    commas[2 * many + 2] = 0;
    expect(commas, "more than 4000000 values");
    free(commas);
}

static void comforts_are_read(void **state)
{
    (void)state;
    selkie_scene *scene = parse(
        "\xef\xbb\xbf// begins with a byte order mark\n"
        "{\"$schema\": \"x\", \"title\": \"\\u00fc \xe6\xb0\xb4\", /* , */ \"domain\": {\"size\": [1, 2.0, 3e0,],},\n"
        "\"seed\": 18446744073709551615, \"advection\": {\"order\": 3.0},\n"
        "\"liquids\": [{\"shape\": {\"type\": \"mesh\", \"file\": \"a.obj\", \"scale\": 2}},],} // end",
        0, NULL);
    assert_string_equal(scene->title, "\xc3\xbc \xe6\xb0\xb4");
    assert_true(scene->seed == UINT64_MAX);
    assert_int_equal(scene->advection.order, 3);
    assert_true(scene->liquids[0].shape.scale[1] == 2);
    assert_true(scene->domain.size[2] == 3);
    selkie_scene_free(scene);
    scene = parse("{\"domain\": {\"dimension\": 2, \"size\": [1, 1]}, \"liquids\": [{\"angular_velocity\": 3, "
                  "\"velocity_gradient\": "
                  "[1, 2, 3, 4], \"shape\": {\"type\": \"sphere\", \"center\": [0.5, 0.5, 9], \"radius\": 0.1}}]}",
                  0, NULL);
    assert_true(scene->liquids[0].angular_velocity[2] == 3 && scene->liquids[0].angular_velocity[0] == 0);
    const double *gradient = scene->liquids[0].velocity_gradient;
    assert_true(gradient[0] == 1 && gradient[1] == 2 && gradient[3] == 3 && gradient[4] == 4 && gradient[2] == 0);
    selkie_scene_free(scene);
}

static void unknown_keys_suggest(void **state)
{
    (void)state;
    expect("{\n \"liquids\": [\n  {\"shape\": {\"type\": \"box\", \"min\": [0,0,0], \"max\": [1,1,1]},\n   "
           "\"velocty\": [0,0,0]}]}",
           "test.json:4:4: liquids[0].velocty: unknown key; did you mean \"velocity\"?");
    expect("{\"cfl\": 3}", "test.json:1:2: cfl: unknown key; did you mean \"time.cfl\"?");
    expect("{\"density\": 3}", "density: unknown key; did you mean \"materials[0].density\"?");
    expect("{\"xylophone\": 3}", "xylophone: unknown key");
    expect("{\"a\\nb\": 3}", "a\\nb: unknown key");
    expect("{\"liquids\": [{\"shape\": {\"type\": \"box\", \"radius\": 1}}]}",
           "liquids[0].shape.radius: a shape of type \"box\" does not have this; it has min, max");
    expect("{\"liquids\": [{\"shape\": {\"type\": \"sphere\", \"radios\": 1}}]}", "did you mean \"radius\"?");
    expect("{\"probes\": [{\"name\": \"a\", \"type\": \"front\", \"at\": [0,0,0]}]}",
           "a probe of type \"front\" does not have this");
    expect("{\"probes\": [{\"name\": \"a\", \"type\": \"level\", \"at\": [0,0,0]}]}",
           "a probe of type \"level\" does not have this");
    expect("{\"probes\": [{\"name\": \"a\", \"type\": \"height\", \"at\": [0,0,0], \"min\": [0,0,0]}]}",
           "a probe of type \"height\" does not have this");
    expect("{\"liquids\": [{\"shape\": {\"min\": [0,0,0]}}]}", "liquids[0].shape: the key \"type\" is missing");
    expect("{\"liquids\": [{}]}", "test.json:1:14: liquids[0]: the key \"shape\" is missing");
    expect("{\"domain\": {}}", "test.json:1:12: domain: the key \"size\" is missing");
    expect("{}", "the key \"domain\" is missing");
}

static void wrong_types(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *expected;
    } rows[] = {
        {"time.end", "\"soon\"", "\"soon\" does not fit: must be a number (s)"},
        {"time.end", "[1]", "an array of 1 does not fit: must be a number (s)"},
        {"time.end", "null", "null does not fit: must be a number (s)"},
        {"time.end", "1e999", "1e999 does not fit: must be a number (s)"},
        {"time", "5", "5 does not fit: must be an object {...}"},
        {"liquids", "{}", "an object does not fit: must be an array of objects"},
        {"liquids", "[5]", "liquids[0]: 5 does not fit: must be an object"},
        {"gravity", "[0, 1]", "an array of 2 does not fit: must be an array of 3 numbers (m/s2)"},
        {"gravity", "-9.81", "-9.81 does not fit: must be an array of 3 numbers (m/s2)"},
        {"gravity", "[0, \"a\", 0]", "gravity[1]: \"a\" does not fit: must be a number"},
        {"advection.order", "2.5", "2.5 does not fit: must be a whole number"},
        {"advection.order", "1e30", "1e30 does not fit: must be a whole number"},
        {"seed", "-1", "-1 does not fit: must be a whole number from 0 to 18446744073709551615"},
        {"seed", "1.5", "1.5 does not fit: must be a whole number"},
        {"output.ply", "1", "1 does not fit: must be true or false"},
        {"method", "5", "\"5\" is no choice: must be \"pic\", \"flip\", \"apic\" or \"sph\""},
        {"method", "Flip", "did you mean \"flip\"?"},
        {"liquids[0].velocity_gradient", "[1, 2, 3, 4]", "must be an array of 9 numbers, row by row (1/s)"},
        {"liquids[0].angular_velocity", "1", "must be an array of 3 numbers (rad/s)"},
        {"incompressibility", "x", "\"x\" is no choice: must be \"bilateral\" or \"unilateral\""},
        {"unilateral.solver", "x", "\"x\" is no choice: must be \"active_set\" or \"mprgp\""},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        char override[300];
        snprintf(override, sizeof override, "%s=%s", rows[i].key, rows[i].value);
        expect_set(override, rows[i].expected);
        expect_set(override, "--set ");
    }
    expect("{\"title\": 5}", "test.json:1:11: title: 5 does not fit: must be a string");
    expect("{\"title\": \"a\\u0000b\"}", "a zero character in a string");
    expect("{\"method\": 5}", "5 does not fit: must be \"pic\", \"flip\", \"apic\" or \"sph\"");
}

static void ranges_and_rules(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"time.fps=0", "0 is out of range: must be above 0 and at most 1000000 1/s"},
        {"time.end=-1", "-1 is out of range: must be between 0 and 1000000 s"},
        {"time.step=-1", "-1 is out of range"},
        {"time.cfl=-1", "-1 is out of range: must be between 0 and 1000"},
        {"time.max_step=1e-9", "1e-09 s is below min_step, 1e-06 s"},
        {"time={\"end\":1000,\"fps\":1e6}", "time.fps: 1e+06 makes 1e+09 frames until 1000 s: at most 1e7"},
        {"gravity=[0, 1e10, 0]", "gravity[1]: 10000000000 is too large: numbers lie between -1e9 and 1e9"},
        {"domain.size=[1, 0, 1]", "0 m along y: must be above 0"},
        {"domain.size=[1, -1, 1]", "-1 is out of range: must be at least 0 m"},
        {"domain.dimension=4", "4 is out of range: must be between 2 and 3"},
        {"domain.cell_size=1e-6", "at most 65536"},
        {"domain.cell_size=-1", "-1 is out of range: must be at least 0 m"},
        {"domain.resolution=0", "0 is out of range: must be between 1 and 65536"},
        {"liquids[0].density=0", "0 is out of range: must be at least 0.001 kg/m3"},
        {"liquids[0].shape.max=[3, 0, 3]", "0 along y is not above min, 0"},
        {"liquids[0].shape={\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":0}", "shape.radius: 0 is out of range"},
        {"liquids[0].shape={\"type\":\"sphere\",\"center\":[9,1,1],\"radius\":1}",
         "lies outside the domain: x from 8 to 10 m"},
        {"liquids[0].shape={\"type\":\"cylinder\",\"from\":[1,1,1],\"to\":[1,1,1],\"radius\":1}",
         "is the same point as from"},
        {"liquids[0].shape={\"type\":\"half_space\",\"point\":[1,1,1],\"normal\":[0,0,0]}",
         "shape.normal: has no length"},
        {"liquids[0].shape={\"type\":\"mesh\",\"file\":\"\"}", "shape.file: is empty: must name an OBJ"},
        {"liquids[0].shape={\"type\":\"mesh\",\"file\":\"a\",\"scale\":[1,0,1]}", "is 0 along y"},
        {"liquids[0].shape={\"type\":\"union\",\"shapes\":[]}", "shapes: is empty: a union needs at least one shape"},
        {"liquids[0].shape={\"type\":\"union\",\"shapes\":[{\"type\":\"box\",\"min\":[1,0,0],\"max\":[0,1,1]}]}",
         "liquids[0].shape.shapes[0].max: 0 along x is not above min, 1"},
        {"liquids=[]", "nothing will ever be wet"},
        {"liquids[1]={\"density\":900,\"shape\":{\"type\":\"box\",\"min\":[0,0,0],\"max\":[1,1,1]}}",
         "900 kg/m3 differs from that of liquids[0], 1000"},
        {"sources=[{\"start\":2,\"end\":1,\"shape\":{\"type\":\"box\",\"min\":[0,0,0],\"max\":[1,1,1]}}]",
         "sources[0].end: 1 s is not after start, 2 s"},
        {"drains=[{\"start\":2,\"end\":2,\"shape\":{\"type\":\"box\",\"min\":[0,0,0],\"max\":[1,1,1]}}]",
         "drains[0].end: 2 s"},
        {"drains=[{\"shape\":{\"type\":\"box\",\"min\":[5,0,0],\"max\":[6,1,1]}}]",
         "drains[0].shape: lies outside the domain"},
        {"bodies=[{\"shape\":{\"type\":\"sphere\",\"center\":[9,0,0],\"radius\":1}}]",
         "bodies[0].shape: lies outside the domain"},
        {"bodies=[{\"surface\":\"no_slip\",\"shape\":{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1}}]",
         "bodies[0].surface: the grid methods have no drag along bodies"},
        {"probes=[{\"name\":\"a\",\"type\":\"torque\",\"at\":[0,0,0],\"on\":\"b\"}]",
         "probes[0].on: no obstacle and no body is called \"b\""},
        {"bodies=[{\"shape\":{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1},\"density\":0}]",
         "bodies[0].density: 0 is out of range: must be at least 0.001 kg/m3"},
        {"forces=[{\"type\":\"explosion\",\"center\":[9,0,0],\"radius\":1,\"speed\":1,\"time\":0}]",
         "forces[0].center: lies outside the domain: x from 8 to 10 m"},
        {"forces=[{\"type\":\"explosion\",\"center\":[1,0,0],\"radius\":0,\"speed\":1,\"time\":0}]",
         "forces[0].radius: 0 is out of range: must be above 0 m"},
        {"forces=[{\"type\":\"explosion\",\"center\":[1,0,0],\"radius\":1,\"time\":0}]", "speed"},
        {"forces=[{\"type\":\"vortex\",\"point\":[1,0,0],\"axis\":[0,0,0],\"radius\":1}]",
         "forces[0].axis: has no length"},
        {"forces=[{\"type\":\"jet\",\"from\":[1,0,0],\"to\":[1,0,0],\"radius\":1,\"strength\":1}]",
         "forces[0].to: is the same point as from"},
        {"forces=[{\"type\":\"uniform\",\"acceleration\":[1,0,0],\"start\":3,\"end\":1}]",
         "forces[0].end: 1 s is not after start, 3 s"},
        {"obstacles=[{\"shape\":{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1},\"keyframes\":[{\"time\":1},{"
         "\"time\":1}]}]",
         "obstacles[0].keyframes[1].time: 1 s is not after that of the keyframe before, 1 s"},
        {"obstacles=[{\"velocity\":[1,0,0],\"shape\":{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1},"
         "\"keyframes\":[{\"time\":1}]}]",
         "obstacles[0].keyframes: stand beside a constant velocity"},
        {"obstacles=[{\"surface\":\"open\",\"shape\":{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1}}]",
         "\"open\" is no choice: must be \"free_slip\" or \"no_slip\""},
        {"objects=[{\"start_solid\":true,\"shape\":{\"type\":\"box\",\"min\":[0,0,0],\"max\":[1,1,1]}}]",
         "objects[0]: liquid solidifies with discretization sph only"},
        {"probes=[{\"name\":\"a b\",\"type\":\"front\"}]", "probes[0].name: \"a b\" cannot head a column"},
        {"probes=[{\"name\":\"\",\"type\":\"front\"}]", "\"\" cannot head a column"},
        {"probes=[{\"name\":\"a\",\"type\":\"front\"},{\"name\":\"a\",\"type\":\"front\"}]",
         "probes[1].name: the column \"a\" belongs to probes[0] already"},
        {"probes=[{\"name\":\"v_y\",\"type\":\"front\"},{\"name\":\"v\",\"type\":\"velocity\",\"at\":[1,1,1]}]",
         "probes[1].name: the column \"v_y\" belongs to probes[0] already"},
        {"probes=[{\"name\":\"time\",\"type\":\"front\"}]", "the column \"time\" is there anyway"},
        {"probes=[{\"name\":\"a\",\"type\":\"front\",\"direction\":0}]", "0: must be 1 or -1"},
        {"probes=[{\"name\":\"a\",\"type\":\"pressure\",\"at\":[5,0,0]}]", "5 m along x is outside the domain"},
        {"probes=[{\"name\":\"a\",\"type\":\"level\",\"min\":[1,0,0]}]",
         "probes[0].max: 0 m along x is not above min, 1 m"},
        {"probes=[{\"name\":\"a\",\"type\":\"level\",\"min\":[0,0,0.5],\"max\":[1,0,0.5]}]",
         "probes[0].max: 0.5 m along z is not above min, 0.5 m"},
        {"probes=[{\"name\":\"a\",\"type\":\"level\",\"min\":[5,0,0],\"max\":[6,0,1]}]",
         "probes[0].min: 5 m along x, up to 6 m, is outside the domain: must be between 0 and"},
        {"particles={\"per_cell\":10,\"arrangement\":\"lattice\"}",
         "particles.per_cell: 10 do not make a lattice: must be n^3, such as 8 or 27"},
        {"render.height=5", "5 pixels: must be 0 (follows the domain) or at least 16"},
        {"render.field_of_view=180", "180 is out of range: must be above 0 and below 180 deg"},
        {"unilateral.tolerance=0", "0 is out of range: must be above 0 and at most 1"},
        {"unilateral.suction_depth=0", "0 is out of range: must be between 1 and 1000 cells"},
        {"pressure.tolerance=0", "0 is out of range: must be above 0 and at most 1"},
        {"title=a\tb", "has a control character"},
        {"title=\xff", "the byte 0xff is not UTF-8"},
    };
    for (int i = 0; i < COUNT(rows); i++)
        expect_set(rows[i][0], rows[i][1]);
    char *long_title = malloc(6001);
    memset(long_title, 'a', 6000);
    memcpy(long_title, "title=", 6);
    long_title[6000] = 0;
    expect_set(long_title, "5994 bytes are too long: at most 4096");
    free(long_title);
    /* From a file the same messages name line and column. */
    expect("{\n \"domain\": {\"size\": [1, 1, 1]},\n \"time\": {\n  \"fps\": 0}}",
           "test.json:4:10: time.fps: 0 is out of range");
}

/* Objects: what their timelines and regions must be. */
static void rules_of_objects(void **state)
{
    (void)state;
    static const struct {
        const char *object, *expected; /* keys beside the shape */
    } rows[] = {
        {"\"fill\": \"volume\"", "objects[0].timeline: is empty: the object would never be there"},
        {"\"timeline\": [{\"assemble\": 2, \"release\": 1}]", "timeline[0].release: 1 s is not after assemble, 2 s"},
        {"\"timeline\": [{}, {\"assemble\": 2}]", "timeline[1].assemble: 2 s comes after an entry that never ends"},
        {"\"timeline\": [{\"release\": 3}, {\"assemble\": 2}]",
         "2 s comes before the entry before it is released, 3 s"},
        {"\"start_solid\": true, \"timeline\": [{\"assemble\": 1}]", "1 s stands beside start_solid: must be 0"},
        {"\"timeline\": [{\"release\": 1, \"release_mode\": \"sweep\", \"release_direction\": [0, 0, 0]}]",
         "release_direction: has no length"},
        {"\"timeline\": [{}], \"alpha\": 0", "objects[0].alpha: 0 is out of range: must be above 0 and at most 1"},
        {"\"timeline\": [{}], \"regions\": [{\"type\": \"sphere\", \"center\": [9, 0, 0], \"radius\": 1}]",
         "objects[0].regions[0]: lies outside the domain"},
        {"\"timeline\": [{}], \"keyframes\": [{\"time\": 1}, {\"time\": 0}]",
         "objects[0].keyframes[1].time: 0 s is not after that of the keyframe before, 1 s"},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "{\"domain\": {\"size\": [1, 1, 1]}, \"method\": \"sph\", \"liquids\": [{\"shape\": {\"type\": \"box\", "
            "\"min\": [0, 0, 0], \"max\": [1, 1, 1]}}], \"objects\": [{\"shape\": {\"type\": \"box\", \"min\": [0, 0, "
            "0], "
            "\"max\": [1, 1, 1]}, %s}]}",
            rows[i].object);
        expect(text, rows[i].expected);
    }
}

static void rules_of_the_plane(void **state)
{
    (void)state;
    static const struct {
        const char *override, *expected;
    } plane[] = {
        {"gravity=[0, 0, -9.81]", "gravity[2]: -9.81 leaves the plane: must be 0 in 2D"},
        {"liquids[0].velocity=[0, 0, 1]", "1 leaves the plane"},
        {"liquids[0].angular_velocity=[1, 0, 0]", "where only the third component turns"},
        {"liquids[0].velocity_gradient=[0,0,1,0,0,0,0,0,0]", "1 in row 1, column 3 leaves the plane"},
        {"liquids[0].shape={\"type\":\"half_space\",\"point\":[1,1],\"normal\":[0,0,1]}", "has no length in the plane"},
        {"probes=[{\"name\":\"a\",\"type\":\"front\",\"axis\":\"z\"}]", "\"z\" does not exist in 2D"},
        {"output.surface=ply", "a surface is made in 3D only"},
        {"gravity=[0, 0, 0, 0]", "must be an array of 2 or 3 numbers"},
        {"particles={\"per_cell\":8,\"arrangement\":\"lattice\"}", "must be n^2, such as 4 or 9"},
    };
    for (int i = 0; i < COUNT(plane); i++) {
        const char *overrides[] = {"domain.dimension=2", plane[i].override};
        expect_bytes(small, strlen(small), 2, overrides, plane[i].expected);
    }
}

static void unilateral_keeps_its_own_volume(void **state)
{
    (void)state;
    const char *overrides[] = {"incompressibility=unilateral", "volume=idp"};
    expect_bytes(small, strlen(small), 2, overrides, "is for incompressibility \"bilateral\": must be \"none\"");
}

static void deep_unions(void **state)
{
    (void)state;
    char text[4000] = "liquids[0].shape=";
    for (int i = 0; i < 18; i++)
        strcat(text, "{\"type\":\"union\",\"shapes\":[");
    strcat(text, "{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":1}");
    for (int i = 0; i < 18; i++)
        strcat(text, "]}");
    expect_set(text, "unions lie more than 16 deep in each other");
}

static void bad_overrides(void **state)
{
    (void)state;
    expect_set("time.end", "--set time.end: must look like path.to.key=VALUE");
    expect_set("=5", "must look like path.to.key=VALUE");
    expect_set("time..end=5", "the path cannot be read at \".end=5\"");
    expect_set("[0]=5", "the path cannot be read");
    expect_set("liquids[0=5", "the path cannot be read");
    expect_set("liquids[x].density=5", "\"x\" is no index: must be a whole number from 0");
    expect_set("liquids[0]density=5", "the path cannot be read");
    expect_set("liquids.density=5", "\"density\" is no index: liquids is an array, write liquids[0].density");
    expect_set("liquids[7].density=5", "liquids has 1 element: the index must be 0 to 1, 1 adds one");
    expect_set("liquids[99999999999].density=5", "liquids has 1 element");
    expect_set("tme.end=5", "--set tme.end=5: unknown key \"tme\"; did you mean \"time\"?");
    expect_set("time.endd=5", "unknown key \"endd\" of time; did you mean \"end\"?");
    expect_set("end=5", "unknown key \"end\"; did you mean \"time.end\"?");
    expect_set("time.duration=5", "unknown key \"duration\" of time; did you mean \"time.end\"?");
    expect_set("time.end.x=5", "time.end has no parts");
    expect_set("gravity[3]=5", "gravity has the parts 0 to 2");
    expect_set("gravity.x=5", "gravity has the parts 0 to 2");
    expect_set("gravity[1]=a", "\"a\" does not fit: must be a number");
    expect_set("time.end=", "\"\" does not fit: must be a number (s)");
    expect_set("time.end=1 2", "\"1 2\" does not fit");
    expect_set("liquids[0].shape.radius=1", "a shape of type \"box\" does not have this");
    const char *overrides[] = {"domain=5", "domain.resolution=4"};
    expect_bytes(small, strlen(small), 2, overrides, "domain is 5 in the file: must be an object");
    const char *arrays[] = {"liquids=5", "liquids[0].density=4"};
    expect_bytes(small, strlen(small), 2, arrays, "liquids is 5 in the file: must be an array");
    const char *elements[] = {"liquids=[5]", "liquids[0].density=4"};
    expect_bytes(small, strlen(small), 2, elements, "liquids[0] is 5 in the file: must be an object");
    const char *vectors[] = {"gravity=\"a\"", "gravity[0]=4"};
    expect_bytes(small, strlen(small), 2, vectors, "gravity is \"a\" in the file: must be an array of numbers");
}

static void bad_files(void **state)
{
    (void)state;
    selkie_scene *scene;
    selkie_error error;
    assert_int_equal(selkie_scene_load("/nowhere/x.json", 0, NULL, &scene, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "/nowhere/x.json: cannot be read: "));
    assert_null(scene);
    assert_int_equal(selkie_scene_load("", 0, NULL, &scene, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "is empty"));
    assert_int_equal(selkie_scene_load(scratch, 0, NULL, &scene, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "is a folder: a scene file (.json) was expected"));
    const char *path = scratch_file("empty.json");
    write_text(path, "", 0);
    assert_int_equal(selkie_scene_load(path, 0, NULL, &scene, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "is empty: a scene {...} was expected"));
    assert_int_equal(selkie_scene_load("/dev/zero", 0, NULL, &scene, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "is larger than 64 MiB"));
    path = scratch_file("closed.json");
    write_text(path, small, strlen(small));
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) { /* root reads everything */
        assert_int_equal(selkie_scene_load(path, 0, NULL, &scene, &error), SELKIE_ERROR_FILE);
        assert_non_null(strstr(error.message, "cannot be read"));
    }
    scene = parse(small, 0, NULL);
    assert_int_equal(selkie_scene_save(scene, "/nowhere/x.json", &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "/nowhere/x.json"));
    scene->time.fps = NAN;
    assert_int_equal(selkie_scene_save(scene, scratch_file("x.json"), &error), SELKIE_ERROR_INPUT);
    assert_string_equal(error.message, "time.fps: nan is out of range: must be above 0 and at most 1000000 1/s");
    selkie_scene_free(scene);
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
    const char *saved = scratch_file("saved.json");
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
    assert_int_equal(selkie_scene_save(again, scratch_file("saved_again.json"), &error), SELKIE_OK);
    third = load(scratch_file("saved_again.json"));
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
        const char *override = "time.end=2.5", *path = scratch_file("locale.json");
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
        const char *path = scratch_file("odd.json");
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
        if (expected[0] > field->high)
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

#if SELKIE_HAVE_JSON
/* What only SPH asks for. */
static void sph_says_what_is_wrong(void **state)
{
    (void)state;
#define BALL "{\"type\":\"sphere\",\"center\":[1,1,1],\"radius\":0.5}"
    static const char *const cases[][2] = {
        {"particles.per_cell=5", "5 with discretization"},
        {"particles.per_cell=12", "12 do not make a lattice: must be n^3, such as 8 or 27"},
        {"bodies=[{\"shape\":{\"type\":\"half_space\",\"point\":[1,1,1]}}]", "bodies[0].shape: has no end"},
        {"bodies=[{\"shape\":{\"type\":\"union\",\"shapes\":[" BALL ",{\"type\":\"wave\",\"level\":1}]}}]",
         "bodies[0].shape: has no end"},
        {"bodies=[{\"shape\":" BALL ",\"mass\":3,\"density\":300}]",
         "bodies[0].mass: 3 kg stands beside a density, 300 kg/m3"},
        {"bodies=[{\"name\":\"a\",\"shape\":" BALL "},{\"name\":\"a\",\"shape\":" BALL "}]",
         "bodies[1].name: \"a\" is the name of bodies[0] already"},
        {"objects=[{\"name\":\"a\",\"start_solid\":true,\"shape\":" BALL
         "},{\"name\":\"a\",\"start_solid\":true,\"shape\":" BALL "}]",
         "objects[1].name: \"a\" is the name of objects[0] already"},
        {"probes=[{\"name\":\"a\",\"type\":\"force\",\"on\":\"nothing\"}]",
         "probes[0].on: no obstacle and no body is called \"nothing\""},
    };
#undef BALL
    for (int i = 0; i < COUNT(cases); i++) {
        const char *overrides[2] = {"method=sph", cases[i][0]};
        expect_bytes(small, strlen(small), 2, overrides, cases[i][1]);
    }
}
#endif

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
        cmocka_unit_test(malformed_text),
        cmocka_unit_test(comforts_are_read),
        cmocka_unit_test(unknown_keys_suggest),
        cmocka_unit_test(wrong_types),
        cmocka_unit_test(ranges_and_rules),
        cmocka_unit_test(rules_of_objects),
        cmocka_unit_test(rules_of_the_plane),
        cmocka_unit_test(unilateral_keeps_its_own_volume),
        cmocka_unit_test(deep_unions),
        cmocka_unit_test(bad_overrides),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(scenes_round_trip),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(odd_text_round_trips),
        cmocka_unit_test(sph_says_what_is_wrong),
        cmocka_unit_test(set_reaches_every_key),
        cmocka_unit_test(set_parts),
        cmocka_unit_test(damaged_scenes),
#endif
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

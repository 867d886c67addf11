/* Scene files: every message about what is wrong in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sys/stat.h>

#include "scene_cases.h"

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
         "bodies[0].surface: liquid without viscosity sticks to no body"},
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
    const char *flux[] = {"incompressibility=unilateral", "unilateral.prediction=flux"};
    expect_bytes(small, strlen(small), 2, flux, "\"flux\" blows up in 3D beside unilateral.density_correction");
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
    assert_int_equal(selkie_scene_load(root, 0, NULL, &scene, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "is a folder: a scene file (.json) was expected"));
    const char *path = in_root("empty.json");
    write_text(path, "", 0);
    assert_int_equal(selkie_scene_load(path, 0, NULL, &scene, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "is empty: a scene {...} was expected"));
    assert_int_equal(selkie_scene_load("/dev/zero", 0, NULL, &scene, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "is larger than 64 MiB"));
    path = in_root("closed.json");
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
    assert_int_equal(selkie_scene_save(scene, in_root("x.json"), &error), SELKIE_ERROR_INPUT);
    assert_string_equal(error.message, "time.fps: nan is out of range: must be above 0 and at most 1000000 1/s");
    selkie_scene_free(scene);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(sph_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

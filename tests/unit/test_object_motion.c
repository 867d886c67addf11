/* Keyframes of objects: what would take one behind a closed side of the domain is refused, at the keys and between
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/random.h"
#include "geom/shape.h"

enum { MOST_SAMPLES = 4096 };

/* A bar of 0.8 m along x, 0.1 m high, about (0.5, 0.5), in a domain of one metre, 25 mm between particles. */
typedef struct bar_case {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_object_def object;
    selkie_timeline_entry timeline;
    selkie_keyframe keyframes[4];
} bar_case;

static const double spacing = 0.025;
static const selkie_world_options alone = {.threads = 1};

static void set3(double to[3], double x, double y, double z)
{
    to[0] = x, to[1] = y, to[2] = z;
}

static void bar(bar_case *c, int dimension)
{
    memset(c, 0, sizeof *c);
    selkie_scene *scene = &c->scene;
    selkie_scene_defaults(scene);
    scene->domain.dimension = dimension;
    set3(scene->domain.size, 1, 1, 0.2);
    scene->domain.cell_size = 2 * spacing;
    selkie_scene_set_method(scene, SELKIE_METHOD_SPH);
    selkie_liquid_defaults(&c->liquid);
    selkie_shape_defaults(&c->liquid.shape, SELKIE_SHAPE_BOX);
    set3(c->liquid.shape.max, 0.1, 0.1, 0.1);
    scene->liquids = &c->liquid;
    scene->liquid_count = 1;
    selkie_object_defaults(&c->object);
    selkie_shape_defaults(&c->object.shape, SELKIE_SHAPE_BOX);
    set3(c->object.shape.min, 0.1, 0.45, 0.05);
    set3(c->object.shape.max, 0.9, 0.55, 0.15);
    set3(c->object.center, 0.5, 0.5, 0.1);
    c->object.start_solid = 1;
    selkie_timeline_entry_defaults(&c->timeline);
    c->object.timeline = &c->timeline;
    c->object.timeline_count = 1;
    c->object.keyframes = c->keyframes;
    for (int k = 0; k < 4; k++)
        c->keyframes[k].time = k;
    scene->objects = &c->object;
    scene->object_count = 1;
}

/* The message that a plan gives, and a world too; "" where both are content. */
static const char *complaint(const bar_case *c)
{
    static selkie_error error, again;
    selkie_plan plan;
    selkie_world *world = NULL;
    memset(&error, 0, sizeof error);
    memset(&again, 0, sizeof again);
    const selkie_code code = selkie_scene_plan(&c->scene, &alone, &plan, &error);
    assert_int_equal(selkie_world_create(&c->scene, &alone, &world, &again), code);
    selkie_world_destroy(world);
    assert_string_equal(error.message, again.message);
    return error.message;
}

static void expect(const bar_case *c, const char *words)
{
    const char *message = complaint(c);
    if (*words ? !strstr(message, words) : *message != 0)
        fail_msg("\"%s\" and not \"%s\"", message, words);
}

/* Where the samples of the object are, in its own frame: a world has them as particles at its start. */
static int samples_of(const bar_case *c, double (*samples)[3])
{
    bar_case still = *c;
    still.scene.objects = &still.object;
    still.object.keyframe_count = 0;
    selkie_world *world;
    selkie_error error = {0};
    selkie_attribute_view x, role;
    int count = 0;
    if (selkie_world_create(&still.scene, &alone, &world, &error))
        fail_msg("%s", error.message);
    assert_int_equal(selkie_world_find_attribute(world, "position", &x, &error), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(world, "role", &role, &error), SELKIE_OK);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        if (*(const uint32_t *)(const void *)((const char *)role.data + (size_t)p * role.stride) != 2)
            continue;
        assert_true(count < MOST_SAMPLES);
        for (int d = 0; d < 3; d++)
            samples[count][d] = ((const float *)(const void *)((const char *)x.data + (size_t)p * x.stride))[d];
        count++;
    }
    selkie_world_destroy(world);
    assert_true(count > 50);
    return count;
}

static void keys_stay_inside(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        bar_case c;
        bar(&c, dimension);
        c.object.keyframe_count = 3;
        set3(c.keyframes[1].translate, 0.05, 0.2, 0);
        expect(&c, "");
        set3(c.keyframes[2].translate, -0.2, 0, 0);
        expect(&c, "objects[0].keyframes[2]: takes the object to -0.0");
        expect(&c, "along x, behind the closed side of the domain at 0 m");
        c.scene.domain.walls[0] = SELKIE_WALL_OPEN;
        expect(&c, "");
        set3(c.keyframes[2].translate, 0, 0.6, 0);
        expect(&c,
               "along y, behind the closed side of the domain at 1 m: move it less, or open that side (domain.walls)");
    }
}

/* Half a turn in a domain that the bar has no room to stand up in: both keys are inside, the way is not. */
static void turns_are_looked_at_between_keys(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        bar_case c;
        bar(&c, dimension);
        c.scene.domain.size[1] = 0.75;
        c.object.keyframe_count = 3;
        c.keyframes[1].rotate[2] = 0; /* nothing until 1 s */
        c.keyframes[2].rotate[2] = 175;
        expect(
            &c,
            "objects[0].keyframes[2]: turns the object out of the domain on the way from the keyframe before: at 1.");
        expect(&c, "along y, behind the closed side at 0.75 m");
        c.keyframes[2].rotate[2] = 20; /* 0.4 sin(20) = 0.14 */
        expect(&c, "");
        c.keyframes[2].rotate[2] = 175;
        c.scene.domain.walls[3] = SELKIE_WALL_OPEN; /* the upper one */
        expect(&c, "");                             /* below there is room: 0.5 m */
        c.scene.domain.walls[3] = SELKIE_WALL_FREE_SLIP;
        c.scene.domain.size[1] = 1;
        expect(&c, "");
    }
}

/* The end of the bar passes a wall at less than a twentieth of a spacing on either side of it. */
static void the_bound_is_sharp(void **state)
{
    (void)state;
    static double samples[MOST_SAMPLES][3];
    bar_case c;
    bar(&c, 2);
    int count = samples_of(&c, samples);
    double radius = 0;
    for (int n = 0; n < count; n++)
        radius = fmax(radius, hypot(samples[n][0] - 0.5, samples[n][1] - 0.5));
    c.object.keyframe_count = 2;
    c.keyframes[1].rotate[2] = 170;
    for (int side = -1; side <= 1; side += 2) {
        double lift = 0.5 - radius + 0.05 * side * spacing;
        c.keyframes[0].translate[1] = c.keyframes[1].translate[1] = lift;
        expect(&c, side > 0 ? "keyframes[1]: turns the object out of the domain" : "");
    }
}

/* Turns and moves at random, against all samples at many moments. */
static void random_ways_are_judged_right(void **state)
{
    (void)state;
    static double samples[MOST_SAMPLES][3];
    enum { CASES = 100, MOMENTS = 400 };
    int kinds[2] = {0, 0};
    for (int n = 0; n < CASES; n++) {
        const int dimension = 2 + n % 2;
        bar_case c;
        bar(&c, dimension);
        set3(c.scene.domain.size, 1, 0.8, 0.8);
        c.object.shape.min[2] = 0.45, c.object.shape.max[2] = 0.5, c.object.center[2] = 0.5;
        c.object.shape.min[0] = 0.15, c.object.shape.max[0] = 0.85;
        c.object.keyframe_count = 2;
        for (int d = 0; d < 3; d++) {
            double random[3];
            for (uint64_t k = 0; k < 3; k++)
                random[k] = sk_random_float(17, (uint64_t)n, 3 * (uint64_t)d + k) - 0.5;
            c.object.center[d] += d < dimension ? 0.3 * random[0] : 0;
            c.keyframes[1].translate[d] = d < dimension ? 0.2 * random[1] : 0;
            c.keyframes[1].rotate[d] = d == 2 ? 360 * random[2] : dimension == 3 ? 60 * random[2] : 0;
        }
        const int count = samples_of(&c, samples);
        selkie_obstacle_def motion = {.keyframe_count = 2, .keyframes = c.keyframes};
        memcpy(motion.center, c.object.center, sizeof motion.center);
        double beyond[2] = {-1, -1}; /* m  behind a side: at the second key, at any moment */
        for (int m = MOMENTS; m >= 0; m--) {
            sk_pose pose;
            sk_pose_at(&motion, (double)m / MOMENTS, &pose);
            for (int p = 0; p < count; p++) {
                double x[3];
                sk_pose_to_world(&pose, samples[p], x);
                for (int d = 0; d < dimension; d++) {
                    double out = fmax(-x[d], x[d] - c.scene.domain.size[d]);
                    beyond[0] = m == MOMENTS ? fmax(beyond[0], out) : beyond[0];
                    beyond[1] = fmax(beyond[1], out);
                }
            }
        }
        const char *message = complaint(&c);
        if (fabs(beyond[0]) < 0.02 * spacing || fabs(beyond[1]) < 0.02 * spacing)
            continue; /* too close to tell, as is promised */
        const char *right = beyond[0] > 0 ? "takes the object" : beyond[1] > 0 ? "turns the object" : "";
        if (*right ? !strstr(message, right) : *message != 0)
            fail_msg("case %d: \"%s\" where %g m are behind a side, %g m at the key", n, message, beyond[1], beyond[0]);
        kinds[0] += beyond[0] <= 0 && beyond[1] > 0;
        kinds[1] += beyond[1] <= 0;
    }
    assert_true(kinds[0] > 8 && kinds[1] > 8); /* both were there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_stay_inside),
        cmocka_unit_test(turns_are_looked_at_between_keys),
        cmocka_unit_test(the_bound_is_sharp),
        cmocka_unit_test(random_ways_are_judged_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

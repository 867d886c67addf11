/* Liquid boundaries: a cup of liquid holds liquid while it is tilted and moved, and dissolves calmly; a block may
 * solidify and dissolve at any moment; candidates arrive; a run cut in two ends as one, on any number of threads.
 *
 * Everything stands in boxes of particles that are solid from the start, so that the walls are liquid boundaries too.
 */
#include <unistd.h>

#include "physics/physics.h"

#include "geom/shape.h"

enum { MAX_OBJECTS = 4, MAX_PARTS = 8, MAX_ENTRIES = 128 };

typedef struct object_scene {
    test_scene t;
    selkie_object_def objects[MAX_OBJECTS];
    selkie_shape parts[MAX_OBJECTS][MAX_PARTS];
    selkie_timeline_entry entries[MAX_OBJECTS][MAX_ENTRIES];
    selkie_keyframe keys[MAX_OBJECTS][8];
} object_scene;

/* A domain of method sph with particles of the given spacing (m). */
static void sph_scene(object_scene *s, int dimension, double x, double y, double z, double spacing)
{
    memset(s, 0, sizeof *s);
    tank(&s->t, dimension, x, y, z, 2.0 * spacing);
    selkie_scene_set_method(&s->t.scene, SELKIE_METHOD_SPH);
    s->t.scene.time.cfl = 0.0;
    s->t.scene.objects = s->objects;
}

static selkie_object_def *add_object(object_scene *s, selkie_shape shape)
{
    int o = s->t.scene.object_count++;
    selkie_object_def *object = &s->objects[o];
    selkie_object_defaults(object);
    object->shape = shape;
    object->timeline = s->entries[o];
    object->keyframes = s->keys[o];
    return object;
}

static void add_entry(object_scene *s, selkie_object_def *object, double assemble, double release)
{
    selkie_timeline_entry *entry = &s->entries[object - s->objects][object->timeline_count++];
    selkie_timeline_entry_defaults(entry);
    entry->assemble = assemble;
    entry->release = release;
}

/* Walls of the given thickness around a box, without a lid. */
static selkie_object_def *add_cup(object_scene *s, const double low[3], const double high[3], double thickness)
{
    selkie_shape *parts = s->parts[s->t.scene.object_count];
    int dimension = s->t.scene.domain.dimension, count = 0;
    double z0 = dimension == 3 ? low[2] - thickness : 0.0, z1 = dimension == 3 ? high[2] + thickness : 0.0,
           w = thickness;
    parts[count++] = box_shape(low[0] - w, low[1] - w, z0, high[0] + w, low[1], z1);
    parts[count++] = box_shape(low[0] - w, low[1], z0, low[0], high[1], z1);
    parts[count++] = box_shape(high[0], low[1], z0, high[0] + w, high[1], z1);
    if (dimension == 3) {
        parts[count++] = box_shape(low[0], low[1], z0, high[0], high[1], low[2]);
        parts[count++] = box_shape(low[0], low[1], high[2], high[0], high[1], z1);
    }
    selkie_shape cup;
    selkie_shape_defaults(&cup, SELKIE_SHAPE_UNION);
    cup.child_count = count;
    cup.children = parts;
    return add_object(s, cup);
}

static uint32_t role_of(const selkie_attribute_view *roles, int64_t p)
{
    uint32_t role;
    memcpy(&role, (const char *)roles->data + (size_t)p * roles->stride, sizeof role);
    return role;
}

static int64_t count_role(const selkie_world *world, uint32_t role)
{
    selkie_attribute_view roles = attribute_of(world, "role");
    int64_t count = 0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        count += role_of(&roles, p) == role;
    return count;
}

/* How far (m) the fluid particle that got farthest into or through the walls of the cup is beyond their inner side. */
static double deepest(const selkie_world *world, const selkie_object_def *cup, const double low[3],
                      const double high[3])
{
    selkie_attribute_view roles = attribute_of(world, "role"), position = attribute_of(world, "position");
    selkie_obstacle_def motion = {.keyframe_count = cup->keyframe_count, .keyframes = cup->keyframes};
    memcpy(motion.center, cup->center, sizeof motion.center);
    sk_pose pose;
    sk_pose_at(&motion, selkie_world_time(world), &pose);
    double most = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        double at[3] = {x[0], x[1], x[2]}, local[3];
        if (role_of(&roles, p) != 0)
            continue;
        sk_pose_to_local(&pose, at, local);
        for (int d = 0; d < selkie_world_scene(world)->domain.dimension; d++) {
            most = fmax(most, low[d] - local[d]);
            if (d != 1) /* nothing is above the rim */
                most = fmax(most, local[d] - high[d]);
        }
    }
    return most;
}

/* Filled, tilted by 10 degrees to both sides and carried along, for two seconds: nothing passes the wall. A particle's
 * centre may come nearer to a wall particle than a spacing, so it may seem to lie in the wall by a part of it. Then the
 * cup is released: what it was falls like the rest, and nothing is faster than the height and the cup's own speed make
 * it. */
static void hold_and_dissolve(int dimension, double spacing)
{
    object_scene s;
    const double low[3] = {0.5, 0.6, 0.3}, high[3] = {1.1, 1.4, 0.7};
    sph_scene(&s, dimension, 2.4, 1.8, 1.0, spacing);
    add_liquid(&s.t, box_shape(low[0], low[1], low[2], high[0], 0.85, high[2]));
    selkie_object_def *cup = add_cup(&s, low, high, 2.0 * spacing);
    cup->start_solid = 1;
    set3(cup->center, 0.8, 0.7, 0.5);
    static const double angles[] = {0, 10, -10, 10, 0}, places[] = {0, 0.1, 0.3, 0.2, 0.2};
    for (int k = 0; k < 5; k++) {
        s.keys[0][k].time = 0.5 * k;
        s.keys[0][k].rotate[2] = angles[k];
        s.keys[0][k].translate[0] = places[k];
        cup->keyframe_count++;
    }
    add_entry(&s, cup, 0.0, 2.0);
    selkie_world *world = make_world(&s.t);
    char what[64];
    snprintf(what, sizeof what, "cup, %dD", dimension);
    int64_t count = selkie_world_particle_count(world);
    double leak = 0.0;
    while (selkie_world_time(world) < 2.0 - 1e-9) {
        step_world(world);
        leak = fmax(leak, deepest(world, cup, low, high));
    }
    note(what, "particles", (double)count);
    at_most(what, "deepest fluid particle in the wall, spacings", leak / spacing, 0.75);
    double before = sum_particles(world, NULL).max_speed, height = high[1];
    double bound = before + sqrt(2.0 * GRAVITY * height), fastest = 0.0;
    for (int n = 0; n < 1 || selkie_world_time(world) < 2.3; n++) {
        step_world(world);
        fastest = fmax(fastest, sum_particles(world, NULL).max_speed);
    }
    assert_int_equal(count_role(world, 0), count);
    assert_int_equal(selkie_world_particle_count(world), count);
    note(what, "fastest before the release, m/s", before);
    at_most(what, "fastest after the release, m/s", fastest, bound);
    selkie_world_destroy(world);
}

static void a_cup_holds_2d(void **state)
{
    (void)state;
    hold_and_dissolve(2, 0.025);
}

static void a_cup_holds_3d(void **state)
{
    (void)state;
    hold_and_dissolve(3, 0.05);
}

/* A jet that crosses more than a spacing in a step hits a plate two particles thick: none may pass, and none may be
 * thrown back faster than it came. What a step says of speeds and energy is what the particles have after it. */
static void a_plate_stops_long_steps(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        object_scene s;
        const double spacing = 0.02, z = dimension == 3 ? 0.2 : 0.0, speed = 6.0;
        sph_scene(&s, dimension, 0.4, 0.6, 0.4, spacing);
        s.t.scene.time.step = s.t.scene.time.min_step = 1.3 * spacing / speed; /* not to be split */
        set3(s.t.scene.gravity, 0, 0, 0);
        add_object(&s, box_shape(0, 0.2, 0, 0.4, 0.24, 0.4))->start_solid = 1;
        set3(add_liquid(&s.t, box_shape(0.12, 0.3, z - 0.08, 0.28, 0.5, z + 0.08))->velocity, 0, -speed, 0);
        selkie_world *world = make_world_threads(&s.t.scene, 1);
        double fastest = 0.0, wrong_speed = 0.0, wrong_energy = 0.0;
        int64_t through = 0;
        for (int n = 0; n < 30; n++) {
            step_world(world);
            const selkie_statistics *told = selkie_world_statistics(world);
            const particle_sums found = sum_particles(world, NULL);
            const double mass = 1000.0 * pow(spacing, dimension) * (double)found.count;
            fastest = fmax(fastest, told->max_speed);
            wrong_speed = fmax(wrong_speed, fabs(told->max_speed - found.max_speed));
            wrong_energy = fmax(wrong_energy, fabs(told->kinetic_energy / (mass * found.kinetic) - 1.0));
        }
        selkie_attribute_view position = attribute_of(world, "position");
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            through += particle_of(&position, p)[1] < 0.2;
        char what[64];
        snprintf(what, sizeof what, "a jet against a plate, %dD, 1.3 spacings a step", dimension);
        at_most(what, "particles through it", (double)through, 0);
        at_most(what, "fastest / speed of the jet", fastest / speed, 2);
        at_most(what, "largest speed that a step tells - that of the particles, m/s", wrong_speed, 1e-9);
        at_most(what, "kinetic energy that a step tells / that of the particles - 1", wrong_energy, 1e-9);
        selkie_world_destroy(world);
    }
}

/* A plan refuses what a world would, with the same words. */
static void plans_refuse_what_worlds_do(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        object_scene s;
        sph_scene(&s, 2, 1.0, 1.0, 0.0, 0.02);
        add_liquid(&s.t, box_shape(0.0, 0.0, 0, 1.0, 0.4, 0));
        selkie_object_def *plate = add_object(&s, box_shape(n ? 0.8 : 0.4, 0.6, 0, n ? 1.2 : 0.6, 0.64, 0));
        plate->start_solid = n;
        add_entry(&s, plate, n ? 0.0 : 0.1, 0.9);
        selkie_plan plan;
        selkie_error planned = {0}, made = {0};
        selkie_world *world = NULL;
        if (!n) {
            if (selkie_scene_plan(&s.t.scene, NULL, &plan, &planned) != SELKIE_OK)
                fail_msg("%s", planned.message);
            s.keys[0][0].time = 0.5;
            s.keys[0][0].translate[0] = -0.6;
            plate->keyframe_count = 1;
        }
        assert_int_equal(selkie_scene_plan(&s.t.scene, NULL, &plan, &planned), SELKIE_ERROR_INPUT);
        assert_int_equal(selkie_world_create(&s.t.scene, NULL, &world, &made), SELKIE_ERROR_INPUT);
        assert_string_equal(planned.message, made.message);
        assert_non_null(
            strstr(made.message, n ? "objects[0].shape: reaches" : "objects[0].keyframes[0]: takes the object to"));
    }
}

/* A hundred times, at random moments, most of them in the middle of something. */
static void solid_and_liquid_a_hundred_times(void **state)
{
    (void)state;
    object_scene s;
    const double low[3] = {0.1, 0.1, 0}, high[3] = {0.9, 0.9, 0};
    sph_scene(&s, 2, 1.0, 1.0, 0.0, 0.02);
    add_liquid(&s.t, box_shape(0.1, 0.1, 0, 0.9, 0.4, 0));
    add_cup(&s, low, high, 0.06)->start_solid = 1;
    selkie_object_def *block = add_object(&s, box_shape(0.3, 0.2, 0, 0.6, 0.4, 0));
    uint64_t random = 12345;
    double time = 0.02;
    for (int n = 0; n < 100; n++) {
        double parts[2];
        for (int k = 0; k < 2; k++) {
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            parts[k] = 0.002 + 0.03 * (double)(random >> 40) / 16777216.0;
        }
        add_entry(&s, block, time, time + parts[0]);
        time += parts[0] + parts[1];
    }
    selkie_world *world = make_world(&s.t);
    int64_t count = selkie_world_particle_count(world), turns = 0, solid = 0;
    double fastest = 0.0;
    while (selkie_world_time(world) < time + 0.1) {
        step_world(world);
        fastest = fmax(fastest, sum_particles(world, NULL).max_speed);
        int64_t now = selkie_world_particle_count(world) - count_role(world, 0);
        turns += (now > 0) != (solid > 0);
        solid = now;
        assert_int_equal(selkie_world_particle_count(world), count);
    }
    note("a block, solid and liquid", "particles", (double)count);
    note("a block, solid and liquid", "time, s", selkie_world_time(world));
    note("a block, solid and liquid", "changes of state", (double)turns);
    /* All of the height to fall from, and the speed at which candidates are led. */
    at_most("a block, solid and liquid", "fastest particle, m/s", fastest, sqrt(2.0 * GRAVITY * 0.8) + block->beta);
    double low_of_all[3] = {0.1, 0.1, 0};
    at_most("a block, solid and liquid", "deepest in the wall, spacings",
            deepest(world, &s.objects[0], low_of_all, high) / 0.02, 0.75);
    selkie_world_destroy(world);
}

/* Everything is taken, everything arrives, and what was not taken is left alone. A sweep gives it back in order. */
static void a_disc_fills_up(void **state)
{
    (void)state;
    object_scene s;
    const double low[3] = {0.1, 0.1, 0}, high[3] = {0.9, 0.9, 0};
    sph_scene(&s, 2, 1.0, 1.0, 0.0, 0.02);
    add_liquid(&s.t, box_shape(0.1, 0.1, 0, 0.9, 0.4, 0));
    add_cup(&s, low, high, 0.06)->start_solid = 1;
    selkie_object_def *disc = add_object(&s, sphere_shape(0.5, 0.55, 0, 0.12));
    add_entry(&s, disc, 0.1, 1.3);
    s.entries[1][0].release_mode = SELKIE_RELEASE_SWEEP;
    s.entries[1][0].release_duration = 0.1;
    selkie_world *world = make_world(&s.t);
    int64_t wall = count_role(world, 2), count = selkie_world_particle_count(world);
    run_until(world, 1.3);
    double expected = M_PI * 0.12 * 0.12 / (0.02 * 0.02), solid = (double)(count_role(world, 2) - wall);
    between("a disc", "particles over its area", solid / expected, 0.95, 1.05);
    at_most("a disc", "candidates that are still on their way", (double)count_role(world, 1), 0.0);
    run_until(world, 1.35);
    between("a disc, sweeping", "share that is solid half way", (double)(count_role(world, 2) - wall) / solid, 0.3,
            0.7);
    run_until(world, 1.43);
    assert_int_equal(count_role(world, 2), wall);
    assert_int_equal(selkie_world_particle_count(world), count);
    selkie_world_destroy(world);
}

/* Bits of positions, velocities and samples at a time, from one run. */
static uint64_t fingerprint(const selkie_world *world)
{
    uint64_t hash = 1469598103934665603ULL;
    static const char *const names[] = {"position", "velocity", "id", "sample", "role"};
    for (int n = 0; n < 5; n++) {
        selkie_attribute_view view = attribute_of(world, names[n]);
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            for (int c = 0; c < 4 * view.components; c++)
                hash = (hash ^ ((const uint8_t *)view.data)[(size_t)p * view.stride + (size_t)c]) * 1099511628211ULL;
    }
    return hash;
}

static void the_same_bits(void **state)
{
    (void)state;
    object_scene s;
    const double low[3] = {0.1, 0.1, 0}, high[3] = {0.9, 0.9, 0};
    sph_scene(&s, 2, 1.0, 1.0, 0.0, 0.02);
    add_liquid(&s.t, box_shape(0.1, 0.1, 0, 0.9, 0.4, 0));
    add_cup(&s, low, high, 0.06)->start_solid = 1;
    selkie_object_def *disc = add_object(&s, sphere_shape(0.5, 0.55, 0, 0.12));
    add_entry(&s, disc, 0.1, 0.4);
    char path[64];
    snprintf(path, sizeof path, "liquid_boundary_%ld.checkpoint", (long)getpid());
    uint64_t expected = 0;
    for (int threads = 1; threads <= 4; threads += 3) {
        selkie_world *world = make_world_threads(&s.t.scene, threads);
        run_until(world, 0.2);
        selkie_error error = {0};
        if (threads == 1 && selkie_world_save(world, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        run_until(world, 0.5);
        if (threads == 1)
            expected = fingerprint(world);
        else
            assert_true(fingerprint(world) == expected);
        selkie_world_destroy(world);
    }
    selkie_world *world = make_world_threads(&s.t.scene, 2);
    selkie_error error = {0};
    if (selkie_world_load(world, path, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    remove(path);
    run_until(world, 0.5);
    assert_true(fingerprint(world) == expected);
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cup_holds_2d),
        cmocka_unit_test(a_cup_holds_3d),
        cmocka_unit_test(a_plate_stops_long_steps),
        cmocka_unit_test(plans_refuse_what_worlds_do),
        cmocka_unit_test(solid_and_liquid_a_hundred_times),
        cmocka_unit_test(a_disc_fills_up),
        cmocka_unit_test(the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

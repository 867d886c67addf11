/* The public interface, every function of it: worlds made, stepped, looked at, saved, loaded and written out; errors
 * that leave things as they were; the same bits alone, in company and on any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "sanitized.h"
#include "selkie_config.h"
#include "world/world_internal.h"

static char folder[] = "/tmp/selkie-test-world-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* every test takes its files away */
}

static const char *file_in(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

typedef struct case_parts {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_source_def source;
    selkie_drain_def drain;
    selkie_obstacle_def obstacle;
    selkie_probe_def probes[4];
} case_parts;

static void set3(double to[3], double x, double y, double z)
{
    to[0] = x, to[1] = y, to[2] = z;
}

/* A dam that breaks past a turning bar, with a source, a drain and all probes. */
static void dam(case_parts *c, int dimension, selkie_method method)
{
    memset(c, 0, sizeof *c);
    selkie_scene_defaults(&c->scene);
    c->scene.volume = SELKIE_VOLUME_NONE;
    selkie_scene *scene = &c->scene;
    scene->domain.dimension = dimension;
    set3(scene->domain.size, 1.0, 0.75, dimension == 3 ? 0.5 : 1.0);
    scene->domain.cell_size = 1.0 / 24;
    selkie_scene_set_method(scene, method);
    scene->time.end = 1.0;
    scene->time.fps = 50.0;
    selkie_liquid_defaults(&c->liquid);
    selkie_shape_defaults(&c->liquid.shape, SELKIE_SHAPE_BOX);
    set3(c->liquid.shape.min, 0, 0, 0);
    set3(c->liquid.shape.max, 0.4, 0.5, 0.5);
    scene->liquids = &c->liquid;
    scene->liquid_count = 1;
    selkie_obstacle_defaults(&c->obstacle);
    selkie_shape_defaults(&c->obstacle.shape, SELKIE_SHAPE_BOX);
    set3(c->obstacle.shape.min, 0.55, 0.1, 0.1);
    set3(c->obstacle.shape.max, 0.75, 0.2, 0.4);
    set3(c->obstacle.center, 0.65, 0.15, 0.25);
    c->obstacle.angular_velocity[2] = 2.0;
    scene->obstacles = &c->obstacle;
    scene->obstacle_count = 1;
    selkie_source_defaults(&c->source);
    selkie_shape_defaults(&c->source.shape, SELKIE_SHAPE_SPHERE);
    set3(c->source.shape.center, 0.8, 0.6, dimension == 3 ? 0.25 : 0.0);
    c->source.shape.radius = 0.08;
    set3(c->source.velocity, -0.5, -0.5, 0);
    scene->sources = &c->source;
    scene->source_count = 1;
    selkie_drain_defaults(&c->drain);
    selkie_shape_defaults(&c->drain.shape, SELKIE_SHAPE_BOX);
    set3(c->drain.shape.min, 0.9, 0.0, 0.0);
    set3(c->drain.shape.max, 1.0, 0.1, 0.5);
    scene->drains = &c->drain;
    scene->drain_count = 1;
    static const selkie_probe_kind kinds[] = {SELKIE_PROBE_HEIGHT, SELKIE_PROBE_PRESSURE, SELKIE_PROBE_VELOCITY,
                                              SELKIE_PROBE_FRONT};
    static const char *const names[] = {"height", "pressure", "velocity", "front"};
    for (int p = 0; p < 4; p++) {
        selkie_probe_defaults(&c->probes[p]);
        c->probes[p].kind = kinds[p];
        c->probes[p].name = names[p];
        set3(c->probes[p].at, 0.2, 0.05, dimension == 3 ? 0.25 : 0.0);
    }
    scene->probes = c->probes;
    scene->probe_count = 4;
}

static selkie_world *create(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    assert_true(options.threads == 0 && options.memory_limit == 0);
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
    for (int s = 0; s < steps; s++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

/* All that can be seen of the state, bit by bit. */
static int same_state(const selkie_world *a, const selkie_world *b)
{
    int64_t count = selkie_world_particle_count(a);
    int same = count == selkie_world_particle_count(b) && selkie_world_time(a) == selkie_world_time(b) &&
               selkie_world_step_count(a) == selkie_world_step_count(b) &&
               selkie_world_frame(a) == selkie_world_frame(b) && selkie_world_at_frame(a) == selkie_world_at_frame(b) &&
               selkie_world_attribute_count(a) == selkie_world_attribute_count(b);
    for (int n = 0; same && n < selkie_world_attribute_count(a); n++) {
        selkie_attribute_view x, y;
        assert_int_equal(selkie_world_attribute(a, n, &x), SELKIE_OK);
        assert_int_equal(selkie_world_attribute(b, n, &y), SELKIE_OK);
        for (int64_t p = 0; same && p < count; p++)
            same = !memcmp((const char *)x.data + (size_t)p * x.stride, (const char *)y.data + (size_t)p * y.stride,
                           (size_t)x.components * 4);
    }
    return same;
}

static int same_statistics(const selkie_world *a, const selkie_world *b)
{
    const selkie_statistics *x = selkie_world_statistics(a), *y = selkie_world_statistics(b);
    return x->step == y->step && x->time == y->time && x->dt == y->dt && x->particles == y->particles &&
           x->volume_ratio == y->volume_ratio && x->volume_eq19 == y->volume_eq19 &&
           x->occupied_ratio == y->occupied_ratio && x->kinetic_energy == y->kinetic_energy &&
           x->potential_energy == y->potential_energy && x->max_speed == y->max_speed &&
           x->pressure_iterations == y->pressure_iterations && x->pressure_residual == y->pressure_residual &&
           x->liquid_cells == y->liquid_cells && x->blocks == y->blocks && x->emitted == y->emitted &&
           x->drained == y->drained;
}

static int same_probes(const selkie_world *a, const selkie_world *b)
{
    for (int c = 0; c < selkie_world_probe_column_count(a); c++) {
        double x = selkie_world_probe_value(a, c), y = selkie_world_probe_value(b, c);
        if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
            return 0;
    }
    return 1;
}

/* --- Making one, and looking at it --- */

static void a_new_world(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        case_parts c;
        dam(&c, dimension, SELKIE_METHOD_APIC);
        selkie_world *world = create(&c.scene, 2);
        assert_true(selkie_world_time(world) == 0.0);
        assert_int_equal(selkie_world_step_count(world), 0);
        assert_int_equal(selkie_world_frame(world), 0);
        assert_int_equal(selkie_world_at_frame(world), 1);
        assert_int_equal(selkie_world_finished(world), 0);
        const selkie_scene *own = selkie_world_scene(world);
        assert_ptr_not_equal(own, &c.scene);
        assert_true(own->liquids != c.scene.liquids && own->domain.cell_size == c.scene.domain.cell_size);
        /* 0.4 m x 0.5 m (x 0.5 m), to within a layer of particles. */
        double cells = 0.4 * 24 * 12 * (dimension == 3 ? 12 : 1),
               particles = (double)selkie_world_particle_count(world);
        assert_true(fabs(particles / (cells * (dimension == 3 ? 8 : 9)) - 1.0) < 0.05);
        double mass = selkie_world_particle_mass(world) * particles;
        assert_true(fabs(mass / (1000.0 * 0.4 * 0.5 * (dimension == 3 ? 0.5 : 1.0)) - 1.0) < 0.05);
        assert_true(selkie_world_memory(world) > (size_t)particles * 64);

        assert_int_equal(selkie_world_attribute_count(world), 4);
        static const char *const names[] = {"position", "velocity", "id", "affine"};
        for (int n = 0; n < 4; n++) {
            selkie_attribute_view by_index, by_name;
            assert_int_equal(selkie_world_attribute(world, n, &by_index), SELKIE_OK);
            assert_int_equal(selkie_world_find_attribute(world, names[n], &by_name, NULL), SELKIE_OK);
            assert_string_equal(by_index.name, names[n]);
            assert_ptr_equal(by_index.data, by_name.data);
            assert_int_equal(by_index.components, n == 2 ? 1 : n == 3 ? 9 : 3);
            assert_int_equal(by_index.type, n == 2 ? SELKIE_UINT32 : SELKIE_FLOAT32);
        }
        selkie_attribute_view view;
        selkie_error error = {0};
        assert_int_equal(selkie_world_attribute(world, -1, &view), SELKIE_ERROR_INPUT);
        assert_int_equal(selkie_world_attribute(world, 4, &view), SELKIE_ERROR_INPUT);
        assert_int_equal(selkie_world_find_attribute(world, "colour", &view, &error), SELKIE_ERROR_INPUT);
        assert_non_null(strstr(error.message, "colour"));
        assert_null(view.data);

        assert_true(selkie_world_phase_count(world) > 5 && selkie_world_phase_count(world) <= SELKIE_MAX_PHASES);
        int found = 0;
        for (int p = 0; p < selkie_world_phase_count(world); p++)
            found += !strcmp(selkie_world_phase_name(world, p), "pressure") ||
                     !strcmp(selkie_world_phase_name(world, p), "sources");
        assert_int_equal(found, 2);
        assert_null(selkie_world_phase_name(world, -1));
        assert_null(selkie_world_phase_name(world, selkie_world_phase_count(world)));

        assert_int_equal(selkie_world_probe_column_count(world), 3 + dimension);
        assert_string_equal(selkie_world_probe_column_name(world, 0), "height");
        assert_string_equal(selkie_world_probe_column_name(world, 2), "velocity_x");
        assert_null(selkie_world_probe_column_name(world, 3 + dimension));
        assert_true(isnan(selkie_world_probe_value(world, -1)));
        /* 0.5 m of water above a probe that hangs 0.05 m over the floor, and a front at 0.4 m */
        assert_true(fabs(selkie_world_probe_value(world, 0) - 0.45) < 0.02);
        assert_true(fabs(selkie_world_probe_value(world, 2 + dimension) - 0.4) < 0.03);
        const selkie_statistics *s = selkie_world_statistics(world);
        assert_true(s->volume_ratio == 1.0 && s->volume_eq19 == 1.0 && s->occupied_ratio == 1.0);
        assert_true(s->particles == (int64_t)particles && s->kinetic_energy == 0.0 && s->liquid_cells > 0 &&
                    s->blocks > 0);
        assert_true(fabs(s->potential_energy / (mass * 9.81 * 0.25) - 1.0) < 0.05);
        selkie_world_destroy(world);
    }
    selkie_world_destroy(NULL);
}

static void fields_are_seen_in_place(void **state)
{
    (void)state;
    /* Water at rest, so that the pressure is known. */
    case_parts c;
    dam(&c, 2, SELKIE_METHOD_FLIP);
    c.scene.source_count = c.scene.drain_count = c.scene.obstacle_count = c.scene.probe_count = 0;
    c.liquid.shape.max[0] = 1.0;
    c.scene.particles.per_cell = 16;
    c.scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    c.scene.pressure.tolerance = 1e-6;
    selkie_world *world = create(&c.scene, 2);
    run(world, 3);
    static const char *const names[] = {"velocity_x", "velocity_y", "pressure", "density", "fill"};
    selkie_field_view view;
    selkie_error error = {0};
    for (int n = 0; n < 5; n++) {
        assert_int_equal(selkie_world_field(world, names[n], &view, &error), SELKIE_OK);
        assert_string_equal(view.name, names[n]);
        assert_int_equal(view.block_count, selkie_world_statistics(world)->blocks);
        assert_true(n == 2 || view.scale == 1.0);
        int seen = 0, cells = view.extent[0] * view.extent[1] * view.extent[2];
        for (int b = 0; b < view.block_count; b++)
            for (int m = 0; m < cells; m++) {
                int i = view.block_coordinates[b][0] * view.extent[0] - view.padding[0] + m % view.extent[0];
                int j = view.block_coordinates[b][1] * view.extent[1] - view.padding[1] + m / view.extent[0];
                double value = view.data[b * cells + m] * view.scale;
                if (i < 1 || i > 22 || j < 1 || j > 10)
                    continue;
                seen++;
                double expected = n == 2 ? 1000.0 * 9.81 * (0.5 - (j + 0.5) / 24) : n < 2 ? 0.0 : 1.0;
                assert_true(fabs(value - expected) < (n == 2 ? 5.0 : 2e-3));
            }
        assert_int_equal(seen, 22 * 10);
    }
    assert_int_equal(selkie_world_field(world, "velocity_z", &view, &error), SELKIE_ERROR_INPUT);
    assert_int_equal(selkie_world_field(world, "vorticity", &view, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "vorticity"));
    assert_non_null(strstr(error.message, "pressure"));
    assert_null(view.data);
    selkie_world_destroy(world);
}

/* Positions and velocities may be written between steps: free fall from wherever they are put, with what they are
 * given. */
static void particles_may_be_written(void **state)
{
    (void)state;
    case_parts c;
    dam(&c, 3, SELKIE_METHOD_FLIP);
    c.scene.source_count = c.scene.drain_count = c.scene.obstacle_count = c.scene.probe_count = 0;
    c.scene.flip_ratio = 1.0;
    set3(c.liquid.shape.min, 0.2, 0.2, 0.2);
    set3(c.liquid.shape.max, 0.3, 0.3, 0.3);
    c.scene.time.step = 0.005;
    selkie_world *world = create(&c.scene, 2);
    run(world, 1);
    selkie_attribute_view position, velocity, id;
    assert_int_equal(selkie_world_find_attribute(world, "position", &position, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(world, "velocity", &velocity, NULL), SELKIE_OK);
    int64_t count = selkie_world_particle_count(world);
    float *before = malloc((size_t)count * 4);
    for (int64_t p = 0; p < count; p++) {
        float *x = (float *)((char *)position.data + (size_t)p * position.stride),
              *v = (float *)((char *)velocity.data + (size_t)p * velocity.stride);
        x[0] += 0.4f; /* all together, elsewhere */
        x[1] += 0.3f;
        v[0] = 1.0f;
        v[1] = 2.0f;
        v[2] = 0.0f;
    }
    assert_int_equal(selkie_world_find_attribute(world, "id", &id, NULL), SELKIE_OK);
    for (int64_t p = 0; p < count; p++)
        before[*(uint32_t *)((char *)id.data + (size_t)p * id.stride)] =
            *(float *)((char *)position.data + (size_t)p * position.stride);
    run(world, 1);
    assert_int_equal(selkie_world_find_attribute(world, "position", &position, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(world, "velocity", &velocity, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(world, "id", &id, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_particle_count(world), count);
    for (int64_t p = 0; p < count; p++) {
        const float *x = (const float *)((char *)position.data + (size_t)p * position.stride),
                    *v = (const float *)((char *)velocity.data + (size_t)p * velocity.stride);
        assert_true(fabs(x[0] - before[*(uint32_t *)((char *)id.data + (size_t)p * id.stride)] - 0.005) < 1e-5);
        assert_true(fabs(v[0] - 1.0) < 1e-4 && fabs(v[1] - (2.0 - 9.81 * 0.005)) < 1e-4 && fabs(v[2]) < 1e-4);
    }
    /* A place that is none ends the step with a message, and the world with it. */
    ((float *)position.data)[0] = NAN;
    selkie_error error = {0};
    assert_int_equal(selkie_world_step(world, &error), SELKIE_ERROR_DIVERGED);
    assert_non_null(strstr(error.message, "1 particles"));
    assert_int_equal(selkie_world_step(world, &error), SELKIE_ERROR_DIVERGED);
    assert_non_null(strstr(error.message, "earlier step"));
    free(before);
    selkie_world_destroy(world);
}

/* Steps land on frames exactly, a fixed step is kept in between, and the end is the end. */
static void steps_land_on_frames(void **state)
{
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        case_parts c;
        dam(&c, 2, SELKIE_METHOD_FLIP);
        c.scene.time.step = fixed ? 0.007 : 0.0;
        c.scene.time.fps = 30.0;
        c.scene.time.end = 0.11; /* between two frames */
        selkie_world *world = create(&c.scene, 2);
        int64_t frames = 0;
        while (!selkie_world_finished(world)) {
            double before = selkie_world_time(world);
            run(world, 1);
            const selkie_statistics *s = selkie_world_statistics(world);
            assert_true(s->dt > 0.0 && fabs(s->time - before - s->dt) < 1e-12);
            assert_true(s->step == selkie_world_step_count(world) && s->time == selkie_world_time(world) &&
                        s->step_ms > 0.0);
            if (fixed)
                assert_true(s->dt <= 0.007 * (1 + 1e-6));
            if (selkie_world_at_frame(world)) {
                frames++;
                assert_int_equal(selkie_world_frame(world), frames);
                assert_true(selkie_world_time(world) == (double)frames / 30.0);
            }
        }
        assert_int_equal(frames, 3);
        assert_true(selkie_world_time(world) == 0.11);
        selkie_world_destroy(world);
    }
}

static void sources_and_drains_are_counted(void **state)
{
    (void)state;
    static const selkie_method methods[] = {SELKIE_METHOD_FLIP, SELKIE_METHOD_SPH};
    for (int m = 0; m < 2; m++) {
        case_parts c;
        dam(&c, 2, methods[m]);
        set3(c.drain.shape.min, 0.0, 0.0, 0.0);
        set3(c.drain.shape.max, 0.2, 0.2, 0.5);
        selkie_world *world = create(&c.scene, 2);
        int64_t start = selkie_world_particle_count(world);
        run(world, 8);
        const selkie_statistics *s = selkie_world_statistics(world);
        assert_true(s->emitted > 0 && s->drained > 0);
        assert_int_equal(selkie_world_particle_count(world), start + s->emitted - s->drained);
        assert_true(fabs(s->volume_eq19 - 1.0) < 0.1);
        selkie_world_destroy(world);
    }
}

/* What left through an open side is neither seen nor counted. */
static void what_has_left_is_gone(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        case_parts c;
        dam(&c, dimension, SELKIE_METHOD_APIC);
        c.scene.source_count = c.scene.drain_count = c.scene.obstacle_count = 0;
        set3(c.liquid.shape.min, 0.6, 0.0, 0.0);
        set3(c.liquid.shape.max, 1.0, 0.5, 0.5);
        c.liquid.velocity[0] = 1.0;
        c.scene.domain.walls[1] = SELKIE_WALL_OPEN;
        selkie_world *world = create(&c.scene, 2);
        int64_t start = selkie_world_particle_count(world);
        for (int s = 0; s < 6; s++) {
            run(world, 1);
            const selkie_statistics *statistics = selkie_world_statistics(world);
            assert_true(statistics->drained > 0);
            assert_int_equal(statistics->particles, start - statistics->drained);
            assert_int_equal(selkie_world_particle_count(world), start - statistics->drained);
            selkie_attribute_view position;
            assert_int_equal(selkie_world_find_attribute(world, "position", &position, NULL), SELKIE_OK);
            for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
                assert_true(*(const float *)((const char *)position.data + (size_t)p * position.stride) <= 1.0f);
        }
        selkie_world_destroy(world);
    }
}

/* --- What goes wrong --- */

static void bad_scenes_make_no_world(void **state)
{
    (void)state;
    case_parts c;
    selkie_world *world = (selkie_world *)1;
    selkie_error error = {0};
    dam(&c, 3, SELKIE_METHOD_FLIP);
    c.scene.domain.cell_size = -1.0;
    assert_int_equal(selkie_world_create(&c.scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_null(world);
    assert_non_null(strstr(error.message, "cell_size"));

    dam(&c, 3, SELKIE_METHOD_FLIP); /* a liquid wholly inside the obstacle */
    set3(c.liquid.shape.min, 0.6, 0.12, 0.2);
    set3(c.liquid.shape.max, 0.7, 0.18, 0.3);
    assert_int_equal(selkie_world_create(&c.scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_null(world);
    assert_non_null(strstr(error.message, "liquids[0]"));

    dam(&c, 3, SELKIE_METHOD_FLIP); /* outside the domain */
    set3(c.liquid.shape.min, 3, 3, 3);
    set3(c.liquid.shape.max, 4, 4, 4);
    assert_int_equal(selkie_world_create(&c.scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_null(world);

    dam(&c, 3, SELKIE_METHOD_FLIP); /* without anyone who listens */
    c.scene.liquid_count = c.scene.source_count = 0;
    assert_int_equal(selkie_world_create(&c.scene, NULL, &world, NULL), SELKIE_ERROR_INPUT);
    assert_null(world);
    assert_string_equal(selkie_code_name(SELKIE_ERROR_INPUT), "bad input");
    assert_string_equal(selkie_code_name((selkie_code)99), "unknown");
}

/* Wherever the memory ends, in making a world or in a step, it ends with a message. */
static void memory_that_ends_is_an_error(void **state)
{
    (void)state;
    char path[128];
    file_in(path, "checkpoint");
    for (int dimension = 2; dimension <= 3; dimension++) {
        case_parts c;
        dam(&c, dimension, SELKIE_METHOD_APIC);
        selkie_world *good = create(&c.scene, 2);
        run(good, 4);
        assert_int_equal(selkie_world_save(good, path, NULL), SELKIE_OK);
        selkie_world_destroy(good);
        int refused = 0, failed = 0;
        for (size_t limit = 32768;; limit += limit / 32) {
            selkie_world_options options = {.threads = 2, .memory_limit = limit};
            selkie_world *world;
            selkie_error error = {0};
            selkie_code code = selkie_world_create(&c.scene, &options, &world, &error);
            if (code != SELKIE_OK) {
                assert_int_equal(code, SELKIE_ERROR_MEMORY);
                assert_true(strlen(error.message) > 10);
                assert_null(world);
                refused++;
                continue;
            }
            for (int s = 0; s < 3 && code == SELKIE_OK; s++)
                code = selkie_world_step(world, &error);
            assert_true(selkie_world_memory(world) <= limit);
            /* A world that failed may be loaded into, and tries again. */
            if (code != SELKIE_OK) {
                assert_int_equal(code, SELKIE_ERROR_MEMORY);
                failed++;
                code = selkie_world_load(world, path, &error);
                for (int s = 0; s < 2 && code == SELKIE_OK; s++)
                    code = selkie_world_step(world, &error);
                assert_true(code == SELKIE_OK || code == SELKIE_ERROR_MEMORY);
                code = SELKIE_ERROR_MEMORY;
            }
            selkie_world_destroy(world);
            if (code == SELKIE_OK)
                break;
        }
        assert_true(refused > 5 && failed > 0);
    }
    assert_int_equal(unlink(path), 0);
}

static void plans_are_near_the_truth(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        case_parts c;
        dam(&c, dimension, SELKIE_METHOD_APIC);
        selkie_plan plan;
        selkie_error error = {0};
        assert_int_equal(selkie_scene_plan(&c.scene, NULL, &plan, &error), SELKIE_OK);
        assert_int_equal(plan.cells[0], 24);
        assert_int_equal(plan.cells[1], 18);
        assert_int_equal(plan.cells[2], dimension == 3 ? 12 : 1);
        assert_true(fabs(plan.cell_size - 1.0 / 24) < 1e-12);
        assert_int_equal(plan.frames, 50);
        selkie_world *world = create(&c.scene, 2);
        double particles = (double)selkie_world_particle_count(world);
        assert_true(fabs((double)plan.particles / particles - 1.0) < 0.02);
        assert_true(fabs((double)plan.liquid_cells / (double)selkie_world_statistics(world)->liquid_cells - 1.0) < 0.2);
        run(world, 1);
        assert_true(fabs(selkie_world_statistics(world)->dt / plan.first_step - 1.0) < 0.5);
        run(world, 9);
        double truth = (double)selkie_world_memory(world), planned = (double)plan.memory_bytes;
        assert_true(planned > 0.4 * truth && planned < 10.0 * truth);
        selkie_world_destroy(world);

        /* Too little: refused, with how much it would take. */
        selkie_world_options little = {.threads = 2, .memory_limit = plan.memory_bytes / 2};
        assert_int_equal(selkie_scene_plan(&c.scene, &little, &plan, &error), SELKIE_ERROR_MEMORY);
        assert_non_null(strstr(error.message, "iB"));
        c.scene.domain.cell_size = 1e-5;
        c.scene.obstacle_count = 0;
        selkie_world_options some = {.threads = 2, .memory_limit = (size_t)1 << 30};
        selkie_code code = selkie_scene_plan(&c.scene, &some, &plan, &error);
        assert_true(code == SELKIE_ERROR_MEMORY || code == SELKIE_ERROR_INPUT);
    }
}

/* --- Saving and loading --- */

static void loaded_worlds_go_on_bit_for_bit(void **state)
{
    (void)state;
    char path[128];
    file_in(path, "checkpoint");
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int method = dimension == 2 ? SELKIE_METHOD_PIC : SELKIE_METHOD_APIC; method <= SELKIE_METHOD_APIC;
             method++) {
            case_parts c;
            dam(&c, dimension, (selkie_method)method);
            c.scene.domain.walls[1] = SELKIE_WALL_OPEN; /* so that some have left since the last sort */
            c.liquid.velocity[0] = 2.0;
            selkie_world *first = create(&c.scene, 2), *second = create(&c.scene, 1);
            run(first, 7);
            selkie_error error = {0};
            assert_int_equal(selkie_world_save(first, path, &error), SELKIE_OK);
            run(second, 2); /* something to forget */
            assert_int_equal(selkie_world_load(second, path, &error), SELKIE_OK);
            assert_true(same_state(first, second));
            for (int n = 0; n < 4; n++) {
                run(first, 1);
                run(second, 1);
                assert_true(same_state(first, second));
                assert_true(same_statistics(first, second));
                assert_true(same_probes(first, second));
            }
            selkie_world_destroy(first);
            selkie_world_destroy(second);
        }
    assert_int_equal(unlink(path), 0);
}

static unsigned char *read_file(const char *path, long *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)*size + 1);
    assert_int_equal(fread(bytes, 1, (size_t)*size, file), *size);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const unsigned char *bytes, long size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), size);
    fclose(file);
}

static void damaged_checkpoints_change_nothing(void **state)
{
    (void)state;
    char path[128], broken[128];
    file_in(path, "checkpoint");
    file_in(broken, "broken");
    case_parts c;
    dam(&c, 2, SELKIE_METHOD_APIC);
    selkie_world *saved = create(&c.scene, 2), *world = create(&c.scene, 2), *twin = create(&c.scene, 2);
    run(saved, 5);
    run(world, 2);
    run(twin, 2);
    selkie_error error = {0};
    assert_int_equal(selkie_world_save(saved, path, &error), SELKIE_OK);
    long size;
    unsigned char *bytes = read_file(path, &size);
    /* A bit anywhere, an end anywhere, a tail, nothing at all. */
    for (int n = 0; n < 60; n++) {
        long at = n < 30 ? n * 9 : (long)(((double)n / 60) * (double)size);
        bytes[at] ^= (unsigned char)(1 << n % 8);
        write_file(broken, bytes, size);
        bytes[at] ^= (unsigned char)(1 << n % 8);
        memset(&error, 0, sizeof error);
        assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "broken"));
        write_file(broken, bytes, at);
        assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
    }
    bytes[size] = 0;
    write_file(broken, bytes, size + 1);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
    assert_int_equal(unlink(broken), 0);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FILE);
    free(bytes);

    /* Whole, but of another scene. */
    case_parts other;
    dam(&other, 2, SELKIE_METHOD_FLIP);
    selkie_world *elsewhere = create(&other.scene, 2);
    assert_int_equal(selkie_world_save(elsewhere, broken, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "affine"));
    selkie_world_destroy(elsewhere);
    other.scene.domain.cell_size = 1.0 / 20;
    selkie_scene_set_method(&other.scene, SELKIE_METHOD_APIC);
    elsewhere = create(&other.scene, 2);
    assert_int_equal(selkie_world_save(elsewhere, broken, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "another scene"));
    selkie_world_destroy(elsewhere);

    assert_true(same_state(world, twin));
    run(world, 2);
    run(twin, 2);
    assert_true(same_state(world, twin));
    /* And then the good one. */
    assert_int_equal(selkie_world_load(world, path, &error), SELKIE_OK);
    assert_true(same_state(world, saved));
    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/no/such/folder", folder);
    assert_int_equal(selkie_world_save(world, nowhere, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "no/such/folder"));
    assert_int_equal(unlink(path) | unlink(broken), 0);
    selkie_world_destroy(saved);
    selkie_world_destroy(world);
    selkie_world_destroy(twin);
}

/* Sound checksums around a state that makes no sense: refused, and nothing is changed. */
static void senseless_states_are_refused(void **state)
{
    (void)state;
    case_parts c;
    dam(&c, 2, SELKIE_METHOD_APIC);
    selkie_world *saved = create(&c.scene, 2), *world = create(&c.scene, 2), *twin = create(&c.scene, 2);
    run(saved, 5);
    sk_state_header header;
    sk_state_chunk chunks[SK_STATE_MAX_CHUNKS];
    int count = sk_world_state(saved, &header, chunks);
    for (int n = 0; n < 18; n++) {
        sk_state_header bad = header;
        switch (n) {
        case 0:
            bad.version++;
            break;
        case 1:
            bad.dimension = 3;
            break;
        case 2:
            bad.cells[1]++;
            break;
        case 3:
            bad.particles_per_cell = 1;
            break;
        case 4:
            bad.cell_size = NAN;
            break;
        case 5:
            bad.time = NAN;
            break;
        case 6:
            bad.time = INFINITY;
            break;
        case 7:
            bad.time = -1.0;
            break;
        case 8:
            bad.time = 17.0;
            break; /* far behind the frame that it claims */
        case 9:
            bad.last_dt = NAN;
            break;
        case 10:
            bad.last_dt = -0.1;
            break;
        case 11:
            bad.max_speed = INFINITY;
            break;
        case 12:
            bad.step_count = -1;
            break;
        case 13:
            bad.frame = INT64_MAX;
            break;
        case 14:
            bad.frame += 3;
            break;
        case 15:
            bad.particle_count--;
            break;
        case 16:
            bad.particle_count = INT64_MAX;
            break;
        default:
            bad.particle_count = -1;
            break;
        }
        chunks[0].data = &bad;
        selkie_error error = {0};
        selkie_code code = sk_world_restore(world, count, chunks, "the file", &error);
        assert_true(code == SELKIE_ERROR_FORMAT || code == SELKIE_ERROR_INPUT);
        assert_non_null(strstr(error.message, "the file"));
    }
    chunks[0].data = &header;
    for (int missing = 0; missing < count; missing++) {
        sk_state_chunk fewer[SK_STATE_MAX_CHUNKS];
        memcpy(fewer, chunks, sizeof fewer);
        fewer[missing].name[0] = '-';
        assert_int_equal(sk_world_restore(world, count, fewer, "the file", NULL), SELKIE_ERROR_FORMAT);
        fewer[missing] = chunks[missing];
        fewer[missing].bytes -= 4;
        assert_int_equal(sk_world_restore(world, count, fewer, "the file", NULL), SELKIE_ERROR_FORMAT);
    }
    assert_true(same_state(world, twin));
    run(world, 1);
    run(twin, 1);
    assert_true(same_state(world, twin));
    assert_int_equal(sk_world_restore(world, count, chunks, "the file", NULL), SELKIE_OK);
    assert_true(same_state(world, saved));

    /* Frames of another length: the next one would lie in the past. */
    char path[128];
    file_in(path, "checkpoint");
    assert_int_equal(selkie_world_save(saved, path, NULL), SELKIE_OK);
    c.scene.time.fps = 500.0;
    selkie_world *hasty = create(&c.scene, 2);
    selkie_error error = {0};
    assert_int_equal(selkie_world_load(hasty, path, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "time.fps"));
    assert_int_equal(unlink(path), 0);
    selkie_world_destroy(hasty);
    selkie_world_destroy(saved);
    selkie_world_destroy(world);
    selkie_world_destroy(twin);
}

/* --- Threads --- */

static void threads_do_not_show(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        case_parts c;
        dam(&c, dimension, dimension == 2 ? SELKIE_METHOD_APIC : SELKIE_METHOD_FLIP);
        selkie_world *one = create(&c.scene, 1);
        run(one, 20);
        for (int threads = 2; threads <= (dimension == 2 ? 7 : 2); threads += 5) {
            selkie_world *other = create(&c.scene, threads);
            run(other, 20);
            assert_true(same_state(one, other) && same_statistics(one, other) && same_probes(one, other));
            selkie_world_destroy(other);
        }
        selkie_world_destroy(one);
    }
}

typedef struct runner {
    case_parts c;
    selkie_world *world;
    selkie_code code;
} runner;

static void *run_in_thread(void *argument)
{
    runner *r = argument;
    selkie_world_options options = {.threads = 2};
    r->code = selkie_world_create(&r->c.scene, &options, &r->world, NULL);
    for (int s = 0; s < 10 && r->code == SELKIE_OK; s++)
        r->code = selkie_world_step(r->world, NULL);
    return NULL;
}

static void two_worlds_in_two_threads(void **state)
{
    (void)state;
    runner alone[2], together[2];
    for (int n = 0; n < 2; n++) {
        dam(&alone[n].c, 2 + n, n ? SELKIE_METHOD_FLIP : SELKIE_METHOD_APIC);
        dam(&together[n].c, 2 + n, n ? SELKIE_METHOD_FLIP : SELKIE_METHOD_APIC);
        run_in_thread(&alone[n]);
    }
    pthread_t threads[2];
    for (int n = 0; n < 2; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, run_in_thread, &together[n]), 0);
    for (int n = 0; n < 2; n++)
        assert_int_equal(pthread_join(threads[n], NULL), 0);
    for (int n = 0; n < 2; n++) {
        assert_int_equal(alone[n].code, SELKIE_OK);
        assert_int_equal(together[n].code, SELKIE_OK);
        assert_true(same_state(alone[n].world, together[n].world));
        assert_true(same_statistics(alone[n].world, together[n].world));
        selkie_world_destroy(alone[n].world);
        selkie_world_destroy(together[n].world);
    }
}

/* --- Files of results --- */

static void check_start(const char *path, const char *start, size_t length)
{
    long size;
    unsigned char *bytes = read_file(path, &size);
    assert_true(size > (long)length);
    assert_memory_equal(bytes, start, length);
    free(bytes);
    assert_int_equal(unlink(path), 0);
}

static void results_are_written(void **state)
{
    (void)state;
    char path[128];
    selkie_error error = {0};
    case_parts c;
    dam(&c, 3, SELKIE_METHOD_FLIP);
    c.scene.render.width = 96;
    c.scene.render.height = 64;
    selkie_world *world = create(&c.scene, 2);
    run(world, 2);
    assert_int_equal(selkie_write_particles(world, file_in(path, "p.ply"), &error), SELKIE_OK);
    check_start(path, "ply\n", 4);
    assert_int_equal(selkie_write_particles(world, file_in(path, "p.vtp"), &error), SELKIE_OK);
    check_start(path, "<", 1);
    assert_int_equal(selkie_write_particles(world, file_in(path, "p.docx"), &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "p.docx"));
    assert_int_equal(selkie_write_surface(world, file_in(path, "s.ply"), &error), SELKIE_OK);
    check_start(path, "ply\n", 4);
    assert_int_equal(selkie_write_surface(world, file_in(path, "s.obj"), &error), SELKIE_OK);
    assert_int_equal(unlink(path), 0);
    selkie_code code = selkie_write_picture(world, file_in(path, "p.png"), &error);
#if SELKIE_HAVE_PNG
    if (code != SELKIE_OK)
        fail_msg("%s", error.message);
    check_start(path, "\x89PNG\r\n\x1a\n", 8);
#else
    assert_int_equal(code, SELKIE_ERROR_UNSUPPORTED);
#endif
    /* The same in memory. */
    selkie_surface surface;
    assert_int_equal(selkie_world_surface(world, &surface, &error), SELKIE_OK);
    assert_in_range(surface.vertex_count, 100, 1000000);
    assert_in_range(surface.triangle_count, surface.vertex_count, 4 * surface.vertex_count);
    double volume = 0.0; /* m3, by the tetrahedra of the triangles with the origin */
    for (int64_t t = 0; t < surface.triangle_count; t++) {
        const float *p[3];
        for (int k = 0; k < 3; k++) {
            assert_in_range(surface.triangles[3 * t + k], 0, surface.vertex_count - 1);
            p[k] = &surface.positions[3 * (size_t)surface.triangles[3 * t + k]];
        }
        volume += ((double)p[0][0] * ((double)p[1][1] * (double)p[2][2] - (double)p[1][2] * (double)p[2][1]) +
                   (double)p[0][1] * ((double)p[1][2] * (double)p[2][0] - (double)p[1][0] * (double)p[2][2]) +
                   (double)p[0][2] * ((double)p[1][0] * (double)p[2][1] - (double)p[1][1] * (double)p[2][0])) /
                  6.0;
    }
    /* That of the particles; a surface of few cells is off by some percent. */
    const double liquid = selkie_world_particle_mass(world) / 1000.0 * (double)selkie_world_particle_count(world);
    assert_true(fabs(volume / liquid - 1.0) < 0.15);
    selkie_surface_free(&surface);
    selkie_picture picture;
    assert_int_equal(selkie_world_picture(world, &picture, &error), SELKIE_OK);
    assert_true(picture.width == 96 && picture.height == 64);
    int differ = 0;
    for (int i = 3; i < 3 * 96 * 64; i++)
        differ += picture.pixels[i] != picture.pixels[i % 3];
    assert_true(differ > 1000);
    selkie_picture_free(&picture);

    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/none/p.ply", folder);
    assert_int_equal(selkie_write_particles(world, nowhere, &error), SELKIE_ERROR_FILE);
    assert_int_equal(selkie_write_surface(world, nowhere, &error), SELKIE_ERROR_FILE);
    selkie_world_destroy(world);

    dam(&c, 2, SELKIE_METHOD_FLIP);
    world = create(&c.scene, 2);
    assert_int_equal(selkie_write_surface(world, file_in(path, "s.ply"), &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "domain.dimension"));
    selkie_world_destroy(world);
}

/* A basin of SPH, 0.6 m deep. At 4 ms the density stays. At 16 ms, which time.min_step forces, particles do not end
 * where the solve thinks, and the solve says nothing of it. */
static void a_step_too_long_for_sph_is_told(void **state)
{
    (void)state;
    static const double steps[] = {0.0, 0.004, 0.016}; /* 0: as time.cfl says */
    for (int dimension = 2; dimension <= (SANITIZED ? 2 : 3); dimension++)
        for (int n = 0; n < 3; n++) {
            case_parts c;
            dam(&c, dimension, SELKIE_METHOD_SPH);
            c.scene.source_count = c.scene.drain_count = c.scene.obstacle_count = c.scene.probe_count = 0;
            set3(c.scene.domain.size, 0.5, 1, 0.3);
            set3(c.liquid.shape.max, 0.5, 0.6, 0.3);
            c.scene.domain.cell_size = 0.05;
            c.scene.time.step = steps[n];
            if (n == 2)
                c.scene.time.min_step = steps[n];
            selkie_world *world = create(&c.scene, 1);
            run(world, 4);
            assert_null(selkie_world_warning(world)); /* not at once: a splash may squeeze for a moment */
            run(world, 26);
            const selkie_statistics *s = selkie_world_statistics(world);
            const char *warning = selkie_world_warning(world);
            assert_true(s->pressure_residual < c.scene.sph.density_error); /* in every case */
            assert_true((warning != NULL) == (n == 2) && (s->density_error_mean > 0.03) == (n == 2));
            if (warning) {
                assert_non_null(strstr(warning, "time.step: 0.016 s is too long for the pressure"));
                assert_non_null(strstr(warning, "0.3 %"));
                assert_non_null(strstr(warning, "leave time.step out"));
                char before[512], path[128];
                selkie_error error = {0};
                strcpy(before, warning);
                run(world, 3);
                assert_string_equal(selkie_world_warning(world), before); /* it stays as it is */
                assert_int_equal(selkie_world_save(world, file_in(path, "long.selkie"), &error), SELKIE_OK);
                assert_int_equal(selkie_world_load(world, path, &error), SELKIE_OK);
                assert_null(selkie_world_warning(world)); /* the loaded one has not done a step yet */
                unlink(path);
            }
            selkie_world_destroy(world);
        }
}

/* The same basin: time.step is split where the CFL number demands it, into equal parts, and nothing is compressed. */
static void sph_splits_long_steps(void **state)
{
    (void)state;
    case_parts c;
    dam(&c, 2, SELKIE_METHOD_SPH);
    c.scene.source_count = c.scene.drain_count = c.scene.obstacle_count = c.scene.probe_count = 0;
    set3(c.scene.domain.size, 0.5, 1, 0.3);
    set3(c.liquid.shape.max, 0.5, 0.6, 0.3);
    c.scene.domain.cell_size = 0.05;
    c.scene.time.step = 0.02;
    selkie_world *world = create(&c.scene, 1);
    for (int n = 0; n < 60; n++) {
        run(world, 1);
        const selkie_statistics *s = selkie_world_statistics(world);
        assert_true(s->dt < 0.006 && s->density_error_mean < 0.003);
    }
    assert_null(selkie_world_warning(world));
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_world),
        cmocka_unit_test(fields_are_seen_in_place),
        cmocka_unit_test(particles_may_be_written),
        cmocka_unit_test(steps_land_on_frames),
        cmocka_unit_test(sources_and_drains_are_counted),
        cmocka_unit_test(what_has_left_is_gone),
        cmocka_unit_test(bad_scenes_make_no_world),
        cmocka_unit_test(memory_that_ends_is_an_error),
        cmocka_unit_test(plans_are_near_the_truth),
        cmocka_unit_test(loaded_worlds_go_on_bit_for_bit),
        cmocka_unit_test(damaged_checkpoints_change_nothing),
        cmocka_unit_test(senseless_states_are_refused),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(two_worlds_in_two_threads),
        cmocka_unit_test(results_are_written),
        cmocka_unit_test(a_step_too_long_for_sph_is_told),
        cmocka_unit_test(sph_splits_long_steps),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

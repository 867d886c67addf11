/* Liquid boundaries on the GPU against the plain backend: the same role and the same sample for each particle, in every
 * step, and with the solver iisph and steps of a fixed length the same bits. Skipped with a word where there is no
 * device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"
#include "methods/liquid_boundary/liquid_boundary.h"
#include "methods/sph/sph.h"

enum { OBJECTS = 3 };

typedef struct role_scene {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_object_def objects[OBJECTS];
    selkie_shape parts[5], regions[OBJECTS];
    selkie_timeline_entry entries[OBJECTS][2];
    selkie_keyframe keys[OBJECTS][3];
} role_scene;

static selkie_shape box(double x0, double y0, double z0, double x1, double y1, double z1)
{
    selkie_shape shape;
    const double low[3] = {x0, y0, z0}, high[3] = {x1, y1, z1};
    selkie_shape_defaults(&shape, SELKIE_SHAPE_BOX);
    memcpy(shape.min, low, sizeof low);
    memcpy(shape.max, high, sizeof high);
    return shape;
}

static selkie_object_def *add_object(role_scene *s, selkie_shape shape)
{
    const int o = s->scene.object_count++;
    selkie_object_def *object = &s->objects[o];
    selkie_object_defaults(object);
    object->shape = shape;
    object->timeline = s->entries[o];
    object->keyframes = s->keys[o];
    object->regions = &s->regions[o];
    return object;
}

static selkie_timeline_entry *add_entry(role_scene *s, selkie_object_def *object, double assemble, double release)
{
    selkie_timeline_entry *entry = &s->entries[object - s->objects][object->timeline_count++];
    selkie_timeline_entry_defaults(entry);
    entry->assemble = assemble;
    entry->release = release;
    return entry;
}

/* Liquid in an open box of particles that are solid from the start, and tilt and move. */
static void set_cup(role_scene *s, int dimension, double spacing)
{
    const double w = 2.0 * spacing, z0 = dimension == 3 ? 0.1 - w : 0.0, z1 = dimension == 3 ? 0.5 + w : 0.0;
    memset(s, 0, sizeof *s);
    selkie_scene_defaults(&s->scene);
    selkie_scene_set_method(&s->scene, SELKIE_METHOD_SPH);
    s->scene.domain.dimension = dimension;
    s->scene.domain.cell_size = 2.0 * spacing;
    s->scene.domain.size[0] = s->scene.domain.size[1] = 1.2;
    s->scene.domain.size[2] = dimension == 3 ? 0.6 : 0.0;
    s->scene.sph.solver = SELKIE_SPH_IISPH;
    s->scene.time.step = 2e-3;
    s->scene.time.cfl = 0.0; /* the length by it depends on sums */
    s->scene.time.end = 100.0;
    s->scene.objects = s->objects;
    s->scene.liquids = &s->liquid;
    s->scene.liquid_count = 1;
    selkie_liquid_defaults(&s->liquid);
    s->liquid.shape = box(0.2, 0.2, 0.1, 0.8, 0.5, dimension == 3 ? 0.5 : 0.0);

    /* The cup. */
    s->parts[0] = box(0.2 - w, 0.2 - w, z0, 0.8 + w, 0.2, z1);
    s->parts[1] = box(0.2 - w, 0.2, z0, 0.2, 0.7, z1);
    s->parts[2] = box(0.8, 0.2, z0, 0.8 + w, 0.7, z1);
    s->parts[3] = box(0.2, 0.2, z0, 0.8, 0.7, 0.1);
    s->parts[4] = box(0.2, 0.2, 0.5, 0.8, 0.7, z1);
    selkie_shape cup;
    selkie_shape_defaults(&cup, SELKIE_SHAPE_UNION);
    cup.children = s->parts;
    cup.child_count = dimension == 3 ? 5 : 3;
    selkie_object_def *object = add_object(s, cup);
    object->start_solid = 1;
    object->center[0] = 0.5, object->center[1] = 0.4, object->center[2] = 0.3;
    s->keys[0][1].time = 0.1;
    s->keys[0][1].rotate[2] = 3.0;
    s->keys[0][1].translate[0] = 0.03;
    object->keyframe_count = 2;
}

/* The cup with a ball that assembles in its liquid, rises, and dissolves from one side to the other. */
static void set_ball(role_scene *s, int dimension, double spacing, double radius)
{
    selkie_shape ball;
    set_cup(s, dimension, spacing);
    selkie_shape_defaults(&ball, SELKIE_SHAPE_SPHERE);
    ball.center[0] = 0.45, ball.center[1] = 0.5, ball.center[2] = dimension == 3 ? 0.3 : 0.0;
    ball.radius = radius;
    selkie_object_def *object = add_object(s, ball);
    object->beta = 6.0;
    s->regions[1] = box(0.2, 0.2, 0.0, 0.65, 0.6, 1.0);
    object->region_count = 1;
    s->keys[1][1].time = 0.1;
    s->keys[1][1].translate[1] = 0.03;
    object->keyframe_count = 2;
    selkie_timeline_entry *entry = add_entry(s, object, 0.01, 0.07);
    entry->release_mode = SELKIE_RELEASE_SWEEP;
    entry->release_duration = 0.02;
    entry->release_direction[0] = 1.0, entry->release_direction[1] = 0.0, entry->release_direction[2] = 0.0;
}

static const uint32_t *values(const selkie_world *world, const char *name)
{
    for (int a = 0; a < world->step.particles.attribute_count; a++)
        if (strcmp(world->step.particles.attributes[a].name, name) == 0)
            return world->step.particles.attributes[a].data;
    fail_msg("there is no attribute %s", name);
    return NULL;
}

/* Particles with another sample, role or flag in the one world than in the other. Both are in the same order. */
static int64_t count_different(const selkie_world *a, const selkie_world *b)
{
    const sk_particles *p = &a->step.particles, *q = &b->step.particles;
    const uint32_t *samples[2] = {values(a, "sample"), values(b, "sample")},
                   *roles[2] = {values(a, "role"), values(b, "role")};
    int64_t different = 0;
    for (int64_t n = 0; n < p->count; n++)
        different +=
            samples[0][n] != samples[1][n] || roles[0][n] != roles[1][n] || p->records[n].flags != q->records[n].flags;
    return different;
}

/* What has happened in a run. */
typedef struct role_sums {
    int64_t arrived, released, assigned, exchanged, stopped;
    double apart; /* m */
} role_sums;

/* Compares a step of two worlds, and adds it to the sums. */
static void compare_step(const selkie_world *plain, const selkie_world *cuda, int n, role_sums *sums)
{
    const sk_liquid_boundary *p = plain->step.objects, *q = cuda->step.objects;
    const double apart = difference(plain, cuda);
    const int64_t different = isinf(apart) ? 0 : count_different(plain, cuda);
    if (different || isinf(apart))
        fail_msg("step %d: %lld particles have other roles, %g m apart", n, (long long)different, apart);
    assert_int_equal(p->candidates, q->candidates);
    assert_int_equal(p->boundaries, q->boundaries);
    assert_int_equal(p->arrived, q->arrived);
    assert_int_equal(p->released, q->released);
    assert_int_equal(p->assigned, q->assigned);
    assert_int_equal(p->exchanged, q->exchanged);
    assert_int_equal(p->stopped, q->stopped);
    assert_int_equal(plain->step.sph->report.iterations, cuda->step.sph->report.iterations);
    assert_int_equal(plain->step.sph->report.boundaries, cuda->step.sph->report.boundaries);
    assert_float_equal(plain->step.sph->report.compression, cuda->step.sph->report.compression, 1e-9);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-9 * plain->statistics.kinetic_energy);
    assert_float_equal(plain->statistics.max_speed, cuda->statistics.max_speed, 1e-9);
    sums->arrived += p->arrived;
    sums->released += p->released;
    sums->assigned += p->assigned;
    sums->exchanged += p->exchanged;
    sums->stopped += p->stopped;
    sums->apart = fmax(sums->apart, apart);
}

static role_sums run_both(const role_scene *s, int steps, int first_blocks)
{
    selkie_world *plain = make_world(&s->scene, SELKIE_BACKEND_PLAIN),
                 *cuda = make_world(&s->scene, SELKIE_BACKEND_CUDA);
    role_sums sums = {0};
    if (first_blocks)
        assert_int_equal(sk_cuda_reserve_blocks(&cuda->step, first_blocks, NULL), SELKIE_OK);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        compare_step(plain, cuda, n, &sums);
    }
    print_message("%lld particles: %lld assigned, %lld arrived, %lld exchanged, %lld released, %lld stopped; %g m "
                  "apart\n",
                  (long long)plain->step.particles.count, (long long)sums.assigned, (long long)sums.arrived,
                  (long long)sums.exchanged, (long long)sums.released, (long long)sums.stopped, sums.apart);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
    return sums;
}

static void ball(int dimension, double spacing, double radius, int steps, int first_blocks)
{
    role_scene s;
    set_ball(&s, dimension, spacing, radius);
    const role_sums sums = run_both(&s, steps, first_blocks);
    assert_true(sums.assigned > 0 && sums.arrived > 0 && sums.exchanged > 0);
    assert_true(sums.released > 0 || first_blocks);
    if (sums.apart != 0.0)
        fail_msg("%g m apart", sums.apart);
}

/* All changes of roles, with a cup that holds the liquid. */
static void test_ball_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    ball(2, 0.025, 0.11, 60, 0);
}

static void test_ball_3d(void **state)
{
    (void)state;
    if (!device_is_fast(3))
        skip();
    ball(3, 0.025, 0.11, 60, 0);
}

/* Few particles in 3D, for the emulated device too. */
static void test_small_3d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    role_scene s;
    set_ball(&s, 3, 0.05, 0.13);
    const role_sums sums = run_both(&s, 14, 0);
    assert_true(sums.assigned > 0);
    assert_true(sums.apart == 0.0);
}

/* The sort takes more memory in the middle of a step: what the roles are is not lost. */
static void test_growing(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    ball(2, 0.025, 0.11, 30, 3);
}

/* Two objects want more particles than there are. They hover above the liquid, so that their samples want the same
 * particles; one dissolves at random, and what is vacant searches again. */
static void scarce(int dimension, double spacing, int steps)
{
    role_scene s;
    set_cup(&s, dimension, spacing);
    s.liquid.shape.max[1] = 0.35;
    const double z1 = dimension == 3 ? 0.45 : 0.0;
    for (int o = 1; o < 3; o++) {
        selkie_object_def *object = add_object(&s, box(o == 1 ? 0.3 : 0.55, 0.4, 0.15, o == 1 ? 0.5 : 0.75, 0.7, z1));
        object->beta = 5.0;
        selkie_timeline_entry *entry = add_entry(&s, object, 0.004, o == 1 ? 0.03 : -1.0);
        entry->release_mode = SELKIE_RELEASE_RANDOM;
        entry->release_duration = 0.02;
    }
    const role_sums sums = run_both(&s, steps, 0);
    assert_true(sums.assigned > 0 && sums.exchanged > 0 && sums.released > 0);
    if (sums.apart != 0.0)
        fail_msg("%g m apart", sums.apart);
}

static void test_scarce_fluid(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    scarce(2, 0.025, 40);
}

static void test_scarce_fluid_3d(void **state)
{
    (void)state;
    if (!device_is_fast(3))
        skip();
    scarce(3, 0.02, 40);
}

/* A jet that crosses more than a spacing in a step is held at a plate. */
static void test_long_steps(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    role_scene s;
    const double spacing = 0.02, speed = 6.0;
    set_cup(&s, 2, spacing);
    s.scene.object_count = 0;
    add_object(&s, box(0.1, 0.2, 0.0, 0.7, 0.24, 0.0))->start_solid = 1;
    s.liquid.shape = box(0.3, 0.3, 0.0, 0.46, 0.5, 0.0);
    s.liquid.velocity[1] = -speed;
    s.scene.time.step = s.scene.time.min_step = 1.3 * spacing / speed;
    memset(s.scene.gravity, 0, sizeof s.scene.gravity);
    const role_sums sums = run_both(&s, 20, 0);
    assert_true(sums.stopped > 0);
    assert_true(sums.apart == 0.0);
}

/* The accelerated solver takes its step length from sums: roles stay equal while rounding is small. */
static void test_accelerated(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    role_scene s;
    set_ball(&s, 2, 0.025, 0.11);
    s.scene.sph.solver = SELKIE_SPH_ACCELERATED;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    double apart = 0.0;
    for (int n = 0; n < 12; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        apart = fmax(apart, difference(plain, cuda));
        assert_int_equal(count_different(plain, cuda), 0);
        assert_int_equal(plain->step.sph->report.iterations, cuda->step.sph->report.iterations);
    }
    assert_true(cuda->step.objects->candidates > 0);
    if (!(apart < 0.01 * s.scene.domain.cell_size)) /* the bound of test_cuda_sph */
        fail_msg("%g m apart", apart);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* A checkpoint of one backend, in the middle of a gathering, resumes on the other, and on the same one. */
static void resume(selkie_backend from, selkie_backend to)
{
    role_scene s;
    selkie_error error = {0};
    char path[] = "cuda_roles_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    set_ball(&s, 2, 0.025, 0.11);
    selkie_world *reference = make_world(&s.scene, from), *resumed = make_world(&s.scene, to);
    take_steps(reference, 15);
    assert_true(reference->statistics.candidates > 0);
    assert_int_equal(selkie_world_save(reference, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    remove(path);
    take_steps(reference, 10);
    take_steps(resumed, 10);
    assert_true(difference(reference, resumed) == 0.0);
    assert_int_equal(count_different(reference, resumed), 0);
    assert_int_equal(reference->statistics.boundaries, resumed->statistics.boundaries);
    selkie_world_destroy(reference);
    selkie_world_destroy(resumed);
}

static void test_resumed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    resume(SELKIE_BACKEND_CUDA, SELKIE_BACKEND_PLAIN);
    resume(SELKIE_BACKEND_PLAIN, SELKIE_BACKEND_CUDA);
    resume(SELKIE_BACKEND_CUDA, SELKIE_BACKEND_CUDA);
}

/* Two runs on the device have the same bits. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    role_scene s;
    set_ball(&s, 2, 0.025, 0.11);
    s.scene.sph.solver = SELKIE_SPH_ACCELERATED;
    s.scene.time.cfl = 0.4;
    selkie_world *first = make_world(&s.scene, SELKIE_BACKEND_CUDA),
                 *second = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    take_steps(first, 25);
    take_steps(second, 25);
    assert_true(selkie_world_time(first) == selkie_world_time(second));
    assert_true(difference(first, second) == 0.0);
    assert_int_equal(count_different(first, second), 0);
    selkie_world_destroy(first);
    selkie_world_destroy(second);
}

/* A region below a level: a wave without a height, so that the device's cosine is exact. */
static void test_wave_region(void **state)
{
    (void)state;
    role_scene s;
    if (!device_is_here())
        skip();
    set_ball(&s, 2, 0.025, 0.11);
    selkie_shape_defaults(&s.regions[1], SELKIE_SHAPE_WAVE);
    s.regions[1].level = 0.6;
    const role_sums sums = run_both(&s, 20, 0);
    assert_true(sums.assigned > 0 && sums.apart == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ball_2d),    cmocka_unit_test(test_small_3d),     cmocka_unit_test(test_ball_3d),
        cmocka_unit_test(test_growing),    cmocka_unit_test(test_scarce_fluid), cmocka_unit_test(test_scarce_fluid_3d),
        cmocka_unit_test(test_long_steps), cmocka_unit_test(test_accelerated),  cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_wave_region),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Melting, freezing and frozen bodies on the GPU against the plain backend.
 *
 * The host moves frozen bodies by the functions of the CPU, and heat in short steps has a fixed order: without a
 * pressure solve all bits are those of the plain form. With one, bodies stay together within what the solves leave.
 * Skipped with a word where there is no device. */
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
#include "methods/heat/frozen.h"
#include "methods/heat/heat.h"

/* What is in the scene beside ice and water. */
enum {
    OBSTACLES = 1, /* one that moves, and one that lies */
    COLD = 2,      /* a side and an obstacle that hold ice */
    TWO = 4,       /* the second piece of ice is of another material, which melts elsewhere */
    BODIES = 8,    /* rigid bodies of shapes: ice is not in the solve */
    UNILATERAL = 16,
    VISCOUS = 32,
    SOURCE = 64,  /* a source of ice, and a drain */
    SOLVER = 128, /* so much conduction that heat takes the solver */
    NO_SOLVE = 256,
    SMALL = 512, /* few cells, for a device that is emulated */
};

typedef struct frozen_case {
    int dimension, with, steps;
    selkie_transfer transfer;
    selkie_volume volume;
} frozen_case;

typedef struct frozen_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[4];
    selkie_material_def materials[2];
    selkie_obstacle_def obstacles[2];
    selkie_source_def source;
    selkie_drain_def drain;
    selkie_body_def body;
} frozen_scene;

static void set_obstacles(frozen_scene *s, const frozen_case *of)
{
    const double depth = of->dimension == 3 ? 0.3 : 0.0;
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&s->obstacles[o]);
    s->obstacles[0].shape = ball_of(0.75, 0.35, depth, 0.08);
    s->obstacles[0].velocity[0] = -1.0;
    s->obstacles[1].shape = box_of((const double[3]){0.1, 0.0, 0.0}, (const double[3]){0.35, 0.3, 2.0 * depth});
    if (of->with & COLD)
        s->obstacles[1].temperature = 270.0;
    s->scene.obstacles = s->obstacles;
    s->scene.obstacle_count = 2;
}

static void set_streams(frozen_scene *s, const frozen_case *of)
{
    const double depth = of->dimension == 3 ? 0.4 : 0.0;
    selkie_source_defaults(&s->source);
    selkie_drain_defaults(&s->drain);
    s->source.shape = box_of((const double[3]){0.4, 0.9, 0.2}, (const double[3]){0.6, 1.1, 0.2 + 0.5 * depth});
    s->source.velocity[1] = -1.0;
    s->source.temperature = 272.0;
    s->drain.shape = box_of((const double[3]){0.0, 0.0, 0.0}, (const double[3]){0.2, 0.15, depth});
    s->drain.flow_rate = 0.5;
    s->scene.sources = &s->source;
    s->scene.drains = &s->drain;
    s->scene.source_count = s->scene.drain_count = 1;
}

/* A box and a ball of ice fall on water. Temperatures lie beside the melting point, and little heat melts the ice. */
static void set_frozen_scene(frozen_scene *s, const frozen_case *of)
{
    const double depth = of->dimension == 3 ? 0.6 : 0.0;
    selkie_liquid_def two[2];
    memset(s, 0, sizeof *s);
    set_scene(&s->scene, two, of->dimension, of->volume);
    s->scene.domain.size[0] = 1.0, s->scene.domain.size[1] = 1.25, s->scene.domain.size[2] = depth;
    s->scene.domain.cell_size = of->with & SMALL ? 1.0 / 10 : 1.0 / 20;
    s->scene.transfer = of->transfer;
    for (int l = 0; l < 3; l++)
        selkie_liquid_defaults(&s->liquids[l]);
    s->liquids[0].shape = box_of((const double[3]){0.12, 0.3, 0.1}, (const double[3]){0.43, 0.6, 0.45});
    s->liquids[1].shape = ball_of(0.72, 0.5, 0.3 * (depth > 0.0), 0.17);
    s->liquids[2].shape = box_of((const double[3]){0.0, 0.0, 0.0}, (const double[3]){1.0, 0.38, depth});
    s->liquids[0].velocity[0] = 0.5;
    s->liquids[1].velocity[1] = -1.0;
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&s->materials[m]);
        s->materials[m].name = m ? "wax" : "water";
        s->materials[m].density = m ? 900.0 : 1000.0;
        s->materials[m].heat_capacity = m ? 2000.0 : 4186.0;
        s->materials[m].conductivity = of->with & SOLVER ? 2e6 : m ? 500.0 : 1200.0;
        s->materials[m].solid_conductivity = of->with & SOLVER ? 4e6 : m ? 600.0 : 2200.0;
        s->materials[m].melting_point = m ? 280.0 : 273.0;
        s->materials[m].latent_heat = of->with & SOLVER ? 3e5 : 100.0;
        s->materials[m].solid_heat_capacity = 2100.0;
        s->materials[m].solid_density = m ? 950.0 : 917.0;
        s->materials[m].viscosity = of->with & VISCOUS ? 0.02 : 0.0;
    }
    s->scene.materials = s->materials;
    s->scene.material_count = of->with & TWO ? 2 : 1;
    for (int l = 0; l < 3; l++) {
        s->liquids[l].material = s->materials[of->with & TWO && l == 1].name;
        s->liquids[l].temperature = l == 2 ? 283.0 : of->with & TWO && l == 1 ? 279.99 : 272.99;
    }
    s->scene.liquids = s->liquids;
    s->scene.liquid_count = 3;
    s->scene.heat.air_temperature = 280.0;
    s->scene.heat.air_exchange = 500.0;
    if (of->with & COLD)
        s->scene.domain.temperature[0] = 265.0;
    if (of->with & OBSTACLES)
        set_obstacles(s, of);
    if (of->with & SOURCE)
        set_streams(s, of);
    if (of->with & BODIES) {
        selkie_body_defaults(&s->body);
        s->body.shape = ball_of(0.3, 0.2, 0.3 * (depth > 0.0), 0.12);
        s->body.density = 400.0;
        s->scene.bodies = &s->body;
        s->scene.body_count = 1;
    }
    if (of->with & UNILATERAL)
        s->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    if (of->with & NO_SOLVE)
        s->scene.pressure.start = 10.0;
}

static const sk_heat *heat_of(const selkie_world *world)
{
    return sk_step_state(&world->step, &sk_method_heat);
}

/* Do two worlds have the same particles, bit by bit? Both have been fetched. */
static int have_the_same_particles(const selkie_world *a, const selkie_world *b)
{
    const sk_particles *p = &a->step.particles, *q = &b->step.particles;
    int same = p->count == q->count &&
               memcmp(p->records, q->records, (size_t)(p->count == q->count ? p->count : 0) * sizeof *p->records) == 0;
    for (int n = 0; same && n < p->attribute_count; n++) {
        const sk_attribute *x = &p->attributes[n], *y = sk_particles_find_attribute(q, x->name);
        same = y && memcmp(x->data, y->data, (size_t)p->count * (size_t)x->components * sizeof *x->data) == 0;
        if (!same)
            print_message("  %s differs\n", x->name);
    }
    return same;
}

static int64_t solids_of(const selkie_world *world)
{
    return world->statistics.solid_particles;
}

/* Particles of less than half liquid: those of bodies are among them. The world has been fetched. */
static int64_t count_solid(const selkie_world *world)
{
    const float *liquid =
        (const float *)(const void *)sk_particles_find_attribute(&world->step.particles, "liquid_fraction")->data;
    int64_t count = 0;
    for (int64_t p = 0; p < world->step.particles.count; p++)
        count += liquid[p] < 0.5f;
    return count;
}

/* Without a pressure solve: all bits, in every step, while ice melts and water freezes. */
static void fall(const frozen_case *of)
{
    if (!device_is_fast(of->with & SMALL ? 2 : of->dimension))
        skip();
    frozen_scene s;
    set_frozen_scene(&s, of);
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    int passes = 0;
    int64_t first = 0;
    for (int n = 0; n < of->steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        first = n ? first : solids_of(plain);
        passes = heat_of(plain)->passes > passes ? heat_of(plain)->passes : passes;
        const double apart = difference(plain, cuda);
        if (apart != 0.0 || !have_the_same_particles(plain, cuda))
            fail_msg("step %d: %g m apart", n + 1, apart);
        assert_int_equal(heat_of(plain)->passes, heat_of(cuda)->passes);
        assert_int_equal(solids_of(plain), solids_of(cuda));
        assert_float_equal(plain->statistics.potential_energy, cuda->statistics.potential_energy,
                           1e-9 * fabs(plain->statistics.potential_energy));
        assert_float_equal(plain->step.sums.kinetic, cuda->step.sums.kinetic, 1e-9 * plain->step.sums.kinetic);
        assert_true(plain->step.sums.max_speed == cuda->step.sums.max_speed);
    }
    print_message("%lld, then %lld solid particles, %d passes\n", (long long)first, (long long)solids_of(plain),
                  passes);
    assert_true(first > 0 && solids_of(plain) != first && passes > 1);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* With solves: solid particles stay together. `most` is in cells. */
static void splash(const frozen_case *of, double most)
{
    if (!device_is_fast(of->with & SMALL ? 2 : of->dimension))
        skip();
    frozen_scene s;
    set_frozen_scene(&s, of);
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < of->steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda) / s.scene.domain.cell_size;
        print_message("step %d: %g cells apart; %lld and %lld solid particles; %d and %d iterations, heat %d and %d\n",
                      n + 1, apart, (long long)solids_of(plain), (long long)solids_of(cuda),
                      plain->step.pressure.iterations, cuda->step.pressure.iterations,
                      heat_of(plain)->report.iterations, heat_of(cuda)->report.iterations);
        assert_true(apart < most);
        assert_true(solids_of(plain) <= count_solid(plain) && solids_of(cuda) <= count_solid(cuda));
        assert_true(solids_of(plain) > 0 && llabs(solids_of(plain) - solids_of(cuda)) <= 2);
        assert_true(abs(plain->step.pressure.iterations - cuda->step.pressure.iterations) <= 1);
        if (of->with & SOLVER)
            assert_true(abs(heat_of(plain)->report.iterations - heat_of(cuda)->report.iterations) <= 1);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

#define FALL_TEST(name, ...)                                                                                           \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        const frozen_case of = {__VA_ARGS__};                                                                          \
        (void)state;                                                                                                   \
        fall(&of);                                                                                                     \
    }
#define SPLASH_TEST(name, most, ...)                                                                                   \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        const frozen_case of = {__VA_ARGS__};                                                                          \
        (void)state;                                                                                                   \
        splash(&of, most);                                                                                             \
    }

FALL_TEST(test_fall_2d, 2, NO_SOLVE, 12, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
FALL_TEST(test_fall_flip_2d, 2, NO_SOLVE | TWO | COLD, 10, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_NONE)
FALL_TEST(test_fall_small_3d, 3, NO_SOLVE | SMALL | TWO, 6, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
FALL_TEST(test_fall_3d, 3, NO_SOLVE, 10, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_NONE)

SPLASH_TEST(test_splash_2d, 1e-3, 2, 0, 12, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
SPLASH_TEST(test_density_2d, 1e-3, 2, TWO, 8, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_IDP)
SPLASH_TEST(test_obstacles_2d, 1e-3, 2, OBSTACLES | COLD, 8, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_IDP)
SPLASH_TEST(test_solver_2d, 1e-3, 2, SOLVER, 4, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
SPLASH_TEST(test_bodies_2d, 1e-3, 2, BODIES | OBSTACLES, 6, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
SPLASH_TEST(test_unilateral_2d, 1e-2, 2, UNILATERAL, 4, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_NONE)
SPLASH_TEST(test_viscous_2d, 1e-2, 2, VISCOUS | OBSTACLES | BODIES, 4, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
SPLASH_TEST(test_source_2d, 1e-3, 2, SOURCE, 8, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
SPLASH_TEST(test_splash_small_3d, 1e-3, 3, SMALL | OBSTACLES | TWO, 3, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_IDP)
SPLASH_TEST(test_splash_3d, 1e-3, 3, OBSTACLES | TWO, 8, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_IDP)

static void make_path(char path[32])
{
    snprintf(path, 32, "cuda_frozen_XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

/* Two runs on one device have the same bits, and so has one that a checkpoint divides. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const frozen_case of = {2, OBSTACLES | COLD | TWO, 0, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_IDP};
    frozen_scene s;
    selkie_error error = {0};
    char path[32];
    make_path(path);
    set_frozen_scene(&s, &of);
    selkie_world *worlds[3];
    for (int w = 0; w < 3; w++)
        worlds[w] = make_world_with(&s.scene, SELKIE_BACKEND_CUDA, 1 + w);
    for (int w = 0; w < 2; w++)
        take_steps(worlds[w], 4);
    assert_int_equal(selkie_world_save(worlds[0], path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(worlds[2], path, &error), SELKIE_OK);
    remove(path);
    for (int w = 0; w < 3; w++)
        take_steps(worlds[w], 3);
    for (int w = 1; w < 3; w++) {
        assert_true(difference(worlds[0], worlds[w]) == 0.0);
        assert_true(have_the_same_particles(worlds[0], worlds[w]));
    }
    for (int w = 0; w < 3; w++)
        selkie_world_destroy(worlds[w]);
}

/* A checkpoint of one backend resumes on the other: without a solve with the same bits. */
static void test_resumed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const frozen_case of = {2, NO_SOLVE, 0, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE};
    for (int from_device = 0; from_device < 2; from_device++) {
        frozen_scene s;
        selkie_error error = {0};
        char path[32];
        make_path(path);
        set_frozen_scene(&s, &of);
        selkie_world *first = make_world(&s.scene, from_device ? SELKIE_BACKEND_CUDA : SELKIE_BACKEND_PLAIN);
        selkie_world *second = make_world(&s.scene, from_device ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_CUDA);
        take_steps(first, 4);
        assert_int_equal(selkie_world_save(first, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_load(second, path, &error), SELKIE_OK);
        remove(path);
        take_steps(first, 3);
        take_steps(second, 3);
        assert_true(difference(first, second) == 0.0);
        assert_true(have_the_same_particles(first, second));
        selkie_world_destroy(first);
        selkie_world_destroy(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fall_2d),         cmocka_unit_test(test_fall_flip_2d),
        cmocka_unit_test(test_fall_small_3d),   cmocka_unit_test(test_fall_3d),
        cmocka_unit_test(test_splash_2d),       cmocka_unit_test(test_density_2d),
        cmocka_unit_test(test_obstacles_2d),    cmocka_unit_test(test_solver_2d),
        cmocka_unit_test(test_bodies_2d),       cmocka_unit_test(test_unilateral_2d),
        cmocka_unit_test(test_viscous_2d),      cmocka_unit_test(test_source_2d),
        cmocka_unit_test(test_splash_small_3d), cmocka_unit_test(test_splash_3d),
        cmocka_unit_test(test_same_bits),       cmocka_unit_test(test_resumed),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

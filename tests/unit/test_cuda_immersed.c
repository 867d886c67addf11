/* Elastoplastic points beside liquids on the GPU against the plain backend. Laws take logarithms of the device and the
 * solve leaves its tolerance, so that paths differ by rounding. Skipped with a word where there is no device. */
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

/* What is in the scene beside sand, clay and water. */
enum {
    OBSTACLES = 1, /* one that moves, and one that lies */
    HEAT = 2,      /* the clay softens */
    STREAMS = 4,   /* sources of water and clay, and a drain */
    SMALL = 8,     /* few cells, for a device that is emulated */
};

typedef struct immersed_case {
    int dimension, with, steps;
    selkie_transfer transfer;
    selkie_volume volume;
} immersed_case;

typedef struct immersed_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[3];
    selkie_material_def materials[3];
    selkie_obstacle_def obstacles[2];
    selkie_source_def sources[2];
    selkie_drain_def drain;
} immersed_scene;

static void set_materials(immersed_scene *s, const immersed_case *of)
{
    static const char *const names[3] = {"water", "sand", "clay"};
    for (int m = 0; m < 3; m++) {
        selkie_material_defaults(&s->materials[m]);
        s->materials[m].name = names[m];
        s->materials[m].kind = m ? SELKIE_MATERIAL_ELASTOPLASTIC : SELKIE_MATERIAL_LIQUID;
        s->materials[m].density = m == 1 ? 1700.0 : m == 2 ? 1200.0 : 1000.0;
        s->materials[m].heat_capacity = of->with & HEAT ? 2000.0 : 0.0;
        s->materials[m].conductivity = of->with & HEAT ? 500.0 : 0.0;
        s->materials[m].elastoplastic.young = 2e5;
        s->materials[m].elastoplastic.liquid_friction = 0.1 + 0.1 * m;
    }
    s->materials[1].elastoplastic.plasticity = SELKIE_PLASTICITY_DRUCKER_PRAGER;
    s->materials[2].elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
    s->materials[2].elastoplastic.yield = 3000.0;
    if (of->with & HEAT) {
        s->materials[2].elastoplastic.softens_from = 290.0;
        s->materials[2].elastoplastic.softens_to = 340.0;
    }
    s->scene.materials = s->materials;
    s->scene.material_count = 3;
}

static void set_streams(immersed_scene *s, double depth)
{
    for (int n = 0; n < 2; n++) {
        const double left = 0.1 + 0.5 * n;
        selkie_source_defaults(&s->sources[n]);
        s->sources[n].shape =
            box_of((const double[3]){left, 0.85, 0.1}, (const double[3]){left + 0.2, 1.0, depth - 0.1});
        s->sources[n].material = n ? "clay" : "water";
        s->sources[n].velocity[1] = -1.5;
    }
    selkie_drain_defaults(&s->drain);
    s->drain.shape = box_of((const double[3]){0.8, 0.0, 0.0}, (const double[3]){1.0, 0.2, depth});
    s->drain.flow_rate = 0.3;
    s->scene.sources = s->sources;
    s->scene.drains = &s->drain;
    s->scene.source_count = 2;
    s->scene.drain_count = 1;
}

/* A box of sand lies in water, and a ball of clay falls into it. */
static void set_immersed_scene(immersed_scene *s, const immersed_case *of)
{
    const double depth = of->dimension == 3 ? 0.5 : 0.0;
    selkie_liquid_def two[2];
    memset(s, 0, sizeof *s);
    set_scene(&s->scene, two, of->dimension, of->volume);
    s->scene.domain.size[0] = 1.0, s->scene.domain.size[1] = 1.25, s->scene.domain.size[2] = depth;
    s->scene.domain.cell_size = of->with & SMALL ? 1.0 / 10 : 1.0 / 20;
    s->scene.domain.liquid_friction[2] = 0.3;
    s->scene.transfer = of->transfer;
    s->scene.time.step = 0.004;
    s->scene.time.fps = 250.0;
    set_materials(s, of);
    for (int l = 0; l < 3; l++) {
        selkie_liquid_defaults(&s->liquids[l]);
        s->liquids[l].material = s->materials[l].name;
        s->liquids[l].temperature = l == 2 ? 330.0 : 300.0;
    }
    s->liquids[0].shape = box_of((const double[3]){0.0, 0.0, 0.0}, (const double[3]){1.0, 0.4, depth});
    s->liquids[1].shape = box_of((const double[3]){0.1, 0.0, 0.1}, (const double[3]){0.45, 0.3, 0.4});
    s->liquids[2].shape = ball_of(0.7, 0.5, 0.5 * depth, 0.15);
    s->liquids[2].velocity[1] = -1.0;
    /* Where two overlap, the first has the place: points before the water. */
    const selkie_liquid_def water = s->liquids[0];
    memmove(s->liquids, s->liquids + 1, 2 * sizeof *s->liquids);
    s->liquids[2] = water;
    s->scene.liquids = s->liquids;
    s->scene.liquid_count = 3;
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&s->obstacles[o]);
    s->obstacles[0].shape = ball_of(0.7, 0.22, 0.5 * depth, 0.08);
    s->obstacles[0].velocity[0] = -0.5;
    s->obstacles[1].shape = box_of((const double[3]){0.45, 0.0, 0.0}, (const double[3]){0.55, 0.2, depth});
    s->obstacles[1].liquid_friction = 0.4;
    s->scene.obstacles = s->obstacles;
    s->scene.obstacle_count = of->with & OBSTACLES ? 2 : 0;
    if (of->with & STREAMS)
        set_streams(s, depth);
}

static void compare(const immersed_case *of)
{
    if (!device_is_fast(of->with & SMALL ? 2 : of->dimension))
        skip();
    immersed_scene s;
    set_immersed_scene(&s, of);
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) < 1e-3 * s.scene.domain.cell_size);
    for (int n = 0; n < of->steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda) / s.scene.domain.cell_size;
        print_message("step %d: %g cells apart; %d and %d iterations, %g and %g s\n", n + 1, apart,
                      p->pressure.iterations, q->pressure.iterations, p->dt, q->dt);
        assert_true(apart < 1e-3);
        assert_int_equal(p->emitted, q->emitted);
        assert_int_equal(p->drained, q->drained);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
    }
    const selkie_statistics *p = &plain->statistics, *c = &cuda->statistics;
    print_message("elastic energy %g and %g J, plastic work %g and %g J\n", p->elastic_energy, c->elastic_energy,
                  p->plastic_work, c->plastic_work);
    assert_true(p->elastic_energy > 0.0 && p->plastic_work > 0.0);
    assert_float_equal(c->elastic_energy, p->elastic_energy, 1e-3 * p->elastic_energy);
    assert_float_equal(c->plastic_work, p->plastic_work, 1e-3 * p->plastic_work);
    assert_float_equal(c->kinetic_energy, p->kinetic_energy, 1e-4 * p->kinetic_energy);
    assert_float_equal(c->volume_ratio, p->volume_ratio, 1e-4);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

#define IMMERSED_TEST(name, ...)                                                                                       \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        const immersed_case of = {__VA_ARGS__};                                                                        \
        (void)state;                                                                                                   \
        compare(&of);                                                                                                  \
    }

IMMERSED_TEST(test_flip_2d, 2, 0, 10, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_NONE)
IMMERSED_TEST(test_density_2d, 2, OBSTACLES, 8, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_IDP)
IMMERSED_TEST(test_soft_2d, 2, HEAT, 8, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE)
IMMERSED_TEST(test_streams_2d, 2, STREAMS | OBSTACLES, 8, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_IDP)
IMMERSED_TEST(test_small_3d, 3, SMALL | OBSTACLES, 3, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_IDP)
IMMERSED_TEST(test_whole_3d, 3, OBSTACLES | HEAT, 8, SELKIE_TRANSFER_FLIP, SELKIE_VOLUME_IDP)

static void make_path(char path[32])
{
    snprintf(path, 32, "cuda_immersed_XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

/* Two runs on one device have the same bits, and so has one that a checkpoint divides. A checkpoint of one backend
 * resumes on the other. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const immersed_case of = {2, OBSTACLES, 0, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_IDP};
    immersed_scene s;
    selkie_error error = {0};
    char path[32];
    make_path(path);
    set_immersed_scene(&s, &of);
    selkie_world *worlds[4];
    for (int w = 0; w < 4; w++)
        worlds[w] = make_world(&s.scene, w == 3 ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_CUDA);
    for (int w = 0; w < 2; w++)
        take_steps(worlds[w], 4);
    assert_int_equal(selkie_world_save(worlds[0], path, &error), SELKIE_OK);
    for (int w = 2; w < 4; w++)
        assert_int_equal(selkie_world_load(worlds[w], path, &error), SELKIE_OK);
    remove(path);
    for (int w = 0; w < 4; w++)
        take_steps(worlds[w], 3);
    for (int w = 1; w < 3; w++)
        assert_true(difference(worlds[0], worlds[w]) == 0.0);
    assert_true(difference(worlds[0], worlds[3]) < 1e-3 * s.scene.domain.cell_size);
    for (int w = 0; w < 4; w++)
        selkie_world_destroy(worlds[w]);
}

/* What is missing is refused with one line that names it. */
static void test_refused(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const immersed_case of = {2, 0, 0, SELKIE_TRANSFER_APIC, SELKIE_VOLUME_NONE};
    immersed_scene s;
    selkie_error error = {0};
    set_immersed_scene(&s, &of);
    s.scene.surface_tension = 0.07;
    assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_ERROR_INPUT);
    if (!strstr(error.message, "elastoplastic materials with surface tension"))
        fail_msg("%s", error.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip_2d),    cmocka_unit_test(test_density_2d), cmocka_unit_test(test_soft_2d),
        cmocka_unit_test(test_streams_2d), cmocka_unit_test(test_small_3d),   cmocka_unit_test(test_whole_3d),
        cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_refused),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

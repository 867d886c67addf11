/* Heat on the GPU against the plain backend.
 *
 * Transfers, rows, Jacobi's method and mixing have a fixed order: after the first step, which begins with equal
 * particles, enthalpies have the same bits. Steps that take the solver have as many iterations, and temperatures within
 * its tolerance. Later steps differ by the rounding of the pressure. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"
#include "methods/heat/heat.h"

/* What is in the scene beside two columns of liquid, 330 and 280 K. */
enum {
    WARM_FLOOR = 1,
    AIR = 2,
    OBSTACLE = 4, /* a warm one that moves, and one without a temperature */
    EXPANDS = 8,  /* with thermal expansion */
    OTHER = 16,   /* the second column is of another material */
    VISCOUS = 32, /* a viscosity that depends on temperature */
    SOURCE = 64,  /* a source of hot liquid, and a drain */
    UNILATERAL = 128,
    STIRRED = 256, /* particles of a cell have other temperatures */
    SMALL = 512,   /* few cells, for a device that is emulated */
    BODIES = 1024, /* a light box and a heavy ball */
};

typedef struct heat_case {
    int dimension, with, steps;
    double conductivity; /* W/(m K) */
    selkie_transfer transfer;
} heat_case;

typedef struct heat_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_material_def materials[2];
    selkie_obstacle_def obstacles[2];
    selkie_source_def source;
    selkie_drain_def drain;
    selkie_body_def bodies[2];
} heat_scene;

static void set_obstacles(heat_scene *s, int dimension)
{
    for (int o = 0; o < 2; o++) {
        selkie_obstacle_defaults(&s->obstacles[o]);
        selkie_shape_defaults(&s->obstacles[o].shape, o ? SELKIE_SHAPE_BOX : SELKIE_SHAPE_SPHERE);
    }
    s->obstacles[0].shape.center[0] = 0.2, s->obstacles[0].shape.center[1] = 0.3;
    s->obstacles[0].shape.center[2] = dimension == 3 ? 0.2 : 0.0;
    s->obstacles[0].shape.radius = 0.1;
    s->obstacles[0].velocity[0] = 0.3;
    s->obstacles[0].temperature = 380.0;
    s->obstacles[0].heat_exchange = 5000.0;
    for (int d = 0; d < dimension; d++) {
        s->obstacles[1].shape.min[d] = d == 1 ? 0.0 : 0.6;
        s->obstacles[1].shape.max[d] = d == 1 ? 0.13 : 0.75;
    }
    s->scene.obstacles = s->obstacles;
    s->scene.obstacle_count = 2;
}

static void set_streams(heat_scene *s, int dimension)
{
    selkie_source_defaults(&s->source);
    selkie_drain_defaults(&s->drain);
    selkie_shape_defaults(&s->source.shape, SELKIE_SHAPE_BOX);
    selkie_shape_defaults(&s->drain.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++) {
        s->source.shape.min[d] = d == 1 ? 0.9 : 0.4;
        s->source.shape.max[d] = d == 1 ? 1.0 : 0.6;
        s->drain.shape.min[d] = d == 1 ? 0.0 : 0.1;
        s->drain.shape.max[d] = 0.2;
    }
    s->source.velocity[1] = -1.0;
    s->source.temperature = 360.0;
    s->drain.flow_rate = 0.5;
    s->scene.sources = &s->source;
    s->scene.drains = &s->drain;
    s->scene.source_count = s->scene.drain_count = 1;
}

static void set_bodies(heat_scene *s, int dimension)
{
    for (int b = 0; b < 2; b++) {
        selkie_body_defaults(&s->bodies[b]);
        selkie_shape_defaults(&s->bodies[b].shape, b ? SELKIE_SHAPE_SPHERE : SELKIE_SHAPE_BOX);
        s->bodies[b].density = b ? 2500.0 : 200.0;
        for (int d = 0; d < dimension; d++) {
            s->bodies[b].shape.min[d] = d == 1 ? 0.4 : 0.05;
            s->bodies[b].shape.max[d] = d == 1 ? 0.7 : 0.3;
            s->bodies[b].shape.center[d] = d == 1 ? 0.4 : 0.7 * s->scene.domain.size[d];
        }
        s->bodies[b].shape.radius = 0.14;
    }
    s->scene.bodies = s->bodies;
    s->scene.body_count = 2;
}

static void set_heat_scene(heat_scene *s, const heat_case *of)
{
    memset(s, 0, sizeof *s);
    set_scene(&s->scene, s->liquids, of->dimension, SELKIE_VOLUME_NONE);
    s->scene.transfer = of->transfer;
    if (of->with & SMALL)
        s->scene.domain.cell_size = 1.0 / 8;
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&s->materials[m]);
        s->materials[m].name = m ? "oil" : "water";
        s->materials[m].heat_capacity = m ? 2000.0 : 4186.0;
        s->materials[m].density = m ? 900.0 : 1000.0;
        s->materials[m].conductivity = m ? 0.2 * of->conductivity : of->conductivity;
        if (of->with & EXPANDS)
            s->materials[m].thermal_expansion = m ? 2e-3 : 1e-3;
        if (of->with & VISCOUS) {
            s->materials[m].viscosity = 0.05;
            s->materials[m].viscosity_temperature = 300.0;
            s->materials[m].viscosity_activation = 2000.0;
        }
        s->liquids[m].material = s->materials[of->with & OTHER ? m : 0].name;
        s->liquids[m].temperature = m ? 280.0 : 330.0;
    }
    s->scene.materials = s->materials;
    s->scene.material_count = of->with & OTHER ? 2 : 1;
    if (of->with & WARM_FLOOR)
        s->scene.domain.temperature[2] = 350.0;
    if (of->with & AIR) {
        s->scene.heat.air_temperature = 260.0;
        s->scene.heat.air_exchange = 500.0;
    }
    if (of->with & OBSTACLE)
        set_obstacles(s, of->dimension);
    if (of->with & SOURCE)
        set_streams(s, of->dimension);
    if (of->with & BODIES)
        set_bodies(s, of->dimension);
    if (of->with & UNILATERAL)
        s->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
}

static const sk_heat *heat_of(const selkie_world *world)
{
    return sk_step_state(&world->step, &sk_method_heat);
}

/* Every third particle warmer and every fifth colder. */
static void stir(selkie_world *world)
{
    assert_int_equal(sk_world_fetch(world, 0, NULL), SELKIE_OK);
    const sk_heat_attributes a = sk_heat_find_attributes(&world->step);
    sk_cuda_particles_changed(&world->step);
    for (int64_t p = 0; p < world->step.particles.count; p++) {
        const uint32_t id = world->step.particles.records[p].id;
        const double change = id % 3 == 0 ? 10.0 : id % 5 == 0 ? -15.0 : 0.0;
        sk_heat_set(&a, sk_heat_curve_of(heat_of(world), &a, p), p, sk_heat_get(&a, p) + change);
    }
    assert_int_equal(sk_method_heat.measure(&world->step, NULL), SELKIE_OK);
}

/* Largest difference of temperatures (K), and whether all enthalpies have the same bits. */
static double apart(const selkie_world *a, const selkie_world *b, int *same)
{
    const sk_heat_attributes x = sk_heat_find_attributes(&a->step), y = sk_heat_find_attributes(&b->step);
    double most = 0.0;
    const int64_t count = a->step.particles.count;
    for (int64_t p = 0; p < count; p++)
        most = fmax(most, fabs(sk_heat_get(&x, p) - sk_heat_get(&y, p)));
    *same = memcmp(x.enthalpy, y.enthalpy, (size_t)count * 2 * sizeof *x.enthalpy) == 0 &&
            memcmp(x.temperature, y.temperature, (size_t)count * sizeof *x.temperature) == 0;
    return most;
}

static void compare_sums(const selkie_world *plain, const selkie_world *cuda)
{
    const selkie_statistics *a = &plain->statistics, *b = &cuda->statistics;
    print_message("  %.9g and %.9g J, %g to %g and %g to %g K\n", a->heat_energy, b->heat_energy, a->temperature_min,
                  a->temperature_max, b->temperature_min, b->temperature_max);
    assert_float_equal(a->heat_energy, b->heat_energy, 1e-6 * fabs(a->heat_energy));
    assert_float_equal(a->temperature_min, b->temperature_min, 0.2);
    assert_float_equal(a->temperature_max, b->temperature_max, 0.2);
    assert_true(b->temperature_max > b->temperature_min && b->temperature_min > 200.0);
}

/* Steps of both backends. `bits`: the first step takes no solver, and mixes nothing by functions of the device. */
static void compare(const heat_case *of, int bits)
{
    if (!device_is_fast(of->with & SMALL ? 2 : of->dimension))
        skip();
    heat_scene s;
    set_heat_scene(&s, of);
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    if (of->with & STIRRED) {
        stir(plain);
        stir(cuda);
    }
    double start = 0.0; /* J */
    for (int n = 0; n < of->steps; n++) {
        int same;
        take_steps(plain, 1);
        take_steps(cuda, 1);
        start = n == 0 ? plain->statistics.heat_energy : start;
        const double paths = difference(plain, cuda), kelvin = apart(plain, cuda, &same);
        print_message("step %d: %g m, %g K apart%s; heat %d and %d iterations\n", n + 1, paths, kelvin,
                      same ? ", same bits" : "", heat_of(plain)->report.iterations, heat_of(cuda)->report.iterations);
        if (n == 0 && bits)
            assert_true(same);
        if (n == 0 && !bits)
            assert_true(kelvin < 100.0 * s.scene.heat.tolerance);
        if (!(of->with & SOURCE) || n < 2)
            assert_true(kelvin < 0.5);
        if (!bits)
            assert_true(abs(heat_of(plain)->report.iterations - heat_of(cuda)->report.iterations) <= 1);
    }
    compare_sums(plain, cuda);
    if (!(of->with & (WARM_FLOOR | AIR | OBSTACLE | SOURCE | STIRRED))) { /* nothing leaves: sums of doubles */
        assert_float_equal(plain->statistics.heat_energy, start, 1e-11 * start);
        assert_float_equal(cuda->statistics.heat_energy, start, 1e-11 * start);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

#define HEAT_TEST(name, bits, ...)                                                                                     \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        const heat_case of = {__VA_ARGS__};                                                                            \
        (void)state;                                                                                                   \
        compare(&of, bits);                                                                                            \
    }

/* Real conductivities: the solution without neighbours does; larger ones: sweeps; then the solver. */
HEAT_TEST(test_water_2d, 1, 2, WARM_FLOOR | AIR, 4, 0.6, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_sweeps_2d, 1, 2, WARM_FLOOR | AIR | OBSTACLE, 3, 2e4, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_solver_2d, 0, 2, WARM_FLOOR | AIR | OBSTACLE, 4, 2e6, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_two_2d, 1, 2, OTHER | WARM_FLOOR | AIR, 3, 1e4, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_two_solver_2d, 0, 2, OTHER | WARM_FLOOR | EXPANDS, 3, 2e6, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_stirred_2d, 0, 2, STIRRED, 3, 2e6, SELKIE_TRANSFER_APIC)
/* Two columns at the ends of the range meet: the solver, in single precision, leaves up to 73 cells that touch beyond
 * it, which have no room and ask the cells around for help, from the seventh of 40 steps on. */
HEAT_TEST(test_beyond_2d, 1, 2, 0, 40, 2e5, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_viscous_2d, 1, 2, VISCOUS | WARM_FLOOR, 3, 0.6, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_source_2d, 1, 2, SOURCE | WARM_FLOOR | EXPANDS, 4, 0.6, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_unilateral_2d, 0, 2, UNILATERAL | WARM_FLOOR, 3, 2e6, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_bodies_2d, 0, 2, BODIES | WARM_FLOOR | AIR | EXPANDS, 4, 2e6, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_small_bodies_3d, 0, 3, SMALL | BODIES | WARM_FLOOR | AIR | OBSTACLE, 3, 1e7, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_small_3d, 1, 3, SMALL | OTHER | WARM_FLOOR | AIR | OBSTACLE | EXPANDS, 2, 1e4, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_small_solver_3d, 0, 3, SMALL | WARM_FLOOR | AIR | OBSTACLE, 2, 1e7, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_water_3d, 1, 3, WARM_FLOOR | AIR | OBSTACLE, 3, 0.6, SELKIE_TRANSFER_FLIP)
HEAT_TEST(test_solver_3d, 0, 3, OTHER | WARM_FLOOR | AIR | OBSTACLE | EXPANDS, 3, 1e6, SELKIE_TRANSFER_APIC)
HEAT_TEST(test_viscous_3d, 1, 3, OTHER | VISCOUS | STIRRED, 2, 0.6, SELKIE_TRANSFER_APIC)

/* Two runs on one device have the same bits, and so has one that a checkpoint divides. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const heat_case of = {2, OTHER | WARM_FLOOR | AIR | OBSTACLE | EXPANDS | STIRRED, 0, 1e6, SELKIE_TRANSFER_APIC};
    heat_scene s;
    selkie_error error = {0};
    char path[] = "cuda_heat_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    set_heat_scene(&s, &of);
    selkie_world *worlds[3];
    for (int w = 0; w < 3; w++)
        worlds[w] = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int w = 0; w < 2; w++)
        take_steps(worlds[w], 3);
    assert_int_equal(selkie_world_save(worlds[0], path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(worlds[2], path, &error), SELKIE_OK);
    for (int w = 0; w < 3; w++)
        take_steps(worlds[w], 3);
    for (int w = 1; w < 3; w++) {
        int same;
        assert_true(difference(worlds[0], worlds[w]) == 0.0);
        apart(worlds[0], worlds[w], &same);
        assert_true(same);
    }
    remove(path);
    for (int w = 0; w < 3; w++)
        selkie_world_destroy(worlds[w]);
}

/* A checkpoint of one backend resumes on the other. */
static void test_resumed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const heat_case of = {2, OTHER | WARM_FLOOR | AIR, 0, 0.6, SELKIE_TRANSFER_APIC};
    for (int from_device = 0; from_device < 2; from_device++) {
        heat_scene s;
        selkie_error error = {0};
        int same;
        char path[] = "cuda_heat_XXXXXX";
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        set_heat_scene(&s, &of);
        selkie_world *first = make_world(&s.scene, from_device ? SELKIE_BACKEND_CUDA : SELKIE_BACKEND_PLAIN);
        selkie_world *second = make_world(&s.scene, from_device ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_CUDA);
        take_steps(first, 2);
        assert_int_equal(selkie_world_save(first, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_load(second, path, &error), SELKIE_OK);
        remove(path);
        take_steps(first, 1);
        take_steps(second, 1);
        assert_true(difference(first, second) < 1e-4 * s.scene.domain.cell_size);
        apart(first, second, &same);
        assert_true(same);
        compare_sums(first, second);
        selkie_world_destroy(first);
        selkie_world_destroy(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_water_2d),        cmocka_unit_test(test_sweeps_2d),
        cmocka_unit_test(test_solver_2d),       cmocka_unit_test(test_two_2d),
        cmocka_unit_test(test_two_solver_2d),   cmocka_unit_test(test_stirred_2d),
        cmocka_unit_test(test_beyond_2d),       cmocka_unit_test(test_viscous_2d),
        cmocka_unit_test(test_source_2d),       cmocka_unit_test(test_unilateral_2d),
        cmocka_unit_test(test_same_bits),       cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_small_3d),        cmocka_unit_test(test_small_solver_3d),
        cmocka_unit_test(test_water_3d),        cmocka_unit_test(test_solver_3d),
        cmocka_unit_test(test_viscous_3d),      cmocka_unit_test(test_bodies_2d),
        cmocka_unit_test(test_small_bodies_3d),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

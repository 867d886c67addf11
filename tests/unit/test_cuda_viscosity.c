/* Viscosity on the GPU against the CPU: as many iterations, and paths apart by what the tolerance of the solves allows.
 * Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"
#include "methods/balance.h"
#include "rigid/rigid.h"

/* A column at a wall, and a drop that flies and turns: nothing holds it. */
typedef struct viscous_case {
    int dimension, steps;
    double viscosity[2]; /* m2/s  of the column and of the drop */
    double density[2];   /* kg/m3 */
    selkie_wall wall;
    double friction;
} viscous_case;

typedef struct viscous_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_material_def materials[2];
} viscous_scene;

static void set_viscous_scene(viscous_scene *s, const viscous_case *of)
{
    set_scene(&s->scene, s->liquids, of->dimension, SELKIE_VOLUME_NONE);
    s->scene.domain.cell_size = of->dimension == 3 ? 1.0 / 24 : 1.0 / 40;
    for (int side = 0; side < 2 * of->dimension; side++) {
        s->scene.domain.walls[side] = of->wall;
        s->scene.domain.liquid_friction[side] = of->friction;
    }
    selkie_shape_defaults(&s->liquids[1].shape, SELKIE_SHAPE_SPHERE);
    const double centre[3] = {0.7, 0.9, of->dimension == 3 ? 0.4 : 0.0};
    for (int d = 0; d < 3; d++)
        s->liquids[1].shape.center[d] = centre[d];
    s->liquids[1].shape.radius = 0.17;
    s->liquids[1].velocity[0] = -0.5;
    s->liquids[1].angular_velocity[2] = 6.0;
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&s->materials[m]);
        s->materials[m].name = m ? "drop" : "column";
        s->materials[m].viscosity = of->viscosity[m];
        s->materials[m].density = of->density[m];
        s->liquids[m].material = s->materials[m].name;
    }
    s->scene.materials = s->materials;
    s->scene.material_count = 2;
}

static void compare_viscous_steps(const viscous_case *of)
{
    if (!device_is_fast(of->dimension))
        skip();
    viscous_scene s;
    set_viscous_scene(&s, of);
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < of->steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda);
        print_message("step %d: %g m apart; viscosity %d and %d iterations; pressure %d and %d\n", n + 1, apart,
                      plain->step.viscous_iterations, cuda->step.viscous_iterations, plain->step.pressure.iterations,
                      cuda->step.pressure.iterations);
        assert_true(plain->step.viscous_iterations > 0);
        assert_true(abs(plain->step.viscous_iterations - cuda->step.viscous_iterations) <= 1);
        /* Where viscosity sees liquid in balance, the CPU starts from the solution of the first solve, the GPU from 0.
         */
        if (!sk_step_balances(&plain->step))
            assert_true(abs(plain->step.pressure.iterations - cuda->step.pressure.iterations) <= 1);
        assert_true(apart < 2e-3 * s.scene.domain.cell_size);
    }
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-3 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

#define VISCOUS_TEST(name, ...)                                                                                        \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        const viscous_case of = {__VA_ARGS__};                                                                         \
        (void)state;                                                                                                   \
        compare_viscous_steps(&of);                                                                                    \
    }

/* Levels down to a direct solve; one, two and three sweeps alone; levels that end where sweeps do. */
VISCOUS_TEST(test_stiff_2d, 2, 6, {10.0, 10.0}, {1000.0, 1000.0}, SELKIE_WALL_FREE_SLIP, 0.0)
VISCOUS_TEST(test_soft_2d, 2, 6, {0.05, 0.05}, {1000.0, 1000.0}, SELKIE_WALL_NO_SLIP, 0.0)
VISCOUS_TEST(test_two_sweeps_2d, 2, 6, {0.25, 0.25}, {1000.0, 1000.0}, SELKIE_WALL_NO_SLIP, 0.0)
VISCOUS_TEST(test_three_sweeps_2d, 2, 6, {0.5, 0.5}, {1000.0, 1000.0}, SELKIE_WALL_NO_SLIP, 0.0)
VISCOUS_TEST(test_levels_2d, 2, 6, {1.0, 1.0}, {1000.0, 1000.0}, SELKIE_WALL_NO_SLIP, 0.0)
VISCOUS_TEST(test_two_2d, 2, 6, {0.1, 5.0}, {1000.0, 800.0}, SELKIE_WALL_NO_SLIP, 0.0)
VISCOUS_TEST(test_friction_2d, 2, 4, {0.5, 0.5}, {1000.0, 1000.0}, SELKIE_WALL_FREE_SLIP, 0.4)
VISCOUS_TEST(test_stiff_3d, 3, 5, {10.0, 10.0}, {1000.0, 1000.0}, SELKIE_WALL_NO_SLIP, 0.0)
VISCOUS_TEST(test_soft_3d, 3, 5, {0.02, 0.02}, {1000.0, 1000.0}, SELKIE_WALL_FREE_SLIP, 0.0)
VISCOUS_TEST(test_two_3d, 3, 5, {0.1, 3.0}, {1000.0, 900.0}, SELKIE_WALL_NO_SLIP, 0.0)

/* Two runs on one device have the same bits. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const viscous_case of = {2, 0, {1.0, 3.0}, {1000.0, 900.0}, SELKIE_WALL_NO_SLIP, 0.0};
    viscous_scene s;
    set_viscous_scene(&s, &of);
    selkie_world *first = make_world(&s.scene, SELKIE_BACKEND_CUDA),
                 *second = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    take_steps(first, 5);
    take_steps(second, 5);
    assert_true(difference(first, second) == 0.0);
    assert_memory_equal(first->step.particles.records, second->step.particles.records,
                        (size_t)first->step.particles.count * sizeof *first->step.particles.records);
    selkie_world_destroy(first);
    selkie_world_destroy(second);
}

/* A light box and a heavy ball in honey: the liquid holds them where their surface is no-slip, and pressure balances
 * gravity with them before viscosity acts. */
static void bodies(int dimension, selkie_wall surface, double viscosity, int steps, int with_obstacle)
{
    if (!device_is_here())
        skip();
    viscous_scene s;
    selkie_body_def own[2];
    selkie_obstacle_def obstacle;
    const viscous_case of = {dimension, steps, {viscosity, viscosity}, {1000.0, 1000.0}, SELKIE_WALL_NO_SLIP, 0.0};
    memset(&s, 0, sizeof s);
    set_viscous_scene(&s, &of);
    s.scene.domain.cell_size = dimension == 3 ? 1.0 / 10 : 1.0 / 32;
    s.scene.material_count = 1;
    s.liquids[1].material = s.liquids[0].material;
    s.liquids[0].shape.max[0] = 1.0;
    s.liquids[0].shape.max[2] = s.scene.domain.size[2];
    for (int b = 0; b < 2; b++) {
        selkie_body_defaults(&own[b]);
        selkie_shape_defaults(&own[b].shape, b ? SELKIE_SHAPE_SPHERE : SELKIE_SHAPE_BOX);
        own[b].density = b ? 2500.0 : 300.0;
        own[b].surface = surface;
        own[b].velocity[0] = b ? -0.5 : 0.5;
        for (int d = 0; d < dimension; d++) {
            own[b].shape.min[d] = d == 1 ? 0.45 : 0.1;
            own[b].shape.max[d] = d == 1 ? 0.75 : 0.4;
            own[b].shape.center[d] = d == 1 ? 0.5 : 0.7 * s.scene.domain.size[d];
        }
        own[b].shape.radius = 0.17;
    }
    s.scene.bodies = own;
    s.scene.body_count = 2;
    selkie_obstacle_defaults(&obstacle); /* one that cuts faces, beside the bodies and away from them */
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++) {
        obstacle.shape.min[d] = d == 1 ? 0.0 : 0.13;
        obstacle.shape.max[d] = d == 1 ? 0.21 : 0.9 * s.scene.domain.size[d];
    }
    obstacle.surface = SELKIE_WALL_NO_SLIP;
    s.scene.obstacles = &obstacle;
    s.scene.obstacle_count = with_obstacle;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    double most = 0.0;
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        double turned = 0.0, moved = 0.0;
        for (int b = 0; b < 2; b++) {
            selkie_body_state p, q;
            assert_int_equal(selkie_world_body(plain, b, &p), SELKIE_OK);
            assert_int_equal(selkie_world_body(cuda, b, &q), SELKIE_OK);
            for (int d = 0; d < 3; d++) {
                moved = fmax(moved, fabs(p.position[d] - q.position[d]));
                turned = fmax(turned, fabs(p.angular_velocity[d] - q.angular_velocity[d]));
            }
        }
        const double apart = difference(plain, cuda);
        most = fmax(most, fabs(plain->step.rigid->bodies[1].drag[1]));
        print_message("step %d: %g m apart, bodies %g m and %g rad/s; drag %g and %g N s; viscosity %d and %d "
                      "iterations, pressure %d and %d\n",
                      n + 1, apart, moved, turned, plain->step.rigid->bodies[1].drag[1],
                      cuda->step.rigid->bodies[1].drag[1], plain->step.viscous_iterations,
                      cuda->step.viscous_iterations, plain->step.pressure.iterations, cuda->step.pressure.iterations);
        /* 1e-3 of a cell in the first step, as far as the tolerance of the solves goes; later ones carry it on. */
        assert_true(apart < (n ? 1e-2 : 1e-3) * s.scene.domain.cell_size);
        assert_true(moved < 1e-3 * s.scene.domain.cell_size);
        assert_true(abs(plain->step.viscous_iterations - cuda->step.viscous_iterations) <= 2);
    }
    assert_true(surface == SELKIE_WALL_NO_SLIP ? most > 0.0 : most == 0.0);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_bodies_2d(void **state)
{
    (void)state;
    bodies(2, SELKIE_WALL_FREE_SLIP, 0.05, 4, 0);
    bodies(2, SELKIE_WALL_NO_SLIP, 0.05, 6, 0);
    bodies(2, SELKIE_WALL_NO_SLIP, 1e-3, 3, 0);
    bodies(2, SELKIE_WALL_FREE_SLIP, 0.05, 4, 1);
    bodies(2, SELKIE_WALL_NO_SLIP, 0.05, 4, 1);
}

static void test_bodies_3d(void **state)
{
    (void)state;
    bodies(3, SELKIE_WALL_NO_SLIP, 0.05, 3, 0);
    bodies(3, SELKIE_WALL_NO_SLIP, 0.05, 2, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sweeps_2d), cmocka_unit_test(test_three_sweeps_2d), cmocka_unit_test(test_stiff_2d),
        cmocka_unit_test(test_soft_2d),       cmocka_unit_test(test_levels_2d),       cmocka_unit_test(test_two_2d),
        cmocka_unit_test(test_friction_2d),   cmocka_unit_test(test_same_bits),       cmocka_unit_test(test_stiff_3d),
        cmocka_unit_test(test_soft_3d),       cmocka_unit_test(test_two_3d),          cmocka_unit_test(test_bodies_2d),
        cmocka_unit_test(test_bodies_3d),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

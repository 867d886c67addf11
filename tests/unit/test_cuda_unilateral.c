/* Unilateral incompressibility on the GPU against the plain form: the same rows, as many steps of the solver, and paths
 * apart by what its tolerance allows. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"

/* Two columns that fall into each other. They drift a little: a start at rest is corrected by the solver, and would not
 * have equal bits. */
static void set_unilateral(selkie_scene *scene, selkie_liquid_def liquids[2], int dimension)
{
    set_scene(scene, liquids, dimension, SELKIE_VOLUME_AUTO);
    scene->incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    liquids[0].velocity[0] = 0.01;
}

static void print_steps(int n, double apart, const sk_step *p, const sk_step *q)
{
    print_message("step %d: %g m apart; pressure %d and %d steps, residual %.3g and %.3g, %lld and %lld free; density "
                  "%d and %d steps, %d and %d passes, excess %.4g and %.4g\n",
                  n, apart, p->unilateral.iterations, q->unilateral.iterations, p->unilateral.residual,
                  q->unilateral.residual, (long long)p->unilateral.free_cells, (long long)q->unilateral.free_cells,
                  p->correction.iterations, q->correction.iterations, p->density_passes, q->density_passes, p->overfull,
                  q->overfull);
}

static void steps_with_bounds(int dimension, selkie_transfer transfer, int steps, double viscosity)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, dimension);
    scene.transfer = transfer;
    scene.viscosity = viscosity;
    for (int side = 0; side < 2 * dimension && viscosity > 0.0; side++)
        scene.domain.walls[side] = SELKIE_WALL_NO_SLIP;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda);
        print_steps(n + 1, apart, p, q);
        assert_true(q->unilateral.converged && q->unilateral.residual <= scene.unilateral.tolerance);
        assert_true(abs(p->unilateral.iterations - q->unilateral.iterations) <= 1);
        assert_true(abs(p->correction.iterations - q->correction.iterations) <= 1);
        if (n == 0) { /* later steps sort particles apart */
            assert_true(apart < 1e-3 * scene.domain.cell_size);
            assert_int_equal(p->unilateral.unknowns, q->unilateral.unknowns);
        }
    }
    assert_float_equal(plain->statistics.volume_ratio, cuda->statistics.volume_ratio, 0.002);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* A start at rest is corrected: both backends move the particles by the same, but for the tolerance of the solver. */
static void test_settled_start(void **state)
{
    (void)state;
    if (!device_is_fast(2))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, 2);
    liquids[0].velocity[0] = 0.0;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_unilateral_2d(void **state)
{
    (void)state;
    steps_with_bounds(2, SELKIE_TRANSFER_FLIP, 12, 0.0);
    steps_with_bounds(2, SELKIE_TRANSFER_APIC, 3, 0.0);
}

static void test_unilateral_3d(void **state)
{
    (void)state;
    steps_with_bounds(3, SELKIE_TRANSFER_FLIP, 12, 0.0);
    steps_with_bounds(3, SELKIE_TRANSFER_APIC, 3, 0.0);
}

/* Honey on walls that hold it: gravity is balanced by the pressure before viscosity acts. */
static void test_unilateral_viscous(void **state)
{
    (void)state;
    steps_with_bounds(2, SELKIE_TRANSFER_APIC, 6, 0.05);
    steps_with_bounds(3, SELKIE_TRANSFER_FLIP, 4, 0.05);
}

/* Liquid in flight meets no pressure: the same bits as the plain form. */
static void test_unilateral_flight(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, 2);
    liquids[0].shape.min[0] = liquids[0].shape.min[1] = 0.3;
    liquids[0].shape.max[0] = 0.7, liquids[0].shape.max[1] = 0.8;
    liquids[0].velocity[0] = 0.5;
    scene.liquid_count = 1;
    scene.time.step = 0.005;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(difference(plain, cuda) == 0.0);
    }
    assert_int_equal(cuda->step.unilateral.free_cells, 0);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* A full closed box has no surface: the pressure is the least one. Liquid that spins, or falls as one piece. */
static void check_closed(double spin, double fall)
{
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, 2);
    scene.domain.size[1] = 1.0;
    for (int d = 0; d < 2; d++) {
        liquids[0].shape.min[d] = 0.0;
        liquids[0].shape.max[d] = 1.0;
    }
    liquids[0].angular_velocity[2] = spin;
    liquids[0].velocity[1] = -fall;
    scene.liquid_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        print_steps(n + 1, difference(plain, cuda), &plain->step, &cuda->step);
        assert_true(abs(plain->step.unilateral.iterations - cuda->step.unilateral.iterations) <= 2);
    }
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_unilateral_closed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    check_closed(3.0, 0.0);
    check_closed(0.0, 1.0);
}

static void test_unilateral_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, 2);
    selkie_world *first = make_world(&scene, SELKIE_BACKEND_CUDA), *second = make_world(&scene, SELKIE_BACKEND_CUDA);
    take_steps(first, 4);
    take_steps(second, 4);
    assert_true(difference(first, second) == 0.0);
    selkie_world_destroy(first);
    selkie_world_destroy(second);
}

/* A ball and a box in the way, a source above and a drain in a corner. */
static void unilateral_obstacles(double speed, int correction)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacles[2];
    selkie_source_def source;
    selkie_drain_def drain;
    set_unilateral(&scene, liquids, 2);
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&obstacles[o]);
    selkie_shape_defaults(&obstacles[0].shape, SELKIE_SHAPE_SPHERE);
    obstacles[0].shape.center[0] = 0.52, obstacles[0].shape.center[1] = 0.2;
    obstacles[0].shape.radius = 0.13;
    obstacles[0].velocity[0] = -speed;
    scene.unilateral.density_correction = correction;
    selkie_shape_defaults(&obstacles[1].shape, SELKIE_SHAPE_BOX);
    obstacles[1].shape.max[0] = 0.12, obstacles[1].shape.max[1] = 0.31;
    obstacles[1].surface = SELKIE_WALL_NO_SLIP;
    scene.obstacles = obstacles;
    scene.obstacle_count = 2;
    selkie_source_defaults(&source);
    selkie_shape_defaults(&source.shape, SELKIE_SHAPE_BOX);
    source.shape.min[0] = 0.45, source.shape.max[0] = 0.6;
    source.shape.min[1] = 1.1, source.shape.max[1] = 1.2;
    source.velocity[1] = -1.0;
    scene.sources = &source;
    scene.source_count = 1;
    selkie_drain_defaults(&drain);
    selkie_shape_defaults(&drain.shape, SELKIE_SHAPE_BOX);
    drain.shape.min[0] = 0.9, drain.shape.max[0] = 1.0;
    drain.shape.max[1] = 0.1;
    scene.drains = &drain;
    scene.drain_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 6; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda);
        print_steps(n + 1, apart, p, q);
        assert_true(abs(p->unilateral.iterations - q->unilateral.iterations) <= 1);
        assert_true(abs(p->correction.iterations - q->correction.iterations) <= 1);
        assert_true(apart < 1e-3 * scene.domain.cell_size);
        assert_int_equal(p->emitted, q->emitted);
        assert_int_equal(p->drained, q->drained);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_unilateral_obstacles(void **state)
{
    (void)state;
    unilateral_obstacles(0.0, 1);
}

/* The correction takes a ball where the step begins, the pressure where it ends. */
static void test_unilateral_moving(void **state)
{
    (void)state;
    unilateral_obstacles(1.5, 1);
    unilateral_obstacles(1.5, 0);
}

/* Liquid that runs through joined sides: x, and in 3D also z, which has one block. */
static void unilateral_periodic(int dimension, int steps)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, dimension);
    scene.domain.cell_size = dimension == 2 ? 1.0 / 32 : 1.0 / 16;
    scene.domain.size[1] = dimension == 2 ? 1.5 : 1.0;
    scene.domain.size[2] = dimension == 3 ? 0.5 : 0.0;
    scene.domain.periodic = dimension == 3 ? SELKIE_AXES_XZ : SELKIE_AXES_X;
    for (int l = 0; l < 2; l++) {
        liquids[l].shape.max[2] = dimension == 3 ? 0.3 + 0.2 * l : 0.0;
        liquids[l].shape.min[2] = 0.0;
        liquids[l].velocity[0] = l ? 1.5 : 4.0;
        liquids[l].velocity[2] = dimension == 3 ? 1.0 - 3.0 * l : 0.0;
    }
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda);
        print_steps(n + 1, apart, p, q);
        assert_true(abs(p->unilateral.iterations - q->unilateral.iterations) <= 1);
        assert_true(abs(p->correction.iterations - q->correction.iterations) <= 1);
        if (n == 0) { /* later steps sort particles apart */
            assert_true(apart < 1e-3 * scene.domain.cell_size);
            assert_int_equal(p->unilateral.unknowns, q->unilateral.unknowns);
        }
    }
    assert_float_equal(plain->statistics.volume_ratio, cuda->statistics.volume_ratio, 0.002);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_unilateral_periodic_2d(void **state)
{
    (void)state;
    unilateral_periodic(2, 12);
}

static void test_unilateral_periodic_3d(void **state)
{
    (void)state;
    unilateral_periodic(3, 4);
}

/* Drops of water that become round and lie on the floor, of one liquid or of two with other tensions. */
static void unilateral_drops(int dimension, int two, double height, double angle)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_material_def materials[2];
    set_unilateral(&scene, liquids, dimension);
    scene.domain.cell_size = 1e-3;
    for (int d = 0; d < dimension; d++) {
        scene.domain.size[d] = dimension == 3 ? 0.012 : 0.02;
        for (int l = 0; l < 2; l++) {
            liquids[l].shape.min[d] = d == 1 ? height : dimension == 3 ? 0.003 : 0.005;
            liquids[l].shape.max[d] = liquids[l].shape.min[d] + (dimension == 3 ? 0.006 : 0.01);
        }
    }
    scene.gravity[1] = 0.0;
    scene.contact_angle = angle;
    scene.surface_tension = two ? 0.0 : 0.073;
    scene.liquid_count = two ? 2 : 1;
    for (int m = 0; two && m < 2; m++) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = liquids[m].material = m ? "oil" : "water";
        materials[m].surface_tension = m ? 0.03 : 0.073;
    }
    if (two) {
        liquids[0].shape.max[0] = liquids[1].shape.min[0] = 0.01;
        scene.materials = materials;
        scene.material_count = 2;
    }
    scene.time.step = 1e-3;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < (dimension == 3 ? 3 : 6); n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda);
        print_steps(n + 1, apart, &plain->step, &cuda->step);
        print_message("%g and %g J\n", plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy);
        assert_true(abs(plain->step.unilateral.iterations - cuda->step.unilateral.iterations) <= 1);
        if (n < 2) /* cells that are all but full may become so in one of the two */
            assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    assert_true(plain->statistics.kinetic_energy > 0.0);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_unilateral_drops_2d(void **state)
{
    (void)state;
    unilateral_drops(2, 0, 0.005, 90.0);
    unilateral_drops(2, 0, 0.0, 60.0);
    unilateral_drops(2, 1, 0.005, 90.0);
}

static void test_unilateral_drops_3d(void **state)
{
    (void)state;
    unilateral_drops(3, 0, 0.0, 90.0);
}

/* Liquid that spins is held together by suction: a lowered bound. */
static void unilateral_suction(int dimension, double depth, double tension)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_unilateral(&scene, liquids, dimension);
    if (dimension == 3) {
        scene.domain.cell_size = 1.0 / 12;
        scene.domain.size[1] = 1.0;
    }
    for (int d = 0; d < dimension; d++) {
        liquids[0].shape.min[d] = 0.0;
        liquids[0].shape.max[d] = d == 1 ? 0.5 : scene.domain.size[d];
    }
    liquids[0].angular_velocity[2] = 6.0; /* its centre is pulled at */
    liquids[0].velocity[1] = 1.0;
    scene.liquid_count = 1;
    scene.unilateral.suction = 1;
    scene.unilateral.suction_depth = depth;
    scene.surface_tension = tension;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    float least = 0.0f;
    for (int n = 0; n < (dimension == 3 ? 3 : 6); n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_grid *grid = &plain->step.grid;
        for (int64_t c = 0; c < (int64_t)grid->block_count * grid->block_cells; c++)
            least = fminf(least, grid->fields[SK_FIELD_POTENTIAL][c]);
        const double apart = difference(plain, cuda);
        print_steps(n + 1, apart, &plain->step, &cuda->step);
        assert_true(abs(plain->step.unilateral.iterations - cuda->step.unilateral.iterations) <= 1);
        /* as with bounds of 0: within the tolerance of the solve some more cells may leave their bound */
        assert_true(llabs(plain->step.unilateral.free_cells - cuda->step.unilateral.free_cells) <= 4);
        if (n == 0)
            assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    print_message("the least pressure: %g m/s\n", (double)least);
    assert_true(least < -1e-3f);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_unilateral_suction_2d(void **state)
{
    (void)state;
    unilateral_suction(2, 3.0, 0.0);
    unilateral_suction(2, 2.0, 0.073);
}

static void test_unilateral_suction_3d(void **state)
{
    (void)state;
    unilateral_suction(3, 1.0, 0.0);
}

/* What is missing is refused by name. */
static void test_unilateral_refusals(void **state)
{
    (void)state;
    if (!sk_cuda_is_built())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacle;
    selkie_error error = {0};
    set_unilateral(&scene, liquids, 2);
    assert_int_equal(sk_cuda_check(&scene, &error), SELKIE_OK);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.radius = 0.2;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    assert_int_equal(sk_cuda_check(&scene, &error), SELKIE_OK);
    scene.unilateral.solver = SELKIE_UNILATERAL_MPRGP;
    assert_int_equal(sk_cuda_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "unilateral.solver \"mprgp\""));
    assert_null(strchr(error.message, '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unilateral_refusals),    cmocka_unit_test(test_unilateral_flight),
        cmocka_unit_test(test_unilateral_2d),          cmocka_unit_test(test_settled_start),
        cmocka_unit_test(test_unilateral_3d),          cmocka_unit_test(test_unilateral_viscous),
        cmocka_unit_test(test_unilateral_obstacles),   cmocka_unit_test(test_unilateral_moving),
        cmocka_unit_test(test_unilateral_closed),      cmocka_unit_test(test_unilateral_same_bits),
        cmocka_unit_test(test_unilateral_periodic_2d), cmocka_unit_test(test_unilateral_periodic_3d),
        cmocka_unit_test(test_unilateral_drops_2d),    cmocka_unit_test(test_unilateral_drops_3d),
        cmocka_unit_test(test_unilateral_suction_2d),  cmocka_unit_test(test_unilateral_suction_3d),
    };
    if (getenv("SELKIE_TEST_FILTER"))
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The GPU backend against the plain one.
 *
 * Sort, transfers, classification, extrapolation and move run the same functions in the same order, so that a step has
 * the same bits as long as the solver's result has. The solver adds up in another order: it takes the same number of
 * iterations, and pressures differ by its tolerance. Skipped with a word where there is no device. */
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

/* Fields that both worlds must have with the same bits. */
static void compare_fields(const selkie_world *a, const selkie_world *b, const int *fields, int count)
{
    const sk_grid *g = &a->step.grid, *h = &b->step.grid;
    assert_int_equal(g->block_count, h->block_count);
    assert_int_equal(g->particle_blocks, h->particle_blocks);
    assert_memory_equal(g->coordinates + 1, h->coordinates + 1, ((size_t)g->block_count - 1) * sizeof *g->coordinates);
    const size_t cells = (size_t)g->block_cells;
    for (int f = 0; f < count; f++)
        for (size_t c = cells; c < (size_t)g->block_count * cells; c++) {
            const float x = g->fields[fields[f]][c], y = h->fields[fields[f]][c];
            if (memcmp(&x, &y, sizeof x) != 0 && (x == x || y == y))
                fail_msg("field %s: block %zu, cell %zu: %.9g, expected %.9g", sk_field_info(fields[f])->name,
                         c / cells, c % cells, (double)y, (double)x);
        }
    for (size_t c = cells; c < (size_t)g->block_count * cells; c++)
        assert_int_equal(g->kinds[c], h->kinds[c]);
}

/* The state before the first solve has the bits of the plain form. */
static void first_fields(int dimension, selkie_transfer transfer)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.transfer = transfer;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    const int fields[] = {SK_FIELD_VELOCITY_X, SK_FIELD_VELOCITY_Y, SK_FIELD_DENSITY, SK_FIELD_FILL, SK_FIELD_DEPTH};
    compare_fields(plain, cuda, fields, 5);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_first_fields_2d(void **state)
{
    (void)state;
    first_fields(2, SELKIE_TRANSFER_FLIP);
}

static void test_first_fields_3d(void **state)
{
    (void)state;
    first_fields(3, SELKIE_TRANSFER_APIC);
}

/* Free fall needs no solve: the whole step has the same bits. */
static void free_fall(int dimension, selkie_transfer transfer)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.transfer = transfer;
    scene.pressure.start = 10.0;
    for (int l = 0; l < 2; l++) {
        liquids[l].shape.min[1] += 0.7;
        liquids[l].shape.max[1] += 0.7;
        liquids[l].velocity[0] = l ? -2.0 : 3.0;
        liquids[l].angular_velocity[2] = 5.0;
    }
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 6; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda);
        if (apart != 0.0)
            fail_msg("after step %d: %g m apart", n + 1, apart);
    }
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-9 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* The same where the device has room for too few blocks: the sort takes more and repeats. */
static void test_few_blocks(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.pressure.start = 10.0;
    liquids[0].velocity[0] = 3.0;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 8; n++) {
        if (n == 2)
            assert_int_equal(sk_cuda_reserve_blocks(&cuda->step, 3, NULL), SELKIE_OK);
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(difference(plain, cuda) == 0.0);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Force fields act as on the CPU, where the phase has one form, with fused multiply-add. */
static void test_forces(void **state)
{
    (void)state;
    if (!device_is_fast(3))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_force_def forces[3];
    set_scene(&scene, liquids, 3, SELKIE_VOLUME_NONE);
    scene.pressure.start = 10.0;
    selkie_force_defaults(&forces[0], SELKIE_FORCE_EXPLOSION);
    selkie_force_defaults(&forces[1], SELKIE_FORCE_VORTEX);
    selkie_force_defaults(&forces[2], SELKIE_FORCE_UNIFORM);
    forces[0].time = 0.005;
    forces[0].speed = 3.0;
    forces[0].radius = 0.4;
    forces[1].axis[1] = 1.0;
    forces[1].radius = 0.5;
    forces[1].spin = 40.0;
    forces[2].acceleration[0] = 2.0;
    scene.forces = forces;
    scene.force_count = 3;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(difference(plain, cuda) < 1e-4 * scene.domain.cell_size);
    }
    assert_true(plain->statistics.max_speed > 2.0);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Columns that cross several cells a step in different directions, and turn: their paths leave the tiles of their
 * blocks. Without pressure the paths are those of the plain form to the last bit. */
static void fast_columns(int dimension, selkie_transfer transfer)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.transfer = transfer;
    scene.pressure.start = 10.0;
    for (int l = 0; l < 2; l++) {
        liquids[l].velocity[0] = l ? -9.0 : 12.0;
        liquids[l].velocity[1] = l ? 15.0 : 4.0;
        liquids[l].velocity[2] = dimension == 3 ? 5.0 : 0.0;
        liquids[l].angular_velocity[2] = 8.0;
    }
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(plain->statistics.max_speed * scene.time.step > 3.0 * scene.domain.cell_size);
        assert_true(difference(plain, cuda) == 0.0);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_fast_columns_2d(void **state)
{
    (void)state;
    fast_columns(2, SELKIE_TRANSFER_APIC);
}

static void test_fast_columns_3d(void **state)
{
    (void)state;
    fast_columns(3, SELKIE_TRANSFER_FLIP);
}

static void test_free_fall_2d(void **state)
{
    (void)state;
    free_fall(2, SELKIE_TRANSFER_APIC);
}

static void test_free_fall_3d(void **state)
{
    (void)state;
    free_fall(3, SELKIE_TRANSFER_FLIP);
}

/* Steps with pressure: as many iterations, and paths apart by what the tolerance of the solve allows. */
static void steps_with_pressure(int dimension, selkie_volume volume, int steps)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, dimension, volume);
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    double apart = difference(plain, cuda), volumes = 0.0;
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        apart = difference(plain, cuda);
        volumes = fmax(volumes, fabs(plain->statistics.volume_ratio - cuda->statistics.volume_ratio));
        print_message("step %d: %g m apart; pressure %d and %d iterations, residual %.3g and %.3g; density %d and %d, "
                      "passes %d and %d\n",
                      n + 1, apart, p->pressure.iterations, q->pressure.iterations, p->pressure.residual,
                      q->pressure.residual, p->density_report.iterations, q->density_report.iterations,
                      p->density_passes, q->density_passes);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        assert_true(abs(p->density_report.iterations - q->density_report.iterations) <= 1);
        if (n == 0) /* later steps sort particles apart */
            assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    assert_true(volumes < 0.002);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_pressure_2d(void **state)
{
    (void)state;
    steps_with_pressure(2, SELKIE_VOLUME_NONE, 10);
}

static void test_pressure_3d(void **state)
{
    (void)state;
    steps_with_pressure(3, SELKIE_VOLUME_NONE, 6);
}

static void test_idp_2d(void **state)
{
    (void)state;
    steps_with_pressure(2, SELKIE_VOLUME_IDP, 20);
}

static void test_idp_3d(void **state)
{
    (void)state;
    steps_with_pressure(3, SELKIE_VOLUME_IDP, 6);
}

/* No-slip walls hold the liquid as on the CPU, with and without the limit of FLIP's particles beside them. */
static void no_slip(int dimension, selkie_transfer transfer)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.transfer = transfer;
    for (int side = 0; side < 2 * dimension; side++)
        scene.domain.walls[side] = SELKIE_WALL_NO_SLIP;
    liquids[0].velocity[0] = 1.0;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
    }
    assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-4 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_no_slip_2d(void **state)
{
    (void)state;
    no_slip(2, SELKIE_TRANSFER_FLIP);
}

static void test_no_slip_3d(void **state)
{
    (void)state;
    no_slip(3, SELKIE_TRANSFER_APIC);
}

/* A ball and a box in the way of the liquid. */
static void set_obstacles(selkie_scene *scene, selkie_obstacle_def obstacles[2])
{
    for (int o = 0; o < 2; o++)
        selkie_obstacle_defaults(&obstacles[o]);
    selkie_shape_defaults(&obstacles[0].shape, SELKIE_SHAPE_SPHERE);
    selkie_shape_defaults(&obstacles[1].shape, SELKIE_SHAPE_BOX);
    const double centre[3] = {0.45, 0.15, 0.35}, low[3] = {0.55, 0.0, 0.2}, high[3] = {0.7, 0.2, 0.5};
    obstacles[0].shape.radius = 0.12;
    for (int d = 0; d < scene->domain.dimension; d++) {
        obstacles[0].shape.center[d] = centre[d];
        obstacles[1].shape.min[d] = low[d];
        obstacles[1].shape.max[d] = high[d];
    }
    scene->obstacles = obstacles;
    scene->obstacle_count = 2;
}

/* Without pressure the paths among obstacles are those of the plain form, to the rounding of shapes. */
static void test_obstacle_paths(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def obstacles[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    set_obstacles(&scene, obstacles);
    scene.pressure.start = 10.0;
    liquids[0].velocity[0] = 2.0;
    liquids[1].velocity[0] = -1.5;
    obstacles[1].velocity[0] = -0.5;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    for (int n = 0; n < 8; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda);
        if (!(apart <= PATHS_APART))
            fail_msg("after step %d: %g m apart", n + 1, apart);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Fixed and moving obstacles in the liquid: same iterations, energies and volumes. */
static void obstacles(int dimension, selkie_volume volume, int steps)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_obstacle_def two[2];
    set_scene(&scene, liquids, dimension, volume);
    set_obstacles(&scene, two);
    liquids[0].velocity[0] = 1.0;
    two[0].surface = SELKIE_WALL_NO_SLIP;
    two[0].angular_velocity[2] = 5.0;
    for (int d = 0; d < dimension; d++)
        two[0].center[d] = two[0].shape.center[d];
    two[1].velocity[0] = -0.6;
    two[1].liquid_friction = scene.domain.liquid_friction[2] = 0.3;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda);
        print_message(
            "step %d: %g m apart; pressure %d and %d iterations; density %d and %d; pushed out %lld and %lld\n", n + 1,
            apart, p->pressure.iterations, q->pressure.iterations, p->density_report.iterations,
            q->density_report.iterations, (long long)p->pushed_out, (long long)q->pushed_out);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        assert_true(abs(p->density_report.iterations - q->density_report.iterations) <= 1);
        if (n == 0) /* later steps sort particles apart */
            assert_true(apart < 1e-3 * scene.domain.cell_size);
    }
    assert_float_equal(plain->statistics.volume_ratio, cuda->statistics.volume_ratio, 0.002);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_obstacles_2d(void **state)
{
    (void)state;
    obstacles(2, SELKIE_VOLUME_IDP, 10);
}

static void test_obstacles_3d(void **state)
{
    (void)state;
    obstacles(3, SELKIE_VOLUME_IDP, 8);
}

/* A stream, a source that keeps its shape filled, and drains: as many particles come and go as on the CPU. */
static void sources(int dimension, selkie_transfer transfer)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_source_def two[2];
    selkie_drain_def drains[2];
    set_scene(&scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene.transfer = transfer;
    for (int s = 0; s < 2; s++) {
        selkie_source_defaults(&two[s]);
        selkie_drain_defaults(&drains[s]);
        selkie_shape_defaults(&two[s].shape, SELKIE_SHAPE_BOX);
        selkie_shape_defaults(&drains[s].shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < dimension; d++) {
            two[s].shape.min[d] = s ? 0.3 : 0.1;
            two[s].shape.max[d] = s ? 0.4 : 0.25;
            drains[s].shape.min[d] = 0.0;
            drains[s].shape.max[d] = s ? 0.3 : 0.1;
        }
        two[s].shape.min[1] = 0.9 + 0.2 * s;
        two[s].shape.max[1] = 1.0 + 0.2 * s;
    }
    two[0].velocity[0] = 1.5;
    two[1].start = 0.03;
    drains[1].flow_rate = dimension == 2 ? 0.3 : 0.1;
    scene.sources = two;
    scene.source_count = 2;
    scene.drains = drains;
    scene.drain_count = 2;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 10; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const selkie_statistics *p = &plain->statistics, *q = &cuda->statistics;
        print_message("step %d: %lld and %lld particles, emitted %lld and %lld, drained %lld and %lld\n", n + 1,
                      (long long)p->particles, (long long)q->particles, (long long)p->emitted, (long long)q->emitted,
                      (long long)p->drained, (long long)q->drained);
        assert_int_equal(p->emitted, q->emitted);
        if (n == 0)
            assert_int_equal(p->drained, q->drained);
        assert_true(llabs((long long)(p->drained - q->drained)) <= 2 + p->drained / 200);
        assert_int_equal(q->particles, plain->start_particles + q->emitted - q->drained);
        assert_float_equal(p->volume_ratio, q->volume_ratio, 0.005);
        assert_float_equal(p->potential_energy, q->potential_energy, 0.005 * p->potential_energy);
    }
    assert_true(cuda->statistics.emitted > 50 && cuda->statistics.drained > 50);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_sources_2d(void **state)
{
    (void)state;
    sources(2, SELKIE_TRANSFER_APIC);
}

static void test_sources_3d(void **state)
{
    (void)state;
    sources(3, SELKIE_TRANSFER_FLIP);
}

/* Two densities: the lightness of faces has the bits of the plain form, and energies count masses. */
static void test_densities(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_material_def materials[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = m ? "oil" : "water";
        materials[m].density = m ? 800.0 : 1000.0;
        liquids[m].material = materials[m].name;
    }
    scene.materials = materials;
    scene.material_count = 2;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    const int fields[] = {SK_FIELD_VELOCITY_X, SK_FIELD_LIGHTNESS_X, SK_FIELD_LIGHTNESS_Y, SK_FIELD_DENSITY};
    compare_fields(plain, cuda, fields, 4);
    for (int n = 0; n < 5; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(abs(plain->step.pressure.iterations - cuda->step.pressure.iterations) <= 1);
    }
    assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-4 * plain->statistics.kinetic_energy);
    assert_float_equal(plain->statistics.potential_energy, cuda->statistics.potential_energy,
                       1e-6 * plain->statistics.potential_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* A full closed box: the pressure has no level, and a vortex keeps turning. */
static void test_closed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.domain.size[1] = 1.0;
    for (int d = 0; d < 2; d++) {
        liquids[0].shape.min[d] = 0.0;
        liquids[0].shape.max[d] = 1.0;
    }
    liquids[0].angular_velocity[2] = 3.0;
    scene.liquid_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 5; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(abs(plain->step.pressure.iterations - cuda->step.pressure.iterations) <= 1);
    }
    assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       1e-4 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* The same bits from run to run. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_IDP);
    selkie_world *first = make_world(&scene, SELKIE_BACKEND_CUDA), *second = make_world(&scene, SELKIE_BACKEND_CUDA);
    take_steps(first, 8);
    take_steps(second, 8);
    assert_true(difference(first, second) == 0.0);
    selkie_world_destroy(first);
    selkie_world_destroy(second);
}

/* What the GPU cannot run is refused with one line that names it; without a device the line offers the CPU. */
static void test_refusals(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_world *world;
    selkie_error error = {0};
    sk_cuda_info info;
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.backend = SELKIE_BACKEND_CUDA;
    if (sk_cuda_find(&info, NULL) != SELKIE_OK) {
        assert_int_equal(selkie_world_create(&scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
        assert_non_null(strstr(error.message, "use \"tuned\""));
        assert_null(strchr(error.message, '\n'));
    }
    if (!sk_cuda_is_built())
        return;
    scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    scene.unilateral.solver = SELKIE_UNILATERAL_MPRGP;
    assert_int_equal(selkie_world_create(&scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "unilateral.solver"));

    /* `auto` runs it on the CPU. */
    scene.backend = SELKIE_BACKEND_AUTO;
    assert_int_equal(selkie_world_create(&scene, NULL, &world, &error), SELKIE_OK);
    assert_int_equal(selkie_world_backend(world), SELKIE_BACKEND_TUNED);
    selkie_world_destroy(world);

    /* A method without any phase on the GPU. */
    scene.incompressibility = SELKIE_INCOMPRESSIBILITY_BILATERAL;
    scene.unilateral.solver = SELKIE_UNILATERAL_ACTIVE_SET;
    scene.volume = SELKIE_VOLUME_EQ8;
    assert_int_equal(sk_methods_check_gpu(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "use \"tuned\""));
    if (sk_cuda_find(&info, NULL) == SELKIE_OK)
        assert_non_null(strstr(error.message, "eq8"));
    assert_int_equal(selkie_world_create(&scene, NULL, &world, &error), SELKIE_OK);
    assert_int_equal(selkie_world_backend(world), SELKIE_BACKEND_TUNED);
    selkie_world_destroy(world);
}

/* A sponge damps particles, and a turning frame turns their velocities and matrices, as on the CPU. */
static void test_particle_forces(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_force_def sponge;
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_NONE);
    scene.transfer = SELKIE_TRANSFER_APIC;
    scene.pressure.start = 10.0;
    liquids[0].velocity[0] = 2.0;
    selkie_force_defaults(&sponge, SELKIE_FORCE_SPONGE);
    sponge.side = SELKIE_SIDE_X_MAX;
    sponge.width = 0.8;
    scene.forces = &sponge;
    scene.force_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 4; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_true(difference(plain, cuda) < 1e-4 * scene.domain.cell_size);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* A source fills an empty domain: the first blocks come while the world runs. */
static void test_empty_start(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_source_def source;
    set_scene(&scene, liquids, 2, SELKIE_VOLUME_IDP);
    scene.liquid_count = 0;
    selkie_source_defaults(&source);
    selkie_shape_defaults(&source.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 2; d++) {
        source.shape.min[d] = 0.4;
        source.shape.max[d] = 0.7;
    }
    source.start = 0.02;
    source.velocity[0] = 1.0;
    scene.sources = &source;
    scene.source_count = 1;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 6; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        assert_int_equal(plain->statistics.particles, cuda->statistics.particles);
    }
    assert_true(cuda->statistics.particles > 100);
    assert_true(difference(plain, cuda) < 1e-3 * scene.domain.cell_size);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_first_fields_2d),
        cmocka_unit_test(test_first_fields_3d), cmocka_unit_test(test_free_fall_2d),
        cmocka_unit_test(test_free_fall_3d),    cmocka_unit_test(test_pressure_2d),
        cmocka_unit_test(test_pressure_3d),     cmocka_unit_test(test_idp_2d),
        cmocka_unit_test(test_idp_3d),          cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_closed),          cmocka_unit_test(test_densities),
        cmocka_unit_test(test_no_slip_2d),      cmocka_unit_test(test_no_slip_3d),
        cmocka_unit_test(test_few_blocks),      cmocka_unit_test(test_forces),
        cmocka_unit_test(test_obstacle_paths),  cmocka_unit_test(test_obstacles_2d),
        cmocka_unit_test(test_obstacles_3d),    cmocka_unit_test(test_sources_2d),
        cmocka_unit_test(test_sources_3d),      cmocka_unit_test(test_particle_forces),
        cmocka_unit_test(test_empty_start),     cmocka_unit_test(test_fast_columns_2d),
        cmocka_unit_test(test_fast_columns_3d),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

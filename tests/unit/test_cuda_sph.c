/* SPH on the GPU against the plain backend.
 *
 * Lists, sums over neighbours, corrected gradients, pressures and moves run the same functions in the same order. The
 * relaxed Jacobi solver (iisph) has no factor that depends on sums over all particles: as long as both take the same
 * number of iterations, all particles have the same bits. The accelerated solver takes its step length from such sums,
 * which differ in the last bits. Skipped with a word where there is no device. */
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
#include "methods/sph/boundary.h"

/* A column of water that collapses. */
static void set_column(selkie_scene *scene, selkie_liquid_def *liquid, int dimension, selkie_sph_solver solver)
{
    selkie_scene_defaults(scene);
    selkie_scene_set_method(scene, SELKIE_METHOD_SPH);
    scene->domain.dimension = dimension;
    scene->domain.cell_size = dimension == 2 ? 1.0 / 20 : 1.0 / 10;
    const double size[3] = {1.5, 1.0, dimension == 3 ? 0.5 : 0.0}, part[3] = {0.4, 0.6, 1.0};
    selkie_liquid_defaults(liquid);
    selkie_shape_defaults(&liquid->shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++) {
        scene->domain.size[d] = size[d];
        liquid->shape.max[d] = part[d] * size[d];
    }
    scene->liquids = liquid;
    scene->liquid_count = 1;
    scene->time.end = 100.0;
    scene->sph.solver = solver;
}

/* Steps of both backends. Returns the largest difference of positions (m) after them. */
static double run_both(const selkie_scene *scene, int steps)
{
    selkie_world *plain = make_world(scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(scene, SELKIE_BACKEND_CUDA);
    double apart = 0.0;
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        apart = fmax(apart, difference(plain, cuda));
        const sk_sph_report *a = &plain->step.sph->report, *b = &cuda->step.sph->report;
        assert_int_equal(a->iterations, b->iterations);
        assert_int_equal(a->pairs, b->pairs);
        assert_int_equal(a->viscosity_iterations, b->viscosity_iterations);
        assert_float_equal(a->compression, b->compression, 1e-9 + 1e-3 * a->compression); /* follows the positions */
        assert_float_equal(plain->statistics.dt, cuda->statistics.dt, 1e-6 * plain->statistics.dt);
        assert_int_equal(plain->step.occupied_cells, cuda->step.occupied_cells);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
    return apart;
}

static void iisph(int dimension, int steps)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    set_column(&scene, &liquid, dimension, SELKIE_SPH_IISPH);
    scene.time.step = dimension == 2 ? 1e-3 : 2e-3; /* the length by time.cfl depends on sums */
    const double apart = run_both(&scene, steps);
    if (apart != 0.0)
        fail_msg("%g m apart", apart);
}

static void test_iisph_2d(void **state)
{
    (void)state;
    iisph(2, 20);
}

static void test_iisph_3d(void **state)
{
    (void)state;
    iisph(3, 5);
}

/* Particles that pass joined sides, and particles that leave through an open one. */
static void leaving(int joined)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    set_column(&scene, &liquid, 2, SELKIE_SPH_IISPH);
    scene.domain.size[0] = 1.6; /* an even number of blocks */
    scene.domain.periodic = joined ? 1 : 0;
    scene.domain.walls[0] = joined ? scene.domain.walls[0] : SELKIE_WALL_OPEN;
    liquid.velocity[0] = -3.0;
    scene.time.step = 1e-3;
    const double apart = run_both(&scene, 20);
    if (apart != 0.0)
        fail_msg("%g m apart", apart);
}

static void test_joined_sides(void **state)
{
    (void)state;
    leaving(1);
}

static void test_open_side(void **state)
{
    (void)state;
    leaving(0);
}

/* The accelerated solver, with forces between particles and steps by time.cfl. Rounding of the sums grows with the
 * chaos of the particles: a hundredth of a cell is left after few steps. */
static void test_accelerated(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    set_column(&scene, &liquid, 2, SELKIE_SPH_ACCELERATED);
    scene.sph.xsph = 0.05;
    scene.sph.surface_tension = SELKIE_TENSION_AKINCI;
    scene.sph.tension = 0.5;
    const double apart = run_both(&scene, 10);
    if (!(apart < 0.01 * scene.domain.cell_size))
        fail_msg("%g m apart", apart);
}

/* A resumed run has the bits of the other one, although the host finds the mean pressure for its first step. */
static void test_resumed(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_error error = {0};
    char path[] = "cuda_sph_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    set_column(&scene, &liquid, 2, SELKIE_SPH_ACCELERATED);
    selkie_world *reference = make_world(&scene, SELKIE_BACKEND_CUDA),
                 *resumed = make_world(&scene, SELKIE_BACKEND_CUDA);
    take_steps(reference, 3);
    assert_int_equal(selkie_world_save(reference, path, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
    remove(path);
    take_steps(reference, 4);
    take_steps(resumed, 4);
    assert_true(selkie_world_time(reference) == selkie_world_time(resumed));
    assert_true(difference(reference, resumed) == 0.0);
    selkie_world_destroy(reference);
    selkie_world_destroy(resumed);
}

/* Boundary particles of an obstacle that moves, and paths that meet it. */
static void test_obstacle(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_obstacle_def obstacle;
    set_column(&scene, &liquid, 2, SELKIE_SPH_IISPH);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.center[0] = 0.75;
    obstacle.shape.center[1] = 0.2;
    obstacle.shape.radius = 0.13;
    obstacle.velocity[0] = -1.0;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    scene.time.step = 1e-3;
    const double apart = run_both(&scene, 25);
    if (!(apart < 1e-5 * scene.domain.cell_size)) /* the host places the boundary with fused multiply-add */
        fail_msg("%g m apart", apart);
}

/* Viscosity: explicit with friction of the walls and of an obstacle, and implicit, whose solver adds up in another
 * order: it takes the same iterations, and the rest of both is below its tolerance. */
static void viscous(double viscosity, double bound)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_obstacle_def obstacle;
    set_column(&scene, &liquid, 2, SELKIE_SPH_IISPH);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.center[0] = 0.7;
    obstacle.shape.center[1] = 0.2;
    obstacle.shape.radius = 0.13;
    obstacle.surface = SELKIE_WALL_NO_SLIP;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
    scene.viscosity = viscosity;
    scene.time.step = 1e-3;
    const double apart = run_both(&scene, 15);
    if (!(apart <= bound * scene.domain.cell_size))
        fail_msg("%g m apart", apart);
}

static void test_explicit_viscosity(void **state)
{
    (void)state;
    viscous(0.01, 1e-5); /* the friction has one form on the host, with fused multiply-add */
}

static void test_implicit_viscosity(void **state)
{
    (void)state;
    viscous(0.2, 1e-4);
}

/* Coulomb's friction of the floor and of a moving obstacle. */
static void test_wall_friction(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_obstacle_def obstacle;
    set_column(&scene, &liquid, 2, SELKIE_SPH_IISPH);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.center[0] = 0.7;
    obstacle.shape.center[1] = 0.2;
    obstacle.shape.radius = 0.13;
    obstacle.velocity[0] = -1.0;
    obstacle.liquid_friction = 0.5;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    scene.domain.liquid_friction[2] = 0.3;
    scene.time.step = 1e-3;
    const double rubbed = run_both(&scene, 25);
    if (!(rubbed < 1e-4 * scene.domain.cell_size)) /* the host has fused multiply-add */
        fail_msg("%g m apart", rubbed);
}

/* A stream into a nearly empty domain, a source that keeps its shape filled, and two drains: as many particles as on
 * the CPU. There is room for few of them at the start, so that the arrays grow. */
static void test_sources(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_source_def sources[2];
    selkie_drain_def drains[2];
    set_column(&scene, &liquid, 2, SELKIE_SPH_IISPH);
    liquid.shape.max[0] = liquid.shape.max[1] = 0.2;
    for (int s = 0; s < 2; s++) {
        selkie_source_defaults(&sources[s]);
        selkie_drain_defaults(&drains[s]);
        selkie_shape_defaults(&sources[s].shape, SELKIE_SHAPE_BOX);
        selkie_shape_defaults(&drains[s].shape, SELKIE_SHAPE_BOX);
        for (int d = 0; d < 2; d++) {
            sources[s].shape.min[d] = s ? 0.4 : 0.6;
            sources[s].shape.max[d] = s ? 0.7 : 0.8;
            drains[s].shape.max[d] = s ? 0.15 : 0.1;
        }
    }
    sources[0].velocity[0] = 6.0;
    sources[1].start = 0.005;
    sources[1].shape.max[1] = 0.5;
    drains[1].flow_rate = 0.5;
    scene.sources = sources;
    scene.source_count = 2;
    scene.drains = drains;
    scene.drain_count = 2;
    scene.time.step = 1e-3;
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    const int64_t before = cuda->step.particles.count;
    for (int n = 0; n < 20; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const selkie_statistics *p = &plain->statistics, *q = &cuda->statistics;
        assert_int_equal(p->emitted, q->emitted);
        assert_int_equal(p->drained, q->drained);
        assert_int_equal(p->particles, q->particles);
        assert_int_equal(plain->step.sph->report.iterations, cuda->step.sph->report.iterations);
    }
    const double apart = difference(plain, cuda);
    assert_true(cuda->statistics.drained > 0);
    assert_true(cuda->step.particles.count > 2 * before);
    if (!(apart < 1e-5 * scene.domain.cell_size))
        fail_msg("%g m apart", apart);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Forces and torques on an obstacle and on the walls: pressure, viscosity at no-slip surfaces (explicit, or by its
 * solve), Coulomb's friction. */
static void forces(double viscosity, double bound)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_obstacle_def obstacle;
    selkie_probe_def probes[2];
    set_column(&scene, &liquid, 2, SELKIE_SPH_IISPH);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.name = "ball";
    obstacle.shape.center[0] = 0.65;
    obstacle.shape.center[1] = 0.2;
    obstacle.shape.radius = 0.13;
    obstacle.velocity[0] = -1.0;
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    for (int p = 0; p < 2; p++)
        selkie_probe_defaults(&probes[p]);
    probes[0].name = "force", probes[1].name = "torque";
    probes[0].kind = SELKIE_PROBE_FORCE;
    probes[0].on = "ball";
    probes[1].kind = SELKIE_PROBE_TORQUE;
    probes[1].on = "walls";
    scene.probes = probes;
    scene.probe_count = 2;
    scene.time.step = 1e-3;
    scene.viscosity = viscosity;
    if (viscosity > 0.0) {
        obstacle.surface = SELKIE_WALL_NO_SLIP;
        scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
    } else {
        obstacle.liquid_friction = 0.5;
        scene.domain.liquid_friction[2] = 0.3;
    }
    selkie_world *plain = make_world(&scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&scene, SELKIE_BACKEND_CUDA);
    double largest = 0.0, apart = 0.0;
    for (int n = 0; n < 15; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        for (int p = 0; p < 2; p++) {
            const double about[3] = {0.2, 0.1, 0.0};
            double a[2][3], b[2][3];
            assert_true(sk_sph_boundary_force(&plain->step, probes[p].on, about, a[0], a[1]));
            assert_true(sk_sph_boundary_force(&cuda->step, probes[p].on, about, b[0], b[1]));
            for (int d = 0; d < 6; d++) {
                largest = fmax(largest, fabs(a[d / 3][d % 3]));
                apart = fmax(apart, fabs(a[d / 3][d % 3] - b[d / 3][d % 3]));
            }
        }
    }
    print_message("forces of up to %g N, %g N apart\n", largest, apart);
    assert_true(largest > 100.0);
    assert_true(apart < bound * largest);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* The host has fused multiply-add. */
static void test_forces(void **state)
{
    (void)state;
    forces(0.0, 1e-4);
    forces(0.01, 1e-4);
    forces(0.2, 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iisph_2d),
        cmocka_unit_test(test_iisph_3d),
        cmocka_unit_test(test_accelerated),
        cmocka_unit_test(test_joined_sides),
        cmocka_unit_test(test_open_side),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_obstacle),
        cmocka_unit_test(test_explicit_viscosity),
        cmocka_unit_test(test_implicit_viscosity),
        cmocka_unit_test(test_forces),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_wall_friction),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

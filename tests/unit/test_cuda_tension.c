/* Surface tension on the GPU against the plain backend, on the grid and in SPH.
 *
 * The curvature takes the logarithms and exponentials of the device, which differ from the host's in the last bit. So
 * paths differ by rounding, which steps carry on. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"

/* A square drop of water, 1 cm wide, which becomes round; on the floor it also has a contact line. */
static void set_drop(selkie_scene *scene, selkie_liquid_def *liquid, int dimension, double height)
{
    selkie_scene_defaults(scene);
    scene->domain.dimension = dimension;
    scene->domain.cell_size = 1e-3;
    selkie_liquid_defaults(liquid);
    selkie_shape_defaults(&liquid->shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < dimension; d++) {
        scene->domain.size[d] = 0.02;
        liquid->shape.min[d] = d == 1 ? height : 0.005;
        liquid->shape.max[d] = liquid->shape.min[d] + 0.01;
    }
    scene->liquids = liquid;
    scene->liquid_count = 1;
    scene->gravity[1] = 0.0;
    scene->surface_tension = 0.073;
    scene->time.step = 1e-3;
    scene->time.fps = 100.0;
    scene->time.end = 100.0;
}

/* Steps of both backends: nearly the same paths at first, and the same energy at the end. */
static void compare(const selkie_scene *scene, int steps)
{
    selkie_world *plain = make_world(scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda);
        print_message("step %d: %g m apart, %g and %g J, %d and %d iterations\n", n + 1, apart,
                      plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                      plain->step.pressure.iterations, cuda->step.pressure.iterations);
        if (n < 2)
            assert_true(apart < 1e-4 * scene->domain.cell_size);
    }
    assert_true(plain->statistics.kinetic_energy > 0.0);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void check_grid(int dimension, selkie_transfer transfer, double height, double angle)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    set_drop(&scene, &liquid, dimension, height);
    scene.transfer = transfer;
    scene.contact_angle = angle;
    compare(&scene, 6);
}

static void test_drop_2d(void **state)
{
    (void)state;
    check_grid(2, SELKIE_TRANSFER_FLIP, 0.005, 90.0);
    check_grid(2, SELKIE_TRANSFER_APIC, 0.0, 60.0);
}

static void test_drop_3d(void **state)
{
    (void)state;
    check_grid(3, SELKIE_TRANSFER_APIC, 0.005, 90.0);
    check_grid(3, SELKIE_TRANSFER_FLIP, 0.0, 120.0);
}

/* Two liquids with other surface tensions beside each other. */
static void test_two_liquids(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_material_def materials[2];
    set_drop(&scene, &liquids[0], 2, 0.005);
    scene.surface_tension = 0.0; /* the materials have their own */
    for (int m = 0; m < 2; m++) {
        selkie_material_defaults(&materials[m]);
        materials[m].name = m ? "oil" : "water";
        materials[m].density = m ? 900.0 : 1000.0;
        materials[m].surface_tension = m ? 0.03 : 0.073;
    }
    liquids[1] = liquids[0];
    liquids[0].shape.max[0] = liquids[1].shape.min[0] = 0.01;
    liquids[0].material = "water", liquids[1].material = "oil";
    scene.liquids = liquids;
    scene.liquid_count = 2;
    scene.materials = materials;
    scene.material_count = 2;
    compare(&scene, 4);
}

static void check_sph(int dimension, double height)
{
    if (!device_is_fast(dimension))
        skip();
    selkie_scene scene;
    selkie_liquid_def liquid;
    set_drop(&scene, &liquid, dimension, height);
    selkie_scene_set_method(&scene, SELKIE_METHOD_SPH);
    scene.sph.solver = SELKIE_SPH_IISPH;
    compare(&scene, 6);
}

static void test_sph_2d(void **state)
{
    (void)state;
    check_sph(2, 0.005);
    check_sph(2, 0.0);
}

static void test_sph_3d(void **state)
{
    (void)state;
    check_sph(3, 0.005);
    check_sph(3, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop_2d), cmocka_unit_test(test_drop_3d), cmocka_unit_test(test_two_liquids),
        cmocka_unit_test(test_sph_2d),  cmocka_unit_test(test_sph_3d),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

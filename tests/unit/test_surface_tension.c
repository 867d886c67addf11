/* Surface tension: its kernels on exact distances, bits over threads and checkpoints, materials, refused scenes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>

#define SELKIE_DIM 3
#include "methods/surface_tension/surface_tension_kernels.h"

/* The curvature of a sphere of 8 cells from its exact distance, through cells off the surface. A quadratic fit
 * leaves the fourth derivatives, (1/8)^2 of the curvature. */
static void curvature_of_a_sphere(void **state)
{
    (void)state;
    for (int n = 0; n < 20; n++) {
        const double a = 0.3 * n, b = 0.7 * n, r = 8.0 + 0.8 * sin(1.7 * n);
        const double at[3] = {r * cos(a) * cos(b), r * sin(a) * cos(b), r * sin(b)};
        float values[27];
        for (int i = 0; i < 27; i++) {
            const double x = at[0] + i % 3 - 1, y = at[1] + i / 3 % 3 - 1, z = at[2] + i / 9 - 1;
            values[i] = (float)(8.0 - sqrt(x * x + y * y + z * z));
        }
        sk_tension_fit fit;
        sk_tension_fit_quadratic(values, &fit);
        assert_float_equal(sk_tension_curvature(&fit, values[13]), 0.25f, 0.25f * 0.0157f);
    }
}

/* The depth is the inverse of the normal distribution, to 0.5 %. */
static void depth_of_a_fill(void **state)
{
    (void)state;
    const double width = sqrt(SK_TENSION_VARIANCE);
    for (int n = -20; n <= 20; n++) {
        const double depth = 0.1 * n * width, fill = 0.5 * erfc(-depth / (width * sqrt(2.0)));
        assert_float_equal(sk_tension_depth((float)fill), (float)depth,
                           0.005f * (float)width + 0.005f * (float)fabs(depth));
    }
}

static void blob(selkie_scene *scene, selkie_liquid_def *liquid, int dimension)
{
    selkie_scene_defaults(scene);
    scene->domain.dimension = dimension;
    for (int d = 0; d < dimension; d++)
        scene->domain.size[d] = 0.02;
    scene->domain.cell_size = 1e-3;
    scene->surface_tension = 0.073;
    scene->contact_angle = 70.0;
    selkie_liquid_defaults(liquid);
    liquid->shape.kind = SELKIE_SHAPE_BOX;
    const double low[3] = {-1, -1, 0.004}, high[3] = {0.01, 0.009, 0.013};
    memcpy(liquid->shape.min, low, sizeof low);
    memcpy(liquid->shape.max, high, sizeof high);
    scene->liquids = liquid;
    scene->liquid_count = 1;
}

static void unilateral(selkie_scene *scene)
{
    scene->incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    scene->volume = SELKIE_VOLUME_NONE;
}

static void steps(selkie_world *world, int count)
{
    selkie_error error = {0};
    for (int n = 0; n < count; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

static selkie_world *new_world(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static void same_particles(const selkie_world *a, const selkie_world *b)
{
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    for (int n = 0; n < selkie_world_attribute_count(a); n++) {
        selkie_attribute_view x, y;
        assert_int_equal(selkie_world_attribute(a, n, &x), SELKIE_OK);
        assert_int_equal(selkie_world_attribute(b, n, &y), SELKIE_OK);
        for (int64_t p = 0; p < selkie_world_particle_count(a); p++)
            assert_memory_equal((char *)x.data + (size_t)p * x.stride, (char *)y.data + (size_t)p * y.stride,
                                (size_t)x.components * 4);
    }
}

/* A box of water on a floor pulls itself together: on 1 and 3 threads, and over a checkpoint. */
static void same_bits(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        const int dimension = 2 + n % 2;
        selkie_scene scene;
        selkie_liquid_def liquid;
        selkie_error error = {0};
        char path[] = "/tmp/selkie-test-tension-XXXXXX";
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        blob(&scene, &liquid, dimension);
        if (n >= 2)
            unilateral(&scene);
        selkie_world *one = new_world(&scene, 1), *three = new_world(&scene, 3), *resumed = new_world(&scene, 2);
        steps(one, 8);
        steps(three, 4);
        assert_int_equal(selkie_world_save(three, path, &error), SELKIE_OK);
        assert_int_equal(selkie_world_load(resumed, path, &error), SELKIE_OK);
        steps(three, 4);
        steps(resumed, 4);
        same_particles(one, three);
        same_particles(one, resumed);
        assert_true(selkie_world_statistics(one)->max_speed > 0.01);
        selkie_world_destroy(one);
        selkie_world_destroy(three);
        selkie_world_destroy(resumed);
        unlink(path);
    }
}

/* A table of one material gives the bits of the scene's own value; a material without tension gives others. */
static void materials_of(int one_sided)
{
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_material_def table[2];
    blob(&scene, &liquid, 2);
    if (one_sided)
        unilateral(&scene);
    selkie_world *whole = new_world(&scene, 2);
    selkie_material_defaults(&table[0]);
    table[0].name = "water";
    table[0].surface_tension = 0.073;
    scene.surface_tension = 0.0;
    scene.materials = table;
    scene.material_count = 1;
    liquid.material = "water";
    selkie_world *own = new_world(&scene, 2);
    table[1] = table[0];
    table[1].name = "slack";
    table[1].surface_tension = 0.0;
    scene.material_count = 2;
    liquid.material = "slack";
    selkie_world *slack = new_world(&scene, 2);
    steps(whole, 6);
    steps(own, 6);
    steps(slack, 6);
    same_particles(whole, own);
    assert_true(selkie_world_statistics(own)->max_speed > 1.2 * selkie_world_statistics(slack)->max_speed);
    selkie_world_destroy(whole);
    selkie_world_destroy(own);
    selkie_world_destroy(slack);
}

static void materials(void **state)
{
    (void)state;
    materials_of(0);
    materials_of(1);
}

/* Largest speed (m/s) in a drop at rest around a place along x, a few steps after the start, in a periodic domain. */
static double speed_of_drop(double x)
{
    selkie_scene scene;
    selkie_liquid_def liquid;
    blob(&scene, &liquid, 2);
    scene.domain.size[0] = scene.domain.size[1] = 0.032;
    scene.domain.periodic = SELKIE_AXES_X;
    scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    memset(scene.gravity, 0, sizeof scene.gravity);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_SPHERE);
    liquid.shape.radius = 0.008;
    liquid.shape.center[0] = x;
    liquid.shape.center[1] = 0.016;
    selkie_liquid_def both[2] = {liquid, liquid}; /* the part beyond the seam comes from an image */
    both[1].shape.center[0] += 0.032;
    scene.liquids = both;
    scene.liquid_count = x < liquid.shape.radius ? 2 : 1;
    selkie_world *world = new_world(&scene, 2);
    steps(world, 10);
    selkie_attribute_view v;
    double largest = 0.0;
    assert_int_equal(selkie_world_find_attribute(world, "velocity", &v, NULL), SELKIE_OK);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *u = (float *)(void *)((char *)v.data + (size_t)p * v.stride);
        largest = fmax(largest, hypot(u[0], u[1]));
    }
    selkie_world_destroy(world);
    return largest;
}

/* A drop across a joined side is as calm as one in the middle of the domain. */
static void drop_across_a_joined_side(void **state)
{
    (void)state;
    const double middle = speed_of_drop(0.016), across = speed_of_drop(0.004);
    print_message("largest speed %g m/s in the middle, %g across the seam\n", middle, across);
    assert_true(across < 1.2 * middle && middle < 1.2 * across);
}

static void refused(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_error error = {0};
    blob(&scene, &liquid, 2);
    scene.discretization = SELKIE_DISCRETIZATION_SPH;
    scene.volume = SELKIE_VOLUME_NONE;
    scene.contact_angle = 60.0;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "contact_angle: 60 degrees: with discretization \"sph\" it must be 90"));
    scene.contact_angle = 90.0;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_OK);
    scene.sph.surface_tension = SELKIE_TENSION_AKINCI;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "sph.surface_tension: stands beside a surface tension of 0.073 N/m"));
    blob(&scene, &liquid, 2);
    scene.contact_angle = 190.0;
    assert_int_equal(selkie_scene_check(&scene, &error), SELKIE_ERROR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(curvature_of_a_sphere),
                                       cmocka_unit_test(depth_of_a_fill),
                                       cmocka_unit_test(same_bits),
                                       cmocka_unit_test(materials),
                                       cmocka_unit_test(drop_across_a_joined_side),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

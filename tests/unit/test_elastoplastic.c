/* Elastoplastic points: laws of materials, plastic flow, threads, checkpoints, backends, bad scenes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SELKIE_DIM 3 /* of the laws below */
#include "methods/elastoplastic/elastic_kernels.h"
#include "methods/elastoplastic/fitted_kernels.h"

#include <selkie/selkie.h>
#include "base/random.h"
#include "defs/materials.h"
#include "scratch_folder.h"

/* --- Laws --- */

static sk_elastic_material rubber(int law)
{
    return (sk_elastic_material){.law = law,
                                 .keeps_volume = 1,
                                 .lambda = 1.2f,
                                 .mu = 0.8f,
                                 .inverse_density = 1.0f,
                                 .wave_speed = 1.0f,
                                 .relative_mass = 1.0f};
}

/* A deformation F - 1 of some tenths. */
static void random_deformation(uint64_t n, float deformation[9])
{
    for (int k = 0; k < 9; k++)
        deformation[k] = 0.4f * ((float)sk_random_float(7, n, (uint64_t)k) - 0.5f);
}

static sk_elastic_result law_of(const sk_elastic_material *material, const float deformation[9])
{
    float copy[9];
    sk_plastic_state state = {0.0f, 0.0f};
    sk_elastic_result result;
    memcpy(copy, deformation, sizeof copy);
    sk_elastic_point_3d(material, 0.0f, copy, &state, &result);
    return result;
}

/* Kirchhoff's stress is dE/dF F^T. Differences over 2 and 4 steps give the derivative to fourth order; single precision
 * leaves 1e-4 of the modulus. */
static void stress_is_the_derivative(void **state)
{
    (void)state;
    const float step = 0.02f;
    for (int law = SK_ELASTIC_HENCKY; law <= SK_ELASTIC_SQUARED; law++)
        for (uint64_t n = 0; n < 40; n++) {
            const sk_elastic_material material = rubber(law);
            float start[9], derivative[9];
            random_deformation(n, start);
            for (int k = 0; k < 9; k++) {
                float energy[4];
                static const float steps[4] = {-2, -1, 1, 2};
                for (int s = 0; s < 4; s++) {
                    float moved[9];
                    memcpy(moved, start, sizeof moved);
                    moved[k] += steps[s] * step;
                    energy[s] = law_of(&material, moved).energy;
                }
                derivative[k] = (8.0f * (energy[2] - energy[1]) - (energy[3] - energy[0])) / (12.0f * step);
            }
            const sk_elastic_result result = law_of(&material, start);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    float expected = derivative[3 * i + j];
                    for (int k = 0; k < 3; k++)
                        expected += derivative[3 * i + k] * start[3 * j + k];
                    if (!(fabsf(expected - result.stress[3 * i + j]) < 1e-3f))
                        fail_msg("law %d, case %d: %g, not %g", law, (int)n, (double)result.stress[3 * i + j],
                                 (double)expected);
                }
        }
}

/* No stress without deformation, also of a turned body. */
static void turning_is_free(void **state)
{
    (void)state;
    for (int law = SK_ELASTIC_HENCKY; law <= SK_ELASTIC_SQUARED; law++) {
        const sk_elastic_material material = rubber(law);
        const float c = 0.6f, s = 0.8f, turned[9] = {c - 1, -s, 0, s, c - 1, 0, 0, 0, 0};
        const sk_elastic_result result = law_of(&material, turned);
        for (int k = 0; k < 9; k++)
            assert_true(fabsf(result.stress[k]) < 1e-5f);
    }
}

/* --- Flow --- */

static float flow(const sk_elastic_material *material, float dt, float stretch[3], sk_plastic_state *state)
{
    return sk_plastic_flow_3d(material, dt, stretch, state);
}

static float equivalent(const sk_elastic_material *material, const float stretch[3])
{
    float mean = 0.0f, squares = 0.0f;
    for (int d = 0; d < 3; d++)
        mean += logf(stretch[d]) / 3.0f;
    for (int d = 0; d < 3; d++)
        squares += (logf(stretch[d]) - mean) * (logf(stretch[d]) - mean);
    return 2.0f * material->mu * sqrtf(1.5f * squares);
}

/* At once: stress ends on the yield surface, which hardens, and volume stays. */
static void flows_to_the_yield_surface(void **state)
{
    (void)state;
    sk_elastic_material clay = rubber(SK_ELASTIC_HENCKY);
    clay.plasticity = SK_PLASTIC_VON_MISES;
    clay.yield = 0.1f;
    clay.hardening = 0.05f;
    float stretch[3] = {1.5f, 1.1f, 0.7f};
    sk_plastic_state plastic = {0.0f, 0.0f};
    const float volume = stretch[0] * stretch[1] * stretch[2], work = flow(&clay, 0.0f, stretch, &plastic);
    assert_true(plastic.strain > 0.1f && work > 0.0f);
    assert_true(fabsf(equivalent(&clay, stretch) - clay.yield - clay.hardening * plastic.strain) < 1e-5f);
    assert_true(fabsf(stretch[0] * stretch[1] * stretch[2] - volume) < 1e-5f);

    /* Below the yield stress nothing flows. */
    const float before[3] = {stretch[0], stretch[1], stretch[2]};
    clay.yield = 1.0f;
    assert_true(flow(&clay, 0.0f, stretch, &plastic) == 0.0f);
    for (int d = 0; d < 3; d++)
        assert_true(fabsf(stretch[d] - before[d]) < 1e-6f);
}

/* In a time: one step flows as far as eight steps of an eighth. */
static void flow_does_not_depend_on_the_step(void **state)
{
    (void)state;
    sk_elastic_material dough = rubber(SK_ELASTIC_COROTATED);
    dough.plasticity = SK_PLASTIC_VON_MISES;
    dough.yield = 0.1f;
    dough.flow_time = 0.3f;
    float once[3] = {1.5f, 1.1f, 0.7f}, often[3] = {1.5f, 1.1f, 0.7f};
    sk_plastic_state a = {0.0f, 0.0f}, b = {0.0f, 0.0f};
    const float work = flow(&dough, 0.2f, once, &a);
    float works = 0.0f;
    for (int n = 0; n < 8; n++)
        works += flow(&dough, 0.025f, often, &b);
    for (int d = 0; d < 3; d++)
        assert_true(fabsf(once[d] - often[d]) < 1e-5f);
    assert_true(fabsf(a.strain - b.strain) < 1e-5f && fabsf(work - works) < 0.02f * work);

    /* Cornstarch: the larger the stress, the slower the flow. */
    dough.thickening = 0.1f;
    float slow[3] = {1.5f, 1.1f, 0.7f};
    sk_plastic_state c = {0.0f, 0.0f};
    flow(&dough, 0.2f, slow, &c);
    assert_true(c.strain < 0.5f * a.strain);
}

/* Grains: shear stress at most on the cone, nothing under tension, and a gap must close before pressure returns. */
static void grains_slide_and_part(void **state)
{
    (void)state;
    sk_elastic_material sand = rubber(SK_ELASTIC_HENCKY);
    sand.plasticity = SK_PLASTIC_DRUCKER_PRAGER;
    sand.cone = 0.1f;
    float stretch[3] = {1.02f, 0.95f, 0.9f}, stress[3];
    sk_plastic_state plastic = {0.0f, 0.0f};
    assert_true(flow(&sand, 0.0f, stretch, &plastic) > 0.0f);
    sk_elastic_stress_3d(&sand, stretch, stress);
    const float sum = stress[0] + stress[1] + stress[2], shear = sqrtf(2.0f / 3.0f) * sk_equivalent_stress_3d(stress);
    assert_true(sum < 0.0f && fabsf(shear + sand.cone * sum) < 1e-5f);

    float apart[3] = {1.1f, 1.1f, 1.05f};
    plastic = (sk_plastic_state){0.0f, 0.0f};
    flow(&sand, 0.0f, apart, &plastic);
    for (int d = 0; d < 3; d++)
        assert_true(fabsf(apart[d] - 1.0f) < 1e-6f);
    assert_true(fabsf(plastic.volume - logf(1.1f * 1.1f * 1.05f)) < 1e-5f);
    float closing[3] = {0.95f, 0.95f, 0.95f};
    flow(&sand, 0.0f, closing, &plastic);
    assert_true(fabsf(closing[0] - 1.0f) < 1e-6f && plastic.volume > 0.0f);
}

static void tears(void **state)
{
    (void)state;
    sk_elastic_material paper = rubber(SK_ELASTIC_COROTATED);
    paper.tear = logf(1.2f);
    float stretch[3] = {1.1f, 1.0f, 1.0f};
    sk_plastic_state plastic = {0.0f, 0.0f};
    flow(&paper, 0.0f, stretch, &plastic);
    assert_true(plastic.volume == 0.0f && fabsf(stretch[0] - 1.1f) < 1e-6f);
    stretch[0] = 1.25f;
    flow(&paper, 0.0f, stretch, &plastic);
    assert_true(plastic.volume == 1.0f && stretch[0] == 1.0f);
}

/* Fits of points that lie nearly in a plane are not taken for deformations, and no step turns a point inside out. */
static void fits_are_likely(void **state)
{
    (void)state;
    const float small[9] = {0.01f, -0.1f, 0, 0.1f, 0, 0, 0, 0, 0.05f}, large[9] = {0, 0, 3.0f, 0, 0, 0, 0, 0, 0};
    const float nothing[9] = {NAN, 0, 0, 0, 0, 0, 0, 0, 0}, squeeze[9] = {-0.15f, 0, 0, 0, 0, 0, 0, 0, 0};
    float strain[9] = {0}, deformation[9] = {0};
    assert_true(sk_fitted_is_likely_3d(small));
    assert_false(sk_fitted_is_likely_3d(large));
    assert_false(sk_fitted_is_likely_3d(nothing));
    for (int n = 0; n < 100; n++) {
        sk_fitted_accumulate_3d(squeeze, strain);
        sk_fitted_compose_3d(squeeze, deformation);
        assert_true(strain[0] > -1.0f && deformation[0] > -1.0f);
    }
}

/* --- Worlds --- */

typedef struct solid_case {
    selkie_scene scene;
    selkie_material_def materials[3];
    selkie_liquid_def liquids[3];
    selkie_obstacle_def obstacle;
} solid_case;

/* Three materials fall onto a ball. */
static void three_materials(solid_case *c, selkie_discretization form, int dimension)
{
    memset(c, 0, sizeof *c);
    selkie_scene_defaults(&c->scene);
    c->scene.discretization = form;
    c->scene.domain.dimension = dimension;
    c->scene.domain.cell_size = 0.05;
    const double size[3] = {1.5, 1.0, dimension == 3 ? 0.6 : 0.05};
    memcpy(c->scene.domain.size, size, sizeof size);
    c->scene.domain.liquid_friction[2] = 0.3;
    c->scene.materials = c->materials;
    c->scene.liquids = c->liquids;
    c->scene.obstacles = &c->obstacle;
    c->scene.material_count = c->scene.liquid_count = 3;
    c->scene.obstacle_count = 1;
    static const char *const names[3] = {"rubber", "clay", "sand"};
    for (int m = 0; m < 3; m++) {
        selkie_material_defaults(&c->materials[m]);
        selkie_liquid_defaults(&c->liquids[m]);
        c->materials[m].name = c->liquids[m].material = names[m];
        c->materials[m].kind = SELKIE_MATERIAL_ELASTOPLASTIC;
        c->materials[m].density = 1000.0 + 300.0 * m;
        c->materials[m].elastoplastic.plasticity = (selkie_plasticity)m;
        selkie_shape_defaults(&c->liquids[m].shape, SELKIE_SHAPE_BOX);
        const double low[3] = {0.1 + 0.45 * m, 0.3, 0.1}, high[3] = {0.4 + 0.45 * m, 0.6, 0.4};
        memcpy(c->liquids[m].shape.min, low, sizeof low);
        memcpy(c->liquids[m].shape.max, high, sizeof high);
        c->liquids[m].velocity[1] = -2.0;
    }
    if (form == SELKIE_DISCRETIZATION_GRID) /* beside a liquid, into which the clay falls */
        c->materials[0].kind = SELKIE_MATERIAL_LIQUID;
    if (form == SELKIE_DISCRETIZATION_GRID)
        c->liquids[0].velocity[0] = 2.0;
    if (form == SELKIE_DISCRETIZATION_REST_SHAPE) /* grains have no rest shape */
        c->materials[2].elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
    c->materials[2].elastoplastic.yield = 500.0;
    c->materials[1].elastoplastic.yield = 1000.0;
    c->materials[1].elastoplastic.flow_time = 0.01;
    selkie_obstacle_defaults(&c->obstacle);
    selkie_shape_defaults(&c->obstacle.shape, SELKIE_SHAPE_SPHERE);
    const double center[3] = {0.75, 0.1, 0.3};
    memcpy(c->obstacle.shape.center, center, sizeof center);
    c->obstacle.shape.radius = 0.15;
}

static selkie_world *make(const solid_case *c, int threads, selkie_backend backend)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    options.with_backend = 1;
    options.backend = backend;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(&c->scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

static void step(selkie_world *world, int count)
{
    selkie_error error = {0};
    for (int n = 0; n < count; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

/* Largest difference of an attribute of two worlds with particles in the same order; 0 = the same bits. */
static double apart(const selkie_world *a, const selkie_world *b, const char *name)
{
    selkie_attribute_view views[2];
    selkie_error error = {0};
    assert_int_equal(selkie_world_find_attribute(a, name, &views[0], &error), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(b, name, &views[1], &error), SELKIE_OK);
    assert_int_equal(selkie_world_particle_count(a), selkie_world_particle_count(b));
    double most = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(a); p++)
        for (int k = 0; k < views[0].components; k++) {
            const float *x = (const float *)((const char *)views[0].data + (size_t)p * views[0].stride) + k;
            const float *y = (const float *)((const char *)views[1].data + (size_t)p * views[1].stride) + k;
            if (memcmp(x, y, sizeof *x) != 0)
                most = fmax(most, fabs((double)*x - *y) + 1e-300);
        }
    return most;
}

static const selkie_discretization forms[] = {SELKIE_DISCRETIZATION_MPM, SELKIE_DISCRETIZATION_REST_SHAPE,
                                              SELKIE_DISCRETIZATION_GRID, SELKIE_DISCRETIZATION_PRINTED,
                                              SELKIE_DISCRETIZATION_ADDITIVE};
enum { FORMS = sizeof forms / sizeof *forms, ATTRIBUTES = 5 };

/* Attributes that determine the next step. */
static const char *attribute(selkie_discretization form, int n)
{
    static const char *const names[ATTRIBUTES] = {"position", "velocity", "plastic_strain", "plastic_volume"};
    if (n < ATTRIBUTES - 1)
        return names[n];
    return form == SELKIE_DISCRETIZATION_REST_SHAPE ? "plastic_inverse" : "deformation";
}

static void same_bits_of(selkie_discretization form, int dimension)
{
    solid_case c;
    three_materials(&c, form, dimension);
    selkie_world *one = make(&c, 1, SELKIE_BACKEND_TUNED), *three = make(&c, 3, SELKIE_BACKEND_TUNED);
    selkie_world *late = make(&c, 2, SELKIE_BACKEND_TUNED);
    selkie_error error = {0};
    step(one, 30);
    step(three, 60);

    /* Resume in the middle. */
    assert_int_equal(selkie_world_save(one, in_root("solid.selkie"), &error), SELKIE_OK);
    if (selkie_world_load(late, in_root("solid.selkie"), &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    step(one, 30);
    step(late, 30);
    for (int n = 0; n < ATTRIBUTES; n++) {
        assert_true(apart(one, three, attribute(form, n)) == 0.0);
        assert_true(apart(one, late, attribute(form, n)) == 0.0);
    }
    assert_true(selkie_world_statistics(one)->elastic_energy > 0.0);
    assert_true(selkie_world_statistics(one)->plastic_work > 0.0);
    assert_true(selkie_world_statistics(one)->plastic_work == selkie_world_statistics(late)->plastic_work);
    selkie_world_destroy(one);
    selkie_world_destroy(three);
    selkie_world_destroy(late);
}

static void same_bits(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++)
        for (int dimension = 2; dimension <= 3; dimension++)
            same_bits_of(forms[f], dimension);
}

/* Both forms add the same terms in another order: some epsilons of the largest values after a few steps. printed and
 * additive have one form. */
static void plain_agrees(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++)
        for (int dimension = 2; dimension <= 3; dimension++) {
            solid_case c;
            three_materials(&c, forms[f], dimension);
            selkie_world *tuned = make(&c, 2, SELKIE_BACKEND_TUNED), *plain = make(&c, 2, SELKIE_BACKEND_PLAIN);
            step(tuned, 10);
            step(plain, 10);
            assert_true(apart(tuned, plain, "position") < 1e-6);
            assert_true(apart(tuned, plain, "velocity") < 1e-4);
            assert_true(apart(tuned, plain, attribute(forms[f], ATTRIBUTES - 1)) < 1e-5);
            selkie_world_destroy(tuned);
            selkie_world_destroy(plain);
        }
}

static void refused(const solid_case *c, const char *expected)
{
    selkie_world *world = NULL;
    selkie_error error = {0};
    assert_int_equal(selkie_world_create(&c->scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    if (!strstr(error.message, expected))
        fail_msg("\"%s\" does not say \"%s\"", error.message, expected);
}

static void bad_scenes(void **state)
{
    (void)state;
    solid_case c;
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.materials[0].elastoplastic.poisson = 0.5;
    refused(&c, "materials[0].elastoplastic.poisson: 0.5 is out of range");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.materials[1].elastoplastic.young = -1e5;
    refused(&c, "materials[1].elastoplastic.young: -100000 is out of range: must be above 0 Pa");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.scene.liquid_count = c.scene.material_count = 1;
    c.liquids[0].shape.max[0] = c.liquids[0].shape.min[0] + 0.03;
    c.liquids[0].shape.max[1] = c.liquids[0].shape.min[1] + 0.03;
    refused(&c, "points are too few");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.materials[2].kind = SELKIE_MATERIAL_LIQUID;
    refused(&c, "materials[2].kind: must be \"elastoplastic\"");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.scene.discretization = SELKIE_DISCRETIZATION_SPH;
    refused(&c, "materials[0].kind: \"elastoplastic\" needs discretization \"mpm\"");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.scene.discretization = SELKIE_DISCRETIZATION_GRID;
    c.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    refused(&c, "incompressibility: must be \"bilateral\" beside a material of kind \"elastoplastic\"");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.scene.discretization = SELKIE_DISCRETIZATION_GRID;
    c.materials[1].melting_point = 300.0;
    refused(&c, "materials[1].melting_point: is of liquids");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.materials[1].elastoplastic.softens_from = 300.0;
    refused(&c, "materials[1].elastoplastic.softens_to: must be above softens_from, 300 K");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.materials[1].elastoplastic.softens_to = 300.0;
    refused(&c, "materials[1].elastoplastic.softens_from: is missing");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.scene.material_count = 0;
    for (int l = 0; l < 3; l++)
        c.liquids[l].material = "";
    refused(&c, "materials: is empty");
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    c.materials[1].elastoplastic.flow_time = 0.0;
    c.materials[1].elastoplastic.thickening = 10.0;
    refused(&c, "flow_time: must be above 0 s");

    /* Bonds belong to the points of the start. */
    three_materials(&c, SELKIE_DISCRETIZATION_REST_SHAPE, 2);
    c.materials[2].elastoplastic.plasticity = SELKIE_PLASTICITY_DRUCKER_PRAGER;
    refused(&c, "materials[2].elastoplastic.plasticity: \"drucker_prager\": grains have no rest shape");
    three_materials(&c, SELKIE_DISCRETIZATION_REST_SHAPE, 2);
    c.scene.domain.walls[3] = SELKIE_WALL_OPEN;
    refused(&c, "domain.walls: \"open\" is not possible");
    three_materials(&c, SELKIE_DISCRETIZATION_REST_SHAPE, 2);
    c.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
    refused(&c, "particles.arrangement: must be \"lattice\"");
    three_materials(&c, SELKIE_DISCRETIZATION_PRINTED, 2);
    c.scene.points.support = 1.0;
    refused(&c, "points.support: 1 is out of range");
}

/* --- Steps --- */

/* Each form chooses stable steps by itself, also below time.min_step: a step of that length would be ten times too
 * long. Stiff materials are noted. */
static void stiff_steps(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        solid_case c;
        char note[256];
        three_materials(&c, forms[f], 2);
        for (int m = 0; m < 3; m++) {
            c.materials[m].elastoplastic.young = 1e9;
            c.liquids[m].velocity_gradient[1] = 1.0;
        }
        assert_int_equal(sk_scene_note(&c.scene, 0, note, sizeof note), 1);
        assert_non_null(strstr(note, ".elastoplastic.young: pressure waves of"));
        c.scene.time.min_step = 2e-4;
        selkie_world *world = make(&c, 1, SELKIE_BACKEND_TUNED);
        step(world, 60);
        assert_true(selkie_world_statistics(world)->dt < 0.1 * c.scene.time.min_step);
        assert_true(selkie_world_statistics(world)->max_speed < 4.0);
        selkie_world_destroy(world);
    }
}

static void steps_without_effect_are_noted(void **state)
{
    (void)state;
    solid_case c;
    char note[256];
    three_materials(&c, SELKIE_DISCRETIZATION_MPM, 2);
    assert_int_equal(sk_scene_note(&c.scene, 0, note, sizeof note), 0);
    c.scene.time.reflection = 0.5;
    c.materials[1].elastoplastic.softens_from = 300.0;
    assert_int_equal(sk_scene_note(&c.scene, 0, note, sizeof note), 1);
    assert_non_null(strstr(note, "time.reflection: has no effect with elastoplastic points"));
    assert_int_equal(sk_scene_note(&c.scene, 1, note, sizeof note), 1);
    assert_non_null(strstr(note, "materials[1].elastoplastic.softens_from: has no effect"));
    assert_int_equal(sk_scene_note(&c.scene, 2, note, sizeof note), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stiff_steps),
        cmocka_unit_test(stress_is_the_derivative),
        cmocka_unit_test(turning_is_free),
        cmocka_unit_test(flows_to_the_yield_surface),
        cmocka_unit_test(flow_does_not_depend_on_the_step),
        cmocka_unit_test(grains_slide_and_part),
        cmocka_unit_test(tears),
        cmocka_unit_test(fits_are_likely),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(plain_agrees),
        cmocka_unit_test(bad_scenes),
        cmocka_unit_test(steps_without_effect_are_noted),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

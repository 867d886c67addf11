/* Bodies of particles on the GPU against the plain backend: without a solve the same bits, with one as many iterations,
 * and bodies that stay together. Skipped with a word where there is no device. */
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
#include "scratch_folder.h"
#include "methods/shape_matching/shape_matching.h"

enum { MOST_BODIES = 4 };

typedef struct soft_scene {
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_body_def bodies[MOST_BODIES];
    selkie_material_def materials[3]; /* water; of bodies 0 and 2; of bodies 1 and 3 */
} soft_scene;

static void add_body(soft_scene *s, selkie_shape shape)
{
    const int number = s->scene.body_count++;
    selkie_body_defaults(&s->bodies[number]);
    s->bodies[number].shape = shape;
    s->bodies[number].material = s->materials[1 + number % 2].name;
    s->scene.bodies = s->bodies;
}

/* Two columns of water that fall onto each other, and materials for two bodies: a light one and a heavy one. */
static void set_materials(soft_scene *s, int dimension, selkie_volume volume, selkie_transfer transfer)
{
    static const char *const names[3] = {"water", "cork", "clay"};
    memset(s, 0, sizeof *s);
    set_scene(&s->scene, s->liquids, dimension, volume);
    s->scene.transfer = transfer;
    for (int m = 0; m < 3; m++) {
        selkie_material_defaults(&s->materials[m]);
        s->materials[m].name = names[m];
        s->materials[m].kind = m ? SELKIE_MATERIAL_RIGID : SELKIE_MATERIAL_LIQUID;
    }
    s->materials[1].density = 400.0;
    s->materials[2].density = 2500.0;
    s->scene.materials = s->materials;
    s->scene.material_count = 3;
    for (int l = 0; l < s->scene.liquid_count; l++)
        s->liquids[l].material = "water";
}

/* Kinds of bodies: those of rigid material, the modes of soft material, and one with clusters that flows. */
enum { OF_RIGID, OF_LINEAR, OF_QUADRATIC, OF_CLUSTERS, KINDS };
static const char *const kind_names[KINDS] = {"rigid", "linear", "quadratic", "clusters"};

static void set_kind(soft_scene *s, int kind)
{
    for (int m = 1; m < 3 && kind != OF_RIGID; m++) {
        selkie_soft_def *soft = &s->materials[m].soft;
        s->materials[m].kind = SELKIE_MATERIAL_SOFT;
        soft->mode = kind == OF_QUADRATIC ? SELKIE_SOFT_QUADRATIC : SELKIE_SOFT_LINEAR;
        soft->stiffness = 60.0;
        soft->deformation = 0.6;
        soft->clusters = kind == OF_CLUSTERS ? 2 : 1;
        soft->yield = kind == OF_CLUSTERS ? 0.02 : 0.0;
        soft->creep = 10.0;
    }
}

static void set_bodies(soft_scene *s, int dimension, selkie_volume volume, selkie_transfer transfer, int kind)
{
    set_materials(s, dimension, volume, transfer);
    set_kind(s, kind);
    const double z = dimension == 3 ? 0.2 : 0.0;
    add_body(s, box_of((const double[3]){0.1, 0.5, 0.05}, (const double[3]){0.3, 0.68, 0.25}));
    add_body(s, ball_of(0.62, 0.35, 2.5 * z, 0.12));
}

/* Farthest distance (m) of two worlds' points. */
static double points_apart(const selkie_world *a, const selkie_world *b)
{
    const sk_soft *p = a->step.soft, *q = b->step.soft;
    double most = 0.0;
    assert_int_equal(p->point_count, q->point_count);
    assert_int_equal(p->left, q->left);
    for (uint32_t k = 0; k < p->point_count; k++)
        for (int d = 0; d < 3; d++)
            most = fmax(most, fabs(p->points[k].position[d] - q->points[k].position[d]));
    return most;
}

static void have_the_same_state(const selkie_world *a, const selkie_world *b)
{
    assert_int_equal(a->step.soft->state_bytes, b->step.soft->state_bytes);
    assert_memory_equal(a->step.soft->state, b->step.soft->state, a->step.soft->state_bytes);
}

/* Each body keeps its records: all owned particles lie at their points, with the material of the body. */
static void records_are_at_points(const selkie_world *world)
{
    const sk_soft *soft = world->step.soft;
    const sk_particles *particles = &world->step.particles;
    assert_int_equal(sk_world_fetch(world, 0, NULL), SELKIE_OK);
    const uint32_t *owner = sk_particles_find_attribute(particles, "body")->data;
    const uint32_t *material = sk_particles_find_attribute(particles, "material")->data;
    int64_t found = 0;
    for (int64_t p = 0; p < particles->count; p++) {
        const uint32_t k = particles->records[p].id - soft->first_id;
        assert_int_equal(owner[p] != 0, k < soft->point_count);
        if (!owner[p])
            continue;
        found++;
        assert_int_equal(material[p], soft->bodies[owner[p] - 1].material);
        for (int d = 0; d < world->step.dimension; d++)
            assert_true(particles->records[p].position[d] == (float)soft->points[k].position[d]);
    }
    assert_int_equal(found, soft->left);
}

/* Without pressure: particles rain on bodies that fall. All bits are those of the plain form. */
static void rain(int dimension, selkie_transfer transfer, int kind, int steps)
{
    soft_scene s;
    set_bodies(&s, dimension, SELKIE_VOLUME_NONE, transfer, kind);
    s.scene.pressure.start = 10.0;
    s.liquids[0].velocity[0] = 2.0;
    s.liquids[1].velocity[0] = -1.5;
    s.liquids[1].velocity[1] = 3.0; /* some fly into the ball */
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    assert_true(difference(plain, cuda) == 0.0);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const double apart = difference(plain, cuda), points = points_apart(plain, cuda);
        if (apart != 0.0 || points != 0.0)
            fail_msg("%s in %dD, step %d: particles %g m, points %g m apart", kind_names[kind], dimension, n + 1, apart,
                     points);
    }
    have_the_same_state(plain, cuda);
    records_are_at_points(cuda);
    selkie_body_state body;
    assert_int_equal(selkie_world_body(cuda, 0, &body), SELKIE_OK);
    assert_true(fabs(body.position[1] - 0.59) > 1e-3); /* it has moved */
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_rain_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    for (int kind = 0; kind < KINDS; kind++)
        rain(2, kind % 2 ? SELKIE_TRANSFER_APIC : SELKIE_TRANSFER_FLIP, kind, 12);
}

static void test_rain_3d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    rain(3, SELKIE_TRANSFER_FLIP, OF_RIGID, 4);
    rain(3, SELKIE_TRANSFER_FLIP, OF_QUADRATIC, 3);
}

/* Steps with pressure: as many iterations as the plain form, and the bodies stay together. */
static void splash(int dimension, selkie_volume volume, selkie_transfer transfer, int kind, int steps)
{
    soft_scene s;
    set_bodies(&s, dimension, volume, transfer, kind);
    s.scene.pressure.tolerance = 1e-6;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < steps; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const sk_step *p = &plain->step, *q = &cuda->step;
        const double apart = difference(plain, cuda), points = points_apart(plain, cuda);
        print_message("%s, step %d: particles %g m, points %g m apart; pressure %d and %d iterations; density %d and "
                      "%d\n",
                      kind_names[kind], n + 1, apart, points, p->pressure.iterations, q->pressure.iterations,
                      p->density_report.iterations, q->density_report.iterations);
        assert_true(abs(p->pressure.iterations - q->pressure.iterations) <= 1);
        assert_true(abs(p->density_report.iterations - q->density_report.iterations) <= 1);
        assert_true(points < 1e-3 * s.scene.domain.cell_size);
        if (n == 0) /* later steps sort particles apart */
            assert_true(apart < 1e-3 * s.scene.domain.cell_size);
    }
    records_are_at_points(cuda);
    assert_float_equal(plain->statistics.kinetic_energy, cuda->statistics.kinetic_energy,
                       0.01 * plain->statistics.kinetic_energy);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

static void test_splash_2d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash(2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP, OF_RIGID, 10);
    splash(2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_APIC, OF_QUADRATIC, 10);
    splash(2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_PIC, OF_CLUSTERS, 6);
}

static void test_splash_3d(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    splash(3, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP, OF_LINEAR, 3);
}

/* Bodies alone, of which one hits the other and then the floor: all bits are those of the plain form. */
static void test_dry(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    for (int kind = OF_LINEAR; kind < KINDS; kind++) {
        soft_scene s;
        set_materials(&s, 2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP);
        set_kind(&s, kind);
        s.scene.liquid_count = 0;
        add_body(&s, box_of((const double[3]){0.2, 0.05, 0.0}, (const double[3]){0.45, 0.25, 1.0}));
        add_body(&s, ball_of(0.4, 0.42, 0.0, 0.12));
        s.bodies[1].velocity[1] = -3.0;
        selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN),
                     *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
        for (int n = 0; n < 25; n++) {
            take_steps(plain, 1);
            take_steps(cuda, 1);
            if (points_apart(plain, cuda) != 0.0)
                fail_msg("%s, step %d: points %g m apart", kind_names[kind], n + 1, points_apart(plain, cuda));
        }
        assert_true(difference(plain, cuda) == 0.0);
        have_the_same_state(plain, cuda);
        records_are_at_points(cuda);
        assert_true(cuda->step.soft->states[0].velocity[1] != 0.0);
        selkie_world_destroy(plain);
        selkie_world_destroy(cuda);
    }
}

/* ANALYTIC: Archimedes. The bound is that of tests/physics/soft.c. */
static void test_draught(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    soft_scene s;
    set_materials(&s, 2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP);
    s.scene.liquid_count = 1;
    s.scene.domain.size[1] = s.liquids[0].shape.max[0] = 1.0;
    s.liquids[0].shape.max[1] = 0.5;
    s.materials[1].density = 500.0;
    const double bottom = 0.375, start = bottom + 0.125;
    add_body(&s, box_of((const double[3]){0.375, bottom, 0.0}, (const double[3]){0.625, bottom + 0.25, 1.0}));
    selkie_world *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    double sum = 0.0;
    for (int step = 0; step < 80; step++) {
        selkie_body_state body;
        take_steps(cuda, 1);
        assert_int_equal(selkie_world_body(cuda, 0, &body), SELKIE_OK);
        sum += step < 40 ? 0.0 : body.position[1] / 40.0;
    }
    print_message("draught off by %.3f cells\n", fabs(sum - start) * 24.0);
    assert_true(fabs(sum - start) * 24.0 < 0.2);
    selkie_world_destroy(cuda);
}

/* Momentum along y of the liquid and the points, kg m/s. */
static double momentum_of(const selkie_world *world)
{
    const sk_soft *soft = world->step.soft;
    assert_int_equal(sk_world_fetch(world, 0, NULL), SELKIE_OK);
    const uint32_t *owner = sk_particles_find_attribute(&world->step.particles, "body")->data;
    double sum = 0.0;
    for (int64_t p = 0; p < world->step.particles.count; p++)
        sum += owner[p] ? 0.0 : world->step.particle_mass * (double)world->step.particles.records[p].velocity[1];
    for (uint32_t k = 0; k < soft->point_count; k++)
        sum += soft->bodies[0].mass * soft->points[k].velocity[1];
    return sum;
}

/* A drop hits a body in free space. Without pressure contacts alone act, which conserve momentum to the rounding of the
 * particles' velocities (30 steps of 2^-24). */
static void test_momentum(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    soft_scene s;
    set_materials(&s, 2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP);
    s.scene.liquid_count = 1;
    s.scene.gravity[1] = 0.0;
    s.scene.time.step = 0.005;
    s.scene.pressure.start = 10.0;
    s.liquids[0].shape = ball_of(0.5, 0.75, 0.0, 0.1);
    s.liquids[0].velocity[1] = -2.0;
    add_body(&s, box_of((const double[3]){0.45, 0.4, 0.0}, (const double[3]){0.7, 0.5, 1.0}));
    selkie_world *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    const double start = momentum_of(cuda);
    take_steps(cuda, 30);
    selkie_body_state body;
    assert_int_equal(selkie_world_body(cuda, 0, &body), SELKIE_OK);
    const double lost = fabs(momentum_of(cuda) / start - 1.0);
    print_message("%.3g of the momentum lost, the body moves at %.3g m/s\n", lost, body.velocity[1]);
    assert_true(body.velocity[1] < -0.05);
    assert_true(lost < 30.0 / (1 << 24));
    selkie_world_destroy(cuda);
}

/* A stream on a plate that slides out through an open side, above a drain: bodies and liquid enter and leave. */
static void test_streams(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    soft_scene s;
    selkie_source_def source;
    selkie_drain_def drain;
    set_materials(&s, 2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_APIC);
    s.scene.pressure.start = 10.0;
    s.scene.liquid_count = 1;
    selkie_source_defaults(&source);
    source.shape = box_of((const double[3]){0.6, 0.8, 0.0}, (const double[3]){0.8, 0.9, 1.0});
    source.velocity[1] = -4.0;
    source.material = "water";
    s.scene.sources = &source;
    s.scene.source_count = 1;
    selkie_drain_defaults(&drain);
    drain.shape = box_of((const double[3]){0.0, 0.0, 0.0}, (const double[3]){0.2, 0.1, 1.0});
    s.scene.drains = &drain;
    s.scene.drain_count = 1;
    s.scene.domain.walls[1] = SELKIE_WALL_OPEN;
    add_body(&s, box_of((const double[3]){0.55, 0.6, 0.0}, (const double[3]){0.9, 0.64, 1.0}));
    s.bodies[0].velocity[0] = 3.0;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    const int64_t start = cuda->step.soft->left;
    for (int n = 0; n < 10; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        if (points_apart(plain, cuda) != 0.0)
            fail_msg("step %d: points %g m apart", n + 1, points_apart(plain, cuda));
    }
    print_message("%lld of %lld points are left\n", (long long)cuda->step.soft->left, (long long)start);
    assert_true(cuda->step.soft->left < start && cuda->step.soft->left > 0);
    assert_true(cuda->step.emitted > 0 && cuda->step.drained > start - cuda->step.soft->left);
    assert_int_equal(plain->step.emitted, cuda->step.emitted);
    assert_int_equal(plain->step.drained, cuda->step.drained);
    assert_true(difference(plain, cuda) == 0.0);
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Beside a rigid shape, an obstacle that moves and each other, in reflected steps: bodies stay together. */
static void test_crowd(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    soft_scene s;
    selkie_obstacle_def obstacle;
    set_materials(&s, 2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP);
    s.scene.pressure.tolerance = 1e-6;
    s.scene.liquid_count = 1;
    s.liquids[0].shape.max[0] = 1.0;
    selkie_obstacle_defaults(&obstacle);
    obstacle.shape = ball_of(0.85, 0.1, 0.0, 0.08);
    obstacle.velocity[0] = -0.5;
    s.scene.obstacles = &obstacle;
    s.scene.obstacle_count = 1;
    add_body(&s, box_of((const double[3]){0.1, 0.55, 0.0}, (const double[3]){0.3, 0.7, 1.0}));
    add_body(&s, ball_of(0.2, 0.82, 0.0, 0.1));
    add_body(&s, box_of((const double[3]){0.6, 0.5, 0.0}, (const double[3]){0.75, 0.7, 1.0}));
    s.bodies[2].material = NULL;
    s.bodies[2].density = 500.0;
    selkie_world *plain = make_world(&s.scene, SELKIE_BACKEND_PLAIN), *cuda = make_world(&s.scene, SELKIE_BACKEND_CUDA);
    for (int n = 0; n < 8; n++) {
        take_steps(plain, 1);
        take_steps(cuda, 1);
        const int iterations[2] = {plain->step.pressure.iterations, cuda->step.pressure.iterations};
        print_message("step %d: points %g m apart; %d and %d iterations\n", n + 1, points_apart(plain, cuda),
                      iterations[0], iterations[1]);
        assert_true(abs(iterations[0] - iterations[1]) <= 1);
        assert_true(points_apart(plain, cuda) < 1e-3 * s.scene.domain.cell_size);
    }
    selkie_world_destroy(plain);
    selkie_world_destroy(cuda);
}

/* Two runs, with 1 and 3 threads of the host, and one that goes on from a checkpoint: the same bits. The plain backend
 * goes on from it as well. */
static void test_same_bits(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    const char *file = in_root("checkpoint");
    soft_scene s;
    selkie_error error = {0};
    set_bodies(&s, 2, SELKIE_VOLUME_IDP, SELKIE_TRANSFER_FLIP, OF_CLUSTERS);
    s.scene.pressure.tolerance = 1e-6;
    selkie_world *world[4];
    for (int w = 0; w < 4; w++)
        world[w] = make_world_with(&s.scene, w < 3 ? SELKIE_BACKEND_CUDA : SELKIE_BACKEND_PLAIN, w == 0 ? 1 : 3);
    for (int w = 0; w < 2; w++) {
        take_steps(world[w], 5);
        if (w == 0)
            assert_int_equal(selkie_world_save(world[w], file, &error), SELKIE_OK);
        take_steps(world[w], 5);
    }
    for (int w = 2; w < 4; w++) {
        if (selkie_world_load(world[w], file, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        take_steps(world[w], 5);
    }
    for (int w = 1; w < 3; w++) {
        assert_true(difference(world[0], world[w]) == 0.0);
        have_the_same_state(world[0], world[w]);
    }
    assert_true(points_apart(world[0], world[3]) < 1e-3 * s.scene.domain.cell_size);

    /* And back: a checkpoint of the plain backend. */
    assert_int_equal(selkie_world_save(world[3], file, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(world[2], file, &error), SELKIE_OK);
    have_the_same_state(world[2], world[3]);
    take_steps(world[2], 2);
    take_steps(world[3], 2);
    assert_true(points_apart(world[2], world[3]) < 1e-3 * s.scene.domain.cell_size);
    for (int w = 0; w < 4; w++)
        selkie_world_destroy(world[w]);
}

/* What is not here yet is refused with one line that names it. */
static void test_refused(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    static const char *const words[] = {"viscous liquid", "unilateral", "surface tension", "heat", "periodic sides"};
    for (int n = 0; n < 5; n++) {
        soft_scene s;
        selkie_error error = {0};
        set_bodies(&s, 2, SELKIE_VOLUME_NONE, SELKIE_TRANSFER_FLIP, OF_RIGID);
        assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_OK);
        if (n == 0)
            s.materials[0].viscosity = 0.01;
        else if (n == 1)
            s.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        else if (n == 2)
            s.scene.surface_tension = 0.07;
        else if (n == 3)
            for (int m = 0; m < s.scene.material_count; m++)
                s.materials[m].heat_capacity = 4186.0;
        else
            s.scene.domain.periodic = SELKIE_AXES_X;
        assert_int_equal(sk_cuda_check(&s.scene, &error), SELKIE_ERROR_INPUT);
        if (!strstr(error.message, words[n]) || !strstr(error.message, "bodies of particles"))
            fail_msg("%s", error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rain_2d),   cmocka_unit_test(test_rain_3d), cmocka_unit_test(test_splash_2d),
        cmocka_unit_test(test_splash_3d), cmocka_unit_test(test_dry),     cmocka_unit_test(test_draught),
        cmocka_unit_test(test_momentum),  cmocka_unit_test(test_streams), cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_refused),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

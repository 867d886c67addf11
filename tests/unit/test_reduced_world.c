/* Worlds of reduced fluids: drawn modes, tracers, threads, checkpoints, bad scenes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reduced_scene.h"

#include "methods/reduced/domain.h"
#include "methods/reduced/reduced_kernels.h"

typedef struct fixture {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_force_def force;
    selkie_drawn_def drawn;
    selkie_stroke_def stroke;
    selkie_excite_def excite;
} fixture;

/* Tracers in a disc, a vortex and a drawn jet that is driven. */
static void make(fixture *f, int modes)
{
    selkie_scene *scene = &f->scene;
    reduced_defaults(scene, modes, 64);
    scene->time.fps = 30;
    scene->viscosity = 1e-5;
    selkie_liquid_defaults(&f->liquid);
    selkie_shape_defaults(&f->liquid.shape, SELKIE_SHAPE_SPHERE);
    f->liquid.shape.center[0] = f->liquid.shape.center[1] = 0.4;
    f->liquid.shape.radius = 0.3;
    f->liquid.velocity[0] = 0.3;
    selkie_force_defaults(&f->force, SELKIE_FORCE_VORTEX);
    f->force.point[0] = f->force.point[1] = 0.6;
    f->force.radius = 0.2;
    f->force.spin = 5.0;
    selkie_stroke_defaults(&f->stroke);
    f->stroke.from[0] = 0.25;
    f->stroke.to[0] = 0.75;
    f->stroke.from[1] = f->stroke.to[1] = 0.5;
    f->stroke.radius = 0.05;
    selkie_drawn_defaults(&f->drawn);
    f->drawn.name = "jet";
    f->drawn.stroke_count = 1;
    f->drawn.strokes = &f->stroke;
    selkie_excite_defaults(&f->excite);
    f->excite.mode = "jet";
    scene->liquids = &f->liquid;
    scene->forces = &f->force;
    scene->reduced.drawn = &f->drawn;
    scene->reduced.excite = &f->excite;
    scene->liquid_count = scene->force_count = 1;
    scene->reduced.drawn_count = scene->reduced.excite_count = 1;
}

static void same_bits(void **state)
{
    (void)state;
    fixture f;
    for (int n = 0; n < 2; n++) {
        make(&f, n ? 900 : 63);
        f.scene.reduced.drawn_count = f.scene.reduced.excite_count = !n;
        selkie_world *one = create_world(&f.scene, 1), *three = create_world(&f.scene, 3);
        run_world(one, 8);
        run_world(three, 8);
        assert_same_worlds(one, three);
        selkie_world_destroy(one);
        selkie_world_destroy(three);
    }
}

static void resumes_to_the_bit(void **state)
{
    (void)state;
    fixture f;
    make(&f, 63);
    char path[64];
    snprintf(path, sizeof path, "/tmp/selkie_reduced_%ld.state", (long)getpid());
    selkie_world *whole = create_world(&f.scene, 2), *second = create_world(&f.scene, 1);
    selkie_error error;
    run_world(whole, 5);
    assert_int_equal(selkie_world_save(whole, path, &error), SELKIE_OK);
    run_world(whole, 7);
    assert_int_equal(selkie_world_load(second, path, &error), SELKIE_OK);
    run_world(second, 7);
    assert_same_worlds(whole, second);
    selkie_world_destroy(whole);
    selkie_world_destroy(second);

    /* Another number of modes is refused. */
    make(&f, 64);
    second = create_world(&f.scene, 1);
    assert_int_not_equal(selkie_world_load(second, path, &error), SELKIE_OK);
    assert_non_null(strstr(error.message, "modes"));
    selkie_world_destroy(second);
    remove(path);
}

/* Energy of a drawing that is excited for one short step, J. */
static double excited_energy(int modes, int with_mode)
{
    fixture f;
    make(&f, modes);
    f.scene.domain.resolution = 128;
    f.scene.force_count = 0;
    f.liquid.velocity[0] = 0.0;
    f.scene.viscosity = 0.0;
    f.scene.time.step = 0.001;
    f.drawn.name = with_mode ? "jet" : "other";
    f.scene.reduced.cut = with_mode ? 1e-3 : 1.0; /* leaves out the drawn mode, but not what the others carry of it */
    f.excite.mode = f.drawn.name;
    selkie_world *world = create_world(&f.scene, 2);
    run_world(world, 1);
    const double energy = selkie_world_statistics(world)->kinetic_energy;
    selkie_world_destroy(world);
    return energy;
}

/* The jet of the source's Fig. 5.4: 63 eigenfunctions miss much of it, one drawn mode adds the rest. */
static void drawn_mode_holds_the_jet(void **state)
{
    (void)state;
    const double all = excited_energy(3000, 1), plain = excited_energy(63, 0), drawn = excited_energy(63, 1);
    print_message("energy with 63 modes %.3f, with one more %.5f of the whole\n", plain / all, drawn / all);
    assert_true(plain < 0.6 * all);
    assert_true(fabs(drawn / all - 1.0) < 0.01);
}

/* Viscosity of a flow that is one drawn mode alone, far finer than the rest, and a uniform force that pressure
 * carries. */
static void uniform_forces_do_nothing(void **state)
{
    (void)state;
    fixture f;
    make(&f, 100);
    selkie_force_defaults(&f.force, SELKIE_FORCE_UNIFORM);
    f.force.acceleration[0] = 3.0;
    f.liquid.velocity[0] = 0.0;
    f.scene.reduced.drawn_count = f.scene.reduced.excite_count = 0;
    selkie_world *world = create_world(&f.scene, 1);
    run_world(world, 5);
    assert_true(selkie_world_statistics(world)->kinetic_energy < 1e-20);
    selkie_world_destroy(world);

    /* Along a periodic axis it accelerates the mean flow: u = a t, and the tracers go along. */
    f.scene.reduced.periodic = SELKIE_PERIODIC_X;
    f.scene.reduced.mean_flow[0] = 0.5;
    world = create_world(&f.scene, 1);
    while (!selkie_world_finished(world))
        run_world(world, 1);
    const double u = 0.5 + 3.0;
    assert_true(fabs(selkie_world_statistics(world)->kinetic_energy / (0.5 * 1000.0 * u * u) - 1.0) < 1e-5);
    selkie_world_destroy(world);
}

/* A tracer of a steady cell flow stays on its streamline: the error falls by four with half the step. */
static void tracers_follow_streamlines(void **state)
{
    (void)state;
    enum { CELLS = 256 };
    const double pi = 3.14159265358979;
    float *values = calloc((CELLS + 1) * (CELLS + 1) * 2, sizeof *values);
    for (int i = 0; i <= CELLS; i++)
        for (int j = 0; j <= CELLS; j++) {
            const double x = pi * i / CELLS, y = pi * j / CELLS;
            values[2 * (i * (CELLS + 1) + j)] = (float)(sin(x) * cos(y));
            values[2 * (i * (CELLS + 1) + j) + 1] = (float)(-cos(x) * sin(y));
        }
    const sk_reduced_view view = {
        .values = values, .cells = {CELLS, CELLS}, .inverse = {CELLS, CELLS}, .size = {1.0f, 1.0f}};
    double drift[2];
    for (int n = 0; n < 2; n++) {
        float position[3] = {0.3f, 0.2f, 0.0f}, velocity[3];
        const double start = sin(pi * 0.3) * sin(pi * 0.2);
        for (int step = 0; step < 100 << n; step++)
            assert_true(sk_reduced_move_tracer(&view, (float)(0.05 / (1 << n)), position, velocity));
        drift[n] = fabs(sin(pi * position[0]) * sin(pi * position[1]) - start);
    }
    print_message("drift of the stream function %.3g, half the step %.3g\n", drift[0], drift[1]);
    assert_true(drift[0] < 0.01 && drift[1] < 0.4 * drift[0]);
    free(values);
}

/* Open sides let tracers out; the others stay inside. */
static void tracers_leave_through_open_sides(void **state)
{
    (void)state;
    fixture f;
    make(&f, 50);
    f.scene.domain.walls[0] = f.scene.domain.walls[1] = SELKIE_WALL_OPEN;
    f.scene.reduced.mean_flow[0] = 2.0;
    f.scene.reduced.drawn_count = f.scene.reduced.excite_count = 0;
    f.scene.force_count = 0;
    f.liquid.velocity[0] = 0.0;
    selkie_world *world = create_world(&f.scene, 2);
    const int64_t before = selkie_world_particle_count(world);
    while (!selkie_world_finished(world))
        run_world(world, 1);
    assert_true(before > 1000);
    assert_int_equal(selkie_world_particle_count(world), 0);
    assert_int_equal(selkie_world_statistics(world)->drained, before);
    selkie_world_destroy(world);
}

/* Beside an obstacle: energy and enstrophy stay, no tracer enters it. */
static void flows_around_obstacles(void **state)
{
    (void)state;
    if (!sk_domain_available())
        skip();
    fixture f;
    selkie_obstacle_def obstacle;
    make(&f, 40);
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
    obstacle.shape.center[0] = 0.65;
    obstacle.shape.center[1] = 0.5;
    obstacle.shape.radius = 0.15;
    f.scene.obstacles = &obstacle;
    f.scene.obstacle_count = 1;
    f.scene.reduced.drawn_count = f.scene.reduced.excite_count = f.scene.force_count = 0;
    f.scene.viscosity = 0.0;
    f.liquid.velocity[0] = 1.0;
    selkie_world *world = create_world(&f.scene, 2);
    const double energy = selkie_world_statistics(world)->kinetic_energy,
                 enstrophy = selkie_world_statistics(world)->enstrophy;
    assert_true(energy > 1.0);
    while (!selkie_world_finished(world))
        run_world(world, 1);
    assert_true(fabs(selkie_world_statistics(world)->kinetic_energy / energy - 1.0) < 1e-12);
    assert_true(fabs(selkie_world_statistics(world)->enstrophy / enstrophy - 1.0) < 1e-12);

    selkie_attribute_view x;
    assert_int_equal(selkie_world_find_attribute(world, "position", &x, NULL), SELKIE_OK);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *at = (const float *)(const void *)((const char *)x.data + (size_t)p * x.stride);
        assert_true(hypot(at[0] - 0.65, at[1] - 0.5) > 0.15 - 1e-5);
    }
    selkie_world_destroy(world);
}

/* Eigenvalues of an empty box against those of the five-point operator, 4 sin^2(i pi / 2n) + 4 sin^2(j pi / 2m), and
 * the solve with an island against its equations. */
static void eigenvectors_of_a_box(void **state)
{
    (void)state;
    enum { NX = 29, NY = 19, MODES = 12 };
    static unsigned char solid[NX * NY];
    static double psi[MODES * NX * NY], from[NX * NY], to[NX * NY];
    const int nodes[2] = {NX, NY};
    const double pi = 3.14159265358979323846;
    double lambda[MODES];
    sk_domain domain;
    selkie_error error;
    memset(solid, 0, sizeof solid);
    assert_int_equal(sk_domain_make(&domain, nodes, solid, NULL, &error), SELKIE_OK);
    if (sk_domain_available()) {
        assert_int_equal(sk_domain_modes(&domain, MODES, lambda, psi, &error), SELKIE_OK);
        for (int k = 0; k < MODES; k++) {
            double nearest = 1e9;
            for (int i = 1; i <= NX; i++)
                for (int j = 1; j <= NY; j++) {
                    const double a = sin(i * pi / (2 * (NX + 1))), b = sin(j * pi / (2 * (NY + 1)));
                    nearest = fmin(nearest, fabs(4 * a * a + 4 * b * b - lambda[k]));
                }
            assert_true(nearest < 1e-11 && (k == 0 || lambda[k] > lambda[k - 1] - 1e-12));
        }
    }
    sk_domain_free(&domain);

    /* An island: the circulation around it is 0, and open nodes get their vorticity. */
    for (int i = 10; i < 15; i++)
        for (int j = 8; j < 12; j++)
            solid[i * NY + j] = 1;
    assert_int_equal(sk_domain_make(&domain, nodes, solid, NULL, &error), SELKIE_OK);
    assert_int_equal(domain.island_count, 1);
    for (int n = 0; n < NX * NY; n++)
        from[n] = domain.kind[n] == 0 ? sin(0.1 * n) : 0.0;
    sk_domain_solve(&domain, from, to);
    double island = 0.0;
    for (int n = 0; n < NX * NY; n++)
        island += domain.edges[n] * to[n] / domain.links[0];
    for (int n = 0; n < NX * NY; n++) {
        const int row = n / NY, column = n % NY, next[4] = {n - NY, n + NY, n - 1, n + 1};
        const int there[4] = {row > 0, row<NX - 1, column> 0, column < NY - 1};
        double sum = 4.0 * to[n];
        for (int side = 0; side < 4; side++)
            if (there[side])
                sum -= domain.kind[next[side]] ? island : to[next[side]];
        assert_true(domain.kind[n] != 0 || fabs(sum - from[n]) < 1e-10);
    }
    sk_domain_free(&domain);
}

static void bad_scenes(void **state)
{
    (void)state;
    fixture f;
    selkie_source_def source;
    selkie_body_def body;
    selkie_obstacle_def obstacle;
    make(&f, 63);
    f.scene.domain.dimension = 3;
    f.scene.domain.size[2] = 1.0;
    expect_refusal(&f.scene, "domain.dimension");
    make(&f, 20000);
    expect_refusal(&f.scene, "reduced.modes");
    make(&f, 63);
    f.excite.mode = "stream";
    expect_refusal(&f.scene, "\"stream\" is not known");
    make(&f, 63);
    memcpy(f.stroke.to, f.stroke.from, sizeof f.stroke.to);
    expect_refusal(&f.scene, "strokes[0].to");
    make(&f, 63);
    f.drawn.snapshots = 4;
    expect_refusal(&f.scene, "snapshots");
    make(&f, 63);
    f.scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
    expect_refusal(&f.scene, "no_slip");
    make(&f, 63);
    f.scene.reduced.mean_flow[0] = 1.0;
    expect_refusal(&f.scene, "mean_flow");
    make(&f, 63);
    f.scene.reduced.integrator = SELKIE_REDUCED_EXPONENTIAL;
    expect_refusal(&f.scene, "reduced.integrator");
    make(&f, 63);
    selkie_obstacle_defaults(&obstacle);
    f.scene.obstacles = &obstacle;
    f.scene.obstacle_count = 1;
    expect_refusal(&f.scene, "drawn modes");
    f.scene.reduced.drawn_count = f.scene.reduced.excite_count = 0;
    obstacle.velocity[0] = 1.0;
    expect_refusal(&f.scene, "obstacles[0]");
    make(&f, 63);
    selkie_body_defaults(&body);
    f.scene.bodies = &body;
    f.scene.body_count = 1;
    expect_refusal(&f.scene, "bodies");
    make(&f, 63);
    f.liquid.flow.kind = SELKIE_FLOW_TAYLOR_GREEN;
    f.liquid.flow.speed = 1.0;
    expect_refusal(&f.scene, "liquids[0].flow");
    make(&f, 63);
    selkie_source_defaults(&source);
    f.scene.sources = &source;
    f.scene.source_count = 1;
    expect_refusal(&f.scene, "sources");
    make(&f, 63);
    f.scene.volume = SELKIE_VOLUME_IDP;
    expect_refusal(&f.scene, "volume");
    make(&f, 63);
    f.stroke.from[1] = f.stroke.to[1] = 5.0;
    expect_refusal(&f.scene, "reduced.drawn[0]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(drawn_mode_holds_the_jet),
        cmocka_unit_test(uniform_forces_do_nothing),
        cmocka_unit_test(tracers_follow_streamlines),
        cmocka_unit_test(tracers_leave_through_open_sides),
        cmocka_unit_test(flows_around_obstacles),
        cmocka_unit_test(eigenvectors_of_a_box),
        cmocka_unit_test(bad_scenes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

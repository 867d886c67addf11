/* Rigid bodies and unilateral pressure: draught, momentum, no liquid inside, same bits, both backends. */
#include "bodies.h"

/* ANALYTIC: Archimedes. The bound is that of the coupling by blurred fractions. Lighter bodies are left out: their
 * draught is a fraction of a cell, and the kernel feels the pressure of the cells below before the body touches the
 * liquid. */
static double error_of_draught(int dimension, double ratio, double step, selkie_transfer transfer)
{
    test_scene t;
    const double h = 1.0 / 24, bottom = 0.5 - 0.25 * ratio, side = dimension == 3 ? 0.5 : 1.0;
    double sum = 0.0;
    int count = 0;
    tank(&t, dimension, side, 0.875, side, h);
    t.scene.transfer = transfer;
    t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    t.scene.volume = SELKIE_VOLUME_NONE;
    t.scene.time.step = step;
    add_liquid(&t, box_shape(0, 0, 0, side, 0.5, side));
    add_body(&t,
             box_shape(side / 2 - 0.125, bottom, side / 2 - 0.125, side / 2 + 0.125, bottom + 0.25, side / 2 + 0.125),
             1000 * ratio);
    selkie_world *world = make_world_threads(&t.scene, 1);
    const double start = body_of(world, 0).position[1], end = dimension == 3 ? 0.4 : 1.2;
    run_until(world, end / 3);
    for (; selkie_world_time(world) < end; count++) {
        step_world(world);
        sum += body_of(world, 0).position[1];
    }
    selkie_world_destroy(world);
    return fabs(sum / count - start) / h;
}

static void draught(void **state)
{
    (void)state;
    static const double ratios[] = {0.1, 0.5, 0.9};
    static const selkie_transfer transfers[] = {SELKIE_TRANSFER_FLIP, SELKIE_TRANSFER_APIC, SELKIE_TRANSFER_PIC};
    for (int n = 0; n < 6; n++) {
        char what[64];
        const double step = n % 2 ? 0.02 : 0.005;
        snprintf(what, sizeof what, "floating box, unilateral, ratio %g, %g ms", ratios[n / 2], 1e3 * step);
        at_most(what, "error of the draught, cells", error_of_draught(2, ratios[n / 2], step, transfers[n / 2]), 0.2);
    }
    at_most("floating box, unilateral, 3D", "error of the draught, cells",
            error_of_draught(3, 0.5, 0.01, SELKIE_TRANSFER_FLIP), 0.2);
}

/* ANALYTIC: Archimedes, for a shape and a body of particles in one scene. */
static void both_kinds(void **state)
{
    (void)state;
    static selkie_material_def materials[2];
    for (int n = 0; n < 2; n++) {
        test_scene t;
        const double h = 1.0 / 32, step = n ? 0.02 : 0.005, side = 6 * h;
        double start[2], sum[2] = {0.0, 0.0};
        int count = 0;
        tank(&t, 2, 1.0, 1.0, 1, h);
        t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        t.scene.volume = SELKIE_VOLUME_NONE;
        t.scene.time.step = step;
        for (int m = 0; m < 2; m++)
            selkie_material_defaults(&materials[m]);
        materials[0].name = "water";
        materials[1].name = "rubber";
        materials[1].kind = SELKIE_MATERIAL_SOFT;
        materials[1].density = 500;
        t.scene.materials = materials;
        t.scene.material_count = 2;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.5, 1));
        t.liquids[0].material = "water";
        add_body(&t, box_shape(5 * h, 0.5 - 0.5 * side, 0, 5 * h + side, 0.5 + 0.5 * side, 1), 500);
        selkie_body_def usual;
        selkie_body_defaults(&usual);
        add_body(&t, box_shape(20 * h, 0.5 - 0.5 * side, 0, 20 * h + side, 0.5 + 0.5 * side, 1), usual.density);
        bodies[1].material = "rubber";
        selkie_world *world = make_world_threads(&t.scene, 1);
        for (int b = 0; b < 2; b++)
            start[b] = body_of(world, b).position[1];
        run_until(world, 0.4);
        for (; selkie_world_time(world) < 1.2; count++) {
            step_world(world);
            for (int b = 0; b < 2; b++)
                sum[b] += body_of(world, b).position[1];
        }
        at_most("shape beside a body of particles", "error of the shape's draught, cells",
                fabs(sum[0] / count - start[0]) / h, 0.2);
        at_most("shape beside a body of particles", "error of the particles' draught, cells",
                fabs(sum[1] / count - start[1]) / h, 0.2);
        selkie_world_destroy(world);
    }
}

/* What a drop loses, the body gains: the impulse of the pressure on both is one product. */
static void momentum(void **state)
{
    (void)state;
    test_scene t;
    drop_on_body(&t);
    t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    selkie_world *world = make_world_threads(&t.scene, 1);
    const double start = momentum_of(world, 0);
    run_until(world, 0.15);
    at_most("drop on a body, unilateral", "speed of the body, m/s, below 0 by", 0.05 + body_of(world, 0).velocity[1],
            0.0);
    at_most("drop on a body, unilateral", "momentum lost, part", fabs(momentum_of(world, 0) / start - 1.0), 1e-3);
    selkie_world_destroy(world);
}

/* A wave throws bodies about: no particle inside, the same bits with two threads, and the plain forms agree. */
static void in_waves(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        selkie_world *world[3];
        for (int w = 0; w < 3; w++) {
            test_scene t;
            selkie_world_options options;
            selkie_error error = {0};
            wave(&t, dimension);
            t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
            t.scene.volume = SELKIE_VOLUME_NONE;
            selkie_world_options_defaults(&options);
            options.threads = w == 1 ? 2 : 1;
            options.with_backend = 1;
            options.backend = w == 2 ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_TUNED;
            if (selkie_world_create(&t.scene, &options, &world[w], &error) != SELKIE_OK)
                fail_msg("%s", error.message);
            for (int n = 0; n < 10; n++)
                step_world(world[w]);
        }
        double apart = 0.0, deepest = 0.0;
        for (int b = 0; b < 2; b++) {
            const selkie_body_state one = body_of(world[0], b), two = body_of(world[1], b),
                                    plain = body_of(world[2], b);
            assert_memory_equal(one.position, two.position, sizeof one.position);
            assert_memory_equal(one.velocity, two.velocity, sizeof one.velocity);
            for (int d = 0; d < 3; d++)
                apart = fmax(apart, fabs(one.velocity[d] - plain.velocity[d]));
        }
        for (int n = 0; n < 40; n++)
            step_world(world[0]);
        const selkie_body_state ball = body_of(world[0], 1);
        const selkie_attribute_view position = attribute_of(world[0], "position");
        for (int64_t p = 0; p < selkie_world_particle_count(world[0]); p++) {
            double r2 = 0.0;
            for (int d = 0; d < dimension; d++)
                r2 += pow((double)particle_of(&position, p)[d] - ball.position[d], 2);
            deepest = fmax(deepest, 0.08 - sqrt(r2));
        }
        at_most("unilateral wave", "backends: velocities apart, m/s", apart, 1e-3);
        at_most("unilateral wave", "deepest particle in the ball, cells", deepest * 32, 1e-3);
        for (int w = 0; w < 3; w++)
            selkie_world_destroy(world[w]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draught),
        cmocka_unit_test(both_kinds),
        cmocka_unit_test(momentum),
        cmocka_unit_test(in_waves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

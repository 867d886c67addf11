/* Rigid bodies in the liquid of the grid methods: draught, added mass, bobbing, contacts, momentum, same bits. */
#include "bodies.h"
#include "selkie_config.h"

/* Water 0.5 m deep in 2D, with a box of 0.25 m that starts at the draught of Archimedes. */
static selkie_world *box_in_water(test_scene *t, double cell_size, double ratio, double step, selkie_transfer transfer)
{
    const double bottom = 0.5 - 0.25 * ratio;
    tank(t, 2, 1.0, 1.0, 1, cell_size);
    t->scene.transfer = transfer;
    t->scene.volume = SELKIE_VOLUME_IDP;
    t->scene.time.step = step;
    add_liquid(t, box_shape(0, 0, 0, 1, 0.5, 1));
    add_body(t, box_shape(0.375, bottom, 0, 0.625, bottom + 0.25, 1), 1000 * ratio);
    return make_world_threads(&t->scene, 1);
}

/* The mean height of a body that starts at its draught, from 0.5 to 1.5 s. Destroys the world. */
static void keeps_draught(selkie_world *world, const char *what, double h)
{
    const double start = body_of(world, 0).position[1];
    double sum = 0.0;
    int count = 0;
    run_until(world, 0.5);
    for (; selkie_world_time(world) < 1.5; count++) {
        step_world(world);
        sum += body_of(world, 0).position[1];
    }
    at_most(what, "error of the draught, cells", fabs(sum / count - start) / h, 0.2);
    selkie_world_destroy(world);
}

/* ANALYTIC: Archimedes. The bound is that of the coupling by blurred fractions. */
static void draught(void **state)
{
    (void)state;
    static const double ratios[] = {0.01, 0.1, 0.5, 0.9};
    static const selkie_transfer transfers[] = {SELKIE_TRANSFER_FLIP, SELKIE_TRANSFER_APIC, SELKIE_TRANSFER_PIC,
                                                SELKIE_TRANSFER_FLIP};
    for (int n = 0; n < 4; n++)
        for (int s = 0; s < 3; s++) {
            test_scene t;
            const double h = 1.0 / 24, step = (const double[]){0.001, 0.005, 0.02}[s];
            selkie_world *world = box_in_water(&t, h, ratios[n], step, transfers[n]);
            char what[64];
            snprintf(what, sizeof what, "floating box, ratio %g, %g ms", ratios[n], 1e3 * step);
            keeps_draught(world, what, h);
        }
}

/* The same with other cells. */
static void draught_of_cells(void **state)
{
    (void)state;
    static const double ratios[] = {0.01, 0.1, 0.5, 0.9}, cells[] = {32, 48};
    for (int n = 0; n < 8; n++) {
        test_scene t;
        const double h = 1.0 / cells[n / 4];
        selkie_world *world = box_in_water(&t, h, ratios[n % 4], 0.01, SELKIE_TRANSFER_FLIP);
        char what[64];
        snprintf(what, sizeof what, "floating box, ratio %g, %g cells", ratios[n % 4], cells[n / 4]);
        keeps_draught(world, what, h);
    }
}

/* Half a period of bobbing between two passages of the level at rest. */
static double half_period(double step)
{
    test_scene t;
    tank(&t, 2, 2.0, 1.0, 1, 1.0 / 32);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = step;
    add_liquid(&t, box_shape(0, 0, 0, 2, 0.5, 1));
    add_body(&t, box_shape(0.875, 0.40, 0, 1.125, 0.65, 1), 500);
    for (int d = 0; d < 3; d++)
        bodies[0].turn[d] = 0.0;
    selkie_world *world = make_world_threads(&t.scene, 1);
    const double rest = 0.5035;
    double passed[2], before = body_of(world, 0).position[1], time = 0.0;
    for (int n = 0; n < 2;) {
        step_world(world);
        const double now = body_of(world, 0).position[1];
        if ((now - rest) * (before - rest) < 0.0)
            passed[n++] = time + (selkie_world_time(world) - time) * (rest - before) / (now - before);
        before = now;
        time = selkie_world_time(world);
        assert_true(time < 2.0);
    }
    selkie_world_destroy(world);
    return passed[1] - passed[0];
}

static void bobbing(void **state)
{
    (void)state;
    const double fine = half_period(0.001);
    note("bobbing box", "half a period at 1 ms, s", fine);
    at_most("bobbing box", "period at 5 ms over that at 1 ms, error", fabs(half_period(0.005) / fine - 1.0), 0.03);
    at_most("bobbing box", "period at 20 ms over that at 1 ms, error", fabs(half_period(0.02) / fine - 1.0), 0.03);
}

/* A ring of triangles in the plane: a square with a round hole. */
static const char *write_ring(double radius)
{
    enum { SIDES = 128 };
    static const char file[] = "floating_ring.obj";
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    for (int n = 0; n < 2 * SIDES; n++) {
        const double angle = 2 * M_PI * (n % SIDES) / SIDES, c = cos(angle), s = sin(angle);
        const double r = n < SIDES ? radius : 0.7 / fmax(fabs(c), fabs(s));
        fprintf(out, "v %.9g %.9g 0\n", 0.5 + r * c, 0.5 + r * s);
    }
    for (int n = 0; n < SIDES; n++) {
        const int a = n + 1, b = (n + 1) % SIDES + 1;
        fprintf(out, "f %d %d %d\nf %d %d %d\n", a, a + SIDES, b + SIDES, a, b + SIDES, b);
    }
    fclose(out);
    return file;
}

/* ANALYTIC: added mass of a disc in a concentric cylinder full of water, (b^2 + a^2) / (b^2 - a^2) of what it
 * displaces. */
static void added_mass(void **state)
{
    (void)state;
    if (!SELKIE_HAVE_ASSIMP) /* the container is a mesh */
        skip();
    const double a = 0.15, b = 0.45, exact = (b * b + a * a) / (b * b - a * a), step = 0.002;
    static const double ratios[] = {0.1, 0.5, 2.0};
    for (int n = 0; n < 3; n++) {
        test_scene t;
        tank(&t, 2, 1.0, 1.0, 1, 1.0 / 48);
        t.scene.volume = SELKIE_VOLUME_NONE;
        t.scene.time.step = step;
        selkie_shape ring;
        selkie_shape_defaults(&ring, SELKIE_SHAPE_MESH);
        ring.file = write_ring(b);
        add_obstacle(&t, ring);
        add_liquid(&t, sphere_shape(0.5, 0.5, 0, b));
        add_body(&t, sphere_shape(0.5, 0.5, 0, a), 1000 * ratios[n]);
        selkie_world *world = make_world_threads(&t.scene, 1);
        enum { STEPS = 10 };
        for (int s = 0; s < STEPS; s++)
            step_world(world);
        const double acceleration = body_of(world, 0).velocity[1] / ((STEPS - 0.5) * step); /* leapfrog */
        const double found = (1.0 - ratios[n]) * GRAVITY / acceleration - ratios[n];
        char what[64];
        snprintf(what, sizeof what, "disc in a cylinder, ratio %g", ratios[n]);
        at_most(what, "added mass, error", fabs(found / exact - 1.0), 0.02);
        selkie_world_destroy(world);
    }
}

/* A cube with a round hole, as a closed surface of triangles. */
static const char *write_hollow(double radius)
{
    enum { AROUND = 64, UP = 32 };
    static const char file[] = "floating_hollow.obj";
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    for (int j = 0; j <= UP; j++)
        for (int i = 0; i < AROUND; i++) {
            const double up = M_PI * j / UP, angle = 2 * M_PI * i / AROUND;
            fprintf(out, "v %.9g %.9g %.9g\n", 0.5 + radius * sin(up) * cos(angle), 0.5 + radius * cos(up),
                    0.5 + radius * sin(up) * sin(angle));
        }
    for (int n = 0; n < 8; n++)
        fprintf(out, "v %g %g %g\n", n & 1 ? 1.2 : -0.2, n & 2 ? 1.2 : -0.2, n & 4 ? 1.2 : -0.2);
    for (int j = 0; j < UP; j++)
        for (int i = 0; i < AROUND; i++) {
            const int a = j * AROUND + i + 1, b = j * AROUND + (i + 1) % AROUND + 1, c = a + AROUND, d = b + AROUND;
            if (j < UP - 1)
                fprintf(out, "f %d %d %d\n", a, c, d);
            if (j > 0)
                fprintf(out, "f %d %d %d\n", a, d, b);
        }
    static const int quads[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    const int first = (UP + 1) * AROUND + 1;
    for (int q = 0; q < 6; q++)
        fprintf(out, "f %d %d %d\nf %d %d %d\n", first + quads[q][0], first + quads[q][1], first + quads[q][2],
                first + quads[q][0], first + quads[q][2], first + quads[q][3]);
    fclose(out);
    return file;
}

/* ANALYTIC: added mass of a ball in a concentric sphere full of water, (b^3 + 2 a^3) / (2 (b^3 - a^3)) of what it
 * displaces. */
static void added_mass_of_ball(void **state)
{
    (void)state;
    if (!SELKIE_HAVE_ASSIMP) /* the container is a mesh */
        skip();
    const double a = 0.2, b = 0.45, step = 0.002, ratio = 0.5;
    const double exact = (pow(b, 3) + 2.0 * pow(a, 3)) / (2.0 * (pow(b, 3) - pow(a, 3)));
    enum { STEPS = 3 };
    test_scene t;
    tank(&t, 3, 1.0, 1.0, 1.0, 1.0 / 48);
    t.scene.volume = SELKIE_VOLUME_NONE;
    t.scene.time.step = step;
    selkie_shape hollow;
    selkie_shape_defaults(&hollow, SELKIE_SHAPE_MESH);
    hollow.file = write_hollow(b);
    add_obstacle(&t, hollow);
    add_liquid(&t, sphere_shape(0.5, 0.5, 0.5, b));
    add_body(&t, sphere_shape(0.5, 0.5, 0.5, a), 1000 * ratio);
    selkie_world *world = make_world_threads(&t.scene, 2);
    for (int s = 0; s < STEPS; s++)
        step_world(world);
    const double acceleration = body_of(world, 0).velocity[1] / ((STEPS - 0.5) * step); /* leapfrog */
    const double found = (1.0 - ratio) * GRAVITY / acceleration - ratio;
    note("ball in a sphere", "added mass", found);
    at_most("ball in a sphere", "added mass, error", fabs(found / exact - 1.0), 0.02);
    selkie_world_destroy(world);
}

/* ANALYTIC: Archimedes in 3D, a box of ratio 0.5 and 24 cells. */
static void draught_3d(void **state)
{
    (void)state;
    const double h = 1.0 / 24, ratio = 0.5, bottom = 0.5 - 0.25 * ratio;
    test_scene t;
    tank(&t, 3, 1.0, 0.75, 0.5, h);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = 0.02;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.5, 0.5));
    add_body(&t, box_shape(0.375, bottom, 0.125, 0.625, bottom + 0.25, 0.375), 1000 * ratio);
    selkie_world *world = make_world_threads(&t.scene, 2);
    const double start = body_of(world, 0).position[1];
    double sum = 0.0;
    int count = 0;
    run_until(world, 0.3);
    for (; selkie_world_time(world) < 1.0; count++) {
        step_world(world);
        sum += body_of(world, 0).position[1];
    }
    at_most("floating box, 3D, ratio 0.5", "error of the draught, cells", fabs(sum / count - start) / h, 0.2);
    selkie_world_destroy(world);
}

/* Five boxes on each other in shallow water: contacts of the engine hold them. */
static void stack_stands(void **state)
{
    (void)state;
    test_scene t;
    tank(&t, 2, 1.0, 1.0, 1, 1.0 / 32);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = 0.01;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.2, 1));
    for (int n = 0; n < 5; n++)
        add_body(&t, box_shape(0.425, 0.15 * n, 0, 0.575, 0.15 * (n + 1), 1), 2000);
    selkie_world *world = make_world_threads(&t.scene, 1);
    run_until(world, 10.0);
    for (int n = 0; n < 5; n++) {
        const selkie_body_state body = body_of(world, n);
        at_most("stack of five boxes, 10 s", "moved, cells",
                hypot(body.position[0] - 0.5, body.position[1] - 0.15 * (n + 0.5)) * 32, 0.5);
    }
    selkie_world_destroy(world);
}

/* A drop hits a body in free space: what it loses, the body gains. Contacts conserve momentum to round-off. The
 * pressure acts on faces with the mass of full cells, and the drop's surface is less than full: the bound is for that.
 */
static void momentum(void **state)
{
    (void)state;
    test_scene t;
    drop_on_body(&t);
    selkie_world *world = make_world_threads(&t.scene, 1);
    const double start = momentum_of(world, 0);
    run_until(world, 0.15);
    const selkie_body_state body = body_of(world, 0);
    at_most("drop on a body", "speed of the body, m/s, below 0 by", 0.05 + body.velocity[1], 0.0);
    at_most("drop on a body", "momentum lost, part", fabs(momentum_of(world, 0) / start - 1.0), 0.06);
    selkie_world_destroy(world);
}

/* Without pressure contacts alone act. They conserve momentum to the rounding of the particles' velocities, of 30 or
 * 150 steps of 2^-24, also at faces that the body closes although it leaves 5 % of them open. */
static void momentum_of_contacts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        selkie_transfer transfer;
        double step;
        int dimension;
    } cases[] = {{"FLIP, 5 ms", SELKIE_TRANSFER_FLIP, 0.005, 2}, {"FLIP, 1 ms", SELKIE_TRANSFER_FLIP, 0.001, 2},
                 {"APIC, 5 ms", SELKIE_TRANSFER_APIC, 0.005, 2}, {"APIC, 1 ms", SELKIE_TRANSFER_APIC, 0.001, 2},
                 {"PIC, 5 ms", SELKIE_TRANSFER_PIC, 0.005, 2},   {"FLIP, 3D", SELKIE_TRANSFER_FLIP, 0.005, 3},
                 {"APIC, 3D", SELKIE_TRANSFER_APIC, 0.005, 3}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int round = 0; round < 2; round++) {
            test_scene t;
            drop_on_body(&t);
            if (cases[n].dimension == 3) {
                tank(&t, 3, 1.0, 1.0, 1.0, 1.0 / 24);
                t.scene.gravity[1] = 0.0;
                add_liquid(&t, sphere_shape(0.5, 0.75, 0.5, 0.1));
                t.liquids[0].velocity[1] = -2.0;
            }
            t.scene.time.step = cases[n].step;
            t.scene.transfer = cases[n].transfer;
            t.scene.pressure.start = 10.0;
            t.scene.body_count = 0;
            if (round)
                add_body(&t, sphere_shape(0.53, 0.4, cases[n].dimension == 3 ? 0.5 : 0.0, 0.1), 800);
            else
                add_body(&t, box_shape(0.45, 0.4, 0.35, 0.7, 0.5, 0.65), 800);
            selkie_world *world = make_world_threads(&t.scene, 1);
            const double start = momentum_of(world, 0);
            run_until(world, 0.15);
            at_most(cases[n].name, "speed of the body, m/s, below 0 by", 0.05 + body_of(world, 0).velocity[1], 0.0);
            at_most(cases[n].name, "momentum lost in contacts, part", fabs(momentum_of(world, 0) / start - 1.0),
                    0.15 / cases[n].step / (1 << 24));
            selkie_world_destroy(world);
        }
}

/* No particle inside a body, the same bits with two threads, and iterations that lightness does not raise. */
static void in_waves(void **state)
{
    (void)state;
    test_scene t[2];
    selkie_world *world[2];
    for (int w = 0; w < 2; w++) {
        tank(&t[w], 3, 1.0, 0.75, 0.5, 1.0 / 24);
        t[w].scene.volume = SELKIE_VOLUME_IDP;
        t[w].scene.time.step = 0.01;
        t[w].scene.body_count = 0;
        add_liquid(&t[w], box_shape(0, 0, 0, 0.4, 0.6, 0.5));
        add_liquid(&t[w], box_shape(0.4, 0, 0, 1, 0.25, 0.5));
        add_body(&t[w], box_shape(0.5, 0.2, 0.1, 0.8, 0.35, 0.4), 300);
        add_body(&t[w], sphere_shape(0.9, 0.35, 0.25, 0.08), 20);
        world[w] = make_world_threads(&t[w].scene, w + 1);
        run_until(world[w], 0.6);
    }
    for (int b = 0; b < 2; b++) {
        const selkie_body_state one = body_of(world[0], b), two = body_of(world[1], b);
        assert_memory_equal(one.position, two.position, sizeof one.position);
        assert_memory_equal(one.velocity, two.velocity, sizeof one.velocity);
    }
    const selkie_body_state ball = body_of(world[0], 1);
    const selkie_attribute_view position = attribute_of(world[0], "position");
    double deepest = 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world[0]); p++) {
        double r2 = 0.0;
        for (int d = 0; d < 3; d++)
            r2 += pow((double)particle_of(&position, p)[d] - ball.position[d], 2);
        deepest = fmax(deepest, 0.08 - sqrt(r2));
    }
    at_most("bodies in a wave", "deepest particle in the ball, cells", deepest * 24, 1e-3);
    at_most("bodies in a wave", "pressure iterations", selkie_world_statistics(world[0])->pressure_iterations, 12);
    for (int w = 0; w < 2; w++)
        selkie_world_destroy(world[w]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draught),    cmocka_unit_test(bobbing),
        cmocka_unit_test(added_mass), cmocka_unit_test(stack_stands),
        cmocka_unit_test(momentum),   cmocka_unit_test(momentum_of_contacts),
        cmocka_unit_test(in_waves),   cmocka_unit_test(added_mass_of_ball),
        cmocka_unit_test(draught_3d), cmocka_unit_test(draught_of_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

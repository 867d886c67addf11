/* Rigid bodies in the liquid of the grid methods: same bits, backends, momentum, contacts, iterations. */
#include <unistd.h>

#include "bodies.h"

enum { STEPS = 30 };

/* FNV-1a of all that a run gives: particles in their order, poses and velocities of the bodies. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t n = 0; n < size; n++)
        hash = (hash ^ bytes[n]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_world(const selkie_world *world)
{
    static const char *const names[] = {"position", "velocity"};
    const int dimension = selkie_world_scene(world)->domain.dimension;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int n = 0; n < 2; n++) {
        const selkie_attribute_view view = attribute_of(world, names[n]);
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            hash = hash_bytes(hash, particle_of(&view, p), (size_t)dimension * sizeof(float));
    }
    for (int b = 0; b < selkie_world_scene(world)->body_count; b++) {
        const selkie_body_state body = body_of(world, b);
        hash = hash_bytes(hash, body.position, sizeof body.position);
        hash = hash_bytes(hash, body.quaternion, sizeof body.quaternion);
        hash = hash_bytes(hash, body.velocity, sizeof body.velocity);
        hash = hash_bytes(hash, body.angular_velocity, sizeof body.angular_velocity);
    }
    return hash;
}

/* 1 and 3 threads, and a run resumed half way, end with the same bits. */
static void same_bits(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        char path[] = "/tmp/selkie_floating_XXXXXX";
        const int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        wave(&t, dimension);
        uint64_t hashes[3];
        selkie_error error = {0};
        for (int run = 0; run < 3; run++) {
            selkie_world *world = make_world_threads(&t.scene, run == 0 ? 1 : 3);
            if (run == 2 && selkie_world_load(world, path, &error) != SELKIE_OK)
                fail_msg("%s", error.message);
            for (int n = run == 2 ? STEPS / 2 : 0; n < STEPS; n++) {
                step_world(world);
                if (run == 0 && n == STEPS / 2 - 1)
                    assert_int_equal(selkie_world_save(world, path, &error), SELKIE_OK);
            }
            hashes[run] = hash_world(world);
            selkie_world_destroy(world);
        }
        unlink(path);
        print_message("%dD: %016llx, 3 threads %016llx, resumed %016llx\n", dimension, (unsigned long long)hashes[0],
                      (unsigned long long)hashes[1], (unsigned long long)hashes[2]);
        assert_true(hashes[0] == hashes[1]);
        assert_true(hashes[0] == hashes[2]);
    }
}

/* The backends round in their own ways, and a wave multiplies differences: a few steps are compared. */
static void backends_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        wave(&t, dimension);
        selkie_world *worlds[2];
        for (int w = 0; w < 2; w++) {
            selkie_world_options options;
            selkie_error error = {0};
            selkie_world_options_defaults(&options);
            options.threads = 1;
            options.with_backend = 1;
            options.backend = w ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_TUNED;
            if (selkie_world_create(&t.scene, &options, &worlds[w], &error) != SELKIE_OK)
                fail_msg("%s", error.message);
            for (int n = 0; n < 10; n++)
                step_world(worlds[w]);
        }
        double moved = 0.0, faster = 0.0;
        for (int b = 0; b < 2; b++) {
            const selkie_body_state one = body_of(worlds[0], b), two = body_of(worlds[1], b);
            for (int d = 0; d < 3; d++) {
                moved = fmax(moved, fabs(one.position[d] - two.position[d]));
                faster = fmax(faster, fabs(one.velocity[d] - two.velocity[d]));
            }
        }
        at_most(dimension == 3 ? "wave, 3D" : "wave, 2D", "backends: bodies apart, m", moved, 1e-7);
        at_most(dimension == 3 ? "wave, 3D" : "wave, 2D", "backends: velocities apart, m/s", faster, 1e-5);
        for (int w = 0; w < 2; w++)
            selkie_world_destroy(worlds[w]);
    }
}

/* Two discs of a ratio of 2 are thrown at each other at 2 m/s in water. The engine finds a contact when they overlap,
 * and a substep of their approach is how deep that is. Bodies that can meet have substeps of at most 0.04 cells. */
static void discs_collide(void **state)
{
    (void)state;
    test_scene t;
    const double h = 1.0 / 32, radius = 0.1;
    tank(&t, 2, 1.0, 1.0, 1, h);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = 0.01;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.8, 1));
    add_body(&t, sphere_shape(0.3, 0.4, 0, radius), 2000)->velocity[0] = 2.0;
    add_body(&t, sphere_shape(0.7, 0.4, 0, radius), 2000)->velocity[0] = -2.0;
    selkie_world *world = make_world_threads(&t.scene, 1);
    double nearest = 1.0;
    while (selkie_world_time(world) < 0.5) {
        step_world(world);
        const selkie_body_state one = body_of(world, 0), two = body_of(world, 1);
        nearest = fmin(nearest, hypot(one.position[0] - two.position[0], one.position[1] - two.position[1]));
    }
    const double deepest = 2.0 * radius - nearest;
    at_most("discs thrown at each other", "gap at the nearest, cells", -deepest / h, 0.5);
    at_most("discs thrown at each other", "overlap, cells", deepest / h, 0.05);
    selkie_world_destroy(world);
}

/* 64 discs of a ratio of 0.01 below the surface: the iterations stay near those without bodies. */
static void many_light_bodies(void **state)
{
    (void)state;
    double mean[2];
    for (int with = 0; with < 2; with++) {
        test_scene t;
        const double h = 1.0 / 128;
        tank(&t, 2, 1.0, 1.0, 1, h);
        t.scene.volume = SELKIE_VOLUME_IDP;
        t.scene.time.step = 0.005;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.75, 1));
        for (int n = 0; with && n < MOST_BODIES; n++)
            add_body(&t, sphere_shape(0.09 + 0.117 * (n % 8), 0.06 + 0.085 * (n / 8), 0, 2.0 * h), 10);
        selkie_world *world = make_world_threads(&t.scene, 1);
        double sum = 0.0;
        for (int n = 0; n < 10; n++) {
            step_world(world);
            sum += selkie_world_statistics(world)->pressure_iterations;
        }
        mean[with] = sum / 10;
        selkie_world_destroy(world);
    }
    note("64 light discs", "iterations without them", mean[0]);
    at_most("64 light discs", "iterations over those without them", mean[1] / mean[0], 1.2);
}

/* 35 discs of 0.8 cells that touch: their modes nearly depend on each other. No solve may stop, for which the steps
 * fail; without deflation such a solve takes 23 iterations at most. The bound is that of a solve which turns it off
 * (40), and 23. */
static void packed_small_discs(void **state)
{
    (void)state;
    test_scene t;
    const double h = 1.0 / 32, radius = 0.8 * h;
    tank(&t, 2, 1.0, 1.0, 1, h);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = 0.005;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.5, 1));
    for (int n = 0; n < 35; n++)
        add_body(
            &t, sphere_shape(0.3 + (n % 7 + 0.5 * (n / 7 % 2)) * 2.02 * radius, 0.1 + n / 7 * 1.76 * radius, 0, radius),
            500);
    selkie_world *world = make_world_threads(&t.scene, 1);
    int most = 0;
    for (int n = 0; n < 100; n++) {
        step_world(world);
        const int now = (int)selkie_world_statistics(world)->pressure_iterations;
        most = now > most ? now : most;
    }
    at_most("35 packed discs", "iterations at most", most, 63);
    selkie_world_destroy(world);
}

/* A disc of a ratio of 0.9 floats, and water washes over it in films of less than a cell. None of it may be faster than
 * water that falls from the top of the disc to the level at rest. */
static void film_on_disc(void **state)
{
    (void)state;
    test_scene t;
    const double h = 0.5 / 24, radius = 0.1, centre = 0.0687; /* m  below the level: Archimedes */
    tank(&t, 2, 1.0, 1.0, 1, h);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = 0.001;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.5, 1));
    add_body(&t, sphere_shape(0.5, 0.5 - centre, 0, radius), 900);
    selkie_world *world = make_world_threads(&t.scene, 1);
    double fastest = 0.0;
    while (selkie_world_time(world) < 1.0) {
        step_world(world);
        fastest = fmax(fastest, selkie_world_statistics(world)->max_speed);
    }
    at_most("films on a floating disc", "fastest particle, m/s", fastest, sqrt(2.0 * GRAVITY * (radius - centre)));
    selkie_world_destroy(world);
}

/* J  of the liquid and the bodies */
static double energy_of(const selkie_world *world)
{
    const selkie_statistics *s = selkie_world_statistics(world);
    return s->kinetic_energy + s->potential_energy + s->body_kinetic_energy + s->body_potential_energy;
}

/* A box of a ratio of 8 falls flat on a step in water and presses out the film below it, down to gaps thinner than a
 * particle. The energy may rise by 1 % of m g H of the water: about what one particle has that the last of the film
 * drives out at 30 m/s. */
static void box_on_step(void **state)
{
    (void)state;
    static const double at[] = {0.15, 0.35, 0.48}, steps[] = {0.001, 0.005, 0.005};
    const double depth = 0.7, most = 1000 * depth * GRAVITY * depth;
    for (int n = 0; n < 3; n++) {
        test_scene t;
        tank(&t, 2, 1.0, 1.0, 1, 1.0 / 32);
        t.scene.volume = SELKIE_VOLUME_IDP;
        t.scene.time.step = steps[n];
        add_liquid(&t, box_shape(0, 0, 0, 1, depth, 1));
        add_obstacle(&t, box_shape(0, 0, 0, 0.5, 0.2, 1));
        add_body(&t, box_shape(at[n], 0.45, 0, at[n] + 0.2, 0.65, 1), 8000);
        selkie_world *world = make_world_threads(&t.scene, 1);
        step_world(world);
        double least = energy_of(world), rise = 0.0;
        while (selkie_world_time(world) < 0.6) {
            step_world(world);
            least = fmin(least, energy_of(world));
            rise = fmax(rise, energy_of(world) - least);
        }
        at_most("heavy box falls on a step", "rise of the energy over m g H", rise / most, 0.01);
        selkie_world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),         cmocka_unit_test(backends_agree),     cmocka_unit_test(discs_collide),
        cmocka_unit_test(many_light_bodies), cmocka_unit_test(packed_small_discs), cmocka_unit_test(film_on_disc),
        cmocka_unit_test(box_on_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

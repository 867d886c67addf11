/* A piston that makes waves and a sponge that takes them up. Height against the transfer function of a piston,
 * reflection from the variation of the amplitude along the tank. */
#include "physics.h"

enum { PROBES = 12 };

/* Wave number of a period at a depth: w^2 = g k tanh(k d). */
static double wave_number(double period, double depth)
{
    const double w = 2.0 * M_PI / period;
    double k = w * w / GRAVITY;
    for (int i = 0; i < 100; i++)
        k = 0.5 * (k + w * w / (GRAVITY * tanh(k * depth)));
    return k;
}

static void make_waves(selkie_method method, double h)
{
    const double depth = 0.3, period = 1.0, stroke = 0.03, length = 6.0, sponge_width = 2.0;
    const double k = wave_number(period, depth), wavelength = 2.0 * M_PI / k;
    test_scene t;
    tank(&t, 2, length, 0.5, 1, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.cfl = 0.0;
    t.scene.time.fps = 50.0;
    t.scene.time.step = 0.01;
    add_liquid(&t, box_shape(0.1, 0, 0, length, depth, 1));
    selkie_obstacle_def *piston = add_obstacle(&t, box_shape(-1.0, -1, 0, 0.1, 1, 1));
    selkie_oscillation motion;
    selkie_oscillation_defaults(&motion);
    motion.translate[0] = 0.5 * stroke;
    motion.period = period;
    motion.ramp = 2.0;
    piston->oscillation_count = 1;
    piston->oscillations = &motion;
    selkie_force_def sponge;
    selkie_force_defaults(&sponge, SELKIE_FORCE_SPONGE);
    sponge.side = SELKIE_SIDE_X_MAX;
    sponge.width = sponge_width;
    t.scene.force_count = 1;
    t.scene.forces = &sponge;
    static char names[PROBES][8];
    for (int p = 0; p < PROBES; p++) {
        snprintf(names[p], sizeof names[p], "p%d", p);
        add_probe(&t, names[p], SELKIE_PROBE_HEIGHT, 1.7 + p * wavelength / PROBES, 0, 0);
    }
    selkie_world *world = make_world(&t);

    /* The first harmonic at each probe, over whole periods after the waves have come back from the sponge. */
    double sine[PROBES] = {0}, cosine[PROBES] = {0};
    const double start = 13.0, end = 16.0, w = 2.0 * M_PI / period;
    run_until(world, start);
    while (selkie_world_time(world) < end - 1e-9) {
        step_world(world);
        const double time = selkie_world_time(world), dt = selkie_world_statistics(world)->dt;
        for (int p = 0; p < PROBES; p++) {
            const double height = selkie_world_probe_value(world, p) - depth;
            sine[p] += 2.0 / (end - start) * dt * height * sin(w * time);
            cosine[p] += 2.0 / (end - start) * dt * height * cos(w * time);
        }
    }
    double least = 1e9, largest = 0.0, mean = 0.0;
    for (int p = 0; p < PROBES; p++) {
        const double amplitude = hypot(sine[p], cosine[p]);
        least = fmin(least, amplitude);
        largest = fmax(largest, amplitude);
        mean += amplitude / PROBES;
    }
    /* Dean and Dalrymple, "Water wave mechanics for engineers and scientists", Eq. 6.25. */
    const double height = stroke * 2.0 * (cosh(2.0 * k * depth) - 1.0) / (sinh(2.0 * k * depth) + 2.0 * k * depth);
    char what[64];
    snprintf(what, sizeof what, "piston 2D %s, H = %.0f h", method_name(method), depth / h);
    note(what, "wave height, m", 2.0 * mean);
    at_most(what, "wave height / transfer function - 1", fabs(2.0 * mean / height - 1.0), 0.03);
    at_most(what, "reflected amplitude / amplitude", (largest - least) / (largest + least), 0.05);
    selkie_world_destroy(world);
}

static void piston_waves(void **state)
{
    (void)state;
    make_waves(SELKIE_METHOD_FLIP, 0.0125);
    make_waves(SELKIE_METHOD_APIC, 0.025);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(piston_waves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

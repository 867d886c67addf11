/* A standing wave of small amplitude: period against omega^2 = g k tanh(k H) with the second order in the amplitude
 * (Tadjbakhsh and Keller 1960: 4e-4 longer here), and how fast it dies although the liquid
 * has no viscosity: amplitude exp(-2 nu k^2 t) defines the numerical viscosity. The amplitude is read from the liquid's
 * centre of mass, which swings along x in proportion to it. With implicit density projection the same must hold, and
 * the wave must not die faster than without it: the correction moves particles, and no energy may get lost on that way.
 */
#include "physics.h"

typedef struct swing {
    double period_error; /* relative, signed */
    double viscosity;    /* m2/s, numerical */
    double start;        /* swing of the centre of mass at the start, relative to what the shape says */
} swing;

/* 1 - omega / (linear omega) of a standing wave of this amplitude (m), wave number (1/m) and depth (m). */
static double slower(double amplitude, double k, double depth)
{
    const double w = sqrt(tanh(k * depth)), steepness = k * amplitude;
    const double second = (9.0 * pow(w, -7) - 12.0 * pow(w, -3) - 3.0 * w - 2.0 * pow(w, 5)) / 32.0;
    return -0.5 * steepness * steepness * second / w;
}

static swing run_wave(int dimension, selkie_method method, selkie_volume volume, int resolution, uint64_t seed)
{
    const double length = 1.0, depth = 0.5, amplitude = 0.02, h = length / resolution, k = M_PI / length;
    const double omega = sqrt(GRAVITY * k * tanh(k * depth)) * (1.0 - slower(amplitude, k, depth));
    const double period = 2.0 * M_PI / omega;
    test_scene t;
    tank(&t, dimension, length, 0.75, 4 * h, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = volume;
    t.scene.seed = seed;
    t.scene.time.fps = 50.0 / period;
    t.scene.time.max_step = period / 100.0;
    selkie_shape wave;
    selkie_shape_defaults(&wave, SELKIE_SHAPE_WAVE);
    wave.level = depth;
    wave.amplitude = amplitude;
    wave.wave_number[0] = k;
    add_liquid(&t, wave);
    selkie_world *world = make_world(&t);
    /* Crossings of zero of the centre's x, by linear interpolation, and the extremes between them. */
    double start = sum_particles(world, NULL).position[0] - 0.5 * length, before = start, extreme = fabs(start),
           time_before = 0.0;
    double crossings[8], extremes[8];
    int count = 0;
    while (count < 6 && selkie_world_time(world) < 4.0 * period) {
        step_world(world);
        double now = sum_particles(world, NULL).position[0] - 0.5 * length, time = selkie_world_time(world);
        if ((now > 0) != (before > 0)) {
            crossings[count] = time_before + (time - time_before) * before / (before - now);
            extremes[count++] = extreme;
            extreme = 0.0;
        }
        extreme = fmax(extreme, fabs(now));
        before = now;
        time_before = time;
    }
    selkie_world_destroy(world);
    assert_int_equal(count, 6);
    swing result = {(crossings[5] - crossings[1]) / 2.0 / period - 1.0, 0.0,
                    fabs(start) / (2.0 * amplitude / (k * k * length * depth))};
    /* extremes[1] to extremes[5]: two periods */
    result.viscosity = -log(extremes[5] / extremes[1]) / (2.0 * k * k * 2.0 * period);
    return result;
}

static void waves(void **state)
{
    (void)state;
    static const struct {
        int dimension;
        selkie_method method;
    } cases[] = {{2, SELKIE_METHOD_FLIP}, {2, SELKIE_METHOD_APIC}, {3, SELKIE_METHOD_FLIP}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int n = 0; n < (cases[c].dimension == 2 ? 2 : 1); n++) {
            int resolution = 32 << n;
            double plain = 0.0;
            for (int projected = 0; projected < 2; projected++) {
                selkie_volume volume = projected ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE;
                swing s = run_wave(cases[c].dimension, cases[c].method, volume, resolution, 1);
                char what[64];
                snprintf(what, sizeof what, "standing wave %dD %s%s, H = %d h", cases[c].dimension,
                         method_name(cases[c].method), volume_name(volume), resolution / 2);
                double viscosity = s.viscosity * M_PI * M_PI / sqrt(GRAVITY * M_PI);
                between(what, "amplitude at the start / that of the shape", s.start, 0.85, 1.15);
                at_most(what, "period, relative error", fabs(s.period_error), n ? 0.012 : 0.02);
                at_most(what, "numerical viscosity / sqrt(g k) k^-2", viscosity, 0.01);
                if (projected)
                    /* An extreme of the swing is read to about a hundredth of it, which is this much viscosity. */
                    at_most(what, "the same, more than without idp", viscosity - fmax(plain, 0.0), 0.001);
                plain = projected ? plain : viscosity;
            }
        }
    }
}

/* Means of four starts, which scatter by 1e-3 at 16 cells. Below 0.1 % the reading of a crossing decides, not the
 * resolution. */
static void finer_waves_are_better(void **state)
{
    (void)state;
    double errors[2] = {0, 0};
    for (int n = 0; n < 2; n++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            errors[n] += 0.25 * run_wave(2, SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 32 << n, seed).period_error;
    at_most("standing wave FLIP, twice the resolution", "period error, relative", fabs(errors[1]),
            fmax(0.9 * fabs(errors[0]), 1e-3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waves), cmocka_unit_test(finer_waves_are_better)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

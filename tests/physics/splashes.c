/* The model of splashes over step lengths and thresholds: as many droplets of a dam break at half and at twice the
 * default step, and fewer with every higher threshold. */
#include "physics.h"

/* A dam that breaks over shallow water, steps of so many cells. */
static void dam(test_scene *t, double cfl, double threshold, uint64_t seed)
{
    tank(t, 2, 0.8, 0.8, 0, 0.01);
    t->scene.time.cfl = cfl;
    t->scene.time.fps = 60.0;
    t->scene.seed = seed;
    t->scene.particles.per_cell = 4;
    t->scene.volume = SELKIE_VOLUME_IDP;
    t->scene.splashes = "default";
    t->scene.splash.rate = 10.0; /* enough to count */
    t->scene.splash.threshold = threshold;
    add_liquid(t, box_shape(0, 0, 0, 0.2, 0.4, 1));
    add_liquid(t, box_shape(0, 0, 0, 0.8, 0.06, 1));
}

/* Its droplets; -1 if a step fails. The worlds of a test run side by side on one thread each: cmocka must not end the
 * test inside. */
static int64_t droplets(double cfl, double threshold, uint64_t seed)
{
    test_scene t;
    dam(&t, cfl, threshold, seed);
    selkie_world *world = NULL;
    selkie_world_options options;
    selkie_error error = {0};
    selkie_world_options_defaults(&options);
    options.threads = 1;
    options.with_backend = asks_for_backend(&options.backend);
    selkie_code code = selkie_world_create(&t.scene, &options, &world, &error);
    while (!code && selkie_world_time(world) < 0.8 * (1 - 1e-9))
        code = selkie_world_step(world, &error);
    const int64_t made = code ? -1 : selkie_world_statistics(world)->splashes_made;
    selkie_world_destroy(world);
    return made;
}

/* 15 % is asked of the mean. Droplets come in bursts: their number in a run of this dam deviates by 12 %, the ratio of
 * the sums over 8 seeds by 6 %, over 48 seeds by 2.4 %. So the bound of the short form is 15 % and two deviations; the
 * long form has enough seeds for 15 %. */
enum { SHORT_SEEDS = 8, LONG_SEEDS = 48 };
static int is_long;

static void counts_over_steps(void **state)
{
    (void)state;
    static const double cfl[3] = {2.0, 1.0, 4.0};
    const int seeds = is_long ? LONG_SEEDS : SHORT_SEEDS;
    const double bound = is_long ? 0.15 : 0.27;
    int64_t made[3 * LONG_SEEDS];
    double sums[3] = {0.0};
    test_scene t;
    dam(&t, cfl[0], 0.0, 1);
    selkie_world_destroy(make_world(&t)); /* skips the test where the backend refuses the scene */
#pragma omp parallel for schedule(dynamic)
    for (int n = 0; n < 3 * seeds; n++)
        made[n] = droplets(cfl[n % 3], 0.0, 1 + (uint64_t)n / 3);
    for (int n = 0; n < 3 * seeds; n++) {
        assert_true(made[n] >= 0);
        sums[n % 3] += (double)made[n];
    }
    note("dam with splashes", "droplets at the default step", sums[0]);
    note("dam with splashes", "at half the step", sums[1]);
    note("dam with splashes", "at twice the step", sums[2]);
    at_most("dam with splashes", "change at half the step", fabs(sums[1] / sums[0] - 1.0), bound);
    at_most("dam with splashes", "change at twice the step", fabs(sums[2] / sums[0] - 1.0), bound);
}

/* Droplets change the flow, so that the number of one run may rise with the threshold by chance: it deviates by 12 %
 * from seed to seed. Of the same frames it falls with every threshold (tests/cli/splash.sh). The mean over the seeds
 * falls: the bound of a rise is two deviations of the ratio of two means. The short form has thresholds that leave
 * three quarters of the number and less (24 seeds): with eight seeds a rise is more than three deviations away. */
static void counts_over_thresholds(void **state)
{
    (void)state;
    static const double thresholds[] = {0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95}, few[] = {0.8, 0.9, 0.95};
    enum { MOST = sizeof thresholds / sizeof *thresholds, FEW = sizeof few / sizeof *few, SEEDS = 24 };
    const int count = is_long ? MOST : FEW, seeds = is_long ? SEEDS : 8;
    const double *all = is_long ? thresholds : few, deviation = 0.12 * sqrt(2.0 / seeds);
    int64_t made[MOST * SEEDS];
    double means[MOST] = {0.0};
    test_scene t;
    dam(&t, 2.0, 0.0, 1);
    selkie_world_destroy(make_world(&t)); /* skips the test where the backend refuses the scene */
#pragma omp parallel for schedule(dynamic)
    for (int n = 0; n < count * seeds; n++)
        made[n] = droplets(2.0, all[n % count], 1 + (uint64_t)(n / count));
    for (int n = 0; n < count * seeds; n++) {
        assert_true(made[n] >= 0);
        means[n % count] += (double)made[n] / seeds;
    }
    for (int k = 0; k < count; k++) {
        char measure[64];
        snprintf(measure, sizeof measure, "droplets above %g, mean over %d seeds", all[k], seeds);
        note("dam with splashes", measure, means[k]);
        if (k)
            at_most("dam with splashes", "of those above the threshold before", means[k] / means[k - 1],
                    is_long ? 1.0 + 2.0 * deviation : 1.0);
    }
    at_most("dam with splashes", "of all, above the last", means[count - 1] / means[0], is_long ? 0.2 : 0.5);
}

int main(int count, char **words)
{
    is_long = count > 1 && strcmp(words[1], "long") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_over_steps), cmocka_unit_test(counts_over_thresholds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

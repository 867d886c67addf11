/* A checkpoint that starts another scene: what is taken over, and how it is sampled again. */
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

typedef struct sums {
    int64_t count;
    double velocity[2], position[2], squares; /* means */
} sums;

static sums sum_particles(const selkie_world *world)
{
    selkie_attribute_view x, v;
    assert_int_equal(selkie_world_find_attribute(world, "position", &x, NULL), SELKIE_OK);
    assert_int_equal(selkie_world_find_attribute(world, "velocity", &v, NULL), SELKIE_OK);
    sums all = {.count = selkie_world_particle_count(world)};
    for (int64_t p = 0; p < all.count; p++)
        for (int d = 0; d < 2; d++) {
            float place = ((float *)(void *)((char *)x.data + (size_t)p * x.stride))[d];
            float speed = ((float *)(void *)((char *)v.data + (size_t)p * v.stride))[d];
            all.position[d] += place / (double)all.count;
            all.velocity[d] += speed / (double)all.count;
            all.squares += (double)speed * speed / (double)all.count;
        }
    return all;
}

/* A disk that turns about its centre while it drifts, and a slow drop beside it. */
static void disk(selkie_scene *scene, selkie_liquid_def liquids[2], selkie_transfer transfer)
{
    selkie_scene_defaults(scene);
    scene->volume = SELKIE_VOLUME_NONE;
    scene->domain.dimension = 2;
    scene->domain.size[0] = scene->domain.size[1] = 1;
    scene->domain.resolution = 32;
    scene->transfer = transfer;
    memset(scene->gravity, 0, sizeof scene->gravity);
    for (int l = 0; l < 2; l++) {
        selkie_liquid_defaults(&liquids[l]);
        liquids[l].shape.kind = SELKIE_SHAPE_SPHERE;
        liquids[l].shape.center[0] = liquids[l].shape.center[1] = l ? 0.85 : 0.4;
        liquids[l].shape.radius = l ? 0.05 : 0.25;
    }
    memcpy(liquids[0].center, liquids[0].shape.center, sizeof liquids[0].center);
    liquids[0].velocity[0] = 1;
    liquids[0].angular_velocity[2] = 4;
    scene->liquid_count = 2;
    scene->liquids = liquids;
}

static void restart_at(int resolution, selkie_transfer transfer, double velocity_error)
{
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_world *first, *second;
    selkie_error error = {0};
    char path[] = "/tmp/selkie-test-restart-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    disk(&scene, liquids, transfer);
    assert_int_equal(selkie_world_create(&scene, NULL, &first, &error), SELKIE_OK);
    for (int n = 0; n < 3; n++)
        assert_int_equal(selkie_world_step(first, &error), SELKIE_OK);
    assert_int_equal(selkie_world_save(first, path, &error), SELKIE_OK);

    /* The liquids of the second scene must not matter. */
    scene.domain.resolution = resolution;
    scene.liquid_count = 1;
    selkie_restart_report report;
    assert_int_equal(selkie_world_create_from(&scene, NULL, path, &report, &second, &error), SELKIE_OK);
    sums before = sum_particles(first), after = sum_particles(second);
    assert_int_equal(report.in_checkpoint, before.count);
    assert_int_equal(report.taken, after.count);
    assert_int_equal(report.outside + report.inside_solids + report.pushed_out + report.no_room, 0);
    assert_int_equal(report.resampled, resolution != 32);
    assert_int_equal(after.count, llround((double)before.count * resolution * resolution / (32.0 * 32.0)));
    for (int d = 0; d < 2; d++) {
        /* A place lies within half a spacing of its old particle in each direction; means are better than that. */
        double wider = 0.5 / (resolution < 32 ? resolution : 32);
        assert_true(fabs(after.position[d] - before.position[d]) <= (resolution == 32 ? 1e-12 : 0.25 * wider));
        assert_true(fabs(after.velocity[d] - before.velocity[d]) < velocity_error);
    }
    assert_true(fabs(after.squares / before.squares - 1) < velocity_error);
    assert_true(selkie_world_time(second) == 0 && selkie_world_frame(second) == 0);
    assert_int_equal(selkie_world_step(second, &error), SELKIE_OK);
    selkie_world_destroy(first);
    selkie_world_destroy(second);
    unlink(path);
}

static void same_resolution_keeps_particles(void **state)
{
    (void)state;
    restart_at(32, SELKIE_TRANSFER_FLIP, 1e-9);
    restart_at(32, SELKIE_TRANSFER_APIC, 1e-9);
}

/* Means over two spacings smooth the rotation near the rim: some percent of the speed. */
static void other_resolution_keeps_volume(void **state)
{
    (void)state;
    static const int resolutions[] = {20, 31, 48, 64};
    for (int i = 0; i < 4; i++) {
        restart_at(resolutions[i], SELKIE_TRANSFER_FLIP, 0.05);
        restart_at(resolutions[i], SELKIE_TRANSFER_APIC, 0.05);
    }
}

/* Memory follows the liquid, not the box around it: two balls in opposite corners of 8 m, sampled again at cells of
 * half the size. Places in the whole box would take 27 GB. */
static void memory_follows_the_liquid(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    selkie_world *world;
    selkie_world_options options;
    selkie_restart_report report;
    selkie_error error = {0};
    char path[] = "/tmp/selkie-test-restart-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    disk(&scene, liquids, SELKIE_TRANSFER_FLIP);
    scene.domain.dimension = 3;
    scene.domain.resolution = 200;
    for (int d = 0; d < 3; d++) {
        scene.domain.size[d] = 8;
        for (int l = 0; l < 2; l++)
            liquids[l].shape.center[d] = l ? 7.5 : 0.5;
    }
    selkie_world_options_defaults(&options);
    options.threads = 1;
    options.memory_limit = 40u << 20;
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(selkie_world_save(world, path, &error), SELKIE_OK);
    selkie_world_destroy(world);
    scene.domain.resolution = 400;
    if (selkie_world_create_from(&scene, &options, path, &report, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(report.taken, 8 * report.in_checkpoint);
    assert_int_equal(report.no_room, 0);
    if (selkie_world_step(world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    selkie_world_destroy(world);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_resolution_keeps_particles),
        cmocka_unit_test(other_resolution_keeps_volume),
        cmocka_unit_test(memory_follows_the_liquid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

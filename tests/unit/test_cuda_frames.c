/* Frames and checkpoints that are copied while the device takes further steps: the files are those of a world that
 * waits for them, and the world goes on as one without frames. Skipped with a word where there is no device. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "cuda_cases.h"
#include "io/writer.h"

enum { FRAMES = 6 };

static void name_file(char path[96], const char *kind, int frame, const char *ending)
{
    snprintf(path, 96, "cuda_frames_%d_%s_%d%s", (int)getpid(), kind, frame, ending);
}

/* The bytes of a file, which is removed; free() them. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    char *text = NULL;
    *bytes = 0;
    for (size_t got = 1; got;) {
        text = realloc(text, *bytes + 65536);
        assert_non_null(text);
        got = fread(text + *bytes, 1, 65536, file);
        *bytes += got;
    }
    fclose(file);
    remove(path);
    return text;
}

/* Liquid that leaves through an open side, so that frames have particles that are gone. */
static void set_open(selkie_scene *scene, selkie_liquid_def liquids[2], int dimension, selkie_transfer transfer)
{
    set_scene(scene, liquids, dimension, SELKIE_VOLUME_NONE);
    scene->transfer = transfer;
    scene->pressure.start = 10.0;
    scene->domain.walls[1] = SELKIE_WALL_OPEN;
    liquids[0].velocity[0] = 3.0;
    liquids[1].velocity[0] = 2.0;
}

static void nothing(void *context, int64_t step)
{
    (void)context, (void)step;
}

/* Both files of the frames are removed. */
static void compare_files(const char *kind, const char *other_kind, const char *ending)
{
    for (int f = 0; f < FRAMES; f++) {
        char path[96];
        size_t bytes[2];
        name_file(path, kind, f, ending);
        char *one = read_file(path, &bytes[0]);
        name_file(path, other_kind, f, ending);
        char *other = read_file(path, &bytes[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(one, other, bytes[0]);
        free(one);
        free(other);
    }
}

static void frames(int dimension, selkie_transfer transfer, const char *ending)
{
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    sk_writer *writer;
    selkie_error error = {0};
    char path[96];
    set_open(&scene, liquids, dimension, transfer);
    selkie_world *copied = make_world(&scene, SELKIE_BACKEND_CUDA), *waits = make_world(&scene, SELKIE_BACKEND_CUDA),
                 *silent = make_world(&scene, SELKIE_BACKEND_CUDA);
    assert_int_equal(sk_writer_create(&writer, &error), SELKIE_OK);
    for (int f = 0; f < FRAMES; f++) {
        take_steps(copied, 2);
        name_file(path, "copied", f, ending);
        const sk_writer_file file = {SK_WRITER_PARTICLES, path};
        if (sk_writer_add(writer, copied, 1, &file, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        name_file(path, "copied", f, ".selkie");
        const sk_writer_checkpoint checkpoint = {path, ".", 0, nothing, NULL};
        if (sk_writer_add_checkpoint(writer, copied, &checkpoint, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        take_steps(waits, 2);
        name_file(path, "waits", f, ending);
        if (selkie_write_particles(waits, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        name_file(path, "waits", f, ".selkie");
        if (selkie_world_save(waits, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        take_steps(silent, 2);
    }
    assert_int_equal(sk_writer_wait(writer, &error), SELKIE_OK);
    assert_true(silent->step.drained > 0);
    compare_files("copied", "waits", ending);
    compare_files("copied", "waits", ".selkie");
    assert_true(difference(copied, silent) == 0.0);
    assert_true(difference(waits, silent) == 0.0);
    sk_writer_destroy(writer);
    selkie_world_destroy(copied);
    selkie_world_destroy(waits);
    selkie_world_destroy(silent);
}

static void test_frames_2d(void **state)
{
    (void)state;
    frames(2, SELKIE_TRANSFER_FLIP, ".skp");
}

static void test_frames_3d(void **state)
{
    (void)state;
    frames(3, SELKIE_TRANSFER_APIC, ".ply");
}

/* A frame that nobody has written yet stays whole when its world is gone. */
static void test_frame_outlives_world(void **state)
{
    (void)state;
    if (!device_is_here())
        skip();
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    sk_world_copy *copy = NULL;
    sk_particles particles;
    set_open(&scene, liquids, 2, SELKIE_TRANSFER_FLIP);
    selkie_world *world = make_world(&scene, SELKIE_BACKEND_CUDA), *other = make_world(&scene, SELKIE_BACKEND_CUDA);
    take_steps(world, 3);
    take_steps(other, 3);
    assert_int_equal(sk_world_copy_begin(world, &copy, NULL), SELKIE_OK);
    assert_non_null(copy);
    take_steps(world, 3);
    selkie_world_destroy(world);
    assert_int_equal(sk_world_copy_take(copy, &particles, NULL), SELKIE_OK);
    assert_int_equal(sk_world_fetch(other, 0, NULL), SELKIE_OK);
    assert_int_equal(particles.count, other->step.particles.count);
    assert_memory_equal(particles.records, other->step.particles.records,
                        (size_t)particles.count * sizeof *particles.records);
    sk_world_copy_free(copy);
    selkie_world_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_2d),
        cmocka_unit_test(test_frames_3d),
        cmocka_unit_test(test_frame_outlives_world),
    };
    if (getenv("SELKIE_TEST_FILTER")) /* for tools that take long: a pattern of names */
        cmocka_set_test_filter(getenv("SELKIE_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

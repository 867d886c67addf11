/* The files of a world: an empty one keeps its columns, and a world of one thread writes and reads with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <selkie/selkie.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/writer.h"
#include "scratch_folder.h"

/* A square basin; `filled` from the start, or by a source that begins later. */
static selkie_world *make_world(int filled, int cells, int threads)
{
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    scene.domain.dimension = 2;
    scene.domain.size[0] = scene.domain.size[1] = 1;
    scene.domain.resolution = cells;
    selkie_liquid_def liquid;
    selkie_liquid_defaults(&liquid);
    selkie_source_def source;
    selkie_source_defaults(&source);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_BOX);
    for (int axis = 0; axis < 3; axis++) {
        liquid.shape.min[axis] = 0;
        liquid.shape.max[axis] = axis == 1 ? 0.5 : 1;
    }
    source.shape = liquid.shape;
    source.start = 5;
    scene.liquids = &liquid;
    scene.sources = &source;
    scene.liquid_count = filled;
    scene.source_count = !filled;
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(&scene, &options, &world, &error))
        fail_msg("%s", error.message);
    return world;
}

/* The lines of a PLY header that name properties. */
static void read_properties(const char *name, char *lines, size_t size)
{
    FILE *file = fopen(in_root(name), "rb");
    assert_non_null(file);
    char line[256];
    lines[0] = 0;
    while (fgets(line, sizeof line, file) && strncmp(line, "end_header", 10) != 0)
        if (strncmp(line, "property", 8) == 0)
            strncat(lines, line, size - strlen(lines) - 1);
    fclose(file);
}

static void an_empty_frame_keeps_its_columns(void **state)
{
    (void)state;
    char empty[1024], full[1024];
    selkie_error error = {0};
    for (int filled = 0; filled < 2; filled++) {
        selkie_world *world = make_world(filled, 16, 1);
        assert_true((selkie_world_particle_count(world) > 0) == filled);
        assert_int_equal(selkie_write_particles(world, in_root(filled ? "full.ply" : "empty.ply"), &error), 0);
        assert_int_equal(selkie_write_particles(world, in_root(filled ? "full.vtp" : "empty.vtp"), &error), 0);
        selkie_world_destroy(world);
    }
    read_properties("empty.ply", empty, sizeof empty);
    read_properties("full.ply", full, sizeof full);
    assert_string_equal(empty, full);
    assert_non_null(strstr(empty, "velocity_x"));

    char *text = NULL;
    size_t bytes;
    assert_int_equal(sk_file_read(in_root("empty.vtp"), &text, &bytes, &error), 0);
    assert_non_null(strstr(text, "Name=\"velocity\""));
    assert_non_null(strstr(text, "Name=\"id\""));
    sk_release(NULL, text);
}

/* The thread writes the bytes of the world as it was when the frame was added, and returns its errors. */
static void a_thread_writes_the_same_files(void **state)
{
    (void)state;
    selkie_error error = {0};
    selkie_world *world = make_world(1, 16, 2);
    sk_writer *writer = NULL;
    assert_int_equal(sk_writer_create(&writer, &error), 0);
    for (int frame = 0; frame < 4; frame++) {
        char direct[64];
        snprintf(direct, sizeof direct, "direct_%d.ply", frame);
        assert_int_equal(selkie_write_particles(world, in_root(direct), &error), 0);
        char path[2][512];
        snprintf(path[0], sizeof path[0], "%s", in_root(frame == 0 ? "w0.ply" : frame == 1 ? "w1.ply" : "w2.ply"));
        snprintf(path[1], sizeof path[1], "%s", in_root(frame == 3 ? "w3.skp" : "other.skp"));
        const sk_writer_file files[2] = {{SK_WRITER_PARTICLES, path[0]}, {SK_WRITER_PARTICLES, path[1]}};
        assert_int_equal(sk_writer_add(writer, world, 2, files, &error), 0);
        assert_int_equal(selkie_world_step(world, &error), 0);
    }
    assert_int_equal(sk_writer_wait(writer, &error), 0);
    char *one = NULL, *other = NULL;
    size_t bytes[2];
    assert_int_equal(sk_file_read(in_root("direct_1.ply"), &one, &bytes[0], &error), 0);
    assert_int_equal(sk_file_read(in_root("w1.ply"), &other, &bytes[1], &error), 0);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(one, other, bytes[0]);
    sk_release(NULL, one);
    sk_release(NULL, other);

    /* A folder that does not exist: the error comes with the next call, and stays. */
    const sk_writer_file nowhere = {SK_WRITER_PARTICLES, "/nowhere/at/all.ply"};
    assert_int_equal(sk_writer_add(writer, world, 1, &nowhere, &error), 0);
    assert_int_not_equal(sk_writer_wait(writer, &error), 0);
    assert_non_null(strstr(error.message, "/nowhere/at/all.ply"));
    assert_int_not_equal(sk_writer_wait(writer, &error), 0);
    sk_writer_destroy(writer);
    selkie_world_destroy(world);
}

static void note_step(void *context, int64_t step)
{
    *(int64_t *)context = step;
}

/* A checkpoint of the thread has the bytes of one that was saved at that moment. None is written behind a frame that
 * could not be written: a run resumes only behind frames that are there. */
static void a_thread_writes_checkpoints(void **state)
{
    (void)state;
    selkie_error error = {0};
    selkie_world *world = make_world(1, 16, 2);
    sk_writer *writer = NULL;
    int64_t noted = -1;
    char path[512], folder[512];
    snprintf(folder, sizeof folder, "%s", in_root(""));
    snprintf(path, sizeof path, "%s", in_root("thread.selkie"));
    sk_writer_checkpoint file = {path, folder, 0, note_step, &noted};
    assert_int_equal(sk_writer_create(&writer, &error), 0);
    for (; file.step < 3; file.step++) {
        assert_int_equal(selkie_world_step(world, &error), 0);
        assert_int_equal(selkie_world_save(world, in_root("direct.selkie"), &error), 0);
        assert_int_equal(sk_writer_add_checkpoint(writer, world, &file, &error), 0);
    }
    assert_int_equal(selkie_world_step(world, &error), 0);
    assert_int_equal(sk_writer_wait(writer, &error), 0);
    assert_int_equal(noted, 2);
    char *one = NULL, *other = NULL;
    size_t bytes[2];
    assert_int_equal(sk_file_read(in_root("direct.selkie"), &one, &bytes[0], &error), 0);
    assert_int_equal(sk_file_read(path, &other, &bytes[1], &error), 0);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(one, other, bytes[0]);
    sk_release(NULL, one);
    sk_release(NULL, other);

    const sk_writer_file nowhere = {SK_WRITER_PARTICLES, "/nowhere/at/all.ply"};
    assert_int_equal(remove(path), 0);
    assert_int_equal(sk_writer_add(writer, world, 1, &nowhere, &error), 0);
    sk_writer_add_checkpoint(writer, world, &file, &error);
    for (int n = 0; n < 2; n++) { /* the error stays */
        assert_int_not_equal(sk_writer_wait(writer, &error), 0);
        assert_int_not_equal(sk_writer_add_checkpoint(writer, world, &file, &error), 0);
        assert_non_null(strstr(error.message, "/nowhere/at/all.ply"));
    }
    sk_writer_destroy(writer);
    assert_int_equal(noted, 2);
    assert_null(fopen(path, "rb"));
    selkie_world_destroy(world);
}

static int count_threads(void)
{
    int count = -1;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "Threads: %d", &count) != 1)
        continue;
    if (file)
        fclose(file);
    return count;
}

/* The OpenMP runtime keeps the threads that it starts, so a count at the end sees all of them. */
static void a_world_of_one_thread_uses_one(void **state)
{
    (void)state;
    omp_set_num_threads(4); /* what a caller may have set for its own loops */
    if (count_threads() != 1)
        skip();
    selkie_error error = {0};
    selkie_world *world = make_world(1, 128, 1); /* 73,728 particles: several batches of a file */
    assert_int_equal(selkie_world_step(world, &error), 0);
    assert_int_equal(selkie_write_particles(world, in_root("full.ply"), &error), 0);
    assert_int_equal(selkie_write_particles(world, in_root("full.vtp"), &error), 0);
    char path[512];
    snprintf(path, sizeof path, "%s", in_root("again.ply"));
    const sk_writer_file file = {SK_WRITER_PARTICLES, path};
    assert_int_equal(sk_writer_add(NULL, world, 1, &file, &error), 0); /* a writer without a thread */
    assert_int_equal(selkie_world_save(world, in_root("state.selkie"), &error), 0);
    assert_int_equal(selkie_world_load(world, in_root("state.selkie"), &error), 0);
    selkie_world_destroy(world);
    assert_int_equal(count_threads(), 1);
    assert_int_equal(omp_get_max_threads(), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_world_of_one_thread_uses_one),
        cmocka_unit_test(an_empty_frame_keeps_its_columns),
        cmocka_unit_test(a_thread_writes_the_same_files),
        cmocka_unit_test(a_thread_writes_checkpoints),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

/* The public interface: worlds saved, loaded and written out; damaged checkpoints that change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "sanitized.h"
#include "selkie_config.h"
#include "world_cases.h"

/* --- Saving and loading --- */

static void loaded_worlds_go_on_bit_for_bit(void **state)
{
    (void)state;
    char path[128];
    file_in(path, "checkpoint");
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int method = dimension == 2 ? SELKIE_METHOD_PIC : SELKIE_METHOD_APIC; method <= SELKIE_METHOD_APIC;
             method++) {
            case_parts c;
            dam(&c, dimension, (selkie_method)method);
            c.scene.domain.walls[1] = SELKIE_WALL_OPEN; /* so that some have left since the last sort */
            c.liquid.velocity[0] = 2.0;
            selkie_world *first = create(&c.scene, 2), *second = create(&c.scene, 1);
            run(first, 7);
            selkie_error error = {0};
            assert_int_equal(selkie_world_save(first, path, &error), SELKIE_OK);
            run(second, 2); /* something to forget */
            assert_int_equal(selkie_world_load(second, path, &error), SELKIE_OK);
            assert_true(same_state(first, second));
            for (int n = 0; n < 4; n++) {
                run(first, 1);
                run(second, 1);
                assert_true(same_state(first, second));
                assert_true(same_statistics(first, second));
                assert_true(same_probes(first, second));
            }
            selkie_world_destroy(first);
            selkie_world_destroy(second);
        }
    assert_int_equal(unlink(path), 0);
}

static unsigned char *read_file(const char *path, long *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)*size + 1);
    assert_int_equal(fread(bytes, 1, (size_t)*size, file), *size);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const unsigned char *bytes, long size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), size);
    fclose(file);
}

static void damaged_checkpoints_change_nothing(void **state)
{
    (void)state;
    char path[128], broken[128];
    file_in(path, "checkpoint");
    file_in(broken, "broken");
    case_parts c;
    dam(&c, 2, SELKIE_METHOD_APIC);
    selkie_world *saved = create(&c.scene, 2), *world = create(&c.scene, 2), *twin = create(&c.scene, 2);
    run(saved, 5);
    run(world, 2);
    run(twin, 2);
    selkie_error error = {0};
    assert_int_equal(selkie_world_save(saved, path, &error), SELKIE_OK);
    long size;
    unsigned char *bytes = read_file(path, &size);
    /* A bit anywhere, an end anywhere, a tail, nothing at all. */
    for (int n = 0; n < 60; n++) {
        long at = n < 30 ? n * 9 : (long)(((double)n / 60) * (double)size);
        bytes[at] ^= (unsigned char)(1 << n % 8);
        write_file(broken, bytes, size);
        bytes[at] ^= (unsigned char)(1 << n % 8);
        memset(&error, 0, sizeof error);
        assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "broken"));
        write_file(broken, bytes, at);
        assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
    }
    bytes[size] = 0;
    write_file(broken, bytes, size + 1);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
    assert_int_equal(unlink(broken), 0);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FILE);
    free(bytes);

    /* Whole, but of another scene. */
    case_parts other;
    dam(&other, 2, SELKIE_METHOD_FLIP);
    selkie_world *elsewhere = create(&other.scene, 2);
    assert_int_equal(selkie_world_save(elsewhere, broken, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "affine"));
    selkie_world_destroy(elsewhere);
    other.scene.domain.cell_size = 1.0 / 20;
    selkie_scene_set_method(&other.scene, SELKIE_METHOD_APIC);
    elsewhere = create(&other.scene, 2);
    assert_int_equal(selkie_world_save(elsewhere, broken, &error), SELKIE_OK);
    assert_int_equal(selkie_world_load(world, broken, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "another scene"));
    selkie_world_destroy(elsewhere);

    assert_true(same_state(world, twin));
    run(world, 2);
    run(twin, 2);
    assert_true(same_state(world, twin));
    /* And then the good one. */
    assert_int_equal(selkie_world_load(world, path, &error), SELKIE_OK);
    assert_true(same_state(world, saved));
    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/no/such/folder", folder);
    assert_int_equal(selkie_world_save(world, nowhere, &error), SELKIE_ERROR_FILE);
    assert_non_null(strstr(error.message, "no/such/folder"));
    assert_int_equal(unlink(path) | unlink(broken), 0);
    selkie_world_destroy(saved);
    selkie_world_destroy(world);
    selkie_world_destroy(twin);
}

/* Makes one part of a header senseless; there are `senseless_parts` of them. */
enum { senseless_parts = 22 };

static void spoil(sk_state_header *bad, int part)
{
    switch (part) {
    case 0:
        bad->version++;
        break;
    case 1:
        bad->dimension = 3;
        break;
    case 2:
        bad->cells[1]++;
        break;
    case 3:
        bad->particles_per_cell = 1;
        break;
    case 4:
        bad->cell_size = NAN;
        break;
    case 5:
        bad->time = NAN;
        break;
    case 6:
        bad->time = INFINITY;
        break;
    case 7:
        bad->time = -1.0;
        break;
    case 8:
        bad->time = 17.0; /* far behind the frame that it claims */
        break;
    case 9:
        bad->last_dt = NAN;
        break;
    case 10:
        bad->last_dt = -0.1;
        break;
    case 11:
        bad->max_speed = INFINITY;
        break;
    case 12:
        bad->step_count = -1;
        break;
    case 13:
        bad->frame = INT64_MAX;
        break;
    case 14:
        bad->frame += 3;
        break;
    case 15:
        bad->particle_count--;
        break;
    case 16:
        bad->particle_count = INT64_MAX;
        break;
    case 17:
        bad->emitted = INT64_MAX / 2;
        break;
    case 18:
        bad->drained = INT64_MIN;
        break;
    case 19:
        bad->start_occupied_cells = -1;
        break;
    case 20:
        bad->start_particles = INT64_MAX;
        break;
    default:
        bad->particle_count = -1;
        break;
    }
}

/* Sound checksums around a state that makes no sense: refused, and nothing is changed. */
static void senseless_states_are_refused(void **state)
{
    (void)state;
    case_parts c;
    dam(&c, 2, SELKIE_METHOD_APIC);
    selkie_world *saved = create(&c.scene, 2), *world = create(&c.scene, 2), *twin = create(&c.scene, 2);
    run(saved, 5);
    sk_state_header header;
    sk_state_chunk chunks[SK_STATE_MAX_CHUNKS];
    int count = sk_world_state(saved, &header, chunks);
    for (int part = 0; part < senseless_parts; part++) {
        sk_state_header bad = header;
        spoil(&bad, part);
        chunks[0].data = &bad;
        selkie_error error = {0};
        selkie_code code = sk_world_restore(world, count, chunks, "the file", &error);
        assert_true(code == SELKIE_ERROR_FORMAT || code == SELKIE_ERROR_INPUT);
        assert_non_null(strstr(error.message, "the file"));
    }
    chunks[0].data = &header;
    for (int missing = 0; missing < count; missing++) {
        sk_state_chunk fewer[SK_STATE_MAX_CHUNKS];
        memcpy(fewer, chunks, sizeof fewer);
        fewer[missing].name[0] = '-';
        assert_int_equal(sk_world_restore(world, count, fewer, "the file", NULL), SELKIE_ERROR_FORMAT);
        fewer[missing] = chunks[missing];
        fewer[missing].bytes -= 4;
        assert_int_equal(sk_world_restore(world, count, fewer, "the file", NULL), SELKIE_ERROR_FORMAT);
    }
    assert_true(same_state(world, twin));
    run(world, 1);
    run(twin, 1);
    assert_true(same_state(world, twin));
    assert_int_equal(sk_world_restore(world, count, chunks, "the file", NULL), SELKIE_OK);
    assert_true(same_state(world, saved));

    /* Frames of another length: the next one would lie in the past. */
    char path[128];
    file_in(path, "checkpoint");
    assert_int_equal(selkie_world_save(saved, path, NULL), SELKIE_OK);
    c.scene.time.fps = 500.0;
    selkie_world *hasty = create(&c.scene, 2);
    selkie_error error = {0};
    assert_int_equal(selkie_world_load(hasty, path, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "time.fps"));
    assert_int_equal(unlink(path), 0);
    selkie_world_destroy(hasty);
    selkie_world_destroy(saved);
    selkie_world_destroy(world);
    selkie_world_destroy(twin);
}

/* --- Files of results --- */

static void check_start(const char *path, const char *start, size_t length)
{
    long size;
    unsigned char *bytes = read_file(path, &size);
    assert_true(size > (long)length);
    assert_memory_equal(bytes, start, length);
    free(bytes);
    assert_int_equal(unlink(path), 0);
}

static void results_are_written(void **state)
{
    (void)state;
    char path[128];
    selkie_error error = {0};
    case_parts c;
    dam(&c, 3, SELKIE_METHOD_FLIP);
    c.scene.render.width = 96;
    c.scene.render.height = 64;
    selkie_world *world = create(&c.scene, 2);
    run(world, 2);
    assert_int_equal(selkie_write_particles(world, file_in(path, "p.ply"), &error), SELKIE_OK);
    check_start(path, "ply\n", 4);
    assert_int_equal(selkie_write_particles(world, file_in(path, "p.vtp"), &error), SELKIE_OK);
    check_start(path, "<", 1);
    assert_int_equal(selkie_write_particles(world, file_in(path, "p.docx"), &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "p.docx"));
    assert_int_equal(selkie_write_surface(world, file_in(path, "s.ply"), &error), SELKIE_OK);
    check_start(path, "ply\n", 4);
    assert_int_equal(selkie_write_surface(world, file_in(path, "s.obj"), &error), SELKIE_OK);
    assert_int_equal(unlink(path), 0);
    selkie_code code = selkie_write_picture(world, file_in(path, "p.png"), &error);
#if SELKIE_HAVE_PNG
    if (code != SELKIE_OK)
        fail_msg("%s", error.message);
    check_start(path, "\x89PNG\r\n\x1a\n", 8);
#else
    assert_int_equal(code, SELKIE_ERROR_UNSUPPORTED);
#endif
    /* The same in memory. */
    selkie_surface surface;
    assert_int_equal(selkie_world_surface(world, &surface, &error), SELKIE_OK);
    assert_in_range(surface.vertex_count, 100, 1000000);
    assert_in_range(surface.triangle_count, surface.vertex_count, 4 * surface.vertex_count);
    double volume = 0.0; /* m3, by the tetrahedra of the triangles with the origin */
    for (int64_t t = 0; t < surface.triangle_count; t++) {
        const float *p[3];
        for (int k = 0; k < 3; k++) {
            assert_in_range(surface.triangles[3 * t + k], 0, surface.vertex_count - 1);
            p[k] = &surface.positions[3 * (size_t)surface.triangles[3 * t + k]];
        }
        volume += ((double)p[0][0] * ((double)p[1][1] * (double)p[2][2] - (double)p[1][2] * (double)p[2][1]) +
                   (double)p[0][1] * ((double)p[1][2] * (double)p[2][0] - (double)p[1][0] * (double)p[2][2]) +
                   (double)p[0][2] * ((double)p[1][0] * (double)p[2][1] - (double)p[1][1] * (double)p[2][0])) /
                  6.0;
    }
    /* That of the particles; a surface of few cells is off by some percent. */
    const double liquid = selkie_world_particle_mass(world) / 1000.0 * (double)selkie_world_particle_count(world);
    assert_true(fabs(volume / liquid - 1.0) < 0.15);
    selkie_surface_free(&surface);
    selkie_picture picture;
    assert_int_equal(selkie_world_picture(world, &picture, &error), SELKIE_OK);
    assert_true(picture.width == 96 && picture.height == 64);
    int differ = 0;
    for (int i = 3; i < 3 * 96 * 64; i++)
        differ += picture.pixels[i] != picture.pixels[i % 3];
    assert_true(differ > 1000);
    selkie_picture_free(&picture);

    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/none/p.ply", folder);
    assert_int_equal(selkie_write_particles(world, nowhere, &error), SELKIE_ERROR_FILE);
    assert_int_equal(selkie_write_surface(world, nowhere, &error), SELKIE_ERROR_FILE);
    selkie_world_destroy(world);

    dam(&c, 2, SELKIE_METHOD_FLIP);
    world = create(&c.scene, 2);
    assert_int_equal(selkie_write_surface(world, file_in(path, "s.ply"), &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "domain.dimension"));
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded_worlds_go_on_bit_for_bit),
        cmocka_unit_test(damaged_checkpoints_change_nothing),
        cmocka_unit_test(senseless_states_are_refused),
        cmocka_unit_test(results_are_written),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

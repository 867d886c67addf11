/* Files: whole or not at all, checked when read, the same for every reader. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "io/atomic_file.h"
#include "io/container.h"
#include "io/folder.h"
#include "io/mesh_file.h"
#include "io/number.h"
#include "io/particles_file.h"
#include "io/table_file.h"
#include "scratch_folder.h"

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void assert_text(const char *path, const char *text)
{
    char *data;
    size_t bytes;
    selkie_error error;
    assert_int_equal(sk_file_read(path, &data, &bytes, &error), SELKIE_OK);
    assert_string_equal(data, text);
    sk_release(NULL, data);
}

static void assert_says(const selkie_error *error, const char *part)
{
    if (!strstr(error->message, part))
        fail_msg("'%s' does not say '%s'", error->message, part);
    assert_null(strchr(error->message, '\n'));
}

/* The number of entries in the folder that are left over from atomic writes. */
static int part_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "ls -A '%s' | grep -c '\\.part$'", root);
    FILE *pipe = popen(command, "r");
    int count = -1;
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

/* --- Atomic files --- */

static void atomic_replaces_whole(void **state)
{
    (void)state;
    const char *path = in_root("a.txt");
    selkie_error error;
    assert_int_equal(sk_file_write(path, "first", 5, &error), SELKIE_OK);
    sk_atomic_file *file;
    assert_int_equal(sk_atomic_open(path, 0, &file, &error), SELKIE_OK);
    assert_int_equal(sk_atomic_write(file, "second", 6, &error), SELKIE_OK);
    assert_text(path, "first"); /* until the very end */
    assert_int_equal(sk_atomic_commit(&file, &error), SELKIE_OK);
    assert_null(file);
    assert_text(path, "second");
    assert_int_equal(sk_atomic_open(path, 0, &file, &error), SELKIE_OK);
    assert_int_equal(sk_atomic_print(file, &error, "%d", 3), SELKIE_OK);
    sk_atomic_abandon(&file);
    assert_text(path, "second");
    assert_int_equal(part_files(), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(status.st_mode & 0777, 0666 & ~mask);
}

static void atomic_follows_links_and_reuses_leftovers(void **state)
{
    (void)state;
    selkie_error error;
    write_text(in_root("real.txt"), "old");
    assert_int_equal(symlink("real.txt", in_root("link.txt")), 0);
    write_text(in_root("real.txt.part"), "what a killed run left behind, longer than the new content");
    assert_int_equal(sk_file_write(in_root("link.txt"), "new", 3, &error), SELKIE_OK);
    assert_text(in_root("real.txt"), "new");
    char target[64] = "";
    assert_int_equal(readlink(in_root("link.txt"), target, sizeof target - 1), 8);
    assert_int_equal(part_files(), 0);
}

static void atomic_says_what_is_wrong(void **state)
{
    (void)state;
    selkie_error error;
    assert_int_equal(sk_file_write(in_root("no/such/a.txt"), "x", 1, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "no/such/a.txt");
    assert_says(&error, "does not exist");
    write_text(in_root("plain"), "file");
    assert_int_equal(sk_file_write(in_root("plain/a.txt"), "x", 1, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "not a folder");
    assert_int_equal(sk_file_write(root, "x", 1, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "is a folder");
    assert_int_equal(sk_file_write("/dev/full", "x", 1, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "/dev/full");
    assert_says(&error, "disk is full");
    assert_int_equal(sk_file_write("/dev/null", "x", 1, NULL), SELKIE_OK);
    struct stat status;
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    char *data;
    size_t bytes;
    assert_int_equal(sk_file_read(in_root("none"), &data, &bytes, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "no such file");
    assert_int_equal(sk_file_read(root, &data, &bytes, &error), SELKIE_ERROR_FILE);
    if (geteuid() != 0) { /* root may write anywhere */
        assert_int_equal(mkdir(in_root("closed"), 0555), 0);
        assert_int_equal(sk_file_write(in_root("closed/a.txt"), "x", 1, &error), SELKIE_ERROR_FILE);
        assert_says(&error, "no permission");
    }
}

static void atomic_two_writers_do_not_mix(void **state)
{
    (void)state;
    selkie_error error;
    sk_atomic_file *first, *second;
    assert_int_equal(sk_atomic_open(in_root("b.txt"), 0, &first, &error), SELKIE_OK);
    assert_int_equal(sk_atomic_open(in_root("b.txt"), 0, &second, &error), SELKIE_ERROR_FILE);
    assert_null(second);
    assert_says(&error, "another process");
    assert_int_equal(sk_atomic_write(first, "1", 1, &error), SELKIE_OK);
    assert_int_equal(sk_atomic_commit(&first, &error), SELKIE_OK);
    assert_text(in_root("b.txt"), "1");
}

typedef selkie_code (*limited_writer)(const char *path, selkie_error *error);

/* A file-size limit stands in for a full disk: writes come back short, then fail. */
static void with_size_limit(limited_writer writer, const char *path)
{
    selkie_error error;
    write_text(path, "what was there before");
    struct rlimit before, tiny;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tiny = before;
    tiny.rlim_cur = 10000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    selkie_code code = writer(path, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(code, SELKIE_ERROR_FILE);
    assert_says(&error, path);
    assert_says(&error, "limit");
    assert_text(path, "what was there before");
    assert_int_equal(part_files(), 0);
}

static selkie_code write_plain(const char *path, selkie_error *error)
{
    static char zeros[50000];
    return sk_file_write(path, zeros, sizeof zeros, error);
}

static selkie_code write_big_container(const char *path, selkie_error *error)
{
    static char zeros[50000];
    sk_chunk chunks[2] = {{"small", zeros, 100}, {"big", zeros, sizeof zeros}};
    return sk_container_write(path, 2, chunks, error);
}

static selkie_code write_big_frame(const char *path, selkie_error *error)
{
    static float positions[3 * 5000];
    sk_frame frame = {.dimension = 3, .count = 5000, .position = positions, .position_stride = 12};
    return sk_particles_write_ply(&frame, path, error);
}

static selkie_code write_big_frame_vtp(const char *path, selkie_error *error)
{
    static float positions[3 * 5000];
    sk_frame frame = {.dimension = 3, .count = 5000, .position = positions, .position_stride = 12};
    return sk_particles_write_vtp(&frame, path, error);
}

static void full_disk_keeps_what_was_there(void **state)
{
    (void)state;
    with_size_limit(write_plain, in_root("limited.bin"));
    with_size_limit(write_big_container, in_root("limited.selkie"));
    with_size_limit(write_big_frame, in_root("limited.ply"));
    with_size_limit(write_big_frame_vtp, in_root("limited.vtp"));
}

static void full_device_for_every_writer(void **state)
{
    (void)state;
    selkie_error error;
    sk_chunk chunk = {"data", "12345", 5};
    assert_int_equal(sk_container_write("/dev/full", 1, &chunk, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "disk is full");
    assert_int_equal(write_big_frame("/dev/full", &error), SELKIE_ERROR_FILE);
    assert_says(&error, "disk is full");
    float points[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
    uint32_t triangle[3] = {0, 1, 2};
    sk_mesh mesh = {.vertex_count = 3, .positions = points, .triangle_count = 1, .triangles = triangle};
    sk_mesh_frame frame = {.mesh = &mesh};
    assert_int_equal(sk_mesh_write_obj(&frame, "/dev/full", &error), SELKIE_ERROR_FILE);
    assert_int_equal(sk_mesh_write_ply(&frame, "/dev/full", &error), SELKIE_ERROR_FILE);
}

/* --- Containers --- */

static void container_round_trip(void **state)
{
    (void)state;
    selkie_error error;
    size_t large = (9 << 20) + 12345; /* more than two pieces */
    unsigned char *noise = malloc(large);
    for (size_t i = 0; i < large; i++)
        noise[i] = (unsigned char)sk_hash64(i);
    assert_int_equal(sk_checksum(noise, large), crc32(0, noise, (uInt)large));
    sk_chunk chunks[5] = {{"header", "abc", 3},
                          {"empty", NULL, 0},
                          {"twenty_three_characters", noise, large},
                          {"aligned", noise, 64},
                          {"last_is_empty", NULL, 0}};
    const char *path = in_root("c.selkie");
    assert_int_equal(sk_container_write(path, 5, chunks, &error), SELKIE_OK);
    sk_container *container;
    assert_int_equal(sk_container_read(path, &container, &error), SELKIE_OK);
    assert_int_equal(sk_container_count(container), 5);
    for (int c = 0; c < 5; c++) {
        const sk_chunk *found = sk_container_find(container, chunks[c].name);
        assert_ptr_equal(found, sk_container_at(container, c));
        assert_int_equal(found->bytes, chunks[c].bytes);
        assert_int_equal((uintptr_t)found->data % 64, 0);
        if (found->bytes > 0)
            assert_memory_equal(found->data, chunks[c].data, found->bytes);
    }
    assert_null(sk_container_find(container, "nothing"));
    sk_container_drop(container, "twenty_three_characters");
    assert_null(sk_container_find(container, "twenty_three_characters")->data);
    sk_container_close(container);

    assert_int_equal(sk_container_write(path, 0, NULL, &error), SELKIE_OK);
    assert_int_equal(sk_container_read(path, &container, &error), SELKIE_OK);
    assert_int_equal(sk_container_count(container), 0);
    sk_container_close(container);
    free(noise);
}

static void container_refuses_bad_calls(void **state)
{
    (void)state;
    selkie_error error;
    sk_chunk twice[2] = {{"same", "a", 1}, {"same", "b", 1}};
    assert_int_equal(sk_container_write(in_root("d"), 2, twice, &error), SELKIE_ERROR_INTERNAL);
    sk_chunk nameless = {"", "a", 1};
    assert_int_equal(sk_container_write(in_root("d"), 1, &nameless, &error), SELKIE_ERROR_INTERNAL);
    sk_container *container;
    assert_int_equal(sk_container_read(in_root("missing"), &container, &error), SELKIE_ERROR_FILE);
    assert_null(container);
    assert_says(&error, "missing");
    assert_int_equal(sk_container_read(root, &container, &error), SELKIE_ERROR_FILE);
}

static void container_finds_any_damage(void **state)
{
    (void)state;
    selkie_error error;
    sk_chunk chunks[3] = {{"first", "0123456789", 10}, {"second", "abc", 3}, {"third", NULL, 0}};
    const char *path = in_root("e.selkie");
    assert_int_equal(sk_container_write(path, 3, chunks, &error), SELKIE_OK);
    char *data;
    size_t bytes;
    assert_int_equal(sk_file_read(path, &data, &bytes, &error), SELKIE_OK);
    sk_container *container;
    assert_int_equal(sk_container_parse(data, bytes, "memory", &container, &error), SELKIE_OK);
    assert_memory_equal(sk_container_find(container, "second")->data, "abc", 3);
    sk_container_close(container);
    for (size_t length = 0; length < bytes; length++) {
        char *cut = malloc(length + 1); /* its own block, so that a sanitizer sees every step too far */
        memcpy(cut, data, length);
        assert_int_equal(sk_container_parse(cut, length, "cut", &container, &error), SELKIE_ERROR_FORMAT);
        assert_null(container);
        free(cut);
    }
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            data[i] ^= (char)(1 << bit);
            assert_int_equal(sk_container_parse(data, bytes, "flipped", &container, &error), SELKIE_ERROR_FORMAT);
            assert_says(&error, "flipped");
            data[i] ^= (char)(1 << bit);
        }
    /* The same through a file, and one byte too many. */
    write_text(path, "not a container at all, though long enough to be one");
    assert_int_equal(sk_container_read(path, &container, &error), SELKIE_ERROR_FORMAT);
    assert_says(&error, "e.selkie");
    char *longer = calloc(1, bytes + 1);
    memcpy(longer, data, bytes);
    assert_int_equal(sk_container_parse(longer, bytes + 1, "longer", &container, &error), SELKIE_ERROR_FORMAT);
    free(longer);
    sk_release(NULL, data);
}

/* --- Tables --- */

static const char *const stats_names[3] = {"step", "time", "a,\"b\""};

static void add_rows(sk_table_writer *writer, int from, int to)
{
    for (int step = from; step <= to; step++) {
        double row[3] = {step, step * 0.001, step == 3 ? NAN : 1.0 / 3 + 1e10 * step};
        assert_int_equal(sk_table_row(writer, row, NULL), SELKIE_OK);
    }
}

static void table_round_trip(void **state)
{
    (void)state;
    selkie_error error;
    const char *path = in_root("stats.csv");
    sk_table_writer *writer;
    assert_int_equal(sk_table_create(path, 3, stats_names, &writer, &error), SELKIE_OK);
    double row[3] = {12345678901.0, 0.1, -INFINITY};
    assert_int_equal(sk_table_row(writer, row, &error), SELKIE_OK);
    assert_text(path, "step,time,\"a,\"\"b\"\"\"\n12345678901,0.1,-inf\n"); /* there before the table is closed */
    add_rows(writer, 1, 5);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    sk_table *table;
    assert_int_equal(sk_table_read(path, &table, &error), SELKIE_OK);
    assert_int_equal(table->column_count, 3);
    assert_int_equal(table->row_count, 6);
    assert_string_equal(table->names[2], "a,\"b\"");
    assert_true(sk_table_column(table, "step")[0] == 12345678901.0);
    assert_true(fabs(sk_table_column(table, "time")[5] - 0.005) < 1e-12);
    assert_true(isnan(table->columns[2][3]));
    assert_null(sk_table_column(table, "none"));
    sk_table_free(table);
}

static void table_resumes_at_a_step(void **state)
{
    (void)state;
    selkie_error error;
    const char *path = in_root("resume.csv");
    sk_table_writer *writer;
    assert_int_equal(sk_table_create(path, 3, stats_names, &writer, &error), SELKIE_OK);
    add_rows(writer, 1, 4);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    char *good, *again;
    size_t bytes, bytes_again;
    assert_int_equal(sk_file_read(path, &good, &bytes, &error), SELKIE_OK);
    /* The run goes on to step 9, dies in the middle of a row, and is taken up from step 4 again. */
    assert_int_equal(sk_table_resume(path, 3, stats_names, 4, &writer, &error), SELKIE_OK);
    add_rows(writer, 5, 9);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    FILE *file = fopen(path, "ab");
    fputs("10,0.0", file);
    fclose(file);
    assert_int_equal(sk_table_resume(path, 3, stats_names, 4, &writer, &error), SELKIE_OK);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    assert_int_equal(sk_file_read(path, &again, &bytes_again, &error), SELKIE_OK);
    assert_string_equal(good, again);
    sk_release(NULL, good);
    sk_release(NULL, again);
    /* No table yet, and a table whose header was cut. */
    assert_int_equal(sk_table_resume(in_root("fresh.csv"), 3, stats_names, 4, &writer, &error), SELKIE_OK);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    assert_text(in_root("fresh.csv"), "step,time,\"a,\"\"b\"\"\"\n");
    write_text(path, "step,ti");
    assert_int_equal(sk_table_resume(path, 3, stats_names, 4, &writer, &error), SELKIE_OK);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    assert_text(path, "step,time,\"a,\"\"b\"\"\"\n");
}

static void table_refuses_what_is_not_its_own(void **state)
{
    (void)state;
    selkie_error error;
    sk_table_writer *writer;
    const char *path = in_root("other.csv");
    static const char *const names[2] = {"step", "time"};
    write_text(path, "step,speed\n1,2\n");
    assert_int_equal(sk_table_resume(path, 2, names, 4, &writer, &error), SELKIE_ERROR_FORMAT);
    assert_null(writer);
    assert_says(&error, "other.csv");
    assert_text(path, "step,speed\n1,2\n");
    write_text(path, "step,time\n1,0.1\nrubbish\n2,0.2\n");
    assert_int_equal(sk_table_resume(path, 2, names, 4, &writer, &error), SELKIE_ERROR_FORMAT);
    assert_says(&error, "line 3");
    /* The same rubbish behind all that is wanted is what a power cut leaves. */
    assert_int_equal(sk_table_resume(path, 2, names, 1, &writer, &error), SELKIE_OK);
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    assert_text(path, "step,time\n1,0.1\n");
    assert_int_equal(sk_table_create(in_root("no/t.csv"), 2, names, &writer, &error), SELKIE_ERROR_FILE);
    assert_says(&error, "no/t.csv");
}

static void table_full_disk_takes_the_row_back(void **state)
{
    (void)state;
    selkie_error error;
    sk_table_writer *writer;
    const char *path = in_root("limit.csv");
    static const char *const names[2] = {"step", "time"};
    assert_int_equal(sk_table_create(path, 2, names, &writer, &error), SELKIE_OK);
    struct rlimit before, tiny;
    getrlimit(RLIMIT_FSIZE, &before);
    tiny = before;
    tiny.rlim_cur = 12;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tiny);
    double row[2] = {1, 0.5};
    selkie_code code = sk_table_row(writer, row, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(code, SELKIE_ERROR_FILE);
    assert_says(&error, "limit.csv");
    assert_text(path, "step,time\n");
    assert_int_equal(sk_table_row(writer, row, &error), SELKIE_OK); /* room again */
    assert_int_equal(sk_table_close(&writer, &error), SELKIE_OK);
    assert_text(path, "step,time\n1,0.5\n");
}

static selkie_code parse_table(const char *text, sk_table **table, selkie_error *error)
{
    return sk_table_parse(text, strlen(text), "text", table, error);
}

static void table_reader_takes_and_refuses(void **state)
{
    (void)state;
    selkie_error error;
    sk_table *table;
    assert_int_equal(parse_table("\xef\xbb\xbf# measured\r\nx, y\r\n1 , 2e-3\r\n\r\n,nan\r\n5,6", &table, &error),
                     SELKIE_OK);
    assert_int_equal(table->row_count, 3);
    assert_true(table->columns[0][0] == 1 && table->columns[1][0] == 0.002);
    assert_true(isnan(table->columns[0][1]) && table->columns[1][2] == 6);
    sk_table_free(table);
    assert_int_equal(parse_table("x,y\n1,2\n3", &table, &error), SELKIE_OK); /* being written */
    assert_int_equal(table->row_count, 1);
    sk_table_free(table);
    static const char *const bad[] = {"",
                                      "# only this\n",
                                      "\"x\n1\n",
                                      "x,y\n1\n2,3\n",
                                      "x,y\n1,2,3\n4,5\n",
                                      "x,y\n1,two\n4,5\n",
                                      "x,y\n0x10,1\n4,5\n",
                                      "x,y\n1 2,3\n4,5\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse_table(bad[i], &table, &error), SELKIE_ERROR_FORMAT);
        assert_null(table);
        assert_says(&error, "text");
    }
    char many[20000] = "a";
    for (int i = 0; i < 5000; i++)
        strcat(many, ",a");
    assert_int_equal(parse_table(many, &table, &error), SELKIE_ERROR_FORMAT);
    /* Any cut and any changed byte: refused or read, never worse. */
    const char *text = "step,\"t\"\n1,0.5\n2,nan\n";
    for (size_t length = 0; length <= strlen(text); length++)
        for (int value = 0; value < 256; value += 3) {
            char *copy = calloc(1, length + 1);
            memcpy(copy, text, length);
            if (length > 0)
                copy[length / 2] = (char)value;
            if (sk_table_parse(copy, length, "copy", &table, &error) == SELKIE_OK)
                sk_table_free(table);
            free(copy);
        }
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "cs_CZ.UTF-8"};
    int found = 0;
    for (size_t i = 0; i < sizeof commas / sizeof *commas && !found; i++)
        found = setlocale(LC_NUMERIC, commas[i]) != NULL;
    if (!found)
        skip(); /* no locale with decimal commas on this machine */
    table_round_trip(NULL);
    setlocale(LC_NUMERIC, "C");
}

/* --- Folders --- */

static void folders(void **state)
{
    (void)state;
    selkie_error error;
    const char *deep = in_root("run/one//frames/");
    assert_int_equal(sk_folder_make(deep, &error), SELKIE_OK);
    assert_int_equal(sk_folder_make(deep, &error), SELKIE_OK);
    assert_true(sk_folder_exists(in_root("run/one/frames")));
    assert_true(sk_folder_is_empty(in_root("run/one/frames")));
    assert_true(sk_folder_is_empty(in_root("nowhere")));
    static const char *const names[] = {
        "particles_0010.ply",      "particles_0002.ply", "particles_10000.ply", "particles_.ply",
        "particles_0001.ply.part", "particles_0x1.ply",  "surface_0001.ply",    "particles_99999999999999999999.ply"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", in_root("run/one/frames"), names[i]);
        write_text(path, "");
    }
    assert_false(sk_folder_is_empty(in_root("run/one/frames")));
    sk_file_list list;
    assert_int_equal(sk_folder_list(in_root("run/one/frames"), "particles_", ".ply", &list, &error), SELKIE_OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.files[0].number, 2);
    assert_int_equal(list.files[1].number, 10);
    assert_int_equal(list.files[2].number, 10000);
    char expected[256];
    assert_int_equal(
        sk_numbered_path(expected, sizeof expected, in_root("run/one/frames"), "particles_", 2, ".ply", &error),
        SELKIE_OK);
    assert_string_equal(list.files[0].path, expected);
    assert_int_equal(sk_numbered_path(expected, 10, in_root("run/one/frames"), "particles_", 2, ".ply", &error),
                     SELKIE_ERROR_FILE);
    sk_file_list_free(&list);
    assert_int_equal(sk_folder_list(in_root("nowhere"), "a", "b", &list, &error), SELKIE_OK);
    assert_int_equal(list.count, 0);
    uint64_t space = 0, same = 0;
    assert_int_equal(sk_folder_free_space(root, &space, &error), SELKIE_OK);
    assert_true(space > 0);
    assert_int_equal(sk_folder_free_space(in_root("not/yet/there"), &same, &error), SELKIE_OK);
    assert_true(same > 0);
    write_text(in_root("a_file"), "");
    assert_int_equal(sk_folder_make(in_root("a_file"), &error), SELKIE_ERROR_FILE);
    assert_int_equal(sk_folder_make(in_root("a_file/below"), &error), SELKIE_ERROR_FILE);
    assert_says(&error, "a_file/below");
    assert_int_equal(sk_folder_make("", &error), SELKIE_ERROR_INPUT);
}

static void state_of_a_run(void **state)
{
    (void)state;
    selkie_error error;
    sk_run_state run;
    const char *folder = in_root("run/one");
    assert_int_equal(sk_run_look(folder, &run, &error), SELKIE_OK);
    assert_false(run.exists);
    write_text(in_root("run/one/scene.json"), "{}");
    assert_int_equal(sk_run_look(folder, &run, &error), SELKIE_OK);
    assert_true(run.exists && !run.finished);
    assert_int_equal(run.last_frame, 10000);
    assert_int_equal(run.frame_count, 3);
    assert_int_equal(sk_run_mark_finished(folder, 1234, 2.5, 5678901234, &error), SELKIE_OK);
    assert_text(in_root("run/one/finished"), "steps 1234 time 2.5 memory 5678901234\n");
    assert_true(sk_run_memory(folder) == 5678901234);
    assert_int_equal(sk_run_look(folder, &run, &error), SELKIE_OK);
    assert_true(run.finished);
    assert_int_equal(sk_run_mark_unfinished(folder, &error), SELKIE_OK);
    assert_true(sk_run_memory(folder) == 0);
    assert_int_equal(sk_run_mark_unfinished(folder, &error), SELKIE_OK);
    assert_int_equal(sk_run_look(folder, &run, &error), SELKIE_OK);
    assert_false(run.finished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atomic_replaces_whole),
        cmocka_unit_test(atomic_follows_links_and_reuses_leftovers),
        cmocka_unit_test(atomic_says_what_is_wrong),
        cmocka_unit_test(atomic_two_writers_do_not_mix),
        cmocka_unit_test(full_disk_keeps_what_was_there),
        cmocka_unit_test(full_device_for_every_writer),
        cmocka_unit_test(container_round_trip),
        cmocka_unit_test(container_refuses_bad_calls),
        cmocka_unit_test(container_finds_any_damage),
        cmocka_unit_test(table_round_trip),
        cmocka_unit_test(table_resumes_at_a_step),
        cmocka_unit_test(table_refuses_what_is_not_its_own),
        cmocka_unit_test(table_full_disk_takes_the_row_back),
        cmocka_unit_test(table_reader_takes_and_refuses),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(folders),
        cmocka_unit_test(state_of_a_run),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

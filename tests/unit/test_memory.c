/* Memory that counts: alignment, limits that hold to the byte, sizes that overflow, growth that keeps its content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"

static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100001, (8u << 20) - 64, (8u << 20) - 63, (9u << 20) + 12345};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes };

/* Every block starts at a cache line, can be written from end to end, and its bytes are given back when it is. */
static void blocks_are_aligned_and_counted(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    void *blocks[SIZE_COUNT];
    size_t asked = 0;
    for (int i = 0; i < SIZE_COUNT; i++) {
        size_t before = memory.used;
        blocks[i] = sk_allocate(&memory, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], 0xa5, sizes[i]);
        assert_true(memory.used - before >= sizes[i]);
        asked += sizes[i];
    }
    assert_true(memory.used >= asked);
    assert_int_equal(memory.peak, memory.used);
    size_t peak = memory.peak;
    for (int i = 0; i < SIZE_COUNT; i++)
        sk_release(&memory, blocks[i]);
    assert_int_equal(memory.used, 0);
    assert_int_equal(memory.peak, peak);
}

static void zeroed_blocks_are_zero(void **state)
{
    (void)state;
    for (int i = 0; i < SIZE_COUNT; i++) {
        /* Dirty memory first, so that zeros do not come from a fresh page. */
        void *dirty = sk_allocate(NULL, sizes[i]);
        memset(dirty, 0xff, sizes[i]);
        sk_release(NULL, dirty);
        unsigned char *block = sk_allocate_zeroed(NULL, sizes[i]);
        assert_non_null(block);
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(block[b], 0);
        sk_release(NULL, block);
    }
}

/* Whatever is asked for in whatever order, no more is in use than the limit; also where large blocks are rounded up to
 * whole pages. What was refused leaves no trace. */
static void the_limit_holds(void **state)
{
    (void)state;
    for (size_t limit = 64; limit < (40u << 20); limit = limit * 3 / 2 + 777) {
        sk_memory memory = {0, 0, limit};
        void *blocks[64];
        int count = 0;
        /* First what fits to the byte, so that any rounding beyond shows. */
        for (size_t bytes = limit > 128 ? limit / 64 * 64 - 64 : limit; bytes > 0 && count < 64; bytes /= 2) {
            size_t before = memory.used;
            void *block = sk_allocate(&memory, bytes);
            if (block)
                blocks[count++] = block;
            else
                assert_int_equal(memory.used, before);
            assert_true(memory.used <= limit);
            assert_true(memory.peak <= limit);
        }
        if (limit >= 1024)
            assert_true(count > 0);
        while (count)
            sk_release(&memory, blocks[--count]);
        assert_int_equal(memory.used, 0);
    }
    sk_memory full = {0, 0, 128};
    assert_null(sk_allocate(&full, 128)); /* its own note of the size does not fit beside it */
    void *block = sk_allocate(&full, 64);
    assert_non_null(block);
    assert_null(sk_allocate(&full, 0));
    sk_release(&full, block);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    static const size_t huge[] = {SIZE_MAX,       SIZE_MAX - 1,          SIZE_MAX - 63,         SIZE_MAX - 64,
                                  SIZE_MAX - 128, SIZE_MAX - (2u << 20), SIZE_MAX - (4u << 20), SIZE_MAX / 2 + 1};
    sk_memory memory = {0, 0, SIZE_MAX};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        assert_null(sk_allocate(NULL, huge[i]));
        assert_null(sk_allocate_zeroed(&memory, huge[i]));
    }
    assert_int_equal(memory.used, 0);
    selkie_error error;
    void *array = NULL;
    size_t capacity = 0;
    assert_int_equal(sk_reserve(&memory, &array, &capacity, SIZE_MAX / 8 + 2, 8, "a test", &error),
                     SELKIE_ERROR_MEMORY);
    assert_non_null(strstr(error.message, "a test"));
    assert_null(array);
    assert_int_equal(capacity, 0);
}

static void releasing_nothing_is_fine(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    sk_release(&memory, NULL);
    sk_release(NULL, NULL);
    assert_int_equal(memory.used, 0);
}

static void reserve_grows_and_keeps(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    uint32_t *array = NULL;
    size_t capacity = 0, last = 0;
    int moves = 0;
    for (uint32_t count = 1; count <= 20000; count++) {
        assert_int_equal(sk_reserve(&memory, (void **)&array, &capacity, count, sizeof *array, "a test", NULL),
                         SELKIE_OK);
        assert_true(capacity >= count);
        moves += capacity != last;
        last = capacity;
        array[count - 1] = count * 2654435761u;
    }
    /* By half again each time, so appending is cheap. */
    assert_true(moves < 20);
    for (uint32_t i = 0; i < 20000; i++)
        assert_int_equal(array[i], (i + 1) * 2654435761u);
    sk_release(&memory, array);
    assert_int_equal(memory.used, 0);
}

/* Where growing by half does not fit any more, exactly what is needed still does. */
static void reserve_makes_do_with_what_is_needed(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 3000};
    unsigned char *array = NULL;
    size_t capacity = 0;
    assert_int_equal(sk_reserve(&memory, (void **)&array, &capacity, 1000, 1, "a test", NULL), SELKIE_OK);
    memset(array, 7, 1000);
    assert_int_equal(sk_reserve(&memory, (void **)&array, &capacity, 1400, 1, "a test", NULL), SELKIE_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(array[i], 7);
    /* Refused: the array is as it was. */
    unsigned char *before = array;
    size_t capacity_before = capacity;
    selkie_error error;
    assert_int_equal(sk_reserve(&memory, (void **)&array, &capacity, 2000, 1, "a test", &error), SELKIE_ERROR_MEMORY);
    assert_int_equal(error.code, SELKIE_ERROR_MEMORY);
    assert_ptr_equal(array, before);
    assert_int_equal(capacity, capacity_before);
    assert_int_equal(array[999], 7);
    sk_release(&memory, array);
    assert_int_equal(memory.used, 0);
}

static void the_machine_has_memory(void **state)
{
    (void)state;
    size_t available = sk_memory_available();
    assert_true(available == 0 || available > (1u << 20));
}

/* Pieces of one phase stay where they are; an emptied arena gives the same memory again, in one piece. */
static void an_arena_keeps_pieces_until_it_is_emptied(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 0};
    sk_arena arena;
    selkie_error error = {0};
    sk_arena_init(&arena, &memory);
    unsigned char *piece[6];
    for (int round = 0; round < 3; round++) {
        for (int n = 0; n < 6; n++) {
            size_t bytes = (size_t)1000 << n;
            assert_int_equal(sk_arena_take(&arena, bytes, "test", (void **)&piece[n], &error), SELKIE_OK);
            assert_true((uintptr_t)piece[n] % 64 == 0);
            memset(piece[n], n + 1, bytes);
        }
        for (int n = 0; n < 6; n++)
            for (size_t i = 0; i < (size_t)1000 << n; i++)
                assert_int_equal(piece[n][i], n + 1);
        size_t before = memory.used;
        sk_arena_empty(&arena);
        assert_true(arena.used == 0);
        if (round)
            assert_true(memory.used == before); /* one chunk holds it all from the second round on */
    }
    memory.limit = memory.used + 1000;
    void *much;
    assert_int_equal(sk_arena_take(&arena, (size_t)1 << 20, "test", &much, &error), SELKIE_ERROR_MEMORY);
    assert_null(much);
    assert_int_equal(sk_arena_take(&arena, SIZE_MAX - 8, "test", &much, &error), SELKIE_ERROR_MEMORY);
    sk_arena_free(&arena);
    assert_true(memory.used == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_counted),
        cmocka_unit_test(zeroed_blocks_are_zero),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(releasing_nothing_is_fine),
        cmocka_unit_test(reserve_grows_and_keeps),
        cmocka_unit_test(reserve_makes_do_with_what_is_needed),
        cmocka_unit_test(the_machine_has_memory),
        cmocka_unit_test(an_arena_keeps_pieces_until_it_is_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The k-d tree gives the same points as looking at all of them, in the same order, and each one once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "particles/kd_tree.h"

typedef enum cloud {
    RANDOM,   /* in a cube */
    PLANE,    /* z = 0 */
    LATTICE,  /* many equal distances */
    CLUSTERS, /* most points in few places, some in exactly one */
    CLOUDS
} cloud;

static void place(cloud kind, size_t i, float x[3])
{
    for (int d = 0; d < 3; d++)
        x[d] = sk_random_float(7, i, (uint64_t)d);
    if (kind == PLANE)
        x[2] = 0.0f;
    if (kind == LATTICE) {
        x[0] = (float)(i % 10);
        x[1] = (float)(i / 10 % 10);
        x[2] = (float)(i / 100);
    }
    if (kind == CLUSTERS)
        for (int d = 0; d < 3; d++)
            x[d] = (float)(i % 7) * 0.25f + (i % 3 ? 0.004f * x[d] : 0.0f);
    /* Coordinates of eleven bits: squares and their sums are exact, whichever way a compiler adds them up. */
    for (int d = 0; d < 3; d++)
        x[d] = (float)(int)(x[d] * 1024.0f) / 1024.0f;
}

static sk_kd_point *make(cloud kind, size_t count)
{
    sk_kd_point *points = malloc((count + 1) * sizeof *points);
    assert_non_null(points);
    for (size_t i = 0; i < count; i++) {
        place(kind, i, points[i].position);
        points[i].id =
            (uint32_t)((i * 7919 + 13) % count); /* unique: 7919 is a prime that divides no count used here */
        points[i].index = (uint32_t)i;
    }
    return points;
}

/* The nearest of those not taken, ties by id; SIZE_MAX: none. */
static size_t brute_nearest(size_t count, const sk_kd_point *points, const uint8_t *taken, const float x[3])
{
    size_t best = SIZE_MAX;
    float least = 0.0f;
    for (size_t i = 0; i < count; i++) {
        if (taken[i])
            continue;
        float sum = 0.0f;
        for (int d = 0; d < 3; d++)
            sum += (points[i].position[d] - x[d]) * (points[i].position[d] - x[d]);
        if (best == SIZE_MAX || sum < least || (sum == least && points[i].id < points[best].id)) {
            best = i;
            least = sum;
        }
    }
    return best;
}

static void as_brute_force(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 8, 9, 17, 100, 1000};
    for (int kind = 0; kind < CLOUDS; kind++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            size_t count = counts[c];
            sk_memory memory = {0, 0, 0};
            sk_kd_point *points = make((cloud)kind, count);
            uint8_t *taken = calloc(count + 1, 1);
            sk_kd_tree *tree;
            assert_int_equal(sk_kd_tree_create(count, points, 2, "test", &memory, &tree, NULL), SELKIE_OK);
            for (size_t q = 0; q < count + 2; q++) {
                float x[3];
                place(q % 2 ? RANDOM : (cloud)kind, q * 31 % (count + 5), x);
                size_t expected = brute_nearest(count, points, taken, x);
                sk_kd_point seen, got;
                assert_int_equal(sk_kd_tree_nearest(tree, x, &seen), expected != SIZE_MAX);
                assert_int_equal(sk_kd_tree_take(tree, x, &got), expected != SIZE_MAX);
                if (expected == SIZE_MAX)
                    continue;
                assert_int_equal(got.index, expected);
                assert_memory_equal(&got, &seen, sizeof got);
                assert_memory_equal(&got, &points[expected], sizeof got);
                taken[expected] = 1;
                assert_int_equal(sk_kd_tree_count(tree), count - q - 1);
            }
            sk_kd_tree_destroy(tree);
            free(points);
            free(taken);
            assert_int_equal(memory.used, 0);
        }
}

/* Enough points for tasks: the same answers from any number of threads, and from any order of the points. */
static void order_and_threads_do_not_matter(void **state)
{
    (void)state;
    const size_t count = 60000, queries = 20000;
    sk_kd_point *points = make(CLUSTERS, count);
    uint32_t *first = malloc(queries * sizeof *first);
    for (int variant = 0; variant < 3; variant++) {
        if (variant == 2)
            for (size_t i = 0; i < count / 2; i++) {
                sk_kd_point p = points[i];
                points[i] = points[count - 1 - i];
                points[count - 1 - i] = p;
            }
        sk_kd_tree *tree;
        assert_int_equal(sk_kd_tree_create(count, points, variant ? 4 : 1, "test", NULL, &tree, NULL), SELKIE_OK);
        for (size_t q = 0; q < queries; q++) {
            float x[3];
            place(RANDOM, q, x);
            sk_kd_point got;
            assert_int_equal(sk_kd_tree_take(tree, x, &got), 1);
            if (variant == 0)
                first[q] = got.id;
            else
                assert_int_equal(first[q], got.id);
        }
        sk_kd_tree_destroy(tree);
    }
    free(points);
    free(first);
}

static void too_little_memory_is_said(void **state)
{
    (void)state;
    sk_memory memory = {0, 0, 4096};
    sk_kd_point *points = make(RANDOM, 1000);
    sk_kd_tree *tree;
    selkie_error error = {0};
    assert_int_equal(sk_kd_tree_create(1000, points, 1, "objects[0]", &memory, &tree, &error), SELKIE_ERROR_MEMORY);
    assert_null(tree);
    assert_non_null(strstr(error.message, "objects[0]"));
    assert_int_equal(memory.used, 0);
    free(points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_brute_force),
        cmocka_unit_test(order_and_threads_do_not_matter),
        cmocka_unit_test(too_little_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The neighbour search against all pairs: lists, their order, groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "particles/cell_index.h"
#include "particles/neighbours.h"
#include "step_cases.h"

static void build(const step_case *c, const sk_neighbour_search *search, int threads, sk_neighbour_lists *lists)
{
    selkie_error error = {0};
    *lists = (sk_neighbour_lists){.memory = c->step->memory};
    const selkie_code code = c->step->dimension == 2 ? sk_neighbour_lists_build_2d(lists, search, threads, &error)
                                                     : sk_neighbour_lists_build_3d(lists, search, threads, &error);
    if (code != SELKIE_OK)
        fail_msg("%s", error.message);
}

static int is_near(const sk_neighbour_search *search, int dimension, int64_t i, int64_t j)
{
    float squared = 0.0f;
    for (int d = 0; d < dimension; d++) {
        const float x = search->records[i].position[d] - search->records[j].position[d];
        squared += x * x;
    }
    return i != j && squared < search->radius2;
}

static int in_list(const sk_neighbour_lists *lists, int64_t i, int64_t j)
{
    for (uint64_t k = lists->first[i]; k < lists->first[i + 1]; k++)
        if (lists->neighbours[k] == (uint32_t)j)
            return 1;
    return 0;
}

static void liquid(step_case *c, int dimension)
{
    case_begin(c, dimension, 20, 20, 20, 0.1);
    c->scene.liquid_count = 1;
    c->scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
    case_box(c, &c->liquids[0].shape, 3, 4, 2, 11, 13, 6);
    case_create(c, 2, 0.001);
    case_run_through(c, "sort");
}

/* Radii within a cell, and beyond it with as many cells searched. */
static void lists_hold_all_pairs(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int reach = 1; reach <= 2; reach++) {
            step_case c;
            liquid(&c, dimension);
            const sk_cell_index index = sk_grid_cell_index(&c.step->grid);
            const float radius = (reach == 1 ? 0.9f : 1.7f) * 0.1f;
            const sk_neighbour_search search = {
                .index = &index, .records = c.step->particles.records, .radius2 = radius * radius, .reach = reach};
            sk_neighbour_lists lists, single;
            build(&c, &search, 2, &lists);
            build(&c, &search, 1, &single);
            const int64_t count = c.step->particles.count;
            uint64_t pairs = 0;
            for (int64_t i = 0; i < count; i++)
                for (int64_t j = 0; j < count; j++)
                    pairs += (uint64_t)is_near(&search, dimension, i, j);
            assert_true(pairs > 1000);
            assert_int_equal(lists.first[count], pairs);
            for (int64_t i = 0; i < count; i++)
                for (uint64_t k = lists.first[i]; k < lists.first[i + 1]; k++)
                    assert_true(is_near(&search, dimension, i, lists.neighbours[k]));
            assert_memory_equal(lists.first, single.first, (size_t)(count + 1) * sizeof *lists.first);
            assert_memory_equal(lists.neighbours, single.neighbours, (size_t)pairs * sizeof *lists.neighbours);
            sk_neighbour_lists_free(&lists);
            sk_neighbour_lists_free(&single);
            case_end(&c);
        }
}

/* Particles of different groups do not see each other; the relation is symmetric. */
static void groups_are_symmetric(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        liquid(&c, dimension);
        const sk_cell_index index = sk_grid_cell_index(&c.step->grid);
        sk_neighbour_search search = {
            .index = &index, .records = c.step->particles.records, .radius2 = 0.0081f, .reach = 1};
        sk_neighbour_lists all, grouped;
        build(&c, &search, 2, &all);
        search.group = 2;
        build(&c, &search, 2, &grouped);
        const int64_t count = c.step->particles.count;
        assert_true(grouped.first[count] > 0 && grouped.first[count] < all.first[count]);
        for (int64_t i = 0; i < count; i++)
            for (uint64_t k = grouped.first[i]; k < grouped.first[i + 1]; k++)
                assert_true(in_list(&all, i, grouped.neighbours[k]) && in_list(&grouped, grouped.neighbours[k], i));
        sk_neighbour_lists_free(&all);
        sk_neighbour_lists_free(&grouped);
        case_end(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_hold_all_pairs),
        cmocka_unit_test(groups_are_symmetric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

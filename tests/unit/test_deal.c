/* Blocks dealt out to threads: each number once, whatever the team; shares of about the same work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#include "grid/deal.h"

enum { MOST = 5000 };

/* Takes all that `team` threads are dealt, and says who of them had each number. */
static void take_all(sk_deal *deal, int team, int *taken, int *owner)
{
#pragma omp parallel num_threads(team)
    SK_EACH_DEALT(n, deal)
    {
        __atomic_fetch_add(&taken[n], 1, __ATOMIC_RELAXED);
        owner[n] = omp_get_thread_num();
    }
}

static void each_number_is_taken_once(void **state)
{
    (void)state;
    static const int counts[] = {0, 1, 2, 3, 7, 64, 193, MOST};
    static const int teams[] = {1, 2, 3, 8};
    static int taken[MOST + 1], owner[MOST + 1];
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int threads = 1; threads <= SK_DEAL_OWNERS + 9; threads += threads < 4 ? 1 : 23)
            for (int team = 0; team < 4; team++) { /* which may be smaller or larger than what was asked for */
                sk_deal deal;
                memset(taken, 0, sizeof taken);
                sk_deal_numbers(&deal, counts[c], threads);
                take_all(&deal, teams[team], taken, owner);
                for (int n = 0; n <= MOST; n++)
                    assert_int_equal(taken[n], n < counts[c]);
            }
}

/* Two stretches each, the first by weight. */
static void two_parts_are_both_dealt(void **state)
{
    (void)state;
    static uint32_t start[301];
    static int taken[MOST + 1], owner[MOST + 1];
    for (int n = 0; n < 300; n++) /* all particles in the first and in the last ten */
        start[n + 1] = start[n] + (n < 10 || n >= 290 ? 5000 : 0);
    for (int threads = 1; threads <= 5; threads++) {
        sk_deal deal;
        memset(taken, 0, sizeof taken);
        sk_deal_begin(&deal, threads);
        sk_deal_add(&deal, 1, 301, start, 1);
        sk_deal_add(&deal, 301, 400, NULL, 0);
        assert_int_equal(deal.parts, 2);
        take_all(&deal, threads, taken, owner);
        for (int n = 0; n <= MOST; n++)
            assert_int_equal(taken[n], n >= 1 && n < 400);
    }
}

/* No share is heavier than its part of the whole by more than the heaviest block. */
static void shares_weigh_the_same(void **state)
{
    (void)state;
    static uint32_t start[1001];
    uint32_t heaviest = 0;
    for (int n = 0; n < 1000; n++) {
        const uint32_t weight = (uint32_t)(n * 7919 % 1300) * (n % 3 == 0);
        start[n + 1] = start[n] + weight;
        heaviest = weight + 256 > heaviest ? weight + 256 : heaviest;
    }
    for (int threads = 1; threads <= 16; threads++) {
        sk_deal deal;
        sk_deal_begin(&deal, threads);
        sk_deal_add(&deal, 1, 1001, start, 1);
        const double whole = start[1000] + 256.0 * 1000;
        int at = 1;
        for (int t = 0; t < threads; t++) {
            const sk_stretch *mine = &deal.stretches[t];
            assert_int_equal(mine->next, at); /* none left out between two */
            at = mine->end;
            const double work = start[mine->end - 1] - start[mine->next - 1] + 256.0 * (mine->end - mine->next);
            assert_true(work <= whole / threads + heaviest);
        }
        assert_int_equal(at, 1001);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_taken_once),
        cmocka_unit_test(two_parts_are_both_dealt),
        cmocka_unit_test(shares_weigh_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Poisson problems under bounds with rigid bodies, by the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "linalg/bounded.h"
#include "poisson_cases.h"

enum { MOST_ENTRIES = 4096, BODIES = 6 };

/* Bodies in a system: the flux of each mode out of random cells near a point, in the order of the cells. */
typedef struct body_case {
    poisson_case c;
    sk_poisson_modes modes;
    sk_poisson_mode_entry entries[MOST_ENTRIES];
    double response[BODIES][SK_POISSON_MODES][SK_POISSON_MODES];
} body_case;

/* Boxes of `side` cells, one beside the other; light bodies have a large response. */
static void add_bodies(body_case *b, int count, int side, double response)
{
    const int dimension = b->c.dimension, rank = dimension == 3 ? 6 : 3;
    size_t entries = 0;
    memset(b->response, 0, sizeof b->response);
    for (size_t cell = (size_t)b->c.block_cells;
         cell < (size_t)b->c.system.block_count * (size_t)b->c.block_cells && entries < MOST_ENTRIES; cell++) {
        const int block = (int)(cell / (size_t)b->c.block_cells), c = (int)(cell % (size_t)b->c.block_cells);
        const int at[3] = {b->c.coordinates[block][0] * b->c.n + c % b->c.n,
                           b->c.coordinates[block][1] * b->c.n + c / b->c.n % b->c.n,
                           dimension == 3 ? b->c.coordinates[block][2] * b->c.n + c / b->c.n / b->c.n : 0};
        for (int body = 0; body < count; body++) {
            const int low[3] = {1 + body * (side + 2), 1, dimension == 3 ? 1 : 0};
            int inside = 1;
            for (int d = 0; d < dimension; d++)
                inside &= at[d] >= low[d] && at[d] < low[d] + side;
            if (!inside)
                continue;
            sk_poisson_mode_entry *entry = &b->entries[entries++];
            *entry = (sk_poisson_mode_entry){.cell = (int64_t)cell, .body = body};
            for (int k = 0; k < rank; k++)
                entry->flux[k] = 2.0f * sk_random_float(7, (uint64_t)cell, (uint64_t)k) - 1.0f;
        }
    }
    for (int body = 0; body < count; body++)
        for (int k = 0; k < rank; k++)
            b->response[body][k][k] = response / (k + 1);
    b->modes = (sk_poisson_modes){.body_count = count,
                                  .rank = rank,
                                  .entry_count = entries,
                                  .entries = b->entries,
                                  .response = (const double(*)[SK_POISSON_MODES][SK_POISSON_MODES])b->response};
    b->c.system.modes = &b->modes;
}

/* A' x by the definition. */
static void multiply(const body_case *b, const double *x, double *y)
{
    double motion[BODIES][SK_POISSON_MODES] = {{0}}, weight;
    for (size_t i = 0; i < case_cells(&b->c); i++) {
        y[i] = (double)b->c.diagonal[i] * x[i];
        for (int side = 0; side < 2 * b->c.dimension && b->c.diagonal[i] > 0; side++) {
            const size_t there = case_across(&b->c, i, side, &weight);
            y[i] -= weight * x[there];
        }
    }
    for (size_t e = 0; e < b->modes.entry_count; e++)
        for (int k = 0; k < b->modes.rank; k++)
            for (int j = 0; j < b->modes.rank; j++)
                motion[b->entries[e].body][j] +=
                    b->response[b->entries[e].body][j][k] * (double)b->entries[e].flux[k] * x[b->entries[e].cell];
    for (size_t e = 0; e < b->modes.entry_count; e++)
        for (int k = 0; k < b->modes.rank && b->c.diagonal[b->entries[e].cell] > 0; k++)
            y[b->entries[e].cell] += (double)b->entries[e].flux[k] * motion[b->entries[e].body][k];
}

/* The natural residual over that of x = 0, for bounds of `lower`. */
static double residual_of(const body_case *b, const float *lower)
{
    const size_t cells = case_cells(&b->c);
    double *x = calloc(cells, sizeof *x), *y = calloc(cells, sizeof *y), sum = 0, start = 0;
    for (size_t i = 0; i < cells; i++)
        x[i] = (double)b->c.solution[i];
    multiply(b, x, y);
    for (size_t i = 0; i < cells; i++) {
        const double d = (double)b->c.diagonal[i], l = lower ? (double)lower[i] : 0, f = (double)b->c.right_side[i];
        if (!(d > 0)) {
            assert_true(x[i] == 0);
            continue;
        }
        assert_true(x[i] >= l);
        const double m = fmin(d * (x[i] - l), y[i] - f), m0 = fmin(-d * l, -f);
        sum += m * m;
        start += m0 * m0;
    }
    free(x);
    free(y);
    return start > 0 ? sqrt(sum / start) : sqrt(sum);
}

static sk_bounded_report solve(body_case *b, const float *lower, int threads, sk_backend backend)
{
    const sk_bounded_options options = {
        .tolerance = 1e-5, .max_iterations = 60, .threads = threads, .backend = backend};
    const sk_bounded_system system = {.poisson = b->c.system, .lower = lower};
    sk_bounded_report report;
    selkie_error error = {0};
    const int is_3d = b->c.dimension == 3;
    sk_bounded_solver *solver = is_3d ? sk_bounded_create_3d(NULL) : sk_bounded_create_2d(NULL);
    const selkie_code code = is_3d ? sk_bounded_solve_3d(solver, &system, &options, &report, &error)
                                   : sk_bounded_solve_2d(solver, &system, &options, &report, &error);
    if (code != SELKIE_OK)
        print_error("%s\n", error.message);
    assert_int_equal(code, SELKIE_OK);
    if (is_3d)
        sk_bounded_destroy_3d(solver);
    else
        sk_bounded_destroy_2d(solver);
    return report;
}

/* Random systems with light and heavy bodies fulfil the conditions, with bounds of 0 and of either sign. */
static void fulfils_the_conditions(void **state)
{
    (void)state;
    static const double responses[3] = {0.1, 10, 100};
    static body_case b;
    int most = 0;
    for (int n = 0; n < 24; n++) {
        const int dimension = 2 + n % 2;
        case_make(&b.c, n % 4 < 2 ? CASE_CALM : CASE_SPLASHY, n % 3 ? SOURCE_NOISE : SOURCE_SMOOTH, dimension,
                  dimension == 3 ? 24 : 48, (uint64_t)(n + 1));
        add_bodies(&b, dimension == 3 ? 2 : 4, dimension == 3 ? 5 : 6, responses[n % 3]);
        float *lower = calloc(case_cells(&b.c), sizeof *lower);
        for (size_t i = 0; i < case_cells(&b.c); i++)
            lower[i] = -sk_random_float(3, i, 0);
        const sk_bounded_report report = solve(&b, n % 5 == 4 ? lower : NULL, 1, n % 8 == 7);
        if (!report.converged)
            print_message("case %d: residual %g after %d steps\n", n, report.residual, report.iterations);
        assert_true(report.converged);
        assert_true(residual_of(&b, n % 5 == 4 ? lower : NULL) < 3e-5);
        most = report.iterations > most ? report.iterations : most;
        free(lower);
        case_free(&b.c);
    }
    print_message("at most %d steps\n", most);
}

/* The same bits on two threads; a plain solve agrees. */
static void same_bits(void **state)
{
    (void)state;
    static body_case b;
    for (int dimension = 2; dimension <= 3; dimension++) {
        case_make(&b.c, CASE_SPLASHY, SOURCE_NOISE, dimension, dimension == 3 ? 24 : 64, 5);
        add_bodies(&b, 2, 5, 100);
        const size_t cells = case_cells(&b.c);
        float *first = malloc(cells * sizeof *first), largest = 0, off = 0;
        solve(&b, NULL, 1, SK_BACKEND_TUNED);
        memcpy(first, b.c.solution, cells * sizeof *first);
        solve(&b, NULL, 2, SK_BACKEND_TUNED);
        assert_memory_equal(first, b.c.solution, cells * sizeof *first);
        solve(&b, NULL, 1, SK_BACKEND_PLAIN);
        for (size_t i = 0; i < cells; i++) {
            largest = fmaxf(largest, fabsf(first[i]));
            off = fmaxf(off, fabsf(first[i] - b.c.solution[i]));
        }
        assert_true(off < 1e-3f * largest);
        free(first);
        case_free(&b.c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fulfils_the_conditions), cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

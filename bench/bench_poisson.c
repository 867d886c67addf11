/* Speed of the Poisson solver: one line for each size, scene and number of threads. Arguments: the sizes of the 3D
 * domains, default 32 64 128. */
#include <omp.h>
#include <stdio.h>
#include "../tests/unit/poisson_cases.h"

typedef struct timing {
    double setup_ms, solve_ms;
    sk_poisson_report report;
} timing;

/* The fastest of a few solves: the machine may be busy. */
static int measure(poisson_case *c, sk_poisson_solver *solver, int threads, double tolerance, timing *best)
{
    sk_poisson_options options = {.tolerance = tolerance, .max_iterations = 50, .threads = threads};
    best->setup_ms = best->solve_ms = 1e30;
    int repeats = c->unknowns < 1000000 ? 9 : 5;
    for (int i = 0; i < repeats; ++i) {
        selkie_error error;
        if (case_solve(c, solver, &options, &best->report, &error) != SELKIE_OK) {
            fprintf(stderr, "%s\n", error.message);
            return 0;
        }
        best->setup_ms = fmin(best->setup_ms, best->report.setup_ms);
        best->solve_ms = fmin(best->solve_ms, best->report.solve_ms);
    }
    return 1;
}

static int bench(int dimension, int size, case_kind kind, case_source source)
{
    static const char *const kinds[] = {"calm", "splashy", "closed"}, *const sources[] = {"noise", "gravity", "smooth"};
    poisson_case c;
    case_make(&c, kind, source, dimension, size, 7);
    sk_memory memory = {0};
    sk_poisson_solver *solver = case_solver(&c, &memory);
    timing one, two, fine;
    int good = solver && measure(&c, solver, 1, 1e-4, &one) && measure(&c, solver, 2, 1e-4, &two);
    good = good && measure(&c, solver, 2, 1e-6, &fine);
    if (good)
        printf(
            "%dD %4d %-7s %-7s %9lld unknowns %3.0f %% full, %d iterations (%.1e), %d to 1e-6 | 1 thread: setup %7.2f "
            "ms solve "
            "%7.2f ms %5.1f M/s | 2 threads: setup %7.2f ms (%4.1f ns/cell) solve %7.2f ms %5.1f M/s | %5.1f B/cell, "
            "%.1f B/unknown\n",
            dimension, size, kinds[kind], sources[source], (long long)one.report.unknowns,
            100.0 * (double)one.report.unknowns / ((double)(c.system.block_count - 1) * c.block_cells),
            two.report.iterations, two.report.residual, fine.report.iterations, one.setup_ms, one.solve_ms,
            (double)one.report.unknowns / one.solve_ms * 1e-3, two.setup_ms,
            two.setup_ms * 1e6 / (double)one.report.unknowns, two.solve_ms,
            (double)one.report.unknowns / two.solve_ms * 1e-3,
            (double)memory.peak / ((double)(c.system.block_count - 1) * c.block_cells),
            (double)memory.peak / (double)one.report.unknowns);
    fflush(stdout);
    case_destroy_solver(&c, solver);
    case_free(&c);
    return good;
}

int main(int argc, char **argv)
{
    int sizes[16] = {32, 64, 128}, count = 3, good = 1;
    if (argc > 1) {
        count = 0;
        for (int i = 1; i < argc && count < 16; ++i)
            sizes[count++] = atoi(argv[i]);
    }
    for (int i = 0; i < count; ++i)
        if (sizes[i] > 0)
            for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
                for (int source = SOURCE_NOISE; source <= SOURCE_GRAVITY; ++source) {
                    good &= bench(3, sizes[i], (case_kind)kind, (case_source)source);
                    good &= bench(2, 4 * sizes[i], (case_kind)kind, (case_source)source);
                }
    return !good;
}

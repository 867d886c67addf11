/* Cost of a bound: the same systems solved without one, with x >= 0 by the active set (cold, and warm from the answer
 * to the right side of a step before), and by MPRGP. One line for each size, scene and right side; every cost is that
 * of set-up and solve together. Arguments: the sizes of the 3D domains, default 64 128; --mprgp SIZE: the largest size
 * that MPRGP is tried on, default 64, since it takes long; --threads N, default 2. */
#include <omp.h>
#include <stdio.h>
#include "../tests/unit/poisson_cases.h"
#include "linalg/bounded.h"

typedef struct settings {
    int threads, largest_mprgp;
} settings;

/* Right sides like those of unilateral incompressibility: positive where more comes than fits, negative where there is
 * room. */
typedef enum bounded_source {
    SOURCE_SPLASH, /* compression and expansion on all scales, a little less in all than fits */
    SOURCE_FALL,   /* the floor stops what falls; the density varies by a percent or so */
    SOURCE_ROUGH   /* each cell by itself, as in a correction of density */
} bounded_source;

static double right_side_at(bounded_source source, int dimension, int size, const int at[3], uint64_t cell, int before)
{
    double tau = 6.283185307179586, up = at[dimension - 1], x = at[0] + (before ? 1 : 0), y = at[1];
    double noise = (double)sk_random_float(5, cell, 3) - 0.5;
    if (before) /* one step earlier: shifted by a cell, with 10 % of the noise replaced */
        noise = 0.9 * noise + 0.1 * ((double)sk_random_float(5, cell, 4) - 0.5);
    if (source == SOURCE_ROUGH)
        return noise;
    if (source == SOURCE_FALL)
        return (up == 0 ? 1 : 0) + 0.02 * noise - 0.005;
    double waves = sin(tau * 2 * x / size) * cos(tau * (y + 3) / size) + 0.6 * sin(tau * (3 * up + x) / size);
    return 0.2 * waves + 0.3 * noise - 0.05;
}

static void set_right_side(poisson_case *c, bounded_source source, int size, int before)
{
    int n = c->n, nz = c->dimension == 3 ? n : 1;
    for (int block = 1; block < c->system.block_count; ++block)
        for (int cell = 0; cell < c->block_cells; ++cell) {
            size_t own = (size_t)block * (size_t)c->block_cells + (size_t)cell;
            const int32_t *place = c->coordinates[block];
            int at[3] = {place[0] * n + cell % n, place[1] * n + cell / n % n, place[2] * nz + cell / (n * n)};
            if (c->diagonal[own] > 0)
                c->right_side[own] = (float)right_side_at(source, c->dimension, size, at, own, before);
        }
}

static void keep_least(double *best, double value)
{
    if (*best == 0 || value < *best)
        *best = value;
}

/* Returns milliseconds, 0 if it failed. */
static double solve_bounded(poisson_case *c, sk_bounded_solver *solver, const sk_bounded_options *options,
                            sk_bounded_report *report)
{
    selkie_error error;
    sk_bounded_system system = {.poisson = c->system};
    selkie_code code = c->dimension == 3 ? sk_bounded_solve_3d(solver, &system, options, report, &error)
                                         : sk_bounded_solve_2d(solver, &system, options, report, &error);
    if (code != SELKIE_OK)
        fprintf(stderr, "%s\n", error.message);
    return code == SELKIE_OK ? report->setup_ms + report->solve_ms : 0;
}

typedef struct costs {
    double bilateral, cold, warm; /* milliseconds, the best of a few */
    sk_poisson_report bilateral_report;
    sk_bounded_report cold_report, warm_report;
} costs;

static int measure(poisson_case *c, bounded_source source, int size, int threads, sk_bounded_solver *solver, costs *out)
{
    sk_poisson_solver *plain = case_solver(c, NULL);
    sk_poisson_options plain_options = {.tolerance = 1e-4, .max_iterations = 50, .threads = threads};
    sk_bounded_options options = {.tolerance = 1e-4, .max_iterations = 50, .threads = threads};
    size_t bytes = (size_t)c->system.block_count * (size_t)c->block_cells * sizeof(float);
    float *before = malloc(bytes);
    set_right_side(c, source, size, 1);
    int good = plain && before && solve_bounded(c, solver, &options, &out->cold_report) > 0;
    if (before)
        memcpy(before, c->solution, bytes);
    set_right_side(c, source, size, 0);
    int repeats = c->unknowns < 1000000 ? 9 : 4;
    for (int i = 0; good && i < repeats; ++i) {
        good &= case_solve(c, plain, &plain_options, &out->bilateral_report, NULL) == SELKIE_OK;
        keep_least(&out->bilateral, out->bilateral_report.setup_ms + out->bilateral_report.solve_ms);
        options.warm_start = 0;
        keep_least(&out->cold, solve_bounded(c, solver, &options, &out->cold_report));
        memcpy(c->solution, before, bytes);
        options.warm_start = 1;
        keep_least(&out->warm, solve_bounded(c, solver, &options, &out->warm_report));
        good &= out->cold > 0 && out->warm > 0;
    }
    free(before);
    case_destroy_solver(c, plain);
    return good;
}

static int bench(int dimension, int size, case_kind kind, bounded_source source, const settings *how)
{
    static const char *const kinds[] = {"calm", "splashy", "closed"}, *const sources[] = {"splash", "fall", "rough"};
    poisson_case c;
    case_make(&c, kind, SOURCE_NOISE, dimension, size, 7);
    sk_memory memory = {0};
    sk_bounded_solver *solver = dimension == 3 ? sk_bounded_create_3d(&memory) : sk_bounded_create_2d(&memory);
    costs cost = {0};
    int good = solver && measure(&c, source, size, how->threads, solver, &cost);

    if (good)
        printf("%dD %4d %-7s %-6s %8lld unknowns, %3.0f %% free | bilateral %d iterations %8.2f ms | cold %d steps "
               "(%.0e)%s "
               "%8.2f ms: %.2f times | warm %d steps%s: %.2f times | %.0f B/unknown",
               dimension, size, kinds[kind], sources[source], (long long)c.unknowns,
               100.0 * (double)cost.cold_report.free_cells / (double)c.unknowns, cost.bilateral_report.iterations,
               cost.bilateral, cost.cold_report.iterations, cost.cold_report.residual,
               cost.cold_report.converged ? "" : " NOT CONVERGED", cost.cold, cost.cold / cost.bilateral,
               cost.warm_report.iterations, cost.warm_report.converged ? "" : " NOT CONVERGED",
               cost.warm / cost.bilateral, (double)memory.peak / (double)c.unknowns);

    if (good && size <= how->largest_mprgp) {
        sk_bounded_report slow;
        sk_bounded_options options = {
            .method = SK_BOUNDED_MPRGP, .tolerance = 1e-4, .max_iterations = 5000, .threads = how->threads};
        double ms = solve_bounded(&c, solver, &options, &slow);
        good &= ms > 0;
        printf(" | MPRGP %d steps (%d free, %d expansion, %d proportioning)%s: %.0f times", slow.iterations,
               slow.free_steps, slow.expansion_steps, slow.proportioning_steps, slow.converged ? "" : " NOT CONVERGED",
               ms / cost.bilateral);
    }

    printf("\n");
    fflush(stdout);
    if (dimension == 3)
        sk_bounded_destroy_3d(solver);
    else
        sk_bounded_destroy_2d(solver);
    case_free(&c);
    return good;
}

int main(int argc, char **argv)
{
    int sizes[16] = {64, 128}, count = 0, good = 1;
    settings how = {.threads = 2, .largest_mprgp = 64};
    for (int i = 1; i < argc; ++i)
        if (!strcmp(argv[i], "--mprgp") && i + 1 < argc)
            how.largest_mprgp = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            how.threads = atoi(argv[++i]);
        else if (count < 16)
            sizes[count++] = atoi(argv[i]);
    if (count == 0)
        count = 2;
    for (int i = 0; i < count; ++i)
        if (sizes[i] > 0)
            for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
                for (int source = SOURCE_SPLASH; source <= SOURCE_ROUGH; ++source) {
                    good &= bench(3, sizes[i], (case_kind)kind, (bounded_source)source, &how);
                    if (sizes[i] <= 128)
                        good &= bench(2, 4 * sizes[i], (case_kind)kind, (bounded_source)source, &how);
                }
    return !good;
}

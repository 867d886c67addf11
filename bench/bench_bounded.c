/* What a bound costs: the same system solved with and without x >= 0, by the active set and by MPRGP. One line for each
 * size and scene. Arguments: the sizes of the 3D domains, default 64 128; --mprgp SIZE: the largest size that MPRGP is
 * tried on (default 64; it takes long). */
#include <omp.h>
#include <stdio.h>
#include "../tests/unit/poisson_cases.h"
#include "linalg/bounded.h"

/* Right sides like those of unilateral incompressibility: what is missing to full density where liquid expands, more
 * than fits where it is pressed together. */
typedef enum bound_source { SOURCE_SPLASH, SOURCE_FALL, SOURCE_RANDOM } bound_source;

static void set_right_side(poisson_case *c, bound_source source, int size)
{
    double tau = 6.283185307179586;
    int up = c->dimension - 1;
    for (int k = 0; k < c->cells[2]; ++k)
        for (int j = 0; j < c->cells[1]; ++j)
            for (int i = 0; i < c->cells[0]; ++i) {
                int at[3] = {i, j, k};
                size_t own = case_index(c, i, j, k);
                if (c->block_of[i / c->n +
                                c->blocks[0] * (j / c->n + c->blocks[1] * (k / (c->dimension == 3 ? c->n : 1)))] == 0 ||
                    c->diagonal[own] <= 0)
                    continue;
                double noise = (double)sk_random_float(5, own, 3) - 0.5;
                double waves =
                    sin(tau * 2 * i / size) * cos(tau * (j + 3) / size) + 0.6 * sin(tau * (3 * at[up] + i) / size);
                double value = noise;
                if (source == SOURCE_SPLASH) /* compression and expansion at all scales, a little less than full */
                    value = 0.2 * waves + 0.3 * noise - 0.05;
                if (source == SOURCE_FALL) /* the floor stops what falls; density varies by a percent or so */
                    value = (at[up] == 0 ? 1 : 0) + 0.02 * noise - 0.005;
                c->right_side[own] = (float)value;
            }
}

typedef struct timing {
    double setup_ms, solve_ms;
} timing;

static double total(timing t)
{
    return t.setup_ms + t.solve_ms;
}

static void keep_best(timing *best, double setup_ms, double solve_ms)
{
    if (best->setup_ms + best->solve_ms > setup_ms + solve_ms || best->solve_ms == 0)
        *best = (timing){setup_ms, solve_ms};
}

static int solve_bounded(poisson_case *c, sk_bounded_solver *solver, const sk_bounded_options *options,
                         sk_bounded_report *report)
{
    selkie_error error;
    sk_bounded_system system = {.poisson = c->system};
    selkie_code code = c->dimension == 3 ? sk_bounded_solve_3d(solver, &system, options, report, &error)
                                         : sk_bounded_solve_2d(solver, &system, options, report, &error);
    if (code != SELKIE_OK)
        fprintf(stderr, "%s\n", error.message);
    return code == SELKIE_OK;
}

static int bench(int dimension, int size, case_kind kind, bound_source source, int largest_mprgp)
{
    static const char *const kinds[] = {"calm", "splashy", "closed"}, *const sources[] = {"splash", "fall", "noise"};
    const int threads = 2;
    poisson_case c;
    case_make(&c, kind, SOURCE_NOISE, dimension, size, 7);
    set_right_side(&c, source, size);
    sk_memory memory = {0};
    sk_poisson_solver *plain = case_solver(&c, NULL);
    sk_bounded_solver *solver = dimension == 3 ? sk_bounded_create_3d(&memory) : sk_bounded_create_2d(&memory);
    sk_poisson_options bilateral_options = {.tolerance = 1e-4, .max_iterations = 50, .threads = threads};
    sk_bounded_options options = {.tolerance = 1e-4, .max_iterations = 50, .threads = threads};
    sk_poisson_report bilateral;
    sk_bounded_report cold, warm;
    timing one = {0}, two = {0}, three = {0};
    int repeats = c.unknowns < 1000000 ? 7 : 3, good = plain && solver;
    size_t bytes = (size_t)c.system.block_count * (size_t)c.block_cells * sizeof(float);
    float *answer = malloc(bytes);
    for (int i = 0; good && i < repeats; ++i) {
        good &= case_solve(&c, plain, &bilateral_options, &bilateral, NULL) == SELKIE_OK;
        keep_best(&one, bilateral.setup_ms, bilateral.solve_ms);
        options.warm_start = 0;
        good = good && solve_bounded(&c, solver, &options, &cold);
        keep_best(&two, cold.setup_ms, cold.solve_ms);
        memcpy(answer, c.solution, bytes);
        /* As a step later: every value a few percent off. */
        for (size_t n = 0; n < bytes / sizeof(float); ++n)
            c.solution[n] = answer[n] * (1 + 0.1f * (sk_random_float(9, n, 1) - 0.5f));
        options.warm_start = 1;
        good = good && solve_bounded(&c, solver, &options, &warm);
        keep_best(&three, warm.setup_ms, warm.solve_ms);
    }
    if (good) {
        printf("%dD %4d %-7s %-6s %8lld unknowns %3.0f %% free | bilateral %d iterations, %.2f + %.2f ms | cold %d "
               "steps (%.0e)%s, "
               "%.2f + %.2f ms, ratio %.2f | warm %d steps%s ratio %.2f",
               dimension, size, kinds[kind], sources[source], (long long)c.unknowns,
               100.0 * (double)cold.free_cells / (double)c.unknowns, bilateral.iterations, one.setup_ms, one.solve_ms,
               cold.iterations, cold.residual, cold.converged ? "" : " NOT CONVERGED", two.setup_ms, two.solve_ms,
               total(two) / total(one), warm.iterations, warm.converged ? "" : " NOT CONVERGED",
               total(three) / total(one));
        if (size <= largest_mprgp) {
            sk_bounded_report slow;
            options.method = SK_BOUNDED_MPRGP;
            options.warm_start = 0;
            options.max_iterations = 5000;
            good &= solve_bounded(&c, solver, &options, &slow);
            printf(" | MPRGP %d steps (%d free, %d expansion, %d proportioning)%s ratio %.0f", slow.iterations,
                   slow.free_steps, slow.expansion_steps, slow.proportioning_steps,
                   slow.converged ? "" : " NOT CONVERGED", (slow.setup_ms + slow.solve_ms) / total(one));
        }
        printf(" | %.0f B/unknown\n", (double)memory.peak / (double)c.unknowns);
    }
    fflush(stdout);
    free(answer);
    case_destroy_solver(&c, plain);
    if (dimension == 3)
        sk_bounded_destroy_3d(solver);
    else
        sk_bounded_destroy_2d(solver);
    case_free(&c);
    return good;
}

int main(int argc, char **argv)
{
    int sizes[16] = {64, 128}, count = 0, good = 1, largest_mprgp = 64;
    for (int i = 1; i < argc; ++i)
        if (!strcmp(argv[i], "--mprgp") && i + 1 < argc)
            largest_mprgp = atoi(argv[++i]);
        else if (count < 16)
            sizes[count++] = atoi(argv[i]);
    if (count == 0)
        count = 2;
    for (int i = 0; i < count; ++i)
        if (sizes[i] > 0)
            for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
                for (int source = SOURCE_SPLASH; source <= SOURCE_RANDOM; ++source)
                    good &= bench(3, sizes[i], (case_kind)kind, (bound_source)source, largest_mprgp);
    return !good;
}

/* Poisson problems under bounds against what is known without the solver: all active sets tried one by one, an
 * obstacle problem with a known contact set, the unbounded solver where no bound holds, and each method by the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "linalg/bounded.h"
#include "poisson_cases.h"
#include "sanitized.h"

static const sk_bounded_method methods[2] = {SK_BOUNDED_ACTIVE_SET, SK_BOUNDED_MPRGP};

/* --- Helpers --- */

static sk_bounded_options options_to(sk_bounded_method method, double tolerance)
{
    return (sk_bounded_options){.method = method, .tolerance = tolerance, .max_iterations = 3000, .threads = 2};
}

static sk_bounded_solver *bounded_solver(int dimension, sk_memory *memory)
{
    return dimension == 3 ? sk_bounded_create_3d(memory) : sk_bounded_create_2d(memory);
}

static void destroy_solver(int dimension, sk_bounded_solver *solver)
{
    if (dimension == 3)
        sk_bounded_destroy_3d(solver);
    else
        sk_bounded_destroy_2d(solver);
}

static selkie_code solve_with(sk_bounded_solver *solver, poisson_case *c, const float *lower,
                              const sk_bounded_options *options, sk_bounded_report *report, selkie_error *error)
{
    sk_bounded_system system = {.poisson = c->system, .lower = lower};
    return c->dimension == 3 ? sk_bounded_solve_3d(solver, &system, options, report, error)
                             : sk_bounded_solve_2d(solver, &system, options, report, error);
}

static sk_bounded_report solve_once(poisson_case *c, const float *lower, const sk_bounded_options *options)
{
    selkie_error error = {0};
    sk_bounded_report report;
    sk_bounded_solver *solver = bounded_solver(c->dimension, NULL);
    assert_non_null(solver);
    selkie_code code = solve_with(solver, c, lower, options, &report, &error);
    if (code != SELKIE_OK)
        print_error("%s\n", error.message);
    assert_int_equal(code, SELKIE_OK);
    destroy_solver(c->dimension, solver);
    return report;
}

/* (A x)_i by the definition, in double. */
static double row_times(const poisson_case *c, const float *x, size_t own)
{
    double sum = (double)c->diagonal[own] * (double)x[own], weight;
    for (int side = 0; side < 2 * c->dimension; ++side) {
        size_t there = case_across(c, own, side, &weight);
        sum -= weight * (double)x[there];
    }
    return sum;
}

/* The relative natural residual of the solution that came out, by the definition, and how much of it may come from
 * rounding the solution to floats. */
static double independent_residual(const poisson_case *c, const float *lower, double *rounding)
{
    size_t cells = case_cells(c);
    float *start = calloc(cells, sizeof(float));
    for (size_t i = 0; lower && i < cells; ++i)
        start[i] = c->diagonal[i] > 0 ? fmaxf(lower[i], 0) : 0;
    double norm = 0, scale = 0, noise = 0;
    for (size_t i = 0; i < cells; ++i) {
        double d = (double)c->diagonal[i], l = lower ? (double)lower[i] : 0, f = (double)c->right_side[i];
        if (!(d > 0))
            continue;
        double m = fmin(d * ((double)c->solution[i] - l), row_times(c, c->solution, i) - f);
        double m0 = fmin(d * ((double)start[i] - l), row_times(c, start, i) - f);
        norm += m * m;
        scale += m0 * m0;
        noise += pow(8e-8 * d * (double)c->solution[i], 2);
    }
    free(start);
    *rounding = scale > 0 ? sqrt(noise / scale) : 0;
    return scale > 0 ? sqrt(norm / scale) : sqrt(norm);
}

/* --- Every active set --- */

enum { most_cells = 12 };

/* A dense system by elimination with pivots; returns 0 if singular. */
static int solve_dense(int n, double a[most_cells][most_cells], double *b)
{
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int i = k + 1; i < n; ++i)
            best = fabs(a[i][k]) > fabs(a[best][k]) ? i : best;
        if (fabs(a[best][k]) < 1e-9)
            return 0;
        for (int j = 0; j < n; ++j) {
            double keep = a[k][j];
            a[k][j] = a[best][j];
            a[best][j] = keep;
        }
        double keep = b[k];
        b[k] = b[best];
        b[best] = keep;
        for (int i = k + 1; i < n; ++i) {
            double factor = a[i][k] / a[k][k];
            for (int j = k; j < n; ++j)
                a[i][j] -= factor * a[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int j = i + 1; j < n; ++j)
            b[i] -= a[i][j] * b[j];
        b[i] /= a[i][i];
    }
    return 1;
}

/* Tries the active sets one by one until one fulfils all conditions. */
static int brute_force(const poisson_case *c, const float *lower, int n, const size_t *cell, double *x)
{
    double matrix[most_cells][most_cells];
    float *unit = calloc(case_cells(c), sizeof(float));
    for (int j = 0; j < n; ++j) {
        unit[cell[j]] = 1;
        for (int i = 0; i < n; ++i)
            matrix[i][j] = row_times(c, unit, cell[i]);
        unit[cell[j]] = 0;
    }
    free(unit);
    for (int set = 0; set < 1 << n; ++set) {
        double a[most_cells][most_cells], b[most_cells];
        int free_cell[most_cells], count = 0, good = 1;
        for (int i = 0; i < n; ++i) {
            x[i] = (double)lower[cell[i]];
            if (set >> i & 1)
                free_cell[count++] = i;
        }
        for (int i = 0; i < count; ++i) {
            b[i] = (double)c->right_side[cell[free_cell[i]]];
            for (int j = 0; j < n; ++j)
                if (!(set >> j & 1))
                    b[i] -= matrix[free_cell[i]][j] * x[j];
            for (int j = 0; j < count; ++j)
                a[i][j] = matrix[free_cell[i]][free_cell[j]];
        }
        if (!solve_dense(count, a, b))
            continue;
        for (int i = 0; i < count; ++i) {
            x[free_cell[i]] = b[i];
            good &= b[i] >= (double)lower[cell[free_cell[i]]] - 1e-12;
        }
        for (int i = 0; good && i < n; ++i) {
            double w = -(double)c->right_side[cell[i]];
            for (int j = 0; j < n; ++j)
                w += matrix[i][j] * x[j];
            good = w >= -1e-9;
        }
        if (good)
            return 1;
    }
    return 0;
}

/* A few cells in a corner, walls at random, air above: everything random, bounds of either sign. */
static int tiny_case(poisson_case *c, float **lower, int dimension, uint64_t seed, size_t *cell)
{
    int size[3] = {4, 3, 1};
    if (dimension == 3)
        size[0] = size[1] = 2, size[2] = 3;
    uint8_t liquid[most_cells];
    memset(liquid, 1, sizeof(liquid));
    case_blocks(c, dimension, size, liquid);
    *lower = calloc(case_cells(c), sizeof(float));
    int n = 0;
    for (int k = 0; k < size[2]; ++k)
        for (int j = 0; j < size[1]; ++j)
            for (int i = 0; i < size[0]; ++i, ++n) {
                int p[3] = {i, j, k};
                uint64_t id = (uint64_t)n;
                cell[n] = case_index(c, i, j, k);
                c->diagonal[cell[n]] += p[dimension - 1] == size[dimension - 1] - 1 ? 1 : 0; /* air */
                c->right_side[cell[n]] = 2 * sk_random_float(seed, id, 1) - 1;
                (*lower)[cell[n]] = seed % 3 == 0 ? 0 : sk_random_float(seed, id, 2) - 0.7f;
                for (int axis = 0; axis < dimension; ++axis) {
                    int q[3] = {i, j, k};
                    if (--q[axis] < 0)
                        continue;
                    float part = fmaxf(0, 1.2f * sk_random_float(seed, id, 3 + (uint64_t)axis) - 0.2f);
                    size_t other = case_index(c, q[0], q[1], q[2]);
                    c->face[axis][cell[n]] = part;
                    c->diagonal[cell[n]] += part;
                    c->diagonal[other] += part;
                }
            }
    for (int i = 0; i < n; ++i)
        c->diagonal[cell[i]] += 0.01f; /* regular, whatever the walls */
    return n;
}

static void test_every_active_set(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (uint64_t seed = 1; seed <= 30; ++seed) {
            poisson_case c;
            float *lower;
            size_t cell[most_cells];
            double x[most_cells];
            int n = tiny_case(&c, &lower, dimension, seed, cell);
            assert_true(brute_force(&c, lower, n, cell, x));
            for (int m = 0; m < 2; ++m) {
                sk_bounded_options options = options_to(methods[m], 1e-6);
                sk_bounded_report report = solve_once(&c, lower, &options);
                assert_true(report.converged);
                assert_int_equal(report.unknowns, n);
                assert_int_equal(report.free_cells + report.active_cells, n);
                for (int i = 0; i < n; ++i) {
                    /* Small eigenvalues of 0.01 leave 100 times the residual. */
                    double difference = fabs((double)c.solution[cell[i]] - x[i]);
                    if (difference > 2e-4)
                        print_error("%dD seed %d method %d cell %d: %g, %g expected\n", dimension, (int)seed, m, i,
                                    (double)c.solution[cell[i]], x[i]);
                    assert_true(difference <= 2e-4);
                }
            }
            free(lower);
            case_free(&c);
        }
}

/* --- An obstacle whose contact set is known ---
 * -u'' = g on (0, 1), u >= 0, u(0) = 0, u'(1) = 0, with g = 1 up to the middle and -1 beyond: u touches 0 from x = s
 * on. u = a x - x^2 / 2 on the left, (x - s)^2 / 2 from 1/2 to s. Slopes agree at 1/2: a = 1 - s; values agree: a / 2 -
 * 1/8 = (1/2 - s)^2 / 2, hence s^2 = 1/2. */

static double obstacle_exact(double x)
{
    double s = sqrt(0.5);
    return x < 0.5 ? (1 - s) * x - 0.5 * x * x : x < s ? 0.5 * (x - s) * (x - s) : 0;
}

/* A row of cells in 2D, along x. Returns the largest error; *contact becomes where the free cells end. */
static double obstacle_error(sk_bounded_method method, int size, double *contact)
{
    int cells[3] = {size, 1, 1};
    uint8_t *liquid = malloc((size_t)size);
    memset(liquid, 1, (size_t)size);
    poisson_case c;
    case_blocks(&c, 2, cells, liquid);
    double h = 1.0 / size, worst = 0;
    for (int i = 0; i < size; ++i) {
        size_t own = case_index(&c, i, 0, 0);
        c.face[0][own] = i > 0;
        c.diagonal[own] = (i > 0 ? 1.0f : 2.0f) + (i < size - 1 ? 1.0f : 0.0f); /* u(0) = 0 half a cell away */
        c.right_side[own] = (float)(i < size / 2 ? h * h : -h * h);
    }
    sk_bounded_options options = options_to(method, 1e-5);
    options.max_iterations = 20000;
    sk_bounded_report report = solve_once(&c, NULL, &options);
    assert_true(report.converged);
    *contact = 0;
    for (int i = 0; i < size; ++i) {
        double u = (double)c.solution[case_index(&c, i, 0, 0)];
        worst = fmax(worst, fabs(u - obstacle_exact((i + 0.5) * h)));
        if (u > 0)
            *contact = (i + 1) * h;
    }
    case_free(&c);
    free(liquid);
    return worst;
}

static void test_obstacle(void **state)
{
    (void)state;
    for (int m = 0; m < 2; ++m) {
        double contact[2], coarse = obstacle_error(methods[m], 32, &contact[0]);
        double fine = obstacle_error(methods[m], 128, &contact[1]), order = log(coarse / fine) / log(4.0);
        print_message("method %d: largest error %.2e at 32, %.2e at 128 cells, order %.2f; contact from %.4f, %.4f\n",
                      m, coarse, fine, order, contact[0], contact[1]);
        assert_true(order > 1.7);
        assert_true(fabs(contact[0] - sqrt(0.5)) < 1.0 / 32);
        assert_true(fabs(contact[1] - sqrt(0.5)) < 1.0 / 128);
    }
}

/* --- One method by the other, and both by themselves --- */

/* Bounds like those of a scene with suction: 0 near the surface, below it less and less, none deep down. */
static float *suction(const poisson_case *c, uint64_t seed)
{
    float *lower = calloc(case_cells(c), sizeof(float));
    for (size_t i = 0; i < case_cells(c); ++i) {
        float random = sk_random_float(seed, i, 77);
        lower[i] = random < 0.3f ? 0 : random < 0.6f ? -0.5f * random : -INFINITY;
    }
    return lower;
}

static void check_agreement(case_source source, int dimension, int size, uint64_t seed, int with_suction)
{
    poisson_case c;
    case_make(&c, CASE_SPLASHY, source, dimension, size, seed);
    float *lower = with_suction ? suction(&c, seed) : NULL;
    size_t cells = case_cells(&c);
    double *expected = malloc(cells * sizeof(double)), difference = 0, norm = 0;
    for (int m = 1; m >= 0; --m) {
        sk_bounded_options options = options_to(methods[m], 1e-6);
        sk_bounded_report report = solve_once(&c, lower, &options);
        assert_int_equal(report.unknowns, c.unknowns);
        assert_true(report.converged);
        assert_true(report.residual <= 1e-6);
        double rounding, independent = independent_residual(&c, lower, &rounding);
        assert_true(fabs(independent - report.residual) <= 0.02 * report.residual + rounding);
        for (size_t i = 0; i < cells; ++i) {
            assert_true(c.solution[i] >= (lower && c.diagonal[i] > 0 ? lower[i] : 0));
            if (m == 1)
                expected[i] = (double)c.solution[i];
            difference += pow((double)c.solution[i] - expected[i], 2);
            norm += expected[i] * expected[i];
        }
    }
    if (!(sqrt(difference / norm) < 2e-5))
        print_error("%dD seed %d source %d: the methods differ by %g\n", dimension, (int)seed, (int)source,
                    sqrt(difference / norm));
    assert_true(sqrt(difference / norm) < 2e-5);
    free(lower);
    free(expected);
    case_free(&c);
}

static void test_methods_agree(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (uint64_t seed = 1; seed <= 2; ++seed)
            for (int source = SOURCE_NOISE; source <= SOURCE_SMOOTH; ++source)
                check_agreement((case_source)source, dimension, dimension == 3 ? 24 : 60, seed, seed == 2);
}

/* Where no bound holds the answer is that of the unbounded solver; where no cell is free it is the bound. */
static void test_all_free_and_all_active(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int m = 0; m < 2; ++m) {
            poisson_case c;
            case_make(&c, CASE_SPLASHY, SOURCE_NOISE, dimension, dimension == 3 ? 24 : 60, 4);
            size_t cells = case_cells(&c);
            float *lower = malloc(cells * sizeof(float));
            double *expected = malloc(cells * sizeof(double));
            for (int unbounded = 0; unbounded < 2; ++unbounded) {
                sk_poisson_solver *plain = case_solver(&c, NULL);
                sk_poisson_options plain_options = {.tolerance = 1e-6, .max_iterations = 60, .threads = 2};
                sk_poisson_report plain_report;
                for (size_t i = 0; i < cells; ++i) {
                    lower[i] = unbounded ? -INFINITY : 0;
                    if (!unbounded)
                        c.right_side[i] = fabsf(c.right_side[i]);
                }
                if (unbounded) /* noise of both signs again */
                    for (size_t i = 0; i < cells; ++i)
                        c.right_side[i] -= c.diagonal[i] > 0 ? 0.5f : 0;
                assert_int_equal(case_solve(&c, plain, &plain_options, &plain_report, NULL), SELKIE_OK);
                case_destroy_solver(&c, plain);
                double difference = 0, norm = 0;
                for (size_t i = 0; i < cells; ++i)
                    expected[i] = (double)c.solution[i];
                sk_bounded_options options = options_to(methods[m], 1e-6);
                sk_bounded_report report = solve_once(&c, lower, &options);
                assert_true(report.converged);
                assert_int_equal(report.free_cells, report.unknowns);
                for (size_t i = 0; i < cells; ++i) {
                    difference += pow((double)c.solution[i] - expected[i], 2);
                    norm += expected[i] * expected[i];
                }
                assert_true(sqrt(difference / norm) < 2e-5);
            }
            for (size_t i = 0; i < cells; ++i) {
                c.right_side[i] = -0.1f - fabsf(c.right_side[i]);
                c.solution[i] = 5;
            }
            for (int warm = 0; warm < 2; ++warm) {
                sk_bounded_options options = options_to(methods[m], 1e-6);
                options.warm_start = warm;
                sk_bounded_report report = solve_once(&c, NULL, &options);
                assert_true(report.converged);
                assert_int_equal(report.active_cells, report.unknowns);
                for (size_t i = 0; i < cells; ++i)
                    assert_true(c.solution[i] == 0);
            }
            free(lower);
            free(expected);
            case_free(&c);
        }
}

/* From its own answer nothing is left to do; from one that is a little off, little; from rubbish all of it. */
static void test_warm_start_and_norms(void **state)
{
    (void)state;
    for (int m = 0; m < 2; ++m) {
        poisson_case c;
        case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 32, 6);
        size_t cells = case_cells(&c);
        sk_bounded_options options = options_to(methods[m], 1e-4);
        options.norm = SELKIE_NORM_MAX;
        sk_bounded_report report = solve_once(&c, NULL, &options);
        assert_true(report.converged);
        int cold = report.iterations;
        double worst = 0;
        for (size_t i = 0; i < cells; ++i)
            if (c.diagonal[i] > 0)
                worst = fmax(worst, fabs(fmin((double)c.diagonal[i] * (double)c.solution[i],
                                              row_times(&c, c.solution, i) - (double)c.right_side[i])));
        assert_true(fabs(worst - report.residual) < 1e-5);
        options.tolerance = 1.1e-4;
        options.warm_start = 1;
        report = solve_once(&c, NULL, &options);
        assert_int_equal(report.iterations, 0);
        assert_true(report.converged);
        for (size_t i = 0; i < cells; ++i)
            c.solution[i] *= 1.001f;
        report = solve_once(&c, NULL, &options);
        assert_true(report.converged);
        assert_in_range(report.iterations, 1, m == 0 ? 2 : cold);
        for (size_t i = 0; i < cells; ++i)
            c.solution[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -1e30f;
        report = solve_once(&c, NULL, &options);
        assert_true(report.converged);
        /* A limit that is too low is no error. */
        options.warm_start = 0;
        options.max_iterations = 1;
        report = solve_once(&c, NULL, &options);
        assert_false(report.converged);
        assert_int_equal(report.iterations, 1);
        assert_true(report.residual > 1e-4);
        case_free(&c);
    }
}

/* A full closed box: with less in it than fits, some cells end on the bound; with more, there is no solution and the
 * mean is taken out. Known answers by the definition: residuals, and the least cell on its bound. */
static void check_closed(sk_bounded_method method, int dimension, double mean, float lower_bound)
{
    poisson_case c;
    case_make(&c, CASE_CLOSED, SOURCE_NOISE, dimension, dimension == 3 ? 20 : 50, 3);
    size_t cells = case_cells(&c);
    double sum = 0, least = INFINITY;
    for (size_t i = 0; i < cells; ++i)
        sum += c.diagonal[i] > 0 ? (double)c.right_side[i] : 0;
    for (size_t i = 0; i < cells; ++i)
        if (c.diagonal[i] > 0)
            c.right_side[i] += (float)(mean - sum / (double)c.unknowns);
    float *lower = malloc(cells * sizeof(float));
    for (size_t i = 0; i < cells; ++i)
        lower[i] = lower_bound;
    for (int threads = 1; threads <= 2; ++threads) {
        sk_bounded_options options = options_to(method, 1e-5);
        options.threads = threads;
        sk_bounded_report report = solve_once(&c, lower, &options);
        if (!report.converged)
            print_error("%dD method %d mean %g: %d steps, %g\n", dimension, (int)method, mean, report.iterations,
                        report.residual);
        assert_true(report.converged);
        int unsolvable = mean > 0 || lower_bound == -INFINITY;
        assert_int_equal(report.overfull_components, unsolvable);
        for (size_t i = 0; i < cells; ++i)
            if (c.diagonal[i] > 0)
                least = fmin(least, (double)c.solution[i] - (double)lower_bound);
        if (lower_bound > -INFINITY)
            assert_true(least == 0);
        if (unsolvable) { /* what solves the balanced one */
            for (size_t i = 0; i < cells; ++i)
                c.right_side[i] -= c.diagonal[i] > 0 ? (float)mean : 0;
            mean = 0;
        }
        double rounding, independent = independent_residual(&c, lower, &rounding);
        assert_true(independent < 2e-5 + 2 * rounding);
        if (unsolvable) /* balanced to round-off only, of either sign, so not a case to solve again */
            break;
    }
    free(lower);
    case_free(&c);
}

static void test_closed_components(void **state)
{
    (void)state;
    for (int m = 0; m < 2; ++m)
        for (int dimension = 2; dimension <= 3; ++dimension) {
            check_closed(methods[m], dimension, -0.1, 0);
            check_closed(methods[m], dimension, -1e-3, 0);
            check_closed(methods[m], dimension, -1e-3, -2);
            check_closed(methods[m], dimension, 0.2, 0);
            check_closed(methods[m], dimension, 0.2, 1);
            check_closed(methods[m], dimension, -0.2, -INFINITY);
        }
}

/* Many pockets of two cells at once, among them isolated ones: each has a plain answer. */
static void test_small_pockets(void **state)
{
    (void)state;
    for (int m = 0; m < 2; ++m) {
        poisson_case c;
        int cells[3] = {64, 64, 1};
        uint8_t *liquid = malloc(4096);
        memset(liquid, 1, 4096);
        case_blocks(&c, 2, cells, liquid);
        for (int j = 0; j < 64; ++j)
            for (int i = 0; i < 64; i += 2) {
                size_t a = case_index(&c, i, j, 0), b = case_index(&c, i + 1, j, 0);
                c.diagonal[a] = c.diagonal[b] = c.face[0][b] = 1;
                c.right_side[a] = 2 * sk_random_float(4, (uint64_t)(i + 64 * j), 1) - 1;
                c.right_side[b] = 2 * sk_random_float(4, (uint64_t)(i + 64 * j), 2) - 1;
            }
        sk_bounded_options options = options_to(methods[m], 1e-6);
        sk_bounded_report report = solve_once(&c, NULL, &options);
        assert_true(report.converged);
        int overfull = 0;
        for (int j = 0; j < 64; ++j)
            for (int i = 0; i < 64; i += 2) {
                size_t a = case_index(&c, i, j, 0), b = case_index(&c, i + 1, j, 0);
                double f = (double)c.right_side[a], g = (double)c.right_side[b], mean = fmax(0, 0.5 * (f + g));
                overfull += f + g > 0;
                /* One of them is on the bound, the other where its own row puts it. */
                assert_true(fabs((double)c.solution[a] - fmax(0, f - mean)) < 1e-5);
                assert_true(fabs((double)c.solution[b] - fmax(0, g - mean)) < 1e-5);
            }
        assert_int_equal(report.overfull_components, overfull);
        free(liquid);
        case_free(&c);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int kind = CASE_SPLASHY; kind <= CASE_CLOSED; ++kind)
            for (int m = 0; m < 2; ++m) {
                poisson_case c;
                case_make(&c, (case_kind)kind, SOURCE_NOISE, dimension, m ? 20 : dimension == 3 ? 48 : 320, 5);
                float *lower = suction(&c, 3);
                size_t bytes = case_cells(&c) * sizeof(float);
                float *first = malloc(bytes);
                double residual = 0;
                for (int threads = 1; threads <= 3; ++threads) {
                    sk_bounded_options options = options_to(methods[m], 1e-5);
                    options.threads = threads;
                    sk_bounded_report report = solve_once(&c, lower, &options);
                    assert_true(report.converged);
                    if (threads == 1) {
                        memcpy(first, c.solution, bytes);
                        residual = report.residual;
                    }
                    assert_memory_equal(first, c.solution, bytes);
                    assert_memory_equal(&residual, &report.residual, sizeof(residual));
                }
                free(lower);
                free(first);
                case_free(&c);
            }
}

/* A solver that was used for something else gives the same bits as a new one, and asks for no more memory. */
static void test_reuse(void **state)
{
    (void)state;
    poisson_case large, small;
    case_make(&large, CASE_SPLASHY, SOURCE_NOISE, 3, 48, 2);
    case_make(&small, CASE_SPLASHY, SOURCE_NOISE, 3, 32, 9);
    size_t bytes = case_cells(&small) * sizeof(float);
    float *fresh = malloc(bytes), *lower = suction(&small, 3);
    sk_bounded_options options = options_to(SK_BOUNDED_ACTIVE_SET, 1e-5);
    solve_once(&small, lower, &options);
    memcpy(fresh, small.solution, bytes);
    sk_memory memory = {0};
    sk_bounded_solver *solver = bounded_solver(3, &memory);
    sk_bounded_report report;
    float *large_lower = suction(&large, 3);
    assert_int_equal(solve_with(solver, &large, large_lower, &options, &report, NULL), SELKIE_OK);
    size_t used = memory.used;
    assert_int_equal(solve_with(solver, &small, NULL, &options, &report, NULL), SELKIE_OK);
    assert_int_equal(solve_with(solver, &small, lower, &options, &report, NULL), SELKIE_OK);
    assert_memory_equal(fresh, small.solution, bytes);
    assert_int_equal(memory.used, used);
    /* The other method in between: a warm-started eigenvalue costs nothing of the answer. */
    options.method = SK_BOUNDED_MPRGP;
    double eigenvalue = 0;
    for (int n = 0; n < 2; ++n) {
        assert_int_equal(solve_with(solver, &small, lower, &options, &report, NULL), SELKIE_OK);
        assert_true(report.converged && report.eigenvalue >= eigenvalue);
        eigenvalue = report.eigenvalue;
    }
    options.method = SK_BOUNDED_ACTIVE_SET;
    assert_int_equal(solve_with(solver, &small, lower, &options, &report, NULL), SELKIE_OK);
    assert_memory_equal(fresh, small.solution, bytes);
    destroy_solver(3, solver);
    assert_int_equal(memory.used, 0);
    free(fresh);
    free(lower);
    free(large_lower);
    case_free(&large);
    case_free(&small);
}

/* Units must not matter: the same bits but for the exponent. */
static void test_scales(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 24, 6);
    size_t cells = case_cells(&c);
    float *lower = suction(&c, 3), *expected = malloc(cells * sizeof(float));
    sk_bounded_options options = options_to(SK_BOUNDED_ACTIVE_SET, 1e-4);
    solve_once(&c, lower, &options);
    memcpy(expected, c.solution, cells * sizeof(float));
    const int exponents[2] = {90, -80};
    int before = 0;
    for (int n = 0; n < 2; ++n) {
        for (size_t i = 0; i < cells; ++i) {
            c.right_side[i] = ldexpf(c.right_side[i], exponents[n] - before);
            lower[i] = ldexpf(lower[i], exponents[n] - before);
        }
        before = exponents[n];
        solve_once(&c, lower, &options);
        for (size_t i = 0; i < cells; ++i)
            assert_true(c.solution[i] == ldexpf(expected[i], exponents[n]));
    }
    free(lower);
    free(expected);
    case_free(&c);
}

static void test_degenerate(void **state)
{
    (void)state;
    for (int m = 0; m < 2; ++m)
        for (int dimension = 2; dimension <= 3; ++dimension) {
            sk_bounded_options options = options_to(methods[m], 1e-4);
            poisson_case c;
            int cells[3] = {16, 16, dimension == 3 ? 16 : 1};
            uint8_t *liquid = calloc(4096, 1);
            /* No block at all but the empty one. */
            case_blocks(&c, dimension, cells, liquid);
            sk_bounded_report report = solve_once(&c, NULL, &options);
            assert_int_equal(report.unknowns, 0);
            assert_true(report.converged);
            case_free(&c);
            /* A block without unknowns, with rubbish in the solution. */
            liquid[0] = 1;
            case_blocks(&c, dimension, cells, liquid);
            c.solution[c.block_cells + 3] = 5;
            report = solve_once(&c, NULL, &options);
            assert_int_equal(report.unknowns, 0);
            assert_true(c.solution[c.block_cells + 3] == 0);
            /* One cell, pushed, pulled, and pulled with a little suction allowed. */
            c.diagonal[c.block_cells] = 4;
            float lower[1024] = {0};
            const float push[3] = {2, -2, -2}, bound[3] = {0, 0, -0.25f}, answer[3] = {0.5f, 0, -0.25f};
            for (int n = 0; n < 3; ++n) {
                c.right_side[c.block_cells] = push[n];
                lower[c.block_cells] = bound[n];
                report = solve_once(&c, lower, &options);
                assert_int_equal(report.unknowns, 1);
                assert_int_equal(report.free_cells, n == 0);
                assert_true(report.converged);
                assert_true(fabsf(c.solution[c.block_cells] - answer[n]) < 1e-4f);
            }
            free(liquid);
            case_free(&c);
        }
}

static void expect_failure(poisson_case *c, float *lower, float *value, float bad, selkie_code expected,
                           const char *says)
{
    float before = *value;
    *value = bad;
    for (int m = 0; m < 2; ++m) {
        sk_bounded_options options = options_to(methods[m], 1e-4);
        sk_bounded_report report;
        selkie_error error = {0};
        sk_bounded_solver *solver = bounded_solver(c->dimension, NULL);
        assert_int_equal(solve_with(solver, c, lower, &options, &report, &error), expected);
        assert_non_null(strstr(error.message, says));
        destroy_solver(c->dimension, solver);
    }
    *value = before;
}

static void test_bad_input(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, 40, 3);
        float *lower = suction(&c, 3);
        size_t at = case_index(&c, 9, 9, dimension == 3 ? 9 : 0);
        const float bad[3] = {NAN, INFINITY, -INFINITY};
        for (int n = 0; n < 3; ++n) {
            expect_failure(&c, lower, &c.right_side[at], bad[n], SELKIE_ERROR_DIVERGED, "right side");
            expect_failure(&c, lower, &c.diagonal[at], bad[n], SELKIE_ERROR_DIVERGED, "not finite");
            expect_failure(&c, lower, &c.face[1][at], bad[n], SELKIE_ERROR_DIVERGED, "not finite");
            if (n < 2)
                expect_failure(&c, lower, &lower[at], bad[n], SELKIE_ERROR_DIVERGED, "bound");
        }
        expect_failure(&c, lower, &c.diagonal[at], -1, SELKIE_ERROR_INPUT, "negative");
        expect_failure(&c, lower, &c.diagonal[at], 1, SELKIE_ERROR_INPUT, "less than the sum");
        free(lower);
        case_free(&c);
    }
}

static void test_memory_limit(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 24, 3);
    /* Every size at which it may run out. */
    for (size_t limit = 100000; limit < 8000000; limit += 150000)
        for (int m = 0; m < 2; ++m) {
            sk_memory memory = {.limit = limit};
            sk_bounded_solver *solver = bounded_solver(3, &memory);
            if (!solver)
                continue;
            sk_bounded_options options = options_to(methods[m], 1e-2);
            sk_bounded_report report;
            selkie_error error = {0};
            selkie_code code = solve_with(solver, &c, NULL, &options, &report, &error);
            assert_true(code == SELKIE_OK || (code == SELKIE_ERROR_MEMORY && strstr(error.message, "MiB")));
            destroy_solver(3, solver);
            assert_int_equal(memory.used, 0);
        }
    case_free(&c);
}

/* The number of steps must not grow with the size: at most 5 here, as up to 256^3 in the bench. */
static void test_steps(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int size = dimension == 3 ? 32 : 128; size <= (dimension == 3 ? 64 : 256) / (1 + SANITIZED); size *= 2)
            for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
                for (int source = SOURCE_NOISE; source <= SOURCE_GRAVITY; ++source) {
                    poisson_case c;
                    case_make(&c, (case_kind)kind, (case_source)source, dimension, size, 11);
                    if (source == SOURCE_GRAVITY) /* the density is not quite the same everywhere */
                        for (size_t i = 0; i < case_cells(&c); ++i)
                            c.right_side[i] += 0.02f * (sk_random_float(1, i, 1) - 0.7f);
                    sk_bounded_options options = options_to(SK_BOUNDED_ACTIVE_SET, 1e-4);
                    sk_bounded_report report = solve_once(&c, NULL, &options);
                    if (!report.converged || report.iterations > 5)
                        print_error("%dD %d kind %d source %d: %d steps, %g\n", dimension, size, kind, source,
                                    report.iterations, report.residual);
                    assert_true(report.converged);
                    assert_true(report.iterations <= 5);
                    double rounding, independent = independent_residual(&c, NULL, &rounding);
                    assert_true(fabs(independent - report.residual) <= 0.02 * report.residual + rounding);
                    case_free(&c);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_every_active_set),
        cmocka_unit_test(test_obstacle),
        cmocka_unit_test(test_methods_agree),
        cmocka_unit_test(test_all_free_and_all_active),
        cmocka_unit_test(test_warm_start_and_norms),
        cmocka_unit_test(test_closed_components),
        cmocka_unit_test(test_small_pockets),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The Poisson solver against what is known without it: exact solutions, plain conjugate gradients, and its promises
 * (iterations, true residuals, same bits on any number of threads). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "poisson_cases.h"
#include "sanitized.h"

#define SELKIE_DIM 3 /* of the internals that are looked at below */
#include "linalg/solver.h"

/* --- Plain references --- */

typedef struct cell_row {
    size_t column[6];
    double weight[6], diagonal;
    int count;
} cell_row;

/* Every cell's row of the matrix, straight from the definition in poisson.h. */
static cell_row *matrix_of(const poisson_case *c)
{
    const size_t cells = case_cells(c);
    cell_row *rows = calloc(cells, sizeof(*rows));
    for (size_t own = (size_t)c->block_cells; own < cells; ++own) {
        cell_row *row = &rows[own];
        row->diagonal = (double)c->diagonal[own];
        for (int side = 0; row->diagonal > 0 && side < 2 * c->dimension; ++side) {
            double weight;
            size_t there = case_across(c, own, side, &weight);
            if (weight > 0) {
                row->column[row->count] = there;
                row->weight[row->count++] = weight;
            }
        }
    }
    return rows;
}

static void multiply(const cell_row *rows, size_t cells, const double *x, double *y)
{
    for (size_t i = 0; i < cells; ++i) {
        y[i] = rows[i].diagonal * x[i];
        for (int n = 0; n < rows[i].count; ++n)
            y[i] -= rows[i].weight[n] * x[rows[i].column[n]];
    }
}

static double dot(size_t cells, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < cells; ++i)
        sum += a[i] * b[i];
    return sum;
}

/* |b - A x| / |b| of the solution that came out, by the plain matrix in double, and how much of it may come from
 * rounding the solution to floats. */
static double independent_residual(const poisson_case *c, double *rounding)
{
    size_t cells = case_cells(c);
    cell_row *rows = matrix_of(c);
    double *x = calloc(cells, sizeof(double)), *y = calloc(cells, sizeof(double)), norm = 0, norm_b = 0, noise = 0;
    for (size_t i = 0; i < cells; ++i)
        x[i] = (double)c->solution[i];
    multiply(rows, cells, x, y);
    for (size_t i = 0; i < cells; ++i)
        if (c->diagonal[i] > 0) {
            double b = (double)c->right_side[i];
            norm += (b - y[i]) * (b - y[i]);
            norm_b += b * b;
            noise += pow(5e-8 * rows[i].diagonal * x[i], 2);
        }
    *rounding = sqrt(noise / norm_b);
    free(rows);
    free(x);
    free(y);
    return sqrt(norm / norm_b);
}

/* Conjugate gradients without a preconditioner, in double, to round-off. */
static double *plain_solution(const poisson_case *c)
{
    size_t cells = case_cells(c);
    cell_row *rows = matrix_of(c);
    double *x = calloc(cells, sizeof(double)), *r = calloc(cells, sizeof(double)), *p = calloc(cells, sizeof(double)),
           *q = calloc(cells, sizeof(double));
    for (size_t i = 0; i < cells; ++i)
        p[i] = r[i] = c->diagonal[i] > 0 ? (double)c->right_side[i] : 0;
    double rr = dot(cells, r, r), stop = 1e-24 * rr;
    for (int iteration = 0; iteration < 5000 && rr > stop; ++iteration) {
        multiply(rows, cells, p, q);
        double alpha = rr / dot(cells, p, q), before = rr;
        for (size_t i = 0; i < cells; ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rr = dot(cells, r, r);
        for (size_t i = 0; i < cells; ++i)
            p[i] = r[i] + rr / before * p[i];
    }
    free(rows);
    free(r);
    free(p);
    free(q);
    return x;
}

/* --- Helpers --- */

static sk_poisson_options options_to(double tolerance)
{
    return (sk_poisson_options){.tolerance = tolerance, .max_iterations = 60, .threads = 2};
}

static sk_poisson_report solve_once(poisson_case *c, const sk_poisson_options *options)
{
    selkie_error error = {0};
    sk_poisson_report report;
    sk_poisson_solver *solver = case_solver(c, NULL);
    assert_non_null(solver);
    selkie_code code = case_solve(c, solver, options, &report, &error);
    if (code != SELKIE_OK)
        print_error("%s\n", error.message);
    assert_int_equal(code, SELKIE_OK);
    case_destroy_solver(c, solver);
    return report;
}

static void case_fill(poisson_case *c, int dimension, int size)
{
    case_make(c, CASE_CLOSED, SOURCE_NOISE, dimension, size, 3);
}

/* --- Exact solutions --- */

/* u = cos(a rho^2) with a = pi / (2 R^2) in a quarter disc (octant of a ball) of radius R around the corner: walls are
 * Neumann by symmetry, the round surface is Dirichlet through ghost fluid. Returns the largest error. */
static double manufactured_error(int dimension, int size)
{
    const double radius = 0.8, a = 1.5707963267948966 / (radius * radius), h = 1.0 / size;
    int cells[3] = {size, size, dimension == 3 ? size : 1};
    size_t total = (size_t)size * (size_t)size * (size_t)cells[2];
    uint8_t *liquid = calloc(total, 1);
    double *level = calloc(total, sizeof(double));
    for (size_t at = 0; at < total; ++at) {
        size_t p[3] = {at % (size_t)size, at / (size_t)size % (size_t)size, at / ((size_t)size * (size_t)size)};
        double s = 0;
        for (int axis = 0; axis < dimension; ++axis)
            s += ((double)p[axis] + 0.5) * h * ((double)p[axis] + 0.5) * h;
        level[at] = sqrt(s) - radius;
        liquid[at] = level[at] < 0;
    }
    poisson_case c;
    case_blocks(&c, dimension, cells, liquid);
    size_t stride[3] = {1, (size_t)size, (size_t)size * (size_t)size};
    for (size_t at = 0; at < total; ++at) {
        if (!liquid[at])
            continue;
        int p[3] = {(int)(at % (size_t)size), (int)(at / (size_t)size % (size_t)size), (int)(at / stride[2])};
        size_t own = case_index(&c, p[0], p[1], p[2]);
        double d = 0, s = (level[at] + radius) * (level[at] + radius);
        for (int side = 0; side < 2 * dimension; ++side) {
            int axis = side / 2;
            if (!(side & 1) && p[axis] == 0)
                continue; /* symmetry */
            size_t other = side & 1 ? at + stride[axis] : at - stride[axis];
            if (liquid[other]) {
                d += 1;
                if (!(side & 1))
                    c.face[axis][own] = 1;
            } else {
                d += 1 / fmax(1e-3, level[at] / (level[at] - level[other]));
            }
        }
        c.diagonal[own] = (float)d;
        c.right_side[own] = (float)(h * h * (2 * dimension * a * sin(a * s) + 4 * a * a * s * cos(a * s)));
    }
    sk_poisson_options options = options_to(1e-6);
    sk_poisson_report report = solve_once(&c, &options);
    assert_true(report.converged);
    assert_true(report.iterations <= 9);
    double worst = 0;
    for (size_t at = 0; at < total; ++at)
        if (liquid[at]) {
            int p[3] = {(int)(at % (size_t)size), (int)(at / (size_t)size % (size_t)size), (int)(at / stride[2])};
            double s = (level[at] + radius) * (level[at] + radius);
            worst = fmax(worst, fabs((double)c.solution[case_index(&c, p[0], p[1], p[2])] - cos(a * s)));
        }
    case_free(&c);
    free(liquid);
    free(level);
    return worst;
}

static void test_second_order(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        int size = dimension == 2 ? 64 : 24;
        double coarse = manufactured_error(dimension, size), fine = manufactured_error(dimension, 4 * size);
        double order = log(coarse / fine) / log(4.0);
        print_message("%dD: largest error %.2e at %d, %.2e at %d cells: order %.2f\n", dimension, coarse, size, fine,
                      4 * size, order);
        assert_true(order > 1.8);
        assert_true(fine < 2e-3);
    }
}

static void test_against_plain_cg(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (uint64_t seed = 1; seed <= 3; ++seed) {
            poisson_case c;
            case_make(&c, CASE_SPLASHY, SOURCE_NOISE, dimension, dimension == 3 ? 20 : 50, seed);
            double *exact = plain_solution(&c), error = 0, norm = 0;
            sk_poisson_options options = options_to(1e-7);
            sk_poisson_report report = solve_once(&c, &options);
            assert_true(report.converged);
            assert_int_equal(report.unknowns, c.unknowns);
            for (size_t i = 0; i < case_cells(&c); ++i) {
                error += (exact[i] - (double)c.solution[i]) * (exact[i] - (double)c.solution[i]);
                norm += exact[i] * exact[i];
            }
            assert_true(sqrt(error / norm) < 1e-5);
            free(exact);
            case_free(&c);
        }
}

/* --- Promises --- */

static void check_iterations(case_kind kind, case_source source, int dimension, int size)
{
    poisson_case c;
    case_make(&c, kind, source, dimension, size, 11);
    sk_poisson_options options = options_to(1e-4);
    sk_poisson_report report = solve_once(&c, &options);
    if (report.iterations > 6 || !report.converged)
        print_error("%dD %d kind %d source %d: %d iterations, %g\n", dimension, size, (int)kind, (int)source,
                    report.iterations, report.residual);
    assert_true(report.converged);
    assert_true(report.residual <= 1e-4);
    assert_true(report.iterations <= 6);
    assert_int_equal(report.history_count, report.iterations);
    assert_int_equal(report.unknowns, c.unknowns);
    if (size <= 64 || (dimension == 2 && size <= 512)) {
        double rounding, independent = independent_residual(&c, &rounding);
        assert_true(fabs(independent - report.residual) < 0.01 * report.residual + rounding);
    }
    options.tolerance = 1e-6;
    report = solve_once(&c, &options);
    assert_true(report.converged);
    assert_true(report.iterations <= 9);
    case_free(&c);
}

static void test_iterations(void **state)
{
    (void)state;
    const char *large = getenv("SELKIE_TEST_LARGE"); /* 256^3 takes long */
    int last = large && *large ? 256 : SANITIZED ? 32 : 128;
    for (int size = 32; size <= last; size *= 2)
        for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
            for (int source = SOURCE_NOISE; source <= SOURCE_GRAVITY; ++source)
                check_iterations((case_kind)kind, (case_source)source, 3, size);
    for (int size = 128; size <= (SANITIZED ? 256 : 1024); size *= 2)
        for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
            for (int source = SOURCE_NOISE; source <= SOURCE_GRAVITY; ++source)
                check_iterations((case_kind)kind, (case_source)source, 2, size);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int kind = CASE_SPLASHY; kind <= CASE_CLOSED; ++kind) {
            poisson_case c;
            case_make(&c, (case_kind)kind, SOURCE_NOISE, dimension, SANITIZED ? 40 : dimension == 3 ? 60 : 300, 5);
            size_t bytes = case_cells(&c) * sizeof(float);
            float *first = malloc(bytes);
            const int threads[] = {1, 2, 3, 8};
            double residual = 0;
            for (int i = 0; i < 4; ++i) {
                sk_poisson_options options = options_to(1e-5);
                options.threads = threads[i];
                sk_poisson_report report = solve_once(&c, &options);
                if (i == 0) {
                    memcpy(first, c.solution, bytes);
                    residual = report.residual;
                }
                assert_memory_equal(first, c.solution, bytes);
                assert_memory_equal(&residual, &report.residual, sizeof(residual));
            }
            free(first);
            case_free(&c);
        }
}

/* A solver that was used for something else gives the same bits as a new one. */
static void test_reuse(void **state)
{
    (void)state;
    poisson_case large, small;
    case_make(&large, CASE_SPLASHY, SOURCE_NOISE, 3, 48, 2);
    case_make(&small, CASE_SPLASHY, SOURCE_NOISE, 3, 32, 9);
    size_t bytes = (size_t)small.system.block_count * (size_t)small.block_cells * sizeof(float);
    float *fresh = malloc(bytes);
    sk_poisson_options options = options_to(1e-5);
    solve_once(&small, &options);
    memcpy(fresh, small.solution, bytes);
    sk_memory memory = {0};
    sk_poisson_solver *solver = case_solver(&large, &memory);
    sk_poisson_report report;
    assert_int_equal(case_solve(&large, solver, &options, &report, NULL), SELKIE_OK);
    size_t used = memory.used;
    assert_int_equal(case_solve(&small, solver, &options, &report, NULL), SELKIE_OK);
    assert_memory_equal(fresh, small.solution, bytes);
    assert_int_equal(case_solve(&large, solver, &options, &report, NULL), SELKIE_OK);
    assert_int_equal(memory.used, used); /* nothing allocated */
    case_destroy_solver(&large, solver);
    assert_int_equal(memory.used, 0);
    free(fresh);
    case_free(&large);
    case_free(&small);
}

static void test_symmetric_preconditioner(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 64, 4);
    sk_poisson_solver *solver = case_solver(&c, NULL);
    sk_poisson_options options = options_to(1e-2);
    sk_poisson_report report;
    assert_int_equal(case_solve(&c, solver, &options, &report, NULL), SELKIE_OK);
    const sk_level *level = &solver->multigrid.level[0];
    size_t first = SK_BLOCK_CELLS, last = ((size_t)level->block_count + 1) * SK_BLOCK_CELLS;
    double *r[2], *z[2];
    for (int n = 0; n < 2; ++n) {
        r[n] = calloc(last, sizeof(double));
        z[n] = calloc(last, sizeof(double));
        for (int block = 1; block <= level->block_count; ++block)
            for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
                size_t at = (size_t)block * SK_BLOCK_CELLS + (size_t)i;
                int unknown =
                    level->slot[block] == SK_SLOT_UNIFORM || sk_slot_array(level, block, SK_COEFFICIENT_INVERSE)[i] > 0;
                level->b[at] = unknown ? sk_random_float(77, at, (uint64_t)n) - 0.5f : 0;
                r[n][at] = (double)level->b[at];
            }
        sk_multigrid_cycle_3d(&solver->multigrid, 0, (sk_team){0, 1, NULL}, 0, NULL);
        for (size_t i = first; i < last; ++i)
            z[n][i] = (double)level->x[i];
    }
    double one = dot(last, z[0], r[1]), two = dot(last, z[1], r[0]);
    double size = sqrt(dot(last, z[0], r[0]) * dot(last, z[1], r[1]));
    assert_true(dot(last, z[0], r[0]) > 0);
    assert_true(fabs(one - two) < 2e-6 * size);
    for (int n = 0; n < 2; ++n) {
        free(r[n]);
        free(z[n]);
    }
    case_destroy_solver(&c, solver);
    case_free(&c);
}

/* --- Pockets --- */

static void test_closed_cavity(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        case_fill(&c, dimension, dimension == 3 ? 40 : 200);
        for (size_t i = 0; i < case_cells(&c); ++i)
            if (c.diagonal[i] > 0)
                c.right_side[i] += 0.25f; /* as incompatible as can be */
        sk_poisson_options options = options_to(1e-5);
        sk_poisson_report report = solve_once(&c, &options);
        assert_int_equal(report.closed_components, 1);
        assert_true(report.converged);
        assert_true(report.iterations <= 8);
        double mean = 0, size = 0;
        for (size_t i = 0; i < case_cells(&c); ++i) {
            mean += (double)c.solution[i];
            size += fabs((double)c.solution[i]);
        }
        assert_true(fabs(mean) < 1e-4 * size);
        case_free(&c);
    }
}

static void test_mixed_components(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        int size = dimension == 3 ? 40 : 100;
        case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, size, 3);
        case_cut_out(&c, (int[3]){0, 0, 0}, (int[3]){1, 1, 1});    /* one cell: diagonal 0 */
        case_cut_out(&c, (int[3]){20, 3, 2}, (int[3]){22, 4, 3});  /* two cells */
        case_cut_out(&c, (int[3]){3, 2, 1}, (int[3]){19, 13, 15}); /* across blocks */
        case_cut_out(&c, (int[3]){8, 4, 3}, (int[3]){12, 9, 9});   /* nested in the one before */
        sk_poisson_options options = options_to(1e-5);
        sk_poisson_report report = solve_once(&c, &options);
        assert_int_equal(report.closed_components, 3);
        assert_true(report.converged);
        assert_true(report.iterations <= 16); /* walls without thickness, which coarse cells cannot see */
        case_free(&c);
    }
}

/* Nearly closed: one cell of many has an excess, small. */
static void test_tiny_excess(void **state)
{
    (void)state;
    for (int step = 0; step < 3; ++step) {
        poisson_case c;
        case_fill(&c, 3, 24);
        c.diagonal[case_index(&c, 5, 6, 7)] += (float[]){1.0f, 1e-2f, 1e-3f}[step];
        sk_poisson_options options = options_to(1e-4);
        sk_poisson_report report = solve_once(&c, &options);
        assert_int_equal(report.closed_components, 0);
        assert_true(report.converged);
        assert_true(report.iterations <= 10);
        case_free(&c);
    }
}

/* Two parts that hang together by faces which are hardly open: each coarse level corrects them twice as much as it
 * should, so that cycles of which not all levels are visited twice are no longer positive definite. */
static void test_hardly_open(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int power = 1; power <= 4; ++power) {
            poisson_case c;
            int size = dimension == 3 ? 64 : 256;
            case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, size, 3);
            case_narrow(&c, (int[3]){0, 0, 0}, (int[3]){size / 2, size, size / 4}, (float)pow(10, -power));
            for (size_t i = 0; i < case_cells(&c); ++i)
                if (c.diagonal[i] > 0)
                    c.right_side[i] += i % 3 ? 0.1f : 0.0f; /* something has to go through */
            sk_poisson_options options = options_to(1e-5);
            sk_poisson_report report = solve_once(&c, &options);
            assert_true(report.converged);
            double rounding, independent = independent_residual(&c, &rounding);
            assert_true(independent <= 1e-5 + rounding);
            assert_true(report.iterations <=
                        10); /* 6 or 7 to 1e-5 without the narrow faces, and what the failed cycle wasted */
            case_free(&c);
        }
}

/* --- Other systems, other ends --- */

static void test_mass(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
            for (int power = -3; power <= 6; ++power) {
                poisson_case c;
                case_make(&c, (case_kind)kind, SOURCE_NOISE, dimension, dimension == 3 ? 32 : 128, 8);
                case_add_mass(&c, (float)pow(10, power));
                sk_poisson_options options = options_to(1e-4);
                sk_poisson_report report = solve_once(&c, &options);
                assert_true(report.converged);
                assert_true(report.iterations <= (power < 0 ? 5 : 4));
                case_free(&c);
            }
}

static void test_norms_and_warm_start(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 40, 6);
    sk_poisson_options options = options_to(2e-4);
    options.norm = SELKIE_NORM_MAX;
    sk_poisson_report report = solve_once(&c, &options);
    assert_true(report.converged);
    assert_true(report.residual <= 2e-4);
    cell_row *rows = matrix_of(&c);
    double worst = 0;
    for (size_t i = 0; i < case_cells(&c); ++i) {
        double sum = (double)c.right_side[i] - rows[i].diagonal * (double)c.solution[i];
        for (int n = 0; n < rows[i].count; ++n)
            sum += rows[i].weight[n] * (double)c.solution[rows[i].column[n]];
        worst = fmax(worst, c.diagonal[i] > 0 ? fabs(sum) : 0);
    }
    free(rows);
    assert_true(fabs(worst - report.residual) < 1e-5);
    /* From its own solution nothing is left to do; from a disturbed one little. */
    options.tolerance = 2.1e-4;
    options.warm_start = 1;
    report = solve_once(&c, &options);
    assert_int_equal(report.iterations, 0);
    assert_true(report.converged);
    for (size_t i = 0; i < case_cells(&c); ++i)
        c.solution[i] *= 1.001f;
    report = solve_once(&c, &options);
    assert_true(report.converged);
    assert_in_range(report.iterations, 1, 3);
    /* A limit that is too low is no error. */
    options.warm_start = 0;
    options.max_iterations = 2;
    report = solve_once(&c, &options);
    assert_false(report.converged);
    assert_int_equal(report.iterations, 2);
    assert_true(report.residual > 2e-4);
    case_free(&c);
}

/* Units must not matter: the same bits but for the exponent. */
static void test_scales(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 24, 6);
    size_t cells = case_cells(&c);
    sk_poisson_options options = options_to(1e-4);
    solve_once(&c, &options);
    float *expected = malloc(cells * sizeof(float));
    memcpy(expected, c.solution, cells * sizeof(float));
    const int exponents[2] = {90, -80};
    int before = 0;
    for (int n = 0; n < 2; ++n) {
        for (size_t i = 0; i < cells; ++i)
            c.right_side[i] = ldexpf(c.right_side[i], exponents[n] - before);
        before = exponents[n];
        solve_once(&c, &options);
        for (size_t i = 0; i < cells; ++i)
            assert_true(c.solution[i] == ldexpf(expected[i], exponents[n]));
    }
    free(expected);
    case_free(&c);
}

static void test_degenerate(void **state)
{
    (void)state;
    sk_poisson_options options = options_to(1e-4);
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        int cells[3] = {16, 16, dimension == 3 ? 16 : 1};
        uint8_t *liquid = calloc(4096, 1);
        /* No block at all but the empty one. */
        case_blocks(&c, dimension, cells, liquid);
        sk_poisson_report report = solve_once(&c, &options);
        assert_int_equal(report.unknowns, 0);
        assert_int_equal(report.iterations, 0);
        assert_true(report.converged);
        case_free(&c);
        /* A block without unknowns, with rubbish in the solution. */
        liquid[0] = 1;
        case_blocks(&c, dimension, cells, liquid);
        c.solution[c.block_cells + 3] = 5;
        report = solve_once(&c, &options);
        assert_int_equal(report.unknowns, 0);
        assert_true(c.solution[c.block_cells + 3] == 0);
        /* One cell. */
        c.diagonal[c.block_cells] = 4;
        c.right_side[c.block_cells] = 2;
        report = solve_once(&c, &options);
        assert_int_equal(report.unknowns, 1);
        assert_true(report.converged);
        assert_true(fabsf(c.solution[c.block_cells] - 0.5f) < 1e-6f);
        /* Zero right side. */
        c.right_side[c.block_cells] = 0;
        options.warm_start = 1;
        report = solve_once(&c, &options);
        options.warm_start = 0;
        assert_int_equal(report.iterations, 0);
        assert_true(report.converged && c.solution[c.block_cells] == 0);
        /* Two cells with nothing but each other. */
        c.diagonal[c.block_cells] = c.diagonal[c.block_cells + 1] = 1;
        c.face[0][c.block_cells + 1] = 1;
        c.right_side[c.block_cells] = 3;
        report = solve_once(&c, &options);
        assert_int_equal(report.closed_components, 1);
        assert_true(report.converged);
        assert_true(fabsf(c.solution[c.block_cells] - c.solution[c.block_cells + 1] - 1.5f) < 1e-5f);
        free(liquid);
        case_free(&c);
    }
}

static void expect_failure(poisson_case *c, float *value, float bad, selkie_code expected, const char *says)
{
    float before = *value;
    *value = bad;
    sk_poisson_options options = options_to(1e-4);
    sk_poisson_report report;
    selkie_error error = {0};
    sk_poisson_solver *solver = case_solver(c, NULL);
    assert_int_equal(case_solve(c, solver, &options, &report, &error), expected);
    assert_non_null(strstr(error.message, says));
    case_destroy_solver(c, solver);
    *value = before;
}

static void test_bad_input(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, 40, 3);
        size_t at = case_index(&c, 9, 9, dimension == 3 ? 9 : 0);
        assert_true(c.diagonal[at] > 0);
        const float bad[3] = {NAN, INFINITY, -INFINITY};
        for (int n = 0; n < 3; ++n) {
            expect_failure(&c, &c.right_side[at], bad[n], SELKIE_ERROR_DIVERGED, "right side");
            expect_failure(&c, &c.diagonal[at], bad[n], SELKIE_ERROR_DIVERGED, "not finite");
            expect_failure(&c, &c.face[1][at], bad[n], SELKIE_ERROR_DIVERGED, "not finite");
        }
        expect_failure(&c, &c.diagonal[at], -1, SELKIE_ERROR_INPUT, "negative");
        expect_failure(&c, &c.face[0][at], -1, SELKIE_ERROR_INPUT, "negative");
        expect_failure(&c, &c.diagonal[at], 1, SELKIE_ERROR_INPUT, "less than the sum");
        int32_t before = c.coordinates[1][0];
        c.coordinates[1][0] = before + 40;
        expect_failure(&c, &c.diagonal[at], c.diagonal[at], SELKIE_ERROR_INPUT, "neighbours");
        c.coordinates[1][0] = -1;
        expect_failure(&c, &c.diagonal[at], c.diagonal[at], SELKIE_ERROR_INPUT, "outside");
        c.coordinates[1][0] = before;
        case_free(&c);
    }
}

static void test_memory_limit(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_SPLASHY, SOURCE_NOISE, 3, 32, 3);
    /* Every size at which it may run out. */
    for (size_t limit = 100000; limit < 8000000; limit += 100000) {
        sk_memory memory = {.limit = limit};
        sk_poisson_solver *solver = case_solver(&c, &memory);
        if (!solver)
            continue;
        sk_poisson_options options = options_to(1e-4);
        sk_poisson_report report;
        selkie_error error = {0};
        selkie_code code = case_solve(&c, solver, &options, &report, &error);
        assert_true(code == SELKIE_OK || (code == SELKIE_ERROR_MEMORY && strstr(error.message, "MiB")));
        case_destroy_solver(&c, solver);
        assert_int_equal(memory.used, 0);
    }
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degenerate),    cmocka_unit_test(test_against_plain_cg),
        cmocka_unit_test(test_second_order),  cmocka_unit_test(test_symmetric_preconditioner),
        cmocka_unit_test(test_closed_cavity), cmocka_unit_test(test_mixed_components),
        cmocka_unit_test(test_tiny_excess),   cmocka_unit_test(test_hardly_open),
        cmocka_unit_test(test_mass),          cmocka_unit_test(test_norms_and_warm_start),
        cmocka_unit_test(test_scales),        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_memory_limit),  cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

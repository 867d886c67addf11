/* The linear solvers in both forms, tuned and plain, on the same systems.
 *
 * Both run the same algorithm, so they differ by round-off alone: the levels agree to a few units in the last place,
 * one cycle to the roundings of its sweeps, and residual histories to what the iterations make of those. Iterations may
 * differ by one where a residual lies at the tolerance.
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

#define SELKIE_DIM 3 /* of the internals that are looked at below */
#include "linalg/bounded_solver.h"

/* A value goes through at most 32 sweeps of a cycle: 2 a visit, 4 visits of the finest level and as many of each of the
 * next three, those below in parallel. A relaxation has 2 * 3 + 2 roundings of half a unit in the last place, and
 * averages its neighbours, so errors add up and do not grow. */
static const double cycle_rounding = 32 * (2 * 3 + 2) * 0x1p-24;

enum { LARGE_3D = SANITIZED ? 24 : 40 }; /* cells along an axis */

/* --- Helpers --- */

/* (A x)_i by the definition in poisson.h, in double. */
static double row_times(const poisson_case *c, const double *x, size_t own)
{
    double sum = (double)c->diagonal[own] * x[own], weight;
    for (int side = 0; side < 2 * c->dimension; ++side) {
        size_t there = case_across(c, own, side, &weight);
        sum -= weight * x[there];
    }
    return sum;
}

/* Largest relative difference of residual `step` of two histories. A cycle differs by `cycle_rounding` of its result,
 * hence a residual by that of the one before it, and an iteration passes on what was there: relative to a residual that
 * fell, both grow by the factor of the fall. Restarts of the recurrence at a true residual are covered by that. */
static double allowed_difference(const double *history, int step)
{
    double allowed = cycle_rounding;
    for (int i = 0; i <= step; ++i) {
        double before = i > 0 ? history[i - 1] : fmax(1, history[0]);
        allowed = (allowed + cycle_rounding) * fmax(1, before / history[i]);
    }
    return allowed;
}

static void compare_histories(const double *tuned, const double *plain, int count)
{
    for (int i = 0; i < count; ++i) {
        double allowed = allowed_difference(tuned, i), difference = fabs(tuned[i] - plain[i]) / tuned[i];
        if (difference > allowed)
            print_error("residual %d: %.9g tuned, %.9g plain: differ by %.2g, allowed %.2g\n", i, tuned[i], plain[i],
                        difference, allowed);
        assert_true(difference <= allowed);
    }
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* --- Levels and one cycle --- */

/* Level by level, 3D: the same blocks, coefficients that differ by the order of a few sums of positive numbers. */
static void compare_levels(const sk_multigrid *tuned, const sk_multigrid *plain)
{
    assert_int_equal(tuned->level_count, plain->level_count);
    for (int depth = 0; depth < tuned->level_count; ++depth) {
        const sk_level *a = &tuned->level[depth], *b = &plain->level[depth];
        assert_int_equal(a->block_count, b->block_count);
        assert_int_equal(a->unknowns, b->unknowns);
        /* Each coarse value is one of 8 softened terms and their sum: 8 + 3 roundings a level. */
        double allowed = 11 * 0x1p-23 * depth;
        for (int block = 1; block <= a->block_count; ++block) {
            assert_int_equal(a->slot[block], b->slot[block]);
            assert_true(fabs((double)a->excess[block] - (double)b->excess[block]) <=
                        allowed * (double)a->excess[block]);
            for (int i = 0; i < SK_COEFFICIENT_ARRAYS * SK_BLOCK_CELLS; ++i) {
                double left = (double)sk_slot_array(a, block, 0)[i], right = (double)sk_slot_array(b, block, 0)[i];
                assert_true(fabs(left - right) <= allowed * left);
            }
        }
    }
}

/* z = M r of both for the same random r. */
static void compare_cycles(const sk_multigrid *tuned, const sk_multigrid *plain, int careful)
{
    const sk_level *a = &tuned->level[0], *b = &plain->level[0];
    for (int block = 1; block <= a->block_count; ++block)
        for (int i = 0; i < SK_BLOCK_CELLS; ++i) {
            size_t at = (size_t)block * SK_BLOCK_CELLS + (size_t)i;
            a->b[at] = b->b[at] = sk_is_unknown(a, block, i) ? sk_random_float(77, at, 1) - 0.5f : 0;
        }
    double *dot = calloc(2 * ((size_t)a->block_count + 1), sizeof(double)), *dot_plain = dot + a->block_count + 1;
    sk_multigrid_cycle_3d(tuned, 0, (sk_team){0, 1, NULL}, careful, dot);
    sk_multigrid_cycle_3d(plain, 0, (sk_team){0, 1, NULL}, careful, dot_plain);
    double largest = 0, difference = 0, sum[2] = {0, 0};
    for (size_t i = SK_BLOCK_CELLS; i < ((size_t)a->block_count + 1) * SK_BLOCK_CELLS; ++i) {
        largest = fmax(largest, fabs((double)a->x[i]));
        difference = fmax(difference, fabs((double)a->x[i] - (double)b->x[i]));
    }
    for (int block = 1; block <= a->block_count; ++block) {
        sum[0] += dot[block];
        sum[1] += dot_plain[block];
    }
    if (!(difference <= cycle_rounding * largest))
        print_error("cycles differ by %g of %g\n", difference, largest);
    assert_true(largest > 0 && difference <= cycle_rounding * largest);
    assert_true(sum[0] > 0 && fabs(sum[0] - sum[1]) <= cycle_rounding * sum[0]);
    free(dot);
}

static void test_levels_and_cycle(void **state)
{
    (void)state;
    for (int kind = CASE_CALM; kind <= CASE_SPLASHY; ++kind)
        for (int mass = 0; mass < 2; ++mass) {
            poisson_case c;
            case_make(&c, (case_kind)kind, SOURCE_NOISE, 3, 40, 4);
            case_add_mass(&c, mass ? 0.3f : 0);
            sk_poisson_solver *solver[SK_BACKEND_COUNT];
            for (int backend = 0; backend < SK_BACKEND_COUNT; ++backend) {
                sk_poisson_options options = {.tolerance = 0.5, .max_iterations = 1, .backend = (sk_backend)backend};
                sk_poisson_report report;
                solver[backend] = case_solver(&c, NULL);
                assert_int_equal(case_solve(&c, solver[backend], &options, &report, NULL), SELKIE_OK);
            }
            compare_levels(&solver[0]->multigrid, &solver[1]->multigrid);
            for (int careful = 0; careful < 2; ++careful)
                compare_cycles(&solver[0]->multigrid, &solver[1]->multigrid, careful);
            for (int backend = 0; backend < SK_BACKEND_COUNT; ++backend)
                case_destroy_solver(&c, solver[backend]);
            case_free(&c);
        }
}

/* The option is obeyed: both forms in turn by the same solvers. */
static void test_choice(void **state)
{
    (void)state;
    poisson_case c;
    case_make(&c, CASE_CALM, SOURCE_NOISE, 3, 16, 4);
    sk_poisson_solver *solver = case_solver(&c, NULL);
    sk_bounded_solver *bounded = sk_bounded_create_3d(NULL);
    sk_bounded_system system = {.poisson = c.system};
    const sk_backend order[3] = {SK_BACKEND_PLAIN, SK_BACKEND_TUNED, SK_BACKEND_PLAIN};
    for (int n = 0; n < 3; ++n) {
        int plain = order[n] == SK_BACKEND_PLAIN;
        const sk_level_operations *levels = plain ? &sk_level_operations_plain_3d : &sk_level_operations_tuned_3d;
        sk_poisson_options options = {.tolerance = 1e-4, .max_iterations = 20, .backend = order[n]};
        sk_poisson_report report;
        assert_int_equal(case_solve(&c, solver, &options, &report, NULL), SELKIE_OK);
        assert_ptr_equal(solver->multigrid.operations, levels);
        assert_ptr_equal(solver->operations, plain ? &sk_poisson_operations_plain_3d : &sk_poisson_operations_tuned_3d);
        assert_ptr_equal(solver->pockets.operations, solver->operations);
        sk_bounded_options bounded_options = {.tolerance = 1e-4, .max_iterations = 20, .backend = order[n]};
        sk_bounded_report bounded_report;
        assert_int_equal(sk_bounded_solve_3d(bounded, &system, &bounded_options, &bounded_report, NULL), SELKIE_OK);
        assert_ptr_equal(bounded->part.operations, levels);
        assert_ptr_equal(bounded->poisson->multigrid.operations, levels);
        assert_ptr_equal(bounded->operations,
                         plain ? &sk_bounded_operations_plain_3d : &sk_bounded_operations_tuned_3d);
    }
    case_destroy_solver(&c, solver);
    sk_bounded_destroy_3d(bounded);
    case_free(&c);
}

/* --- Poisson systems --- */

/* A (x_tuned - x_plain) = r_plain - r_tuned: no larger than both residuals, and what rounding x to floats leaves of
 * each, 2^-24 d |x| a cell at most. */
static void compare_solutions(const poisson_case *c, const float *tuned, const float *plain, double residuals,
                              selkie_residual_norm norm)
{
    size_t cells = case_cells(c);
    double *difference = calloc(cells, sizeof(double)), squares = 0, largest = 0, norm_b = 0, noise = 0,
           worst_noise = 0;
    for (size_t i = 0; i < cells; ++i)
        difference[i] = (double)tuned[i] - (double)plain[i];
    for (size_t i = 0; i < cells; ++i) {
        if (!(c->diagonal[i] > 0))
            continue;
        double image = row_times(c, difference, i), d = (double)c->diagonal[i];
        double rounding = 4 * 0x1p-24 * d * (fabs((double)tuned[i]) + fabs((double)plain[i]));
        squares += image * image;
        largest = fmax(largest, fabs(image));
        norm_b += (double)c->right_side[i] * (double)c->right_side[i];
        noise += rounding * rounding;
        worst_noise = fmax(worst_noise, rounding);
    }
    if (norm == SELKIE_NORM_MAX)
        assert_true(largest <= residuals + worst_noise);
    else
        assert_true(sqrt(squares) <= residuals * sqrt(norm_b) + sqrt(noise));
    free(difference);
}

/* Solves in both forms from the same start. `history`: compare the residuals on the way as well. */
static void compare_solves(poisson_case *c, sk_poisson_options options, int history)
{
    size_t bytes = case_cells(c) * sizeof(float);
    float *start = malloc(bytes), *tuned = malloc(bytes);
    memcpy(start, c->solution, bytes);
    sk_poisson_report report[SK_BACKEND_COUNT];
    for (int backend = 0; backend < SK_BACKEND_COUNT; ++backend) {
        sk_poisson_solver *solver = case_solver(c, NULL);
        selkie_error error = {0};
        options.backend = (sk_backend)backend;
        memcpy(c->solution, start, bytes);
        assert_int_equal(case_solve(c, solver, &options, &report[backend], &error), SELKIE_OK);
        if (backend == SK_BACKEND_TUNED)
            memcpy(tuned, c->solution, bytes);
        case_destroy_solver(c, solver);
    }
    const sk_poisson_report *a = &report[SK_BACKEND_TUNED], *b = &report[SK_BACKEND_PLAIN];
    if (abs(a->iterations - b->iterations) > 1)
        print_error("%dD: %d iterations tuned, %d plain\n", c->dimension, a->iterations, b->iterations);
    assert_true(abs(a->iterations - b->iterations) <= 1);
    assert_int_equal(a->converged, b->converged);
    assert_true(!b->converged || b->residual <= options.tolerance);
    assert_int_equal(a->unknowns, b->unknowns);
    assert_int_equal(a->closed_components, b->closed_components);
    if (history)
        compare_histories(a->history, b->history, smaller(a->history_count, b->history_count));
    if (a->closed_components == 0) /* else right sides had their means taken out */
        compare_solutions(c, tuned, c->solution, a->residual + b->residual, options.norm);
    free(start);
    free(tuned);
}

static sk_poisson_options options_to(double tolerance)
{
    return (sk_poisson_options){.tolerance = tolerance, .max_iterations = 60, .threads = 2};
}

static void test_poisson(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int kind = CASE_CALM; kind <= CASE_CLOSED; ++kind)
            for (int source = SOURCE_NOISE; source <= SOURCE_SMOOTH; ++source)
                for (int mass = 0; mass < 2; ++mass) {
                    poisson_case c;
                    case_make(&c, (case_kind)kind, (case_source)source, dimension, dimension == 3 ? LARGE_3D : 140, 11);
                    case_add_mass(&c, mass ? 0.3f : 0);
                    compare_solves(&c, options_to(1e-6), 1);
                    case_free(&c);
                }
}

/* Pockets, faces that are hardly open (careful cycles), nearly closed systems. */
static void test_hard_systems(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, dimension == 3 ? LARGE_3D : 100, 3);
        case_cut_out(&c, (int[3]){0, 0, 0}, (int[3]){1, 1, 1});
        case_cut_out(&c, (int[3]){20, 3, 2}, (int[3]){22, 4, 3});
        case_cut_out(&c, (int[3]){3, 2, 1}, (int[3]){19, 13, 15});
        case_cut_out(&c, (int[3]){8, 4, 3}, (int[3]){12, 9, 9});
        compare_solves(&c, options_to(1e-5), 0);
        case_free(&c);
        for (int power = 1; power <= 4; ++power) {
            int size = dimension == 3 ? 48 : 200;
            case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, size, 3);
            case_narrow(&c, (int[3]){0, 0, 0}, (int[3]){size / 2, size, size / 4}, (float)pow(10, -power));
            for (size_t i = 0; i < case_cells(&c); ++i)
                if (c.diagonal[i] > 0)
                    c.right_side[i] += i % 3 ? 0.1f : 0.0f;
            compare_solves(&c, options_to(1e-5), 0);
            case_free(&c);
        }
        for (int step = 0; step < 3; ++step) {
            case_make(&c, CASE_CLOSED, SOURCE_NOISE, dimension, 24, 3);
            c.diagonal[case_index(&c, 5, 6, dimension == 3 ? 7 : 0)] += (float[]){1.0f, 1e-2f, 1e-3f}[step];
            compare_solves(&c, options_to(1e-4), 0);
            case_free(&c);
        }
    }
}

/* Liquids of different densities: faces of up to `ratio` beside faces of 1. */
static void test_densities(void **state)
{
    (void)state;
    const float ratio = 10;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, dimension == 3 ? LARGE_3D : 140, 3);
        for (size_t i = 0; i < case_cells(&c); ++i) {
            double weight;
            if (!(c.diagonal[i] > 0))
                continue;
            for (int axis = 0; axis < dimension; ++axis) {
                size_t lower = case_across(&c, i, 2 * axis, &weight);
                float more = i / 700 % 2 == 0 ? (ratio - 1) * (float)weight : 0;
                c.face[axis][i] += more;
                c.diagonal[i] += more;
                c.diagonal[lower] += more;
            }
        }
        sk_poisson_options options = options_to(1e-5);
        options.largest_face = (double)ratio;
        compare_solves(&c, options, 1);
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
    compare_solves(&c, options, 0);
    for (size_t i = 0; i < case_cells(&c); ++i)
        c.solution[i] *= 1.001f;
    options.warm_start = 1;
    compare_solves(&c, options, 0);
    options.norm = SELKIE_NORM_RELATIVE;
    options.tolerance = 1e-7;
    options.max_iterations = 3; /* too few */
    compare_solves(&c, options, 0);
    case_free(&c);
}

/* Systems with no unknowns or few, and the same complaints about bad ones. */
static void test_ends(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        int cells[3] = {16, 16, dimension == 3 ? 16 : 1};
        uint8_t *liquid = calloc(4096, 1);
        case_blocks(&c, dimension, cells, liquid);
        compare_solves(&c, options_to(1e-4), 0);
        case_free(&c);
        liquid[0] = 1;
        case_blocks(&c, dimension, cells, liquid);
        c.diagonal[c.block_cells] = c.diagonal[c.block_cells + 1] = 1;
        c.face[0][c.block_cells + 1] = 1;
        c.right_side[c.block_cells] = 3;
        compare_solves(&c, options_to(1e-4), 0);
        case_free(&c);
        free(liquid);

        case_make(&c, CASE_CALM, SOURCE_NOISE, dimension, 40, 3);
        size_t at = case_index(&c, 9, 9, dimension == 3 ? 9 : 0);
        const struct {
            float *value, bad;
        } flaw[] = {{&c.right_side[at], NAN},   {&c.right_side[at], INFINITY}, {&c.diagonal[at], NAN},
                    {&c.diagonal[at], -1},      {&c.diagonal[at], 1},          {&c.face[1][at], NAN},
                    {&c.face[0][at], INFINITY}, {&c.face[0][at], -1}};
        for (size_t n = 0; n < sizeof(flaw) / sizeof(flaw[0]); ++n) {
            selkie_error error[SK_BACKEND_COUNT] = {{0}};
            selkie_code code[SK_BACKEND_COUNT];
            float before = *flaw[n].value;
            *flaw[n].value = flaw[n].bad;
            for (int backend = 0; backend < SK_BACKEND_COUNT; ++backend) {
                sk_poisson_options options = options_to(1e-4);
                sk_poisson_report report;
                options.backend = (sk_backend)backend;
                sk_poisson_solver *solver = case_solver(&c, NULL);
                code[backend] = case_solve(&c, solver, &options, &report, &error[backend]);
                case_destroy_solver(&c, solver);
            }
            *flaw[n].value = before;
            assert_int_not_equal(code[0], SELKIE_OK);
            assert_int_equal(code[0], code[1]);
            assert_string_equal(error[0].message, error[1].message);
        }
        case_free(&c);
    }
}

/* --- Under bounds --- */

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

static sk_bounded_report solve_bounded(poisson_case *c, const float *lower, const sk_bounded_options *options)
{
    sk_bounded_system system = {.poisson = c->system, .lower = lower};
    sk_bounded_report report;
    selkie_error error = {0};
    selkie_code code;
    if (c->dimension == 3) {
        sk_bounded_solver *solver = sk_bounded_create_3d(NULL);
        code = sk_bounded_solve_3d(solver, &system, options, &report, &error);
        sk_bounded_destroy_3d(solver);
    } else {
        sk_bounded_solver *solver = sk_bounded_create_2d(NULL);
        code = sk_bounded_solve_2d(solver, &system, options, &report, &error);
        sk_bounded_destroy_2d(solver);
    }
    if (code != SELKIE_OK)
        print_error("%s\n", error.message);
    assert_int_equal(code, SELKIE_OK);
    return report;
}

/* The natural residual m = min(d (x - lower), A x - f), and y = x - m / d. */
static void natural_residual(const poisson_case *c, const float *lower, const float *solution, double *m, double *y)
{
    size_t cells = case_cells(c);
    double *x = calloc(cells, sizeof(double));
    for (size_t i = 0; i < cells; ++i)
        x[i] = (double)solution[i];
    for (size_t i = 0; i < cells; ++i) {
        double d = (double)c->diagonal[i];
        m[i] = y[i] = 0;
        if (!(d > 0))
            continue;
        m[i] = fmin(d * (x[i] - (lower ? (double)lower[i] : 0)), row_times(c, x, i) - (double)c->right_side[i]);
        y[i] = x[i] - m[i] / d;
    }
    free(x);
}

/* With m and y as above and v = A x - f - m: y >= lower, v >= 0, (y - lower) . v = 0. Of two such pairs
 * (y - y') . (v - v') <= 0, and v = A y - f - O D^-1 m with O = D - A, hence |y - y'|_A^2 <= |y - y'| |O D^-1 (m -
 * m')|. |O D^-1|^2 is at most its largest row sum times its largest column sum, which is 1 as A is dominant. */
static void compare_bounded_solutions(const poisson_case *c, const float *lower, const float *tuned, const float *plain,
                                      double residuals)
{
    size_t cells = case_cells(c);
    double *m = calloc(5 * cells, sizeof(double)), *y = m + cells, *m_plain = y + cells, *y_plain = m_plain + cells;
    double *difference = y_plain + cells, energy = 0, length = 0, rows = 0, unit = 0, noise = 0;
    natural_residual(c, lower, tuned, m, y);
    natural_residual(c, lower, plain, m_plain, y_plain);
    for (size_t i = 0; i < cells; ++i)
        difference[i] = y[i] - y_plain[i];
    float *start = calloc(cells, sizeof(float));
    for (size_t i = 0; lower && i < cells; ++i)
        start[i] = c->diagonal[i] > 0 ? fmaxf(lower[i], 0) : 0;
    natural_residual(c, lower, start, m, y);
    for (size_t i = 0; i < cells; ++i) {
        double d = (double)c->diagonal[i], row = 0, weight;
        if (!(d > 0))
            continue;
        for (int side = 0; side < 2 * c->dimension; ++side) {
            size_t there = case_across(c, i, side, &weight);
            row += c->diagonal[there] > 0 ? weight / (double)c->diagonal[there] : 0;
        }
        rows = fmax(rows, row);
        energy += difference[i] * row_times(c, difference, i);
        length += difference[i] * difference[i];
        unit += m[i] * m[i];
        noise += pow(4 * 0x1p-24 * d * (fabs((double)tuned[i]) + fabs((double)plain[i])), 2); /* x is rounded */
    }
    assert_true(energy <= sqrt(length) * sqrt(rows) * (residuals * sqrt(unit) + sqrt(noise)));
    free(start);
    free(m);
}

static void compare_bounded(poisson_case *c, const float *lower, sk_bounded_options options, int history)
{
    size_t bytes = case_cells(c) * sizeof(float);
    float *start = malloc(bytes), *tuned = malloc(bytes);
    memcpy(start, c->solution, bytes);
    options.backend = SK_BACKEND_TUNED;
    sk_bounded_report a = solve_bounded(c, lower, &options);
    memcpy(tuned, c->solution, bytes);
    memcpy(c->solution, start, bytes);
    options.backend = SK_BACKEND_PLAIN;
    sk_bounded_report b = solve_bounded(c, lower, &options);
    if (abs(a.iterations - b.iterations) > 1)
        print_error("%dD: %d steps tuned, %d plain\n", c->dimension, a.iterations, b.iterations);
    assert_true(abs(a.iterations - b.iterations) <= 1);
    assert_int_equal(a.converged, b.converged);
    assert_true(!b.converged || b.residual <= options.tolerance);
    assert_int_equal(a.unknowns, b.unknowns);
    assert_int_equal(a.overfull_components, b.overfull_components);
    assert_int_equal(b.free_cells + b.active_cells, b.unknowns);
    if (history)
        compare_histories(a.history, b.history, smaller(a.history_count, b.history_count));
    if (a.overfull_components == 0 && options.norm == SELKIE_NORM_RELATIVE)
        compare_bounded_solutions(c, lower, tuned, c->solution, a.residual + b.residual);
    for (size_t i = 0; i < case_cells(c); ++i)
        assert_true(c->solution[i] >= (lower && c->diagonal[i] > 0 ? lower[i] : 0));
    free(start);
    free(tuned);
}

static sk_bounded_options bounded_options_to(double tolerance)
{
    return (sk_bounded_options){
        .method = SK_BOUNDED_ACTIVE_SET, .tolerance = tolerance, .max_iterations = 100, .threads = 2};
}

static void test_bounded(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int kind = CASE_CALM; kind <= CASE_CLOSED; ++kind)
            for (int source = SOURCE_NOISE; source <= SOURCE_SMOOTH; ++source)
                for (int with_suction = 0; with_suction < 2; ++with_suction) {
                    poisson_case c;
                    case_make(&c, (case_kind)kind, (case_source)source, dimension, dimension == 3 ? LARGE_3D : 140, 11);
                    float *lower = with_suction ? suction(&c, 3) : NULL;
                    /* Coarse problems of closed systems are singular: how they start is not comparable. */
                    compare_bounded(&c, lower, bounded_options_to(1e-6), kind != CASE_CLOSED);
                    free(lower);
                    case_free(&c);
                }
}

/* A norm, a warm start, pockets, and the reference method, which reads systems by the same operations. */
static void test_bounded_ends(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension) {
        poisson_case c;
        case_make(&c, CASE_SPLASHY, SOURCE_NOISE, dimension, dimension == 3 ? 24 : 80, 6);
        case_cut_out(&c, (int[3]){3, 2, 1}, (int[3]){19, 13, 15});
        float *lower = suction(&c, 3);
        sk_bounded_options options = bounded_options_to(1e-4);
        options.norm = SELKIE_NORM_MAX;
        compare_bounded(&c, lower, options, 0);
        options = bounded_options_to(1e-6);
        options.warm_start = 1;
        for (size_t i = 0; i < case_cells(&c); ++i)
            c.solution[i] = i % 5 ? c.solution[i] * 1.001f : NAN;
        compare_bounded(&c, lower, options, 0);
        options.warm_start = 0;
        options.method = SK_BOUNDED_MPRGP;
        options.max_iterations = 3000;
        options.forget = 1;
        compare_bounded(&c, lower, options, 0);
        free(lower);
        case_free(&c);
    }
}

/* --- Threads --- */

static void test_same_bits(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; ++dimension)
        for (int kind = CASE_SPLASHY; kind <= CASE_CLOSED; ++kind) {
            poisson_case c;
            case_make(&c, (case_kind)kind, SOURCE_NOISE, dimension, dimension == 3 ? LARGE_3D : 300, 5);
            float *lower = suction(&c, 3);
            size_t bytes = case_cells(&c) * sizeof(float);
            float *first = malloc(2 * bytes), *first_bounded = first + case_cells(&c);
            for (int threads = 1; threads <= 3; ++threads) {
                sk_poisson_options options = options_to(1e-5);
                sk_poisson_report report;
                options.threads = threads;
                options.backend = SK_BACKEND_PLAIN;
                sk_poisson_solver *solver = case_solver(&c, NULL);
                assert_int_equal(case_solve(&c, solver, &options, &report, NULL), SELKIE_OK);
                case_destroy_solver(&c, solver);
                if (threads == 1)
                    memcpy(first, c.solution, bytes);
                assert_memory_equal(first, c.solution, bytes);
                sk_bounded_options bounded = bounded_options_to(1e-5);
                bounded.threads = threads;
                bounded.backend = SK_BACKEND_PLAIN;
                solve_bounded(&c, lower, &bounded);
                if (threads == 1)
                    memcpy(first_bounded, c.solution, bytes);
                assert_memory_equal(first_bounded, c.solution, bytes);
            }
            free(lower);
            free(first);
            case_free(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),       cmocka_unit_test(test_levels_and_cycle),
        cmocka_unit_test(test_poisson),      cmocka_unit_test(test_hard_systems),
        cmocka_unit_test(test_densities),    cmocka_unit_test(test_norms_and_warm_start),
        cmocka_unit_test(test_ends),         cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_bounded_ends), cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

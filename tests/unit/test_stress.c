/* The solver of the viscous stress: rigid motions pass, momentum is kept, any viscosity takes few iterations, and the
 * bits do not depend on the threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sanitized.h"
#include "stress_cases.h"

static sk_stress_report solve(cube *c, double tolerance, int passes, int threads)
{
    sk_stress_report report;
    selkie_error error;
    if (!solve_cube(c, tolerance, passes, threads, &report, &error))
        fail_msg("%s", error.message);
    return report;
}

static double rigid(int d, const double x[3])
{
    return d == 0 ? 0.3 - 0.02 * x[1] + 0.01 * x[2] : d == 1 ? 0.02 * x[0] - 0.03 * x[2] : 0.03 * x[1] - 0.01 * x[0];
}

/* Rigid motions have no strain, also in a ball that cuts cells. The start is wrong, so that the solver works. */
static void rigid_motion_stays(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        cube c;
        make_cube(&c, dimension, 32);
        fill(&c, 32, 11.3, 100.0f, 4.0f);
        set_velocity(&c, rigid);
        for (int d = 0; d < dimension; d++)
            memset(c.velocity[d], 0, (size_t)c.count * (size_t)c.cells * sizeof(float));
        assert_true(solve(&c, 1e-9, 2, 2).converged);
        double worst = 0.0;
        for (int d = 0; d < dimension; d++)
            for (size_t i = 0; i < (size_t)c.count * (size_t)c.cells; i++)
                if (c.mass[d][i] > 0.0f)
                    worst = fmax(worst, fabs((double)(c.velocity[d][i] - c.target[d][i])));
        print_message("%dD: rigid motion changes by %.2g m/s of 0.5\n", dimension, worst);
        /* Rounding of a diagonal of 1,200 masses in single precision, 6e-8, times 0.5 m/s. */
        assert_true(worst < 3.6e-5);
        free_cube(&c);
    }
}

/* Angular momentum about the corner of the cube, in 2D about z; target or solution. */
static double spin_of(const cube *c, float *const velocity[3])
{
    double sum = 0.0;
    for (int b = 1; b < c->count; b++)
        for (int n = 0; n < c->cells; n++) {
            const size_t here = (size_t)b * (size_t)c->cells + (size_t)n;
            int at[3];
            cell_at(c, b, n, at);
            sum += (double)c->mass[1][here] * (at[0] + 0.5) * (double)velocity[1][here] -
                   (double)c->mass[0][here] * (at[1] + 0.5) * (double)velocity[0][here];
        }
    return sum;
}

/* Forces are internal: momentum and angular momentum stay, at a loose tolerance too. Rounding of the results to single
 * precision remains: 6e-8 of 0.5 m/s, over many faces. */
static void momentum_stays(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) { /* by sweeps and with coarse levels */
        const int dimension = 2 + n / 2, soft = n % 2;
        cube c;
        make_cube(&c, dimension, 32);
        fill(&c, 32, 12.0, soft ? 1.0f : 30.0f, 4.0f);
        set_velocity(&c, noise);
        const sk_stress_report report = solve(&c, 1e-3, 2, 2);
        assert_true(report.converged && (report.levels == 1) == soft);
        double total = 0.0;
        for (size_t i = 0; i < (size_t)c.count * (size_t)c.cells; i++)
            total += (double)c.mass[0][i];
        assert_true(fabs(spin_of(&c, c.velocity) - spin_of(&c, c.target)) / (32.0 * total) < 1e-8);
        for (int d = 0; d < dimension; d++) {
            double before = 0.0, after = 0.0, mass = 0.0;
            for (size_t i = 0; i < (size_t)c.count * (size_t)c.cells; i++) {
                before += (double)c.mass[d][i] * (double)c.target[d][i];
                after += (double)c.mass[d][i] * (double)c.velocity[d][i];
                mass += (double)c.mass[d][i];
            }
            assert_true(fabs(after - before) / mass < 1e-8);
        }
        free_cube(&c);
    }
}

/* A box of liquid in the air, from water to glass: at most 20 iterations to 1e-4. */
static void few_iterations(void **state)
{
    (void)state;
    const float strengths[] = {0.1f, 10.0f, 1e3f, 1e5f};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int bulk = 0; bulk < 2; bulk++)
            for (size_t s = 0; s < sizeof strengths / sizeof *strengths; s++) {
                cube c;
                const int size = (dimension == 2 ? 128 : 32) / (1 + SANITIZED);
                make_cube(&c, dimension, size);
                fill(&c, size, 0.0, strengths[s], bulk ? 4.0f : 0.0f);
                set_velocity(&c, noise);
                const sk_stress_report report = solve(&c, 1e-4, 1, 2);
                print_message("%dD, strength %g, bulk %d: %lld unknowns, %d levels, %d iterations, %.0f + %.0f ms\n",
                              dimension, (double)strengths[s], bulk, (long long)report.unknowns, report.levels,
                              report.iterations, report.setup_ms, report.solve_ms);
                assert_true(report.converged);
                assert_true(report.iterations <= 20);
                free_cube(&c);
            }
}

/* The same at every strength around those where sweeps give over to more sweeps, and these to coarse levels: in 7 %
 * steps, the stress of a row from 2 to 130 times its mass. As the viscosity phase solves it (bulk viscosity, two
 * passes), and in one pass with and without bulk viscosity. Noise is the worst start. */
static void few_iterations_at_every_strength(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int kind = 0; kind < 4; kind++) {
            const int joined = kind == 3, passes = kind == 2 ? 2 : 1,
                      size = (dimension == 2 ? 64 : 16) / (1 + SANITIZED);
            const float step = SANITIZED ? 1.5f : 1.07f;
            int most[4] = {0, 0, 0, 0};
            cube c;
            make_cube_of(&c, dimension, size, joined);
            for (float ratio = 2.0f; ratio < 130.0f; ratio *= step) {
                fill(&c, size, 0.0, ratio / (2.0f * (float)dimension + 2.0f), kind ? 4.0f : 0.0f);
                set_velocity(&c, noise);
                const sk_stress_report report = solve(&c, 1e-4, passes, 1);
                assert_true(report.converged);
                if (report.iterations > 20)
                    print_error("%dD, stress %g times the mass: %d iterations\n", dimension, (double)ratio,
                                report.iterations);
                assert_true(report.iterations <= 20);
                most[report.sweeps] = report.iterations > most[report.sweeps] ? report.iterations : most[report.sweeps];
            }
            print_message(
                "%dD%s, bulk %d, %d passes: at most %d, %d and %d iterations of 1, 2 and 3 sweeps, %d of levels\n",
                dimension, joined ? ", joined sides" : "", kind > 0, passes, most[1], most[2], most[3], most[0]);
            for (int n = 0; n < 4; n++)
                assert_true(most[n] > 0);
            free_cube(&c);
        }
}

/* Sweeps go on until they have converged or used up their iterations: a tolerance that no number meets. They find the
 * solution far beyond rounding in single precision, 6e-8. */
static void sweeps_use_their_iterations(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int sweeps = 1; sweeps <= 3; sweeps++) {
            cube c;
            make_cube(&c, dimension, 16);
            fill(&c, 16, 0.0, sweeps == 1 ? 1.0f : sweeps == 2 ? 3.0f : 6.0f, 4.0f);
            set_velocity(&c, noise);
            const sk_stress_report report = solve(&c, 0.0, 1, 1);
            print_message("%dD, %d sweeps: residual %.1e after %d iterations\n", dimension, report.sweeps,
                          report.residual, report.iterations);
            assert_int_equal(report.sweeps, sweeps);
            assert_false(report.converged);
            assert_int_equal(report.iterations, c.max_iterations);
            assert_true(report.residual < 1e-10);
            free_cube(&c);
        }
}

/* A box whose sides are joined. With 96 cells the blocks of coarse levels do not pair up, with 48 in 3D neither: such
 * levels have a period in cells. 416 cells have a level of 13: an odd period, solved directly. */
static void iterations_across_seams(void **state)
{
    (void)state;
    static const struct {
        int dimension, size;
    } cases[] = {{2, 64}, {2, 96}, {2, 160}, {2, 416}, {3, 48}};
    for (int n = 0; n < (SANITIZED ? 2 : 5); n++)
        for (int power = n < 3 ? 1 : 5; power <= 5; power += 2) {
            cube c;
            make_cube_of(&c, cases[n].dimension, cases[n].size, 1);
            fill(&c, cases[n].size, 0.0, (float)pow(10.0, power), 4.0f);
            set_velocity(&c, noise);
            const sk_stress_report report = solve(&c, 1e-4, 2, 1);
            print_message("%dD, joined sides, %d cells, strength 1e%d: %d iterations\n", cases[n].dimension,
                          cases[n].size, power, report.iterations);
            assert_true(report.converged);
            assert_true(report.iterations <= 20);
            free_cube(&c);
        }
}

/* Liquids side by side, 10,000 times apart: the viscosity's logarithm changes over two cells, as the viscosity phase
 * makes it. */
static void jump_of_viscosity(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        cube c;
        const int size = (dimension == 2 ? 128 : 32) / (1 + SANITIZED);
        make_cube(&c, dimension, size);
        fill(&c, size, 0.0, 1.0f, 4.0f);
        for (int b = 1; b < c.count; b++)
            for (int n = 0; n < c.cells; n++) {
                const size_t here = (size_t)b * (size_t)c.cells + (size_t)n;
                int at[3];
                cell_at(&c, b, n, at);
                const double cell = fmin(fmax(0.25 * (at[0] - size / 2) + 0.625, 0.0), 1.0);
                const double edge = fmin(fmax(0.25 * (at[0] - size / 2) + 0.5, 0.0), 1.0);
                c.normal[here] *= (float)pow(1e4, cell);
                c.bulk[here] *= (float)pow(1e4, cell);
                for (int d = 0; d < 3; d++)
                    c.shear[d][here] *= (float)pow(1e4, d == 0 ? cell : edge);
            }
        set_velocity(&c, noise);
        const sk_stress_report report = solve(&c, 1e-4, 2, 2);
        print_message("%dD, strengths 1 and 1e4 side by side: %d iterations\n", dimension, report.iterations);
        assert_true(report.converged);
        assert_true(report.iterations <= 20);
        free_cube(&c);
    }
}

/* Liquid without a surface, as thick as honey, needs no coarse levels. An iteration costs a sixth of one with them, so
 * it may take more of them. The rough and the fine solution differ by no more than the tolerance: the matrix is the
 * mass, 1, and more. */
static void soft_liquid(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        cube rough, fine;
        const int size = 32 / (1 + SANITIZED);
        double worst = 0.0;
        make_cube_of(&rough, dimension, size, 1);
        make_cube_of(&fine, dimension, size, 1);
        fill(&rough, size, 0.0, 1.45f, 4.0f);
        fill(&fine, size, 0.0, 1.45f, 4.0f);
        set_velocity(&rough, noise);
        set_velocity(&fine, noise);
        const sk_stress_report report = solve(&rough, 1e-5, 1, 2), exact = solve(&fine, 1e-10, 1, 2);
        for (int d = 0; d < dimension; d++)
            for (size_t i = 0; i < (size_t)rough.count * (size_t)rough.cells; i++)
                if (rough.mass[d][i] > 0.5f)
                    worst = fmax(worst, fabs((double)(rough.velocity[d][i] - fine.velocity[d][i])));
        print_message("%dD, strength 1.45: %d level, %d and %d iterations (%.1e, %.1e), velocities differ by %.1e\n",
                      dimension, report.levels, report.iterations, exact.iterations, report.residual, exact.residual,
                      worst);
        assert_int_equal(report.levels, 1);
        assert_true(report.converged && exact.converged && report.residual <= 1e-5 && exact.residual <= 1e-10);
        assert_true(report.iterations <= 30);
        assert_true(worst < 1e-5);
        free_cube(&rough);
        free_cube(&fine);
    }
}

/* A soft ball needs no coarse levels either: faces without mass beside its surface hang on others. Faces that hang on
 * nothing but each other do: one cell with stress and without mass, away from the ball. */
static void loose_faces_need_levels(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int loose = 0; loose < 2; loose++) {
            cube c;
            make_cube(&c, dimension, 32);
            fill(&c, 32, 10.3, 1.0f, 4.0f);
            set_velocity(&c, noise);
            for (int b = 1; b < c.count && loose; b++)
                for (int n = 0; n < c.cells; n++) {
                    const size_t here = (size_t)b * (size_t)c.cells + (size_t)n;
                    int at[3];
                    cell_at(&c, b, n, at);
                    if (at[0] == 16 && at[dimension - 1] == 2 && at[1] == (dimension == 3 ? 16 : 2)) {
                        c.normal[here] = 0.01f;
                        c.bulk[here] = 0.04f;
                    }
                }
            const sk_stress_report report = solve(&c, 1e-5, 2, 1);
            print_message("%dD, a ball%s: %d levels, %d iterations\n", dimension, loose ? " and a loose cell" : "",
                          report.levels, report.iterations);
            assert_true(report.converged);
            assert_true(loose ? report.levels > 1 : report.levels == 1);
            free_cube(&c);
        }
}

/* What faces without mass had before does not matter: from step to step it would grow. */
static void faces_without_mass_have_no_past(void **state)
{
    (void)state;
    const float past = 100.0f; /* m/s */
    for (int dimension = 2; dimension <= 3; dimension++) {
        cube still, wild;
        make_cube(&still, dimension, 16);
        make_cube(&wild, dimension, 16);
        fill(&still, 16, 5.3, 2.9f, 4.0f);
        fill(&wild, 16, 5.3, 2.9f, 4.0f);
        set_velocity(&still, noise);
        set_velocity(&wild, noise);
        const size_t values = (size_t)wild.count * (size_t)wild.cells;
        int without_mass = 0;
        for (int d = 0; d < dimension; d++)
            for (size_t i = 0; i < values; i++)
                if (!(wild.mass[d][i] > 0.0f))
                    wild.velocity[d][i] = past;
        solve(&still, 1e-5, 2, 1);
        solve(&wild, 1e-5, 2, 1);
        for (int d = 0; d < dimension; d++)
            for (size_t i = 0; i < values; i++) {
                const int is_row = wild.mass[d][i] > 0.0f || wild.velocity[d][i] != past;
                without_mass += is_row && !(wild.mass[d][i] > 0.0f);
                assert_true(!is_row || wild.velocity[d][i] == still.velocity[d][i]);
            }
        assert_true(without_mass > 0);
        free_cube(&still);
        free_cube(&wild);
    }
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    for (int soft = 0; soft < 2; soft++) { /* with and without coarse levels */
        cube a, b;
        make_cube_of(&a, 3, soft ? 16 : 24, soft);
        make_cube_of(&b, 3, soft ? 16 : 24, soft);
        fill(&a, soft ? 16 : 24, soft ? 0.0 : 9.1, soft ? 1.0f : 50.0f, 4.0f);
        fill(&b, soft ? 16 : 24, soft ? 0.0 : 9.1, soft ? 1.0f : 50.0f, 4.0f);
        set_velocity(&a, noise);
        set_velocity(&b, noise);
        solve(&a, 1e-5, 2, 1);
        solve(&b, 1e-5, 2, 3);
        for (int d = 0; d < 3; d++)
            assert_memory_equal(a.velocity[d], b.velocity[d], (size_t)a.count * (size_t)a.cells * sizeof(float));
        free_cube(&a);
        free_cube(&b);
    }
}

/* A solve that stops in its last pass before it has converged gives what it found, and says how good that is: viscosity
 * uses it if its residual is small. */
static void unfinished_solve_counts(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        cube c, fine;
        double worst = 0.0;
        make_cube(&c, dimension, 32);
        make_cube(&fine, dimension, 32);
        fill(&c, 32, 12.0, 100.0f, 4.0f);
        fill(&fine, 32, 12.0, 100.0f, 4.0f);
        set_velocity(&c, noise);
        set_velocity(&fine, noise);
        c.max_iterations = 6;
        const sk_stress_report report = solve(&c, 1e-9, 1, 1);
        assert_true(solve(&fine, 1e-9, 1, 1).converged);
        for (int d = 0; d < dimension; d++)
            for (size_t i = 0; i < (size_t)c.count * (size_t)c.cells; i++)
                if (c.mass[d][i] > 0.5f)
                    worst = fmax(worst, fabs((double)(c.velocity[d][i] - fine.velocity[d][i])));
        print_message("%dD: residual %.1e after %d iterations, velocities differ by %.1e\n", dimension, report.residual,
                      report.iterations, worst);
        assert_false(report.converged);
        assert_int_equal(report.iterations, 6);
        assert_true(report.residual > 1e-9 && report.residual < 0.05);
        assert_true(worst < 1e-3);
        free_cube(&c);
        free_cube(&fine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rigid_motion_stays),
        cmocka_unit_test(momentum_stays),
        cmocka_unit_test(few_iterations),
        cmocka_unit_test(few_iterations_at_every_strength),
        cmocka_unit_test(sweeps_use_their_iterations),
        cmocka_unit_test(iterations_across_seams),
        cmocka_unit_test(same_bits_on_any_threads),
        cmocka_unit_test(jump_of_viscosity),
        cmocka_unit_test(soft_liquid),
        cmocka_unit_test(loose_faces_need_levels),
        cmocka_unit_test(faces_without_mass_have_no_past),
        cmocka_unit_test(unfinished_solve_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

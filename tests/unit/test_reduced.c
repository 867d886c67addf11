/* Modes of a box: coefficients, transforms, energy and enstrophy, order in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "methods/reduced/spectrum.h"

#define PI 3.14159265358979323846

static void make(sk_reduced_spectrum *s, double width, double height, int count)
{
    selkie_error error;
    const sk_reduced_box box = {.size = {width, height}, .cells = {96, 80}, .modes = count};
    if (sk_reduced_spectrum_make(s, &box, NULL, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
}

/* Velocities of random sign with a spectrum that falls, of unit energy. */
static double *random_state(const sk_reduced_spectrum *s, uint64_t seed)
{
    double *r = calloc((size_t)s->count, sizeof *r), energy = 0.0;
    for (int k = 0; k < s->count; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        r[k] = ((double)(seed >> 40) / 16777216.0 - 0.5) / sqrt(s->lambda[k]);
        energy += r[k] * r[k];
    }
    for (int k = 0; k < s->count; k++)
        r[k] /= sqrt(energy);
    return r;
}

/* Modes are sorted, orthonormal, and complete below the largest eigenvalue. */
static void modes_are_sorted(void **state)
{
    (void)state;
    sk_reduced_spectrum s;
    make(&s, 2.0, 1.0, 100);
    int below = 0;
    for (int k1 = 1; k1 < 60; k1++)
        for (int k2 = 1; k2 < 60; k2++)
            below += pow(k1 * PI / 2.0, 2) + pow(k2 * PI, 2) <= s.lambda[99] * (1 + 1e-12);
    assert_int_equal(below, 100);
    for (int k = 1; k < 100; k++)
        assert_true(s.lambda[k] >= s.lambda[k - 1]);
    sk_reduced_spectrum_free(&s);
}

static double stream(const sk_reduced_spectrum *s, int k, double x, double y)
{
    return s->norm[k] * sin(s->wave[k][0] * PI * x / s->size[0]) * sin(s->wave[k][1] * PI * y / s->size[1]);
}

/* (u_i . grad) psi_j at a point. */
static double carried(const sk_reduced_spectrum *s, int i, int j, double x, double y)
{
    const double a = s->wave[j][0] * PI / s->size[0], b = s->wave[j][1] * PI / s->size[1];
    double r[256] = {0}, velocity[2];
    r[i] = 1.0;
    sk_reduced_velocity(s, r, (const double[2]){x, y}, velocity);
    return s->norm[j] * (velocity[0] * a * cos(a * x) * sin(b * y) + velocity[1] * b * sin(a * x) * cos(b * y));
}

/* The strength of a triad against quadrature at midpoints, exact for these trigonometric polynomials. */
static void triads_equal_quadrature(void **state)
{
    (void)state;
    enum { POINTS = 40 };
    sk_reduced_spectrum s;
    make(&s, 1.5, 1.0, 40);
    assert_true(s.triad_count > 100);
    for (int64_t n = 0; n < s.triad_count; n += 7) {
        const sk_reduced_triad *t = &s.triads[n];
        double sum = 0.0;
        for (int i = 0; i < POINTS; i++)
            for (int j = 0; j < POINTS; j++) {
                const double x = s.size[0] * (i + 0.5) / POINTS, y = s.size[1] * (j + 0.5) / POINTS;
                sum += stream(&s, t->c, x, y) * carried(&s, t->a, t->b, x, y);
            }
        sum *= s.size[0] * s.size[1] / (POINTS * POINTS);
        assert_true(fabs(sum - t->strength) < 1e-12);
    }
    sk_reduced_spectrum_free(&s);
}

static void transforms_equal_triads(void **state)
{
    (void)state;
    const int counts[] = {3, 16, 73, 256};
    for (int n = 0; n < 4; n++) {
        sk_reduced_spectrum s;
        make(&s, 1.0, 0.7, counts[n]);
        double *r = random_state(&s, 3), *a = calloc((size_t)s.count, sizeof *a),
               *b = calloc((size_t)s.count, sizeof *b);
        double worst = 0.0, largest = 0.0;
        sk_reduced_advect_by_triads(&s, r, a);
        sk_reduced_advect_by_transforms(&s, r, b, 2);
        for (int k = 0; k < s.count; k++) {
            worst = fmax(worst, fabs(a[k] - b[k]));
            largest = fmax(largest, fabs(a[k]));
        }
        print_message("%d modes, %lld triads: difference %.2g of %.3g\n", s.count, (long long)s.triad_count, worst,
                      largest);
        assert_true(worst <= 1e-13 * fmax(largest, 1.0));
        free(r);
        free(a);
        free(b);
        sk_reduced_spectrum_free(&s);
    }
}

/* 60 s without viscosity. */
static void moments_stay(void **state)
{
    (void)state;
    const int counts[] = {64, 400};
    for (int n = 0; n < 2; n++) {
        sk_reduced_spectrum s;
        make(&s, 1.0, 1.0, counts[n]);
        double *r = random_state(&s, 11), energy, enstrophy, now, turning;
        sk_reduced_moments(&s, r, &energy, &enstrophy);
        for (int step = 0; step < (n ? 600 : 3600); step++)
            sk_reduced_step(&s, r, 1.0 / 60, 0.0, 2);
        sk_reduced_moments(&s, r, &now, &turning);
        assert_true(fabs(now / energy - 1.0) < 1e-12 && fabs(turning / enstrophy - 1.0) < 1e-12);
        free(r);
        sk_reduced_spectrum_free(&s);
    }
}

/* One mode alone is steady without viscosity and decays as exp(-nu lambda t) with it. */
static void modes_decay(void **state)
{
    (void)state;
    sk_reduced_spectrum s;
    make(&s, 1.0, 2.0, 50);
    for (int k = 0; k < 50; k += 7) {
        double r[50] = {0};
        r[k] = 1.3;
        for (int step = 0; step < 100; step++)
            sk_reduced_step(&s, r, 0.01, 0.002, 1);
        assert_true(fabs(r[k] - 1.3 * exp(-0.002 * s.lambda[k])) < 1e-12);
    }
    sk_reduced_spectrum_free(&s);
}

/* Half the step, a sixteenth of the error. */
static void fourth_order(void **state)
{
    (void)state;
    sk_reduced_spectrum s;
    make(&s, 1.0, 1.0, 30);
    double *start = random_state(&s, 5), *r[4], errors[3];
    for (int n = 0; n < 4; n++) {
        const int steps = n == 3 ? 1024 : 16 << n;
        r[n] = calloc((size_t)s.count, sizeof **r);
        memcpy(r[n], start, (size_t)s.count * sizeof **r);
        for (int step = 0; step < steps; step++)
            sk_reduced_step(&s, r[n], 0.5 / steps, 0.0, 1);
    }
    for (int n = 0; n < 3; n++) {
        errors[n] = 0.0;
        for (int k = 0; k < s.count; k++)
            errors[n] += (r[n][k] - r[3][k]) * (r[n][k] - r[3][k]);
        errors[n] = sqrt(errors[n]);
    }
    print_message("errors %.3g %.3g %.3g\n", errors[0], errors[1], errors[2]);
    assert_true(log2(errors[1] / errors[2]) > 3.7);
    for (int n = 0; n < 4; n++)
        free(r[n]);
    free(start);
    sk_reduced_spectrum_free(&s);
}

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    sk_reduced_spectrum s;
    make(&s, 1.0, 1.0, 2000);
    double *a = random_state(&s, 9), *b = random_state(&s, 9);
    for (int step = 0; step < 3; step++) {
        sk_reduced_step(&s, a, 0.01, 1e-4, 1);
        sk_reduced_step(&s, b, 0.01, 1e-4, 3);
    }
    assert_memory_equal(a, b, (size_t)s.count * sizeof *a);
    free(a);
    free(b);
    sk_reduced_spectrum_free(&s);
}

/* Sides of all kinds: energy stays, and enstrophy where nothing gets through. */
static void other_sides_keep_energy(void **state)
{
    (void)state;
    const struct {
        int family[2], enstrophy;
    } cases[] = {{{SK_REDUCED_PERIODIC, SK_REDUCED_CLOSED}, 1},
                 {{SK_REDUCED_PERIODIC, SK_REDUCED_PERIODIC}, 1},
                 {{SK_REDUCED_OPEN, SK_REDUCED_CLOSED}, 0},
                 {{SK_REDUCED_OPEN_LOW, SK_REDUCED_OPEN_HIGH}, 0}};
    for (int n = 0; n < 4; n++) {
        const sk_reduced_box box = {
            .size = {1.5, 1.0}, .family = {cases[n].family[0], cases[n].family[1]}, .cells = {64, 48}, .modes = 120};
        sk_reduced_spectrum s;
        selkie_error error;
        assert_int_equal(sk_reduced_spectrum_make(&s, &box, NULL, &error), SELKIE_OK);
        double *r = random_state(&s, 21), *rate = calloc((size_t)s.count, sizeof *rate), work = 0.0, size = 0.0;
        double energy, enstrophy, now, turning;

        /* The rates do no work, before any projection. */
        sk_reduced_advect(&s, r, rate, 1);
        for (int k = 0; k < s.count; k++) {
            work += r[k] * rate[k];
            size += fabs(r[k] * rate[k]);
        }
        assert_true(fabs(work) < 1e-12 * size);

        sk_reduced_moments(&s, r, &energy, &enstrophy);
        for (int step = 0; step < 600; step++)
            sk_reduced_step(&s, r, 1.0 / 60, 0.0, 2);
        sk_reduced_moments(&s, r, &now, &turning);
        assert_true(fabs(now / energy - 1.0) < 1e-12);
        assert_true(!cases[n].enstrophy || fabs(turning / enstrophy - 1.0) < 1e-12);
        free(r);
        free(rate);
        sk_reduced_spectrum_free(&s);
    }
}

/* By points and by transforms the rates are the same where the points are enough. */
static void points_equal_transforms(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        const sk_reduced_box box = {.size = {1.0, 0.8},
                                    .family = {n ? SK_REDUCED_PERIODIC : SK_REDUCED_CLOSED, SK_REDUCED_CLOSED},
                                    .cells = {60, 50},
                                    .modes = 300};
        sk_reduced_spectrum s;
        selkie_error error;
        assert_int_equal(sk_reduced_spectrum_make(&s, &box, NULL, &error), SELKIE_OK);
        double *r = random_state(&s, 5), *a = calloc((size_t)s.count, sizeof *a),
               *b = calloc((size_t)s.count, sizeof *b);
        double worst = 0.0, largest = 0.0;
        sk_reduced_advect_by_transforms(&s, r, a, 1);
        sk_reduced_advect_by_points(&s, r, b, 2);
        for (int k = 0; k < s.count; k++) {
            worst = fmax(worst, fabs(a[k] - b[k]));
            largest = fmax(largest, fabs(a[k]));
        }
        assert_true(worst < 1e-12 * largest);
        free(r);
        free(a);
        free(b);
        sk_reduced_spectrum_free(&s);
    }
}

/* Velocities at the nodes are the sums of the functions there, and a field of the modes is projected to itself. */
static void velocities_and_projection(void **state)
{
    (void)state;
    sk_reduced_spectrum s;
    make(&s, 1.2, 1.0, 90);
    const int ny = s.cells[1] + 1, nodes = (s.cells[0] + 1) * ny, middles = s.cells[0] * s.cells[1];
    double *r = random_state(&s, 2), *again = calloc((size_t)s.count, sizeof *again);
    double *field[3], *node[2], worst = 0.0;
    for (int d = 0; d < 3; d++)
        field[d] = calloc((size_t)middles, sizeof *field[d]);
    for (int d = 0; d < 2; d++)
        node[d] = calloc((size_t)nodes, sizeof *node[d]);
    sk_reduced_velocities(&s, r, node, 2);
    for (int n = 0; n < nodes; n += 37) {
        const double x[2] = {s.size[0] * (n / ny) / s.cells[0], s.size[1] * (n % ny) / s.cells[1]};
        double u[2];
        sk_reduced_velocity(&s, r, x, u);
        worst = fmax(worst, fabs(u[0] - node[0][n]) + fabs(u[1] - node[1][n]));
    }
    assert_true(worst < 1e-11);

    sk_reduced_middles(&s, r, field, 1);
    sk_reduced_project(&s, (const double *const[2]){field[0], field[1]}, again, 2);
    for (int k = 0; k < s.count; k++)
        assert_true(fabs(again[k] - r[k]) < 1e-13);
    for (int d = 0; d < 3; d++)
        free(field[d]);
    free(node[0]);
    free(node[1]);
    free(r);
    free(again);
    sk_reduced_spectrum_free(&s);
}

/* The source's exponential keeps energy in the velocity form, loses enstrophy and is of first order. */
static void exponential_is_first_order(void **state)
{
    (void)state;
    sk_reduced_spectrum s;
    make(&s, 1.0, 1.0, 30);
    double *start = random_state(&s, 5), *r = calloc((size_t)s.count, sizeof *r),
           *fine = calloc((size_t)s.count, sizeof *r);
    double errors[3], energy, enstrophy, before, turning;
    memcpy(fine, start, (size_t)s.count * sizeof *r);
    for (int step = 0; step < 512; step++)
        sk_reduced_step(&s, fine, 0.5 / 512, 0.0, 1);
    sk_reduced_moments(&s, start, &before, &turning);
    for (int n = 0; n < 3; n++) {
        const int steps = 64 << n;
        memcpy(r, start, (size_t)s.count * sizeof *r);
        errors[n] = 0.0;
        for (int step = 0; step < steps; step++)
            sk_reduced_step_exponential(&s, r, 0.5 / steps, 0.0);
        for (int k = 0; k < s.count; k++)
            errors[n] += (r[k] - fine[k]) * (r[k] - fine[k]);
        errors[n] = sqrt(errors[n]);
        sk_reduced_moments(&s, r, &energy, &enstrophy);
        assert_true(fabs(energy / before - 1.0) < 1e-12);
    }
    print_message("errors %.3g %.3g %.3g\n", errors[0], errors[1], errors[2]);
    assert_true(fabs(log2(errors[1] / errors[2]) - 1.0) < 0.15);
    free(start);
    free(r);
    free(fine);
    sk_reduced_spectrum_free(&s);
}

/* How much of a jet with a standard deviation of 0.02 m the eigenfunctions miss: 48 % of its energy with 63, 10 % with
 * 256, 0.1 % with 1024. */
static void narrow_jets_need_many_modes(void **state)
{
    (void)state;
    const int counts[4] = {63, 256, 1024, 4096};
    double energy[4];
    for (int n = 0; n < 4; n++) {
        const sk_reduced_box box = {.size = {1.0, 1.0}, .cells = {200, 200}, .modes = counts[n]};
        sk_reduced_spectrum s;
        selkie_error error;
        assert_int_equal(sk_reduced_spectrum_make(&s, &box, NULL, &error), SELKIE_OK);
        double *r = calloc((size_t)s.count, sizeof *r), enstrophy;
        for (int i = 0; i < 200; i++)
            for (int j = 0; j < 200; j++) {
                const double x = (i + 0.5) / 200, y = (j + 0.5) / 200, q = (y - 0.5) / 0.02;
                s.grid[3][i * 200 + j] = exp(-0.5 * q * q - pow((x - 0.5) / 0.25, 4));
                s.grid[4][i * 200 + j] = 0.0;
            }
        sk_reduced_project(&s, (const double *const[2]){s.grid[3], s.grid[4]}, r, 2);
        sk_reduced_moments(&s, r, &energy[n], &enstrophy);
        free(r);
        sk_reduced_spectrum_free(&s);
    }
    for (int n = 0; n < 3; n++)
        print_message("%d modes miss %.3g %%\n", counts[n], 100.0 * (1.0 - energy[n] / energy[3]));
    assert_true(fabs(energy[0] / energy[3] - 0.52) < 0.03 && energy[2] > 0.98 * energy[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_are_sorted),
        cmocka_unit_test(triads_equal_quadrature),
        cmocka_unit_test(transforms_equal_triads),
        cmocka_unit_test(moments_stay),
        cmocka_unit_test(modes_decay),
        cmocka_unit_test(fourth_order),
        cmocka_unit_test(same_bits_on_any_threads),
        cmocka_unit_test(other_sides_keep_energy),
        cmocka_unit_test(points_equal_transforms),
        cmocka_unit_test(velocities_and_projection),
        cmocka_unit_test(exponential_is_first_order),
        cmocka_unit_test(narrow_jets_need_many_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

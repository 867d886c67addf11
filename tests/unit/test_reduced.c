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
    const double size[2] = {width, height};
    if (sk_reduced_spectrum_make(s, size, count, NULL, &error) != SELKIE_OK)
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

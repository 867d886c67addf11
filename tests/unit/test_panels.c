/* Vortex panels of bodies: surface speed, added mass, several bodies, walls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geom/outline.h"
#include "methods/reduced/coupling.h"

#define PI 3.14159265358979323846

static void check(selkie_code code, const selkie_error *error)
{
    if (code != SELKIE_OK)
        fail_msg("%s", error->message);
}

static void make_circle(sk_panels *panels, int count, double radius)
{
    selkie_error error;
    sk_outline outline;
    const double center[2] = {0.3, -0.2};
    check(sk_outline_circle(center, radius, count, NULL, &outline, &error), &error);
    check(sk_panels_make(panels, count, (const double(*)[2])outline.corners, center, "circle", NULL, &error), &error);
    sk_outline_free(&outline);
}

static void make_square(sk_panels *panels, int a_side, double half)
{
    selkie_error error;
    sk_outline outline;
    const double center[2] = {0.0, 0.0}, h = half, corners[4][2] = {{-h, -h}, {h, -h}, {h, h}, {-h, h}};
    check(sk_outline_polygon(4, corners, 2.0 * half / a_side, NULL, &outline, &error), &error);
    check(sk_panels_make(panels, outline.count, (const double(*)[2])outline.corners, center, "square", NULL, &error),
          &error);
    assert_int_equal(outline.count, 4 * a_side);
    sk_outline_free(&outline);
}

/* Largest error of the speed along the surface of a cylinder in a stream, 2 U sin(theta), over 2 U. */
static double surface_error(int count)
{
    sk_panels p;
    make_circle(&p, count, 0.1);
    double *stream = calloc((size_t)count, sizeof *stream), *strength = calloc((size_t)count, sizeof *strength);
    double worst = 0.0;
    for (int i = 0; i < count; i++)
        stream[i] = -p.middle[i][1];
    sk_panels_strengths(&p, stream, strength);
    for (int i = 0; i < count; i++)
        worst = fmax(worst, fabs(strength[i] + 2.0 * sin(atan2(p.middle[i][1], p.middle[i][0]))));
    free(stream);
    free(strength);
    sk_panels_free(&p);
    return 0.5 * worst;
}

static double circle_added_error(int count)
{
    sk_panels p;
    make_circle(&p, count, 0.1);
    const double exact = PI * 0.01;
    double error = fmax(fabs(p.added[0][0] / exact - 1.0), fabs(p.added[1][1] / exact - 1.0));
    print_message("%d panels: added mass %.5f %.5f, rotation %.2g\n", count, p.added[0][0] / exact,
                  p.added[1][1] / exact, p.added[2][2]);
    assert_true(fabs(p.area - exact) < 1e-12);
    sk_panels_free(&p);
    return error;
}

/* Bounds of a trial with 33 panels: 0.3 % and 1.5 %. The collocation is of second order. */
static void cylinder_has_the_potential_flow(void **state)
{
    (void)state;
    const double speed[2] = {surface_error(33), surface_error(66)},
                 mass[2] = {circle_added_error(33), circle_added_error(66)};
    print_message("surface speed off by %.4f, %.4f; added mass by %.4f, %.4f\n", speed[0], speed[1], mass[0], mass[1]);
    assert_true(speed[0] < 0.003 && mass[0] < 0.015);
    assert_true(speed[1] < speed[0] / 3.9 && mass[1] < mass[0] / 3.9);
}

/* 1.513 pi a^2 for a square of side 2 a (Newman, Marine Hydrodynamics, table 4.3); rotation 0.234 pi a^4. */
static void square_has_its_added_mass(void **state)
{
    (void)state;
    for (int a_side = 3; a_side <= 24; a_side *= 2) {
        sk_panels p;
        make_square(&p, a_side, 0.1);
        print_message("%d a side: %.4f %.4f of 1.513 pi a^2, rotation %.4f of 0.234 pi a^4, coupling %.2g\n", a_side,
                      p.added[0][0] / (1.513 * PI * 0.01), p.added[1][1] / (1.513 * PI * 0.01),
                      p.added[2][2] / (0.234 * PI * 1e-4), p.added[0][2]);
        if (a_side >= 6)
            assert_true(fabs(p.added[0][0] / (1.513 * PI * 0.01) - 1.0) < 0.02);
        sk_panels_free(&p);
    }
}

/* --- Images --- */

typedef struct points {
    sk_image_points list;
    double memory[5][64];
} points;

static void place(points *p, const sk_images *images, int n, double x, double y)
{
    p->list = (sk_image_points){.count = 64,
                                .across = p->memory[0],
                                .cosine = p->memory[1],
                                .sine = p->memory[2],
                                .growth = p->memory[3],
                                .decay = p->memory[4]};
    sk_images_place(images, n, (const double[2]){x, y}, &p->list);
}

/* Stream function of a pair of opposite vortices by the sum over many images. */
static double lattice(const double size[2], const int copies, const double at[2], const double pair[2][2])
{
    double sum = 0.0;
    for (int m = -copies; m <= copies; m++)
        for (int n = -copies; n <= copies; n++)
            for (int k = 0; k < 2; k++) {
                const int flips = (m & 1) + (n & 1);
                const double x = m & 1 ? (m + 1) * size[0] - pair[k][0] : m * size[0] + pair[k][0],
                             y = n & 1 ? (n + 1) * size[1] - pair[k][1] : n * size[1] + pair[k][1];
                sum -= (k ? -1.0 : 1.0) * (flips & 1 ? -1.0 : 1.0) / (2.0 * PI) * log(hypot(at[0] - x, at[1] - y));
            }
    return sum;
}

/* The closed form of the rows equals the sum over the images. Differences between two points cancel constants. */
static void rows_equal_the_lattice(void **state)
{
    (void)state;
    const double size[2] = {1.5, 1.0}, pair[2][2] = {{0.31, 0.22}, {0.4, 0.27}};
    const int closed[2] = {1, 1};
    sk_images images;
    points p = {0};
    assert_int_equal(sk_images_make(&images, size, closed, NULL), SELKIE_OK);
    place(&p, &images, 0, pair[0][0], pair[0][1]);
    place(&p, &images, 1, pair[1][0], pair[1][1]);
    for (int n = 0; n < 20; n++) {
        const double at[2] = {size[0] * fmod(0.7549 * n + 0.3, 1.0), size[1] * fmod(0.5698 * n + 0.3, 1.0)};
        double streams[2], regular[2];
        place(&p, &images, 2, at[0], at[1]);
        sk_images_streams(&images, &p.list, 2, 0, 2, streams);
        for (int k = 0; k < 2; k++)
            regular[k] =
                sk_images_regular(&images, &p.list, 2, k, (const double[2]){at[0] - pair[k][0], at[1] - pair[k][1]}) -
                log(hypot(at[0] - pair[k][0], at[1] - pair[k][1])) / (2.0 * PI);
        /* The sum alternates around its limit. */
        const double wanted = 0.5 * (lattice(size, 40, at, pair) + lattice(size, 41, at, pair));
        assert_true(fabs(streams[0] - streams[1] - wanted) < 1e-5);
        /* Many pairs at once are computed in floats; strengths of sheets are found to 1e-5. */
        assert_true(fabs(streams[0] - regular[0]) < 3e-8 && fabs(streams[1] - regular[1]) < 3e-8);
    }
}

/* Walls carry no flux, and periodic sides repeat. */
static void rows_keep_the_sides(void **state)
{
    (void)state;
    const double size[2] = {0.8, 1.0};
    for (int kind = 0; kind < 4; kind++) {
        const int closed[2] = {kind & 1, kind >> 1};
        sk_images images;
        points p = {0};
        double streams[2][1], worst = 0.0;
        assert_int_equal(sk_images_make(&images, size, closed, NULL), SELKIE_OK);
        place(&p, &images, 0, 0.2, 0.7);
        for (int d = 0; d < 2; d++)
            for (int n = 0; n <= 16; n++) {
                const double along = n / 16.0 * size[!d];
                for (int end = 0; end < 2; end++) {
                    place(&p, &images, 1, d ? along : end * size[0], d ? end * size[1] : along);
                    sk_images_streams(&images, &p.list, 1, 0, 1, streams[end]);
                }
                worst = fmax(worst, closed[d] ? fmax(fabs(streams[0][0]), fabs(streams[1][0]))
                                              : fabs(streams[0][0] - streams[1][0]));
            }
        print_message("walls %d %d: %d pairs of rows along %d, %.2g\n", closed[0], closed[1], images.pair_count,
                      images.along, worst);
        assert_true(worst < 1e-5);
    }
}

/* --- Several bodies --- */

static void make_bodies(sk_coupling *c, int count, int panels, double radius)
{
    selkie_error error;
    sk_panels *list = sk_allocate(NULL, (size_t)count * sizeof *list);
    for (int b = 0; b < count; b++)
        make_circle(&list[b], panels, radius);
    check(sk_coupling_make(c, count, list, (const double[2]){1.0, 1.0}, (const int[2]){1, 1}, NULL, &error), &error);
}

static void bodies_in_a_stream(sk_coupling *c, const double velocity[2])
{
    for (int n = 0; n < c->count; n++)
        c->wanted[n] = velocity[0] * c->middle[n][1] - velocity[1] * c->middle[n][0];
}

/* Two discs at a gap of 0.05 radii, one of them near a wall: sweeps equal one large solve. */
static void sweeps_equal_one_solve(void **state)
{
    (void)state;
    sk_coupling c;
    make_bodies(&c, 2, 32, 0.1);
    sk_coupling_place(&c, 0, (const double[2]){0.13, 0.5}, 0.3);
    sk_coupling_place(&c, 1, (const double[2]){0.13 + 0.205, 0.5}, 0.0);
    sk_coupling_assemble(&c, 1);
    bodies_in_a_stream(&c, (const double[2]){0.3, -1.0});
    sk_coupling_solve(&c, 1e-7);
    double *swept = calloc((size_t)c.count, sizeof *swept), largest = 0.0, worst = 0.0;
    memcpy(swept, c.strength, (size_t)c.count * sizeof *swept);
    const int sweeps = c.sweeps;
    assert_true(sk_coupling_solve_whole(&c));
    for (int n = 0; n < c.count; n++) {
        largest = fmax(largest, fabs(c.strength[n]));
        worst = fmax(worst, fabs(c.strength[n] - swept[n]));
    }
    print_message("%d sweeps, off by %.2g of %.3g\n", sweeps, worst, largest);
    assert_true(worst < 1e-4 * largest && sweeps < 40);
    free(swept);
    sk_coupling_free(&c);
}

/* A disc that moves towards a wall, 0.2 radii away: no flux through the wall. The velocity is the slow sum over a
 * lattice of images, which alternates around its limit. */
static void walls_let_nothing_through(void **state)
{
    (void)state;
    sk_coupling c;
    make_bodies(&c, 1, 64, 0.1);
    sk_coupling_place(&c, 0, (const double[2]){0.4, 0.12}, 0.0);
    sk_coupling_assemble(&c, 1);
    bodies_in_a_stream(&c, (const double[2]){0.3, -1.0});
    sk_coupling_solve(&c, 1e-8);
    double wall = 0.0, u[2][2];
    for (int n = 0; n <= 50; n++) {
        for (int k = 0; k < 2; k++)
            sk_coupling_velocity(&c, (const double[2]){n / 50.0, 0.0}, 8 + k, u[k]);
        wall = fmax(wall, 0.5 * fabs(u[0][1] + u[1][1]));
    }
    print_message("wall flux %.2g U\n", wall);
    assert_true(wall < 1e-3);
    sk_coupling_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cylinder_has_the_potential_flow), cmocka_unit_test(square_has_its_added_mass),
        cmocka_unit_test(rows_equal_the_lattice),          cmocka_unit_test(rows_keep_the_sides),
        cmocka_unit_test(sweeps_equal_one_solve),          cmocka_unit_test(walls_let_nothing_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

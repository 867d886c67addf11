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

#include "base/memory.h"
#include "base/random.h"
#include "linalg/stress.h"

/* Blocks of a cube of cells, `size` a side, with a border of one empty block. */
typedef struct cube {
    int dimension, blocks, extent,
        cells; /* blocks a side with the border; cells of a block along an axis; in a block */
    int count; /* of blocks, with block 0 */
    int32_t (*coordinates)[4];
    int32_t (*neighbours)[27];
    float *mass[3], *normal, *bulk, *shear[3], *target[3], *velocity[3];
    uint8_t *fixed[3];
    sk_memory memory;
    sk_arena arena;
} cube;

static int slot_at(const cube *c, int x, int y, int z)
{
    const int n = c->blocks;
    if (x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= (c->dimension == 3 ? n : 1))
        return 0;
    return 1 + x + n * (y + n * z);
}

static void make_cube(cube *c, int dimension, int size)
{
    memset(c, 0, sizeof *c);
    c->dimension = dimension;
    c->extent = dimension == 3 ? 8 : 16;
    c->cells = dimension == 3 ? 512 : 256;
    c->blocks = size / c->extent + 2;
    c->count = 1 + c->blocks * c->blocks * (dimension == 3 ? c->blocks : 1);
    c->coordinates = calloc((size_t)c->count, sizeof *c->coordinates);
    c->neighbours = calloc((size_t)c->count, sizeof *c->neighbours);
    for (int b = 1; b < c->count; b++) {
        const int n = c->blocks, at[3] = {(b - 1) % n, (b - 1) / n % n, (b - 1) / (n * n)};
        for (int d = 0; d < 3; d++)
            c->coordinates[b][d] = at[d];
        for (int k = 0; k < (dimension == 3 ? 27 : 9); k++)
            c->neighbours[b][k] =
                slot_at(c, at[0] + k % 3 - 1, at[1] + k / 3 % 3 - 1, dimension == 3 ? at[2] + k / 9 - 1 : 0);
    }
    const size_t values = (size_t)c->count * (size_t)c->cells;
    float **fields[] = {&c->normal,    &c->bulk,        &c->mass[0],     &c->mass[1],    &c->mass[2],
                        &c->shear[0],  &c->shear[1],    &c->shear[2],    &c->target[0],  &c->target[1],
                        &c->target[2], &c->velocity[0], &c->velocity[1], &c->velocity[2]};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        *fields[f] = calloc(values, sizeof(float));
    for (int d = 0; d < 3; d++)
        c->fixed[d] = calloc(values, 1);
    sk_arena_init(&c->arena, &c->memory);
}

static void free_cube(cube *c)
{
    sk_arena_free(&c->arena);
    for (int d = 0; d < 3; d++) {
        free(c->mass[d]);
        free(c->shear[d]);
        free(c->target[d]);
        free(c->velocity[d]);
        free(c->fixed[d]);
    }
    free(c->normal);
    free(c->bulk);
    free(c->coordinates);
    free(c->neighbours);
}

/* Coordinates of a cell in the cube; the liquid begins at 0. */
static void cell_at(const cube *c, int block, int n, int at[3])
{
    const int e = c->extent, local[3] = {n % e, n / e % e, n / (e * e)};
    for (int d = 0; d < 3; d++)
        at[d] = d < c->dimension ? (c->coordinates[block][d] - 1) * e + local[d] : 0;
}

/* The liquid's share of a cube of a cell's size around a point (cells): all of a ball of radius `radius`, smoothed over
 * a cell; or all of the box if the radius is 0. */
static float share_at(const cube *c, const double x[3], int size, double radius)
{
    double share = 1.0, distance2 = 0.0;
    for (int d = 0; d < c->dimension; d++) {
        share *= fmin(fmax(fmin(x[d] + 0.5, size + 0.5 - x[d]), 0.0), 1.0);
        distance2 += (x[d] - 0.5 * size) * (x[d] - 0.5 * size);
    }
    return (float)(radius > 0.0 ? fmin(fmax(0.5 + radius - sqrt(distance2), 0.0), 1.0) : share);
}

static void fill(cube *c, int size, double radius, float strength, float bulk)
{
    for (int b = 1; b < c->count; b++)
        for (int n = 0; n < c->cells; n++) {
            const size_t here = (size_t)b * (size_t)c->cells + (size_t)n;
            int at[3];
            cell_at(c, b, n, at);
            const double low[3] = {at[0], at[1], at[2]}, mid[3] = {at[0] + 0.5, at[1] + 0.5, at[2] + 0.5};
            c->normal[here] = strength * share_at(c, mid, size, radius);
            c->bulk[here] = bulk * c->normal[here];
            for (int d = 0; d < c->dimension; d++) {
                const double face[3] = {d == 0 ? low[0] : mid[0], d == 1 ? low[1] : mid[1], d == 2 ? low[2] : mid[2]};
                c->mass[d][here] = share_at(c, face, size, radius);
                const double edge[3] = {d == 0 ? mid[0] : low[0], d == 1 ? mid[1] : low[1], d == 2 ? mid[2] : low[2]};
                if (c->dimension == 3)
                    c->shear[d][here] = strength * share_at(c, edge, size, radius);
            }
            if (c->dimension == 2)
                c->shear[2][here] = strength * share_at(c, low, size, radius);
        }
}

static sk_stress_report solve(cube *c, double tolerance, int passes, int threads)
{
    sk_stress_system system = {.block_count = c->count,
                               .coordinates = (const int32_t(*)[4])c->coordinates,
                               .neighbours = (const int32_t(*)[27])c->neighbours,
                               .normal = c->normal,
                               .bulk = c->bulk};
    for (int d = 0; d < 3; d++) {
        system.mass[d] = c->mass[d];
        system.shear[d] = c->shear[d];
        system.fixed[d] = c->fixed[d];
        system.target[d] = c->target[d];
        system.velocity[d] = c->velocity[d];
    }
    const sk_stress_options options = {
        .tolerance = tolerance, .max_iterations = 200, .passes = passes, .threads = threads, .arena = &c->arena};
    sk_stress_report report;
    selkie_error error;
    const selkie_code code =
        (c->dimension == 2 ? sk_stress_solve_2d : sk_stress_solve_3d)(&system, &options, &report, &error);
    if (code != SELKIE_OK)
        fail_msg("%s", error.message);
    sk_arena_empty(&c->arena);
    return report;
}

/* Sets target and start: component d at the centre of its face. */
static void set_velocity(cube *c, double (*velocity)(int d, const double x[3]))
{
    for (int b = 1; b < c->count; b++)
        for (int n = 0; n < c->cells; n++) {
            const size_t here = (size_t)b * (size_t)c->cells + (size_t)n;
            int at[3];
            cell_at(c, b, n, at);
            for (int d = 0; d < c->dimension; d++) {
                const double x[3] = {at[0] + 0.5 * (d != 0), at[1] + 0.5 * (d != 1), at[2] + 0.5 * (d != 2)};
                c->target[d][here] = c->velocity[d][here] = (float)velocity(d, x);
            }
        }
}

static double rigid(int d, const double x[3])
{
    return d == 0 ? 0.3 - 0.02 * x[1] + 0.01 * x[2] : d == 1 ? 0.02 * x[0] - 0.03 * x[2] : 0.03 * x[1] - 0.01 * x[0];
}

static double noise(int d, const double x[3])
{
    const uint64_t key = (uint64_t)(int64_t)(4 * x[0] + 1000) << 40 ^ (uint64_t)(int64_t)(4 * x[1] + 1000) << 20 ^
                         (uint64_t)(int64_t)(4 * x[2] + 1000) ^ (uint64_t)d << 60;
    uint64_t z = key * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)(z >> 40) / 16777216.0 - 0.5;
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
    for (int dimension = 2; dimension <= 3; dimension++) {
        cube c;
        make_cube(&c, dimension, 32);
        fill(&c, 32, 12.0, 30.0f, 4.0f);
        set_velocity(&c, noise);
        assert_true(solve(&c, 1e-3, 2, 2).converged);
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
                make_cube(&c, dimension, dimension == 2 ? 128 : 32);
                fill(&c, dimension == 2 ? 128 : 32, 0.0, strengths[s], bulk ? 4.0f : 0.0f);
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

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    cube a, b;
    make_cube(&a, 3, 24);
    make_cube(&b, 3, 24);
    fill(&a, 24, 9.1, 50.0f, 4.0f);
    fill(&b, 24, 9.1, 50.0f, 4.0f);
    set_velocity(&a, noise);
    set_velocity(&b, noise);
    solve(&a, 1e-5, 2, 1);
    solve(&b, 1e-5, 2, 3);
    for (int d = 0; d < 3; d++)
        assert_memory_equal(a.velocity[d], b.velocity[d], (size_t)a.count * (size_t)a.cells * sizeof(float));
    free_cube(&a);
    free_cube(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rigid_motion_stays),
        cmocka_unit_test(momentum_stays),
        cmocka_unit_test(few_iterations),
        cmocka_unit_test(same_bits_on_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

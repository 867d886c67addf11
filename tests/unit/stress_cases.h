/* A box or a ball of viscous liquid on a grid of blocks, for the stress solver's tests and its benchmark. */
#ifndef SK_TESTS_UNIT_STRESS_CASES_H
#define SK_TESTS_UNIT_STRESS_CASES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "linalg/stress.h"

/* Blocks of a cube of cells, `size` a side, with a border of one empty block. */
typedef struct cube {
    int joined; /* 1 = opposite sides are joined, and there is no border */
    int dimension, blocks, extent,
        cells; /* blocks a side with the border; cells of a block along an axis; in a block */
    int count; /* of blocks, with block 0 */
    int max_iterations;
    int32_t (*coordinates)[4];
    int32_t (*neighbours)[27];
    float *mass[3], *normal, *bulk, *shear[3], *target[3], *velocity[3];
    uint8_t *fixed[3];
    sk_memory memory;
    sk_arena arena;
} cube;

static inline __attribute__((unused)) int slot_at(const cube *c, int x, int y, int z)
{
    const int n = c->blocks;
    if (c->joined)
        return 1 + (x + n) % n + n * ((y + n) % n + n * (c->dimension == 3 ? (z + n) % n : 0));
    if (x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= (c->dimension == 3 ? n : 1))
        return 0;
    return 1 + x + n * (y + n * z);
}

static inline __attribute__((unused)) void make_cube_of(cube *c, int dimension, int size, int joined)
{
    memset(c, 0, sizeof *c);
    c->joined = joined;
    c->max_iterations = 200;
    c->dimension = dimension;
    c->extent = dimension == 3 ? 8 : 16;
    c->cells = dimension == 3 ? 512 : 256;
    c->blocks = size / c->extent + (joined ? 0 : 2);
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

static inline __attribute__((unused)) void make_cube(cube *c, int dimension, int size)
{
    make_cube_of(c, dimension, size, 0);
}

static inline __attribute__((unused)) void free_cube(cube *c)
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
static inline __attribute__((unused)) void cell_at(const cube *c, int block, int n, int at[3])
{
    const int e = c->extent, local[3] = {n % e, n / e % e, n / (e * e)};
    for (int d = 0; d < 3; d++)
        at[d] = d < c->dimension ? (c->coordinates[block][d] - !c->joined) * e + local[d] : 0;
}

/* The liquid's share of a cube of a cell's size around a point (cells): all of a ball of radius `radius`, smoothed over
 * a cell; or all of the box if the radius is 0. */
static inline __attribute__((unused)) float share_at(const cube *c, const double x[3], int size, double radius)
{
    double share = 1.0, distance2 = 0.0;
    if (c->joined && !(radius > 0.0))
        return 1.0f;
    for (int d = 0; d < c->dimension; d++) {
        share *= fmin(fmax(fmin(x[d] + 0.5, size + 0.5 - x[d]), 0.0), 1.0);
        distance2 += (x[d] - 0.5 * size) * (x[d] - 0.5 * size);
    }
    return (float)(radius > 0.0 ? fmin(fmax(0.5 + radius - sqrt(distance2), 0.0), 1.0) : share);
}

static inline __attribute__((unused)) void fill(cube *c, int size, double radius, float strength, float bulk)
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

/* Solves. Returns whether there was no error. */
static inline int solve_cube(cube *c, double tolerance, int passes, int threads, sk_stress_report *report,
                             selkie_error *error)
{
    sk_stress_system system = {.block_count = c->count,
                               .coordinates = (const int32_t(*)[4])c->coordinates,
                               .neighbours = (const int32_t(*)[27])c->neighbours,
                               .normal = c->normal,
                               .bulk = c->bulk};
    for (int d = 0; d < c->dimension; d++)
        system.joined[d] = c->joined ? c->blocks : 0;
    for (int d = 0; d < 3; d++) {
        system.mass[d] = c->mass[d];
        system.shear[d] = c->shear[d];
        system.fixed[d] = c->fixed[d];
        system.target[d] = c->target[d];
        system.velocity[d] = c->velocity[d];
    }
    const sk_stress_options options = {.tolerance = tolerance,
                                       .max_iterations = c->max_iterations,
                                       .passes = passes,
                                       .threads = threads,
                                       .arena = &c->arena};
    const selkie_code code =
        (c->dimension == 2 ? sk_stress_solve_2d : sk_stress_solve_3d)(&system, &options, report, error);
    sk_arena_empty(&c->arena);
    return code == SELKIE_OK;
}

/* Sets target and start: component d at the centre of its face. */
static inline __attribute__((unused)) void set_velocity(cube *c, double (*velocity)(int d, const double x[3]))
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

static inline __attribute__((unused)) double noise(int d, const double x[3])
{
    const uint64_t key = (uint64_t)(int64_t)(4 * x[0] + 1000) << 40 ^ (uint64_t)(int64_t)(4 * x[1] + 1000) << 20 ^
                         (uint64_t)(int64_t)(4 * x[2] + 1000) ^ (uint64_t)d << 60;
    uint64_t z = key * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)(z >> 40) / 16777216.0 - 0.5;
}

#endif

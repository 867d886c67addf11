/* Systems for the Poisson solver's tests and bench: calm and splashy liquids on sparse blocks, in 2D and 3D.
 *
 * Cells are liquid where a level set is negative; faces to air carry the
 * ghost-fluid excess 1 / theta, theta in [0.05, 1]; walls are closed; some faces
 * are partly solid. Header only, since every test is a program of its own.
 */
#ifndef POISSON_CASES_H
#define POISSON_CASES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "linalg/poisson.h"

typedef enum case_kind { CASE_CALM, CASE_SPLASHY, CASE_CLOSED } case_kind;
typedef enum case_source { SOURCE_NOISE, SOURCE_GRAVITY, SOURCE_SMOOTH } case_source;

typedef struct poisson_case {
    int dimension, n, cells[3]; /* block side; cells along each axis */
    int block_cells, blocks[3];
    sk_poisson_system system;
    int32_t (*coordinates)[4];
    int32_t (*faces)[6];
    int32_t *block_of; /* dense map of blocks */
    float *face[3], *diagonal, *right_side, *solution;
    int64_t unknowns;
} poisson_case;

typedef struct case_ball {
    double centre[3], radius;
} case_ball;

typedef struct case_shape {
    case_kind kind;
    int dimension, size;
    uint64_t seed;
    int ball_count;
    case_ball ball[96];
} case_shape;

static inline void shape_init(case_shape *shape, case_kind kind, int dimension, int size, uint64_t seed)
{
    memset(shape, 0, sizeof(*shape));
    shape->kind = kind;
    shape->dimension = dimension;
    shape->size = size;
    shape->seed = seed;
    shape->ball_count = kind == CASE_SPLASHY ? 96 : 0;
    for (int i = 0; i < shape->ball_count; ++i) {
        for (int a = 0; a < 3; ++a)
            shape->ball[i].centre[a] = size * (double)sk_random_float(seed, (uint64_t)i, (uint64_t)a);
        double u = (double)sk_random_float(seed, (uint64_t)i, 3);
        shape->ball[i].radius = i < 12 ? size * (0.03 + 0.12 * u) : 0.6 + (i < 40 ? 4.0 : 1.5) * u; /* blobs, drops */
        if (dimension == 2)
            shape->ball[i].centre[2] = 0.5;
    }
}

/* Negative inside the liquid, in cells. */
static inline double shape_level(const case_shape *shape, const double x[3])
{
    int up = shape->dimension - 1;
    double s = shape->size, tau = 6.283185307179586;
    double pool = x[up] - (shape->kind == CASE_SPLASHY ? 0.22 : 0.5) * s;
    pool -= (shape->kind == CASE_SPLASHY ? 0.05 : 0.01) * s * sin(tau * 2 * x[0] / s) +
            0.3 * sin(tau * 5 * x[shape->dimension == 3 ? 1 : 0] / s);
    if (shape->kind == CASE_CLOSED)
        return -1;
    if (shape->kind == CASE_CALM)
        return pool;
    double level = pool;
    for (int i = 0; i < shape->ball_count; ++i) {
        double d = 0;
        if (fabs(x[0] - shape->ball[i].centre[0]) > shape->ball[i].radius + 3)
            continue; /* too far to matter to any face */
        for (int a = 0; a < shape->dimension; ++a)
            d += (x[a] - shape->ball[i].centre[a]) * (x[a] - shape->ball[i].centre[a]);
        level = fmin(level, sqrt(d) - shape->ball[i].radius);
    }
    /* Two sheets, one of 1.2 cells, one of less than a cell, both bent and torn. */
    double sheet = fabs(x[up] - 0.5 * s - 0.1 * s * sin(tau * x[0] / s)) - 0.6;
    double film = fabs(x[0] - 0.6 * s - 0.05 * s * sin(tau * 3 * x[up] / s)) - 0.4;
    double tear = sin(tau * 4 * x[0] / s) + sin(tau * 3 * x[1] / s);
    level = fmin(level, fmax(sheet, 0.3 - tear));
    level = fmin(level, fmax(film, -0.2 - tear));
    return level;
}

static inline size_t case_index(const poisson_case *c, int i, int j, int k)
{
    int n = c->n, nz = c->dimension == 3 ? n : 1;
    int block = c->block_of[i / n + c->blocks[0] * (j / n + c->blocks[1] * (k / nz))];
    return (size_t)block * (size_t)c->block_cells + (size_t)(i % n + n * (j % n + n * (k % nz)));
}

static inline void case_allocate(poisson_case *c, int block_count)
{
    size_t cells = (size_t)block_count * (size_t)c->block_cells;
    c->coordinates = calloc((size_t)block_count, sizeof(*c->coordinates));
    c->faces = calloc((size_t)block_count, sizeof(*c->faces));
    float **field[6] = {&c->face[0], &c->face[1], &c->face[2], &c->diagonal, &c->right_side, &c->solution};
    for (int f = 0; f < 6; ++f)
        *field[f] = calloc(cells, sizeof(float));
    c->system = (sk_poisson_system){.block_count = block_count,
                                    .coordinates = (const int32_t(*)[4])c->coordinates,
                                    .faces = (const int32_t(*)[6])c->faces,
                                    .face = {c->face[0], c->face[1], c->face[2]},
                                    .diagonal = c->diagonal,
                                    .right_side = c->right_side,
                                    .solution = c->solution};
}

static inline void case_free(poisson_case *c)
{
    free(c->coordinates);
    free(c->faces);
    free(c->block_of);
    for (int a = 0; a < 3; ++a)
        free(c->face[a]);
    free(c->diagonal);
    free(c->right_side);
    free(c->solution);
    memset(c, 0, sizeof(*c));
}

/* Blocks and their neighbours for the dense array of cells that take part. */
static inline void case_blocks(poisson_case *c, int dimension, const int cells[3], const uint8_t *liquid)
{
    memset(c, 0, sizeof(*c));
    c->dimension = dimension;
    c->n = dimension == 3 ? 8 : 16;
    c->block_cells = dimension == 3 ? 512 : 256;
    int nz = dimension == 3 ? c->n : 1;
    for (int a = 0; a < 3; ++a) {
        c->cells[a] = cells[a];
        int side = a == 2 ? nz : c->n;
        c->blocks[a] = (cells[a] + side - 1) / side;
    }
    c->block_of = calloc((size_t)c->blocks[0] * (size_t)c->blocks[1] * (size_t)c->blocks[2], sizeof(int32_t));
    int count = 1;
    for (int k = 0; k < cells[2]; ++k)
        for (int j = 0; j < cells[1]; ++j)
            for (int i = 0; i < cells[0]; ++i) {
                int32_t *block = &c->block_of[i / c->n + c->blocks[0] * (j / c->n + c->blocks[1] * (k / nz))];
                if (liquid[i + (size_t)cells[0] * (j + (size_t)cells[1] * k)] && !*block)
                    *block = count++;
            }
    case_allocate(c, count);
    for (int z = 0; z < c->blocks[2]; ++z)
        for (int y = 0; y < c->blocks[1]; ++y)
            for (int x = 0; x < c->blocks[0]; ++x) {
                int block = c->block_of[x + c->blocks[0] * (y + c->blocks[1] * z)], at[3] = {x, y, z};
                if (!block)
                    continue;
                for (int a = 0; a < 3; ++a)
                    c->coordinates[block][a] = at[a];
                for (int side = 0; side < 2 * dimension; ++side) {
                    int to[3] = {x, y, z};
                    to[side / 2] += side & 1 ? 1 : -1;
                    if (to[side / 2] >= 0 && to[side / 2] < c->blocks[side / 2])
                        c->faces[block][side] = c->block_of[to[0] + c->blocks[0] * (to[1] + c->blocks[1] * to[2])];
                }
            }
}

/* How much of the lower face of a cell is open. A ball of solid faces, and in splashy cases random ones as well. */
static inline float open_part(const case_shape *shape, int axis, const double x[3], uint64_t index)
{
    double s = shape->size, d = 0;
    for (int a = 0; a < 3; ++a)
        d += a < shape->dimension ? (x[a] - 0.3 * s) * (x[a] - 0.3 * s) : 0;
    if (shape->kind != CASE_SPLASHY)
        return 1;
    double out = sqrt(d) - 0.12 * s;
    if (out < 1)
        return out < -1 ? 0 : (float)fmax(0.01, 0.5 + 0.5 * out);
    if (sk_random_float(shape->seed, index, (uint64_t)(20 + axis)) < 0.05f)
        return 0.01f + 0.99f * sk_random_float(shape->seed, index, (uint64_t)(30 + axis));
    return 1;
}

static inline double source_at(const case_shape *shape, case_source source, const int at[3], uint64_t index)
{
    double s = shape->size, tau = 6.283185307179586;
    if (source == SOURCE_NOISE)
        return 2 * (double)sk_random_float(shape->seed, index, 10) - 1;
    if (source == SOURCE_GRAVITY) /* falling liquid that the floor stops */
        return at[shape->dimension - 1] == 0 ? 1 : 0;
    return sin(tau * at[0] / s) * cos(tau * at[1] / s) + 0.5 * at[shape->dimension - 1] / s;
}

static inline void case_make(poisson_case *c, case_kind kind, case_source source, int dimension, int size,
                             uint64_t seed)
{
    case_shape shape;
    shape_init(&shape, kind, dimension, size, seed);
    int cells[3] = {size, size, dimension == 3 ? size : 1};
    size_t total = (size_t)cells[0] * (size_t)cells[1] * (size_t)cells[2];
    float *level = malloc(total * sizeof(float));
    uint8_t *liquid = malloc(total);
#pragma omp parallel for
    for (int k = 0; k < cells[2]; ++k)
        for (int j = 0; j < cells[1]; ++j)
            for (int i = 0; i < cells[0]; ++i) {
                size_t at = i + (size_t)cells[0] * (j + (size_t)cells[1] * k);
                level[at] = (float)shape_level(&shape, (double[3]){i + 0.5, j + 0.5, dimension == 3 ? k + 0.5 : 0.5});
                if (kind == CASE_SPLASHY && sk_random_float(seed, at, 50) < 0.001f)
                    level[at] = -0.3f; /* isolated cells */
                liquid[at] = level[at] < 0;
            }
    case_blocks(c, dimension, cells, liquid);
    size_t stride[3] = {1, (size_t)cells[0], (size_t)cells[0] * (size_t)cells[1]};
    for (int k = 0; k < cells[2]; ++k)
        for (int j = 0; j < cells[1]; ++j)
            for (int i = 0; i < cells[0]; ++i) {
                size_t at = i + (size_t)cells[0] * (j + (size_t)cells[1] * k);
                if (!liquid[at])
                    continue;
                size_t own = case_index(c, i, j, k);
                int p[3] = {i, j, k};
                double d = 0;
                for (int side = 0; side < 2 * dimension; ++side) {
                    int axis = side / 2, upper = side & 1;
                    if (upper ? p[axis] == cells[axis] - 1 : p[axis] == 0)
                        continue;
                    size_t other = upper ? at + stride[axis] : at - stride[axis], owner = upper ? other : at;
                    double x[3] = {0};
                    for (int a = 0; a < 3; ++a)
                        x[a] = p[a] + 0.5;
                    x[axis] += upper ? 0.5 : -0.5;
                    float part = open_part(&shape, axis, x, owner);
                    if (liquid[other]) {
                        d += part;
                        if (!upper)
                            c->face[axis][own] = part;
                    } else {
                        double theta = (double)level[at] / ((double)level[at] - (double)level[other]);
                        d += part / fmin(fmax(theta, 0.05), 1);
                    }
                }
                c->diagonal[own] = (float)d;
                if (d > 0) {
                    c->right_side[own] = (float)source_at(&shape, source, p, at);
                    c->unknowns++;
                }
            }
    free(level);
    free(liquid);
}

static inline size_t case_cells(const poisson_case *c)
{
    return (size_t)c->system.block_count * (size_t)c->block_cells;
}

/* The cell on a side (-x +x -y +y -z +z) of another by the definition in poisson.h, 0 if there is none, and the
 * coefficient of the face between them. */
static inline size_t case_across(const poisson_case *c, size_t own, int side, double *weight)
{
    int n = c->n, block = (int)(own / (size_t)c->block_cells), cell = (int)(own % (size_t)c->block_cells),
        other = block;
    int axis = side / 2, p[3] = {cell % n, cell / n % n, cell / (n * n)},
        extent = axis == 2 && c->dimension != 3 ? 1 : n;
    p[axis] += side & 1 ? 1 : -1;
    if (p[axis] < 0 || p[axis] >= extent) {
        other = c->faces[block][side];
        p[axis] = (p[axis] + extent) % extent;
    }
    size_t there = (size_t)other * (size_t)c->block_cells + (size_t)(p[0] + n * (p[1] + n * p[2]));
    *weight = other ? (double)c->face[axis][side & 1 ? there : own] : 0;
    return other ? there : 0;
}

/* Leaves so much of all faces of the box [low, high) of cells towards outside. */
static inline void case_narrow(poisson_case *c, const int low[3], const int high[3], float share)
{
    for (int k = 0; k < c->cells[2]; ++k)
        for (int j = 0; j < c->cells[1]; ++j)
            for (int i = 0; i < c->cells[0]; ++i)
                for (int axis = 0; axis < c->dimension; ++axis) {
                    int p[3] = {i, j, k}, q[3] = {i, j, k}, inside[2] = {1, 1};
                    if (--q[axis] < 0)
                        continue;
                    for (int a = 0; a < c->dimension; ++a) {
                        inside[0] &= p[a] >= low[a] && p[a] < high[a];
                        inside[1] &= q[a] >= low[a] && q[a] < high[a];
                    }
                    size_t upper = case_index(c, p[0], p[1], p[2]), lower = case_index(c, q[0], q[1], q[2]);
                    if (inside[0] == inside[1] || c->diagonal[upper] <= 0 || c->diagonal[lower] <= 0)
                        continue;
                    c->diagonal[upper] -= (1 - share) * c->face[axis][upper];
                    c->diagonal[lower] -= (1 - share) * c->face[axis][upper];
                    c->face[axis][upper] *= share;
                }
}

/* What is in the box becomes a pocket. */
static inline void case_cut_out(poisson_case *c, const int low[3], const int high[3])
{
    case_narrow(c, low, high, 0);
}

/* Adds a mass to every unknown: heat and viscosity. */
static inline void case_add_mass(poisson_case *c, float mass)
{
    for (size_t i = 0; i < (size_t)c->system.block_count * (size_t)c->block_cells; ++i)
        if (c->diagonal[i] > 0)
            c->diagonal[i] += mass;
}

static inline selkie_code case_solve(poisson_case *c, sk_poisson_solver *solver, const sk_poisson_options *options,
                                     sk_poisson_report *report, selkie_error *error)
{
    return c->dimension == 3 ? sk_poisson_solve_3d(solver, &c->system, options, report, error)
                             : sk_poisson_solve_2d(solver, &c->system, options, report, error);
}

static inline sk_poisson_solver *case_solver(const poisson_case *c, sk_memory *memory)
{
    return c->dimension == 3 ? sk_poisson_create_3d(memory) : sk_poisson_create_2d(memory);
}

static inline void case_destroy_solver(const poisson_case *c, sk_poisson_solver *solver)
{
    if (c->dimension == 3)
        sk_poisson_destroy_3d(solver);
    else
        sk_poisson_destroy_2d(solver);
}

#endif

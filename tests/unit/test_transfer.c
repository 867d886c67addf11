/* The tuned transfers against a plain reference in double precision, built from the kernels of grid_kernels.h: PIC,
 * FLIP and APIC, both ways, for every filling of the vector lanes, in 2D and 3D; what must be conserved, and what must
 * come back exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "grid/grid_kernels.h"
#include "grid/transfer.h"

enum { CELLS_2D = 41, CELLS_3D = 19 };
static const double cell_size = 0.05;

typedef struct stage {
    sk_grid grid;
    sk_particles particles;
    float *affine; /* of the sorted particles; NULL without */
} stage;

static selkie_code sort(sk_grid *grid, sk_particles *particles, int threads)
{
    return grid->dimension == 2 ? sk_grid_sort_2d(grid, particles, threads, NULL)
                                : sk_grid_sort_3d(grid, particles, threads, NULL);
}

static selkie_code to_grid(stage *s, const sk_transfer_options *options)
{
    return s->grid.dimension == 2 ? sk_transfer_to_grid_2d(&s->grid, &s->particles, options, NULL)
                                  : sk_transfer_to_grid_3d(&s->grid, &s->particles, options, NULL);
}

static selkie_code to_particles(stage *s, const sk_transfer_options *options, sk_particle_sums *sums)
{
    return s->grid.dimension == 2 ? sk_transfer_to_particles_2d(&s->grid, &s->particles, options, sums, NULL)
                                  : sk_transfer_to_particles_3d(&s->grid, &s->particles, options, sums, NULL);
}

typedef void (*velocity_function)(const double x[3], double v[3]);

static void add_to_cell(stage *s, const int cell[3], int count, velocity_function velocity)
{
    sk_particles *particles = &s->particles;
    assert_int_equal(sk_particles_reserve(particles, particles->count + count, NULL), SELKIE_OK);
    for (int p = 0; p < count; p++) {
        double x[3] = {0, 0, 0}, v[3] = {0, 0, 0};
        for (int d = 0; d < s->grid.dimension; d++) {
            double fraction = sk_random_float(11, particles->next_id, (uint64_t)d);
            if (p == 4)
                fraction = 0.5; /* between the branches of the centred weights */
            x[d] = s->grid.low[d] + (cell[d] + 0.002 + 0.996 * fraction) * cell_size;
            v[d] = 4.0 * sk_random_float(12, particles->next_id, (uint64_t)d) - 2.0;
        }
        if (velocity)
            velocity(x, v);
        sk_particles_append(particles, x, v);
        if (s->affine)
            for (int c = 0; c < 9; c++) {
                float value = c % 3 < s->grid.dimension && c / 3 < s->grid.dimension
                                  ? 60.0f * sk_random_float(13, particles->next_id, (uint64_t)c) - 30.0f
                                  : 0.0f;
                memcpy(particles->attributes[0].data + 9 * (particles->count - 1) + c, &value, 4);
            }
    }
}

static void make_stage(stage *s, int dimension, int with_affine)
{
    const int n = dimension == 2 ? CELLS_2D : CELLS_3D, cells[3] = {n, n - 2, dimension == 3 ? n - 5 : 1};
    const double low[3] = {0.3, -0.7, dimension == 3 ? 1.1 : 0.0};
    sk_particles_init(&s->particles, NULL);
    s->affine = NULL;
    if (with_affine) {
        assert_non_null(sk_particles_add_attribute(&s->particles, "affine", 9, 0));
        s->affine = (float *)1; /* set by ready() */
    }
    assert_int_equal(sk_grid_init(&s->grid, dimension, cells, low, cell_size, NULL, NULL), SELKIE_OK);
}

static void ready(stage *s)
{
    assert_int_equal(sort(&s->grid, &s->particles, 2), SELKIE_OK);
    s->affine = s->affine ? (float *)s->particles.attributes[0].data : NULL;
}

/* Cells with every filling of the lanes, alone, side by side, across the borders of blocks and at walls. */
static void fill_oddly(stage *s, velocity_function velocity)
{
    static const int counts[] = {0, 1, 7, 8, 9, 17, 40, 2, 16, 3};
    int dimension = s->grid.dimension, n = 0;
    for (int k = 0; k < (dimension == 3 ? s->grid.cells[2] : 1); k += k == 5 ? 4 : 1)
        for (int j = 0; j < s->grid.cells[1]; j += j == 4 ? 6 : 1)
            for (int i = 0; i < s->grid.cells[0]; i++) {
                if (dimension == 3 && (i + j + k) % 3)
                    continue;
                const int cell[3] = {i, j, k};
                add_to_cell(s, cell, counts[n++ % 10], velocity);
            }
    ready(s);
}

/* Every sub-cell of a box of cells [3, n - 3). */
static void fill_solid(stage *s, velocity_function velocity)
{
    int cell[3] = {0, 0, 0}, dimension = s->grid.dimension;
    for (cell[2] = dimension == 3 ? 3 : 0; cell[2] < (dimension == 3 ? s->grid.cells[2] - 3 : 1); cell[2]++)
        for (cell[1] = 3; cell[1] < s->grid.cells[1] - 3; cell[1]++)
            for (cell[0] = 3; cell[0] < s->grid.cells[0] - 3; cell[0]++)
                add_to_cell(s, cell, dimension == 3 ? 8 : 9, velocity);
    ready(s);
}

static void free_stage(stage *s)
{
    sk_particles_free(&s->particles);
    sk_grid_free(&s->grid);
}

/* --- The plain reference: a dense grid over the whole table, in double --- */

typedef struct dense_grid {
    int n[3];
    double *momentum[3], *weight[3], *weight_all, *change[3];
    uint8_t *reached[3]; /* by a particle, or all but */
} dense_grid;

static size_t dense_index(const dense_grid *dense, const int at[3])
{
    return (size_t)at[0] + (size_t)dense->n[0] * ((size_t)at[1] + (size_t)dense->n[1] * (size_t)at[2]);
}

static dense_grid make_dense(const sk_grid *grid)
{
    dense_grid result;
    size_t values = 1;
    for (int d = 0; d < 3; d++) {
        result.n[d] = grid->blocks[d] * grid->extent[d];
        values *= (size_t)result.n[d];
    }
    for (int d = 0; d < 3; d++) {
        result.momentum[d] = calloc(values, sizeof(double));
        result.weight[d] = calloc(values, sizeof(double));
        result.change[d] = calloc(values, sizeof(double));
        result.reached[d] = calloc(values, 1);
    }
    result.weight_all = calloc(values, sizeof(double));
    return result;
}

static void free_dense(dense_grid *dense)
{
    for (int d = 0; d < 3; d++) {
        free(dense->momentum[d]);
        free(dense->weight[d]);
        free(dense->change[d]);
        free(dense->reached[d]);
    }
    free(dense->weight_all);
}

typedef struct hats {
    int cell[3];
    float fraction[3], face[3][3], centre[3][3];
} hats;

static hats hats_of(const sk_grid *grid, const sk_particle *particle)
{
    hats h;
    memset(&h, 0, sizeof h);
    for (int d = 0; d < grid->dimension; d++) {
        float g = sk_cell_coordinate(particle->position[d], (float)grid->corner[d], (float)(1.0 / grid->cell_size));
        h.cell[d] = (int)g;
        h.fraction[d] = g - (float)h.cell[d];
        sk_hat_weights_face(h.fraction[d], h.face[d]);
        sk_hat_weights_centred(h.fraction[d], h.centre[d]);
    }
    return h;
}

/* Calls for each node of component d (3: the centres) near a particle: its index, its weight, and the way there (m). */
#define FOR_NODES(grid, h, dense, d, body)                                                                             \
    for (int nk = 0; nk < ((grid)->dimension == 3 ? 3 : 1); nk++)                                                      \
        for (int nj = 0; nj < 3; nj++)                                                                                 \
            for (int ni = 0; ni < 3; ni++) {                                                                           \
                const int node_of[3] = {ni, nj, nk};                                                                   \
                int at[3] = {0, 0, 0};                                                                                 \
                double weight = 1.0, way[3] = {0, 0, 0};                                                               \
                for (int e = 0; e < (grid)->dimension && e < 3; e++) {                                                 \
                    weight *= e == (d) ? (h).face[e][node_of[e]] : (h).centre[e][node_of[e]];                          \
                    at[e] = (h).cell[e] + node_of[e] - (e != (d));                                                     \
                    way[e] = (node_of[e] - (e == (d) ? 0.0 : 0.5) - (double)(h).fraction[e]) * (grid)->cell_size;      \
                }                                                                                                      \
                (void)way;                                                                                             \
                if (weight > 0.0) {                                                                                    \
                    size_t node = dense_index(dense, at);                                                              \
                    body                                                                                               \
                }                                                                                                      \
            }

/* In the middle of a cell the centred weights change sides, and rounding decides which. */
static int near_middle(float fraction)
{
    return fabsf(fraction - 0.5f) < 1e-5f;
}

static void mark_reached(const sk_grid *grid, const hats *h, dense_grid *result)
{
    for (int d = 0; d < grid->dimension; d++)
        for (int n = 0; n < (grid->dimension == 3 ? 27 : 9); n++) {
            const int node[3] = {n % 3, n / 3 % 3, n / 9};
            int at[3] = {0, 0, 0}, reached = 1;
            for (int e = 0; e < grid->dimension; e++) {
                at[e] = h->cell[e] + node[e] - (e != d);
                reached &= e == d ? node[e] < 2 : h->centre[e][node[e]] > 0.0f || near_middle(h->fraction[e]);
            }
            if (reached)
                result->reached[d][dense_index(result, at)] = 1;
        }
}

static void reference_to_grid(const stage *s, dense_grid *result)
{
    for (int64_t p = 0; p < s->particles.count; p++) {
        const sk_particle *particle = &s->particles.records[p];
        hats h = hats_of(&s->grid, particle);
        for (int d = 0; d < s->grid.dimension; d++) {
            const float *c = s->affine ? s->affine + 9 * p + 3 * d : NULL;
            FOR_NODES(&s->grid, h, result, d, {
                double v = particle->velocity[d];
                for (int e = 0; c && e < s->grid.dimension; e++)
                    v += c[e] * way[e];
                result->momentum[d][node] += weight * v;
                result->weight[d][node] += weight;
            })
        }
        mark_reached(&s->grid, &h, result);
        FOR_NODES(&s->grid, h, result, 3, { result->weight_all[node] += weight; })
    }
}

static void cell_position(const sk_grid *grid, int block, int c, int at[3])
{
    int n = grid->extent[0];
    const int local[3] = {c % n, c / n % n, c / (n * n)};
    for (int d = 0; d < 3; d++)
        at[d] = grid->coordinates[block][d] * grid->extent[d] + local[d];
}

static void close_to(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        print_error("%.9g is not %.9g (+- %g)\n", value, expected, tolerance);
    assert_true(fabs(value - expected) <= tolerance);
}

/* A place of 32 cells and more from the corner is known to 2e-6 cells in floats, fused operations know it better: this
 * is how far two right answers may differ, times the differences between nodes. */
static void compare_grid(const stage *s, const dense_grid *expected, double scale)
{
    const sk_grid *grid = &s->grid;
    double weights[3] = {0, 0, 0}, all = 0.0, sum_all = 0.0;
    for (int b = 1; b < grid->block_count; b++)
        for (int c = 0; c < grid->block_cells; c++) {
            int at[3];
            cell_position(grid, b, c, at);
            size_t node = dense_index(expected, at), here = (size_t)b * (size_t)grid->block_cells + (size_t)c;
            for (int d = 0; d < grid->dimension; d++) {
                float u = grid->fields[SK_FIELD_VELOCITY_X + d][here],
                      change = grid->fields[SK_FIELD_CHANGE_X + d][here];
                double w = expected->weight[d][node];
                assert_memory_equal(&u, &change, sizeof u);
                if (w > 1e-5)
                    close_to(u, expected->momentum[d][node] / w, scale * (8e-6 + 2e-6 / w));
                else if (!expected->reached[d][node])
                    assert_true(isnan(u));
                weights[d] += w;
            }
            double density = grid->fields[SK_FIELD_DENSITY][here] * 8.0;
            close_to(density, expected->weight_all[node], 8e-6 * (1.0 + expected->weight_all[node]));
            sum_all += density;
            all += expected->weight_all[node];
        }
    /* Nothing lies outside the blocks. */
    for (int d = 0; d < grid->dimension; d++)
        close_to(weights[d], (double)s->particles.count, 1e-4 * (double)s->particles.count);
    close_to(sum_all, all, 1e-6 * (double)s->particles.count);
    close_to(sum_all, (double)s->particles.count, 1e-6 * (double)s->particles.count);
}

static void to_grid_as_the_reference(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int kind = SK_TRANSFER_PIC; kind <= SK_TRANSFER_APIC; kind++) {
            stage s;
            make_stage(&s, dimension, kind == SK_TRANSFER_APIC);
            fill_oddly(&s, NULL);
            sk_transfer_options options = {
                .kind = (sk_transfer_kind)kind, .flip_ratio = 0.97f, .density_per_particle = 1.0f / 8.0f, .threads = 2};
            assert_int_equal(to_grid(&s, &options), SELKIE_OK);
            dense_grid expected = make_dense(&s.grid);
            reference_to_grid(&s, &expected);
            compare_grid(&s, &expected, 4.0);
            free_dense(&expected);
            free_stage(&s);
        }
}

/* The density alone, without the particles of some cells: single ones, whole rows, and whole blocks. */
static void density_leaves_cells_out(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        make_stage(&s, dimension, 0);
        fill_oddly(&s, NULL);
        const size_t cells = (size_t)s.grid.block_cells;
        uint8_t *left_out = calloc((size_t)s.grid.block_count, cells);
        int32_t *slot = calloc((size_t)s.grid.block_count, sizeof *slot);
        dense_grid expected = make_dense(&s.grid);
        assert_true(left_out && slot);
        for (int b = 1; b < s.grid.block_count; b++) {
            slot[b] = s.grid.block_count - 1 - b; /* in any order */
            for (size_t c = 0; c < cells; c++) {
                const float alone = sk_random_float(14, (uint64_t)slot[b], c),
                            row = sk_random_float(15, (uint64_t)slot[b], c / 16);
                const int is_out = slot[b] % 5 == 4 || row < 0.2f || alone < 0.3f;
                left_out[(size_t)slot[b] * cells + c] = is_out ? (uint8_t)(1 + c % 255) : 0;
            }
        }
        for (int b = 1; b <= s.grid.particle_blocks; b++)
            for (size_t c = 0; c < cells; c++) {
                const uint32_t *start = s.grid.cell_start + (size_t)(b - 1) * cells + c;
                for (uint32_t p = start[0]; p < start[1] && !left_out[(size_t)slot[b] * cells + c]; p++) {
                    hats h = hats_of(&s.grid, &s.particles.records[p]);
                    FOR_NODES(&s.grid, h, &expected, 3, { expected.weight_all[node] += weight; })
                }
            }
        sk_transfer_options options = {.density_per_particle = 1.0f / 8.0f, .threads = 2};
        options.left_out = left_out;
        options.left_out_slot = slot;
        assert_int_equal(dimension == 2 ? sk_transfer_density_2d(&s.grid, &s.particles, &options, NULL)
                                        : sk_transfer_density_3d(&s.grid, &s.particles, &options, NULL),
                         SELKIE_OK);
        for (int b = 1; b < s.grid.block_count; b++)
            for (int c = 0; c < s.grid.block_cells; c++) {
                int at[3];
                cell_position(&s.grid, b, c, at);
                double sum = expected.weight_all[dense_index(&expected, at)];
                close_to(s.grid.fields[SK_FIELD_DENSITY][(size_t)b * cells + (size_t)c] * 8.0, sum, 8e-6 * (1.0 + sum));
            }
        free_dense(&expected);
        free(left_out);
        free(slot);
        free_stage(&s);
    }
}

/* Mass and momentum of the grid are those of the particles: the weights sum to one, and APIC's slopes to nothing. */
static void mass_and_momentum_are_conserved(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int kind = SK_TRANSFER_PIC; kind <= SK_TRANSFER_APIC; kind++) {
            stage s;
            make_stage(&s, dimension, kind == SK_TRANSFER_APIC);
            fill_oddly(&s, NULL);
            sk_transfer_options options = {
                .kind = (sk_transfer_kind)kind, .flip_ratio = 0.97f, .density_per_particle = 1.0f, .threads = 2};
            assert_int_equal(to_grid(&s, &options), SELKIE_OK);
            double momentum[3] = {0, 0, 0}, particles[3] = {0, 0, 0}, size[3] = {0, 0, 0}, mass = 0.0;
            for (int64_t p = 0; p < s.particles.count; p++)
                for (int d = 0; d < dimension; d++) {
                    particles[d] += s.particles.records[p].velocity[d];
                    size[d] += fabs((double)s.particles.records[p].velocity[d]);
                }
            /* The grid holds velocities; the weights that make momentum of them are the reference's. */
            dense_grid expected = make_dense(&s.grid);
            reference_to_grid(&s, &expected);
            for (int b = 1; b < s.grid.block_count; b++)
                for (int c = 0; c < s.grid.block_cells; c++) {
                    int at[3];
                    cell_position(&s.grid, b, c, at);
                    size_t node = dense_index(&expected, at), here = (size_t)b * (size_t)s.grid.block_cells + (size_t)c;
                    for (int d = 0; d < dimension; d++)
                        if (expected.weight[d][node] > 0.0 && !isnan(s.grid.fields[SK_FIELD_VELOCITY_X + d][here]))
                            momentum[d] += expected.weight[d][node] * s.grid.fields[SK_FIELD_VELOCITY_X + d][here];
                    mass += s.grid.fields[SK_FIELD_DENSITY][here];
                }
            close_to(mass, (double)s.particles.count, 1e-6 * (double)s.particles.count);
            for (int d = 0; d < dimension; d++)
                close_to(momentum[d], particles[d], 1e-6 * size[d]);
            free_dense(&expected);
            free_stage(&s);
        }
}

/* A grid field as the particles see it, by the plain kernels. */
static void random_field(stage *s, dense_grid *values)
{
    for (int b = 1; b < s->grid.block_count; b++)
        for (int c = 0; c < s->grid.block_cells; c++) {
            int at[3];
            cell_position(&s->grid, b, c, at);
            size_t node = dense_index(values, at), here = (size_t)b * (size_t)s->grid.block_cells + (size_t)c;
            for (int d = 0; d < s->grid.dimension; d++) {
                float u = 6.0f * sk_random_float(21, node, (uint64_t)d) - 3.0f,
                      change = sk_random_float(22, node, (uint64_t)d) - 0.5f;
                /* Unknown counts as zero. */
                if (node % 17 == 3)
                    u = change = NAN;
                s->grid.fields[SK_FIELD_VELOCITY_X + d][here] = u;
                s->grid.fields[SK_FIELD_CHANGE_X + d][here] = change;
                values->momentum[d][node] = isnan(u) ? 0.0 : u;
                values->change[d][node] = isnan(change) ? 0.0 : change;
            }
        }
}

static void to_particles_as_the_reference(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int kind = SK_TRANSFER_PIC; kind <= SK_TRANSFER_APIC; kind++) {
            stage s;
            make_stage(&s, dimension, kind == SK_TRANSFER_APIC);
            fill_oddly(&s, NULL);
            dense_grid values = make_dense(&s.grid);
            random_field(&s, &values);
            size_t count = (size_t)s.particles.count;
            sk_particle *before = malloc(count * sizeof *before);
            memcpy(before, s.particles.records, count * sizeof *before);
            sk_transfer_options options = {
                .kind = (sk_transfer_kind)kind, .flip_ratio = 0.8f, .density_per_particle = 1.0f / 8.0f, .threads = 2};
            sk_particle_sums sums;
            assert_int_equal(to_particles(&s, &options, &sums), SELKIE_OK);
            double kinetic = 0.0, fastest = 0.0;
            for (size_t p = 0; p < count; p++) {
                const sk_particle *particle = &s.particles.records[p];
                assert_memory_equal(particle->position, before[p].position, sizeof particle->position);
                assert_int_equal(particle->id, before[p].id);
                assert_int_equal(particle->flags, before[p].flags);
                hats h = hats_of(&s.grid, particle);
                double speed2 = 0.0;
                for (int d = 0; d < dimension; d++) {
                    double grid_velocity = 0.0, change = 0.0, slope[3] = {0, 0, 0};
                    FOR_NODES(&s.grid, h, &values, d, {
                        grid_velocity += weight * values.momentum[d][node];
                        change += weight * values.change[d][node];
                    })
                    double expected = kind == SK_TRANSFER_FLIP
                                          ? 0.8 * (before[p].velocity[d] + change) + 0.2 * grid_velocity
                                          : grid_velocity;
                    close_to(particle->velocity[d], expected, 4e-5);
                    speed2 += expected * expected;
                    int on_a_fold = 0;
                    for (int e = 0; e < dimension; e++)
                        on_a_fold |= near_middle(h.fraction[e]);
                    if (kind != SK_TRANSFER_APIC || on_a_fold)
                        continue;
                    /* The derivative of the weights, by hand: hats are straight within half a cell. */
                    for (int nk = 0; nk < (dimension == 3 ? 3 : 1); nk++)
                        for (int nj = 0; nj < 3; nj++)
                            for (int ni = 0; ni < 3; ni++)
                                for (int e = 0; e < dimension; e++) {
                                    const int n[3] = {ni, nj, nk};
                                    int at[3] = {0, 0, 0};
                                    double product = 1.0;
                                    for (int a = 0; a < dimension; a++) {
                                        at[a] = h.cell[a] + n[a] - (a != d);
                                        int below = h.fraction[a] < 0.5f;
                                        double derivative = a == d      ? (n[a] == 0   ? -1.0
                                                                           : n[a] == 1 ? 1.0
                                                                                       : 0.0)
                                                            : n[a] == 1 ? (below ? 1.0 : -1.0)
                                                            : n[a] == 0 ? (below ? -1.0 : 0.0)
                                                                        : (below ? 0.0 : 1.0);
                                        product *= a == e ? derivative : a == d ? h.face[a][n[a]] : h.centre[a][n[a]];
                                    }
                                    if (product != 0.0)
                                        slope[e] += product * values.momentum[d][dense_index(&values, at)] / cell_size;
                                }
                    for (int e = 0; e < dimension; e++)
                        close_to(s.affine[9 * p + (size_t)(3 * d + e)], slope[e], 8e-5 / cell_size);
                }
                kinetic += 0.5 * speed2;
                fastest = speed2 > fastest ? speed2 : fastest;
            }
            close_to(sums.kinetic, kinetic, 1e-5 * kinetic);
            close_to(sums.max_speed, sqrt(fastest), 1e-5 * sqrt(fastest));
            assert_int_equal(sums.bad, 0);
            free(before);
            free_dense(&values);
            free_stage(&s);
        }
}

static void constant_velocity(const double x[3], double v[3])
{
    (void)x;
    v[0] = 1.25, v[1] = -0.5, v[2] = v[2] == 0.0 ? 0.0 : 2.0;
}

static void linear_velocity_2d(const double x[3], double v[3])
{
    v[0] = 0.5 - 3.0 * x[0] + 7.0 * x[1];
    v[1] = -1.0 - 5.0 * x[0] + 3.0 * x[1];
}

static void linear_velocity_3d(const double x[3], double v[3])
{
    v[0] = 0.5 - 3.0 * x[0] + 7.0 * x[1] - 2.0 * x[2];
    v[1] = -1.0 - 5.0 * x[0] + 1.0 * x[1] + 4.0 * x[2];
    v[2] = 0.25 + 6.0 * x[0] - 1.5 * x[1] + 2.0 * x[2];
}

/* There and back with each method: a constant field stays what it is, to the last bits. */
static void constant_fields_stay(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int kind = SK_TRANSFER_PIC; kind <= SK_TRANSFER_APIC; kind++) {
            stage s;
            make_stage(&s, dimension, kind == SK_TRANSFER_APIC);
            fill_oddly(&s, constant_velocity);
            if (s.affine)
                memset(s.affine, 0, (size_t)s.particles.count * 36);
            size_t count = (size_t)s.particles.count;
            sk_particle *before = malloc(count * sizeof *before);
            memcpy(before, s.particles.records, count * sizeof *before);
            sk_transfer_options options = {
                .kind = (sk_transfer_kind)kind, .flip_ratio = 0.5f, .density_per_particle = 1.0f / 8.0f, .threads = 2};
            sk_particle_sums sums;
            assert_int_equal(to_grid(&s, &options), SELKIE_OK);
            for (int d = 0; d < dimension; d++) /* nothing happens on the grid */
                memset(s.grid.fields[SK_FIELD_CHANGE_X + d], 0,
                       (size_t)s.grid.block_count * (size_t)s.grid.block_cells * 4);
            assert_int_equal(to_particles(&s, &options, &sums), SELKIE_OK);
            for (size_t p = 0; p < count; p++)
                for (int d = 0; d < dimension; d++) {
                    close_to(s.particles.records[p].velocity[d], before[p].velocity[d], 1e-6);
                    for (int e = 0; s.affine && e < dimension; e++)
                        close_to(s.affine[9 * p + (size_t)(3 * d + e)], 0.0, 5e-6 / cell_size);
                }
            free(before);
            free_stage(&s);
        }
}

/* APIC carries a linear field there and back, and its slopes with it. Only the rim, whose nodes hear particles on one
 * side only, is as exact: each particle says what the node should have. */
static void apic_keeps_linear_fields(void **state)
{
    (void)state;
    static const double slopes[2][9] = {{-3, 7, 0, -5, 3, 0, 0, 0, 0}, {-3, 7, -2, -5, 1, 4, 6, -1.5, 2}};
    for (int dimension = 2; dimension <= 3; dimension++) {
        velocity_function linear = dimension == 2 ? linear_velocity_2d : linear_velocity_3d;
        stage s;
        make_stage(&s, dimension, 1);
        fill_solid(&s, linear);
        size_t count = (size_t)s.particles.count;
        for (size_t p = 0; p < count; p++)
            for (int c = 0; c < 9; c++)
                s.affine[9 * p + (size_t)c] = (float)slopes[dimension - 2][c];
        sk_transfer_options options = {
            .kind = SK_TRANSFER_APIC, .flip_ratio = 0.0f, .density_per_particle = 1.0f / 8.0f, .threads = 2};
        sk_particle_sums sums;
        for (int round = 0; round < 3; round++) {
            assert_int_equal(to_grid(&s, &options), SELKIE_OK);
            for (int b = 1; b < s.grid.block_count; b++)
                for (int c = 0; c < s.grid.block_cells; c++) {
                    int at[3];
                    cell_position(&s.grid, b, c, at);
                    for (int d = 0; d < dimension; d++) {
                        double x[3] = {0, 0, 0}, v[3] = {0, 0, 0};
                        for (int e = 0; e < dimension; e++)
                            x[e] = s.grid.corner[e] + (at[e] + (e == d ? 0.0 : 0.5)) * cell_size;
                        linear(x, v);
                        float u =
                            s.grid.fields[SK_FIELD_VELOCITY_X + d][(size_t)b * (size_t)s.grid.block_cells + (size_t)c];
                        if (!isnan(u))
                            close_to(u, v[d], 2e-5);
                    }
                }
            assert_int_equal(to_particles(&s, &options, &sums), SELKIE_OK);
            for (size_t p = 0; p < count; p++) {
                const sk_particle *particle = &s.particles.records[p];
                double x[3] = {particle->position[0], particle->position[1], particle->position[2]}, v[3] = {0, 0, 0};
                linear(x, v);
                for (int d = 0; d < dimension; d++) {
                    close_to(particle->velocity[d], v[d], 2e-5);
                    for (int e = 0; e < dimension; e++)
                        close_to(s.affine[9 * p + (size_t)(3 * d + e)], slopes[dimension - 2][3 * d + e],
                                 5e-5 / cell_size);
                }
            }
        }
        free_stage(&s);
    }
}

/* FLIP adds what changed on the grid and nothing else: at a ratio of one, particles keep their own differences. */
static void flip_adds_the_change(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        make_stage(&s, dimension, 0);
        fill_oddly(&s, NULL);
        size_t count = (size_t)s.particles.count;
        sk_particle *before = malloc(count * sizeof *before);
        memcpy(before, s.particles.records, count * sizeof *before);
        sk_transfer_options options = {
            .kind = SK_TRANSFER_FLIP, .flip_ratio = 1.0f, .density_per_particle = 1.0f / 8.0f, .threads = 2};
        sk_particle_sums sums;
        assert_int_equal(to_grid(&s, &options), SELKIE_OK);
        for (int d = 0; d < dimension; d++)
            for (size_t c = 0; c < (size_t)s.grid.block_count * (size_t)s.grid.block_cells; c++)
                s.grid.fields[SK_FIELD_CHANGE_X + d][c] = d == 1 ? -0.0981f : 0.25f;
        assert_int_equal(to_particles(&s, &options, &sums), SELKIE_OK);
        for (size_t p = 0; p < count; p++)
            for (int d = 0; d < dimension; d++)
                close_to(s.particles.records[p].velocity[d], before[p].velocity[d] + (d == 1 ? -0.0981 : 0.25), 1e-6);
        free(before);
        free_stage(&s);
    }
}

static void bad_velocities_are_counted(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        make_stage(&s, dimension, 0);
        fill_oddly(&s, NULL);
        s.particles.records[5].velocity[0] = NAN;
        s.particles.records[s.particles.count - 1].velocity[1] = INFINITY;
        s.particles.records[s.particles.count / 2].velocity[1] = -1e20f;
        sk_transfer_options options = {
            .kind = SK_TRANSFER_FLIP, .flip_ratio = 1.0f, .density_per_particle = 1.0f / 8.0f, .threads = 2};
        for (int d = 0; d < dimension; d++)
            memset(s.grid.fields[SK_FIELD_VELOCITY_X + d], 0,
                   (size_t)s.grid.block_count * (size_t)s.grid.block_cells * 4);
        for (int d = 0; d < dimension; d++)
            memset(s.grid.fields[SK_FIELD_CHANGE_X + d], 0,
                   (size_t)s.grid.block_count * (size_t)s.grid.block_cells * 4);
        sk_particle_sums sums;
        assert_int_equal(to_particles(&s, &options, &sums), SELKIE_OK);
        assert_int_equal(sums.bad, 3);
        free_stage(&s);
    }
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int kind = SK_TRANSFER_PIC; kind <= SK_TRANSFER_APIC; kind++) {
            stage s[4];
            sk_particle_sums sums[4];
            for (int n = 0; n < 4; n++) {
                make_stage(&s[n], dimension, kind == SK_TRANSFER_APIC);
                fill_oddly(&s[n], NULL);
                sk_transfer_options options = {.kind = (sk_transfer_kind)kind,
                                               .flip_ratio = 0.97f,
                                               .density_per_particle = 1.0f / 8.0f,
                                               .threads = threads[n]};
                assert_int_equal(to_grid(&s[n], &options), SELKIE_OK);
                size_t bytes = (size_t)s[0].grid.block_count * (size_t)s[0].grid.block_cells * 4,
                       own = (size_t)s[0].grid.block_cells * 4;
                for (int d = 0; d < dimension; d++)
                    assert_memory_equal((char *)s[n].grid.fields[SK_FIELD_VELOCITY_X + d] + own,
                                        (char *)s[0].grid.fields[SK_FIELD_VELOCITY_X + d] + own, n ? bytes - own : 1);
                assert_memory_equal(s[n].grid.fields[SK_FIELD_DENSITY], s[0].grid.fields[SK_FIELD_DENSITY],
                                    n ? bytes : 1);
                assert_int_equal(to_particles(&s[n], &options, &sums[n]), SELKIE_OK);
                if (n == 0)
                    continue;
                assert_memory_equal(s[n].particles.records, s[0].particles.records,
                                    (size_t)s[0].particles.count * sizeof(sk_particle));
                assert_memory_equal(&sums[n], &sums[0], sizeof sums[0]);
                if (s[0].affine)
                    assert_memory_equal(s[n].affine, s[0].affine, (size_t)s[0].particles.count * 36);
            }
            for (int n = 3; n >= 0; n--)
                free_stage(&s[n]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_grid_as_the_reference),
        cmocka_unit_test(density_leaves_cells_out),
        cmocka_unit_test(mass_and_momentum_are_conserved),
        cmocka_unit_test(to_particles_as_the_reference),
        cmocka_unit_test(constant_fields_stay),
        cmocka_unit_test(apic_keeps_linear_fields),
        cmocka_unit_test(flip_adds_the_change),
        cmocka_unit_test(bad_velocities_are_counted),
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

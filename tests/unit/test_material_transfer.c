/* Transfers of particles that differ in mass or are masked by material, against sums over all particles in double
 * precision; 2D and 3D, FLIP and APIC. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "grid/transfer.h"

static const double cell_size = 0.1;

typedef struct stage {
    sk_grid grid;
    sk_particles particles;
    const uint32_t *material;
    const float *affine; /* NULL without */
} stage;

/* Cells with no, few and many particles of three materials. */
static void make_stage(stage *s, int dimension, int with_affine)
{
    const int cells[3] = {18, 6, dimension == 3 ? 4 : 1}, counts[] = {3, 0, 9, 1, 17, 5};
    const double low[3] = {0.3, -0.7, dimension == 3 ? 1.1 : 0.0};
    sk_particles *particles = &s->particles;
    sk_particles_init(particles, NULL);
    assert_int_equal(sk_grid_init(&s->grid, dimension, cells, low, cell_size, NULL, NULL), SELKIE_OK);
    assert_int_equal(sk_grid_declare(&s->grid, SK_FIELDS_LIQUID | SK_FIELD_BITS(SK_FIELD_LIGHTNESS_X, 3), NULL),
                     SELKIE_OK);
    assert_int_equal(sk_particles_reserve(particles, 20 * 18 * 6 * 4, NULL), SELKIE_OK);
    sk_attribute *material = sk_particles_add_attribute(particles, "material", 1, 1);
    sk_attribute *affine = with_affine ? sk_particles_add_attribute(particles, "affine", 9, 0) : NULL;
    for (int c = 0; c < cells[0] * cells[1] * cells[2]; c++)
        for (int n = 0; n < counts[c % 6]; n++) {
            const int cell[3] = {c % cells[0], c / cells[0] % cells[1], c / cells[0] / cells[1]};
            const uint32_t id = particles->next_id;
            double x[3] = {0, 0, 0}, v[3] = {0, 0, 0};
            for (int d = 0; d < dimension; d++) {
                x[d] = low[d] + (cell[d] + 0.01 + 0.98 * sk_random_float(1, id, (uint64_t)d)) * cell_size;
                v[d] = 4.0 * sk_random_float(2, id, (uint64_t)d) - 2.0;
            }
            sk_particles_append(particles, x, v);
            material->data[particles->count - 1] = id * 7 % 3;
            for (int k = 0; affine && k < 9; k++) {
                const int inside = k / 3 < dimension && k % 3 < dimension;
                const float value = inside ? 20.0f * sk_random_float(3, id, (uint64_t)k) - 10.0f : 0.0f;
                memcpy(affine->data + 9 * (particles->count - 1) + k, &value, 4);
            }
        }
    assert_int_equal(dimension == 2 ? sk_grid_sort_2d(&s->grid, particles, 2, NULL)
                                    : sk_grid_sort_3d(&s->grid, particles, 2, NULL),
                     SELKIE_OK);
    s->material = sk_particles_find_attribute(particles, "material")->data;
    s->affine = with_affine ? (const float *)sk_particles_find_attribute(particles, "affine")->data : NULL;
}

static void free_stage(stage *s)
{
    sk_particles_free(&s->particles);
    sk_grid_free(&s->grid);
}

typedef struct node_sums {
    double volume, mass, momentum, size; /* size: sum of the absolute values of what momentum adds up */
} node_sums;

/* Sums over all particles for the lower face across d of a cell; d = 3: for its centre. */
static node_sums sum_node(const stage *s, const sk_transfer_options *options, int block, int c, int d)
{
    const sk_grid *grid = &s->grid;
    node_sums sums = {0, 0, 0, 0};
    double node[3] = {0, 0, 0};
    int local[3] = {c % grid->extent[0], c / grid->extent[0] % grid->extent[1], c / grid->extent[0] / grid->extent[1]};
    for (int e = 0; e < grid->dimension; e++)
        node[e] = grid->corner[e] +
                  (grid->coordinates[block][e] * grid->extent[e] + local[e] + (e == d ? 0.0 : 0.5)) * grid->cell_size;
    for (int64_t p = 0; p < s->particles.count; p++) {
        const sk_particle *particle = &s->particles.records[p];
        double weight = 1.0, velocity = d < 3 ? particle->velocity[d] : 0.0;
        for (int e = 0; e < grid->dimension; e++) {
            const double way = node[e] - particle->position[e];
            weight *= fmax(0.0, 1.0 - fabs(way) / grid->cell_size);
            if (s->affine && d < 3)
                velocity += s->affine[9 * p + 3 * d + e] * way;
        }
        const uint32_t m = s->material[p];
        if (options->material_mask && !options->material_mask[m])
            continue;
        const double mass = options->relative_density ? options->relative_density[m] : 1.0;
        sums.volume += weight;
        sums.mass += weight * mass;
        sums.momentum += weight * mass * velocity;
        sums.size += weight * mass * fabs(velocity);
    }
    return sums;
}

/* Bounds: some hundred additions in single precision, and positions to 1e-6 of a cell. */
static void compare(const stage *s, const sk_transfer_options *options, int by_mass)
{
    const sk_grid *grid = &s->grid;
    int compared = 0;
    for (int b = 1; b < grid->block_count; b++)
        for (int c = 0; c < grid->block_cells; c++) {
            const size_t at = (size_t)b * (size_t)grid->block_cells + (size_t)c;
            for (int d = 0; d < grid->dimension; d++) {
                const node_sums exact = sum_node(s, options, b, c, d);
                const float velocity = grid->fields[SK_FIELD_VELOCITY_X + d][at];
                if (exact.mass < 1e-4) /* rounding decides whether a particle reaches the face at all */
                    continue;
                assert_true(fabs(velocity - exact.momentum / exact.mass) < 2e-5 * (exact.size / exact.mass + 1.0));
                if (by_mass)
                    assert_true(fabs(grid->fields[SK_FIELD_LIGHTNESS_X + d][at] * exact.mass / exact.volume - 1.0) <
                                2e-5);
                compared++;
            }
            const double density = sum_node(s, options, b, c, 3).volume * options->density_per_particle;
            assert_true(fabs(grid->fields[SK_FIELD_DENSITY][at] - density) < 1e-5);
        }
    assert_true(compared > 200);
}

static selkie_code to_grid(stage *s, const sk_transfer_options *options)
{
    return s->grid.dimension == 2 ? sk_transfer_to_grid_2d(&s->grid, &s->particles, options, NULL)
                                  : sk_transfer_to_grid_3d(&s->grid, &s->particles, options, NULL);
}

static float relative_density[SK_TRANSFER_MATERIALS] = {1.0f, 0.25f, 3.0f};
static uint8_t mask[SK_TRANSFER_MATERIALS] = {0, 1, 0};

static void mass_weighs(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int with_affine = 0; with_affine < 2; with_affine++) {
            stage s;
            make_stage(&s, dimension, with_affine);
            sk_transfer_options options = {.kind = with_affine ? SK_TRANSFER_APIC : SK_TRANSFER_FLIP,
                                           .density_per_particle = 0.125f,
                                           .relative_density = relative_density,
                                           .threads = 2};
            assert_int_equal(to_grid(&s, &options), SELKIE_OK);
            compare(&s, &options, 1);
            free_stage(&s);
        }
}

static void mask_leaves_out(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        make_stage(&s, dimension, 0);
        sk_transfer_options options = {
            .kind = SK_TRANSFER_FLIP, .density_per_particle = 0.125f, .material_mask = mask, .threads = 2};
        assert_int_equal(to_grid(&s, &options), SELKIE_OK);
        compare(&s, &options, 1);
        const size_t bytes = (size_t)s.grid.block_count * (size_t)s.grid.block_cells * sizeof(float);
        float *both = malloc(bytes);
        assert_non_null(both);
        memcpy(both, s.grid.fields[SK_FIELD_DENSITY], bytes);
        assert_int_equal(dimension == 2 ? sk_transfer_density_2d(&s.grid, &s.particles, &options, NULL)
                                        : sk_transfer_density_3d(&s.grid, &s.particles, &options, NULL),
                         SELKIE_OK);
        assert_memory_equal(both, s.grid.fields[SK_FIELD_DENSITY], bytes); /* alone or beside velocities: the same */
        free(both);
        free_stage(&s);
    }
}

/* Equal masses give the bits of a transfer that knows of none; any number of threads gives the same bits. */
static void same_bits(void **state)
{
    (void)state;
    static float ones[SK_TRANSFER_MATERIALS];
    for (int m = 0; m < SK_TRANSFER_MATERIALS; m++)
        ones[m] = 1.0f;
    for (int dimension = 2; dimension <= 3; dimension++) {
        stage s;
        make_stage(&s, dimension, 1);
        const size_t values = (size_t)s.grid.block_count * (size_t)s.grid.block_cells;
        float *first = malloc(values * sizeof *first);
        assert_non_null(first);
        sk_transfer_options options = {.kind = SK_TRANSFER_APIC, .density_per_particle = 0.125f, .threads = 2};
        const float *const tables[] = {NULL, ones, relative_density, relative_density};
        for (int n = 0; n < 4; n++) {
            options.relative_density = tables[n];
            options.threads = n == 3 ? 3 : 1;
            assert_int_equal(to_grid(&s, &options), SELKIE_OK);
            const float *velocity = s.grid.fields[SK_FIELD_VELOCITY_Y];
            if (n % 2)
                assert_memory_equal(first, velocity, values * sizeof *first);
            memcpy(first, velocity, values * sizeof *first);
        }
        free(first);
        free_stage(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mass_weighs),
        cmocka_unit_test(mask_leaves_out),
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

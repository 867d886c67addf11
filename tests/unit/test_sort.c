/* The cell sort against a plain one: order, ties, dead particles, starts of cells, slots of blocks and who is whose
 * neighbour, in 2D and 3D, on any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sanitized.h"
#include "sort_cases.h"

static void an_empty_world(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_memory memory = {0, 0, 0};
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, &memory);
        make_grid(&grid, dimension, small_cells[dimension - 2], &memory);
        sort_and_check(&grid, &particles, 2);
        assert_int_equal(grid.block_count, 1);
        assert_int_equal(grid.cell_start[0], 0);
        /* Nothing but dead ones is as empty. */
        add_at_cell(&particles, &grid, 3.5, 3.5, 3.5);
        particles.records[0].flags = SK_PARTICLE_DEAD;
        sort_and_check(&grid, &particles, 2);
        assert_int_equal(grid.block_count, 1);
        sk_particles_free(&particles);
        sk_grid_free(&grid);
        assert_int_equal(memory.used, 0);
    }
}

static void one_particle_anywhere(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        make_grid(&grid, dimension, small_cells[dimension - 2], NULL);
        add(&particles, 0, 0, 0);
        /* Along the domain in steps of a half cell: every border of a block is met exactly. The last is the upper
         * corner. */
        for (int n = 0; n <= 2 * grid.cells[0]; n++) {
            for (int d = 0; d < dimension; d++) {
                double place = fmin(0.5 * n, grid.cells[d]);
                particles.records[0].position[d] = (float)(grid.low[d] + place * grid.cell_size);
            }
            sort_and_check(&grid, &particles, 1 + n % 3);
        }
        sk_particles_free(&particles);
        sk_grid_free(&grid);
    }
}

static void corners_of_blocks_and_of_the_domain(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        sk_particles_add_attribute(&particles, "tag", 2, 1);
        make_grid(&grid, dimension, small_cells[dimension - 2], NULL);
        for (int corner = 0; corner < 1 << dimension; corner++)
            for (int inwards = 0; inwards < 2; inwards++) {
                double x[3] = {0, 0, 0};
                for (int d = 0; d < dimension; d++)
                    x[d] = corner >> d & 1 ? grid.cells[d] - 1e-3 * inwards : 1e-3 * inwards;
                add_at_cell(&particles, &grid, x[0], x[1], x[2]);
            }
        int n = grid.extent[0], p = SK_GRID_PADDING;
        for (int k = n - p; k < (dimension == 3 ? grid.cells[2] : n - p + 1); k += n)
            for (int j = n - p; j < grid.cells[1]; j += n)
                for (int i = n - p; i < grid.cells[0]; i += n)
                    for (int corner = 0; corner < 8; corner++)
                        add_at_cell(&particles, &grid, i - 0.01 * (corner & 1), j - 0.01 * (corner >> 1 & 1),
                                    k - 0.01 * (corner >> 2));
        sort_and_check(&grid, &particles, 2);
        sort_and_check(&grid, &particles, 2); /* sorted already: nothing moves */
        sk_particles_free(&particles);
        sk_grid_free(&grid);
    }
}

static void random_clouds(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_memory memory = {0, 0, 0};
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, &memory);
        sk_particles_add_attribute(&particles, "tag", 2, 1);
        make_grid(&grid, dimension, small_cells[dimension - 2], &memory);
        static const int more[] = {1, 7, 60, 500, 3000, 4000};
        for (int n = 0; n < 6; n++) {
            add_cloud(&particles, &grid, more[n], (uint64_t)n);
            sort_and_check(&grid, &particles, 1 + n % 4);
            /* Things move, and the table of the last time must not show. */
            for (int64_t p = 0; p < particles.count; p++)
                particles.records[p].position[0] =
                    (float)(grid.high[0] + grid.low[0]) - particles.records[p].position[0];
            sort_and_check(&grid, &particles, 2);
        }
        sk_particles_free(&particles);
        sk_grid_free(&grid);
        assert_int_equal(memory.used, 0);
    }
}

/* Lone particles in the corners of blocks have four or eight times as many blocks around them as hold particles, more
 * than there was room for at first. */
static void many_lone_particles(void **state)
{
    (void)state;
    static const int cells[2][3] = {{800, 640, 1}, {160, 120, 90}};
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid;
        sk_particles particles;
        sk_particles_init(&particles, NULL);
        make_grid(&grid, dimension, cells[dimension - 2], NULL);
        int n = grid.extent[0], p = SK_GRID_PADDING;
        for (int k = n - p; k < (dimension == 3 ? grid.cells[2] : n - p + 1); k += 3 * n)
            for (int j = n - p; j < grid.cells[1]; j += 3 * n)
                for (int i = n - p; i < grid.cells[0]; i += 3 * n)
                    add_at_cell(&particles, &grid, i + 0.5, j + 0.5, k + 0.5);
        assert_true(particles.count > 64);
        sort_and_check(&grid, &particles, 2);
        assert_int_equal(grid.block_count - 1, particles.count * (dimension == 3 ? 8 : 4));
        sk_particles_free(&particles);
        sk_grid_free(&grid);
    }
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (int dimension = 2; dimension <= 3; dimension++) {
        sk_grid grid[4];
        sk_particles particles[4];
        for (int n = 0; n < 4; n++) {
            sk_particles_init(&particles[n], NULL);
            sk_particles_add_attribute(&particles[n], "tag", 2, 1);
            make_grid(&grid[n], dimension, small_cells[dimension - 2], NULL);
            add_cloud(&particles[n], &grid[n], 20000, 5);
            assert_int_equal(sort(&grid[n], &particles[n], threads[n], NULL), SELKIE_OK);
            if (n == 0)
                continue;
            assert_int_equal(particles[n].count, particles[0].count);
            assert_int_equal(grid[n].block_count, grid[0].block_count);
            assert_int_equal(grid[n].particle_blocks, grid[0].particle_blocks);
            size_t count = (size_t)particles[0].count, blocks = (size_t)grid[0].block_count;
            assert_memory_equal(particles[n].records, particles[0].records, count * sizeof(sk_particle));
            assert_memory_equal(particles[n].attributes[0].data, particles[0].attributes[0].data, count * 8);
            assert_memory_equal(grid[n].cell_start, grid[0].cell_start,
                                ((size_t)grid[0].particle_blocks * (size_t)grid[0].block_cells + 1) * 4);
            assert_memory_equal(grid[n].coordinates, grid[0].coordinates, blocks * sizeof *grid[0].coordinates);
            assert_memory_equal(grid[n].faces, grid[0].faces, blocks * sizeof *grid[0].faces);
            for (size_t b = 0; b < blocks; b++)
                assert_memory_equal(grid[n].neighbours[b], grid[0].neighbours[b], dimension == 3 ? 27 * 4 : 9 * 4);
        }
        for (int n = 0; n < 4; n++) {
            sk_particles_free(&particles[n]);
            sk_grid_free(&grid[n]);
        }
    }
}

/* A particle that is nowhere ends the sort with a message, not with a write outside the table; mended, it sorts again.
 */
static void lost_particles_are_an_error(void **state)
{
    (void)state;
    static const float nowhere[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 1e9f, -100.0f};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (size_t n = 0; n < sizeof nowhere / sizeof *nowhere; n++)
            for (int d = 0; d < dimension; d++) {
                sk_grid grid;
                sk_particles particles;
                sk_particles_init(&particles, NULL);
                make_grid(&grid, dimension, small_cells[dimension - 2], NULL);
                add_cloud(&particles, &grid, 100, n);
                for (int p = 0; p < 30; p += 10) {
                    particles.records[p].flags = 0;
                    particles.records[p].position[d] = nowhere[n];
                }
                selkie_error error = {0};
                assert_int_equal(sort(&grid, &particles, 2, &error), SELKIE_ERROR_DIVERGED);
                assert_non_null(strstr(error.message, "3 particles are nowhere"));
                assert_int_equal(particles.count, 100);
                for (int p = 0; p < 30; p += 10)
                    particles.records[p].position[d] = (float)grid.low[d] + 0.3f;
                sort_and_check(&grid, &particles, 2);
                /* A dead one may be anywhere. */
                particles.records[0].position[d] = nowhere[n];
                particles.records[0].flags = SK_PARTICLE_DEAD;
                sort_and_check(&grid, &particles, 2);
                sk_particles_free(&particles);
                sk_grid_free(&grid);
            }
}

/* Wherever the memory ends, the sort ends with a message, and goes through once there is enough. */
static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    static const int cells[2][3] = {{400, 320, 1}, {120, 80, 60}};
    for (int dimension = 2; dimension <= 3; dimension++) {
        int failures = 0;
        for (size_t room = 0; room < (16u << 20); room += room < 200000 ? 20000 : 500000) {
            sk_memory memory = {0, 0, 0};
            sk_grid grid;
            sk_particles particles;
            sk_particles_init(&particles, NULL);
            make_grid(&grid, dimension, cells[dimension - 2], &memory);
            add_at_cell(&particles, &grid, 10.5, 10.5, 10.5);
            sort_and_check(&grid, &particles, 2);
            int n = grid.extent[0], p = SK_GRID_PADDING;
            for (int k = n - p; k < (dimension == 3 ? grid.cells[2] : n - p + 1); k += 3 * n)
                for (int j = n - p; j < grid.cells[1]; j += 3 * n)
                    for (int i = n - p; i < grid.cells[0]; i += 3 * n)
                        add_at_cell(&particles, &grid, i + 0.5, j + 0.5, k + 0.5);
            memory.limit = memory.used + room;
            selkie_error error = {0};
            selkie_code code = sort(&grid, &particles, 2, &error);
            if (code != SELKIE_OK) {
                failures++;
                assert_int_equal(code, SELKIE_ERROR_MEMORY);
                assert_int_equal(error.code, SELKIE_ERROR_MEMORY);
                memory.limit = 0;
                sort_and_check(&grid, &particles, 2);
            }
            sk_particles_free(&particles);
            sk_grid_free(&grid);
            assert_int_equal(memory.used, 0);
            if (code == SELKIE_OK)
                break;
        }
        assert_true(failures > 3);
    }
}

/* Memory follows the particles: a grid of 10^15 cells with a few of them is small. */
static void a_vast_grid_is_small(void **state)
{
    (void)state;
    static const int corners[][3] = {{0, 0, 0}, {99999, 99999, 99999}, {50000, 7, 99990}, {50001, 7, 99990}};
    for (int plain = 0; plain < 2; plain++) {
        sk_grid grid;
        sk_particles particles;
        sk_memory memory = {0, 0, 16 << 20};
        selkie_error error = {0};
        const double low[3] = {0, 0, 0};
        const int vast[3] = {100000, 100000, 100000};
        assert_int_equal(sk_grid_init(&grid, 3, vast, low, 0.5, &memory, &error), SELKIE_OK);
        assert_int_equal(sk_grid_declare(&grid, 0, &error), SELKIE_OK);
        sk_particles_init(&particles, &memory);
        for (int p = 3; p >= 0; p--)
            add_at_cell(&particles, &grid, corners[p][0] + 0.5, corners[p][1] + 0.5, corners[p][2] + 0.5);
        for (int again = 0; again < 2; again++) {
            sk_particles_moved(&particles);
            assert_int_equal(plain   ? sk_grid_sort_plain_3d(&grid, &particles, 2, &error)
                             : again ? sk_grid_sort_again_3d(&grid, &particles, 2, &error)
                                     : sk_grid_sort_3d(&grid, &particles, 2, &error),
                             SELKIE_OK);
            assert_int_equal(grid.particle_blocks, 3);
            assert_int_equal(particles.records[0].id, 3); /* the first corner was added last */
            assert_int_equal(particles.records[3].id, 2);
        }
        /* A particle that flies farther than a leaver's key reaches. */
        particles.records[0].position[0] = 49000.25f;
        sk_particles_moved(&particles);
        assert_int_equal(sk_grid_sort_again_3d(&grid, &particles, 2, &error), SELKIE_OK);
        assert_int_equal(grid.particle_blocks, 3);
        assert_int_equal(slot_at(&grid, (const int32_t[3]){(98000 + SK_GRID_PADDING) / 8, 0, 0}, 0, 0, 0), 1);
        sk_particles_free(&particles);
        sk_grid_free(&grid);
        assert_int_equal(memory.used, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_world),
        cmocka_unit_test(one_particle_anywhere),
        cmocka_unit_test(corners_of_blocks_and_of_the_domain),
        cmocka_unit_test(random_clouds),
        cmocka_unit_test(many_lone_particles),
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(lost_particles_are_an_error),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(a_vast_grid_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

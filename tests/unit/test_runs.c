/* Which runs of eight cells the phases look at (grid/runs.h), against what the cells and particles say one by one: a
 * run that were left out would be liquid that nobody moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "step_cases.h"

static int has_run(const step_case *c, sk_grid_runs kind, size_t index)
{
    const size_t cells = (size_t)c->step->grid.block_cells;
    return c->step->grid.runs[kind][index / cells] >> (index % cells / 8) & 1;
}

/* Runs of the cells next to a cell, itself included; where a block is absent there is nothing to ask. */
static void check_around(const step_case *c, sk_grid_runs kind, int i, int j, int k)
{
    const int deep = c->step->dimension == 3;
    for (int z = -deep; z <= deep; z++)
        for (int y = -1; y <= 1; y++)
            for (int x = -1; x <= 1; x++) {
                const int cell[3] = {i + x, j + y, k + z};
                size_t index = case_cell(c, cell);
                if (index)
                    assert_true(has_run(c, kind, index));
            }
}

/* Drops and sheets at random places: most blocks are nearly empty. */
static void sprinkle(step_case *c, uint64_t seed)
{
    sk_particles *particles = &c->step->particles;
    const int deep = c->step->dimension == 3;
    selkie_error error = {0};
    assert_int_equal(sk_particles_reserve(particles, particles->count + 400, &error), SELKIE_OK);
    for (uint64_t n = 0; n < 400; n++) {
        double x[3] = {0, 0, 0}, v[3] = {0, 0, 0};
        for (int d = 0; d < 2 + deep; d++)
            x[d] = c->step->grid.low[d] +
                   (0.01 + 0.98 * sk_random_float(seed, n / 8, (uint64_t)d)) *
                       (c->step->grid.high[d] - c->step->grid.low[d]) * 0.98 +
                   0.01 * sk_random_float(seed, n, (uint64_t)d + 8) * c->step->grid.cell_size;
        sk_particles_append(particles, x, v);
    }
}

static void runs_are_those_of_the_cells(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            step_case c;
            case_begin(&c, dimension, 37, 29, 22, 1.0 / 16);
            c.scene.volume = seed % 2 ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE;
            c.scene.liquid_count = 1;
            case_box(&c, &c.liquids[0].shape, 0, 0, 0, 37, 3, 22);
            case_create(&c, 2, 0.01);
            sprinkle(&c, seed);
            case_run_through(&c, "classify");
            const sk_grid *grid = &c.step->grid;
            for (int b = 1; b < grid->block_count; b++)
                for (int cell = 0; cell < grid->block_cells; cell += 8) {
                    int liquid = 0, occupied = 0, dense = 0;
                    const size_t first = (size_t)b * (size_t)grid->block_cells + (size_t)cell;
                    for (int l = 0; l < 8; l++) {
                        liquid |= (grid->kinds[first + (size_t)l] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID;
                        dense |= grid->fields[SK_FIELD_DENSITY][first + (size_t)l] > 0.0f;
                        if (b <= grid->particle_blocks) {
                            const uint32_t *start =
                                grid->cell_start + (size_t)(b - 1) * (size_t)grid->block_cells + cell + l;
                            occupied |= start[1] > start[0];
                        }
                    }
                    assert_int_equal(has_run(&c, SK_RUNS_LIQUID, first), liquid);
                    assert_true(!dense || has_run(&c, SK_RUNS_REACHED, first));
                    if (b > grid->particle_blocks)
                        continue;
                    assert_int_equal(grid->occupied[b] >> (cell / 8) & 1, occupied);
                    const uint32_t *start = grid->cell_start + (size_t)(b - 1) * (size_t)grid->block_cells + cell;
                    const int n = grid->extent[0];
                    assert_int_equal(grid->occupied_first[b] >> (cell / 8) & 1, cell % n == 0 && start[1] > start[0]);
                    assert_int_equal(grid->occupied_last[b] >> (cell / 8) & 1,
                                     cell % n == n - 8 && start[8] > start[7]);
                }
            FOR_DOMAIN(&c)
            {
                const int cell[3] = {i, j, k};
                size_t index = case_cell(&c, cell);
                if (index && (grid->kinds[index] & SK_CELL_KIND_MASK) == SK_CELL_LIQUID)
                    check_around(&c, SK_RUNS_NEAR, i, j, k);
                if (index && grid->kinds[index] & SK_CELL_OCCUPIED)
                    check_around(&c, SK_RUNS_REACHED, i, j, k);
            }
            case_end(&c);
        }
}

/* A run of block b from cell c on, by its place in the whole grid: blocks along x, rows along y and z. */
static void run_place(const sk_grid *grid, int b, int c, int place[3])
{
    const int n = grid->extent[0];
    place[0] = grid->coordinates[b][0];
    place[1] = grid->coordinates[b][1] * n + c / n % n;
    place[2] = grid->dimension == 3 ? grid->coordinates[b][2] * n + c / n / n : 0;
}

/* Is there a run of a mask within one block along x and so many rows across? */
static int has_within(const sk_grid *grid, const uint64_t *runs, const int place[3], int rows)
{
    for (int b = 1; b < grid->block_count; b++)
        for (int c = 0; runs[b] && c < grid->block_cells; c += 8) {
            int other[3];
            run_place(grid, b, c, other);
            if (runs[b] >> (c / 8) & 1 && abs(other[0] - place[0]) <= 1 && abs(other[1] - place[1]) <= rows &&
                abs(other[2] - place[2]) <= rows)
                return 1;
        }
    return 0;
}

/* A pool that is squeezed in one place: the correction after the first takes what is too dense (beyond 1.1) and seven
 * rows around it (3D: three), in the block and the two beside it along x, and moves the particles of one row and one
 * block more. */
static void further_corrections_take_the_cells_around(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const float needy_density = 1.1f;
        const int rows = dimension == 2 ? 7 : 3;
        step_case c;
        case_begin(&c, dimension, 80, 24, 20, 1.0 / 16);
        c.scene.volume = SELKIE_VOLUME_IDP;
        c.scene.liquid_count = 1;
        case_box(&c, &c.liquids[0].shape, 0, 0, 0, 80, 14, 20);
        case_create(&c, 2, 0.01);
        for (int64_t p = 0; p < c.step->particles.count; p++) {
            float *x = c.step->particles.records[p].position;
            if (fabsf(x[0] - 1.1f) < 0.2f && fabsf(x[1] - 0.3f) < 0.2f && (dimension == 2 || fabsf(x[2] - 0.5f) < 0.2f))
                x[0] = 1.1f + 0.3f * (x[0] - 1.1f);
        }
        case_run_through(&c, "density_correct");
        const char *const next[] = {"sort_again", "solids_again", "density", "density_classify", "density_correct"};
        for (int n = 0; n < 5; n++) {
            selkie_error error = {0};
            assert_int_equal(case_run(&c, next[n], &error), SELKIE_OK);
        }
        const sk_grid *grid = &c.step->grid;
        uint64_t *needy = calloc((size_t)grid->block_count, sizeof *needy);
        assert_non_null(needy);
        for (int b = 1; b < grid->block_count; b++) {
            const float *density = grid->fields[SK_FIELD_DENSITY] + (size_t)b * (size_t)grid->block_cells;
            const float *blurred =
                c.step->solids.blurred + (size_t)c.step->solids.block_slot[b] * (size_t)grid->block_cells;
            for (int cell = 0; cell < grid->block_cells; cell++)
                if (grid->runs[SK_RUNS_LIQUID][b] >> (cell / 8) & 1 && density[cell] + blurred[cell] > needy_density)
                    needy[b] |= UINT64_C(1) << (cell / 8);
        }
        int chosen = 0, moved = 0, all = 0;
        for (int b = 1; b < grid->block_count; b++)
            for (int cell = 0; cell < grid->block_cells; cell += 8) {
                int place[3];
                run_place(grid, b, cell, place);
                const int is_chosen = (int)(grid->runs[SK_RUNS_CHOSEN][b] >> (cell / 8) & 1);
                const int is_moved = (int)(grid->runs[SK_RUNS_MOVED][b] >> (cell / 8) & 1);
                assert_int_equal(is_chosen, has_within(grid, needy, place, rows));
                assert_int_equal(is_moved, has_within(grid, grid->runs[SK_RUNS_CHOSEN], place, 1));
                chosen += is_chosen, moved += is_moved, all++;
            }
        assert_true(chosen > 0 && moved > chosen && moved < all / 2);
        free(needy);
        case_end(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_those_of_the_cells),
        cmocka_unit_test(further_corrections_take_the_cells_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Unilateral incompressibility, phase by phase: blurred faces, the prediction, the two problems, and that neither
 * threads nor checkpoints show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "grid/predict.h"
#include "sanitized.h"
#include "scratch_folder.h"
#include "step_cases.h"

static void begin(step_case *c, int dimension, int n)
{
    case_begin(c, dimension, n, n, n, 0.05);
    c->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    c->scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    c->scene.liquid_count = 1;
}

/* The hat has an eighth of its weight beyond half a cell, and a half on either side of its centre. */
static void faces_are_blurred_like_the_particles(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        begin(&c, dimension, 12);
        c.scene.particles.per_cell = dimension == 2 ? 4 : 8; /* an even number an axis samples the hat exactly */
        case_box(&c, &c.liquids[0].shape, 0, 0, 0, 12, 12, 12);
        case_create(&c, 2, 0.01);
        case_run_through(&c, "to_grid");
        const sk_solids *solids = &c.step->solids;
        const int inside[3] = {6, 0, 6}, below[3] = {6, -1, 6};
        size_t cell = case_cell(&c, inside), under = case_cell(&c, below);
        assert_true(fabsf(solids->blurred_face[1][case_solid_cell(&c, cell)] - 0.5f) < 1e-6f);
        assert_true(fabsf(solids->blurred_face[0][case_solid_cell(&c, cell)] - 0.125f) < 1e-6f);
        assert_true(fabsf(solids->blurred_face[0][case_solid_cell(&c, under)] - 0.875f) < 1e-6f);
        assert_true(fabsf(solids->blurred_face[1][case_solid_cell(&c, under)] - 1.0f) < 1e-6f);
        /* A full tank has the density on faces that there is room for. */
        const sk_grid *grid = &c.step->grid;
        for (size_t i = (size_t)grid->block_cells; i < (size_t)grid->block_count * (size_t)grid->block_cells; i++)
            for (int d = 0; d < dimension; d++)
                assert_true(fabsf(grid->fields[SK_FIELD_FACE_DENSITY_X + d][i] +
                                  solids->blurred_face[d][case_solid_cell(&c, i)] - 1.0f) < 1e-4f);
        case_end(&c);
    }
}

/* Without velocity the prediction is the density; with a velocity of whole cells it is the density moved. */
static void prediction_moves_density(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c;
        begin(&c, dimension, 24);
        case_ball(&c, &c.liquids[0].shape, 9.3, 10.1, 11.7, 5);
        c.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
        case_create(&c, 2, 0.01);
        case_run_through(&c, "to_grid");
        sk_grid *grid = &c.step->grid;
        sk_predict_options options = {
            .density_per_particle = 1.0f / (float)c.step->particles_per_cell, .solids = &c.step->solids, .threads = 2};
        selkie_error error = {0};
        for (int moved = 0; moved < 2; moved++) {
            options.dt = 0.01f;
            for (int d = 0; d < dimension; d++)
                for (size_t i = (size_t)grid->block_cells; i < (size_t)grid->block_count * (size_t)grid->block_cells;
                     i++)
                    if (!isnan(grid->fields[SK_FIELD_VELOCITY_X + d][i]))
                        grid->fields[SK_FIELD_VELOCITY_X + d][i] = moved && d == 0 ? 2 * 0.05f / 0.01f : 0.0f;
            selkie_code code = dimension == 2 ? sk_predict_density_2d(grid, &c.step->particles, &options, &error)
                                              : sk_predict_density_3d(grid, &c.step->particles, &options, &error);
            assert_int_equal(code, SELKIE_OK);
            FOR_DOMAIN(&c)
            {
                const int here[3] = {i, j, k}, there[3] = {i + 2 * moved, j, k};
                size_t from = case_cell(&c, here), to = case_cell(&c, there);
                if (from && to)
                    assert_true(fabsf(grid->fields[SK_FIELD_PREDICTED][to] - grid->fields[SK_FIELD_DENSITY][from]) <
                                1e-4f);
            }
        }
        case_end(&c);
    }
}

/* Walls are mirrors: what is behind them counts before them. */
static double with_mirror_image(const step_case *c, const float *field, const int cell[3], int of_solids)
{
    double sum = 0.0;
    for (int corner = 0; corner < 8; corner++) {
        int at[3], counts = 1;
        for (int d = 0; d < 3; d++) {
            int last = d < c->step->dimension ? c->step->grid.cells[d] - 1 : 0, edge = cell[d] == 0 || cell[d] == last;
            counts &= !(corner >> d & 1) || (d < c->step->dimension && edge);
            at[d] = corner >> d & 1 ? (cell[d] == 0 ? -1 : last + 1) : cell[d];
        }
        size_t index = counts ? case_cell(c, at) : 0;
        if (index)
            sum += of_solids ? 1.0 - field[case_solid_cell(c, index)] : field[index];
    }
    return sum;
}

static double worst_excess(const step_case *c, sk_grid_field field)
{
    double worst = 0.0;
    FOR_DOMAIN(c)
    {
        const int cell[3] = {i, j, k};
        worst = fmax(worst, with_mirror_image(c, c->step->grid.fields[field], cell, 0) -
                                with_mirror_image(c, c->step->solids.blurred, cell, 1));
    }
    return worst;
}

/* In the middle of a splash: the density of the particles themselves, shifted as the correction says, is at most 2 %
 * above what fits. */
static void correction_leaves_nothing_too_dense(void **state)
{
    (void)state;
    step_case c;
    begin(&c, 2, 32);
    case_box(&c, &c.liquids[0].shape, 0, 0, 0, 12, 24, 1);
    case_ball(&c, &c.obstacles[0].shape, 20, 3, 0, 3);
    c.scene.obstacle_count = 1;
    c.scene.time.fps = 30;
    case_create(&c, 2, 0.0);
    c.step->last_dt = 0.0;
    double before = 0.0, after = 0.0;
    selkie_error error = {0};
    for (int n = 0; n < 150; n++) {
        if (selkie_world_step(c.world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        if (n % 10)
            continue;
        case_run_through(&c, "density_correct");
        before = fmax(before, c.step->overfull);
        sk_predict_options options = {.density_per_particle = 1.0f / (float)c.step->particles_per_cell,
                                      .shifted = c.step->shifted,
                                      .solids = &c.step->solids,
                                      .threads = 2};
        assert_int_equal(sk_predict_density_2d(&c.step->grid, &c.step->particles, &options, &error), SELKIE_OK);
        after = fmax(after, worst_excess(&c, SK_FIELD_PREDICTED));
    }
    print_message("largest density above what fits: %.4f before, %.4f after the correction\n", before, after);
    assert_true(after < 0.02);
    case_end(&c);
}

/* One place of a pool is squeezed: what the first pass leaves there is corrected in the blocks around it alone, and
 * particles elsewhere go where one pass sends them. */
static void corrects_again_where_needed(void **state)
{
    (void)state;
    double after[2];
    float *shift[2] = {NULL, NULL};
    size_t far_block = 0;
    for (int again = 0; again < 2; again++) {
        step_case c;
        begin(&c, 3, 24);
        case_box(&c, &c.liquids[0].shape, 0, 0, 0, 24, 16, 24);
        c.scene.unilateral.density_passes = again ? 3 : 1;
        case_create(&c, 2, 0.001);
        const double h = c.scene.domain.cell_size, middle[3] = {4.3 * h, 4.1 * h, 4.4 * h}, radius = 2.2 * h;
        for (int64_t p = 0; p < c.step->particles.count; p++) {
            float *x = c.step->particles.records[p].position;
            double off[3], distance = 0.0;
            for (int d = 0; d < 3; d++) {
                off[d] = x[d] - middle[d];
                distance += off[d] * off[d];
            }
            for (int d = 0; d < 3 && distance < radius * radius; d++)
                x[d] = (float)(middle[d] + 0.93 * off[d]);
        }
        case_run_through(&c, "density_correct");
        const sk_grid *grid = &c.step->grid;
        const size_t cells = (size_t)grid->block_count * (size_t)grid->block_cells;
        selkie_error error = {0};
        sk_predict_options options = {.density_per_particle = 1.0f / (float)c.step->particles_per_cell,
                                      .shifted = c.step->shifted,
                                      .solids = &c.step->solids,
                                      .threads = 2};
        assert_int_equal(sk_predict_density_3d(&c.step->grid, &c.step->particles, &options, &error), SELKIE_OK);
        after[again] = worst_excess(&c, SK_FIELD_PREDICTED);
        print_message("a squeezed place: %.4f too much before, %.4f after %d of %d passes\n", c.step->overfull,
                      after[again], c.step->density_passes, c.scene.unilateral.density_passes);
        assert_true(c.step->overfull > 0.1);
        assert_true(again ? c.step->density_passes >= 2 : c.step->density_passes == 1);
        far_block = case_cell(&c, (const int[3]){22, 12, 22}) / (size_t)grid->block_cells * (size_t)grid->block_cells;
        assert_true(far_block > 0 && far_block < cells);
        shift[again] = malloc((size_t)grid->block_cells * sizeof(float));
        assert_non_null(shift[again]);
        memcpy(shift[again], grid->fields[SK_FIELD_SHIFT_X] + far_block, (size_t)grid->block_cells * sizeof(float));
        case_end(&c);
        if (again)
            assert_memory_equal(shift[0], shift[1], (size_t)512 * sizeof(float));
    }
    assert_true(after[1] < 0.02);
    assert_true(after[1] < 0.5 * after[0]);
    free(shift[0]);
    free(shift[1]);
}

static uint64_t hash_world(const selkie_world *world)
{
    uint64_t hash = 14695981039346656037u;
    const sk_particles *particles = &world->step.particles;
    const unsigned char *bytes = (const unsigned char *)particles->records;
    for (size_t i = 0; i < (size_t)particles->count * sizeof(sk_particle); i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static void splash_with_everything(step_case *c, int dimension, selkie_unilateral_solver solver)
{
    begin(c, dimension, 20);
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 8, 14, 20);
    case_box(c, &c->obstacles[0].shape, 11, 2, 4, 13, 7, 16);
    c->obstacles[0].angular_velocity[2] = 2.0;
    c->obstacles[0].center[0] = c->obstacles[0].center[1] = 0.5;
    c->scene.obstacle_count = 1;
    c->scene.unilateral.suction = dimension == 2;
    c->scene.unilateral.solver = solver;
    selkie_scene_set_method(&c->scene, dimension == 2 ? SELKIE_METHOD_FLIP : SELKIE_METHOD_APIC);
}

static void take_steps(selkie_world *world, int steps)
{
    selkie_error error = {0};
    for (int n = 0; n < steps; n++)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
}

static void threads_and_checkpoints_do_not_show(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        const int dimension = kind == 1 ? 3 : 2, steps = (dimension == 2 ? 24 : 10) / (1 + SANITIZED);
        const selkie_unilateral_solver solver = kind == 2 ? SELKIE_UNILATERAL_MPRGP : SELKIE_UNILATERAL_ACTIVE_SET;
        uint64_t hash[3];
        const char *path = in_root(kind == 0 ? "flat" : kind == 1 ? "solid" : "reference");
        step_case c;
        selkie_error error = {0};
        for (int threads = 1; threads <= 3; threads++) {
            splash_with_everything(&c, dimension, solver);
            case_create(&c, threads, 0.0);
            take_steps(c.world, steps);
            if (threads == 2)
                assert_int_equal(selkie_world_save(c.world, path, &error), SELKIE_OK);
            take_steps(c.world, steps);
            hash[threads - 1] = hash_world(c.world);
            case_end(&c);
        }
        assert_true(hash[0] == hash[1]);
        assert_true(hash[0] == hash[2]);
        splash_with_everything(&c, dimension, solver);
        case_create(&c, 1, 0.0);
        assert_int_equal(selkie_world_load(c.world, path, &error), SELKIE_OK);
        take_steps(c.world, steps);
        assert_true(hash_world(c.world) == hash[0]);
        case_end(&c);
    }
}

/* The source's solver and the fast one have one answer; the source's prediction runs too. */
static void other_ways_agree(void **state)
{
    (void)state;
    double kinetic[3];
    for (int way = 0; way < 3; way++) {
        step_case c;
        begin(&c, 2, 24);
        case_box(&c, &c.liquids[0].shape, 0, 0, 0, 10, 16, 1);
        c.scene.unilateral.solver = way == 1 ? SELKIE_UNILATERAL_MPRGP : SELKIE_UNILATERAL_ACTIVE_SET;
        if (way == 2) {
            c.scene.unilateral.prediction = SELKIE_PREDICTION_FLUX;
            c.scene.unilateral.flight = SELKIE_FLIGHT_GRID;
        }
        c.scene.unilateral.tolerance = 1e-6;
        case_create(&c, 1, 0.0);
        take_steps(c.world, 8);
        kinetic[way] = selkie_world_statistics(c.world)->kinetic_energy;
        case_end(&c);
    }
    print_message("energy: active set %.6g, MPRGP %.6g, flux %.6g J\n", kinetic[0], kinetic[1], kinetic[2]);
    assert_true(fabs(kinetic[1] / kinetic[0] - 1.0) < 1e-3);
    /* The flux form bounds the density in all cells and loses more energy where the column begins to fall. */
    assert_true(fabs(kinetic[2] / kinetic[0] - 1.0) < 0.15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faces_are_blurred_like_the_particles), cmocka_unit_test(prediction_moves_density),
        cmocka_unit_test(correction_leaves_nothing_too_dense),  cmocka_unit_test(corrects_again_where_needed),
        cmocka_unit_test(threads_and_checkpoints_do_not_show),  cmocka_unit_test(other_ways_agree),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

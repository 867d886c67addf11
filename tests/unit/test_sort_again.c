/* Sorting again after small moves, by what is told to have changed: the same as a full sort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sanitized.h"
#include "sort_cases.h"
#include "step_cases.h"

static void expect_same(const sk_grid *a, const sk_particles *p, const sk_grid *b, const sk_particles *q)
{
    assert_int_equal(p->count, q->count);
    assert_memory_equal(p->records, q->records, (size_t)p->count * sizeof *p->records);
    assert_memory_equal(p->attributes[0].data, q->attributes[0].data, (size_t)p->count * 8);
    assert_int_equal(a->particle_blocks, b->particle_blocks);
    assert_int_equal(a->block_count, b->block_count);
    size_t starts = (size_t)a->particle_blocks * (size_t)a->block_cells + 1;
    assert_memory_equal(a->cell_start, b->cell_start, starts * sizeof *a->cell_start);
    assert_memory_equal(a->coordinates[1], b->coordinates[1], (size_t)(a->block_count - 1) * sizeof *a->coordinates);
    for (int slot = 1; slot < a->block_count; slot++)
        assert_memory_equal(a->neighbours[slot], b->neighbours[slot], (a->dimension == 3 ? 27 : 9) * sizeof(int32_t));
    assert_memory_equal(a->faces[1], b->faces[1], (size_t)(a->block_count - 1) * sizeof *a->faces);
}

/* Sorted, moved by up to `cells` cells, and sorted again: the short way and the full one agree to the bit. Small moves
 * take the short way, large ones and dead particles do not; a particle added in between must not be lost. With a drift
 * (cells along x in each round) the particles are a drop that leaves blocks empty and comes to others. */
static void sort_again_after(int dimension, double cells, double drift, int threads, int kill, int append)
{
    const int size[3] = {70, 50, dimension == 3 ? 40 : 1};
    sk_memory memory = {0};
    sk_grid grids[2];
    sk_particles particles[2];
    for (int way = 0; way < 2; way++) {
        memset(&grids[way], 0, sizeof grids[way]);
        make_grid(&grids[way], dimension, size, &memory);
        sk_particles_init(&particles[way], &memory);
        assert_non_null(sk_particles_add_attribute(&particles[way], "tag", 2, 1));
        add_cloud(&particles[way], &grids[way], 20000, 5);
        for (int64_t p = 0; drift > 0.0 && p < particles[way].count; p++)
            for (int d = 0; d < dimension; d++) {
                float *x = &particles[way].records[p].position[d];
                *x = (float)(grids[way].low[d] + 0.3 * (*x - grids[way].low[d]));
            }
        assert_int_equal(sort(&grids[way], &particles[way], threads, NULL), SELKIE_OK);
        const int blocks_before = grids[way].particle_blocks;
        int others = 0;
        for (int round = 0; round < (drift > 0.0 ? 12 : 3); round++) {
            for (int64_t p = 0; p < particles[way].count; p++)
                for (int d = 0; d < dimension; d++) {
                    sk_particle *particle = &particles[way].records[p];
                    double move = (2.0 * sk_random_float(77, particle->id, (uint64_t)(3 * round + d)) - 1.0) * cells *
                                  grids[way].cell_size;
                    double x = particle->position[d] + move + (d == 0 ? drift * grids[way].cell_size : 0.0);
                    particle->position[d] = (float)fmin(fmax(x, grids[way].low[d]), grids[way].high[d] - 1e-3);
                }
            if (kill)
                particles[way].records[17].flags |= SK_PARTICLE_DEAD;
            if (append)
                add_at_cell(&particles[way], &grids[way], 3.5, 3.5, 3.5);
            if (way)
                assert_int_equal(sort(&grids[way], &particles[way], 1, NULL), SELKIE_OK);
            else
                assert_int_equal(sort_again(&grids[way], &particles[way], threads, NULL), SELKIE_OK);
            others |= grids[way].particle_blocks != blocks_before;
        }
        assert_true(drift == 0.0 || others);
    }
    expect_same(&grids[0], &particles[0], &grids[1], &particles[1]);
    for (int way = 0; way < 2; way++) {
        sk_particles_free(&particles[way]);
        sk_grid_free(&grids[way]);
    }
    assert_int_equal(memory.used, 0);
}

static void sorting_again_is_the_same_as_sorting(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int threads = 1; threads <= 3; threads++) {
            sort_again_after(dimension, 0.0, 0.0, threads, 0, 0);
            sort_again_after(dimension, 0.3, 0.0, threads, 0, 0);
            sort_again_after(dimension, 9.0, 0.0, threads, 0, 0);
            sort_again_after(dimension, 0.3, 0.0, threads, 1, 0);
            sort_again_after(dimension, 0.3, 0.0, threads, 0, 1);
            sort_again_after(dimension, 0.2, 1.2, threads, 0, 0);
        }
}

/* Lone particles in the middle of their blocks, all but the last of which move to a corner within: their blocks are
 * touched, and those around are new; the last one's is as it was, unless there was no room for all the new ones. Then
 * whatever the blocks held is gone with the old arrays, and every block has to count as changed. */
static void changes_are_told(int dimension, int spare)
{
    const int size[3] = {512, 512, dimension == 3 ? 32 : 1};
    static uint64_t moved[512];
    sk_memory memory = {0};
    sk_grid grid;
    sk_particles particles;
    make_grid(&grid, dimension, size, &memory);
    sk_particles_init(&particles, &memory);
    const int n = grid.extent[0], p = SK_GRID_PADDING, far = n * (size[0] / n - 3);
    for (int j = 3 * n; j <= far; j += 3 * n)
        for (int i = 3 * n; i <= far; i += 3 * n)
            add_at_cell(&particles, &grid, i + n / 2 - p + 0.5, j + n / 2 - p + 0.5, n / 2 - p + 0.5);
    if (spare)
        assert_int_equal(sk_grid_reserve_blocks(&grid, 4096, NULL), SELKIE_OK);
    assert_int_equal(sort(&grid, &particles, 2, NULL), SELKIE_OK);
    const int blocks = grid.particle_blocks;
    assert_int_equal(blocks, particles.count);
    assert_in_range(blocks, 30, 511);
    for (int b = 1; b < blocks; b++)
        for (int d = 0; d < 2; d++)
            particles.records[b - 1].position[d] -= (float)((n / 2) * grid.cell_size);
    for (int b = 1; b <= blocks; b++)
        moved[b] = b < blocks;
    grid.moved = moved;
    const size_t room = grid.block_capacity;
    assert_int_equal(sort_again(&grid, &particles, 2, NULL), SELKIE_OK);
    assert_int_equal(grid.particle_blocks, blocks);
    assert_true(grid.block_count - 1 >= 4 * (blocks - 1));
    assert_int_equal(grid.block_capacity > room, !spare);
    assert_null(grid.moved);
    for (int b = 1; b < grid.block_count; b++)
        assert_int_equal(grid.changes[b], b < blocks || !spare ? SK_BLOCK_TOUCHED | SK_BLOCK_NEAR
                                          : b == blocks        ? 0
                                                               : SK_BLOCK_NEAR);
    sk_particles_free(&particles);
    sk_grid_free(&grid);
    assert_int_equal(memory.used, 0);
}

static void sorting_again_tells_what_changed(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int spare = 0; spare < 2; spare++)
            changes_are_told(dimension, spare);
}

/* A pool in which one place, beside where blocks meet, is squeezed to twice the density, at its first correction and at
 * the one after it, which is for the blocks around that place alone. The sorts after them are told who left, or look
 * for themselves. */
static void correct_twice(step_case *c, int dimension, int told)
{
    case_begin(c, dimension, 64, 24, 16, 1.0 / 16);
    c->scene.volume = SELKIE_VOLUME_IDP;
    c->scene.liquid_count = 1;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 64, 10, 16);
    case_create(c, 1 + told, 0.01);
    for (int64_t p = 0; p < c->step->particles.count; p++) {
        float *x = c->step->particles.records[p].position;
        if (fabsf(x[0] - 0.7f) < 0.4f)
            x[0] = 0.7f + 0.5f * (x[0] - 0.7f);
    }
    case_run_through(c, "density_correct");
    sk_grid *grid = &c->step->grid;
    for (int pass = 0; pass < 2; pass++) {
        int64_t left = 0;
        int moved = 0, blocks = grid->particle_blocks;
        assert_true(sk_grid_leavers_known(grid, &c->step->particles));
        for (int b = 1; b <= blocks; b++) {
            assert_true(grid->leavers[b] >= 0);
            left += grid->leavers[b];
            moved += pass && grid->runs[SK_RUNS_MOVED][b] != 0;
        }
        assert_true(left > 0);
        assert_true(pass ? moved > 0 && moved < blocks : moved == 0);
        if (!told)
            sk_particles_moved(&c->step->particles);
        const char *const next[] = {"sort_again", "solids_again", "density", "density_classify", "density_correct"};
        for (int n = 0; n < (pass ? 2 : 5); n++) {
            selkie_error error = {0};
            assert_int_equal(case_run(c, next[n], &error), SELKIE_OK);
        }
    }
}

static void sorting_as_told_is_the_same_as_looking(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        step_case c[2];
        for (int told = 0; told < 2; told++)
            correct_twice(&c[told], dimension, told);
        const sk_grid *a = &c[0].step->grid, *b = &c[1].step->grid;
        assert_int_equal(c[0].step->particles.count, c[1].step->particles.count);
        assert_int_equal(a->particle_blocks, b->particle_blocks);
        assert_memory_equal(c[0].step->particles.records, c[1].step->particles.records,
                            (size_t)c[0].step->particles.count * sizeof(sk_particle));
        assert_memory_equal(a->cell_start, b->cell_start,
                            ((size_t)a->particle_blocks * (size_t)a->block_cells + 1) * sizeof *a->cell_start);
        assert_memory_equal(a->occupied, b->occupied, ((size_t)a->particle_blocks + 1) * sizeof *a->occupied);
        case_end(&c[0]);
        case_end(&c[1]);
    }
}

/* --- whole steps --- */

static selkie_code sort_fully(sk_step *step, selkie_error *error)
{
    return sort(&step->grid, &step->particles, step->threads, error);
}

typedef struct told_case {
    const char *name;
    selkie_method method;
    selkie_volume volume;
    int unilateral, obstacle, flow, pool;
    int steps[2]; /* in 2D, in 3D */
} told_case;

/* Two columns that meet; with a `flow` of 1 there are a source and a drain, with 2 an open side, too. Every sort of the
 * full way is a full one, and so every block counts as changed after it. */
static void make_told(step_case *c, const told_case *told, int dimension, int full)
{
    static selkie_source_def source;
    static selkie_drain_def drain;
    case_begin(c, dimension, told->pool ? 160 : 48, 40, dimension == 3 ? 8 : 1, 1.0 / 16);
    selkie_scene_set_method(&c->scene, told->method);
    c->scene.volume = told->volume;
    if (told->unilateral)
        c->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    c->scene.liquid_count = 2;
    case_box(c, &c->liquids[0].shape, 0, 0, 0, 10, 24, 8);
    case_box(c, &c->liquids[1].shape, 38, 0, 0, 48, 24, 8);
    if (told->pool) {
        c->scene.liquid_count = 1;
        case_box(c, &c->liquids[0].shape, 0, 0, 0, 160, 20, 8);
    }
    if (told->obstacle) {
        c->scene.obstacle_count = 1;
        case_ball(c, &c->obstacles[0].shape, 16, 4, 4, 3.3);
        c->obstacles[0].velocity[0] = 0.5;
    }
    if (told->flow) {
        selkie_source_defaults(&source);
        case_box(c, &source.shape, 20, 30, 2, 26, 33, 8);
        source.velocity[1] = -2.0;
        selkie_drain_defaults(&drain);
        case_box(c, &drain.shape, 0, 0, 0, 4, 3, 8);
        source.end = 0.1; /* what it adds has all sorts be full ones, and what leaves by an open side, too */
        drain.start = 0.2;
        c->scene.source_count = c->scene.drain_count = 1;
        c->scene.sources = &source;
        c->scene.drains = &drain;
        if (told->flow > 1)
            c->scene.domain.walls[1] = SELKIE_WALL_OPEN;
    }
    c->scene.time.step = told->method == SELKIE_METHOD_SPH ? 0.004 : 0.02;
    c->scene.time.fps = 10.0;
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = 2;
    selkie_error error = {0};
    if (selkie_world_create(&c->scene, &options, &c->world, &error) != SELKIE_OK)
        fail_msg("%s: %s", told->name, error.message);
    c->step = &c->world->step;
    for (int p = 0; full && p < c->world->phase_count; p++)
        if (strncmp(c->world->phases[p].name, "sort", 4) == 0)
            c->world->phases[p].run = sort_fully;
}

/* Some particles are put elsewhere by the caller, as it may between steps; in a pool they are squeezed, so that a few
 * blocks need further corrections and most do not. */
static void put_elsewhere(step_case *c, int pool)
{
    selkie_attribute_view view;
    assert_int_equal(selkie_world_find_attribute(c->world, "position", &view, NULL), SELKIE_OK);
    const int64_t count = selkie_world_particle_count(c->world);
    for (int64_t p = 0; pool && p < count; p++) {
        float *x = (float *)((char *)view.data + (size_t)p * view.stride);
        if (fabsf(x[0] - 1.4f) < 0.4f)
            x[0] = 1.4f + 0.5f * (x[0] - 1.4f);
    }
    for (int64_t p = count / 5; !pool && p < count / 5 + 40; p++) {
        float *x = (float *)((char *)view.data + (size_t)p * view.stride);
        x[0] = 1.2f + 0.01f * (float)(p % 40);
        x[1] = 2.0f;
    }
}

static void steps_as_told_are_the_same_as_with_full_sorts(void **state)
{
    (void)state;
    static const told_case cases[] = {
        {"flip", SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 0, 0, 1, 0, {20, 10}},
        {"apic and idp", SELKIE_METHOD_APIC, SELKIE_VOLUME_IDP, 0, 0, 0, 0, {30, 16}},
        {"a squeezed pool", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0, 0, 0, 1, {4, 3}},
        {"idp with flow", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0, 0, 2, 0, {20, 0}},
        {"idp with an obstacle", SELKIE_METHOD_FLIP, SELKIE_VOLUME_IDP, 0, 1, 0, 0, {20, 0}},
        {"spacing", SELKIE_METHOD_FLIP, SELKIE_VOLUME_SATO, 0, 0, 0, 0, {10, 0}},
        {"unilateral", SELKIE_METHOD_FLIP, SELKIE_VOLUME_NONE, 1, 1, 2, 0, {16, 0}},
        {"sph", SELKIE_METHOD_SPH, SELKIE_VOLUME_NONE, 0, 0, 0, 0, {20, 0}},
    };
    for (int dimension = 2; dimension <= 3; dimension++)
        for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
            step_case c[2];
            const int asked = cases[n].steps[dimension - 2], steps = SANITIZED && asked > 9 ? 9 : asked;
            int most = 0;
            if (steps == 0)
                continue;
            for (int full = 0; full < 2; full++)
                make_told(&c[full], &cases[n], dimension, full);
            for (int step = 0; step < steps; step++)
                for (int full = 0; full < 2; full++) {
                    selkie_error error = {0};
                    if (step == (cases[n].pool ? 1 : 7))
                        put_elsewhere(&c[full], cases[n].pool);
                    if (selkie_world_step(c[full].world, &error) != SELKIE_OK)
                        fail_msg("%s, %dD: %s", cases[n].name, dimension, error.message);
                    if (c[full].step->density_passes > most)
                        most = c[full].step->density_passes;
                    const sk_particles *a = &c[0].step->particles, *b = &c[1].step->particles;
                    if (full && (a->count != b->count ||
                                 memcmp(a->records, b->records, (size_t)a->count * sizeof *a->records) != 0))
                        fail_msg("%s, %dD: other particles after step %d", cases[n].name, dimension, step + 1);
                }
            assert_true(most > 1 || !cases[n].pool); /* some corrections were local */
            case_end(&c[0]);
            case_end(&c[1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_again_is_the_same_as_sorting),
        cmocka_unit_test(sorting_again_tells_what_changed),
        cmocka_unit_test(sorting_as_told_is_the_same_as_looking),
        cmocka_unit_test(steps_as_told_are_the_same_as_with_full_sorts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

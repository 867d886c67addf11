/* Probes that look for the liquid's surface, of type height and level, on liquids whose surface is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <selkie/selkie.h>
#include "world/world_internal.h"

enum { CELLS = 16, MOST_PROBES = CELLS * CELLS + 1 };

static const double h = 1.0 / CELLS; /* m, of a domain of one metre a side */

typedef struct pool_case {
    selkie_scene scene;
    selkie_liquid_def liquids[1];
    selkie_obstacle_def obstacles[2];
    selkie_probe_def probes[MOST_PROBES];
} pool_case;

static void set3(double to[3], double x, double y, double z)
{
    to[0] = x, to[1] = y, to[2] = z;
}

static void make_box(selkie_shape *shape, const double low[3], const double high[3])
{
    selkie_shape_defaults(shape, SELKIE_SHAPE_BOX);
    memcpy(shape->min, low, sizeof shape->min);
    memcpy(shape->max, high, sizeof shape->max);
}

/* Liquid on a lattice in a box from corner to corner of the domain but `depth` high along y, and one level probe of all
 * of it. */
static void pool(pool_case *c, int dimension, double depth)
{
    memset(c, 0, sizeof *c);
    selkie_scene *scene = &c->scene;
    selkie_scene_defaults(scene);
    scene->volume = SELKIE_VOLUME_NONE;
    scene->domain.dimension = dimension;
    set3(scene->domain.size, 1, 1, 1);
    scene->domain.cell_size = h;
    scene->particles.arrangement = SELKIE_ARRANGEMENT_LATTICE;
    scene->particles.per_cell = dimension == 2 ? 16 : 64; /* four layers a cell */
    selkie_liquid_defaults(&c->liquids[0]);
    make_box(&c->liquids[0].shape, (double[3]){0, 0, 0}, (double[3]){1, depth, 1});
    scene->liquids = c->liquids;
    scene->liquid_count = 1;
    scene->obstacles = c->obstacles;
    scene->probes = c->probes;
    scene->probe_count = 1;
    selkie_probe_defaults(&c->probes[0]);
    c->probes[0].name = "level";
    c->probes[0].kind = SELKIE_PROBE_LEVEL;
}

static void add_block(pool_case *c, const double low[3], const double high[3])
{
    selkie_obstacle_def *obstacle = &c->obstacles[c->scene.obstacle_count++];
    selkie_obstacle_defaults(obstacle);
    make_box(&obstacle->shape, low, high);
}

static selkie_world *create(const pool_case *c, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world;
    selkie_error error = {0};
    if (selkie_world_create(&c->scene, &options, &world, &error) != SELKIE_OK)
        fail_msg("%s", error.message);
    return world;
}

/* The value of the only probe at the start. */
static double level(const pool_case *c)
{
    selkie_world *world = create(c, 2);
    double value = selkie_world_probe_value(world, 0);
    selkie_world_destroy(world);
    return value;
}

#define near(value, expected, bound)                                                                                   \
    do {                                                                                                               \
        double value_ = (value), expected_ = (expected);                                                               \
        if (!(fabs(value_ - expected_) <= (bound)))                                                                    \
            fail_msg("%s:%d: %s is %.6f, not %.6f", __FILE__, __LINE__, #value, value_, expected_);                    \
    } while (0)

/* The kernel is linear and the lattice even: a level surface is found to rounding, be it a film, less than a cell and a
 * half deep, where the floor takes part, or anything above. */
static void a_flat_pool_has_its_depth(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int quarter = 1; quarter < 4 * CELLS; quarter += quarter < 10 ? 1 : 9) {
            pool_case c;
            double depth = 0.25 * h * quarter;
            pool(&c, dimension, depth);
            near(level(&c), depth, 1e-5 * h);
        }
}

/* Up along every axis, both ways; the liquid lies at the low end of it, and stands a different way from the origin each
 * time. */
static void up_may_be_any_way(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int axis = 0; axis < dimension; axis++)
            for (int sign = -1; sign <= 1; sign += 2) {
                pool_case c;
                pool(&c, dimension, 1);
                set3(c.scene.gravity, 0, 0, 0);
                c.scene.gravity[axis] = -9.81 * sign;
                set3(c.scene.domain.size, 1, 0.75, 0.5);
                double *low = c.liquids[0].shape.min, *high = c.liquids[0].shape.max;
                memcpy(high, c.scene.domain.size, sizeof c.liquids[0].shape.max);
                *(sign > 0 ? &high[axis] : &low[axis]) = sign > 0 ? 0.25 : high[axis] - 0.25;
                for (int d = 0; d < 3; d++) {
                    c.scene.domain.origin[d] = 3.0 - d;
                    low[d] += c.scene.domain.origin[d];
                    high[d] += c.scene.domain.origin[d];
                }
                near(level(&c), 0.25, 1e-4 * h);
            }
}

/* The mean of level + amplitude cos(k x + k z) over the area, from its integral. */
static double wave_mean(double base, double amplitude, double k, int dimension, const double low[3],
                        const double high[3])
{
    double x = k * (high[0] - low[0]), z = k * (high[2] - low[2]);
    if (dimension == 2)
        return base + amplitude * (sin(k * high[0]) - sin(k * low[0])) / x;
    return base - amplitude *
                      (cos(k * (high[0] + high[2])) - cos(k * (high[0] + low[2])) - cos(k * (low[0] + high[2])) +
                       cos(k * (low[0] + low[2]))) /
                      (x * z);
}

/* Waves two cells high: their mean, over everything and over parts of it, which need not begin and end between cells.
 * Particles stand in layers a quarter of a cell apart, of which a column takes off half a layer at most, and the mean
 * of many much less. */
static void a_wave_has_its_mean(void **state)
{
    (void)state;
    static const double parts[][4] = {{0, 1, 0, 1}, {0, 0.5, 0, 0.5}, {0.3, 0.71, 0.55, 0.9}, {0.515, 0.54, 0.2, 0.23}};
    const double base = 0.45, amplitude = 2 * h, k = 3.0;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            pool_case c;
            pool(&c, dimension, 1);
            selkie_shape_defaults(&c.liquids[0].shape, SELKIE_SHAPE_WAVE);
            c.liquids[0].shape.level = base;
            c.liquids[0].shape.amplitude = amplitude;
            set3(c.liquids[0].shape.wave_number, k, 0, dimension == 3 ? k : 0);
            double low[3] = {parts[p][0], 0, parts[p][2]}, high[3] = {parts[p][1], 0, parts[p][3]};
            if (p) {
                memcpy(c.probes[0].min, low, sizeof low);
                memcpy(c.probes[0].max, high, sizeof high);
            }
            near(level(&c), wave_mean(base, amplitude, k, dimension, low, high), (p == 3 ? 0.125 : 0.02) * h);
        }
}

/* A step of the surface: each side has its level, and an area that is wider than the domain along one axis is cut. */
static void an_area_has_its_own_level(void **state)
{
    (void)state;
    pool_case c;
    pool(&c, 3, 0.5);
    c.liquids[0].shape.max[0] = 0.5;
    set3(c.probes[0].max, 0.5 - 2 * h, 0, 9);
    near(level(&c), 0.5, 1e-5 * h);
    set3(c.probes[0].min, 0.5 + 2 * h, -7, -9);
    set3(c.probes[0].max, 2, -8, 9); /* what they say along up does not matter */
    near(level(&c), 0, 1e-5 * h);
    /* As wide as the domain along x, where both are 0. The columns beside the edge see too little or too much, by a
     * fraction that is the same for all depths. */
    set3(c.probes[0].min, 0, 0, 0.25);
    set3(c.probes[0].max, 0, 0, 0.75);
    near(level(&c), 0.25, 0.02);
}

/* What is measured is what probes of type height over the middles of all cells read. */
static void a_level_is_the_mean_of_heights(void **state)
{
    (void)state;
    pool_case c;
    pool(&c, 3, 0.5);
    c.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
    c.scene.particles.per_cell = 8;
    set3(c.liquids[0].shape.max, 0.4, 0.7, 0.6);
    for (int p = 1; p < MOST_PROBES; p++) {
        static char names[MOST_PROBES][8];
        snprintf(names[p], sizeof names[p], "h%d", p);
        selkie_probe_defaults(&c.probes[p]);
        c.probes[p].name = names[p];
        c.probes[p].kind = SELKIE_PROBE_HEIGHT;
        set3(c.probes[p].at, ((p - 1) % CELLS + 0.5) * h, 0, ((p - 1) / CELLS + 0.5) * h);
    }
    c.scene.probe_count = MOST_PROBES;
    selkie_world *world = create(&c, 1);
    selkie_error error = {0};
    for (int s = 0; s < 12; s++) {
        double sum = 0;
        for (int p = 1; p < MOST_PROBES; p++)
            sum += selkie_world_probe_value(world, p);
        near(selkie_world_probe_value(world, 0), sum / (MOST_PROBES - 1), 1e-4 * h);
        assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
    }
    selkie_world_destroy(world);
}

/* A pillar, a block on the floor, one under the surface: columns that they end are left out, the others keep their
 * level. */
static void obstacles_are_left_out(void **state)
{
    (void)state;
    static const double blocks[][2][3] = {
        {{0.25, 0, 0.25}, {0.5, 1, 0.5}},           /* a pillar */
        {{0.25, 0, 0.25}, {0.5, 0.25, 0.5}},        /* on the floor, under water */
        {{0.25, 0.1875, 0.25}, {0.5, 0.4375, 0.5}}, /* under water */
        {{0.25, 0.25, 0.25}, {0.5, 0.75, 0.5}}      /* swims, as it were */
    };
    for (int dimension = 2; dimension <= 3; dimension++)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
            pool_case c;
            pool(&c, dimension, 0.5);
            add_block(&c, blocks[b][0], blocks[b][1]);
            /* Shares of the kernel in solids come from distances sampled every half cell. */
            near(level(&c), 0.5, 0.005 * h);
        }
    pool_case c;
    pool(&c, 3, 0.5);
    add_block(&c, (double[3]){-1, -1, -1}, (double[3]){0.5, 0.25, 2});
    set3(c.probes[0].max, 0.5, 0, 1);
    assert_true(isnan(level(&c))); /* the block takes all of the area */
}

/* A probe on the floor under a block, as a gauge over a weir, shows the height of the surface above the block, to
 * rounding; over a dry block, that of its top. */
static void a_height_over_a_block_is_that_of_the_surface(void **state)
{
    (void)state;
    const double tops[] = {4.0, 4.5, 5.25}, depths[] = {8.0, 2.0, 0.25};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int t = 0; t < 3; t++)
            for (int d = 0; d < 3; d++) {
                pool_case c;
                pool(&c, dimension, (tops[t] + depths[d]) * h);
                add_block(&c, (double[3]){0, -1, 0}, (double[3]){1, tops[t] * h, 1});
                c.probes[0].kind = SELKIE_PROBE_HEIGHT;
                set3(c.probes[0].at, 0.5, 0, 0.5);
                near(level(&c), (tops[t] + depths[d]) * h, 1e-5 * h);
            }
}

/* The same bits on any number of threads, also where there are more of them than columns. */
static void threads_do_not_matter(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        pool_case c;
        pool(&c, dimension, 0.6);
        c.scene.particles.per_cell = dimension == 2 ? 4 : 8;
        c.liquids[0].shape.max[0] = 0.4;
        c.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
        selkie_world *worlds[] = {create(&c, 1), create(&c, 3), create(&c, 2 * CELLS)};
        selkie_error error = {0};
        for (int s = 0; s < 6; s++) {
            double first = selkie_world_probe_value(worlds[0], 0);
            for (int w = 0; w < 3; w++) {
                assert_true(selkie_world_probe_value(worlds[w], 0) == first && first > 0.1 && first < 0.6);
                assert_int_equal(selkie_world_step(worlds[w], &error), SELKIE_OK);
            }
        }
        for (int w = 0; w < 3; w++)
            selkie_world_destroy(worlds[w]);
    }
}

/* Liquid that falls and runs out: the values taken while particles move are those of all particles after the step. Only
 * the level counts cells deep inside the liquid as full, so it may differ a little. */
static void moving_particles_have_the_values_of_all(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 12; threads += 11) { /* more than there are parts of the sums */
        pool_case c;
        pool(&c, 3, 0.9);
        set3(c.scene.domain.size, 2, 2, 1);
        c.scene.particles.per_cell = 8;
        c.scene.particles.arrangement = SELKIE_ARRANGEMENT_JITTERED;
        c.scene.probe_count = 3;
        for (int p = 1; p < 3; p++)
            selkie_probe_defaults(&c.probes[p]);
        c.probes[1].name = "height", c.probes[1].kind = SELKIE_PROBE_HEIGHT;
        set3(c.probes[1].at, 0.6, 0, 0.5);
        c.probes[2].name = "front", c.probes[2].kind = SELKIE_PROBE_FRONT;
        selkie_world *world = create(&c, threads);
        selkie_error error = {0};
        double most = 0.0;
        int deep = 0;
        for (int s = 0; s < 30; s++) {
            assert_int_equal(selkie_world_step(world, &error), SELKIE_OK);
            const double values[3] = {selkie_world_probe_value(world, 0), selkie_world_probe_value(world, 1),
                                      selkie_world_probe_value(world, 2)};
            for (int b = 1; b <= world->step.grid.particle_blocks; b++)
                deep |= sk_deep_rows(&world->probes.columns.deep, b) != 0;
            sk_probes_measure(&world->probes, &world->step, 0.0); /* of all particles */
            most = fmax(most, fabs(values[0] - selkie_world_probe_value(world, 0)));
            assert_true(values[1] == selkie_world_probe_value(world, 1));
            assert_true(values[2] == selkie_world_probe_value(world, 2));
        }
        assert_true(deep);
        assert_true(most < 0.02 * h);
        selkie_world_destroy(world);
    }
}

/* A pool in the corner of a wide domain: its columns are more than the whole numbers that a float has. */
static void wide_domains_have_heights(void **state)
{
    (void)state;
    pool_case c;
    const double side = 2100 * h, at = side - 4 * h;
    pool(&c, 3, 0.5);
    set3(c.scene.domain.size, side, 1, side);
    c.scene.particles.per_cell = 8;
    make_box(&c.liquids[0].shape, (double[3]){side - 8 * h, 0, side - 8 * h}, (double[3]){side, 0.5, side});
    c.probes[0].kind = SELKIE_PROBE_HEIGHT;
    c.probes[0].name = "height";
    set3(c.probes[0].at, at, 0, at);
    near(level(&c), 0.5, 0.5 * h); /* two layers of particles a cell */
}

static void sph_has_levels_too(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        pool_case c;
        pool(&c, dimension, 0.5);
        selkie_scene_set_method(&c.scene, SELKIE_METHOD_SPH);
        c.scene.particles.per_cell = dimension == 2 ? 4 : 8;
        near(level(&c), 0.5, 1e-5 * h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_pool_has_its_depth),
        cmocka_unit_test(up_may_be_any_way),
        cmocka_unit_test(a_wave_has_its_mean),
        cmocka_unit_test(an_area_has_its_own_level),
        cmocka_unit_test(a_level_is_the_mean_of_heights),
        cmocka_unit_test(obstacles_are_left_out),
        cmocka_unit_test(a_height_over_a_block_is_that_of_the_surface),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(moving_particles_have_the_values_of_all),
        cmocka_unit_test(wide_domains_have_heights),
        cmocka_unit_test(sph_has_levels_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

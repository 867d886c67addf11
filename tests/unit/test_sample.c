/* Liquids to particles: by cells, by count, and inside obstacles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <selkie/selkie.h>

#include "particles/store.h"

static void make_scene(selkie_scene *scene, selkie_liquid_def *liquid, int dimension)
{
    selkie_scene_defaults(scene);
    scene->idp.settle = 0; /* what was sampled, not what a correction makes of it */
    selkie_liquid_defaults(liquid);
    scene->domain.dimension = dimension;
    for (int d = 0; d < 3; d++)
        scene->domain.size[d] = 1;
    scene->domain.resolution = 16;
    selkie_shape_defaults(&liquid->shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 3; d++)
        liquid->shape.max[d] = d == 1 ? 0.5 : 1;
    scene->liquid_count = 1;
    scene->liquids = liquid;
}

static const sk_particle *particles_of(const selkie_world *world)
{
    selkie_attribute_view view;
    assert_int_equal(selkie_world_find_attribute(world, "position", &view, NULL), SELKIE_OK);
    return (const sk_particle *)view.data;
}

static selkie_world *make_world(const selkie_scene *scene, int threads)
{
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    if (selkie_world_create(scene, &options, &world, &error))
        fail_msg("%s", error.message);
    selkie_plan plan;
    assert_int_equal(selkie_scene_plan(scene, &options, &plan, &error), SELKIE_OK);
    assert_int_equal(plan.particles, selkie_world_particle_count(world));
    return world;
}

static int same_particles(const selkie_world *a, const selkie_world *b)
{
    int64_t count = selkie_world_particle_count(a);
    return count == selkie_world_particle_count(b) &&
           !memcmp(particles_of(a), particles_of(b), (size_t)count * sizeof(sk_particle));
}

static void a_count_is_kept_exactly(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        selkie_scene scene;
        selkie_liquid_def liquid;
        make_scene(&scene, &liquid, dimension);
        /* All in one cell. */
        for (int d = 0; d < 3; d++) {
            liquid.shape.min[d] = 0.5;
            liquid.shape.max[d] = 0.5625;
        }
        liquid.count = 12345;
        liquid.velocity[0] = 2;
        selkie_world *one = make_world(&scene, 1), *two = make_world(&scene, 3);
        assert_int_equal(selkie_world_particle_count(one), 12345);
        assert_true(same_particles(one, two));
        double mean[3] = {0, 0, 0};
        const sk_particle *particles = particles_of(one);
        unsigned char *seen = calloc(12345, 1);
        for (int i = 0; i < 12345; i++) {
            for (int d = 0; d < dimension; d++) {
                assert_true(particles[i].position[d] >= 0.5f && particles[i].position[d] <= 0.5625f);
                mean[d] += particles[i].position[d] / 12345;
            }
            assert_float_equal(particles[i].velocity[0], 2, 0);
            assert_true(particles[i].id < 12345 && !seen[particles[i].id]);
            seen[particles[i].id] = 1;
        }
        for (int d = 0; d < dimension; d++)
            assert_float_equal(mean[d], 0.53125, 5 * 0.0625 / sqrt(12.0 * 12345));
        free(seen);
        selkie_world_destroy(one);
        selkie_world_destroy(two);
    }
}

static void counted_liquids_stand_beside_others(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquids[2];
    make_scene(&scene, &liquids[0], 2);
    selkie_liquid_defaults(&liquids[1]);
    selkie_shape_defaults(&liquids[1].shape, SELKIE_SHAPE_SPHERE);
    liquids[1].shape.center[0] = 0.5;
    liquids[1].shape.center[1] = 0.75;
    liquids[1].shape.radius = 0.125;
    liquids[1].count = 100;
    scene.liquids = liquids;
    scene.liquid_count = 2;
    selkie_world *world = make_world(&scene, 2);
    assert_int_equal(selkie_world_particle_count(world), 16 * 8 * 9 + 100);
    int inside = 0;
    for (int64_t i = 0; i < selkie_world_particle_count(world); i++) {
        const sk_particle *particle = &particles_of(world)[i];
        inside += hypot(particle->position[0] - 0.5, particle->position[1] - 0.75) <= 0.125001;
    }
    assert_int_equal(inside, 100);
    selkie_world_destroy(world);
}

static void obstacles_are_filled_where_asked(void **state)
{
    (void)state;
    for (int counted = 0; counted < 2; counted++) {
        selkie_scene scene;
        selkie_liquid_def liquid;
        make_scene(&scene, &liquid, 2);
        selkie_obstacle_def obstacle;
        selkie_obstacle_defaults(&obstacle);
        selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_SPHERE);
        obstacle.shape.center[0] = 0.5;
        obstacle.shape.center[1] = 0.25;
        obstacle.shape.radius = 0.2;
        scene.obstacles = &obstacle;
        scene.obstacle_count = 1;
        liquid.count = counted ? 1000 : 0;
        for (int fill = 0; fill < 2; fill++) {
            liquid.fill_obstacles = fill;
            selkie_world *world = make_world(&scene, 2);
            int64_t count = selkie_world_particle_count(world);
            int inside = 0;
            for (int64_t i = 0; i < count; i++) {
                const sk_particle *particle = &particles_of(world)[i];
                inside += hypot(particle->position[0] - 0.5, particle->position[1] - 0.25) < 0.2;
            }
            assert_true(fill ? inside > 200 : inside == 0);
            if (counted)
                assert_int_equal(count, 1000);
            else if (fill)
                assert_int_equal(count, 16 * 8 * 9);
            else
                assert_float_equal((double)count, 16 * 16 * 9 * (0.5 - 3.14159265 * 0.04), 30);
            selkie_world_destroy(world);
        }
    }
}

static void a_shape_without_room_is_refused(void **state)
{
    (void)state;
    selkie_scene scene;
    selkie_liquid_def liquid;
    make_scene(&scene, &liquid, 2);
    liquid.count = 10;
    selkie_obstacle_def obstacle;
    selkie_obstacle_defaults(&obstacle);
    selkie_shape_defaults(&obstacle.shape, SELKIE_SHAPE_BOX);
    for (int d = 0; d < 3; d++) {
        obstacle.shape.min[d] = -1;
        obstacle.shape.max[d] = 2;
    }
    scene.obstacles = &obstacle;
    scene.obstacle_count = 1;
    selkie_world *world = NULL;
    selkie_error error = {0};
    assert_int_equal(selkie_world_create(&scene, NULL, &world, &error), SELKIE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "liquids[0]"));
    selkie_plan plan;
    assert_int_equal(selkie_scene_plan(&scene, NULL, &plan, &error), SELKIE_ERROR_INPUT);
}

/* How far a jittered particle is from the centre of its sub-cell along an axis, in sub-cells, at most. */
static double farthest_from_centres(const selkie_world *world, double sub_cells)
{
    double most = 0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        for (int d = 0; d < 2; d++) {
            double place = (double)particles_of(world)[p].position[d] * sub_cells;
            most = fmax(most, fabs(place - floor(place) - 0.5));
        }
    return most;
}

/* particles.jitter is the part of a sub-cell that particles may be in: with thousands of them some come within a
 * hundredth of its ends, and none beyond but for rounding to floats. 0 makes the lattice. */
static void jitter_is_part_of_a_sub_cell(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const double jitters[] = {0, 0.25, 0.5, 1}, sub_cells = 16 * (dimension == 2 ? 3 : 2);
        for (int n = 0; n < 4; n++) {
            selkie_scene scene;
            selkie_liquid_def liquid;
            make_scene(&scene, &liquid, dimension);
            if (jitters[n] != 0.5) /* the default */
                scene.particles.jitter = jitters[n];
            selkie_world *world = make_world(&scene, 1);
            double most = farthest_from_centres(world, sub_cells);
            assert_true(most <= 0.5 * jitters[n] + 1e-4 && most >= 0.99 * 0.5 * jitters[n]);
            selkie_world_destroy(world);
        }
    }
}

/* The lowest particle along an axis, m. */
static double lowest_along(const selkie_world *world, int axis)
{
    double least = INFINITY;
    const sk_particle *particles = particles_of(world);
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        least = fmin(least, (double)particles[p].position[axis]);
    return least;
}

/* SPH between obstacles that lie anywhere in the cells: the first row stands half a spacing from the floor and from the
 * left wall. Where two boxes ask for different places, the lattice stays where it is. */
static void a_lattice_fits_obstacles(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const double spacing = 1.0 / 32, low[3] = {0.18, 0.13, 0.11};
        selkie_scene scene;
        selkie_liquid_def liquids[2];
        selkie_obstacle_def walls[3];
        make_scene(&scene, &liquids[0], dimension);
        selkie_scene_set_method(&scene, SELKIE_METHOD_SPH);
        scene.volume = SELKIE_VOLUME_AUTO;
        for (int d = 0; d < 3; d++) {
            selkie_obstacle_defaults(&walls[d]);
            selkie_shape_defaults(&walls[d].shape, SELKIE_SHAPE_BOX);
            for (int e = 0; e < 3; e++)
                walls[d].shape.min[e] = -1, walls[d].shape.max[e] = e == d ? low[d] : 2;
            liquids[0].shape.min[d] = low[d];
            liquids[0].shape.max[d] = 0.7;
        }
        scene.obstacle_count = dimension;
        scene.obstacles = walls;
        selkie_world *world = make_world(&scene, 1);
        /* The relaxation of the start moves the first row by less than a twentieth of a spacing. */
        for (int d = 0; d < dimension; d++)
            assert_true(fabs(lowest_along(world, d) - low[d] - 0.5 * spacing) < 0.05 * spacing);
        selkie_world_destroy(world);

        /* A box elsewhere that stands on another obstacle, or at a side of the domain. */
        liquids[1] = liquids[0];
        liquids[1].shape.min[0] = 0.75;
        liquids[1].shape.max[0] = 1.0;
        scene.liquids = liquids;
        scene.liquid_count = 2;
        world = make_world(&scene, 1);
        assert_true(lowest_along(world, 0) - low[0] - 0.5 * spacing > 0.05 * spacing);
        assert_true(fabs(lowest_along(world, 1) - low[1] - 0.5 * spacing) < 0.05 * spacing);
        selkie_world_destroy(world);
    }
}

/* Adds a particle to the quarters of the tank, those within half a cell of a border in parts to both: the surface is
 * where kernels of that width see it. */
static void count_in_quarters(double x, double parts[4])
{
    const int part = (int)(x * 4);
    const double to_border = x * 16 - 4 * round(x * 4); /* cells */
    const int border = (int)round(x * 4), inner = border > 0 && border < 4 && fabs(to_border) < 0.5;
    parts[inner ? border : part] += inner ? 0.5 + to_border : 1.0;
    parts[inner ? border - 1 : part] += inner ? 0.5 - to_border : 0.0;
}

/* A level between layers of sub-cells: the number of particles is that of the volume to one in a thousand, and no part
 * of the surface has two more than its share. With lots, a part of four cells missed its share by up to six. */
static void a_level_between_layers_is_even(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int eighth = 1; eighth < 8; eighth++) {
            selkie_scene scene;
            selkie_liquid_def liquid;
            make_scene(&scene, &liquid, dimension);
            liquid.shape.max[1] = (8 + eighth / 8.0) / 16;
            selkie_world *world = make_world(&scene, 1);
            const int64_t count = selkie_world_particle_count(world);
            const double per_column = (8 + eighth / 8.0) * (dimension == 2 ? 9 : 8 * 16);
            const sk_particle *particles = particles_of(world);
            double parts[4] = {0, 0, 0, 0};
            for (int64_t p = 0; p < count; p++) {
                count_in_quarters(particles[p].position[0], parts);
                assert_true(particles[p].position[1] <= liquid.shape.max[1]);
            }
            assert_true(fabs((double)count / (16 * per_column) - 1) < 1e-3);
            for (int part = 0; part < 4; part++)
                assert_true(fabs(parts[part] - 4 * per_column) < (dimension == 2 ? 2 : 6));
            selkie_world_destroy(world);
        }
}

/* Columns of the surface weigh the same, as kernels of a cell's width see them: the weight of the last two cells below
 * the level, less with the depth, is off by at most 3.4 %, a level that is uneven by 0.034 cells in a single column.
 * With places in their sub-cells alone it was off by 10 %, and the waves that this makes moved for ever. A ball at the
 * floor changes nothing: rows beside the walls are rows there too. */
static void a_level_surface_is_even(void **state)
{
    (void)state;
    double most = 0.0;
    for (int n = 0; n < 16; n++) {
        const int eighth = n % 8;
        selkie_scene scene;
        selkie_liquid_def liquid;
        selkie_obstacle_def ball;
        double columns[18] = {0};
        make_scene(&scene, &liquid, 2);
        selkie_obstacle_defaults(&ball);
        selkie_shape_defaults(&ball.shape, SELKIE_SHAPE_SPHERE);
        ball.shape.center[0] = 0.5;
        ball.shape.center[1] = 0.15;
        ball.shape.radius = 0.1;
        scene.obstacles = &ball;
        scene.obstacle_count = n / 8;
        liquid.shape.max[1] = (8 + eighth / 8.0) / 16;
        selkie_world *world = make_world(&scene, 1);
        const sk_particle *particles = particles_of(world);
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const double depth = 8 + eighth / 8.0 - 16 * (double)particles[p].position[1];
            const double place = 16 * (double)particles[p].position[0] + 0.5, part = place - floor(place);
            const double weight = fmax(1.0 - 0.5 * depth, 0.0) / 9.0;
            columns[(int)place] += (1.0 - part) * weight;
            columns[(int)place + 1] += part * weight;
        }
        columns[1] += columns[0]; /* kernels are folded at the walls */
        columns[16] += columns[17];
        for (int column = 1; column <= 16; column++)
            most = fmax(most, fabs(columns[column] - 1.0));
        selkie_world_destroy(world);
    }
    assert_true(most < 0.04);
}

/* Boxes have the particles of their volume, whatever their sides and wherever another one stands: rows below a level
 * surface take none from it, and lose none where a place falls on the border of a sub-cell. Sides that cut sub-cells
 * may round by one particle a side. */
static void boxes_have_their_volume(void **state)
{
    (void)state;
    static const double heights[] = {0.39, 0.4, 0.404, 0.5}, gaps[] = {1.1, 2.0, 4.0, 8.0, 12.0};
    for (int n = 0; n < 20; n++) {
        selkie_scene scene;
        selkie_liquid_def liquids[2];
        const double height = heights[n / 5], left = 0.3, right = left + gaps[n % 5] / 32;
        make_scene(&scene, &liquids[0], 2);
        selkie_liquid_defaults(&liquids[1]);
        selkie_shape_defaults(&liquids[1].shape, SELKIE_SHAPE_BOX);
        scene.domain.cell_size = 1.0 / 32;
        scene.liquids = liquids;
        scene.liquid_count = 2;
        for (int d = 0; d < 2; d++)
            liquids[0].shape.min[d] = liquids[1].shape.min[d] = 0.0;
        liquids[0].shape.max[0] = left;
        liquids[1].shape.min[0] = right;
        liquids[1].shape.max[0] = 1.0;
        liquids[0].shape.max[1] = liquids[1].shape.max[1] = height;
        selkie_world *world = make_world(&scene, 1);
        const double exact = (left + 1.0 - right) * height * 32 * 32 * 9;
        assert_true(fabs((double)selkie_world_particle_count(world) - exact) < 5.0);
        selkie_world_destroy(world);
    }
}

/* Memory follows the liquid: two balls in opposite corners of domains of 16, 80 and 1,000 m take the same. */
static void memory_does_not_follow_the_domain(void **state)
{
    (void)state;
    static const double sides[3] = {16.0, 80.0, 1000.0};
    for (int sph = 0; sph < 2; sph++)
        for (int n = 0; n < 3; n++) {
            selkie_scene scene;
            selkie_liquid_def liquids[2];
            selkie_world_options options;
            selkie_error error = {0};
            make_scene(&scene, &liquids[0], 3);
            scene.domain.cell_size = 0.02;
            scene.discretization = sph ? SELKIE_DISCRETIZATION_SPH : SELKIE_DISCRETIZATION_GRID;
            for (int d = 0; d < 3; d++)
                scene.domain.size[d] = sides[n];
            liquids[1] = liquids[0];
            for (int l = 0; l < 2; l++) {
                selkie_shape_defaults(&liquids[l].shape, SELKIE_SHAPE_SPHERE);
                liquids[l].shape.radius = 0.1;
                for (int d = 0; d < 3; d++)
                    liquids[l].shape.center[d] = l ? sides[n] - 0.5 : 0.5;
            }
            scene.liquids = liquids;
            scene.liquid_count = 2;
            selkie_world_options_defaults(&options);
            options.threads = 2;
            options.memory_limit = 40u << 20;
            selkie_world *world = NULL;
            if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK)
                fail_msg("%g m: %s", sides[n], error.message);
            for (int s = 0; s < 2; s++)
                if (selkie_world_step(world, &error) != SELKIE_OK)
                    fail_msg("%g m: %s", sides[n], error.message);
            selkie_world_destroy(world);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_is_kept_exactly),          cmocka_unit_test(counted_liquids_stand_beside_others),
        cmocka_unit_test(obstacles_are_filled_where_asked), cmocka_unit_test(a_shape_without_room_is_refused),
        cmocka_unit_test(jitter_is_part_of_a_sub_cell),     cmocka_unit_test(memory_does_not_follow_the_domain),
        cmocka_unit_test(a_level_between_layers_is_even),   cmocka_unit_test(a_level_surface_is_even),
        cmocka_unit_test(boxes_have_their_volume),          cmocka_unit_test(a_lattice_fits_obstacles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Solids that move: what they push away rises elsewhere, and no particle ends inside of one, nor outside of closed
 * walls, however rough the step. Distances are checked against the shapes themselves, not against what the grid makes
 * of them. */
#include "physics.h"

/* Signed distance to a box of half sizes `half` around `center`, turned about z by `angle` (rad). */
static double box_distance(const float x[3], const double center[3], const double half[3], double angle, int dimension)
{
    double r[3] = {x[0] - center[0], x[1] - center[1], x[2] - center[2]};
    double local[3] = {cos(angle) * r[0] + sin(angle) * r[1], -sin(angle) * r[0] + cos(angle) * r[1], r[2]};
    double outside = 0.0, inside = -INFINITY;
    for (int d = 0; d < dimension; d++) {
        double q = fabs(local[d]) - half[d];
        outside += q > 0.0 ? q * q : 0.0;
        inside = fmax(inside, q);
    }
    return outside > 0.0 ? sqrt(outside) : inside;
}

static double sphere_distance(const float x[3], const double center[3], double radius, int dimension)
{
    double sum = 0.0;
    for (int d = 0; d < dimension; d++)
        sum += (x[d] - center[d]) * (x[d] - center[d]);
    return sqrt(sum) - radius;
}

static double wall_distance(const float x[3], const double size[3], int dimension)
{
    double nearest = INFINITY;
    for (int d = 0; d < dimension; d++)
        nearest = fmin(nearest, fmin(x[d], size[d] - x[d]));
    return nearest;
}

/* --- a piston --- */

/* A wall is pushed slowly through a tank: the level behind it rises as the room shrinks. */
static void piston(int dimension, selkie_method method)
{
    const double h = 1.0 / (dimension == 2 ? 32 : 24), depth = 0.375, start = 0.25, path = 0.5, length = 1.5;
    test_scene t;
    tank(&t, dimension, length, 1, 6 * h, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.time.max_step = 0.01;
    add_liquid(&t, box_shape(0, 0, 0, length, depth, 1));
    selkie_obstacle_def *wall = add_obstacle(&t, box_shape(-2, -1, -1, start, 2, 2));
    const selkie_keyframe frames[] = {{0.0, {0, 0, 0}, {0, 0, 0}}, {2.0, {path, 0, 0}, {0, 0, 0}}};
    wall->keyframes = frames;
    wall->keyframe_count = 2;
    selkie_world *world = make_world(&t);
    double mean = 0.0;
    int samples = 0;
    int64_t count = selkie_world_particle_count(world);
    run_until(world, 2.5);
    while (selkie_world_time(world) < 4.0 - 1e-9) { /* the mean over some swings */
        step_world(world);
        mean += sum_particles(world, NULL).position[1];
        samples++;
    }
    assert_int_equal(selkie_world_particle_count(world), count);
    double level = depth * (length - start) / (length - start - path), nearest = INFINITY;
    selkie_attribute_view position = attribute_of(world, "position");
    for (int64_t p = 0; p < count; p++)
        nearest = fmin(nearest, particle_of(&position, p)[0] - (start + path));
    char what[64];
    snprintf(what, sizeof what, "piston %dD %s", dimension, method_name(method));
    note(what, "level, exact, m", level);
    at_most(what, "twice the height of the centre of mass - level, cells", fabs(2.0 * mean / samples - level) / h, 0.5);
    at_most(what, "deepest particle in the wall, cells", -nearest / h, 1e-6);
    selkie_world_destroy(world);
}

static void pistons(void **state)
{
    (void)state;
    piston(2, SELKIE_METHOD_FLIP);
    piston(2, SELKIE_METHOD_APIC);
    piston(3, SELKIE_METHOD_FLIP);
}

/* --- a ball through a full box --- */

/* No surface at all: the pressure is known up to a constant only. */
static void full_box(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const double h = 1.0 / (dimension == 2 ? 48 : 20), radius = 0.15;
        test_scene t;
        tank(&t, dimension, 1, 1, 1, h);
        t.scene.time.cfl = 2.0;
        add_liquid(&t, box_shape(0, 0, 0, 1, 1, 1));
        selkie_obstacle_def *ball = add_obstacle(&t, sphere_shape(0.25, 0.5, 0.5, radius));
        const selkie_keyframe frames[] = {
            {0.0, {0, 0, 0}, {0, 0, 0}}, {0.5, {0.5, 0, 0}, {0, 0, 0}}, {1.0, {0, 0, 0}, {0, 0, 0}}};
        ball->keyframes = frames;
        ball->keyframe_count = 3;
        selkie_world *world = make_world(&t);
        int64_t count = selkie_world_particle_count(world);
        const double size[3] = {1, 1, 1};
        double nearest = INFINITY, walls = INFINITY, fastest = 0.0;
        while (selkie_world_time(world) < 1.0 - 1e-9) {
            step_world(world);
            double time = selkie_world_time(world), center[3] = {0.25 + (time < 0.5 ? time : 1.0 - time), 0.5, 0.5};
            selkie_attribute_view position = attribute_of(world, "position");
            for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
                nearest = fmin(nearest, sphere_distance(particle_of(&position, p), center, radius, dimension));
                walls = fmin(walls, wall_distance(particle_of(&position, p), size, dimension));
            }
            fastest = fmax(fastest, selkie_world_statistics(world)->max_speed);
        }
        const char *what = dimension == 2 ? "disc through a full box 2D" : "ball through a full box 3D";
        assert_int_equal(selkie_world_particle_count(world), count);
        at_most(what, "deepest particle in the ball, cells", -nearest / h, 1e-6);
        at_most(what, "deepest particle in the walls, cells", -walls / h, 1e-6);
        at_most(what, "largest speed / speed of the ball", fastest, 8.0);
        note(what, "volume ratio", selkie_world_statistics(world)->volume_ratio);
        note(what, "kinetic energy at the end, J", selkie_world_statistics(world)->kinetic_energy);
        selkie_world_destroy(world);
    }
}

/* --- rough --- */

static void rough(int dimension, selkie_method method, double step, const char *name)
{
    const double h = 1.0 / (dimension == 2 ? 64 : 28), size[3] = {1, 1, 0.5}, turn = 12.0, radius = 0.1;
    const double paddle_center[3] = {0.65, 0.25, 0.25}, ball_center[3] = {0.35, 0.15, 0.25},
                 half[3] = {0.2, 0.04, 0.15};
    test_scene t;
    tank(&t, dimension, size[0], size[1], size[2], h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.time.cfl = 5.0;
    t.scene.time.step = step;
    t.scene.time.fps = 50.0;
    add_liquid(&t, box_shape(0, 0, 0, 0.3, 0.8, 1));
    selkie_obstacle_def *paddle =
        add_obstacle(&t, box_shape(paddle_center[0] - half[0], paddle_center[1] - half[1], paddle_center[2] - half[2],
                                   paddle_center[0] + half[0], paddle_center[1] + half[1], paddle_center[2] + half[2]));
    paddle->angular_velocity[2] = turn;
    memcpy(paddle->center, paddle_center, sizeof paddle_center);
    add_obstacle(&t, sphere_shape(ball_center[0], ball_center[1], ball_center[2], radius));
    selkie_world *world = make_world(&t);
    int64_t count = selkie_world_particle_count(world), steps = 0;
    double in_paddle = INFINITY, in_ball = INFINITY, in_wall = INFINITY;
    while (selkie_world_time(world) < 1.5 - 1e-9) {
        step_world(world);
        steps++;
        double angle = turn * selkie_world_time(world);
        selkie_attribute_view position = attribute_of(world, "position");
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *x = particle_of(&position, p);
            in_paddle = fmin(in_paddle, box_distance(x, paddle_center, half, angle, dimension));
            in_ball = fmin(in_ball, sphere_distance(x, ball_center, radius, dimension));
            in_wall = fmin(in_wall, wall_distance(x, size, dimension));
        }
    }
    char what[64];
    snprintf(what, sizeof what, "paddle wheel %dD %s, %s", dimension, method_name(method), name);
    assert_int_equal(selkie_world_particle_count(world), count);
    at_most(what, "deepest particle in the paddle, m", -in_paddle, 1e-6);
    at_most(what, "deepest particle in the ball, m", -in_ball, 1e-6);
    at_most(what, "deepest particle in the walls, m", -in_wall, 1e-6);
    note(what, "steps", (double)steps);
    note(what, "volume ratio", selkie_world_statistics(world)->volume_ratio);
    selkie_world_destroy(world);
}

static void rough_steps(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        rough(dimension, SELKIE_METHOD_FLIP, 0.0, "CFL 5");
        rough(dimension, SELKIE_METHOD_FLIP, 0.02, "steps of 20 ms");
        rough(dimension, SELKIE_METHOD_APIC, 0.02, "steps of 20 ms");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pistons), cmocka_unit_test(full_box),
                                       cmocka_unit_test(rough_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

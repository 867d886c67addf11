/* Whitewater: none in calm water, some where streams collide, the same on any number of threads; drops fall and bubbles
 * rise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/random.h"
#include "whitewater/whitewater.h"

enum { side = 40 }; /* particles along an axis of the unit cube */

typedef struct liquid {
    size_t count;
    float (*position)[3], (*velocity)[3];
} liquid;

/* Liquid up to a height; with `colliding` its halves run into each other. */
static liquid fill(double height, double colliding)
{
    liquid l = {0, malloc(side * side * side * sizeof *l.position), malloc(side * side * side * sizeof *l.velocity)};
    for (int i = 0; i < side * side * side; ++i) {
        const int cell[3] = {i % side, i / side % side, i / side / side};
        float x[3];
        for (int a = 0; a < 3; ++a)
            x[a] = ((float)cell[a] + 0.25f + 0.5f * sk_random_float(5, (uint64_t)i, (uint64_t)a)) / side;
        if ((double)x[1] > height)
            continue;
        memcpy(l.position[l.count], x, sizeof x);
        const float v[3] = {(float)(x[0] < 0.5f ? colliding : -colliding), 0.0f, 0.0f};
        memcpy(l.velocity[l.count++], v, sizeof v);
    }
    return l;
}

static void free_liquid(liquid *l)
{
    free(l->position);
    free(l->velocity);
}

static selkie_scene unit_scene(void)
{
    selkie_scene scene;
    selkie_scene_defaults(&scene);
    for (int a = 0; a < 3; ++a)
        scene.domain.size[a] = 1.0;
    scene.domain.cell_size = 2.0 / side;
    return scene;
}

static void step(sk_whitewater *w, const liquid *l, int frames)
{
    const sk_surface_particles cloud = {l->count, l->position[0], 12, l->velocity[0], 12};
    selkie_error error = {0};
    for (int f = 1; f <= frames; ++f)
        if (sk_whitewater_step(w, &cloud, f, f / 30.0, 1.0 / 30, &error))
            fail_msg("%s", error.message);
}

static void test_where_it_is_made(void **state)
{
    (void)state;
    selkie_scene scene = unit_scene();
    liquid calm = fill(0.5, 0.0), fast = fill(0.5, 3.0);
    sk_whitewater w;
    assert_int_equal(sk_whitewater_init(&w, &scene, 2, NULL), SELKIE_OK);
    step(&w, &calm, 3);
    assert_int_equal(w.count, 0);
    step(&w, &fast, 1);
    assert_true(w.count > 200);
    size_t middle = 0;
    for (size_t i = 0; i < w.count; ++i)
        middle += fabsf(w.particles[i].position[0] - 0.5f) < 0.2f;
    /* The streams meet at x = 0.5: the path of a frame, 0.1 m, and the kernel's reach spread it. */
    assert_true(middle > 0.9 * (double)w.count);
    sk_whitewater_free(&w);
    free_liquid(&calm);
    free_liquid(&fast);
}

static void test_threads_and_seeds(void **state)
{
    (void)state;
    selkie_scene scene = unit_scene(), other = unit_scene();
    other.seed = 2;
    liquid l = fill(0.5, 3.0);
    sk_whitewater one, many, seeded;
    assert_int_equal(sk_whitewater_init(&one, &scene, 1, NULL), SELKIE_OK);
    assert_int_equal(sk_whitewater_init(&many, &scene, 3, NULL), SELKIE_OK);
    assert_int_equal(sk_whitewater_init(&seeded, &other, 3, NULL), SELKIE_OK);
    step(&one, &l, 3);
    step(&many, &l, 3);
    step(&seeded, &l, 3);
    assert_int_equal(one.count, many.count);
    assert_memory_equal(one.particles, many.particles, one.count * sizeof *one.particles);
    assert_true(seeded.count != one.count ||
                memcmp(one.particles, seeded.particles, one.count * sizeof *one.particles) != 0);
    sk_whitewater_free(&one);
    sk_whitewater_free(&many);
    sk_whitewater_free(&seeded);
    free_liquid(&l);
}

/* A drop in the air falls as a stone does; a bubble rises, becomes foam at the surface and ends. */
static void test_motion(void **state)
{
    (void)state;
    selkie_scene scene = unit_scene();
    scene.whitewater.lifetime = 0.5;
    liquid l = fill(0.5, 0.0);
    sk_whitewater w;
    assert_int_equal(sk_whitewater_init(&w, &scene, 2, NULL), SELKIE_OK);
    const sk_whitewater_particle two[2] = {{.position = {0.5f, 0.95f, 0.5f}}, {.position = {0.5f, 0.2f, 0.5f}}};
    assert_int_equal(sk_reserve(NULL, (void **)&w.particles, &w.capacity, 2, sizeof *w.particles, "test", NULL),
                     SELKIE_OK);
    memcpy(w.particles, two, sizeof two);
    w.count = 2;
    step(&w, &l, 3);
    assert_int_equal(w.count, 2);
    /* Particles are sorted by place. */
    const sk_whitewater_particle *drop = &w.particles[w.particles[0].position[1] < 0.6f],
                                 *bubble = &w.particles[drop == w.particles];
    assert_int_equal(drop->kind, SK_WHITEWATER_SPRAY);
    assert_int_equal(bubble->kind, SK_WHITEWATER_BUBBLE);
    /* Semi-implicit steps of dt: g dt^2 n (n + 1) / 2. */
    assert_float_equal(drop->position[1], 0.95 - 9.81 * 6.0 / 900, 1e-4);
    assert_true(bubble->position[1] > 0.25f);
    step(&w, &l, 12);
    assert_int_equal(w.particles[w.count - 1].kind, SK_WHITEWATER_FOAM);
    step(&w, &l, 45);
    assert_int_equal(w.count, 0);
    sk_whitewater_free(&w);
    free_liquid(&l);
}

/* Streams that collide around a block, a thin plate and a block that moves: nothing is inside, nothing passes. */
static void test_obstacles(void **state)
{
    (void)state;
    selkie_scene scene = unit_scene();
    selkie_obstacle_def obstacles[3];
    static const double boxes[3][2][3] = {
        {{0.4, 0.0, 0.4}, {0.6, 0.7, 0.6}}, {{0.0, 0.6, 0.0}, {1.0, 0.61, 1.0}}, {{0.1, 0.1, 0.1}, {0.2, 0.3, 0.9}}};
    for (int o = 0; o < 3; ++o) {
        selkie_obstacle_defaults(&obstacles[o]);
        selkie_shape_defaults(&obstacles[o].shape, SELKIE_SHAPE_BOX);
        memcpy(obstacles[o].shape.min, boxes[o][0], sizeof obstacles[o].shape.min);
        memcpy(obstacles[o].shape.max, boxes[o][1], sizeof obstacles[o].shape.max);
    }
    obstacles[2].velocity[0] = 0.5; /* m/s */
    scene.obstacles = obstacles;
    scene.obstacle_count = 3;
    liquid l = fill(0.5, 3.0);
    for (size_t i = 0; i < l.count; ++i) /* towards the plate */
        l.velocity[i][1] = 6.0f;
    sk_whitewater w;
    const sk_surface_particles cloud = {l.count, l.position[0], 12, l.velocity[0], 12};
    assert_int_equal(sk_whitewater_init(&w, &scene, 2, NULL), SELKIE_OK);
    for (int f = 1; f <= 10; ++f) {
        assert_int_equal(sk_whitewater_step(&w, &cloud, f, f / 30.0, 1.0 / 30, NULL), SELKIE_OK);
        for (size_t i = 0; i < w.count; ++i) {
            const float *x = w.particles[i].position;
            assert_true(x[1] <= 0.6f);
            for (int o = 0; o < 3; o += 2) {
                const double moved = o ? 0.5 * f / 30.0 : 0.0;
                int inside = 1;
                for (int a = 0; a < 3; ++a)
                    inside &= (double)x[a] > boxes[o][0][a] + (a ? 0.0 : moved) + 1e-6 &&
                              (double)x[a] < boxes[o][1][a] + (a ? 0.0 : moved) - 1e-6;
                assert_false(inside);
            }
        }
    }
    assert_true(w.count > 200);
    sk_whitewater_free(&w);
    free_liquid(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_is_made),
        cmocka_unit_test(test_threads_and_seeds),
        cmocka_unit_test(test_motion),
        cmocka_unit_test(test_obstacles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

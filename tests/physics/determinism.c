/* The same scene gives the same bits on any number of threads: a source, a drain, a moving obstacle and viscosity. */
#include "physics.h"

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 1099511628211u; /* FNV-1a */
    return hash;
}

static uint64_t run_scene(const test_scene *t, int threads, int steps)
{
    selkie_world *world = make_world_threads(&t->scene, threads);
    for (int n = 0; n < steps; n++)
        step_world(world);
    uint64_t hash = 14695981039346656037u;
    for (int a = 0; a < selkie_world_attribute_count(world); a++) {
        selkie_attribute_view view;
        assert_int_equal(selkie_world_attribute(world, a, &view), SELKIE_OK);
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            hash = hash_bytes(hash, particle_of(&view, p), (size_t)view.components * 4);
    }
    const selkie_statistics *s = selkie_world_statistics(world);
    const double sums[] = {s->volume_ratio,     s->volume_eq19, s->occupied_ratio,   s->kinetic_energy,
                           s->potential_energy, s->max_speed,   s->pressure_residual};
    hash = hash_bytes(hash, sums, sizeof sums);
    assert_true(selkie_world_particle_count(world) > 1000);
    selkie_world_destroy(world);
    return hash;
}

static void same_bits(int dimension, selkie_method method)
{
    const double h = 1.0 / (dimension == 2 ? 64 : 32);
    test_scene t;
    tank(&t, dimension, 1, 1, 0.5, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.viscosity = 1e-4;
    t.scene.time.cfl = 3.0;
    t.scene.time.fps = 60.0;
    add_liquid(&t, box_shape(0, 0, 0, 0.35, 0.6, 1));
    selkie_source_def *source = add_source(&t, sphere_shape(0.8, 0.8, 0.25, 0.08));
    set3(source->velocity, -1.0, -1.0, 0.0);
    add_drain(&t, box_shape(0.9, 0, 0, 1, 0.1, 1));
    selkie_obstacle_def *paddle = add_obstacle(&t, box_shape(0.5, 0.1, 0.1, 0.6, 0.3, 0.4));
    paddle->angular_velocity[2] = 3.0;
    set3(paddle->center, 0.55, 0.2, dimension == 3 ? 0.25 : 0);
    int steps = dimension == 2 ? 60 : 30;
    uint64_t one = run_scene(&t, 1, steps), two = run_scene(&t, 2, steps), three = run_scene(&t, 3, steps);
    print_message("%dD %s: %016llx %016llx %016llx\n", dimension, method_name(method), (unsigned long long)one,
                  (unsigned long long)two, (unsigned long long)three);
    assert_true(one == two);
    assert_true(one == three);
}

static void threads_do_not_show(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        same_bits(dimension, SELKIE_METHOD_FLIP);
        same_bits(dimension, SELKIE_METHOD_APIC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_do_not_show)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

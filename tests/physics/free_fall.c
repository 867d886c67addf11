/* Free fall is exact at any step size: gravity acts from the middle of one step to the middle of the next, so after a
 * step of length dt that ends at t, positions are those of t and velocities those of t - dt / 2. Everything falls
 * alike: a block keeps its shape. */
#include "physics.h"

static void fall(int dimension, selkie_method method, double step, const char *name)
{
    const double h = 1.0 / 16;
    test_scene t;
    tank(&t, dimension, 2, 4, 2, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.time.step = step;
    t.scene.time.cfl = 3.0;
    selkie_liquid_def *block =
        add_liquid(&t, dimension == 2 ? box_shape(0.4, 3.0, 0, 0.9, 3.5, 0) : box_shape(0.4, 3.0, 0.7, 0.9, 3.5, 1.2));
    set3(block->velocity, 0.5, 0.25, 0.0);
    selkie_world *world = make_world(&t);
    particle_sums before = sum_particles(world, NULL);
    size_t count = (size_t)before.count;
    float(*start)[3] = malloc(count * sizeof *start);
    selkie_attribute_view position = attribute_of(world, "position"), velocity = attribute_of(world, "velocity");
    selkie_attribute_view id = attribute_of(world, "id");
    for (size_t p = 0; p < count; p++)
        memcpy(start[*(uint32_t *)particle_of(&id, (int64_t)p)], particle_of(&position, (int64_t)p), sizeof *start);
    run_until(world, 0.6);
    double time = selkie_world_time(world), middle = time - 0.5 * selkie_world_statistics(world)->dt;
    const double path[3] = {0.5 * time, 0.25 * time - 0.5 * GRAVITY * time * time, 0.0};
    const double speed[3] = {0.5, 0.25 - GRAVITY * middle, 0.0};
    position = attribute_of(world, "position");
    velocity = attribute_of(world, "velocity");
    id = attribute_of(world, "id");
    double center[3] = {0, 0, 0}, worst = 0.0, worst_speed = 0.0;
    assert_int_equal(selkie_world_particle_count(world), (int64_t)count);
    for (size_t p = 0; p < count; p++) {
        const float *from = start[*(uint32_t *)particle_of(&id, (int64_t)p)];
        for (int d = 0; d < dimension; d++) {
            double moved = (double)particle_of(&position, (int64_t)p)[d] - from[d];
            center[d] += moved - path[d];
            worst = fmax(worst, fabs(moved - path[d]));
            worst_speed = fmax(worst_speed, fabs((double)particle_of(&velocity, (int64_t)p)[d] - speed[d]));
        }
    }
    char what[64];
    snprintf(what, sizeof what, "free fall %dD %s, %s", dimension, method_name(method), name);
    double fallen = 0.5 * GRAVITY * time * time;
    at_most(what, "centre of mass, error / (g t^2 / 2)",
            sqrt(center[0] * center[0] + center[1] * center[1] + center[2] * center[2]) / (double)count / fallen, 1e-5);
    at_most(what, "worst particle, error / (g t^2 / 2)", worst / fallen, 2e-5);
    at_most(what, "worst velocity, error / (g t)", worst_speed / (GRAVITY * time), 1e-5);
    free(start);
    selkie_world_destroy(world);
}

static void falls(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int method = SELKIE_METHOD_PIC; method <= SELKIE_METHOD_APIC; method++) {
            fall(dimension, (selkie_method)method, 0.0, "steps by the CFL number");
            fall(dimension, (selkie_method)method, 0.007, "steps of 7 and 3 ms"); /* frames lie 10 ms apart */
        }
    fall(2, SELKIE_METHOD_FLIP, 0.001, "steps of 1 ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(falls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

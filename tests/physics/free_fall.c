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

/* --- Specks --- */

/* A thick slab hangs on a no-slip wall and hardly moves. A speck of a few particles falls along it, `gap` cells away,
 * and freely: neither the slab nor its own viscosity holds it. A gap of two cells is the least at which no face belongs
 * to both. In 3D a face between the two may still move with the slab: 2 %. */
static void speck_falls(int dimension, selkie_method method, selkie_volume volume, double viscosity, double gap,
                        double size)
{
    const double h = 1.0 / 32, face = 0.25 + gap * h;
    test_scene t;
    tank(&t, dimension, 1, 1, dimension == 3 ? 0.25 : 1, h);
    set_walls(&t, SELKIE_WALL_NO_SLIP);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = volume;
    t.scene.viscosity = viscosity;
    t.scene.time.cfl = 2.0;
    add_liquid(&t, box_shape(0, 0, 0, 0.25, 1, 1));
    add_liquid(&t, box_shape(face, 0.8, 0.125, face + size * h, 0.8 + size * h, 0.125 + size * h));
    selkie_world *world = make_world(&t);

    /* The speck is the second liquid: its particles have the highest numbers. */
    double start = 0.0, end = 0.0;
    uint32_t first = UINT32_MAX;
    int64_t count = 0;
    for (int when = 0; when < 2; when++) {
        run_until(world, when ? 0.25 : 0.0);
        const selkie_attribute_view position = attribute_of(world, "position"), id = attribute_of(world, "id");
        for (int64_t p = 0; p < selkie_world_particle_count(world) && !when; p++)
            if (particle_of(&position, p)[0] > face - 0.5 * h && *(uint32_t *)particle_of(&id, p) < first)
                first = *(uint32_t *)particle_of(&id, p);
        double sum = 0.0;
        int64_t found = 0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
            const float *at = particle_of(&position, p);
            if (*(uint32_t *)particle_of(&id, p) < first)
                continue;
            sum += at[1];
            found++;
        }
        assert_true(found > 0);
        *(when ? &end : &start) = sum / (double)found;
        assert_true(!when || found == count);
        count = found;
    }
    const double time = selkie_world_time(world);
    char what[80];
    snprintf(what, sizeof what, "speck of %d, %dD %s%s, %g m2/s, %g cells off", (int)count, dimension,
             method_name(method), volume_name(volume), viscosity, gap);
    between(what, "acceleration / g", (start - end) / (0.5 * GRAVITY * time * time), 0.98, 1.02);
    selkie_world_destroy(world);
}

static void specks_fall(void **state)
{
    (void)state;
    for (int method = SELKIE_METHOD_PIC; method <= SELKIE_METHOD_APIC; method++) {
        for (int idp = 0; idp < 2; idp++) {
            const selkie_volume volume = idp ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE;
            speck_falls(2, (selkie_method)method, volume, 0.01, 2.0, 0.5);
            speck_falls(2, (selkie_method)method, volume, 1.0, 2.0, 0.5);
            speck_falls(2, (selkie_method)method, volume, 1.0, 2.25, 0.75);
            speck_falls(2, (selkie_method)method, volume, 1.0, 2.5, 1.0);
            speck_falls(2, (selkie_method)method, volume, 1.0, 8.0, 0.5);
        }
        speck_falls(3, (selkie_method)method, SELKIE_VOLUME_IDP, 1.0, 2.0, 0.5);
        speck_falls(3, (selkie_method)method, SELKIE_VOLUME_IDP, 1.0, 2.25, 0.75);
        speck_falls(3, (selkie_method)method, SELKIE_VOLUME_IDP, 1.0, 8.0, 0.5);
    }
}

/* --- Walls --- */

/* A lone particle 0.02 cells below a ceiling falls freely, and one beside a wall leaves with its velocity: no pressure
 * holds them there. The tolerance is that of the block above, over the way. */
static void leaves(int dimension, selkie_method method, selkie_volume volume, double step, int side)
{
    const double h = 1.0 / 32, gap = 0.02 * h;
    test_scene t;
    tank(&t, dimension, 1, 1, dimension == 3 ? 0.5 : 1, h);
    selkie_scene_set_method(&t.scene, method);
    t.scene.volume = volume;
    t.scene.time.step = step;
    const double low[3] = {side ? 0.5 * gap : 0.52, side ? 0.7 : 1.0 - gap, 0.26};
    selkie_liquid_def *speck =
        add_liquid(&t, box_shape(low[0], low[1], low[2], low[0] + 0.5 * gap, low[1] + 0.5 * gap, low[2] + 0.5 * gap));
    speck->count = 1;
    set3(speck->velocity, side ? 0.5 : 0.0, 0.0, 0.0);
    selkie_world *world = make_world(&t);
    assert_int_equal(selkie_world_particle_count(world), 1);
    selkie_attribute_view position = attribute_of(world, "position");
    float start[3];
    memcpy(start, particle_of(&position, 0), sizeof start);
    run_until(world, 0.2);
    const double time = selkie_world_time(world), way[2] = {side ? 0.5 * time : 0.0, -0.5 * GRAVITY * time * time};
    position = attribute_of(world, "position");
    double worst = 0.0;
    for (int d = 0; d < 2; d++)
        worst = fmax(worst, fabs((double)particle_of(&position, 0)[d] - start[d] - way[d]));
    char what[64];
    snprintf(what, sizeof what, "%s %dD %s%s, %g ms", side ? "from a wall" : "from a ceiling", dimension,
             method_name(method), volume == SELKIE_VOLUME_IDP ? " idp" : "", 1000.0 * step);
    at_most(what, "worst particle, error / (g t^2 / 2)", worst / -way[1], 2e-5);
    selkie_world_destroy(world);
}

static void leave_walls(void **state)
{
    (void)state;
    static const double steps[] = {0.0005, 0.005, 0.02};
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int method = SELKIE_METHOD_PIC; method <= SELKIE_METHOD_APIC; method++)
            for (int n = 0; n < 12; n++)
                leaves(dimension, (selkie_method)method, n % 2 ? SELKIE_VOLUME_IDP : SELKIE_VOLUME_NONE,
                       steps[n / 2 % 3], n / 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(falls), cmocka_unit_test(specks_fall),
                                       cmocka_unit_test(leave_walls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

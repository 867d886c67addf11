/* Walls and bodies of boundary particles in SPH: what they do to liquid at rest, what they carry, and that they hold.
 */
#include <unistd.h>

#include "bodies.h"

static void sph_tank(test_scene *t, int dimension, double x, double y, double z, double spacing)
{
    tank(t, dimension, x, y, z, 2 * spacing);
    selkie_scene_set_method(&t->scene, SELKIE_METHOD_SPH);
    t->scene.time.cfl = 0.0;
    t->scene.sph.density_error = 5e-4;
}

/* A box that is full of liquid on its lattice: the walls look like more of it, so that nothing moves. Where an
 * obstacle's points meet the walls they are a per cent off, which is taken back at a centimetre a second. */
static void full_box_rests(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int variant = 0; variant < 4; variant++) {
            const int wendland = variant & 1, obstacle = variant >> 1;
            test_scene t;
            sph_tank(&t, dimension, 0.24, 0.16, 0.16, 0.02);
            set3(t.scene.gravity, 0, 0, 0);
            t.scene.sph.kernel = wendland ? SELKIE_SPH_WENDLAND : SELKIE_SPH_CUBIC;
            add_liquid(&t, box_shape(0, 0, 0, 1, 1, 1));
            if (obstacle)
                add_obstacle(&t, box_shape(0.08, 0, 0, 0.16, 0.08, 1)); /* on the lattice, too */
            selkie_world *world = make_world_threads(&t.scene, 1);
            for (int n = 0; n < 20; n++)
                step_world(world);
            char what[64];
            snprintf(what, sizeof what, "full box %dD, %s%s", dimension, wendland ? "Wendland" : "cubic spline",
                     obstacle ? ", obstacle" : "");
            at_most(what, "largest speed, m/s", selkie_world_statistics(world)->max_speed, obstacle ? 0.015 : 1e-3);
            selkie_world_destroy(world);
        }
}

/* Mean over time of what the floor carries: the weight, by momentum; and of the pressure inside: rho g depth. */
static void column_weighs(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const double s = dimension == 2 ? 0.01 : 0.02, width = 0.2, height = dimension == 2 ? 0.3 : 0.24;
        test_scene t;
        sph_tank(&t, dimension, width, 0.4, dimension == 2 ? 1 : width, s);
        t.scene.sph.xsph = 0.05;
        t.scene.sph.density_error = 2e-4;
        add_liquid(&t, box_shape(0, 0, 0, 1, height, 1));
        add_probe(&t, "floor", SELKIE_PROBE_FORCE, 0, 0, 0);
        double depth = 0.5 * height;
        add_probe(&t, "p", SELKIE_PROBE_PRESSURE, 0.5 * width, height - depth, dimension == 2 ? 0 : 0.5 * width);
        selkie_world *world = make_world_threads(&t.scene, 1);
        run_until(world, 0.4);
        double force[3] = {0, 0, 0}, pressure = 0.0, before = selkie_world_time(world), span = 0.0;
        while (selkie_world_time(world) < 1.1) {
            step_world(world);
            double dt = selkie_world_time(world) - before;
            before = selkie_world_time(world);
            span += dt;
            for (int d = 0; d < dimension; d++)
                force[d] += dt * selkie_world_probe_value(world, d);
            pressure += dt * selkie_world_probe_value(world, dimension);
        }
        double weight = (double)selkie_world_particle_count(world) * selkie_world_particle_mass(world) * GRAVITY;
        char what[64];
        snprintf(what, sizeof what, "column of water %dD, %g particles high", dimension, height / s);
        at_most(what, "floor's load over the weight, error", fabs(-force[1] / span / weight - 1.0), 0.03);
        at_most(what, "side loads over the weight", fabs(force[0] / span / weight), 0.03);
        /* A twelfth of the height is half a particle; the mean over the run still swings by a percent. */
        at_most(what, "mean pressure at half depth, relative error",
                fabs(pressure / span / (1000 * GRAVITY * depth) - 1.0), 0.04);
        selkie_world_destroy(world);
    }
}

/* Particles that are behind a wall or inside an obstacle by more than a tenth of their spacing; and those that were
 * only kept from it by being set back, which stand right at it. */
static void count_leaks(const selkie_world *world, const double low[3], const double high[3], double spacing,
                        int64_t *through, int64_t *set_back)
{
    selkie_attribute_view position = attribute_of(world, "position");
    const selkie_scene *scene = selkie_world_scene(world);
    *through = *set_back = 0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        double nearest = 1e9, inside = 1e9;
        for (int d = 0; d < scene->domain.dimension; d++) {
            nearest = fmin(nearest, fmin(x[d], scene->domain.size[d] - x[d]));
            inside = fmin(inside, fmin(x[d] - low[d], high[d] - x[d]));
        }
        *through += nearest < 0.0 || inside > 0.1 * spacing;
        *set_back += nearest < 0.01 * spacing;
    }
}

static void dam_break_holds(void **state)
{
    (void)state;
    const double s = 0.025, low[3] = {0.6, 0, 0.1}, high[3] = {0.7, 0.25, 0.3};
    test_scene t;
    sph_tank(&t, 3, 1.0, 0.6, 0.4, s);
    add_liquid(&t, box_shape(0, 0, 0, 0.3, 0.5, 0.4));
    add_obstacle(&t, box_shape(low[0], low[1], low[2], high[0], high[1], high[2]));
    selkie_world *world = make_world_threads(&t.scene, 1);
    int64_t start = selkie_world_particle_count(world), most_through = 0, most_back = 0;
    for (int frame = 0; frame < 8; frame++) {
        run_until(world, 0.06 * (frame + 1));
        int64_t through, back;
        count_leaks(world, low, high, s, &through, &back);
        most_through = through > most_through ? through : most_through;
        most_back = back > most_back ? back : most_back;
    }
    at_most("dam break against a block 3D", "particles in walls or block", (double)most_through, 0);
    /* A drop that touches a wall has few neighbours and no pressure: it slides along it. */
    at_most("dam break against a block 3D", "share that stands right at a wall", (double)most_back / (double)start,
            0.06);
    assert_int_equal(selkie_world_particle_count(world), start);
    selkie_world_destroy(world);
}

/* A piston shoves all water of a channel before it, none is left behind, and it feels the momentum that it gives. */
static void piston_shoves(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        const double s = 0.02;
        test_scene t;
        sph_tank(&t, dimension, 1.2, 0.4, 0.12, s);
        add_liquid(&t, box_shape(0.2, 0, 0, 0.6, 0.16, 1));
        selkie_obstacle_def *piston = add_obstacle(&t, box_shape(-1, -1, -1, 0.2, 2, 2));
        piston->name = "piston";
        piston->velocity[0] = 0.5;
        add_probe(&t, "push", SELKIE_PROBE_FORCE, 0, 0, 0)->on = "piston";
        selkie_world *world = make_world_threads(&t.scene, 1);
        double impulse = 0.0, before = 0.0, last = 0.0, momentum = 0.0, given = 0.0;
        while (selkie_world_time(world) < 0.6) {
            step_world(world);
            const double step = selkie_world_time(world) - before;
            impulse +=
                selkie_world_probe_value(world, 0) * 0.5 * (last + step); /* from middle to middle of the steps */
            last = step;
            before = selkie_world_time(world);
            if (before < 0.2) { /* the water has not come to the far wall yet: all momentum is the piston's */
                particle_sums sums = sum_particles(world, NULL);
                momentum = sums.momentum[0] * (double)sums.count * selkie_world_particle_mass(world);
                given = -impulse;
            }
        }
        selkie_attribute_view position = attribute_of(world, "position");
        int64_t behind = 0;
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            behind += particle_of(&position, p)[0] < 0.2 + 0.5 * selkie_world_time(world) - 0.1 * s;
        char what[64];
        snprintf(what, sizeof what, "piston %dD", dimension);
        at_most(what, "particles behind it", (double)behind, 0);
        at_most(what, "impulse against momentum, relative", fabs(given / momentum - 1.0), 0.02);
        selkie_world_destroy(world);
    }
}

/* Water thrown at a body in free space: what one loses the other gains. The bound is the rounding of single precision
 * in the particles' velocities. */
static void momentum_stays(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        sph_tank(&t, dimension, 1.2, 1.2, 1.2, dimension == 2 ? 0.02 : 0.04);
        set3(t.scene.gravity, 0, 0, 0);
        set_walls(&t, SELKIE_WALL_OPEN);
        double z = dimension == 2 ? 0 : 0.6;
        selkie_liquid_def *drop = add_liquid(&t, sphere_shape(0.35, 0.65, z, 0.12));
        set3(drop->velocity, 2, 0, 0);
        add_body(&t, box_shape(0.55, 0.5, z - 0.1, 0.7, 0.7, z + 0.1), 300);
        selkie_world *world = make_world_threads(&t.scene, 1);
        double mass = selkie_world_particle_mass(world), scale = 0.0, start[6] = {0}, worst = 0.0, worst_turn = 0.0;
        for (int n = 0; selkie_world_time(world) < 0.15; n++) {
            particle_sums sums = sum_particles(world, NULL);
            selkie_body_state body = body_of(world, 0);
            double inertia = body.mass * (0.15 * 0.15 + 0.2 * 0.2) / 12;
            double now[6];
            for (int d = 0; d < 3; d++) {
                now[d] = sums.momentum[d] * (double)sums.count * mass + body.mass * body.velocity[d];
                now[3 + d] = sums.angular[d] * (double)sums.count * mass +
                             body.mass * (body.position[(d + 1) % 3] * body.velocity[(d + 2) % 3] -
                                          body.position[(d + 2) % 3] * body.velocity[(d + 1) % 3]);
            }
            now[5] += inertia * body.angular_velocity[2];
            if (n == 0) {
                memcpy(start, now, sizeof now);
                scale = fabs(now[0]);
            }
            for (int d = 0; d < dimension; d++)
                worst = fmax(worst, fabs(now[d] - start[d]) / scale);
            worst_turn = fmax(worst_turn, fabs(now[5] - start[5]) / scale);
            step_world(world);
        }
        char what[64];
        snprintf(what, sizeof what, "drop hits body %dD", dimension);
        at_most(what, "momentum lost or won, relative", worst, 2e-5);
        note(what, "angular momentum lost or won, over momentum x 1 m", worst_turn);
        between(what, "the body's speed, m/s", body_of(world, 0).velocity[0], 0.3, 3.0);
        selkie_world_destroy(world);
    }
}

/* Stokes' first problem: liquid slides over a floor that it sticks to. The floor has taken up 2 rho U sqrt(nu t / pi)
 * on each metre by the time t. */
static void floor_drags(void **state)
{
    (void)state;
    const double s = 0.01, viscosity = 0.004, speed = 0.1, length = 0.6;
    test_scene t;
    sph_tank(&t, 2, 1.0, 0.4, 1, s);
    set_walls(&t, SELKIE_WALL_OPEN);
    t.scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
    set3(t.scene.gravity, 0, 0, 0);
    t.scene.viscosity = viscosity;
    t.scene.time.step = 0.005;
    set3(add_liquid(&t, box_shape(0.1, 0, 0, 0.1 + length, 0.3, 1))->velocity, speed, 0, 0);
    add_probe(&t, "floor", SELKIE_PROBE_FORCE, 0, 0, 0);
    selkie_world *world = make_world_threads(&t.scene, 1);
    double impulse = 0.0, before = 0.0, last = 0.0;
    while (selkie_world_time(world) < 0.3) {
        step_world(world);
        const double step = selkie_world_time(world) - before;
        impulse += selkie_world_probe_value(world, 0) * 0.5 * (last + step); /* from middle to middle of the steps */
        last = step;
        before = selkie_world_time(world);
    }
    double expected = 2 * 1000 * speed * sqrt(viscosity * before / 3.14159265) * length;
    particle_sums sums = sum_particles(world, NULL);
    double lost =
        1000 * speed * length * 0.3 - sums.momentum[0] * (double)sums.count * selkie_world_particle_mass(world);
    between("liquid over a no-slip floor", "impulse on the floor over Stokes' solution", impulse / expected, 0.75,
            1.15);
    at_most("liquid over a no-slip floor", "what it lost against what the floor got, relative",
            fabs(lost / impulse - 1.0), 1e-3);
    selkie_world_destroy(world);
}

static uint64_t hash_world(const selkie_world *world)
{
    uint64_t hash = 14695981039346656037u;
    selkie_attribute_view view;
    for (int a = 0; a < selkie_world_attribute_count(world); a++) {
        assert_int_equal(selkie_world_attribute(world, a, &view), SELKIE_OK);
        for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
            for (size_t i = 0; i < (size_t)view.components * 4; i++)
                hash = (hash ^ ((unsigned char *)particle_of(&view, p))[i]) * 1099511628211u;
    }
    for (int b = 0; b < selkie_world_body_count(world); b++) {
        selkie_body_state body = body_of(world, b);
        double values[13];
        memcpy(values, body.position, sizeof body.position);
        memcpy(values + 3, body.quaternion, sizeof body.quaternion);
        memcpy(values + 7, body.velocity, sizeof body.velocity);
        memcpy(values + 10, body.angular_velocity, sizeof body.angular_velocity);
        for (size_t i = 0; i < sizeof values; i++)
            hash = (hash ^ ((unsigned char *)values)[i]) * 1099511628211u;
    }
    return hash;
}

static void same_bits(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        sph_tank(&t, dimension, 1.0, 0.8, 0.4, dimension == 2 ? 0.025 : 0.05);
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.3, 1));
        add_body(&t, box_shape(0.2, 0.35, 0.1, 0.4, 0.5, 0.3), 400)->angular_velocity[2] = 1;
        add_body(&t, sphere_shape(0.7, 0.45, 0.2, 0.1), 2000);
        selkie_obstacle_def *paddle = add_obstacle(&t, box_shape(0.85, 0.05, 0.1, 0.9, 0.4, 0.3));
        paddle->angular_velocity[2] = 3.0;
        set3(paddle->center, 0.87, 0.2, dimension == 3 ? 0.2 : 0);
        t.scene.viscosity = 1e-3;
        bodies[0].surface = paddle->surface = t.scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
        uint64_t hashes[3], resumed = 0;
        char path[] = "/tmp/selkie_sph_walls_XXXXXX";
        int file = mkstemp(path);
        assert_true(file >= 0);
        close(file);
        selkie_error error = {0};
        for (int threads = 1; threads <= 3; threads++) {
            selkie_world *world = make_world_threads(&t.scene, threads);
            for (int n = 0; n < 40; n++) {
                step_world(world);
                if (threads == 1 && n == 19)
                    assert_int_equal(selkie_world_save(world, path, &error), SELKIE_OK);
            }
            hashes[threads - 1] = hash_world(world);
            selkie_world_destroy(world);
        }
        selkie_world *world = make_world_threads(&t.scene, 2);
        if (selkie_world_load(world, path, &error) != SELKIE_OK)
            fail_msg("%s", error.message);
        for (int n = 20; n < 40; n++)
            step_world(world);
        resumed = hash_world(world);
        selkie_world_destroy(world);
        unlink(path);
        print_message("%dD: %016llx %016llx %016llx, resumed %016llx\n", dimension, (unsigned long long)hashes[0],
                      (unsigned long long)hashes[1], (unsigned long long)hashes[2], (unsigned long long)resumed);
        assert_true(hashes[0] == hashes[1] && hashes[0] == hashes[2] && hashes[0] == resumed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_box_rests), cmocka_unit_test(column_weighs),  cmocka_unit_test(dam_break_holds),
        cmocka_unit_test(piston_shoves),  cmocka_unit_test(momentum_stays), cmocka_unit_test(same_bits),
        cmocka_unit_test(floor_drags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

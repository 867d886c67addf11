/* Bodies of particles by shape matching in the liquid of the grid methods. */
#include <unistd.h>

#include "physics.h"

#include "methods/shape_matching/shape_matching.h"
#include "world/world_internal.h"

enum { MOST = 8, STEPS = 30 };
static selkie_body_def bodies[MOST];
static selkie_material_def materials[2];

/* A body of the second material. */
static selkie_body_def *add_body(test_scene *t, selkie_shape shape)
{
    selkie_body_def *body = &bodies[t->scene.body_count++];
    t->scene.bodies = bodies;
    selkie_body_defaults(body);
    body->shape = shape;
    body->material = "rubber";
    return body;
}

static void use_materials(test_scene *t, double density)
{
    selkie_material_defaults(&materials[0]);
    selkie_material_defaults(&materials[1]);
    materials[0].name = "water";
    materials[1].name = "rubber";
    materials[1].kind = SELKIE_MATERIAL_SOFT;
    materials[1].density = density;
    t->scene.materials = materials;
    t->scene.material_count = 2;
    for (int l = 0; l < t->scene.liquid_count; l++)
        t->liquids[l].material = "water";
}

/* Unilateral pressure keeps the volume by itself. */
static void use_pressure(test_scene *t, int unilateral)
{
    if (!unilateral)
        return;
    t->scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
    t->scene.volume = SELKIE_VOLUME_NONE;
}

static selkie_body_state body_of(const selkie_world *world, int body)
{
    selkie_body_state state;
    assert_int_equal(selkie_world_body(world, body, &state), SELKIE_OK);
    return state;
}

/* Mass, momentum and angular momentum of all points about the origin, for a mass of 1 a point. */
static void momentum_of(const selkie_world *world, double momentum[3], double spin[3])
{
    const sk_soft *soft = world->step.soft;
    memset(momentum, 0, 3 * sizeof *momentum);
    memset(spin, 0, 3 * sizeof *spin);
    for (uint32_t k = 0; k < soft->point_count; k++) {
        const double *x = soft->points[k].position, *v = soft->points[k].velocity;
        for (int d = 0; d < 3; d++) {
            momentum[d] += v[d];
            spin[d] += x[(d + 1) % 3] * v[(d + 2) % 3] - x[(d + 2) % 3] * v[(d + 1) % 3];
        }
    }
}

/* A body that spins and swings freely keeps momentum and angular momentum to 1e-10 over 100 steps, in each mode. Above
 * water, so that the whole step runs. */
static void free_spin(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++)
        for (int mode = SELKIE_SOFT_RIGID; mode <= SELKIE_SOFT_QUADRATIC + 1; mode++) { /* the last with clusters */
            test_scene t;
            char what[64];
            double before[2][3], after[2][3], change = 0.0, size = 0.0;
            tank(&t, dimension, 1.0, 1.0, 1.0, 1.0 / 16);
            t.scene.gravity[1] = 0.0;
            t.scene.time.step = 0.01;
            add_liquid(&t, box_shape(0, 0, 0, 1, 0.15, 1));
            use_materials(&t, 800);
            materials[1].soft.mode = mode <= SELKIE_SOFT_QUADRATIC ? mode : SELKIE_SOFT_LINEAR;
            materials[1].soft.clusters = mode <= SELKIE_SOFT_QUADRATIC ? 1 : 3;
            selkie_body_def *body = add_body(&t, box_shape(0.4, 0.4, 0.3, 0.6, 0.7, 0.6));
            body->angular_velocity[2] = 7.0;
            body->angular_velocity[0] = dimension == 3 ? 3.0 : 0.0;
            selkie_world *world = make_world_threads(&t.scene, 2);
            momentum_of(world, before[0], before[1]);
            for (int n = 0; n < 100; n++)
                step_world(world);
            momentum_of(world, after[0], after[1]);
            for (int d = 0; d < 3; d++) {
                change = fmax(change, fabs(after[1][d] - before[1][d]));
                size = fmax(size, fabs(before[1][d]));
            }
            snprintf(what, sizeof what, "free spin, %dD, mode %d", dimension, mode);
            at_most(what, "relative change of angular momentum", change / size, 1e-10);
            at_most(what, "distance of the centre from its start, m", fabs(body_of(world, 0).position[1] - 0.55), 1e-6);
            selkie_world_destroy(world);
        }
}

/* A tower of putty sags and stays so; rubber of the same stiffness stands up again. The rest shape keeps its volume. */
static void putty_flows(void **state)
{
    (void)state;
    double height[2];
    for (int flows = 0; flows < 2; flows++) {
        test_scene t;
        tank(&t, 2, 1.0, 1.0, 1.0, 1.0 / 24);
        t.scene.time.step = 0.005;
        use_materials(&t, 1000);
        materials[1].soft.stiffness = 15.0;
        materials[1].soft.deformation = 0.9;
        materials[1].soft.damping = 0.5;
        materials[1].soft.yield = flows ? 0.05 : 0.0;
        materials[1].soft.creep = 20.0;
        add_body(&t, box_shape(0.4, 0, 0, 0.6, 0.5, 0))->velocity[1] = -1.5;
        selkie_world *world = make_world_threads(&t.scene, 1);
        for (int n = 0; n < 300; n++)
            step_world(world);
        const sk_soft *soft = world->step.soft;
        const double *f = soft->regions[0].flow;
        height[flows] = body_of(world, 0).position[1];
        if (flows) {
            at_most("putty thrown on the floor", "flow: height of the rest shape, part", f[4], 0.98);
            at_most("putty thrown on the floor", "flow: change of its volume", fabs(f[0] * f[4] - f[1] * f[3] - 1.0),
                    1e-9);
        }
        selkie_world_destroy(world);
    }
    note("putty thrown on the floor", "height of its centre, m", height[1]);
    at_most("putty thrown on the floor", "height of its centre over that of rubber", height[1] / height[0], 0.99);
}

/* Archimedes: a floating box is as deep as its density says. The bound is the 0.2 cells asked of rigid bodies. */
static void floats(void **state)
{
    (void)state;
    static const double ratios[] = {0.1, 0.5, 0.9};
    for (int n = 0; n < 6; n++) {
        test_scene t;
        char what[64];
        const double level = 0.5, height = 0.3, bottom = level - ratios[n / 2] * height;
        double sum = 0.0;
        tank(&t, 2, 1.0, 1.0, 0.0, 1.0 / 32);
        t.scene.volume = SELKIE_VOLUME_IDP;
        t.scene.time.step = 0.01;
        add_liquid(&t, box_shape(0, 0, 0, 1, level, 0));
        use_materials(&t, 1000.0 * ratios[n / 2]);
        use_pressure(&t, n % 2);
        add_body(&t, box_shape(0.35, bottom, 0, 0.65, bottom + height, 0));
        selkie_world *world = make_world_threads(&t.scene, 1);
        for (int s = 0; s < 200; s++) {
            step_world(world);
            sum += s >= 100 ? body_of(world, 0).position[1] / 100.0 : 0.0;
        }
        snprintf(what, sizeof what, "floating box, ratio %g%s", ratios[n / 2], n % 2 ? ", unilateral" : "");
        at_most(what, "distance from Archimedes, cells", fabs(sum - (bottom + 0.5 * height)) * 32.0, 0.2);
        selkie_world_destroy(world);
    }
}

/* A wave that hits a soft body. */
static void wave(test_scene *t, int dimension)
{
    tank(t, dimension, 1.0, 0.75, 0.5, dimension == 3 ? 1.0 / 16 : 1.0 / 32);
    t->scene.volume = SELKIE_VOLUME_IDP;
    t->scene.time.step = 0.01;
    add_liquid(t, box_shape(0, 0, 0, 0.4, 0.6, 0.5));
    add_liquid(t, box_shape(0.4, 0, 0, 1, 0.25, 0.5));
    use_materials(t, 400);
    add_body(t, box_shape(0.5, 0.2, 0.1, 0.7, 0.35, 0.4));
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t n = 0; n < size; n++)
        hash = (hash ^ bytes[n]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_world(const selkie_world *world)
{
    const sk_soft *soft = world->step.soft;
    assert_int_equal(sk_world_fetch(world, 0, NULL), SELKIE_OK); /* on a device, the host's copy may be an old one */
    const uint64_t hash = hash_bytes(UINT64_C(14695981039346656037), world->step.particles.records,
                                     (size_t)world->step.particles.count * sizeof(sk_particle));
    return hash_bytes(hash, soft->points, soft->point_count * sizeof *soft->points);
}

/* 1 and 3 threads, and a run resumed half way, end with the same bits. */
static void same_bits(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        const int dimension = 2 + n / 2;
        test_scene t;
        char path[] = "/tmp/selkie_soft_XXXXXX";
        const int file = mkstemp(path);
        uint64_t hashes[3];
        selkie_error error = {0};
        assert_true(file >= 0);
        close(file);
        wave(&t, dimension);
        use_pressure(&t, n % 2);
        materials[1].soft.yield = 0.05;
        for (int run = 0; run < 3; run++) {
            selkie_world *world = make_world_threads(&t.scene, run == 0 ? 1 : 3);
            if (run == 2 && selkie_world_load(world, path, &error) != SELKIE_OK)
                fail_msg("%s", error.message);
            for (int s = run == 2 ? STEPS / 2 : 0; s < STEPS; s++) {
                step_world(world);
                if (run == 0 && s == STEPS / 2 - 1)
                    assert_int_equal(selkie_world_save(world, path, &error), SELKIE_OK);
            }
            hashes[run] = hash_world(world);
            selkie_world_destroy(world);
        }
        unlink(path);
        assert_true(hashes[0] == hashes[1]);
        assert_true(hashes[0] == hashes[2]);
    }
}

/* The backends round in their own ways: a few steps are compared. A particle at 1 m is stored to 6e-8 m; 30 such
 * roundings are allowed, 17 were seen. */
static void backends_agree(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        const int dimension = 2 + n / 2;
        test_scene t;
        selkie_world *worlds[2];
        wave(&t, dimension);
        use_pressure(&t, n % 2);
        for (int w = 0; w < 2; w++) {
            selkie_world_options options;
            selkie_error error = {0};
            selkie_world_options_defaults(&options);
            options.threads = 1;
            options.with_backend = 1;
            options.backend = w ? SELKIE_BACKEND_PLAIN : SELKIE_BACKEND_TUNED;
            if (selkie_world_create(&t.scene, &options, &worlds[w], &error) != SELKIE_OK)
                fail_msg("%s", error.message);
            for (int s = 0; s < 5; s++)
                step_world(worlds[w]);
        }
        const selkie_body_state a = body_of(worlds[0], 0), b = body_of(worlds[1], 0);
        for (int d = 0; d < dimension; d++)
            at_most(dimension == 2 ? "backends, 2D" : "backends, 3D", "distance of the bodies, m",
                    fabs(a.position[d] - b.position[d]), 2e-6);
        selkie_world_destroy(worlds[0]);
        selkie_world_destroy(worlds[1]);
    }
}

/* Two discs thrown at each other at 2 m/s stop without overlap, and momentum stays. */
static void discs_meet(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        test_scene t;
        double deepest = 0.0, momentum[2][3], spin[3];
        tank(&t, 2, 2.0, 1.0, 0.0, 1.0 / 32);
        t.scene.gravity[1] = 0.0;
        t.scene.time.step = 0.01;
        use_materials(&t, 500);
        materials[1].kind = kind ? SELKIE_MATERIAL_SOFT : SELKIE_MATERIAL_RIGID;
        materials[1].soft.stiffness = 100;
        add_body(&t, sphere_shape(0.6, 0.51, 0, 0.2))->velocity[0] = 1.0;
        add_body(&t, sphere_shape(1.4, 0.5, 0, 0.2))->velocity[0] = -1.0;
        selkie_world *world = make_world_threads(&t.scene, 1);
        momentum_of(world, momentum[0], spin);
        for (int n = 0; n < 40; n++) {
            step_world(world);
            const selkie_body_state a = body_of(world, 0), b = body_of(world, 1);
            const double apart = hypot(a.position[0] - b.position[0], a.position[1] - b.position[1]);
            deepest = kind == 0 ? fmax(deepest, (0.4 - apart) * 32.0) : deepest;
        }
        momentum_of(world, momentum[1], spin);
        const double points = world->step.soft->point_count;
        if (kind == 0)
            at_most("two rigid discs", "overlap, cells", deepest, 0.05);
        at_most(kind ? "two soft discs" : "two rigid discs", "change of momentum over that of a disc",
                fabs(momentum[1][0] - momentum[0][0]) / (0.5 * points), 1e-12);
        selkie_world_destroy(world);
    }
}

/* A stack of five boxes in shallow water stands for 10 s. The bounds are those of rigid shapes. */
static void stack_stands(void **state)
{
    (void)state;
    test_scene t;
    tank(&t, 2, 1.0, 1.5, 0.0, 1.0 / 24);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.time.step = 0.02;
    add_liquid(&t, box_shape(0, 0, 0, 1, 0.1, 0));
    use_materials(&t, 2000);
    materials[1].kind = SELKIE_MATERIAL_RIGID;
    for (int n = 0; n < 5; n++)
        add_body(&t, box_shape(0.4, 0.21 * n, 0, 0.6, 0.21 * n + 0.2, 0));
    selkie_world *world = make_world_threads(&t.scene, 1);
    for (int n = 0; n < 500; n++)
        step_world(world);
    for (int n = 0; n < 5; n++) {
        const selkie_body_state body = body_of(world, n);
        at_most("stack of five boxes, 10 s", "sideways, m", fabs(body.position[0] - 0.5), 0.05);
        at_most("stack of five boxes, 10 s", "height from its place, cells",
                fabs(body.position[1] - 0.1 - 0.2 * n) * 24.0, 0.25);
    }
    selkie_world_destroy(world);
}

/* What a rigid body does does not hang on how many particles it has: how high it bounces off the floor, to a hundredth
 * of a cell, and the speed that a drop gives it in free flight. The drop has other particles each time, and its surface
 * lies up to a quarter of a cell elsewhere, a tenth of its radius: 10 %. */
static void samplings_agree(void **state)
{
    (void)state;
    static const int per_cell[] = {4, 9, 16};
    double least[2] = {1e9, 1e9}, most[2] = {-1e9, -1e9};
    for (int n = 0; n < 6; n++) {
        const int drop = n % 2;
        test_scene t;
        tank(&t, 2, 1.0, 1.0, 0.0, 1.0 / 24);
        t.scene.volume = SELKIE_VOLUME_IDP;
        t.scene.time.step = 0.005;
        t.scene.particles.per_cell = per_cell[n / 2];
        if (drop) {
            t.scene.gravity[1] = 0.0;
            add_liquid(&t, sphere_shape(0.5, 0.75, 0, 0.1))->velocity[1] = -2.0;
        }
        use_materials(&t, 800);
        materials[1].kind = SELKIE_MATERIAL_RIGID;
        add_body(&t, box_shape(0.4, drop ? 0.4 : 0.3, 0, 0.6, 0.5, 0))->restitution = drop ? 0.0 : 0.5;
        selkie_world *world = make_world_threads(&t.scene, 1);
        double before = 1.0, highest = 0.0;
        while (selkie_world_time(world) < (drop ? 0.15 : 0.8)) {
            step_world(world);
            const double height = body_of(world, 0).position[1];
            if (highest > 0.0 || (height > before && height < 0.2))
                highest = fmax(highest, height);
            before = height;
        }
        const double value = drop ? -body_of(world, 0).velocity[1] : highest;
        note(drop ? "drop on a rigid body" : "rigid box thrown on the floor", drop ? "speed, m/s" : "bounce, m", value);
        least[drop] = fmin(least[drop], value);
        most[drop] = fmax(most[drop], value);
        selkie_world_destroy(world);
    }
    assert_true(least[0] > 0.12); /* it bounced */
    at_most("4, 9 and 16 particles a cell", "heights of a bounce differ by, cells", (most[0] - least[0]) * 24.0, 0.01);
    at_most("4, 9 and 16 particles a cell", "speeds by a drop differ by, part", most[1] / least[1] - 1.0, 0.1);
}

/* An obstacle far away that a change adds builds the world anew: a body that falls goes on as if nothing had happened.
 */
static void survives_change(void **state)
{
    (void)state;
    double height[2];
    for (int with = 0; with < 2; with++) {
        test_scene t;
        selkie_error error;
        selkie_change_def change;
        tank(&t, 2, 1.0, 1.5, 0.0, 1.0 / 24);
        t.scene.time.step = 0.01;
        add_liquid(&t, box_shape(0, 0, 0, 0.35, 0.3, 0));
        use_materials(&t, 500);
        add_body(&t, box_shape(0.5, 1.0, 0, 0.7, 1.2, 0));
        selkie_world *world = make_world_threads(&t.scene, 1);
        for (int n = 0; n < 25; n++) {
            selkie_change_defaults(&change, SELKIE_CHANGE_OBSTACLE);
            change.obstacle.name = "far";
            change.obstacle.shape = box_shape(0.9, 0.0, 0, 1.0, 0.2, 0);
            if (with && n == 5 && selkie_world_change(world, &change, NULL, &error) != SELKIE_OK)
                fail_msg("%s", error.message);
            step_world(world);
        }
        assert_true(selkie_world_statistics(world)->solid_particles > 0);
        height[with] = body_of(world, 0).position[1];
        selkie_world_destroy(world);
    }
    at_most("fall of a box, obstacle added", "height off, m", fabs(height[0] - height[1]), 1e-6);
}

/* Without any liquid a rigid shape still lies on a soft slab: it feels the slab by the pressure. It may bounce. */
static void holds_shape(void **state)
{
    (void)state;
    test_scene t;
    tank(&t, 2, 0.8, 0.6, 0.0, 1.0 / 40);
    use_materials(&t, 1000);
    add_body(&t, box_shape(0.1, 0.0, 0, 0.7, 0.2, 0));
    selkie_body_def *box = add_body(&t, box_shape(0.3, 0.22, 0, 0.5, 0.32, 0));
    box->material = NULL;
    box->density = 500.0;
    selkie_world *world = make_world_threads(&t.scene, 1);
    double lowest = 1.0;
    while (selkie_world_time(world) < 0.6) {
        step_world(world);
        for (int n = 0; n < selkie_world_body_count(world); n++)
            if (body_of(world, n).mass < 20.0) /* the box has 10 kg a metre, the slab 120 */
                lowest = fmin(lowest, body_of(world, n).position[1]);
    }
    between("rigid box on a soft slab", "lowest centre of the box, m", lowest, 0.2, 0.28);
    selkie_world_destroy(world);
}

/* J for a particle of 1 kg: kinetic and potential energy of all points, and the fastest speed. */
static double energy_of(const selkie_world *world, double *fastest)
{
    const sk_soft *soft = world->step.soft;
    double sum = 0.0;
    *fastest = 0.0;
    for (uint32_t k = 0; k < soft->point_count; k++) {
        const double *v = soft->points[k].velocity, speed2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
        sum += 0.5 * speed2 + 9.81 * soft->points[k].position[1];
        *fastest = fmax(*fastest, sqrt(speed2));
    }
    return sum;
}

/* Long steps let the tip of a cone of rubber sag into the floor. A very short one after them must not throw it up: what
 * overlaps is no speed. Gravity acts by the mean of both steps, 0.16 m/s at most, and contacts undo a fifth of an
 * overlap in a long step: 0.2 m/s for one of a cell. */
static void short_step_after_long(void **state)
{
    (void)state;
    test_scene t;
    double before, after;
    selkie_shape cone;
    selkie_error error = {0};
    tank(&t, 3, 1.0, 1.25, 1.0, 0.036);
    use_materials(&t, 1500);
    materials[1].soft.stiffness = 100.0;
    materials[1].soft.deformation = 0.4;
    selkie_shape_defaults(&cone, SELKIE_SHAPE_MESH);
    cone.file = SELKIE_SCENES "/shape_matching/cone.obj";
    cone.translate[0] = cone.translate[2] = 0.5;
    add_body(&t, cone);
    selkie_world *world = make_world_threads(&t.scene, 1);
    for (int n = 0; n < 4; n++) {
        assert_int_equal(selkie_world_step_for(world, 1.0 / 60, &error), SELKIE_OK);
        energy_of(world, &before);
        assert_int_equal(selkie_world_step_for(world, 1e-6, &error), SELKIE_OK);
        energy_of(world, &after);
        at_most("cone on its tip, 17 ms and then 1 us", "speed gained, m/s", after - before, 0.4);
    }
    selkie_world_destroy(world);
}

/* A rigid box of particles lies on the floor while long and short steps take turns, as a set step that does not divide
 * a frame makes them. What a long step leaves of its deviation from the goal is no speed of the short one: a box that
 * fell by 0.1 m never exceeds its speed of 1.4 m/s by more than a step of gravity. */
static void steps_take_turns(void **state)
{
    (void)state;
    test_scene t;
    double fastest, most = 0.0;
    selkie_error error = {0};
    tank(&t, 2, 1.0, 1.0, 0.0, 0.02);
    use_materials(&t, 500);
    materials[1].kind = SELKIE_MATERIAL_RIGID;
    add_body(&t, box_shape(0.4, 0.1, 0, 0.6, 0.3, 0));
    selkie_world *world = make_world_threads(&t.scene, 1);
    for (int n = 0; n < 60; n++) {
        assert_int_equal(selkie_world_step_for(world, n % 2 ? 0.00033 : 0.033, &error), SELKIE_OK);
        energy_of(world, &fastest);
        most = fmax(most, fastest);
    }
    at_most("rigid box, steps of 33 and 0.33 ms in turn", "largest speed, m/s", most, 1.8);
    selkie_world_destroy(world);
}

/* A stiff disc that falls onto the floor, with the default steps: the energy never grows beyond that of the start.
 * Longer steps than the stiffness resolves make it softer, and when liquid speeds the steps up later, what it has
 * stored would grow. */
static void default_step_resolves(void **state)
{
    (void)state;
    test_scene t;
    double fastest;
    tank(&t, 2, 1.0, 1.0, 0.0, 1.0 / 24);
    t.scene.time.fps = 30.0;
    use_materials(&t, 1500);
    materials[1].soft.stiffness = 100.0;
    add_body(&t, sphere_shape(0.5, 0.3, 0.0, 0.25));
    selkie_world *world = make_world_threads(&t.scene, 1);
    const double start = energy_of(world, &fastest);
    double most = start;
    while (selkie_world_time(world) < 0.5) {
        step_world(world);
        at_most("soft disc, default steps", "stiffness times step", 100.0 * world->step.dt, SK_SOFT_ANGLE);
        most = fmax(most, energy_of(world, &fastest));
    }
    at_most("soft disc, default steps", "largest energy over that of the start", most / start, 1.001);
    selkie_world_destroy(world);
}

/* Soft bodies, surface tension and density projection in one scene: the fields of all have room. */
static void many_fields(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        tank(&t, dimension, 1.0, 1.0, 0.5, 1.0 / 16);
        t.scene.volume = SELKIE_VOLUME_IDP;
        t.scene.surface_tension = 0.07;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.3, 0.5));
        use_materials(&t, 500);
        add_body(&t, box_shape(0.4, 0.4, 0.1, 0.6, 0.6, 0.4));
        selkie_world *world = make_world_threads(&t.scene, 1);
        step_world(world);
        selkie_world_destroy(world);
    }
}

/* Particles of liquid in the shape of a rigid box that rain falls on, and below a plate that holds water. */
static void pour_on_plug(int unilateral)
{
    test_scene t;
    int64_t through = 0, inside = 0;
    tank(&t, 2, 1.0, 1.0, 0.0, 1.0 / 32);
    t.scene.time.end = 1.0;
    add_liquid(&t, box_shape(0.1, 0.4, 0, 0.9, 0.8, 0));
    use_materials(&t, 3000);
    materials[1].kind = SELKIE_MATERIAL_RIGID;
    use_pressure(&t, unilateral);
    add_body(&t, box_shape(0.0, 0.1, 0, 1.0, 0.25, 0));
    selkie_world *world = make_world_threads(&t.scene, 1);
    while (!selkie_world_finished(world))
        step_world(world);
    const selkie_attribute_view position = attribute_of(world, "position"), owner = attribute_of(world, "body");
    const double centre = body_of(world, 0).position[1];
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = particle_of(&position, p);
        if (*(const uint32_t *)(const void *)particle_of(&owner, p))
            continue;
        through += (double)x[1] < centre - 0.075;
        inside += fabs((double)x[1] - centre) < 0.075 - 1.0 / 64;
    }
    at_most("water on a plug of 5 cells", "particles below it", (double)through, 0.0);
    at_most("water on a plug of 5 cells", "particles deeper in it than half a cell", (double)inside, 0.0);
    selkie_world_destroy(world);
}

static void holds_liquid(void **state)
{
    (void)state;
    pour_on_plug(0);
    pour_on_plug(1);
}

/* Water at 8 m/s, 5 cells a step, on a plate of particles of 1.5 cells. */
static void hit_plate(int unilateral)
{
    test_scene t;
    int64_t through = 0;
    tank(&t, 2, 1.0, 1.0, 0.0, 1.0 / 32);
    t.scene.time.step = 0.02;
    add_liquid(&t, box_shape(0.3, 0.6, 0, 0.7, 0.9, 0));
    use_materials(&t, 3000);
    t.liquids[0].velocity[1] = -8.0;
    materials[1].kind = SELKIE_MATERIAL_RIGID;
    use_pressure(&t, unilateral);
    add_body(&t, box_shape(0.0, 0.25, 0, 1.0, 0.25 + 1.5 / 32, 0));
    selkie_world *world = make_world_threads(&t.scene, 1);
    for (int n = 0; n < 6; n++)
        step_world(world);
    const selkie_attribute_view position = attribute_of(world, "position"), owner = attribute_of(world, "body");
    const double centre = body_of(world, 0).position[1];
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++)
        through += !*(const uint32_t *)(const void *)particle_of(&owner, p) &&
                   (double)particle_of(&position, p)[1] < centre - 0.5 / 32;
    at_most("fast water on a plate of 1.5 cells", "particles through it", (double)through, 0.0);
    selkie_world_destroy(world);
}

static void fast_liquid_stops(void **state)
{
    (void)state;
    hit_plate(0);
    hit_plate(1);
}

/* The order of the source (Gao et al. 2017, Eqs. 1 to 4) loses spin, which is why it is not the default: 30 to 77 % in
 * 100 steps of a trial in 2D. Momentum stays. */
static void positions_lose_spin(void **state)
{
    (void)state;
    for (int dimension = 2; dimension <= 3; dimension++) {
        test_scene t;
        double before[2][3], after[2][3];
        tank(&t, dimension, 1.0, 1.0, 1.0, 1.0 / 16);
        t.scene.gravity[1] = 0.0;
        t.scene.time.step = 0.01;
        add_liquid(&t, box_shape(0, 0, 0, 1, 0.15, 1));
        use_materials(&t, 800);
        materials[1].soft.scheme = SELKIE_SOFT_POSITION;
        selkie_body_def *body = add_body(&t, box_shape(0.4, 0.4, 0.4, 0.6, 0.7, 0.6));
        body->angular_velocity[2] = 7.0;
        body->velocity[0] = 0.01;
        selkie_world *world = make_world_threads(&t.scene, 2);
        momentum_of(world, before[0], before[1]);
        for (int n = 0; n < 100; n++)
            step_world(world);
        momentum_of(world, after[0], after[1]);
        const double kept = after[1][2] / before[1][2];
        at_most("free spin by positions", "angular momentum kept, part", kept, 0.9);
        at_most("free spin by positions", "angular momentum kept, negative part", -kept, 0.0);
        at_most("free spin by positions", "relative change of momentum", fabs(after[0][0] / before[0][0] - 1.0), 1e-9);
        selkie_world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_spin),         cmocka_unit_test(floats),
        cmocka_unit_test(discs_meet),        cmocka_unit_test(stack_stands),
        cmocka_unit_test(survives_change),   cmocka_unit_test(holds_shape),
        cmocka_unit_test(many_fields),       cmocka_unit_test(short_step_after_long),
        cmocka_unit_test(steps_take_turns),  cmocka_unit_test(default_step_resolves),
        cmocka_unit_test(holds_liquid),      cmocka_unit_test(same_bits),
        cmocka_unit_test(backends_agree),    cmocka_unit_test(putty_flows),
        cmocka_unit_test(fast_liquid_stops), cmocka_unit_test(positions_lose_spin),
        cmocka_unit_test(samplings_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Walls between slip and no slip: a slip length against Couette's and Poiseuille's flow, Coulomb's friction against a
 * sliding block, and the speed of particles under a sliding lid. */
#include "table.h"

enum { CELLS = 16 };

/* A channel of height 1 along x, open at both ends, between two no-slip walls with a slip length. The upper wall is an
 * obstacle with a velocity. Speeds are so small that the liquid stays about where it is. */
static void channel(test_scene *t, int dimension, selkie_method method, double slip_length, double speed)
{
    const double h = 1.0 / CELLS;
    tank(t, dimension, 3, 1 + 4 * h, 4 * h, h);
    selkie_scene_set_method(&t->scene, method);
    t->scene.gravity[1] = 0.0;
    t->scene.viscosity = 1.0;
    t->scene.time.step = 0.01;
    t->scene.domain.walls[0] = t->scene.domain.walls[1] = SELKIE_WALL_OPEN;
    t->scene.domain.walls[2] = SELKIE_WALL_NO_SLIP;
    t->scene.domain.slip_length[2] = slip_length;
    selkie_obstacle_def *lid = add_obstacle(t, box_shape(-10, 1, -10, 10, 3, 10));
    lid->velocity[0] = speed;
    lid->surface = SELKIE_WALL_NO_SLIP;
    lid->slip_length = slip_length;
    add_liquid(t, box_shape(0, 0, 0, 3, 1, 1));
}

/* Velocity along x of the grid, mean over the middle, row by row: the ends reach about a height into the channel. */
static void profile(const selkie_world *world, double u[CELLS])
{
    selkie_field_view field = field_of(world, "velocity_x");
    const int values = field.extent[0] * field.extent[1] * field.extent[2];
    int counts[CELLS] = {0};
    memset(u, 0, CELLS * sizeof *u);
    for (int b = 0; b < field.block_count; b++)
        for (int n = 0; n < values; n++) {
            int cell[3];
            cell_of(&field, b, n, cell);
            const float value = field.data[(size_t)b * (size_t)values + (size_t)n];
            if (cell[1] < 0 || cell[1] >= CELLS || cell[0] < 11 * CELLS / 8 || cell[0] > 13 * CELLS / 8 ||
                value != value)
                continue;
            u[cell[1]] += value;
            counts[cell[1]]++;
        }
    for (int j = 0; j < CELLS; j++)
        u[j] /= counts[j];
}

/* Couette: u = U (y + b) / (1 + 2 b). The lid's mean over the profile's error is the transfers'. */
static void couette_slips(void **state)
{
    (void)state;
    static const double lengths[] = {0.0, 0.02, 0.1, 0.5};
    static const selkie_method methods[] = {SELKIE_METHOD_APIC, SELKIE_METHOD_FLIP, SELKIE_METHOD_APIC};
    const double speed = 0.05;
    for (int m = 0; m < 3; m++)
        for (int n = m == 2 ? 2 : 0; n < (m == 2 ? 3 : 4); n++) {
            test_scene t;
            double u[CELLS], worst = 0.0;
            const double b = lengths[n];
            channel(&t, m == 2 ? 3 : 2, methods[m], b, speed);
            selkie_world *world = make_world(&t);
            run_until(world, 0.8 * (1.0 + 2.0 * b));
            profile(world, u);
            for (int j = 0; j < CELLS; j++)
                worst = fmax(worst, fabs(u[j] / speed - ((j + 0.5) / CELLS + b) / (1.0 + 2.0 * b)));
            char what[64];
            snprintf(what, sizeof what, "Couette %dD %s, slip length %g", t.scene.domain.dimension,
                     method_name(methods[m]), b);
            at_most(what, "profile, largest error / U", worst, 0.02);
            selkie_world_destroy(world);
        }
}

/* Poiseuille, driven by gravity along the channel: u = g (y (1 - y) + b) / (2 nu). The open ends rub less, and the flux
 * is the same everywhere, so the flow is 3 % faster than in an endless channel: the profile is compared over its mean.
 */
static void poiseuille_slips(void **state)
{
    (void)state;
    const double gravity = 0.2;
    for (int n = 0; n < 2; n++) {
        test_scene t;
        double u[CELLS], worst = 0.0, mean = 0.0;
        const double b = n ? 0.1 : 0.0;
        char what[64];
        snprintf(what, sizeof what, "Poiseuille 2D APIC, slip length %g", b);
        channel(&t, 2, SELKIE_METHOD_APIC, b, 0.0);
        t.scene.gravity[0] = gravity;
        selkie_world *world = make_world(&t);
        run_until(world, 1.0);
        profile(world, u);
        for (int j = 0; j < CELLS; j++)
            mean += u[j] / CELLS;
        for (int j = 0; j < CELLS; j++) {
            const double y = (j + 0.5) / CELLS, exact = (y * (1.0 - y) + b) / (1.0 / 6.0 + b);
            worst = fmax(worst, fabs(u[j] / mean - exact));
        }
        note(what, "mean / exact", mean / (0.5 * gravity * (1.0 / 6.0 + b)));
        at_most(what, "profile, largest error / mean", worst, 0.02);
        selkie_world_destroy(world);
    }
}

/* A block of pitch slides down a plane with friction mu: its centre has the acceleration g (sin a - mu cos a). It is so
 * thick that it moves like a solid. 8 %: the pressure of one cell in sixteen, at its ends, is in doubt. Gravity is
 * tilted; the plane is the floor or the top of an obstacle. */
static void block_slides(void **state)
{
    (void)state;
    const double h = 1.0 / 32, angle = 30.0 * M_PI / 180.0, friction = 0.2, time = 0.3;
    const double exact = GRAVITY * (sin(angle) - friction * cos(angle));
    for (int n = 0; n < 4; n++) {
        const int on_obstacle = n == 1, unilateral = n == 2, dimension = n == 3 ? 3 : 2;
        const double floor = on_obstacle ? 2.5 * h : 0.0;
        test_scene t;
        tank(&t, dimension, 2, 0.5, n == 3 ? 8 * h : 4 * h, h);
        selkie_scene_set_method(&t.scene, SELKIE_METHOD_APIC);
        t.scene.gravity[0] = GRAVITY * sin(angle);
        t.scene.gravity[1] = -GRAVITY * cos(angle);
        t.scene.dynamic_viscosity = 1e5;
        t.scene.time.step = 0.0025;
        t.scene.domain.liquid_friction[2] = on_obstacle ? 0.0 : friction;
        if (unilateral) {
            t.scene.incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
            t.scene.volume = SELKIE_VOLUME_NONE;
        }
        if (on_obstacle)
            add_obstacle(&t, box_shape(-1, -1, -1, 3, floor, 3))->liquid_friction = friction;
        add_liquid(&t, box_shape(0.25, floor, 0, 0.75, floor + 0.25, 1));
        selkie_world *world = make_world(&t);
        const double start = sum_particles(world, NULL).position[0];
        run_until(world, time);
        const double way = sum_particles(world, NULL).position[0] - start;
        char what[80];
        snprintf(what, sizeof what, "block on a plane %dD%s%s", dimension, on_obstacle ? ", obstacle" : "",
                 unilateral ? ", unilateral" : "");
        note(what, "way without friction / exact", sin(angle) * GRAVITY / exact);
        between(what, "way / exact", way / (0.5 * exact * time * time), 0.92, 1.08);
        selkie_world_destroy(world);
    }
}

/* Largest speed of a particle over that of the lid. */
static double fastest_under_lid(selkie_method method, double viscosity, int dimension)
{
    const double h = 1.0 / 32, speed = 1.0;
    double fastest = 0.0;
    test_scene t;
    tank(&t, dimension, 1, 1 + 4 * h, 8 * h, h);
    set_walls(&t, SELKIE_WALL_NO_SLIP);
    t.scene.gravity[1] = 0.0;
    selkie_scene_set_method(&t.scene, method);
    t.scene.viscosity = viscosity;
    add_liquid(&t, box_shape(0, 0, 0, 1, 1, 1));
    selkie_obstacle_def *lid = add_obstacle(&t, box_shape(-40, 1, -1, 3, 3, 3));
    lid->velocity[0] = speed;
    lid->surface = SELKIE_WALL_NO_SLIP;
    selkie_world *world = make_world(&t);
    while (selkie_world_time(world) < 2.0) {
        step_world(world);
        fastest = fmax(fastest, selkie_world_statistics(world)->max_speed / speed);
    }
    selkie_world_destroy(world);
    return fastest;
}

static void lid_is_fastest(void **state)
{
    (void)state;
    static const double viscosities[] = {0.01, 1e-3, 0.0};
    for (int dimension = 2; dimension <= 2; dimension++)
        for (int n = 0; n < 3; n++) {
            char what[64];
            snprintf(what, sizeof what, "sliding lid %dD FLIP, viscosity %g", dimension, viscosities[n]);
            at_most(what, "fastest particle / lid", fastest_under_lid(SELKIE_METHOD_FLIP, viscosities[n], dimension),
                    1.002);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(couette_slips), cmocka_unit_test(poiseuille_slips),
                                       cmocka_unit_test(block_slides), cmocka_unit_test(lid_is_fastest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

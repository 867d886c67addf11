/* Drag of a square that is towed through viscous liquid at rest, at a Reynolds number of 100.
 *
 * Sharma and Eswaran (Numerical Heat Transfer A 45, 2004) give a mean drag coefficient of 1.494 for a square cylinder
 * with its side to the flow, with 5 % of the section blocked; Sohankar et al. (1998) 1.478. */
#include "physics.h"

static void towed_square(void **state)
{
    (void)state;
    const double h = 0.1, length = 24.0, width = 12.0, nu = 0.01; /* lengths in sides, speeds in towing speeds */
    test_scene t;
    tank(&t, 2, length, width, 1, h);
    set3(t.scene.gravity, 0, 0, 0);
    t.scene.volume = SELKIE_VOLUME_IDP;
    t.scene.particles.per_cell = 4;
    t.scene.viscosity = nu;
    t.scene.time.fps = 2.0;
    add_liquid(&t, box_shape(0, 0, 0, length, width, 1));
    selkie_obstacle_def *square = add_obstacle(&t, box_shape(20.0, 0.5 * width - 0.5, 0, 21.0, 0.5 * width + 0.5, 1));
    square->name = "square";
    square->surface = SELKIE_WALL_NO_SLIP;
    square->velocity[0] = -1.0;
    add_probe(&t, "force", SELKIE_PROBE_FORCE, 0, 0, 0)->on = "square";
    selkie_world *world = make_world(&t);
    double drag = 0.0, time = 0.0;
    while (selkie_world_time(world) < 16.0) {
        step_world(world);
        if (selkie_world_time(world) <= 8.0)
            continue;
        const double dt = selkie_world_statistics(world)->dt;
        drag += dt * selkie_world_probe_value(world, 0) / (0.5 * 1000.0);
        time += dt;
    }
    note("towed square, Re 100", "drag coefficient", drag / time);
    at_most("towed square, Re 100", "drag coefficient / 1.494 - 1", fabs(drag / time / 1.494 - 1.0), 0.1);
    selkie_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(towed_square)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

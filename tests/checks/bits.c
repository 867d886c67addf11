/* What must not show in a result: the number of threads, a stop in between, the origin, the order of the axes. */
#include "checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A dam, a tap, a drain and a turning paddle: as many phases as one scene can hold. */
static void busy_scene(check_scene *t, const check_run *run)
{
    scene_tank(t, run, 28, 24, 10);
    t->scene.viscosity = 1e-4;
    scene_liquid(t, shape_box(0, 0, 0, 9, 12, 10));
    set3(scene_source(t, shape_ball(22, 19, 5, 2.2))->velocity, -1.0, -1.0, 0.0);
    scene_drain(t, shape_box(25, 0, 0, 28, 2, 10));
    selkie_obstacle_def *wheel = scene_obstacle(t, shape_box(14, 4, 2, 17, 8, 8));
    wheel->angular_velocity[2] = 3.0;
    set3(wheel->center, 15.5 * CELL, 6 * CELL, run->dimension == 3 ? 5 * CELL : 0.0);
}

static void threads(check_run *run)
{
    const int steps = run->dimension == 2 ? 60 : 25;
    uint64_t hash[3] = {0, 0, 0};
    for (int n = 0; n < 3; n++) {
        check_scene t;
        busy_scene(&t, run);
        selkie_world *world = world_make(run, &t, n + 1);
        if (!world)
            return;
        for (int k = 0; k < steps; k++)
            if (!world_step(run, world))
                break;
        hash[n] = world_hash(world);
        selkie_world_destroy(world);
    }
    run_measure(run, "numbers of threads whose bits differ from those of one",
                (hash[0] != hash[1]) + (hash[0] != hash[2]), 0.0);
}

static void resume(check_run *run)
{
    const int steps = run->dimension == 2 ? 30 : 12;
    char path[] = "/tmp/selkie_checks_XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) {
        run_fail(run, "no file could be made in /tmp");
        return;
    }
    close(file);

    /* One world goes on; the other starts from the file in between. */
    check_scene t[2];
    selkie_world *world[2] = {NULL, NULL};
    selkie_error error = {0};
    for (int n = 0; n < 2; n++) {
        busy_scene(&t[n], run);
        world[n] = world_make(run, &t[n], 1);
    }
    for (int k = 0; k < steps && world[0]; k++)
        if (!world_step(run, world[0]))
            break;
    if (world[0] && world[1] &&
        (selkie_world_save(world[0], path, &error) != SELKIE_OK ||
         selkie_world_load(world[1], path, &error) != SELKIE_OK))
        run_fail(run, "%s", error.message);
    for (int k = 0; k < steps && !run->failed; k++)
        if (!world_step(run, world[0]) || !world_step(run, world[1]))
            break;
    if (world[0] && world[1])
        run_measure(run, "runs that differ after a resume", world_hash(world[0]) != world_hash(world[1]), 0.0);
    selkie_world_destroy(world[0]);
    selkie_world_destroy(world[1]);
    unlink(path);
}

/* What a run came to, without its frame. */
typedef struct outcome {
    double kinetic, potential; /* J, potential energy against the start */
    double center[3];          /* cells */
    double volume;             /* kernel volume over that of the start */
    double unit;               /* J: m g H */
} outcome;

static outcome run_dam(check_run *run, const double origin[3], const int axis[3])
{
    check_scene t;
    outcome result = {0};
    scene_tank(&t, run, 24, 20, 8);
    t.scene.particles.arrangement = SELKIE_ARRANGEMENT_LATTICE; /* drawn places differ when the axes change places */
    scene_liquid(&t, shape_box(0, 0, 0, 9, 12, 8));
    memcpy(t.origin, origin, sizeof t.origin);
    memcpy(t.axis, axis, sizeof t.axis);
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return result;
    const selkie_statistics *s = selkie_world_statistics(world);
    const double start = s->potential_energy;
    result.unit = world_mass(world) * GRAVITY * 12 * CELL;
    if (world_run_until(run, world, 0.3)) {
        const particle_sums sums = world_sums(world, &t, NULL);
        result.kinetic = s->kinetic_energy;
        result.potential = s->potential_energy - start;
        result.volume = s->volume_ratio;
        for (int d = 0; d < 3; d++)
            result.center[d] = sums.position[d] / CELL;
    }
    selkie_world_destroy(world);
    return result;
}

static void compare(check_run *run, outcome a, outcome b, double bound)
{
    double off = 0.0;
    for (int d = 0; d < 3; d++)
        off = fmax(off, fabs(a.center[d] - b.center[d]));
    run_measure(run, "difference of kinetic energy / (m g H)", fabs(a.kinetic - b.kinetic) / a.unit, bound);
    run_measure(run, "difference of potential energy / (m g H)", fabs(a.potential - b.potential) / a.unit, bound);
    run_measure(run, "difference of volume", fabs(a.volume - b.volume), bound);
    if (bound > 0.0)
        run_measure(run, "difference of the centre of mass, cells", off, 10.0 * bound);
}

static const int upright[3] = {0, 1, 2};
static const double zero[3] = {0, 0, 0};

/* Rounding changes the sums of a grid method by 1e-6. The solve of SPH stops at a density error of 1e-3, and rounding
 * decides at which iteration. */
static double near_bound(const check_run *run)
{
    return run->method->kind == CLASS_SPH ? 5e-3 : 1e-4;
}

/* A world works in coordinates relative to its origin: no bit changes. */
static void origin_near(check_run *run)
{
    const double near[3] = {64 * CELL, -32 * CELL, run->dimension == 3 ? 16 * CELL : 0.0};
    compare(run, run_dam(run, zero, upright), run_dam(run, near, upright), 0.0);
}

/* 2^20 m: positions of single precision that count from the scene's zero would lie 4 cells apart there. */
static void origin_far(check_run *run)
{
    const double far[3] = {1048576.0, -1048576.0, run->dimension == 3 ? 1048576.0 : 0.0};
    compare(run, run_dam(run, zero, upright), run_dam(run, far, upright), 0.0);
}

/* Sums run along x first, so rounding differs. */
static void axes(check_run *run)
{
    static const int turned[2][3] = {{1, 2, 0}, {2, 0, 1}}, swapped[3] = {1, 0, 2};
    const outcome a = run_dam(run, zero, upright);
    for (int n = 0; n < (run->dimension == 3 ? 2 : 1) && !run->failed; n++)
        compare(run, a, run_dam(run, zero, run->dimension == 3 ? turned[n] : swapped), near_bound(run));
}

enum { ONE = STEP_DEFAULT, TWO = STEP_DEFAULT | STEP_5_MS };

static const check checks[] = {
    {"threads", "the same bits on 1, 2 and 3 threads", threads, {TWO, ONE}, {ONE, ONE}, {ONE, 0}},
    {"resume", "the same bits when saved and loaded half-way", resume, {TWO, ONE}, {ONE, ONE}, {ONE, 0}},
    {"origin-near", "no change when the origin moves by 64 cells", origin_near, {TWO, ONE}, {ONE, 0}, {ONE, 0}},
    {"origin-far", "no change when the origin moves by 1,048,576 m", origin_far, {TWO, ONE}, {ONE, 0}, {ONE, 0}},
    {"axes", "no change when the axes change places", axes, {TWO, TWO}, {ONE, ONE}, {ONE, 0}},
};

const family bits_family = {"bits", checks, sizeof checks / sizeof *checks};

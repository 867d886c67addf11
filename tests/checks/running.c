/* A method runs at any step, and from a tap to an empty tank. */
#include "checks.h"

#include <math.h>

/* A dam breaks over a ball. A run has failed when a step does, when a number is not finite, when energy explodes, or
 * when the world warns that it is spoilt. */
static void steps(check_run *run)
{
    check_scene t;
    scene_tank(&t, run, run->dimension == 2 ? 32 : 24, 24, 8);
    scene_liquid(&t, shape_box(0, 0, 0, 9, 14, 8));
    scene_obstacle(&t, shape_ball(16.3, 3.2, 4.0, 2.1));
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const double unit = world_mass(world) * GRAVITY * 14 * CELL, start = world_energy(world);
    double above = 0.0;
    while (selkie_world_time(world) < 2.0 * (1 - 1e-9) && world_step(run, world))
        above = fmax(above, world_energy(world) - start);
    const char *warning = selkie_world_warning(world);
    if (warning)
        run_fail(run, "%s", warning);
    run_measure(run, "numbers that are not finite", (double)world_sums(world, &t, NULL).not_finite, 0.0);
    run_measure(run, "energy above the start / (m g H)", above / unit, 0.05);
    selkie_world_destroy(world);
}

/* A tap of 1 m/s that runs for 1 s over a tank whose floor is a drain from 1.5 s on. */
typedef struct tap_result {
    int64_t emitted, drained, left;
    double volume; /* m3 emitted, in 2D for a depth of one metre */
    double wanted; /* m3 */
} tap_result;

static tap_result run_tap(check_run *run)
{
    check_scene t;
    tap_result result = {0};
    const double speed = 1.0, width = 6 * CELL, deep = run->dimension == 3 ? 6 * CELL : 1.0;
    scene_tank(&t, run, 20, 24, 12);
    selkie_source_def *tap = scene_source(&t, shape_box(7, 18, 3, 13, 20, 9));
    tap->velocity[1] = -speed;
    tap->end = 1.0;
    scene_drain(&t, shape_box(0, 0, 0, 20, 2, 12))->start = 1.5;
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return result;
    if (world_run_until(run, world, 3.0)) {
        const selkie_statistics *s = selkie_world_statistics(world);
        result.emitted = s->emitted;
        result.drained = s->drained;
        result.left = selkie_world_particle_count(world);
        result.volume = (double)s->emitted * selkie_world_particle_mass(world) / 1000.0;
        result.wanted = width * deep * (speed * 1.0 + 2 * CELL); /* the tap itself is full at the end */
    }
    selkie_world_destroy(world);
    return result;
}

static void tap_drain(check_run *run)
{
    const tap_result r = run_tap(run);
    run_measure(run, "particles that no count explains", fabs((double)(r.emitted - r.drained - r.left)), 0.0);
    run_measure(run, "share that the drain left", r.emitted ? (double)r.left / (double)r.emitted : NAN, 0.01);
}

/* A tap in the air, for 0.4 s: its shape is full at the start, then it emits its section times its speed. */
typedef struct stream {
    const char *measure;
    selkie_shape shape;
    double velocity[2]; /* m/s */
    double flow_rate;   /* m3/s, in 2D m2/s; 0 = from the velocity */
    double viscosity;   /* m2/s */
    double section;     /* m2, in 2D m */
    double content;     /* m3 in the shape, in 2D m2 */
} stream;

static void run_stream(check_run *run, const stream *s)
{
    check_scene t;
    const double time = 0.4, speed = hypot(s->velocity[0], s->velocity[1]);
    const double rate = s->flow_rate > 0.0 ? s->flow_rate : s->section * speed;
    scene_tank(&t, run, 20, 24, 12);
    selkie_source_def *tap = scene_source(&t, s->shape);
    set3(tap->velocity, s->velocity[0], s->velocity[1], 0.0);
    tap->flow_rate = s->flow_rate;
    t.scene.viscosity = s->viscosity;
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    if (world_run_until(run, world, time)) {
        const double emitted = (double)selkie_world_statistics(world)->emitted;
        const double volume = emitted * selkie_world_particle_mass(world) / 1000.0;
        run_measure(run, s->measure, fabs(volume / (s->content + rate * time) - 1.0), 0.01);
    }
    selkie_world_destroy(world);
}

static void tap_flow(check_run *run)
{
    const int solid = run->dimension == 3;
    const double pi = 3.14159265358979323846, r = 3.2 * CELL, section = 6 * CELL * (solid ? 6 * CELL : 1.0);
    const double disc = solid ? pi * r * r : 2.0 * r, ball = solid ? 4.0 / 3.0 * pi * r * r * r : pi * r * r;
    const selkie_shape box = shape_box(7, 18, 3, 13, 20, 9);
    const stream slow = {"error of the volume of a slow tap", box, {0, -0.2}, 0.0, 0.0, section, 2 * CELL * section};
    stream viscous = slow;
    viscous.measure = "error of the volume of a slow viscous tap";
    viscous.viscosity = 1.0;
    const stream tilted = {"error of the volume of a tilted flow from a ball",
                           shape_ball(8.1, 16.3, 6.2, 3.2),
                           {2, -1},
                           0.5 * disc,
                           0.0,
                           disc,
                           ball};
    const tap_result tap = run_tap(run);
    run_measure(run, "error of the volume emitted / (section x speed x time)", fabs(tap.volume / tap.wanted - 1.0),
                0.01);
    run_stream(run, &slow);
    run_stream(run, &viscous);
    run_stream(run, &tilted);
}

enum { FOUR = STEP_1_MS | STEP_5_MS | STEP_10_MS | STEP_20_MS, TWO = STEP_DEFAULT | STEP_20_MS, ONE = STEP_DEFAULT };

static const check checks[] = {
    {"steps",
     "a dam breaks over a ball at steps of 1, 5, 10 and 20 ms",
     steps,
     {FOUR, STEP_5_MS | STEP_20_MS},
     {STEP_5_MS | STEP_10_MS | STEP_20_MS, STEP_20_MS},
     {STEP_1_MS, 0}},
    {"tap-drain",
     "a tap fills a tank, a drain empties it, and every particle is accounted for",
     tap_drain,
     {TWO, ONE},
     {ONE, 0},
     {ONE, 0}},
    {"tap-flow", "a tap gives what it should, within 1 %", tap_flow, {TWO, ONE}, {ONE, 0}, {ONE, 0}},
};

const family running_family = {"running", checks, sizeof checks / sizeof *checks};

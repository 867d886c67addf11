/* Water at rest stays at rest: 20 s, largest speed after 10 s, no growth of energy. */
#include "checks.h"

#include <math.h>

typedef enum rest_kind {
    REST_LEVEL,
    REST_BETWEEN,
    REST_BALL,
    REST_BALL_BETWEEN,
    REST_VOXEL,
    REST_SLOPE,
    REST_SHELF
} rest_kind;

/* 12 cells deep in 2D and 6 in 3D; for SPH, where a cell is two spacings, half of that. Between faces: where the level
 * lies in the half of a cell whose centre is dry. */
static double rest_scene(check_scene *t, const check_run *run, rest_kind kind)
{
    const int flat = run->dimension == 2, half = run->method->kind == CLASS_SPH;
    const int width = flat ? (half ? 10 : 16) : (half ? 5 : 8), depth = flat ? (half ? 6 : 12) : (half ? 4 : 6);
    const int between = kind == REST_BETWEEN || kind == REST_BALL_BETWEEN;
    const double level = depth + (between ? 0.375 : 0.0);
    scene_tank(t, run, width, depth + 6, width);
    scene_liquid(t, shape_box(0, kind == REST_SHELF ? 3.3 : 0, 0, width, level, width));
    if (kind == REST_BALL || kind == REST_BALL_BETWEEN || kind == REST_VOXEL)
        scene_obstacle(t, shape_ball(0.51 * width, 0.45 * depth, 0.48 * width, 0.25 * depth));
    if (kind == REST_SLOPE)
        scene_obstacle(t, shape_below(0.4 * width, 0.1, 1.0, 2.0));
    if (kind == REST_SHELF) {
        const double thickness = run->step > 0.0 ? 0.6 : 1.0, top = 3.3;
        scene_obstacle(t, shape_box(-1, top - thickness, -1, width + 1, top, width + 1));
    }
    if (kind == REST_VOXEL)
        t->scene.pressure.surface = SELKIE_SURFACE_VOXEL;
    return level * CELL;
}

/* Bounds: waves of 1 % of the natural speed are below what a viewer sees; particles of SPH are never quite still: 3 %.
 * Energy may grow by 1e-3 of m g H at 24 cells of depth, a lift of the whole pool by 0.024 cells, which evening out a
 * jittered start may cost. The same lift is a larger share of a shallower pool. */
static void rest(check_run *run, rest_kind kind)
{
    check_scene t;
    const double depth = rest_scene(&t, run, kind);
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const double unit = world_mass(world) * GRAVITY * depth, start = world_energy(world);
    double speed = 0.0, growth = 0.0;
    while (selkie_world_time(world) < 20.0 * (1 - 1e-9) && world_step(run, world)) {
        growth = fmax(growth, world_energy(world) - start);
        if (selkie_world_time(world) > 10.0)
            speed = fmax(speed, selkie_world_statistics(world)->max_speed);
    }
    run_measure(run, "largest speed after 10 s / sqrt(g H)", speed / sqrt(GRAVITY * depth),
                run->method->kind == CLASS_SPH ? 0.03 : 0.01);
    run_measure(run, "growth of energy / (m g H)", growth / unit, 1e-3 * fmax(1.0, 24.0 * CELL / depth));
    selkie_world_destroy(world);
}

static void rest_level(check_run *run)
{
    rest(run, REST_LEVEL);
}

static void rest_between(check_run *run)
{
    rest(run, REST_BETWEEN);
}

static void rest_ball(check_run *run)
{
    rest(run, REST_BALL);
}

static void rest_ball_between(check_run *run)
{
    rest(run, REST_BALL_BETWEEN);
}

static void rest_voxel(check_run *run)
{
    rest(run, REST_VOXEL);
}

static void rest_slope(check_run *run)
{
    rest(run, REST_SLOPE);
}

static void rest_shelf(check_run *run)
{
    rest(run, REST_SHELF);
}

enum { TWO = STEP_DEFAULT | STEP_20_MS, THREE = TWO | STEP_5_MS, FOUR = THREE | STEP_1_MS };

static const check checks[] = {
    {"rest-level",
     "a pool whose level lies on a face stays at rest for 20 s",
     rest_level,
     {THREE, TWO},
     {TWO, 0},
     {0, 0}},
    {"rest-between", "the same with a level between faces", rest_between, {FOUR, TWO}, {TWO, 0}, {STEP_DEFAULT, 0}},
    {"rest-ball", "the same with a ball under water", rest_ball, {THREE, TWO}, {TWO, 0}, {STEP_DEFAULT, 0}},
    {"rest-ball-between",
     "a ball under water and a level between faces",
     rest_ball_between,
     {THREE, TWO},
     {STEP_DEFAULT, 0},
     {0, 0}},
    {"rest-voxel", "the same with the voxel surface condition", rest_voxel, {THREE, TWO}, {TWO, 0}, {0, 0}},
    {"rest-slope", "the same over a floor that slopes by 27 degrees", rest_slope, {THREE, TWO}, {TWO, 0}, {0, 0}},
    {"rest-shelf",
     "the same on a shelf of one cell (20 ms: 0.6), with air below",
     rest_shelf,
     {TWO, STEP_DEFAULT},
     {STEP_DEFAULT, 0},
     {0, 0}},
};

const family rest_family = {"rest", checks, sizeof checks / sizeof *checks};

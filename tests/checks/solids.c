/* Liquid stays out of solids, thick, thin and fast: not one particle inside or through. */
#include "checks.h"

#include <math.h>

/* m: how far a particle may lie below a surface without being inside: rounding, and for SPH half a spacing, since a
 * surface of boundary particles is only known to that. */
static double skin(const check_run *run, const check_scene *t)
{
    return run->method->kind == CLASS_SPH ? 0.5 * selkie_scene_spacing(&t->scene) : 1e-3 * CELL;
}

/* Where a solid is, for counting: a box that moves along x, or a ball. Metres, seconds. */
typedef struct solid {
    double low[3], high[3], speed;
    double center[3], radius;
} solid;

static int is_inside(const solid *s, const double x[3], double time, int dimension, double margin)
{
    double r2 = 0.0;
    int inside = 1;
    for (int d = 0; d < dimension; d++) {
        const double move = d == 0 ? s->speed * time : 0.0;
        r2 += (x[d] - s->center[d]) * (x[d] - s->center[d]);
        inside &= x[d] > s->low[d] + move + margin && x[d] < s->high[d] + move - margin;
    }
    return s->radius > 0.0 ? r2 < (s->radius - margin) * (s->radius - margin) : inside;
}

/* Largest number of particles inside at the end of any step. */
static void watch(check_run *run, check_scene *t, const solid *s, double end)
{
    selkie_world *world = world_make(run, t, 1);
    if (!world)
        return;
    const double margin = skin(run, t);
    int64_t most = 0;
    while (selkie_world_time(world) < end * (1 - 1e-9) && world_step(run, world)) {
        const particle_reader reader = reader_make(world, t);
        int64_t inside = 0;
        double x[3], v[3];
        for (int64_t p = 0; p < reader.count; p++)
            if (reader_get(&reader, p, x, v))
                inside += is_inside(s, x, selkie_world_time(world), run->dimension, margin);
        most = inside > most ? inside : most;
    }
    run_measure(run, "particles inside the solid", (double)most, 0.0);
    selkie_world_destroy(world);
}

static void thick(check_run *run, int ball)
{
    check_scene t;
    solid s = {.radius = 0.0};
    const int width = run->dimension == 2 ? 32 : 24;
    scene_tank(&t, run, width, 24, 10);
    scene_liquid(&t, shape_box(0, 0, 0, 9, 14, 10));
    scene_obstacle(&t, ball ? shape_ball(16.3, 3.2, 4.9, 3.1) : shape_box(14.3, -1, -2, 18.6, 5.4, 20));
    const selkie_shape *shape = &t.obstacles[0].shape;
    for (int d = 0; d < 3; d++) {
        s.low[d] = shape->min[d];
        s.high[d] = shape->max[d];
        s.center[d] = shape->center[d];
    }
    s.radius = ball ? shape->radius : 0.0;
    watch(run, &t, &s, 1.5);
}

static void solid_box(check_run *run)
{
    thick(run, 0);
}

static void solid_ball(check_run *run)
{
    thick(run, 1);
}

/* A pool on a shelf from wall to wall; nothing may reach the room below. The shelf lies between faces, so that faces
 * alone do not hold the water. */
static void plate(check_run *run, double cells)
{
    check_scene t;
    const int width = run->dimension == 2 ? 16 : 10;
    const double top = 10.8; /* half a cell below it lies no face */
    scene_tank(&t, run, width, 22, width);
    scene_liquid(&t, shape_box(0, top, 0, width, top + 6, width));
    scene_obstacle(&t, shape_box(-4, top - cells, -4, width + 4, top, width + 4));
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const double margin = skin(run, &t);
    if (world_run_until(run, world, 1.0)) {
        const particle_reader reader = reader_make(world, &t);
        int64_t through = 0, inside = 0;
        double x[3], v[3];
        for (int64_t p = 0; p < reader.count; p++) {
            if (!reader_get(&reader, p, x, v))
                continue;
            through += !(x[1] > (top - cells) * CELL);
            inside += x[1] > (top - cells) * CELL && x[1] < top * CELL - margin;
        }
        run_measure(run, "particles through the plate", (double)through, 0.0);
        run_measure(run, "particles inside the plate", (double)inside, 0.0);
    }
    selkie_world_destroy(world);
}

static void plate_2(check_run *run)
{
    plate(run, 2.0);
}

static void plate_1(check_run *run)
{
    plate(run, 1.0);
}

static void plate_half(check_run *run)
{
    plate(run, 0.5);
}

/* A plate of two cells, as high and deep as the tank, drives a pool before it. */
static void paddle(check_run *run, double speed)
{
    check_scene t;
    const int flat = run->dimension == 2;
    const double way = 24, end = way * CELL / speed;
    scene_tank(&t, run, 48, flat ? 24 : 16, 8);
    scene_liquid(&t, shape_box(10, 0, 0, 20, 8, 8));
    scene_obstacle(&t, shape_box(4.3, -4, -4, 6.3, 40, 20))->velocity[0] = speed;
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    if (world_run_until(run, world, end)) {
        const particle_reader reader = reader_make(world, &t);
        const double front = 6.3 * CELL + speed * selkie_world_time(world) - skin(run, &t);
        int64_t behind = 0;
        double x[3], v[3];
        for (int64_t p = 0; p < reader.count; p++)
            if (reader_get(&reader, p, x, v))
                behind += !(x[0] > front);
        run_measure(run, "particles in or behind the paddle", (double)behind, 0.0);
    }
    selkie_world_destroy(world);
}

static void paddle_slow(check_run *run)
{
    paddle(run, 2.0);
}

static void paddle_fast(check_run *run)
{
    paddle(run, 20.0);
}

enum { THREE = STEP_DEFAULT | STEP_5_MS | STEP_20_MS, TWO = STEP_DEFAULT | STEP_20_MS, ONE = STEP_DEFAULT };

static const check checks[] = {
    {"solid-box", "a dam breaks over a box: none inside", solid_box, {THREE, TWO}, {TWO, ONE}, {ONE, 0}},
    {"solid-ball", "a dam breaks over a ball: none inside", solid_ball, {THREE, TWO}, {TWO, ONE}, {ONE, 0}},
    {"plate-2", "a shelf of 2 cells holds a pool: none inside or through", plate_2, {THREE, ONE}, {TWO, 0}, {ONE, 0}},
    {"plate-1", "a shelf of 1 cell", plate_1, {THREE, ONE}, {TWO, 0}, {ONE, 0}},
    {"plate-half", "a shelf of half a cell", plate_half, {THREE, ONE}, {TWO, 0}, {ONE, 0}},
    {"paddle", "a paddle of 2 cells at 2 m/s leaves none behind", paddle_slow, {THREE, ONE}, {TWO, 0}, {ONE, 0}},
    {"paddle-fast", "the same at 20 m/s", paddle_fast, {STEP_DEFAULT | STEP_5_MS, ONE}, {ONE, 0}, {ONE, 0}},
};

const family solids_family = {"solids", checks, sizeof checks / sizeof *checks};

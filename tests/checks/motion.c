/* What motion must keep: free fall is a parabola; mass, momentum and energy stay. */
#include "checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double norm(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* A block far from walls goes where its start and gravity send it. Velocities: rounding of single precision, as in
 * docs/manual/validation.md; the lattice of SPH is within its density tolerance of rest, not at it. The centre of mass:
 * a thousandth of a cell, since some methods move particles apart. */
static void flight(check_run *run, int gravity, double end)
{
    check_scene t;
    scene_tank(&t, run, 40, 70, 40);
    if (!gravity)
        scene_no_gravity(&t);
    const double start[3] = {0.7, 0.4, run->dimension == 3 ? 0.2 : 0.0};
    memcpy(scene_liquid(&t, shape_box(10.2, 50, 10, 18, 58.6, 18))->velocity, start, sizeof start);
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const particle_sums before = world_sums(world, &t, NULL);
    if (world_run_until(run, world, end)) {
        const particle_sums after = world_sums(world, &t, NULL);
        const double time = selkie_world_time(world);
        double off[3];
        for (int d = 0; d < 3; d++) {
            const double way = start[d] * time - (gravity && d == 1 ? 0.5 * GRAVITY * time * time : 0.0);
            off[d] = after.position[d] - before.position[d] - way;
        }
        const double speed = gravity ? GRAVITY * time : norm(start);
        run_measure(run, "centre of mass off its path, cells", norm(off) / CELL, 1e-3);
        run_measure(run, "a particle's velocity off the mean / speed", after.spread / speed,
                    run->method->kind == CLASS_SPH ? 2e-4 : 2e-5);
        run_measure(run, "particles lost or gained", fabs((double)(after.count - before.count)), 0.0);
    }
    selkie_world_destroy(world);
}

static void fall(check_run *run)
{
    flight(run, 1, 0.4);
}

static void drift(check_run *run)
{
    flight(run, 0, 0.4);
}

/* A dam in a tank, 16 cells high; the start of several checks. */
static void dam_scene(check_scene *t, const check_run *run)
{
    const int flat = run->dimension == 2, width = flat ? 32 : 20;
    scene_tank(t, run, width, flat ? 28 : 20, 8);
    scene_liquid(t, shape_box(0, 0, 0, flat ? 10 : 7, flat ? 16 : 12, 8));
}

/* Every id is there once, and no particle is anywhere else than in the tank. */
static void judge_ids(check_run *run, const selkie_world *world, const check_scene *t, int64_t start)
{
    selkie_attribute_view id;
    const int64_t count = selkie_world_particle_count(world);
    run_measure(run, "particles lost or gained", fabs((double)(count - start)), 0.0);
    if (count != start || selkie_world_find_attribute(world, "id", &id, NULL) != SELKIE_OK)
        return;
    unsigned char *seen = calloc((size_t)count + 1, 1);
    int64_t twice = 0, outside = 0;
    particle_reader reader = reader_make(world, t);
    for (int64_t p = 0; p < count && seen; p++) {
        uint32_t name;
        double x[3], v[3];
        memcpy(&name, (const char *)id.data + (size_t)p * id.stride, sizeof name);
        twice += name >= count || seen[name < count ? name : 0];
        seen[name < count ? name : 0] = 1;
        if (!reader_get(&reader, p, x, v))
            continue;
        for (int d = 0; d < t->scene.domain.dimension; d++)
            outside += !(x[d] >= -1e-6 && x[d] <= t->scene.domain.size[t->axis[d]] + 1e-6);
    }
    free(seen);
    run_measure(run, "ids that are missing or there twice", (double)twice, 0.0);
    run_measure(run, "particles outside the domain", (double)outside, 0.0);
}

static void mass(check_run *run)
{
    check_scene t;
    dam_scene(&t, run);
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const int64_t start = selkie_world_particle_count(world);
    const double kilograms = selkie_world_particle_mass(world);
    if (world_run_until(run, world, 1.5)) {
        judge_ids(run, world, &t, start);
        run_measure(run, "change of a particle's mass", fabs(selkie_world_particle_mass(world) / kilograms - 1.0), 0.0);
    }
    selkie_world_destroy(world);
}

/* Two balls that meet off their centres, without gravity and far from walls. Pair forces keep momentum to rounding.
 * Unilateral pressure acts on face masses that are the particles'. The bilateral ghost-fluid surface gives faces at the
 * surface the mass of full ones: regression bound, about twice what is measured. */
static void collision(check_run *run)
{
    static const double bounds[] = {
        [CLASS_GRID] = 0.03, [CLASS_UNILATERAL] = 2e-5, [CLASS_SPH] = 1e-6, [CLASS_MIXED] = 0.03};
    check_scene t;
    const int flat = run->dimension == 2;
    scene_tank(&t, run, 64, 64, 40);
    scene_no_gravity(&t);
    const double radius = flat ? 6 : 4, z = 20;
    set3(scene_liquid(&t, shape_ball(32 - radius - 1, 31, z, radius))->velocity, 1.0, 0.0, 0.0);
    set3(scene_liquid(&t, shape_ball(32 + radius + 1, 33, z, radius))->velocity, -1.0, 0.2, 0.0);
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const particle_sums before = world_sums(world, &t, NULL);
    if (world_run_until(run, world, 0.12)) { /* what splashes has not reached the walls */
        const particle_sums after = world_sums(world, &t, NULL);
        double change[3];
        for (int d = 0; d < 3; d++)
            change[d] = after.velocity[d] - before.velocity[d];
        run_measure(run, "change of momentum / (mass x 1 m/s)", norm(change), bounds[run->method->kind]);
        run_measure(run, "growth of kinetic energy / start", after.kinetic / before.kinetic - 1.0, 1e-3);
    }
    selkie_world_destroy(world);
}

/* A ball that spins at 4 rad/s for an eighth of a turn. The splitting loses some on a grid, first order in the step;
 * the sums leave out the affine part of APIC. Pressure of SPH acts along the line between two particles and keeps it,
 * XSPH does not quite. */
static void spin(check_run *run)
{
    static const double bounds[] = {
        [CLASS_GRID] = 0.03, [CLASS_UNILATERAL] = 2e-5, [CLASS_SPH] = 2e-3, [CLASS_MIXED] = 0.03};
    check_scene t;
    scene_tank(&t, run, 32, 32, 32);
    scene_no_gravity(&t);
    selkie_liquid_def *ball = scene_liquid(&t, shape_ball(16, 16, 16, run->dimension == 2 ? 10 : 7));
    const double center[3] = {16 * CELL, 16 * CELL, 16 * CELL}, turn = 4.0;
    memcpy(ball->center, center, sizeof center);
    ball->angular_velocity[2] = turn;
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const particle_sums before = world_sums(world, &t, center);
    if (world_run_until(run, world, 0.25 * 3.14159265358979 / turn)) {
        const particle_sums after = world_sums(world, &t, center);
        run_measure(run, "change of angular momentum / start", fabs(after.angular[2] / before.angular[2] - 1.0),
                    bounds[run->method->kind]);
        run_measure(run, "change of momentum / (mass x speed of the rim)",
                    norm(after.velocity) / (turn * ball->shape.radius), bounds[run->method->kind]);
    }
    selkie_world_destroy(world);
}

/* Nothing does work on a liquid in a closed tank at rest. Growth on the way counts from the least so far; APIC takes
 * some from its affine part, which the statistics leave out. */
static void energy(check_run *run)
{
    check_scene t;
    dam_scene(&t, run);
    selkie_world *world = world_make(run, &t, 1);
    if (!world)
        return;
    const double unit = world_mass(world) * GRAVITY * t.liquids[0].shape.max[1], start = world_energy(world);
    double least = start, above = 0.0, growth = 0.0;
    while (selkie_world_time(world) < 2.0 * (1 - 1e-9) && world_step(run, world)) {
        const double now = world_energy(world);
        above = fmax(above, now - start);
        growth = fmax(growth, now - least);
        least = fmin(least, now);
    }
    run_measure(run, "energy above the start / (m g H)", above / unit, 1e-3);
    run_measure(run, "growth of energy on the way / (m g H)", growth / unit, run->method->affine ? 0.015 : 0.005);
    selkie_world_destroy(world);
}

enum {
    ONE = STEP_DEFAULT,
    TWO = STEP_DEFAULT | STEP_20_MS,
    SMALL = STEP_DEFAULT | STEP_5_MS,
    FOUR = TWO | STEP_1_MS | STEP_5_MS
};

static const check checks[] = {
    {"fall", "a block that falls freely follows the parabola", fall, {FOUR, TWO}, {FOUR, ONE}, {FOUR, 0}},
    {"drift", "a block without gravity keeps its velocity", drift, {TWO, ONE}, {ONE, 0}, {ONE, 0}},
    {"mass", "a breaking dam keeps every particle", mass, {TWO, ONE}, {ONE, ONE}, {ONE, 0}},
    {"collision", "two balls that meet keep momentum and gain no energy", collision, {FOUR, ONE}, {SMALL, 0}, {ONE, 0}},
    {"spin", "a spinning ball keeps its angular momentum", spin, {SMALL, SMALL}, {STEP_5_MS, 0}, {STEP_5_MS, 0}},
    {"energy", "a breaking dam in a closed tank gains no energy", energy, {FOUR, SMALL}, {FOUR, 0}, {ONE, 0}},
};

const family motion_family = {"motion", checks, sizeof checks / sizeof *checks};

/* What the report on liquid boundaries measures, on frames of a few particles whose answers are known: fluid in a wall,
 * ways through it, energy above what forces can have made, and the speed that gravity and a vortex allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sys/stat.h>

#include "io/folder.h"
#include "io/particles_file.h"
#include "selkie/reproduce.h"
#include "unit/scratch_folder.h"

enum { FLUID = 0, CANDIDATE = 1, BOUNDARY = 2, MOST = 16 };

typedef struct dot {
    double x[3], v[3];
    uint32_t id, role;
} dot;

/* A run with one object, a plate across x from 0.4 to 0.6 m, one metre high and wide, and a frame a second. */
typedef struct run_case {
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_source_def tap;
    selkie_object_def object;
    selkie_keyframe keyframes[2];
    selkie_force_def force;
    run_results results;
} run_case;

static void set3(double to[3], double x, double y, double z)
{
    to[0] = x, to[1] = y, to[2] = z;
}

static void begin(run_case *c, char *folder)
{
    char frames[300];
    memset(c, 0, sizeof *c);
    selkie_scene_defaults(&c->scene);
    selkie_scene_set_method(&c->scene, SELKIE_METHOD_SPH);
    set3(c->scene.domain.size, 4, 4, 4);
    c->scene.domain.cell_size = 0.5; /* eight particles in it: a spacing of 0.25 m */
    c->scene.time.fps = 1;
    selkie_liquid_defaults(&c->liquid);
    c->liquid.density = 800;
    c->scene.liquids = &c->liquid;
    c->scene.liquid_count = 1;
    selkie_object_defaults(&c->object);
    selkie_shape_defaults(&c->object.shape, SELKIE_SHAPE_BOX);
    set3(c->object.shape.min, 0.4, 0, 0);
    set3(c->object.shape.max, 0.6, 1, 1);
    c->object.keyframes = c->keyframes;
    c->scene.objects = &c->object;
    c->scene.object_count = 1;
    c->scene.forces = &c->force;
    c->scene.sources = &c->tap;
    c->results.folder = folder;
    c->results.scene = &c->scene;
    snprintf(frames, sizeof frames, "%s/" SK_FRAMES_FOLDER, folder);
    assert_true(mkdir(folder, 0777) == 0 && mkdir(frames, 0777) == 0);
}

static void write_frame(const run_case *c, int number, int count, const dot *dots)
{
    float x[MOST][3], v[MOST][3];
    uint32_t id[MOST], role[MOST];
    for (int p = 0; p < count; p++) {
        for (int d = 0; d < 3; d++) {
            x[p][d] = (float)dots[p].x[d];
            v[p][d] = (float)dots[p].v[d];
        }
        id[p] = dots[p].id;
        role[p] = dots[p].role;
    }
    const selkie_attribute_view roles = {
        .name = "role", .type = SELKIE_UINT32, .components = 1, .stride = sizeof *role, .data = role};
    const sk_frame frame = {.dimension = 3,
                            .time = number,
                            .count = count,
                            .position = x[0],
                            .position_stride = sizeof *x,
                            .velocity = v[0],
                            .velocity_stride = sizeof *v,
                            .id = id,
                            .id_stride = sizeof *id,
                            .scene_up = {0, 1, 0},
                            .extra_count = 1,
                            .extra = &roles};
    char path[300];
    selkie_error error = {0};
    snprintf(path, sizeof path, "%s/" SK_FRAMES_FOLDER "/" SK_PARTICLES_PREFIX "%04d.ply", c->results.folder, number);
    if (sk_particles_write_ply(&frame, path, &error))
        fail_msg("%s", error.message);
}

static void folder_of(char folder[256], const char *name)
{
    strcpy(folder, in_root(name));
}

/* Deeper than 5 cm in the plate, and fluid: the most in one frame. */
static void fluid_in_the_wall_is_counted(void **state)
{
    (void)state;
    char folder[256];
    run_case c;
    folder_of(folder, "inside");
    begin(&c, folder);
    const dot first[] = {
        {.x = {0.5, 0.5, 0.5}, .id = 0},                    /* deep */
        {.x = {0.46, 0.9, 0.1}, .id = 1},                   /* 6 cm from its nearest side */
        {.x = {0.44, 0.5, 0.5}, .id = 2},                   /* 4 cm: it only touches */
        {.x = {0.5, 0.97, 0.5}, .id = 3},                   /* 3 cm below the top */
        {.x = {0.5, 0.5, 0.5}, .id = 4, .role = BOUNDARY},  /* the plate itself */
        {.x = {0.5, 0.5, 0.5}, .id = 5, .role = CANDIDATE}, /* on its way to become a part of it */
        {.x = {0.3, 0.5, 0.5}, .id = 6},
    };
    write_frame(&c, 2, 7, first);
    write_frame(&c, 3, 1, first);
    write_frame(&c, 9, 1, first); /* outside of the times that are asked for */
    object_leaks leaks = leaks_of_object(&c.results, 0, 2, 8, 0.05, 0.15);
    assert_int_equal(leaks.frames, 2);
    assert_int_equal(leaks.inside, 2);
    assert_int_equal(leaks.through, 0);
    assert_int_equal(leaks_of_object(&c.results, 0, 3, 9, 0.05, 0.15).inside, 1);
    assert_int_equal(leaks_of_object(&c.results, 1, 2, 8, 0.05, 0.15).frames, 0); /* there is no such object */
    assert_int_equal(leaks_of_object(&c.results, 0, 5, 8, 0.05, 0.15).frames, 0); /* nor frames */
}

/* Three frames of a way each: which of them passes the plate. */
static void ways_through_the_wall_are_counted(void **state)
{
    (void)state;
    static const struct {
        double way[3][3];
        uint32_t roles[3];
        long through;
    } ways[] = {
        {{{0.3, 0.5, 0.5}, {0.7, 0.5, 0.5}, {0.8, 0.5, 0.5}}, {0}, 1},
        {{{0.3, 0.5, 0.5}, {0.7, 0.5, 0.5}, {0.3, 0.5, 0.5}}, {0}, 2},   /* and back */
        {{{0.3, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0.7, 0.5, 0.5}}, {0}, 1},   /* takes two frames for it */
        {{{0.3, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0.3, 0.5, 0.5}}, {0}, 0},   /* in, and out on the same side */
        {{{0.3, 0.5, 0.5}, {0.35, 0.9, 0.1}, {0.38, 0.1, 0.9}}, {0}, 0}, /* along it */
        {{{0.3, 0.9, 0.5}, {0.7, 0.5, 0.5}, {0.7, 0.5, 0.5}}, {0}, 0}, /* begins 10 cm below the rim: perhaps over it */
        {{{0.3, 0.5, 0.5}, {0.7, 0.9, 0.5}, {0.7, 0.5, 0.5}}, {0}, 0}, /* or ends there */
        {{{0.3, 0.8, 0.5}, {0.7, 0.8, 0.5}, {0.7, 0.8, 0.5}}, {0}, 1}, /* 20 cm below it is not over it */
        {{{0.3, 0.5, 0.5}, {0.3, 0.5, 1.3}, {0.7, 0.5, 1.3}}, {0}, 0}, /* around its side */
        {{{0.3, 0.5, 0.9}, {0.45, 0.5, 1.1}, {0.7, 0.5, 0.3}},
         {0},
         1}, /* the second half of this goes through its edge */
        {{{0.38, 0.5, 0.95}, {0.5, 0.5, 1.07}, {0.62, 0.5, 1.07}}, {0}, 0}, /* less than 5 cm deep through an edge */
        {{{0.3, 0.5, 0.5}, {0.7, 0.5, 0.5}, {0.7, 0.5, 0.5}}, {BOUNDARY, FLUID, FLUID}, 0},     /* was solid before */
        {{{0.3, 0.5, 0.5}, {0.7, 0.5, 0.5}, {0.7, 0.5, 0.5}}, {FLUID, CANDIDATE, BOUNDARY}, 0}, /* becomes part of it */
    };
    const int count = (int)(sizeof ways / sizeof *ways);
    long all = 0;
    char folder[256];
    run_case c;
    dot dots[MOST];
    for (int w = 0; w <= count; w++) { /* each alone, and then all together, in another order each frame */
        char name[32];
        snprintf(name, sizeof name, "ways_%d", w);
        folder_of(folder, name);
        begin(&c, folder);
        for (int f = 0; f < 3; f++) {
            int used = 0;
            for (int n = 0; n < count; n++) {
                int i = f == 1 ? count - 1 - n : n;
                if (w < count && i != w)
                    continue;
                dots[used] = (dot){.id = (uint32_t)(5 * i + 3), .role = ways[i].roles[f]};
                memcpy(dots[used++].x, ways[i].way[f], sizeof dots->x);
            }
            write_frame(&c, f, used, dots);
        }
        all += w < count ? ways[w].through : 0;
        long through = leaks_of_object(&c.results, 0, 0, 2, 0.05, 0.15).through,
             right = w < count ? ways[w].through : all;
        if (through != right)
            fail_msg("way %d goes through %ld times, not %ld", w, through, right);
    }
}

/* The plate moves, and turns about its middle: what counts is the way as the plate sees it. */
static void ways_are_those_that_the_object_sees(void **state)
{
    (void)state;
    char folder[256];
    run_case c;
    folder_of(folder, "moves");
    begin(&c, folder);
    c.object.keyframe_count = 2;
    c.keyframes[1].time = 1;
    set3(c.keyframes[1].translate, 1, 0, 0);
    const dot before[] = {
        {.x = {1, 0.5, 0.5}, .id = 0}, {.x = {0.3, 0.5, 0.5}, .id = 1}, {.x = {0.7, 0.5, 0.5}, .id = 2}};
    const dot after[] = {{.x = {1, 0.5, 0.5}, .id = 0},    /* stands still: the plate has run over it */
                         {.x = {1.3, 0.5, 0.5}, .id = 1},  /* goes along behind it */
                         {.x = {1.7, 0.5, 0.5}, .id = 2}}; /* and before it */
    write_frame(&c, 0, 3, before);
    write_frame(&c, 1, 3, after);
    assert_int_equal(leaks_of_object(&c.results, 0, 0, 1, 0.05, 0.15).through, 1);

    folder_of(folder, "turns");
    begin(&c, folder);
    c.object.keyframe_count = 2;
    c.keyframes[1].time = 1;
    set3(c.object.center, 0.5, 0.5, 0.5);
    c.keyframes[1].rotate[1] = 180; /* about y: its sides change places */
    const dot turned[] = {{.x = {0.7, 0.5, 0.5}, .id = 0}, {.x = {0.3, 0.5, 0.5}, .id = 1}};
    write_frame(&c, 0, 2, (dot[]){{.x = {0.3, 0.5, 0.5}, .id = 0}, {.x = {0.3, 0.5, 0.5}, .id = 1}});
    write_frame(&c, 1, 2, turned); /* the first has turned with it; the second stands still */
    assert_int_equal(leaks_of_object(&c.results, 0, 0, 1, 0.05, 0.15).through, 1);
}

/* A particle is 800 kg/m3 (0.25 m)^3 = 12.5 kg. It flies under gravity: its energy stays, but for a push of known
 * energy. */
static void energy_of_flight_stays(void **state)
{
    (void)state;
    const double mass = 12.5, g = 9.81;
    char folder[256];
    run_case c;
    folder_of(folder, "flight");
    begin(&c, folder);
    c.scene.time.fps = 10;
    set3(c.scene.domain.origin, 0, -2, 0);
    for (int f = 0; f < 6; f++) {
        double t = 0.1 * f, push = f == 3 ? 2 : f > 3 ? -1 : 0; /* m/s along x, beside the 1 m/s that it has */
        const dot dots[] = {{.x = {1 + t, 1 + 3 * t - 0.5 * g * t * t, 1}, .v = {1 + push, 3 - g * t, 0.5}, .id = 0},
                            {.x = {1, 0, 1}, .id = 1, .role = BOUNDARY}}; /* rests */
        write_frame(&c, f, 2, dots);
    }
    /* Heights are from the floor, at -2 m. */
    const double start = mass * (0.5 * (1 + 9 + 0.25) + g * 3) + mass * g * 2;
    energy_budget energy = energy_of_run(&c.results, 0, 0.2);
    assert_int_equal(energy.frames, 3);
    assert_true(fabs(energy.start - start) < 1e-5 * start && fabs(energy.end - start) < 1e-5 * start);
    assert_true(energy.work == 0 && energy.excess < 1e-5 * start);
    /* From 1 to 3 m/s, 4 J/kg, for one frame, and then none of the 1 m/s is left: the most is what counts. */
    energy = energy_of_run(&c.results, 0, 0.5);
    assert_int_equal(energy.frames, 6);
    assert_true(fabs(energy.excess - 4 * mass) < 1e-5 * start);
    assert_true(fabs(energy.end - (start - 0.5 * mass)) < 1e-5 * start);
    assert_true(energy_of_run(&c.results, 3, 4).frames == 0 && isnan(energy_of_run(&c.results, 3, 4).start));
}

/* A uniform force of 2 m/s2 from 1 s on: its power grows evenly, so that the trapezoidal rule is exact. */
static void work_of_forces_is_no_excess(void **state)
{
    (void)state;
    const double mass = 12.5;
    char folder[256];
    run_case c;
    folder_of(folder, "work");
    begin(&c, folder);
    set3(c.scene.gravity, 0, 0, 0);
    selkie_force_defaults(&c.force, SELKIE_FORCE_UNIFORM);
    set3(c.force.acceleration, 2, 0, 0);
    c.force.start = 1;
    c.scene.force_count = 1;
    for (int f = 0; f < 4; f++) {
        double t = f > 1 ? f - 1 : 0;
        write_frame(&c, f, 1, &(dot){.x = {0.1 * f + t * t, 1, 1}, .v = {0.1 + 2 * t, 0, 0}});
    }
    energy_budget energy = energy_of_run(&c.results, 1, 3);
    const double gain = 0.5 * mass * (4.1 * 4.1 - 0.1 * 0.1);
    assert_true(fabs(energy.start - 0.5 * mass * 0.01) < 1e-5 * gain);
    assert_true(fabs(energy.work - gain) < 1e-4 * gain && fabs(energy.end - energy.start - gain) < 1e-5 * gain);
    assert_true(energy.excess < 1e-4 * gain);
    /* Without the force the same motion has all of it from nowhere. */
    c.scene.force_count = 0;
    energy = energy_of_run(&c.results, 1, 3);
    assert_true(energy.work == 0 && fabs(energy.excess - gain) < 1e-5 * gain);
}

/* sqrt(2 g y + v^2) of the tap, and what the strongest place of the vortex adds while it lasts. */
static void gravity_and_vortex_have_a_limit(void **state)
{
    (void)state;
    char folder[256];
    run_case c;
    folder_of(folder, "limit");
    begin(&c, folder);
    assert_true(isnan(fastest_of_gravity_and_vortex(NULL)) && isnan(fastest_of_gravity_and_vortex(&c.scene)));
    set3(c.scene.gravity, 0, -10, 0);
    set3(c.scene.domain.origin, 0, 1, 0);
    selkie_source_defaults(&c.tap);
    selkie_shape_defaults(&c.tap.shape, SELKIE_SHAPE_CYLINDER);
    set3(c.tap.shape.from, 0, 3, 0);
    set3(c.tap.shape.to, 0, 2.5, 0);
    set3(c.tap.velocity, 0, -3, 0);
    c.scene.source_count = 1;
    selkie_force_defaults(&c.force, SELKIE_FORCE_VORTEX);
    c.force.radius = 1.5;
    c.force.start = 2;
    c.force.end = 4;
    c.scene.force_count = 1;
    c.force.spin = c.force.pull = 0;
    c.force.lift = 3;
    const double falls = sqrt(2 * 10 * 2 + 9);
    assert_true(fabs(fastest_of_gravity_and_vortex(&c.scene) - (falls + 3 * 2)) < 1e-9);
    /* (1 - q^2)^2 q is largest at q = 1 / sqrt(5): 16 / (25 sqrt(5)). Around and inward stand at right angles. */
    c.force.lift = 0;
    c.force.spin = 4;
    c.force.pull = 8;
    assert_true(fabs(fastest_of_gravity_and_vortex(&c.scene) - (falls + 16 / (25 * sqrt(5.0)) * 10 * 2)) < 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fluid_in_the_wall_is_counted),        cmocka_unit_test(ways_through_the_wall_are_counted),
        cmocka_unit_test(ways_are_those_that_the_object_sees), cmocka_unit_test(energy_of_flight_stays),
        cmocka_unit_test(work_of_forces_is_no_excess),         cmocka_unit_test(gravity_and_vortex_have_a_limit),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

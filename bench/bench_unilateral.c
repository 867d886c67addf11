/* Cost of unilateral incompressibility in steps of a real splash, relative to the bilateral pressure of the same steps.
 *
 * A scene is run to a violent moment. In each step from there on the bilateral pressure is solved as well, on the same
 * particles and velocities, and undone before the step continues. Each is repeated; the fastest counts. Printed are the
 * means a step, first of the solves alone (set-up and solve of the linear or complementarity problems, those of all
 * passes of the density correction), then of the whole phases around them. Usage: bench_unilateral [SCENE] [--set
 * KEY=VALUE]... [--from CHECKPOINT] [--time S] [--steps N] [--repeats N] [--threads N] default: quad_dam at 50^3 cells
 * with 27 particles in a cell, from 0.8 s on. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/timer.h"
#include "methods/flip/flip.h"
#include "world/world_internal.h"

enum { MAX_OVERRIDES = 32 };

typedef struct settings {
    const char *scene, *checkpoint;
    const char *overrides[MAX_OVERRIDES];
    int override_count, steps, repeats, threads;
    double time;
} settings;

typedef struct cost {
    double solve, phase; /* ms */
} cost;

typedef struct costs {
    cost bilateral, pressure, correction, predict;
    double step; /* ms */
    double passes, pressure_steps, correction_steps, bilateral_steps;
    double unknowns;
} costs;

/* Phases have no arguments of their own, so the state of the measured ones is here. */
static struct {
    sk_phase_function pressure, correction, predict;
    int repeats;
    costs *costs;
} measured;

/* Fields that a pressure solve changes. */
static const sk_grid_field changed[] = {SK_FIELD_VELOCITY_X, SK_FIELD_VELOCITY_Y, SK_FIELD_VELOCITY_Z,
                                        SK_FIELD_CHANGE_X,   SK_FIELD_CHANGE_Y,   SK_FIELD_CHANGE_Z,
                                        SK_FIELD_POTENTIAL,  SK_FIELD_PREDICTED};
enum { CHANGED = sizeof changed / sizeof *changed };

typedef struct kept {
    float *fields[CHANGED];
    uint8_t *flags;
} kept;

static int keep(const sk_grid *grid, kept *k)
{
    size_t bytes = (size_t)grid->block_count * (size_t)grid->block_cells * sizeof(float);
    int good = 1;
    for (int f = 0; f < CHANGED; f++) {
        k->fields[f] = NULL;
        if (!grid->fields[changed[f]])
            continue;
        k->fields[f] = malloc(bytes);
        good &= k->fields[f] != NULL;
        if (k->fields[f])
            memcpy(k->fields[f], grid->fields[changed[f]], bytes);
    }
    k->flags = malloc((size_t)grid->block_count);
    good &= k->flags != NULL;
    if (k->flags)
        memcpy(k->flags, grid->block_flags, (size_t)grid->block_count);
    return good;
}

static void put_back(const sk_grid *grid, const kept *k)
{
    size_t bytes = (size_t)grid->block_count * (size_t)grid->block_cells * sizeof(float);
    for (int f = 0; f < CHANGED; f++)
        if (k->fields[f])
            memcpy(grid->fields[changed[f]], k->fields[f], bytes);
    memcpy(grid->block_flags, k->flags, (size_t)grid->block_count);
}

static void forget(kept *k)
{
    for (int f = 0; f < CHANGED; f++)
        free(k->fields[f]);
    free(k->flags);
}

/* Time of the solves of the last phase. */
typedef double (*solve_time)(const sk_step *step);

static double bilateral_time(const sk_step *step)
{
    return step->pressure.setup_ms + step->pressure.solve_ms;
}
static double pressure_time(const sk_step *step)
{
    return step->unilateral.setup_ms + step->unilateral.solve_ms;
}
static double correction_time(const sk_step *step)
{
    return step->correction.setup_ms + step->correction.solve_ms;
}

/* Runs a phase several times, each time from the same state, and adds the least times. */
static selkie_code run_repeatedly(sk_phase_function run, solve_time solve, sk_step *step, const kept *k, cost *sum,
                                  selkie_error *error)
{
    cost least = {0, 0};
    for (int n = 0; n < measured.repeats; n++) {
        put_back(&step->grid, k);
        double begin = sk_wall_ms();
        SK_TRY(run(step, error));
        double phase = sk_wall_ms() - begin, solved = solve ? solve(step) : 0.0;
        least.phase = n == 0 || phase < least.phase ? phase : least.phase;
        least.solve = n == 0 || solved < least.solve ? solved : least.solve;
    }
    sum->phase += least.phase;
    sum->solve += least.solve;
    return SELKIE_OK;
}

/* Keeps the fields while a phase is repeated. */
static selkie_code measure_phase(sk_phase_function run, solve_time solve, sk_step *step, cost *sum, selkie_error *error)
{
    kept k;
    if (!keep(&step->grid, &k))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for a copy of the grid's fields");
    selkie_code code = run_repeatedly(run, solve, step, &k, sum, error);
    forget(&k);
    return code;
}

static selkie_code measure_correction(sk_step *step, selkie_error *error)
{
    return measure_phase(measured.correction, correction_time, step, &measured.costs->correction, error);
}

static selkie_code measure_predict(sk_step *step, selkie_error *error)
{
    return measure_phase(measured.predict, NULL, step, &measured.costs->predict, error);
}

/* The bilateral pressure first, then the real one. */
static selkie_code measure_pressures(sk_step *step, selkie_error *error)
{
    kept k;
    if (!keep(&step->grid, &k))
        return sk_fail(error, SELKIE_ERROR_MEMORY, "no memory for a copy of the grid's fields");
    sk_phase_function bilateral = step->dimension == 3 ? sk_flip_pressure_3d : sk_flip_pressure_2d;
    selkie_code code = run_repeatedly(bilateral, bilateral_time, step, &k, &measured.costs->bilateral, error);
    measured.costs->bilateral_steps += step->pressure.iterations;
    if (code == SELKIE_OK)
        code = run_repeatedly(measured.pressure, pressure_time, step, &k, &measured.costs->pressure, error);
    forget(&k);
    return code;
}

static int phase_of(const selkie_world *world, const char *name)
{
    for (int p = 0; p < world->phase_count; p++)
        if (strcmp(world->phases[p].name, name) == 0)
            return p;
    return -1;
}

static void replace_phase(selkie_world *world, const char *name, sk_phase_function by, sk_phase_function *was)
{
    int p = phase_of(world, name);
    if (p < 0)
        return;
    *was = world->phases[p].run;
    world->phases[p].run = by;
}

/* Time of a step, with each measured phase counted once. */
static double step_ms(const selkie_world *world, const costs *before, const costs *after)
{
    static const char *const names[] = {"density_correct", "predict", "pressure"};
    double ms = world->statistics.step_ms + after->correction.phase - before->correction.phase + after->predict.phase -
                before->predict.phase + after->pressure.phase - before->pressure.phase;
    for (int n = 0; n < 3; n++) {
        int p = phase_of(world, names[n]);
        ms -= p < 0 ? 0.0 : world->statistics.phase_ms[p];
    }
    return ms;
}

static int fail(const char *what, selkie_world *world)
{
    fprintf(stderr, "bench_unilateral: %s\n", what);
    selkie_world_destroy(world);
    return 1;
}

static void print(const settings *how, const selkie_world *world, const costs *c)
{
    const double n = how->steps;
    printf("%s: %lld particles, %.0f unknowns, %d steps to %.3f s, %d threads; ms a step\n", how->scene,
           (long long)world->step.particles.count, c->unknowns / n, how->steps, world->step.time, world->step.threads);
    printf("  solves: bilateral %.1f (%.1f iterations) | pressure %.1f (%.1f steps) + density %.1f (%.1f steps in the "
           "first "
           "of %.1f passes): %.2f times the bilateral one\n",
           c->bilateral.solve / n, c->bilateral_steps / n, c->pressure.solve / n, c->pressure_steps / n,
           c->correction.solve / n, c->correction_steps / n, c->passes / n,
           (c->pressure.solve + c->correction.solve) / c->bilateral.solve);
    printf("  phases: bilateral %.1f | pressure %.1f + density_correct %.1f: %.2f times the bilateral one | predict "
           "%.1f | whole "
           "step %.1f\n",
           c->bilateral.phase / n, c->pressure.phase / n, c->correction.phase / n,
           (c->pressure.phase + c->correction.phase) / c->bilateral.phase, c->predict.phase / n, c->step / n);
}

static int bench(const settings *how)
{
    selkie_error error = {0};
    selkie_scene *scene;
    selkie_world_options options;
    selkie_world *world = NULL;
    if (selkie_scene_load(how->scene, how->override_count, how->overrides, &scene, &error) != SELKIE_OK)
        return fail(error.message, NULL);

    /* World, from the checkpoint if there is one, up to the first measured step. */
    selkie_world_options_defaults(&options);
    options.threads = how->threads;
    selkie_code code = selkie_world_create(scene, &options, &world, &error);
    selkie_scene_free(scene);
    if (code == SELKIE_OK && how->checkpoint)
        code = selkie_world_load(world, how->checkpoint, &error);
    if (code != SELKIE_OK)
        return fail(error.message, world);
    if (!world->step.bounded)
        return fail("the scene is not unilateral", world);
    while (world->step.time < how->time)
        if (selkie_world_step(world, &error) != SELKIE_OK)
            return fail(error.message, world);

    /* Measured phases. */
    costs c = {0};
    measured.repeats = how->repeats;
    measured.costs = &c;
    replace_phase(world, "density_correct", measure_correction, &measured.correction);
    replace_phase(world, "predict", measure_predict, &measured.predict);
    replace_phase(world, "pressure", measure_pressures, &measured.pressure);

    /* Steps. */
    for (int n = 0; n < how->steps; n++) {
        costs before = c;
        if (selkie_world_step(world, &error) != SELKIE_OK)
            return fail(error.message, world);
        const sk_step *step = &world->step;
        c.step += step_ms(world, &before, &c);
        c.passes += step->density_passes;
        c.pressure_steps += step->unilateral.iterations;
        c.correction_steps += step->correction.iterations;
        c.unknowns += (double)step->unilateral.unknowns;
    }

    print(how, world, &c);
    selkie_world_destroy(world);
    return 0;
}

int main(int argc, char **argv)
{
    settings how = {.scene = SELKIE_SCENES "/uic/quad_dam.json", .steps = 10, .repeats = 3, .time = 0.8};
    int own_scene = 0;
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--set") == 0 && a + 1 < argc && how.override_count < MAX_OVERRIDES)
            how.overrides[how.override_count++] = argv[++a];
        else if (strcmp(argv[a], "--from") == 0 && a + 1 < argc)
            how.checkpoint = argv[++a];
        else if (strcmp(argv[a], "--time") == 0 && a + 1 < argc)
            how.time = atof(argv[++a]);
        else if (strcmp(argv[a], "--steps") == 0 && a + 1 < argc)
            how.steps = atoi(argv[++a]);
        else if (strcmp(argv[a], "--repeats") == 0 && a + 1 < argc)
            how.repeats = atoi(argv[++a]);
        else if (strcmp(argv[a], "--threads") == 0 && a + 1 < argc)
            how.threads = atoi(argv[++a]);
        else
            how.scene = argv[a], own_scene = 1;
    }
    if (!own_scene && how.override_count == 0)
        how.overrides[how.override_count++] = "domain.resolution=50";
    return bench(&how);
}

/* What unilateral incompressibility costs in steps of a real splash, in units of the bilateral pressure of the same steps.
 *
 * A scene is run to a violent moment. In each step from there on the bilateral pressure is solved as well, on the same
 * particles and velocities, and what it did is undone before the step goes on. Printed are the means a step, first of the
 * solves alone (set-up and solve of the linear or complementarity problem), then of the whole phases around them.
 * Usage: bench_unilateral [SCENE] [--set KEY=VALUE]... [--from CHECKPOINT] [--time S] [--steps N] [--threads N]
 * default: quad_dam at 50^3 cells with 27 particles in a cell, from 0.8 s on. */
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
    int override_count, steps, threads;
    double time;
} settings;

typedef struct costs {
    double bilateral_solve, bilateral_phase;     /* ms */
    double pressure_solve, pressure_phase;       /* ms */
    double correction_solve, correction_phase;   /* ms */
    double predict_phase, step;                  /* ms */
    double passes, pressure_steps, correction_steps, bilateral_steps;
    double unknowns;
} costs;

/* Phases have no arguments of their own, so what the one that compares needs is here. */
static struct {
    sk_phase_function pressure;
    costs *costs;
} compared;

/* What the bilateral pressure changes. */
static const sk_grid_field changed[] = {SK_FIELD_VELOCITY_X, SK_FIELD_VELOCITY_Y, SK_FIELD_VELOCITY_Z, SK_FIELD_CHANGE_X,
                                        SK_FIELD_CHANGE_Y,   SK_FIELD_CHANGE_Z,   SK_FIELD_POTENTIAL};
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

static void put_back(const sk_grid *grid, kept *k)
{
    size_t bytes = (size_t)grid->block_count * (size_t)grid->block_cells * sizeof(float);
    for (int f = 0; f < CHANGED; f++) {
        if (k->fields[f])
            memcpy(grid->fields[changed[f]], k->fields[f], bytes);
        free(k->fields[f]);
    }
    memcpy(grid->block_flags, k->flags, (size_t)grid->block_count);
    free(k->flags);
}

/* In place of the phase `pressure`: the bilateral one first, then the real one. */
static selkie_code compare_pressures(sk_step *step, selkie_error *error)
{
    kept k;
    if (!keep(&step->grid, &k))
        return SELKIE_ERROR_MEMORY;
    double begin = sk_wall_ms();
    selkie_code code = step->dimension == 3 ? sk_flip_pressure_3d(step, error) : sk_flip_pressure_2d(step, error);
    compared.costs->bilateral_phase += sk_wall_ms() - begin;
    compared.costs->bilateral_solve += step->pressure.setup_ms + step->pressure.solve_ms;
    compared.costs->bilateral_steps += step->pressure.iterations;
    put_back(&step->grid, &k);
    if (code != SELKIE_OK)
        return code;
    begin = sk_wall_ms();
    code = compared.pressure(step, error);
    compared.costs->pressure_phase += sk_wall_ms() - begin;
    return code;
}

static int phase_of(const selkie_world *world, const char *name)
{
    for (int p = 0; p < world->phase_count; p++)
        if (strcmp(world->phases[p].name, name) == 0)
            return p;
    return -1;
}

static double phase_ms(const selkie_world *world, const char *name)
{
    int p = phase_of(world, name);
    return p < 0 ? 0.0 : world->statistics.phase_ms[p];
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
    printf("  solves: bilateral %.1f (%.1f iterations) | pressure %.1f (%.1f steps) + density %.1f (%.1f steps in the first "
           "of %.1f passes): %.2f times the bilateral one\n",
           c->bilateral_solve / n, c->bilateral_steps / n, c->pressure_solve / n, c->pressure_steps / n, c->correction_solve / n,
           c->correction_steps / n, c->passes / n, (c->pressure_solve + c->correction_solve) / c->bilateral_solve);
    printf("  phases: bilateral %.1f | pressure %.1f + density_correct %.1f: %.2f times the bilateral one | predict %.1f | whole "
           "step %.1f\n",
           c->bilateral_phase / n, c->pressure_phase / n, c->correction_phase / n,
           (c->pressure_phase + c->correction_phase) / c->bilateral_phase, c->predict_phase / n, c->step / n);
}

static int bench(const settings *how)
{
    selkie_error error = {0};
    selkie_scene *scene;
    selkie_world_options options;
    selkie_world *world = NULL;
    if (selkie_scene_load(how->scene, how->override_count, how->overrides, &scene, &error) != SELKIE_OK)
        return fail(error.message, NULL);
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
    costs c = {0};
    sk_phase *pressure = &world->phases[phase_of(world, "pressure")];
    compared.pressure = pressure->run;
    compared.costs = &c;
    pressure->run = compare_pressures;
    for (int n = 0; n < how->steps; n++) {
        double before = c.pressure_phase;
        if (selkie_world_step(world, &error) != SELKIE_OK)
            return fail(error.message, world);
        const sk_step *step = &world->step;
        c.pressure_solve += step->unilateral.setup_ms + step->unilateral.solve_ms;
        c.correction_solve += step->correction.setup_ms + step->correction.solve_ms;
        c.correction_phase += phase_ms(world, "density_correct");
        c.predict_phase += phase_ms(world, "predict");
        c.step += world->statistics.step_ms - phase_ms(world, "pressure") + (c.pressure_phase - before);
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
    settings how = {.scene = SELKIE_SCENES "/uic/quad_dam.json", .steps = 10, .time = 0.8};
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
        else if (strcmp(argv[a], "--threads") == 0 && a + 1 < argc)
            how.threads = atoi(argv[++a]);
        else
            how.scene = argv[a], own_scene = 1;
    }
    if (!own_scene && how.override_count == 0)
        how.overrides[how.override_count++] = "domain.resolution=50";
    return bench(&how);
}

/* What solids and heat add to a step of the liquid: ns a particle and step.
 *
 *   soft     half of a pool is a body of particles; the step over that of a pool of liquid alone, over all particles;
 *            the goals and the pull towards them; and the phases of the coupling, over the particles of the body
 *   heat     a pool with heat, warm beside cold, and with ice in it; likewise
 *   rigid    64 bodies of ratio 0.01 in a pool: pressure iterations and time over those without them
 *
 * Twins step in turn, so that other programs disturb both; the least of the steps counts. The time of processors is
 * that of all threads, and counts no others. Usage: bench_bodies
 * [particles] [threads] [soft|heat|rigid|discs|packed|balls|pool] */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <selkie/selkie.h>

enum { STEPS = 10, BODIES = 64 };

typedef struct bench {
    selkie_scene scene;
    selkie_material_def materials[2];
    selkie_liquid_def liquids[2];
    selkie_body_def bodies[BODIES];
    selkie_world *world;
    double total, phases[SELKIE_MAX_PHASES], iterations; /* ms of the shortest step, its phases, sum over the steps */
    double processor;                                    /* ms of all threads, least of the steps */
} bench;

static void set_box(selkie_shape *shape, const double low[3], const double high[3])
{
    selkie_shape_defaults(shape, SELKIE_SHAPE_BOX);
    memcpy(shape->min, low, sizeof shape->min);
    memcpy(shape->max, high, sizeof shape->max);
}

/* A pool of about `particles`, as long as wide, half as deep (2D: 0.75). */
static void begin(bench *b, int dimension, double particles)
{
    const int side = (int)lround(dimension == 3 ? cbrt(particles / 4.0) : sqrt(particles / 3.0));
    memset(b, 0, sizeof *b);
    selkie_scene_defaults(&b->scene);
    b->scene.domain.dimension = dimension;
    b->scene.domain.cell_size = 1.0 / side;
    for (int d = 0; d < dimension; d++)
        b->scene.domain.size[d] = 1.0;
    b->scene.time.step = 0.25 / side;
    b->scene.volume = SELKIE_VOLUME_IDP;
    b->scene.materials = b->materials;
    b->scene.liquids = b->liquids;
    b->scene.bodies = b->bodies;
    selkie_material_defaults(&b->materials[0]);
    selkie_liquid_defaults(&b->liquids[0]);
    set_box(&b->liquids[0].shape, (const double[3]){0, 0, 0}, (const double[3]){1, dimension == 3 ? 0.5 : 0.75, 1});
    b->scene.material_count = b->scene.liquid_count = 1;
    b->materials[0].name = b->liquids[0].material = "water";
}

static void create(bench *b, int threads)
{
    selkie_world_options options;
    selkie_error error = {0};
    selkie_world_options_defaults(&options);
    options.threads = threads;
    if (selkie_world_create(&b->scene, &options, &b->world, &error) != SELKIE_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    b->total = b->processor = 1e30;
}

static void step(bench *b)
{
    selkie_error error = {0};
    const clock_t start = clock();
    if (selkie_world_step(b->world, &error) != SELKIE_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    b->processor = fmin(b->processor, (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC);
    const selkie_statistics *statistics = selkie_world_statistics(b->world);
    b->iterations += statistics->pressure_iterations;
    if (!(statistics->step_ms < b->total))
        return;
    b->total = statistics->step_ms;
    for (int p = 0; p < selkie_world_phase_count(b->world); p++)
        b->phases[p] = statistics->phase_ms[p];
}

/* Steps two worlds in turn. */
static void run(bench *b, bench *twin, int threads)
{
    create(b, threads);
    create(twin, threads);
    for (int n = 0; n < STEPS; n++) {
        step(twin);
        step(b);
    }
}

static int has_phase(const bench *b, const char *name)
{
    int found = 0;
    for (int p = 0; p < selkie_world_phase_count(b->world); p++)
        found |= strcmp(selkie_world_phase_name(b->world, p), name) == 0;
    return found;
}

/* ms of a phase in the shortest step; 0 if the world has none of that name. */
static double phase_ms(const bench *b, const char *name)
{
    double sum = 0.0;
    for (int p = 0; p < selkie_world_phase_count(b->world); p++)
        sum += strcmp(selkie_world_phase_name(b->world, p), name) == 0 ? b->phases[p] : 0.0;
    return sum;
}

/* The cost over the twin, the phases that the twin has not, and what the common phases take more. */
static void report(const char *name, bench *b, bench *twin, double own)
{
    const double count = (double)selkie_world_particle_count(b->world);
    double sum = 0.0, more = b->total - twin->total;
    printf(
        "%-20s %8.0f particles, step %7.1f ms, without %7.1f ms: %6.1f ns a particle, of processors %.1f; phases, ns "
        "of %.0f:",
        name, count, b->total, twin->total, more * 1e6 / count, (b->processor - twin->processor) * 1e6 / count, own);
    for (int p = 0; p < selkie_world_phase_count(b->world); p++) {
        const char *phase = selkie_world_phase_name(b->world, p);
        if (has_phase(twin, phase))
            continue;
        printf(" %s %.1f", phase, b->phases[p] * 1e6 / own);
        sum += b->phases[p];
    }
    printf(", together %.1f; the phases that both have, %.1f more\n", sum * 1e6 / own, (more - sum) * 1e6 / own);
    selkie_world_destroy(b->world);
    selkie_world_destroy(twin->world);
}

static void measure_soft(double particles, int threads, selkie_soft_mode mode)
{
    static bench soft, liquid;
    static const char *const names[] = {"soft, rigid mode", "soft, linear", "soft, quadratic"};
    begin(&liquid, 3, particles);
    begin(&soft, 3, particles);
    selkie_material_defaults(&soft.materials[1]);
    soft.materials[1].name = soft.bodies[0].material = "rubber";
    soft.materials[1].kind = SELKIE_MATERIAL_SOFT;
    soft.materials[1].soft.mode = mode;
    soft.scene.material_count = 2;
    selkie_body_defaults(&soft.bodies[0]);
    soft.bodies[0].material = "rubber";
    set_box(&soft.bodies[0].shape, (const double[3]){0.15, 0.2, 0.15}, (const double[3]){0.85, 0.7, 0.85});
    soft.scene.body_count = 1;
    run(&soft, &liquid, threads);
    const double every = (double)selkie_world_particle_count(soft.world);
    printf("shape matching alone (goals, pull): %.1f ns a particle of %.0f; ", phase_ms(&soft, "match") * 1e6 / every,
           every);
    report(names[mode], &soft, &liquid, (double)selkie_world_statistics(soft.world)->solid_particles);
}

static void set_heat(bench *b, int melts)
{
    selkie_material_def *water = &b->materials[0];
    water->heat_capacity = 4186;
    water->conductivity = 0.6;
    water->melting_point = melts ? 273.15 : 0.0;
    water->latent_heat = melts ? 334000 : 0.0;
    water->solid_density = melts ? 917 : 0.0;
    b->liquids[1] = b->liquids[0];
    set_box(&b->liquids[0].shape, (const double[3]){0, 0, 0}, (const double[3]){0.5, 0.5, 1});
    set_box(&b->liquids[1].shape, (const double[3]){0.5, 0, 0}, (const double[3]){1, 0.5, 1});
    b->liquids[0].temperature = 300;
    b->liquids[1].temperature = melts ? 270 : 350;
    b->scene.liquid_count = 2;
}

static void measure_heat(double particles, int threads, int melts)
{
    static bench warm, cold;
    begin(&cold, 3, particles);
    begin(&warm, 3, particles);
    set_heat(&warm, melts);
    run(&warm, &cold, threads);
    report(melts ? "heat, half is ice" : "heat", &warm, &cold, (double)selkie_world_particle_count(warm.world));
}

/* 64 discs, or a layer of balls, below the surface. */
static void measure_rigid(int dimension, double particles, int threads, double cells)
{
    static bench with, without;
    begin(&without, dimension, particles);
    begin(&with, dimension, particles);
    const int across = 8;
    for (int n = 0; n < BODIES; n++) {
        selkie_body_def *body = &with.bodies[n];
        selkie_body_defaults(body);
        selkie_shape_defaults(&body->shape, SELKIE_SHAPE_SPHERE);
        body->shape.center[0] = (n % across + 0.5) / across;
        body->shape.center[1] = dimension == 3 ? 0.25 : 0.05 + 0.65 * (n / across + 0.5) / 8;
        body->shape.center[2] = dimension == 3 ? (n / across + 0.5) / 8 : 0.0;
        body->shape.radius = cells * with.scene.domain.cell_size;
        body->density = 10;
    }
    with.scene.body_count = BODIES;
    run(&with, &without, threads);
    printf("rigid, 64, %dD, %7.0f particles, radius %3.1f cells: iterations %5.1f, without %5.1f (x %.2f); step %6.1f "
           "ms, without %6.1f "
           "(x %.2f), of processors %.1f and %.1f (x %.2f); phases, ms more:",
           dimension, (double)selkie_world_particle_count(without.world), cells, with.iterations / STEPS,
           without.iterations / STEPS, with.iterations / without.iterations, with.total, without.total,
           with.total / without.total, with.processor, without.processor, with.processor / without.processor);
    for (int p = 0; p < selkie_world_phase_count(with.world); p++) {
        const char *name = selkie_world_phase_name(with.world, p);
        const double more = with.phases[p] - phase_ms(&without, name);
        if (more > 0.01 * without.total)
            printf(" %s %.1f", name, more);
    }
    printf("\n");
    selkie_world_destroy(with.world);
    selkie_world_destroy(without.world);
}

int main(int argument_count, char **arguments)
{
    const double particles = argument_count > 1 ? atof(arguments[1]) : 4e5;
    const int threads = argument_count > 2 ? atoi(arguments[2]) : omp_get_num_procs();
    const char *which = argument_count > 3 ? arguments[3] : "soft heat rigid";
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%d threads\n", threads);
    if (strstr(which, "soft"))
        for (int mode = SELKIE_SOFT_LINEAR; mode <= SELKIE_SOFT_QUADRATIC; mode++)
            measure_soft(particles, threads, (selkie_soft_mode)mode);
    for (int melts = 0; strstr(which, "heat") && melts < 2; melts++)
        measure_heat(particles, threads, melts);
    const int rigid = strstr(which, "rigid") != NULL;
    if (rigid || strstr(which, "discs"))
        measure_rigid(2, 0.125 * particles, threads, 2.0);
    if (rigid || strstr(which, "packed"))
        measure_rigid(2, 0.125 * particles, threads, 4.0);
    if (rigid || strstr(which, "balls"))
        measure_rigid(3, particles, threads, 2.0);
    if (rigid || strstr(which, "pool"))
        measure_rigid(3, 4.0 * particles, threads, 2.0); /* the bodies touch a smaller part of the liquid */
    return 0;
}

/* Speed and memory of a step on the GPU, and the time of each kernel.
 *
 * The step is timed as it runs. The kernels are timed afterwards, one by one: their sum is larger than the step, whose
 * kernels overlap. --graphs times the graphs of the step as they run. Usage: bench_cuda
 * [dam|dam_1m|splash_1m|splash_24m|bodies|river|points|quad|honey|tar|warm|hot|sph|mesh|all]
 * [--steps N] [--kernels]
 * [--graphs] [--frames] [--probes] [--backend NAME]
 *
 * dam and dam_1m are ten seconds of the double dam at two resolutions, with steps of one CFL number; splash_1m is the
 * second after the columns meet, splash_24m a sixth of one with 3 million liquid cells. sph is a collapsing column of
 * two million particles: the time of the pressure phase over particles and applications of its operator, set-up
 * included.
 *
 * bodies is the first second of dam_1m with 64 light balls of eight cells across, in the columns and around them.
 *
 * quad is scenes/uic/quad_dam.json from 0.8 s on: four columns that meet, unilateral incompressibility, steps by
 * time.cfl 1.
 *
 * honey and tar are the start of dam_1m with a viscosity of 0.01 and 1 m2/s; warm and hot with the heat of water and
 * conductivities of 0.6 and 1e5 W/(m K), over a warm floor.
 *
 * --frames takes a frame of every fourth step: copied beside the next steps, and fetched before them.
 *
 * --probes takes a second of steps without probes, with a level and 16 heights, and with a velocity beside them.
 *
 * mesh makes surfaces of the double dam at two sizes, with two voxels a cell, in frames of 1/30 s after the columns
 * have met: on the device where the particles are, from particles of the host, and by two threads of the CPU.
 *
 * The river is a channel of 3.3 million cells, two thirds full, with a bed of running water and a free surface.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selkie/selkie.h>
#include "base/timer.h"
#include "cuda/cuda.h"
#include "cuda/surface.h"
#include "methods/sph/sph.h"
#include "world/world_internal.h"

typedef struct bench_case {
    const char *name;
    int cells[3];
    int columns[4][2][3]; /* boxes of liquid, in cells: lower and upper corner; two, or four for quad */
    double cell_size;     /* m */
    double dt;            /* s  0 = by the speed */
    double speed;         /* m/s  along x */
    int warm_up, steps;
    int points;          /* elastoplastic ones, by mpm */
    int unilateral;      /* incompressibility */
    double viscosity;    /* m2/s */
    double conductivity; /* W/(m K)  0 = no heat */
    int bodies;          /* balls along each axis */
} bench_case;

enum { COLUMNS = 4, MOST_BODIES = 64 };

/* The double dam of a million particles, which several cases start from. */
#define DAM_1M                                                                                                         \
    .cells = {100, 200, 100}, .columns = {{{0, 0, 0}, {31, 68, 31}}, {{69, 0, 69}, {100, 68, 100}}},                   \
    .cell_size = 0.01, .dt = 0.0125

static const bench_case cases[] = {
    {.name = "dam",
     .cells = {64, 128, 64},
     .columns = {{{0, 0, 0}, {20, 43, 20}}, {{44, 0, 44}, {64, 43, 64}}},
     .cell_size = 1.0 / 64,
     .dt = 0.02,
     .steps = 500},
    {.name = "dam_1m", DAM_1M, .steps = 800},
    {.name = "splash_1m", DAM_1M, .warm_up = 20, .steps = 100},
    {.name = "splash_24m",
     .cells = {286, 572, 286},
     .columns = {{{0, 0, 0}, {89, 194, 89}}, {{197, 0, 197}, {286, 194, 286}}},
     .cell_size = 0.0035,
     .dt = 0.0044,
     .warm_up = 57,
     .steps = 40},
    {.name = "bodies", DAM_1M, .warm_up = 5, .steps = 75, .bodies = 4},
    {.name = "river",
     .cells = {1600, 64, 128},
     .columns = {{{0, 0, 0}, {1600, 14, 128}}, {{0, 14, 0}, {800, 18, 128}}},
     .cell_size = 1.0 / 16,
     .dt = 0.02,
     .speed = 1.5,
     .warm_up = 5,
     .steps = 20},
    {.name = "points",
     .cells = {128, 128, 128},
     .columns = {{{8, 2, 8}, {72, 66, 40}}, {{8, 2, 40}, {56, 44, 64}}},
     .cell_size = 0.01,
     .dt = 0.01,
     .warm_up = 20,
     .steps = 200,
     .points = 1},
    {.name = "quad",
     .cells = {100, 100, 100},
     .columns = {{{0, 0, 0}, {30, 57, 30}},
                 {{70, 0, 0}, {100, 57, 30}},
                 {{0, 0, 70}, {30, 57, 100}},
                 {{70, 0, 70}, {100, 57, 100}}},
     .cell_size = 0.1,
     .warm_up = 45,
     .steps = 60,
     .unilateral = 1},
    {.name = "honey", DAM_1M, .warm_up = 5, .steps = 80, .viscosity = 0.01},
    {.name = "tar", DAM_1M, .warm_up = 5, .steps = 80, .viscosity = 1.0},
    {.name = "warm", DAM_1M, .warm_up = 5, .steps = 80, .conductivity = 0.6},
    {.name = "hot", DAM_1M, .warm_up = 5, .steps = 80, .conductivity = 1e5},
};

/* Light balls in a raster over the lower half of the domain. */
static void set_bodies(const bench_case *bench, selkie_scene *scene)
{
    static selkie_body_def bodies[MOST_BODIES];
    for (int b = 0; b < bench->bodies * bench->bodies * bench->bodies; b++) {
        const int at[3] = {b % bench->bodies, b / bench->bodies % bench->bodies, b / bench->bodies / bench->bodies};
        selkie_body_defaults(&bodies[b]);
        selkie_shape_defaults(&bodies[b].shape, SELKIE_SHAPE_SPHERE);
        bodies[b].density = 300.0;
        bodies[b].shape.radius = 4.0 * bench->cell_size;
        for (int d = 0; d < 3; d++)
            bodies[b].shape.center[d] = (at[d] + 0.5) / bench->bodies * (d == 1 ? 0.5 : 1.0) * scene->domain.size[d];
    }
    scene->bodies = bodies;
    scene->body_count = bench->bodies * bench->bodies * bench->bodies;
}

static void set_scene(const bench_case *bench, selkie_scene *scene, selkie_liquid_def liquids[COLUMNS],
                      selkie_material_def *material)
{
    selkie_scene_defaults(scene);
    scene->domain.cell_size = bench->cell_size;
    for (int l = 0; l < COLUMNS; l++) {
        selkie_liquid_defaults(&liquids[l]);
        selkie_shape_defaults(&liquids[l].shape, SELKIE_SHAPE_BOX);
        liquids[l].velocity[0] = bench->speed;
        for (int d = 0; d < 3; d++) {
            liquids[l].shape.min[d] = bench->columns[l][0][d] * bench->cell_size;
            liquids[l].shape.max[d] = bench->columns[l][1][d] * bench->cell_size;
        }
    }
    for (int d = 0; d < 3; d++)
        scene->domain.size[d] = bench->cells[d] * bench->cell_size;
    if (bench->bodies)
        set_bodies(bench, scene);
    scene->liquids = liquids;
    scene->liquid_count = bench->unilateral ? COLUMNS : 2;
    scene->time.step = bench->dt;
    scene->time.end = 1000.0;
    scene->time.fps = bench->dt > 0.0 ? 1.0 / bench->dt : 30.0;
    scene->volume = SELKIE_VOLUME_IDP;
    scene->pressure.tolerance = 1e-3;
    if (bench->unilateral) {
        scene->incompressibility = SELKIE_INCOMPRESSIBILITY_UNILATERAL;
        scene->volume = SELKIE_VOLUME_AUTO;
        scene->particles.per_cell = 27;
        scene->time.cfl = 1.0;
    }
    if (!bench->points && !(bench->viscosity > 0.0) && !(bench->conductivity > 0.0))
        return;
    selkie_material_defaults(material);
    scene->materials = material;
    scene->material_count = 1;
    if (!bench->points) {
        material->name = liquids[0].material = liquids[1].material = "honey";
        material->viscosity = bench->viscosity;
        material->heat_capacity = bench->conductivity > 0.0 ? 4186.0 : 0.0;
        material->conductivity = bench->conductivity;
        if (bench->conductivity > 0.0) {
            liquids[0].temperature = 300.0;
            liquids[1].temperature = 340.0;
            scene->domain.temperature[2] = 360.0;
        }
        return;
    }
    material->name = liquids[0].material = liquids[1].material = "clay";
    material->kind = SELKIE_MATERIAL_ELASTOPLASTIC;
    material->elastoplastic.plasticity = SELKIE_PLASTICITY_VON_MISES;
    scene->discretization = SELKIE_DISCRETIZATION_MPM;
    scene->volume = SELKIE_VOLUME_NONE;
}

/* Steps of the world; adds up iterations of both solves. Returns 0 after a failure. */
static int take_steps(selkie_world *world, int steps, double *ms, double iterations[2])
{
    selkie_error error;
    for (int s = 0; s < steps; s++) {
        if (selkie_world_step(world, &error) != SELKIE_OK) {
            fprintf(stderr, "bench_cuda: %s\n", error.message);
            return 0;
        }
        *ms += selkie_world_statistics(world)->step_ms;
        iterations[0] += world->step.density_report.iterations + world->step.correction.iterations;
        iterations[1] += world->step.pressure.iterations;
    }
    return 1;
}

/* The least bytes that a kernel moves for a particle and for a cell of the grid's blocks: records have 32 bytes, values
 * of cells 4, and what neighbours share is read once. Kernels of the solver's levels are left out: their cells vary. */
static const struct {
    const char *kernel;
    double of_particle, of_cell;
} traffic[] = {
    {"find_places", 36, 0},
    {"count_cells", 12, 4},
    {"scan_cells", 0, 12},
    {"finish_cells", 0, 8},
    {"place_all", 12, 4},
    {"move_all", 76, 4},
    {"weigh", 32, 12},
    {"gather<false>", 32, 59},
    {"measure", 0, 21},
    {"find_kinds", 0, 7},
    {"take_kinds", 0, 2},
    {"build_rows", 0, 40},
    {"read_rows", 0, 36},
    {"apply_to_cycle", 0, 32},
    {"advance", 0, 40},
    {"write_solution", 0, 12},
    {"find_displacements", 0, 21},
    {"displace<false>", 48, 12},
    {"displace<true>", 64, 12},
    {"project", 0, 49},
    {"add_forces", 0, 24},
    {"(move<NOTHING, WHOLE>)", 64, 36},
    {"(move<OBSTACLES, WHOLE>)", 64, 36},
    {"merge_faces", 0, 83},
    {"merge_centres", 0, 12},
};

/* Percent of the triad bandwidth, or 0 where the traffic is not known. */
static double share_of_triad(const selkie_world *world, const sk_cuda_time *time, double triad)
{
    const double particles = (double)world->step.particles.count,
                 cells = (double)sk_cuda_block_count(&world->step) * world->step.grid.block_cells;
    for (size_t n = 0; n < sizeof traffic / sizeof *traffic; n++)
        if (triad > 0.0 && strcmp(time->kernel, traffic[n].kernel) == 0)
            return 100.0 * (traffic[n].of_particle * particles + traffic[n].of_cell * cells) /
                   (1e-3 * time->ms / time->launches * triad);
    return 0.0;
}

static void print_kernels(const selkie_world *world, int steps, double triad)
{
    sk_cuda_time time;
    double all = 0.0;
    for (int n = 0; sk_cuda_profile_entry(&world->step, n, &time); n++)
        all += time.ms;
    for (int n = 0; sk_cuda_profile_entry(&world->step, n, &time); n++)
        printf("    %-34s %8.4f ms a step  %6.1f launches  %7.2f us each  %4.1f %%  %3.0f %% of triad\n", time.kernel,
               time.ms / steps, (double)time.launches / steps, 1e3 * time.ms / time.launches, 100.0 * time.ms / all,
               share_of_triad(world, &time, triad));
    printf("    all together: %.3f ms\n", all / steps);
}

/* Cells that the solves of a step have found a pressure for, a second of their time: iterations, systems included. */
static void print_solves(const selkie_world *world)
{
    const double cells = (double)selkie_world_statistics(world)->liquid_cells;
    sk_cuda_time time;
    double ms = 0.0, systems = 0.0;
    for (int n = 0; sk_cuda_profile_entry(&world->step, n, &time); n++) {
        const size_t length = strlen(time.kernel);
        const int is_system = length > 7 && strcmp(time.kernel + length - 7, "_system") == 0;
        systems += is_system ? time.launches : 0;
        ms += is_system || strstr(time.kernel, "iteration") ? time.ms : 0.0;
    }
    if (ms > 0.0)
        printf("    solves: %.0f million cells a second\n", 1e-3 * systems * cells / ms);
}

typedef struct bench_options {
    selkie_backend backend;
    int steps; /* 0 = as many as the case has */
    int with_kernels, with_graphs, with_cpu, with_frames, with_probes;
} bench_options;

/* Mean time (ms) of steps of the case on two cores, for the ratio; 0 after a failure. */
static double time_of_cpu(const bench_case *bench, int steps)
{
    selkie_scene scene;
    selkie_liquid_def liquids[COLUMNS];
    selkie_material_def material;
    selkie_world_options options;
    selkie_world *world;
    selkie_error error;
    double ms = 0.0, iterations[2] = {0.0, 0.0};
    set_scene(bench, &scene, liquids, &material);
    selkie_world_options_defaults(&options);
    options.with_backend = 1;
    options.backend = SELKIE_BACKEND_TUNED;
    options.threads = 2;
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK)
        return 0.0;
    const int good = take_steps(world, steps, &ms, iterations);
    selkie_world_destroy(world);
    return good ? ms / steps : 0.0;
}

enum { NO_FRAMES, COPIED, FETCHED, FRAME_KINDS };

/* Mean time (ms) of steps, a frame of every fourth included. */
static double time_of_frames(selkie_world *world, int kind)
{
    enum { STEPS = 24 };
    selkie_error error;
    sk_world_copy *before = NULL;
    const double begin = sk_wall_ms();
    int good = 1;
    for (int s = 0; s < STEPS && good; s++) {
        good = selkie_world_step(world, &error) == SELKIE_OK;
        if (!good || kind == NO_FRAMES || s % 4)
            continue;
        if (kind == FETCHED) {
            good = sk_world_fetch(world, 0, &error) == SELKIE_OK;
            continue;
        }
        sk_world_copy_free(before); /* as a writer that needs less than four steps for a frame */
        good = sk_world_copy_begin(world, &before, &error) == SELKIE_OK;
    }
    sk_world_copy_free(before);
    return good ? (sk_wall_ms() - begin) / STEPS : 0.0;
}

static void print_frames(selkie_world *world)
{
    time_of_frames(world, COPIED); /* takes the memory */
    double ms[FRAME_KINDS];
    for (int kind = 0; kind < FRAME_KINDS; kind++)
        ms[kind] = time_of_frames(world, kind);
    printf("    a step %.3f ms; with a frame of every fourth %.3f ms copied beside the steps, %.3f ms fetched\n",
           ms[NO_FRAMES], ms[COPIED], ms[FETCHED]);
}

/* Mean time (ms) of steps with some probes; 0 after a failure. */
static double time_of_probes(const selkie_scene *scene, const selkie_world_options *options, int probes)
{
    selkie_scene probed = *scene;
    selkie_probe_def defs[18];
    selkie_world *world;
    selkie_error error;
    double ms = 0.0, iterations[2] = {0.0, 0.0};
    memset(defs, 0, sizeof defs);
    for (int p = 0; p < 18; p++) {
        defs[p].name = "probe";
        defs[p].kind = p == 0 ? SELKIE_PROBE_LEVEL : p < 17 ? SELKIE_PROBE_HEIGHT : SELKIE_PROBE_VELOCITY;
        defs[p].at[0] = scene->domain.size[0] * (0.125 + 0.25 * (p % 4));
        defs[p].at[2] = scene->domain.size[2] * (0.125 + 0.25 * (p / 4 % 4));
    }
    probed.probes = defs;
    probed.probe_count = probes;
    if (selkie_world_create(&probed, options, &world, &error) != SELKIE_OK)
        return 0.0;
    int good = take_steps(world, 5, &ms, iterations); /* records the graphs */
    ms = 0.0;
    good = good && take_steps(world, 50, &ms, iterations);
    selkie_world_destroy(world);
    return good ? ms / 50 : 0.0;
}

static int run(const bench_case *bench, const bench_options *wanted)
{
    selkie_scene scene;
    selkie_liquid_def liquids[COLUMNS];
    selkie_material_def material;
    selkie_world_options options;
    selkie_world *world;
    selkie_error error;
    set_scene(bench, &scene, liquids, &material);
    selkie_world_options_defaults(&options);
    options.with_backend = 1;
    options.backend = wanted->backend;
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK) {
        fprintf(stderr, "bench_cuda: %s\n", error.message);
        return 1;
    }

    /* The step as it is. */
    double ms = 0.0, iterations[2] = {0.0, 0.0};
    const int count = wanted->steps ? wanted->steps : bench->steps;
    int good = take_steps(world, bench->warm_up, &ms, iterations);
    ms = iterations[0] = iterations[1] = 0.0;
    good = good && take_steps(world, count, &ms, iterations);
    const selkie_statistics *statistics = selkie_world_statistics(world);
    const double particles = (double)statistics->particles;
    printf("%-8s %9.0f particles, %8lld liquid cells: step %.3f ms, iterations %.1f and %.1f, %.0f B a particle\n",
           bench->name, particles, (long long)statistics->liquid_cells, ms / count, iterations[0] / count,
           iterations[1] / count, (double)sk_cuda_bytes(&world->step) / particles);

    if (good && wanted->with_frames)
        print_frames(world);

    /* Its graphs and kernels. */
    for (int kernels = 0; good && kernels < 2; kernels++) {
        const int timed = count < 10 ? count : 10;
        if (!(kernels ? wanted->with_kernels : wanted->with_graphs))
            continue;
        sk_cuda_start_profile(&world->step, kernels ? SK_CUDA_TIME_KERNELS : SK_CUDA_TIME_GRAPHS);
        ms = 0.0;
        good = take_steps(world, timed, &ms, iterations);
        printf("    a step while they are timed: %.3f ms, %d density corrections in the last one\n", ms / timed,
               world->step.density_passes);
        print_kernels(world, timed, kernels ? sk_cuda_triad() : 0.0);
        if (!kernels)
            print_solves(world);
    }
    selkie_world_destroy(world);

    if (good && wanted->with_probes)
        printf("    the first second: %.3f ms a step, %.3f ms with 17 probes, %.3f ms with a velocity beside them\n",
               time_of_probes(&scene, &options, 0), time_of_probes(&scene, &options, 17),
               time_of_probes(&scene, &options, 18));

    /* The same first steps on both. */
    if (good && wanted->with_cpu) {
        const int first = particles > 1e7 ? 2 : 20;
        const double cpu = time_of_cpu(bench, first);
        if (selkie_world_create(&scene, &options, &world, &error) == SELKIE_OK) {
            good = take_steps(world, 1, &ms, iterations); /* records the graphs */
            ms = 0.0;
            good = good && take_steps(world, first, &ms, iterations);
            selkie_world_destroy(world);
            printf("    the first %d steps: %.1f ms each on two cores, %.2f ms here, ratio %.1f\n", first, cpu,
                   ms / first, cpu * first / ms);
        }
    }
    fflush(stdout);
    return !good;
}

/* A column of water that collapses in a room, by SPH: steps, then the times of its graphs. */
static int run_sph(selkie_sph_solver solver, const bench_options *wanted)
{
    static const int column[3] = {45, 74, 76};
    static const double room[3] = {3.0, 1.5, 1.0};
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_world_options options;
    selkie_world *world;
    selkie_error error;
    selkie_scene_defaults(&scene);
    selkie_scene_set_method(&scene, SELKIE_METHOD_SPH);
    selkie_liquid_defaults(&liquid);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_BOX);
    scene.domain.cell_size = 1.0 / column[1];
    for (int d = 0; d < 3; d++) {
        liquid.shape.max[d] = column[d] * scene.domain.cell_size;
        scene.domain.size[d] = column[d] * room[d] * scene.domain.cell_size;
    }
    scene.liquids = &liquid;
    scene.liquid_count = 1;
    scene.time.end = 1000.0;
    scene.sph.solver = solver;
    scene.sph.max_iterations = 1000;
    selkie_world_options_defaults(&options);
    options.with_backend = 1;
    options.backend = wanted->backend;
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK) {
        fprintf(stderr, "bench_cuda: %s\n", error.message);
        return 1;
    }
    double ms = 0.0, iterations[2] = {0.0, 0.0};
    const int steps = wanted->steps ? wanted->steps : 20;
    int good = take_steps(world, 20, &ms, iterations);
    ms = iterations[1] = 0.0;
    good = good && take_steps(world, steps, &ms, iterations);
    const double particles = (double)selkie_world_statistics(world)->particles;
    printf("sph      %9.0f particles, %s: step %.2f ms, iterations %.1f, %.1f neighbours, %.0f B a particle\n",
           particles, solver == SELKIE_SPH_IISPH ? "iisph" : "accelerated", ms / steps, iterations[1] / steps,
           (double)world->step.sph->report.pairs / particles, (double)sk_cuda_bytes(&world->step) / particles);
    for (int kernels = 0; good && kernels < 1 + wanted->with_kernels; kernels++) {
        sk_cuda_time time;
        sk_cuda_start_profile(&world->step, kernels ? SK_CUDA_TIME_KERNELS : SK_CUDA_TIME_GRAPHS);
        iterations[1] = 0.0;
        good = take_steps(world, kernels ? 2 : 10, &ms, iterations);
        for (int n = 0; sk_cuda_profile_entry(&world->step, n, &time); n++) {
            printf("    %-24s %9.4f ms a launch, %d launches", time.kernel, time.ms / time.launches, time.launches);
            if (strcmp(time.kernel, "sph_pressure") == 0)
                printf(", %.3f ns a particle and application", 1e6 * time.ms / (particles * (iterations[1] + 10)));
            printf("\n");
        }
    }
    selkie_world_destroy(world);
    fflush(stdout);
    return !good;
}

/* --- surfaces --- */

static const bench_case mesh_cases[] = {
    {.name = "mesh",
     .cells = {64, 128, 64},
     .columns = {{{0, 0, 0}, {20, 43, 20}}, {{44, 0, 44}, {64, 43, 64}}},
     .cell_size = 1.0 / 64,
     .warm_up = 20,
     .steps = 5},
    {.name = "mesh_4m",
     .cells = {157, 314, 157},
     .columns = {{{0, 0, 0}, {49, 105, 49}}, {{108, 0, 108}, {157, 105, 157}}},
     .cell_size = 1.0 / 157,
     .warm_up = 20,
     .steps = 3},
};

/* Times (ms) of a frame and its surfaces. */
typedef struct mesh_times {
    double frame, here, sent, cpu;
    size_t vertices, triangles;
    int same; /* the bits of the CPU's */
} mesh_times;

static int is_same(const sk_mesh *a, const sk_mesh *b)
{
    return a->vertex_count == b->vertex_count && a->triangle_count == b->triangle_count &&
           !memcmp(a->positions, b->positions, 12 * a->vertex_count) &&
           !memcmp(a->normals, b->normals, 12 * a->vertex_count) &&
           !memcmp(a->velocities, b->velocities, 12 * a->vertex_count) &&
           !memcmp(a->triangles, b->triangles, 12 * a->triangle_count);
}

/* Adds the times of the surfaces of a frame. */
static int time_surfaces(selkie_world *world, sk_cuda_mesher *mesher, mesh_times *times)
{
    selkie_error error = {0};
    sk_surface_options options;
    sk_mesh meshes[3] = {{0}};
    sk_surface_options_init(&options, selkie_world_scene(world));
    options.threads = 2;
    double begin = sk_wall_ms();
    int good = sk_cuda_has_particles(&world->step) &&
               !sk_cuda_surface_extract_here(mesher, &world->step, &options, &meshes[0], &error);
    times->here += sk_wall_ms() - begin;
    good = good && sk_world_fetch(world, 0, &error) == SELKIE_OK;
    const sk_particle *records = world->step.particles.records;
    const sk_surface_particles particles = {(size_t)world->step.particles.count, records->position, sizeof *records,
                                            records->velocity, sizeof *records};
    begin = sk_wall_ms();
    good = good && !sk_cuda_surface_extract(mesher, &particles, &options, &meshes[1], &error);
    times->sent += sk_wall_ms() - begin;
    begin = sk_wall_ms();
    good = good && !sk_surface_extract(&particles, &options, &meshes[2], &error);
    times->cpu += sk_wall_ms() - begin;
    if (good) {
        times->vertices = meshes[0].vertex_count;
        times->triangles = meshes[0].triangle_count;
        times->same &= is_same(&meshes[0], &meshes[2]) && is_same(&meshes[1], &meshes[2]);
    } else {
        fprintf(stderr, "bench_cuda: %s\n", error.message);
    }
    for (int n = 0; n < 3; n++)
        sk_mesh_free(&meshes[n]);
    return good;
}

static int take_frame(selkie_world *world, double *ms)
{
    double iterations[2];
    do
        if (!take_steps(world, 1, ms, iterations))
            return 0;
    while (!selkie_world_at_frame(world));
    return 1;
}

static void print_mesh_kernels(selkie_world *world, sk_cuda_mesher *mesher)
{
    static sk_step timed; /* only for its launches */
    mesh_times times = {0};
    timed.cuda = sk_cuda_mesher_launches(mesher);
    sk_cuda_start_profile(&timed, SK_CUDA_TIME_KERNELS);
    sk_cuda_time time;
    double all = 0.0;
    if (!time_surfaces(world, mesher, &times))
        return;
    for (int n = 0; sk_cuda_profile_entry(&timed, n, &time); n++) {
        printf("    %-24s %8.1f us a surface, %4.1f launches\n", time.kernel, 500.0 * time.ms, 0.5 * time.launches);
        all += 0.5 * time.ms;
    }
    printf("    all kernels: %.3f ms\n", all);
}

static int run_mesh(const bench_case *bench, const bench_options *wanted)
{
    selkie_scene scene;
    selkie_liquid_def liquids[COLUMNS];
    selkie_material_def material;
    selkie_world_options options;
    selkie_world *world;
    selkie_error error;
    set_scene(bench, &scene, liquids, &material);
    scene.mesh.resolution = 2.0;
    selkie_world_options_defaults(&options);
    options.with_backend = 1;
    options.backend = SELKIE_BACKEND_CUDA;
    sk_cuda_mesher *mesher = NULL;
    if (selkie_world_create(&scene, &options, &world, &error) != SELKIE_OK) {
        fprintf(stderr, "bench_cuda: %s\n", error.message);
        return 1;
    }
    mesh_times times = {.same = 1}, first = {.same = 1};
    const int frames = wanted->steps ? wanted->steps : bench->steps;
    int good = sk_cuda_mesher_create(&mesher, &error) == SELKIE_OK;
    for (int f = 0; good && f < bench->warm_up; f++)
        good = take_frame(world, &first.frame);
    good = good && time_surfaces(world, mesher, &first); /* takes the memory */
    for (int f = 0; good && f < frames; f++)
        good = take_frame(world, &times.frame) && time_surfaces(world, mesher, &times);
    if (good) {
        const double particles = (double)selkie_world_particle_count(world);
        printf("%-8s %9.0f particles, two voxels a cell: %zu triangles in %.2f ms, %.2f ms with particles of the host, "
               "%.0f B a particle\n",
               bench->name, particles, times.triangles, times.here / frames, times.sent / frames,
               (double)sk_cuda_mesher_bytes(mesher) / particles);
        printf("    a simulated frame takes %.2f ms: the surface %.2f of it; two cores take %.0f ms for the surface, "
               "ratio %.0f; %s\n",
               times.frame / frames, times.here / times.frame, times.cpu / frames, times.cpu / times.here,
               times.same && first.same ? "the same bits" : "OTHER BITS");
        if (wanted->with_kernels)
            print_mesh_kernels(world, mesher);
        good = times.same && first.same;
    }
    fflush(stdout);
    sk_cuda_mesher_destroy(mesher);
    selkie_world_destroy(world);
    return !good;
}

int main(int argc, char **argv)
{
    const char *which = "all";
    bench_options wanted = {.backend = SELKIE_BACKEND_CUDA};
    int failed = 0;
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--steps") == 0 && a + 1 < argc)
            wanted.steps = atoi(argv[++a]);
        else if (strcmp(argv[a], "--backend") == 0 && a + 1 < argc)
            wanted.backend = strcmp(argv[++a], "tuned") == 0 ? SELKIE_BACKEND_TUNED : SELKIE_BACKEND_CUDA;
        else if (strcmp(argv[a], "--kernels") == 0)
            wanted.with_kernels = 1;
        else if (strcmp(argv[a], "--graphs") == 0)
            wanted.with_graphs = 1;
        else if (strcmp(argv[a], "--cpu") == 0)
            wanted.with_cpu = 1;
        else if (strcmp(argv[a], "--frames") == 0)
            wanted.with_frames = 1;
        else if (strcmp(argv[a], "--probes") == 0)
            wanted.with_probes = 1;
        else
            which = argv[a];
    }
    sk_cuda_info info;
    selkie_error error = {0};
    if (wanted.backend == SELKIE_BACKEND_CUDA && sk_cuda_find(&info, &error) != SELKIE_OK) {
        printf("bench_cuda: skipped: %s\n", error.message);
        return 0;
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (strcmp(which, "all") == 0 || strcmp(cases[c].name, which) == 0)
            failed |= run(&cases[c], &wanted);
    if (strcmp(which, "all") == 0 || strcmp(which, "sph") == 0) {
        failed |= run_sph(SELKIE_SPH_IISPH, &wanted);
        failed |= run_sph(SELKIE_SPH_ACCELERATED, &wanted);
    }
    for (size_t c = 0; c < sizeof mesh_cases / sizeof *mesh_cases; c++)
        if (strcmp(which, "all") == 0 || strcmp(which, "mesh") == 0)
            failed |= wanted.backend == SELKIE_BACKEND_CUDA && run_mesh(&mesh_cases[c], &wanted);
    return failed;
}

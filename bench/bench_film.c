/* From the simulation to a film: the cost of a frame's surface, file and picture, over the simulation of that frame.
 *
 * All figures of a line are taken in one run, frame by frame, because timings of different runs cannot be compared.
 * Usage: bench_film [SCENE.json] [--frames N] [--first N] [--threads N] [--picture] [--probes] [--whitewater]
 * --probes compares the scene's steps with those of the scene without its probes, step by step in turn.
 * --whitewater fills the scene with a million particles of whitewater before the frames that are timed.
 */
#define _GNU_SOURCE
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <selkie/selkie.h>
#include "base/timer.h"
#include "geom/surface.h"
#include "whitewater/whitewater.h"

/* Particles of whitewater. */
enum { whitewater_most = 1000000 };

/* Times of one kind of work, summed over the frames. */
typedef struct tally {
    double wall, cpu; /* ms */
} tally;

typedef struct film {
    selkie_world *world;
    tally simulation, mesh_grid, mesh_twice, particles, picture, whitewater;
    sk_whitewater water;
    size_t triangles; /* of the last surface, at twice the grid's resolution */
    double volume;    /* m3 inside it */
    double bytes;     /* of the last particle file */
} film;

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void begin(tally *t)
{
    t->wall -= sk_wall_ms();
    t->cpu -= cpu_ms();
}

static void end(tally *t)
{
    t->wall += sk_wall_ms();
    t->cpu += cpu_ms();
}

static selkie_code find_cloud(const film *f, sk_surface_particles *cloud, selkie_error *error)
{
    selkie_attribute_view position, velocity;
    SK_TRY(selkie_world_find_attribute(f->world, "position", &position, error));
    SK_TRY(selkie_world_find_attribute(f->world, "velocity", &velocity, error));
    *cloud = (sk_surface_particles){.count = (size_t)selkie_world_particle_count(f->world),
                                    .position = position.data,
                                    .position_stride = position.stride,
                                    .velocity = velocity.data,
                                    .velocity_stride = velocity.stride};
    return SELKIE_OK;
}

static selkie_code mesh(film *f, double voxels_per_cell, int threads, tally *t, selkie_error *error)
{
    const selkie_scene *scene = selkie_world_scene(f->world);
    int cells[3];
    double cell_size = selkie_scene_cells(scene, cells);
    sk_surface_options options = {.particle_spacing = cell_size / cbrt(selkie_scene_particles_per_cell(scene)),
                                  .voxel_size = cell_size / voxels_per_cell,
                                  .smoothing = 1.0,
                                  .threads = threads};
    for (int k = 0; k < 3; k++)
        options.high[k] = cells[k] * cell_size;
    sk_surface_particles cloud;
    SK_TRY(find_cloud(f, &cloud, error));
    sk_mesh surface = {0};
    begin(t);
    selkie_code code = sk_surface_extract(&cloud, &options, &surface, error);
    end(t);
    f->triangles = surface.triangle_count;
    f->volume = sk_mesh_volume(&surface);
    sk_mesh_free(&surface);
    return code;
}

static selkie_code simulate_frame(film *f, selkie_error *error)
{
    do
        SK_TRY(selkie_world_step(f->world, error));
    while (!selkie_world_at_frame(f->world) && !selkie_world_finished(f->world));
    return SELKIE_OK;
}

static selkie_code film_frame(film *f, const char *folder, int threads, int with_picture, selkie_error *error)
{
    char path[512];
    begin(&f->simulation);
    SK_TRY(simulate_frame(f, error));
    end(&f->simulation);

    SK_TRY(mesh(f, 1.0, threads, &f->mesh_grid, error));
    SK_TRY(mesh(f, 2.0, threads, &f->mesh_twice, error));

    snprintf(path, sizeof path, "%s/particles.skp", folder);
    begin(&f->particles);
    SK_TRY(selkie_write_particles(f->world, path, error));
    end(&f->particles);
    FILE *file = fopen(path, "rb");
    if (file && !fseek(file, 0, SEEK_END))
        f->bytes = (double)ftell(file);
    if (file)
        fclose(file);
    remove(path);

    if (with_picture) {
        snprintf(path, sizeof path, "%s/picture.png", folder);
        begin(&f->picture);
        SK_TRY(selkie_write_picture(f->world, path, error));
        end(&f->picture);
        remove(path);
    }
    return SELKIE_OK;
}

static void print_row(const film *f, const char *name, const tally *t, int frames)
{
    printf("  %-28s %8.1f ms  %8.1f ms of CPU  %6.2f times the simulation\n", name, t->wall / frames, t->cpu / frames,
           t->cpu / f->simulation.cpu);
}

static selkie_code film_scene(const char *scene_path, int first, int frames, int threads, int with_picture,
                              selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(selkie_scene_load(scene_path, 0, NULL, &scene, error));
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    film f = {0};
    char folder[] = "/tmp/bench_film_XXXXXX";
    selkie_code code = selkie_world_create(scene, &options, &f.world, error);
    while (!code && selkie_world_frame(f.world) < first)
        code = selkie_world_step(f.world, error);
    if (!code && !mkdtemp(folder))
        code = SELKIE_ERROR_FILE;

    for (int n = 0; n < frames && !code; n++)
        code = film_frame(&f, folder, threads, with_picture, error);
    if (!code) {
        double count = (double)selkie_world_particle_count(f.world);
        printf("%s: %.0f particles, %d threads, mean of frames %d to %d\n", scene_path, count, threads, first + 1,
               first + frames);
        print_row(&f, "simulation", &f.simulation, frames);
        print_row(&f, "mesh, a voxel a cell", &f.mesh_grid, frames);
        print_row(&f, "mesh, two voxels a cell", &f.mesh_twice, frames);
        print_row(&f, "compact particles", &f.particles, frames);
        if (with_picture)
            print_row(&f, "picture", &f.picture, frames);
        printf("  %zu triangles around %.6g m3 at last; %.2f B a particle\n", f.triangles, f.volume, f.bytes / count);
    }
    rmdir(folder);
    selkie_world_destroy(f.world);
    selkie_scene_free(scene);
    return code;
}

/* --- Whitewater --- */

static selkie_code step_whitewater(film *f, double dt, selkie_error *error)
{
    sk_surface_particles cloud;
    SK_TRY(find_cloud(f, &cloud, error));
    return sk_whitewater_step(&f->water, &cloud, selkie_world_frame(f->world), selkie_world_time(f->world), dt, error);
}

/* Simulates up to the frames that count, with more whitewater than there is room for. */
static selkie_code fill_whitewater(film *f, int first, double dt, selkie_error *error)
{
    while (selkie_world_frame(f->world) < first) {
        SK_TRY(simulate_frame(f, error));
        SK_TRY(step_whitewater(f, dt, error));
    }
    return SELKIE_OK;
}

/* The cost of a million particles of whitewater. */
static selkie_code film_whitewater(const char *scene_path, int first, int frames, int threads, selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(selkie_scene_load(scene_path, 0, NULL, &scene, error));
    scene->whitewater.rate *= 100.0;
    scene->whitewater.most = whitewater_most;
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    film f = {0};
    const double dt = 1.0 / scene->time.fps;
    selkie_code code = selkie_world_create(scene, &options, &f.world, error);
    if (!code)
        code = sk_whitewater_init(&f.water, scene, threads, error);
    if (!code)
        code = fill_whitewater(&f, first, dt, error);
    for (int n = 0; n < frames && !code; n++) {
        begin(&f.simulation);
        code = simulate_frame(&f, error);
        end(&f.simulation);
        begin(&f.whitewater);
        if (!code)
            code = step_whitewater(&f, dt, error);
        end(&f.whitewater);
    }
    if (!code) {
        printf("%s: %lld particles, %zu of whitewater, %d threads, mean of frames %d to %d\n", scene_path,
               (long long)selkie_world_particle_count(f.world), f.water.count, threads, first + 1, first + frames);
        print_row(&f, "simulation", &f.simulation, frames);
        print_row(&f, "whitewater", &f.whitewater, frames);
    }
    sk_whitewater_free(&f.water);
    selkie_world_destroy(f.world);
    selkie_scene_free(scene);
    return code;
}

/* --- Probes --- */

enum { most_steps = 4096 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count ? 0.5 * (values[(count - 1) / 2] + values[count / 2]) : 0.0;
}

static selkie_code step_timed(selkie_world *world, tally *step, selkie_error *error)
{
    *step = (tally){0, 0};
    begin(step);
    selkie_code code = selkie_world_step(world, error);
    end(step);
    return code;
}

/* The cost of the scene's probes: the median over the steps, because other programs disturb single ones. Each world
 * goes first in every other step, because the second one finds the caches full of the first one's particles. The
 * difference is taken from each pair of neighbouring steps, one in each order, so that this cancels in it too. */
static selkie_code compare_probes(const char *scene_path, int first, int frames, int threads, selkie_error *error)
{
    selkie_scene *scene;
    SK_TRY(selkie_scene_load(scene_path, 0, NULL, &scene, error));
    const int probes = scene->probe_count;
    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *worlds[2] = {NULL, NULL};
    static double wall[most_steps], cpu[most_steps], alone[most_steps], alone_wall[most_steps];
    int counted = 0;
    selkie_code code = SELKIE_OK;
    for (int w = 0; w < 2 && !code; w++) {
        scene->probe_count = w ? probes : 0;
        code = selkie_world_create(scene, &options, &worlds[w], error);
    }
    for (int n = 0; !code && selkie_world_frame(worlds[1]) < first + frames && counted < most_steps; n++) {
        tally times[2];
        for (int w = 0; w < 2 && !code; w++)
            code = step_timed(worlds[(n + w) & 1], &times[(n + w) & 1], error);
        if (selkie_world_frame(worlds[1]) < first || code)
            continue;
        wall[counted] = times[1].wall - times[0].wall;
        cpu[counted] = times[1].cpu - times[0].cpu;
        alone[counted] = times[0].cpu;
        alone_wall[counted++] = times[0].wall;
    }
    const int pairs = counted / 2;
    for (int n = 0; n < pairs; n++) {
        wall[n] = 0.5 * (wall[2 * n] + wall[2 * n + 1]);
        cpu[n] = 0.5 * (cpu[2 * n] + cpu[2 * n + 1]);
    }
    if (!code)
        printf("%s: %d probes add %.1f %% to %.1f ms of CPU a step, %.1f %% of wall time (medians of %d steps)\n",
               scene_path, probes, 100.0 * median(cpu, pairs) / median(alone, counted), median(alone, counted),
               100.0 * median(wall, pairs) / median(alone_wall, counted), counted);
    selkie_world_destroy(worlds[0]);
    selkie_world_destroy(worlds[1]);
    scene->probe_count = probes;
    selkie_scene_free(scene);
    return code;
}

int main(int argc, char **argv)
{
    const char *scene = SELKIE_SCENES "/examples/dam_break_3d.json";
    int first = 15, frames = 10, threads = omp_get_num_procs(), with_picture = 0, probes = 0, whitewater = 0;
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--frames") == 0 && a + 1 < argc)
            frames = atoi(argv[++a]);
        else if (strcmp(argv[a], "--first") == 0 && a + 1 < argc)
            first = atoi(argv[++a]);
        else if (strcmp(argv[a], "--threads") == 0 && a + 1 < argc)
            threads = atoi(argv[++a]);
        else if (strcmp(argv[a], "--picture") == 0)
            with_picture = 1;
        else if (strcmp(argv[a], "--probes") == 0)
            probes = 1;
        else if (strcmp(argv[a], "--whitewater") == 0)
            whitewater = 1;
        else
            scene = argv[a];
    }
    selkie_error error = {0};
    if (probes       ? compare_probes(scene, first, frames, threads, &error)
        : whitewater ? film_whitewater(scene, first, frames, threads, &error)
                     : film_scene(scene, first, frames, threads, with_picture, &error)) {
        fprintf(stderr, "bench_film: %s\n", error.message);
        return 1;
    }
    return 0;
}

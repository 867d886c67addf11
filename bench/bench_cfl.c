/* What the CFL number costs and what it keeps: the dam of 0.3 m in a tank of 1.61 m (Buchner 2002), 2D, 24 cells deep,
 * with implicit density projection. Printed are means over the starts: energy above rest at 1.2 s, when the front has
 * run up the far wall and falls back; the largest roughness of the smooth surface, 0.25 to 0.45 s; volume; steps;
 * processor time, which other programs disturb less than wall time: on one thread of an idle machine they are the same.
 * Usage: bench_cfl [--starts N] [--threads N] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <selkie/selkie.h>

static const double cell = 0.3 / 24, gravity = 9.81; /* m, m/s2 */

/* ms, of all threads. */
static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

typedef struct result {
    double energy, rough, volume, steps, time; /* J, cells, of the start, 1, ms */
} result;

/* Second differences of the highest particles of neighbouring columns. Independent tops of variance s^2 have a bend of
 * variance 1.5 s^2. */
static double roughness(const selkie_world *world)
{
    double top[160] = {0.0}, sum = 0.0;
    int count = 0;
    selkie_attribute_view position;
    if (selkie_world_find_attribute(world, "position", &position, NULL) != SELKIE_OK)
        return 0.0;
    for (int64_t p = 0; p < selkie_world_particle_count(world); p++) {
        const float *x = (const float *)((const char *)position.data + (size_t)p * position.stride);
        const int column = (int)(x[0] / cell);
        if (column >= 0 && column < 160)
            top[column] = fmax(top[column], x[1] / cell);
    }

    for (int i = 2; i < 158; i++)
        if (top[i - 1] > 3.0 && top[i] > 3.0 && top[i + 1] > 3.0) {
            const double bend = top[i] - 0.5 * (top[i - 1] + top[i + 1]);
            sum += bend * bend;
            count++;
        }
    return count ? sqrt(sum / (1.5 * count)) : 0.0;
}

/* Runs the dam to 1.2 s. Returns 0 where it fails, with a message. */
static int run_dam(selkie_transfer transfer, double cfl, uint64_t seed, int threads, result *r)
{
    selkie_scene scene;
    selkie_liquid_def liquid;
    selkie_scene_defaults(&scene);
    scene.domain.dimension = 2;
    scene.domain.cell_size = cell;
    scene.domain.size[0] = 1.61;
    scene.domain.size[1] = 0.9;
    scene.transfer = transfer;
    scene.volume = SELKIE_VOLUME_IDP;
    scene.seed = seed;
    scene.time.cfl = cfl;
    scene.time.fps = 30.0;
    scene.time.end = 1000.0;
    selkie_liquid_defaults(&liquid);
    selkie_shape_defaults(&liquid.shape, SELKIE_SHAPE_BOX);
    liquid.shape.max[0] = 0.6;
    liquid.shape.max[1] = 0.3;
    liquid.shape.max[2] = 1.0;
    scene.liquids = &liquid;
    scene.liquid_count = 1;

    selkie_world_options options;
    selkie_world_options_defaults(&options);
    options.threads = threads;
    selkie_world *world = NULL;
    selkie_error error = {0};
    int good = selkie_world_create(&scene, &options, &world, &error) == SELKIE_OK;
    const double start = processor_ms();
    while (good && selkie_world_time(world) < 1.2 - 1e-9) {
        good = selkie_world_step(world, &error) == SELKIE_OK;
        r->steps += 1.0;
        if (good && selkie_world_time(world) > 0.25 && selkie_world_time(world) < 0.45)
            r->rough = fmax(r->rough, roughness(world));
    }
    if (!good) {
        fprintf(stderr, "bench_cfl: %s\n", error.message);
        selkie_world_destroy(world);
        return 0;
    }

    const selkie_statistics *s = selkie_world_statistics(world);
    const double mass = selkie_world_particle_mass(world) * (double)s->particles;
    r->time = processor_ms() - start;
    r->energy = s->kinetic_energy + s->potential_energy - 0.5 * mass * gravity * mass / 1000.0 / (129 * cell);
    r->volume = s->volume_ratio;
    selkie_world_destroy(world);
    return 1;
}

int main(int argc, char **argv)
{
    int starts = 4, threads = 1;
    for (int a = 1; a < argc; a++) {
        int *value = !strcmp(argv[a], "--starts") ? &starts : !strcmp(argv[a], "--threads") ? &threads : NULL;
        if (!value || a + 1 >= argc || (*value = atoi(argv[++a])) < 1) {
            fprintf(stderr, "usage: bench_cfl [--starts N] [--threads N]\n");
            return 2;
        }
    }

    static const double numbers[] = {6, 4, 3, 2.5, 2, 1.75, 1.5, 1, 0.5};
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    printf(
        "| transfer | CFL number | energy (J of 166) | roughness (cells) | volume | steps | processor time (ms) |\n");
    for (int method = 0; method < 2; method++) {
        result sum[NUMBERS] = {{0}};
        for (int start = 0; start < starts; start++)
            for (int n = 0; n < NUMBERS; n++) {
                result r = {0};
                if (!run_dam(method ? SELKIE_TRANSFER_APIC : SELKIE_TRANSFER_FLIP, numbers[n], (uint64_t)start + 1,
                             threads, &r))
                    return 1;
                sum[n].energy += r.energy / starts;
                sum[n].rough = fmax(sum[n].rough, r.rough);
                sum[n].volume += r.volume / starts;
                sum[n].steps += r.steps / starts;
                sum[n].time += r.time / starts;
            }
        for (int n = 0; n < NUMBERS; n++)
            printf("| %s | %g | %.1f | %.3f | %.4f | %.0f | %.0f |\n", method ? "apic" : "flip", numbers[n],
                   sum[n].energy, sum[n].rough, sum[n].volume, sum[n].steps, sum[n].time);
        fflush(stdout);
    }
    return 0;
}

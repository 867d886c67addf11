/* Strings of liquid that break up, over their lengths (Um et al. 2018, Fig. 6). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/folder.h"
#include "reproduce_splash.h"
#include "splash.h"

enum { LENGTHS = 5, SEEDS = 4, KINDS = 3 };

/* Cells of twice the coarse ones, the shortest distance that those resolve. Such a cell counts where it is a tenth
 * full: spray is not a droplet here. A droplet holds the liquid of at least one of them. */
#define CELL 0.02
#define LEAST_FILL 0.1

/* Adds up the particles of a droplet, from one of its cells on, and clears these. */
static int64_t take_droplet(int64_t *held, int width, int height, int first, int *stack)
{
    int depth = 0;
    int64_t sum = held[first];
    held[first] = 0;
    stack[depth++] = first;
    while (depth) {
        const int at = stack[--depth], i = at % width, j = at / width;
        for (int y = j - 1; y <= j + 1; y++)
            for (int x = i - 1; x <= i + 1; x++) {
                if (x < 0 || x >= width || y < 0 || y >= height || !held[x + width * y])
                    continue;
                sum += held[x + width * y];
                held[x + width * y] = 0;
                stack[depth++] = x + width * y;
            }
    }
    return sum;
}

/* Number of droplets of a frame, with `full` particles in a full cell. */
static int count_droplets(const sk_particles_data *data, const selkie_scene *scene, double full)
{
    const int width = (int)ceil(scene->domain.size[0] / CELL) + 1, height = (int)ceil(scene->domain.size[1] / CELL) + 1,
              cells = width * height;
    int64_t *held = calloc((size_t)cells, sizeof *held);
    int *stack = calloc((size_t)cells, sizeof *stack), count = 0;
    for (int64_t p = 0; p < data->count && held; p++) {
        const int i = (int)(data->position[3 * p] / CELL), j = (int)(data->position[3 * p + 1] / CELL);
        held[(i < 0 ? 0 : i < width ? i : width - 1) + width * (j < 0 ? 0 : j < height ? j : height - 1)]++;
    }
    for (int n = 0; n < cells && held; n++)
        held[n] = (double)held[n] < LEAST_FILL * full ? 0 : held[n];
    for (int n = 0; n < cells && held && stack; n++)
        count += held[n] && (double)take_droplet(held, width, height, n, stack) >= full;
    free(held);
    free(stack);
    return count;
}

/* The scene of a string, in a file beside the runs. Returns its path, to be freed, or NULL. */
static char *write_scene(reproduce_report *report, double length, int seed)
{
    char *path = NULL, *folder = NULL, *from = find_scene("splash/strings_2d");
    selkie_scene *scene = NULL;
    selkie_error error = {0};
    selkie_liquid_def liquids[SPLASH_MOST_LIQUIDS];
    int code = from ? selkie_scene_load(from, 0, NULL, &scene, &error) : SELKIE_ERROR_INPUT;
    if (!code) {
        const splash_string string = {7, seed, length, 0.073};
        selkie_scene whole = *scene;
        whole.liquids = liquids;
        whole.liquid_count = splash_add_string(&string, scene, liquids);
        if (asprintf(&folder, "%s/strings", report->folder) < 0 ||
            asprintf(&path, "%s/string_%g_%d.json", folder, length, seed) < 0)
            path = NULL;
        code = path ? sk_folder_make(folder, &error) : SELKIE_ERROR_MEMORY;
        if (!code)
            code = selkie_scene_save(&whole, path, &error);
    }
    if (code) {
        complain_error(&error);
        report->failed = 1;
        free(path);
        path = NULL;
    }
    selkie_scene_free(scene);
    free(folder);
    free(from);
    return path;
}

/* Droplets at the end of one string: fine, with the model, and without. */
static void count_string(reproduce_report *report, double length, int seed, double counts[KINDS], int show)
{
    static const char *const kinds[KINDS] = {"fine", "model", "plain"};
    static const char *const captions[KINDS] = {"fine", "MLFLIP", "without the model"};
    char *scene = write_scene(report, length, seed), *model = find_scene("splash/strings_2d");
    for (int k = 0; k < KINDS; k++) {
        char name[64], weights[4096] = "splashes=";
        run_results results = {0};
        snprintf(name, sizeof name, "string_%g_%d_%s", length, seed, kinds[k]);
        if (k == 1 && model && strrchr(model, '/'))
            snprintf(weights, sizeof weights, "splashes=%.*s/weights/strings_2d.safetensors",
                     (int)(strrchr(model, '/') - model), model);
        const extra_run run = {
            name, scene, {weights, "output.every=15", k ? NULL : "domain.cell_size=0.0025", "surface_tension=0.073"}};
        counts[k] = NAN;
        if (!scene || !open_extra_run(report, &run, &results))
            continue;
        sk_particles_data *data = read_frame(&results, -1.0);
        const double full = results.scene->particles.per_cell * pow(CELL / results.scene->domain.cell_size, 2);
        if (data)
            counts[k] = count_droplets(data, results.scene, full);
        sk_particles_data_free(data);
        if (show)
            report_frame(report, &results, -1.0, captions[k]);
        close_extra_run(&results);
    }
    free(scene);
    free(model);
}

void write_splash_strings(reproduce_report *report, run_results *const *results)
{
    (void)results;
    static const double lengths[LENGTHS] = {0.4, 0.8, 1.2, 1.6, 2.0};
    const int seeds = report->quick ? 1 : SEEDS;
    double sums[LENGTHS][KINDS] = {{0.0}}, all[KINDS] = {0.0};
    for (int l = 0; l < LENGTHS; l++)
        for (int s = 0; s < seeds; s++) {
            double counts[KINDS];
            count_string(report, lengths[l], s, counts, s == 0 && (l == 1 || l == 4));
            for (int k = 0; k < KINDS; k++) {
                sums[l][k] += counts[k] / seeds;
                all[k] += counts[k];
            }
        }
    report_table(report, "length (m)|droplets, fine|with the model|without");
    for (int l = 0; l < LENGTHS; l++)
        report_row(report, "%g|%s|%s|%s", lengths[l], number(sums[l][0]), number(sums[l][1]), number(sums[l][2]));
    report_row(report, "all, over the fine runs'||%s|%s", percent(all[1] / all[0]), percent(all[2] / all[0]));
    report_table_end(report);
    report_text(
        report,
        "Means over %d strings of each length after 1.5 s. A droplet is a connected set of cells of 2 cm, each at "
        "least a tenth full, that holds the liquid of one such cell or more. A string at rest is stable in 2D, "
        "so these have random velocities along them, about the speed at which free ends draw back.",
        seeds);
}

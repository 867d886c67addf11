/* The report on splashes by neural networks (Um, Hu and Thuerey 2018). */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/folder.h"
#include "reproduce_splash.h"
#include "tool.h"

/* --- Runs --- */

#define NO_SPLASHES "splashes="
/* Frames are a tenth of a second apart and end with the last picture of the report. */
#define RUN_3D(id, words, where, kind, end, full)                                                                      \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .quick_scene = where "_small", .cost = full, .quick_cost = 20,     \
        .sets = {kind, "output.every=6", end}, .quick = {                                                              \
            "time.end=0.8"                                                                                             \
        }                                                                                                              \
    }
#define RUN_2D(id, words, where, ...)                                                                                  \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .cost = 30, .quick_cost = 10, .sets = {__VA_ARGS__}, .quick = {    \
            "time.end=0.8"                                                                                             \
        }                                                                                                              \
    }
/* With a smaller scene for --quick. */
#define RUN_SMALL(id, words, where, ...)                                                                               \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .quick_scene = where "_small", .cost = 30, .quick_cost = 5,        \
        .sets = {                                                                                                      \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define KEEP "splash.look_ahead=true" /* the default: a run without changes */
#define FINE "domain.cell_size=0.005", "particles.per_cell=4", "surface_tension=0.073", NO_SPLASHES

static const reproduce_run runs[] = {
    RUN_3D("dam", "MLFLIP", "splash/dam", KEEP, "time.end=2", 400),
    RUN_3D("dam_flip", "FLIP", "splash/dam", NO_SPLASHES, "time.end=2", 350),
    {.name = "dam_double",
     .label = "FLIP, doubled",
     .scene = "splash/dam",
     .quick_scene = "splash/dam_small",
     .cost = 2000,
     .quick_cost = 200,
     .sets = {NO_SPLASHES, "domain.cell_size=0.01", "output.every=48", "time.end=0.8"},
     .quick = {"output.every=18", "time.end=0.3"}},
    RUN_3D("stairs", "MLFLIP", "splash/stairs", KEEP, "time.end=2", 400),
    RUN_3D("stairs_flip", "FLIP", "splash/stairs", NO_SPLASHES, "time.end=2", 350),
    RUN_3D("tank", "MLFLIP", "splash/wave_tank", KEEP, "time.end=4", 80),
    RUN_3D("tank_flip", "FLIP", "splash/wave_tank", NO_SPLASHES, "time.end=4", 70),
    RUN_SMALL("secondary_1", "one sample", "splash/secondary", KEEP),
    RUN_SMALL("secondary_4", "four samples", "splash/secondary", KEEP),
    RUN_SMALL("below_2", "threshold 0.2", "splash/secondary", KEEP),
    RUN_SMALL("below_8", "threshold 0.8", "splash/secondary", KEEP),
    RUN_SMALL("samples", "convergence", "splash/convergence", NO_SPLASHES),
    RUN_SMALL("t_2", "0.2", "splash/thresholds", "splash.threshold=0.2"),
    RUN_SMALL("t_5", "0.5", "splash/thresholds", "splash.threshold=0.5"),
    RUN_SMALL("t_8", "0.8", "splash/thresholds", "splash.threshold=0.8"),
    RUN_SMALL("t_9", "0.95", "splash/thresholds", "splash.threshold=0.95"),
    RUN_SMALL("scale_5", "5 mm", "splash/scales", "domain.cell_size=0.005", NO_SPLASHES),
    RUN_SMALL("scale_7", "7.5 mm", "splash/scales", "domain.cell_size=0.0075", NO_SPLASHES),
    RUN_SMALL("scale_10", "1 cm", "splash/scales", "domain.cell_size=0.01", NO_SPLASHES),
    RUN_SMALL("scale_15", "1.5 cm", "splash/scales", "domain.cell_size=0.015", NO_SPLASHES),
    RUN_SMALL("scale_20", "2 cm", "splash/scales", "domain.cell_size=0.02", NO_SPLASHES),
    RUN_SMALL("dam_2d", "dam, MLFLIP", "splash/dam_2d", KEEP),
    RUN_SMALL("dam_2d_flip", "dam, FLIP", "splash/dam_2d", NO_SPLASHES),
    RUN_SMALL("dam_2d_fine", "dam, fine FLIP", "splash/dam_2d", FINE),
    RUN_2D("drops_2d", "drops, MLFLIP", "splash/drops_2d", KEEP),
    RUN_2D("drops_2d_flip", "drops, FLIP", "splash/drops_2d", NO_SPLASHES),
    RUN_2D("drops_2d_fine", "drops, fine FLIP", "splash/drops_2d", FINE),
    RUN_2D("two_dams_2d", "two dams, MLFLIP", "splash/two_dams_2d", KEEP),
    RUN_2D("two_dams_2d_flip", "two dams, FLIP", "splash/two_dams_2d", NO_SPLASHES),
    RUN_2D("two_dams_2d_fine", "two dams, fine FLIP", "splash/two_dams_2d", FINE),
};

/* --- Droplets of frames in 2D --- */

enum { QUANTILES = 64 };

/* Liquid in the air: connected components of fewer than eight occupied cells. */
typedef struct airborne {
    double share;      /* of the particles, mean over the frames */
    double components; /* mean number, these and larger ones */
    double height[QUANTILES], speed[QUANTILES];
} airborne;

/* Numbers the components of occupied cells (2D) in `cells`, which hold 1 where occupied; sizes by number. */
static int number_components(int *cells, int width, int height, int *sizes)
{
    int count = 0, *stack = malloc((size_t)width * (size_t)height * sizeof *stack);
    for (int n = 0; stack && n < width * height; n++) {
        if (cells[n] != 1)
            continue;
        int depth = 0, size = 0;
        stack[depth++] = n;
        cells[n] = 2 + count;
        while (depth) {
            const int at = stack[--depth], x = at % width;
            const int others[4] = {x ? at - 1 : -1, x + 1 < width ? at + 1 : -1, at - width, at + width};
            size++;
            for (int k = 0; k < 4; k++)
                if (others[k] >= 0 && others[k] < width * height && cells[others[k]] == 1) {
                    cells[others[k]] = 2 + count;
                    stack[depth++] = others[k];
                }
        }
        sizes[count++] = size;
    }
    free(stack);
    return count;
}

/* Adds the particles of one frame; `values` takes height and speed of those in the air. Returns their number. */
static int64_t measure_frame(const sk_particles_data *data, double h, const selkie_scene *scene, double *components,
                             double (*values)[2], int64_t room)
{
    const int width = (int)ceil(scene->domain.size[0] / h) + 1, height = (int)ceil(scene->domain.size[1] / h) + 1;
    const int count = width * height;
    int *cells = calloc((size_t)count, sizeof *cells), *sizes = calloc((size_t)count, sizeof *sizes);
    int64_t found = 0;
    for (int pass = 0; pass < 2 && cells && sizes; pass++) {
        for (int64_t p = 0; p < data->count; p++) {
            const float *x = data->position + 3 * p, *v = data->velocity + 3 * p;
            const int i = (int)(x[0] / h), j = (int)(x[1] / h);
            const int at = (i < 0 ? 0 : i < width ? i : width - 1) + width * (j < 0 ? 0 : j < height ? j : height - 1);
            if (!pass)
                cells[at] = 1;
            else if (sizes[cells[at] - 2] < 8 && found < room) {
                values[found][0] = x[1];
                values[found++][1] = hypot(v[0], v[1]);
            }
        }
        if (!pass)
            *components += number_components(cells, width, height, sizes);
    }
    free(cells);
    free(sizes);
    return found;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantiles(double (*values)[2], int64_t count, int which, double result[QUANTILES])
{
    double *sorted = malloc((size_t)(count + 1) * sizeof *sorted);
    for (int64_t n = 0; sorted && n < count; n++)
        sorted[n] = values[n][which];
    if (sorted)
        qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    for (int q = 0; q < QUANTILES; q++)
        result[q] = sorted && count ? sorted[(int64_t)((q + 0.5) * (double)count / QUANTILES)] : NAN;
    free(sorted);
}

/* Means over the frames from a time on, with cells of h: the same for coarse and fine runs. */
static airborne measure_air(const run_results *results, double h, double from)
{
    enum { ROOM = 1 << 20 };
    airborne air = {.share = NAN, .components = NAN};
    if (!results->scene)
        return air;
    double(*values)[2] = malloc(ROOM * sizeof *values), components = 0.0, all = 0.0;
    int64_t count = 0;
    int frames = 0;
    const double end = results->scene->time.end;
    for (double t = from; values && t <= end + 1e-9; t += 0.05, frames++) {
        sk_particles_data *data = read_frame(results, t);
        if (!data)
            break;
        if (data->velocity)
            count += measure_frame(data, h, results->scene, &components, values + count, ROOM - count);
        all += (double)data->count;
        sk_particles_data_free(data);
    }
    if (frames) {
        air.share = (double)count / all;
        air.components = components / frames;
        quantiles(values, count, 0, air.height);
        quantiles(values, count, 1, air.speed);
    }
    free(values);
    return air;
}

/* Wasserstein distance of two distributions by their quantiles. */
static double distance(const double a[QUANTILES], const double b[QUANTILES])
{
    double sum = 0.0;
    for (int q = 0; q < QUANTILES; q++)
        sum += fabs(a[q] - b[q]) / QUANTILES;
    return sum;
}

/* --- Runs beside the table --- */

int open_extra_run(reproduce_report *report, const extra_run *run, run_results *results)
{
    char *finished = NULL, *scene = NULL, *stats = NULL;
    int set_count = 0, code = EXIT_GOOD;
    memset(results, 0, sizeof *results);
    while (set_count < REPRODUCE_MAX_SETS && run->sets[set_count])
        set_count++;
    if (asprintf(&results->relative, "runs/%s", run->name) < 0 ||
        asprintf(&results->folder, "%s/runs/%s", report->folder, run->name) < 0 ||
        asprintf(&finished, "%s/finished", results->folder) < 0 ||
        asprintf(&scene, "%s/scene.json", results->folder) < 0 || asprintf(&stats, "%s/stats.csv", results->folder) < 0)
        code = complain("out of memory");
    if (!code && !report->only && !sk_file_exists(finished))
        code = simulate(run->scene, set_count, run->sets, results->folder, report->threads, 1);
    report->failed |= code != EXIT_GOOD;
    if (!code && selkie_scene_load(scene, 0, NULL, &results->scene, NULL))
        results->scene = NULL;
    if (results->scene && sk_table_read(stats, &results->stats, NULL))
        results->stats = NULL;
    free(finished);
    free(scene);
    free(stats);
    return results->scene != NULL;
}

void close_extra_run(run_results *results)
{
    free(results->folder);
    free(results->relative);
    selkie_scene_free(results->scene);
    sk_table_free(results->stats);
    memset(results, 0, sizeof *results);
}

/* --- Figures --- */

void splash_pictures(reproduce_report *report, run_results *const *results, int count, double first, double step)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < count; i++) {
            char caption[96];
            snprintf(caption, sizeof caption, "%s, %g s", results[i]->run->label, first + t * step);
            report_frame(report, results[i], first + t * step, caption);
        }
}

static void write_stairs(reproduce_report *report, run_results *const *results)
{
    splash_pictures(report, results, 2, report->quick ? 0.3 : 0.8, report->quick ? 0.2 : 0.6);
}

/* Fig. 16 is the first time, with the run of doubled resolution beside it. */
static void write_dam(reproduce_report *report, run_results *const *results)
{
    report_frame(report, results[2], report->quick ? 0.3 : 0.8,
                 report->quick ? "FLIP, doubled resolution, 0.3 s" : "FLIP, doubled resolution, 0.8 s");
    write_stairs(report, results);
}

static void write_tank(reproduce_report *report, run_results *const *results)
{
    splash_pictures(report, results, 2, report->quick ? 0.3 : 2.0, report->quick ? 0.2 : 1.0);
}

static void write_air(reproduce_report *report, run_results *const *results)
{
    double sum = 0.0;
    report_table(report,
                 "scene|airborne share, fine|with the model over it|FLIP over it|droplets over the fine run's: model, "
                 "FLIP|distance of heights (m): model, FLIP|of speeds (m/s): model, FLIP");
    for (int i = 0; i < 9; i += 3) {
        const airborne ours = measure_air(results[i], 0.01, 0.3), plain = measure_air(results[i + 1], 0.01, 0.3),
                       fine = measure_air(results[i + 2], 0.01, 0.3);
        sum += ours.share / fine.share / 3.0;
        report_row(report, "%s|%s|%s|%s|%s, %s|%s, %s|%s, %s", results[i]->run->scene, number(fine.share),
                   number(ours.share / fine.share), number(plain.share / fine.share),
                   number(ours.components / fine.components), number(plain.components / fine.components),
                   number(distance(ours.height, fine.height)), number(distance(plain.height, fine.height)),
                   number(distance(ours.speed, fine.speed)), number(distance(plain.speed, fine.speed)));
    }
    report_table_end(report);
    report_text(report,
                "Airborne: in components of fewer than eight cells of 1 cm, from 0.3 s on. Mean of the shares with the "
                "model over those of the fine runs: %s. Distances are Wasserstein's, of the airborne particles.",
                number(sum));
}

static void write_times(reproduce_report *report, run_results *const *results)
{
    static const double paper[] = {0.60, 0.52, 5.43, 0.78, 0.62, 0.14, 0.12};
    report_table(report, "run|the paper: s a step|here|times faster|particles");
    for (int i = 0; i < 7; i++) {
        const double ours = mean_step_ms(results[i], NULL) / 1000.0;
        report_row(report, "%s, %s|%s|%s|%s|%.0f", results[i]->run->scene, results[i]->run->label, number(paper[i]),
                   number(ours), number(paper[i] / ours), stats_largest(results[i], "particles"));
    }
    report_table_end(report);
    report_text(report,
                "Threads of the last call: %d. `bench_splash` compares steps with and without splashes in turn.",
                report->threads);
    for (int i = 0; i < 7; i += i ? 2 : 3)
        report_text(report, "%s: splashes add %s to a step (the paper: %s).", results[i]->run->scene,
                    percent(mean_step_ms(results[i], NULL) / mean_step_ms(results[i + 1], NULL)),
                    percent(paper[i] / paper[i + 1]));
}

static const reproduce_figure figures[] = {
    {.number = 5,
     .label = "Figures 5 and 16",
     .title = "dam",
     .about = "The dam break with droplets and without, and at its first time without them at doubled resolution.",
     .runs = {"dam", "dam_flip", "dam_double"},
     .write = write_dam},
    {.number = 6,
     .title = "strings of liquid",
     .about = "Numbers of droplets of strings of five lengths.",
     .runs = {NULL},
     .write = write_splash_strings},
    {.number = 7,
     .title = "learning",
     .about = "Learning curves of a 2D model of three scales, and how good it is on runs that it has not seen.",
     .runs = {NULL},
     .write = write_splash_learning},
    {.number = 8,
     .title = "stairs",
     .about = "Water on stairs.",
     .runs = {"stairs", "stairs_flip"},
     .write = write_stairs},
    {.number = 9,
     .label = "Figures 9 and 17",
     .title = "training by FLIP and by SPH",
     .about = "The dam in 2D with a model of FLIP runs, with one of SPH dam breaks, and without.",
     .runs = {"dam_2d", "dam_2d_flip"},
     .write = write_splash_solvers},
    {.number = 10,
     .title = "wave tank",
     .about = "Waves that break on a beach.",
     .runs = {"tank", "tank_flip"},
     .write = write_tank},
    {.number = 11,
     .title = "secondary droplets",
     .about = "Droplets added to the frames of a run, one and four for each splash.",
     .runs = {"secondary_1", "secondary_4"},
     .write = write_splash_secondary},
    {.number = 12,
     .label = "Figures 12 and 15, left",
     .title = "thresholds",
     .about = "The number of droplets falls with the threshold.",
     .runs = {"below_2", "below_8", "t_2", "t_5", "t_8", "t_9"},
     .write = write_splash_thresholds},
    {.number = 13,
     .label = "Figures 13 and 14",
     .title = "scales",
     .about = "One model at three scales of its training and two between, beside models of one scale.",
     .runs = {"scale_5", "scale_7", "scale_10", "scale_15", "scale_20"},
     .write = write_splash_scales},
    {.number = 15,
     .label = "Figure 15, right",
     .title = "number of samples",
     .about = "Droplets that models of more and more samples add to the same run.",
     .runs = {"samples"},
     .write = write_splash_convergence},
    {.number = 17,
     .label = "Beyond the paper",
     .title = "liquid in the air",
     .about = "Coarse runs with the model and without, against runs of half the cell size with surface tension.",
     .runs = {"dam_2d", "dam_2d_flip", "dam_2d_fine", "drops_2d", "drops_2d_flip", "drops_2d_fine", "two_dams_2d",
              "two_dams_2d_flip", "two_dams_2d_fine"},
     .write = write_air},
    {.number = 18,
     .label = "Section 5",
     .title = "times",
     .about = "Wall time of a step; nothing else should run on the machine.",
     .runs = {"dam", "dam_flip", "dam_double", "stairs", "stairs_flip", "tank", "tank_flip"},
     .write = write_times},
};

const reproduce_paper reproduce_splash = {
    .name = "splash",
    .title = "Splashes by neural networks: the paper's experiments",
    .citation =
        "K. Um, X. Hu, N. Thuerey: Liquid Splash Modeling with Neural Networks. Computer Graphics Forum 37(8), 2018.",
    .about = "MLFLIP is Selkie with the model of splashes that comes with it, FLIP the same without. Models that the "
             "figures compare are trained here, from samples made here; they stay in models/.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};

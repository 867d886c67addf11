/* The report on splashes by neural networks (Um, Hu and Thuerey 2018). */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reproduce.h"

/* --- Runs --- */

#define NO_SPLASHES "splashes="
#define RUN_3D(id, words, where, kind, full)                                                                           \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .cost = full, .quick_cost = 10, .sets = {kind, "output.every=6"},  \
        .quick = {                                                                                                     \
            "time.end=0.8"                                                                                             \
        }                                                                                                              \
    }
#define RUN_2D(id, words, where, ...)                                                                                  \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .cost = 30, .quick_cost = 10, .sets = {__VA_ARGS__}, .quick = {    \
            "time.end=0.8"                                                                                             \
        }                                                                                                              \
    }
#define KEEP "splash.look_ahead=true" /* the default: a run without changes */
#define FINE "domain.cell_size=0.005", "particles.per_cell=4", "surface_tension=0.073", NO_SPLASHES

static const reproduce_run runs[] = {
    RUN_3D("dam", "MLFLIP", "splash/dam", KEEP, 3000),
    RUN_3D("dam_flip", "FLIP", "splash/dam", NO_SPLASHES, 2800),
    {.name = "dam_double",
     .label = "FLIP, doubled",
     .scene = "splash/dam",
     .cost = 40000,
     .quick_cost = 100,
     .sets = {NO_SPLASHES, "domain.cell_size=0.01", "output.every=6"},
     .quick = {"time.end=0.1"}},
    RUN_3D("stairs", "MLFLIP", "splash/stairs", KEEP, 3000),
    RUN_3D("stairs_flip", "FLIP", "splash/stairs", NO_SPLASHES, 2800),
    RUN_3D("tank", "MLFLIP", "splash/wave_tank", KEEP, 800),
    RUN_3D("tank_flip", "FLIP", "splash/wave_tank", NO_SPLASHES, 700),
    RUN_2D("string", "MLFLIP, 1.5 m", "splash/strings_2d", KEEP),
    RUN_2D("string_fine", "fine, 1.5 m", "splash/strings_2d", "domain.cell_size=0.0025", "surface_tension=0.073",
           NO_SPLASHES),
    RUN_2D("short", "MLFLIP, 0.6 m", "splash/strings_2d", "liquids[0].shape.max=[1.1,0.13]"),
    RUN_2D("short_fine", "fine, 0.6 m", "splash/strings_2d", "liquids[0].shape.max=[1.1,0.13]",
           "domain.cell_size=0.0025", "surface_tension=0.073", NO_SPLASHES),
    RUN_2D("t_2", "threshold 0.2", "splash/thresholds", "splash.threshold=0.2"),
    RUN_2D("t_5", "threshold 0.5", "splash/thresholds", "splash.threshold=0.5"),
    RUN_2D("t_8", "threshold 0.8", "splash/thresholds", "splash.threshold=0.8"),
    RUN_2D("t_9", "threshold 0.95", "splash/thresholds", "splash.threshold=0.95"),
    RUN_2D("scale_5", "5 mm", "splash/scales", "domain.cell_size=0.005"),
    RUN_2D("scale_7", "7.5 mm", "splash/scales", "domain.cell_size=0.0075"),
    RUN_2D("scale_10", "1 cm", "splash/scales", "domain.cell_size=0.01"),
    RUN_2D("scale_15", "1.5 cm", "splash/scales", "domain.cell_size=0.015"),
    RUN_2D("scale_20", "2 cm", "splash/scales", "domain.cell_size=0.02"),
    RUN_2D("dam_2d", "dam, MLFLIP", "splash/dam_2d", KEEP),
    RUN_2D("dam_2d_flip", "dam, FLIP", "splash/dam_2d", NO_SPLASHES),
    RUN_2D("dam_2d_fine", "dam, fine FLIP", "splash/dam_2d", FINE),
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

/* --- Figures --- */

static void pictures(reproduce_report *report, run_results *const *results, int count, double first, double step)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < count; i++) {
            char caption[96];
            snprintf(caption, sizeof caption, "%s, %g s", results[i]->run->label, first + t * step);
            report_frame(report, results[i], first + t * step, caption);
        }
}

static void write_dam(reproduce_report *report, run_results *const *results)
{
    pictures(report, results, 2, report->quick ? 0.3 : 0.8, report->quick ? 0.2 : 0.6);
}

static void write_tank(reproduce_report *report, run_results *const *results)
{
    pictures(report, results, 2, report->quick ? 0.3 : 2.0, report->quick ? 0.2 : 1.0);
}

static void write_strings(reproduce_report *report, run_results *const *results)
{
    report_table(report, "string|droplets at the end, fine run|with the model");
    for (int i = 0; i < 4; i += 2) {
        const double end = results[i]->scene ? results[i]->scene->time.end : 0.0;
        const airborne ours = measure_air(results[i], 0.01, end), fine = measure_air(results[i + 1], 0.01, end);
        report_row(report, "%s|%s|%s", results[i]->run->label, number(fine.components), number(ours.components));
    }
    report_table_end(report);
    report_text(report, "Connected components on cells of 1 cm, the string itself counted in. A string in 2D has no "
                        "Plateau-Rayleigh instability: with exact surface tension its ends draw back (Taylor and "
                        "Culick) and few droplets form.");
    pictures(report, results, 2, report->quick ? 0.2 : 0.5, report->quick ? 0.2 : 0.45);
}

static void write_counts(reproduce_report *report, run_results *const *results, int count, const char *heads)
{
    report_table(report, heads);
    for (int i = 0; i < count; i++)
        report_row(report, "%s|%s|%s", results[i]->run->label, number(stats_largest(results[i], "splashes_made")),
                   number(stats_largest(results[i], "splashes")));
    report_table_end(report);
}

static void write_thresholds(reproduce_report *report, run_results *const *results)
{
    write_counts(report, results, 4, "threshold|splashes made|in flight at most");
}

static void write_scales(reproduce_report *report, run_results *const *results)
{
    write_counts(report, results, 5, "cells|splashes made|in flight at most");
}

static void write_air(reproduce_report *report, run_results *const *results)
{
    double sum = 0.0;
    report_table(report,
                 "scene|airborne share, fine|with the model over it|FLIP over it|distance of heights (m): model, "
                 "FLIP|of speeds (m/s): model, FLIP");
    for (int i = 0; i < 9; i += 3) {
        const airborne ours = measure_air(results[i], 0.01, 0.3), plain = measure_air(results[i + 1], 0.01, 0.3),
                       fine = measure_air(results[i + 2], 0.01, 0.3);
        sum += ours.share / fine.share / 3.0;
        report_row(report, "%s|%s|%s|%s|%s, %s|%s, %s", results[i]->run->scene, number(fine.share),
                   number(ours.share / fine.share), number(plain.share / fine.share),
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
    for (int i = 0; i < 7; i += i ? 2 : 3)
        report_text(report, "%s: splashes add %s to a step (the paper: %s).", results[i]->run->scene,
                    percent(mean_step_ms(results[i], NULL) / mean_step_ms(results[i + 1], NULL)),
                    percent(paper[i] / paper[i + 1]));
}

static const reproduce_figure figures[] = {
    {.number = 5,
     .label = "Figures 5 and 16",
     .title = "dam",
     .about = "The dam break with droplets and without.",
     .runs = {"dam", "dam_flip", "dam_double"},
     .write = write_dam},
    {.number = 6,
     .title = "strings of liquid",
     .about = "Numbers of droplets of strings of two lengths.",
     .runs = {"string", "string_fine", "short", "short_fine"},
     .write = write_strings},
    {.number = 8,
     .title = "stairs",
     .about = "Water on stairs.",
     .runs = {"stairs", "stairs_flip"},
     .write = write_dam},
    {.number = 10,
     .title = "wave tank",
     .about = "Waves that break on a beach.",
     .runs = {"tank", "tank_flip"},
     .write = write_tank},
    {.number = 12,
     .label = "Figures 12 and 15",
     .title = "thresholds",
     .about = "The number of splashes falls with the threshold.",
     .runs = {"t_2", "t_5", "t_8", "t_9"},
     .write = write_thresholds},
    {.number = 13,
     .label = "Figures 13 and 14",
     .title = "scales",
     .about = "One model at three scales of its training and two between.",
     .runs = {"scale_5", "scale_7", "scale_10", "scale_15", "scale_20"},
     .write = write_scales},
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
    .about = "MLFLIP is Selkie with the model of splashes that comes with it, FLIP the same without. Learning curves "
             "(Fig. 7) and the convergence with the number of samples (Fig. 15, right) come from selkie splash train; "
             "secondary particles (Fig. 11) from selkie splash add.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};

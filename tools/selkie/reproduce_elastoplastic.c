/* The report on elastoplastic points (Gerszewski's dissertation, chapter 4). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linalg/small_dense_kernels.h"
#include "reproduce.h"

/* --- Runs --- */

#define SCENE(id, words, where, cell, full)                                                                            \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .cost = full, .quick_cost = 10, .sets = {"output.every=3"},        \
        .quick = {                                                                                                     \
            cell                                                                                                       \
        }                                                                                                              \
    }
#define MODEL(id, words, where, form)                                                                                  \
    {                                                                                                                  \
        .name = id, .label = words, .scene = where, .cost = 30, .quick_cost = 3, .sets = {form, "output.every=3"},     \
        .quick = {                                                                                                     \
            "domain.cell_size=0.08"                                                                                    \
        }                                                                                                              \
    }
#define ELASTIC "elastoplastic/compare_models_elastic"
#define PLASTIC "elastoplastic/compare_models_plastic"

static const reproduce_run runs[] = {
    SCENE("pile", "pile", "elastoplastic/pile", "domain.cell_size=0.06", 100),
    SCENE("armadillo", "armadillo of cornstarch", "elastoplastic/armadillo_cornstarch", "domain.cell_size=0.06", 100),
    SCENE("bunny", "bunny on a ball", "elastoplastic/bunny_on_sphere", "domain.cell_size=0.08", 100),
    SCENE("boxes", "hyperelastic boxes", "elastoplastic/hyperelastic_boxes", "domain.cell_size=0.1", 5),
    SCENE("cylinders", "cylinders", "elastoplastic/cylinders", "domain.resolution=60", 60),
    SCENE("star", "dough star", "elastoplastic/dough_star", "domain.resolution=40", 60),
    SCENE("sweep", "material sweep", "elastoplastic/material_sweep", "domain.resolution=60", 60),
    MODEL("elastic_mpm", "elastic, mpm", ELASTIC, "discretization=mpm"),
    MODEL("elastic_rest_shape", "elastic, rest_shape", ELASTIC, "discretization=rest_shape"),
    MODEL("elastic_printed", "elastic, printed", ELASTIC, "discretization=printed"),
    MODEL("elastic_additive", "elastic, additive", ELASTIC, "discretization=additive"),
    MODEL("plastic_mpm", "plastic, mpm", PLASTIC, "discretization=mpm"),
    MODEL("plastic_rest_shape", "plastic, rest_shape", PLASTIC, "discretization=rest_shape"),
    MODEL("plastic_printed", "plastic, printed", PLASTIC, "discretization=printed"),
    MODEL("plastic_additive", "plastic, additive", PLASTIC, "discretization=additive"),
};

/* --- Pictures --- */

static void write_frames(reproduce_report *report, run_results *const *results)
{
    static const double parts[] = {0.0, 0.25, 0.5, 1.0};
    for (int n = 0; n < 4; n++) {
        char caption[96];
        const double time = parts[n] * results[0]->scene->time.end;
        snprintf(caption, sizeof caption, "%s, %.2g s", results[0]->run->label, time);
        report_frame(report, results[0], time, caption);
    }
}

/* --- Figure 4.8: three models --- */

static void mean_of(const sk_particles_data *data, double mean[3])
{
    memset(mean, 0, 3 * sizeof *mean);
    for (int64_t p = 0; p < data->count; p++)
        for (int d = 0; d < 3; d++)
            mean[d] += data->position[3 * p + d] / (double)data->count;
}

/* Places at the end by those at the start: sum of (x - mean)(X - mean)^T, or, with a rotation, the mean square of
 * x - mean - R (X - mean) over that of X - mean. Ids begin at 0. */
static double compare_places(const sk_particles_data *end, const float *start, const double end_mean[3],
                             const double start_mean[3], const double *rotation, double sum[9])
{
    double apart = 0.0, size = 0.0;
    for (int64_t p = 0; p < end->count; p++) {
        double x[3], rest[3], left[3];
        for (int d = 0; d < 3; d++) {
            x[d] = end->position[3 * p + d] - end_mean[d];
            rest[d] = start[3 * (size_t)end->id[p] + (size_t)d] - start_mean[d];
        }
        for (int i = 0; i < 3; i++) {
            left[i] = x[i];
            for (int j = 0; j < 3; j++) {
                if (sum)
                    sum[3 * i + j] += x[i] * rest[j];
                left[i] -= rotation ? rotation[3 * i + j] * rest[j] : 0.0;
            }
            apart += left[i] * left[i];
            size += rest[i] * rest[i];
        }
    }
    return apart / size;
}

/* How far the points are from their places in the body at rest, moved and turned to fit best: root mean square, over
 * that of their distances from the middle. NaN if frames are missing. */
static double departure(const run_results *results)
{
    sk_particles_data *first = read_frame(results, 0.0), *end = read_frame(results, -1.0);
    double result = NAN;
    if (first && end && first->id && end->id && first->count == end->count) {
        float *start = calloc((size_t)first->count, 3 * sizeof *start);
        double sum[9] = {0}, rotation[9], stretch[6], first_mean[3], end_mean[3];
        int known = start != NULL;
        for (int64_t p = 0; known && p < first->count; p++)
            known &= first->id[p] < first->count && end->id[p] < first->count;
        for (int64_t p = 0; known && p < first->count; p++)
            memcpy(start + 3 * (size_t)first->id[p], first->position + 3 * p, 3 * sizeof *start);
        mean_of(first, first_mean);
        mean_of(end, end_mean);
        if (known) {
            compare_places(end, start, end_mean, first_mean, NULL, sum);
            sk_polar_double_3d(sum, rotation, stretch);
            result = sqrt(compare_places(end, start, end_mean, first_mean, rotation, NULL));
        }
        free(start);
    }
    sk_particles_data_free(first);
    sk_particles_data_free(end);
    return result;
}

static void write_models(reproduce_report *report, run_results *const *results)
{
    static const char *const expected[] = {
        "returns", "returns", "returns", "does not return", "flows", "flows, stable here", "flows", "flows"};
    report_table(report, "run|departure from the rest shape at the end|in the source|stable");
    for (int i = 0; i < 8; i++)
        report_row(report, "%s|%s|%s|%s", results[i]->run->label, number(departure(results[i])), expected[i],
                   results[i]->diverged ? "no" : "yes");
    report_table_end(report);
    report_text(report, "The departure is the root mean square distance of the points from their places in the rest "
                        "shape, moved and turned to fit best, over their distance from the middle. The source's second "
                        "model became unstable with the plastic material.");
    for (int i = 0; i < 8; i++)
        report_frame(report, results[i], -1, results[i]->run->label);
}

/* --- Table 4.1 --- */

static void write_times(reproduce_report *report, run_results *const *results)
{
    static const struct {
        double points, seconds; /* of the chapter; NaN = not given */
    } chapter[] = {{52316, 96.4888}, {40556, 379.065}, {665, 4.76452}, {16770, 137.909}, {12152, 86.9948}};
    report_table(report, "scene|points, chapter|points|seconds a frame, chapter|seconds a frame|times faster");
    for (int i = 0; i < 5; i++) {
        const double frame = wall_for_a_second(results[i], NULL) / results[i]->scene->time.fps;
        const double *points = stats_column(results[i], "particles");
        report_row(report, "%s|%.0f|%s|%s|%s|%s", results[i]->run->label, chapter[i].points,
                   number(points ? points[0] : NAN), number(chapter[i].seconds), number(frame),
                   number(chapter[i].seconds / frame));
    }
    report_table_end(report);
    report_text(report,
                "The chapter's times are of one core of a Xeon E5410 (2.33 GHz, 2009); ours are of %d threads. "
                "Scenes with several bodies at once (boxes, cylinders, sweep) hold what the chapter ran one by "
                "one; their time is compared with that of one of its runs.",
                report->threads);
}

/* --- The paper --- */

static const reproduce_figure figures[] = {
    {.number = 1,
     .label = "Figure 4.1",
     .title = "a pile",
     .about = "Two kinds of shapes form a pile on the ground.",
     .runs = {"pile"},
     .write = write_frames},
    {.number = 2,
     .label = "Figure 4.2",
     .title = "cornstarch",
     .about = "An armadillo resists large stresses: it bounces first, then it flows.",
     .runs = {"armadillo"},
     .write = write_frames},
    {.number = 3,
     .label = "Figure 4.3",
     .title = "a bunny on a ball",
     .about = "An elastoplastic bunny falls on a sphere.",
     .runs = {"bunny"},
     .write = write_frames},
    {.number = 4,
     .label = "Figure 4.4",
     .title = "hyperelastic boxes",
     .about = "A stiff box and a softer one fall on the ground.",
     .runs = {"boxes"},
     .write = write_frames},
    {.number = 5,
     .label = "Figure 4.5",
     .title = "three cylinders",
     .about = "Three materials fall on the ground.",
     .runs = {"cylinders"},
     .write = write_frames},
    {.number = 6,
     .label = "Figure 4.6",
     .title = "bread dough",
     .about = "A star of dough sinks into itself.",
     .runs = {"star"},
     .write = write_frames},
    {.number = 7,
     .label = "Figure 4.7",
     .title = "parameters of the material",
     .about = "Six boxes of different yield stress, flow time and hardening.",
     .runs = {"sweep"},
     .write = write_frames},
    {.number = 8,
     .label = "Figure 4.8",
     .title = "three models",
     .about = "A bar is pressed and released, elastic and very plastic.",
     .runs = {"elastic_mpm", "elastic_rest_shape", "elastic_printed", "elastic_additive", "plastic_mpm",
              "plastic_rest_shape", "plastic_printed", "plastic_additive"},
     .write = write_models},
    {.number = 41,
     .label = "Table 4.1",
     .title = "times",
     .about = "What a frame costs.",
     .runs = {"armadillo", "bunny", "boxes", "cylinders", "sweep"},
     .write = write_times},
};

const reproduce_paper reproduce_elastoplastic = {
    .name = "elastoplastic",
    .title = "Elastoplastic points: the source's experiments",
    .citation = "D. Gerszewski, H. Bhattacharya, A. W. Bargteil: A Point-Based Method for Animating Elastoplastic "
                "Solids. Symposium on Computer Animation 2009; here after chapter 4 of Gerszewski's dissertation, "
                "University of Utah.",
    .about = "Solids of points that bend, flow and bounce. The source shows pictures and times; shapes and materials "
             "are ours, made after its pictures, with its numbers of points. \"mpm\" is our default; \"printed\" is "
             "the source's own model, corrected; \"rest_shape\" and \"additive\" are the two that it compares with.",
    .runs = runs,
    .run_count = sizeof runs / sizeof *runs,
    .figures = figures,
    .figure_count = sizeof figures / sizeof *figures,
};

/* Models that the report on splashes trains, and the droplets that they add to runs (Um et al. 2018, sections 3.4, 4).
 *
 * Samples and models stay in models/ beside the runs; those that are there are used again. */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/folder.h"
#include "reproduce_splash.h"
#include "splash.h"

/* --- Models --- */

typedef struct model_recipe {
    const char *data, *name;    /* folders of the samples and of the model */
    const char *template_scene; /* NULL = the usual one */
    const char *quick_template; /* of --quick; NULL = the same */
    splash_setup setup;
    double scales[3];
    int scale_count, runs, quick_runs;
    int solid;     /* in 3D */
    uint64_t seed; /* of the samples */
    int paper;
    int64_t samples; /* 0 = all */
} model_recipe;

#define DROPS .data = "drops_2d", .scales = {1.0, 0.5, 2.0}, .scale_count = 3, .runs = 48, .quick_runs = 10, .seed = 1

static char *in_models(const reproduce_report *report, const char *name, const char *file)
{
    char *path = NULL;
    return asprintf(&path, "%s/models/%s%s%s", report->folder, name, *file ? "/" : "", file) < 0 ? NULL : path;
}

static int is_there(const reproduce_report *report, const char *name, const char *file)
{
    char *path = in_models(report, name, file);
    const int there = path && sk_file_exists(path);
    free(path);
    return there;
}

static int make_samples(const reproduce_report *report, const model_recipe *recipe)
{
    char *out = in_models(report, recipe->data, "");
    splash_data_options options = {.setup = recipe->setup,
                                   .out = out,
                                   .template_scene = report->quick && recipe->quick_template ? recipe->quick_template
                                                                                             : recipe->template_scene,
                                   .dimension = recipe->solid ? 3 : 2,
                                   .runs = report->quick ? recipe->quick_runs : recipe->runs,
                                   .ratio = recipe->solid ? 4 : 2,
                                   .keep = recipe->solid ? 0.03 : 0.1,
                                   .scale_count = recipe->scale_count,
                                   .seed = recipe->seed,
                                   .threads = report->threads,
                                   .quiet = 1};
    memcpy(options.scales, recipe->scales, sizeof recipe->scales);
    const int code = out ? splash_make_data(&options) : complain("out of memory");
    free(out);
    return code;
}

/* The folder of the samples and of the models. */
static int make_models_folder(const reproduce_report *report)
{
    char *models = NULL;
    selkie_error error = {0};
    int code = asprintf(&models, "%s/models", report->folder) < 0 ? complain("out of memory") : EXIT_GOOD;
    if (!code && sk_folder_make(models, &error))
        code = complain_error(&error);
    free(models);
    return code;
}

/* Makes a model unless it is there. Returns its file, to be freed, or NULL. */
static char *make_model(reproduce_report *report, const model_recipe *recipe)
{
    char *folder = NULL, *data = in_models(report, recipe->data, ""), *out = in_models(report, recipe->name, ""),
         *file = in_models(report, recipe->name, "model.safetensors");
    int code = data && out && file ? EXIT_GOOD : complain("out of memory");
    if (!code && !sk_file_exists(file) && !report->only) {
        code = make_models_folder(report);
        if (!code && !is_there(report, recipe->data, "data.safetensors"))
            code = make_samples(report, recipe);
        sk_splash_recipe training = sk_splash_default_recipe(recipe->paper);
        training.threads = report->threads;
        training.samples = recipe->samples;
        training.seed = 1;
        if (report->quick)
            training.classifier_steps = training.modifier_steps = 600;
        if (!code)
            code = splash_train_model(data, out, &training, 1);
    }
    report->failed |= code != EXIT_GOOD;
    if (!code && sk_file_exists(file))
        folder = realpath(file, NULL);
    else
        report_text(report, "The model %s is not made.", recipe->name);
    free(data);
    free(out);
    free(file);
    return folder;
}

#define SCORES                                                                                                         \
    "split|area under the curve|log loss over the prior's|calibration error|likelihood of the change over a constant " \
    "(nat)"

/* Rows of a model's report. */
static void report_scores(reproduce_report *report, const char *label, const char *name)
{
    static const char *const splits[] = {"training", "validation", "held out"};
    char *path = in_models(report, name, "report.csv");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    double v[6];
    for (int s = -1; s < 3 && file && fgets(line, sizeof line, file); s++)
        if (s >= 0 && sscanf(line, "%*[^,],%lf,%lf,%lf,%lf,%lf,%lf", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]) == 6)
            report_row(report, "%s|%s|%.3f|%.3f|%.4f|%.2f", label, splits[s], v[0], v[1] / v[2], v[3], v[5] - v[4]);
    if (file)
        fclose(file);
    free(path);
}

/* A row of the model that comes with Selkie, on samples that are made unless they are there. */
static void report_shipped(reproduce_report *report, const char *label, const model_recipe *recipe,
                           sk_splash_split split, const char *split_name)
{
    char path[4096], *folder = in_models(report, recipe->data, "");
    splash_data_file file = {0};
    sk_splash_model model = {0};
    sk_splash_score score;
    selkie_error error = {0};
    int code = folder ? EXIT_GOOD : complain("out of memory");
    if (!code && !is_there(report, recipe->data, "data.safetensors"))
        code = report->only                 ? EXIT_BAD_INPUT
               : make_models_folder(report) ? EXIT_BAD_INPUT
                                            : make_samples(report, recipe);
    if (!code)
        code = splash_read_data(folder, &file);
    if (!code) {
        sk_splash_model_find("default", NULL, file.data.dimension, path, sizeof path);
        if (sk_splash_model_read(path, &model, &error) ||
            sk_splash_judge(&file.data, &model, split, report->threads, &score, &error))
            code = complain_error(&error);
        else if (score.splashes)
            report_row(report, "%s|%s|%.3f|%.3f|%.5f|%.2f", label, split_name, score.auc,
                       score.log_loss / score.prior_log_loss, score.calibration_error, score.nll_constant - score.nll);
    }
    report->failed |= code && !report->only;
    sk_splash_model_free(&model);
    splash_data_free(&file);
    free(folder);
}

void write_splash_learning(reproduce_report *report, run_results *const *results)
{
    (void)results;
    /* Samples of another seed than those that the weights come from. */
    const model_recipe solid = {.data = "drops_3d",
                                .template_scene = "splash/templates/drops_3d_medium",
                                .quick_template = "splash/templates/drops_3d_small",
                                .scales = {1.0, 0.3},
                                .scale_count = 2,
                                .runs = 16,
                                .quick_runs = 2,
                                .solid = 1,
                                .seed = 7};
    const model_recipe ours = {DROPS, .name = "drops_2d"}, paper = {DROPS, .name = "drops_2d_paper", .paper = 1};
    char *own = make_model(report, &ours), *theirs = make_model(report, &paper);
    report_table(report, "networks|" SCORES);
    report_scores(report, "ours", ours.name);
    report_scores(report, "the paper's", paper.name);
    report_shipped(report, "that of Selkie, 2D", &ours, SK_SPLIT_HELD_OUT, "held out");
    report_shipped(report, "that of Selkie, 3D", &solid, SK_SPLIT_COUNT, "none was seen");
    report_table_end(report);
    if (own && is_there(report, ours.name, "curves.png"))
        report_image(report, "models/drops_2d/curves.png", "ours");
    if (theirs && is_there(report, paper.name, "curves.png"))
        report_image(report, "models/drops_2d_paper/curves.png", "the paper's");
    free(own);
    free(theirs);
}

/* --- Models in a run --- */

void write_splash_solvers(reproduce_report *report, run_results *const *results)
{
    const model_recipe recipe = {.data = "dams_2d",
                                 .name = "dams_2d",
                                 .quick_template = "splash/templates/dams_2d_small",
                                 .setup = SPLASH_DAMS,
                                 .scales = {1.0},
                                 .scale_count = 1,
                                 .runs = 20,
                                 .quick_runs = 5,
                                 .seed = 1};
    char *model = make_model(report, &recipe), *set = NULL;
    run_results sph = {0};
    if (model && asprintf(&set, "splashes=%s", model) < 0)
        set = NULL;
    const extra_run run = {"dam_2d_sph", report->quick ? "splash/dam_2d_small" : "splash/dam_2d", {set}};
    if (set && open_extra_run(report, &run, &sph)) {
        report_table(report, "run|droplets made|in flight at most");
        report_row(report, "MLFLIP of FLIP runs|%s|%s", number(stats_largest(results[0], "splashes_made")),
                   number(stats_largest(results[0], "splashes")));
        report_row(report, "MLFLIP of SPH runs|%s|%s", number(stats_largest(&sph, "splashes_made")),
                   number(stats_largest(&sph, "splashes")));
        report_table_end(report);
        report_table(report, "samples|" SCORES);
        report_scores(report, "SPH", recipe.name);
        report_table_end(report);
        for (int t = 0; t < 2; t++) {
            const double time = report->quick ? 0.4 + 0.2 * t : 0.9 + 0.4 * t;
            report_frame(report, results[0], time, "MLFLIP of FLIP runs");
            report_frame(report, &sph, time, "MLFLIP of SPH runs");
            report_frame(report, results[1], time, "FLIP");
        }
    }
    close_extra_run(&sph);
    free(set);
    free(model);
}

/* --- Droplets of runs that are there --- */

/* Adds droplets to a run. Returns their number, NaN if none could be made. */
static double add_droplets(reproduce_report *report, const run_results *results, const char *model, int samples,
                           double threshold)
{
    int64_t made = 0;
    const splash_add_options options = {.folder = results->folder,
                                        .model = model ? model : "default",
                                        .samples = samples,
                                        .rate = 1.0,
                                        .threshold = threshold,
                                        .seed = 1,
                                        .threads = report->threads,
                                        .force = 1,
                                        .quiet = 1,
                                        .made = &made};
    if (!results->scene || report->only)
        return NAN;
    const int failed = splash_add(&options) != EXIT_GOOD;
    report->failed |= failed;
    return failed ? NAN : (double)made;
}

void write_splash_secondary(reproduce_report *report, run_results *const *results)
{
    const double one = add_droplets(report, results[0], NULL, 1, 0.0),
                 four = add_droplets(report, results[1], NULL, 4, 0.0);
    report_table(report, "samples of a particle|droplets made");
    report_row(report, "1|%s", number(one));
    report_row(report, "4|%s", number(four));
    report_table_end(report);
    splash_pictures(report, results, 2, report->quick ? 0.3 : 0.5, report->quick ? 0.2 : 0.4);
}

void write_splash_thresholds(reproduce_report *report, run_results *const *results)
{
    static const double thresholds[] = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
    enum { COUNT = sizeof thresholds / sizeof *thresholds };
    report_table(report, "threshold|droplets made for the same frames");
    double last = INFINITY;
    int rises = 0;
    for (int n = 0; n < COUNT; n++) {
        const double made = add_droplets(report, results[1], NULL, 1, thresholds[n]);
        rises += made > last;
        last = made;
        report_row(report, "%g|%s", thresholds[n], number(made));
    }
    report_table_end(report);
    if (last == last)
        report_text(report, rises ? "The number rises in %d places." : "The number falls with every threshold.", rises);

    add_droplets(report, results[0], NULL, 1, 0.2);
    add_droplets(report, results[1], NULL, 1, 0.8);
    splash_pictures(report, results, 2, report->quick ? 0.3 : 0.5, report->quick ? 0.2 : 0.4);

    report_text(report,
                "In a run with droplets of its own the flow differs from run to run, and their number deviates by "
                "12 %%; the mean over 24 seeds falls with every threshold (make test-long):");
    report_table(report, "threshold in a run|splashes made|in flight at most");
    for (int i = 2; i < 6; i++)
        report_row(report, "%s|%s|%s", results[i]->run->label, number(stats_largest(results[i], "splashes_made")),
                   number(stats_largest(results[i], "splashes")));
    report_table_end(report);
}

void write_splash_scales(reproduce_report *report, run_results *const *results)
{
    const model_recipe own[5] = {{.data = "scale_5",
                                  .name = "scale_5",
                                  .scales = {0.5},
                                  .scale_count = 1,
                                  .runs = 16,
                                  .quick_runs = 5,
                                  .seed = 1},
                                 {.name = NULL},
                                 {.data = "scale_10",
                                  .name = "scale_10",
                                  .scales = {1.0},
                                  .scale_count = 1,
                                  .runs = 16,
                                  .quick_runs = 5,
                                  .seed = 1},
                                 {.name = NULL},
                                 {.data = "scale_20",
                                  .name = "scale_20",
                                  .scales = {2.0},
                                  .scale_count = 1,
                                  .runs = 16,
                                  .quick_runs = 5,
                                  .seed = 1}};
    report_table(report, "cells|droplets of the model of three scales|of the model of this scale alone");
    for (int i = 0; i < 5; i++) {
        char *model = own[i].name ? make_model(report, &own[i]) : NULL;
        const double alone = model ? add_droplets(report, results[i], model, 1, 0.0) : NAN;
        report_row(report, "%s|%s|%s", results[i]->run->label, number(add_droplets(report, results[i], NULL, 1, 0.0)),
                   number(alone));
        free(model);
    }
    report_table_end(report);
    for (int i = 0; i < 5; i++)
        report_frame(report, results[i], report->quick ? 0.5 : 0.7, results[i]->run->label);
}

void write_splash_convergence(reproduce_report *report, run_results *const *results)
{
    static const struct {
        int64_t samples;
        const char *name, *label;
    } sizes[] = {{2500, "drops_2d_2500", "2,500"},
                 {10000, "drops_2d_10000", "10,000"},
                 {40000, "drops_2d_40000", "40,000"},
                 {80000, "drops_2d_80000", "80,000"},
                 {0, "drops_2d", "all"}};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    report_table(report, "samples|droplets made for the same frames");
    for (int n = 0; n < COUNT; n++) {
        const model_recipe recipe = {DROPS, .name = sizes[n].name, .samples = sizes[n].samples};
        char *model = make_model(report, &recipe);
        report_row(report, "%s|%s", sizes[n].label,
                   number(model ? add_droplets(report, results[0], model, 1, 0.0) : NAN));
        free(model);
    }
    report_table_end(report);
}

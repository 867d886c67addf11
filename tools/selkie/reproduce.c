/* `selkie reproduce`: simulates the figures of a paper and writes a report. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timer.h"
#include "io/folder.h"
#include "reproduce.h"
#include "tool.h"

static const reproduce_paper *const papers[] = {
    &reproduce_idp,
    &reproduce_uic,
    &reproduce_liquid_boundary,
    &reproduce_elastoplastic,
    &reproduce_shape_matching,
    &reproduce_reduced,
    &reproduce_splash,
};
enum { paper_count = sizeof papers / sizeof *papers };
static const char *const paper_names[] = {
    "idp", "uic", "liquid_boundary", "elastoplastic", "shape_matching", "reduced", "splash", NULL,
};
_Static_assert(sizeof paper_names / sizeof *paper_names == paper_count + 1, "a name for each paper");

enum {
    reproduce_figure_option,
    reproduce_quick,
    reproduce_out,
    reproduce_threads,
    reproduce_report_only,
    reproduce_quiet,
    reproduce_option_count
};

static const option_spec reproduce_options[] = {
    [reproduce_figure_option] = {.name = "figure",
                                 .kind = OPTION_LIST,
                                 .value = "N",
                                 .help = "only this figure; may be given many times"},
    [reproduce_quick] = {.name = "quick",
                         .kind = OPTION_FLAG,
                         .help = "small grids and short times: minutes instead of hours, with less exact numbers"},
    [reproduce_out] = {.name = "out",
                       .letter = 'o',
                       .kind = OPTION_TEXT,
                       .value = "DIR",
                       .help = "folder for the report and its runs; default out/reproduce_NAME, with _quick added if "
                               "that is given"},
    [reproduce_threads] = {.name = "threads",
                           .letter = 'j',
                           .kind = OPTION_INTEGER,
                           .value = "N",
                           .least = 1,
                           .most = 1024,
                           .help = "threads to use; default all cores"},
    [reproduce_report_only] = {.name = "report-only",
                               .kind = OPTION_FLAG,
                               .help = "simulate nothing: write the report of the existing runs"},
    [reproduce_quiet] = {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "print errors only"},
};

/* One call of the command. */
typedef struct reproduction {
    const reproduce_paper *paper;
    char *folder;
    int quick, quiet, threads, report_only;
    unsigned char *wanted_figures; /* [figure_count] */
    unsigned char *wanted_runs;    /* [run_count] */
    run_results *results;          /* [run_count] */
} reproduction;

/* --- Choosing --- */

static int find_run(const reproduce_paper *paper, const char *name)
{
    for (int i = 0; i < paper->run_count; i++)
        if (!strcmp(paper->runs[i].name, name))
            return i;
    return -1;
}

static int choose_figures(reproduction *work, const option_value *figures)
{
    const reproduce_paper *paper = work->paper;

    /* Mark the requested figures; all of them if none is given. */
    for (int f = 0; f < paper->figure_count; f++)
        work->wanted_figures[f] = figures->given == 0;
    for (int g = 0; g < figures->given; g++) {
        char *end;
        long wanted = strtol(figures->list[g], &end, 10);
        int found = 0;
        for (int f = 0; f < paper->figure_count && !*end; f++)
            if (paper->figures[f].number == wanted)
                found = work->wanted_figures[f] = 1;
        if (!found) {
            char known[256] = "";
            for (int f = 0; f < paper->figure_count; f++)
                snprintf(known + strlen(known), sizeof known - strlen(known), "%s%d", f ? ", " : "",
                         paper->figures[f].number);
            return complain("--figure %s: the report of '%s' has the figures %s", figures->list[g], paper->name, known);
        }
    }

    /* Mark the runs that these figures need. */
    for (int f = 0; f < paper->figure_count; f++)
        for (int r = 0; work->wanted_figures[f] && r < REPRODUCE_MAX_RUNS && paper->figures[f].runs[r]; r++) {
            int run = find_run(paper, paper->figures[f].runs[r]);
            if (run < 0) {
                complain("figure %d of '%s' names an unknown run '%s'", paper->figures[f].number, paper->name,
                         paper->figures[f].runs[r]);
                return EXIT_INTERNAL;
            }
            work->wanted_runs[run] = 1;
        }
    return EXIT_GOOD;
}

/* --- Simulating --- */

static int open_results(reproduction *work, int index)
{
    run_results *results = &work->results[index];
    const char *name = work->paper->runs[index].name;
    results->run = &work->paper->runs[index];
    if (asprintf(&results->relative, "runs/%s", name) < 0 ||
        asprintf(&results->folder, "%s/runs/%s", work->folder, name) < 0)
        return complain("out of memory");
    return EXIT_GOOD;
}

static char *result_path(const run_results *results, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", results->folder, name) < 0 ? NULL : path;
}

static int has_file(const run_results *results, const char *name)
{
    char *path = result_path(results, name);
    int there = path && sk_file_exists(path);
    free(path);
    return there;
}

/* A run that blew up is a result: it is marked and not repeated. */
static int mark_diverged(const run_results *results)
{
    char *path = result_path(results, "diverged");
    FILE *file = path ? fopen(path, "w") : NULL;
    int bad = !file || fputs("the simulation diverged; remove this file to try again\n", file) < 0;
    if (file)
        bad |= fclose(file) != 0;
    int code = bad ? complain("%s: cannot be written", path ? path : "diverged") : EXIT_GOOD;
    free(path);
    return code;
}

static double run_cost(const reproduction *work, int run)
{
    const reproduce_run *def = &work->paper->runs[run];
    return work->quick ? def->quick_cost : def->cost;
}

static int simulate_run(const reproduction *work, int index)
{
    const reproduce_run *run = &work->paper->runs[index];
    const char *sets[2 * REPRODUCE_MAX_SETS];
    int set_count = 0;
    for (int i = 0; i < REPRODUCE_MAX_SETS && run->sets[i]; i++)
        sets[set_count++] = run->sets[i];
    for (int i = 0; work->quick && i < REPRODUCE_MAX_SETS && run->quick[i]; i++)
        sets[set_count++] = run->quick[i];
    const char *scene = work->quick && run->quick_scene ? run->quick_scene : run->scene;
    int code = simulate(scene, set_count, sets, work->results[index].folder, work->threads,
                        work->quiet || !isatty(STDOUT_FILENO));
    return code == EXIT_DIVERGED ? mark_diverged(&work->results[index]) : code;
}

static int simulate_all(reproduction *work)
{
    int count = 0, number = 0;
    double left = 0, done = 0, begin = sk_wall_ms();

    /* Count the unfinished runs and estimate their cost. */
    for (int i = 0; i < work->paper->run_count; i++)
        if (work->wanted_runs[i] && !has_file(&work->results[i], "finished") &&
            !has_file(&work->results[i], "diverged")) {
            count++;
            left += run_cost(work, i);
        }

    /* Run them, with an estimate of the time left. */
    for (int i = 0; i < work->paper->run_count; i++) {
        if (!work->wanted_runs[i] || has_file(&work->results[i], "finished") || has_file(&work->results[i], "diverged"))
            continue;
        char time[32];
        double seconds = (sk_wall_ms() - begin) * 1e-3;
        number++;
        if (!work->quiet) {
            printf("run %d/%d  %s: %s", number, count, work->paper->runs[i].scene, work->paper->runs[i].label);
            printf(done > 0 ? "  (about %s left)\n" : "\n", format_duration(seconds * left / done, time));
            fflush(stdout);
        }
        int code = simulate_run(work, i);
        if (code)
            return code;
        done += run_cost(work, i);
        left -= run_cost(work, i);
    }
    return EXIT_GOOD;
}

/* --- The report --- */

/* Reads the results of a run. The report marks missing ones, so that it can be written at any time. */
static void read_results(run_results *results)
{
    char *scene = result_path(results, "scene.json"), *stats = result_path(results, "stats.csv");
    char *probes = result_path(results, "probes.csv");
    results->diverged = has_file(results, "diverged");
    if (scene && selkie_scene_load(scene, 0, NULL, &results->scene, NULL))
        results->scene = NULL;
    if (results->scene && stats && sk_table_read(stats, &results->stats, NULL))
        results->stats = NULL;
    if (results->scene && probes && sk_table_read(probes, &results->probes, NULL))
        results->probes = NULL;
    free(scene);
    free(stats);
    free(probes);
}

static const char style[] = "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 "
                            "1rem;color:#222;background:#fff}"
                            "table{border-collapse:collapse;margin:1rem 0;font-size:.92rem}td,th{border:1px solid "
                            "#ccc;padding:.3rem .6rem;text-align:"
                            "left}th{background:#f0f3f6}figure{display:inline-block;margin:.5rem;vertical-align:top}"
                            "img{max-width:100%;max-height:32rem}"
                            "figcaption{font-size:.85rem;color:#555}";

static int open_report(const reproduction *work, reproduce_report *report)
{
    char *plots = NULL, *markdown = NULL, *html = NULL;
    selkie_error error = {0};
    int code = EXIT_GOOD;
    if (asprintf(&plots, "%s/plots", work->folder) < 0 || asprintf(&markdown, "%s/report.md", work->folder) < 0 ||
        asprintf(&html, "%s/report.html", work->folder) < 0)
        code = complain("out of memory");
    else if (sk_folder_make(plots, &error))
        code = complain_error(&error);
    else if (!(report->markdown = fopen(markdown, "w")))
        code = complain("%s: cannot be written", markdown);
    else if (!(report->html = fopen(html, "w")))
        code = complain("%s: cannot be written", html);
    free(plots);
    free(markdown);
    free(html);
    return code;
}

static int close_report(const reproduction *work, reproduce_report *report)
{
    int bad = 0;
    FILE *files[] = {report->markdown, report->html};
    for (int i = 0; i < 2; i++)
        if (files[i]) {
            bad |= ferror(files[i]) != 0;
            bad |= fclose(files[i]) != 0;
        }
    return bad ? complain("%s: the report could not be written; is the disk full?", work->folder) : EXIT_GOOD;
}

static void write_figure(const reproduction *work, reproduce_report *report, const reproduce_figure *figure)
{
    run_results *results[REPRODUCE_MAX_RUNS] = {NULL};
    char heading[256];
    if (figure->label)
        snprintf(heading, sizeof heading, "%s: %s", figure->label, figure->title);
    else
        snprintf(heading, sizeof heading, "Figure %d: %s", figure->number, figure->title);
    report_heading(report, 2, heading);
    report_text(report, "%s", figure->about);
    for (int r = 0; r < REPRODUCE_MAX_RUNS && figure->runs[r]; r++) {
        results[r] = &work->results[find_run(work->paper, figure->runs[r])];
        if (results[r]->diverged)
            report_text(report, "The run \"%s\" diverged; its results end there.", results[r]->run->label);
        else if (!has_file(results[r], "finished"))
            report_text(report, "The run \"%s\" is not finished.", results[r]->run->label);
    }
    figure->write(report, results);
}

static int write_report(reproduction *work)
{
    reproduce_report report = {.folder = work->folder,
                               .quick = work->quick,
                               .only = work->report_only,
                               .threads = work->threads > 0 ? work->threads : omp_get_num_procs()};
    int code = open_report(work, &report);

    /* Head, introduction and figures. */
    if (!code) {
        fprintf(report.html,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>%s</style>"
                "</head><body>\n",
                work->paper->title, style);
        report_heading(&report, 1, work->paper->title);
        report_text(&report, "%s", work->paper->citation);
        report_text(&report, "%s", work->paper->about);
        if (work->quick)
            report_text(
                &report,
                "This is the quick form: grids and times are smaller than the paper's, so that its numbers serve "
                "as a guide only.");
        for (int f = 0; f < work->paper->figure_count; f++)
            if (work->wanted_figures[f])
                write_figure(work, &report, &work->paper->figures[f]);
        fputs("</body></html>\n", report.html);
    }

    /* Close the files and print where they are. */
    int closed = close_report(work, &report);
    code = code ? code : closed;
    if (!code && report.failed)
        code = complain("%s/report.md: parts of the report could not be made", work->folder);
    if (!code && !work->quiet)
        printf("report  %s/report.html, %s/report.md\n", work->folder, work->folder);
    return code;
}

/* --- The command --- */

static const reproduce_paper *find_paper(const char *name)
{
    const char *names[paper_count];
    for (int i = 0; i < paper_count; i++) {
        if (!strcmp(papers[i]->name, name))
            return papers[i];
        names[i] = papers[i]->name;
    }
    const char *meant = nearest_word(name, names, paper_count);
    char known[256] = "";
    for (int i = 0; i < paper_count; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", names[i]);
    if (meant)
        complain("there is no report '%s'; did you mean '%s'?", name, meant);
    else
        complain("there is no report '%s'; there are: %s", name, known);
    return NULL;
}

static void release(reproduction *work)
{
    for (int i = 0; work->results && i < work->paper->run_count; i++) {
        run_results *results = &work->results[i];
        free(results->folder);
        free(results->relative);
        selkie_scene_free(results->scene);
        sk_table_free(results->stats);
        sk_table_free(results->probes);
    }
    free(work->results);
    free(work->wanted_figures);
    free(work->wanted_runs);
    free(work->folder);
}

static int run_reproduce(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    reproduction work = {.quick = values[reproduce_quick].given,
                         .quiet = values[reproduce_quiet].given,
                         .threads = (int)values[reproduce_threads].integer,
                         .report_only = values[reproduce_report_only].given};
    work.paper = find_paper(arguments->operands[0]);
    if (!work.paper)
        return EXIT_BAD_INPUT;

    /* Memory and folder. */
    work.results = calloc((size_t)work.paper->run_count, sizeof *work.results);
    work.wanted_runs = calloc((size_t)work.paper->run_count, 1);
    work.wanted_figures = calloc((size_t)work.paper->figure_count, 1);
    int code = EXIT_GOOD;
    if (values[reproduce_out].given
            ? !(work.folder = strdup(values[reproduce_out].text))
            : asprintf(&work.folder, "out/reproduce_%s%s", work.paper->name, work.quick ? "_quick" : "") < 0)
        work.folder = NULL;
    if (!work.results || !work.wanted_runs || !work.wanted_figures || !work.folder)
        code = complain("out of memory");

    /* Runs, then the report. */
    if (!code)
        code = choose_figures(&work, &values[reproduce_figure_option]);
    for (int i = 0; i < work.paper->run_count && !code; i++)
        code = open_results(&work, i);
    if (!code && !work.report_only)
        code = simulate_all(&work);
    for (int i = 0; i < work.paper->run_count && !code; i++)
        if (work.wanted_runs[i])
            read_results(&work.results[i]);
    if (!code)
        code = write_report(&work);
    release(&work);
    return code;
}

const tool_command reproduce_command = {
    .name = "reproduce",
    .synopsis = "NAME",
    .least_operands = 1,
    .most_operands = 1,
    .summary = "simulate a paper's experiments and write a report",
    .words = paper_names,
    .description =
        "Simulates the figures of a paper and writes DIR/report.html and DIR/report.md with plots, "
        "pictures and tables: the paper's numbers beside those of these runs. NAME is: idp (Kugelstadt et al. 2019, "
        "implicit density projection), uic (Gerszewski's dissertation, chapter 3, unilateral incompressibility), "
        "elastoplastic and reduced (its chapters 4 and 5), liquid_boundary (Cornelis et al. 2015, liquid boundaries "
        "for "
        "SPH), shape_matching (Gao et al. 2017) or splash (Um et al. 2018).\n"
        "\nThe runs stay in DIR/runs. Finished runs are not repeated and interrupted ones are "
        "resumed, so that the command can be stopped and called again.",
    .options = reproduce_options,
    .option_count = reproduce_option_count,
    .examples = "  selkie reproduce idp --quick\n"
                "  selkie reproduce idp --figure 3 --figure 4 --out out/volume\n"
                "  selkie reproduce uic --quick\n"
                "  selkie reproduce liquid_boundary --quick\n",
    .run = run_reproduce,
};

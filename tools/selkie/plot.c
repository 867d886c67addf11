/* `selkie plot`: figures of stats.csv and probes.csv of one or more runs.
 *
 * One run: a colour a quantity. Several: a colour a run, a line style a quantity, so that runs differ in every panel.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/folder.h"
#include "io/table_file.h"
#include "render/plot.h"
#include "statistics_text.h"
#include "tool.h"

enum { plot_out, plot_columns, plot_option_count };

static const option_spec plot_options[] = {
    [plot_out] = {.name = "out",
                  .letter = 'o',
                  .kind = OPTION_TEXT,
                  .value = "PREFIX",
                  .help = "write PREFIX.png and PREFIX.svg; default DIR/plots, for several runs ./plots"},
    [plot_columns] = {.name = "columns",
                      .kind = OPTION_TEXT,
                      .value = "A,B,C",
                      .help = "a panel for each of these columns of stats.csv or probes.csv instead of the usual ones"},
};

/* --- Runs and what is drawn of them --- */

typedef struct plotted_run {
    const char *folder;
    char *label; /* the shortest end of the folder's path */
    sk_table *stats;
    sk_table *probes;    /* NULL where there are none */
    selkie_scene *scene; /* NULL where it cannot be read */
} plotted_run;

typedef struct plot_job {
    plotted_run *runs;
    int run_count;
    sk_plot_panel *panels;
    int panel_count;
    void **kept; /* labels and columns made on the way, released with the job */
    size_t kept_count;
    int out_of_memory;
} plot_job;

/* Owns a block (NULL: out of memory) until the job ends; returns it, or NULL. */
static void *keep(plot_job *job, void *block)
{
    void **grown = block ? realloc(job->kept, sizeof *grown * (job->kept_count + 1)) : NULL;
    if (!grown) {
        free(block);
        job->out_of_memory = 1;
        return NULL;
    }
    job->kept = grown;
    return grown[job->kept_count++] = block;
}

__attribute__((format(printf, 2, 3))) static const char *keep_word(plot_job *job, const char *format, ...)
{
    char *word = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    return keep(job, word) ? word : "";
}

static sk_plot_panel *add_panel(plot_job *job, const char *title, const char *y_label)
{
    static sk_plot_panel nowhere; /* written to when out of memory */
    sk_plot_panel *grown = realloc(job->panels, sizeof *grown * (size_t)(job->panel_count + 1));
    if (!grown) {
        job->out_of_memory = 1;
        memset(&nowhere, 0, sizeof nowhere);
        return &nowhere;
    }
    job->panels = grown;
    sk_plot_panel *panel = &grown[job->panel_count++];
    memset(panel, 0, sizeof *panel);
    panel->title = title;
    panel->x_label = "time (s)";
    panel->y_label[0] = y_label;
    return panel;
}

/* A column of a table; "a+b+c" is the sum of these. NULL if one is missing. */
static const double *find_column(plot_job *job, const sk_table *table, const char *column)
{
    if (!strchr(column, '+') || sk_table_column(table, column))
        return sk_table_column(table, column);
    double *sum = keep(job, calloc((size_t)table->row_count, sizeof *sum));
    for (const char *part = column; sum && part;) {
        char name[64];
        const char *plus = strchr(part, '+');
        snprintf(name, sizeof name, "%.*s", (int)(plus ? plus - part : (long)strlen(part)), part);
        const double *values = sk_table_column(table, name);
        if (!values)
            return NULL;
        for (int64_t i = 0; i < table->row_count; i++)
            sum[i] += values[i];
        part = plus ? plus + 1 : NULL;
    }
    return sum;
}

/* Adds one column of a table, against its column "time". `style` has the label, colour, dash and axis. A table without
 * the column adds nothing. */
static void add_series(plot_job *job, sk_plot_panel *panel, const sk_table *table, const char *column,
                       const sk_plot_series *style)
{
    const double *x = table ? sk_table_column(table, "time") : NULL;
    const double *y = table ? find_column(job, table, column) : NULL;
    if (!x || !y)
        return;
    sk_plot_series *grown = realloc((sk_plot_series *)panel->series, sizeof *grown * (size_t)(panel->series_count + 1));
    if (!grown) {
        job->out_of_memory = 1;
        return;
    }
    panel->series = grown;
    sk_plot_series *series = &grown[panel->series_count++];
    *series = *style;
    series->x = x;
    series->y = y;
    series->count = (size_t)table->row_count;
}

/* One quantity of all runs; `index` counts the quantities of a panel. */
static void add_quantity(plot_job *job, sk_plot_panel *panel, int from_probes, const char *column, int axis, int index,
                         const char *label)
{
    for (int i = 0; i < job->run_count; i++) {
        const plotted_run *run = &job->runs[i];
        int one = job->run_count == 1;
        const char *words = one ? label : *label ? keep_word(job, "%s, %s", run->label, label) : run->label;
        const sk_plot_series style = {
            .label = *words ? words : NULL, .color = one ? index : i, .dash = one ? 0 : index, .axis = axis};
        add_series(job, panel, from_probes ? run->probes : run->stats, column, &style);
    }
}

/* Removes the last panel if it has no curve. */
static void drop_empty_panel(plot_job *job)
{
    if (job->panel_count && !job->panels[job->panel_count - 1].series_count)
        free((void *)job->panels[--job->panel_count].series);
}

/* --- The usual panels --- */

static int is_phase(const char *column)
{
    size_t length = strlen(column);
    int is_phase_name = length > 3 && !strcmp(column + length - 3, "_ms");
    for (int i = 0; is_phase_name && i < selkie_statistic_count(); i++)
        is_phase_name = strcmp(column, selkie_statistic_info(i)->name) != 0;
    return is_phase_name;
}

/* The phases of a single run, as stacked areas. */
static void add_phases(plot_job *job, sk_plot_panel *panel)
{
    const sk_table *stats = job->runs[0].stats;
    panel->stacked = 1;
    for (int i = 0, color = 0; i < stats->column_count; i++) {
        if (!is_phase(stats->names[i]))
            continue;
        char *label = keep(job, strndup(stats->names[i], strlen(stats->names[i]) - 3));
        for (char *c = label; c && *c; c++)
            *c = *c == '_' ? ' ' : *c;
        add_series(job, panel, stats, stats->names[i], &(sk_plot_series){.label = label, .color = color++});
    }
}

/* Rows of the table of statistics in a panel. */
static int count_rows(selkie_panel panel)
{
    int count = 0;
    for (int i = 0; i < selkie_statistic_count(); i++)
        count += selkie_statistic_info(i)->panel == panel;
    return count;
}

/* One panel of the table of statistics. A single curve needs no label. */
static void add_statistics_panel(plot_job *job, selkie_panel which)
{
    const selkie_panel_info *info = selkie_statistic_panel(which);
    sk_plot_panel *panel = add_panel(job, info->title, info->axes[0]);
    panel->y_label[1] = *info->axes[1] ? info->axes[1] : NULL;
    panel->from_zero[0] = (info->flags & SELKIE_PANEL_FROM_ZERO) != 0;
    panel->from_zero[1] = (info->flags & SELKIE_PANEL_RIGHT_FROM_ZERO) != 0;
    panel->logarithmic[0] = (info->flags & SELKIE_PANEL_LOGARITHMIC) != 0;
    if (info->flags & SELKIE_PANEL_PHASES && job->run_count == 1) {
        add_phases(job, panel);
        drop_empty_panel(job);
        return;
    }
    int alone = count_rows(which) == 1, index = 0;
    const char *total = "";
    for (int i = 0; i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        if (row->panel != which)
            continue;
        add_quantity(job, panel, 0, row->name, row->axis, index++, alone ? "" : statistic_label(row));
        total = keep_word(job, "%s%s%s", total, *total ? "+" : "", row->name);
    }
    if (info->flags & SELKIE_PANEL_TOTAL)
        add_quantity(job, panel, 0, total, 0, index, "total");
    drop_empty_panel(job);
}

/* --- Probes --- */

/* The probe of a column, whose name is the probe's, or that with _x, _y, _z. */
static const selkie_probe_def *find_probe(const plotted_run *run, const char *column, const char **component)
{
    static const char *const axes[] = {"x", "y", "z"};
    for (int i = 0; run->scene && i < run->scene->probe_count; i++) {
        const selkie_probe_def *probe = &run->scene->probes[i];
        size_t length = probe->name ? strlen(probe->name) : 0;
        if (!length || strncmp(column, probe->name, length))
            continue;
        *component = "";
        if (!column[length])
            return probe;
        for (int axis = 0; axis < 3; axis++)
            if (column[length] == '_' && !strcmp(column + length + 1, axes[axis])) {
                *component = axes[axis];
                return probe;
            }
    }
    *component = "";
    return NULL;
}

static const char *probe_unit(const selkie_probe_def *probe)
{
    if (!probe)
        return "";
    switch (probe->kind) {
    case SELKIE_PROBE_HEIGHT:
    case SELKIE_PROBE_LEVEL:
        return "height (m)";
    case SELKIE_PROBE_PRESSURE:
        return "pressure (Pa)";
    case SELKIE_PROBE_VELOCITY:
        return "velocity (m/s)";
    case SELKIE_PROBE_FRONT:
        return "position (m)";
    case SELKIE_PROBE_FORCE:
        return "force (N)";
    case SELKIE_PROBE_TORQUE:
        return "torque (N m)";
    case SELKIE_PROBE_TEMPERATURE:
        return "temperature (K)";
    }
    return "";
}

/* A panel a probe; the components of a velocity share one. The first run with probes decides which panels there are. */
static void add_probe_panels(plot_job *job)
{
    const plotted_run *leader = NULL;
    for (int i = 0; i < job->run_count && !leader; i++)
        if (job->runs[i].probes && job->runs[i].probes->column_count > 2)
            leader = &job->runs[i];
    if (!leader)
        return;
    const selkie_probe_def *before = NULL;
    sk_plot_panel *panel = NULL;
    int index = 0;
    for (int i = 0; i < leader->probes->column_count; i++) {
        const char *column = leader->probes->names[i], *component;
        if (!strcmp(column, "step") || !strcmp(column, "time"))
            continue;
        const selkie_probe_def *probe = find_probe(leader, column, &component);
        if (!probe || probe != before) {
            if (panel)
                drop_empty_panel(job);
            panel = add_panel(job, keep_word(job, "Probe: %s", probe ? probe->name : column), probe_unit(probe));
            index = 0;
        }
        add_quantity(job, panel, 1, column, 0, index++, component);
        before = probe;
    }
    drop_empty_panel(job);
}

/* --- Panels of --columns --- */

static int add_asked_panels(plot_job *job, const char *columns)
{
    char *copy = strdup(columns);
    if (!copy)
        return complain("out of memory");
    int code = EXIT_GOOD;
    for (char *rest = copy, *column; !code && (column = strsep(&rest, ","));) {
        if (!*column)
            continue;
        const plotted_run *run = &job->runs[0];
        int in_stats = sk_table_column(run->stats, column) != NULL;
        if (!in_stats && !(run->probes && sk_table_column(run->probes, column))) {
            const char *meant = nearest_word(column, (const char *const *)run->stats->names, run->stats->column_count);
            if (!meant && run->probes)
                meant = nearest_word(column, (const char *const *)run->probes->names, run->probes->column_count);
            code = complain("--columns: %s has no column '%s'%s%s%s", run->folder, column,
                            meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
            break;
        }
        const char *word = keep_word(job, "%s", column);
        sk_plot_panel *panel = add_panel(job, word, word);
        add_quantity(job, panel, !in_stats, word, 0, 0, "");
    }
    free(copy);
    if (!code && !job->panel_count)
        code = complain("--columns names no column");
    return code;
}

/* --- The command --- */

static int read_run(plotted_run *run, const char *folder)
{
    run->folder = folder;
    char *stats = NULL, *probes = NULL, *scene = NULL;
    selkie_error error = {0};
    int code = EXIT_GOOD;

    /* Paths and label: the last part of the folder's name. */
    if (asprintf(&stats, "%s/stats.csv", folder) < 0)
        stats = NULL;
    if (asprintf(&probes, "%s/probes.csv", folder) < 0)
        probes = NULL;
    if (asprintf(&scene, "%s/scene.json", folder) < 0)
        scene = NULL;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    run->label = strndup(folder, length);
    char *slash = run->label ? strrchr(run->label, '/') : NULL;
    if (slash && slash[1])
        memmove(run->label, slash + 1, strlen(slash + 1) + 1);

    /* Tables and scene. */
    if (!stats || !probes || !scene || !run->label)
        code = complain("out of memory");
    else if (!sk_folder_exists(folder))
        code = complain("%s: no such folder; 'selkie plot' needs the folder of a run", folder);
    else if (!sk_file_exists(stats))
        code = complain("%s: there is no stats.csv in it, so it is not the folder of a run", folder);
    else if (sk_table_read(stats, &run->stats, &error))
        code = complain_error(&error);
    else if (!run->stats->row_count || !sk_table_column(run->stats, "time"))
        code = complain("%s: has no steps yet", stats);
    else if (sk_file_exists(probes) && sk_table_read(probes, &run->probes, &error))
        code = complain_error(&error);
    if (!code && selkie_scene_load(scene, 0, NULL, &run->scene, NULL))
        run->scene = NULL; /* titles and units are optional */
    free(stats);
    free(probes);
    free(scene);
    return code;
}

static int write_figures(const plot_job *job, const char *prefix, const char *title)
{
    static const char *const endings[] = {"png", "svg"};
    sk_plot_figure figure = {.title = title, .panels = job->panels, .panel_count = job->panel_count};
    int code = EXIT_GOOD;
    for (int i = 0; i < 2 && !code; i++) {
        char *path = NULL;
        selkie_error error = {0};
        if (asprintf(&path, "%s.%s", prefix, endings[i]) < 0)
            return complain("out of memory");
        if (sk_plot_write(&figure, path, &error))
            code = complain_error(&error);
        else
            printf("%s\n", path);
        free(path);
    }
    return code;
}

static void free_job(plot_job *job)
{
    for (int i = 0; i < job->run_count; i++) {
        free(job->runs[i].label);
        sk_table_free(job->runs[i].stats);
        sk_table_free(job->runs[i].probes);
        if (job->runs[i].scene)
            selkie_scene_free(job->runs[i].scene);
    }
    for (int i = 0; i < job->panel_count; i++)
        free((void *)job->panels[i].series);
    for (size_t i = 0; i < job->kept_count; i++)
        free(job->kept[i]);
    free(job->runs);
    free(job->panels);
    free(job->kept);
}

static int run_plot(const tool_arguments *arguments)
{
    const option_value *values = arguments->values;
    plot_job job = {.run_count = arguments->operand_count};
    job.runs = calloc((size_t)job.run_count, sizeof *job.runs);
    int code = job.runs ? EXIT_GOOD : complain("out of memory");
    if (!job.runs)
        return code;

    /* Read the runs and choose the panels. */
    for (int i = 0; i < job.run_count && !code; i++)
        code = read_run(&job.runs[i], arguments->operands[i]);
    if (!code && values[plot_columns].given) {
        code = add_asked_panels(&job, values[plot_columns].text);
    } else if (!code) {
        for (int panel = SELKIE_PANEL_NONE + 1; panel < SELKIE_PANEL_COUNT; panel++)
            add_statistics_panel(&job, (selkie_panel)panel);
        add_probe_panels(&job);
    }

    /* Choose the title and the file names, and write the figures. */
    const char *title = "", *prefix = "plots";
    if (!code) {
        const selkie_scene *scene = job.runs[0].scene;
        if (job.run_count > 1)
            title = keep_word(&job, "%d runs", job.run_count);
        else
            title = scene && scene->title && *scene->title ? scene->title : job.runs[0].label;
        if (values[plot_out].given)
            prefix = values[plot_out].text;
        else if (job.run_count == 1)
            prefix = keep_word(&job, "%s/plots", job.runs[0].folder);
        code = job.out_of_memory ? complain("out of memory") : write_figures(&job, prefix, title);
    }

    free_job(&job);
    return code;
}

const tool_command plot_command = {
    .name = "plot",
    .synopsis = "DIR...",
    .least_operands = 1,
    .most_operands = -1,
    .summary = "plot the statistics of one or more runs (PNG and SVG)",
    .description = "Draws volume, energies, pressure solves, wall time of the phases, particles, time step and probes "
                   "of the run in DIR over time. Several runs are drawn into the same panels, for comparison.",
    .options = plot_options,
    .option_count = plot_option_count,
    .examples = "  selkie plot out/dam\n"
                "  selkie plot out/flip out/apic --columns volume_ratio,dt --out both\n",
    .run = run_plot,
};

/* The table and the plot of a sweep, from the tables of its runs.
 *
 * The columns of the table follow from the table of statistics (selkie/statistics.h): what `selkie info` says of a run,
 * the energies and the largest speed.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/table_file.h"
#include "render/plot.h"
#include "sweep.h"
#include "tool.h"

/* --- Columns --- */

typedef enum reduction { TAKE_LAST, TAKE_LEAST, TAKE_LARGEST, TAKE_MEAN, TAKE_SECONDS } reduction;

typedef struct sweep_column {
    char name[96];
    char source[72]; /* column of stats.csv or probes.csv */
    reduction take;
    double *values; /* [run_count] */
} sweep_column;

enum { most_columns = 64 };

typedef struct sweep_columns {
    sweep_column items[most_columns];
    int count;
} sweep_columns;

static void add_column(sweep_columns *columns, const char *source, const char *ending, reduction take)
{
    if (columns->count == most_columns)
        return;
    sweep_column *column = &columns->items[columns->count++];
    snprintf(column->name, sizeof column->name, "%.*s%s", (int)sizeof column->source - 1, source, ending);
    snprintf(column->source, sizeof column->source, "%.*s", (int)sizeof column->source - 1, source);
    column->take = take;
}

/* The columns that every sweep has. */
static void add_usual_columns(sweep_columns *columns)
{
    for (int i = 0; i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        if (!strcmp(row->name, "step") || !strcmp(row->name, "time") || row->panel == SELKIE_PANEL_ENERGY ||
            row->summary == SELKIE_SUMMARY_LAST || row->summary == SELKIE_SUMMARY_RANGE)
            add_column(columns, row->name, "", TAKE_LAST);
        if (row->summary == SELKIE_SUMMARY_RANGE)
            add_column(columns, row->name, "_least", TAKE_LEAST);
        if (row->summary == SELKIE_SUMMARY_RANGE || row->panel == SELKIE_PANEL_SPEED)
            add_column(columns, row->name, "_largest", TAKE_LARGEST);
        if (row->summary == SELKIE_SUMMARY_MEAN)
            add_column(columns, row->name, "_mean", TAKE_MEAN);
        if (row->summary == SELKIE_SUMMARY_TOTAL && !strcmp(row->unit, "ms")) {
            add_column(columns, row->name, "", TAKE_SECONDS);
            strcpy(columns->items[columns->count - 1].name, "wall_time");
        }
    }
}

static sweep_column *find_column(sweep_columns *columns, const char *name)
{
    for (int c = 0; c < columns->count; c++)
        if (!strcmp(columns->items[c].name, name))
            return &columns->items[c];
    return NULL;
}

int sweep_knows_column(const char *name)
{
    sweep_columns columns = {0};
    add_usual_columns(&columns);
    for (int i = 0; i < selkie_statistic_count(); i++)
        if (!strcmp(selkie_statistic_info(i)->name, name))
            return 1;
    return find_column(&columns, name) != NULL;
}

static double reduce(const double *values, int64_t count, reduction take)
{
    double last = count > 0 ? values[count - 1] : NAN, least = INFINITY, largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        least = fmin(least, values[i]);
        largest = fmax(largest, values[i]);
        sum += values[i];
    }
    if (count < 1)
        return NAN;
    switch (take) {
    case TAKE_LEAST:
        return least;
    case TAKE_LARGEST:
        return largest;
    case TAKE_MEAN:
        return sum / (double)count;
    case TAKE_SECONDS:
        return sum * 1e-3;
    default:
        return last;
    }
}

/* A table of a run; NULL where it has none. */
static sk_table *read_table(const sweep_run *run, const char *name)
{
    char *path = NULL;
    sk_table *table = NULL;
    if (asprintf(&path, "%s/%s", run->folder, name) < 0)
        return NULL;
    if (!sk_file_exists(path) || sk_table_read(path, &table, NULL))
        table = NULL;
    free(path);
    return table;
}

static int fill_columns(const sweep *work, sweep_columns *columns)
{
    for (int c = 0; c < columns->count; c++)
        if (!(columns->items[c].values = calloc((size_t)work->run_count, sizeof(double))))
            return complain("out of memory");
    for (int i = 0; i < work->run_count; i++) {
        sk_table *stats = read_table(&work->runs[i], "stats.csv"), *probes = read_table(&work->runs[i], "probes.csv");
        for (int c = 0; c < columns->count; c++) {
            sweep_column *column = &columns->items[c];
            const sk_table *table = stats && sk_table_column(stats, column->source) ? stats : probes;
            const double *values = table ? sk_table_column(table, column->source) : NULL;
            column->values[i] = values ? reduce(values, table->row_count, column->take) : NAN;
        }
        sk_table_free(stats);
        sk_table_free(probes);
    }
    return EXIT_GOOD;
}

/* --- sweep.csv --- */

/* Quoted where it must be (RFC 4180). */
static void print_field(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static int count_warnings(const sweep_run *run)
{
    char *path = NULL, *text = NULL;
    size_t length = 0;
    int count = 0;
    if (asprintf(&path, "%s/warnings.txt", run->folder) < 0)
        return 0;
    if (sk_file_exists(path) && !sk_file_read(path, &text, &length, NULL))
        for (size_t i = 0; i < length; i++)
            count += text[i] == '\n';
    sk_release(NULL, text);
    free(path);
    return count;
}

static void print_table(const sweep *work, const sweep_columns *columns, FILE *out)
{
    for (int k = 0; k < work->key_count; k++) {
        print_field(out, work->keys[k].name);
        fputc(',', out);
    }
    fputs("exit_code,warnings", out);
    for (int c = 0; c < columns->count; c++)
        fprintf(out, ",%s", columns->items[c].name);
    fputs(",folder\n", out);

    /* A run that has not been started has no exit code. */
    for (int i = 0; i < work->run_count; i++) {
        const sweep_run *run = &work->runs[i];
        for (int k = 0; k < work->key_count; k++) {
            print_field(out, work->keys[k].values[run->choices[k]]);
            fputc(',', out);
        }
        if (run->exit_code >= 0)
            fprintf(out, "%d", run->exit_code);
        fprintf(out, ",%d", count_warnings(run));
        for (int c = 0; c < columns->count; c++) {
            double value = columns->items[c].values[i];
            fprintf(out, isnan(value) ? "," : ",%.9g", value);
        }
        fputs(",", out);
        char folder[16 + sweep_name_length + 24];
        snprintf(folder, sizeof folder, "runs/%s", run->name);
        print_field(out, folder);
        fputc('\n', out);
    }
}

static int write_table(const sweep *work, const sweep_columns *columns)
{
    char *path = NULL, *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    selkie_error error = {0};
    int code = out ? EXIT_GOOD : complain("out of memory");
    if (out) {
        print_table(work, columns, out);
        fclose(out);
    }
    if (!code && asprintf(&path, "%s/sweep.csv", work->folder) < 0)
        code = complain("out of memory");
    if (!code && sk_file_write(path, text, length, &error))
        code = complain_error(&error);
    free(path);
    free(text);
    return code;
}

/* --- sweep.png --- */

/* The first key along x: its numbers, or 0, 1, 2 ... where they are words. */
typedef struct sweep_axis {
    double *x; /* [count of the key] */
    char label[512];
} sweep_axis;

static int make_axis(const sweep_key *key, sweep_axis *axis)
{
    axis->x = calloc((size_t)key->count, sizeof *axis->x);
    if (!axis->x)
        return complain("out of memory");
    int numbers = 1;
    for (int i = 0; i < key->count; i++) {
        char *end;
        axis->x[i] = strtod(key->values[i], &end);
        numbers &= end != key->values[i] && !*end && isfinite(axis->x[i]);
    }
    if (numbers) {
        snprintf(axis->label, sizeof axis->label, key->logarithmic ? "log10(%.200s)" : "%.200s", key->name);
        for (int i = 0; i < key->count && key->logarithmic; i++)
            axis->x[i] = log10(fabs(axis->x[i]));
        return EXIT_GOOD;
    }
    size_t used = (size_t)snprintf(axis->label, sizeof axis->label, "%.200s:", key->name);
    for (int i = 0; i < key->count; i++) {
        axis->x[i] = i;
        if (used < sizeof axis->label)
            used += (size_t)snprintf(axis->label + used, sizeof axis->label - used, " %d %s", i, key->values[i]);
    }
    return EXIT_GOOD;
}

/* The values of the other keys: the label of a curve. */
static char *curve_label(const sweep *work, const sweep_run *run, int together)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = work->key_count > 1 && !together ? open_memstream(&text, &length) : NULL;
    for (int k = 1; out && k < work->key_count; k++)
        fprintf(out, "%s%s=%s", k > 1 ? ", " : "", work->keys[k].name, work->keys[k].values[run->choices[k]]);
    if (out)
        fclose(out);
    return text;
}

typedef struct sweep_curves {
    double *x, *y; /* [run_count], the points of a curve side by side */
    char **labels; /* [curve_count] */
    sk_plot_series *series;
    int series_count;
} sweep_curves;

static void free_curves(sweep_curves *curves, int curve_count)
{
    for (int i = 0; curves->labels && i < curve_count; i++)
        free(curves->labels[i]);
    free(curves->labels);
    free(curves->x);
    free(curves->y);
    free(curves->series);
}

/* A curve for each combination of the other keys, and a dot for each run: a curve of two runs would hide what lies
 * between them. */
static int make_curves(const sweep *work, const sweep_axis *axis, const double *values, int together,
                       sweep_curves *curves)
{
    int points = work->keys[0].count, count = work->run_count / points;
    size_t runs = (size_t)work->run_count;

    curves->x = calloc(runs, sizeof *curves->x);
    curves->y = calloc(runs, sizeof *curves->y);
    curves->labels = calloc((size_t)count, sizeof *curves->labels);
    curves->series = calloc(runs + (size_t)count, sizeof *curves->series);
    if (!curves->x || !curves->y || !curves->labels || !curves->series)
        return complain("out of memory");

    for (int c = 0; c < count; c++) {
        /* The last key is the fastest: runs of one curve are `count` apart. */
        sk_plot_series style = {.color = c % SK_PLOT_COLORS, .dash = c / SK_PLOT_COLORS % SK_PLOT_DASHES};
        double *x = curves->x + c * points, *y = curves->y + c * points;
        curves->labels[c] = curve_label(work, &work->runs[c], together);

        for (int p = 0; p < points; p++) {
            x[p] = axis->x[p];
            y[p] = values[p * count + c];
            if (points > 1 && isfinite(y[p])) {
                sk_plot_series *dot = &curves->series[curves->series_count++];
                *dot = style;
                dot->x = &x[p];
                dot->y = &y[p];
                dot->count = 1;
            }
        }

        sk_plot_series *line = &curves->series[curves->series_count++];
        *line = style;
        line->label = curves->labels[c];
        line->x = x;
        line->y = y;
        line->count = (size_t)points;
    }
    return EXIT_GOOD;
}

static const char *unit_of(const sweep_column *column)
{
    if (column->take == TAKE_SECONDS)
        return "s";
    for (int i = 0; i < selkie_statistic_count(); i++)
        if (!strcmp(selkie_statistic_info(i)->name, column->source))
            return selkie_statistic_info(i)->unit;
    return "";
}

static int write_plot(const sweep *work, sweep_columns *columns, int wanted_count, const char *const *wanted)
{
    int together = work->key_count > 1 && work->run_count == work->keys[0].count && work->keys[1].count > 1;
    sweep_axis axis = {0};
    sweep_curves *curves = calloc((size_t)wanted_count, sizeof *curves);
    sk_plot_panel *panels = calloc((size_t)wanted_count, sizeof *panels);
    char(*labels)[96] = calloc((size_t)wanted_count, sizeof *labels);
    char *path = NULL;
    int code = curves && panels && labels ? make_axis(&work->keys[0], &axis) : complain("out of memory");

    /* A panel a column. */
    for (int i = 0; i < wanted_count && !code; i++) {
        const sweep_column *column = find_column(columns, wanted[i]);
        if (!column)
            continue;
        const char *unit = unit_of(column);
        snprintf(labels[i], sizeof labels[i], *unit ? "%s (%s)" : "%s", column->name, unit);
        panels[i].title = column->name;
        panels[i].x_label = axis.label;
        panels[i].y_label[0] = labels[i];
        code = make_curves(work, &axis, column->values, together, &curves[i]);
        panels[i].series = curves[i].series;
        panels[i].series_count = curves[i].series_count;
    }

    /* The file. */
    selkie_error error = {0};
    sk_plot_figure figure = {.panels = panels, .panel_count = wanted_count};
    if (!code && asprintf(&path, "%s/sweep.png", work->folder) < 0)
        code = complain("out of memory");
    if (!code && sk_plot_write(&figure, path, &error))
        code = complain_error(&error);
    for (int i = 0; curves && i < wanted_count; i++)
        free_curves(&curves[i], work->run_count / work->keys[0].count);
    free(path);
    free(curves);
    free(panels);
    free(labels);
    free(axis.x);
    return code;
}

int sweep_report(const sweep *work, int column_count, const char *const *wanted)
{
    sweep_columns columns = {0};
    add_usual_columns(&columns);
    for (int i = 0; i < column_count; i++)
        if (!find_column(&columns, wanted[i]))
            add_column(&columns, wanted[i], "", TAKE_LAST);
    int code = fill_columns(work, &columns);
    if (!code)
        code = write_table(work, &columns);

    /* Without a value there is nothing to plot. */
    int found = 0;
    for (int i = 0; i < column_count && !code; i++)
        for (int r = 0; r < work->run_count; r++)
            found |= find_column(&columns, wanted[i]) && isfinite(find_column(&columns, wanted[i])->values[r]);
    if (!code && found)
        code = write_plot(work, &columns, column_count, wanted);
    for (int c = 0; c < columns.count; c++)
        free(columns.items[c].values);
    if (!code && !work->quiet)
        printf("table  %s/sweep.csv\n", work->folder);
    if (!code && !work->quiet && found)
        printf("plot   %s/sweep.png\n", work->folder);
    return code;
}

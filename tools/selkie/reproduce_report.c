/* The report's text, in Markdown and HTML. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reproduce.h"

static void write_escaped(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        switch (text[i]) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc(text[i], out);
        }
}

void report_heading(reproduce_report *report, int level, const char *text)
{
    fprintf(report->markdown, "%.*s %s\n\n", level, "######", text);
    fprintf(report->html, "<h%d>", level);
    write_escaped(report->html, text, strlen(text));
    fprintf(report->html, "</h%d>\n", level);
}

void report_text(reproduce_report *report, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (!text) {
        report->failed = 1;
        return;
    }
    fprintf(report->markdown, "%s\n\n", text);
    fputs("<p>", report->html);
    write_escaped(report->html, text, strlen(text));
    fputs("</p>\n", report->html);
    free(text);
}

/* One line of a table; `tag` is th or td. */
static void write_cells(reproduce_report *report, const char *cells, const char *tag)
{
    fputs("<tr>", report->html);
    fputs("|", report->markdown);
    report->columns = 0;
    for (const char *cell = cells;; cell++) {
        size_t length = strcspn(cell, "|");
        fprintf(report->markdown, " %.*s |", (int)length, cell);
        fprintf(report->html, "<%s>", tag);
        write_escaped(report->html, cell, length);
        fprintf(report->html, "</%s>", tag);
        report->columns++;
        cell += length;
        if (!*cell)
            break;
    }
    fputs("</tr>\n", report->html);
    fputs("\n", report->markdown);
}

void report_table(reproduce_report *report, const char *heads)
{
    fputs("<table>\n", report->html);
    write_cells(report, heads, "th");
    fputs("|", report->markdown);
    for (int i = 0; i < report->columns; i++)
        fputs(" --- |", report->markdown);
    fputs("\n", report->markdown);
}

void report_row(reproduce_report *report, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (text)
        write_cells(report, text, "td");
    else
        report->failed = 1;
    free(text);
}

void report_table_end(reproduce_report *report)
{
    fputs("</table>\n", report->html);
    fputs("\n", report->markdown);
}

void report_image(reproduce_report *report, const char *relative_path, const char *caption)
{
    fprintf(report->markdown, "![%s](%s)\n\n", caption, relative_path);
    fprintf(report->html, "<figure><img src=\"%s\" alt=\"\"><figcaption>", relative_path);
    write_escaped(report->html, caption, strlen(caption));
    fputs("</figcaption></figure>\n", report->html);
}

const char *verdict(double ours, double paper)
{
    if (isnan(ours) || isnan(paper))
        return "-";
    ours = fabs(ours);
    paper = fabs(paper);
    return ours <= 0.95 * paper ? "better" : ours <= 1.05 * paper ? "as good" : "worse";
}

/* A row uses several numbers at once; the command has one thread. */
static char *next_text(void)
{
    enum { text_count = 16 };
    static char texts[text_count][32];
    static int next;
    return texts[next++ % text_count];
}

const char *percent(double ratio)
{
    char *text = next_text();
    if (isnan(ratio))
        return "-";
    snprintf(text, 32, "%+.2f %%", 100.0 * (ratio - 1.0));
    return text;
}

const char *number(double value)
{
    char *text = next_text();
    if (isnan(value))
        return "-";
    snprintf(text, 32, "%.4g", value);
    return text;
}

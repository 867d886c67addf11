#include "statistics_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

const char *statistic_brief(const selkie_statistic *row)
{
    return row->brief ? row->brief : row->name;
}

const char *statistic_label(const selkie_statistic *row)
{
    return row->label ? row->label : statistic_brief(row);
}

/* A mean of whole numbers has decimals. */
static char *format_value(const selkie_statistic *row, double value, int is_mean, char text[statistic_text_length])
{
    char number[statistic_text_length - 16];
    if (row->whole && !is_mean && fabs(value) < 1e15)
        format_count((int64_t)value, number);
    else
        /* The format comes from the table. */
        snprintf(number, sizeof number, row->format ? row->format : is_mean ? "%.4g" : "%.6g", value);
    snprintf(text, statistic_text_length, "%s%s%.12s", number, *row->unit ? " " : "", row->unit);
    return text;
}

char *format_statistic(const selkie_statistic *row, double value, char text[statistic_text_length])
{
    return format_value(row, value, 0, text);
}

char *format_summary(const selkie_statistic *row, const double *values, int64_t count,
                     char text[4 * statistic_text_length])
{
    enum { room = 4 * statistic_text_length };
    char last[statistic_text_length], low[statistic_text_length], high[statistic_text_length], duration[32];

    /* Sum, range and mean. */
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    double mean = count > 0 ? sum / (double)count : NAN;

    /* The text, by the kind of summary. */
    switch (row->summary) {
    case SELKIE_SUMMARY_RANGE:
        snprintf(text, room, "%s at the end, %s to %s", format_value(row, values[count - 1], 0, last),
                 format_value(row, least, 0, low), format_value(row, most, 0, high));
        break;
    case SELKIE_SUMMARY_MEAN:
        snprintf(text, room, "%s a step", format_value(row, mean, 1, last));
        break;
    case SELKIE_SUMMARY_TOTAL:
        format_value(row, sum, 0, low);
        if (!strcmp(row->unit, "ms"))
            snprintf(low, sizeof low, "%s", format_duration(sum * 1e-3, duration));
        snprintf(text, room, "%s, %s a step", low, format_value(row, mean, 1, last));
        break;
    default:
        snprintf(text, room, "%s", format_value(row, values[count - 1], 0, last));
        break;
    }
    return text;
}

const selkie_statistic *progress_statistic(int rank, int *index)
{
    for (*index = 0; *index < selkie_statistic_count(); ++*index)
        if (selkie_statistic_info(*index)->progress == rank)
            return selkie_statistic_info(*index);
    return NULL;
}

/* Values of the table of statistics (selkie/statistics.h) as people read them. */
#ifndef SELKIE_TOOL_STATISTICS_TEXT_H
#define SELKIE_TOOL_STATISTICS_TEXT_H

#include <selkie/statistics.h>

enum { statistic_text_length = 64 };

/* The name in progress and summaries. */
const char *statistic_brief(const selkie_statistic *row);
/* The label of its curve. */
const char *statistic_label(const selkie_statistic *row);
/* The value with its unit: "0.99871", "1,234", "0.0025 s". Returns `text`. */
char *format_statistic(const selkie_statistic *row, double value, char text[statistic_text_length]);
/* The values of a column as `row->summary` asks: "0.99871 at the end, 0.98214 to 1.00120". `text` has room for four
 * values. Returns `text`. */
char *format_summary(const selkie_statistic *row, const double *values, int64_t count,
                     char text[4 * statistic_text_length]);

/* The row with the place `rank` of 1 and more in the progress line, NULL beyond the last. */
const selkie_statistic *progress_statistic(int rank, int *index);

#endif

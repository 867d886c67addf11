#define _GNU_SOURCE
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/timer.h"
#include "statistics_text.h"
#include "tool.h"

enum { rewrite_interval_ms = 100, bar_width = 20 };

void progress_start(progress_line *progress, int quiet, int64_t total_frames, double start_time, double end_time)
{
    memset(progress, 0, sizeof *progress);
    progress->quiet = quiet;
    progress->terminal = isatty(STDOUT_FILENO);
    progress->total_frames = total_frames;
    progress->start_time = start_time;
    progress->end_time = end_time;
    progress->start_wall = progress->work_wall = sk_wall_ms();
}

void progress_begin_work(progress_line *progress, double start_time)
{
    progress->start_time = start_time;
    progress->work_wall = sk_wall_ms();
}

double progress_wall_seconds(const progress_line *progress)
{
    return (sk_wall_ms() - progress->start_wall) * 1e-3;
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20 ? 80 : size.ws_col;
}

/* Time left at the mean speed of this process so far. */
static char *format_time_left(const progress_line *progress, double done, double all, char text[32])
{
    if (done <= 0)
        return strcpy(text, "?");
    return format_duration((sk_wall_ms() - progress->work_wall) * 1e-3 * (all - done) / done, text);
}

static char *format_bar(double share, char text[bar_width * 3 + 1])
{
    int full = (int)(share * bar_width + 0.5);
    full = full < 0 ? 0 : full > bar_width ? bar_width : full;
    char *out = text;
    for (int i = 0; i < bar_width; i++)
        out = stpcpy(out, i < full ? "█" : "░");
    return text;
}

/* Joins the parts that fit into the terminal's width, first ones first. */
static void rewrite_line(progress_line *progress, const char *const *parts, const int *widths, int count)
{
    int room = terminal_width() - 1, used = 0;
    char line[1024] = "";
    for (int i = 0; i < count; i++) {
        if (used + widths[i] + 2 > room)
            break;
        size_t length = strlen(line);
        snprintf(line + length, sizeof line - length, "%s%s", i ? "  " : "", parts[i]);
        used += widths[i] + 2;
    }
    printf("\r%s\033[K", line);
    fflush(stdout);
    progress->line_is_open = 1;
}

static int due(progress_line *progress, int is_last)
{
    double now = sk_wall_ms();
    if (!is_last && now - progress->shown_wall < rewrite_interval_ms)
        return 0;
    progress->shown_wall = now;
    return 1;
}

/* One line for each frame, with all statistics of the progress in the order of the table. */
static void print_log_line(const progress_line *progress, const selkie_statistics *s, int64_t frame, const char *left)
{
    char text[statistic_text_length];
    printf("frame %lld/%lld", (long long)frame, (long long)progress->total_frames);
    for (int i = 0; i < selkie_statistic_count(); i++) {
        const selkie_statistic *row = selkie_statistic_info(i);
        if (row->progress)
            printf("  %s %s", statistic_brief(row), format_statistic(row, selkie_statistic_value(s, i), text));
    }
    printf("  left %s\n", left);
    fflush(stdout);
}

void progress_step(progress_line *progress, const selkie_statistics *s, int64_t frame, int at_frame)
{
    if (progress->quiet)
        return;
    double span = progress->end_time - progress->start_time, done = s->time - progress->start_time;
    char left[32];
    format_time_left(progress, done, span, left);
    if (!progress->terminal) {
        if (at_frame)
            print_log_line(progress, s, frame, left);
        return;
    }
    if (!due(progress, s->time >= progress->end_time))
        return;

    /* Parts of the line, first the most important ones. */
    enum { fixed = 3, most_parts = fixed + 16 };
    char text[most_parts][96];
    const char *parts[most_parts];
    int widths[most_parts], count = fixed, index;
    double share = progress->end_time > 0 ? s->time / progress->end_time : 1;
    snprintf(text[0], sizeof text[0], "frame %lld/%lld", (long long)frame, (long long)progress->total_frames);
    format_bar(share, text[1]);
    snprintf(text[2], sizeof text[2], "%s left", left);
    for (const selkie_statistic *row; count < most_parts && (row = progress_statistic(count - fixed + 1, &index));
         count++) {
        char value[statistic_text_length];
        format_statistic(row, selkie_statistic_value(s, index), value);
        snprintf(text[count], sizeof text[count], "%.30s %s", statistic_brief(row), value);
    }
    for (int i = 0; i < count; i++) {
        parts[i] = text[i];
        widths[i] = i == 1 ? bar_width : (int)strlen(text[i]);
    }
    rewrite_line(progress, parts, widths, count);
}

void progress_count(progress_line *progress, const char *what, int64_t done)
{
    if (progress->quiet)
        return;
    char left[32];
    format_time_left(progress, (double)done, (double)progress->total_frames, left);
    if (!progress->terminal) {
        /* In a log one line for each 10 % of the work is enough. */
        int64_t tenth = progress->total_frames >= 10 ? progress->total_frames / 10 : 1;
        if (done % tenth == 0 || done == progress->total_frames) {
            printf("%s %lld/%lld  left %s\n", what, (long long)done, (long long)progress->total_frames, left);
            fflush(stdout);
        }
        return;
    }
    if (!due(progress, done == progress->total_frames))
        return;
    char count[96], bar[96], rest[64];
    snprintf(count, sizeof count, "%s %lld/%lld", what, (long long)done, (long long)progress->total_frames);
    format_bar(progress->total_frames ? (double)done / (double)progress->total_frames : 1, bar);
    snprintf(rest, sizeof rest, "%s left", left);
    const char *parts[] = {count, bar, rest};
    int widths[] = {(int)strlen(count), bar_width, (int)strlen(rest)};
    rewrite_line(progress, parts, widths, 3);
}

void progress_break(progress_line *progress)
{
    if (progress->line_is_open)
        putchar('\n');
    progress->line_is_open = 0;
    fflush(stdout);
}

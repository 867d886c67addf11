/* Progress of a run: a line that rewrites itself on a terminal, separate lines elsewhere. */
#ifndef SELKIE_TOOL_PROGRESS_H
#define SELKIE_TOOL_PROGRESS_H

#include <stdint.h>
#include <selkie/world.h>

typedef struct progress_line {
    int quiet;
    int terminal;
    int64_t total_frames;
    double start_time, end_time; /* s, simulated */
    double start_wall;           /* ms */
    double work_wall;            /* ms, start of the interval that the time left is estimated from */
    double shown_wall;           /* ms, when the line was last rewritten */
    int line_is_open;            /* the terminal's cursor is in the progress line */
} progress_line;

void progress_start(progress_line *progress, int quiet, int64_t total_frames, double start_time, double end_time);
/* After the preparations: the first step starts at this simulated time (s). */
void progress_begin_work(progress_line *progress, double start_time);
/* After each step. */
void progress_step(progress_line *progress, const selkie_statistics *statistics, int64_t frame, int at_frame);
/* For work that counts frames only. */
void progress_count(progress_line *progress, const char *what, int64_t done);
/* Ends the line so that something else can be printed. */
void progress_break(progress_line *progress);
double progress_wall_seconds(const progress_line *progress);

#endif

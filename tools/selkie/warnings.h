/* Warnings: a scene that will run badly, or a run whose result is not to be trusted. They change no exit code. */
#ifndef SELKIE_TOOL_WARNINGS_H
#define SELKIE_TOOL_WARNINGS_H

#include <selkie/selkie.h>

#include "io/table_file.h"
#include "run_folder.h"

enum { most_warnings = 16, warning_length = 400 };

/* Those beyond `most_warnings` are counted only. */
typedef struct warning_list {
    int count;
    char lines[most_warnings][warning_length];
} warning_list;

void add_warning(warning_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One line "selkie: warning: ..." each, on stderr. */
void print_warnings(const warning_list *list);

/* What in a scene cannot give a good result: obstacles thinner than a cell, sources in solids or outside, steps that
 * are far too long. Shapes that cannot be read are left to the error of the run. */
void judge_scene(const selkie_scene *scene, const selkie_plan *plan, warning_list *list);

/* What in the statistics of a run says that its liquid is wrong: volume that strayed, energy that grew. */
void judge_run(const selkie_scene *scene, const sk_table *stats, warning_list *list);

/* DIR/warnings.txt holds the warnings of a finished run, one a line; there is none where there are none. Both return
 * an exit code. */
int record_warnings(const run_folder *folder, const warning_list *list);
int print_recorded_warnings(const run_folder *folder);

#endif

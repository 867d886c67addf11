/* Parts of the report on splashes that make more than the runs of its table: strings, models and secondary droplets. */
#ifndef SELKIE_TOOL_REPRODUCE_SPLASH_H
#define SELKIE_TOOL_REPRODUCE_SPLASH_H

#include "reproduce.h"

/* A run beside those of the table, in runs/NAME: simulated unless it is finished. Returns 0 if it is not there. */
typedef struct extra_run {
    const char *name, *scene;
    const char *sets[REPRODUCE_MAX_SETS];
} extra_run;
int open_extra_run(reproduce_report *report, const extra_run *run, run_results *results);
void close_extra_run(run_results *results);

/* Pictures of some runs at three times. */
void splash_pictures(reproduce_report *report, run_results *const *results, int count, double first, double step);

/* Figures. */
void write_splash_strings(reproduce_report *report, run_results *const *results);
void write_splash_learning(reproduce_report *report, run_results *const *results);
void write_splash_solvers(reproduce_report *report, run_results *const *results);
void write_splash_secondary(reproduce_report *report, run_results *const *results);
void write_splash_thresholds(reproduce_report *report, run_results *const *results);
void write_splash_scales(reproduce_report *report, run_results *const *results);
void write_splash_convergence(reproduce_report *report, run_results *const *results);

#endif

/* Parts of `selkie sweep`: a scene with many values of some keys.
 *
 *     sweep_values.c     --vary into lists of values, and their combinations into runs
 *     sweep_processes.c  the runs, each a process `selkie run --resume`
 *     sweep_table.c      sweep.csv and sweep.png from the tables of the runs
 *
 * Functions return an exit code (tool.h); if it is not 0, the error has been printed.
 */
#ifndef SELKIE_TOOL_SWEEP_H
#define SELKIE_TOOL_SWEEP_H

#include <sys/types.h>
#include "options.h"

enum {
    sweep_most_keys = 16,
    sweep_many_runs = 100,    /* more than these need --yes */
    sweep_most_runs = 100000, /* more than these are a mistake */
    sweep_name_length = 160   /* of a run's folder */
};

typedef struct sweep_key {
    char *name; /* "domain.resolution" */
    int count;
    char **values;   /* [count] as text, for --set */
    int logarithmic; /* a range with equal ratios */
} sweep_key;

typedef struct sweep_run {
    int choices[sweep_most_keys]; /* index of each key's value */
    char *name;                   /* of its folder in DIR/runs */
    char *folder;
    int set_count;
    char **sets;   /* "KEY=VALUE" of the sweep's --set, then of its keys, then the end */
    double cost;   /* relative work: particles times steps */
    int finished;  /* by an earlier sweep, or by this one */
    int exit_code; /* of its process; -1 = not started */
    pid_t process; /* 0 = none */
    double begin_ms, wall_ms;
} sweep_run;

typedef struct sweep {
    const char *scene; /* path */
    char *folder;
    sweep_key keys[sweep_most_keys];
    int key_count;
    sweep_run *runs;
    int run_count;
    const option_value *set;
    int jobs, threads, quiet, force, open_meshes;
} sweep;

/* Reads one --vary, "KEY=a,b,c" or "KEY=from:to:count[:log]". */
int sweep_read_key(sweep *work, const char *text);
/* The runs: every combination, the last key fastest; `together`: the first values, the second ones, ... */
int sweep_make_runs(sweep *work, int together, int yes);
void sweep_free(sweep *work);

/* Runs what is not finished, `jobs` at a time. EXIT_INTERRUPTED after a signal; failed runs are no error here. */
int sweep_simulate(sweep *work);

/* Writes DIR/sweep.csv and DIR/sweep.png; a panel for each of the columns. */
int sweep_report(const sweep *work, int column_count, const char *const *columns);
/* Whether the table has this column whatever the scene. */
int sweep_knows_column(const char *name);

#endif

/* The tables of a run: a row of stats.csv and probes.csv a step, and of bodies.csv a body and frame. */
#ifndef SELKIE_TOOL_RUN_TABLES_H
#define SELKIE_TOOL_RUN_TABLES_H

#include <selkie/selkie.h>
#include "io/table_file.h"
#include "run_folder.h"

enum { phase_name_length = 64 };

/* Zeros are tables that are not open. */
typedef struct run_tables {
    sk_table_writer *stats, *probes, *bodies; /* bodies NULL where there are none */
    double *probe_row;
    int phase_count; /* columns of phases in stats.csv: those of the start, whatever changes add */
    char phases[SELKIE_MAX_PHASES][phase_name_length];
} run_tables;

/* New tables with the bodies of the start, or with `continued` the old ones, cut to the world's step. */
selkie_code run_tables_open(run_tables *tables, const run_folder *folder, const selkie_world *world, int continued,
                            selkie_error *error);
/* The rows of a step. */
selkie_code run_tables_write(run_tables *tables, const selkie_world *world, selkie_error *error);
/* The bodies of a frame, a row each. */
selkie_code run_tables_write_bodies(run_tables *tables, const selkie_world *world, selkie_error *error);
/* Closes all of them; the first failure is the one that is told. */
selkie_code run_tables_close(run_tables *tables, selkie_error *error);

#endif

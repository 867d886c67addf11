/* The folder of a run: lock, removal of an earlier run, checkpoints.
 *
 *     scene.json  stats.csv  probes.csv  frames/  surfaces/  checkpoints/  finished     by `selkie run`
 *     pictures/  film.mp4                                                               by `selkie render`
 *
 * A run locks its folder, so that a second run cannot write into the same
 * files.
 *
 * Functions that return int return an exit code (tool.h); if it is not 0, the
 * error has been printed.
 */
#ifndef SELKIE_TOOL_RUN_FOLDER_H
#define SELKIE_TOOL_RUN_FOLDER_H

#include <stdint.h>
#include "io/folder.h"

typedef struct run_folder {
    char *path;
    int lock; /* descriptor of the folder, locked; -1 = none */
} run_folder;

typedef enum run_start {
    RUN_FRESH, /* refuse a folder that is not empty */
    RUN_FORCE, /* remove what an earlier run wrote */
    RUN_RESUME /* go on with what is there */
} run_start;

/* Names the folder; touches nothing. */
int run_folder_name(run_folder *folder, const char *path);
/* Whether a new run would be refused; checked before the world is made. */
int run_folder_refuse(const run_folder *folder);
/* Makes the folder if it is missing, locks it, and with RUN_FORCE removes an earlier run. A second call does
 * nothing. */
int run_folder_open(run_folder *folder, run_start start);
/* Makes a folder in it. */
int run_folder_make(const run_folder *folder, const char *name);
void run_folder_close(run_folder *folder);

/* "DIR/" and the rest; free() it. NULL when out of memory. */
char *run_folder_path(const run_folder *folder, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Files in DIR/name whose names end so ("" = all), and their bytes together. */
int64_t run_folder_count(const run_folder *folder, const char *name, const char *ending, double *bytes);

/* checkpoints/checkpoint_<step>.selkie, oldest first; release with sk_file_list_free(). */
int run_folder_checkpoints(const run_folder *folder, sk_file_list *list);
char *run_folder_checkpoint(const run_folder *folder, int64_t step);
/* Removes all but the newest `keep`. */
void run_folder_prune(const run_folder *folder, int keep);

#endif

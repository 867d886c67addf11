/* Runs that were made before: their list, and their frames. */
#ifndef SELKIE_TOOL_STUDIO_RUN_H
#define SELKIE_TOOL_STUDIO_RUN_H

#include "io/folder.h"
#include "io/table_file.h"
#include "studio_frame.h"
#include "tool.h"

/* Folders of a folder that hold frames. The item's path is that of scene.json, its name the folder's. */
void find_runs(const char *folder, known_scenes *runs);

typedef struct studio_run {
    sk_file_list frames;
    sk_table *bodies; /* bodies.csv; NULL where there is none */
    int64_t at;       /* the frame that is shown, from 0 */
} studio_run;

/* Opens the run of a folder, given by its scene.json. */
selkie_code studio_run_open(studio_run *run, const char *scene_path, selkie_error *error);
void studio_run_close(studio_run *run);
/* Reads frame `at`; the blob is NULL with an error. */
selkie_code studio_run_blob(const studio_run *run, const selkie_scene *scene, const studio_solids *solids,
                            studio_frame_numbers numbers, studio_blob **blob, double *time, selkie_error *error);

#endif

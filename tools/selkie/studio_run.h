/* Runs that were made before: their list, and their frames. */
#ifndef SELKIE_TOOL_STUDIO_RUN_H
#define SELKIE_TOOL_STUDIO_RUN_H

#include "io/folder.h"
#include "io/particles_file.h"
#include "io/table_file.h"
#include "studio_frame.h"
#include "tool.h"

/* Folders of a folder that hold frames. The item's path is that of scene.json, its name the folder's. */
void find_runs(const char *folder, known_scenes *runs);

typedef struct studio_run {
    sk_file_list frames;
    sk_table *bodies;        /* bodies.csv; NULL where there is none */
    sk_table *steps;         /* stats.csv of a run with changes, or NULL */
    char *path;              /* of its scene */
    selkie_scene *scene;     /* with the changes before the frame that was read */
    int64_t scene_step;      /* that the scene is of */
    sk_particles_data *data; /* of the frame that was read, until its blob is made */
    double time;             /* s  of that frame */
    int64_t at;              /* the frame that is shown, from 0 */
} studio_run;

/* Opens the run of a folder, given by its scene.json. */
selkie_code studio_run_open(studio_run *run, const char *scene_path, selkie_error *error);
void studio_run_close(studio_run *run);
/* Reads frame `at`, and brings the scene to it. `changed`: it has other solids than before. */
selkie_code studio_run_read(studio_run *run, int *changed, selkie_error *error);
/* The frame that was read; NULL: no memory. */
studio_blob *studio_run_blob(studio_run *run, const studio_solids *solids, studio_frame_numbers numbers);

#endif

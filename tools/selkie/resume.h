/* Resuming a run: its scene and its newest valid checkpoint. */
#ifndef SELKIE_TOOL_RESUME_H
#define SELKIE_TOOL_RESUME_H

#include <selkie/selkie.h>
#include "run_folder.h"
#include "tool.h"

/* The scene of DIR/scene.json with the options applied. Only time.end, output and render may differ from what is
 * recorded; SCENE (path, may be NULL) must be the recorded one but for these. *scene stays NULL if there is no
 * scene.json. Returns an exit code. */
int load_resumed_scene(const run_folder *folder, const char *scene_path, const scene_changes *changes, int quiet,
                       selkie_scene **scene);

/* The world at the newest checkpoint that can be read, and its step. A damaged one is named on stderr and set aside as
 * *.damaged. *world stays NULL if there is none. Returns an exit code. */
int resume_from_checkpoint(const run_folder *folder, const selkie_scene *scene, const selkie_world_options *options,
                           selkie_world **world, int64_t *step);

/* `run --from`: a world with the liquid of a checkpoint, or of the newest one in a folder of a run. Prints what became
 * of its particles; those that are lost even if `quiet`. Returns an exit code. */
int start_from_checkpoint(const char *path, const selkie_scene *scene, const selkie_world_options *options, int quiet,
                          selkie_world **world);
/* DIR/from.txt: the checkpoint that a run was started with. */
int record_start(const run_folder *folder, const char *path);
int started_from_checkpoint(const run_folder *folder);

#endif

/* Changes of a scene, for those who draw what a run has left. */
#ifndef SK_WORLD_SCENE_CHANGES_H
#define SK_WORLD_SCENE_CHANGES_H

#include <stdint.h>
#include <selkie/scene.h>
#include <selkie/status.h>

/* Makes a change that happens at `time` (s) in an own scene. Changes of the state leave the scene as it is. */
selkie_code sk_scene_edit(selkie_scene *scene, const selkie_change_def *change, double time, selkie_error *error);

/* When the steps of a run ended: the columns "step" and "time" of its stats.csv. */
typedef struct sk_step_times {
    int64_t count;
    const double *step, *time; /* [count], s; NULL without a table */
} sk_step_times;

/* The step that ended at a time (s), the nearest one; 0 = the start, -1: there is no table. */
int64_t sk_step_at(const sk_step_times *times, double time);

/* Brings the bodies and obstacles of an own scene to what they are after `step` steps: makes the changes before that
 * step which add, replace, move or remove one, and takes all changes before it out of the scene. A move whose time is
 * not in the table is left out. `changed`: whether a list is another one now. */
selkie_code sk_scene_change_solids(selkie_scene *scene, int64_t step, const sk_step_times *times, int *changed,
                                   selkie_error *error);

#endif

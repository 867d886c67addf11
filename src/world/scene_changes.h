/* Changes of a scene, for those who draw what a run has left. */
#ifndef SK_WORLD_SCENE_CHANGES_H
#define SK_WORLD_SCENE_CHANGES_H

#include <stdint.h>
#include <selkie/scene.h>
#include <selkie/status.h>

/* Brings the bodies and obstacles of an own scene to what they are after `step` steps: makes the changes before that
 * step which add, replace or remove one, and takes all changes before it out of the scene. `changed`: whether a list
 * is another one now. */
selkie_code sk_scene_change_solids(selkie_scene *scene, int64_t step, int *changed, selkie_error *error);

#endif

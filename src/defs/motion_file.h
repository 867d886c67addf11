/* Motions that a scene keeps in files. */
#ifndef SK_DEFS_MOTION_FILE_H
#define SK_DEFS_MOTION_FILE_H

#include <selkie/scene.h>

/* Replaces each motion_file of a scene that owns its memory by the keyframes in it. */
selkie_code sk_scene_load_motions(selkie_scene *scene, selkie_error *error);

#endif

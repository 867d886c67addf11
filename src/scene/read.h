/* Scene files to defs. Internal half of selkie_scene_load(). */
#ifndef SK_SCENE_READ_H
#define SK_SCENE_READ_H

#include <stddef.h>
#include <selkie/scene.h>

/* A scene from text in memory, which must end with a '\0' after `length` bytes. `name` begins the messages, `folder` is
 * where relative file names start. */
selkie_code sk_scene_parse(const char *text, size_t length, const char *name, const char *folder, int override_count,
                           const char *const *overrides, selkie_scene **scene, selkie_error *error);

#endif

/* Scene files to defs. Internal half of selkie_scene_load(). */
#ifndef SK_SCENE_READ_H
#define SK_SCENE_READ_H

#include <stddef.h>
#include <selkie/scene.h>

typedef struct sk_scene_text {
    const char *text;             /* [length] JSON; text[length] must be '\0' */
    size_t length;                /* bytes */
    const char *name;             /* begins the messages */
    const char *folder;           /* relative file names start here */
    int override_count;           /* may be 0 */
    const char *const *overrides; /* [override_count] "key=value", applied in order */
} sk_scene_text;

/* A scene from text in memory. */
selkie_code sk_scene_parse(const sk_scene_text *source, selkie_scene **scene, selkie_error *error);

/* The other way: all that selkie_scene_save() writes, without a '\0' behind it; release it with sk_release(NULL, text).
 * Relative file names get `folder` before them; NULL leaves them as they are. */
selkie_code sk_scene_text_of(const selkie_scene *scene, const char *folder, char **text, size_t *length,
                             selkie_error *error);

#endif

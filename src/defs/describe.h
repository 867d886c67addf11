/* The field table for editors and readers: schema, reference page, manual page. These files are checked in; a test
 * fails when they are stale. The code is SELKIE_ERROR_FILE if the stream could not be written to. */
#ifndef SK_DEFS_DESCRIBE_H
#define SK_DEFS_DESCRIBE_H

#include <stdio.h>
#include <selkie/status.h>
#include "defs/fields.h"

/* JSON Schema (draft 2020-12) of scene files: docs/scene.schema.json. */
selkie_code sk_scene_schema_write(FILE *stream);

/* Tables of all keys in Markdown: the second half of docs/manual/scene.md. */
selkie_code sk_scene_reference_write(FILE *stream);

/* All keys in plain text, a line each: `selkie schema --keys`. */
selkie_code sk_scene_keys_write(FILE *stream);
/* The same as the end of the manual page, docs/manual/selkie.1 (mdoc). */
selkie_code sk_scene_manual_write(FILE *stream);

/* The structs of a scene in the order of their first use, the scene itself first; returns their number. */
int sk_scene_structs(const sk_struct **structs, int room);

#endif

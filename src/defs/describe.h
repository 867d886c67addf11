/* The field table for editors and readers: schema and reference page. Both files are checked in; a test fails when they
 * are stale. The code is SELKIE_ERROR_FILE if the stream could not be written to. */
#ifndef SK_DEFS_DESCRIBE_H
#define SK_DEFS_DESCRIBE_H

#include <stdio.h>
#include <selkie/status.h>

/* JSON Schema (draft 2020-12) of scene files: docs/scene.schema.json. */
selkie_code sk_scene_schema_write(FILE *stream);

/* Tables of all keys in Markdown: the second half of docs/manual/scene.md. */
selkie_code sk_scene_reference_write(FILE *stream);

#endif

/* JSON text: parsed by json-c, and searched for the positions in
 * messages.
 *
 * json-c accepts comments and trailing commas, which scene files may
 * have. It also accepts single quotes, NaN, duplicate keys and numbers
 * beyond 64 bits, which they may not, and keeps no positions. So a small
 * scanner reads the text a second time: it refuses these, and finds the
 * line of a value for a message. The scanner only gets text that json-c
 * has accepted.
 */
#ifndef SK_SCENE_JSON_TEXT_H
#define SK_SCENE_JSON_TEXT_H

#include <stddef.h>
#include "base/status.h"

struct json_object;

enum { SK_JSON_MAX_DEPTH = 64 };

/* The value of the whole text, to be released with json_object_put(); NULL stands for "null". On failure the message
 * says what is wrong, and *offset is its byte. `text` must end with a '\0' after `length` bytes. */
selkie_code sk_json_parse(const char *text, size_t length, struct json_object **value, size_t *offset,
                          selkie_error *error);

/* Line and column, from 1; columns count characters, not bytes. */
void sk_json_position(const char *text, size_t length, size_t offset, int *line, int *column);

/* Offset of the value of `path` ("liquids[0].shape.max", "" = all) or, with `key`, of this key in it. A value that is
 * not in the text has the offset of the value that contains it. */
size_t sk_json_locate(const char *text, size_t length, const char *path, const char *key);

#endif

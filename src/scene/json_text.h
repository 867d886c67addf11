/* JSON text: parsed by json-c, and searched for the places that messages name.
 *
 * json-c reads comments and trailing commas, which people want, and also much
 * that they do not: single quotes, NaN, a key that is given twice (the last one
 * wins in silence), numbers cut to 64 bits. It keeps no positions. So the text
 * is walked a second time by a small scanner that refuses these, and that finds
 * the line of a value again when a message about it is due. The scanner only
 * ever sees text that json-c has taken; it has to find its way in it, not to
 * judge it.
 */
#ifndef SK_SCENE_JSON_TEXT_H
#define SK_SCENE_JSON_TEXT_H

#include <stddef.h>
#include "base/status.h"

struct json_object;

enum { SK_JSON_MAX_DEPTH = 64 };

/* The value of the whole text, to be released with json_object_put(); NULL stands for "null". On failure the message
 * says what is wrong and *offset where (byte). `text` must end with a '\0' after `length` bytes. */
selkie_code sk_json_parse(const char *text, size_t length, struct json_object **value, size_t *offset,
                          selkie_error *error);

/* Line and column, from 1; columns count characters, not bytes. */
void sk_json_position(const char *text, size_t length, size_t offset, int *line, int *column);

/* Where the value of `path` ("liquids[0].shape.max", "" = all) begins or, with `key`, where this key of it stands. What
 * is not in the text is looked for in what contains it. */
size_t sk_json_locate(const char *text, size_t length, const char *path, const char *key);

#endif

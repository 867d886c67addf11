/* State of the scene reader, shared by read.c and override.c. */
#ifndef SK_SCENE_READER_H
#define SK_SCENE_READER_H

#include <stddef.h>
#include "base/status.h"
#include "defs/fields.h"
#include "defs/structs.h"
#include "defs/text.h"

struct json_object;

/* One --set. */
typedef struct sk_override {
    const char *text; /* "path.to.key=VALUE" as the user gave it */
    sk_path path;     /* as messages write it: "liquids[0].velocity" */
} sk_override;

typedef struct sk_reader {
    const char *name; /* of the file */
    const char *text;
    size_t length;
    int override_count;
    sk_override *overrides;
    int dimension; /* 2 or 3 */
    sk_pool *pool;
    sk_path path; /* of the value that is being read */
    selkie_error *error;
} sk_reader;

/* Fails at the current path (or at `key` below it): the message begins with the file and line or the --set that the
 * value came from, and the path. */
selkie_code sk_reader_fail(sk_reader *reader, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
selkie_code sk_reader_no_memory(sk_reader *reader);

/* Puts `value`, that of the older key "method", into the tree as discretization and transfer. A file that has one of
 * the two with another value contradicts itself; an override replaces it. */
selkie_code sk_reader_take_method(sk_reader *reader, struct json_object *root, struct json_object *value,
                                  int is_override);

/* Puts the value of overrides[index] into the tree; fills in its path. */
selkie_code sk_override_apply(sk_reader *reader, int index, struct json_object *root);

/* "; did you mean \"velocity\"?" for a key that the struct (as variant `variant`, -1 = any) does not have, or "". */
char *sk_suggest_key(const sk_struct *type, int variant, const char *key, char *buffer, size_t size);

/* Description of a field's value: "a number (m)". */
char *sk_field_expected(const sk_field *field, int dimension, char *buffer, size_t size);

/* A JSON value in a message: short ones in full, others by their kind. */
char *sk_value_text(struct json_object *value, char *buffer, size_t size);

#endif

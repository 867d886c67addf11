/* Small text helpers for messages and files: paths of keys, quoted strings, numbers, the nearest name. */
#ifndef SK_DEFS_TEXT_H
#define SK_DEFS_TEXT_H

#include <stddef.h>

/* The place of a value in a scene: "liquids[0].shape.max". Too long a path is cut, never overrun. */
typedef struct sk_path {
    size_t length;
    char text[400];
} sk_path;

/* Both return the length before, for sk_path_cut(). */
size_t sk_path_key(sk_path *path, const char *key);
size_t sk_path_index(sk_path *path, int index);
void sk_path_cut(sk_path *path, size_t length);

/* A string as JSON has it, in double quotes, cut to fit (with "..." before the last quote). Returns `buffer`. */
char *sk_quote(char *buffer, size_t size, const char *text);

/* The shortest text that reads back as the same double, with a decimal point in any locale. At least 32 bytes. */
char *sk_number_text(char *buffer, size_t size, double value);

/* Bytes of the UTF-8 character at `text`, 0 if there is none (RFC 3629: no overlong forms, no surrogates). */
size_t sk_utf8_length(const char *text, size_t left);

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b, letters compared without case. */
int sk_edit_distance(const char *a, const char *b);
/* Whether a distance is small enough for "did you mean". */
int sk_is_near(const char *wrong, const char *right);

#endif

#include "scene/json_text.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "defs/text.h"

/* Largest number of values in a text; bounds the memory of json-c, some 70 bytes a value. */
enum { max_values = 4000000 };

/* --- The bytes --- */

static selkie_code check_bytes(const char *text, size_t length, size_t *offset, selkie_error *error)
{
    size_t commas = 0;
    for (size_t i = 0; i < length;) {
        *offset = i;
        if (text[i] == 0)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "a zero byte: this is not a text file");
        commas += text[i] == ',';
        size_t step = sk_utf8_length(text + i, length - i);
        if (step == 0)
            return sk_fail(error, SELKIE_ERROR_FORMAT, "the byte 0x%02x is not UTF-8: save the file as UTF-8",
                           (unsigned char)text[i]);
        i += step;
    }
    if (commas > max_values)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "more than %d values", max_values);
    return SELKIE_OK;
}

/* --- The scanner --- */

typedef struct scanner {
    const char *text; /* ends with '\0', so that reading one byte ahead is safe */
    size_t length;
    size_t at;
    selkie_error *error;
} scanner;

static void skip_space(scanner *s)
{
    while (s->at < s->length) {
        const char *here = s->text + s->at;
        if (strchr(" \t\r\n\f\v", *here)) {
            s->at++;
        } else if (here[0] == '/' && here[1] == '/') {
            const char *end = memchr(here, '\n', s->length - s->at);
            s->at = end ? (size_t)(end - s->text) + 1 : s->length;
        } else if (here[0] == '/' && here[1] == '*') {
            const char *end = strstr(here + 2, "*/");
            s->at = end ? (size_t)(end - s->text) + 2 : s->length;
        } else {
            return;
        }
    }
}

/* Past a string that starts here; 0 if none does. */
static int skip_string(scanner *s)
{
    if (s->text[s->at] != '"')
        return 0;
    for (s->at++; s->at < s->length; s->at++) {
        if (s->text[s->at] == '\\')
            s->at++;
        else if (s->text[s->at] == '"') {
            s->at++;
            return 1;
        }
    }
    s->at = s->length;
    return 0;
}

/* Past a number, true, false or null. */
static size_t skip_word(scanner *s)
{
    size_t start = s->at;
    while (s->at < s->length && !strchr(" \t\r\n\f\v,:]}[{\"'/", s->text[s->at]))
        s->at++;
    return s->at - start;
}

/* Past any value, without looking into it. */
static int skip_value(scanner *s)
{
    size_t depth = 0;
    do {
        skip_space(s);
        if (s->at >= s->length)
            return 0;
        char c = s->text[s->at];
        if (c == '"') {
            if (!skip_string(s))
                return 0;
        } else if (c == '{' || c == '[') {
            depth++;
            s->at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return 0;
            depth--;
            s->at++;
        } else if (c == ',' || c == ':') {
            if (depth == 0)
                return 0;
            s->at++;
        } else if (skip_word(s) == 0) {
            return 0;
        }
    } while (depth > 0);
    return 1;
}

/* --- The second walk: what json-c lets through --- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether a word is a number as JSON writes it, and an integer. */
static int is_number(const char *word, size_t length, int *integer)
{
    size_t i = 0;
    *integer = 1;

    /* Sign and whole part, without leading zeros. */
    if (i < length && word[i] == '-')
        i++;
    if (i >= length || !is_digit(word[i]))
        return 0;
    if (word[i] == '0' && i + 1 < length && is_digit(word[i + 1]))
        return 0;
    while (i < length && is_digit(word[i]))
        i++;

    /* Fraction. */
    if (i < length && word[i] == '.') {
        *integer = 0;
        i++;
        if (i >= length || !is_digit(word[i]))
            return 0;
        while (i < length && is_digit(word[i]))
            i++;
    }

    /* Exponent. */
    if (i < length && (word[i] == 'e' || word[i] == 'E')) {
        *integer = 0;
        i++;
        if (i < length && (word[i] == '+' || word[i] == '-'))
            i++;
        if (i >= length || !is_digit(word[i]))
            return 0;
        while (i < length && is_digit(word[i]))
            i++;
    }
    return i == length;
}

static selkie_code check_word(scanner *s)
{
    size_t start = s->at, length = skip_word(s);
    const char *word = s->text + start;
    int shown = length > 40 ? 40 : (int)length, integer = 0;
    if ((length == 4 && (!strncmp(word, "true", 4) || !strncmp(word, "null", 4))) ||
        (length == 5 && !strncmp(word, "false", 5)))
        return SELKIE_OK;
    s->at = start;
    if (length == 0)
        return sk_fail(s->error, SELKIE_ERROR_FORMAT, "unexpected character '%c'", s->text[start]);
    if (!is_number(word, length, &integer))
        return sk_fail(s->error, SELKIE_ERROR_FORMAT,
                       "%.*s is no value: must be a number, true, false, or a string in "
                       "double quotes",
                       shown, word);
    if (integer) {
        errno = 0;
        if (word[0] == '-')
            (void)strtoll(word, NULL, 10);
        else
            (void)strtoull(word, NULL, 10);
        if (errno == ERANGE)
            return sk_fail(s->error, SELKIE_ERROR_FORMAT, "%.*s is too large for any number here", shown, word);
    }
    s->at = start + length;
    return SELKIE_OK;
}

static selkie_code check_string_token(scanner *s)
{
    size_t start = s->at;
    if (s->text[start] == '\'')
        return sk_fail(s->error, SELKIE_ERROR_FORMAT, "strings stand in double quotes (\"), not in single ones");
    if (!skip_string(s)) {
        s->at = start;
        return sk_fail(s->error, SELKIE_ERROR_FORMAT, "a string in double quotes was expected");
    }
    for (size_t i = start; i < s->at; i++)
        if ((unsigned char)s->text[i] < 0x20) {
            s->at = i;
            return sk_fail(s->error, SELKIE_ERROR_FORMAT, "a line break or control character inside a string");
        }
    return SELKIE_OK;
}

/* The key of the string token start..end, decoded by json-c; NULL on failure. */
static json_object *decode_key(const scanner *s, size_t start, size_t end)
{
    if (!memchr(s->text + start, '\\', end - start))
        return json_object_new_string_len(s->text + start + 1, (int)(end - start - 2));
    json_tokener *tokener = json_tokener_new();
    json_object *key = tokener ? json_tokener_parse_ex(tokener, s->text + start, (int)(end - start)) : NULL;
    if (tokener)
        json_tokener_free(tokener);
    return key;
}

/* `seen` maps the keys of this object to their offsets. */
static selkie_code check_key(scanner *s, json_object *seen)
{
    size_t start = s->at;
    SK_TRY(check_string_token(s));
    json_object *key = decode_key(s, start, s->at), *first;
    const char *name = key ? json_object_get_string(key) : NULL;
    if (!name) {
        json_object_put(key);
        return sk_fail(s->error, SELKIE_ERROR_MEMORY, "not enough memory to read the file");
    }
    selkie_code code = SELKIE_OK;
    if (strlen(name) != (size_t)json_object_get_string_len(key)) {
        s->at = start;
        code = sk_fail(s->error, SELKIE_ERROR_FORMAT, "a key with a zero character in it");
    } else if (json_object_object_get_ex(seen, name, &first)) {
        char quoted[80];
        int line, column;
        sk_json_position(s->text, s->length, (size_t)json_object_get_int64(first), &line, &column);
        s->at = start;
        code = sk_fail(s->error, SELKIE_ERROR_FORMAT, "%s is given twice, first in line %d",
                       sk_quote(quoted, sizeof quoted, name), line);
    } else {
        json_object_object_add(seen, name, json_object_new_int64((int64_t)start));
    }
    json_object_put(key);
    return code;
}

static selkie_code check_value(scanner *s, int depth);

static selkie_code check_members(scanner *s, json_object *seen, int depth)
{
    char close = seen ? '}' : ']';
    for (s->at++;;) {
        skip_space(s);
        if (s->text[s->at] == close) {
            s->at++;
            return SELKIE_OK;
        }
        if (seen) {
            SK_TRY(check_key(s, seen));
            skip_space(s);
            if (s->text[s->at] != ':')
                return sk_fail(s->error, SELKIE_ERROR_FORMAT, "a colon was expected after the key");
            s->at++;
        }
        SK_TRY(check_value(s, depth + 1));
        skip_space(s);
        if (s->text[s->at] == ',')
            s->at++;
        else if (s->text[s->at] != close)
            return sk_fail(s->error, SELKIE_ERROR_FORMAT, "a comma or '%c' was expected", close);
    }
}

static selkie_code check_value(scanner *s, int depth)
{
    skip_space(s);
    if (s->at >= s->length || depth > SK_JSON_MAX_DEPTH)
        return sk_fail(s->error, SELKIE_ERROR_FORMAT, "a value was expected");
    char c = s->text[s->at];
    if (c == '{') {
        json_object *seen = json_object_new_object();
        if (!seen)
            return sk_fail(s->error, SELKIE_ERROR_MEMORY, "not enough memory to read the file");
        selkie_code code = check_members(s, seen, depth);
        json_object_put(seen);
        return code;
    }
    if (c == '[')
        return check_members(s, NULL, depth);
    return c == '"' || c == '\'' ? check_string_token(s) : check_word(s);
}

/* --- Parsing --- */

static const char *plain_reason(enum json_tokener_error reason)
{
    switch (reason) {
    case json_tokener_continue:
    case json_tokener_error_parse_eof:
        return "the text ends too early: a bracket, a quote or a comment is not closed";
    case json_tokener_error_depth:
        return "nested too deeply";
    case json_tokener_error_parse_array:
        return "a comma or ']' was expected";
    case json_tokener_error_parse_object_key_name:
        return "a key in double quotes was expected";
    case json_tokener_error_parse_object_key_sep:
        return "a colon was expected after the key";
    case json_tokener_error_parse_object_value_sep:
        return "a comma or '}' was expected";
    case json_tokener_error_parse_string:
        return "an escape in a string that JSON does not have";
    case json_tokener_error_parse_comment:
        return "a comment was expected after '/'";
    case json_tokener_error_parse_null:
    case json_tokener_error_parse_boolean:
    case json_tokener_error_parse_number:
    case json_tokener_error_parse_unexpected:
        return "a value was expected: a number, true, false, a string in double quotes, [...] or {...}";
    default:
        return json_tokener_error_desc(reason);
    }
}

selkie_code sk_json_parse(const char *text, size_t length, struct json_object **value, size_t *offset,
                          selkie_error *error)
{
    *value = NULL;
    *offset = 0;
    if (length >= INT_MAX)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%zu bytes are too many", length);
    SK_TRY(check_bytes(text, length, offset, error));

    /* Start, without a byte order mark. */
    size_t mark =
        length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* some editors begin with a byte order mark */
    scanner s = {text, length, mark, error};
    skip_space(&s);
    *offset = s.at;
    if (s.at == length)
        return sk_fail(error, SELKIE_ERROR_FORMAT, "there is nothing in it");

    /* json-c reads the tree. */
    json_tokener *tokener = json_tokener_new_ex(SK_JSON_MAX_DEPTH);
    if (!tokener)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "not enough memory to read the file");
    /* With the '\0', which ends a number at the end for the tokener. */
    json_object *root = json_tokener_parse_ex(tokener, text + mark, (int)(length - mark) + 1);
    enum json_tokener_error reason = json_tokener_get_error(tokener);
    size_t end = mark + json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);

    /* The scanner refuses what json-c accepts beyond JSON. */
    selkie_code code = SELKIE_OK;
    if (reason != json_tokener_success) {
        *offset = end > length ? length : end;
        code = sk_fail(error, SELKIE_ERROR_FORMAT, "%s", plain_reason(reason));
    } else {
        code = check_value(&s, 0);
        if (code == SELKIE_OK) {
            skip_space(&s);
            if (s.at < length)
                code = sk_fail(error, SELKIE_ERROR_FORMAT, "more text after the end of the value");
        }
        *offset = s.at;
    }
    if (code != SELKIE_OK) {
        json_object_put(root);
        return code;
    }
    *value = root;
    return SELKIE_OK;
}

/* --- Places --- */

void sk_json_position(const char *text, size_t length, size_t offset, int *line, int *column)
{
    *line = *column = 1;
    if (offset > length)
        offset = length;
    for (size_t i = 0; i < offset; i++)
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            ++*column;
        }
}

/* From the '{' of an object to the value (or to the key itself) of one of its keys. */
static int enter_key(scanner *s, const char *key, size_t key_length, int stop_at_key)
{
    s->at++;
    for (;;) {
        skip_space(s);
        size_t start = s->at;
        if (!skip_string(s))
            return 0;
        int match = s->at - start == key_length + 2 && memcmp(s->text + start + 1, key, key_length) == 0;
        if (match && stop_at_key) {
            s->at = start;
            return 1;
        }
        skip_space(s);
        s->at++; /* the colon */
        skip_space(s);
        if (match)
            return 1;
        if (!skip_value(s))
            return 0;
        skip_space(s);
        if (s->text[s->at] == ',')
            s->at++;
    }
}

static int enter_index(scanner *s, long index)
{
    s->at++;
    for (;; index--) {
        skip_space(s);
        if (s->at >= s->length || s->text[s->at] == ']')
            return 0;
        if (index == 0)
            return 1;
        if (!skip_value(s))
            return 0;
        skip_space(s);
        if (s->text[s->at] == ',')
            s->at++;
    }
}

size_t sk_json_locate(const char *text, size_t length, const char *path, const char *key)
{
    scanner s = {text, length, length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, NULL};
    skip_space(&s);
    size_t found = s.at;
    while (*path) {
        int entered;
        if (*path == '[') {
            char *end;
            long index = strtol(path + 1, &end, 10);
            path = *end == ']' ? end + 1 : end + strlen(end);
            entered = text[s.at] == '[' && enter_index(&s, index);
        } else {
            path += *path == '.';
            size_t name = strcspn(path, ".[");
            entered = text[s.at] == '{' && enter_key(&s, path, name, 0);
            path += name;
        }
        if (!entered)
            return found;
        found = s.at;
    }
    if (key && text[s.at] == '{' && enter_key(&s, key, strlen(key), 1))
        found = s.at;
    return found;
}

#endif

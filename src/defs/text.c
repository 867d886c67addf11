#include "defs/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void path_append(sk_path *path, const char *text)
{
    size_t room = sizeof path->text - 1 - path->length, length = strlen(text);
    if (length > room)
        length = room;
    memcpy(path->text + path->length, text, length);
    path->length += length;
    path->text[path->length] = 0;
}

size_t sk_path_key(sk_path *path, const char *key)
{
    size_t before = path->length;
    if (before)
        path_append(path, ".");
    path_append(path, key);
    return before;
}

size_t sk_path_index(sk_path *path, int index)
{
    size_t before = path->length;
    char text[32];
    snprintf(text, sizeof text, "[%d]", index);
    path_append(path, text);
    return before;
}

void sk_path_cut(sk_path *path, size_t length)
{
    path->length = length;
    path->text[length] = 0;
}

/* One character as it stands in a JSON string; its length. UTF-8 goes through as it is. */
static size_t escape(char out[8], unsigned char c)
{
    static const char short_form[][2] = {{'"', '"'},  {'\\', '\\'}, {'\n', 'n'}, {'\t', 't'},
                                         {'\r', 'r'}, {'\b', 'b'},  {'\f', 'f'}};
    for (size_t i = 0; i < sizeof short_form / sizeof *short_form; i++)
        if (c == (unsigned char)short_form[i][0]) {
            out[0] = '\\';
            out[1] = short_form[i][1];
            return 2;
        }
    if (c < 0x20 || c == 0x7f)
        return (size_t)snprintf(out, 8, "\\u%04x", c);
    out[0] = (char)c;
    return 1;
}

char *sk_quote(char *buffer, size_t size, const char *text)
{
    size_t used = 0, whole = 1; /* `whole`: end of the last complete character that leaves room for the ending */
    buffer[used++] = '"';
    for (; *text; text++) {
        char out[8];
        size_t length = escape(out, (unsigned char)*text);
        int starts_character = ((unsigned char)*text & 0xc0) != 0x80;
        if (starts_character && used + 5 <= size)
            whole = used;
        if (used + length + 2 > size) {
            memcpy(buffer + whole, "...", 3);
            used = whole + 3;
            break;
        }
        memcpy(buffer + used, out, length);
        used += length;
    }
    buffer[used++] = '"';
    buffer[used] = 0;
    return buffer;
}

char *sk_number_text(char *buffer, size_t size, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g", digits, value);
        if (!isfinite(value) || strtod(buffer, NULL) == value)
            break;
    }
    /* The locale may have another decimal point. */
    size_t length = strlen(buffer), start = strspn(buffer, "0123456789+-.einfa");
    if (start < length) {
        size_t end = start + 1;
        while (end < length && !strchr("0123456789", buffer[end]))
            end++;
        buffer[start] = '.';
        memmove(buffer + start + 1, buffer + end, length - end + 1);
    }
    return buffer;
}

size_t sk_utf8_length(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char c = at[0];
    if (c < 0x80)
        return 1;
    size_t length = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && at[1] < 0xa0) || (c == 0xed && at[1] > 0x9f) || (c == 0xf0 && at[1] < 0x90) ||
        (c == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

int sk_edit_distance(const char *a, const char *b)
{
    enum { longest = 48 };
    size_t rows = strlen(a), columns = strlen(b);
    if (rows > longest || columns > longest)
        return longest;
    int d[longest + 1][longest + 1];
    for (size_t i = 0; i <= rows; i++)
        d[i][0] = (int)i;
    for (size_t j = 0; j <= columns; j++)
        d[0][j] = (int)j;
    for (size_t i = 1; i <= rows; i++)
        for (size_t j = 1; j <= columns; j++) {
            int best = d[i - 1][j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[rows][columns];
}

int sk_is_near(const char *wrong, const char *right)
{
    /* For short words a small distance often means another word. */
    int length = (int)strlen(right), allowed = length <= 2 ? 0 : length <= 5 ? 1 : length <= 8 ? 2 : 3;
    return sk_edit_distance(wrong, right) <= allowed;
}

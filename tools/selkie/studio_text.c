#define _GNU_SOURCE
#include "studio_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "defs/text.h"

int studio_text_open(studio_text *text)
{
    memset(text, 0, sizeof *text);
    text->stream = open_memstream(&text->text, &text->length);
    return text->stream ? 0 : -1;
}

static void put_string(FILE *stream, const char *value)
{
    const size_t size = 6 * strlen(value) + 16;
    char *quoted = malloc(size);
    fputs(quoted ? sk_quote(quoted, size, value) : "\"\"", stream);
    free(quoted);
}

void studio_text_key(studio_text *text, const char *key)
{
    /* No comma behind an opening bracket. */
    fflush(text->stream);
    const char last = text->length ? text->text[text->length - 1] : 0;
    if (last && !strchr("{[", last))
        fputc(',', text->stream);
    if (!key)
        return;
    put_string(text->stream, key);
    fputc(':', text->stream);
}

void studio_text_string(studio_text *text, const char *key, const char *value)
{
    studio_text_key(text, key);
    put_string(text->stream, value ? value : "");
}

static void put_number(FILE *stream, double value)
{
    char buffer[40];
    fputs(isfinite(value) ? sk_number_text(buffer, sizeof buffer, value) : "null", stream);
}

void studio_text_number(studio_text *text, const char *key, double value)
{
    studio_text_key(text, key);
    put_number(text->stream, value);
}

void studio_text_numbers(studio_text *text, const char *key, const double *values, int count)
{
    studio_text_key(text, key);
    fputc('[', text->stream);
    for (int i = 0; i < count; i++) {
        if (i)
            fputc(',', text->stream);
        put_number(text->stream, values[i]);
    }
    fputc(']', text->stream);
}

void studio_text_bool(studio_text *text, const char *key, int value)
{
    studio_text_key(text, key);
    fputs(value ? "true" : "false", text->stream);
}

studio_blob *studio_text_close(studio_text *text, uint32_t number)
{
    const int failed = fclose(text->stream) != 0;
    studio_blob *blob = failed ? NULL : studio_blob_create(text->length, 0);
    if (blob) {
        memcpy(blob->bytes, text->text, text->length);
        blob->bytes[text->length] = 0;
        blob->number = number;
    }
    free(text->text);
    return blob;
}

studio_blob *studio_problem(const char *verb, const char *message)
{
    studio_text text;
    if (studio_text_open(&text))
        return NULL;
    fputc('{', text.stream);
    studio_text_string(&text, "is", "problem");
    studio_text_string(&text, "for", verb);
    studio_text_string(&text, "message", message);
    fputc('}', text.stream);
    return studio_text_close(&text, 0);
}

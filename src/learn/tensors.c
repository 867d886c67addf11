#include "learn/tensors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {[SK_TENSOR_F32] = {"F32", 4}, [SK_TENSOR_I32] = {"I32", 4}, [SK_TENSOR_U8] = {"U8", 1}};

static size_t bytes_of(const sk_tensor *tensor)
{
    return (size_t)tensor->values * types[tensor->type].bytes;
}

/* --- Writing --- */

void sk_tensors_add(sk_tensors *tensors, const char *name, sk_tensor_type type, const void *data, int64_t rows,
                    int64_t columns)
{
    sk_tensor *tensor = &tensors->tensors[tensors->count++];
    memset(tensor, 0, sizeof *tensor);
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tensor->type = type;
    tensor->axes = columns ? 2 : 1;
    tensor->shape[0] = rows;
    tensor->shape[1] = columns;
    tensor->values = rows * (columns ? columns : 1);
    tensor->data = data;
}

void sk_tensors_add_text(sk_tensors *tensors, const char *key, const char *format, ...)
{
    va_list arguments;
    snprintf(tensors->texts[tensors->text_count].key, SK_TENSOR_NAME, "%s", key);
    va_start(arguments, format);
    vsnprintf(tensors->texts[tensors->text_count].value, SK_TENSOR_TEXT, format, arguments);
    va_end(arguments);
    tensors->text_count++;
}

/* The header, padded with blanks to a multiple of 8 bytes. Returns its length. */
static size_t write_header(const sk_tensors *tensors, char *to, size_t room)
{
    size_t at = (size_t)snprintf(to, room, "{\"__metadata__\":{\"format\":\"pt\"");
    size_t offset = 0;
    for (int t = 0; t < tensors->text_count; t++)
        at += (size_t)snprintf(to + at, room - at, ",\"%s\":\"%s\"", tensors->texts[t].key, tensors->texts[t].value);
    at += (size_t)snprintf(to + at, room - at, "}");
    for (int n = 0; n < tensors->count; n++) {
        const sk_tensor *tensor = &tensors->tensors[n];
        at += (size_t)snprintf(to + at, room - at, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", tensor->name,
                               types[tensor->type].name);
        for (int a = 0; a < tensor->axes; a++)
            at += (size_t)snprintf(to + at, room - at, "%s%lld", a ? "," : "", (long long)tensor->shape[a]);
        at += (size_t)snprintf(to + at, room - at, "],\"data_offsets\":[%zu,%zu]}", offset, offset + bytes_of(tensor));
        offset += bytes_of(tensor);
    }
    at += (size_t)snprintf(to + at, room - at, "}");
    while (at % 8)
        to[at++] = ' ';
    return at;
}

selkie_code sk_tensors_encode(const sk_tensors *tensors, char **bytes, size_t *size, selkie_error *error)
{
    enum { HEADER = 32768 };
    size_t all = HEADER;
    for (int n = 0; n < tensors->count; n++)
        all += bytes_of(&tensors->tensors[n]);
    char *out = sk_allocate(NULL, all);
    if (!out)
        return sk_fail(error, SELKIE_ERROR_MEMORY, "tensors: no memory for %zu bytes", all);
    const uint64_t length = write_header(tensors, out + 8, HEADER - 16);
    for (int b = 0; b < 8; b++)
        out[b] = (char)(length >> (8 * b) & 0xff);
    size_t at = 8 + (size_t)length;
    for (int n = 0; n < tensors->count; n++) {
        memcpy(out + at, tensors->tensors[n].data, bytes_of(&tensors->tensors[n]));
        at += bytes_of(&tensors->tensors[n]);
    }
    *bytes = out;
    *size = at;
    return SELKIE_OK;
}

/* --- Reading --- */

typedef struct reader {
    const char *at, *end;
    int broken;
} reader;

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

/* Takes a character if it is next. */
static int take(reader *r, char c)
{
    skip_blanks(r);
    if (r->broken || r->at >= r->end || *r->at != c)
        return 0;
    r->at++;
    return 1;
}

static void expect(reader *r, char c)
{
    if (!take(r, c))
        r->broken = 1;
}

/* A string; longer ones are cut. */
static void read_string(reader *r, char *to, size_t size)
{
    size_t n = 0;
    expect(r, '"');
    while (!r->broken && r->at < r->end && *r->at != '"') {
        if (*r->at == '\\' && r->at + 1 < r->end)
            r->at++;
        if (n + 1 < size)
            to[n++] = *r->at;
        r->at++;
    }
    to[n] = '\0';
    expect(r, '"');
}

static int64_t read_count(reader *r)
{
    int64_t value = 0;
    skip_blanks(r);
    if (r->at >= r->end || *r->at < '0' || *r->at > '9')
        r->broken = 1;
    while (!r->broken && r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        if (value > INT64_MAX / 16)
            r->broken = 1;
        value = 10 * value + (*r->at++ - '0');
    }
    return value;
}

static int read_counts(reader *r, int64_t *to, int most)
{
    int count = 0;
    expect(r, '[');
    if (take(r, ']'))
        return 0;
    do {
        const int64_t value = read_count(r);
        if (count < most)
            to[count] = value;
        else
            r->broken = 1;
        count++;
    } while (!r->broken && take(r, ','));
    expect(r, ']');
    return count;
}

static void read_tensor(reader *r, sk_tensor *tensor, const char *data, size_t bytes)
{
    int64_t offsets[2] = {0, -1};
    char key[16], type[8] = "";
    expect(r, '{');
    do {
        read_string(r, key, sizeof key);
        expect(r, ':');
        if (strcmp(key, "dtype") == 0)
            read_string(r, type, sizeof type);
        else if (strcmp(key, "shape") == 0)
            tensor->axes = read_counts(r, tensor->shape, SK_TENSOR_AXES);
        else if (strcmp(key, "data_offsets") == 0)
            read_counts(r, offsets, 2);
        else
            r->broken = 1;
    } while (!r->broken && take(r, ','));
    expect(r, '}');

    /* The values must lie in the file, and be as many as the shape says. */
    int known = 0;
    tensor->values = 1;
    for (int a = 0; a < tensor->axes && !r->broken; a++) {
        if (tensor->shape[a] > 0 && tensor->values > INT64_MAX / 16 / tensor->shape[a])
            r->broken = 1;
        else
            tensor->values *= tensor->shape[a];
    }
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (strcmp(type, types[t].name) == 0) {
            tensor->type = (sk_tensor_type)t;
            known = 1;
        }
    if (r->broken || !known || offsets[1] < offsets[0] || (uint64_t)offsets[1] > bytes ||
        (size_t)(offsets[1] - offsets[0]) != bytes_of(tensor) || offsets[0] % (int64_t)types[tensor->type].bytes)
        r->broken = 1;
    else
        tensor->data = data + offsets[0];
}

static void read_header(reader *r, sk_tensors *tensors, const char *data, size_t bytes)
{
    char name[SK_TENSOR_NAME];
    expect(r, '{');
    do {
        read_string(r, name, sizeof name);
        expect(r, ':');
        if (strcmp(name, "__metadata__") != 0) {
            if (tensors->count == SK_TENSORS) {
                r->broken = 1;
                return;
            }
            sk_tensor *tensor = &tensors->tensors[tensors->count++];
            memcpy(tensor->name, name, sizeof name);
            read_tensor(r, tensor, data, bytes);
            continue;
        }
        expect(r, '{');
        if (take(r, '}'))
            continue;
        do {
            const int n = tensors->text_count < SK_TENSORS - 1 ? tensors->text_count++ : SK_TENSORS - 1;
            read_string(r, tensors->texts[n].key, SK_TENSOR_NAME);
            expect(r, ':');
            read_string(r, tensors->texts[n].value, SK_TENSOR_TEXT);
        } while (!r->broken && take(r, ','));
        expect(r, '}');
    } while (!r->broken && take(r, ','));
    expect(r, '}');
}

static selkie_code read_content(const char *path, char **content, size_t *bytes, selkie_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s: %s", path, strerror(errno));
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    *content = size > 0 && fseek(file, 0, SEEK_SET) == 0 ? sk_allocate(NULL, (size_t)size + 8) : NULL;
    const size_t got = *content ? fread(*content, 1, (size_t)size, file) : 0;
    fclose(file);
    *bytes = got;
    if (*content && got == (size_t)size)
        return SELKIE_OK;
    sk_release(NULL, *content);
    *content = NULL;
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s: cannot be read, or is empty", path);
}

selkie_code sk_tensors_read(const char *path, sk_tensors *tensors, selkie_error *error)
{
    size_t bytes = 0;
    memset(tensors, 0, sizeof *tensors);
    SK_TRY(read_content(path, &tensors->content, &bytes, error));
    uint64_t length = 0;
    for (int b = 0; b < 8 && bytes >= 8; b++)
        length |= (uint64_t)(unsigned char)tensors->content[b] << (8 * b);
    reader r = {tensors->content + 8, tensors->content + 8 + length, 0};
    if (bytes < 8 || length > bytes - 8 || length % 8 || length == 0)
        r.broken = 1;
    else
        read_header(&r, tensors, r.end, bytes - 8 - (size_t)length);

    /* The tensors end where the file ends. */
    const char *last = r.end;
    for (int n = 0; n < tensors->count && !r.broken; n++) {
        const sk_tensor *tensor = &tensors->tensors[n];
        const char *end = (const char *)tensor->data + bytes_of(tensor);
        last = end > last ? end : last;
    }
    if (!r.broken && last == tensors->content + bytes)
        return SELKIE_OK;
    sk_tensors_free(tensors);
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s: is no safetensors file, or is cut off", path);
}

void sk_tensors_free(sk_tensors *tensors)
{
    sk_release(NULL, tensors->content);
    memset(tensors, 0, sizeof *tensors);
}

const sk_tensor *sk_tensors_find(const sk_tensors *tensors, const char *name)
{
    for (int n = 0; n < tensors->count; n++)
        if (strcmp(tensors->tensors[n].name, name) == 0)
            return &tensors->tensors[n];
    return NULL;
}

const char *sk_tensors_text(const sk_tensors *tensors, const char *key)
{
    for (int n = 0; n < tensors->text_count; n++)
        if (strcmp(tensors->texts[n].key, key) == 0)
            return tensors->texts[n].value;
    return NULL;
}

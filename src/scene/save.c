/* Writing a scene with all defaults filled in. Needs no JSON library. The field table gives the order; one value or
 * vector a line makes a saved scene easy to read and to compare. */
#include <limits.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "defs/structs.h"
#include "io/atomic_file.h"
#include "scene/read.h"

typedef struct writer {
    char *text;
    size_t length, capacity;
    int failed; /* memory ran out */
    int indent;
    int dimension;
    const char *folder; /* absolute; prefix of relative file names; NULL: they stay unchanged */
} writer;

static void put(writer *w, const char *text)
{
    size_t length = strlen(text);
    if (w->failed)
        return;
    if (sk_reserve(NULL, (void **)&w->text, &w->capacity, w->length + length, 1, "scene", NULL) != SELKIE_OK) {
        w->failed = 1;
        return;
    }
    memcpy(w->text + w->length, text, length);
    w->length += length;
}

static void put_line(writer *w)
{
    put(w, "\n");
    for (int i = 0; i < w->indent; i++)
        put(w, "    ");
}

static void put_number(writer *w, double value)
{
    char text[40];
    put(w, sk_number_text(text, sizeof text, value));
}

static void put_string(writer *w, const char *folder, const char *text)
{
    size_t size = 6 * ((folder ? strlen(folder) : 0) + strlen(text)) + 16;
    char *joined = malloc(size), *quoted = malloc(size);
    if (joined && quoted) {
        snprintf(joined, size, "%s%s%s", folder ? folder : "", folder ? "/" : "", text);
        put(w, sk_quote(quoted, size, joined));
    } else {
        w->failed = 1;
    }
    free(joined);
    free(quoted);
}

static void put_struct(writer *w, const sk_struct *type, const void *base);

static void put_array(writer *w, const sk_field *field, const void *base)
{
    int count = sk_field_count(field, base);
    const char *elements = sk_field_elements(field, base);
    put(w, "[");
    w->indent++;
    for (int i = 0; i < count; i++) {
        if (i)
            put(w, ",");
        put_line(w);
        put_struct(w, field->of, elements + (size_t)i * field->of->size);
    }
    w->indent--;
    if (count)
        put_line(w);
    put(w, "]");
}

static void put_numbers(writer *w, const sk_field *field, const void *base)
{
    const double *value = sk_field_numbers(field, base);
    int count = w->dimension == 2 && field->type == SK_FIELD_VECTOR && !field->whole ? 2 : sk_field_components(field);
    if (field->type == SK_FIELD_NUMBER) {
        put_number(w, value[0]);
        return;
    }
    put(w, "[");
    for (int i = 0; i < count; i++) {
        if (i)
            put(w, ", ");
        put_number(w, value[i]);
    }
    put(w, "]");
}

static void put_field(writer *w, const sk_field *field, const void *base)
{
    char text[40];
    const char *string;
    switch (field->type) {
    case SK_FIELD_BOOL:
        put(w, sk_field_int(field, base) ? "true" : "false");
        break;
    case SK_FIELD_INTEGER:
        put_number(w, sk_field_int(field, base));
        break;
    case SK_FIELD_SEED:
        snprintf(text, sizeof text, "%" PRIu64, sk_field_seed(field, base));
        put(w, text);
        break;
    case SK_FIELD_STRING:
        put_string(w, NULL, sk_field_string(field, base));
        break;
    case SK_FIELD_FILE:
        string = sk_field_string(field, base);
        put_string(w, string[0] == '/' || !string[0] ? NULL : w->folder, string);
        break;
    case SK_FIELD_ENUM:
        put_string(w, NULL, sk_enum_name(field->choices, sk_field_int(field, base)));
        break;
    case SK_FIELD_STRUCT:
        put_struct(w, field->of, sk_field_in(field, base));
        break;
    case SK_FIELD_ARRAY:
        put_array(w, field, base);
        break;
    default:
        put_numbers(w, field, base);
        break;
    }
}

static void put_struct(writer *w, const sk_struct *type, const void *base)
{
    int first = 1;
    put(w, "{");
    w->indent++;
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (!sk_struct_uses(type, field, base) || (field->dimension == 3 && w->dimension == 2))
            continue;
        if (!first)
            put(w, ",");
        first = 0;
        put_line(w);
        put_string(w, NULL, field->key);
        put(w, ": ");
        put_field(w, field, base);
    }
    w->indent--;
    put_line(w);
    put(w, "}");
}

/* The absolute name of a folder; free() it. The name of a missing folder stays unchanged. */
static char *absolute(const char *folder)
{
    char *path = realpath(folder, NULL);
    return path ? path : strdup(folder);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Relative names of meshes start at the scene's folder. In a file elsewhere they become absolute. */
static selkie_code choose_folder(const selkie_scene *scene, const char *path, char **folder, selkie_error *error)
{
    char *target = folder_of(path), *to = target ? absolute(target) : NULL;
    char *from = absolute(scene->folder ? scene->folder : ".");
    int complete = to && from;
    *folder = NULL;
    if (complete && strcmp(from, to) != 0) {
        *folder = from;
        from = NULL;
        size_t length = strlen(*folder);
        if (length > 0 && (*folder)[length - 1] == '/')
            (*folder)[length - 1] = 0; /* the root: a slash follows anyway */
    }
    free(target);
    free(to);
    free(from);
    return complete ? SELKIE_OK : sk_fail(error, SELKIE_ERROR_MEMORY, "%s: not enough memory to write the scene", path);
}

selkie_code sk_scene_text_of(const selkie_scene *scene, const char *folder, char **text, size_t *length,
                             selkie_error *error)
{
    *text = NULL;
    SK_TRY(selkie_scene_check(scene, error)); /* a text that cannot be read again is no use */
    writer w = {.dimension = scene->domain.dimension, .folder = folder};
    put_struct(&w, &sk_scene_struct, scene);
    put(&w, "\n");
    if (w.failed) {
        sk_release(NULL, w.text);
        return sk_fail(error, SELKIE_ERROR_MEMORY, "not enough memory to write the scene");
    }
    *text = w.text;
    *length = w.length;
    return SELKIE_OK;
}

selkie_code selkie_scene_save(const selkie_scene *scene, const char *path, selkie_error *error)
{
    char *folder, *text = NULL;
    size_t length = 0;
    SK_TRY(choose_folder(scene, path, &folder, error));
    selkie_code code = sk_scene_text_of(scene, folder, &text, &length, error);
    if (code == SELKIE_OK)
        code = sk_file_write(path, text, length, error);
    sk_release(NULL, text);
    free(folder);
    return code;
}

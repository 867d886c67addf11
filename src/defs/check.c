/* The check of each field by itself: kind, range, length. rules.c checks fields together. */
#include "defs/structs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

char *sk_field_bounds_text(const sk_field *field, char *buffer, size_t size)
{
    char low[32], high[32];
    sk_number_text(low, sizeof low, field->low);
    sk_number_text(high, sizeof high, field->high);
    const char *space = field->unit ? " " : "", *unit = field->unit ? field->unit : "";
    if (field->high >= SK_LARGEST_NUMBER && field->low > -SK_LARGEST_NUMBER)
        snprintf(buffer, size, "%s %s%s%s", field->low_open ? "above" : "at least", low, space, unit);
    else if (field->low_open && field->high_open)
        snprintf(buffer, size, "above %s and below %s%s%s", low, high, space, unit);
    else if (field->low_open)
        snprintf(buffer, size, "above %s and at most %s%s%s", low, high, space, unit);
    else
        snprintf(buffer, size, "between %s and %s%s%s", low, high, space, unit);
    return buffer;
}

char *sk_enum_list(const sk_enum *choices, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 0; i < choices->count && used < size; i++) {
        const char *between = i == 0 ? "" : i == choices->count - 1 ? " or " : ", ";
        int written = snprintf(buffer + used, size - used, "%s\"%s\"", between, choices->values[i].name);
        used += written > 0 ? (size_t)written : 0;
    }
    return buffer;
}

static selkie_code check_number(const sk_field *field, double value, selkie_error *error)
{
    int in_range = (field->low_open ? value > field->low : value >= field->low) &&
                   (field->high_open ? value < field->high : value <= field->high);
    if (in_range)
        return SELKIE_OK;
    char text[32], bounds[128];
    sk_number_text(text, sizeof text, value);
    if (isfinite(value) && fabs(value) > SK_LARGEST_NUMBER)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%s is too large: numbers lie between -1e9 and 1e9", text);
    return sk_fail(error, SELKIE_ERROR_INPUT, "%s is out of range: must be %s", text,
                   sk_field_bounds_text(field, bounds, sizeof bounds));
}

/* Third components in 2D: positions may have one, which is not used; vectors that would leave the plane may not. */
static selkie_code check_plane(const sk_field *field, const double *value, int dimension, sk_path *where,
                               selkie_error *error)
{
    if (dimension != 2 || !field->in_plane)
        return SELKIE_OK;
    int first = field->type == SK_FIELD_ROTATION ? 0 : 2, last = field->type == SK_FIELD_ROTATION ? 1 : 2;
    for (int i = first; i <= last; i++)
        if (value[i] != 0) {
            char text[32];
            sk_number_text(text, sizeof text, value[i]);
            sk_path_index(where, i);
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s leaves the plane: must be 0 in 2D%s", text,
                           field->type == SK_FIELD_ROTATION ? ", where only the third component turns" : "");
        }
    return SELKIE_OK;
}

static selkie_code check_numbers(const sk_field *field, const void *base, int dimension, sk_path *where,
                                 selkie_error *error)
{
    const double *value = sk_field_numbers(field, base);
    int components = sk_field_components(field);
    for (int i = 0; i < components; i++) {
        size_t before = where->length;
        if (components > 1)
            sk_path_index(where, i);
        SK_TRY(check_number(field, value[i], error));
        sk_path_cut(where, before);
    }
    return check_plane(field, value, dimension, where, error);
}

static selkie_code check_string(const sk_field *field, const char *text, selkie_error *error)
{
    enum { longest = 4096 };
    size_t length = strlen(text);
    if (length > longest && field->type != SK_FIELD_FILE) /* the system limits the length of a file's name */
        return sk_fail(error, SELKIE_ERROR_INPUT, "%zu bytes are too long: at most %d", length, longest);
    for (size_t i = 0, step; i < length; i += step) {
        step = sk_utf8_length(text + i, length - i);
        if (step == 0)
            return sk_fail(error, SELKIE_ERROR_INPUT, "the byte 0x%02x is not UTF-8", (unsigned char)text[i]);
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            char quoted[80];
            return sk_fail(error, SELKIE_ERROR_INPUT, "%s has a control character: must be one line of plain text",
                           sk_quote(quoted, sizeof quoted, text));
        }
    }
    return SELKIE_OK;
}

static selkie_code check_struct(const sk_struct *type, const void *base, int dimension, int depth, sk_path *where,
                                selkie_error *error);

static selkie_code check_array(const sk_field *field, const void *base, int dimension, int depth, sk_path *where,
                               selkie_error *error)
{
    int count = sk_field_count(field, base);
    const char *elements = sk_field_elements(field, base);
    if (count < 0 || count > SK_MAX_ELEMENTS)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%d elements: must be between 0 and %d", count, SK_MAX_ELEMENTS);
    if (count > 0 && !elements)
        return sk_fail(error, SELKIE_ERROR_INPUT, "%d elements are announced but the pointer is NULL", count);
    if (field->of == &sk_shape_struct && depth >= SK_MAX_UNION_DEPTH)
        return sk_fail(error, SELKIE_ERROR_INPUT, "unions lie more than %d deep in each other", SK_MAX_UNION_DEPTH);
    for (int i = 0; i < count; i++) {
        size_t before = sk_path_index(where, i);
        SK_TRY(check_struct(field->of, elements + (size_t)i * field->of->size, dimension, depth + 1, where, error));
        sk_path_cut(where, before);
    }
    return SELKIE_OK;
}

static selkie_code check_field(const sk_field *field, const void *base, int dimension, int depth, sk_path *where,
                               selkie_error *error)
{
    char list[256];
    switch (field->type) {
    case SK_FIELD_BOOL:
    case SK_FIELD_INTEGER:
        return check_number(field, sk_field_int(field, base), error);
    case SK_FIELD_ENUM:
        if (!sk_enum_name(field->choices, sk_field_int(field, base)))
            return sk_fail(error, SELKIE_ERROR_INPUT, "%d is no choice: must be %s", sk_field_int(field, base),
                           sk_enum_list(field->choices, list, sizeof list));
        return SELKIE_OK;
    case SK_FIELD_SEED:
        return SELKIE_OK;
    case SK_FIELD_STRING:
    case SK_FIELD_FILE:
        return check_string(field, sk_field_string(field, base), error);
    case SK_FIELD_STRUCT:
        return check_struct(field->of, sk_field_in(field, base), dimension, depth, where, error);
    case SK_FIELD_ARRAY:
        return check_array(field, base, dimension, depth, where, error);
    default:
        return check_numbers(field, base, dimension, where, error);
    }
}

static selkie_code check_struct(const sk_struct *type, const void *base, int dimension, int depth, sk_path *where,
                                selkie_error *error)
{
    if (type->variant) { /* first of all: the others depend on it */
        size_t before = sk_path_key(where, type->variant->key);
        SK_TRY(check_field(type->variant, base, dimension, depth, where, error));
        sk_path_cut(where, before);
    }
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (!sk_struct_uses(type, field, base))
            continue;
        size_t before = sk_path_key(where, field->key);
        SK_TRY(check_field(field, base, dimension, depth, where, error));
        sk_path_cut(where, before);
    }
    return SELKIE_OK;
}

selkie_code sk_scene_check_at(const selkie_scene *scene, sk_path *where, selkie_error *error)
{
    sk_path_cut(where, 0);
    SK_TRY(check_struct(&sk_scene_struct, scene, scene->domain.dimension, 0, where, error));
    return sk_scene_check_rules(scene, where, error);
}

selkie_code selkie_scene_check(const selkie_scene *scene, selkie_error *error)
{
    sk_path where;
    selkie_error inner;
    selkie_code code = sk_scene_check_at(scene, &where, &inner);
    if (code == SELKIE_OK)
        return SELKIE_OK;
    return sk_fail(error, code, "%s%s%s", where.text, where.length ? ": " : "", inner.message);
}

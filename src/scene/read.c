/* Reading a scene file: text -> json-c tree -> overrides -> structs, by the field table.
 *
 * This file checks types: which JSON value fits which field. src/defs checks ranges and combinations of fields, so that
 * the same rules hold for a scene made by a program. A message begins with the source of the value. It is found only
 * when needed, by a search for the value's path in the text.
 */
#include "scene/read.h"

#include "selkie_config.h"
#include "base/status.h"

#if SELKIE_HAVE_JSON

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "io/atomic_file.h"
#include "scene/json_text.h"
#include "scene/reader.h"

/* --- Messages --- */

/* The last --set that gave the value at `path` or something that contains it; NULL if it is from the file. */
static const sk_override *origin_of(const sk_reader *reader, const char *path)
{
    for (int i = reader->override_count - 1; i >= 0; i--) {
        const sk_override *override = &reader->overrides[i];
        size_t length = override->path.length;
        if (length > 0 && strncmp(path, override->path.text, length) == 0 && strchr(".[", path[length]))
            return override; /* strchr finds the '\0' as well */
    }
    return NULL;
}

selkie_code sk_reader_fail(sk_reader *reader, const char *key, const char *format, ...)
{
    char message[600], prefix[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sk_path path = reader->path;
    if (key) {
        char quoted[100];
        sk_quote(quoted, sizeof quoted, key);
        quoted[strlen(quoted) - 1] = 0; /* escaped, but without the quotes */
        sk_path_key(&path, quoted + 1);
    }
    const sk_override *override = origin_of(reader, path.text);
    if (override) {
        snprintf(prefix, sizeof prefix, "--set %.200s%s", override->text, strlen(override->text) > 200 ? "..." : "");
    } else {
        int line, column;
        size_t offset = sk_json_locate(reader->text, reader->length, reader->path.text, key);
        sk_json_position(reader->text, reader->length, offset, &line, &column);
        snprintf(prefix, sizeof prefix, "%.300s:%d:%d", reader->name, line, column);
    }
    const char *place = override && strcmp(override->path.text, path.text) == 0 ? "" : path.text;
    return sk_fail(reader->error, SELKIE_ERROR_INPUT, "%s: %s%s%s", prefix, place, *place ? ": " : "", message);
}

selkie_code sk_reader_no_memory(sk_reader *reader)
{
    return sk_fail(reader->error, SELKIE_ERROR_MEMORY, "%s: not enough memory to read the scene", reader->name);
}

char *sk_value_text(json_object *value, char *buffer, size_t size)
{
    switch (json_object_get_type(value)) {
    case json_type_array:
        snprintf(buffer, size, "an array of %zu", json_object_array_length(value));
        break;
    case json_type_object:
        snprintf(buffer, size, "an object");
        break;
    case json_type_string:
        sk_quote(buffer, size, json_object_get_string(value));
        break;
    case json_type_null:
        snprintf(buffer, size, "null");
        break;
    default:
        snprintf(buffer, size, "%.60s", json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
        break;
    }
    return buffer;
}

char *sk_field_expected(const sk_field *field, int dimension, char *buffer, size_t size)
{
    char list[256], unit[40] = "";
    int flat = dimension == 2;
    if (field->unit)
        snprintf(unit, sizeof unit, " (%s)", field->unit);
    switch (field->type) {
    case SK_FIELD_BOOL:
        snprintf(buffer, size, "true or false");
        break;
    case SK_FIELD_INTEGER:
        snprintf(buffer, size, "a whole number%s", unit);
        break;
    case SK_FIELD_SEED:
        snprintf(buffer, size, "a whole number from 0 to 18446744073709551615");
        break;
    case SK_FIELD_NUMBER:
        snprintf(buffer, size, "a number%s", unit);
        break;
    case SK_FIELD_VECTOR:
        snprintf(buffer, size, "an array of %s numbers%s%s", flat ? "2 or 3" : "3", unit,
                 flat ? "" : ", or of 2 where domain.dimension is 2");
        break;
    case SK_FIELD_ROTATION:
        snprintf(buffer, size, "%san array of 3 numbers%s", flat ? "a number or " : "", unit);
        break;
    case SK_FIELD_SCALE:
        snprintf(buffer, size, "a number or an array of %s numbers", flat ? "2 or 3" : "3");
        break;
    case SK_FIELD_MATRIX:
        snprintf(buffer, size, "an array of %s numbers, row by row%s", flat ? "4 or 9" : "9", unit);
        break;
    case SK_FIELD_STRING:
    case SK_FIELD_FILE:
        snprintf(buffer, size, "a string");
        break;
    case SK_FIELD_ENUM:
        snprintf(buffer, size, "%s", sk_enum_list(field->choices, list, sizeof list));
        break;
    case SK_FIELD_STRUCT:
        snprintf(buffer, size, "an object {...}");
        break;
    case SK_FIELD_ARRAY:
        snprintf(buffer, size, "an array of objects [{...}, ...]");
        break;
    }
    return buffer;
}

static selkie_code wrong_type(sk_reader *reader, const sk_field *field, json_object *value)
{
    char shown[80], expected[400];
    return sk_reader_fail(reader, NULL, "%s does not fit: must be %s", sk_value_text(value, shown, sizeof shown),
                          sk_field_expected(field, reader->dimension, expected, sizeof expected));
}

/* --- Values --- */

/* A finite number; 0 if it is none. */
static int get_number(json_object *value, double *number)
{
    json_type type = json_object_get_type(value);
    if (type != json_type_int && type != json_type_double)
        return 0;
    *number = json_object_get_double(value);
    return isfinite(*number);
}

/* A whole number in lowest..highest; 3.0 is one as well. */
static int get_integer(json_object *value, double lowest, double highest, double *number)
{
    return get_number(value, number) && *number == floor(*number) && *number >= lowest && *number <= highest;
}

static selkie_code read_seed(sk_reader *reader, const sk_field *field, json_object *value, void *base)
{
    uint64_t seed;
    double number;
    if (json_object_get_type(value) == json_type_int) {
        if (json_object_get_int64(value) < 0)
            return wrong_type(reader, field, value);
        seed = json_object_get_uint64(value);
    } else if (get_integer(value, 0, 9007199254740992.0, &number)) {
        seed = (uint64_t)number;
    } else {
        return wrong_type(reader, field, value);
    }
    memcpy(sk_field_at(field, base), &seed, sizeof seed);
    return SELKIE_OK;
}

static selkie_code read_numbers(sk_reader *reader, const sk_field *field, json_object *value, double *out)
{
    int flat = reader->dimension == 2, components = sk_field_components(field);
    double number;

    /* A single number fills all components. A rotation in 2D is about z. */
    if (json_object_get_type(value) != json_type_array) {
        int single = field->type == SK_FIELD_NUMBER || field->type == SK_FIELD_SCALE ||
                     (field->type == SK_FIELD_ROTATION && flat);
        if (!single || !get_number(value, &number))
            return wrong_type(reader, field, value);
        if (field->type == SK_FIELD_ROTATION)
            out[2] = number;
        else
            for (int i = 0; i < components; i++)
                out[i] = number;
        return SELKIE_OK;
    }

    /* Arrays in 2D may leave out z: 2 of 3 numbers, 4 of 9. */
    size_t count = json_object_array_length(value);
    int is_short = flat && !field->whole &&
                   ((count == 2 && (field->type == SK_FIELD_VECTOR || field->type == SK_FIELD_SCALE)) ||
                    (count == 4 && field->type == SK_FIELD_MATRIX));
    if (field->type == SK_FIELD_NUMBER || (count != (size_t)components && !is_short))
        return wrong_type(reader, field, value);

    /* A 2 x 2 matrix fills the upper left corner of the 3 x 3 one. */
    for (size_t i = 0; i < count; i++) {
        json_object *element = json_object_array_get_idx(value, i);
        if (!get_number(element, &number)) {
            char shown[80];
            sk_path_index(&reader->path, (int)i);
            return sk_reader_fail(reader, NULL, "%s does not fit: must be a number",
                                  sk_value_text(element, shown, sizeof shown));
        }
        out[count == 4 ? i / 2 * 3 + i % 2 : i] = number;
    }
    return SELKIE_OK;
}

static selkie_code read_string(sk_reader *reader, const sk_field *field, json_object *value, void *base)
{
    if (json_object_get_type(value) != json_type_string)
        return wrong_type(reader, field, value);
    const char *text = json_object_get_string(value);
    size_t length = (size_t)json_object_get_string_len(value);
    if (strlen(text) != length)
        return sk_reader_fail(reader, NULL, "a zero character in a string");
    char *copy = sk_pool_string(reader->pool, text, length);
    if (!copy)
        return sk_reader_no_memory(reader);
    memcpy(sk_field_at(field, base), &copy, sizeof copy);
    return SELKIE_OK;
}

static selkie_code read_enum(sk_reader *reader, const sk_field *field, json_object *value, void *base)
{
    if (json_object_get_type(value) != json_type_string)
        return wrong_type(reader, field, value);
    const char *name = json_object_get_string(value);
    const sk_enum_value *choice = sk_enum_find(field->choices, name);
    if (!choice) {
        char quoted[80], list[256], hint[100] = "";
        int best = 100;
        for (int i = 0; i < field->choices->count; i++) {
            const char *candidate = field->choices->values[i].name;
            int distance = sk_edit_distance(name, candidate);
            if (distance < best && sk_is_near(name, candidate)) {
                best = distance;
                snprintf(hint, sizeof hint, "; did you mean \"%s\"?", candidate);
            }
        }
        return sk_reader_fail(reader, NULL, "%s is no choice: must be %s%s", sk_quote(quoted, sizeof quoted, name),
                              sk_enum_list(field->choices, list, sizeof list), hint);
    }
    sk_field_set_int(field, base, choice->value);
    return SELKIE_OK;
}

static selkie_code read_struct(sk_reader *reader, const sk_struct *type, json_object *object, void *base, int depth);

static selkie_code read_array(sk_reader *reader, const sk_field *field, json_object *value, void *base, int depth)
{
    if (json_object_get_type(value) != json_type_array)
        return wrong_type(reader, field, value);
    size_t count = json_object_array_length(value), size = field->of->size;
    if (count > SK_MAX_ELEMENTS)
        return sk_reader_fail(reader, NULL, "%zu elements are too many: at most %d", count, SK_MAX_ELEMENTS);
    if (field->of == &sk_shape_struct && depth >= SK_MAX_UNION_DEPTH)
        return sk_reader_fail(reader, NULL, "unions lie more than %d deep in each other", SK_MAX_UNION_DEPTH);
    char *elements = NULL;
    if (count > 0 && !(elements = sk_pool_take(reader->pool, count * size)))
        return sk_reader_no_memory(reader);
    for (size_t i = 0; i < count; i++) {
        size_t before = sk_path_index(&reader->path, (int)i);
        SK_TRY(read_struct(reader, field->of, json_object_array_get_idx(value, i), elements + i * size, depth + 1));
        sk_path_cut(&reader->path, before);
    }
    int number = (int)count;
    memcpy(sk_field_at(field, base), &elements, sizeof elements);
    memcpy((char *)base + field->count_offset, &number, sizeof number);
    return SELKIE_OK;
}

static selkie_code read_field(sk_reader *reader, const sk_field *field, json_object *value, void *base, int depth)
{
    double number;
    switch (field->type) {
    case SK_FIELD_BOOL:
        if (json_object_get_type(value) != json_type_boolean)
            return wrong_type(reader, field, value);
        sk_field_set_int(field, base, json_object_get_boolean(value) ? 1 : 0);
        return SELKIE_OK;
    case SK_FIELD_INTEGER:
        if (!get_integer(value, INT_MIN, INT_MAX, &number))
            return wrong_type(reader, field, value);
        sk_field_set_int(field, base, (int)number);
        return SELKIE_OK;
    case SK_FIELD_SEED:
        return read_seed(reader, field, value, base);
    case SK_FIELD_STRING:
    case SK_FIELD_FILE:
        return read_string(reader, field, value, base);
    case SK_FIELD_ENUM:
        return read_enum(reader, field, value, base);
    case SK_FIELD_STRUCT:
        return read_struct(reader, field->of, value, sk_field_at(field, base), depth);
    case SK_FIELD_ARRAY:
        return read_array(reader, field, value, base, depth);
    default:
        return read_numbers(reader, field, value, sk_field_at(field, base));
    }
}

/* --- Structs --- */

/* The keys of one variant: "min, max". */
static void list_keys(const sk_struct *type, int variant, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 0; i < type->field_count && used < size; i++) {
        const sk_field *field = &type->fields[i];
        if (field == type->variant || !sk_field_in_variant(field, variant))
            continue;
        int written = snprintf(buffer + used, size - used, "%s%s", used ? ", " : "", field->key);
        used += written > 0 ? (size_t)written : 0;
    }
}

static selkie_code unknown_key(sk_reader *reader, const sk_struct *type, int variant, const char *key)
{
    char hint[200];
    if (type->variant && sk_struct_find(type, key)) {
        char keys[200];
        list_keys(type, variant, keys, sizeof keys);
        return sk_reader_fail(reader, key, "a %s of type \"%s\" does not have this; it has %s", type->name,
                              sk_enum_name(type->variant->choices, variant), keys);
    }
    return sk_reader_fail(reader, key, "unknown key%s", sk_suggest_key(type, variant, key, hint, sizeof hint));
}

static selkie_code missing_key(sk_reader *reader, const sk_field *field)
{
    char expected[400];
    return sk_reader_fail(reader, NULL, "the key \"%s\" is missing: %s, %s", field->key,
                          sk_field_expected(field, reader->dimension, expected, sizeof expected), field->doc);
}

static selkie_code read_member(sk_reader *reader, const sk_field *field, json_object *value, void *base, int depth)
{
    size_t before = sk_path_key(&reader->path, field->key);
    SK_TRY(read_field(reader, field, value, base, depth));
    sk_path_cut(&reader->path, before);
    return SELKIE_OK;
}

static selkie_code read_struct(sk_reader *reader, const sk_struct *type, json_object *object, void *base, int depth)
{
    char shown[80];
    if (json_object_get_type(object) != json_type_object)
        return sk_reader_fail(reader, NULL, "%s does not fit: must be an object {...}",
                              sk_value_text(object, shown, sizeof shown));
    sk_struct_defaults(type, base, 0);

    /* The variant first: it decides which keys are allowed. */
    int variant = -1;
    json_object *value;
    if (type->variant) {
        if (!json_object_object_get_ex(object, type->variant->key, &value))
            return missing_key(reader, type->variant);
        SK_TRY(read_member(reader, type->variant, value, base, depth));
        variant = sk_field_int(type->variant, base);
    }

    /* Read the given keys. */
    json_object_object_foreach(object, key, member)
    {
        const sk_field *field = sk_struct_find(type, key);
        if (!field && type == &sk_scene_struct && strcmp(key, "$schema") == 0)
            continue; /* names the schema for editors */
        if (!field || !sk_field_in_variant(field, variant))
            return unknown_key(reader, type, variant, key);
        SK_TRY(read_member(reader, field, member, base, depth));
    }

    /* Find keys that are required but missing. */
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (field->required && sk_field_in_variant(field, variant) &&
            !json_object_object_get_ex(object, field->key, &value))
            return missing_key(reader, field);
    }
    return SELKIE_OK;
}

/* --- The older key "method" --- */

static selkie_code put_choice(sk_reader *reader, json_object *root, const char *key, const char *choice,
                              const char *method, int is_override)
{
    json_object *given;
    if (!is_override && json_object_object_get_ex(root, key, &given) &&
        json_object_get_type(given) == json_type_string && strcmp(json_object_get_string(given), choice) != 0) {
        char shown[80];
        return sk_reader_fail(reader, NULL,
                              "\"%s\" means %s \"%s\", but the scene also says \"%s\": %s; leave method out", method,
                              key, choice, key, sk_value_text(given, shown, sizeof shown));
    }
    json_object *string = json_object_new_string(choice);
    if (!string || json_object_object_add(root, key, string) != 0) {
        json_object_put(string);
        return sk_reader_no_memory(reader);
    }
    return SELKIE_OK;
}

selkie_code sk_reader_take_method(sk_reader *reader, json_object *root, json_object *value, int is_override)
{
    int method;
    size_t before = sk_path_key(&reader->path, sk_method_field.key);
    SK_TRY(read_enum(reader, &sk_method_field, value, &method));
    const char *name = sk_enum_name(sk_method_field.choices, method);
    const int sph = method == SELKIE_METHOD_SPH;
    SK_TRY(put_choice(reader, root, "discretization", sph ? "sph" : "grid", name, is_override));
    if (!sph)
        SK_TRY(put_choice(reader, root, "transfer", name, name, is_override));
    sk_path_cut(&reader->path, before);
    return SELKIE_OK;
}

/* Replaces the file's "method" by the keys that it stands for, before overrides change those. */
static selkie_code replace_method(sk_reader *reader, json_object *root)
{
    json_object *value;
    if (json_object_get_type(root) != json_type_object || !json_object_object_get_ex(root, sk_method_field.key, &value))
        return SELKIE_OK;
    SK_TRY(sk_reader_take_method(reader, root, value, 0));
    json_object_object_del(root, sk_method_field.key);
    return SELKIE_OK;
}

/* --- The scene --- */

/* Vectors may be shorter in 2D, so the dimension is read first. A bad one is reported when its key is read. */
static int find_dimension(json_object *root)
{
    json_object *domain, *value;
    double number;
    if (json_object_get_type(root) == json_type_object && json_object_object_get_ex(root, "domain", &domain) &&
        json_object_get_type(domain) == json_type_object && json_object_object_get_ex(domain, "dimension", &value) &&
        get_integer(value, 2, 2, &number))
        return 2;
    return 3;
}

static selkie_code read_scene(sk_reader *reader, json_object *root, const char *folder, selkie_scene *scene)
{
    SK_TRY(replace_method(reader, root));
    for (int i = 0; i < reader->override_count; i++)
        SK_TRY(sk_override_apply(reader, i, root));
    reader->dimension = find_dimension(root);
    SK_TRY(read_struct(reader, &sk_scene_struct, root, scene, 0));
    scene->owned = reader->pool;
    scene->folder = sk_pool_string(reader->pool, folder, strlen(folder));
    if (!scene->folder)
        return sk_reader_no_memory(reader);
    selkie_error inner;
    selkie_code code = sk_scene_check_at(scene, &reader->path, &inner);
    if (code == SELKIE_ERROR_MEMORY)
        return sk_reader_no_memory(reader);
    return code == SELKIE_OK ? code : sk_reader_fail(reader, NULL, "%s", inner.message);
}

selkie_code sk_scene_parse(const sk_scene_text *source, selkie_scene **scene, selkie_error *error)
{
    *scene = NULL;

    /* The text as JSON. */
    json_object *root;
    size_t offset;
    selkie_error inner;
    selkie_code code = sk_json_parse(source->text, source->length, &root, &offset, &inner);
    if (code != SELKIE_OK) {
        int line, column;
        sk_json_position(source->text, source->length, offset, &line, &column);
        return sk_fail(error, code, "%.300s:%d:%d: %s", source->name, line, column, inner.message);
    }

    /* JSON and overrides as a scene. */
    sk_reader reader = {
        .name = source->name, .text = source->text, .length = source->length, .dimension = 3, .error = error};
    selkie_scene *fresh = NULL;
    int override_count = source->override_count > 0 ? source->override_count : 0;
    reader.overrides = calloc((size_t)override_count + 1, sizeof *reader.overrides);
    if (reader.overrides)
        fresh = sk_scene_create(&reader.pool);
    if (fresh) {
        for (int i = 0; i < override_count; i++)
            reader.overrides[i].text = source->overrides[i];
        reader.override_count = override_count;
        code = read_scene(&reader, root, source->folder, fresh);
    } else {
        code = sk_reader_no_memory(&reader);
    }
    if (code == SELKIE_OK)
        *scene = fresh;
    else
        sk_pool_destroy(reader.pool);
    free(reader.overrides);
    json_object_put(root);
    return code;
}

/* --- The file --- */

enum { max_file_bytes = 64 << 20 };

static selkie_code file_failure(const char *path, int reason, selkie_error *error)
{
    char buffer[128];
    return sk_fail(error, SELKIE_ERROR_FILE, "%.300s: cannot be read: %s", path,
                   sk_file_reason(reason, buffer, sizeof buffer));
}

/* The whole file with a '\0' behind it. Read in pieces: pipes and devices have no length. */
static selkie_code read_bytes(int descriptor, const char *path, char **text, size_t *length, selkie_error *error)
{
    size_t capacity = 1 << 16, used = 0;
    char *buffer = malloc(capacity + 1);
    while (buffer) {
        ssize_t got = read(descriptor, buffer + used, capacity - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int reason = errno;
            free(buffer);
            return file_failure(path, reason, error);
        }

        used += (size_t)got;
        if (got == 0) {
            buffer[used] = 0;
            *text = buffer;
            *length = used;
            return SELKIE_OK;
        }
        if (used > max_file_bytes) {
            free(buffer);
            return sk_fail(error, SELKIE_ERROR_FORMAT, "%.300s: is larger than 64 MiB, which no scene file is", path);
        }
        if (used == capacity) {
            char *grown = realloc(buffer, 2 * capacity + 1);
            if (!grown)
                free(buffer);
            buffer = grown;
            capacity *= 2;
        }
    }
    return sk_fail(error, SELKIE_ERROR_MEMORY, "%.300s: not enough memory to read the file", path);
}

static selkie_code read_file(const char *path, char **text, size_t *length, selkie_error *error)
{
    if (!*path)
        return sk_fail(error, SELKIE_ERROR_FILE, "the name of the scene file is empty");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return file_failure(path, errno, error);
    struct stat status;
    selkie_code code;
    if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode))
        code = sk_fail(error, SELKIE_ERROR_FILE, "%.300s: is a folder: a scene file (.json) was expected", path);
    else
        code = read_bytes(descriptor, path, text, length, error);
    close(descriptor);
    if (code == SELKIE_OK && *length == 0) {
        free(*text);
        *text = NULL;
        return sk_fail(error, SELKIE_ERROR_FORMAT, "%.300s: is empty: a scene {...} was expected", path);
    }
    return code;
}

selkie_code selkie_scene_load(const char *path, int override_count, const char *const *overrides, selkie_scene **scene,
                              selkie_error *error)
{
    *scene = NULL;
    char *text = NULL;
    size_t length = 0;
    SK_TRY(read_file(path, &text, &length, error));

    /* Relative file names start at the folder of the scene. */
    const char *slash = strrchr(path, '/');
    size_t folder_length = slash ? (slash == path ? 1 : (size_t)(slash - path)) : 1;
    char *folder = malloc(folder_length + 1);
    selkie_code code;
    if (folder) {
        memcpy(folder, slash ? path : ".", folder_length);
        folder[folder_length] = 0;
        const sk_scene_text source = {.text = text,
                                      .length = length,
                                      .name = path,
                                      .folder = folder,
                                      .override_count = override_count,
                                      .overrides = overrides};
        code = sk_scene_parse(&source, scene, error);
    } else {
        code = sk_fail(error, SELKIE_ERROR_MEMORY, "%.300s: not enough memory to read the file", path);
    }
    free(folder);
    free(text);
    return code;
}

#else

selkie_code sk_scene_parse(const sk_scene_text *source, selkie_scene **scene, selkie_error *error)
{
    *scene = NULL;
    return sk_fail(error, SELKIE_ERROR_UNSUPPORTED,
                   "%.300s: this build reads no scene files: install libjson-c-dev and build again", source->name);
}

selkie_code selkie_scene_load(const char *path, int override_count, const char *const *overrides, selkie_scene **scene,
                              selkie_error *error)
{
    (void)override_count, (void)overrides;
    return sk_scene_parse(&(sk_scene_text){.text = "", .name = path, .folder = ""}, scene, error);
}

#endif

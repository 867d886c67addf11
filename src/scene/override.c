/* --set path.to.key=VALUE: changes the tree before it is read, so that an override passes the same checks as the file.
 *
 * The path is followed through the field table and the tree at once: the table has the keys and their types, and
 * missing members are added to the tree. */
#include "scene/reader.h"

#include "selkie_config.h"

#if SELKIE_HAVE_JSON

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "scene/json_text.h"

/* --- Suggestions --- */

/* Looks for the same key elsewhere in the scene, below `type`; the path to the first one found. */
static int find_elsewhere(const sk_struct *type, const char *key, sk_path *path)
{
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        size_t before = sk_path_key(path, field->key);
        if (strcmp(field->key, key) == 0)
            return 1;
        /* Not into the shapes of a union, which nest without limit. */
        if (field->of && !(type == &sk_shape_struct && field->of == type)) {
            if (field->type == SK_FIELD_ARRAY)
                sk_path_index(path, 0);
            if (find_elsewhere(field->of, key, path))
                return 1;
        }
        sk_path_cut(path, before);
    }
    return 0;
}

/* The path of what other programs call `key`; NULL if it is no such word. */
static const char *find_synonym(const char *key)
{
    static const char *const words[][2] = {{"duration", "time.end"},
                                           {"end_time", "time.end"},
                                           {"stop", "time.end"},
                                           {"dt", "time.step"},
                                           {"timestep", "time.step"},
                                           {"time_step", "time.step"},
                                           {"frame_rate", "time.fps"},
                                           {"framerate", "time.fps"},
                                           {"dx", "domain.cell_size"},
                                           {"voxel_size", "domain.cell_size"},
                                           {"spacing", "domain.cell_size"},
                                           {"bounds", "domain.size"},
                                           {"fluid", "liquids"},
                                           {"fluids", "liquids"},
                                           {"liquid", "liquids"},
                                           {"water", "liquids"},
                                           {"collider", "obstacles"},
                                           {"colliders", "obstacles"},
                                           {"solids", "obstacles"},
                                           {"emitter", "sources"},
                                           {"emitters", "sources"},
                                           {"inflow", "sources"},
                                           {"outflow", "drains"},
                                           {"rigid_bodies", "bodies"},
                                           {"nu", "viscosity"},
                                           {"mu", "dynamic_viscosity"},
                                           {"rho", "materials[0].density"},
                                           {"sigma", "surface_tension"},
                                           {"g", "gravity"}};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strcmp(words[w][0], key) == 0)
            return words[w][1];
    return NULL;
}

char *sk_suggest_key(const sk_struct *type, int variant, const char *key, char *buffer, size_t size)
{
    const char *nearest = NULL;
    int best = 100;
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        int distance = sk_edit_distance(key, field->key);
        if (distance < best && sk_is_near(key, field->key) && (variant < 0 || sk_field_in_variant(field, variant))) {
            best = distance;
            nearest = field->key;
        }
    }
    const char *synonym = find_synonym(key);
    sk_path path = {0};
    if (nearest)
        snprintf(buffer, size, "; did you mean \"%s\"?", nearest);
    else if (synonym)
        snprintf(buffer, size, "; did you mean \"%s\"?", synonym);
    else if (find_elsewhere(&sk_scene_struct, key, &path))
        snprintf(buffer, size, "; did you mean \"%.150s\"?", path.text);
    else
        buffer[0] = 0;
    return buffer;
}

/* --- Following a path --- */

typedef struct walk {
    sk_reader *reader;
    sk_override *override;
    const char *rest;  /* remaining part of the path */
    const char *value; /* after the '=' */
    json_object *root;
} walk;

__attribute__((format(printf, 2, 3))) static selkie_code fail(walk *w, const char *format, ...)
{
    char message[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sk_fail(w->reader->error, SELKIE_ERROR_INPUT, "--set %.200s%s: %s", w->override->text,
                   strlen(w->override->text) > 200 ? "..." : "", message);
}

/* A part of a path: a key, or an index written [2] or .2. */
typedef struct step {
    char key[64];
    int index; /* -1 = a key */
} step;

static int at_end(const walk *w)
{
    return *w->rest == '=';
}

static selkie_code next_step(walk *w, step *s)
{
    int bracket = *w->rest == '[';
    int first = w->override->path.length == 0;
    int separated = first ? !bracket : bracket || *w->rest == '.';
    if (separated && !first)
        w->rest++;
    size_t length = strcspn(w->rest, ".[]=");
    if (!separated || length == 0 || length >= sizeof s->key || (bracket && w->rest[length] != ']') ||
        (!bracket && w->rest[length] == ']'))
        return fail(w, "the path cannot be read at \"%.40s\": must look like liquids[0].velocity=VALUE", w->rest);
    memcpy(s->key, w->rest, length);
    s->key[length] = 0;
    w->rest += length + (size_t)bracket;
    s->index = -1;
    int is_number = strspn(s->key, "0123456789") == length;
    if (bracket && !is_number)
        return fail(w, "\"%s\" is no index: must be a whole number from 0", s->key);
    if (is_number)
        s->index = length > 7 ? SK_MAX_ELEMENTS : atoi(s->key);
    return SELKIE_OK;
}

/* The value as JSON. Strings need no quotes: the value of a string field is always a string. */
static selkie_code parse_value(walk *w, const sk_field *field, int component, json_object **value)
{
    size_t offset;
    selkie_error inner;
    selkie_code code = sk_json_parse(w->value, strlen(w->value), value, &offset, &inner);
    int textual =
        field && (field->type == SK_FIELD_STRING || field->type == SK_FIELD_FILE || field->type == SK_FIELD_ENUM);
    if (textual && (code != SELKIE_OK || json_object_get_type(*value) != json_type_string)) {
        if (code == SELKIE_OK)
            json_object_put(*value);
        *value = json_object_new_string(w->value);
        return *value ? SELKIE_OK : sk_reader_no_memory(w->reader);
    }
    if (code != SELKIE_OK) {
        char expected[400] = "an object {...}", shown[80];
        if (component)
            snprintf(expected, sizeof expected, "a number");
        else if (field)
            sk_field_expected(field, w->reader->dimension, expected, sizeof expected);
        return fail(w, "%s does not fit: must be %s", sk_quote(shown, sizeof shown, w->value), expected);
    }
    return SELKIE_OK;
}

static selkie_code set_member(walk *w, json_object *object, const sk_field *field)
{
    json_object *value;
    SK_TRY(parse_value(w, field, 0, &value));
    if (json_object_object_add(object, field->key, value) != 0) {
        json_object_put(value);
        return sk_reader_no_memory(w->reader);
    }
    return SELKIE_OK;
}

/* Whether another --set gives the key `sibling` beside the one that this path ends with. */
static int is_set_elsewhere(const walk *w, const char *sibling)
{
    const char *text = w->override->text, *equals = strchr(text, '=');
    size_t parent = (size_t)(equals - text);
    while (parent > 0 && text[parent - 1] != '.')
        parent--;
    size_t length = strlen(sibling);
    for (int i = 0; i < w->reader->override_count; i++) {
        const char *other = w->reader->overrides[i].text;
        if (strncmp(other, text, parent) == 0 && strncmp(other + parent, sibling, length) == 0 &&
            other[parent + length] == '=')
            return 1;
    }
    return 0;
}

/* The array behind a vector's key. Missing components come from the defaults; a single number for all components is
 * expanded. */
static selkie_code enter_components(walk *w, json_object *object, const sk_field *field, json_object **array)
{
    json_object *given;
    int present = json_object_object_get_ex(object, field->key, &given);
    json_type type = json_object_get_type(given);
    if (present && type == json_type_array) {
        *array = given;
        return SELKIE_OK;
    }
    if (present && type != json_type_int && type != json_type_double) {
        char shown[80];
        return fail(w, "%s is %s in the file: must be an array of numbers", w->override->path.text,
                    sk_value_text(given, shown, sizeof shown));
    }
    *array = json_object_new_array();
    for (int i = 0; *array && i < sk_field_components(field); i++) {
        int from_file = present && (field->type != SK_FIELD_ROTATION || i == 2);
        json_object_array_add(*array,
                              json_object_new_double(from_file ? json_object_get_double(given) : field->initial[i]));
    }
    if (!*array || json_object_object_add(object, field->key, *array) != 0)
        return sk_reader_no_memory(w->reader);
    return SELKIE_OK;
}

/* One component of a vector: gravity[1]. */
static selkie_code set_component(walk *w, json_object *object, const sk_field *field)
{
    step s;
    SK_TRY(next_step(w, &s));
    int components = sk_field_components(field);
    if (s.index < 0 || s.index >= components || !at_end(w))
        return fail(w, "%s has the parts 0 to %d", w->override->path.text, components - 1);
    json_object *array = NULL, *value = NULL;
    SK_TRY(enter_components(w, object, field, &array));
    sk_path_index(&w->override->path, s.index);
    SK_TRY(parse_value(w, field, 1, &value));
    if (json_object_array_put_idx(array, (size_t)s.index, value) != 0) {
        json_object_put(value);
        return sk_reader_no_memory(w->reader);
    }
    return SELKIE_OK;
}

/* The object of `key`, created if there is none. */
static selkie_code enter_object(walk *w, json_object *object, const char *key, json_object **inner)
{
    char shown[80];
    if (!json_object_object_get_ex(object, key, inner)) {
        *inner = json_object_new_object();
        if (!*inner || json_object_object_add(object, key, *inner) != 0)
            return sk_reader_no_memory(w->reader);
    }
    if (json_object_get_type(*inner) != json_type_object)
        return fail(w, "%s is %s in the file: must be an object {...}", w->override->path.text,
                    sk_value_text(*inner, shown, sizeof shown));
    return SELKIE_OK;
}

/* The element of an array that the path names; the one after the last is created. At the path's end it is set, and
 * *element becomes NULL. */
static selkie_code enter_element(walk *w, json_object *object, const sk_field *field, json_object **element)
{
    char shown[80];
    json_object *array;
    if (!json_object_object_get_ex(object, field->key, &array)) {
        array = json_object_new_array();
        if (!array || json_object_object_add(object, field->key, array) != 0)
            return sk_reader_no_memory(w->reader);
    }
    if (json_object_get_type(array) != json_type_array)
        return fail(w, "%s is %s in the file: must be an array", w->override->path.text,
                    sk_value_text(array, shown, sizeof shown));

    /* The index. */
    step s;
    SK_TRY(next_step(w, &s));
    size_t count = json_object_array_length(array);
    if (s.index < 0)
        return fail(w, "\"%s\" is no index: %s is an array, write %s[0].%s", s.key, w->override->path.text,
                    w->override->path.text, s.key);
    if ((size_t)s.index > count)
        return fail(w, "%s has %zu element%s: the index must be 0 to %zu, %zu adds one", w->override->path.text, count,
                    count == 1 ? "" : "s", count, count);
    sk_path_index(&w->override->path, s.index);

    /* The element: set at the end of the path, created behind the last one. */
    json_object *value = NULL;
    *element = NULL;
    if (at_end(w))
        SK_TRY(parse_value(w, NULL, 0, &value));
    else if ((size_t)s.index == count && !(value = json_object_new_object()))
        return sk_reader_no_memory(w->reader);
    if ((at_end(w) || (size_t)s.index == count) && json_object_array_put_idx(array, (size_t)s.index, value) != 0) {
        json_object_put(value);
        return sk_reader_no_memory(w->reader);
    }
    if (at_end(w))
        return SELKIE_OK;

    *element = json_object_array_get_idx(array, (size_t)s.index);
    if (json_object_get_type(*element) != json_type_object)
        return fail(w, "%s is %s in the file: must be an object {...}", w->override->path.text,
                    sk_value_text(*element, shown, sizeof shown));
    return SELKIE_OK;
}

static selkie_code unknown_key(walk *w, const sk_struct *type, const char *key)
{
    char hint[200], quoted[100];
    return fail(w, "unknown key %s%s%s%s", sk_quote(quoted, sizeof quoted, key), w->override->path.length ? " of " : "",
                w->override->path.text, sk_suggest_key(type, -1, key, hint, sizeof hint));
}

/* Whether --set gives `key`, at the top of the scene, a value other than `choice`; the text of it, or NULL. */
static const char *find_other(const sk_reader *reader, const char *key, const char *choice)
{
    size_t length = strlen(key);
    for (int i = 0; i < reader->override_count; i++) {
        const char *text = reader->overrides[i].text, *value = text + length + 1;
        if (strncmp(text, key, length) != 0 || text[length] != '=')
            continue;
        size_t quote = *value == '"';
        if (strncmp(value + quote, choice, strlen(choice)) != 0 || strlen(value) != strlen(choice) + 2 * quote)
            return text;
    }
    return NULL;
}

/* --set method=VALUE, the older word for two keys. Beside another --set of one of them it must mean the same. */
static selkie_code set_method(walk *w)
{
    json_object *value;
    sk_path_key(&w->override->path, sk_method_field.key);
    SK_TRY(parse_value(w, &sk_method_field, 0, &value));
    const char *method = json_object_get_string(value);
    const int sph = strcmp(method, "sph") == 0;
    const char *other = find_other(w->reader, "discretization", sph ? "sph" : "grid");
    if (!other && !sph)
        other = find_other(w->reader, "transfer", method);
    if (other && sk_enum_find(sk_method_field.choices, method)) {
        json_object_put(value);
        return fail(w, "contradicts --set %.80s: give discretization and transfer, and leave method out", other);
    }
    selkie_code code = sk_reader_take_method(w->reader, w->root, value, 1);
    json_object_put(value);
    return code;
}

static selkie_code follow(walk *w)
{
    const sk_struct *type = &sk_scene_struct;
    json_object *object = w->root;
    while (object) {
        step s;
        SK_TRY(next_step(w, &s));

        /* Find the field. At the top, the key may also be the older `method`. */
        const sk_field *field = s.index < 0 ? sk_struct_find(type, s.key) : NULL;
        if (!field && object == w->root && at_end(w) && strcmp(s.key, sk_method_field.key) == 0)
            return set_method(w);
        if (!field)
            return unknown_key(w, type, s.key);
        sk_path_key(&w->override->path, field->key);

        /* The last part of the path sets a value. */
        if (at_end(w)) {
            if (field->replaces && !is_set_elsewhere(w, field->replaces))
                json_object_object_del(object, field->replaces);
            return set_member(w, object, field);
        }
        if (sk_field_components(field) > 1)
            return set_component(w, object, field);

        /* The other parts lead into an object or an array. */
        if (field->type == SK_FIELD_STRUCT)
            SK_TRY(enter_object(w, object, field->key, &object));
        else if (field->type == SK_FIELD_ARRAY)
            SK_TRY(enter_element(w, object, field, &object));
        else
            return fail(w, "%s has no parts", w->override->path.text);
        type = field->of;
    }
    return SELKIE_OK;
}

selkie_code sk_override_apply(sk_reader *reader, int index, json_object *root)
{
    sk_override *override = &reader->overrides[index];
    walk w = {.reader = reader, .override = override, .rest = override->text, .root = root};
    const char *equals = strchr(override->text, '=');
    if (!equals || equals == override->text)
        return fail(&w, "must look like path.to.key=VALUE");
    w.value = equals + 1;
    if (json_object_get_type(root) != json_type_object)
        return SELKIE_OK; /* the reader will say so */
    return follow(&w);
}

#endif

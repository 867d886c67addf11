/* The JSON Schema. A struct becomes a definition that the fields refer to; a struct with variants becomes one
 * definition a variant, of which exactly one must fit, so that editors offer only the keys of the chosen type.
 */
#include "defs/describe.h"

#include <string.h>

#include "defs/fields.h"
#include "defs/structs.h"
#include "defs/text.h"

typedef struct schema {
    FILE *out;
    int indent;
    int started; /* the object or array has a member: a comma comes next */
} schema;

static void item(schema *s)
{
    fputs(s->started ? ",\n" : "\n", s->out);
    for (int i = 0; i < s->indent; i++)
        fputs("  ", s->out);
    s->started = 1;
}

static void text(schema *s, const char *value)
{
    char quoted[1024];
    fputs(sk_quote(quoted, sizeof quoted, value), s->out);
}

static void key(schema *s, const char *name)
{
    item(s);
    text(s, name);
    fputs(": ", s->out);
}

static void open_bracket(schema *s, char bracket)
{
    fputc(bracket, s->out);
    s->indent++;
    s->started = 0;
}

static void close_bracket(schema *s, char bracket)
{
    s->indent--;
    s->started = 0;
    item(s);
    fputc(bracket, s->out);
}

static void number(schema *s, double value)
{
    char buffer[40];
    fputs(sk_number_text(buffer, sizeof buffer, value), s->out);
}

static void string_member(schema *s, const char *name, const char *value)
{
    key(s, name);
    text(s, value);
}

static void number_member(schema *s, const char *name, double value)
{
    key(s, name);
    number(s, value);
}

/* --- Fields --- */

static void bounds(schema *s, const sk_field *field)
{
    number_member(s, field->low_open ? "exclusiveMinimum" : "minimum", field->low);
    number_member(s, field->high_open ? "exclusiveMaximum" : "maximum", field->high);
}

/* {"type": "array", "items": {number}, "minItems": .., "maxItems": ..} */
static void number_array(schema *s, const sk_field *field, int fewest, int most)
{
    string_member(s, "type", "array");
    key(s, "items");
    open_bracket(s, '{');
    string_member(s, "type", "number");
    bounds(s, field);
    close_bracket(s, '}');
    number_member(s, "minItems", fewest);
    number_member(s, "maxItems", most);
}

static void number_or_array(schema *s, const sk_field *field, int fewest, int most)
{
    key(s, "anyOf");
    open_bracket(s, '[');
    item(s);
    open_bracket(s, '{');
    string_member(s, "type", "number");
    bounds(s, field);
    close_bracket(s, '}');
    item(s);
    open_bracket(s, '{');
    number_array(s, field, fewest, most);
    close_bracket(s, '}');
    close_bracket(s, ']');
}

static void choices(schema *s, const sk_field *field)
{
    key(s, "enum");
    open_bracket(s, '[');
    for (int i = 0; i < field->choices->count; i++) {
        item(s);
        text(s, field->choices->values[i].name);
    }
    close_bracket(s, ']');
}

static void reference(schema *s, const sk_struct *type)
{
    char target[64];
    snprintf(target, sizeof target, "#/$defs/%s", type->name);
    string_member(s, "$ref", target);
}

static void kind(schema *s, const sk_field *field)
{
    switch (field->type) {
    case SK_FIELD_BOOL:
        string_member(s, "type", "boolean");
        break;
    case SK_FIELD_INTEGER:
        string_member(s, "type", "integer");
        bounds(s, field);
        break;
    case SK_FIELD_SEED:
        string_member(s, "type", "integer");
        number_member(s, "minimum", 0);
        key(s, "maximum");
        fputs("18446744073709551615", s->out);
        break;
    case SK_FIELD_NUMBER:
        string_member(s, "type", "number");
        bounds(s, field);
        break;
    case SK_FIELD_VECTOR:
        number_array(s, field, field->whole ? 3 : 2, 3);
        break;
    case SK_FIELD_ROTATION:
        number_or_array(s, field, 3, 3);
        break;
    case SK_FIELD_SCALE:
        number_or_array(s, field, 2, 3);
        break;
    case SK_FIELD_MATRIX:
        number_array(s, field, 4, 9);
        break;
    case SK_FIELD_STRING:
    case SK_FIELD_FILE:
        string_member(s, "type", "string");
        break;
    case SK_FIELD_ENUM:
        choices(s, field);
        break;
    case SK_FIELD_STRUCT:
        reference(s, field->of);
        break;
    case SK_FIELD_ARRAY:
        string_member(s, "type", "array");
        number_member(s, "maxItems", SK_MAX_ELEMENTS);
        key(s, "items");
        open_bracket(s, '{');
        reference(s, field->of);
        close_bracket(s, '}');
        break;
    }
}

static void default_value(schema *s, const sk_field *field)
{
    int components = sk_field_components(field);
    if (field->required || field->type == SK_FIELD_STRUCT || field->type == SK_FIELD_ARRAY)
        return;
    key(s, "default");
    if (components > 1) {
        fputc('[', s->out);
        for (int i = 0; i < components; i++) {
            fputs(i ? ", " : "", s->out);
            number(s, field->initial[i]);
        }
        fputc(']', s->out);
    } else if (field->type == SK_FIELD_ENUM) {
        text(s, sk_enum_name(field->choices, (int)field->initial[0]));
    } else if (field->type == SK_FIELD_BOOL) {
        fputs(field->initial[0] != 0 ? "true" : "false", s->out);
    } else if (field->text) {
        text(s, field->text);
    } else {
        number(s, field->initial[0]);
    }
}

static void description(schema *s, const sk_field *field)
{
    char buffer[800];
    size_t used = (size_t)snprintf(buffer, sizeof buffer, "%s%s%s%s%s", field->doc, field->unit ? " [" : "",
                                   field->unit ? field->unit : "", field->unit ? "]" : "",
                                   field->dimension == 3 ? " (3D only)" : "");
    if (field->type == SK_FIELD_ENUM)
        for (int i = 0; i < field->choices->count && used < sizeof buffer; i++)
            used += (size_t)snprintf(buffer + used, sizeof buffer - used, "%s%s = %s", i ? "; " : ": ",
                                     field->choices->values[i].name, field->choices->values[i].doc);
    string_member(s, "description", buffer);
}

/* --- Structs --- */

/* The members of an object schema; `variant` -1 = it has none. */
static void object(schema *s, const sk_struct *type, int variant)
{
    string_member(s, "type", "object");

    /* The keys. */
    key(s, "properties");
    open_bracket(s, '{');
    if (type == &sk_scene_struct) {
        key(s, "$schema");
        fputs("{\"type\": \"string\", \"description\": \"where this schema lies, for editors\"}", s->out);
    }
    if (type == &sk_scene_struct) {
        key(s, sk_method_field.key);
        open_bracket(s, '{');
        choices(s, &sk_method_field);
        key(s, "deprecated");
        fputs("true", s->out);
        description(s, &sk_method_field);
        close_bracket(s, '}');
    }
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (variant >= 0 && !sk_field_in_variant(field, variant))
            continue;
        key(s, field->key);
        open_bracket(s, '{');
        if (field == type->variant)
            string_member(s, "const", sk_enum_name(field->choices, variant));
        else
            kind(s, field);
        default_value(s, field);
        description(s, field);
        close_bracket(s, '}');
    }
    close_bracket(s, '}');

    /* Those that must be given, and no others. */
    int required = 0;
    for (int i = 0; i < type->field_count; i++) {
        const sk_field *field = &type->fields[i];
        if (!field->required || (variant >= 0 && !sk_field_in_variant(field, variant)))
            continue;
        if (!required++) {
            key(s, "required");
            fputc('[', s->out);
        } else {
            fputs(", ", s->out);
        }
        text(s, field->key);
    }
    if (required)
        fputc(']', s->out);
    key(s, "additionalProperties");
    fputs("false", s->out);
}

static void definition(schema *s, const sk_struct *type)
{
    key(s, type->name);
    open_bracket(s, '{');
    string_member(s, "description", type->doc);
    if (type->variant) {
        key(s, "oneOf");
        open_bracket(s, '[');
        const sk_enum *variants = type->variant->choices;
        for (int i = 0; i < variants->count; i++) {
            item(s);
            open_bracket(s, '{');
            string_member(s, "title", variants->values[i].name);
            string_member(s, "description", variants->values[i].doc);
            object(s, type, variants->values[i].value);
            close_bracket(s, '}');
        }
        close_bracket(s, ']');
    } else {
        object(s, type, -1);
    }
    close_bracket(s, '}');
}

/* Every struct that a struct refers to, each once, in the order of its first use. */
static int collect(const sk_struct *type, const sk_struct **list, int count, int room)
{
    for (int i = 0; i < type->field_count; i++) {
        const sk_struct *of = type->fields[i].of;
        int known = !of || count == room;
        for (int k = 0; k < count && !known; k++)
            known = list[k] == of;
        if (known)
            continue;
        list[count++] = of;
        count = collect(of, list, count, room);
    }
    return count;
}

selkie_code sk_scene_schema_write(FILE *stream)
{
    enum { room = 64 };
    const sk_struct *list[room];
    int count = collect(&sk_scene_struct, list, 0, room);
    schema s = {.out = stream};
    open_bracket(&s, '{');
    string_member(&s, "$schema", "https://json-schema.org/draft/2020-12/schema");
    string_member(&s, "title", "Selkie scene");
    string_member(&s, "description",
                  "Keys of a scene file. Metres, seconds, kilograms. Comments and trailing commas are allowed. In 2D "
                  "vectors may have two numbers and rotations be a single one.");
    object(&s, &sk_scene_struct, -1);
    key(&s, "$defs");
    open_bracket(&s, '{');
    for (int i = 0; i < count; i++)
        definition(&s, list[i]);
    close_bracket(&s, '}');
    close_bracket(&s, '}');
    fputc('\n', stream);
    return fflush(stream) != 0 || ferror(stream) ? SELKIE_ERROR_FILE : SELKIE_OK;
}

/* The reference of scene files in Markdown: a heading and a table for each struct, in the order of its first use. */
#include "defs/describe.h"

#include <string.h>

#include "defs/fields.h"
#include "defs/structs.h"
#include "defs/text.h"

static void number(FILE *out, double value)
{
    char buffer[40];
    fputs(sk_number_text(buffer, sizeof buffer, value), out);
}

/* A vector with equal components is written as one number. */
static void write_numbers(FILE *out, const sk_field *field)
{
    int components = sk_field_components(field), uniform = 1;
    for (int i = 1; i < components; i++)
        uniform &= field->initial[i] == field->initial[0];
    fputs(uniform ? "`" : "`[", out);
    for (int i = 0; i < (uniform ? 1 : components); i++) {
        fputs(i ? ", " : "", out);
        number(out, field->initial[i]);
    }
    fputs(uniform ? "`" : "]`", out);
}

static void write_default(FILE *out, const sk_field *field)
{
    if (field->required)
        fputs("required", out);
    else if (field->type == SK_FIELD_STRUCT || field->type == SK_FIELD_ARRAY)
        fputs(field->type == SK_FIELD_ARRAY ? "`[]`" : "", out);
    else if (field->type == SK_FIELD_ENUM)
        fprintf(out, "`\"%s\"`", sk_enum_name(field->choices, (int)field->initial[0]));
    else if (field->type == SK_FIELD_BOOL)
        fputs(field->initial[0] != 0 ? "`true`" : "`false`", out);
    else if (field->text)
        fprintf(out, "`\"%s\"`", field->text);
    else
        write_numbers(out, field);
}

static void write_type(FILE *out, const sk_field *field)
{
    static const char *const names[] = {
        [SK_FIELD_BOOL] = "true or false", [SK_FIELD_INTEGER] = "integer", [SK_FIELD_SEED] = "integer",
        [SK_FIELD_NUMBER] = "number",      [SK_FIELD_VECTOR] = "vector",   [SK_FIELD_ROTATION] = "rotation",
        [SK_FIELD_SCALE] = "scale",        [SK_FIELD_MATRIX] = "matrix",   [SK_FIELD_STRING] = "string",
        [SK_FIELD_FILE] = "file name",     [SK_FIELD_ENUM] = "choice",
    };
    if (field->type == SK_FIELD_STRUCT)
        fprintf(out, "[%s](#%s)", field->of->name, field->of->name);
    else if (field->type == SK_FIELD_ARRAY)
        fprintf(out, "array of [%s](#%s)", field->of->name, field->of->name);
    else
        fputs(names[field->type], out);
}

/* Bounds that say something. */
static void write_range(FILE *out, const sk_field *field)
{
    int numeric = field->type == SK_FIELD_INTEGER || sk_field_components(field) > 0;
    if (!numeric || (field->low <= -SK_LARGEST_NUMBER && field->high >= SK_LARGEST_NUMBER))
        return;
    sk_field plain = *field;
    char bounds[128];
    plain.unit = NULL;
    fprintf(out, "; %s", sk_field_bounds_text(&plain, bounds, sizeof bounds));
}

static void write_row(FILE *out, const sk_struct *type, const sk_field *field)
{
    fprintf(out, "| `%s` | ", field->key);
    write_type(out, field);
    fprintf(out, " | %s | ", field->unit ? field->unit : "");
    write_default(out, field);
    fputs(" | ", out);

    /* Variants that have the key. */
    if (type->variant && field->variants) {
        const sk_enum *variants = type->variant->choices;
        int first = 1;
        for (int i = 0; i < variants->count; i++)
            if (sk_field_in_variant(field, variants->values[i].value)) {
                fprintf(out, "%s%s", first ? "*" : ", ", variants->values[i].name);
                first = 0;
            }
        fputs(":* ", out);
    }

    /* Meaning, range and choices. */
    fputs(field->doc, out);
    write_range(out, field);
    if (field->dimension == 3)
        fputs("; 3D only", out);
    if (field->type == SK_FIELD_ENUM)
        for (int i = 0; i < field->choices->count; i++) {
            const char *doc = field->choices->values[i].doc;
            fprintf(out, "%s`\"%s\"` ", i ? "; " : ": ", field->choices->values[i].name);
            for (; *doc; doc++) {
                if (*doc == '|') /* would end the cell */
                    fputc('\\', out);
                fputc(*doc, out);
            }
        }
    fputs(" |\n", out);
}

static void write_struct(FILE *out, const sk_struct *type)
{
    fprintf(out, "\n### %s\n\n%s\n\n| key | type | unit | default | meaning |\n| --- | --- | --- | --- | --- |\n",
            type->name, type->doc);
    for (int i = 0; i < type->field_count; i++)
        write_row(out, type, &type->fields[i]);
}

selkie_code sk_scene_reference_write(FILE *stream)
{
    enum { room = 64 };
    const sk_struct *structs[room];
    int count = sk_scene_structs(structs, room);
    for (int s = 0; s < count; s++)
        write_struct(stream, structs[s]);
    return fflush(stream) != 0 || ferror(stream) ? SELKIE_ERROR_FILE : SELKIE_OK;
}

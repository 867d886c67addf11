/* All keys of scene files for the command: names for its help, a table in plain text, a section of the manual page. */
#include "defs/describe.h"

#include <string.h>

#include "defs/structs.h"
#include "defs/text.h"

static void add_below(const sk_struct *type, const sk_struct **structs, int *count, int room)
{
    for (int i = 0; i < type->field_count; i++) {
        const sk_struct *of = type->fields[i].of;
        int known = !of || *count == room;
        for (int k = 0; k < *count && !known; k++)
            known = structs[k] == of;
        if (known)
            continue;
        structs[(*count)++] = of;
        add_below(of, structs, count, room);
    }
}

int sk_scene_structs(const sk_struct **structs, int room)
{
    int count = 0;
    if (room > 0)
        structs[count++] = &sk_scene_struct;
    add_below(&sk_scene_struct, structs, &count, room);
    return count;
}

/* Kind, unit, default, range and choices of a key: "m; default 0; at least 0". */
static void write_facts(FILE *out, const sk_field *field)
{
    char text[128];
    const char *between = "";
    if (field->unit) {
        fprintf(out, "%s", field->unit);
        between = "; ";
    }

    /* Default, unless the key is required. */
    if (field->required) {
        fprintf(out, "%srequired", between);
        between = "; ";
    } else if (field->type == SK_FIELD_ENUM) {
        fprintf(out, "%sdefault %s", between, sk_enum_name(field->choices, (int)field->initial[0]));
        between = "; ";
    } else if (field->type == SK_FIELD_BOOL) {
        fprintf(out, "%sdefault %s", between, field->initial[0] != 0 ? "true" : "false");
        between = "; ";
    } else if (sk_field_components(field) || field->type == SK_FIELD_INTEGER || field->type == SK_FIELD_SEED) {
        fprintf(out, "%sdefault", between);
        int components = sk_field_components(field) > 1 ? sk_field_components(field) : 1, last = components - 1;
        while (last > 0 && field->initial[last] == field->initial[0])
            last--;
        for (int i = 0; i < (last ? components : 1); i++)
            fprintf(out, " %s", sk_number_text(text, sizeof text, field->initial[i]));
        between = "; ";
    }

    /* Choices of an enumeration. */
    if (field->type == SK_FIELD_ENUM) {
        fprintf(out, "%sone of", between);
        for (int i = 0; i < field->choices->count; i++)
            fprintf(out, "%s %s", i ? "," : "", field->choices->values[i].name);
    }
}

selkie_code sk_scene_keys_write(FILE *stream)
{
    enum { room = 64 };
    const sk_struct *structs[room];
    int count = sk_scene_structs(structs, room);
    for (int s = 0; s < count; s++) {
        fprintf(stream, "%s%s: %s\n", s ? "\n" : "", structs[s]->name, structs[s]->doc);
        for (int i = 0; i < structs[s]->field_count; i++) {
            const sk_field *field = &structs[s]->fields[i];
            fprintf(stream, "  %-22s%s", field->key, field->doc);
            int has_facts = !field->of || field->required || field->unit;
            if (has_facts && field->type != SK_FIELD_STRING && field->type != SK_FIELD_FILE) {
                fputs(" (", stream);
                write_facts(stream, field);
                fputs(")", stream);
            }
            fputc('\n', stream);
        }
    }
    return fflush(stream) != 0 || ferror(stream) ? SELKIE_ERROR_FILE : SELKIE_OK;
}

selkie_code sk_scene_manual_write(FILE *stream)
{
    enum { room = 64 };
    const sk_struct *structs[room];
    int count = sk_scene_structs(structs, room);
    for (int s = 0; s < count; s++) {
        fprintf(stream, ".Ss %s\n%s\n.Bl -tag -width Ds -compact\n", structs[s]->name, structs[s]->doc);
        for (int i = 0; i < structs[s]->field_count; i++) {
            const sk_field *field = &structs[s]->fields[i];
            fprintf(stream, ".It Cm %s\n%s.\n", field->key, field->doc);
            if (!field->of && field->type != SK_FIELD_STRING && field->type != SK_FIELD_FILE) {
                fputc('[', stream);
                write_facts(stream, field);
                fputs("]\n", stream);
            }
        }
        fputs(".El\n", stream);
    }
    return fflush(stream) != 0 || ferror(stream) ? SELKIE_ERROR_FILE : SELKIE_OK;
}

/* Access to the fields of a struct by their rows (see fields.h; the rows are in keys_*.c). */
#include "defs/fields.h"

#include <string.h>

/* Enumerations and ints are read and written through memcpy: the compiler chooses an enumeration's type. The assertion
 * below checks that its size is an int's. */
_Static_assert(sizeof(selkie_wall) == sizeof(int), "enumerations are stored as int");

int sk_field_int(const sk_field *field, const void *base)
{
    int value;
    memcpy(&value, sk_field_in(field, base), sizeof value);
    return value;
}

void sk_field_set_int(const sk_field *field, void *base, int value)
{
    memcpy(sk_field_at(field, base), &value, sizeof value);
}

uint64_t sk_field_seed(const sk_field *field, const void *base)
{
    uint64_t value;
    memcpy(&value, sk_field_in(field, base), sizeof value);
    return value;
}

const char *sk_field_string(const sk_field *field, const void *base)
{
    const char *value;
    memcpy(&value, sk_field_in(field, base), sizeof value);
    return value ? value : "";
}

int sk_field_components(const sk_field *field)
{
    switch (field->type) {
    case SK_FIELD_NUMBER:
        return 1;
    case SK_FIELD_VECTOR:
    case SK_FIELD_ROTATION:
    case SK_FIELD_SCALE:
        return 3;
    case SK_FIELD_MATRIX:
        return 9;
    default:
        return 0;
    }
}

const double *sk_field_numbers(const sk_field *field, const void *base)
{
    return sk_field_in(field, base);
}

int sk_field_count(const sk_field *field, const void *base)
{
    int count;
    memcpy(&count, (const char *)base + field->count_offset, sizeof count);
    return count;
}

const void *sk_field_elements(const sk_field *field, const void *base)
{
    const void *elements;
    memcpy(&elements, sk_field_in(field, base), sizeof elements);
    return elements;
}

const sk_field *sk_struct_find(const sk_struct *type, const char *key)
{
    for (int i = 0; i < type->field_count; i++)
        if (strcmp(type->fields[i].key, key) == 0)
            return &type->fields[i];
    return NULL;
}

int sk_field_in_variant(const sk_field *field, int value)
{
    return !field->variants || (value >= 0 && value < 32 && (field->variants >> value & 1));
}

int sk_struct_uses(const sk_struct *type, const sk_field *field, const void *base)
{
    return !type->variant || sk_field_in_variant(field, sk_field_int(type->variant, base));
}

const sk_enum_value *sk_enum_find(const sk_enum *choices, const char *name)
{
    for (int i = 0; i < choices->count; i++)
        if (strcmp(choices->values[i].name, name) == 0)
            return &choices->values[i];
    return NULL;
}

const char *sk_enum_name(const sk_enum *choices, int value)
{
    for (int i = 0; i < choices->count; i++)
        if (choices->values[i].value == value)
            return choices->values[i].name;
    return NULL;
}

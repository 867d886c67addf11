/* Short forms for the rows of the field table (fields.h), for the files that hold rows. */
#ifndef SK_DEFS_ROWS_H
#define SK_DEFS_ROWS_H

#include "defs/fields.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define CHOICES(name) static const sk_enum name = {COUNT(name##_values), name##_values}

/* Bounds of a row. */
#define BETWEEN(minimum, maximum) .low = (minimum), .high = (maximum)
#define AT_LEAST(minimum) .low = (minimum), .high = SK_LARGEST_NUMBER
#define ABOVE(minimum) .low = (minimum), .high = SK_LARGEST_NUMBER, .low_open = 1
/* Below this, the masses of particles leave single precision. Thin gases are denser. */
#define DENSITY AT_LEAST(0.001), .unit = "kg/m3"
#define ANY .low = -SK_LARGEST_NUMBER, .high = SK_LARGEST_NUMBER

/* Beginnings of a row; the rest follows as designated initialisers. */
#define ROW(owner, member, kind) .key = #member, .type = kind, .offset = offsetof(owner, member)
#define BOOL(owner, member, value) ROW(owner, member, SK_FIELD_BOOL), .initial = {value}, .low = 0, .high = 1
#define INTEGER(owner, member, value) ROW(owner, member, SK_FIELD_INTEGER), .initial = {value}
#define NUMBER(owner, member, value) ROW(owner, member, SK_FIELD_NUMBER), .initial = {value}
#define VECTOR(owner, member) ROW(owner, member, SK_FIELD_VECTOR), ANY
#define STRING(owner, member) ROW(owner, member, SK_FIELD_STRING), .text = ""
#define ENUM(owner, member, list, value) ROW(owner, member, SK_FIELD_ENUM), .choices = &list, .initial = {value}
#define TYPE(owner, list, value)                                                                                       \
    .key = "type", .type = SK_FIELD_ENUM, .offset = offsetof(owner, kind), .choices = &list, .initial = {value},       \
    .required = 1
#define STRUCT(owner, member, type_of) ROW(owner, member, SK_FIELD_STRUCT), .of = &type_of
#define ARRAY(owner, name, member, number, type_of)                                                                    \
    .key = name, .type = SK_FIELD_ARRAY, .offset = offsetof(owner, member), .count_offset = offsetof(owner, number),   \
    .of = &type_of

#endif

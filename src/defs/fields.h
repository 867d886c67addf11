/* The field table: every key of a scene, described once.
 *
 * Each struct of selkie/scene.h has one sk_struct, a list of sk_field rows. A
 * row has the field's key in files, its offset in the struct, default, bounds
 * and meaning. Everything else loops over these rows: defaults, copies and
 * comparison (structs.c), the check of ranges (check.c), the writer
 * (src/scene/save.c), the reader and --set (src/scene), the JSON Schema and the
 * reference page (describe_*.c). A new key is one member in scene.h and one row
 * in the keys_*.c of its part; a new choice of an enumeration is one line in its list of
 * values.
 *
 * Some structs have variants: a shape of type "box" has other keys than one of
 * type "sphere". The struct names the field that selects the variant, and each
 * row has the set of its variants.
 */
#ifndef SK_DEFS_FIELDS_H
#define SK_DEFS_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include <selkie/scene.h>

typedef enum sk_field_type {
    SK_FIELD_BOOL,     /* int, 0 or 1 */
    SK_FIELD_INTEGER,  /* int */
    SK_FIELD_SEED,     /* uint64_t */
    SK_FIELD_NUMBER,   /* double */
    SK_FIELD_VECTOR,   /* double[3]; in 2D two numbers will do */
    SK_FIELD_ROTATION, /* double[3]; in 2D one number, about z, is enough */
    SK_FIELD_SCALE,    /* double[3]; one number stands for three */
    SK_FIELD_MATRIX,   /* double[9], row-major; in 2D four numbers are enough */
    SK_FIELD_STRING,   /* const char * */
    SK_FIELD_FILE,     /* const char *, relative to scene.folder */
    SK_FIELD_ENUM,     /* an int-sized enumeration */
    SK_FIELD_STRUCT,   /* a struct in place */
    SK_FIELD_ARRAY     /* pointer to structs, and their number at count_offset */
} sk_field_type;

typedef struct sk_enum_value {
    const char *name;
    int value;
    const char *doc;
} sk_enum_value;

typedef struct sk_enum {
    int count;
    const sk_enum_value *values;
} sk_enum;

typedef struct sk_struct sk_struct;

typedef struct sk_field {
    const char *key;
    const char *doc;  /* one line */
    const char *unit; /* NULL = none */
    sk_field_type type;
    size_t offset;
    size_t count_offset;    /* ARRAY: of the int that holds the number of elements */
    const sk_struct *of;    /* STRUCT, ARRAY */
    const sk_enum *choices; /* ENUM */
    const char *text;       /* STRING: default */
    double initial[9];      /* default; one value for each component */
    double low, high;       /* bounds of each component */
    const char *replaces;   /* key beside this one that --set of this one removes */
    unsigned variants;      /* bit set of the variants that have this key; 0 = all */
    unsigned char low_open; /* the lower bound itself is excluded */
    unsigned char high_open;
    unsigned char required;
    unsigned char in_plane;  /* VECTOR, ROTATION: components that leave the plane must be 0 in 2D */
    unsigned char dimension; /* 3 = has a meaning in 3D only, 0 = always */
    unsigned char place;     /* VECTOR: a position, which moves with domain.origin (relative.h) */
    unsigned char whole;     /* VECTOR: three components in 2D too, such as a colour */
} sk_field;

struct sk_struct {
    const char *name; /* of the definition in the schema, and of the heading in the reference */
    const char *doc;
    size_t size; /* bytes */
    int field_count;
    const sk_field *fields;
    const sk_field *variant; /* the ENUM field that selects the variant; NULL = none */
};

extern const sk_struct sk_scene_struct;
extern const sk_struct sk_domain_struct;
extern const sk_struct sk_shape_struct;
extern const sk_struct sk_material_struct;
extern const sk_struct sk_viscosity_point_struct;
extern const sk_struct sk_elastoplastic_struct;
extern const sk_struct sk_points_struct;
extern const sk_struct sk_liquid_struct;
extern const sk_struct sk_source_struct;
extern const sk_struct sk_drain_struct;
extern const sk_struct sk_obstacle_struct;
extern const sk_struct sk_keyframe_struct;
extern const sk_struct sk_oscillation_struct;
extern const sk_struct sk_body_struct;
extern const sk_struct sk_joint_struct;
extern const sk_struct sk_force_struct;
extern const sk_struct sk_object_struct;
extern const sk_struct sk_timeline_entry_struct;
extern const sk_struct sk_probe_struct;
extern const sk_struct sk_stroke_struct;
extern const sk_struct sk_drawn_struct;
extern const sk_struct sk_excite_struct;
extern const sk_struct sk_dye_struct;
extern const sk_struct sk_camera_struct;
extern const sk_struct sk_mesh_struct;
extern const sk_struct sk_whitewater_struct;
extern const sk_enum sk_look;
extern const sk_enum sk_liquid_look;
extern const sk_enum sk_sky;
extern const sk_struct sk_change_struct;

/* The key "method" of older files: read as discretization and transfer, never written. No member of the scene. */
extern const sk_field sk_method_field;

enum {
    SK_MAX_UNION_DEPTH = 16,      /* unions within unions */
    SK_MAX_ELEMENTS = 1000000,    /* of any array of a scene */
    SK_MAX_DYES = 250,            /* a byte a pixel tells them apart */
    SK_MAX_CELLS_PER_AXIS = 65536 /* leaves 8 of a float's 24 bits for the position inside a cell */
};
#define SK_LARGEST_NUMBER 1e9 /* bound of numbers that have no other */

/* --- Access to one field of a struct --- */

static inline void *sk_field_at(const sk_field *field, void *base)
{
    return (char *)base + field->offset;
}

static inline const void *sk_field_in(const sk_field *field, const void *base)
{
    return (const char *)base + field->offset;
}

int sk_field_int(const sk_field *field, const void *base); /* BOOL, INTEGER, ENUM */
void sk_field_set_int(const sk_field *field, void *base, int value);
uint64_t sk_field_seed(const sk_field *field, const void *base);
const char *sk_field_string(const sk_field *field, const void *base); /* never NULL */
int sk_field_components(const sk_field *field);                       /* doubles it holds: 0, 1, 3 or 9 */
const double *sk_field_numbers(const sk_field *field, const void *base);
int sk_field_count(const sk_field *field, const void *base);            /* ARRAY: number of elements */
const void *sk_field_elements(const sk_field *field, const void *base); /* ARRAY: the first of them */

/* --- Looking things up --- */

/* The field with this key, whichever variant has it; NULL if there is none. */
const sk_field *sk_struct_find(const sk_struct *type, const char *key);
/* Whether this struct, with the variant that it has, uses the field. */
int sk_struct_uses(const sk_struct *type, const sk_field *field, const void *base);
/* Whether variant `value` has the field. */
int sk_field_in_variant(const sk_field *field, int value);

const sk_enum_value *sk_enum_find(const sk_enum *choices, const char *name);
const char *sk_enum_name(const sk_enum *choices, int value); /* NULL if there is none */

#endif

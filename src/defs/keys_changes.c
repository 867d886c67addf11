/* Rows of the field table (fields.h): the changes of a scene while it runs. */
#include "defs/keys.h"

static const sk_enum_value change_kind_values[] = {
    {"gravity", SELKIE_CHANGE_GRAVITY, "another gravity from now on; what is up stays"},
    {"force", SELKIE_CHANGE_FORCE, "adds a force, or replaces the one of its name"},
    {"obstacle", SELKIE_CHANGE_OBSTACLE, "adds an obstacle, or replaces the one of its name"},
    {"source", SELKIE_CHANGE_SOURCE, "adds a source, or replaces the one of its name"},
    {"drain", SELKIE_CHANGE_DRAIN, "adds a drain, or replaces the one of its name"},
    {"liquid", SELKIE_CHANGE_LIQUID, "adds liquid where there is room"},
    {"clear", SELKIE_CHANGE_CLEAR, "removes the liquid inside a shape"},
    {"move", SELKIE_CHANGE_MOVE, "moves an obstacle to a pose, within a time"},
    {"push", SELKIE_CHANGE_PUSH, "adds a velocity to that of a body"},
    {"remove", SELKIE_CHANGE_REMOVE, "removes an obstacle, force, source, drain or body"},
    {"step", SELKIE_CHANGE_STEP, "sets the length of the next step alone"},
    {"body", SELKIE_CHANGE_BODY, "adds a rigid body, or replaces the one of its name"},
    {"excite", SELKIE_CHANGE_EXCITE, "drives a drawn mode, in place of what drives it already"},
    {"dye", SELKIE_CHANGE_DYE, "dyes a reduced fluid from now on; a dye of the same name ends"},
};
CHOICES(change_kind);

static const sk_enum_value change_list_values[] = {
    {"obstacles", SELKIE_LIST_OBSTACLES, "obstacles"}, {"forces", SELKIE_LIST_FORCES, "forces"},
    {"sources", SELKIE_LIST_SOURCES, "sources"},       {"drains", SELKIE_LIST_DRAINS, "drains"},
    {"bodies", SELKIE_LIST_BODIES, "bodies"},
};
CHOICES(change_list);

#define OF(kind) .variants = 1u << SELKIE_CHANGE_##kind, .required = 1
#define OF_MOVE .variants = 1u << SELKIE_CHANGE_MOVE
#define OF_PUSH .variants = 1u << SELKIE_CHANGE_PUSH
#define OF_NAMED                                                                                                       \
    .variants = 1u << SELKIE_CHANGE_MOVE | 1u << SELKIE_CHANGE_PUSH | 1u << SELKIE_CHANGE_REMOVE, .required = 1

static const sk_field change_fields[] = {
    {INTEGER(selkie_change_def, step, 0), BETWEEN(0, 2e9), .required = 1,
     .doc = "it happens before the step of this number; 0 = the first"},
    {TYPE(selkie_change_def, change_kind, SELKIE_CHANGE_GRAVITY), .doc = "kind of change"},
    {ENUM(selkie_change_def, list, change_list, SELKIE_LIST_OBSTACLES), OF(REMOVE), .doc = "where the element is"},
    {STRING(selkie_change_def, name), OF_NAMED, .doc = "label of the element, or its number in the list"},
    {VECTOR(selkie_change_def, gravity), OF(GRAVITY), .unit = "m/s2", .in_plane = 1, .initial = {0, -9.81, 0},
     .doc = "acceleration"},
    {VECTOR(selkie_change_def, translate), OF_MOVE, .unit = "m", .in_plane = 1,
     .doc = "where the obstacle goes, from where it is drawn"},
    {ROW(selkie_change_def, rotate, SK_FIELD_ROTATION), ANY, OF_MOVE, .unit = "deg", .in_plane = 1,
     .doc = "likewise: about x, then y, then z, through the obstacle's center"},
    {NUMBER(selkie_change_def, duration, 0), ABOVE(0), OF(MOVE), .unit = "s", .doc = "the motion takes so long"},
    {VECTOR(selkie_change_def, velocity), OF_PUSH, .unit = "m/s", .in_plane = 1,
     .doc = "added to the velocity of the body's centre of mass"},
    {ROW(selkie_change_def, angular_velocity, SK_FIELD_ROTATION), ANY, OF_PUSH, .unit = "rad/s", .in_plane = 1,
     .doc = "added to the body's angular velocity"},
    {NUMBER(selkie_change_def, length, 0), BETWEEN(0, 1e3), .low_open = 1, OF(STEP), .unit = "s",
     .doc = "of the next step"},
    {STRUCT(selkie_change_def, force, sk_force_struct), OF(FORCE), .doc = "the force"},
    {STRUCT(selkie_change_def, obstacle, sk_obstacle_struct), OF(OBSTACLE), .doc = "the obstacle"},
    {STRUCT(selkie_change_def, source, sk_source_struct), OF(SOURCE), .doc = "the source"},
    {STRUCT(selkie_change_def, drain, sk_drain_struct), OF(DRAIN), .doc = "the drain"},
    {STRUCT(selkie_change_def, liquid, sk_liquid_struct), OF(LIQUID), .doc = "the liquid"},
    {STRUCT(selkie_change_def, shape, sk_shape_struct), OF(CLEAR), .doc = "where liquid goes"},
    {STRUCT(selkie_change_def, body, sk_body_struct), OF(BODY), .doc = "the body"},
    {STRUCT(selkie_change_def, excite, sk_excite_struct), OF(EXCITE), .doc = "which mode, and how"},
    {STRUCT(selkie_change_def, dye, sk_dye_struct), OF(DYE), .doc = "the dye"},
};
const sk_struct sk_change_struct = {.name = "change",
                                    .doc = "A change of the scene while it runs. A run that was steered by a program "
                                           "is replayed from the changes that it leaves.",
                                    .size = sizeof(selkie_change_def),
                                    .field_count = COUNT(change_fields),
                                    .fields = change_fields,
                                    .variant = &change_fields[1]};

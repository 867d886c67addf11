/* Rows of the field table (fields.h): what comes out: probes, files, pictures. */
#include "defs/keys.h"

static const sk_enum_value probe_kind_values[] = {
    {"height", SELKIE_PROBE_HEIGHT, "m; height of the liquid over a point, along the up direction"},
    {"pressure", SELKIE_PROBE_PRESSURE, "Pa; at a point"},
    {"velocity", SELKIE_PROBE_VELOCITY, "m/s; at a point, in the columns NAME_x, NAME_y and NAME_z"},
    {"front", SELKIE_PROBE_FRONT, "m; farthest liquid along an axis"},
    {"force", SELKIE_PROBE_FORCE,
     "N; of the liquid on walls, an obstacle or a body, in the columns NAME_x, NAME_y and NAME_z"},
    {"level", SELKIE_PROBE_LEVEL, "m; mean height of the liquid's surface over the floor of the domain, in an area"},
    {"torque", SELKIE_PROBE_TORQUE,
     "N m; of the liquid on walls, an obstacle or a body, about a point, in the columns NAME_x, NAME_y and NAME_z; in "
     "2D "
     "NAME_z alone"},
    {"temperature", SELKIE_PROBE_TEMPERATURE, "K; of the particles around a point"},
};
CHOICES(probe_kind);

static const sk_enum_value axis_values[] = {
    {"x", SELKIE_AXIS_X, "first axis"},
    {"y", SELKIE_AXIS_Y, "second axis"},
    {"z", SELKIE_AXIS_Z, "third axis; 3D only"},
};
CHOICES(axis);

static const sk_enum_value attribute_names_values[] = {
    {"selkie", SELKIE_NAMES_SELKIE, "velocity, id"},
    {"houdini", SELKIE_NAMES_HOUDINI, "v, pscale, id"},
    {"blender", SELKIE_NAMES_BLENDER, "velocity, id, in separate x, y and z components"},
};
CHOICES(attribute_names);

static const sk_enum_value up_axis_values[] = {
    {"scene", SELKIE_UP_SCENE, "axes of the scene"},
    {"y", SELKIE_UP_Y, "rotated so that y points up"},
    {"z", SELKIE_UP_Z, "rotated so that z points up, as in Blender"},
};
CHOICES(up_axis);

static const sk_enum_value surface_format_values[] = {
    {"none", SELKIE_SURFACE_FORMAT_NONE, "no surface"},
    {"ply", SELKIE_SURFACE_FORMAT_PLY, "binary PLY"},
    {"obj", SELKIE_SURFACE_FORMAT_OBJ, "Wavefront OBJ"},
};
CHOICES(surface_format);

static const sk_enum_value picture_style_values[] = {
    {"surface", SELKIE_STYLE_SURFACE,
     "the surface of the liquid, and of elastoplastic points, bodies of particles and frozen liquid as solids"},
    {"particles", SELKIE_STYLE_PARTICLES, "each particle as a small ball"},
    {"dye", SELKIE_STYLE_DYE, "2D: every point has the colour of the nearest particle, with sharp edges"},
    {"streamlines", SELKIE_STYLE_STREAMLINES, "2D: curves along the velocity of the particles"},
    {"lic", SELKIE_STYLE_LIC, "2D: noise smeared along the velocity (line integral convolution)"},
};
CHOICES(picture_style);

static const sk_enum_value picture_color_values[] = {
    {"water", SELKIE_COLOR_WATER, "as water"},
    {"speed", SELKIE_COLOR_SPEED, "by speed"},
    {"density", SELKIE_COLOR_DENSITY, "by density"},
    {"role", SELKIE_COLOR_ROLE, "fluid blue, candidates yellow, boundaries green; style particles"},
    {"material", SELKIE_COLOR_MATERIAL,
     "by material, in the order of the table: blue, amber, green, red, ...; style particles"},
    {"temperature", SELKIE_COLOR_TEMPERATURE,
     "by temperature, from the lowest to the highest of the scene; solid parts are pale; style particles"},
    {"stress", SELKIE_COLOR_STRESS, "by equivalent stress, of elastoplastic points"},
    {"plastic_strain", SELKIE_COLOR_PLASTIC_STRAIN, "by plastic strain, of elastoplastic points"},
};
CHOICES(picture_color);

#define OF_POINT_PROBE                                                                                                 \
    .variants = 1u << SELKIE_PROBE_HEIGHT | 1u << SELKIE_PROBE_PRESSURE | 1u << SELKIE_PROBE_VELOCITY |                \
                1u << SELKIE_PROBE_TORQUE | 1u << SELKIE_PROBE_TEMPERATURE
#define OF_FRONT_PROBE .variants = 1u << SELKIE_PROBE_FRONT
#define OF_FORCE_PROBE .variants = 1u << SELKIE_PROBE_FORCE | 1u << SELKIE_PROBE_TORQUE
#define OF_PRESSURE_PROBE .variants = 1u << SELKIE_PROBE_PRESSURE
#define OF_LEVEL_PROBE .variants = 1u << SELKIE_PROBE_LEVEL

static const sk_field probe_fields[] = {
    {STRING(selkie_probe_def, name), .required = 1, .doc = "name of its column: letters, digits and _"},
    {TYPE(selkie_probe_def, probe_kind, SELKIE_PROBE_HEIGHT), .doc = "kind of measurement"},
    {VECTOR(selkie_probe_def, at), .place = 1, .unit = "m", .required = 1, OF_POINT_PROBE,
     .doc = "point of the measurement; torque: the point that it is about"},
    {NUMBER(selkie_probe_def, radius, 0), AT_LEAST(0), OF_PRESSURE_PROBE, .unit = "m",
     .doc = "of a round gauge around the point, whose mean pressure is measured, in 2D half of a line; 0 = the point"},
    {VECTOR(selkie_probe_def, normal), OF_PRESSURE_PROBE, .in_plane = 1, .initial = {1, 0, 0},
     .doc = "direction across the gauge, of any length above 0"},
    {ENUM(selkie_probe_def, axis, axis, SELKIE_AXIS_X), OF_FRONT_PROBE, .doc = "along which axis"},
    {INTEGER(selkie_probe_def, direction, 1), BETWEEN(-1, 1), OF_FRONT_PROBE,
     .doc = "1 = towards its high end, -1 = its low end"},
    {ROW(selkie_probe_def, on, SK_FIELD_STRING), .text = "walls", OF_FORCE_PROBE,
     .doc = "name of an obstacle or body; walls = those of the domain"},
    {VECTOR(selkie_probe_def, min), .place = 1, .unit = "m", OF_LEVEL_PROBE,
     .doc = "lower corner of the area; its height does not matter"},
    {VECTOR(selkie_probe_def, max), .place = 1, .unit = "m", OF_LEVEL_PROBE,
     .doc = "upper corner; along an axis where min and max are 0 the area is as wide as the domain"},
};
const sk_struct sk_probe_struct = {.name = "probe",
                                   .doc = "A measurement, written to probes.csv after each step.",
                                   .size = sizeof(selkie_probe_def),
                                   .field_count = COUNT(probe_fields),
                                   .fields = probe_fields,
                                   .variant = &probe_fields[1]};

static const sk_field output_fields[] = {
    {BOOL(selkie_output_def, ply, 1), .doc = "particles as binary PLY"},
    {BOOL(selkie_output_def, vtp, 0), .doc = "particles as VTK XML (.vtp)"},
    {BOOL(selkie_output_def, skp, 0),
     .doc = "particles in compact files (.skp): positions to 1/1024 of a cell, half-precision velocities, compressed; "
            "`selkie convert` makes .ply and .vtp of them"},
    {INTEGER(selkie_output_def, every, 1), BETWEEN(1, 1000000), .doc = "write each n-th frame"},
    {ENUM(selkie_output_def, names, attribute_names, SELKIE_NAMES_SELKIE), .doc = "names of the particles' attributes"},
    {ENUM(selkie_output_def, up, up_axis, SELKIE_UP_SCENE), .doc = "up axis in the files"},
    {ENUM(selkie_output_def, surface, surface_format, SELKIE_SURFACE_FORMAT_NONE),
     .doc = "the liquid's surface as triangles; 3D only"},
    {NUMBER(selkie_output_def, checkpoint_interval, 60), AT_LEAST(0), .unit = "s",
     .doc = "wall time between checkpoints; 0 = only at the end"},
    {INTEGER(selkie_output_def, checkpoint_keep, 2), BETWEEN(1, 1000000), .doc = "number of checkpoints that are kept"},
};
const sk_struct sk_output_struct = {.name = "output",
                                    .doc = "Output of a run.",
                                    .size = sizeof(selkie_output_def),
                                    .field_count = COUNT(output_fields),
                                    .fields = output_fields};

static const sk_field render_fields[] = {
    {INTEGER(selkie_render_def, width, 1280), BETWEEN(16, 16384), .unit = "pixels", .doc = "of a picture"},
    {INTEGER(selkie_render_def, height, 0), BETWEEN(0, 16384), .unit = "pixels",
     .doc = "of a picture; 0 = follows the domain"},
    {ENUM(selkie_render_def, style, picture_style, SELKIE_STYLE_SURFACE),
     .doc = "style of the liquid; styles of 2D show the surface in 3D"},
    {ENUM(selkie_render_def, color, picture_color, SELKIE_COLOR_WATER), .doc = "quantity shown by the colour"},
    {VECTOR(selkie_render_def, eye), .place = 1, .unit = "m", .dimension = 3,
     .doc = "position of the camera; eye = target: framed automatically"},
    {VECTOR(selkie_render_def, target), .place = 1, .unit = "m", .dimension = 3,
     .doc = "point in the middle of the picture"},
    {NUMBER(selkie_render_def, field_of_view, 40), BETWEEN(0, 180), .low_open = 1, .high_open = 1, .unit = "deg",
     .dimension = 3, .doc = "vertical field of view"},
    {ENUM(selkie_render_def, liquid, sk_liquid_look, SELKIE_LIQUID_LOOK_TINTED), .dimension = 3,
     .doc = "look of the liquid"},
    {ENUM(selkie_render_def, sky, sk_sky, SELKIE_SKY_STUDIO), .dimension = 3, .doc = "surroundings"},
    {ROW(selkie_render_def, environment, SK_FIELD_FILE), .text = "", .dimension = 3,
     .doc = "picture of the surroundings in place of the sky, relative to the scene file's folder: the whole sphere, "
            "twice as wide as high, its middle behind the liquid (PNG, PPM, or HDR with its full range of light)"},
    {NUMBER(selkie_render_def, shutter, 0), BETWEEN(0, 1), .dimension = 3,
     .doc = "motion blur: part of the time between frames that a picture is exposed; 0.5 in most films"},
    {STRING(selkie_render_def, cut), .dimension = 3,
     .doc = "cut-away view: \"z>0.4\" leaves out what lies beyond 0.4 m along z, \"z<0.4\" what lies before it"},
    {ARRAY(selkie_render_def, "camera", camera, camera_count, sk_camera_struct), .dimension = 3,
     .doc = "camera over time, in place of eye, target and field_of_view"},
};
const sk_struct sk_render_struct = {.name = "render",
                                    .doc = "Pictures of the run.",
                                    .size = sizeof(selkie_render_def),
                                    .field_count = COUNT(render_fields),
                                    .fields = render_fields};

/* Rows of the field table (fields.h): the domain: shapes, sides, time, and the motion of the frame. */
#include "defs/keys.h"

static const sk_enum_value wall_values[] = {
    {"free_slip", SELKIE_WALL_FREE_SLIP, "closed; liquid slides along it"},
    {"no_slip", SELKIE_WALL_NO_SLIP, "closed; liquid sticks to it"},
    {"open", SELKIE_WALL_OPEN, "liquid leaves through it and is gone"},
};
CHOICES(wall);

static const sk_enum_value axes_values[] = {
    {"none", SELKIE_AXES_NONE, "every side is as domain.walls says"},
    {"x", SELKIE_AXES_X, "liquid that leaves at x_max comes in at x_min, and the other way round"},
    {"y", SELKIE_AXES_Y, "the same along y"},
    {"z", SELKIE_AXES_Z, "the same along z"},
    {"xy", SELKIE_AXES_XY, "along x and y"},
    {"xz", SELKIE_AXES_XZ, "along x and z"},
    {"yz", SELKIE_AXES_YZ, "along y and z"},
    {"xyz", SELKIE_AXES_XYZ, "along all axes"},
};
CHOICES(axes);

static const sk_enum_value shape_kind_values[] = {
    {"box", SELKIE_SHAPE_BOX, "with sides along the axes"},
    {"sphere", SELKIE_SHAPE_SPHERE, "a disc in 2D"},
    {"cylinder", SELKIE_SHAPE_CYLINDER, "with flat ends; a bar in 2D"},
    {"half_space", SELKIE_SHAPE_HALF_SPACE, "all that lies on the side of a plane away from its normal"},
    {"wave", SELKIE_SHAPE_WAVE, "all that lies below level + amplitude cos(wave_number . x + phase)"},
    {"mesh", SELKIE_SHAPE_MESH, "the inside of a triangle mesh: OBJ, STL, PLY, glTF"},
    {"union", SELKIE_SHAPE_UNION, "what lies in any of several shapes"},
    {"heightfield", SELKIE_SHAPE_HEIGHTFIELD, "all that lies below a table of heights: ESRI ASCII grid"},
    {"polygon", SELKIE_SHAPE_POLYGON, "2D: the inside of a closed line of points"},
    {"picture", SELKIE_SHAPE_PICTURE, "2D: what is dark in a picture: PNG, PGM or PPM"},
};
CHOICES(shape_kind);

#define OF_BOX .variants = 1u << SELKIE_SHAPE_BOX | 1u << SELKIE_SHAPE_PICTURE
#define OF_SPHERE .variants = 1u << SELKIE_SHAPE_SPHERE
#define OF_CYLINDER .variants = 1u << SELKIE_SHAPE_CYLINDER
#define OF_ROUND .variants = 1u << SELKIE_SHAPE_SPHERE | 1u << SELKIE_SHAPE_CYLINDER
#define OF_HALF_SPACE .variants = 1u << SELKIE_SHAPE_HALF_SPACE
#define OF_WAVE .variants = 1u << SELKIE_SHAPE_WAVE
#define OF_MESH .variants = 1u << SELKIE_SHAPE_MESH
#define OF_SCALED .variants = 1u << SELKIE_SHAPE_MESH | 1u << SELKIE_SHAPE_HEIGHTFIELD
#define OF_FILE .variants = 1u << SELKIE_SHAPE_MESH | 1u << SELKIE_SHAPE_HEIGHTFIELD | 1u << SELKIE_SHAPE_PICTURE
#define OF_POLYGON .variants = 1u << SELKIE_SHAPE_POLYGON
#define OF_PICTURE .variants = 1u << SELKIE_SHAPE_PICTURE
#define OF_UNION .variants = 1u << SELKIE_SHAPE_UNION

static const sk_field point_fields[] = {
    {VECTOR(selkie_point, at), .place = 1, .unit = "m", .required = 1, .doc = "place of the corner"},
};
static const sk_struct sk_point_struct = {.name = "point",
                                          .doc = "A corner of a polygon.",
                                          .size = sizeof(selkie_point),
                                          .field_count = COUNT(point_fields),
                                          .fields = point_fields};

static const sk_field shape_fields[] = {
    {TYPE(selkie_shape, shape_kind, SELKIE_SHAPE_BOX), .doc = "kind of shape"},
    {VECTOR(selkie_shape, min), .place = 1, OF_BOX, .unit = "m", .required = 1, .doc = "lower corner"},
    {VECTOR(selkie_shape, max), .place = 1, OF_BOX, .unit = "m", .required = 1, .initial = {1, 1, 1},
     .doc = "upper corner"},
    {VECTOR(selkie_shape, center), .place = 1, OF_SPHERE, .unit = "m", .required = 1, .doc = "centre"},
    {VECTOR(selkie_shape, from), .place = 1, OF_CYLINDER, .unit = "m", .required = 1, .doc = "one end of the axis"},
    {VECTOR(selkie_shape, to), .place = 1, OF_CYLINDER, .unit = "m", .required = 1, .initial = {0, 1, 0},
     .doc = "its other end"},
    {NUMBER(selkie_shape, radius, 0.5), ABOVE(0), OF_ROUND, .unit = "m", .required = 1, .doc = "radius"},
    {VECTOR(selkie_shape, point), .place = 1, OF_HALF_SPACE, .unit = "m", .required = 1, .doc = "a point of the plane"},
    {VECTOR(selkie_shape, normal), OF_HALF_SPACE, .initial = {0, 1, 0},
     .doc = "outward direction, of any length above 0"},
    {NUMBER(selkie_shape, level, 0), ANY, OF_WAVE, .unit = "m", .required = 1,
     .doc = "mean height, a coordinate along the up direction"},
    {NUMBER(selkie_shape, amplitude, 0), AT_LEAST(0), OF_WAVE, .unit = "m",
     .doc = "height of the crests above the mean"},
    {VECTOR(selkie_shape, wave_number), OF_WAVE, .unit = "rad/m", .doc = "2 pi / wavelength, along the crests' normal"},
    {NUMBER(selkie_shape, phase, 0), ANY, OF_WAVE, .unit = "deg", .doc = "phase at the point 0"},
    {ROW(selkie_shape, file, SK_FIELD_FILE), .text = "", OF_FILE, .required = 1,
     .doc = "file of the mesh, of the heights or of the picture, relative to the scene file's folder"},
    {ROW(selkie_shape, scale, SK_FIELD_SCALE), ANY, OF_SCALED, .initial = {1, 1, 1},
     .doc = "applied first: scale about the origin"},
    {ROW(selkie_shape, rotate, SK_FIELD_ROTATION), ANY, OF_MESH, .unit = "deg",
     .doc = "applied second: rotation about x, then y, then z"},
    {VECTOR(selkie_shape, translate), .place = 1, OF_SCALED, .unit = "m", .doc = "applied last: translation"},
    {ARRAY(selkie_shape, "shapes", children, child_count, sk_shape_struct), OF_UNION, .required = 1,
     .doc = "its members"},
    {ARRAY(selkie_shape, "points", points, point_count, sk_point_struct), OF_POLYGON, .required = 1,
     .doc = "its corners, at least three, either way around; the last one is joined to the first"},
    {NUMBER(selkie_shape, threshold, 0.5), BETWEEN(0, 1), OF_PICTURE,
     .doc = "brightness below which a pixel is inside; what is transparent is white"},
};
const sk_struct sk_shape_struct = {.name = "shape",
                                   .doc = "A region of space. Its type decides which keys it has.",
                                   .size = sizeof(selkie_shape),
                                   .field_count = COUNT(shape_fields),
                                   .fields = shape_fields,
                                   .variant = &shape_fields[0]};

#define WALL(index, name, text)                                                                                        \
    .key = name, .type = SK_FIELD_ENUM, .offset = (index) * sizeof(selkie_wall), .choices = &wall,                     \
    .initial = {SELKIE_WALL_FREE_SLIP}, .doc = text

static const sk_field walls_fields[] = {
    {WALL(0, "x_min", "wall at the low end of x")},
    {WALL(1, "x_max", "wall at the high end of x")},
    {WALL(2, "y_min", "wall at the low end of y")},
    {WALL(3, "y_max", "wall at the high end of y")},
    {WALL(4, "z_min", "wall at the low end of z"), .dimension = 3},
    {WALL(5, "z_max", "wall at the high end of z"), .dimension = 3},
};
static const sk_struct walls_struct = {.name = "walls",
                                       .doc = "What happens at each side of the domain.",
                                       .size = 6 * sizeof(selkie_wall),
                                       .field_count = COUNT(walls_fields),
                                       .fields = walls_fields};

#define SIDE(index, name, most, what)                                                                                  \
    .key = name, .type = SK_FIELD_NUMBER, .offset = (index) * sizeof(double), BETWEEN(0, most), .doc = what

#define SIDES(most, unit_of, what)                                                                                     \
    {                                                                                                                  \
        {SIDE(0, "x_min", most, what " at the low end of x"), .unit = unit_of},                                        \
            {SIDE(1, "x_max", most, what " at the high end of x"), .unit = unit_of},                                   \
            {SIDE(2, "y_min", most, what " at the low end of y"), .unit = unit_of},                                    \
            {SIDE(3, "y_max", most, what " at the high end of y"), .unit = unit_of},                                   \
            {SIDE(4, "z_min", most, what " at the low end of z"), .unit = unit_of, .dimension = 3},                    \
        {                                                                                                              \
            SIDE(5, "z_max", most, what " at the high end of z"), .unit = unit_of, .dimension = 3                      \
        }                                                                                                              \
    }

static const sk_field slip_lengths_fields[] = SIDES(SK_LARGEST_NUMBER, "m", "slip length");
static const sk_struct slip_lengths_struct = {
    .name = "slip_lengths",
    .doc = "Distance behind each side at which liquid would be at rest (Navier's slip length).",
    .size = 6 * sizeof(double),
    .field_count = COUNT(slip_lengths_fields),
    .fields = slip_lengths_fields};

static const sk_field liquid_frictions_fields[] = SIDES(100, NULL, "friction");
static const sk_struct liquid_frictions_struct = {
    .name = "liquid_frictions",
    .doc = "Friction of liquid on each side over its pressure (Coulomb's law).",
    .size = 6 * sizeof(double),
    .field_count = COUNT(liquid_frictions_fields),
    .fields = liquid_frictions_fields};

static const sk_field side_temperatures_fields[] = SIDES(SK_LARGEST_NUMBER, "K", "temperature");
static const sk_struct side_temperatures_struct = {.name = "side_temperatures",
                                                   .doc = "Temperature of each closed side; 0 = insulated.",
                                                   .size = 6 * sizeof(double),
                                                   .field_count = COUNT(side_temperatures_fields),
                                                   .fields = side_temperatures_fields};

static const sk_field side_exchanges_fields[] = SIDES(SK_LARGEST_NUMBER, "W/(m2 K)", "heat exchange");
static const sk_struct side_exchanges_struct = {
    .name = "side_exchanges",
    .doc = "Heat that passes between each side of given temperature and the liquid beside it.",
    .size = 6 * sizeof(double),
    .field_count = COUNT(side_exchanges_fields),
    .fields = side_exchanges_fields};

static const sk_field domain_fields[] = {
    {INTEGER(selkie_domain_def, dimension, 3), BETWEEN(2, 3), .doc = "2 or 3"},
    {VECTOR(selkie_domain_def, origin), .unit = "m", .doc = "lower corner"},
    {ROW(selkie_domain_def, size, SK_FIELD_VECTOR), BETWEEN(0, SK_LARGEST_NUMBER), .unit = "m", .required = 1,
     .doc = "lengths of the sides, rounded up to whole cells"},
    {NUMBER(selkie_domain_def, cell_size, 0), AT_LEAST(0), .unit = "m", .doc = "side of a cell; 0 = from resolution"},
    {INTEGER(selkie_domain_def, resolution, 64), BETWEEN(1, SK_MAX_CELLS_PER_AXIS), .replaces = "cell_size",
     .doc = "cells along the longest side, used where cell_size is 0"},
    {STRUCT(selkie_domain_def, walls, walls_struct), .doc = "kind of each side"},
    {ENUM(selkie_domain_def, periodic, axes, SELKIE_AXES_NONE),
     .doc = "axes along which the domain repeats: its two sides are joined, and their walls are not used"},
    {STRUCT(selkie_domain_def, slip_length, slip_lengths_struct),
     .doc = "of no_slip sides, in a viscous liquid: 0 = liquid sticks, the longer the more it slides"},
    {STRUCT(selkie_domain_def, liquid_friction, liquid_frictions_struct),
     .doc = "of free_slip sides: friction is at most this times the pressure; 0 = none"},
    {STRUCT(selkie_domain_def, temperature, side_temperatures_struct),
     .doc = "of closed sides, where heat is simulated; 0 = insulated"},
    {STRUCT(selkie_domain_def, heat_exchange, side_exchanges_struct),
     .doc = "of sides with a temperature: heat per area, time and difference; 0 = perfect contact"},
};
const sk_struct sk_domain_struct = {.name = "domain",
                                    .doc = "The box that everything happens in, and its grid of cubic cells.",
                                    .size = sizeof(selkie_domain_def),
                                    .field_count = COUNT(domain_fields),
                                    .fields = domain_fields};

static const sk_field time_fields[] = {
    {NUMBER(selkie_time_def, end, 5), BETWEEN(0, 1e6), .unit = "s", .doc = "end of the run"},
    {NUMBER(selkie_time_def, fps, 30), BETWEEN(0, 1e6), .low_open = 1, .unit = "1/s", .doc = "frames per second"},
    {NUMBER(selkie_time_def, step, 0), BETWEEN(0, 1e6), .unit = "s",
     .doc = "fixed step, which sph and elastoplastic points split where it is longer than the CFL number allows; 0 = "
            "by the CFL number"},
    {NUMBER(selkie_time_def, cfl, 0), BETWEEN(0, 1000), .replaces = "step",
     .doc = "cells that the fastest particle may cross in a step, used where step is 0; 0 = 1.75 with flip, 2 with "
            "apic and pic, 1 where incompressibility is unilateral or liquid fills the domain; for sph particle "
            "spacings, 0 = 0.4; for mpm cells that a pressure wave "
            "may cross, 0 = 0.4"},
    {NUMBER(selkie_time_def, min_step, 1e-6), BETWEEN(0, 1e6), .unit = "s",
     .doc = "lower bound of steps by the CFL number, except before a frame; elastoplastic points have none"},
    {NUMBER(selkie_time_def, max_step, 0), BETWEEN(0, 1e6), .unit = "s", .doc = "their upper bound; 0 = 1 / fps"},
    {NUMBER(selkie_time_def, reflection, -1), BETWEEN(-1, 1),
     .doc = "discretization grid, incompressibility bilateral, volume none or idp: part of a step's change of "
            "velocity, projected at its "
            "middle, that is added once more, so that the flow keeps its energy; 0 = projection at the end; below 0 = "
            "1 in a "
            "domain that is full of liquid, without a surface or moving things, and 0.8 elsewhere"},
};
const sk_struct sk_time_struct = {.name = "time",
                                  .doc = "Steps are shortened to land exactly on the frames.",
                                  .size = sizeof(selkie_time_def),
                                  .field_count = COUNT(time_fields),
                                  .fields = time_fields};

static const sk_field keyframe_fields[] = {
    {NUMBER(selkie_keyframe, time, 0), ANY, .unit = "s", .required = 1, .doc = "when"},
    {VECTOR(selkie_keyframe, translate), .unit = "m", .in_plane = 1, .doc = "offset from the position of the shape"},
    {ROW(selkie_keyframe, rotate, SK_FIELD_ROTATION), ANY, .unit = "deg", .in_plane = 1,
     .doc = "rotation about x, then y, then z, through the obstacle's center"},
};
const sk_struct sk_keyframe_struct = {.name = "keyframe",
                                      .doc =
                                          "Where an obstacle is at a time; held before the first and after the last.",
                                      .size = sizeof(selkie_keyframe),
                                      .field_count = COUNT(keyframe_fields),
                                      .fields = keyframe_fields};

static const sk_field oscillation_fields[] = {
    {VECTOR(selkie_oscillation, translate), .unit = "m", .in_plane = 1, .doc = "amplitude of the translation"},
    {ROW(selkie_oscillation, rotate, SK_FIELD_ROTATION), ANY, .unit = "deg", .in_plane = 1,
     .doc = "amplitude of the rotation about x, then y, then z, through the center"},
    {NUMBER(selkie_oscillation, period, 1), ABOVE(0), .unit = "s", .required = 1, .doc = "time of one cycle"},
    {NUMBER(selkie_oscillation, phase, 0), ANY, .unit = "deg", .doc = "at time 0: amplitude x sin(phase)"},
    {NUMBER(selkie_oscillation, ramp, 0), AT_LEAST(0), .unit = "s",
     .doc = "time in which the amplitude grows smoothly from 0; 0 = full from the start"},
};
const sk_struct sk_oscillation_struct = {.name = "oscillation",
                                         .doc = "A harmonic motion: amplitude x sin(2 pi time / period + phase).",
                                         .size = sizeof(selkie_oscillation),
                                         .field_count = COUNT(oscillation_fields),
                                         .fields = oscillation_fields};

static const sk_field frame_fields[] = {
    {VECTOR(selkie_frame_def, center), .place = 1, .unit = "m", .doc = "point of the domain that it turns about"},
    {ARRAY(selkie_frame_def, "keyframes", keyframes, keyframe_count, sk_keyframe_struct),
     .doc = "position of the domain over time, joined by a smooth curve"},
    {ARRAY(selkie_frame_def, "oscillations", oscillations, oscillation_count, sk_oscillation_struct),
     .doc = "harmonic motions, added to the keyframes: sway, heave, roll"},
    {ROW(selkie_frame_def, motion_file, SK_FIELD_FILE), MOTION_FILE},
};
const sk_struct sk_frame_struct = {
    .name = "frame",
    .doc =
        "Motion of the whole domain, with its walls, obstacles and probes. Positions and velocities of the scene are "
        "relative to the moving domain; the liquid feels the inertial forces: translation, Euler, centrifugal and "
        "Coriolis. Gravity is that of the frame at rest.",
    .size = sizeof(selkie_frame_def),
    .field_count = COUNT(frame_fields),
    .fields = frame_fields};

static const sk_field gravity_key_fields[] = {
    {NUMBER(selkie_gravity_key, time, 0), ANY, .unit = "s", .required = 1, .doc = "when"},
    {VECTOR(selkie_gravity_key, gravity), .unit = "m/s2", .in_plane = 1, .required = 1, .initial = {0, -9.81, 0},
     .doc = "acceleration at that time; linear between two times, held before the first and after the last"},
};
const sk_struct sk_gravity_key_struct = {.name = "gravity_key",
                                         .doc = "Gravity at a time.",
                                         .size = sizeof(selkie_gravity_key),
                                         .field_count = COUNT(gravity_key_fields),
                                         .fields = gravity_key_fields};
